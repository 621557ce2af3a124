/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PMU "software": events that the core itself counts, in model time (perf ABI sheet A6 configs,
 * A14 last paragraph, B10). Page faults read 0 unless a model reports them (quipu_core_software).
 *
 * Clock events sample through the core's tick: quipu_core_next_tick includes their expiry.
 * Occurrences (switches, migrations, faults) are delivered where they happen.
 */
#include <errno.h>

#include "internal.h"

#define CLOCK_PERIOD_MIN UINT64_C(10000) /* ns; shorter periods would be timers only */
#define SW_CONFIGS	 12u		 /* PERF_COUNT_SW_MAX of Linux 6.12 */

static bool is_clock(const struct quipu_event *e)
{
	return e->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
	       e->attr.config == PERF_COUNT_SW_TASK_CLOCK;
}

static int software_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct quipu_reload *r = &e->hw.reload;

	if (e->attr.type != (uint32_t)pmu->type)
		return -ENOENT;
	if (e->attr.config >= SW_CONFIGS) {
		quipu_core_reason(e->core, "there is no software event %llu (0-11 exist)",
				  (unsigned long long)e->attr.config);
		return -ENOENT;
	}
	if (e->attr.sample_type & PERF_SAMPLE_BRANCH_STACK) {
		quipu_core_reason(e->core,
				  "a software event has no branch stack; sample a hardware event");
		return -EOPNOTSUPP;
	}
	if (!is_clock(e) || !attr_sampling(&e->attr) || !(e->attr.flags & QUIPU_ATTR_FREQ))
		return 0;
	/* A clock's rate is known: the frequency is a period, once and for all. */
	e->attr.sample_period = NSEC_PER_SEC / e->attr.sample_freq;
	e->attr.flags &= ~QUIPU_ATTR_FREQ;
	r->sample_freq = 0;
	r->sample_period = r->last_period = e->attr.sample_period;
	r->period_left = (int64_t)r->sample_period;
	return 0;
}

static uint64_t clock_period(const struct quipu_event *e)
{
	uint64_t p = e->hw.reload.sample_period;

	return p < CLOCK_PERIOD_MIN ? CLOCK_PERIOD_MIN : p;
}

static void software_read(struct quipu_event *e)
{
	uint64_t now;

	if (!is_clock(e) || (e->hw.state & QUIPU_HES_STOPPED))
		return;
	now = core_now(e->core, (unsigned)e->oncpu);
	if (now > e->clock_base)
		e->count += now - e->clock_base;
	e->clock_base = now;
}

static void software_start(struct quipu_event *e, int flags)
{
	uint64_t now, left;

	(void)flags;
	e->hw.state = 0;
	if (!is_clock(e))
		return;
	now = core_now(e->core, (unsigned)e->oncpu);
	e->clock_base = now;
	if (!attr_sampling(&e->attr))
		return;
	left = e->hw.reload.period_left > 0 ? (uint64_t)e->hw.reload.period_left : clock_period(e);
	e->clock_due = now + left < now ? NEVER : now + left;
}

static void software_stop(struct quipu_event *e, int flags)
{
	(void)flags;
	software_read(e);
	if (is_clock(e) && e->clock_due != NEVER) {
		uint64_t now = core_now(e->core, (unsigned)e->oncpu);

		e->hw.reload.period_left = e->clock_due > now ? (int64_t)(e->clock_due - now) : 1;
		e->clock_due = NEVER;
	}
	e->hw.state = QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
}

static int software_add(struct quipu_event *e, int flags)
{
	e->hw.state = QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
	if (flags & QUIPU_EF_START)
		software_start(e, QUIPU_EF_RELOAD);
	return 0;
}

static void software_del(struct quipu_event *e, int flags)
{
	(void)flags;
	software_stop(e, QUIPU_EF_UPDATE);
}

/* A clock event's timer is due: one sample, however late, as a timer that is forwarded past now. */
void software_expire(struct quipu_event *e, const struct quipu_sample *where)
{
	uint64_t now = core_now(e->core, (unsigned)e->oncpu);
	uint64_t period = clock_period(e);

	software_read(e);
	e->hw.reload.last_period = e->hw.reload.sample_period;
	e->clock_due += (now - e->clock_due) / period * period + period;
	if (quipu_event_overflow(e, where))
		software_stop(e, 0);
}

static bool takes(const struct quipu_event *e, uint64_t config)
{
	return is_software(e) && e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == config &&
	       !(e->hw.state & QUIPU_HES_STOPPED);
}

static void occurred(struct quipu_event *e, uint64_t nr, const struct quipu_sample *where)
{
	struct quipu_reload *r = &e->hw.reload;

	e->count += nr;
	if (!attr_sampling(&e->attr))
		return;
	if ((e->attr.sample_type & PERF_SAMPLE_PERIOD) && !r->sample_freq) {
		r->last_period = nr;
		if (quipu_event_overflow(e, where))
			software_stop(e, 0);
		return;
	}
	r->period_left -= (int64_t)nr;
	while (r->period_left <= 0 && !(e->hw.state & QUIPU_HES_STOPPED)) {
		quipu_reload_set_period(r);
		if (quipu_event_overflow(e, where))
			software_stop(e, 0);
	}
}

void software_occurred(struct quipu_core *core, unsigned n, uint64_t config, uint64_t nr,
		       const struct quipu_sample *where)
{
	struct quipu_event *e;

	list_for_each(e, &core->cpus[n].active, active_link) {
		if (takes(e, config))
			occurred(e, nr, where);
	}
}

void quipu_core_software(struct quipu_core *core, unsigned cpu, uint64_t config, uint64_t nr,
			 const struct quipu_sample *where)
{
	core_work(core);
	if (cpu < core->config.ncpus && config < SW_CONFIGS && nr && nr <= INT64_MAX)
		software_occurred(core, cpu, config, nr, where);
	core_work(core);
}

void software_init(struct quipu_pmu *pmu)
{
	*pmu = (struct quipu_pmu){
		.name = "software",
		.type = PERF_TYPE_SOFTWARE,
		.capabilities = QUIPU_PMU_CAP_NO_NMI,
		.context = QUIPU_CONTEXT_SOFTWARE,
		.event_init = software_event_init,
		.add = software_add,
		.del = software_del,
		.start = software_start,
		.stop = software_stop,
		.read = software_read,
	};
}
