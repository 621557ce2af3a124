/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of the POWER9 core PMU: PMU "cpu", type 4. Talks to the hardware by its registers
 * alone. */
#ifndef QUIPU_PLATFORM_POWER_DRIVER_H
#define QUIPU_PLATFORM_POWER_DRIVER_H

#include <quipu/platform.h>

#include "platform/power/hardware.h"

struct power_driver;

int power_driver_new(const struct quipu_platform_env *, struct power_pmu *, struct power_driver **);
void power_driver_free(struct power_driver *);
void power_driver_interrupt(struct power_driver *, unsigned cpu, const struct quipu_interrupt *);
void power_driver_describe(const struct power_driver *, quipu_describe_fn *, void *arg);
/*
 * The cpumode of a sample (rtas sheet 6.1, a POWER9 part): @user: the interrupted context is a
 * program, else the kernel; @bare: the kernel itself runs with HV = 1; @marked: the event is.
 * *use_siar: its address is SIAR, else the interrupted one.
 */
unsigned power_sample_mode(uint64_t sier, bool user, bool bare, bool marked, bool *use_siar);
/* The PMI row of /proc/interrupts: performance monitor interrupts that @cpu has taken. */
uint64_t power_driver_pmis(const struct power_driver *, unsigned cpu);

#endif
