// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters and candidate counters that follow an engine's signals (quipu/signal.h) instead of being
 * told each event.
 *
 * Only user-level activity comes this way. A running counter is a sum of differences; its deadline
 * is split over the signals so that none can reach the overflow unseen. What a sampler captures is
 * what the interrupt tells of its instruction: its label (src/model/ahead.h), or the lookup.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * One signal: what follows is the period arithmetic alone (the kind is named after its first user),
 * or, of a sampler, a candidate counter that is loaded again and again.
 */
static void serve_alone(const struct rock_pair *p, enum rock_kind kind, struct quipu_deadline *d)
{
	d->overflow = kind == ROCK_COUNTER ? QUIPU_OVERFLOW_RELOAD : QUIPU_OVERFLOW_STEADY;
	if (kind == ROCK_COUNTER)
		return;
	d->step = p->sampler.frequency;
	d->per = 1;
	d->turn = 1;
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
		struct quipu_deadline d = {.signal = t->signal};

		if (ts->n == 1 && t->weight == 1)
			serve_alone(p, kind, &d);
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
	if (!p->sampler.running)
		return 0;
	return rock_samples_follow(
		type, p->sampler.config[type == TYPE_INSTR ? IS_CONTEXT_FILTER : TX_FILTER], out);
}

/* ---- what an interrupt tells of its instruction ---- */

#define BIT(c) QUIPU_CLASS_BIT(QUIPU_INSN_##c)

/* Rock sheet section 10: TYP, by classes. */
static uint8_t typ_of(unsigned class)
{
	static const struct {
		uint64_t classes;
		uint8_t typ;
	} rows[] = {
		{BIT(LOAD) | BIT(FLOAD) | BIT(LR) | BIT(AMO), QUIPU_ROCK_TYP_LOAD},
		{BIT(STORE) | BIT(FSTORE) | BIT(SC) | BIT(AMO), QUIPU_ROCK_TYP_STORE},
		{BIT(BRANCH) | BIT(JUMP) | BIT(CALL) | BIT(IJUMP) | BIT(ICALL) | BIT(RET) |
			 BIT(CRET),
		 QUIPU_ROCK_TYP_CTI},
		{BIT(FADD) | BIT(FMUL) | BIT(FMA) | BIT(FDIV) | BIT(FOTHER) | BIT(VECTOR),
		 QUIPU_ROCK_TYP_FP},
		{BIT(ALU) | BIT(CSR) | BIT(FENCE) | BIT(SYSTEM), QUIPU_ROCK_TYP_ALU},
		{BIT(MUL) | BIT(DIV), QUIPU_ROCK_TYP_COMPLEX},
	};
	uint8_t typ = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].classes & QUIPU_CLASS_BIT(class))
			typ |= rows[i].typ;
	return typ;
}

static uint16_t evt_of(uint32_t events)
{
	static const struct {
		uint32_t event;
		uint16_t evt;
	} rows[] = {
		{QUIPU_INSN_L1_MISS, QUIPU_ROCK_EVT_DCACHE_MISS},
		{QUIPU_INSN_PRIOR_MISS, QUIPU_ROCK_EVT_PRIOR_MISS},
		{QUIPU_INSN_TLB_MISS, QUIPU_ROCK_EVT_DTLB_MISS},
		{QUIPU_INSN_LOADS_FULL, QUIPU_ROCK_EVT_LOADBUF_FULL},
		{QUIPU_INSN_STORES_FULL, QUIPU_ROCK_EVT_STOREBUF_FULL},
		{QUIPU_INSN_STALLED, QUIPU_ROCK_EVT_STALL},
		{QUIPU_INSN_FROM_QUEUE, QUIPU_ROCK_EVT_DQ},
		{QUIPU_INSN_BYPASS, QUIPU_ROCK_EVT_BYPASS_RAW},
		{QUIPU_INSN_NO_BYPASS, QUIPU_ROCK_EVT_NONBYPASS_RAW},
		{QUIPU_INSN_TAKEN, QUIPU_ROCK_EVT_TAKEN},
		{QUIPU_INSN_FAILED, QUIPU_ROCK_EVT_FAILED_SPEC},
	};
	uint16_t evt = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (events & rows[i].event)
			evt |= rows[i].evt;
	if (!(events & QUIPU_INSN_MISPREDICTED))
		evt |= QUIPU_ROCK_EVT_CORRECT_PREDICT;
	return evt;
}

static void instr_words(const struct quipu_rock *r, uint64_t words[REGS_MAX])
{
	const struct quipu_insn *i = &r->irq->insn;
	const struct quipu_rock_instr instr = {
		.pc = r->irq->pc,
		.ea = r->irq->addr,
		.latency = i->latency,
		.typ = i->size ? typ_of(i->class) : 0,
		.evt = i->size ? evt_of(i->events) : 0,
		.mode = i->mode,
	};

	rock_instr_words((unsigned)r->strand_of_cpu[r->irq->cpu], &instr, words);
}

static void l2_words(const struct quipu_interrupt *irq, uint64_t words[REGS_MAX])
{
	static const uint8_t type[QUIPU_TRANSACTIONS] = {
		[QUIPU_TRANSACTION_FETCH] = QUIPU_ROCK_L2_ICACHE_LOAD,
		[QUIPU_TRANSACTION_LOAD] = QUIPU_ROCK_L2_DCACHE_LOAD,
		[QUIPU_TRANSACTION_FETCH_PREFETCH] = QUIPU_ROCK_L2_INSTR_PREFETCH,
		[QUIPU_TRANSACTION_STORE_PREFETCH] = QUIPU_ROCK_L2_STORE_PREFETCH,
		[QUIPU_TRANSACTION_STORE] = QUIPU_ROCK_L2_STORE,
		[QUIPU_TRANSACTION_ATOMIC] = QUIPU_ROCK_L2_ATOMIC,
		[QUIPU_TRANSACTION_FLUSH] = QUIPU_ROCK_L2_FLUSH,
	};
	uint32_t events = irq->insn.events;
	unsigned kind = irq->insn.transaction;
	bool fetch = kind == QUIPU_TRANSACTION_FETCH || kind == QUIPU_TRANSACTION_FETCH_PREFETCH;
	const struct quipu_rock_l2 t = {
		.ea = fetch ? irq->pc : irq->addr,
		.type = kind < QUIPU_TRANSACTIONS ? type[kind] : 0,
		.evt = events & QUIPU_INSN_STORE_PENDING ? 2 : 0,
		.source = events & QUIPU_INSN_LL_MISS	? QUIPU_ROCK_DRAM
			  : events & QUIPU_INSN_L2_MISS ? QUIPU_ROCK_L3
							: QUIPU_ROCK_LOCAL_L2,
	};

	rock_l2_words(&t, words);
}

static void mmu_words(const struct quipu_interrupt *irq, uint64_t words[REGS_MAX])
{
	const struct quipu_rock_mmu m = {
		.ea = irq->insn.events & QUIPU_INSN_FETCH_MISS ? irq->pc : irq->addr,
		.instruction = irq->insn.events & QUIPU_INSN_FETCH_MISS,
		.hit = !(irq->insn.events & QUIPU_INSN_STLB_MISS),
	};

	rock_mmu_words(&m, words);
}

void rock_sample_words(const struct quipu_rock *r, enum rock_type type, uint64_t words[REGS_MAX])
{
	memset(words, 0, REGS_MAX * sizeof(*words));
	if (!r->irq)
		return;
	if (type == TYPE_INSTR)
		instr_words(r, words);
	else if (type == TYPE_L2)
		l2_words(r->irq, words);
	else
		mmu_words(r->irq, words);
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
		const struct quipu_signals *from = r->strand[s].signals;

		/* Without labels a sample still knows its place. */
		if (kind == ROCK_SAMPLER && type == TYPE_INSTR && from)
			f[0].signal = from->ops->has(r->strand[s].signals, QUIPU_SIGNAL_LABELLED)
					      ? QUIPU_SIGNAL_LABELLED
					      : QUIPU_SIGNAL_INSTRUCTIONS;
		bool mine = (source & RK_PERF_SRC_STRANDS) ||
			    ((source & RK_PERF_SRC_STRAND) && p->owner == (int)s);

		for (unsigned i = 0; i < n && from; i++)
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
