/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's side of events' descriptors: perf ABI sheet C3, D4. An event's is the read end of a
 * pipe of which the machine holds the write end. A token, one byte, is a wake-up, or with O_ASYNC
 * an overflow; POLLERR at our end is the close of the client's last copy.
 *
 * A pipe outlives its event: a read end is opened anew for the next one, which is a new file, with
 * flags and an owner of its own. A few are kept, always as many: making and watching a pair of
 * anything takes longer than all the rest of an open. Who may open a pipe that it has been given
 * again, root or we, could keep it open past its event; that is a client's copy like any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gate_impl.h"

#define SPARES	   4u
#define PIPE_BYTES 65536u /* that a pipe takes */

/* A new pipe, watched; the read end is returned. */
static int make_pipe(struct gate *g, struct gate_event *e)
{
	struct stat st;
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (fchmod(ends[0], GATE_PIPE_MODE) || fstat(ends[0], &st) ||
	    fcntl(ends[1], F_SETFL, O_NONBLOCK))
		err = -errno;
	/* Edges: one that is kept has no reader, for as long as it is. */
	if (!err)
		err = gate_watch(g, &e->source, SOURCE_EVENT, ends[1], EPOLLET);
	if (err) {
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	e->pipe = (uint32_t)st.st_ino;
	snprintf(e->name, sizeof(e->name), "%d", ends[1]);
	e->closed = true;
	return ends[0];
}

/* Another read end of its pipe. */
static int open_again(const struct gate *g, const struct gate_event *e, int flags)
{
	int fd = openat(g->own_fds, e->name, O_RDONLY | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

/* What nobody has taken of its tokens is not the next event's. */
static bool wipe(const struct gate *g, struct gate_event *e)
{
	char bytes[4096];
	int fd = e->told ? open_again(g, e, O_NONBLOCK) : -1;
	ssize_t n = 1;

	for (size_t i = 0; fd >= 0 && n > 0 && i <= PIPE_BYTES / sizeof(bytes); i++)
		n = read(fd, bytes, sizeof(bytes));
	e->told = e->told && (fd < 0 || n > 0 || errno != EAGAIN);
	if (fd >= 0)
		close(fd);
	return !e->told;
}

static void keep(struct gate *g, struct gate_event *e)
{
	struct gate_event fresh = {
		.source = e->source, .pipe = e->pipe, .closed = true, .chain = g->spares};

	memcpy(fresh.name, e->name, sizeof(fresh.name));
	*e = fresh;
	g->spares = e;
	g->nspares++;
}

/* A client's end that nobody catches (notifier.h) finds no counts when it is read, and shall not
 * wait for any; else it is blocking at first, as perf_event_open's. */
static int flags_of(const struct gate *g)
{
	return g->config.notifier ? O_NONBLOCK : 0;
}

static struct gate_event *make(struct gate *g, int *fd)
{
	struct gate_event *e = calloc(1, sizeof(*e));

	*fd = e ? make_pipe(g, e) : -ENOMEM;
	if (*fd >= 0 && flags_of(g))
		fcntl(*fd, F_SETFL, flags_of(g));
	if (*fd >= 0)
		return e;
	free(e);
	return NULL;
}

struct gate_event *descriptor_take(struct gate *g, int *fd)
{
	struct gate_event *e = g->spares;

	if (!e)
		return make(g, fd);
	*fd = open_again(g, e, flags_of(g));
	if (*fd == -EMFILE || *fd == -ENFILE)
		return NULL;
	g->spares = e->chain;
	g->nspares--;
	e->chain = NULL;
	if (*fd >= 0)
		return e;
	gate_bury(g, &e->source); /* no /proc: each has a new one */
	return make(g, fd);
}

/* As many as ever: who looks for leaks of ours finds none. */
static int refill(struct gate *g)
{
	while (g->own_fds >= 0 && g->nspares < SPARES) {
		int fd;
		struct gate_event *e = make(g, &fd);

		if (!e)
			return fd;
		close(fd);
		keep(g, e);
	}
	return 0;
}

void descriptor_leave(struct gate *g, struct gate_event *e)
{
	if (g->nspares < SPARES && g->own_fds >= 0 && wipe(g, e))
		keep(g, e);
	else
		gate_bury(g, &e->source);
	refill(g); /* without any the next event has a new one */
}

void descriptor_token(struct gate_event *e)
{
	int waiting = 0;

	if (!e || e->closed)
		return;
	if (!e->async && !ioctl(e->source.fd, FIONREAD, &waiting) && waiting)
		return;
	e->told = true;
	if (write(e->source.fd, "", 1) < 0)
		return; /* full, or closed by now: nobody misses it (SIGPIPE is ignored) */
}

int descriptors_begin(struct gate *g)
{
	g->own_fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return refill(g);
}

void descriptors_end(struct gate *g)
{
	while (g->spares) {
		struct gate_event *e = g->spares;

		g->spares = e->chain;
		gate_bury(g, &e->source);
	}
	g->nspares = SPARES; /* what leaves now is kept no longer */
	if (g->own_fds >= 0)
		close(g->own_fds);
	g->own_fds = -1;
}
