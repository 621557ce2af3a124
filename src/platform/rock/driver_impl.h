/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between driver_open.c (what an event asks for), driver.c (events on counters) and ring.c (what
 * comes out of sampler rings).
 */
#ifndef QUIPU_PLATFORM_ROCK_DRIVER_IMPL_H
#define QUIPU_PLATFORM_ROCK_DRIVER_IMPL_H

#include <quipu/bits.h>

#include "platform/rock/driver.h"

/* The client's "pics": at most one event each on a CPU. */
enum slot { SLOT_CYC, SLOT_INSTR, SLOT_L2, SLOT_MMU, SLOT_YANK, SLOT_SIBLK, SLOT_LVLK, SLOTS };
enum pmu_kind { PMU_ROCK, PMU_CHIP, PMU_IS, PMU_L2S, PMUS };

struct rock_pmu {
	struct quipu_pmu pmu;
	enum pmu_kind kind;
	struct rock_driver *driver;
};

struct rock_cpu {
	struct quipu_event *counter[SLOTS];
	struct quipu_event *sampler[SLOTS]; /* of the same slot; synthetic events are in both */
	bool online;
};

struct rock_driver {
	struct rock_driver_env env;
	struct rock_pmu pmu[PMUS];
	bool registered[PMUS];
	struct rock_cpu *cpus;
	struct quipu_pmu_event *events[2]; /* of rock and rock_chip; strings owned */
	char *cpumask;			   /* of rock_chip */
	int *mask_cpu;			   /* by chip: the CPU that counts for it, -1 */
	unsigned nchips;
};

static inline struct rock_pmu *pmu_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

static inline unsigned cpu_of(const struct quipu_event *e)
{
	return (unsigned)quipu_event_cpu_now(e);
}

/*
 * Of quipu_hw_event: config is the slot; config_base type and source; event_base the driver code of
 * a synthetic event (bit 31), else txn.
 */
#define SYN_BIT bits_one(31)

static inline enum slot slot_of(const struct quipu_event *e)
{
	return (enum slot)quipu_event_hw((struct quipu_event *)e)->config;
}

static inline bool rock_is_synthetic(const struct quipu_event *e)
{
	return quipu_event_hw((struct quipu_event *)e)->event_base & SYN_BIT;
}

static inline bool is_sampler_pmu(const struct quipu_event *e)
{
	return pmu_of(e)->kind == PMU_IS || pmu_of(e)->kind == PMU_L2S;
}

static inline unsigned chip_of(const struct rock_driver *d, unsigned cpu)
{
	return d->env.strand[cpu] / QUIPU_ROCK_CHIP_STRANDS;
}

/* driver_open.c: an event in the driver's own terms */
struct rock_want {
	enum slot slot;
	unsigned txn, source;
	bool syn;
	unsigned group, sel;
};
int rock_event_init(struct quipu_pmu *, struct quipu_event *);
int rock_check_period(struct quipu_event *, uint64_t period);
/* The slot of a type's code; -EINVAL, with the reason. */
int rock_find_slot(struct rock_driver *, uint64_t code, enum slot *);
struct rock_want rock_want_of(const struct quipu_event *);
/* Low bits of the START configuration. */
uint64_t rock_filter(const struct rock_want *, uint64_t flags);
unsigned rock_slot_code(enum slot);
unsigned rock_slot_width(enum slot);
const char *rock_slot_name(enum slot);

/* driver.c */
uint64_t rock_call(struct rock_driver *, unsigned cpu, uint64_t function, uint64_t a0, uint64_t a1,
		   uint64_t a2, uint64_t a3, uint64_t *ret1);

/* ring.c: events that use a sampler */
#define SYN_LIMITS(slot, min, max)                                                                 \
	uint64_t min = (slot) == SLOT_INSTR ? 50 : 250, max = (slot) == SLOT_INSTR ? 1023 : 65535
/* Samplers of @e: prepare ring and registers (the caller has the sampler); a hypervisor status. */
uint64_t rock_ring_init(struct rock_driver *, struct quipu_event *e);
uint64_t rock_ring_start(struct rock_driver *, struct quipu_event *e);
/* Elements since the last look. Synthetic: *hits of *samples. Sampling PMUs: a sample for each. */
void rock_ring_drain(struct rock_driver *, struct quipu_event *e, uint64_t *hits,
		     uint64_t *samples);
/* CONTEXT_FILTER or TXN_INFO_FILTER of @e; of a synthetic event of L2, and of one of INSTR. */
uint64_t rock_ring_filter(const struct quipu_event *e);
#define ROCK_L2_ANY  UINT64_C(0xff8)
#define ROCK_IS_USER UINT64_C(0x19)
/* The frequency of a synthetic event: its own, or the client's default. */
uint64_t rock_ring_frequency(const struct quipu_event *e);

#endif
