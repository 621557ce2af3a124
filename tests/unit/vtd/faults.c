// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults: one bit or pointer of a table is made wrong, and the reason of the specification
 * (Appendix A; sheet 6.9) must come out, with the answer that a translation request gets for it. A
 * pointer may point anywhere: memory ends at 2^40 here. Reasons that the model cannot meet (07 of a
 * root, 5C, 7C, 90 and what only writes that fail can show) are not here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

#define NOWHERE (UINT64_C(1) << 44) /* below the host address width, beyond memory */
#define ADDRESS UINT64_C(0x00003ffffffff000)

enum place {
	NONE,
	ROOT,
	CONTEXT,
	CONTEXT_HIGH,
	DIRECTORY,
	PASID,
	PASID_1,
	PASID_2,
	PASID_3,
	LEVEL4,
	LEVEL3,
	LEVEL2,
	LEAF
};

static const struct fault_case {
	const char *name;
	struct bed_setup setup;
	enum place place;
	uint64_t clear, set; /* bits of the entry there */
	const char *script;
	uint8_t reason;
	enum quipu_vtd_status answer; /* to a translation request instead of the read */
	bool priv;
} cases[] = {
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
	{"01 root not present", LEGACY, ROOT, 1, 0, "r B", 0x01, QUIPU_VTD_UR, false},
	{"0A root reserved", LEGACY, ROOT, 0, 2, "r B", 0x0a, QUIPU_VTD_CA, false},
	{"09 context table nowhere", LEGACY, ROOT, ADDRESS, NOWHERE, "r B", 0x09, QUIPU_VTD_CA,
	 false},
	{"02 context not present", LEGACY, CONTEXT, 1, 0, "r B", 0x02, QUIPU_VTD_UR, false},
	{"0B context reserved", LEGACY, CONTEXT, 0, 0x10, "r B", 0x0b, QUIPU_VTD_CA, false},
	{"0B context reserved, upper half", LEGACY, CONTEXT_HIGH, 0, UINT64_C(1) << 40, "r B", 0x0b,
	 QUIPU_VTD_CA, false},
	{"03 no such address width", LEGACY, CONTEXT_HIGH, 7, 0, "r B", 0x03, QUIPU_VTD_CA, false},
	{"03 no such translation type", LEGACY, CONTEXT, 0, 0xc, "r B", 0x03, QUIPU_VTD_CA, false},
	{"04 address too wide", LEGACY, NONE, 0, 0, "r 1000000000000", 0x04, QUIPU_VTD_SUCCESS,
	 false},
	{"05 no write", LEGACY, LEAF, 2, 0, "w B", 0x05, QUIPU_VTD_SUCCESS, false},
	{"06 no read", LEGACY, LEAF, 1, 0, "r B", 0x06, QUIPU_VTD_SUCCESS, false},
	{"06 not present", LEGACY, LEAF, 3, 0, "r B", 0x06, QUIPU_VTD_SUCCESS, false},
	{"05 not present", LEGACY, LEAF, 3, 0, "w B", 0x05, QUIPU_VTD_SUCCESS, false},
	{"07 page table nowhere", LEGACY, LEVEL2, ADDRESS, NOWHERE, "r B", 0x07, QUIPU_VTD_CA,
	 false},
	{"07 root table nowhere", LEGACY, CONTEXT, ADDRESS, NOWHERE, "r B", 0x07, QUIPU_VTD_CA,
	 false},
	{"0C leaf reserved", LEGACY, LEAF, 0, UINT64_C(1) << 62, "r B", 0x0c, QUIPU_VTD_CA, false},
	{"0C above the host's width", LEGACY, LEAF, 0, UINT64_C(1) << 50, "r B", 0x0c, QUIPU_VTD_CA,
	 false},
	{"0C page size at level 4", LEGACY, LEVEL4, 0, 0x80, "r B", 0x0c, QUIPU_VTD_CA, false},
	{"0C large page off its border", LEGACY, LEVEL2, 0, 0x80 | 0x1000, "r B", 0x0c,
	 QUIPU_VTD_CA, false},
	{"0E output in the interrupt range", LEGACY, LEAF, ADDRESS, 0xfee00000, "r B", 0x0e,
	 QUIPU_VTD_CA, false},

	{"39 root half not present", SS, ROOT, 1, 0, "r B", 0x39, QUIPU_VTD_UR, false},
	{"3A root half reserved", SS, ROOT, 0, 2, "r B", 0x3a, QUIPU_VTD_CA, false},
	{"40 context table nowhere", SS, ROOT, ADDRESS, NOWHERE, "r B", 0x40, QUIPU_VTD_CA, false},
	{"41 context not present", SS, CONTEXT, 1, 0, "r B", 0x41, QUIPU_VTD_UR, false},
	{"42 context reserved", SS, CONTEXT, 0, 0x80, "r B", 0x42, QUIPU_VTD_CA, false},
	{"42 host permission table that the unit lacks", SS, CONTEXT, 0, 0x20, "r B", 0x42,
	 QUIPU_VTD_CA, false},
	{"43 page requests without a device TLB", SS, CONTEXT, 4, 0, "r B", 0x43, QUIPU_VTD_CA,
	 false},
	{"45 PASIDs switched off", FS, CONTEXT, 8, 0, "p5 r B", 0x45, QUIPU_VTD_UR, false},
	{"50 directory nowhere", SS, CONTEXT, ADDRESS, NOWHERE, "r B", 0x50, QUIPU_VTD_CA, false},
	{"51 directory entry not present", SS, DIRECTORY, 1, 0, "r B", 0x51, QUIPU_VTD_SUCCESS,
	 false},
	{"52 directory entry reserved", SS, DIRECTORY, 0, 4, "r B", 0x52, QUIPU_VTD_CA, false},
	{"58 PASID table nowhere", SS, DIRECTORY, ADDRESS, NOWHERE, "r B", 0x58, QUIPU_VTD_CA,
	 false},
	{"59 PASID entry not present", SS, PASID, 1, 0, "r B", 0x59, QUIPU_VTD_SUCCESS, false},
	{"5A PASID entry reserved", SS, PASID, 0, 0x20, "r B", 0x5a, QUIPU_VTD_CA, false},
	{"5A in its second quadword", SS, PASID_1, 0, 1 << 16, "r B", 0x5a, QUIPU_VTD_CA, false},
	{"5A in its fourth", SS, PASID_3, 0, 1, "r B", 0x5a, QUIPU_VTD_CA, false},
	{"5B no such translation type", SS, PASID, 0x1c0, 5 << 6, "r B", 0x5b, QUIPU_VTD_CA, false},
	{"5B no such address width", SS, PASID, 0x1c, 0, "r B", 0x5b, QUIPU_VTD_CA, false},
	{"5B no such first-stage width", FS, PASID_2, 0, 8, "p5 r B", 0x5b, QUIPU_VTD_CA, false},
	{"5D supervisor request", FS, PASID_2, 1, 0, "p5 r B", 0x5d, QUIPU_VTD_SUCCESS, true},
	{"78 page table nowhere", SS, LEVEL2, ADDRESS, NOWHERE, "r B", 0x78, QUIPU_VTD_CA, false},
	{"79 not present", SS, LEAF, 3, 0, "r B", 0x79, QUIPU_VTD_SUCCESS, false},
	{"79 not present above", SS, LEVEL3, 3, 0, "r B", 0x79, QUIPU_VTD_SUCCESS, false},
	{"7A reserved", SS, LEAF, 0, UINT64_C(1) << 62, "r B", 0x7a, QUIPU_VTD_CA, false},
	{"7B root table nowhere", SS, PASID, ADDRESS, NOWHERE, "r B", 0x7b, QUIPU_VTD_CA, false},
	{"84 address too wide", SS, NONE, 0, 0, "r 1000000000000", 0x84, QUIPU_VTD_SUCCESS, false},
	{"85 no write", SS, LEAF, 2, 0, "w B", 0x85, QUIPU_VTD_SUCCESS, false},
	{"86 no read", SS, LEAF, 1, 0, "r B", 0x86, QUIPU_VTD_SUCCESS, false},
	{"87 output in the interrupt range", SS, LEAF, ADDRESS, 0xfee00000, "r B", 0x87,
	 QUIPU_VTD_CA, false},
	{"70 page table nowhere", FS, LEVEL2, ADDRESS, NOWHERE, "p5 r B", 0x70, QUIPU_VTD_SUCCESS,
	 false},
	{"71 not present", FS, LEAF, 1, 0, "p5 r B", 0x71, QUIPU_VTD_SUCCESS, false},
	{"72 reserved", FS, LEAF, 0, UINT64_C(1) << 50, "p5 r B", 0x72, QUIPU_VTD_SUCCESS, false},
	{"72 page size at level 4", FS, LEVEL4, 0, 0x80, "p5 r B", 0x72, QUIPU_VTD_SUCCESS, false},
	{"73 root table nowhere", FS, PASID_2, ADDRESS, NOWHERE, "p5 r B", 0x73, QUIPU_VTD_SUCCESS,
	 false},
	{"80 not canonical", FS, NONE, 0, 0, "p5 r 800000000000", 0x80, QUIPU_VTD_SUCCESS, false},
	{"81 supervisor page", FS, LEAF, 4, 0, "p5 r B", 0x81, QUIPU_VTD_SUCCESS, false},
	{"85 no write, first stage", FS, LEAF, 2, 0, "p5 w B", 0x85, QUIPU_VTD_SUCCESS, false},
	{"83 pass-through too wide",
	 {.kind = BED_PT, .scalable = true},
	 NONE,
	 0,
	 0,
	 "r 400000000000",
	 0x83,
	 QUIPU_VTD_SUCCESS,
	 false},
};

static int32_t pasid_of(const struct fault_case *c)
{
	return c->setup.kind == BED_FS ? 5 : 0;
}

/* Where the entry of @level for B is. */
static uint64_t level_entry(struct bed *bed, const struct fault_case *c, unsigned level)
{
	uint64_t pasid = quipu_vtd_pasid_address(bed->tables, RID, (uint32_t)pasid_of(c));
	uint64_t at = c->setup.kind == BED_LEGACY ? quipu_vtd_context_address(bed->tables, RID)
		      : c->setup.kind == BED_FS	  ? pasid + 16
						  : pasid;

	for (unsigned l = 4; l >= level; l--)
		at = (quipu_vtd_memory_load(bed->memory, at) & ADDRESS) +
		     (B >> (12 + 9 * (l - 1)) & 0x1ff) * 8;
	return at;
}

static uint64_t address(struct bed *bed, const struct fault_case *c)
{
	uint64_t context = quipu_vtd_context_address(bed->tables, RID);
	uint64_t pasid = quipu_vtd_pasid_address(bed->tables, RID, (uint32_t)pasid_of(c));

	switch (c->place) {
	case ROOT: return quipu_vtd_tables_root(bed->tables) + (RID >> 8) * 16;
	case CONTEXT: return context;
	case CONTEXT_HIGH: return context + 8;
	case DIRECTORY: return quipu_vtd_memory_load(bed->memory, context) & ADDRESS;
	case PASID:
	case PASID_1:
	case PASID_2:
	case PASID_3: return pasid + 8 * (uint64_t)(c->place - PASID);
	case LEVEL4:
	case LEVEL3:
	case LEVEL2:
	case LEAF: return level_entry(bed, c, 4 - (unsigned)(c->place - LEVEL4));
	case NONE: break;
	}
	return 0;
}

static struct bed *broken(const struct fault_case *c, uint64_t *at, uint64_t *right)
{
	struct bed *bed = bed_new(&c->setup);

	*at = address(bed, c);
	*right = *at ? quipu_vtd_memory_load(bed->memory, *at) : 0;
	if (*at)
		quipu_vtd_memory_store(bed->memory, *at, (*right & ~c->clear) | c->set);
	return bed;
}

static void supervisor(struct bed *bed, int32_t pasid, uint8_t at)
{
	struct quipu_vtd_request rq = {
		.addr = B, .pasid = pasid, .len = 64, .rid = RID, .at = at, .priv = true};

	quipu_vtd_dma(bed->unit, &rq, &bed->last);
}

/*
 * An entry that only points nowhere, or forbids what was asked, is a valid one: a cache that holds
 * entries of its kind keeps it.
 */
static bool right_in_itself(const struct fault_case *c)
{
	if (c->reason == 0x45 || c->reason == 0x5d)
		return true;
	return (c->clear == ADDRESS) && c->place != ROOT && c->place != DIRECTORY &&
	       c->place != LEAF;
}

static void fault_case(void **state)
{
	const struct fault_case *c = *state;
	uint64_t at, right;
	struct bed *bed = broken(c, &at, &right);

	if (c->priv)
		supervisor(bed, pasid_of(c), 0);
	else
		bed_run(bed, c->script);
	assert_int_equal(bed->last.fault, c->reason);
	assert_int_equal(bed->last.status, QUIPU_VTD_UR);
	assert_true(bed->last.recorded);
	assert_int_equal(bed_rd64(bed, 0x508) >> 32 & 0xff, c->reason);
	/* Nothing that is wrong is cached: repaired, it works at once, without any invalidation. */
	if (at && !right_in_itself(c)) {
		quipu_vtd_memory_store(bed->memory, at, right);
		bed_run(bed, c->script);
		assert_int_equal(bed->last.fault, 0);
	}
	bed_free(bed);
}

/* The same as a translation request: an answer, and a record only where that is no success. */
static void answer_case(void **state)
{
	const struct fault_case *c = *state;
	uint64_t at, right;
	struct bed *bed = broken(c, &at, &right);
	char script[64];
	char *kind;

	snprintf(script, sizeof(script), "%s", c->script);
	kind = strpbrk(script, "rw");
	*kind = *kind == 'w' ? 'T' : 't';
	if (c->priv)
		supervisor(bed, pasid_of(c), QUIPU_VTD_TRANSLATION);
	else
		bed_run(bed, script);
	assert_int_equal(bed->last.status, c->answer);
	assert_int_equal(bed->last.recorded, c->answer != QUIPU_VTD_SUCCESS);
	/* What is allowed is told; of a page that is not there, nothing is. */
	if (c->answer == QUIPU_VTD_SUCCESS)
		assert_int_equal(bed->last.r,
				 (c->reason == 0x05 || c->reason == 0x85) && !(c->clear & 1));
	bed_free(bed);
}

/* ---- records ---- */

/* Eight records, one a requester; the ninth finds none free. */
static void records_overflow(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY, .pages = 1};
	struct bed *bed = bed_new(&setup);
	struct quipu_vtd_request rq = {.addr = B, .pasid = -1, .len = 64};
	struct quipu_vtd_response rs;

	(void)state;
	bed_wr32(bed, 0x3c, 0x55);
	bed_wr32(bed, 0x40, 0xfee00000);
	bed_wr32(bed, 0x38, 0);
	for (unsigned i = 0; i < 9; i++) {
		rq.rid = (uint16_t)(0x100 * (i + 1));
		quipu_vtd_dma(bed->unit, &rq, &rs);
		assert_int_equal(rs.recorded, i < 8);
	}
	assert_int_equal(bed->msis, 1); /* one event for all of them */
	assert_int_equal(bed->msi_data, 0x55);
	assert_int_equal(bed_rd32(bed, 0x34), 3); /* PPF, PFO; the first is record 0 */
	assert_int_equal(bed_rd64(bed, 0x508 + 16 * 7) & 0xffff, 0x800);
	/* Taken one by one: PPF goes with the last. */
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(bed_rd32(bed, 0x34) & 2, 2);
		bed_wr64(bed, 0x508 + 16 * i, UINT64_C(1) << 63);
	}
	assert_int_equal(bed_rd32(bed, 0x34), 1);
	bed_wr32(bed, 0x34, 1);
	assert_int_equal(bed_rd32(bed, 0x34), 0);
	rq.rid = 0xa00;
	quipu_vtd_dma(bed->unit, &rq, &rs);
	assert_true(rs.recorded);
	assert_int_equal(bed->msis, 2);
	bed_free(bed);
}

static void change(struct bed *bed, uint64_t at, uint64_t clear, uint64_t set)
{
	quipu_vtd_memory_store(bed->memory, at,
			       (quipu_vtd_memory_load(bed->memory, at) & ~clear) | set);
}

/* A hit that is refused: the context entry, which nobody reads for it, said whether to record that.
 */
static void a_hit_is_recorded_as_a_miss_would_be(void **state)
{
	(void)state;
	for (unsigned disabled = 0; disabled < 2; disabled++) {
		struct bed_setup setup = {.kind = BED_LEGACY, .absent = disabled ? 2 : 0};
		struct bed *bed = bed_new(&setup);
		uint64_t leaf = quipu_vtd_leaf_address(bed->domain, B);

		change(bed, leaf, 2, 0);
		bed_count(bed, 0, 3, 2, -1, 0);
		bed_run(bed, "r B; w B");
		assert_int_equal(bed_value(bed, 0), 1);
		assert_int_equal(bed->last.fault, 0x05);
		assert_int_equal(bed->last.recorded, !disabled);
		assert_int_equal(bed_rd32(bed, 0x34), disabled ? 0 : 2);
		bed_free(bed);
	}
}

/*
 * Accessed and dirty in the second stage (SSADE). A read sets A in four entries; a first write
 * finds the page clean in the IOTLB, walks from the PDE and sets D; a second one hits. What may not
 * be written does not become dirty.
 */
static void second_stage_accessed_and_dirty(void **state)
{
	static const struct {
		uint64_t denied; /* of the leaf */
		const char *script;
		uint8_t fault;
		uint64_t updates, hits, reads, flags; /* flags: A, D of the leaf */
	} rows[] = {
		{0, "r B; r B", 0, 4, 1, 8, 0x100},
		{0, "r B; w B; w B", 0, 5, 1, 9, 0x300},
		{0, "w B; r B", 0, 4, 1, 8, 0x300}, /* the leaf's A and D at once */
		{2, "w B", 0x85, 4, 0, 8, 0x100},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bed_setup setup = {.kind = BED_SS, .full = true};
		struct bed *bed = bed_new(&setup);
		uint64_t leaf = quipu_vtd_leaf_address(bed->domain, B);

		change(bed, quipu_vtd_pasid_address(bed->tables, RID, 0), 0, UINT64_C(1) << 9);
		change(bed, leaf, rows[i].denied, 0);
		bed_count(bed, 0, 1, 0x8, -1, 0);
		bed_count(bed, 1, 3, 0x2, -1, 0);
		bed_count(bed, 2, 1, 0x1, -1, 0);
		bed_run(bed, rows[i].script);
		assert_int_equal(bed->last.fault, rows[i].fault);
		assert_int_equal(bed_value(bed, 0), rows[i].updates);
		assert_int_equal(bed_value(bed, 1), rows[i].hits);
		assert_int_equal(bed_value(bed, 2), rows[i].reads);
		assert_int_equal(quipu_vtd_memory_load(bed->memory, leaf) & 0x300, rows[i].flags);
		bed_free(bed);
	}
}

/* The tables of a first stage lie in pages of the second, which says who may read and change them.
 */
static void nested_tables_need_permission(void **state)
{
	static const struct {
		uint64_t page, denied;
		const char *script;
		uint8_t fault;
	} rows[] = {
		{0x200000, 1, "r B", 0x75},				/* the first table */
		{0x201000, 1, "r B", 0x76},				/* a later one */
		{0x203000, 1, "r B", 0x76}, {0x203000, 2, "w B", 0x77}, /* D cannot be set there */
		{0x200000, 0, "w B", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bed_setup setup = {.kind = BED_NESTED};
		struct bed *bed = bed_new(&setup);

		change(bed, quipu_vtd_leaf_address(bed->outer, rows[i].page), rows[i].denied, 0);
		bed_run(bed, rows[i].script);
		assert_int_equal(bed->last.fault, rows[i].fault);
		bed_free(bed);
	}
}

/* Bit 12 of a large page of the first stage is its PAT; the next one is reserved. */
static void pat_is_no_address(void **state)
{
	(void)state;
	for (unsigned bit = 12; bit < 14; bit++) {
		struct bed_setup setup = {.kind = BED_FS, .page = 2 << 20, .pages = 2};
		struct bed *bed = bed_new(&setup);
		uint64_t frame;

		bed_run(bed, "p5 r B");
		frame = bed->last.addr;
		bed_run(bed, "inv 12");
		change(bed, quipu_vtd_leaf_address(bed->domain, B), 0, UINT64_C(1) << bit);
		bed_run(bed, "p5 r B");
		assert_int_equal(bed->last.fault, bit == 12 ? 0 : 0x72);
		if (bit == 12)
			assert_int_equal(bed->last.addr, frame);
		bed_free(bed);
	}
}

/* A supervisor writes to what is read-only, unless WPE is set. */
static void supervisors_write_unless_wpe(void **state)
{
	(void)state;
	for (unsigned wpe = 0; wpe < 2; wpe++) {
		struct bed_setup setup = {.kind = BED_FS};
		struct bed *bed = bed_new(&setup);
		struct quipu_vtd_request rq = {.addr = B,
					       .pasid = 5,
					       .len = 64,
					       .rid = RID,
					       .op = QUIPU_VTD_WRITE,
					       .priv = true};

		change(bed, quipu_vtd_leaf_address(bed->domain, B), 2, 0);
		change(bed, quipu_vtd_pasid_address(bed->tables, RID, 5) + 16, 0x10,
		       wpe ? 0x10 : 0);
		quipu_vtd_dma(bed->unit, &rq, &bed->last);
		assert_int_equal(bed->last.fault, wpe ? 0x85 : 0);
		assert_int_equal(quipu_vtd_memory_load(bed->memory,
						       quipu_vtd_leaf_address(bed->domain, B)) &
					 0x40,
				 wpe ? 0 : 0x40); /* D */
		rq.priv = false;
		quipu_vtd_dma(bed->unit, &rq, &bed->last);
		assert_int_equal(bed->last.fault, 0x85);
		bed_free(bed);
	}
}

/* FRI is the record of the first fault that software has not seen. */
static void the_first_record_is_pointed_at(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY, .pages = 1};
	struct bed *bed = bed_new(&setup);
	struct quipu_vtd_request rq = {.addr = B, .pasid = -1, .len = 64};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		rq.rid = (uint16_t)(0x100 * (i + 1));
		quipu_vtd_dma(bed->unit, &rq, &bed->last);
		assert_int_equal(bed_rd32(bed, 0x34) >> 8 & 0xff, i < 3 ? 0 : 3);
		for (unsigned k = 0; k < 3 && i == 2; k++)
			bed_wr64(bed, 0x508 + 16 * k, UINT64_C(1) << 63);
	}
	assert_int_equal(bed_rd64(bed, 0x508 + 16 * 3) & 0xffff, 0x400);
	bed_free(bed);
}

/* FPD of a PASID directory's entry: also when the PASID cache answers for it. */
static void the_directory_disables_faults(void **state)
{
	(void)state;
	for (unsigned disabled = 0; disabled < 2; disabled++) {
		struct bed_setup setup = {.kind = BED_SS, .pages = 1};
		struct bed *bed = bed_new(&setup);
		uint64_t directory =
			quipu_vtd_memory_load(bed->memory,
					      quipu_vtd_context_address(bed->tables, RID)) &
			ADDRESS;

		change(bed, directory, 0, disabled ? 2 : 0);
		for (unsigned i = 0; i < 2; i++) {
			bed_run(bed, "r B+1000");
			assert_int_equal(bed->last.fault, 0x79);
			assert_int_equal(bed->last.recorded, !disabled);
			bed_wr64(bed, 0x508, UINT64_C(1) << 63);
			bed_wr64(bed, 0x518, UINT64_C(1) << 63);
		}
		bed_free(bed);
	}
}

/* PRE of a context entry is reserved in a unit without page requests. */
static void page_requests_that_the_unit_lacks(void **state)
{
	struct bed_setup setup = {.kind = BED_SS};
	struct bed *bed = bed_new(&setup), *plain;
	struct quipu_vtd_config config = bed->config;
	uint64_t root = bed_rd64(bed, 0x20);

	(void)state;
	config.ecap &= ~(UINT64_C(1) << 29); /* PRS */
	plain = bed_plain(&config);
	quipu_vtd_memory_free(plain->memory);
	plain->memory = bed->memory; /* the same tables */
	quipu_vtd_enable(plain->unit, root & ADDRESS, QUIPU_VTD_SCALABLE);
	bed_run(plain, "r B");
	assert_int_equal(plain->last.fault, 0x42);
	change(bed, quipu_vtd_context_address(bed->tables, RID), 0x10, 0);
	bed_run(plain, "r B");
	assert_int_equal(plain->last.fault, 0);
	bed->memory = NULL;
	plain->tables = bed->tables;
	bed->tables = NULL;
	bed_free(bed);
	bed_free(plain);
}

/*
 * Software makes the descriptors twice as wide while the queue runs, and the head stands where no
 * wide one begins: in front of the last 16 bytes of the page. That is an error of the queue, and
 * nothing behind the page is read.
 */
static void a_queue_whose_width_changes(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);
	uint64_t queue = quipu_vtd_memory_alloc(bed->memory, 1);

	(void)state;
	for (unsigned i = 0; i < 255; i++)
		quipu_vtd_memory_store(bed->memory, queue + 16 * i, 0x5); /* wait, for nothing */
	bed_wr32(bed, 0x18, 0x80000000u);				  /* TE; the queue is off */
	bed_wr64(bed, 0x88, 0);
	bed_wr64(bed, 0x90, queue);
	bed_wr32(bed, 0x18, 0x80000000u | 1u << 26);
	bed_wr64(bed, 0x88, 0xff0);
	assert_int_equal(bed_rd64(bed, 0x80), 0xff0);
	assert_int_equal(bed_rd32(bed, 0x34), 0);
	bed_wr64(bed, 0x90, queue | 0x800);
	bed_wr64(bed, 0x88, 0x20);
	assert_int_equal(bed_rd64(bed, 0x80), 0xff0);
	assert_int_equal(bed_rd32(bed, 0x34), 0x10); /* IQE */
	bed_free(bed);
}

/* In scalable mode descriptors have 256 bits; one of 128 is an error, and nothing is emptied. */
static void narrow_descriptors_in_scalable_mode(void **state)
{
	struct bed_setup setup = {.kind = BED_SS};
	struct bed *bed = bed_new(&setup);
	uint64_t queue = quipu_vtd_memory_alloc(bed->memory, 1);

	(void)state;
	bed_run(bed, "r B");
	quipu_vtd_memory_store(bed->memory, queue, 0x12); /* IOTLB, global */
	bed_wr32(bed, 0x18, 0x80000000u);
	bed_wr64(bed, 0x88, 0);
	bed_wr64(bed, 0x90, queue);
	bed_wr32(bed, 0x18, 0x80000000u | 1u << 26);
	bed_wr64(bed, 0x88, 0x10);
	assert_int_equal(bed_rd64(bed, 0x80), 0);
	assert_int_equal(bed_rd32(bed, 0x34), 0x10); /* IQE */
	bed_count(bed, 0, 3, 2, -1, 0);
	bed_run(bed, "r B");
	assert_int_equal(bed_value(bed, 0), 1);
	bed_free(bed);
}

static void modes_that_translate_nothing(void **state)
{
	static const struct {
		uint64_t ttm;
		uint8_t reason;
	} modes[] = {{2, 0x30}, {3, 0x33}};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct bed_setup setup = {.kind = BED_LEGACY};
		struct bed *bed = bed_new(&setup);

		bed_wr64(bed, 0x20, quipu_vtd_tables_root(bed->tables) | modes[i].ttm << 10);
		bed_wr32(bed, 0x18, 0xc0000000);
		bed_count(bed, 0, 3, 1, -1, 0);
		bed_run(bed, "r B");
		assert_int_equal(bed->last.fault, modes[i].reason);
		assert_int_equal(bed_value(bed, 0), 0);
		bed_free(bed);
	}
}

static void translated_requests_are_checked(void **state)
{
	static const struct {
		struct bed_setup setup;
		const char *script;
		uint8_t reason;
	} c[] = {
		{{.kind = BED_LEGACY}, "x 400000000000", 0x04},
		{{.kind = BED_LEGACY}, "x fee00000", 0x0e},
		{{.kind = BED_LEGACY, .no_ats = true}, "x 1000", 0x0d},
		{{.kind = BED_FS}, "x 400000000000", 0x83},
		{{.kind = BED_FS}, "x fee00000", 0x87},
		{{.kind = BED_FS, .no_ats = true}, "x 1000", 0x44},
		{{.kind = BED_FS}, "p5 x 1000", 0x49},
		{{.kind = BED_FS}, "x 1000", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct bed *bed = bed_new(&c[i].setup);

		bed_run(bed, c[i].script);
		assert_int_equal(bed->last.fault, c[i].reason);
		bed_free(bed);
	}
}

/* A write where device memory lies is no interrupt: blocked, counted, and no fault. */
static void interrupt_range_is_no_memory(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);

	(void)state;
	bed_count(bed, 13, 0, 2, -1, 0);
	bed_count(bed, 0, 3, 1, -1, 0);
	bed_run(bed, "r fee00000");
	assert_int_equal(bed->last.status, QUIPU_VTD_UR);
	assert_int_equal(bed->last.fault, 0);
	assert_int_equal(bed_value(bed, 13), 1);
	assert_int_equal(bed_value(bed, 0), 0);
	bed_free(bed);
}

#define N (sizeof(cases) / sizeof(cases[0]))

int main(void)
{
	static const struct CMUnitTest plain[] = {
		cmocka_unit_test(records_overflow),
		cmocka_unit_test(a_hit_is_recorded_as_a_miss_would_be),
		cmocka_unit_test(the_first_record_is_pointed_at),
		cmocka_unit_test(the_directory_disables_faults),
		cmocka_unit_test(page_requests_that_the_unit_lacks),
		cmocka_unit_test(a_queue_whose_width_changes),
		cmocka_unit_test(narrow_descriptors_in_scalable_mode),
		cmocka_unit_test(second_stage_accessed_and_dirty),
		cmocka_unit_test(nested_tables_need_permission),
		cmocka_unit_test(pat_is_no_address),
		cmocka_unit_test(supervisors_write_unless_wpe),
		cmocka_unit_test(modes_that_translate_nothing),
		cmocka_unit_test(translated_requests_are_checked),
		cmocka_unit_test(interrupt_range_is_no_memory),
	};
	static char names[N][96];
	struct CMUnitTest tests[2 * N + sizeof(plain) / sizeof(plain[0])];
	size_t n = 0;

	for (size_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "answer to %s", cases[i].name);
		tests[n++] = (struct CMUnitTest){cases[i].name, fault_case, NULL, NULL,
						 (void *)&cases[i]};
		tests[n++] =
			(struct CMUnitTest){names[i], answer_case, NULL, NULL, (void *)&cases[i]};
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		tests[n++] = plain[i];
	return _cmocka_run_group_tests("vtd faults", tests, n, NULL, NULL);
}
