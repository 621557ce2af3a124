// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory of a machine as units see it: pages that exist once they are written, in a tree of three
 * levels. What was never written reads as zero; beyond the limit nothing answers.
 */
#include <errno.h>
#include <stdlib.h>

#include "unit.h"

#define TOP_BITS  14
#define MID_BITS  13
#define LEAF_BITS 13 /* 14 + 13 + 13 + 12 = 52 address bits */

struct leaf {
	void *page[1 << LEAF_BITS];
};

struct mid {
	struct leaf *leaf[1 << MID_BITS];
};

struct quipu_vtd_memory {
	uint64_t limit, next;
	struct mid *mid[1 << TOP_BITS];
	uint64_t zero[QUIPU_VTD_PAGE / 8];
};

struct quipu_vtd_memory *quipu_vtd_memory_new(uint64_t limit, uint64_t alloc_from)
{
	struct quipu_vtd_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->limit = limit < bits_one(52) ? limit : bits_one(52);
	m->next = (alloc_from + QUIPU_VTD_PAGE - 1) & ~UINT64_C(0xfff);
	if (!m->next)
		m->next = QUIPU_VTD_PAGE; /* address 0 says that there is none */
	return m;
}

static void free_leaf(struct leaf *leaf)
{
	for (unsigned i = 0; i < 1 << LEAF_BITS; i++)
		if (leaf->page[i])
			free(leaf->page[i]);
	free(leaf);
}

/* Nearly all places are empty: not one call for each. */
static void free_mid(struct mid *mid)
{
	for (unsigned i = 0; i < 1 << MID_BITS; i++)
		if (mid->leaf[i])
			free_leaf(mid->leaf[i]);
	free(mid);
}

void quipu_vtd_memory_free(struct quipu_vtd_memory *m)
{
	for (unsigned i = 0; m && i < 1 << TOP_BITS; i++)
		if (m->mid[i])
			free_mid(m->mid[i]);
	free(m);
}

static void **slot(struct quipu_vtd_memory *m, uint64_t addr, bool make)
{
	struct mid **mid = &m->mid[addr >> (12 + LEAF_BITS + MID_BITS)];
	struct leaf **leaf;

	if (!*mid && make)
		*mid = calloc(1, sizeof(**mid));
	if (!*mid)
		return NULL;
	leaf = &(*mid)->leaf[addr >> (12 + LEAF_BITS) & bits_mask(MID_BITS)];
	if (!*leaf && make)
		*leaf = calloc(1, sizeof(**leaf));
	return *leaf ? &(*leaf)->page[addr >> 12 & bits_mask(LEAF_BITS)] : NULL;
}

void *quipu_vtd_memory_page(struct quipu_vtd_memory *m, uint64_t addr, bool write)
{
	void **page;

	if (addr >= m->limit)
		return NULL;
	page = slot(m, addr, write);
	if (page && !*page && write)
		*page = calloc(1, QUIPU_VTD_PAGE);
	if (page && *page)
		return *page;
	return write ? NULL : m->zero;
}

uint64_t quipu_vtd_memory_alloc(struct quipu_vtd_memory *m, uint64_t pages)
{
	uint64_t at = m->next;

	if (!pages || m->next >= m->limit || pages > (m->limit - m->next) / QUIPU_VTD_PAGE)
		return 0;
	m->next += pages * QUIPU_VTD_PAGE;
	return at;
}

uint64_t quipu_vtd_memory_load(struct quipu_vtd_memory *m, uint64_t addr)
{
	const char *page = quipu_vtd_memory_page(m, addr & ~UINT64_C(0xfff), false);

	return page ? *(const uint64_t *)(page + (addr & 0xff8)) : 0;
}

int quipu_vtd_memory_store(struct quipu_vtd_memory *m, uint64_t addr, uint64_t value)
{
	char *page = quipu_vtd_memory_page(m, addr & ~UINT64_C(0xfff), true);

	if (!page)
		return addr >= m->limit ? -EINVAL : -ENOMEM;
	*(uint64_t *)(page + (addr & 0xff8)) = value;
	return 0;
}
