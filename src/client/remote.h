/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls made in a thread of another process, where it waits for the answer to one of its
 * own. ptrace(2); x86-64 hosts.
 */
#ifndef QUIPU_CLIENT_REMOTE_H
#define QUIPU_CLIENT_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#if defined(__x86_64__)
#include <sys/user.h>
#endif

struct remote {
	pid_t tid;
	uint64_t mask; /* its signal mask */
	bool ended;    /* it has ended meanwhile, */
	int status;    /* with this wait status */
#if defined(__x86_64__)
	struct user_regs_struct regs; /* as its own call left them */
#endif
};

/* remote_supported - on this host's instruction set. */
bool remote_supported(void);
/*
 * remote_seize - @tid, which waits for the answer to a notification, will stop when it has it.
 * remote_begin waits for that; its signals wait until remote_end. Negative errno: somebody else
 * traces it (EPERM), or it is gone (ESRCH); then nothing has changed.
 */
int remote_seize(pid_t tid);
int remote_begin(struct remote *, pid_t tid);
/* remote_call - one system call in it: what the kernel answers. */
long remote_call(struct remote *, long nr, const uint64_t args[6]);
/* remote_end - it goes on as if its own call had answered @result. */
void remote_end(struct remote *, long result);
/*
 * remote_exec - it begins an execve with these pointers of its own memory; @cookie in a sixth
 * argument that the kernel does not look at. How that goes is told by remote_exec_over, with each
 * wait status of the thread: false, not over yet; *result 0, it has replaced its program, else
 * negative errno, and it goes on.
 */
void remote_exec(struct remote *, long nr, const uint64_t args[5], uint64_t cookie);
bool remote_exec_over(struct remote *, pid_t pid, int status, long *result);
/* After a remote_exec_over that said 0: the new program begins. */
void remote_release(struct remote *);

#endif
