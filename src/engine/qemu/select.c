/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is compiled into the translated code, and how that changes while the program runs.
 * doc/architecture.md "Selection".
 *
 * The machine writes what it wants into the segment's header and moves header.selection. Whoever
 * sees that asks QEMU for a reset of the plugin (qemu_plugin_reset): when all vCPUs are between two
 * blocks, QEMU drops all translated code and calls us back, and all of it is translated anew with
 * other callbacks. Nothing of a thread's counts, models or stacks changes by that; only what is
 * switched on begins, from nothing.
 *
 * A reset takes away every callback of the plugin that is reset, and a thread that is between its
 * last block and a system call just then would make that call unseen. So QEMU loads this file twice
 * (install.c): under the second id nothing is registered but translation, and that one is reset.
 *
 * What QEMU does not survive is a reset while the process ends: the one waits for all threads with
 * the lock of its plugins held, the other wants the lock while all threads stand still. Nor does a
 * reset that was asked for survive a fork by another thread. So whoever ends, forks, or makes a
 * thread holds resets off (select_hold).
 */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "models.h"
#include "plugin.h"
#include "plugin_abi.h"

#define MOST_PAUSES 100000 /* of 100 us */

uint32_t select_taken;

static qemu_plugin_id_t resets; /* id under which blocks are translated */
static bool switches;		/* and a reset of that is possible */
static uint32_t resetting;	/* one was asked for */
static uint32_t held;		/* those who hold it off */
static bool left;		/* nobody will ever count this process again */

/* ---- what the header asks for ---- */

static uint32_t features_of(const struct seg_header *h)
{
	uint32_t features = __atomic_load_n(&h->features, __ATOMIC_RELAXED);

	if (features & SEG_REGS && regs_lacking(h)) {
		if (engine.proc)
			engine.proc->lacks |= regs_lacking(h);
		features &= ~(uint32_t)SEG_REGS;
	}
	/* Where nothing but counting is asked for, window traps are looked at, and they alone. */
	if (engine.isa->traits & ISA_BRANCH && features & SEG_COUNT &&
	    features & ~(uint32_t)(SEG_COUNT | SEG_EMPTY))
		features |= SEG_BRANCH;
	return features;
}

/*
 * Copied at the end, over what was there: what is the same in both is never anything else, for a
 * thread may be in a system call and count it.
 */
static void take_rates(const struct seg_header *h)
{
	static struct seg_header chosen;
	static struct rates rates;
	uint32_t scalars = __atomic_load_n(&h->scalars, __ATOMIC_RELAXED);

	chosen = *h;
	for (unsigned k = 0; k < SEG_SCALARS; k++)
		if (!(scalars >> k & 1))
			chosen.scalar_signal[k] = QUIPU_SIGNAL_NONE;
	rates_init(&rates, &chosen);
	memcpy(&engine.rates, &rates, sizeof(rates));
	memcpy(engine.scalar, chosen.scalar_signal, sizeof(engine.scalar));
}

static void take_quantum(const struct seg_header *h, uint32_t features)
{
	uint32_t quantum = h->quantum;

	if (quantum < 1 || quantum > 32768)
		quantum = 4096;
	if (features & SEG_LABEL)
		quantum = 1; /* every block folds, and is labelled when the next one begins */
	engine.quantum = quantum;
}

void select_told(void)
{
	struct seg_proc *proc = engine.proc;

	if (!proc)
		return;
	proc->features = engine.features;
	proc->scalars = engine.head->scalars;
	__atomic_store_n(&proc->selection, select_taken, __ATOMIC_SEQ_CST);
}

int select_open(void)
{
	select_taken = __atomic_load_n(&engine.head->selection, __ATOMIC_ACQUIRE);
	engine.features = features_of(engine.head);
	take_quantum(engine.head, engine.features);
	take_rates(engine.head);
	select_told();
	return models_open();
}

void select_switches(qemu_plugin_id_t id)
{
	resets = id;
	switches = qemu_plugin_reset;
}

bool select_can(void)
{
	return switches;
}

/* ---- a thread, when what is compiled in changes ---- */

#define FOLLOWED (SEG_BRANCH | SEG_STACK | SEG_PREDICT | SEG_FETCH)

/* Is HOT_PREV the block before, wherever the thread is? (entry_callback) */
static bool tracked(uint32_t features)
{
	return features & SEG_COUNT && (features & (FOLLOWED | SEG_DATA | SEG_PAGES) ||
					engine.isa->traits & (ISA_TRACK | ISA_BRANCH));
}

/*
 * @v's thread stands between two blocks, or is in a system call, where it does not look at any of
 * this before it has seen the new features.
 */
static void adapt(struct seg_vcpu *v, uint32_t was, uint32_t now)
{
	struct vcpu *p = vcpu_private(v);
	uint32_t begins = now & ~was;

	/* Nobody has looked where control went. */
	if (!tracked(was) && v->state == SEG_RUNNING)
		v->priv[HOT_PREV] = (uintptr_t)&block_none;
	if (!(was & FOLLOWED)) {
		p->pending = NULL;
		p->nsignals = 0;
	}
	if (begins & SEG_STACK) {
		v->priv[HOT_TOP] = v->priv[HOT_WAS_TOP] = 0;
		process_stack(v);
	}
	if (begins & SEG_REGS)
		regs_forget(vcpu_index(v));
	if (begins & SEG_BRANCHES)
		p->nbranches = p->ncalls = 0;
	models_change(v, was, now);
	if (now & SEG_EMPTY && p->start)
		v->request = 1; /* its first block is seen by that */
}

/* Called by QEMU; all vCPUs stand still, and there is no translated code. */
static void changed(qemu_plugin_id_t id)
{
	uint32_t was = engine.features, now;

	select_taken = __atomic_load_n(&engine.head->selection, __ATOMIC_ACQUIRE);
	now = features_of(engine.head);
	take_rates(engine.head);
	if (!models_select(was, now))
		now = (now & ~(SEG_DATA | SEG_FETCH | SEG_PREDICT | SEG_LABEL)) |
		      (was & (SEG_DATA | SEG_FETCH | SEG_PREDICT | SEG_LABEL));
	for (unsigned i = 0; i < SEG_VCPUS; i++)
		if (engine_pub[i].priv[HOT_PREV])
			adapt(&engine_pub[i], was, now);
	__atomic_store_n(&engine.features, now, __ATOMIC_RELEASE);
	take_quantum(engine.head, now);
	engine_callbacks(id);
	if (engine.proc)
		engine.proc->switches++;
	__atomic_store_n(&resetting, 0, __ATOMIC_SEQ_CST);
	select_told();
}

/* The same where nobody counts any more: nothing is compiled in, the program runs as without us. */
static void plain(qemu_plugin_id_t id)
{
	(void)id;
	select_taken = __atomic_load_n(&engine.head->selection, __ATOMIC_ACQUIRE);
	__atomic_store_n(&engine.features, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&resetting, 0, __ATOMIC_SEQ_CST);
}

/* ---- when ---- */

static bool wanted(void)
{
	return !left && engine.slot >= 0 &&
	       !__atomic_load_n(&engine.head->closing, __ATOMIC_RELAXED);
}

COLD void select_change(void)
{
	if (!switches || __atomic_exchange_n(&resetting, 1, __ATOMIC_SEQ_CST))
		return;
	if (__atomic_load_n(&held, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&resetting, 0, __ATOMIC_SEQ_CST);
		return; /* whoever holds it looks when it is done, others at their next fold */
	}
	qemu_plugin_reset(resets, wanted() ? changed : plain);
}

void select_leave(void)
{
	left = true;
	select_taken = ~__atomic_load_n(&engine.head->selection, __ATOMIC_ACQUIRE);
}

void select_hold(void)
{
	const struct timespec pause = {0, 100000};

	__atomic_add_fetch(&held, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < MOST_PAUSES && __atomic_load_n(&resetting, __ATOMIC_SEQ_CST); i++)
		nanosleep(&pause, NULL);
}

void select_release(void)
{
	__atomic_sub_fetch(&held, 1, __ATOMIC_SEQ_CST);
}

void select_forked(void)
{
	held = 1; /* the caller's */
	resetting = 0;
}
