// SPDX-License-Identifier: BSD-2-Clause
/*
 * The events of the Rock PMUs: the 52 names and codes of the OpenSolaris client (Rock sheet 8.1),
 * in lower case, and the generic events of perf that they serve (9.3). An event with a group is
 * synthetic: an estimate that the driver makes of sampler elements.
 */
#include <string.h>

#include "platform/rock/driver.h"

#define CYC(n, d)                                                                                  \
	{                                                                                          \
		n, RK_PERF_CYC, 0, false, 0, 0, d                                                  \
	}
#define INSTR(n, d)                                                                                \
	{                                                                                          \
		n, RK_PERF_INSTR, 0, false, 0, 0, d                                                \
	}
#define IS(n, g, s, d)                                                                             \
	{                                                                                          \
		n, RK_PERF_INSTR, 0, true, g, s, "estimate: instructions " d                       \
	}
#define L2(n, t, d)                                                                                \
	{                                                                                          \
		n, RK_PERF_L2, t, false, 0, 0, "L2 transactions: " d                               \
	}
#define L2S(n, g, s, d)                                                                            \
	{                                                                                          \
		n, RK_PERF_L2, 0, true, g, s, "estimate: L2 transactions, " d                      \
	}
#define MMU(n, t, d)                                                                               \
	{                                                                                          \
		n, RK_PERF_MMU, t, false, 0, 0, "UTLB lookups: " d                                 \
	}
#define MCC(n, t, d)                                                                               \
	{                                                                                          \
		n, t, 0, false, 0, 0, d                                                            \
	}

const struct rock_name rock_names[ROCK_NAMES + 1] = {
	CYC("cycles", "cycles at the selected privileges"),
	INSTR("instr_all", "instructions at the selected privileges"),
	INSTR("instructions", "the same as instr_all"),
	IS("instr_normal", 1, 0, "in normal mode"),
	IS("instr_out_of_order", 1, 1, "in out-of-order mode"),
	IS("instr_execute_ahead", 1, 2, "in execute-ahead mode"),
	IS("instr_delay", 1, 3, "in delay mode"),
	IS("instr_deferred", 1, 4, "in deferred mode"),
	IS("instr_scout", 1, 5, "in hardware-scout mode"),
	IS("instr_load", 0, 0x002, "that load"),
	IS("instr_store", 0, 0x004, "that store"),
	IS("instr_branch", 0, 0x008, "that transfer control"),
	IS("instr_float", 0, 0x010, "of floating point"),
	IS("instr_dcache_miss", 2, 0x001, "that load and missed the D-cache"),
	IS("instr_prior_miss", 2, 0x002, "that load a line already being fetched"),
	IS("instr_dtlb_miss", 2, 0x004, "that missed the DTLB"),
	IS("instr_loadbuf_full", 2, 0x008, "held by a full load buffer"),
	IS("instr_storebuf_full", 2, 0x010, "held by a full store buffer"),
	IS("instr_stall", 2, 0x020, "after a front-end stall"),
	IS("instr_dq", 2, 0x040, "executed from the deferred queue"),
	IS("instr_correct_branch_predict", 2, 0x080, "that transfer control as predicted"),
	IS("instr_bypass_raw", 2, 0x100, "that load from the store buffer"),
	IS("instr_nonbypass_raw", 2, 0x200, "that load across a buffered store"),
	IS("instr_branch_taken", 2, 0x400, "that transfer control and were taken"),
	IS("instr_failed_spec", 2, 0x800, "in failed speculation"),
	L2("l2_icache_load", 0x01, "I-cache load"),
	L2("l2_dcache_load", 0x02, "D-cache load"),
	L2("l2_instr_prefetch", 0x04, "instruction prefetch"),
	L2("l2_store_prefetch", 0x08, "store prefetch"),
	L2("l2_store", 0x10, "store"),
	L2("l2_atomic_ops", 0x20, "atomic"),
	L2("l2_flush", 0x40, "flush"),
	L2S("l2_load_from_dram", 0, 0, "any type, from DRAM"),
	L2S("l2_load_from_l3", 0, 1, "any type, from the L3"),
	L2S("l2_load_from_other_l2", 0, 2, "any type, from another chip's L2"),
	L2S("l2_miss", 0, 4, "not in the local L2"),
	L2S("l2_load_miss", 1, 0x003, "I-cache and D-cache loads not in the local L2"),
	L2S("l2_store_miss", 1, 0x018, "stores and their prefetches not in the local L2"),
	L2S("l2_load_hit", 2, 0x003, "I-cache and D-cache loads in the local L2"),
	L2S("l2_store_hit", 2, 0x018, "stores and their prefetches in the local L2"),
	L2S("l2_hit", 3, 0, "any type, in the local L2"),
	MMU("mmu_all", 0x7b, "all"),
	MMU("mmu_itlb_miss", 0x73, "instruction side"),
	MMU("mmu_dtlb_miss", 0x6b, "data side"),
	MMU("mmu_utlb_miss", 0x7a, "misses, both sides"),
	MMU("mmu_utlb_hit", 0x79, "hits, both sides"),
	MMU("mmu_i_utlb_miss", 0x72, "misses, instruction side"),
	MMU("mmu_i_utlb_hit", 0x71, "hits, instruction side"),
	MMU("mmu_d_utlb_miss", 0x6a, "misses, data side"),
	MMU("mmu_d_utlb_hit", 0x69, "hits, data side"),
	MCC("yank", RK_PERF_YANK, "speculation ended from outside"),
	MCC("siblk", RK_PERF_SIBLK, "waits for a slot that the core's other strand holds"),
	MCC("lvlk", RK_PERF_LVLK, "speculation that failed over and over"),
	{NULL, 0, 0, false, 0, 0, NULL},
};

static const struct rock_name *named(const char *name)
{
	for (const struct rock_name *n = rock_names; n->name; n++)
		if (!strcmp(n->name, name))
			return n;
	return NULL;
}

const struct rock_name *rock_name_hardware(uint64_t config)
{
	static const struct rock_name references = {"l2_all", RK_PERF_L2, 0x7f, false, 0, 0, NULL};
	static const char *const names[PERF_COUNT_HW_MAX] = {
		[PERF_COUNT_HW_CPU_CYCLES] = "cycles",
		[PERF_COUNT_HW_INSTRUCTIONS] = "instr_all",
		[PERF_COUNT_HW_CACHE_MISSES] = "l2_miss",
		[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "instr_branch",
	};

	if (config == PERF_COUNT_HW_CACHE_REFERENCES)
		return &references;
	return config < PERF_COUNT_HW_MAX && names[config] ? named(names[config]) : NULL;
}

const struct rock_name *rock_name_cache(uint64_t config)
{
	static const struct {
		uint32_t config; /* cache, operation << 8, result << 16 */
		const char *name;
	} rows[] = {
		{PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
		 "instr_dcache_miss"},
		{PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16,
		 "l2_dcache_load"},
		{PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_RESULT_MISS << 16, "l2_load_miss"},
		{PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_RESULT_MISS << 16, "mmu_dtlb_miss"},
		{PERF_COUNT_HW_CACHE_ITLB | PERF_COUNT_HW_CACHE_RESULT_MISS << 16, "mmu_itlb_miss"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].config == config)
			return named(rows[i].name);
	return NULL;
}
