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

static bool threaded;
static bool wide; /* the guest has wide registers and so has the host */

/* How QEMU describes an access, read in place: its own functions for it cost a call each
 * (sheet 3.1, trap 7). */
#define ACCESS_SIZE(info)  ((info) >> 4 & 7)
#define ACCESS_STORE(info) ((info) >> 17 & 1)
static bool ask_qemu; /* this QEMU describes it otherwise */

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

int models_open(void)
{
	if (!(engine.features & (SEG_DATA | SEG_FETCH | SEG_PREDICT)))
		return 0;
	engine.model = engine.head->model;
	if (!model_valid(&engine.model)) {
		fprintf(stderr, "quipu: engine: the segment's models cannot be\n");
		return -1;
	}
	check_layout();
#if defined(__x86_64__)
	wide = engine.isa->traits & ISA_WIDE && __builtin_cpu_supports("avx");
#endif
	engine.fetch_shift = engine.model.l1i.shift;
	for (unsigned k = 0; k < SEG_SCALARS; k++)
		for (unsigned c = 0; c < MODEL_COUNTS; c++)
			if (engine.head->scalar_signal[k] == model_signal(c)) {
				moved[nmoved].count = (uint8_t)c;
				moved[nmoved++].scalar = (uint8_t)k;
			}
	return 0;
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

void models_begin(struct seg_vcpu *v)
{
	struct models *s = vcpu_models(v);
	size_t bytes = model_memory_bytes(&engine.model);

	if (!(engine.features & (SEG_DATA | SEG_FETCH | SEG_PREDICT)))
		return;
	if (vcpu_index(v))
		begin_threads();
	if (!s->bytes && bytes)
		s->bytes = zeroes(bytes);
	s->ready = s->bytes || !bytes;
	if (s->ready)
		model_memory_init(&s->memory, &engine.model, s->bytes, NULL);
	model_predictor_init(&s->predict, &engine.model);
	s->watched = true;
	/* What is a signal is counted where the machine reads it. */
	for (unsigned i = 0; i < nmoved; i++)
		s->memory.at[moved[i].count] = &v->scalar[moved[i].scalar];
	s->stamp = (s->stamp & bits_mask(48)) | (uint64_t)(vcpu_index(v) + 1) << 48;
	s->stamp++;
	if (engine.features & SEG_LABEL)
		label_begin(v);
}

void models_forget(struct seg_vcpu *v)
{
	struct models *s = vcpu_models(v);

	memset(s->memory.count, 0, sizeof(s->memory.count));
	s->watched = true;
}

void models_watch(struct seg_vcpu *v)
{
	struct models *s = vcpu_models(v);

	s->watched = false;
	for (unsigned i = 0; i < nmoved; i++)
		s->watched |= v->nearest[SEG_LANES + moved[i].scalar] != INT64_MAX;
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

/* ---- counts that moved ---- */

/* Where QEMU's code leaves the upper halves of the host's registers in use, the vector instructions
 * of the caches would wait for them. All of them are free here: a callback is a call. */
static inline void zero_upper(void)
{
#if defined(__x86_64__)
	if (wide)
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

	if (engine.words)
		*acc += cycles;
	else
		*(words *)acc += (words){cycles, 0};
	return *acc >> (16 * SEG_LANE_CYCLES + 15) & 1;
}

/* Has a signal that moved reached its deadline, or have the cycles come to their lane's end? */
static inline bool settle(struct seg_vcpu *v, struct models *s, unsigned lost)
{
	bool reached = lost && lose(v, lost);

	if (s->watched && s->memory.changed)
		for (unsigned i = 0; i < nmoved; i++) {
			unsigned k = moved[i].scalar;

			reached |= (int64_t)v->scalar[k] >= v->nearest[SEG_LANES + k];
		}
	s->memory.changed = 0;
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

void models_fetch(struct seg_vcpu *v, const struct block *t)
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

/* ---- data ---- */

static __attribute__((noinline)) void access_missed(unsigned vcpu, uint32_t info, uint64_t va,
						    void *udata)
{
	struct seg_vcpu *v = &engine_pub[vcpu];
	struct models *s = &engine_models[vcpu];
	const struct block *t;
	unsigned lost, size, store;
	uint32_t events;
	bool reached;

	if (vcpu >= SEG_VCPUS || !s->ready)
		return;
	zero_upper();
	size = 1u << (ask_qemu ? qemu_plugin_mem_size_shift(info) : ACCESS_SIZE(info));
	store = ask_qemu ? qemu_plugin_mem_is_store(info) : ACCESS_STORE(info);
	if (!s->memory.l3)
		s->memory.l3 = level3(v);
	lost = model_data(&s->memory, va, size, store);
	if (!(s->memory.changed | lost))
		return;
	reached = settle(v, s, lost);
	events = went(s);
	if (engine.features & SEG_LABEL)
		label_miss(v, events);
	if (__builtin_expect(!reached, 1))
		return;
	t = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	fold_access(v, t, (unsigned)(uintptr_t)udata, va, events);
}

#define STORE_OFFSET                                                                               \
	(sizeof(uint64_t) * MODEL_LINES) /* of line[1]; bit 17 of info shifted by 8                \
					  */
#define PAGE_OFFSET offsetof(struct model_memory, page)
_Static_assert(STORE_OFFSET == 1u << (17 - 8) && SEG_VCPUS == 256, "the offsets above");

/* Line and page size as constants where they are the usual ones. */
static inline __attribute__((always_inline)) void accessed(unsigned vcpu, uint32_t info,
							   uint64_t va, void *udata,
							   unsigned line_shift, unsigned page_shift,
							   uint32_t lines, uint32_t pages)
{
	/* A table: a shift by a variable costs more. */
	static const uint8_t more[8] = {0, 1, 3, 7, 15, 31, 63, 127};
	/* Offsets in bytes, so that no multiplication by eight is left: line[store] and page of the
	 * filters. */
	const char *m = (const char *)engine_models + ((uint64_t)(uint8_t)vcpu * MODELS_STRIDE);
	uint64_t line = *(const uint64_t *)(m + (info >> 8 & STORE_OFFSET) +
					    (va >> (line_shift - 3) & 8 * lines));
	uint64_t page = *(const uint64_t *)(m + PAGE_OFFSET + (va >> (page_shift - 3) & 8 * pages));
	uint64_t outside = (line ^ va) | (line ^ (va + more[ACCESS_SIZE(info)]));

	if (__builtin_expect(!(outside >> line_shift | (page ^ va) >> page_shift), 1))
		return;
	access_missed(vcpu, info, va, udata);
}

#define ACCESSED(name, line, page, lines, pages)                                                   \
	static void name(unsigned vcpu, uint32_t info, uint64_t va, void *udata)                   \
	{                                                                                          \
		accessed(vcpu, info, va, udata, line, page, lines, pages);                         \
	}

ACCESSED(accessed_6_12, 6, 12, 63, 15)
ACCESSED(accessed_6_13, 6, 13, 63, 15)
ACCESSED(accessed_any, engine.model.l1d.shift, engine.model.dtlb.shift,
	 engine_models[vcpu & (SEG_VCPUS - 1)].memory.line_mask,
	 engine_models[vcpu & (SEG_VCPUS - 1)].memory.page_mask)

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

static qemu_plugin_vcpu_mem_cb access_callback(void)
{
	const struct quipu_model *m = &engine.model;
	bool usual = m->l1d.shift == 6 && engine_models[0].memory.line_mask == 63 &&
		     engine_models[0].memory.page_mask == 15;

	if (engine.features & SEG_LABEL)
		return accessed_label;
	if (marking())
		return accessed_marked;
	if (ask_qemu)
		return access_missed;
	if (usual && m->dtlb.shift == 12)
		return accessed_6_12;
	return usual && m->dtlb.shift == 13 ? accessed_6_13 : accessed_any;
}

#define ACCESSING                                                                                  \
	(QUIPU_CLASS_BIT(QUIPU_INSN_LOAD) | QUIPU_CLASS_BIT(QUIPU_INSN_STORE) |                    \
	 QUIPU_CLASS_BIT(QUIPU_INSN_AMO) | QUIPU_CLASS_BIT(QUIPU_INSN_LR) |                        \
	 QUIPU_CLASS_BIT(QUIPU_INSN_SC) | QUIPU_CLASS_BIT(QUIPU_INSN_FLOAD) |                      \
	 QUIPU_CLASS_BIT(QUIPU_INSN_FSTORE) | QUIPU_CLASS_BIT(QUIPU_INSN_VECTOR))

bool models_accesses(uint8_t class)
{
	return class & (INSN_LOAD | INSN_STORE) ||
	       ACCESSING & QUIPU_CLASS_BIT(class & (INSN_LOAD - 1));
}

/* Reads alone cannot be asked for (sheet 3.1, trap 1). */
void models_translate(struct qemu_plugin_insn *insn, unsigned index, uint8_t class)
{
	if (engine.features & SEG_DATA && models_accesses(class))
		qemu_plugin_register_vcpu_mem_cb(insn, access_callback(), QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)index);
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
