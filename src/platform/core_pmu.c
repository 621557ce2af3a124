/* SPDX-License-Identifier: BSD-2-Clause */
/* See core_pmu.h. The shape is that of Linux's drivers (event_init, set_period, update, handler).
 */
#include "platform/core_pmu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

void core_pmu_setup(struct core_pmu *p, const struct quipu_platform_env *env)
{
	p->core = env->core;
	p->signals = env->signals;
	p->ncpus = env->machine->ncpus;
	p->trace = env->trace;
	p->trace_arg = env->trace_arg;
}

void core_pmu_trace(const struct core_pmu *p, const char *format, ...)
{
	char line[128];
	va_list args;

	if (!p->trace)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	p->trace(p->trace_arg, line);
}

bool core_pmu_has(const struct core_pmu *p, quipu_signal signal)
{
	return signal == QUIPU_SIGNAL_NONE || p->signals->ops->has(p->signals, signal);
}

unsigned core_pmu_cpu(const struct quipu_event *e)
{
	return (unsigned)quipu_event_cpu_now(e);
}

void core_pmu_begin(const struct core_pmu *p, struct quipu_event *e, uint64_t code)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	const struct quipu_attr *attr = quipu_event_attr(e);

	hw->config = code;
	hw->idx = -1;
	hw->reload.max_left = p->longest;
	if (!attr->sample_period) {
		hw->reload.sample_period = hw->reload.last_period = p->longest;
		hw->reload.period_left = (int64_t)p->longest;
	}
}

void core_pmu_count(struct quipu_event *e, uint64_t now, uint64_t delta)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);

	hw->prev_count = now;
	quipu_event_add_count(e, delta);
	quipu_reload_fold(&hw->reload, delta);
}

bool core_pmu_set_period(const struct core_pmu *p, struct quipu_hw_event *hw)
{
	bool used = quipu_reload_set_period(&hw->reload);

	hw->prev_count = (p->top - hw->reload.programmed) & bits_mask(p->width);
	return used;
}

void core_pmu_sample(const struct quipu_interrupt *irq, struct quipu_sample *sample)
{
	sample->ip = irq->pc;
	sample->addr = irq->addr;
	sample->chain = irq->chain;
	sample->nr_chain = irq->nr_chain;
	sample->branches = irq->branches;
	sample->nr_branches = irq->nr_branches;
	sample->user = irq->user;
	sample->pid = irq->pid;
	sample->tid = irq->tid;
}

void core_pmu_overflow(struct core_pmu *p, struct quipu_event *e, const struct quipu_sample *sample)
{
	bool used = core_pmu_set_period(p, quipu_event_hw(e));

	/* Before the core sees it: it may stop and start the event, and what the counter shows then
	 * is taken for counted. */
	p->write(p, e);
	if (used && quipu_event_attr(e)->sample_period && quipu_event_overflow(e, sample) &&
	    p->stops)
		p->pmu.stop(e, QUIPU_EF_UPDATE);
}

void core_pmu_free_list(struct quipu_pmu_event *list)
{
	for (unsigned i = 0; list && list[i].name; i++)
		free((char *)list[i].terms);
	free(list);
}

/* ---- rooms ---- */

int core_room_create(const struct quipu_platform_env *env, const char *what,
		     int (*up)(const struct quipu_platform_env *, struct core_room *),
		     void (*down)(struct core_room *), void **self)
{
	struct core_room *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (r) {
		r->core = env->core;
		err = up(env, r);
	}
	*self = r;
	if (!err)
		return 0;
	quipu_note(env->notes, QUIPU_NOTE_WRONG, "/pmu", "%s cannot be set up: %s", what,
		   strerror(-err));
	if (r)
		down(r);
	free(r);
	*self = NULL;
	return err;
}

void core_room_cpu_online(void *self, unsigned cpu, bool online)
{
	(void)self;
	(void)cpu;
	(void)online;
}
