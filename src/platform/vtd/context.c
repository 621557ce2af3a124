// SPDX-License-Identifier: BSD-2-Clause
/*
 * From a requester to its tables: root and context entries, PASID directory and PASID table (9.1
 * to 9.6), through the context cache and the PASID cache (6.2). An entry is cached once it is
 * present and valid; nothing that faults is (CAP.CM is 0).
 */
#include "unit.h"

/* Address bits above HAW-1, reserved in every entry that holds one. */
static uint64_t above_haw(const struct quipu_vtd *u)
{
	return ~bits_mask(u->config.haw);
}

/* ---- legacy mode ---- */

static uint8_t decode_legacy(const struct quipu_vtd *u, uint64_t lo, uint64_t hi,
			     struct vtd_context *c)
{
	unsigned aw = bits_get(hi, 2, 0);

	if ((lo & (0xff0 | above_haw(u))) || (hi & (bits_one(7) | ~bits_mask(24))))
		return 0x0b;
	*c = (struct vtd_context){
		.table = lo & u->hpa_mask,
		.did = (uint16_t)bits_get(hi, 23, 8),
		.tt = (uint8_t)bits_get(lo, 3, 2),
		.levels = (uint8_t)(aw + 2),
		.fpd = lo & 2,
	};
	c->ats_ok = c->tt == TT_SS_ATS;
	if (c->tt == 3 || (c->tt == TT_PT && !(u->config.ecap & ECAP_PT)) ||
	    (c->tt == TT_SS_ATS && !(u->config.ecap & ECAP_DT)))
		return 0x03;
	if (aw < 1 || aw > 3 || !(CAP_SAGAW(u->config.cap) >> aw & 1))
		return 0x03;
	return 0;
}

static uint8_t read_legacy(struct quipu_vtd *u, struct vtd_walk *w, uint16_t rid,
			   struct vtd_context *c)
{
	const uint64_t *root = vtd_memory(u, u->root + (rid >> 8) * 16ull, false);
	const uint64_t *entry;

	w->reads++;
	if (!root)
		return 0x08;
	if (!(root[0] & 1))
		return 0x01;
	if ((root[0] & (0xffe | above_haw(u))) || root[1])
		return 0x0a;
	entry = vtd_memory(u, (root[0] & u->hpa_mask) + (rid & 0xff) * 16ull, false);
	w->reads++;
	if (!entry)
		return 0x09;
	w->fpd |= entry[0] & 2;
	if (!(entry[0] & 1))
		return 0x02;
	return decode_legacy(u, entry[0], entry[1], c);
}

/* ---- scalable mode ---- */

static uint8_t decode_scalable(const struct quipu_vtd *u, const uint64_t *entry,
			       struct vtd_context *c)
{
	uint64_t reserved = 0x180 | above_haw(u);

	if (!(u->config.ecap & ECAP_HPTS))
		reserved |= bits_one(5) | bits_one(6);
	if (!(u->config.ecap & ECAP_PRS))
		reserved |= bits_one(4);
	if ((entry[0] & reserved) || (entry[1] & ~bits_mask(21)) || entry[2] || entry[3])
		return 0x42;
	*c = (struct vtd_context){
		.table = entry[0] & u->hpa_mask,
		.rid_pasid = (uint32_t)bits_get(entry[1], 19, 0),
		.rid_priv = entry[1] & bits_one(20),
		.pdts = (uint8_t)bits_get(entry[0], 11, 9),
		.fpd = entry[0] & 2,
		.ats_ok = entry[0] & 4,
		.paside = entry[0] & 8,
		.pre = entry[0] & 0x10,
		.hpte = entry[0] & 0x20,
		.eptr = entry[0] & 0x40,
	};
	return c->pre && !c->ats_ok ? 0x43 : 0;
}

static uint8_t read_scalable(struct quipu_vtd *u, struct vtd_walk *w, uint16_t rid,
			     struct vtd_context *c)
{
	const uint64_t *root = vtd_memory(u, u->root + (rid >> 8) * 16ull, false);
	const uint64_t *entry;
	uint64_t half;

	w->reads++;
	if (!root)
		return 0x38;
	half = root[rid >> 7 & 1];
	if (!(half & 1))
		return 0x39;
	if (half & (0xffe | above_haw(u)))
		return 0x3a;
	entry = vtd_memory(u, (half & u->hpa_mask) + (rid & 0x7f) * 32ull, false);
	w->reads++;
	if (!entry)
		return 0x40;
	w->fpd |= entry[0] & 2;
	if (!(entry[0] & 1))
		return 0x41;
	return decode_scalable(u, entry, c);
}

uint8_t vtd_context_find(struct quipu_vtd *u, struct vtd_walk *w, uint16_t rid,
			 struct vtd_context *out)
{
	uint64_t who = VTD_VALID | rid;
	struct vtd_context *cached = vtd_cache_find(&u->context, rid, 0, who);
	uint8_t fault = 0;

	vtd_count(u, EV_CTXT_LOOKUP);
	if (cached) {
		vtd_count(u, EV_CTXT_HIT);
		*out = *cached;
	} else {
		fault = u->ttm == TTM_LEGACY ? read_legacy(u, w, rid, out)
					     : read_scalable(u, w, rid, out);
		if (fault)
			return fault;
		cached = vtd_cache_fill(&u->context, rid, 0, who);
		if (cached)
			*cached = *out;
	}
	w->fpd |= out->fpd;
	if (u->ttm == TTM_LEGACY)
		w->did = out->did;
	return 0;
}

/* ---- PASIDs ---- */

uint8_t vtd_pasid_check(const struct quipu_vtd *u, const struct vtd_context *c, int32_t pasid,
			uint32_t *effective)
{
	(void)u;
	*effective = pasid < 0 ? c->rid_pasid : (uint32_t)pasid;
	if (pasid >= 0 && !c->paside)
		return 0x45;
	if (*effective >> (c->pdts + 7 + 6))
		return 0x46;
	if (pasid >= 0 && *effective == c->rid_pasid)
		return 0x48;
	return 0;
}

static bool levels_fit(const struct quipu_vtd *u, unsigned aw)
{
	return aw >= 1 && aw <= 3 && (CAP_SAGAW(u->config.cap) >> aw & 1);
}

/* Is the kind of translation that the entry asks for one that the unit has? */
static bool supported(const struct quipu_vtd *u, const struct vtd_pasid *p, unsigned aw,
		      unsigned fspm)
{
	uint64_t ecap = u->config.ecap;
	bool fs = p->pgtt == QUIPU_VTD_STAGE_FS || p->pgtt == QUIPU_VTD_STAGE_NESTED;
	bool ss = p->pgtt == QUIPU_VTD_STAGE_SS || p->pgtt == QUIPU_VTD_STAGE_NESTED;

	if (p->pgtt < QUIPU_VTD_STAGE_FS || p->pgtt > QUIPU_VTD_STAGE_PT)
		return false;
	if (p->pgtt == QUIPU_VTD_STAGE_PT && !(ecap & ECAP_PT))
		return false;
	if (p->pgtt == QUIPU_VTD_STAGE_NESTED && !(ecap & ECAP_NEST))
		return false;
	if (ss && (!(ecap & ECAP_SSTS) || !levels_fit(u, aw) || (p->ssade && !(ecap & ECAP_SSADS))))
		return false;
	return !fs ||
	       ((ecap & ECAP_FSTS) && fspm <= 1 && (fspm == 0 || (u->config.cap & CAP_FS5LP)));
}

static uint8_t decode_pasid(const struct quipu_vtd *u, const uint64_t *e, struct vtd_pasid *p)
{
	unsigned aw = bits_get(e[0], 4, 2), fspm = bits_get(e[2], 3, 2);
	uint64_t qw1_reserved = bits_mask(23) & ~bits_mask(16), hpt = UINT64_C(0);

	if (u->config.ecap & ECAP_HPTS)
		hpt = ~UINT64_C(0);
	if ((e[0] & (bits_one(5) | 0xc00 | above_haw(u))) ||
	    (e[1] & (qw1_reserved | UINT64_C(0xf8000000))))
		return 0x5a;
	if ((e[2] & (bits_one(1) | 0xf00 | above_haw(u))) || e[3] || e[6] || e[7])
		return 0x5a;
	if ((e[4] & ~(hpt & (7 | u->hpa_mask))) || (e[5] & ~(hpt & 0xffff)))
		return 0x5a;
	*p = (struct vtd_pasid){
		.ss_table = e[0] & u->hpa_mask,
		.fs_table = e[2] & u->hpa_mask,
		.hpt_table = e[4] & u->hpa_mask,
		.did = (uint16_t)e[1],
		.hpt_did = (uint16_t)e[5],
		.pgtt = (uint8_t)bits_get(e[0], 8, 6),
		.ss_levels = (uint8_t)(aw + 2),
		.fs_levels = (uint8_t)(fspm + 4),
		.hpt_size = (uint8_t)(e[4] & 3),
		.hpt_no_prefetch = e[4] & 4,
		.fpd = e[0] & 2,
		.ssade = e[0] & bits_one(9),
		.sre = e[2] & 1,
		.wpe = e[2] & 0x10,
		.eafe = e[2] & 0x80,
	};
	return supported(u, p, aw, fspm) ? 0 : 0x5b;
}

static uint8_t read_pasid(struct quipu_vtd *u, struct vtd_walk *w, uint32_t pasid,
			  const struct vtd_context *c, struct vtd_pasid *out)
{
	const uint64_t *entry = vtd_memory(u, c->table + (pasid >> 6) * 8ull, false);
	uint64_t directory;

	w->reads++;
	if (!entry)
		return 0x50;
	directory = *entry;
	w->fpd |= directory & 2;
	if (!(directory & 1))
		return 0x51;
	if (directory & (0xffc | above_haw(u)))
		return 0x52;
	entry = vtd_memory(u, (directory & u->hpa_mask) + (pasid & 0x3f) * 64ull, false);
	w->reads++;
	if (!entry)
		return 0x58;
	w->fpd |= entry[0] & 2;
	if (!(entry[0] & 1))
		return 0x59;
	return decode_pasid(u, entry, out);
}

uint8_t vtd_pasid_find(struct quipu_vtd *u, struct vtd_walk *w, uint16_t rid, uint32_t pasid,
		       const struct vtd_context *c, struct vtd_pasid *out)
{
	uint64_t who = VTD_VALID | rid, index = rid ^ pasid;
	struct vtd_pasid *cached = vtd_cache_find(&u->pasid, index, pasid, who);
	uint8_t fault;

	vtd_count(u, EV_PASID_LOOKUP);
	if (cached) {
		vtd_count(u, EV_PASID_HIT);
		*out = *cached;
	} else {
		fault = read_pasid(u, w, pasid, c, out);
		if (fault)
			return fault;
		out->fpd |= w->fpd && !c->fpd; /* the directory's */
		cached = vtd_cache_fill(&u->pasid, index, pasid, who);
		if (cached)
			*cached = *out;
	}
	w->fpd |= out->fpd;
	w->did = out->did;
	return 0;
}
