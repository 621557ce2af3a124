/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibm,lpar-perftools, case by case: RT-01 to RT-36 of the RTAS sheet, and R1-1 to R1-6 of LoPAR 2.9
 * each named by the case that shows it. The byte examples A to H are compared byte for byte.
 */
#include "bed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

static int setup(void **state)
{
	struct bed *b = malloc(sizeof(*b));

	assert_non_null(b);
	bed_open(b);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	bed_stop(*state);
	free(*state);
	return 0;
}

static void plan(struct quipu_partition *p, unsigned n, const int32_t *statuses)
{
	assert_int_equal(quipu_partition_plan(p, statuses, n, 1), 0);
}
#define PLAN(p, ...) plan(p, sizeof((int32_t[]){__VA_ARGS__}) / 4, (const int32_t[]){__VA_ARGS__})

/* ---- byte examples ---- */

static void put_hex(struct quipu_partition *p, uint64_t ra, const char *hex)
{
	for (unsigned n; *hex; ra++) {
		uint8_t byte;

		while (*hex == ' ')
			hex++;
		if (!*hex)
			break;
		assert_int_equal(sscanf(hex, "%2x", &n), 1);
		byte = (uint8_t)n;
		assert_int_equal(quipu_partition_write(p, ra, &byte, 1), 0);
		hex += 2;
	}
}

static void is_hex(struct quipu_partition *p, uint64_t ra, const char *hex)
{
	for (unsigned n; *hex; ra++) {
		uint8_t byte;

		while (*hex == ' ')
			hex++;
		if (!*hex)
			break;
		assert_int_equal(sscanf(hex, "%2x", &n), 1);
		assert_int_equal(quipu_partition_read(p, ra, &byte, 1), 0);
		if (byte != n)
			fail_msg("byte at 0x%llx is %02x, not %02x", (unsigned long long)ra, byte,
				 n);
		hex += 2;
	}
}

#define HEAD "00002100 00000005 00000002 "

/* Cells and work areas as the sheet prints them (2.4). */
static const struct example {
	const char *name, *in, *work_in, *rets, *work_out;
} examples[] = {
	{"A", HEAD "00000001 00000000 0e000000 00001000 00000001", "00 00 00 00 00 a0 1f 40",
	 "00000000 00000001", "00 00 00 00 00 00 00 40  71 68 76 5f 68 5f 65 6e 74 65 72 00"},
	{"A2", HEAD "00000001 00000000 0e000000 00001000 00000001", "00 00 00 00 00 a0 0f 00",
	 "00000000 00000001", "00 00 00 00 00 00 0f 00  76 65 63 74 6f 72 73 00"},
	{"A3", HEAD "00000001 00000000 0e000000 00001000 00000001", "00 00 00 00 00 a0 1f 00",
	 "00000000 00000001", "00 00 00 00 00 00 00 00  71 68 76 5f 68 5f 65 6e 74 65 72 00"},
	{"B", HEAD "00000001 00000000 0e000000 00001000 00000001", "00 00 0d ea db ee f0 00",
	 "00000000 00000001",
	 "00 00 00 00 00 00 00 00  49 4e 56 41 4c 49 44 20 41 44 44 52 45 53 53 00"},
	{"C", HEAD "00000001 00000000 0e000000 00000010 00000001", "00 00 00 00 00 a0 1f 40",
	 "fffffffb 00000001", "a5 a5 a5 a5 a5 a5 a5 a5 a5 a5 a5 a5 a5 a5 a5 a5"},
	{"D subfunction 2", HEAD "00000002 00000000 0e000000 00001000 00000001",
	 "00 00 00 00 00 a0 1f 40", "fffffffd 00000001", "00 00 00 00 00 a0 1f 40"},
	{"D size 4", HEAD "00000001 00000000 0e000000 00000004 00000001", "00 00 00 00 00 a0 1f 40",
	 "fffffffd 00000001", "00 00 00 00 00 a0 1f 40"},
	{"D outside RMA", HEAD "00000001 00000000 10000000 00001000 00000001",
	 "00 00 00 00 00 a0 1f 40", "fffffffd 00000001", "00 00 00 00 00 a0 1f 40"},
};

static void run_example(struct quipu_partition *p, const struct example *e)
{
	put_hex(p, ARGS, e->in);
	put_hex(p, ARGS + 0x20, "eeeeeeee eeeeeeee");
	put_hex(p, WORK, e->work_in);
	assert_int_equal(quipu_rtas_call(p, ARGS), 0);
	is_hex(p, ARGS, e->in);
	is_hex(p, ARGS + 0x20, e->rets);
	is_hex(p, WORK, e->work_out);
}

static void rt01(void **state)
{
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		run_example(b->p, &examples[i]);
}

/* E, F, G and H: sequences of calls with their cells. */
static void rt01_sequences(void **state)
{
	struct bed *b = *state;
	const struct example f[] = {
		{"F1", HEAD "00000001 00000000 0e000000 00001000 00000001",
		 "00 00 00 00 00 a0 1f 40", "fffffffe 00000002", "a5 a5 a5 a5"},
		{"F2", HEAD "00000001 00000000 0e000000 00001000 00000002",
		 "00 00 00 00 00 a0 1f 40", "000026ae 00000003", "a5 a5 a5 a5"},
		{"F3", HEAD "00000001 00000000 0e000000 00001000 00000003",
		 "00 00 00 00 00 a0 1f 40", "00000000 00000001",
		 "00 00 00 00 00 00 00 40  71 68 76 5f 68 5f 65 6e 74 65 72 00"},
	};
	const struct example g[] = {
		{"G1", HEAD "00000001 00000000 0e000000 00000010 00000001",
		 "00 00 00 00 00 a0 1f 40", "00000000 00000002",
		 "00 00 00 00 00 00 00 40 71 68 76 5f 68 5f 65 00"},
		{"G2", HEAD "00000001 00000000 0e000000 00000010 00000002",
		 "00 00 00 00 00 a0 1f 40", "00000000 00000001",
		 "00 00 00 00 00 00 00 40 6e 74 65 72 00"},
	};

	PLAN(b->p, -2, 9902);
	for (size_t i = 0; i < 3; i++)
		run_example(b->p, &f[i]);
	quipu_partition_reset(b->p);
	plan(b->p, 0, NULL);
	quipu_partition_option(b->p, QUIPU_PARTITION_CHUNKED, true);
	for (size_t i = 0; i < 2; i++)
		run_example(b->p, &g[i]);
	quipu_partition_authority(b->p, false);
	run_example(b->p, &(const struct example){
				  "E", HEAD "00000001 00000000 0e000000 00001000 00000001",
				  "00 00 00 00 00 a0 1f 40", "ffffdcd6 00000001", ""});
}

/* ---- addresses ---- */

static void rt02(void **state)
{
	struct bed *b = *state;
	struct quipu_hvmap *map = quipu_lpar_map(b->lpar);

	assert_int_equal(quipu_hvmap_size(map), 34);
	for (size_t i = 0; i < quipu_hvmap_size(map); i++) {
		struct quipu_hvmap_hit s, next;

		quipu_hvmap_symbol(map, i, &s);
		for (unsigned k = 0; k < 3; k++) {
			uint64_t off = k == 0 ? 0 : k == 1 ? s.size / 2 : s.size - 1;

			SAYS(0, 1, bed_lookup(b->p, 0, s.start + off, 1));
			bed_says(b->p, WORK, off, s.name);
		}
		SAYS(0, 1, bed_lookup(b->p, 0, s.start + s.size, 1));
		if (quipu_hvmap_find(map, s.start + s.size, &next) == QUIPU_HVMAP_INVALID)
			bed_says(b->p, WORK, 0, INVALID);
		else
			bed_says(b->p, WORK, s.start + s.size - next.start, next.name);
		assert_true(next.start != s.start);
	}
	quipu_hvmap_put(map);
}

static void rt03_rt04(void **state)
{
	static const struct {
		uint64_t iar, offset;
		const char *name;
	} rows[] = {
		{0xa00f00, 0xf00, "vectors"},  {0xa05c00, 0, "private"},
		{0xa0ffff, 0xa3ff, "private"}, {0x9fffff, 0, INVALID},
		{0xa10000, 0, INVALID},	       {0, 0, INVALID},
		{UINT64_MAX, 0, INVALID},
	};
	struct bed *b = *state;
	struct quipu_lpar_stats stats;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		SAYS(0, 1, bed_lookup(b->p, 0, rows[i].iar, 1));
		bed_says(b->p, WORK, rows[i].offset, rows[i].name);
	}
	quipu_partition_stats(b->p, &stats);
	assert_int_equal(stats.module_hits, 3);
	assert_int_equal(stats.invalid_address, 4);
	assert_int_equal(stats.ok, 7);
}

/* ---- sizes and parameters ---- */

static void rt05_rt06_rt07(void **state)
{
	static const struct {
		uint32_t subfunction, size;
		uint64_t iar;
		int32_t status;
	} rows[] = {
		{1, 20, ENTER, 0},  {1, 19, ENTER, -5}, {1, 24, 1, 0},
		{1, 23, 1, -5},	    {1, 8, ENTER, -5},	{1, 9, ENTER, -5},
		{1, 7, ENTER, -3},  {1, 4, ENTER, -3},	{1, 0, ENTER, -3},
		{0, 64, ENTER, -3}, {2, 64, ENTER, -3}, {UINT32_MAX, 64, ENTER, -3},
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bed_put(b->p, WORK, rows[i].iar);
		SAYS(rows[i].status, 1,
		     bed_call(b->p, 0, rows[i].subfunction, WORK, rows[i].size, 1));
	}
}

static void rt08(void **state)
{
	struct bed *b = *state;

	bed_put(b->p, RMA - 64, ENTER);
	SAYS(0, 1, bed_call(b->p, 0, 1, RMA - 64, 64, 1));
	SAYS(-3, 1, bed_call(b->p, 0, 1, RMA - 64, 65, 1));
	SAYS(-3, 1, bed_call(b->p, 0, 1, UINT64_MAX - 63, 64, 1));
	SAYS(-3, 1, bed_call(b->p, 0, 1, UINT64_MAX - 62, 64, 1));
	SAYS(-3, 1, bed_call(b->p, 0, 1, 0, UINT32_MAX, 1));
}

static void rt09(void **state)
{
	const uint64_t high = UINT64_C(0x100000000);
	uint32_t cells[4] = {cpu_to_fdt32(1), 0, 0, cpu_to_fdt32(0x10000)};
	struct bed b;
	int node;

	(void)state;
	bed_tree(&b);
	node = bed_node(&b, "partitions/partition@1");
	assert_int_equal(fdt_setprop(b.fdt, node, "quipu,memory", cells, sizeof(cells)), 0);
	bed_start(&b);
	assert_non_null(b.lpar);
	bed_put(b.p, high, ENTER);
	SAYS(-3, 1, bed_call(b.p, 0, 1, high, 4096, 1));
	quipu_partition_option(b.p, QUIPU_PARTITION_ANYWHERE, true);
	SAYS(0, 1, bed_call(b.p, 0, 1, high, 4096, 1));
	bed_says(b.p, high, 0x40, "qhv_h_enter");
	SAYS(-3, 1, bed_call(b.p, 0, 1, 2 * high, 4096, 1));
	/* R1-4: two ranges are not contiguous memory, even where one follows the other. */
	SAYS(-3, 1, bed_call(b.p, 0, 1, high + 0x10000 - 32, 64, 1));
	bed_stop(&b);
}

static void rt10(void **state)
{
	static const struct {
		uint64_t work;
		uint32_t size;
	} rows[] = {
		{ARGS, 64},	  {ARGS - 63, 64},    {ARGS + 39, 64},	{ARGS - 8, 4096},
		{0x0f000000, 64}, {0x0effffff, 4096}, {0x0f00ffff, 64}, {0x0e000000, 0x2000000},
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bed_put(b->p, 0x0effff00, 0x1122334455667788);
		SAYS(-3, 1, bed_call(b->p, 0, 1, rows[i].work, rows[i].size, 1));
		assert_int_equal(bed_get(b->p, 0x0effff00), 0x1122334455667788);
		assert_int_equal(bed_get(b->p, 0x0f000000), 0);
	}
	/* next to the buffer, and next to the private area, all is well */
	bed_put(b->p, ARGS + 40, ENTER);
	SAYS(0, 1, bed_call(b->p, 0, 1, ARGS + 40, 64, 1));
	bed_put(b->p, 0x0f010000, ENTER);
	SAYS(0, 1, bed_call(b->p, 0, 1, 0x0f010000, 64, 1));
}

static void rt11(void **state)
{
	struct bed *b = *state;
	uint8_t even[32], odd[32];

	bed_put(b->p, WORK, ENTER);
	bed_put(b->p, WORK + 0x101, ENTER);
	SAYS(0, 1, bed_call(b->p, 0, 1, WORK, 64, 1));
	SAYS(0, 1, bed_call(b->p, 0, 1, WORK + 0x101, 64, 1));
	quipu_partition_read(b->p, WORK, even, 20);
	quipu_partition_read(b->p, WORK + 0x101, odd, 20);
	assert_memory_equal(even, odd, 20);
}

static void rt12(void **state)
{
	static const uint64_t bad[] = {ARGS + 4,   ARGS + 1,	     RMA,	 RMA - 8,
				       RMA - 32,   UINT64_MAX - 7,   0x0f000000, 0x0f000000 - 32,
				       0x0f00fff8, UINT64_C(1) << 40};
	struct bed *b = *state;
	uint8_t before[64], after[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(before, CANARY, sizeof(before));
		if (!quipu_partition_write(b->p, bad[i], before, 32))
			put_hex(b->p, bad[i], HEAD);
		if (quipu_partition_read(b->p, bad[i], before, 32))
			memset(before, 0, sizeof(before));
		assert_int_equal(quipu_rtas_call(b->p, bad[i]), -14);
		memcpy(after, before, sizeof(after));
		quipu_partition_read(b->p, bad[i], after, 32);
		assert_memory_equal(before, after, 32);
	}
}

/* nargs, nret, token: what is written where. */
static void rt13(void **state)
{
	static const struct {
		const char *head, *after;
	} rows[] = {
		{"00002100 00000004 00000002 11111111 22222222 33333333 44444444",
		 "fffffffd 00000001 eeeeeeee eeeeeeee"},
		{"00002100 00000006 00000002 11111111 22222222 33333333 44444444 55555555 66666666",
		 "fffffffd 00000001 eeeeeeee eeeeeeee"},
		{"00002100 00000005 00000001 00000001 00000000 0e000000 00001000 00000001",
		 "fffffffd eeeeeeee eeeeeeee"},
		{"00002100 00000005 00000003 00000001 00000000 0e000000 00001000 00000001",
		 "fffffffd 00000001 eeeeeeee eeeeeeee"},
		{"00002100 00000005 00000000 00000001 00000000 0e000000 00001000 00000001",
		 "eeeeeeee eeeeeeee"},
		{"00002101 00000005 00000002 00000001 00000000 0e000000 00001000 00000001",
		 "fffffffd eeeeeeee eeeeeeee"},
		{"ffffffff 00000000 00000001", "fffffffd eeeeeeee"},
		{"ffffffff 00000000 00000000", "eeeeeeee eeeeeeee"},
	};
	struct bed *b = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned cells = (unsigned)(strlen(rows[i].head) + 1) / 9;

		for (unsigned k = 0; k < 20; k++)
			put_hex(b->p, ARGS + 4 * k, "eeeeeeee");
		put_hex(b->p, ARGS, rows[i].head);
		assert_int_equal(quipu_rtas_call(b->p, ARGS), 0);
		is_hex(b->p, ARGS, rows[i].head);
		is_hex(b->p, ARGS + 4 * cells, rows[i].after);
	}
	/* more cells than there may be */
	put_hex(b->p, ARGS, "00002100 0000000f 00000002");
	assert_int_equal(quipu_rtas_call(b->p, ARGS), -14);
	put_hex(b->p, ARGS, "00002100 ffffffff 00000002");
	assert_int_equal(quipu_rtas_call(b->p, ARGS), -14);
}

static void rt14(void **state)
{
	uint32_t cells = cpu_to_fdt32(2), rma[2] = {cpu_to_fdt32(1), 0};
	struct bed b;
	int node;

	(void)state;
	bed_tree(&b);
	node = bed_node(&b, "partitions/partition@1");
	assert_int_equal(fdt_setprop(b.fdt, node, "quipu,rtas-cells", &cells, 4), 0);
	node = bed_node(&b, "partitions/partition@1");
	assert_int_equal(fdt_setprop(b.fdt, node, "quipu,rma-size", rma, 8), 0);
	bed_start(&b);
	assert_non_null(b.lpar);
	SAYS(0, 1, bed_lookup(b.p, 0, ENTER, 1));
	is_hex(b.p, ARGS,
	       "0000000000002100 0000000000000005 0000000000000002 0000000000000001 "
	       "0000000000000000 000000000e000000 0000000000001000 0000000000000001 "
	       "0000000000000000 0000000000000001");
	bed_says(b.p, WORK, 0x40, "qhv_h_enter");
	SAYS(-3, 1, bed_call(b.p, 0, 2, WORK, 4096, 1));
	is_hex(b.p, ARGS + 64, "fffffffffffffffd 0000000000000001");
	PLAN(b.p, -2, 9902);
	SAYS(-2, 2, bed_lookup(b.p, 0, ENTER, 1));
	SAYS(9902, 3, bed_lookup(b.p, 0, ENTER, 2));
	SAYS(0, 1, bed_lookup(b.p, 0, ENTER, 3));
	plan(b.p, 0, NULL);
	bed_put(b.p, 0x80000000, ENTER);
	SAYS(0, 1, bed_call(b.p, 0, 1, 0x80000000, 64, 1));
	is_hex(b.p, ARGS + 40, "ffffffff80000000");
	bed_says(b.p, 0x80000000, 0x40, "qhv_h_enter");
	bed_stop(&b);
}

static void canary(struct quipu_partition *p, bool check)
{
	uint8_t bytes[256];

	memset(bytes, CANARY, sizeof(bytes));
	if (!check) {
		quipu_partition_write(p, WORK - 64, bytes, sizeof(bytes));
		return;
	}
	quipu_partition_read(p, WORK - 64, bytes, sizeof(bytes));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(bytes[i], CANARY);
	for (unsigned i = 64 + 32; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], CANARY);
}

static void rt15(void **state)
{
	struct bed *b = *state;
	uint8_t tail[12];

	canary(b->p, false);
	bed_put(b->p, WORK, ENTER);
	SAYS(0, 1, bed_call(b->p, 0, 1, WORK, 32, 1));
	canary(b->p, true);
	quipu_partition_read(b->p, WORK + 20, tail, 12); /* behind the NUL */
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(tail[i], CANARY);
	PLAN(b->p, -2);
	canary(b->p, false);
	SAYS(-2, 2, bed_call(b->p, 0, 1, WORK, 32, 1));
	canary(b->p, true);
	SAYS(-3, 1, bed_call(b->p, 0, 1, WORK, 32, 77));
	canary(b->p, true);
	plan(b->p, 0, NULL);
	bed_put(b->p, WORK, 0xa05100); /* qhv_h_send_logical_lan needs 31 */
	SAYS(-5, 1, bed_call(b->p, 0, 1, WORK, 30, 1));
	canary(b->p, true);
}

/* ---- sequences ---- */

static void rt17_rt18(void **state)
{
	static const int32_t all[] = {-2, 9900, 9901, 9902, 9903, 9904, 9905};
	struct bed *b = *state;
	uint32_t number = 1;

	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 2));
	bed_says(b->p, WORK, 0x40, "qhv_h_enter");
	plan(b->p, 7, all);
	for (unsigned i = 0; i < 7; i++) {
		struct rets r = bed_lookup(b->p, 0, PREEMPT, number);

		assert_int_equal(r.status, all[i]);
		assert_int_equal(r.next, 3 + i);
		number = r.next;
	}
	SAYS(0, 1, bed_lookup(b->p, 0, PREEMPT, number));
	bed_says(b->p, WORK, 0x10, "qhv_vp_preempt");
}

/* R1-6 as the document tells it: example H. */
static void rt19(void **state)
{
	struct bed *b = *state;
	struct quipu_lpar_stats stats;

	PLAN(b->p, -2, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-2, 3, bed_lookup(b->p, 1, PREEMPT, 1));
	SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, 2)); /* Parameter Error for the first processor */
	SAYS(0, 1, bed_lookup(b->p, 1, PREEMPT, 3));
	bed_says(b->p, bed_work(1), 0x10, "qhv_vp_preempt");
	quipu_partition_stats(b->p, &stats);
	assert_int_equal(stats.cancelled, 1);
	assert_int_equal(stats.stale_number, 1);
}

static void rt20(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(0, 1, bed_lookup(b->p, 1, PREEMPT, 1));
	SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, 2));
	SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, 3)); /* IDLE */
}

static void rt21(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-3, 1, bed_call(b->p, 1, 2, bed_work(1), 4096, 1));
	SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, 2));
}

static void rt22(void **state)
{
	struct bed *b = *state;

	quipu_partition_authority(b->other, true);
	PLAN(b->p, -2);
	PLAN(b->other, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-2, 2, bed_lookup(b->other, 1, PREEMPT, 1));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 2));
	bed_says(b->p, WORK, 0x40, "qhv_h_enter");
	SAYS(0, 1, bed_lookup(b->other, 1, PREEMPT, 2));
	bed_says(b->other, bed_work(1), 0x10, "qhv_vp_preempt");
}

static void rt23(void **state)
{
	static const uint32_t never[] = {0, 2, 3, 77, 0x7fffffff, 0x80000000, UINT32_MAX};
	struct bed *b = *state;

	for (unsigned i = 0; i < 7; i++)
		SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, never[i]));
	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	for (unsigned i = 0; i < 7; i++)
		if (never[i] != 2)
			SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, never[i]));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 2));
}

static void rt24(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-3, 1, bed_call(b->p, 0, 1, WORK, 4, 2));
	SAYS(-3, 1, bed_call(b->p, 0, 3, WORK, 4096, 2));
	SAYS(-3, 1, bed_call(b->p, 0, 1, RMA, 4096, 2));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 2));
}

/* Clients that take "with the same input parameters" literally. */
static void rt25(void **state)
{
	static const int32_t delays[] = {-2, 9900, -2, 9901};
	struct bed *b = *state;

	plan(b->p, 4, delays);
	for (unsigned run = 0; run < 10000; run++) {
		unsigned calls = 1;

		while (bed_lookup(b->p, 0, ENTER, 1).status)
			calls++;
		assert_int_equal(calls, 5);
	}
	/* the number of the call before, from the second call on */
	for (unsigned run = 0; run < 100; run++) {
		struct rets r = bed_lookup(b->p, 0, ENTER, 1);
		uint32_t number = r.next;
		unsigned calls = 1;

		for (; r.status; calls++)
			r = bed_lookup(b->p, 0, ENTER, number);
		assert_int_equal(calls, 5);
	}
}

static uint64_t xorshift(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* Two processors at random: a dead number is never accepted, none is issued twice. */
static void rt26(void **state)
{
	struct bed *b = *state;
	uint64_t seed = 88172645463325252u;
	struct {
		uint32_t number;
		bool dead;
	} cpu[2] = {{1, false}, {1, false}};
	uint32_t newest = 1;

	quipu_partition_option(b->p, QUIPU_PARTITION_SCRIBBLE, false);
	PLAN(b->p, -2, 9900, -2);
	for (unsigned n = 0; n < 1000000; n++) {
		unsigned who = xorshift(&seed) & 1;
		uint32_t number = xorshift(&seed) % 4 ? cpu[who].number : 1;
		struct rets r = bed_call(b->p, who, 1, bed_work(who), 64, number);

		if (number == 1)
			cpu[!who].dead = true;
		if (number != 1 && cpu[who].dead)
			assert_int_equal(r.status, -3);
		else
			assert_int_not_equal(r.status, -3);
		if (r.next != 1) {
			assert_true(r.next > newest);
			newest = r.next;
		}
		cpu[who].number = r.next;
		cpu[who].dead = false;
	}
}

static void rt27(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2, -2);
	quipu_partition_next_number(b->p, 0x7fffffff);
	SAYS(-2, 0x7fffffff, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 0x7fffffff));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 2));
	/* whatever a test sets, 0, 1 and the negative ones are not issued after the next */
	quipu_partition_next_number(b->p, 0x80000000);
	bed_lookup(b->p, 0, ENTER, 1);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
}

static struct quipu_hvmap *small_map(const char *text)
{
	struct quipu_hvmap *map = NULL;

	assert_int_equal(quipu_hvmap_read(&map, text, strlen(text), NULL, NULL), 0);
	return map;
}

static void rt28(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	quipu_lpar_reload(b->lpar, small_map("a01f00 300 new_enter\n"));
	SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, 2));
	plan(b->p, 0, NULL);
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 1));
	bed_says(b->p, WORK, 0x40, "new_enter");
	assert_int_equal(quipu_lpar_epoch(b->lpar), 1);
}

static void rt29(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(0, 1, bed_call(b->p, 0, 1, WORK + 0x5000, 20, 2));
	bed_says(b->p, WORK + 0x5000, 0x40, "qhv_h_enter");
}

static void rt30(void **state)
{
	struct bed *b = *state;

	PLAN(b->p, -2);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	assert_int_equal(bed_get(b->p, WORK), 0xa5a5a5a5a5a5a5a5);
	SAYS(0, 1, bed_call(b->p, 0, 1, WORK, 4096, 2)); /* as librtas does */
	bed_says(b->p, WORK, 0x40, "qhv_h_enter");
	quipu_partition_option(b->p, QUIPU_PARTITION_RECHECK_IAR, true);
	SAYS(-2, 3, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-3, 1, bed_call(b->p, 0, 1, WORK, 4096, 3));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 3));
}

static void chunks_of(struct quipu_partition *p, uint32_t size, const char *name)
{
	char joined[64] = "", piece[64];
	uint32_t number = 1;

	bed_put(p, WORK, ENTER);
	do {
		struct rets r = bed_call(p, 0, 1, WORK, size, number);

		assert_int_equal(r.status, 0);
		assert_int_equal(bed_get(p, WORK), 0x40);
		quipu_partition_read(p, WORK + 8, piece, size - 8);
		assert_non_null(memchr(piece, 0, size - 8));
		strcat(joined, piece);
		number = r.next;
	} while (number != 1);
	assert_string_equal(joined, name);
}

static void rt31_rt32(void **state)
{
	struct bed *b = *state;

	quipu_partition_option(b->p, QUIPU_PARTITION_CHUNKED, true);
	for (uint32_t size = 10; size <= 20; size++)
		chunks_of(b->p, size, "qhv_h_enter");
	bed_put(b->p, WORK, ENTER);
	SAYS(-5, 1, bed_call(b->p, 0, 1, WORK, 9, 1));
	quipu_partition_reset(b->p);
	bed_put(b->p, WORK, ENTER);
	SAYS(0, 2, bed_call(b->p, 0, 1, WORK, 12, 1));
	SAYS(0, 3, bed_call(b->p, 0, 1, WORK, 12, 2));
	SAYS(-3, 1, bed_call(b->p, 0, 1, WORK, 12, 2)); /* an old piece */
	SAYS(0, 4, bed_call(b->p, 0, 1, WORK, 12, 3));
	quipu_partition_reset(b->p);
	PLAN(b->p, -2);
	bed_put(b->p, WORK, ENTER);
	SAYS(-2, 2, bed_call(b->p, 0, 1, WORK, 16, 1));
	SAYS(0, 3, bed_call(b->p, 0, 1, WORK, 16, 2));
	SAYS(0, 1, bed_call(b->p, 0, 1, WORK, 16, 3));
}

static void rt33(void **state)
{
	struct bed *b = *state;

	assert_int_equal(quipu_lpar_inject(b->p, 1, -1, false), 0);
	SAYS(-1, 1, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, 1));
	PLAN(b->p, -2);
	assert_int_equal(quipu_lpar_inject(b->p, 2, -1, false), 0);
	SAYS(-2, 2, bed_lookup(b->p, 0, ENTER, 1));
	SAYS(-1, 1, bed_lookup(b->p, 0, ENTER, 2));
	SAYS(-3, 1, bed_lookup(b->p, 0, ENTER, 2));
	assert_int_equal(bed_lookup(b->p, 0, ENTER, 1).status, 0);
	assert_int_equal(quipu_lpar_inject(b->p, 1, -4, false), -22);
	assert_int_equal(quipu_lpar_inject(b->p, 0, -1, false), -22);
}

static void rt34(void **state)
{
	struct bed *b = *state;
	struct quipu_partition *p = b->other;

	SAYS(-9002, 1, bed_lookup(p, 0, ENTER, 1));
	SAYS(-9002, 1, bed_call(p, 0, 7, WORK, 4096, 1));
	SAYS(-9002, 1, bed_call(p, 0, 1, WORK, 3, 1));
	SAYS(-9002, 1, bed_call(p, 0, 1, RMA, 4096, 1));
	SAYS(-9002, 1, bed_call(p, 0, 1, WORK, 4096, 55));
	put_hex(p, ARGS, "00002100 00000004 00000002 1 1 1 1 eeeeeeee eeeeeeee");
	assert_int_equal(quipu_rtas_call(p, ARGS), 0);
	is_hex(p, ARGS + 28, "fffffffd");
	quipu_partition_authority(p, true);
	SAYS(0, 1, bed_lookup(p, 0, ENTER, 1));
	PLAN(p, -2, -2);
	SAYS(-2, 2, bed_lookup(p, 0, ENTER, 1));
	quipu_partition_authority(p, false);
	SAYS(-9002, 1, bed_lookup(p, 0, ENTER, 2));
	quipu_partition_authority(p, true);
	SAYS(-3, 1, bed_lookup(p, 0, ENTER, 2)); /* dead */
}

static void rt35(void **state)
{
	struct bed *b = *state;
	struct rets r;

	PLAN(b->p, 9902);
	quipu_partition_option(b->p, QUIPU_PARTITION_TIME_MODE, true);
	r = bed_lookup(b->p, 0, ENTER, 1);
	assert_int_equal(r.status, 9902);
	b->ns = 20000000;
	r = bed_lookup(b->p, 0, ENTER, r.next);
	assert_int_equal(r.status, 9901);
	b->ns = 95000000;
	r = bed_lookup(b->p, 0, ENTER, r.next);
	assert_int_equal(r.status, 9900);
	b->ns = 100000000;
	SAYS(0, 1, bed_lookup(b->p, 0, ENTER, r.next));
}

static void rt36(void **state)
{
	struct bed *b = *state;

	assert_int_equal(quipu_partition_plan(b->p, (const int32_t[]){-2}, 1, 8), 0);
	for (unsigned k = 1; k <= 24; k++) {
		struct rets r = bed_lookup(b->p, 0, ENTER, 1);

		assert_int_equal(r.status, k % 8 ? 0 : -2);
		if (r.status)
			SAYS(0, 1, bed_lookup(b->p, 0, ENTER, r.next));
	}
}

/* R1-6 from two threads: the second one's start, between the first one's two calls. */
struct script {
	struct quipu_partition *p;
	pthread_barrier_t *turn;
	struct rets rets[2];
};

static void *first_processor(void *arg)
{
	struct script *s = arg;

	s->rets[0] = bed_lookup(s->p, 0, ENTER, 1);
	pthread_barrier_wait(s->turn);
	pthread_barrier_wait(s->turn);
	s->rets[1] = bed_lookup(s->p, 0, ENTER, s->rets[0].next);
	pthread_barrier_wait(s->turn);
	return NULL;
}

static void *second_processor(void *arg)
{
	struct script *s = arg;

	pthread_barrier_wait(s->turn);
	s->rets[0] = bed_lookup(s->p, 1, PREEMPT, 1);
	pthread_barrier_wait(s->turn);
	pthread_barrier_wait(s->turn);
	s->rets[1] = bed_lookup(s->p, 1, PREEMPT, s->rets[0].next);
	return NULL;
}

static void r1_6_threads(void **state)
{
	struct bed *b = *state;
	pthread_barrier_t turn;
	struct script s[2] = {{.p = b->p, .turn = &turn}, {.p = b->p, .turn = &turn}};
	pthread_t thread[2];

	PLAN(b->p, -2, -2);
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&thread[0], NULL, first_processor, &s[0]);
	pthread_create(&thread[1], NULL, second_processor, &s[1]);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	bed_is(s[0].rets[0], -2, 2);
	bed_is(s[1].rets[0], -2, 3);
	bed_is(s[0].rets[1], -3, 1);
	bed_is(s[1].rets[1], 0, 1);
	bed_says(b->p, bed_work(1), 0x10, "qhv_vp_preempt");
	pthread_barrier_destroy(&turn);
}

/* Calls of two processors at once: none harms the other, and the broken rule is seen. */
static void *hammer(void *arg)
{
	struct quipu_partition *p = arg;

	for (unsigned i = 0; i < 2000; i++)
		bed_lookup(p, 0, ENTER, 1);
	return NULL;
}

static void r1_2_any_processor(void **state)
{
	struct bed *b = *state;
	struct quipu_lpar_stats stats;
	pthread_t thread;

	quipu_partition_authority(b->other, true);
	pthread_create(&thread, NULL, hammer, b->other);
	hammer(b->p);
	pthread_join(thread, NULL);
	quipu_partition_stats(b->p, &stats);
	assert_int_equal(stats.ok, 2000);
	assert_int_equal(stats.overlap_count, 0); /* the rule is per partition */
	quipu_partition_stats(b->other, &stats);
	assert_int_equal(stats.ok, 2000);
}

/* R1-1: no LPAR option, no token. */
static void rt16_tree(void **state)
{
	struct bed b;

	(void)state;
	bed_tree(&b);
	assert_int_equal(fdt_delprop(b.fdt, fdt_path_offset(b.fdt, "/rtas"), QUIPU_LPAR_PERFTOOLS),
			 0);
	bed_start(&b);
	assert_non_null(b.lpar);
	assert_int_equal(quipu_lpar_token(b.lpar, QUIPU_LPAR_PERFTOOLS), -2);
	assert_true(b.notes.n > 0); /* authority for what is not there */
	put_hex(b.p, ARGS, HEAD "00000001 00000000 0e000000 00001000 00000001 eeeeeeee eeeeeeee");
	assert_int_equal(quipu_rtas_call(b.p, ARGS), 0);
	is_hex(b.p, ARGS + 0x20, "fffffffd eeeeeeee");
	bed_stop(&b);
}

#define CASE(name, fn)                                                                             \
	{                                                                                          \
		name, fn, setup, teardown, NULL                                                    \
	}

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE("RT-01 R1-2 R1-3: byte examples A to D", rt01),
		CASE("RT-01 R1-2: byte examples E, F, G", rt01_sequences),
		CASE("RT-02 R1-3: each function at its first, middle and last byte", rt02),
		CASE("RT-03 RT-04 R1-3: modules, and what is no address", rt03_rt04),
		CASE("RT-05 RT-06 RT-07 R1-2: sizes and subfunctions", rt05_rt06_rt07),
		CASE("RT-08 R1-4: a work area at the end of the RMA", rt08),
		{"RT-09 R1-4: the high half of the address", rt09, NULL, NULL, NULL},
		CASE("RT-10: a work area on the buffer or in the private area", rt10),
		CASE("RT-11: an odd work area", rt11),
		CASE("RT-12: argument buffers that are none", rt12),
		CASE("RT-13 R1-2: token, nargs and nret", rt13),
		{"RT-14: 64-bit cells", rt14, NULL, NULL, NULL},
		CASE("RT-15 R1-5: nothing outside the work area changes", rt15),
		{"RT-16 R1-1: no property, no call", rt16_tree, NULL, NULL, NULL},
		CASE("RT-17 RT-18 R1-2: busy and every delay", rt17_rt18),
		CASE("RT-19 R1-6: example H", rt19),
		CASE("RT-20 R1-6: the second call ends at once", rt20),
		CASE("RT-21 R1-6: the second call is refused", rt21),
		CASE("RT-22 R1-6: another partition", rt22),
		CASE("RT-23: numbers that were never issued", rt23),
		CASE("RT-24: bad parameters leave a sequence alone", rt24),
		CASE("RT-25 R1-2: the same input parameters", rt25),
		CASE("RT-26 R1-6: a million calls at random", rt26),
		CASE("RT-27: numbers wrap", rt27),
		CASE("RT-28: another map", rt28),
		CASE("RT-29: another work area", rt29),
		CASE("RT-30 R1-5: a work area that was destroyed", rt30),
		CASE("RT-31 RT-32: names in pieces", rt31_rt32),
		CASE("RT-33 R1-2: hardware errors", rt33),
		CASE("RT-34 R1-2: authority", rt34),
		CASE("RT-35 R1-2: delays in time", rt35),
		CASE("RT-36: every eighth lookup", rt36),
		CASE("R1-6 from two threads", r1_6_threads),
		CASE("partitions call at the same time", r1_2_any_processor),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
