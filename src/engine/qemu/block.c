/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of translated blocks: their sums, the arena they lie in, and the walk that finds the
 * instruction at which a signal reached a value. Engine sheet 6.1-6.5.
 */
#include "group.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <quipu/bits.h>

#define CHUNK_BYTES   (1u << 20)
#define FIRST_BUCKETS 4096u
#define LINK	      AHEAD_R(15) /* %o7 of sparc64, where a call leaves its own address */

/* ---- rates ---- */

static uint16_t cost_of(const struct seg_header *h, unsigned class)
{
	uint16_t cost = h->cost[class];

	if (cost < 1)
		return 1; /* every block moves the cycles, so that every block can end a quantum */
	return cost > BLOCK_MAX_COST ? BLOCK_MAX_COST : cost;
}

static bool accesses(quipu_signal signal, unsigned byte)
{
	return (signal == QUIPU_SIGNAL_LOADS && byte & INSN_LOAD) ||
	       (signal == QUIPU_SIGNAL_STORES && byte & INSN_STORE);
}

static uint16_t rate_of(quipu_signal signal, unsigned byte)
{
	unsigned class = byte & (INSN_LOAD - 1);

	if (class == QUIPU_INSN_TRAP) /* does not retire */
		return 0;
	return accesses(signal, byte) || quipu_signal_mask(signal) & QUIPU_CLASS_BIT(class);
}

/* A repetition is no further instruction: a cycle, and what it loads and stores. */
static void rates_again(struct rates *r, const struct seg_header *h)
{
	for (unsigned a = 0; a < 2 * AGAIN_FIRST; a++) {
		unsigned access = a % AGAIN_FIRST * INSN_LOAD;
		bool cycle = a < AGAIN_FIRST;

		r->lane_again[a][SEG_LANE_CYCLES] = cycle;
		for (unsigned k = 2; k < SEG_LANES; k++)
			r->lane_again[a][k] = accesses(h->lane_signal[k], access);
		for (unsigned k = 0; k < SEG_SCALARS; k++)
			r->scalar_again[a][k] =
				accesses(h->scalar_signal[k], access) ||
				(cycle && h->scalar_signal[k] == QUIPU_SIGNAL_CYCLES);
	}
}

static void note_signal(struct rates *r, unsigned index, quipu_signal signal)
{
	if (signal == QUIPU_SIGNAL_BRANCHES_TAKEN)
		r->taken |= 1u << index;
	else if (signal == QUIPU_SIGNAL_SYSCALLS)
		r->syscalls |= 1u << index;
	else if (signal >= QUIPU_SIGNAL_BYTES_READ && signal <= QUIPU_SIGNAL_BYTES_RECEIVED)
		r->bytes[signal - QUIPU_SIGNAL_BYTES_READ] |= 1u << index;
	else if (quipu_signal_mask(signal) || signal == QUIPU_SIGNAL_CYCLES)
		r->counted |= 1u << index;
}

/* Every misprediction is a branch miss and has its kind; a return's is one of a target. */
static void note_mispredicts(struct rates *r, unsigned index, quipu_signal signal)
{
	static const struct {
		quipu_signal signal;
		uint8_t first, last;
	} kinds[] = {
		{QUIPU_SIGNAL_BRANCH_MISSES, MODEL_DIRECTION, MODEL_RETURN},
		{QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES, MODEL_DIRECTION, MODEL_DIRECTION},
		{QUIPU_SIGNAL_BRANCH_TARGET_MISSES, MODEL_TARGET, MODEL_RETURN},
		{QUIPU_SIGNAL_RETURN_MISSES, MODEL_RETURN, MODEL_RETURN},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].signal != signal)
			continue;
		r->mispredicts |= 1u << index;
		for (unsigned k = kinds[i].first; k <= kinds[i].last; k++)
			r->missed[k][index] = 1;
	}
}

/* The front end waits for a mispredicted branch; timing base has no stalls. */
static void penalties_init(struct rates *r, const struct seg_header *h)
{
	uint32_t lost = h->model.full ? h->model.mispredict : 0;

	if (lost > QUIPU_MODEL_MISPREDICT)
		lost = QUIPU_MODEL_MISPREDICT;
	for (unsigned kind = MODEL_DIRECTION; kind < MODEL_MISSES; kind++) {
		r->missed[kind][SEG_LANE_CYCLES] = (uint16_t)lost;
		for (unsigned k = 0; k < SEG_SCALARS; k++)
			if (h->scalar_signal[k] == QUIPU_SIGNAL_CYCLES ||
			    h->scalar_signal[k] == QUIPU_SIGNAL_STALL_FRONTEND) {
				r->missed[kind][SEG_LANES + k] = (uint16_t)lost;
				r->mispredicts |= 1u << (SEG_LANES + k);
			}
	}
}

void rates_init(struct rates *r, const struct seg_header *h)
{
	memset(r, 0, sizeof(*r));
	for (unsigned c = 0; c < INSN_BYTES; c++) {
		unsigned class = c & (INSN_LOAD - 1);

		if (class >= QUIPU_INSN_CLASSES)
			continue;
		r->lane[c][SEG_LANE_INSTRUCTIONS] = class != QUIPU_INSN_TRAP;
		r->lane[c][SEG_LANE_CYCLES] = cost_of(h, class);
		for (unsigned k = 2; k < SEG_LANES; k++)
			r->lane[c][k] = rate_of(h->lane_signal[k], c);
		for (unsigned k = 0; k < SEG_SCALARS; k++)
			r->scalar[c][k] = h->scalar_signal[k] == QUIPU_SIGNAL_CYCLES
						  ? cost_of(h, class)
						  : rate_of(h->scalar_signal[k], c);
	}
	rates_again(r, h);
	penalties_init(r, h);
	r->counted = 3; /* lanes 0 and 1 are fixed */
	r->nlanes = 2;
	for (unsigned k = 2; k < SEG_LANES; k++) {
		if (h->lane_signal[k] != QUIPU_SIGNAL_NONE)
			r->nlanes = k + 1;
		note_signal(r, k, h->lane_signal[k]);
		note_mispredicts(r, k, h->lane_signal[k]);
	}
	for (unsigned k = 0; k < SEG_SCALARS; k++) {
		note_signal(r, SEG_LANES + k, h->scalar_signal[k]);
		note_mispredicts(r, SEG_LANES + k, h->scalar_signal[k]);
		if (h->scalar_signal[k] != QUIPU_SIGNAL_NONE)
			r->nscalars = k + 1;
	}
}

/* ---- the store ---- */

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(64) uint8_t bytes[];
};

static void *arena_alloc(struct block_store *s, size_t size)
{
	struct chunk *c = s->chunks;
	void *p;

	size = (size + 63) & ~(size_t)63;
	if (!c || c->used + size > CHUNK_BYTES - sizeof(*c)) {
		c = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		if (c == MAP_FAILED)
			return NULL;
		c->next = s->chunks;
		s->chunks = c;
	}
	p = c->bytes + c->used;
	c->used += size;
	return p;
}

int block_store_init(struct block_store *s)
{
	*s = (struct block_store){.nbuckets = FIRST_BUCKETS};
	s->bucket = calloc(s->nbuckets, sizeof(*s->bucket));
	return s->bucket ? 0 : -1;
}

static void free_chunks(struct chunk **chunks)
{
	while (*chunks) {
		struct chunk *c = *chunks;

		*chunks = c->next;
		munmap(c, CHUNK_BYTES);
	}
}

void block_store_turn(struct block_store *s)
{
	free_chunks(&s->old);
	s->old = s->chunks;
	s->chunks = NULL;
	memset(s->bucket, 0, s->nbuckets * sizeof(*s->bucket));
	s->nblocks = 0;
}

void block_store_clear(struct block_store *s)
{
	block_store_turn(s);
	free_chunks(&s->old);
}

const struct block *block_store_keep(struct block_store *s, const struct block *b)
{
	size_t bytes = block_bytes(b->n, false);
	struct block *copy = arena_alloc(s, bytes);

	if (!copy)
		return NULL;
	memcpy(copy, b, bytes);
	copy->groups = NULL;
	return copy;
}

/* A table that cannot grow only gets slower. */
static void grow(struct block_store *s)
{
	unsigned n = s->nbuckets * 4;
	struct block **bucket = calloc(n, sizeof(*bucket));

	if (!bucket)
		return;
	for (unsigned i = 0; i < s->nbuckets; i++) {
		for (struct block *b = s->bucket[i], *next; b; b = next) {
			next = b->next;
			b->next = bucket[b->hash & (n - 1)];
			bucket[b->hash & (n - 1)] = b;
		}
	}
	free(s->bucket);
	s->bucket = bucket;
	s->nbuckets = n;
}

uint64_t block_hash(uint64_t hash, const uint8_t *bytes, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

/* How @cti leaves the block. With a slot the next instruction is the one behind it. */
static void set_flow(struct block *b, const struct insn *cti, bool slot_inside)
{
	bool direct = cti->flow == FLOW_COND || cti->flow == FLOW_JUMP || cti->flow == FLOW_CALL;

	b->cti = cti->pc;
	b->fall = cti->pc + cti->size + (cti->delay ? 4 : 0);
	b->flow = cti->flow;
	b->moves = cti->flow != FLOW_NONE && cti->flow != FLOW_SYSCALL && cti->flow != FLOW_REP;
	b->any = block_indirect(b) && !cti->delay;
	b->target = direct ? cti->target : cti->flow == FLOW_REP ? cti->pc : b->fall;
	b->again = (uint8_t)(cti->again / INSN_LOAD & 3);
	b->whole = cti->whole;
	b->goes = b->target;
	if (slot_inside || (cti->delay != DELAY_ALWAYS && cti->delay != DELAY_TAKEN))
		return;
	/* The slot comes next, as a block of its own; only then is it seen where control goes. */
	b->apart = cti->delay;
	b->target = b->fall;
}

/*
 * sparc64: the slot of a call gives its caller's window back, or puts another address where it left
 * its own: what is called returns to the caller's caller, and no frame is made.
 */
static bool slot_leaves(const struct insn *slot)
{
	const struct ahead_operands *o = &slot->label.operands;

	return o->window == AHEAD_RESTORE ||
	       (o->dest == LINK && o->source[0] != LINK && o->source[1] != LINK);
}

static void leave(struct block *b)
{
	if (b->flow == FLOW_CALL)
		b->flow = FLOW_JUMP;
	else if (b->flow == FLOW_ICALL)
		b->flow = FLOW_IJUMP;
}

static void fill(struct block *b, const struct rates *r, const struct insn *insn, unsigned n,
		 bool labels)
{
	const struct insn *cti = &insn[n - 1];
	uint16_t *offsets = (uint16_t *)(b + 1);
	uint8_t *classes = (uint8_t *)(offsets + n);

	b->n = (uint16_t)n;
	b->pc = insn[0].pc;
	b->last = insn[n - 1].pc + insn[n - 1].size - 1;
	if (n > 1 && insn[n - 2].delay == DELAY_ALWAYS)
		cti--; /* the last one is its slot */
	set_flow(b, cti, cti < &insn[n - 1]);
	if (cti < &insn[n - 1] && slot_leaves(&insn[n - 1]))
		leave(b);
	for (unsigned i = 0; i < n; i++) {
		offsets[i] = (uint16_t)(insn[i].pc - b->pc);
		classes[i] = insn[i].class;
		b->lanes += r->lane[insn[i].class & (INSN_BYTES - 1)];
		for (unsigned k = 0; k < r->nscalars; k++)
			b->scalar[k] = (uint16_t)(b->scalar[k] +
						  r->scalar[insn[i].class & (INSN_BYTES - 1)][k]);
		if (labels)
			((struct insn_label *)(classes + n))[i] = insn[i].label;
	}
}

/* Those of a single access have no record. */
static void find_groups(struct block_store *s, struct block *b, const struct insn *insn, unsigned n)
{
	union {
		struct group head;
		char bytes[sizeof(struct group) + GROUP_MOST * sizeof(struct group_access)];
	} room;
	struct group **last = &b->groups;

	for (unsigned i = 0; s->group && i < n; i++) {
		unsigned found = insn_accesses(insn[i].class)
					 ? group_find(insn, n, i, s->group, &room.head)
					 : 0;
		struct group *g = found > 1 ? arena_alloc(s, group_bytes(found)) : NULL;

		if (!g)
			continue;
		memcpy(g, &room, group_bytes(found));
		*last = g;
		last = &g->next;
		i = g->access[found - 1].index;
	}
}

const struct block *block_intern(struct block_store *s, const struct rates *r,
				 const struct insn *insn, unsigned n, uint64_t hash)
{
	struct block *b;

	hash ^= insn[0].pc * UINT64_C(0x9e3779b97f4a7c15) >> 7;
	for (b = s->bucket[hash & (s->nbuckets - 1)]; b; b = b->next) {
		if (b->hash == hash && b->pc == insn[0].pc && b->n == n)
			return b;
	}
	b = arena_alloc(s, block_bytes(n, s->labels));
	if (!b)
		return NULL;
	fill(b, r, insn, n, s->labels);
	find_groups(s, b, insn, n);
	b->hash = hash;
	b->next = s->bucket[hash & (s->nbuckets - 1)];
	s->bucket[hash & (s->nbuckets - 1)] = b;
	if (++s->nblocks > 2 * s->nbuckets)
		grow(s);
	return b;
}

#define ACCESSING                                                                                  \
	(QUIPU_CLASS_BIT(QUIPU_INSN_LOAD) | QUIPU_CLASS_BIT(QUIPU_INSN_STORE) |                    \
	 QUIPU_CLASS_BIT(QUIPU_INSN_AMO) | QUIPU_CLASS_BIT(QUIPU_INSN_LR) |                        \
	 QUIPU_CLASS_BIT(QUIPU_INSN_SC) | QUIPU_CLASS_BIT(QUIPU_INSN_FLOAD) |                      \
	 QUIPU_CLASS_BIT(QUIPU_INSN_FSTORE) | QUIPU_CLASS_BIT(QUIPU_INSN_VECTOR))

bool insn_accesses(uint8_t byte)
{
	return byte & (INSN_LOAD | INSN_STORE) ||
	       ACCESSING & QUIPU_CLASS_BIT(byte & (INSN_LOAD - 1));
}

int block_index(const struct block *b, uint64_t pc)
{
	if (pc < b->pc || !b->n || pc > block_insn(b, b->n - 1u))
		return -1;
	for (unsigned i = 0; i < b->n; i++) {
		if (block_insn(b, i) == pc)
			return (int)i;
	}
	return -1;
}

void block_describe(const struct block *b, unsigned i, struct quipu_insn *insn)
{
	unsigned byte = block_classes(b)[i];
	uint64_t at = block_insn(b, i), end = b->last + 1;
	bool last = i + 1u == b->n, direct = b->flow == FLOW_JUMP || b->flow == FLOW_CALL;

	insn->class = byte & (INSN_LOAD - 1);
	insn->size = (uint8_t)((last ? end : block_insn(b, i + 1)) - at);
	insn->events |= (byte & INSN_LOAD ? QUIPU_INSN_READS : 0u) |
			(byte & INSN_STORE ? QUIPU_INSN_WRITES : 0u);
	if (!last)
		insn->next = block_insn(b, i + 1);
	else if (!b->moves || b->apart == DELAY_ALWAYS)
		insn->next = end; /* a delay slot, when it is no part of the block */
	else if (b->apart)
		insn->next = 0; /* the slot or what is behind it */
	else
		insn->next = direct ? b->goes : 0;
}

/* ---- steps ---- */

static void add_taken(const struct rates *r, int64_t v[INDEXES])
{
	for (uint32_t m = r->taken; m; m &= m - 1)
		v[bits_low(m)]++;
}

static void add_outcome(const struct rates *r, const struct step *s, int64_t v[INDEXES])
{
	if (s->taken)
		add_taken(r, v);
	for (unsigned i = 0; s->missed && i < INDEXES; i++)
		v[i] += r->missed[s->missed][i];
}

static void add_class(const struct rates *r, unsigned class, int64_t v[INDEXES])
{
	class &= INSN_BYTES - 1;
	for (unsigned k = 0; k < SEG_LANES; k++)
		v[k] += r->lane[class][k];
	for (unsigned k = 0; k < r->nscalars; k++)
		v[SEG_LANES + k] += r->scalar[class][k];
}

void step_add(const struct rates *r, const struct block *b, unsigned i, int64_t now[INDEXES])
{
	add_class(r, block_classes(b)[i], now);
}

static void add_again(const struct rates *r, const struct step *s, int64_t v[INDEXES])
{
	unsigned again = s->block->again | (s->first ? AGAIN_FIRST : 0);

	for (unsigned k = 0; k < SEG_LANES; k++)
		v[k] += r->lane_again[again][k];
	for (unsigned k = 0; k < r->nscalars; k++)
		v[SEG_LANES + k] += r->scalar_again[again][k];
}

void step_sum(const struct rates *r, const struct step *s, int64_t sum[INDEXES])
{
	add_outcome(r, s, sum);
	if (!s->block)
		return;
	if (s->again) {
		add_again(r, s, sum);
		return;
	}
	if (!s->skip && s->block->n) { /* as it was summed when it was translated */
		for (unsigned k = 0; k < SEG_LANES; k++)
			sum[k] += s->block->lanes[k];
		for (unsigned k = 0; k < r->nscalars; k++)
			sum[SEG_LANES + k] += s->block->scalar[k];
		return;
	}
	for (unsigned i = s->skip; i < s->block->n; i++)
		add_class(r, block_classes(s->block)[i], sum);
}

bool step_reached(const struct rates *r, const int64_t *now, const int64_t *nearest)
{
	bool hit = false;

	for (unsigned k = 0; k < SEG_LANES + r->nscalars; k++)
		hit |= now[k] >= nearest[k];
	return hit;
}

void step_walk(const struct rates *r, const struct step *s, int64_t now[INDEXES],
	       const int64_t *nearest, void (*reached)(void *arg, uint64_t pc, bool of_prev),
	       void *arg)
{
	if (s->taken || s->missed) {
		add_outcome(r, s, now);
		if (step_reached(r, now, nearest))
			reached(arg, s->prev->cti, true);
	}
	for (unsigned i = s->skip; s->block && i < s->block->n; i++) {
		if (s->again)
			add_again(r, s, now);
		else
			add_class(r, block_classes(s->block)[i], now);
		if (step_reached(r, now, nearest))
			reached(arg, block_insn(s->block, i), false);
	}
}
