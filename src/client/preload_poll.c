/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's poll: what poll(2) says of an event's descriptor is not what it says of the
 * socket that stands for it. perf ABI sheet A16 ("poll"), C3.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "client/preload.h"

REAL(int, poll, (struct pollfd * p, nfds_t n, int t), (p, n, t))
REAL(int, ppoll, (struct pollfd * p, nfds_t n, const struct timespec *t, const sigset_t *s),
     (p, n, t, s))

/* ---- poll ---- */

static void drain_tokens(int fd)
{
	char bytes[64];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* What needs no waiting: an event without a buffer, or whose task is gone, hangs up. */
static short at_once(int fd)
{
	unsigned cell;
	uint64_t id = preload_event(fd, &cell);
	const struct board_cell *c = id ? preload_cell(id, cell) : NULL;
	uint32_t flags;

	if (!c)
		return 0;
	flags = __atomic_load_n(&c->flags, __ATOMIC_ACQUIRE);
	return flags & BOARD_HUP || !(flags & BOARD_RING) ? POLLHUP : 0;
}

/* The end of a wait: tokens are taken, and an end that came meanwhile is told instead of them. */
static int settle(struct pollfd *p, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (p[i].revents && preload_event(p[i].fd, NULL)) {
			drain_tokens(p[i].fd);
			p[i].revents = at_once(p[i].fd)
					       ? POLLHUP
					       : (short)(p[i].revents & (POLLIN | POLLRDNORM) &
							 p[i].events);
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
		if (p[i].fd >= 0 && at_once(p[i].fd))
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
		if (p[i].fd >= 0 && at_once(p[i].fd))
			p[i].revents = POLLHUP;
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
