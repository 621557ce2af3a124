// SPDX-License-Identifier: BSD-2-Clause
/*
 * The device tree of the Rock room: the node "quipu,sun4v" with the hypervisor's properties and a
 * child for each guest. A binding of our own, in README.md: a real machine describes this in its
 * machine description, which no public document gives for Rock.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>

#include "platform/rock/room.h"

#define COMPATIBLE "quipu,sun4v"

int rock_tree_node(const struct quipu_machine *m)
{
	return quipu_machine_find(m, COMPATIBLE);
}

static int wrong(const struct quipu_machine *m, struct quipu_notes *notes, int node,
		 const char *property, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static int wrong(const struct quipu_machine *m, struct quipu_notes *notes, int node,
		 const char *property, const char *fmt, ...)
{
	char path[256], where[320], text[200];
	va_list ap;

	if (fdt_get_path(m->fdt, node, path, sizeof(path)))
		strcpy(path, "?");
	snprintf(where, sizeof(where), "%s:%s", path, property);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	quipu_note(notes, QUIPU_NOTE_WRONG, where, "%s", text);
	return -EINVAL;
}

/* The guest that has a strand of the range already, NULL: none. */
static const struct rock_tree_guest *taken(const struct rock_tree *t, uint64_t first,
					   uint64_t count, unsigned *strand)
{
	for (unsigned g = 0; g < t->nguests; g++)
		for (unsigned i = 0; i < t->guest[g].nranges; i++) {
			uint64_t at = t->guest[g].range[i][0], end = at + t->guest[g].range[i][1];

			if (first >= end || first + count <= at)
				continue;
			*strand = (unsigned)(first > at ? first : at);
			return &t->guest[g];
		}
	return NULL;
}

static int read_guest(const struct quipu_machine *m, struct quipu_notes *notes, int node,
		      struct rock_tree *t)
{
	struct rock_tree_guest *g = &t->guest[t->nguests];
	uint64_t number = quipu_machine_number(m, node, "quipu,guest", 0);
	const struct rock_tree_guest *other;
	const uint32_t *cells;
	unsigned strand;
	int n = quipu_machine_cells(m, node, "quipu,strands", &cells);

	if (!number || number >= QUIPU_ROCK_MAX_GUESTS || t->nguests == QUIPU_ROCK_MAX_GUESTS)
		return wrong(m, notes, node, "quipu,guest", "a guest has a number from 1 to %u",
			     QUIPU_ROCK_MAX_GUESTS - 1);
	for (unsigned i = 0; i < t->nguests; i++)
		if (t->guest[i].number == number)
			return wrong(m, notes, node, "quipu,guest", "a second guest %u",
				     (unsigned)number);
	if (n < 2 || n % 2 || n / 2 > 16)
		return wrong(m, notes, node, "quipu,strands",
			     "needs 1 to 16 pairs: first strand, number of strands");
	*g = (struct rock_tree_guest){.number = (unsigned)number, .nranges = (unsigned)n / 2};
	for (unsigned i = 0; i < g->nranges; i++) {
		uint64_t first = bits_be32(&cells[2 * i]), count = bits_be32(&cells[2 * i + 1]);

		if (!count || first + count > (uint64_t)t->config.chips * QUIPU_ROCK_CHIP_STRANDS)
			return wrong(m, notes, node, "quipu,strands",
				     "%u chips have the strands 0 to %u", t->config.chips,
				     t->config.chips * QUIPU_ROCK_CHIP_STRANDS - 1);
		other = taken(t, first, count, &strand);
		if (other)
			return wrong(m, notes, node, "quipu,strands",
				     "strand %u is guest %u's already", strand, other->number);
		g->range[i][0] = (uint32_t)first;
		g->range[i][1] = (uint32_t)count;
	}
	t->nguests++;
	return 0;
}

int rock_tree_read(const struct quipu_machine *m, struct quipu_notes *notes, struct rock_tree *t)
{
	int node = rock_tree_node(m), child;
	uint64_t chips = quipu_machine_number(m, node, "quipu,chips", 1);
	uint64_t trap = quipu_machine_number(m, node, "quipu,trap-cycles", 0);
	uint64_t owner = quipu_machine_number(m, node, "quipu,owner-cycles", 0);

	memset(t, 0, sizeof(*t));
	if (!chips || chips > QUIPU_ROCK_MAX_CHIPS)
		return wrong(m, notes, node, "quipu,chips", "a machine has 1 to %u chips",
			     QUIPU_ROCK_MAX_CHIPS);
	if (trap > 1000000 || owner > 1000000)
		return wrong(m, notes, node,
			     trap > 1000000 ? "quipu,trap-cycles" : "quipu,owner-cycles",
			     "an event costs no more than a million cycles");
	t->config = (struct quipu_rock_config){
		.chips = (unsigned)chips,
		.strict = quipu_machine_property(m, node, "quipu,strict", NULL),
		.trap_cycles = (unsigned)trap,
		.owner_cycles = (unsigned)owner,
	};
	t->records = quipu_machine_property(m, node, "quipu,records", NULL);
	fdt_for_each_subnode(child, m->fdt, node)
	{
		int err = read_guest(m, notes, child, t);

		if (err)
			return err;
	}
	return t->nguests ? 0 : wrong(m, notes, node, "guest", "no guest: nothing could run");
}
