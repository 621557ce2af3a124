/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models in the plugin: each vCPU's caches and predictor, and the access callback. Engine sheet 7.2, 9.1.
 *
 * The callbacks look into the filters (model/memory.h) by themselves; only what is not there is out of line.
 */
#ifndef QUIPU_ENGINE_MODELS_H
#define QUIPU_ENGINE_MODELS_H

#include "model/memory.h"
#include "model/predict.h"
#include "plugin.h"

#define MODELS_STRIDE 65536u /* a power of two: the address of a vCPU's models is a shift */

struct models {
	_Alignas(MODELS_STRIDE) struct model_memory memory;
	struct model_predictor predict;
	uint64_t seen[MODEL_COUNTS]; /* of memory.count, what the signals have */
	void *bytes;		     /* of the caches */
	bool ready;
};
_Static_assert(sizeof(struct models) == MODELS_STRIDE, "stride");

extern struct models engine_models[SEG_VCPUS];

static inline struct models *vcpu_models(const struct seg_vcpu *v)
{
	return &engine_models[vcpu_index(v)];
}

/* models_open - which models the segment asks for. 0 or -1. */
int models_open(void);
/* models_begin - a vCPU begins: its caches are empty, its counts 0. */
void models_begin(struct seg_vcpu *);
/* models_forget - its counts are 0 from here, its caches stay (the child of a fork). */
void models_forget(struct seg_vcpu *);
/* models_fetch - @t was entered: its lines are fetched. Folds when a deadline is reached. */
void models_fetch(struct seg_vcpu *, const struct block *t);

/* models_fetched - are the lines of @t, and its page, those that were fetched last in their sets? Two lines at most. */
static inline bool models_fetched(const struct seg_vcpu *v, const struct block *t)
{
	const struct model_memory *m = &vcpu_models(v)->memory;
	unsigned shift = engine.fetch_shift, page_shift = engine.page_shift;
	uint64_t first = t->pc >> shift, last = t->last >> shift, page = t->last >> page_shift;

	return (m->fetch_line[first & m->fetch_line_mask] == first) & (m->fetch_line[last & m->fetch_line_mask] == last) &
	       (m->fetch_page[page & m->fetch_page_mask] == page) & (last - first <= 1) & (t->pc >> page_shift == page);
}

struct qemu_plugin_insn;
/* models_translate - instruction @index of a block is translated: its accesses will be seen. */
void models_translate(struct qemu_plugin_insn *, unsigned index, uint8_t class);

/*
 * models_predict - the transfer that ended @p went to @t; the predictor learns. Returns what was mispredicted, enum
 * model_miss. Only for a legal successor.
 */
unsigned models_predict(struct seg_vcpu *, const struct block *t, const struct block *p);

#endif
