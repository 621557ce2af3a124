// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cases I1 to I7 (interrupt remapping and posting) and D40, D41 (page requests). The values follow
 * from what has to be read: a table entry once until it is invalidated, a posted-interrupt
 * descriptor each time. Source: VT-d specification 5.10, 5.1 (remapping), 5.2 (posting), 7.4 (page
 * requests), Table 49.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bed.h"

#define IRTE_P	    UINT64_C(1)
#define IRTE_POSTED UINT64_C(0x8000)
#define IRTE_URGENT UINT64_C(0x4000)
#define PDA	    UINT64_C(0x5000000)

enum { LOOKUP, NONPOSTED, POSTED, MRDS, COUNTERS };

/* A table of 256 entries; index 7 is what every case uses. */
static struct bed *with_table(uint64_t lo, uint64_t hi)
{
	static const struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);
	uint64_t table = quipu_vtd_memory_alloc(bed->memory, 1);

	quipu_vtd_memory_store(bed->memory, table + 16 * 7, lo);
	quipu_vtd_memory_store(bed->memory, table + 16 * 7 + 8, hi);
	bed_wr64(bed, 0xb8, table | 7); /* IRTA, 2^8 entries */
	bed_wr32(bed, 0x18, 0x80000000u | 1u << 26 | 1u << 24);
	bed_wr32(bed, 0x18, 0x80000000u | 1u << 26 | 1u << 25);
	bed_count(bed, LOOKUP, 4, 0x1, -1, 0);
	bed_count(bed, NONPOSTED, 4, 0x2, -1, 0);
	bed_count(bed, POSTED, 4, 0x4, -1, 0);
	bed_count(bed, MRDS, 1, 0x1, -1, 0);
	return bed;
}

static void expect(struct bed *bed, uint64_t lookup, uint64_t nonposted, uint64_t posted,
		   uint64_t mrds)
{
	assert_int_equal(bed_value(bed, LOOKUP), lookup);
	assert_int_equal(bed_value(bed, NONPOSTED), nonposted);
	assert_int_equal(bed_value(bed, POSTED), posted);
	assert_int_equal(bed_value(bed, MRDS), mrds);
}

/* vector 0x55 to APIC 3, edge, fixed, physical */
#define REMAPPED (UINT64_C(3) << 40 | 0x55 << 16 | IRTE_P)

static void i1_an_entry_is_read_once(void **state)
{
	struct bed *bed = with_table(REMAPPED, 0);
	struct quipu_vtd_interrupt out;

	(void)state;
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	expect(bed, 2, 1, 0, 1);
	assert_int_equal(out.addr, 0xFEE03000);
	assert_int_equal(out.data, 0x55);
	assert_int_equal(bed->msis, 2);
	bed_free(bed);
}

/* Handle 4 and subhandle 3 are index 7. */
static void i2_subhandle_is_added(void **state)
{
	struct bed *bed = with_table(REMAPPED, 0);
	struct quipu_vtd_interrupt out;

	(void)state;
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	quipu_vtd_msi(bed->unit, RID, 0xFEE00098, 3, &out);
	assert_int_equal(out.fault, 0);
	assert_int_equal(out.data, 0x55);
	expect(bed, 2, 1, 0, 1);
	bed_free(bed);
}

static void i3_invalidated_it_is_read_again(void **state)
{
	struct bed *bed = with_table(REMAPPED, 0);
	struct quipu_vtd_interrupt out;

	(void)state;
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	assert_int_equal(quipu_vtd_queue_submit(&bed->queue, (uint64_t[4]){UINT64_C(0x700000014)}),
			 0);
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	expect(bed, 2, 0, 0, 2);
	bed_free(bed);
}

/* Index 7 is cached; what of the descriptor's indices and their mask holds it. */
static void i3_a_range_of_indices(void **state)
{
	static const struct {
		uint64_t descriptor;
		bool dropped;
	} rows[] = {
		{UINT64_C(0x600000014), false}, /* 6 */
		{UINT64_C(0x410000014), true},	/* 4 to 7 */
		{UINT64_C(0x010000014), false}, /* 0 to 3 */
		{UINT64_C(0x018000014), true},	/* 0 to 7 */
		{UINT64_C(0x818000014), false}, /* 8 to 15 */
		{UINT64_C(0x518000014), true},	/* the bits below the mask do not count */
		{0x4, true},			/* all */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bed *bed = with_table(REMAPPED, 0);
		struct quipu_vtd_interrupt out;

		quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
		assert_int_equal(
			quipu_vtd_queue_submit(&bed->queue, (uint64_t[4]){rows[i].descriptor}), 0);
		quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
		expect(bed, 2, !rows[i].dropped, 0, rows[i].dropped ? 2 : 1);
		bed_free(bed);
	}
}

static uint64_t posted_entry(uint64_t flags)
{
	return (PDA & UINT64_C(0xffffffc0)) << 32 | 0x41 << 16 | IRTE_POSTED | IRTE_P | flags;
}

static void i4_posted(void **state)
{
	struct bed *bed = with_table(posted_entry(0), 0);
	struct quipu_vtd_interrupt out;

	(void)state;
	/* notification vector 0xf2 to APIC 9 */
	quipu_vtd_memory_store(bed->memory, PDA + 32, UINT64_C(0x900) << 32 | 0xf2 << 16);
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	assert_true(out.posted && out.notified);
	assert_int_equal(bed->msi_data, 0xf2);
	assert_int_equal(bed->msi_addr, 0xFEE09000);
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	assert_true(out.posted && !out.notified);
	expect(bed, 2, 0, 1, 3);
	assert_int_equal(quipu_vtd_memory_load(bed->memory, PDA + 8), UINT64_C(1) << (0x41 - 64));
	assert_int_equal(bed->msis, 1);
	bed_free(bed);
}

static void i5_suppressed_unless_urgent(void **state)
{
	(void)state;
	for (unsigned urgent = 0; urgent < 2; urgent++) {
		struct bed *bed = with_table(posted_entry(urgent ? IRTE_URGENT : 0), 0);
		struct quipu_vtd_interrupt out;

		quipu_vtd_memory_store(bed->memory, PDA + 32, 2); /* SN */
		quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
		assert_int_equal(quipu_vtd_memory_load(bed->memory, PDA + 8),
				 UINT64_C(1) << (0x41 - 64));
		assert_int_equal(bed->msis, urgent);
		bed_free(bed);
	}
}

static void i6_index_beyond_the_table(void **state)
{
	struct bed *bed = with_table(IRTE_P, 0);
	struct quipu_vtd_interrupt out;

	(void)state;
	quipu_vtd_msi(bed->unit, RID, 0xFEE00010 | 256 << 5, 0, &out);
	assert_int_equal(out.fault, 0x21);
	assert_true(out.recorded);
	expect(bed, 0, 0, 0, 0);
	assert_int_equal(bed_rd64(bed, 0x508), UINT64_C(0x8000002100003A00));
	assert_int_equal(bed_rd64(bed, 0x500), UINT64_C(256) << 48);
	bed_free(bed);
}

static void i7_wrong_source(void **state)
{
	struct bed *bed = with_table(IRTE_P, UINT64_C(1) << 18 | RID);
	struct quipu_vtd_interrupt out;

	(void)state;
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0, &out);
	assert_int_equal(out.fault, 0);
	expect(bed, 1, 0, 0, 1);
	quipu_vtd_msi(bed->unit, RID + 8, 0xFEE000F0, 0, &out);
	assert_int_equal(out.fault, 0x26);
	expect(bed, 2, 1, 0, 1);
	bed_free(bed);
}

/* ---- what becomes of a message ---- */

#define IRTE_FPD    UINT64_C(2)
#define SVT(n)	    ((uint64_t)(n) << 18)
#define SQ(n)	    ((uint64_t)(n) << 16)
#define GCMD_ON	    (0x80000000u | 1u << 26 | 1u << 25)
#define CFI	    (1u << 23)
#define EIME	    0x800u
#define HANDLE_7    0xFEE000F0u
#define X2APIC_DEST (UINT64_C(0x12345678) << 32)

/* An entry at index 7, and a message; sent on as, or refused because. */
static const struct message_case {
	const char *name;
	uint64_t lo, hi;
	uint32_t irta, gcmd; /* more bits of either */
	uint64_t addr;
	uint32_t data;
	uint16_t rid;
	uint8_t fault;
	uint64_t sent_addr;
	uint32_t sent_data;
	bool silent; /* the fault leaves no record */
} messages[] = {
	{"5.1 fixed, physical", REMAPPED, 0, 0, 0, HANDLE_7, 0, RID, 0, 0xFEE03000, 0x55, false},
	{"9.11 logical, redirection", REMAPPED | 0xc, 0, 0, 0, HANDLE_7, 0, RID, 0, 0xFEE0300C,
	 0x55, false},
	{"9.11 level", REMAPPED | 0x10, 0, 0, 0, HANDLE_7, 0, RID, 0, 0xFEE03000, 0xC055, false},
	{"9.11 lowest priority", REMAPPED | 0x20, 0, 0, 0, HANDLE_7, 0, RID, 0, 0xFEE03000, 0x155,
	 false},
	{"9.11 extended destination", X2APIC_DEST | 0x55 << 16 | IRTE_P, 0, EIME, 0, HANDLE_7, 0,
	 RID, 0, UINT64_C(0x12345600FEE78000), 0x55, false},
	{"20 data of more than 16 bits", REMAPPED, 0, 0, 0, HANDLE_7, 0x10000, RID, 0x20, 0, 0,
	 false},
	{"22 not present", 0, 0, 0, 0, HANDLE_7, 0, RID, 0x22, 0, 0, false},
	{"22 not present, faults disabled", IRTE_FPD, 0, 0, 0, HANDLE_7, 0, RID, 0x22, 0, 0, true},
	{"24 reserved", REMAPPED | 0x1000, 0, 0, 0, HANDLE_7, 0, RID, 0x24, 0, 0, false},
	{"24 reserved above", REMAPPED, 1 << 20, 0, 0, HANDLE_7, 0, RID, 0x24, 0, 0, false},
	{"24 reserved, posted", IRTE_POSTED | 4 | IRTE_P, 0, 0, 0, HANDLE_7, 0, RID, 0x24, 0, 0,
	 false},
	{"24 reserved above, posted", IRTE_POSTED | IRTE_P, 1 << 20, 0, 0, HANDLE_7, 0, RID, 0x24,
	 0, 0, false},
	{"25 compatibility format", REMAPPED, 0, 0, 0, 0xFEE03000, 0x41, RID, 0x25, 0, 0, false},
	{"compatibility format, let through", REMAPPED, 0, 0, CFI, 0xFEE03000, 0x41, RID, 0,
	 0xFEE03000, 0x41, false},
	{"25 but not where destinations are extended", REMAPPED, 0, EIME, CFI, 0xFEE03000, 0x41,
	 RID, 0x25, 0, 0, false},
	{"source, all bits", REMAPPED, SVT(1) | RID, 0, 0, HANDLE_7, 0, RID, 0, 0xFEE03000, 0x55,
	 false},
	{"26 source, another function", REMAPPED, SVT(1) | RID, 0, 0, HANDLE_7, 0, RID + 4, 0x26, 0,
	 0, false},
	{"source, but for bit 2", REMAPPED, SVT(1) | SQ(1) | RID, 0, 0, HANDLE_7, 0, RID + 4, 0,
	 0xFEE03000, 0x55, false},
	{"26 bit 1 counts", REMAPPED, SVT(1) | SQ(1) | RID, 0, 0, HANDLE_7, 0, RID + 2, 0x26, 0, 0,
	 false},
	{"source, but for the function", REMAPPED, SVT(1) | SQ(3) | RID, 0, 0, HANDLE_7, 0, RID + 7,
	 0, 0xFEE03000, 0x55, false},
	{"26 the device counts", REMAPPED, SVT(1) | SQ(3) | RID, 0, 0, HANDLE_7, 0, RID + 8, 0x26,
	 0, 0, false},
	{"source, first bus of a range", REMAPPED, SVT(2) | 0x3a40, 0, 0, HANDLE_7, 0, 0x3a00, 0,
	 0xFEE03000, 0x55, false},
	{"source, last bus of a range", REMAPPED, SVT(2) | 0x3a40, 0, 0, HANDLE_7, 0, 0x40ff, 0,
	 0xFEE03000, 0x55, false},
	{"26 a bus before it", REMAPPED, SVT(2) | 0x3a40, 0, 0, HANDLE_7, 0, 0x39ff, 0x26, 0, 0,
	 false},
	{"26 a bus behind it", REMAPPED, SVT(2) | 0x3a40, 0, 0, HANDLE_7, 0, 0x4100, 0x26, 0, 0,
	 false},
	{"26 no such validation", REMAPPED, SVT(3) | RID, 0, 0, HANDLE_7, 0, RID, 0x26, 0, 0,
	 false},
	{"26 faults disabled", REMAPPED | IRTE_FPD, SVT(1) | RID, 0, 0, HANDLE_7, 0, RID + 8, 0x26,
	 0, 0, true},
};

/* The first reads the table, the second finds the entry in the cache: the same becomes of both. */
static void message_case(void **state)
{
	const struct message_case *c = *state;
	struct bed *bed = with_table(c->lo, c->hi);

	bed_wr64(bed, 0xb8, bed_rd64(bed, 0xb8) | c->irta);
	bed_wr32(bed, 0x18, GCMD_ON | 1u << 24);
	bed_wr32(bed, 0x18, GCMD_ON | c->gcmd);
	for (unsigned i = 0; i < 2; i++) {
		struct quipu_vtd_interrupt out;

		quipu_vtd_msi(bed->unit, c->rid, c->addr, c->data, &out);
		assert_int_equal(out.fault, c->fault);
		assert_int_equal(bed->msis, c->fault ? 0 : i + 1);
		assert_int_equal(bed->msi_addr, c->sent_addr);
		assert_int_equal(bed->msi_data, c->sent_data);
		assert_int_equal(out.recorded, c->fault && !c->silent);
		for (unsigned k = 0; k < 2; k++)
			bed_wr64(bed, 0x508 + 16 * k, UINT64_C(1) << 63);
	}
	bed_free(bed);
}

static void without_remapping_messages_pass(void **state)
{
	static const struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);

	(void)state;
	quipu_vtd_msi(bed->unit, RID, 0xFEE000F0, 0x41, NULL);
	assert_int_equal(bed->msis, 1);
	assert_int_equal(bed->msi_addr, 0xFEE000F0);
	assert_int_equal(bed->msi_data, 0x41);
	bed_free(bed);
}

/* ---- page requests ---- */

static struct bed *with_pages(void)
{
	static const struct bed_setup setup = {.kind = BED_FS, .full = true};
	struct bed *bed = bed_new(&setup);

	bed_wr64(bed, 0xd0, quipu_vtd_memory_alloc(bed->memory, 1)); /* PQA, 128 entries */
	bed_count(bed, 0, 1, 0x40, -1, 0);			     /* pg_req_posted */
	bed_count(bed, 1, 1, 0x80, -1, 0);			     /* pg_req_overflow */
	bed_count(bed, 2, 2, 0x1, -1, 0);
	bed_count(bed, 3, 2, 0x4, -1, 0);
	bed_count(bed, 4, 1, 0x1, -1, 0);
	bed_count(bed, 13, 0, 0x2, -1, 0);
	return bed;
}

static const struct quipu_vtd_page_request page = {.addr = B + 0x5000,
						   .pasid = 5,
						   .rid = RID,
						   .group = 0x123,
						   .r = true,
						   .w = true,
						   .last = true};

static void d40_page_request_is_posted(void **state)
{
	struct bed *bed = with_pages();
	uint64_t queue = bed_rd64(bed, 0xd0) & ~UINT64_C(0xfff);

	(void)state;
	assert_int_equal(quipu_vtd_page_request(bed->unit, &page, NULL), QUIPU_VTD_PAGE_POSTED);
	assert_int_equal(bed_value(bed, 13), 0);
	assert_int_equal(bed_value(bed, 2), 1);
	assert_int_equal(bed_value(bed, 3), 1);
	assert_int_equal(bed_value(bed, 4), 4);
	assert_int_equal(bed_value(bed, 0), 1);
	assert_int_equal(bed_rd64(bed, 0xc8), 0x20);
	assert_int_equal(bed_rd32(bed, 0xdc), 1);
	assert_int_equal(quipu_vtd_memory_load(bed->memory, queue), UINT64_C(0x53A000101));
	assert_int_equal(quipu_vtd_memory_load(bed->memory, queue + 8),
			 (B + 0x5000) | 0x123 << 3 | 7);
	bed_free(bed);
}

static void d41_full_queue_answers_by_itself(void **state)
{
	struct bed *bed = with_pages();

	(void)state;
	bed_wr64(bed, 0xc0, 0x20); /* the next tail is the head */
	assert_int_equal(quipu_vtd_page_request(bed->unit, &page, NULL), QUIPU_VTD_PAGE_DROPPED);
	assert_int_equal(bed_value(bed, 13), 0);
	assert_int_equal(bed_value(bed, 0), 0);
	assert_int_equal(bed_value(bed, 1), 1);
	assert_int_equal(bed_rd32(bed, 0xdc), 2);
	assert_int_equal(bed->responses, 1);
	assert_int_equal(bed->response_code, 0);
	/* With the overflow not yet acknowledged, room in the queue does not help. */
	bed_wr64(bed, 0xc0, 0);
	assert_int_equal(quipu_vtd_page_request(bed->unit, &page, NULL), QUIPU_VTD_PAGE_DROPPED);
	assert_int_equal(bed_value(bed, 1), 2);
	bed_wr32(bed, 0xdc, 2);
	assert_int_equal(quipu_vtd_page_request(bed->unit, &page, NULL), QUIPU_VTD_PAGE_POSTED);
	bed_free(bed);
}

static void page_request_refused_by_the_tables(void **state)
{
	struct bed *bed = with_pages();
	struct quipu_vtd_page_request rq = page;
	uint8_t fault;

	(void)state;
	rq.pasid = 6;
	assert_int_equal(quipu_vtd_page_request(bed->unit, &rq, &fault), QUIPU_VTD_PAGE_FAULT);
	assert_int_equal(fault, 0x59);
	assert_int_equal(bed->response_code, 1);
	/* type 01: a page request */
	assert_int_equal(bed_rd64(bed, 0x508), UINT64_C(0x8000065990003A00));
	bed_free(bed);
}

/* One message until software has seen what came; then one again. */
static void page_requests_interrupt_once(void **state)
{
	struct bed *bed = with_pages();

	(void)state;
	bed_wr32(bed, 0xe4, 0x77);
	bed_wr32(bed, 0xe8, 0xfee05000);
	bed_wr32(bed, 0xe0, 0);
	for (unsigned i = 0; i < 3; i++)
		quipu_vtd_page_request(bed->unit, &page, NULL);
	assert_int_equal(bed->msis, 1);
	assert_int_equal(bed->msi_data, 0x77);
	assert_int_equal(bed->msi_addr, 0xfee05000);
	bed_wr32(bed, 0xdc, 1); /* PPR */
	quipu_vtd_page_request(bed->unit, &page, NULL);
	assert_int_equal(bed->msis, 2);
	bed_free(bed);
}

/* Table 27: what a posted page request makes the unit forget; the next access to page 0 says what.
 */
static void page_requests_invalidate(void **state)
{
	static const struct {
		struct bed_setup setup;
		const char *access;
		int32_t pasid;
		uint64_t addr;	 /* of the request */
		bool leaf, walk; /* does the access hit the IOTLB, and if not the PDE? */
	} rows[] = {
		{{.kind = BED_FS}, "p5 r B", 5, B, false, false},
		{{.kind = BED_FS}, "p5 r B", 5, B + 0x1000, true, false},
		{{.kind = BED_SS}, "r B", -1, B, false, false},
		{{.kind = BED_SS}, "r B", -1, B + 0x1000, true, false},
		{{.kind = BED_NESTED}, "r B", -1, B + 0x1000, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bed *bed = bed_new(&rows[i].setup);
		struct quipu_vtd_page_request rq = page;

		bed_wr64(bed, 0xd0, quipu_vtd_memory_alloc(bed->memory, 1));
		rq.pasid = rows[i].pasid;
		rq.addr = rows[i].addr;
		bed_run(bed, rows[i].access);
		assert_int_equal(quipu_vtd_page_request(bed->unit, &rq, NULL),
				 QUIPU_VTD_PAGE_POSTED);
		bed_count(bed, 0, 3, 0x2, -1, 0);
		bed_count(bed, 1, 2, rows[i].setup.kind == BED_SS ? 0x20 : 0x80, -1, 0);
		bed_run(bed, rows[i].access);
		assert_int_equal(bed_value(bed, 0), rows[i].leaf);
		assert_int_equal(bed_value(bed, 1), rows[i].walk);
		bed_free(bed);
	}
}

int main(void)
{
	static const struct CMUnitTest plain[] = {
		cmocka_unit_test(i1_an_entry_is_read_once),
		cmocka_unit_test(i2_subhandle_is_added),
		cmocka_unit_test(i3_invalidated_it_is_read_again),
		cmocka_unit_test(i3_a_range_of_indices),
		cmocka_unit_test(i4_posted),
		cmocka_unit_test(i5_suppressed_unless_urgent),
		cmocka_unit_test(i6_index_beyond_the_table),
		cmocka_unit_test(i7_wrong_source),
		cmocka_unit_test(without_remapping_messages_pass),
		cmocka_unit_test(d40_page_request_is_posted),
		cmocka_unit_test(d41_full_queue_answers_by_itself),
		cmocka_unit_test(page_request_refused_by_the_tables),
		cmocka_unit_test(page_requests_interrupt_once),
		cmocka_unit_test(page_requests_invalidate),
	};
	enum { NPLAIN = sizeof(plain) / sizeof(plain[0]) };
	enum { NMESSAGES = sizeof(messages) / sizeof(messages[0]) };
	struct CMUnitTest tests[NPLAIN + NMESSAGES] = {{0}};
	unsigned n = 0;

	for (unsigned i = 0; i < NPLAIN; i++)
		tests[n++] = plain[i];
	for (unsigned i = 0; i < NMESSAGES; i++)
		tests[n++] = (struct CMUnitTest){messages[i].name, message_case, NULL, NULL,
						 (void *)&messages[i]};
	return _cmocka_run_group_tests("conformance vtd interrupts", tests, n, NULL, NULL);
}
