/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects (ELF files that a program mapped) and the functions in them. Any instruction set and byte
 * order that elfutils reads. An object is loaded when its first address is looked up, and stays
 * until the set is freed. Names are as in the file: nothing is demangled.
 */
#ifndef QUIPU_PROFILE_SYMBOLS_H
#define QUIPU_PROFILE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_symbols;

struct profile_symbol {
	uint64_t start, end; /* the file's own virtual addresses; 0 of an inlined function */
	const char *name;
	bool inlined;
};

struct profile_object {
	const char *path;	/* as the record named it */
	const char *short_name; /* its last part */
};

struct profile_symbols *profile_symbols_new(void);
void profile_symbols_free(struct profile_symbols *);
/*
 * profile_symbols_intern - one pointer for equal strings; lives as long as the set. NULL when out
 *	of memory.
 * profile_symbols_object - the object of a name: a path, or "[vdso]" and its like, which have no
 *	symbols.
 * profile_symbols_expect - the build id that recording saw for @path: another file found there
 *	later gives no symbols.
 */
const char *profile_symbols_intern(struct profile_symbols *, const char *);
struct profile_object *profile_symbols_object(struct profile_symbols *, const char *name);
void profile_symbols_expect(struct profile_symbols *, const char *path, const uint8_t *id,
			    unsigned size);

/*
 * profile_object_find - the function at @offset of the file (address - mapping start + mapping
 *	offset), or NULL. *addr: the file's own virtual address of @offset.
 * profile_object_inlines - the functions inlined at @offset, innermost first; they come before what
 *	profile_object_find returns. Their number; 0 without debug information. Cached.
 * profile_object_problem - why an object has no symbols, or NULL.
 */
/*
 * profile_object_is_kernel - the object is the host's kernel or a module of it: addresses are
 * its own, and symbols those of the kernel that runs now.
 * profile_object_base - where the kernel's text begins now; 0: unknown, or no kernel.
 */
void profile_object_is_kernel(struct profile_object *);
uint64_t profile_object_base(struct profile_object *);
const struct profile_symbol *profile_object_find(struct profile_object *, uint64_t offset,
						 uint64_t *addr);
size_t profile_object_inlines(struct profile_object *, uint64_t offset,
			      const struct profile_symbol *const **frames);
const char *profile_object_problem(struct profile_object *);

#endif
