/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals: what an engine counts, and what a PMU's hardware turns into counters.
 *
 * A signal is a monotone 64-bit count kept for each modelled CPU: instructions retired, loads,
 * calls, misses of a cache ... An engine (QEMU plugin, replayed trace, a test) publishes signals
 * and knows nothing of PMUs; the hardware floor of a platform turns differences of signals into
 * counter values and arms deadlines ("stop at the instruction where signal S of CPU c reaches N").
 * doc/architecture.md, "Signals and deadlines".
 */
#ifndef QUIPU_SIGNAL_H
#define QUIPU_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/reload.h>

/*
 * A signal is either one of the named ones below or a set of instruction classes (bit 63 set,
 * classes in bits 0..55): it then counts the retired instructions whose class is in the set, at
 * most one per instruction.
 */
typedef uint64_t quipu_signal;

enum quipu_named_signal {
	QUIPU_SIGNAL_NONE = 0,
	/* architectural: exact */
	QUIPU_SIGNAL_INSTRUCTIONS, /* retired; riscv64 ecall/ebreak do not retire */
	QUIPU_SIGNAL_LOADS,
	QUIPU_SIGNAL_STORES,
	QUIPU_SIGNAL_BRANCHES, /* every control transfer: conditional, jump, call, return, indirect
				*/
	QUIPU_SIGNAL_BRANCHES_TAKEN, /* of those, the ones that went elsewhere than the next
					instruction */
	QUIPU_SIGNAL_CALLS,
	QUIPU_SIGNAL_RETURNS,
	QUIPU_SIGNAL_SYSCALLS,
	/* modelled: from the declared cost model */
	QUIPU_SIGNAL_CYCLES,
	QUIPU_SIGNAL_REF_CYCLES, /* cycles of the fixed reference clock while the CPU runs */
	QUIPU_SIGNAL_BUS_CYCLES, /* cycles of the fixed bus clock, always */
	/* modelled: caches, TLBs, branch predictor (src/model) */
	QUIPU_SIGNAL_BRANCH_MISSES, /* direction or target mispredicted */
	QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES,
	QUIPU_SIGNAL_BRANCH_TARGET_MISSES,
	QUIPU_SIGNAL_RETURN_MISSES,
	QUIPU_SIGNAL_L1I_ACCESSES,
	QUIPU_SIGNAL_L1I_MISSES,
	QUIPU_SIGNAL_L1D_READS,
	QUIPU_SIGNAL_L1D_READ_MISSES,
	QUIPU_SIGNAL_L1D_WRITES,
	QUIPU_SIGNAL_L1D_WRITE_MISSES,
	QUIPU_SIGNAL_L1D_PREFETCHES,
	QUIPU_SIGNAL_L1D_PREFETCH_MISSES,
	QUIPU_SIGNAL_L1D_WRITEBACKS,
	QUIPU_SIGNAL_L2_READS,
	QUIPU_SIGNAL_L2_READ_MISSES,
	QUIPU_SIGNAL_L2_WRITES,
	QUIPU_SIGNAL_L2_WRITE_MISSES,
	QUIPU_SIGNAL_LL_READS,
	QUIPU_SIGNAL_LL_READ_MISSES,
	QUIPU_SIGNAL_LL_WRITES,
	QUIPU_SIGNAL_LL_WRITE_MISSES,
	QUIPU_SIGNAL_LL_PREFETCHES,
	QUIPU_SIGNAL_LL_PREFETCH_MISSES,
	QUIPU_SIGNAL_ITLB_ACCESSES,
	QUIPU_SIGNAL_ITLB_MISSES,
	QUIPU_SIGNAL_DTLB_READS,
	QUIPU_SIGNAL_DTLB_READ_MISSES,
	QUIPU_SIGNAL_DTLB_WRITES,
	QUIPU_SIGNAL_DTLB_WRITE_MISSES,
	QUIPU_SIGNAL_STLB_ACCESSES,
	QUIPU_SIGNAL_STLB_MISSES,
	QUIPU_SIGNAL_MEM_READ_LINES,
	QUIPU_SIGNAL_MEM_WRITE_LINES,
	/* what served the loads, and the instruction fetches, that level 1 missed */
	QUIPU_SIGNAL_LOADS_FROM_L2,
	QUIPU_SIGNAL_LOADS_BEYOND_L2,
	QUIPU_SIGNAL_LOADS_FROM_L3,
	QUIPU_SIGNAL_LOADS_FROM_MEMORY,
	QUIPU_SIGNAL_FETCHES_FROM_L2,
	QUIPU_SIGNAL_FETCHES_FROM_L3,
	QUIPU_SIGNAL_FETCHES_FROM_MEMORY,
	QUIPU_SIGNAL_DTLB_MISSES, /* of the first level, reads and writes */
	QUIPU_SIGNAL_DATA_WALKS,  /* translations of data that no TLB has, */
	QUIPU_SIGNAL_FETCH_WALKS, /* and of instructions */
	QUIPU_SIGNAL_WALKS,	  /* both */
	/* lines of memory by the port that their address lies behind (quipu_model.ports) */
	QUIPU_SIGNAL_PORT_READ_LINES, /* of port 0; port p: p more */
	QUIPU_SIGNAL_PORT_WRITE_LINES = QUIPU_SIGNAL_PORT_READ_LINES + 8,
	QUIPU_SIGNAL_PAIR_READ_LINES = QUIPU_SIGNAL_PORT_WRITE_LINES + 8, /* of ports 0 and 1; pair
									     p: p more */
	QUIPU_SIGNAL_PAIR_WRITE_LINES = QUIPU_SIGNAL_PAIR_READ_LINES + 4,
	QUIPU_SIGNAL_PAIR_LAST = QUIPU_SIGNAL_PAIR_WRITE_LINES + 3,
	/* instructions that load, or store, counted where they access: an interrupt of one tells
	 * the address and how far the access went */
	QUIPU_SIGNAL_MARKED_LOADS,
	QUIPU_SIGNAL_MARKED_STORES,
	QUIPU_SIGNAL_STALL_FRONTEND,
	QUIPU_SIGNAL_STALL_BACKEND,
	QUIPU_SIGNAL_UNALIGNED,
	QUIPU_SIGNAL_EXCEPTIONS,
	QUIPU_SIGNAL_INTERRUPTS,
	/* modelled: a core that runs ahead of its misses (src/model/ahead.h), sparc64 */
	QUIPU_SIGNAL_LABELLED, /* instructions; an interrupt of it tells what became of its own */
	QUIPU_SIGNAL_YANKS,    /* speculation that was ended from outside */
	QUIPU_SIGNAL_SIBLING_BLOCKS,  /* long waits for what the core's other strand holds */
	QUIPU_SIGNAL_LIVELOCKS,	      /* a checkpoint that failed too often */
	QUIPU_SIGNAL_L2_TRANSACTIONS, /* of the level-2 cache; an interrupt of it tells which */
	QUIPU_SIGNAL_L2_TRANSACTION,  /* of the kinds alone: + enum quipu_transaction, 1 to 7 */
	QUIPU_SIGNAL_L2_TRANSACTION_LAST = QUIPU_SIGNAL_L2_TRANSACTION + 7,
	/* architectural: bytes that system calls moved, by their results; exact */
	QUIPU_SIGNAL_BYTES_READ, /* read and its relatives, of whatever file */
	QUIPU_SIGNAL_BYTES_WRITTEN,
	QUIPU_SIGNAL_BYTES_SENT, /* sendto, sendmsg */
	QUIPU_SIGNAL_BYTES_RECEIVED,
	QUIPU_NAMED_SIGNALS
};

/* Instruction classes. Every instruction has exactly one; compressed forms take the class of their
 * expansion. */
enum quipu_insn_class {
	QUIPU_INSN_ALU = 0,
	QUIPU_INSN_MUL,
	QUIPU_INSN_DIV,
	QUIPU_INSN_LOAD,  /* integer load */
	QUIPU_INSN_STORE, /* integer store */
	QUIPU_INSN_AMO,	  /* atomic read-modify-write: one load and one store */
	QUIPU_INSN_LR,	  /* load reserved: a load */
	QUIPU_INSN_SC,	  /* store conditional: a store */
	QUIPU_INSN_FLOAD,
	QUIPU_INSN_FSTORE,
	QUIPU_INSN_FADD,
	QUIPU_INSN_FMUL,
	QUIPU_INSN_FMA,
	QUIPU_INSN_FDIV, /* division and square root */
	QUIPU_INSN_FOTHER,
	QUIPU_INSN_VECTOR,
	QUIPU_INSN_BRANCH, /* conditional branch */
	QUIPU_INSN_JUMP,   /* direct, not linking */
	QUIPU_INSN_CALL,   /* direct, linking */
	QUIPU_INSN_IJUMP,  /* indirect, not linking, not a return */
	QUIPU_INSN_ICALL,  /* indirect, linking */
	QUIPU_INSN_RET,
	QUIPU_INSN_CRET, /* conditional return (ppc64le) */
	QUIPU_INSN_CSR,
	QUIPU_INSN_FENCE,
	QUIPU_INSN_SYSTEM, /* other system instructions that retire */
	QUIPU_INSN_TRAP, /* raises a synchronous trap and does not retire: riscv64 ecall, ebreak */
	QUIPU_INSN_CLASSES
};

#define QUIPU_CLASS_BIT(c)    (UINT64_C(1) << (c))
#define QUIPU_SIGNAL_CLASSES  (UINT64_C(1) << 63)
/* The signal that counts retired instructions of the classes in @mask. */
#define QUIPU_SIGNAL_OF(mask) (QUIPU_SIGNAL_CLASSES | (mask))

/* What a number is; shown beside it wherever a user sees it. */
enum quipu_exactness {
	QUIPU_EXACT,	/* architectural, right to the unit */
	QUIPU_MODELLED, /* from a declared model */
	QUIPU_HOST,	/* read from the host's kernel */
};

/*
 * A deadline: what must happen when @signal of a CPU reaches @at.
 * A hardware floor arms it; @slot names it (one per counter, chosen by the floor; see
 * quipu_signals_ops).
 */
struct quipu_deadline {
	quipu_signal signal;
	uint64_t at;	   /* absolute value of the signal on that CPU */
	uint32_t overflow; /* enum quipu_overflow_kind: how the engine process may serve it by
			      itself */
	uint32_t flags;	   /* QUIPU_DEADLINE_* */
	/* QUIPU_OVERFLOW_STEADY: this is the @turn-th of deadlines that lie ceil(turn * @step /
	 * @per) behind one start. */
	uint64_t step, per, turn;
};

enum quipu_overflow_kind {
	QUIPU_OVERFLOW_BELL = 0, /* the program waits while the machine serves it */
	QUIPU_OVERFLOW_RISCV,	 /* src/platform/riscv/overflow.c */
	QUIPU_OVERFLOW_RELOAD,	 /* quipu_reload_overflow */
	QUIPU_OVERFLOW_STEADY,	 /* quipu_reload_steady: repeats by itself, no event of a driver
				    behind it */
	QUIPU_OVERFLOW_TICK,	 /* the core's tick, quipu_reload_tick of every frequency event */
};

#define QUIPU_DEADLINE_TIMER 1u /* not a counter: the core's tick, rotation or an interval */

/* Slots of one CPU: 0..47 belong to the hardware floor, the rest to the machine. */
#define QUIPU_SLOTS	     64
#define QUIPU_SLOTS_HARDWARE 48
#define QUIPU_SLOT_TICK	     48
#define QUIPU_SLOT_INTERVAL  49
#define QUIPU_SLOT_ACTIVITY  50 /* no deadline: enum quipu_activity of quipu/platform.h */

struct quipu_signals;

/* A source of signals, implemented by an engine (src/engine) or by a test
 * (quipu_manual_signals_new). */
struct quipu_signals_ops {
	/* Does this engine, as it is configured, count @signal? */
	bool (*has)(struct quipu_signals *, quipu_signal signal);
	/* The value of @signal on @cpu at this moment of model time (while an interrupt is served:
	 * at its instruction). */
	uint64_t (*read)(struct quipu_signals *, unsigned cpu, quipu_signal signal);
	/* Arm or re-arm the deadline @slot of @cpu. The overflow arrives through the hook of
	 * quipu_signals.interrupt. */
	void (*arm)(struct quipu_signals *, unsigned cpu, unsigned slot,
		    const struct quipu_deadline *);
	void (*disarm)(struct quipu_signals *, unsigned cpu, unsigned slot);
	/*
	 * An event that is open needs @signal: told before the program starts, so that the engine
	 * carries no more than it must. NULL: everything is counted anyway. 0, or -ENOSPC: more
	 * signals than the engine counts at once.
	 */
	int (*want)(struct quipu_signals *, quipu_signal signal);
};

/* What is known of what an instruction did (quipu_insn.events). */
enum quipu_insn_event {
	QUIPU_INSN_READS = 1u << 0,  /* it loads, */
	QUIPU_INSN_WRITES = 1u << 1, /* or stores, beside what its class says (x86-64) */
	/* The miss that the signal counted, and how far it went: */
	QUIPU_INSN_FETCH_MISS = 1u << 2, /* of its own fetch, not of what it accesses */
	QUIPU_INSN_L1_MISS = 1u << 3,
	QUIPU_INSN_L2_MISS = 1u << 4, /* and of the last level, where that is level 2 */
	QUIPU_INSN_LL_MISS = 1u << 5, /* memory served it */
	QUIPU_INSN_TLB_MISS = 1u << 6,
	QUIPU_INSN_STLB_MISS = 1u << 7, /* its translation needed a walk */
	/* Of a transfer of control: */
	QUIPU_INSN_RESOLVED = 1u << 8, /* the following are known */
	QUIPU_INSN_TAKEN = 1u << 9,
	QUIPU_INSN_MISPREDICTED = 1u << 10,
	/* Of a core that runs ahead: */
	QUIPU_INSN_PRIOR_MISS = 1u << 11,    /* its line was on its way already */
	QUIPU_INSN_LOADS_FULL = 1u << 12,    /* it found the load buffer full, */
	QUIPU_INSN_STORES_FULL = 1u << 13,   /* the store buffer */
	QUIPU_INSN_STALLED = 1u << 14,	     /* the front end waited before it */
	QUIPU_INSN_FROM_QUEUE = 1u << 15,    /* deferred, executed from the queue */
	QUIPU_INSN_BYPASS = 1u << 16,	     /* a store in the buffer served it */
	QUIPU_INSN_NO_BYPASS = 1u << 17,     /* ... has only a part of what it loads */
	QUIPU_INSN_STORE_PENDING = 1u << 18, /* ... is of the same line */
	QUIPU_INSN_FAILED = 1u << 19,	     /* in speculation that failed */
};

/* In what mode a core that runs ahead executed an instruction. */
enum quipu_insn_mode {
	QUIPU_MODE_NORMAL = 0,
	QUIPU_MODE_OUT_OF_ORDER,
	QUIPU_MODE_AHEAD,
	QUIPU_MODE_DELAYED,
	QUIPU_MODE_DEFERRED,
	QUIPU_MODE_SCOUT,
};

/* What an instruction asked of the level-2 cache. */
enum quipu_transaction {
	QUIPU_TRANSACTION_NONE = 0,
	QUIPU_TRANSACTION_FETCH,
	QUIPU_TRANSACTION_LOAD,
	QUIPU_TRANSACTION_FETCH_PREFETCH,
	QUIPU_TRANSACTION_STORE_PREFETCH,
	QUIPU_TRANSACTION_STORE,
	QUIPU_TRANSACTION_ATOMIC,
	QUIPU_TRANSACTION_FLUSH,
	QUIPU_TRANSACTIONS
};

/* An instruction as the engine decoded it. @size 0: nothing is known of it, and all is 0. */
struct quipu_insn {
	/* Where control goes on, when resolved behind its delay slot; 0: not known yet. */
	uint64_t next;
	uint32_t events; /* enum quipu_insn_event */
	uint8_t class;	 /* enum quipu_insn_class */
	uint8_t size;	 /* bytes */
	/* Told by interrupts of QUIPU_SIGNAL_LABELLED and _L2_TRANSACTIONS only: */
	uint8_t mode;	     /* enum quipu_insn_mode */
	uint8_t transaction; /* enum quipu_transaction: what reached the deadline */
	uint16_t latency;    /* cycles until its result, 0: not known */
	uint8_t pad[6];
};

/* Registers of user space: bits of the architecture's perf_regs.h, and their values in that order.
 */
struct quipu_user_regs {
	uint64_t known;
	const uint64_t *value;
};

/* What the engine knows of the moment of an overflow. */
struct quipu_interrupt {
	unsigned cpu;
	uint64_t slots;		/* bit s: the deadline of slot s was reached at this instruction */
	uint64_t pc;		/* the instruction that made the signal reach its value (skid 0) */
	uint64_t addr;		/* data address, 0 when unknown */
	struct quipu_insn insn; /* the instruction at pc */
	uint32_t pid, tid;
	const uint64_t *chain; /* call sites, innermost first, without pc; NULL when not recorded */
	size_t nr_chain;
	const uint64_t *branches; /* branch stack: triples from, to, flags (perf ABI), newest first;
				     NULL when not recorded */
	size_t nr_branches;
	struct quipu_user_regs
		user; /* with which the instruction at pc began; none when not recorded */
};

struct quipu_signals {
	const struct quipu_signals_ops *ops;
	/* Set by the machine: an armed deadline was reached. The hardware floor of every platform
	 * is called through it. */
	void (*interrupt)(void *arg, const struct quipu_interrupt *);
	void *arg;
};

/*
 * quipu_signal_name - the name of a signal in lower case with dashes ("l1d-read-misses"); a class
 * set gives "classes:0x...". Returns a static string for named signals, else a string in @buf (@len
 * >= 32).
 */
const char *quipu_signal_name(quipu_signal signal, char *buf, size_t len);

/* quipu_signal_exactness - QUIPU_EXACT for architectural signals and class sets, QUIPU_MODELLED for
 * the rest. */
enum quipu_exactness quipu_signal_exactness(quipu_signal signal);

/*
 * quipu_signal_mask - the instruction classes that @signal counts on a machine whose every
 * instruction has one class (riscv64, ppc64le, sparc64), or 0 for a signal that is no sum of
 * classes (cycles, taken branches, misses, calls to the system).
 */
uint64_t quipu_signal_mask(quipu_signal signal);

/* quipu_exactness_name - "exact", "modelled" or "host". */
const char *quipu_exactness_name(enum quipu_exactness);

/*
 * A source fed by hand: for tests, examples, and for someone else's emulator.
 *
 * quipu_manual_signals_new - @ncpus CPUs, all signals 0, every signal present. NULL when out of
 * memory.
 * quipu_manual_signals_base - the source to hand to a hardware floor; owned by the manual
 * source.
 * quipu_manual_signals_feed - @n occurrences of @signal happen on @cpu at @pc. Where an armed
 * deadline lies inside, the feed stops there exactly, delivers the interrupt, and goes on with
 * the rest.
 * quipu_manual_signals_set_has - hide (or show again) a signal, as an engine without that model
 * would.
 */
struct quipu_manual_signals;
struct quipu_manual_signals *quipu_manual_signals_new(unsigned ncpus);
void quipu_manual_signals_free(struct quipu_manual_signals *);
struct quipu_signals *quipu_manual_signals_base(struct quipu_manual_signals *);
void quipu_manual_signals_feed(struct quipu_manual_signals *, unsigned cpu, quipu_signal signal,
			       uint64_t n, uint64_t pc);
void quipu_manual_signals_set_has(struct quipu_manual_signals *, quipu_signal signal, bool has);

#endif
