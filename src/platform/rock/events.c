// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which of an engine's signals move a counter. Rock sheet sections 5.2 and 10: what an L2
 * transaction and a lookup of the unified TLB are in this model, and what a core that runs ahead
 * of its misses does (src/model/ahead.h). An approximation where a signal is coarser than the
 * filter is no choice: what has no signal is named as missing, and the driver refuses or says it.
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

/* By bit of TXN. */
static const uint8_t transaction[QUIPU_ROCK_L2_TYPES] = {
	[QUIPU_ROCK_L2_ICACHE_LOAD] = QUIPU_TRANSACTION_FETCH,
	[QUIPU_ROCK_L2_DCACHE_LOAD] = QUIPU_TRANSACTION_LOAD,
	[QUIPU_ROCK_L2_INSTR_PREFETCH] = QUIPU_TRANSACTION_FETCH_PREFETCH,
	[QUIPU_ROCK_L2_STORE_PREFETCH] = QUIPU_TRANSACTION_STORE_PREFETCH,
	[QUIPU_ROCK_L2_STORE] = QUIPU_TRANSACTION_STORE,
	[QUIPU_ROCK_L2_ATOMIC] = QUIPU_TRANSACTION_ATOMIC,
	[QUIPU_ROCK_L2_FLUSH] = QUIPU_TRANSACTION_FLUSH,
};

#define ALL_TXN		  0x7fu
#define ONLY_LABELS	  0x48u /* store prefetches and flushes: labels alone tell of them */
#define MOST_LABELS	  3u	/* of kinds: with more, those that are left out are subtracted */
#define KIND(transaction) (QUIPU_SIGNAL_L2_TRANSACTION + (transaction))

/* Every instruction labelled: any set of kinds, and an interrupt that tells which one it was. */
static void follow_labels(unsigned txn, struct out *o)
{
	bool add = bits_count(txn) <= MOST_LABELS;
	unsigned named = add ? txn : ~txn & ALL_TXN;

	if (!add)
		put(o, QUIPU_SIGNAL_L2_TRANSACTIONS, 1, false);
	for (; named; named &= named - 1)
		put(o, KIND(transaction[bits_low(named)]), add ? 1 : -1, false);
}

/*
 * What costs no labels: stores drain one by one through the write-through L1D; an instruction
 * fetch that misses brings the next line as well.
 */
static void follow_misses(unsigned txn, struct out *o)
{
	uint64_t classes = 0;

	if (txn & 0x05)
		put(o, QUIPU_SIGNAL_L1I_MISSES, (txn & 0x05) == 0x05 ? 2 : 1, false);
	if (txn & 0x02)
		put(o, QUIPU_SIGNAL_L1D_READ_MISSES, 1, false);
	if (txn & 0x10)
		classes |= BIT(STORE) | BIT(FSTORE) | BIT(SC);
	if (txn & 0x20)
		classes |= BIT(AMO);
	if (classes)
		put(o, QUIPU_SIGNAL_OF(classes), 1, false);
}

static const char *follow_l2(unsigned source, uint64_t filter, struct out *o)
{
	bool strands = source & (RK_PERF_SRC_STRAND | RK_PERF_SRC_STRANDS);
	unsigned txn = strands ? (unsigned)filter & ALL_TXN : 0;

	if (txn & ONLY_LABELS)
		follow_labels(txn, o);
	else
		follow_misses(txn, o);
	/* A walk reads one entry of the translation storage buffer. */
	if ((source & RK_PERF_SRC_MMU) && (filter & 0x02)) {
		if (o->n == STRAND_TERMS)
			return "requests of the MMU (too many kinds of transactions at once)";
		put(o, QUIPU_SIGNAL_STLB_MISSES, 1, true);
	}
	if (source & RK_PERF_SRC_SIU)
		return "requests of the SIU (no device on this machine makes any)";
	return NULL;
}

/* By side, data first: lookups, and those of them that miss. */
static const quipu_signal lookups[2][2] = {
	{QUIPU_SIGNAL_DTLB_MISSES, QUIPU_SIGNAL_DATA_WALKS},
	{QUIPU_SIGNAL_ITLB_MISSES, QUIPU_SIGNAL_FETCH_WALKS},
};

static const char *follow_mmu(uint64_t filter, struct out *o)
{
	unsigned outcome = filter & 3, sides = filter >> 3 & 3;
	quipu_signal all = QUIPU_SIGNAL_STLB_ACCESSES, misses = QUIPU_SIGNAL_STLB_MISSES;

	if (!outcome || !sides || !(filter >> 5 & 3))
		return "anything: the filter admits no lookup (it needs an outcome, a side and a "
		       "kind of address)";
	if (!(filter >> 5 & 1))
		return "lookups of real addresses (a program has none)";
	if (sides != 3) {
		all = lookups[sides - 1][0];
		misses = lookups[sides - 1][1];
	}
	if (outcome & 1)
		put(o, all, 1, false);
	if (outcome != 3)
		put(o, misses, outcome == 1 ? -1 : 1, false);
	return NULL;
}

/* The three kinds of trouble that speculation runs into. */
static quipu_signal sod_signal(enum rock_type type)
{
	if (type == TYPE_SIBLK)
		return QUIPU_SIGNAL_SIBLING_BLOCKS;
	return type == TYPE_YANK ? QUIPU_SIGNAL_YANKS : QUIPU_SIGNAL_LIVELOCKS;
}

unsigned rock_samples_follow(enum rock_type type, uint64_t filter, struct rock_follow *out)
{
	struct out o = {out, 0};

	if (type == TYPE_INSTR) /* user level at trap level 0 */
		return (filter & 9) == 9 ? (put(&o, QUIPU_SIGNAL_LABELLED, 1, false), o.n) : 0;
	if (type == TYPE_L2 && (filter >> 3 & ALL_TXN) == ALL_TXN)
		put(&o, QUIPU_SIGNAL_L2_TRANSACTIONS, 1, false);
	else if (type == TYPE_L2)
		follow_labels((unsigned)(filter >> 3) & ALL_TXN, &o);
	else
		follow_mmu(filter, &o);
	return o.n;
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
		put(&o, sod_signal(type), 1, false);
	else if (filter & QUIPU_ROCK_USER)
		put(&o, type == TYPE_CYC ? QUIPU_SIGNAL_CYCLES : QUIPU_SIGNAL_INSTRUCTIONS, 1,
		    false);
	if (missing)
		*missing = why;
	return o.n;
}
