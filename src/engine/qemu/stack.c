/* SPDX-License-Identifier: BSD-2-Clause */
/* The shadow call stack where returns do not match calls: skipped frames, longjmp, unwinding.
 * Engine sheet 8. */
#include "stack.h"

static const struct frame *frame_at(const struct frame *frames, uint64_t i)
{
	return &frames[i & (STACK_FRAMES - 1)];
}

/* The lowest frame that is still there. */
static uint64_t floor_of(uint64_t top, uint64_t depth)
{
	return top > depth ? top - depth : 0;
}

/* The function that @pc lies in, as [from, to). False: no entry is known at or below it. */
static bool function_of(const struct entries *e, uint64_t pc, uint64_t *from, uint64_t *to)
{
	uint32_t n = __atomic_load_n(&e->n, __ATOMIC_ACQUIRE);
	bool found = false;

	*to = UINT64_MAX;
	if (n > e->max)
		n = e->max;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t entry = e->pc[i];

		if (entry <= pc && (!found || entry > *from)) {
			*from = entry;
			found = true;
		}
		if (entry > pc && entry < *to)
			*to = entry;
	}
	return found;
}

/* Control is in the function [@from, @to) again: what it called last is over, and all above that.
 */
static void pop_called_from(const struct frame *frames, uint64_t *top, uint64_t from, uint64_t to)
{
	uint64_t low = floor_of(*top, STACK_FRAMES);

	for (uint64_t i = *top; i > low; i--) {
		uint64_t site = frame_at(frames, i - 1)->site;

		if (site >= from && site < to) {
			*top = i - 1;
			return;
		}
	}
}

void stack_unwind(const struct frame *frames, uint64_t *top, uint64_t pc,
		  const struct entries *entries)
{
	uint64_t low = floor_of(*top, STACK_SEARCH), from = 0, to;

	for (uint64_t i = *top; i > low; i--) {
		if (frame_at(frames, i - 1)->ret == pc) {
			*top = i - 1;
			return;
		}
	}
	/* The end of a signal handler returns to the system's trampoline: its frame goes with
	 * sigreturn. */
	if (!*top || frame_at(frames, *top - 1)->ret == STACK_SIGNAL)
		return;
	if (function_of(entries, pc, &from, &to))
		pop_called_from(frames, top, from, to);
}

void stack_jump(const struct frame *frames, uint64_t *top, uint64_t site, uint64_t pc,
		const struct entries *entries)
{
	uint64_t from = 0, to;

	if (*top && function_of(entries, pc, &from, &to) && (site < from || site >= to))
		pop_called_from(frames, top, from, to);
}

unsigned stack_chain(const struct frame *frames, uint64_t top, uint64_t *chain, unsigned max)
{
	uint64_t low = floor_of(top, STACK_FRAMES);
	unsigned n = 0;

	for (uint64_t i = top; i > low && n < max; i--)
		chain[n++] = frame_at(frames, i - 1)->site;
	return n;
}

void entries_add(struct entries *e, uint64_t pc)
{
	uint32_t i = __atomic_fetch_add(&e->n, 1, __ATOMIC_ACQ_REL);

	if (i < e->max)
		e->pc[i] = pc;
	else
		__atomic_store_n(&e->n, e->max, __ATOMIC_RELEASE); /* it must not wrap */
}
