/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's epoll. A kernel's event is ready once for each wake-up, and hangs up as
 * long as it has no buffer (perf ABI sheet A16 "poll"); the pipe that stands for it would be
 * ready for ever after its first token. So tokens are taken here as poll(2) does it, and what hangs
 * up is told beside what the host tells. What an epoll descriptor watches is known to the process
 * that told it, and to its forks; a program that inherits one over exec sees the tokens.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#include "client/preload.h"

REAL(int, epoll_ctl, (int ep, int op, int fd, struct epoll_event *e), (ep, op, fd, e))
REAL(int, epoll_pwait, (int ep, struct epoll_event *e, int max, int timeout, const sigset_t *mask),
     (ep, e, max, timeout, mask))

/* An event that an epoll descriptor watches. */
struct watched {
	int ep, fd;
	uint64_t id;
	struct epoll_event event;
	bool told; /* that it hangs up; with EPOLLET or EPOLLONESHOT once is enough */
	struct watched *next;
};

static struct watched *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of (@ep, @fd) in the list; its end: there is none. */
static struct watched **place(int ep, int fd)
{
	struct watched **at = &all;

	while (*at && ((*at)->ep != ep || (*at)->fd != fd))
		at = &(*at)->next;
	return at;
}

static void take_away(struct watched **at)
{
	struct watched *w = *at;

	*at = w->next;
	free(w);
}

/* After the host has taken it; the calls of others on the same pair are the client's to order. */
static void remember(int ep, int op, int fd, uint64_t id, const struct epoll_event *e)
{
	struct watched **at = place(ep, fd);

	if (*at)
		take_away(at);
	if (op == EPOLL_CTL_DEL || !id)
		return;
	at = place(ep, fd);
	*at = calloc(1, sizeof(**at));
	if (*at)
		**at = (struct watched){.ep = ep, .fd = fd, .id = id, .event = *e};
}

EXPORT int epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
	int rc = real_epoll_ctl(ep, op, fd, e);
	uint64_t id = preload_machine() > 0 && !rc ? preload_event(fd, NULL) : 0;

	if (!id && !all)
		return rc;
	pthread_mutex_lock(&lock);
	if (!rc)
		remember(ep, op, fd, id, e);
	pthread_mutex_unlock(&lock);
	return rc;
}

static bool is_once(const struct watched *w)
{
	return w->event.events & (EPOLLET | EPOLLONESHOT);
}

/* What hangs up now, appended to what is @used of @e; those that are closed are forgotten. */
static int add_ends(int ep, struct epoll_event *e, int used, int max)
{
	struct watched **at = &all, *w;

	while ((w = *at)) {
		short end;

		if (w->ep == ep && preload_event(w->fd, NULL) != w->id) {
			take_away(at);
			continue;
		}
		at = &w->next;
		if (w->ep != ep || used >= max || (w->told && is_once(w)))
			continue;
		end = preload_poll_at_once(w->fd);
		w->told = end;
		if (end)
			e[used++] = (struct epoll_event){.events = (uint32_t)end,
							 .data = w->event.data};
	}
	return used;
}

/* What the host says of pipes becomes what a kernel says of events: tokens are taken, and ends
 * are left to add_ends. Entries are matched by the client's data. */
static int settle(int ep, struct epoll_event *e, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		struct watched *w = all;

		while (w && (w->ep != ep || w->event.data.u64 != e[i].data.u64 ||
			     preload_event(w->fd, NULL) != w->id))
			w = w->next;
		if (w) {
			preload_drain(w->fd);
			e[i].events &=
				preload_poll_at_once(w->fd) ? 0 : EPOLLIN | EPOLLRDNORM | EPOLLHUP;
		}
		if (e[i].events)
			e[kept++] = e[i];
	}
	return kept;
}

static bool watches(int ep)
{
	for (const struct watched *w = all; w; w = w->next)
		if (w->ep == ep)
			return true;
	return false;
}

static int left_of(int timeout, uint64_t since)
{
	uint64_t gone = (preload_host_ns(CLOCK_MONOTONIC) - since) / 1000000;

	return timeout < 0 ? timeout : gone >= (uint64_t)timeout ? 0 : timeout - (int)gone;
}

EXPORT int epoll_pwait(int ep, struct epoll_event *e, int max, int timeout, const sigset_t *mask)
{
	uint64_t since;
	bool ours;
	int n, left = timeout;

	if (preload_machine() <= 0 || !all || max <= 0)
		return real_epoll_pwait(ep, e, max, timeout, mask);
	pthread_mutex_lock(&lock);
	ours = watches(ep);
	n = ours ? add_ends(ep, e, 0, max) : 0;
	pthread_mutex_unlock(&lock);
	if (!ours)
		return real_epoll_pwait(ep, e, max, timeout, mask);
	since = preload_host_ns(CLOCK_MONOTONIC);
	for (;;) {
		int more = n < max ? real_epoll_pwait(ep, e + n, max - n, n ? 0 : left, mask) : 0;

		if (more < 0)
			return n ? n : more;
		if (!more)
			return n;
		pthread_mutex_lock(&lock);
		n += settle(ep, e + n, more);
		if (!n)
			n = add_ends(ep, e, 0, max);
		pthread_mutex_unlock(&lock);
		left = left_of(timeout, since);
		if (n || !left) /* else a token that was for nothing the caller waits for */
			return n;
	}
}

EXPORT int epoll_wait(int ep, struct epoll_event *e, int max, int timeout)
{
	return epoll_pwait(ep, e, max, timeout, NULL);
}

EXPORT int epoll_pwait2(int ep, struct epoll_event *e, int max, const struct timespec *timeout,
			const sigset_t *mask)
{
	int64_t ms = -1;

	if (timeout)
		ms = (int64_t)timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000;
	return epoll_pwait(ep, e, max, ms > INT32_MAX ? INT32_MAX : (int)ms, mask);
}
