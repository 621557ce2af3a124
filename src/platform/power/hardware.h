/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance monitor of a POWER9 thread: registers and one interrupt. Power ISA 3.0B Book III;
 * sheet section 1. */
#ifndef QUIPU_PLATFORM_POWER_HARDWARE_H
#define QUIPU_PLATFORM_POWER_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/machine.h>
#include <quipu/signal.h>

#include "platform/power/constraint.h"

enum power_spr {
	SPR_MMCR2 = 785,
	SPR_MMCRA = 786,
	SPR_PMC1 = 787, /* to PMC6, 792 */
	SPR_MMCR0 = 795,
	SPR_SIER = 784,
	SPR_SIAR = 796,
	SPR_SDAR = 797,
	SPR_MMCR1 = 798,
};

#define MMCR0_FC	UINT64_C(0x80000000)
#define MMCR0_FCS	UINT64_C(0x40000000)
#define MMCR0_FCP	UINT64_C(0x20000000)
#define MMCR0_PMAE	UINT64_C(0x04000000)
#define MMCR0_FCECE	UINT64_C(0x02000000)
#define MMCR0_PMC1CE	UINT64_C(0x00008000)
#define MMCR0_PMCJCE	UINT64_C(0x00004000)
#define MMCR0_PMAO	UINT64_C(0x00000080)
#define MMCR0_FC14	UINT64_C(0x00000020)
#define MMCR0_FC56	UINT64_C(0x00000010)
#define PMC_NEGATIVE	UINT64_C(0x80000000)
#define SIER_SIPR	UINT64_C(0x2000000)
#define SIER_SIHV	UINT64_C(0x1000000)
#define SIER_SIAR_VALID UINT64_C(0x0400000)

struct power_pmu;

struct power_pmu *power_pmu_new(const struct quipu_machine *, struct quipu_signals *);
void power_pmu_free(struct power_pmu *);
/* mfspr and mtspr. 0, or -EINVAL: no such CPU or register. */
int power_mfspr(struct power_pmu *, unsigned cpu, unsigned spr, uint64_t *value);
int power_mtspr(struct power_pmu *, unsigned cpu, unsigned spr, uint64_t value);
/* Vector 0xf00: @irq tells of the instruction; NULL: a register write raised it. */
void power_pmu_set_handler(struct power_pmu *,
			   void (*pmi)(void *arg, unsigned cpu, const struct quipu_interrupt *),
			   void *arg);
void power_pmu_interrupt(struct power_pmu *, const struct quipu_interrupt *);
/* The deadline slot that counter @pmc (1..6) of @cpu uses from now on: its event keeps one while
 * the counter changes. */
void power_pmu_set_slot(struct power_pmu *, unsigned cpu, unsigned pmc, unsigned slot);

#endif
