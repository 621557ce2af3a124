/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of decode_x86_64.c alone: of each opcode of the first two maps, the size of its memory
 * operand and the general registers that it writes, without VEX. Intel 64 and IA-32 Architectures
 * Software Developer's Manual, volume 2, as decode_x86_64.c. What is 0 is unsaid.
 */
#ifndef QUIPU_ENGINE_DECODE_X86_64_EFFECTS_H
#define QUIPU_ENGINE_DECODE_X86_64_EFFECTS_H

#include <stdint.h>

/* The bytes of a memory operand, by mandatory prefix (enum mandatory): log2 + 1; 0: unsaid. */
enum extent {
	NO_BYTES,
	B1,    /* one */
	B2,    /* two */
	BD,    /* four, whatever REX.W says */
	BV,    /* of the operand size */
	BVP,   /* so, with F3 too */
	BVF3,  /* so, with F3 only */
	BY,    /* four or eight, by REX.W */
	BYS,   /* so, with F3 or F2 only */
	B8,    /* eight */
	BX,    /* sixteen */
	BX66,  /* with 66 only */
	BXF3,  /* 66, F3 */
	BXALL, /* 66, F3, F2 */
	BXH,   /* 66, F2 */
	BXC,   /* none, 66, F3 */
	BPS,   /* ps, pd, ss, sd */
	BRS,   /* ps, ss */
	BCOM,  /* ss, sd */
	BCVT,  /* cvtps2pd, pd2ps, ss2sd, sd2ss */
	BSS,   /* ss, sd, by F3 and F2 */
	BLOW,  /* movlps, lpd, sldup, ddup */
	BHIGH, /* movhps, hpd, shdup */
	BD_BQ, /* movd, movq, with 66 or none */
	BQ,    /* so, or movq with F3 */
	BQ66,  /* eight, with 66 only */
	BW66,  /* two, with 66 only */
	BXF2,  /* sixteen, with F2 only */
};
enum mandatory { PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2, PREFIX_BOTH };
#define BY_OPERAND 6 /* 2, 4 or 8 bytes */
#define BY_REX	   7 /* 4 or 8 */

static const uint8_t extents[][PREFIX_BOTH + 1] = {
	[B1] = {1, 1},
	[B2] = {2, 2},
	[BD] = {3},
	[BV] = {BY_OPERAND, BY_OPERAND},
	[BVP] = {BY_OPERAND, BY_OPERAND, BY_OPERAND},
	[BVF3] = {0, 0, BY_OPERAND},
	[BY] = {BY_REX},
	[BYS] = {0, 0, BY_REX, BY_REX},
	[B8] = {4, 4},
	[BX] = {5, 5},
	[BX66] = {0, 5},
	[BXF3] = {0, 5, 5},
	[BXALL] = {0, 5, 5, 5},
	[BXH] = {0, 5, 0, 5},
	[BXC] = {5, 5, 5},
	[BPS] = {5, 5, 3, 4},
	[BRS] = {5, 0, 3},
	[BCOM] = {3, 4},
	[BCVT] = {4, 5, 3, 4},
	[BSS] = {0, 0, 3, 4},
	[BLOW] = {4, 4, 5, 4},
	[BHIGH] = {4, 4, 5},
	[BD_BQ] = {BY_REX, BY_REX},
	[BQ] = {BY_REX, BY_REX, 4},
	[BQ66] = {0, 4},
	[BW66] = {0, 2},
	[BXF2] = {0, 0, 0, 5},
};

/* The general registers that are written. */
enum written {
	W_REG = 0x01, /* ModRM.reg */
	W_RM = 0x02,  /* ModRM.rm, unless it is memory */
	W_LOW = 0x04, /* the one in the opcode */
	W_RAX = 0x08,
	W_RDX = 0x10,
	W_BYTE = 0x20,	/* they are registers of a byte */
	W_GROWS = 0x40, /* the one grows by a constant; without one: the stack pointer */
	KNOWN = 0x80,	/* and no others */
	NOTHING = KNOWN,
	REG = KNOWN | W_REG,
	RM = KNOWN | W_RM,
	LOW = KNOWN | W_LOW,
	RAX = KNOWN | W_RAX,
	RDX = KNOWN | W_RDX,
	BOTH = KNOWN | W_REG | W_RM,
	PAIR = KNOWN | W_RAX | W_RDX,
	PUSH = KNOWN | W_GROWS,
	POP = KNOWN | W_GROWS | W_LOW,
	/* else what says more: by ModRM.reg, and from the first prefix on by that */
	GROUP_80 = 1,
	GROUP_81,
	GROUP_C6,
	GROUP_C7,
	GROUP_F6,
	GROUP_F7,
	GROUP_FE,
	GROUP_FF,
	GROUP_1E,
	GROUP_BA,
	PREFIX_2C,
	PREFIX_7E,
	PREFIX_B8,
	GROUPS
};
#define RM8	 (RM | W_BYTE)
#define RM_GROWS (RM | W_GROWS)

static const uint8_t groups[GROUPS][8] = {
	[GROUP_80] = {RM8, RM8, RM8, RM8, RM8, RM8, RM8, NOTHING},
	[GROUP_81] = {RM_GROWS, RM, RM, RM, RM, RM_GROWS, RM, NOTHING},
	[GROUP_C6] = {RM8},
	[GROUP_C7] = {RM},
	[GROUP_F6] = {NOTHING, NOTHING, RM8, RM8, RAX, RAX, RAX, RAX},
	[GROUP_F7] = {NOTHING, NOTHING, RM, RM, PAIR, PAIR, PAIR, PAIR},
	[GROUP_FE] = {RM8, RM8},
	[GROUP_FF] = {RM_GROWS, RM_GROWS, 0, 0, NOTHING, 0, PUSH},
	/* rdssp is among these */
	[GROUP_1E] = {NOTHING, 0, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING},
	[GROUP_BA] = {0, 0, 0, 0, NOTHING, RM, RM, RM},
	[PREFIX_2C] = {NOTHING, NOTHING, REG, REG},
	[PREFIX_7E] = {RM, RM, NOTHING},
	[PREFIX_B8] = {[PREFIX_F3] = REG, [PREFIX_BOTH] = REG},
};

struct effect {
	uint8_t extent, written;
};

#define ARITHMETIC_EFFECT(base)                                                                    \
	[base] = {B1, RM8}, [base + 1] = {BV, RM}, [base + 2] = {B1, REG | W_BYTE},                \
	[base + 3] = {BV, REG}, [base + 4] = {0, RAX}, [base + 5] = {0, RAX}

static const struct effect one_effect[256] = {
	ARITHMETIC_EFFECT(0x00),
	ARITHMETIC_EFFECT(0x08),
	ARITHMETIC_EFFECT(0x10),
	ARITHMETIC_EFFECT(0x18),
	ARITHMETIC_EFFECT(0x20),
	ARITHMETIC_EFFECT(0x28),
	ARITHMETIC_EFFECT(0x30),
	[0x38] = {B1, NOTHING},
	[0x39] = {BV, NOTHING},
	[0x3a] = {B1, NOTHING},
	[0x3b] = {BV, NOTHING},
	[0x3c ... 0x3d] = {0, NOTHING},
	[0x50 ... 0x57] = {0, PUSH},
	[0x58 ... 0x5f] = {0, POP},
	[0x63] = {BD, REG},
	[0x68] = {0, PUSH},
	[0x69] = {BV, REG},
	[0x6a] = {0, PUSH},
	[0x6b] = {BV, REG},
	[0x70 ... 0x7f] = {0, NOTHING},
	[0x80] = {B1, GROUP_80},
	[0x81] = {BV, GROUP_81},
	[0x83] = {BV, GROUP_81},
	[0x84] = {B1, NOTHING},
	[0x85] = {BV, NOTHING},
	[0x86] = {0, BOTH | W_BYTE},
	[0x87] = {0, BOTH},
	[0x88] = {B1, RM8},
	[0x89] = {BV, RM},
	[0x8a] = {B1, REG | W_BYTE},
	[0x8b] = {BV, REG},
	[0x8c] = {0, RM},
	[0x8d] = {0, REG | W_GROWS},
	[0x90 ... 0x97] = {0, RAX | W_LOW},
	[0x98] = {0, RAX},
	[0x99] = {0, RDX},
	[0x9b] = {0, NOTHING},
	[0x9e] = {0, NOTHING},
	[0x9f] = {0, RAX},
	[0xa0 ... 0xa1] = {0, RAX},
	[0xa2 ... 0xa3] = {0, NOTHING},
	[0xa8 ... 0xa9] = {0, NOTHING},
	[0xb0 ... 0xb7] = {0, LOW | W_BYTE},
	[0xb8 ... 0xbf] = {0, LOW},
	[0xc0] = {0, RM8},
	[0xc1] = {0, RM},
	[0xc6] = {B1, GROUP_C6},
	[0xc7] = {BV, GROUP_C7},
	[0xd0] = {0, RM8},
	[0xd1] = {0, RM},
	[0xd2] = {0, RM8},
	[0xd3] = {0, RM},
	[0xd7] = {0, RAX},
	[0xd8 ... 0xdf] = {0, NOTHING},
	[0xe3] = {0, NOTHING},
	[0xe9] = {0, NOTHING},
	[0xeb] = {0, NOTHING},
	[0xf5] = {0, NOTHING},
	[0xf6] = {B1, GROUP_F6},
	[0xf7] = {BV, GROUP_F7},
	[0xf8 ... 0xf9] = {0, NOTHING},
	[0xfc ... 0xfd] = {0, NOTHING},
	[0xfe] = {0, GROUP_FE},
	[0xff] = {0, GROUP_FF},
};

static const struct effect two_effect[256] = {
	[0x0d] = {0, NOTHING},
	[0x10 ... 0x11] = {BPS, NOTHING},
	[0x12] = {BLOW, NOTHING},
	[0x13] = {B8, NOTHING},
	[0x14 ... 0x15] = {BX, NOTHING},
	[0x16] = {BHIGH, NOTHING},
	[0x17] = {B8, NOTHING},
	[0x18 ... 0x19] = {0, NOTHING},
	[0x1d] = {0, NOTHING},
	[0x1e] = {0, GROUP_1E},
	[0x1f] = {0, NOTHING},
	[0x28 ... 0x29] = {BX, NOTHING},
	[0x2a] = {BYS, NOTHING},
	[0x2b] = {BX, NOTHING},
	[0x2c ... 0x2d] = {BSS, PREFIX_2C},
	[0x2e ... 0x2f] = {BCOM, NOTHING},
	[0x40 ... 0x4f] = {BV, REG},
	[0x50] = {0, REG},
	[0x51] = {BPS, NOTHING},
	[0x52 ... 0x53] = {BRS, NOTHING},
	[0x54 ... 0x57] = {BX, NOTHING},
	[0x58 ... 0x59] = {BPS, NOTHING},
	[0x5a] = {BCVT, NOTHING},
	[0x5b] = {BXC, NOTHING},
	[0x5c ... 0x5f] = {BPS, NOTHING},
	[0x60 ... 0x6d] = {BX66, NOTHING},
	[0x6e] = {BD_BQ, NOTHING},
	[0x6f] = {BXF3, NOTHING},
	[0x70] = {BXALL, NOTHING},
	[0x71 ... 0x73] = {0, NOTHING},
	[0x74 ... 0x76] = {BX66, NOTHING},
	[0x77] = {0, NOTHING},
	[0x7c ... 0x7d] = {BXH, NOTHING},
	[0x7e] = {BQ, PREFIX_7E},
	[0x7f] = {BXF3, NOTHING},
	[0x80 ... 0x8f] = {0, NOTHING},
	[0x90 ... 0x9f] = {B1, RM8},
	[0xa3] = {0, NOTHING},
	[0xa4 ... 0xa5] = {0, RM},
	[0xab] = {0, RM},
	[0xac ... 0xad] = {0, RM},
	[0xaf] = {BV, REG},
	[0xb0] = {0, RM8 | W_RAX},
	[0xb1] = {0, RM | W_RAX},
	[0xb3] = {0, RM},
	[0xb6] = {B1, REG},
	[0xb7] = {B2, REG},
	[0xb8] = {BVF3, PREFIX_B8},
	[0xba] = {BV, GROUP_BA},
	[0xbb] = {0, RM},
	[0xbc ... 0xbd] = {BVP, REG},
	[0xbe] = {B1, REG},
	[0xbf] = {B2, REG},
	[0xc0] = {0, BOTH | W_BYTE},
	[0xc1] = {0, BOTH},
	[0xc2] = {BPS, NOTHING},
	[0xc3] = {BY, NOTHING},
	[0xc4] = {BW66, NOTHING},
	[0xc5] = {0, REG},
	[0xc6] = {BX, NOTHING},
	[0xc8 ... 0xcf] = {0, LOW},
	[0xd0] = {BXH, NOTHING},
	[0xd1 ... 0xd5] = {BX66, NOTHING},
	[0xd6] = {BQ66, NOTHING},
	[0xd7] = {0, REG},
	[0xd8 ... 0xe5] = {BX66, NOTHING},
	[0xe6] = {BXH, NOTHING}, /* of cvtdq2pd's eight QEMU reads sixteen */
	[0xe7] = {BX66, NOTHING},
	[0xe8 ... 0xef] = {BX66, NOTHING},
	[0xf0] = {BXF2, NOTHING},
	[0xf1 ... 0xf6] = {BX66, NOTHING},
	[0xf7] = {0, NOTHING},
	[0xf8 ... 0xfe] = {BX66, NOTHING},
};

/* x87, as x87_memory: log2 of the bytes + 1; 0: unsaid (ten bytes, or the state). */
static const uint8_t x87_extent[8][8] = {
	{3, 3, 3, 3, 3, 3, 3, 3}, {3, 0, 3, 3, 0, 2, 0, 2}, {3, 3, 3, 3, 3, 3, 3, 3},
	{3, 3, 3, 3, 0, 0, 0, 0}, {4, 4, 4, 4, 4, 4, 4, 4}, {4, 4, 4, 4, 0, 0, 0, 2},
	{2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 0, 4, 0, 4},
};

#endif
