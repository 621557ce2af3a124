/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The map of a hypervisor's code: which function or module owns an address (LoPAR R1-3: "function,
 * method or module"; sheet 4.1, 4.2). What a file names becomes disjoint segments, each with one
 * owner, so that a lookup is one binary search. Knows nothing of RTAS; reads no files.
 */
#include "platform/lpar/map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DERIVED_LAST 4096u /* size of a last symbol that nothing bounds */

struct symbol {
	uint64_t start, last; /* inclusive: an end may be 2^64 */
	uint32_t name;
};

struct alias {
	uint64_t addr;
	uint32_t name, symbol;
};

#define OWNER_NONE UINT32_MAX

struct quipu_hvmap {
	unsigned refs;
	size_t nsegments;
	uint64_t *starts; /* ascending; the first is 0 */
	uint32_t *owners; /* symbol, or nsymbols + module, or OWNER_NONE */
	struct symbol *symbols;
	size_t nsymbols;
	struct map_module *modules;
	size_t nmodules;
	struct alias *aliases;
	size_t naliases;
	uint32_t *by_name; /* symbols in the order of their names */
	char *text;
};

/* ---- what the readers call ---- */

int map_fail(struct map_builder *b, unsigned line, const char *fmt, ...)
{
	va_list ap;

	b->err->line = line;
	va_start(ap, fmt);
	vsnprintf(b->err->text, sizeof(b->err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int nomem(struct map_builder *b)
{
	map_fail(b, 0, "out of memory");
	return -ENOMEM;
}

static int grow(void **items, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? *room * 2 : 64;
	void *p;

	if (n < *room)
		return 0;
	p = reallocarray(*items, more, size);
	if (!p)
		return -ENOMEM;
	*items = p;
	*room = more;
	return 0;
}

int map_keep(struct map_builder *b, const char *name, size_t len, uint32_t *at)
{
	if (len > QUIPU_HVMAP_NAME)
		len = QUIPU_HVMAP_NAME;
	if (b->text_len + len + 1 > MAP_BYTES)
		return map_fail(b, 0, "more than %u MiB of names", MAP_BYTES >> 20);
	while (b->text_len + len + 1 > b->text_room) {
		size_t room = b->text_room ? b->text_room * 2 : 4096;
		char *p = realloc(b->text, room);

		if (!p)
			return nomem(b);
		b->text = p;
		b->text_room = room;
	}
	*at = (uint32_t)b->text_len;
	memcpy(b->text + b->text_len, name, len);
	b->text[b->text_len + len] = 0;
	b->text_len += len + 1;
	return 0;
}

int map_add(struct map_builder *b, const struct map_raw *r)
{
	if (b->n == QUIPU_HVMAP_SYMBOLS)
		return map_fail(b, 0, "more than %u symbols", QUIPU_HVMAP_SYMBOLS);
	if (grow((void **)&b->raw, &b->room, b->n, sizeof(*b->raw)))
		return nomem(b);
	b->raw[b->n++] = *r;
	return 0;
}

int map_add_module(struct map_builder *b, const struct map_module *m, const char *name, size_t len)
{
	if (grow((void **)&b->modules, &b->modules_room, b->nmodules, sizeof(*b->modules)))
		return nomem(b);
	b->modules[b->nmodules] = *m;
	if (map_keep(b, name, len, &b->modules[b->nmodules].name))
		return -EINVAL;
	b->nmodules++;
	return 0;
}

/* ---- modules ---- */

static int add_given_modules(struct map_builder *b, const struct quipu_hvmap_options *o)
{
	for (size_t i = 0; i < o->nmodules; i++) {
		const struct quipu_hvmap_module *g = &o->modules[i];
		struct map_module m = {.start = g->start, .data = g->data};

		if (!g->size)
			return map_fail(b, 0, "module %s has no size", g->name);
		m.last =
			g->start + (g->size - 1) < g->start ? UINT64_MAX : g->start + (g->size - 1);
		if (map_add_module(b, &m, g->name, strlen(g->name)))
			return -EINVAL;
	}
	b->given = o->nmodules > 0;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct map_module *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The module that holds @addr, or MAP_NO_MODULE; modules are sorted. */
static uint32_t module_at(const struct map_builder *b, uint64_t addr)
{
	size_t lo = 0, hi = b->nmodules;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (b->modules[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr <= b->modules[lo - 1].last ? (uint32_t)(lo - 1) : MAP_NO_MODULE;
}

/* Modules that were given have ranges: sort them, and put each symbol into its own. Those of tags
 * have none until sizes are known. */
static int place_modules(struct map_builder *b)
{
	if (b->nmodules && b->modules[0].tag)
		return 0;
	if (b->nmodules)
		qsort(b->modules, b->nmodules, sizeof(*b->modules), by_start);
	for (size_t i = 1; i < b->nmodules; i++)
		if (b->modules[i].start <= b->modules[i - 1].last)
			return map_fail(b, 0, "modules %s and %s overlap",
					b->text + b->modules[i - 1].name,
					b->text + b->modules[i].name);
	for (size_t i = 0; i < b->n; i++)
		b->raw[i].module = module_at(b, b->raw[i].addr);
	return 0;
}

/* ---- sizes ---- */

static int by_module_and_address(const void *a, const void *b)
{
	const struct map_raw *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* What no size was told of ends at the next address in its module, kept or not. */
static void derive_sizes(struct map_builder *b)
{
	uint64_t next = 0, here = 0; /* next distinct address; address of the ones looked at */
	bool bounded = false;

	qsort(b->raw, b->n, sizeof(*b->raw), by_module_and_address);
	for (size_t i = b->n; i-- > 0;) {
		struct map_raw *r = &b->raw[i];
		bool first = i + 1 == b->n || b->raw[i + 1].module != r->module;
		uint64_t last;

		if (first) {
			bounded = false;
		} else if (r->addr != here) {
			next = here;
			bounded = true;
		}
		here = r->addr;
		r->told = r->size != 0;
		if (r->told)
			continue;
		if (bounded) {
			r->size = next - r->addr;
			continue;
		}
		last = r->module != MAP_NO_MODULE && !b->modules[r->module].tag
			       ? b->modules[r->module].last
			       : r->addr + (DERIVED_LAST - 1);
		if (last < r->addr) /* past 2^64 */
			last = UINT64_MAX;
		r->size = last - r->addr == UINT64_MAX ? UINT64_MAX : last - r->addr + 1;
	}
}

static uint64_t last_of(const struct map_raw *r)
{
	uint64_t last = r->addr + (r->size - 1);

	return last < r->addr ? UINT64_MAX : last;
}

/* A tag's module reaches from its first symbol to the end of its last; where two would overlap,
 * the later one has no range, and its symbols stand for themselves. */
static void place_tags(struct map_builder *b)
{
	uint64_t end = 0;
	bool any = false;

	if (!b->nmodules || !b->modules[0].tag)
		return;
	for (size_t i = 0; i < b->nmodules; i++)
		b->modules[i].none = true;
	for (size_t i = 0; i < b->n; i++) {
		const struct map_raw *r = &b->raw[i];
		struct map_module *m;

		if (r->module == MAP_NO_MODULE || !r->kept)
			continue;
		m = &b->modules[r->module];
		if (m->none || r->addr < m->start)
			m->start = r->addr;
		if (m->none || last_of(r) > m->last)
			m->last = last_of(r);
		m->none = false;
	}
	qsort(b->modules, b->nmodules, sizeof(*b->modules), by_start);
	for (size_t i = 0; i < b->nmodules; i++) {
		struct map_module *m = &b->modules[i];

		m->none |= any && !m->none && m->start <= end;
		if (m->none)
			continue;
		end = m->last;
		any = true;
	}
}

/* ---- one name for each address ---- */

static unsigned underscores(const char *name)
{
	unsigned n = 0;

	while (name[n] == '_')
		n++;
	return n;
}

/* Which of two names of one address is the better? Negative: @x. */
static int better(const char *text, const struct map_raw *x, const struct map_raw *y)
{
	unsigned ux = underscores(text + x->name), uy = underscores(text + y->name);

	if (x->told != y->told)
		return x->told ? -1 : 1;
	if (x->bind != y->bind)
		return x->bind < y->bind ? -1 : 1;
	if (x->func != y->func)
		return x->func ? -1 : 1;
	if (ux != uy)
		return ux < uy ? -1 : 1;
	return strcmp(text + x->name, text + y->name);
}

static int by_address(const void *a, const void *b, void *text)
{
	const struct map_raw *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return better(text, x, y);
}

static int fold_symbols(struct map_builder *b, struct quipu_hvmap *m)
{
	size_t n = 0;

	m->symbols = calloc(b->n ? b->n : 1, sizeof(*m->symbols));
	m->aliases = calloc(b->n ? b->n : 1, sizeof(*m->aliases));
	if (!m->symbols || !m->aliases)
		return nomem(b);
	for (size_t i = 0; i < b->n; i++)
		if (b->raw[i].kept)
			b->raw[n++] = b->raw[i];
	b->n = n;
	qsort_r(b->raw, n, sizeof(*b->raw), by_address, b->text);
	for (size_t i = 0; i < n; i++) {
		const struct map_raw *r = &b->raw[i];

		if (m->nsymbols && m->symbols[m->nsymbols - 1].start == r->addr) {
			m->aliases[m->naliases++] =
				(struct alias){r->addr, r->name, (uint32_t)(m->nsymbols - 1)};
			continue;
		}
		m->symbols[m->nsymbols++] = (struct symbol){r->addr, last_of(r), r->name};
	}
	return 0;
}

/* ---- segments ---- */

struct sweep {
	struct quipu_hvmap *m;
	uint64_t at;   /* everything below has its segment */
	bool done;     /* up to 2^64 */
	size_t module; /* first that may reach @at */
};

static void emit(struct sweep *s, uint64_t start, uint32_t owner)
{
	struct quipu_hvmap *m = s->m;

	if (m->nsegments && m->owners[m->nsegments - 1] == owner)
		return;
	m->starts[m->nsegments] = start;
	m->owners[m->nsegments++] = owner;
}

/* No function from s->at to @last: modules, and what is in none. */
static void gap(struct sweep *s, uint64_t last)
{
	struct quipu_hvmap *m = s->m;

	while (!s->done && s->at <= last) {
		struct map_module *k;
		uint64_t to;

		while (s->module < m->nmodules && m->modules[s->module].last < s->at)
			s->module++;
		k = s->module < m->nmodules ? &m->modules[s->module] : NULL;
		if (!k || k->start > last) {
			emit(s, s->at, OWNER_NONE);
			to = last;
		} else if (k->start > s->at) {
			emit(s, s->at, OWNER_NONE);
			to = k->start - 1;
		} else {
			emit(s, s->at, (uint32_t)(m->nsymbols + s->module));
			to = k->last < last ? k->last : last;
		}
		s->done = to == UINT64_MAX;
		s->at = to + 1;
	}
}

/* From s->at to @last a function, or more of them inside each other, on @stack. */
static size_t unwind(struct sweep *s, const uint32_t *stack, size_t depth, uint64_t last)
{
	while (depth && !s->done && s->at <= last) {
		const struct symbol *top = &s->m->symbols[stack[depth - 1]];
		uint64_t to = top->last < last ? top->last : last;

		if (top->last < s->at) { /* it ended under one that overlapped it */
			depth--;
			continue;
		}
		emit(s, s->at, stack[depth - 1]);
		s->done = to == UINT64_MAX;
		s->at = to + 1;
		if (to == top->last)
			depth--;
	}
	return depth;
}

static int make_segments(struct map_builder *b, struct quipu_hvmap *m)
{
	size_t most = 2 * m->nsymbols + 2 * m->nmodules + 2, depth = 0;
	uint32_t *stack = calloc(m->nsymbols + 1, sizeof(*stack));
	struct sweep s = {.m = m};

	m->starts = calloc(most, sizeof(*m->starts));
	m->owners = calloc(most, sizeof(*m->owners));
	if (!stack || !m->starts || !m->owners) {
		free(stack);
		return nomem(b);
	}
	for (size_t i = 0; i < m->nsymbols; i++) {
		uint64_t start = m->symbols[i].start;

		if (start > s.at) {
			depth = unwind(&s, stack, depth, start - 1);
			gap(&s, start - 1);
		}
		stack[depth++] = (uint32_t)i;
	}
	unwind(&s, stack, depth, UINT64_MAX);
	gap(&s, UINT64_MAX);
	free(stack);
	return 0;
}

/* Only code owns addresses: data modules are gaps, and so are tags without a range. */
static int keep_modules(struct map_builder *b, struct quipu_hvmap *m)
{
	m->modules = calloc(b->nmodules ? b->nmodules : 1, sizeof(*m->modules));
	if (!m->modules)
		return nomem(b);
	for (size_t i = 0; i < b->nmodules; i++)
		if (!b->modules[i].none && !b->modules[i].data)
			m->modules[m->nmodules++] = b->modules[i];
	return 0;
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct quipu_hvmap *m = arg;

	return strcmp(m->text + m->symbols[*(const uint32_t *)a].name,
		      m->text + m->symbols[*(const uint32_t *)b].name);
}

static int index_names(struct map_builder *b, struct quipu_hvmap *m)
{
	m->by_name = calloc(m->nsymbols ? m->nsymbols : 1, sizeof(*m->by_name));
	if (!m->by_name)
		return nomem(b);
	for (size_t i = 0; i < m->nsymbols; i++)
		m->by_name[i] = (uint32_t)i;
	qsort_r(m->by_name, m->nsymbols, sizeof(*m->by_name), by_name, m);
	return 0;
}

/* ---- life ---- */

/* A function in a data module is no code: it only bounds its neighbours. */
static void drop_data(struct map_builder *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->raw[i].module != MAP_NO_MODULE && b->modules[b->raw[i].module].data)
			b->raw[i].kept = false;
}

static int finish(struct map_builder *b, struct quipu_hvmap *m)
{
	int err = place_modules(b);

	if (err)
		return err;
	drop_data(b);
	derive_sizes(b);
	place_tags(b);
	err = keep_modules(b, m);
	if (!err)
		err = fold_symbols(b, m);
	m->text = b->text;
	b->text = NULL;
	if (!err)
		err = make_segments(b, m);
	return err ? err : index_names(b, m);
}

static void destroy(struct quipu_hvmap *m)
{
	free(m->starts);
	free(m->owners);
	free(m->symbols);
	free(m->modules);
	free(m->aliases);
	free(m->by_name);
	free(m->text);
	free(m);
}

static int read_bytes(struct map_builder *b, const void *bytes, size_t len,
		      const struct quipu_hvmap_options *o)
{
	static const char *const known[] = {"auto", "nm", "kallsyms", "perfmap", "elf"};
	const char *format = o->format ? o->format : "auto";
	bool elf = len >= 4 && !memcmp(bytes, "\177ELF", 4), found = false;
	int err;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		found |= !strcmp(format, known[i]);
	if (!found)
		return map_fail(b, 0,
				"no format '%s'; there are auto, nm, kallsyms, perfmap and elf",
				format);
	err = add_given_modules(b, o);
	if (err)
		return err;
	if (!strcmp(format, "elf") || (elf && !strcmp(format, "auto")))
		err = map_read_elf(b, bytes, len, o);
	else
		err = map_read_text(b, bytes, len, o);
	if (err)
		return err;
	for (size_t i = 0; i < b->n; i++)
		if (b->raw[i].kept)
			return 0;
	return map_fail(b, 0, "it names no functions");
}

int quipu_hvmap_read(struct quipu_hvmap **map, const void *bytes, size_t len,
		     const struct quipu_hvmap_options *o, struct quipu_hvmap_error *err)
{
	static const struct quipu_hvmap_options none;
	struct quipu_hvmap_error ignored;
	struct map_builder b = {.err = err ? err : &ignored};
	struct quipu_hvmap *m = calloc(1, sizeof(*m));
	int rc = m ? read_bytes(&b, bytes, len, o ? o : &none) : nomem(&b);

	if (!rc)
		rc = finish(&b, m);
	free(b.raw);
	free(b.modules);
	free(b.text);
	if (rc && m)
		destroy(m);
	if (rc)
		return rc;
	m->refs = 1;
	*map = m;
	return 0;
}

struct quipu_hvmap *quipu_hvmap_get(struct quipu_hvmap *m)
{
	if (m)
		__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	return m;
}

void quipu_hvmap_put(struct quipu_hvmap *m)
{
	if (m && !__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL))
		destroy(m);
}

/* ---- questions ---- */

static void hit_symbol(const struct quipu_hvmap *m, size_t i, struct quipu_hvmap_hit *hit)
{
	const struct symbol *s = &m->symbols[i];
	uint64_t size = s->last - s->start;

	*hit = (struct quipu_hvmap_hit){QUIPU_HVMAP_FUNCTION, s->start,
					size == UINT64_MAX ? size : size + 1, m->text + s->name};
}

static void hit_module(const struct quipu_hvmap *m, size_t i, struct quipu_hvmap_hit *hit)
{
	const struct map_module *k = &m->modules[i];
	uint64_t size = k->last - k->start;

	*hit = (struct quipu_hvmap_hit){QUIPU_HVMAP_MODULE, k->start,
					size == UINT64_MAX ? size : size + 1, m->text + k->name};
}

enum quipu_hvmap_kind quipu_hvmap_find(const struct quipu_hvmap *m, uint64_t addr,
				       struct quipu_hvmap_hit *hit)
{
	const uint64_t *at = m->starts;
	uint32_t owner;

	/* The first segment starts at 0: there is always one that begins at or before @addr. */
	for (size_t n = m->nsegments; n > 1;) {
		size_t half = n / 2;

		at += at[half] <= addr ? half : 0;
		n -= half;
	}
	owner = m->owners[at - m->starts];
	if (owner == OWNER_NONE)
		*hit = (struct quipu_hvmap_hit){.kind = QUIPU_HVMAP_INVALID};
	else if (owner < m->nsymbols)
		hit_symbol(m, owner, hit);
	else
		hit_module(m, owner - m->nsymbols, hit);
	return hit->kind;
}

size_t quipu_hvmap_size(const struct quipu_hvmap *m)
{
	return m->nsymbols;
}

void quipu_hvmap_symbol(const struct quipu_hvmap *m, size_t i, struct quipu_hvmap_hit *hit)
{
	hit_symbol(m, i, hit);
}

size_t quipu_hvmap_modules(const struct quipu_hvmap *m)
{
	return m->nmodules;
}

void quipu_hvmap_module(const struct quipu_hvmap *m, size_t i, struct quipu_hvmap_module *out)
{
	struct quipu_hvmap_hit hit;

	hit_module(m, i, &hit);
	*out = (struct quipu_hvmap_module){hit.start, hit.size, hit.name, false};
}

size_t quipu_hvmap_aliases(const struct quipu_hvmap *m)
{
	return m->naliases;
}

void quipu_hvmap_alias(const struct quipu_hvmap *m, size_t i, struct quipu_hvmap_hit *hit)
{
	hit_symbol(m, m->aliases[i].symbol, hit);
	hit->name = m->text + m->aliases[i].name;
}

bool quipu_hvmap_named(const struct quipu_hvmap *m, const char *name, struct quipu_hvmap_hit *hit)
{
	size_t lo = 0, hi = m->nsymbols;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int cmp = strcmp(m->text + m->symbols[m->by_name[mid]].name, name);

		if (!cmp) {
			hit_symbol(m, m->by_name[mid], hit);
			return true;
		}
		if (cmp < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}
