/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the IMC driver. */
#ifndef QUIPU_PLATFORM_IMC_DRIVER_IMPL_H
#define QUIPU_PLATFORM_IMC_DRIVER_IMPL_H

#include "platform/imc/driver.h"

enum imc_domain { DOMAIN_FREE, DOMAIN_CORE, DOMAIN_THREAD, DOMAIN_TRACE };

struct imc_pmu {
	struct quipu_pmu pmu;
	struct imc_driver *driver;
	const struct imc_unit *unit;
	char name[64];
	char alias[64];
	struct quipu_pmu_file files[2];
	struct quipu_pmu_event *events;
};

struct imc_driver {
	struct quipu_core *core;
	struct quipu_imc *imc;
	struct quipu_signals *signals;
	const struct quipu_machine *machine;
	const struct imc_tree *tree;
	struct imc_pmu *pmus;
	unsigned npmus;
	/* by CPU */
	unsigned *node, *core_of; /* index of its chip, of its core */
	bool *online;
	uint64_t *thread_memory, *trace_memory;
	/* by chip */
	uint32_t chip_id[IMC_MAX_CHIPS];
	unsigned nchips, *nest_refs;
	/* by core */
	unsigned ncores, *core_refs, *trace_refs;
	uint64_t *core_memory;
	/* cpumask of nest and core PMUs: who speaks for each chip and core, -1: nobody */
	int *nest_cpu, *core_cpu;
	char *nest_mask, *core_mask;
	enum imc_domain mode;
	unsigned mode_refs;
	uint64_t no_room; /* deliveries that ended because a ring was full, or there was none */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

static inline struct imc_pmu *pmu_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

/* driver.c */
int64_t imc_opal(struct imc_driver *, uint64_t token, uint32_t type, uint64_t address,
		 unsigned cpu);
void imc_ldbar(struct imc_driver *, unsigned cpu, uint64_t value);
/* imc_mode_get - take the machine-wide mode; -EBUSY with the reason when another one is in use. */
int imc_mode_get(struct imc_driver *, enum imc_domain);
void imc_mode_put(struct imc_driver *);
/* imc_status - an OPAL status as errno, with its reason. */
int imc_status(struct imc_driver *, const char *what, int64_t status);
/* imc_count_* - what all counting PMUs do with the cell at event_base. */
void imc_count_begin(struct quipu_event *);
void imc_count_update(struct quipu_event *);
/* imc_check_counting - steps 3 and 6 of the checks, for the PMUs that count. */
int imc_check_counting(struct imc_driver *, const struct imc_pmu *, struct quipu_event *);
/* imc_remark - at the end of an event_init that succeeds: what the number will be. */
void imc_remark(struct imc_driver *, const struct imc_pmu *, const struct quipu_event *);
quipu_signal imc_event_signal(const struct quipu_event *, bool *filtered);

/* driver_uncore.c, driver_thread.c, driver_trace.c: fill in the operations. */
void imc_nest_operations(struct quipu_pmu *);
void imc_core_operations(struct quipu_pmu *);
void imc_thread_operations(struct quipu_pmu *);
void imc_trace_operations(struct quipu_pmu *);
/* driver_uncore.c: cpumask. */
int imc_masks_new(struct imc_driver *);

#endif
