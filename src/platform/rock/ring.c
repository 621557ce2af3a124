// SPDX-License-Identifier: BSD-2-Clause
/*
 * The driver's side of the sampler rings: Rock sheet sections 8.1 to 8.3 and 9. What the elements
 * say decides whether a sample is a hit of a synthetic event, or becomes a sample of rock_is or
 * rock_l2s. The guest is the consumer: it moves head and the high-water mark, and checks what it
 * walked against SAMPLE_PENDING.
 */
#include <string.h>

#include "platform/rock/driver_impl.h"

#define ELEMENTS   256u
#define LIST_AT	   0x3f00u
#define RING_SPACE 0x4000u
#define MAX_WORDS  5u

/*
 * Registers of an element, in this order. The model's own ones come last: strict mode has only the
 * first @plain.
 */
static const struct {
	unsigned plain, all;
	uint32_t va[MAX_WORDS];
} layout[PMUS][SLOTS] = {
	[PMU_ROCK] = {[SLOT_INSTR] = {2, 2, {QUIPU_ROCK_IS_INFO, QUIPU_ROCK_IS_CONTEXT}},
		      [SLOT_L2] = {1, 1, {QUIPU_ROCK_L2_TXN_INFO}}},
	[PMU_CHIP] = {[SLOT_INSTR] = {2, 2, {QUIPU_ROCK_IS_INFO, QUIPU_ROCK_IS_CONTEXT}},
		      [SLOT_L2] = {1, 1, {QUIPU_ROCK_L2_TXN_INFO}}},
	[PMU_IS] = {[SLOT_INSTR] = {2,
				    5,
				    {QUIPU_ROCK_IS_INFO, QUIPU_ROCK_IS_CONTEXT, QUIPU_ROCK_IS_PC,
				     QUIPU_ROCK_IS_EA, QUIPU_ROCK_IS_LATENCY}}},
	[PMU_L2S] = {[SLOT_L2] = {1, 2, {QUIPU_ROCK_L2_TXN_INFO, QUIPU_ROCK_L2_EA}}},
};

static unsigned words_of(const struct rock_driver *d, const struct quipu_event *e)
{
	enum pmu_kind kind = pmu_of(e)->kind;

	return d->env.strict ? layout[kind][slot_of(e)].plain : layout[kind][slot_of(e)].all;
}

static uint64_t ring_at(const struct rock_driver *d, unsigned cpu, enum slot slot)
{
	return d->env.memory + cpu * ROCK_DRIVER_MEMORY +
	       (slot - SLOT_INSTR) * (uint64_t)RING_SPACE;
}

/* Guest memory that the driver gave itself: always there. */
static uint8_t *memory(struct rock_driver *d, uint64_t at, uint64_t len)
{
	return quipu_rock_memory(d->env.rock, d->env.guest, at, len);
}

static void put(struct rock_driver *d, uint64_t at, uint64_t value, unsigned bytes)
{
	uint8_t *p = memory(d, at, bytes);

	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static uint32_t get32(struct rock_driver *d, uint64_t at)
{
	return bits_be32(memory(d, at, 4));
}

uint64_t rock_ring_frequency(const struct quipu_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	uint64_t freq = bits_get(a->config2, 15, 0);
	unsigned group, sel;

	if (pmu_of(e)->kind == PMU_IS || pmu_of(e)->kind == PMU_L2S)
		return quipu_event_hw((struct quipu_event *)e)->reload.sample_period;
	if (freq)
		return freq;
	if (slot_of(e) == SLOT_INSTR)
		return 100;
	/* A generic event has no term for it: as fine as the hypervisor lets it be. */
	if (a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE)
		return 250;
	group = (unsigned)bits_get(quipu_event_hw((struct quipu_event *)e)->event_base, 23, 12);
	sel = (unsigned)bits_get(quipu_event_hw((struct quipu_event *)e)->event_base, 11, 0);
	if (group == 0)
		return sel == 2 ? 1000 : 10000;
	return group == 1 ? 1000 : 5000;
}

static uint64_t type_arg(const struct quipu_event *e)
{
	return quipu_event_hw((struct quipu_event *)e)->config_base;
}

static uint64_t configure(struct rock_driver *d, const struct quipu_event *e, uint64_t va,
			  uint64_t value)
{
	return rock_call(d, cpu_of(e), RK_PERF_SAMPLE_CONFIG, type_arg(e), va, value, 0, NULL);
}

/* Bits 2:0 user, privileged, hyperprivileged; 3 trap level 0, 4 above. */
static uint64_t context_filter(const struct quipu_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	uint64_t bits = 0x18;

	bits |= a->flags & QUIPU_ATTR_EXCLUDE_USER ? 0 : 1;
	bits |= a->flags & QUIPU_ATTR_EXCLUDE_KERNEL ? 0 : 2;
	bits |= a->flags & QUIPU_ATTR_EXCLUDE_HV ? 0 : 4;
	if (pmu_of(e)->kind == PMU_IS && bits_get(a->config, 1, 0) == 1)
		bits &= ~UINT64_C(0x10);
	if (pmu_of(e)->kind == PMU_IS && bits_get(a->config, 1, 0) == 2)
		bits &= ~UINT64_C(0x08);
	return bits;
}

static uint64_t l2_filter(const struct quipu_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	uint64_t txn = bits_get(a->config, 6, 0), evt = bits_get(a->config, 8, 7);

	if (pmu_of(e)->kind != PMU_L2S)
		return ROCK_L2_ANY;
	return (txn ? txn : 0x7f) << 3 | (evt ? evt : 3) << 10;
}

uint64_t rock_ring_filter(const struct quipu_event *e)
{
	return slot_of(e) == SLOT_L2 ? l2_filter(e) : context_filter(e);
}

static uint64_t set_registers(struct rock_driver *d, struct quipu_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	bool is = pmu_of(e)->kind == PMU_IS;
	const struct {
		uint64_t va, value;
	} instr[] =
		{
			{QUIPU_ROCK_IS_PC_MASK, 0},
			{QUIPU_ROCK_IS_PC_MATCH, 0},
			{QUIPU_ROCK_IS_CONTEXT_FILTER, context_filter(e)},
			{QUIPU_ROCK_IS_CC_LATENCY_MASK, rock_ring_frequency(e) << 22 | 0xfff},
			{QUIPU_ROCK_IS_INFO_MASK, is ? a->config1 : 0},
			{QUIPU_ROCK_IS_INFO_MATCH, is ? a->config2 : 0},
		},
	  l2[] = {
		  {QUIPU_ROCK_L2_EA_MASK, 0},
		  {QUIPU_ROCK_L2_EA_MATCH, 0},
		  {QUIPU_ROCK_L2_CC, rock_ring_frequency(e)},
		  {QUIPU_ROCK_L2_TXN_INFO_FILTER, l2_filter(e)},
	  };
	bool on_l2 = slot_of(e) == SLOT_L2;
	unsigned n = on_l2 ? sizeof(l2) / sizeof(l2[0]) : sizeof(instr) / sizeof(instr[0]);
	uint64_t status = 0;

	for (unsigned i = 0; i < n && !status; i++)
		status = on_l2 ? configure(d, e, l2[i].va, l2[i].value)
			       : configure(d, e, instr[i].va, instr[i].value);
	return status;
}

uint64_t rock_ring_init(struct rock_driver *d, struct quipu_event *e)
{
	uint64_t ring = ring_at(d, cpu_of(e), slot_of(e)), status;
	uint32_t size = 8 * words_of(d, e) * ELEMENTS;

	put(d, ring + QUIPU_ROCK_RING_HEAD, 0, 4);
	put(d, ring + QUIPU_ROCK_RING_TAIL, 0, 4);
	put(d, ring + QUIPU_ROCK_RING_SIZE, size, 4);
	put(d, ring + QUIPU_ROCK_RING_HWM, size / 2, 4);
	for (unsigned i = 0; i < words_of(d, e); i++)
		put(d, ring + LIST_AT + 8 * i, layout[pmu_of(e)->kind][slot_of(e)].va[i], 8);
	status = rock_call(d, cpu_of(e), RK_PERF_SAMPLE_INIT, type_arg(e), ring, 0, 0, NULL);
	if (status)
		return status;
	status = set_registers(d, e);
	if (status)
		rock_call(d, cpu_of(e), RK_PERF_SAMPLE_RELEASE, type_arg(e), 0, 0, 0, NULL);
	return status;
}

uint64_t rock_ring_start(struct rock_driver *d, struct quipu_event *e)
{
	return rock_call(d, cpu_of(e), RK_PERF_SAMPLE_START, type_arg(e), rock_ring_frequency(e),
			 8 * words_of(d, e), ring_at(d, cpu_of(e), slot_of(e)) + LIST_AT, NULL);
}

/* ---- what an element says ---- */

static bool instr_hit(const struct quipu_event *e, uint64_t group, uint64_t sel, uint64_t info,
		      uint64_t context)
{
	static const struct {
		uint16_t evt, typ;
	} only_for[] = {{0x30b, 0x02}, {0x010, 0x04}, {0x004, 0x06}, {0x480, 0x08}};
	const struct quipu_attr *a = quipu_event_attr(e);
	uint64_t typ = bits_get(info, 6, 0), evt = bits_get(info, 18, 7),
		 mode = bits_get(info, 36, 34);
	unsigned tl = (unsigned)bits_get(a->config2, 18, 17),
		 level = (unsigned)bits_get(context, 4, 2);

	if ((a->config2 >> 16 & 1) && mode == QUIPU_ROCK_MODE_SCOUT)
		return false;
	if ((tl == 1 && level) || (tl == 2 && !level))
		return false;
	if (group == 1)
		return info && mode == sel;
	if (group == 0)
		return typ & sel;
	for (size_t i = 0; i < sizeof(only_for) / sizeof(only_for[0]); i++)
		if (!(typ & only_for[i].typ))
			evt &= ~(uint64_t)only_for[i].evt;
	return evt & sel;
}

static bool l2_hit(uint64_t group, uint64_t sel, uint64_t info)
{
	uint64_t txn = bits_get(info, 13, 7), evt = bits_get(info, 25, 22),
		 source = bits_get(info, 35, 34);
	bool local = source == QUIPU_ROCK_LOCAL_L2 && (evt == 0 || evt == 2);

	switch (group) {
	case 0: return sel == 4 ? source != QUIPU_ROCK_LOCAL_L2 : source == sel;
	case 1: return (txn & sel) && source != QUIPU_ROCK_LOCAL_L2;
	case 2: return (txn & sel) && local;
	default: return local;
	}
}

static bool is_hit(struct quipu_event *e, const uint8_t *element)
{
	uint64_t code = quipu_event_hw(e)->event_base, info = bits_be64(element);

	if (!info)
		return false;
	if (slot_of(e) == SLOT_INSTR)
		return instr_hit(e, bits_get(code, 23, 12), bits_get(code, 11, 0), info,
				 bits_be64(element + 8));
	return l2_hit(bits_get(code, 23, 12), bits_get(code, 11, 0), info);
}

/* PERF_SAMPLE_DATA_SRC of an L2 transaction. */
static uint64_t data_source(uint64_t info)
{
	static const uint64_t level[] = {
		[QUIPU_ROCK_DRAM] = PERF_MEM_S(LVL, LOC_RAM) | PERF_MEM_S(LVL, HIT),
		[QUIPU_ROCK_L3] = PERF_MEM_S(LVL, L3) | PERF_MEM_S(LVL, HIT),
		[QUIPU_ROCK_OTHER_L2] = PERF_MEM_S(LVL, REM_CCE1) | PERF_MEM_S(LVL, HIT),
		[QUIPU_ROCK_LOCAL_L2] = PERF_MEM_S(LVL, L2) | PERF_MEM_S(LVL, HIT),
	};
	static const uint64_t op[QUIPU_ROCK_L2_TYPES] = {
		[QUIPU_ROCK_L2_ICACHE_LOAD] = PERF_MEM_S(OP, EXEC),
		[QUIPU_ROCK_L2_DCACHE_LOAD] = PERF_MEM_S(OP, LOAD),
		[QUIPU_ROCK_L2_INSTR_PREFETCH] = PERF_MEM_S(OP, PFETCH),
		[QUIPU_ROCK_L2_STORE_PREFETCH] = PERF_MEM_S(OP, PFETCH),
		[QUIPU_ROCK_L2_STORE] = PERF_MEM_S(OP, STORE),
		[QUIPU_ROCK_L2_ATOMIC] = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(OP, STORE),
		[QUIPU_ROCK_L2_FLUSH] = PERF_MEM_S(OP, NA),
	};
	uint64_t txn = bits_get(info, 13, 7);

	return level[bits_get(info, 35, 34)] | op[txn ? bits_low(txn) : QUIPU_ROCK_L2_FLUSH];
}

static void sample(struct rock_driver *d, struct quipu_event *e, const uint8_t *element)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned words = words_of(d, e);
	struct quipu_sample s = {.raw = element, .raw_size = 8 * words, .exact_ip = words > 2};

	if (slot_of(e) == SLOT_INSTR && words > 2) {
		static const unsigned modes[] = {PERF_RECORD_MISC_USER, PERF_RECORD_MISC_KERNEL,
						 PERF_RECORD_MISC_HYPERVISOR,
						 PERF_RECORD_MISC_USER};

		s.ip = bits_be64(element + 16);
		s.addr = bits_be64(element + 24);
		s.weight = bits_get(bits_be64(element + 32), 11, 0);
		s.cpumode = modes[bits_get(bits_be64(element + 8), 1, 0)];
	} else if (slot_of(e) == SLOT_L2) {
		s.data_src = data_source(bits_be64(element));
		s.addr = words > 1 ? bits_be64(element + 8) : 0;
	}
	quipu_event_add_count(e, hw->reload.sample_period);
	hw->reload.last_period = hw->reload.sample_period;
	/* A throttled event goes on: its ring is written whether this looks or not. */
	quipu_event_overflow(e, &s);
}

void rock_ring_drain(struct rock_driver *d, struct quipu_event *e, uint64_t *hits,
		     uint64_t *samples)
{
	uint64_t ring = ring_at(d, cpu_of(e), slot_of(e)), pending = 0;
	uint32_t head = get32(d, ring + QUIPU_ROCK_RING_HEAD),
		 tail = get32(d, ring + QUIPU_ROCK_RING_TAIL);
	uint32_t bytes = 8 * words_of(d, e), size = bytes * ELEMENTS;
	bool sampling = pmu_of(e)->kind == PMU_IS || pmu_of(e)->kind == PMU_L2S;

	for (*hits = *samples = 0; head != tail; head = (head + bytes) % size, ++*samples) {
		const uint8_t *element = memory(d, ring + QUIPU_ROCK_RING_DATA + head, bytes);

		if (sampling)
			sample(d, e, element);
		else
			*hits += is_hit(e, element);
	}
	put(d, ring + QUIPU_ROCK_RING_HWM, (tail + size / 2) % size, 4);
	put(d, ring + QUIPU_ROCK_RING_HEAD, head, 4);
	rock_call(d, cpu_of(e), RK_PERF_SAMPLE_PENDING, type_arg(e), 0, 0, 0, &pending);
	/*
	 * Samples that found the ring full are counted by the counter all the same: the estimate
	 * stays unbiased.
	 */
}
