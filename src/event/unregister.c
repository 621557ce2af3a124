/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PMU goes while the machine runs (perf_pmu_unregister). The events that are open on it stay
 * open, and are good for nothing any more: what Linux does with them since 6.15, where that became
 * safe. read(2) gives end of file, ioctl and mmap ENODEV, poll POLLERR; what they had counted is
 * still there for quipu_event_count.
 *
 * A buffer of such an event stays mapped and gets no further records (Linux detaches it).
 */
#include <errno.h>
#include <poll.h>

#include "internal.h"

/* ---- the PMU of events that have none ---- */

static int gone_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	(void)pmu;
	(void)e;
	return -ENOENT;
}

static int gone_add(struct quipu_event *e, int flags)
{
	(void)e;
	(void)flags;
	return -ENODEV;
}

static void gone_nothing(struct quipu_event *e, int flags)
{
	(void)e;
	(void)flags;
}

static void gone_read(struct quipu_event *e)
{
	(void)e;
}

void gone_init(struct quipu_pmu *pmu)
{
	*pmu = (struct quipu_pmu){
		.name = "gone",
		.type = -1,
		.context = QUIPU_CONTEXT_HARDWARE,
		.event_init = gone_event_init,
		.add = gone_add,
		.del = gone_nothing,
		.start = gone_nothing,
		.stop = gone_nothing,
		.read = gone_read,
	};
}

/* ---- the events ---- */

static void revoke(struct quipu_event *e)
{
	struct quipu_core *core = e->core;

	context_remove(e, true);
	event_set_state(e, STATE_REVOKED);
	if (e->initialised && e->pmu->event_destroy)
		e->pmu->event_destroy(e);
	e->initialised = false;
	e->pmu = &core->gone;
	core_wake(e, POLLERR);
}

/* Clones fold into their originals first, as at the end of a task. */
static void revoke_all(struct quipu_core *core, const struct quipu_pmu *pmu)
{
	struct quipu_event *e;

	list_for_each(e, &core->events, core_link) {
		if (e->pmu == pmu && e->parent)
			event_exit(e);
	}
	list_for_each(e, &core->events, core_link) {
		if (e->pmu == pmu)
			revoke(e);
	}
}

/* Software events that were in a group of the PMU's go on by themselves. */
static void back_to_software(struct quipu_core *core, unsigned class)
{
	struct quipu_event *e;

	list_for_each(e, &core->events, core_link) {
		struct context *c = e->ctx;

		if (e->class != class || !c)
			continue;
		context_remove(e, true);
		e->class = CLASS_SOFTWARE;
		if (!context_sub(c, CLASS_SOFTWARE)) {
			event_set_state(e, STATE_ERROR);
			continue;
		}
		context_add(c, e);
		if (e->state == STATE_INACTIVE)
			context_resched(e);
	}
}

static void forget(struct quipu_core *core, struct quipu_pmu *pmu, unsigned class)
{
	size_t kept = 0;

	for (size_t i = 0; i < core->nlisted; i++) {
		if (core->listed[i] != pmu)
			core->listed[kept++] = core->listed[i];
	}
	core->nlisted = kept;
	core->pmus[class] = &core->gone;
	for (unsigned cpu = 0; cpu < core->config.ncpus; cpu++) {
		core->cpus[cpu].classes[class] = (struct cpu_class){.mux_due = NEVER};
		core_tell(core, cpu);
	}
}

int quipu_core_unregister(struct quipu_core *core, struct quipu_pmu *pmu)
{
	unsigned class = core_class(core, pmu);

	core_work(core);
	if (class == CLASS_SOFTWARE)
		return -EINVAL;
	revoke_all(core, pmu);
	back_to_software(core, class);
	forget(core, pmu, class);
	return 0;
}
