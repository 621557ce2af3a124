/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sun Rock under the sun4v hypervisor: chips with counters and samplers, guests with strands and
 * memory, and the thirteen calls of API group RKPERF. FWARC/2008/399 (calls, types, sources; its
 * names are used here), FWARC/2005/116 (traps and status values); what the document leaves open is
 * decided in src/platform/rock/README.md.
 *
 * A set of chips is a pure object: no I/O, single-threaded. Counters move by the calls below ("what
 * happens on a strand") or from a source of signals (quipu_rock_attach). Not modelled: any other
 * API group, and RK_PERF_SPEC, whose configuration the document does not give (EINVAL).
 */
#ifndef QUIPU_ROCK_H
#define QUIPU_ROCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/signal.h>

struct quipu_rock;

/* ---- names of the documents ---- */

#define API_GROUP_RKPERF 0x206u

/* Software traps. */
#define QUIPU_ROCK_FAST_TRAP 0x80u
#define QUIPU_ROCK_CORE_TRAP 0xffu

/* Functions of the core trap. */
#define API_SET_VERSION 0x00u
#define API_PUTCHAR	0x01u
#define API_EXIT	0x02u
#define API_GET_VERSION 0x03u

/* Functions of the fast trap that belong to the group. */
#define RK_PERF_COUNT_INIT     0x108u
#define RK_PERF_COUNT_RELEASE  0x109u
#define RK_PERF_COUNT_SET      0x10au
#define RK_PERF_COUNT_GET      0x10bu
#define RK_PERF_COUNT_START    0x10cu
#define RK_PERF_COUNT_OVERFLOW 0x10du
#define RK_PERF_COUNT_STOP     0x10eu
#define RK_PERF_SAMPLE_INIT    0x135u
#define RK_PERF_SAMPLE_RELEASE 0x136u
#define RK_PERF_SAMPLE_CONFIG  0x137u
#define RK_PERF_SAMPLE_START   0x138u
#define RK_PERF_SAMPLE_PENDING 0x139u
#define RK_PERF_SAMPLE_STOP    0x13au

/*
 * Types (bits 31:0 of a counter type) and sources (bits 63:32; the one real client put them into
 * bits 3:0).
 */
#define RK_PERF_CYC   0x0100u
#define RK_PERF_INSTR 0x0200u
#define RK_PERF_L2    0x0400u
#define RK_PERF_MMU   0x0800u
#define RK_PERF_SPEC  0x1000u
#define RK_PERF_YANK  0x2000u
#define RK_PERF_SIBLK 0x4000u
#define RK_PERF_LVLK  0x8000u

#define RK_PERF_SRC_STRAND  0x1u
#define RK_PERF_SRC_STRANDS 0x2u
#define RK_PERF_SRC_SIU	    0x4u
#define RK_PERF_SRC_MMU	    0x8u

/* The type argument as the document packs it. */
#define QUIPU_ROCK_TYPE(type, source) ((uint64_t)(source) << 32 | (type))

/* Configuration of COUNT_START. */
#define QUIPU_ROCK_TOE	 (UINT64_C(1) << 63)
#define QUIPU_ROCK_USER	 4u
#define QUIPU_ROCK_PRIV	 2u
#define QUIPU_ROCK_HPRIV 1u

/* Status values (FWARC/2005/116); the document's ENOADDR is ENORADDR. */
enum quipu_rock_status {
	QUIPU_ROCK_EOK = 0,
	QUIPU_ROCK_ENOCPU = 1,
	QUIPU_ROCK_ENORADDR = 2,
	QUIPU_ROCK_EINVAL = 6,
	QUIPU_ROCK_EBADTRAP = 7,
	QUIPU_ROCK_EWOULDBLOCK = 9,
	QUIPU_ROCK_ENOACCESS = 10,
	QUIPU_ROCK_ENOTSUPPORTED = 13,
};
/* "EOK", "ENOCPU" ...; "?" for a number that no call here returns. */
const char *quipu_rock_status_name(uint64_t status);

/* Registers by their VA. Configuration registers of the samplers, then what a sample can hold. */
#define QUIPU_ROCK_IS_PC_MASK	       0x10u
#define QUIPU_ROCK_IS_PC_MATCH	       0x18u
#define QUIPU_ROCK_IS_CC_LATENCY_MASK  0x160u
#define QUIPU_ROCK_IS_CONTEXT_FILTER   0x168u
#define QUIPU_ROCK_IS_INFO_MASK	       0x170u
#define QUIPU_ROCK_IS_INFO_MATCH       0x178u
#define QUIPU_ROCK_IS_CONTEXT	       0x108u
#define QUIPU_ROCK_IS_INFO	       0x148u
#define QUIPU_ROCK_L2_EA_MASK	       0xf10018u
#define QUIPU_ROCK_L2_EA_MATCH	       0xf10020u
#define QUIPU_ROCK_L2_TXN_INFO_FILTER  0xf10030u
#define QUIPU_ROCK_L2_CC	       0xf10038u
#define QUIPU_ROCK_L2_TXN_INFO	       0xf10010u
/* Of this model only: no public document gives them. Not there in strict mode. */
#define QUIPU_ROCK_IS_PC	       0x100u
#define QUIPU_ROCK_IS_EA	       0x110u
#define QUIPU_ROCK_IS_LATENCY	       0x118u
#define QUIPU_ROCK_L2_EA	       0xf10028u
#define QUIPU_ROCK_MMU_EA_MASK	       0xf20018u
#define QUIPU_ROCK_MMU_EA_MATCH	       0xf20020u
#define QUIPU_ROCK_MMU_TXN_INFO_FILTER 0xf20030u
#define QUIPU_ROCK_MMU_CC	       0xf20038u
#define QUIPU_ROCK_MMU_TXN_INFO	       0xf20010u
#define QUIPU_ROCK_MMU_EA	       0xf20028u

/* A ring in guest memory: four big-endian 32-bit words, then the elements. */
#define QUIPU_ROCK_RING_HEAD 0u /* written by the guest */
#define QUIPU_ROCK_RING_TAIL 4u /* written by the hypervisor, first by the guest */
#define QUIPU_ROCK_RING_SIZE 8u /* bytes of data */
#define QUIPU_ROCK_RING_HWM  12u
#define QUIPU_ROCK_RING_DATA 16u

/* ---- chips and guests ---- */

#define QUIPU_ROCK_CHIP_STRANDS 32u
#define QUIPU_ROCK_MAX_CHIPS	8u
#define QUIPU_ROCK_MAX_GUESTS	16u /* numbers 1..15 */
#define QUIPU_ROCK_MAX_REGIONS	16u /* of memory, for each guest */

struct quipu_rock_config {
	unsigned chips; /* 1..QUIPU_ROCK_MAX_CHIPS */
	bool strict;	/* only registers that are publicly known */
	/* Hyperprivileged cycles that an event costs the trap-handling strand, and the owner [0].
	 */
	unsigned trap_cycles;
	unsigned owner_cycles;
};

/*
 * quipu_rock_new - chips whose strands (32 * chip + 2 * core + thread) belong to nobody. NULL: out
 * of memory or a bad number of chips.
 */
struct quipu_rock *quipu_rock_new(const struct quipu_rock_config *);
void quipu_rock_free(struct quipu_rock *);
unsigned quipu_rock_strands(const struct quipu_rock *);

/*
 * quipu_rock_bind - @strand belongs to @guest (1..15), or to nobody (0). What the strand owned
 * is released when it changes hands. 0 or -EINVAL.
 * quipu_rock_guest_of - the guest of a strand, 0: nobody.
 * quipu_rock_strand_stop - the guest stopped the strand: what it owned is released; it stays
 * bound.
 * quipu_rock_guest_reset - the guest starts afresh: all it owned is released, its API versions
 * are forgotten.
 */
int quipu_rock_bind(struct quipu_rock *, unsigned strand, unsigned guest);
unsigned quipu_rock_guest_of(const struct quipu_rock *, unsigned strand);
void quipu_rock_strand_stop(struct quipu_rock *, unsigned strand);
void quipu_rock_guest_reset(struct quipu_rock *, unsigned guest);

/*
 * Guest memory by real address.
 * quipu_rock_memory_add - @size zeroed bytes at @base. 0, -EINVAL (overlap, wrap, no such
 * guest), -ENOMEM, -ENOSPC.
 * quipu_rock_memory_remove - take the region that starts at @base away. 0 or -ENOENT.
 * quipu_rock_memory - @len bytes at @address, contiguous in one region; NULL when they are not.
 */
int quipu_rock_memory_add(struct quipu_rock *, unsigned guest, uint64_t base, uint64_t size);
int quipu_rock_memory_remove(struct quipu_rock *, unsigned guest, uint64_t base);
void *quipu_rock_memory(struct quipu_rock *, unsigned guest, uint64_t address, uint64_t len);

/* ---- calls ---- */

/*
 * quipu_rock_trap - @strand executes software trap @trap; @o: %o0 to %o5. On return %o0 is the
 * status, %o1 (and %o2 of API_GET_VERSION) the results; a register that is no result of the call is
 * left as it was.
 */
void quipu_rock_trap(struct quipu_rock *, unsigned strand, unsigned trap, uint64_t o[6]);
/*
 * quipu_rock_hcall - the fast trap with up to four arguments. The status; *ret1 (may be NULL) is
 * %o1.
 */
uint64_t quipu_rock_hcall(struct quipu_rock *, unsigned strand, uint64_t function,
			  const uint64_t args[4], uint64_t *ret1);
/*
 * quipu_rock_set_version - API_SET_VERSION by the core trap; *minor (may be NULL) is the actual
 * minor number.
 */
uint64_t quipu_rock_set_version(struct quipu_rock *, unsigned strand, uint64_t group,
				uint64_t major, uint64_t minor, uint64_t *minor_out);

/* ---- what the hypervisor does to a guest ---- */

/*
 * The level-15 interrupt ("pic overflow") on @strand. SOFTINT bit 15 is cleared just before the
 * handler is called; what happens meanwhile sets it again and calls it once more. @irq: what the
 * engine knows of the moment, NULL: nothing.
 */
typedef void quipu_rock_handler(void *arg, unsigned strand, const struct quipu_interrupt *irq);
void quipu_rock_set_handler(struct quipu_rock *, quipu_rock_handler *, void *arg);
/* Without a handler: is the interrupt pending; clear it. */
bool quipu_rock_softint(const struct quipu_rock *, unsigned strand);
void quipu_rock_clear_softint(struct quipu_rock *, unsigned strand);
/*
 * quipu_rock_hold - while held, performance event traps stay pending, as when the trap strand
 * cannot take them.
 */
void quipu_rock_hold(struct quipu_rock *, bool hold);
/* One line for each call and each step of an event. */
void quipu_rock_set_trace(struct quipu_rock *, void (*fn)(void *arg, const char *line), void *arg);
/* Characters of API_PUTCHAR. */
void quipu_rock_set_console(struct quipu_rock *, void (*fn)(void *arg, unsigned guest, char c),
			    void *arg);

/* ---- what happens on a strand ---- */

enum quipu_rock_privilege { QUIPU_ROCK_AT_USER, QUIPU_ROCK_AT_PRIV, QUIPU_ROCK_AT_HPRIV };

/* INFO.TYP, INFO.EVT and INFO.MODE */
enum quipu_rock_typ {
	QUIPU_ROCK_TYP_HELPER = 0x01,
	QUIPU_ROCK_TYP_LOAD = 0x02,
	QUIPU_ROCK_TYP_STORE = 0x04,
	QUIPU_ROCK_TYP_CTI = 0x08,
	QUIPU_ROCK_TYP_FP = 0x10,
	QUIPU_ROCK_TYP_ALU = 0x20,
	QUIPU_ROCK_TYP_COMPLEX = 0x40,
};
enum quipu_rock_evt {
	QUIPU_ROCK_EVT_DCACHE_MISS = 0x001,
	QUIPU_ROCK_EVT_PRIOR_MISS = 0x002,
	QUIPU_ROCK_EVT_DTLB_MISS = 0x004,
	QUIPU_ROCK_EVT_LOADBUF_FULL = 0x008,
	QUIPU_ROCK_EVT_STOREBUF_FULL = 0x010,
	QUIPU_ROCK_EVT_STALL = 0x020,
	QUIPU_ROCK_EVT_DQ = 0x040,
	QUIPU_ROCK_EVT_CORRECT_PREDICT = 0x080,
	QUIPU_ROCK_EVT_BYPASS_RAW = 0x100,
	QUIPU_ROCK_EVT_NONBYPASS_RAW = 0x200,
	QUIPU_ROCK_EVT_TAKEN = 0x400,
	QUIPU_ROCK_EVT_FAILED_SPEC = 0x800,
};
enum quipu_rock_mode {
	QUIPU_ROCK_MODE_NORMAL,
	QUIPU_ROCK_MODE_OUT_OF_ORDER,
	QUIPU_ROCK_MODE_EXECUTE_AHEAD,
	QUIPU_ROCK_MODE_DELAY,
	QUIPU_ROCK_MODE_DEFERRED,
	QUIPU_ROCK_MODE_SCOUT,
};

struct quipu_rock_instr {
	uint64_t pc, ea;
	uint16_t latency, context;
	uint16_t evt; /* bits that mean nothing for the type are dropped */
	uint8_t typ, mode, tl, privilege;
};

/* Transactions of the L2: the bit numbers of TXN. */
enum quipu_rock_l2_type {
	QUIPU_ROCK_L2_ICACHE_LOAD,
	QUIPU_ROCK_L2_DCACHE_LOAD,
	QUIPU_ROCK_L2_INSTR_PREFETCH,
	QUIPU_ROCK_L2_STORE_PREFETCH,
	QUIPU_ROCK_L2_STORE,
	QUIPU_ROCK_L2_ATOMIC,
	QUIPU_ROCK_L2_FLUSH,
	QUIPU_ROCK_L2_TYPES
};
enum quipu_rock_data_source {
	QUIPU_ROCK_DRAM,
	QUIPU_ROCK_L3,
	QUIPU_ROCK_OTHER_L2,
	QUIPU_ROCK_LOCAL_L2
};

struct quipu_rock_l2 {
	uint64_t ea;
	unsigned requester; /* RK_PERF_SRC_STRAND, _SIU or _MMU */
	uint8_t type, evt, source;
};

/* A lookup in the unified TLB. */
struct quipu_rock_mmu {
	uint64_t ea;
	bool instruction, real, hit;
};

/*
 * @n equal occurrences on @strand (for the SIU and MMU as requesters: any strand of the chip).
 * Events are taken, and handlers called, before the call returns. Numbers out of range are ignored.
 */
void quipu_rock_cycles(struct quipu_rock *, unsigned strand, enum quipu_rock_privilege, uint64_t n);
void quipu_rock_instr(struct quipu_rock *, unsigned strand, const struct quipu_rock_instr *,
		      uint64_t n);
void quipu_rock_l2(struct quipu_rock *, unsigned strand, const struct quipu_rock_l2 *, uint64_t n);
void quipu_rock_mmu(struct quipu_rock *, unsigned strand, const struct quipu_rock_mmu *,
		    uint64_t n);
/* @type: RK_PERF_YANK, _SIBLK or _LVLK. */
void quipu_rock_mcc(struct quipu_rock *, unsigned strand, unsigned type, uint64_t n);

/*
 * Signals instead: user-level activity of @strand is what @cpu of @signals did.
 * quipu_rock_interrupt - a deadline of the source was reached.
 */
int quipu_rock_attach(struct quipu_rock *, unsigned strand, struct quipu_signals *signals,
		      unsigned cpu);
void quipu_rock_interrupt(struct quipu_rock *, const struct quipu_interrupt *);

/*
 * Samples that found their ring full, since the sampler's INIT; for people who look at the machine.
 */
uint64_t quipu_rock_dropped(const struct quipu_rock *, unsigned chip, unsigned type);
/* The strand that owns counter and sampler of @type on @chip, -1: nobody. */
int quipu_rock_owner(const struct quipu_rock *, unsigned chip, unsigned type);

#endif
