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

/* Two files of a thread in /proc: stat has the letter of its state, syscall whether it runs. */
static int open_file(pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void open_files(struct host_files *f, pid_t pid, pid_t tid)
{
	f->stat = open_file(pid, tid, "stat");
	f->call = f->stat < 0 ? -1 : open_file(pid, tid, "syscall");
}

static void close_files(struct host_files *f)
{
	if (f->stat >= 0)
		close(f->stat);
	if (f->call >= 0)
		close(f->call);
}

/* 0: there is none such. */
static char read_letter(int fd)
{
	char text[256], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

static bool runs(int fd)
{
	static const char running[] = "running";
	char text[sizeof(running) - 1];

	return pread(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) &&
	       !memcmp(text, running, sizeof(text));
}

/*
 * The kernel writes S before a thread sleeps, and while it looks, awake, whether what it waits for
 * is there (as a parent does whose child has just ended). That it has left its CPU is told to those
 * who may trace it; to others S is all there is.
 */
static char read_state(const struct host_files *f)
{
	char letter = f->stat < 0 ? 0 : read_letter(f->stat);

	return letter == 'S' && f->call >= 0 && runs(f->call) ? 'R' : letter;
}

char session_host_state(pid_t pid, pid_t tid)
{
	struct host_files f;
	char state;

	open_files(&f, pid, tid);
	state = read_state(&f);
	close_files(&f);
	return state;
}

/* Asked often: the files of a thread that is on a CPU stay open, if there are not too many. */
#define MOST_KEPT 512

char session_thread_state(struct proc *p, unsigned v)
{
	struct host_files *f = &p->host[v];
	char state;

	if (!p->host_open[v])
		open_files(f, (pid_t)p->seg->pid, (pid_t)session_vcpu(p, v)->tid);
	state = read_state(f);
	p->host_open[v] = p->tasks[v] && f->stat >= 0 && f->stat < MOST_KEPT && f->call < MOST_KEPT;
	if (!p->host_open[v])
		close_files(f);
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

void session_forget_state(struct proc *p, unsigned v)
{
	if (p->host_open[v])
		close_files(&p->host[v]);
	p->host_open[v] = false;
}
