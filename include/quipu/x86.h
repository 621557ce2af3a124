/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PMU of a plain modelled x86-64 processor, as software sees it: model-specific registers and
 * one interrupt.
 *
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3B, chapter 20
 * (architectural performance monitoring, version 4 without its freeze and anythread bits): four
 * general counters and three fixed ones, 48 bits each. Which events there are is the model's own
 * table (src/platform/x86/events.c); the seven architectural ones have their architectural codes.
 */
#ifndef QUIPU_X86_H
#define QUIPU_X86_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/machine.h>
#include <quipu/signal.h>

#define QUIPU_X86_GENERAL 4u
#define QUIPU_X86_FIXED	  3u /* instructions, cycles, reference cycles */
#define QUIPU_X86_WIDTH	  48u

enum quipu_x86_msr {
	QUIPU_IA32_PMC0 = 0xc1,		/* to PMC3; a write takes 32 bits and extends the sign */
	QUIPU_IA32_PERFEVTSEL0 = 0x186, /* to 189 */
	QUIPU_IA32_FIXED_CTR0 = 0x309,	/* to 30b */
	QUIPU_IA32_FIXED_CTR_CTRL = 0x38d,
	QUIPU_IA32_PERF_GLOBAL_STATUS = 0x38e, /* read only */
	QUIPU_IA32_PERF_GLOBAL_CTRL = 0x38f,
	QUIPU_IA32_PERF_GLOBAL_STATUS_RESET = 0x390, /* ones clear */
	QUIPU_IA32_A_PMC0 = 0x4c1,		     /* the same counters, all bits written */
};

/* IA32_PERFEVTSELx. */
#define QUIPU_X86_EVENT	 UINT64_C(0xff)
#define QUIPU_X86_UMASK	 UINT64_C(0xff00)
#define QUIPU_X86_USR	 (UINT64_C(1) << 16)
#define QUIPU_X86_OS	 (UINT64_C(1) << 17)
#define QUIPU_X86_INT	 (UINT64_C(1) << 20)
#define QUIPU_X86_ENABLE (UINT64_C(1) << 22)

struct quipu_x86;

/* quipu_x86_new - the PMUs of all CPUs of @machine, moved by @signals. NULL when out of memory. */
struct quipu_x86 *quipu_x86_new(const struct quipu_machine *, struct quipu_signals *signals);
void quipu_x86_free(struct quipu_x86 *);
/*
 * quipu_x86_rdmsr, quipu_x86_wrmsr - as the instructions. 0, -EINVAL (no such CPU), or -EFAULT
 * where the instruction raises #GP: no such register, a reserved bit, a register that is only read.
 */
int quipu_x86_rdmsr(struct quipu_x86 *, unsigned cpu, uint32_t msr, uint64_t *value);
int quipu_x86_wrmsr(struct quipu_x86 *, unsigned cpu, uint32_t msr, uint64_t value);
/* The performance monitoring interrupt (LVT entry in NMI mode): @irq tells of the instruction;
 * NULL: a register write. */
void quipu_x86_set_handler(struct quipu_x86 *,
			   void (*pmi)(void *arg, unsigned cpu, const struct quipu_interrupt *irq),
			   void *arg);
/* quipu_x86_interrupt - the engine reached deadlines that this hardware armed. */
void quipu_x86_interrupt(struct quipu_x86 *, const struct quipu_interrupt *);

#endif
