/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process has mapped to execute, for whoever begins to watch it later: a kernel's client
 * finds that in /proc, which of a program under the engine shows the engine's (perf ABI sheet C6).
 * Kept with the process's first thread, copied at a fork, dropped at an exec; an unmapping is not
 * told, as it is not in records.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define KEPT_MAX   1024u
#define NAME_BYTES 4096u

struct kept {
	struct quipu_mapping m; /* its name and build id are ours */
	char *name;
	uint8_t build_id[20];
};

struct mappings {
	size_t n, room;
	struct kept *kept;
};

/* The keeper: its process's first thread, or a thread that has outlived it. */
static struct quipu_task *keeper(struct quipu_task *t)
{
	struct quipu_task *first = quipu_task_find(t->core, t->pid);

	return first ? first : t;
}

static struct kept *place_for(struct mappings *l, uint64_t addr)
{
	struct kept *more;

	for (size_t i = 0; i < l->n; i++)
		if (l->kept[i].m.addr == addr)
			return &l->kept[i];
	if (l->n == KEPT_MAX) /* a program that makes code for ever: the newest stay */
		return &l->kept[KEPT_MAX - 1];
	if (l->n == l->room) {
		more = realloc(l->kept, (l->room * 2 + 8) * sizeof(*more));
		if (!more)
			return NULL;
		l->kept = more;
		l->room = l->room * 2 + 8;
	}
	l->kept[l->n] = (struct kept){0};
	return &l->kept[l->n++];
}

static void keep(struct quipu_task *t, const struct quipu_mapping *m)
{
	struct kept *k;
	char *name = strndup(m->name ? m->name : "//anon", NAME_BYTES - 1);

	if (!t->mappings)
		t->mappings = calloc(1, sizeof(*t->mappings));
	k = name && t->mappings ? place_for(t->mappings, m->addr) : NULL;
	if (!k) { /* no memory: those who come later see addresses without a name */
		free(name);
		return;
	}
	free(k->name);
	k->name = name;
	k->m = *m;
	k->m.name = NULL;
	if (m->build_id)
		memcpy(k->build_id, m->build_id, sizeof(k->build_id));
}

void mappings_keep(struct quipu_task *t, const struct quipu_mapping *m)
{
	if (m->prot & PROT_EXEC)
		keep(keeper(t), m);
}

void mappings_drop(struct quipu_task *t)
{
	struct mappings *l = t->mappings;

	t->mappings = NULL;
	for (size_t i = 0; l && i < l->n; i++)
		free(l->kept[i].name);
	if (l)
		free(l->kept);
	free(l);
}

bool mappings_get(const struct quipu_task *t, size_t i, struct quipu_mapping *m)
{
	const struct mappings *l = t->mappings;

	if (!l || i >= l->n)
		return false;
	*m = l->kept[i].m;
	m->name = l->kept[i].name;
	m->build_id = m->build_id ? l->kept[i].build_id : NULL;
	return true;
}

void mappings_inherit(struct quipu_task *child, struct quipu_task *parent)
{
	const struct quipu_task *from = keeper(parent);
	struct quipu_mapping m;

	for (size_t i = 0; mappings_get(from, i, &m); i++)
		keep(child, &m);
}
