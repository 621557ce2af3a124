/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 instructions: class, flow, length, and whether they load or store. Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2: chapter 2 for prefixes, ModRM, VEX and EVEX;
 * appendix A for the opcode maps.
 *
 * An instruction of this set may compute, load and store at once, so its class (quipu/signal.h)
 * says what it computes and INSN_LOAD, INSN_STORE beside it what it does to memory: at most one of
 * each for an instruction, as Intel's own events of retired loads and stores have it. A repeated
 * string instruction is one instruction; its accesses and cycles come once for each iteration
 * (engine sheet 7.3, REP).
 *
 * Where it accesses and what it changes (struct place, struct change) it says of what compilers
 * make of general code and SSE, in the sizes in which QEMU accesses (16 bytes may be two accesses
 * of 8, in ascending order). Unsaid stay among others VEX, MMX and all that comes after SSE2.
 *
 * It does not check that an encoding is legal, and of EVEX it knows the length and whether memory
 * is read.
 */
#include "decode.h"

#include <stdbool.h>
#include <string.h>

#include <quipu/bits.h>

#include "decode_x86_64_effects.h"

#define ALU QUIPU_INSN_ALU

/* What an opcode has; the accesses of a ModRM operand count only when it is memory. */
enum attribute {
	M = 0x01,     /* a ModRM byte */
	R = 0x02 | M, /* its operand is read */
	W = 0x04 | M, /* written */
	RW = R | W,
	L = 0x08,    /* loads by itself (stack, string, table) */
	S = 0x10,    /* stores by itself */
	MOVE = 0x20, /* does nothing else */
	I8 = 0x40,   /* an immediate of one byte */
	IZ = 0x80,   /* of four bytes, or two */
};

#define ARITHMETIC(base)                                                                           \
	[base] = RW, [base + 1] = RW, [base + 2] = R, [base + 3] = R, [base + 4] = I8,             \
	[base + 5] = IZ

static const uint8_t one_byte[256] = {
	ARITHMETIC(0x00),
	ARITHMETIC(0x08),
	ARITHMETIC(0x10),
	ARITHMETIC(0x18),
	ARITHMETIC(0x20),
	ARITHMETIC(0x28),
	ARITHMETIC(0x30),
	[0x38] = R,
	[0x39] = R,
	[0x3a] = R,
	[0x3b] = R,
	[0x3c] = I8,
	[0x3d] = IZ,
	[0x50 ... 0x57] = S | MOVE,
	[0x58 ... 0x5f] = L | MOVE,
	[0x63] = R | MOVE,
	[0x68] = S | MOVE | IZ,
	[0x69] = R | IZ,
	[0x6a] = S | MOVE | I8,
	[0x6b] = R | I8,
	[0x6c] = S,
	[0x6d] = S,
	[0x6e] = L,
	[0x6f] = L,
	[0x70 ... 0x7f] = I8,
	[0x80] = RW | I8,
	[0x81] = RW | IZ,
	[0x83] = RW | I8,
	[0x84] = R,
	[0x85] = R,
	[0x86] = RW,
	[0x87] = RW,
	[0x88] = W | MOVE,
	[0x89] = W | MOVE,
	[0x8a] = R | MOVE,
	[0x8b] = R | MOVE,
	[0x8c] = W | MOVE,
	[0x8d] = M,
	[0x8e] = R,
	[0x8f] = W | L,
	[0x9c] = S,
	[0x9d] = L,
	[0xa0] = L | MOVE,
	[0xa1] = L | MOVE,
	[0xa2] = S | MOVE,
	[0xa3] = S | MOVE,
	[0xa4] = L | S,
	[0xa5] = L | S,
	[0xa6] = L,
	[0xa7] = L,
	[0xa8] = I8,
	[0xa9] = IZ,
	[0xaa] = S,
	[0xab] = S,
	[0xac] = L,
	[0xad] = L,
	[0xae] = L,
	[0xaf] = L,
	[0xb0 ... 0xb7] = I8,
	[0xb8 ... 0xbf] = IZ,
	[0xc0] = RW | I8,
	[0xc1] = RW | I8,
	[0xc2] = L,
	[0xc3] = L,
	[0xc6] = W | MOVE | I8,
	[0xc7] = W | MOVE | IZ,
	[0xc8] = S | I8,
	[0xc9] = L,
	[0xca] = L,
	[0xcb] = L,
	[0xcd] = I8,
	[0xd0 ... 0xd3] = RW,
	[0xd7] = L,
	[0xd8 ... 0xdf] = M,
	[0xe0 ... 0xe7] = I8,
	[0xe8] = S | IZ,
	[0xe9] = IZ,
	[0xeb] = I8,
	[0xf6] = RW,
	[0xf7] = RW,
	[0xfe] = RW,
	[0xff] = RW,
};

/* After 0F, and map 1 of VEX. */
static const uint8_t two_byte[256] = {
	[0x00] = M,	     [0x01] = M,	   [0x02] = R,
	[0x03] = R,	     [0x0d] = M,	   [0x0f] = R | I8,
	[0x10] = R | MOVE,   [0x11] = W | MOVE,	   [0x12] = R | MOVE,
	[0x13] = W | MOVE,   [0x14] = R,	   [0x15] = R,
	[0x16] = R | MOVE,   [0x17] = W | MOVE,	   [0x18 ... 0x1f] = M,
	[0x20 ... 0x23] = M, [0x28] = R | MOVE,	   [0x29] = W | MOVE,
	[0x2a] = R,	     [0x2b] = W | MOVE,	   [0x2c ... 0x2f] = R,
	[0x40 ... 0x4f] = R, [0x50] = M,	   [0x51 ... 0x6d] = R,
	[0x6e] = R | MOVE,   [0x6f] = R | MOVE,	   [0x70 ... 0x73] = R | I8,
	[0x74 ... 0x76] = R, [0x78 ... 0x7d] = R,  [0x7e] = W | MOVE,
	[0x7f] = W | MOVE,   [0x80 ... 0x8f] = IZ, [0x90 ... 0x9f] = W,
	[0xa0] = S | MOVE,   [0xa1] = L | MOVE,	   [0xa3] = R,
	[0xa4] = RW | I8,    [0xa5] = RW,	   [0xa8] = S | MOVE,
	[0xa9] = L | MOVE,   [0xab] = RW,	   [0xac] = RW | I8,
	[0xad] = RW,	     [0xae] = M,	   [0xaf] = R,
	[0xb0] = RW,	     [0xb1] = RW,	   [0xb2] = R,
	[0xb3] = RW,	     [0xb4] = R,	   [0xb5] = R,
	[0xb6] = R | MOVE,   [0xb7] = R | MOVE,	   [0xb8] = R,
	[0xb9] = M,	     [0xba] = RW | I8,	   [0xbb] = RW,
	[0xbc] = R,	     [0xbd] = R,	   [0xbe] = R | MOVE,
	[0xbf] = R | MOVE,   [0xc0] = RW,	   [0xc1] = RW,
	[0xc2] = R | I8,     [0xc3] = W | MOVE,	   [0xc4] = R | I8,
	[0xc5] = M | I8,     [0xc6] = R | I8,	   [0xc7] = RW,
	[0xd0 ... 0xd5] = R, [0xd6] = W | MOVE,	   [0xd7] = M,
	[0xd8 ... 0xe6] = R, [0xe7] = W | MOVE,	   [0xe8 ... 0xef] = R,
	[0xf0] = R | MOVE,   [0xf1 ... 0xf6] = R,  [0xf7] = M | S,
	[0xf8 ... 0xff] = R,
};

/* Floating point in that map, where it is more than moving bits; by opcode from 50. */
static const uint8_t sse_class[16] = {
	[0x1] = QUIPU_INSN_FDIV,   [0x2] = QUIPU_INSN_FOTHER, [0x3] = QUIPU_INSN_FOTHER,
	[0x4] = QUIPU_INSN_FOTHER, [0x5] = QUIPU_INSN_FOTHER, [0x6] = QUIPU_INSN_FOTHER,
	[0x7] = QUIPU_INSN_FOTHER, [0x8] = QUIPU_INSN_FADD,   [0x9] = QUIPU_INSN_FMUL,
	[0xa] = QUIPU_INSN_FOTHER, [0xb] = QUIPU_INSN_FOTHER, [0xc] = QUIPU_INSN_FADD,
	[0xd] = QUIPU_INSN_FOTHER, [0xe] = QUIPU_INSN_FDIV,   [0xf] = QUIPU_INSN_FOTHER,
};

/* x87, memory operand: by opcode - D8 and ModRM.reg. */
static const uint8_t x87_memory[8][8] = {
	{R, R, R, R, R, R, R, R}, {R, 0, W, W, R, R, W, W}, {R, R, R, R, R, R, R, R},
	{R, W, W, W, 0, R, 0, W}, {R, R, R, R, R, R, R, R}, {R, W, W, W, R, 0, W, W},
	{R, R, R, R, R, R, R, R}, {R, W, W, W, R, R, W, W},
};

/* 0F AE, memory operand: fxsave, fxrstor, ldmxcsr, stmxcsr, xsave, xrstor, xsaveopt, clflush. */
static const uint8_t state_memory[8] = {W, R, R, W, RW, R, RW, 0};

/* An instruction being taken apart. */
struct x86 {
	const uint8_t *b;
	unsigned len, at;
	bool cut; /* bytes ran out */
	bool operand16, address32, lock, segment;
	uint8_t repeat; /* F2, F3 or 0 */
	uint8_t rex;
	uint8_t vex; /* 1: VEX, 2: EVEX */
	uint8_t map; /* 0: one byte, 1: 0F, 2: 0F 38, 3: 0F 3A */
	uint8_t opcode, modrm;
	uint8_t attr;
	uint8_t base; /* of a memory operand that is a register and disp, its number + 1; else 0 */
	int32_t disp;
	int64_t imm;
};

static uint8_t next(struct x86 *x)
{
	if (x->at < x->len)
		return x->b[x->at++];
	x->cut = true;
	return 0;
}

static unsigned reg(const struct x86 *x)
{
	return x->modrm >> 3 & 7;
}

static bool in_memory(const struct x86 *x)
{
	return (x->attr & M) && x->modrm < 0xc0;
}

static void prefixes(struct x86 *x)
{
	for (uint8_t c; x->at < x->len; x->at++) {
		c = x->b[x->at];
		if (c == 0x66)
			x->operand16 = true;
		else if (c == 0x67)
			x->address32 = true;
		else if (c == 0xf0)
			x->lock = true;
		else if (c == 0xf2 || c == 0xf3)
			x->repeat = c;
		else if ((c & 0xf0) == 0x40) {
			x->rex = c;
			continue; /* counts only right before the opcode */
		} else if (c == 0x2e || c == 0x36 || c == 0x3e || c == 0x26 || c == 0x64 ||
			   c == 0x65)
			x->segment = true;
		else
			return;
		x->rex = 0;
	}
}

/* C5, C4 and 62: they name the map and stand for the prefixes. */
static void vector_prefix(struct x86 *x, uint8_t first)
{
	static const uint8_t stands_for[4] = {0, 0x66, 0xf3, 0xf2};
	uint8_t a = next(x), pp = a;

	x->vex = first == 0x62 ? 2 : 1;
	x->map = 1;
	if (first != 0xc5) {
		x->map = a & 7;
		pp = next(x);
		x->rex = pp & 0x80 ? 0x48 : 0x40;
	}
	if (first == 0x62)
		next(x);
	if ((pp & 3) == 1)
		x->operand16 = true;
	else if (pp & 3)
		x->repeat = stands_for[pp & 3];
	x->opcode = next(x);
}

static void opcode(struct x86 *x)
{
	uint8_t c = next(x);

	if (c == 0xc4 || c == 0xc5 || c == 0x62) {
		vector_prefix(x, c);
	} else if (c == 0x0f) {
		c = next(x);
		x->map = c == 0x38 ? 2 : c == 0x3a ? 3 : 1;
		x->opcode = x->map > 1 ? next(x) : c;
	} else {
		x->opcode = c;
	}
	switch (x->map) {
	case 0: x->attr = one_byte[x->opcode]; break;
	case 1: x->attr = x->vex && x->opcode == 0x77 ? 0 : two_byte[x->opcode]; break;
	case 3: x->attr = R | I8; break;
	default: x->attr = R;
	}
}

/* The next @n bytes as a number. */
static uint64_t number(struct x86 *x, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)next(x) << 8 * i;
	return v;
}

static void modrm(struct x86 *x)
{
	unsigned mod, base, disp;
	bool index = false;
	uint8_t sib;

	if (!(x->attr & M))
		return;
	x->modrm = next(x);
	mod = x->modrm >> 6;
	base = x->modrm & 7;
	if (mod == 3)
		return;
	if (base == 4) {
		sib = next(x);
		base = sib & 7;
		index = (sib >> 3 & 7) != 4 || x->rex & 2;
	}
	disp = mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
	if (!index && (mod || base != 5)) /* not the next instruction, nor an address */
		x->base = (uint8_t)(base + (x->rex & 1) * 8 + 1);
	if (disp)
		x->disp = (int32_t)bits_sign(number(x, disp), 8 * disp);
}

static unsigned immediate_size(const struct x86 *x)
{
	unsigned z = x->operand16 && !(x->rex & 8) ? 2 : 4;

	if (!x->map && !x->vex) {
		if ((x->opcode & 0xfc) == 0xa0)
			return x->address32 ? 4 : 8;
		if ((x->opcode & 0xf8) == 0xb8 && (x->rex & 8))
			return 8;
		if (x->opcode == 0xc2 || x->opcode == 0xca)
			return 2;
		if (x->opcode == 0xc8)
			return 3;
		if ((x->opcode & 0xfe) == 0xf6 && reg(x) < 2)
			return x->opcode & 1 ? z : 1;
	}
	return x->attr & I8 ? 1 : x->attr & IZ ? z : 0;
}

static void immediate(struct x86 *x)
{
	unsigned n = immediate_size(x);
	uint64_t v = number(x, n);

	x->imm = n && n < 8 ? bits_sign(v, 8 * n) : (int64_t)v;
}

/* ---- what it does ---- */

static void flow(struct decoded *d, uint8_t class, uint8_t kind)
{
	d->class = class;
	d->flow = kind;
}

/* Opcodes of the one-byte map whose ModRM.reg says more. */
static void group(const struct x86 *x, struct decoded *d, unsigned *access)
{
	switch (x->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		if (reg(x) == 7) /* cmp */
			*access &= ~(unsigned)(W & ~M);
		break;
	case 0xf6:
	case 0xf7:
		if (reg(x) < 2 || reg(x) > 3) /* test, mul, div */
			*access &= ~(unsigned)(W & ~M);
		if (reg(x) > 3)
			d->class = reg(x) < 6 ? QUIPU_INSN_MUL : QUIPU_INSN_DIV;
		break;
	case 0xff:
		if (reg(x) > 1)
			*access &= ~(unsigned)(W & ~M);
		if (reg(x) == 2 || reg(x) == 3)
			flow(d, QUIPU_INSN_ICALL, FLOW_ICALL);
		if (reg(x) == 4 || reg(x) == 5)
			flow(d, QUIPU_INSN_IJUMP, FLOW_IJUMP);
		if (reg(x) == 2 || reg(x) == 3 || reg(x) == 6)
			*access |= S;
		break;
	case 0xc6:
	case 0xc7:
		if (reg(x) == 7 && x->modrm == 0xf8) /* xabort, xbegin */
			d->class = QUIPU_INSN_SYSTEM;
		break;
	}
}

/*
 * It moves as long as its count is not 0, so the entry that finds 0 accesses nothing: accesses are
 * those of the repetitions. A search (cmps, scas) mostly ends by what it finds, and then every
 * entry has had its access.
 */
static void repeated(const struct x86 *x, struct decoded *d, unsigned *access)
{
	bool search = (x->opcode & 0xf6) == 0xa6;

	d->flow = FLOW_REP;
	d->again = (uint8_t)((*access & L ? INSN_LOAD : 0u) | (*access & S ? INSN_STORE : 0u));
	if (!search)
		*access = 0;
}

static void one(const struct x86 *x, struct decoded *d, unsigned *access)
{
	uint8_t c = x->opcode;

	group(x, d, access);
	if ((c >= 0x70 && c <= 0x7f) || (c >= 0xe0 && c <= 0xe3))
		flow(d, QUIPU_INSN_BRANCH, FLOW_COND);
	else if (c == 0xeb || c == 0xe9)
		flow(d, QUIPU_INSN_JUMP, FLOW_JUMP);
	else if (c == 0xe8)
		flow(d, QUIPU_INSN_CALL, FLOW_CALL);
	else if (c == 0xc2 || c == 0xc3 || c == 0xca || c == 0xcb)
		flow(d, QUIPU_INSN_RET, FLOW_RET);
	else if (x->repeat && ((c >= 0xa4 && c <= 0xa7) || (c >= 0xaa && c <= 0xaf)))
		repeated(x, d, access);
	else if (c == 0x69 || c == 0x6b)
		d->class = QUIPU_INSN_MUL;
	else if (c == 0xcc || c == 0xcd || c == 0xf1 || c == 0xcf || c == 0xf4 ||
		 (c >= 0xe4 && c <= 0xe7) || (c >= 0xec && c <= 0xef))
		d->class = QUIPU_INSN_SYSTEM;
	else if ((c == 0x86 || c == 0x87) && in_memory(x)) /* always atomic */
		d->class = QUIPU_INSN_AMO;
}

static void x87(const struct x86 *x, struct decoded *d, unsigned *access)
{
	static const uint8_t arithmetic[8] = {QUIPU_INSN_FADD,	 QUIPU_INSN_FMUL, QUIPU_INSN_FOTHER,
					      QUIPU_INSN_FOTHER, QUIPU_INSN_FADD, QUIPU_INSN_FADD,
					      QUIPU_INSN_FDIV,	 QUIPU_INSN_FDIV};
	unsigned op = x->opcode - 0xd8u;

	d->class = QUIPU_INSN_FOTHER;
	if (op == 0 || op == 4 || op == 6 || (op == 2 && in_memory(x)))
		d->class = arithmetic[reg(x)];
	else if (op == 1 && x->modrm == 0xfa)
		d->class = QUIPU_INSN_FDIV; /* fsqrt */
	else if (in_memory(x))
		*access |= MOVE;
	*access |= x87_memory[op][reg(x)];
}

static bool vector_move(uint8_t c)
{
	return (c >= 0x10 && c <= 0x17) || c == 0x28 || c == 0x29 || c == 0x2b || c == 0x6e ||
	       c == 0x6f || c == 0x7e || c == 0x7f || c == 0xd6 || c == 0xe7 || c == 0xf0;
}

static uint8_t class_0f(const struct x86 *x)
{
	uint8_t c = x->opcode;

	if (c == 0xaf)
		return QUIPU_INSN_MUL;
	if (c == 0x00 || c == 0x01 || (c >= 0x06 && c <= 0x09) || (c >= 0x20 && c <= 0x23) ||
	    (c >= 0x30 && c <= 0x35) || c == 0xa2)
		return QUIPU_INSN_SYSTEM;
	if (c == 0x0b || c == 0xb9 || (c == 0xff && !x->vex))
		return QUIPU_INSN_TRAP;
	if (vector_move(c) || c == 0x14 || c == 0x15 || c == 0x50 || c == 0xc2 || c == 0xe6 ||
	    (c >= 0x2a && c <= 0x2f))
		return QUIPU_INSN_FOTHER;
	if (c >= 0x51 && c <= 0x5f)
		return sse_class[c - 0x50];
	if ((c >= 0x60 && c <= 0x76) || (c >= 0x7c && c <= 0x7d) || (c >= 0xc4 && c <= 0xc6) ||
	    c >= 0xd0)
		return QUIPU_INSN_VECTOR;
	return ALU;
}

static void two(const struct x86 *x, struct decoded *d, unsigned *access)
{
	uint8_t c = x->opcode;

	d->class = class_0f(x);
	if (c >= 0x80 && c <= 0x8f && !x->vex) {
		flow(d, QUIPU_INSN_BRANCH, FLOW_COND);
	} else if (c == 0x05 || c == 0x34) {
		flow(d, QUIPU_INSN_SYSTEM, FLOW_SYSCALL);
	} else if (c == 0x7e && x->repeat == 0xf3) {
		*access = R | MOVE;
	} else if (c == 0xae && in_memory(x)) {
		*access = x->repeat ? R : reg(x) == 6 && x->operand16 ? 0 : state_memory[reg(x)];
		d->class = QUIPU_INSN_SYSTEM;
	} else if (c == 0xae) {
		d->class = x->repeat ? QUIPU_INSN_SYSTEM : QUIPU_INSN_FENCE;
	} else if (c == 0xba && reg(x) == 4) {
		*access = R; /* bt */
	} else if (c == 0xc7 && reg(x) != 1) {
		*access = 0; /* rdrand, rdpid */
	} else if (c == 0xf7 && x->vex) {
		*access = S;
	}
}

static void three(const struct x86 *x, struct decoded *d, unsigned *access)
{
	uint8_t c = x->opcode, low = c & 15;

	d->class = c >= 0xf0 ? ALU : QUIPU_INSN_VECTOR;
	if (x->vex && c >= 0x90 && c < 0xc0 && low >= 6)
		d->class = QUIPU_INSN_FMA;
	if (x->vex ? c == 0x2e || c == 0x2f || c == 0x8e
		   : (c == 0xf1 && x->repeat != 0xf2) || c == 0xf9)
		*access = W | (x->vex ? 0u : MOVE);
}

static void four(const struct x86 *x, struct decoded *d, unsigned *access)
{
	uint8_t c = x->opcode;

	d->class = c >= 0xf0 ? ALU : QUIPU_INSN_VECTOR;
	if ((c >= 0x14 && c <= 0x17) || (x->vex && (c == 0x19 || c == 0x39 || c == 0x1d)))
		*access = W;
}

/* The class of a plain move is its access; of anything else the accesses stand beside it. */
static void accesses(const struct x86 *x, struct decoded *d, unsigned access)
{
	bool load = access & L, store = access & S, fp = d->class == QUIPU_INSN_FOTHER;

	if (in_memory(x)) {
		load |= (access & R & ~M) != 0;
		store |= (access & W & ~M) != 0;
	}
	if (load && store && (x->lock || d->class == QUIPU_INSN_AMO)) {
		d->class = QUIPU_INSN_AMO;
	} else if ((access & MOVE) && load != store && (d->class == ALU || fp)) {
		if (load)
			d->class = fp ? QUIPU_INSN_FLOAD : QUIPU_INSN_LOAD;
		else
			d->class = fp ? QUIPU_INSN_FSTORE : QUIPU_INSN_STORE;
	} else {
		d->access = (uint8_t)((load ? INSN_LOAD : 0u) | (store ? INSN_STORE : 0u));
	}
}

/* ---- where it accesses, and what it changes ---- */

static enum mandatory mandatory(const struct x86 *x)
{
	if (!x->repeat)
		return x->operand16 ? PREFIX_66 : PREFIX_NONE;
	return x->operand16 ? PREFIX_BOTH : x->repeat == 0xf3 ? PREFIX_F3 : PREFIX_F2;
}

static bool is_x87(const struct x86 *x)
{
	return !x->map && (x->opcode & 0xf8) == 0xd8;
}

/* Of an instruction without VEX. Beyond SSE2 only that vectors stay vectors. */
static struct effect effect(const struct x86 *x)
{
	uint8_t c = x->opcode;

	if (!x->map && c == 0xdf && x->modrm == 0xe0) /* fnstsw %ax */
		return (struct effect){0, RAX};
	if (!x->map && c == 0x90 && !(x->rex & 1)) /* nop */
		return (struct effect){0, NOTHING};
	if (x->map < 2)
		return (x->map ? two_effect : one_effect)[c];
	if (x->map == 2)
		return (struct effect){0, c < 0x80 ? NOTHING : 0};
	return (struct effect){0, c < 0x14 || (c >= 0x20 && c < 0x50) ? NOTHING : 0};
}

static uint8_t written(const struct x86 *x, uint8_t w)
{
	return w & KNOWN ? w : groups[w][w < PREFIX_2C ? reg(x) : mandatory(x)];
}

/* log2 of the bytes of its memory operand + 1 */
static unsigned extent(const struct x86 *x, uint8_t code)
{
	unsigned n = extents[code][mandatory(x)];

	if (is_x87(x))
		return mandatory(x) ? 0 : x87_extent[x->opcode & 7][reg(x)];
	if (n < BY_OPERAND)
		return n;
	return x->rex & 8 ? 4 : n == BY_OPERAND && x->operand16 ? 2 : 3;
}

static bool on_stack(uint8_t w)
{
	return (w & (KNOWN | W_GROWS | W_REG | W_RM)) == (KNOWN | W_GROWS);
}

#define RSP 4u

/* @access: as the tables say it. The access of what it pushes lies where the stack pointer is then.
 */
static struct place place(const struct x86 *x, struct effect e, unsigned access)
{
	bool plain = !x->segment && !x->address32 && !x->lock;
	bool load = access & R & ~M, store = access & W & ~M;
	unsigned n;

	if (!plain)
		return (struct place){0};
	if (on_stack(e.written) && !in_memory(x))
		return x->operand16 || x->repeat
			       ? (struct place){0}
			       : (struct place){RSP + 1, 3, e.written == PUSH ? -8 : 0};
	n = in_memory(x) && load != store && !(access & (L | S)) ? extent(x, e.extent) : 0;
	return n && x->base ? (struct place){x->base, (uint8_t)(n - 1), x->disp}
			    : (struct place){0};
}

static void writes(struct change *c, unsigned n)
{
	if (c->reg == CHANGES_NOTHING)
		c->reg = (uint8_t)(n + 1);
	else if (c->reg != n + 1)
		c->also = (uint8_t)(n + 1);
}

/* The number of a register whose low bits are @low and that @rex_bit extends. */
static unsigned general(const struct x86 *x, unsigned low, unsigned rex_bit, uint8_t w)
{
	if (w & W_BYTE && !x->rex)
		return low & 3; /* ah, ch, dh, bh are bytes of the first four */
	return low | (x->rex & rex_bit ? 8u : 0u);
}

/* add, sub, inc, dec, lea: the constant by which its register grows. */
static bool grows(const struct x86 *x, int64_t *by)
{
	if (!(x->rex & 8))
		return false;
	if (x->opcode == 0x8d) {
		*by = x->disp;
		return !x->address32 && x->base == general(x, reg(x), 4, 0) + 1;
	}
	*by = x->opcode == 0xff ? 1 : x->imm;
	if (reg(x))
		*by = -*by;
	return *by == (int32_t)*by;
}

static struct change change(const struct x86 *x, uint8_t w)
{
	struct change c = {.reg = CHANGES_NOTHING};
	unsigned low = general(x, x->opcode & 7, 1, w);
	bool stack = on_stack(w);
	int64_t by = w == PUSH ? -8 : 8;

	if (!(w & KNOWN) || (stack && (x->operand16 || x->address32)))
		return (struct change){.reg = CHANGES_UNKNOWN};
	if (stack)
		writes(&c, RSP);
	if (w & W_REG)
		writes(&c, general(x, reg(x), 4, w));
	if (w & W_RM && !in_memory(x))
		writes(&c, general(x, x->modrm & 7, 1, w));
	if (w & W_LOW)
		writes(&c, low);
	if (w & W_RAX)
		writes(&c, 0);
	if (w & W_RDX)
		writes(&c, 2);
	if (w & W_GROWS && c.reg != CHANGES_NOTHING)
		c.by_known = stack ? w == PUSH || low != RSP : grows(x, &by);
	c.by = c.by_known ? (int32_t)by : 0;
	return c;
}

static void effects(const struct x86 *x, struct decoded *d, unsigned access)
{
	struct effect e = effect(x);

	e.written = written(x, e.written);
	d->place = place(x, e, access);
	d->change = change(x, e.written);
}

void decode_x86_64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *d)
{
	static void (*const by_map[4])(const struct x86 *, struct decoded *,
				       unsigned *) = {one, two, three, four};
	struct x86 x = {.b = bytes, .len = len < 15 ? len : 15};
	unsigned access;

	*d = (struct decoded){.class = ALU, .flow = FLOW_NONE};
	prefixes(&x);
	opcode(&x);
	modrm(&x);
	immediate(&x);
	access = x.attr;
	if (!x.map && !x.vex && x.opcode >= 0xd8 && x.opcode <= 0xdf)
		x87(&x, d, &access);
	else if (x.map < 4)
		by_map[x.map](&x, d, &access);
	else
		d->class = QUIPU_INSN_VECTOR;
	accesses(&x, d, access);
	d->size = x.cut ? 0 : (uint8_t)x.at;
	if (!x.vex && !x.cut)
		effects(&x, d, access);
	if (d->flow == FLOW_COND || d->flow == FLOW_JUMP || d->flow == FLOW_CALL)
		d->target = pc + x.at + (uint64_t)x.imm;
}
