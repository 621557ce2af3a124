/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host's kernel says of a guest's threads: /proc, proc(5). Who is next on a CPU is
 * session_turns.c; not here: what a thread says itself.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/session_impl.h"

static int open_stat(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The letter of its state, 0: there is none such. */
static char read_state(int fd)
{
	char text[256], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

char session_host_state(pid_t pid, pid_t tid)
{
	int fd = open_stat(pid, tid);
	char state = fd < 0 ? 0 : read_state(fd);

	if (fd >= 0)
		close(fd);
	return state;
}

/* Asked often: the file of a thread that is on a CPU stays open, if there are not too many. */
#define MOST_KEPT 512

char session_thread_state(struct proc *p, unsigned v)
{
	int fd = p->stat_fd[v] - 1;
	char state;

	if (fd < 0)
		fd = open_stat((pid_t)p->seg->pid, (pid_t)session_vcpu(p, v)->tid);
	if (fd < 0)
		return 0;
	state = read_state(fd);
	if (p->tasks[v] && fd < MOST_KEPT)
		p->stat_fd[v] = fd + 1;
	else
		close(fd);
	return state;
}

bool session_host_gone(char state)
{
	return !state || state == 'Z' || state == 'X';
}

bool session_host_stopped(char state)
{
	return state == 'T' || state == 't';
}

/* In one and the same system call, and not while it waits for the machine before or after one. */
bool session_sleeps_in_call(struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint32_t bell = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE);
	uint64_t calls = __atomic_load_n(&vcpu->syscalls, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&vcpu->state, __ATOMIC_ACQUIRE) != SEG_SYSCALL ||
	    session_thread_state(p, v) != 'S')
		return false;
	return __atomic_load_n(&vcpu->state, __ATOMIC_ACQUIRE) == SEG_SYSCALL &&
	       __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) == bell &&
	       __atomic_load_n(&vcpu->syscalls, __ATOMIC_ACQUIRE) == calls;
}

void session_forget_stat(struct proc *p, unsigned v)
{
	if (p->stat_fd[v])
		close(p->stat_fd[v] - 1);
	p->stat_fd[v] = 0;
}
