/* SPDX-License-Identifier: BSD-2-Clause */
/* The models of a machine, for `quipu machine show` (show_models.h). */
#include <stdio.h>

#include <quipu/model.h>

#include "cli/show_models.h"

static const struct quipu_model_cache *level_of(const struct quipu_model *m, unsigned level)
{
	return level == 2 ? &m->l2 : level == 3 ? &m->l3 : NULL;
}

static void show_tlb(const char *name, const struct quipu_model_cache *c)
{
	if (c->sets)
		printf("  %-12s %u entries, %u sets of %u, pages of %u KiB\n", name,
		       c->sets * c->ways, c->sets, c->ways, 1u << (c->shift - 10));
}

static void show_predictor(const struct quipu_model *m)
{
	if (!m->counters) {
		printf("  branches     no predictor\n");
		return;
	}
	printf("  branches     %s, %u two-bit counters", m->history ? "gshare" : "bimodal",
	       m->counters);
	if (m->history)
		printf(", history of %u", m->history);
	printf("; %u targets; return stack of %u\n", m->targets, m->returns);
}

void show_models(const struct quipu_machine *machine)
{
	struct quipu_model m;

	quipu_model_read(machine, &m, NULL);
	printf("  caches       as above: %s, write-back, a store allocates; levels 1 and 2 begin empty\n",
	       m.lru ? "true LRU" : "tree-PLRU");
	show_tlb("itlb", &m.itlb);
	show_tlb("dtlb", &m.dtlb);
	show_tlb("second tlb", &m.stlb);
	show_predictor(&m);
	printf("  cycles lost  mispredict %u, walk %u", m.mispredict, m.walk);
	if (m.stlb.sets)
		printf(", second tlb %u", m.second_tlb);
	for (unsigned level = 2; level <= 3; level++)
		if (level_of(&m, level)->sets)
			printf(", L%u %u", level, level_of(&m, level)->latency);
	printf(", memory %u%s\n", m.memory,
	       m.full ? "" : "\n               (not added to the cycles; --timing full adds them)");
}

static json_t *json_shape(const struct quipu_model_cache *c)
{
	if (!c->sets)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i}", "sets", (int)c->sets, "ways", (int)c->ways, "line",
			 (int)(1u << c->shift), "latency", (int)c->latency);
}

json_t *json_models(const struct quipu_machine *machine)
{
	struct quipu_model m;

	quipu_model_read(machine, &m, NULL);
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i}}",
		"replacement", m.lru ? "lru" : "plru", "l1i", json_shape(&m.l1i), "l1d",
		json_shape(&m.l1d), "l2", json_shape(&m.l2), "l3", json_shape(&m.l3), "itlb",
		json_shape(&m.itlb), "dtlb", json_shape(&m.dtlb), "second-tlb", json_shape(&m.stlb),
		"predictor", "counters", (int)m.counters, "history", (int)m.history, "targets",
		(int)m.targets, "returns", (int)m.returns, "penalties", "mispredict",
		(int)m.mispredict, "memory", (int)m.memory, "walk", (int)m.walk, "second-tlb",
		(int)m.second_tlb);
}
