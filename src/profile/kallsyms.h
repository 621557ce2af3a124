/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running kernel's own table of symbols, /proc/kallsyms: lines "address type name [module]".
 * Addresses are zero to those who may not see them (kernel.kptr_restrict).
 */
#ifndef QUIPU_PROFILE_KALLSYMS_H
#define QUIPU_PROFILE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms_line {
	uint64_t addr;
	char type; /* as nm prints it */
	char name[512];
	char module[64]; /* "" for the kernel proper */
};

/*
 * kallsyms_each - call @fn for every line; a non-zero return ends the walk and is returned.
 * -EACCES: the addresses are hidden; or the errno of the file.
 * kallsyms_base - where the kernel's text begins and ends now. False: unknown.
 * kallsyms_build_id - of the running kernel; its length, 0: unknown.
 */
int kallsyms_each(int (*fn)(void *arg, const struct kallsyms_line *), void *arg);
bool kallsyms_base(uint64_t *start, uint64_t *end);
unsigned kallsyms_build_id(uint8_t id[20]);

#endif
