/* SPDX-License-Identifier: BSD-2-Clause */
/* The sysfs of a small machine that has every kind of PMU file, for the tests of the event grammar.
 */
#ifndef TESTS_UNIT_GRAMMAR_TREE_H
#define TESTS_UNIT_GRAMMAR_TREE_H

#include <quipu/tree.h>

#define D "/sys/bus/event_source/devices/"
#define N(name, type)                                                                              \
	{D name "/cpumask", "0,4\n", 0}, {D name "/events/rd", "event=0x10\n", 0},                 \
		{D name "/events/rd.scale", "6.103515625e-5\n", 0},                                \
		{D name "/events/rd.unit", "MiB\n", 0},                                            \
		{D name "/events/wr", "event=0x11,umask=0x100\n", 0},                              \
		{D name "/format/event", "config:0-31\n", 0},                                      \
		{D name "/format/umask", "config:0-7,32-35\n", 0},                                 \
	{                                                                                          \
		D name "/type", type "\n", 0                                                       \
	}

/* Sorted by path, as quipu_tree promises. */
static const struct quipu_tree_file test_files[] = {
	{D "bad/format/event", "config:70\n", 0},
	{D "bad/type", "9\n", 0},
	{D "cpu", "../../../devices/cpu", 1},
	N("nest0", "10"),
	N("nest_1", "11"),
	{D "notype/format/event", "config:0-7\n", 0},
	{D "software/type", "1\n", 0},
	N("uncore_link2", "12"),
	{"/sys/devices/cpu/events/broken", "nosuch=1\n", 0},
	{"/sys/devices/cpu/events/foo-bar", "event=0x3\n", 0},
	{"/sys/devices/cpu/events/need", "event=0x5,split=?\n", 0},
	{"/sys/devices/cpu/events/two-words", "config=0x7,config1=0x9,edge\n", 0},
	{"/sys/devices/cpu/format/edge", "config:63\n", 0},
	{"/sys/devices/cpu/format/event", "config:0-62\n", 0},
	{"/sys/devices/cpu/format/split", "config1:0-3,8-11\n", 0},
	{"/sys/devices/cpu/format/wide", "config2:0-63\n", 0},
	{"/sys/devices/cpu/type", "4\n", 0},
};

#define TEST_FILES (sizeof(test_files) / sizeof(*test_files))
#undef N
#undef D

#endif
