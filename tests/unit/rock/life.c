// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whole lives of counters and samplers, the order of what happens at an event, counters that follow
 * an engine's signals, and the rest of what a user of quipu/rock.h would miss.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define BASE 0x100000u
#define LIST 0x108000u
#define SIZE 0x10000u

struct bed {
	struct quipu_rock *r;
	unsigned told[64];
	uint64_t told_pc;
	char trace[8192];
	char console[16];
};

static void on_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct bed *b = arg;

	b->told[strand]++;
	b->told_pc = irq ? irq->pc : 0;
}

static void on_signal(void *arg, const struct quipu_interrupt *irq)
{
	quipu_rock_interrupt(arg, irq);
}

static void on_trace(void *arg, const char *line)
{
	struct bed *b = arg;
	size_t n = strlen(b->trace);

	snprintf(b->trace + n, sizeof(b->trace) - n, "%s\n", line);
}

static void on_console(void *arg, unsigned guest, char c)
{
	struct bed *b = arg;
	size_t n = strlen(b->console);

	assert_int_equal(guest, 1);
	if (n + 1 < sizeof(b->console))
		b->console[n] = c;
}

static uint64_t call(struct bed *b, unsigned strand, uint64_t f, uint64_t a0, uint64_t a1,
		     uint64_t a2, uint64_t a3)
{
	return quipu_rock_hcall(b->r, strand, f, (uint64_t[4]){a0, a1, a2, a3}, NULL);
}

static uint64_t get(struct bed *b, unsigned strand, uint64_t f, uint64_t type)
{
	uint64_t v = 0;

	assert_int_equal(quipu_rock_hcall(b->r, strand, f, (uint64_t[4]){type}, &v), 0);
	return v;
}

static uint8_t *memory(struct bed *b, uint64_t at)
{
	uint8_t *p = quipu_rock_memory(b->r, 1, at, 8);

	assert_non_null(p);
	return p;
}

static void put(struct bed *b, uint64_t at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		memory(b, at)[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static void open_bed(struct bed *b, const struct quipu_rock_config *c)
{
	*b = (struct bed){.r = quipu_rock_new(c)};
	assert_non_null(b->r);
	for (unsigned s = 0; s < quipu_rock_strands(b->r); s++)
		assert_int_equal(quipu_rock_bind(b->r, s, 1), 0);
	assert_int_equal(quipu_rock_memory_add(b->r, 1, BASE, SIZE), 0);
	assert_int_equal(quipu_rock_set_version(b->r, 0, API_GROUP_RKPERF, 1, 0, NULL), 0);
	quipu_rock_set_handler(b->r, on_interrupt, b);
}

static const struct quipu_rock_config one = {.chips = 1}, two = {.chips = 2};

/*
 * INIT, START, run, overflow, OVERFLOW, GET, STOP, SET on another strand to go on from there,
 * RELEASE.
 */
static void life_of_a_counter(void **state)
{
	const uint64_t t = QUIPU_ROCK_TYPE(RK_PERF_INSTR, RK_PERF_SRC_STRAND), width = UINT64_C(1)
										       << 39;
	const struct quipu_rock_instr i = {.pc = 0x4000, .latency = 1, .typ = QUIPU_ROCK_TYP_ALU};
	struct bed b;
	uint64_t carried;

	(void)state;
	open_bed(&b, &two);
	assert_int_equal(call(&b, 4, RK_PERF_COUNT_INIT, t, 0, 0, 0), 0);
	assert_int_equal(call(&b, 4, RK_PERF_COUNT_SET, t, width - 600, 0, 0), 0);
	assert_int_equal(
		call(&b, 4, RK_PERF_COUNT_START, t, QUIPU_ROCK_TOE | QUIPU_ROCK_USER, 0, 0), 0);
	quipu_rock_instr(b.r, 4, &i, 599);
	assert_int_equal(b.told[4], 0);
	quipu_rock_instr(b.r, 4, &i, 401);
	assert_int_equal(b.told[4], 1);
	assert_int_equal(get(&b, 4, RK_PERF_COUNT_OVERFLOW, t), 1);
	assert_int_equal(get(&b, 4, RK_PERF_COUNT_OVERFLOW, t), 0);
	assert_int_equal(call(&b, 4, RK_PERF_COUNT_STOP, t, 0, 0, 0), 0);
	quipu_rock_instr(b.r, 4, &i, 50);
	carried = get(&b, 4, RK_PERF_COUNT_GET, t);
	assert_int_equal(carried, 400);
	assert_int_equal(call(&b, 40, RK_PERF_COUNT_INIT, t, 0, 0, 0), 0);
	assert_int_equal(call(&b, 40, RK_PERF_COUNT_SET, t, carried, 0, 0), 0);
	assert_int_equal(call(&b, 40, RK_PERF_COUNT_START, t, QUIPU_ROCK_USER, 0, 0), 0);
	quipu_rock_instr(b.r, 40, &i, 25);
	quipu_rock_instr(b.r, 4, &i, 25);
	assert_int_equal(get(&b, 40, RK_PERF_COUNT_GET, t), 425);
	assert_int_equal(call(&b, 4, RK_PERF_COUNT_RELEASE, t, 0, 0, 0), 0);
	assert_int_equal(call(&b, 40, RK_PERF_COUNT_RELEASE, t, 0, 0, 0), 0);
	assert_int_equal(quipu_rock_owner(b.r, 0, RK_PERF_INSTR), -1);
	assert_int_equal(quipu_rock_owner(b.r, 1, RK_PERF_INSTR), -1);
	quipu_rock_free(b.r);
}

static void start_sampler(struct bed *b, const uint64_t *list, unsigned n, uint32_t size,
			  uint64_t frequency)
{
	put(b, BASE + QUIPU_ROCK_RING_SIZE, size, 4);
	put(b, BASE + QUIPU_ROCK_RING_HWM, size / 2, 4);
	for (unsigned i = 0; i < n; i++)
		put(b, LIST + 8 * i, list[i], 8);
	assert_int_equal(call(b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), 0);
	assert_int_equal(
		call(b, 0, RK_PERF_SAMPLE_CONFIG, 0x201, QUIPU_ROCK_IS_CONTEXT_FILTER, 0x19, 0), 0);
	assert_int_equal(call(b, 0, RK_PERF_SAMPLE_CONFIG, 0x201, QUIPU_ROCK_IS_CC_LATENCY_MASK,
			      frequency << 22 | 0xfff, 0),
			 0);
	assert_int_equal(call(b, 0, RK_PERF_SAMPLE_START, 0x201, frequency, 8 * n, LIST), 0);
}

/*
 * Elements in the order of the VA list; the consumer drains at its own pace; nothing is lost until
 * the ring is full.
 */
static void life_of_a_sampler(void **state)
{
	static const uint64_t list[] = {QUIPU_ROCK_IS_PC, QUIPU_ROCK_IS_INFO,
					QUIPU_ROCK_IS_LATENCY};
	const unsigned elements = 10, bytes = 24;
	uint32_t head = 0;
	uint64_t found = 0, pending = 0, fed = 0;
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	start_sampler(&b, list, 3, elements * bytes, 50);
	for (unsigned round = 0; round < 200; round++) {
		struct quipu_rock_instr i = {
			.pc = 0x1000 + round, .latency = 3, .typ = QUIPU_ROCK_TYP_FP};
		unsigned n = 50 * (round % 9 + 1);
		uint32_t tail;

		quipu_rock_instr(b.r, 0, &i, n);
		fed += n / 50;
		tail = bits_be32(memory(&b, BASE + QUIPU_ROCK_RING_TAIL));
		for (; head != tail; head = (head + bytes) % (elements * bytes), found++) {
			const uint8_t *e = memory(&b, BASE + QUIPU_ROCK_RING_DATA + head);

			assert_int_equal(bits_be64(e), 0x1000 + round);
			assert_int_equal(bits_be64(e + 8), QUIPU_ROCK_TYP_FP);
			assert_int_equal(bits_be64(e + 16), 3);
		}
		put(&b, BASE + QUIPU_ROCK_RING_HEAD, head, 4);
		pending += get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201);
	}
	assert_int_equal(found, fed);
	assert_int_equal(pending, fed);
	assert_int_equal(quipu_rock_dropped(b.r, 0, RK_PERF_INSTR), 0);

	/* The consumer stops. Nine fit; the others are dropped; the nine are as they were. */
	for (unsigned k = 0; k < 25; k++)
		quipu_rock_instr(b.r, 0, &(struct quipu_rock_instr){.pc = 0x9000 + k, .latency = 3},
				 50);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201), 9);
	assert_int_equal(quipu_rock_dropped(b.r, 0, RK_PERF_INSTR), 16);
	for (unsigned k = 0; k < 9; k++)
		assert_int_equal(
			bits_be64(memory(&b, BASE + QUIPU_ROCK_RING_DATA +
						     (head + k * bytes) % (elements * bytes))),
			0x9000 + k);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_STOP, 0x201, 0, 0, 0), 0);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_RELEASE, 0x201, 0, 0, 0), 0);
	quipu_rock_free(b.r);
}

/* The trap strand, the cross-call, counting on again, and only then the guest. */
static void order_of_an_event(void **state)
{
	static const char want[] = "strand 0: performance event trap of chip 0: counter INSTR, "
				   "responsible strand 5, cross-call\n"
				   "strand 5: counter INSTR: overflow +1, counts on from 0x0\n"
				   "strand 5: interrupt level 15 (pic overflow) of guest 1\n";
	const struct quipu_rock_instr i = {.latency = 1};
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	call(&b, 5, RK_PERF_COUNT_INIT, 0x201, 0, 0, 0);
	call(&b, 5, RK_PERF_COUNT_SET, 0x201, (UINT64_C(1) << 39) - 10, 0, 0);
	call(&b, 5, RK_PERF_COUNT_START, 0x201, QUIPU_ROCK_TOE | QUIPU_ROCK_USER, 0, 0);
	quipu_rock_set_trace(b.r, on_trace, &b);
	quipu_rock_instr(b.r, 5, &i, 10);
	assert_string_equal(b.trace, want);
	b.trace[0] = '\0';
	call(&b, 5, RK_PERF_COUNT_GET, 0x201, 0, 0, 0);
	call(&b, 6, RK_PERF_COUNT_SET, 0x201, 1, 0, 0);
	assert_string_equal(b.trace, "strand 5: RK_PERF_COUNT_GET(0x201) -> EOK, 0x0\n"
				     "strand 6: RK_PERF_COUNT_SET(0x201, 0x1) -> ENOACCESS\n");
	quipu_rock_free(b.r);
}

/* A sample: the ring first, the candidate counter next, the guest (at its mark) last. */
static void order_of_a_sample(void **state)
{
	static const uint64_t list[] = {QUIPU_ROCK_IS_INFO};
	static const char want[] =
		"strand 0: performance event trap of chip 0: sampler INSTR, responsible strand 0\n"
		"strand 0: sampler INSTR: element at 0, tail 8\n"
		"strand 0: sampler INSTR: restarted, 50 candidates to go\n"
		"strand 0: interrupt level 15 (pic overflow) of guest 1\n";
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	start_sampler(&b, list, 1, 16, 50);
	quipu_rock_set_trace(b.r, on_trace, &b);
	quipu_rock_instr(b.r, 0, &(struct quipu_rock_instr){.latency = 1}, 50);
	assert_string_equal(b.trace, want);
	quipu_rock_free(b.r);
}

/* Registers that no public document gives can be switched off. */
static void strict_has_public_registers_only(void **state)
{
	static const uint64_t model[] = {QUIPU_ROCK_IS_PC, QUIPU_ROCK_IS_EA, QUIPU_ROCK_IS_LATENCY};

	(void)state;
	for (unsigned strict = 0; strict < 2; strict++) {
		struct bed b;

		open_bed(&b, &(struct quipu_rock_config){.chips = 1, .strict = strict});
		start_sampler(&b, (const uint64_t[]){QUIPU_ROCK_IS_INFO, QUIPU_ROCK_IS_CONTEXT}, 2,
			      4096, 50);
		for (unsigned i = 0; i < 3; i++) {
			put(&b, LIST, model[i], 8);
			assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_START, 0x201, 50, 8, LIST),
					 strict ? QUIPU_ROCK_EINVAL : QUIPU_ROCK_EOK);
		}
		assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x801, BASE, 0, 0), 0);
		assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_CONFIG, 0x801, QUIPU_ROCK_MMU_EA_MASK,
				      0, 0),
				 strict ? QUIPU_ROCK_EINVAL : QUIPU_ROCK_EOK);
		quipu_rock_free(b.r);
	}
}

/* Mask and match are tests on the sample that was due, not on what is counted down. */
static void reports_are_filtered_after_the_countdown(void **state)
{
	static const uint64_t list[] = {QUIPU_ROCK_IS_PC};
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	start_sampler(&b, list, 1, 4096, 50);
	call(&b, 0, RK_PERF_SAMPLE_CONFIG, 0x201, QUIPU_ROCK_IS_PC_MASK, 0xff00, 0);
	call(&b, 0, RK_PERF_SAMPLE_CONFIG, 0x201, QUIPU_ROCK_IS_PC_MATCH, 0x1200, 0);
	quipu_rock_instr(b.r, 0, &(struct quipu_rock_instr){.pc = 0x1300, .latency = 1}, 100);
	quipu_rock_instr(b.r, 0, &(struct quipu_rock_instr){.pc = 0x1234, .latency = 1}, 100);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201), 2);
	assert_int_equal(bits_be64(memory(&b, BASE + 16)), 0x1234);
	/* Latency: bits that are not in the mask drop a sample. */
	call(&b, 0, RK_PERF_SAMPLE_CONFIG, 0x201, QUIPU_ROCK_IS_CC_LATENCY_MASK,
	     UINT64_C(50) << 22 | 0xff0, 0);
	quipu_rock_instr(b.r, 0, &(struct quipu_rock_instr){.pc = 0x1234, .latency = 15}, 100);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201), 0);
	quipu_rock_instr(b.r, 0, &(struct quipu_rock_instr){.pc = 0x1234, .latency = 16}, 100);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201), 2);
	quipu_rock_free(b.r);
}

/* Bits of EVT that mean nothing for a type of instruction are not in INFO. */
static void events_fit_the_instruction(void **state)
{
	static const struct {
		uint8_t typ;
		uint64_t evt;
	} rows[] = {
		{QUIPU_ROCK_TYP_LOAD, 0xb6f},
		{QUIPU_ROCK_TYP_STORE, 0x874},
		{QUIPU_ROCK_TYP_CTI, 0xce0},
		{QUIPU_ROCK_TYP_ALU, 0x860},
		{QUIPU_ROCK_TYP_LOAD | QUIPU_ROCK_TYP_STORE, 0xb7f},
		{QUIPU_ROCK_TYP_FP, 0x860},
	};
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	start_sampler(&b, (const uint64_t[]){QUIPU_ROCK_IS_INFO}, 1, 4096, 50);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		quipu_rock_instr(
			b.r, 0,
			&(struct quipu_rock_instr){.typ = rows[i].typ, .evt = 0xfff, .latency = 1},
			50);
		assert_int_equal(bits_be64(memory(&b, BASE + 16 + 8 * i)),
				 rows[i].typ | rows[i].evt << 7);
	}
	quipu_rock_free(b.r);
}

/* Counters that an engine's signals move: right at any moment, overflow at the very instruction. */
static void counters_follow_signals(void **state)
{
	struct quipu_manual_signals *m = quipu_manual_signals_new(64);
	struct quipu_signals *s = quipu_manual_signals_base(m);
	struct bed b;

	(void)state;
	open_bed(&b, &two);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(quipu_rock_attach(b.r, i, s, i), 0);
	s->interrupt = on_signal;
	s->arg = b.r;
	quipu_manual_signals_feed(m, 3, QUIPU_SIGNAL_INSTRUCTIONS, 1000, 0x10);
	assert_int_equal(call(&b, 3, RK_PERF_COUNT_INIT, 0x201, 0, 0, 0), 0);
	assert_int_equal(call(&b, 3, RK_PERF_COUNT_SET, 0x201, (UINT64_C(1) << 39) - 700, 0, 0), 0);
	assert_int_equal(
		call(&b, 3, RK_PERF_COUNT_START, 0x201, QUIPU_ROCK_TOE | QUIPU_ROCK_USER, 0, 0), 0);
	quipu_manual_signals_feed(m, 3, QUIPU_SIGNAL_INSTRUCTIONS, 699, 0x20);
	quipu_manual_signals_feed(m, 4, QUIPU_SIGNAL_INSTRUCTIONS, 5000, 0x30);
	assert_int_equal(b.told[3], 0);
	assert_int_equal(get(&b, 3, RK_PERF_COUNT_GET, 0x201), (UINT64_C(1) << 39) - 1);
	quipu_manual_signals_feed(m, 3, QUIPU_SIGNAL_INSTRUCTIONS, 1, 0x40);
	assert_int_equal(b.told[3], 1);
	assert_int_equal(b.told_pc, 0x40);
	assert_int_equal(get(&b, 3, RK_PERF_COUNT_OVERFLOW, 0x201), 1);
	quipu_manual_signals_feed(m, 3, QUIPU_SIGNAL_INSTRUCTIONS, 44, 0x50);
	assert_int_equal(get(&b, 3, RK_PERF_COUNT_GET, 0x201), 44);
	/* Kernel time is none: the filter without user counts nothing. */
	assert_int_equal(call(&b, 3, RK_PERF_COUNT_START, 0x201, QUIPU_ROCK_PRIV, 0, 0), 0);
	quipu_manual_signals_feed(m, 3, QUIPU_SIGNAL_INSTRUCTIONS, 44, 0x50);
	assert_int_equal(get(&b, 3, RK_PERF_COUNT_GET, 0x201), 44);
	quipu_rock_free(b.r);
	quipu_manual_signals_free(m);
}

/*
 * A sum over the strands of a chip, of several signals and weights, overflows neither early nor
 * late.
 */
static void a_sum_of_signals_overflows_on_time(void **state)
{
	const uint64_t limit = 5000, top = UINT64_C(1) << 48;
	struct quipu_manual_signals *m = quipu_manual_signals_new(32);
	struct quipu_signals *s = quipu_manual_signals_base(m);
	uint64_t seed = 7, sum = 0;
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(quipu_rock_attach(b.r, i, s, i), 0);
	s->interrupt = on_signal;
	s->arg = b.r;
	assert_int_equal(call(&b, 0, RK_PERF_COUNT_INIT, 0x402, 0, 0, 0), 0);
	assert_int_equal(call(&b, 0, RK_PERF_COUNT_SET, 0x402, top - limit, 0, 0), 0);
	/* Loads, and instruction fetches with the prefetches that each of them brings. */
	assert_int_equal(call(&b, 0, RK_PERF_COUNT_START, 0x402, QUIPU_ROCK_TOE | 7, 0, 0), 0);
	while (!b.told[0]) {
		bool fetch;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		fetch = seed >> 40 & 1;
		quipu_manual_signals_feed(
			m, (unsigned)(seed >> 50) % 32,
			fetch ? QUIPU_SIGNAL_L1I_MISSES : QUIPU_SIGNAL_L1D_READ_MISSES, 1, 0);
		sum += fetch ? 2 : 1;
		assert_true(sum <= limit + 1);
		assert_int_equal(b.told[0], sum >= limit);
	}
	assert_int_equal(get(&b, 0, RK_PERF_COUNT_GET, 0x402), sum - limit);
	quipu_rock_free(b.r);
	quipu_manual_signals_free(m);
}

/* Each frequency-th instruction, with its address, and nothing told before the mark. */
static void the_sampler_follows_signals(void **state)
{
	struct quipu_manual_signals *m = quipu_manual_signals_new(1);
	struct quipu_signals *s = quipu_manual_signals_base(m);
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	quipu_rock_attach(b.r, 0, s, 0);
	s->interrupt = on_signal;
	s->arg = b.r;
	start_sampler(&b, (const uint64_t[]){QUIPU_ROCK_IS_PC}, 1, 80, 60);
	for (unsigned i = 0; i < 4; i++)
		quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_LABELLED, 60, 0x100 + i);
	assert_int_equal(b.told[0], 0);
	quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_LABELLED, 59, 0x200);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201), 4);
	quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_LABELLED, 1, 0x201);
	assert_int_equal(b.told[0], 1);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x201), 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(bits_be64(memory(&b, BASE + 16 + 8 * i)), 0x100 + i);
	assert_int_equal(bits_be64(memory(&b, BASE + 16 + 32)), 0x201);
	quipu_rock_free(b.r);
	quipu_manual_signals_free(m);
}

/* ---- what an engine tells of the instruction ---- */

static struct quipu_insn told_insn;
static uint64_t told_addr;

static void on_described(void *arg, const struct quipu_interrupt *irq)
{
	struct quipu_interrupt with = *irq;

	with.insn = told_insn;
	with.addr = told_addr;
	quipu_rock_interrupt(arg, &with);
}

static void an_element_says_what_the_engine_tells(void **state)
{
	static const struct {
		struct quipu_insn insn;
		uint64_t info; /* rock sheet 6.2 */
	} rows[] = {
		{{.size = 4, .class = QUIPU_INSN_ALU}, 0x20},
		{{.size = 4, .class = QUIPU_INSN_MUL}, 0x40},
		{{.size = 4, .class = QUIPU_INSN_FMUL}, 0x10},
		{{.size = 4, .class = QUIPU_INSN_FSTORE}, 0x04},
		{{.size = 4, .class = QUIPU_INSN_AMO}, 0x06},
		/* case 77: a load with a D$ miss in execute-ahead mode */
		{{.size = 4,
		  .class = QUIPU_INSN_LOAD,
		  .events = QUIPU_INSN_L1_MISS,
		  .mode = QUIPU_MODE_AHEAD},
		 0x800000082},
		{{.size = 4, .class = QUIPU_INSN_ALU, .mode = QUIPU_MODE_SCOUT}, 0x1400000020},
		{{.size = 4,
		  .class = QUIPU_INSN_BRANCH,
		  .events = QUIPU_INSN_RESOLVED | QUIPU_INSN_TAKEN},
		 0x08 | 0x480 << 7},
		{{.size = 4, .class = QUIPU_INSN_BRANCH, .events = QUIPU_INSN_MISPREDICTED}, 0x08},
		/* a miss of the data cache is nothing of a store's */
		{{.size = 4, .class = QUIPU_INSN_STORE, .events = QUIPU_INSN_L1_MISS}, 0x04},
		{{.size = 4,
		  .class = QUIPU_INSN_STORE,
		  .events = QUIPU_INSN_TLB_MISS | QUIPU_INSN_STORES_FULL | QUIPU_INSN_STALLED},
		 0x04 | 0x034 << 7},
		{{.size = 4,
		  .class = QUIPU_INSN_LOAD,
		  .events = QUIPU_INSN_PRIOR_MISS | QUIPU_INSN_LOADS_FULL | QUIPU_INSN_BYPASS |
			    QUIPU_INSN_NO_BYPASS | QUIPU_INSN_FROM_QUEUE | QUIPU_INSN_FAILED},
		 0x02 | 0xb4a << 7},
		{{0}, 0}, /* nothing is known */
	};
	struct quipu_manual_signals *m = quipu_manual_signals_new(1);
	struct quipu_signals *s = quipu_manual_signals_base(m);
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	quipu_rock_attach(b.r, 0, s, 0);
	s->interrupt = on_described;
	s->arg = b.r;
	start_sampler(
		&b, (const uint64_t[]){QUIPU_ROCK_IS_INFO, QUIPU_ROCK_IS_EA, QUIPU_ROCK_IS_LATENCY},
		3, 24 * 40, 50);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t *at = memory(&b, BASE + 16 + 24 * i);

		told_insn = rows[i].insn;
		told_insn.latency = (uint16_t)(5000 * i);
		told_addr = 0x1000 * i;
		quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_LABELLED, 50, 0x100);
		if (bits_be64(at) != rows[i].info)
			fail_msg("row %zu: INFO 0x%llx, not 0x%llx", i,
				 (unsigned long long)bits_be64(at),
				 (unsigned long long)rows[i].info);
		assert_int_equal(bits_be64(at + 8), told_addr);
		assert_int_equal(bits_be64(at + 16), i ? 0xfff : 0); /* 12 bits, strand 0 */
	}
	quipu_rock_free(b.r);
	quipu_manual_signals_free(m);
}

static void a_transaction_says_what_the_engine_tells(void **state)
{
	static const struct {
		uint8_t kind;
		uint32_t events;
		uint64_t info;
	} rows[] = {
		/* cases 75 and 76 */
		{QUIPU_TRANSACTION_LOAD,
		 QUIPU_INSN_L1_MISS | QUIPU_INSN_L2_MISS | QUIPU_INSN_LL_MISS, 0x100},
		{QUIPU_TRANSACTION_LOAD, QUIPU_INSN_L1_MISS, 0xc00000100},
		{QUIPU_TRANSACTION_LOAD, QUIPU_INSN_L1_MISS | QUIPU_INSN_L2_MISS, 0x400000100},
		{QUIPU_TRANSACTION_LOAD, QUIPU_INSN_L1_MISS | QUIPU_INSN_STORE_PENDING,
		 0xc00000100 | 2 << 22},
		{QUIPU_TRANSACTION_FETCH, QUIPU_INSN_L1_MISS, 0xc00000080},
		{QUIPU_TRANSACTION_FETCH_PREFETCH, QUIPU_INSN_L1_MISS, 0xc00000200},
		{QUIPU_TRANSACTION_STORE_PREFETCH, QUIPU_INSN_L1_MISS, 0xc00000400},
		{QUIPU_TRANSACTION_STORE, 0, 0xc00000800},
		{QUIPU_TRANSACTION_ATOMIC, 0, 0xc00001000},
		{QUIPU_TRANSACTION_FLUSH, 0, 0xc00002000},
	};
	struct quipu_manual_signals *m = quipu_manual_signals_new(1);
	struct quipu_signals *s = quipu_manual_signals_base(m);
	const struct {
		uint64_t va, value;
	} registers[] = {{QUIPU_ROCK_L2_EA_MASK, 0},
			 {QUIPU_ROCK_L2_TXN_INFO_FILTER, 0xff8},
			 {QUIPU_ROCK_L2_CC, 250}};
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	quipu_rock_attach(b.r, 0, s, 0);
	s->interrupt = on_described;
	s->arg = b.r;
	for (unsigned i = 0; i < 4; i++)
		memory(&b, BASE + 4 * i)[3] = 0;
	memory(&b, BASE + 8)[2] = 1; /* 256 bytes */
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x401, BASE, 0, 0), 0);
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_CONFIG, 0x401, registers[i].va,
				      registers[i].value, 0),
				 0);
	memory(&b, BASE + 0x800)[5] = 0xf1;
	memory(&b, BASE + 0x800)[7] = 0x10;
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_START, 0x401, 250, 8, BASE + 0x800), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t *at = memory(&b, BASE + 16 + 8 * i);

		told_insn = (struct quipu_insn){.size = 4,
						.class = QUIPU_INSN_LOAD,
						.events = rows[i].events,
						.transaction = rows[i].kind};
		quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_L2_TRANSACTIONS, 250, 0x100);
		if (bits_be64(at) != rows[i].info)
			fail_msg("row %zu: TXN_INFO 0x%llx, not 0x%llx", i,
				 (unsigned long long)bits_be64(at),
				 (unsigned long long)rows[i].info);
	}
	/* EVT 0 alone: what has another is dropped. */
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_CONFIG, 0x401, QUIPU_ROCK_L2_TXN_INFO_FILTER,
			      0x7f8, 0),
			 0);
	get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x401);
	told_insn.events = QUIPU_INSN_L1_MISS | QUIPU_INSN_STORE_PENDING;
	quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_L2_TRANSACTIONS, 500, 0x100);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x401), 0);
	told_insn.events = 0;
	quipu_manual_signals_feed(m, 0, QUIPU_SIGNAL_L2_TRANSACTIONS, 500, 0x100);
	assert_int_equal(get(&b, 0, RK_PERF_SAMPLE_PENDING, 0x401), 2);
	quipu_rock_free(b.r);
	quipu_manual_signals_free(m);
}

/* API_PUTCHAR reaches the console, API_EXIT frees what the guest had. */
static void core_calls(void **state)
{
	uint64_t o[6] = {'q', 0, 0, 0, 0, API_PUTCHAR};
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	quipu_rock_set_console(b.r, on_console, &b);
	quipu_rock_trap(b.r, 0, QUIPU_ROCK_CORE_TRAP, o);
	assert_int_equal(o[0], 0);
	assert_string_equal(b.console, "q");
	assert_int_equal(call(&b, 3, RK_PERF_COUNT_INIT, 0x101, 0, 0, 0), 0);
	assert_int_equal(quipu_rock_owner(b.r, 0, RK_PERF_CYC), 3);
	o[5] = API_EXIT;
	quipu_rock_trap(b.r, 0, QUIPU_ROCK_CORE_TRAP, o);
	assert_int_equal(quipu_rock_owner(b.r, 0, RK_PERF_CYC), -1);
	assert_int_equal(call(&b, 3, RK_PERF_COUNT_INIT, 0x101, 0, 0, 0), QUIPU_ROCK_EBADTRAP);
	o[5] = 4;
	quipu_rock_trap(b.r, 0, QUIPU_ROCK_CORE_TRAP, o);
	assert_int_equal(o[0], QUIPU_ROCK_EBADTRAP);
	/* A strand of nobody. */
	quipu_rock_bind(b.r, 9, 0);
	o[5] = API_SET_VERSION;
	quipu_rock_trap(b.r, 9, QUIPU_ROCK_CORE_TRAP, o);
	assert_int_equal(o[0], QUIPU_ROCK_EBADTRAP);
	quipu_rock_free(b.r);
}

static void bad_machines_and_memory_are_refused(void **state)
{
	struct bed b;

	(void)state;
	assert_null(quipu_rock_new(&(struct quipu_rock_config){.chips = 0}));
	assert_null(quipu_rock_new(&(struct quipu_rock_config){.chips = QUIPU_ROCK_MAX_CHIPS + 1}));
	open_bed(&b, &one);
	assert_int_equal(quipu_rock_bind(b.r, 32, 1), -EINVAL);
	assert_int_equal(quipu_rock_bind(b.r, 0, QUIPU_ROCK_MAX_GUESTS), -EINVAL);
	assert_int_equal(quipu_rock_memory_add(b.r, 1, BASE + SIZE - 1, 8), -EINVAL);
	assert_int_equal(quipu_rock_memory_add(b.r, 1, 0, 0), -EINVAL);
	assert_int_equal(quipu_rock_memory_add(b.r, 1, UINT64_MAX - 4, 8), -EINVAL);
	assert_int_equal(quipu_rock_memory_add(b.r, 0, 0, 8), -EINVAL);
	assert_int_equal(quipu_rock_memory_remove(b.r, 1, 0), -ENOENT);
	assert_null(quipu_rock_memory(b.r, 1, BASE - 1, 8));
	assert_null(quipu_rock_memory(b.r, 1, BASE + SIZE - 4, 8));
	assert_null(quipu_rock_memory(b.r, 2, BASE, 8));
	assert_int_equal(quipu_rock_attach(b.r, 32, NULL, 0), -EINVAL);
	assert_string_equal(quipu_rock_status_name(9), "EWOULDBLOCK");
	assert_string_equal(quipu_rock_status_name(3), "?");
	quipu_rock_free(b.r);
}

/*
 * Without a handler the interrupt is a bit that stays until it is cleared, or has no cause any
 * longer.
 */
static void the_interrupt_is_a_level(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	quipu_rock_set_handler(b.r, NULL, NULL);
	for (unsigned how = 0; how < 2; how++) {
		call(&b, 0, RK_PERF_COUNT_INIT, 0x101, 0, 0, 0);
		call(&b, 0, RK_PERF_COUNT_SET, 0x101, (UINT64_C(1) << 39) - 1, 0, 0);
		call(&b, 0, RK_PERF_COUNT_START, 0x101, QUIPU_ROCK_TOE | QUIPU_ROCK_USER, 0, 0);
		assert_false(quipu_rock_softint(b.r, 0));
		quipu_rock_cycles(b.r, 0, QUIPU_ROCK_AT_USER, 1);
		assert_true(quipu_rock_softint(b.r, 0));
		if (how)
			quipu_rock_clear_softint(b.r, 0);
		else
			call(&b, 0, RK_PERF_COUNT_RELEASE, 0x101, 0, 0, 0);
		assert_false(quipu_rock_softint(b.r, 0));
	}
	quipu_rock_free(b.r);
}

/* Elements of another size must fit ring and tail. */
static void a_ring_that_does_not_fit_its_elements(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, &one);
	start_sampler(&b,
		      (const uint64_t[]){QUIPU_ROCK_IS_PC, QUIPU_ROCK_IS_INFO, QUIPU_ROCK_IS_EA}, 3,
		      48, 50);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_START, 0x201, 50, 16, LIST), 0);
	put(&b, BASE + QUIPU_ROCK_RING_SIZE, 40, 4);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), 0);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_START, 0x201, 50, 16, LIST), QUIPU_ROCK_EINVAL);
	put(&b, BASE + QUIPU_ROCK_RING_SIZE, 8, 4);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), 0);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_START, 0x201, 50, 8, LIST), QUIPU_ROCK_EINVAL);
	put(&b, BASE + QUIPU_ROCK_RING_SIZE, 48, 4);
	put(&b, BASE + QUIPU_ROCK_RING_TAIL, 8, 4);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), 0);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_START, 0x201, 50, 24, LIST), QUIPU_ROCK_EINVAL);
	put(&b, BASE + QUIPU_ROCK_RING_TAIL, 48, 4);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), QUIPU_ROCK_ENORADDR);
	put(&b, BASE + QUIPU_ROCK_RING_TAIL, 4, 4);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), QUIPU_ROCK_ENORADDR);
	put(&b, BASE + QUIPU_ROCK_RING_TAIL, 0, 4);
	put(&b, BASE + QUIPU_ROCK_RING_SIZE, 44, 4);
	assert_int_equal(call(&b, 0, RK_PERF_SAMPLE_INIT, 0x201, BASE, 0, 0), QUIPU_ROCK_ENORADDR);
	quipu_rock_free(b.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_of_a_counter),
		cmocka_unit_test(life_of_a_sampler),
		cmocka_unit_test(order_of_an_event),
		cmocka_unit_test(order_of_a_sample),
		cmocka_unit_test(strict_has_public_registers_only),
		cmocka_unit_test(reports_are_filtered_after_the_countdown),
		cmocka_unit_test(events_fit_the_instruction),
		cmocka_unit_test(counters_follow_signals),
		cmocka_unit_test(a_sum_of_signals_overflows_on_time),
		cmocka_unit_test(the_sampler_follows_signals),
		cmocka_unit_test(an_element_says_what_the_engine_tells),
		cmocka_unit_test(a_transaction_says_what_the_engine_tells),
		cmocka_unit_test(core_calls),
		cmocka_unit_test(bad_machines_and_memory_are_refused),
		cmocka_unit_test(the_interrupt_is_a_level),
		cmocka_unit_test(a_ring_that_does_not_fit_its_elements),
	};

	return cmocka_run_group_tests_name("rock life", tests, NULL, NULL);
}
