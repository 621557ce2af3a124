/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the room's nodes: what tree.c and events.c share. */
#ifndef QUIPU_PLATFORM_LPAR_TREE_H
#define QUIPU_PLATFORM_LPAR_TREE_H

#include <stdarg.h>
#include <stdio.h>

#include "platform/lpar/hardware.h"

#define LPAR_COMPATIBLE "quipu,hypervisor"

struct lpar_tree {
	const struct quipu_machine *m;
	struct quipu_notes *notes;
};

/* A note of kind WRONG; returns -EINVAL. */
int lpar_wrong(const struct lpar_tree *, int node, const char *property, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* -EINVAL with notes when the node has properties of ours beside the @known ones. */
int lpar_check_names(const struct lpar_tree *, int node, const char *const *known);
bool lpar_flag(const struct lpar_tree *, int node, const char *name);
const char *lpar_string(const struct lpar_tree *, int node, const char *name, const char *fallback);
/* Which of @words (the first is the default) the property has; -EINVAL with a note. */
int lpar_choice(const struct lpar_tree *, int node, const char *name, const char *const words[]);
int lpar_number(const struct lpar_tree *, int node, const char *name, uint64_t fallback,
		uint64_t low, uint64_t high, uint64_t *value);

#endif
