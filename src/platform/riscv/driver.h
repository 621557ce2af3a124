/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two PMU drivers of the RISC-V room. They reach the hardware through quipu/riscv.h alone, at S
 * level.
 */
#ifndef QUIPU_PLATFORM_RISCV_DRIVER_H
#define QUIPU_PLATFORM_RISCV_DRIVER_H

#include <quipu/event.h>
#include <quipu/pmu.h>
#include <quipu/riscv.h>

/* What a driver is told by the room. */
struct riscv_driver_env {
	struct quipu_riscv *harts;
	struct quipu_core *core;
	const struct quipu_machine *machine;
	unsigned kernel;      /* 418, 601, 612: whose driver this is */
	bool filtering;	      /* Sscofpmf in the ISA string: interrupt and privilege filter */
	bool kernel_activity; /* the machine declares kernel-mode activity */
	bool record_silent;   /* legacy: see riscv_config */
	bool branch_records;  /* samples may carry branch stacks */
	unsigned user_access; /* kernel.perf_user_access at the start: 0..2 */
	const struct quipu_pmu_event *events;
	/* Words and facts for a person; no count comes from here. */
	const char *(*why_not)(const struct quipu_riscv *, uint32_t event, uint64_t data, char *buf,
			       size_t len);
	quipu_signal (*signal)(const struct quipu_riscv *, uint32_t event, uint64_t data);
	/* The event is open: the engine is told of all signals that move it. 0 or -ENOSPC. */
	int (*want)(const struct quipu_riscv *, uint32_t event, uint64_t data);
};

struct sbi_driver;
/* Probe, start on every CPU and register "cpu", type 4. 0 or errno with a note. */
int sbi_driver_new(const struct riscv_driver_env *, struct quipu_notes *, struct sbi_driver **);
void sbi_driver_free(struct sbi_driver *);
/* The local counter-overflow interrupt of @cpu. */
void sbi_driver_interrupt(struct sbi_driver *, unsigned cpu, const struct quipu_interrupt *);
/* How many @cpu has taken; has the kernel asked for them? */
uint64_t sbi_driver_interrupts(const struct sbi_driver *, unsigned cpu);
bool sbi_driver_interrupts_at_all(const struct sbi_driver *);
void sbi_driver_online(struct sbi_driver *, unsigned cpu, bool online);
/* kernel.perf_user_access: 0..2. 0 or -EINVAL. */
int sbi_driver_user_access(struct sbi_driver *, unsigned value);
void sbi_driver_describe(const struct sbi_driver *, void (*fn)(void *, unsigned, const char *),
			 void *arg);

struct legacy_driver;
int legacy_driver_new(const struct riscv_driver_env *, struct quipu_notes *,
		      struct legacy_driver **);
void legacy_driver_free(struct legacy_driver *);
void legacy_driver_describe(const struct legacy_driver *,
			    void (*fn)(void *, unsigned, const char *), void *arg);

#endif
