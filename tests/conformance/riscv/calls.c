/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RISC-V sheet 8.1 (C1-C37, registers) and 8.2 (B1-B54, SBI), case by case: a case is a machine and
 * a list of steps, each with what it must answer. Sources as the sheet names them: PRIV, SSCO,
 * SMCN, SMCD, ZIC (RISC-V manuals), SBI (SBI specification), OSBI (OpenSBI), M (measured), D-n
 * (decision of the sheet).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <quipu/bits.h>

#include "harness.h"

#define M	 QUIPU_RISCV_M
#define S	 QUIPU_RISCV_S
#define U	 QUIPU_RISCV_U
#define VS	 QUIPU_RISCV_VS
#define INSN	 QUIPU_SIGNAL_INSTRUCTIONS
#define CYC	 QUIPU_SIGNAL_CYCLES
#define OF	 QUIPU_RISCV_OF
#define MINH	 QUIPU_RISCV_MINH
#define SINH	 QUIPU_RISCV_SINH
#define UINH	 QUIPU_RISCV_UINH
#define ALL	 ((UINT64_C(1) << 35) - 1)
#define LCOFI	 (UINT64_C(1) << 13)
#define ANY	 UINT64_C(0xdeadbeefdeadbeef)
#define NOT_ZERO UINT64_C(0xdeadbeefdeadbeee)
#define MEM	 UINT64_C(0x80200000)

enum op {
	END,
	READ,
	WRITE,
	CALL,
	OTHER,
	FEED_USER,
	FEED_MODE,
	SET_MODE,
	PENDING,
	RUN,
	TAKEN,
	TRAP,
	PEEK,
	POKE,
	SERIES
};

struct step {
	enum op op;
	uint64_t a[7];
	int64_t error;
	uint64_t value;
};

/* A register: reads as, traps with; is written, traps on the write. */
#define RD(mode, csr, v)                                                                           \
	{                                                                                          \
		READ, {mode, csr}, 0, v                                                            \
	}
#define RDX(mode, csr, cause)                                                                      \
	{                                                                                          \
		READ, {mode, csr}, cause, ANY                                                      \
	}
#define WR(mode, csr, v)                                                                           \
	{                                                                                          \
		WRITE, {mode, csr, v}, 0, 0                                                        \
	}
#define WRX(mode, csr, v, cause)                                                                   \
	{                                                                                          \
		WRITE, {mode, csr, v}, cause, 0                                                    \
	}
/* User-level activity; activity of a mode. */
#define USER(signal, n)                                                                            \
	{                                                                                          \
		FEED_USER, {signal, n}, 0, 0                                                       \
	}
#define MODE_FEED(mode, signal, n)                                                                 \
	{                                                                                          \
		FEED_MODE, {mode, signal, n}, 0, 0                                                 \
	}
#define MODE(mode)                                                                                 \
	{                                                                                          \
		SET_MODE, {mode}, 0, 0                                                             \
	}
#define PEND(cause)                                                                                \
	{                                                                                          \
		PENDING, {0}, cause, 0                                                             \
	}
#define TAKE(n)                                                                                    \
	{                                                                                          \
		RUN, {0}, n, 0                                                                     \
	} /* runs what is pending: so many are taken */
#define INTERRUPTS(n)                                                                              \
	{                                                                                          \
		TAKEN, {0}, n, 0                                                                   \
	} /* taken so far */
#define FAULT(cause)                                                                               \
	{                                                                                          \
		TRAP, {cause}, 0, 0                                                                \
	}
#define GET(addr, v)                                                                               \
	{                                                                                          \
		PEEK, {addr}, 0, v                                                                 \
	}
#define PUT(addr, v)                                                                               \
	{                                                                                          \
		POKE, {addr, v}, 0, 0                                                              \
	}
/* A PMU call, and one of another extension. */
#define SBI0(fid, err, val)                                                                        \
	{                                                                                          \
		CALL, {fid}, err, val                                                              \
	}
#define SBI1(fid, a, err, val)                                                                     \
	{                                                                                          \
		CALL, {fid, a}, err, val                                                           \
	}
#define SBI3(fid, a, b, c, err, val)                                                               \
	{                                                                                          \
		CALL, {fid, a, b, c}, err, val                                                     \
	}
#define CONFIG(base, mask, flags, ev, data, err, val)                                              \
	{                                                                                          \
		CALL, {2, base, mask, flags, ev, data}, err, val                                   \
	}
#define START(base, mask, flags, v, err)                                                           \
	{                                                                                          \
		CALL, {3, base, mask, flags, v}, err, ANY                                          \
	}
#define STOP(base, mask, flags, err)                                                               \
	{                                                                                          \
		CALL, {4, base, mask, flags}, err, ANY                                             \
	}
#define FWREAD(i, err, val)                                                                        \
	{                                                                                          \
		CALL, {5, i}, err, val                                                             \
	}
#define INFO8(addr, n, flags, err)                                                                 \
	{                                                                                          \
		CALL, {8, addr, 0, n, flags}, err, ANY                                             \
	}
#define EXT(eid, fid, a, b, err, val)                                                              \
	{                                                                                          \
		OTHER, {eid, fid, a, b}, err, val                                                  \
	}
#define TIME_CALL EXT(QUIPU_SBI_TIME, 0, 0, 0, 0, ANY)
/* @n config_matching calls that answer val, val + 1, ... */
#define CONFIGS(n, mask, ev, val)                                                                  \
	{                                                                                          \
		SERIES, {n, mask, ev}, 0, val                                                      \
	}

struct test {
	const char *name; /* number and what is at stake */
	const char *source;
	struct tree tree;
	struct step steps[24];
};

#define EV3	      0x323
#define CTR3	      0xB03
#define INHIBIT	      0x320
/* mhpmcounter3 counts instructions and runs from @v. */
#define COUNT_FROM(v) WR(M, INHIBIT, 0), WR(M, EV3, 2), WR(M, CTR3, v)

static const struct test registers[] = {
	{"C1 no upper halves, no CSR 0xB01", "PRIV, M", {0}, {RDX(M, 0xB80, 2), RDX(M, 0xB01, 2)}},
	{"C2 cycle is read-only even for M", "PRIV, M", {0}, {WRX(M, 0xC00, 0, 2)}},
	{"C3 mcountinhibit keeps what exists",
	 "PRIV, M",
	 {0},
	 {WR(M, INHIBIT, UINT64_MAX), RD(M, INHIBIT, 0x7FFFD)}},
	{"C4 mcounteren keeps what exists",
	 "D-7, M",
	 {0},
	 {WR(M, 0x306, UINT64_MAX), RD(M, 0x306, 0x7FFFF)}},
	{"C5 an inhibited cycle counter stands",
	 "PRIV, M",
	 {0},
	 {WR(M, INHIBIT, 1), WR(M, 0xB00, 5), USER(CYC, 100), RD(M, 0xB00, 5), RD(M, 0xC00, 5)}},
	{"C6 and runs when the bit is cleared",
	 "PRIV",
	 {0},
	 {WR(M, INHIBIT, 1), WR(M, 0xB00, 5), WR(M, INHIBIT, 0), USER(CYC, 100),
	  RD(M, 0xB00, 105)}},
	{"C7 minstret reads what was just written",
	 "ZIC",
	 {0},
	 {WR(M, 0xB02, 100), RD(M, 0xB02, 100)}},
	{"C8 ecalls do not retire",
	 "ZIC",
	 {0},
	 {WR(M, 0xB02, 0), USER(QUIPU_SIGNAL_SYSCALLS, 10), RD(M, 0xB02, 0), USER(INSN, 3),
	  RD(M, 0xB02, 3)}},
	{"C9 S cannot touch M's registers", "PRIV, M", {0}, {RDX(S, EV3, 2), RDX(S, 0xB00, 2)}},
	{"C10 mcounteren closes the shadow, the counter goes on",
	 "PRIV",
	 {0},
	 {WR(M, 0x306, 0), RDX(S, 0xC00, 2), WR(M, 0xB00, 0), USER(CYC, 7), RD(M, 0xB00, 7)}},
	{"C11 scounteren closes it for U alone",
	 "PRIV",
	 {0},
	 {WR(M, 0x306, 1), WR(S, 0x106, 0), RD(S, 0xC00, 0), RDX(U, 0xC00, 2), WR(S, 0x106, 1),
	  RD(U, 0xC00, 0)}},
	{"C12 hcounteren closes it for VS",
	 "PRIV",
	 {.extensions = "sscofpmf_+h"},
	 {WR(M, 0x306, 1), WR(M, 0x606, 0), RDX(VS, 0xC00, 22), WR(M, 0x606, 1), RD(VS, 0xC00, 0)}},
	{"C13 selector 0 counts nothing",
	 "PRIV",
	 {0},
	 {WR(M, INHIBIT, 0), WR(M, EV3, 0), WR(M, CTR3, 9), USER(INSN, 50), RD(M, CTR3, 9)}},
	{"C14 overflow sets OF, LCOFIP, scountovf",
	 "SSCO, M",
	 {0},
	 {COUNT_FROM(-UINT64_C(3)), USER(INSN, 5), RD(M, CTR3, 2), RD(M, EV3, OF | 2),
	  RD(M, 0x344, LCOFI), RD(M, 0xDA0, 0x7FFF8), RD(S, 0xDA0, 0x7FFF8)}},
	{"C15 no second interrupt while OF stays",
	 "SSCO",
	 {0},
	 {COUNT_FROM(-UINT64_C(3)), USER(INSN, 5), WR(M, 0x344, 0), WR(M, CTR3, -UINT64_C(1)),
	  USER(INSN, 4), RD(M, CTR3, 3), RD(M, 0x344, 0)}},
	{"C16 OF preset: wraps silently",
	 "SSCO",
	 {0},
	 {WR(M, INHIBIT, 0), WR(M, EV3, OF | 2), WR(M, CTR3, -UINT64_C(3)), USER(INSN, 5),
	  RD(M, CTR3, 2), RD(M, 0x344, 0)}},
	{"C17 writing 0 over the maximum is no overflow",
	 "SSCO",
	 {0},
	 {COUNT_FROM(UINT64_MAX), WR(M, CTR3, 0), RD(M, EV3, 2), RD(M, 0x344, 0)}},
	{"C18 LCOFIP once cleared stays cleared",
	 "SSCO, M",
	 {0},
	 {COUNT_FROM(-UINT64_C(3)), USER(INSN, 5), WR(M, 0x344, 0), RD(M, 0x344, 0), USER(INSN, 5),
	  RD(M, 0x344, 0), RD(M, EV3, OF | 2)}},
	{"C19 software's OF shows and does not interrupt",
	 "SSCO, D-6",
	 {0},
	 {WR(M, EV3, 2), WR(M, 0x324, 2), RD(M, 0xDA0, 0x7FFE0), WR(M, EV3, OF | 2),
	  RD(M, 0xDA0, 0x7FFE8), RD(M, 0x344, 0)}},
	{"C20 40 bits wrap at 40 bits",
	 "SSCO",
	 {.width = 40},
	 {COUNT_FROM(UINT64_MAX), RD(M, CTR3, (UINT64_C(1) << 40) - 1), USER(INSN, 1),
	  RD(M, CTR3, 0), RD(M, EV3, OF | 2)}},
	{"C21 without Sscofpmf it wraps and nobody hears",
	 "PRIV, M",
	 {.extensions = "zihpm"},
	 {COUNT_FROM(UINT64_MAX), USER(INSN, 1), RD(M, CTR3, 0), RDX(M, 0xDA0, 2),
	  WR(M, 0x344, LCOFI), RD(M, 0x344, 0)}},
	{"C22 mcycle wraps silently",
	 "SMCN",
	 {0},
	 {WR(M, 0xB00, UINT64_MAX), USER(CYC, 1), RD(M, 0xB00, 0), RD(M, 0x344, 0)}},
	{"C23 MINH hides M",
	 "SSCO, M",
	 {0},
	 {WR(M, INHIBIT, 0), WR(M, EV3, MINH | 2), MODE_FEED(M, INSN, 100), RD(M, CTR3, 0),
	  WR(M, EV3, 2), MODE_FEED(M, INSN, 100), RD(M, CTR3, 100)}},
	{"C24 SINH hides S",
	 "SSCO",
	 {0},
	 {WR(M, INHIBIT, 0), WR(M, EV3, SINH | 2), USER(INSN, 1000), MODE_FEED(S, INSN, 500),
	  RD(M, CTR3, 1000)}},
	{"C25 all three hide everything",
	 "SSCO",
	 {0},
	 {WR(M, INHIBIT, 0), WR(M, EV3, MINH | SINH | UINH | 2), USER(INSN, 10),
	  MODE_FEED(S, INSN, 10), MODE_FEED(M, INSN, 10), RD(M, CTR3, 0)}},
	{"C26 VSINH and VUINH need H",
	 "SSCO",
	 {0},
	 {WR(M, EV3, QUIPU_RISCV_VSINH | QUIPU_RISCV_VUINH | 2), RD(M, EV3, 2)}},
	{"C27 scountovf: M sees all, S what mcounteren opens",
	 "SSCO, D-10",
	 {0},
	 {WR(M, 0x306, 0), RD(M, 0xDA0, 0x7FFF8), RD(S, 0xDA0, 0), RDX(U, 0xDA0, 2)}},
	{"C28 two overflows, one pending bit",
	 "SSCO",
	 {0},
	 {COUNT_FROM(UINT64_MAX), WR(M, 0x324, 2), WR(M, 0xB04, UINT64_MAX), USER(INSN, 1),
	  RD(M, EV3, OF | 2), RD(M, 0x324, OF | 2), RD(M, 0x344, LCOFI)}},
	{"C29 pending waits for SIE",
	 "PRIV",
	 {0},
	 {WR(S, 0x104, LCOFI), MODE(S), COUNT_FROM(UINT64_MAX), USER(INSN, 1), PEND(-1),
	  INTERRUPTS(0), WR(S, 0x100, QUIPU_RISCV_SSTATUS_SIE), PEND(13), TAKE(1), INTERRUPTS(1),
	  RD(S, 0x142, (UINT64_C(1) << 63) | 13)}},
	{"C30 the timer goes first",
	 "PRIV",
	 {0},
	 {MODE(S), WR(M, 0x304, LCOFI | 32), WR(M, 0x344, LCOFI | 32),
	  WR(S, 0x100, QUIPU_RISCV_SSTATUS_SIE), PEND(5), WR(M, 0x344, LCOFI), PEND(13)}},
	{"C31 minstretcfg.SINH: the faulting load counts once",
	 "SMCN",
	 {.extensions = "sscofpmf_smcntrpmf"},
	 {WR(M, 0x322, SINH), WR(M, 0xB02, 0), MODE_FEED(S, INSN, 20), USER(INSN, 1),
	  RD(M, 0xB02, 1)}},
	{"C32 mcyclecfg keeps filter bits",
	 "SMCN, D-8",
	 {.extensions = "smcntrpmf"},
	 {WR(M, 0x321, UINT64_MAX), RD(M, 0x321, UINT64_C(0x7000000000000000))}},
	{"C32 with H",
	 "SMCN, D-8",
	 {.extensions = "smcntrpmf_+h"},
	 {WR(M, 0x321, UINT64_MAX), RD(M, 0x321, UINT64_C(0x7C00000000000000))}},
	{"C33 no delegation without CDE",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg"},
	 {WR(S, 0x150, 0x43), RDX(S, 0x151, 2)}},
	{"C34 sireg is the counter",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg"},
	 {WR(M, 0x30A, UINT64_C(1) << 60), WR(M, 0x306, 8), WR(S, 0x150, 0x43), WR(S, 0x151, 1234),
	  RD(S, 0xC03, 1234)}},
	{"C35 what delegation never reaches",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg"},
	 {WR(M, 0x30A, UINT64_C(1) << 60), WR(M, 0x306, 8 | 2), WR(S, 0x150, 0x41),
	  RDX(S, 0x151, 2), RDX(M, 0x151, 2), WR(S, 0x150, 0x43), RDX(S, 0x153, 2),
	  RDX(S, 0x155, 2), WR(S, 0x150, 0x44), RDX(S, 0x151, 2)}},
	{"C36 MINH is M's",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg"},
	 {WR(M, 0x30A, UINT64_C(1) << 60), WR(M, 0x306, 8), WR(M, EV3, 2), WR(S, 0x150, 0x43),
	  WR(S, 0x152, MINH | 2), RD(S, 0x152, 2), RD(M, EV3, 2)}},
	{"C37 scountinhibit reaches delegated counters only",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg"},
	 {WR(M, 0x30A, UINT64_C(1) << 60), WR(M, 0x306, 8), WR(M, INHIBIT, 0),
	  WR(S, 0x120, UINT64_MAX), RD(S, 0x120, 8), RD(M, INHIBIT, 8), WR(M, INHIBIT, 0x1C),
	  RD(S, 0x120, 8), WR(S, 0x120, 0), RD(M, INHIBIT, 0x14)}},
	{"1.1 without Shlcofideleg hideleg, vsip and vsie are 0",
	 "PRIV",
	 {.extensions = "sscofpmf_+h"},
	 {WR(M, 0x603, UINT64_MAX), RD(M, 0x603, 0), WR(M, 0x204, UINT64_MAX), RD(M, 0x204, 0),
	  WR(M, 0x344, LCOFI), WR(M, 0x244, LCOFI), RD(M, 0x244, 0), RD(S, 0x144, LCOFI)}},
	{"1.1 Shlcofideleg gives LCOFI to a guest, which S then does not take",
	 "PRIV",
	 {.extensions = "sscofpmf_shlcofideleg_+h"},
	 {WR(S, 0x104, LCOFI), WR(M, 0x344, LCOFI), PEND(13), WR(S, 0x603, UINT64_MAX),
	  RD(S, 0x603, LCOFI), PEND(-1), RD(VS, 0x144, LCOFI), RD(VS, 0x104, LCOFI),
	  RD(S, 0x244, LCOFI), WR(VS, 0x104, 0), RD(M, 0x304, 0), WR(S, 0x204, LCOFI),
	  RD(M, 0x304, LCOFI), WR(VS, 0x144, 0), RD(M, 0x344, 0), RDX(VS, 0x244, 22),
	  RDX(VS, 0x603, 22)}},
	{"1.1 mvien and mvip need Smaia, bit 13 Smcdeleg as well",
	 "SMCD",
	 {.extensions = "sscofpmf_smaia"},
	 {WR(M, 0x308, UINT64_MAX), RD(M, 0x308, 0), WR(M, 0x309, UINT64_MAX), RD(M, 0x309, 0),
	  RDX(S, 0x308, 2), RDX(M, 0x608, 2), RDX(M, 0x645, 2)}},
	{"1.1 and without Smaia there are none",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg_+h"},
	 {RDX(M, 0x308, 2), RDX(M, 0x309, 2), RDX(M, 0x608, 2), WR(M, 0x645, UINT64_MAX),
	  RD(M, 0x645, 0)}},
	{"1.1 M injects LCOFI through mvip where mideleg keeps the hart's own",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg_smaia"},
	 {WR(M, 0x309, UINT64_MAX), RD(M, 0x309, LCOFI), RD(S, 0x144, 0), WR(M, 0x303, 0),
	  RD(S, 0x144, 0), WR(M, 0x308, UINT64_MAX), RD(M, 0x308, LCOFI), RD(S, 0x144, LCOFI),
	  PEND(-1), WR(S, 0x104, UINT64_MAX), RD(S, 0x104, LCOFI), RD(M, 0x304, 0), PEND(13),
	  WR(S, 0x144, 0), RD(M, 0x309, 0), PEND(-1), WR(M, 0x344, LCOFI), RD(S, 0x144, 0)}},
	{"1.1 what mideleg hands down is the hart's own, whatever mvien says",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg_smaia"},
	 {WR(M, 0x303, LCOFI), WR(M, 0x308, LCOFI), WR(M, 0x309, LCOFI), RD(S, 0x144, 0),
	  WR(M, 0x344, LCOFI), WR(M, 0x309, 0), RD(S, 0x144, LCOFI)}},
	{"1.1 HS injects LCOFI into its guest through hvip",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg_ssaia_+h"},
	 {RDX(M, 0x308, 2), WR(S, 0x645, UINT64_MAX), RD(S, 0x645, LCOFI), RD(VS, 0x144, 0),
	  WR(S, 0x608, UINT64_MAX), RD(S, 0x608, LCOFI), RD(VS, 0x144, LCOFI),
	  WR(VS, 0x104, UINT64_MAX), RD(S, 0x204, LCOFI), RD(S, 0x104, 0), WR(VS, 0x144, 0),
	  RD(S, 0x645, 0), RD(S, 0x144, 0), PEND(-1)}},
	{"a guest's sstatus, sepc and scause are its own",
	 "PRIV",
	 {.extensions = "sscofpmf_+h"},
	 {WR(S, 0x100, 0), WR(VS, 0x100, UINT64_MAX), WR(VS, 0x141, 8), WR(VS, 0x142, 5),
	  RD(S, 0x100, 0), RD(S, 0x141, 0), RD(S, 0x142, 0),
	  RD(S, 0x200, QUIPU_RISCV_SSTATUS_SIE | QUIPU_RISCV_SSTATUS_SPP), RD(S, 0x241, 8),
	  RD(S, 0x242, 5), RD(VS, 0x142, 5)}},
	{"1.6 a guest reaches no counter through sireg",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg_+h"},
	 {WR(M, 0x306, 8), WR(VS, 0x150, 0x43), RD(S, 0x250, 0x43), RD(S, 0x150, 0),
	  RDX(VS, 0x151, 2), RDX(S, 0x251, 2), RDX(M, 0x257, 2), WR(M, 0x30A, UINT64_C(1) << 60),
	  RDX(VS, 0x151, 22), RDX(VS, 0x157, 22), RDX(S, 0x251, 2), WR(VS, 0x150, 0x3F),
	  RDX(VS, 0x151, 2), RDX(VS, 0x250, 22), RDX(VS, 0x251, 22), RDX(QUIPU_RISCV_VU, 0x150, 22),
	  RDX(QUIPU_RISCV_VU, 0x151, 22), RDX(QUIPU_RISCV_VU, 0x250, 22), RDX(U, 0x150, 2)}},
	{"1.6 mstateen0 and hstateen0 close siselect and sireg",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg_smstateen_+h"},
	 {WR(M, 0x30A, UINT64_C(1) << 60), WR(M, 0x306, 8), RD(M, 0x30C, UINT64_C(1) << 60),
	  WR(S, 0x150, 0x43), RD(S, 0x151, 0), RDX(VS, 0x150, 22), WR(S, 0x60C, UINT64_MAX),
	  RD(S, 0x60C, UINT64_C(1) << 60), RD(VS, 0x150, 0), WR(M, 0x30C, 0), RD(S, 0x60C, 0),
	  RDX(S, 0x150, 2), RDX(S, 0x151, 2), RDX(S, 0x250, 2), RDX(VS, 0x150, 2),
	  RDX(VS, 0x151, 2), RD(M, 0x150, 0x43)}},
	{"1.6 without Smstateen nothing is closed",
	 "SMCD",
	 {.extensions = "sscofpmf_smcdeleg"},
	 {RDX(M, 0x30C, 2), RD(S, 0x150, 0), RDX(S, 0x250, 2)}},
};

#define CYCLES 0x1
#define TIMER  0xF0005

/* Rows of raw events for B49 to B52. */
#define U74_RAWS                                                                                   \
	.raws = {0, 0, 0xffffffff, 0xfc0000ff, 0x18, 0, 1, 0xffffffff, 0xfff800ff, 0x18},          \
	.nraws = 10, .mask = 0x18, .width = 40, .extensions = "zihpm"

static const struct test calls[] = {
	{"B1 the PMU extension is there",
	 "SBI, M",
	 {0},
	 {EXT(QUIPU_SBI_BASE, 3, 0x504D55, 0, 0, 1)}},
	{"B2 num_counters", "M", {0}, {SBI0(0, 0, 35)}},
	{"B3 counter_info of hardware",
	 "M",
	 {0},
	 {SBI1(1, 0, 0, 0x3FC00), SBI1(1, 2, 0, 0x3FC02), SBI1(1, 3, 0, 0x3FC03),
	  SBI1(1, 18, 0, 0x3FC12)}},
	{"B4 counter_info of what is not there",
	 "M",
	 {0},
	 {SBI1(1, 1, -3, ANY), SBI1(1, 35, -3, ANY), SBI1(1, 63, -3, ANY),
	  SBI1(1, UINT64_MAX, -3, ANY)}},
	{"B5 counter_info of firmware", "M", {0}, {SBI1(1, 19, 0, UINT64_C(0x800000000003F000))}},
	{"B6 scountovf after boot", "M", {0}, {RD(S, 0xDA0, 0x7FFF8)}},
	{"B7 empty set", "M", {0}, {CONFIG(0, 0, 0, CYCLES, 0, -3, ANY)}},
	{"B8 sets that leave the counters",
	 "M",
	 {0},
	 {CONFIG(35, 1, 0, CYCLES, 0, -3, ANY),
	  CONFIG(0, ALL | (UINT64_C(1) << 35), 0, CYCLES, 0, -3, ANY),
	  CONFIG(UINT64_MAX, 1, 0, CYCLES, 0, -3, ANY), CONFIG(1, ALL, 0, CYCLES, 0, -3, ANY)}},
	{"B9 no events",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, 0xB, 0, -3, ANY), CONFIG(0, ALL, 0, 0x10038, 0, -3, ANY),
	  CONFIG(0, ALL, 0, 0x10006, 0, -3, ANY), CONFIG(0, ALL, 0, 0x40000, 0, -3, ANY),
	  CONFIG(0, ALL, 0, 0xE0000, 0, -3, ANY), CONFIG(0, ALL, 0, 0x20001, 0, -3, ANY)}},
	{"B10 an event that no row maps", "M", {0}, {CONFIG(0, ALL, 0, 0x3, 0, -2, ANY)}},
	{"B11 raw events that no row maps",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, 0x20000, 0, -2, ANY), CONFIG(0, ALL, 0, 0x20000, 0x123, -2, ANY)}},
	{"B12 firmware codes that are not there",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, 0xF0016, 0, -3, ANY), CONFIG(0, ALL, 0, 0xF00FF, 0, -3, ANY),
	  CONFIG(0, ALL, 0, 0xF0100, 0, -3, ANY), CONFIG(0, ALL, 0, 0xFFFFF, 0, -3, ANY)}},
	{"B13 a firmware event on hardware counters",
	 "M",
	 {0},
	 {CONFIG(0, 0x7FFFD, 0, TIMER, 0, -2, ANY)}},
	{"B14 start and stop before configuration",
	 "M",
	 {0},
	 {START(3, 1, 0, 0, -3), STOP(3, 1, 0, -3)}},
	{"B15 start and stop of nothing and of time",
	 "M",
	 {0},
	 {START(0, 0, 0, 0, -3), STOP(0, 0, 0, -3), START(1, 1, 0, 0, -3), STOP(1, 1, 0, -3)}},
	{"B16 the cycle counter stops and starts",
	 "M",
	 {0},
	 {STOP(0, 1, 0, 0), STOP(0, 1, 0, -8), START(0, 1, 1, 100, 0), START(0, 1, 0, 0, -7),
	  RD(S, 0xC00, 100)}},
	{"B17 cycles take counter 3, then 4", "M", {0}, {CONFIGS(2, ALL, CYCLES, 3)}},
	{"B18 counter 0 alone cannot filter", "M", {0}, {CONFIG(0, 1, 0, CYCLES, 0, -2, ANY)}},
	{"B18 with Smcntrpmf it can",
	 "M",
	 {.extensions = "sscofpmf_smcntrpmf"},
	 {CONFIG(0, 1, 0, CYCLES, 0, 0, 0)}},
	{"B19 without Sscofpmf cycles are counter 0",
	 "M",
	 {.extensions = "zihpm"},
	 {CONFIG(0, ALL, 0, CYCLES, 0, 0, 0)}},
	{"B20 start, stop and their repetitions",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, CYCLES, 0, 0, 3), START(3, 1, 1, 1000, 0), START(3, 1, 0, 0, -7),
	  STOP(3, 1, 0, 0), STOP(3, 1, 0, -8), START(3, 1, 0, 0, 0), RD(S, 0xC03, 1000)}},
	{"B21 RESET of a stopped counter unbinds it",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, CYCLES, 0, 0, 3), STOP(3, 1, 1, -8), START(3, 1, 0, 0, -3),
	  STOP(3, 1, 0, -3)}},
	{"B22 RESET leaves counter 0 its binding",
	 "M",
	 {0},
	 {STOP(0, 1, 0, 0), STOP(0, 1, 1, -8), START(0, 1, 0, 0, 0)}},
	{"B23 AUTO_START starts",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 6, CYCLES, 0, 0, 3), START(3, 1, 0, 0, -7)}},
	{"B24 SKIP_MATCH needs a binding",
	 "M, D-17",
	 {0},
	 {CONFIG(5, 1, 1, CYCLES, 0, -3, ANY), CONFIG(0, ALL, 0, CYCLES, 0, 0, 3),
	  CONFIG(3, 1, 1, CYCLES, 0, 0, 3), STOP(3, 1, 1, -8),
	  CONFIG(3, 1, 1, CYCLES, 0, -3, ANY)}},
	{"B25 reserved flags",
	 "SBI",
	 {0},
	 {CONFIG(0, ALL, 1 << 8, CYCLES, 0, -3, ANY), START(0, 1, 4, 0, -3), STOP(0, 1, 4, -3),
	  START(0, 1, 3, 0, -3)}},
	{"B26 snapshots without memory",
	 "SBI, M",
	 {0},
	 {CONFIG(0, ALL, 0, CYCLES, 0, 0, 3), START(3, 1, 2, 0, -9), START(3, 1, 0, 0, 0),
	  STOP(3, 1, 2, -9), STOP(3, 1, 0, 0)}},
	{"B27 sixteen counters and no more",
	 "OSBI, M",
	 {0},
	 {CONFIGS(16, ALL, CYCLES, 3), CONFIG(0, ALL, 0, CYCLES, 0, -2, ANY)}},
	{"B28 RESET of all frees all",
	 "M",
	 {0},
	 {CONFIGS(16, ALL, CYCLES, 3), STOP(0, ALL, 1, -3), CONFIG(0, ALL, 0, CYCLES, 0, 0, 3)}},
	{"B29 a firmware counter starts at 0",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, TIMER, 0, 0, 19), FWREAD(19, 0, 0)}},
	{"B30 five timer calls",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, TIMER, 0, 0, 19), START(19, 1, 1, 10, 0), TIME_CALL, TIME_CALL,
	  TIME_CALL, TIME_CALL, TIME_CALL, FWREAD(19, 0, 15), SBI1(6, 19, 0, 0)}},
	{"B31 fw_read_hi is 0",
	 "SBI, M",
	 {0},
	 {CONFIG(0, ALL, 0, TIMER, 0, 0, 19), SBI1(6, 19, 0, 0), SBI1(6, 3, -3, ANY)}},
	{"B32 a stopped firmware counter keeps its value",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, TIMER, 0, 0, 19), START(19, 1, 1, 15, 0), START(19, 1, 0, 0, -7),
	  STOP(19, 1, 0, 0), TIME_CALL, FWREAD(19, 0, 15)}},
	{"B33 stopped, reset, gone",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 0, TIMER, 0, 0, 19), STOP(19, 1, 0, -8), STOP(19, 1, 1, -8),
	  FWREAD(19, -3, ANY)}},
	{"B34 fw_read of what is no firmware counter",
	 "M",
	 {0},
	 {FWREAD(3, -3, ANY), FWREAD(0, -3, ANY), FWREAD(35, -3, ANY)}},
	{"B35 illegal instructions are counted",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 4, 0xF0004, 0, 0, 19), RDX(S, 0xB00, 2), FWREAD(19, 0, 1)}},
	{"B36 access faults are counted and passed on",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 4, 0xF0002, 0, 0, 19), FAULT(5), FWREAD(19, 0, 1), RD(S, 0x142, 5)}},
	{"B37 a fence to oneself is sent and received",
	 "M",
	 {0},
	 {CONFIG(0, ALL, 4, 0xF0008, 0, 0, 19), CONFIG(0, ALL, 4, 0xF0009, 0, 0, 20),
	  EXT(QUIPU_SBI_RFENCE, 0, 1, 0, 0, ANY), FWREAD(19, 0, 1), FWREAD(20, 0, 1)}},
	{"B38 sixteen firmware counters",
	 "M",
	 {0},
	 {CONFIGS(16, ALL, TIMER, 19), CONFIG(0, ALL, 0, TIMER, 0, -2, ANY)}},
	{"B39 two counters on one firmware event both count",
	 "D-16",
	 {0},
	 {CONFIG(0, ALL, 4, TIMER, 0, 0, 19), CONFIG(0, ALL, 4, TIMER, 0, 0, 20), TIME_CALL,
	  FWREAD(19, 0, 1), FWREAD(20, 0, 1)}},
	{"B39 OpenSBI: only the first",
	 "M",
	 {.strings = {{"quipu,opensbi-compat", ""}}},
	 {CONFIG(0, ALL, 4, TIMER, 0, 0, 19), CONFIG(0, ALL, 4, TIMER, 0, 0, 20), TIME_CALL,
	  FWREAD(19, 0, 1), FWREAD(20, 0, 0)}},
	{"B40 snapshot memory",
	 "SBI",
	 {0},
	 {SBI3(7, MEM, 0, 0, 0, ANY), SBI3(7, MEM + 8, 0, 0, -3, ANY), SBI3(7, MEM, 0, 1, -3, ANY),
	  SBI3(7, UINT64_MAX, UINT64_MAX, 0, 0, ANY), SBI3(7, 0x80000000, 0, 0, -5, ANY),
	  SBI3(7, UINT64_C(0xfffffffffffff000), 0, 0, -5, ANY), SBI3(7, MEM, 1, 0, -5, ANY)}},
	{"B41 TAKE_SNAPSHOT stores values and overflow",
	 "SBI",
	 {0},
	 {SBI3(7, MEM, 0, 0, 0, ANY), PUT(MEM + 24, 777), CONFIGS(2, ALL, CYCLES, 3),
	  START(3, 1, 1, 50, 0), START(4, 1, 1, -UINT64_C(5), 0), USER(CYC, 20), STOP(3, 3, 2, 0),
	  GET(MEM + 8, 70), GET(MEM + 16, 15), GET(MEM, 2), GET(MEM + 24, 777)}},
	{"B42 INIT_SNAPSHOT loads values",
	 "SBI",
	 {0},
	 {SBI3(7, MEM, 0, 0, 0, ANY), CONFIGS(2, ALL, CYCLES, 3), PUT(MEM + 8, 7), PUT(MEM + 16, 9),
	  START(3, 3, 2, 0, 0), RD(S, 0xC03, 7), RD(S, 0xC04, 9)}},
	{"B43 event_get_info",
	 "SBI, M",
	 {0},
	 {PUT(MEM, 1), PUT(MEM + 16, 2), PUT(MEM + 32, 0x10019), PUT(MEM + 48, 3),
	  PUT(MEM + 64, 0x10000), PUT(MEM + 80, 11), INFO8(MEM, 6, 0, 0),
	  GET(MEM, 1 | UINT64_C(1) << 32), GET(MEM + 16, 2 | UINT64_C(1) << 32),
	  GET(MEM + 32, 0x10019 | UINT64_C(1) << 32), GET(MEM + 48, 3), GET(MEM + 64, 0x10000),
	  GET(MEM + 80, 11)}},
	{"B44 event_get_info: what is refused",
	 "M",
	 {0},
	 {INFO8(MEM, 0, 0, -3), INFO8(MEM + 8, 1, 0, -3), INFO8(MEM, 1, 1, -3),
	  INFO8(0x80000000, 1, 0, -5), INFO8(MEM, UINT64_MAX, 0, -5),
	  INFO8(MEM, UINT64_C(1) << 60, 0, -5)}},
	{"B45 event_get_info: reserved bits",
	 "SBI",
	 {0},
	 {PUT(MEM, 0x100001), INFO8(MEM, 1, 0, -3)}},
	{"B45 OpenSBI: answered, not supported",
	 "OSBI",
	 {.strings = {{"quipu,opensbi-compat", ""}}},
	 {PUT(MEM, 0x100001), INFO8(MEM, 1, 0, 0), GET(MEM, 0x100001)}},
	{"B46 functions that are not there", "SBI, M", {0}, {SBI0(9, -2, ANY), SBI0(99, -2, ANY)}},
	{"B46 a firmware of SBI 1.0 has six",
	 "SBI",
	 {.strings = {{"quipu,sbi-version", "1.0"}}},
	 {SBI0(0, 0, 35), SBI1(6, 19, -2, ANY), SBI3(7, MEM, 0, 0, -2, ANY), INFO8(MEM, 1, 0, -2),
	  EXT(QUIPU_SBI_BASE, 0, 0, 0, 0, 0x01000000)}},
	{"B47 one interrupt for each time it is armed",
	 "M",
	 {0},
	 {WR(S, 0x104, LCOFI), CONFIG(0, ALL, 0, CYCLES, 0, 0, 3),
	  START(3, 1, 1, -UINT64_C(100000), 0), USER(CYC, 99999), INTERRUPTS(0), USER(CYC, 300001),
	  INTERRUPTS(1), RD(S, 0xDA0, 0x7FFF8), STOP(3, 1, 0, 0), RD(S, 0xDA0, 0x7FFF8),
	  START(3, 1, 1, -UINT64_C(100000), 0), RD(S, 0xDA0, 0x7FFF0), USER(CYC, 100000),
	  INTERRUPTS(2), USER(CYC, 500000), INTERRUPTS(2)}},
	{"B48 filters reach mhpmevent, MINH by force",
	 "OSBI",
	 {0},
	 {CONFIG(0, ALL, 0x60, CYCLES, 0, 0, 3), RD(M, EV3, 1 | OF | MINH | SINH | UINH),
	  START(3, 1, 0, 0, 0), RD(M, EV3, 1 | MINH | SINH | UINH)}},
	{"B49 raw events of both types",
	 "M",
	 {.raws = {0, 0x10019, 0xffffffff, 0xffffffff, 0x7fff8}, .nraws = 5},
	 {CONFIG(0, ALL, 0, 0x20000, 0x10019, 0, 3), CONFIG(0, ALL, 0, 0x30000, 0x10019, 0, 4)}},
	{"B50 raw data that belong to the firmware",
	 "M, D-18",
	 {.raws = {0, 0x10019, 0xffffffff, 0xffffffff, 0x7fff8}, .nraws = 5},
	 {CONFIG(0, ALL, 0, 0x20000, 0x10019 | UINT64_C(1) << 48, -3, ANY)}},
	{"B51 rows of the U74",
	 "M",
	 {U74_RAWS, .strings = {{"quipu,events", "u74"}, {"quipu,unmodelled", "zero"}}},
	 {CONFIG(0, 0x18, 0, 0x20000, 0x100, 0, 3), STOP(3, 1, 1, -8),
	  CONFIG(0, 0x18, 0, 0x20000, 0x4000, 0, 3), STOP(3, 1, 1, -8),
	  CONFIG(0, 0x18, 0, 0x20000, 0x40001, 0, 3), STOP(3, 1, 1, -8),
	  CONFIG(0, 0x18, 0, 0x20000, 0x4000000, -2, ANY),
	  CONFIG(0, 0x18, 0, 0x20000, 0x2000001, -2, ANY),
	  CONFIG(0, 0x18, 0, 0x20000, 0x2, -2, ANY)}},
	{"B52 two counters for a range",
	 "M",
	 {.ranges = {3, 6, 0x18}, .nranges = 3, .mask = 0x18},
	 {CONFIG(0, 0xFFFF, 0, 3, 0, 0, 3), CONFIG(0, 0xFFFF, 0, 4, 0, 0, 4),
	  CONFIG(0, 0xFFFF, 0, 5, 0, -2, ANY)}},
	{"B53 a 1.10 hart cannot stop",
	 "OSBI",
	 {.extensions = "zihpm", .strings = {{"quipu,privileged", "1.10"}}},
	 {RDX(M, INHIBIT, 2), START(0, 1, 1, 5, 0), USER(CYC, 10), RD(M, 0xB00, 15),
	  STOP(0, 1, 0, 0), USER(CYC, 10), RD(M, 0xB00, 25)}},
	{"B54 a second start leaves the armed period alone",
	 "SBI, M, D-29",
	 {0},
	 {WR(S, 0x104, LCOFI), CONFIG(0, ALL, 0, CYCLES, 0, 0, 3),
	  START(3, 1, 1, -UINT64_C(30000000), 0), START(3, 1, 0, 0, -7), USER(CYC, 40000000),
	  INTERRUPTS(1)}},
	{"B54 OpenSBI 1.9: the second start disarms it",
	 "M",
	 {.strings = {{"quipu,opensbi-compat", ""}}},
	 {WR(S, 0x104, LCOFI), CONFIG(0, ALL, 0, CYCLES, 0, 0, 3),
	  START(3, 1, 1, -UINT64_C(30000000), 0), START(3, 1, 0, 0, -7), USER(CYC, 40000000),
	  INTERRUPTS(0)}},
	{"type 3 events need SBI 3.0",
	 "SBI",
	 {.raws = {0, 0x10019, 0xffffffff, 0xffffffff, 0x7fff8},
	  .nraws = 5,
	  .strings = {{"quipu,sbi-version", "2.0"}}},
	 {CONFIG(0, ALL, 0, 0x30000, 0x10019, -3, ANY)}},
	{"3.6 the snapshot page begins empty",
	 "SBI",
	 {0},
	 {PUT(MEM, 1), PUT(MEM + 8, 777), SBI3(7, MEM, 0, 0, 0, ANY), GET(MEM, 0),
	  GET(MEM + 8, 0)}},
	{"3.6 what was stopped before is not stored",
	 "SBI",
	 {0},
	 {SBI3(7, MEM, 0, 0, 0, ANY), PUT(MEM + 8, 777), CONFIG(0, ALL, 0, CYCLES, 0, 0, 3),
	  START(3, 1, 1, 50, 0), STOP(3, 1, 0, 0), STOP(3, 1, 2, -8), GET(MEM + 8, 777)}},
	{"3.7 an interrupt that is pending keeps OF set at the start",
	 "OSBI",
	 {0},
	 {CONFIG(0, ALL, 0, CYCLES, 0, 0, 3), WR(M, 0x344, LCOFI), START(3, 1, 1, 0, 0),
	  RD(S, 0xDA0, 0x7FFF8), STOP(3, 1, 0, 0), WR(M, 0x344, 0), START(3, 1, 1, 0, 0),
	  RD(S, 0xDA0, 0x7FFF0)}},
	{"3.8 two events share a fixed counter only with equal filters",
	 "D-18",
	 {.extensions = "sscofpmf_smcntrpmf"},
	 {CONFIG(0, 1, 0x20, CYCLES, 0, 0, 0), CONFIG(0, 1, 0x20, CYCLES, 0, 0, 0),
	  CONFIG(0, 1, 0, CYCLES, 0, -2, ANY), STOP(0, 1, 1, 0), CONFIG(0, 1, 0, CYCLES, 0, 0, 0)}},
	{"D-18 event_data of a general event",
	 "D-18",
	 {0},
	 {CONFIG(0, ALL, 0, CYCLES, 1, -3, ANY), CONFIG(0, ALL, 0, 0x100001, 0, -3, ANY)}},
};

static uint64_t peek(struct harness *h, uint64_t addr)
{
	const void *p = quipu_riscv_memory(h->rv, addr, 8);

	assert_non_null(p);
	return bits_le64(p);
}

static void poke(struct harness *h, uint64_t addr, uint64_t v)
{
	void *p = quipu_riscv_memory(h->rv, addr, 8);

	assert_non_null(p);
	memcpy(p, &v, 8);
}

/* What the step answered: an error or cause, and a value. */
static struct quipu_sbiret run_step(struct harness *h, const struct step *s)
{
	struct quipu_sbiret r = {0};
	const uint64_t *a = s->a;

	switch (s->op) {
	case READ:
		r.error = quipu_riscv_csr_read(h->rv, 0, (enum quipu_riscv_mode)a[0],
					       (unsigned)a[1], &r.value);
		return r;
	case WRITE:
		r.error = quipu_riscv_csr_write(h->rv, 0, (enum quipu_riscv_mode)a[0],
						(unsigned)a[1], a[2]);
		return r;
	case CALL: return quipu_riscv_ecall(h->rv, 0, QUIPU_SBI_PMU, a[0], a + 1);
	case OTHER: return quipu_riscv_ecall(h->rv, 0, a[0], a[1], (uint64_t[6]){a[2], a[3]});
	case FEED_USER: quipu_manual_signals_feed(h->manual, 0, a[0], a[1], 0x1000); return r;
	case FEED_MODE:
		r.error =
			quipu_riscv_feed(h->rv, 0, (enum quipu_riscv_mode)a[0], a[1], a[2], 0x1000);
		return r;
	case SET_MODE:
		r.error = quipu_riscv_set_mode(h->rv, 0, (enum quipu_riscv_mode)a[0]);
		return r;
	case PENDING: r.error = quipu_riscv_pending(h->rv, 0); return r;
	case RUN: r.error = quipu_riscv_run(h->rv, 0); return r;
	case TAKEN: r.error = h->interrupts; return r;
	case TRAP: r.error = quipu_riscv_trap(h->rv, 0, (unsigned)a[0], 0); return r;
	case PEEK: r.value = peek(h, a[0]); return r;
	case POKE: poke(h, a[0], a[1]); return r;
	default: fail_msg("no such step"); return r;
	}
}

static void check(const struct test *t, unsigned k, struct quipu_sbiret r, int64_t error,
		  uint64_t value)
{
	bool value_matters = value != ANY && (t->steps[k].op == READ || t->steps[k].op == CALL ||
					      t->steps[k].op == OTHER || t->steps[k].op == PEEK ||
					      t->steps[k].op == SERIES);

	if (r.error != error)
		fail_msg("%s (%s), step %u: answered %" PRId64 ", must be %" PRId64, t->name,
			 t->source, k + 1, r.error, error);
	if (!error && value_matters && r.value != value)
		fail_msg("%s (%s), step %u: value 0x%" PRIx64 ", must be 0x%" PRIx64, t->name,
			 t->source, k + 1, r.value, value);
}

static void case_test(void **state)
{
	const struct test *t = *state;
	struct harness h;

	harness_open(&h, &t->tree);
	for (unsigned k = 0; k < 24 && t->steps[k].op != END; k++) {
		const struct step *s = &t->steps[k];

		if (s->op != SERIES) {
			check(t, k, run_step(&h, s), s->error, s->value);
			continue;
		}
		for (uint64_t i = 0; i < s->a[0]; i++)
			check(t, k,
			      quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 2,
						(uint64_t[6]){0, s->a[1], 0, s->a[2], 0}),
			      0, s->value + i);
	}
	harness_close(&h);
}

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

int main(void)
{
	struct CMUnitTest tests[COUNT(registers) + COUNT(calls)];
	size_t n = 0;

	for (size_t i = 0; i < COUNT(registers); i++)
		tests[n++] = (struct CMUnitTest){registers[i].name, case_test, NULL, NULL,
						 (void *)&registers[i]};
	for (size_t i = 0; i < COUNT(calls); i++)
		tests[n++] = (struct CMUnitTest){calls[i].name, case_test, NULL, NULL,
						 (void *)&calls[i]};
	return _cmocka_run_group_tests("riscv registers and calls", tests, n, NULL, NULL);
}
