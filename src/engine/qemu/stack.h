/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shadow call stack of a guest thread: kept by following calls and returns. Engine sheet 8.
 * Pure.
 *
 * Fast paths are here, inline; what a return that does not match means is stack.c.
 */
#ifndef QUIPU_ENGINE_STACK_H
#define QUIPU_ENGINE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#define STACK_FRAMES 65536u /* older ones are overwritten */
#define STACK_SEARCH 64u    /* frames that a return looks through */

/* A frame made by a signal: nothing returns to it, the system takes it away. */
#define STACK_SIGNAL UINT64_MAX

struct frame {
	uint64_t ret;  /* where the callee will return to */
	uint64_t site; /* the calling instruction */
};

/* Starts of functions, as far as calls have shown them. Append only; shared by the threads of a
 * process. */
struct entries {
	uint64_t *pc;
	uint32_t max;
	uint32_t n; /* may exceed max: the rest was dropped */
};

/* stack_push_at - push above @top; returns the new top. */
static inline uint64_t stack_push_at(struct frame *frames, uint64_t top, uint64_t ret,
				     uint64_t site)
{
	struct frame *f = &frames[top & (STACK_FRAMES - 1)];

	f->ret = ret;
	f->site = site;
	return top + 1;
}

static inline void stack_push(struct frame *frames, uint64_t *top, uint64_t ret, uint64_t site)
{
	*top = stack_push_at(frames, *top, ret, site);
}

/* stack_expects - does the top frame return to @pc? Meaningless when there is none. */
static inline bool stack_expects(const struct frame *frames, uint64_t top, uint64_t pc)
{
	return frames[(top - 1) & (STACK_FRAMES - 1)].ret == pc;
}

/*
 * stack_unwind - a return went to @pc, which is not what the top frame expects: pop through to a
 * frame that does; else take it for a non-local jump and pop to the frame that was called from the
 * function that @pc lies in; else nothing.
 */
void stack_unwind(const struct frame *frames, uint64_t *top, uint64_t pc, const struct entries *);

/*
 * stack_jump - @site is an indirect jump, and went to @pc, to where a return has gone before: if
 * that is another function, it is a longjmp (of x86, and of sparc64 where it is a trap), and what
 * that function called is over.
 */
void stack_jump(const struct frame *frames, uint64_t *top, uint64_t site, uint64_t pc,
		const struct entries *);

/* stack_return - a return went to @pc. */
static inline void stack_return(const struct frame *frames, uint64_t *top, uint64_t pc,
				const struct entries *entries)
{
	if (stack_expects(frames, *top, pc) && *top)
		--*top;
	else
		stack_unwind(frames, top, pc, entries);
}

/* stack_chain - the call sites below @top, innermost first, at most @max of them into @chain;
 * returns how many. */
unsigned stack_chain(const struct frame *frames, uint64_t top, uint64_t *chain, unsigned max);

void entries_add(struct entries *, uint64_t pc);

#endif
