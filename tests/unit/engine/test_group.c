/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which accesses lie side by side: random blocks against a reference that executes them with real
 * registers and looks where each access goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/qemu/group.h"

#define REGISTERS 4u
#define LENGTH	  24u

static uint32_t seed = 3;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * n) >> 32);
}

static struct group *room(void)
{
	struct group *g = calloc(1, group_bytes(GROUP_MOST));

	assert_non_null(g);
	return g;
}

static struct insn random_insn(uint64_t pc)
{
	static const uint8_t classes[] = {QUIPU_INSN_ALU,   QUIPU_INSN_LOAD,   QUIPU_INSN_STORE,
					  QUIPU_INSN_FLOAD, QUIPU_INSN_FSTORE, QUIPU_INSN_AMO,
					  QUIPU_INSN_LOAD,  QUIPU_INSN_STORE};
	struct insn in = {.pc = pc, .size = 4, .class = classes[random_below(8)]};

	if (insn_accesses(in.class) && in.class != QUIPU_INSN_AMO && random_below(8))
		in.place = (struct place){(uint8_t)(1 + random_below(2)), (uint8_t)random_below(4),
					  8 * (int)random_below(6) - 16};
	if (!random_below(16))
		in.class |= INSN_RESTARTS;
	if (random_below(4))
		in.change.reg = CHANGES_NOTHING;
	else if (random_below(6))
		in.change = (struct change){.reg = (uint8_t)(1 + random_below(REGISTERS)),
					    .by_known = random_below(2),
					    .by = 8 * (int)random_below(5) - 16};
	if (in.change.reg != CHANGES_UNKNOWN && !random_below(8))
		in.change.also = (uint8_t)(1 + random_below(REGISTERS));
	return in;
}

/* The addresses of all accesses; what a change does that is not known is anything. */
static void execute(const struct insn *in, unsigned n, uint64_t at[LENGTH])
{
	uint64_t reg[REGISTERS];

	for (unsigned r = 0; r < REGISTERS; r++)
		reg[r] = (uint64_t)random_below(UINT32_MAX) << 20;
	for (unsigned i = 0; i < n; i++) {
		const struct change *c = &in[i].change;

		at[i] = in[i].place.base
				? reg[in[i].place.base - 1] + (uint64_t)(int64_t)in[i].place.offset
				: 0;
		for (unsigned r = 0; r < REGISTERS; r++) {
			if (c->reg == r + 1 && c->by_known && c->also != r + 1)
				reg[r] += (uint64_t)(int64_t)c->by;
			else if (c->reg == r + 1 || c->also == r + 1 || c->reg == CHANGES_UNKNOWN)
				reg[r] = (uint64_t)random_below(UINT32_MAX) << 20;
		}
	}
}

static void check_group(const struct insn *in, const struct group *g, unsigned first,
			const uint64_t at[LENGTH])
{
	uint64_t low = at[first] + (uint64_t)(int64_t)g->low, high = low + g->span;
	bool stores = false, touched[2] = {false, false};
	unsigned class;

	assert_true(g->span < 64);
	for (unsigned k = 0; k < g->n; k++) {
		const struct group_access *a = &g->access[k];
		uint64_t last = at[a->index] + (1u << a->bytes) - 1;

		assert_int_equal(at[a->index], at[first] + (uint64_t)(int64_t)a->delta);
		assert_int_equal(a->bytes, in[a->index].place.bytes);
		class = in[a->index].class & (INSN_LOAD - 1);
		assert_int_equal(a->store, class == QUIPU_INSN_STORE || class == QUIPU_INSN_FSTORE);
		assert_true(at[a->index] >= low && last <= high);
		touched[0] |= at[a->index] == low;
		touched[1] |= last == high;
		stores |= a->store;
		/* None between them is left out. */
		for (unsigned i = k ? g->access[k - 1].index + 1u : first; i < a->index; i++)
			assert_false(insn_accesses(in[i].class));
		for (unsigned i = first; i < a->index; i++)
			assert_false(in[i].class & INSN_RESTARTS);
	}
	assert_true(touched[0] && touched[1]);
	assert_int_equal(g->stores, stores);
}

static void groups_go_where_the_accesses_go(void **state)
{
	struct group *g = room();
	unsigned several = 0, most = 0;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct insn in[LENGTH];
		uint64_t at[LENGTH];
		unsigned i = random_below(LENGTH), n;

		for (unsigned k = 0; k < LENGTH; k++)
			in[k] = random_insn(4 * k);
		in[LENGTH - 1].flow = FLOW_COND;
		execute(in, LENGTH, at);
		if (!insn_accesses(in[i].class))
			continue;
		n = group_find(in, LENGTH, i, 64, g);
		assert_int_equal(n, g->n);
		assert_int_equal(n != 0, in[i].place.base && in[i].place.bytes <= GROUP_FIRST);
		if (!n)
			continue;
		assert_int_equal(g->access[0].index, i);
		check_group(in, g, i, at);
		several += n > 1;
		most = n > most ? n : most;
	}
	assert_true(several > 1000 && most >= 4);
	free(g);
}

/* A frame of twenty words: as many as the group has room for, and as lie within its bytes. */
static void a_group_ends_where_it_is_full(void **state)
{
	struct group *g = room();
	struct insn in[20] = {{0}};

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		in[i].class = QUIPU_INSN_STORE;
		in[i].place = (struct place){3, 2, 4 * (int)i};
		in[i].change.reg = CHANGES_NOTHING;
	}
	assert_int_equal(group_find(in, 20, 0, 128, g), GROUP_MOST);
	assert_int_equal(group_find(in, 20, 0, 64, g), 16);
	assert_int_equal(g->span, 63);
	assert_int_equal(group_find(in, 20, 0, 32, g), 8);
	assert_int_equal(group_find(in, 20, 12, 32, g), 8);
	for (unsigned i = 0; i < 20; i++) /* downwards, as it is pushed */
		in[i].place.offset = -4 * (int)i;
	assert_int_equal(group_find(in, 20, 0, 32, g), 8);
	assert_int_equal(g->low, -28);
	assert_int_equal(g->span, 31);
	free(g);
}

static void a_store_keeps_the_groups_of_its_blocks(void **state)
{
	struct seg_header head = {0};
	struct block_store store;
	struct rates rates;
	struct insn in[7] = {{0}};
	const struct block *b;

	(void)state;
	rates_init(&rates, &head);
	assert_int_equal(block_store_init(&store), 0);
	store.group = 64;
	for (unsigned i = 0; i < 7; i++) {
		in[i] = (struct insn){.pc = 4 * i, .size = 4, .class = QUIPU_INSN_LOAD};
		in[i].place = (struct place){i < 2 ? 1 : i == 2 ? 2 : i == 3 ? 0 : 3, 3, 8};
		in[i].change.reg = CHANGES_NOTHING;
	}
	b = block_intern(&store, &rates, in, 7, 1);
	assert_non_null(b);
	assert_non_null(b->groups); /* 0, 1; not 2, and not 3; 4, 5, 6 */
	assert_int_equal(b->groups->n, 2);
	assert_int_equal(b->groups->access[1].index, 1);
	assert_non_null(b->groups->next);
	assert_int_equal(b->groups->next->n, 3);
	assert_int_equal(b->groups->next->access[0].index, 4);
	assert_null(b->groups->next->next);
	assert_null(block_store_keep(&store, b)->groups);
	store.group = 0;
	assert_null(block_intern(&store, &rates, in, 6, 2)->groups);
	block_store_clear(&store);
	free(store.bucket);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_go_where_the_accesses_go),
		cmocka_unit_test(a_group_ends_where_it_is_full),
		cmocka_unit_test(a_store_keeps_the_groups_of_its_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
