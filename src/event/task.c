/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks: what happens to them, and what events notice of it. perf ABI sheet A11 (inherit, exec,
 * exit), A16 (COMM, MMAP, MMAP2, FORK, EXIT, READ, SWITCH records and who gets them).
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define MISC_COMM_EXEC	    (1u << 13)
#define MISC_MMAP_DATA	    (1u << 13)
#define MISC_MMAP_BUILD_ID  (1u << 14)
#define MISC_SWITCH_OUT	    (1u << 13)
#define MISC_SWITCH_PREEMPT (1u << 14)
#define TASK_EVENTS                                                                                \
	(QUIPU_ATTR_COMM | QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2 | QUIPU_ATTR_MMAP_DATA |             \
	 QUIPU_ATTR_TASK)
#define NAME_BYTES 4096u

/* ---- the table ---- */

static struct link *bucket(struct quipu_core *core, pid_t tid)
{
	return &core->tasks[(uint32_t)tid % TASK_BUCKETS];
}

struct quipu_task *quipu_task_find(struct quipu_core *core, pid_t tid)
{
	struct quipu_task *t;

	list_for_each(t, bucket(core, tid), hash_link) {
		if (t->tid == tid && !t->exited)
			return t;
	}
	return NULL;
}

pid_t quipu_task_pid(const struct quipu_task *t)
{
	return t->pid;
}

pid_t quipu_task_tid(const struct quipu_task *t)
{
	return t->tid;
}

void quipu_task_set_uid(struct quipu_task *t, uid_t uid)
{
	t->uid = uid;
}

static void task_free(struct quipu_task *t)
{
	link_remove(&t->hash_link);
	context_free(&t->ctx);
	mappings_drop(t);
	free(t);
}

void task_put(struct quipu_task *t)
{
	if (--t->refs == 0 && t->exited)
		task_free(t);
}

void task_free_all(struct quipu_core *core)
{
	for (unsigned i = 0; i < TASK_BUCKETS; i++) {
		while (!link_empty(&core->tasks[i]))
			task_free(container(core->tasks[i].next, struct quipu_task, hash_link));
	}
}

static void set_comm(struct quipu_task *t, const char *comm)
{
	memset(t->comm, 0, sizeof(t->comm));
	if (comm)
		memcpy(t->comm, comm, strnlen(comm, sizeof(t->comm) - 1));
}

/* ---- side-band records ---- */

struct note {
	uint32_t type;
	uint16_t misc;
	uint64_t wanted; /* any of these attr flags asks for it */
	const void *body;
	size_t len;
	const struct quipu_mapping *mapping; /* MMAP and MMAP2: the body depends on the event */
	const struct quipu_task *task;
	bool sched_switch; /* SWITCH: the body depends on the context */
	uint32_t other_pid, other_tid;
};

static void output_record(struct quipu_event *e, unsigned cpu, uint32_t type, uint16_t misc,
			  size_t len)
{
	uint8_t *p = e->core->record;
	struct perf_event_header h = {.type = type, .misc = misc};
	size_t n = sizeof(h) + len;

	n += sample_trailer(e, cpu, p + n);
	h.size = (uint16_t)n;
	memcpy(p, &h, sizeof(h));
	ring_output(e, p, n, false);
}

static void output_mmap(struct quipu_event *e, unsigned cpu, const struct note *n)
{
	const struct quipu_mapping *m = n->mapping;
	bool exec = m->prot & PROT_EXEC;
	bool two = e->attr.flags & QUIPU_ATTR_MMAP2;
	bool build_id = two && m->build_id && (e->attr.flags & QUIPU_ATTR_BUILD_ID);
	const char *name = m->name ? m->name : "//anon";
	size_t len = strnlen(name, NAME_BYTES - 1);
	uint8_t *p = e->core->record + 8;
	uint32_t ids[2] = {(uint32_t)n->task->pid, (uint32_t)n->task->tid};
	uint64_t range[3] = {m->addr, m->len, m->pgoff};
	uint16_t misc = PERF_RECORD_MISC_USER;

	memcpy(p, ids, 8);
	memcpy(p + 8, range, 24);
	p += 32;
	if (build_id) {
		memset(p, 0, 4);
		p[0] = 20;
		memcpy(p + 4, m->build_id, 20);
		misc |= MISC_MMAP_BUILD_ID;
	} else if (two) {
		memcpy(p, &m->maj, 4);
		memcpy(p + 4, &m->min, 4);
		memcpy(p + 8, &m->ino, 8);
		memcpy(p + 16, &m->ino_generation, 8);
	}
	if (two) {
		memcpy(p + 24, &m->prot, 4);
		memcpy(p + 28, &m->flags, 4);
		p += 32;
	}
	memset(p, 0, (len + 8) & ~(size_t)7);
	memcpy(p, name, len);
	p += (len + 8) & ~(size_t)7;
	if (!exec)
		misc |= MISC_MMAP_DATA;
	output_record(e, cpu, two ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP, misc,
		      (size_t)(p - e->core->record) - 8);
}

static void output_body(struct quipu_event *e, unsigned cpu, const struct note *n)
{
	if (n->mapping) {
		output_mmap(e, cpu, n);
		return;
	}
	if (n->sched_switch) {
		uint32_t other[2] = {n->other_pid, n->other_tid};
		bool wide = !e->ctx->task;

		memcpy(e->core->record + 8, other, 8);
		output_record(e, cpu, wide ? PERF_RECORD_SWITCH_CPU_WIDE : PERF_RECORD_SWITCH,
			      n->misc, wide ? 8 : 0);
		return;
	}
	memcpy(e->core->record + 8, n->body, n->len);
	output_record(e, cpu, n->type, n->misc, n->len);
}

static void output_note(struct quipu_event *e, unsigned cpu, const struct note *n)
{
	if (e->state >= STATE_INACTIVE && event_on_cpu(e, (int)cpu) && e->attr.flags & n->wanted)
		output_body(e, cpu, n);
}

static void note_context(struct context *c, unsigned cpu, const struct note *n)
{
	struct quipu_event *e;

	if (!c)
		return;
	list_for_each(e, &c->events, ctx_link)
		output_note(e, cpu, n);
}

/*
 * To the CPU-wide events of @cpu, then to the events of @task. The id trailers name who acts, even
 * where the owner has taken it off the CPU already.
 */
static void note_all(struct quipu_core *core, struct quipu_task *task, unsigned cpu,
		     const struct note *n)
{
	struct quipu_task *current = core->cpus[cpu].current;

	core->cpus[cpu].current = task;
	note_context(&core->cpus[cpu].ctx, cpu, n);
	note_context(&task->ctx, cpu, n);
	core->cpus[cpu].current = current;
}

static unsigned valid_cpu(const struct quipu_core *core, unsigned cpu)
{
	return cpu < core->config.ncpus ? cpu : 0;
}

struct comm_body {
	uint32_t pid, tid;
	char comm[16];
};

static struct note comm_note(const struct quipu_task *t, struct comm_body *body, bool exec)
{
	size_t len = (strnlen(t->comm, 15) + 8) & ~(size_t)7;

	*body = (struct comm_body){(uint32_t)t->pid, (uint32_t)t->tid, {0}};
	memcpy(body->comm, t->comm, sizeof(body->comm));
	return (struct note){
		.type = PERF_RECORD_COMM,
		.misc = exec ? MISC_COMM_EXEC : 0,
		.wanted = QUIPU_ATTR_COMM,
		.body = body,
		.len = 8 + len,
	};
}

static void note_comm(struct quipu_task *t, unsigned cpu, bool exec)
{
	struct comm_body body;
	struct note n = comm_note(t, &body, exec);

	note_all(t->core, t, cpu, &n);
}

struct task_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

void task_switch_record(struct quipu_task *t, unsigned cpu, bool out, bool preempt)
{
	struct note n = {
		.misc = (uint16_t)((out ? MISC_SWITCH_OUT : 0) |
				   (out && preempt ? MISC_SWITCH_PREEMPT : 0)),
		.wanted = QUIPU_ATTR_CONTEXT_SWITCH,
		.sched_switch =
			true, /* the other side is the idle task: who comes next is not known yet */
	};

	note_all(t->core, t, cpu, &n);
}

/* READ at the end of a clone with inherit_stat. */
static void note_read(struct quipu_event *e, unsigned cpu)
{
	uint64_t values[READ_MAX / 8 + 1];
	uint32_t ids[2] = {(uint32_t)e->task->pid, (uint32_t)e->task->tid};
	size_t len = read_for_record(e, values);

	if (8 + 8 + len + 48 > RECORD_MAX)
		return;
	memcpy(e->core->record + 8, ids, 8);
	memcpy(e->core->record + 16, values, len);
	output_record(e, cpu, PERF_RECORD_READ, 0, 8 + len);
}

/* ---- inherit ---- */

static struct quipu_event *clone_event(struct quipu_event *of, struct quipu_task *child,
				       struct quipu_event *leader)
{
	struct quipu_event *original = of->parent ? of->parent : of;
	struct quipu_event *c;
	int err;

	c = event_alloc(of->core, &original->attr, original->cpu, child, leader, original, &err);
	if (!c)
		return NULL;
	c->class = of->class;
	c->state = of->state >= STATE_INACTIVE ? STATE_INACTIVE : STATE_OFF;
	if (!context_sub(&child->ctx, c->class)) {
		event_free(c);
		return NULL;
	}
	c->owner = 0; /* prctl reaches it through its original */
	context_add(&child->ctx, c);
	link_append(&original->children, &c->child_link);
	return c;
}

static void clone_group(struct quipu_event *leader, struct quipu_task *child)
{
	struct quipu_event *first = clone_event(leader, child, NULL), *s;

	if (!first)
		return;
	list_for_each(s, &leader->siblings, sibling_link)
		clone_event(s, child, first);
	first->pure_software = leader->pure_software;
	first->generation = leader->generation;
}

static bool inherited(const struct quipu_event *leader, bool thread)
{
	uint64_t flags = leader->attr.flags;

	return (flags & QUIPU_ATTR_INHERIT) && (thread || !(flags & QUIPU_ATTR_INHERIT_THREAD)) &&
	       leader->state > STATE_EXIT;
}

/* Group after group, pinned before flexible, so that the child's order is the parent's. */
static void inherit(struct quipu_task *parent, struct quipu_task *child, bool thread)
{
	for (unsigned class = 0; class < parent->ctx.nsubs; class ++) {
		struct sub *sub = parent->ctx.subs[class];
		struct quipu_event *leader;

		for (unsigned which = PINNED; sub && which < SETS; which++) {
			list_for_each(leader, &sub->groups[which], group_link) {
				if (inherited(leader, thread))
					clone_group(leader, child);
			}
		}
	}
}

struct quipu_task *quipu_task_new(struct quipu_core *core, struct quipu_task *parent, pid_t pid,
				  pid_t tid, bool thread, const char *comm, unsigned cpu)
{
	struct quipu_task *t;

	core_work(core);
	cpu = valid_cpu(core, cpu);
	if (quipu_task_find(core, tid))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->core = core;
	t->pid = pid;
	t->tid = tid;
	t->uid = parent ? parent->uid : (uid_t)-1;
	t->cpu = t->last_cpu = -1;
	if (parent)
		t->parent_pid = thread ? parent->parent_pid : parent->pid;
	set_comm(t, comm ? comm : parent ? parent->comm : "");
	context_init(&t->ctx, core, t, -1);
	link_append(bucket(core, tid), &t->hash_link);
	if (parent) {
		struct task_body body = {
			.pid = (uint32_t)pid,
			.ppid = (uint32_t)parent->pid,
			.tid = (uint32_t)tid,
			.ptid = (uint32_t)parent->tid,
			.time = core_now(core, cpu),
		};
		struct note n = {.type = PERF_RECORD_FORK,
				 .wanted = TASK_EVENTS,
				 .body = &body,
				 .len = sizeof(body)};

		if (!thread)
			mappings_inherit(t, parent);
		inherit(parent, t, thread);
		note_all(core, parent, cpu, &n);
	}
	return t;
}

/* ---- exec ---- */

static void enable_on_exec(struct quipu_task *t)
{
	struct quipu_event *e;

	list_for_each(e, &t->ctx.events, ctx_link) {
		if (!(e->attr.flags & QUIPU_ATTR_ENABLE_ON_EXEC))
			continue;
		e->attr.flags &= ~QUIPU_ATTR_ENABLE_ON_EXEC;
		if (e->state >= STATE_INACTIVE)
			continue;
		event_set_state(e, STATE_INACTIVE);
	}
}

/* One reschedule of each class, as after any number of enables; an event of another CPU brings none
 * about. */
static void resched_all(struct quipu_task *t)
{
	struct quipu_event *e;

	for (unsigned class = 0; class < t->ctx.nsubs; class ++) {
		for (int which = PINNED; t->ctx.subs[class] && which < SETS; which++) {
			list_for_each(e, &t->ctx.subs[class]->groups[which], group_link) {
				if (e->state < STATE_INACTIVE || !event_on_cpu(e, t->cpu))
					continue;
				context_resched(e);
				break;
			}
		}
	}
}

static void remove_on_exec(struct quipu_task *t)
{
	struct quipu_event *e;

	list_for_each(e, &t->ctx.events, ctx_link) {
		if (e->attr.flags & QUIPU_ATTR_REMOVE_ON_EXEC)
			event_exit(e);
	}
}

void quipu_task_exec(struct quipu_task *t, const char *comm, unsigned cpu)
{
	core_work(t->core);
	cpu = valid_cpu(t->core, cpu);
	enable_on_exec(t);
	resched_all(t);
	remove_on_exec(t);
	mappings_drop(t);
	set_comm(t, comm);
	note_comm(t, cpu, true);
}

void quipu_task_comm(struct quipu_task *t, const char *comm, unsigned cpu)
{
	core_work(t->core);
	set_comm(t, comm);
	note_comm(t, valid_cpu(t->core, cpu), false);
}

void quipu_task_mmap(struct quipu_task *t, const struct quipu_mapping *m, unsigned cpu)
{
	struct note n = {
		.wanted = m->prot & PROT_EXEC ? QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2
					      : QUIPU_ATTR_MMAP_DATA,
		.mapping = m,
		.task = t,
	};

	core_work(t->core);
	mappings_keep(t, m);
	note_all(t->core, t, valid_cpu(t->core, cpu), &n);
}

/* ---- what was there before ---- */

/* Records of what @t is, where @e counts, as if it happened now; an event that is off hears it too.
 */
static void describe(struct quipu_event *e, struct quipu_task *t)
{
	int cpu = t->cpu >= 0 ? t->cpu : t->last_cpu;
	struct quipu_task *current;
	struct quipu_mapping m;
	struct comm_body body;
	struct note n;

	if (cpu < 0 || !event_on_cpu(e, cpu) || (e->task && e->task->pid != t->pid) ||
	    !mappings_get(t, 0, &m)) /* nothing is known of it */
		return;
	current = e->core->cpus[cpu].current;
	e->core->cpus[cpu].current = t;
	if (e->attr.flags & QUIPU_ATTR_COMM) {
		n = comm_note(t, &body, false);
		output_body(e, (unsigned)cpu, &n);
	}
	for (size_t i = 0;
	     e->attr.flags & (QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2) && mappings_get(t, i, &m); i++) {
		n = (struct note){.mapping = &m, .task = t};
		output_body(e, (unsigned)cpu, &n);
	}
	e->core->cpus[cpu].current = current;
}

void quipu_event_describe(struct quipu_event *e)
{
	struct quipu_core *core = e->core;
	struct quipu_task *t;

	core_work(core);
	for (unsigned i = 0; i < TASK_BUCKETS; i++)
		list_for_each(t, &core->tasks[i], hash_link) {
			if (t->tid == t->pid && !t->exited)
				describe(e, t);
		}
}

/* ---- exit ---- */

static void fold_into_parent(struct quipu_event *e)
{
	struct quipu_event *p = e->parent;

	p->child_count += e->count;
	p->child_enabled += e->enabled;
	p->child_running += e->running;
	p->child_truth += e->truth;
	if (e->reason && !p->reason) {
		p->reason = e->reason;
		e->reason = NULL;
	}
}

/* A clone folds and is gone; an original stays readable, with its last values. */
void event_exit(struct quipu_event *e)
{
	struct quipu_event *p = e->parent;
	unsigned cpu = e->ctx && e->ctx->cpu >= 0	   ? (unsigned)e->ctx->cpu
		       : e->task && e->task->last_cpu >= 0 ? (unsigned)e->task->last_cpu
							   : 0;

	context_remove(e, p != NULL);
	if (!p) {
		event_set_state(e, STATE_EXIT);
		core_wake(e, POLLHUP);
		return;
	}
	if (e->attr.flags & QUIPU_ATTR_INHERIT_STAT)
		note_read(e, cpu);
	fold_into_parent(e);
	event_free(e);
	core_wake(p, p->state <= STATE_EXIT && link_empty(&p->children) ? POLLHUP : POLLIN);
}

/* Off its CPU for good: no switch is counted, nothing comes after. */
static void leave_cpu(struct quipu_task *t)
{
	struct quipu_core *core = t->core;

	if (t->cpu < 0)
		return;
	context_task_out(t);
	core->cpus[t->cpu].current = NULL;
	t->cpu = -1;
}

void quipu_task_exit(struct quipu_task *t, unsigned n_cpu)
{
	struct quipu_core *core = t->core;
	struct task_body body = {
		.pid = (uint32_t)t->pid,
		.ppid = (uint32_t)t->parent_pid,
		.tid = (uint32_t)t->tid,
		.ptid = (uint32_t)t->parent_pid,
	};
	struct note n = {.type = PERF_RECORD_EXIT,
			 .wanted = TASK_EVENTS,
			 .body = &body,
			 .len = sizeof(body)};
	struct quipu_task *current;
	struct cpu *cpu;

	core_work(core);
	if (t->exited)
		return;
	n_cpu = valid_cpu(core, t->cpu >= 0 ? (unsigned)t->cpu : n_cpu);
	cpu = &core->cpus[n_cpu];
	leave_cpu(t);
	t->refs++;
	/* The id trailers name the exiting task, which is no longer on its CPU. */
	current = cpu->current;
	cpu->current = t;
	body.time = core_now(core, n_cpu);
	note_context(&t->ctx, n_cpu, &n);
	while (!link_empty(&t->ctx.events))
		event_exit(container(t->ctx.events.next, struct quipu_event, ctx_link));
	note_context(&cpu->ctx, n_cpu, &n);
	cpu->current = current;
	t->exited = true;
	core_tell(core, n_cpu);
	task_put(t);
}

/* ---- the scheduler's word ---- */

void quipu_sched_in(struct quipu_core *core, unsigned n, struct quipu_task *t)
{
	struct cpu *cpu;

	core_work(core);
	if (n >= core->config.ncpus || !t || t->exited || t->cpu == (int)n)
		return;
	cpu = &core->cpus[n];
	if (t->cpu >= 0)
		quipu_sched_out(core, (unsigned)t->cpu, false);
	if (cpu->current)
		quipu_sched_out(core, n, false);
	cpu->current = t;
	t->cpu = (int)n;
	context_task_in(t, n);
	if (t->last_cpu >= 0 && t->last_cpu != (int)n)
		software_occurred(core, n, PERF_COUNT_SW_CPU_MIGRATIONS, 1, NULL);
	t->last_cpu = (int)n;
	task_switch_record(t, n, false, false);
}

void quipu_sched_out(struct quipu_core *core, unsigned n, bool preempt)
{
	struct quipu_task *t = quipu_core_current(core, n);

	core_work(core);
	if (!t)
		return;
	task_switch_record(t, n, true, preempt);
	software_occurred(core, n, PERF_COUNT_SW_CONTEXT_SWITCHES, 1, NULL);
	core_work(core);
	leave_cpu(t);
}
