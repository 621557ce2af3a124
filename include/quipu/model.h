/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models of a machine: caches, TLBs, branch predictor, and what a miss costs. What they look
 * like is read from the device tree (machines/README.md); the models themselves are src/model and
 * run in the engine.
 *
 * Everything that they count is modelled, never measured. What they leave out: prefetchers, store
 * buffers, overlapping misses, page walks through the caches, coherence between CPUs (a store does
 * not take a line out of another CPU's caches) and the contents of levels above being evicted from
 * those below.
 */
#ifndef QUIPU_MODEL_H
#define QUIPU_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/machine.h>

#define QUIPU_MODEL_WAYS     64u    /* most ways of a cache or TLB */
#define QUIPU_MODEL_COUNTERS 16384u /* most two-bit counters of the predictor */
#define QUIPU_MODEL_TARGETS  4096u  /* most entries of the target table */
#define QUIPU_MODEL_RETURNS  64u    /* most entries of the return stack */
#define QUIPU_MODEL_PORTS    8u	    /* most memory ports */
#define QUIPU_MODEL_PENALTY  1000u  /* most cycles of a stall */
#define QUIPU_MODEL_MISPREDICT                                                                     \
	500u /* most cycles of a misprediction: it shares a lane with a whole block */

/* A cache, or a TLB with pages for lines. sets == 0: there is none. */
struct quipu_model_cache {
	uint32_t sets, ways;
	uint32_t shift;	  /* log2 of the bytes of a line or page */
	uint32_t latency; /* cycles lost by an access that is served here (caches above level 1) */
};

/* Plain numbers: it is copied into the memory that the machine shares with its engines. */
struct quipu_model {
	struct quipu_model_cache l1i, l1d, l2, l3;
	uint32_t l3_cpus;   /* so many neighbouring CPUs share one */
	uint32_t core_cpus; /* so many neighbouring CPUs are threads of one core; 0: one */
	struct quipu_model_cache itlb, dtlb, stlb;
	uint32_t lru;  /* replacement: 1 true LRU; 0 tree-PLRU (true LRU where the ways are no power
			  of two) */
	uint32_t full; /* timing full: the penalties below are added to the cycles; base: they are
			  not */
	uint32_t counters;   /* two-bit counters of the direction predictor, a power of two; 0: no
				predictor */
	uint32_t history;    /* outcomes in the index: 0 is a bimodal predictor, else gshare */
	uint32_t targets;    /* entries of the table of indirect targets, a power of two */
	uint32_t returns;    /* entries of the return stack, a power of two */
	uint32_t memory;     /* cycles lost by an access that no cache serves */
	uint32_t second_tlb; /* ... by a page that only the second-level TLB has */
	uint32_t walk;	     /* ... by a page that no TLB has */
	uint32_t mispredict; /* ... by a mispredicted branch */
	/* Memory ports of a chip, a power of two: line n of memory lies behind port n mod ports.
	 * 0: ports are not told apart. */
	uint32_t ports;
};

/*
 * quipu_model_read - the models of @machine: geometry of the first CPU's caches (all CPUs are taken
 * to be alike), TLBs and predictor with their defaults where the tree is silent. A value that
 * cannot be is noted as WRONG (@notes may be NULL) and the default taken.
 */
void quipu_model_read(const struct quipu_machine *machine, struct quipu_model *,
		      struct quipu_notes *notes);

/* quipu_model_counts - do these models count @signal? False for every signal that is not theirs. */
bool quipu_model_counts(const struct quipu_model *, quipu_signal signal);

/*
 * quipu_model_alias - the architectural signal that has the same count: a read of the first-level
 * data cache is a load. Any other signal is returned as it is.
 */
quipu_signal quipu_model_alias(quipu_signal signal);

/* quipu_model_property - is @name one of the private properties on /cpus that quipu_model_read
 * looks at? */
bool quipu_model_property(const char *name);

#endif
