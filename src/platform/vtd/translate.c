// SPDX-License-Identifier: BSD-2-Clause
/*
 * One request through the unit (3.4 to 3.9, 4.2, 6.2): which checks, lookups and walks it makes,
 * and in which order. By default the IOTLB is asked first and the context entry only after a miss,
 * which 6.2.7 allows; context_first turns that round. Each step counts its events; they are
 * delivered when the request has ended.
 */
#include "unit.h"

#define INTERRUPT_FIRST UINT64_C(0xfee00000)
#define INTERRUPT_LAST	UINT64_C(0xfeefffff)

bool vtd_is_interrupt_range(uint64_t addr)
{
	return addr >= INTERRUPT_FIRST && addr <= INTERRUPT_LAST;
}

/* The tables of a request, found once. */
struct route {
	bool found;
	struct vtd_context context;
	struct vtd_pasid pasid;
	uint32_t effective;
};

static uint64_t leaf_who(uint16_t rid, int32_t pasid)
{
	return VTD_VALID | (uint64_t)rid << 32 | (pasid >= 0 ? bits_one(20) | (uint32_t)pasid : 0);
}

/* All page sizes are searched in one lookup. */
static struct vtd_leaf *iotlb_find(struct quipu_vtd *u, const struct quipu_vtd_request *rq,
				   unsigned *size)
{
	uint64_t who = leaf_who(rq->rid, rq->pasid);

	for (unsigned s = 0; s < 3; s++) {
		uint64_t page = rq->addr >> (12 + 9 * s);
		struct vtd_leaf *leaf = vtd_cache_find(&u->iotlb[s], page, page, who);

		if (leaf) {
			*size = s;
			return leaf;
		}
	}
	return NULL;
}

static void iotlb_fill(struct quipu_vtd *u, const struct quipu_vtd_request *rq, unsigned size,
		       const struct vtd_leaf *leaf)
{
	uint64_t page = rq->addr >> (12 + 9 * size);
	struct vtd_leaf *line =
		vtd_cache_fill(&u->iotlb[size], page, page, leaf_who(rq->rid, rq->pasid));

	if (line)
		*line = *leaf;
}

static bool may_write(const struct vtd_leaf *leaf, const struct quipu_vtd_request *rq)
{
	return rq->priv ? leaf->sup_w : leaf->w;
}

/* Is the access allowed? A translation request is told what is, not refused. */
static uint8_t permission(const struct quipu_vtd *u, const struct vtd_leaf *leaf,
			  const struct quipu_vtd_request *rq)
{
	bool legacy = u->ttm == TTM_LEGACY, w = may_write(leaf, rq);
	uint8_t no_write = legacy ? 0x05 : 0x85, no_read = legacy ? 0x06 : 0x86;

	if (leaf->first && !leaf->u && !rq->priv)
		return 0x81;
	if (rq->at == QUIPU_VTD_TRANSLATION)
		return 0;
	switch (rq->op) {
	case QUIPU_VTD_WRITE: return w ? 0 : no_write;
	case QUIPU_VTD_ATOMIC: return !w ? no_write : leaf->r ? 0 : no_read;
	case QUIPU_VTD_ZERO_READ: return leaf->r || ((u->config.cap & CAP_ZLR) && w) ? 0 : no_read;
	default: return leaf->r ? 0 : no_read;
	}
}

static void answer(struct quipu_vtd_response *rs, const struct quipu_vtd_request *rq,
		   const struct vtd_leaf *leaf, unsigned size, bool wants_write)
{
	rs->size = UINT64_C(1) << (12 + 9 * size);
	rs->addr = leaf->frame | (rq->addr & (rs->size - 1));
	rs->r = leaf->r;
	rs->w = may_write(leaf, rq) && (wants_write || rq->at != QUIPU_VTD_TRANSLATION);
	rs->u = leaf->u;
}

/* ---- a hit ---- */

static uint8_t hit(struct quipu_vtd *u, struct vtd_walk *w, const struct vtd_leaf *leaf,
		   unsigned size, struct quipu_vtd_response *rs)
{
	const struct quipu_vtd_request *rq = w->rq;
	uint8_t fault;

	vtd_count_level(u, EV_IOTLB_HIT, size);
	w->did = leaf->did;
	w->fpd |= leaf->fpd;
	if (rq->at == QUIPU_VTD_TRANSLATION && !leaf->ats_ok)
		return u->ttm == TTM_LEGACY ? 0x0d : 0x44;
	fault = permission(u, leaf, rq);
	if (!fault)
		answer(rs, rq, leaf, size, w->wants_write);
	return fault;
}

/* ---- a miss ---- */

static uint8_t find_tables(struct quipu_vtd *u, struct vtd_walk *w, struct route *route)
{
	const struct quipu_vtd_request *rq = w->rq;
	uint8_t fault;

	if (route->found)
		return 0;
	fault = vtd_context_find(u, w, rq->rid, &route->context);
	if (fault)
		return fault;
	if (rq->at == QUIPU_VTD_TRANSLATION && !route->context.ats_ok)
		return u->ttm == TTM_LEGACY ? 0x0d : 0x44;
	if (u->ttm == TTM_SCALABLE) {
		fault = vtd_pasid_check(u, &route->context, rq->pasid, &route->effective);
		if (!fault)
			fault = vtd_pasid_find(u, w, rq->rid, route->effective, &route->context,
					       &route->pasid);
	}
	route->found = !fault;
	return fault;
}

/* Legacy pass-through: the context entry is the whole translation, and nothing of it goes into the
 * IOTLB. */
static uint8_t identity(struct quipu_vtd *u, const struct vtd_walk *w,
			struct quipu_vtd_response *rs)
{
	struct vtd_leaf leaf = {
		.frame = w->rq->addr & ~UINT64_C(0xfff), .r = true, .w = true, .sup_w = true};

	if (w->rq->addr & ~bits_mask(u->config.haw))
		return 0x04;
	answer(rs, w->rq, &leaf, 0, w->wants_write);
	return 0;
}

static uint8_t miss(struct quipu_vtd *u, struct vtd_walk *w, struct route *route,
		    struct quipu_vtd_response *rs)
{
	const struct quipu_vtd_request *rq = w->rq;
	struct quipu_vtd_request effective = *rq;
	struct vtd_leaf leaf = {0};
	unsigned size = 0;
	uint8_t fault = find_tables(u, w, route);

	if (fault)
		return fault;
	if (u->ttm == TTM_LEGACY && route->context.tt == TT_PT)
		return identity(u, w, rs);
	if (u->ttm == TTM_SCALABLE && rq->pasid < 0 && route->context.rid_priv) {
		effective.priv = true;
		w->rq = &effective;
	}
	if (u->ttm == TTM_LEGACY)
		fault = vtd_walk_legacy(u, w, &route->context, &leaf, &size);
	else
		fault = vtd_walk_scalable(u, w, &route->pasid, route->effective, &leaf, &size);
	if (!fault)
		fault = permission(u, &leaf, &effective);
	if (!fault) {
		answer(rs, &effective, &leaf, size, w->wants_write);
		if (vtd_is_interrupt_range(rs->addr))
			fault = u->ttm == TTM_LEGACY ? 0x0e : 0x87;
	}
	w->rq = rq;
	if (fault)
		return fault;
	leaf.did = (uint16_t)w->did;
	leaf.pgtt = u->ttm == TTM_LEGACY ? 0 : route->pasid.pgtt;
	leaf.pasid = route->effective;
	leaf.ats_ok = route->context.ats_ok;
	leaf.fpd = w->fpd;
	if (!rq->priv &&
	    effective.priv) /* the entry serves requests that are always supervisor ones */
		leaf.u = true, leaf.w = leaf.sup_w;
	iotlb_fill(u, rq, size, &leaf);
	if (rq->at == QUIPU_VTD_TRANSLATION && route->context.hpte)
		vtd_hpt_prefetch(u, w, &route->pasid, rs->addr);
	return 0;
}

/* ---- the three kinds of requests ---- */

static uint8_t untranslated(struct quipu_vtd *u, struct vtd_walk *w, struct quipu_vtd_response *rs,
			    bool *walked)
{
	const struct quipu_vtd_request *rq = w->rq;
	struct vtd_leaf *leaf;
	struct route route;
	unsigned size;
	uint8_t fault;

	route.found = false;
	route.effective = 0;
	if (u->config.context_first) {
		fault = find_tables(u, w, &route);
		if (fault)
			return fault;
	}
	vtd_count(u, EV_IOTLB_LOOKUP);
	leaf = iotlb_find(u, rq, &size);
	/* A write to a page not yet known as dirty walks again, to say so in the tables. */
	if (leaf && !(w->wants_write && !leaf->dirty && may_write(leaf, rq)))
		return hit(u, w, leaf, size, rs);
	*walked = true;
	return miss(u, w, &route, rs);
}

static uint8_t translated(struct quipu_vtd *u, struct vtd_walk *w, struct quipu_vtd_response *rs)
{
	const struct quipu_vtd_request *rq = w->rq;
	bool legacy = u->ttm == TTM_LEGACY;
	struct vtd_context context;
	struct vtd_pasid pasid;
	uint32_t effective;
	uint8_t fault = vtd_context_find(u, w, rq->rid, &context);

	if (fault)
		return fault;
	if (!context.ats_ok)
		return legacy ? 0x0d : 0x44;
	if (rq->pasid >= 0 && !context.eptr)
		return 0x49;
	if (rq->addr & ~bits_mask(u->config.haw))
		return legacy ? 0x04 : 0x83;
	if (vtd_is_interrupt_range(rq->addr))
		return legacy ? 0x0e : 0x87;
	if (context.hpte) {
		fault = vtd_pasid_check(u, &context, rq->pasid, &effective);
		if (!fault)
			fault = vtd_pasid_find(u, w, rq->rid, effective, &context, &pasid);
		if (!fault)
			fault = vtd_hpt_check(u, w, &pasid, rq->rid, rq->pasid);
		if (fault)
			return fault;
	}
	rs->addr = rq->addr;
	rs->size = QUIPU_VTD_PAGE;
	rs->r = rs->w = true;
	return 0;
}

static uint8_t route_request(struct quipu_vtd *u, struct vtd_walk *w, struct quipu_vtd_response *rs,
			     bool *walked)
{
	const struct quipu_vtd_request *rq = w->rq;

	if (u->ttm == TTM_ABORT)
		return 0x33;
	if (u->ttm == TTM_RESERVED)
		return 0x30;
	if (rq->pasid >= 0) {
		if (u->ttm == TTM_LEGACY)
			return 0x31;
		if ((uint32_t)rq->pasid >> (ECAP_PSS(u->config.ecap) + 1))
			return 0x89;
	}
	return rq->at == QUIPU_VTD_TRANSLATED ? translated(u, w, rs)
					      : untranslated(u, w, rs, walked);
}

/* ---- the end of a request ---- */

static void record(struct quipu_vtd *u, const struct vtd_walk *w, struct quipu_vtd_response *rs)
{
	const struct quipu_vtd_request *rq = w->rq;
	struct vtd_fault_address a = {rq->addr, rq->pasid, rq->rid,  rq->op,
				      rq->at,	rq->priv,  rq->exec, false};

	rs->recorded = vtd_fault_record(u, rs->fault, &a, w->fpd);
}

static void refuse(struct quipu_vtd *u, const struct vtd_walk *w, struct quipu_vtd_response *rs)
{
	static const enum quipu_vtd_status status[] = {
		[ANSWER_UR] = QUIPU_VTD_UR,
		[ANSWER_CA] = QUIPU_VTD_CA,
		[ANSWER_EMPTY] = QUIPU_VTD_SUCCESS,
		[ANSWER_PERMISSION] = QUIPU_VTD_SUCCESS,
	};

	rs->addr = rs->size = 0;
	rs->r = rs->w = rs->u = false;
	rs->status = w->translation ? status[vtd_fault_answer(rs->fault)] : QUIPU_VTD_UR;
	if (rs->status != QUIPU_VTD_SUCCESS || vtd_fault_noted(rs->fault))
		record(u, w, rs);
}

static bool valid(const struct quipu_vtd_request *rq)
{
	return rq->at <= QUIPU_VTD_TRANSLATED && rq->op <= QUIPU_VTD_ZERO_READ &&
	       rq->pasid < 1 << 20;
}

/* Not remapped: a plain request goes where it says, the other kinds have no meaning. */
static void untouched(const struct quipu_vtd_request *rq, struct quipu_vtd_response *rs)
{
	if (rq->at != QUIPU_VTD_UNTRANSLATED) {
		rs->status = QUIPU_VTD_UR;
		return;
	}
	rs->addr = rq->addr;
	rs->size = QUIPU_VTD_PAGE;
	rs->r = rs->w = true;
}

void quipu_vtd_dma(struct quipu_vtd *u, const struct quipu_vtd_request *rq,
		   struct quipu_vtd_response *rs)
{
	struct vtd_walk w = {.rq = rq, .did = NO_DID};
	bool walked = false;

	*rs = (struct quipu_vtd_response){0};
	if (!valid(rq)) {
		rs->status = QUIPU_VTD_UR;
		return;
	}
	w.translation = rq->at == QUIPU_VTD_TRANSLATION;
	w.wants_write = rq->op == QUIPU_VTD_WRITE || rq->op == QUIPU_VTD_ATOMIC;
	vtd_tally_begin(u, rq->rid, rq->pasid, rq->at);
	vtd_count(u, EV_REQUESTS);
	if (rq->pasid < 0 && !rq->at && vtd_is_interrupt_range(rq->addr)) {
		rs->status = QUIPU_VTD_UR; /* blocked, and no fault: memory is not there */
	} else if (!u->tes) {
		untouched(rq, rs);
	} else {
		rs->fault = route_request(u, &w, rs, &walked);
		if (rs->fault)
			refuse(u, &w, rs);
	}
	rs->reads = w.reads;
	vtd_timing(u, w.reads, walked, w.translation);
	vtd_tally_end(u, w.did);
}
