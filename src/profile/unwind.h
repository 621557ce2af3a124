/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call chains from a copy of the stack (`record --call-graph dwarf`): the registers and the top of
 * the user's stack in a sample, unwound by the call frame information of the objects, with
 * elfutils' libdwfl. x86-64 only; other samples give no frames.
 */
#ifndef QUIPU_PROFILE_UNWIND_H
#define QUIPU_PROFILE_UNWIND_H

#include "profile/maps.h"

struct profile_unwind;

struct profile_unwind *profile_unwind_new(void);
void profile_unwind_free(struct profile_unwind *);
/*
 * profile_unwind_frames - the program's frames of @r, innermost first: the sampled address, then
 * for each caller the address of its call (one before where it will return to), as perf names them.
 *	Their number, at most @max; 0: nothing to unwind by.
 */
size_t profile_unwind_frames(struct profile_unwind *, struct profile_maps *,
			     const struct profile_record *r, uint64_t *pcs, size_t max);

#endif
