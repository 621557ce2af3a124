// SPDX-License-Identifier: BSD-2-Clause
/*
 * A ring of the kernel: struct perf_event_mmap_page and its data (perf_event_open(2), "MMAP
 * layout"). The kernel writes, this side reads and moves data_tail on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/host/host.h"

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int host_ring_map(struct host_ring *r, int fd, size_t bytes)
{
	size_t page = page_size();

	*r = (struct host_ring){0};
	for (; bytes >= page; bytes /= 2) {
		void *p = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (p != MAP_FAILED) {
			r->base = p;
			r->size = bytes;
			return 0;
		}
		/* Beyond kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK: a smaller one may do. */
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return -errno;
}

void host_ring_unmap(struct host_ring *r)
{
	if (r->base)
		munmap(r->base, page_size() + r->size);
	free(r->straight);
	*r = (struct host_ring){0};
}

/* The record that wraps, and all else, in one piece: whole records only, which need not be cut. */
const void *host_ring_take(struct host_ring *r, size_t *len, uint64_t *head)
{
	struct perf_event_mmap_page *page = r->base;
	const uint8_t *data = (const uint8_t *)r->base + page_size();
	uint64_t end = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	size_t at = (size_t)(tail & (r->size - 1)), first = r->size - at;

	*head = end;
	*len = (size_t)(end - tail);
	if (!*len || *len > r->size)
		return NULL;
	if (*len <= first)
		return data + at;
	if (!r->straight)
		r->straight = malloc(r->size);
	if (!r->straight)
		return NULL;
	memcpy(r->straight, data + at, first);
	memcpy(r->straight + first, data, *len - first);
	return r->straight;
}

void host_ring_release(struct host_ring *r, uint64_t head)
{
	struct perf_event_mmap_page *page = r->base;

	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}
