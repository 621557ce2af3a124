/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of one CPU (memory.h). Engine sheet 9. */
#include "model/memory.h"

#include <string.h>

#include "model/set.h"

static const quipu_signal signals[MODEL_COUNTS] = {
	[MODEL_L1I_MISSES] = QUIPU_SIGNAL_L1I_MISSES,
	[MODEL_L1D_READ_MISSES] = QUIPU_SIGNAL_L1D_READ_MISSES,
	[MODEL_L1D_WRITE_MISSES] = QUIPU_SIGNAL_L1D_WRITE_MISSES,
	[MODEL_L1D_WRITEBACKS] = QUIPU_SIGNAL_L1D_WRITEBACKS,
	[MODEL_L2_READS] = QUIPU_SIGNAL_L2_READS,
	[MODEL_L2_READ_MISSES] = QUIPU_SIGNAL_L2_READ_MISSES,
	[MODEL_L2_WRITES] = QUIPU_SIGNAL_L2_WRITES,
	[MODEL_L2_WRITE_MISSES] = QUIPU_SIGNAL_L2_WRITE_MISSES,
	[MODEL_LL_READS] = QUIPU_SIGNAL_LL_READS,
	[MODEL_LL_READ_MISSES] = QUIPU_SIGNAL_LL_READ_MISSES,
	[MODEL_LL_WRITES] = QUIPU_SIGNAL_LL_WRITES,
	[MODEL_LL_WRITE_MISSES] = QUIPU_SIGNAL_LL_WRITE_MISSES,
	[MODEL_ITLB_MISSES] = QUIPU_SIGNAL_ITLB_MISSES,
	[MODEL_DTLB_READ_MISSES] = QUIPU_SIGNAL_DTLB_READ_MISSES,
	[MODEL_DTLB_WRITE_MISSES] = QUIPU_SIGNAL_DTLB_WRITE_MISSES,
	[MODEL_STLB_ACCESSES] = QUIPU_SIGNAL_STLB_ACCESSES,
	[MODEL_STLB_MISSES] = QUIPU_SIGNAL_STLB_MISSES,
	[MODEL_MEM_READ_LINES] = QUIPU_SIGNAL_MEM_READ_LINES,
	[MODEL_MEM_WRITE_LINES] = QUIPU_SIGNAL_MEM_WRITE_LINES,
	[MODEL_LOADS_FROM_L2] = QUIPU_SIGNAL_LOADS_FROM_L2,
	[MODEL_LOADS_BEYOND_L2] = QUIPU_SIGNAL_LOADS_BEYOND_L2,
	[MODEL_LOADS_FROM_L3] = QUIPU_SIGNAL_LOADS_FROM_L3,
	[MODEL_LOADS_FROM_MEMORY] = QUIPU_SIGNAL_LOADS_FROM_MEMORY,
	[MODEL_FETCHES_FROM_L2] = QUIPU_SIGNAL_FETCHES_FROM_L2,
	[MODEL_FETCHES_FROM_L3] = QUIPU_SIGNAL_FETCHES_FROM_L3,
	[MODEL_FETCHES_FROM_MEMORY] = QUIPU_SIGNAL_FETCHES_FROM_MEMORY,
	[MODEL_DTLB_MISSES] = QUIPU_SIGNAL_DTLB_MISSES,
	[MODEL_DATA_WALKS] = QUIPU_SIGNAL_DATA_WALKS,
	[MODEL_FETCH_WALKS] = QUIPU_SIGNAL_FETCH_WALKS,
	[MODEL_WALKS] = QUIPU_SIGNAL_WALKS,
	[MODEL_STALL_FRONTEND] = QUIPU_SIGNAL_STALL_FRONTEND,
	[MODEL_STALL_BACKEND] = QUIPU_SIGNAL_STALL_BACKEND,
};

quipu_signal model_signal(enum model_count c)
{
	if (c >= MODEL_PORT_READ_LINES && c < MODEL_STALL_FRONTEND)
		return QUIPU_SIGNAL_PORT_READ_LINES + (c - MODEL_PORT_READ_LINES);
	return signals[c];
}

/* ---- beginning ---- */

size_t model_memory_bytes(const struct quipu_model *m)
{
	return model_cache_bytes(&m->l1i) + model_cache_bytes(&m->l1d) + model_cache_bytes(&m->l2) +
	       model_cache_bytes(&m->itlb) + model_cache_bytes(&m->dtlb) +
	       model_cache_bytes(&m->stlb);
}

/* Words of a filter: as many as sets, or the largest power of two that divides their number and is
 * not above @most. */
static uint32_t filter_mask(const struct quipu_model_cache *c, uint32_t most)
{
	uint32_t words = c->sets ? c->sets & -c->sets : most;

	return (words < most ? words : most) - 1;
}

static void forget(uint64_t *filter, unsigned words)
{
	for (unsigned i = 0; i < words; i++)
		filter[i] = MODEL_NO_LINE;
}

void model_memory_init(struct model_memory *m, const struct quipu_model *model, void *memory,
		       struct model_cache *l3)
{
	struct {
		struct model_cache *cache;
		const struct quipu_model_cache *shape;
	} all[] = {
		{&m->l1i, &model->l1i},	  {&m->l1d, &model->l1d},   {&m->l2, &model->l2},
		{&m->itlb, &model->itlb}, {&m->dtlb, &model->dtlb}, {&m->stlb, &model->stlb},
	};
	uint8_t *at = memory;

	memset(m, 0, sizeof(*m));
	m->model = model;
	m->l3 = l3;
	for (unsigned c = 0; c < MODEL_COUNTS; c++)
		m->at[c] = &m->count[c];
	m->memory_shift = model->l3.sets   ? model->l3.shift
			  : model->l2.sets ? model->l2.shift
					   : model->l1d.shift;
	forget(m->line[0], MODEL_LINES);
	forget(m->line[1], MODEL_LINES);
	forget(m->page, MODEL_PAGES);
	forget(m->fetch_line, MODEL_LINES);
	forget(m->fetch_page, MODEL_PAGES);
	m->line_mask = filter_mask(&model->l1d, MODEL_LINES);
	m->page_mask = filter_mask(&model->dtlb, MODEL_PAGES);
	m->fetch_line_mask = filter_mask(&model->l1i, MODEL_LINES);
	m->fetch_page_mask = filter_mask(&model->itlb, MODEL_PAGES);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!all[i].shape->sets)
			continue;
		model_cache_init(all[i].cache, all[i].shape, model->lru, at);
		at += model_cache_bytes(all[i].shape);
	}
}

bool model_memory_whole(const struct model_memory *m)
{
	return m->l1d.simple && m->dtlb.simple && m->l1d.nsets == m->line_mask + 1 &&
	       m->dtlb.nsets == m->page_mask + 1 && m->dtlb.ways <= 4;
}

/* ---- a miss of level 1 ---- */

enum access { LOAD, STORE, FETCH };

static inline void count(struct model_memory *m, enum model_count c)
{
	++*m->at[c];
}

/* A line of memory at @va moves through its port. */
static inline void count_port(struct model_memory *m, enum model_count port, enum model_count pair,
			      uint64_t va)
{
	uint32_t p = va >> m->memory_shift & (m->model->ports - 1) & (QUIPU_MODEL_PORTS - 1);

	if (!m->model->ports)
		return;
	count(m, port + p);
	count(m, pair + p / 2);
}

#define INLINE static inline __attribute__((always_inline))

/* A dirty line at @va that no cache has a copy of. */
static __attribute__((noinline)) void write_memory(struct model_memory *m, uint64_t va)
{
	count(m, MODEL_MEM_WRITE_LINES);
	count_port(m, MODEL_PORT_WRITE_LINES, MODEL_PAIR_WRITE_LINES, va);
}

/* A dirty line at @va leaves the second level or, if there is no copy there, the first one. */
static __attribute__((noinline)) void write_back_3(struct model_memory *m, uint64_t va)
{
	if (!m->l3 || !model_cache_write_back(m->l3, va >> m->model->l3.shift))
		write_memory(m, va);
}

/* @victim leaves the first level. */
INLINE void write_back_2(struct model_memory *m, const struct model_victim *victim)
{
	const struct quipu_model *g = m->model;
	uint64_t va = victim->line << g->l1d.shift;

	*m->at[MODEL_L1D_WRITEBACKS] += victim->dirty;
	if (!g->l2.sets ? victim->dirty
			: !model_set_write_back(&m->l2, va >> g->l2.shift, victim->dirty))
		write_back_3(m, va);
}

/* What served a load or a fetch; nobody asks for stores. */
static inline void served(struct model_memory *m, enum access what, enum model_count load,
			  enum model_count fetch)
{
	if (what != STORE)
		count(m, what == LOAD ? load : fetch);
}

static __attribute__((noinline)) unsigned from_memory(struct model_memory *m, uint64_t va,
						      enum access what)
{
	m->went |= QUIPU_INSN_LL_MISS;
	count(m, MODEL_MEM_READ_LINES);
	count_port(m, MODEL_PORT_READ_LINES, MODEL_PAIR_READ_LINES, va);
	served(m, what, MODEL_LOADS_FROM_MEMORY, MODEL_FETCHES_FROM_MEMORY);
	return m->model->memory;
}

INLINE unsigned from_l3(struct model_memory *m, uint64_t va, enum access what)
{
	const struct quipu_model *g = m->model;
	struct model_victim victim;

	if (!m->l3)
		return from_memory(m, va, what);
	count(m, what == STORE ? MODEL_LL_WRITES : MODEL_LL_READS);
	if (model_set_access(m->l3, va >> g->l3.shift, false, NULL, &victim)) {
		served(m, what, MODEL_LOADS_FROM_L3, MODEL_FETCHES_FROM_L3);
		return g->l3.latency;
	}
	count(m, what == STORE ? MODEL_LL_WRITE_MISSES : MODEL_LL_READ_MISSES);
	if (victim.dirty)
		write_memory(m, victim.line << g->l3.shift);
	return from_memory(m, va, what);
}

INLINE unsigned from_l2(struct model_memory *m, uint64_t va, enum access what)
{
	const struct quipu_model *g = m->model;
	struct model_victim victim;
	bool last = !g->l3.sets, store = what == STORE;

	if (!g->l2.sets)
		return from_l3(m, va, what);
	count(m, store ? MODEL_L2_WRITES : MODEL_L2_READS);
	if (last)
		count(m, store ? MODEL_LL_WRITES : MODEL_LL_READS);
	if (model_set_access(&m->l2, va >> g->l2.shift, false, NULL, &victim)) {
		served(m, what, MODEL_LOADS_FROM_L2, MODEL_FETCHES_FROM_L2);
		return g->l2.latency;
	}
	m->went |= QUIPU_INSN_L2_MISS;
	count(m, store ? MODEL_L2_WRITE_MISSES : MODEL_L2_READ_MISSES);
	if (last)
		count(m, store ? MODEL_LL_WRITE_MISSES : MODEL_LL_READ_MISSES);
	if (what == LOAD)
		count(m, MODEL_LOADS_BEYOND_L2);
	if (victim.dirty)
		write_back_3(m, victim.line << g->l2.shift);
	return from_l3(m, va, what);
}

/* What a translation counts: a miss of the first level, and a walk. */
struct translation {
	enum model_count missed, walked;
	bool data;
};

INLINE unsigned translation_miss(struct model_memory *m, uint64_t va, struct translation t)
{
	const struct quipu_model *g = m->model;
	struct model_victim victim;

	m->changed = 1;
	m->went |= QUIPU_INSN_TLB_MISS | (t.data ? 0u : QUIPU_INSN_FETCH_MISS);
	count(m, t.missed);
	if (t.data)
		count(m, MODEL_DTLB_MISSES);
	if (g->stlb.sets) {
		count(m, MODEL_STLB_ACCESSES);
		if (model_set_access(&m->stlb, va >> g->stlb.shift, false, NULL, &victim))
			return g->second_tlb;
		m->went |= QUIPU_INSN_STLB_MISS;
		count(m, MODEL_STLB_MISSES);
	}
	count(m, t.walked);
	count(m, MODEL_WALKS);
	return g->walk;
}

static __attribute__((noinline)) unsigned missed_translation(struct model_memory *m, uint64_t va,
							     struct translation t)
{
	return translation_miss(m, va, t);
}

static inline unsigned translate(struct model_memory *m, struct model_cache *tlb, uint64_t va,
				 uint64_t page, struct translation t)
{
	struct model_victim victim;

	if (!tlb->nsets || model_set_access(tlb, page, false, NULL, &victim))
		return 0;
	return missed_translation(m, va, t);
}

static inline struct translation of_data(bool store)
{
	return (struct translation){store ? MODEL_DTLB_WRITE_MISSES : MODEL_DTLB_READ_MISSES,
				    MODEL_DATA_WALKS, true};
}

/* ---- data ---- */

INLINE unsigned data_miss(struct model_memory *m, uint64_t va, bool store,
			  const struct model_victim *victim)
{
	m->changed = 1;
	m->went |= QUIPU_INSN_L1_MISS;
	count(m, store ? MODEL_L1D_WRITE_MISSES : MODEL_L1D_READ_MISSES);
	write_back_2(m, victim);
	return from_l2(m, va, store ? STORE : LOAD);
}

/* With the caller's knowledge of what it is, each has no branch for the other. */
static __attribute__((noinline)) unsigned load_miss(struct model_memory *m, uint64_t va,
						    const struct model_victim *victim)
{
	return data_miss(m, va, false, victim);
}

static __attribute__((noinline)) unsigned store_miss(struct model_memory *m, uint64_t va,
						     const struct model_victim *victim)
{
	return data_miss(m, va, true, victim);
}

INLINE void remember_line(struct model_memory *m, uint64_t line, bool dirty)
{
	uint64_t at = line << m->model->l1d.shift;

	m->line[0][line & m->line_mask] = at;
	m->line[1][line & m->line_mask] = dirty ? at : MODEL_NO_LINE;
}

INLINE unsigned lose(struct model_memory *m, enum model_count stall, unsigned lost)
{
	if (!m->model->full || !lost)
		return 0;
	*m->at[stall] += lost;
	return lost;
}

INLINE unsigned line_missed(struct model_memory *m, uint64_t va, bool store)
{
	const struct quipu_model *g = m->model;
	uint64_t line = va >> g->l1d.shift;
	struct model_victim victim;
	struct model_set *s;

	model_prefetch(m, va);
	model_cache_look(&m->l1d, line, &s);
	model_set_fill(&m->l1d, s, line, store, &victim);
	remember_line(m, line, store);
	return data_miss(m, va, store, &victim);
}

INLINE unsigned page_missed(struct model_memory *m, uint64_t va, bool store)
{
	const struct quipu_model *g = m->model;
	uint64_t page = va >> g->dtlb.shift, line = va >> g->l1d.shift;
	struct model_victim victim;
	struct model_set *s;
	unsigned lost;
	bool dirty;

	model_cache_look(&m->dtlb, page, &s);
	model_set_fill(&m->dtlb, s, page, false, &victim);
	m->page[page & m->page_mask] = page << g->dtlb.shift;
	lost = translation_miss(m, va, of_data(store));
	if (model_cache_hits_data(&m->l1d, line, store, &dirty))
		remember_line(m, line, dirty);
	else
		lost += line_missed(m, va, store);
	return lost;
}

unsigned model_load_missed(struct model_memory *m, uint64_t va)
{
	return lose(m, MODEL_STALL_BACKEND, line_missed(m, va, false));
}

unsigned model_store_missed(struct model_memory *m, uint64_t va)
{
	return lose(m, MODEL_STALL_BACKEND, line_missed(m, va, true));
}

unsigned model_load_translated(struct model_memory *m, uint64_t va)
{
	return lose(m, MODEL_STALL_BACKEND, page_missed(m, va, false));
}

unsigned model_store_translated(struct model_memory *m, uint64_t va)
{
	return lose(m, MODEL_STALL_BACKEND, page_missed(m, va, true));
}

static inline __attribute__((always_inline)) unsigned data_line(struct model_memory *m, uint64_t va,
								bool store)
{
	const struct quipu_model *g = m->model;
	uint64_t page = va >> g->dtlb.shift, line = va >> g->l1d.shift;
	uint64_t *seen = &m->page[page & m->page_mask];
	struct model_victim victim;
	unsigned lost = 0;
	bool dirty = true;

	if ((*seen ^ va) >> g->dtlb.shift) {
		lost = translate(m, &m->dtlb, va, page, of_data(store));
		*seen = page << g->dtlb.shift;
	}
	if (!((m->line[store][line & m->line_mask] ^ va) >> g->l1d.shift))
		return lost;
	if (g->l1d.sets && !model_set_access(&m->l1d, line, store, &dirty, &victim)) {
		model_prefetch(m, va);
		lost += store ? store_miss(m, va, &victim) : load_miss(m, va, &victim);
	}
	remember_line(m, line, dirty);
	return lost;
}

static __attribute__((noinline)) unsigned second_line(struct model_memory *m, uint64_t va,
						      bool store)
{
	return data_line(m, va, store);
}

unsigned model_data(struct model_memory *m, uint64_t va, unsigned size, bool store)
{
	unsigned shift = m->model->l1d.shift, lost = data_line(m, va, store);
	uint64_t last = va + size - 1;

	if (__builtin_expect((last ^ va) >> shift != 0, 0))
		lost += second_line(m, last, store);
	return lose(m, MODEL_STALL_BACKEND, lost);
}

/* ---- instructions ---- */

static unsigned fetch_line(struct model_memory *m, uint64_t va, uint64_t *have)
{
	const struct quipu_model *g = m->model;
	uint64_t line = va >> g->l1i.shift;
	struct model_victim victim;

	*have = line << g->l1i.shift;
	m->fetches++;
	if (!g->l1i.sets || model_cache_access(&m->l1i, line, false, NULL, &victim))
		return 0;
	m->changed = 1;
	m->went |= QUIPU_INSN_FETCH_MISS | QUIPU_INSN_L1_MISS;
	count(m, MODEL_L1I_MISSES);
	return from_l2(m, va, FETCH);
}

unsigned model_fetch(struct model_memory *m, uint64_t va)
{
	const struct quipu_model *g = m->model;
	uint64_t page = va >> g->itlb.shift, line = va >> g->l1i.shift;
	uint64_t *seen = &m->fetch_page[page & m->fetch_page_mask];
	uint64_t *have = &m->fetch_line[line & m->fetch_line_mask];
	unsigned lost = 0;

	if ((*seen ^ va) >> g->itlb.shift) {
		lost = translate(m, &m->itlb, va, page,
				 (struct translation){MODEL_ITLB_MISSES, MODEL_FETCH_WALKS, false});
		*seen = page << g->itlb.shift;
		m->fetches++;
	}
	if ((*have ^ va) >> g->l1i.shift)
		lost += fetch_line(m, va, have);
	return lose(m, MODEL_STALL_FRONTEND, lost);
}
