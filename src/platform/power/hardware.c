/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance monitor of a POWER9 thread (power-cpu sheet 1): PMC1-6, MMCR0-2, MMCRA, SIAR,
 * SDAR, SIER, the alert.
 *
 * Programs of a user-mode engine run with PR = 1, on bare metal with HV = 1 too (Linux itself
 * does). In a partition HV = 1 is the hypervisor's, whose code runs as others say
 * (power_pmu_visit). A counter is its value when it was last looked at plus what its signal has
 * moved since; it stands at exactly 0x80000000 when its alert freezes it (no skid). Not modelled:
 * threshold events, BHRB, event-based branches, TRIGGER, time-base events.
 */
#include "platform/power/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "platform/power/events.h"

#define PM_HV_CYC 0x2000au

struct counter {
	uint64_t value;		    /* 32 bits */
	quipu_signal signal, minus; /* it counts the one less the other; NONE: stands, nothing */
	uint64_t since;
	unsigned slot;
};

struct power_cpu {
	struct counter pmc[POWER_PMCS];
	uint64_t mmcr0, mmcr1, mmcr2, mmcra, siar, sdar, sier;
	uint64_t perfmon; /* mode set by H_PERFMON */
	bool partition;
	bool closed; /* nothing counts before that */
	bool in_use; /* VPA byte 0xbb */
};

#define DECLARED 4u /* words: more bits than power_events has rows */

struct power_pmu {
	struct quipu_signals *signals;
	unsigned ncpus;
	struct power_cpu *cpus;
	bool partition, perfmon;
	bool bell; /* the program waits for every interrupt */
	void (*pmi)(void *arg, unsigned cpu, const struct quipu_interrupt *);
	void *arg;
	uint64_t declared[DECLARED];
	struct quipu_model model; /* what a miss costs */
};

/* ---- what a counter counts ---- */

static bool frozen(const struct power_cpu *c, unsigned i)
{
	if (c->closed || c->mmcr0 & (MMCR0_FC | MMCR0_FCP))
		return true;
	if (c->mmcr0 & (i < 4 ? MMCR0_FC14 : MMCR0_FC56))
		return true;
	return c->mmcr2 & POWER_FCP >> 9 * i;
}

/* Marked instructions: those that MMCRA makes eligible. */
static quipu_signal marked(const struct power_cpu *c)
{
	uint64_t eligible = bits_get(c->mmcra, MMCRA_ELIGIBLE);

	if (!(c->mmcra & 1))
		return QUIPU_SIGNAL_NONE;
	return eligible == ELIGIBLE_LOADS    ? QUIPU_SIGNAL_MARKED_LOADS
	       : eligible == ELIGIBLE_STORES ? QUIPU_SIGNAL_MARKED_STORES
					     : QUIPU_SIGNAL_INSTRUCTIONS;
}

static const struct power_event *selected(const struct power_cpu *c, unsigned i)
{
	return power_event_by_selection(i + 1, (unsigned)(c->mmcr1 >> (60 - 4 * i) & 0xf),
					(unsigned)(c->mmcr1 >> (38 - 2 * i) & 3),
					(unsigned)(c->mmcr1 >> (24 - 8 * i) & 0xff));
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
	e = selected(c, i);
	/* A partition's own code never runs with HV set. */
	if (!e || (c->partition && e->code == PM_HV_CYC))
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
	struct quipu_deadline d = {.overflow = QUIPU_OVERFLOW_RELOAD};

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
	if (k->minus != QUIPU_SIGNAL_NONE || p->bell)
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

/* Where the data of a marked access came from (SIER, sheet 5.7). */
static uint64_t source_of(uint32_t events)
{
	return events & QUIPU_INSN_LL_MISS   ? SIER_SOURCE_MEMORY
	       : events & QUIPU_INSN_L2_MISS ? 3
	       : events & QUIPU_INSN_L1_MISS ? 2
					     : 1;
}

/* Cycles until a marked access had its data, as the machine's models have them. */
static uint64_t latency_of(const struct power_pmu *p, uint32_t events)
{
	const struct quipu_model *m = &p->model;
	uint64_t data = events & QUIPU_INSN_LL_MISS   ? m->memory
			: events & QUIPU_INSN_L2_MISS ? m->l3.latency
			: events & QUIPU_INSN_L1_MISS ? m->l2.latency
						      : 0;
	uint64_t walk = events & QUIPU_INSN_STLB_MISS  ? m->walk
			: events & QUIPU_INSN_TLB_MISS ? m->second_tlb
						       : 0;

	return 1 + data + walk;
}

/* Seven bits, and how often two more were left out. */
static uint64_t threshold(uint64_t latency)
{
	uint64_t exponent = 0;

	while (latency > 0x7f && exponent < 7) {
		latency >>= 2;
		exponent++;
	}
	return bits_put(latency < 0x7f ? latency : 0x7f, MMCRA_MANTISSA) |
	       bits_put(exponent, MMCRA_EXPONENT);
}

/* What marking tells of the instruction of the alert. */
static void latch_marked(struct power_pmu *p, struct power_cpu *c,
			 const struct quipu_interrupt *irq)
{
	uint64_t eligible = bits_get(c->mmcra, MMCRA_ELIGIBLE);

	c->mmcra &=
		~(bits_put(~UINT64_C(0), MMCRA_MANTISSA) | bits_put(~UINT64_C(0), MMCRA_EXPONENT));
	if (!(c->mmcra & 1) || (eligible != ELIGIBLE_LOADS && eligible != ELIGIBLE_STORES))
		return;
	c->sier |= bits_put(eligible == ELIGIBLE_LOADS ? SIER_LOAD : SIER_STORE, SIER_TYPE) |
		   bits_put(source_of(irq->insn.events), SIER_SOURCE) |
		   (irq->addr ? SIER_SDAR_VALID : 0);
	c->mmcra |= threshold(latency_of(p, irq->insn.events));
}

static void alert(struct power_pmu *p, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct power_cpu *c = &p->cpus[cpu];

	if (c->mmcr0 & MMCR0_FCECE)
		c->mmcr0 |= MMCR0_FC;
	c->mmcr0 = (c->mmcr0 & ~MMCR0_PMAE) | MMCR0_PMAO;
	if (irq) {
		c->siar = irq->pc;
		c->sier = SIER_SIAR_VALID | SIER_SIPR | (p->partition ? 0 : SIER_SIHV);
		c->sdar = irq->addr;
		latch_marked(p, c, irq);
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

/* ---- in the hypervisor ---- */

enum in_hypervisor { COUNTS_NOTHING, COUNTS_INSNS, COUNTS_CYCLES };

static bool frozen_there(const struct power_cpu *c, unsigned i)
{
	return c->closed ||
	       c->mmcr0 & (MMCR0_FC | MMCR0_FCHV | (i < 4 ? MMCR0_FC14 : MMCR0_FC56)) ||
	       c->mmcr2 & POWER_FCH >> 9 * i;
}

/* What a counter counts with HV = 1, PR = 0: the model has no more than this of it. */
static enum in_hypervisor counts_there(const struct power_cpu *c, unsigned i)
{
	static const struct {
		uint64_t code;
		enum in_hypervisor what;
	} codes[] = {
		{0x2, COUNTS_INSNS},	  {0x500fa, COUNTS_INSNS},  {0x400fa, COUNTS_INSNS},
		{0x1e, COUNTS_CYCLES},	  {0x600f4, COUNTS_CYCLES}, {0x200f4, COUNTS_CYCLES},
		{0x2000a, COUNTS_CYCLES},
	};
	const struct power_event *e;

	if (frozen_there(c, i))
		return COUNTS_NOTHING;
	if (i >= 4)
		return i == 4 ? COUNTS_INSNS : COUNTS_CYCLES;
	e = selected(c, i);
	for (size_t k = 0; e && k < sizeof(codes) / sizeof(codes[0]); k++)
		if (codes[k].code == e->code)
			return codes[k].what;
	return COUNTS_NOTHING;
}

/* After how many of @s's instructions counter @i overflows, or UINT64_MAX: not here. */
static uint64_t overflow_at(const struct power_cpu *c, unsigned i, const struct power_stretch *s)
{
	enum in_hypervisor what = counts_there(c, i);
	uint64_t left = PMC_NEGATIVE - c->pmc[i].value;

	if (!condition_enabled(c, i) || c->pmc[i].value >= PMC_NEGATIVE)
		return UINT64_MAX;
	if (what == COUNTS_INSNS && left <= s->insns)
		return left;
	if (what == COUNTS_CYCLES && left <= s->cycles)
		return bits_muldiv(left, s->insns, s->cycles);
	return UINT64_MAX;
}

/* @insns of the stretch pass: what counts them moves. At its own overflow a counter of cycles
 * stands at exactly that. */
static void pass(struct power_cpu *c, const struct power_stretch *s, uint64_t insns)
{
	uint64_t cycles = insns == s->insns
				  ? s->cycles
				  : bits_muldiv(insns, s->cycles, s->insns ? s->insns : 1);

	for (unsigned i = 0; i < POWER_PMCS; i++) {
		enum in_hypervisor what = counts_there(c, i);
		uint64_t n = what == COUNTS_INSNS ? insns : what == COUNTS_CYCLES ? cycles : 0;

		if (overflow_at(c, i, s) == insns)
			n = PMC_NEGATIVE - c->pmc[i].value;
		c->pmc[i].value = (c->pmc[i].value + n) & bits_mask(32);
	}
}

/* The alert, at the @k-th instruction of the stretch. */
static void alert_there(struct power_cpu *c, const struct power_stretch *s, uint64_t k)
{
	uint64_t slots = s->size / 4;

	c->siar = s->start + 4 * (slots ? k % slots : 0);
	c->sier = SIER_SIHV | SIER_SIAR_VALID;
	c->sdar = 0;
	if (c->mmcr0 & MMCR0_FCECE)
		c->mmcr0 |= MMCR0_FC;
	c->mmcr0 = (c->mmcr0 & ~MMCR0_PMAE) | MMCR0_PMAO;
}

/* What was declared besides happens with the last instruction. True: a counter overflowed. */
static bool count_extras(struct power_cpu *c, const struct power_stretch *s)
{
	bool over = false;

	for (unsigned i = 0; s->nextra && i < 4; i++) {
		const struct power_event *e = frozen_there(c, i) ? NULL : selected(c, i);
		uint64_t before = c->pmc[i].value, n = 0;

		for (size_t k = 0; e && k < s->nextra; k++)
			n += strcmp(e->name, s->extra[k].event) ? 0 : s->extra[k].count;
		c->pmc[i].value = (before + n) & bits_mask(32);
		over |= condition_enabled(c, i) && before < PMC_NEGATIVE &&
			before + n >= PMC_NEGATIVE;
	}
	if (over)
		alert_there(c, s, s->insns ? s->insns - 1 : 0);
	return over;
}

/* One stretch; true when it raised the alert. Without FCECE the counters go on behind it. */
static bool run_stretch(struct power_cpu *c, const struct power_stretch *s)
{
	struct power_stretch rest = *s;
	uint64_t k = UINT64_MAX;

	for (unsigned i = 0; i < POWER_PMCS; i++) {
		uint64_t at = overflow_at(c, i, s);

		if (at < k)
			k = at;
	}
	if (k == UINT64_MAX) {
		pass(c, s, s->insns);
		return count_extras(c, s);
	}
	pass(c, s, k);
	alert_there(c, s, k);
	rest.insns -= k;
	rest.cycles -= bits_muldiv(k, s->cycles, s->insns ? s->insns : 1);
	pass(c, &rest, rest.insns);
	count_extras(c, s);
	return true;
}

void power_pmu_declare(struct power_pmu *p, const char *event)
{
	for (size_t i = 0; power_events[i].name && i < 64 * DECLARED; i++)
		if (!strcmp(power_events[i].name, event))
			p->declared[i / 64] |= UINT64_C(1) << i % 64;
}

bool power_pmu_declared(const struct power_pmu *p, const struct power_event *e)
{
	size_t i = (size_t)(e - power_events);

	return i < 64 * DECLARED && p->declared[i / 64] >> i % 64 & 1;
}

void power_pmu_visit(struct power_pmu *p, const struct quipu_interrupt *at,
		     const struct power_stretch *s, size_t n)
{
	struct power_cpu *c;
	bool pending = false;

	if (at->cpu >= p->ncpus)
		return;
	c = &p->cpus[at->cpu];
	settle_all(p, at->cpu);
	for (size_t i = 0; i < n; i++)
		pending |= run_stretch(c, &s[i]);
	restart_all(p, at->cpu);
	if (pending && p->pmi)
		p->pmi(p->arg, at->cpu, at);
}

void power_pmu_redispatched(struct power_pmu *p, unsigned cpu)
{
	struct power_cpu *c = &p->cpus[cpu];

	if (cpu >= p->ncpus || c->in_use)
		return;
	settle_all(p, cpu);
	for (unsigned i = 0; i < POWER_PMCS; i++)
		c->pmc[i].value = 0;
	c->mmcr0 = MMCR0_FC;
	c->mmcr1 = c->mmcr2 = c->mmcra = c->siar = c->sdar = c->sier = 0;
	restart_all(p, cpu);
}

int power_h_perfmon(struct power_pmu *p, unsigned cpu, uint64_t set, uint64_t reset, uint64_t *mode)
{
	const uint64_t known = UINT64_C(3) << 62;
	struct power_cpu *c = &p->cpus[cpu];

	if (!p->perfmon)
		return -2; /* H_Function */
	if (cpu >= p->ncpus || (set | reset) & ~known || set & reset)
		return -4; /* H_Parameter */
	settle_all(p, cpu);
	c->perfmon = (c->perfmon | set) & ~reset;
	c->closed = !(c->perfmon >> 63);
	*mode = c->perfmon;
	restart_all(p, cpu);
	return 0;
}

void power_vpa_in_use(struct power_pmu *p, unsigned cpu, bool in_use)
{
	p->cpus[cpu].in_use = in_use;
}

bool power_vpa_is_in_use(const struct power_pmu *p, unsigned cpu)
{
	return p->cpus[cpu].in_use;
}

void power_pmu_set_partition(struct power_pmu *p, bool perfmon)
{
	p->partition = true;
	p->perfmon = perfmon;
	for (unsigned cpu = 0; cpu < p->ncpus; cpu++) {
		p->cpus[cpu].partition = true;
		p->cpus[cpu].closed = perfmon;
	}
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

void power_pmu_set_bell(struct power_pmu *p)
{
	p->bell = true;
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
	quipu_model_read(machine, &p->model, NULL);
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
