/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing an event: perf_event_open in the order of the perf ABI sheet's A4, so that of
 * several faults the one that Linux reports is reported. Groups: A11.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define FLAGS_KNOWN                                                                                \
	(PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT | PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC)

static int refuse(struct quipu_core *core, int err, const char *why)
{
	quipu_core_reason(core, "%s", why);
	return err;
}

/* ---- the object ---- */

static void init_period(struct quipu_event *e, const struct quipu_event *parent)
{
	struct quipu_reload *r = &e->hw.reload;
	bool freq = e->attr.flags & QUIPU_ATTR_FREQ;

	r->tick_ns = e->core->tick_ns;
	r->sample_freq = freq ? e->attr.sample_freq : 0;
	r->sample_period = freq && e->attr.sample_freq ? 1 : e->attr.sample_period;
	if (parent && freq) /* what the original has learnt of the load */
		r->sample_period = parent->hw.reload.sample_period;
	r->last_period = r->sample_period;
	r->period_left = (int64_t)r->sample_period;
}

struct quipu_event *event_alloc(struct quipu_core *core, const struct quipu_attr *attr, int cpu,
				struct quipu_task *task, struct quipu_event *leader,
				struct quipu_event *parent, int *err)
{
	struct quipu_event *e = calloc(1, sizeof(*e));

	*err = -ENOMEM;
	if (!e)
		return NULL;
	e->core = core;
	e->attr = *attr;
	e->cpu = cpu;
	e->oncpu = e->slot = -1;
	e->hw.idx = e->hw.last_cpu = -1;
	e->state = STATE_OFF;
	e->clock_due = NEVER;
	e->task = task;
	if (task)
		task->refs++;
	e->leader = leader ? leader : e;
	e->parent = parent;
	link_init(&e->siblings);
	link_init(&e->sibling_link);
	link_init(&e->ctx_link);
	link_init(&e->group_link);
	link_init(&e->active_link);
	link_init(&e->children);
	link_init(&e->child_link);
	link_init(&e->ring_link);
	link_append(&core->events, &e->core_link);
	init_period(e, parent);
	*err = core_init_event(e);
	if (*err) {
		event_free(e);
		return NULL;
	}
	e->id = core->next_id++;
	e->class = core_class(core, e->pmu);
	if (e->pmu->signal)
		e->signal = e->pmu->signal(e, &e->filtered);
	return e;
}

void event_free(struct quipu_event *e)
{
	if (e->pending_disable)
		e->core->pending--;
	if (e->ring)
		ring_attach(e, NULL);
	if (e->initialised && e->pmu->event_destroy)
		e->pmu->event_destroy(e);
	link_remove(&e->child_link);
	link_remove(&e->core_link);
	if (e->task)
		task_put(e->task);
	free(e->reason);
	free(e->remark);
	free(e);
}

/* ---- checks, each one step or a few of A4 ---- */

static int check_clock(struct quipu_core *core, const struct quipu_event *e)
{
	if (!(e->attr.flags & QUIPU_ATTR_USE_CLOCKID))
		return 0;
	switch (e->attr.clockid) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW: return 0;
	case CLOCK_REALTIME:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		if (e->pmu->capabilities & QUIPU_PMU_CAP_NO_NMI)
			return 0;
		return refuse(
			core, -EINVAL,
			"this PMU samples from an NMI, where only the monotonic clocks can be read; "
			"use CLOCK_MONOTONIC (-k mono)");
	}
	return refuse(
		core, -EINVAL,
		"clockid names no clock that records can carry; use CLOCK_MONOTONIC (-k mono)");
}

/* An exclusive PMU serves either tasks or CPUs at a time, and one event of a context (steps 26,
 * 33). */
static int check_exclusive_pmu(const struct quipu_event *e)
{
	struct quipu_event *o;

	if (!(e->pmu->capabilities & QUIPU_PMU_CAP_EXCLUSIVE))
		return 0;
	list_for_each(o, &e->core->events, core_link) {
		bool overlaps = o->cpu == -1 || e->cpu == -1 || o->cpu == e->cpu;

		if (o == e || o->pmu != e->pmu || !o->ctx)
			continue;
		if (!o->task != !e->task || (o->task == e->task && overlaps))
			return refuse(e->core, -EBUSY,
				      "this PMU serves one event at a time and is in use");
	}
	return 0;
}

static int check_capabilities(const struct quipu_event *e, unsigned long flags)
{
	struct quipu_core *core = e->core;
	const struct quipu_pmu *pmu = e->pmu;

	if ((e->attr.flags & QUIPU_ATTR_AUX_OUTPUT) &&
	    !(pmu->capabilities & QUIPU_PMU_CAP_AUX_OUTPUT))
		return refuse(core, -EOPNOTSUPP,
			      "this PMU writes no trace that the event's output could go to");
	if (flags & PERF_FLAG_PID_CGROUP) {
		bool uncore = pmu->context == QUIPU_CONTEXT_UNCORE;

		return refuse(core, uncore ? -EINVAL : -EBADF,
			      "a modelled machine has no control groups; count a task (-p) or "
			      "all CPUs (-a)");
	}
	if ((e->attr.sample_type & PERF_SAMPLE_CALLCHAIN) &&
	    e->attr.sample_max_stack > core->config.max_stack)
		return refuse(core, -EOVERFLOW,
			      "the call chain is asked deeper than perf_event_max_stack");
	if (attr_sampling(&e->attr) && (pmu->capabilities & QUIPU_PMU_CAP_NO_INTERRUPT)) {
		quipu_core_reason(
			core,
			"%s cannot sample: its counters raise no interrupt; count with `quipu stat` instead",
			pmu->name);
		return -EOPNOTSUPP;
	}
	if ((e->attr.flags & QUIPU_ATTR_SIGTRAP) && !core->ops->sigtrap)
		return refuse(core, -EOPNOTSUPP,
			      "this machine sends no SIGTRAP on overflow; use a ring buffer");
	return check_clock(core, e);
}

static int check_target(const struct quipu_event *e, const struct quipu_caller *who)
{
	struct quipu_core *core = e->core;

	if (!e->task) {
		if (core->config.paranoid > 0 && !who->perfmon)
			return refuse(
				core, -EACCES,
				"counting a whole CPU needs perf_event_paranoid <= 0 or CAP_PERFMON");
		return 0;
	}
	if (e->pmu->context == QUIPU_CONTEXT_UNCORE) {
		quipu_core_reason(
			core,
			"%s counts for the whole machine, not for a task; count CPU-wide (-a)",
			e->pmu->name);
		return -EINVAL;
	}
	if (e->task->exited)
		return refuse(core, -ESRCH, "the task is exiting");
	return 0;
}

static bool same_clock(const struct quipu_attr *a, const struct quipu_attr *b)
{
	if ((a->flags ^ b->flags) & QUIPU_ATTR_USE_CLOCKID)
		return false;
	return !(a->flags & QUIPU_ATTR_USE_CLOCKID) || a->clockid == b->clockid;
}

/* Step 30. On success e->class is the group's, and *move says that the group comes to the event's
 * class first. */
static int check_group(struct quipu_event *e, struct quipu_event *group, bool *move)
{
	struct quipu_core *core = e->core;

	*move = false;
	if (!group)
		return 0;
	if (group->leader != group)
		return refuse(core, -EINVAL,
			      "the group's event is itself a member, not the leader");
	if (!same_clock(&group->attr, &e->attr))
		return refuse(core, -EINVAL, "the members of a group use one clock");
	if (group->cpu != e->cpu)
		return refuse(core, -EINVAL, "the members of a group count on the same CPU");
	if (group->task != e->task)
		return refuse(core, -EINVAL, "the members of a group count the same task");
	if (!group->ctx)
		return refuse(core, -EINVAL, "the group's leader has ended");
	if (e->class != group->class) {
		if (e->class == CLASS_SOFTWARE)
			e->class = group->class;
		else if (group->pure_software && group->class == CLASS_SOFTWARE)
			*move = true;
		else
			return refuse(
				core, -EINVAL,
				"the members of a group are of one PMU (software events may join any)");
	}
	if (e->attr.flags & (QUIPU_ATTR_PINNED | QUIPU_ATTR_EXCLUSIVE))
		return refuse(core, -EINVAL,
			      "only the leader of a group can be pinned or exclusive");
	return 0;
}

/* Step 33: a read of any member must fit. */
static int check_read_size(const struct quipu_event *e, const struct quipu_event *group)
{
	unsigned n = group ? group->nr_siblings + 1 : 0;
	struct quipu_event *s;

	if (read_size(e->attr.read_format, n) > READ_MAX)
		goto large;
	if (!group)
		return 0;
	if (read_size(group->attr.read_format, n) > READ_MAX)
		goto large;
	list_for_each(s, &group->siblings, sibling_link) {
		if (read_size(s->attr.read_format, n) > READ_MAX)
			goto large;
	}
	return 0;
large:
	return refuse(e->core, -E2BIG,
		      "with one more member a read of the group would exceed 16384 bytes");
}

static int check_task_permission(const struct quipu_event *e, const struct quipu_caller *who)
{
	const struct quipu_task *t = e->task;

	if (!t || who->perfmon || t->uid == (uid_t)-1 || t->uid == who->uid)
		return 0;
	return refuse(e->core, -EACCES, "the task is another user's; that needs CAP_PERFMON");
}

static int check_arguments(struct quipu_core *core, const struct quipu_attr *a, pid_t pid, int cpu,
			   const struct quipu_event *group, unsigned long flags)
{
	struct quipu_task *task;

	if ((flags & PERF_FLAG_PID_CGROUP) && (pid == -1 || cpu == -1))
		return refuse(core, -EINVAL, "a control group is counted on one CPU at a time");
	if (group == QUIPU_EVENT_FOREIGN)
		return refuse(core, -EBADF,
			      "the group's descriptor is not that of an event of this machine");
	if (group && group->state == STATE_REVOKED)
		return refuse(core, -ENODEV, "the PMU of the group's leader is gone");
	if (pid != -1 && !(flags & PERF_FLAG_PID_CGROUP)) {
		task = quipu_task_find(core, pid);
		if (!task || task->exited) {
			quipu_core_reason(core, "no task %d runs on this machine", (int)pid);
			return -ESRCH;
		}
		if (group && !(flags & PERF_FLAG_FD_NO_GROUP) &&
		    ((group->attr.flags ^ a->flags) & QUIPU_ATTR_INHERIT))
			return refuse(core, -EINVAL,
				      "all members of a group are inherited, or none");
	}
	if ((unsigned)cpu >= core->config.ncpus && !(pid != -1 && cpu == -1)) {
		if (pid == -1 && cpu == -1)
			return refuse(
				core, -EINVAL,
				"an event counts a task, a CPU, or both: pid and cpu are both -1");
		quipu_core_reason(core, "this machine has no CPU %d (it has 0-%u)", cpu,
				  core->config.ncpus - 1);
		return -EINVAL;
	}
	if ((a->flags & QUIPU_ATTR_SIGTRAP) && pid == -1)
		return refuse(core, -EINVAL, "sigtrap needs a task to signal");
	if ((a->flags & QUIPU_ATTR_INHERIT) && (a->sample_type & PERF_SAMPLE_READ) &&
	    !(a->sample_type & PERF_SAMPLE_TID))
		return refuse(
			core, -EINVAL,
			"counts in samples of inherited events need the tid in the sample as well");
	return 0;
}

/* ---- putting it in place ---- */

static int install(struct quipu_event *e, struct quipu_event *group, bool move)
{
	struct context *c = e->task ? &e->task->ctx : &e->core->cpus[e->cpu].ctx;

	if (!context_sub(c, e->class))
		return -ENOMEM;
	if (move)
		context_move_group(group, e->class);
	e->state = e->attr.flags & QUIPU_ATTR_DISABLED ? STATE_OFF : STATE_INACTIVE;
	context_add(c, e);
	if (e->state == STATE_INACTIVE || move)
		context_resched(e);
	return 0;
}

static int check_event(struct quipu_event *e, const struct quipu_caller *who,
		       struct quipu_event *group, struct quipu_event *output, unsigned long flags,
		       bool *move)
{
	int r = check_capabilities(e, flags);

	if (!r)
		r = check_target(e, who);
	if (!r)
		r = check_group(e, group, move);
	if (!r && output && quipu_event_set_output(e, output))
		r = refuse(
			e->core, -EINVAL,
			"the event cannot write into that buffer: it must be mapped, and of the same CPU, task "
			"and clock");
	if (!r)
		r = check_task_permission(e, who);
	if (!r)
		r = check_read_size(e, group);
	if (!r && !e->task && !e->core->cpus[e->cpu].online)
		r = refuse(e->core, -ENODEV, "that CPU is offline");
	if (!r)
		r = check_exclusive_pmu(e);
	return r;
}

int quipu_event_open(struct quipu_core *core, const struct quipu_caller *who, const void *bytes,
		     size_t len, pid_t pid, int cpu, struct quipu_event *group, unsigned long flags,
		     uint32_t *size_back, struct quipu_event **out)
{
	struct quipu_event *output = flags & PERF_FLAG_FD_OUTPUT ? group : NULL;
	struct quipu_task *task = NULL;
	struct quipu_attr attr;
	struct quipu_event *e;
	bool move;
	int r;

	core_work(core);
	core->reason[0] = '\0';
	*out = NULL;
	if (flags & ~(unsigned long)FLAGS_KNOWN)
		return refuse(core, -EINVAL, "perf_event_open has no such flag");
	r = attr_copy(core, bytes, len, size_back, &attr);
	if (!r)
		r = attr_check(core, who, &attr);
	if (!r)
		r = attr_permission(core, who, &attr);
	if (r)
		return r;
	if (pid == 0)
		pid = who->tid;
	r = check_arguments(core, &attr, pid, cpu, group, flags);
	if (r)
		return r;
	if (flags & PERF_FLAG_FD_NO_GROUP)
		group = NULL;
	if (pid != -1 && !(flags & PERF_FLAG_PID_CGROUP))
		task = quipu_task_find(core, pid);
	core->caller = who;
	e = event_alloc(core, &attr, cpu, task, group, NULL, &r);
	core->caller = NULL;
	if (!e)
		return r;
	e->owner = who->tid;
	r = check_event(e, who, group, output, flags, &move);
	if (!r)
		r = install(e, group, move);
	if (r) {
		event_free(e);
		return r;
	}
	*out = e;
	return 0;
}

/* Clones first: they write through their original. */
void quipu_event_close(struct quipu_event *e)
{
	struct quipu_event *c;

	if (!e)
		return;
	core_work(e->core);
	e->closed = true;
	if (e->maps)
		return;
	list_for_each(c, &e->children, child_link) {
		context_remove(c, true);
		event_free(c);
	}
	context_remove(e, true);
	event_set_state(e, STATE_DEAD);
	event_free(e);
}

/* ---- what drivers and the command ask ---- */

const struct quipu_attr *quipu_event_attr(const struct quipu_event *e)
{
	return &e->attr;
}

struct quipu_pmu *quipu_event_pmu(const struct quipu_event *e)
{
	return e->pmu;
}

struct quipu_hw_event *quipu_event_hw(struct quipu_event *e)
{
	return &e->hw;
}

struct quipu_core *quipu_event_core(const struct quipu_event *e)
{
	return e->core;
}

int quipu_event_cpu_now(const struct quipu_event *e)
{
	return e->oncpu;
}

int quipu_event_cpu(const struct quipu_event *e)
{
	return e->cpu;
}

void quipu_event_set_cpu(struct quipu_event *e, int cpu)
{
	if (cpu >= 0 && (unsigned)cpu < e->core->config.ncpus)
		e->cpu = cpu;
}

struct quipu_task *quipu_event_task(const struct quipu_event *e)
{
	return e->task;
}

struct quipu_event *quipu_event_leader(const struct quipu_event *e)
{
	return e->leader;
}

struct quipu_event *quipu_event_member(const struct quipu_event *e, unsigned i)
{
	struct quipu_event *s;

	if (i == 0)
		return e->leader;
	list_for_each(s, &e->leader->siblings, sibling_link) {
		if (--i == 0)
			return s;
	}
	return NULL;
}

int quipu_event_state(const struct quipu_event *e)
{
	return e->state;
}

void quipu_event_add_count(struct quipu_event *e, uint64_t delta)
{
	e->count += delta;
}

bool quipu_core_perfmon(const struct quipu_core *core)
{
	return !core->caller || core->caller->perfmon;
}

uint64_t quipu_event_id(const struct quipu_event *e)
{
	return e->id;
}

void quipu_event_set_async(struct quipu_event *e, bool async)
{
	e->async = async;
}
