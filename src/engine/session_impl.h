/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of a session share; which does what is said in session.c. */
#ifndef QUIPU_ENGINE_SESSION_IMPL_H
#define QUIPU_ENGINE_SESSION_IMPL_H

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "engine/segment.h"
#include "engine/session.h"

/* A signal's place: lane 0..7, or 8 + scalar. */
#define SEG_INDEXES (SEG_LANES + SEG_SCALARS)

/* How long something was waited for that may never come. */
struct patience {
	uint64_t looked; /* ns of the host, 0: not yet */
	uint64_t left;	 /* ns */
	uint64_t seen;	 /* the clock that is waited for: while it moves there is hope */
};

/* A deadline that the hardware floor armed, and what the vCPU was last given. */
struct want {
	struct quipu_deadline d; /* at: in the CPU's own count */
	bool armed;
	uint8_t index;
	bool have_armed;
	uint64_t have_at;
	uint64_t have_until; /* the tick's: ns to which the vCPU serves it alone; 0: it does not */
};

/*
 * One modelled CPU. Its signals are what departed threads left (gone) plus what the present one
 * shows (view). The view moves only with records and bells, never by itself: what is read while a
 * record is served are the values of its instruction, and no reader ever sees time run backwards.
 */
struct cpu_state {
	uint64_t gone[SEG_INDEXES];
	uint64_t view[SEG_INDEXES];
	struct want want[QUIPU_SLOTS];
	uint64_t used;	  /* slots that were ever armed */
	unsigned threads; /* placed here; more than one take turns */
	struct proc *on;  /* whose view it is, NULL: nobody's */
	unsigned on_vcpu;
	struct proc *turn; /* whose turn it is, NULL: nobody's (session_turns.c) */
	unsigned turn_vcpu;
	unsigned short_turns; /* since one lasted to its end */
	bool settling;	      /* nobody has the turn before those that come have come */
	struct proc *awaited; /* the last of them that was seen, NULL: none was */
	unsigned awaited_vcpu;
	struct patience patience;
};

/* Forks of a thread whose child has not begun yet. */
#define FORKS_PENDING 8u

struct fork_note {
	unsigned n;
	int cpu[FORKS_PENDING];
	uint64_t born[FORKS_PENDING]; /* ns, the parent's clock */
};

/* What the host says of a thread (session_host.c): files of it, -1: not to be had. */
struct host_files {
	int stat, call;
};

struct proc {
	uint8_t *base; /* the mapped slot, NULL: not opened */
	struct seg_proc *seg;
	int pidfd;
	bool started, dead;
	struct quipu_task *tasks[SEG_VCPUS];
	struct quipu_task *parent[SEG_VCPUS]; /* of a vCPU that was announced and has not run yet */
	struct cpu_state *cpu[SEG_VCPUS];
	int placed[SEG_VCPUS];
	uint64_t born[SEG_VCPUS];	       /* ns, its creator's clock */
	unsigned made_on[SEG_VCPUS];	       /* its creator's CPU */
	uint64_t tail[SEG_VCPUS];	       /* of the ring: our own copy */
	uint64_t seen[SEG_VCPUS][SEG_INDEXES]; /* view of a thread that another took the CPU from */
	uint64_t lost_seen[SEG_VCPUS];
	struct fork_note forks[SEG_VCPUS];
	bool serving[SEG_VCPUS];
	bool leaving; /* a thread has asked for the end of all */
	bool stuck;   /* it did not take over what is compiled in (session_select.c) */
	/* session_turns.c */
	uint8_t turn[SEG_VCPUS];
	bool nudged[SEG_VCPUS];
	bool made[SEG_VCPUS];	       /* it has made threads since it stopped last */
	uint32_t held[SEG_VCPUS];      /* the bell that waits */
	uint64_t since[SEG_VCPUS];     /* session.turns when it had its CPU last, or was made */
	uint64_t turn_ends[SEG_VCPUS]; /* its own cycles; 0: not known yet */
	bool given_up[SEG_VCPUS];      /* nobody waits any more for it to come */
	unsigned child[SEG_VCPUS];     /* which it waits for; SEG_VCPUS: a process */
	pid_t child_tid[SEG_VCPUS];
	uint32_t unslotted[SEG_VCPUS]; /* seg_header.unslotted before its fork */
	struct patience patience[SEG_VCPUS];
	uint64_t away_since[SEG_VCPUS]; /* ns of its CPU; 0: it was not away */
	struct host_files host[SEG_VCPUS];
	bool host_open[SEG_VCPUS];
	struct proc *maker[SEG_VCPUS];
	unsigned maker_vcpu[SEG_VCPUS];
};

struct session {
	struct quipu_signals signals;
	const struct quipu_machine *machine;
	struct session_options options;
	struct quipu_system *system;
	struct quipu_core *core;
	void (*task_new)(void *arg, struct quipu_task *);
	void *task_arg;

	int fd; /* the segment */
	struct seg_header *head;
	struct proc *procs; /* SEG_PROCS; each is many pages, and those that never were are not */
	unsigned nprocs;    /* looked at: behind the last that was ever opened */
	uint64_t served;    /* slots that ever rang */
	bool house;	    /* it starts nothing itself: every process that comes is served
			       (session_open_house) */
	struct session_hooks hooks;
	int bell_fd; /* eventfd of the bell thread */
	pthread_t bell;
	bool bell_running;
	uint64_t released; /* slots of the buried, to be given back */
	/* session_select.c */
	bool collecting;		     /* what is asked for goes into asked */
	bool wanted_early;		     /* a room wanted signals before the house was open */
	bool watches_always;		     /* nothing is ever too idle to be counted */
	struct session_wants asked, always;  /* always: whatever is open */
	unsigned holders;		     /* events that are open, */
	unsigned feature_holders[32];	     /* by bit of what they want, */
	unsigned index_holders[SEG_INDEXES]; /* by index */
	uint64_t lingers_from;		     /* ns of the host: when an event was closed last */
	struct cpu_state *cpus;
	bool crowded;	  /* every CPU has a thread: one that is made shares its CPU */
	uint64_t turns;	  /* counts ends of turns and threads that were made */
	unsigned waiting; /* threads that wait for their turn */
	unsigned looks;	  /* since something was heard */

	int watch_fd, stop_fd[2];
	pthread_t watcher;
	bool watching;

	pid_t child;
	int child_pidfd;
	int go_fd, fail_fd; /* pipes: let the child exec; errno of an exec that failed */
	struct quipu_task *task;
	enum quipu_isa isa; /* of the program that is being started */
	char *qemu;	    /* path of qemu-<isa>, for programs of that */
	char *program;	    /* path of the guest program */
	char *sysroot;
	char *const *argv;
	int status;
	bool over;
	struct rusage usage;
	struct timespec began, ended;
	struct session_facts facts;
};

/* view.c */
void session_view_init(struct session *);
void session_view_record(struct session *, struct cpu_state *, const uint64_t lane[SEG_LANES],
			 const uint64_t *scalars);
void session_view_vcpu(struct session *, struct cpu_state *, const struct seg_vcpu *);
/* The present thread leaves the CPU: its counts become the CPU's past. */
void session_view_gone(struct session *, struct cpu_state *);
/* Another thread's turn: the CPU's counts stay, the view is that of the one that last showed @seen.
 */
void session_view_switch(struct cpu_state *, const uint64_t seen[SEG_INDEXES]);

/* launch.c: what the plugin needs to know of the program, and the words before it. NULL: out of
 * memory. */
char **session_qemu_argv(const struct session *, char *const argv[]);
/* The task of the program that is held, when program and system are both there. 0 or -ENOMEM. */
int session_begin_task(struct session *);

/* session.c */
/* Wake the machine when @pid ends. A pidfd, or -errno. */
int session_watch(struct session *, pid_t pid);
int session_watch_begin(struct session *);
void session_futex_wake(uint32_t *word);
void session_ring_machine(struct seg_header *);

/* session_ring.c */
struct seg_vcpu *session_vcpu(const struct proc *, unsigned v);
struct seg_deadline *session_deadline(const struct proc *, unsigned v, unsigned slot);
/* The vCPU waits (or has not run yet): give it the deadlines of its CPU, and its clock. */
void session_flush_deadlines(struct session *, struct cpu_state *, struct proc *, unsigned v);
/* Does the hardware floor want other deadlines than the vCPU was last given? */
bool session_deadlines_differ(const struct session *, const struct cpu_state *);
/* The machine is about to hear of thread @v: it is the one on its CPU now. */
void session_step_on(struct session *, struct proc *, unsigned v);
void session_drain(struct session *, struct proc *, unsigned v);

/* session_process.c: what a thread's bell says of it, and ends. */
void session_serve_start(struct session *, struct proc *, unsigned v);
void session_serve_fork(struct session *, struct proc *, unsigned v, uint64_t from);
/* @told: by the one that made it. */
void session_serve_thread(struct session *, struct proc *, unsigned v, bool told);
void session_serve_clone(struct session *, struct proc *, unsigned v, uint64_t child);
void session_serve_made(struct session *, struct proc *, unsigned v, uint64_t made);
/* A fork of @v whose child will not be heard of. */
void session_forget_fork(struct session *, struct proc *, unsigned v);
void session_serve_leaving(struct session *, struct proc *, unsigned v, bool all);
/* The thread's final counts stay with the CPU that it leaves. */
void session_leave(struct session *, struct proc *, unsigned v);
/* Nobody is answered from here on. What runs on is told, and becomes plain at its next fold. */
void session_closing(struct session *);
/* A process is gone: what it left in its rings and counters is all there will be. */
void session_bury(struct session *, struct proc *);
void session_release_slot(struct session *, unsigned slot);
void session_release_due(struct session *);
/* Bury what ended without a word. */
void session_reap(struct session *);

/* session_bells.c */
void session_serve_bell(struct session *, struct proc *, unsigned v);
/* All that rang; 0: nothing did. */
uint64_t session_serve_all(struct session *);

/* The vCPU that waits goes on. */
void session_answer(struct session *, struct proc *, unsigned v);
void session_ack(const struct proc *, unsigned v, uint32_t bell);

/* session_select.c */
/* @features and @indexes (bits) are needed: by what is collected, or by the machine itself. */
void session_asked(struct session *, uint32_t features, uint32_t indexes);
void session_select_begin(struct session *);

/* session_turns.c */
/* Does who is next depend on model time alone? */
bool session_takes_turns(const struct session *);
/* Choose who is next where that could not be said before. */
void session_turns_settle(struct session *);
/* Is it known that @v rang @bell, and does it wait for its turn? */
bool session_turns_held(const struct proc *, unsigned v, uint32_t bell);
/* The end of @v's turn, among its deadlines. */
void session_turns_deadline(struct session *, struct cpu_state *, struct proc *, unsigned v);
/* @v is making thread @child; SEG_VCPUS: a process. */
void session_turns_made(struct session *, struct proc *, unsigned v, unsigned child);
/* The call of @v that made @child (SEG_VCPUS: a process) has returned; it waits until that is
 * there. */
void session_turns_await(struct session *, struct proc *, unsigned v, unsigned child, pid_t tid);
/* @v is there, and was made by thread @maker_vcpu of @maker (NULL: nobody knows). */
void session_turns_born(struct session *, struct proc *, unsigned v, struct proc *maker,
			unsigned maker_vcpu);
/* The bell of @v was served. False: it waits for its turn. */
bool session_turns_goes_on(struct session *, struct proc *, unsigned v, uint32_t reason);
/* A thread was placed, or has left its CPU. */
void session_turns_placed(struct session *);
/* @v rings for what must not be before what other CPUs do earlier, or others of its own that it
 * has woken: true when it has to wait. */
bool session_turns_early(struct session *, struct proc *, unsigned v, uint32_t reason);
/* @v was let go a little and rings: true when that is all there is, and it waits again. */
bool session_turns_nudged(struct session *, struct proc *, unsigned v, uint32_t reason);
void session_turns_leave(struct session *, struct cpu_state *, struct proc *, unsigned v);
void session_turns_take_over(struct session *, struct proc *q, unsigned u, struct proc *p,
			     unsigned v, struct cpu_state *);
/* What is left of a sleep of @ns, when others had the CPU meanwhile. */
uint64_t session_turns_slept(struct session *, struct proc *, unsigned v, uint64_t ns);
void session_turns_close(struct proc *);
/* Look after those that wait. True: and again soon. */
bool session_turns_look(struct session *);

/* session_host.c: the letter of a thread's state in proc(5), R also while it is about to sleep;
 * 0: there is none such. */
char session_host_state(pid_t pid, pid_t tid);
char session_thread_state(struct proc *, unsigned v);
bool session_host_gone(char state);
bool session_host_stopped(char state);
/* In one and the same system call, and not while it waits for the machine before or after one. */
bool session_sleeps_in_call(struct proc *, unsigned v);
void session_forget_state(struct proc *, unsigned v);

/* session_house.c */
void session_close_house(struct session *);

#endif
