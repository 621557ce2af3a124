// SPDX-License-Identifier: BSD-2-Clause
/* DMA traces: what a line means, which lines are refused, the binary form, and a replay whose
 * numbers are known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/dma/trace.h"

static void first_line_says_what_it_is(void **state)
{
	uint8_t header[DMA_BINARY_HEADER];

	(void)state;
	assert_true(dma_trace_is_text("# quipu-dma 1\n", 14));
	assert_true(dma_trace_is_text("# quipu-dma 1", 13));
	assert_false(dma_trace_is_text("# quipu-dma 12\n", 15));
	assert_false(dma_trace_is_text("# quipu-cpu 1\n", 14));
	assert_false(dma_trace_is_text("# quipu", 7));
	dma_trace_encode_header(header);
	assert_true(dma_trace_is_binary(header, sizeof(header)));
	assert_false(dma_trace_is_binary(header, sizeof(header) - 1));
	header[4] = 2;
	assert_false(dma_trace_is_binary(header, sizeof(header)));
}

static int parse(const char *line, struct dma_record *r)
{
	const char *why;

	return dma_trace_line(line, strlen(line), r, &why);
}

static void lines_mean_what_they_say(void **state)
{
	struct dma_record r;

	(void)state;
	assert_int_equal(parse("dma 1000 0x3a00 - U R 0x100000000 64", &r), 1);
	assert_int_equal(r.kind, DMA_RECORD_DMA);
	assert_int_equal(r.time, 1000);
	assert_int_equal(r.rid, 0x3a00);
	assert_int_equal(r.pasid, -1);
	assert_int_equal(r.at, QUIPU_VTD_UNTRANSLATED);
	assert_int_equal(r.op, QUIPU_VTD_READ);
	assert_int_equal(r.addr, UINT64_C(0x100000000));
	assert_int_equal(r.size, 64);
	assert_int_equal(parse("\tdma 1 2 0xfffff X Z 010 0  # comment", &r), 1);
	assert_int_equal(r.pasid, 0xfffff);
	assert_int_equal(r.at, QUIPU_VTD_TRANSLATED);
	assert_int_equal(r.op, QUIPU_VTD_ZERO_READ);
	assert_int_equal(r.addr, 8);
	assert_int_equal(parse("prq 5 0x3a00 5 0x5000 rwp 291 1", &r), 1);
	assert_true(r.r && r.w && r.priv && !r.x && r.last);
	assert_int_equal(r.group, 291);
	assert_int_equal(parse("map 0 0x3a00:5 0x1000 0x2000 0x3000 rw", &r), 1);
	assert_true(r.by_pasid);
	assert_int_equal(r.pasid, 5);
	assert_int_equal(parse("map 0 7 0x1000 0x2000 0x3000 r", &r), 1);
	assert_true(!r.by_pasid && r.r && !r.w);
	assert_int_equal(r.did, 7);
	assert_int_equal(parse("inv 9 1 2 3 4\r", &r), 1);
	assert_int_equal(r.qw[3], 4);
	assert_int_equal(parse("", &r), 0);
	assert_int_equal(parse("   # nothing", &r), 0);
}

static const char *const bad_lines[] = {
	"dma",
	"dma 1 2 - U R 0x1000",
	"dma 1 2 - U R 0x1000 64 9",
	"dma 1 0x10000 - U R 0 0",
	"dma 1 2 0x100000 U R 0 0",
	"dma 1 2 - Q R 0 0",
	"dma 1 2 - UT R 0 0",
	"dma 1 2 - U r 0 0",
	"dma -1 2 - U R 0 0",
	"dma 1x 2 - U R 0 0",
	"dma 0x 2 - U R 0 0",
	"dma 09 2 - U R 0 0",
	"dma 18446744073709551616 2 - U R 0 0",
	"dma 1 2 - U R 0 0x100000000",
	"msi 1 2 3",
	"msi 1 2 3 0x100000000",
	"prq 1 2 - 0 rr 0 0",
	"prq 1 2 - 0 rw 512 0",
	"prq 1 2 - 0 rw 1 2",
	"map 1 2 0 0 0 rx",
	"map 1 65536 0 0 0 r",
	"map 1 : 0 0 0 r",
	"map 1 1: 0 0 0 r",
	"inv 1 2",
	"inv 1 1 2 3 4 5",
	"reg 1 0 3 0",
	"reg 1 0 16 0",
	"attach 1 2 -",
	"attach 1 2 - 0x10000",
	"attach 1 0x10000 - 5",
	"attach 1 2 0x100000 5",
	"nonsense 1",
	"dma 1 2 - U R 0 0 0 0 0 0 0 0 0",
};

static void bad_lines_are_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++) {
		struct dma_record r;
		const char *why = NULL;

		if (dma_trace_line(bad_lines[i], strlen(bad_lines[i]), &r, &why) != -EINVAL || !why)
			fail_msg("taken: %s", bad_lines[i]);
	}
}

static void binary_form_loses_nothing(void **state)
{
	static const char *const lines[] = {
		"dma 1000 0x3a00 - U R 0x100000000 64",
		"dma 1 2 0xfffff T W 0xffffffffffffffff 0xffffffff",
		"msi 5 7 0xfee00010 0xffff",
		"prq 5 0x3a00 5 0x5000 rwxp 511 1",
		"map 0 0x3a00:5 0x1000 0x2000 0x3000 rw",
		"map 0 7 0x1000 0x2000 0x10000000000 r",
		"unmap 3 7 0x1000 0x3000",
		"inv 4 0x500f2 0x100000040",
		"reg 8 0x18 4 0x80000000",
		"attach 9 0x3a00 - 7",
		"attach 9 0x3a00 5 0xffff",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		uint8_t bytes[DMA_BINARY_RECORD], again[DMA_BINARY_RECORD];
		struct dma_record r, back;
		const char *why;

		assert_int_equal(parse(lines[i], &r), 1);
		dma_trace_encode(&r, bytes);
		assert_int_equal(dma_trace_record(bytes, &back, &why), 0);
		assert_int_equal(back.kind, r.kind);
		assert_int_equal(back.time, r.time);
		assert_int_equal(back.pasid, r.pasid);
		if (r.kind != DMA_RECORD_INV && r.kind != DMA_RECORD_REG)
			assert_int_equal(back.addr, r.addr);
		if (r.kind == DMA_RECORD_DMA || r.kind == DMA_RECORD_MAP ||
		    r.kind == DMA_RECORD_UNMAP)
			assert_int_equal(back.size, r.size);
		assert_int_equal(back.group, r.group);
		assert_int_equal(back.r | back.w << 1 | back.x << 2 | back.priv << 3,
				 r.r | r.w << 1 | r.x << 2 | r.priv << 3);
		dma_trace_encode(&back, again);
		assert_memory_equal(bytes, again, sizeof(bytes));
	}
}

static void bad_records_are_refused(void **state)
{
	uint8_t bytes[DMA_BINARY_RECORD] = {0};
	struct dma_record r;
	const char *why;

	(void)state;
	assert_int_equal(dma_trace_record(bytes, &r, &why), -EINVAL); /* kind 0 */
	bytes[34] = DMA_RECORD_ATTACH + 1;
	assert_int_equal(dma_trace_record(bytes, &r, &why), -EINVAL);
	bytes[34] = DMA_RECORD_DMA;
	assert_int_equal(dma_trace_record(bytes, &r, &why), 0);
	bytes[35] = 3; /* address type */
	assert_int_equal(dma_trace_record(bytes, &r, &why), -EINVAL);
	bytes[35] = 0;
	bytes[30] = 0x10; /* PASID of 21 bits */
	assert_int_equal(dma_trace_record(bytes, &r, &why), -EINVAL);
}

/* ---- replay ---- */

static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(arg, addr, write);
}

static const struct quipu_vtd_ops ops = {.page = page};

static void count(struct quipu_vtd *unit, unsigned c, unsigned group, uint32_t events)
{
	quipu_vtd_write(unit, 0x1000 + 0x100 * c, 8, (uint64_t)events << 32 | group << 8);
	quipu_vtd_write(unit, 0x400, 8, 0xf0 | (uint64_t)c << 16);
	assert_int_equal(quipu_vtd_read(unit, 0x410, 8), 0);
}

/*
 * One request before anything is mapped (identity). Then a cold walk: 6 reads; the same page again:
 * a hit; its invalidation, and a write: one read, for the tables above are cached. A page that is
 * not mapped: a fault, one read.
 */
static void replay_counts_what_the_trace_asks(void **state)
{
	static const char *const lines[] = {
		"dma 0 0x3a00 - U R 0x100000000 64",
		"map 10 5 0x100000000 0x2000000000 0x4000 rw",
		"dma 1000 0x3a00 - U R 0x100000000 64",
		"dma 1100 0x3a00 - U R 0x100000040 64",
		"inv 1200 0x500f2 0x100000040",
		"dma 1300 0x3a00 - U W 0x100000080 64",
		"dma 1400 0x3a00 - U R 0x100005000 64",
		"msi 1500 0x3a00 0xfee00000 0x41",
	};
	struct quipu_vtd_memory *memory = quipu_vtd_memory_new(UINT64_C(1) << 46, 0x1000);
	struct quipu_vtd_config config;
	struct dma_replay_totals totals;
	struct dma_replay *p;
	struct quipu_vtd *unit;
	struct dma_record r;
	const char *why;

	(void)state;
	quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
	unit = quipu_vtd_new(&config, &ops, memory, NULL);
	p = dma_replay_new(unit, memory, QUIPU_VTD_LEGACY);
	assert_non_null(p);
	count(unit, 0, 3, 1);
	count(unit, 1, 3, 2);
	count(unit, 2, 1, 1);
	count(unit, 13, 0, 2);
	count(unit, 12, 0, 1);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(parse(lines[i], &r), 1);
		if (dma_replay_record(p, &r, &why))
			fail_msg("%s: %s", lines[i], why);
	}
	assert_int_equal(quipu_vtd_read(unit, 0x4000, 8), 4);
	assert_int_equal(quipu_vtd_read(unit, 0x4400, 8), 1);
	assert_int_equal(quipu_vtd_read(unit, 0x4800, 8), 6 + 1 + 1);
	assert_int_equal(quipu_vtd_read(unit, 0x4000 + 13 * 0x400, 8), 5);
	assert_int_equal(quipu_vtd_read(unit, 0x4000 + 12 * 0x400, 8), 1500);
	dma_replay_totals(p, &totals);
	assert_int_equal(totals.records, 8);
	assert_int_equal(totals.requests, 5);
	assert_int_equal(totals.faults, 1);
	assert_int_equal(totals.end, 1500);
	/* Time does not go back, nothing is mapped twice, a wrong descriptor does not stop what
	 * follows. */
	parse("dma 1499 0x3a00 - U R 0 64", &r);
	assert_int_equal(dma_replay_record(p, &r, &why), -EINVAL);
	parse("map 2000 5 0x100000000 0x3000000000 0x1000 rw", &r);
	assert_int_equal(dma_replay_record(p, &r, &why), -EINVAL);
	parse("inv 2000 0xf", &r);
	parse("inv 2000 0xf 0", &r);
	assert_int_equal(dma_replay_record(p, &r, &why), -EINVAL);
	parse("inv 2100 0x500e2 0", &r);
	assert_int_equal(dma_replay_record(p, &r, &why), 0);
	parse("dma 2200 0x3a00 - U R 0x100000000 64", &r);
	assert_int_equal(dma_replay_record(p, &r, &why), 0);
	dma_replay_totals(p, &totals);
	assert_int_equal(totals.faults, 1);
	dma_replay_free(p);
	quipu_vtd_free(unit);
	quipu_vtd_memory_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_line_says_what_it_is),
		cmocka_unit_test(lines_mean_what_they_say),
		cmocka_unit_test(bad_lines_are_refused_with_a_reason),
		cmocka_unit_test(binary_form_loses_nothing),
		cmocka_unit_test(bad_records_are_refused),
		cmocka_unit_test(replay_counts_what_the_trace_asks),
	};

	return cmocka_run_group_tests_name("vtd trace", tests, NULL, NULL);
}
