/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Rock PMU driver of a Linux-like guest: PMUs rock, rock_chip, rock_is and rock_l2s (Rock sheet
 * section 9). It knows hypervisor calls and its guest's memory; what it must say to a person comes
 * through the callbacks of its environment.
 */
#ifndef QUIPU_PLATFORM_ROCK_DRIVER_H
#define QUIPU_PLATFORM_ROCK_DRIVER_H

#include <quipu/event.h>
#include <quipu/machine.h>
#include <quipu/platform.h>
#include <quipu/rock.h>

struct rock_name {
	const char *name;
	unsigned code; /* RK_PERF_CYC ... */
	unsigned txn;
	bool syn; /* an estimate from samples */
	unsigned group, sel;
	const char *desc;
};
#define ROCK_NAMES 53u /* the client's 52, and instr_all a second time */
extern const struct rock_name rock_names[ROCK_NAMES + 1];
/* The event behind a generic one, NULL: none. */
const struct rock_name *rock_name_hardware(uint64_t config);
const struct rock_name *rock_name_cache(uint64_t config);

/* What a person is told of a count. */
struct rock_driver_env {
	struct quipu_core *core;
	struct quipu_rock *rock;
	unsigned guest;
	unsigned ncpus;
	const unsigned *strand; /* of each CPU */
	uint64_t memory;	/* rings: ROCK_DRIVER_MEMORY bytes for each CPU from here on */
	bool strict;
	/*
	 * Can the hardware count this, or sample it, as it runs now? @filter: of a counter as START
	 * has it, of a sampler as its filter register. False: *text says why not. True: *text is
	 * NULL or what the count leaves out. @buf may be used for the text.
	 */
	bool (*can)(void *arg, unsigned code, unsigned source, uint64_t filter, bool sampled,
		    const char **text, char *buf, size_t len);
	/* It is about to be opened: the engine must count what it needs. 0 or -ENOSPC. */
	int (*want)(void *arg, unsigned code, unsigned source, uint64_t filter, bool sampled);
	/* The one signal that a counter follows, QUIPU_SIGNAL_NONE: none or several. */
	quipu_signal (*signal)(void *arg, unsigned code, unsigned source, uint64_t filter);
	/* The deadline slot of a counter that follows one signal, -1: none, or several. */
	int (*slot)(void *arg, unsigned code, unsigned source, uint64_t filter);
	/*
	 * Who has the counter of @code on the chip of @strand: a strand, or -1. For messages only.
	 */
	int (*owner)(void *arg, unsigned strand, unsigned code);
	void *arg;
};
#define ROCK_DRIVER_MEMORY UINT64_C(0x10000)

struct rock_driver;
/* 0 and *out; -ENODEV when the hypervisor has no RKPERF 1.0. */
int rock_driver_new(const struct rock_driver_env *, struct quipu_notes *, struct rock_driver **out);
void rock_driver_free(struct rock_driver *);
/* The level-15 interrupt on @cpu. False: nobody's. */
bool rock_driver_interrupt(struct rock_driver *, unsigned cpu, const struct quipu_interrupt *);
void rock_driver_describe(const struct rock_driver *, quipu_describe_fn *, void *arg);

#endif
