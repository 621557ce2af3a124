/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine of the RTAS sheet's cases: its partitions 1 (with authority) and 2 (without), a plan
 * of delays that is empty unless a case says otherwise, work areas that are destroyed by every
 * failed call; and calls made as a partition's processor makes them, cell by cell.
 */
#ifndef QUIPU_TESTS_LPAR_BED_H
#define QUIPU_TESTS_LPAR_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <quipu/bits.h>
#include <quipu/lpar.h>

#define TOKEN	0x2100u
#define ARGS	UINT64_C(0x0d000000)
#define WORK	UINT64_C(0x0e000000)
#define RMA	UINT64_C(0x10000000)
#define ENTER	UINT64_C(0xa01f40) /* in qhv_h_enter */
#define PREEMPT UINT64_C(0xa03d10) /* in qhv_vp_preempt */
#define INVALID "INVALID ADDRESS"
#define CANARY	0x5c

struct bed {
	void *fdt; /* with room for changes, until bed_start */
	struct quipu_machine *machine;
	struct quipu_notes notes;
	struct quipu_lpar *lpar;
	struct quipu_partition *p, *other;
	uint64_t ns; /* the machine's time */
};

/* bed_tree - the tree of machine lpar, to be changed. bed_start - the firmware on it. */
void bed_tree(struct bed *);
void bed_start(struct bed *);
void bed_open(struct bed *);
void bed_stop(struct bed *);
/* The path of a node below quipu,hypervisor ("partitions/partition@1"), for libfdt. */
int bed_node(struct bed *, const char *path);

struct rets {
	int32_t status;
	uint32_t next;
};

/* One call of processor @cpu (each has an argument buffer of its own). */
struct rets bed_call(struct quipu_partition *, unsigned cpu, uint32_t subfunction, uint64_t work,
		     uint32_t size, uint32_t number);
/* Store the address, then make a good call with a work area of 4096 bytes of @cpu's own. */
struct rets bed_lookup(struct quipu_partition *, unsigned cpu, uint64_t iar, uint32_t number);
uint64_t bed_work(unsigned cpu);
void bed_put(struct quipu_partition *, uint64_t ra, uint64_t value);
uint64_t bed_get(struct quipu_partition *, uint64_t ra);
/* The work area says offset and name. */
void bed_says(struct quipu_partition *, uint64_t work, uint64_t offset, const char *name);
void bed_is(struct rets, int32_t status, uint32_t next);
#define SAYS(s, n, call) bed_is(call, s, n)

#endif
