/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Rock room: chips, hypervisor, guests and the driver of the guest that the machine's CPUs
 * belong to.
 */
#ifndef QUIPU_PLATFORM_ROCK_ROOM_H
#define QUIPU_PLATFORM_ROCK_ROOM_H

#include <quipu/machine.h>
#include <quipu/platform.h>
#include <quipu/rock.h>

extern const struct quipu_platform quipu_platform_rock;

/* The chips of a room, for tests and tools. */
struct quipu_rock *rock_room_chips(void *self);

/* tree.c: the node "quipu,sun4v" */
struct rock_tree_guest {
	unsigned number;
	unsigned nranges;
	uint32_t range[16][2]; /* first strand, number of strands */
};
struct rock_tree {
	struct quipu_rock_config config;
	bool records; /* activity is told event by event, not by signals */
	unsigned nguests;
	struct rock_tree_guest guest[QUIPU_ROCK_MAX_GUESTS];
};
/* The node, or a negative libfdt error. */
int rock_tree_node(const struct quipu_machine *);
/* 0, or -EINVAL with a note. */
int rock_tree_read(const struct quipu_machine *, struct quipu_notes *, struct rock_tree *);

#endif
