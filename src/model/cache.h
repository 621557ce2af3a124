/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One cache or TLB: set-associative, tree-PLRU or true LRU, write-back, write-allocate. Engine
 * sheet 9.2. Pure: no allocation, no I/O; the caller gives the memory.
 *
 * Tags are 31 bits, in a cache of sixteen ways 24: lines whose numbers differ only so many bits
 * above the set index are taken for the same one (for 64 sets of 64 bytes, and for sixteen ways of
 * 8192 sets, addresses 2^43 apart).
 */
#ifndef QUIPU_MODEL_CACHE_H
#define QUIPU_MODEL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/model.h>

/* A set fills one host cache line when it has up to eight ways. */
struct model_set {
	uint64_t tree;	/* PLRU: node i is bit i, root 1, children 2i and 2i+1; 1: the victim is to
			   the right. Bit 0: no way is empty */
	uint64_t dirty; /* bit w: way w */
	uint32_t lock;	/* of a shared cache */
	uint32_t pad;
	uint32_t tag[]; /* ways, rounded up to four, at least eight; then LRU: ways bytes, most
			   recent first */
};

/*
 * A set of exactly sixteen ways under tree-PLRU fills one too, with tags in two parts: the sets of
 * a large cache lie in memory that the host's own caches seldom have, and each line of it costs.
 */
struct model_sixteen {
	uint32_t tree, dirty, lock, pad; /* as above */
	uint16_t low[16];
	uint8_t high[16];
};

#define MODEL_NO_TAG	    0u
#define MODEL_SIMPLE_STRIDE 64u /* bytes of a set of a simple cache, or of one of sixteen ways */
#define MODEL_SIXTEEN_TAG   24u /* bits of a tag there */

struct model_cache {
	uint8_t *sets;
	uint32_t nsets, ways;
	uint32_t mask;	  /* nsets - 1, or 0 when nsets is no power of two */
	uint32_t bits;	  /* log2 of nsets, where it is a power of two */
	uint32_t stride;  /* bytes of a set */
	uint32_t vectors; /* groups of four tags */
	uint32_t levels;  /* of the tree */
	uint8_t lru;
	uint8_t shared;	 /* sets are locked */
	uint8_t simple;	 /* at most eight ways, tree-PLRU, not shared */
	uint8_t sixteen; /* sets are struct model_sixteen */
	struct {
		uint16_t keep, set;
	} near[16]; /* touch, where there are no more ways: so that it takes little of the host's
		       cache */
	struct {
		uint64_t keep, set;
	} touch[QUIPU_MODEL_WAYS];
};

/* What a line that left the cache was. */
struct model_victim {
	bool dirty;
	uint64_t line;
};

/* model_cache_bytes - memory that a cache of this geometry needs, 64-byte aligned. 0: there is no
 * such cache. */
size_t model_cache_bytes(const struct quipu_model_cache *);
/* model_cache_init - an empty cache in @memory, which is all zero. */
void model_cache_init(struct model_cache *, const struct quipu_model_cache *, bool lru,
		      void *memory);
/* model_cache_reference - model_cache_access of any cache, whether the line is there or not. */
bool model_cache_reference(struct model_cache *, uint64_t line, bool write, bool *dirty,
			   struct model_victim *victim);

/* The tag of line @number of a set: the lowest bit says that there is one. */
static inline uint32_t model_cache_tag(uint64_t number)
{
	return (uint32_t)number << 1 | 1;
}

static inline uint64_t model_cache_number(uint32_t tag)
{
	return tag >> 1;
}

/* Tags lie behind a head of 24 bytes. */
typedef uint32_t model_tags4 __attribute__((vector_size(16), aligned(4), may_alias));

/* Bit i: tag[i] is @want, of four. */
static inline unsigned model_cache_equal4(const uint32_t *tag, uint32_t want)
{
	model_tags4 have = *(const model_tags4 *)tag, equal = (model_tags4)(have == want);

#if defined(__SSE2__)
	typedef float floats4 __attribute__((vector_size(16)));

	return (unsigned)__builtin_ia32_movmskps((floats4)equal);
#else
	return (equal[0] & 1) | (equal[1] & 2) | (equal[2] & 4) | (equal[3] & 8);
#endif
}

/* Set number @index of a simple cache. */
static inline struct model_set *model_cache_set(const struct model_cache *c, uint64_t index)
{
	return (struct model_set *)(c->sets + index * MODEL_SIMPLE_STRIDE);
}

/* Bit i: way i of eight has @tag. */
static inline unsigned model_cache_equal8(const struct model_set *s, uint32_t tag)
{
	return model_cache_equal4(s->tag, tag) | model_cache_equal4(s->tag + 4, tag) << 4;
}

/* The set of @line in a simple cache, and the way that has it: bit i, of eight. */
static inline unsigned model_cache_look(const struct model_cache *c, uint64_t line,
					struct model_set **set)
{
	*set = model_cache_set(c, line & c->mask);
	return model_cache_equal8(*set, model_cache_tag(line >> c->bits));
}

static inline void model_cache_touch(const struct model_cache *c, struct model_set *s, unsigned way)
{
	s->tree = (s->tree & c->near[way].keep) | c->near[way].set;
}

/*
 * model_cache_access - reference @line; true when it was there. Else it is there now, and *@victim
 * tells of the line that had to go (dirty false when none that matters). @write: it becomes dirty.
 * *@dirty (may be NULL): is it so now? Inline: the usual case by a short way, a simple cache that
 * has the line.
 */
static inline bool model_cache_access(struct model_cache *c, uint64_t line, bool write, bool *dirty,
				      struct model_victim *victim)
{
	struct model_set *s;
	unsigned hits, way;

	if (__builtin_expect(!c->simple, 0))
		return model_cache_reference(c, line, write, dirty, victim);
	hits = model_cache_look(c, line, &s);
	if (__builtin_expect(!hits, 0))
		return model_cache_reference(c, line, write, dirty, victim);
	way = (unsigned)__builtin_ctz(hits);
	s->dirty |= (uint64_t)write << way;
	if (dirty)
		*dirty = s->dirty >> way & 1;
	model_cache_touch(c, s, way);
	return true;
}

/*
 * model_cache_hits - reference @line if a simple cache has it, without a write; else nothing has
 * happened.
 * model_cache_hits_data - the same, with or without one; *@dirty: is it dirty now?
 */
static inline bool model_cache_hits(struct model_cache *c, uint64_t line)
{
	struct model_set *s;
	unsigned hits;

	if (!c->simple)
		return false;
	hits = model_cache_look(c, line, &s);
	if (!hits)
		return false;
	model_cache_touch(c, s, (unsigned)__builtin_ctz(hits));
	return true;
}

static inline bool model_cache_hits_data(struct model_cache *c, uint64_t line, bool write,
					 bool *dirty)
{
	struct model_set *s;
	unsigned hits, way;

	if (!c->simple)
		return false;
	hits = model_cache_look(c, line, &s);
	if (!hits)
		return false;
	way = (unsigned)__builtin_ctz(hits);
	s->dirty |= (uint64_t)write << way;
	*dirty = s->dirty >> way & 1;
	model_cache_touch(c, s, way);
	return true;
}

/* model_cache_share - from here on several threads use it: its sets are locked. */
void model_cache_share(struct model_cache *);
/* model_cache_prefetch - the set of @line will be needed. */
static inline void model_cache_prefetch(const struct model_cache *c, uint64_t line)
{
	uint64_t index = c->mask || c->nsets == 1 ? line & c->mask : line % c->nsets;

	__builtin_prefetch(c->sets + index * c->stride, 1);
}
/* model_cache_write_back - if @line is there mark it dirty, without a reference. */
bool model_cache_write_back(struct model_cache *, uint64_t line);

#endif
