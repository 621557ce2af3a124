/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POWER instructions of a little-endian guest: class and flow. Power ISA 3.0B: book I chapter 2
 * (branches), chapters 3 to 7 (fixed point, floating point, vector, VSX); the prefixed ones of 3.1
 * have a length and, where it is a load or a store, a class. Appendix D of the document maps the
 * opcodes.
 *
 * It does not check that an encoding is legal. Conditional traps (tw, td and so on) are plain
 * instructions: they leave their block only when they trap.
 */
#include "decode.h"

#include <stdbool.h>

#include <quipu/bits.h>

/* Beyond the classes: more fields have to be looked at. */
enum special {
	S_FIRST = 64,
	S_VMX = S_FIRST,
	S_BC,
	S_SC,
	S_B,
	S_XL,
	S_X,
	S_DS57,
	S_FP,
	S_VSX,
	S_DQ61
};

#define ALU    QUIPU_INSN_ALU
#define LOAD   QUIPU_INSN_LOAD
#define STORE  QUIPU_INSN_STORE
#define FLOAD  QUIPU_INSN_FLOAD
#define FSTORE QUIPU_INSN_FSTORE

/* By the primary opcode, bits 0..5 in the document's numbering. */
static const uint8_t primary[64] = {
	[0] = QUIPU_INSN_TRAP, [4] = S_VMX,   [7] = QUIPU_INSN_MUL, [16] = S_BC,
	[17] = S_SC,	       [18] = S_B,    [19] = S_XL,	    [31] = S_X,
	[32] = LOAD,	       [33] = LOAD,   [34] = LOAD,	    [35] = LOAD,
	[36] = STORE,	       [37] = STORE,  [38] = STORE,	    [39] = STORE,
	[40] = LOAD,	       [41] = LOAD,   [42] = LOAD,	    [43] = LOAD,
	[44] = STORE,	       [45] = STORE,  [46] = LOAD,	    [47] = STORE,
	[48] = FLOAD,	       [49] = FLOAD,  [50] = FLOAD,	    [51] = FLOAD,
	[52] = FSTORE,	       [53] = FSTORE, [54] = FSTORE,	    [55] = FSTORE,
	[56] = LOAD,	       [57] = S_DS57, [58] = LOAD,	    [59] = S_FP,
	[60] = S_VSX,	       [61] = S_DQ61, [62] = STORE,	    [63] = S_FP,
};

/* Primary opcode 31, by the extended opcode; 0 is ALU. The overflow forms lie 512 higher. */
static const struct {
	uint16_t xo;
	uint8_t class;
} extended[] = {
	{20, QUIPU_INSN_LR},
	{52, QUIPU_INSN_LR},
	{84, QUIPU_INSN_LR},
	{116, QUIPU_INSN_LR},
	{276, QUIPU_INSN_LR},
	{150, QUIPU_INSN_SC},
	{182, QUIPU_INSN_SC},
	{214, QUIPU_INSN_SC},
	{694, QUIPU_INSN_SC},
	{726, QUIPU_INSN_SC},
	{582, QUIPU_INSN_AMO},
	{614, QUIPU_INSN_AMO},
	{710, QUIPU_INSN_AMO},
	{742, QUIPU_INSN_AMO},
	/* lwzx, lwzux, lbzx, lbzux, lhzx, lhzux, lhax, lhaux, lwax, lwaux, ldx, ldux,
	   byte-reversed, strings */
	{23, LOAD},
	{55, LOAD},
	{87, LOAD},
	{119, LOAD},
	{279, LOAD},
	{311, LOAD},
	{343, LOAD},
	{375, LOAD},
	{341, LOAD},
	{373, LOAD},
	{21, LOAD},
	{53, LOAD},
	{534, LOAD},
	{790, LOAD},
	{532, LOAD},
	{533, LOAD},
	{597, LOAD},
	/* lfsx, lfsux, lfdx, lfdux, lfiwax, lfiwzx, lfdpx */
	{535, FLOAD},
	{567, FLOAD},
	{599, FLOAD},
	{631, FLOAD},
	{855, FLOAD},
	{887, FLOAD},
	{791, FLOAD},
	/* lvebx, lvehx, lvewx, lvx, lvxl */
	{7, FLOAD},
	{39, FLOAD},
	{71, FLOAD},
	{103, FLOAD},
	{359, FLOAD},
	/* VSX loads */
	{12, FLOAD},
	{76, FLOAD},
	{268, FLOAD},
	{300, FLOAD},
	{269, FLOAD},
	{301, FLOAD},
	{332, FLOAD},
	{364, FLOAD},
	{524, FLOAD},
	{588, FLOAD},
	{780, FLOAD},
	{781, FLOAD},
	{812, FLOAD},
	{813, FLOAD},
	{844, FLOAD},
	{876, FLOAD},
	{151, STORE},
	{183, STORE},
	{215, STORE},
	{247, STORE},
	{407, STORE},
	{439, STORE},
	{149, STORE},
	{181, STORE},
	{662, STORE},
	{918, STORE},
	{660, STORE},
	{661, STORE},
	{725, STORE},
	{1014, STORE},
	{663, FSTORE},
	{695, FSTORE},
	{727, FSTORE},
	{759, FSTORE},
	{983, FSTORE},
	{919, FSTORE},
	{135, FSTORE},
	{167, FSTORE},
	{199, FSTORE},
	{231, FSTORE},
	{487, FSTORE},
	{140, FSTORE},
	{396, FSTORE},
	{397, FSTORE},
	{429, FSTORE},
	{652, FSTORE},
	{716, FSTORE},
	{908, FSTORE},
	{909, FSTORE},
	{940, FSTORE},
	{941, FSTORE},
	{972, FSTORE},
	{1004, FSTORE},
	/* mulhdu, mulhwu, mulhd, mulhw, mulld, mullw */
	{9, QUIPU_INSN_MUL},
	{11, QUIPU_INSN_MUL},
	{73, QUIPU_INSN_MUL},
	{75, QUIPU_INSN_MUL},
	{233, QUIPU_INSN_MUL},
	{235, QUIPU_INSN_MUL},
	{521, QUIPU_INSN_MUL},
	{523, QUIPU_INSN_MUL},
	{585, QUIPU_INSN_MUL},
	{587, QUIPU_INSN_MUL},
	{745, QUIPU_INSN_MUL},
	{747, QUIPU_INSN_MUL},
	{265, QUIPU_INSN_DIV},
	{267, QUIPU_INSN_DIV},
	{777, QUIPU_INSN_DIV},
	{779, QUIPU_INSN_DIV},
	{393, QUIPU_INSN_DIV},
	{395, QUIPU_INSN_DIV},
	{425, QUIPU_INSN_DIV},
	{427, QUIPU_INSN_DIV},
	{457, QUIPU_INSN_DIV},
	{459, QUIPU_INSN_DIV},
	{489, QUIPU_INSN_DIV},
	{491, QUIPU_INSN_DIV},
	{905, QUIPU_INSN_DIV},
	{907, QUIPU_INSN_DIV},
	{937, QUIPU_INSN_DIV},
	{939, QUIPU_INSN_DIV},
	{969, QUIPU_INSN_DIV},
	{971, QUIPU_INSN_DIV},
	{1001, QUIPU_INSN_DIV},
	{1003, QUIPU_INSN_DIV},
	{339, QUIPU_INSN_CSR},
	{467, QUIPU_INSN_CSR},
	{371, QUIPU_INSN_CSR}, /* mfspr, mtspr, mftb */
	{598, QUIPU_INSN_FENCE},
	{854, QUIPU_INSN_FENCE},
	{51, QUIPU_INSN_FOTHER},
	{115, QUIPU_INSN_FOTHER},
	{179, QUIPU_INSN_FOTHER},
	{211, QUIPU_INSN_FOTHER},
	{243, QUIPU_INSN_FOTHER},
	{307, QUIPU_INSN_FOTHER},
	{403, QUIPU_INSN_FOTHER},
	{435, QUIPU_INSN_FOTHER},
	{6, QUIPU_INSN_VECTOR},
	{38, QUIPU_INSN_VECTOR}, /* lvsl, lvsr: no access */
};

/* Floating point, A-form, by the last five bits of the extended opcode. */
static const uint8_t fp_class[32] = {
	[18] = QUIPU_INSN_FDIV, [20] = QUIPU_INSN_FADD, [21] = QUIPU_INSN_FADD,
	[22] = QUIPU_INSN_FDIV, [25] = QUIPU_INSN_FMUL, [28] = QUIPU_INSN_FMA,
	[29] = QUIPU_INSN_FMA,	[30] = QUIPU_INSN_FMA,	[31] = QUIPU_INSN_FMA,
};

static uint8_t class_31(unsigned xo)
{
	for (unsigned i = 0; i < sizeof(extended) / sizeof(extended[0]); i++) {
		if (extended[i].xo == xo)
			return extended[i].class;
	}
	return ALU;
}

/* XX3-form: arithmetic lies where the last three bits are 0, multiply-adds where they are 1. */
static uint8_t class_vsx(uint32_t w)
{
	static const uint8_t arithmetic[4] = {QUIPU_INSN_FADD, QUIPU_INSN_FADD, QUIPU_INSN_FMUL,
					      QUIPU_INSN_FDIV};
	unsigned xo = (unsigned)bits_get(w, 10, 3);

	if (!(xo & 7) && xo < 128)
		return arithmetic[xo >> 3 & 3];
	if ((xo & 7) == 1)
		return QUIPU_INSN_FMA;
	if ((xo & 0x9f) == 5 && bits_get(w, 10, 2) % 2)
		return QUIPU_INSN_FDIV; /* square roots */
	return QUIPU_INSN_VECTOR;
}

static void flow(struct decoded *d, uint8_t class, uint8_t kind, uint64_t target)
{
	d->class = class;
	d->flow = kind;
	d->target = target;
}

/* Is the branch taken whatever the counter and the condition are? */
static bool always(uint32_t w)
{
	return (bits_get(w, 25, 21) & 0x14) == 0x14;
}

static void bc(struct decoded *d, uint32_t w, uint64_t pc)
{
	int64_t distance = bits_sign(w & 0xfffc, 16);
	uint64_t target = (w & 2 ? 0 : pc) + (uint64_t)distance;

	if (!(w & 1))
		flow(d, always(w) ? QUIPU_INSN_JUMP : QUIPU_INSN_BRANCH,
		     always(w) ? FLOW_JUMP : FLOW_COND, target);
	else if (always(w) && distance == 4) /* only asks where it is */
		flow(d, QUIPU_INSN_JUMP, FLOW_JUMP, target);
	else
		flow(d, QUIPU_INSN_CALL, FLOW_CALL, target);
}

static void xl(struct decoded *d, uint32_t w)
{
	unsigned xo = (unsigned)bits_get(w, 10, 1);

	if (xo == 150)
		d->class = QUIPU_INSN_FENCE;
	else if (xo == 18 || xo == 274 || xo == 370)
		d->class = QUIPU_INSN_SYSTEM;
	if (xo != 16 && xo != 528 && xo != 560)
		return;
	if (w & 1)
		flow(d, QUIPU_INSN_ICALL, FLOW_ICALL, 0);
	else if (xo != 16)
		flow(d, always(w) ? QUIPU_INSN_IJUMP : QUIPU_INSN_BRANCH, FLOW_IJUMP, 0);
	else
		flow(d, always(w) ? QUIPU_INSN_RET : QUIPU_INSN_CRET,
		     always(w) ? FLOW_RET : FLOW_CRET, 0);
}

static void special(struct decoded *d, unsigned what, uint32_t w, uint64_t pc)
{
	switch (what) {
	case S_VMX:
		d->class = (w & 0x3c) == 0x30 ? QUIPU_INSN_MUL
					      : QUIPU_INSN_VECTOR; /* maddhd, maddhdu, maddld */
		break;
	case S_BC: bc(d, w, pc); break;
	case S_SC: flow(d, QUIPU_INSN_SYSTEM, FLOW_SYSCALL, 0); break;
	case S_B:
		flow(d, w & 1 ? QUIPU_INSN_CALL : QUIPU_INSN_JUMP, w & 1 ? FLOW_CALL : FLOW_JUMP,
		     (w & 2 ? 0 : pc) + (uint64_t)bits_sign(w & 0x3fffffc, 26));
		break;
	case S_XL: xl(d, w); break;
	case S_X: d->class = class_31((unsigned)bits_get(w, 10, 1)); break;
	case S_DS57: d->class = FLOAD; break;
	case S_FP:
		d->class = fp_class[bits_get(w, 5, 1)] ? fp_class[bits_get(w, 5, 1)]
						       : QUIPU_INSN_FOTHER;
		break;
	case S_VSX: d->class = class_vsx(w); break;
	default: /* S_DQ61: lxv, stxv and the scalar stores */
		d->class = (w & 7) == 1 ? FLOAD : FSTORE;
	}
}

/* Power ISA 3.1: prefix, suffix. Of the suffix only loads and stores are looked at. */
static void prefixed(struct decoded *d, uint32_t prefix, uint32_t suffix)
{
	unsigned type = (unsigned)bits_get(prefix, 25, 24), op = suffix >> 26;

	d->size = 8;
	if (type == 2 && op >= 32 && op < 56)
		d->class = primary[op];
	else if (type == 0)
		d->class = op == 41 || op == 56 || op == 57		    ? LOAD
			   : op == 60 || op == 61			    ? STORE
			   : op == 46 || op == 47 || (op >= 54 && op <= 55) ? FSTORE
									    : FLOAD;
	else
		d->class = type == 1 ? QUIPU_INSN_VECTOR : ALU;
}

void decode_ppc64le(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *d)
{
	unsigned what;
	uint32_t w;

	*d = (struct decoded){.class = ALU, .flow = FLOW_NONE};
	if (len < 4)
		return;
	w = bits_le32(bytes);
	if (w >> 26 == 1) {
		if (len >= 8)
			prefixed(d, w, bits_le32(bytes + 4));
		return;
	}
	d->size = 4;
	what = primary[w >> 26];
	if (what < S_FIRST)
		d->class = (uint8_t)what;
	else
		special(d, what, w, pc);
}
