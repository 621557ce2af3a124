/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signals of a session (quipu/signal.h): which ones the plugin counts, where they lie, what
 * they show, and the deadlines that the hardware floor arms on them. Engine sheet 6.1, 6.2.
 */
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/perf_regs.h>

#include "engine/session_impl.h"

static struct session *session_of(struct quipu_signals *signals)
{
	return (struct session *)signals; /* first member */
}

/* Signals that have another's place: a CPU of one fixed frequency has one clock while it runs. */
static quipu_signal alias(quipu_signal signal)
{
	return signal == QUIPU_SIGNAL_REF_CYCLES ? QUIPU_SIGNAL_CYCLES : quipu_model_alias(signal);
}

/* Places are given in their order (give_index): behind the last one there is nothing. A room may
 * ask for hundreds of signals that nobody wants. */
static int find_index(const struct session *s, quipu_signal signal)
{
	const struct seg_header *h = s->head;

	signal = alias(signal);
	if (signal == QUIPU_SIGNAL_NONE)
		return -1;
	for (unsigned k = 0; k < SEG_LANES && h->lane_signal[k] != QUIPU_SIGNAL_NONE; k++)
		if (h->lane_signal[k] == signal)
			return (int)k;
	for (unsigned k = 0; k < SEG_SCALARS && h->scalar_signal[k] != QUIPU_SIGNAL_NONE; k++)
		if (h->scalar_signal[k] == signal)
			return (int)(SEG_LANES + k);
	return -1;
}

static bool engine_counts(const struct quipu_model *model, quipu_signal signal)
{
	if (quipu_model_counts(model, signal))
		return true;
	if (quipu_model_alias(signal) != signal) /* it needs the model to be there */
		return false;
	switch (alias(signal)) {
	case QUIPU_SIGNAL_CYCLES:
	case QUIPU_SIGNAL_BRANCHES_TAKEN:
	case QUIPU_SIGNAL_SYSCALLS:
	case QUIPU_SIGNAL_BYTES_READ:
	case QUIPU_SIGNAL_BYTES_WRITTEN:
	case QUIPU_SIGNAL_BYTES_SENT:
	case QUIPU_SIGNAL_BYTES_RECEIVED: return true;
	}
	return quipu_signal_mask(signal) != 0;
}

bool session_counts(const struct quipu_machine *machine, quipu_signal signal)
{
	struct quipu_model model;

	quipu_model_read(machine, &model, NULL);
	return engine_counts(&model, signal);
}

static bool view_has(struct quipu_signals *signals, quipu_signal signal)
{
	return engine_counts(&session_of(signals)->head->model, signal);
}

static uint64_t view_read(struct quipu_signals *signals, unsigned cpu, quipu_signal signal)
{
	const struct session *s = session_of(signals);
	int index = find_index(s, signal);

	return index < 0 ? 0 : s->cpus[cpu].gone[index] + s->cpus[cpu].view[index];
}

static void view_arm(struct quipu_signals *signals, unsigned cpu, unsigned slot,
		     const struct quipu_deadline *d)
{
	struct session *s = session_of(signals);
	struct cpu_state *c = &s->cpus[cpu];
	int index = find_index(s, d->signal);

	if (index < 0) /* never counted, so never reached */
		return;
	c->want[slot].d = *d;
	c->want[slot].index = (uint8_t)index;
	c->want[slot].armed = true;
	c->used |= bits_one(slot);
}

static void view_disarm(struct quipu_signals *signals, unsigned cpu, unsigned slot)
{
	session_of(signals)->cpus[cpu].want[slot].armed = false;
}

static int view_want(struct quipu_signals *signals, quipu_signal signal)
{
	return session_require(session_of(signals), signal) ? -ENOSPC : 0;
}

static const struct quipu_signals_ops view_ops = {
	.has = view_has,
	.read = view_read,
	.arm = view_arm,
	.disarm = view_disarm,
	.want = view_want,
};

void session_view_init(struct session *s)
{
	s->signals.ops = &view_ops;
}

struct quipu_signals *session_signals(struct session *s)
{
	return &s->signals;
}

/* Counts only grow; a guest that scribbles over the segment cannot make them shrink. */
static void show(uint64_t *view, uint64_t value)
{
	if (value > *view)
		*view = value;
}

void session_view_record(struct session *s, struct cpu_state *c, const uint64_t lane[SEG_LANES],
			 const uint64_t *scalars)
{
	(void)s;
	for (unsigned k = 0; k < SEG_LANES; k++)
		show(&c->view[k], lane[k]);
	for (unsigned k = 0; scalars && k < SEG_SCALARS; k++)
		show(&c->view[SEG_LANES + k], scalars[k]);
}

void session_view_vcpu(struct session *s, struct cpu_state *c, const struct seg_vcpu *v)
{
	uint64_t lane[SEG_LANES];

	for (unsigned k = 0; k < SEG_LANES; k++)
		lane[k] = (uint64_t)v->base[k] + (uint16_t)(v->acc[k] - v->pre[k]);
	session_view_record(s, c, lane, v->scalar);
}

void session_view_gone(struct session *s, struct cpu_state *c)
{
	(void)s;
	for (unsigned k = 0; k < SEG_INDEXES; k++) {
		c->gone[k] += c->view[k];
		c->view[k] = 0;
	}
	/* Deadlines are the CPU's: whoever runs on it next is given them anew. */
}

/*
 * What must run for @signal to be counted. Levels that data and instructions share need both sides,
 * whatever else is open: a count never depends on which other events there are.
 */
static uint32_t features_of(quipu_signal signal)
{
	switch (signal) {
	case QUIPU_SIGNAL_BRANCHES_TAKEN: return SEG_BRANCH;
	case QUIPU_SIGNAL_BRANCH_MISSES:
	case QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES:
	case QUIPU_SIGNAL_BRANCH_TARGET_MISSES:
	case QUIPU_SIGNAL_RETURN_MISSES: return SEG_BRANCH | SEG_PREDICT;
	case QUIPU_SIGNAL_L1I_MISSES:
	case QUIPU_SIGNAL_ITLB_MISSES: return SEG_BRANCH | SEG_FETCH;
	case QUIPU_SIGNAL_L1D_READ_MISSES:
	case QUIPU_SIGNAL_L1D_WRITE_MISSES:
	case QUIPU_SIGNAL_L1D_WRITEBACKS:
	case QUIPU_SIGNAL_DTLB_READ_MISSES:
	case QUIPU_SIGNAL_DTLB_WRITE_MISSES: return SEG_DATA;
	}
	if (signal >= QUIPU_SIGNAL_LABELLED && signal <= QUIPU_SIGNAL_L2_TRANSACTION_LAST)
		return SEG_BRANCH | SEG_DATA | SEG_FETCH | SEG_PREDICT | SEG_LABEL;
	if (signal >= QUIPU_SIGNAL_STALL_FRONTEND && signal <= QUIPU_SIGNAL_STALL_BACKEND)
		return SEG_BRANCH | SEG_DATA | SEG_FETCH | SEG_PREDICT;
	if (signal >= QUIPU_SIGNAL_L2_READS && signal < QUIPU_SIGNAL_STALL_FRONTEND)
		return SEG_BRANCH | SEG_DATA | SEG_FETCH;
	return 0;
}

void session_view_switch(struct cpu_state *c, const uint64_t seen[SEG_INDEXES])
{
	/* gone may pass below zero: it is an offset, and offsets wrap. */
	for (unsigned k = 0; k < SEG_INDEXES; k++) {
		c->gone[k] += c->view[k] - seen[k];
		c->view[k] = seen[k];
	}
}

static bool moves_bytes(quipu_signal signal)
{
	return signal >= QUIPU_SIGNAL_BYTES_READ && signal <= QUIPU_SIGNAL_BYTES_RECEIVED;
}

/* The place of @signal; a new one when it has none. -1: there is none left. */
static int give_index(struct session *s, quipu_signal signal, bool lane)
{
	struct seg_header *h = s->head;
	int index = find_index(s, signal);

	if (index >= 0)
		return index;
	for (unsigned k = 2; lane && k < SEG_LANES; k++)
		if (h->lane_signal[k] == QUIPU_SIGNAL_NONE) {
			h->lane_signal[k] = signal;
			return (int)k;
		}
	for (unsigned k = 0; k < SEG_SCALARS; k++)
		if (h->scalar_signal[k] == QUIPU_SIGNAL_NONE) {
			h->scalar_signal[k] = signal;
			return (int)(SEG_LANES + k);
		}
	return -1;
}

int session_require(struct session *s, quipu_signal signal)
{
	uint32_t features;
	bool lane;
	int index;

	if (!engine_counts(&s->head->model, signal))
		return -1;
	signal = alias(signal);
	features = features_of(signal);
	/* What moves in the middle of a block, or outside of one, has no lane. */
	lane = signal != QUIPU_SIGNAL_SYSCALLS && !moves_bytes(signal) &&
	       !(features & (SEG_DATA | SEG_FETCH));
	index = give_index(s, signal, lane);
	if (index < 0)
		return -1;
	session_asked(s, features, 1u << index);
	return 0;
}

void session_want_stack(struct session *s)
{
	s->head->max_stack = 127;
	session_asked(s, SEG_STACK, 0);
}

void session_want_branches(struct session *s)
{
	session_asked(s, SEG_BRANCHES | SEG_BRANCH, 0);
}

void session_want_registers(struct session *s, uint64_t mask)
{
	uint64_t given = quipu_perf_regs_given(s->machine->isa);

	s->facts.regs_unknown |= mask & ~given;
	if (mask & ~given) /* the sample that asks for one that is not there has none */
		return;
	__atomic_fetch_or(&s->head->regs, mask, __ATOMIC_RELAXED);
	session_asked(s, SEG_REGS, 0);
}
