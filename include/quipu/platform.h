/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a platform room offers to the machine. A new platform is a new room under src/platform and
 * one line in the table of src/machine/platforms.c.
 */
#ifndef QUIPU_PLATFORM_H
#define QUIPU_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/event.h>
#include <quipu/machine.h>
#include <quipu/signal.h>

/*
 * What a program does that may bring something beside itself to run (a hypervisor): told to rooms
 * that watch for it. Units: pages, threads woken, bytes written; else 1.
 */
enum quipu_activity {
	QUIPU_ACTIVITY_PAGE_FAULT,   /* first access of a page since it was mapped */
	QUIPU_ACTIVITY_PAGE_UNMAP,   /* pages that had been accessed are no longer mapped */
	QUIPU_ACTIVITY_PAGE_PROTECT, /* their protection changed */
	QUIPU_ACTIVITY_IDLE,	     /* return from a system call of the blocking kind */
	QUIPU_ACTIVITY_WAKE,	     /* other threads were woken */
	QUIPU_ACTIVITY_YIELD,	     /* sched_yield */
	QUIPU_ACTIVITY_CONSOLE,	     /* written to a terminal */
	QUIPU_ACTIVITY_RTAS,	     /* a tool of the machine called its firmware (no engine's) */
	QUIPU_ACTIVITIES
};

/* What a room is built on. All pointers outlive the room. */
struct quipu_platform_env {
	const struct quipu_machine *machine;
	struct quipu_core *core;       /* register the PMUs here */
	struct quipu_signals *signals; /* the hardware floor reads and arms here */
	struct quipu_notes *notes;     /* what was wrong in the nodes */
	/* One line for each call between driver and firmware, when the user asked for it; NULL
	 * otherwise. */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
	/* The machine's time in ns, for hardware that runs by itself; NULL: the room is told by
	 * advance alone. */
	uint64_t (*now)(void *arg);
	void *now_arg;
	/* Something that no engine counts ran @cycles on @cpu: its clock moves. NULL: nobody keeps
	 * a clock. */
	void (*spend)(void *arg, unsigned cpu, uint64_t cycles);
	void *spend_arg;
};

/* For `machine show`: one line of a room's description; @depth indents. */
typedef void quipu_describe_fn(void *arg, unsigned depth, const char *line);

/* A row of /proc/interrupts: what stands before the counts and behind them. */
struct quipu_interrupt_row {
	const char *label, *text;
};

struct quipu_platform {
	const char *name; /* the room: "riscv" */
	/* The compatible strings of the nodes that it reads, NULL-terminated; for `machine check`.
	 * May be NULL. */
	const char *const *compatible;
	/* Does the tree hold hardware of this room? No notes, no allocation. */
	bool (*matches)(const struct quipu_machine *);
	/* Make hardware, firmware and drivers and register the PMUs. 0 and *self, or errno with a
	 * note. */
	int (*create)(const struct quipu_platform_env *, void **self);
	void (*destroy)(void *self);
	/* Deadlines of this room's slots were reached: raise the interrupt, run the driver's
	 * handler. */
	void (*interrupt)(void *self, const struct quipu_interrupt *);
	/* PMUs, counters, widths, firmware: for a person. */
	void (*describe)(void *self, quipu_describe_fn *, void *arg);
	/* A modelled CPU goes online or offline. */
	void (*cpu_online)(void *self, unsigned cpu, bool online);
	/* Optional: the machine's time is @now_ns; what hardware does by itself (devices, clocks)
	 * happens up to there. */
	void (*advance)(void *self, uint64_t now_ns);
	/*
	 * Optional: the device whose PMU is called @name is taken out of the running machine, or
	 * (@present) put back, as new. 0; -ENODEV: no such device of this room; -EALREADY; -ENOMEM.
	 */
	int (*hotplug)(void *self, const char *name, bool present);
	/* Optional: what happened that the figures alone do not tell, for the end of a run. */
	void (*report)(void *self, quipu_describe_fn *, void *arg);
	/* Optional: performance monitoring interrupts that @cpu has taken, for the row of
	 * /proc/interrupts. What fills memory without one does not count. */
	uint64_t (*interrupts)(void *self, unsigned cpu);
	/* Optional, beside it: how Linux writes that row; NULL: this machine's kernel has none.
	 * Without: the row PMI. */
	const struct quipu_interrupt_row *(*interrupt_row)(void *self);
	/* Optional, both or none. Which activities the room wants to be told of, a bit each; one
	 * happened where @at says. */
	uint32_t (*watches)(void *self);
	void (*activity)(void *self, const struct quipu_interrupt *at, enum quipu_activity,
			 uint64_t units);
};

/* All rooms; terminated by NULL. */
extern const struct quipu_platform *const quipu_platforms[];

#endif
