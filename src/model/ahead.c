/* SPDX-License-Identifier: BSD-2-Clause */
/* A core that runs ahead of its misses (ahead.h). Rock sheet section 10. */
#include "model/ahead.h"

#include <string.h>

#define LINE	     AHEAD_LINE
#define DRAIN(times) ((times)->l2 / 4 ? (times)->l2 / 4 : 1)
#define BIT(c)	     QUIPU_CLASS_BIT(QUIPU_INSN_##c)
#define LOADS	     (BIT(LOAD) | BIT(FLOAD) | BIT(LR))
#define STORES	     (BIT(STORE) | BIT(FSTORE) | BIT(SC))
#define TRANSFERS                                                                                  \
	(BIT(BRANCH) | BIT(JUMP) | BIT(CALL) | BIT(IJUMP) | BIT(ICALL) | BIT(RET) | BIT(CRET))
#define IS(in, set) (((set) >> (in)->class) & 1)

void ahead_init(struct ahead *a, const struct ahead_times *times)
{
	*a = (struct ahead){.times = *times};
}

/* ---- registers whose value is not there ---- */

static bool missing(const struct ahead *a, unsigned reg)
{
	return reg && a->missing[reg / 64 % 2] >> (reg % 64) & 1;
}

static void set_missing(struct ahead *a, unsigned reg, bool yes)
{
	uint64_t bit = UINT64_C(1) << (reg % 64);

	if (!reg)
		return;
	if (yes)
		a->missing[reg / 64 % 2] |= bit;
	else
		a->missing[reg / 64 % 2] &= ~bit;
}

/* The outs of the caller are the ins of the callee; nothing is known of what comes into view. */
static void move_window(struct ahead *a, unsigned window)
{
	uint64_t outs = a->missing[0] >> 8 & 0xff, ins = a->missing[0] >> 24 & 0xff;

	if (window == AHEAD_STAY)
		return;
	a->missing[0] &= ~UINT64_C(0xffffff00);
	a->missing[0] |= window == AHEAD_SAVE ? outs << 24 : ins << 8;
}

static bool reads_missing(const struct ahead *a, const struct ahead_insn *in)
{
	for (unsigned i = 0; i < AHEAD_SOURCES; i++)
		if (missing(a, in->operands.source[i]))
			return true;
	return false;
}

/* ---- buffers ---- */

static void drain(struct ahead *a, uint64_t now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < a->nfills; i++)
		if (a->fill[i].ready > now)
			a->fill[kept++] = a->fill[i];
	a->nfills = kept;
	for (kept = 0; kept < a->nstores && a->store[kept].done <= now;)
		kept++;
	a->nstores -= kept;
	memmove(a->store, a->store + kept, a->nstores * sizeof(a->store[0]));
}

static void fill(struct ahead *a, uint64_t addr, uint64_t ready)
{
	if (a->nfills < AHEAD_FILLS)
		a->fill[a->nfills++] = (struct ahead_fill){addr >> LINE, ready};
}

static bool on_its_way(const struct ahead *a, uint64_t addr)
{
	for (unsigned i = 0; i < a->nfills; i++)
		if (a->fill[i].line == addr >> LINE)
			return true;
	return false;
}

static bool line_buffered(const struct ahead *a, uint64_t addr)
{
	for (unsigned i = 0; i < a->nstores; i++)
		if (a->store[i].addr >> LINE == addr >> LINE)
			return true;
	return false;
}

/* The youngest store that the load touches decides: it has all of it, or the load must wait. */
static uint32_t from_store(const struct ahead *a, const struct ahead_insn *in)
{
	for (unsigned i = a->nstores; i--;) {
		uint64_t at = a->store[i].addr, end = at + a->store[i].bytes;

		if (in->addr >= end || in->addr + in->bytes <= at)
			continue;
		return in->addr >= at && in->addr + in->bytes <= end ? QUIPU_INSN_BYPASS
								     : QUIPU_INSN_NO_BYPASS;
	}
	return 0;
}

static void enter_store(struct ahead *a, const struct ahead_insn *in)
{
	uint64_t from = a->nstores ? a->drained : in->cycle;

	if (a->nstores == AHEAD_STORES) {
		a->nstores--;
		memmove(a->store, a->store + 1, a->nstores * sizeof(a->store[0]));
	}
	a->drained = from + DRAIN(&a->times);
	a->store[a->nstores++] = (struct ahead_store){in->addr, a->drained, in->bytes};
}

/* ---- the other strand of the core ---- */

/* Of the stores that it holds, those that are not drained yet: one after the other. */
static unsigned other_stores(const struct ahead *a, uint64_t now)
{
	uint64_t passed = now - a->told, left;

	if (passed >= a->other.store_cycles)
		return 0;
	left = (a->other.store_cycles - passed + DRAIN(&a->times) - 1) / DRAIN(&a->times);
	return left < a->other.stores ? (unsigned)left : a->other.stores;
}

static unsigned other_deferred(const struct ahead *a, uint64_t now)
{
	return now - a->told < a->other.deferred_cycles ? a->other.deferred : 0;
}

static bool stores_full(const struct ahead *a, uint64_t now)
{
	return a->nstores + other_stores(a, now) >= AHEAD_STORES;
}

/* A slot of kind @wait is not to be had, and the other strand is why. */
static bool kept_from(const struct ahead *a, enum ahead_wait wait, uint64_t now)
{
	if (wait == AHEAD_FOR_STORE)
		return other_stores(a, now) && stores_full(a, now);
	return other_deferred(a, now) && a->waiting + other_deferred(a, now) >= AHEAD_DEFERRED;
}

/* The strand wants a slot. True: it has been kept from one for long; then the wait begins anew. */
static bool want(struct ahead *a, enum ahead_wait wait, uint64_t now)
{
	if (!kept_from(a, wait, now))
		return false;
	if (a->wait == AHEAD_FOR_NONE) {
		a->wait = wait;
		a->since = now;
	}
	if (a->wait != wait || now - a->since < AHEAD_BLOCKED)
		return false;
	a->since = now;
	return true;
}

/* A slot that became free in the meantime has ended the wait. */
static void end_wait(struct ahead *a, uint64_t now)
{
	if (a->wait && !kept_from(a, a->wait, now))
		a->wait = AHEAD_FOR_NONE;
}

static uint16_t cycles_to(uint64_t then, uint64_t now)
{
	return then <= now ? 0 : then - now < UINT16_MAX ? (uint16_t)(then - now) : UINT16_MAX;
}

void ahead_holds(const struct ahead *a, uint64_t now, struct ahead_held *h)
{
	bool queue = a->state >= AHEAD_CHECKPOINT && a->until > now;
	uint64_t free = a->nstores ? a->drained : 0;

	h->stores = free > now ? (uint8_t)a->nstores : 0;
	h->store_cycles = cycles_to(free, now);
	h->deferred =
		!queue ? 0 : (uint8_t)(a->waiting < AHEAD_DEFERRED ? a->waiting : AHEAD_DEFERRED);
	h->deferred_cycles = h->deferred ? cycles_to(a->until, now) : 0;
}

void ahead_other(struct ahead *a, uint64_t now, const struct ahead_held *h)
{
	a->other = *h;
	a->told = now;
}

/* ---- speculation ---- */

/* The fill is there: the checkpoint is given up, or what was done since is kept. */
static bool settle(struct ahead *a, uint64_t now)
{
	bool livelock = false;

	if (a->state == AHEAD_NONE || now < a->until)
		return false;
	if (a->state != AHEAD_WAITING) {
		if (!a->failed) {
			a->failures = 0;
		} else {
			a->failures = a->failed_pc == a->pc ? a->failures + 1 : 1;
			a->failed_pc = a->pc;
			livelock = a->failures == AHEAD_FAILURES;
		}
	}
	a->state = AHEAD_NONE;
	a->failed = false;
	memset(a->missing, 0, sizeof(a->missing));
	return livelock;
}

bool ahead_yank(struct ahead *a)
{
	bool speculating = a->state >= AHEAD_CHECKPOINT;

	a->state = AHEAD_NONE;
	a->wait = AHEAD_FOR_NONE;
	a->failed = false;
	memset(a->missing, 0, sizeof(a->missing));
	return speculating;
}

bool ahead_overtaken(struct ahead *a, uint64_t (*written)(void *arg, uint64_t line), void *arg)
{
	bool changed = false;

	if (a->state < AHEAD_CHECKPOINT)
		return false;
	for (unsigned i = 0; i < a->nreads; i++) {
		uint64_t now = written(arg, a->read[i].line);

		changed |= now && now != a->read[i].written;
	}
	return changed && ahead_yank(a);
}

/* What a window reads is watched until it ends. */
static void watch(struct ahead *a, const struct ahead_insn *in)
{
	uint64_t line = in->addr >> LINE;

	if (a->state < AHEAD_CHECKPOINT || !in->bytes || a->nreads == AHEAD_READS)
		return;
	for (unsigned i = 0; i < a->nreads; i++)
		if (a->read[i].line == line)
			return;
	a->read[a->nreads++] = (struct ahead_read){line, in->written};
}

static uint32_t latency_of(const struct ahead *a, uint32_t events)
{
	uint32_t lost = events & QUIPU_INSN_STLB_MISS ? a->times.walk : 0;

	if (!(events & QUIPU_INSN_L1_MISS))
		return lost + a->times.hit;
	if (events & QUIPU_INSN_LL_MISS)
		return lost + a->times.memory;
	return lost + (events & QUIPU_INSN_L2_MISS ? a->times.l3 : a->times.l2);
}

/* A load that misses, when nothing or little is under way. */
static void begin(struct ahead *a, const struct ahead_insn *in, uint32_t latency)
{
	bool far = in->events & (QUIPU_INSN_L2_MISS | QUIPU_INSN_STLB_MISS);

	if (a->state >= AHEAD_CHECKPOINT)
		return;
	if (far && a->failures >= AHEAD_FAILURES && a->failed_pc == in->pc) {
		a->failures = 0; /* once without speculation */
		return;
	}
	a->state = far ? AHEAD_CHECKPOINT : AHEAD_WAITING;
	a->until = in->cycle + latency;
	a->pc = in->pc;
	a->waiting = 0;
	a->nreads = 0;
	a->failed = false;
	memset(a->missing, 0, sizeof(a->missing));
}

/* The mode of an instruction inside of a window, and what it leaves behind. */
static uint8_t run_ahead(struct ahead *a, const struct ahead_insn *in, struct ahead_label *l)
{
	bool late = reads_missing(a, in);

	if (a->state == AHEAD_WAITING) {
		set_missing(a, in->operands.dest, late);
		return late ? QUIPU_MODE_DELAYED : QUIPU_MODE_OUT_OF_ORDER;
	}
	if (a->failed)
		l->events |= QUIPU_INSN_FAILED;
	if (in->barrier || in->class == QUIPU_INSN_AMO ||
	    (IS(in, STORES) && stores_full(a, in->cycle)))
		a->state = AHEAD_SCOUT;
	if (a->state == AHEAD_SCOUT)
		return QUIPU_MODE_SCOUT;
	set_missing(a, in->operands.dest, late);
	if (!late)
		return QUIPU_MODE_AHEAD;
	l->events |= QUIPU_INSN_FROM_QUEUE;
	l->blocked |= want(a, AHEAD_FOR_DEFERRED, in->cycle);
	if (++a->waiting + other_deferred(a, in->cycle) > AHEAD_DEFERRED)
		a->state = AHEAD_SCOUT;
	if (in->events & QUIPU_INSN_MISPREDICTED)
		a->failed = true;
	return QUIPU_MODE_DEFERRED;
}

/* ---- one instruction ---- */

static void transact(struct ahead_label *l, enum quipu_transaction kind, uint32_t events)
{
	l->transaction[l->ntransactions].kind = (uint8_t)kind;
	l->transaction[l->ntransactions++].events = events;
}

static void transactions(const struct ahead_insn *in, struct ahead_label *l)
{
	bool missed = in->events & QUIPU_INSN_L1_MISS, atomic = in->class == QUIPU_INSN_AMO;
	uint32_t pending = l->events & QUIPU_INSN_STORE_PENDING;

	/* The next line comes with the one that missed. */
	if (in->fetch & QUIPU_INSN_L1_MISS) {
		transact(l, QUIPU_TRANSACTION_FETCH, in->fetch);
		transact(l, QUIPU_TRANSACTION_FETCH_PREFETCH, in->fetch);
	}
	if (in->flush)
		transact(l, QUIPU_TRANSACTION_FLUSH, 0);
	if (missed && (IS(in, LOADS) || atomic))
		transact(l, QUIPU_TRANSACTION_LOAD, in->events | pending);
	if (missed && IS(in, STORES))
		transact(l, QUIPU_TRANSACTION_STORE_PREFETCH, in->events);
	/* Once the line is owned. */
	if (IS(in, STORES))
		transact(l, QUIPU_TRANSACTION_STORE, 0);
	if (atomic)
		transact(l, QUIPU_TRANSACTION_ATOMIC, 0);
}

static void load(struct ahead *a, const struct ahead_insn *in, struct ahead_label *l)
{
	l->events |= from_store(a, in);
	if (!(in->events & QUIPU_INSN_L1_MISS) && on_its_way(a, in->addr))
		l->events |= QUIPU_INSN_PRIOR_MISS;
	if (a->nfills == AHEAD_FILLS)
		l->events |= QUIPU_INSN_LOADS_FULL;
	if (in->events & QUIPU_INSN_L1_MISS && line_buffered(a, in->addr))
		l->events |= QUIPU_INSN_STORE_PENDING;
	l->latency = (uint16_t)latency_of(a, in->events);
	if (in->events & QUIPU_INSN_L1_MISS)
		fill(a, in->addr, in->cycle + l->latency);
}

void ahead_step(struct ahead *a, const struct ahead_insn *in, struct ahead_label *l)
{
	bool missed = in->events & (QUIPU_INSN_L1_MISS | QUIPU_INSN_STLB_MISS);

	*l = (struct ahead_label){.events = in->events, .mode = QUIPU_MODE_NORMAL, .latency = 1};
	l->livelock = settle(a, in->cycle);
	drain(a, in->cycle);
	end_wait(a, in->cycle);
	if (in->stalled || in->fetch)
		l->events |= QUIPU_INSN_STALLED;
	if (a->state != AHEAD_NONE)
		l->mode = run_ahead(a, in, l);
	if (IS(in, LOADS))
		load(a, in, l);
	if (IS(in, STORES)) {
		l->blocked |= want(a, AHEAD_FOR_STORE, in->cycle);
		if (stores_full(a, in->cycle))
			l->events |= QUIPU_INSN_STORES_FULL;
		enter_store(a, in);
	}
	if (IS(in, LOADS) && missed) {
		begin(a, in, l->latency);
		set_missing(a, in->operands.dest, a->state != AHEAD_NONE);
	}
	if (IS(in, LOADS))
		watch(a, in);
	move_window(a, in->operands.window);
	transactions(in, l);
	if (in->trap)
		l->yanked = ahead_yank(a);
}
