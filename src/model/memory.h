/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of one CPU: its caches and TLBs in order, what an access misses, and the cycles lost.
 * Engine sheet 9. Pure.
 *
 * An access goes through the first-level TLB and, on a miss, the second; then L1, and for a line
 * that is not there L2, L3, memory. A store allocates like a load. A dirty line that has to leave
 * marks its copy in the next cache that has one, without a reference there; if none has, it is
 * written to memory. Caches neither include nor exclude each other. Cycles lost add up: of the
 * TLBs, and of the level that served the line.
 *
 * Filters: for each set of the first level, the address of the line (page) that was referenced
 * last; referencing it again changes nothing in either replacement. A caller that finds line and
 * page of its access in them need not call. A line is in the store's filter only while it is dirty.
 * A filter of fewer words than the cache has sets is as exact, and slower.
 */
#ifndef QUIPU_MODEL_MEMORY_H
#define QUIPU_MODEL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/cache.h"

#define MODEL_LINES 128u /* words of a line filter, most */
#define MODEL_PAGES 16u	 /* of a page filter */

enum model_count {
	MODEL_L1I_MISSES,
	MODEL_L1D_READ_MISSES,
	MODEL_L1D_WRITE_MISSES,
	MODEL_L1D_WRITEBACKS,
	MODEL_L2_READS,
	MODEL_L2_READ_MISSES,
	MODEL_L2_WRITES,
	MODEL_L2_WRITE_MISSES,
	MODEL_LL_READS,
	MODEL_LL_READ_MISSES,
	MODEL_LL_WRITES,
	MODEL_LL_WRITE_MISSES,
	MODEL_ITLB_MISSES,
	MODEL_DTLB_READ_MISSES,
	MODEL_DTLB_WRITE_MISSES,
	MODEL_STLB_ACCESSES,
	MODEL_STLB_MISSES,
	MODEL_MEM_READ_LINES,
	MODEL_MEM_WRITE_LINES,
	MODEL_LOADS_FROM_L2,
	MODEL_LOADS_BEYOND_L2,
	MODEL_LOADS_FROM_L3,
	MODEL_LOADS_FROM_MEMORY,
	MODEL_FETCHES_FROM_L2,
	MODEL_FETCHES_FROM_L3,
	MODEL_FETCHES_FROM_MEMORY,
	MODEL_DTLB_MISSES,
	MODEL_DATA_WALKS,
	MODEL_FETCH_WALKS,
	MODEL_WALKS,
	MODEL_PORT_READ_LINES,
	MODEL_PORT_WRITE_LINES = MODEL_PORT_READ_LINES + QUIPU_MODEL_PORTS,
	MODEL_PAIR_READ_LINES = MODEL_PORT_WRITE_LINES + QUIPU_MODEL_PORTS,
	MODEL_PAIR_WRITE_LINES = MODEL_PAIR_READ_LINES + QUIPU_MODEL_PORTS / 2,
	MODEL_MARKED_LOADS = MODEL_PAIR_WRITE_LINES + QUIPU_MODEL_PORTS / 2,
	MODEL_MARKED_STORES,
	MODEL_STALL_FRONTEND,
	MODEL_STALL_BACKEND,
	MODEL_COUNTS
};

/* No line or page: an access of any address lies far from it, whichever way one compares. */
#define MODEL_NO_LINE (UINT64_C(1) << 63)

struct model_memory {
	uint64_t line[2][MODEL_LINES]; /* of data: [0] referenced last in its set, [1] and dirty */
	uint64_t page[MODEL_PAGES];
	uint64_t fetch_line[MODEL_LINES];
	uint64_t fetch_page[MODEL_PAGES];
	uint32_t line_mask, page_mask, fetch_line_mask, fetch_page_mask;
	uint32_t changed; /* some count moved; the caller clears it */
	uint32_t went;	  /* how far, enum quipu_insn_event; the caller clears it */
	uint32_t fetches; /* how often a filter of the instruction side changed; wraps */
	const struct quipu_model *model;
	uint64_t count[MODEL_COUNTS];
	uint64_t *at[MODEL_COUNTS]; /* where each is counted: here, or where the caller wants it */
	struct model_cache l1i, l1d, l2, itlb, dtlb, stlb;
	struct model_cache *l3; /* shared; NULL: none */
	uint32_t memory_shift;	/* log2 of a line of memory: that of the last level */
};

/* model_memory_bytes - what model_memory_init needs, of zeroes. */
size_t model_memory_bytes(const struct quipu_model *);
/* model_memory_init - empty caches. @l3: of the CPUs that share one, or NULL. */
void model_memory_init(struct model_memory *, const struct quipu_model *, void *memory,
		       struct model_cache *l3);

/* model_data - an access of @size bytes (at most a line) at @va. Returns the cycles lost. */
unsigned model_data(struct model_memory *, uint64_t va, unsigned size, bool store);
/* model_fetch - instructions are fetched from the line at @va. Returns the cycles lost. */
unsigned model_fetch(struct model_memory *, uint64_t va);

/* model_fetched - fetching from the line that begins at @va changes nothing. */
static inline bool model_fetched(const struct model_memory *m, uint64_t va)
{
	const struct quipu_model *g = m->model;

	return m->fetch_line[va >> g->l1i.shift & m->fetch_line_mask] == va &&
	       !((m->fetch_page[va >> g->itlb.shift & m->fetch_page_mask] ^ va) >> g->itlb.shift);
}

/*
 * model_fetch_hits - fetches from the line at @va if the page was the last one of its set and the
 * first level has the line: true, and nothing is counted. Else nothing has happened.
 */
static inline bool model_fetch_hits(struct model_memory *m, uint64_t va)
{
	const struct quipu_model *g = m->model;
	uint64_t line = va >> g->l1i.shift;

	if ((m->fetch_page[va >> g->itlb.shift & m->fetch_page_mask] ^ va) >> g->itlb.shift ||
	    !model_cache_hits(&m->l1i, line))
		return false;
	m->fetch_line[line & m->fetch_line_mask] = line << g->l1i.shift;
	m->fetches++;
	return true;
}

/* model_prefetch - the sets that a miss looks at lie far apart: they are asked for at once. */
static inline void model_prefetch(const struct model_memory *m, uint64_t va)
{
	const struct quipu_model *g = m->model;

	if (m->l2.simple)
		model_cache_prefetch(&m->l2, va >> g->l2.shift);
	if (m->l3)
		model_cache_prefetch(m->l3, va >> g->l3.shift);
}

/* First-level data TLB and cache, as constants where the caller knows them. */
struct model_shape {
	unsigned line, page;   /* log2 of their bytes */
	uint32_t lines, pages; /* words of the filters - 1 */
	bool whole; /* simple caches, one word for each set, a TLB of at most four ways */
};

/* model_memory_whole - is it of that kind? */
bool model_memory_whole(const struct model_memory *);

enum model_found { MODEL_HIT, MODEL_LINE_MISSED, MODEL_PAGE_MISSED, MODEL_UNKNOWN };

/* model_data_hits where the shape is whole: nothing is asked that the host cannot foresee but
 * whether the caches have it. */
static inline __attribute__((always_inline)) enum model_found
model_data_hits_whole(struct model_memory *m, uint64_t va, bool store, struct model_shape g)
{
	uint64_t line = va >> g.line, page = va >> g.page;
	struct model_set *set = model_cache_set(&m->l1d, line & g.lines),
			 *translation = model_cache_set(&m->dtlb, page & g.pages);
	unsigned hits, way;

	hits = model_cache_equal4(translation->tag,
				  model_cache_tag(page >> __builtin_ctz(g.pages + 1)));
	if (__builtin_expect(!hits, 0))
		return MODEL_PAGE_MISSED;
	model_cache_touch(&m->dtlb, translation, (unsigned)__builtin_ctz(hits));
	m->page[page & g.pages] = page << g.page;
	hits = model_cache_equal8(set, model_cache_tag(line >> __builtin_ctz(g.lines + 1)));
	if (__builtin_expect(!hits, 0))
		return MODEL_LINE_MISSED;
	way = (unsigned)__builtin_ctz(hits);
	if (store)
		set->dirty |= UINT64_C(1) << way;
	model_cache_touch(&m->l1d, set, way);
	m->line[0][line & g.lines] = line << g.line;
	m->line[1][line & g.lines] = set->dirty >> way & 1 ? line << g.line : MODEL_NO_LINE;
	return MODEL_HIT;
}

/*
 * model_data_hits - an access of the line at @va whose page, or line, was not the last one of its
 * set. MODEL_HIT: first-level TLB and cache have it; that is done, and nothing is counted.
 * MODEL_LINE_MISSED: the TLB has its page, the cache has not got it; model_load_missed or
 * model_store_missed does the rest. MODEL_PAGE_MISSED, only where the shape is whole: the TLB has
 * not got its page; model_load_translated or model_store_translated does all. Else the caches are
 * as they were; the TLB may know the page already, which changes nothing in what model_data does
 * next.
 */
static inline __attribute__((always_inline)) enum model_found
model_data_hits(struct model_memory *m, uint64_t va, bool store, struct model_shape g)
{
	uint64_t line = va >> g.line, page = va >> g.page, *seen = &m->page[page & g.pages];
	bool dirty;

	if (g.whole)
		return model_data_hits_whole(m, va, store, g);
	if ((*seen ^ va) >> g.page) {
		if (!model_cache_hits(&m->dtlb, page))
			return MODEL_UNKNOWN;
		*seen = page << g.page;
	}
	if (!((m->line[store][line & g.lines] ^ va) >> g.line))
		return MODEL_HIT;
	if (!model_cache_hits_data(&m->l1d, line, store, &dirty))
		return m->l1d.simple ? MODEL_LINE_MISSED : MODEL_UNKNOWN;
	m->line[0][line & g.lines] = line << g.line;
	m->line[1][line & g.lines] = dirty ? line << g.line : MODEL_NO_LINE;
	return MODEL_HIT;
}

/* model_load_missed, model_store_missed - after MODEL_LINE_MISSED. Returns the cycles lost. */
unsigned model_load_missed(struct model_memory *, uint64_t va);
unsigned model_store_missed(struct model_memory *, uint64_t va);
/* model_load_translated, model_store_translated - after MODEL_PAGE_MISSED. Returns the cycles lost.
 */
unsigned model_load_translated(struct model_memory *, uint64_t va);
unsigned model_store_translated(struct model_memory *, uint64_t va);

/* model_signal - the signal that a count is. */
quipu_signal model_signal(enum model_count);

#endif
