/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading node imc-counters: IMC sheet 1.1 to 1.6. The unit and event rules are those of Linux 6.12
 * arch/powerpc/perf/imc-pmu.c and platforms/powernv/opal-imc.c, the fix-ups those of skiboot
 * hw/imc.c; the fix-ups that rewrite the tree (phandles, exports) are not needed. Trees are a
 * user's: every length is checked, nothing is fatal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>

#include "platform/imc/tree.h"

#define UNIT_COMPATIBLE "ibm,imc-counters"
#define TOP_COMPATIBLE	"ibm,opal-in-memory-counters"
#define HOMER_FIRST	UINT64_C(0x203ffd800000)
#define HOMER_SIZE	UINT64_C(0x400000)

uint64_t imc_homer(unsigned index)
{
	return HOMER_FIRST + index * HOMER_SIZE;
}

unsigned imc_chips(const struct quipu_machine *m, uint32_t *ids)
{
	unsigned n = 0;

	for (unsigned c = 0; c < m->ncpus; c++) {
		unsigned i = 0;

		while (i < n && ids[i] != m->cpus[c].socket)
			i++;
		if (i == n && n < IMC_MAX_CHIPS)
			ids[n++] = m->cpus[c].socket;
	}
	return n;
}

struct reader {
	const struct quipu_machine *m;
	struct quipu_notes *notes;
	struct imc_tree *tree;
	const char *path; /* of the unit that is read */
	int err;
};

#define SAY(r, kind, path, ...)                                                                    \
	do {                                                                                       \
		if ((r)->notes)                                                                    \
			quipu_note((r)->notes, QUIPU_NOTE_##kind, path, __VA_ARGS__);              \
	} while (0)

/* A property that is one string, ended inside it; NULL when absent or not so. */
static const char *text_of(const struct quipu_machine *m, int node, const char *name)
{
	int len;
	const char *p = quipu_machine_property(m, node, name, &len);

	return p && len > 0 && memchr(p, 0, (size_t)len) ? p : NULL;
}

/* The first cell of a property. */
static bool cell_of(const struct reader *r, int node, const char *name, uint32_t *value)
{
	int len;
	const void *p = quipu_machine_property(r->m, node, name, &len);

	if (!p || len < 4)
		return false;
	*value = bits_be32(p);
	return true;
}

/* Text that becomes a file name or file content in sysfs. */
static bool printable(const char *s)
{
	size_t n = strlen(s);

	if (n > 127 || strchr(s, '/'))
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

/* ---- events ---- */

/* An integer scale of 1 or more is what the cell was divided by (sheet 3.3). */
static uint64_t divisor_of(const char *scale)
{
	char *end;
	unsigned long long v;

	if (!scale || *scale < '0' || *scale > '9')
		return 1;
	errno = 0;
	v = strtoull(scale, &end, 10);
	return *end || errno || !v || v > UINT32_MAX ? 1 : v;
}

/* What a tool multiplies the count by, to the letter as it stands in the tree. */
static void check_scale(struct reader *r, const struct imc_event *e)
{
	char *end;
	double v;

	if (!e->scale)
		return;
	v = strtod(e->scale, &end);
	if (end == e->scale || *end || !(v > 0 && v < 1e18))
		SAY(r, WRONG, r->path, "%s: scale \"%.32s\" is no number that a count could have",
		    e->name, e->scale);
}

/* What an event's node, or for all of them the unit's, says. */
struct said {
	const char *name, *scale, *unit, *desc; /* NULL: absent, or no string */
	const void *reg;			/* NULL: absent, or too short */
};

static struct said read_said(const struct quipu_machine *m, int node)
{
	int len;
	const void *reg = quipu_machine_property(m, node, "reg", &len);

	return (struct said){
		.name = text_of(m, node, "event-name"),
		.scale = text_of(m, node, "scale"),
		.unit = text_of(m, node, "unit"),
		.desc = text_of(m, node, "desc"),
		.reg = reg && len >= 4 ? reg : NULL,
	};
}

static int add_event(struct reader *r, struct imc_unit *u, int node, const char *prefix,
		     uint32_t base, const struct said *unit)
{
	struct said said = read_said(r->m, node);
	const char *suffix = said.name;
	struct imc_event *e;

	if (!suffix || !said.reg) {
		SAY(r, WRONG, r->path, "event %s has no %s; left out",
		    fdt_get_name(r->m->fdt, node, NULL), suffix ? "reg" : "event-name");
		return 0;
	}
	if (u->nevents == IMC_MAX_EVENTS)
		return 0;
	e = &u->events[u->nevents];
	*e = (struct imc_event){.config = base + bits_be32(said.reg)};
	e->name = malloc(strlen(prefix) + strlen(suffix) + 1);
	if (!e->name)
		return -ENOMEM;
	stpcpy(stpcpy(e->name, prefix), suffix);
	if (!*e->name || !printable(e->name)) {
		SAY(r, WRONG, r->path, "event %s has a name that cannot be a file; left out",
		    fdt_get_name(r->m->fdt, node, NULL));
		free(e->name);
		return 0;
	}
	if (asprintf(&e->file, "event=0x%" PRIx32, e->config) < 0) {
		free(e->name);
		return -ENOMEM;
	}
	e->scale = said.scale ? said.scale : unit->scale;
	e->unit = said.unit ? said.unit : unit->unit;
	e->desc = said.desc;
	e->divisor = divisor_of(e->scale);
	check_scale(r, e);
	e->source = imc_source_find(u->node, suffix, &e->mode);
	u->nevents++;
	return 0;
}

struct named {
	const char *name;
	unsigned i;
};

static int compare_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* Names that a unit has twice: the second file could never be made. The first stays. */
static void drop_repeated(struct reader *r, struct imc_unit *u)
{
	struct named *sorted = calloc(u->nevents ? u->nevents : 1, sizeof(*sorted));
	unsigned kept = 0;

	if (!sorted) {
		r->err = -ENOMEM;
		return;
	}
	for (unsigned i = 0; i < u->nevents; i++)
		sorted[i] = (struct named){u->events[i].name, i};
	qsort(sorted, u->nevents, sizeof(*sorted), compare_name);
	for (unsigned i = u->nevents; i-- > 1;) {
		struct imc_event *e = &u->events[sorted[i].i];

		if (strcmp(sorted[i].name, sorted[i - 1].name))
			continue;
		SAY(r, WRONG, u->path, "event %s is there twice; the second is left out", e->name);
		free(e->name);
		free(e->file);
		e->name = NULL;
	}
	free(sorted);
	for (unsigned i = 0; i < u->nevents; i++)
		if (u->events[i].name)
			u->events[kept++] = u->events[i];
	u->nevents = kept;
}

/* Offsets outside of the memory: of such a number of them one note is enough to see the pattern. */
static void check_offsets(struct reader *r, const struct imc_unit *u)
{
	unsigned outside = 0, first = 0;

	if (u->type == IMC_TRACE)
		return;
	for (unsigned i = 0; i < u->nevents; i++) {
		if ((uint64_t)u->events[i].config + 8 <= u->size)
			continue;
		if (!outside++)
			first = i;
	}
	if (outside)
		SAY(r, WRONG, u->path,
		    "%u event%s beyond the counter memory (%s at 0x%" PRIx32 " of 0x%" PRIx32
		    "); they read 0",
		    outside, outside == 1 ? " lies" : "s lie", u->events[first].name,
		    u->events[first].config, u->size);
}

/* Event offsets that contain the unit's own already (the nvlink units of every POWER9 catalog). */
static void check_added_twice(struct reader *r, const struct imc_unit *u, uint32_t base)
{
	uint32_t lowest = UINT32_MAX;

	if (!base || !u->nevents || u->type != IMC_NEST)
		return;
	for (unsigned i = 0; i < u->nevents; i++)
		if (u->events[i].config - base < lowest)
			lowest = u->events[i].config - base;
	if (lowest && lowest >= base)
		SAY(r, WRONG, u->path,
		    "every event's reg (from 0x%" PRIx32 ") is beyond the unit's own 0x%" PRIx32
		    ", which is added to it: "
		    "probably added twice; %s reads 0x%" PRIx32,
		    lowest, base, u->events[0].name, u->events[0].config);
}

static void read_events(struct reader *r, struct imc_unit *u, int unit)
{
	const struct said common = read_said(r->m, unit);
	const char *prefix = text_of(r->m, unit, "events-prefix");
	uint32_t phandle, base = 0;
	int list = -1, child;
	unsigned n = 0;

	if (cell_of(r, unit, "events", &phandle))
		list = quipu_machine_by_phandle(r->m, phandle);
	if (list < 0 || !prefix) {
		SAY(r, WRONG, u->path, "%s: the PMU has no events",
		    prefix ? "events points to no node" : "events-prefix is missing");
		return;
	}
	if (!cell_of(r, unit, "reg", &base))
		SAY(r, WRONG, u->path, "reg is missing; taken as 0");
	for (child = quipu_machine_child(r->m, list); child >= 0;
	     child = quipu_machine_sibling(r->m, child))
		n++;
	u->events = calloc(n ? n : 1, sizeof(*u->events));
	if (!u->events) {
		r->err = -ENOMEM;
		return;
	}
	for (child = quipu_machine_child(r->m, list); child >= 0;
	     child = quipu_machine_sibling(r->m, child)) {
		r->err = add_event(r, u, child, prefix, base, &common);
		if (r->err)
			return;
	}
	drop_repeated(r, u);
	check_offsets(r, u);
	check_added_twice(r, u, base);
}

/* ---- units ---- */

static bool has_unit(const struct imc_tree *t, const char *node)
{
	for (unsigned i = 0; i < t->nunits; i++)
		if (!strcmp(t->units[i].node, node))
			return true;
	return false;
}

/* The availability bits of a unit's name; 0: the name has none, and stays. */
static uint64_t unit_bits(const char *node)
{
	static const struct {
		const char *name;
		uint8_t first, n;
	} rows[] = {
		{"powerbus", 0, 1}, {"mcs", 1, 8},  {"mba", 9, 8},  {"centaur", 17, 8},
		{"xlink", 25, 3},   {"mcd", 28, 2}, {"phb", 30, 6}, {"nx", 36, 1},
		{"capp", 37, 2},    {"vas", 39, 1}, {"int", 40, 1}, {"alink", 41, 4},
		{"nvlink", 45, 6},
	};
	static const char *const pairs[] = {"mcs01", "mcs23", "mcs45", "mcs67"};
	size_t stem = strcspn(node, "0123456789");
	unsigned long number = strtoul(node + stem, NULL, 10);

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(node, pairs[i]))
			return UINT64_C(3) << (63 - (2 * i + 2));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strlen(rows[i].name) == stem && !strncmp(rows[i].name, node, stem) &&
		    number < rows[i].n)
			return bits_one(63 - (rows[i].first + (unsigned)number));
	return 0;
}

static bool single_mcs(const char *node)
{
	return !strncmp(node, "mcs", 3) && node[3] >= '0' && node[3] <= '7' && !node[4];
}

/* What the firmware takes away (steps 2, 3, 5, 6). Why, or NULL. */
static const char *taken_away(const struct imc_tree *t, const struct imc_unit *u)
{
	uint64_t bits = unit_bits(u->node);

	if (u->type == IMC_TRACE && (t->pvr >> 16) == 0x4e &&
	    ((t->pvr >> 8 & 0xf) != 2 || (t->pvr & 0xf) < 2))
		return "this processor revision has no trace mode (from DD2.2 on)";
	if (u->type != IMC_NEST)
		return NULL;
	if (t->nest_down)
		return "the nest microcode of a chip is not running";
	if (single_mcs(u->node))
		return "firmware takes single memory controllers away (debug mode only)";
	if (bits && !(t->available & bits))
		return "not in the availability vector";
	return NULL;
}

static void read_chips(struct reader *r, struct imc_unit *u, int node, bool firmware)
{
	int ids, bases;
	const uint8_t *id = quipu_machine_property(r->m, node, "chip-id", &ids);
	const uint8_t *base = quipu_machine_property(r->m, node, "base-addr", &bases);
	uint32_t offset = 0, chips[IMC_MAX_CHIPS];

	cell_of(r, node, "offset", &offset);
	if (firmware) {
		u->nchips = imc_chips(r->m, chips);
		for (unsigned i = 0; i < u->nchips; i++)
			u->chip[i] = (struct imc_chip){chips[i], imc_homer(i) + offset};
		return;
	}
	for (unsigned i = 0;
	     id && base && i < IMC_MAX_CHIPS && 4 * (int)i + 4 <= ids && 8 * (int)i + 8 <= bases;
	     i++)
		u->chip[u->nchips++] =
			(struct imc_chip){bits_be32(id + 4 * i), bits_be64(base + 8 * i) + offset};
}

static bool known_type(uint32_t type)
{
	return type == IMC_NEST || type == IMC_CORE || type == IMC_THREAD || type == IMC_TRACE;
}

/* One unit node into @u. False: it is left out, with its note. */
static bool read_unit(struct reader *r, struct imc_unit *u, int node, bool firmware)
{
	const char *name = fdt_get_name(r->m->fdt, node, NULL), *why;
	size_t stem = name ? strcspn(name, "@") : 0;
	uint32_t type, offset;

	if (!stem || stem >= sizeof(u->node) - sizeof("nest__imc"))
		return false;
	memcpy(u->node, name, stem);
	if (!printable(u->node))
		return false;
	if (!cell_of(r, node, "type", &type) || !known_type(type)) {
		SAY(r, WRONG, u->path, "type is %s; the unit is left out",
		    quipu_machine_property(r->m, node, "type", NULL) ? "none of "
								       "0x10, 0x4, 0x1, 0x2"
								     : "missing");
		return false;
	}
	u->type = type;
	if (!cell_of(r, node, "size", &u->size) || !u->size || u->size > IMC_MAX_SIZE) {
		SAY(r, WRONG, u->path, "size is missing or too large; the unit is left out");
		return false;
	}
	why = firmware ? taken_away(r->tree, u) : NULL;
	if (why) {
		SAY(r, IGNORED, u->path, "%s", why);
		return false;
	}
	u->nest = cell_of(r, node, "offset", &offset);
	if (u->nest)
		read_chips(r, u, node, firmware && type == IMC_NEST);
	if ((u->nest && !u->nchips) || (type == IMC_NEST && !u->nest)) {
		SAY(r, WRONG, u->path, "a nest unit without %s; left out",
		    u->nest ? "chip-id or base-addr" : "offset");
		return false;
	}
	if (has_unit(r->tree, u->node)) {
		SAY(r, WRONG, u->path, "a second unit of that name; left out");
		return false;
	}
	return true;
}

/* Where the region and its control block lie: alike for all units of a real catalog. */
static void take_region(struct reader *r, const struct imc_unit *u, int node)
{
	struct imc_tree *t = r->tree;
	uint32_t offset = 0;

	if (u->type != IMC_NEST || u->size < 0x1000)
		return;
	cell_of(r, node, "offset", &offset);
	if (t->region_size) {
		if (offset != t->region_offset)
			SAY(r, WRONG, u->path,
			    "offset 0x%" PRIx32 ": the chip's counters lie at 0x%" PRIx32
			    ", as the first unit says; taken as that",
			    offset, t->region_offset);
		return;
	}
	t->region_offset = offset;
	t->region_size = u->size;
	if (!cell_of(r, node, "cb_offset", &t->control_offset) ||
	    t->control_offset > u->size - 0x400)
		t->control_offset = u->size - 0x400;
}

static void read_machine(struct reader *r)
{
	struct imc_tree *t = r->tree;
	int top = quipu_machine_find(r->m, TOP_COMPATIBLE);
	const char *names;

	t->pvr = (uint32_t)quipu_machine_number(r->m, r->m->cpus[0].offset, "cpu-version",
						0x004e1202);
	t->available = IMC_AVAILABLE;
	if (top < 0)
		return;
	t->available = quipu_machine_number(r->m, top, "quipu,availability", IMC_AVAILABLE);
	t->exact = quipu_machine_property(r->m, top, "quipu,imc-exact", NULL) != NULL;
	t->nest_down = quipu_machine_property(r->m, top, "quipu,nest-down", NULL) != NULL;
	names = text_of(r->m, top, "quipu,imc-names");
	t->document_names = names && !strcmp(names, "document");
}

struct cell {
	uint32_t config;
	unsigned unit, event;
};

static int compare_cell(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	if (x->config != y->config)
		return x->config < y->config ? -1 : 1;
	return (x->unit > y->unit) - (x->unit < y->unit);
}

static size_t nest_cells(const struct imc_tree *t, struct cell *out)
{
	size_t n = 0;

	for (unsigned i = 0; i < t->nunits; i++)
		for (unsigned k = 0; t->units[i].type == IMC_NEST && k < t->units[i].nevents; k++) {
			if (out)
				out[n] = (struct cell){t->units[i].events[k].config, i, k};
			n++;
		}
	return n;
}

/* Units of a chip share one region: an event on another unit's cell reads what is not its own. */
static void check_shared(struct reader *r)
{
	const struct imc_tree *t = r->tree;
	size_t n = nest_cells(t, NULL);
	struct cell *cells = calloc(n ? n : 1, sizeof(*cells));
	bool said[IMC_MAX_UNITS] = {false};

	if (!cells) {
		r->err = -ENOMEM;
		return;
	}
	nest_cells(t, cells);
	qsort(cells, n, sizeof(*cells), compare_cell);
	for (size_t i = 1; i < n; i++) {
		const struct cell *one = &cells[i - 1], *two = &cells[i];
		const struct imc_unit *a = &t->units[one->unit], *b = &t->units[two->unit];

		if (one->config != two->config || one->unit == two->unit || said[two->unit])
			continue;
		said[two->unit] = true;
		SAY(r, WRONG, b->path,
		    "wrong offsets: %s lies at 0x%" PRIx32 ", the cell of %s of %s",
		    b->events[two->event].name, two->config, a->events[one->event].name, a->node);
	}
	free(cells);
}

int imc_tree_read(const struct quipu_machine *m, bool firmware, struct quipu_notes *notes,
		  struct imc_tree *t)
{
	struct reader r = {.m = m, .notes = notes, .tree = t};

	memset(t, 0, sizeof(*t));
	t->units = calloc(IMC_MAX_UNITS, sizeof(*t->units));
	if (!t->units)
		return -ENOMEM;
	read_machine(&r);
	for (int node = quipu_machine_find(m, UNIT_COMPATIBLE); node >= 0 && !r.err;
	     node = quipu_machine_find_next(m, node, UNIT_COMPATIBLE)) {
		struct imc_unit *u = &t->units[t->nunits];

		if (t->nunits == IMC_MAX_UNITS) {
			SAY(&r, WRONG, "/", "more than %u units; the rest is left out",
			    IMC_MAX_UNITS);
			break;
		}
		memset(u, 0, sizeof(*u));
		u->path = quipu_machine_path(m, node);
		r.path = u->path;
		if (!u->path || !read_unit(&r, u, node, firmware)) {
			r.err = u->path ? 0 : -ENOMEM;
			free(u->path);
			continue;
		}
		take_region(&r, u, node);
		t->nunits++;
		read_events(&r, u, node);
	}
	if (!r.err)
		check_shared(&r);
	if (!t->region_size) {
		t->region_offset = 0x180000;
		t->region_size = 0x40000;
		t->control_offset = 0x3fc00;
	}
	if (r.err)
		imc_tree_free(t);
	return r.err;
}

void imc_tree_free(struct imc_tree *t)
{
	for (unsigned i = 0; t->units && i < t->nunits; i++) {
		struct imc_unit *u = &t->units[i];

		for (unsigned k = 0; k < u->nevents; k++) {
			free(u->events[k].name);
			free(u->events[k].file);
		}
		free(u->events);
		free(u->path);
	}
	free(t->units);
	t->units = NULL;
	t->nunits = 0;
}
