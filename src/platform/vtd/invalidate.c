// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each invalidation removes from which cache (6.5.2). Exactly the granularity asked for is
 * done; hardware may do more. An address range of 2^am pages removes what overlaps it, large pages
 * and whole spans of a table entry too.
 */
#include "unit.h"

struct scope {
	uint16_t did;
	uint32_t pasid;
	uint64_t first, last;
	unsigned shift; /* of the cache's tags */
};

static bool overlaps(const struct vtd_tag *tag, const struct scope *s)
{
	uint64_t first = tag->key << s->shift, last = first | bits_mask(s->shift);

	return first <= s->last && last >= s->first;
}

static struct scope range(uint16_t did, uint32_t pasid, uint64_t addr, unsigned am)
{
	uint64_t mask = bits_mask(12 + am);

	return (struct scope){did, pasid, addr & ~mask, addr | mask, 0};
}

static bool first_stage(const struct vtd_leaf *leaf)
{
	return leaf->pgtt == QUIPU_VTD_STAGE_FS || leaf->pgtt == QUIPU_VTD_STAGE_NESTED;
}

static uint16_t psc_did(const struct vtd_tag *tag)
{
	return (uint16_t)(tag->who >> 32);
}

static uint16_t ss_did(const struct vtd_tag *tag)
{
	return (uint16_t)tag->who;
}

static uint32_t psc_pasid(const struct vtd_tag *tag)
{
	return (uint32_t)tag->who & 0xfffff;
}

/* ---- IOTLB ---- */

static bool leaf_domain(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	const struct scope *s = arg;

	(void)tag;
	return ((const struct vtd_leaf *)payload)->did == s->did;
}

/* A page of a domain: second-stage entries by address, first-stage ones by domain alone (their
 * addresses differ). */
static bool leaf_page(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	const struct vtd_leaf *leaf = payload;
	const struct scope *s = arg;

	return leaf->did == s->did && (first_stage(leaf) || overlaps(tag, s));
}

static bool leaf_pasid(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	const struct vtd_leaf *leaf = payload;
	const struct scope *s = arg;

	(void)tag;
	return leaf->did == s->did && leaf->pasid == s->pasid;
}

static bool leaf_pasid_page(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	return leaf_pasid(tag, payload, arg) && first_stage(payload) && overlaps(tag, arg);
}

static void drop_leaves(struct quipu_vtd *u, vtd_cache_match *match, struct scope s)
{
	for (unsigned i = 0; i < 3; i++) {
		s.shift = 12 + 9 * i;
		vtd_cache_drop(&u->iotlb[i], match, &s);
	}
}

/* ---- paging-structure caches ---- */

static bool fs_domain(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	(void)payload;
	return psc_did(tag) == ((const struct scope *)arg)->did;
}

static bool fs_pasid(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	return fs_domain(tag, payload, arg) && psc_pasid(tag) == ((const struct scope *)arg)->pasid;
}

static bool fs_pasid_page(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	return fs_pasid(tag, payload, arg) && overlaps(tag, arg);
}

static bool ss_domain(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	(void)payload;
	return ss_did(tag) == ((const struct scope *)arg)->did;
}

static bool ss_page(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	return ss_domain(tag, payload, arg) && overlaps(tag, arg);
}

static void drop_nonleaves(struct vtd_cache *psc, vtd_cache_match *match, struct scope s)
{
	for (unsigned i = 0; i < 4; i++) {
		s.shift = 12 + 9 * (i + 1);
		vtd_cache_drop(&psc[i], match, &s);
	}
}

/* ---- the commands ---- */

static void clear_hpt(struct quipu_vtd *u)
{
	vtd_cache_clear(&u->hpt_leaf);
	for (unsigned i = 0; i < 3; i++)
		vtd_cache_clear(&u->hpt_psc[i]);
}

void vtd_invalidate_iotlb_global(struct quipu_vtd *u)
{
	for (unsigned i = 0; i < 3; i++)
		vtd_cache_clear(&u->iotlb[i]);
	for (unsigned i = 0; i < 4; i++) {
		vtd_cache_clear(&u->fs_psc[i]);
		vtd_cache_clear(&u->ss_psc[i]);
	}
}

void vtd_flush_translations(struct quipu_vtd *u)
{
	vtd_invalidate_iotlb_global(u);
	vtd_cache_clear(&u->context);
	vtd_cache_clear(&u->pasid);
	clear_hpt(u);
}

void vtd_invalidate_iotlb_domain(struct quipu_vtd *u, uint16_t did)
{
	struct scope s = {.did = did};

	drop_leaves(u, leaf_domain, s);
	drop_nonleaves(u->fs_psc, fs_domain, s);
	drop_nonleaves(u->ss_psc, ss_domain, s);
}

void vtd_invalidate_iotlb_page(struct quipu_vtd *u, uint16_t did, uint64_t addr, unsigned am,
			       bool ih)
{
	struct scope s = range(did, 0, addr, am);

	drop_leaves(u, leaf_page, s);
	drop_nonleaves(u->fs_psc, fs_domain, s);
	if (!ih)
		drop_nonleaves(u->ss_psc, ss_page, s);
}

void vtd_invalidate_pasid_all(struct quipu_vtd *u, uint16_t did, uint32_t pasid)
{
	struct scope s = {.did = did, .pasid = pasid};

	drop_leaves(u, leaf_pasid, s);
	drop_nonleaves(u->fs_psc, fs_pasid, s);
}

void vtd_invalidate_pasid_page(struct quipu_vtd *u, uint16_t did, uint32_t pasid, uint64_t addr,
			       unsigned am, bool ih)
{
	struct scope s = range(did, pasid, addr, am);

	drop_leaves(u, leaf_pasid_page, s);
	if (!ih)
		drop_nonleaves(u->fs_psc, fs_pasid_page, s);
}

/* ---- context and PASID caches ---- */

struct context_scope {
	bool legacy, device;
	uint16_t did, sid, sid_mask;
};

static bool context_match(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	const struct vtd_context *c = payload;
	const struct context_scope *s = arg;

	if (s->device && ((uint16_t)tag->who ^ s->sid) & s->sid_mask)
		return false;
	/* In scalable mode a context entry belongs to no domain. */
	return !s->legacy || c->did == s->did;
}

void vtd_invalidate_context(struct quipu_vtd *u, unsigned granularity, uint16_t did, uint16_t sid,
			    unsigned fm)
{
	static const uint16_t ignored[] = {0, 4, 6, 7};
	struct context_scope s = {
		.legacy = u->ttm == TTM_LEGACY,
		.device = granularity == 3,
		.did = did,
		.sid = sid,
		.sid_mask = (uint16_t)~ignored[fm & 3],
	};

	if (granularity == 1)
		vtd_cache_clear(&u->context);
	else
		vtd_cache_drop(&u->context, context_match, &s);
}

static bool pasid_domain(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	(void)tag;
	return ((const struct vtd_pasid *)payload)->did == ((const struct scope *)arg)->did;
}

static bool pasid_one(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	return pasid_domain(tag, payload, arg) && tag->key == ((const struct scope *)arg)->pasid;
}

void vtd_invalidate_pasid_cache(struct quipu_vtd *u, unsigned granularity, uint16_t did,
				uint32_t pasid)
{
	struct scope s = {.did = did, .pasid = pasid};

	if (granularity == 3)
		vtd_cache_clear(&u->pasid);
	else
		vtd_cache_drop(&u->pasid, granularity == 1 ? pasid_one : pasid_domain, &s);
}

/* ---- interrupt entry cache ---- */

static bool index_match(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	const struct scope *s = arg;

	(void)payload;
	return tag->key >= s->first && tag->key <= s->last;
}

void vtd_invalidate_iec(struct quipu_vtd *u, bool index, unsigned first, unsigned im)
{
	struct scope s = {.first = first & ~bits_mask(im), .last = first | bits_mask(im)};

	if (index)
		vtd_cache_drop(&u->iec, index_match, &s);
	else
		vtd_cache_clear(&u->iec);
}

/* ---- host permission table ---- */

static bool hpt_leaf_domain(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	(void)tag;
	return ((const struct vtd_hpt_leaf *)payload)->did == ((const struct scope *)arg)->did;
}

static bool hpt_leaf_page(const struct vtd_tag *tag, const void *payload, const void *arg)
{
	const struct vtd_hpt_leaf *leaf = payload;
	struct scope s = *(const struct scope *)arg;

	s.shift = 12 + 9 * leaf->level;
	return leaf->did == s.did && overlaps(tag, &s);
}

void vtd_invalidate_hpt(struct quipu_vtd *u, unsigned granularity, uint16_t did, uint64_t addr,
			unsigned am, unsigned ih)
{
	static const unsigned shift[] = {25, 33, 41};
	struct scope s = range(did, 0, addr, am);

	if (granularity == 1) {
		clear_hpt(u);
		return;
	}
	vtd_cache_drop(&u->hpt_leaf, granularity == 3 ? hpt_leaf_page : hpt_leaf_domain, &s);
	for (unsigned i = 0; i < 3 && !ih; i++) {
		s.shift = shift[i];
		vtd_cache_drop(&u->hpt_psc[i], granularity == 3 ? ss_page : ss_domain, &s);
	}
}
