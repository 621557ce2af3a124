// SPDX-License-Identifier: BSD-2-Clause
/*
 * The generated sysfs and procfs: PMU directories and sysctls, and the builder that every part of
 * the tree uses.
 *
 * Perf ABI sheet A17 (files and their text), B2 (what perf reads of a PMU), C2 (a PMU is a real
 * directory below the bus, for the tree may be bound there alone; its place in /sys/devices is a
 * link). Left out on purpose: tracepoint, breakpoint, kprobe and uprobe, which a modelled machine
 * does not serve. /proc/interrupts, which moves, is tree_interrupts.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/event.h>

#include "machine/tree_internal.h"

#define DEVICES "/sys/bus/event_source/devices"

struct tree_dir tree_dir(const char *fmt, ...)
{
	struct tree_dir dir;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(dir.path, sizeof(dir.path), fmt, ap);
	va_end(ap);
	return dir;
}

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir), k = strlen(name) + 1;
	char *path = malloc(n + 1 + k);

	if (path) {
		memcpy(path, dir, n);
		path[n] = '/';
		memcpy(path + n + 1, name, k);
	}
	return path;
}

/* A copy of @text with the newline that ends it. */
static char *line_of(const char *text)
{
	size_t n = strlen(text);
	char *line = malloc(n + 2);

	if (!line)
		return NULL;
	memcpy(line, text, n + 1);
	if (!n || text[n - 1] != '\n')
		memcpy(line + n, "\n", 2);
	return line;
}

void tree_take(struct tree_builder *b, const struct tree_dir *dir, const char *name, char *text,
	       bool link)
{
	struct quipu_tree *t = b->tree;
	struct quipu_tree_file *file;

	if (!text || b->failed)
		goto fail;
	if (t->n == b->room) {
		size_t room = b->room ? 2 * b->room : 256;

		file = reallocarray(t->files, room, sizeof(*file));
		if (!file)
			goto fail;
		t->files = file;
		b->room = room;
	}
	file = &t->files[t->n];
	*file = (struct quipu_tree_file){.path = join(dir->path, name), .text = text, .link = link};
	if (!file->path)
		goto fail;
	t->n++;
	return;
fail:
	free(text);
	b->failed = true;
}

void tree_put(struct tree_builder *b, const struct tree_dir *dir, const char *name, const char *fmt,
	      ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	tree_take(b, dir, name, text ? line_of(text) : NULL, false);
	free(text);
}

/* Of these there are hundreds, and nothing in them is to be formatted. */
static void put_text(struct tree_builder *b, const struct tree_dir *dir, const char *name,
		     const char *text)
{
	tree_take(b, dir, name, line_of(text), false);
}

void tree_link(struct tree_builder *b, const struct tree_dir *dir, const char *name,
	       const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	tree_take(b, dir, name, text, true);
}

char *tree_list(const bool *set, unsigned n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	const char *comma = "";

	if (!f)
		return NULL;
	for (unsigned i = 0; i < n; i++) {
		unsigned first = i;

		if (!set[i])
			continue;
		while (i + 1 < n && set[i + 1])
			i++;
		fprintf(f, first == i ? "%s%u" : "%s%u-%u", comma, first, i);
		comma = ",";
	}
	fputc('\n', f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* As the kernel's %*pb: words of 32 bits from the highest down, the first as wide as the CPUs need.
 */
char *tree_mask(const bool *set, unsigned n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (unsigned word = (n + 31) / 32; word-- > 0;) {
		unsigned bits = n - 32 * word < 32 ? n - 32 * word : 32;
		uint32_t v = 0;

		for (unsigned i = 0; i < bits; i++)
			v |= (uint32_t)set[32 * word + i] << i;
		fprintf(f, "%0*x%s", (int)(bits + 3) / 4, v, word ? "," : "\n");
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* An empty one makes perf read in front of its buffer (B2). */
static void put_side(struct tree_builder *b, const struct tree_dir *dir, const char *event,
		     const char *what, const char *text)
{
	char name[256];

	if (!text || !*text)
		return;
	snprintf(name, sizeof(name), "%s.%s", event, what);
	put_text(b, dir, name, text);
}

static void put_events(struct tree_builder *b, const struct tree_dir *pmu,
		       const struct quipu_pmu_event *e, bool own)
{
	struct tree_dir dir = tree_dir("%s/events", pmu->path);
	size_t first = b->tree->n;

	for (; e && e->name; e++) {
		put_text(b, &dir, e->name, e->terms);
		put_side(b, &dir, e->name, "scale", e->scale);
		put_side(b, &dir, e->name, "unit", e->unit);
	}
	for (size_t i = first; i < b->tree->n; i++)
		b->tree->files[i].own = own;
}

static void put_pmu(struct tree_builder *b, const struct quipu_core *core,
		    const struct quipu_pmu *pmu, bool named)
{
	struct tree_dir dir = tree_dir(DEVICES "/%s", pmu->name),
			formats = tree_dir("%s/format", dir.path);
	struct tree_dir devices = tree_dir("/sys/devices"), root = tree_dir("%s", "");
	unsigned mux = quipu_core_mux_interval(core, pmu);

	tree_put(b, &dir, "type", "%d", pmu->type);
	tree_put(b, &dir, "perf_event_mux_interval_ms", "%u", mux ? mux : 1);
	tree_take(b, &dir, "uevent", strdup(""), false);
	tree_link(b, &dir, "subsystem", "../../../event_source");
	tree_link(b, &devices, pmu->name, "../bus/event_source/devices/%s", pmu->name);
	if (pmu->cpumask)
		put_text(b, &dir, "cpumask", pmu->cpumask);
	for (const struct quipu_pmu_format *f = pmu->formats; named && f && f->name; f++)
		put_text(b, &formats, f->name, f->spec);
	if (named) {
		put_events(b, &dir, pmu->events, false);
		put_events(b, &dir, pmu->more, true);
	}
	for (const struct quipu_pmu_file *f = pmu->files; f && f->path; f++) {
		bool whole = f->path[0] == '/';

		if (f->bare)
			tree_take(b, &dir, f->path, strdup(f->text), false);
		else
			put_text(b, whole ? &root : &dir, f->path + whole, f->text);
	}
}

/* Files of hardware that belong to no PMU. */
static void put_shown(struct tree_builder *b, const struct quipu_core *core)
{
	struct tree_dir root = tree_dir("%s", "");
	const struct quipu_pmu_file *const *shown;
	size_t n;

	shown = quipu_core_shown(core, &n);
	for (size_t i = 0; i < n; i++)
		for (const struct quipu_pmu_file *f = shown[i]; f->path; f++)
			put_text(b, &root, f->path + 1, f->text);
}

static void put_sysctls(struct tree_builder *b, const struct quipu_core_config *c)
{
	struct tree_dir dir = tree_dir("/proc/sys/kernel");

	tree_put(b, &dir, "perf_event_paranoid", "%d", c->paranoid);
	tree_put(b, &dir, "perf_event_mlock_kb", "%u", c->mlock_kb ? c->mlock_kb : 516);
	tree_put(b, &dir, "perf_event_max_sample_rate", "%u",
		 c->max_sample_rate ? c->max_sample_rate : 100000);
	tree_put(b, &dir, "perf_cpu_time_max_percent", "25");
	tree_put(b, &dir, "perf_event_max_stack", "%u", c->max_stack ? c->max_stack : 127);
	tree_put(b, &dir, "perf_event_max_contexts_per_stack", "8");
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct quipu_tree_file *)a)->path,
		      ((const struct quipu_tree_file *)b)->path);
}

/* @named: with the names of their events and of the fields that those are made of. */
static void put_pmus(struct tree_builder *b, const struct quipu_core *core, bool named)
{
	size_t n;
	struct quipu_pmu *const *pmus = quipu_core_pmus(core, &n);

	for (size_t i = 0; i < n; i++)
		put_pmu(b, core, pmus[i], named);
}

static struct quipu_tree *finish(struct tree_builder *b)
{
	if (b->failed) {
		quipu_tree_free(b->tree);
		return NULL;
	}
	qsort(b->tree->files, b->tree->n, sizeof(*b->tree->files), by_path);
	return b->tree;
}

struct quipu_tree *quipu_tree_new(const struct quipu_machine *m, const struct quipu_core *core)
{
	struct tree_builder b = {.tree = calloc(1, sizeof(*b.tree))};

	if (!b.tree)
		return NULL;
	put_pmus(&b, core, true);
	put_shown(&b, core);
	put_sysctls(&b, quipu_core_configuration(core));
	tree_cpus(&b, m, core);
	tree_nodes(&b, m);
	tree_cpuinfo(&b, m);
	return finish(&b);
}

struct quipu_tree *quipu_tree_pmus(const struct quipu_core *core, bool named)
{
	struct tree_builder b = {.tree = calloc(1, sizeof(*b.tree))};

	if (!b.tree)
		return NULL;
	put_pmus(&b, core, named);
	return finish(&b);
}

void quipu_tree_free(struct quipu_tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		free(t->files[i].path);
		free(t->files[i].text);
	}
	free(t->files);
	free(t);
}

const char *quipu_tree_text(const struct quipu_tree *t, const char *path)
{
	struct quipu_tree_file key = {.path = (char *)path};
	const struct quipu_tree_file *f = bsearch(&key, t->files, t->n, sizeof(key), by_path);

	return f ? f->text : NULL;
}
