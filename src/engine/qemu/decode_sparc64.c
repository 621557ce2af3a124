/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SPARC V9 instructions: class, flow and delay. The SPARC Architecture Manual, version 9: appendix
 * A for the instructions, appendix E for the opcode maps; VIS and the multiply-adds of later
 * processors by their opcode only.
 *
 * Memory order is big-endian. It does not check that an encoding is legal.
 */
#include "decode.h"

#include <stdbool.h>

#include <quipu/bits.h>

#define ALU    QUIPU_INSN_ALU
#define LOAD   QUIPU_INSN_LOAD
#define STORE  QUIPU_INSN_STORE
#define FLOAD  QUIPU_INSN_FLOAD
#define FSTORE QUIPU_INSN_FSTORE

/* op = 3, by op3. 10 to 1F and 30 to 3F are those of an alternate address space. */
static const uint8_t memory[64] = {
	[0x00] = LOAD,		 [0x01] = LOAD,	  [0x02] = LOAD,
	[0x03] = LOAD,		 [0x04] = STORE,  [0x05] = STORE,
	[0x06] = STORE,		 [0x07] = STORE,  [0x08] = LOAD,
	[0x09] = LOAD,		 [0x0a] = LOAD,	  [0x0b] = LOAD,
	[0x0d] = QUIPU_INSN_AMO, [0x0e] = STORE,  [0x0f] = QUIPU_INSN_AMO,
	[0x10] = LOAD,		 [0x11] = LOAD,	  [0x12] = LOAD,
	[0x13] = LOAD,		 [0x14] = STORE,  [0x15] = STORE,
	[0x16] = STORE,		 [0x17] = STORE,  [0x18] = LOAD,
	[0x19] = LOAD,		 [0x1a] = LOAD,	  [0x1b] = LOAD,
	[0x1d] = QUIPU_INSN_AMO, [0x1e] = STORE,  [0x1f] = QUIPU_INSN_AMO,
	[0x20] = FLOAD,		 [0x21] = FLOAD,  [0x22] = FLOAD,
	[0x23] = FLOAD,		 [0x24] = FSTORE, [0x25] = FSTORE,
	[0x26] = FSTORE,	 [0x27] = FSTORE, [0x30] = FLOAD,
	[0x32] = FLOAD,		 [0x33] = FLOAD,  [0x34] = FSTORE,
	[0x36] = FSTORE,	 [0x37] = FSTORE, [0x3c] = QUIPU_INSN_AMO,
	[0x3e] = QUIPU_INSN_AMO, /* casa, casxa */
};

/* op = 2, by op3, where it is more than an ALU operation. */
static const uint8_t arithmetic[64] = {
	[0x09] = QUIPU_INSN_MUL, [0x0a] = QUIPU_INSN_MUL,    [0x0b] = QUIPU_INSN_MUL,
	[0x1a] = QUIPU_INSN_MUL, [0x1b] = QUIPU_INSN_MUL,    [0x0d] = QUIPU_INSN_DIV,
	[0x0e] = QUIPU_INSN_DIV, [0x0f] = QUIPU_INSN_DIV,    [0x1e] = QUIPU_INSN_DIV,
	[0x1f] = QUIPU_INSN_DIV, [0x2d] = QUIPU_INSN_DIV,    [0x28] = QUIPU_INSN_CSR,
	[0x29] = QUIPU_INSN_CSR, [0x2a] = QUIPU_INSN_CSR,    [0x2b] = QUIPU_INSN_SYSTEM,
	[0x30] = QUIPU_INSN_CSR, [0x31] = QUIPU_INSN_SYSTEM, [0x32] = QUIPU_INSN_CSR,
	[0x33] = QUIPU_INSN_CSR, [0x35] = QUIPU_INSN_FOTHER, [0x36] = QUIPU_INSN_VECTOR,
	[0x37] = QUIPU_INSN_FMA, [0x3b] = QUIPU_INSN_FENCE,  [0x3e] = QUIPU_INSN_SYSTEM,
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

	d->class = arithmetic[op3];
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
	default: d->class = memory[bits_get(w, 24, 19)];
	}
	operands(d, w);
}
