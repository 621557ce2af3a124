// SPDX-License-Identifier: BSD-2-Clause
/*
 * A DMA trace on a remapping unit. Map records build real page tables in the unit's memory, as the
 * operating system that was traced had them; everything else is what devices, or the driver through
 * registers and descriptors, did.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "engine/dma/trace.h"

#define MAX_MAP	    (UINT64_C(1) << 38) /* bytes of all map records: half a gigabyte of tables */
#define MAX_DOMAINS 65536u
#define GCMD	    0x18u
#define GSTS	    0x1cu
#define FSTS	    0x34u
#define TE	    0x80000000u
#define IRE	    0x02000000u
#define IQE	    0x10u
#define FIRST_DID   0x100u /* for domains that a trace names by requester and PASID */

struct domain {
	struct quipu_vtd_domain *domain;
	uint16_t did, rid;
	int32_t pasid;
	bool by_pasid;
};

struct dma_replay {
	struct quipu_vtd *unit;
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_tables *tables;
	struct quipu_vtd_queue own, *queue;
	enum quipu_vtd_mode mode;
	bool guest; /* tables and queue are someone else's */
	struct domain *domains;
	size_t ndomains;
	uint8_t attached[65536 / 8]; /* requesters that have a context entry */
	bool on;
	uint64_t mapped;
	struct dma_replay_totals totals;
};

struct dma_replay *dma_replay_new(struct quipu_vtd *unit, struct quipu_vtd_memory *memory,
				  enum quipu_vtd_mode mode)
{
	struct dma_replay *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->unit = unit;
	p->memory = memory;
	p->mode = mode;
	p->tables = quipu_vtd_tables_new(memory, mode);
	p->queue = &p->own;
	if (p->tables && !quipu_vtd_queue_start(p->queue, unit, memory, mode == QUIPU_VTD_SCALABLE))
		return p;
	dma_replay_free(p);
	return NULL;
}

struct dma_replay *dma_replay_guest(struct quipu_vtd *unit, struct quipu_vtd_memory *memory,
				    enum quipu_vtd_mode mode, struct quipu_vtd_tables *tables,
				    struct quipu_vtd_queue *queue)
{
	struct dma_replay *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->unit = unit;
	p->memory = memory;
	p->mode = mode;
	p->tables = tables;
	p->queue = queue;
	p->guest = p->on = true;
	return p;
}

void dma_replay_free(struct dma_replay *p)
{
	if (!p)
		return;
	if (!p->guest)
		quipu_vtd_tables_free(p->tables);
	free(p->domains);
	free(p);
}

/* ---- tables ---- */

static struct domain *find(struct dma_replay *p, const struct dma_record *r)
{
	for (size_t i = 0; i < p->ndomains; i++) {
		struct domain *d = &p->domains[i];

		if (d->by_pasid == r->by_pasid &&
		    (r->by_pasid ? d->rid == r->rid && d->pasid == r->pasid : d->did == r->did))
			return d;
	}
	return NULL;
}

static struct domain *add(struct dma_replay *p, const struct domain *new)
{
	struct domain *all;

	if (p->ndomains == MAX_DOMAINS - FIRST_DID)
		return NULL;
	all = reallocarray(p->domains, p->ndomains + 1, sizeof(*all));
	if (!all)
		return NULL;
	p->domains = all;
	all[p->ndomains] = *new;
	return &all[p->ndomains++];
}

static bool taken(const struct dma_replay *p, uint16_t did)
{
	for (size_t i = 0; i < p->ndomains; i++)
		if (p->domains[i].did == did)
			return true;
	return false;
}

static struct domain *make(struct dma_replay *p, const struct dma_record *r)
{
	bool fs = r->by_pasid && r->pasid >= 0 && p->mode == QUIPU_VTD_SCALABLE;
	struct domain d = {
		.did = r->did, .rid = r->rid, .pasid = r->pasid, .by_pasid = r->by_pasid};

	if (r->by_pasid)
		for (d.did = (uint16_t)(FIRST_DID + p->ndomains); taken(p, d.did); d.did++)
			;
	d.domain = quipu_vtd_domain_new(p->tables, d.did,
					fs ? QUIPU_VTD_STAGE_FS : QUIPU_VTD_STAGE_SS, 4, NULL, 0);
	return d.domain ? add(p, &d) : NULL;
}

int dma_replay_domain(struct dma_replay *p, uint16_t did, struct quipu_vtd_domain *domain)
{
	const struct domain d = {.domain = domain, .did = did, .pasid = -1};

	return add(p, &d) ? 0 : -ENOMEM;
}

void dma_replay_known(struct dma_replay *p, uint16_t rid)
{
	p->attached[rid / 8] |= (uint8_t)(1u << rid % 8);
}

static int attach(struct dma_replay *p, uint16_t rid, const struct domain *d)
{
	int32_t pasid = d->by_pasid ? d->pasid : -1;

	dma_replay_known(p, rid);
	if (pasid >= 0)
		return quipu_vtd_attach_pasid(p->tables, rid, (uint32_t)pasid, d->domain,
					      QUIPU_VTD_ATS);
	return quipu_vtd_attach(p->tables, rid, d->domain,
				p->mode == QUIPU_VTD_SCALABLE ? QUIPU_VTD_ATS : 0);
}

static int switch_on(struct dma_replay *p)
{
	if (!p->on)
		quipu_vtd_enable(p->unit, quipu_vtd_tables_root(p->tables), p->mode);
	p->on = true;
	return 0;
}

static int do_map(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	unsigned prot = (r->r ? QUIPU_VTD_R : 0) | (r->w ? QUIPU_VTD_W : 0) | QUIPU_VTD_U;
	struct domain *d = find(p, r);
	int err;

	*why = "a mapping is of whole pages; a trace maps at most 2^38 bytes in all";
	if (!r->size || ((r->addr | r->pa | r->size) & (QUIPU_VTD_PAGE - 1)) ||
	    r->size > MAX_MAP - p->mapped)
		return -EINVAL;
	*why = "a domain is mapped below 2^48, a PASID below 32768";
	if (r->addr >> 47 || (r->addr + r->size) >> 47 || r->pa >> 46 || r->pasid >= 32768 ||
	    (r->by_pasid && r->pasid >= 0 && p->mode == QUIPU_VTD_LEGACY))
		return -EINVAL;
	if (!d) {
		d = make(p, r);
		if (!d)
			return -ENOMEM;
		if (d->by_pasid) {
			err = attach(p, r->rid, d);
			if (err)
				return err;
		}
	}
	*why = "something else is mapped there already";
	err = quipu_vtd_map(d->domain, r->addr, r->pa, r->size, QUIPU_VTD_PAGE, prot);
	if (err)
		return err == -EEXIST ? -EINVAL : err;
	p->mapped += r->size;
	p->totals.maps++;
	return switch_on(p);
}

static int do_unmap(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	struct domain *d = find(p, r);

	*why = "nothing was mapped in that domain, or not in whole pages";
	if (!d || r->size > MAX_MAP)
		return -EINVAL;
	return quipu_vtd_unmap(d->domain, r->addr, r->size);
}

/* From now on; what the unit has cached of it is the trace's to invalidate. */
static int do_attach(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	const struct dma_record named = {.did = r->did, .pasid = -1};
	struct domain *d = find(p, &named), own;
	int err;

	*why = "a PASID needs a unit in scalable mode, and is below 32768";
	if (r->pasid >= 32768 || (r->pasid >= 0 && p->mode == QUIPU_VTD_LEGACY))
		return -EINVAL;
	if (!d)
		d = make(p, &named);
	if (!d)
		return -ENOMEM;
	own = *d;
	own.by_pasid = true;
	own.pasid = r->pasid;
	err = attach(p, r->rid, &own);
	return err ? err : switch_on(p);
}

/* A requester that no map record names goes through the first domain that belongs to none. */
static int introduce(struct dma_replay *p, uint16_t rid)
{
	if (!p->on || (p->attached[rid / 8] >> rid % 8 & 1))
		return 0;
	for (size_t i = 0; i < p->ndomains; i++)
		if (!p->domains[i].by_pasid)
			return attach(p, rid, &p->domains[i]);
	return 0;
}

/* ---- what devices do ---- */

static int do_dma(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	struct quipu_vtd_request rq = {.addr = r->addr,
				       .pasid = r->pasid,
				       .len = (uint32_t)r->size,
				       .rid = r->rid,
				       .at = r->at,
				       .op = r->op};
	struct quipu_vtd_response rs;
	int err = introduce(p, r->rid);

	*why = NULL;
	if (err)
		return err;
	quipu_vtd_dma(p->unit, &rq, &rs);
	p->totals.requests++;
	p->totals.faults += rs.fault != 0;
	return 0;
}

static int do_msi(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	*why = NULL;
	quipu_vtd_msi(p->unit, r->rid, r->addr, (uint32_t)r->data, NULL);
	p->totals.interrupts++;
	return 0;
}

static int do_prq(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	struct quipu_vtd_page_request rq = {.addr = r->addr,
					    .pasid = r->pasid,
					    .rid = r->rid,
					    .group = r->group,
					    .r = r->r,
					    .w = r->w,
					    .x = r->x,
					    .priv = r->priv,
					    .last = r->last};

	*why = NULL;
	quipu_vtd_page_request(p->unit, &rq, NULL);
	p->totals.page_requests++;
	return 0;
}

static int do_inv(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	*why = "the unit rejects the descriptor";
	if (quipu_vtd_queue_submit(p->queue, r->qw)) {
		uint32_t on = (uint32_t)quipu_vtd_read(p->unit, GSTS, 4) & (TE | IRE);

		/* What a driver does: clear the error, begin the queue anew, and go on. */
		quipu_vtd_write(p->unit, GCMD, 4, on);
		quipu_vtd_write(p->unit, FSTS, 4, IQE);
		if (quipu_vtd_queue_start(p->queue, p->unit, p->memory,
					  p->mode == QUIPU_VTD_SCALABLE))
			return -ENOMEM;
		return -EINVAL;
	}
	p->totals.invalidations++;
	return 0;
}

static int do_reg(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	*why = NULL;
	quipu_vtd_write(p->unit, r->offset, r->width, r->data);
	return 0;
}

static int (*const perform[])(struct dma_replay *, const struct dma_record *, const char **why) = {
	[DMA_RECORD_DMA] = do_dma, [DMA_RECORD_MSI] = do_msi,	    [DMA_RECORD_PRQ] = do_prq,
	[DMA_RECORD_MAP] = do_map, [DMA_RECORD_UNMAP] = do_unmap,   [DMA_RECORD_INV] = do_inv,
	[DMA_RECORD_REG] = do_reg, [DMA_RECORD_ATTACH] = do_attach,
};

int dma_replay_record(struct dma_replay *p, const struct dma_record *r, const char **why)
{
	*why = "time goes back";
	if (r->time < p->totals.end && !p->guest)
		return -EINVAL;
	if (!p->guest)
		quipu_vtd_advance(p->unit, r->time);
	p->totals.end = r->time;
	p->totals.records++;
	return perform[r->kind](p, r, why);
}

void dma_replay_totals(const struct dma_replay *p, struct dma_replay_totals *totals)
{
	*totals = p->totals;
}
