// SPDX-License-Identifier: BSD-2-Clause
/*
 * The catalog: what /sys/bus/event_source/devices says of the PMUs, from a list of files (perf ABI
 * sheet A17, B2). Text of these files is not trusted: a machine's tree may be a user's. Does not
 * parse the terms of an event; the grammar does when the event is named.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/grammar.h>
#include <quipu/tree.h>

#define DEVICES	     "/sys/bus/event_source/devices/"
#define TERMS_MAX    255 /* perf reads no more of an event file */
#define PATH_LEN_MAX 4096

enum { UNIT, SCALE, PER_PKG, SNAPSHOT, SIDE_FILES };

static const char *const side_files[SIDE_FILES] = {".unit", ".scale", ".per-pkg", ".snapshot"};

/* A copy without the white space at both ends. */
static char *trimmed(const char *text)
{
	size_t n;

	text += strspn(text, " \t\r\n");
	n = strlen(text);
	while (n && strchr(" \t\r\n", text[n - 1]))
		n--;
	return strndup(text, n);
}

static int compare_file(const void *key, const void *file)
{
	return strcmp(key, ((const struct quipu_tree_file *)file)->path);
}

static const char *file_text(const struct quipu_tree *tree, const char *dir, const char *name)
{
	char path[PATH_LEN_MAX];
	const struct quipu_tree_file *f;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return NULL;
	f = bsearch(path, tree->files, tree->n, sizeof(*tree->files), compare_file);
	return f && !f->link ? f->text : NULL;
}

/* "config1:0-7,32": the word's number and the bits. */
static int parse_format(const char *text, struct quipu_catalog_format *f)
{
	static const char *const words[] = {"config", "config1", "config2", "config3"};
	const char *colon = strchr(text, ':');
	const char *p;

	if (!colon)
		return -EINVAL;
	for (f->word = 0; f->word < 4; f->word++)
		if (strlen(words[f->word]) == (size_t)(colon - text) &&
		    !strncmp(words[f->word], text, (size_t)(colon - text)))
			break;
	if (f->word == 4)
		return -EINVAL;
	p = colon + 1;
	do {
		unsigned long lo, hi;
		char *end;

		if (*p < '0' || *p > '9')
			return -EINVAL;
		lo = hi = strtoul(p, &end, 10);
		if (*end == '-') {
			p = end + 1;
			if (*p < '0' || *p > '9')
				return -EINVAL;
			hi = strtoul(p, &end, 10);
		}
		if (lo > hi || hi > 63)
			return -EINVAL;
		f->mask |= bits_mask((unsigned)(hi - lo) + 1) << lo;
		p = end;
	} while (*p++ == ',');
	return p[-1] == '\0' ? 0 : -EINVAL;
}

static int add_format(struct quipu_catalog_pmu *pmu, const char *name, const char *text)
{
	struct quipu_catalog_format f = {0}, *grown;
	char *spec = trimmed(text);
	int ret;

	if (!spec)
		return -ENOMEM;
	ret = parse_format(spec, &f);
	free(spec);
	if (ret)
		return ret;
	grown = realloc(pmu->formats, (pmu->nformats + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	pmu->formats = grown;
	f.name = strdup(name);
	if (!f.name)
		return -ENOMEM;
	pmu->formats[pmu->nformats++] = f;
	return 0;
}

static bool is_side_file(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < SIDE_FILES; i++) {
		size_t s = strlen(side_files[i]);

		if (n > s && !strcmp(name + n - s, side_files[i]))
			return true;
	}
	return false;
}

/* The texts of the files beside event file @at. Paths are sorted: they are among those behind it
 * that begin with its own. */
static void side_texts(const struct quipu_tree *tree, size_t at, const char *text[SIDE_FILES])
{
	const char *event = tree->files[at].path;
	size_t n = strlen(event);

	for (size_t i = at + 1; i < tree->n && !strncmp(tree->files[i].path, event, n); i++)
		for (unsigned side = 0; side < SIDE_FILES; side++)
			if (!strcmp(tree->files[i].path + n, side_files[side]) &&
			    !tree->files[i].link)
				text[side] = tree->files[i].text;
}

/* The kernel writes a decimal point, whatever the locale of the program that this library is part
 * of. */
static bool parse_scale(const char *text, double *scale)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	char *end;
	double v;

	if (!c)
		return false;
	v = strtod_l(text, &end, c);
	freelocale(c);
	if (end == text || !isfinite(v))
		return false;
	*scale = v;
	return true;
}

/* File @at of the tree, whose name in events/ is @name. */
static int add_event(struct quipu_catalog_pmu *pmu, const struct quipu_tree *tree, size_t at,
		     const char *name)
{
	struct quipu_catalog_event e = {.scale = 1}, *grown;
	const char *side[SIDE_FILES] = {NULL};

	if (is_side_file(name))
		return 0;
	grown = realloc(pmu->events, (pmu->nevents + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	pmu->events = grown;
	side_texts(tree, at, side);
	e.name = strdup(name);
	e.terms = trimmed(tree->files[at].text);
	e.unit = side[UNIT] ? trimmed(side[UNIT]) : NULL;
	e.per_pkg = side[PER_PKG];
	e.snapshot = side[SNAPSHOT];
	if (!e.name || !e.terms || (side[UNIT] && !e.unit)) {
		free(e.name);
		free(e.terms);
		free(e.unit);
		return -ENOMEM;
	}
	if (strlen(e.terms) > TERMS_MAX)
		e.terms[TERMS_MAX] = '\0';
	if (side[SCALE])
		e.has_scale = parse_scale(side[SCALE], &e.scale);
	pmu->events[pmu->nevents++] = e;
	return 0;
}

static size_t first_below(const struct quipu_tree *tree, const char *prefix)
{
	size_t lo = 0, hi = tree->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(tree->files[mid].path, prefix) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* All files of one directory of the PMU. 0, -EINVAL: no PMU for perf, -ENOMEM. */
static int scan_dir(struct quipu_catalog_pmu *pmu, const struct quipu_tree *tree, const char *base,
		    bool events)
{
	char prefix[PATH_LEN_MAX];
	size_t n;

	if (snprintf(prefix, sizeof(prefix), "%s/%s/", base, events ? "events" : "format") >=
	    (int)sizeof(prefix))
		return -EINVAL;
	n = strlen(prefix);
	for (size_t i = first_below(tree, prefix); i < tree->n; i++) {
		const struct quipu_tree_file *f = &tree->files[i];
		int ret;

		if (strncmp(f->path, prefix, n))
			break;
		if (strchr(f->path + n, '/') || f->link || !f->text)
			continue;
		ret = events ? add_event(pmu, tree, i, f->path + n)
			     : add_format(pmu, f->path + n, f->text);
		if (ret)
			return ret;
	}
	return 0;
}

static void free_pmu(struct quipu_catalog_pmu *pmu)
{
	for (size_t i = 0; i < pmu->nformats; i++)
		free(pmu->formats[i].name);
	for (size_t i = 0; i < pmu->nevents; i++) {
		free(pmu->events[i].name);
		free(pmu->events[i].terms);
		free(pmu->events[i].unit);
	}
	free(pmu->formats);
	free(pmu->events);
	free(pmu->cpus);
	free(pmu->alias);
	free(pmu->name);
}

static int read_pmu(struct quipu_catalog_pmu *pmu, const struct quipu_tree *tree, const char *base)
{
	const char *type = file_text(tree, base, "type");
	const char *mask = file_text(tree, base, "cpumask");
	const char *cpus = mask ? mask : file_text(tree, base, "cpus");
	const char *alias = file_text(tree, base, "alias");
	unsigned long v;
	char *end;
	int ret;

	if (!type || *type < '0' || *type > '9')
		return -EINVAL;
	v = strtoul(type, &end, 10);
	if (v > UINT32_MAX || (*end && *end != '\n'))
		return -EINVAL;
	pmu->type = (uint32_t)v;
	pmu->uncore = mask;
	if (cpus) {
		pmu->cpus = trimmed(cpus);
		if (!pmu->cpus)
			return -ENOMEM;
	}
	if (alias) {
		pmu->alias = trimmed(alias);
		if (!pmu->alias)
			return -ENOMEM;
	}
	ret = scan_dir(pmu, tree, base, false);
	return ret ? ret : scan_dir(pmu, tree, base, true);
}

/* Where the link @path leads, "." and ".." taken out. */
static bool follow(const char *path, const char *target, char *out, size_t len)
{
	char full[2 * PATH_LEN_MAX];
	size_t n = 0;
	int dir = *target == '/' ? 0 : (int)(strrchr(path, '/') - path);

	if (snprintf(full, sizeof(full), "%.*s/%s", dir, path, target) >= (int)sizeof(full))
		return false;
	for (char *save, *part = strtok_r(full, "/", &save); part;
	     part = strtok_r(NULL, "/", &save)) {
		size_t k = strlen(part);

		if (!strcmp(part, "."))
			continue;
		if (!strcmp(part, "..")) {
			while (n && out[--n] != '/')
				;
			continue;
		}
		if (n + k + 2 > len)
			return false;
		out[n] = '/';
		memcpy(out + n + 1, part, k);
		n += k + 1;
	}
	out[n] = '\0';
	return n > 0;
}

static int add_pmu(struct quipu_catalog *c, const struct quipu_tree *tree, const char *name,
		   size_t n, const char *base)
{
	struct quipu_catalog_pmu pmu = {0}, *grown;
	int ret;

	/* The files of a directory follow one another, so only the last one can be the same. */
	if (c->npmus && strlen(c->pmus[c->npmus - 1].name) == n &&
	    !strncmp(c->pmus[c->npmus - 1].name, name, n))
		return 0;
	pmu.name = strndup(name, n);
	ret = pmu.name ? read_pmu(&pmu, tree, base) : -ENOMEM;
	if (ret) {
		free_pmu(&pmu);
		return ret == -ENOMEM ? ret : 0;
	}
	grown = realloc(c->pmus, (c->npmus + 1) * sizeof(*grown));
	if (!grown) {
		free_pmu(&pmu);
		return -ENOMEM;
	}
	c->pmus = grown;
	c->pmus[c->npmus++] = pmu;
	return 0;
}

static int compare_pmu(const void *a, const void *b)
{
	return strcmp(((const struct quipu_catalog_pmu *)a)->name,
		      ((const struct quipu_catalog_pmu *)b)->name);
}

struct quipu_catalog *quipu_catalog_new(const struct quipu_tree *tree)
{
	struct quipu_catalog *c = calloc(1, sizeof(*c));
	char base[PATH_LEN_MAX];
	const char *seen = NULL;
	size_t seen_len = 0;

	if (!c)
		return NULL;
	for (size_t i = first_below(tree, DEVICES); i < tree->n; i++) {
		const struct quipu_tree_file *f = &tree->files[i];
		const char *name = f->path + strlen(DEVICES);
		size_t n;

		if (strncmp(f->path, DEVICES, strlen(DEVICES)))
			break;
		n = strcspn(name, "/");
		if (!n || (seen && seen_len == n && !strncmp(seen, name, n)))
			continue;
		seen = name;
		seen_len = n;
		if (!name[n]) {
			if (!f->link || !f->text || !follow(f->path, f->text, base, sizeof(base)))
				continue;
		} else if (snprintf(base, sizeof(base), "%s%.*s", DEVICES, (int)n, name) >=
			   (int)sizeof(base)) {
			continue;
		}
		if (add_pmu(c, tree, name, n, base)) {
			quipu_catalog_free(c);
			return NULL;
		}
	}
	if (c->npmus)
		qsort(c->pmus, c->npmus, sizeof(*c->pmus), compare_pmu);
	return c;
}

void quipu_catalog_free(struct quipu_catalog *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->npmus; i++)
		free_pmu(&c->pmus[i]);
	free(c->pmus);
	free(c);
}

const struct quipu_catalog_pmu *quipu_catalog_find(const struct quipu_catalog *c, const char *name)
{
	for (size_t i = 0; i < c->npmus; i++)
		if (!strcmp(c->pmus[i].name, name))
			return &c->pmus[i];
	for (size_t i = 0; i < c->npmus; i++)
		if (c->pmus[i].alias && !strcmp(c->pmus[i].alias, name))
			return &c->pmus[i];
	return NULL;
}

bool quipu_catalog_hybrid(const struct quipu_catalog_pmu *pmu)
{
	return !strncmp(pmu->name, "cpu_", 4) && !pmu->uncore && pmu->cpus && *pmu->cpus;
}

int quipu_cpu_list(const char *text, unsigned *cpus, size_t max)
{
	const char *p = text;
	size_t n = 0;

	for (;;) {
		unsigned long lo, hi;
		char *end;

		if (*p < '0' || *p > '9')
			return -EINVAL;
		lo = hi = strtoul(p, &end, 10);
		if (*end == '-') {
			p = end + 1;
			if (*p < '0' || *p > '9')
				return -EINVAL;
			hi = strtoul(p, &end, 10);
		}
		if (lo > hi || hi > INT32_MAX)
			return -EINVAL;
		if (hi - lo >= max)
			return -E2BIG;
		for (; lo <= hi; lo++) {
			size_t at = n;

			while (at && cpus[at - 1] > lo)
				at--;
			if (at && cpus[at - 1] == lo)
				continue;
			if (n == max)
				return -E2BIG;
			memmove(cpus + at + 1, cpus + at, (n - at) * sizeof(*cpus));
			cpus[at] = (unsigned)lo;
			n++;
		}
		p = end;
		if (*p == '\n' && !p[1])
			p++;
		if (!*p)
			return (int)n;
		if (*p++ != ',')
			return -EINVAL;
	}
}
