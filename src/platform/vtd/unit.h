/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a remapping unit: what its files share. The interface to the outside is quipu/vtd.h. */
#ifndef VTD_UNIT_H
#define VTD_UNIT_H

#include <quipu/vtd.h>

#include "cache.h"
#include "registers.h"

/* Events (Table 49), as an index: 32 places to a group. */
#define VTD_EVENT(group, bit) ((group) << 5 | (bit))
#define VTD_EVENTS	      (16 << 5)
enum vtd_event {
	EV_CLOCKS = VTD_EVENT(0, 0),
	EV_REQUESTS = VTD_EVENT(0, 1),
	EV_PW_OCCUPANCY = VTD_EVENT(0, 2),
	EV_ATS_BLOCKED = VTD_EVENT(0, 3),
	EV_TOTAL_OCCUPANCY = VTD_EVENT(0, 5),
	EV_MEM_OCCUPANCY = VTD_EVENT(0, 6),
	EV_MRDS = VTD_EVENT(1, 0),
	EV_AD_UPDATE = VTD_EVENT(1, 3),
	EV_MEM_BLOCKED = VTD_EVENT(1, 5),
	EV_PG_REQ_POSTED = VTD_EVENT(1, 6),
	EV_PG_REQ_OVERFLOW = VTD_EVENT(1, 7),
	EV_CTXT_LOOKUP = VTD_EVENT(2, 0),
	EV_CTXT_HIT = VTD_EVENT(2, 1),
	EV_PASID_LOOKUP = VTD_EVENT(2, 2),
	EV_PASID_HIT = VTD_EVENT(2, 3),
	EV_SS_LOOKUP = VTD_EVENT(2, 4),
	EV_SS_HIT = VTD_EVENT(2, 5),
	EV_FS_LOOKUP = VTD_EVENT(2, 6),
	EV_FS_HIT = VTD_EVENT(2, 7),
	EV_HPT_NONLEAF_LOOKUP = VTD_EVENT(2, 8),
	EV_HPT_NONLEAF_HIT = VTD_EVENT(2, 9),
	EV_IOTLB_LOOKUP = VTD_EVENT(3, 0),
	EV_IOTLB_HIT = VTD_EVENT(3, 1),
	EV_HPT_LEAF_LOOKUP = VTD_EVENT(3, 2),
	EV_HPT_LEAF_HIT = VTD_EVENT(3, 3),
	EV_INT_LOOKUP = VTD_EVENT(4, 0),
	EV_INT_HIT_NONPOSTED = VTD_EVENT(4, 1),
	EV_INT_HIT_POSTED = VTD_EVENT(4, 2),
};

#define NO_LEVEL    31u /* these two are bits of a counter's sets, as every level and type is */
#define NO_AT	    31u
#define AT_PREFETCH 4u /* HPT prefetch, for the address-type filter only */
#define NO_DID	    (-1)

/* What filters compare of a request, packed into one word: see vtd_who. */
#define WHO_RID(rid)	 ((uint64_t)(rid))
#define WHO_DID(did)	 ((uint64_t)(did) << 16)
#define WHO_PASID(pasid) ((uint64_t)(pasid) << 32)
#define WHO_HAS_DID	 (UINT64_C(1) << 52)
#define WHO_HAS_PASID	 (UINT64_C(1) << 53)
#define WHO_REQUEST	 (UINT64_C(1) << 54)

/*
 * What one request moved. It is delivered when the request has ended, with what was known by then,
 * so that a filter on the domain also sees the events of before the domain was known.
 */
#define TALLY_MAX 64 /* a nested walk of 5 on 5 levels makes fewer than 40 */
struct vtd_tally {
	unsigned n;
	uint8_t at;
	uint64_t who; /* requester and PASID; the domain is added at the end */
	struct {
		uint64_t n;
		uint16_t event;
		uint8_t level, at;
	} item[TALLY_MAX];
};

/* Filters of an enabled counter; those that are off let everything pass. */
struct vtd_pass {
	uint64_t want, care;	/* (who ^ want) & care must be 0 */
	uint32_t types, levels; /* sets of address types and page-table levels */
};

struct vtd_counter {
	uint64_t config; /* PERFCNTRCFG_REG without EN */
	uint64_t mask;	 /* its largest value */
	uint32_t filter[FILTERS];
	bool ios, gfs;
	uint32_t events[16]; /* what it can count, per group */
};

/* Decoded, checked entries as the caches hold them. */
struct vtd_context {
	uint64_t table; /* legacy: second-stage tables; scalable: PASID directory */
	uint32_t rid_pasid;
	uint16_t did;	    /* legacy */
	uint8_t tt, levels; /* legacy */
	uint8_t pdts;
	bool fpd, ats_ok; /* TT allows it, or DTE */
	bool paside, pre, hpte, eptr, rid_priv;
};

struct vtd_pasid {
	uint64_t ss_table, fs_table, hpt_table;
	uint16_t did, hpt_did;
	uint8_t pgtt, ss_levels, fs_levels, hpt_size;
	bool fpd, ssade, sre, wpe, eafe, hpt_no_prefetch;
};

struct vtd_leaf { /* IOTLB */
	uint64_t frame;
	uint32_t pasid; /* effective: RID_PASID for requests without */
	uint16_t did;
	uint8_t pgtt;	     /* 0: legacy */
	bool r, w, u, sup_w; /* sup_w: a supervisor may write (WPE) */
	bool dirty, first, ats_ok, fpd, n;
};

struct vtd_nonleaf { /* paging-structure cache */
	uint64_t next;
	bool r, w, u;
};

struct vtd_irte {
	uint64_t lo, hi;
};

struct vtd_hpt_leaf {
	uint16_t did;
	uint8_t perms;
	uint8_t level;
};

/* Queued timing: when each slot of a resource is free again, in clocks. */
#define MAX_SLOTS 256
struct vtd_slots {
	unsigned n;
	uint64_t free_at[MAX_SLOTS];
};

struct quipu_vtd {
	struct quipu_vtd_config config;
	const struct quipu_vtd_ops *ops;
	void *arg;

	uint32_t *regs;	  /* the window, 32 bits each; what is not special reads from here */
	uint16_t *row_of; /* row of the register table + 1 at each 32-bit word */
	uint64_t root;	  /* latched by SRTP */
	uint8_t ttm;
	bool tes, ires, qies, cfis;
	uint64_t irt;	   /* latched by SIRTP */
	uint64_t irt_size; /* entries */
	bool eime;
	unsigned fault_index;

	/* perfmon */
	unsigned ncounters;
	uint64_t left[QUIPU_VTD_MAX_COUNTERS]; /* to its largest value: its value is mask - left */
	struct vtd_pass pass[QUIPU_VTD_MAX_COUNTERS];
	struct vtd_counter counter[QUIPU_VTD_MAX_COUNTERS];
	uint64_t enabled, frozen, overflowed; /* bit c: counter c */
	uint32_t listening[16]; /* per group: events that an enabled, unfrozen counter counts */
	uint64_t listeners[VTD_EVENTS];		/* the counters */
	uint64_t type_pass[32], level_pass[32]; /* counters that a type, a level gets through to */
	uint64_t choosy;			/* counters that look at who it is */
	uint64_t last_who, last_pass;		/* the latest answer of all of them */
	uint64_t ecrsp;
	unsigned ecmd_left; /* reads until a command shows as done */
	uint64_t counting_since, counting_until;

	uint64_t now_ns, clocks; /* clocks = floor(now_ns * clock_hz / 10^9) */

	struct vtd_cache iotlb[3], context, pasid, iec, fs_psc[4], ss_psc[4], hpt_leaf, hpt_psc[3];
	uint64_t hpa_mask;   /* HAW-1:12 */
	unsigned page_sizes; /* bit i: iotlb[i] holds something */

	struct vtd_slots memory, walkers, credits;
	struct vtd_tally tally; /* of the request in hand */
};

/* ---- perfmon.c ---- */

/* Does any counter listen to @event now? */
static inline bool vtd_listens(const struct quipu_vtd *u, enum vtd_event event)
{
	return u->listening[event >> 5] >> (event & 31) & 1;
}

static inline void vtd_tally_at(struct quipu_vtd *u, enum vtd_event event, uint64_t n,
				unsigned level, unsigned at)
{
	struct vtd_tally *t = &u->tally;

	if (!vtd_listens(u, event) || t->n == TALLY_MAX)
		return;
	t->item[t->n].event = (uint16_t)event;
	t->item[t->n].n = n;
	t->item[t->n].level = (uint8_t)level;
	t->item[t->n].at = (uint8_t)at;
	t->n++;
}

static inline void vtd_count(struct quipu_vtd *u, enum vtd_event event)
{
	vtd_tally_at(u, event, 1, NO_LEVEL, u->tally.at);
}

static inline void vtd_count_level(struct quipu_vtd *u, enum vtd_event event, unsigned level)
{
	vtd_tally_at(u, event, 1, level, u->tally.at);
}

static inline void vtd_tally_begin(struct quipu_vtd *u, uint16_t rid, int32_t pasid, unsigned at)
{
	u->tally.n = 0;
	u->tally.at = (uint8_t)at;
	u->tally.who = WHO_REQUEST | WHO_RID(rid);
	if (pasid >= 0)
		u->tally.who |= WHO_HAS_PASID | WHO_PASID((uint32_t)pasid & 0xfffff);
}

void vtd_tally_deliver(struct quipu_vtd *, uint64_t who);
static inline void vtd_tally_end(struct quipu_vtd *u, int32_t did)
{
	if (u->tally.n)
		vtd_tally_deliver(u, u->tally.who |
					     (did >= 0 ? WHO_HAS_DID | WHO_DID((uint32_t)did) : 0));
}
/* @n occurrences of an event that no request is behind. */
void vtd_perfmon_count(struct quipu_vtd *, enum vtd_event, uint64_t n);
int vtd_perfmon_init(struct quipu_vtd *, const char **why);
void vtd_perfmon_reset(struct quipu_vtd *);
/* Registers whose place the unit chooses. False: @offset is none of them. */
bool vtd_perfmon_read(struct quipu_vtd *, uint32_t offset, unsigned width, uint64_t *value);
bool vtd_perfmon_write(struct quipu_vtd *, uint32_t offset, unsigned width, uint64_t value);
void vtd_command(struct quipu_vtd *, uint64_t ecmd);
uint64_t vtd_command_status(struct quipu_vtd *);

/* ---- registers.c ---- */
uint32_t vtd_reg32(const struct quipu_vtd *, uint32_t offset);
uint64_t vtd_reg64(const struct quipu_vtd *, uint32_t offset);
void vtd_set32(struct quipu_vtd *, uint32_t offset, uint32_t value);
void vtd_set64(struct quipu_vtd *, uint32_t offset, uint64_t value);
/* The interrupt whose control register is at @ctl is due: send its message, or hold it while
 * masked. */
void vtd_irq_raise(struct quipu_vtd *, uint32_t ctl);
void vtd_irq_clear(struct quipu_vtd *, uint32_t ctl);

/* ---- memory of the owner ---- */

/* @len bytes at @addr (inside one page: @addr is a multiple of @len, a power of two); NULL: access
 * error. */
static inline void *vtd_memory(struct quipu_vtd *u, uint64_t addr, bool write)
{
	char *page = u->ops->page(u->arg, addr & ~UINT64_C(0xfff), write);

	return page ? page + (addr & 0xfff) : NULL;
}

/* ---- fault.c ---- */
struct vtd_fault_address {
	uint64_t addr;
	int32_t pasid;
	uint16_t rid;
	uint8_t op, at;
	bool priv, exec;
	bool page_request;
};
/* How a translation request that met @reason is answered. */
enum vtd_answer { ANSWER_UR, ANSWER_CA, ANSWER_EMPTY, ANSWER_PERMISSION };
enum vtd_answer vtd_fault_answer(uint8_t reason);
/* Record a fault, unless it may be suppressed and @fpd is set. Was it? */
bool vtd_fault_record(struct quipu_vtd *, uint8_t reason, const struct vtd_fault_address *,
		      bool fpd);
/* A bit of FSTS rises: IQE, ITE, ICE. */
void vtd_fault_status(struct quipu_vtd *, uint32_t bit);
void vtd_fault_cleared(struct quipu_vtd *);
/* Recorded even where a translation request is answered with success. */
bool vtd_fault_noted(uint8_t reason);

/* ---- context.c ---- */
struct vtd_walk {
	const struct quipu_vtd_request *rq;
	unsigned reads;
	bool fpd;
	bool translation; /* a translation request: permissions are reported, not enforced */
	bool wants_write;
	int32_t did;
};
/* 0 or a fault reason. The entry is checked; it comes from the cache or from memory, and is then
 * cached. */
uint8_t vtd_context_find(struct quipu_vtd *, struct vtd_walk *, uint16_t rid, struct vtd_context *);
uint8_t vtd_pasid_find(struct quipu_vtd *, struct vtd_walk *, uint16_t rid, uint32_t pasid,
		       const struct vtd_context *, struct vtd_pasid *);
/* The checks of a request's PASID against its context entry (6.2.4), and which PASID table entry it
 * uses. */
uint8_t vtd_pasid_check(const struct quipu_vtd *, const struct vtd_context *, int32_t pasid,
			uint32_t *effective);

/* ---- walk.c ---- */
/* Translate rq->addr by @p (scalable) or @c (legacy): fills the leaf (frame, permissions) and its
 * size (0: 4K ..). */
uint8_t vtd_walk_legacy(struct quipu_vtd *, struct vtd_walk *, const struct vtd_context *,
			struct vtd_leaf *, unsigned *size);
uint8_t vtd_walk_scalable(struct quipu_vtd *, struct vtd_walk *, const struct vtd_pasid *,
			  uint32_t pasid, struct vtd_leaf *, unsigned *size);

/* ---- hpt.c ---- */
uint8_t vtd_hpt_check(struct quipu_vtd *, struct vtd_walk *, const struct vtd_pasid *, uint16_t rid,
		      int32_t pasid);
void vtd_hpt_prefetch(struct quipu_vtd *, struct vtd_walk *, const struct vtd_pasid *,
		      uint64_t hpa);

/* ---- translate.c, timing.c ---- */
bool vtd_is_interrupt_range(uint64_t addr);
/* Events of time: @reads memory reads made; @walked: after an IOTLB miss; @completion: an ATS
 * answer went out. */
void vtd_timing_walked(struct quipu_vtd *, unsigned reads, bool walked, bool completion);
static inline void vtd_timing(struct quipu_vtd *u, unsigned reads, bool walked, bool completion)
{
	if (reads || u->config.queued)
		vtd_timing_walked(u, reads, walked, completion);
	else
		vtd_tally_at(u, EV_TOTAL_OCCUPANCY, 1, NO_LEVEL, u->tally.at);
}
/* iommu_mrds and mem_occupancy of the request in hand. */
void vtd_count_reads(struct quipu_vtd *, unsigned reads);
void vtd_timing_reset(struct quipu_vtd *);
uint64_t vtd_clocks_at(const struct quipu_vtd *, uint64_t ns);

/* ---- invalidate.c ---- */
void vtd_flush_translations(struct quipu_vtd *);
void vtd_invalidate_iotlb_global(struct quipu_vtd *);
void vtd_invalidate_iotlb_domain(struct quipu_vtd *, uint16_t did);
void vtd_invalidate_iotlb_page(struct quipu_vtd *, uint16_t did, uint64_t addr, unsigned am,
			       bool ih);
void vtd_invalidate_pasid_all(struct quipu_vtd *, uint16_t did, uint32_t pasid);
void vtd_invalidate_pasid_page(struct quipu_vtd *, uint16_t did, uint32_t pasid, uint64_t addr,
			       unsigned am, bool ih);
void vtd_invalidate_context(struct quipu_vtd *, unsigned granularity, uint16_t did, uint16_t sid,
			    unsigned fm);
void vtd_invalidate_pasid_cache(struct quipu_vtd *, unsigned granularity, uint16_t did,
				uint32_t pasid);
void vtd_invalidate_iec(struct quipu_vtd *, bool index, unsigned first, unsigned im);
void vtd_invalidate_hpt(struct quipu_vtd *, unsigned granularity, uint16_t did, uint64_t addr,
			unsigned am, unsigned ih);

/* ---- queue.c, pagerequest.c, interrupt.c ---- */
void vtd_queue_run(struct quipu_vtd *);

#endif
