/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A core that runs ahead of its misses (Sun Rock), as a label on each instruction: what became of
 * it, in which mode of speculation, and which transactions of the level-2 cache it made. Rock
 * sheet section 10; Chaudhry et al., "Simultaneous Speculative Threading", ISCA 2009, for what a
 * checkpoint, the deferred queue and a scout are. Pure.
 *
 * One pass in program order, nothing is executed twice, and nothing here changes a cache or a
 * cycle: the labels are a model beside the models. The strands of a core share the store buffer and
 * the deferred queue; each has a clock of its own, so what the other one holds is told now and then
 * (ahead_other), for a number of cycles. Whether another strand has written what was read ahead is
 * looked at now and then, too. Left out: that a strand which waits falls behind.
 */
#ifndef QUIPU_MODEL_AHEAD_H
#define QUIPU_MODEL_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/signal.h>

#define AHEAD_REGISTERS 128u /* numbers of registers; 0 is none */
#define AHEAD_SOURCES	3u
#define AHEAD_FILLS	16u   /* lines on their way: the load buffer */
#define AHEAD_STORES	32u   /* the store buffer */
#define AHEAD_DEFERRED	64u   /* the deferred queue */
#define AHEAD_FAILURES	8u    /* of one checkpoint in a row, then it is not speculated on */
#define AHEAD_LINE	6u    /* log2 of the bytes of a line */
#define AHEAD_READS	32u   /* lines that a window read and that are watched */
#define AHEAD_BLOCKED	1024u /* cycles for which the other strand keeps this one from a slot */

/* What an instruction reads and writes, by register number; 0: nothing. */
struct ahead_operands {
	uint8_t dest;
	uint8_t source[AHEAD_SOURCES];
	uint8_t window; /* enum ahead_window: it moves the register window */
};
enum ahead_window { AHEAD_STAY = 0, AHEAD_SAVE, AHEAD_RESTORE };

/* Numbers of SPARC's registers: r0 is none, r1 to r31, f0 to f62 by halves, the condition codes. */
#define AHEAD_R(n) (n)
#define AHEAD_F(n) (32u + (n))
#define AHEAD_CC   100u

/* One instruction as it was executed. */
struct ahead_insn {
	uint64_t pc, addr; /* addr: of its first access, 0: none */
	uint64_t written;  /* of the line of a load: ahead_overtaken */
	uint64_t cycle;	   /* at its completion, without what a miss loses */
	uint32_t events;   /* enum quipu_insn_event: its misses, and how its transfer ended */
	uint32_t fetch;	   /* ... those of its own fetch */
	uint8_t class;	   /* enum quipu_insn_class */
	uint8_t bytes;	   /* of the access */
	bool stalled;	   /* the front end waited before it */
	bool flush;	   /* it takes a line out of the instruction caches */
	bool barrier;	   /* it waits for all before it */
	bool trap;	   /* it calls the system */
	struct ahead_operands operands;
};

/* Cycles until a fill returns. */
struct ahead_times {
	uint32_t hit, l2, l3, memory, walk;
};

struct ahead_fill {
	uint64_t line, ready;
};

struct ahead_store {
	uint64_t addr, done;
	uint8_t bytes;
};

/* What a strand holds of its core's buffers, and for how many more cycles. */
struct ahead_held {
	uint16_t store_cycles, deferred_cycles;
	uint8_t stores, deferred;
};

/* Which slot a strand waits for. */
enum ahead_wait { AHEAD_FOR_NONE = 0, AHEAD_FOR_STORE, AHEAD_FOR_DEFERRED };

enum ahead_state { AHEAD_NONE = 0, AHEAD_WAITING, AHEAD_CHECKPOINT, AHEAD_SCOUT };

/* A line that was read while the core ran ahead, and whose write it had seen last. */
struct ahead_read {
	uint64_t line, written;
};

struct ahead {
	struct ahead_times times;
	uint8_t state;	  /* enum ahead_state */
	bool failed;	  /* a deferred branch went the other way */
	uint64_t until;	  /* the fill returns */
	uint64_t pc;	  /* of the checkpoint */
	unsigned waiting; /* in the deferred queue */
	uint64_t missing[AHEAD_REGISTERS / 64];
	struct ahead_read read[AHEAD_READS]; /* since the checkpoint */
	unsigned nreads;
	uint64_t failed_pc; /* the checkpoint that failed last, */
	unsigned failures;  /* and how often in a row */
	struct ahead_fill fill[AHEAD_FILLS];
	unsigned nfills;
	struct ahead_store store[AHEAD_STORES];
	unsigned nstores;
	uint64_t drained;	 /* when the last store in the buffer is in the cache */
	struct ahead_held other; /* what the core's other strand held ... */
	uint64_t told;		 /* ... then */
	uint64_t since;		 /* when the wait began */
	uint8_t wait;		 /* enum ahead_wait */
};

/* What came of it. */
struct ahead_label {
	uint32_t events; /* those of the instruction and what the core adds */
	uint16_t latency;
	uint8_t mode; /* enum quipu_insn_mode */
	bool yanked;  /* speculation was ended from outside */
	bool blocked; /* it waits for a slot of the other strand, and has done so for long */
	bool livelock;
	/* Its transactions, in order, and how far each went. */
	uint8_t ntransactions;
	struct {
		uint8_t kind; /* enum quipu_transaction */
		uint32_t events;
	} transaction[6];
};

void ahead_init(struct ahead *, const struct ahead_times *);
/* ahead_step - the next instruction of the strand. */
void ahead_step(struct ahead *, const struct ahead_insn *, struct ahead_label *);
/* ahead_yank - an interrupt or signal takes the strand elsewhere. True: it was speculating. */
bool ahead_yank(struct ahead *);
/*
 * ahead_overtaken - has another strand written a line that was read since the checkpoint? Then the
 * speculation ends: true. @written tells which write of another strand to @line was the last, as
 * any number that no other write to it has; 0: none that is known.
 */
bool ahead_overtaken(struct ahead *, uint64_t (*written)(void *arg, uint64_t line), void *arg);
/* ahead_holds - what the strand holds at @now; ahead_other - from @now on the other strand of its
 * core holds this. Both clocks are those of the strand that is named. */
void ahead_holds(const struct ahead *, uint64_t now, struct ahead_held *);
void ahead_other(struct ahead *, uint64_t now, const struct ahead_held *);

#endif
