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

#define MODEL_CODES 16u /* what can become of a counter: model_predict_code */

struct model_predictor {
	uint8_t next[MODEL_CODES]; /* by code: the next counter; beside what goes with it */
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

/*
 * What a conditional branch of index @place (its address in units of the least instruction) made of
 * its counter, as a code below MODEL_CODES: the counter's old value, and bit 0: @taken (0 or 1). A
 * caller that has a table of what each outcome means needs no more than this.
 *
 * A counter is kept as its value doubled, plus 8 when the last prediction was wrong: to take that
 * bit out again would cost an instruction in each block.
 */
static inline unsigned model_predict_code(struct model_predictor *p, uint32_t place, unsigned taken)
{
	uint32_t history = p->history;
	uint8_t *counter = &p->counter[(place ^ history) & p->mask];
	unsigned code;

	/* In an order that needs few registers: the caller has none to save. */
	p->history = (history * 2 + taken) & p->history_mask;
	code = *counter + taken;
	*counter = p->next[code];
	return code;
}

/* model_code_missed - 1 when that was mispredicted, else 0. */
static inline unsigned model_code_missed(unsigned code)
{
	return (code >> 2 ^ code) & 1;
}

/* model_predict_taken - the same, when only that is asked. */
static inline unsigned model_predict_taken(struct model_predictor *p, uint32_t place,
					   unsigned taken)
{
	return model_code_missed(model_predict_code(p, place, taken));
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
