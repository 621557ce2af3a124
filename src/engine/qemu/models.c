/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models in the plugin (models.h): their beginning and end, fetches, and branches.
 * Engine sheet 7.2, 9.1.
 *
 * A miss belongs to the instruction that accesses, or that is fetched: the counts are brought
 * forward here, in the middle of its block, and fold_access finds what they reach.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <quipu/bits.h>

#include "settle.h"

#define LAST_LEVELS 64u /* most groups of CPUs with a cache of level 3 of their own */

struct models engine_models[SEG_VCPUS];

/* A signal that the memory models move, and where it lies. */
static struct {
	uint8_t count; /* enum model_count */
	uint8_t scalar;
} moved[SEG_SCALARS];
static unsigned nmoved;

/* By group of CPUs; made when first needed. */
static struct {
	uint32_t ready;
	uint8_t *bytes;
	struct model_cache cache;
} last_level[LAST_LEVELS];

/* Shapes of the instruction side that are known as constants. */
static enum { FETCH_ANY, FETCH_6_12, FETCH_6_13, FETCH_7_16 } fetch_shape;
static bool threaded;

/* clang-format off */
#define SHAPE_FETCH_ANY                                                                            \
	((struct model_shape){engine.model.l1i.shift, engine.model.itlb.shift,                     \
	 vcpu_models(v)->memory.fetch_line_mask, vcpu_models(v)->memory.fetch_page_mask, false})
/* clang-format on */

static void *zeroes(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool shape_valid(const struct quipu_model_cache *c)
{
	return c->sets <= 1u << 24 && (!c->sets || (c->ways >= 1 && c->ways <= QUIPU_MODEL_WAYS)) &&
	       c->shift >= 3 && c->shift <= 30;
}

static bool size_valid(uint32_t n, uint32_t most)
{
	return n <= most && bits_count(n) <= 1;
}

/* The segment is the machine's, but a guest can write into it. */
static bool model_valid(const struct quipu_model *m)
{
	return shape_valid(&m->l1i) && shape_valid(&m->l1d) && shape_valid(&m->itlb) &&
	       shape_valid(&m->dtlb) && (!m->stlb.sets || shape_valid(&m->stlb)) &&
	       (!m->l2.sets || shape_valid(&m->l2)) && (!m->l3.sets || shape_valid(&m->l3)) &&
	       size_valid(m->counters, QUIPU_MODEL_COUNTERS) &&
	       size_valid(m->targets, QUIPU_MODEL_TARGETS) &&
	       size_valid(m->returns, QUIPU_MODEL_RETURNS) && m->history <= 16 && m->l3_cpus;
}

#define MEMORY (SEG_DATA | SEG_FETCH)
#define MODELS (MEMORY | SEG_PREDICT)

/* Which scalars the memory models move. What was moved before, and is, stays so all the while. */
static void find_moved(void)
{
	unsigned n = 0;

	for (unsigned k = 0; k < SEG_SCALARS; k++)
		for (unsigned c = 0; c < MODEL_COUNTS; c++)
			if (engine.scalar[k] == model_signal(c)) {
				moved[n].count = (uint8_t)c;
				moved[n++].scalar = (uint8_t)k;
			}
	nmoved = n;
}

bool models_moves(enum model_count c)
{
	for (unsigned i = 0; i < nmoved; i++)
		if (moved[i].count == c)
			return true;
	return false;
}

static bool open_models(void)
{
	if (engine.fetch_shift) /* they were opened before */
		return true;
	engine.model = engine.head->model;
	if (!model_valid(&engine.model))
		return false;
	access_open();
	engine.fetch_shift = engine.model.l1i.shift;
	return true;
}

int models_open(void)
{
	if (!(engine.features & MODELS))
		return 0;
	if (!open_models()) {
		fprintf(stderr, "quipu: engine: the segment's models cannot be\n");
		return -1;
	}
	find_moved();
	return 0;
}

/* What no thread has used since is empty again. */
static void empty_last_level(void)
{
	for (unsigned i = 0; i < LAST_LEVELS; i++) {
		if (!last_level[i].ready)
			continue;
		memset(last_level[i].bytes, 0, model_cache_bytes(&engine.model.l3));
		model_cache_init(&last_level[i].cache, &engine.model.l3, engine.model.lru,
				 last_level[i].bytes);
		if (threaded)
			model_cache_share(&last_level[i].cache);
	}
}

bool models_select(uint32_t was, uint32_t now)
{
	if (now & MODELS && !open_models())
		return false;
	find_moved();
	if (now & MEMORY && !(was & MEMORY))
		empty_last_level();
	return true;
}

/* From the second thread on the sets of a shared cache are locked. The only one that runs is here,
 * in a system call. */
static void begin_threads(void)
{
	if (threaded)
		return;
	threaded = true;
	for (unsigned i = 0; i < LAST_LEVELS; i++)
		model_cache_share(&last_level[i].cache);
}

static void set_outcomes(struct models *s)
{
	for (unsigned row = 0; row < OUTCOMES; row++)
		for (unsigned k = 0; k < SEG_LANES; k++)
			s->outcome[row][k] = engine.rates.missed[outcome_missed(row)][k] +
					     (row & engine.rates.taken >> k & 1);
}

static bool fetches(const struct model_memory *m, struct model_shape g)
{
	return engine.model.l1i.shift == g.line && engine.model.itlb.shift == g.page &&
	       m->fetch_line_mask == g.lines && m->fetch_page_mask == g.pages;
}

static void find_fetch_shape(const struct model_memory *m)
{
	fetch_shape = fetches(m, SHAPE_6_12)   ? FETCH_6_12
		      : fetches(m, SHAPE_6_13) ? FETCH_6_13
		      : fetches(m, SHAPE_7_16) ? FETCH_7_16
					       : FETCH_ANY;
}

/* What is a signal is counted where the machine reads it. */
static void place_counts(struct seg_vcpu *v, struct models *s)
{
	for (unsigned c = 0; c < MODEL_COUNTS; c++)
		s->memory.at[c] = &s->memory.count[c];
	for (unsigned i = 0; i < nmoved; i++)
		s->memory.at[moved[i].count] = &v->scalar[moved[i].scalar];
	s->slack = 0;
}

static void begin_memory(struct seg_vcpu *v, struct models *s)
{
	size_t bytes = model_memory_bytes(&engine.model);

	if (vcpu_index(v))
		begin_threads();
	if (s->bytes)
		memset(s->bytes, 0, bytes);
	else if (bytes)
		s->bytes = zeroes(bytes);
	s->ready = s->bytes || !bytes;
	if (s->ready)
		model_memory_init(&s->memory, &engine.model, s->bytes, NULL);
	if (!vcpu_index(v))
		find_fetch_shape(&s->memory);
}

static void new_stamp(struct seg_vcpu *v, struct models *s)
{
	s->stamp = (s->stamp & bits_mask(48)) | (uint64_t)(vcpu_index(v) + 1) << 48;
	s->stamp++;
}

void models_begin(struct seg_vcpu *v)
{
	struct models *s = vcpu_models(v);

	set_outcomes(s);
	if (!(engine.features & MODELS))
		return;
	begin_memory(v, s);
	model_predictor_init(&s->predict, &engine.model);
	place_counts(v, s);
	new_stamp(v, s);
	if (engine.features & SEG_LABEL)
		label_begin(v);
}

void models_change(struct seg_vcpu *v, uint32_t was, uint32_t now)
{
	struct models *s = vcpu_models(v);
	uint32_t begins = now & ~was;

	set_outcomes(s);
	if (now & MEMORY ? !(was & MEMORY) : now & MODELS && !(was & MODELS))
		begin_memory(v, s);
	if (begins & SEG_PREDICT)
		model_predictor_init(&s->predict, &engine.model);
	if (!(now & MODELS))
		return;
	place_counts(v, s);
	new_stamp(v, s);
	if (begins & SEG_LABEL)
		label_begin(v);
}

void models_forget(struct seg_vcpu *v)
{
	struct models *s = vcpu_models(v);

	memset(s->memory.count, 0, sizeof(s->memory.count));
	s->slack = 0;
}

void models_watch(struct seg_vcpu *v)
{
	vcpu_models(v)->slack = 0;
}

/* The cache of level 3 of the CPU that @v stands on. Two threads may both make it; one of them
 * wins. */
struct model_cache *models_level3(const struct seg_vcpu *v)
{
	unsigned group = v->cpu / engine.model.l3_cpus % LAST_LEVELS;
	struct model_cache *c = &last_level[group].cache;
	uint8_t *bytes, *none = NULL;

	if (!engine.model.l3.sets)
		return NULL;
	if (__atomic_load_n(&last_level[group].ready, __ATOMIC_ACQUIRE))
		return c;
	bytes = zeroes(model_cache_bytes(&engine.model.l3));
	if (!bytes)
		return NULL;
	if (!__atomic_compare_exchange_n(&last_level[group].bytes, &none, bytes, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(bytes, model_cache_bytes(&engine.model.l3));
		return NULL; /* until the other one is done */
	}
	model_cache_init(c, &engine.model.l3, engine.model.lru, bytes);
	if (threaded)
		model_cache_share(c);
	__atomic_store_n(&last_level[group].ready, 1, __ATOMIC_RELEASE);
	return c;
}

/* Has a signal that moved reached its deadline? And how far are they all from theirs? What others
 * move too must be looked at each time. */
__attribute__((noinline)) bool models_slack(struct seg_vcpu *v, struct models *s)
{
	bool reached = false;

	s->slack = engine.features & SEG_LABEL ? 0 : INT64_MAX;
	for (unsigned i = 0; i < nmoved; i++) {
		unsigned k = SEG_LANES + moved[i].scalar;
		int64_t now = (int64_t)v->scalar[moved[i].scalar], left;

		reached |= now >= v->nearest[k];
		if (v->nearest[k] == INT64_MAX)
			continue;
		if (engine.rates.mispredicts >> k & 1 ||
		    __builtin_sub_overflow(v->nearest[k], now, &left))
			left = 0;
		if (left < s->slack)
			s->slack = left;
	}
	return reached;
}

/* ---- instructions ---- */

static unsigned first_in(const struct block *t, uint64_t line)
{
	unsigned i = t->n - 1u;

	while (i && block_insn(t, i) > line)
		i--;
	return i;
}

static __attribute__((noinline)) void fetch_line(struct seg_vcpu *v, struct models *s,
						 const struct block *t, uint64_t at)
{
	unsigned lost = model_fetch(&s->memory, at < t->pc ? t->pc : at);
	uint32_t events;
	bool reached;

	if (!(s->memory.changed | lost))
		return;
	reached = settle(v, s, lost);
	events = went(s);
	if (engine.features & SEG_LABEL)
		label_fetch(v, first_in(t, at), events);
	if (reached)
		fold_access(v, t, first_in(t, at), 0, events);
}

static __attribute__((noinline)) void fetch_block(struct seg_vcpu *v, const struct block *t)
{
	struct models *s = vcpu_models(v);
	uint64_t bytes = UINT64_C(1) << engine.fetch_shift, at = t->pc & -bytes;
	uint32_t fetches = s->memory.fetches;

	if (!s->ready || !t->n)
		return;
	zero_upper();
	if (!s->memory.l3)
		s->memory.l3 = models_level3(v);
	for (; at <= t->last; at += bytes) {
		if (!model_fetched(&s->memory, at) && !model_fetch_hits(&s->memory, at))
			fetch_line(v, s, t, at);
	}
	if (s->memory.fetches != fetches)
		s->stamp++;
	/* A longer one may need a set twice. */
	if (t->last - t->pc <= bytes * s->memory.fetch_line_mask)
		((struct block *)t)->stamp = s->stamp;
}

void models_block(struct block *t)
{
	const struct quipu_model *g = &engine.model;
	uint64_t lines = (t->last >> g->l1i.shift) - (t->pc >> g->l1i.shift);

	/* Two lines must not share a word of the filter. */
	t->near = lines <= 1 && lines <= engine_models[0].memory.fetch_line_mask &&
		  !((t->pc ^ t->last) >> g->itlb.shift);
}

/* Line @at of a page that was the last one of its set: false when the first level has not got it.
 */
INLINE bool fetch_near(struct models *s, uint64_t at, struct model_shape g)
{
	uint64_t *have = &s->memory.fetch_line[at >> g.line & g.lines];

	if (*have == at)
		return true;
	if (!model_cache_hits(&s->memory.l1i, at >> g.line))
		return false;
	*have = at;
	s->stamp++;
	return true;
}

INLINE bool fetch_page(struct models *s, uint64_t pc, struct model_shape g)
{
	uint64_t *have = &s->memory.fetch_page[pc >> g.page & g.pages];

	if (!((*have ^ pc) >> g.page))
		return true;
	if (!model_cache_hits(&s->memory.itlb, pc >> g.page))
		return false;
	*have = pc >> g.page << g.page;
	s->stamp++;
	return true;
}

/*
 * A block of one or two lines of a page that are not all the last ones of their sets, but are in
 * the first level: without a call. What is done here is not done again by the long way.
 */
INLINE void fetch_hits(struct seg_vcpu *v, struct block *t, struct model_shape g)
{
	struct models *s = vcpu_models(v);
	uint64_t line = ~UINT64_C(0) << g.line;

	zero_upper();
	if (__builtin_expect(fetch_page(s, t->pc, g) && fetch_near(s, t->pc & line, g) &&
				     fetch_near(s, t->last & line, g),
			     1))
		t->stamp = s->stamp;
	else
		fetch_block(v, t);
}

INLINE void fetch_quick(struct seg_vcpu *v, struct block *t, struct model_shape g,
			void (*further)(struct seg_vcpu *, struct block *))
{
	struct models *s = vcpu_models(v);
	const struct model_memory *m = &s->memory;
	uint64_t line = ~UINT64_C(0) << g.line, first = t->pc & line, last = t->last & line;
	uint64_t other = (m->fetch_line[first >> g.line & g.lines] ^ first) |
			 (m->fetch_line[last >> g.line & g.lines] ^ last) |
			 (m->fetch_page[first >> g.page & g.pages] ^ first) >> g.page;

	if (__builtin_expect(!other, 1))
		t->stamp = s->stamp;
	else
		further(v, t);
}

#define FETCH_HITS(name, shape)                                                                    \
	static __attribute__((noinline)) void fetch_hits_##name(struct seg_vcpu *v,                \
								struct block *t)                   \
	{                                                                                          \
		fetch_hits(v, t, shape);                                                           \
	}

FETCH_HITS(6_12, SHAPE_6_12)
FETCH_HITS(6_13, SHAPE_6_13)
FETCH_HITS(7_16, SHAPE_7_16)
FETCH_HITS(any, SHAPE_FETCH_ANY)

void models_fetch(struct seg_vcpu *v, const struct block *t)
{
	struct block *b = (struct block *)t;

	if (__builtin_expect(!t->near || !vcpu_models(v)->ready, 0)) {
		fetch_block(v, t);
		return;
	}
	switch (fetch_shape) {
	case FETCH_6_12: fetch_quick(v, b, SHAPE_6_12, fetch_hits_6_12); break;
	case FETCH_6_13: fetch_quick(v, b, SHAPE_6_13, fetch_hits_6_13); break;
	case FETCH_7_16: fetch_quick(v, b, SHAPE_7_16, fetch_hits_7_16); break;
	case FETCH_ANY: fetch_quick(v, b, SHAPE_FETCH_ANY, fetch_hits_any); break;
	}
}

/* ---- branches ---- */

unsigned models_predict(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	struct model_predictor *m = &vcpu_models(v)->predict;
	uint32_t place = (uint32_t)(p->cti >> 1);
	bool left = t->pc != p->fall;
	unsigned missed = MODEL_PREDICTED;

	switch (p->flow) {
	case FLOW_COND:
		return model_predict_taken(m, place, left) ? MODEL_DIRECTION : MODEL_PREDICTED;
	case FLOW_IJUMP: return model_predict_target(m, place, t->pc);
	case FLOW_CALL: model_predict_call(m, p->fall); return MODEL_PREDICTED;
	case FLOW_ICALL:
		model_predict_call(m, p->fall);
		return model_predict_target(m, place, t->pc);
	case FLOW_RET: return model_predict_return(m, t->pc);
	case FLOW_COROUTINE:
		missed = model_predict_return(m, t->pc);
		model_predict_call(m, p->fall);
		return missed;
	case FLOW_CRET: /* its direction, and where it goes if it is taken */
		if (model_predict_taken(m, place, left))
			missed = MODEL_DIRECTION;
		if (left && model_predict_return(m, t->pc) && !missed)
			missed = MODEL_RETURN;
		return missed;
	}
	return MODEL_PREDICTED;
}
