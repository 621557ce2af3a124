/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One cache or TLB: set-associative, tree-PLRU or true LRU, write-back, write-allocate. Engine
 * sheet 9.2. Pure: no allocation, no I/O; the caller gives the memory.
 *
 * Tags are 32 bits: lines whose numbers differ only 32 bits above the set index are taken for the
 * same one (for 64 sets of 64 bytes, addresses 2^44 apart).
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
			   the right */
	uint64_t dirty; /* bit w: way w */
	uint32_t lock;	/* of a shared cache */
	uint32_t pad;
	uint32_t tag[]; /* ways, rounded up to four; then LRU: ways bytes, most recent first */
};

struct model_cache {
	uint8_t *sets;
	uint32_t nsets, ways;
	uint32_t mask;	  /* nsets - 1, or 0 when nsets is no power of two */
	uint32_t bits;	  /* log2 of nsets, where it is a power of two */
	uint32_t stride;  /* bytes of a set */
	uint32_t vectors; /* groups of four tags */
	uint32_t levels;  /* of the tree */
	uint8_t lru;
	uint8_t shared; /* sets are locked */
	uint8_t simple;
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
/*
 * model_cache_access - reference @line; true when it was there. Else it is there now, and *@victim
 * tells of the line that had to go (dirty false when none that matters). @write: it becomes dirty.
 * *@dirty (may be NULL): is it so now?
 */
bool model_cache_access(struct model_cache *, uint64_t line, bool write, bool *dirty,
			struct model_victim *victim);
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
