/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Charges and triggers of a tree (sheet 7.2, 7.3, 8.2): which activity of a partition costs which
 * methods of the hypervisor how many instructions. Every method must be in the code map: a sample
 * there must find its name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>

#include "platform/lpar/charge.h"
#include "platform/power/events.h"

#define INSNS_MOST 100000000u
#define UNITS_MOST 65536u

static const char *const triggers[LPAR_TRIGGERS] = {
	[QUIPU_ACTIVITY_PAGE_FAULT] = "page-fault",
	[QUIPU_ACTIVITY_PAGE_UNMAP] = "page-unmap",
	[QUIPU_ACTIVITY_PAGE_PROTECT] = "page-protect",
	[QUIPU_ACTIVITY_IDLE] = "idle",
	[QUIPU_ACTIVITY_WAKE] = "wake",
	[QUIPU_ACTIVITY_YIELD] = "yield",
	[QUIPU_ACTIVITY_CONSOLE] = "console",
	[QUIPU_ACTIVITY_RTAS] = "rtas",
	[LPAR_TRIGGER_DISPATCH] = "dispatch-tick",
	[LPAR_TRIGGER_INTERRUPT] = "interrupt",
	[LPAR_TRIGGER_DMA_MAP] = "dma-map",
	[LPAR_TRIGGER_DMA_UNMAP] = "dma-unmap",
};

/* ---- charges ---- */

static int read_key(const struct lpar_tree *t, int node, struct lpar_charge *c)
{
	bool hcall = lpar_flag(t, node, "quipu,hcall"), vector = lpar_flag(t, node, "quipu,vector");
	uint64_t key;

	if (hcall == vector)
		return lpar_wrong(t, node, "quipu,hcall",
				  "needs an hcall or a vector, one of them");
	if (lpar_number(t, node, hcall ? "quipu,hcall" : "quipu,vector", 0, 0, UINT32_MAX, &key))
		return -EINVAL;
	c->key = (uint32_t)key;
	c->vector = vector;
	return 0;
}

static int read_method(const struct lpar_tree *t, int node, const struct quipu_hvmap *map,
		       struct lpar_method *m, const char *name)
{
	struct quipu_hvmap_hit hit;

	if (!quipu_hvmap_named(map, name, &hit))
		return lpar_wrong(t, node, "quipu,path", "%s is not in the code map", name);
	if (hit.size < 4)
		return lpar_wrong(t, node, "quipu,path", "%s has no room for an instruction", name);
	m->start = hit.start;
	m->size = hit.size;
	m->name = strdup(name);
	return m->name ? 0 : -ENOMEM;
}

static int read_path(const struct lpar_tree *t, int node, const struct quipu_hvmap *map,
		     struct lpar_charge *c)
{
	const uint32_t *insns, *units;
	int n = fdt_stringlist_count(t->m->fdt, node, "quipu,path");
	int ni = quipu_machine_cells(t->m, node, "quipu,insns", &insns);
	int nu = quipu_machine_cells(t->m, node, "quipu,insns-per-unit", &units);

	if (n < 1 || n > (int)CHARGE_PATH)
		return lpar_wrong(t, node, "quipu,path", "needs 1 to %u methods", CHARGE_PATH);
	if (ni != n || (nu >= 0 && nu != n))
		return lpar_wrong(t, node, ni != n ? "quipu,insns" : "quipu,insns-per-unit",
				  "needs a number for each of the %d methods", n);
	for (int i = 0; i < n; i++) {
		struct lpar_method *m = &c->path[i];
		int err = read_method(t, node, map, m,
				      fdt_stringlist_get(t->m->fdt, node, "quipu,path", i, NULL));

		if (err)
			return err;
		c->npath++;
		m->insns = bits_be32(insns + i);
		m->per_unit = nu > 0 ? bits_be32(units + i) : 0;
		if (m->insns > INSNS_MOST || m->per_unit > INSNS_MOST / UNITS_MOST)
			return lpar_wrong(t, node, "quipu,insns", "%s: too many instructions",
					  m->name);
		c->dispatches |= strstr(m->name, "_dispatch") && strstr(m->name, "vp_");
	}
	return 0;
}

/* The row of the core PMU's table, whose name outlives the tree; NULL: no such event. */
static const struct power_event *event_named(const char *name)
{
	const struct power_event *e = power_events;

	while (e->name && strcmp(e->name, name) != 0)
		e++;
	return e->name ? e : NULL;
}

/* Events besides instructions and cycles, which the path says. */
static int read_extras(const struct lpar_tree *t, int node, struct lpar_charge *c)
{
	const char *const names = "quipu,extra-events-names", *const counts =
								      "quipu,extra-events-counts";
	const uint32_t *cells;
	int n = fdt_stringlist_count(t->m->fdt, node, names);
	int nc = quipu_machine_cells(t->m, node, counts, &cells);

	if (n == -FDT_ERR_NOTFOUND && nc < 0)
		return 0;
	if (n < 1 || n > (int)CHARGE_EXTRA)
		return lpar_wrong(t, node, names, "needs 1 to %u events", CHARGE_EXTRA);
	if (nc != n)
		return lpar_wrong(t, node, counts, "needs a number for each of the %d events", n);
	for (int i = 0; i < n; i++) {
		const char *name = fdt_stringlist_get(t->m->fdt, node, names, i, NULL);
		const struct power_event *e = event_named(name);

		if (!e)
			return lpar_wrong(t, node, names, "the core PMU has no event %s", name);
		if (e->signal == QUIPU_SIGNAL_INSTRUCTIONS || e->signal == QUIPU_SIGNAL_CYCLES)
			return lpar_wrong(t, node, names,
					  "%s follows from quipu,insns and quipu,cpi-milli", name);
		if (bits_be32(cells + i) > INSNS_MOST)
			return lpar_wrong(t, node, counts, "%s: too many", name);
		c->extra[c->nextra++] = (struct power_extra){e->name, bits_be32(cells + i)};
	}
	return 0;
}

static int read_charge(const struct lpar_tree *t, int node, const struct quipu_hvmap *map,
		       struct lpar_charges *all)
{
	static const char *const known[] = {"quipu,hcall",
					    "quipu,vector",
					    "quipu,path",
					    "quipu,insns",
					    "quipu,insns-per-unit",
					    "quipu,max-units",
					    "quipu,extra-events-names",
					    "quipu,extra-events-counts",
					    NULL};
	struct lpar_charge *c = &all->charge[all->n];
	uint64_t units;
	int err;

	if (all->n == CHARGES)
		return lpar_wrong(t, node, NULL, "more than %u charges", CHARGES);
	all->n++;
	snprintf(c->name, sizeof(c->name), "%s", fdt_get_name(t->m->fdt, node, NULL));
	c->phandle = fdt_get_phandle(t->m->fdt, node);
	err = lpar_check_names(t, node, known);
	if (!err)
		err = read_key(t, node, c);
	for (unsigned i = 0; !err && i + 1 < all->n; i++)
		if (all->charge[i].key == c->key && all->charge[i].vector == c->vector)
			err = lpar_wrong(t, node, c->vector ? "quipu,vector" : "quipu,hcall",
					 "charge %s has it already", all->charge[i].name);
	if (!err)
		err = lpar_number(t, node, "quipu,max-units", 1, 1, UNITS_MOST, &units);
	if (err)
		return err;
	c->max_units = (uint32_t)units;
	err = read_path(t, node, map, c);
	return err ? err : read_extras(t, node, c);
}

/* ---- triggers ---- */

static int find_charge(const struct lpar_charges *all, uint32_t phandle)
{
	for (unsigned i = 0; phandle && i < all->n; i++)
		if (all->charge[i].phandle == phandle)
			return (int)i;
	return -1;
}

static int read_trigger(const struct lpar_tree *t, int node, const struct quipu_hvmap *map,
			struct lpar_charges *all)
{
	static const char *const known[] = {"quipu,charge", NULL};
	const char *name = fdt_get_name(t->m->fdt, node, NULL);
	const uint32_t *cells;
	unsigned k = 0;
	int n = quipu_machine_cells(t->m, node, "quipu,charge", &cells);

	(void)map;
	while (k < LPAR_TRIGGERS && strcmp(triggers[k], name) != 0)
		k++;
	if (k == LPAR_TRIGGERS)
		return lpar_wrong(t, node, NULL, "no such trigger");
	if (lpar_check_names(t, node, known))
		return -EINVAL;
	if (n < 1 || n > (int)TRIGGER_MOST)
		return lpar_wrong(t, node, "quipu,charge", "needs 1 to %u charges", TRIGGER_MOST);
	for (int i = 0; i < n; i++) {
		int charge = find_charge(all, bits_be32(cells + i));

		if (charge < 0)
			return lpar_wrong(t, node, "quipu,charge", "names no charge");
		all->trigger[k].charge[all->trigger[k].n++] = (uint8_t)charge;
	}
	return 0;
}

/* What this kind of partition never does (sheet 7.2). */
static int drop_triggers(const struct lpar_tree *t, int node, struct lpar_charges *all)
{
	static const char *const mmus[] = {"hpt", "radix", NULL},
				 *const irqs[] = {"xics", "xive", NULL},
				 *const modes[] = {"dedicated", "shared", NULL};
	int mmu = lpar_choice(t, node, "quipu,guest-mmu", mmus);
	int irq = lpar_choice(t, node, "quipu,irq-mode", irqs);
	int mode = lpar_choice(t, node, "quipu,processor-mode", modes);

	if (mmu < 0 || irq < 0 || mode < 0 ||
	    lpar_number(t, node, "quipu,dispatch-period-us", 10000, 1, 1000000000, &all->period_us))
		return -EINVAL;
	if (mmu == 1 && !lpar_flag(t, node, "quipu,overcommit"))
		all->trigger[QUIPU_ACTIVITY_PAGE_FAULT].n = 0;
	if (mmu == 1 && !lpar_flag(t, node, "quipu,no-gtse"))
		all->trigger[QUIPU_ACTIVITY_PAGE_UNMAP].n =
			all->trigger[QUIPU_ACTIVITY_PAGE_PROTECT].n = 0;
	if (irq == 1)
		all->trigger[QUIPU_ACTIVITY_WAKE].n = all->trigger[LPAR_TRIGGER_INTERRUPT].n = 0;
	if (mode == 0) {
		all->trigger[QUIPU_ACTIVITY_YIELD].n = all->trigger[LPAR_TRIGGER_DISPATCH].n = 0;
		all->period_us = 0;
	}
	return 0;
}

static int read_nodes(const struct lpar_tree *t, int node, const char *name,
		      const struct quipu_hvmap *map, struct lpar_charges *all,
		      int (*read)(const struct lpar_tree *, int, const struct quipu_hvmap *,
				  struct lpar_charges *))
{
	int parent = fdt_subnode_offset(t->m->fdt, node, name), child;

	if (parent < 0) /* nothing is declared */
		return 0;
	fdt_for_each_subnode(child, t->m->fdt, parent)
	{
		if (read(t, child, map, all))
			return -EINVAL;
	}
	return 0;
}

int lpar_charges_read(struct lpar_charges *all, const struct lpar_tree *t,
		      const struct quipu_hvmap *map)
{
	int node = lpar_tree_node(t->m);
	uint64_t cpi;

	memset(all, 0, sizeof(*all));
	if (lpar_number(t, node, "quipu,cpi-milli", 1000, 1, 1000000, &cpi))
		return -EINVAL;
	all->cpi_milli = (uint32_t)cpi;
	all->synthetic = lpar_flag(t, node, "quipu,synthetic");
	if (read_nodes(t, node, "charges", map, all, read_charge) ||
	    read_nodes(t, node, "triggers", map, all, read_trigger))
		return -EINVAL;
	if (all->n && !all->synthetic)
		return lpar_wrong(t, node, "quipu,synthetic",
				  "charges are invented activity: the flag must say so");
	return drop_triggers(t, node, all);
}

void lpar_charges_free(struct lpar_charges *all)
{
	for (unsigned i = 0; i < all->n; i++)
		for (unsigned k = 0; k < all->charge[i].npath; k++)
			free(all->charge[i].path[k].name);
	free(all->carry);
}
