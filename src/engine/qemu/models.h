/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models in the plugin: each vCPU's caches and predictor, and the access callback. Engine
 * sheet 7.2, 9.1.
 *
 * The callbacks look into the filters (model/memory.h) by themselves; only what is not there is out
 * of line.
 */
#ifndef QUIPU_ENGINE_MODELS_H
#define QUIPU_ENGINE_MODELS_H

#include "model/memory.h"
#include "model/predict.h"
#include "group.h"
#include "plugin.h"

#define MODELS_STRIDE 65536u /* a power of two: the address of a vCPU's models is a shift */

/*
 * What the end of a block adds to the lanes of the next one's, a row: of a conditional branch that
 * the predictor saw, its code (predict.h); else by what was mispredicted and whether control left
 * the line.
 */
#define OUTCOME(missed, taken) (MODEL_CODES + 2 * (missed) + (taken))
#define OUTCOMES	       OUTCOME(MODEL_MISSES, 0)

struct models {
	_Alignas(MODELS_STRIDE) struct model_memory memory;
	_Alignas(64) uint64_t stamp; /* changes with the filters of the instruction side; never that
					of another vCPU */
	struct model_predictor predict;
	lanes_t outcome[OUTCOMES]; /* the same for all: here, because one address leads to it all */
	void *bytes;		   /* of the caches */
	bool ready;
	uint64_t
		marked; /* the last instruction that was counted as marked: its entry, its index, */
	uint32_t marked_index;
	int64_t slack; /* no signal that the models move is nearer to its deadline */
};
_Static_assert(sizeof(struct models) == MODELS_STRIDE, "stride");

extern struct models engine_models[SEG_VCPUS] __attribute__((visibility("hidden")));

static inline struct models *vcpu_models(const struct seg_vcpu *v)
{
	/* From one stride to the other with a shift. */
	return (struct models *)((char *)engine_models +
				 ((const char *)v - (const char *)engine_pub) *
					 (MODELS_STRIDE / sizeof(*v)));
}

/* outcome_missed - enum model_miss of a row. */
static inline unsigned outcome_missed(unsigned row)
{
	return row < MODEL_CODES ? model_code_missed(row) : (row - MODEL_CODES) / 2;
}

/* models_open - which models the segment asks for. 0 or -1. */
int models_open(void);
/* models_select - the features become @now, were @was; no vCPU runs. False: the models cannot be.
 */
bool models_select(uint32_t was, uint32_t now);
/* models_change - the same for @v: what did not run begins with empty caches, what runs goes on. */
void models_change(struct seg_vcpu *, uint32_t was, uint32_t now);
/* models_begin - a vCPU begins: its caches are empty, its counts 0. */
void models_begin(struct seg_vcpu *);
/* models_forget - its counts are 0 from here, its caches stay (the child of a fork). */
void models_forget(struct seg_vcpu *);
/* models_watch - the vCPU's deadlines have changed. */
void models_watch(struct seg_vcpu *);
/* models_block - @t is translated. */
void models_block(struct block *t);
/* models_fetch - @t was entered: its lines are fetched. Folds when a deadline is reached. */
void models_fetch(struct seg_vcpu *, const struct block *t);

/*
 * models_fetched - fetching the lines of @t changes nothing: they were the last ones of their sets,
 * and no filter has changed since.
 */
static inline bool models_fetched(const struct seg_vcpu *v, const struct block *t)
{
	return t->stamp == vcpu_models(v)->stamp;
}

/* models_slack - for settle.h: has a signal that moved reached its deadline? And how far are they
 * all from theirs? */
bool models_slack(struct seg_vcpu *, struct models *);
/* models_moves - does the machine read that count? */
bool models_moves(enum model_count);
/* models_level3 - the cache of level 3 of the CPU that the vCPU stands on; NULL: none yet. */
struct model_cache *models_level3(const struct seg_vcpu *);

struct qemu_plugin_insn;
/* access_open - how this QEMU describes an access. Once. */
void access_open(void);
/* models_group - bytes in which accesses lie that are seen together (group.h); 0: each is seen
 * alone.
 */
uint32_t models_group(void);
/* models_translate_group - the instruction of the group's first access is translated. */
void models_translate_group(struct qemu_plugin_insn *, const struct group *);
/* models_translate - instruction @index of a block is translated: its accesses will be seen. */
void models_translate(struct qemu_plugin_insn *, unsigned index, uint8_t class);

/*
 * models_predict - the transfer that ended @p went to @t; the predictor learns. Returns what was
 * mispredicted, enum model_miss. Only for a legal successor.
 */
unsigned models_predict(struct seg_vcpu *, const struct block *t, const struct block *p);

#endif
