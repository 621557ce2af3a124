/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The period arithmetic of a sampling event: what a driver writes into a counter after an overflow.
 *
 * Linux 6.12 kernel/events/core.c (perf_adjust_period, the swevent and hardware set_period
 * pattern); specs: perf ABI sheet A13, A14 and RISC-V sheet 5.5. Pure arithmetic on model time with
 * no allocation, because it runs twice: in the engine process, where the overflow happens, and in
 * the machine, where the driver's handler replays it. Both must come to the same value.
 */
#ifndef QUIPU_RELOAD_H
#define QUIPU_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

struct quipu_reload {
	uint64_t sample_period; /* current period, in counts of the event */
	int64_t period_left;	/* counts to go until the next sample */
	uint64_t last_period;	/* period that the sample just taken completed */
	uint64_t current;	/* period that the counter is in now; 0: not programmed yet */
	uint64_t sample_freq;	/* samples a second of model time; 0: fixed period */
	uint64_t last_time;	/* ns, time of the last overflow (frequency mode); 0: none yet */
	uint64_t freq_count;	/* event count at the last tick (frequency mode) */
	uint64_t max_left;	/* the driver's clamp: most counts it programs ahead */
	uint64_t tick_ns;	/* length of the core's tick */
	uint64_t programmed;	/* counts from the last fold to the counter's overflow */
};

/* quipu_reload_fold - the counter moved by @delta since it was programmed or folded last. */
void quipu_reload_fold(struct quipu_reload *r, uint64_t delta);

/*
 * quipu_reload_set_period - what every driver does before it writes a counter: if the period is
 * used up take the next, clamp. @r->programmed is then the distance to program. Returns true when a
 * period was used up (a sample is due).
 */
bool quipu_reload_set_period(struct quipu_reload *r);

/*
 * quipu_reload_adjust - frequency mode: steer sample_period so that @count events in @nsec give
 * sample_freq. Returns true when the driver must reprogram the counter at once (period_left was
 * more than eight new periods; it is then 0).
 */
bool quipu_reload_adjust(struct quipu_reload *r, uint64_t nsec, uint64_t count);

/*
 * quipu_reload_frequency - the frequency step of the core's overflow path (A14 step 2) at time @now
 * ns. Returns as quipu_reload_adjust.
 */
bool quipu_reload_frequency(struct quipu_reload *r, uint64_t now);

/*
 * quipu_reload_overflow - what the handler of a driver makes of @r that folds, sets the period and
 * lets the core steer it: the counter has just overflowed, with no skid, at @now ns. Returns the
 * counts to its next overflow.
 */
uint64_t quipu_reload_overflow(struct quipu_reload *r, uint64_t now);

/*
 * quipu_reload_tick - what the core's tick makes of a frequency event (A14, "every tick"; the
 * driver folds and programs again): the counter moved by @elapsed since the last fold, the event
 * counted @count since the last tick. Returns true when the counter overflows where it would have
 * without the tick; else it must be programmed anew, and @r says with what.
 */
bool quipu_reload_tick(struct quipu_reload *r, uint64_t elapsed, uint64_t count);

/*
 * quipu_reload_steady - a counter that hardware loads with the same value for ever, for hardware
 * that nobody interrupts: the distance from one overflow to the next. Of @r: sample_period and
 * sample_freq are the step as a fraction, freq_count the number of the overflow that was just
 * reached; it is counted on.
 */
uint64_t quipu_reload_steady(struct quipu_reload *r, uint64_t now);
/* quipu_reload_turn - where the @turn-th of such overflows lies: ceil(turn * step / per). */
uint64_t quipu_reload_turn(uint64_t turn, uint64_t step, uint64_t per);

#endif
