/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models in the plugin (models.h): what becomes of an access that the filters do not know.
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

#include "models.h"
#include "plugin_abi.h"

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

/* How QEMU describes an access, read in place: its own functions for it cost a call each
 * (sheet 3.1, trap 7). */
#define ACCESS_SIZE(info)  ((info) >> 4 & 7)
#define ACCESS_STORE(info) ((info) >> 17 & 1)
#define ACCESS_LONG	   (4u << 4) /* 16 bytes and more */
#define ACCESS_INFO(bytes, store)                                                                  \
	((uint32_t)(bytes) << 4 | (uint32_t)((store) ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_R) << 16)
static bool ask_qemu; /* this QEMU describes it otherwise */

/* Shapes of level 1 that the machines have, of either side; what else there is is found in the
 * model. */
/* clang-format off */
#define SHAPE_6_12 ((struct model_shape){6, 12, 63, 15, true})
#define SHAPE_6_13 ((struct model_shape){6, 13, 127, 7, true})
#define SHAPE_7_16 ((struct model_shape){7, 16, 31, 15, true})
#define SHAPE_ANY                                                                                  \
	((struct model_shape){engine.model.l1d.shift, engine.model.dtlb.shift,                     \
	 engine_models[vcpu & (SEG_VCPUS - 1)].memory.line_mask,                                   \
	 engine_models[vcpu & (SEG_VCPUS - 1)].memory.page_mask, false})
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

static void check_layout(void)
{
	for (uint32_t info = 0; info < 1u << 18; info += 1u << 4) {
		if (!(info >> 16) || info >> 16 == QEMU_PLUGIN_MEM_RW || (info >> 4 & 7) > 4 ||
		    info & 0xff00)
			continue;
		ask_qemu |= ACCESS_SIZE(info) != qemu_plugin_mem_size_shift(info) ||
			    ACCESS_STORE(info) != qemu_plugin_mem_is_store(info);
	}
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

static bool open_models(void)
{
	if (engine.fetch_shift) /* they were opened before */
		return true;
	engine.model = engine.head->model;
	if (!model_valid(&engine.model))
		return false;
	check_layout();
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
static struct model_cache *level3(const struct seg_vcpu *v)
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

#define INLINE static inline __attribute__((always_inline))

/* ---- counts that moved ---- */

/* Where QEMU's code leaves the upper halves of the host's registers in use, the vector instructions
 * of the caches would wait for them. All of them are free here: a callback is a call. */
static inline void zero_upper(void)
{
#if defined(__x86_64__)
	if (engine.wide)
		__asm__ volatile("vzeroupper" ::
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
					   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
					   "xmm13", "xmm14", "xmm15");
#endif
}

/* As wide as the next block loads it: a narrower store would stall that. True when the lane is
 * full.
 */
static inline bool lose(struct seg_vcpu *v, uint64_t lost)
{
	typedef uint64_t words __attribute__((vector_size(16)));
	uint64_t *acc = (uint64_t *)v->acc, cycles = lost << (16 * SEG_LANE_CYCLES);

	*(words *)acc += (words){cycles, 0};
	return *acc >> (16 * SEG_LANE_CYCLES + 15) & 1;
}

#define MOST_MOVED                                                                                 \
	8 /* most that an access moves a signal by, beside the cycles it loses: two lines,         \
	     each with all that leave the caches for it */

/* Has a signal that moved reached its deadline? And how far are they all from theirs? What others
 * move too must be looked at each time. */
static __attribute__((noinline)) bool find_slack(struct seg_vcpu *v, struct models *s)
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

/* Has a signal that moved reached its deadline, or have the cycles come to their lane's end? */
static inline bool settle(struct seg_vcpu *v, struct models *s, unsigned lost)
{
	bool reached = lost && lose(v, lost);

	if (s->memory.changed) {
		s->memory.changed = 0;
		s->slack -= lost + MOST_MOVED;
		if (__builtin_expect(s->slack <= 0, 0))
			reached |= find_slack(v, s);
	}
	return reached;
}

/* How far the last miss went; asked once. */
static inline uint32_t went(struct models *s)
{
	uint32_t events = s->memory.went;

	s->memory.went = 0;
	return events;
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
		s->memory.l3 = level3(v);
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

/* ---- data ---- */

/* Of an access that is no hit @lost cycles are lost, or something is counted. */
INLINE void account(struct seg_vcpu *v, struct models *s, unsigned lost, uint64_t va, void *udata)
{
	bool reached = settle(v, s, lost);
	uint32_t events = went(s);

	if (engine.features & SEG_LABEL)
		label_miss(v, events);
	if (__builtin_expect(reached, 0))
		fold_access(v, (const struct block *)(uintptr_t)v->priv[HOT_PREV],
			    (unsigned)(uintptr_t)udata, va, events);
}

static __attribute__((noinline)) void access_missed(unsigned vcpu, uint32_t info, uint64_t va,
						    void *udata)
{
	struct seg_vcpu *v = &engine_pub[vcpu];
	struct models *s = &engine_models[vcpu];
	unsigned lost, size, store;

	if (vcpu >= SEG_VCPUS || !s->ready)
		return;
	zero_upper();
	size = 1u << (ask_qemu ? qemu_plugin_mem_size_shift(info) : ACCESS_SIZE(info));
	store = ask_qemu ? qemu_plugin_mem_is_store(info) : ACCESS_STORE(info);
	if (!s->memory.l3)
		s->memory.l3 = level3(v);
	lost = model_data(&s->memory, va, size, store);
	if (s->memory.changed | lost)
		account(v, s, lost, va, udata);
}

/* Its page the first-level TLB has, its line the first-level cache has not. */
static __attribute__((noinline)) void load_missed(unsigned vcpu, uint64_t va, void *udata)
{
	struct models *s = &engine_models[vcpu];

	account(&engine_pub[vcpu], s, model_load_missed(&s->memory, va), va, udata);
}

static __attribute__((noinline)) void store_missed(unsigned vcpu, uint64_t va, void *udata)
{
	struct models *s = &engine_models[vcpu];

	account(&engine_pub[vcpu], s, model_store_missed(&s->memory, va), va, udata);
}

/* Its page the first-level TLB has not. */
static __attribute__((noinline)) void load_translated(unsigned vcpu, uint64_t va, void *udata)
{
	struct models *s = &engine_models[vcpu];

	account(&engine_pub[vcpu], s, model_load_translated(&s->memory, va), va, udata);
}

static __attribute__((noinline)) void store_translated(unsigned vcpu, uint64_t va, void *udata)
{
	struct models *s = &engine_models[vcpu];

	account(&engine_pub[vcpu], s, model_store_translated(&s->memory, va), va, udata);
}

/* What an instruction does, as far as it is known when it is translated. */
enum kind { LOADS = 0, STORES = 1, EITHER = 2 };

/*
 * Not in the filters. What first-level TLB and cache have is told here, without a call that would
 * save registers.
 */
INLINE void not_last(unsigned vcpu, uint32_t info, uint64_t va, void *udata, struct model_shape g,
		     enum kind kind)
{
	struct models *s = &engine_models[vcpu & (SEG_VCPUS - 1)];
	bool store = kind == EITHER ? ACCESS_STORE(info) : kind == STORES;
	unsigned most = (1u << ACCESS_SIZE(info)) - 1;
	enum model_found found = MODEL_UNKNOWN;

	if (__builtin_expect(vcpu >= SEG_VCPUS, 0))
		return;
	zero_upper();
	if (__builtin_expect((va & ((1u << g.line) - 1)) + most < 1u << g.line, 1))
		found = model_data_hits(&s->memory, va, store, g);
	if (found == MODEL_HIT)
		return;
	if (found == MODEL_UNKNOWN || __builtin_expect(!s->memory.l3, 0))
		access_missed(vcpu, info, va, udata);
	else if (found == MODEL_PAGE_MISSED)
		(store ? store_translated : load_translated)(vcpu, va, udata);
	else
		(store ? store_missed : load_missed)(vcpu, va, udata);
}

/*
 * An access changes nothing when its line and page were the last ones of their sets. One of up to
 * eight bytes that begins in the last seven of a line is looked at further.
 */
INLINE bool is_last(unsigned vcpu, uint32_t info, uint64_t va, struct model_shape g, enum kind kind)
{
	const struct model_memory *m = &engine_models[vcpu & (SEG_VCPUS - 1)].memory;
	unsigned store = kind == EITHER ? ACCESS_STORE(info) : kind == STORES;
	uint64_t line = m->line[store][va >> g.line & g.lines];
	uint64_t page = m->page[va >> g.page & g.pages];

	return va - line <= (1u << g.line) - 8 && va - page < 1u << g.page && !(info & ACCESS_LONG);
}

INLINE void accessed(unsigned vcpu, uint32_t info, uint64_t va, void *udata, struct model_shape g,
		     enum kind kind,
		     void (*further)(unsigned vcpu, uint32_t info, uint64_t va, void *udata))
{
	if (__builtin_expect(!is_last(vcpu, info, va, g, kind), 0))
		further(vcpu, info, va, udata);
}

/*
 * For each kind: the way of an access that is not in the filters, the callback, and one for the
 * only thread of a process, whose filters lie at constant addresses.
 */
#define ACCESSED_KIND(name, shape, kind)                                                           \
	static __attribute__((noinline)) void name##_further(unsigned vcpu, uint32_t info,         \
							     uint64_t va, void *udata)             \
	{                                                                                          \
		not_last(vcpu, info, va, udata, shape, kind);                                      \
	}                                                                                          \
	static __attribute__((noinline)) void name(unsigned vcpu, uint32_t info, uint64_t va,      \
						   void *udata)                                    \
	{                                                                                          \
		accessed(vcpu, info, va, udata, shape, kind, name##_further);                      \
	}                                                                                          \
	static __attribute__((noinline)) void name##_lone_further(unsigned vcpu, uint32_t info,    \
								  uint64_t va, void *udata)        \
	{                                                                                          \
		(void)vcpu;                                                                        \
		not_last(0, info, va, udata, shape, kind);                                         \
	}                                                                                          \
	static void name##_lone(unsigned vcpu, uint32_t info, uint64_t va, void *udata)            \
	{                                                                                          \
		if (__builtin_expect(vcpu, 0))                                                     \
			name(vcpu, info, va, udata);                                               \
		else                                                                               \
			accessed(0, info, va, udata, shape, kind, name##_lone_further);            \
	}

#define ACCESSED(name, shape)                                                                      \
	ACCESSED_KIND(load_##name, shape, LOADS)                                                   \
	ACCESSED_KIND(store_##name, shape, STORES)                                                 \
	ACCESSED_KIND(either_##name, shape, EITHER)                                                \
	static const qemu_plugin_vcpu_mem_cb callbacks_##name[3][2] = {                            \
		{load_##name, load_##name##_lone},                                                 \
		{store_##name, store_##name##_lone},                                               \
		{either_##name, either_##name##_lone}};

ACCESSED(6_12, SHAPE_6_12)
ACCESSED(6_13, SHAPE_6_13)
ACCESSED(7_16, SHAPE_7_16)
ACCESSED(any, SHAPE_ANY)

/* ---- accesses that lie side by side ---- */

/* Nothing changes where lines and pages of all of them were the last ones of their sets. */
INLINE bool group_is_last(unsigned vcpu, uint64_t va, const struct group *t, struct model_shape g,
			  enum kind kind)
{
	const struct model_memory *m = &engine_models[vcpu & (SEG_VCPUS - 1)].memory;
	uint64_t first = va + (uint64_t)(int64_t)t->low, last = first + t->span;
	uint64_t a = first >> g.line << g.line, b = last >> g.line << g.line;

	return !((m->line[kind][a >> g.line & g.lines] ^ a) |
		 (m->line[kind][b >> g.line & g.lines] ^ b) |
		 (m->page[a >> g.page & g.pages] ^ a) >> g.page |
		 (m->page[b >> g.page & g.pages] ^ b) >> g.page);
}

INLINE void each(unsigned vcpu, uint64_t va, const struct group *t, qemu_plugin_vcpu_mem_cb load,
		 qemu_plugin_vcpu_mem_cb store)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct group_access *a = &t->access[i];

		(a->store ? store : load)(vcpu, ACCESS_INFO(a->bytes, a->store),
					  va + (uint64_t)(int64_t)a->delta,
					  (void *)(uintptr_t)a->index);
	}
}

#define GROUP_KIND(name, shape, kind)                                                              \
	static __attribute__((noinline)) void group_##kind##_##name##_each(                        \
		unsigned vcpu, uint64_t va, const struct group *t)                                 \
	{                                                                                          \
		each(vcpu, va, t, load_##name, store_##name);                                      \
	}                                                                                          \
	static __attribute__((noinline)) void group_##kind##_##name(unsigned vcpu, uint32_t info,  \
								    uint64_t va, void *group)      \
	{                                                                                          \
		(void)info;                                                                        \
		if (__builtin_expect(!group_is_last(vcpu, va, group, shape, kind), 0))             \
			group_##kind##_##name##_each(vcpu, va, group);                             \
	}                                                                                          \
	static void group_##kind##_##name##_lone(unsigned vcpu, uint32_t info, uint64_t va,        \
						 void *group)                                      \
	{                                                                                          \
		if (__builtin_expect(vcpu, 0))                                                     \
			group_##kind##_##name(vcpu, info, va, group);                              \
		else if (__builtin_expect(!group_is_last(0, va, group, shape, kind), 0))           \
			group_##kind##_##name##_each(0, va, group);                                \
	}

#define GROUP(name, shape)                                                                         \
	GROUP_KIND(name, shape, LOADS)                                                             \
	GROUP_KIND(name, shape, STORES)                                                            \
	static const qemu_plugin_vcpu_mem_cb group_##name[2][2] = {                                \
		{group_LOADS_##name, group_LOADS_##name##_lone},                                   \
		{group_STORES_##name, group_STORES_##name##_lone}};

GROUP(6_12, SHAPE_6_12)
GROUP(6_13, SHAPE_6_13)
GROUP(7_16, SHAPE_7_16)
GROUP(any, SHAPE_ANY)

/* ---- what else is asked of an access ---- */

static void accessed_label(unsigned vcpu, uint32_t info, uint64_t va, void *udata)
{
	if (vcpu < SEG_VCPUS)
		label_access(&engine_pub[vcpu], (unsigned)(uintptr_t)udata, va,
			     1u << qemu_plugin_mem_size_shift(info));
	access_missed(vcpu, info, va, udata);
}

/* Is there a scalar that counts accesses one by one? */
static bool marking(void)
{
	for (unsigned i = 0; i < nmoved; i++)
		if (moved[i].count == MODEL_MARKED_LOADS || moved[i].count == MODEL_MARKED_STORES)
			return true;
	return false;
}

/*
 * An instruction counts once, whatever QEMU makes of its access. Blocks are told apart by the
 * instructions before them, which grow with each that is entered.
 */
static void accessed_marked(unsigned vcpu, uint32_t info, uint64_t va, void *udata)
{
	struct seg_vcpu *v = &engine_pub[vcpu < SEG_VCPUS ? vcpu : 0];
	struct models *s = vcpu_models(v);
	unsigned store = qemu_plugin_mem_is_store(info);
	uint64_t entry = (uint64_t)v->base[SEG_LANE_INSTRUCTIONS] + v->acc[SEG_LANE_INSTRUCTIONS];
	uint32_t index = (uint32_t)(uintptr_t)udata << 1 | store;

	if (vcpu >= SEG_VCPUS || !s->ready)
		return;
	if (entry != s->marked || index != s->marked_index) {
		s->marked = entry;
		s->marked_index = index;
		++*s->memory.at[store ? MODEL_MARKED_STORES : MODEL_MARKED_LOADS];
		s->memory.changed = 1;
	}
	access_missed(vcpu, info, va, udata);
}

static bool is_shape(struct model_shape g)
{
	const struct model_memory *m = &engine_models[0].memory;

	return engine.model.l1d.shift == g.line && engine.model.dtlb.shift == g.page &&
	       m->line_mask == g.lines && m->page_mask == g.pages && model_memory_whole(m);
}

static qemu_plugin_vcpu_mem_cb access_callback(enum kind kind)
{
	bool lone = !engine.threaded;

	if (engine.features & SEG_LABEL)
		return accessed_label;
	if (marking())
		return accessed_marked;
	if (ask_qemu)
		return access_missed;
	if (is_shape(SHAPE_6_12))
		return callbacks_6_12[kind][lone];
	if (is_shape(SHAPE_6_13))
		return callbacks_6_13[kind][lone];
	return is_shape(SHAPE_7_16) ? callbacks_7_16[kind][lone] : callbacks_any[kind][lone];
}

uint32_t models_group(void)
{
	if (!(engine.features & SEG_DATA) || engine.features & SEG_LABEL || marking() || ask_qemu)
		return 0;
	return 1u << engine.model.l1d.shift;
}

void models_translate_group(struct qemu_plugin_insn *insn, const struct group *t)
{
	bool lone = !engine.threaded;
	qemu_plugin_vcpu_mem_cb cb = is_shape(SHAPE_6_12)   ? group_6_12[t->stores][lone]
				     : is_shape(SHAPE_6_13) ? group_6_13[t->stores][lone]
				     : is_shape(SHAPE_7_16) ? group_7_16[t->stores][lone]
							    : group_any[t->stores][lone];

	qemu_plugin_register_vcpu_mem_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
					 (void *)t);
}

#define LOADING (QUIPU_CLASS_BIT(QUIPU_INSN_LOAD) | QUIPU_CLASS_BIT(QUIPU_INSN_FLOAD))
#define STORING (QUIPU_CLASS_BIT(QUIPU_INSN_STORE) | QUIPU_CLASS_BIT(QUIPU_INSN_FSTORE))

static enum kind kind_of(uint8_t class)
{
	uint32_t bit = QUIPU_CLASS_BIT(class & (INSN_LOAD - 1));
	uint8_t access = class & (INSN_LOAD | INSN_STORE);

	if (bit & LOADING && !(access & INSN_STORE))
		return LOADS;
	if (bit & STORING && !(access & INSN_LOAD))
		return STORES;
	return EITHER;
}

/* Reads alone cannot be asked for (sheet 3.1, trap 1). */
void models_translate(struct qemu_plugin_insn *insn, unsigned index, uint8_t class)
{
	if (engine.features & SEG_DATA && insn_accesses(class))
		qemu_plugin_register_vcpu_mem_cb(insn, access_callback(kind_of(class)),
						 QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
						 (void *)(uintptr_t)index);
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
