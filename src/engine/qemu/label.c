/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labels: what became of each instruction on a core that runs ahead of its misses (model/ahead.h).
 * Every block folds; when the next one begins, all is known of the block before (what its accesses
 * missed, where its transfer went), and its instructions go through the model one by one.
 *
 * The counts of this file (QUIPU_SIGNAL_LABELLED to _L2_TRANSACTION_LAST) move nowhere else, so
 * that their deadlines are reached here, and the record tells what the instruction was. It comes up
 * to a block after those of other deadlines; its own values are those of its instruction.
 */
#include <string.h>
#include <sys/mman.h>

#include "model/ahead.h"
#include "models.h"
#include "plugin.h"

#define FIRST	QUIPU_SIGNAL_LABELLED
#define SIGNALS (QUIPU_SIGNAL_L2_TRANSACTION_LAST - FIRST + 1)
#define LOGGED	1024u
#define NOWHERE 0xffu
#define BIT(c)	QUIPU_CLASS_BIT(QUIPU_INSN_##c)
#define READS	(BIT(LOAD) | BIT(FLOAD) | BIT(LR))
#define WRITES	(BIT(STORE) | BIT(FSTORE) | BIT(SC) | BIT(AMO))
#define KEPT	(sizeof(struct block) + BLOCK_MAX_INSNS * 9)
_Static_assert(sizeof(struct insn_label) + sizeof(uint16_t) + 1 == 9, "of a record");

struct logged {
	uint64_t va;
	uint32_t events;
	uint16_t index;
	uint8_t size;
	bool fetch;
};

struct labels {
	const struct block *block; /* the one that is not labelled yet; NULL: none */
	unsigned skip;
	bool stalled; /* the front end waited before its first instruction */
	/* Of its own: what timing full adds to the cycles is the wait that running ahead avoids. */
	uint64_t cycles;
	struct ahead ahead;
	uint64_t seen; /* the other strand's word in @held, */
	uint16_t turn; /* and how often this one has written its own */
	uint16_t writes;
	uint32_t n;
	struct logged log[LOGGED];
	_Alignas(64) uint8_t kept[KEPT]; /* of @block, when its record is gone */
};

static struct labels *labels[SEG_VCPUS];
/*
 * By CPU: what each strand holds of what its core shares. A word each, so that it is read whole;
 * its top quarter tells a new one from an old one.
 */
#define CPUS 256u
static uint64_t held[CPUS];
/*
 * Of each line, as far as their places do not collide, the last write: line, CPU and a number that
 * tells it from the writes before. A word each again.
 */
#define WRITTEN	    4096u
#define WRITES_BITS 15u
#define CPU_BITS    8u
static uint64_t written[WRITTEN];
static uint8_t place[SIGNALS]; /* scalar of each signal, NOWHERE: it is not wanted */

static void find_places(void)
{
	memset(place, NOWHERE, sizeof(place));
	for (unsigned k = 0; k < SEG_SCALARS; k++) {
		quipu_signal s = engine.head->scalar_signal[k];

		if (s >= FIRST && s - FIRST < SIGNALS)
			place[s - FIRST] = (uint8_t)k;
	}
}

void label_begin(struct seg_vcpu *v)
{
	const struct quipu_model *m = &engine.model;
	struct labels **l = &labels[vcpu_index(v)];
	/* Rock sheet section 1: a hit of level 1 takes 3 cycles. */
	struct ahead_times times = {3, m->l2.latency, m->l3.latency, m->memory, m->walk};

	if (!*l) {
		void *p = mmap(NULL, sizeof(**l), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return;
		*l = p;
	}
	find_places();
	(*l)->block = NULL;
	(*l)->n = 0;
	ahead_init(&(*l)->ahead, &times);
}

void label_keep(struct seg_vcpu *v)
{
	struct labels *l = labels[vcpu_index(v)];

	if (!l || !l->block || l->block == (const struct block *)l->kept)
		return;
	memcpy(l->kept, l->block, block_bytes(l->block->n, true));
	l->block = (const struct block *)l->kept;
}

/* ---- what the models say while the block runs ---- */

static struct logged *logged(struct labels *l, unsigned index)
{
	struct logged *at = &l->log[l->n < LOGGED ? l->n++ : LOGGED - 1];

	*at = (struct logged){.index = (uint16_t)index};
	return at;
}

void label_access(struct seg_vcpu *v, unsigned index, uint64_t va, unsigned size)
{
	struct labels *l = labels[vcpu_index(v)];
	struct logged *at;

	if (!l)
		return;
	at = logged(l, index);
	at->va = va;
	at->size = (uint8_t)size;
}

void label_miss(struct seg_vcpu *v, uint32_t events)
{
	struct labels *l = labels[vcpu_index(v)];

	if (l && l->n)
		l->log[l->n - 1].events |= events;
}

void label_fetch(struct seg_vcpu *v, unsigned index, uint32_t events)
{
	struct labels *l = labels[vcpu_index(v)];
	struct logged *at;

	if (!l)
		return;
	at = logged(l, index);
	at->fetch = true;
	at->events = events;
}

void label_signal(struct seg_vcpu *v)
{
	struct labels *l = labels[vcpu_index(v)];

	if (l && ahead_yank(&l->ahead) && place[QUIPU_SIGNAL_YANKS - FIRST] != NOWHERE)
		v->scalar[place[QUIPU_SIGNAL_YANKS - FIRST]]++;
}

/* ---- the other strand ---- */

/* Of a core of two. */
static bool has_other(const struct seg_vcpu *v)
{
	return engine.model.core_cpus == 2 && v->cpu < CPUS;
}

/* Before a block: what a thread on the other strand has published since the last one. */
static void hear_other(const struct seg_vcpu *v, struct labels *l)
{
	uint64_t word;

	if (!has_other(v))
		return;
	word = __atomic_load_n(&held[v->cpu ^ 1], __ATOMIC_RELAXED);
	if (word == l->seen)
		return;
	l->seen = word;
	ahead_other(&l->ahead, l->cycles,
		    &(struct ahead_held){.store_cycles = (uint16_t)(word >> 32),
					 .deferred_cycles = (uint16_t)(word >> 16),
					 .stores = (uint8_t)(word >> 8),
					 .deferred = (uint8_t)word});
}

static void tell_other(const struct seg_vcpu *v, struct labels *l)
{
	struct ahead_held h;

	if (!has_other(v))
		return;
	ahead_holds(&l->ahead, l->cycles, &h);
	__atomic_store_n(&held[v->cpu],
			 (uint64_t)++l->turn << 48 | (uint64_t)h.store_cycles << 32 |
				 (uint64_t)h.deferred_cycles << 16 | (uint64_t)h.stores << 8 |
				 h.deferred,
			 __ATOMIC_RELAXED);
}

/* ---- what other strands write ---- */

static uint64_t *word_of(uint64_t line)
{
	return &written[(line ^ line >> 12) % WRITTEN];
}

static uint64_t write_of(const struct seg_vcpu *v, uint64_t line, uint16_t number)
{
	return line << (CPU_BITS + WRITES_BITS) |
	       (uint64_t)(v->cpu & ((1u << CPU_BITS) - 1)) << WRITES_BITS |
	       (number & ((1u << WRITES_BITS) - 1));
}

static void tell_write(const struct seg_vcpu *v, struct labels *l, uint64_t addr)
{
	uint64_t line = addr >> AHEAD_LINE;

	__atomic_store_n(word_of(line), write_of(v, line, ++l->writes), __ATOMIC_RELAXED);
}

/* The last write to @line, if it was another strand's; else 0. */
static uint64_t foreign_write(void *arg, uint64_t line)
{
	const struct seg_vcpu *v = arg;
	uint64_t word = __atomic_load_n(word_of(line), __ATOMIC_RELAXED);
	uint64_t other = word ^ write_of(v, line, 0);

	return other >> (CPU_BITS + WRITES_BITS) || !(other >> WRITES_BITS) ? 0 : word;
}

/* ---- the block is complete ---- */

struct walk {
	struct seg_vcpu *v;
	struct labels *l;
	int64_t now[INDEXES]; /* at the completion of the present instruction */
	uint64_t pc, addr;
	struct quipu_insn insn;
};

static void moved(struct walk *w, quipu_signal signal)
{
	unsigned k = place[signal - FIRST];

	if (k == NOWHERE)
		return;
	w->v->scalar[k]++;
	w->now[SEG_LANES + k] = (int64_t)w->v->scalar[k];
	if (w->now[SEG_LANES + k] >= w->v->nearest[SEG_LANES + k])
		fold_labelled(w->v, w->now, w->pc, w->addr, &w->insn);
}

static void gather(const struct labels *l, unsigned index, struct ahead_insn *in)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct logged *at = &l->log[i];

		if (at->index != index)
			continue;
		if (at->fetch) {
			in->fetch |= at->events & ~(uint32_t)QUIPU_INSN_FETCH_MISS;
			continue;
		}
		if (!in->bytes) {
			in->addr = at->va;
			in->bytes = at->size;
		}
		in->events |= at->events;
	}
}

/* How the transfer that ended @b went, if @s tells. */
static uint32_t outcome(const struct block *b, unsigned i, const struct step *s)
{
	/* The same place: after a flush both are copies. */
	if (!s || !s->prev || s->prev->pc != b->pc || s->prev->cti != b->cti ||
	    block_insn(b, i) != b->cti || !b->moves)
		return 0;
	return QUIPU_INSN_RESOLVED | (s->taken ? QUIPU_INSN_TAKEN : 0u) |
	       (s->missed ? QUIPU_INSN_MISPREDICTED : 0u);
}

static void count(struct walk *w, const struct ahead_label *label)
{
	w->insn.events = label->events;
	w->insn.mode = label->mode;
	w->insn.latency = label->latency;
	if (label->blocked)
		moved(w, QUIPU_SIGNAL_SIBLING_BLOCKS);
	if (label->livelock)
		moved(w, QUIPU_SIGNAL_LIVELOCKS);
	if (label->yanked)
		moved(w, QUIPU_SIGNAL_YANKS);
	if (w->insn.class != QUIPU_INSN_TRAP)
		moved(w, QUIPU_SIGNAL_LABELLED);
	for (unsigned i = 0; i < label->ntransactions; i++) {
		w->insn.transaction = label->transaction[i].kind;
		w->insn.events = label->transaction[i].events;
		moved(w, QUIPU_SIGNAL_L2_TRANSACTIONS);
		moved(w, QUIPU_SIGNAL_L2_TRANSACTION + label->transaction[i].kind);
	}
}

static void label_insn(struct walk *w, const struct block *b, unsigned i, const struct step *s)
{
	const struct insn_label *label = &block_labels(b)[i];
	struct ahead_insn in = {
		.pc = block_insn(b, i),
		.cycle = w->l->cycles,
		.class = block_classes(b)[i] & (INSN_LOAD - 1),
		.stalled = i == 0 && w->l->stalled,
		.flush = label->flush,
		.barrier = label->barrier,
		.trap = i + 1u == b->n && b->flow == FLOW_SYSCALL,
		.operands = label->operands,
		.events = outcome(b, i, s),
	};
	struct ahead_label out;

	gather(w->l, i, &in);
	if (in.bytes && READS >> in.class & 1)
		in.written = foreign_write(w->v, in.addr >> AHEAD_LINE);
	ahead_step(&w->l->ahead, &in, &out);
	if (in.bytes && WRITES >> in.class & 1)
		tell_write(w->v, w->l, in.addr);
	w->pc = in.pc;
	w->addr = in.addr;
	w->insn = (struct quipu_insn){0};
	block_describe(b, i, &w->insn);
	count(w, &out);
}

void label_step(struct seg_vcpu *v, const struct step *s, const int64_t now[INDEXES])
{
	struct labels *l = labels[vcpu_index(v)];
	const struct block *b = l ? l->block : NULL;
	int64_t sum[INDEXES] = {0};
	struct walk w = {.v = v, .l = l};

	if (!l)
		return;
	l->block = NULL;
	memcpy(w.now, now, sizeof(w.now));
	if (b) {
		hear_other(v, l);
		step_sum(&engine.rates, &(struct step){.block = b, .skip = l->skip}, sum);
		for (unsigned i = 0; i < INDEXES; i++)
			w.now[i] -= sum[i];
		if (ahead_overtaken(&l->ahead, foreign_write, v)) {
			w.pc = block_insn(b, l->skip);
			moved(&w, QUIPU_SIGNAL_YANKS);
		}
		for (unsigned i = l->skip; i < b->n; i++) {
			int64_t before = w.now[SEG_LANE_CYCLES];

			step_add(&engine.rates, b, i, w.now);
			l->cycles += (uint64_t)(w.now[SEG_LANE_CYCLES] - before);
			label_insn(&w, b, i, s);
		}
		tell_other(v, l);
	}
	l->n = 0;
	if (!s || s->again)
		return;
	l->block = s->block;
	l->skip = s->skip;
	l->stalled = s->missed != MODEL_PREDICTED;
}
