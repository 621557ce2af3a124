/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts, states and scheduling: which events are on which counters. perf ABI sheet A10 (states
 * and time), A11 (groups), A12 (order of scheduling in, rotation).
 *
 * Time and truth of an event change only at changes of state and at reads: event_update_time closes
 * the interval since the last one, refresh_truth opens the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void context_init(struct context *c, struct quipu_core *core, struct quipu_task *task, int cpu)
{
	*c = (struct context){.core = core, .task = task, .cpu = cpu};
	link_init(&c->events);
}

void context_free(struct context *c)
{
	for (unsigned i = 0; i < c->nsubs; i++)
		free(c->subs[i]);
	free(c->subs);
	c->subs = NULL;
	c->nsubs = 0;
}

struct sub *context_sub(struct context *c, unsigned class)
{
	if (class >= c->nsubs) {
		unsigned n = class + 1;
		struct sub **subs = realloc(c->subs, n * sizeof(*subs));

		if (!subs)
			return NULL;
		while (c->nsubs < n)
			subs[c->nsubs++] = NULL;
		c->subs = subs;
	}
	if (!c->subs[class]) {
		struct sub *s = calloc(1, sizeof(*s));

		if (!s)
			return NULL;
		link_init(&s->groups[PINNED]);
		link_init(&s->groups[FLEXIBLE]);
		c->subs[class] = s;
	}
	return c->subs[class];
}

static struct sub *sub_of(const struct context *c, unsigned class)
{
	return c && class < c->nsubs ? c->subs[class] : NULL;
}

/* A CPU's context is always active on its CPU, a task's while the task runs. */
uint64_t context_now(const struct context *c)
{
	uint64_t now;

	if (c->cpu < 0)
		return c->time;
	now = core_now(c->core, (unsigned)c->cpu);
	return now > c->stamp ? c->time + (now - c->stamp) : c->time;
}

/* Counters of the whole machine run by its time, whoever speaks for them: that CPU may have slept
 * throughout. */
static uint64_t event_clock(const struct quipu_event *e, const struct context *c)
{
	const struct quipu_core *core = e->core;

	if (e->pmu->context == QUIPU_CONTEXT_UNCORE && core->ops->time)
		return core->ops->time(core->arg);
	return context_now(c);
}

static enum set set_of(const struct quipu_event *leader)
{
	return leader->attr.flags & QUIPU_ATTR_PINNED ? PINNED : FLEXIBLE;
}

bool event_on_cpu(const struct quipu_event *e, int cpu)
{
	return cpu >= 0 && (e->cpu == -1 || e->cpu == cpu);
}

/* ---- time and truth ---- */

/* The whole group stands and falls with its leader (A10). */
static enum event_state effective(const struct quipu_event *e)
{
	return e->leader->state <= STATE_OFF ? e->leader->state : e->state;
}

static uint64_t signal_now(const struct quipu_event *e, unsigned cpu)
{
	return e->core->ops->signal(e->core->arg, cpu, e->signal);
}

static void sync_truth(struct quipu_event *e)
{
	uint64_t now;

	if (!e->truth_open)
		return;
	now = signal_now(e, e->truth_cpu);
	if (now > e->truth_base)
		e->truth += now - e->truth_base;
	e->truth_base = now;
}

/* Would the event count now, were there counters enough? */
static void refresh_truth(struct quipu_event *e)
{
	struct context *c = e->ctx;

	e->truth_open = c && e->signal != QUIPU_SIGNAL_NONE && !e->filtered &&
			e->core->ops->signal && effective(e) >= STATE_INACTIVE &&
			event_on_cpu(e, c->cpu);
	if (!e->truth_open)
		return;
	e->truth_cpu = (unsigned)c->cpu;
	e->truth_base = signal_now(e, e->truth_cpu);
}

void event_update_time(struct quipu_event *e)
{
	enum event_state state = effective(e);
	uint64_t now, delta;

	sync_truth(e);
	if (!e->ctx)
		return;
	now = event_clock(e, e->ctx);
	delta = now > e->tstamp ? now - e->tstamp : 0;
	e->tstamp = now;
	if (state >= STATE_INACTIVE)
		e->enabled += delta;
	if (state >= STATE_ACTIVE)
		e->running += delta;
}

void event_set_state(struct quipu_event *e, enum event_state state)
{
	bool crossing = (e->state < 0) != (state < 0);
	struct quipu_event *s;

	if (e->state == state)
		return;
	event_update_time(e);
	if (crossing && e->leader == e) {
		list_for_each(s, &e->siblings, sibling_link)
			event_update_time(s);
	}
	e->state = state;
	refresh_truth(e);
	if (crossing && e->leader == e) {
		list_for_each(s, &e->siblings, sibling_link)
			refresh_truth(s);
	}
}

/* ---- one event, one group, on and off its PMU ---- */

static void pmu_disable(struct quipu_core *core, unsigned cpu, unsigned class)
{
	struct quipu_pmu *pmu = core->pmus[class];

	if (core->cpus[cpu].classes[class].nest++ == 0 && pmu->pmu_disable)
		pmu->pmu_disable(pmu, cpu);
}

static void pmu_enable(struct quipu_core *core, unsigned cpu, unsigned class)
{
	struct quipu_pmu *pmu = core->pmus[class];

	if (--core->cpus[cpu].classes[class].nest == 0 && pmu->pmu_enable)
		pmu->pmu_enable(pmu, cpu);
}

static void set_slot(struct quipu_event *e)
{
	int slot = e->pmu->slot ? e->pmu->slot(e) : -1;
	struct cpu *cpu = &e->core->cpus[e->oncpu];

	if (e->slot >= 0 && cpu->slots[e->slot] == e)
		cpu->slots[e->slot] = NULL;
	e->slot = slot >= 0 && slot < QUIPU_SLOTS ? slot : -1;
	if (e->slot >= 0)
		cpu->slots[e->slot] = e;
}

static void clear_slot(struct quipu_event *e)
{
	struct cpu *cpu = &e->core->cpus[e->oncpu];

	if (e->slot >= 0 && cpu->slots[e->slot] == e)
		cpu->slots[e->slot] = NULL;
	e->slot = -1;
}

/* Keep the driver's words for whoever asks why the event never ran. */
static void keep_reason(struct quipu_event *e, const char *text)
{
	if (e->reason && !strcmp(e->reason, text))
		return;
	free(e->reason);
	e->reason = strdup(text);
}

static int event_sched_in(struct quipu_event *e, unsigned cpu)
{
	struct quipu_core *core = e->core;

	if (e->state <= STATE_OFF)
		return 0;
	e->oncpu = (int)cpu;
	event_set_state(e, STATE_ACTIVE);
	if (e->hw.interrupts == THROTTLED) {
		sample_throttle(e, false);
		e->hw.interrupts = 0;
	}
	core->reason[0] = '\0';
	if (e->pmu->add(e, QUIPU_EF_START)) {
		keep_reason(e, core->reason[0] ? core->reason
					       : "every counter that it could use is taken");
		event_set_state(e, STATE_INACTIVE);
		e->oncpu = -1;
		return -EAGAIN;
	}
	link_append(&core->cpus[cpu].active, &e->active_link);
	e->hw.last_cpu = (int)cpu;
	set_slot(e);
	if (e->attr.flags & QUIPU_ATTR_EXCLUSIVE)
		core->cpus[cpu].classes[e->class].exclusive = true;
	return 0;
}

static void event_sched_out(struct quipu_event *e)
{
	struct cpu *cpu;

	if (e->state != STATE_ACTIVE)
		return;
	cpu = &e->core->cpus[e->oncpu];
	clear_slot(e);
	e->pmu->del(e, 0);
	link_remove(&e->active_link);
	if (e->attr.flags & QUIPU_ATTR_EXCLUSIVE)
		cpu->classes[e->class].exclusive = false;
	event_set_state(e, STATE_INACTIVE);
	e->oncpu = -1;
	if (e->pending_disable) {
		e->pending_disable = false;
		e->core->pending--;
		event_set_state(e, STATE_OFF);
	}
	ring_update_page(e);
}

static void group_sched_out(struct quipu_event *leader)
{
	struct quipu_event *s;

	if (leader->state != STATE_ACTIVE)
		return;
	event_sched_out(leader);
	list_for_each(s, &leader->siblings, sibling_link)
		event_sched_out(s);
}

static int add_members(struct quipu_event *leader, unsigned cpu)
{
	struct quipu_event *s;
	int r = event_sched_in(leader, cpu);

	if (r)
		return r;
	list_for_each(s, &leader->siblings, sibling_link) {
		r = event_sched_in(s, cpu);
		if (r)
			return r;
	}
	return 0;
}

/* A12 step 3: all members or none. */
static int group_sched_in(struct quipu_event *leader, unsigned cpu)
{
	struct quipu_core *core = leader->core;
	struct quipu_pmu *pmu = core->pmus[leader->class];
	struct quipu_event *s;
	int r;

	if (leader->state == STATE_OFF)
		return 0;
	if (pmu->start_txn)
		pmu->start_txn(pmu, cpu, QUIPU_TXN_ADD);
	core->reason[0] = '\0';
	r = add_members(leader, cpu);
	if (!r && pmu->commit_txn)
		r = pmu->commit_txn(pmu, cpu);
	if (!r) {
		set_slot(leader);
		ring_update_page(leader);
		list_for_each(s, &leader->siblings, sibling_link) {
			if (s->state != STATE_ACTIVE)
				continue;
			set_slot(s); /* a commit may have assigned counters anew */
			ring_update_page(s);
		}
		return 0;
	}
	if (core->reason[0])
		keep_reason(leader, core->reason);
	list_for_each(s, &leader->siblings, sibling_link)
		event_sched_out(s);
	event_sched_out(leader);
	if (pmu->cancel_txn)
		pmu->cancel_txn(pmu, cpu);
	return r;
}

static bool any_active(const struct link *groups)
{
	for (const struct link *l = groups->next; l != groups; l = l->next) {
		if (container(l, struct quipu_event, group_link)->state == STATE_ACTIVE)
			return true;
	}
	return false;
}

static bool may_go_on(const struct quipu_event *leader, const struct link *groups, unsigned cpu,
		      bool room)
{
	if (leader->pure_software)
		return true;
	if (leader->core->cpus[cpu].classes[leader->class].exclusive)
		return false;
	if ((leader->attr.flags & QUIPU_ATTR_EXCLUSIVE) && any_active(groups))
		return false;
	return room;
}

/* ---- sets of groups ---- */

static void set_out(struct context *c, unsigned class, enum set which)
{
	struct sub *sub = sub_of(c, class);
	struct quipu_event *leader;

	if (!sub || !sub->in[which])
		return;
	sub->in[which] = false;
	if (which == FLEXIBLE)
		sub->rotate = false; /* set again when a group does not fit */
	list_for_each(leader, &sub->groups[which], group_link)
		group_sched_out(leader);
}

static void arm_rotation(struct quipu_core *core, unsigned cpu, unsigned class)
{
	struct cpu_class *cc = &core->cpus[cpu].classes[class];

	if (class != CLASS_SOFTWARE && cc->mux_due == NEVER)
		cc->mux_due = core_now(core, cpu) + core->mux_ms[class] * UINT64_C(1000000);
}

/* A12 steps 1-4 for one group; *room is what is left for the rest of the set. */
static void try_group(struct quipu_event *leader, struct sub *sub, enum set which, unsigned cpu,
		      bool *room)
{
	struct quipu_pmu *pmu = leader->pmu;

	if (leader->state <= STATE_OFF || leader->state == STATE_ACTIVE ||
	    !event_on_cpu(leader, (int)cpu))
		return;
	if (pmu->filter_match && !pmu->filter_match(leader, cpu))
		return;
	if (may_go_on(leader, &sub->groups[which], cpu, *room))
		group_sched_in(leader, cpu);
	else if (!leader->reason)
		keep_reason(
			leader,
			"its turn never came: a group before it did not fit, and groups are tried strictly in order");
	if (leader->state != STATE_INACTIVE)
		return;
	*room = false;
	if (which == PINNED) {
		event_set_state(leader, STATE_ERROR);
		return;
	}
	sub->rotate = true;
	arm_rotation(leader->core, cpu, leader->class);
	ring_update_page(leader);
}

static void set_in(struct context *c, unsigned class, enum set which, unsigned cpu)
{
	struct sub *sub = sub_of(c, class);
	struct quipu_event *leader;
	bool room = true;

	if (!sub || sub->in[which] || !c->core->cpus[cpu].online)
		return;
	sub->in[which] = true;
	list_for_each(leader, &sub->groups[which], group_link)
		try_group(leader, sub, which, cpu, &room);
}

static struct context *task_context(const struct cpu *cpu)
{
	return cpu->current ? &cpu->current->ctx : NULL;
}

static void all_in(struct quipu_core *core, unsigned n, unsigned class)
{
	struct cpu *cpu = &core->cpus[n];
	struct context *t = task_context(cpu);

	set_in(&cpu->ctx, class, PINNED, n);
	set_in(t, class, PINNED, n);
	set_in(&cpu->ctx, class, FLEXIBLE, n);
	set_in(t, class, FLEXIBLE, n);
}

void context_resched(struct quipu_event *e)
{
	struct context *c = e->ctx;
	struct quipu_core *core = e->core;
	struct context *task;
	enum set which;
	unsigned n;

	if (!c || c->cpu < 0 || !event_on_cpu(e, c->cpu))
		return;
	n = (unsigned)c->cpu;
	task = task_context(&core->cpus[n]);
	which = set_of(e->leader);
	pmu_disable(core, n, e->class);
	if (which == PINNED)
		set_out(task, e->class, PINNED);
	if (which == PINNED || c == task || !c->task)
		set_out(task, e->class, FLEXIBLE);
	if (!c->task && which == PINNED)
		set_out(c, e->class, PINNED);
	if (!c->task || which == PINNED)
		set_out(&core->cpus[n].ctx, e->class, FLEXIBLE);
	all_in(core, n, e->class);
	pmu_enable(core, n, e->class);
	core_tell(core, n);
}

/* Times and truth of every event of a context at once: its clock is about to start or has stopped.
 */
static void sync_all(struct context *c)
{
	struct quipu_event *e;

	list_for_each(e, &c->events, ctx_link)
		event_update_time(e);
}

static void refresh_all(struct context *c)
{
	struct quipu_event *e;

	list_for_each(e, &c->events, ctx_link)
		refresh_truth(e);
}

void context_task_in(struct quipu_task *task, unsigned n)
{
	struct context *c = &task->ctx;
	struct cpu *cpu = &c->core->cpus[n];

	c->cpu = (int)n;
	c->stamp = core_now(c->core, n);
	refresh_all(c);
	for (unsigned class = 0; class < c->nsubs; class ++) {
		struct sub *sub = c->subs[class];

		if (!sub)
			continue;
		pmu_disable(c->core, n, class);
		if (!link_empty(&sub->groups[PINNED]))
			set_out(&cpu->ctx, class, FLEXIBLE);
		all_in(c->core, n, class);
		pmu_enable(c->core, n, class);
	}
	core_tell(c->core, n);
}

void context_task_out(struct quipu_task *task)
{
	struct context *c = &task->ctx;
	unsigned n = (unsigned)c->cpu;

	for (unsigned class = 0; class < c->nsubs; class ++) {
		if (!c->subs[class])
			continue;
		pmu_disable(c->core, n, class);
		set_out(c, class, PINNED);
		set_out(c, class, FLEXIBLE);
		pmu_enable(c->core, n, class);
	}
	sync_all(c);
	c->time = context_now(c);
	c->cpu = -1;
	refresh_all(c);
	core_tell(c->core, n);
}

/* The first group that is on; if none is, the first that could be. */
static struct quipu_event *to_rotate(const struct sub *sub, unsigned cpu)
{
	struct quipu_event *first = NULL, *e;

	if (!sub || !sub->rotate)
		return NULL;
	list_for_each(e, &sub->groups[FLEXIBLE], group_link) {
		if (e->state == STATE_ACTIVE)
			return e;
		if (!first && event_on_cpu(e, (int)cpu))
			first = e;
	}
	return first;
}

static void to_end(struct sub *sub, struct quipu_event *e)
{
	link_remove(&e->group_link);
	link_append(&sub->groups[FLEXIBLE], &e->group_link);
}

void context_rotate(struct quipu_core *core, unsigned n, unsigned class)
{
	struct cpu *cpu = &core->cpus[n];
	struct context *task = task_context(cpu);
	struct sub *csub = sub_of(&cpu->ctx, class), *tsub = sub_of(task, class);
	struct quipu_event *ce = to_rotate(csub, n), *te = to_rotate(tsub, n);
	uint64_t interval = core->mux_ms[class] * UINT64_C(1000000);
	uint64_t now = core_now(core, n);

	if (!ce && !te) {
		cpu->classes[class].mux_due = NEVER;
		return;
	}
	while (cpu->classes[class].mux_due <= now)
		cpu->classes[class].mux_due +=
			(now - cpu->classes[class].mux_due) / interval * interval + interval;
	pmu_disable(core, n, class);
	set_out(task, class, FLEXIBLE);
	if (ce) {
		set_out(&cpu->ctx, class, FLEXIBLE);
		to_end(csub, ce);
	}
	if (te)
		to_end(tsub, te);
	all_in(core, n, class);
	pmu_enable(core, n, class);
}

/* ---- membership ---- */

static void add_leader(struct context *c, struct quipu_event *e)
{
	link_append(&context_sub(c, e->class)->groups[set_of(e)], &e->group_link);
}

/* The caller has made sure of context_sub(). */
void context_add(struct context *c, struct quipu_event *e)
{
	e->ctx = c;
	e->tstamp = event_clock(e, c);
	link_append(&c->events, &e->ctx_link);
	if (e->leader == e) {
		e->pure_software = is_software(e);
		add_leader(c, e);
	} else {
		link_append(&e->leader->siblings, &e->sibling_link);
		e->leader->nr_siblings++;
		e->leader->generation++;
		e->leader->pure_software &= is_software(e);
	}
	refresh_truth(e);
}

/* A leader leaves: each sibling goes on by itself, in the state it is in. */
static void promote_siblings(struct quipu_event *e)
{
	struct quipu_event *s;

	list_for_each(s, &e->siblings, sibling_link) {
		event_update_time(s);
		link_remove(&s->sibling_link);
		s->leader = s;
		s->pure_software = e->pure_software;
		if (s->ctx)
			add_leader(s->ctx, s);
		refresh_truth(s);
	}
	e->nr_siblings = 0;
	e->generation++;
}

void context_detach_group(struct quipu_event *e)
{
	if (e->leader == e) {
		promote_siblings(e);
		return;
	}
	event_update_time(e);
	link_remove(&e->sibling_link);
	e->leader->nr_siblings--;
	e->leader->generation++;
	e->leader = e;
	refresh_truth(e);
}

void context_remove(struct quipu_event *e, bool group)
{
	struct context *c = e->ctx;
	struct sub *sub;

	if (!c) {
		if (group)
			context_detach_group(e);
		return;
	}
	if (e->state == STATE_ACTIVE) {
		unsigned n = (unsigned)e->oncpu;

		pmu_disable(e->core, n, e->class);
		event_sched_out(e);
		pmu_enable(e->core, n, e->class);
		core_tell(e->core, n);
	}
	event_update_time(e);
	if (group)
		context_detach_group(e);
	link_remove(&e->group_link);
	link_remove(&e->ctx_link);
	sub = sub_of(c, e->class);
	if (sub && link_empty(&sub->groups[FLEXIBLE]))
		sub->rotate = false;
	e->ctx = NULL;
	refresh_truth(e);
}

/* A hardware event joins a group of software events: the whole group moves, siblings first (A11).
 */
void context_move_group(struct quipu_event *leader, unsigned class)
{
	struct context *c = leader->ctx;
	struct quipu_event *s;

	if (c->cpu >= 0) {
		pmu_disable(c->core, (unsigned)c->cpu, leader->class);
		group_sched_out(leader);
		pmu_enable(c->core, (unsigned)c->cpu, leader->class);
	}
	link_remove(&leader->group_link);
	list_for_each(s, &leader->siblings, sibling_link) {
		s->class = class;
		event_set_state(s,
				s->attr.flags & QUIPU_ATTR_DISABLED ? STATE_OFF : STATE_INACTIVE);
	}
	leader->class = class;
	event_set_state(leader,
			leader->attr.flags & QUIPU_ATTR_DISABLED ? STATE_OFF : STATE_INACTIVE);
	add_leader(c, leader);
}

/* A group of a CPU goes to another CPU with all it has counted (perf_pmu_migrate_context). */
void context_migrate(struct quipu_event *leader, struct context *to)
{
	unsigned from = (unsigned)leader->ctx->cpu;
	struct quipu_event *s;

	if (!context_sub(to, leader->class))
		return;
	pmu_disable(leader->core, from, leader->class);
	group_sched_out(leader);
	pmu_enable(leader->core, from, leader->class);
	link_remove(&leader->group_link);
	add_leader(to, leader);
	for (unsigned i = 0; (s = quipu_event_member(leader, i)); i++) {
		event_update_time(s);
		link_remove(&s->ctx_link);
		link_append(&to->events, &s->ctx_link);
		s->ctx = to;
		s->cpu = to->cpu;
		s->tstamp = event_clock(s, to);
		refresh_truth(s);
	}
	core_tell(leader->core, from);
	context_resched(leader);
}

/* ---- enable and disable ---- */

void event_enable(struct quipu_event *e)
{
	if (e->state >= STATE_INACTIVE || e->state < STATE_ERROR || !e->ctx)
		return;
	if (!e->ctx->task && !e->core->cpus[e->ctx->cpu].online)
		return;
	event_set_state(e, STATE_OFF); /* out of ERROR first */
	event_set_state(e, STATE_INACTIVE);
	if (e->leader != e && e->leader->state != STATE_ACTIVE)
		return;
	context_resched(e);
}

void event_disable(struct quipu_event *e)
{
	int cpu = e->oncpu;

	if (e->state < STATE_INACTIVE)
		return;
	if (cpu >= 0)
		pmu_disable(e->core, (unsigned)cpu, e->class);
	if (e->leader == e)
		group_sched_out(e);
	else
		event_sched_out(e);
	event_set_state(e, STATE_OFF);
	if (cpu >= 0) {
		pmu_enable(e->core, (unsigned)cpu, e->class);
		core_tell(e->core, (unsigned)cpu);
	}
}

void core_work(struct quipu_core *core)
{
	struct quipu_event *e;

	if (!core->pending)
		return;
	list_for_each(e, &core->events, core_link) {
		if (!e->pending_disable)
			continue;
		e->pending_disable = false;
		event_disable(e);
	}
	core->pending = 0;
}

void quipu_core_work(struct quipu_core *core)
{
	core_work(core);
}
