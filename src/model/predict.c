/* SPDX-License-Identifier: BSD-2-Clause */
/* The branch predictor's beginning (predict.h). Engine sheet 7.2. */
#include "model/predict.h"

#include <string.h>

void model_predictor_init(struct model_predictor *p, const struct quipu_model *m)
{
	static const uint8_t next[MODEL_CODES] = {0, 10, 0, 12, 10, 6, 12, 6,
						  0, 10, 0, 12, 10, 6, 12, 6};

	memset(p, 0, sizeof(*p));
	memcpy(p->next, next, sizeof(next));
	p->mask = m->counters ? m->counters - 1 : 0;
	p->history_mask = (uint32_t)((UINT64_C(1) << m->history) - 1);
	p->target_mask = m->targets ? m->targets - 1 : 0;
	p->return_mask = m->returns ? m->returns - 1 : 0;
	memset(p->counter, 2, p->mask + 1);
}
