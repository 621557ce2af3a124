/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ring buffers: control page, writer, wake-ups, mapping rules (perf ABI sheet A16). The memory is
 * the caller's and its reader is not trusted: of what the reader may write, data_tail alone is
 * read, and only to see how much is free. A wrong tail loses the reader's own records and nothing
 * else.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Control page (struct perf_event_mmap_page); only these words are ever written. */
#define PAGE_LOCK	       8
#define PAGE_OFFSET	       16
#define PAGE_ENABLED	       24
#define PAGE_RUNNING	       32
#define PAGE_CAPABILITIES      40
#define PAGE_SIZE_FIELD	       72
#define PAGE_HEAD	       1024
#define PAGE_TAIL	       1032
#define PAGE_DATA_OFFSET       1040
#define PAGE_DATA_SIZE	       1048
#define CAP_BIT0_IS_DEPRECATED 2u

static uint64_t *word(struct quipu_ring *r, unsigned off)
{
	return (uint64_t *)(void *)(r->mem + off);
}

static uint64_t data_size(const struct quipu_ring *r)
{
	return (uint64_t)r->pages * PAGE;
}

void ring_attach(struct quipu_event *e, struct quipu_ring *r)
{
	struct quipu_ring *old = e->ring;

	if (r) {
		r->refs++;
		link_append(&r->events, &e->ring_link);
	} else {
		link_remove(&e->ring_link);
	}
	e->ring = r;
	if (old && --old->refs == 0)
		ring_free(old);
}

static void reattach(struct quipu_event *e, struct quipu_ring *r)
{
	if (e->ring)
		ring_attach(e, NULL);
	if (r)
		ring_attach(e, r);
}

static size_t *locked_by(struct quipu_core *core, uid_t uid)
{
	struct locked *l;

	for (size_t i = 0; i < core->nlocked; i++) {
		if (core->locked[i].uid == uid)
			return &core->locked[i].pages;
	}
	l = realloc(core->locked, (core->nlocked + 1) * sizeof(*l));
	if (!l)
		return NULL;
	core->locked = l;
	l[core->nlocked] = (struct locked){.uid = uid};
	return &l[core->nlocked++].pages;
}

void ring_free(struct quipu_ring *r)
{
	size_t *locked = locked_by(r->core, r->uid);

	while (!link_empty(&r->events)) {
		struct quipu_event *e = container(r->events.next, struct quipu_event, ring_link);

		link_remove(&e->ring_link);
		e->ring = NULL;
	}
	if (locked)
		*locked -= r->locked < *locked ? r->locked : *locked;
	link_remove(&r->core_link);
	free(r);
}

/* ---- mapping ---- */

static int charge(struct quipu_core *core, const struct quipu_caller *who, size_t pages)
{
	uint64_t limit = (uint64_t)core->config.mlock_kb / 4 * core->config.ncpus;
	size_t *locked = locked_by(core, who->uid);
	uint64_t over;

	if (!locked)
		return -ENOMEM;
	over = *locked + pages > limit ? *locked + pages - limit : 0;
	if (over > who->memlock / PAGE && core->config.paranoid > -1 && !who->ipc_lock) {
		quipu_core_reason(
			core,
			"the buffer would lock more memory than perf_event_mlock_kb (%u KiB a CPU) and "
			"RLIMIT_MEMLOCK allow; ask for fewer pages (-m)",
			core->config.mlock_kb);
		return -EPERM;
	}
	*locked += pages;
	return 0;
}

static void init_page(struct quipu_ring *r)
{
	memset(r->mem, 0, PAGE);
	*word(r, PAGE_CAPABILITIES) = CAP_BIT0_IS_DEPRECATED;
	*(uint32_t *)(void *)(r->mem + PAGE_SIZE_FIELD) = 96;
	*word(r, PAGE_DATA_OFFSET) = PAGE;
	*word(r, PAGE_DATA_SIZE) = data_size(r);
}

static struct quipu_ring *ring_new(struct quipu_event *e, void *mem, size_t pages, bool writable)
{
	struct quipu_ring *r = calloc(1, sizeof(*r));
	uint64_t mark = e->attr.flags & QUIPU_ATTR_WATERMARK ? e->attr.wakeup_watermark : 0;

	if (!r)
		return NULL;
	r->core = e->core;
	r->mem = mem;
	r->pages = pages;
	r->overwrite = !writable;
	r->paused = !pages;
	link_init(&r->events);
	r->watermark = mark < data_size(r) ? mark : data_size(r);
	if (!r->watermark)
		r->watermark = data_size(r) / 2;
	init_page(r);
	link_append(&e->core->rings, &r->core_link);
	return r;
}

int quipu_event_map(struct quipu_event *e, const struct quipu_caller *who, void *mem, size_t pages,
		    bool writable)
{
	struct quipu_ring *r = e->ring;
	int err;

	core_work(e->core);
	e->core->reason[0] = '\0';
	if (e->state == STATE_REVOKED) {
		quipu_core_reason(e->core, "its PMU is gone");
		return -ENODEV;
	}
	if (pages & (pages - 1) || pages > SIZE_MAX / PAGE / 2) {
		quipu_core_reason(e->core, "a ring buffer has one control page and 2^n data pages");
		return -EINVAL;
	}
	if (e->cpu == -1 && (e->attr.flags & QUIPU_ATTR_INHERIT)) {
		quipu_core_reason(
			e->core,
			"an inherited event that follows its task over all CPUs has no buffer; open it "
			"once for each CPU");
		return -EINVAL;
	}
	if (r) {
		if (r->pages != pages)
			return -EINVAL;
		r->maps++;
		e->maps++;
		return 0;
	}
	err = charge(e->core, who, pages + 1);
	if (err)
		return err;
	r = ring_new(e, mem, pages, writable);
	if (!r)
		return -ENOMEM;
	r->uid = who->uid;
	r->locked = pages + 1;
	r->maps = 1;
	e->maps = 1;
	ring_attach(e, r);
	ring_update_page(e);
	return 0;
}

/* Last mapping of the event: it loses the buffer; last mapping of the buffer: all others do. */
void quipu_event_unmap(struct quipu_event *e)
{
	struct quipu_ring *r = e->ring;

	if (!e->maps || !r)
		return;
	core_work(e->core);
	r->maps--;
	if (--e->maps == 0) {
		r->refs++;
		ring_attach(e, NULL);
		while (!r->maps && !link_empty(&r->events))
			ring_attach(container(r->events.next, struct quipu_event, ring_link), NULL);
		if (--r->refs == 0)
			ring_free(r);
		if (e->closed)
			quipu_event_close(e);
	}
}

int quipu_event_set_output(struct quipu_event *e, struct quipu_event *to)
{
	core_work(e->core);
	if (e->state == STATE_REVOKED || (to && to->state == STATE_REVOKED))
		return -ENODEV;
	if (to) {
		if (to == e || to->cpu != e->cpu || (to->cpu == -1 && to->task != e->task))
			return -EINVAL;
		if ((to->attr.flags ^ e->attr.flags) &
		    (QUIPU_ATTR_USE_CLOCKID | QUIPU_ATTR_WRITE_BACKWARD))
			return -EINVAL;
		if ((e->attr.flags & QUIPU_ATTR_USE_CLOCKID) && to->attr.clockid != e->attr.clockid)
			return -EINVAL;
	}
	if (e->maps || (to && !to->ring))
		return -EINVAL;
	reattach(e, to ? to->ring : NULL);
	return 0;
}

/* ---- control page ---- */

void ring_update_page(struct quipu_event *e)
{
	struct quipu_ring *r = e->ring;
	uint32_t *lock;

	if (!r)
		return;
	event_update_time(e);
	lock = (uint32_t *)(void *)(r->mem + PAGE_LOCK);
	__atomic_store_n(lock, *lock + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	*word(r, PAGE_OFFSET) = e->count;
	*word(r, PAGE_ENABLED) = e->enabled + e->child_enabled;
	*word(r, PAGE_RUNNING) = e->running + e->child_running;
	__atomic_store_n(lock, *lock + 1, __ATOMIC_RELEASE);
}

/* ---- writing ---- */

static bool has_space(const struct quipu_ring *r, uint64_t tail, size_t len, bool backward)
{
	uint64_t mask = data_size(r) - 1;
	uint64_t space = backward ? (r->head - tail - 1) & mask : (tail - r->head - 1) & mask;

	return space >= len;
}

static void copy_in(struct quipu_ring *r, uint64_t at, const void *from, size_t len)
{
	uint8_t *data = r->mem + PAGE;
	uint64_t off = at & (data_size(r) - 1);
	size_t first = data_size(r) - off < len ? data_size(r) - off : len;

	memcpy(data + off, from, first);
	memcpy(data, (const uint8_t *)from + first, len - first);
}

static size_t lost_record(struct quipu_event *e, uint64_t lost, uint8_t *out)
{
	struct perf_event_header h = {.type = PERF_RECORD_LOST};
	size_t n = sizeof(h) + 16;
	unsigned cpu = e->oncpu >= 0		    ? (unsigned)e->oncpu
		       : e->ctx && e->ctx->cpu >= 0 ? (unsigned)e->ctx->cpu
						    : 0;

	memcpy(out + 8, &e->id, 8);
	memcpy(out + 16, &lost, 8);
	n += sample_trailer(e, cpu, out + n);
	h.size = (uint16_t)n;
	memcpy(out, &h, sizeof(h));
	return n;
}

/* Every event that writes into the buffer is woken; SIGIO goes to the one whose overflow it was. */
void event_wakeup(struct quipu_event *e)
{
	struct quipu_event *owner = e->parent ? e->parent : e;
	int code = e->pending;

	if (owner->ring) {
		struct quipu_event *o;

		list_for_each(o, &owner->ring->events, ring_link)
			core_wake(o, POLLIN);
	}
	e->pending = 0;
	if (code && owner->async && e->core->ops->sigio)
		e->core->ops->sigio(e->core->arg, owner, code);
}

static bool sample_wakes(const struct quipu_event *e, struct quipu_ring *r)
{
	if ((e->attr.flags & QUIPU_ATTR_WATERMARK) || !e->attr.wakeup_events)
		return false;
	if (++r->samples < e->attr.wakeup_events)
		return false;
	r->samples -= e->attr.wakeup_events;
	r->wakeup++; /* as Linux: any change of the mark is a wake-up */
	return true;
}

static int drop(struct quipu_event *e, struct quipu_ring *r)
{
	if (r->pages) {
		r->lost++;
		e->lost++;
	}
	return -ENOSPC;
}

int ring_output(struct quipu_event *from, const void *record, size_t len, bool sample)
{
	struct quipu_event *e = from->parent ? from->parent : from;
	struct quipu_ring *r = e->ring;
	bool backward = e->attr.flags & QUIPU_ATTR_WRITE_BACKWARD;
	uint8_t lost[24 + 48];
	size_t nlost = 0;
	uint64_t at, tail;
	bool wake = false;

	if (!r)
		return 0;
	if (r->paused)
		return drop(e, r);
	if (r->lost)
		nlost = lost_record(e, r->lost, lost);
	tail = __atomic_load_n(word(r, PAGE_TAIL), __ATOMIC_ACQUIRE);
	if (len + nlost >= data_size(r) ||
	    (!r->overwrite && !has_space(r, tail, len + nlost, backward)))
		return drop(e, r);
	at = r->head;
	r->head += backward ? -(uint64_t)(len + nlost) : len + nlost;
	if (backward)
		at = r->head;
	if ((backward ? -r->head : r->head) - r->wakeup > r->watermark) {
		r->wakeup += r->watermark;
		wake = true;
	}
	if (nlost) {
		copy_in(r, at, lost, nlost);
		r->lost = 0;
	}
	copy_in(r, at + nlost, record, len);
	if (sample)
		wake |= sample_wakes(e, r);
	__atomic_store_n(word(r, PAGE_HEAD), r->head, __ATOMIC_RELEASE);
	if (wake) {
		r->poll = POLLIN;
		event_wakeup(from);
	}
	return 0;
}

int quipu_event_output(struct quipu_event *e, const void *record, size_t len)
{
	struct quipu_event *owner = e->parent ? e->parent : e;

	if (!record || len < sizeof(struct perf_event_header) || len > RECORD_MAX || len % 8)
		return -EINVAL;
	return owner->ring ? ring_output(e, record, len, false) : -ENOSPC;
}

unsigned quipu_event_poll(struct quipu_event *e)
{
	unsigned bits;

	core_work(e->core);
	if (e->state == STATE_REVOKED)
		return POLLERR;
	if (e->state <= STATE_EXIT && link_empty(&e->children))
		return POLLHUP;
	if (!e->ring)
		return POLLHUP;
	bits = e->ring->poll;
	e->ring->poll = 0;
	return bits;
}
