// SPDX-License-Identifier: BSD-2-Clause
/*
 * An index of inlined calls (inlines.h; DWARF 5, 3.3.8). Units are found by the table of ranges,
 * or, where a compiler writes none, by a table made of what the units say of themselves. Split
 * units whose other half is missing have no functions here.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "profile/inlines.h"

#define DEPTH_MAX 64u /* of DIEs; deeper ones come from no compiler */

struct range {
	uint64_t low, high; /* high: first address behind */
	Dwarf_Off die;	    /* of a unit or function */
};

struct ranges {
	struct range *v;
	size_t n, room;
};

/* A call that was inlined. */
struct call {
	uint64_t low, high;
	unsigned depth; /* 1: into the function itself */
	const char *name;
};

struct function {
	Dwarf_Off die;
	struct call *calls;
	size_t n, room;
};

struct unit {
	Dwarf_Off die;
	struct ranges functions; /* sorted */
};

struct inline_index {
	Dwarf *dwarf;
	struct ranges units; /* sorted; only where there is no table in the file */
	bool have_units;
	void *by_unit, *by_function; /* trees of struct unit, struct function */
};

static int by_die(const void *a, const void *b)
{
	/* Both begin with their DIE. */
	Dwarf_Off x = *(const Dwarf_Off *)a, y = *(const Dwarf_Off *)b;

	return (x > y) - (x < y);
}

struct inline_index *inline_index_new(Dwarf *dwarf)
{
	struct inline_index *x = calloc(1, sizeof(*x));

	if (x)
		x->dwarf = dwarf;
	return x;
}

static void free_unit(void *p)
{
	free(((struct unit *)p)->functions.v);
	free(p);
}

static void free_function(void *p)
{
	free(((struct function *)p)->calls);
	free(p);
}

void inline_index_free(struct inline_index *x)
{
	if (!x)
		return;
	tdestroy(x->by_unit, free_unit);
	tdestroy(x->by_function, free_function);
	free(x->units.v);
	free(x);
}

/* ---- ranges ---- */

static void add_range(struct ranges *r, uint64_t low, uint64_t high, Dwarf_Off die)
{
	if (low >= high)
		return;
	if (r->n == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct range *v = realloc(r->v, room * sizeof(*v));

		if (!v)
			return;
		r->v = v;
		r->room = room;
	}
	r->v[r->n++] = (struct range){low, high, die};
}

static void add_ranges_of(struct ranges *r, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
		add_range(r, low, high, dwarf_dieoffset(die));
}

static int by_low(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

static void sort_ranges(struct ranges *r)
{
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_low);
}

/* Functions do not overlap, nor do units: the last one that begins at or before @addr. */
static const struct range *find_range(const struct ranges *r, uint64_t addr)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->v[mid].low <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && r->v[lo - 1].high > addr ? &r->v[lo - 1] : NULL;
}

/* ---- units ---- */

static void read_units(struct inline_index *x)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	x->have_units = true;
	while (!dwarf_get_units(x->dwarf, cu, &cu, NULL, NULL, &die, NULL))
		add_ranges_of(&x->units, &die);
	sort_ranges(&x->units);
}

static bool find_unit(struct inline_index *x, uint64_t addr, Dwarf_Die *unit)
{
	const struct range *r;

	if (dwarf_addrdie(x->dwarf, addr, unit))
		return true;
	if (!x->have_units)
		read_units(x);
	r = find_range(&x->units, addr);
	return r && dwarf_offdie(x->dwarf, r->die, unit);
}

/* Functions stand in a unit, a namespace, a class. */
static void read_functions(struct ranges *out, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram: add_ranges_of(out, &die); break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type: read_functions(out, &die, depth + 1); break;
		}
	} while (!dwarf_siblingof(&die, &die));
}

static struct unit *unit_of(struct inline_index *x, Dwarf_Die *die)
{
	Dwarf_Off key = dwarf_dieoffset(die);
	void *found = tfind(&key, &x->by_unit, by_die);
	struct unit *u;

	if (found)
		return *(struct unit **)found;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->die = key;
	read_functions(&u->functions, die, 0);
	sort_ranges(&u->functions);
	if (!tsearch(u, &x->by_unit, by_die)) {
		free_unit(u);
		return NULL;
	}
	return u;
}

/* ---- a function ---- */

static void add_call(struct function *f, uint64_t low, uint64_t high, unsigned depth,
		     const char *name)
{
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 16;
		struct call *v = realloc(f->calls, room * sizeof(*v));

		if (!v)
			return;
		f->calls = v;
		f->room = room;
	}
	f->calls[f->n++] = (struct call){low, high, depth, name};
}

static void read_calls(struct function *f, Dwarf_Die *parent, unsigned calls, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		Dwarf_Addr base, low, high;
		const char *name;
		ptrdiff_t at = 0;

		switch (dwarf_tag(&die)) {
		case DW_TAG_inlined_subroutine:
			name = dwarf_diename(&die);
			while (name && (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0)
				add_call(f, low, high, calls + 1, name);
			read_calls(f, &die, calls + 1, depth + 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block: read_calls(f, &die, calls, depth + 1); break;
		}
	} while (!dwarf_siblingof(&die, &die));
}

static struct function *function_at(struct inline_index *x, Dwarf_Off offset)
{
	void *found = tfind(&offset, &x->by_function, by_die);
	struct function *f;
	Dwarf_Die die;

	if (found)
		return *(struct function **)found;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->die = offset;
	if (dwarf_offdie(x->dwarf, offset, &die))
		read_calls(f, &die, 0, 0);
	if (!tsearch(f, &x->by_function, by_die)) {
		free_function(f);
		return NULL;
	}
	return f;
}

size_t inline_index_find(struct inline_index *x, uint64_t addr, const char **names, size_t max)
{
	const struct range *r;
	struct function *f;
	struct unit *u;
	Dwarf_Die die;
	size_t n = 0;

	if (!find_unit(x, addr, &die))
		return 0;
	u = unit_of(x, &die);
	r = u ? find_range(&u->functions, addr) : NULL;
	f = r ? function_at(x, r->die) : NULL;
	/* A call stands before those inside it: going back, the innermost comes first. */
	for (size_t i = f ? f->n : 0, below = DEPTH_MAX + 1; i-- > 0 && n < max;) {
		const struct call *c = &f->calls[i];

		if (addr < c->low || addr >= c->high || c->depth >= below)
			continue;
		names[n++] = c->name;
		below = c->depth;
	}
	return n;
}
