/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The branch predictor: two-bit counters indexed by place (bimodal) or by place and history
 * (gshare), a direct-mapped table of indirect targets, a return stack. Engine sheet 7.2. Inline: it
 * runs at every block of the program.
 *
 * Direct jumps and calls are always predicted. All counters begin weakly not taken, everything else
 * empty.
 */
#ifndef QUIPU_MODEL_PREDICT_H
#define QUIPU_MODEL_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/model.h>

/* What was mispredicted. */
enum model_miss { MODEL_PREDICTED = 0, MODEL_DIRECTION, MODEL_TARGET, MODEL_RETURN, MODEL_MISSES };

struct model_predictor {
	uint32_t history;
	uint32_t mask; /* counters - 1 */
	uint32_t history_mask;
	uint32_t target_mask;
	uint32_t top, return_mask;
	uint64_t returns[QUIPU_MODEL_RETURNS];
	uint8_t counter[QUIPU_MODEL_COUNTERS];
	uint64_t target[QUIPU_MODEL_TARGETS];
};

void model_predictor_init(struct model_predictor *, const struct quipu_model *);

/* model_predict_taken - a conditional branch of index @place (its address in units of the least
 * instruction) went; @taken is 0 or 1. Returns 1 when it was mispredicted, else 0. */
static inline unsigned model_predict_taken(struct model_predictor *p, uint32_t place,
					   unsigned taken)
{
	/* [taken][counter]: bits 1:0 are the next value, bit 2 a misprediction. That bit stays in
	 * the counter, where nobody looks at it: to take it out costs an instruction in each block.
	 */
	static const uint8_t step[2][8] = {{0, 0, 4 | 1, 4 | 2, 0, 0, 4 | 1, 4 | 2},
					   {4 | 1, 4 | 2, 3, 3, 4 | 1, 4 | 2, 3, 3}};
	uint32_t history = p->history;
	uint8_t *counter = &p->counter[(place ^ history) & p->mask];
	uint32_t next = step[taken][*counter];

	*counter = (uint8_t)next;
	p->history = (history * 2 + taken) & p->history_mask;
	return next >> 2;
}

static inline enum model_miss model_predict_target(struct model_predictor *p, uint32_t place,
						   uint64_t to)
{
	uint64_t *target = &p->target[place & p->target_mask];
	bool same = *target == to;

	*target = to;
	return same ? MODEL_PREDICTED : MODEL_TARGET;
}

static inline void model_predict_call(struct model_predictor *p, uint64_t back)
{
	p->returns[++p->top & p->return_mask] = back;
}

static inline enum model_miss model_predict_return(struct model_predictor *p, uint64_t to)
{
	return p->returns[p->top-- & p->return_mask] == to ? MODEL_PREDICTED : MODEL_RETURN;
}

#endif
