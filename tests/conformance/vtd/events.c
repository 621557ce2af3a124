// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each event of the unit by a traffic script, its right value worked out in the comment from the
 * table walk: what is read for a request, which cache has what then. Then each filter, alone and
 * combined. Source of the events: VT-d specification 5.10, Table 49; of the firing points: the
 * room's README. Base unit: see bed.h; a memory read takes 150 clocks.
 *
 * Walks, cold: legacy reads root, context and an entry of each of four levels: 6; scalable root,
 * context, PASID directory, PASID table, four levels: 8. Behind that the next page of the same 2
 * MiB takes one read (the PDE is cached), a page of the next 2 MiB two (the PDPE is).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

#define LEGACY                                                                                     \
	{                                                                                          \
		.kind = BED_LEGACY                                                                 \
	}
#define LEGACY_FULL                                                                                \
	{                                                                                          \
		.kind = BED_LEGACY, .full = true                                                   \
	}
#define FS                                                                                         \
	{                                                                                          \
		.kind = BED_FS                                                                     \
	}
#define FS_FULL                                                                                    \
	{                                                                                          \
		.kind = BED_FS, .full = true                                                       \
	}

/* ---- what a script cannot say ---- */

static void a_while(struct bed *bed)
{
	quipu_vtd_advance(bed->unit, 999);
	bed_run(bed, "r B 5");
	quipu_vtd_advance(bed->unit, 12345);
}

/* Index 7 of the interrupt table: remapped; 8: posted. */
static void interrupts(struct bed *bed)
{
	const uint64_t descriptor = UINT64_C(0x5000000);
	uint64_t table = quipu_vtd_memory_alloc(bed->memory, 1);

	quipu_vtd_memory_store(bed->memory, table + 16 * 7, UINT64_C(3) << 40 | 0x55 << 16 | 1);
	quipu_vtd_memory_store(bed->memory, table + 16 * 8,
			       descriptor << 32 | 0x41 << 16 | 0x8000 | 1);
	bed_wr64(bed, 0xb8, table | 7);
	bed_wr32(bed, 0x18, 0x80000000u | 1u << 26 | 1u << 24);
	bed_wr32(bed, 0x18, 0x80000000u | 1u << 26 | 1u << 25);
	for (unsigned i = 0; i < 3; i++)
		quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, NULL);
	for (unsigned i = 0; i < 2; i++)
		quipu_vtd_msi(bed->unit, RID, 0xFEE00110, 0, NULL);
	/* Beyond the table of 256 entries, and of the compatibility format: no lookups. */
	quipu_vtd_msi(bed->unit, RID, 0xFEE00010 | 256 << 5, 0, NULL);
	quipu_vtd_msi(bed->unit, RID, 0xFEE00000, 0x41, NULL);
}

/* Three page requests into a queue of 128 places, of which two are left; then one more. */
static void page_requests(struct bed *bed)
{
	struct quipu_vtd_page_request rq = {
		.addr = B, .pasid = 5, .rid = RID, .r = true, .last = true};

	bed_wr64(bed, 0xd0, quipu_vtd_memory_alloc(bed->memory, 1));
	bed_wr64(bed, 0xc0, 0x60); /* the head: places 0 and 1 are free, 2 stays empty */
	for (unsigned i = 0; i < 4; i++)
		quipu_vtd_page_request(bed->unit, &rq, NULL);
}

/* A host permission table of four levels in which page 0 and 1 may be read. */
static void host_permissions(struct bed *bed)
{
	uint64_t context = quipu_vtd_context_address(bed->tables, RID);
	uint64_t pasid = quipu_vtd_pasid_address(bed->tables, RID, 5), t[4];

	for (unsigned i = 0; i < 4; i++)
		t[i] = quipu_vtd_memory_alloc(bed->memory, 1);
	for (unsigned i = 0; i < 3; i++)
		quipu_vtd_memory_store(bed->memory, t[i] + 8, t[i + 1] | 1);
	quipu_vtd_memory_store(bed->memory, t[3], 0x11);
	quipu_vtd_memory_store(bed->memory, context,
			       quipu_vtd_memory_load(bed->memory, context) | 0x60);
	quipu_vtd_memory_store(bed->memory, pasid + 32, t[0] | 4);
	quipu_vtd_memory_store(bed->memory, pasid + 40, 9);
	bed_run(bed, "p5 x 0; p5 x 40; p5 x 1000; p5 x 2000");
}

/* ---- the events ---- */

static const struct event_case {
	const char *name;
	unsigned group;
	uint32_t event;
	struct bed_setup setup;
	const char *script;
	void (*act)(struct bed *); /* instead of a script */
	uint64_t expect;
} cases[] = {
	/* 12345 ns at 1 GHz; requests take no time of the clock's. */
	{"iommu_clocks", 0, 0x01, LEGACY, NULL, a_while, 12345},
	/* Every memory request, of whatever type, whatever becomes of it: 3 + 2 + 4 + 1. */
	{"iommu_requests", 0, 0x02, LEGACY, "r B 3; t B 2; x 2000000000 4; r 900000000", NULL, 10},
	/* 6 reads, none (a hit), 1, 2 (a page of the next 2 MiB): 9 x 150. */
	{"pw_occupancy", 0, 0x04, LEGACY, "r B; r B; r B+1000; r B+200000", NULL, 9 * 150},
	/*
	 * All at clock 0. The walk's answer takes the first of 8 credits when it is ready, at 8 x
	 * 150. The nine hits are ready at clock 1: seven take a credit each, until 41; the other
	 * two wait for one, 40 clocks each.
	 */
	{"ats_blocked", 0, 0x08, {.kind = BED_FS, .queued = true}, "p5 t B; p5 t B 9", NULL, 80},
	/* A walk of 6 reads, two hits of one clock. */
	{"total_occupancy", 0, 0x20, LEGACY_FULL, "r B; r B 2", NULL, 6 * 150 + 2},
	/* 6 reads, then 1. */
	{"mem_occupancy", 0, 0x40, LEGACY_FULL, "r B; r B; r B+1000", NULL, 7 * 150},
	/* 8, none, 1, 2. */
	{"iommu_mrds", 1, 0x01, FS, "p5 r B; p5 r B; p5 r B+1000; p5 r B+200000", NULL, 11},
	/* The accessed bits are set already; a first write sets a page's dirty bit: two pages. */
	{"iommu_atomic_ad_update", 1, 0x08, FS_FULL, "p5 r B; p5 w B; p5 w B; p5 w B+1000", NULL,
	 2},
	/*
	 * Two reads at a time, all requests at clock 0. The first walk holds one place until 900.
	 * The second page's read has the other until 150; the third's waits for it 150 clocks, the
	 * fourth's 300.
	 */
	{"iommu_mem_blocked",
	 1,
	 0x20,
	 {.kind = BED_LEGACY, .queued = true, .outstanding = 2},
	 "r B 4 4096",
	 NULL,
	 150 + 300},
	/* Two of four find a place; the third finds the queue full, the fourth the overflow. */
	{"pg_req_posted", 1, 0x40, FS_FULL, NULL, page_requests, 2},
	{"pg_req_overflow", 1, 0x80, FS_FULL, NULL, page_requests, 2},
	/* Two IOTLB misses, two translated requests (always); the first does not find its device.
	 */
	{"ctxt_cache_lookup", 2, 0x01, LEGACY, "r B; r B; r B+1000; x 2000000000 2", NULL, 4},
	{"ctxt_cache_hit", 2, 0x02, LEGACY, "r B; r B; r B+1000; x 2000000000 2", NULL, 3},
	/* Two IOTLB misses; translated requests carry no PASID here and ask for none. */
	{"pasid_cache_lookup", 2, 0x04, FS, "p5 r B; p5 r B; p5 r B+1000; x 2000000000", NULL, 2},
	{"pasid_cache_hit", 2, 0x08, FS, "p5 r B; p5 r B; p5 r B+1000; x 2000000000", NULL, 1},
	/* Three walks: nothing cached, the PDE, the PDPE. */
	{"ss_nonleaf_lookup", 2, 0x10, LEGACY, "r B; r B+1000; r B+200000; r B", NULL, 3},
	{"ss_nonleaf_hit", 2, 0x20, LEGACY, "r B; r B+1000; r B+200000; r B", NULL, 2},
	{"fs_nonleaf_lookup", 2, 0x40, FS, "p5 r B; p5 r B+1000; p5 r B+200000", NULL, 3},
	{"fs_nonleaf_hit", 2, 0x80, FS, "p5 r B; p5 r B+1000; p5 r B+200000", NULL, 2},
	/* A walk for page 0, 1 and 2, each behind a leaf that is not there; the last two find L2.
	 */
	{"hpt_nonleaf_lookup", 2, 0x100, FS_FULL, NULL, host_permissions, 3},
	{"hpt_nonleaf_hit", 2, 0x200, FS_FULL, NULL, host_permissions, 2},
	/* Each of the four translated requests; the second is of page 0 again. */
	{"hpt_leaf_lookup", 3, 0x4, FS_FULL, NULL, host_permissions, 4},
	{"hpt_leaf_hit", 3, 0x8, FS_FULL, NULL, host_permissions, 1},
	/* Untranslated and translation requests: 5; the first of each page misses. */
	{"iotlb_lookup", 3, 0x1, LEGACY, "r B; r B; t B; w B; r B+1000; x 2000000000", NULL, 5},
	{"iotlb_hit", 3, 0x2, LEGACY, "r B; r B; t B; w B; r B+1000; x 2000000000", NULL, 3},
	/* 3 + 2 inside the table; the first of each entry misses. */
	{"int_cache_lookup", 4, 0x1, LEGACY, NULL, interrupts, 5},
	{"int_cache_hit_nonposted", 4, 0x2, LEGACY, NULL, interrupts, 2},
	{"int_cache_hit_posted", 4, 0x4, LEGACY, NULL, interrupts, 1},
};
#define NCASES (sizeof(cases) / sizeof(cases[0]))

static void event_case(void **state)
{
	const struct event_case *c = *state;
	struct bed *bed = bed_new(&c->setup);

	bed_count(bed, 0, c->group, c->event, -1, 0);
	if (c->act)
		c->act(bed);
	else
		bed_run(bed, c->script);
	assert_int_equal(bed_value(bed, 0), c->expect);
	bed_free(bed);
}

/* ---- the filters ---- */

/*
 * Two devices in two domains, one of them with PASIDs 5 and 6, and translated requests:
 *
 *	3a00, no PASID, domain 7, second stage	4 reads of page 0: 1 miss, 3 hits (4 KiB)
 *	3b00, PASID 5, domain 1, first stage	3 reads of page 0: 1 miss, 2 hits (4 KiB)
 *	3b00, PASID 6, domain 1			2 reads of page 0: 1 miss, 1 hit
 *	3c00, no PASID, domain 2, pages of 2M	5 reads in 2 pages: 2 misses, 3 hits (2 MiB)
 *	3a00					2 translated requests
 *
 * Walks with paging-structure hits: only 3c00's second page, by the PDPE (bit 2): 1.
 */
static struct bed *three_devices(void)
{
	struct quipu_vtd_config config;
	struct quipu_vtd_domain *d;
	struct bed *bed;

	quipu_vtd_config_init(&config, QUIPU_VTD_FULL);
	bed = bed_plain(&config);
	bed->tables = quipu_vtd_tables_new(bed->memory, QUIPU_VTD_SCALABLE);
	d = quipu_vtd_domain_new(bed->tables, 7, QUIPU_VTD_STAGE_SS, 4, NULL, 0);
	assert_int_equal(quipu_vtd_map(d, B, UINT64_C(0x2000000000), 4096, 4096, 3), 0);
	assert_int_equal(quipu_vtd_attach(bed->tables, 0x3a00, d, QUIPU_VTD_ATS), 0);
	d = quipu_vtd_domain_new(bed->tables, 1, QUIPU_VTD_STAGE_FS, 4, NULL, 0);
	assert_int_equal(quipu_vtd_map(d, B, UINT64_C(0x2100000000), 4096, 4096, 7), 0);
	assert_int_equal(quipu_vtd_attach_pasid(bed->tables, 0x3b00, 5, d, 0), 0);
	assert_int_equal(quipu_vtd_attach_pasid(bed->tables, 0x3b00, 6, d, 0), 0);
	d = quipu_vtd_domain_new(bed->tables, 2, QUIPU_VTD_STAGE_SS, 4, NULL, 0);
	assert_int_equal(quipu_vtd_map(d, B, UINT64_C(0x2200000000), 4 << 20, 2 << 20, 3), 0);
	assert_int_equal(quipu_vtd_attach(bed->tables, 0x3c00, d, 0), 0);
	quipu_vtd_enable(bed->unit, quipu_vtd_tables_root(bed->tables), QUIPU_VTD_SCALABLE);
	return bed;
}

static void send(struct bed *bed, uint16_t rid, int32_t pasid, uint8_t at, uint64_t addr,
		 unsigned n)
{
	struct quipu_vtd_request rq = {
		.addr = addr, .pasid = pasid, .len = 64, .rid = rid, .at = at};

	while (n--)
		quipu_vtd_dma(bed->unit, &rq, &bed->last);
}

static void traffic(struct bed *bed)
{
	send(bed, 0x3a00, -1, QUIPU_VTD_UNTRANSLATED, B, 4);
	send(bed, 0x3b00, 5, QUIPU_VTD_UNTRANSLATED, B, 3);
	send(bed, 0x3b00, 6, QUIPU_VTD_UNTRANSLATED, B, 2);
	send(bed, 0x3c00, -1, QUIPU_VTD_UNTRANSLATED, B, 3);
	send(bed, 0x3c00, -1, QUIPU_VTD_UNTRANSLATED, B + (2 << 20), 2);
	send(bed, 0x3a00, -1, QUIPU_VTD_TRANSLATED, UINT64_C(0x2000000000), 2);
}

enum { REQUESTER, DOMAIN, PASID, TYPE, LEVEL, FILTERS };
#define ON(v)	  (0x80000000u | (v))
#define REQUESTS  0, 0x2
#define HITS	  3, 0x2
#define LOOKUPS	  3, 0x1
#define SS_HITS	  2, 0x20
#define ANY_PASID 0x100000
#define NO_PASID  0x200000

static const struct filter_case {
	const char *name;
	unsigned group;
	uint32_t event;
	uint32_t filter[FILTERS];
	uint64_t expect;
} filters[] = {
	{"none", REQUESTS, {0}, 4 + 3 + 2 + 5 + 2},
	{"requester", REQUESTS, {ON(0x3a00)}, 4 + 2},
	{"the other requester", REQUESTS, {ON(0x3b00)}, 3 + 2},
	{"a requester that is not there", REQUESTS, {ON(0x3a01)}, 0},
	{"domain", REQUESTS, {0, ON(2)}, 5},
	{"domain of two PASIDs", REQUESTS, {0, ON(1)}, 3 + 2},
	{"a PASID", REQUESTS, {0, 0, ON(5)}, 3},
	{"any PASID", REQUESTS, {0, 0, ON(ANY_PASID)}, 3 + 2},
	{"no PASID", REQUESTS, {0, 0, ON(NO_PASID)}, 4 + 5 + 2},
	{"untranslated", REQUESTS, {0, 0, 0, ON(1)}, 14},
	{"translated", REQUESTS, {0, 0, 0, ON(4)}, 2},
	{"either type", REQUESTS, {0, 0, 0, ON(5)}, 16},
	{"no type", REQUESTS, {0, 0, 0, ON(0)}, 0},
	{"hits of all sizes", HITS, {0}, 3 + 2 + 1 + 3},
	{"hits of 4 KiB", HITS, {0, 0, 0, 0, ON(1)}, 3 + 2 + 1},
	{"hits of 2 MiB", HITS, {0, 0, 0, 0, ON(2)}, 3},
	{"hits of 1 GiB", HITS, {0, 0, 0, 0, ON(4)}, 0},
	{"paging structures by the PDPE", SS_HITS, {0, 0, 0, 0, ON(4)}, 1},
	{"paging structures by the PDE", SS_HITS, {0, 0, 0, 0, ON(2)}, 0},
	{"requester and type", REQUESTS, {ON(0x3a00), 0, 0, ON(1)}, 4},
	{"requester and the other type", REQUESTS, {ON(0x3a00), 0, 0, ON(4)}, 2},
	{"requester and PASID", REQUESTS, {ON(0x3b00), 0, ON(6)}, 2},
	{"requester and a PASID of another", REQUESTS, {ON(0x3a00), 0, ON(6)}, 0},
	{"domain and PASID", REQUESTS, {0, ON(1), ON(5)}, 3},
	{"domain and requester of another", REQUESTS, {ON(0x3a00), ON(2)}, 0},
	{"requester, domain, PASID", LOOKUPS, {ON(0x3b00), ON(1), ON(5)}, 3},
	{"requester, domain, PASID, type", REQUESTS, {ON(0x3b00), ON(1), ON(5), ON(1)}, 3},
	{"requester, domain, PASID, level", HITS, {ON(0x3b00), ON(1), ON(5), 0, ON(1)}, 2},
	{"requester, domain, no PASID, level",
	 HITS,
	 {ON(0x3c00), ON(2), ON(NO_PASID), 0, ON(2)},
	 3},
	{"the same with the wrong level", HITS, {ON(0x3c00), ON(2), ON(NO_PASID), 0, ON(1)}, 0},
};
#define NFILTERS (sizeof(filters) / sizeof(filters[0]))

static void filter_case(void **state)
{
	const struct filter_case *c = *state;
	struct bed *bed = three_devices();

	bed_wr64(bed, 0x1000, (uint64_t)c->event << 32 | c->group << 8);
	for (uint32_t f = 0; f < FILTERS; f++)
		bed_wr32(bed, 0x1008 + 4 * f, c->filter[f]);
	assert_int_equal(bed_command(bed, 0xf0, 0), 0);
	traffic(bed);
	assert_int_equal(bed_value(bed, 0), c->expect);
	bed_free(bed);
}

/* Filters that exclude each other and leave nothing out: their counters add up, in one run. */
static void counters_with_different_filters_partition(void **state)
{
	static const struct {
		unsigned filter;
		uint32_t value[3];
	} parts[] = {
		{REQUESTER, {0x3a00, 0x3b00, 0x3c00}},
		{PASID, {5, 6, NO_PASID}},
		{TYPE, {1, 2, 4}},
	};
	struct bed *bed = three_devices();

	(void)state;
	bed_count(bed, 9, REQUESTS, -1, 0);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 3; k++)
			bed_count(bed, 3 * i + k, REQUESTS, (int)parts[i].filter,
				  parts[i].value[k]);
	traffic(bed);
	assert_int_equal(bed_value(bed, 9), 16);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(bed_value(bed, 3 * i) + bed_value(bed, 3 * i + 1) +
					 bed_value(bed, 3 * i + 2),
				 16);
	bed_free(bed);
}

/*
 * Tables of five levels, and a page behind each of their levels. Page 0: nothing is cached, five
 * entries are read. The next page: the PDE is cached, the PTE is read: 1. The next 2 MiB: by the
 * PDPE, 2. The next GiB: by the PML4E, 3. The next 512 GiB: by the PML5E, 4. Before the first, root
 * and context, in scalable mode PASID directory and table: 2 or 4. Page 0 again: no walk.
 */
static void walks_that_begin_at_each_level(void **state)
{
	static const uint64_t at[] = {0, UINT64_C(1) << 12, UINT64_C(1) << 21, UINT64_C(1) << 30,
				      UINT64_C(1) << 39};
	static const struct {
		struct bed_setup setup;
		int32_t pasid;
		uint32_t lookup, hit; /* of group 2 */
		uint64_t before;
	} stages[] = {
		{{.kind = BED_LEGACY, .levels = 5, .pages = 1}, -1, 0x10, 0x20, 2},
		{{.kind = BED_SS, .levels = 5, .pages = 1}, -1, 0x10, 0x20, 4},
		{{.kind = BED_FS, .levels = 5, .pages = 1}, 5, 0x40, 0x80, 4},
	};

	(void)state;
	for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
		struct bed *bed = bed_new(&stages[s].setup);

		for (unsigned i = 1; i < 5; i++)
			assert_int_equal(quipu_vtd_map(bed->domain, B + at[i],
						       UINT64_C(0x2000000000), 4096, 4096, 7),
					 0);
		for (unsigned level = 0; level < 5; level++)
			bed_count(bed, level, 2, stages[s].hit, LEVEL, 1u << level);
		bed_count(bed, 5, 2, stages[s].lookup, -1, 0);
		bed_count(bed, 6, 2, stages[s].hit, -1, 0);
		bed_count(bed, 7, 1, 1, -1, 0);
		bed_count(bed, 8, LOOKUPS, -1, 0);
		bed_count(bed, 9, HITS, -1, 0);
		for (unsigned i = 0; i < 5; i++)
			send(bed, RID, stages[s].pasid, QUIPU_VTD_UNTRANSLATED, B + at[i], 1);
		send(bed, RID, stages[s].pasid, QUIPU_VTD_UNTRANSLATED, B, 1);
		assert_int_equal(bed->last.fault, 0);
		for (unsigned level = 0; level < 5; level++)
			assert_int_equal(bed_value(bed, level), level > 0);
		assert_int_equal(bed_value(bed, 5), 5);
		assert_int_equal(bed_value(bed, 6), 4);
		assert_int_equal(bed_value(bed, 7), stages[s].before + 5 + 1 + 2 + 3 + 4);
		assert_int_equal(bed_value(bed, 8), 6);
		assert_int_equal(bed_value(bed, 9), 1);
		bed_free(bed);
	}
}

int main(void)
{
	struct CMUnitTest tests[NCASES + NFILTERS + 2] = {{0}};
	static char name[NFILTERS][64];
	unsigned n = 0;

	for (unsigned i = 0; i < NCASES; i++)
		tests[n++] = (struct CMUnitTest){cases[i].name, event_case, NULL, NULL,
						 (void *)&cases[i]};
	for (unsigned i = 0; i < NFILTERS; i++) {
		snprintf(name[i], sizeof(name[i]), "filter: %s", filters[i].name);
		tests[n++] =
			(struct CMUnitTest){name[i], filter_case, NULL, NULL, (void *)&filters[i]};
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(counters_with_different_filters_partition);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(walks_that_begin_at_each_level);
	return _cmocka_run_group_tests("conformance vtd events", tests, n, NULL, NULL);
}
