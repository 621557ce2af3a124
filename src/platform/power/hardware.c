/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance monitor of a POWER9 thread (power-cpu sheet 1): PMC1-6, MMCR0-2, MMCRA, SIAR,
 * SDAR, SIER, the alert.
 *
 * Programs of a user-mode engine run with PR = 1. A counter is its value when it was last looked at
 * plus what its signal has moved since; it stands at exactly 0x80000000 when its alert freezes it
 * (no skid). Not modelled: threshold counter, BHRB, event-based branches, TRIGGER, time-base
 * events.
 */
#include "platform/power/hardware.h"

#include <errno.h>
#include <stdlib.h>

#include <quipu/bits.h>

#include "platform/power/events.h"

struct counter {
	uint64_t value;		    /* 32 bits */
	quipu_signal signal, minus; /* it counts the one less the other; NONE: stands, nothing */
	uint64_t since;
	unsigned slot;
};

struct power_cpu {
	struct counter pmc[POWER_PMCS];
	uint64_t mmcr0, mmcr1, mmcr2, mmcra, siar, sdar, sier;
};

struct power_pmu {
	struct quipu_signals *signals;
	unsigned ncpus;
	struct power_cpu *cpus;
	void (*pmi)(void *arg, unsigned cpu, const struct quipu_interrupt *);
	void *arg;
};

/* ---- what a counter counts ---- */

static bool frozen(const struct power_cpu *c, unsigned i)
{
	if (c->mmcr0 & (MMCR0_FC | MMCR0_FCP))
		return true;
	if (c->mmcr0 & (i < 4 ? MMCR0_FC14 : MMCR0_FC56))
		return true;
	return c->mmcr2 & POWER_FCP >> 9 * i;
}

/* Marked instructions: those that MMCRA makes eligible, 5 loads, 7 stores. */
static quipu_signal marked(const struct power_cpu *c)
{
	uint64_t eligible = bits_get(c->mmcra, 6, 4);

	if (!(c->mmcra & 1))
		return QUIPU_SIGNAL_NONE;
	return eligible == 5   ? QUIPU_SIGNAL_LOADS
	       : eligible == 7 ? QUIPU_SIGNAL_STORES
			       : QUIPU_SIGNAL_INSTRUCTIONS;
}

/* What a counter counts from now on. */
static void select_signal(const struct power_cpu *c, struct counter *k, unsigned i)
{
	const struct power_event *e;

	k->signal = k->minus = QUIPU_SIGNAL_NONE;
	if (frozen(c, i))
		return;
	if (i >= 4) {
		k->signal = i == 4 ? QUIPU_SIGNAL_INSTRUCTIONS : QUIPU_SIGNAL_CYCLES;
		return;
	}
	e = power_event_by_selection(i + 1, (unsigned)(c->mmcr1 >> (60 - 4 * i) & 0xf),
				     (unsigned)(c->mmcr1 >> (38 - 2 * i) & 3),
				     (unsigned)(c->mmcr1 >> (24 - 8 * i) & 0xff));
	if (!e)
		return;
	k->signal = (e->code & 0xff) == 0xe0 && i == 3 ? marked(c) : e->signal;
	k->minus = e->minus;
}

static uint64_t counted_now(const struct power_pmu *p, unsigned cpu, const struct counter *k)
{
	uint64_t v = p->signals->ops->read(p->signals, cpu, k->signal);

	return k->minus == QUIPU_SIGNAL_NONE ? v
					     : v - p->signals->ops->read(p->signals, cpu, k->minus);
}

static void settle(struct power_pmu *p, unsigned cpu, unsigned i)
{
	struct counter *k = &p->cpus[cpu].pmc[i];
	uint64_t now;

	if (k->signal == QUIPU_SIGNAL_NONE)
		return;
	now = counted_now(p, cpu, k);
	k->value = (k->value + (now - k->since)) & bits_mask(32);
	k->since = now;
}

static bool condition_enabled(const struct power_cpu *c, unsigned i)
{
	return (c->mmcr0 & MMCR0_PMAE) && (c->mmcr0 & (i ? MMCR0_PMCJCE : MMCR0_PMC1CE));
}

static void restart(struct power_pmu *p, unsigned cpu, unsigned i)
{
	struct power_cpu *c = &p->cpus[cpu];
	struct counter *k = &c->pmc[i];
	struct quipu_deadline d = {.overflow = QUIPU_OVERFLOW_X86};

	select_signal(c, k, i);
	if (k->signal != QUIPU_SIGNAL_NONE)
		k->since = counted_now(p, cpu, k);
	if (k->signal == QUIPU_SIGNAL_NONE || !condition_enabled(c, i) ||
	    k->value >= PMC_NEGATIVE) {
		p->signals->ops->disarm(p->signals, cpu, k->slot);
		return;
	}
	/* A difference lags behind its first signal: when that one gets there, it is seen how much
	 * is left, and the program waits for the answer. */
	if (k->minus != QUIPU_SIGNAL_NONE)
		d.overflow = QUIPU_OVERFLOW_BELL;
	d.signal = k->signal;
	d.at = p->signals->ops->read(p->signals, cpu, k->signal) + (PMC_NEGATIVE - k->value);
	p->signals->ops->arm(p->signals, cpu, k->slot, &d);
}

static void settle_all(struct power_pmu *p, unsigned cpu)
{
	for (unsigned i = 0; i < POWER_PMCS; i++)
		settle(p, cpu, i);
}

static void restart_all(struct power_pmu *p, unsigned cpu)
{
	for (unsigned i = 0; i < POWER_PMCS; i++)
		restart(p, cpu, i);
}

/* ---- the alert ---- */

static bool alert_due(const struct power_cpu *c)
{
	for (unsigned i = 0; i < POWER_PMCS; i++)
		if (c->pmc[i].value >= PMC_NEGATIVE && condition_enabled(c, i) &&
		    !(c->mmcr0 & (i < 4 ? MMCR0_FC14 : MMCR0_FC56)))
			return true;
	return false;
}

static void alert(struct power_pmu *p, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct power_cpu *c = &p->cpus[cpu];

	if (c->mmcr0 & MMCR0_FCECE)
		c->mmcr0 |= MMCR0_FC;
	c->mmcr0 = (c->mmcr0 & ~MMCR0_PMAE) | MMCR0_PMAO;
	if (irq) {
		c->siar = irq->pc;
		c->sier = SIER_SIAR_VALID | SIER_SIPR | SIER_SIHV;
		c->sdar = irq->addr;
	}
	restart_all(p, cpu);
	if (p->pmi)
		p->pmi(p->arg, cpu, irq);
}

void power_pmu_interrupt(struct power_pmu *p, const struct quipu_interrupt *irq)
{
	bool mine = false;

	if (irq->cpu >= p->ncpus)
		return;
	for (unsigned i = 0; i < POWER_PMCS; i++)
		mine |= irq->slots & bits_one(p->cpus[irq->cpu].pmc[i].slot);
	if (!mine)
		return;
	settle_all(p, irq->cpu);
	if (alert_due(&p->cpus[irq->cpu]))
		alert(p, irq->cpu, irq);
	else
		restart_all(p, irq->cpu);
}

/* ---- registers ---- */

static uint64_t *register_of(struct power_cpu *c, unsigned spr)
{
	switch (spr) {
	case SPR_MMCR0: return &c->mmcr0;
	case SPR_MMCR1: return &c->mmcr1;
	case SPR_MMCR2: return &c->mmcr2;
	case SPR_MMCRA: return &c->mmcra;
	case SPR_SIAR: return &c->siar;
	case SPR_SDAR: return &c->sdar;
	case SPR_SIER: return &c->sier;
	}
	return NULL;
}

static bool is_counter(unsigned spr)
{
	return spr >= SPR_PMC1 && spr < SPR_PMC1 + POWER_PMCS;
}

int power_mfspr(struct power_pmu *p, unsigned cpu, unsigned spr, uint64_t *value)
{
	const uint64_t *reg;

	if (cpu >= p->ncpus)
		return -EINVAL;
	if (is_counter(spr)) {
		settle(p, cpu, spr - SPR_PMC1);
		*value = p->cpus[cpu].pmc[spr - SPR_PMC1].value;
		return 0;
	}
	reg = register_of(&p->cpus[cpu], spr);
	if (!reg)
		return -EINVAL;
	*value = *reg;
	return 0;
}

int power_mtspr(struct power_pmu *p, unsigned cpu, unsigned spr, uint64_t value)
{
	struct power_cpu *c;
	uint64_t *reg;

	if (cpu >= p->ncpus)
		return -EINVAL;
	c = &p->cpus[cpu];
	if (is_counter(spr)) {
		settle(p, cpu, spr - SPR_PMC1);
		c->pmc[spr - SPR_PMC1].value = value & bits_mask(32);
		restart(p, cpu, spr - SPR_PMC1);
	} else {
		reg = register_of(c, spr);
		if (!reg)
			return -EINVAL;
		settle_all(p, cpu);
		*reg = spr == SPR_MMCR0 ? value & bits_mask(32) : value;
		restart_all(p, cpu);
	}
	if ((spr == SPR_MMCR0 || is_counter(spr)) && alert_due(c))
		alert(p, cpu, NULL);
	return 0;
}

void power_pmu_set_slot(struct power_pmu *p, unsigned cpu, unsigned pmc, unsigned slot)
{
	struct counter *k = &p->cpus[cpu].pmc[pmc - 1];

	if (k->slot == slot)
		return;
	/* A swap: no two counters may have one slot. */
	for (unsigned i = 0; i < POWER_PMCS; i++)
		if (p->cpus[cpu].pmc[i].slot == slot)
			p->cpus[cpu].pmc[i].slot = k->slot;
	k->slot = slot;
	settle_all(p, cpu);
	restart_all(p, cpu);
}

void power_pmu_set_handler(struct power_pmu *p,
			   void (*pmi)(void *, unsigned, const struct quipu_interrupt *), void *arg)
{
	p->pmi = pmi;
	p->arg = arg;
}

struct power_pmu *power_pmu_new(const struct quipu_machine *machine, struct quipu_signals *signals)
{
	struct power_pmu *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->signals = signals;
	p->ncpus = machine->ncpus;
	p->cpus = calloc(p->ncpus, sizeof(*p->cpus));
	if (!p->cpus) {
		free(p);
		return NULL;
	}
	for (unsigned cpu = 0; cpu < p->ncpus; cpu++) {
		p->cpus[cpu].mmcr0 = MMCR0_FC;
		for (unsigned i = 0; i < POWER_PMCS; i++)
			p->cpus[cpu].pmc[i].slot = i;
	}
	return p;
}

void power_pmu_free(struct power_pmu *p)
{
	if (!p)
		return;
	free(p->cpus);
	free(p);
}
