/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The generated sysfs and procfs: a list of (path, text). What Linux would show of a modelled
 * machine (perf ABI sheet A17, B8). Paths are absolute ("/sys/bus/event_source/devices/cpu/type");
 * directories are implied.
 */
#ifndef QUIPU_TREE_H
#define QUIPU_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct quipu_core;
struct quipu_machine;

struct quipu_tree_file {
	char *path;
	char *text; /* for a link: its target */
	int link;   /* 1: a symbolic link */
	int own;    /* 1: for quipu's own commands; no file of Linux, and not shown to clients */
};

struct quipu_tree {
	struct quipu_tree_file *files; /* sorted by path */
	size_t n;
};

struct quipu_system;
/*
 * quipu_tree_new - everything of the machine and the PMUs registered with @core.
 * quipu_tree_pmus - of that the PMUs alone, which is what a catalog is made of; @named: with
 * what stands in their events/ and format/. NULL when out of memory.
 * quipu_tree_text - the text of a file, or NULL.
 */
/*
 * quipu_tree_interrupts - /proc/interrupts of a machine that is alive, as it stands now (the
 * caller frees it); NULL: out of memory. Without performance monitoring interrupts it has no
 * row.
 * quipu_tree_add - one more file; @text is taken over. 0 or -ENOMEM.
 */
char *quipu_tree_interrupts(const struct quipu_system *);
int quipu_tree_add(struct quipu_tree *, const char *path, char *text);

struct quipu_tree *quipu_tree_new(const struct quipu_machine *, const struct quipu_core *);
struct quipu_tree *quipu_tree_pmus(const struct quipu_core *, bool named);
void quipu_tree_free(struct quipu_tree *);
const char *quipu_tree_text(const struct quipu_tree *, const char *path);

#endif
