// SPDX-License-Identifier: BSD-2-Clause
/*
 * Corners of the performance event trap and of the ring (Rock sheet 6.4, 7): which strand takes the
 * trap, what happens to an event whose owner is gone or new by then, and when the guest is told of
 * samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define BASE	 0x100000u
#define LIST	 0x108000u
#define SIZE	 0x10000u
#define PERIOD	 50u
#define CYC	 QUIPU_ROCK_TYPE(RK_PERF_CYC, RK_PERF_SRC_STRAND)
#define INSTR	 QUIPU_ROCK_TYPE(RK_PERF_INSTR, RK_PERF_SRC_STRAND)
#define WRAP	 (UINT64_C(1) << 39)
#define COUNTING (QUIPU_ROCK_TOE | QUIPU_ROCK_USER)
#define A	 4u
#define B	 5u

struct bed {
	struct quipu_rock *r;
	unsigned told[32];
	char trace[256]; /* the first line since it was cleared */
};

static void on_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	(void)irq;
	((struct bed *)arg)->told[strand]++;
}

static void on_trace(void *arg, const char *line)
{
	struct bed *b = arg;

	if (!b->trace[0])
		strncpy(b->trace, line, sizeof(b->trace) - 1);
}

static uint64_t call(struct bed *b, unsigned strand, uint64_t f, uint64_t a0, uint64_t a1,
		     uint64_t a2, uint64_t a3)
{
	uint64_t ret = 0;

	assert_int_equal(quipu_rock_hcall(b->r, strand, f, (uint64_t[4]){a0, a1, a2, a3}, &ret), 0);
	return ret;
}

static void put(struct bed *b, uint64_t at, uint64_t v, unsigned bytes)
{
	uint8_t *p = quipu_rock_memory(b->r, 1, at, bytes);

	assert_non_null(p);
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static uint32_t get32(struct bed *b, uint64_t at)
{
	const uint8_t *p = quipu_rock_memory(b->r, 1, at, 4);

	assert_non_null(p);
	return bits_be32(p);
}

/* Strands 4 and 5 are guest 1's, the others nobody's. */
static void open_bed(struct bed *b)
{
	*b = (struct bed){.r = quipu_rock_new(&(struct quipu_rock_config){.chips = 1})};
	assert_non_null(b->r);
	assert_int_equal(quipu_rock_bind(b->r, A, 1), 0);
	assert_int_equal(quipu_rock_bind(b->r, B, 1), 0);
	assert_int_equal(quipu_rock_memory_add(b->r, 1, BASE, SIZE), 0);
	assert_int_equal(quipu_rock_set_version(b->r, A, API_GROUP_RKPERF, 1, 0, NULL), 0);
	quipu_rock_set_handler(b->r, on_interrupt, b);
}

static void count(struct bed *b, unsigned strand, uint64_t left)
{
	call(b, strand, RK_PERF_COUNT_INIT, CYC, 0, 0, 0);
	call(b, strand, RK_PERF_COUNT_SET, CYC, WRAP - left, 0, 0);
	call(b, strand, RK_PERF_COUNT_START, CYC, COUNTING, 0, 0);
}

static void run(struct bed *b, unsigned strand, uint64_t cycles)
{
	quipu_rock_cycles(b->r, strand, QUIPU_ROCK_AT_USER, cycles);
}

/* ---- counters ---- */

static void the_lowest_strand_of_a_guest_takes_the_trap(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	count(&b, B, 10);
	quipu_rock_set_trace(b.r, on_trace, &b);
	run(&b, B, 10);
	assert_string_equal(b.trace, "strand 4: performance event trap of chip 0: counter CYC, "
				     "responsible strand 5, cross-call");
	quipu_rock_free(b.r);
}

static void each_overflow_counts_once(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	count(&b, A, 10);
	run(&b, A, 10);
	call(&b, A, RK_PERF_COUNT_SET, CYC, WRAP - 10, 0, 0);
	run(&b, A, 10);
	assert_int_equal(call(&b, A, RK_PERF_COUNT_OVERFLOW, CYC, 0, 0, 0), 2);
	call(&b, A, RK_PERF_COUNT_SET, CYC, WRAP - 10, 0, 0);
	run(&b, A, 10);
	assert_int_equal(call(&b, A, RK_PERF_COUNT_OVERFLOW, CYC, 0, 0, 0), 1);
	assert_int_equal(b.told[A], 3);
	quipu_rock_free(b.r);
}

/* The event was the last owner's: the next one, or the same that began anew, has not overflowed. */
static void an_event_is_not_inherited(void **state)
{
	(void)state;
	for (unsigned next = A; next <= B; next++) {
		struct bed b;

		open_bed(&b);
		count(&b, A, 10);
		quipu_rock_hold(b.r, true);
		run(&b, A, 10);
		call(&b, A, RK_PERF_COUNT_RELEASE, CYC, 0, 0, 0);
		count(&b, next, 1000);
		quipu_rock_hold(b.r, false);
		assert_int_equal(b.told[A] + b.told[B], 0);
		assert_int_equal(call(&b, next, RK_PERF_COUNT_OVERFLOW, CYC, 0, 0, 0), 0);
		run(&b, next, 1000);
		assert_int_equal(b.told[next], 1);
		quipu_rock_free(b.r);
	}
}

/* ---- samplers ---- */

static void sample(struct bed *b, uint32_t elements, uint32_t tail, uint32_t hwm)
{
	put(b, BASE + QUIPU_ROCK_RING_HEAD, tail, 4);
	put(b, BASE + QUIPU_ROCK_RING_TAIL, tail, 4);
	put(b, BASE + QUIPU_ROCK_RING_SIZE, 16 * elements, 4);
	put(b, BASE + QUIPU_ROCK_RING_HWM, hwm, 4);
	put(b, LIST, QUIPU_ROCK_IS_INFO, 8);
	put(b, LIST + 8, QUIPU_ROCK_IS_CONTEXT, 8);
	call(b, A, RK_PERF_SAMPLE_INIT, INSTR, BASE, 0, 0);
	call(b, A, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_CONTEXT_FILTER, 0x19, 0);
	call(b, A, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_CC_LATENCY_MASK,
	     PERIOD << 22 | 0xfff, 0);
	call(b, A, RK_PERF_SAMPLE_START, INSTR, PERIOD, 16, LIST);
}

static void samples(struct bed *b, unsigned n)
{
	const struct quipu_rock_instr i = {.latency = 1, .typ = QUIPU_ROCK_TYP_ALU};

	quipu_rock_instr(b->r, A, &i, (uint64_t)PERIOD * n);
}

/* Where the guest wants to be told, and after how many samples it is. */
static void the_mark(void **state)
{
	static const struct {
		uint32_t tail, hwm;
		unsigned first; /* 0: not before the ring is full, with the eighth */
	} rows[] = {
		{0, 64, 4},
		{0, 16, 1},
		{0, 72, 5},	       /* between two elements: passed */
		{0, 8, 1},	       /* so is this */
		{64, 0, 4},	       /* around the end */
		{96, 32, 4},	       /* and on */
		{96, 40, 5},	       /* and passed there */
		{0, 128 + 64, 4},      /* a mark beyond the end is a round further */
		{96, 128 + 32, 4},     /* whichever side of the tail it is on */
		{0, 2 * 128 + 64, 0},  /* nowhere */
		{0, UINT32_C(~0), 0},  /* nowhere */
		{16, 128 + 16 + 8, 1}, /* passed at once */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned n = 0, want = rows[i].first ? rows[i].first : 8;
		struct bed b;

		open_bed(&b);
		sample(&b, 8, rows[i].tail, rows[i].hwm);
		while (!b.told[A] && n < 20) {
			samples(&b, 1);
			n++;
		}
		if (n != want)
			fail_msg("row %zu: told at sample %u, not %u", i, n, want);
		quipu_rock_free(b.r);
	}
}

/* Full is told once, and once more after the guest has taken something. */
static void full_is_told_once_a_drain(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	sample(&b, 8, 0, 1024); /* no mark */
	samples(&b, 7);
	assert_int_equal(b.told[A], 0);
	samples(&b, 5);
	assert_int_equal(b.told[A], 1);
	put(&b, BASE + QUIPU_ROCK_RING_HEAD, 48, 4); /* three of seven */
	samples(&b, 3);
	assert_int_equal(b.told[A], 1);
	samples(&b, 4);
	assert_int_equal(b.told[A], 2);
	assert_int_equal(call(&b, A, RK_PERF_SAMPLE_PENDING, INSTR, 0, 0, 0), 10);
	assert_int_equal(quipu_rock_dropped(b.r, 0, RK_PERF_INSTR), 9);
	assert_int_equal(get32(&b, BASE + QUIPU_ROCK_RING_TAIL), 32);
	quipu_rock_free(b.r);
}

/* The sampler has stopped for good: memory that comes back at the same address is not written. */
static void memory_that_went_away_stops_the_sampler(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	sample(&b, 8, 0, 64);
	assert_int_equal(quipu_rock_memory_remove(b.r, 1, BASE), 0);
	samples(&b, 1);
	assert_int_equal(quipu_rock_memory_add(b.r, 1, BASE, SIZE), 0);
	samples(&b, 5);
	assert_int_equal(get32(&b, BASE + QUIPU_ROCK_RING_TAIL), 0);
	assert_int_equal(call(&b, A, RK_PERF_SAMPLE_PENDING, INSTR, 0, 0, 0), 0);
	assert_int_equal(b.told[A], 0);
	call(&b, A, RK_PERF_SAMPLE_RELEASE, INSTR, 0, 0, 0);
	quipu_rock_free(b.r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_strand_of_a_guest_takes_the_trap),
		cmocka_unit_test(each_overflow_counts_once),
		cmocka_unit_test(an_event_is_not_inherited),
		cmocka_unit_test(the_mark),
		cmocka_unit_test(full_is_told_once_a_drain),
		cmocka_unit_test(memory_that_went_away_stops_the_sampler),
	};

	return cmocka_run_group_tests_name("rock traps", tests, NULL, NULL);
}
