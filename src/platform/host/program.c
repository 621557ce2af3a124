// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs and processes of the host: a child that waits before its exec, so that its events can be
 * opened first, and the threads of a process (/proc/PID/task).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/host/host.h"

#define POLL_MS 20 /* where there are no pidfds */

/* The child: nothing but system calls between fork and exec. */
static void __attribute__((noreturn)) wait_and_run(int go, int error, char *const argv[])
{
	char c;
	int err;

	/* Nothing is ever written: the end of the pipe is the word. A parent that died says so too.
	 */
	while (read(go, &c, 1) < 0 && errno == EINTR)
		;
	execvp(argv[0], argv);
	err = errno;
	(void)!write(error, &err, sizeof(err));
	_exit(127);
}

int host_hold(struct host_child *c, char *const argv[])
{
	int go[2], error[2];

	*c = (struct host_child){.pid = -1, .go = -1, .error = -1, .pidfd = -1};
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(error, O_CLOEXEC)) {
		int err = -errno;

		close(go[0]);
		close(go[1]);
		return err;
	}
	c->pid = fork();
	if (!c->pid) {
		close(go[1]);
		close(error[0]);
		wait_and_run(go[0], error[1], argv);
	}
	close(go[0]);
	close(error[1]);
	c->go = go[1];
	c->error = error[0];
	if (c->pid > 0)
		return 0;
	close(c->go);
	close(c->error);
	return -EAGAIN;
}

int host_release(struct host_child *c)
{
	int err = 0;
	ssize_t n;

	close(c->go);
	c->go = -1;
	do
		n = read(c->error, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(c->error);
	c->error = -1;
	return n == (ssize_t)sizeof(err) ? -err : 0;
}

static bool wait_for(struct host_child *c, int flags)
{
	pid_t got = wait4(c->pid, &c->status, flags, &c->usage);

	c->reaped = got == c->pid || (got < 0 && errno == ECHILD);
	return c->reaped;
}

bool host_reap(struct host_child *c, int timeout_ms)
{
	struct pollfd p = {.events = POLLIN};

	if (c->reaped || timeout_ms < 0)
		return c->reaped || wait_for(c, 0);
	if (c->pidfd < 0)
		c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	p.fd = c->pidfd;
	poll(&p, p.fd >= 0, p.fd >= 0 || timeout_ms < POLL_MS ? timeout_ms : POLL_MS);
	return wait_for(c, WNOHANG);
}

void host_end(struct host_child *c)
{
	if (c->pid > 0 && !c->reaped) {
		if (c->go >= 0) /* it never ran, and must not now */
			kill(c->pid, SIGKILL);
		else if (!wait_for(c, WNOHANG))
			kill(c->pid, SIGTERM);
		while (!c->reaped && !wait_for(c, 0))
			;
	}
	if (c->go >= 0)
		close(c->go);
	if (c->error >= 0)
		close(c->error);
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->go = c->error = c->pidfd = -1;
}

static int by_tid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int host_tasks(pid_t pid, pid_t **tids)
{
	char path[64];
	pid_t *v = NULL;
	int n = 0, room = 0;
	DIR *d;

	*tids = NULL;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (n == room) {
			pid_t *grown =
				realloc(v, (size_t)(room = room ? 2 * room : 64) * sizeof(*v));

			if (!grown) {
				free(v);
				closedir(d);
				return -ENOMEM;
			}
			v = grown;
		}
		v[n++] = (pid_t)atoi(e->d_name);
	}
	closedir(d);
	if (!n)
		free(v);
	else
		qsort(v, (size_t)n, sizeof(*v), by_tid);
	*tids = n ? v : NULL;
	return n ? n : -ESRCH;
}
