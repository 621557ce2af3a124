/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SPARC V9 instructions: class, flow and delay. The SPARC Architecture Manual, version 9: appendix
 * A for the instructions, appendix E for the opcode maps; VIS and the multiply-adds of later
 * processors by their opcode only.
 *
 * Memory order is big-endian. It does not check that an encoding is legal. Places (decode.h) have
 * the accesses of one register, of up to 8 bytes, by a register and a constant; not those of an
 * alternate address space.
 */
#include "decode.h"

#include <stdbool.h>

#include <quipu/bits.h>

#define ALU    QUIPU_INSN_ALU
#define LOAD   QUIPU_INSN_LOAD
#define STORE  QUIPU_INSN_STORE
#define FLOAD  QUIPU_INSN_FLOAD
#define FSTORE QUIPU_INSN_FSTORE

/* Which general registers an instruction writes. */
enum writes {
	W_UNKNOWN = 0,
	W_NOTHING,
	W_RD,
	W_SUM, /* rd, the sum of rs1 and the second operand */
	W_DIFFERENCE,
};

/*
 * op = 3, by op3. 10 to 1F and 30 to 3F are those of an alternate address space. The last column is
 * log2 of the bytes + 1, of those that have a place.
 */
static const struct {
	uint8_t class, writes, access;
} memory[64] = {
	[0x00] = {LOAD, W_RD, 3}, /* lduw, ldub, lduh, ldd; stw, stb, sth, std */
	[0x01] = {LOAD, W_RD, 1},
	[0x02] = {LOAD, W_RD, 2},
	[0x03] = {LOAD, W_UNKNOWN, 0},
	[0x04] = {STORE, W_NOTHING, 3},
	[0x05] = {STORE, W_NOTHING, 1},
	[0x06] = {STORE, W_NOTHING, 2},
	[0x07] = {STORE, W_NOTHING, 0},
	[0x08] = {LOAD, W_RD, 3}, /* ldsw, ldsb, ldsh, ldx */
	[0x09] = {LOAD, W_RD, 1},
	[0x0a] = {LOAD, W_RD, 2},
	[0x0b] = {LOAD, W_RD, 4},
	[0x0d] = {QUIPU_INSN_AMO, W_RD, 0}, /* ldstub, stx, swap */
	[0x0e] = {STORE, W_NOTHING, 4},
	[0x0f] = {QUIPU_INSN_AMO, W_RD, 0},
	[0x10] = {LOAD, W_RD, 0},
	[0x11] = {LOAD, W_RD, 0},
	[0x12] = {LOAD, W_RD, 0},
	[0x13] = {LOAD, W_UNKNOWN, 0},
	[0x14] = {STORE, W_NOTHING, 0},
	[0x15] = {STORE, W_NOTHING, 0},
	[0x16] = {STORE, W_NOTHING, 0},
	[0x17] = {STORE, W_NOTHING, 0},
	[0x18] = {LOAD, W_RD, 0},
	[0x19] = {LOAD, W_RD, 0},
	[0x1a] = {LOAD, W_RD, 0},
	[0x1b] = {LOAD, W_RD, 0},
	[0x1d] = {QUIPU_INSN_AMO, W_RD, 0},
	[0x1e] = {STORE, W_NOTHING, 0},
	[0x1f] = {QUIPU_INSN_AMO, W_RD, 0},
	[0x20] = {FLOAD, W_NOTHING, 3}, /* ldf, ldfsr, ldqf, lddf; stf, stfsr, stqf, stdf */
	[0x21] = {FLOAD, W_NOTHING, 0},
	[0x22] = {FLOAD, W_NOTHING, 0},
	[0x23] = {FLOAD, W_NOTHING, 4},
	[0x24] = {FSTORE, W_NOTHING, 3},
	[0x25] = {FSTORE, W_NOTHING, 0},
	[0x26] = {FSTORE, W_NOTHING, 0},
	[0x27] = {FSTORE, W_NOTHING, 4},
	[0x2d] = {ALU, W_NOTHING, 0}, /* prefetch */
	[0x30] = {FLOAD, W_NOTHING, 0},
	[0x32] = {FLOAD, W_NOTHING, 0},
	[0x33] = {FLOAD, W_NOTHING, 0},
	[0x34] = {FSTORE, W_NOTHING, 0},
	[0x36] = {FSTORE, W_NOTHING, 0},
	[0x37] = {FSTORE, W_NOTHING, 0},
	[0x3c] = {QUIPU_INSN_AMO, W_RD, 0}, /* casa */
	[0x3d] = {ALU, W_NOTHING, 0},	    /* prefetcha */
	[0x3e] = {QUIPU_INSN_AMO, W_RD, 0}, /* casxa */
};

/* op = 2, by op3. */
static const struct {
	uint8_t class, writes;
} arithmetic[64] = {
	/* add, and, or, xor, sub, andn, orn, xnor, addc, mulx, umul, smul, subc, udivx, udiv, sdiv
	 */
	[0x00] = {ALU, W_SUM},
	[0x01] = {ALU, W_RD},
	[0x02] = {ALU, W_RD},
	[0x03] = {ALU, W_RD},
	[0x04] = {ALU, W_DIFFERENCE},
	[0x05] = {ALU, W_RD},
	[0x06] = {ALU, W_RD},
	[0x07] = {ALU, W_RD},
	[0x08] = {ALU, W_RD},
	[0x09] = {QUIPU_INSN_MUL, W_RD},
	[0x0a] = {QUIPU_INSN_MUL, W_RD},
	[0x0b] = {QUIPU_INSN_MUL, W_RD},
	[0x0c] = {ALU, W_RD},
	[0x0d] = {QUIPU_INSN_DIV, W_RD},
	[0x0e] = {QUIPU_INSN_DIV, W_RD},
	[0x0f] = {QUIPU_INSN_DIV, W_RD},
	/* those that set the codes */
	[0x10] = {ALU, W_SUM},
	[0x11] = {ALU, W_RD},
	[0x12] = {ALU, W_RD},
	[0x13] = {ALU, W_RD},
	[0x14] = {ALU, W_DIFFERENCE},
	[0x15] = {ALU, W_RD},
	[0x16] = {ALU, W_RD},
	[0x17] = {ALU, W_RD},
	[0x18] = {ALU, W_RD},
	[0x1a] = {QUIPU_INSN_MUL, W_RD},
	[0x1b] = {QUIPU_INSN_MUL, W_RD},
	[0x1c] = {ALU, W_RD},
	[0x1e] = {QUIPU_INSN_DIV, W_RD},
	[0x1f] = {QUIPU_INSN_DIV, W_RD},
	/* tagged, mulscc, shifts */
	[0x20] = {ALU, W_RD},
	[0x21] = {ALU, W_RD},
	[0x22] = {ALU, W_RD},
	[0x23] = {ALU, W_RD},
	[0x24] = {ALU, W_RD},
	[0x25] = {ALU, W_RD},
	[0x26] = {ALU, W_RD},
	[0x27] = {ALU, W_RD},
	/* rd */
	[0x28] = {QUIPU_INSN_CSR, W_RD},
	[0x29] = {QUIPU_INSN_CSR, W_UNKNOWN},
	[0x2a] = {QUIPU_INSN_CSR, W_UNKNOWN},
	[0x2b] = {QUIPU_INSN_SYSTEM, W_UNKNOWN},
	/* sdivx, popc */
	[0x2d] = {QUIPU_INSN_DIV, W_RD},
	[0x2e] = {ALU, W_RD},
	/* wr */
	[0x30] = {QUIPU_INSN_CSR, W_NOTHING},
	[0x31] = {QUIPU_INSN_SYSTEM, W_UNKNOWN},
	[0x32] = {QUIPU_INSN_CSR, W_UNKNOWN},
	[0x33] = {QUIPU_INSN_CSR, W_UNKNOWN},
	/* floating point */
	[0x34] = {ALU, W_NOTHING},
	[0x35] = {QUIPU_INSN_FOTHER, W_NOTHING},
	[0x36] = {QUIPU_INSN_VECTOR, W_UNKNOWN},
	[0x37] = {QUIPU_INSN_FMA, W_UNKNOWN},
	/* jmpl */
	[0x38] = {ALU, W_RD},
	/* flush */
	[0x3b] = {QUIPU_INSN_FENCE, W_NOTHING},
	[0x3e] = {QUIPU_INSN_SYSTEM, W_UNKNOWN},
};

static void flow(struct decoded *d, uint8_t class, uint8_t kind, uint8_t delay, uint64_t target)
{
	d->class = class;
	d->flow = kind;
	d->delay = delay;
	d->target = target;
}

/* Conditional branches, with the two conditions that are none. */
static void branch(struct decoded *d, uint32_t w, uint64_t pc, uint64_t target, bool has_never)
{
	bool annul = bits_get(w, 29, 29);
	unsigned condition = (unsigned)bits_get(w, 28, 25);

	if (!has_never || (condition & 7))
		flow(d, QUIPU_INSN_BRANCH, FLOW_COND, annul ? DELAY_TAKEN : DELAY_ALWAYS, target);
	else if (condition)
		flow(d, QUIPU_INSN_JUMP, FLOW_JUMP, annul ? DELAY_NEVER : DELAY_ALWAYS, target);
	else if (annul)
		flow(d, QUIPU_INSN_JUMP, FLOW_JUMP, DELAY_NEVER, pc + 8);
	else
		d->class = QUIPU_INSN_JUMP; /* never taken, and its slot is the next instruction
					       like any other */
}

static void op_0(struct decoded *d, uint32_t w, uint64_t pc)
{
	uint64_t short_target = pc + 4 * (uint64_t)bits_sign(w & bits_mask(19), 19);
	uint64_t long_target = pc + 4 * (uint64_t)bits_sign(w & bits_mask(22), 22);
	int64_t d16 = bits_sign(bits_get(w, 21, 20) << 14 | bits_get(w, 13, 0), 16);

	switch (bits_get(w, 24, 22)) {
	case 0: d->class = QUIPU_INSN_TRAP; break;
	case 1:
	case 5: branch(d, w, pc, short_target, true); break;
	case 2:
	case 6: branch(d, w, pc, long_target, true); break;
	case 3: branch(d, w, pc, pc + 4 * (uint64_t)d16, false); break;
	}
}

static void jmpl(struct decoded *d, uint32_t w)
{
	unsigned rd = (unsigned)bits_get(w, 29, 25), rs1 = (unsigned)bits_get(w, 18, 14),
		 offset = w & 0x1fff;
	bool back = rd == 0 && bits_get(w, 13, 13) && (rs1 == 15 || rs1 == 31) &&
		    (offset == 8 || offset == 12);

	if (rd == 15)
		flow(d, QUIPU_INSN_ICALL, FLOW_ICALL, DELAY_ALWAYS, 0);
	else if (back)
		flow(d, QUIPU_INSN_RET, FLOW_RET, DELAY_ALWAYS, 0);
	else
		flow(d, QUIPU_INSN_IJUMP, FLOW_IJUMP, DELAY_ALWAYS, 0);
}

static uint8_t fp_class(uint32_t w)
{
	unsigned opf = (unsigned)bits_get(w, 13, 5);

	if ((opf >= 0x41 && opf <= 0x43) || (opf >= 0x45 && opf <= 0x47))
		return QUIPU_INSN_FADD;
	if ((opf >= 0x49 && opf <= 0x4b) || opf == 0x69 || opf == 0x6e)
		return QUIPU_INSN_FMUL;
	if ((opf >= 0x4d && opf <= 0x4f) || (opf >= 0x29 && opf <= 0x2b))
		return QUIPU_INSN_FDIV;
	return QUIPU_INSN_FOTHER;
}

static void op_2(struct decoded *d, uint32_t w)
{
	unsigned op3 = (unsigned)bits_get(w, 24, 19);

	d->class = arithmetic[op3].class;
	if (op3 == 0x39 || op3 == 0x3c || op3 == 0x3d ||
	    op3 == 0x2b) /* return, save, restore, flushw */
		d->access = INSN_RESTARTS;
	switch (op3) {
	case 0x28:
		if (bits_get(w, 18, 14) == 15) /* membar */
			d->class = QUIPU_INSN_FENCE;
		break;
	case 0x34: d->class = fp_class(w); break;
	case 0x38: jmpl(d, w); break;
	case 0x39: flow(d, QUIPU_INSN_RET, FLOW_RET, DELAY_ALWAYS, 0); break;
	case 0x3a: flow(d, QUIPU_INSN_SYSTEM, FLOW_SYSCALL, DELAY_NONE, 0); break;
	}
}

/* ---- operands ---- */

#define R(w, high, low) AHEAD_R((uint8_t)bits_get(w, high, low))
#define F(w, high, low) AHEAD_F((uint8_t)bits_get(w, high, low))
#define ICC_OF(op3)	(((op3)&0x30) == 0x10) /* op = 2: addcc and its like set the codes */

static bool reads_codes(unsigned op2)
{
	return op2 == 1 || op2 == 2 || op2 == 5 || op2 == 6;
}

/* Registers that hold data; a branch that tests a register does so by source[0]. */
static void operands_0(struct ahead_operands *o, uint32_t w)
{
	unsigned op2 = (unsigned)bits_get(w, 24, 22);

	if (op2 == 4)
		o->dest = R(w, 29, 25);
	else if (op2 == 3)
		o->source[0] = R(w, 18, 14);
	else if (reads_codes(op2))
		o->source[0] = AHEAD_CC;
}

static void operands_2(struct ahead_operands *o, uint32_t w)
{
	unsigned op3 = (unsigned)bits_get(w, 24, 19);

	if (op3 == 0x34 || op3 == 0x35 || op3 == 0x36 || op3 == 0x37) {
		o->dest = op3 == 0x35 && (bits_get(w, 13, 5) & 0x50) == 0x50 ? (uint8_t)AHEAD_CC
									     : F(w, 29, 25);
		o->source[0] = F(w, 18, 14);
		o->source[1] = F(w, 4, 0);
		return;
	}
	o->source[0] = R(w, 18, 14);
	o->source[1] = bits_get(w, 13, 13) ? 0 : R(w, 4, 0);
	o->dest = R(w, 29, 25);
	if (ICC_OF(op3))
		o->dest = AHEAD_CC;
	if (op3 == 0x2c || op3 == 0x2f)
		o->source[2] = AHEAD_CC;
	if (op3 == 0x3c || op3 == 0x3d || op3 == 0x39)
		o->window = op3 == 0x3c ? AHEAD_SAVE : AHEAD_RESTORE;
}

static void operands_3(struct ahead_operands *o, uint32_t w, uint8_t class)
{
	bool floats = class == FLOAD || class == FSTORE;
	uint8_t rd = floats ? F(w, 29, 25) : R(w, 29, 25);

	o->source[0] = R(w, 18, 14);
	o->source[1] = bits_get(w, 13, 13) ? 0 : R(w, 4, 0);
	if (class == STORE || class == FSTORE)
		o->source[2] = rd;
	else
		o->dest = rd;
}

static void operands(struct decoded *d, uint32_t w)
{
	unsigned op3 = (unsigned)bits_get(w, 24, 19);

	switch (w >> 30) {
	case 0: operands_0(&d->operands, w); break;
	case 1: d->operands.dest = AHEAD_R(15); break;
	case 2:
		operands_2(&d->operands, w);
		d->flush = op3 == 0x3b;
		d->barrier = op3 == 0x28 && bits_get(w, 18, 14) == 15;
		break;
	default: operands_3(&d->operands, w, d->class);
	}
}

/* ---- where it accesses, and what it changes ---- */

static bool by_constant(uint32_t w)
{
	return bits_get(w, 13, 13) || !bits_get(w, 12, 0); /* no second register, or %g0 */
}

static int32_t constant(uint32_t w)
{
	return bits_get(w, 13, 13) ? (int32_t)bits_sign(w & 0x1fff, 13) : 0;
}

static struct place place(uint32_t w)
{
	unsigned access = memory[bits_get(w, 24, 19)].access, rs1 = (unsigned)bits_get(w, 18, 14);

	if (!access || !rs1 || !by_constant(w))
		return (struct place){.base = 0};
	return (struct place){
		.base = (uint8_t)(rs1 + 1), .bytes = (uint8_t)(access - 1), .offset = constant(w)};
}

/* VIS: arrays and alignaddr write a general register; from faligndata to the logical ones none
 * does. The edges do too, but QEMU 7.2 may cut off the low bits of their sources with that. */
static unsigned writes_vis(uint32_t w)
{
	unsigned opf = (unsigned)bits_get(w, 13, 5);

	if (opf >= 0x48 && opf <= 0x7f)
		return W_NOTHING;
	return opf >= 0x10 && opf <= 0x1a && !(opf & 1) ? W_RD : W_UNKNOWN;
}

static unsigned writes(uint32_t w)
{
	unsigned op2 = (unsigned)bits_get(w, 24, 22), op3 = (unsigned)bits_get(w, 24, 19);

	if (w >> 30 == 3)
		return memory[op3].writes;
	if (w >> 30 == 2)
		return op3 == 0x36 ? writes_vis(w) : arithmetic[op3].writes;
	if (op2 == 4) /* sethi */
		return W_RD;
	return op2 && op2 != 7 ? W_NOTHING : W_UNKNOWN;
}

static struct change change(uint32_t w)
{
	unsigned kind = writes(w), rd = (unsigned)bits_get(w, 29, 25);
	int32_t by = constant(w);

	if (w >> 30 == 1) /* call */
		return (struct change){.reg = 15 + 1};
	if (kind == W_UNKNOWN) /* a new window too */
		return (struct change){.reg = CHANGES_UNKNOWN};
	if (kind == W_NOTHING || !rd)
		return (struct change){.reg = CHANGES_NOTHING};
	if (kind == W_RD || rd != bits_get(w, 18, 14) || !by_constant(w))
		return (struct change){.reg = (uint8_t)(rd + 1)};
	return (struct change){
		.reg = (uint8_t)(rd + 1), .by_known = true, .by = kind == W_SUM ? by : -by};
}

void decode_sparc64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *d)
{
	uint32_t w;

	*d = (struct decoded){.class = ALU, .flow = FLOW_NONE};
	if (len < 4)
		return;
	d->size = 4;
	w = bits_be32(bytes);
	switch (w >> 30) {
	case 0: op_0(d, w, pc); break;
	case 1:
		flow(d, QUIPU_INSN_CALL, FLOW_CALL, DELAY_ALWAYS,
		     pc + 4 * (uint64_t)bits_sign(w & bits_mask(30), 30));
		break;
	case 2: op_2(d, w); break;
	default: d->class = memory[bits_get(w, 24, 19)].class;
	}
	operands(d, w);
	if (w >> 30 == 3)
		d->place = place(w);
	d->change = change(w);
}
