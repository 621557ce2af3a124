/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the callbacks of fetches and accesses share (models.c, access.c): the shapes that they know
 * as constants, and what becomes of counts that moved. Engine sheet 7.2, 9.1.
 */
#ifndef QUIPU_ENGINE_SETTLE_H
#define QUIPU_ENGINE_SETTLE_H

#include "models.h"

#define INLINE static inline __attribute__((always_inline))

/* Shapes of level 1 that the machines have, of either side; what else there is is found in the
 * model. */
/* clang-format off */
#define SHAPE_6_12 ((struct model_shape){6, 12, 63, 15, true})
#define SHAPE_6_13 ((struct model_shape){6, 13, 127, 7, true})
#define SHAPE_7_16 ((struct model_shape){7, 16, 31, 15, true})
/* clang-format on */

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

/* Has a signal that moved reached its deadline, or have the cycles come to their lane's end? */
static inline bool settle(struct seg_vcpu *v, struct models *s, unsigned lost)
{
	bool reached = lost && lose(v, lost);

	if (s->memory.changed) {
		s->memory.changed = 0;
		s->slack -= lost + MOST_MOVED;
		if (__builtin_expect(s->slack <= 0, 0))
			reached |= models_slack(v, s);
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

#endif
