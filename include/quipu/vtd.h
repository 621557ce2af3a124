/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intel VT-d remapping units: registers, invalidation queue, translation, page requests, interrupt
 * remapping, and the performance monitoring that counts all of it. VT-d Architecture
 * Specification 5.10 (D51397-018), chapters 3 to 11; what Linux makes of it is in
 * src/platform/vtd/driver.c.
 *
 * A unit is a pure object: it reads tables from memory that its owner lends it, page by page, and
 * takes requests one at a time. Single-threaded; a call sees whole requests only. Not modelled:
 * register-based invalidation (refused, as units of major version 6 and later do), fault codes of
 * the execute-request feature, the content of DMA.
 */
#ifndef QUIPU_VTD_H
#define QUIPU_VTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quipu_vtd;

#define QUIPU_VTD_MAX_COUNTERS 64u /* counters of a unit that this model can have */
#define QUIPU_VTD_MAX_GROUPS   15u /* event groups (the architected maximum) */
#define QUIPU_VTD_MAX_EVCAPS   15u /* PERFCNTREVCAP registers of a counter */
#define QUIPU_VTD_PAGE	       4096u
#define QUIPU_VTD_GROUPS_USED  5u /* groups that the architecture gives events (Table 49) */

/* A cache: entries in all, ways of a set (entries / ways is a power of two). No entries: no such
 * cache. */
struct quipu_vtd_geometry {
	unsigned entries, ways;
};

enum quipu_vtd_replacement { QUIPU_VTD_LRU, QUIPU_VTD_FIFO, QUIPU_VTD_PLRU, QUIPU_VTD_RANDOM };
enum quipu_vtd_profile { QUIPU_VTD_SPR, QUIPU_VTD_FULL };

/* Everything that distinguishes one unit from another. Start from quipu_vtd_config_init. */
struct quipu_vtd_config {
	/* Registers that hold what the unit can do, as software reads them. */
	uint32_t version;   /* VER_REG: major in 7:4, minor in 3:0 */
	uint64_t cap, ecap; /* CAP_REG, ECAP_REG */
	uint64_t eccap[4];  /* ECCAP_REG_0..3 */
	uint64_t perfcap;   /* PERFCAP_REG */
	uint32_t perfcfgoff, perffrzoff, perfovfoff, perfcntroff;
	uint32_t perfevntcap[16]; /* PERFEVNTCAP_REG[g], 27:0 */
	uint32_t perfcntrcap[QUIPU_VTD_MAX_COUNTERS];
	uint32_t perfcntrevcap[QUIPU_VTD_MAX_COUNTERS][QUIPU_VTD_MAX_EVCAPS];
	uint32_t window; /* bytes of the register window */
	unsigned haw;	 /* host address width, 32..52 bits [46] */

	/* Caches. Index of the paging-structure caches: PDE, PDPE, PML4E, PML5E. */
	struct quipu_vtd_geometry iotlb[3]; /* 4K, 2M, 1G */
	struct quipu_vtd_geometry context, pasid, iec, fs_psc[4], ss_psc[4], hpt_leaf, hpt_nonleaf;
	enum quipu_vtd_replacement replacement;
	uint64_t seed; /* of QUIPU_VTD_RANDOM */

	bool filters_extended; /* requester, domain and PASID filters go with every request's event
				*/
	bool context_first;    /* the context cache is asked before the IOTLB */
	bool count_iq;	       /* iommu_mrds counts fetches of the invalidation queue too */
	unsigned ecmd_latency; /* reads of ECRSP that still show a command in progress */

	uint64_t clock_hz;    /* [10^9] */
	unsigned mem_latency; /* clocks of a memory read [150] */
	/* Queued timing: what waits moves ats_blocked and iommu_mem_blocked. Lookups, hits and
	 * reads are the same. */
	bool queued;
	unsigned max_outstanding, walkers, ats_credits,
		ats_credit_clocks; /* [32, 16, 8, 40]; at most 256 each */
};

/* What is around a unit. Every call may be NULL except page. */
struct quipu_vtd_ops {
	/*
	 * The 4 KiB of memory at @addr (a multiple of 4096), for the unit to read or, with @write,
	 * change before its next call. NULL: nothing answers there, the access fails. Only reads go
	 * through a pointer got without @write.
	 */
	void *(*page)(void *arg, uint64_t addr, bool write);
	/*
	 * The unit sends a message-signalled interrupt of its own, or a remapped one. From here
	 * registers may be read and written, but no request handed in.
	 */
	void (*msi)(void *arg, uint64_t addr, uint32_t data);
	/* A device-TLB invalidation of @size bytes at @addr for @rid; @pasid is -1 without one. */
	void (*device_tlb)(void *arg, uint16_t rid, int32_t pasid, uint64_t addr, uint64_t size,
			   bool global);
	/* A page group response; @code: 0 success, 1 invalid request, 15 failure. */
	void (*page_response)(void *arg, uint16_t rid, int32_t pasid, unsigned group,
			      unsigned code);
};

/* quipu_vtd_config_init - the unit of a profile: spr has the filters and events of the documented
 * machine, full all. */
void quipu_vtd_config_init(struct quipu_vtd_config *, enum quipu_vtd_profile);

/*
 * quipu_vtd_new - a unit after reset. The configuration is copied; @ops and @arg must outlive the
 * unit. NULL when out of memory, or when the configuration contradicts itself; then *why (if why is
 * not NULL) says how, else it is NULL.
 */
struct quipu_vtd *quipu_vtd_new(const struct quipu_vtd_config *, const struct quipu_vtd_ops *ops,
				void *arg, const char **why);
void quipu_vtd_free(struct quipu_vtd *);
/* quipu_vtd_reset - power-on reset: registers, counters and caches as after quipu_vtd_new. */
void quipu_vtd_reset(struct quipu_vtd *);
const struct quipu_vtd_config *quipu_vtd_configuration(const struct quipu_vtd *);

/*
 * quipu_vtd_read, quipu_vtd_write - MMIO at byte @offset of the register window; @width 4 or 8,
 * aligned. Anything else, and what lies outside the window, reads as all ones and ignores the
 * write, as an unclaimed access does.
 */
uint64_t quipu_vtd_read(struct quipu_vtd *, uint32_t offset, unsigned width);
void quipu_vtd_write(struct quipu_vtd *, uint32_t offset, unsigned width, uint64_t value);

/* quipu_vtd_advance - model time is now @ns (never less than before): iommu_clocks moves. */
void quipu_vtd_advance(struct quipu_vtd *, uint64_t ns);
uint64_t quipu_vtd_time(const struct quipu_vtd *);
/* quipu_vtd_counting - is any counter enabled? *since: model time at which the first of them was.
 */
bool quipu_vtd_counting(const struct quipu_vtd *, uint64_t *since);

/* A memory request of a device: one TLP. */
enum quipu_vtd_at { QUIPU_VTD_UNTRANSLATED, QUIPU_VTD_TRANSLATION, QUIPU_VTD_TRANSLATED };
enum quipu_vtd_op { QUIPU_VTD_READ, QUIPU_VTD_WRITE, QUIPU_VTD_ATOMIC, QUIPU_VTD_ZERO_READ };
struct quipu_vtd_request {
	uint64_t addr;
	int32_t pasid; /* -1: none */
	uint32_t len;
	uint16_t rid; /* bus << 8 | device << 3 | function */
	uint8_t at;   /* enum quipu_vtd_at */
	uint8_t op; /* enum quipu_vtd_op; of a translation request: WRITE asks for write access too
		       (NW=0) */
	bool priv;  /* supervisor request */
	bool exec;
};

enum quipu_vtd_status { QUIPU_VTD_SUCCESS, QUIPU_VTD_UR, QUIPU_VTD_CA };
struct quipu_vtd_response {
	enum quipu_vtd_status status;
	uint8_t fault;	 /* reason (specification, Appendix A), 0: none */
	bool recorded;	 /* it went to a fault record */
	bool r, w, u, n; /* of a translation: permissions, untranslated-only, no-snoop */
	uint64_t addr;	 /* host address */
	uint64_t size;	 /* bytes of the page it lies in */
	unsigned reads;	 /* memory reads made for it */
};

/*
 * quipu_vtd_dma - translate one request and count what that took. An interrupt is not one:
 * quipu_vtd_msi. An @at or @op of no meaning, and a PASID of more than 20 bits, answer UR and count
 * nothing.
 */
void quipu_vtd_dma(struct quipu_vtd *, const struct quipu_vtd_request *,
		   struct quipu_vtd_response *);

/* What became of an interrupt request. */
struct quipu_vtd_interrupt {
	uint8_t fault; /* 0: delivered */
	bool recorded;
	bool posted;   /* into a posted-interrupt descriptor */
	bool notified; /* a posted one, and its notification was sent */
	uint64_t addr; /* message that went out through ops->msi, when one did */
	uint32_t data;
};
/* quipu_vtd_msi - @rid writes @data to @addr (0xFEExxxxx): remap, post, pass or block it. @out may
 * be NULL. */
void quipu_vtd_msi(struct quipu_vtd *, uint16_t rid, uint64_t addr, uint32_t data,
		   struct quipu_vtd_interrupt *out);

struct quipu_vtd_page_request {
	uint64_t addr;
	int32_t pasid; /* -1: none */
	uint16_t rid;
	uint16_t group; /* 9 bits */
	bool r, w, x, priv, last;
};
enum quipu_vtd_page_status { QUIPU_VTD_PAGE_POSTED, QUIPU_VTD_PAGE_DROPPED, QUIPU_VTD_PAGE_FAULT };
/* quipu_vtd_page_request - a device asks for a page. *fault (may be NULL): the reason when the
 * tables refuse it. */
enum quipu_vtd_page_status
quipu_vtd_page_request(struct quipu_vtd *, const struct quipu_vtd_page_request *, uint8_t *fault);

/*
 * Memory for units to read: sparse, of @limit bytes, zero where nothing was written; beyond
 * @limit nothing answers.
 * quipu_vtd_memory_page - for struct quipu_vtd_ops.page; NULL beyond the limit and when out of
 * memory.
 * quipu_vtd_memory_alloc - @pages fresh consecutive pages, for tables and queues; 0 when the
 * limit is reached. load and store take addresses that are multiples of 8.
 */
struct quipu_vtd_memory;
struct quipu_vtd_memory *quipu_vtd_memory_new(uint64_t limit, uint64_t alloc_from);
void quipu_vtd_memory_free(struct quipu_vtd_memory *);
void *quipu_vtd_memory_page(struct quipu_vtd_memory *, uint64_t addr, bool write);
uint64_t quipu_vtd_memory_alloc(struct quipu_vtd_memory *, uint64_t pages);
uint64_t quipu_vtd_memory_load(struct quipu_vtd_memory *, uint64_t addr);
int quipu_vtd_memory_store(struct quipu_vtd_memory *, uint64_t addr, uint64_t value);

/*
 * Tables as software would build them, in the formats of chapter 9, in the memory above.
 *
 * quipu_vtd_tables_new - an empty root table. quipu_vtd_tables_root - what belongs into RTADDR.
 * quipu_vtd_domain_new - paging tables of a domain: @levels 3 to 5 (first stage: 4 or 5). A
 * first-stage domain with a
 *	@parent is nested in it: its tables lie at guest-physical addresses from @table_gpa on,
 * which @parent maps. quipu_vtd_attach - requests of @rid go through the domain; scalable mode:
 * those without PASID. quipu_vtd_attach_pasid - scalable mode: requests of @rid with @pasid do. All
 * pointers stay the tables'. quipu_vtd_map - @size bytes at @iova to @pa in pages of @page (4K, 2M,
 * 1G); @prot: bit 0 read, 1 write, 2 user. -EEXIST where something is mapped already.
 * quipu_vtd_unmap - the entries of a range become not present; the tables stay. All: 0, -EINVAL,
 * -ENOMEM.
 */
enum quipu_vtd_mode { QUIPU_VTD_LEGACY, QUIPU_VTD_SCALABLE };
enum quipu_vtd_stage {
	QUIPU_VTD_STAGE_FS = 1,
	QUIPU_VTD_STAGE_SS,
	QUIPU_VTD_STAGE_NESTED,
	QUIPU_VTD_STAGE_PT
};
#define QUIPU_VTD_R	      1u
#define QUIPU_VTD_W	      2u
#define QUIPU_VTD_U	      4u
#define QUIPU_VTD_NO_ACCESSED 8u /* first stage: leave the accessed bit clear */
#define QUIPU_VTD_ATS	      1u /* attach: the device may send translation requests and page requests */
struct quipu_vtd_tables;
struct quipu_vtd_domain;
struct quipu_vtd_tables *quipu_vtd_tables_new(struct quipu_vtd_memory *, enum quipu_vtd_mode);
void quipu_vtd_tables_free(struct quipu_vtd_tables *);
uint64_t quipu_vtd_tables_root(const struct quipu_vtd_tables *);
struct quipu_vtd_domain *quipu_vtd_domain_new(struct quipu_vtd_tables *, uint16_t did,
					      enum quipu_vtd_stage, unsigned levels,
					      struct quipu_vtd_domain *parent, uint64_t table_gpa);
int quipu_vtd_attach(struct quipu_vtd_tables *, uint16_t rid, const struct quipu_vtd_domain *,
		     unsigned flags);
int quipu_vtd_attach_pasid(struct quipu_vtd_tables *, uint16_t rid, uint32_t pasid,
			   const struct quipu_vtd_domain *, unsigned flags);
int quipu_vtd_map(struct quipu_vtd_domain *, uint64_t iova, uint64_t pa, uint64_t size,
		  uint64_t page, unsigned prot);
int quipu_vtd_unmap(struct quipu_vtd_domain *, uint64_t iova, uint64_t size);
/* Where the context entry of @rid lies (0: none yet), for those who write it themselves. */
uint64_t quipu_vtd_context_address(const struct quipu_vtd_tables *, uint16_t rid);
/* The same of the PASID table entry. */
uint64_t quipu_vtd_pasid_address(const struct quipu_vtd_tables *, uint16_t rid, uint32_t pasid);
/* The address of the leaf entry that maps @iova, 0 when a table above it is missing. */
uint64_t quipu_vtd_leaf_address(const struct quipu_vtd_domain *, uint64_t iova);
uint16_t quipu_vtd_domain_id(const struct quipu_vtd_domain *);

/*
 * An invalidation queue as software keeps one.
 * quipu_vtd_queue_start - give @unit a queue of 256 entries in @mem and switch it on; @wide:
 * 256-bit descriptors.
 * quipu_vtd_queue_submit - append a descriptor (2 or 4 quadwords by the queue's width) and a
 * wait descriptor, and ring. 0; -EINVAL when the unit rejected it (FSTS.IQE), -ENOMEM.
 */
struct quipu_vtd_queue {
	struct quipu_vtd *unit;
	struct quipu_vtd_memory *memory;
	uint64_t base, status;
	unsigned tail; /* entry */
	bool wide;
};
int quipu_vtd_queue_start(struct quipu_vtd_queue *, struct quipu_vtd *unit,
			  struct quipu_vtd_memory *mem, bool wide);
int quipu_vtd_queue_submit(struct quipu_vtd_queue *, const uint64_t qw[4]);

/* quipu_vtd_enable - what a driver does to switch translation on: RTADDR and mode, SRTP, TE. */
void quipu_vtd_enable(struct quipu_vtd *, uint64_t root, enum quipu_vtd_mode);

#endif
