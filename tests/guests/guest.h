/* SPDX-License-Identifier: BSD-2-Clause */
/* What the guest programs have in common. */
#ifndef GUEST_H
#define GUEST_H

#include <stdlib.h>

/*
 * A function that keeps its name and its borders: what a symbol of a report must show. Such
 * functions are not static: where a local function starts at a mapping symbol of the assembler
 * ($xrv64...), perf 6.1 shows that name instead.
 */
#define NAMED __attribute__((noinline, noclone))

/* argv[i] as a number, or @fallback where there is none. */
static inline long guest_arg(int argc, char **argv, int i, long fallback)
{
	return argc > i ? strtol(argv[i], NULL, 0) : fallback;
}

#endif
