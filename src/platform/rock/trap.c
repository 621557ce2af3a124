// SPDX-License-Identifier: BSD-2-Clause
/*
 * The performance event trap and what follows it. FWARC/2008/399 section 4: one strand of each chip
 * takes the trap, finds event and responsible strand and cross-calls it; that strand restarts
 * counting or sampling and only then informs the guest, samples being in the guest's ring by then.
 * Order and details: Rock sheet sections 6.4 and 7.
 *
 * The ring is the guest's memory: each touch of it is validated first, and nothing of the
 * hypervisor's own (tail, size) is read back from it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "platform/rock/chip.h"

void rock_trace(struct quipu_rock *r, const char *fmt, ...)
{
	char line[200];
	va_list ap;

	if (!r->trace)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	r->trace(r->trace_arg, line);
}

static const char *kind_name(enum rock_kind kind)
{
	return kind == ROCK_COUNTER ? "counter" : "sampler";
}

/* ---- ring ---- */

static void put32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

/* Did the step from @old to @next reach or pass @hwm? */
static bool passed(const struct rock_sampler *s, uint32_t old, uint32_t next, uint64_t hwm)
{
	uint32_t step = next > old ? next - old : next + s->size - old, to;

	if (hwm >= s->size)
		hwm -= s->size;
	if (hwm >= s->size)
		return false; /* nowhere in the ring */
	to = (uint32_t)hwm > old ? (uint32_t)hwm - old : (uint32_t)hwm + s->size - old;
	return to <= step;
}

/* Put the captured sample into the ring. Does the guest want to be told? */
static bool produce(struct quipu_rock *r, struct rock_pair *p, enum rock_type type)
{
	struct rock_sampler *s = &p->sampler;
	unsigned guest = r->strand[p->owner].guest;
	uint8_t *ring =
		quipu_rock_memory(r, guest, s->ring, QUIPU_ROCK_RING_DATA + (uint64_t)s->size);
	uint32_t bytes = 8 * s->nlist, next = s->tail + bytes, old = s->tail;

	if (!ring) {
		rock_trace(r,
			   "strand %d: sampler %s: its ring at 0x%" PRIx64
			   " is no memory of guest %u any longer; stopped",
			   p->owner, rock_type_name(type), s->ring, guest);
		rock_sampler_stop(r, p, type);
		return false;
	}
	if (next >= s->size)
		next = 0;
	if (next == bits_be32(ring + QUIPU_ROCK_RING_HEAD)) {
		bool first = !s->full;

		s->dropped++;
		s->full = true;
		rock_trace(r, "strand %d: sampler %s: ring full, sample dropped", p->owner,
			   rock_type_name(type));
		return first;
	}
	s->full = false;
	for (unsigned i = 0; i < s->nlist; i++)
		put64(ring + QUIPU_ROCK_RING_DATA + old + 8 * i, s->captured[s->list[i]]);
	s->tail = next;
	s->pending++;
	put32(ring + QUIPU_ROCK_RING_TAIL, next);
	rock_trace(r, "strand %d: sampler %s: element at %u, tail %u", p->owner,
		   rock_type_name(type), old, next);
	return passed(s, old, next, bits_be32(ring + QUIPU_ROCK_RING_HWM));
}

/* ---- the owner strand ---- */

static void charge(struct quipu_rock *r, unsigned strand, unsigned cycles)
{
	if (cycles)
		rock_cycles(r, strand, QUIPU_ROCK_AT_HPRIV, cycles);
}

/* One cross-call. Restart first, then the cause for the guest. */
static void serve(struct quipu_rock *r, unsigned strand, enum rock_type type, enum rock_kind kind)
{
	struct rock_pair *p = rock_pair_of(r, strand, type);
	bool tell = true;

	if (p->owner != (int)strand || !(kind == ROCK_COUNTER ? p->counter.init : p->sampler.init))
		return;
	if (kind == ROCK_COUNTER) {
		p->counter.overflows += p->counter.wraps;
		rock_trace(r,
			   "strand %u: counter %s: overflow +%" PRIu64
			   ", counts on from 0x%" PRIx64,
			   strand, rock_type_name(type), p->counter.wraps, p->counter.value);
		p->counter.wraps = 0;
	} else {
		tell = p->sampler.waiting && produce(r, p, type);
		if (p->sampler.running) {
			rock_sampler_restart(r, p, type);
			rock_trace(r,
				   "strand %u: sampler %s: restarted, %" PRIu64 " candidates to go",
				   strand, rock_type_name(type), p->sampler.candidates);
		}
	}
	charge(r, strand, r->config.owner_cycles);
	if (tell)
		r->strand[strand].causes[kind] |= (uint8_t)bits_one(type);
}

static bool answer_calls(struct quipu_rock *r, unsigned strand)
{
	struct rock_strand *s = &r->strand[strand];
	bool any = false;

	for (unsigned kind = 0; kind < ROCK_KINDS; kind++)
		while (s->calls[kind]) {
			unsigned type = bits_low(s->calls[kind]);

			s->calls[kind] &= (uint8_t)(s->calls[kind] - 1);
			serve(r, strand, (enum rock_type)type, (enum rock_kind)kind);
			any = true;
		}
	return any;
}

/* ---- the trap-handling strand ---- */

void rock_event(struct quipu_rock *r, struct rock_pair *p, enum rock_type type, enum rock_kind kind)
{
	r->chip[(unsigned)p->owner / STRANDS].pending[kind] |= (uint8_t)bits_one(type);
	r->attention = true;
}

void rock_forget(struct quipu_rock *r, struct rock_pair *p, enum rock_type type,
		 enum rock_kind kind)
{
	uint8_t keep = (uint8_t)~bits_one(type);

	if (p->owner == NO_STRAND)
		return;
	r->chip[(unsigned)p->owner / STRANDS].pending[kind] &= keep;
	r->strand[p->owner].calls[kind] &= keep;
	r->strand[p->owner].causes[kind] &= keep;
}

/* The lowest-numbered strand that belongs to a guest; a chip with an event has one: the owner. */
static unsigned trap_strand(const struct quipu_rock *r, unsigned chip)
{
	unsigned s = chip * STRANDS;

	while (s < (chip + 1) * STRANDS - 1 && !r->strand[s].guest)
		s++;
	return s;
}

static bool take_trap(struct quipu_rock *r, unsigned chip)
{
	struct rock_chip *c = &r->chip[chip];
	unsigned handler = trap_strand(r, chip);

	if (!c->pending[ROCK_COUNTER] && !c->pending[ROCK_SAMPLER])
		return false;
	for (unsigned kind = 0; kind < ROCK_KINDS; kind++)
		while (c->pending[kind]) {
			unsigned type = bits_low(c->pending[kind]);
			int owner = c->pair[type].owner;

			c->pending[kind] &= (uint8_t)(c->pending[kind] - 1);
			if (owner == NO_STRAND)
				continue;
			rock_trace(r,
				   "strand %u: performance event trap of chip %u: %s %s, "
				   "responsible strand %d%s",
				   handler, chip, kind_name((enum rock_kind)kind),
				   rock_type_name((enum rock_type)type), owner,
				   owner == (int)handler ? "" : ", cross-call");
			charge(r, handler, r->config.trap_cycles);
			r->strand[owner].calls[kind] |= (uint8_t)bits_one(type);
		}
	return true;
}

/* ---- the guest ---- */

static bool pending_interrupt(const struct rock_strand *s)
{
	return s->causes[ROCK_COUNTER] || s->causes[ROCK_SAMPLER];
}

static void inform(struct quipu_rock *r, unsigned strand)
{
	struct rock_strand *s = &r->strand[strand];

	while (r->handler && !s->in_handler && pending_interrupt(s)) {
		bool here = r->irq && s->signals && r->irq->cpu == s->cpu;

		s->causes[ROCK_COUNTER] = s->causes[ROCK_SAMPLER] = 0;
		s->in_handler = true;
		rock_trace(r, "strand %u: interrupt level 15 (pic overflow) of guest %u", strand,
			   s->guest);
		r->handler(r->handler_arg, strand, here ? r->irq : NULL);
		s->in_handler = false;
	}
}

void rock_deliver(struct quipu_rock *r)
{
	bool again = true;

	if (!r->attention || r->delivering || r->held)
		return;
	r->attention = false;
	r->delivering = true;
	while (again) {
		again = false;
		for (unsigned c = 0; c < r->config.chips; c++)
			again |= take_trap(r, c);
		for (unsigned s = 0; again && s < r->nstrands; s++)
			answer_calls(r, s);
	}
	r->delivering = false;
	for (unsigned s = 0; s < r->nstrands; s++)
		inform(r, s);
	for (unsigned s = 0; s < r->nstrands; s++)
		r->attention |= pending_interrupt(&r->strand[s]);
}

void quipu_rock_set_handler(struct quipu_rock *r, quipu_rock_handler *fn, void *arg)
{
	r->handler = fn;
	r->handler_arg = arg;
}

bool quipu_rock_softint(const struct quipu_rock *r, unsigned strand)
{
	return strand < r->nstrands && pending_interrupt(&r->strand[strand]);
}

void quipu_rock_clear_softint(struct quipu_rock *r, unsigned strand)
{
	if (strand < r->nstrands)
		r->strand[strand].causes[ROCK_COUNTER] = r->strand[strand].causes[ROCK_SAMPLER] = 0;
}

void quipu_rock_hold(struct quipu_rock *r, bool hold)
{
	r->held = hold;
	rock_deliver(r);
}
