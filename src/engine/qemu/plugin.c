/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QEMU plugin: translation, and what became of blocks that did not end as they should. Engine
 * sheet 3, 7.3; map of the files in plugin.h.
 */
#include <string.h>

#include <quipu/bits.h>

#include "entry.h"
#include "models.h"
#include "pages.h"

struct engine engine;

const struct block block_none = {.any = 1};

static void add_step(struct seg_vcpu *v, const struct step *s);

COLD static void add_entry(struct block *t)
{
	t->entry = 1;
	entries_add(&engine.entries, t->pc);
}

/* To where a return has gone before: a longjmp, if that is another function. */
COLD static void follow_jump(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	if (t->back && v->priv[HOT_FRAMES])
		stack_jump(vcpu_frames(v), &v->priv[HOT_TOP], p->cti, t->pc, &engine.entries);
}

void follow(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	struct frame *frames = vcpu_frames(v);
	uint64_t top = v->priv[HOT_TOP];

	v->priv[HOT_WAS_TOP] = top;
	/* A conditional one that was not taken, or a call that only asks where it is. */
	if (!frames || (p->flow != FLOW_RET && t->pc == p->fall))
		return;
	if (p->flow == FLOW_IJUMP) {
		follow_jump(v, t, p);
		return;
	}
	if (p->flow >= FLOW_RET) {
		stack_return(frames, &top, t->pc, &engine.entries);
		if (!t->back)
			((struct block *)t)->back = 1;
	}
	if (p->flow != FLOW_RET && p->flow != FLOW_CRET) {
		stack_push(frames, &top, p->fall, p->cti);
		if (__builtin_expect(!t->entry, 0))
			add_entry((struct block *)t);
	}
	v->priv[HOT_TOP] = top;
}

/* ---- odd successors ---- */

/* p was aborted before its instruction at t->pc was complete. What it had added from there on is
 * t's to add. */
static int replay_index(const struct block *p, const struct block *t)
{
	int i = block_index(p, t->pc);

	bool delays = engine.isa->traits & ISA_BRANCH;

	if (i < 0 || (!delays && p->flow > FLOW_CALL && p != t && t->pc != p->cti))
		return -1;
	if (p->flow == FLOW_SYSCALL && t->pc == p->cti)
		return -1; /* restarted: the trap has not retired the first time either */
	return i;
}

static unsigned replayed(const struct block *p, int index, const struct block *t)
{
	unsigned tail = p->n - (unsigned)index;

	return tail < t->n ? tail : t->n;
}

/* p is the system call by which a signal handler has just returned. */
static bool returned(const struct seg_vcpu *v, const struct block *p)
{
	const struct vcpu *s = vcpu_private(v);

	return p->flow == FLOW_SYSCALL && s->resumes && p->cti == s->call_pc;
}

/* sigreturn: control goes on in, or after, the block that was interrupted. */
static const struct block *signal_ends(struct seg_vcpu *v, struct vcpu *s)
{
	const struct interrupted *i;

	/* Handlers that were left by a jump, whose frames are gone. */
	while (v->priv[HOT_FRAMES] && s->nsignals &&
	       s->signals[s->nsignals - 1].top >= v->priv[HOT_TOP])
		s->nsignals--;
	if (!s->nsignals)
		return &block_none;
	i = &s->signals[--s->nsignals];
	if (v->priv[HOT_FRAMES])
		v->priv[HOT_TOP] = i->top;
	return i->block;
}

/* Whether p's last transfer took place is seen when the handler has returned. */
static void signal_arrives(struct seg_vcpu *v, struct vcpu *s, const struct block *p)
{
	if (returned(v, p)) { /* before anything else ran: it comes where the one before it came */
		p = signal_ends(v, s);
		s->resumes = false;
	}
	if (engine.features & SEG_LABEL)
		label_signal(v);
	if (s->nsignals == SIGNAL_DEPTH) {
		memmove(s->signals, s->signals + 1, sizeof(s->signals[0]) * (SIGNAL_DEPTH - 1));
		s->nsignals--;
	}
	s->signals[s->nsignals++] = (struct interrupted){p, v->priv[HOT_TOP]};
	if (v->priv[HOT_FRAMES])
		stack_push(vcpu_frames(v), &v->priv[HOT_TOP], STACK_SIGNAL, p->cti);
}

/*
 * Where in p a signal came that ended at t: -1 after its end. A loop or a return to p's own start
 * looks like a fault of its first instruction; it is taken for the former.
 */
static int interrupted_index(const struct block *p, const struct block *t)
{
	int i = block_index(p, t->pc);

	/* A fault is one of an access; a return to its own block's first instruction is rare unless
	 * the stack says so. */
	if (block_indirect(p))
		return i > 0 || (i == 0 && insn_accesses(block_classes(p)[0])) ? i : -1;
	if (block_successor(p, t->pc) || (p->flow == FLOW_SYSCALL && t->pc == p->cti))
		return -1;
	return i;
}

static bool add_sums(struct seg_vcpu *v, const struct step *s)
{
	int64_t sum[INDEXES] = {0};
	lanes_t lanes;
	bool full;

	step_sum(&engine.rates, s, sum);
	for (unsigned k = 0; k < SEG_LANES; k++)
		lanes[k] = (uint16_t)sum[k];
	full = entry_add_lanes(v, &lanes);
	for (unsigned k = 0; k < engine.rates.nscalars; k++) {
		v->scalar[k] += (uint64_t)sum[SEG_LANES + k];
		full |= (int64_t)v->scalar[k] >= v->nearest[SEG_LANES + k];
	}
	return full;
}

static void add_step(struct seg_vcpu *v, const struct step *s)
{
	const struct block *t = s->block;
	bool full;

	if (!s->skip && !s->again && !engine.rates.nscalars) {
		lanes_t sum = t->lanes + vcpu_models(v)->outcome[OUTCOME(s->missed, s->taken)];

		full = entry_add_lanes(v, &sum);
	} else {
		full = add_sums(v, s);
	}
	if (full)
		fold_step(v, s);
	if (engine.features & SEG_FETCH && !models_fetched(v, t))
		models_fetch(v, t);
}

/* The transfer that ended p went to t, where a step begins that is not a whole block or not a
 * simple one. */
static void resolve(struct seg_vcpu *v, const struct block *t, const struct block *p,
		    struct step *step)
{
	step->taken = taken_from(p, t);
	if (engine.features & SEG_PREDICT)
		step->missed = (uint8_t)models_predict(v, t, p);
	if (p->flow >= FLOW_IJUMP)
		follow(v, t, p);
}

COLD static void resume(struct seg_vcpu *v, const struct block *t)
{
	struct vcpu *s = vcpu_private(v);
	const struct block *p = signal_ends(v, s);
	struct step step = {.prev = p, .block = t};
	int index = interrupted_index(p, t);

	s->resumes = false;
	if (p->flow == FLOW_REP && t->pc == p->cti && t->n == 1) {
		step.again = !p->whole;
		step.skip = s->entered_again = p->whole;
	} else if (index >= 0) {
		step.skip = replayed(p, index, t);
		if (engine.isa->traits & ISA_BRANCH && p->moves && t->pc == p->cti + 4)
			s->pending = p;
	} else if (block_successor(p, t->pc) || block_indirect(p)) {
		resolve(v, t, p, &step);
	}
	add_step(v, &step);
}

/*
 * Transfers with a delay slot. Engine sheet 7.3: a slot that is no part of its transfer's block
 * comes as a block of one instruction, and so does one that was restarted after a window trap;
 * where the transfer goes is seen behind it. True: all is told by that, and in @step.
 */
static bool delayed(struct seg_vcpu *v, struct vcpu *s, const struct block *t,
		    const struct block *p, struct step *step)
{
	const struct block *from = s->pending;
	int index = block_index(p, t->pc);

	s->pending = NULL;
	if (p->apart && t->pc == p->cti + 4) {
		s->pending = p;
		if (p->apart == DELAY_TAKEN)
			resolve(v, t, p, step);
		return true;
	}
	if (from && p->n == 1 && p->pc == from->cti + 4) {
		if (t->pc == p->pc) { /* the slot was restarted */
			s->pending = from;
			step->skip = 1;
			return true;
		}
		if (t->pc != from->goes && !block_indirect(from))
			return false;
		step->prev = from;
		if (from->apart != DELAY_TAKEN)
			resolve(v, t, from, step);
		return true;
	}
	/* A window trap restarts what moves the window; else control went there, if only to its own
	 * block. */
	if (block_indirect(p) && (index < 0 || !block_restarts(p, (unsigned)index))) {
		resolve(v, t, p, step);
		return true;
	}
	if (index >= 0 && p->moves && t->pc == p->cti + 4)
		s->pending = p;
	return false;
}

void other_successor(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	struct step step = {.prev = p, .block = t};

	if (p->any) /* the first block of a thread */
		add_step(v, &step);
	else
		odd_successor(v, t, p);
}

/*
 * Where nothing looks at branches: p was aborted by a window trap at its instruction at t->pc
 * (@index of p), and that is begun again; or (-1) a signal handler has returned. The same as
 * odd_successor() has it.
 */
COLD static void restart(struct seg_vcpu *v, const struct block *t, const struct block *p,
			 int index)
{
	struct vcpu *s = vcpu_private(v);
	struct step step = {.prev = p, .block = t};

	v->priv[HOT_PREV] = (uintptr_t)t;
	if (index < 0) {
		resume(v, t);
	} else {
		step.skip = replayed(p, index, t);
		if (p->moves && t->pc == p->cti + 4)
			s->pending = p;
		add_step(v, &step);
	}
	s->pending = NULL;
}

/* A block that begins with an instruction that a window trap restarts. */
static void on_restart(unsigned vcpu, void *udata)
{
	const struct block *t = udata, *p;
	struct seg_vcpu *v = &engine_pub[vcpu];
	int index = -1;

	if (vcpu >= SEG_VCPUS)
		return;
	p = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	if (t->pc - p->pc <= p->last - p->pc && !block_successor(p, t->pc))
		index = block_index(p, t->pc);
	if (index >= 0 || returned(v, p))
		restart(v, t, p, index);
	else
		engine.ordinary(vcpu, udata);
}

static struct handler *find_handler(uint64_t pc)
{
	for (unsigned i = 0; i < engine.nhandlers; i++) {
		if (engine.handlers[i].pc == pc)
			return &engine.handlers[i];
	}
	return NULL;
}

/*
 * A trap of sparc64 sets all registers: longjmp is made of it there, and goes on in setjmp, whose
 * return tells the rest. Signals come to blocks that are known for it (on_handler).
 */
static bool sets_context(const struct block *t)
{
	return engine.isa->traits & ISA_BRANCH && !find_handler(t->pc);
}

COLD void odd_successor(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	struct vcpu *s = vcpu_private(v);
	struct step step = {.prev = p, .block = t};
	int index = replay_index(p, t);

	if (p->flow == FLOW_SYSCALL && s->resumes) {
		resume(v, t);
		return;
	}
	if (engine.isa->traits & ISA_BRANCH && delayed(v, s, t, p, &step)) {
		add_step(v, &step);
		return;
	}
	if (index >= 0)
		step.skip = replayed(p, index, t);
	else if (!(p->flow == FLOW_SYSCALL && (t->pc == p->cti || sets_context(t))))
		signal_arrives(v, s, p);
	add_step(v, &step);
}

/*
 * The first block of a signal handler. After an indirect transfer every successor is legal, so the
 * arrival of a signal can be told only by where it goes.
 */
COLD static void handler_entered(struct seg_vcpu *v, const struct block *t)
{
	const struct block *p = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	struct step step = {.prev = p, .block = t};

	v->priv[HOT_PREV] = (uintptr_t)t;
	if (p == &block_none || (!p->any && block_successor(p, t->pc))) {
		resolve(v, t, p, &step);
	} else {
		signal_arrives(v, vcpu_private(v), p);
	}
	add_step(v, &step);
}

COLD static void repeat_slowly(struct seg_vcpu *v, const struct block *t)
{
	struct step step = {.block = t, .again = true};

	v->priv[HOT_PREV] = (uintptr_t)t;
	add_step(v, &step);
}

COLD static void full_rep(struct seg_vcpu *v, const struct block *t)
{
	struct step step = {.block = t, .again = true};

	fold_step(v, &step);
}

/* A repeated instruction by itself: the block before may have been its last repetition. */
static void on_rep(unsigned vcpu, void *udata)
{
	struct seg_vcpu *v = &engine_pub[vcpu];
	const struct block *t = udata, *p;

	if (vcpu >= SEG_VCPUS)
		return;
	p = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	if (p == t && engine.rep_lanes) {
		if (__builtin_expect(entry_add_lanes(v, &engine.rates.lane_again[t->again]), 0))
			full_rep(v, t);
	} else if (p->flow == FLOW_REP && p->cti == t->pc) {
		repeat_slowly(v, t);
	} else if (__builtin_expect(returned(v, p), 0)) {
		restart(v, t, p, -1);
	} else {
		engine.ordinary(vcpu, udata);
	}
}

/* The same where its repetitions are seen by their accesses: entered again, it counts nothing. */
static void on_rep_whole(unsigned vcpu, void *udata)
{
	struct seg_vcpu *v = &engine_pub[vcpu];
	const struct block *t = udata, *p;

	if (vcpu >= SEG_VCPUS)
		return;
	p = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	if (p->flow == FLOW_REP && p->cti == t->pc) {
		vcpu_private(v)->entered_again = true;
		v->priv[HOT_PREV] = (uintptr_t)t;
	} else if (__builtin_expect(returned(v, p), 0)) {
		restart(v, t, p, -1);
	} else {
		engine.ordinary(vcpu, udata);
	}
}

/* Where in its block an instruction faulted cannot be seen before its handler returns, and not at
 * all when that never does: the machine must know that the block was counted whole. */
static void note_fault(void)
{
	if (engine.proc)
		__atomic_fetch_add(&engine.proc->faults, 1, __ATOMIC_RELAXED);
}

/* Where nothing looks at branches, what a handler returns to is asked of repetitions alone. */
static void interrupted_repetition(struct seg_vcpu *v, const struct block *t)
{
	const struct block *p = (const struct block *)(uintptr_t)v->priv[HOT_PREV];

	if (p->flow == FLOW_REP && t->pc != p->fall)
		signal_arrives(v, vcpu_private(v), p);
}

static void on_handler(unsigned vcpu, void *udata)
{
	const struct block *t = udata;
	const struct handler *h = find_handler(t->pc);

	if (vcpu >= SEG_VCPUS)
		return;
	if (h && h->faults)
		note_fault();
	if (engine.restarts ||
	    engine.features & (SEG_STACK | SEG_BRANCH | SEG_PREDICT | SEG_FETCH)) {
		handler_entered(&engine_pub[vcpu], t);
		return;
	}
	interrupted_repetition(&engine_pub[vcpu], t);
	engine_pub[vcpu].priv[HOT_PREV] = (uintptr_t)t; /* it may end in a system call */
	engine.ordinary(vcpu, udata);
}

void engine_handler(uint64_t pc, uint64_t signal)
{
	bool faults = signal < 32 && engine.isa->faults >> signal & 1;
	struct handler *h = find_handler(pc);

	if (pc <= 1) /* SIG_DFL, SIG_IGN */
		return;
	if (!h && engine.nhandlers < HANDLERS_MAX) {
		h = &engine.handlers[engine.nhandlers++];
		h->pc = pc;
	}
	if (h)
		h->faults |= faults;
	else if (faults)
		note_fault(); /* what comes to it will not be seen */
}

/* ---- translation ---- */

static qemu_plugin_vcpu_udata_cb callback_for(const struct block *b)
{
	if (find_handler(b->pc))
		return on_handler;
	if (b->flow == FLOW_REP && b->n == 1)
		return b->whole ? on_rep_whole : on_rep;
	if (engine.restarts && block_restarts(b, 0))
		return on_restart;
	return entry_callback(b->flow == FLOW_SYSCALL || engine.isa->traits & ISA_TRACK,
			      !engine.threaded);
}

static uint64_t read_insn(struct insn *in, const struct qemu_plugin_insn *insn, uint64_t hash)
{
	uint64_t pc = qemu_plugin_insn_vaddr(insn);
	uint8_t bytes[16];
	size_t size = qemu_plugin_insn_size(insn);
	struct decoded d;
	bool whole;

	if (size > sizeof(bytes))
		size = sizeof(bytes);
	plugin_insn_bytes(insn, bytes, size);
	engine.isa->decode(bytes, (unsigned)size, pc, &d);
	whole = d.flow == FLOW_REP && repeat_whole(bytes, size);
	if (whole)
		d.access = 0; /* each of its accesses is seen */
	*in = insn_decoded(&d, pc, (unsigned)size);
	in->whole = whole;
	return block_hash(hash, bytes, (unsigned)size);
}

#define X86_LONGEST 15

/*
 * An instruction that crosses into the next page is taken back by the translator of x86, but stays
 * in the list of the block's instructions. Whether that happened cannot be seen here, only that it
 * may have.
 */
static bool may_be_phantom(const struct qemu_plugin_insn *insn)
{
	uint64_t page = engine.isa->page;

	return engine.isa->traits & ISA_PHANTOM &&
	       (qemu_plugin_insn_vaddr(insn) & (page - 1)) > page - X86_LONGEST;
}

/*
 * Runs before the block's own callback, so that the block before is still the one before. Where a
 * delay slot is a block of its own, control goes from the slot.
 */
static void on_taken(unsigned vcpu, void *udata)
{
	const struct block *t = udata, *p;
	struct vcpu *s = &engine.vcpu[vcpu < SEG_VCPUS ? vcpu : 0];
	uint64_t from;
	uint8_t flow;

	if (vcpu >= SEG_VCPUS)
		return;
	p = (const struct block *)(uintptr_t)engine_pub[vcpu].priv[HOT_PREV];
	from = p->cti;
	flow = p->flow;
	if (s->pending && p->n == 1 && p->pc == s->pending->cti + 4) {
		if (t->pc == p->fall)
			return;
		from = s->pending->cti;
		flow = s->pending->flow;
	} else if (!taken_from(p, t) || p->apart ||
		   !(block_successor(p, t->pc) || block_indirect(p))) {
		return;
	}
	s->branches[s->nbranches++ % BRANCHES] = (struct taken){from, t->pc};
	if (flow == FLOW_CALL || flow == FLOW_ICALL)
		s->calls[s->ncalls++ % BRANCHES] = (struct taken){from, t->pc};
}

/* ---- nothing is counted ---- */

/* The machine asks for something, or the thread begins. @udata: an address in the block. */
COLD static void asked_idle(unsigned vcpu, uint64_t pc)
{
	if (vcpu >= SEG_VCPUS || !__atomic_load_n(&engine_pub[vcpu].request, __ATOMIC_RELAXED))
		return;
	fold_request(&engine_pub[vcpu], pc);
	select_look();
}

static void on_idle(unsigned vcpu, void *pc)
{
	if (__builtin_expect(engine_pub[vcpu & (SEG_VCPUS - 1)].request, 0))
		asked_idle(vcpu, (uintptr_t)pc);
}

static void on_idle_lone(unsigned vcpu, void *pc)
{
	if (__builtin_expect(engine_pub[0].request | vcpu, 0))
		asked_idle(vcpu, (uintptr_t)pc);
}

/* A system call may be told, with where it was made. */
static void on_idle_call(unsigned vcpu, void *block)
{
	if (vcpu >= SEG_VCPUS)
		return;
	engine_pub[vcpu].priv[HOT_PREV] = (uintptr_t)block;
	on_idle(vcpu, (void *)(uintptr_t)((const struct block *)block)->cti);
}

/*
 * Whoever computes for long goes back, or to where a register says, again and again: blocks that
 * only go on need not look. Where a delay slot, or an instruction that is none, comes last, what is
 * before it is not asked.
 */
static bool goes_on(const struct insn *last, const struct qemu_plugin_insn *insn)
{
	if (engine.isa->traits & ISA_BRANCH || may_be_phantom(insn))
		return false;
	return last->flow == FLOW_NONE ||
	       ((last->flow == FLOW_COND || last->flow == FLOW_JUMP || last->flow == FLOW_CALL) &&
		last->target > last->pc);
}

static void translate_idle(struct qemu_plugin_tb *tb, size_t n)
{
	const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n - 1);
	const struct block *b = NULL;
	struct insn last;
	uint64_t hash = read_insn(&last, insn, BLOCK_HASH_START);

	if (last.flow == FLOW_SYSCALL)
		b = block_intern(&engine.store, &engine.rates, &last, 1, hash);
	if (b)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_idle_call, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)b);
	else if (!goes_on(&last, insn))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, engine.threaded ? on_idle : on_idle_lone,
						     QEMU_PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)last.pc);
}

/* @group: where its access is seen together with others that come behind it, or NULL; @seen: it is
 * seen with others before it. */
static void accesses(struct qemu_plugin_insn *insn, unsigned index, const struct insn *in,
		     const struct group *group, bool seen)
{
	uint8_t class = in->class | (in->whole ? in->again : 0);

	if (group)
		models_translate_group(insn, group);
	else if (!seen)
		models_translate(insn, index, class);
	pages_translate(insn, index, insn_accesses(class));
}

static void translate_accesses(struct qemu_plugin_tb *tb, size_t n, const struct block *b,
			       const struct insn *insns)
{
	const struct group *g = b->groups;
	unsigned next = 0; /* access of the group */

	for (size_t i = 0; i < n; i++) {
		bool member = g && g->access[next].index == i;

		accesses(qemu_plugin_tb_get_insn(tb, i), (unsigned)i, &insns[i],
			 member && !next ? g : NULL, member && next);
		if (member && ++next == g->n) {
			g = g->next;
			next = 0;
		}
	}
}

/* So it is a block of its own, entered right before it runs, if it ever does from here. */
static void set_apart(struct qemu_plugin_insn *insn)
{
	int flags = engine.features & SEG_REGS ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS;
	struct insn in;
	uint64_t hash = read_insn(&in, insn, BLOCK_HASH_START);
	const struct block *b = block_intern(&engine.store, &engine.rates, &in, 1, hash);

	if (!b)
		return;
	models_block((struct block *)b);
	if (engine.features & SEG_REGS)
		regs_translate(insn, b);
	if (engine.features & SEG_BRANCHES)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_taken, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)b);
	qemu_plugin_register_vcpu_insn_exec_cb(insn, callback_for(b), flags, (void *)b);
	accesses(insn, 0, &in, NULL, false);
	repeat_translate(insn, &in);
}

/* Each instruction is a block of its own: where it begins its registers can be read. */
static void translate_apart(struct qemu_plugin_tb *tb, size_t n)
{
	for (size_t i = 0; i < n; i++)
		set_apart(qemu_plugin_tb_get_insn(tb, i));
	if (engine.proc)
		engine.proc->blocks++;
	pages_code(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)),
		   qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, n - 1)));
}

/* QEMU translates under its own lock: one block at a time. */
static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct insn insns[BLOCK_MAX_INSNS];
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t hash = BLOCK_HASH_START;
	const struct block *b;

	(void)id;
	if (!n || n > BLOCK_MAX_INSNS)
		return;
	if (!engine.have_base) {
		const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);

		engine.guest_base = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(first) -
				    qemu_plugin_insn_vaddr(first);
		engine.have_base = true;
	}
	if (!(engine.features & SEG_COUNT)) {
		translate_idle(tb, n);
		return;
	}
	if (engine.features & SEG_REGS) {
		translate_apart(tb, n);
		return;
	}
	if (n > 1 && may_be_phantom(qemu_plugin_tb_get_insn(tb, n - 1)))
		set_apart(qemu_plugin_tb_get_insn(tb, --n));
	for (size_t i = 0; i < n; i++)
		hash = read_insn(&insns[i], qemu_plugin_tb_get_insn(tb, i), hash);
	b = block_intern(&engine.store, &engine.rates, insns, (unsigned)n, hash);
	if (!b)
		return;
	models_block((struct block *)b);
	if (engine.proc)
		engine.proc->blocks++;
	if (engine.features & SEG_BRANCHES)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_taken, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)b);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, callback_for(b), QEMU_PLUGIN_CB_NO_REGS,
					     (void *)b);
	translate_accesses(tb, n, b, insns);
	repeat_translate(qemu_plugin_tb_get_insn(tb, n - 1), &insns[n - 1]);
	pages_code(insns[0].pc, insns[n - 1].pc);
}

/* A block that a thread still needs, for its outcome or because it may be begun again. */
static const struct block *kept(const struct block *b)
{
	const struct block *copy = b && b != &block_none ? block_store_keep(&engine.store, b) : b;

	return copy || !b ? copy : &block_none;
}

static void keep_blocks(struct seg_vcpu *v)
{
	struct vcpu *s = vcpu_private(v);

	if (engine.features & SEG_LABEL)
		label_keep(v);
	v->priv[HOT_PREV] = (uintptr_t)kept((const struct block *)(uintptr_t)v->priv[HOT_PREV]);
	s->pending = kept(s->pending);
	if (s->pending == &block_none)
		s->pending = NULL;
	for (unsigned i = 0; i < s->nsignals; i++)
		s->signals[i].block = kept(s->signals[i].block);
}

/*
 * No vCPU is in a block. One may be on its way into a system call, and look at the block before:
 * what goes now stays where it is until the next time.
 */
static void on_flush(qemu_plugin_id_t id)
{
	(void)id;
	block_store_turn(&engine.store);
	for (unsigned i = 0; i < SEG_VCPUS; i++) {
		if (engine_pub[i].priv[HOT_PREV])
			keep_blocks(&engine_pub[i]);
	}
}

/* ---- install ---- */

void engine_callbacks(qemu_plugin_id_t id)
{
	engine.store.labels = engine.features & SEG_LABEL;
	engine.store.group = models_group();
#if defined(__x86_64__)
	engine.wide = engine.isa->traits & ISA_WIDE && __builtin_cpu_supports("avx");
#endif
	engine.restarts = engine.isa->traits & ISA_BRANCH && engine.features & SEG_COUNT &&
			  !(engine.features & SEG_BRANCH);
	engine.ordinary = entry_callback(engine.isa->traits & ISA_TRACK, false);
	engine.rep_lanes = !engine.rates.nscalars && !(engine.features & SEG_FETCH);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_flush_cb(id, on_flush);
}
