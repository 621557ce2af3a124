/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the files of src/machine that read a tree. After dt_open the tree is known to be well
 * formed: every offset, name and property lies inside it, so that libfdt may be used freely on what
 * the index names.
 */
#ifndef QUIPU_MACHINE_INTERNAL_H
#define QUIPU_MACHINE_INTERNAL_H

#include <quipu/machine.h>

#define DT_MAX_DEPTH 64
#define DT_NONE	     UINT32_MAX

/* Nodes in the order of the tree: the subtree of node i is i..next-1. */
struct dt_node {
	int offset;
	uint32_t first, nprops; /* of its properties in struct quipu_dt */
	uint32_t parent;	/* index, DT_NONE for the root */
	uint32_t next;		/* index behind the subtree */
	uint32_t phandle;
	const char *name; /* in the tree */
	int cache[3]; /* cache.c: per enum quipu_cache_type, 1 + the last cache made of this node;
			 -1: wrong */
};

struct dt_property {
	const char *name;
	const void *value;
	int len;
};

/* struct quipu_machine keeps it: libfdt would read the tree from its beginning for each question.
 */
struct quipu_dt {
	const void *fdt;
	struct quipu_notes *notes; /* while the machine is made; then NULL */
	struct dt_node *nodes;
	uint32_t n;
	struct dt_property *properties;
	uint32_t *by_phandle; /* indices, sorted by phandle */
	uint32_t nphandles;
};

/* dt_copy - a checked, packed copy of the @len bytes at @blob. NULL with a note. */
void *dt_copy(const void *blob, size_t len, size_t *size, struct quipu_notes *);
/* dt_index - index of a tree that dt_copy returned. 0, -ENOMEM, -EINVAL (with a note). dt_free
 * frees what it holds. */
int dt_index(struct quipu_dt *, const void *fdt, struct quipu_notes *);
void dt_free(struct quipu_dt *);

/* First child, next sibling (DT_NONE at the end), child by name (unit address optional), node by
 * phandle. */
uint32_t dt_child(const struct quipu_dt *, uint32_t node);
uint32_t dt_sibling(const struct quipu_dt *, uint32_t node);
uint32_t dt_find(const struct quipu_dt *, uint32_t node, const char *name);
uint32_t dt_by_phandle(const struct quipu_dt *, uint32_t phandle);
/* dt_path - "/cpus/cpu@0"; the caller frees it. NULL when out of memory. */
char *dt_path(const struct quipu_dt *, uint32_t node);
/* A note about a node (and its property, if not NULL). */
void dt_note(const struct quipu_dt *, enum quipu_note_kind, uint32_t node, const char *property,
	     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* dt_at - the node at libfdt's @offset, or DT_NONE. */
uint32_t dt_at(const struct quipu_dt *, int offset);
/* The first property of that name, or NULL (also of DT_NONE). @len may be NULL. */
const void *dt_property(const struct quipu_dt *, uint32_t node, const char *name, int *len);
/* dt_number - a property of one or two cells. 0, -ENOENT (absent), -EINVAL (another length). */
int dt_number(const struct quipu_dt *, uint32_t node, const char *name, uint64_t *value);
/* The first string of a property, or NULL when it is absent or not terminated. */
const char *dt_string(const struct quipu_dt *, uint32_t node, const char *name);
/* Does a string of the list @name start with @prefix; is one of them @word? */
bool dt_list_starts(const struct quipu_dt *, uint32_t node, const char *name, const char *prefix);
bool dt_list_has(const struct quipu_dt *, uint32_t node, const char *name, const char *word);

/* The pieces of quipu_machine_parse. 0 or -errno. */
int topology_read(struct quipu_machine *, struct quipu_dt *, uint32_t cpus,
		  const uint32_t *cpu_node);
int caches_read(struct quipu_machine *, struct quipu_dt *, const uint32_t *cpu_node);
void costs_default(uint16_t cost[QUIPU_INSN_CLASSES]);
void costs_read(struct quipu_machine *, struct quipu_dt *, uint32_t node);

#endif
