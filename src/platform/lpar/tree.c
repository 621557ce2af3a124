/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device tree of the room: /rtas as firmware leaves it (LoPAR, "RTAS Environment"; Linux
 * prom_init), and node "quipu,hypervisor", a binding of our own (sheet 8.2): partitions, modules,
 * the code map. Charges and triggers of the same node: events.c.
 *
 * The library opens no files: the map's bytes are in the tree (quipu,symbols, by /incbin/). A tree
 * that only names a file (quipu,symbol-map) is refused with the remedy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>

#include "platform/lpar/tree.h"

#define MODULES_MOST 1024u
#define RMO_MOST     (16u << 20)

int lpar_tree_node(const struct quipu_machine *m)
{
	return quipu_machine_find(m, LPAR_COMPATIBLE);
}

int lpar_wrong(const struct lpar_tree *t, int node, const char *property, const char *fmt, ...)
{
	char path[256], where[360], text[300];
	va_list ap;

	if (fdt_get_path(t->m->fdt, node, path, sizeof(path)))
		strcpy(path, "?");
	snprintf(where, sizeof(where), "%s%s%s", path, property ? ":" : "",
		 property ? property : "");
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	quipu_note(t->notes, QUIPU_NOTE_WRONG, where, "%s", text);
	return -EINVAL;
}

/* Properties of ours that nobody reads are mistakes of the tree's author. */
int lpar_check_names(const struct lpar_tree *t, int node, const char *const *known)
{
	int at, err = 0;

	fdt_for_each_property_offset(at, t->m->fdt, node)
	{
		const char *name = NULL;
		bool found = false;

		fdt_getprop_by_offset(t->m->fdt, at, &name, NULL);
		if (!name || strncmp(name, "quipu,", 6) != 0)
			continue;
		for (size_t i = 0; known[i] && !found; i++)
			found = !strcmp(known[i], name);
		if (!found)
			err = lpar_wrong(t, node, name, "no such property of this node");
	}
	return err;
}

bool lpar_flag(const struct lpar_tree *t, int node, const char *name)
{
	return quipu_machine_property(t->m, node, name, NULL) != NULL;
}

/* The string of a property; @fallback when it is absent, NULL with a note when it is none. */
const char *lpar_string(const struct lpar_tree *t, int node, const char *name, const char *fallback)
{
	int len;
	const char *s = quipu_machine_property(t->m, node, name, &len);

	if (!s)
		return fallback;
	if (len < 1 || memchr(s, 0, (size_t)len) != s + len - 1) {
		lpar_wrong(t, node, name, "must be one string");
		return NULL;
	}
	return s;
}

int lpar_choice(const struct lpar_tree *t, int node, const char *name, const char *const words[])
{
	const char *s = lpar_string(t, node, name, words[0]);

	if (!s)
		return -EINVAL;
	for (int i = 0; words[i]; i++)
		if (!strcmp(s, words[i]))
			return i;
	return lpar_wrong(t, node, name, "'%s' is none of its values (%s, %s)", s, words[0],
			  words[1]);
}

int lpar_number(const struct lpar_tree *t, int node, const char *name, uint64_t fallback,
		uint64_t low, uint64_t high, uint64_t *value)
{
	const uint32_t *cells;
	int n = quipu_machine_cells(t->m, node, name, &cells);

	*value = fallback;
	if (n < 0)
		return 0;
	if (n < 1 || n > 2)
		return lpar_wrong(t, node, name, "must be a number of one or two cells");
	*value = n == 1 ? bits_be32(cells) : bits_be64(cells);
	if (*value < low || *value > high)
		return lpar_wrong(t, node, name, "%llu is not between %llu and %llu",
				  (unsigned long long)*value, (unsigned long long)low,
				  (unsigned long long)high);
	return 0;
}

/* ---- /rtas ---- */

static int read_rtas(const struct lpar_tree *t, struct quipu_lpar *l)
{
	int node = fdt_path_offset(t->m->fdt, "/rtas"), len;
	const void *token;
	uint64_t base, size;

	if (node < 0)
		return 0; /* no RTAS: no call */
	token = quipu_machine_property(t->m, node, QUIPU_LPAR_PERFTOOLS, &len);
	base = quipu_machine_number(t->m, node, "linux,rtas-base", UINT64_MAX);
	size = quipu_machine_number(t->m, node, "rtas-size", UINT64_MAX);
	if (base == UINT64_MAX || size == UINT64_MAX) /* Linux takes RTAS as absent */
		return 0;
	if (base > UINT32_MAX || size > UINT32_MAX)
		return lpar_wrong(t, node, "linux,rtas-base", "RTAS lies below 4 GiB");
	l->base = base;
	l->size = size;
	l->has_token = token && len == 4;
	l->token = l->has_token ? bits_be32(token) : 0;
	return 0;
}

/* ---- the map ---- */

static int read_modules(const struct lpar_tree *t, int node, struct quipu_hvmap_module *modules,
			size_t *n)
{
	static const char *const known[] = {"quipu,name", "quipu,data", NULL};
	int child, err = 0;

	*n = 0;
	fdt_for_each_subnode(child, t->m->fdt, node)
	{
		const char *name = fdt_get_name(t->m->fdt, child, NULL);
		const uint32_t *cells;

		if (!name || strncmp(name, "module@", 7) != 0)
			continue;
		if (*n == MODULES_MOST)
			return lpar_wrong(t, child, NULL, "more than %u modules", MODULES_MOST);
		if (lpar_check_names(t, child, known))
			err = -EINVAL;
		if (quipu_machine_cells(t->m, child, "reg", &cells) != 4)
			return lpar_wrong(t, child, "reg",
					  "needs two cells of address and two of size");
		modules[*n] = (struct quipu_hvmap_module){
			.start = bits_be64(cells),
			.size = bits_be64(cells + 2),
			.name = lpar_string(t, child, "quipu,name", ""),
			.data = lpar_flag(t, child, "quipu,data"),
		};
		if (!modules[*n].name)
			return -EINVAL;
		if (!*modules[*n].name)
			return lpar_wrong(t, child, "quipu,name", "a module needs a name");
		++*n;
	}
	return err;
}

static int read_map(const struct lpar_tree *t, int node, struct quipu_hvmap **map)
{
	struct quipu_hvmap_module *modules = calloc(MODULES_MOST, sizeof(*modules));
	struct quipu_hvmap_options o = {.modules = modules};
	struct quipu_hvmap_error err;
	const void *bytes;
	int len, rc;

	if (!modules)
		return -ENOMEM;
	rc = read_modules(t, node, modules, &o.nmodules);
	bytes = quipu_machine_property(t->m, node, "quipu,symbols", &len);
	if (!rc && !bytes)
		rc = lpar_wrong(
			t, node, "quipu,symbols",
			quipu_machine_property(t->m, node, "quipu,symbol-map", NULL)
				? "files are not read from here: put the map into the tree, quipu,symbols = /incbin/(\"FILE\")"
				: "the map of the hypervisor's code is missing");
	if (bytes && len && !((const char *)bytes)[len - 1]) /* written as a string */
		len--;
	o.format = lpar_string(t, node, "quipu,symbol-format", "auto");
	o.file = lpar_string(t, node, "quipu,symbol-map", NULL);
	o.has_base = lpar_flag(t, node, "quipu,symbol-base");
	if (!rc && !o.format)
		rc = -EINVAL;
	if (!rc)
		rc = lpar_number(t, node, "quipu,symbol-base", 0, 0, UINT64_MAX, &o.base);
	if (!rc && quipu_hvmap_read(map, bytes, (size_t)len, &o, &err))
		rc = err.line ? lpar_wrong(t, node, "quipu,symbols", "line %u: %s", err.line,
					   err.text)
			      : lpar_wrong(t, node, "quipu,symbols", "%s", err.text);
	free(modules);
	return rc;
}

/* ---- partitions ---- */

static int add_range(const struct lpar_tree *t, int node, struct quipu_partition *p, uint64_t start,
		     uint64_t size)
{
	if (!size || start + size < start)
		return lpar_wrong(t, node, "quipu,memory",
				  "a range of memory is empty, or ends beyond 2^64");
	if (p->nranges == LPAR_RANGES)
		return lpar_wrong(t, node, "quipu,memory", "more than %u ranges", LPAR_RANGES);
	p->ranges[p->nranges++] = (struct lpar_range){start, size};
	return 0;
}

static int read_memory(const struct lpar_tree *t, int node, struct quipu_partition *p)
{
	const uint32_t *cells;
	int n, err = lpar_number(t, node, "quipu,rma-size", p->rma, 65536, UINT64_C(1) << 48,
				 &p->rma);

	p->ranges[0].size = p->rma;
	n = quipu_machine_cells(t->m, node, "quipu,memory", &cells);
	if (!err && n > 0 && n % 4)
		err = lpar_wrong(t, node, "quipu,memory", "needs pairs of 64-bit numbers");
	for (int i = 0; !err && i + 3 < n; i += 4)
		err = add_range(t, node, p, bits_be64(cells + i), bits_be64(cells + i + 2));
	n = quipu_machine_cells(t->m, node, "quipu,rmo-buffer", &cells);
	if (err || n < 0)
		return err;
	if (n != 4)
		return lpar_wrong(t, node, "quipu,rmo-buffer", "needs a 64-bit base and size");
	p->rmo = bits_be64(cells);
	p->rmo_size = bits_be64(cells + 2);
	if (p->rmo % LPAR_PAGE || p->rmo_size % LPAR_PAGE || p->rmo_size > RMO_MOST ||
	    p->rmo_size > p->rma || p->rmo > p->rma - p->rmo_size)
		return lpar_wrong(t, node, "quipu,rmo-buffer",
				  "must be whole pages inside the RMA, 16 MiB at most");
	return 0;
}

static int read_plan(const struct lpar_tree *t, int node, struct quipu_partition *p)
{
	static const char *const modes[] = {"count", "time", NULL};
	int32_t plan[LPAR_PLAN];
	const uint32_t *cells;
	uint64_t period;
	int mode = lpar_choice(t, node, "quipu,delay-mode", modes);
	int n = quipu_machine_cells(t->m, node, "quipu,delay-plan", &cells);

	if (mode < 0 || lpar_number(t, node, "quipu,delay-period", 1, 1, 1u << 30, &period))
		return -EINVAL;
	if (n > (int)LPAR_PLAN)
		return lpar_wrong(t, node, "quipu,delay-plan", "more than %u entries", LPAR_PLAN);
	for (int i = 0; i < n; i++)
		plan[i] = (int32_t)bits_be32(cells + i);
	p->time_mode = mode == 1;
	if (quipu_partition_plan(p, plan, n > 0 ? (size_t)n : 0, (unsigned)period))
		return lpar_wrong(t, node, "quipu,delay-plan",
				  "an entry is -2 or one of 9900 to 9905");
	return 0;
}

static int read_cpus(const struct lpar_tree *t, int node, struct quipu_partition *p,
		     unsigned char *taken)
{
	const uint32_t *cells;
	int n = quipu_machine_cells(t->m, node, "quipu,cpus", &cells);

	if (n < 0)
		return 0;
	p->cpus = calloc(t->m->ncpus, 1);
	if (!p->cpus)
		return -ENOMEM;
	p->ncpus = t->m->ncpus;
	for (int i = 0; i < n; i++) {
		uint32_t cpu = bits_be32(cells + i);

		if (cpu >= t->m->ncpus)
			return lpar_wrong(t, node, "quipu,cpus", "the machine has CPUs 0 to %u",
					  t->m->ncpus - 1);
		if (taken[cpu])
			return lpar_wrong(t, node, "quipu,cpus",
					  "CPU %u belongs to another partition already", cpu);
		taken[cpu] = p->cpus[cpu] = 1;
	}
	return 0;
}

static int read_partition(const struct lpar_tree *t, int node, struct quipu_lpar *l,
			  unsigned char *taken)
{
	static const char *const known[] = {"quipu,name",
					    "quipu,cpus",
					    "quipu,rma-size",
					    "quipu,memory",
					    "quipu,rmo-buffer",
					    "quipu,rtas-cells",
					    "quipu,perf-authority",
					    "quipu,long-names",
					    "quipu,delay-plan",
					    "quipu,delay-period",
					    "quipu,delay-mode",
					    "quipu,recheck-iar",
					    "quipu,scribble",
					    "quipu,work-area-anywhere",
					    NULL};
	static const char *const names[] = {"whole", "chunked", NULL};
	uint64_t number, cells;
	struct quipu_partition *p;
	const char *name;
	int chunked;

	if (lpar_check_names(t, node, known) ||
	    lpar_number(t, node, "reg", UINT64_MAX, 0, UINT64_MAX, &number))
		return -EINVAL;
	if (number > 0xffff || quipu_lpar_partition(l, (unsigned)number))
		return lpar_wrong(t, node, "reg",
				  "a partition has a number of its own, from 0 to 65535");
	p = lpar_partition_new(l, (unsigned)number);
	if (!p)
		return lpar_wrong(t, node, NULL, "more than %u partitions", LPAR_PARTITIONS);
	name = lpar_string(t, node, "quipu,name", "");
	chunked = lpar_choice(t, node, "quipu,long-names", names);
	if (!name || chunked < 0 || lpar_number(t, node, "quipu,rtas-cells", 1, 1, 2, &cells))
		return -EINVAL;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->chunked = chunked == 1;
	p->cell_bytes = 4 * (unsigned)cells;
	p->authority = lpar_flag(t, node, "quipu,perf-authority");
	p->recheck = lpar_flag(t, node, "quipu,recheck-iar");
	p->scribble = lpar_flag(t, node, "quipu,scribble");
	p->anywhere = lpar_flag(t, node, "quipu,work-area-anywhere");
	if (p->authority && !l->has_token)
		quipu_note(t->notes, QUIPU_NOTE_IGNORED, "/rtas",
			   "partition %u has authority for " QUIPU_LPAR_PERFTOOLS
			   ", which /rtas has no token of",
			   p->number);
	if (read_memory(t, node, p) || read_plan(t, node, p))
		return -EINVAL;
	return read_cpus(t, node, p, taken);
}

static int read_partitions(const struct lpar_tree *t, int node, struct quipu_lpar *l)
{
	int parent = fdt_subnode_offset(t->m->fdt, node, "partitions"), child, err = 0;
	unsigned char *taken = calloc(t->m->ncpus, 1);

	if (!taken)
		return -ENOMEM;
	if (parent < 0)
		err = lpar_wrong(t, node, NULL, "node 'partitions' is missing");
	else
		fdt_for_each_subnode(child, t->m->fdt, parent)
		{
			err = read_partition(t, child, l, taken);
			if (err)
				break;
		}
	free(taken);
	if (!err && !l->npartitions)
		err = lpar_wrong(t, parent, NULL, "a hypervisor without a partition");
	return err;
}

struct quipu_lpar *quipu_lpar_new(const struct quipu_machine *m, struct quipu_notes *notes)
{
	static const char *const known[] = {
		"quipu,synthetic",	    "quipu,symbol-map",	    "quipu,symbols",
		"quipu,symbol-format",	    "quipu,symbol-base",    "quipu,invalid-text",
		"quipu,cpi-milli",	    "quipu,guest-mmu",	    "quipu,no-gtse",
		"quipu,overcommit",	    "quipu,irq-mode",	    "quipu,processor-mode",
		"quipu,dispatch-period-us", "quipu,unknown-events", NULL};
	const struct lpar_tree t = {m, notes};
	int node = lpar_tree_node(m);
	struct quipu_hvmap *map = NULL;
	struct quipu_lpar *l;
	const char *text;

	if (node < 0) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "/", "no node \"%s\"", LPAR_COMPATIBLE);
		return NULL;
	}
	if (lpar_check_names(&t, node, known) || read_map(&t, node, &map))
		return NULL;
	l = lpar_new(map);
	if (!l) {
		quipu_hvmap_put(map);
		quipu_note(notes, QUIPU_NOTE_WRONG, "/", "out of memory");
		return NULL;
	}
	text = lpar_string(&t, node, "quipu,invalid-text", l->invalid_text);
	if (text && strlen(text) >= sizeof(l->invalid_text))
		lpar_wrong(&t, node, "quipu,invalid-text", "longer than %zu characters",
			   sizeof(l->invalid_text) - 1);
	else if (text && text != l->invalid_text)
		strcpy(l->invalid_text, text);
	if (!text || strlen(text) >= sizeof(l->invalid_text) || read_rtas(&t, l) ||
	    read_partitions(&t, node, l)) {
		quipu_lpar_free(l);
		return NULL;
	}
	return l;
}
