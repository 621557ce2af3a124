/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a cache event count what a cache of that geometry would miss? Against a simulator written
 * from the definitions (time stamps for LRU, a tree of booleans for PLRU), and against closed forms
 * (engine sheet, case 27).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/memory.h"

/* ---- the reference ---- */

struct ref_way {
	bool valid, dirty;
	uint64_t line, used;
};

struct reference {
	unsigned sets, ways;
	bool lru;
	uint64_t clock, misses[2], dirty_out;
	struct ref_way way[256][64];
	bool right[256][64]; /* the next victim of subtree i is in its right half */
};

static void ref_point(struct reference *r, unsigned set, unsigned node, unsigned lo, unsigned hi,
		      unsigned way)
{
	unsigned mid = (lo + hi) / 2;

	if (hi - lo == 1)
		return;
	r->right[set][node] = way < mid;
	if (way < mid)
		ref_point(r, set, 2 * node, lo, mid, way);
	else
		ref_point(r, set, 2 * node + 1, mid, hi, way);
}

static unsigned ref_victim(const struct reference *r, unsigned set)
{
	unsigned oldest = 0, node = 1, lo = 0, hi = r->ways;

	for (unsigned w = 0; w < r->ways; w++) {
		if (!r->way[set][w].valid)
			return w;
		if (r->way[set][w].used < r->way[set][oldest].used)
			oldest = w;
	}
	if (r->lru)
		return oldest;
	while (hi - lo > 1) {
		bool right = r->right[set][node];

		node = 2 * node + right;
		if (right)
			lo = (lo + hi) / 2;
		else
			hi = (lo + hi) / 2;
	}
	return lo;
}

static bool ref_access(struct reference *r, uint64_t line, bool write)
{
	unsigned set = line % r->sets, w = 0;
	bool hit;

	while (w < r->ways && !(r->way[set][w].valid && r->way[set][w].line == line))
		w++;
	hit = w < r->ways;
	if (!hit) {
		w = ref_victim(r, set);
		r->dirty_out += r->way[set][w].valid && r->way[set][w].dirty;
		r->way[set][w] = (struct ref_way){.valid = true, .line = line};
		r->misses[write]++;
	}
	r->way[set][w].dirty |= write;
	r->way[set][w].used = ++r->clock;
	ref_point(r, set, 1, 0, r->ways, w);
	return hit;
}

/* ---- the model under it ---- */

struct bed {
	struct quipu_model shape;
	struct model_memory memory;
	void *bytes, *level3_bytes;
	struct model_cache level3; /* of bed_deep */
	struct reference ref;
};

static struct bed *bed_new(struct quipu_model shape)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->shape = shape;
	b->bytes = aligned_alloc(64, model_memory_bytes(&shape) + 64);
	assert_non_null(b->bytes);
	memset(b->bytes, 0, model_memory_bytes(&shape));
	model_memory_init(&b->memory, &b->shape, b->bytes, NULL);
	return b;
}

static void bed_free(struct bed *b)
{
	free(b->bytes);
	free(b);
}

/* As the engine does: nothing is asked of the model when the filters have line and page. */
static void access_filtered(struct bed *b, uint64_t va, unsigned size, bool store)
{
	struct model_memory *m = &b->memory;
	uint64_t line = va >> b->shape.l1d.shift, page = va >> b->shape.dtlb.shift;
	bool inside = (va + size - 1) >> b->shape.l1d.shift == line;

	if (inside && m->line[store][line & m->line_mask] == line << b->shape.l1d.shift &&
	    m->page[page & m->page_mask] == page << b->shape.dtlb.shift)
		return;
	model_data(m, va, size, store);
}

static struct quipu_model shape_of(unsigned sets, unsigned ways, bool lru)
{
	return (struct quipu_model){
		.l1d = {sets, ways, 6, 0},
		.dtlb = {16, 4, 12, 0},
		.lru = lru,
		.memory = 200,
		.walk = 20,
	};
}

static uint64_t l1d_misses(const struct bed *b)
{
	return b->memory.count[MODEL_L1D_READ_MISSES] + b->memory.count[MODEL_L1D_WRITE_MISSES];
}

static uint64_t rng = 88172645463325252u;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* Some locality, so that hits, clean and dirty misses are all common. */
static uint64_t random_address(unsigned lines)
{
	uint64_t r = next_random();

	return ((r & 3 ? r >> 8 & 63 : r >> 8) % lines) * 64 + (r >> 40 & 56);
}

static void same_as_reference(unsigned sets, unsigned ways, bool lru, unsigned lines)
{
	struct bed *b = bed_new(shape_of(sets, ways, lru));

	b->ref.sets = sets;
	b->ref.ways = ways;
	b->ref.lru = lru;
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t va = 0x4000000000u + random_address(lines);
		bool store = next_random() % 4 == 0;

		access_filtered(b, va, 8, store);
		ref_access(&b->ref, va >> 6, store);
	}
	assert_true(b->ref.misses[0] > 100);
	assert_int_equal(b->memory.count[MODEL_L1D_READ_MISSES], b->ref.misses[0]);
	assert_int_equal(b->memory.count[MODEL_L1D_WRITE_MISSES], b->ref.misses[1]);
	assert_int_equal(b->memory.count[MODEL_L1D_WRITEBACKS], b->ref.dirty_out);
	bed_free(b);
}

static void lru_misses_are_those_of_the_definition(void **state)
{
	(void)state;
	same_as_reference(64, 8, true, 700);
	same_as_reference(64, 8, true, 5000);
	same_as_reference(1, 16, true, 40);
	same_as_reference(128, 2, true, 1000); /* more sets than words in the filter */
	same_as_reference(48, 12, true, 900);  /* neither sets nor ways a power of two */
	same_as_reference(64, 1, true, 100);
}

static void plru_misses_are_those_of_the_definition(void **state)
{
	(void)state;
	same_as_reference(64, 8, false, 700);
	same_as_reference(64, 8, false, 5000);
	same_as_reference(16, 4, false, 100);
	same_as_reference(1, 32, false, 50);
	same_as_reference(32, 16, false, 900);
	same_as_reference(256, 2, false, 1000);
	same_as_reference(64, 1, false, 100);
}

/* Case 27. */
static void what_fits_misses_once(void **state)
{
	struct bed *b = bed_new(shape_of(64, 8, false));

	(void)state;
	for (unsigned pass = 0; pass < 10; pass++)
		for (uint64_t at = 0; at < 32768; at += 8)
			access_filtered(b, 0x10000 + at, 8, false);
	assert_int_equal(l1d_misses(b), 512);
	assert_int_equal(b->memory.count[MODEL_DTLB_READ_MISSES], 8);
	bed_free(b);
}

static void what_does_not_fit_misses_always_with_lru(void **state)
{
	struct bed *b = bed_new(shape_of(64, 8, true));

	(void)state;
	for (unsigned pass = 0; pass < 10; pass++)
		for (uint64_t at = 0; at < 36864; at += 64)
			access_filtered(b, 0x10000 + at, 8, false);
	assert_int_equal(l1d_misses(b), 10 * 576);
	bed_free(b);
}

static void page_strides_fall_into_one_set(void **state)
{
	struct bed *fits = bed_new(shape_of(64, 8, true)), *not = bed_new(shape_of(64, 8, true));

	(void)state;
	for (unsigned pass = 0; pass < 100; pass++) {
		for (uint64_t page = 0; page < 8; page++)
			access_filtered(fits, page << 12, 8, true);
		for (uint64_t page = 0; page < 9; page++)
			access_filtered(not, page << 12, 8, true);
	}
	assert_int_equal(l1d_misses(fits), 8);
	assert_int_equal(fits->memory.count[MODEL_L1D_WRITEBACKS], 0);
	assert_int_equal(l1d_misses(not ), 900);
	assert_int_equal(not ->memory.count[MODEL_L1D_WRITEBACKS], 892);
	assert_int_equal(not ->memory.count[MODEL_MEM_WRITE_LINES], 892);
	bed_free(fits);
	bed_free(not );
}

static void an_access_over_a_line_end_touches_both(void **state)
{
	struct bed *b = bed_new(shape_of(64, 8, false));

	(void)state;
	access_filtered(b, 0x1003c, 8, false);
	assert_int_equal(l1d_misses(b), 2);
	access_filtered(b, 0x1003c, 8, false);
	access_filtered(b, 0x10000, 8, false);
	access_filtered(b, 0x10040, 8, true);
	assert_int_equal(l1d_misses(b), 2);
	access_filtered(b, 0x10ffc, 8, true); /* and over a page's end */
	assert_int_equal(l1d_misses(b), 4);
	assert_int_equal(b->memory.count[MODEL_DTLB_READ_MISSES], 1);
	assert_int_equal(b->memory.count[MODEL_DTLB_WRITE_MISSES], 1);
	bed_free(b);
}

/* ---- levels ---- */

static struct quipu_model three_levels(void)
{
	return (struct quipu_model){
		.l1i = {64, 8, 6, 0},
		.l1d = {64, 8, 6, 0},
		.l2 = {1024, 8, 6, 12},
		.l3 = {8192, 8, 6, 40},
		.l3_cpus = 2,
		.itlb = {16, 4, 12, 0},
		.dtlb = {16, 4, 12, 0},
		.lru = 1,
		.full = 1,
		.memory = 200,
		.walk = 20,
	};
}

static void a_miss_costs_what_the_serving_level_says(void **state)
{
	struct bed *b = bed_new(three_levels());
	struct model_cache l3;
	size_t bytes = model_cache_bytes(&b->shape.l3);
	void *memory = aligned_alloc(64, bytes);

	(void)state;
	assert_non_null(memory);
	memset(memory, 0, bytes);
	model_cache_init(&l3, &b->shape.l3, true, memory);
	model_cache_share(&l3);
	b->memory.l3 = &l3;
	assert_int_equal(model_data(&b->memory, 0x1000, 8, false), 220); /* memory, and a walk */
	assert_int_equal(model_data(&b->memory, 0x1008, 8, false), 0);
	for (uint64_t page = 2; page < 10; page++) /* pushes it out of L1, not out of L2 */
		model_data(&b->memory, page << 12, 8, false);
	assert_int_equal(model_data(&b->memory, 0x1000, 8, false), 12);
	assert_int_equal(model_fetch(&b->memory, 0x1000), 12 + 20);
	for (uint64_t at = 1; at < 9; at++) /* out of L2, not out of L3 */
		model_data(&b->memory, 0x1000 + (at << 16), 8, false);
	model_data(&b->memory, 0x1040, 8, false);
	b->memory.count[MODEL_STALL_BACKEND] = 0;
	assert_int_equal(model_data(&b->memory, 0x1000, 8, true), 40);
	assert_int_equal(b->memory.count[MODEL_STALL_BACKEND], 40);
	assert_int_equal(b->memory.count[MODEL_LL_WRITES], 1);
	assert_int_equal(b->memory.count[MODEL_LL_WRITE_MISSES], 0);
	assert_int_equal(b->memory.count[MODEL_LL_READ_MISSES],
			 b->memory.count[MODEL_MEM_READ_LINES]);
	free(memory);
	bed_free(b);
}

static void base_timing_loses_no_cycles(void **state)
{
	struct quipu_model shape = three_levels();
	struct bed *b;

	(void)state;
	shape.full = 0;
	shape.l3.sets = 0;
	b = bed_new(shape);
	assert_int_equal(model_data(&b->memory, 0x1000, 8, false), 0);
	assert_int_equal(model_fetch(&b->memory, 0x1000), 0);
	assert_int_equal(
		b->memory.count[MODEL_STALL_BACKEND] + b->memory.count[MODEL_STALL_FRONTEND], 0);
	assert_int_equal(b->memory.count[MODEL_L1I_MISSES], 1);
	assert_int_equal(b->memory.count[MODEL_LL_READ_MISSES], 1); /* L2 is the last level now */
	bed_free(b);
}

/* What served each miss, and behind which port memory did, add up to the misses themselves. */
static void every_miss_is_served_once(void **state)
{
	struct quipu_model shape = three_levels();
	struct model_cache l3;
	uint64_t x = 0x2545f4914f6cdd1d, reads = 0, writes = 0;
	struct bed *b;
	const uint64_t *n;
	size_t bytes;
	void *memory;

	(void)state;
	shape.ports = 8;
	b = bed_new(shape);
	n = b->memory.count;
	bytes = model_cache_bytes(&b->shape.l3);
	memory = aligned_alloc(64, bytes);
	assert_non_null(memory);
	memset(memory, 0, bytes);
	model_cache_init(&l3, &b->shape.l3, true, memory);
	b->memory.l3 = &l3;
	for (unsigned i = 0; i < 200000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x % 5)
			model_data(&b->memory, (x >> 20) % (x % 3 ? 1u << 14 : 1u << 26) & ~7u, 8,
				   x >> 8 & 1);
		else
			model_fetch(&b->memory, 1u << 30 | ((x >> 20) % (1u << 18) & ~3u));
	}
	assert_true(n[MODEL_LOADS_FROM_L2] && n[MODEL_FETCHES_FROM_L2] && n[MODEL_LOADS_FROM_L3]);
	assert_int_equal(n[MODEL_LOADS_FROM_L2] + n[MODEL_LOADS_BEYOND_L2],
			 n[MODEL_L1D_READ_MISSES]);
	assert_int_equal(n[MODEL_LOADS_FROM_L3] + n[MODEL_LOADS_FROM_MEMORY],
			 n[MODEL_LOADS_BEYOND_L2]);
	assert_int_equal(n[MODEL_FETCHES_FROM_L2] + n[MODEL_FETCHES_FROM_L3] +
				 n[MODEL_FETCHES_FROM_MEMORY],
			 n[MODEL_L1I_MISSES]);
	assert_int_equal(n[MODEL_DTLB_MISSES],
			 n[MODEL_DTLB_READ_MISSES] + n[MODEL_DTLB_WRITE_MISSES]);
	assert_int_equal(n[MODEL_DATA_WALKS] + n[MODEL_FETCH_WALKS],
			 shape.stlb.sets ? n[MODEL_STLB_MISSES]
					 : n[MODEL_DTLB_MISSES] + n[MODEL_ITLB_MISSES]);
	assert_int_equal(n[MODEL_WALKS], n[MODEL_DATA_WALKS] + n[MODEL_FETCH_WALKS]);
	for (unsigned p = 0; p < 8; p++) {
		assert_true(n[MODEL_PORT_READ_LINES + p] && n[MODEL_PORT_WRITE_LINES + p]);
		reads += n[MODEL_PORT_READ_LINES + p];
		writes += n[MODEL_PORT_WRITE_LINES + p];
	}
	for (unsigned p = 0; p < 4; p++) {
		assert_int_equal(n[MODEL_PAIR_READ_LINES + p],
				 n[MODEL_PORT_READ_LINES + 2 * p] +
					 n[MODEL_PORT_READ_LINES + 2 * p + 1]);
		assert_int_equal(n[MODEL_PAIR_WRITE_LINES + p],
				 n[MODEL_PORT_WRITE_LINES + 2 * p] +
					 n[MODEL_PORT_WRITE_LINES + 2 * p + 1]);
	}
	assert_int_equal(reads, n[MODEL_MEM_READ_LINES]);
	assert_int_equal(writes, n[MODEL_MEM_WRITE_LINES]);
	free(memory);
	bed_free(b);
}

/* A bed with a third level of its own. */
static struct bed *bed_deep(struct quipu_model shape)
{
	struct bed *b = bed_new(shape);
	size_t bytes = model_cache_bytes(&shape.l3);

	b->level3_bytes = aligned_alloc(64, bytes);
	assert_non_null(b->level3_bytes);
	memset(b->level3_bytes, 0, bytes);
	model_cache_init(&b->level3, &b->shape.l3, shape.lru, b->level3_bytes);
	b->memory.l3 = &b->level3;
	return b;
}

/* As the engine does where neither filter has it: first what can be told without a call. */
static unsigned access_short(struct bed *b, struct model_shape g, uint64_t va, bool store)
{
	struct model_memory *m = &b->memory;

	switch (model_data_hits(m, va, store, g)) {
	case MODEL_HIT: return 0;
	case MODEL_LINE_MISSED: return store ? model_store_missed(m, va) : model_load_missed(m, va);
	case MODEL_PAGE_MISSED:
		return store ? model_store_translated(m, va) : model_load_translated(m, va);
	case MODEL_UNKNOWN: break;
	}
	return model_data(m, va, 8, store);
}

static void same_by_the_short_way(struct quipu_model shape)
{
	struct bed *one = bed_deep(shape), *other = bed_deep(shape);
	const struct model_memory *m = &one->memory;
	struct model_shape g = {shape.l1d.shift, shape.dtlb.shift, m->line_mask, m->page_mask,
				model_memory_whole(m)};

	for (unsigned i = 0; i < 200000; i++) {
		uint64_t r = next_random(), va = (r >> 20) % (r & 3 ? 1u << 15 : 1u << 24) & ~7u;
		bool store = r >> 3 & 1;

		va += r >> 5 & 1 ? UINT64_C(0x4000000000) : 0x10000;
		assert_int_equal(access_short(one, g, va, store),
				 model_data(&other->memory, va, 8, store));
	}
	assert_memory_equal(one->memory.count, other->memory.count, sizeof(m->count));
	assert_true(m->count[MODEL_LL_READ_MISSES] && m->count[MODEL_MEM_WRITE_LINES] &&
		    m->count[MODEL_LOADS_FROM_L3] && m->count[MODEL_LOADS_FROM_L2]);
	free(one->level3_bytes);
	free(other->level3_bytes);
	bed_free(one);
	bed_free(other);
}

static void the_short_way_counts_the_same(void **state)
{
	struct quipu_model shape = three_levels();

	(void)state;
	shape.lru = 0;
	shape.full = 1;
	shape.l1d = (struct quipu_model_cache){64, 8, 6, 0};
	shape.l2 = (struct quipu_model_cache){256, 8, 6, 12};
	shape.l3 = (struct quipu_model_cache){512, 16, 6, 40};
	shape.dtlb = (struct quipu_model_cache){16, 4, 12, 0};
	same_by_the_short_way(shape);
	shape.stlb = (struct quipu_model_cache){32, 4, 12, 0};
	shape.l3.ways = 20;
	same_by_the_short_way(shape);
	shape.l1d = (struct quipu_model_cache){128, 4, 6, 0};
	shape.dtlb = (struct quipu_model_cache){8, 4, 13, 0};
	same_by_the_short_way(shape);
	shape.l1d = (struct quipu_model_cache){32, 8, 7, 0};
	shape.dtlb = (struct quipu_model_cache){8, 8, 13, 0};
	same_by_the_short_way(shape);
	shape.lru = 1;
	same_by_the_short_way(shape);
}

static void a_line_goes_through_the_port_of_its_address(void **state)
{
	struct quipu_model shape = three_levels();
	struct bed *b;

	(void)state;
	shape.l3.sets = 0;
	shape.ports = 4;
	b = bed_new(shape); /* lines of memory are those of L2 */
	for (unsigned i = 0; i < 64; i++)
		model_data(&b->memory,
			   UINT64_C(0x7f0000000000) + ((uint64_t)i << (shape.l2.shift + 1)), 8,
			   false);
	for (unsigned p = 0; p < 4; p++)
		assert_int_equal(b->memory.count[MODEL_PORT_READ_LINES + p], p % 2 ? 0 : 32);
	bed_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lru_misses_are_those_of_the_definition),
		cmocka_unit_test(plru_misses_are_those_of_the_definition),
		cmocka_unit_test(what_fits_misses_once),
		cmocka_unit_test(what_does_not_fit_misses_always_with_lru),
		cmocka_unit_test(page_strides_fall_into_one_set),
		cmocka_unit_test(an_access_over_a_line_end_touches_both),
		cmocka_unit_test(a_miss_costs_what_the_serving_level_says),
		cmocka_unit_test(base_timing_loses_no_cycles),
		cmocka_unit_test(every_miss_is_served_once),
		cmocka_unit_test(the_short_way_counts_the_same),
		cmocka_unit_test(a_line_goes_through_the_port_of_its_address),
	};

	return cmocka_run_group_tests_name("model cache", tests, NULL, NULL);
}
