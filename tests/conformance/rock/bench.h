// SPDX-License-Identifier: BSD-2-Clause
/*
 * A Rock machine under the event core, fed by hand, for the tests of its driver: the shipped one by
 * signals (bench_open), or the room alone whose chips are told each event (bench_open_records).
 */
#ifndef QUIPU_TESTS_ROCK_BENCH_H
#define QUIPU_TESTS_ROCK_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <quipu/rock.h>
#include <quipu/system.h>

#define PAGES 64u

struct bench {
	struct quipu_machine *machine;
	struct quipu_notes notes;
	struct quipu_manual_signals *manual;
	struct quipu_system *system; /* or, when the chips themselves are wanted: */
	struct quipu_core *core;
	void *room;
	struct quipu_rock *rock;
	struct quipu_task *task[4];
	char trace[16384];
	uint64_t now;
};

void bench_open(struct bench *);
void bench_open_records(struct bench *, bool strict);
void bench_close(struct bench *);
/* NULL: there is none of that name. */
struct quipu_pmu *pmu(struct bench *, const char *name);
/* Task @i runs on @cpu; its pid is 100 + @i. */
void run_task(struct bench *, unsigned i, unsigned cpu);
/* @name NULL: the type is in @a. must_open: fails with the reason. */
int open_event(struct bench *, const char *name, struct quipu_attr a, pid_t pid, int cpu,
	       struct quipu_event *group, struct quipu_event **);
struct quipu_event *must_open(struct bench *, const char *name, struct quipu_attr a, pid_t pid,
			      int cpu);
uint64_t value(struct quipu_event *);
void feed(struct bench *, unsigned cpu, quipu_signal, uint64_t n, uint64_t pc);

#define PLAIN(code)                                                                                \
	{                                                                                          \
		.config = (code), .flags = QUIPU_ATTR_EXCLUDE_KERNEL                               \
	}
#define TXN(code, mask)                                                                            \
	{                                                                                          \
		.config = (code) | (mask) << 16                                                    \
	}
#define SYN(code, g, s)                                                                            \
	{                                                                                          \
		.config = (code), .config1 = UINT64_C(1) << 31 | (g) << 12 | (s)                   \
	}

/* ---- a buffer ---- */

struct ring {
	struct quipu_event *e;
	uint8_t mem[(1 + PAGES) * 4096] __attribute__((aligned(8)));
	uint64_t at;
	uint16_t misc; /* of the sample that was looked at last */
};

struct ring *map(struct quipu_event *);
/* The next sample's first @n words; misc of its header is in the ring. False: there is none. */
bool next_sample(struct ring *, uint64_t *words, unsigned n);

#endif
