/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The call chains of all samples in one tree, outermost function at the top: a chain is a path, and
 * what it weighs is added at the path's end. What a report shows below an entry (profile_entry's
 * chains) is put together out of it when all samples are in, and only as far as it is shown.
 */
#ifndef QUIPU_PROFILE_CALLTREE_H
#define QUIPU_PROFILE_CALLTREE_H

#include "profile/aggregate.h"

struct calltree;

struct calltree *calltree_new(const struct profile_options *);
void calltree_free(struct calltree *);
/*
 * calltree_find - the node of @f, called from node @parent. 0 is the parent of the outermost ones,
 *	which are different ones for each @entry. 0: there is none.
 * calltree_add - make it. 0: no memory.
 * calltree_weigh - a sample whose chain ends at @node. The entry that its function belongs to.
 */
uint32_t calltree_find(const struct calltree *, uint32_t parent, const struct profile_frame *,
		       const struct profile_entry *);
uint32_t calltree_add(struct calltree *, uint32_t parent, const struct profile_frame *,
		      struct profile_entry *);
struct profile_entry *calltree_weigh(struct calltree *, uint32_t node, uint64_t period);
/* All samples are in: total, chained and rank of each entry, which must be 0 before. */
void calltree_sum(struct calltree *);
/*
 * calltree_chains - the chains of @entry: those that end in it, and with children the rest of those
 *	that go through it. Nodes below @least percent of @whole are left out. 0 or -ENOMEM.
 */
int calltree_chains(struct calltree *, struct profile_entry *, double least, uint64_t whole);

/* profile_same_function - are two frames in the same function? */
bool profile_same_function(const struct profile_frame *, const struct profile_frame *);
/* profile_frame_order - a frame's place among others by what is printed of it: <0, 0, >0. */
int profile_frame_order(const struct profile_frame *, const struct profile_frame *);

#endif
