/* SPDX-License-Identifier: BSD-2-Clause */
/* Accesses that lie side by side (group.h). Engine sheet 9.1. */
#include "group.h"

/* Adds the access of @in, whose register has grown by @grown. False: it would lie too far. */
static bool add(struct group *g, const struct insn *in, unsigned index, int64_t grown,
		int32_t first, uint32_t most)
{
	unsigned class = in->class & (INSN_LOAD - 1);
	int64_t delta = grown + in->place.offset - first, last = delta + (1 << in->place.bytes) - 1,
		low = delta < g->low ? delta : g->low,
		high = g->low + (int64_t)g->span > last ? g->low + (int64_t)g->span : last;
	bool store =
		in->class & INSN_STORE || class == QUIPU_INSN_STORE || class == QUIPU_INSN_FSTORE;

	if (high - low >= most || g->n == GROUP_MOST)
		return false;
	g->low = (int32_t)low;
	g->span = (uint32_t)(high - low);
	g->stores |= store;
	g->access[g->n++] =
		(struct group_access){(int32_t)delta, (uint16_t)index, in->place.bytes, store};
	return true;
}

unsigned group_find(const struct insn *insn, unsigned n, unsigned i, uint32_t most, struct group *g)
{
	uint8_t base = insn[i].place.base;
	int32_t first = insn[i].place.offset;
	int64_t grown = 0;

	*g = (struct group){.next = NULL};
	if (insn[i].place.bytes > GROUP_FIRST)
		return 0;
	for (; base && i < n; i++) {
		const struct insn *in = &insn[i];
		const struct change *c = &in->change;

		if (insn_accesses(in->class) &&
		    (in->place.base != base || !add(g, in, i, grown, first, most)))
			break;
		if (in->class & INSN_RESTARTS || in->flow || c->reg == CHANGES_UNKNOWN ||
		    (c->reg == base && !c->by_known) || c->also == base)
			break;
		if (c->reg == base)
			grown += c->by;
	}
	return g->n;
}
