/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is compiled into the programs of the open house: what the open events need, and no more. The
 * programs take a change over while they run (qemu/select.c); what begins is waited for here, what
 * is wanted no longer stays a while, for events come and go in swarms.
 *
 * Lanes cost the same whether they are wanted or not, so they are never taken away; features and
 * 64-bit counters are. doc/architecture.md "Selection".
 */
#include <string.h>
#include <time.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

#define LINGER_NS   UINT64_C(200000000)
#define WAIT_NS	    UINT64_C(2000000000) /* for programs that should run, and do not */
#define PAUSE_NS    50000L
#define ASK_AGAIN   20u /* pauses */
#define SCALAR_BITS (((1u << SEG_SCALARS) - 1) << SEG_LANES)

static uint64_t host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- what is wanted ---- */

static void add(struct session_wants *to, uint32_t features, uint32_t indexes)
{
	to->features |= features;
	to->indexes |= indexes;
}

void session_asked(struct session *s, uint32_t features, uint32_t indexes)
{
	if (s->collecting) {
		add(&s->asked, features, indexes);
	} else if (s->house) {
		add(&s->always, features, indexes);
	} else {
		s->head->features |= features;
		s->head->scalars |= indexes >> SEG_LANES;
		s->wanted_early = true;
	}
}

void session_collect(struct session *s)
{
	s->asked = (struct session_wants){0};
	s->collecting = true;
}

struct session_wants session_collected(struct session *s)
{
	s->collecting = false;
	return s->asked;
}

/* What the machine has always: what its tree and its rooms want, before any event is open. */
void session_select_begin(struct session *s)
{
	struct seg_header *h = s->head;

	s->always.features = h->features & ~(uint32_t)(SEG_COUNT | SEG_EMPTY);
	s->always.indexes = h->scalars << SEG_LANES;
	/* Its clock runs on what the programs do, and something looks at it all the time. */
	s->watches_always = s->always.features || s->wanted_early || h->watches;
	session_select(s);
}

static struct session_wants wanted(const struct session *s)
{
	struct session_wants w = s->always;

	for (unsigned i = 0; i < 32; i++)
		w.features |= s->feature_holders[i] ? 1u << i : 0;
	for (unsigned i = 0; i < SEG_INDEXES; i++)
		w.indexes |= s->index_holders[i] ? 1u << i : 0;
	w.features |=
		s->holders || s->watches_always || w.features || w.indexes ? SEG_COUNT : SEG_EMPTY;
	w.indexes &= SCALAR_BITS;
	return w;
}

static struct session_wants selected(const struct session *s)
{
	return (struct session_wants){s->head->features, s->head->scalars << SEG_LANES};
}

static bool has(const struct session_wants *all, const struct session_wants *part)
{
	return !(part->features & ~all->features) && !(part->indexes & SCALAR_BITS & ~all->indexes);
}

void session_hold(struct session *s, const struct session_wants *w)
{
	s->holders++;
	for (uint32_t m = w->features; m; m &= m - 1)
		s->feature_holders[bits_low(m)]++;
	for (uint32_t m = w->indexes; m; m &= m - 1)
		s->index_holders[bits_low(m)]++;
}

void session_drop(struct session *s, const struct session_wants *w)
{
	s->holders--;
	for (uint32_t m = w->features; m; m &= m - 1)
		s->feature_holders[bits_low(m)]--;
	for (uint32_t m = w->indexes; m; m &= m - 1)
		s->index_holders[bits_low(m)]--;
	s->lingers_from = host_ns();
}

/* ---- programs that run take it over ---- */

static void publish(struct session *s, const struct session_wants *w)
{
	s->head->scalars = w->indexes >> SEG_LANES;
	s->head->features = w->features;
	__atomic_add_fetch(&s->head->selection, 1, __ATOMIC_SEQ_CST);
}

void session_closing(struct session *s)
{
	__atomic_store_n(&s->head->closing, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&s->head->selection, 1, __ATOMIC_SEQ_CST);
}

/* Thread @v is to go on and see it. False: it is in a system call, and will before it does anything
 * else; or it is gone. */
static bool goes_on(struct session *s, struct proc *p, unsigned v, bool ask)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint32_t bell = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE);

	if (bell != vcpu->ack) {
		if (session_turns_held(p, v, bell) || p->serving[v])
			return false;
		session_serve_bell(s, p, v);
		return true;
	}
	if (__atomic_load_n(&vcpu->state, __ATOMIC_SEQ_CST) != SEG_RUNNING)
		return false;
	if (ask)
		__atomic_store_n(&vcpu->request, 1, __ATOMIC_SEQ_CST);
	return true;
}

/* Is there a thread of @p that runs on without? */
static bool behind(struct session *s, struct proc *p, bool ask)
{
	bool runs = false;

	if (!p->base || p->dead || !p->started ||
	    __atomic_load_n(&p->seg->selection, __ATOMIC_SEQ_CST) == s->head->selection) {
		p->stuck = false;
		return false;
	}
	if (p->stuck)
		return false;
	for (unsigned v = 0; v < SEG_VCPUS && v < p->seg->nvcpus; v++)
		if (p->tasks[v])
			runs |= goes_on(s, p, v, ask);
	return runs;
}

static void wait_for_programs(struct session *s)
{
	const struct timespec pause = {0, PAUSE_NS};
	uint64_t end = host_ns() + WAIT_NS;

	for (unsigned n = 0;; n++) {
		bool waits = false;

		for (unsigned i = 0; i < s->nprocs; i++)
			waits |= behind(s, &s->procs[i], n % ASK_AGAIN == 0);
		if (!waits)
			return;
		if (host_ns() > end)
			break;
		session_reap(s);
		nanosleep(&pause, NULL);
	}
	/* They are stopped, or the host has no time for them: nobody waits for them again. */
	for (unsigned i = 0; i < s->nprocs; i++)
		s->procs[i].stuck = behind(s, &s->procs[i], false);
}

bool session_select(struct session *s)
{
	struct session_wants now = selected(s), w = wanted(s);

	if (has(&now, &w) || (w.features & SEG_EMPTY && now.features & SEG_COUNT))
		return false; /* what is too much goes later (session_linger) */
	publish(s, &w);
	if (!session_guests(s))
		return false;
	wait_for_programs(s);
	return true;
}

int session_linger(struct session *s)
{
	struct session_wants now = selected(s), w = wanted(s);
	uint64_t t = host_ns();

	if (now.features == w.features && now.indexes == w.indexes)
		return -1;
	if (t < s->lingers_from + LINGER_NS)
		return (int)((s->lingers_from + LINGER_NS - t) / 1000000) + 1;
	publish(s, &w);
	return -1;
}
