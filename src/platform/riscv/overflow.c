/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of the overflow handler that decide what is written into the counter next, for one
 * event: Linux 6.12 drivers/perf/riscv_pmu_sbi.c (handler: fold, set_period, overflow) with the
 * frequency step of the core's overflow path between; RISC-V sheet 5.5 and 5.6.
 *
 * Pure and without allocation because it is linked twice: into the engine process, which reloads
 * the counter where the overflow happens, and into the tests, which hold it against the driver's
 * own handler. The driver does not call it: it comes to the same value through its registers and
 * calls.
 */
#include "platform/riscv/overflow.h"

uint64_t quipu_riscv_overflow(struct quipu_reload *r, uint64_t now_ns)
{
	/* The fold: with no skid the counter has moved by exactly what was programmed. */
	quipu_reload_fold(r, r->programmed);
	if (!quipu_reload_set_period(r))
		return r->programmed;
	/*
	 * A sample was taken. The core may want another period at once; the driver's start() then
	 * programs afresh.
	 */
	if (r->sample_freq && quipu_reload_frequency(r, now_ns)) {
		r->period_left = 0;
		quipu_reload_set_period(r);
	}
	return r->programmed;
}
