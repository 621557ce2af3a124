/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bells of the vCPUs: what a thread wants of the machine while it waits, answered in the order
 * of arrival. Contract: src/engine/segment.h, enum of SEG_BELL_*; engine sheet 6.4. What an answer
 * means for a process is session_process.c.
 */
#include <sys/mman.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

static void serve_reasons(struct session *s, struct proc *p, unsigned v, uint32_t reason,
			  uint64_t arg)
{
	struct cpu_state *c = p->cpu[v];

	if (reason & SEG_BELL_START)
		session_serve_start(s, p, v);
	if (reason & SEG_BELL_FORK)
		session_serve_fork(s, p, v, arg);
	if (reason & SEG_BELL_THREAD)
		session_serve_thread(s, p, v, !arg);
	if (reason & SEG_BELL_CLONE)
		session_serve_clone(s, p, v, arg);
	if (reason & SEG_BELL_MADE)
		session_serve_made(s, p, v, arg);
	if ((reason & SEG_BELL_SLEPT) && c)
		quipu_system_idle(s->system, (unsigned)(c - s->cpus),
				  session_turns_slept(s, p, v, arg));
	if (reason & SEG_BELL_FOREIGN)
		s->facts.foreign_execs++;
	if (reason & SEG_BELL_LEAVING)
		session_serve_leaving(s, p, v, arg == 1);
	if (reason & SEG_BELL_EXIT)
		session_leave(s, p, v);
}

/* The values a bell shows: before a first instruction there are none; at a deadline the record's
 * stand. */
#define REASONS_WITHOUT_VIEW                                                                       \
	(SEG_BELL_START | SEG_BELL_THREAD | SEG_BELL_FORK | SEG_BELL_DEADLINE | SEG_BELL_RING)

void session_ack(const struct proc *p, unsigned v, uint32_t bell)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);

	__atomic_store_n(&vcpu->ack, bell, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&vcpu->sleeping, __ATOMIC_SEQ_CST))
		session_futex_wake(&vcpu->ack);
}

void session_answer(struct session *s, struct proc *p, unsigned v)
{
	session_vcpu(p, v)->nudge = 0;
	if (p->cpu[v])
		session_flush_deadlines(s, p->cpu[v], p, v);
	session_ack(p, v, session_vcpu(p, v)->bell);
}

/* What the thread has counted, and left in its ring. */
static void hear(struct session *s, struct proc *p, unsigned v, uint32_t reason)
{
	session_step_on(s, p, v);
	if (!(reason & SEG_BELL_START))
		session_drain(s, p, v);
	if (p->cpu[v] && !(reason & REASONS_WITHOUT_VIEW))
		session_view_vcpu(s, p->cpu[v], session_vcpu(p, v));
}

void session_serve_bell(struct session *s, struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint32_t bell = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE), reason = vcpu->reason;
	bool goes_on;

	if (bell == vcpu->ack || p->serving[v] || session_turns_held(p, v, bell) ||
	    session_turns_nudged(s, p, v, reason) || session_turns_early(s, p, v, reason))
		return;
	p->serving[v] = true;
	if (!(reason & SEG_BELL_TURN))
		hear(s, p, v, reason);
	serve_reasons(s, p, v, reason, vcpu->arg);
	goes_on = session_turns_goes_on(s, p, v, reason);
	p->serving[v] = false;
	if (goes_on && __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) == bell && vcpu->ack != bell)
		session_answer(s, p, v);
}

static struct proc *open_proc(struct session *s, unsigned slot)
{
	struct proc *p = &s->procs[slot];
	void *base;

	if (p->base)
		return p;
	base = mmap(NULL, SEG_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd,
		    (off_t)(SEG_HEADER_BYTES + slot * SEG_SLOT_BYTES));
	if (base == MAP_FAILED)
		return NULL;
	if (s->nprocs <= slot)
		s->nprocs = slot + 1;
	p->base = base;
	p->seg = base;
	p->pidfd = -1;
	for (unsigned v = 0; v < SEG_VCPUS; v++)
		p->placed[v] = -1;
	s->facts.processes++;
	return p;
}

static void serve_proc(struct session *s, struct proc *p)
{
	unsigned n = __atomic_load_n(&p->seg->nvcpus, __ATOMIC_ACQUIRE);

	if (n > SEG_VCPUS)
		n = SEG_VCPUS;
	if (p->pidfd < 0 && p->seg->pid && !p->dead)
		p->pidfd = session_watch(s, (pid_t)p->seg->pid);
	for (unsigned v = 0; v < n; v++) {
		struct seg_vcpu *vcpu = session_vcpu(p, v);

		if (__atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) != vcpu->ack)
			session_serve_bell(s, p, v);
		else if (p->tasks[v] && !p->nudged[v])
			session_drain(s, p, v);
	}
}

uint64_t session_serve_all(struct session *s)
{
	uint64_t pending = __atomic_exchange_n(&s->head->pending, 0, __ATOMIC_SEQ_CST), claimed;

	if (__atomic_load_n(&s->head->unheard, __ATOMIC_SEQ_CST))
		__atomic_store_n(&s->head->unheard, 0, __ATOMIC_SEQ_CST);
	claimed = __atomic_load_n(&s->head->claimed, __ATOMIC_ACQUIRE);
	/* In the open house a process may end before it ever rang: every one that came is looked
	 * at. */
	for (uint64_t m = s->house ? claimed : (pending | s->served) & claimed; m; m &= m - 1) {
		struct proc *p = open_proc(s, bits_low(m));

		s->served |= bits_one(bits_low(m));
		if (p && !p->dead)
			serve_proc(s, p);
	}
	session_turns_settle(s);
	return pending;
}
