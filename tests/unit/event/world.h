/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small machine for tests of the event core: CPUs at 1 GHz (a cycle is a nanosecond), signals fed
 * by hand, a core PMU "cpu" (type 4) with a few counters that sample, and an uncore PMU "un" with
 * counters of its own on CPUs 0 and 2, no interrupt and no exclude bits. Real enough to multiplex,
 * overflow and refuse; nothing of it is a platform.
 */
#ifndef TEST_EVENT_WORLD_H
#define TEST_EVENT_WORLD_H

#include <quipu/event.h>

#define WORLD_CPUS     4
#define WORLD_COUNTERS 8
#define UN_COUNTERS    2
#define RAW_NOWHERE    0xbad /* a raw code that opens, but no counter takes */

struct world {
	struct quipu_manual_signals *hand;
	struct quipu_signals *signals;
	struct quipu_core *core;
	struct quipu_core_ops ops;
	struct quipu_pmu cpu_pmu, un_pmu;
	unsigned ncounters; /* of the core PMU that are in service */
	struct quipu_event *on[WORLD_CPUS][WORLD_COUNTERS];
	unsigned un_on[WORLD_CPUS];
	uint64_t idle[WORLD_CPUS]; /* ns that the clock jumped */
	unsigned grain;		   /* longest step of work() in ns */
	uint64_t pc;
	const uint64_t *chain;
	size_t nr_chain;
	struct quipu_caller caller;
	unsigned wakes, hups, sigios, last_sigio;
	struct quipu_event *last_woken;
	struct quipu_task *task; /* pid 100, not running yet */
};

/* @counters of the core PMU; @paranoid as the sysctl. Fails the test when out of memory. */
void world_init(struct world *, unsigned counters, int paranoid);
void world_free(struct world *);
/* @n ns of work on @cpu: as many cycles and instructions, ticks served as they fall due. */
void world_work(struct world *, unsigned cpu, uint64_t n);
uint64_t world_now(const struct world *, unsigned cpu);

struct quipu_attr world_attr(uint32_t type, uint64_t config, uint64_t flags);
#define HW(config, flags)                                                                          \
	world_attr(PERF_TYPE_HARDWARE, config, (flags) | QUIPU_ATTR_EXCLUDE_KERNEL)
#define SW(config, flags)                                                                          \
	world_attr(PERF_TYPE_SOFTWARE, config, (flags) | QUIPU_ATTR_EXCLUDE_KERNEL)
/* Open or fail the test; open and return the errno. */
struct quipu_event *world_open(struct world *, struct quipu_attr, pid_t pid, int cpu,
			       struct quipu_event *group);
int world_try(struct world *, struct quipu_attr, pid_t pid, int cpu, struct quipu_event *group);
uint64_t world_value(struct quipu_event *);
struct quipu_count world_count(struct quipu_event *);

/* A ring with its reader. */
struct reader {
	uint8_t *mem;
	size_t pages;
	struct quipu_event *e;
	uint64_t tail;
};
struct reader world_map(struct world *, struct quipu_event *, size_t pages, bool writable);
/* The next record, copied to @out (65536 bytes); false when there is none. */
bool world_next(struct reader *, uint8_t *out);
void world_unmap(struct reader *);

/* A record as the perf ABI describes it, taken apart without any code of the core's. */
struct parsed {
	uint32_t type;
	uint16_t misc, size;
	bool ok; /* its size is what its fields add up to */
	uint64_t identifier, ip, time, addr, id, stream_id, period, weight, data_src, lost,
		nr_chain, nr_branches;
	uint32_t pid, tid, cpu;
	uint64_t chain[160];
	uint64_t read[64];
	unsigned nread;
	uint32_t raw_size;
	/* bodies of other records */
	uint32_t body_pid, body_tid, body_ppid, body_ptid;
	uint64_t map_addr;
	char name[256];
};
struct parsed parse_record(const uint8_t *record, const struct quipu_attr *);

#endif
