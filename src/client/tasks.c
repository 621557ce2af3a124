/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tasks that clients name: processes and threads of the host. Those that run under the engine are the session's;
 * the others exist in the core so that events can be opened on them, wait for their exec, and hang up at their end.
 * perf ABI sheet A11, B6, C6.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/gate_impl.h"

#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD, Linux 6.9 */
#define GENERATIONS	16     /* how far up an ancestor with events is looked for */

struct facts {
	pid_t tgid, ppid;
	uid_t uid;
	char comm[16];
};

static int read_facts(pid_t tid, struct facts *f)
{
	char path[64], line[256];
	struct stat st;
	int n, seen = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return -ESRCH;
	memset(f, 0, sizeof(*f));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Name: %15[^\n]", f->comm) == 1)
			seen++;
		else if (sscanf(line, "State: %*c (zombie%n", &n) == 0 && strstr(line, "(zombie)") && line[0] == 'S')
			seen = -16; /* gone, but for its parent */
		else if (sscanf(line, "Tgid: %d", &n) == 1)
			f->tgid = n;
		else if (sscanf(line, "PPid: %d", &n) == 1)
			f->ppid = n;
	}
	f->uid = fstat(fileno(file), &st) ? (uid_t)-1 : st.st_uid;
	fclose(file);
	return seen > 0 && f->tgid ? 0 : -ESRCH;
}

static void watch_task(struct gate *g, pid_t tid, bool thread)
{
	struct host_task *t = calloc(1, sizeof(*t));
	int fd = (int)syscall(SYS_pidfd_open, tid, thread ? PIDFD_OF_THREAD : 0);

	if (!t || fd < 0 || gate_watch(g, &t->source, SOURCE_TASK, fd)) {
		if (fd >= 0)
			close(fd);
		free(t);
		return;
	}
	t->tid = tid;
	t->next = g->tasks;
	g->tasks = t;
}

static struct quipu_task *make_task(struct gate *g, pid_t tid, const struct facts *f, struct quipu_task *parent)
{
	struct quipu_task *task = quipu_task_new(g->core, parent, f->tgid, tid, tid != f->tgid, f->comm, 0);

	if (!task)
		return NULL;
	quipu_task_set_uid(task, f->uid);
	watch_task(g, tid, tid != f->tgid);
	return task;
}

/* The task of a thread of the host, known or made now; NULL when there is no such thread. */
struct quipu_task *tasks_find(struct gate *g, pid_t tid)
{
	struct quipu_task *task = quipu_task_find(g->core, tid);
	struct facts f;

	if (task || tid <= 0 || read_facts(tid, &f))
		return task;
	return make_task(g, tid, &f, NULL);
}

/*
 * The nearest ancestor that is known has its events inherited down to @pid: forks of processes without a perf call are
 * not reported, so what happened is made up for here, before the new program runs.
 */
static struct quipu_task *inherit_down(struct gate *g, pid_t pid, unsigned generations)
{
	struct quipu_task *parent, *task = quipu_task_find(g->core, pid);
	struct facts f;

	if (task || !generations || pid <= 1 || read_facts(pid, &f))
		return task;
	parent = inherit_down(g, f.ppid, generations - 1);
	return parent ? make_task(g, pid, &f, parent) : NULL;
}

struct quipu_task *tasks_started(void *arg, pid_t pid, const char *comm)
{
	struct gate *g = arg;
	struct quipu_task *task = inherit_down(g, pid, GENERATIONS);
	struct facts f;

	if (task)
		return task;
	task = quipu_task_new(g->core, NULL, pid, pid, false, comm, 0);
	if (task && !read_facts(pid, &f))
		quipu_task_set_uid(task, f.uid);
	return task;
}

bool tasks_is_guest(const struct gate *g, const struct quipu_task *task)
{
	return session_has(g->session, quipu_task_pid(task));
}

void tasks_exec(struct gate *g, pid_t pid)
{
	struct facts f;
	struct quipu_task *task;

	if (read_facts(pid, &f))
		return;
	task = inherit_down(g, pid, GENERATIONS);
	if (!task)
		return;
	g->follow_from = gate_host_ns(); /* a helper that waits: the machine's time goes with the host's */
	quipu_task_exec(task, f.comm, 0);
	session_sync(g->session);
}

void tasks_ended(struct gate *g, struct host_task *ended)
{
	struct host_task **at = &g->tasks;
	struct quipu_task *task;
	pid_t tid = ended->tid;

	while (*at != ended)
		at = &(*at)->next;
	*at = ended->next;
	gate_bury(g, &ended->source);
	session_serve(g->session); /* what ran under the engine ends there */
	ask_clock(g);
	task = quipu_task_find(g->core, tid);
	if (task)
		quipu_task_exit(task, 0);
	gate_changed(g);
}

/* The host's clock is followed again a while after the last program: its client reads first. */
void tasks_guest_ended(void *arg, pid_t pid)
{
	struct gate *g = arg;

	(void)pid;
	g->follow_from = gate_host_ns() + UINT64_C(200000000);
}
