// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cases D1 to D38 and D42 to D45: for each traffic script what every cache and the memory reads
 * must count. The values follow from the walks by hand: a cold legacy walk reads root, context and
 * one entry per level; a scalable one root, context, PASID directory, PASID table first; a hit in
 * the paging-structure cache skips the levels above it. Source: VT-d specification 5.10, 3.4 to 3.9
 * (tables), 4.2 (device TLBs), 6.2 (caches), 6.5 (invalidation), 7.1 (faults), Table 49 (events).
 * D39 is in traffic.c (it is about a device), D40 and D41 in interrupts.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

struct extra { /* one more event, with a filter, and its value */
	bool used;
	unsigned group;
	uint32_t event;
	int filter;
	uint32_t value;
	uint64_t expect;
};
#define PTL(event, bit, n)                                                                         \
	{                                                                                          \
		true, event, 4, 1u << (bit), n                                                     \
	}
#define AT(bit, n)                                                                                 \
	{                                                                                          \
		true, 0, 0x2, 3, 1u << (bit), n                                                    \
	}
#define EVENT(g, e, n)                                                                             \
	{                                                                                          \
		true, g, e, -1, 0, n                                                               \
	}
#define IOTLB_HIT 3, 0x2
#define SS_HIT	  2, 0x20
#define FS_HIT	  2, 0x80

struct dma_case {
	const char *name;
	struct bed_setup setup;
	const char *script;
	/* requests, IOTLB lookup and hit, context, PASID, second stage, first stage, memory reads
	 */
	uint64_t expect[12];
	struct extra extra[3];
	uint8_t fault;			  /* of the last request; 0: none */
	uint64_t record_high, record_low; /* of FRCD[0]; high 0: nothing recorded */
};

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
#define FS6                                                                                        \
	{                                                                                          \
		.kind = BED_FS, .pasid6 = true                                                     \
	}
#define ONLY_B                                                                                     \
	{                                                                                          \
		.kind = BED_LEGACY, .pages = 1                                                     \
	}

static const struct dma_case cases[] = {
	{"D1", LEGACY, "r B", {1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6}, {EVENT(0, 0x4, 900)}},
	{"D2", LEGACY, "r B; r B", {2, 2, 1, 1, 0, 0, 0, 1, 0, 0, 0, 6}, {PTL(IOTLB_HIT, 0, 1)}},
	{"D3",
	 LEGACY,
	 "r B; r B; r B+1000",
	 {3, 3, 1, 2, 1, 0, 0, 2, 1, 0, 0, 7},
	 {PTL(SS_HIT, 1, 1)}},
	{"D4", LEGACY, "r B 512 4096", {512, 512, 0, 512, 511, 0, 0, 512, 511, 0, 0, 517}},
	{"D5",
	 LEGACY,
	 "r B 512 4096; r B 512 4096",
	 {1024, 1024, 0, 1024, 1023, 0, 0, 1024, 1023, 0, 0, 1029}},
	{"D6",
	 LEGACY,
	 "r B 256 4096; r B 256 4096",
	 {512, 512, 256, 256, 255, 0, 0, 256, 255, 0, 0, 261}},
	{"D7", LEGACY, "r B 64 64", {64, 64, 63, 1, 0, 0, 0, 1, 0, 0, 0, 6}},
	{"D8",
	 {.kind = BED_LEGACY, .page = 2 << 20, .pages = 8},
	 "r B; r B+5000; r B+200000",
	 {3, 3, 1, 2, 1, 0, 0, 2, 1, 0, 0, 6},
	 {PTL(IOTLB_HIT, 1, 1), PTL(SS_HIT, 2, 1)}},
	{"D9",
	 {.kind = BED_LEGACY, .page = 1 << 30, .pages = 2},
	 "r B; r B+5000000",
	 {2, 2, 1, 1, 0, 0, 0, 1, 0, 0, 0, 4},
	 {PTL(IOTLB_HIT, 2, 1)}},
	{"D10 three levels",
	 {.kind = BED_LEGACY, .levels = 3},
	 "r B",
	 {1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5}},
	{"D10 five levels",
	 {.kind = BED_LEGACY, .levels = 5},
	 "r B",
	 {1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7}},
	{"D11", {.kind = BED_PT}, "r B 10", {10, 10, 0, 10, 9, 0, 0, 0, 0, 0, 0, 2}},
	{"D12",
	 ONLY_B,
	 "r B+1000",
	 {1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6},
	 .fault = 0x06,
	 .record_high = UINT64_C(0xC000000600003A00),
	 .record_low = UINT64_C(0x100001000)},
	{"D13",
	 ONLY_B,
	 "r B+1000; r B+1000",
	 {2, 2, 0, 2, 1, 0, 0, 2, 1, 0, 0, 7},
	 .fault = 0x06,
	 .record_high = UINT64_C(0xC000000600003A00),
	 .record_low = UINT64_C(0x100001000)},
	{"D14",
	 {.kind = BED_LEGACY, .absent = 1},
	 "r B; r B",
	 {2, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4},
	 .fault = 0x02,
	 .record_high = UINT64_C(0xC000000200003A00),
	 .record_low = B},
	{"D15", LEGACY, "r B; inv 500F2 100000040; r B", {2, 2, 0, 2, 1, 0, 0, 2, 1, 0, 0, 7}},
	{"D16", LEGACY, "r B; inv 500F2 100000000; r B", {2, 2, 0, 2, 1, 0, 0, 2, 0, 0, 0, 10}},
	{"D17", LEGACY, "r B; inv 500E2; r B", {2, 2, 0, 2, 1, 0, 0, 2, 0, 0, 0, 10}},
	{"D18", LEGACY, "r B; inv 600F2 100000000; r B", {2, 2, 1, 1, 0, 0, 0, 1, 0, 0, 0, 6}},
	{"D19", LEGACY, "r B; inv 11; r B; r B+1000", {3, 3, 1, 2, 0, 0, 0, 2, 1, 0, 0, 9}},
	{"D20",
	 LEGACY,
	 "r B; r B+1000; inv 500F2 100000041; r B; r B+1000",
	 {4, 4, 0, 4, 3, 0, 0, 4, 3, 0, 0, 9}},
	{"D21", SS, "r B; r B+1000", {2, 2, 0, 2, 1, 2, 1, 2, 1, 0, 0, 9}},
	{"D21 the first alone", SS, "r B", {1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 8}},
	{"D22",
	 FS,
	 "p5 r B; p5 r B+1000; p5 r B+200000",
	 {3, 3, 0, 3, 2, 3, 2, 0, 0, 3, 2, 11},
	 {PTL(FS_HIT, 1, 1), PTL(FS_HIT, 2, 1)}},
	{"D23", {.kind = BED_FS, .levels = 5}, "p5 r B", {1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 9}},
	{"D24",
	 {.kind = BED_NESTED},
	 "r B",
	 {1, 1, 0, 1, 0, 1, 0, 5, 4, 1, 0, 17},
	 {PTL(SS_HIT, 1, 3), PTL(SS_HIT, 2, 1)}},
	{"D25", {.kind = BED_NESTED}, "r B; r B+1000", {2, 2, 0, 2, 1, 2, 1, 6, 5, 2, 1, 19}},
	{"D26",
	 {.kind = BED_PT, .scalable = true},
	 "r B 4 4096",
	 {4, 4, 3, 1, 0, 1, 0, 0, 0, 0, 0, 4},
	 {PTL(IOTLB_HIT, 2, 3)}},
	{"D27", FS, "p5 r B; inv 500010026; p5 r B", {2, 2, 0, 2, 1, 2, 1, 0, 0, 2, 0, 12}},
	{"D28 IH=1",
	 FS,
	 "p5 r B; inv 500010036 100000040; p5 r B",
	 {2, 2, 0, 2, 1, 2, 1, 0, 0, 2, 1, 9}},
	{"D28 IH=0",
	 FS,
	 "p5 r B; inv 500010036 100000000; p5 r B",
	 {2, 2, 0, 2, 1, 2, 1, 0, 0, 2, 0, 12}},
	{"D29", SS, "r B; inv 70036 100000000; r B", {2, 2, 1, 1, 0, 1, 0, 1, 0, 0, 0, 8}},
	{"D30", FS, "p5 r B; inv 100F2 900000040; p5 r B", {2, 2, 0, 2, 1, 2, 1, 0, 0, 2, 0, 12}},
	{"D31",
	 FS,
	 "p5 t B; x 2000000000 64 64",
	 {65, 1, 0, 65, 64, 1, 0, 0, 0, 1, 0, 8},
	 {AT(1, 1), AT(2, 64), AT(0, 0)}},
	{"D32",
	 FS,
	 "p6 r B; p6 r B",
	 {2, 2, 0, 2, 1, 2, 0, 0, 0, 0, 0, 6},
	 .fault = 0x59,
	 .record_high = UINT64_C(0xC000065980003A00),
	 .record_low = B},
	{"D33", FS6, "p5 r B; p6 r B", {2, 2, 0, 2, 1, 2, 0, 0, 0, 2, 0, 14}},
	{"D34",
	 {.kind = BED_FS, .pages = 1},
	 "p5 w B+1000",
	 {1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 8},
	 .fault = 0x71,
	 .record_high = UINT64_C(0x8000057180003A00),
	 .record_low = UINT64_C(0x100001000)},
	{"D35",
	 LEGACY,
	 "p5 r B",
	 {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	 .fault = 0x31,
	 .record_high = UINT64_C(0xC000053180003A00),
	 .record_low = B},
	{"D36",
	 {.kind = BED_LEGACY, .te_off = true},
	 "r B 5",
	 {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"D37",
	 {.kind = BED_FS, .pages = 1},
	 "p5 t B+1000",
	 {1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 8},
	 .fault = 0x71},
	{"D38",
	 {.kind = BED_LEGACY, .pages = 1, .absent = 2},
	 "r B+1000",
	 {1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6},
	 .fault = 0x06},
	{"D42", FS, "p5 r B; p5 w B; p5 w B", {3, 3, 1, 2, 1, 2, 1, 0, 0, 2, 1, 9}},
	{"D43",
	 {.kind = BED_LEGACY, .no_ats = true},
	 "r B; t B",
	 {2, 2, 1, 1, 0, 0, 0, 1, 0, 0, 0, 6},
	 .fault = 0x0d,
	 .record_high = UINT64_C(0xD000000D00003A00),
	 .record_low = B},
	{"D44",
	 FS,
	 "p0 r B",
	 {1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2},
	 .fault = 0x48,
	 .record_high = UINT64_C(0xC000004880003A00),
	 .record_low = B},
	{"D45",
	 FS,
	 "p0x8000 r B",
	 {1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2},
	 .fault = 0x46,
	 .record_high = UINT64_C(0xC080004680003A00),
	 .record_low = B},
};
#define NCASES (sizeof(cases) / sizeof(cases[0]))

/* The columns of a case: counter 13 counts requests, 0 to 10 the rest; an extra event goes to 11.
 */
static const struct {
	const char *name;
	unsigned counter, group;
	uint32_t event;
} column[12] = {
	{"iommu_requests", 13, 0, 0x2}, {"iotlb_lookup", 0, 3, 0x1},
	{"iotlb_hit", 1, 3, 0x2},	{"ctxt_cache_lookup", 2, 2, 0x1},
	{"ctxt_cache_hit", 3, 2, 0x2},	{"pasid_cache_lookup", 4, 2, 0x4},
	{"pasid_cache_hit", 5, 2, 0x8}, {"ss_nonleaf_lookup", 6, 2, 0x10},
	{"ss_nonleaf_hit", 7, 2, 0x20}, {"fs_nonleaf_lookup", 8, 2, 0x40},
	{"fs_nonleaf_hit", 9, 2, 0x80}, {"iommu_mrds", 10, 1, 0x1},
};

static void check_columns(const struct dma_case *c, struct bed *bed)
{
	for (unsigned i = 0; i < 12; i++) {
		uint64_t value = bed_value(bed, column[i].counter);

		if (value != c->expect[i])
			fail_msg("%s: %s is %llu, not %llu", c->name, column[i].name,
				 (unsigned long long)value, (unsigned long long)c->expect[i]);
	}
}

static void check_fault(const struct dma_case *c, struct bed *bed)
{
	assert_int_equal(bed->last.fault, c->fault);
	assert_int_equal(bed_rd64(bed, 0x508), c->record_high);
	assert_int_equal(bed_rd64(bed, 0x500), c->record_low);
	assert_int_equal(bed_rd32(bed, 0x34) & 2, c->record_high ? 2 : 0);
	/* Repeats of the same requester do not fill further records. */
	assert_int_equal(bed_rd64(bed, 0x518), 0);
}

static void run_once(const struct dma_case *c, const struct extra *extra, bool queued)
{
	struct bed_setup setup = c->setup;
	struct bed *bed;

	setup.queued = queued;
	bed = bed_new(&setup);
	for (unsigned i = 0; i < 12; i++)
		bed_count(bed, column[i].counter, column[i].group, column[i].event, -1, 0);
	if (extra)
		bed_count(bed, 11, extra->group, extra->event, extra->filter, extra->value);
	bed_run(bed, c->script);
	check_columns(c, bed);
	check_fault(c, bed);
	if (extra)
		assert_int_equal(bed_value(bed, 11), extra->expect);
	bed_free(bed);
}

static void dma_case(void **state)
{
	const struct dma_case *c = *state;

	run_once(c, NULL, false);
	/* "Lookup, hit and read counts must be identical in both modes." */
	run_once(c, NULL, true);
	for (unsigned i = 0; i < 3 && c->extra[i].used; i++)
		run_once(c, &c->extra[i], false);
}

/* D37: the device is told that it may do nothing there, and that is no error. */
static void absent_page_is_an_answer_not_a_fault(void **state)
{
	struct bed_setup setup = {.kind = BED_FS, .pages = 1};
	struct bed *bed = bed_new(&setup);

	(void)state;
	bed_run(bed, "p5 t B+1000");
	assert_int_equal(bed->last.status, QUIPU_VTD_SUCCESS);
	assert_false(bed->last.r || bed->last.w);
	assert_false(bed->last.recorded);
	bed_free(bed);
}

/* D36: with translation off an address is what it says. */
static void translation_off_is_identity(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY, .te_off = true};
	struct bed *bed = bed_new(&setup);

	(void)state;
	bed_run(bed, "r 123456000");
	assert_int_equal(bed->last.addr, 0x123456000);
	assert_int_equal(bed->last.status, QUIPU_VTD_SUCCESS);
	bed_free(bed);
}

/* D42: one dirty bit set once. */
static void first_write_sets_dirty_once(void **state)
{
	struct bed_setup setup = {.kind = BED_FS, .full = true};
	struct bed *bed = bed_new(&setup);
	uint64_t leaf = quipu_vtd_leaf_address(bed->domain, B);

	(void)state;
	bed_count(bed, 0, 1, 0x8, -1, 0);
	bed_run(bed, "p5 r B");
	assert_int_equal(quipu_vtd_memory_load(bed->memory, leaf) & 0x60, 0x20);
	bed_run(bed, "p5 w B; p5 w B");
	assert_int_equal(quipu_vtd_memory_load(bed->memory, leaf) & 0x60, 0x60);
	assert_int_equal(bed_value(bed, 0), 1);
	bed_free(bed);
}

int main(void)
{
	struct CMUnitTest tests[NCASES + 3] = {{0}};
	unsigned n = 0;

	for (; n < NCASES; n++)
		tests[n] =
			(struct CMUnitTest){cases[n].name, dma_case, NULL, NULL, (void *)&cases[n]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(absent_page_is_an_answer_not_a_fault);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(translation_off_is_identity);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(first_write_sets_dirty_once);
	return _cmocka_run_group_tests("conformance vtd dma", tests, n, NULL, NULL);
}
