/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses of a block that lie side by side: one after the other, none of another kind between
 * them, from the same register at constant distances. Where the first one goes is known, all are;
 * so they are looked at together, once, in their order. Pure.
 *
 * An access that faults ends its block (engine sheet 7.3), and those of its group that come behind
 * it have been looked at by then: the models may have seen them twice when the block is begun again
 * there.
 */
#ifndef QUIPU_ENGINE_GROUP_H
#define QUIPU_ENGINE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "block.h"

#define GROUP_MOST  16u
#define GROUP_FIRST 3u /* log2 of the bytes of the first, most: QEMU makes two of a longer one */

struct group_access {
	int32_t delta;	/* of its address from the first one's */
	uint16_t index; /* of its instruction */
	uint8_t bytes;	/* log2 */
	bool store;
};

struct group {
	struct group *next; /* of its block */
	int32_t low;	    /* delta of the lowest byte */
	uint32_t span;	    /* ... and from there to the highest */
	uint16_t n;
	bool stores; /* some access does */
	struct group_access access[];
};

/* group_bytes - of a group of @n accesses. */
static inline size_t group_bytes(unsigned n)
{
	return sizeof(struct group) + n * sizeof(struct group_access);
}

/*
 * group_find - the accesses, at most GROUP_MOST, that lie side by side with that of instruction @i
 * of @n, which accesses memory, from there on and within @most bytes: into @g, which has room for
 * so many. Returns how many they are; 0: it cannot be the first of any.
 */
unsigned group_find(const struct insn *insn, unsigned n, unsigned i, uint32_t most,
		    struct group *g);

#endif
