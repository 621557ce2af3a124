/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collection engines of a core and of its threads, in accumulation mode: IMC sheet 3.4, 3.5
 * and 5.1.
 *
 * How many threads of a core run at a moment is not told by the engine that moves the signals; it
 * is taken that threads which ran between two looks began together (modelled, and right where they
 * are told of at each change). Sums are exact whatever the overlap.
 */
#include <string.h>

#include "platform/imc/hardware.h"

#define SHARES 840u /* divisible by 1 to 8 */

uint64_t imc_tb(uint64_t ns)
{
	return bits_muldiv(ns, 64, 125) + (ns % 125 * 64 % 125 * 2 >= 125); /* nearest */
}

uint64_t imc_signal(const struct quipu_imc *imc, unsigned cpu, quipu_signal signal)
{
	return imc->signals->ops->read(imc->signals, cpu, signal);
}

/* ---- what happened on a core since the last look ---- */

struct moved {
	unsigned cpu;
	uint64_t cycles, instructions;
};

/* Longest first. */
static void order(struct moved *m, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		struct moved x = m[i];
		unsigned k = i;

		for (; k && m[k - 1].cycles < x.cycles; k--)
			m[k] = m[k - 1];
		m[k] = x;
	}
}

/* @m ran together with others for @cycles while @k threads ran; @left: of its cycles, these
 * included. */
static void share(struct quipu_imc *imc, struct imc_core *core, struct moved *m, unsigned k,
		  uint64_t cycles, uint64_t left)
{
	struct imc_thread *t = &imc->thread[m->cpu];
	uint64_t instructions = left ? bits_muldiv(m->instructions, cycles, left) : m->instructions;

	m->instructions -= instructions;
	t->nk[k] += cycles;
	t->ik[k] += instructions;
	t->shared += cycles * (SHARES / k);
	core->ik[k] += instructions;
}

static void enter_mode(struct imc_core *core, unsigned running)
{
	unsigned mode = running <= 1 ? 0 : running == 2 ? 1 : 2;

	if (mode != core->mode_now)
		core->switches++;
	core->mode_now = mode;
}

/* Threads that ran @m[].cycles each, all from the same moment: first all run, then fewer and fewer.
 */
static void overlap(struct quipu_imc *imc, struct imc_core *core, struct moved *m, unsigned n)
{
	uint64_t done = 0;

	for (unsigned k = n; k > 0; k--) {
		uint64_t cycles = m[k - 1].cycles - done;

		if (cycles) {
			core->nk[k] += cycles;
			enter_mode(core, k);
			core->mode[core->mode_now] += cycles;
		}
		for (unsigned i = 0; i < k; i++)
			share(imc, core, &m[i], k, cycles, m[i].cycles - done);
		done = m[k - 1].cycles;
	}
}

void imc_core_observe(struct quipu_imc *imc, struct imc_core *core, uint64_t now_ns)
{
	struct moved moved[IMC_MAX_THREADS];
	uint64_t clock = bits_muldiv(now_ns, imc->machine->hz, 1000000000), idle;
	unsigned n = 0;

	for (unsigned i = 0; i < core->nthreads; i++) {
		unsigned cpu = core->cpu[i];
		struct imc_thread *t = &imc->thread[cpu];
		uint64_t cycles = imc_signal(imc, cpu, QUIPU_SIGNAL_CYCLES);
		uint64_t instructions = imc_signal(imc, cpu, QUIPU_SIGNAL_INSTRUCTIONS);

		if (cycles == t->cycles && instructions == t->instructions)
			continue;
		moved[n++] =
			(struct moved){cpu, cycles - t->cycles, instructions - t->instructions};
		t->cycles = cycles;
		t->instructions = instructions;
	}
	order(moved, n);
	overlap(imc, core, moved, n);
	/* A thread can be a cycle ahead of the clock, which is told in ns. */
	idle = clock - core->clock;
	if (clock < core->clock || (n && idle < moved[0].cycles))
		idle = n ? moved[0].cycles : 0;
	core->clock += idle;
	idle -= n ? moved[0].cycles : 0;
	core->nk[0] += idle;
	core->mode[core->mode_now] += idle;
}

/* ---- values of sources ---- */

static uint64_t ticks(const struct quipu_imc *imc, uint64_t cycles)
{
	return bits_muldiv(cycles, IMC_TB_HZ / 16, imc->machine->hz);
}

static uint64_t sum(const uint64_t *v, unsigned first, unsigned last, bool weighted)
{
	uint64_t s = 0;

	for (unsigned i = first; i <= last; i++)
		s += weighted ? i * v[i] : v[i];
	return s;
}

static uint64_t in_mode(const uint64_t *nk, unsigned mode)
{
	return mode < 2 ? nk[mode + 1] : sum(nk, 3, IMC_MAX_THREADS, false);
}

/* Sources that are made of signals alone: the same for a thread and, added up, for a core. */
static uint64_t made_of(const struct quipu_imc *imc, unsigned cpu, const struct imc_source *s)
{
	const struct quipu_model *m = &imc->model;

	switch (s->kind) {
	case IMC_SIGNAL: return imc_signal(imc, cpu, s->signal);
	case IMC_STALLED:
		return imc_signal(imc, cpu, QUIPU_SIGNAL_CYCLES) -
		       imc_signal(imc, cpu, QUIPU_SIGNAL_INSTRUCTIONS);
	case IMC_OWN_CACHES:
		return imc_signal(imc, cpu, QUIPU_SIGNAL_L1I_MISSES) +
		       imc_signal(imc, cpu, QUIPU_SIGNAL_L1D_READ_MISSES) +
		       imc_signal(imc, cpu, QUIPU_SIGNAL_L1D_WRITE_MISSES) -
		       imc_signal(imc, cpu, QUIPU_SIGNAL_MEM_READ_LINES);
	case IMC_WALK_CYCLES: return imc_signal(imc, cpu, QUIPU_SIGNAL_DATA_WALKS) * m->walk;
	case IMC_FETCH_CYCLES:
		return imc_signal(imc, cpu, QUIPU_SIGNAL_FETCHES_FROM_L2) * m->l2.latency +
		       imc_signal(imc, cpu, QUIPU_SIGNAL_FETCHES_FROM_L3) * m->l3.latency +
		       imc_signal(imc, cpu, QUIPU_SIGNAL_FETCHES_FROM_MEMORY) * m->memory;
	default: return 0;
	}
}

uint64_t imc_thread_value(const struct quipu_imc *imc, unsigned cpu, const struct imc_source *s)
{
	const struct imc_thread *t = &imc->thread[cpu];
	const struct imc_core *core = &imc->core[imc->core_of[cpu]];

	switch (s->kind) {
	case IMC_SIGNAL:
	case IMC_STALLED:
	case IMC_OWN_CACHES:
	case IMC_WALK_CYCLES:
	case IMC_FETCH_CYCLES: return made_of(imc, cpu, s);
	case IMC_CC:
	case IMC_TC:
	case IMC_RC:
	case IMC_NANY: return imc_signal(imc, cpu, QUIPU_SIGNAL_CYCLES);
	case IMC_T32: return ticks(imc, imc_signal(imc, cpu, QUIPU_SIGNAL_CYCLES));
	case IMC_NK: return s->arg ? t->nk[s->arg] : 0;
	case IMC_NALL: return t->nk[core->nthreads];
	case IMC_IK: return t->ik[s->arg];
	case IMC_PURR: return bits_muldiv(t->shared, IMC_TB_HZ, SHARES * imc->machine->hz);
	case IMC_SMT: return ticks(imc, in_mode(t->nk, s->arg));
	case IMC_SWITCHES: return core->switches;
	default: return 0;
	}
}

static uint64_t core_value(const struct quipu_imc *imc, const struct imc_core *core,
			   const struct imc_cell *k)
{
	bool user = k->mode == IMC_USER;
	uint64_t busy = sum(core->nk, 1, IMC_MAX_THREADS, false),
		 run = sum(core->nk, 1, IMC_MAX_THREADS, true), v = 0;

	switch (k->source->kind) {
	case IMC_SIGNAL:
	case IMC_STALLED:
	case IMC_OWN_CACHES:
	case IMC_WALK_CYCLES:
	case IMC_FETCH_CYCLES:
		for (unsigned i = 0; i < core->nthreads; i++)
			v += made_of(imc, core->cpu[i], k->source);
		return v;
	case IMC_CC: return user ? busy : core->clock;
	case IMC_TC: return user ? run : core->nthreads * core->clock;
	case IMC_RC: return run;
	case IMC_T32: return ticks(imc, user ? busy : core->clock);
	case IMC_IDL: return ticks(imc, core->nthreads * core->clock - run);
	case IMC_NK: return core->nk[k->source->arg];
	case IMC_NANY: return busy;
	case IMC_NALL: return core->nk[core->nthreads];
	case IMC_IK: return core->ik[k->source->arg];
	case IMC_PURR: return bits_muldiv(busy, IMC_TB_HZ, imc->machine->hz);
	case IMC_SMT:
		return ticks(imc,
			     user ? in_mode(core->nk, k->source->arg) : core->mode[k->source->arg]);
	case IMC_SWITCHES: return core->switches;
	default: return 0;
	}
}

/* ---- posting ---- */

static bool engine_on(const struct imc_core *core)
{
	return core->htm_mode & QUIPU_HTM_ENABLED;
}

/* What moved since the last look becomes pending (@count) or is none of this engine's business. */
static void settle(struct imc_counter *c, uint64_t value, bool count)
{
	if (count)
		c->pending += value - c->seen;
	c->seen = value;
}

static void put(struct quipu_imc *imc, uint64_t base, const struct imc_cell *k,
		struct imc_counter *c)
{
	uint64_t whole = c->pending / k->divisor, at = base + k->offset;

	if (whole && imc_store(imc, at, imc_load(imc, at) + whole))
		c->pending -= whole * k->divisor;
}

static void settle_core(struct quipu_imc *imc, struct imc_core *core, bool count)
{
	for (unsigned i = 0; i < imc->core_cells.n; i++)
		settle(&core->counter[i], core_value(imc, core, &imc->core_cells.cell[i]), count);
}

static void settle_thread(struct quipu_imc *imc, unsigned cpu, bool count)
{
	struct imc_thread *t = &imc->thread[cpu];

	for (unsigned i = 0; i < imc->thread_cells.n; i++)
		settle(&t->counter[i], imc_thread_value(imc, cpu, imc->thread_cells.cell[i].source),
		       count);
}

static void post_core(struct quipu_imc *imc, struct imc_core *core)
{
	settle_core(imc, core, true);
	for (unsigned i = 0; i < imc->core_cells.n; i++)
		put(imc, core->pdbar & QUIPU_IMC_ADDRESS, &imc->core_cells.cell[i],
		    &core->counter[i]);
}

static void post_thread(struct quipu_imc *imc, unsigned cpu)
{
	struct imc_thread *t = &imc->thread[cpu];

	settle_thread(imc, cpu, true);
	for (unsigned i = 0; i < imc->thread_cells.n; i++)
		put(imc, t->ldbar & QUIPU_IMC_ADDRESS, &imc->thread_cells.cell[i], &t->counter[i]);
}

/* The next posting is due a whole number of periods after the engine was switched on. */
static bool due(uint64_t *posted, uint64_t tb, bool all)
{
	if (tb - *posted >= IMC_POST_TB) {
		*posted += (tb - *posted) / IMC_POST_TB * IMC_POST_TB;
		return true;
	}
	return all;
}

void imc_core_post(struct quipu_imc *imc, struct imc_core *core, uint64_t tb, bool every)
{
	if (!engine_on(core))
		return;
	if (due(&core->posted_tb, tb, every))
		post_core(imc, core);
	for (unsigned i = 0; i < core->nthreads; i++) {
		struct imc_thread *t = &imc->thread[core->cpu[i]];

		if (t->counting && due(&t->posted_tb, tb, every))
			post_thread(imc, core->cpu[i]);
	}
}

/* ---- on and off ---- */

/* LDBAR and the engine together say what a thread does. */
static void thread_begin(struct quipu_imc *imc, unsigned cpu, bool on, uint64_t tb)
{
	struct imc_thread *t = &imc->thread[cpu];
	bool trace = t->ldbar & QUIPU_LDBAR_TRACE,
	     counting = on && !trace && (t->ldbar & QUIPU_LDBAR_ENABLE);

	if (counting && !t->counting) {
		settle_thread(imc, cpu, false);
		t->posted_tb = tb;
	}
	t->counting = counting;
}

static void thread_end(struct quipu_imc *imc, unsigned cpu)
{
	if (imc->thread[cpu].counting)
		post_thread(imc, cpu);
	imc->thread[cpu].counting = false;
}

void imc_core_set_htm(struct quipu_imc *imc, struct imc_core *core, uint64_t value)
{
	bool was = engine_on(core), on = value & QUIPU_HTM_ENABLED;
	uint64_t tb = imc_tb(imc->now(imc->arg));

	if (was && !on) {
		post_core(imc, core);
		for (unsigned i = 0; i < core->nthreads; i++)
			thread_end(imc, core->cpu[i]);
	}
	core->htm_mode = value;
	if (was == on)
		return;
	if (on) {
		settle_core(imc, core, false);
		core->posted_tb = tb;
	}
	for (unsigned i = 0; i < core->nthreads; i++) {
		struct imc_thread *t = &imc->thread[core->cpu[i]];

		t->since_instructions = imc_signal(imc, core->cpu[i], QUIPU_SIGNAL_INSTRUCTIONS);
		t->since_cycles = imc_signal(imc, core->cpu[i], QUIPU_SIGNAL_CYCLES);
		thread_begin(imc, core->cpu[i], on, tb);
		if (on)
			imc_trace_load(imc, core->cpu[i]);
		else
			imc_trace_stop(imc, core->cpu[i]);
	}
}

void imc_thread_set_ldbar(struct quipu_imc *imc, unsigned cpu, uint64_t value)
{
	struct imc_thread *t = &imc->thread[cpu];
	const struct imc_core *core = &imc->core[imc->core_of[cpu]];

	thread_end(imc, cpu);
	imc_trace_stop(imc, cpu);
	t->ldbar = value;
	thread_begin(imc, cpu, engine_on(core), imc_tb(imc->now(imc->arg)));
	if (!(value & QUIPU_LDBAR_TRACE))
		return;
	t->trace_index = 0;
	imc_trace_load(imc, cpu);
}
