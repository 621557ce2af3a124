/* SPDX-License-Identifier: BSD-2-Clause */
/* Which events fit together, on which counters, and the register values: power-cpu sheet section 3.
 * Pure. */
#ifndef QUIPU_PLATFORM_POWER_CONSTRAINT_H
#define QUIPU_PLATFORM_POWER_CONSTRAINT_H

#include <stdbool.h>
#include <stdint.h>

#define POWER_PMCS 6u

/* power_alternatives - the codes that count the same, @code first; at most 8. */
unsigned power_alternatives(uint64_t code, bool task, uint64_t out[8]);
/*
 * power_fit - can these @n events be on the PMU together? @task[i]: it counts a task only. On
 * success @code holds the chosen codes. 0 or -1.
 */
int power_fit(uint64_t *code, const bool *task, unsigned n);

/* What is excluded, as the MMCR2 bits of counter 1. */
#define POWER_FCS    (UINT64_C(1) << 63)
#define POWER_FCP    (UINT64_C(1) << 62)
#define POWER_FCWAIT (UINT64_C(1) << 58)
#define POWER_FCH    (UINT64_C(1) << 57)

struct power_values {
	uint64_t mmcr0, mmcr1, mmcr2, mmcra; /* mmcr0 without PMAE and FCECE */
	unsigned pmc[POWER_PMCS];	     /* of each event, 1..6 */
};
/* power_compute - assignment and values of events that fit; @freeze: the excluded states of each. 0
 * or -1. */
int power_compute(const uint64_t *code, const uint64_t *freeze, unsigned n, struct power_values *);

#endif
