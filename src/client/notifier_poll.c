/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits of clients below the notifier (notifier.c). The host's kernel does the waiting, for tokens
 * on the events' sockets; before it, what poll(2) says of an event at once is answered, and tokens
 * of wake-ups that have been told already are taken away. perf ABI sheet A16 ("poll"), C3.
 *
 * A wait that the kernel did has been told of a wake-up without the machine's knowing; so has it
 * been when nothing is unread afterwards, and a client is woken once too often rather than not.
 * Sets of select(2) and epoll(7) hear of wake-ups alone: they see no hang-up before the next token.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/notifier_impl.h"

#define MOST_POLLED 4096u

static bool drain(int copy)
{
	char bytes[64];
	bool any = false;

	while (recv(copy, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		any = true;
	return any;
}

static bool has_token(int copy)
{
	char byte;

	return recv(copy, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
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
		p->revents = at_once(c->n, w);
		if (!p->revents && woken(c, w, drain(copy)))
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

int64_t notifier_poll(struct call *c)
{
	size_t n = (size_t)c->args[1];
	bool event[MOST_POLLED] = {false}, any = false;
	struct pollfd *p = (struct pollfd *)c->n->payload;
	int64_t ready = 0;

	if (!n || n > MOST_POLLED ||
	    notifier_peek(c, c->args[0], p, n * sizeof(*p)) != (ssize_t)(n * sizeof(*p)))
		return PASS;
	for (size_t i = 0; i < n; i++) {
		event[i] = look(c, &p[i]);
		any = any || p[i].revents;
	}
	if (!any)
		return PASS;
	for (size_t i = 0; i < n; i++) {
		if (!event[i])
			p[i].revents = ready_now(c, &p[i]);
		ready += p[i].revents != 0;
	}
	return notifier_poke(c, c->args[0], p, n * sizeof(*p)) ? ready : -EFAULT;
}

/* A token that was told of is taken away, so that the wait is one. */
static void settle(struct call *c, int fd)
{
	uint64_t id;
	int copy = notifier_event(c, fd, &id);
	struct watched *w = copy < 0 ? NULL : notifier_watched(c, id);

	if (w && has_token(copy) && !woken(c, w, true))
		drain(copy);
	if (w)
		w->handed = true;
	if (copy >= 0)
		close(copy);
}

int64_t notifier_select(struct call *c)
{
	uint64_t n = c->args[0] < FD_SETSIZE ? c->args[0] : FD_SETSIZE;
	fd_set set;

	if (n <= NOTIFIER_FIRST_FD || !c->args[1])
		return PASS;
	memset(&set, 0, sizeof(set));
	if (notifier_peek(c, c->args[1], &set, (n + 63) / 64 * 8) <= 0)
		return PASS;
	for (int fd = NOTIFIER_FIRST_FD; fd < (int)n; fd++)
		if (FD_ISSET(fd, &set))
			settle(c, fd);
	return PASS;
}

int64_t notifier_epoll_ctl(struct call *c)
{
	uint64_t id;
	int copy = notifier_event(c, (int)c->args[2], &id);
	struct watched *w = copy < 0 ? NULL : notifier_watched(c, id);

	if (copy >= 0)
		close(copy);
	if (!w)
		return PASS;
	c->party->nepoll -= w->epoll >= 0;
	w->epoll = c->args[1] == EPOLL_CTL_DEL ? -1 : (int)c->args[2];
	c->party->nepoll += w->epoll >= 0;
	return PASS;
}

int64_t notifier_epoll_wait(struct call *c)
{
	struct party *p = c->party;

	for (size_t i = 0; p->nepoll && i < p->nwatched; i++)
		if (p->watched[i].epoll >= 0)
			settle(c, p->watched[i].epoll);
	return PASS;
}
