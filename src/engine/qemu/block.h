/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a translated block adds to the signals, and where in it each one moves. Engine
 * sheet 6.1, 6.2, 6.5.
 *
 * Pure: no QEMU, no shared memory. The values live elsewhere (fold.c); this file knows the sums and
 * the order.
 */
#ifndef QUIPU_ENGINE_BLOCK_H
#define QUIPU_ENGINE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode.h"
#include "engine/segment.h"
#include "model/predict.h"

#define BLOCK_MAX_INSNS 512u
#define BLOCK_MAX_COST	63u /* 512 * 63 < 32768: a lane cannot wrap in one block */
#define INDEXES		(SEG_LANES + SEG_SCALARS)
#define AGAIN_FIRST	4u /* a repetition whose cycle is its instruction's */

typedef uint16_t lanes_t __attribute__((vector_size(16)));

/* What one instruction of each class, with its accesses, adds to each signal; made once from the
 * segment's header. */
struct rates {
	lanes_t lane[INSN_BYTES]; /* by class byte */
	uint16_t scalar[INSN_BYTES][SEG_SCALARS];
	lanes_t lane_again[8]; /* a repetition, by what it accesses: bit 0 load, bit 1 store; and
				  AGAIN_FIRST */
	uint16_t scalar_again[8][SEG_SCALARS];
	unsigned nlanes;      /* highest lane in use + 1 */
	unsigned nscalars;    /* highest scalar in use + 1 */
	uint32_t counted;     /* bit i: index i is a sum over classes */
	uint32_t taken;	      /* bit i: index i counts taken branches */
	uint32_t syscalls;    /* bit i: index i counts system calls */
	uint32_t bytes[4];    /* the same of bytes read, written, sent, received (enum io) */
	uint32_t mispredicts; /* bit i: index i counts mispredictions of some kind */
	uint16_t missed[MODEL_MISSES][INDEXES]; /* what a misprediction adds, by its kind */
};

/* A block. The first 64 bytes are all that the fast path reads. */
struct block {
	_Alignas(64) lanes_t lanes;
	uint64_t pc;
	union {
		struct {
			uint64_t fall;	 /* the next instruction in memory */
			uint64_t target; /* of a direct transfer; else as fall */
		};
		uint64_t successor[2]; /* the same: not taken, taken */
	};
	uint64_t cti;  /* the instruction that decides where control goes: the last but for a delay
			  slot */
	uint8_t flow;  /* enum flow */
	uint8_t moves; /* 1: the last instruction can transfer control */
	uint8_t any; /* 1: every successor is legal; 0 for an indirect one with a slot, which may be
			restarted */
	uint8_t entry : 1; /* known to be the start of a function */
	uint8_t back : 1;  /* a return has gone there: with SEG_STACK */
	uint16_t n;
	uint8_t again : 2; /* FLOW_REP: what a repetition accesses, as lane_again has it */
	uint8_t whole : 2; /* FLOW_REP: repetitions are seen by their accesses (repeat.c) */
	uint8_t near : 4;  /* it lies in one or two lines of a page (models.h) */
	uint8_t apart;	   /* enum delay of a transfer whose slot is no part of the block; else
			      DELAY_NONE */
	uint64_t stamp; /* models.stamp when its lines were all the last ones fetched (models.h) */
	uint64_t last;	/* address of its last byte */
	uint64_t goes;	/* target, of a transfer apart too (whose own target is fall: its slot comes
			   first) */
	struct block *next;   /* in its hash chain */
	struct group *groups; /* those of several accesses, in their order (group.h) */
	uint64_t hash;
	uint16_t scalar[SEG_SCALARS];
	/* behind it: n offsets of instructions from pc, then n class bytes; with SEG_LABEL, n of
	 * struct insn_label */
};

/* What the model of a core that runs ahead asks of an instruction (label.c). */
struct insn_label {
	struct ahead_operands operands;
	uint8_t flush : 1, barrier : 1;
};
_Static_assert(_Alignof(struct insn_label) == 1, "it lies behind bytes");

static inline const uint16_t *block_offsets(const struct block *b)
{
	return (const uint16_t *)(b + 1);
}

static inline const uint8_t *block_classes(const struct block *b)
{
	return (const uint8_t *)(block_offsets(b) + b->n);
}

static inline const struct insn_label *block_labels(const struct block *b)
{
	return (const struct insn_label *)(block_classes(b) + b->n);
}

/* block_bytes - of a record of @n instructions. */
static inline size_t block_bytes(unsigned n, bool labels)
{
	return sizeof(struct block) +
	       n * (sizeof(uint16_t) + 1 + (labels ? sizeof(struct insn_label) : 0));
}

/* insn_accesses - may an instruction with this class byte access memory? */
bool insn_accesses(uint8_t byte);

/* block_restarts - may instruction @i trap and be begun again? */
static inline bool block_restarts(const struct block *b, unsigned i)
{
	return block_classes(b)[i] & INSN_RESTARTS;
}

static inline uint64_t block_insn(const struct block *b, unsigned i)
{
	return b->pc + block_offsets(b)[i];
}

/* block_index - the instruction of @b at @pc, or -1. */
int block_index(const struct block *b, uint64_t pc);

/* block_describe - instruction @i as an interrupt tells of it; where it goes when the block knows.
 */
void block_describe(const struct block *b, unsigned i, struct quipu_insn *insn);

/* block_indirect - can the transfer that ends @b go anywhere? */
static inline bool block_indirect(const struct block *b)
{
	return b->flow == FLOW_IJUMP || b->flow == FLOW_ICALL || b->flow >= FLOW_RET;
}

/* block_successor - can control go from @b to @pc without an abort or an asynchronous transfer? */
static inline bool block_successor(const struct block *b, uint64_t pc)
{
	return b->any || pc == b->fall || pc == b->target;
}

/* One instruction as the translator saw it. */
struct insn {
	uint64_t pc;
	uint8_t size;
	uint8_t class; /* with INSN_LOAD, INSN_STORE */
	uint8_t flow;
	uint8_t again;
	bool whole; /* as the block has it */
	uint8_t delay;
	struct insn_label label;
	struct place place;
	struct change change;
	uint64_t target;
};

/* insn_decoded - @d, which lies at @pc, so many bytes as the translator takes it for. */
static inline struct insn insn_decoded(const struct decoded *d, uint64_t pc, unsigned size)
{
	return (struct insn){.pc = pc,
			     .size = (uint8_t)size,
			     .class = d->class | d->access,
			     .flow = d->flow,
			     .again = d->again,
			     .delay = d->delay,
			     .label = {d->operands, d->flush, d->barrier},
			     .place = d->place,
			     .change = d->change,
			     .target = d->target};
}

void rates_init(struct rates *, const struct seg_header *);

/*
 * All blocks of a process. Equal blocks (same place, same bytes) are one record, so that code which
 * is rewritten or flushed and translated again does not grow the store. Callers serialise.
 */
struct block_store {
	struct block **bucket;
	unsigned nbuckets; /* power of two */
	unsigned nblocks;
	bool labels;	/* blocks have struct insn_label */
	uint32_t group; /* bytes in which accesses of a group lie; 0: there are none */
	struct chunk *chunks, *old;
};

int block_store_init(struct block_store *);
/*
 * block_intern - the block of @n instructions (1..BLOCK_MAX_INSNS) whose bytes hash to @hash. NULL:
 * no memory.
 */
const struct block *block_intern(struct block_store *, const struct rates *, const struct insn *,
				 unsigned n, uint64_t hash);
/* block_store_clear - forget all blocks; every pointer to one is dead. */
void block_store_clear(struct block_store *);
/* block_store_turn - forget all blocks; what the pointers point to stays until the next turn. */
void block_store_turn(struct block_store *);
/* block_store_keep - a copy of @b, without its labels, that the store has nothing else to do with.
 * NULL: no memory. */
const struct block *block_store_keep(struct block_store *, const struct block *b);

#define BLOCK_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t block_hash(uint64_t hash, const uint8_t *bytes, unsigned len);

/*
 * What one entry into a block did: the branch that ended the previous block had its outcome, then
 * the instructions of
 * @block from @skip on were counted (the first @skip had been counted already when an aborted block
 * was entered).
 */
struct step {
	const struct block *prev;  /* its last instruction was resolved; NULL: none */
	const struct block *block; /* NULL: none */
	unsigned skip;
	bool taken;
	uint8_t missed; /* enum model_miss: how that branch was mispredicted */
	bool again;	/* @block is one instruction, and this is a repetition of it */
	bool first;	/* and its cycle was counted with the instruction */
};

/* step_sum - add to @sum what @s contributed to each index. */
void step_sum(const struct rates *, const struct step *, int64_t sum[INDEXES]);

/*
 * step_walk - go through @s instruction by instruction. @now holds the values before it and is
 * brought forward; whenever a value has reached its @nearest, @reached is called with the
 * instruction's pc (@of_prev: it is the branch that ended the previous block). @reached may change
 * @nearest; it is called at most once for an instruction.
 */
void step_walk(const struct rates *, const struct step *, int64_t now[INDEXES],
	       const int64_t *nearest, void (*reached)(void *arg, uint64_t pc, bool of_prev),
	       void *arg);

/* step_add - add to @now what instruction @i of @b counts. */
void step_add(const struct rates *, const struct block *b, unsigned i, int64_t now[INDEXES]);

/* step_reached - has some value reached its @nearest? */
bool step_reached(const struct rates *, const int64_t *now, const int64_t *nearest);

#endif
