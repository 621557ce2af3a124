/* SPDX-License-Identifier: BSD-2-Clause */
/* On the host itself, or on a modelled machine? What stat and record ask before they begin. */
#ifndef QUIPU_CLI_HOST_H
#define QUIPU_CLI_HOST_H

#include "cli/options.h"
#include "platform/host/host.h"

struct host_wish {
	const char *command; /* "count" or "sample": of the messages */
	const struct run_options *run;
	const struct options_events *events;
	const char *defaults; /* events when there is no -e */
	bool sample;
	bool cpus;	/* -a or -C */
	bool processes; /* -p or -t */
	char **argv;
};

/*
 * host_chosen - *host: the kernel shall do it. It must where -m host, --sysfs or processes say so;
 * it may where the program is one of the host's own, and then does if it can open every event.
 * Where it could not, one line tells why, and what is done instead. 0 or an exit status.
 */
int host_chosen(const struct host_wish *, bool *host);
/*
 * host_machine_of - the machine for a client @argv (perf), of whose programs its words are all that
 *	is known: that of the first of another instruction set than the host's, else that of one of
 * the host's that it is given, else riscv. @engine: the client is such a program itself.
 */
const char *host_machine_of(char *const argv[], bool engine);
/* host_start - host_init with its messages. 0 or an exit status. */
int host_start(struct host *, const struct run_options *);
/* host_events - host_parse with its messages. 0 or an exit status. */
int host_events(struct host *, const char *text, struct quipu_event_list *);
/* host_refused - one line: why event @e was refused with @err, and what to do. An exit status. */
int host_refused(struct host *, const char *command, const struct quipu_parsed *e, int err,
		 pid_t pid, int cpu);
/*
 * host_exactness - what an event of type @type is worth: the kernel's, but inside quipu exec a
 *	machine answers in its place.
 */
enum quipu_exactness host_exactness(uint32_t type);
/* host_online - CPUs of @text (-C), or all that are online; to be freed. 0 or an exit status. */
int host_online(const struct host *, const char *text, unsigned **cpus, size_t *n);
/*
 * host_targets - the threads of the processes of the list @pids, or those of @tids. 0 or an exit
 *	status.
 */
int host_targets(const char *pids, const char *tids, pid_t **out, size_t *n);
/* host_user_only - the kernel was left out of @e: its name tells (":u"), as perf's does. */
int host_user_only(struct quipu_parsed *e);

#endif
