/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files that generate the tree. A builder remembers its first failure, so that callers
 * need not. */
#ifndef QUIPU_MACHINE_TREE_INTERNAL_H
#define QUIPU_MACHINE_TREE_INTERNAL_H

#include <stdbool.h>

#include <quipu/machine.h>
#include <quipu/tree.h>

struct tree_builder {
	struct quipu_tree *tree;
	size_t room;
	bool failed; /* out of memory */
};

/* A file's path: the first argument in front of the formatted rest. */
struct tree_dir {
	char path[512];
};
struct tree_dir tree_dir(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* tree_put - a file whose text is formatted; the newline that ends it is added. tree_take - a text
 * that is owned. */
void tree_put(struct tree_builder *, const struct tree_dir *, const char *name, const char *fmt,
	      ...) __attribute__((format(printf, 4, 5)));
void tree_take(struct tree_builder *, const struct tree_dir *, const char *name, char *text,
	       bool link);
void tree_link(struct tree_builder *, const struct tree_dir *, const char *name, const char *fmt,
	       ...) __attribute__((format(printf, 4, 5)));

/* "0-3,8" and "0000010f" of a set of @n CPUs; NULL when out of memory. */
char *tree_list(const bool *set, unsigned n);
char *tree_mask(const bool *set, unsigned n);

/* /sys/devices/system; /proc/cpuinfo. */
void tree_cpus(struct tree_builder *, const struct quipu_machine *, const struct quipu_core *);
void tree_nodes(struct tree_builder *, const struct quipu_machine *);
void tree_cpuinfo(struct tree_builder *, const struct quipu_machine *);

#endif
