// SPDX-License-Identifier: BSD-2-Clause
/*
 * The 81 cases of the Rock sheet (section 11) as a table: each row of the sheet is one test, made
 * of calls with the results that a guest must see, of activity on strands, and of looks at guest
 * memory and interrupts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

/* The strands of the cases. */
enum { A = 0, B = 1, C = 2, D = 32 };

#define MEMORY	    0x100000u
#define MEMORY_SIZE 0x20000u
#define RING	    MEMORY
#define LIST	    0x110000u
#define RING_APART  0x200000u /* a region of its own */
#define TOE	    QUIPU_ROCK_TOE
#define USER	    QUIPU_ROCK_USER
#define U	    QUIPU_ROCK_AT_USER
#define P	    QUIPU_ROCK_AT_PRIV
#define H	    QUIPU_ROCK_AT_HPRIV
#define TWO_39	    (UINT64_C(1) << 39)
#define TWO_48	    (UINT64_C(1) << 48)

enum op {
	END,
	CALL,	 /* status and, with a result, ret1 */
	CALL_O2, /* a failing call: %o1 is 0, %o2 survives */
	TRAP,	 /* raw: trap a, function b */
	SETV,
	GETV,
	CYCLES,
	INSTR,
	L2,
	MMU,
	MCC,
	TOLD,	 /* the handler was called so often on the strand since the case began */
	HANDLER, /* from now on the handler runs so many user cycles */
	HOLD,
	PUT32,
	PUT64,
	IS32,
	IS64,	 /* guest memory at a */
	REMOVE,	 /* the memory region at a */
	STOPPED, /* the guest stops the strand */
	DROPPED,
	TRACE83,
	TRACE83_L2, /* steps 1 to 6 of the sheet's call trace */
};

#define ANY UINT64_MAX /* no result to look at */

struct step {
	enum op op;
	unsigned strand;
	uint64_t a[5];
	uint64_t status, ret1;
};

#define CALL1(s, f, a0, st)                                                                        \
	{                                                                                          \
		CALL, s, {RK_PERF_##f, a0}, st, ANY                                                \
	}
#define CALL2(s, f, a0, a1, st)                                                                    \
	{                                                                                          \
		CALL, s, {RK_PERF_##f, a0, a1}, st, ANY                                            \
	}
#define CALL3(s, f, a0, a1, a2, st)                                                                \
	{                                                                                          \
		CALL, s, {RK_PERF_##f, a0, a1, a2}, st, ANY                                        \
	}
#define CALL4(s, f, a0, a1, a2, a3, st)                                                            \
	{                                                                                          \
		CALL, s, {RK_PERF_##f, a0, a1, a2, a3}, st, ANY                                    \
	}
#define GIVES(s, f, a0, st, ret)                                                                   \
	{                                                                                          \
		CALL, s, {RK_PERF_##f, a0}, st, ret                                                \
	}
#define SET_VERSION(g, ma, mi, st, ret)                                                            \
	{                                                                                          \
		SETV, A, {g, ma, mi}, st, ret                                                      \
	}
#define GET_VERSION(g, st, ma, mi)                                                                 \
	{                                                                                          \
		GETV, A, {g, ma, mi}, st, ANY                                                      \
	}
#define LOADS(s, src, n)                                                                           \
	{                                                                                          \
		L2, s, {RK_PERF_SRC_STRAND, QUIPU_ROCK_L2_DCACHE_LOAD, src, n}, 0, 0               \
	}
#define TRAFFIC_47                                                                                 \
	{L2, A, {RK_PERF_SRC_STRAND, QUIPU_ROCK_L2_DCACHE_LOAD, 3, 3}, 0, 0},                      \
		{L2, A, {RK_PERF_SRC_STRAND, QUIPU_ROCK_L2_STORE, 3, 2}, 0, 0},                    \
		{L2, A, {RK_PERF_SRC_STRAND, QUIPU_ROCK_L2_ICACHE_LOAD, 3, 5}, 0, 0},              \
		{L2, B, {RK_PERF_SRC_STRAND, QUIPU_ROCK_L2_DCACHE_LOAD, 3, 4}, 0, 0},              \
	{                                                                                          \
		L2, A, {RK_PERF_SRC_SIU, QUIPU_ROCK_L2_DCACHE_LOAD, 0, 6}, 0, 0                    \
	}
#define MIXED_CYCLES                                                                               \
	{CYCLES, A, {U, 100}, 0, 0}, {CYCLES, A, {P, 70}, 0, 0},                                   \
	{                                                                                          \
		CYCLES, A, {H, 30}, 0, 0                                                           \
	}
#define OVERFLOW_40(toe)                                                                           \
	CALL1(A, COUNT_INIT, 0x101, 0), CALL2(A, COUNT_SET, 0x101, TWO_39 - 1000, 0),              \
		CALL2(A, COUNT_START, 0x101, (toe) | USER, 0),                                     \
	{                                                                                          \
		CYCLES, A, {U, 1500}, 0, 0                                                         \
	}

#define NOT_NEGOTIATED 1u
#define ALONE	       2u /* guest 2 is absent */
#define CHARGED	       4u /* events cost 200 and 300 hyperprivileged cycles */

struct acase {
	unsigned number;
	const char *says;
	unsigned setup;
	struct step steps[24];
};

static const struct acase cases[] = {
	{1, "no call before negotiation", NOT_NEGOTIATED, {CALL1(A, COUNT_INIT, 0x101, 7)}},
	{2, "version 1.0 is there", NOT_NEGOTIATED, {SET_VERSION(0x206, 1, 0, 0, 0)}},
	{3, "a higher minor gets 0", NOT_NEGOTIATED, {SET_VERSION(0x206, 1, 7, 0, 0)}},
	{4, "major 2 is not supported", NOT_NEGOTIATED, {SET_VERSION(0x206, 2, 0, 13, 0)}},
	{5,
	 "an unknown group is EINVAL whatever its version",
	 NOT_NEGOTIATED,
	 {SET_VERSION(0x2ff, 1, 0, 6, 0), SET_VERSION(0x2ff, 9, 0, 6, 0)}},
	{6,
	 "GET_VERSION before and after",
	 NOT_NEGOTIATED,
	 {GET_VERSION(0x206, 6, 0, 0), SET_VERSION(0x206, 1, 0, 0, 0),
	  GET_VERSION(0x206, 0, 1, 0)}},
	{7,
	 "major 0 takes the calls away",
	 0,
	 {SET_VERSION(0x206, 0, 0, 0, 0), CALL1(A, COUNT_INIT, 0x101, 7)}},
	{8,
	 "a disabled group keeps its state",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), SET_VERSION(0x206, 0, 0, 0, 0),
	  SET_VERSION(0x206, 1, 0, 0, 0), GIVES(A, COUNT_GET, 0x101, 0, 0)}},
	{9,
	 "numbers around the group's are no functions",
	 0,
	 {{TRAP, A, {0x80, 0x10f}, 7, 0},
	  {TRAP, A, {0x80, 0x134}, 7, 0},
	  {TRAP, A, {0x80, 0x13b}, 7, 0},
	  {TRAP, A, {0x90, RK_PERF_COUNT_INIT}, 7, 0}}},
	{10,
	 "both packings name one counter",
	 0,
	 {CALL1(A, COUNT_INIT, 0x0000000100000100, 0), GIVES(A, COUNT_GET, 0x101, 0, 0)}},
	{11,
	 "types that are none",
	 0,
	 {CALL1(A, COUNT_INIT, 0x000, 6), CALL1(A, COUNT_INIT, 0x301, 6),
	  CALL1(A, COUNT_INIT, 0x1001, 6), CALL1(A, COUNT_INIT, 0x10001, 6),
	  CALL1(A, COUNT_INIT, 0x100, 6)}},
	{12,
	 "sources that contradict each other",
	 0,
	 {CALL1(A, COUNT_INIT, 0x0000000200000101, 6)}},
	{13,
	 "SIU and MMU are sources of the L2 only",
	 0,
	 {CALL1(A, COUNT_INIT, 0x104, 6), CALL1(A, COUNT_INIT, 0x208, 6),
	  CALL1(A, COUNT_INIT, 0x804, 6), CALL1(A, COUNT_INIT, 0x2008, 6)}},
	{14, "all sources of the L2 at once", ALONE, {CALL1(A, COUNT_INIT, 0x40f, 0)}},
	{15,
	 "types without a sampler",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x101, RING, 6), CALL2(A, SAMPLE_INIT, 0x2001, RING, 6),
	  CALL2(A, SAMPLE_INIT, 0x4001, RING, 6), CALL2(A, SAMPLE_INIT, 0x8001, RING, 6),
	  CALL2(A, SAMPLE_INIT, 0x1001, RING, 6)}},
	{16,
	 "the owner may INIT twice",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL1(A, COUNT_INIT, 0x101, 0)}},
	{17,
	 "a strand of the same guest would block",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL1(B, COUNT_INIT, 0x101, 9)}},
	{18,
	 "a strand of another guest has no access",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL1(C, COUNT_INIT, 0x101, 10)}},
	{19,
	 "another chip has its own counters",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL1(D, COUNT_INIT, 0x101, 0)}},
	{20,
	 "another type has another owner",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL1(B, COUNT_INIT, 0x201, 0)}},
	{21,
	 "STRANDS needs the chip alone",
	 0,
	 {CALL1(A, COUNT_INIT, 0x102, 1), CALL1(A, COUNT_INIT, 0x101, 0)}},
	{22,
	 "a shared count has one owner too",
	 ALONE,
	 {CALL1(A, COUNT_INIT, 0x402, 0), CALL1(B, COUNT_INIT, 0x402, 9)}},
	{23,
	 "counter and sampler have one owner",
	 0,
	 {CALL1(A, COUNT_INIT, 0x201, 0), CALL2(B, SAMPLE_INIT, 0x201, RING, 9)}},
	{24,
	 "the pair is free when both halves are",
	 0,
	 {CALL1(A, COUNT_INIT, 0x201, 0), CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL1(A, COUNT_RELEASE, 0x201, 0), CALL1(B, COUNT_INIT, 0x201, 9),
	  CALL1(A, SAMPLE_RELEASE, 0x201, 0), CALL1(B, COUNT_INIT, 0x201, 0)}},
	{25,
	 "nothing works uninitialised",
	 0,
	 {GIVES(A, COUNT_GET, 0x101, 6, 0), CALL2(A, COUNT_SET, 0x101, 1, 6),
	  CALL2(A, COUNT_START, 0x101, USER, 6), CALL1(A, COUNT_STOP, 0x101, 6),
	  GIVES(A, COUNT_OVERFLOW, 0x101, 6, 0), CALL1(A, COUNT_RELEASE, 0x101, 6)}},
	{26,
	 "only the owner may",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0),
	  CALL2(A, COUNT_SET, 0x101, 77, 0),
	  CALL1(B, COUNT_RELEASE, 0x101, 10),
	  CALL2(B, COUNT_SET, 0x101, 1, 10),
	  GIVES(B, COUNT_GET, 0x101, 10, 0),
	  CALL2(B, COUNT_START, 0x101, 4, 10),
	  GIVES(B, COUNT_OVERFLOW, 0x101, 10, 0),
	  CALL1(B, COUNT_STOP, 0x101, 10),
	  CALL1(C, COUNT_RELEASE, 0x101, 10),
	  CALL2(C, COUNT_SET, 0x101, 1, 10),
	  GIVES(C, COUNT_GET, 0x101, 10, 0),
	  CALL2(C, COUNT_START, 0x101, 4, 10),
	  GIVES(C, COUNT_OVERFLOW, 0x101, 10, 0),
	  CALL1(C, COUNT_STOP, 0x101, 10),
	  {CYCLES, A, {U, 9}, 0, 0},
	  GIVES(A, COUNT_GET, 0x101, 0, 77)}},
	{27,
	 "a released counter is uninitialised",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL1(A, COUNT_RELEASE, 0x101, 0),
	  GIVES(A, COUNT_GET, 0x101, 6, 0)}},
	{28,
	 "the source of INIT, or none",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), GIVES(A, COUNT_GET, 0x102, 6, 0),
	  GIVES(A, COUNT_GET, 0x100, 0, 0)}},
	{29,
	 "39 bits of CYC",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL2(A, COUNT_SET, 0x101, TWO_39 - 1, 0),
	  CALL2(A, COUNT_SET, 0x101, TWO_39, 6), GIVES(A, COUNT_GET, 0x101, 0, TWO_39 - 1)}},
	{30,
	 "48 bits of L2, 64 of YANK",
	 0,
	 {CALL1(A, COUNT_INIT, 0x401, 0), CALL2(A, COUNT_SET, 0x401, TWO_48 - 1, 0),
	  CALL2(A, COUNT_SET, 0x401, TWO_48, 6), CALL1(A, COUNT_INIT, 0x2001, 0),
	  CALL2(A, COUNT_SET, 0x2001, UINT64_MAX, 0)}},
	{31,
	 "ownership is checked before the range",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL2(B, COUNT_SET, 0x101, TWO_39, 10)}},
	{32,
	 "START keeps the preset",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0),
	  CALL2(A, COUNT_SET, 0x101, 1000, 0),
	  CALL2(A, COUNT_START, 0x101, USER, 0),
	  {CYCLES, A, {U, 500}, 0, 0},
	  GIVES(A, COUNT_GET, 0x101, 0, 1500)}},
	{33,
	 "user cycles only",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL2(A, COUNT_START, 0x101, 4, 0), MIXED_CYCLES,
	  GIVES(A, COUNT_GET, 0x101, 0, 100)}},
	{34,
	 "cycles of every privilege",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL2(A, COUNT_START, 0x101, 7, 0), MIXED_CYCLES,
	  GIVES(A, COUNT_GET, 0x101, 0, 200)}},
	{35,
	 "hyperprivileged cycles only",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL2(A, COUNT_START, 0x101, 1, 0), MIXED_CYCLES,
	  GIVES(A, COUNT_GET, 0x101, 0, 30)}},
	{36,
	 "no privilege counts nothing",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0), CALL2(A, COUNT_START, 0x101, 0, 0), MIXED_CYCLES,
	  GIVES(A, COUNT_GET, 0x101, 0, 0)}},
	{37,
	 "reserved bits are ignored",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0),
	  CALL2(A, COUNT_START, 0x101, 0x7ffffffffffffff8 | USER, 0), MIXED_CYCLES,
	  GIVES(A, COUNT_GET, 0x101, 0, 100)}},
	{38,
	 "STOP holds the value, START goes on from it",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0),
	  CALL2(A, COUNT_START, 0x101, USER, 0),
	  {CYCLES, A, {U, 10}, 0, 0},
	  CALL1(A, COUNT_STOP, 0x101, 0),
	  {CYCLES, A, {U, 10}, 0, 0},
	  GIVES(A, COUNT_GET, 0x101, 0, 10),
	  CALL1(A, COUNT_STOP, 0x101, 0),
	  CALL2(A, COUNT_START, 0x101, USER, 0),
	  {CYCLES, A, {U, 5}, 0, 0},
	  GIVES(A, COUNT_GET, 0x101, 0, 15)}},
	{39,
	 "one strand or the chip",
	 ALONE,
	 {CALL1(A, COUNT_INIT, 0x101, 0),
	  CALL2(A, COUNT_START, 0x101, USER, 0),
	  {CYCLES, A, {U, 100}, 0, 0},
	  {CYCLES, B, {U, 50}, 0, 0},
	  GIVES(A, COUNT_GET, 0x101, 0, 100),
	  CALL1(A, COUNT_INIT, 0x102, 0),
	  CALL2(A, COUNT_START, 0x102, USER, 0),
	  {CYCLES, A, {U, 100}, 0, 0},
	  {CYCLES, B, {U, 50}, 0, 0},
	  GIVES(A, COUNT_GET, 0x102, 0, 150)}},
	{40,
	 "an overflow counts on, is counted, and told once",
	 0,
	 {OVERFLOW_40(TOE),
	  GIVES(A, COUNT_GET, 0x101, 0, 500),
	  GIVES(A, COUNT_OVERFLOW, 0x101, 0, 1),
	  GIVES(A, COUNT_OVERFLOW, 0x101, 0, 0),
	  {TOLD, A, {1}, 0, 0}}},
	{41,
	 "without TOE nobody learns of it",
	 0,
	 {OVERFLOW_40(0),
	  GIVES(A, COUNT_GET, 0x101, 0, 500),
	  GIVES(A, COUNT_OVERFLOW, 0x101, 0, 0),
	  {TOLD, A, {0}, 0, 0}}},
	{42,
	 "several wraps at once are one event",
	 0,
	 {CALL1(A, COUNT_INIT, 0x101, 0),
	  CALL2(A, COUNT_START, 0x101, TOE | USER, 0),
	  {CYCLES, A, {U, 3 * TWO_39}, 0, 0},
	  GIVES(A, COUNT_GET, 0x101, 0, 0),
	  GIVES(A, COUNT_OVERFLOW, 0x101, 0, 3),
	  {TOLD, A, {1}, 0, 0}}},
	{43,
	 "INIT forgets overflows",
	 0,
	 {OVERFLOW_40(TOE),
	  CALL1(A, COUNT_RELEASE, 0x101, 0),
	  CALL1(A, COUNT_INIT, 0x101, 0),
	  GIVES(A, COUNT_OVERFLOW, 0x101, 0, 0),
	  {TOLD, A, {1}, 0, 0}}},
	{44,
	 "counting is on again before the guest is told",
	 0,
	 {{HANDLER, A, {7}, 0, 0},
	  OVERFLOW_40(TOE),
	  GIVES(A, COUNT_GET, 0x101, 0, 507),
	  {TOLD, A, {1}, 0, 0}}},
	{45,
	 "the owner is told, whoever took the trap; both are charged",
	 ALONE | CHARGED,
	 {CALL1(B, COUNT_INIT, 0x102, 0),
	  CALL2(B, COUNT_SET, 0x102, TWO_39 - 1, 0),
	  CALL2(B, COUNT_START, 0x102, TOE | USER | 1, 0),
	  {CYCLES, B, {U, 1}, 0, 0},
	  GIVES(B, COUNT_GET, 0x102, 0, 200 + 300),
	  {TOLD, A, {0}, 0, 0},
	  {TOLD, B, {1}, 0, 0},
	  CALL1(B, COUNT_INIT, 0x101, 0),
	  CALL2(B, COUNT_SET, 0x101, TWO_39 - 1, 0),
	  CALL2(B, COUNT_START, 0x101, TOE | USER | 1, 0),
	  {CYCLES, B, {U, 1}, 0, 0},
	  GIVES(B, COUNT_GET, 0x101, 0, 300),
	  {TOLD, B, {2}, 0, 0}}},
	{46,
	 "what was released before delivery is not told",
	 0,
	 {{HOLD, A, {1}, 0, 0},
	  OVERFLOW_40(TOE),
	  CALL1(A, COUNT_RELEASE, 0x101, 0),
	  {HOLD, A, {0}, 0, 0},
	  {TOLD, A, {0}, 0, 0}}},
	{47,
	 "L2 transactions by type and requester",
	 0,
	 {CALL1(A, COUNT_INIT, 0x401, 0), CALL2(A, COUNT_START, 0x401, 0x12, 0), TRAFFIC_47,
	  GIVES(A, COUNT_GET, 0x401, 0, 5)}},
	{48,
	 "L2 transactions of the SIU",
	 0,
	 {CALL1(A, COUNT_INIT, 0x404, 0), CALL2(A, COUNT_START, 0x404, 0x7f, 0), TRAFFIC_47,
	  GIVES(A, COUNT_GET, 0x404, 0, 6)}},
	{49,
	 "UTLB misses of the instruction side",
	 0,
	 {CALL1(A, COUNT_INIT, 0x801, 0),
	  CALL2(A, COUNT_START, 0x801, 0x72, 0),
	  {MMU, A, {1, 0, 4}, 0, 0},
	  {MMU, A, {1, 1, 3}, 0, 0},
	  {MMU, A, {0, 0, 9}, 0, 0},
	  GIVES(A, COUNT_GET, 0x801, 0, 4)}},
	{50,
	 "every group of the MMU filter needs a match",
	 0,
	 {CALL1(A, COUNT_INIT, 0x801, 0),
	  CALL2(A, COUNT_START, 0x801, 0x03, 0),
	  {MMU, A, {1, 0, 4}, 0, 0},
	  {MMU, A, {0, 1, 3}, 0, 0},
	  GIVES(A, COUNT_GET, 0x801, 0, 0),
	  CALL2(A, COUNT_START, 0x801, 0x1b, 0), /* both sides, no kind of address */
	  {MMU, A, {1, 0, 4}, 0, 0},
	  GIVES(A, COUNT_GET, 0x801, 0, 0)}},
	{51,
	 "YANK counts from its checkpoint",
	 0,
	 {{MCC, A, {RK_PERF_YANK, 40}, 0, 0},
	  CALL1(A, COUNT_INIT, 0x2001, 0),
	  GIVES(A, COUNT_GET, 0x2001, 0, 0),
	  CALL2(A, COUNT_START, 0x2001, 0, 0),
	  {MCC, A, {RK_PERF_YANK, 6}, 0, 0},
	  GIVES(A, COUNT_GET, 0x2001, 0, 6),
	  CALL1(A, COUNT_STOP, 0x2001, 0),
	  {MCC, A, {RK_PERF_YANK, 5}, 0, 0},
	  GIVES(A, COUNT_GET, 0x2001, 0, 6)}},
	{52,
	 "YANK goes on from a preset",
	 0,
	 {CALL1(A, COUNT_INIT, 0x2001, 0),
	  CALL2(A, COUNT_SET, 0x2001, 100, 0),
	  CALL2(A, COUNT_START, 0x2001, 0, 0),
	  {MCC, A, {RK_PERF_YANK, 6}, 0, 0},
	  GIVES(A, COUNT_GET, 0x2001, 0, 106)}},
	{53,
	 "LVLK overflows at 2^64",
	 0,
	 {CALL1(A, COUNT_INIT, 0x8001, 0),
	  CALL2(A, COUNT_SET, 0x8001, UINT64_MAX, 0),
	  CALL2(A, COUNT_START, 0x8001, TOE, 0),
	  {MCC, A, {RK_PERF_LVLK, 1}, 0, 0},
	  GIVES(A, COUNT_GET, 0x8001, 0, 0),
	  GIVES(A, COUNT_OVERFLOW, 0x8001, 0, 1),
	  {TOLD, A, {1}, 0, 0}}},
	{54,
	 "SIBLK of all strands",
	 ALONE,
	 {CALL1(A, COUNT_INIT, 0x4002, 0),
	  CALL2(A, COUNT_START, 0x4002, 0, 0),
	  {MCC, A, {RK_PERF_SIBLK, 2}, 0, 0},
	  {MCC, B, {RK_PERF_SIBLK, 3}, 0, 0},
	  GIVES(A, COUNT_GET, 0x4002, 0, 5)}},
	{55,
	 "rings that are none",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, 0xdead0000, 2),
	  /* a header that is right but for its place */
	  {PUT32, A, {RING + 0x1004 + 8, 4096}, 0, 0},
	  CALL2(A, SAMPLE_INIT, 0x201, RING + 0x1004, 2),
	  {PUT32, A, {RING + 8, 0}, 0, 0},
	  CALL2(A, SAMPLE_INIT, 0x201, RING, 2),
	  {PUT32, A, {RING + 8, MEMORY_SIZE - 8}, 0, 0},
	  CALL2(A, SAMPLE_INIT, 0x201, RING, 2),
	  CALL1(B, COUNT_INIT, 0x201, 0)}},
	{56,
	 "the sampler's owner may INIT twice, others not",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0), CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL2(B, SAMPLE_INIT, 0x201, RING, 9), CALL2(C, SAMPLE_INIT, 0x201, RING, 10)}},
	{57,
	 "configuration registers",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0), CALL3(A, SAMPLE_CONFIG, 0x201, 0x10, 0, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x18, 0, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 100u << 22, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x168, 0, 0), CALL3(A, SAMPLE_CONFIG, 0x201, 0x170, 0, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x178, 0, 0)}},
	{58,
	 "sample registers and others' are not configured",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0), CALL3(A, SAMPLE_CONFIG, 0x201, 0x148, 0, 6),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x108, 0, 6),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0xf10018, 0, 6),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x20, 0, 6)}},
	{59,
	 "limits of the INSTR candidate counter",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0), CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 0, 6),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 49u << 22, 6),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 50u << 22, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 1023u << 22, 0)}},
	{60,
	 "limits of the L2 candidate counter",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x401, RING, 0), CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10038, 249, 6),
	  CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10038, 250, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10038, 65535, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10038, 65536, 6)}},
	{61,
	 "limits of the frequency",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0), CALL4(A, SAMPLE_START, 0x201, 49, 16, LIST, 6),
	  CALL4(A, SAMPLE_START, 0x201, 50, 16, LIST, 0),
	  CALL4(A, SAMPLE_START, 0x201, 1023, 16, LIST, 0),
	  CALL4(A, SAMPLE_START, 0x201, 1024, 16, LIST, 6)}},
	{62,
	 "sizes of the VA list",
	 0,
	 {/* 12 and 136 bytes divide the ring: nothing but the list's size is wrong */
	  {PUT32, A, {RING + 8, 4080}, 0, 0},
	  {PUT64, A, {LIST + 128, QUIPU_ROCK_IS_INFO}, 0, 0},
	  CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL4(A, SAMPLE_START, 0x201, 100, 0, LIST, 6),
	  CALL4(A, SAMPLE_START, 0x201, 100, 12, LIST, 6),
	  CALL4(A, SAMPLE_START, 0x201, 100, 136, LIST, 6)}},
	{63,
	 "a VA list outside memory",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL4(A, SAMPLE_START, 0x201, 100, 16, MEMORY + MEMORY_SIZE - 8, 2),
	  /* in memory, but not aligned */
	  {PUT64, A, {LIST + 4, QUIPU_ROCK_IS_INFO}, 0, 0},
	  CALL4(A, SAMPLE_START, 0x201, 100, 8, LIST + 4, 2)}},
	{64,
	 "a VA that is none leaves the sampler stopped",
	 0,
	 {{PUT64, A, {LIST + 8, 0xf10010}, 0, 0},
	  CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x168, 0x19, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 0x19000fff, 0),
	  CALL4(A, SAMPLE_START, 0x201, 100, 16, LIST, 6),
	  {INSTR, A, {U, 1000}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 0)}},
	{65,
	 "the VA list is copied",
	 0,
	 {{TRACE83},
	  {PUT64, A, {LIST, 0xffff}, 0, 0},
	  {PUT64, A, {LIST + 8, 0xffff}, 0, 0},
	  {INSTR, A, {U, 100}, 0, 0},
	  {IS64, A, {RING + 16, 0x02}, 0, 0},
	  {IS64, A, {RING + 24, 5u << 16}, 0, 0}}},
	{66,
	 "sampler calls uninitialised and by others",
	 0,
	 {CALL1(A, SAMPLE_RELEASE, 0x201, 6), CALL3(A, SAMPLE_CONFIG, 0x201, 0x10, 0, 6),
	  CALL4(A, SAMPLE_START, 0x201, 100, 16, LIST, 6), GIVES(A, SAMPLE_PENDING, 0x201, 6, 0),
	  CALL1(A, SAMPLE_STOP, 0x201, 6), CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL1(B, SAMPLE_RELEASE, 0x201, 10), CALL3(B, SAMPLE_CONFIG, 0x201, 0x10, 0, 10),
	  CALL4(B, SAMPLE_START, 0x201, 100, 16, LIST, 10), GIVES(B, SAMPLE_PENDING, 0x201, 10, 0),
	  CALL1(B, SAMPLE_STOP, 0x201, 10), CALL1(C, SAMPLE_STOP, 0x201, 10)}},
	{67,
	 "told at the high-water mark, not before, and once",
	 0,
	 {{TRACE83},
	  {INSTR, A, {U, 12799}, 0, 0},
	  {TOLD, A, {0}, 0, 0},
	  {INSTR, A, {U, 1}, 0, 0},
	  {TOLD, A, {1}, 0, 0},
	  {IS32, A, {RING + 4, 2048}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 128),
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 0)}},
	{68,
	 "a ring is used again after RELEASE and INIT",
	 0,
	 {{TRACE83},
	  {INSTR, A, {U, 12800}, 0, 0},
	  CALL1(A, COUNT_STOP, 0x201, 0),
	  CALL1(A, SAMPLE_STOP, 0x201, 0),
	  {PUT32, A, {RING, 2048}, 0, 0},
	  {PUT32, A, {RING + 12, 0}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 128),
	  GIVES(A, COUNT_OVERFLOW, 0x201, 0, 0),
	  GIVES(A, COUNT_GET, 0x201, 0, 12800),
	  CALL2(A, COUNT_SET, 0x201, 0, 0),
	  CALL1(A, COUNT_RELEASE, 0x201, 0),
	  CALL1(A, SAMPLE_RELEASE, 0x201, 0),
	  {TRACE83},
	  {INSTR, A, {U, 12799}, 0, 0},
	  {TOLD, A, {1}, 0, 0},
	  {INSTR, A, {U, 1}, 0, 0},
	  {TOLD, A, {2}, 0, 0},
	  {IS32, A, {RING + 4, 0}, 0, 0},
	  {IS32, A, {RING, 2048}, 0, 0},
	  {IS32, A, {RING + 12, 0}, 0, 0}}},
	{69,
	 "a full ring drops exactly the excess",
	 0,
	 {{TRACE83},
	  {INSTR, A, {U, 30000}, 0, 0},
	  {IS32, A, {RING + 4, 4080}, 0, 0},
	  {IS32, A, {RING, 0}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 255),
	  {DROPPED, A, {RK_PERF_INSTR, 45}, 0, 0},
	  {TOLD, A, {2}, 0, 0}}},
	{70,
	 "a drained ring takes samples again",
	 0,
	 {{TRACE83},
	  {INSTR, A, {U, 30000}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 255),
	  {PUT32, A, {RING, 4080}, 0, 0},
	  {IS64, A, {RING + 16 + 4080, 0}, 0, 0},
	  {INSTR, A, {U, 100}, 0, 0},
	  {IS64, A, {RING + 16 + 4080, 0x02}, 0, 0},
	  {IS32, A, {RING + 4, 0}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 1),
	  {TOLD, A, {2}, 0, 0}}},
	{71,
	 "STOP leaves unclaimed samples alone",
	 0,
	 {{TRACE83},
	  {INSTR, A, {U, 500}, 0, 0},
	  CALL1(A, SAMPLE_STOP, 0x201, 0),
	  {INSTR, A, {U, 1000}, 0, 0},
	  {IS32, A, {RING + 4, 80}, 0, 0},
	  {IS64, A, {RING + 16 + 80, 0}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 5)}},
	{72,
	 "COUNT_INIT does not touch the sampler",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x168, 0x19, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 0x19000fff, 0),
	  CALL1(A, COUNT_INIT, 0x201, 0),
	  CALL4(A, SAMPLE_START, 0x201, 100, 16, LIST, 0),
	  {INSTR, A, {P, 200}, 0, 0},
	  {INSTR, A, {U, 200}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 2)}},
	{73,
	 "INIT goes on at the tail in memory",
	 0,
	 {{TRACE83},
	  CALL1(A, SAMPLE_RELEASE, 0x201, 0),
	  {PUT32, A, {RING + 4, 2048}, 0, 0},
	  {TRACE83},
	  {INSTR, A, {U, 100}, 0, 0},
	  {IS64, A, {RING + 16 + 2048, 0x02}, 0, 0},
	  {IS64, A, {RING + 16, 0}, 0, 0}}},
	{74,
	 "the ring is big-endian",
	 0,
	 {{TRACE83},
	  {INSTR, A, {U, 100}, 0, 0},
	  {IS32, A, {RING, 0}, 0, 0},
	  {IS32, A, {RING + 4, 0x10}, 0, 0},
	  {IS32, A, {RING + 8, 0x1000}, 0, 0},
	  {IS32, A, {RING + 12, 0x800}, 0, 0},
	  {IS64, A, {RING + 16, 0x02}, 0, 0},
	  {IS64, A, {RING + 24, 5u << 16}, 0, 0}}},
	{75,
	 "L2 samples of loads from DRAM",
	 0,
	 {{TRACE83_L2},
	  LOADS(A, QUIPU_ROCK_DRAM, 1000),
	  GIVES(A, SAMPLE_PENDING, 0x401, 0, 4),
	  {IS64, A, {RING + 16, 0x100}, 0, 0},
	  {IS64, A, {RING + 24, 0x100}, 0, 0},
	  {IS64, A, {RING + 32, 0x100}, 0, 0},
	  {IS64, A, {RING + 40, 0x100}, 0, 0},
	  {IS64, A, {RING + 48, 0}, 0, 0},
	  GIVES(A, COUNT_GET, 0x401, 0, 1000)}},
	{76,
	 "L2 samples of local hits",
	 0,
	 {{TRACE83_L2},
	  LOADS(A, QUIPU_ROCK_LOCAL_L2, 250),
	  {IS64, A, {RING + 16, 0xc00000100}, 0, 0}}},
	{77,
	 "INFO of a load that missed while executing ahead",
	 0,
	 {{TRACE83}, {INSTR, A, {U, 100, 1}, 0, 0}, {IS64, A, {RING + 16, 0x800000082}, 0, 0}}},
	{78,
	 "nothing configured, nothing sampled",
	 0,
	 {CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  CALL4(A, SAMPLE_START, 0x201, 100, 16, LIST, 0),
	  {INSTR, A, {U, 1000}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 0)}},
	{79,
	 "memory that went away stops the sampler",
	 0,
	 {{PUT32, A, {RING_APART + 8, 4096}, 0, 0},
	  CALL2(A, SAMPLE_INIT, 0x201, RING_APART, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x168, 0x19, 0),
	  CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 0x19000fff, 0),
	  CALL4(A, SAMPLE_START, 0x201, 100, 16, LIST, 0),
	  {REMOVE, A, {RING_APART}, 0, 0},
	  {INSTR, A, {U, 1000}, 0, 0},
	  GIVES(A, SAMPLE_PENDING, 0x201, 0, 0),
	  CALL1(A, SAMPLE_RELEASE, 0x201, 0)}},
	{80,
	 "a stopped strand owns nothing",
	 0,
	 {CALL1(A, COUNT_INIT, 0x201, 0),
	  CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
	  {STOPPED, A, {0}, 0, 0},
	  CALL1(B, COUNT_INIT, 0x201, 0),
	  CALL2(B, SAMPLE_INIT, 0x201, RING, 0)}},
	{81,
	 "a failed call returns 0 and keeps %o2",
	 0,
	 {{CALL_O2, A, {RK_PERF_COUNT_GET, 0x101}, 6, 0},
	  {CALL_O2, A, {RK_PERF_COUNT_OVERFLOW, 0x101}, 6, 0},
	  {CALL_O2, A, {RK_PERF_SAMPLE_PENDING, 0x201}, 6, 0},
	  CALL1(A, COUNT_INIT, 0x101, 0),
	  {CALL_O2, B, {RK_PERF_COUNT_GET, 0x101}, 10, 0},
	  {CALL_O2, C, {RK_PERF_COUNT_OVERFLOW, 0x101}, 10, 0}}},
};

/* ---- the player ---- */

struct bed {
	struct quipu_rock *r;
	unsigned told[64], expected[64];
	uint64_t handler_cycles;
};

static void on_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct bed *b = arg;

	(void)irq;
	b->told[strand]++;
	if (b->handler_cycles)
		quipu_rock_cycles(b->r, strand, QUIPU_ROCK_AT_USER, b->handler_cycles);
}

static void put(struct bed *b, uint64_t at, uint64_t value, unsigned bytes)
{
	uint8_t *p = quipu_rock_memory(b->r, 1, at, bytes);

	assert_non_null(p);
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static void bed_open(struct bed *b, unsigned setup)
{
	struct quipu_rock_config c = {.chips = 2};

	if (setup & CHARGED) {
		c.trap_cycles = 200;
		c.owner_cycles = 300;
	}
	*b = (struct bed){.r = quipu_rock_new(&c)};
	assert_non_null(b->r);
	for (unsigned s = 0; s < 64; s++)
		assert_int_equal(quipu_rock_bind(b->r, s, s == C && !(setup & ALONE) ? 2 : 1), 0);
	assert_int_equal(quipu_rock_memory_add(b->r, 1, MEMORY, MEMORY_SIZE), 0);
	assert_int_equal(quipu_rock_memory_add(b->r, 1, RING_APART, 0x2000), 0);
	assert_int_equal(quipu_rock_memory_add(b->r, 2, MEMORY, MEMORY_SIZE), 0);
	quipu_rock_set_handler(b->r, on_interrupt, b);
	put(b, RING + 8, 4096, 4);
	put(b, RING + 12, 2048, 4);
	put(b, LIST, QUIPU_ROCK_IS_INFO, 8);
	put(b, LIST + 8, QUIPU_ROCK_IS_CONTEXT, 8);
	if (setup & NOT_NEGOTIATED)
		return;
	assert_int_equal(quipu_rock_set_version(b->r, A, API_GROUP_RKPERF, 1, 0, NULL), 0);
	if (!(setup & ALONE))
		assert_int_equal(quipu_rock_set_version(b->r, C, API_GROUP_RKPERF, 1, 0, NULL), 0);
}

static void call(struct bed *b, const struct step *s)
{
	uint64_t ret1;

	assert_int_equal(quipu_rock_hcall(b->r, s->strand, s->a[0], &s->a[1], &ret1), s->status);
	if (s->ret1 != ANY)
		assert_int_equal(ret1, s->ret1);
}

static void play(struct bed *b, const struct step *s);

/* Sheet section 8.3, steps 1 to 6; the ring is as it is. */
static void trace83(struct bed *b, bool l2)
{
	static const struct step instr[] = {
		CALL1(A, COUNT_INIT, 0x201, 0),
		CALL2(A, SAMPLE_INIT, 0x201, RING, 0),
		CALL3(A, SAMPLE_CONFIG, 0x201, 0x10, 0, 0),
		CALL3(A, SAMPLE_CONFIG, 0x201, 0x18, 0, 0),
		CALL3(A, SAMPLE_CONFIG, 0x201, 0x168, 0x19, 0),
		CALL3(A, SAMPLE_CONFIG, 0x201, 0x160, 0x19000fff, 0),
		CALL3(A, SAMPLE_CONFIG, 0x201, 0x170, 0, 0),
		CALL3(A, SAMPLE_CONFIG, 0x201, 0x178, 0, 0),
		CALL1(A, COUNT_INIT, 0x201, 0),
		CALL2(A, COUNT_START, 0x201, TOE | USER, 0),
		CALL4(A, SAMPLE_START, 0x201, 100, 16, LIST, 0),
		{END},
	};
	static const struct step txn[] = {
		CALL1(A, COUNT_INIT, 0x401, 0),
		CALL2(A, SAMPLE_INIT, 0x401, RING, 0),
		CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10018, 0, 0),
		CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10020, 0, 0),
		CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10038, 250, 0),
		CALL3(A, SAMPLE_CONFIG, 0x401, 0xf10030, 0xff8, 0),
		CALL1(A, COUNT_INIT, 0x401, 0),
		CALL2(A, COUNT_START, 0x401, TOE | 0x7f, 0),
		CALL4(A, SAMPLE_START, 0x401, 250, 8, LIST, 0),
		{END},
	};

	if (l2)
		put(b, LIST, QUIPU_ROCK_L2_TXN_INFO, 8);
	play(b, l2 ? txn : instr);
}

static void activity(struct bed *b, const struct step *s)
{
	const struct quipu_rock_instr instr = {
		.pc = 0x10000,
		.latency = 4,
		.context = 5,
		.typ = QUIPU_ROCK_TYP_LOAD,
		.evt = s->a[2] ? QUIPU_ROCK_EVT_DCACHE_MISS : 0,
		.mode = s->a[2] ? QUIPU_ROCK_MODE_EXECUTE_AHEAD : QUIPU_ROCK_MODE_NORMAL,
		.privilege = (uint8_t)s->a[0],
	};
	const struct quipu_rock_l2 l2 = {.requester = (unsigned)s->a[0],
					 .type = (uint8_t)s->a[1],
					 .source = (uint8_t)s->a[2]};
	const struct quipu_rock_mmu mmu = {.instruction = s->a[0], .hit = s->a[1]};

	if (s->op == CYCLES)
		quipu_rock_cycles(b->r, s->strand, (enum quipu_rock_privilege)s->a[0], s->a[1]);
	else if (s->op == INSTR)
		quipu_rock_instr(b->r, s->strand, &instr, s->a[1]);
	else if (s->op == L2)
		quipu_rock_l2(b->r, s->strand, &l2, s->a[3]);
	else if (s->op == MMU)
		quipu_rock_mmu(b->r, s->strand, &mmu, s->a[2]);
	else
		quipu_rock_mcc(b->r, s->strand, (unsigned)s->a[0], s->a[1]);
}

static void raw(struct bed *b, const struct step *s)
{
	uint64_t o[6] = {0x101, 0, 0xfeed, 0, 0, s->a[1]};

	if (s->op == CALL_O2) {
		o[0] = s->a[1];
		o[1] = 0xbad;
		o[5] = s->a[0];
	}
	quipu_rock_trap(b->r, s->strand, s->op == TRAP ? (unsigned)s->a[0] : QUIPU_ROCK_FAST_TRAP,
			o);
	assert_int_equal(o[0], s->status);
	assert_int_equal(o[1], 0);
	assert_int_equal(o[2], 0xfeed);
}

static void version(struct bed *b, const struct step *s)
{
	uint64_t o[6] = {s->a[0], s->a[1], s->a[2],
			 0,	  0,	   s->op == SETV ? API_SET_VERSION : API_GET_VERSION};

	quipu_rock_trap(b->r, s->strand, QUIPU_ROCK_CORE_TRAP, o);
	assert_int_equal(o[0], s->status);
	assert_int_equal(o[1], s->op == SETV ? s->ret1 : s->a[1]);
	if (s->op == GETV)
		assert_int_equal(o[2], s->a[2]);
}

static void memory(struct bed *b, const struct step *s)
{
	unsigned bytes = s->op == PUT32 || s->op == IS32 ? 4 : 8;
	const uint8_t *p;

	if (s->op == PUT32 || s->op == PUT64) {
		put(b, s->a[0], s->a[1], bytes);
		return;
	}
	p = quipu_rock_memory(b->r, 1, s->a[0], bytes);
	assert_non_null(p);
	assert_int_equal(bytes == 4 ? bits_be32(p) : bits_be64(p), s->a[1]);
}

static void play_one(struct bed *b, const struct step *s)
{
	switch (s->op) {
	case CALL: call(b, s); break;
	case CALL_O2:
	case TRAP: raw(b, s); break;
	case SETV:
	case GETV: version(b, s); break;
	case TOLD:
		b->expected[s->strand] = (unsigned)s->a[0];
		assert_int_equal(b->told[s->strand], s->a[0]);
		break;
	case HANDLER: b->handler_cycles = s->a[0]; break;
	case HOLD: quipu_rock_hold(b->r, s->a[0]); break;
	case REMOVE: assert_int_equal(quipu_rock_memory_remove(b->r, 1, s->a[0]), 0); break;
	case STOPPED: quipu_rock_strand_stop(b->r, s->strand); break;
	case DROPPED:
		assert_int_equal(quipu_rock_dropped(b->r, 0, (unsigned)s->a[0]), s->a[1]);
		break;
	case TRACE83:
	case TRACE83_L2: trace83(b, s->op == TRACE83_L2); break;
	case PUT32:
	case PUT64:
	case IS32:
	case IS64: memory(b, s); break;
	default: activity(b, s);
	}
}

static void play(struct bed *b, const struct step *s)
{
	for (; s->op != END; s++)
		play_one(b, s);
}

static void run_case(void **state)
{
	const struct acase *c = *state;
	struct bed b;

	bed_open(&b, c->setup);
	play(&b, c->steps);
	/*
	 * No strand was told anything that the case does not name: a guest complains of interrupts
	 * without a cause.
	 */
	assert_memory_equal(b.told, b.expected, sizeof(b.told));
	quipu_rock_free(b.r);
}

int main(void)
{
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	struct CMUnitTest tests[N];
	static char names[N][100];

	_Static_assert(N == 81, "the sheet has 81 cases");
	for (unsigned i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "case %u: %s", cases[i].number, cases[i].says);
		tests[i] = (struct CMUnitTest){names[i], run_case, NULL, NULL, (void *)&cases[i]};
	}
	return cmocka_run_group_tests_name("rock calls", tests, NULL, NULL);
}
