/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POWER instructions of a little-endian guest: class and flow. Power ISA 3.0B: book I chapter 2
 * (branches), chapters 3 to 7 (fixed point, floating point, vector, VSX); the prefixed ones of 3.1
 * have a length and, where it is a load or a store, a class. Appendix D of the document maps the
 * opcodes.
 *
 * It does not check that an encoding is legal. Conditional traps (tw, td and so on) are plain
 * instructions: they leave their block only when they trap. Places (decode.h) have the D- and
 * DS-forms that access once, by a register; not the vector, pair, multiple and prefixed ones.
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
	S_DS58,
	S_DS62,
	S_FP,
	S_VSX,
	S_DQ61
};

#define ALU    QUIPU_INSN_ALU
#define LOAD   QUIPU_INSN_LOAD
#define STORE  QUIPU_INSN_STORE
#define FLOAD  QUIPU_INSN_FLOAD
#define FSTORE QUIPU_INSN_FSTORE

#define NOP 0x60000000u

/* Which general registers an instruction writes. */
enum writes {
	W_UNKNOWN = 0,
	W_NOTHING,
	W_RT,	  /* bits 6..10 of the document's numbering */
	W_RA,	  /* bits 11..15 */
	W_BOTH,	  /* RA first; they must differ, and RA not be 0 */
	W_SUM,	  /* RT, the sum of RA and the constant */
	W_SUM_0,  /* the same, where RA = 0 is the number 0 */
	W_SUM_HI, /* ... and the constant is that of the high half */
	W_UPDATE, /* RA, the address */
	W_PAIR,	  /* W_BOTH, and RA the address */
};

struct effect {
	uint8_t writes;
	uint8_t access; /* log2 of its bytes + 1; 0: it has no place */
};

/* By the primary opcode, bits 0..5 in the document's numbering. */
static const struct {
	uint8_t what;
	struct effect effect;
} primary[64] = {
	[0] = {QUIPU_INSN_TRAP, {W_UNKNOWN, 0}},
	[2] = {ALU, {W_NOTHING, 0}}, /* tdi, twi */
	[3] = {ALU, {W_NOTHING, 0}},
	[4] = {S_VMX, {W_UNKNOWN, 0}},
	[7] = {QUIPU_INSN_MUL, {W_RT, 0}},
	[8] = {ALU, {W_RT, 0}},	      /* subfic */
	[10] = {ALU, {W_NOTHING, 0}}, /* cmpli, cmpi */
	[11] = {ALU, {W_NOTHING, 0}},
	[12] = {ALU, {W_SUM, 0}}, /* addic, addic., addi, addis */
	[13] = {ALU, {W_SUM, 0}},
	[14] = {ALU, {W_SUM_0, 0}},
	[15] = {ALU, {W_SUM_HI, 0}},
	[16] = {S_BC, {W_NOTHING, 0}},
	[17] = {S_SC, {W_UNKNOWN, 0}},
	[18] = {S_B, {W_NOTHING, 0}},
	[19] = {S_XL, {W_UNKNOWN, 0}},
	[20] = {ALU, {W_RA, 0}}, /* rlwimi, rlwinm, rlwnm, ori ... andis. */
	[21] = {ALU, {W_RA, 0}},
	[23] = {ALU, {W_RA, 0}},
	[24] = {ALU, {W_RA, 0}},
	[25] = {ALU, {W_RA, 0}},
	[26] = {ALU, {W_RA, 0}},
	[27] = {ALU, {W_RA, 0}},
	[28] = {ALU, {W_RA, 0}},
	[29] = {ALU, {W_RA, 0}},
	[30] = {ALU, {W_RA, 0}}, /* the 64-bit rotates */
	[31] = {S_X, {W_UNKNOWN, 0}},
	[32] = {LOAD, {W_RT, 3}}, /* lwz, lbz; stw, stb; lhz, lha; sth */
	[33] = {LOAD, {W_PAIR, 3}},
	[34] = {LOAD, {W_RT, 1}},
	[35] = {LOAD, {W_PAIR, 1}},
	[36] = {STORE, {W_NOTHING, 3}},
	[37] = {STORE, {W_UPDATE, 3}},
	[38] = {STORE, {W_NOTHING, 1}},
	[39] = {STORE, {W_UPDATE, 1}},
	[40] = {LOAD, {W_RT, 2}},
	[41] = {LOAD, {W_PAIR, 2}},
	[42] = {LOAD, {W_RT, 2}},
	[43] = {LOAD, {W_PAIR, 2}},
	[44] = {STORE, {W_NOTHING, 2}},
	[45] = {STORE, {W_UPDATE, 2}},
	[46] = {LOAD, {W_UNKNOWN, 0}}, /* lmw, stmw */
	[47] = {STORE, {W_NOTHING, 0}},
	[48] = {FLOAD, {W_NOTHING, 3}}, /* lfs, lfd, stfs, stfd */
	[49] = {FLOAD, {W_UPDATE, 3}},
	[50] = {FLOAD, {W_NOTHING, 4}},
	[51] = {FLOAD, {W_UPDATE, 4}},
	[52] = {FSTORE, {W_NOTHING, 3}},
	[53] = {FSTORE, {W_UPDATE, 3}},
	[54] = {FSTORE, {W_NOTHING, 4}},
	[55] = {FSTORE, {W_UPDATE, 4}},
	[56] = {LOAD, {W_UNKNOWN, 0}}, /* lq */
	[57] = {S_DS57, {W_NOTHING, 0}},
	[58] = {S_DS58, {W_UNKNOWN, 0}},
	[59] = {S_FP, {W_NOTHING, 0}},
	[60] = {S_VSX, {W_UNKNOWN, 0}},
	[61] = {S_DQ61, {W_NOTHING, 0}},
	[62] = {S_DS62, {W_UNKNOWN, 0}},
	[63] = {S_FP, {W_NOTHING, 0}},
};

/* DS-form, by the last two bits. */
static const struct effect effect_58[4] = {
	{W_RT, 4}, {W_PAIR, 4}, {W_RT, 3}, {W_UNKNOWN, 0}}; /* ld, ldu, lwa */
static const struct effect effect_62[4] = {
	{W_NOTHING, 4}, {W_UPDATE, 4}, {W_NOTHING, 0}, {W_UNKNOWN, 0}}; /* std, stdu, stq */

/*
 * Primary opcode 31, by the extended opcode: class, and what it writes. The overflow forms lie 512
 * higher.
 */
#define RT(class)   ((uint8_t)((class) | W_RT << 5))
#define RA(class)   ((uint8_t)((class) | W_RA << 5))
#define BOTH(class) ((uint8_t)((class) | W_BOTH << 5))
#define NONE(class) ((uint8_t)((class) | W_NOTHING << 5))
_Static_assert(QUIPU_INSN_CLASSES <= 1 << 5 && W_BOTH < 8, "class and writes share a byte");

static const uint8_t extended[1024] = {
	/* adds, subtractions, neg, addex; the overflow forms */
	[8] = RT(ALU),
	[10] = RT(ALU),
	[40] = RT(ALU),
	[104] = RT(ALU),
	[136] = RT(ALU),
	[138] = RT(ALU),
	[170] = RT(ALU),
	[200] = RT(ALU),
	[202] = RT(ALU),
	[232] = RT(ALU),
	[234] = RT(ALU),
	[266] = RT(ALU),
	[520] = RT(ALU),
	[522] = RT(ALU),
	[552] = RT(ALU),
	[616] = RT(ALU),
	[648] = RT(ALU),
	[650] = RT(ALU),
	[712] = RT(ALU),
	[714] = RT(ALU),
	[744] = RT(ALU),
	[746] = RT(ALU),
	[778] = RT(ALU),
	/* mfcr, mfocrf, setb, darn */
	[19] = RT(ALU),
	[128] = RT(ALU),
	[755] = RT(ALU),
	/* logic, shifts, extensions, counts */
	[24] = RA(ALU),
	[26] = RA(ALU),
	[27] = RA(ALU),
	[28] = RA(ALU),
	[58] = RA(ALU),
	[60] = RA(ALU),
	[122] = RA(ALU),
	[124] = RA(ALU),
	[154] = RA(ALU),
	[186] = RA(ALU),
	[252] = RA(ALU),
	[284] = RA(ALU),
	[316] = RA(ALU),
	[378] = RA(ALU),
	[412] = RA(ALU),
	[444] = RA(ALU),
	[476] = RA(ALU),
	[506] = RA(ALU),
	[508] = RA(ALU),
	[536] = RA(ALU),
	[538] = RA(ALU),
	[539] = RA(ALU),
	[570] = RA(ALU),
	[792] = RA(ALU),
	[794] = RA(ALU),
	[824] = RA(ALU),
	[826] = RA(ALU),
	[827] = RA(ALU),
	[890] = RA(ALU),
	[891] = RA(ALU),
	[922] = RA(ALU),
	[954] = RA(ALU),
	[986] = RA(ALU),
	/* compares, traps, mtcrf, mcrxrx, cache hints */
	[0] = NONE(ALU),
	[4] = NONE(ALU),
	[22] = NONE(ALU),
	[32] = NONE(ALU),
	[54] = NONE(ALU),
	[68] = NONE(ALU),
	[86] = NONE(ALU),
	[144] = NONE(ALU),
	[192] = NONE(ALU),
	[224] = NONE(ALU),
	[246] = NONE(ALU),
	[278] = NONE(ALU),
	[576] = NONE(ALU),
	[982] = NONE(ALU),
	/* mulhdu, mulhwu, mulhd, mulhw, mulld, mullw */
	[9] = RT(QUIPU_INSN_MUL),
	[11] = RT(QUIPU_INSN_MUL),
	[73] = RT(QUIPU_INSN_MUL),
	[75] = RT(QUIPU_INSN_MUL),
	[233] = RT(QUIPU_INSN_MUL),
	[235] = RT(QUIPU_INSN_MUL),
	[521] = QUIPU_INSN_MUL,
	[523] = QUIPU_INSN_MUL,
	[585] = QUIPU_INSN_MUL,
	[587] = QUIPU_INSN_MUL,
	[745] = RT(QUIPU_INSN_MUL),
	[747] = RT(QUIPU_INSN_MUL),
	/* divisions, remainders */
	[265] = RT(QUIPU_INSN_DIV),
	[267] = RT(QUIPU_INSN_DIV),
	[393] = RT(QUIPU_INSN_DIV),
	[395] = RT(QUIPU_INSN_DIV),
	[425] = RT(QUIPU_INSN_DIV),
	[427] = RT(QUIPU_INSN_DIV),
	[457] = RT(QUIPU_INSN_DIV),
	[459] = RT(QUIPU_INSN_DIV),
	[489] = RT(QUIPU_INSN_DIV),
	[491] = RT(QUIPU_INSN_DIV),
	[777] = RT(QUIPU_INSN_DIV),
	[779] = RT(QUIPU_INSN_DIV),
	[905] = RT(QUIPU_INSN_DIV),
	[907] = RT(QUIPU_INSN_DIV),
	[937] = RT(QUIPU_INSN_DIV),
	[939] = RT(QUIPU_INSN_DIV),
	[969] = RT(QUIPU_INSN_DIV),
	[971] = RT(QUIPU_INSN_DIV),
	[1001] = RT(QUIPU_INSN_DIV),
	[1003] = RT(QUIPU_INSN_DIV),
	/* lqarx writes two registers; of the atomics it depends on the function */
	[20] = RT(QUIPU_INSN_LR),
	[52] = RT(QUIPU_INSN_LR),
	[84] = RT(QUIPU_INSN_LR),
	[116] = RT(QUIPU_INSN_LR),
	[150] = NONE(QUIPU_INSN_SC),
	[182] = NONE(QUIPU_INSN_SC),
	[214] = NONE(QUIPU_INSN_SC),
	[276] = QUIPU_INSN_LR,
	[582] = QUIPU_INSN_AMO,
	[614] = QUIPU_INSN_AMO,
	[694] = NONE(QUIPU_INSN_SC),
	[710] = QUIPU_INSN_AMO,
	[726] = NONE(QUIPU_INSN_SC),
	[742] = QUIPU_INSN_AMO,
	/* loads; the strings write several registers */
	[21] = RT(LOAD),
	[23] = RT(LOAD),
	[53] = BOTH(LOAD),
	[55] = BOTH(LOAD),
	[87] = RT(LOAD),
	[119] = BOTH(LOAD),
	[279] = RT(LOAD),
	[311] = BOTH(LOAD),
	[341] = RT(LOAD),
	[343] = RT(LOAD),
	[373] = BOTH(LOAD),
	[375] = BOTH(LOAD),
	[532] = RT(LOAD),
	[533] = LOAD,
	[534] = RT(LOAD),
	[597] = LOAD,
	[790] = RT(LOAD),
	/* of floating point, vectors and VSX */
	[7] = NONE(FLOAD),
	[12] = NONE(FLOAD),
	[39] = NONE(FLOAD),
	[71] = NONE(FLOAD),
	[76] = NONE(FLOAD),
	[103] = NONE(FLOAD),
	[268] = NONE(FLOAD),
	[269] = NONE(FLOAD),
	[300] = NONE(FLOAD),
	[301] = NONE(FLOAD),
	[332] = NONE(FLOAD),
	[359] = NONE(FLOAD),
	[364] = NONE(FLOAD),
	[524] = NONE(FLOAD),
	[535] = NONE(FLOAD),
	[567] = RA(FLOAD),
	[588] = NONE(FLOAD),
	[599] = NONE(FLOAD),
	[631] = RA(FLOAD),
	[780] = NONE(FLOAD),
	[781] = NONE(FLOAD),
	[791] = NONE(FLOAD),
	[812] = NONE(FLOAD),
	[813] = NONE(FLOAD),
	[844] = NONE(FLOAD),
	[855] = NONE(FLOAD),
	[876] = NONE(FLOAD),
	[887] = NONE(FLOAD),
	/* stores, dcbz */
	[149] = NONE(STORE),
	[151] = NONE(STORE),
	[181] = RA(STORE),
	[183] = RA(STORE),
	[215] = NONE(STORE),
	[247] = RA(STORE),
	[407] = NONE(STORE),
	[439] = RA(STORE),
	[660] = NONE(STORE),
	[661] = NONE(STORE),
	[662] = NONE(STORE),
	[725] = NONE(STORE),
	[918] = NONE(STORE),
	[1014] = NONE(STORE),
	[135] = NONE(FSTORE),
	[140] = NONE(FSTORE),
	[167] = NONE(FSTORE),
	[199] = NONE(FSTORE),
	[231] = NONE(FSTORE),
	[396] = NONE(FSTORE),
	[397] = NONE(FSTORE),
	[429] = NONE(FSTORE),
	[487] = NONE(FSTORE),
	[652] = NONE(FSTORE),
	[663] = NONE(FSTORE),
	[695] = RA(FSTORE),
	[716] = NONE(FSTORE),
	[727] = NONE(FSTORE),
	[759] = RA(FSTORE),
	[908] = NONE(FSTORE),
	[909] = NONE(FSTORE),
	[919] = NONE(FSTORE),
	[940] = NONE(FSTORE),
	[941] = NONE(FSTORE),
	[972] = NONE(FSTORE),
	[983] = NONE(FSTORE),
	[1004] = NONE(FSTORE),
	/* mfspr, mtspr, mftb; sync, eieio */
	[339] = RT(QUIPU_INSN_CSR),
	[371] = RT(QUIPU_INSN_CSR),
	[467] = NONE(QUIPU_INSN_CSR),
	[598] = NONE(QUIPU_INSN_FENCE),
	[854] = NONE(QUIPU_INSN_FENCE),
	/* moves between the register files; lvsl, lvsr: no access */
	[6] = NONE(QUIPU_INSN_VECTOR),
	[38] = NONE(QUIPU_INSN_VECTOR),
	[51] = RA(QUIPU_INSN_FOTHER),
	[115] = RA(QUIPU_INSN_FOTHER),
	[179] = NONE(QUIPU_INSN_FOTHER),
	[211] = NONE(QUIPU_INSN_FOTHER),
	[243] = NONE(QUIPU_INSN_FOTHER),
	[307] = RA(QUIPU_INSN_FOTHER),
	[403] = NONE(QUIPU_INSN_FOTHER),
	[435] = NONE(QUIPU_INSN_FOTHER),
};

/* Floating point, A-form, by the last five bits of the extended opcode. */
static const uint8_t fp_class[32] = {
	[18] = QUIPU_INSN_FDIV, [20] = QUIPU_INSN_FADD, [21] = QUIPU_INSN_FADD,
	[22] = QUIPU_INSN_FDIV, [25] = QUIPU_INSN_FMUL, [28] = QUIPU_INSN_FMA,
	[29] = QUIPU_INSN_FMA,	[30] = QUIPU_INSN_FMA,	[31] = QUIPU_INSN_FMA,
};

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

/* Of the vector instructions, by the last six bits: those that write no general register, but for
 * vgnb, vclzlsbb, vextublx and their like. */
static uint8_t writes_vmx(uint32_t w)
{
	static const uint64_t vectors = 0xf800ffff00007fff;
	unsigned xo = w & 0x7ff, last = w & 63;

	if (last == 48 || last == 49 || last == 51) /* maddhd, maddhdu, maddld */
		return W_RT;
	if (xo == 1228 || (xo >= 1200 && (last == 2 || last == 13)))
		return W_UNKNOWN;
	return vectors >> last & 1 ? W_NOTHING : W_UNKNOWN;
}

static uint8_t writes_xl(uint32_t w)
{
	static const uint16_t nothing[] = {0,	16,  33,  129, 150, 193, 225,
					   257, 289, 417, 449, 528, 560};
	unsigned xo = (unsigned)bits_get(w, 10, 1);

	if ((xo & 31) == 2) /* addpcis */
		return W_RT;
	for (unsigned i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		if (nothing[i] == xo)
			return W_NOTHING;
	}
	return W_UNKNOWN;
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

/* Primary opcode 31. */
static uint8_t x(struct decoded *d, uint32_t w)
{
	unsigned xo = (unsigned)bits_get(w, 10, 1);

	d->class = extended[xo] & 31;
	return (xo & 31) == 15 ? W_RT : extended[xo] >> 5; /* isel */
}

/* It gives what the instruction does to registers and memory. */
static struct effect special(struct decoded *d, unsigned what, uint32_t w, uint64_t pc)
{
	struct effect e = primary[w >> 26].effect;

	switch (what) {
	case S_VMX:
		e.writes = writes_vmx(w);
		d->class = (w & 0x3c) == 0x30 ? QUIPU_INSN_MUL
					      : QUIPU_INSN_VECTOR; /* maddhd, maddhdu, maddld */
		break;
	case S_BC: bc(d, w, pc); break;
	case S_SC: flow(d, QUIPU_INSN_SYSTEM, FLOW_SYSCALL, 0); break;
	case S_B:
		flow(d, w & 1 ? QUIPU_INSN_CALL : QUIPU_INSN_JUMP, w & 1 ? FLOW_CALL : FLOW_JUMP,
		     (w & 2 ? 0 : pc) + (uint64_t)bits_sign(w & 0x3fffffc, 26));
		break;
	case S_XL:
		e.writes = writes_xl(w);
		xl(d, w);
		break;
	case S_X: e.writes = x(d, w); break;
	case S_DS57: d->class = FLOAD; break;
	case S_DS58:
		e = effect_58[w & 3];
		d->class = LOAD;
		break;
	case S_DS62:
		e = effect_62[w & 3];
		d->class = STORE;
		break;
	case S_FP:
		d->class = fp_class[bits_get(w, 5, 1)] ? fp_class[bits_get(w, 5, 1)]
						       : QUIPU_INSN_FOTHER;
		break;
	case S_VSX:
		e.writes = bits_get(w, 10, 2) == 347 ? W_UNKNOWN : W_NOTHING; /* xsxexpdp */
		d->class = class_vsx(w);
		break;
	default: /* S_DQ61: lxv, stxv and the scalar stores */
		d->class = (w & 7) == 1 ? FLOAD : FSTORE;
	}
	return e;
}

static struct change change(unsigned writes, unsigned rt, unsigned ra, int32_t constant)
{
	struct change c = {.reg = (uint8_t)(rt + 1)};

	switch (writes) {
	case W_NOTHING: return (struct change){.reg = CHANGES_NOTHING};
	case W_RT: return c;
	case W_SUM_0:
	case W_SUM_HI:
		if (!ra)
			return c; /* fall through */
	case W_SUM:
		if (rt == ra) {
			c.by_known = true;
			c.by = writes == W_SUM_HI ? constant * 0x10000 : constant;
		}
		return c;
	}
	c.reg = (uint8_t)(ra + 1);
	if (writes == W_RA)
		return c;
	if (writes == W_UNKNOWN || !ra || (ra == rt && writes != W_UPDATE))
		return (struct change){.reg = CHANGES_UNKNOWN};
	c.by_known = writes != W_BOTH;
	c.by = c.by_known ? constant : 0;
	c.also = writes != W_UPDATE ? (uint8_t)(rt + 1) : 0;
	return c;
}

/* Where it accesses, and what it changes. */
static void effects(struct decoded *d, struct effect e, uint32_t w)
{
	unsigned rt = (unsigned)bits_get(w, 25, 21), ra = (unsigned)bits_get(w, 20, 16);
	int32_t constant = (int16_t)(w >> 26 >= 56 ? w & 0xfffc : w & 0xffff);

	if (e.access && ra && !(e.writes == W_PAIR && rt == ra))
		d->place = (struct place){.base = (uint8_t)(ra + 1),
					  .bytes = (uint8_t)(e.access - 1),
					  .offset = constant};
	d->change = change(w == NOP ? W_NOTHING : e.writes, rt, ra, constant);
}

/* Power ISA 3.1: prefix, suffix. Of the suffix only loads and stores are looked at. */
static void prefixed(struct decoded *d, uint32_t prefix, uint32_t suffix)
{
	unsigned type = (unsigned)bits_get(prefix, 25, 24), op = suffix >> 26;

	d->size = 8;
	if (type == 2 && op >= 32 && op < 56)
		d->class = primary[op].what;
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
	struct effect e;
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
	what = primary[w >> 26].what;
	e = primary[w >> 26].effect;
	if (what < S_FIRST)
		d->class = (uint8_t)what;
	else
		e = special(d, what, w, pc);
	effects(d, e, w);
}
