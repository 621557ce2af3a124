/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU time of a task that runs natively, and where it stands, as the host's kernel tells them
 * by a software event: the time is that of this moment, and is still there when the task is gone,
 * as in /proc it is not; samples take the instruction address, 4000 times a second of the task's
 * time, each for the stretch up to it. Where the host does not permit it, /proc must do and
 * samples have no address.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/gate_impl.h"

#define PAGES	  16u
#define PAGE	  4096u
#define PERIOD_NS 250000u

struct host_clock {
	int fd;
	struct perf_event_mmap_page *page; /* NULL: no samples */
	uint64_t from;			   /* the task's CPU time when the event began */
	uint64_t tail;
};

/* What the event writes: sample_type IP | READ. */
struct sample {
	struct perf_event_header header;
	uint64_t ip, value;
};

static int map_samples(struct host_clock *h)
{
	void *page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);

	if (page == MAP_FAILED)
		return -1;
	h->page = page;
	return 0;
}

struct host_clock *host_clock_new(pid_t tid, uint64_t ran, bool samples)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = samples ? PERIOD_NS : 0,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_READ,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct host_clock *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->from = ran;
	h->fd = (int)syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (h->fd >= 0 && (!samples || !map_samples(h)))
		return h;
	if (h->fd >= 0)
		close(h->fd);
	free(h);
	return NULL;
}

uint64_t host_clock_ran(struct host_clock *h, uint64_t least)
{
	uint64_t value = 0;

	if (read(h->fd, &value, sizeof(value)) != sizeof(value))
		return least;
	/* What /proc says lags behind, now and when the event began. */
	if (h->from + value < least)
		h->from = least - value;
	return h->from + value;
}

static void copy(const struct host_clock *h, void *to, size_t n)
{
	const uint8_t *data = (const uint8_t *)h->page + PAGE;
	uint64_t at = h->tail % (PAGES * PAGE), first = PAGES * PAGE - at;

	if (first > n)
		first = n;
	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, n - first);
}

bool host_clock_next(struct host_clock *h, uint64_t *ran, uint64_t *ip)
{
	uint64_t head = h->page ? __atomic_load_n(&h->page->data_head, __ATOMIC_ACQUIRE) : 0;
	struct sample s;

	while (h->tail < head) {
		copy(h, &s, sizeof(s.header));
		if (s.header.size < sizeof(s.header))
			return false; /* never: the kernel wrote it */
		if (s.header.type == PERF_RECORD_SAMPLE && s.header.size == sizeof(s))
			copy(h, &s, sizeof(s));
		h->tail += s.header.size;
		__atomic_store_n(&h->page->data_tail, h->tail, __ATOMIC_RELEASE);
		if (s.header.type != PERF_RECORD_SAMPLE || s.header.size != sizeof(s))
			continue;
		*ran = h->from + s.value;
		*ip = s.ip;
		return true;
	}
	return false;
}

void host_clock_free(struct host_clock *h)
{
	if (!h)
		return;
	if (h->page)
		munmap(h->page, (1 + PAGES) * PAGE);
	close(h->fd);
	free(h);
}
