/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What moves each event of POWER9 in-memory collection, by the unit's kind and the event's name:
 * IMC sheet 1.9 to 1.11 and 5.1. A catalog decides where an event lies and what it is called; this
 * table only what counts it, so that a real catalog with other offsets needs no change here.
 *
 * Not modelled, and said so: whatever would need a store of state that no model here has
 * (transactions, pumps that were mispredicted, page table entries by source, the two kinds of
 * sync).
 */
#include "platform/imc/events.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define OF(class) QUIPU_CLASS_BIT(QUIPU_INSN_##class)
#define FLOP	  QUIPU_SIGNAL_OF(OF(FADD) | OF(FMUL) | OF(FMA) | OF(FDIV))
#define SIG(name, signal, desc)                                                                    \
	{                                                                                          \
		name, IMC_SIGNAL, QUIPU_SIGNAL_##signal, 0, desc                                   \
	}
/* A signal that stands for what this machine's simple order of things makes equal to it. */
#define STANDS(name, signal, desc)                                                                 \
	{                                                                                          \
		name, IMC_SIGNAL, QUIPU_SIGNAL_##signal, 1, desc                                   \
	}
#define IS(name, kind, arg, desc)                                                                  \
	{                                                                                          \
		name, IMC_##kind, QUIPU_SIGNAL_NONE, arg, desc                                     \
	}
#define ZERO(name, desc)                                                                           \
	{                                                                                          \
		name, IMC_ZERO, QUIPU_SIGNAL_NONE, 0, desc                                         \
	}

static const struct imc_source not_modelled = {NULL, IMC_NOT_MODELLED, QUIPU_SIGNAL_NONE, 0, NULL};
static const struct imc_source never = {NULL, IMC_ZERO, QUIPU_SIGNAL_NONE, 0, NULL};

/* core and thread; names with the variants _USER and _KERNEL taken off */
static const struct imc_source core_sources[] = {
	IS("PCYC", TC, 0, "core clock cycles, once for each thread, idle or not"),
	SIG("INST", INSTRUCTIONS, "instructions completed"),
	SIG("NON_IDLE_INST", INSTRUCTIONS, "instructions completed while a task runs"),
	IS("NON_IDLE_PCYC", RC, 0, "cycles of threads that run a task"),
	IS("ANY_THRD_NON_IDLE_PCYC", NANY, 0,
	   "core cycles with at least one thread running a task"),
	IS("CORE_ALL_THRD_NON_IDLE_PCYC", NALL, 0, "core cycles with all threads running a task"),
	IS("CCYC", T32, 0, "32 MHz ticks"),
	IS("32MHZ_CYC", T32, 0, "32 MHz ticks"),
	IS("0THRD_NON_IDLE_PCYC", NK, 0, "core cycles with no thread running a task"),
	IS("1THRD_NON_IDLE_PCYC", NK, 1, "core cycles with exactly one thread running a task"),
	IS("2THRD_NON_IDLE_PCYC", NK, 2, "core cycles with exactly two threads running a task"),
	IS("3THRD_NON_IDLE_PCYC", NK, 3, "core cycles with exactly three threads running a task"),
	IS("4THRD_NON_IDLE_PCYC", NK, 4, "core cycles with exactly four threads running a task"),
	IS("1THRD_NON_IDLE_INST", IK, 1,
	   "instructions completed while exactly one thread runs a task"),
	IS("2THRD_NON_IDLE_INST", IK, 2,
	   "instructions completed while exactly two threads run a task"),
	IS("3THRD_NON_IDLE_INST", IK, 3,
	   "instructions completed while exactly three threads run a task"),
	IS("4THRD_NON_IDLE_INST", IK, 4,
	   "instructions completed while exactly four threads run a task"),
	ZERO("TLB_RELOAD_L2", "page walks served by L2: walks go past the caches in this model"),
	ZERO("TLB_RELOAD_L3", "page walks served by L3: walks go past the caches in this model"),
	IS("THREAD_NAP_STATE_SAVE_CCYC", IDL, 0, "32 MHz ticks of idle threads"),
	ZERO("THREAD_NAP_STATE_LOSS_CCYC", "idle threads keep their state here"),
	SIG("L2L3_NODAL_PB_REQ", MEM_READ_LINES, "L3 misses served by this chip's memory"),
	ZERO("L2L3_GROUP_PB_REQ", "L3 misses served by the other chip: pages lie with the program"),
	ZERO("L2L3_SYS_PB_REQ", "L3 misses served farther away: there is nothing farther"),
	{"STCX_FIN", IMC_SIGNAL, QUIPU_SIGNAL_OF(OF(SC)), 0, "store-conditional instructions"},
	{"LARX_FIN", IMC_SIGNAL, QUIPU_SIGNAL_OF(OF(LR)), 0, "load-and-reserve instructions"},
	IS("BUS_PUMP_NON_FABRIC_OP", OWN_CACHES, 0,
	   "misses of level 1 that the core's own L2 or L3 served"),
	ZERO("BUS_PUMP_SYSTEM_CORRECT_PRED", "requests that went to the whole system"),
	ZERO("BUS_PUMP_GROUP_CORRECT_PRED", "requests that the other chip serves"),
	SIG("BUS_PUMP_CHIP_CORRECT_PRED", MEM_READ_LINES,
	    "requests that this chip's memory serves"),
	ZERO("MSR_PRIV_INST", "instructions of guest kernels: there are none"),
	ZERO("MSR_PRIV_PCYC", "cycles of guest kernels: there are none"),
	ZERO("MSR_PROB_INST", "instructions of guest programs: there are none"),
	ZERO("MSR_PROB_PCYC", "cycles of guest programs: there are none"),
	ZERO("MSR_HV_INST", "instructions of the host's kernel: not run here"),
	ZERO("MSR_HV_PCYC", "cycles of the host's kernel: not run here"),
	SIG("MSR_AJUNCT_INST", INSTRUCTIONS, "instructions of the host's programs"),
	IS("MSR_ADJUNCT_PCYC", RC, 0, "cycles of the host's programs"),
	ZERO("MSR_TA_LIC_INST", "instructions of the kernel: not run here"),
	ZERO("MSR_TA_LIC_PCYC", "cycles of the kernel: not run here"),
	SIG("MSR_TA_SYSTEM_INST", INSTRUCTIONS, "instructions of programs"),
	IS("MSR_TA_SYS_PCYC", RC, 0, "cycles of programs"),
	ZERO("MSR_TA_USER_INST", "instructions in tags-active user state: never entered"),
	ZERO("MSR_TA_USER_PCYC", "cycles in tags-active user state: never entered"),
	IS("CS_PCYC", TC, 0, "core clock cycles, once for each thread"),
	SIG("CS_INST", INSTRUCTIONS, "instructions completed"),
	IS("CS_CORE_MODE_ST_CCYC", SMT, 0, "32 MHz ticks in single-thread mode"),
	IS("CS_CORE_MODE_SMT2_CCYC", SMT, 1, "32 MHz ticks in SMT2 mode"),
	IS("CS_CORE_MODE_SMT4_CCYC", SMT, 2, "32 MHz ticks in SMT4 mode"),
	IS("SMT_MODE_SWITCH", SWITCHES, 0, "changes of the SMT mode"),
	IS("CS_CORE_PCYC", CC, 0, "core clock cycles"),
	IS("CS_32MHZ_CYC", T32, 0, "32 MHz ticks"),
	IS("CS_SPURR", PURR, 0,
	   "timebase ticks, shared among the running threads, at the nominal frequency"),
	IS("CS_PURR", PURR, 0, "timebase ticks, shared among the running threads"),
	{"CS_FLOP", IMC_SIGNAL, FLOP, 0, "floating-point arithmetic instructions"},
	SIG("CS_BRU_CMPL", BRANCHES, "branches"),
	SIG("CS_BR_MPRED", BRANCH_MISSES, "mispredicted branches"),
	SIG("CS_BR_TAKEN", BRANCHES_TAKEN, "taken branches"),
	STANDS("CS_PPC_DISP", INSTRUCTIONS, "instructions dispatched: nothing is speculated here"),
	SIG("CS_FLUSH", BRANCH_MISSES, "flushes: mispredicted branches"),
	SIG("CS_CORE_ICT_EMPTY_PCYC", STALL_FRONTEND,
	    "cycles with nothing to complete: mispredictions, fetch misses"),
	IS("CS_DATA_TABLEWALK_PCYC", WALK_CYCLES, 0, "cycles of page walks for data"),
	STANDS("CS_1PLUS_PPC_CMPL", INSTRUCTIONS,
	       "cycles with a completion: one instruction completes in a cycle here"),
	IS("CS_CMPLU_STALL_PCYC", STALLED, 0, "cycles of running threads without a completion"),
	SIG("CS_L1_MISS_IFETCH", L1I_MISSES, "instruction fetches that missed L1"),
	IS("CS_IFETCH_DEMAND_PCYC", FETCH_CYCLES, 0,
	   "cycles that instruction fetches wait for the level that serves them"),
	SIG("CS_FROM_L2_IFETCH", FETCHES_FROM_L2, "fetches that the core's own L2 served"),
	SIG("CS_FROM_L3_IFETCH", FETCHES_FROM_L3, "fetches that the core's own L3 served"),
	SIG("CS_FROM_MEM_IFETCH", FETCHES_FROM_MEMORY, "fetches that this chip's memory served"),
	ZERO("CS_FROM_L4_MEM_X_IFETCH",
	     "fetches that the other chip's memory served: pages lie with the program"),
	ZERO("CS_FROM_L4_IFETCH", "fetches served by an L4: there is none"),
	ZERO("CS_FROM_L2_L3_A_IFETCH", "fetches served by a cache of another group: there is none"),
	ZERO("CS_FROM_L4_MEM_A_IFETCH", "fetches served by memory of another group: there is none"),
	SIG("CS_MISS_L1_LDATA", L1D_READ_MISSES, "loads that missed L1"),
	SIG("CS_FROM_L2_LDATA", LOADS_FROM_L2, "loads that the core's own L2 served"),
	SIG("CS_FROM_L3_LDATA", LOADS_FROM_L3, "loads that the core's own L3 served"),
	SIG("CS_FROM_MEM_LDATA", LOADS_FROM_MEMORY, "loads that this chip's memory served"),
	ZERO("CS_FROM_L4_MEM_X_LDATA",
	     "loads that the other chip's memory served: pages lie with the program"),
	ZERO("CS_FROM_L4_LDATA", "loads served by an L4: there is none"),
	ZERO("CS_FROM_L2_L3_A_LDATA", "loads served by a cache of another group: there is none"),
	ZERO("CS_FROM_L4_MEM_A_LDATA", "loads served by memory of another group: there is none"),
	SIG("CS_ST_MISS_L1", L1D_WRITE_MISSES, "stores that missed L1"),
	SIG("CS_ST_FIN", STORES, "stores"),
	SIG("CS_IERAT_MISS", ITLB_MISSES, "first-level instruction translation misses"),
	SIG("CS_ITLB_RELOAD", FETCH_WALKS, "translations of instructions that no TLB had"),
	SIG("CS_DERAT_MISS", DTLB_MISSES, "first-level data translation misses"),
	SIG("CS_DTLB_RELOAD", DATA_WALKS, "translations of data that no TLB had"),
	SIG("CS_DTLB_MISS_64K", DATA_WALKS,
	    "translations of data that no TLB had: programs use pages of 64 KiB"),
	ZERO("CS_FROM_L4_MEM_A_IPTEG", "page walks to another group: there is none"),
	ZERO("CS_FROM_L4_MEM_A_DPTEG", "page walks to another group: there is none"),
	ZERO("CS_DTLB_MISS_4K", "programs use pages of 64 KiB"),
	ZERO("CS_DTLB_MISS_2M", "programs use pages of 64 KiB"),
	ZERO("CS_DTLB_MISS_16M", "programs use pages of 64 KiB"),
	ZERO("CS_DTLB_MISS_1G", "programs use pages of 64 KiB"),
	ZERO("CS_DTLB_MISS_16G", "programs use pages of 64 KiB"),
	SIG("CS_FROM_MEM_LOCAL", MEM_READ_LINES, "lines read from this chip's memory"),
	ZERO("CS_FROM_MEM_NON_LOCAL",
	     "lines read from the other chip's memory: pages lie with the program"),
	{NULL},
};

#define LINES(name, kind, signal, mask, desc)                                                      \
	{                                                                                          \
		name, IMC_##kind, QUIPU_SIGNAL_##signal, mask, desc                                \
	}
static const struct imc_source mcs_sources[] = {
	LINES("64B_RD_DISP_PORT01", R64, NONE, 0x3, "reads of at most 64 bytes, ports 0 and 1"),
	LINES("128B_RD_DISP_PORT01", R128, NONE, 0x3, "128-byte lines read, ports 0 and 1"),
	LINES("128B_WR_DISP_PORT01", W128, NONE, 0x3, "128-byte lines written, ports 0 and 1"),
	LINES("64B_WR_DISP_PORT01", W128, NONE, 0x3, "older name of 128B_WR_DISP_PORT01"),
	LINES("64B_RD_DISP_PORT23", R64, NONE, 0xc, "reads of at most 64 bytes, ports 2 and 3"),
	LINES("128B_RD_DISP_PORT23", R128, NONE, 0xc, "128-byte lines read, ports 2 and 3"),
	LINES("128B_WR_DISP_PORT23", W128, NONE, 0xc, "128-byte lines written, ports 2 and 3"),
	LINES("64B_WR_DISP_PORT23", W128, NONE, 0xc, "older name of 128B_WR_DISP_PORT23"),
	{NULL},
};

static const struct imc_source powerbus_sources[] = {
	ZERO("EVENT_VG_PUMP", "vectored group pumps: never sent here"),
	LINES("EVENT_LNS_PUMP", PB_LOCAL, NONE, 0, "bus requests that this chip serves itself"),
	LINES("EVENT_GROUP_PUMP", PB_REMOTE, NONE, 0, "bus requests that the other chip serves"),
	ZERO("EVENT_RNS_PUMP", "remote node pumps: never sent here"),
	ZERO("EVENT_RTY_VG_PUMP", "retries: never needed here"),
	ZERO("EVENT_RTY_LNS_PUMP", "retries: never needed here"),
	ZERO("EVENT_RTY_GROUP_PUMP", "retries: never needed here"),
	ZERO("EVENT_RTY_RNS_PUMP", "retries: never needed here"),
	IS("CYC", CLOCK, 2000000, "bus clock cycles"),
	IS("CYC2", CLOCK, 2000000, "bus clock cycles"),
	LINES("INT_DATA_XFER", DATA_LOCAL, NONE, 0, "data moved on this chip, in 512 bytes"),
	LINES("EXT_DATA_XFER", DATA_REMOTE, NONE, 0, "data moved between the chips, in 512 bytes"),
	{NULL},
};

static const struct imc_source xlink_sources[] = {
	IS("OUT_EVEN_CYC", CLOCK, 2000000, "link clock cycles"),
	IS("OUT_EVEN_ANY_RCMD", LINK_COMMANDS, 0, "commands sent on the even half"),
	IS("OUT_EVEN_DATA_COUNT", LINK_DATA, 0, "32-byte data beats sent on the even half"),
	IS("OUT_EVEN_TOTAL_UTIL", LINK_TOTAL, 0, "commands and data beats of the even half"),
	IS("OUT_ODD_CYC", CLOCK, 2000000, "link clock cycles"),
	IS("OUT_ODD_ANY_RCMD", LINK_COMMANDS, 1, "commands sent on the odd half"),
	IS("OUT_ODD_DATA_COUNT", LINK_DATA, 1, "32-byte data beats sent on the odd half"),
	IS("OUT_ODD_TOTAL_UTIL", LINK_TOTAL, 1, "commands and data beats of the odd half"),
	{NULL},
};

static const struct imc_source mba_sources[] = {
	LINES("READ_BYTES", RBYTES, NONE, 0, "bytes read through this memory port"),
	LINES("WRITE_BYTES", WBYTES, NONE, 0, "bytes written through this memory port"),
	IS("CLK_CYC", CLOCK, 1333000, "memory clock cycles"),
	{NULL},
};

static const struct imc_source phb_sources[] = {
	IS("CYC", CLOCK, 250000, "host bridge clock cycles"),
	IS("DMA_RD_FROM_PCIE", DMA_READS, 0, "read requests of devices"),
	IS("DMA_WR_FROM_PCIE", DMA_WRITES, 0, "write requests of devices"),
	ZERO("LD_RESP_FROM_PCIE", "answers to loads from devices: programs have none mapped"),
	{NULL},
};

static const struct {
	const char *unit;
	const struct imc_source *sources;
} units[] = {
	{"core", core_sources},		{"thread", core_sources}, {"mcs", mcs_sources},
	{"powerbus", powerbus_sources}, {"xlink", xlink_sources}, {"mba", mba_sources},
	{"phb", phb_sources},
};

unsigned imc_unit_index(const char *unit)
{
	return (unsigned)strtoul(unit + strcspn(unit, "0123456789"), NULL, 10);
}

/* The two ports of a unit's mask: mcs01 has ports 0 to 3 of its chip, mcs23 those from 4 on. */
static quipu_signal pair_signal(quipu_signal first, uint32_t mask, unsigned index)
{
	return first + (index >= 23 ? 2 : 0) + (mask & 1 ? 0 : 1);
}

unsigned imc_source_signals(const struct imc_source *s, unsigned index,
			    quipu_signal out[IMC_MAX_SIGNALS])
{
	switch (s->kind) {
	case IMC_SIGNAL: out[0] = s->signal; return s->signal != QUIPU_SIGNAL_NONE;
	case IMC_OWN_CACHES:
		out[0] = QUIPU_SIGNAL_L1I_MISSES;
		out[1] = QUIPU_SIGNAL_L1D_READ_MISSES;
		out[2] = QUIPU_SIGNAL_L1D_WRITE_MISSES;
		out[3] = QUIPU_SIGNAL_MEM_READ_LINES;
		return 4;
	case IMC_WALK_CYCLES: out[0] = QUIPU_SIGNAL_DATA_WALKS; return 1;
	case IMC_FETCH_CYCLES:
		out[0] = QUIPU_SIGNAL_FETCHES_FROM_L2;
		out[1] = QUIPU_SIGNAL_FETCHES_FROM_L3;
		out[2] = QUIPU_SIGNAL_FETCHES_FROM_MEMORY;
		return 3;
	case IMC_R128: out[0] = pair_signal(QUIPU_SIGNAL_PAIR_READ_LINES, s->arg, index); return 1;
	case IMC_W128: out[0] = pair_signal(QUIPU_SIGNAL_PAIR_WRITE_LINES, s->arg, index); return 1;
	case IMC_RBYTES: out[0] = QUIPU_SIGNAL_PORT_READ_LINES + index % 8; return 1;
	case IMC_WBYTES: out[0] = QUIPU_SIGNAL_PORT_WRITE_LINES + index % 8; return 1;
	case IMC_PB_LOCAL:
	case IMC_DATA_LOCAL:
		out[0] = QUIPU_SIGNAL_MEM_READ_LINES;
		out[1] = QUIPU_SIGNAL_MEM_WRITE_LINES;
		return 2;
	default: return 0;
	}
}

static const struct imc_source *find(const struct imc_source *s, const char *name, size_t len)
{
	for (; s->name; s++)
		if (*s->name == *name && !strncmp(s->name, name, len) && !s->name[len])
			return s;
	return NULL;
}

static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !strcmp(name + len - n, end);
}

/* CS_..._USER and CS_..._KERNEL are one event restricted to a state; programs run in user state
 * alone. */
static size_t variant(const char *name, enum imc_mode *mode)
{
	size_t len = strlen(name);

	if (strncmp(name, "CS_", 3) && strncmp(name, "SMT_", 4))
		return len;
	if (ends_with(name, len, "_USER")) {
		*mode = IMC_USER;
		return len - strlen("_USER");
	}
	if (ends_with(name, len, "_KERNEL")) {
		*mode = IMC_KERNEL;
		return len - strlen("_KERNEL");
	}
	return len;
}

const struct imc_source *imc_source_find(const char *unit, const char *name, enum imc_mode *mode)
{
	size_t stem = strcspn(unit, "0123456789"), len;

	*mode = IMC_ANY;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const struct imc_source *s;

		if (strlen(units[i].unit) != stem || strncmp(units[i].unit, unit, stem))
			continue;
		len = units[i].sources == core_sources ? variant(name, mode) : strlen(name);
		s = find(units[i].sources, name, len);
		if (!s)
			return &not_modelled;
		return *mode == IMC_KERNEL ? &never : s;
	}
	return &not_modelled;
}
