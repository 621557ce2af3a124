// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chips, guests (logical domains), their strands and memory. Who owns a strand decides who may own
 * a counter: whatever takes a strand from its guest, or stops it, releases what the strand owned
 * (Rock sheet section 4).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/rock/chip.h"

struct quipu_rock *quipu_rock_new(const struct quipu_rock_config *config)
{
	struct quipu_rock *r;

	if (!config->chips || config->chips > QUIPU_ROCK_MAX_CHIPS)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->config = *config;
	r->nstrands = config->chips * STRANDS;
	for (unsigned c = 0; c < config->chips; c++)
		for (unsigned t = 0; t < ROCK_TYPES; t++)
			r->chip[c].pair[t].owner = NO_STRAND;
	return r;
}

void quipu_rock_free(struct quipu_rock *r)
{
	if (!r)
		return;
	for (unsigned g = 0; g < QUIPU_ROCK_MAX_GUESTS; g++)
		for (unsigned i = 0; i < r->guest[g].nregions; i++)
			free(r->guest[g].region[i].bytes);
	free(r->strand_of_cpu);
	free(r);
}

unsigned quipu_rock_strands(const struct quipu_rock *r)
{
	return r->nstrands;
}

/* ---- ownership ---- */

void rock_half_release(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
		       enum rock_kind kind)
{
	if (kind == ROCK_COUNTER) {
		rock_counter_clear(r, p, type);
		p->counter.init = false;
	} else {
		rock_sampler_clear(r, p, type);
		p->sampler.init = false;
	}
	if (!p->counter.init && !p->sampler.init)
		p->owner = NO_STRAND;
}

void rock_strand_release(struct quipu_rock *r, unsigned strand)
{
	for (unsigned t = 0; t < ROCK_TYPES; t++) {
		struct rock_pair *p = rock_pair_of(r, strand, (enum rock_type)t);

		if (p->owner != (int)strand)
			continue;
		if (p->counter.init)
			rock_half_release(r, p, (enum rock_type)t, ROCK_COUNTER);
		if (p->sampler.init)
			rock_half_release(r, p, (enum rock_type)t, ROCK_SAMPLER);
	}
	quipu_rock_clear_softint(r, strand);
}

int quipu_rock_bind(struct quipu_rock *r, unsigned strand, unsigned guest)
{
	if (strand >= r->nstrands || guest >= QUIPU_ROCK_MAX_GUESTS)
		return -EINVAL;
	if (r->strand[strand].guest == guest)
		return 0;
	rock_strand_release(r, strand);
	r->strand[strand].guest = guest;
	return 0;
}

unsigned quipu_rock_guest_of(const struct quipu_rock *r, unsigned strand)
{
	return strand < r->nstrands ? r->strand[strand].guest : 0;
}

void quipu_rock_strand_stop(struct quipu_rock *r, unsigned strand)
{
	if (strand < r->nstrands)
		rock_strand_release(r, strand);
}

void quipu_rock_guest_reset(struct quipu_rock *r, unsigned guest)
{
	if (!guest || guest >= QUIPU_ROCK_MAX_GUESTS)
		return;
	for (unsigned s = 0; s < r->nstrands; s++)
		if (r->strand[s].guest == guest)
			rock_strand_release(r, s);
	r->guest[guest].enabled = false;
}

int quipu_rock_owner(const struct quipu_rock *r, unsigned chip, unsigned code)
{
	enum rock_type type;
	unsigned source;

	if (chip >= r->config.chips || !rock_type_decode(code, false, &type, &source))
		return NO_STRAND;
	return r->chip[chip].pair[type].owner;
}

uint64_t quipu_rock_dropped(const struct quipu_rock *r, unsigned chip, unsigned code)
{
	enum rock_type type;
	unsigned source;

	if (chip >= r->config.chips || !rock_type_decode(code, false, &type, &source))
		return 0;
	return r->chip[chip].pair[type].sampler.dropped;
}

/* ---- memory ---- */

int quipu_rock_memory_add(struct quipu_rock *r, unsigned guest, uint64_t base, uint64_t size)
{
	struct rock_guest *g;

	if (!guest || guest >= QUIPU_ROCK_MAX_GUESTS || !size || base + size - 1 < base ||
	    size > SIZE_MAX)
		return -EINVAL;
	g = &r->guest[guest];
	for (unsigned i = 0; i < g->nregions; i++)
		if (base <= g->region[i].base + (g->region[i].size - 1) &&
		    g->region[i].base <= base + (size - 1))
			return -EINVAL;
	if (g->nregions == QUIPU_ROCK_MAX_REGIONS)
		return -ENOSPC;
	g->region[g->nregions] = (struct rock_region){base, size, calloc(1, size)};
	if (!g->region[g->nregions].bytes)
		return -ENOMEM;
	g->nregions++;
	return 0;
}

int quipu_rock_memory_remove(struct quipu_rock *r, unsigned guest, uint64_t base)
{
	struct rock_guest *g;

	if (!guest || guest >= QUIPU_ROCK_MAX_GUESTS)
		return -ENOENT;
	g = &r->guest[guest];
	for (unsigned i = 0; i < g->nregions; i++)
		if (g->region[i].base == base) {
			free(g->region[i].bytes);
			g->region[i] = g->region[--g->nregions];
			return 0;
		}
	return -ENOENT;
}

void *quipu_rock_memory(struct quipu_rock *r, unsigned guest, uint64_t address, uint64_t len)
{
	const struct rock_guest *g;

	if (!guest || guest >= QUIPU_ROCK_MAX_GUESTS)
		return NULL;
	g = &r->guest[guest];
	for (unsigned i = 0; i < g->nregions; i++) {
		uint64_t at = address - g->region[i].base;

		if (at < g->region[i].size && len <= g->region[i].size - at)
			return g->region[i].bytes + at;
	}
	return NULL;
}
