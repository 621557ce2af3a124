/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of the modelled x86-64 PMU: PMU "cpu", type 4. Talks to the hardware by its registers
 * alone. */
#ifndef QUIPU_PLATFORM_X86_DRIVER_H
#define QUIPU_PLATFORM_X86_DRIVER_H

#include <quipu/platform.h>
#include <quipu/x86.h>

struct x86_driver;

int x86_driver_new(const struct quipu_platform_env *, struct quipu_x86 *, struct x86_driver **);
void x86_driver_free(struct x86_driver *);
void x86_driver_interrupt(struct x86_driver *, unsigned cpu, const struct quipu_interrupt *);
/* Interrupts that @cpu has taken. */
uint64_t x86_driver_pmis(const struct x86_driver *, unsigned cpu);
void x86_driver_describe(const struct x86_driver *, quipu_describe_fn *, void *arg);

#endif
