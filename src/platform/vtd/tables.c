// SPDX-License-Identifier: BSD-2-Clause
/*
 * The software side of a unit: tables as a driver writes them (chapter 9, with the conventions of
 * Linux: a PASID directory of one page, RID_PASID 0), an invalidation queue, and switching
 * translation on.
 */
#include <errno.h>
#include <stdlib.h>

#include "unit.h"

#define DIRECTORY_PDTS 2u /* 512 directory entries: PASIDs below 32768 */
#define MAX_PASID      32768u
#define QUEUE_ENTRIES  256u

struct quipu_vtd_domain {
	struct quipu_vtd_domain *next; /* of the tables */
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_domain *parent; /* nested: where guest-physical addresses are translated */
	uint64_t root, table_gpa; /* table_gpa: for the next first-stage table of a nested domain */
	uint16_t did;
	enum quipu_vtd_stage stage;
	unsigned levels;
};

struct quipu_vtd_tables {
	struct quipu_vtd_memory *memory;
	enum quipu_vtd_mode mode;
	uint64_t root;
	struct quipu_vtd_domain *domains;
};

struct quipu_vtd_tables *quipu_vtd_tables_new(struct quipu_vtd_memory *m, enum quipu_vtd_mode mode)
{
	struct quipu_vtd_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->memory = m;
	t->mode = mode;
	t->root = quipu_vtd_memory_alloc(m, 1);
	if (t->root)
		return t;
	free(t);
	return NULL;
}

void quipu_vtd_tables_free(struct quipu_vtd_tables *t)
{
	while (t && t->domains) {
		struct quipu_vtd_domain *d = t->domains;

		t->domains = d->next;
		free(d);
	}
	free(t);
}

uint64_t quipu_vtd_tables_root(const struct quipu_vtd_tables *t)
{
	return t->root;
}

/* ---- domains ---- */

static bool leaf_of(const struct quipu_vtd_domain *d, uint64_t iova, uint64_t *at);

/* Guest-physical to host-physical, for the tables of a nested domain; the address itself for all
 * others. */
static bool host_address(const struct quipu_vtd_domain *d, uint64_t addr, uint64_t *host)
{
	uint64_t at, entry;

	*host = addr;
	if (!d->parent)
		return true;
	if (!leaf_of(d->parent, addr, &at))
		return false;
	entry = quipu_vtd_memory_load(d->memory, at);
	*host = (entry & bits_mask(52) & ~UINT64_C(0xfff)) | (addr & 0xfff);
	return entry & 3;
}

static uint64_t new_table(struct quipu_vtd_domain *d)
{
	uint64_t gpa = d->table_gpa, host;

	if (!d->parent)
		return quipu_vtd_memory_alloc(d->memory, 1);
	if (!host_address(d, gpa, &host))
		return 0;
	d->table_gpa += QUIPU_VTD_PAGE;
	return gpa;
}

struct quipu_vtd_domain *quipu_vtd_domain_new(struct quipu_vtd_tables *t, uint16_t did,
					      enum quipu_vtd_stage stage, unsigned levels,
					      struct quipu_vtd_domain *parent, uint64_t table_gpa)
{
	unsigned least = stage == QUIPU_VTD_STAGE_SS ? 3 : 4;
	struct quipu_vtd_domain *d;

	if (stage != QUIPU_VTD_STAGE_PT && (levels < least || levels > 5))
		return NULL;
	if ((stage == QUIPU_VTD_STAGE_NESTED) != (parent != NULL))
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->memory = t->memory;
	d->parent = parent;
	d->table_gpa = table_gpa;
	d->did = did;
	d->stage = stage;
	d->levels = levels;
	d->root = stage == QUIPU_VTD_STAGE_PT ? 0 : new_table(d);
	if (stage != QUIPU_VTD_STAGE_PT && !d->root) {
		free(d);
		return NULL;
	}
	d->next = t->domains;
	t->domains = d;
	return d;
}

uint16_t quipu_vtd_domain_id(const struct quipu_vtd_domain *d)
{
	return d->did;
}

static bool first_stage(const struct quipu_vtd_domain *d)
{
	return d->stage == QUIPU_VTD_STAGE_FS || d->stage == QUIPU_VTD_STAGE_NESTED;
}

static unsigned shift_of(unsigned level)
{
	return 12 + 9 * (level - 1);
}

static uint64_t nonleaf_flags(const struct quipu_vtd_domain *d)
{
	return first_stage(d) ? 0x27 : 0x3; /* P, RW, US, A; R, W */
}

static uint64_t leaf_flags(const struct quipu_vtd_domain *d, unsigned prot, unsigned level)
{
	uint64_t flags = level > 1 ? bits_one(7) : 0;

	if (!first_stage(d))
		return flags | (prot & QUIPU_VTD_R ? 1 : 0) | (prot & QUIPU_VTD_W ? 2 : 0);
	flags |= prot & QUIPU_VTD_NO_ACCESSED ? 0 : 0x20;
	return flags | (prot & QUIPU_VTD_R ? 1 : 0) | (prot & QUIPU_VTD_W ? 2 : 0) |
	       (prot & QUIPU_VTD_U ? 4 : 0);
}

/* The host address of the entry for @iova at @level, tables above it made on the way. 0 or -errno.
 */
static int entry_at(struct quipu_vtd_domain *d, uint64_t iova, unsigned level, uint64_t *at)
{
	uint64_t table = d->root;

	for (unsigned l = d->levels;; l--) {
		uint64_t host, entry;
		int err;

		if (!host_address(d, table, &host))
			return -EINVAL;
		*at = host + (iova >> shift_of(l) & 0x1ff) * 8;
		if (l == level)
			return 0;
		entry = quipu_vtd_memory_load(d->memory, *at);
		if (entry & bits_one(7))
			return -EEXIST;
		if (!(entry & 3)) {
			table = new_table(d);
			if (!table)
				return -ENOMEM;
			err = quipu_vtd_memory_store(d->memory, *at, table | nonleaf_flags(d));
			if (err)
				return err;
		} else {
			table = entry & bits_mask(52) & ~UINT64_C(0xfff);
		}
	}
}

static unsigned level_of(uint64_t page)
{
	for (unsigned l = 1; l <= 3; l++)
		if (page == bits_one(shift_of(l)))
			return l;
	return 0;
}

int quipu_vtd_map(struct quipu_vtd_domain *d, uint64_t iova, uint64_t pa, uint64_t size,
		  uint64_t page, unsigned prot)
{
	unsigned level = level_of(page);

	if (!level || d->stage == QUIPU_VTD_STAGE_PT || ((iova | pa | size) & (page - 1)) ||
	    iova + size < iova)
		return -EINVAL;
	for (uint64_t off = 0; off < size; off += page) {
		uint64_t at;
		int err = entry_at(d, iova + off, level, &at);

		if (err)
			return err;
		if (quipu_vtd_memory_load(d->memory, at) & 3)
			return -EEXIST;
		err = quipu_vtd_memory_store(d->memory, at,
					     (pa + off) | leaf_flags(d, prot, level));
		if (err)
			return err;
	}
	return 0;
}

/* *at: the entry that maps @iova, whatever its page size. False when a table above is missing. */
static bool leaf_of(const struct quipu_vtd_domain *d, uint64_t iova, uint64_t *at)
{
	uint64_t table = d->root;

	for (unsigned l = d->levels; l && d->root; l--) {
		uint64_t host, entry;

		if (!host_address(d, table, &host))
			return false;
		*at = host + (iova >> shift_of(l) & 0x1ff) * 8;
		entry = quipu_vtd_memory_load(d->memory, *at);
		if (l == 1 || (l <= 3 && (entry & bits_one(7))))
			return true;
		if (!(entry & 3))
			return false;
		table = entry & bits_mask(52) & ~UINT64_C(0xfff);
	}
	return false;
}

uint64_t quipu_vtd_leaf_address(const struct quipu_vtd_domain *d, uint64_t iova)
{
	uint64_t at = 0;

	return leaf_of(d, iova, &at) ? at : 0;
}

int quipu_vtd_unmap(struct quipu_vtd_domain *d, uint64_t iova, uint64_t size)
{
	if (d->stage == QUIPU_VTD_STAGE_PT || ((iova | size) & 0xfff) || iova + size < iova)
		return -EINVAL;
	for (uint64_t off = 0; off < size; off += QUIPU_VTD_PAGE) {
		uint64_t at;
		int err;

		if (!leaf_of(d, iova + off, &at))
			continue;
		err = quipu_vtd_memory_store(d->memory, at, 0);
		if (err)
			return err;
	}
	return 0;
}

/* ---- requesters ---- */

/* The table that entry @at points to; made when it is not there yet. 0: out of memory. */
static uint64_t child(struct quipu_vtd_tables *t, uint64_t at, uint64_t pages, uint64_t flags)
{
	uint64_t entry = quipu_vtd_memory_load(t->memory, at), table;

	if (entry & 1)
		return entry & bits_mask(52) & ~UINT64_C(0xfff);
	table = quipu_vtd_memory_alloc(t->memory, pages);
	if (!table || quipu_vtd_memory_store(t->memory, at, table | flags))
		return 0;
	return table;
}

static uint64_t root_entry(const struct quipu_vtd_tables *t, uint16_t rid)
{
	uint64_t at = t->root + (rid >> 8) * 16ull;

	return t->mode == QUIPU_VTD_SCALABLE ? at + (rid >> 7 & 1) * 8ull : at;
}

static uint64_t context_offset(const struct quipu_vtd_tables *t, uint16_t rid)
{
	return t->mode == QUIPU_VTD_SCALABLE ? (rid & 0x7f) * 32ull : (rid & 0xff) * 16ull;
}

uint64_t quipu_vtd_context_address(const struct quipu_vtd_tables *t, uint16_t rid)
{
	uint64_t root = quipu_vtd_memory_load(t->memory, root_entry(t, rid));

	return root & 1 ? (root & bits_mask(52) & ~UINT64_C(0xfff)) + context_offset(t, rid) : 0;
}

uint64_t quipu_vtd_pasid_address(const struct quipu_vtd_tables *t, uint16_t rid, uint32_t pasid)
{
	uint64_t context = quipu_vtd_context_address(t, rid), directory, entry;

	if (!context || t->mode != QUIPU_VTD_SCALABLE || pasid >= MAX_PASID)
		return 0;
	directory = quipu_vtd_memory_load(t->memory, context) & bits_mask(52) & ~UINT64_C(0xfff);
	entry = directory ? quipu_vtd_memory_load(t->memory, directory + (pasid >> 6) * 8ull) : 0;
	return entry & 1 ? (entry & bits_mask(52) & ~UINT64_C(0xfff)) + (pasid & 0x3f) * 64ull : 0;
}

/* 0 or -errno; *at: where the context entry is. */
static int make_context(struct quipu_vtd_tables *t, uint16_t rid, uint64_t *at)
{
	uint64_t table = child(t, root_entry(t, rid), 1, 1);

	*at = table + context_offset(t, rid);
	return table ? 0 : -ENOMEM;
}

static int attach_legacy(struct quipu_vtd_tables *t, uint16_t rid, const struct quipu_vtd_domain *d,
			 unsigned flags)
{
	bool pt = d->stage == QUIPU_VTD_STAGE_PT;
	uint64_t at, tt = pt ? TT_PT : flags & QUIPU_VTD_ATS ? TT_SS_ATS : TT_SS;
	int err = make_context(t, rid, &at);

	if (err)
		return err;
	err = quipu_vtd_memory_store(t->memory, at + 8,
				     (uint64_t)d->did << 8 | (pt ? 2 : d->levels - 2));
	return err ? err : quipu_vtd_memory_store(t->memory, at, d->root | tt << 2 | 1);
}

int quipu_vtd_attach_pasid(struct quipu_vtd_tables *t, uint16_t rid, uint32_t pasid,
			   const struct quipu_vtd_domain *d, unsigned flags)
{
	const struct quipu_vtd_domain *ss = d->stage == QUIPU_VTD_STAGE_NESTED ? d->parent : d;
	bool has_fs = first_stage(d),
	     has_ss = d->stage != QUIPU_VTD_STAGE_FS && d->stage != QUIPU_VTD_STAGE_PT;
	uint64_t at, directory, table, context = 0x9 | DIRECTORY_PDTS << 9, qw[3];
	int err;

	if (t->mode != QUIPU_VTD_SCALABLE || pasid >= MAX_PASID)
		return -EINVAL;
	err = make_context(t, rid, &at);
	if (err)
		return err;
	context |= flags & QUIPU_VTD_ATS ? 0x14 : 0; /* DTE, PRE */
	directory = child(t, at, 1, context);
	table = directory ? child(t, directory + (pasid >> 6) * 8ull, 1, 1) : 0;
	if (!table)
		return -ENOMEM;
	at = table + (pasid & 0x3f) * 64ull;
	qw[2] = has_fs ? d->root | 1 | (uint64_t)(d->levels - 4) << 2 : 0;
	qw[1] = d->did;
	qw[0] = (has_ss ? ss->root | (uint64_t)(ss->levels - 2) << 2 : 0) |
		(uint64_t)d->stage << 6 | 1;
	for (int i = 2; i >= 0 && !err; i--)
		err = quipu_vtd_memory_store(t->memory, at + 8 * (unsigned)i, qw[i]);
	return err;
}

int quipu_vtd_attach(struct quipu_vtd_tables *t, uint16_t rid, const struct quipu_vtd_domain *d,
		     unsigned flags)
{
	if (t->mode == QUIPU_VTD_SCALABLE)
		return quipu_vtd_attach_pasid(t, rid, 0, d, flags);
	if (d->stage != QUIPU_VTD_STAGE_SS && d->stage != QUIPU_VTD_STAGE_PT)
		return -EINVAL;
	return attach_legacy(t, rid, d, flags);
}

/* ---- queue ---- */

int quipu_vtd_queue_start(struct quipu_vtd_queue *q, struct quipu_vtd *unit,
			  struct quipu_vtd_memory *mem, bool wide)
{
	*q = (struct quipu_vtd_queue){.unit = unit, .memory = mem, .wide = wide};
	q->base = quipu_vtd_memory_alloc(mem, 2);
	q->status = quipu_vtd_memory_alloc(mem, 1);
	if (!q->base || !q->status)
		return -ENOMEM;
	quipu_vtd_write(unit, IQT_REG, 8, 0);
	/* QS counts pages: one of 128-bit descriptors, two of 256-bit ones hold the same number. */
	quipu_vtd_write(unit, IQA_REG, 8, q->base | (wide ? bits_one(11) | 1 : 0));
	quipu_vtd_write(unit, GCMD_REG, 4,
			(vtd_reg32(unit, GSTS_REG) & (G_TE | G_IRE | G_CFI)) | G_QIE);
	return 0;
}

static int append(struct quipu_vtd_queue *q, const uint64_t qw[4])
{
	unsigned words = q->wide ? 4 : 2;

	for (unsigned i = 0; i < words; i++) {
		int err = quipu_vtd_memory_store(q->memory, q->base + (q->tail * words + i) * 8,
						 qw[i]);

		if (err)
			return err;
	}
	q->tail = (q->tail + 1) % QUEUE_ENTRIES;
	return 0;
}

int quipu_vtd_queue_submit(struct quipu_vtd_queue *q, const uint64_t qw[4])
{
	const uint64_t done[4] = {UINT64_C(2) << 32 | 0x25,
				  q->status}; /* wait, write the status 2 */
	int err = append(q, qw);

	if (!err)
		err = append(q, done);
	if (err)
		return err;
	quipu_vtd_write(q->unit, IQT_REG, 8, q->tail * (q->wide ? 32u : 16u));
	return quipu_vtd_read(q->unit, FSTS_REG, 4) & FSTS_IQE ? -EINVAL : 0;
}

void quipu_vtd_enable(struct quipu_vtd *u, uint64_t root, enum quipu_vtd_mode mode)
{
	uint32_t on = vtd_reg32(u, GSTS_REG) & (uint32_t)(G_QIE | G_IRE | G_CFI);

	quipu_vtd_write(u, RTADDR_REG, 8, root | (uint64_t)mode << 10);
	quipu_vtd_write(u, GCMD_REG, 4, on | G_SRTP);
	quipu_vtd_write(u, GCMD_REG, 4, on | G_TE);
}
