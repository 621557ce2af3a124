/* SPDX-License-Identifier: BSD-2-Clause */
/* The VT-d room: the remapping units of a machine, their devices and drivers (room.c), read from
 * its tree (tree.c). */
#ifndef VTD_ROOM_H
#define VTD_ROOM_H

#include <quipu/platform.h>

#include "engine/dma/traffic.h"
#include "platform/vtd/driver.h"

extern const struct quipu_platform quipu_platform_vtd;

#define VTD_MAX_UNITS	32u
#define VTD_MAX_DOMAINS 256u
#define VTD_MAX_MASTERS 64u

/* What the tree says of a domain and of a device; domain: index into the unit's domains, -1 for
 * none. */
struct vtd_domain_node {
	uint16_t did;
	enum quipu_vtd_stage stage;
	unsigned levels;
	uint64_t page;
	int parent; /* nested: the second-stage domain */
};

struct vtd_master_node {
	struct dma_config config;
	uint64_t bytes; /* of its buffers */
	int domain;
	bool posted, has_iova;
};

struct vtd_unit_node {
	struct quipu_vtd_config config;
	enum quipu_vtd_profile profile;
	enum quipu_vtd_mode mode;
	unsigned number; /* dmarN */
	uint64_t base;	 /* of the register window */
	unsigned ndomains, nmasters;
	struct vtd_domain_node domain[VTD_MAX_DOMAINS];
	struct vtd_master_node master[VTD_MAX_MASTERS];
};

/* ---- tree.c ---- */
/* The unit at @node. 0, or -EINVAL with a note. */
int vtd_tree_unit(const struct quipu_machine *, int node, unsigned index, struct quipu_notes *,
		  struct vtd_unit_node *);
/* The node after @after that describes a unit, or a negative libfdt error; @after -1: the first. */
int vtd_tree_next(const struct quipu_machine *, int after);

/* ---- for tests ---- */
unsigned vtd_room_units(const void *self);
struct quipu_vtd *vtd_room_unit(void *self, unsigned i);
struct vtd_driver *vtd_room_driver(void *self, unsigned i); /* NULL: no PMU */
const struct dma_traffic *vtd_room_traffic(const void *self, unsigned i);

#endif
