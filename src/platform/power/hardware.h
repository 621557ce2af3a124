/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance monitor of a POWER9 thread: registers and one interrupt. Power ISA 3.0B Book III;
 * sheet section 1. */
#ifndef QUIPU_PLATFORM_POWER_HARDWARE_H
#define QUIPU_PLATFORM_POWER_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/machine.h>
#include <quipu/model.h>
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
#define MMCR0_FCHV	UINT64_C(0x00000001)
#define PMC_NEGATIVE	UINT64_C(0x80000000)
#define SIER_SIPR	UINT64_C(0x2000000)
#define SIER_SIHV	UINT64_C(0x1000000)
#define SIER_SIAR_VALID UINT64_C(0x0400000)
#define SIER_SDAR_VALID UINT64_C(0x0200000)
/* Fields, high and low bit. */
#define MMCRA_ELIGIBLE	6, 4
#define MMCRA_MANTISSA	25, 19 /* of the threshold counter: mantissa << 2 * exponent */
#define MMCRA_EXPONENT	29, 27
#define SIER_TYPE	17, 15
#define SIER_SOURCE	3, 1

enum { ELIGIBLE_LOADS = 5, ELIGIBLE_STORES = 7 };
enum { SIER_LOAD = 1, SIER_STORE = 2 };
#define SIER_SOURCE_MEMORY 4u /* of this chip; 1 to 3 are the caches of these levels */

struct power_event;
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
/* Every interrupt is taken while the program waits: its handler may do other than reload. */
void power_pmu_set_bell(struct power_pmu *);
void power_pmu_interrupt(struct power_pmu *, const struct quipu_interrupt *);

/*
 * A partition (sheet 7): programs run with HV = 0, and there is a hypervisor that may run instead.
 *
 * power_pmu_set_partition - @perfmon: no counter counts on a CPU before H_PERFMON enabled it there.
 * power_h_perfmon - the call: bits 1 << 63 (enable) and 1 << 62 (threshold granularity). 0 and the
 *	mode, or -4 (H_Parameter); -2 (H_Function) when the machine has no such call.
 * power_vpa_in_use - byte 0xbb of the thread's virtual processor area: are PMU registers in use?
 * power_pmu_visit - thread @at->cpu, about to go on at @at->pc, ran these stretches of hypervisor
 *	code: counters that are not frozen then count them. A counter that overflows freezes as
 *	always; the interrupt comes after the return.
 * power_pmu_declare - visits may bring events of this name besides; power_pmu_declared - may they?
 *	The counts of such an event are not the engine's alone.
 * power_pmu_redispatched - the thread was off its processor: registers that are not in use come
 *	back in reset state.
 */
struct power_extra {
	const char *event; /* as power_events calls it */
	uint32_t count;
};
struct power_stretch {
	uint64_t start, size; /* of the function */
	uint64_t insns, cycles;
	const struct power_extra *extra; /* what else happened, by its end */
	size_t nextra;
};
void power_pmu_set_partition(struct power_pmu *, bool perfmon);
int power_h_perfmon(struct power_pmu *, unsigned cpu, uint64_t set, uint64_t reset, uint64_t *mode);
void power_vpa_in_use(struct power_pmu *, unsigned cpu, bool);
bool power_vpa_is_in_use(const struct power_pmu *, unsigned cpu);
void power_pmu_visit(struct power_pmu *, const struct quipu_interrupt *at,
		     const struct power_stretch *, size_t n);
void power_pmu_declare(struct power_pmu *, const char *event);
bool power_pmu_declared(const struct power_pmu *, const struct power_event *);
void power_pmu_redispatched(struct power_pmu *, unsigned cpu);
/* The deadline slot that counter @pmc (1..6) of @cpu uses from now on: its event keeps one while
 * the counter changes. */
void power_pmu_set_slot(struct power_pmu *, unsigned cpu, unsigned pmc, unsigned slot);

#endif
