/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples added up: entries by command, object, symbol, pid, tid, cpu; with call chains also what
 * each function's callees took (children) and a tree of the chains. Weights are periods. One
 * aggregate per event.
 */
#ifndef QUIPU_PROFILE_AGGREGATE_H
#define QUIPU_PROFILE_AGGREGATE_H

#include "profile/maps.h"
#include "profile/record.h"

enum profile_key {
	PROFILE_KEY_COMM,
	PROFILE_KEY_OBJECT,
	PROFILE_KEY_SYMBOL,
	PROFILE_KEY_PID,
	PROFILE_KEY_TID,
	PROFILE_KEY_CPU,
	PROFILE_KEYS
};

/* A function in an object, or an address where no function is known. */
struct profile_frame {
	const struct profile_object *object;
	const struct profile_symbol *symbol;
	uint64_t ip;	 /* of the sample or call site */
	uint64_t addr;	 /* the object's own address of it */
	uint64_t offset; /* of a sample: in its object; of an entry by offsets: in the function */
	char level;
};

/* A node of a tree of chains. */
struct profile_node {
	struct profile_frame frame;
	uint64_t own;	/* chains that end here */
	uint64_t total; /* and below */
	struct profile_node *child, *next;
	bool hidden; /* some of its children are not there: they are too small to be shown */
};

struct profile_entry {
	const char *comm;
	struct profile_frame frame;
	uint32_t pid, tid, cpu;
	uint64_t self, total; /* total: with children */
	uint64_t samples;
	struct profile_node *chains; /* first of the roots; made by profile_aggregate_sort */
	uint64_t chained;	     /* period of the chains in the tree */
	int64_t rank;	/* of its chains, by length: a caller's is larger than its callees' */
	uint32_t nodes; /* the call tree's own (calltree.c) */
};

struct profile_options {
	unsigned keys; /* bit k: enum profile_key */
	bool children; /* add callees to their callers */
	bool chains;   /* keep trees of chains */
	bool callee;   /* innermost frame first in the trees; else outermost first */
	bool inlines;  /* inlined functions are functions */
	bool offsets;  /* each place in a function is an entry of its own */
};

struct profile_aggregate;

struct profile_aggregate *profile_aggregate_new(const struct profile_options *);
void profile_aggregate_free(struct profile_aggregate *);
/* Take a sample, with the maps as they were at its time. 0 or -ENOMEM. */
int profile_aggregate_sample(struct profile_aggregate *, struct profile_maps *,
			     const struct profile_record *);
/*
 * profile_aggregate_sort - the entries: largest first (with children: by total), of equal ones the
 *	caller before what it calls, then by name. Chains and parts of chains below @least percent
 *	are left out. Call when all samples are in, with one @least. NULL: no memory, or no samples.
 */
const struct profile_entry *const *profile_aggregate_sort(struct profile_aggregate *, double least,
							  size_t *n);
static inline double profile_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

uint64_t profile_aggregate_period(const struct profile_aggregate *);
uint64_t profile_aggregate_samples(const struct profile_aggregate *);
bool profile_aggregate_has_chains(const struct profile_aggregate *);

/*
 * profile_frames - the frames of a sample, innermost first: its call chain, or where it has none
 *	the sampled address alone. With @inlines each is preceded by the functions inlined there. At
 *	most @max. Their number.
 */
size_t profile_frames(struct profile_maps *, const struct profile_record *, bool inlines,
		      struct profile_frame *, size_t max);
#define PROFILE_FRAMES_MAX 16384

#endif
