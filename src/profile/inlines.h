/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions were inlined at an address, from DWARF. To ask libdw for the scopes of an address
 * reads the whole unit each time; here a unit's functions and a function's inlined calls are read
 * once, when the first address in them is asked for.
 */
#ifndef QUIPU_PROFILE_INLINES_H
#define QUIPU_PROFILE_INLINES_H

#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

struct inline_index;

struct inline_index *inline_index_new(Dwarf *);
void inline_index_free(struct inline_index *);
/*
 * inline_index_find - the names of the functions inlined at @addr, innermost first; they live as
 * long as the Dwarf. Their number, at most @max.
 */
size_t inline_index_find(struct inline_index *, uint64_t addr, const char **names, size_t max);

#endif
