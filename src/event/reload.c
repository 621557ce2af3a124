/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The period arithmetic of a sampling event (quipu/reload.h). Follows the perf ABI sheet A13
 * (set_period) and A14 (frequency step), RISC-V sheet 5.5.
 *
 * Linked into the engine process as well as into the core: no allocation, no call out of this file,
 * no state but the caller's. It neither stops nor starts a counter; that is the caller's part when
 * true is returned.
 *
 * One difference from Linux: there last_period is the period just programmed, here the one just
 * completed. In the steady state they are equal. While the period of a frequency event still grows
 * from 1, Linux is saved by the microseconds that a real interrupt takes; a modelled one takes no
 * time, and dividing the next period by the time of the last one would throw the period to
 * billions.
 */
#include <quipu/reload.h>

#define NSEC_PER_SEC UINT64_C(1000000000)

/* Room for the rounding of the low-pass filter below, so that no sum leaves the signed range. */
#define PERIOD_MAX (INT64_MAX - 8)

void quipu_reload_fold(struct quipu_reload *r, uint64_t delta)
{
	r->period_left = (int64_t)((uint64_t)r->period_left - delta);
	r->programmed -= delta;
}

bool quipu_reload_set_period(struct quipu_reload *r)
{
	/* Wide, because a counting event has period 2^63 - 1 and may have run past it. */
	__int128 left = r->period_left;
	__int128 period = (__int128)r->sample_period;
	bool used = false;

	if (left <= -period) {
		left = period; /* more than one whole period late: start afresh */
		used = true;
	} else if (left <= 0) {
		left += period;
		used = true;
	}
	if (used) {
		r->period_left = (int64_t)left;
		r->last_period = r->current ? r->current : r->sample_period;
	}
	if (used || !r->current)
		r->current = r->sample_period;
	if (r->max_left && left > (__int128)r->max_left)
		left = (__int128)r->max_left;
	r->programmed = (uint64_t)left;
	return used;
}

/* The period with which @count events in @nsec give @freq samples a second. */
static int64_t wanted_period(uint64_t nsec, uint64_t count, uint64_t freq)
{
	unsigned __int128 dividend = (unsigned __int128)count * NSEC_PER_SEC;
	unsigned __int128 divisor = (unsigned __int128)nsec * freq;

	if (!divisor)
		return dividend > PERIOD_MAX ? PERIOD_MAX : (int64_t)dividend;
	/* Nearly always both fit a word, and this runs at every overflow: spare it the 128-bit
	 * division. */
	if (dividend <= UINT64_MAX && divisor <= UINT64_MAX)
		dividend = (uint64_t)dividend / (uint64_t)divisor;
	else
		dividend /= divisor;
	return dividend > PERIOD_MAX ? PERIOD_MAX : (int64_t)dividend;
}

bool quipu_reload_adjust(struct quipu_reload *r, uint64_t nsec, uint64_t count)
{
	int64_t delta = wanted_period(nsec, count, r->sample_freq) - (int64_t)r->sample_period;
	int64_t period;

	/* One eighth of the way, rounded away from zero: steady load converges, a single odd
	 * interval hardly matters. */
	delta = (delta >= 0 ? delta + 7 : delta - 7) / 8;
	period = (int64_t)r->sample_period + delta;
	if (period <= 0)
		period = 1;
	r->sample_period = (uint64_t)period;
	if (r->period_left <= (__int128)period * 8)
		return false;
	r->period_left = 0;
	return true;
}

bool quipu_reload_frequency(struct quipu_reload *r, uint64_t now)
{
	uint64_t last = r->last_time;

	if (!r->sample_freq)
		return false;
	r->last_time = now;
	/* Farther apart than two ticks the tick steers better than two overflows do. */
	if (!last || now <= last || now - last >= 2 * r->tick_ns)
		return false;
	return quipu_reload_adjust(r, now - last, r->last_period);
}

uint64_t quipu_reload_overflow(struct quipu_reload *r, uint64_t now)
{
	quipu_reload_fold(r, r->programmed);
	/* Where the core steers, the driver's start programs the counter once more. */
	if (quipu_reload_set_period(r) && quipu_reload_frequency(r, now)) {
		r->period_left = 0;
		quipu_reload_set_period(r);
	}
	return r->programmed;
}

bool quipu_reload_tick(struct quipu_reload *r, uint64_t elapsed, uint64_t count)
{
	uint64_t left;

	quipu_reload_fold(r, elapsed);
	left = r->programmed;
	if (count)
		quipu_reload_adjust(r, r->tick_ns, count);
	quipu_reload_set_period(r);
	return r->programmed == left;
}

uint64_t quipu_reload_turn(uint64_t turn, uint64_t step, uint64_t per)
{
	unsigned __int128 product = (unsigned __int128)turn * step;

	return per ? (uint64_t)((product + per - 1) / per) : (uint64_t)product;
}

uint64_t quipu_reload_steady(struct quipu_reload *r, uint64_t now)
{
	uint64_t at = quipu_reload_turn(r->freq_count, r->sample_period, r->sample_freq);

	(void)now;
	return quipu_reload_turn(++r->freq_count, r->sample_period, r->sample_freq) - at;
}
