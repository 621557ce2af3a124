// SPDX-License-Identifier: BSD-2-Clause
/*
 * Page walks (3.6 to 3.8, 9.7 to 9.10): second stage, first stage, nested, pass-through, through
 * the paging-structure caches (6.2.5), with accessed and dirty bits. One walk is one lookup in its
 * paging-structure cache.
 *
 * Not modelled: snoop control (A/D updates always succeed where memory does), execute requests,
 * memory types.
 */
#include "unit.h"

#define FSE_P  bits_one(0)
#define FSE_RW bits_one(1)
#define FSE_US bits_one(2)
#define FSE_A  bits_one(5)
#define FSE_D  bits_one(6)
#define PTE_PS bits_one(7)
#define FSE_EA bits_one(10)
#define SSE_A  bits_one(8)
#define SSE_D  bits_one(9)

static unsigned shift_of(unsigned level)
{
	return 12 + 9 * (level - 1);
}

static uint64_t entry_address(uint64_t table, uint64_t addr, unsigned level)
{
	return table + (addr >> shift_of(level) & 0x1ff) * 8;
}

/* Frame bits that a large leaf must leave 0: 2M at level 2, 1G at level 3. */
static uint64_t frame_low(unsigned level)
{
	return bits_mask(shift_of(level)) & ~UINT64_C(0xfff);
}

/* Set @flags in the entry at @addr. False: memory refuses the write. */
static bool set_flags(struct quipu_vtd *u, uint64_t addr, uint64_t flags)
{
	uint64_t *entry = vtd_memory(u, addr, true);

	if (!entry)
		return false;
	*entry |= flags;
	vtd_count(u, EV_AD_UPDATE);
	return true;
}

static struct vtd_nonleaf *psc_find(struct vtd_cache *psc, uint64_t addr, unsigned levels,
				    uint64_t who, unsigned *level)
{
	for (unsigned l = 2; l <= levels; l++) {
		uint64_t tag = addr >> shift_of(l);
		struct vtd_nonleaf *hit = vtd_cache_find(&psc[l - 2], tag, tag, who);

		if (hit) {
			*level = l;
			return hit;
		}
	}
	return NULL;
}

static void psc_fill(struct vtd_cache *psc, uint64_t addr, unsigned level, uint64_t who,
		     struct vtd_nonleaf n)
{
	uint64_t tag = addr >> shift_of(level);
	struct vtd_nonleaf *line = vtd_cache_fill(&psc[level - 2], tag, tag, who);

	if (line)
		*line = n;
}

/* ---- second stage ---- */

struct ss_codes {
	uint8_t access, root, reserved;
};
static const struct ss_codes ss_legacy = {0x07, 0x07, 0x0c}, ss_scalable = {0x78, 0x7b, 0x7a};

struct ss {
	uint64_t table;
	unsigned levels;
	uint16_t did;
	bool legacy, ade;
	bool dirty; /* out of the leaf's D what this access needs: it is a write */
};

struct ss_page {
	uint64_t frame; /* of the page */
	unsigned size;	/* 0: 4K, 1: 2M, 2: 1G */
	bool r, w, dirty;
};

static uint8_t ss_not_present(const struct ss *s, const struct vtd_walk *w)
{
	if (!s->legacy)
		return 0x79;
	return !w->translation && w->rq->op == QUIPU_VTD_WRITE ? 0x05 : 0x06;
}

static uint64_t ss_reserved(const struct quipu_vtd *u, unsigned level, bool leaf)
{
	uint64_t mask = (bits_mask(52) & ~bits_mask(u->config.haw)) | bits_one(62);

	if (level > 3)
		mask |= PTE_PS;
	if (level > 1 && leaf)
		mask |= frame_low(level);
	/* Large pages that the unit does not have. */
	if (level == 2 && !(CAP_SSLPS(u->config.cap) & 1))
		mask |= PTE_PS;
	if (level == 3 && !(CAP_SSLPS(u->config.cap) & 2))
		mask |= PTE_PS;
	if (!leaf || !(u->config.ecap & ECAP_SC))
		mask |= bits_one(11);
	return mask;
}

/* A and D of the entry at @at. @entry is what it holds. */
static uint8_t ss_accessed(struct quipu_vtd *u, const struct ss *s, uint64_t at, uint64_t entry,
			   bool leaf, bool writable)
{
	uint64_t flags = SSE_A;

	if (!s->ade)
		return 0;
	if (leaf && writable && s->dirty)
		flags |= SSE_D;
	flags &= ~entry;
	return !flags || set_flags(u, at, flags) ? 0 : 0x7d;
}

static uint8_t ss_walk(struct quipu_vtd *u, struct vtd_walk *w, const struct ss *s, uint64_t addr,
		       struct ss_page *page)
{
	const struct ss_codes *codes = s->legacy ? &ss_legacy : &ss_scalable;
	uint64_t who = VTD_VALID | s->did;
	unsigned level = s->levels, hit = 0;
	struct vtd_nonleaf at = {.next = s->table, .r = true, .w = true};
	const struct vtd_nonleaf *cached = psc_find(u->ss_psc, addr, s->levels, who, &hit);

	vtd_count(u, EV_SS_LOOKUP);
	if (cached) {
		vtd_count_level(u, EV_SS_HIT, hit - 1);
		at = *cached;
		level = hit - 1;
	}
	for (;; level--) {
		uint64_t where = entry_address(at.next, addr, level);
		const uint64_t *p = vtd_memory(u, where, false);
		uint64_t entry;
		bool leaf;
		uint8_t fault;

		w->reads++;
		if (!p)
			return level == s->levels ? codes->root : codes->access;
		entry = *p;
		leaf = level == 1 || (level <= 3 && (entry & PTE_PS));
		if (!(entry & 3))
			return ss_not_present(s, w);
		if (entry & ss_reserved(u, level, leaf))
			return codes->reserved;
		at.r &= entry & 1;
		at.w &= (entry & 2) != 0;
		fault = ss_accessed(u, s, where, entry, leaf, at.w);
		if (fault)
			return fault;
		at.next = entry & u->hpa_mask;
		if (leaf) {
			*page = (struct ss_page){at.next & ~frame_low(level), level - 1, at.r, at.w,
						 true};
			page->dirty = !s->ade || (entry & SSE_D) || (at.w && s->dirty);
			return 0;
		}
		psc_fill(u->ss_psc, addr, level, who, at);
	}
}

/* Input beyond what the tables span. */
static bool ss_beyond(const struct quipu_vtd *u, unsigned levels, uint64_t addr)
{
	unsigned width = 12 + 9 * levels, mgaw = CAP_MGAW(u->config.cap);

	return addr & ~bits_mask(width < mgaw ? width : mgaw);
}

static uint64_t offset_in(uint64_t addr, unsigned size)
{
	return addr & bits_mask(12 + 9 * size);
}

static void leaf_of_ss(const struct ss_page *page, struct vtd_leaf *leaf, unsigned *size)
{
	leaf->frame = page->frame;
	leaf->r = page->r;
	leaf->w = leaf->sup_w = page->w;
	leaf->dirty = page->dirty;
	*size = page->size;
}

uint8_t vtd_walk_legacy(struct quipu_vtd *u, struct vtd_walk *w, const struct vtd_context *c,
			struct vtd_leaf *leaf, unsigned *size)
{
	struct ss s = {c->table, c->levels, c->did, .legacy = true};
	struct ss_page page;
	uint8_t fault;

	if (ss_beyond(u, c->levels, w->rq->addr))
		return 0x04;
	fault = ss_walk(u, w, &s, w->rq->addr, &page);
	if (!fault)
		leaf_of_ss(&page, leaf, size);
	return fault;
}

/* ---- first stage, nested or not ---- */

struct fs {
	const struct vtd_pasid *p;
	struct ss ss; /* nested: below the first stage */
	bool nested;
	uint32_t pasid;
};

/* Where a first-stage table really lies, and whether its entries may be changed. */
struct fs_table {
	uint64_t hpa;
	bool writable;
};

static uint8_t fs_table(struct quipu_vtd *u, struct vtd_walk *w, const struct fs *f,
			uint64_t address, bool root, struct fs_table *table)
{
	struct ss s = f->ss;
	struct ss_page page;
	uint8_t fault;

	*table = (struct fs_table){address, true};
	if (!f->nested)
		return 0;
	if (ss_beyond(u, s.levels, address))
		return 0x74;
	s.dirty = true; /* with A/D in the second stage, its view of a table page is that of a write
			 */
	fault = ss_walk(u, w, &s, address, &page);
	if (fault)
		return fault;
	if (!page.r)
		return root ? 0x75 : 0x76;
	*table = (struct fs_table){page.frame + offset_in(address, page.size), page.w};
	return 0;
}

static uint64_t fs_reserved(const struct quipu_vtd *u, unsigned level, bool leaf)
{
	uint64_t mask = bits_mask(52) & ~bits_mask(u->config.haw);

	if (level > 3 || (level == 3 && !(u->config.cap & CAP_FS1GP)))
		mask |= PTE_PS;
	if (level > 1 && leaf)
		mask |= frame_low(level) & ~bits_one(12); /* bit 12 is PAT */
	return mask;
}

static bool non_canonical(uint64_t addr, unsigned levels)
{
	unsigned top = 12 + 9 * levels - 1;
	int64_t upper = (int64_t)addr >> top;

	return upper != 0 && upper != -1;
}

/* May this request write, as far as the first stage goes? */
static bool fs_may_write(const struct fs *f, const struct vtd_walk *w, bool rw)
{
	return rw || (w->rq->priv && !f->p->wpe);
}

static uint8_t fs_flags(struct quipu_vtd *u, uint64_t where, uint64_t entry, uint64_t flags,
			bool writable)
{
	flags &= ~entry;
	if (!flags)
		return 0;
	if (!writable)
		return 0x77;
	return set_flags(u, where, flags) ? 0 : 0x91;
}

struct fs_leaf {
	uint64_t gpa, where, entry;
	unsigned size;
	bool w, u, writable_table;
};

static uint8_t fs_descend(struct quipu_vtd *u, struct vtd_walk *w, const struct fs *f,
			  struct fs_leaf *leaf)
{
	uint64_t addr = w->rq->addr, who = VTD_VALID | (uint64_t)f->p->did << 32 | f->pasid;
	unsigned level = f->p->fs_levels, hit = 0;
	struct vtd_nonleaf at = {.r = true, .w = true, .u = true};
	struct fs_table table = {0, true};
	const struct vtd_nonleaf *cached = psc_find(u->fs_psc, addr, f->p->fs_levels, who, &hit);
	uint64_t accessed = FSE_A | (f->p->eafe ? FSE_EA : 0);
	uint8_t fault;

	vtd_count(u, EV_FS_LOOKUP);
	if (cached) {
		vtd_count_level(u, EV_FS_HIT, hit - 1);
		at = *cached;
		level = hit - 1;
		table.hpa = at.next;
		table.writable = at.r; /* in a combined entry: the table page may be written */
	} else {
		fault = fs_table(u, w, f, f->p->fs_table, true, &table);
		if (fault)
			return fault;
	}
	for (;; level--) {
		uint64_t where = entry_address(table.hpa, addr, level);
		const uint64_t *p = vtd_memory(u, where, false);
		uint64_t entry;
		bool is_leaf;

		w->reads++;
		if (!p)
			return level == f->p->fs_levels ? 0x73 : 0x70;
		entry = *p;
		is_leaf = level == 1 || (level <= 3 && (entry & PTE_PS));
		if (!(entry & FSE_P))
			return 0x71;
		if (entry & fs_reserved(u, level, is_leaf))
			return 0x72;
		at.w &= (entry & FSE_RW) != 0;
		at.u &= (entry & FSE_US) != 0;
		fault = fs_flags(u, where, entry, accessed, table.writable);
		if (fault)
			return fault;
		if (is_leaf) {
			*leaf = (struct fs_leaf){
				.gpa = (entry & u->hpa_mask & ~bits_mask(shift_of(level))) |
				       offset_in(addr, level - 1),
				.where = where,
				.entry = entry,
				.size = level - 1,
				.w = at.w,
				.u = at.u,
				.writable_table = table.writable,
			};
			return 0;
		}
		fault = fs_table(u, w, f, entry & u->hpa_mask, false, &table);
		if (fault)
			return fault;
		at.next = table.hpa;
		at.r = table.writable;
		psc_fill(u->fs_psc, addr, level, who, at);
	}
}

static uint8_t fs_walk(struct quipu_vtd *u, struct vtd_walk *w, struct fs *f, struct vtd_leaf *leaf,
		       unsigned *size)
{
	struct ss_page page = {.size = 2, .r = true, .w = true, .dirty = true};
	struct fs_leaf fs;
	bool writes;
	uint8_t fault;

	if (non_canonical(w->rq->addr, f->p->fs_levels))
		return 0x80;
	fault = fs_descend(u, w, f, &fs);
	if (fault)
		return fault;
	page.frame = fs.gpa & ~bits_mask(12 + 9 * 2);
	writes = w->wants_write && fs_may_write(f, w, fs.w) && (fs.u || w->rq->priv);
	if (f->nested) {
		if (ss_beyond(u, f->ss.levels, fs.gpa))
			return 0x84;
		f->ss.dirty = writes;
		fault = ss_walk(u, w, &f->ss, fs.gpa, &page);
		if (fault)
			return fault;
	}
	if (writes && page.w) {
		fault = fs_flags(u, fs.where, fs.entry, FSE_D, fs.writable_table);
		if (fault)
			return fault;
	}
	*size = page.size < fs.size ? page.size : fs.size;
	leaf->frame = (page.frame + offset_in(fs.gpa, page.size)) & ~bits_mask(12 + 9 * *size);
	leaf->r = page.r;
	leaf->w = fs.w && page.w;
	leaf->sup_w = (fs.w || !f->p->wpe) && page.w;
	leaf->u = fs.u;
	leaf->first = true;
	leaf->dirty = ((fs.entry & FSE_D) || (writes && page.w)) && page.dirty;
	return 0;
}

/* Pass-through: the whole gigabyte around the address, or the largest page that the unit has. */
static uint8_t pass_through(const struct quipu_vtd *u, const struct vtd_walk *w,
			    struct vtd_leaf *leaf, unsigned *size)
{
	if (w->rq->addr & ~bits_mask(u->config.haw))
		return 0x83;
	*size = CAP_SSLPS(u->config.cap) & 2 ? 2 : CAP_SSLPS(u->config.cap) & 1;
	leaf->frame = w->rq->addr & ~bits_mask(12 + 9 * *size);
	leaf->r = leaf->w = leaf->sup_w = leaf->dirty = true;
	return 0;
}

uint8_t vtd_walk_scalable(struct quipu_vtd *u, struct vtd_walk *w, const struct vtd_pasid *p,
			  uint32_t pasid, struct vtd_leaf *leaf, unsigned *size)
{
	struct fs f = {
		.p = p,
		.ss = {p->ss_table, p->ss_levels, p->did, .ade = p->ssade},
		.nested = p->pgtt == QUIPU_VTD_STAGE_NESTED,
		.pasid = pasid,
	};
	struct ss_page page;
	uint8_t fault;

	if (p->pgtt == QUIPU_VTD_STAGE_PT)
		return pass_through(u, w, leaf, size);
	if (p->pgtt != QUIPU_VTD_STAGE_SS) {
		if (w->rq->priv && !p->sre)
			return 0x5d;
		return fs_walk(u, w, &f, leaf, size);
	}
	if (ss_beyond(u, p->ss_levels, w->rq->addr))
		return 0x84;
	f.ss.dirty = w->wants_write;
	fault = ss_walk(u, w, &f.ss, w->rq->addr, &page);
	if (!fault)
		leaf_of_ss(&page, leaf, size);
	return fault;
}
