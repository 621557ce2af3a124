/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry into a block: the callbacks that run there (entry.c), and what they leave to plugin.c
 * because it is rare. Engine sheet 6.3, 7.
 */
#ifndef QUIPU_ENGINE_ENTRY_H
#define QUIPU_ENGINE_ENTRY_H

#include "plugin.h"
#include "plugin_abi.h"

/*
 * entry_callback - of a block that is nothing special, for the features of this process. @track:
 * the block must be known as the one before, even where nothing looks at branches. @lone: as long
 * as there is one thread; right for any, fast for that one.
 */
qemu_plugin_vcpu_udata_cb entry_callback(bool track, bool lone);

/* entry_add_lanes - to the vCPU's; true when a lane is full. */
bool entry_add_lanes(struct seg_vcpu *, const lanes_t *);

/* Does the transfer that ended @p, a legal one, go anywhere? */
static inline bool taken_from(const struct block *p, const struct block *t)
{
	return (t->pc != p->fall) & p->moves;
}

/* ---- plugin.c ---- */

/*
 * odd_successor - t was not a legal successor of p, or p resumes what a signal interrupted: an
 * aborted block, a signal, its end. Engine sheet 7.3.
 */
COLD void odd_successor(struct seg_vcpu *, const struct block *t, const struct block *p);
/* other_successor - t is neither where p falls through to nor where it jumps to. */
void other_successor(struct seg_vcpu *, const struct block *t, const struct block *p);
/* follow - p ended in a call or a return: the call stack follows. */
void follow(struct seg_vcpu *, const struct block *t, const struct block *p);

#endif
