/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's waiting. What poll(2) says of an event's descriptor is not what it says of
 * the pipe that stands for it (perf ABI sheet A16 "poll", C3); and a kernel has finished with a
 * task, its last records written, before its parent hears of its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "client/preload.h"

REAL(int, poll, (struct pollfd * p, nfds_t n, int t), (p, n, t))
REAL(int, ppoll, (struct pollfd * p, nfds_t n, const struct timespec *t, const sigset_t *s),
     (p, n, t, s))

/* ---- poll ---- */

void preload_drain(int fd)
{
	char bytes[512];

	struct iovec room = {.iov_base = bytes, .iov_len = sizeof(bytes)};

	/* A read that never waits, whatever the client's flags are. */
	while (vmsplice(fd, &room, 1, SPLICE_F_NONBLOCK) > 0)
		;
}

/* What needs no waiting: an event without a buffer, or whose task is gone, hangs up; one whose PMU
 * is gone is an error, and nothing else. */
short preload_poll_at_once(int fd)
{
	unsigned cell;
	uint64_t id = preload_event(fd, &cell);
	const struct board_cell *c = id ? preload_cell(id, cell) : NULL;
	uint32_t flags;

	if (!c)
		return 0;
	flags = __atomic_load_n(&c->flags, __ATOMIC_ACQUIRE);
	if (flags & BOARD_ERR)
		return POLLERR;
	return flags & BOARD_HUP || !(flags & BOARD_RING) ? POLLHUP : 0;
}

/* The end of a wait: tokens are taken, and an end that came meanwhile is told instead of them. */
static int settle(struct pollfd *p, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (p[i].revents && preload_event(p[i].fd, NULL)) {
			short end = preload_poll_at_once(p[i].fd);

			preload_drain(p[i].fd);
			if (end)
				p[i].revents = end;
			else /* POLLHUP: there is no machine any more */
				p[i].revents &=
					(short)((p[i].events & (POLLIN | POLLRDNORM)) | POLLHUP);
		}
		ready += p[i].revents != 0;
	}
	return ready;
}

static bool any_event(const struct pollfd *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (p[i].fd >= 0 && preload_event(p[i].fd, NULL))
			return true;
	return false;
}

static bool any_at_once(const struct pollfd *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (p[i].fd >= 0 && preload_poll_at_once(p[i].fd))
			return true;
	return false;
}

/* Those that hang up already are told beside what else is ready now. */
static int poll_now(struct pollfd *p, nfds_t n)
{
	int rc = real_poll(p, n, 0);

	if (rc < 0)
		return rc;
	for (nfds_t i = 0; i < n; i++)
		if (p[i].fd >= 0 && preload_poll_at_once(p[i].fd))
			p[i].revents = preload_poll_at_once(p[i].fd);
	return settle(p, n);
}

EXPORT int ppoll(struct pollfd *p, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	int rc;

	if (preload_machine() <= 0 || !any_event(p, n))
		return real_ppoll(p, n, timeout, mask);
	do {
		if (any_at_once(p, n))
			return poll_now(p, n);
		rc = real_ppoll(p, n, timeout, mask);
		if (rc < 0 && errno == EINTR)
			preload_sync(); /* it may have been the end of a child */
		if (rc > 0)
			rc = settle(p, n) ? settle(p, n) : -2;
	} while (rc == -2 && !timeout); /* a token that was for nothing the caller waits for */
	return rc == -2 ? 0 : rc;
}

EXPORT int poll(struct pollfd *p, nfds_t n, int timeout)
{
	struct timespec t = {timeout / 1000, (timeout % 1000) * 1000000L};

	if (preload_machine() <= 0 || !any_event(p, n))
		return real_poll(p, n, timeout);
	return ppoll(p, n, timeout < 0 ? NULL : &t, NULL);
}

/* ---- select: the same by poll ---- */

REAL(int, pselect,
     (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t, const sigset_t *s),
     (n, r, w, e, t, s))

REAL(int, select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t), (n, r, w, e, t))

static bool in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

/* Keeps @fd in @set if @ready; 1 if it stays. */
static int keep(fd_set *set, int fd, bool ready)
{
	if (!in(set, fd))
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

/* The sets as poll has them; 0: there is no event in them. */
static nfds_t gather(int n, const fd_set *r, const fd_set *w, const fd_set *e,
		     struct pollfd p[FD_SETSIZE])
{
	nfds_t used = 0;

	if (preload_machine() <= 0)
		return 0;
	for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
		short events = (short)((in(r, fd) ? POLLIN : 0) | (in(w, fd) ? POLLOUT : 0) |
				       (in(e, fd) ? POLLPRI : 0));

		if (events)
			p[used++] = (struct pollfd){.fd = fd, .events = events};
	}
	return any_event(p, used) ? used : 0;
}

static int scatter(const struct pollfd *p, nfds_t used, fd_set *r, fd_set *w, fd_set *e)
{
	int ready = 0;

	for (nfds_t i = 0; i < used; i++)
		if (p[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
	for (nfds_t i = 0; i < used; i++) {
		short got = p[i].revents;

		ready += keep(r, p[i].fd, got & (POLLIN | POLLRDNORM | POLLHUP | POLLERR));
		ready += keep(w, p[i].fd, got & (POLLOUT | POLLERR));
		ready += keep(e, p[i].fd, got & POLLPRI);
	}
	return ready;
}

EXPORT int pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *timeout,
		   const sigset_t *mask)
{
	struct pollfd p[FD_SETSIZE];
	nfds_t used = gather(n, r, w, e, p);
	int rc;

	if (!used)
		return real_pselect(n, r, w, e, timeout, mask);
	rc = ppoll(p, used, timeout, mask);
	return rc < 0 ? rc : scatter(p, used, r, w, e);
}

EXPORT int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *timeout)
{
	struct pollfd p[FD_SETSIZE];
	nfds_t used = gather(n, r, w, e, p);
	struct timespec t;
	int rc;

	if (!used)
		return real_select(n, r, w, e, timeout);
	if (timeout)
		t = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000};
	rc = ppoll(p, used, timeout ? &t : NULL, NULL);
	return rc < 0 ? rc : scatter(p, used, r, w, e);
}

/* ---- the end of children ---- */

REAL(pid_t, wait4, (pid_t pid, int *s, int o, struct rusage *u), (pid, s, o, u))
REAL(int, waitid, (idtype_t t, id_t id, siginfo_t *i, int o), (t, id, i, o))

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	pid_t got = real_wait4(pid, status, options, usage);

	if (got > 0)
		preload_sync();
	return got;
}

EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	return wait4(pid, status, options, NULL);
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	return wait4(-1, status, options, usage);
}

EXPORT pid_t wait(int *status)
{
	return wait4(-1, status, 0, NULL);
}

EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	int rc = real_waitid(type, id, info, options);

	if (!rc)
		preload_sync();
	return rc;
}
