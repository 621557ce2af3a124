// SPDX-License-Identifier: BSD-2-Clause
/*
 * What invalidations empty, and that they empty nothing else (sheet 6.6): a cache is warm or cold
 * by whether the next access hits it. Then replacement, the host permission table, and the events
 * that only revision 5.10 has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

/* Which lookups of the access after the invalidation hit. */
#define IOTLB 1u
#define CTXT  2u
#define PAS   4u
#define SSP   8u
#define FSP   16u

static const struct matrix_case {
	const char *name;
	struct bed_setup setup;
	const char *access, *invalidate;
	/* What hits when the access is repeated; an IOTLB hit ends the walk, so that nothing else
	 * is asked. */
	unsigned warm;
} matrix[] = {
#define LEGACY                                                                                     \
	{                                                                                          \
		.kind = BED_LEGACY                                                                 \
	}
#define SS                                                                                         \
	{                                                                                          \
		.kind = BED_SS                                                                     \
	}
#define FS                                                                                         \
	{                                                                                          \
		.kind = BED_FS                                                                     \
	}
#define NESTED                                                                                     \
	{                                                                                          \
		.kind = BED_NESTED                                                                 \
	}
#define PT                                                                                         \
	{                                                                                          \
		.kind = BED_PT, .scalable = true                                                   \
	}
	{"nothing at all", SS, "r B", "", IOTLB},
	/* IOTLB global: every translation, no table of requesters */
	{"IOTLB global, second stage", SS, "r B", "inv 12", CTXT | PAS},
	{"IOTLB global, first stage", FS, "p5 r B", "inv 12", CTXT | PAS},
	{"IOTLB global, pass-through", PT, "r B", "inv 12", CTXT | PAS},
	/* domain: by its id alone */
	{"domain", SS, "r B", "inv 70022", CTXT | PAS},
	{"another domain", SS, "r B", "inv 80022", IOTLB},
	{"domain, first stage", FS, "p5 r B", "inv 10022", CTXT | PAS},
	{"domain, pass-through", PT, "r B", "inv 10022", CTXT | PAS},
	/* page: by address; with IH=1 the upper levels stay */
	{"page", SS, "r B", "inv 70032 100000000", CTXT | PAS},
	{"page, leaves only", SS, "r B", "inv 70032 100000040", CTXT | PAS | SSP},
	{"the next page", SS, "r B", "inv 70032 100001040", IOTLB},
	{"a range that holds the page", SS, "r B+3000", "inv 70032 100000042", CTXT | PAS | SSP},
	{"a range that ends before it", SS, "r B+4000", "inv 70032 100000042", IOTLB},
	{"page of another domain", SS, "r B", "inv 80032 100000000", IOTLB},
	{"a page inside a large one",
	 {.kind = BED_SS, .page = 2 << 20, .pages = 4},
	 "r B",
	 "inv 70032 100123040",
	 CTXT | PAS | SSP},
	{"a page beside a large one",
	 {.kind = BED_SS, .page = 2 << 20, .pages = 4},
	 "r B",
	 "inv 70032 100200040",
	 IOTLB},
	{"pages of nested go by domain", NESTED, "r B", "inv 70032 900000040", CTXT | PAS | SSP},
	/* by PASID: first stage only by page, all of the PASID's by PASID */
	{"PASID", FS, "p5 r B", "inv 500010026", CTXT | PAS},
	{"another PASID", FS, "p5 r B", "inv 600010026", IOTLB},
	{"PASID in another domain", FS, "p5 r B", "inv 500020026", IOTLB},
	{"PASID of requests without, second stage", SS, "r B", "inv 70026", CTXT | PAS | SSP},
	{"page of a PASID, leaves only", FS, "p5 r B", "inv 500010036 100000040", CTXT | PAS | FSP},
	{"page of a PASID", FS, "p5 r B", "inv 500010036 100000000", CTXT | PAS},
	{"next page of a PASID", FS, "p5 r B", "inv 500010036 100001000", IOTLB},
	{"page of a PASID leaves second stages alone", SS, "r B", "inv 70036 100000000", IOTLB},
	/* context and PASID caches */
	{"context global", SS, "r B", "inv 11; inv 70032 100000040", PAS | SSP},
	{"context of a domain: all, in scalable mode", SS, "r B", "inv 90021; inv 70032 100000040",
	 PAS | SSP},
	{"context of another domain, in legacy mode", LEGACY, "r B",
	 "inv 60021; inv 50032 100000040", CTXT | SSP},
	{"context of the domain, in legacy mode", LEGACY, "r B", "inv 50021; inv 50032 100000040",
	 SSP},
	{"context of the device", LEGACY, "r B", "inv 3A0000050031; inv 50032 100000040", SSP},
	{"context of another device", LEGACY, "r B", "inv 3A0800050031; inv 50032 100000040",
	 CTXT | SSP},
	{"context of any function", LEGACY, "r B", "inv 33A0700050031; inv 50032 100000040", SSP},
	{"context of function 4 too", LEGACY, "r B", "inv 13A0400050031; inv 50032 100000040", SSP},
	{"PASID cache, global", SS, "r B", "inv 37; inv 70032 100000040", CTXT | SSP},
	{"PASID cache, domain", SS, "r B", "inv 70007; inv 70032 100000040", CTXT | SSP},
	{"PASID cache, another domain", SS, "r B", "inv 80007; inv 70032 100000040",
	 CTXT | PAS | SSP},
	{"PASID cache, PASID", FS, "p5 r B", "inv 500010017; inv 500010036 100000040", CTXT | FSP},
	{"PASID cache, another PASID", FS, "p5 r B", "inv 600010017; inv 500010036 100000040",
	 CTXT | PAS | FSP},
	{"PASID cache, PASID in another domain", FS, "p5 r B",
	 "inv 500020017; inv 500010036 100000040", CTXT | PAS | FSP},
	/* and what is no business of theirs */
	{"interrupt entries", SS, "r B", "inv 4", IOTLB},
	{"a wait", SS, "r B", "inv 5", IOTLB},
	{"a device TLB", SS, "r B", "inv 3A0000000003 100000000", IOTLB},
};

static const struct {
	unsigned group;
	uint32_t hit;
	unsigned bit;
	const char *name;
} hits[] = {{3, 0x2, IOTLB, "IOTLB"},
	    {2, 0x2, CTXT, "context"},
	    {2, 0x8, PAS, "PASID"},
	    {2, 0x20, SSP, "second stage"},
	    {2, 0x80, FSP, "first stage"}};
#define NHITS (sizeof(hits) / sizeof(hits[0]))

static void matrix_case(void **state)
{
	const struct matrix_case *c = *state;
	struct bed *bed = bed_new(&c->setup);

	bed_run(bed, c->access);
	assert_int_equal(bed->last.fault, 0);
	bed_run(bed, c->invalidate);
	for (unsigned i = 0; i < NHITS; i++)
		bed_count(bed, i, hits[i].group, hits[i].hit, -1, 0);
	bed_run(bed, c->access);
	for (unsigned i = 0; i < NHITS; i++) {
		bool warm = bed_value(bed, i) != 0, expect = c->warm & hits[i].bit;

		if (warm != expect)
			fail_msg("%s: the %s cache is %s", c->name, hits[i].name,
				 warm ? "still warm" : "cold");
	}
	bed_free(bed);
}

/* Descriptors that must be rejected: the head stays, IQE says so, and a repaired one goes on. */
static const struct bad_case {
	const char *name;
	struct bed_setup setup;
	uint64_t qw[4];
} bad[] = {
	{"no such type", SS, {0xf}},
	{"type 0", SS, {0}},
	{"a high type", SS, {0x201}},
	{"IOTLB without granularity", SS, {0x2}},
	{"context without granularity", SS, {0x1}},
	{"reserved bit of the first quadword", SS, {0x112}},
	{"reserved bit of the second", SS, {0x70032, 0x80}},
	{"reserved third quadword", SS, {0x12, 0, 1}},
	{"address mask beyond MAMV", SS, {0x70032, 19}},
	{"PASID IOTLB of granularity 1", SS, {0x16}},
	{"PASID cache of granularity 2", SS, {0x27}},
	{"PASID cache in legacy mode", LEGACY, {0x37}},
	{"host permission table that is not there", SS, {0x1a}},
};

static void bad_case(void **state)
{
	const struct bad_case *c = *state;
	struct bed *bed = bed_new(&c->setup);
	uint64_t head = bed_rd64(bed, 0x80);

	bed_wr32(bed, 0xa0, 0);
	bed_wr32(bed, 0x38, 0);
	assert_int_equal(quipu_vtd_queue_submit(&bed->queue, c->qw), -22);
	assert_int_equal(bed_rd64(bed, 0x80), head);
	assert_int_equal(bed_rd32(bed, 0x34) & 0x10, 0x10);
	assert_int_equal(bed->msis, 1);
	/* A wait descriptor in its place, and the rest of the queue runs. */
	for (unsigned i = 0; i < (bed->queue.wide ? 4u : 2u); i++)
		quipu_vtd_memory_store(bed->memory, bed->queue.base + head + 8 * i, i ? 0 : 5);
	bed_wr32(bed, 0x34, 0x10);
	assert_int_equal(bed_rd64(bed, 0x80), bed_rd64(bed, 0x88));
	assert_int_equal(quipu_vtd_memory_load(bed->memory, bed->queue.status), 2);
	bed_free(bed);
}

/* ---- device TLBs and completion ---- */

static void device_tlb_sizes(void **state)
{
	static const struct {
		uint64_t qw0, qw1, addr, size;
	} c[] = {
		{UINT64_C(0x3A0000000003), B, B, 4096},
		{UINT64_C(0x3A0000000003), B | 0x1, B, 8192}, /* S: lowest 0 is bit 12 */
		{UINT64_C(0x3A0000000003), B | 0x7f000 | 0x1, B, 1 << 20}, /* bits 18:12 are 1 */
		{UINT64_C(0x53A000008), B | 0x1000 | 0x800, B, 16384},
		{UINT64_C(0x53A000008), UINT64_C(0x7ffffffffffff800), 0, 0}, /* everything */
	};
	struct bed_setup setup = SS;
	struct bed *bed = bed_new(&setup);

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		assert_int_equal(
			quipu_vtd_queue_submit(&bed->queue, (uint64_t[4]){c[i].qw0, c[i].qw1}), 0);
		assert_int_equal(bed->device_tlbs, i + 1);
		assert_int_equal(bed->device_tlb_addr, c[i].addr);
		assert_int_equal(bed->device_tlb_size, c[i].size);
	}
	bed_free(bed);
}

static void wait_interrupts_once(void **state)
{
	struct bed_setup setup = SS;
	struct bed *bed = bed_new(&setup);

	(void)state;
	bed_wr32(bed, 0xa0, 0);
	bed_run(bed, "inv 15; inv 15");
	assert_int_equal(bed_rd32(bed, 0x9c), 1);
	assert_int_equal(bed->msis, 1);
	bed_wr32(bed, 0x9c, 1);
	bed_run(bed, "inv 15");
	assert_int_equal(bed->msis, 2);
	bed_free(bed);
}

/* ---- replacement: four pages of one set of two ways ---- */

static void replacement(void **state)
{
	static const struct {
		enum quipu_vtd_replacement policy;
		uint64_t hits;
	} c[] = {
		/* A B A C A: the third access hits; C throws B out, which was used longest ago; A
		   hits. */
		{QUIPU_VTD_LRU, 2},
		/* C throws A out, which came first: the last access misses. */
		{QUIPU_VTD_FIFO, 1},
		/* Two ways: the tree is one bit, as good as the order of use. */
		{QUIPU_VTD_PLRU, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct quipu_vtd_config config;
		struct bed *bed;
		struct quipu_vtd_domain *d;

		quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
		config.replacement = c[i].policy;
		config.iotlb[0] = (struct quipu_vtd_geometry){8, 2};
		config.fs_psc[0] = config.ss_psc[0] = (struct quipu_vtd_geometry){0};
		bed = bed_plain(&config);
		bed->tables = quipu_vtd_tables_new(bed->memory, QUIPU_VTD_LEGACY);
		d = quipu_vtd_domain_new(bed->tables, 5, QUIPU_VTD_STAGE_SS, 4, NULL, 0);
		assert_int_equal(quipu_vtd_map(d, B, UINT64_C(0x2000000000), 64 * 4096, 4096, 3),
				 0);
		assert_int_equal(quipu_vtd_attach(bed->tables, RID, d, 0), 0);
		quipu_vtd_enable(bed->unit, quipu_vtd_tables_root(bed->tables), QUIPU_VTD_LEGACY);
		bed_count(bed, 0, 3, 2, -1, 0);
		bed_run(bed, "r B; r B+4000; r B; r B+8000; r B");
		assert_int_equal(bed_value(bed, 0), c[i].hits);
		bed_free(bed);
	}
}

/* What was invalidated makes room: the next entry of its set throws none out. */
static void an_empty_line_is_taken_first(void **state)
{
	struct quipu_vtd_config config;
	struct quipu_vtd_domain *d;
	struct bed *bed;

	(void)state;
	quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
	config.iotlb[0] = (struct quipu_vtd_geometry){8, 2};
	bed = bed_plain(&config);
	bed->tables = quipu_vtd_tables_new(bed->memory, QUIPU_VTD_LEGACY);
	d = quipu_vtd_domain_new(bed->tables, 5, QUIPU_VTD_STAGE_SS, 4, NULL, 0);
	assert_int_equal(quipu_vtd_map(d, B, UINT64_C(0x2000000000), 64 * 4096, 4096, 3), 0);
	assert_int_equal(quipu_vtd_attach(bed->tables, RID, d, 0), 0);
	assert_int_equal(quipu_vtd_queue_start(&bed->queue, bed->unit, bed->memory, false), 0);
	quipu_vtd_enable(bed->unit, quipu_vtd_tables_root(bed->tables), QUIPU_VTD_LEGACY);
	/* Pages 0, 4 and 8 are of one set, of two lines. */
	bed_run(bed, "r B; r B+4000; inv 50032 100004040; r B+8000");
	bed_count(bed, 0, 3, 2, -1, 0);
	bed_run(bed, "r B; r B+8000");
	assert_int_equal(bed_value(bed, 0), 2);
	bed_free(bed);
}

/* ---- host permission table ---- */

/*
 * Four tables: level 4 to 3 to 2 to 1; pages 0 and 1 of the region at 0 may be read, page 1 written
 * too. First access: leaf miss, a walk of 4 reads; the second to that page: a leaf hit; to page 1:
 * a walk that the cache shortens to 1 read; a write to page 0: hit, refused.
 */
static void host_permission_table(void **state)
{
	struct bed_setup setup = {.kind = BED_FS, .full = true};
	struct bed *bed = bed_new(&setup);
	uint64_t context = quipu_vtd_context_address(bed->tables, RID);
	uint64_t pasid = quipu_vtd_pasid_address(bed->tables, RID, 5), t[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		t[i] = quipu_vtd_memory_alloc(bed->memory, 1);
	for (unsigned i = 0; i < 3; i++)
		quipu_vtd_memory_store(bed->memory, t[i] + 8, t[i + 1] | 1);
	quipu_vtd_memory_store(bed->memory, t[3], 0x31);
	/* HPTE, EPTR; its table and domain 9 */
	quipu_vtd_memory_store(bed->memory, context,
			       quipu_vtd_memory_load(bed->memory, context) | 0x60);
	quipu_vtd_memory_store(bed->memory, pasid + 32, t[0] | 4); /* no prefetch */
	quipu_vtd_memory_store(bed->memory, pasid + 40, 9);
	bed_count(bed, 0, 3, 0x4, -1, 0);
	bed_count(bed, 1, 3, 0x8, 4, 1);
	bed_count(bed, 2, 2, 0x100, 3, 1 << 2);
	bed_count(bed, 3, 2, 0x200, 4, 1 << 1);
	bed_count(bed, 4, 1, 0x1, -1, 0);
	bed_run(bed, "p5 x 0");
	assert_int_equal(bed->last.fault, 0);
	assert_int_equal(bed_value(bed, 4), 2 + 2 + 4);
	bed_run(bed, "p5 x 40");
	assert_int_equal(bed_value(bed, 1), 1);
	bed_run(bed, "p5 x 1000");
	assert_int_equal(bed->last.fault, 0);
	assert_int_equal(bed_value(bed, 0), 3);
	assert_int_equal(bed_value(bed, 2), 2);
	assert_int_equal(bed_value(bed, 3), 1);
	assert_int_equal(bed_value(bed, 4), 8 + 1);
	struct quipu_vtd_request rq = {.addr = 0,
				       .pasid = 5,
				       .rid = RID,
				       .len = 8,
				       .at = QUIPU_VTD_TRANSLATED,
				       .op = QUIPU_VTD_WRITE};
	quipu_vtd_dma(bed->unit, &rq, &bed->last);
	assert_int_equal(bed->last.fault, 0xa4);
	rq.addr = 0x1000;
	quipu_vtd_dma(bed->unit, &rq, &bed->last);
	assert_int_equal(bed->last.fault, 0);
	bed_run(bed, "p5 x 2000"); /* no permission */
	assert_int_equal(bed->last.fault, 0xa5);
	/* Its own invalidation empties it. */
	bed_count(bed, 5, 2, 0x200, -1, 0);
	bed_run(bed, "inv 9002A; p5 x 0");
	assert_int_equal(bed_value(bed, 5), 0);
	assert_int_equal(bed->last.fault, 0);
	bed_free(bed);
}

/* ---- events of revision 5.10 without a name in Linux ---- */

/* Cold legacy read: 6 reads of 150 clocks each. A hit: one clock. */
static void occupancy(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY, .full = true};
	struct bed *bed = bed_new(&setup);

	(void)state;
	bed_count(bed, 13, 0, 0x20, -1, 0);
	bed_count(bed, 12, 0, 0x40, -1, 0);
	bed_run(bed, "r B");
	assert_int_equal(bed_value(bed, 13), 900);
	assert_int_equal(bed_value(bed, 12), 900);
	bed_run(bed, "r B");
	assert_int_equal(bed_value(bed, 13), 901);
	assert_int_equal(bed_value(bed, 12), 900);
	bed_free(bed);
}

/* Context first: the context cache is asked by hits of the IOTLB as well. */
static void context_first(void **state)
{
	struct bed_setup setup = {.kind = BED_SS, .context_first = true};
	struct bed *bed = bed_new(&setup);

	(void)state;
	bed_count(bed, 0, 2, 1, -1, 0);
	bed_count(bed, 1, 2, 2, -1, 0);
	bed_count(bed, 2, 3, 1, -1, 0);
	bed_count(bed, 3, 3, 2, -1, 0);
	bed_run(bed, "r B 5");
	assert_int_equal(bed_value(bed, 0), 5);
	assert_int_equal(bed_value(bed, 1), 4);
	assert_int_equal(bed_value(bed, 2), 5);
	assert_int_equal(bed_value(bed, 3), 4);
	bed_free(bed);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int main(void)
{
	static const struct CMUnitTest plain[] = {
		cmocka_unit_test(device_tlb_sizes),
		cmocka_unit_test(wait_interrupts_once),
		cmocka_unit_test(replacement),
		cmocka_unit_test(an_empty_line_is_taken_first),
		cmocka_unit_test(host_permission_table),
		cmocka_unit_test(occupancy),
		cmocka_unit_test(context_first),
	};
	struct CMUnitTest tests[COUNT(matrix) + COUNT(bad) + COUNT(plain)];
	size_t n = 0;

	for (size_t i = 0; i < COUNT(matrix); i++)
		tests[n++] = (struct CMUnitTest){matrix[i].name, matrix_case, NULL, NULL,
						 (void *)&matrix[i]};
	for (size_t i = 0; i < COUNT(bad); i++)
		tests[n++] =
			(struct CMUnitTest){bad[i].name, bad_case, NULL, NULL, (void *)&bad[i]};
	for (size_t i = 0; i < COUNT(plain); i++)
		tests[n++] = plain[i];
	return _cmocka_run_group_tests("vtd caches", tests, n, NULL, NULL);
}
