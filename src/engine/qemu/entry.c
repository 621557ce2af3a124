/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The block callbacks: the hot path. Engine sheet 6.3, 7.
 *
 * One runs every few nanoseconds. It adds the block's lanes to the vCPU's with one vector addition
 * and looks at the top bits; everything else is out of line and reached by a tail call, so that the
 * fast path saves no registers. There is one callback for each set of features, chosen when a block
 * is translated; of each a general one, and one for the only thread of a process, whose addresses
 * are constants.
 */
#include <quipu/bits.h>

#include "entry.h"
#include "models.h"

#define TOP_BITS UINT64_C(0x8000800080008000)

/* A set of features; what indexes the table of callbacks below. */
enum set {
	COUNT = 0,
	BRANCH = 1,
	STACK = 2,
	SCALARS = 4,
	TRACK = 8,
	PREDICT = 16,
	FETCH = 32,
	VEX = 64, /* the newer encoding of vector instructions */
	LONE = 128,
	SLOTS = 256, /* with TRACK: delay slots may be blocks of their own */
	WORD = 512,  /* only the lanes of the first word are in use */
	SETS = 1024
};

/* ---- lanes ---- */

static inline bool any_top_bit(lanes_t a)
{
#if defined(__SSE2__)
	typedef char bytes __attribute__((vector_size(16)));

	return __builtin_ia32_pmovmskb128((bytes)a) & 0xaaaa;
#else
	typedef uint64_t words __attribute__((vector_size(16)));
	words w = (words)a;

	return (w[0] | w[1]) & TOP_BITS;
#endif
}

/* Adds @lanes and @more to the vCPU's; true when a top bit is set: a lane is full. */
static inline __attribute__((always_inline)) bool
add_lanes(struct seg_vcpu *v, const lanes_t *lanes, const lanes_t *more)
{
	lanes_t add = *lanes, sum;

	/* The vCPU's last: they come from the block before, the others are there at once. */
	if (more)
		add += *more;
#if defined(__SSE2__)
	__asm__("" : "+x"(add));
#endif
	sum = *(const lanes_t *)v->acc + add;
	*(lanes_t *)v->acc = sum;
	return any_top_bit(sum);
}

/* The same where the lanes in use are four: an integer is had back from memory sooner. */
static inline bool add_word(struct seg_vcpu *v, const lanes_t *lanes)
{
	typedef uint64_t word __attribute__((may_alias));
	word sum = *(const word *)v->acc + *(const word *)lanes;

	*(word *)v->acc = sum;
	return sum & TOP_BITS;
}

/*
 * By words, which wait for no vector register (NEWER below). A lane is below 32768 and grows by
 * less than 32768: no sum carries into the next one.
 */
bool entry_add_lanes(struct seg_vcpu *v, const lanes_t *lanes)
{
	uint64_t *acc = (uint64_t *)v->acc;
	const uint64_t *a = (const uint64_t *)lanes;

	acc[0] += a[0];
	acc[1] += a[1];
	return ((acc[0] | acc[1]) & TOP_BITS) != 0;
}

/* ---- what is rare ---- */

/* A lane is full, or a scalar has reached its deadline. */
COLD static void full_count(struct seg_vcpu *v, const struct block *t)
{
	struct step s = {.block = t};

	fold_step(v, &s);
}

/* What the record tells of an instruction in a delay slot depends on the transfer before it. */
COLD static void full_slots(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	struct vcpu *s = vcpu_private(v);
	struct step step = {.block = t};

	s->pending = p->apart && t->pc == p->cti + 4 ? p : NULL;
	fold_step(v, &step);
	s->pending = NULL;
}

COLD static void full_branch(struct seg_vcpu *v, const struct block *t, const struct block *p,
			     unsigned row)
{
	struct step s = {.prev = p,
			 .block = t,
			 .taken = taken_from(p, t),
			 .missed = (uint8_t)outcome_missed(row)};

	fold_step(v, &s);
}

/* Before its lines are fetched, what the block's entry has reached. */
COLD static void full_fetch(struct seg_vcpu *v, const struct block *t, const struct block *p,
			    unsigned row)
{
	full_branch(v, t, p, row);
	models_fetch(v, t);
}

/* ---- 64-bit signals ---- */

/* True when one has reached its deadline. */
static inline bool add_scalars(struct seg_vcpu *v, const struct block *t)
{
	bool hit = false;

	for (unsigned k = 0; k < engine.rates.nscalars; k++) {
		v->scalar[k] += t->scalar[k];
		hit |= (int64_t)v->scalar[k] >= v->nearest[SEG_LANES + k];
	}
	return hit;
}

static inline void add_outcome_scalars(struct seg_vcpu *v, bool taken, unsigned missed)
{
	for (uint32_t m = engine.rates.taken >> SEG_LANES; m; m &= m - 1)
		v->scalar[bits_low(m)] += taken;
	for (unsigned k = 0; missed && k < engine.rates.nscalars; k++)
		v->scalar[k] += engine.rates.missed[missed][SEG_LANES + k];
}

/* ---- a block is entered ---- */

#define INLINE static inline __attribute__((always_inline))

/* @row: what the transfer that ended p adds. */
INLINE void finish(struct seg_vcpu *v, const struct block *t, const struct block *p, unsigned row,
		   unsigned set)
{
	const lanes_t *more = set & (BRANCH | STACK) ? &vcpu_models(v)->outcome[row] : NULL;
	bool full = set & WORD ? add_word(v, &t->lanes) : add_lanes(v, &t->lanes, more);

	if (set & SCALARS) {
		if (set & (BRANCH | STACK))
			add_outcome_scalars(v, taken_from(p, t), outcome_missed(row));
		full |= add_scalars(v, t);
	}
	if (set & FETCH && __builtin_expect(!models_fetched(v, t), 0)) {
		if (__builtin_expect(full, 0))
			full_fetch(v, t, p, row);
		else
			models_fetch(v, t);
		return;
	}
	if (__builtin_expect(!full, 1))
		return;
	if (set & (BRANCH | STACK))
		full_branch(v, t, p, row);
	else if (set & SLOTS)
		full_slots(v, t, p);
	else
		full_count(v, t);
}

/*
 * 1: control left the line. It is as hard to predict for the host as for the model: without the
 * barrier the compiler makes a branch of it.
 */
INLINE unsigned left_line(const struct block *t, const struct block *p)
{
	unsigned left = t->pc != p->fall;

	__asm__("" : "+r"(left));
	return left;
}

typedef void other_entry(struct seg_vcpu *, const struct block *t, const struct block *p);

/* p ended in nothing that goes elsewhere than its two successors. */
INLINE void add_block(struct seg_vcpu *v, const struct block *t, const struct block *p,
		      unsigned set, other_entry *odd)
{
	unsigned left = left_line(t, p);

	if (__builtin_expect(p->successor[left] != t->pc, 0)) {
		odd(v, t, p);
		return;
	}
	if (set & PREDICT && p->flow == FLOW_COND)
		finish(v, t, p,
		       model_predict_code(&vcpu_models(v)->predict, (uint32_t)(p->cti >> 1), left),
		       set);
	else
		finish(v, t, p, OUTCOME(MODEL_PREDICTED, left), set);
}

INLINE unsigned target_missed(struct seg_vcpu *v, const struct block *t, const struct block *p)
{
	return model_predict_target(&vcpu_models(v)->predict, (uint32_t)(p->cti >> 1), t->pc);
}

/* A call of a known function. */
INLINE void call(struct seg_vcpu *v, const struct block *t, const struct block *p, unsigned set)
{
	unsigned missed = MODEL_PREDICTED;

	if (set & PREDICT)
		model_predict_call(&vcpu_models(v)->predict, p->fall);
	if (set & PREDICT && p->flow == FLOW_ICALL)
		missed = target_missed(v, t, p);
	if (set & STACK) {
		uint64_t top = v->priv[HOT_TOP];

		v->priv[HOT_WAS_TOP] = top;
		v->priv[HOT_TOP] = stack_push_at(vcpu_frames(v), top, p->fall, p->cti);
	}
	finish(v, t, p, OUTCOME(missed, 1), set);
}

/* A return to where it is expected. */
INLINE void back(struct seg_vcpu *v, const struct block *t, const struct block *p, unsigned set)
{
	unsigned missed = MODEL_PREDICTED;

	if (set & PREDICT)
		missed = model_predict_return(&vcpu_models(v)->predict, t->pc);
	if (set & STACK) {
		uint64_t top = v->priv[HOT_TOP];

		v->priv[HOT_WAS_TOP] = top;
		v->priv[HOT_TOP] = top - 1;
	}
	finish(v, t, p, OUTCOME(missed, taken_from(p, t)), set);
}

INLINE bool call_is_simple(const struct seg_vcpu *v, const struct block *t, const struct block *p,
			   unsigned set)
{
	if (p->flow != FLOW_CALL && p->flow != FLOW_ICALL)
		return false;
	return (p->any || t->pc == p->target) && t->pc != p->fall && p->moves &&
	       (!(set & STACK) || (t->entry && v->priv[HOT_FRAMES]));
}

INLINE bool return_is_simple(const struct seg_vcpu *v, const struct block *t, const struct block *p,
			     unsigned set)
{
	uint64_t top = v->priv[HOT_TOP];

	if (p->flow != FLOW_RET || !p->any)
		return false;
	return !(set & STACK) ||
	       (t->back && v->priv[HOT_FRAMES] && top && stack_expects(vcpu_frames(v), top, t->pc));
}

/* p ended in a transfer that the predictor or the call stack knows more of than whether it was
 * taken. */
INLINE void transfer(struct seg_vcpu *v, const struct block *t, const struct block *p, unsigned set)
{
	unsigned missed = MODEL_PREDICTED;

	if (__builtin_expect(!block_successor(p, t->pc), 0)) {
		odd_successor(v, t, p);
		return;
	}
	if (set & PREDICT)
		missed = models_predict(v, t, p);
	if (set & STACK && p->flow >= FLOW_IJUMP)
		follow(v, t, p);
	finish(v, t, p, OUTCOME(missed, taken_from(p, t)), set);
}

/*
 * An annulled branch whose slot is a block of its own (sparc64), to the slot, or from it to the
 * target: compilers make loops of them. The same as odd_successor() has it; whatever else comes
 * here is left to that.
 */
INLINE void annulled(struct seg_vcpu *v, const struct block *t, const struct block *p, unsigned set)
{
	struct vcpu *s = vcpu_private(v);
	const struct block *from = s->pending;
	unsigned missed = MODEL_PREDICTED;

	if (p->apart == DELAY_TAKEN && p->flow == FLOW_COND && t->pc == p->cti + 4) {
		s->pending = p;
		if (set & PREDICT)
			missed = models_predict(v, t, p);
		finish(v, t, p, OUTCOME(missed, taken_from(p, t)), set);
		return;
	}
	if (!from || from->apart != DELAY_TAKEN || p->n != 1 || p->flow != FLOW_NONE ||
	    p->pc != from->cti + 4 || t->pc == p->pc || t->pc != from->goes ||
	    engine.features & SEG_LABEL) {
		other_successor(v, t, p);
		return;
	}
	s->pending = NULL;
	finish(v, t, p, OUTCOME(MODEL_PREDICTED, 0), set);
}

/* The usual ones of them, without a call. */
INLINE void transfer_fast(struct seg_vcpu *v, const struct block *t, const struct block *p,
			  unsigned set, other_entry *slow)
{
	if (call_is_simple(v, t, p, set)) {
		call(v, t, p, set);
	} else if (return_is_simple(v, t, p, set)) {
		back(v, t, p, set);
	} else if (p->flow == FLOW_IJUMP && p->any && !(set & STACK && t->back)) {
		unsigned missed = MODEL_PREDICTED;

		if (set & PREDICT)
			missed = target_missed(v, t, p);
		finish(v, t, p, OUTCOME(missed, taken_from(p, t)), set);
	} else {
		slow(v, t, p);
	}
}

INLINE void enter(struct seg_vcpu *v, const struct block *t, unsigned set, other_entry *far,
		  other_entry *odd)
{
	const struct block *before = NULL;

	if (set & (BRANCH | STACK)) {
		const struct block *p = (const struct block *)(uintptr_t)v->priv[HOT_PREV];

		v->priv[HOT_PREV] = (uintptr_t)t;
		if (p->flow < FLOW_IJUMP)
			add_block(v, t, p, set, odd);
		else
			far(v, t, p);
		return;
	}
	if (set & SLOTS)
		before = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	if (set & TRACK)
		v->priv[HOT_PREV] = (uintptr_t)t;
	finish(v, t, before, 0, set);
}

/*
 * A guest with registers of more than 16 bytes leaves the upper halves of the host's in use, and
 * then each vector instruction of the old encoding waits for them (measured: 5 ns for each block);
 * those of the newer one do not.
 */
#if defined(__x86_64__)
#define NEWER __attribute__((target("avx")))
#else
#define NEWER
#endif
#define OLDER

/*
 * Functions of their own where the fast path would otherwise save the registers that they need:
 * _far, _slow, _odd; reached by tail calls.
 */
#define LONE_AS(name, set, code)                                                                   \
	static code __attribute__((noinline)) void name##_lone_far(                                \
		struct seg_vcpu *v, const struct block *t, const struct block *p)                  \
	{                                                                                          \
		(void)v;                                                                           \
		transfer_fast(&engine_pub[0], t, p, (set) | LONE, name##_slow);                    \
	}                                                                                          \
	static code __attribute__((noinline)) void name##_lone_odd(                                \
		struct seg_vcpu *v, const struct block *t, const struct block *p)                  \
	{                                                                                          \
		(void)v;                                                                           \
		annulled(&engine_pub[0], t, p, (set) | LONE);                                      \
	}                                                                                          \
	static code void name##_lone(unsigned vcpu, void *block)                                   \
	{                                                                                          \
		if (__builtin_expect(vcpu, 0))                                                     \
			name(vcpu, block);                                                         \
		else                                                                               \
			enter(&engine_pub[0], block, (set) | LONE, name##_lone_far,                \
			      name##_lone_odd);                                                    \
	}

#define CALLBACK_AS(name, set, code)                                                               \
	static code __attribute__((noinline)) void name##_slow(                                    \
		struct seg_vcpu *v, const struct block *t, const struct block *p)                  \
	{                                                                                          \
		transfer(v, t, p, set);                                                            \
	}                                                                                          \
	static code __attribute__((noinline)) void name##_far(                                     \
		struct seg_vcpu *v, const struct block *t, const struct block *p)                  \
	{                                                                                          \
		transfer_fast(v, t, p, set, name##_slow);                                          \
	}                                                                                          \
	static code __attribute__((noinline)) void name##_odd(                                     \
		struct seg_vcpu *v, const struct block *t, const struct block *p)                  \
	{                                                                                          \
		annulled(v, t, p, set);                                                            \
	}                                                                                          \
	static code __attribute__((noinline)) void name(unsigned vcpu, void *block)                \
	{                                                                                          \
		if (__builtin_expect(vcpu < SEG_VCPUS, 1))                                         \
			enter(&engine_pub[vcpu], block, set, name##_far, name##_odd);              \
	}                                                                                          \
	LONE_AS(name, set, code)

#define CALLBACK_NEAR_AS(name, set, code)                                                          \
	static code __attribute__((noinline)) void name(unsigned vcpu, void *block)                \
	{                                                                                          \
		if (__builtin_expect(vcpu < SEG_VCPUS, 1))                                         \
			enter(&engine_pub[vcpu], block, set, NULL, NULL);                          \
	}                                                                                          \
	static code void name##_lone(unsigned vcpu, void *block)                                   \
	{                                                                                          \
		if (__builtin_expect(vcpu, 0))                                                     \
			name(vcpu, block);                                                         \
		else                                                                               \
			enter(&engine_pub[0], block, (set) | LONE, NULL, NULL);                    \
	}

#define CALLBACK(name, set)                                                                        \
	CALLBACK_AS(name, set, OLDER)                                                              \
	CALLBACK_AS(name##_vex, (set) | VEX, NEWER)
#define CALLBACK_NEAR(name, set)                                                                   \
	CALLBACK_NEAR_AS(name, set, OLDER)                                                         \
	CALLBACK_NEAR_AS(name##_vex, (set) | VEX, NEWER)

CALLBACK_NEAR(on_count, COUNT)
CALLBACK_NEAR(on_count_track, COUNT | TRACK)
CALLBACK_NEAR(on_scalars, COUNT | SCALARS)
CALLBACK_NEAR(on_scalars_track, COUNT | SCALARS | TRACK)
CALLBACK_NEAR(on_count_slots, COUNT | TRACK | SLOTS)
CALLBACK_NEAR(on_scalars_slots, COUNT | SCALARS | TRACK | SLOTS)
CALLBACK_NEAR_AS(on_word, COUNT | WORD, OLDER)
CALLBACK_NEAR_AS(on_word_track, COUNT | WORD | TRACK, OLDER)
CALLBACK_NEAR_AS(on_word_slots, COUNT | WORD | TRACK | SLOTS, OLDER)
CALLBACK(on_branch, BRANCH)
CALLBACK(on_branch_scalars, BRANCH | SCALARS)
CALLBACK(on_stack, STACK)
CALLBACK(on_stack_scalars, STACK | SCALARS)
CALLBACK(on_predict, BRANCH | PREDICT)
CALLBACK(on_predict_scalars, BRANCH | PREDICT | SCALARS)
CALLBACK(on_stack_predict, STACK | PREDICT)
CALLBACK(on_stack_predict_scalars, STACK | PREDICT | SCALARS)
CALLBACK(on_fetch, BRANCH | FETCH)
CALLBACK(on_fetch_scalars, BRANCH | FETCH | SCALARS)
CALLBACK(on_stack_fetch, STACK | FETCH)
CALLBACK(on_stack_fetch_scalars, STACK | FETCH | SCALARS)
CALLBACK(on_models, BRANCH | PREDICT | FETCH)
CALLBACK(on_models_scalars, BRANCH | PREDICT | FETCH | SCALARS)
CALLBACK(on_stack_models, STACK | PREDICT | FETCH)
CALLBACK(on_stack_models_scalars, STACK | PREDICT | FETCH | SCALARS)

/* clang-format off */
#define AT(set, name)                                                                              \
	[set] = name, [(set) | VEX] = name##_vex,                                              \
	[(set) | LONE] = name##_lone, [(set) | VEX | LONE] = name##_vex_lone
#define WORD_AT(set, name)                                                                         \
	[(set) | WORD] = name, [(set) | VEX | WORD] = name,                                    \
	[(set) | LONE | WORD] = name##_lone, [(set) | VEX | LONE | WORD] = name##_lone
#define BOTH(set, name) AT(set, name), AT((set) | SCALARS, name##_scalars)
/* clang-format on */

static const qemu_plugin_vcpu_udata_cb callbacks[SETS] = {
	AT(COUNT, on_count),
	AT(SCALARS, on_scalars),
	AT(TRACK, on_count_track),
	AT(SCALARS | TRACK, on_scalars_track),
	AT(TRACK | SLOTS, on_count_slots),
	AT(SCALARS | TRACK | SLOTS, on_scalars_slots),
	WORD_AT(COUNT, on_word),
	WORD_AT(TRACK, on_word_track),
	WORD_AT(TRACK | SLOTS, on_word_slots),
	BOTH(BRANCH, on_branch),
	BOTH(BRANCH | PREDICT, on_predict),
	BOTH(BRANCH | FETCH, on_fetch),
	BOTH(BRANCH | PREDICT | FETCH, on_models),
	BOTH(STACK, on_stack),
	BOTH(STACK | PREDICT, on_stack_predict),
	BOTH(STACK | FETCH, on_stack_fetch),
	BOTH(STACK | PREDICT | FETCH, on_stack_models),
};

qemu_plugin_vcpu_udata_cb entry_callback(bool track, bool lone)
{
	const struct rates *r = &engine.rates;
	uint32_t f = engine.features;
	unsigned set = COUNT;

	if ((r->counted | r->taken | r->mispredicts) >> SEG_LANES)
		set |= SCALARS;
	if (engine.wide)
		set |= VEX;
	if (lone)
		set |= LONE;
	if (f & (SEG_STACK | SEG_BRANCH | SEG_PREDICT | SEG_FETCH)) {
		set |= f & SEG_STACK ? STACK : BRANCH;
		set |= f & SEG_PREDICT ? PREDICT : 0;
		set |= f & SEG_FETCH ? FETCH : 0;
	} else if (engine.restarts) {
		set |= TRACK | SLOTS;
	} else if (track || f & (SEG_DATA | SEG_PAGES)) {
		set |= TRACK;
	}
	if (!(set & (BRANCH | STACK | SCALARS)) && r->nlanes <= 4)
		set |= WORD;
	return callbacks[set];
}
