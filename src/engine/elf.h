/* SPDX-License-Identifier: BSD-2-Clause */
/* What must be known of a program before it is run: its instruction set and its interpreter. */
#ifndef QUIPU_ENGINE_ELF_H
#define QUIPU_ENGINE_ELF_H

#include <stdbool.h>
#include <stddef.h>

struct elf_facts {
	unsigned machine; /* e_machine */
	bool big_endian;
	bool pie;
	char interp[256]; /* PT_INTERP, "" when static */
};

/*
 * elf_read - look at @path. 0, or -errno with a one-line reason in @why: -ENOEXEC for what is no
 * ELF program (a script, a 32-bit or relocatable file), -EBADMSG for a truncated one.
 */
int elf_read(const char *path, struct elf_facts *, char *why, size_t why_len);
/* "RISC-V 64", "x86-64", ... or "machine 123" (static buffer per thread). */
const char *elf_machine_name(unsigned machine);

#endif
