/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What passes between the machine and a vCPU without a bell: the deadlines that the hardware floor
 * armed, and the interrupt ring, drained in order. The guest can write on both: a record is looked
 * at as a copy. Contract: src/engine/segment.h; doc/architecture.md "Where an overflow is handled".
 */
#include <string.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

/* ---- deadlines: from the hardware floor to the vCPU ---- */

struct seg_vcpu *session_vcpu(const struct proc *p, unsigned v)
{
	return (struct seg_vcpu *)(p->base + SEG_OFF_VCPUS) + v;
}

struct seg_deadline *session_deadline(const struct proc *p, unsigned v, unsigned slot)
{
	return (struct seg_deadline *)(p->base + SEG_OFF_DEADLINES +
				       ((uint64_t)v * QUIPU_SLOTS + slot) * 128);
}

static struct seg_ring *ring_of(const struct proc *p, unsigned v)
{
	return (struct seg_ring *)(p->base + SEG_OFF_RINGS) + v;
}

/* Threads that take turns on a CPU leave every overflow to the machine, which knows whose turn it
 * is. */
static bool serves_alone(const struct session *s, const struct cpu_state *c)
{
	return s->head->local && c->threads <= 1;
}

/* May the engine process serve this overflow by itself? Only if nothing but arithmetic follows from
 * it. */
static struct quipu_event *local_event(const struct session *s, unsigned cpu, unsigned slot)
{
	const struct want *w = &s->cpus[cpu].want[slot];
	struct quipu_event *e;

	if (!serves_alone(s, &s->cpus[cpu]) || w->d.overflow == QUIPU_OVERFLOW_BELL ||
	    (w->d.flags & QUIPU_DEADLINE_TIMER))
		return NULL;
	e = quipu_core_slot_event(s->core, cpu, slot);
	return e && !quipu_event_needs_bell(e) ? e : NULL;
}

/* Does its event want a branch stack of calls? */
static bool calls_alone(const struct session *s, unsigned cpu, unsigned slot)
{
	struct quipu_event *e = quipu_core_slot_event(s->core, cpu, slot);
	const struct quipu_attr *a = e ? quipu_event_attr(e) : NULL;

	return a && (a->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
	       (a->branch_sample_type & (PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_ANY_CALL)) ==
		       PERF_SAMPLE_BRANCH_ANY_CALL;
}

/* An event that the engine process reloads: the driver's arithmetic, and where the last tick was.
 */
static void write_reload(struct seg_deadline *d, struct quipu_event *e)
{
	d->reload = quipu_event_hw(e)->reload;
	d->since = d->at - d->reload.programmed - (uint64_t)quipu_event_since_tick(e);
}

/*
 * Until when (ns) may the engine process serve the tick by itself? As long as all there is to do is
 * to steer events that it reloads by itself. 0: not at all.
 */
static uint64_t tick_alone(const struct session *s, const struct cpu_state *c)
{
	unsigned cpu = (unsigned)(c - s->cpus), steered;
	uint64_t until;

	if (!serves_alone(s, c))
		return 0;
	steered = quipu_system_steers(s->system, cpu, &until);
	if (!steered)
		return 0;
	for (uint64_t m = c->used & bits_mask(QUIPU_SLOTS_HARDWARE); m; m &= m - 1) {
		struct quipu_event *e =
			c->want[bits_low(m)].armed ? local_event(s, cpu, bits_low(m)) : NULL;

		steered -= e && quipu_event_hw(e)->reload.sample_freq;
	}
	return steered ? 0 : until;
}

static void write_tick(struct session *s, struct cpu_state *c, struct seg_deadline *d)
{
	struct want *w = &c->want[QUIPU_SLOT_TICK];

	w->have_until = tick_alone(s, c);
	if (w->have_until <= quipu_system_next_timer(s->system, (unsigned)(c - s->cpus)))
		return;
	d->overflow = QUIPU_OVERFLOW_TICK;
	d->reload = (struct quipu_reload){.tick_ns = 1000000000 / s->machine->tick_hz};
	d->since = w->have_until;
}

static void write_deadline(struct session *s, struct cpu_state *c, struct proc *p, unsigned v,
			   unsigned slot)
{
	struct seg_deadline *d = session_deadline(p, v, slot);
	struct want *w = &c->want[slot];
	struct quipu_event *e;

	w->have_armed = w->armed;
	w->have_at = w->d.at;
	if (!w->armed) {
		d->armed = 0;
		return;
	}
	e = w->d.overflow == QUIPU_OVERFLOW_STEADY ? NULL
						   : local_event(s, (unsigned)(c - s->cpus), slot);
	d->at = w->d.at - c->gone[w->index];
	d->index = w->index;
	d->overflow = (uint8_t)(e ? w->d.overflow : QUIPU_OVERFLOW_BELL);
	d->sampling =
		SEG_SAMPLED |
		(calls_alone(s, (unsigned)(c - s->cpus), slot) ? (unsigned)SEG_SAMPLED_CALLS : 0);
	if (e)
		write_reload(d, e);
	if (slot == QUIPU_SLOT_TICK)
		write_tick(s, c, d);
	if (serves_alone(s, c) && w->d.overflow == QUIPU_OVERFLOW_STEADY) {
		d->overflow = QUIPU_OVERFLOW_STEADY;
		d->reload = (struct quipu_reload){.sample_period = w->d.step,
						  .sample_freq = w->d.per,
						  .freq_count = w->d.turn};
	}
	d->armed = 1;
}

/* What turns the vCPU's cycles into its CPU's clock: threads that were there before, and idle time
 * jumped over. */
static void write_clock(struct session *s, const struct cpu_state *c, struct seg_vcpu *vcpu)
{
	unsigned cpu = (unsigned)(c - s->cpus);
	uint64_t gone = c->gone[SEG_LANE_CYCLES] + quipu_system_spent(s->system, cpu),
		 cycles = gone + c->view[SEG_LANE_CYCLES];

	vcpu->clock_cycles = gone;
	vcpu->clock_ns =
		quipu_system_now(s->system, cpu) - bits_muldiv(cycles, 1000000000, s->machine->hz);
}

/* The vCPU waits (or has not run yet): give it the deadlines of its CPU, and its clock. */
void session_flush_deadlines(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	for (uint64_t m = c->used; m; m &= m - 1)
		write_deadline(s, c, p, v, bits_low(m));
	write_clock(s, c, session_vcpu(p, v));
	session_turns_deadline(s, c, p, v);
	__atomic_store_n(&session_vcpu(p, v)->deadlines_changed, 1, __ATOMIC_RELEASE);
}

bool session_deadlines_differ(const struct session *s, const struct cpu_state *c)
{
	const struct want *tick = &c->want[QUIPU_SLOT_TICK];

	if (tick->armed && tick->have_until != tick_alone(s, c))
		return true;
	for (uint64_t m = c->used; m; m &= m - 1) {
		const struct want *w = &c->want[bits_low(m)];

		if (w->armed != w->have_armed || (w->armed && w->d.at != w->have_at))
			return true;
	}
	return false;
}

/*
 * A record of a vCPU that runs on was served. What the driver left behind must be what the engine
 * process already did; anything else (a control call came in between) is put right at the vCPU's
 * next fold.
 */
static void check_deadlines(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	if (!session_deadlines_differ(s, c))
		return;
	__atomic_store_n(&session_vcpu(p, v)->request, 1, __ATOMIC_RELEASE);
	s->facts.local_mismatches++;
}

/* ---- the interrupt ring ---- */

/* The longest record: an interrupt with a full call chain, branch stack, scalars and every slot. */
#define RECORD_MAX 8192

static struct quipu_task *task_of(const struct proc *p, unsigned v)
{
	return p->tasks[v];
}

#define UNITS_MOST (UINT64_C(1) << 20) /* pages: 64 GiB */

/* @what comes from the guest's process: an activity that is none is nothing. */
static void serve_activity(struct session *s, struct quipu_interrupt *at, uint64_t what)
{
	enum quipu_activity kind = (enum quipu_activity)(what & 0xff);
	uint64_t units = what >> 8;

	at->slots = at->addr = 0;
	if ((what & 0xff) >= QUIPU_ACTIVITIES || !(s->head->watches >> kind & 1))
		return;
	quipu_system_activity(s->system, at, kind, units < UNITS_MOST ? units : UNITS_MOST);
}

static void serve_interrupt(struct session *s, struct proc *p, unsigned v,
			    const struct seg_interrupt *r)
{
	struct cpu_state *c = p->cpu[v];
	uint64_t local = r->slots & ~r->bell;
	const uint64_t *next = r->words, *chain = next + r->nr_next;
	const uint64_t *scalars = chain + r->nr_chain;
	const uint64_t *branches = scalars + (r->has_scalars ? SEG_SCALARS : 0);
	const uint64_t *regs = branches + 3 * (size_t)r->nr_branches;
	struct quipu_interrupt intr = {
		.slots = r->slots & ~bits_one(SEG_SLOT_TURN),
		.pc = r->pc,
		.addr = r->addr,
		.insn = r->insn.class < QUIPU_INSN_CLASSES ? r->insn : (struct quipu_insn){0},
		.pid = p->seg->pid,
		.tid = session_vcpu(p, v)->tid,
		.chain = r->nr_chain ? chain : NULL,
		.nr_chain = r->nr_chain,
		.branches = r->nr_branches ? branches : NULL,
		.nr_branches = r->nr_branches,
		.user = {r->regs, r->regs ? regs : NULL},
	};
	unsigned i = 0;

	if (!c)
		return;
	intr.cpu = (unsigned)(c - s->cpus);
	session_view_record(s, c, r->head.lane, r->has_scalars ? scalars : NULL);
	for (uint64_t m = local; m && i < r->nr_next; m &= m - 1, i++) {
		struct want *w = &c->want[bits_low(m)];

		w->have_at = next[i] + c->gone[w->index];
	}
	if (r->slots >> QUIPU_SLOT_ACTIVITY & 1)
		serve_activity(s, &intr, r->addr);
	else if (s->signals.interrupt && intr.slots)
		s->signals.interrupt(s->signals.arg, &intr);
	if (!r->bell)
		check_deadlines(s, c, p, v);
}

static void serve_mmap(struct session *s, struct proc *p, unsigned v, const struct seg_mmap *r)
{
	struct cpu_state *c = p->cpu[v];
	struct quipu_mapping m = {
		.addr = r->addr,
		.len = r->len,
		.pgoff = r->pgoff,
		.maj = r->maj,
		.min = r->min,
		.ino = r->ino,
		.prot = r->prot,
		.flags = r->flags,
		.name = r->path,
	};

	if (c && task_of(p, v)) {
		session_view_record(s, c, r->head.lane, NULL);
		quipu_task_mmap(task_of(p, v), &m, (unsigned)(c - s->cpus));
	}
}

static void serve_comm(struct session *s, struct proc *p, unsigned v, const struct seg_comm *r)
{
	struct cpu_state *c = p->cpu[v];

	/* The name that comes before the first instruction is the exec's own (serve_start). */
	if (!c || !task_of(p, v) || !p->started)
		return;
	session_view_record(s, c, r->head.lane, NULL);
	quipu_task_comm(task_of(p, v), r->comm, (unsigned)(c - s->cpus));
}

/* Is the record whole? The guest can write anywhere in its process, so this looks at a copy. */
static bool record_valid(const struct seg_record *r)
{
	switch (r->type) {
	case SEG_REC_INTERRUPT: {
		const struct seg_interrupt *i = (const struct seg_interrupt *)r;
		uint64_t words;

		if (r->size < sizeof(*i) || i->nr_chain > RECORD_MAX / 8 ||
		    i->nr_branches > RECORD_MAX / 8 || i->nr_next > QUIPU_SLOTS)
			return false;
		words = (uint64_t)i->nr_next + i->nr_chain + (i->has_scalars ? SEG_SCALARS : 0) +
			3 * (uint64_t)i->nr_branches + bits_count(i->regs);
		return sizeof(*i) + 8 * words <= r->size;
	}
	case SEG_REC_MMAP:
		return r->size > sizeof(struct seg_mmap) &&
		       memchr(((const struct seg_mmap *)r)->path, 0,
			      r->size - sizeof(struct seg_mmap));
	case SEG_REC_COMM:
		return r->size >= sizeof(struct seg_comm) &&
		       !((const struct seg_comm *)r)->comm[15];
	}
	return false;
}

static void serve_record(struct session *s, struct proc *p, unsigned v, const struct seg_record *r)
{
	switch (r->type) {
	case SEG_REC_INTERRUPT: serve_interrupt(s, p, v, (const struct seg_interrupt *)r); break;
	case SEG_REC_MMAP: serve_mmap(s, p, v, (const struct seg_mmap *)r); break;
	case SEG_REC_COMM: serve_comm(s, p, v, (const struct seg_comm *)r); break;
	}
}

/* One record at @at; returns its size, 0 when the ring was scribbled over. */
static uint64_t drain_one(struct session *s, struct proc *p, unsigned v, const uint8_t *at,
			  uint64_t left)
{
	union {
		struct seg_record record;
		uint8_t bytes[RECORD_MAX];
	} copy;
	uint64_t size;

	if (left < 8)
		return 0;
	size = ((const struct seg_record *)at)->size;
	if (size < 8 || size % 8 || size > left)
		return 0;
	if (((const struct seg_record *)at)->type == SEG_REC_PAD)
		return size;
	if (size < sizeof(copy.record) || size > RECORD_MAX)
		return 0;
	memcpy(&copy, at, size);
	copy.record.size = (uint32_t)size;
	if (!record_valid(&copy.record))
		return 0;
	serve_record(s, p, v, &copy.record);
	return size;
}

/* The machine is about to hear of thread @v: it is the one on its CPU now. */
void session_step_on(struct session *s, struct proc *p, unsigned v)
{
	struct cpu_state *c = p->cpu[v];
	unsigned cpu;

	if (!c || (c->on == p && c->on_vcpu == v))
		return;
	cpu = (unsigned)(c - s->cpus);
	if (c->on) {
		memcpy(c->on->seen[c->on_vcpu], c->view, sizeof(c->view));
		quipu_system_stop(s->system, cpu, true);
	}
	session_view_switch(c, p->seen[v]);
	c->on = p;
	c->on_vcpu = v;
	quipu_system_run(s->system, cpu, p->tasks[v], 0);
}

void session_drain(struct session *s, struct proc *p, unsigned v)
{
	struct seg_ring *ring = ring_of(p, v);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = p->tail[v];

	if (tail != head)
		session_step_on(s, p, v);
	while (tail != head) {
		uint64_t at = tail % SEG_RING_BYTES, left = head - tail, size = 0;

		if (left > SEG_RING_BYTES - at)
			left = SEG_RING_BYTES - at;
		if (head - tail <= SEG_RING_BYTES)
			size = drain_one(s, p, v, ring->data + at, left);
		if (!size) {
			s->facts.records_lost++;
			tail = head;
			break;
		}
		tail += size;
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	p->tail[v] = tail;
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	s->facts.records_lost += ring->lost - p->lost_seen[v];
	p->lost_seen[v] = ring->lost;
}
