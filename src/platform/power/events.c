/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the POWER9 core PMU: power-cpu sheet sections 4 and 6; codes of Linux 6.12
 * arch/powerpc/perf/power9-pmu.c and power9-events-list.h.
 *
 * Loads and stores count what completed; on silicon the same events see some that were speculated.
 * Not in the table, and so refused rather than counted wrongly: events of several signals at once
 * (PURR, shares of a stall), of states that no model here has (transactions, failed stores
 * conditional, thresholds), and dispatches of L2 and L3.
 */
#include "platform/power/events.h"

#include <errno.h>

#include <quipu/attr.h>
#include <quipu/bits.h>

#define OF(class) QUIPU_CLASS_BIT(QUIPU_INSN_##class)
#define S(name)	  QUIPU_SIGNAL_##name
/* exact: architectural; MODEL: by a declared model, or by how this machine completes; ZERO: never
 */
#define ROW(name, code, signal, desc)                                                              \
	{                                                                                          \
		name, 0x##code, signal, QUIPU_SIGNAL_NONE, QUIPU_EXACT, desc                       \
	}
#define MODEL(name, code, signal, desc)                                                            \
	{                                                                                          \
		name, 0x##code, signal, QUIPU_SIGNAL_NONE, QUIPU_MODELLED, desc                    \
	}
#define LESS(name, code, signal, minus, desc)                                                      \
	{                                                                                          \
		name, 0x##code, signal, minus, QUIPU_MODELLED, desc                                \
	}
#define ZERO(name, code, desc)                                                                     \
	{                                                                                          \
		name, 0x##code, QUIPU_SIGNAL_NONE, QUIPU_SIGNAL_NONE, QUIPU_EXACT, desc            \
	}

const struct power_event power_events[] = {
	ROW("PM_INST_CMPL", 2, S(INSTRUCTIONS), "instructions completed"),
	ROW("PM_RUN_INST_CMPL", 500fa, S(INSTRUCTIONS), "instructions completed while a task runs"),
	ROW("PM_RUN_INST_CMPL", 400fa, S(INSTRUCTIONS), "instructions completed while a task runs"),
	MODEL("PM_CYC", 1e, S(CYCLES), "cycles"),
	MODEL("PM_RUN_CYC", 600f4, S(CYCLES), "cycles while a task runs"),
	MODEL("PM_RUN_CYC", 200f4, S(CYCLES), "cycles while a task runs"),
	MODEL("PM_INST_DISP", 200f2, S(INSTRUCTIONS),
	      "instructions dispatched: nothing is speculated here"),
	MODEL("PM_INST_DISP", 300f2, S(INSTRUCTIONS),
	      "instructions dispatched: nothing is speculated here"),
	MODEL("PM_1PLUS_PPC_CMPL", 100f2, S(INSTRUCTIONS),
	      "cycles with a completion: one instruction completes in a cycle here"),
	ROW("PM_BR_CMPL", 4d05e, S(BRANCHES), "branches completed"),
	ROW("PM_BR_TAKEN_CMPL", 200fa, S(BRANCHES_TAKEN), "taken branches"),
	ROW("PM_BR_UNCOND", 40a0, QUIPU_SIGNAL_OF(OF(JUMP) | OF(CALL)),
	    "unconditional direct branches"),
	ROW("PM_BR_PRED_CCACHE", 40a4, QUIPU_SIGNAL_OF(OF(IJUMP) | OF(ICALL)),
	    "branches to the count register"),
	ROW("PM_BR_PRED_LSTACK", 40a8, S(RETURNS), "returns"),
	MODEL("PM_BR_MPRED_CMPL", 400f6, S(BRANCH_MISSES), "mispredicted branches"),
	MODEL("PM_FLUSH_MPRED", 50a4, S(BRANCH_MISSES), "flushes by mispredicted branches"),
	MODEL("PM_BR_MPRED_LSTACK", 48ac, S(RETURN_MISSES), "mispredicted returns"),
	LESS("PM_BR_MPRED_CCACHE", 40ac, S(BRANCH_TARGET_MISSES), S(RETURN_MISSES),
	     "mispredicted branches to the count register"),
	ROW("PM_LD_CMPL", 4003e, S(LOADS), "loads completed"),
	ROW("PM_LD_REF_L1", 100fc, S(LOADS),
	    "loads that looked into L1 (not last-level references)"),
	ROW("PM_ST_CMPL", 200f0, S(STORES), "stores completed"),
	ROW("PM_ST_FIN", 20016, S(STORES), "stores finished"),
	MODEL("PM_LD_MISS_L1_FIN", 2c04e, S(L1D_READ_MISSES), "loads that missed L1"),
	MODEL("PM_LD_MISS_L1", 3e054, S(L1D_READ_MISSES), "loads that missed L1"),
	MODEL("PM_LD_MISS_L1", 400f0, S(L1D_READ_MISSES), "loads that missed L1"),
	MODEL("PM_ST_MISS_L1", 300f0, S(L1D_WRITE_MISSES), "stores that missed L1"),
	MODEL("PM_L1_DCACHE_RELOAD_VALID", 300f6, S(L1D_READ_MISSES),
	      "lines brought into L1 for loads"),
	MODEL("PM_DATA_FROM_L2", 1c042, S(LOADS_FROM_L2), "loads that the core's own L2 served"),
	MODEL("PM_DATA_FROM_L2MISS", 200fe, S(LOADS_BEYOND_L2), "loads that missed L2"),
	MODEL("PM_DATA_FROM_L3", 4c042, S(LOADS_FROM_L3), "loads that the core's own L3 served"),
	MODEL("PM_DATA_FROM_L3MISS", 300fe, S(LOADS_FROM_MEMORY), "loads that missed L3"),
	MODEL("PM_DATA_FROM_MEMORY", 400fe, S(LOADS_FROM_MEMORY), "loads that memory served"),
	MODEL("PM_DATA_FROM_LMEM", 2c048, S(LOADS_FROM_MEMORY),
	      "loads that the chip's own memory served"),
	ZERO("PM_DATA_FROM_RMEM", 3c04a,
	     "loads that another chip's memory served: pages lie with the program"),
	LESS("PM_INST_FROM_L1", 4080, S(INSTRUCTIONS), S(L1I_MISSES),
	     "instruction fetches that L1 served"),
	MODEL("PM_L1_ICACHE_MISS", 200fd, S(L1I_MISSES), "instruction fetches that missed L1"),
	MODEL("PM_L1_DEMAND_WRITE", 408c, S(L1I_MISSES),
	      "lines brought into the instruction cache"),
	MODEL("PM_INST_FROM_L2", 14042, S(FETCHES_FROM_L2),
	      "fetches that the core's own L2 served"),
	MODEL("PM_INST_FROM_L3", 44042, S(FETCHES_FROM_L3),
	      "fetches that the core's own L3 served"),
	MODEL("PM_INST_FROM_L3MISS", 300fa, S(FETCHES_FROM_MEMORY), "fetches that missed L3"),
	MODEL("PM_INST_FROM_MEMORY", 2404c, S(FETCHES_FROM_MEMORY), "fetches that memory served"),
	MODEL("PM_DTLB_MISS", 300fc, S(DATA_WALKS), "translations of data that no TLB had"),
	MODEL("PM_ITLB_MISS", 400fc, S(FETCH_WALKS),
	      "translations of instructions that no TLB had"),
	MODEL("PM_TLB_MISS", 20066, S(WALKS), "translations that no TLB had"),
	MODEL("PM_LSU_DERAT_MISS", 200f6, S(DTLB_MISSES), "first-level data translation misses"),
	MODEL("PM_IERAT_RELOAD", 100f6, S(ITLB_MISSES),
	      "first-level instruction translation misses"),
	MODEL("PM_CMPLU_STALL", 1e054, S(STALL_BACKEND), "cycles stalled with work in flight"),
	MODEL("PM_ICT_NOSLOT_CYC", 100f8, S(STALL_FRONTEND),
	      "cycles with nothing to complete: mispredictions, fetch misses"),
	MODEL("PM_HV_CYC", 2000a, S(CYCLES), "cycles with MSR[HV] set: on bare metal all"),
	ROW("PM_LARX_FIN", 3c058, QUIPU_SIGNAL_OF(OF(LR)), "load-and-reserve instructions"),
	ROW("PM_STCX_FIN", 2e014, QUIPU_SIGNAL_OF(OF(SC)), "store-conditional instructions"),
	MODEL("PM_FLOP_CMPL", 4505e, QUIPU_SIGNAL_OF(OF(FADD) | OF(FMUL) | OF(FMA) | OF(FDIV)),
	      "floating-point arithmetic instructions"),
	/* loads or stores alone where MMCRA makes them eligible: hardware.c */
	MODEL("PM_MRK_INST_CMPL", 400e0, S(INSTRUCTIONS),
	      "marked instructions: all that are eligible"),
	ZERO("PM_L1_PREF", 20054, "L1 prefetches: there is no prefetcher"),
	ZERO("PM_IC_PREF_WRITE", 488c, "instruction prefetches: there is no prefetcher"),
	ZERO("PM_L3_PREF_ALL", 4e052, "L3 prefetches: there is no prefetcher"),
	ZERO("PM_EXT_INT", 200f8, "external interrupts: none are taken"),
	ZERO("PM_SUSPENDED", 0, "counter off"),
	{NULL},
};

const struct power_file power_files[] = {
	{"cpu-cycles", 0x1e},
	{"instructions", 0x2},
	{"cache-references", 0x100fc},
	{"cache-misses", 0x2c04e},
	{"branch-instructions", 0x4d05e},
	{"branch-misses", 0x400f6},
	{"stalled-cycles-frontend", 0x100f8},
	{"stalled-cycles-backend", 0x1e054},
	{"mem-loads", UINT64_C(0x34340401e0)},
	{"mem-stores", UINT64_C(0x343c0401e0)},
	{"L1-dcache-load-misses", 0x2c04e},
	{"L1-dcache-loads", 0x100fc},
	{"L1-dcache-prefetches", 0x20054},
	{"L1-dcache-store-misses", 0x300f0},
	{"L1-icache-load-misses", 0x200fd},
	{"L1-icache-loads", 0x4080},
	{"L1-icache-prefetches", 0x488c},
	{"LLC-load-misses", 0x300fe},
	{"LLC-loads", 0x4c042},
	{"LLC-prefetches", 0x4e052},
	{"branch-load-misses", 0x400f6},
	{"branch-loads", 0x4d05e},
	{"dTLB-load-misses", 0x300fc},
	{"iTLB-load-misses", 0x400fc},
	{NULL, 0},
};

const struct power_event *power_event_by_selection(unsigned pmc, unsigned unit, unsigned combine,
						   unsigned pmcxsel)
{
	uint64_t key = pmcxsel | combine << 10 | unit << 12;

	for (const struct power_event *e = power_events; e->name; e++) {
		uint64_t own = bits_get(e->code, POWER_PMC);

		if ((!own || own == pmc) && (e->code & 0xfcff) == key)
			return e;
	}
	return NULL;
}

const struct power_event *power_event_by_code(uint64_t code)
{
	uint64_t own = bits_get(code, POWER_PMC);

	for (const struct power_event *e = power_events; e->name; e++)
		if (bits_get(e->code, POWER_PMC) == own && (e->code & 0xfcff) == (code & 0xfcff))
			return e;
	return NULL;
}

int power_hardware_code(uint64_t config, uint64_t *code)
{
	static const uint64_t codes[] = {0x1e,	  0x2, 0x100fc, 0x2c04e, 0x4d05e,
					 0x400f6, 0,   0x100f8, 0x1e054};

	if (config >= sizeof(codes) / sizeof(codes[0]) || !codes[config])
		return -EOPNOTSUPP;
	*code = codes[config];
	return 0;
}

int power_cache_code(uint64_t config, uint64_t *code)
{
	static const int32_t codes[7][3][2] = {
		{{0x100fc, 0x2c04e}, {0, 0x300f0}, {0x20054, 0}},
		{{0x4080, 0x200fd}, {0x408c, -1}, {0x488c, 0}},
		{{0x4c042, 0x300fe}, {0, 0}, {0x4e052, 0}},
		{{0, 0x300fc}, {-1, -1}, {-1, -1}},
		{{0, 0x400fc}, {-1, -1}, {-1, -1}},
		{{0x4d05e, 0x400f6}, {-1, -1}, {-1, -1}},
		{{-1, -1}, {-1, -1}, {-1, -1}},
	};
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;
	int32_t c;

	if (cache >= 7 || op >= 3 || result >= 2)
		return -EINVAL;
	c = codes[cache][op][result];
	if (c <= 0)
		return c ? -EINVAL : -EOPNOTSUPP;
	*code = (uint64_t)c;
	return 0;
}

bool power_blacklisted(uint32_t pvr, uint64_t code)
{
	static const uint32_t dd21[] = {0x10134, 0x1f056, 0x100f4, 0x20112, 0x2d024, 0x3405e,
					0x3e15c, 0x3f056, 0x3006c, 0x4e014, 0x4003c, 0};
	static const uint32_t dd22[] = {0x1c058, 0x1c05a, 0x1c05c, 0x1d15c, 0x2c056, 0x2c05a,
					0x2d152, 0x2d156, 0x2d15e, 0x3c056, 0x3d152, 0x3d156,
					0x4003c, 0x4c056, 0x4c05a, 0x4c15e, 0};
	const uint32_t *list = NULL;

	if (!(pvr & 0x2000) && (pvr >> 8 & 0xf) == 2)
		list = (pvr & 0xf) == 1 ? dd21 : (pvr & 0xf) == 2 ? dd22 : NULL;
	for (; list && *list; list++)
		if (*list == code)
			return true;
	return false;
}
