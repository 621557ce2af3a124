// SPDX-License-Identifier: BSD-2-Clause
/*
 * What takes time in a unit: its clock, and how long requests and memory reads stay inside. Nothing
 * here decides what is looked up or read; the occupancy events of Table 49 follow from the number
 * of reads.
 *
 * Functional timing: a hit costs one clock, a walk its reads one after the other, nothing ever
 * waits. Queued timing: reads wait for one of max-outstanding slots, walks for a walker,
 * translation completions for a credit.
 */
#include <string.h>

#include "unit.h"

#define NS_PER_S   UINT64_C(1000000000)
#define HIT_CLOCKS 1u

uint64_t vtd_clocks_at(const struct quipu_vtd *u, uint64_t ns)
{
	return bits_muldiv(ns, u->config.clock_hz, NS_PER_S);
}

void quipu_vtd_advance(struct quipu_vtd *u, uint64_t ns)
{
	uint64_t clocks;

	if (ns <= u->now_ns)
		return;
	clocks = vtd_clocks_at(u, ns);
	u->now_ns = ns;
	if (clocks > u->clocks) {
		uint64_t n = clocks - u->clocks;

		u->clocks = clocks;
		vtd_perfmon_count(u, EV_CLOCKS, n);
	}
}

void vtd_timing_reset(struct quipu_vtd *u)
{
	memset(&u->memory, 0, sizeof(u->memory));
	memset(&u->walkers, 0, sizeof(u->walkers));
	memset(&u->credits, 0, sizeof(u->credits));
	u->memory.n = u->config.max_outstanding;
	u->walkers.n = u->config.walkers;
	u->credits.n = u->config.ats_credits;
}

/*
 * Take a slot at @at or as soon as one is free, for @hold clocks. When it was taken. Of several
 * that are free by then it is the one freed last, so that the others stay free for requests that
 * are looked at later but came no later.
 */
static uint64_t take(struct vtd_slots *s, uint64_t at, uint64_t hold)
{
	unsigned best = 0;
	uint64_t start;

	for (unsigned i = 1; i < s->n; i++) {
		bool fits = s->free_at[i] <= at, best_fits = s->free_at[best] <= at;

		if (fits != best_fits ? fits : fits == (s->free_at[i] > s->free_at[best]))
			best = i;
	}
	start = s->free_at[best] > at ? s->free_at[best] : at;
	s->free_at[best] = start + hold;
	return start;
}

/* The walker is held until the last read is back, which is known only then. */
static unsigned earliest(const struct vtd_slots *s)
{
	unsigned first = 0;

	for (unsigned i = 1; i < s->n; i++)
		if (s->free_at[i] < s->free_at[first])
			first = i;
	return first;
}

static void queued(struct quipu_vtd *u, unsigned reads, bool walked, bool completion)
{
	uint64_t arrival = u->clocks, t = arrival, blocked = 0;
	unsigned walker = earliest(&u->walkers);
	bool walks = walked && reads;

	if (walks && u->walkers.free_at[walker] > t)
		t = u->walkers.free_at[walker];
	for (unsigned i = 0; i < reads; i++) {
		uint64_t start = take(&u->memory, t, u->config.mem_latency);

		blocked += start - t;
		t = start + u->config.mem_latency;
	}
	if (walks)
		u->walkers.free_at[walker] = t;
	if (!reads)
		t += HIT_CLOCKS;
	if (walks)
		vtd_tally_at(u, EV_PW_OCCUPANCY, t - arrival, NO_LEVEL, u->tally.at);
	if (blocked)
		vtd_tally_at(u, EV_MEM_BLOCKED, blocked, NO_LEVEL, u->tally.at);
	if (completion) {
		uint64_t out = take(&u->credits, t, u->config.ats_credit_clocks);

		if (out > t)
			vtd_tally_at(u, EV_ATS_BLOCKED, out - t, NO_LEVEL, u->tally.at);
		t = out;
	}
	vtd_tally_at(u, EV_TOTAL_OCCUPANCY, t - arrival, NO_LEVEL, u->tally.at);
}

void vtd_count_reads(struct quipu_vtd *u, unsigned reads)
{
	if (!reads)
		return;
	vtd_tally_at(u, EV_MRDS, reads, NO_LEVEL, u->tally.at);
	vtd_tally_at(u, EV_MEM_OCCUPANCY, (uint64_t)reads * u->config.mem_latency, NO_LEVEL,
		     u->tally.at);
}

void vtd_timing_walked(struct quipu_vtd *u, unsigned reads, bool walked, bool completion)
{
	uint64_t busy = (uint64_t)reads * u->config.mem_latency;

	vtd_count_reads(u, reads);
	if (u->config.queued) {
		queued(u, reads, walked, completion);
		return;
	}
	if (reads && walked && busy)
		vtd_tally_at(u, EV_PW_OCCUPANCY, busy, NO_LEVEL, u->tally.at);
	vtd_tally_at(u, EV_TOTAL_OCCUPANCY, busy ? busy : HIT_CLOCKS, NO_LEVEL, u->tally.at);
}
