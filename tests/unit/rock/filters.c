// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a sampler admits and what it reports (Rock sheet 6.2, 6.3), what a counter's filter lets
 * through (5.2), the words of an element by bits; and that a call keeps what is none of its results
 * (section 2).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define BASE   0x100000u
#define LIST   0x108000u
#define SIZE   0x10000u
#define RING   4096u
#define PERIOD 250u
#define INSTR  QUIPU_ROCK_TYPE(RK_PERF_INSTR, RK_PERF_SRC_STRAND)
#define L2     QUIPU_ROCK_TYPE(RK_PERF_L2, RK_PERF_SRC_STRAND)
#define MMU    QUIPU_ROCK_TYPE(RK_PERF_MMU, RK_PERF_SRC_STRAND)
#define YANK   QUIPU_ROCK_TYPE(RK_PERF_YANK, RK_PERF_SRC_STRAND)

static uint64_t call(struct quipu_rock *r, uint64_t f, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t a3)
{
	uint64_t ret = 0;

	assert_int_equal(quipu_rock_hcall(r, 0, f, (uint64_t[4]){a0, a1, a2, a3}, &ret), 0);
	return ret;
}

static uint8_t *memory(struct quipu_rock *r, uint64_t at)
{
	uint8_t *p = quipu_rock_memory(r, 1, at, 8);

	assert_non_null(p);
	return p;
}

static void put(struct quipu_rock *r, uint64_t at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		memory(r, at)[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static struct quipu_rock *chip(void)
{
	struct quipu_rock *r = quipu_rock_new(&(struct quipu_rock_config){.chips = 1});

	assert_non_null(r);
	assert_int_equal(quipu_rock_bind(r, 0, 1), 0);
	assert_int_equal(quipu_rock_memory_add(r, 1, BASE, SIZE), 0);
	assert_int_equal(quipu_rock_set_version(r, 0, API_GROUP_RKPERF, 1, 0, NULL), 0);
	put(r, BASE + QUIPU_ROCK_RING_SIZE, RING, 4);
	return r;
}

struct config {
	uint64_t va, value;
};

static void sample(struct quipu_rock *r, uint64_t type, const struct config *c, uint64_t va)
{
	put(r, LIST, va, 8);
	call(r, RK_PERF_SAMPLE_INIT, type, BASE, 0, 0);
	for (unsigned i = 0; i < 3 && c[i].va; i++)
		call(r, RK_PERF_SAMPLE_CONFIG, type, c[i].va, c[i].value, 0);
	call(r, RK_PERF_SAMPLE_START, type, PERIOD, 8, LIST);
}

/* ---- INSTR ---- */

#define CONTEXT(v)                                                                                 \
	{                                                                                          \
		QUIPU_ROCK_IS_CONTEXT_FILTER, v                                                    \
	}
#define ANYTIME                                                                                    \
	{                                                                                          \
		QUIPU_ROCK_IS_CC_LATENCY_MASK, (uint64_t)PERIOD << 22 | 0xfff                      \
	}
#define INSTR_OF(p, level)                                                                         \
	{                                                                                          \
		.latency = 1, .privilege = QUIPU_ROCK_AT_##p, .tl = level                          \
	}

static void instructions(void **state)
{
	static const struct {
		uint64_t filter;
		struct quipu_rock_instr instr;
		uint64_t mask, match;
		bool taken;
	} rows[] = {
		{0x09, INSTR_OF(USER, 0), 0, 0, true},
		{0x09, INSTR_OF(USER, 1), 0, 0, false},
		{0x09, INSTR_OF(PRIV, 0), 0, 0, false},
		{0x11, INSTR_OF(USER, 0), 0, 0, false},
		{0x11, INSTR_OF(USER, 1), 0, 0, true},
		{0x11, INSTR_OF(USER, 5), 0, 0, true},
		{0x1a, INSTR_OF(PRIV, 2), 0, 0, true},
		{0x1a, INSTR_OF(HPRIV, 2), 0, 0, false},
		{0x1c, INSTR_OF(HPRIV, 0), 0, 0, true},
		{0x07, INSTR_OF(USER, 0), 0, 0, false}, /* no trap level */
		{0x18, INSTR_OF(USER, 0), 0, 0, false}, /* no privilege */
		{0x19, {.latency = 1, .typ = QUIPU_ROCK_TYP_LOAD}, 0x7f, 0x02, true},
		{0x19, {.latency = 1, .typ = QUIPU_ROCK_TYP_STORE}, 0x7f, 0x02, false},
		{0x19,
		 {.latency = 1, .mode = QUIPU_ROCK_MODE_EXECUTE_AHEAD},
		 UINT64_C(7) << 34,
		 UINT64_C(2) << 34,
		 true},
		{0x19,
		 {.latency = 1, .mode = QUIPU_ROCK_MODE_DELAY},
		 UINT64_C(7) << 34,
		 UINT64_C(2) << 34,
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_rock *r = chip();

		sample(r, INSTR, (const struct config[3]){CONTEXT(rows[i].filter), ANYTIME},
		       QUIPU_ROCK_IS_INFO);
		call(r, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_INFO_MASK, rows[i].mask, 0);
		call(r, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_INFO_MATCH, rows[i].match, 0);
		quipu_rock_instr(r, 0, &rows[i].instr, 4 * PERIOD);
		if (call(r, RK_PERF_SAMPLE_PENDING, INSTR, 0, 0, 0) != (rows[i].taken ? 4 : 0))
			fail_msg("row %zu", i);
		quipu_rock_free(r);
	}
}

/* ---- L2 ---- */

static void transactions(void **state)
{
	static const struct {
		uint64_t filter, mask, match;
		struct quipu_rock_l2 t;
		bool taken;
	} rows[] = {
#define T(kind, ...) {.requester = RK_PERF_SRC_STRAND, .type = QUIPU_ROCK_L2_##kind, ##__VA_ARGS__}
		{0xff8, 0, 0, T(ICACHE_LOAD), true},
		{0xff8, 0, 0, T(FLUSH), true},
		{0xc10, 0, 0, T(DCACHE_LOAD), true},
		{0xc10, 0, 0, T(ICACHE_LOAD), false},
		{0xc10, 0, 0, T(INSTR_PREFETCH), false},
		{0xe00, 0, 0, T(FLUSH), true},
		{0xe00, 0, 0, T(ATOMIC), false},
		{0x7f8, 0, 0, T(STORE), true}, /* EVT 0 alone */
		{0x7f8, 0, 0, T(STORE, .evt = 2), false},
		{0xbf8, 0, 0, T(STORE), false}, /* any other EVT alone */
		{0xbf8, 0, 0, T(STORE, .evt = 2), true},
		{0xff8, 0xff00, 0x1200, T(STORE, .ea = 0x1234), true},
		{0xff8, 0xff00, 0x1200, T(STORE, .ea = 0x1334), false},
		{0xff8, 0, 0, {.requester = RK_PERF_SRC_SIU}, false},
		{0xff8, 0, 0, {.requester = RK_PERF_SRC_MMU}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_rock *r = chip();

		sample(r, L2,
		       (const struct config[3]){{QUIPU_ROCK_L2_TXN_INFO_FILTER, rows[i].filter},
						{QUIPU_ROCK_L2_EA_MASK, rows[i].mask},
						{QUIPU_ROCK_L2_EA_MATCH, rows[i].match}},
		       QUIPU_ROCK_L2_EA);
		quipu_rock_l2(r, 0, &rows[i].t, 4 * PERIOD);
		if (call(r, RK_PERF_SAMPLE_PENDING, L2, 0, 0, 0) != (rows[i].taken ? 4 : 0))
			fail_msg("row %zu", i);
		assert_int_equal(bits_be64(memory(r, BASE + 16)), rows[i].taken ? rows[i].t.ea : 0);
		quipu_rock_free(r);
	}
}

/* What is not admitted is no candidate: it brings no sample nearer. */
static void only_the_admitted_are_counted_down(void **state)
{
	const struct quipu_rock_l2 plain = {.requester = RK_PERF_SRC_STRAND, .ea = 1},
				   pending = {.requester = RK_PERF_SRC_STRAND, .ea = 2, .evt = 2};
	struct quipu_rock *r = chip();

	(void)state;
	sample(r, L2, (const struct config[3]){{QUIPU_ROCK_L2_TXN_INFO_FILTER, 0x7f8}},
	       QUIPU_ROCK_L2_EA);
	quipu_rock_l2(r, 0, &plain, PERIOD - 1);
	quipu_rock_l2(r, 0, &pending, 10 * PERIOD + 7);
	assert_int_equal(call(r, RK_PERF_SAMPLE_PENDING, L2, 0, 0, 0), 0);
	quipu_rock_l2(r, 0, &plain, 1);
	assert_int_equal(call(r, RK_PERF_SAMPLE_PENDING, L2, 0, 0, 0), 1);
	assert_int_equal(bits_be64(memory(r, BASE + 16)), 1);
	quipu_rock_free(r);
}

/* ---- MMU: counter and sampler have one filter ---- */

static void lookups(void **state)
{
	static const struct {
		uint64_t filter;
		bool instruction, real, hit, taken;
	} rows[] = {
		{0x7b, true, false, true, true},    {0x7b, false, true, false, true},
		{0x72, true, false, false, true},   {0x72, true, false, true, false},
		{0x72, false, false, false, false}, {0x69, false, false, true, true},
		{0x69, true, false, true, false},   {0x3b, true, false, true, true},
		{0x3b, true, true, true, false},    {0x5b, true, true, true, true},
		{0x5b, true, false, true, false},   {0x1b, true, false, true, false}, /* no kind */
		{0x63, true, false, true, false},				      /* no side */
		{0x78, true, false, true, false}, /* no outcome */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct quipu_rock_mmu m = {.ea = 0x1234,
						 .instruction = rows[i].instruction,
						 .real = rows[i].real,
						 .hit = rows[i].hit};
		struct quipu_rock *r = chip();

		sample(r, MMU,
		       (const struct config[3]){{QUIPU_ROCK_MMU_TXN_INFO_FILTER, rows[i].filter}},
		       QUIPU_ROCK_MMU_TXN_INFO);
		call(r, RK_PERF_COUNT_INIT, MMU, 0, 0, 0);
		call(r, RK_PERF_COUNT_START, MMU, rows[i].filter, 0, 0);
		quipu_rock_mmu(r, 0, &m, 4 * PERIOD);
		if (call(r, RK_PERF_SAMPLE_PENDING, MMU, 0, 0, 0) != (rows[i].taken ? 4 : 0) ||
		    call(r, RK_PERF_COUNT_GET, MMU, 0, 0, 0) != (rows[i].taken ? 4 * PERIOD : 0))
			fail_msg("row %zu", i);
		if (rows[i].taken)
			assert_int_equal(bits_be64(memory(r, BASE + 16)),
					 (rows[i].hit ? 1 : 2) | (rows[i].instruction ? 0x10 : 8) |
						 (rows[i].real ? 0x40 : 0x20));
		quipu_rock_free(r);
	}
}

/* ---- words ---- */

static void context_word(void **state)
{
	const struct quipu_rock_instr i = {
		.latency = 1, .context = 0x1234, .tl = 5, .privilege = QUIPU_ROCK_AT_HPRIV};
	struct quipu_rock *r = chip();

	(void)state;
	sample(r, INSTR, (const struct config[3]){CONTEXT(0x1f), ANYTIME}, QUIPU_ROCK_IS_CONTEXT);
	quipu_rock_instr(r, 0, &i, PERIOD);
	assert_int_equal(bits_be64(memory(r, BASE + 16)), 0x12340000 | 5 << 2 | 2);
	quipu_rock_free(r);
}

static void transaction_word(void **state)
{
	const struct quipu_rock_l2 t = {.requester = RK_PERF_SRC_STRAND,
					.type = QUIPU_ROCK_L2_STORE,
					.evt = 2,
					.source = QUIPU_ROCK_OTHER_L2};
	struct quipu_rock *r = chip();

	(void)state;
	sample(r, L2, (const struct config[3]){{QUIPU_ROCK_L2_TXN_INFO_FILTER, 0xff8}},
	       QUIPU_ROCK_L2_TXN_INFO);
	quipu_rock_l2(r, 0, &t, PERIOD);
	assert_int_equal(bits_be64(memory(r, BASE + 16)),
			 UINT64_C(2) << 34 | 2 << 22 | UINT64_C(0x10) << 7);
	quipu_rock_free(r);
}

/* ---- calls ---- */

/* SET of a counter that never stops: the difference begins anew, running or not. */
static void a_preset_moves_the_checkpoint(void **state)
{
	struct quipu_rock *r = chip();

	(void)state;
	call(r, RK_PERF_COUNT_INIT, YANK, 0, 0, 0);
	call(r, RK_PERF_COUNT_START, YANK, 0, 0, 0);
	quipu_rock_mcc(r, 0, RK_PERF_YANK, 6);
	call(r, RK_PERF_COUNT_SET, YANK, 100, 0, 0);
	assert_int_equal(call(r, RK_PERF_COUNT_GET, YANK, 0, 0, 0), 100);
	quipu_rock_mcc(r, 0, RK_PERF_YANK, 2);
	assert_int_equal(call(r, RK_PERF_COUNT_GET, YANK, 0, 0, 0), 102);
	call(r, RK_PERF_COUNT_STOP, YANK, 0, 0, 0);
	quipu_rock_mcc(r, 0, RK_PERF_YANK, 9);
	call(r, RK_PERF_COUNT_START, YANK, 0, 0, 0);
	quipu_rock_mcc(r, 0, RK_PERF_YANK, 1);
	assert_int_equal(call(r, RK_PERF_COUNT_GET, YANK, 0, 0, 0), 103);
	quipu_rock_free(r);
}

/* No call touches a register that is neither argument nor result of it. */
static void registers_are_kept(void **state)
{
	static const struct {
		uint64_t function;
		unsigned args;
		bool result;
	} rows[] = {
		{RK_PERF_COUNT_INIT, 1, false},	   {RK_PERF_COUNT_START, 2, false},
		{RK_PERF_COUNT_GET, 1, true},	   {RK_PERF_COUNT_OVERFLOW, 1, true},
		{RK_PERF_COUNT_STOP, 1, false},	   {RK_PERF_SAMPLE_PENDING, 1, true},
		{RK_PERF_COUNT_RELEASE, 1, false}, {RK_PERF_SAMPLE_STOP, 1, false},
	};
	struct quipu_rock *r = chip();

	(void)state;
	for (unsigned initialised = 0; initialised < 2; initialised++) {
		if (initialised)
			call(r, RK_PERF_SAMPLE_INIT, INSTR, BASE, 0, 0);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint64_t o[6] = {INSTR, 0xfee1, 0xfee2, 0xfee3, 0xfee4, rows[i].function};

			quipu_rock_trap(r, 0, QUIPU_ROCK_FAST_TRAP, o);
			for (unsigned k = rows[i].result ? 2 : 1; k < 5; k++)
				if (o[k] != 0xfee0 + k)
					fail_msg("function 0x%llx: %%o%u is 0x%llx",
						 (unsigned long long)rows[i].function, k,
						 (unsigned long long)o[k]);
		}
	}
	quipu_rock_free(r);
}

/* Sixteen registers are the most; the same one may be asked for again. */
static void the_longest_list(void **state)
{
	struct quipu_rock *r = chip();
	uint64_t args[4] = {INSTR, PERIOD, 8 * 17, LIST};

	(void)state;
	put(r, BASE + QUIPU_ROCK_RING_SIZE, 2 * 8 * 16 * 17, 4); /* both divide it */
	for (unsigned i = 0; i < 17; i++)
		put(r, LIST + 8 * i, i % 2 ? QUIPU_ROCK_IS_CONTEXT : QUIPU_ROCK_IS_INFO, 8);
	call(r, RK_PERF_SAMPLE_INIT, INSTR, BASE, 0, 0);
	call(r, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_CONTEXT_FILTER, 0x19, 0);
	call(r, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_CC_LATENCY_MASK,
	     (uint64_t)PERIOD << 22 | 0xfff, 0);
	assert_int_equal(quipu_rock_hcall(r, 0, RK_PERF_SAMPLE_START, args, NULL),
			 QUIPU_ROCK_EINVAL);
	call(r, RK_PERF_SAMPLE_START, INSTR, PERIOD, 8 * 16, LIST);
	quipu_rock_instr(
		r, 0,
		&(struct quipu_rock_instr){.typ = QUIPU_ROCK_TYP_ALU, .latency = 1, .context = 3},
		PERIOD);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(bits_be64(memory(r, BASE + 16 + 8 * i)),
				 i % 2 ? 3u << 16 : QUIPU_ROCK_TYP_ALU);
	quipu_rock_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(transactions),
		cmocka_unit_test(only_the_admitted_are_counted_down),
		cmocka_unit_test(lookups),
		cmocka_unit_test(context_word),
		cmocka_unit_test(transaction_word),
		cmocka_unit_test(a_preset_moves_the_checkpoint),
		cmocka_unit_test(registers_are_kept),
		cmocka_unit_test(the_longest_list),
	};

	return cmocka_run_group_tests_name("rock filters", tests, NULL, NULL);
}
