/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the notifier share (notifier.h). */
#ifndef QUIPU_CLIENT_NOTIFIER_IMPL_H
#define QUIPU_CLIENT_NOTIFIER_IMPL_H

#include <linux/seccomp.h>
#include <sys/types.h>

#include "client/notifier.h"
#include "client/protocol.h"
#include "client/remote.h"

/*
 * Events' descriptors have numbers from here on: the filter lets calls on lower ones pass. Programs
 * and tests use low numbers; a program with that many files of its own has calls on them looked at,
 * and let pass.
 */
#define NOTIFIER_FIRST_FD 700
#define NOTIFIER_MOST_FDS 65536

#define SCRATCH_BASE UINT64_C(0x515100000000) /* where nothing of a program's is */
#define SCRATCH_SIZE (UINT64_C(1) << 20)
#define SCRATCHES    64u

/* An event that a client waits for. */
struct watched {
	uint64_t id; /* 0: free */
	unsigned cell;
	bool handed;	 /* the last wait for it went to the host's kernel: its tokens may be old */
	int set, fd;	 /* an epoll set that its descriptor is in, -1 */
	uint32_t events; /* there */
	uint64_t data;
};

/* A process that has made a call of ours. */
struct party {
	pid_t pid;
	int pidfd;
	int connection; /* to the machine, -1 */
	int next_fd;	/* descriptors of events that it may have are below */
	bool sleeper;	/* it runs, or tries to run, GATE_SLEEPER */
	struct watched *watched;
	size_t nwatched, nsets; /* nsets: of those in an epoll set */
	struct party *next;
};

/* An exec under way. */
struct exec {
	struct remote remote;
	pid_t pid, tid;
	unsigned scratch;
	int connection;
	struct exec *next;
};

struct notifier {
	const struct notifier_config *config;
	int listener, signals, epoll;
	pid_t client;
	bool client_over, machine_gone;
	int status;
	uint64_t cookie;
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *notif;
	struct seccomp_notif_resp *resp;
	struct party *parties;
	struct exec *execs;
	const struct board *board;
	uint8_t payload[GATE_PAYLOAD], answer[GATE_PAYLOAD];
};

/* A call that waits for its answer. */
struct call {
	struct notifier *n;
	struct party *party;
	uint64_t id;
	pid_t tid;
	int nr;
	const uint64_t *args;
	bool answered; /* by other means */
};

#define PASS INT64_MIN /* the host's kernel shall do what was asked */

/* A request and its reply, on a connection. */
struct exchange {
	struct gate_request request;
	const void *payload;
	size_t length;
	struct gate_reply reply; /* payload in notifier.answer */
	int fd[2];		 /* passed, -1 */
};

/* ---- notifier.c ---- */

/* Is the call still waiting? What was read of the thread meanwhile is its own then. */
bool notifier_valid(const struct call *);
/* -errno: the machine's answer, or ENOSYS: it is gone. */
int64_t notifier_ask(struct call *, struct exchange *);
int64_t notifier_exchange(struct notifier *, int connection, pid_t tid, struct exchange *);
/* A connection that speaks for @pid, -1. */
int notifier_dial(struct notifier *, pid_t pid);
void notifier_hang_up(struct notifier *, struct party *);
bool notifier_greet(struct call *);
/* Puts @fd into the calling process: the lowest number from @at on that is free (-1: any at all).
 */
int notifier_give(struct call *, int fd, int at, bool cloexec, bool answer);
void notifier_answer(struct call *, int64_t result);
/* A wait status that somebody else was told: it may be the client's end. */
void notifier_ended(struct notifier *, pid_t pid, int status);

/* Memory of the calling thread: bytes copied, negative errno. */
ssize_t notifier_peek(const struct call *, uint64_t from, void *to, size_t n);
bool notifier_poke(const struct call *, uint64_t to, const void *from, size_t n);
/* A string; false: it is not there, or does not end. */
bool notifier_string(const struct call *, uint64_t from, char *to, size_t room);

/* ---- notifier_calls.c ---- */

/* What the call shall answer, or PASS. */
int64_t notifier_call(struct call *);
/* Copy of the caller's descriptor if it is an event, -1; its id. */
int notifier_event(struct call *, int fd, uint64_t *id);
struct watched *notifier_watched(struct call *, uint64_t id);

/* ---- notifier_poll.c ---- */

int64_t notifier_poll(struct call *);
int64_t notifier_select(struct call *);
int64_t notifier_epoll_ctl(struct call *);
int64_t notifier_epoll_wait(struct call *);

/* ---- notifier_exec.c ---- */

int64_t notifier_exec(struct call *);
/* Something has happened to a process that execs; false: it is none of those. */
bool notifier_exec_stopped(struct notifier *, pid_t pid, int status);

#endif
