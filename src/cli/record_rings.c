// SPDX-License-Identifier: BSD-2-Clause
/*
 * Emptying the kernel's rings (record_rings.h). A piece of records is noted and given its place in
 * the file under the lock; large ones are written outside of it, so that the copying, which is
 * nearly all of the work, is done by all threads at once.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/record_rings.h"
#include "profile/record.h"

#define RING_BYTES	(512u * 1024) /* what a user may lock for each CPU */
#define RING_BYTES_ROOT (4u * 1024 * 1024)
#define RING_BYTES_MOST (64u * 1024 * 1024)
#define MEMORY_SHARE	64u	     /* all rings: at most this part of the memory */
#define READER_BYTES	(64u << 20)  /* a second: what one thread copies with ease */
#define READER_CPUS	64u	     /* ... and looks after */
#define LARGE		(64u * 1024) /* a piece that is worth a write of its own */
#define PIECE		(1u << 20)   /* written before its room in the ring is given back */
#define TICK_MS		100

struct record_reader {
	struct record_rings *rings;
	size_t first, end; /* the rings it empties */
	pthread_t thread;
	struct pollfd *p; /* its rings, then the word to end */
	bool running, passed;
};

int record_rings_new(struct record_rings *r, size_t n)
{
	*r = (struct record_rings){.n = n, .stop_fd = -1};
	pthread_mutex_init(&r->lock, NULL);
	r->ring = calloc(n, sizeof(*r->ring));
	r->owner = malloc(n * sizeof(*r->owner));
	if (!r->ring || !r->owner)
		return -ENOMEM;
	memset(r->owner, -1, n * sizeof(*r->owner));
	return 0;
}

void record_rings_free(struct record_rings *r)
{
	record_rings_end(r);
	for (size_t i = 0; r->ring && i < r->n; i++)
		host_ring_unmap(&r->ring[i]);
	free(r->ring);
	free(r->owner);
	*r = (struct record_rings){.stop_fd = -1};
}

size_t record_rings_bytes(const struct record_rings *r, uint64_t expected)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t most = memory / MEMORY_SHARE / (r->n ? r->n : 1);
	size_t bytes = RING_BYTES_ROOT;

	if (geteuid())
		return RING_BYTES;
	/* A second's worth: as long as a busy machine may keep the reader waiting. */
	while (bytes < expected && 2 * bytes <= most && bytes < RING_BYTES_MOST)
		bytes *= 2;
	return bytes;
}

size_t record_rings_readers(const struct record_rings *r, uint64_t expected)
{
	uint64_t n = 1 + expected * r->n / READER_BYTES, cpus = 1 + r->n / READER_CPUS;

	n = n < cpus ? cpus : n;
	return n < r->n ? (size_t)n : r->n;
}

/* ---- emptying ---- */

static void failed(struct record_rings *r, int error)
{
	if (error && !r->error)
		r->error = error;
}

/* Of the records at @data those that fit @most, but at least one. */
static size_t piece(const uint8_t *data, size_t len, size_t most)
{
	size_t n = 0, size;

	if (len <= most)
		return len;
	while (n < most && (size = profile_record_frame(data + n, len - n)))
		n += size;
	return n ? n : len;
}

static void write_piece(struct record_rings *r, const void *data, size_t len)
{
	bool large = len >= LARGE;
	uint64_t at = 0;
	int ret = 0;

	pthread_mutex_lock(&r->lock);
	if (!r->error)
		failed(r, large ? perfdata_reserve(r->file, data, len, &at)
				: perfdata_append(r->file, data, len));
	large = large && !r->error;
	pthread_mutex_unlock(&r->lock);
	if (large)
		ret = perfdata_fill(r->file, data, len, at);
	if (!ret)
		return;
	pthread_mutex_lock(&r->lock);
	failed(r, ret);
	perfdata_spoil(r->file, ret);
	pthread_mutex_unlock(&r->lock);
}

/* What is new in ring @i goes to the file; room is made as it is written. True: there was
 * something. */
static bool empty(struct record_rings *r, size_t i)
{
	const uint8_t *data;
	uint64_t head;
	size_t len, part;

	if (!r->ring[i].base)
		return false;
	data = host_ring_take(&r->ring[i], &len, &head);
	if (!len)
		return false;
	for (size_t left = data ? len : 0; left; left -= part, data += part) {
		part = piece(data, left, PIECE);
		write_piece(r, data, part);
		host_ring_release(&r->ring[i], head - left + part);
	}
	host_ring_release(&r->ring[i], head);
	return true;
}

/* Records of the next round are not older than those of the one before. */
void record_rings_drain(struct record_rings *r)
{
	bool any = false;

	for (size_t i = 0; i < r->n; i++)
		any |= empty(r, i);
	if (any && !r->error)
		failed(r, perfdata_round(r->file));
}

int record_rings_error(struct record_rings *r)
{
	int error;

	pthread_mutex_lock(&r->lock);
	error = r->error;
	pthread_mutex_unlock(&r->lock);
	return error;
}

/* ---- threads ---- */

/* A round is over when every reader was around its rings, from begin to end, since the last. */
static void pass(struct record_reader *reader)
{
	struct record_rings *r = reader->rings;
	unsigned round;

	pthread_mutex_lock(&r->lock);
	round = r->round;
	pthread_mutex_unlock(&r->lock);
	for (size_t i = reader->first; i < reader->end; i++)
		empty(r, i);
	pthread_mutex_lock(&r->lock);
	if (round == r->round && !reader->passed) {
		reader->passed = true;
		r->passed++;
	}
	if (r->passed == r->nr_readers) {
		if (!r->error)
			failed(r, perfdata_round(r->file));
		for (size_t i = 0; i < r->nr_readers; i++)
			r->readers[i].passed = false;
		r->passed = 0;
		r->round++;
	}
	pthread_mutex_unlock(&r->lock);
}

static void *read_rings(void *arg)
{
	struct record_reader *reader = arg;
	size_t n = reader->end - reader->first;
	struct pollfd *p = reader->p;

	while (!p[n].revents) {
		poll(p, n + 1, TICK_MS);
		pass(reader);
		for (size_t i = 0; i < n; i++) /* a task's end hangs up its events */
			if (p[i].revents & (POLLHUP | POLLERR | POLLNVAL))
				p[i].fd = -1;
	}
	return NULL;
}

static int start_reader(struct record_rings *r, struct record_reader *reader)
{
	size_t n = reader->end - reader->first;
	struct pollfd *p = calloc(n + 1, sizeof(*p));
	int err = p ? 0 : ENOMEM;

	for (size_t i = 0; p && i < n; i++)
		p[i] = (struct pollfd){.fd = r->owner[reader->first + i], .events = POLLIN};
	if (p)
		p[n] = (struct pollfd){.fd = r->stop_fd, .events = POLLIN};
	reader->rings = r;
	reader->p = p;
	if (!err)
		err = pthread_create(&reader->thread, NULL, read_rings, reader);
	reader->running = !err;
	return err;
}

int record_rings_read(struct record_rings *r, size_t n)
{
	sigset_t all, old;
	int err = 0;

	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	r->readers = calloc(n, sizeof(*r->readers));
	if (r->stop_fd < 0 || !r->readers)
		return r->readers ? -errno : -ENOMEM;
	r->nr_readers = n;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (size_t i = 0; i < n && !err; i++) {
		r->readers[i].first = i * r->n / n;
		r->readers[i].end = (i + 1) * r->n / n;
		err = start_reader(r, &r->readers[i]);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		record_rings_end(r);
	return -err;
}

void record_rings_end(struct record_rings *r)
{
	uint64_t one = 1;

	if (r->stop_fd >= 0 && write(r->stop_fd, &one, sizeof(one)) < 0)
		return; /* not with an eventfd of our own */
	for (size_t i = 0; i < r->nr_readers; i++) {
		if (r->readers[i].running)
			pthread_join(r->readers[i].thread, NULL);
		free(r->readers[i].p);
	}
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	free(r->readers);
	r->readers = NULL;
	r->nr_readers = 0;
	r->stop_fd = -1;
}
