/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session: one guest program under QEMU user mode, seen from the machine's side. It owns the
 * segment, starts the program, answers its bells, drains its interrupt rings and drives the system
 * (quipu/system.h) accordingly.
 */
#ifndef QUIPU_ENGINE_SESSION_H
#define QUIPU_ENGINE_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <quipu/system.h>

struct session;

struct session_options {
	const char *qemu_dir; /* NULL: search PATH for qemu-<isa> */
	const char *plugin;   /* path of the plugin */
	const char *sysroot;  /* NULL: found by itself (Debian's cross libc) */
	bool stack;	      /* call stacks wanted (record -g) */
	bool branches;	      /* branch stacks wanted (record -b) */
	bool local; /* overflows served in the engine process; false rings the bell for each */
	bool live;  /* live mode: the host's clock, nothing waits */
};

/* Why a program could not be started: one line for a person, with the remedy. */
struct session_error {
	char text[512];
};

/*
 * session_new - a session for programs of @machine's instruction set. The signals are there at once
 * (all 0), so that a system can be built on them and events be opened before the program starts.
 */
struct session *session_new(const struct quipu_machine *, const struct session_options *,
			    struct session_error *);
struct quipu_signals *session_signals(struct session *);
/*
 * session_attach - the system that the session drives; call once. @task_new (may be NULL) is told
 * of each new thread or process before its first instruction. 0 or -ENOMEM.
 */
int session_attach(struct session *, struct quipu_system *,
		   void (*task_new)(void *arg, struct quipu_task *), void *arg);
/*
 * session_prepare - check the program (exists, is executable, its instruction set, not truncated),
 * fork, and hold the child before its exec. @argv[0] is searched in PATH as execvp would. 0 or
 * -errno with @err. Before session_attach or after: a system that is made later is no part of what
 * the fork copies. When both have been, the task of the child exists in the core (session_task), so
 * that events can be opened on it.
 */
int session_prepare(struct session *, char *const argv[], struct session_error *);
struct quipu_task *session_task(struct session *);
/* session_runs - does this engine run programs of @isa? */
bool session_runs(enum quipu_isa);
/* session_counts - would a session on @machine count @signal? For who shows a machine without
 * running on it. */
bool session_counts(const struct quipu_machine *machine, quipu_signal);
/*
 * session_require - @signal must be counted: called for each open event before session_go. Lanes
 * are handed out in order of the calls; when they run out the signal is a 64-bit counter.
 */
int session_require(struct session *, quipu_signal);
/* session_go - let the child exec. */
int session_go(struct session *, struct session_error *);
/*
 * session_step - serve whatever is due; waits at most @timeout_ms (-1: without limit). 1: the
 * program (and all it forked) is gone and everything it left has been served; 0: go on; -errno.
 */
int session_step(struct session *, int timeout_ms);
/* session_stop - ask the program to end (SIGTERM, then SIGKILL after a second). Safe in any state.
 */
void session_stop(struct session *);
/* session_status - wait status of the program once session_step returned 1. */
int session_status(const struct session *);
/* Host figures: seconds elapsed, user, system (of the engine). */
void session_host_times(const struct session *, double *elapsed, double *user, double *sys);

/* Anything that makes totals less than whole, or a rerun differ: told to the user. */
struct session_facts {
	unsigned processes, threads;
	unsigned uncounted_threads; /* found no vCPU record */
	unsigned untold_threads;    /* ran uncounted, too: who made them has not told of them */
	unsigned foreign_execs;	    /* programs that ran natively, uncounted */
	unsigned bells_lost;
	unsigned faults; /* signals that came to a handler of faults; the block of each is counted
			    whole */
	unsigned fault_ends; /* processes that ended, or may have, by a fault of an instruction */
	unsigned isas;	     /* bit of each instruction set (enum quipu_isa) that programs had */
	unsigned lacks;	     /* enum seg_lack bits: what samples were asked for and do not have */
	uint64_t
		regs_unknown; /* user registers that were asked for and no program's samples have */
	uint64_t own_calls;   /* enum seg_own_call bits */
	uint64_t records_lost;
	uint64_t local_mismatches; /* times the machine wanted other deadlines than a thread that
				      ran on had */
};
void session_facts(const struct session *, struct session_facts *);
/* session_thread - a thread of the machine's own, which hears no signals. 0 or -errno. */
int session_thread(pthread_t *, void *(*fn)(void *), void *arg);
void session_free(struct session *);

/*
 * The open house (quipu exec): the session starts no program itself; every process that the plugin
 * lets in is served.
 *
 * session_open_house - after session_attach, instead of session_prepare. Returns an eventfd that
 * is readable whenever session_serve has something to do (the caller reads it before), or
 * -errno.
 * session_serve_house - begins to pass rings on to it, by threads: after the first program was
 * forked, for a child that was forked beside a thread may not even allocate. 0 or -errno.
 * session_serve - serve whatever is due, without waiting; true when anything was.
 * session_refresh - what the running threads have counted up to now becomes visible; waits at
 * most a few ms.
 * session_sync - deadlines that a control call changed reach the threads that run (at their next
 * fold).
 * session_guests - processes that are alive.
 * session_has - is @pid one of them? session_command - the words that run @path under the engine
 * as @argv0: NULL-terminated, owned by the caller as one block with @nwords words. -ENOEXEC: not
 * a program that this machine runs (of another instruction set, where it is not @measured or
 * quipu,other-programs is not "count"); -errno with @err.
 * session_want_stack, session_want_branches - call stacks, or the last branches, are kept.
 * session_want_registers - interrupts tell the user registers of @mask (bits of perf_regs.h).
 */
struct session_hooks {
	/* The task of a process that starts: one that is known, or a new one. NULL: out of memory.
	 */
	struct quipu_task *(*task)(void *arg, pid_t pid, const char *comm);
	/* The CPU that a process that starts shall have, or -1. NULL: none asks. */
	int (*place)(void *arg, pid_t pid);
	/* A process was buried. */
	void (*ended)(void *arg, pid_t pid);
	void *arg;
};
int session_open_house(struct session *, const struct session_hooks *);
int session_serve_house(struct session *);
bool session_serve(struct session *);
void session_refresh(struct session *);
void session_sync(struct session *);
unsigned session_guests(const struct session *);
bool session_has(const struct session *, pid_t pid);
int session_command(struct session *, const char *path, const char *argv0, bool measured,
		    char ***words, size_t *nwords, struct session_error *err);
void session_want_stack(struct session *);
void session_want_branches(struct session *);
void session_want_registers(struct session *, uint64_t mask);
/*
 * What is compiled into the programs of the open house follows the open events
 * (session_select.c). What an event needs is learned while it is opened: all that is required
 * between session_collect and session_collected.
 * session_hold, session_drop - it is open, and no longer.
 * session_select - it becomes what is held; true: programs that run have taken it over, and time
 * has passed.
 * session_linger - what nobody holds any more goes, some time after the last event was closed:
 * ms until then, -1: nothing is left to go.
 */
struct session_wants {
	uint32_t features, indexes;
};
void session_collect(struct session *);
struct session_wants session_collected(struct session *);
void session_hold(struct session *, const struct session_wants *);
void session_drop(struct session *, const struct session_wants *);
bool session_select(struct session *);
int session_linger(struct session *);
/*
 * A task of the host that does not run under the engine: what it counts is its host CPU time at
 * the machine's clock, an instruction a cycle, nothing else (modelled).
 * session_host_run - it has run @ns on @cpu, where it is current, and stands at @pc (0: nobody
 * knows).
 * session_host_armed - does a deadline wait there?
 */
void session_host_run(struct session *, unsigned cpu, pid_t pid, pid_t tid, uint64_t ns,
		      uint64_t pc);
bool session_host_armed(const struct session *, unsigned cpu);

#endif
