// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters and candidate counters that follow an engine's signals (quipu/signal.h) instead of being
 * told each event.
 *
 * Only user-level activity comes this way, and only the INSTR sampler: a signal says that an
 * instruction happened, not what it was (INFO reads 0). A running counter is a sum of differences;
 * its deadline is split over the signals so that none can reach the overflow unseen.
 */
#include <errno.h>
#include <stdlib.h>

#include "platform/rock/chip.h"

static struct rock_terms *terms_of(struct rock_pair *p, enum rock_kind kind)
{
	return kind == ROCK_COUNTER ? &p->counter.terms : &p->sampler.terms;
}

static unsigned chip_of(const struct quipu_rock *r, const struct rock_pair *p, enum rock_type type)
{
	return (unsigned)(((const char *)p - (const char *)&r->chip[0].pair[type]) /
			  (ptrdiff_t)sizeof(r->chip[0]));
}

static struct rock_strand *term_strand(struct quipu_rock *r, unsigned chip,
				       const struct rock_term *t)
{
	return &r->strand[chip * STRANDS + t->strand];
}

static uint64_t read_signal(const struct rock_strand *s, quipu_signal signal)
{
	return s->signals->ops->read(s->signals, s->cpu, signal);
}

void rock_terms_settle(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
		       enum rock_kind kind)
{
	struct rock_terms *ts = terms_of(p, kind);
	unsigned chip = chip_of(r, p, type);
	uint64_t sum = 0;

	for (unsigned i = 0; i < ts->n; i++) {
		struct rock_term *t = &ts->term[i];
		uint64_t now = read_signal(term_strand(r, chip, t), t->signal);

		sum += (now - t->base) * (uint64_t)(int64_t)t->weight;
		t->base = now;
	}
	if (!sum)
		return;
	if (kind == ROCK_COUNTER)
		rock_counter_add(r, p, type, sum);
	else
		rock_sampler_candidates(r, p, type, sum);
}

static void disarm(struct quipu_rock *r, unsigned chip, struct rock_terms *ts)
{
	for (unsigned i = 0; i < ts->n; i++) {
		struct rock_term *t = &ts->term[i];
		struct rock_strand *s = term_strand(r, chip, t);

		if (t->armed)
			s->signals->ops->disarm(s->signals, s->cpu, t->slot);
		t->armed = false;
	}
}

/* Counts until something must happen; 0: nothing will. */
static uint64_t distance(const struct rock_pair *p, enum rock_type type, enum rock_kind kind)
{
	if (kind == ROCK_SAMPLER)
		return p->sampler.waiting ? 0 : p->sampler.candidates;
	return p->counter.toe ? bits_mask(rock_type_width(type)) - p->counter.value + 1 : 0;
}

/* A sum of weights W reaches N only after some signal moved by at least N / W. */
void rock_terms_arm(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
		    enum rock_kind kind)
{
	struct rock_terms *ts = terms_of(p, kind);
	unsigned chip = chip_of(r, p, type);
	uint64_t left = distance(p, type, kind), weights = 0;

	if (!ts->n)
		return;
	if (!left) {
		disarm(r, chip, ts);
		return;
	}
	for (unsigned i = 0; i < ts->n; i++)
		weights += ts->term[i].weight > 0 ? (uint64_t)ts->term[i].weight : 0;
	for (unsigned i = 0; i < ts->n; i++) {
		struct rock_term *t = &ts->term[i];
		struct rock_strand *s = term_strand(r, chip, t);
		/*
		 * One signal, and a counter: what follows is the period arithmetic alone. The kind
		 * is named after its first user.
		 */
		struct quipu_deadline d = {
			.signal = t->signal,
			.overflow = kind == ROCK_COUNTER && ts->n == 1 && t->weight == 1
					    ? QUIPU_OVERFLOW_X86
					    : QUIPU_OVERFLOW_BELL,
		};

		d.at = t->base + (left - 1) / weights + 1;
		if (t->weight <= 0 || (t->armed && t->at == d.at))
			continue;
		t->armed = true;
		t->at = d.at;
		s->signals->ops->arm(s->signals, s->cpu, t->slot, &d);
	}
}

/* Signals of what the counter or sampler counts on one strand. */
static unsigned follow(const struct rock_pair *p, enum rock_type type, enum rock_kind kind,
		       struct rock_follow *out)
{
	if (kind == ROCK_COUNTER)
		return p->counter.running ? rock_events_follow(type, p->counter.source,
							       p->counter.filter, out, NULL)
					  : 0;
	/* User level at trap level 0, of instructions. */
	if (!p->sampler.running || type != TYPE_INSTR ||
	    (p->sampler.config[IS_CONTEXT_FILTER] & 9) != 9)
		return 0;
	*out = (struct rock_follow){QUIPU_SIGNAL_INSTRUCTIONS, 1, false};
	return 1;
}

static void add_term(struct quipu_rock *r, struct rock_terms *ts, unsigned strand,
		     const struct rock_follow *f, unsigned slot)
{
	struct rock_strand *s = &r->strand[strand];

	if (!s->signals->ops->has(s->signals, f->signal))
		return;
	ts->term[ts->n++] = (struct rock_term){
		.signal = f->signal,
		.weight = f->weight,
		.strand = (uint8_t)(strand % STRANDS),
		.slot = (uint8_t)slot,
		.base = read_signal(s, f->signal),
	};
}

unsigned rock_terms_slot(enum rock_type type, enum rock_kind kind)
{
	return (kind == ROCK_COUNTER ? (unsigned)type : ROCK_TYPES + (unsigned)type) * STRAND_TERMS;
}

void rock_terms_choose(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
		       enum rock_kind kind)
{
	struct rock_terms *ts = terms_of(p, kind);
	unsigned chip = chip_of(r, p, type),
		 source = kind == ROCK_COUNTER ? p->counter.source : p->sampler.source;
	unsigned first_slot = rock_terms_slot(type, kind);
	struct rock_follow f[STRAND_TERMS];
	unsigned n = follow(p, type, kind, f);

	disarm(r, chip, ts);
	ts->n = 0;
	for (unsigned s = chip * STRANDS; s < (chip + 1) * STRANDS && n; s++) {
		bool mine = (source & RK_PERF_SRC_STRANDS) ||
			    ((source & RK_PERF_SRC_STRAND) && p->owner == (int)s);

		for (unsigned i = 0; i < n && r->strand[s].signals; i++)
			if (mine || f[i].chip)
				add_term(r, ts, s, &f[i], first_slot + i);
	}
	rock_terms_arm(r, p, type, kind);
}

int quipu_rock_attach(struct quipu_rock *r, unsigned strand, struct quipu_signals *signals,
		      unsigned cpu)
{
	if (strand >= r->nstrands || cpu > 65535)
		return -EINVAL;
	if (cpu >= r->ncpus) {
		int *grown = realloc(r->strand_of_cpu, (cpu + 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->strand_of_cpu = grown;
		while (r->ncpus <= cpu)
			grown[r->ncpus++] = NO_STRAND;
	}
	r->strand_of_cpu[cpu] = (int)strand;
	r->strand[strand].signals = signals;
	r->strand[strand].cpu = cpu;
	return 0;
}

/* A deadline is spent when it is reached. */
static void reached(struct quipu_rock *r, unsigned strand, unsigned slot)
{
	unsigned half = slot / STRAND_TERMS;
	enum rock_kind kind = half < ROCK_TYPES ? ROCK_COUNTER : ROCK_SAMPLER;
	enum rock_type type = (enum rock_type)(half < ROCK_TYPES ? half : half - ROCK_TYPES);
	struct rock_pair *p = rock_pair_of(r, strand, type);
	struct rock_terms *ts = terms_of(p, kind);

	for (unsigned i = 0; i < ts->n; i++)
		if (ts->term[i].strand == strand % STRANDS && ts->term[i].slot == slot)
			ts->term[i].armed = false;
	rock_terms_settle(r, p, type, kind);
	rock_terms_arm(r, p, type, kind);
}

void quipu_rock_interrupt(struct quipu_rock *r, const struct quipu_interrupt *irq)
{
	int strand = irq->cpu < r->ncpus ? r->strand_of_cpu[irq->cpu] : NO_STRAND;

	if (strand == NO_STRAND)
		return;
	r->irq = irq;
	for (uint64_t m = irq->slots & bits_mask((ROCK_TYPES + ROCK_SAMPLERS) * STRAND_TERMS); m;
	     m &= m - 1)
		reached(r, (unsigned)strand, bits_low(m));
	rock_deliver(r);
	r->irq = NULL;
}
