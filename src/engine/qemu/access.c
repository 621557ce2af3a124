/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses (models.h): the callbacks, which look into the filters by themselves, and what becomes
 * of an access that these do not know. Engine sheet 7.2, 9.1.
 */
#include <stddef.h>

#include "plugin_abi.h"
#include "settle.h"

/* How QEMU describes an access, read in place: its own functions for it cost a call each
 * (sheet 3.1, trap 7). */
#define ACCESS_SIZE(info)  ((info) >> 4 & 7)
#define ACCESS_STORE(info) ((info) >> 17 & 1)
#define ACCESS_LONG	   (4u << 4) /* 16 bytes and more */
#define ACCESS_INFO(bytes, store)                                                                  \
	((uint32_t)(bytes) << 4 | (uint32_t)((store) ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_R) << 16)
static bool ask_qemu; /* this QEMU describes it otherwise */

/* clang-format off */
#define SHAPE_ANY                                                                                  \
	((struct model_shape){engine.model.l1d.shift, engine.model.dtlb.shift,                     \
	 engine_models[vcpu & (SEG_VCPUS - 1)].memory.line_mask,                                   \
	 engine_models[vcpu & (SEG_VCPUS - 1)].memory.page_mask, false})
/* clang-format on */

void access_open(void)
{
	for (uint32_t info = 0; info < 1u << 18; info += 1u << 4) {
		if (!(info >> 16) || info >> 16 == QEMU_PLUGIN_MEM_RW || (info >> 4 & 7) > 4 ||
		    info & 0xff00)
			continue;
		ask_qemu |= ACCESS_SIZE(info) != qemu_plugin_mem_size_shift(info) ||
			    ACCESS_STORE(info) != qemu_plugin_mem_is_store(info);
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
		s->memory.l3 = models_level3(v);
	lost = model_data(&s->memory, va, size, store);
	if (s->memory.changed | lost)
		account(v, s, lost, va, udata);
}

/*
 * What is left to be done where the first-level TLB has the page and the cache not the line
 * (_missed), and where the TLB has not got the page (_translated).
 */
#define REST(name)                                                                                 \
	static __attribute__((noinline)) void name(unsigned vcpu, uint64_t va, void *udata)        \
	{                                                                                          \
		struct models *s = &engine_models[vcpu];                                           \
                                                                                                   \
		account(&engine_pub[vcpu], s, model_##name(&s->memory, va), va, udata);            \
	}

REST(load_missed)
REST(store_missed)
REST(load_translated)
REST(store_translated)

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
	ACCESSED_KIND(either_##name, shape, EITHER)

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
	GROUP_KIND(name, shape, STORES)

GROUP(6_12, SHAPE_6_12)
GROUP(6_13, SHAPE_6_13)
GROUP(7_16, SHAPE_7_16)
GROUP(any, SHAPE_ANY)

/* ---- which of them ---- */

#define PAIR(name)                                                                                 \
	{                                                                                          \
		name, name##_lone                                                                  \
	}
#define CALLBACKS(name)                                                                            \
	{                                                                                          \
		{PAIR(load_##name), PAIR(store_##name), PAIR(either_##name)},                      \
		{                                                                                  \
			PAIR(group_LOADS_##name), PAIR(group_STORES_##name)                        \
		}                                                                                  \
	}

/* By kind; of several threads, of one. */
static const struct callbacks {
	qemu_plugin_vcpu_mem_cb access[3][2], group[2][2];
} shaped[] = {CALLBACKS(6_12), CALLBACKS(6_13), CALLBACKS(7_16), CALLBACKS(any)};

static bool is_shape(struct model_shape g)
{
	const struct model_memory *m = &engine_models[0].memory;

	return engine.model.l1d.shift == g.line && engine.model.dtlb.shift == g.page &&
	       m->line_mask == g.lines && m->page_mask == g.pages && model_memory_whole(m);
}

static const struct callbacks *callbacks(void)
{
	return &shaped[is_shape(SHAPE_6_12)   ? 0
		       : is_shape(SHAPE_6_13) ? 1
		       : is_shape(SHAPE_7_16) ? 2
					      : 3];
}

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
	return models_moves(MODEL_MARKED_LOADS) || models_moves(MODEL_MARKED_STORES);
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

static qemu_plugin_vcpu_mem_cb access_callback(enum kind kind)
{
	if (engine.features & SEG_LABEL)
		return accessed_label;
	if (marking())
		return accessed_marked;
	return ask_qemu ? access_missed : callbacks()->access[kind][!engine.threaded];
}

uint32_t models_group(void)
{
	if (!(engine.features & SEG_DATA) || engine.features & SEG_LABEL || marking() || ask_qemu)
		return 0;
	return 1u << engine.model.l1d.shift;
}

void models_translate_group(struct qemu_plugin_insn *insn, const struct group *t)
{
	qemu_plugin_vcpu_mem_cb cb = callbacks()->group[t->stores][!engine.threaded];

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
