/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines made in code with libfdt, their harts, and a source of signals fed by hand: what every
 * test of the room needs.
 */
#ifndef TESTS_RISCV_HARNESS_H
#define TESTS_RISCV_HARNESS_H

#include <quipu/event.h>
#include <quipu/machine.h>
#include <quipu/riscv.h>

#define HARNESS_CELLS 64

/* A tree. Zero-initialised members take what hart16 of the sheet has. */
struct tree {
	const char *extensions; /* after rv64imafdc_: "sscofpmf"; NULL: that */
	uint32_t mask;		/* quipu,hpm-mask; 0: 0x7fff8 (counters 3 to 18) */
	uint32_t width;		/* 0: 64 */
	unsigned harts;		/* 0: 1 */
	const char *pmu;	/* compatible of the pmu node; NULL: "riscv,pmu"; "": no node */
	bool legacy_node;	/* the node has device_type "pmu" */
	uint32_t ranges[HARNESS_CELLS], raws[HARNESS_CELLS], aliases[HARNESS_CELLS];
	int nranges, nraws, naliases; /* cells; 0 ranges: QEMU's rows; -1: no such property */
	const char *strings[8][2];    /* machine properties: name, value ("" for a flag) */
	struct {
		const char *name;
		uint32_t value;
	} numbers[4];
};

struct harness {
	struct quipu_machine *machine;
	struct quipu_manual_signals *manual;
	struct quipu_signals *signals;
	struct quipu_riscv *rv;
	struct quipu_notes notes;
	unsigned interrupts; /* taken */
	bool keep_pending;   /* the handler does not clear sip */
};

struct quipu_machine *tree_machine(const struct tree *, struct quipu_notes *);
void harness_open(struct harness *, const struct tree *);
void harness_close(struct harness *);
/* Is there a note of kind WRONG whose path and text contain these? */
bool harness_wrong(const struct quipu_notes *, const char *path, const char *text);

/* The same machine as a whole: room, driver, event core. */
struct bench {
	struct quipu_machine *machine;
	struct quipu_manual_signals *manual;
	struct quipu_signals *signals;
	struct quipu_core *core;
	struct quipu_notes notes;
	void *room;
	struct quipu_riscv *rv;
	struct quipu_pmu *pmu; /* "cpu" */
	char *trace;	       /* lines of ecalls since the last bench_trace_clear */
	size_t trace_len;
};
void bench_open(struct bench *, const struct tree *, const quipu_signal *hidden);
void bench_close(struct bench *);
void bench_trace_clear(struct bench *);
/* One event on CPU 0, or the errno. */
int bench_event(struct bench *, const struct quipu_attr *, struct quipu_event *group,
		struct quipu_event **);
uint64_t bench_value(struct quipu_event *);
void bench_feed(struct bench *, quipu_signal, uint64_t n, uint64_t pc);

#endif
