/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport to a partition of this process: what an operating system does to call RTAS from
 * user space (Linux: rtas(2) with buffers in the RMO region), with the partition's own lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "platform/lpar/hardware.h"

#define ARGS_BYTES 128u /* an argument buffer of 16 cells of 64 bits, behind the work area */
#define MOST_CELLS 16u

struct model {
	struct quipu_rtas_transport ops;
	struct quipu_lpar *lpar;
	struct quipu_partition *p;
};

static int64_t model_token(void *arg, const char *function)
{
	return quipu_lpar_token(((struct model *)arg)->lpar, function);
}

static void model_lock(void *arg)
{
	pthread_mutex_lock(&((struct model *)arg)->p->os_lock);
}

static void model_unlock(void *arg)
{
	pthread_mutex_unlock(&((struct model *)arg)->p->os_lock);
}

static size_t pages_of(size_t size)
{
	return (((size + 7) & ~(size_t)7) + ARGS_BYTES + LPAR_PAGE - 1) / LPAR_PAGE;
}

/* The first run of @n free pages of the RMO buffer, taken; -1: none. */
static long take_pages(struct quipu_partition *p, size_t n)
{
	size_t all = p->rmo_size / LPAR_PAGE, run = 0;

	for (size_t i = 0; i < all; i++) {
		run = p->buffers[i] ? 0 : run + 1;
		if (run < n)
			continue;
		memset(p->buffers + i + 1 - n, 1, n);
		return (long)(i + 1 - n);
	}
	return -1;
}

static int model_alloc(void *arg, size_t size, uint64_t *ra, void **va)
{
	struct quipu_partition *p = ((struct model *)arg)->p;
	uint8_t *window = lpar_window(p);
	long page;

	if (!window)
		return p->rmo_size ? -ENOMEM : -ENOSPC;
	if (size > p->rmo_size)
		return -ENOSPC;
	pthread_mutex_lock(&p->buffer_lock);
	page = take_pages(p, pages_of(size));
	pthread_mutex_unlock(&p->buffer_lock);
	if (page < 0)
		return -ENOSPC;
	*ra = p->rmo + (uint64_t)page * LPAR_PAGE;
	*va = window + (size_t)page * LPAR_PAGE;
	return 0;
}

static void model_free(void *arg, size_t size, uint64_t ra, void *va)
{
	struct quipu_partition *p = ((struct model *)arg)->p;

	(void)va;
	pthread_mutex_lock(&p->buffer_lock);
	memset(p->buffers + (ra - p->rmo) / LPAR_PAGE, 0, pages_of(size));
	pthread_mutex_unlock(&p->buffer_lock);
}

static void put_cell(uint8_t *raw, unsigned w, uint32_t value)
{
	uint64_t wide = __builtin_bswap64((uint64_t)(int64_t)(int32_t)value);

	memcpy(raw, (uint8_t *)&wide + 8 - w, w);
}

static int model_call(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		      size_t size)
{
	struct quipu_partition *p = ((struct model *)arg)->p;
	uint64_t at = (ra + size + 7) & ~UINT64_C(7);
	uint8_t *raw = (uint8_t *)va + (at - ra);
	unsigned w = p->cell_bytes, rets = cells[1] + 3;
	int err;

	if (ncells > MOST_CELLS || rets > ncells)
		return -EINVAL;
	for (unsigned i = 0; i < ncells; i++)
		put_cell(raw + (size_t)i * w, w, cells[i]);
	err = quipu_rtas_call(p, at);
	for (unsigned i = rets; !err && i < ncells; i++)
		cells[i] = bits_be32(raw + (size_t)i * w + w - 4);
	return err;
}

int quipu_rtas_model(struct quipu_rtas_transport **out, struct quipu_lpar *l, unsigned partition)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->lpar = l;
	m->p = quipu_lpar_partition(l, partition);
	if (!m->p) {
		free(m);
		return -ENOENT;
	}
	pthread_mutex_lock(&m->p->buffer_lock);
	if (!m->p->buffers)
		m->p->buffers = calloc(m->p->rmo_size / LPAR_PAGE + 1, 1);
	pthread_mutex_unlock(&m->p->buffer_lock);
	m->ops = (struct quipu_rtas_transport){
		.arg = m,
		.token = model_token,
		.lock = model_lock,
		.unlock = model_unlock,
		.alloc = model_alloc,
		.free = model_free,
		.call = model_call,
	};
	*out = &m->ops;
	if (m->p->buffers)
		return 0;
	free(m);
	return -ENOMEM;
}

void quipu_rtas_model_free(struct quipu_rtas_transport *t)
{
	free(t ? t->arg : NULL);
}
