/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Charges applied (sheet 7.4): a visit to the hypervisor moves the counters that count there,
 * method by method, and the CPU's clock; an overflow inside is told when the visit is over.
 * Deterministic: nothing here depends on the host.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "platform/lpar/charge.h"

int lpar_charges_start(struct lpar_charges *all, struct power_pmu *pmu,
		       const struct quipu_platform_env *env)
{
	all->pmu = pmu;
	for (unsigned i = 0; i < all->n; i++)
		for (unsigned k = 0; k < all->charge[i].nextra; k++)
			power_pmu_declare(pmu, all->charge[i].extra[k].event);
	all->ncpus = env->machine->ncpus;
	all->spend = env->spend;
	all->spend_arg = env->spend_arg;
	all->carry = calloc(all->ncpus, sizeof(*all->carry));
	return all->carry ? 0 : -ENOMEM;
}

uint32_t lpar_charges_watches(const struct lpar_charges *all)
{
	uint32_t bits = 0;

	for (unsigned k = 0; k < QUIPU_ACTIVITIES; k++)
		bits |= (uint32_t)(all->trigger[k].n > 0) << k;
	return bits;
}

/* Cycles of @insns; what is less than one is kept for the next. */
static uint64_t cycles_of(struct lpar_charges *all, unsigned cpu, uint64_t insns)
{
	uint64_t milli = insns * all->cpi_milli + all->carry[cpu];

	all->carry[cpu] = (uint32_t)(milli % 1000);
	return milli / 1000;
}

static void visit(struct lpar_charges *all, const struct quipu_interrupt *at, struct lpar_charge *c,
		  uint32_t units)
{
	struct power_stretch s[CHARGE_PATH];
	uint64_t insns = 0, cycles = 0;

	for (unsigned i = 0; i < c->npath; i++) {
		const struct lpar_method *m = &c->path[i];

		s[i] = (struct power_stretch){.start = m->start,
					      .size = m->size,
					      .insns = m->insns + (uint64_t)m->per_unit * units};
		s[i].cycles = cycles_of(all, at->cpu, s[i].insns);
		insns += s[i].insns;
		cycles += s[i].cycles;
	}
	s[c->npath - 1].extra = c->extra;
	s[c->npath - 1].nextra = c->nextra;
	c->count++;
	c->insns += insns;
	c->cycles += cycles;
	/* The clock first: the sample is taken when the visit is over. */
	if (all->spend)
		all->spend(all->spend_arg, at->cpu, cycles);
	power_pmu_visit(all->pmu, at, s, c->npath);
	if (c->dispatches)
		power_pmu_redispatched(all->pmu, at->cpu);
}

void lpar_charges_apply(struct lpar_charges *all, const struct quipu_interrupt *at,
			unsigned trigger, uint64_t units)
{
	if (at->cpu >= all->ncpus)
		return;
	for (unsigned i = 0; i < all->trigger[trigger].n; i++) {
		struct lpar_charge *c = &all->charge[all->trigger[trigger].charge[i]];

		/* Units beyond what one call takes make further calls. */
		for (uint64_t left = units; left;) {
			uint32_t n = left < c->max_units ? (uint32_t)left : c->max_units;

			visit(all, at, c, n);
			left -= n;
		}
	}
}

void lpar_charges_report(const struct lpar_charges *all, quipu_describe_fn *fn, void *arg)
{
	uint64_t insns = 0, cycles = 0;
	char line[160];

	for (unsigned i = 0; i < all->n; i++) {
		insns += all->charge[i].insns;
		cycles += all->charge[i].cycles;
	}
	if (!insns)
		return;
	snprintf(line, sizeof(line),
		 "hypervisor (modelled: declared by the machine, no hypervisor code ran): %" PRIu64
		 " instructions, %" PRIu64 " cycles",
		 insns, cycles);
	fn(arg, 0, line);
	for (unsigned i = 0; i < all->n; i++) {
		const struct lpar_charge *c = &all->charge[i];

		if (!c->count)
			continue;
		snprintf(line, sizeof(line),
			 "%-20s %10" PRIu64 " times %12" PRIu64 " instructions %12" PRIu64
			 " cycles",
			 c->name, c->count, c->insns, c->cycles);
		fn(arg, 1, line);
	}
}
