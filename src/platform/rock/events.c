// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which of an engine's signals move a counter. Rock sheet sections 5.2 and 10: what an L2
 * transaction and a lookup of the unified TLB are in this model. An approximation where a signal is
 * coarser than the filter is no choice: what has no signal is named as missing, and the driver
 * refuses or says it.
 */
#include "platform/rock/chip.h"

#define BIT(c) QUIPU_CLASS_BIT(QUIPU_INSN_##c)

struct out {
	struct rock_follow *f;
	unsigned n;
};

static void put(struct out *o, quipu_signal signal, int weight, bool chip)
{
	o->f[o->n++] = (struct rock_follow){signal, weight, chip};
}

/*
 * Stores drain one by one through the write-through L1D; an instruction fetch that misses brings
 * the next line as well.
 */
static const char *follow_l2(unsigned source, uint64_t filter, struct out *o)
{
	bool strands = source & (RK_PERF_SRC_STRAND | RK_PERF_SRC_STRANDS);
	uint64_t classes = 0;

	if (!strands)
		filter &= 1u << QUIPU_ROCK_L2_DCACHE_LOAD;
	if (strands && (filter & 0x05))
		put(o, QUIPU_SIGNAL_L1I_MISSES, (filter & 0x05) == 0x05 ? 2 : 1, false);
	if (strands && (filter & 0x02))
		put(o, QUIPU_SIGNAL_L1D_READ_MISSES, 1, false);
	if (filter & 0x10)
		classes |= BIT(STORE) | BIT(FSTORE) | BIT(SC);
	if (filter & 0x20)
		classes |= BIT(AMO);
	if (classes)
		put(o, QUIPU_SIGNAL_OF(classes), 1, false);
	/* A walk reads one entry of the translation storage buffer. */
	if ((source & RK_PERF_SRC_MMU) && (filter & 0x02))
		put(o, QUIPU_SIGNAL_STLB_MISSES, 1, true);
	if (source & RK_PERF_SRC_SIU)
		return "requests of the SIU (no device on this machine makes any)";
	if (strands && (filter & 0x08))
		return "store prefetches (the model has no store buffer)";
	return strands && (filter & 0x40) ? "flushes" : NULL;
}

/* Signals tell sides apart, and hits from misses, but not both at once. */
static const char *follow_mmu(uint64_t filter, struct out *o)
{
	unsigned outcome = filter & 3, sides = filter >> 3 & 3;

	if (!outcome || !sides || !(filter >> 5 & 3))
		return "anything: the filter admits no lookup (it needs an outcome, a side and a "
		       "kind of address)";
	if (!(filter >> 5 & 1))
		return "lookups of real addresses (a program has none)";
	if (sides == 3) {
		if (outcome & 1)
			put(o, QUIPU_SIGNAL_STLB_ACCESSES, 1, false);
		if (outcome != 3)
			put(o, QUIPU_SIGNAL_STLB_MISSES, outcome == 1 ? -1 : 1, false);
		return NULL;
	}
	if (outcome != 3)
		return "hits or misses of one side alone (the model keeps them for both sides "
		       "together)";
	if (sides == 2)
		put(o, QUIPU_SIGNAL_ITLB_MISSES, 1, false);
	else
		put(o, QUIPU_SIGNAL_DTLB_READ_MISSES, 1, false);
	if (sides == 1)
		put(o, QUIPU_SIGNAL_DTLB_WRITE_MISSES, 1, false);
	return NULL;
}

unsigned rock_events_follow(enum rock_type type, unsigned source, uint64_t filter,
			    struct rock_follow *out, const char **missing)
{
	struct out o = {out, 0};
	const char *why = NULL;

	if (type == TYPE_L2)
		why = follow_l2(source, filter, &o);
	else if (type == TYPE_MMU)
		why = follow_mmu(filter, &o);
	else if (rock_type_sod(type))
		why = "speculation that failed (the model has none)";
	else if (filter & QUIPU_ROCK_USER)
		put(&o, type == TYPE_CYC ? QUIPU_SIGNAL_CYCLES : QUIPU_SIGNAL_INSTRUCTIONS, 1,
		    false);
	if (missing)
		*missing = why;
	return o.n;
}
