/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which system calls of a client below seccomp are looked at (seccomp(2), perf ABI sheet C3). All
 * that can be told by a number is: calls on descriptors below NOTIFIER_FIRST_FD, ioctls of other
 * families, mappings of other files pass at the cost of the filter. Waits cannot: what they wait
 * for is in memory.
 */
#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/notifier_filter.h"
#include "client/notifier_impl.h"

#if defined(__x86_64__)
#define HOST_ARCH AUDIT_ARCH_X86_64
#define NR_X32	  0x40000000u

enum kind { ALWAYS, ON_FD, ON_EVENT_IOCTL, ON_MAP, ON_PRCTL, ON_EXEC, ON_SPAN };

static const struct rule {
	unsigned nr;
	enum kind kind;
	unsigned fd; /* which argument is the descriptor */
} rules[] = {
	{SYS_perf_event_open, ALWAYS, 0},
	{SYS_read, ON_FD, 0},
	{SYS_readv, ON_FD, 0},
	{SYS_write, ON_FD, 0},
	{SYS_fcntl, ON_FD, 0},
	{SYS_dup, ON_FD, 0},
	{SYS_epoll_ctl, ON_FD, 2},
	{SYS_ioctl, ON_EVENT_IOCTL, 0},
	{SYS_mmap, ON_MAP, 4},
	{SYS_prctl, ON_PRCTL, 0},
	{SYS_poll, ALWAYS, 0},
	{SYS_ppoll, ALWAYS, 0},
	{SYS_select, ALWAYS, 0},
	{SYS_pselect6, ALWAYS, 0},
	{SYS_epoll_wait, ALWAYS, 0},
	{SYS_epoll_pwait, ALWAYS, 0},
	{SYS_epoll_pwait2, ALWAYS, 0},
	{SYS_sched_getaffinity, ALWAYS, 0},
	{SYS_uname, ALWAYS, 0},
	{SYS_sched_setaffinity, ALWAYS, 0},
	{SYS_execve, ON_EXEC, 0},
	{SYS_execveat, ON_EXEC, 0},
	{SYS_nanosleep, ALWAYS, 0},
	{SYS_clock_nanosleep, ON_SPAN, 0},
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

#define LOW(arg)  ((uint32_t)(offsetof(struct seccomp_data, args) + 8u * (arg)))
#define HIGH(arg) (LOW(arg) + 4u)

struct program {
	struct sock_filter code[24 + 12 * RULES];
	unsigned short n;
};

static void emit(struct program *p, struct sock_filter f)
{
	p->code[p->n++] = f;
}

static void load(struct program *p, uint32_t offset)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void answer(struct program *p, uint32_t what)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

static void allow(struct program *p)
{
	answer(p, SECCOMP_RET_ALLOW);
}

static void notify(struct program *p)
{
	answer(p, SECCOMP_RET_USER_NOTIF);
}

/* Allowed unless what is loaded compares so. */
static void need(struct program *p, unsigned short op, uint32_t value)
{
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | op | BPF_K, value, 1, 0));
	allow(p);
}

static void need_not(struct program *p, unsigned short op, uint32_t value)
{
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | op | BPF_K, value, 0, 1));
	allow(p);
}

/* A descriptor is an int: what is above it in the register does not count. */
static void need_fd(struct program *p, unsigned arg)
{
	load(p, LOW(arg));
	need(p, BPF_JGE, NOTIFIER_FIRST_FD);
	need_not(p, BPF_JGT, INT_MAX);
}

static void emit_rule(struct program *p, const struct rule *r, uint64_t cookie)
{
	switch (r->kind) {
	case ALWAYS: break;
	case ON_FD: need_fd(p, r->fd); break;
	case ON_EVENT_IOCTL:
		load(p, LOW(1));
		emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00));
		need(p, BPF_JEQ, '$' << 8);
		break;
	case ON_MAP:
		load(p, LOW(3));
		need_not(p, BPF_JSET, MAP_ANONYMOUS);
		need_fd(p, r->fd);
		break;
	case ON_PRCTL:
		load(p, LOW(0));
		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_NAME, 3, 0));
		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						     PR_TASK_PERF_EVENTS_DISABLE, 2, 0));
		need(p, BPF_JEQ, PR_TASK_PERF_EVENTS_ENABLE);
		break;
	case ON_SPAN: /* a sleep of some length, not to a point in time */
		load(p, LOW(1));
		need_not(p, BPF_JSET, TIMER_ABSTIME);
		break;
	case ON_EXEC: /* not ours: either half differs */
		load(p, LOW(5));
		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)cookie, 0,
						     3));
		load(p, HIGH(5));
		need_not(p, BPF_JEQ, (uint32_t)(cookie >> 32));
		break;
	}
	notify(p);
}

static void build(struct program *p, uint64_t cookie)
{
	p->n = 0;
	load(p, offsetof(struct seccomp_data, arch));
	need(p, BPF_JEQ, HOST_ARCH);
	load(p, offsetof(struct seccomp_data, nr));
	need_not(p, BPF_JGE, NR_X32);
	for (size_t i = 0; i < RULES; i++) {
		unsigned short jump = p->n;

		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rules[i].nr, 0, 0));
		emit_rule(p, &rules[i], cookie);
		/* Every path of a rule returns, so the number is still loaded behind it. */
		p->code[jump].jf = (unsigned char)(p->n - jump - 1);
	}
	allow(p);
}

static int install(struct sock_fprog *prog, unsigned long flags)
{
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);

	return fd < 0 ? -errno : (int)fd;
}

int notifier_filter(uint64_t cookie)
{
	struct program p;
	struct sock_fprog prog;
	int fd;

	build(&p, cookie);
	prog = (struct sock_fprog){.len = p.n, .filter = p.code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* A call that is being answered is not begun again for every signal (Go sends many). */
	fd = install(&prog,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	return fd == -EINVAL ? install(&prog, SECCOMP_FILTER_FLAG_NEW_LISTENER) : fd;
}

#else

int notifier_filter(uint64_t cookie)
{
	(void)cookie;
	return -ENOSYS;
}

#endif
