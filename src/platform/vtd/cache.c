// SPDX-License-Identifier: BSD-2-Clause
/*
 * The unit's caches: placement and replacement. The architecture leaves both to the implementation
 * (6.2); sizes come from the configuration. What may be cached, and how it is dropped, is in the
 * files that use it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "cache.h"

#define MAX_ENTRIES (1u << 20)
#define MAX_WAYS    64u

static bool power_of_two(unsigned n)
{
	return n && !(n & (n - 1));
}

int vtd_cache_init(struct vtd_cache *c, struct quipu_vtd_geometry g, size_t payload,
		   enum quipu_vtd_replacement policy, uint64_t seed)
{
	*c = (struct vtd_cache){.policy = policy, .size = payload, .random = seed ? seed : 1};
	if (!g.entries)
		return 0;
	if (g.entries > MAX_ENTRIES || !g.ways || g.ways > MAX_WAYS || g.entries % g.ways)
		return -EINVAL;
	if (!power_of_two(g.entries / g.ways) ||
	    (policy == QUIPU_VTD_PLRU && !power_of_two(g.ways)))
		return -EINVAL;
	c->ways = g.ways;
	c->sets = g.entries / g.ways;
	c->tag = calloc(g.entries, sizeof(*c->tag));
	c->stamp = calloc(g.entries, sizeof(*c->stamp));
	c->tree = calloc(c->sets, sizeof(*c->tree));
	c->payload = calloc(g.entries, payload);
	if (c->tag && c->stamp && c->tree && c->payload)
		return 0;
	vtd_cache_destroy(c);
	return -ENOMEM;
}

void vtd_cache_destroy(struct vtd_cache *c)
{
	free(c->tag);
	free(c->stamp);
	free(c->tree);
	free(c->payload);
	*c = (struct vtd_cache){0};
}

void vtd_cache_clear(struct vtd_cache *c)
{
	if (!c->live)
		return;
	memset(c->tag, 0, sizeof(*c->tag) * c->sets * c->ways);
	memset(c->tree, 0, sizeof(*c->tree) * c->sets);
	c->live = 0;
}

/* Node n of the tree has children 2n and 2n+1; a set bit points right, to where the next victim is.
 */
void vtd_cache_touch_tree(struct vtd_cache *c, unsigned set, unsigned way)
{
	unsigned node = 1;

	for (unsigned half = c->ways / 2; half; half /= 2) {
		bool right = way & half;

		if (right)
			c->tree[set] &= ~bits_one(node);
		else
			c->tree[set] |= bits_one(node);
		node = 2 * node + right;
	}
}

static unsigned tree_victim(const struct vtd_cache *c, unsigned set)
{
	unsigned node = 1, way = 0;

	for (unsigned half = c->ways / 2; half; half /= 2) {
		bool right = c->tree[set] >> node & 1;

		way += right ? half : 0;
		node = 2 * node + right;
	}
	return way;
}

static uint64_t next_random(struct vtd_cache *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

static unsigned victim(struct vtd_cache *c, unsigned set)
{
	const uint64_t *stamp = c->stamp + (size_t)set * c->ways;
	unsigned oldest = 0;

	if (c->policy == QUIPU_VTD_RANDOM)
		return (unsigned)(next_random(c) % c->ways);
	if (c->policy == QUIPU_VTD_PLRU)
		return tree_victim(c, set);
	for (unsigned w = 1; w < c->ways; w++)
		if (stamp[w] < stamp[oldest])
			oldest = w;
	return oldest;
}

/* The way that has the tag, else an empty one, else a victim. */
static unsigned place(struct vtd_cache *c, unsigned set, uint64_t key, uint64_t who)
{
	const struct vtd_tag *tag = c->tag + (size_t)set * c->ways;
	unsigned empty = c->ways;

	for (unsigned w = 0; w < c->ways; w++) {
		if (tag[w].key == key && tag[w].who == who)
			return w;
		if (!tag[w].who && empty == c->ways)
			empty = w;
	}
	return empty < c->ways ? empty : victim(c, set);
}

void *vtd_cache_fill(struct vtd_cache *c, uint64_t index, uint64_t key, uint64_t who)
{
	unsigned set, way;
	size_t line;

	if (!c->sets)
		return NULL;
	set = (unsigned)index & (c->sets - 1);
	way = place(c, set, key, who);
	line = (size_t)set * c->ways + way;
	if (!c->tag[line].who)
		c->live++;
	c->tag[line] = (struct vtd_tag){key, who};
	c->stamp[line] = ++c->tick;
	if (c->policy == QUIPU_VTD_PLRU)
		vtd_cache_touch_tree(c, set, way);
	return c->payload + line * c->size;
}

void vtd_cache_drop(struct vtd_cache *c, vtd_cache_match *match, const void *arg)
{
	size_t lines = (size_t)c->sets * c->ways;

	for (size_t i = 0; c->live && i < lines; i++)
		if (c->tag[i].who && match(&c->tag[i], c->payload + i * c->size, arg)) {
			c->tag[i] = (struct vtd_tag){0};
			c->live--;
		}
}
