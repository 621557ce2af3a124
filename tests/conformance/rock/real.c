// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whole lives of a counter and of a sampler over a real sparc64 program: the guest here is this
 * test, which makes the calls itself (no driver in between), and the program is what its strands
 * run under the engine: forker, whose first thread is on strand 0 and whose child on strand 1.
 *
 *	ROCK_FORKER	the program
 *	QUIPU_PLUGIN	the engine's plugin
 *	QUIPU_ROCK_DTB	the machine
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <quipu/bits.h>
#include <quipu/machine.h>
#include <quipu/rock.h>
#include <quipu/system.h>

#include "engine/session.h"

#define BASE	 UINT64_C(0x10000000)
#define RING	 BASE
#define LIST	 (BASE + 0x8000)
#define STRANDS	 4u
#define INSTR	 QUIPU_ROCK_TYPE(RK_PERF_INSTR, RK_PERF_SRC_STRAND)
#define CYC	 QUIPU_ROCK_TYPE(RK_PERF_CYC, RK_PERF_SRC_STRAND)
#define WRAP	 (UINT64_C(1) << 39)
#define COUNTING (QUIPU_ROCK_TOE | QUIPU_ROCK_USER)
#define ROUNDS	 20000u /* of the child's loop */
#define FIRST	 1000u	/* instructions until the counter overflows */
#define MOVE	 5000u	/* cycles until counter or sampler goes to strand 1; no fork yet */

/* PC, INFO, LATENCY: a list in no order but its own. */
#define WORDS	  3u
#define BYTES	  (8 * WORDS)
#define FREQUENCY 100u

struct bed {
	struct quipu_machine *machine;
	struct quipu_notes notes;
	struct session *session;
	struct quipu_system *system;
	struct quipu_signals *signals;
	struct quipu_rock *rock;
	void (*system_interrupt)(void *arg, const struct quipu_interrupt *);
	void *system_arg;

	unsigned told;	  /* interrupts of the guest */
	uint64_t carried; /* what went from one strand to the other */
	bool moved;

	uint32_t elements; /* of the ring */
	bool drains;	   /* the guest takes what is there */
	uint64_t found[STRANDS], first[64], nfirst;
};

static uint64_t call(struct bed *b, unsigned strand, uint64_t f, uint64_t a0, uint64_t a1,
		     uint64_t a2, uint64_t a3, uint64_t status)
{
	uint64_t ret = 0, got;

	got = quipu_rock_hcall(b->rock, strand, f, (uint64_t[4]){a0, a1, a2, a3}, &ret);
	if (got != status)
		fail_msg("function 0x%llx of strand %u: %s, not %s", (unsigned long long)f, strand,
			 quipu_rock_status_name(got), quipu_rock_status_name(status));
	return ret;
}

static uint8_t *memory(struct bed *b, uint64_t at)
{
	uint8_t *p = quipu_rock_memory(b->rock, 1, at, 8);

	assert_non_null(p);
	return p;
}

static void put(struct bed *b, uint64_t at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		memory(b, at)[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static uint64_t instructions(const struct bed *b, unsigned cpu)
{
	return b->signals->ops->read(b->signals, cpu, QUIPU_SIGNAL_INSTRUCTIONS);
}

/* What the sampler follows: the same instructions, up to a block later. */
static uint64_t labelled(const struct bed *b, unsigned cpu)
{
	uint64_t n = b->signals->ops->read(b->signals, cpu, QUIPU_SIGNAL_LABELLED);

	assert_in_range(instructions(b, cpu) - n, 0, 1024);
	return n;
}

/* ---- the machine: its own room is there and idle; the chips of this test hear the engine too ----
 */

static void on_engine(void *arg, const struct quipu_interrupt *irq)
{
	struct bed *b = arg;

	b->system_interrupt(b->system_arg, irq);
	quipu_rock_interrupt(b->rock, irq);
}

static struct quipu_machine *load(struct quipu_notes *notes)
{
	static uint8_t raw[1 << 16];
	FILE *f = fopen(getenv("QUIPU_ROCK_DTB"), "rb");
	struct quipu_machine *m;
	size_t n;

	assert_non_null(f);
	n = fread(raw, 1, sizeof(raw), f);
	fclose(f);
	m = quipu_machine_parse(raw, n, "rock", notes);
	assert_non_null(m);
	return m;
}

static void open_bed(struct bed *b, bool local, quipu_rock_handler *handler)
{
	const struct session_options so = {.plugin = getenv("QUIPU_PLUGIN"), .local = local};
	const struct quipu_system_config config = {.paranoid = -1};
	struct session_error err;

	memset(b, 0, sizeof(*b));
	b->machine = load(&b->notes);
	b->session = session_new(b->machine, &so, &err);
	if (!b->session)
		fail_msg("%s", err.text);
	b->signals = session_signals(b->session);
	b->system = quipu_system_new(b->machine, b->signals, &config, &b->notes);
	assert_non_null(b->system);
	b->system_interrupt = b->signals->interrupt;
	b->system_arg = b->signals->arg;
	b->signals->interrupt = on_engine;
	b->signals->arg = b;
	assert_int_equal(session_attach(b->session, b->system, NULL, NULL), 0);
	b->rock = quipu_rock_new(&(struct quipu_rock_config){.chips = 1});
	assert_non_null(b->rock);
	for (unsigned s = 0; s < STRANDS; s++) {
		assert_int_equal(quipu_rock_bind(b->rock, s, 1), 0);
		assert_int_equal(quipu_rock_attach(b->rock, s, b->signals, s), 0);
	}
	assert_int_equal(quipu_rock_memory_add(b->rock, 1, BASE, 0x10000), 0);
	assert_int_equal(quipu_rock_set_version(b->rock, 0, API_GROUP_RKPERF, 1, 0, NULL), 0);
	quipu_rock_set_handler(b->rock, handler, b);
}

static void run(struct bed *b)
{
	static char rounds[16];
	char *argv[] = {getenv("ROCK_FORKER"), "1", rounds, NULL};
	struct session_error err;

	snprintf(rounds, sizeof(rounds), "%u", ROUNDS);
	if (session_prepare(b->session, argv, &err) || session_go(b->session, &err))
		fail_msg("%s", err.text);
	while (!session_step(b->session, 100))
		;
	assert_true(WIFEXITED(session_status(b->session)));
	assert_int_equal(WEXITSTATUS(session_status(b->session)), 0);
}

static void close_bed(struct bed *b)
{
	session_stop(b->session); /* its last calls go to the system, */
	quipu_system_free(b->system);
	quipu_rock_free(b->rock); /* and both call its signals */
	session_free(b->session);
	quipu_machine_free(b->machine);
	quipu_notes_free(&b->notes);
}

/* The moment at which the guest takes a counter or sampler elsewhere: its cycles overflow. */
static void set_alarm(struct bed *b)
{
	call(b, 0, RK_PERF_COUNT_INIT, CYC, 0, 0, 0, QUIPU_ROCK_EOK);
	call(b, 0, RK_PERF_COUNT_SET, CYC, WRAP - MOVE, 0, 0, QUIPU_ROCK_EOK);
	call(b, 0, RK_PERF_COUNT_START, CYC, COUNTING, 0, 0, QUIPU_ROCK_EOK);
}

static bool alarm_rang(struct bed *b)
{
	if (b->moved || !call(b, 0, RK_PERF_COUNT_OVERFLOW, CYC, 0, 0, 0, QUIPU_ROCK_EOK))
		return false;
	b->moved = true;
	call(b, 0, RK_PERF_COUNT_RELEASE, CYC, 0, 0, 0, QUIPU_ROCK_EOK);
	return true;
}

/* ---- a counter ---- */

static void carry_counter(struct bed *b)
{
	call(b, 1, RK_PERF_COUNT_INIT, INSTR, 0, 0, 0, QUIPU_ROCK_EWOULDBLOCK);
	call(b, 0, RK_PERF_COUNT_STOP, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	b->carried = call(b, 0, RK_PERF_COUNT_GET, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	assert_int_equal(b->carried, instructions(b, 0) - FIRST);
	call(b, 0, RK_PERF_COUNT_RELEASE, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	assert_int_equal(instructions(b, 1), 0);
	call(b, 1, RK_PERF_COUNT_INIT, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	call(b, 1, RK_PERF_COUNT_SET, INSTR, b->carried, 0, 0, QUIPU_ROCK_EOK);
	call(b, 1, RK_PERF_COUNT_START, INSTR, COUNTING, 0, 0, QUIPU_ROCK_EOK);
}

static void counter_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct bed *b = arg;

	assert_int_equal(strand, 0);
	assert_non_null(irq);
	b->told++;
	if (alarm_rang(b)) {
		assert_int_equal(b->told, 2);
		carry_counter(b);
		return;
	}
	/* At the very instruction; it counts again already, from 0. */
	assert_int_equal(instructions(b, 0), FIRST);
	assert_int_equal(call(b, 0, RK_PERF_COUNT_OVERFLOW, INSTR, 0, 0, 0, QUIPU_ROCK_EOK), 1);
	assert_int_equal(call(b, 0, RK_PERF_COUNT_OVERFLOW, INSTR, 0, 0, 0, QUIPU_ROCK_EOK), 0);
	assert_int_equal(call(b, 0, RK_PERF_COUNT_GET, INSTR, 0, 0, 0, QUIPU_ROCK_EOK), 0);
}

static void life_of_a_counter(void **state)
{
	struct bed b;
	uint64_t end;

	(void)state;
	open_bed(&b, true, counter_interrupt);
	call(&b, 0, RK_PERF_COUNT_INIT, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	call(&b, 0, RK_PERF_COUNT_SET, INSTR, WRAP - FIRST, 0, 0, QUIPU_ROCK_EOK);
	call(&b, 0, RK_PERF_COUNT_START, INSTR, COUNTING, 0, 0, QUIPU_ROCK_EOK);
	set_alarm(&b);
	run(&b);
	assert_int_equal(b.told, 2);
	assert_true(b.moved && b.carried > 0);
	call(&b, 1, RK_PERF_COUNT_STOP, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	end = call(&b, 1, RK_PERF_COUNT_GET, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	/* The child ran on strand 1, and nothing else. */
	assert_int_equal(end - b.carried, instructions(&b, 1));
	assert_true(end - b.carried > ROUNDS);
	assert_int_equal(call(&b, 1, RK_PERF_COUNT_OVERFLOW, INSTR, 0, 0, 0, QUIPU_ROCK_EOK), 0);
	call(&b, 1, RK_PERF_COUNT_RELEASE, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	call(&b, 1, RK_PERF_COUNT_GET, INSTR, 0, 0, 0, QUIPU_ROCK_EINVAL);
	assert_int_equal(quipu_rock_owner(b.rock, 0, RK_PERF_INSTR), -1);
	close_bed(&b);
}

/* ---- a sampler ---- */

static void start_sampler(struct bed *b, unsigned strand)
{
	call(b, strand, RK_PERF_SAMPLE_INIT, INSTR, RING, 0, 0, QUIPU_ROCK_EOK);
	call(b, strand, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_CONTEXT_FILTER, 0x19, 0,
	     QUIPU_ROCK_EOK);
	call(b, strand, RK_PERF_SAMPLE_CONFIG, INSTR, QUIPU_ROCK_IS_CC_LATENCY_MASK,
	     FREQUENCY << 22 | 0xfff, 0, QUIPU_ROCK_EOK);
	call(b, strand, RK_PERF_SAMPLE_START, INSTR, FREQUENCY, 8 * WORDS, LIST, QUIPU_ROCK_EOK);
}

static void make_ring(struct bed *b, uint32_t elements)
{
	static const uint64_t list[WORDS] = {QUIPU_ROCK_IS_PC, QUIPU_ROCK_IS_INFO,
					     QUIPU_ROCK_IS_LATENCY};

	b->elements = elements;
	put(b, RING + QUIPU_ROCK_RING_SIZE, elements * BYTES, 4);
	put(b, RING + QUIPU_ROCK_RING_HWM, elements / 2 * BYTES, 4);
	for (unsigned i = 0; i < WORDS; i++)
		put(b, LIST + 8 * i, list[i], 8);
	assert_int_equal(b->signals->ops->want(b->signals, QUIPU_SIGNAL_LABELLED), 0);
}

/* An element says place, kind and strand, in the order of the list. */
static void look_at(struct bed *b, unsigned strand, uint32_t at)
{
	const uint8_t *e = quipu_rock_memory(b->rock, 1, RING + QUIPU_ROCK_RING_DATA + at, BYTES);
	uint64_t pc = bits_be64(e), info = bits_be64(e + 8), latency = bits_be64(e + 16);

	assert_true(pc >= 0x100000 && pc < 0x1000000 && pc % 4 == 0);
	assert_true(bits_get(info, 6, 0) != 0);
	assert_int_equal(bits_get(latency, 23, 16), strand);
	assert_true(bits_get(latency, 11, 0) != 0);
	if (b->nfirst < 64)
		b->first[b->nfirst++] = pc;
}

static uint64_t drain(struct bed *b, unsigned strand)
{
	uint32_t size = b->elements * BYTES, head = bits_be32(memory(b, RING)), walked = 0;
	uint32_t tail = bits_be32(memory(b, RING + QUIPU_ROCK_RING_TAIL));

	for (; head != tail; head = (head + BYTES) % size, walked++)
		look_at(b, strand, head);
	put(b, RING + QUIPU_ROCK_RING_HWM, (tail + size / 2) % size, 4);
	put(b, RING + QUIPU_ROCK_RING_HEAD, head, 4);
	assert_int_equal(call(b, strand, RK_PERF_SAMPLE_PENDING, INSTR, 0, 0, 0, QUIPU_ROCK_EOK),
			 walked);
	b->found[strand] += walked;
	return walked;
}

static void carry_sampler(struct bed *b)
{
	uint32_t tail;

	call(b, 1, RK_PERF_SAMPLE_INIT, INSTR, RING, 0, 0, QUIPU_ROCK_EWOULDBLOCK);
	call(b, 0, RK_PERF_SAMPLE_STOP, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	drain(b, 0);
	b->carried = labelled(b, 0);
	call(b, 0, RK_PERF_SAMPLE_RELEASE, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	tail = bits_be32(memory(b, RING + QUIPU_ROCK_RING_TAIL));
	assert_int_not_equal(tail, 0);
	start_sampler(b, 1);
	assert_int_equal(bits_be32(memory(b, RING + QUIPU_ROCK_RING_TAIL)), tail);
}

static void sampler_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct bed *b = arg;

	(void)irq;
	b->told++;
	if (strand == 0 && alarm_rang(b))
		carry_sampler(b);
	else if (b->drains)
		drain(b, strand);
}

/* The same ring follows to another strand; each has what its own instructions make due. */
static void life_of_a_sampler(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, false, sampler_interrupt);
	make_ring(&b, 16);
	b.drains = true;
	start_sampler(&b, 0);
	set_alarm(&b);
	run(&b);
	call(&b, 1, RK_PERF_SAMPLE_STOP, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	drain(&b, 1);
	assert_int_equal(b.found[0], b.carried / FREQUENCY);
	assert_int_equal(b.found[1], labelled(&b, 1) / FREQUENCY);
	assert_true(b.found[0] > 16 && b.found[1] > ROUNDS / FREQUENCY);
	assert_int_equal(quipu_rock_dropped(b.rock, 0, RK_PERF_INSTR), 0);
	call(&b, 1, RK_PERF_SAMPLE_RELEASE, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
	assert_int_equal(quipu_rock_owner(b.rock, 0, RK_PERF_INSTR), -1);
	close_bed(&b);
}

/* Nothing is lost until the ring is full; then exactly the excess, and what is there stays. */
static void a_full_ring(void **state)
{
	uint64_t first[64] = {0};

	(void)state;
	for (unsigned turn = 0; turn < 3; turn++) {
		struct bed b;
		uint64_t due;

		/* Drained; full; full, and served where the program runs. */
		open_bed(&b, turn == 2, sampler_interrupt);
		make_ring(&b, 64);
		b.drains = turn == 0;
		b.moved = true; /* it stays here */
		start_sampler(&b, 0);
		run(&b);
		call(&b, 0, RK_PERF_SAMPLE_STOP, INSTR, 0, 0, 0, QUIPU_ROCK_EOK);
		due = labelled(&b, 0) / FREQUENCY;
		assert_true(due > 63);
		drain(&b, 0);
		if (turn == 0) {
			assert_int_equal(b.found[0], due);
			assert_int_equal(quipu_rock_dropped(b.rock, 0, RK_PERF_INSTR), 0);
			memcpy(first, b.first, sizeof(first));
		} else {
			assert_int_equal(b.told, 2); /* at the mark, and full */
			assert_int_equal(b.found[0], 63);
			assert_int_equal(quipu_rock_dropped(b.rock, 0, RK_PERF_INSTR), due - 63);
			assert_memory_equal(b.first, first, 63 * sizeof(*first));
		}
		close_bed(&b);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_of_a_counter),
		cmocka_unit_test(life_of_a_sampler),
		cmocka_unit_test(a_full_ring),
	};

	return cmocka_run_group_tests_name("rock-real", tests, NULL, NULL);
}
