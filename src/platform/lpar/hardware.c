/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions and their memory, the code map and its reload (sheet 4.2 to 4.4). Real addresses of a
 * partition begin at 0; a page of its memory exists from the first write on, and reads as zero
 * before. Knows nothing of RTAS: rtas.c.
 */
#include "platform/lpar/hardware.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_RMA (UINT64_C(256) << 20)
#define RMO_BYTES   65536u
#define FIRST_ID    2u

/* ---- memory ---- */

bool lpar_in_memory(const struct quipu_partition *p, uint64_t ra, uint64_t size)
{
	for (unsigned i = 0; i < p->nranges; i++)
		if (ra >= p->ranges[i].start && ra - p->ranges[i].start <= p->ranges[i].size &&
		    size <= p->ranges[i].size - (ra - p->ranges[i].start))
			return true;
	return false;
}

static struct lpar_page **bucket(struct quipu_partition *p, uint64_t number)
{
	return &p->pages[(number ^ number >> 8 ^ number >> 16) % LPAR_BUCKETS];
}

static struct lpar_page *find_page(struct quipu_partition *p, uint64_t number)
{
	struct lpar_page *page = *bucket(p, number);

	while (page && page->number != number)
		page = page->next;
	return page;
}

static uint8_t *make_block(struct quipu_partition *p, size_t size)
{
	struct lpar_block *b = calloc(1, sizeof(*b) + size);

	if (!b)
		return NULL;
	b->next = p->blocks;
	p->blocks = b;
	return b->bytes;
}

static struct lpar_page *make_page(struct quipu_partition *p, uint64_t number)
{
	struct lpar_page *page = find_page(p, number), **at = bucket(p, number);

	if (page || p->npages == LPAR_PAGES)
		return page;
	page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	page->bytes = make_block(p, LPAR_PAGE);
	if (!page->bytes) {
		free(page);
		return NULL;
	}
	page->number = number;
	page->next = *at;
	*at = page;
	p->npages++;
	return page;
}

static uint8_t *make_window(struct quipu_partition *p)
{
	uint8_t *bytes = p->rmo_size ? make_block(p, p->rmo_size) : NULL;

	for (uint64_t at = 0; bytes && at < p->rmo_size; at += LPAR_PAGE) {
		struct lpar_page *page = make_page(p, (p->rmo + at) / LPAR_PAGE);

		if (!page)
			return NULL;
		memcpy(bytes + at, page->bytes, LPAR_PAGE);
		page->bytes = bytes + at;
	}
	p->window = bytes;
	return bytes;
}

uint8_t *lpar_window(struct quipu_partition *p)
{
	uint8_t *bytes;

	pthread_mutex_lock(&p->memory_lock);
	bytes = p->window ? p->window : make_window(p);
	pthread_mutex_unlock(&p->memory_lock);
	return bytes;
}

/* In pieces that lie in one page each. @buf NULL: the pages are made, nothing is copied. */
static int copy(struct quipu_partition *p, uint64_t ra, uint8_t *buf, size_t len, bool write)
{
	while (len) {
		size_t at = ra % LPAR_PAGE, n = LPAR_PAGE - at < len ? LPAR_PAGE - at : len;
		struct lpar_page *page =
			write ? make_page(p, ra / LPAR_PAGE) : find_page(p, ra / LPAR_PAGE);

		if (write && !page)
			return -ENOMEM;
		if (write && buf)
			memcpy(page->bytes + at, buf, n);
		else if (buf && page)
			memcpy(buf, page->bytes + at, n);
		else if (buf)
			memset(buf, 0, n);
		ra += n;
		buf = buf ? buf + n : NULL;
		len -= n;
	}
	return 0;
}

int quipu_partition_write(struct quipu_partition *p, uint64_t ra, const void *buf, size_t len)
{
	int err;

	if (!lpar_in_memory(p, ra, len))
		return -EFAULT;
	pthread_mutex_lock(&p->memory_lock);
	err = copy(p, ra, NULL, len, true); /* all of it, or nothing */
	if (!err)
		err = copy(p, ra, (uint8_t *)buf, len, true);
	pthread_mutex_unlock(&p->memory_lock);
	return err;
}

int quipu_partition_read(struct quipu_partition *p, uint64_t ra, void *buf, size_t len)
{
	int err;

	if (!lpar_in_memory(p, ra, len))
		return -EFAULT;
	pthread_mutex_lock(&p->memory_lock);
	err = copy(p, ra, buf, len, false);
	pthread_mutex_unlock(&p->memory_lock);
	return err;
}

/* ---- partitions ---- */

struct quipu_partition *lpar_partition_new(struct quipu_lpar *l, unsigned number)
{
	struct quipu_partition *p;

	if (l->npartitions == LPAR_PARTITIONS)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->lpar = l;
	p->number = number;
	p->rma = DEFAULT_RMA;
	p->cell_bytes = 4;
	p->period = 1;
	p->next_id = FIRST_ID;
	p->ranges[0].size = p->rma;
	p->nranges = 1;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->memory_lock, NULL);
	pthread_mutex_init(&p->os_lock, NULL);
	pthread_mutex_init(&p->buffer_lock, NULL);
	l->partition[l->npartitions++] = p;
	return p;
}

static void partition_free(struct quipu_partition *p)
{
	for (unsigned i = 0; i < LPAR_BUCKETS; i++)
		while (p->pages[i]) {
			struct lpar_page *next = p->pages[i]->next;

			free(p->pages[i]);
			p->pages[i] = next;
		}
	pthread_mutex_destroy(&p->lock);
	while (p->blocks) {
		struct lpar_block *next = p->blocks->next;

		free(p->blocks);
		p->blocks = next;
	}
	pthread_mutex_destroy(&p->memory_lock);
	pthread_mutex_destroy(&p->os_lock);
	pthread_mutex_destroy(&p->buffer_lock);
	free(p->buffers);
	free(p->cpus);
	free(p);
}

void quipu_partition_info(const struct quipu_partition *p, struct quipu_partition_info *info)
{
	*info = (struct quipu_partition_info){
		.number = p->number,
		.name = p->name,
		.rma = p->rma,
		.cell_bytes = p->cell_bytes,
		.rmo = p->rmo,
		.rmo_size = p->rmo_size,
	};
}

bool quipu_partition_has_cpu(const struct quipu_partition *p, unsigned cpu)
{
	return !p->cpus || (cpu < p->ncpus && p->cpus[cpu]);
}

void quipu_partition_reset(struct quipu_partition *p)
{
	pthread_mutex_lock(&p->lock);
	p->seq = (struct lpar_sequence){0};
	p->next_id = FIRST_ID;
	p->plan_pos = 0;
	p->waiting = false;
	pthread_mutex_unlock(&p->lock);
}

void quipu_partition_authority(struct quipu_partition *p, bool on)
{
	pthread_mutex_lock(&p->lock);
	p->authority = on;
	pthread_mutex_unlock(&p->lock);
}

void quipu_partition_stats(struct quipu_partition *p, struct quipu_lpar_stats *stats)
{
	pthread_mutex_lock(&p->lock);
	*stats = p->stats;
	pthread_mutex_unlock(&p->lock);
}

void quipu_partition_next_number(struct quipu_partition *p, uint32_t number)
{
	pthread_mutex_lock(&p->lock);
	p->next_id = number;
	pthread_mutex_unlock(&p->lock);
}

void quipu_partition_option(struct quipu_partition *p, enum quipu_partition_option option, bool on)
{
	pthread_mutex_lock(&p->lock);
	switch (option) {
	case QUIPU_PARTITION_CHUNKED: p->chunked = on; break;
	case QUIPU_PARTITION_RECHECK_IAR: p->recheck = on; break;
	case QUIPU_PARTITION_SCRIBBLE: p->scribble = on; break;
	case QUIPU_PARTITION_ANYWHERE: p->anywhere = on; break;
	case QUIPU_PARTITION_TIME_MODE: p->time_mode = on; break;
	}
	pthread_mutex_unlock(&p->lock);
}

static bool is_delay(int32_t status)
{
	return status == QUIPU_RTAS_BUSY ||
	       (status >= QUIPU_RTAS_EXT_DELAY_MIN && status <= QUIPU_RTAS_EXT_DELAY_MAX);
}

int quipu_partition_plan(struct quipu_partition *p, const int32_t *statuses, size_t n,
			 unsigned period)
{
	if (n > LPAR_PLAN || !period)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!is_delay(statuses[i]))
			return -EINVAL;
	pthread_mutex_lock(&p->lock);
	if (n)
		memcpy(p->plan, statuses, n * sizeof(*statuses));
	p->nplan = (unsigned)n;
	p->period = period;
	p->plan_pos = 0;
	p->waiting = false;
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int quipu_lpar_inject(struct quipu_partition *p, unsigned nth, int32_t status, bool every)
{
	static const int32_t ends[] = {QUIPU_RTAS_HW_ERROR, QUIPU_RTAS_PARAM_ERROR,
				       QUIPU_RTAS_TOO_SMALL, QUIPU_RTAS_NOT_AUTHORIZED};
	bool known = is_delay(status);
	int err = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		known |= status == ends[i];
	if (!known || !nth)
		return -EINVAL;
	pthread_mutex_lock(&p->lock);
	if (p->ninject == LPAR_INJECTIONS)
		err = -ENOSPC;
	else
		p->inject[p->ninject++] = (struct lpar_injection){nth, every ? nth : 0, status};
	pthread_mutex_unlock(&p->lock);
	return err;
}

void quipu_lpar_inject_clear(struct quipu_partition *p)
{
	pthread_mutex_lock(&p->lock);
	p->ninject = 0;
	pthread_mutex_unlock(&p->lock);
}

/* ---- the firmware ---- */

struct quipu_lpar *lpar_new(struct quipu_hvmap *map)
{
	struct quipu_lpar *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	strcpy(l->invalid_text, "INVALID ADDRESS");
	pthread_mutex_init(&l->map_lock, NULL);
	l->map = map;
	return l;
}

struct quipu_lpar *quipu_lpar_new_map(struct quipu_hvmap *map)
{
	struct quipu_lpar *l = lpar_new(map);
	struct quipu_partition *p = l ? lpar_partition_new(l, 1) : NULL;

	if (!p) {
		if (l)
			l->map = NULL; /* stays the caller's */
		quipu_lpar_free(l);
		return NULL;
	}
	l->has_token = true;
	l->token = 0x2100;
	l->base = 0x0f000000;
	l->size = 0x10000;
	p->authority = true;
	p->rmo = 0x0e000000;
	p->rmo_size = RMO_BYTES;
	snprintf(p->name, sizeof(p->name), "offline");
	return l;
}

void quipu_lpar_free(struct quipu_lpar *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->npartitions; i++)
		partition_free(l->partition[i]);
	quipu_hvmap_put(l->map);
	pthread_mutex_destroy(&l->map_lock);
	free(l);
}

struct quipu_partition *quipu_lpar_partition(struct quipu_lpar *l, unsigned number)
{
	for (size_t i = 0; i < l->npartitions; i++)
		if (l->partition[i]->number == number)
			return l->partition[i];
	return NULL;
}

size_t quipu_lpar_partitions(const struct quipu_lpar *l)
{
	return l->npartitions;
}

struct quipu_partition *quipu_lpar_partition_at(struct quipu_lpar *l, size_t i)
{
	return i < l->npartitions ? l->partition[i] : NULL;
}

void quipu_lpar_set_clock(struct quipu_lpar *l, uint64_t (*now_ns)(void *), void *arg)
{
	l->now_ns = now_ns;
	l->now_arg = arg;
}

uint64_t lpar_now(const struct quipu_lpar *l)
{
	return l->now_ns ? l->now_ns(l->now_arg) : 0;
}

struct quipu_hvmap *quipu_lpar_map(struct quipu_lpar *l)
{
	struct quipu_hvmap *map;

	pthread_mutex_lock(&l->map_lock);
	map = quipu_hvmap_get(l->map);
	pthread_mutex_unlock(&l->map_lock);
	return map;
}

/* Sequences notice at their next call that they belong to an older map. */
void quipu_lpar_reload(struct quipu_lpar *l, struct quipu_hvmap *map)
{
	struct quipu_hvmap *old;

	pthread_mutex_lock(&l->map_lock);
	old = l->map;
	l->map = map;
	__atomic_add_fetch(&l->epoch, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&l->map_lock);
	quipu_hvmap_put(old);
}

uint64_t quipu_lpar_epoch(struct quipu_lpar *l)
{
	return __atomic_load_n(&l->epoch, __ATOMIC_SEQ_CST);
}

int64_t quipu_lpar_token(const struct quipu_lpar *l, const char *function)
{
	return l->has_token && !strcmp(function, QUIPU_LPAR_PERFTOOLS) ? (int64_t)l->token
								       : -ENOENT;
}
