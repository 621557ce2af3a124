/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One open and its errno: perf ABI sheet D6, cases 1-28, and the order of the checks (A4). What
 * needs more than one call is in open.c and answers.c.
 */
#ifndef TEST_PERF_ABI_ROWS_H
#define TEST_PERF_ABI_ROWS_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "quipu/attr.h"

enum who { SELF, NOBODY, UNUSED };

/* One open and its errno. */
struct row {
	const char *name;
	int want;		/* errno, 0: opens */
	struct quipu_attr attr; /* type SOFTWARE, config TASK_CLOCK and exclude_kernel are added */
	uint32_t size;		/* 128 unless given; ZERO_SIZE for 0 */
	unsigned poke;		/* a byte to set to 1 */
	bool unreadable;
	uint32_t type;
	uint64_t config;
	enum who who;
	int cpu; /* as given; ANY: -1 */
	unsigned long flags;
};
#define ZERO_SIZE 0xffffffffu
#define ANY	  (-1)

static const struct row rows[] = {
	{"01 size 0", 0, .size = ZERO_SIZE, .cpu = ANY},
	{"02 size 63", E2BIG, .size = 63, .cpu = ANY},
	{"03 size 4096, zero tail", 0, .size = 4096, .cpu = ANY},
	{"04 size 4097", E2BIG, .size = 4097, .cpu = ANY},
	{"05 size 256 with byte 250 set", E2BIG, .size = 256, .poke = 250, .cpu = ANY},
	{"06 size 68", 0, .size = 68, .cpu = ANY},
	{"07 unreadable attr", EFAULT, .unreadable = true, .cpu = ANY},
	{"08 flags 16", EINVAL, .flags = 16, .cpu = ANY},
	{"09 flag word bit 63", EINVAL, {.flags = UINT64_C(1) << 63}, .cpu = ANY},
	{"10a sample_type bit 25", EINVAL, {.sample_type = 1 << 25}, .cpu = ANY},
	{"10b read_format bit 5", EINVAL, {.read_format = 1 << 5}, .cpu = ANY},
	{"11 pid -1 and cpu -1", EINVAL, .who = NOBODY, .cpu = ANY},
	{"12 a CPU that does not exist", EINVAL, .who = NOBODY, .cpu = 100000},
	{"14 a pid that does not exist", ESRCH, .who = UNUSED, .cpu = ANY},
	{"16 type 12345", ENOENT, .type = 12345, .cpu = ANY},
	{"17 software config 99", ENOENT, .config = 99, .cpu = ANY},
	{"19 sample_freq 10^7",
	 EINVAL,
	 {.flags = QUIPU_ATTR_FREQ, .sample_freq = 10000000},
	 .cpu = ANY},
	{"20 period bit 63", EINVAL, {.sample_period = UINT64_C(1) << 63}, .cpu = ANY},
	{"21a inherit and SAMPLE_READ",
	 EINVAL,
	 {.flags = QUIPU_ATTR_INHERIT, .sample_type = PERF_SAMPLE_READ},
	 .cpu = ANY},
	{"21b inherit, SAMPLE_READ and TID",
	 0,
	 {.flags = QUIPU_ATTR_INHERIT, .sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID},
	 .cpu = ANY},
	{"22a sigtrap without remove_on_exec", EINVAL, {.flags = QUIPU_ATTR_SIGTRAP}, .cpu = ANY},
	{"22b remove_on_exec with enable_on_exec",
	 EINVAL,
	 {.flags = QUIPU_ATTR_REMOVE_ON_EXEC | QUIPU_ATTR_ENABLE_ON_EXEC},
	 .cpu = ANY},
	{"22c inherit_thread without inherit",
	 EINVAL,
	 {.flags = QUIPU_ATTR_INHERIT_THREAD},
	 .cpu = ANY},
	{"23 WEIGHT and WEIGHT_STRUCT",
	 EINVAL,
	 {.sample_type = PERF_SAMPLE_WEIGHT | 1 << 24},
	 .cpu = ANY},
	{"24a branch stack of no kind",
	 EINVAL,
	 {.sample_type = PERF_SAMPLE_BRANCH_STACK, .branch_sample_type = PERF_SAMPLE_BRANCH_USER},
	 .cpu = ANY},
	{"24b branch stack of a software event",
	 EOPNOTSUPP,
	 {.sample_type = PERF_SAMPLE_BRANCH_STACK, .branch_sample_type = PERF_SAMPLE_BRANCH_ANY},
	 .config = 9,
	 .cpu = ANY},
	{"25a user stack 65535",
	 EINVAL,
	 {.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 65535},
	 .cpu = ANY},
	{"25b user stack 12",
	 EINVAL,
	 {.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 12},
	 .cpu = ANY},
	{"25c user stack 1024",
	 0,
	 {.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 1024},
	 .cpu = ANY},
	{"26 clock 99", EINVAL, {.flags = QUIPU_ATTR_USE_CLOCKID, .clockid = 99}, .cpu = ANY},
	{"26b clock monotonic", 0, {.flags = QUIPU_ATTR_USE_CLOCKID, .clockid = 1}, .cpu = ANY},
	{"26c clock realtime on a PMU without NMI",
	 0,
	 {.flags = QUIPU_ATTR_USE_CLOCKID, .clockid = 0},
	 .cpu = ANY},
	{"27 aux_output on a software event",
	 EOPNOTSUPP,
	 {.flags = QUIPU_ATTR_AUX_OUTPUT},
	 .cpu = ANY},
	{"28 call chain deeper than the sysctl",
	 EOVERFLOW,
	 {.sample_type = PERF_SAMPLE_CALLCHAIN, .sample_max_stack = 200},
	 .cpu = ANY},
	{"A4.6 empty register mask", EINVAL, {.sample_type = PERF_SAMPLE_REGS_USER}, .cpu = ANY},
	{"A4.18 control group without a CPU", EINVAL, .flags = 4, .cpu = ANY},
	{"A4.1 before A4.2: bad flag and bad size", EINVAL, .flags = 16, .size = 63, .cpu = ANY},
	{"A4.21 before A4.25: no task and no such event", ESRCH, .who = UNUSED, .config = 99,
	 .cpu = ANY},
	{"A4.23 before A4.25: no CPU and no such type", EINVAL, .type = 12345, .who = NOBODY,
	 .cpu = 100000},
};

#endif
