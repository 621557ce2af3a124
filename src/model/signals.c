/* SPDX-License-Identifier: BSD-2-Clause */
/* Which signals the models of a machine count (quipu/model.h). */
#include <quipu/model.h>

quipu_signal quipu_model_alias(quipu_signal signal)
{
	switch (signal) {
	case QUIPU_SIGNAL_L1D_READS:
	case QUIPU_SIGNAL_DTLB_READS: return QUIPU_SIGNAL_LOADS;
	case QUIPU_SIGNAL_L1D_WRITES:
	case QUIPU_SIGNAL_DTLB_WRITES: return QUIPU_SIGNAL_STORES;
	case QUIPU_SIGNAL_L1I_ACCESSES: /* a fetch for each instruction */
	case QUIPU_SIGNAL_ITLB_ACCESSES: return QUIPU_SIGNAL_INSTRUCTIONS;
	}
	return signal;
}

bool quipu_model_counts(const struct quipu_model *m, quipu_signal signal)
{
	bool beyond = m->l2.sets || m->l3.sets; /* there is a last level that is not the first */

	switch (signal) {
	case QUIPU_SIGNAL_BRANCH_MISSES:
	case QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES:
	case QUIPU_SIGNAL_BRANCH_TARGET_MISSES:
	case QUIPU_SIGNAL_RETURN_MISSES: return m->counters;
	case QUIPU_SIGNAL_L1I_ACCESSES:
	case QUIPU_SIGNAL_L1I_MISSES: return m->l1i.sets;
	case QUIPU_SIGNAL_L1D_READS:
	case QUIPU_SIGNAL_L1D_READ_MISSES:
	case QUIPU_SIGNAL_L1D_WRITES:
	case QUIPU_SIGNAL_L1D_WRITE_MISSES:
	case QUIPU_SIGNAL_L1D_WRITEBACKS:
	case QUIPU_SIGNAL_MARKED_LOADS:
	case QUIPU_SIGNAL_MARKED_STORES:
	case QUIPU_SIGNAL_MEM_READ_LINES:
	case QUIPU_SIGNAL_MEM_WRITE_LINES: return m->l1d.sets;
	case QUIPU_SIGNAL_L2_READS:
	case QUIPU_SIGNAL_L2_READ_MISSES:
	case QUIPU_SIGNAL_L2_WRITES:
	case QUIPU_SIGNAL_L2_WRITE_MISSES: return m->l1d.sets && m->l2.sets;
	case QUIPU_SIGNAL_LL_READS:
	case QUIPU_SIGNAL_LL_READ_MISSES:
	case QUIPU_SIGNAL_LL_WRITES:
	case QUIPU_SIGNAL_LL_WRITE_MISSES: return m->l1d.sets && beyond;
	case QUIPU_SIGNAL_LOADS_FROM_L2:
	case QUIPU_SIGNAL_LOADS_BEYOND_L2: return m->l1d.sets && m->l2.sets;
	case QUIPU_SIGNAL_LOADS_FROM_L3: return m->l1d.sets && m->l3.sets;
	case QUIPU_SIGNAL_LOADS_FROM_MEMORY: return m->l1d.sets;
	case QUIPU_SIGNAL_FETCHES_FROM_L2: return m->l1i.sets && m->l2.sets;
	case QUIPU_SIGNAL_FETCHES_FROM_L3: return m->l1i.sets && m->l3.sets;
	case QUIPU_SIGNAL_FETCHES_FROM_MEMORY: return m->l1i.sets;
	case QUIPU_SIGNAL_FETCH_WALKS:
	case QUIPU_SIGNAL_ITLB_ACCESSES:
	case QUIPU_SIGNAL_ITLB_MISSES: return m->itlb.sets;
	case QUIPU_SIGNAL_WALKS: return m->itlb.sets && m->dtlb.sets;
	case QUIPU_SIGNAL_DTLB_MISSES:
	case QUIPU_SIGNAL_DATA_WALKS:
	case QUIPU_SIGNAL_DTLB_READS:
	case QUIPU_SIGNAL_DTLB_READ_MISSES:
	case QUIPU_SIGNAL_DTLB_WRITES:
	case QUIPU_SIGNAL_DTLB_WRITE_MISSES: return m->dtlb.sets;
	case QUIPU_SIGNAL_STLB_ACCESSES:
	case QUIPU_SIGNAL_STLB_MISSES: return m->stlb.sets;
	case QUIPU_SIGNAL_STALL_FRONTEND:
	case QUIPU_SIGNAL_STALL_BACKEND: return m->full;
	}
	if (signal >= QUIPU_SIGNAL_LABELLED && signal <= QUIPU_SIGNAL_L2_TRANSACTION_LAST)
		return m->l1d.sets && m->l1i.sets && m->l2.sets && m->counters;
	if (!m->l1d.sets || signal < QUIPU_SIGNAL_PORT_READ_LINES ||
	    signal > QUIPU_SIGNAL_PAIR_LAST)
		return false;
	if (signal < QUIPU_SIGNAL_PAIR_READ_LINES)
		return (signal - QUIPU_SIGNAL_PORT_READ_LINES) % QUIPU_MODEL_PORTS < m->ports;
	return (signal - QUIPU_SIGNAL_PAIR_READ_LINES) % (QUIPU_MODEL_PORTS / 2) < m->ports / 2;
}
