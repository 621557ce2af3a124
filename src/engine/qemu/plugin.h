/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin's own state and what its files offer each other. One engine to a process: QEMU loads
 * the plugin once, and a callback gets no argument of ours, so the state is static here (and
 *nowhere else in the project).
 *
 *	install.c  how QEMU takes the plugin
 *	entry.c    the block callbacks (the hot path: entry.h)
 *	plugin.c   translation; blocks that were aborted, signals
 *	repeat.c   repeated instructions of x86-64 within a block
 *	regs.c     the guest's registers in samples
 *	select.c   what is compiled in, and how that changes while the program runs
 *	fold.c     what happens when a lane's top bit is set: deadlines, records, quantum
 *	bell.c     waiting for the machine; the interrupt ring
 *	process.c  the segment, threads, fork, ends
 *	births.c   threads that are announced by themselves
 *	syscall.c  system calls that the engine notices
 *	exec.c     a program that becomes another one
 *	maps.c     what is mapped where
 *	pages.c    what machines with a hypervisor watch for (pages.h)
 *	models.c   caches, TLBs, predictor (models.h)
 *	group.c    accesses of a block that are looked at together (group.h)
 *	label.c    what became of each instruction, on a core that runs ahead
 */
#ifndef QUIPU_ENGINE_PLUGIN_H
#define QUIPU_ENGINE_PLUGIN_H

#include "block.h"
#include "decode.h"
#include "engine/segment.h"
#include "stack.h"

#define COLD __attribute__((noinline, cold))

/* What lies in seg_vcpu.priv: the hot words of a vCPU. */
enum hot {
	HOT_PREV = 0,	 /* the block before */
	HOT_TOP = 1,	 /* of the call stack */
	HOT_FRAMES = 2,	 /* where the call stack lies */
	HOT_WAS_TOP = 3, /* top before the last call or return took effect */
};

#define SIGNAL_DEPTH 16
#define HANDLERS_MAX 128u
#define BRANCHES     32u /* of a branch stack */

/* A block that a signal interrupted; only its first 64 bytes and, for the replay rule, its record
 * while it lives. */
struct interrupted {
	const struct block *block;
	uint64_t top;
};

/* How far a repeated search is (repeat.c). */
enum search { SEARCH_BEGINS = 0, SEARCH_GOES_ON };

/* Has the machine heard of a thread from the one that made it? */
enum birth {
	BIRTH_UNKNOWN = 0, /* not yet */
	BIRTH_TOLD,
	BIRTH_ORPHAN, /* and never will: that one runs uncounted itself */
};

/* A vCPU's private, cold part. */
struct vcpu {
	uint32_t start; /* bell that its first block rings (SEG_BELL_START, _THREAD, _FORK); 0: it
			   runs */
	bool resumes;	/* its last system call was sigreturn */
	bool counted_call;  /* the present system call was counted at its entry */
	bool entered_again; /* the block of a repeated instruction, in its midst (repeat.c) */
	bool half;	    /* the first of two loads of an iteration was seen */
	uint8_t search;	    /* enum search */
	uint32_t folds;	    /* of blocks; wraps */
	uint8_t narmed;
	uint8_t armed[QUIPU_SLOTS]; /* armed slots, ascending */
	uint8_t nsignals;
	struct interrupted signals[SIGNAL_DEPTH];
	const struct block
		*pending; /* the transfer whose delay slot is the block before; NULL: none */
	uint64_t call_pc; /* of the present system call */
	uint64_t call_arg[6];
	uint64_t call_ns;   /* timeout asked for, ns */
	uint8_t call;	    /* enum call */
	bool call_absolute; /* the timeout was a point in time */
	uint64_t fork_from; /* parent's slot */
	unsigned makes;	    /* vCPU that its clone makes (SEG_VCPUS: a process), + 1 */
	uint32_t birth;	    /* enum birth; a futex of the thread's before its first block */
	struct taken {
		uint64_t from, to;
	} branches[BRANCHES]; /* the last ones that were taken, at nbranches % BRANCHES the oldest
			       */
	uint64_t nbranches;
	struct taken calls[BRANCHES]; /* the last ones of those that link */
	uint64_t ncalls;
	int64_t told[INDEXES]; /* highest value of each that the machine has seen in a record */
};

struct engine {
	struct seg_header *head;
	struct seg_proc *proc;
	uint8_t *deadlines;
	struct seg_ring *rings;
	void *area;		/* deadlines and rings, as mapped */
	char program[SEG_PATH]; /* absolute path of the guest program */
	char seg_path[64];
	int slot; /* -1: this process is not counted */
	const struct isa *isa;
	uint64_t guest_base;
	bool have_base;
	uint64_t quantum;
	uint32_t features;
	quipu_signal scalar[SEG_SCALARS]; /* those that are counted, QUIPU_SIGNAL_NONE: not */
	void (*ordinary)(unsigned vcpu,
			 void *block); /* the callback of a block that is nothing special */
	bool wide;	/* the guest has registers of more than 16 bytes, and so has the host */
	bool restarts;	/* only what a window trap restarts is looked at (sparc64) */
	bool threaded;	/* there is, or was, more than one thread */
	bool rep_lanes; /* a repetition adds to lanes, and nothing else */
	struct rates rates;
	struct quipu_model model;
	unsigned fetch_shift; /* of a line of instructions */
	struct block_store store;
	struct entries entries;
	struct handler {
		uint64_t pc; /* where a signal handler of the guest begins */
		bool faults; /* of a signal that an instruction raises */
	} handlers[HANDLERS_MAX];
	unsigned nhandlers;
	struct vcpu vcpu[SEG_VCPUS];
};

/* Hidden, so that the compiler addresses them without a table. */
extern struct engine engine __attribute__((visibility("hidden")));
extern struct seg_vcpu engine_pub[SEG_VCPUS] __attribute__((visibility("hidden")));

static inline unsigned vcpu_index(const struct seg_vcpu *v)
{
	return (unsigned)(v - engine_pub);
}

static inline struct vcpu *vcpu_private(const struct seg_vcpu *v)
{
	return &engine.vcpu[vcpu_index(v)];
}

static inline struct frame *vcpu_frames(const struct seg_vcpu *v)
{
	return (struct frame *)(uintptr_t)v->priv[HOT_FRAMES];
}

void select_change(void);
extern uint32_t select_taken __attribute__((visibility("hidden"))); /* header.selection */

/* select_can - can it be another while the program runs? */
bool select_can(void);
/*
 * select_look - has the machine chosen anew? Then all blocks are translated again before the
 * calling thread enters the next one. Where a block begins, or behind a system call, only.
 */
static inline void select_look(void)
{
	if (__builtin_expect(
		    __atomic_load_n(&engine.head->selection, __ATOMIC_SEQ_CST) != select_taken, 0))
		select_change();
}

static inline struct seg_deadline *vcpu_deadline(unsigned vcpu, unsigned slot)
{
	return (struct seg_deadline *)(engine.deadlines +
				       ((uint64_t)vcpu * QUIPU_SLOTS + slot) * 128);
}

/* engine_callbacks - plugin.c: what is to be counted is known; translation begins. @id: of the
 * plugin that a switch resets. */
void engine_callbacks(uint64_t id);
/* plugin.c: the block before the first. */
extern const struct block block_none;
/* engine_handler - the guest named @pc as the handler of @signal. */
void engine_handler(uint64_t pc, uint64_t signal);

/* repeat.c */
/* repeat_whole - are the repetitions of this string instruction seen by their accesses? */
bool repeat_whole(const uint8_t *bytes, size_t size);
struct qemu_plugin_insn;
/* repeat_translate - the last instruction of a block is translated: where it is repeated within it,
 * that will be seen. After models_translate: an access comes before what it completes. */
void repeat_translate(struct qemu_plugin_insn *, const struct insn *);

/* regs.c */
/* regs_lacking - why samples of this process have no registers, enum seg_lack bits; 0: they can. */
uint32_t regs_lacking(const struct seg_header *);
/* regs_translate - @b, an instruction by itself, is translated; before all other callbacks of it.
 */
void regs_translate(struct qemu_plugin_insn *, const struct block *b);
/*
 * regs_of - the registers with which instruction @pc began, that of a record of now; @of_prev: it
 * is the one before the present one. *@known: which; their values, ascending, to @out
 * (SEG_REGS_MOST). Returns how many.
 */
unsigned regs_of(unsigned vcpu, uint64_t pc, bool of_prev, uint64_t *known, uint64_t *out);
/* regs_begun - an instruction has begun, and what is waited for has changed since. */
void regs_begun(unsigned vcpu);
/* regs_forget - the vCPU begins, or its registers begin to be asked for. */
void regs_forget(unsigned vcpu);

/* select.c */
/* select_open - take over from the segment what is to be compiled in. 0 or -1. */
int select_open(void);
/* select_switches - @id is that of the plugin under which blocks are translated, and nothing else
 * is registered: what is compiled in can change. */
void select_switches(uint64_t id);
/* select_hold - nothing changes until as many select_release: a thread or process is being made, or
 * ends. Waits for a change that has begun. */
void select_hold(void);
void select_release(void);
/* select_leave - nobody will ever count this process again: from its next fold on it is plain. */
void select_leave(void);
/* select_forked - in the child, on the thread that forked. */
void select_forked(void);
/* select_told - the machine may see what this process has compiled in. */
void select_told(void);

/* fold.c */
void fold_step(struct seg_vcpu *, const struct step *);
/*
 * fold_access - in the middle of block @t, instruction @index made a model count something, or lose
 * cycles; @addr is what it accessed, 0 for a fetch; @events what is known of it (enum
 * quipu_insn_event).
 */
void fold_access(struct seg_vcpu *, const struct block *t, unsigned index, uint64_t addr,
		 uint32_t events);
/*
 * fold_activity - @units of @what (enum quipu_activity) happened at @pc: by instruction @index of
 * block @t, or (NULL) between blocks. The machine hears of it now.
 */
void fold_activity(struct seg_vcpu *, const struct block *t, unsigned index, uint64_t pc,
		   unsigned what, uint64_t units);
/*
 * fold_iteration - in the middle of a block, its last instruction, which @t is by itself, was
 * repeated once (step.again, step.first).
 */
void fold_iteration(struct seg_vcpu *, const struct block *t, bool first);
/* fold_publish - bring base up to date between blocks (system calls, ends), so that the machine may
 * look. */
void fold_publish(struct seg_vcpu *);
/* fold_syscall - a system call is counted, at @pc. */
void fold_syscall(struct seg_vcpu *, uint64_t pc);
/* fold_bytes - a system call at @pc has moved @n bytes; @which: the signals that count them. */
void fold_bytes(struct seg_vcpu *, uint64_t pc, uint32_t which, uint64_t n);
/* fold_ring - publish, ring and wait, take over what the machine changed. */
void fold_ring(struct seg_vcpu *, uint32_t reason, uint64_t arg, uint64_t pc);
/* fold_room - publish and see to it that the ring has room for a record of @size bytes. */
void fold_room(struct seg_vcpu *, uint32_t size);
/* fold_request - in a block whose counts are not taken: the machine's request is served, or the
 * vCPU begins. */
void fold_request(struct seg_vcpu *, uint64_t pc);
/* fold_zero - a vCPU begins: its counts are 0, its first block folds. */
void fold_zero(struct seg_vcpu *);
/*
 * fold_labelled - instruction @pc, which was executed already, made a count of label.c reach its
 * deadline. @now: all values at its completion.
 */
void fold_labelled(struct seg_vcpu *, const int64_t now[INDEXES], uint64_t pc, uint64_t addr,
		   const struct quipu_insn *);

/* label.c: with SEG_LABEL only */
void label_begin(struct seg_vcpu *);
/*
 * label_step - the block before @s is complete, and its outcome is in @s (NULL: it is not known,
 * and nothing follows at once). @now: the values at its end.
 */
void label_step(struct seg_vcpu *, const struct step *s, const int64_t now[INDEXES]);
/* label_access, label_miss - instruction @index of the present block accesses memory; that missed.
 */
void label_access(struct seg_vcpu *, unsigned index, uint64_t va, unsigned size);
void label_miss(struct seg_vcpu *, uint32_t events);
void label_fetch(struct seg_vcpu *, unsigned index, uint32_t events);
void label_signal(struct seg_vcpu *);
/* label_keep - the records of all blocks are about to go; the block that is not labelled yet stays.
 */
void label_keep(struct seg_vcpu *);
void fold_values(const struct seg_vcpu *, uint64_t lane[SEG_LANES]);

/* bell.c: the caller has published. */
/* bell_look - is the machine still there? If not, nobody counts. */
void bell_look(void);
/* bell_tell - the machine looks what is new; nobody waits. */
void bell_tell(void);
void bell_ring(struct seg_vcpu *, uint32_t reason, uint64_t arg, uint64_t slots, uint64_t pc);
/*
 * ring_room - see that a record of @size bytes has room: in exact mode nothing is lost, the vCPU
 * waits until the machine has read. True: it rang (and deadlines may have changed).
 */
bool ring_room(struct seg_vcpu *, uint32_t size);
/* ring_reserve - room for a record of @size bytes (a multiple of 8) in the ring, or NULL: it is
 * lost. */
void *ring_reserve(struct seg_vcpu *, uint32_t size);
void ring_commit(struct seg_vcpu *, uint32_t size);

/* process.c */
int process_open(const char *seg);
void process_own_call(uint64_t bits);
void process_callbacks(uint64_t id);
/* process_begin - the first block of a vCPU is about to run. */
void process_begin(struct seg_vcpu *);
/* process_stack - @v has room for a call stack. */
void process_stack(struct seg_vcpu *);
/* process_calling - @v is about to call the system: fork handlers and vcpu_init have no other way
 * to know. */
void process_calling(struct seg_vcpu *);
/*
 * process_makes - the calling thread is about to make a thread or a process.
 * process_made - its vCPU @index comes back from that; @tid: what was made, <= 0: nothing.
 * Nothing may be switched between them (select_hold).
 */
void process_makes(void);
void process_made(unsigned index, int64_t tid);

/* births.c */
/* births_come - vCPU @index begins, on its own thread. */
void births_come(unsigned index);
/* births_await - the vCPU of the new thread @tid, once that has come. False: it did not. */
bool births_await(uint32_t tid, unsigned *index);
/* births_told - the thread of @child need not wait for its maker any longer. */
void births_told(struct vcpu *child, enum birth);
/* births_known - of the thread @self that is about to begin: did its maker tell of it? Waits until
 * that has had its chance. */
bool births_known(struct vcpu *self);
/* births_forget - in the child of a fork: no thread is being made. */
void births_forget(void);

/* syscall.c */
void syscall_callbacks(uint64_t id);

/* exec.c: the host's exec into QEMU again; returns only when that did not happen. True: the host
 * will refuse too. */
bool exec_follow(const char *path, uint64_t guest_argv, uint64_t guest_env);

/* maps.c */
void maps_program(struct seg_vcpu *);
void maps_mmap(struct seg_vcpu *, uint64_t addr, uint64_t len, uint32_t prot, uint32_t flags,
	       int fd, uint64_t offset);
void maps_mprotect(struct seg_vcpu *, uint64_t addr, uint64_t len, uint32_t prot);
void maps_comm(struct seg_vcpu *, const char *name);
/* maps_read_guest - copy from guest memory without ever faulting; returns bytes read, -1 when there
 * is nothing. */
long maps_read_guest(uint64_t guest, void *buf, unsigned long len);
long maps_read_string(uint64_t guest, char *buf, unsigned long len);

#endif
