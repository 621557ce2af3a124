// SPDX-License-Identifier: BSD-2-Clause
/*
 * Page requests (7.4 to 7.7): checked through the tables, put into the page request queue, answered
 * by the unit itself when they cannot be. The tables are looked at first, then whether the queue
 * has room.
 */
#include "unit.h"

#define ENTRY		 32u
#define RESPONSE_SUCCESS 0u
#define RESPONSE_INVALID 1u

static void respond(struct quipu_vtd *u, const struct quipu_vtd_page_request *rq, unsigned code)
{
	if (rq->last && u->ops->page_response)
		u->ops->page_response(u->arg, rq->rid, rq->pasid, rq->group, code);
}

static uint8_t check(struct quipu_vtd *u, struct vtd_walk *w,
		     const struct quipu_vtd_page_request *rq, struct vtd_pasid *pasid,
		     uint32_t *effective)
{
	static const uint8_t by_mode[] = {
		[TTM_LEGACY] = 0x32,
		[TTM_SCALABLE] = 0,
		[TTM_RESERVED] = 0x30,
		[TTM_ABORT] = 0x33,
	};
	struct vtd_context context;
	uint8_t fault = by_mode[u->ttm];

	if (fault)
		return fault;
	if (rq->pasid >= 0 && (uint32_t)rq->pasid >> (ECAP_PSS(u->config.ecap) + 1))
		return 0x89;
	fault = vtd_context_find(u, w, rq->rid, &context);
	if (fault)
		return fault;
	if (!context.pre)
		return 0x47;
	fault = vtd_pasid_check(u, &context, rq->pasid, effective);
	return fault ? fault : vtd_pasid_find(u, w, rq->rid, *effective, &context, pasid);
}

/* What the request asks for has changed, or soon will: the unit forgets what it knows of it. */
static void forget(struct quipu_vtd *u, const struct quipu_vtd_page_request *rq,
		   const struct vtd_pasid *p, uint32_t effective)
{
	if (p->pgtt == QUIPU_VTD_STAGE_FS)
		vtd_invalidate_pasid_page(u, p->did, effective, rq->addr, 0, false);
	else if (p->pgtt == QUIPU_VTD_STAGE_NESTED)
		vtd_invalidate_iotlb_domain(u, p->did);
	else
		vtd_invalidate_iotlb_page(u, p->did, rq->addr, 0, false);
}

static void raise(struct quipu_vtd *u, uint32_t bit)
{
	uint32_t status = vtd_reg32(u, PRS_REG);

	vtd_set32(u, PRS_REG, status | bit);
	if (!(status & (PRS_PPR | PRS_PRO)))
		vtd_irq_raise(u, PECTL_REG);
}

/* 256 bits of page_req_dsc. */
static bool store(struct quipu_vtd *u, const struct quipu_vtd_page_request *rq, uint64_t at)
{
	uint64_t *d = vtd_memory(u, at, true);
	bool pp = rq->pasid >= 0;

	if (!d)
		return false;
	d[0] = 1 | (uint64_t)pp << 8 | (uint64_t)rq->rid << 16 |
	       (uint64_t)(pp ? (uint32_t)rq->pasid : 0) << 32 | (uint64_t)rq->x << 52 |
	       (uint64_t)rq->priv << 53;
	d[1] = (uint64_t)rq->r | (uint64_t)rq->w << 1 | (uint64_t)rq->last << 2 |
	       (uint64_t)(rq->group & 0x1ff) << 3 | (rq->addr & ~UINT64_C(0xfff));
	d[2] = d[3] = 0;
	return true;
}

static enum quipu_vtd_page_status post(struct quipu_vtd *u, const struct quipu_vtd_page_request *rq,
				       const struct vtd_pasid *pasid, uint32_t effective)
{
	uint64_t pqa = vtd_reg64(u, PQA_REG), bytes = UINT64_C(4096) << bits_get(pqa, 2, 0);
	uint64_t tail = vtd_reg64(u, PQT_REG) & (bytes - 1), next = (tail + ENTRY) & (bytes - 1);
	bool overflown = vtd_reg32(u, PRS_REG) & PRS_PRO;

	if (overflown || next == (vtd_reg64(u, PQH_REG) & (bytes - 1))) {
		if (!overflown)
			raise(u, PRS_PRO);
		if (rq->last)
			vtd_count(u, EV_PG_REQ_OVERFLOW);
		respond(u, rq, RESPONSE_SUCCESS);
		return QUIPU_VTD_PAGE_DROPPED;
	}
	forget(u, rq, pasid, effective);
	if (!store(u, rq, (pqa & u->hpa_mask) + tail)) {
		respond(u, rq, RESPONSE_INVALID);
		return QUIPU_VTD_PAGE_DROPPED;
	}
	vtd_set64(u, PQT_REG, next);
	vtd_count(u, EV_PG_REQ_POSTED);
	raise(u, PRS_PPR);
	return QUIPU_VTD_PAGE_POSTED;
}

enum quipu_vtd_page_status
quipu_vtd_page_request(struct quipu_vtd *u, const struct quipu_vtd_page_request *rq, uint8_t *fault)
{
	struct vtd_walk w = {.did = NO_DID};
	struct vtd_pasid pasid;
	uint32_t effective = 0;
	enum quipu_vtd_page_status status;
	uint8_t reason;

	if (fault)
		*fault = 0;
	if (!u->tes || rq->pasid >= 1 << 20)
		return QUIPU_VTD_PAGE_DROPPED;
	vtd_tally_begin(u, rq->rid, rq->pasid, NO_AT);
	reason = check(u, &w, rq, &pasid, &effective);
	if (reason) {
		struct vtd_fault_address a = {rq->addr, rq->pasid, rq->rid, QUIPU_VTD_READ,
					      0,	rq->priv,  rq->x,   true};

		vtd_fault_record(u, reason, &a, w.fpd);
		respond(u, rq, RESPONSE_INVALID);
		status = QUIPU_VTD_PAGE_FAULT;
	} else {
		status = post(u, rq, &pasid, effective);
	}
	if (fault)
		*fault = reason;
	vtd_count_reads(u, w.reads);
	vtd_tally_end(u, w.did);
	return status;
}
