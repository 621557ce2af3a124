/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is an overflow found at the right instruction? Sums and walks of random blocks against a
 * reference that counts one instruction after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/qemu/block.h"

static uint32_t seed = 7;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * n) >> 32);
}

static const quipu_signal lane_signals[SEG_LANES] = {
	QUIPU_SIGNAL_INSTRUCTIONS,
	QUIPU_SIGNAL_CYCLES,
	QUIPU_SIGNAL_LOADS,
	QUIPU_SIGNAL_STORES,
	QUIPU_SIGNAL_BRANCHES,
	QUIPU_SIGNAL_BRANCHES_TAKEN,
	QUIPU_SIGNAL_SYSCALLS,
	QUIPU_SIGNAL_OF(QUIPU_CLASS_BIT(QUIPU_INSN_ALU) | QUIPU_CLASS_BIT(QUIPU_INSN_TRAP)),
};

static void make_header(struct seg_header *h)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->lane_signal, lane_signals, sizeof(lane_signals));
	h->scalar_signal[0] = QUIPU_SIGNAL_CALLS;
	h->scalar_signal[3] = QUIPU_SIGNAL_RETURNS;
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		h->cost[c] = (uint16_t)(c * 5); /* 0 and more than allowed among them */
}

/* Written from the header's words, not from the code under test. */
static uint64_t reference_rate(const struct seg_header *h, unsigned index, unsigned class)
{
	quipu_signal s =
		index < SEG_LANES ? h->lane_signal[index] : h->scalar_signal[index - SEG_LANES];

	switch (s) {
	case QUIPU_SIGNAL_INSTRUCTIONS: return class != QUIPU_INSN_TRAP;
	case QUIPU_SIGNAL_CYCLES:
		return h->cost[class] < 1 ? 1 : h->cost[class] > 63 ? 63 : h->cost[class];
	case QUIPU_SIGNAL_BRANCHES_TAKEN:
	case QUIPU_SIGNAL_SYSCALLS:
	case QUIPU_SIGNAL_NONE: return 0;
	}
	return class != QUIPU_INSN_TRAP && (quipu_signal_mask(s) >> class & 1);
}

static unsigned random_insns(struct insn *insns, unsigned most)
{
	unsigned n = 1 + random_below(most);
	uint64_t pc = 0x10000 + 2 * random_below(100000);

	for (unsigned i = 0; i < n; i++) {
		insns[i] = (struct insn){.pc = pc,
					 .size = (uint8_t)(random_below(2) ? 2 : 4),
					 .class = (uint8_t)random_below(QUIPU_INSN_CLASSES)};
		pc += insns[i].size;
	}
	insns[n - 1].flow = (uint8_t)random_below(FLOW_COROUTINE + 1);
	insns[n - 1].target = 0x4000;
	return n;
}

struct fixture {
	struct seg_header header;
	struct rates rates;
	struct block_store store;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	make_header(&f->header);
	rates_init(&f->rates, &f->header);
	*state = f;
	return block_store_init(&f->store);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	block_store_clear(&f->store);
	free(f->store.bucket);
	free(f);
	return 0;
}

static void a_block_adds_what_its_instructions_add(void **state)
{
	struct fixture *f = *state;
	struct insn insns[BLOCK_MAX_INSNS];

	for (unsigned round = 0; round < 2000; round++) {
		unsigned n = random_insns(insns, round < 10 ? BLOCK_MAX_INSNS : 30);
		const struct block *b = block_intern(&f->store, &f->rates, insns, n, round);

		for (unsigned i = 0; i < INDEXES; i++) {
			uint64_t want = 0;

			for (unsigned k = 0; k < n; k++)
				want += reference_rate(&f->header, i, insns[k].class);
			assert_int_equal(i < SEG_LANES ? b->lanes[i] : b->scalar[i - SEG_LANES],
					 want);
			assert_true(want < 32768);
		}
		assert_int_equal(b->fall, insns[n - 1].pc + insns[n - 1].size);
		assert_int_equal(block_index(b, insns[n / 2].pc), n / 2);
		assert_int_equal(block_index(b, insns[0].pc + 1), -1);
	}
}

struct seen {
	uint64_t pc[2 * BLOCK_MAX_INSNS];
	bool of_prev[2 * BLOCK_MAX_INSNS];
	int64_t now[2 * BLOCK_MAX_INSNS][INDEXES];
	unsigned n;
	int64_t *nearest, *live;
	const int64_t *period;
};

/* As the fold does: record, move the deadlines on. */
static void reached(void *arg, uint64_t pc, bool of_prev)
{
	struct seen *s = arg;

	s->pc[s->n] = pc;
	s->of_prev[s->n] = of_prev;
	memcpy(s->now[s->n++], s->live, sizeof(s->now[0]));
	for (unsigned i = 0; i < INDEXES; i++) {
		while (s->live[i] >= s->nearest[i])
			s->nearest[i] += s->period[i];
	}
}

/* One instruction (or outcome) of the reference. */
static void reference_insn(struct seen *s, int64_t *now, int64_t *nearest, uint64_t pc,
			   bool of_prev)
{
	bool hit = false;

	for (unsigned i = 0; i < INDEXES; i++) {
		while (now[i] >= nearest[i]) {
			nearest[i] += s->period[i];
			hit = true;
		}
	}
	if (!hit)
		return;
	s->pc[s->n] = pc;
	s->of_prev[s->n] = of_prev;
	memcpy(s->now[s->n++], now, sizeof(s->now[0]));
}

static void random_start(int64_t *now, int64_t *nearest, int64_t *period)
{
	for (unsigned i = 0; i < INDEXES; i++) {
		now[i] = (int64_t)random_below(1000000);
		period[i] = 1 + (int64_t)random_below(random_below(2) ? 5 : 200);
		nearest[i] = random_below(3)
				     ? now[i] + 1 + (int64_t)random_below((uint32_t)period[i])
				     : INT64_MAX / 2;
	}
}

static void overflows_are_found_at_their_instruction(void **state)
{
	struct fixture *f = *state;
	struct insn insns[BLOCK_MAX_INSNS], before[8];
	static struct seen got, want;

	for (unsigned round = 0; round < 3000; round++) {
		unsigned n = random_insns(insns, round < 20 ? 512 : 20),
			 m = random_insns(before, 8);
		struct step step = {
			.prev = block_intern(&f->store, &f->rates, before, m, 2 * round),
			.block = block_intern(&f->store, &f->rates, insns, n, 2 * round + 1),
			.skip = random_below(4) ? 0 : random_below(n + 1),
			.taken = random_below(2)};
		int64_t now[INDEXES], nearest[INDEXES], period[INDEXES], sum[INDEXES] = {0};
		int64_t now2[INDEXES], nearest2[INDEXES];

		random_start(now, nearest, period);
		memcpy(now2, now, sizeof(now));
		memcpy(nearest2, nearest, sizeof(nearest));
		step_sum(&f->rates, &step, sum);
		got = (struct seen){.nearest = nearest, .live = now, .period = period};
		step_walk(&f->rates, &step, now, nearest, reached, &got);

		want = (struct seen){.period = period};
		if (step.taken) {
			now2[5]++;
			reference_insn(&want, now2, nearest2, before[m - 1].pc, true);
		}
		for (unsigned k = step.skip; k < n; k++) {
			for (unsigned i = 0; i < INDEXES; i++)
				now2[i] += (int64_t)reference_rate(&f->header, i, insns[k].class);
			reference_insn(&want, now2, nearest2, insns[k].pc, false);
		}
		assert_int_equal(got.n, want.n);
		assert_memory_equal(got.pc, want.pc, want.n * sizeof(got.pc[0]));
		assert_memory_equal(got.of_prev, want.of_prev, want.n * sizeof(got.of_prev[0]));
		assert_memory_equal(got.now, want.now, want.n * sizeof(got.now[0]));
		assert_memory_equal(now, now2, sizeof(now));
		for (unsigned i = 0; i < SEG_LANES + f->rates.nscalars; i++)
			assert_true(sum[i] <= 32767);
	}
}

static void rewritten_code_does_not_grow_the_store(void **state)
{
	struct fixture *f = *state;
	struct insn a[3] = {{.pc = 64, .size = 4}, {.pc = 68, .size = 4}, {.pc = 72, .size = 4}};
	const struct block *x = block_intern(&f->store, &f->rates, a, 3, 1);
	const struct block *y = block_intern(&f->store, &f->rates, a, 3, 2);

	for (unsigned i = 0; i < 20000; i++)
		assert_ptr_equal(block_intern(&f->store, &f->rates, a, 3, 1 + i % 2),
				 i % 2 ? y : x);
	assert_int_equal(f->store.nblocks, 2);
}

static void many_blocks_are_all_found_again(void **state)
{
	static const struct block *blocks[30000];
	struct fixture *f = *state;
	struct insn a = {.size = 4};

	for (unsigned i = 0; i < 30000; i++) {
		a.pc = i * 4;
		blocks[i] = block_intern(&f->store, &f->rates, &a, 1, i % 7);
	}
	for (unsigned i = 0; i < 30000; i++) {
		a.pc = i * 4;
		assert_ptr_equal(block_intern(&f->store, &f->rates, &a, 1, i % 7), blocks[i]);
		assert_int_equal(blocks[i]->pc, a.pc);
		assert_int_equal((uintptr_t)blocks[i] % 64, 0);
	}
}

static void legal_successors_follow_the_last_instruction(void **state)
{
	struct fixture *f = *state;
	struct insn a = {.pc = 100, .size = 4, .target = 400, .flow = FLOW_COND};
	const struct block *b = block_intern(&f->store, &f->rates, &a, 1, 1);

	assert_true(block_successor(b, 104) && block_successor(b, 400) && !block_successor(b, 100));
	a.flow = FLOW_NONE;
	b = block_intern(&f->store, &f->rates, &a, 1, 2);
	assert_true(block_successor(b, 104) && !block_successor(b, 400));
	a.flow = FLOW_RET;
	b = block_intern(&f->store, &f->rates, &a, 1, 3);
	assert_true(block_successor(b, 12345));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_block_adds_what_its_instructions_add, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(overflows_are_found_at_their_instruction, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(rewritten_code_does_not_grow_the_store, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(many_blocks_are_all_found_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(legal_successors_follow_the_last_instruction,
						set_up, tear_down),
	};

	return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
