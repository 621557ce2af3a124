// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the driver makes of samplers (Rock sheet 6, 8 and 9): which registers it sets for an event,
 * what of an element is a hit, what a sample says; and requests of the MMU, by signals.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#define KERNEL QUIPU_ATTR_EXCLUDE_KERNEL
#define USER   QUIPU_ATTR_EXCLUDE_USER
#define HV     QUIPU_ATTR_EXCLUDE_HV

/* ---- registers ---- */

/* Each event's calls are in the trace: frequency, filters, masks. */
static void registers_of_an_event(void **state)
{
	static const struct {
		const char *pmu; /* NULL: a generic event */
		struct quipu_attr attr;
		const char *call;
	} rows[] = {
		/* default frequencies, sheet 6.1 */
		{"rock", SYN(0x200, 0, 2), "SAMPLE_START(0x201, 0x64, 0x10,"},
		{"rock", SYN(0x400, 0, 0), "SAMPLE_START(0x401, 0x2710, 0x8,"},
		{"rock", SYN(0x400, 0, 1), "SAMPLE_START(0x401, 0x2710, 0x8,"},
		{"rock", SYN(0x400, 0, 2), "SAMPLE_START(0x401, 0x3e8, 0x8,"},
		{"rock", SYN(0x400, 0, 4), "SAMPLE_START(0x401, 0x2710, 0x8,"},
		{"rock", SYN(0x400, 1, 3), "SAMPLE_START(0x401, 0x3e8, 0x8,"},
		{"rock", SYN(0x400, 2, 3), "SAMPLE_START(0x401, 0x1388, 0x8,"},
		{"rock", SYN(0x400, 3, 0), "SAMPLE_START(0x401, 0x1388, 0x8,"},
		{"rock",
		 {.config = 0x400, .config1 = UINT64_C(1) << 31, .config2 = 4321},
		 "SAMPLE_CONFIG(0x401, 0xf10038, 0x10e1) -> EOK"},
		{NULL,
		 {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CACHE_MISSES},
		 "SAMPLE_START(0x401, 0xfa, 0x8,"},
		/* whom the instruction sampler admits */
		{"rock", SYN(0x200, 0, 2), "SAMPLE_CONFIG(0x201, 0x168, 0x1f) -> EOK"},
		{"rock_is",
		 {.sample_period = 50, .flags = KERNEL | HV},
		 "SAMPLE_CONFIG(0x201, 0x168, 0x19) -> EOK"},
		{"rock_is",
		 {.sample_period = 50, .flags = USER | HV},
		 "SAMPLE_CONFIG(0x201, 0x168, 0x1a) -> EOK"},
		{"rock_is",
		 {.sample_period = 50, .flags = USER | KERNEL},
		 "SAMPLE_CONFIG(0x201, 0x168, 0x1c) -> EOK"},
		{"rock_is",
		 {.sample_period = 50, .config = 1, .flags = KERNEL | HV},
		 "SAMPLE_CONFIG(0x201, 0x168, 0x9) -> EOK"},
		{"rock_is",
		 {.sample_period = 50, .config = 2, .flags = KERNEL | HV},
		 "SAMPLE_CONFIG(0x201, 0x168, 0x11) -> EOK"},
		/* which instructions it reports */
		{"rock_is",
		 {.sample_period = 50, .config1 = 0x7f, .config2 = 0x02},
		 "SAMPLE_CONFIG(0x201, 0x170, 0x7f) -> EOK"},
		{"rock_is",
		 {.sample_period = 50, .config1 = 0x7f, .config2 = 0x02},
		 "SAMPLE_CONFIG(0x201, 0x178, 0x2) -> EOK"},
		{"rock_is",
		 {.sample_period = 1023},
		 "SAMPLE_CONFIG(0x201, 0x160, 0xffc00fff) -> EOK"},
		/* which transactions */
		{"rock_l2s",
		 {.sample_period = 250},
		 "SAMPLE_CONFIG(0x401, 0xf10030, 0xff8) -> EOK"},
		{"rock_l2s",
		 {.sample_period = 250, .config = 0x12},
		 "SAMPLE_CONFIG(0x401, 0xf10030, 0xc90) -> EOK"},
		{"rock_l2s",
		 {.sample_period = 250, .config = 1 << 7},
		 "SAMPLE_CONFIG(0x401, 0xf10030, 0x7f8) -> EOK"},
		{"rock_l2s",
		 {.sample_period = 250, .config = 2 << 7},
		 "SAMPLE_CONFIG(0x401, 0xf10030, 0xbf8) -> EOK"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench b;

		bench_open_records(&b, false);
		run_task(&b, 0, 0);
		must_open(&b, rows[i].pmu, rows[i].attr, 100, -1);
		if (!strstr(b.trace, rows[i].call))
			fail_msg("row %zu: no %s in\n%s", i, rows[i].call, b.trace);
		bench_close(&b);
	}
}

/* ---- hits ---- */

static void instr(struct bench *b, const struct quipu_rock_instr *i, uint64_t n)
{
	quipu_rock_instr(b->rock, 0, i, n);
}

/* tl=1: samples at trap level 0 are hits; tl=2: those above it. The others still are samples. */
static void trap_levels_of_an_estimate(void **state)
{
	static const uint64_t want[] = {4000, 3000, 1000, 4000};

	(void)state;
	for (uint64_t tl = 0; tl < 4; tl++) {
		struct quipu_attr a = SYN(0x200, 0, 0x02);
		struct quipu_event *e;
		struct bench b;

		a.config2 = 50 | tl << 17;
		bench_open_records(&b, false);
		run_task(&b, 0, 0);
		e = must_open(&b, "rock", a, 100, -1);
		instr(&b, &(struct quipu_rock_instr){.latency = 1, .typ = QUIPU_ROCK_TYP_LOAD},
		      3000);
		instr(&b,
		      &(struct quipu_rock_instr){.latency = 1, .typ = QUIPU_ROCK_TYP_LOAD, .tl = 2},
		      1000);
		assert_int_equal(value(e), want[tl]);
		bench_close(&b);
	}
}

/* A transaction with an EVT that is neither none nor a pending store is no hit of the cache. */
static void hits_of_the_l2(void **state)
{
	static const struct {
		struct quipu_attr attr;
		uint64_t want;
	} rows[] = {
		{SYN(0x400, 3, 0), 3000},  {SYN(0x400, 2, 0x10), 3000}, {SYN(0x400, 2, 0x01), 0},
		{SYN(0x400, 0, 3), 10000}, {SYN(0x400, 1, 0x10), 4000}, {SYN(0x400, 0, 4), 4000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_attr a = rows[i].attr;
		struct quipu_rock_l2 t = {.requester = RK_PERF_SRC_STRAND,
					  .type = QUIPU_ROCK_L2_STORE,
					  .source = QUIPU_ROCK_LOCAL_L2};
		struct quipu_event *e;
		struct bench b;

		a.config2 = 250;
		bench_open_records(&b, false);
		run_task(&b, 0, 0);
		e = must_open(&b, "rock", a, 100, -1);
		quipu_rock_l2(b.rock, 0, &t, 1000);
		t.evt = 2;
		quipu_rock_l2(b.rock, 0, &t, 2000);
		t.evt = 1;
		quipu_rock_l2(b.rock, 0, &t, 3000);
		t.evt = 3;
		quipu_rock_l2(b.rock, 0, &t, 4000);
		t.evt = 0;
		t.source = QUIPU_ROCK_L3;
		quipu_rock_l2(b.rock, 0, &t, 4000);
		if (value(e) != rows[i].want)
			fail_msg("code 0x%llx: %llu, not %llu", (unsigned long long)a.config1,
				 (unsigned long long)value(e), (unsigned long long)rows[i].want);
		bench_close(&b);
	}
}

/* ---- samples ---- */

static void who_was_sampled(void **state)
{
	static const struct {
		enum quipu_rock_privilege privilege;
		uint16_t misc;
	} rows[] = {
		{QUIPU_ROCK_AT_USER, PERF_RECORD_MISC_USER},
		{QUIPU_ROCK_AT_PRIV, PERF_RECORD_MISC_KERNEL},
		{QUIPU_ROCK_AT_HPRIV, PERF_RECORD_MISC_HYPERVISOR},
	};
	struct quipu_attr a = {.sample_period = 50, .sample_type = PERF_SAMPLE_IP};
	struct bench b;
	struct ring *r;
	uint64_t ip;

	(void)state;
	bench_open_records(&b, false);
	run_task(&b, 0, 0);
	r = map(must_open(&b, "rock_is", a, 100, -1));
	for (size_t i = 0; i < 3; i++)
		instr(&b,
		      &(struct quipu_rock_instr){.pc = 0x4000 + i,
						 .latency = 1,
						 .typ = QUIPU_ROCK_TYP_ALU,
						 .privilege = (uint8_t)rows[i].privilege},
		      50);
	quipu_sched_out(b.core, 0, false);
	for (size_t i = 0; i < 3; i++) {
		assert_true(next_sample(r, &ip, 1));
		assert_int_equal(ip, 0x4000 + i);
		assert_int_equal(r->misc & PERF_RECORD_MISC_CPUMODE_MASK, rows[i].misc);
	}
	bench_close(&b);
	free(r);
}

/* Of each kind of transaction: what perf mem would call it. */
static void what_a_transaction_was(void **state)
{
	static const uint64_t op[QUIPU_ROCK_L2_TYPES] = {
		PERF_MEM_OP_EXEC,   PERF_MEM_OP_LOAD,  PERF_MEM_OP_PFETCH,
		PERF_MEM_OP_PFETCH, PERF_MEM_OP_STORE, PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE,
		PERF_MEM_OP_NA,
	};
	struct quipu_attr a = {.sample_period = 250, .sample_type = PERF_SAMPLE_DATA_SRC};
	struct bench b;
	struct ring *r;

	(void)state;
	bench_open_records(&b, false);
	run_task(&b, 0, 0);
	r = map(must_open(&b, "rock_l2s", a, 100, -1));
	for (unsigned type = 0; type < QUIPU_ROCK_L2_TYPES; type++)
		quipu_rock_l2(b.rock, 0,
			      &(struct quipu_rock_l2){.requester = RK_PERF_SRC_STRAND,
						      .type = (uint8_t)type,
						      .source = QUIPU_ROCK_LOCAL_L2},
			      250);
	quipu_sched_out(b.core, 0, false);
	for (unsigned type = 0; type < QUIPU_ROCK_L2_TYPES; type++) {
		union perf_mem_data_src src;

		assert_true(next_sample(r, (uint64_t *)&src.val, 1));
		assert_int_equal(src.mem_op, op[type]);
		assert_int_equal(src.mem_lvl, PERF_MEM_LVL_L2 | PERF_MEM_LVL_HIT);
	}
	bench_close(&b);
	free(r);
}

/* ---- by signals ---- */

/* Walks of any strand read the L2, on whichever strand the counter is; they are D-cache loads, and
 * nothing else is made by the MMU. */
static void requests_of_the_mmu(void **state)
{
	static const struct {
		uint64_t src, txn, want;
	} rows[] = {
		{8, 0x02, 70}, {8, 0x7f, 70}, {8, 0x7d, 0}, {0xa, 0x02, 70 + 300}, {2, 0x02, 300},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_attr a = {.config = 0x400 | rows[i].txn << 16 | rows[i].src << 32};
		struct quipu_event *e;
		struct bench b;

		bench_open(&b);
		e = must_open(&b, "rock_chip", a, -1, 0);
		feed(&b, 0, QUIPU_SIGNAL_STLB_MISSES, 40, 0);
		feed(&b, 9, QUIPU_SIGNAL_STLB_MISSES, 30, 0);
		feed(&b, 9, QUIPU_SIGNAL_L1D_READ_MISSES, 300, 0);
		feed(&b, 35, QUIPU_SIGNAL_STLB_MISSES, 1000, 0); /* the other chip */
		if (value(e) != rows[i].want)
			fail_msg("row %zu: %llu, not %llu", i, (unsigned long long)value(e),
				 (unsigned long long)rows[i].want);
		bench_close(&b);
	}
}

/* The chips alone, whose samplers follow signals: an element says what the interrupt tells. */
static struct quipu_insn told;

static void on_described(void *arg, const struct quipu_interrupt *irq)
{
	struct quipu_interrupt with = *irq;

	with.insn = told;
	with.addr = 0x7777;
	quipu_rock_interrupt(arg, &with);
}

static void call(struct quipu_rock *r, uint64_t f, uint64_t a0, uint64_t a1, uint64_t a2,
		 uint64_t a3)
{
	assert_int_equal(quipu_rock_hcall(r, 0, f, (uint64_t[4]){a0, a1, a2, a3}, NULL), 0);
}

static void put(struct quipu_rock *r, uint64_t at, uint64_t v, unsigned bytes)
{
	uint8_t *p = quipu_rock_memory(r, 1, at, bytes);

	assert_non_null(p);
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static void elements_by_signals(void **state)
{
	static const struct {
		uint64_t type, filter_va, filter, info_va, ea_va;
		quipu_signal signal;
		struct quipu_insn insn;
		uint64_t info, ea;
	} rows[] = {
#define MMU_ROW(s, ...)                                                                            \
	0x801, QUIPU_ROCK_MMU_TXN_INFO_FILTER, 0x7b, QUIPU_ROCK_MMU_TXN_INFO, QUIPU_ROCK_MMU_EA,   \
		s, {.size = 4, ##__VA_ARGS__}
#define L2_ROW(...)                                                                                \
	0x401, QUIPU_ROCK_L2_TXN_INFO_FILTER, 0xff8, QUIPU_ROCK_L2_TXN_INFO, QUIPU_ROCK_L2_EA,     \
		QUIPU_SIGNAL_L2_TRANSACTIONS,                                                      \
	{                                                                                          \
		.size = 4, ##__VA_ARGS__                                                           \
	}
		{MMU_ROW(QUIPU_SIGNAL_STLB_ACCESSES, .events = QUIPU_INSN_TLB_MISS), 0x29, 0x7777},
		{MMU_ROW(QUIPU_SIGNAL_STLB_ACCESSES,
			 .events = QUIPU_INSN_TLB_MISS | QUIPU_INSN_STLB_MISS),
		 0x2a, 0x7777},
		{MMU_ROW(QUIPU_SIGNAL_STLB_ACCESSES, .events = QUIPU_INSN_FETCH_MISS), 0x31,
		 0x4000},
		{MMU_ROW(QUIPU_SIGNAL_STLB_ACCESSES,
			 .events = QUIPU_INSN_FETCH_MISS | QUIPU_INSN_STLB_MISS),
		 0x32, 0x4000},
		{L2_ROW(.transaction = QUIPU_TRANSACTION_FETCH), UINT64_C(3) << 34 | 1 << 7,
		 0x4000},
		{L2_ROW(.transaction = QUIPU_TRANSACTION_FETCH_PREFETCH),
		 UINT64_C(3) << 34 | 4 << 7, 0x4000},
		{L2_ROW(.transaction = QUIPU_TRANSACTION_LOAD), UINT64_C(3) << 34 | 2 << 7, 0x7777},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_manual_signals *m = quipu_manual_signals_new(1);
		struct quipu_signals *s = quipu_manual_signals_base(m);
		struct quipu_rock *r = quipu_rock_new(&(struct quipu_rock_config){.chips = 1});
		const uint8_t *element;

		assert_true(r && !quipu_rock_bind(r, 0, 1));
		assert_int_equal(quipu_rock_memory_add(r, 1, 0, 0x1000), 0);
		assert_int_equal(quipu_rock_set_version(r, 0, API_GROUP_RKPERF, 1, 0, NULL), 0);
		assert_int_equal(quipu_rock_attach(r, 0, s, 0), 0);
		s->interrupt = on_described;
		s->arg = r;
		put(r, QUIPU_ROCK_RING_SIZE, 64, 4);
		put(r, 0x800, rows[i].info_va, 8);
		put(r, 0x808, rows[i].ea_va, 8);
		call(r, RK_PERF_SAMPLE_INIT, rows[i].type, 0, 0, 0);
		call(r, RK_PERF_SAMPLE_CONFIG, rows[i].type, rows[i].filter_va, rows[i].filter, 0);
		call(r, RK_PERF_SAMPLE_START, rows[i].type, 250, 16, 0x800);
		told = rows[i].insn;
		quipu_manual_signals_feed(m, 0, rows[i].signal, 250, 0x4000);
		element = quipu_rock_memory(r, 1, QUIPU_ROCK_RING_DATA, 16);
		if (bits_be64(element) != rows[i].info || bits_be64(element + 8) != rows[i].ea)
			fail_msg("row %zu: 0x%llx at 0x%llx", i,
				 (unsigned long long)bits_be64(element),
				 (unsigned long long)bits_be64(element + 8));
		quipu_rock_free(r);
		quipu_manual_signals_free(m);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_of_an_event),
		cmocka_unit_test(trap_levels_of_an_estimate),
		cmocka_unit_test(hits_of_the_l2),
		cmocka_unit_test(who_was_sampled),
		cmocka_unit_test(what_a_transaction_was),
		cmocka_unit_test(requests_of_the_mmu),
		cmocka_unit_test(elements_by_signals),
	};

	return cmocka_run_group_tests_name("rock sampling", tests, NULL, NULL);
}
