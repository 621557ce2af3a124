/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drivers of core PMUs have in common whose counters run up to a point and interrupt there
 * (x86, power): how an event begins, what a counter's new value means for its event, what an
 * interrupt becomes. Which registers there are, and which event takes which counter, is the room's
 * own.
 */
#ifndef QUIPU_PLATFORM_CORE_PMU_H
#define QUIPU_PLATFORM_CORE_PMU_H

#include <quipu/platform.h>

/* The head of a driver; its PMU's driver pointer is the driver that begins with this. */
struct core_pmu {
	struct quipu_pmu pmu;
	struct quipu_core *core;
	struct quipu_signals *signals;
	unsigned ncpus;
	unsigned width;	  /* of a counter, in bits */
	uint64_t top;	  /* where a counter interrupts; at most 1 << width */
	uint64_t longest; /* how far before that it is started at most */
	/* Writes prev_count into the event's counter, which runs. */
	void (*write)(struct core_pmu *, struct quipu_event *);
	/* A throttled event stops until it is unthrottled, as with Linux. Else it goes on: the
	 * engine process, which reloads by itself, cannot know of it. */
	bool stops;
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

/* core_pmu_setup - take what the environment has; the PMU itself is the caller's to describe. */
void core_pmu_setup(struct core_pmu *, const struct quipu_platform_env *);
/* core_pmu_trace - a line about a register, when somebody listens. */
void core_pmu_trace(const struct core_pmu *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* core_pmu_has - is @signal (QUIPU_SIGNAL_NONE: always) counted here? */
bool core_pmu_has(const struct core_pmu *, quipu_signal signal);
/* core_pmu_cpu - the CPU that the event is on. */
unsigned core_pmu_cpu(const struct quipu_event *);

/*
 * core_pmu_begin - event_init's end: no counter yet, and a period for events that have none, so
 *	that their counter interrupts before it wraps.
 * core_pmu_count - the event's counter stands at @now, @delta more than it was told before.
 * core_pmu_set_period - work out where the counter must start, into prev_count. True: a period
 *	was used up.
 * core_pmu_sample - what an interrupt tells of its instruction.
 * core_pmu_overflow - after core_pmu_count: the counter goes on, and the sample is written, if a
 *	period was used up.
 */
void core_pmu_begin(const struct core_pmu *, struct quipu_event *, uint64_t code);
void core_pmu_count(struct quipu_event *, uint64_t now, uint64_t delta);
bool core_pmu_set_period(const struct core_pmu *, struct quipu_hw_event *);
void core_pmu_sample(const struct quipu_interrupt *, struct quipu_sample *);
void core_pmu_overflow(struct core_pmu *, struct quipu_event *, const struct quipu_sample *);

/* core_pmu_free_list - a list of events whose terms are its own. */
void core_pmu_free_list(struct quipu_pmu_event *);

/* A room that is one kind of hardware and one driver on it. */
struct core_room {
	struct quipu_core *core;
	void *hardware, *driver;
};

/*
 * core_room_create - a room that @up fills: 0, or a negative errno with a note about @what. @down
 *	frees hardware and driver, either of which may be NULL.
 * core_room_cpu_online - the counters of a CPU that is off stand still by themselves.
 */
int core_room_create(const struct quipu_platform_env *, const char *what,
		     int (*up)(const struct quipu_platform_env *, struct core_room *),
		     void (*down)(struct core_room *), void **self);
void core_room_cpu_online(void *self, unsigned cpu, bool online);

#endif
