/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the readers of symbol files (map_text.c, map_elf.c) and the map (map.c). */
#ifndef QUIPU_PLATFORM_LPAR_MAP_H
#define QUIPU_PLATFORM_LPAR_MAP_H

#include <quipu/lpar.h>

#define MAP_NO_MODULE UINT32_MAX
#define MAP_BYTES     (256u << 20) /* most bytes of names */

/* A symbol as a file names it. */
struct map_raw {
	uint64_t addr, size; /* size 0: not told */
	uint32_t name;	     /* in the builder's text */
	uint32_t module;     /* MAP_NO_MODULE: of no module */
	uint8_t bind;	     /* 0 global, 1 weak, 2 local */
	bool func;	     /* typed as a function */
	bool kept;	     /* names code; else it only bounds the one before it */
	bool told;	     /* its size was told (map.c) */
};

struct map_module {
	uint64_t start, last;
	uint32_t name;
	bool data;
	bool tag;  /* its range comes from its symbols */
	bool none; /* a tag without a range of its own */
};

struct map_builder {
	struct map_raw *raw;
	size_t n, room;
	struct map_module *modules;
	size_t nmodules, modules_room;
	char *text;
	size_t text_len, text_room;
	struct quipu_hvmap_error *err;
	bool given; /* modules are the caller's, none may be added */
};

int map_fail(struct map_builder *, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Keep a name, cut to QUIPU_HVMAP_NAME characters. 0 or -errno. */
int map_keep(struct map_builder *, const char *name, size_t len, uint32_t *at);
int map_add(struct map_builder *, const struct map_raw *);
int map_add_module(struct map_builder *, const struct map_module *, const char *name, size_t len);

int map_read_text(struct map_builder *, const char *bytes, size_t len,
		  const struct quipu_hvmap_options *);
int map_read_elf(struct map_builder *, const uint8_t *bytes, size_t len,
		 const struct quipu_hvmap_options *);

#endif
