/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the system call and its relatives answer, step by step, on standard output: "name: got, want
 * answer". The steps use software events alone, so that the host's kernel can be asked the same;
 * answers.py compares. What a step is called begins with the number of its case (perf ABI sheet
 * D6).
 */
#ifndef TEST_PERF_ABI_ANSWERS_H
#define TEST_PERF_ABI_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "quipu/attr.h"

#define PAGE 4096u

/* ---- one step ---- */

void answer_number(const char *step, long long got, long long want);
void answer_errno(const char *step, long rc, int want); /* 0: it succeeds */
void answer_truth(const char *step, bool got);		/* wanted: true */
void answer_poll(const char *step, int got, int want);

/* ---- events of the calling thread ---- */

struct times {
	uint64_t value, enabled, running;
};

struct quipu_attr soft(uint64_t config, uint64_t flags); /* user mode, both times */
struct quipu_attr clock_samples(uint64_t period, uint64_t type, uint64_t flags);
int open_event(const struct quipu_attr *a, pid_t pid, int cpu, int group, unsigned long flags);
int must_open(struct quipu_attr a, int group); /* of the caller; ends the program if refused */
struct times times_of(int fd);
int poll_of(int fd);

/* The calling thread's CPU time passes, in user mode. */
void burn(unsigned ms);
uint64_t thread_ns(void);

/* ---- a child that does as it is told ---- */

struct child {
	pid_t pid;
	int go, done;
};

/* Runs words of @plan at each step(): 'b' burns 10 ms, 'f' an exec that fails, 'e' an exec of this
 * program, 'c' a child of its own that burns 10 ms, 'n' another name; 'q' ends it. */
struct child start_child(void);
bool step(struct child *c, char what);
void end_child(struct child *c);
int child_main(int go, int done);

/* ---- rings ---- */

struct ring {
	uint8_t *mem;
	size_t size; /* of the data */
};

struct ring map_ring(int fd, unsigned pages, bool writable);
void unmap_ring(struct ring *r);
uint64_t ring_head(const struct ring *r);
uint64_t ring_tail(const struct ring *r);
void ring_skip(const struct ring *r); /* everything is read */
/* The next record, copied out; false: none. */
bool ring_next(const struct ring *r, uint8_t record[65536]);

void answers_of_order(void);
void answers_of_rings(void);
void answers_of_records(void);

#endif
