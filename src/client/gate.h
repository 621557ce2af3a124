/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client gate: how programs that call perf_event_open reach a machine. The machine's event loop
 * (server.c), what a client may ask (ask.c), the tasks of the host that clients name (tasks.c).
 * perf ABI sheet A, C3, D4.
 */
#ifndef QUIPU_CLIENT_GATE_H
#define QUIPU_CLIENT_GATE_H

#include <stdbool.h>
#include <sys/types.h>

#include <quipu/system.h>

#include "engine/session.h"

struct gate;
struct rtas_door;

struct gate_config {
	struct session *session;
	int interrupts; /* the machine's /proc/interrupts, open for writing; 0: no such file */
	/*
	 * What a program under the engine must not see of ours: names whose value goes back to what
	 * @environment has (or away). NULL-terminated.
	 */
	const char *const *taken_back;
	char *const *environment; /* as it was when the command started */
	bool in_user_namespace;	  /* capabilities inside it say nothing: only the machine's root has
				     them */
	bool root;		  /* the user who started the machine */
	bool verbose;
	bool host_events; /* what the host runs natively counts on every machine */
	bool notifier;	  /* the child of gate_run speaks for clients (notifier.h) */
	bool engine;	  /* every program of the machine's instruction set runs under the engine,
			     clients too */
	struct quipu_tree **tree; /* what clients see, made anew when a PMU comes or goes */
	const char *tree_root;	  /* below which it is written; "": bound over /sys */
	struct rtas_door *door;	  /* at which others call the firmware; NULL: nowhere */
};

/*
 * gate_new - the gate of a machine; open for clients at once. Its hooks for the system (wake,
 * sigio) are gate_wake and gate_sigio with the gate as argument, which exists before the system
 * does: gate_attach completes it.
 */
struct gate *gate_new(void);
void gate_wake(void *gate, struct quipu_event *, unsigned bits);
void gate_sigio(void *gate, struct quipu_event *, int code);
int gate_attach(struct gate *, struct quipu_system *, const struct gate_config *);
/*
 * gate_run - serve, by threads too (so the caller forked @child before), until @child and
 * everything it started are gone (the caller is their subreaper). *status: the wait status of
 * @child. @stop: set by a signal handler: pass it on to the child.
 */
int gate_run(struct gate *, pid_t child, int *status, volatile int *stop);
void gate_free(struct gate *);

#endif
