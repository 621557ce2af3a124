// SPDX-License-Identifier: BSD-2-Clause
/*
 * A trace as a device of the machine's tree (quipu,dma-trace): when it plays, what it counts, and
 * what is said of one that is wrong.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libfdt.h>

#include "engine/dma/trace.h"
#include "lab.h"

#define UNIT1 "/iommu@fed91000"

/*
 * A domain of the trace's own, three requests: the first walks (root, context, PASID directory and
 * table, four levels: 8 reads), the second hits, the third misses, for its page was invalidated
 * with the paging structures kept (1 read).
 */
static const char text[] = "# quipu-dma 1\n"
			   "map 0 9 0x100000000 0x2000000000 0x4000 rw\n"
			   "attach 0 0x3e00 - 9\n"
			   "dma 1000 0x3e00 - U R 0x100000000 64\n"
			   "dma 1100 0x3e00 - U R 0x100000040 64\n"
			   "inv 1200 0x900f2 0x100000040\n"
			   "dma 1300 0x3e00 - U W 0x100000080 64\n";

static struct {
	const void *bytes;
	size_t len;
	bool loop, bad_scale;
	uint32_t num, den;
} given;

static void with_trace(void *fdt)
{
	fdt32_t scale[2] = {cpu_to_fdt32(given.num), cpu_to_fdt32(given.den)};
	int unit, node;

	lab_quiet(fdt);
	unit = fdt_path_offset(fdt, UNIT1);
	node = fdt_add_subnode(fdt, unit, "master@3e00");
	assert_true(node >= 0);
	assert_int_equal(fdt_setprop_string(fdt, node, "compatible", "quipu,dma-trace"), 0);
	assert_int_equal(fdt_setprop(fdt, node, "quipu,trace", given.bytes, (int)given.len), 0);
	if (given.loop)
		assert_int_equal(fdt_setprop_empty(fdt, node, "quipu,loop"), 0);
	if (given.num || given.bad_scale)
		assert_int_equal(fdt_setprop(fdt, node, "quipu,time-scale", scale, sizeof(scale)),
				 0);
}

static struct lab *lab_of(const void *bytes, size_t len)
{
	given.bytes = bytes;
	given.len = len;
	return lab_new("vtd", with_trace, -1);
}

enum { REQUESTS, LOOKUPS, HITS, READS, N };
static void open_all(struct lab *lab, struct quipu_event *e[N])
{
	static const char *const names[N] = {"dmar1/iommu_requests/", "dmar1/iotlb_lookup/",
					     "dmar1/iotlb_hit/", "dmar1/iommu_mrds/"};

	for (unsigned i = 0; i < N; i++)
		e[i] = lab_open(lab, names[i], false, NULL);
}

static void expect(struct quipu_event *e[N], uint64_t requests, uint64_t lookups, uint64_t hits,
		   uint64_t reads)
{
	assert_int_equal(lab_count(e[REQUESTS]), requests);
	assert_int_equal(lab_count(e[LOOKUPS]), lookups);
	assert_int_equal(lab_count(e[HITS]), hits);
	assert_int_equal(lab_count(e[READS]), reads);
}

static void it_begins_when_counting_begins(void **state)
{
	struct lab *lab = lab_of(text, sizeof(text) - 1);
	struct quipu_event *e[N];
	struct dma_totals totals;

	(void)state;
	lab->now = UINT64_C(7777777777);
	open_all(lab, e);
	lab_pass(lab, 1050);
	expect(e, 1, 1, 0, 8);
	lab_pass(lab, 1000000);
	expect(e, 3, 3, 1, 9);
	dma_traffic_totals(vtd_room_traffic(lab->room, 1), &totals);
	assert_int_equal(totals.items, 6);
	assert_int_equal(totals.refused, 0);
	assert_int_equal(totals.faults, 0);
	for (unsigned i = 0; i < N; i++)
		quipu_event_close(e[i]);
	/* Once more from its beginning: its page is still in the IOTLB, its mapping still made. */
	lab_pass(lab, 1000000);
	open_all(lab, e);
	lab_pass(lab, 1000000);
	expect(e, 3, 3, 2, 1);
	dma_traffic_totals(vtd_room_traffic(lab->room, 1), &totals);
	assert_int_equal(totals.refused, 1);
	lab_free(lab);
}

static void binary_is_the_same(void **state)
{
	uint8_t bytes[DMA_BINARY_HEADER + 16 * DMA_BINARY_RECORD], *at = bytes + DMA_BINARY_HEADER;
	struct dma_cursor cursor;
	struct dma_record r;
	struct quipu_event *e[N];
	struct lab *lab;
	const char *why;

	(void)state;
	dma_trace_encode_header(bytes);
	assert_int_equal(dma_cursor_open(&cursor, text, sizeof(text) - 1), 0);
	for (; dma_cursor_next(&cursor, &r, &why) > 0; at += DMA_BINARY_RECORD)
		dma_trace_encode(&r, at);
	lab = lab_of(bytes, (size_t)(at - bytes));
	open_all(lab, e);
	lab_pass(lab, 1000000);
	expect(e, 3, 3, 1, 9);
	lab_free(lab);
}

/* Rounds of 1300 ns and a microsecond between: 10 have begun after 21000 ns, the tenth at 20700. */
static void again_and_again(void **state)
{
	struct quipu_event *e[N];
	struct lab *lab;

	(void)state;
	given.loop = true;
	lab = lab_of(text, sizeof(text) - 1);
	given.loop = false;
	open_all(lab, e);
	lab_pass(lab, 21000);
	expect(e, 27, 27, 1 + 8 * 2, 9 + 8);
	lab_free(lab);
}

static void stretched(void **state)
{
	struct quipu_event *e[N];
	struct lab *lab;

	(void)state;
	given.num = 5;
	given.den = 2;
	lab = lab_of(text, sizeof(text) - 1);
	given.num = given.den = 0;
	open_all(lab, e);
	lab_pass(lab, 2499);
	assert_int_equal(lab_count(e[REQUESTS]), 0);
	lab_pass(lab, 1);
	assert_int_equal(lab_count(e[REQUESTS]), 1);
	lab_pass(lab, 750);
	assert_int_equal(lab_count(e[REQUESTS]), 3);
	lab_free(lab);
}

static const struct wrong_case {
	const char *name, *bytes, *said;
	bool bad_scale;
} wrong_cases[] = {
	{"no trace at all", "hello\n", "begins neither with", false},
	{"empty", "", "begins neither with", false},
	{"a wrong line", "# quipu-dma 1\n\ndma 1 2\n", "line 3: dma TIME RID", false},
	{"no such record", "# quipu-dma 1\nfly 1\n", "line 2: no record", false},
	{"time goes back", "# quipu-dma 1\ndma 9 2 - U R 0 1\ndma 8 2 - U R 0 1\n",
	 "line 3: time goes back", false},
	{"scaled to nothing", "# quipu-dma 1\n", "needs two cells that are not 0", true},
};

static void wrong_case(void **state)
{
	const struct wrong_case *c = *state;
	struct lab *lab;
	bool said = false;

	given.bytes = c->bytes;
	given.len = strlen(c->bytes);
	given.bad_scale = c->bad_scale;
	assert_int_equal(lab_create(&lab, "vtd", with_trace, -1), -EINVAL);
	given.bad_scale = false;
	for (size_t i = 0; i < lab->notes.n; i++)
		said |= strstr(lab->notes.items[i].text, c->said) != NULL;
	assert_true(said);
	lab->room = NULL;
	lab_free(lab);
}

int main(void)
{
	enum { NWRONG = sizeof(wrong_cases) / sizeof(wrong_cases[0]) };
	static const struct CMUnitTest plain[] = {
		cmocka_unit_test(it_begins_when_counting_begins),
		cmocka_unit_test(binary_is_the_same),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(stretched),
	};
	enum { NPLAIN = sizeof(plain) / sizeof(plain[0]) };
	struct CMUnitTest tests[NPLAIN + NWRONG] = {{0}};

	memcpy(tests, plain, sizeof(plain));
	for (unsigned i = 0; i < NWRONG; i++)
		tests[NPLAIN + i] = (struct CMUnitTest){wrong_cases[i].name, wrong_case, NULL, NULL,
							(void *)&wrong_cases[i]};
	return _cmocka_run_group_tests("vtd trace device", tests, NPLAIN + NWRONG, NULL, NULL);
}
