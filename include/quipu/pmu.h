/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct quipu_pmu: what a PMU driver gives to the event core. Operations, their meaning and their
 * errno are those of the kernel's struct pmu (Linux 6.12 include/linux/perf_event.h; perf ABI sheet
 * A6, A12-A14).
 */
#ifndef QUIPU_PMU_H
#define QUIPU_PMU_H

#include <stddef.h>
#include <stdint.h>

#include <quipu/attr.h>
#include <quipu/reload.h>
#include <quipu/signal.h>

struct quipu_core;
struct quipu_event;
struct quipu_pmu;
struct quipu_task;

/* Capabilities (PERF_PMU_CAP_*). */
#define QUIPU_PMU_CAP_NO_INTERRUPT	 0x0001u
#define QUIPU_PMU_CAP_NO_NMI		 0x0002u
#define QUIPU_PMU_CAP_AUX_NO_SG		 0x0004u
#define QUIPU_PMU_CAP_EXTENDED_REGS	 0x0008u
#define QUIPU_PMU_CAP_EXCLUSIVE		 0x0010u
#define QUIPU_PMU_CAP_ITRACE		 0x0020u
#define QUIPU_PMU_CAP_HETEROGENEOUS_CPUS 0x0040u
#define QUIPU_PMU_CAP_NO_EXCLUDE	 0x0080u
#define QUIPU_PMU_CAP_AUX_OUTPUT	 0x0100u
#define QUIPU_PMU_CAP_EXTENDED_HW_TYPE	 0x0200u

/* Flags of add, del, start, stop and start_txn (PERF_EF_*, PERF_PMU_TXN_*). */
#define QUIPU_EF_START	0x01
#define QUIPU_EF_RELOAD 0x02
#define QUIPU_EF_UPDATE 0x04
#define QUIPU_TXN_ADD	0x1
#define QUIPU_TXN_READ	0x2

/* hw.state (PERF_HES_*). */
#define QUIPU_HES_STOPPED  0x01
#define QUIPU_HES_UPTODATE 0x02

/* Which contexts the events of a PMU live in. */
enum quipu_pmu_context {
	QUIPU_CONTEXT_HARDWARE, /* CPU and task contexts, multiplexed */
	QUIPU_CONTEXT_SOFTWARE, /* CPU and task contexts, always fit */
	QUIPU_CONTEXT_UNCORE,	/* CPU contexts of its own only: no task events */
};

/* One file of format/: the term @name fills the bits @spec ("config:0-7,32-35"). */
struct quipu_pmu_format {
	const char *name;
	const char *spec;
};

/* One file of events/, with what a user should know of it. */
struct quipu_pmu_event {
	const char *name;
	const char *terms; /* "event=0x3" */
	const char *scale; /* NULL: no .scale file */
	const char *unit;  /* NULL: no .unit file */
	const char *desc;  /* one line for `quipu list` */
	quipu_signal signal;
	enum quipu_exactness exactness;
	const char *unavailable; /* NULL: can be counted; else why not on this machine, as it runs
				    now */
};

/* Further files of the PMU's sysfs directory, for example {"caps/max_precise", "0"}; a path with /
 * in front is a whole one. */
struct quipu_pmu_file {
	const char *path;
	const char *text;
	bool bare; /* as it is: no newline behind it */
};

/* The driver's part of an event (struct hw_perf_event). */
struct quipu_hw_event {
	uint64_t config;
	uint64_t config_base;
	uint64_t event_base;
	int idx; /* counter, -1 when it has none */
	int last_cpu;
	unsigned state; /* QUIPU_HES_* */
	uint64_t prev_count;
	struct quipu_reload reload; /* sample_period, period_left, ... */
	unsigned interrupts;	    /* in this tick; UINT_MAX: throttled */
	uint64_t interrupts_seq;
	void *driver; /* the driver's own */
};

struct quipu_pmu {
	const char *name;
	int type; /* wanted type number; -1: next free one. Set by quipu_core_register */
	unsigned capabilities;
	enum quipu_pmu_context context;
	void *driver; /* the driver's own */

	/* sysfs; NULL-terminated tables (last .name or .path is NULL), each may be NULL */
	const struct quipu_pmu_format *formats;
	const struct quipu_pmu_event *events;
	/* Further names for `quipu list` and -e that have no file in Linux's sysfs: perf has them
	 * in tables of its own, built for the processor. */
	const struct quipu_pmu_event *more;
	const struct quipu_pmu_file *files;
	const char *cpumask; /* "0,4"; NULL: no such file (core PMU) */

	/*
	 * Is @e one of ours, and valid? 0, -ENOENT (not ours, or no such generic event), -EINVAL
	 * (malformed), -EOPNOTSUPP (feature absent) or the driver's own errno. Say why with
	 * quipu_core_reason().
	 */
	int (*event_init)(struct quipu_pmu *, struct quipu_event *e);
	void (*event_destroy)(struct quipu_event *);
	/* Reserve a counter on the current CPU (quipu_event_cpu_now); with EF_START start it.
	 * Non-zero: does not fit. */
	int (*add)(struct quipu_event *, int flags);
	void (*del)(struct quipu_event *, int flags);
	void (*start)(struct quipu_event *, int flags);
	void (*stop)(struct quipu_event *, int flags);
	void (*read)(struct quipu_event *);
	/* Optional from here on. */
	void (*pmu_enable)(struct quipu_pmu *, unsigned cpu);
	void (*pmu_disable)(struct quipu_pmu *, unsigned cpu);
	void (*start_txn)(struct quipu_pmu *, unsigned cpu, unsigned flags);
	int (*commit_txn)(struct quipu_pmu *, unsigned cpu);
	void (*cancel_txn)(struct quipu_pmu *, unsigned cpu);
	int (*event_idx)(struct quipu_event *);
	int (*check_period)(struct quipu_event *, uint64_t period);
	bool (*filter_match)(struct quipu_event *, unsigned cpu);
	/* A CPU came or went (hotplug). */
	void (*cpu_online)(struct quipu_pmu *, unsigned cpu);
	void (*cpu_offline)(struct quipu_pmu *, unsigned cpu);
	/*
	 * A client wrote a number into @path, one of @files below /proc/sys. 0, and @files says so
	 * from then on; or -errno. NULL: what is written there is put back.
	 */
	int (*file_written)(struct quipu_pmu *, const char *path, long value);
	/*
	 * The deadline slot of the hardware floor that the event's counter uses, or -1. It lets the
	 * engine process serve the event's overflow by itself (doc/architecture.md, "Where an
	 * overflow is handled").
	 */
	int (*slot)(struct quipu_event *);
	/*
	 * What the event counts on @cpu: the signal behind it, QUIPU_SIGNAL_NONE when it has none.
	 * The core reads it for the exact truth beside a multiplexed estimate; *filtered is set
	 * when the event counts no user-level activity at all (exclude_user), so that its truth is
	 * 0.
	 */
	quipu_signal (*signal)(const struct quipu_event *, bool *filtered);
	/*
	 * What the count of an open event is worth, where its signal does not say it (sums over
	 * CPUs, what never happens, instructions that stand for cycles). NULL: as its signal, or
	 * modelled without one.
	 */
	enum quipu_exactness (*exactness)(const struct quipu_event *);
};

#endif
