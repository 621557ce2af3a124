/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set-associative cache with a two-word tag and true LRU, FIFO, tree PLRU or random replacement.
 * The second word carries VTD_VALID; an invalid line has 0 there, so that a lookup compares and
 * asks nothing else.
 */
#ifndef VTD_CACHE_H
#define VTD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/vtd.h>

#define VTD_VALID (UINT64_C(1) << 63)

struct vtd_tag {
	uint64_t key, who; /* who: VTD_VALID | identity */
};

struct vtd_cache {
	unsigned sets, ways, live;
	enum quipu_vtd_replacement policy;
	size_t size; /* of a payload */
	struct vtd_tag *tag;
	uint64_t *stamp; /* LRU: last use, FIFO: when filled */
	uint64_t *tree;	 /* PLRU: per set */
	char *payload;
	uint64_t tick, random;
};

/* 0, -EINVAL (geometry), -ENOMEM. An absent cache (no entries) is valid and always misses. */
int vtd_cache_init(struct vtd_cache *, struct quipu_vtd_geometry, size_t payload,
		   enum quipu_vtd_replacement, uint64_t seed);
void vtd_cache_destroy(struct vtd_cache *);
void vtd_cache_clear(struct vtd_cache *);
void vtd_cache_touch_tree(struct vtd_cache *, unsigned set, unsigned way);

/* The payload of the line, touched, or NULL. */
static inline void *vtd_cache_find(struct vtd_cache *c, uint64_t index, uint64_t key, uint64_t who)
{
	unsigned set, base;

	if (!c->live)
		return NULL;
	set = (unsigned)index & (c->sets - 1);
	base = set * c->ways;
	for (unsigned w = 0; w < c->ways; w++) {
		if (c->tag[base + w].key != key || c->tag[base + w].who != who)
			continue;
		if (c->policy == QUIPU_VTD_LRU)
			c->stamp[base + w] = ++c->tick;
		else if (c->policy == QUIPU_VTD_PLRU)
			vtd_cache_touch_tree(c, set, w);
		return c->payload + (base + w) * c->size;
	}
	return NULL;
}

/* A line for the tag, evicting what the policy says; a line that has the tag already is used again.
 * NULL: no cache. */
void *vtd_cache_fill(struct vtd_cache *, uint64_t index, uint64_t key, uint64_t who);

/* Drop each line for which @match says so. */
typedef bool vtd_cache_match(const struct vtd_tag *, const void *payload, const void *arg);
void vtd_cache_drop(struct vtd_cache *, vtd_cache_match *, const void *arg);

#endif
