/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A unit with memory, tables and a queue, for tests of the VT-d room: the base unit of the
 * conformance cases (profile spr, functional timing, 150 clocks a read, cold caches, TES=1, IRES=1)
 * and a small language for traffic.
 */
#ifndef TEST_VTD_BED_H
#define TEST_VTD_BED_H

#include <quipu/bits.h>
#include <quipu/vtd.h>

#define RID 0x3a00u
#define B   UINT64_C(0x100000000)

enum bed_kind { BED_LEGACY, BED_SS, BED_FS, BED_NESTED, BED_PT };
struct bed_setup {
	enum bed_kind kind;
	bool scalable;	 /* of BED_PT */
	unsigned levels; /* 0: 4 */
	uint64_t page;	 /* 0: 4K */
	unsigned pages;	 /* mapped from B on; 0: 1024 */
	bool no_ats;	 /* TT=00, DTE=0 */
	bool pasid6;	 /* PASID 6 has the tables of PASID 5; else its entry is not present */
	unsigned absent; /* 1: context entry P=0; 2: FPD=1 in the context entry */
	bool te_off;
	bool full;
	bool context_first;
	bool queued;
	unsigned outstanding; /* reads at a time with queued timing; 0: the default */
};

struct bed {
	struct quipu_vtd_config config;
	struct quipu_vtd *unit;
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_tables *tables;
	struct quipu_vtd_domain *domain, *outer;
	struct quipu_vtd_queue queue;
	struct quipu_vtd_response last; /* of the latest request */
	unsigned msis;
	uint64_t msi_addr;
	uint32_t msi_data;
	unsigned responses, response_code; /* page group responses */
	unsigned device_tlbs;
	uint64_t device_tlb_addr, device_tlb_size;
};

/* bed_new - asserts on its own; bed_plain: without tables, queue and translation. */
struct bed *bed_new(const struct bed_setup *);
struct bed *bed_plain(const struct quipu_vtd_config *);
void bed_free(struct bed *);

/* Memory-mapped registers of 64 and 32 bits. */
uint64_t bed_rd64(struct bed *, uint32_t offset);
uint32_t bed_rd32(struct bed *, uint32_t offset);
void bed_wr64(struct bed *, uint32_t offset, uint64_t value);
void bed_wr32(struct bed *, uint32_t offset, uint32_t value);
/* An enhanced command; what ECRSP_REG shows after it. */
uint64_t bed_command(struct bed *, unsigned code, uint64_t operand);

/*
 * Count events of @group whose bit is in @events with counter @c from now on. @filter: -1 or the
 * number of the filter (0 requester .. 4 page-table level) with its @value.
 */
void bed_count(struct bed *, unsigned c, unsigned group, uint32_t events, int filter,
	       uint32_t value);
uint64_t bed_value(struct bed *, unsigned c);

/*
 * Run a script; steps are separated by ";":
 *
 *	[pN] KIND ADDR [COUNT [STRIDE]]
 *	inv QW0 [QW1]
 *
 * KIND is r read, w write, a atomic, z zero-length read, t translation request (T: for writing),
 * x translated request; pN: with PASID N; ADDR is B, B+HEX or HEX; inv submits a descriptor.
 */
void bed_run(struct bed *, const char *script);

#endif
