// SPDX-License-Identifier: BSD-2-Clause
/*
 * Host permission table (3.14, 9.12; unit profile "full"): what a device may touch with translated
 * requests. A leaf cache in front of a walk of up to four levels; entries of 16 bytes hold
 * permissions of pieces (1G, 2M, 4K) and the next table. HPTSZ is taken as the size of the top
 * table, 256 entries shifted left by it.
 */
#include "unit.h"

#define LEVELS 4u

/* Per level: the address bits that index it, and of the piece whose permission it holds (level 4
 * holds none). */
static const struct {
	unsigned shift, pieces_hi, pieces_lo;
} level_of[LEVELS + 1] = {
	[4] = {41, 0, 0},
	[3] = {33, 32, 30},
	[2] = {25, 24, 21},
	[1] = {17, 16, 12},
};

#define TOP_SHIFT   41u
#define HPT_PAGE_4K 0u

static unsigned size_shift(unsigned size)
{
	return 12 + 9 * size;
}

/* The 4-bit permission of the piece of @addr at @level: bit 0 read, bit 1 write. */
static unsigned piece(const uint64_t entry[2], unsigned level, uint64_t addr)
{
	unsigned bit;

	if (level == LEVELS)
		return 0;
	bit = 4 * (unsigned)bits_get(addr, level_of[level].pieces_hi, level_of[level].pieces_lo);
	return entry[bit / 64] >> bit % 64 & 0xf;
}

static bool reserved(const struct quipu_vtd *u, const uint64_t entry[2], unsigned level)
{
	if (level == 1)
		return false;
	return (entry[1] & (0xffe | ~bits_mask(u->config.haw))) || (level == 3 && entry[0] >> 32) ||
	       (level == 4 && entry[0]);
}

/* Deepest level whose next table is cached; 0: none. */
static unsigned psc_find(struct quipu_vtd *u, uint16_t did, uint64_t addr, uint64_t *table)
{
	for (unsigned level = 2; level <= LEVELS; level++) {
		uint64_t tag = addr >> level_of[level].shift;
		const uint64_t *next =
			vtd_cache_find(&u->hpt_psc[level - 2], tag, tag, VTD_VALID | did);

		if (next) {
			*table = *next;
			return level;
		}
	}
	return 0;
}

/* *perms of the piece that holds @addr, and its size. */
static uint8_t walk(struct quipu_vtd *u, struct vtd_walk *w, const struct vtd_pasid *p,
		    uint64_t addr, unsigned at, unsigned *perms, unsigned *size)
{
	uint64_t table = p->hpt_table, next = 0;
	unsigned hit = psc_find(u, p->hpt_did, addr, &next), level = LEVELS;

	*perms = 0;
	*size = HPT_PAGE_4K;
	vtd_tally_at(u, EV_HPT_NONLEAF_LOOKUP, 1, NO_LEVEL, at);
	if (hit) {
		vtd_tally_at(u, EV_HPT_NONLEAF_HIT, 1, hit - 1, at);
		table = next;
		level = hit - 1;
	} else if (addr >> TOP_SHIFT >= UINT64_C(256) << p->hpt_size) {
		return 0x60;
	}
	for (; level; level--) {
		uint64_t index =
			level == LEVELS ? addr >> TOP_SHIFT : addr >> level_of[level].shift & 0xff;
		const uint64_t *entry = vtd_memory(u, table + index * 16, false);
		uint64_t *line;

		w->reads++;
		if (!entry)
			return level == LEVELS ? 0xa2 : 0xa0;
		if (reserved(u, entry, level))
			return 0xa1;
		*perms = piece(entry, level, addr);
		if (*perms || level == 1 || !(entry[1] & 1)) {
			*size = level == LEVELS ? HPT_PAGE_4K : level - 1;
			return 0;
		}
		table = entry[1] & u->hpa_mask;
		line = vtd_cache_fill(&u->hpt_psc[level - 2], addr >> level_of[level].shift,
				      addr >> level_of[level].shift, VTD_VALID | p->hpt_did);
		if (line)
			*line = table;
	}
	return 0;
}

static uint64_t leaf_who(uint16_t rid, int32_t pasid, unsigned size)
{
	return VTD_VALID | (uint64_t)size << 60 | (uint64_t)rid << 32 |
	       (pasid >= 0 ? bits_one(20) | (uint32_t)pasid : 0);
}

static uint8_t denied(const struct vtd_walk *w, unsigned perms)
{
	bool r = perms & 1, wr = perms & 2;

	switch (w->rq->op) {
	case QUIPU_VTD_ZERO_READ: return r || wr ? 0 : 0xa3;
	case QUIPU_VTD_WRITE: return wr ? 0 : 0xa4;
	case QUIPU_VTD_ATOMIC: return !wr ? 0xa4 : r ? 0 : 0xa5;
	default: return r ? 0 : 0xa5;
	}
}

static void leaf_fill(struct quipu_vtd *u, const struct vtd_pasid *p, uint16_t rid, int32_t pasid,
		      uint64_t addr, unsigned size, unsigned perms)
{
	uint64_t tag = addr >> size_shift(size);
	struct vtd_hpt_leaf *leaf =
		vtd_cache_fill(&u->hpt_leaf, tag, tag, leaf_who(rid, pasid, size));

	if (leaf)
		*leaf = (struct vtd_hpt_leaf){p->hpt_did, (uint8_t)perms, (uint8_t)size};
}

uint8_t vtd_hpt_check(struct quipu_vtd *u, struct vtd_walk *w, const struct vtd_pasid *p,
		      uint16_t rid, int32_t pasid)
{
	uint64_t addr = w->rq->addr;
	unsigned perms, size;
	uint8_t fault;

	vtd_count(u, EV_HPT_LEAF_LOOKUP);
	for (size = 0; size < 3; size++) {
		uint64_t tag = addr >> size_shift(size);
		const struct vtd_hpt_leaf *leaf =
			vtd_cache_find(&u->hpt_leaf, tag, tag, leaf_who(rid, pasid, size));

		if (!leaf)
			continue;
		vtd_count_level(u, EV_HPT_LEAF_HIT, size);
		return denied(w, leaf->perms);
	}
	fault = walk(u, w, p, addr, u->tally.at, &perms, &size);
	if (!fault)
		fault = denied(w, perms);
	if (!fault)
		leaf_fill(u, p, rid, pasid, addr, size, perms);
	return fault;
}

void vtd_hpt_prefetch(struct quipu_vtd *u, struct vtd_walk *w, const struct vtd_pasid *p,
		      uint64_t hpa)
{
	unsigned perms, size;

	if (!p->hpt_no_prefetch && !walk(u, w, p, hpa, AT_PREFETCH, &perms, &size) && perms)
		leaf_fill(u, p, w->rq->rid, w->rq->pasid, hpa, size, perms);
}
