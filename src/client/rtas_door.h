/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RTAS of a machine that runs (`quipu exec -m lpar`), for other processes: the machine's side, a
 * thread that answers on a socket of its own, and the transport of those who ask. What is fixed of
 * a partition (its sequence of calls, R1-6) is the machine's, whoever calls.
 */
#ifndef QUIPU_CLIENT_RTAS_DOOR_H
#define QUIPU_CLIENT_RTAS_DOOR_H

#include <sys/types.h>

#include <quipu/lpar.h>

struct rtas_door;

/*
 * rtas_door_open - a door to @machine's RTAS under the name of process @pid: what is asked waits.
 *	NULL with *error 0: the machine has no hypervisor; else a negative errno.
 * rtas_door_start - answer, by a thread. NULL is fine; 0 or a negative errno.
 * rtas_door_close - NULL is fine.
 */
struct rtas_door *rtas_door_open(const struct quipu_machine *, long pid, int *error);
int rtas_door_start(struct rtas_door *);
void rtas_door_close(struct rtas_door *);

/*
 * What a call costs is the machine's business: the caller waits (some seconds at most) until the
 * machine has seen to it.
 *
 * rtas_door_charge - from now on callers do. The descriptor (the door's own) is readable while one
 *	waits; negative errno. rtas_door_call - who called, and the partition that was called;
 * false: nobody waits. rtas_door_charged - they may go on.
 */
struct rtas_door_call {
	pid_t pid;
	const struct quipu_partition *partition;
};
int rtas_door_charge(struct rtas_door *);
bool rtas_door_call(struct rtas_door *, struct rtas_door_call *);
void rtas_door_charged(struct rtas_door *);

/*
 * rtas_connect - the transport to partition @partition of the machine that serves as @pid. @lock:
 *	agree with other processes on who may call. 0; -ENOENT: that machine has no RTAS; -EINVAL:
 * no such partition; or another errno. rtas_disconnect - NULL is fine.
 */
int rtas_connect(struct quipu_rtas_transport **, long pid, unsigned partition, bool lock);
void rtas_disconnect(struct quipu_rtas_transport *);

#endif
