/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the selectors of mhpmevent mean: code, name, and the signals that move a counter which
 * selects it.
 *
 * Sources: RISC-V sheet 7.2 (machine riscv, D-25, D-28), 7.3 (QEMU), 7.4 (SiFive U74: class/mask
 * selectors), 7.5 (T-Head C9xx), 7.6 (Andes AX45); the names of vendor events are those of the
 * vendors' perf event lists. A row without signals is an event that the silicon has and no model
 * here drives. Which of the signals the engine has is asked at run time.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "platform/riscv/events.h"

/* clang-format off */
#define NONE	       { 0, { 0 } }
#define ONE(a)	       { 1, { QUIPU_SIGNAL_##a } }
#define TWO(a, b)      { 2, { QUIPU_SIGNAL_##a, QUIPU_SIGNAL_##b } }
#define THREE(a, b, c) { 3, { QUIPU_SIGNAL_##a, QUIPU_SIGNAL_##b, QUIPU_SIGNAL_##c } }
#define SET(mask)      { 1, { QUIPU_SIGNAL_OF(mask) } }
/* clang-format on */
#define CLASS(c) QUIPU_CLASS_BIT(QUIPU_INSN_##c)

/* 7.2: selector = event_idx. */
static const struct riscv_selector generic_rows[] = {
	{0x00001, "cycles", "core cycles", ONE(CYCLES)},
	{0x00002, "instructions", "instructions retired", ONE(INSTRUCTIONS)},
	{0x00003, "cache-references", "first-level cache accesses, data and instruction",
	 THREE(L1D_READS, L1D_WRITES, L1I_ACCESSES)},
	{0x00004, "cache-misses", "last-level cache misses", TWO(LL_READ_MISSES, LL_WRITE_MISSES)},
	{0x00005, "branches", "control transfers retired: branches, jumps, calls, returns",
	 ONE(BRANCHES)},
	{0x00006, "branch-misses", "branches mispredicted, direction or target",
	 ONE(BRANCH_MISSES)},
	{0x00007, "bus-cycles", "cycles of the bus clock", ONE(BUS_CYCLES)},
	{0x00008, "stalled-cycles-frontend", "cycles stalled in the front end",
	 ONE(STALL_FRONTEND)},
	{0x00009, "stalled-cycles-backend", "cycles stalled in the back end", ONE(STALL_BACKEND)},
	{0x0000A, "ref-cycles", "cycles of the reference clock", ONE(REF_CYCLES)},
	{0x10000, "l1-dcache-loads", "L1 data cache reads", ONE(L1D_READS)},
	{0x10001, "l1-dcache-load-misses", "L1 data cache read misses", ONE(L1D_READ_MISSES)},
	{0x10002, "l1-dcache-stores", "L1 data cache writes", ONE(L1D_WRITES)},
	{0x10003, "l1-dcache-store-misses", "L1 data cache write misses", ONE(L1D_WRITE_MISSES)},
	{0x10004, "l1-dcache-prefetches", "L1 data cache prefetches", ONE(L1D_PREFETCHES)},
	{0x10005, "l1-dcache-prefetch-misses", "L1 data cache prefetch misses",
	 ONE(L1D_PREFETCH_MISSES)},
	{0x10008, "l1-icache-loads", "L1 instruction cache accesses", ONE(L1I_ACCESSES)},
	{0x10009, "l1-icache-load-misses", "L1 instruction cache misses", ONE(L1I_MISSES)},
	{0x10010, "llc-loads", "last-level cache reads", ONE(LL_READS)},
	{0x10011, "llc-load-misses", "last-level cache read misses", ONE(LL_READ_MISSES)},
	{0x10012, "llc-stores", "last-level cache writes", ONE(LL_WRITES)},
	{0x10013, "llc-store-misses", "last-level cache write misses", ONE(LL_WRITE_MISSES)},
	{0x10014, "llc-prefetches", "last-level cache prefetches", ONE(LL_PREFETCHES)},
	{0x10015, "llc-prefetch-misses", "last-level cache prefetch misses",
	 ONE(LL_PREFETCH_MISSES)},
	{0x10018, "dtlb-loads", "data TLB look-ups of loads", ONE(DTLB_READS)},
	{0x10019, "dtlb-load-misses", "data TLB misses of loads", ONE(DTLB_READ_MISSES)},
	{0x1001A, "dtlb-stores", "data TLB look-ups of stores", ONE(DTLB_WRITES)},
	{0x1001B, "dtlb-store-misses", "data TLB misses of stores", ONE(DTLB_WRITE_MISSES)},
	{0x10020, "itlb-loads", "instruction TLB look-ups", ONE(ITLB_ACCESSES)},
	{0x10021, "itlb-load-misses", "instruction TLB misses", ONE(ITLB_MISSES)},
	{0x10028, "branch-loads", "branches predicted", ONE(BRANCHES)},
	{0x10029, "branch-load-misses", "branches mispredicted", ONE(BRANCH_MISSES)},
};

/* The model's own space, bits 47:32 = 2: what no event_idx and no U74 mask can say. */
static const struct riscv_selector private_rows[] = {
	{0x1, "loads", "instructions that load from memory", ONE(LOADS)},
	{0x2, "stores", "instructions that store to memory", ONE(STORES)},
	{0x3, "branches-taken", "control transfers that went elsewhere than the next instruction",
	 ONE(BRANCHES_TAKEN)},
	{0x4, "calls", "calls retired", ONE(CALLS)},
	{0x5, "returns", "returns retired", ONE(RETURNS)},
	{0x6, "syscalls", "system calls", ONE(SYSCALLS)},
};

/* 7.3: what QEMU's virt machine counts. */
static const struct riscv_selector qemu_rows[] = {
	{0x00001, "cycles", "core cycles", ONE(CYCLES)},
	{0x00002, "instructions", "instructions retired", ONE(INSTRUCTIONS)},
	{0x10019, "dtlb-load-misses", "data TLB misses of loads", ONE(DTLB_READ_MISSES)},
	{0x1001B, "dtlb-store-misses", "data TLB misses of stores", ONE(DTLB_WRITE_MISSES)},
	{0x10021, "itlb-load-misses", "instruction TLB misses", ONE(ITLB_MISSES)},
};

#define U74_ATOMIC (CLASS(AMO) | CLASS(LR) | CLASS(SC))
#define U74_JALR   (CLASS(IJUMP) | CLASS(ICALL) | CLASS(RET))

/* 7.4: class in bits 7:0, one mask bit a row. */
static const struct riscv_selector u74_rows[] = {
	{0x100, "exception_taken", "exceptions taken", ONE(EXCEPTIONS)},
	{0x200, "integer_load_retired", "integer loads", SET(CLASS(LOAD))},
	{0x400, "integer_store_retired", "integer stores", SET(CLASS(STORE))},
	{0x800, "atomic_memory_retired", "atomics, load-reserved, store-conditional",
	 SET(U74_ATOMIC)},
	{0x1000, "system_instruction_retired", "csr, fence and other system instructions",
	 SET(CLASS(CSR) | CLASS(FENCE) | CLASS(SYSTEM))},
	{0x2000, "integer_arithmetic_retired", "integer arithmetic", SET(CLASS(ALU))},
	{0x4000, "conditional_branch_retired", "conditional branches", SET(CLASS(BRANCH))},
	{0x8000, "jal_instruction_retired", "direct jumps and calls",
	 SET(CLASS(JUMP) | CLASS(CALL))},
	{0x10000, "jalr_instruction_retired", "indirect jumps, calls and returns", SET(U74_JALR)},
	{0x20000, "integer_multiplication_retired", "integer multiplications", SET(CLASS(MUL))},
	{0x40000, "integer_division_retired", "integer divisions", SET(CLASS(DIV))},
	{0x80000, "fp_load_retired", "floating-point loads", SET(CLASS(FLOAD))},
	{0x100000, "fp_store_retired", "floating-point stores", SET(CLASS(FSTORE))},
	{0x200000, "fp_addition_retired", "floating-point additions", SET(CLASS(FADD))},
	{0x400000, "fp_multiplication_retired", "floating-point multiplications", SET(CLASS(FMUL))},
	{0x800000, "fp_fusedmadd_retired", "fused multiply-adds", SET(CLASS(FMA))},
	{0x1000000, "fp_div_sqrt_retired", "floating-point divisions and square roots",
	 SET(CLASS(FDIV))},
	{0x2000000, "other_fp_retired", "other floating-point instructions", SET(CLASS(FOTHER))},
	{0x101, "addressgen_interlock", "load-use interlock cycles", NONE},
	{0x201, "longlat_interlock", "long-latency interlock cycles", NONE},
	{0x401, "csr_read_interlock", "CSR read interlock cycles", NONE},
	{0x801, "icache_itim_busy", "instruction cache busy cycles", NONE},
	{0x1001, "dcache_dtim_busy", "data cache busy cycles", NONE},
	{0x2001, "branch_direction_misprediction", "branch directions mispredicted",
	 ONE(BRANCH_DIRECTION_MISSES)},
	{0x4001, "branch_target_misprediction", "branch targets mispredicted",
	 ONE(BRANCH_TARGET_MISSES)},
	{0x8001, "pipe_flush_csr_write", "pipeline flushes by CSR writes", NONE},
	{0x10001, "pipe_flush_other_event", "other pipeline flushes", NONE},
	{0x20001, "integer_multiplication_interlock", "multiplication interlock cycles", NONE},
	{0x40001, "fp_interlock", "floating-point interlock cycles", NONE},
	{0x102, "icache_retired", "instruction cache misses", ONE(L1I_MISSES)},
	{0x202, "dcache_miss_mmio_accesses", "data cache misses and uncached accesses",
	 TWO(L1D_READ_MISSES, L1D_WRITE_MISSES)},
	{0x402, "dcache_writeback", "dirty lines written back", ONE(L1D_WRITEBACKS)},
	{0x802, "inst_tlb_miss", "instruction TLB misses", ONE(ITLB_MISSES)},
	{0x1002, "data_tlb_miss", "data TLB misses", TWO(DTLB_READ_MISSES, DTLB_WRITE_MISSES)},
	{0x2002, "utlb_miss", "second-level TLB misses", ONE(STLB_MISSES)},
};

#define ALL_FP                                                                                     \
	(CLASS(FLOAD) | CLASS(FSTORE) | CLASS(FADD) | CLASS(FMUL) | CLASS(FMA) | CLASS(FDIV) |     \
	 CLASS(FOTHER))

/* 7.5: flat codes. */
static const struct riscv_selector thead_rows[] = {
	{0x01, "l1_icache_access", "", ONE(L1I_ACCESSES)},
	{0x02, "l1_icache_miss", "", ONE(L1I_MISSES)},
	{0x03, "itlb_miss", "", ONE(ITLB_MISSES)},
	{0x04, "dtlb_miss", "", TWO(DTLB_READ_MISSES, DTLB_WRITE_MISSES)},
	{0x05, "jtlb_miss", "", ONE(STLB_MISSES)},
	{0x06, "inst_branch_mispredict", "", ONE(BRANCH_DIRECTION_MISSES)},
	{0x07, "inst_branch", "", SET(CLASS(BRANCH))},
	{0x08, "inst_jmp_mispredict", "", ONE(BRANCH_TARGET_MISSES)},
	{0x09, "inst_jmp", "", SET(CLASS(JUMP) | CLASS(CALL) | U74_JALR)},
	{0x0A, "lsu_spec_fail", "", NONE},
	{0x0B, "inst_store", "", SET(CLASS(STORE))},
	{0x0C, "l1_dcache_read_access", "", ONE(L1D_READS)},
	{0x0D, "l1_dcache_read_miss", "", ONE(L1D_READ_MISSES)},
	{0x0E, "l1_dcache_write_access", "", ONE(L1D_WRITES)},
	{0x0F, "l1_dcache_write_miss", "", ONE(L1D_WRITE_MISSES)},
	{0x10, "ll_cache_read_access", "", ONE(LL_READS)},
	{0x11, "ll_cache_read_miss", "", ONE(LL_READ_MISSES)},
	{0x12, "ll_cache_write_access", "", ONE(LL_WRITES)},
	{0x13, "ll_cache_write_miss", "", ONE(LL_WRITE_MISSES)},
	{0x14, "idu_rf_pipe_fail", "", NONE},
	{0x15, "idu_rf_reg_fail", "", NONE},
	{0x16, "idu_rf_instruction", "", ONE(INSTRUCTIONS)},
	{0x17, "lsu_4k_stall", "", NONE},
	{0x18, "lsu_other_stall", "", ONE(STALL_BACKEND)},
	{0x19, "lsu_sq_other_dis", "", NONE},
	{0x1A, "lsu_sq_data_discard", "", NONE},
	{0x1B, "branch_direction_misprediction", "", ONE(BRANCH_DIRECTION_MISSES)},
	{0x1C, "branch_direction_prediction", "", ONE(BRANCHES)},
	{0x1D, "inst_alu", "", SET(CLASS(ALU))},
	{0x1E, "inst_ldst", "", SET(CLASS(LOAD) | CLASS(STORE))},
	{0x1F, "inst_vector", "", SET(CLASS(VECTOR))},
	{0x20, "inst_csr", "", SET(CLASS(CSR))},
	{0x21, "inst_sync", "", SET(U74_ATOMIC)},
	{0x22, "inst_unaligned_access", "", ONE(UNALIGNED)},
	{0x23, "interrupt_ack_count", "", ONE(INTERRUPTS)},
	{0x24, "interrupt_off_cycle", "", NONE},
	{0x25, "inst_ecall", "", ONE(SYSCALLS)},
	{0x26, "inst_long_jp", "", NONE},
	{0x27, "ifu_stalled_cycle", "", ONE(STALL_FRONTEND)},
	{0x28, "idu_stalled_cycle", "", ONE(STALL_BACKEND)},
	{0x29, "sync_stall", "", NONE},
	{0x2A, "inst_fp", "", SET(ALL_FP)},
};

#define TRANSFERS (CLASS(BRANCH) | CLASS(JUMP) | CLASS(CALL) | U74_JALR)

/* 7.6: number << 4 | class. */
static const struct riscv_selector andes_rows[] = {
	{0x010, "cycle_count", "", ONE(CYCLES)},
	{0x020, "inst_count", "", ONE(INSTRUCTIONS)},
	{0x030, "int_load_inst", "", SET(CLASS(LOAD))},
	{0x040, "int_store_inst", "", SET(CLASS(STORE))},
	{0x050, "atomic_inst", "", SET(U74_ATOMIC)},
	{0x060, "sys_inst", "", SET(CLASS(CSR) | CLASS(FENCE) | CLASS(SYSTEM))},
	{0x070, "int_compute_inst", "", SET(CLASS(ALU))},
	{0x080, "condition_br", "", SET(CLASS(BRANCH))},
	{0x090, "taken_condition_br", "", NONE},
	{0x0A0, "jal_inst", "", SET(CLASS(JUMP) | CLASS(CALL))},
	{0x0B0, "jalr_inst", "", SET(U74_JALR)},
	{0x0C0, "ret_inst", "", SET(CLASS(RET))},
	{0x0D0, "control_trans_inst", "", SET(TRANSFERS)},
	{0x0E0, "ex9_inst", "", NONE},
	{0x0F0, "int_mul_inst", "", SET(CLASS(MUL))},
	{0x100, "int_div_rem_inst", "", SET(CLASS(DIV))},
	{0x110, "float_load_inst", "", SET(CLASS(FLOAD))},
	{0x120, "float_store_inst", "", SET(CLASS(FSTORE))},
	{0x130, "float_add_sub_inst", "", SET(CLASS(FADD))},
	{0x140, "float_mul_inst", "", SET(CLASS(FMUL))},
	{0x150, "float_fused_muladd_inst", "", SET(CLASS(FMA))},
	{0x160, "float_div_sqrt_inst", "", SET(CLASS(FDIV))},
	{0x170, "other_float_inst", "", SET(CLASS(FOTHER))},
	{0x180, "int_mul_add_sub_inst", "", NONE},
	{0x190, "retired_ops", "", ONE(INSTRUCTIONS)},
	{0x001, "ilm_access", "", NONE},
	{0x011, "dlm_access", "", NONE},
	{0x021, "icache_access", "", ONE(L1I_ACCESSES)},
	{0x031, "icache_miss", "", ONE(L1I_MISSES)},
	{0x041, "dcache_access", "", TWO(L1D_READS, L1D_WRITES)},
	{0x051, "dcache_miss", "", TWO(L1D_READ_MISSES, L1D_WRITE_MISSES)},
	{0x061, "dcache_load_access", "", ONE(L1D_READS)},
	{0x071, "dcache_load_miss", "", ONE(L1D_READ_MISSES)},
	{0x081, "dcache_store_access", "", ONE(L1D_WRITES)},
	{0x091, "dcache_store_miss", "", ONE(L1D_WRITE_MISSES)},
	{0x0A1, "dcache_wb", "", ONE(L1D_WRITEBACKS)},
	{0x0B1, "cycle_wait_icache_fill", "", NONE},
	{0x0C1, "cycle_wait_dcache_fill", "", NONE},
	{0x0D1, "uncached_ifetch_from_bus", "", NONE},
	{0x0E1, "uncached_load_from_bus", "", NONE},
	{0x0F1, "cycle_wait_uncached_ifetch", "", NONE},
	{0x101, "cycle_wait_uncached_load", "", NONE},
	{0x111, "main_itlb_access", "", ONE(ITLB_ACCESSES)},
	{0x121, "main_itlb_miss", "", ONE(ITLB_MISSES)},
	{0x131, "main_dtlb_access", "", TWO(DTLB_READS, DTLB_WRITES)},
	{0x141, "main_dtlb_miss", "", TWO(DTLB_READ_MISSES, DTLB_WRITE_MISSES)},
	{0x151, "cycle_wait_itlb_fill", "", NONE},
	{0x161, "pipe_stall_cycle_dtlb_miss", "", NONE},
	{0x171, "hardware_prefetch_bus_access", "", NONE},
	{0x002, "mispredict_condition_br", "", ONE(BRANCH_DIRECTION_MISSES)},
	{0x012, "mispredict_take_condition_br", "", NONE},
	{0x022, "mispredict_target_ret_inst", "", ONE(RETURN_MISSES)},
};

#define ROWS(table) .rows = (table), .n = sizeof(table) / sizeof((table)[0])

static const struct riscv_events tables[] = {
	{"generic",
	 {{ROWS(generic_rows)},
	  {.prefix = UINT64_C(1) << 32, ROWS(u74_rows), .masks = true},
	  {.prefix = UINT64_C(2) << 32, ROWS(private_rows)}}},
	{"qemu", {{ROWS(qemu_rows)}}},
	{"u74", {{ROWS(u74_rows), .masks = true}}},
	{"thead", {{ROWS(thead_rows)}}},
	{"andes", {{ROWS(andes_rows)}}},
};

/* clang-format on */

const struct riscv_events *riscv_events_named(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(tables[i].name, name))
			return &tables[i];
	return NULL;
}

static const struct riscv_selector *row_of(const struct riscv_block *b, uint64_t code)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->rows[i].code == code)
			return &b->rows[i];
	return NULL;
}

/*
 * Several instruction classes are one signal: at most one count for each instruction (D-26). False:
 * no room.
 */
static bool count_add(struct riscv_count *c, quipu_signal signal)
{
	for (unsigned k = 0; k < c->n; k++) {
		if (c->signal[k] == signal)
			return true;
		if (c->signal[k] & signal & QUIPU_SIGNAL_CLASSES) {
			c->signal[k] |= signal;
			return true;
		}
	}
	if (c->n == sizeof(c->signal) / sizeof(c->signal[0]))
		return false;
	c->signal[c->n++] = signal;
	return true;
}

/*
 * A class/mask selector counts when any of its events occurs. False when one of the bits is no
 * event of the class; *whole tells whether each of them has a signal.
 */
static bool count_masks(const struct riscv_block *b, uint64_t code, struct riscv_count *c,
			bool *whole)
{
	if (!(code >> 8))
		return false;
	for (uint64_t m = code >> 8; m; m &= m - 1) {
		const struct riscv_selector *row =
			row_of(b, bits_one(bits_low(m) + 8) | (code & 0xFF));

		if (!row)
			return false;
		if (!row->count.n)
			*whole = false;
		for (unsigned k = 0; k < row->count.n; k++)
			if (!count_add(c, row->count.signal[k]))
				*whole = false;
	}
	return true;
}

static const struct riscv_block *block_of(const struct riscv_events *e, uint64_t selector)
{
	uint64_t prefix = selector & ~bits_mask(32);

	for (size_t i = 0; i < sizeof(e->block) / sizeof(e->block[0]); i++)
		if (e->block[i].n && e->block[i].prefix == prefix)
			return &e->block[i];
	return NULL;
}

/* *whole: each part of the selector has a signal behind it. */
static bool find_count(const struct riscv_events *e, uint64_t selector, struct riscv_count *c,
		       bool *whole)
{
	const struct riscv_block *b = block_of(e, selector);
	const struct riscv_selector *row;

	*c = (struct riscv_count){0};
	*whole = true;
	if (!b)
		return false;
	if (b->masks)
		return count_masks(b, selector & bits_mask(32), c, whole);
	row = row_of(b, selector & bits_mask(32));
	if (!row)
		return false;
	*c = row->count;
	*whole = row->count.n != 0;
	return true;
}

bool riscv_events_count(const struct riscv_events *e, uint64_t selector, struct riscv_count *c)
{
	bool whole;

	return find_count(e, selector, c, &whole);
}

static quipu_signal missing_signal(const struct quipu_riscv *rv, const struct riscv_count *c)
{
	for (unsigned k = 0; k < c->n; k++)
		if (!rv->signals->ops->has(rv->signals, c->signal[k]))
			return c->signal[k];
	return QUIPU_SIGNAL_NONE;
}

bool riscv_events_modelled(const struct quipu_riscv *rv, uint64_t selector, struct riscv_count *c)
{
	bool whole;

	return find_count(rv->events, selector, c, &whole) && whole &&
	       missing_signal(rv, c) == QUIPU_SIGNAL_NONE;
}

/* The part of a machine that a signal comes from, in a person's words; the first row that fits. */
static const char *source_of(quipu_signal s)
{
	static const struct {
		enum quipu_named_signal first, last;
		const char *what;
	} source[] = {
		{QUIPU_SIGNAL_BRANCH_MISSES, QUIPU_SIGNAL_RETURN_MISSES, "branch predictor"},
		{QUIPU_SIGNAL_L1I_ACCESSES, QUIPU_SIGNAL_L1I_MISSES, "L1I cache"},
		{QUIPU_SIGNAL_L1D_PREFETCHES, QUIPU_SIGNAL_L1D_PREFETCH_MISSES, "prefetches"},
		{QUIPU_SIGNAL_L1D_READS, QUIPU_SIGNAL_L1D_WRITEBACKS, "L1D cache"},
		{QUIPU_SIGNAL_L2_READS, QUIPU_SIGNAL_L2_WRITE_MISSES, "L2 cache"},
		{QUIPU_SIGNAL_LL_PREFETCHES, QUIPU_SIGNAL_LL_PREFETCH_MISSES, "prefetches"},
		{QUIPU_SIGNAL_LL_READS, QUIPU_SIGNAL_LL_PREFETCH_MISSES, "last-level cache"},
		{QUIPU_SIGNAL_ITLB_ACCESSES, QUIPU_SIGNAL_ITLB_MISSES, "instruction TLB"},
		{QUIPU_SIGNAL_DTLB_READS, QUIPU_SIGNAL_DTLB_WRITE_MISSES, "data TLB"},
		{QUIPU_SIGNAL_STLB_ACCESSES, QUIPU_SIGNAL_STLB_MISSES, "second-level TLB"},
		{QUIPU_SIGNAL_MEM_READ_LINES, QUIPU_SIGNAL_MEM_WRITE_LINES, "memory traffic"},
		{QUIPU_SIGNAL_STALL_FRONTEND, QUIPU_SIGNAL_STALL_BACKEND, "pipeline stalls"},
		{QUIPU_SIGNAL_REF_CYCLES, QUIPU_SIGNAL_REF_CYCLES, "reference clock"},
		{QUIPU_SIGNAL_BUS_CYCLES, QUIPU_SIGNAL_BUS_CYCLES, "bus clock"},
		{QUIPU_SIGNAL_EXCEPTIONS, QUIPU_SIGNAL_INTERRUPTS, "exceptions and interrupts"},
	};

	for (size_t i = 0; i < sizeof(source) / sizeof(source[0]); i++)
		if (s >= (quipu_signal)source[i].first && s <= (quipu_signal)source[i].last)
			return source[i].what;
	return NULL;
}

const char *riscv_events_missing(const struct quipu_riscv *rv, uint64_t selector, char *buf,
				 size_t len)
{
	struct riscv_count c;
	quipu_signal signal;
	bool whole;
	char name[32];

	if (!find_count(rv->events, selector, &c, &whole)) {
		snprintf(buf, len, "machine %s has no event with selector 0x%llx",
			 rv->machine->name, (unsigned long long)selector);
		return buf;
	}
	if (!whole) {
		snprintf(buf, len, "machine %s has no model for what selector 0x%llx counts",
			 rv->machine->name, (unsigned long long)selector);
		return buf;
	}
	signal = missing_signal(rv, &c);
	if (signal == QUIPU_SIGNAL_NONE)
		return NULL;
	if (source_of(signal))
		snprintf(buf, len, "machine %s models no %s yet", rv->machine->name,
			 source_of(signal));
	else
		snprintf(buf, len, "the engine does not count %s as it runs now",
			 quipu_signal_name(signal, name, sizeof(name)));
	return buf;
}

const char *riscv_event_idx_name(uint32_t event)
{
	for (size_t i = 0; i < sizeof(generic_rows) / sizeof(generic_rows[0]); i++)
		if (generic_rows[i].code == event)
			return generic_rows[i].name;
	return "";
}

const char *riscv_firmware_event_name(unsigned code)
{
	static const char *const names[RISCV_FW_EVENTS] = {
		"misaligned_load",
		"misaligned_store",
		"access_load",
		"access_store",
		"illegal_insn",
		"set_timer",
		"ipi_sent",
		"ipi_received",
		"fence_i_sent",
		"fence_i_received",
		"sfence_vma_sent",
		"sfence_vma_received",
		"sfence_vma_asid_sent",
		"sfence_vma_asid_received",
		"hfence_gvma_sent",
		"hfence_gvma_received",
		"hfence_gvma_vmid_sent",
		"hfence_gvma_vmid_received",
		"hfence_vvma_sent",
		"hfence_vvma_received",
		"hfence_vvma_asid_sent",
		"hfence_vvma_asid_received",
	};

	return code < RISCV_FW_EVENTS ? names[code] : "";
}
