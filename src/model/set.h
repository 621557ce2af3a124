/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens in one set of a cache when a line comes that is not there, inline: for cache.c and
 * memory.c alone. Engine sheet 9.2.
 *
 * Two shapes have a short way, a simple cache and one of sixteen ways (cache.h); all others go
 * through model_cache_reference.
 */
#ifndef QUIPU_MODEL_SET_H
#define QUIPU_MODEL_SET_H

#include <quipu/bits.h>

#include "model/cache.h"

/* model_set_empty - the first empty way, or the victim when there is none; seldom asked. */
unsigned model_set_empty(const struct model_cache *, struct model_set *);
unsigned model_sixteen_empty(const struct model_cache *, struct model_sixteen *);

/* The leaf that the tree points to. */
static inline unsigned model_tree_victim(uint64_t tree, unsigned levels)
{
	unsigned node = 1;

	for (unsigned level = levels; level; level--)
		node = 2 * node + (unsigned)(tree >> node & 1);
	return node - (1u << levels);
}

/* ---- a simple cache ---- */

/* @line, which is not there, comes to the set @s of a simple cache. */
static inline unsigned model_set_fill(struct model_cache *c, struct model_set *s, uint64_t line,
				      bool write, struct model_victim *victim)
{
	unsigned way = __builtin_expect(s->tree & 1, 1) ? model_tree_victim(s->tree, c->levels)
							: model_set_empty(c, s);
	uint64_t dirty = s->dirty;

	victim->dirty = dirty >> way & 1;
	victim->line = model_cache_number(s->tag[way]) << c->bits | (line & c->mask);
	s->tag[way] = model_cache_tag(line >> c->bits);
	s->dirty = (dirty & ~bits_one(way)) | (uint64_t)write << way;
	model_cache_touch(c, s, way);
	return way;
}

/* model_set_reference - one reference to @line: hit or fill. True: a hit; @victim is written only
 * at a miss. @dirty (or NULL): whether the line is dirty now. */
static inline __attribute__((always_inline)) bool model_set_reference(struct model_cache *c,
								      uint64_t line, bool write,
								      bool *dirty,
								      struct model_victim *victim)
{
	struct model_set *s;
	unsigned hits = model_cache_look(c, line, &s), way;

	if (hits) {
		way = (unsigned)__builtin_ctz(hits);
		s->dirty |= (uint64_t)write << way;
		model_cache_touch(c, s, way);
	} else {
		way = model_set_fill(c, s, line, write, victim);
	}
	if (dirty)
		*dirty = s->dirty >> way & 1;
	return hits;
}

/* ---- sixteen ways ---- */

#define MODEL_SIXTEEN_NONE 0u
#define MODEL_SIXTEEN_MASK ((1u << MODEL_SIXTEEN_TAG) - 1)

/* Upside down, so that the tag that no line has is 0: a large cache is empty without being touched.
 */
static inline uint32_t model_sixteen_tag(const struct model_cache *c, uint64_t line)
{
	uint32_t tag = ~(uint32_t)(line >> c->bits) & MODEL_SIXTEEN_MASK;

	return tag + (tag == MODEL_SIXTEEN_NONE);
}

static inline struct model_sixteen *model_sixteen_at(const struct model_cache *c, uint64_t line)
{
	return (struct model_sixteen *)(c->sets + (line & c->mask) * MODEL_SIMPLE_STRIDE);
}

/* Bit i: way i has @tag. */
static inline unsigned model_sixteen_equal(const struct model_sixteen *s, uint32_t tag)
{
#if defined(__SSE2__)
	typedef short shorts __attribute__((vector_size(16), may_alias));
	typedef char bytes __attribute__((vector_size(16), may_alias));
	short want = (short)tag;
	char top = (char)(tag >> 16);
	shorts low = {want, want, want, want, want, want, want, want};
	bytes high = {top, top, top, top, top, top, top, top,
		      top, top, top, top, top, top, top, top};
	const shorts *have = (const shorts *)s->low;
	bytes both = (bytes)__builtin_ia32_packsswb128((shorts)(have[0] == low),
						       (shorts)(have[1] == low));

	both &= (bytes)(*(const bytes *)s->high == high);
	return (unsigned)__builtin_ia32_pmovmskb128(both);
#else
	unsigned equal = 0;

	for (unsigned way = 0; way < 16; way++)
		equal |= (unsigned)(s->low[way] == (uint16_t)tag && s->high[way] == tag >> 16)
			 << way;
	return equal;
#endif
}

static inline void model_sixteen_touch(const struct model_cache *c, struct model_sixteen *s,
				       unsigned way)
{
	s->tree = (s->tree & c->near[way].keep) | c->near[way].set;
}

static inline unsigned model_sixteen_fill(struct model_cache *c, struct model_sixteen *s,
					  uint64_t line, bool write, struct model_victim *victim)
{
	unsigned way = __builtin_expect(s->tree & 1, 1) ? model_tree_victim(s->tree, 4)
							: model_sixteen_empty(c, s);
	uint32_t tag = model_sixteen_tag(c, line), dirty = s->dirty;
	uint64_t was = ~((uint32_t)s->high[way] << 16 | s->low[way]) & MODEL_SIXTEEN_MASK;

	victim->dirty = dirty >> way & 1;
	victim->line = was << c->bits | (line & c->mask);
	s->low[way] = (uint16_t)tag;
	s->high[way] = (uint8_t)(tag >> 16);
	s->dirty = (dirty & ~(1u << way)) | (uint32_t)write << way;
	model_sixteen_touch(c, s, way);
	return way;
}

/* model_sixteen_reference - the same in the set @s of sixteen ways. */
static inline __attribute__((always_inline)) bool
model_sixteen_reference(struct model_cache *c, struct model_sixteen *s, uint64_t line, bool write,
			bool *dirty, struct model_victim *victim)
{
	unsigned hits = model_sixteen_equal(s, model_sixteen_tag(c, line)), way;

	if (hits) {
		way = (unsigned)__builtin_ctz(hits);
		s->dirty |= (uint32_t)write << way;
		model_sixteen_touch(c, s, way);
	} else {
		way = model_sixteen_fill(c, s, line, write, victim);
	}
	if (dirty)
		*dirty = s->dirty >> way & 1;
	return hits;
}

/* ---- either ---- */

/* model_set_access - model_cache_access, when a miss is as likely as a hit. */
static inline __attribute__((always_inline)) bool model_set_access(struct model_cache *c,
								   uint64_t line, bool write,
								   bool *dirty,
								   struct model_victim *victim)
{
	if (c->simple)
		return model_set_reference(c, line, write, dirty, victim);
	if (c->sixteen && !c->shared)
		return model_sixteen_reference(c, model_sixteen_at(c, line), line, write, dirty,
					       victim);
	return model_cache_reference(c, line, write, dirty, victim);
}

/*
 * model_set_write_back - model_cache_write_back if @dirty, else nothing, and true. Whether a victim
 * is dirty the host cannot foresee, so that it is no branch here.
 */
static inline bool model_set_write_back(struct model_cache *c, uint64_t line, bool dirty)
{
	if (c->simple) {
		struct model_set *s;
		unsigned hits = model_cache_look(c, line, &s);

		s->dirty |= hits & -hits & -(unsigned)dirty;
		return hits || !dirty;
	}
	return !dirty || model_cache_write_back(c, line);
}

#endif
