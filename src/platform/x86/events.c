/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the modelled x86-64 PMU. The seven architectural events have the codes of the SDM,
 * volume 3B, table 20-1; retired loads, stores and branches have the codes that Intel's cores since
 * Skylake use for them; everything else (from event 0xe0 on, and the caches and TLBs) is this
 * model's own numbering.
 */
#include "platform/x86/events.h"

#include <stddef.h>

#define OF(class) QUIPU_SIGNAL_OF(QUIPU_CLASS_BIT(QUIPU_INSN_##class))
#define NONE	  X86_FIXED_NONE

const struct x86_event x86_events[] = {
	{"instructions", X86_CODE(0xc0, 0x00), 0, QUIPU_SIGNAL_INSTRUCTIONS,
	 "instructions retired; a rep counts once"},
	{"cpu-cycles", X86_CODE(0x3c, 0x00), 1, QUIPU_SIGNAL_CYCLES,
	 "cycles, from the cost of each instruction class"},
	{"ref-cycles", X86_CODE(0x00, 0x03), 2, QUIPU_SIGNAL_REF_CYCLES,
	 "cycles of the reference clock"},
	{"bus-cycles", X86_CODE(0x3c, 0x01), NONE, QUIPU_SIGNAL_BUS_CYCLES,
	 "cycles of the bus clock"},
	{"cache-references", X86_CODE(0x2e, 0x4f), NONE, QUIPU_SIGNAL_LL_READS,
	 "reads of the last-level cache"},
	{"cache-misses", X86_CODE(0x2e, 0x41), NONE, QUIPU_SIGNAL_LL_READ_MISSES,
	 "reads that missed the last-level cache"},
	{"branch-instructions", X86_CODE(0xc4, 0x00), NONE, QUIPU_SIGNAL_BRANCHES,
	 "control transfers retired"},
	{"branch-misses", X86_CODE(0xc5, 0x00), NONE, QUIPU_SIGNAL_BRANCH_MISSES,
	 "mispredicted branches"},

	{"mem-loads", X86_CODE(0xd0, 0x81), NONE, QUIPU_SIGNAL_LOADS, "instructions that load"},
	{"mem-stores", X86_CODE(0xd0, 0x82), NONE, QUIPU_SIGNAL_STORES, "instructions that store"},
	{"br-conditional", X86_CODE(0xc4, 0x11), NONE, OF(BRANCH), "conditional branches"},
	{"br-call", X86_CODE(0xc4, 0x02), NONE, QUIPU_SIGNAL_CALLS, "calls"},
	{"br-return", X86_CODE(0xc4, 0x08), NONE, QUIPU_SIGNAL_RETURNS, "returns"},
	{"br-taken", X86_CODE(0xc4, 0x20), NONE, QUIPU_SIGNAL_BRANCHES_TAKEN,
	 "branches that went elsewhere"},
	{"br-indirect", X86_CODE(0xc4, 0x80), NONE,
	 QUIPU_SIGNAL_OF(QUIPU_CLASS_BIT(QUIPU_INSN_IJUMP) | QUIPU_CLASS_BIT(QUIPU_INSN_ICALL)),
	 "indirect jumps and calls"},

	{"mul", X86_CODE(0xe0, 0x01), NONE, OF(MUL), "integer multiplications"},
	{"div", X86_CODE(0xe0, 0x02), NONE, OF(DIV), "integer divisions"},
	{"atomic", X86_CODE(0xe0, 0x04), NONE, OF(AMO), "locked instructions"},
	{"fp-add", X86_CODE(0xe1, 0x01), NONE, OF(FADD),
	 "floating-point additions, scalar or packed"},
	{"fp-mul", X86_CODE(0xe1, 0x02), NONE, OF(FMUL), "floating-point multiplications"},
	{"fp-fma", X86_CODE(0xe1, 0x04), NONE, OF(FMA), "fused multiply-adds"},
	{"fp-div", X86_CODE(0xe1, 0x08), NONE, OF(FDIV), "floating-point divisions and roots"},
	{"vector", X86_CODE(0xe1, 0x10), NONE, OF(VECTOR), "integer vector instructions"},
	{"syscalls", X86_CODE(0xe2, 0x01), NONE, QUIPU_SIGNAL_SYSCALLS, "system calls"},

	{"l1d-reads", X86_CODE(0xe4, 0x01), NONE, QUIPU_SIGNAL_L1D_READS, "L1 data cache reads"},
	{"l1d-read-misses", X86_CODE(0xe4, 0x02), NONE, QUIPU_SIGNAL_L1D_READ_MISSES,
	 "L1 data cache read misses"},
	{"l1d-writes", X86_CODE(0xe4, 0x04), NONE, QUIPU_SIGNAL_L1D_WRITES, "L1 data cache writes"},
	{"l1d-write-misses", X86_CODE(0xe4, 0x08), NONE, QUIPU_SIGNAL_L1D_WRITE_MISSES,
	 "L1 data cache write misses"},
	{"l1i-reads", X86_CODE(0xe5, 0x01), NONE, QUIPU_SIGNAL_L1I_ACCESSES,
	 "L1 instruction cache reads"},
	{"l1i-read-misses", X86_CODE(0xe5, 0x02), NONE, QUIPU_SIGNAL_L1I_MISSES,
	 "L1 instruction cache misses"},
	{"llc-writes", X86_CODE(0xe6, 0x04), NONE, QUIPU_SIGNAL_LL_WRITES,
	 "writes of the last-level cache"},
	{"llc-write-misses", X86_CODE(0xe6, 0x08), NONE, QUIPU_SIGNAL_LL_WRITE_MISSES,
	 "writes that missed it"},
	{"dtlb-reads", X86_CODE(0xe7, 0x01), NONE, QUIPU_SIGNAL_DTLB_READS,
	 "data TLB lookups of loads"},
	{"dtlb-read-misses", X86_CODE(0xe7, 0x02), NONE, QUIPU_SIGNAL_DTLB_READ_MISSES,
	 "those that missed"},
	{"dtlb-writes", X86_CODE(0xe7, 0x04), NONE, QUIPU_SIGNAL_DTLB_WRITES,
	 "data TLB lookups of stores"},
	{"dtlb-write-misses", X86_CODE(0xe7, 0x08), NONE, QUIPU_SIGNAL_DTLB_WRITE_MISSES,
	 "those that missed"},
	{"itlb-reads", X86_CODE(0xe8, 0x01), NONE, QUIPU_SIGNAL_ITLB_ACCESSES,
	 "instruction TLB lookups"},
	{"itlb-read-misses", X86_CODE(0xe8, 0x02), NONE, QUIPU_SIGNAL_ITLB_MISSES,
	 "those that missed"},
	{"stalls-frontend", X86_CODE(0xe9, 0x01), NONE, QUIPU_SIGNAL_STALL_FRONTEND,
	 "cycles without instructions"},
	{"stalls-backend", X86_CODE(0xe9, 0x02), NONE, QUIPU_SIGNAL_STALL_BACKEND,
	 "cycles waiting for memory"},
};
const unsigned x86_nevents = sizeof(x86_events) / sizeof(x86_events[0]);

const struct x86_event *x86_event_by_code(uint16_t code)
{
	for (unsigned i = 0; i < x86_nevents; i++)
		if (x86_events[i].code == code)
			return &x86_events[i];
	return NULL;
}

const struct x86_event *x86_event_by_signal(quipu_signal signal)
{
	for (unsigned i = 0; i < x86_nevents; i++)
		if (x86_events[i].signal == signal)
			return &x86_events[i];
	return NULL;
}

const struct x86_event *x86_event_hardware(uint64_t config)
{
	static const quipu_signal generic[PERF_COUNT_HW_MAX] = {
		[PERF_COUNT_HW_CPU_CYCLES] = QUIPU_SIGNAL_CYCLES,
		[PERF_COUNT_HW_INSTRUCTIONS] = QUIPU_SIGNAL_INSTRUCTIONS,
		[PERF_COUNT_HW_CACHE_REFERENCES] = QUIPU_SIGNAL_LL_READS,
		[PERF_COUNT_HW_CACHE_MISSES] = QUIPU_SIGNAL_LL_READ_MISSES,
		[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = QUIPU_SIGNAL_BRANCHES,
		[PERF_COUNT_HW_BRANCH_MISSES] = QUIPU_SIGNAL_BRANCH_MISSES,
		[PERF_COUNT_HW_BUS_CYCLES] = QUIPU_SIGNAL_BUS_CYCLES,
		[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = QUIPU_SIGNAL_STALL_FRONTEND,
		[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = QUIPU_SIGNAL_STALL_BACKEND,
		[PERF_COUNT_HW_REF_CPU_CYCLES] = QUIPU_SIGNAL_REF_CYCLES,
	};

	return config < PERF_COUNT_HW_MAX ? x86_event_by_signal(generic[config]) : NULL;
}

const struct x86_event *x86_event_cache(uint64_t config)
{
#define ROW(cache, op, access, miss)                                                               \
	[PERF_COUNT_HW_CACHE_##cache][PERF_COUNT_HW_CACHE_OP_##op] = {                             \
		QUIPU_SIGNAL_##access,                                                             \
		QUIPU_SIGNAL_##miss                                                                \
	}
	static const quipu_signal generic[PERF_COUNT_HW_CACHE_MAX][PERF_COUNT_HW_CACHE_OP_MAX]
					 [PERF_COUNT_HW_CACHE_RESULT_MAX] = {
						 ROW(L1D, READ, L1D_READS, L1D_READ_MISSES),
						 ROW(L1D, WRITE, L1D_WRITES, L1D_WRITE_MISSES),
						 ROW(L1I, READ, L1I_ACCESSES, L1I_MISSES),
						 ROW(LL, READ, LL_READS, LL_READ_MISSES),
						 ROW(LL, WRITE, LL_WRITES, LL_WRITE_MISSES),
						 ROW(DTLB, READ, DTLB_READS, DTLB_READ_MISSES),
						 ROW(DTLB, WRITE, DTLB_WRITES, DTLB_WRITE_MISSES),
						 ROW(ITLB, READ, ITLB_ACCESSES, ITLB_MISSES),
						 ROW(BPU, READ, BRANCHES, BRANCH_MISSES),
					 };
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16;
	quipu_signal signal;

	if (cache >= PERF_COUNT_HW_CACHE_MAX || op >= PERF_COUNT_HW_CACHE_OP_MAX ||
	    result >= PERF_COUNT_HW_CACHE_RESULT_MAX)
		return NULL;
	signal = generic[cache][op][result];
	return signal ? x86_event_by_signal(signal) : NULL;
}
