/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ioctls of an event (perf ABI sheet A9) whose argument is a value, period changes, and prctl
 * 31/32. Commands whose argument is a pointer are unpacked by whoever has the caller's memory.
 */
#include <errno.h>
#include <linux/perf_event.h>

#include "internal.h"

/* The number within the family, the same on every architecture; direction and size bits differ
 * (A9). */
enum {
	ENABLE,
	DISABLE,
	REFRESH,
	RESET,
	PERIOD,
	SET_OUTPUT,
	SET_FILTER,
	ID,
	SET_BPF,
	PAUSE_OUTPUT,
	QUERY_BPF,
	MODIFY
};

static int refuse(struct quipu_event *e, int err, const char *why)
{
	quipu_core_reason(e->core, "%s", why);
	return err;
}

/* On the event and on each of its clones. */
static void for_each_clone(struct quipu_event *e, void (*fn)(struct quipu_event *))
{
	struct quipu_event *c;

	fn(e);
	list_for_each(c, &e->children, child_link)
		fn(c);
}

static void apply(struct quipu_event *e, uint64_t flags, void (*fn)(struct quipu_event *))
{
	struct quipu_event *leader = e->leader, *s;

	if (!(flags & PERF_IOC_FLAG_GROUP)) {
		for_each_clone(e, fn);
		return;
	}
	for_each_clone(leader, fn);
	list_for_each(s, &leader->siblings, sibling_link)
		for_each_clone(s, fn);
}

/* Counts only: times, and what exited clones have left, stay (D3 point 17). */
static void reset(struct quipu_event *e)
{
	event_fold(e);
	e->count = 0;
	e->truth = 0;
	ring_update_page(e);
}

static int refresh(struct quipu_event *e, uint64_t arg)
{
	if ((e->attr.flags & QUIPU_ATTR_INHERIT) || !attr_sampling(&e->attr))
		return refuse(e, -EINVAL, "REFRESH is for sampling events that are not inherited");
	e->limit += (unsigned)arg;
	event_enable(e);
	return 0;
}

static int pause_output(struct quipu_event *e, uint64_t arg)
{
	if (!e->ring || !e->ring->pages)
		return refuse(e, -EINVAL, "the event has no ring buffer with data pages");
	e->ring->paused = (uint32_t)arg != 0;
	return 0;
}

int quipu_event_ioctl(struct quipu_event *e, unsigned long cmd, uint64_t arg)
{
	core_work(e->core);
	e->core->reason[0] = '\0';
	if (((cmd >> 8) & 0xff) != '$')
		return -ENOTTY;
	if (e->state == STATE_REVOKED)
		return refuse(e, -ENODEV, "its PMU is gone");
	switch (cmd & 0xff) {
	case ENABLE: apply(e, arg, event_enable); return 0;
	case DISABLE: apply(e, arg, event_disable); return 0;
	case REFRESH: return refresh(e, arg);
	case RESET: apply(e, arg, reset); return 0;
	case PERIOD: return quipu_event_set_period(e, arg);
	case PAUSE_OUTPUT: return pause_output(e, arg);
	case SET_FILTER:
		return refuse(
			e, -EINVAL,
			"only tracepoints and traces have filters, and this machine has neither");
	case SET_BPF:
	case QUERY_BPF:
		return refuse(e, -EINVAL,
			      "only tracepoints take BPF programs, and this machine has none");
	case MODIFY:
		if ((uint32_t)arg != e->attr.type)
			return refuse(e, -EINVAL,
				      "the new attributes are of another type of event");
		return refuse(e, -EOPNOTSUPP,
			      "only breakpoints can be modified, and this machine has none");
	}
	return -ENOTTY;
}

int quipu_event_set_period(struct quipu_event *e, uint64_t value)
{
	bool freq = e->attr.flags & QUIPU_ATTR_FREQ;

	core_work(e->core);
	e->core->reason[0] = '\0';
	if (e->state == STATE_REVOKED)
		return refuse(e, -ENODEV, "its PMU is gone");
	if (!attr_sampling(&e->attr) || !value)
		return refuse(e, -EINVAL, "only a sampling event has a period, and 0 is none");
	if (freq && value > e->core->config.max_sample_rate)
		return refuse(e, -EINVAL, "the frequency is above perf_event_max_sample_rate");
	if (!freq && value >> 63)
		return refuse(e, -EINVAL, "a period must be below 2^63");
	if (!freq && e->pmu->check_period && e->pmu->check_period(e, value))
		return -EINVAL;
	if (freq) {
		e->attr.sample_freq = value;
		e->hw.reload.sample_freq = value;
	} else {
		e->attr.sample_period = value;
		e->hw.reload.sample_period = value;
	}
	if (e->state != STATE_ACTIVE) {
		e->hw.reload.period_left = 0;
		return 0;
	}
	if (e->hw.interrupts == THROTTLED) {
		e->hw.interrupts = 0;
		sample_throttle(e, false);
	}
	e->pmu->stop(e, QUIPU_EF_UPDATE);
	e->hw.reload.period_left = 0;
	e->pmu->start(e, QUIPU_EF_RELOAD);
	core_tell(e->core, (unsigned)e->oncpu);
	return 0;
}

void quipu_core_prctl(struct quipu_core *core, pid_t tid, bool enable)
{
	struct quipu_event *e;

	core_work(core);
	list_for_each(e, &core->events, core_link) {
		if (e->owner == tid && !e->parent)
			for_each_clone(e, enable ? event_enable : event_disable);
	}
}
