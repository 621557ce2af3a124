/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the Rock room: state of chips, strands and guests, and the calls between its files.
 * Drivers do not see this file: they use quipu/rock.h alone.
 */
#ifndef QUIPU_PLATFORM_ROCK_CHIP_H
#define QUIPU_PLATFORM_ROCK_CHIP_H

#include <quipu/bits.h>
#include <quipu/rock.h>

/* Index of a counter type; its samplers are those of the same type. */
enum rock_type {
	TYPE_CYC,
	TYPE_INSTR,
	TYPE_L2,
	TYPE_MMU,
	TYPE_YANK,
	TYPE_SIBLK,
	TYPE_LVLK,
	ROCK_TYPES
};
#define ROCK_SAMPLERS 4u /* types below it that may have a sampler; CYC has none */

enum rock_kind { ROCK_COUNTER, ROCK_SAMPLER, ROCK_KINDS };

#define STRANDS	  QUIPU_ROCK_CHIP_STRANDS
#define LIST_MAX  16u /* registers of an element */
#define REGS_MAX  6u  /* of one kind and sampler */
#define NO_STRAND (-1)
#define SOURCES	  0xfu

/* A part of a counter or candidate counter that follows a signal. */
#define STRAND_TERMS 4u
#define TERMS_MAX    (STRANDS * STRAND_TERMS)
struct rock_term {
	quipu_signal signal;
	uint64_t base;
	int weight;
	uint8_t strand; /* on its chip */
	uint8_t slot;
	bool armed;
	uint64_t at;
};
struct rock_terms {
	unsigned n;
	struct rock_term term[TERMS_MAX];
};

struct rock_counter {
	bool init, running, toe;
	unsigned source;
	uint64_t filter; /* low bits of the START configuration */
	uint64_t value;	 /* YANK, SIBLK, LVLK: the base */
	uint64_t check;	 /* YANK, SIBLK, LVLK: the start-of-day count at the last checkpoint */
	uint64_t wraps;	 /* since the last performance event */
	uint64_t overflows;
	struct rock_terms terms;
};

struct rock_sampler {
	bool init, running;
	bool waiting; /* the sample registers hold a sample that nobody has taken */
	unsigned source;
	uint64_t ring; /* real address */
	uint32_t size, tail;
	unsigned nlist;
	uint8_t list[LIST_MAX]; /* index of a sample register */
	uint64_t config[REGS_MAX];
	uint64_t captured[REGS_MAX];
	uint64_t frequency, candidates;
	uint64_t pending, dropped;
	bool full; /* the guest was told, and has not drained since */
	struct rock_terms terms;
};

/* Counter and sampler of a type: one owner for both. */
struct rock_pair {
	int owner; /* strand, NO_STRAND */
	struct rock_counter counter;
	struct rock_sampler sampler;
};

struct rock_chip {
	struct rock_pair pair[ROCK_TYPES];
	uint8_t pending[ROCK_KINDS]; /* performance events that no strand has seen, bit per type */
};

struct rock_strand {
	unsigned guest;
	uint64_t sod[ROCK_TYPES];   /* start-of-day counts of YANK, SIBLK, LVLK */
	uint8_t calls[ROCK_KINDS];  /* cross-calls that wait, bit per type */
	uint8_t causes[ROCK_KINDS]; /* why SOFTINT bit 15 is set */
	bool in_handler;
	struct quipu_signals *signals;
	unsigned cpu;
};

struct rock_region {
	uint64_t base, size;
	uint8_t *bytes;
};

struct rock_guest {
	bool enabled; /* group RKPERF negotiated */
	unsigned nregions;
	struct rock_region region[QUIPU_ROCK_MAX_REGIONS];
};

struct quipu_rock {
	struct quipu_rock_config config;
	unsigned nstrands;
	struct rock_chip chip[QUIPU_ROCK_MAX_CHIPS];
	struct rock_strand strand[QUIPU_ROCK_MAX_CHIPS * STRANDS];
	struct rock_guest guest[QUIPU_ROCK_MAX_GUESTS];
	int *strand_of_cpu; /* attached CPUs */
	unsigned ncpus;
	bool held, delivering;
	bool attention;			   /* an event or an interrupt may be pending */
	const struct quipu_interrupt *irq; /* being served */
	quipu_rock_handler *handler;
	void *handler_arg;
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
	void (*console)(void *arg, unsigned guest, char c);
	void *console_arg;
};

/* types.c: the type argument and the registers */
struct rock_register {
	uint32_t va;
	bool model_only;
	uint64_t low_mask, low_min,
		low_max; /* a value whose field is outside is refused; mask 0: any value */
	unsigned low_shift;
};
unsigned rock_type_code(enum rock_type);
const char *rock_type_name(enum rock_type);
unsigned rock_type_width(enum rock_type);
bool rock_type_sampled(enum rock_type);
bool rock_type_sod(enum rock_type);
/* Rules 1 to 4 of the type argument; @init: a source is needed. *source is 0 when none is named. */
bool rock_type_decode(uint64_t arg, bool init, enum rock_type *type, unsigned *source);
/* Index of the register, -1: no such register (in this mode). */
int rock_register_find(const struct quipu_rock *, enum rock_type, bool sample, uint64_t va);
/* Is @value allowed for configuration register @reg? */
bool rock_register_allows(enum rock_type, unsigned reg, uint64_t value);
void rock_frequency_limits(enum rock_type, uint64_t *min, uint64_t *max);

/* Configuration registers by index (as in the table of types.c). */
enum { IS_PC_MASK, IS_PC_MATCH, IS_CC_LATENCY, IS_CONTEXT_FILTER, IS_INFO_MASK, IS_INFO_MATCH };
enum { TX_EA_MASK, TX_EA_MATCH, TX_FILTER, TX_CC };
/* Sample registers by index. */
enum { IS_INFO, IS_CONTEXT, IS_PC, IS_EA, IS_LATENCY };
enum { TX_INFO, TX_EA };

static inline struct rock_pair *rock_pair_of(struct quipu_rock *r, unsigned strand,
					     enum rock_type type)
{
	return &r->chip[strand / STRANDS].pair[type];
}

/* hardware.c */
uint64_t rock_counter_value(struct quipu_rock *, struct rock_pair *, enum rock_type);
void rock_counter_set(struct quipu_rock *, struct rock_pair *, enum rock_type, uint64_t value);
void rock_counter_start(struct quipu_rock *, struct rock_pair *, enum rock_type, uint64_t config);
void rock_counter_stop(struct quipu_rock *, struct rock_pair *, enum rock_type);
/* As after power-on, but for the source. */
void rock_counter_clear(struct quipu_rock *, struct rock_pair *, enum rock_type);
void rock_sampler_start(struct quipu_rock *, struct rock_pair *, enum rock_type,
			uint64_t frequency);
void rock_sampler_stop(struct quipu_rock *, struct rock_pair *, enum rock_type);
void rock_sampler_clear(struct quipu_rock *, struct rock_pair *, enum rock_type);
/* A configuration register or the number of bound strands changed. */
void rock_sampler_update(struct quipu_rock *, struct rock_pair *, enum rock_type);
/* The sample was taken: the candidate counter is loaded again. */
void rock_sampler_restart(struct quipu_rock *, struct rock_pair *, enum rock_type);
/* Cycles without the events that follow: for charges made while events are served. */
void rock_cycles(struct quipu_rock *, unsigned strand, enum quipu_rock_privilege, uint64_t n);

/* signals.c: counters that follow an engine */
/* Take up what the signals did; with an overflow or a sample the chip's pending bit is set. */
void rock_terms_settle(struct quipu_rock *, struct rock_pair *, enum rock_type, enum rock_kind);
/* What does it follow, after a start, stop or change? */
void rock_terms_choose(struct quipu_rock *, struct rock_pair *, enum rock_type, enum rock_kind);
void rock_terms_arm(struct quipu_rock *, struct rock_pair *, enum rock_type, enum rock_kind);
/* The deadline slot of its first signal. */
unsigned rock_terms_slot(enum rock_type, enum rock_kind);
/* The sample registers that the interrupt being served gives; all 0 without one. */
void rock_sample_words(const struct quipu_rock *, enum rock_type, uint64_t words[REGS_MAX]);
/* hardware.c, for signals.c */
void rock_instr_words(unsigned strand, const struct quipu_rock_instr *, uint64_t words[REGS_MAX]);
void rock_l2_words(const struct quipu_rock_l2 *, uint64_t words[REGS_MAX]);
void rock_mmu_words(const struct quipu_rock_mmu *, uint64_t words[REGS_MAX]);
void rock_counter_add(struct quipu_rock *, struct rock_pair *, enum rock_type, uint64_t n);
void rock_sampler_candidates(struct quipu_rock *, struct rock_pair *, enum rock_type, uint64_t n);

/* trap.c: the performance event trap, cross-calls, rings, the guest's interrupt */
void rock_event(struct quipu_rock *, struct rock_pair *, enum rock_type, enum rock_kind);
void rock_deliver(struct quipu_rock *);
/* Nobody waits for an event of this half any longer. */
void rock_forget(struct quipu_rock *, struct rock_pair *, enum rock_type, enum rock_kind);
void rock_trace(struct quipu_rock *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* guest.c */
/* Release what @strand owns. */
void rock_strand_release(struct quipu_rock *, unsigned strand);
void rock_half_release(struct quipu_rock *, struct rock_pair *, enum rock_type, enum rock_kind);

/* events.c: which signals move a counter */
struct rock_follow {
	quipu_signal signal;
	int weight;
	bool chip; /* of all strands of the chip, whoever owns the counter (requests of the MMU) */
};
/*
 * Signals of a counter at user level. Their number, at most STRAND_TERMS. *missing (may be NULL) is
 * what part of it nothing moves, NULL: nothing is missing.
 */
unsigned rock_events_follow(enum rock_type, unsigned source, uint64_t filter,
			    struct rock_follow *out, const char **missing);
/*
 * Signals of a sampler's candidates. @filter: its CONTEXT_FILTER or TXN_INFO_FILTER. That of L2
 * filters kinds of transactions here; their EVT is looked at when one is captured.
 */
unsigned rock_samples_follow(enum rock_type, uint64_t filter, struct rock_follow *out);

#endif
