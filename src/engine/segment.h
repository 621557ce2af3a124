/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The segment: the one piece of memory that the machine (the quipu process) and the engine
 * processes (QEMU with the plugin) share. One sparse memfd: a header, then QUIPU_SLOTS_PROC process
 * slots. doc/architecture.md "The segment"; engine sheet 6.1-6.4, 11.2.
 *
 * Writers: every word has one. M = written by the machine, V = by the vCPU's own thread (M too
 * while that thread waits in a bell or has not run yet), P = by the engine process at install or
 * fork. Compiled into both sides: no pointer in it, natural alignment, little-endian host.
 */
#ifndef QUIPU_ENGINE_SEGMENT_H
#define QUIPU_ENGINE_SEGMENT_H

#include <stdint.h>

#include <quipu/model.h>
#include <quipu/reload.h>
#include <quipu/signal.h>

#define SEG_MAGIC   UINT64_C(0x3175706975716567) /* "gequipu1" */
#define SEG_VERSION 7u

#define SEG_PROCS      64u  /* process slots */
#define SEG_VCPUS      256u /* guest threads of a process that can be counted */
#define SEG_LANES      8u
#define SEG_SCALARS    16u
#define SEG_RING_BYTES (1u << 20)
#define SEG_PATH       512u
#define SEG_REGS_MOST  48u /* user registers of a record */

enum seg_lane { SEG_LANE_INSTRUCTIONS = 0, SEG_LANE_CYCLES = 1 };

/* What is compiled into the translated code (header.features; seg_proc.features). */
enum seg_feature {
	SEG_COUNT = 1u << 0,   /* lanes 0 and 1, and the other lanes as header.lane_signal says */
	SEG_BRANCH = 1u << 1,  /* outcome of branches: taken, abort detection */
	SEG_STACK = 1u << 2,   /* shadow call stack */
	SEG_DATA = 1u << 3,    /* data side: access callbacks, caches, TLBs */
	SEG_PREDICT = 1u << 4, /* branch predictor; with SEG_BRANCH */
	SEG_FETCH = 1u << 5,   /* instruction side: caches, TLBs; with SEG_BRANCH */
	SEG_EMPTY = 1u << 6,   /* without SEG_COUNT: nothing is counted; an empty block callback
				  that sees a request */
	SEG_BRANCHES =
		1u << 7, /* the last branches of each vCPU, for branch stacks; with SEG_BRANCH */
	SEG_LABEL = 1u << 8, /* what became of each instruction (model/ahead.h); with all models */
	SEG_PAGES = 1u << 9, /* first accesses of pages are told (header.watches) */
	SEG_REGS = 1u << 10, /* the guest's registers are in records (header.regs): each instruction
				is a block */
};

struct seg_header {
	uint64_t magic;
	uint32_t version;
	uint32_t machine_pid; /* M */
	uint64_t size;
	uint32_t closing;  /* M: no one waits any more */
	uint32_t features; /* M: enum seg_feature */
	uint32_t ncpus;
	uint32_t quantum;		     /* most a lane may grow between two folds */
	uint64_t hz;			     /* cycles a second of the modelled CPUs */
	quipu_signal lane_signal[SEG_LANES]; /* [0], [1] fixed; QUIPU_SIGNAL_NONE: unused */
	quipu_signal
		scalar_signal[SEG_SCALARS]; /* further signals, 64-bit counters at their cost */
	uint16_t cost[QUIPU_INSN_CLASSES];  /* cycles of an instruction class, 1..63 */
	struct quipu_model model; /* of caches, TLBs, branches; which of it runs is in features */
	uint16_t local;	    /* 1: overflows are served in the engine process; 0: every one rings the
			       bell */
	uint16_t max_stack; /* most call sites in a record */
	uint32_t exact; /* exact mode: the producer waits when its ring is full; else it drops and
			   counts */
	uint32_t spin;	/* pauses before a waiter sleeps */
	uint32_t house; /* M: others than the machine wait for the end of programs: they ring before
			   it */
	uint32_t watches; /* M: bit of each enum quipu_activity that the machine wants to hear of */
	uint32_t scalars; /* M: bit of each scalar that is counted; the others stand still */
	uint64_t regs;	  /* M: user registers that are asked for, bits of perf_regs.h */
	char regs_isa[16];  /* of the instruction set whose they are */
	uint32_t unslotted; /* processes that found no slot and run uncounted (any writer, atomic
			       add) */
	char sysroot[SEG_PATH];	 /* -L of the program, "" if none */
	char plugin[SEG_PATH];	 /* path of the plugin, for execve */
	char qemu_dir[SEG_PATH]; /* where qemu-<isa> lies */

	_Alignas(64) uint32_t machine_wake; /* futex of the machine: incremented by whoever rings */
	_Alignas(64) uint32_t machine_asleep; /* M: 1 while it waits on machine_wake */
	_Alignas(64) uint64_t pending;	      /* bit s: slot s rang (any writer, atomic or) */
	_Alignas(64) uint64_t claimed;	      /* bit s: slot s is in use (atomic or) */
	_Alignas(64) uint32_t beat;	      /* M: moves while it lives and lets threads wait */
	uint32_t unheard; /* V: a wait ran out; M clears it when it comes to serve */
	/* M: moves after features, signals or scalars have; processes that run take them over
	 * (qemu/select.c) */
	_Alignas(64) uint32_t selection;
};

/* Why a vCPU rings and waits (seg_bell.reason, bits). */
enum seg_reason {
	SEG_BELL_START = 1u << 0,  /* process: first instruction is about to run (records before it
				      tell of the maps) */
	SEG_BELL_THREAD = 1u << 1, /* this thread's first instruction is about to run; bell.arg: 1:
				      the one that made it has not told, and will not */
	SEG_BELL_CLONE = 1u << 2,  /* this thread is creating vCPU bell.arg; SEG_VCPUS: it forks */
	SEG_BELL_DEADLINE = 1u << 3, /* deadlines reached: bits in bell.slots; record says where */
	SEG_BELL_REQUEST = 1u << 4,  /* the machine asked for it (pub.request) */
	SEG_BELL_RING = 1u << 5,     /* interrupt ring full */
	SEG_BELL_SLEPT = 1u << 6,    /* a timeout of bell.arg ns expired */
	SEG_BELL_FORK =
		1u << 7, /* child of a fork: in its own new slot, bell.arg = parent's slot */
	SEG_BELL_EXIT = 1u << 8,     /* thread exits, final fold done */
	SEG_BELL_EXEC = 1u << 9,     /* process is about to exec; final fold done */
	SEG_BELL_FOREIGN = 1u << 10, /* process is about to exec a program the engine does not
					follow; arg: 1 it runs natively */
	SEG_BELL_LEAVING = 1u << 15, /* process or thread is about to end by itself: whoever waits
					for that sees all of it; arg: 1 the whole process */
	SEG_BELL_TURN = 1u << 16,    /* its CPU was given to another while it was in a system call:
					it waits for its turn */
	SEG_BELL_YIELD = 1u << 17,   /* it lets others run (sched_yield) */
	SEG_BELL_MADE = 1u << 18,    /* the call of SEG_BELL_CLONE has returned; arg: the same, and
					above 32 bits the tid or pid of what was made, 0: nothing */
	SEG_BELL_ORDER = 1u << 19, /* it is about to do what other CPUs must not see too soon; arg:
				      1 it may end threads that run there */
	SEG_BELL_WOKE = 1u << 20,  /* its call may have woken others of its CPU: they come out of
				      theirs before it does more */
};

enum seg_state {
	SEG_FREE = 0,
	SEG_RUNNING,
	SEG_SYSCALL, /* it may sleep there; M may make it SEG_PARKED (compare and swap) */
	SEG_WAITING,
	SEG_DEAD,
	SEG_PARKED,  /* its CPU is another's: it rings SEG_BELL_TURN before it goes on */
	SEG_CALLING, /* in a system call that does not sleep */
};

enum seg_sharing {
	SEG_ALONE = 0,
	SEG_SHARES,	  /* other threads take turns with this one, or may soon */
	SEG_WITH_SLEEPER, /* and one of them sleeps in a system call */
};

/* The deadline at which a thread's turn on its CPU ends: the session's own, on the cycles. */
#define SEG_SLOT_TURN 51u

/* One guest thread. 1 KiB; offsets below 512 are the vCPU thread's alone. */
struct seg_vcpu {
	_Alignas(64) uint16_t acc[SEG_LANES]; /* V: the lanes; a top bit set means a deadline or the
						 quantum was reached */
	uint16_t pre[SEG_LANES]; /* V: acc at the last fold. Count = base + (uint16_t)(acc - pre) */
	uint64_t priv[4]; /* V: the plugin's own hot words (previous block, history, stack top,
			     flags) */
	int64_t base[SEG_LANES]; /* V: at fold only, under seq */
	uint32_t seq;		 /* V: odd while base/acc/pre change together */
	uint32_t state;		 /* V, M: enum seg_state */
	uint32_t tid;		 /* V: 0 until its first instruction */
	uint32_t generation;	 /* V: how many threads have used this index */
	uint32_t parent;	 /* V: vCPU index of the creating thread */
	uint32_t cpu;		 /* M: modelled CPU it stands on */
	uint64_t syscalls;	 /* V */
	uint64_t reserved[4];
	uint64_t scalar[SEG_SCALARS]; /* V: 64-bit signals */
	int64_t nearest[SEG_LANES +
			SEG_SCALARS];  /* V: nearest deadline per signal, INT64_MAX: none */
	_Alignas(64) uint32_t request; /* M: ring at the next fold, please; V clears it */
	uint32_t deadlines_changed;    /* M: while the vCPU waits: it recomputes nearest */
	uint32_t pad[14];
	/* bell: V writes reason.. then bell (release); M serves and writes ack = bell (release) */
	_Alignas(64) uint32_t bell;
	uint32_t reason;
	uint64_t arg;
	uint64_t slots;
	uint64_t pc;
	uint32_t lost;	   /* V: bells that nobody answered */
	uint32_t sleeping; /* V: 1 while it waits on ack */
	uint32_t pad2[6];
	_Alignas(64) uint32_t ack; /* M */
	uint32_t held; /* M: the bell was heard, and is answered when it is this thread's turn */
	/* M, while the vCPU waits: its CPU's clock is (clock_cycles + its own cycles) / hz +
	 * clock_ns. */
	uint64_t clock_cycles;
	uint64_t clock_ns;
	uint32_t shared; /* M: enum seg_sharing */
	uint32_t nudge; /* M: ends the block that it stands in, and rings SEG_BELL_TURN; V clears it
			 */
	uint32_t pad4[88];
};
_Static_assert(sizeof(struct seg_vcpu) == 1024, "pub stride");

/* What the record of a deadline has besides its counts. */
enum seg_sampling {
	SEG_SAMPLED = 1u << 0, /* pc; with SEG_STACK the call chain, with SEG_BRANCHES those */
	SEG_SAMPLED_CALLS = 1u << 1, /* of the branches, calls alone */
};

/* A deadline as the vCPU sees it. */
struct seg_deadline {
	uint64_t at;	   /* absolute value of this vCPU's own signal */
	uint32_t armed;	   /* 0: slot unused */
	uint8_t index;	   /* lane 0..7, or 8 + scalar */
	uint8_t overflow;  /* enum quipu_overflow_kind; BELL: wait for the machine */
	uint16_t sampling; /* enum seg_sampling */
	struct quipu_reload
		reload; /* local overflow: the driver's arithmetic, run in the engine process */
	/* Of a frequency event: the signal's value at the last tick. Of the tick: ns of the CPU's
	 * clock at which it is the machine's again. */
	uint64_t since;
};

/* The interrupt ring of a vCPU: single producer V, single consumer M. Positions are free-running
 * byte counts. */
struct seg_ring {
	_Alignas(64) uint64_t head; /* V */
	_Alignas(64) uint64_t tail; /* M */
	_Alignas(64) uint64_t lost; /* V */
	uint8_t pad[4096 - 3 * 64];
	uint8_t data[SEG_RING_BYTES];
};

enum seg_record_type {
	SEG_REC_PAD = 0,   /* skip size bytes (to the end of the ring) */
	SEG_REC_INTERRUPT, /* struct seg_interrupt */
	SEG_REC_MMAP,	   /* struct seg_mmap, then the path, NUL-terminated, padded to 8 */
	SEG_REC_COMM,	   /* struct seg_comm */
};

/* Every record is contiguous in the ring, 8-aligned, size a multiple of 8. */
struct seg_record {
	uint32_t type;
	uint32_t size;		  /* of the whole record */
	uint64_t lane[SEG_LANES]; /* value of each lane at this instruction (its completion) */
};

struct seg_interrupt {
	struct seg_record head;
	uint64_t slots; /* deadlines reached at this instruction */
	uint64_t bell;	/* of those, the ones that the machine serves while the vCPU waits */
	uint64_t pc;
	uint64_t addr;
	struct quipu_insn insn; /* the one at pc */
	uint32_t nr_chain;
	uint32_t nr_branches; /* triples */
	uint32_t nr_next;     /* popcount(slots & ~bell) */
	uint32_t has_scalars; /* SEG_SCALARS values follow the chain */
	uint64_t regs; /* user registers with which the instruction began, bits of header.regs */
	/* uint64_t next[nr_next]: new deadline of each locally served slot, lowest slot first;
	 * uint64_t chain[nr_chain]; uint64_t scalars[has_scalars ? SEG_SCALARS : 0]; uint64_t
	 * branches[3 * nr_branches]; uint64_t value[popcount(regs)] */
	uint64_t words[];
};

struct seg_mmap {
	struct seg_record head;
	uint64_t addr, len, pgoff;
	uint64_t ino;
	uint32_t maj, min;
	uint32_t prot, flags;
	char path[];
};

struct seg_comm {
	struct seg_record head;
	char comm[16];
};

/* One process. */
struct seg_proc {
	uint32_t pid; /* P */
	uint32_t parent_slot;
	uint32_t nvcpus;    /* V: highest index used + 1 */
	uint32_t uncounted; /* threads that found no vCPU record */
	uint32_t state;	    /* P: enum seg_state */
	uint32_t execs;
	uint64_t own_calls[4]; /* V: which non-repeatable calls the program made itself (enum
				  seg_own_call bits) */
	char isa[16];
	char path[SEG_PATH]; /* program */
	uint64_t blocks;     /* translated */
	uint32_t parent_pid; /* P: of a forked process; its parent_slot may have another owner by
				now */
	uint32_t faults;     /* V: signals that came to a handler of faults */
	char comm[16]; /* P: the program's name as it was asked for, before links are followed */
	uint32_t selection; /* P: header.selection as it is compiled in */
	uint32_t features;  /* P: and what that is, enum seg_feature */
	uint32_t scalars;   /* P: bits */
	uint32_t switches;  /* P: how often it was another since the process began */
	uint32_t lacks;	    /* P: of what was asked for, enum seg_lack */
};

/* Why what is asked for is not there. */
enum seg_lack {
	SEG_LACKS_REGS = 1u << 0, /* this QEMU does not show registers to plugins */
	SEG_LACKS_SET = 1u << 1,  /* the program is of another instruction set than the machine,
				     whose  registers were asked for */
};

/* Calls whose results differ from run to run; told with -v. */
enum seg_own_call {
	SEG_CALL_TIME = 1u << 0,
	SEG_CALL_RANDOM = 1u << 1,
	SEG_CALL_PID = 1u << 2,
	SEG_CALL_HOST_FILES = 1u << 3, /* /proc, /sys, /dev/urandom, ... */
	SEG_CALL_NETWORK = 1u << 4,
};

#define SEG_HEADER_BYTES   65536u
#define SEG_PROC_BYTES	   65536u
#define SEG_VCPUS_BYTES	   (SEG_VCPUS * 1024u)
#define SEG_DEADLINE_BYTES ((uint64_t)SEG_VCPUS * QUIPU_SLOTS * 128u)
#define SEG_RINGS_BYTES	   ((uint64_t)SEG_VCPUS * sizeof(struct seg_ring))

#define SEG_OFF_VCPUS	  ((uint64_t)SEG_PROC_BYTES)
#define SEG_OFF_DEADLINES (SEG_OFF_VCPUS + SEG_VCPUS_BYTES)
#define SEG_OFF_RINGS	  (SEG_OFF_DEADLINES + SEG_DEADLINE_BYTES)
#define SEG_SLOT_BYTES	  ((SEG_OFF_RINGS + SEG_RINGS_BYTES + 65535u) & ~UINT64_C(65535))
#define SEG_BYTES	  (SEG_HEADER_BYTES + SEG_PROCS * SEG_SLOT_BYTES)

_Static_assert(sizeof(struct seg_header) <= SEG_HEADER_BYTES, "header");
_Static_assert(sizeof(struct seg_proc) <= SEG_PROC_BYTES, "slot header");
_Static_assert(sizeof(struct seg_deadline) <= 128, "deadline stride");

#endif
