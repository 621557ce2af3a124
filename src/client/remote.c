/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls made in a thread of another process (remote.h). The thread waits in a seccomp
 * notification; it is seized, gets an answer, and stops on its way back to the program, where its
 * registers are those of the call. Its own call instruction is what makes ours. ptrace(2),
 * seccomp_unotify(2).
 *
 * Does not run code of ours in the other process, and touches no memory but what calls do.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "client/remote.h"

#if defined(__x86_64__)

#define SYSCALL_LENGTH 2u
#define SYSCALL_BYTES  0x050f
#define CALL_STOP      (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define EVENT(status)  ((status) >> 16)

bool remote_supported(void)
{
	return true;
}

int remote_seize(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC))
		return -errno;
	return ptrace(PTRACE_INTERRUPT, tid, 0, 0) ? -errno : 0;
}

/* The next stop of @tid; false: it is gone. */
static bool next_stop(struct remote *r, int *status)
{
	pid_t got;

	do
		got = waitpid(r->tid, status, __WALL);
	while (got < 0 && errno == EINTR);
	if (got == r->tid && WIFSTOPPED(*status))
		return true;
	r->ended = got == r->tid;
	r->status = *status;
	return false;
}

/* Goes on to the next stop at a call, past whatever else stops it: its signals are blocked, those
 * that cannot be are the kernel's to repeat. */
static bool to_call_stop(struct remote *r)
{
	int status;

	do
		if (ptrace(PTRACE_SYSCALL, r->tid, 0, 0) || !next_stop(r, &status))
			return false;
	while (WSTOPSIG(status) != CALL_STOP);
	return true;
}

int remote_begin(struct remote *r, pid_t tid)
{
	uint64_t all = ~UINT64_C(0);
	int status;

	*r = (struct remote){.tid = tid};
	if (!next_stop(r, &status))
		return -ESRCH;
	if (ptrace(PTRACE_GETREGS, tid, 0, &r->regs) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(r->mask), &r->mask) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all))
		return -errno;
	/* The instruction is the program's: others of its threads may have written over it. */
	if ((ptrace(PTRACE_PEEKTEXT, tid, r->regs.rip - SYSCALL_LENGTH, 0) & 0xffff) ==
	    SYSCALL_BYTES)
		return 0;
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(r->mask), &r->mask);
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return -EFAULT;
}

static struct user_regs_struct registers_of(const struct remote *r, long nr, const uint64_t a[6])
{
	struct user_regs_struct regs = r->regs;

	regs.rip -= SYSCALL_LENGTH;
	regs.orig_rax = (unsigned long long)-1; /* no call of its own is to be repeated */
	regs.rax = (unsigned long long)nr;
	regs.rdi = a[0];
	regs.rsi = a[1];
	regs.rdx = a[2];
	regs.r10 = a[3];
	regs.r8 = a[4];
	regs.r9 = a[5];
	return regs;
}

long remote_call(struct remote *r, long nr, const uint64_t args[6])
{
	struct user_regs_struct regs = registers_of(r, nr, args);

	/* One stop when the call begins, one when it has ended. */
	if (ptrace(PTRACE_SETREGS, r->tid, 0, &regs) || !to_call_stop(r) || !to_call_stop(r) ||
	    ptrace(PTRACE_GETREGS, r->tid, 0, &regs))
		return -ESRCH;
	return (long)regs.rax;
}

void remote_end(struct remote *r, long result)
{
	struct user_regs_struct regs = r->regs;

	regs.orig_rax = (unsigned long long)-1;
	regs.rax = (unsigned long long)result;
	ptrace(PTRACE_SETREGS, r->tid, 0, &regs);
	remote_release(r);
}

void remote_exec(struct remote *r, long nr, const uint64_t args[5], uint64_t cookie)
{
	const uint64_t all[6] = {args[0], args[1], args[2], args[3], args[4], cookie};
	struct user_regs_struct regs = registers_of(r, nr, all);

	/* Its signals wait no longer than they would in any exec. */
	ptrace(PTRACE_SETREGS, r->tid, 0, &regs);
	if (to_call_stop(r))
		ptrace(PTRACE_SYSCALL, r->tid, 0, 0);
}

bool remote_exec_over(struct remote *r, pid_t pid, int status, long *result)
{
	struct user_regs_struct regs;

	*result = -ESRCH;
	if (!WIFSTOPPED(status))
		return true;
	if (EVENT(status) == PTRACE_EVENT_EXEC) {
		r->tid = pid; /* a thread that execs becomes its process */
		*result = 0;
		return true;
	}
	if (WSTOPSIG(status) != CALL_STOP) {
		ptrace(PTRACE_SYSCALL, r->tid, 0, 0);
		return false;
	}
	if (!ptrace(PTRACE_GETREGS, r->tid, 0, &regs))
		*result = (long)regs.rax;
	remote_end(r, *result);
	return true;
}

void remote_release(struct remote *r)
{
	ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), &r->mask);
	ptrace(PTRACE_DETACH, r->tid, 0, 0);
}

#else

bool remote_supported(void)
{
	return false;
}

int remote_seize(pid_t tid)
{
	(void)tid;
	return -ENOSYS;
}

int remote_begin(struct remote *r, pid_t tid)
{
	r->tid = tid;
	return -ENOSYS;
}

long remote_call(struct remote *r, long nr, const uint64_t args[6])
{
	(void)r;
	(void)nr;
	(void)args;
	return -ENOSYS;
}

void remote_end(struct remote *r, long result)
{
	(void)r;
	(void)result;
}

void remote_exec(struct remote *r, long nr, const uint64_t args[5], uint64_t cookie)
{
	(void)r;
	(void)nr;
	(void)args;
	(void)cookie;
}

bool remote_exec_over(struct remote *r, pid_t pid, int status, long *result)
{
	(void)r;
	(void)pid;
	(void)status;
	*result = -ENOSYS;
	return true;
}

void remote_release(struct remote *r)
{
	(void)r;
}

#endif
