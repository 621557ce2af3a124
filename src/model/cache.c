/* SPDX-License-Identifier: BSD-2-Clause */
/* One cache or TLB (cache.h). Engine sheet 9.2. */
#include "model/cache.h"

#include <string.h>

#include <quipu/bits.h>

#include "model/set.h"

#define MOST_SPINS 100000u /* a forked child may inherit a lock that nobody holds */

/* At least two, so that the short way need not ask. */
static uint32_t vectors_of(uint32_t ways)
{
	return ways <= 8 ? 2 : (ways + 3) / 4;
}

static uint32_t stride_of(const struct quipu_model_cache *c)
{
	return (uint32_t)(sizeof(struct model_set) + 16 * vectors_of(c->ways) + c->ways + 63) &
	       ~63u;
}

size_t model_cache_bytes(const struct quipu_model_cache *c)
{
	return (size_t)c->sets * stride_of(c);
}

static inline struct model_set *set_at(const struct model_cache *c, uint64_t index)
{
	return __builtin_assume_aligned(c->sets + index * c->stride, 64);
}

static uint8_t *order_of(const struct model_cache *c, struct model_set *s)
{
	return (uint8_t *)(s->tag + 4 * c->vectors);
}

/* Of sets that are zero: with a tree they are empty as they are. */
static void order(struct model_cache *c)
{
	for (uint32_t i = 0; c->lru && i < c->nsets; i++)
		for (uint32_t w = 0; w < c->ways; w++)
			order_of(c, set_at(c, i))[w] = (uint8_t)w;
}

/* Touching a way makes every node on its path point away from it. */
static void make_touch(struct model_cache *c, uint32_t way)
{
	uint64_t path = 0, set = 0;
	uint32_t node = 1;

	for (uint32_t level = c->levels; level-- > 0;) {
		uint32_t right = way >> level & 1;

		path |= bits_one(node);
		if (!right)
			set |= bits_one(node);
		node = 2 * node + right;
	}
	c->touch[way].keep = ~path;
	c->touch[way].set = set;
	if (c->ways > 16)
		return;
	c->near[way].keep = (uint16_t)~path;
	c->near[way].set = (uint16_t)set;
}

void model_cache_init(struct model_cache *c, const struct quipu_model_cache *shape, bool lru,
		      void *memory)
{
	bool whole = bits_count(shape->sets) == 1;

	memset(c, 0, sizeof(*c));
	c->sets = memory;
	c->nsets = shape->sets;
	c->ways = shape->ways;
	c->mask = whole ? shape->sets - 1 : 0;
	c->bits = whole ? bits_low(shape->sets) : 0;
	c->stride = stride_of(shape);
	c->vectors = vectors_of(shape->ways);
	c->lru = lru || bits_count(shape->ways) != 1;
	c->levels = c->lru ? 0 : bits_low(shape->ways);
	c->simple = whole && !c->lru && c->vectors <= 2;
	c->sixteen = whole && !c->lru && c->ways == 16;
	if (c->sixteen)
		c->stride = MODEL_SIMPLE_STRIDE;
	for (uint32_t w = 0; w < c->ways; w++)
		make_touch(c, w);
	order(c);
}

static inline void place(const struct model_cache *c, uint64_t line, uint64_t *index, uint32_t *tag)
{
	if (c->mask || c->nsets == 1) {
		*index = line & c->mask;
		*tag = model_cache_tag(line >> c->bits);
	} else {
		*index = line % c->nsets;
		*tag = model_cache_tag(line / c->nsets);
	}
}

static inline uint64_t line_at(const struct model_cache *c, uint64_t index, uint32_t tag)
{
	return c->mask || c->nsets == 1 ? model_cache_number(tag) << c->bits | index
					: model_cache_number(tag) * c->nsets + index;
}

/* The way that holds @tag, or -1. */
static inline int find(const struct model_cache *c, const struct model_set *s, uint32_t tag)
{
	uint64_t hits = model_cache_equal4(s->tag, tag);

	for (uint32_t g = 1; g < c->vectors; g++)
		hits |= (uint64_t)model_cache_equal4(s->tag + 4 * g, tag) << (4 * g);
	return hits ? (int)bits_low(hits) : -1;
}

static inline void use(const struct model_cache *c, struct model_set *s, uint32_t way)
{
	if (c->lru) {
		uint8_t *order = order_of(c, s), moved = order[0];

		for (uint32_t i = 1; moved != way; i++) {
			uint8_t next = order[i];

			order[i] = moved;
			moved = next;
		}
		order[0] = (uint8_t)way;
		return;
	}
	s->tree = (s->tree & c->touch[way].keep) | c->touch[way].set;
}

static inline uint32_t victim_of(const struct model_cache *c, struct model_set *s)
{
	if (__builtin_expect(!(s->tree & 1), 0)) {
		int empty = find(c, s, MODEL_NO_TAG);

		if (empty >= 0 && (uint32_t)empty < c->ways)
			return (uint32_t)empty;
		s->tree |= 1;
	}
	if (c->lru)
		return order_of(c, s)[c->ways - 1];
	return model_tree_victim(s->tree, c->levels);
}

static void lock(uint32_t *word)
{
	for (uint32_t i = 0; __atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE) && i < MOST_SPINS; i++)
		;
}

static void unlock(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

unsigned model_set_empty(const struct model_cache *c, struct model_set *s)
{
	return victim_of(c, s);
}

unsigned model_sixteen_empty(const struct model_cache *c, struct model_sixteen *s)
{
	unsigned empty = model_sixteen_equal(s, MODEL_SIXTEEN_NONE);

	if (empty)
		return (unsigned)__builtin_ctz(empty);
	s->tree |= 1;
	return model_tree_victim(s->tree, c->levels);
}

static bool reference_sixteen(struct model_cache *c, uint64_t line, bool write, bool *dirty,
			      struct model_victim *victim)
{
	struct model_sixteen *s = model_sixteen_at(c, line);
	bool hit;

	if (c->shared)
		lock(&s->lock);
	hit = model_sixteen_reference(c, s, line, write, dirty, victim);
	if (c->shared)
		unlock(&s->lock);
	return hit;
}

bool model_cache_reference(struct model_cache *c, uint64_t line, bool write, bool *dirty,
			   struct model_victim *victim)
{
	struct model_set *s;
	uint64_t index;
	uint32_t tag;
	int way;
	bool hit;

	victim->dirty = false;
	if (c->simple)
		return model_set_reference(c, line, write, dirty, victim);
	if (c->sixteen)
		return reference_sixteen(c, line, write, dirty, victim);
	place(c, line, &index, &tag);
	s = set_at(c, index);
	if (c->shared)
		lock(&s->lock);
	way = find(c, s, tag);
	hit = way >= 0;
	if (!hit) {
		way = (int)victim_of(c, s);
		victim->dirty = s->dirty >> way & 1;
		victim->line = line_at(c, index, s->tag[way]);
		s->tag[way] = tag;
		s->dirty &= ~bits_one((unsigned)way);
	}
	s->dirty |= (uint64_t)write << way;
	if (dirty)
		*dirty = s->dirty >> way & 1;
	use(c, s, (uint32_t)way);
	if (c->shared)
		unlock(&s->lock);
	return hit;
}

void model_cache_share(struct model_cache *c)
{
	c->shared = 1;
	c->simple = 0;
}

static bool write_back_sixteen(struct model_cache *c, uint64_t line)
{
	struct model_sixteen *s = model_sixteen_at(c, line);
	unsigned hits;

	if (c->shared)
		lock(&s->lock);
	hits = model_sixteen_equal(s, model_sixteen_tag(c, line));
	s->dirty |= hits & -hits;
	if (c->shared)
		unlock(&s->lock);
	return hits;
}

bool model_cache_write_back(struct model_cache *c, uint64_t line)
{
	struct model_set *s;
	uint64_t index;
	uint32_t tag;
	int way;

	if (c->simple) {
		return model_set_write_back(c, line, true);
	}
	if (c->sixteen)
		return write_back_sixteen(c, line);
	place(c, line, &index, &tag);
	s = set_at(c, index);
	if (c->shared)
		lock(&s->lock);
	way = find(c, s, tag);
	if (way >= 0)
		s->dirty |= bits_one((unsigned)way);
	if (c->shared)
		unlock(&s->lock);
	return way >= 0;
}
