// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters and samplers of a Rock chip, and what moves them. FWARC/2008/399 for what a counter
 * does; register contents and the rules that the document leaves out: Rock sheet sections 5.3 and
 * 6.3. Knows of strands, not of guests: who may touch what is the hypervisor's business.
 */
#include <stdlib.h>
#include <string.h>

#include "platform/rock/chip.h"

/* ---- counters ---- */

/* Does @source of a counter or sampler that @owner owns take in what @strand does? */
static bool covers(unsigned source, int owner, unsigned strand)
{
	return (source & RK_PERF_SRC_STRANDS) ||
	       ((source & RK_PERF_SRC_STRAND) && owner == (int)strand);
}

/* The start-of-day count that a pair looks at: of its owner, or of all strands of the chip. */
static uint64_t start_of_day(const struct quipu_rock *r, const struct rock_pair *p,
			     enum rock_type type)
{
	unsigned first = (unsigned)p->owner / STRANDS * STRANDS;
	uint64_t sum = 0;

	if (!(p->counter.source & RK_PERF_SRC_STRANDS))
		return r->strand[p->owner].sod[type];
	for (unsigned s = first; s < first + STRANDS; s++)
		sum += r->strand[s].sod[type];
	return sum;
}

uint64_t rock_counter_value(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	struct rock_counter *c = &p->counter;

	rock_terms_settle(r, p, type, ROCK_COUNTER);
	if (rock_type_sod(type) && c->running)
		return c->value + (start_of_day(r, p, type) - c->check);
	return c->value;
}

void rock_counter_set(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
		      uint64_t value)
{
	rock_terms_settle(r, p, type, ROCK_COUNTER);
	p->counter.value = value;
	if (rock_type_sod(type))
		p->counter.check = start_of_day(r, p, type);
	rock_terms_arm(r, p, type, ROCK_COUNTER);
}

/*
 * Zeroing the privilege or source bits is how the hypervisor stops a counter; start-of-day counts
 * run on.
 */
void rock_counter_stop(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	struct rock_counter *c = &p->counter;

	c->value = rock_counter_value(r, p, type);
	c->running = false;
	rock_terms_choose(r, p, type, ROCK_COUNTER);
}

void rock_counter_start(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
			uint64_t config)
{
	static const uint8_t filter_bits[ROCK_TYPES] = {
		[TYPE_CYC] = 3,
		[TYPE_INSTR] = 3,
		[TYPE_L2] = 7,
		[TYPE_MMU] = 7,
	};
	struct rock_counter *c = &p->counter;

	c->value = rock_counter_value(r, p, type);
	if (rock_type_sod(type))
		c->check = start_of_day(r, p, type);
	c->running = true;
	c->toe = config & QUIPU_ROCK_TOE;
	c->filter = config & bits_mask(filter_bits[type]);
	rock_terms_choose(r, p, type, ROCK_COUNTER);
}

void rock_counter_clear(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	struct rock_counter *c = &p->counter;

	c->running = false;
	rock_terms_choose(r, p, type, ROCK_COUNTER);
	rock_forget(r, p, type, ROCK_COUNTER);
	c->toe = false;
	c->filter = c->value = c->check = c->wraps = c->overflows = 0;
	c->source = 0;
}

/* Without TOE a wrap traps nowhere, so that nobody learns of it. */
static void wrapped(struct quipu_rock *r, struct rock_pair *p, enum rock_type type, uint64_t times)
{
	if (!times || !p->counter.toe)
		return;
	p->counter.wraps += times;
	rock_event(r, p, type, ROCK_COUNTER);
}

void rock_counter_add(struct quipu_rock *r, struct rock_pair *p, enum rock_type type, uint64_t n)
{
	struct rock_counter *c = &p->counter;
	unsigned width = rock_type_width(type);
	unsigned __int128 sum = (unsigned __int128)c->value + n;

	c->value = (uint64_t)sum & bits_mask(width);
	wrapped(r, p, type, (uint64_t)(sum >> width));
}

/* ---- samplers ---- */

void rock_sampler_stop(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	rock_terms_settle(r, p, type, ROCK_SAMPLER);
	p->sampler.running = false;
	p->sampler.waiting = false;
	rock_forget(r, p, type, ROCK_SAMPLER);
	rock_terms_choose(r, p, type, ROCK_SAMPLER);
}

void rock_sampler_clear(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	struct rock_sampler *s = &p->sampler;
	bool init = s->init;

	rock_sampler_stop(r, p, type);
	memset(s, 0, offsetof(struct rock_sampler, terms));
	s->init = init;
}

void rock_sampler_start(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
			uint64_t frequency)
{
	struct rock_sampler *s = &p->sampler;

	rock_terms_settle(r, p, type, ROCK_SAMPLER);
	s->frequency = s->candidates = frequency;
	s->waiting = false;
	s->running = true;
	rock_terms_choose(r, p, type, ROCK_SAMPLER);
}

void rock_sampler_update(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	rock_terms_settle(r, p, type, ROCK_SAMPLER);
	rock_terms_choose(r, p, type, ROCK_SAMPLER);
}

void rock_sampler_restart(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	p->sampler.candidates = p->sampler.frequency;
	p->sampler.waiting = false;
	rock_terms_arm(r, p, type, ROCK_SAMPLER);
}

static bool matches(const uint64_t *config, unsigned mask, uint64_t value)
{
	return !((value ^ config[mask + 1]) & config[mask]);
}

/* The tests on a captured sample: one that fails is dropped silently. */
static bool reported(const struct rock_sampler *s, enum rock_type type)
{
	const uint64_t *c = s->config;

	/* Of what a signal counted the EVT is known only now. */
	if (type == TYPE_L2 &&
	    !(c[TX_FILTER] >> (bits_get(s->captured[TX_INFO], 25, 22) ? 11 : 10) & 1))
		return false;
	if (type != TYPE_INSTR)
		return matches(c, TX_EA_MASK, s->captured[TX_EA]);
	return matches(c, IS_PC_MASK, s->captured[IS_PC]) &&
	       matches(c, IS_INFO_MASK, s->captured[IS_INFO]) &&
	       /* A latency that is not known cannot be short. */
	       ((s->captured[IS_LATENCY] & c[IS_CC_LATENCY] & 0xfff) ||
		(!(s->captured[IS_LATENCY] & 0xfff) && (c[IS_CC_LATENCY] & 0xfff)));
}

/* The candidate counter is at 0. */
static void captured(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	struct rock_sampler *s = &p->sampler;

	if (!reported(s, type)) {
		s->candidates = s->frequency;
		return;
	}
	s->waiting = true;
	rock_event(r, p, type, ROCK_SAMPLER);
}

/* From a signal: what the interrupt tells of the instruction that it is at. */
void rock_sampler_candidates(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
			     uint64_t n)
{
	struct rock_sampler *s = &p->sampler;

	if (s->waiting)
		return;
	if (n < s->candidates) {
		s->candidates -= n;
		return;
	}
	s->candidates = 0;
	rock_sample_words(r, type, s->captured);
	captured(r, p, type);
}

/*
 * @n equal candidates whose sample registers would be @words. Each sample is served before the next
 * candidate: its owner may do anything to the sampler, or to whatever else the caller feeds, in
 * between. Returns how many were taken up.
 */
static uint64_t candidates(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
			   const uint64_t *words, uint64_t n)
{
	struct rock_sampler *s = &p->sampler;

	if (s->waiting)
		return n;
	if (n < s->candidates) {
		s->candidates -= n;
		return n;
	}
	n = s->candidates;
	s->candidates = 0;
	memcpy(s->captured, words, sizeof(s->captured));
	captured(r, p, type);
	return n;
}

/* ---- what happens on a strand ---- */

static bool privilege_counts(const struct rock_counter *c, enum quipu_rock_privilege privilege)
{
	static const uint8_t bit[] = {
		[QUIPU_ROCK_AT_USER] = QUIPU_ROCK_USER,
		[QUIPU_ROCK_AT_PRIV] = QUIPU_ROCK_PRIV,
		[QUIPU_ROCK_AT_HPRIV] = QUIPU_ROCK_HPRIV,
	};

	return c->running && (c->filter & bit[privilege]);
}

void rock_cycles(struct quipu_rock *r, unsigned strand, enum quipu_rock_privilege privilege,
		 uint64_t n)
{
	struct rock_pair *p = rock_pair_of(r, strand, TYPE_CYC);

	if (privilege_counts(&p->counter, privilege) && covers(p->counter.source, p->owner, strand))
		rock_counter_add(r, p, TYPE_CYC, n);
}

void quipu_rock_cycles(struct quipu_rock *r, unsigned strand, enum quipu_rock_privilege privilege,
		       uint64_t n)
{
	if (strand >= r->nstrands || (unsigned)privilege > QUIPU_ROCK_AT_HPRIV)
		return;
	rock_cycles(r, strand, privilege, n);
	rock_deliver(r);
}

static uint64_t info_word(const struct quipu_rock_instr *i)
{
	static const struct {
		uint16_t evt;
		uint8_t typ;
	} only_for[] = {
		{QUIPU_ROCK_EVT_DCACHE_MISS | QUIPU_ROCK_EVT_PRIOR_MISS |
			 QUIPU_ROCK_EVT_LOADBUF_FULL | QUIPU_ROCK_EVT_BYPASS_RAW |
			 QUIPU_ROCK_EVT_NONBYPASS_RAW,
		 QUIPU_ROCK_TYP_LOAD},
		{QUIPU_ROCK_EVT_STOREBUF_FULL, QUIPU_ROCK_TYP_STORE},
		{QUIPU_ROCK_EVT_DTLB_MISS, QUIPU_ROCK_TYP_LOAD | QUIPU_ROCK_TYP_STORE},
		{QUIPU_ROCK_EVT_CORRECT_PREDICT | QUIPU_ROCK_EVT_TAKEN, QUIPU_ROCK_TYP_CTI},
	};
	uint64_t evt = i->evt & 0xfff;

	for (size_t k = 0; k < sizeof(only_for) / sizeof(only_for[0]); k++)
		if (!(i->typ & only_for[k].typ))
			evt &= ~(uint64_t)only_for[k].evt;
	return (i->typ & 0x7f) | evt << 7 | (uint64_t)(i->mode & 7) << 34;
}

static bool instr_admitted(const struct rock_sampler *s, const struct quipu_rock_instr *i)
{
	uint64_t filter = s->config[IS_CONTEXT_FILTER];

	return (filter >> i->privilege & 1) && (filter >> (i->tl ? 4 : 3) & 1);
}

void rock_instr_words(unsigned strand, const struct quipu_rock_instr *i, uint64_t words[REGS_MAX])
{
	words[IS_INFO] = info_word(i);
	words[IS_CONTEXT] = i->privilege | (uint64_t)(i->tl & 7) << 2 | (uint64_t)i->context << 16;
	words[IS_PC] = i->pc;
	words[IS_EA] = i->ea;
	words[IS_LATENCY] = (i->latency > 0xfff ? 0xfffu : i->latency) | (uint64_t)(strand % 256)
										 << 16;
}

void quipu_rock_instr(struct quipu_rock *r, unsigned strand, const struct quipu_rock_instr *i,
		      uint64_t n)
{
	struct rock_pair *p;
	uint64_t words[REGS_MAX] = {0};

	rock_instr_words(strand, i, words);
	if (strand >= r->nstrands || i->privilege > QUIPU_ROCK_AT_HPRIV)
		return;
	p = rock_pair_of(r, strand, TYPE_INSTR);
	while (n) {
		const struct rock_sampler *s = &p->sampler;
		uint64_t step = n;

		if (s->running && covers(s->source, p->owner, strand) && instr_admitted(s, i))
			step = candidates(r, p, TYPE_INSTR, words, n);
		if (privilege_counts(&p->counter, (enum quipu_rock_privilege)i->privilege) &&
		    covers(p->counter.source, p->owner, strand))
			rock_counter_add(r, p, TYPE_INSTR, step);
		n -= step;
		rock_deliver(r);
	}
}

/*
 * Requests of strands are covered as everything else; those of the SIU and the MMU by their own
 * source bits.
 */
static bool covers_request(unsigned source, int owner, unsigned strand, unsigned requester)
{
	return requester == RK_PERF_SRC_STRAND ? covers(source, owner, strand)
					       : (source & requester) != 0;
}

static bool l2_admitted(const struct rock_sampler *s, const struct quipu_rock_l2 *t)
{
	uint64_t filter = s->config[TX_FILTER];

	return (filter >> (3 + t->type) & 1) && (filter >> (t->evt ? 11 : 10) & 1);
}

void rock_l2_words(const struct quipu_rock_l2 *t, uint64_t words[REGS_MAX])
{
	words[TX_INFO] = bits_one(7 + (t->type & 7)) | (uint64_t)(t->evt & 0xf) << 22 |
			 (uint64_t)(t->source & 3) << 34;
	words[TX_EA] = t->ea;
}

void quipu_rock_l2(struct quipu_rock *r, unsigned strand, const struct quipu_rock_l2 *t, uint64_t n)
{
	struct rock_pair *p;
	uint64_t words[REGS_MAX] = {0};

	rock_l2_words(t, words);
	if (strand >= r->nstrands || t->type >= QUIPU_ROCK_L2_TYPES ||
	    (t->requester != RK_PERF_SRC_STRAND && t->requester != RK_PERF_SRC_SIU &&
	     t->requester != RK_PERF_SRC_MMU))
		return;
	p = rock_pair_of(r, strand, TYPE_L2);
	while (n) {
		const struct rock_sampler *s = &p->sampler;
		const struct rock_counter *c = &p->counter;
		uint64_t step = n;

		if (s->running && covers_request(s->source, p->owner, strand, t->requester) &&
		    l2_admitted(s, t))
			step = candidates(r, p, TYPE_L2, words, n);
		if (c->running && covers_request(c->source, p->owner, strand, t->requester) &&
		    (c->filter >> t->type & 1))
			rock_counter_add(r, p, TYPE_L2, step);
		n -= step;
		rock_deliver(r);
	}
}

/* One bit of each group must be set: outcome {0,1}, side {3,4}, kind of address {5,6}. */
static bool mmu_matches(uint64_t filter, uint64_t info)
{
	return (filter & info & 0x03) && (filter & info & 0x18) && (filter & info & 0x60);
}

void rock_mmu_words(const struct quipu_rock_mmu *m, uint64_t words[REGS_MAX])
{
	words[TX_INFO] = (m->hit ? 0x01u : 0x02u) | (m->instruction ? 0x10u : 0x08u) |
			 (m->real ? 0x40u : 0x20u);
	words[TX_EA] = m->ea;
}

void quipu_rock_mmu(struct quipu_rock *r, unsigned strand, const struct quipu_rock_mmu *m,
		    uint64_t n)
{
	struct rock_pair *p;
	uint64_t words[REGS_MAX] = {0};

	rock_mmu_words(m, words);
	if (strand >= r->nstrands)
		return;
	p = rock_pair_of(r, strand, TYPE_MMU);
	while (n) {
		const struct rock_sampler *s = &p->sampler;
		const struct rock_counter *c = &p->counter;
		uint64_t step = n;

		if (s->running && covers(s->source, p->owner, strand) &&
		    mmu_matches(s->config[TX_FILTER], words[TX_INFO]))
			step = candidates(r, p, TYPE_MMU, words, n);
		if (c->running && covers(c->source, p->owner, strand) &&
		    mmu_matches(c->filter, words[TX_INFO]))
			rock_counter_add(r, p, TYPE_MMU, step);
		n -= step;
		rock_deliver(r);
	}
}

void quipu_rock_mcc(struct quipu_rock *r, unsigned strand, unsigned code, uint64_t n)
{
	struct rock_pair *p;
	enum rock_type type;
	unsigned source;
	uint64_t before;

	if (strand >= r->nstrands || !rock_type_decode(code, false, &type, &source) || source ||
	    !rock_type_sod(type))
		return;
	p = rock_pair_of(r, strand, type);
	if (!p->counter.running || !covers(p->counter.source, p->owner, strand)) {
		r->strand[strand].sod[type] += n;
		return;
	}
	before = rock_counter_value(r, p, type);
	r->strand[strand].sod[type] += n;
	wrapped(r, p, type, before + n < before);
	rock_deliver(r);
}
