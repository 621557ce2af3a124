/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the legacy driver: the object that stands for a PMU of privileged-1.10 hardware, field
 * by field what Linux 4.18's struct riscv_pmu holds (RISC-V sheet 2.2), so that a test can bring
 * its own.
 */
#ifndef QUIPU_PLATFORM_RISCV_LEGACY_H
#define QUIPU_PLATFORM_RISCV_LEGACY_H

#include "platform/riscv/driver.h"

#define LEGACY_CYCLE	   0
#define LEGACY_INSTRET	   1
#define LEGACY_COUNTERS	   2u /* base counters */
#define LEGACY_UNSUPPORTED (-EOPNOTSUPP)
#define LEGACY_HW_EVENTS   7u

typedef int legacy_cache_map[PERF_COUNT_HW_CACHE_MAX][PERF_COUNT_HW_CACHE_OP_MAX]
			    [PERF_COUNT_HW_CACHE_RESULT_MAX];

/* struct riscv_pmu of 4.18. */
struct rv_pmu_desc {
	const int *hw_events;
	const legacy_cache_map *cache_events;
	int (*map_hw_event)(const struct rv_pmu_desc *, uint64_t config);
	int (*map_cache_event)(const struct rv_pmu_desc *, uint64_t config);
	unsigned max_events;
	unsigned num_counters;
	unsigned counter_width; /* the delta mask is 2^width - 1 */
	void *platform;
	void (*handle_irq)(struct legacy_driver *, unsigned cpu);
	int irq; /* -1: none */
	/* Who asks the interrupt controller; NULL: there is none. 0 or errno. */
	int (*request_irq)(void *platform, int irq, const char *name);
	void (*free_irq)(void *platform, int irq);
};

extern const struct rv_pmu_desc rv_base_pmu;

/*
 * The instance for the tree: that of the "pmu" node whose compatible is known, else the base
 * instance.
 */
const struct rv_pmu_desc *rv_pmu_init(const void *fdt);

/* legacy_driver_new with an instance of the caller's. */
int legacy_driver_new_with(const struct riscv_driver_env *, const struct rv_pmu_desc *,
			   struct legacy_driver **);
/* Writing a counter is not possible from S-mode: warns (*warnings counts), changes nothing. */
void legacy_write_counter(struct legacy_driver *, unsigned cpu, int idx, uint64_t value);
unsigned legacy_warnings(const struct legacy_driver *);

#endif
