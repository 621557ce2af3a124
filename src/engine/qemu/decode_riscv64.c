/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * riscv64 instructions: class and flow. The RISC-V Instruction Set Manual, volume I (20191213 and
 * the ratified extensions B, V, Zicbo*, Zcb): chapter 24 "RV32/64G Instruction Set Listings" for
 * the major opcodes, chapter 16 for the compressed ones, chapter 2.5.1 for the return-address hints
 * of JAL and JALR.
 *
 * It does not check that an encoding is legal: an illegal one raises a trap in QEMU and its class
 * never matters, but for the all-zero halfword, which is defined to be illegal and is called a
 * trap.
 */
#include "decode.h"

#include <stdbool.h>

#include <quipu/bits.h>

/* Beyond the classes: the row needs a look at more fields. */
enum special {
	S_FIRST = 64,
	S_FMEM_LOAD = S_FIRST, /* the opcode is shared by scalar FP and vector accesses */
	S_FMEM_STORE,
	S_AMO,
	S_OP,
	S_OP32,
	S_OPFP,
	S_BRANCH,
	S_JALR,
	S_JAL,
	S_SYSTEM,
	S_C_ADDI4SPN,
	S_C_BYTES, /* Zcb */
	S_C_ALU,
	S_C_J,
	S_C_BRANCH,
	S_C_REGS,
};

#define ALU QUIPU_INSN_ALU

/* By bits 6..2 of a 32-bit instruction. */
static const uint8_t major[32] = {
	[0x00] = QUIPU_INSN_LOAD,
	[0x01] = S_FMEM_LOAD,
	[0x02] = ALU,
	[0x03] = QUIPU_INSN_FENCE,
	[0x04] = ALU,
	[0x05] = ALU,
	[0x06] = ALU,
	[0x07] = ALU,
	[0x08] = QUIPU_INSN_STORE,
	[0x09] = S_FMEM_STORE,
	[0x0a] = ALU,
	[0x0b] = S_AMO,
	[0x0c] = S_OP,
	[0x0d] = ALU,
	[0x0e] = S_OP32,
	[0x0f] = ALU,
	[0x10] = QUIPU_INSN_FMA,
	[0x11] = QUIPU_INSN_FMA,
	[0x12] = QUIPU_INSN_FMA,
	[0x13] = QUIPU_INSN_FMA,
	[0x14] = S_OPFP,
	[0x15] = QUIPU_INSN_VECTOR,
	[0x16] = ALU,
	[0x17] = ALU,
	[0x18] = S_BRANCH,
	[0x19] = S_JALR,
	[0x1a] = ALU,
	[0x1b] = S_JAL,
	[0x1c] = S_SYSTEM,
	[0x1d] = QUIPU_INSN_VECTOR,
	[0x1e] = ALU,
	[0x1f] = ALU,
};

/* By quadrant (bits 1..0) and bits 15..13 of a 16-bit instruction. */
static const uint8_t compressed[3][8] = {
	{S_C_ADDI4SPN, QUIPU_INSN_FLOAD, QUIPU_INSN_LOAD, QUIPU_INSN_LOAD, S_C_BYTES,
	 QUIPU_INSN_FSTORE, QUIPU_INSN_STORE, QUIPU_INSN_STORE},
	{ALU, ALU, ALU, ALU, S_C_ALU, S_C_J, S_C_BRANCH, S_C_BRANCH},
	{ALU, QUIPU_INSN_FLOAD, QUIPU_INSN_LOAD, QUIPU_INSN_LOAD, S_C_REGS, QUIPU_INSN_FSTORE,
	 QUIPU_INSN_STORE, QUIPU_INSN_STORE},
};

/* By bits 31..27 of OP-FP; all others are comparisons, moves and conversions (0 here: see op_fp()).
 */
static const uint8_t op_fp_arithmetic[32] = {
	[0x00] = QUIPU_INSN_FADD, [0x01] = QUIPU_INSN_FADD, [0x02] = QUIPU_INSN_FMUL,
	[0x03] = QUIPU_INSN_FDIV, [0x0b] = QUIPU_INSN_FDIV,
};

static bool link_register(unsigned r)
{
	return r == 1 || r == 5;
}

/* Return-address hints: volume I table 2.1. */
static void jalr(struct decoded *d, unsigned rd, unsigned rs1)
{
	if (link_register(rd)) {
		d->class = QUIPU_INSN_ICALL;
		d->flow = link_register(rs1) && rs1 != rd ? FLOW_COROUTINE : FLOW_ICALL;
	} else if (link_register(rs1)) {
		d->class = QUIPU_INSN_RET;
		d->flow = FLOW_RET;
	} else {
		d->class = QUIPU_INSN_IJUMP;
		d->flow = FLOW_IJUMP;
	}
}

static void jal(struct decoded *d, unsigned rd, uint64_t target)
{
	bool call = link_register(rd);

	d->class = call ? QUIPU_INSN_CALL : QUIPU_INSN_JUMP;
	d->flow = call ? FLOW_CALL : FLOW_JUMP;
	d->target = target;
}

static void branch(struct decoded *d, uint64_t target)
{
	d->class = QUIPU_INSN_BRANCH;
	d->flow = FLOW_COND;
	d->target = target;
}

static void trap(struct decoded *d, bool syscall)
{
	d->class = QUIPU_INSN_TRAP;
	d->flow = syscall ? FLOW_SYSCALL : FLOW_NONE;
}

static int64_t imm_j(uint32_t w)
{
	return bits_sign(bits_get(w, 31, 31) << 20 | bits_get(w, 19, 12) << 12 |
				 bits_get(w, 20, 20) << 11 | bits_get(w, 30, 21) << 1,
			 21);
}

static int64_t imm_b(uint32_t w)
{
	return bits_sign(bits_get(w, 31, 31) << 12 | bits_get(w, 7, 7) << 11 |
				 bits_get(w, 30, 25) << 5 | bits_get(w, 11, 8) << 1,
			 13);
}

static int64_t imm_cj(uint32_t w)
{
	return bits_sign(bits_get(w, 12, 12) << 11 | bits_get(w, 8, 8) << 10 |
				 bits_get(w, 10, 9) << 8 | bits_get(w, 6, 6) << 7 |
				 bits_get(w, 7, 7) << 6 | bits_get(w, 2, 2) << 5 |
				 bits_get(w, 11, 11) << 4 | bits_get(w, 5, 3) << 1,
			 12);
}

static int64_t imm_cb(uint32_t w)
{
	return bits_sign(bits_get(w, 12, 12) << 8 | bits_get(w, 6, 5) << 6 |
				 bits_get(w, 2, 2) << 5 | bits_get(w, 11, 10) << 3 |
				 bits_get(w, 4, 3) << 1,
			 9);
}

/* Scalar FP accesses have the widths 1..4 in funct3; the other values are vector ones. */
static uint8_t fp_access(uint32_t w, uint8_t scalar)
{
	unsigned width = (unsigned)bits_get(w, 14, 12);

	return width >= 1 && width <= 4 ? scalar : QUIPU_INSN_VECTOR;
}

static uint8_t amo(uint32_t w)
{
	switch (bits_get(w, 31, 27)) {
	case 2: return QUIPU_INSN_LR;
	case 3: return QUIPU_INSN_SC;
	default: return QUIPU_INSN_AMO;
	}
}

static uint8_t op(uint32_t w)
{
	if (bits_get(w, 31, 25) != 1) /* M extension */
		return ALU;
	return bits_get(w, 14, 14) ? QUIPU_INSN_DIV : QUIPU_INSN_MUL;
}

static uint8_t op_fp(uint32_t w)
{
	uint8_t class = op_fp_arithmetic[bits_get(w, 31, 27)];

	return class ? class : QUIPU_INSN_FOTHER;
}

static void system_insn(struct decoded *d, uint32_t w)
{
	unsigned funct3 = (unsigned)bits_get(w, 14, 12);

	if (w == 0x00000073 || w == 0x00100073) /* ecall, ebreak */
		trap(d, w == 0x00000073);
	else if (funct3 == 0 || funct3 == 4)
		d->class = QUIPU_INSN_SYSTEM;
	else
		d->class = QUIPU_INSN_CSR;
}

static void special_32(struct decoded *d, unsigned what, uint32_t w, uint64_t pc)
{
	unsigned rd = (unsigned)bits_get(w, 11, 7);

	switch (what) {
	case S_FMEM_LOAD: d->class = fp_access(w, QUIPU_INSN_FLOAD); break;
	case S_FMEM_STORE: d->class = fp_access(w, QUIPU_INSN_FSTORE); break;
	case S_AMO: d->class = amo(w); break;
	case S_OP:
	case S_OP32: d->class = op(w); break;
	case S_OPFP: d->class = op_fp(w); break;
	case S_BRANCH: branch(d, pc + (uint64_t)imm_b(w)); break;
	case S_JALR: jalr(d, rd, (unsigned)bits_get(w, 19, 15)); break;
	case S_JAL: jal(d, rd, pc + (uint64_t)imm_j(w)); break;
	default: system_insn(d, w); break;
	}
}

/* Quadrant 2, funct3 100: jr, mv, ebreak, jalr, add. */
static void c_regs(struct decoded *d, uint32_t w)
{
	unsigned rs1 = (unsigned)bits_get(w, 11, 7), rs2 = (unsigned)bits_get(w, 6, 2);

	if (rs2)
		d->class = ALU;
	else if (rs1)
		jalr(d, (unsigned)bits_get(w, 12, 12), rs1); /* bit 12: links in x1; else in x0 */
	else if (bits_get(w, 12, 12))
		trap(d, false);
}

static void special_16(struct decoded *d, unsigned what, uint32_t w, uint64_t pc)
{
	switch (what) {
	case S_C_ADDI4SPN:
		if (!w)
			trap(d, false);
		break;
	case S_C_BYTES: d->class = bits_get(w, 11, 11) ? QUIPU_INSN_STORE : QUIPU_INSN_LOAD; break;
	case S_C_ALU:
		d->class =
			bits_get(w, 12, 10) == 7 && bits_get(w, 6, 5) == 2 ? QUIPU_INSN_MUL : ALU;
		break;
	case S_C_J: jal(d, 0, pc + (uint64_t)imm_cj(w)); break;
	case S_C_BRANCH: branch(d, pc + (uint64_t)imm_cb(w)); break;
	default: c_regs(d, w); break;
	}
}

/* ---- places and changes ---- */

#define SP 2u

static struct place place(unsigned base, unsigned bytes, int64_t offset)
{
	/* x0 is no register */
	return (struct place){base ? (uint8_t)(base + 1) : 0, (uint8_t)bytes, (int32_t)offset};
}

static struct change change(unsigned rd)
{
	return (struct change){.reg = rd ? (uint8_t)(rd + 1) : CHANGES_NOTHING};
}

static struct change grows(unsigned rd, int64_t by)
{
	return rd ? (struct change){.reg = (uint8_t)(rd + 1), .by_known = true, .by = (int32_t)by}
		  : change(0);
}

static int64_t imm_i(uint32_t w)
{
	return bits_sign(bits_get(w, 31, 20), 12);
}

static int64_t imm_s(uint32_t w)
{
	return bits_sign(bits_get(w, 31, 25) << 5 | bits_get(w, 11, 7), 12);
}

/* OP-FP that writes a general register: comparisons, conversions to integers, moves, classes. */
static bool to_general(uint32_t w)
{
	unsigned funct5 = (unsigned)bits_get(w, 31, 27);

	return funct5 == 0x14 || funct5 == 0x18 || funct5 == 0x1c;
}

static void effects_32(struct decoded *d, uint32_t w)
{
	unsigned rd = (unsigned)bits_get(w, 11, 7), rs1 = (unsigned)bits_get(w, 19, 15),
		 funct3 = (unsigned)bits_get(w, 14, 12);

	switch (bits_get(w, 6, 2)) {
	case 0x00: /* LOAD */
		d->place = place(rs1, funct3 & 3, imm_i(w));
		d->change = change(rd);
		return;
	case 0x01: /* LOAD-FP; vectors are not known */
	case 0x09:
		if (funct3 < 1 || funct3 > 3)
			return;
		d->place = place(rs1, funct3, bits_get(w, 5, 5) ? imm_s(w) : imm_i(w));
		d->change = change(0);
		return;
	case 0x08: /* STORE */
		d->place = place(rs1, funct3 & 3, imm_s(w));
		d->change = change(0);
		return;
	case 0x04: /* OP-IMM: addi */
		d->change = !funct3 && rd == rs1 ? grows(rd, imm_i(w)) : change(rd);
		return;
	case 0x05:
	case 0x06:
	case 0x0c:
	case 0x0d:
	case 0x0e: d->change = change(rd); return;
	case 0x10:
	case 0x11:
	case 0x12:
	case 0x13: d->change = change(0); return; /* FMA */
	case 0x14: d->change = change(to_general(w) ? rd : 0); return;
	}
}

/* Registers x8 to x15 have three bits there. */
static unsigned short_register(uint32_t w, unsigned low)
{
	return 8 + (unsigned)(w >> low & 7);
}

/* Quadrant 0: a register of the short ones and a scaled offset. */
static void effects_16_0(struct decoded *d, uint32_t w)
{
	unsigned funct3 = (unsigned)bits_get(w, 15, 13), rd = short_register(w, 2);
	unsigned bytes = funct3 == 2 || funct3 == 6 ? 2 : 3;
	int64_t offset = (int64_t)(bits_get(w, 12, 10) << 3);

	if (!funct3)
		d->change = change(rd);
	if (!funct3 || funct3 == 4)
		return;
	offset |= bytes == 2 ? (int64_t)(bits_get(w, 6, 6) << 2 | bits_get(w, 5, 5) << 6)
			     : (int64_t)(bits_get(w, 6, 5) << 6);
	d->place = place(short_register(w, 7), bytes, offset);
	d->change = change(funct3 == 2 || funct3 == 3 ? rd : 0);
}

static void effects_16_1(struct decoded *d, uint32_t w)
{
	unsigned funct3 = (unsigned)bits_get(w, 15, 13), rd = (unsigned)bits_get(w, 11, 7);
	int64_t imm = bits_sign(bits_get(w, 12, 12) << 5 | bits_get(w, 6, 2), 6);

	if (!funct3)
		d->change = grows(rd, imm);
	else if (funct3 == 3 && rd == SP)
		d->change =
			grows(SP, bits_sign(bits_get(w, 12, 12) << 9 | bits_get(w, 4, 3) << 7 |
						    bits_get(w, 5, 5) << 6 |
						    bits_get(w, 2, 2) << 5 | bits_get(w, 6, 6) << 4,
					    10));
	else if (funct3 < 4)
		d->change = change(rd);
	else if (funct3 == 4)
		d->change = change(short_register(w, 7));
}

/* Quadrant 2: from the stack pointer. */
static void effects_16_2(struct decoded *d, uint32_t w)
{
	unsigned funct3 = (unsigned)bits_get(w, 15, 13), rd = (unsigned)bits_get(w, 11, 7);
	bool store = funct3 > 4, word = funct3 == 2 || funct3 == 6;
	uint64_t offset;

	if (!funct3 || (funct3 == 4 && bits_get(w, 6, 2)))
		d->change = change(rd);
	if (!funct3 || funct3 == 4)
		return;
	if (store)
		offset = word ? bits_get(w, 12, 9) << 2 | bits_get(w, 8, 7) << 6
			      : bits_get(w, 12, 10) << 3 | bits_get(w, 9, 7) << 6;
	else
		offset = bits_get(w, 12, 12) << 5 |
			 (word ? bits_get(w, 6, 4) << 2 | bits_get(w, 3, 2) << 6
			       : bits_get(w, 6, 5) << 3 | bits_get(w, 4, 2) << 6);
	d->place = place(SP, word ? 2 : 3, (int64_t)offset);
	d->change = change(store || funct3 == 1 ? 0 : rd);
}

static void effects(struct decoded *d, uint32_t w)
{
	static void (*const quadrant[4])(struct decoded *, uint32_t) = {effects_16_0, effects_16_1,
									effects_16_2, effects_32};

	quadrant[w & 3](d, w);
}

void decode_riscv64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *d)
{
	bool wide = len >= 2 && (bytes[0] & 3) == 3;
	unsigned what;
	uint32_t w;

	*d = (struct decoded){.class = ALU, .flow = FLOW_NONE};
	if (len < 2 || (wide && len < 4))
		return;
	d->size = wide ? 4 : 2;
	w = wide ? bits_le32(bytes) : bits_le16(bytes);
	what = wide ? major[bits_get(w, 6, 2)] : compressed[w & 3][bits_get(w, 15, 13)];
	if (what < S_FIRST)
		d->class = (uint8_t)what;
	else if (wide)
		special_32(d, what, w, pc);
	else
		special_16(d, what, w, pc);
	effects(d, w);
}
