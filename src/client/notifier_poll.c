/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits of clients below the notifier (notifier.c). The host's kernel does the waiting, for tokens
 * on the events' pipes; before it, what poll(2) says of an event at once is answered, and tokens
 * of wake-ups that have been told already are taken away. perf ABI sheet A16 ("poll"), C3.
 *
 * A wait that the kernel did has been told of a wake-up without the machine's knowing; so has it
 * been when nothing is unread afterwards, and a client is woken once too often rather than not.
 * An event counts for one epoll set, the last that it was put into.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/notifier_impl.h"

#define MOST_POLLED 4096u

static bool drain(int copy)
{
	char bytes[512];
	struct iovec room = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	bool any = false;

	while (vmsplice(copy, &room, 1, SPLICE_F_NONBLOCK) > 0)
		any = true;
	return any;
}

/* The end of an event, and one without a buffer: nothing to wait for. */
static short at_once(const struct notifier *n, const struct watched *w)
{
	const struct board_cell *cell =
		n->board && w->cell < BOARD_CELLS ? &n->board->cells[w->cell] : NULL;
	uint32_t flags;

	if (!cell || __atomic_load_n(&cell->id, __ATOMIC_ACQUIRE) != w->id)
		return POLLHUP;
	flags = __atomic_load_n(&cell->flags, __ATOMIC_ACQUIRE);
	if (flags & BOARD_ERR)
		return POLLERR;
	return flags & BOARD_HUP || !(flags & BOARD_RING) ? POLLHUP : 0;
}

/* A wake-up since it was last told of one? */
static bool woken(struct call *c, struct watched *w, bool token)
{
	struct exchange x = {.request = {.op = GATE_POLL, .event = w->id}};
	int64_t bits = notifier_ask(c, &x);
	bool unread = x.reply.values[0];

	return bits >= 0 && (bits & POLLIN || token) && (!w->handed || unread);
}

/* What poll(2) says at once of an event among @p; 0: wait. False: it is no event. */
static bool look(struct call *c, struct pollfd *p)
{
	uint64_t id;
	int copy = p->fd < NOTIFIER_FIRST_FD ? -1 : notifier_event(c, p->fd, &id);
	struct watched *w = copy < 0 ? NULL : notifier_watched(c, id);

	p->revents = 0;
	if (w) {
		bool wake = woken(c, w, drain(copy)); /* the machine knows of ends after this */

		p->revents = at_once(c->n, w);
		if (!p->revents && wake)
			p->revents = p->events & (POLLIN | POLLRDNORM);
		w->handed = !p->revents;
	}
	if (copy >= 0)
		close(copy);
	return w;
}

/* What others among @p are ready for now, beside an event that is. */
static short ready_now(struct call *c, const struct pollfd *p)
{
	struct pollfd one = {.events = p->events};

	if (p->fd < 0)
		return 0;
	one.fd = pidfd_getfd(c->party->pidfd, p->fd, 0);
	if (one.fd < 0)
		return POLLNVAL;
	if (poll(&one, 1, 0) < 0)
		one.revents = 0;
	close(one.fd);
	return one.revents;
}

/* How many of @p are ready, if an event is among them; 0: the kernel shall wait. */
static int64_t look_at_all(struct call *c, struct pollfd *p, size_t n)
{
	bool event[MOST_POLLED], any = false;
	int64_t ready = 0;

	for (size_t i = 0; i < n; i++) {
		event[i] = look(c, &p[i]);
		any = any || p[i].revents;
	}
	for (size_t i = 0; any && i < n; i++) {
		if (!event[i])
			p[i].revents = ready_now(c, &p[i]);
		ready += p[i].revents != 0;
	}
	return ready;
}

int64_t notifier_poll(struct call *c)
{
	size_t n = (size_t)c->args[1];
	struct pollfd *p = (struct pollfd *)c->n->payload;
	int64_t ready;

	if (!n || n > MOST_POLLED ||
	    notifier_peek(c, c->args[0], p, n * sizeof(*p)) != (ssize_t)(n * sizeof(*p)))
		return PASS;
	ready = look_at_all(c, p, n);
	if (!ready)
		return PASS;
	return notifier_poke(c, c->args[0], p, n * sizeof(*p)) ? ready : -EFAULT;
}

/* ---- select: the same by poll ---- */

static const struct {
	short events, ready;
} sets[3] = {
	{POLLIN, POLLIN | POLLHUP | POLLERR}, {POLLOUT, POLLOUT | POLLERR}, {POLLPRI, POLLPRI}};

/* The sets of the call as poll has them; false: there is no event's number in them. */
static bool gather(struct call *c, uint64_t n, struct pollfd *p, size_t *used)
{
	size_t bytes = (size_t)(n + 63) / 64 * 8;
	fd_set in[3];
	bool any = false;

	memset(in, 0, sizeof(in));
	for (int k = 0; k < 3; k++)
		if (c->args[1 + k] &&
		    notifier_peek(c, c->args[1 + k], &in[k], bytes) != (ssize_t)bytes)
			return false;
	for (int fd = 0; fd < (int)n; fd++) {
		short events = 0;

		for (int k = 0; k < 3; k++)
			events |= FD_ISSET(fd, &in[k]) ? sets[k].events : 0;
		if (events)
			p[(*used)++] = (struct pollfd){.fd = fd, .events = events};
		any = any || (events && fd >= NOTIFIER_FIRST_FD);
	}
	return any;
}

int64_t notifier_select(struct call *c)
{
	uint64_t n = c->args[0] < FD_SETSIZE ? c->args[0] : FD_SETSIZE;
	size_t bytes = (size_t)(n + 63) / 64 * 8, used = 0;
	struct pollfd *p = (struct pollfd *)c->n->payload;
	int64_t ready = 0;
	fd_set out[3];

	if (n <= NOTIFIER_FIRST_FD || !gather(c, n, p, &used) || !look_at_all(c, p, used))
		return PASS;
	memset(out, 0, sizeof(out));
	for (size_t i = 0; i < used; i++)
		for (int k = 0; k < 3; k++)
			if (p[i].events & sets[k].events && p[i].revents & sets[k].ready) {
				FD_SET(p[i].fd, &out[k]);
				ready++;
			}
	for (int k = 0; k < 3; k++)
		if (c->args[1 + k] && !notifier_poke(c, c->args[1 + k], &out[k], bytes))
			return -EFAULT;
	return ready;
}

/* ---- epoll ---- */

int64_t notifier_epoll_ctl(struct call *c)
{
	struct epoll_event e = {0};
	uint64_t id;
	int copy = notifier_event(c, (int)c->args[2], &id);
	struct watched *w = copy < 0 ? NULL : notifier_watched(c, id);

	if (copy >= 0)
		close(copy);
	if (!w)
		return PASS;
	c->party->nsets -= w->set >= 0;
	w->set = c->args[1] == EPOLL_CTL_DEL ||
				 notifier_peek(c, c->args[3], &e, sizeof(e)) != sizeof(e)
			 ? -1
			 : (int)c->args[0];
	w->fd = (int)c->args[2];
	w->events = e.events;
	w->data = e.data.u64;
	c->party->nsets += w->set >= 0;
	return PASS;
}

/* What a set says at once of an event in it. */
static bool look_in_set(struct call *c, struct watched *w, struct epoll_event *out)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	uint64_t id;
	int copy = notifier_event(c, w->fd, &id);

	if (copy >= 0)
		close(copy);
	if (id != w->id) { /* closed: it has left the set */
		w->set = -1;
		c->party->nsets--;
		return false;
	}
	look(c, &p);
	*out = (struct epoll_event){
		.events = (uint32_t)p.revents & (w->events | EPOLLHUP | EPOLLERR),
		.data.u64 = w->data,
	};
	if (!out->events)
		return false;
	/* Told once: by its own flag, or because an end is one edge. */
	if (w->events & EPOLLONESHOT ||
	    (w->events & EPOLLET && out->events & (EPOLLHUP | EPOLLERR))) {
		w->set = -1;
		c->party->nsets--;
	}
	return true;
}

/* What else in the set is ready now. */
static int others_in_set(struct call *c, struct epoll_event *out, int room)
{
	int copy = room ? pidfd_getfd(c->party->pidfd, (int)c->args[0], 0) : -1, n;

	if (copy < 0)
		return 0;
	n = epoll_wait(copy, out, room, 0);
	close(copy);
	return n < 0 ? 0 : n;
}

int64_t notifier_epoll_wait(struct call *c)
{
	struct epoll_event *out = (struct epoll_event *)c->n->payload;
	struct party *p = c->party;
	int most = (int)c->args[2] < (int)MOST_POLLED ? (int)c->args[2] : (int)MOST_POLLED, n = 0;

	for (size_t i = 0; p->nsets && n < most && i < p->nwatched; i++)
		if (p->watched[i].set == (int)c->args[0])
			n += look_in_set(c, &p->watched[i], &out[n]);
	if (!n)
		return PASS;
	n += others_in_set(c, out + n, most - n);
	return notifier_poke(c, c->args[1], out, (size_t)n * sizeof(*out)) ? n : -EFAULT;
}
