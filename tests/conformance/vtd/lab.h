/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole machine vtd for tests: its tree (edited at will), the room, the drivers, the event core,
 * a clock set by hand. */
#ifndef TEST_VTD_LAB_H
#define TEST_VTD_LAB_H

#include <quipu/event.h>
#include <quipu/grammar.h>
#include <quipu/tree.h>

#include "platform/vtd/room.h"

struct lab {
	struct quipu_machine *machine;
	struct quipu_manual_signals *hand;
	struct quipu_core *core;
	struct quipu_notes notes;
	struct quipu_catalog *catalog;
	struct quipu_tree *tree;
	void *room;
	uint64_t now; /* ns */
	struct quipu_caller caller;
	char trace[4096];
};

/* The machine @name of the build, after @edit (may be NULL) has changed its tree. lab_create: errno
 * of the room. */
typedef void lab_edit(void *fdt);
struct lab *lab_new(const char *name, lab_edit *edit, int paranoid);
int lab_create(struct lab **, const char *name, lab_edit *edit, int paranoid);
void lab_free(struct lab *);
/* Edits: no devices at all; a property of the unit at @address. */
void lab_quiet(void *fdt);
void lab_set(void *fdt, const char *path, const char *property, uint64_t value);

/* Open one event of the grammar on CPU 0, disabled with @off. Fails the test when it is refused. */
struct quipu_event *lab_open(struct lab *, const char *event, bool off, struct quipu_event *group);
int lab_try(struct lab *, struct quipu_attr, pid_t pid, int cpu, struct quipu_event *group,
	    struct quipu_event **out);
struct quipu_attr lab_attr(struct lab *, const char *pmu, uint64_t config, uint64_t config1,
			   uint64_t config2);
uint64_t lab_count(struct quipu_event *);
/* @n untranslated 64-byte reads of unit @i in a domain that maps nothing: each is one request and
 * one IOTLB miss. */
void lab_requests(struct lab *, unsigned i, unsigned n);
/* Let time pass, with the core's ticks. */
void lab_pass(struct lab *, uint64_t ns);

#endif
