/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fold: what a vCPU does when a lane reached its next deadline or the quantum. It brings the
 * 64-bit values up to date, finds the instruction at which each deadline was reached, writes the
 * interrupt record, reloads or rings, and sets the lanes up for the next stretch. Engine
 * sheet 6.2, 6.4; doc/architecture.md "Where an overflow is handled".
 *
 * Bells and rings only while seq is even: a reader would spin for the whole wait.
 */
#include <string.h>

#include <quipu/bits.h>

#include "platform/riscv/overflow.h"
#include "models.h"
#include "plugin.h"

#define FOLDS	   1024u /* after so many it is asked whether the machine lives */
#define MOST_WORDS 900	 /* of a record after its head: it stays below the machine's 8 KiB */

#define MOST_CHAIN (MOST_WORDS - QUIPU_SLOTS - SEG_SCALARS - 3 * BRANCHES - SEG_REGS_MOST)

/* How an overflow is served in this process; indexed by enum quipu_overflow_kind. */
static uint64_t (*const local_overflow[])(struct quipu_reload *, uint64_t now_ns) = {
	[QUIPU_OVERFLOW_RISCV] = quipu_riscv_overflow,
	[QUIPU_OVERFLOW_RELOAD] = quipu_reload_overflow,
	[QUIPU_OVERFLOW_STEADY] = quipu_reload_steady,
};

#define NLOCAL (sizeof(local_overflow) / sizeof(local_overflow[0]))

/* ---- lanes ---- */

static void seq_begin(struct seg_vcpu *v)
{
	__atomic_store_n(&v->seq, v->seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void seq_end(struct seg_vcpu *v)
{
	__atomic_store_n(&v->seq, v->seq + 1, __ATOMIC_RELEASE);
}

/* Lanes such that the nearest deadline, or the quantum, sets the top bit. */
static void reload(struct seg_vcpu *v)
{
	int64_t quantum = (int64_t)engine.quantum;

	for (unsigned k = 0; k < SEG_LANES; k++) {
		int64_t room = v->nearest[k] - v->base[k];

		if (room > quantum)
			room = quantum;
		if (room < 1)
			room = 1;
		v->acc[k] = v->pre[k] = (uint16_t)(32768 - room);
	}
	if (__builtin_expect(v->nudge, 0)) /* every block costs cycles: the next one folds */
		v->acc[SEG_LANE_CYCLES] = v->pre[SEG_LANE_CYCLES] = 32767;
}

static void publish(struct seg_vcpu *v)
{
	seq_begin(v);
	for (unsigned k = 0; k < SEG_LANES; k++) {
		v->base[k] += (uint16_t)(v->acc[k] - v->pre[k]);
		v->acc[k] = v->pre[k];
	}
	seq_end(v);
}

static void set_up(struct seg_vcpu *v)
{
	seq_begin(v);
	reload(v);
	seq_end(v);
}

void fold_values(const struct seg_vcpu *v, uint64_t lane[SEG_LANES])
{
	for (unsigned k = 0; k < SEG_LANES; k++)
		lane[k] = (uint64_t)v->base[k] + (uint16_t)(v->acc[k] - v->pre[k]);
}

void fold_zero(struct seg_vcpu *v)
{
	seq_begin(v);
	for (unsigned k = 0; k < SEG_LANES; k++) {
		v->base[k] = 0;
		v->acc[k] = v->pre[k] = 32767;
	}
	seq_end(v);
	memset(v->scalar, 0, sizeof(v->scalar));
	memset(vcpu_private(v)->told, 0, sizeof(vcpu_private(v)->told));
	v->syscalls = 0;
	for (unsigned i = 0; i < INDEXES; i++)
		v->nearest[i] = INT64_MAX;
}

/* ---- deadlines ---- */

static int64_t value_now(const struct seg_vcpu *v, unsigned index)
{
	return index < SEG_LANES ? v->base[index] : (int64_t)v->scalar[index - SEG_LANES];
}

/* A deadline is a point of a wrapping 64-bit count: past or future by the sign of the distance. */
static int64_t point(const struct seg_deadline *d, int64_t now)
{
	int64_t at;

	if (__builtin_add_overflow(now, (int64_t)(d->at - (uint64_t)now), &at))
		return INT64_MAX;
	return at;
}

static void find_nearest(struct seg_vcpu *v, const struct vcpu *p)
{
	for (unsigned i = 0; i < INDEXES; i++)
		v->nearest[i] = INT64_MAX;
	for (unsigned i = 0; i < p->narmed; i++) {
		const struct seg_deadline *d = vcpu_deadline(vcpu_index(v), p->armed[i]);
		int64_t at;

		if (!d->armed)
			continue;
		at = point(d, value_now(v, d->index));
		if (at < v->nearest[d->index])
			v->nearest[d->index] = at;
	}
	models_watch(v);
}

/* The machine changed deadlines: look at all slots. */
static void scan_deadlines(struct seg_vcpu *v, struct vcpu *p)
{
	p->narmed = 0;
	for (unsigned slot = 0; engine.slot >= 0 && slot < QUIPU_SLOTS; slot++) {
		const struct seg_deadline *d = vcpu_deadline(vcpu_index(v), slot);

		if (d->armed && d->index < INDEXES)
			p->armed[p->narmed++] = (uint8_t)slot;
	}
	find_nearest(v, p);
}

static void after_bell(struct seg_vcpu *v, struct vcpu *p)
{
	if (__atomic_exchange_n(&v->deadlines_changed, 0, __ATOMIC_ACQUIRE))
		scan_deadlines(v, p);
}

/* ---- an instruction that reached deadlines ---- */

struct event {
	struct seg_vcpu *v;
	struct vcpu *p;
	int64_t now[INDEXES];		/* values at the completion of the instruction */
	uint64_t addr;			/* what it accessed, 0: not known */
	const struct step *step;	/* where the instruction is; NULL: outside of blocks */
	uint32_t events;		/* what is known of it, enum quipu_insn_event */
	const struct quipu_insn *known; /* all of it; NULL: as step and events say */
};

struct reached {
	uint64_t slots, bell;
	uint16_t sampling; /* enum seg_sampling */
	unsigned nr_next;
	uint64_t next[QUIPU_SLOTS];
	uint64_t was[QUIPU_SLOTS]; /* at, of those that ring */
};

static bool is_local(const struct seg_deadline *d)
{
	return engine.head->local && d->overflow < NLOCAL && local_overflow[d->overflow];
}

/*
 * A value as the machine will show it at this instruction. There it never goes back, and what the
 * models found in a block comes behind what the block's instructions reached.
 */
static int64_t shown(const struct event *e, unsigned index)
{
	return e->now[index] > e->p->told[index] ? e->now[index] : e->p->told[index];
}

/* The clock of the vCPU's CPU: frequency events steer by it. */
static uint64_t clock_now(const struct event *e)
{
	uint64_t cycles = e->v->clock_cycles + (uint64_t)shown(e, SEG_LANE_CYCLES);

	return e->v->clock_ns + bits_muldiv(cycles, 1000000000, engine.head->hz);
}

/* Steer the frequency events that are served here. False, and nothing is changed: the driver would
 * have to move a deadline. */
static bool steer(struct event *e, bool commit)
{
	for (unsigned i = 0; i < e->p->narmed; i++) {
		struct seg_deadline *d = vcpu_deadline(vcpu_index(e->v), e->p->armed[i]);
		int64_t now = shown(e, d->index);
		struct quipu_reload r = d->reload;
		int64_t counted = (int64_t)((uint64_t)now - d->since);

		if (!d->armed || !is_local(d) || !r.sample_freq)
			continue;
		if (!quipu_reload_tick(&r, r.programmed - (d->at - (uint64_t)now),
				       counted > 0 ? (uint64_t)counted : 0))
			return false;
		if (commit) {
			d->reload = r;
			d->since = (uint64_t)now;
		}
	}
	return true;
}

/* The first cycle of the vCPU at which its CPU's clock shows @ns. */
static uint64_t cycles_at(const struct event *e, uint64_t ns)
{
	const struct seg_vcpu *v = e->v;
	unsigned __int128 cycles = (unsigned __int128)(ns - v->clock_ns) * engine.head->hz;

	return (uint64_t)((cycles + 999999999) / 1000000000) - v->clock_cycles;
}

/* The core's tick, where nothing follows from it but arithmetic. */
static bool tick(struct event *e, struct seg_deadline *d)
{
	uint64_t ns = d->reload.tick_ns, next;

	if (d->overflow != QUIPU_OVERFLOW_TICK || !engine.head->local || !ns || !steer(e, false))
		return false;
	steer(e, true);
	next = (clock_now(e) / ns + 1) * ns;
	if (next >= d->since) {
		d->overflow = QUIPU_OVERFLOW_BELL;
		next = d->since;
	}
	d->at = cycles_at(e, next);
	return true;
}

static void reach(struct event *e, unsigned slot, struct seg_deadline *d, struct reached *r)
{
	uint64_t distance;

	r->slots |= bits_one(slot);
	if (tick(e, d)) {
		r->next[r->nr_next++] = d->at;
		return;
	}
	r->sampling |= d->sampling;
	if (!is_local(d)) {
		r->bell |= bits_one(slot);
		r->was[slot] = d->at;
		return;
	}
	distance = local_overflow[d->overflow](&d->reload, clock_now(e));
	d->at += distance ? distance : 1;
	r->next[r->nr_next++] = d->at;
}

static void find_reached(struct event *e, struct reached *r)
{
	r->slots = r->bell = 0;
	r->sampling = 0;
	r->nr_next = 0;
	for (unsigned i = 0; i < e->p->narmed; i++) {
		unsigned slot = e->p->armed[i];
		struct seg_deadline *d = vcpu_deadline(vcpu_index(e->v), slot);

		if (d->armed && point(d, e->now[d->index]) <= e->now[d->index])
			reach(e, slot, d, r);
	}
}

static unsigned chain_of(const struct seg_vcpu *v, bool of_prev, uint64_t *chain, unsigned max)
{
	uint64_t top = of_prev ? v->priv[HOT_WAS_TOP] : v->priv[HOT_TOP];

	if (!(engine.features & SEG_STACK) || !v->priv[HOT_FRAMES])
		return 0;
	return stack_chain(vcpu_frames(v), top, chain, max);
}

/* Newest first: from, to, flags (struct perf_branch_entry; whether it was predicted is not told).
 */
static unsigned branches_of(const struct vcpu *p, bool calls, uint64_t *out)
{
	const struct taken *last = calls ? p->calls : p->branches;
	uint64_t had = calls ? p->ncalls : p->nbranches;
	unsigned n = had < BRANCHES ? (unsigned)had : BRANCHES;

	if (!(engine.features & SEG_BRANCHES))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const struct taken *b = &last[(had - 1 - i) % BRANCHES];

		*out++ = b->from;
		*out++ = b->to;
		*out++ = 0;
	}
	return n;
}

/* Only when a record is written: nothing of it costs where nothing overflows. */
static void describe(const struct event *e, uint64_t pc, bool of_prev, struct quipu_insn *insn)
{
	const struct step *s = e->step;
	const struct block *b = !s ? NULL : of_prev ? s->prev : s->block;
	int index = b ? block_index(b, pc) : -1;

	*insn = e->known ? *e->known : (struct quipu_insn){.events = e->events};
	if (e->known || index < 0)
		return;
	block_describe(b, (unsigned)index, insn);
	if (e->p->pending && pc == e->p->pending->cti + 4)
		insn->next = 0; /* a delay slot: its transfer is not resolved yet */
	if (!of_prev)
		return;
	insn->next = s->block ? s->block->pc : 0;
	insn->events |= QUIPU_INSN_RESOLVED | (s->taken ? QUIPU_INSN_TAKEN : 0u) |
			(s->missed ? QUIPU_INSN_MISPREDICTED : 0u);
}

static void write_record(struct event *e, const struct reached *r, uint64_t pc, bool of_prev)
{
	unsigned nscalars = engine.rates.nscalars ? SEG_SCALARS : 0,
		 chain_max = engine.head->max_stack, size;
	uint64_t words[MOST_WORDS], *w = words;
	struct seg_interrupt *rec;
	unsigned nr_chain = 0, nr_branches = 0;
	uint64_t regs = 0;

	memcpy(w, r->next, r->nr_next * sizeof(*w));
	w += r->nr_next;
	if (chain_max > MOST_CHAIN)
		chain_max = MOST_CHAIN;
	if (r->sampling)
		nr_chain = chain_of(e->v, of_prev, w, chain_max);
	w += nr_chain;
	for (unsigned k = 0; k < nscalars; k++)
		*w++ = (uint64_t)e->now[SEG_LANES + k];
	if (r->sampling)
		nr_branches = branches_of(e->p, r->sampling & SEG_SAMPLED_CALLS, w);
	w += 3 * nr_branches;
	if (r->sampling)
		w += regs_of(vcpu_index(e->v), pc, of_prev, &regs, w);
	size = (unsigned)(sizeof(*rec) + (size_t)(w - words) * sizeof(*w));
	rec = ring_reserve(e->v, size);
	if (!rec)
		return;
	rec->head.type = SEG_REC_INTERRUPT;
	rec->head.size = size;
	memcpy(rec->head.lane, e->now, sizeof(rec->head.lane));
	for (unsigned i = 0; i < SEG_LANES + nscalars; i++)
		e->p->told[i] = shown(e, i);
	rec->slots = r->slots;
	rec->bell = r->bell;
	rec->pc = pc;
	rec->addr = e->addr;
	describe(e, pc, of_prev, &rec->insn);
	rec->nr_chain = nr_chain;
	rec->nr_branches = nr_branches;
	rec->nr_next = r->nr_next;
	rec->has_scalars = nscalars != 0;
	rec->regs = regs;
	memcpy(rec->words, words, (size_t)(w - words) * sizeof(*w));
	ring_commit(e->v, size);
}

/* What the machine left as it was would be reached again at once, for ever: nobody serves it any
 * more. */
static void drop_unserved(const struct event *e, const struct reached *r)
{
	for (uint64_t m = r->bell; m; m &= m - 1) {
		unsigned slot = bits_low(m);
		struct seg_deadline *d = vcpu_deadline(vcpu_index(e->v), slot);

		if (d->armed && d->at == r->was[slot])
			d->armed = 0;
	}
}

/* Called by the walk at an instruction where some value reached its nearest deadline. */
static void serve(void *arg, uint64_t pc, bool of_prev)
{
	struct event *e = arg;
	struct reached r;

	for (;;) {
		/*
		 * Room first: a ring that is full waits for the machine, which writes the deadlines
		 * as it knows them, so none may have been moved on for a record that is not in the
		 * ring yet.
		 */
		if (ring_room(e->v, sizeof(struct seg_interrupt) + sizeof(uint64_t) * MOST_WORDS))
			after_bell(e->v, e->p);
		find_reached(e, &r);
		if (!r.slots)
			break;
		write_record(e, &r, pc, of_prev);
		if (r.bell) {
			bell_ring(e->v, SEG_BELL_DEADLINE, 0, r.bell, pc);
			drop_unserved(e, &r);
			after_bell(e->v, e->p);
		}
	}
	find_nearest(e->v, e->p);
}

/* ---- folds ---- */

static bool due(const struct seg_vcpu *v)
{
	bool hit = false;

	for (unsigned k = 0; k < SEG_LANES; k++)
		hit |= v->base[k] >= v->nearest[k];
	for (unsigned k = 0; k < engine.rates.nscalars; k++)
		hit |= (int64_t)v->scalar[k] >= v->nearest[SEG_LANES + k];
	return hit;
}

static void values_before(const struct seg_vcpu *v, const struct step *s, int64_t now[INDEXES])
{
	int64_t sum[INDEXES] = {0};

	step_sum(&engine.rates, s, sum);
	for (unsigned i = 0; i < INDEXES; i++)
		now[i] = value_now(v, i) - sum[i];
}

/* The first block of a vCPU: nothing of it may show before the machine has placed the thread. */
static void begin(struct seg_vcpu *v, struct vcpu *p, const struct step *s)
{
	int64_t sum[INDEXES] = {0};

	step_sum(&engine.rates, s, sum);
	seq_begin(v);
	for (unsigned k = 0; k < SEG_LANES; k++)
		v->acc[k] = v->pre[k];
	seq_end(v);
	for (unsigned k = 0; k < SEG_SCALARS; k++)
		v->scalar[k] -= (uint64_t)sum[SEG_LANES + k];
	process_begin(v);
	__atomic_store_n(&v->deadlines_changed, 0, __ATOMIC_RELAXED);
	scan_deadlines(v, p);
	for (unsigned k = 0; k < SEG_SCALARS; k++)
		v->scalar[k] += (uint64_t)sum[SEG_LANES + k];
	seq_begin(v);
	for (unsigned k = 0; k < SEG_LANES; k++)
		v->base[k] += sum[k];
	seq_end(v);
}

static void serve_request(struct seg_vcpu *v, struct vcpu *p, uint64_t pc)
{
	if (!__atomic_load_n(&v->request, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&v->request, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < INDEXES; i++) {
		if (p->told[i] < value_now(v, i))
			p->told[i] = value_now(v, i);
	}
	bell_ring(v, SEG_BELL_REQUEST, 0, 0, pc);
	after_bell(v, p);
}

/* It was let go for no more than the block in which it stood (session_turns.c). */
static void stop_if_nudged(struct seg_vcpu *v, struct vcpu *p)
{
	if (!__atomic_load_n(&v->nudge, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&v->nudge, 0, __ATOMIC_RELAXED);
	bell_ring(v, SEG_BELL_TURN, 0, 0, 0);
	after_bell(v, p);
}

/* The block before is complete. */
static void label(struct seg_vcpu *v, const struct step *s)
{
	int64_t now[INDEXES];

	if (s) {
		values_before(v, s, now);
	} else {
		for (unsigned i = 0; i < INDEXES; i++)
			now[i] = value_now(v, i);
	}
	label_step(v, s, now);
}

void fold_labelled(struct seg_vcpu *v, const int64_t now[INDEXES], uint64_t pc, uint64_t addr,
		   const struct quipu_insn *insn)
{
	struct event e = {.v = v, .p = vcpu_private(v), .addr = addr, .known = insn};

	memcpy(e.now, now, sizeof(e.now));
	serve(&e, pc, false);
}

void fold_step(struct seg_vcpu *v, const struct step *s)
{
	struct vcpu *p = vcpu_private(v);

	if (p->start) {
		begin(v, p, s);
	} else {
		publish(v);
		stop_if_nudged(v, p);
	}
	if (engine.features & SEG_LABEL)
		label(v, s);
	if (due(v)) {
		struct event e = {.v = v, .p = p, .step = s};

		values_before(v, s, e.now);
		step_walk(&engine.rates, s, e.now, v->nearest, serve, &e);
	}
	/* After the walk: what the machine sees now are the values at the block's end, and counts
	 * only grow. */
	serve_request(v, p, s->block->cti);
	set_up(v);
	if (engine.features & SEG_REGS)
		regs_begun(vcpu_index(v));
	if (!(++p->folds % FOLDS))
		bell_look();
	select_look();
}

void fold_request(struct seg_vcpu *v, uint64_t pc)
{
	struct vcpu *p = vcpu_private(v);

	publish(v);
	if (p->start) {
		__atomic_store_n(&v->request, 0, __ATOMIC_RELAXED);
		process_begin(v);
		__atomic_store_n(&v->deadlines_changed, 0, __ATOMIC_RELAXED);
		scan_deadlines(v, p);
	} else {
		stop_if_nudged(v, p);
		serve_request(v, p, pc);
	}
	set_up(v);
}

/*
 * What the block's other instructions count was added when it was entered, and looked at then. Only
 * the cycles can be reached by an instruction behind the one that lost some.
 */
void fold_access(struct seg_vcpu *v, const struct block *t, unsigned index, uint64_t addr,
		 uint32_t events)
{
	struct step rest = {.block = t, .skip = index + 1};
	struct event e = {
		.v = v, .p = vcpu_private(v), .addr = addr, .step = &rest, .events = events};

	publish(v);
	if (index < t->n && due(v)) {
		values_before(v, &rest, e.now);
		if (step_reached(&engine.rates, e.now, v->nearest))
			serve(&e, block_insn(t, index), false);
		e.addr = e.events = 0;
		step_walk(&engine.rates, &rest, e.now, v->nearest, serve, &e);
	}
	set_up(v);
}

/*
 * No end of the block: who waits for that is not kept waiting by each iteration, and what the
 * machine asks for is told then.
 */
void fold_iteration(struct seg_vcpu *v, const struct block *t, bool first)
{
	struct step s = {.block = t, .again = true, .first = first};
	struct event e = {.v = v, .p = vcpu_private(v), .step = &s};

	publish(v);
	if (engine.features & SEG_LABEL)
		label(v, &s);
	if (due(v)) {
		values_before(v, &s, e.now);
		step_walk(&engine.rates, &s, e.now, v->nearest, serve, &e);
	}
	set_up(v);
}

void fold_activity(struct seg_vcpu *v, const struct block *t, unsigned index, uint64_t pc,
		   unsigned what, uint64_t units)
{
	bool inside = t && index < t->n;
	struct step rest = {.block = t, .skip = index + 1};
	struct event e = {.v = v, .p = vcpu_private(v), .step = inside ? &rest : NULL};
	struct reached r = {.slots = bits_one(QUIPU_SLOT_ACTIVITY), .sampling = SEG_SAMPLED};

	publish(v);
	if (ring_room(v, sizeof(struct seg_interrupt) + sizeof(uint64_t) * MOST_WORDS))
		after_bell(v, e.p);
	if (inside)
		values_before(v, &rest, e.now);
	else
		for (unsigned i = 0; i < INDEXES; i++)
			e.now[i] = value_now(v, i);
	r.bell = r.slots;
	e.addr = what | units << 8;
	write_record(&e, &r, pc, false);
	bell_ring(v, SEG_BELL_DEADLINE, 0, r.bell, pc);
	after_bell(v, e.p);
	/* The counters may be nearer to their ends now. */
	find_nearest(v, e.p);
	e.addr = 0;
	if (due(v)) {
		if (step_reached(&engine.rates, e.now, v->nearest))
			serve(&e, pc, false);
		if (inside)
			step_walk(&engine.rates, &rest, e.now, v->nearest, serve, &e);
	}
	set_up(v);
}

void fold_publish(struct seg_vcpu *v)
{
	publish(v);
	if (engine.features & SEG_LABEL)
		label(v, NULL);
	set_up(v);
}

void fold_room(struct seg_vcpu *v, uint32_t size)
{
	publish(v);
	if (ring_room(v, size))
		after_bell(v, vcpu_private(v));
	set_up(v);
}

void fold_ring(struct seg_vcpu *v, uint32_t reason, uint64_t arg, uint64_t pc)
{
	publish(v);
	if (engine.features & SEG_LABEL)
		label(v, NULL);
	bell_ring(v, reason, arg, 0, pc);
	after_bell(v, vcpu_private(v));
	set_up(v);
}

/* @which signals grow by @n at a system call. */
static void add_outside(struct seg_vcpu *v, uint64_t pc, uint32_t which, uint64_t n)
{
	struct step at = {.block = (const struct block *)(uintptr_t)v->priv[HOT_PREV]};
	struct event e = {.v = v, .p = vcpu_private(v), .step = at.block ? &at : NULL};

	publish(v);
	seq_begin(v);
	for (uint32_t m = which; m; m &= m - 1) {
		unsigned i = bits_low(m);

		if (i < SEG_LANES)
			v->base[i] += (int64_t)n;
		else
			v->scalar[i - SEG_LANES] += n;
	}
	seq_end(v);
	if (due(v)) {
		for (unsigned i = 0; i < INDEXES; i++)
			e.now[i] = value_now(v, i);
		serve(&e, pc, false);
	}
	set_up(v);
}

void fold_syscall(struct seg_vcpu *v, uint64_t pc)
{
	v->syscalls++;
	if (engine.rates.syscalls)
		add_outside(v, pc, engine.rates.syscalls, 1);
}

void fold_bytes(struct seg_vcpu *v, uint64_t pc, uint32_t which, uint64_t n)
{
	if (which && n)
		add_outside(v, pc, which, n);
}
