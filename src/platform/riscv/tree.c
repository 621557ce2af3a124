/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device tree of the RISC-V room: facts of the harts (riscv,isa and private properties), the three
 * maps of the riscv,pmu binding, and the machine properties that choose firmware and driver.
 *
 * Follows the Linux binding "riscv,pmu" and the rules that OpenSBI enforces on it (RISC-V sheet
 * 4.1, D-19, D-20): a row that breaks a rule is named with its property and number, and left out.
 * The tree is not changed.
 */
#include <errno.h>
#include <libfdt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "platform/riscv/events.h"
#include "platform/riscv/hart.h"

#define ROWS_MAX	  255u /* OpenSBI's limit, over all three maps */
#define DEFAULT_HPM_MASK  0x0000FFF8u
#define DEFAULT_HPM_WIDTH 48u
#define COMPAT_SBI	  "riscv,pmu"

static int pmu_node(const struct quipu_machine *m)
{
	return quipu_machine_find(m, COMPAT_SBI);
}

/* A node of the kind that Linux 4.18 looked for. */
static int legacy_node(const struct quipu_machine *m)
{
	return fdt_node_offset_by_prop_value(m->fdt, -1, "device_type", "pmu", sizeof("pmu"));
}

/* Where machine properties lie: the PMU's node, else the root. Looked for once. */
struct place {
	const struct quipu_machine *m;
	int nodes[3];
};

static struct place place_of(const struct quipu_machine *m)
{
	return (struct place){m, {pmu_node(m), legacy_node(m), 0}};
}

static const void *property(const struct place *at, const char *name, int *len)
{
	for (int i = 0; i < 3; i++) {
		const void *p = at->nodes[i] >= 0
					? quipu_machine_property(at->m, at->nodes[i], name, len)
					: NULL;

		if (p)
			return p;
	}
	return NULL;
}

static const char *string_property(const struct place *at, const char *name)
{
	int len = 0;
	const char *s = property(at, name, &len);

	return s && len > 0 && s[len - 1] == '\0' ? s : NULL;
}

static uint64_t number_property(const struct place *at, const char *name, uint64_t fallback)
{
	int len = 0;
	const void *p = property(at, name, &len);

	if (p && len == 4)
		return bits_be32(p);
	return p && len == 8 ? bits_be64(p) : fallback;
}

/* One word of a list, or a note that says which words there are. */
struct choice {
	const char *word;
	unsigned value;
};

static unsigned choose(const struct place *at, struct quipu_notes *notes, const char *name,
		       const struct choice *choices, unsigned fallback)
{
	const char *s = string_property(at, name);
	char words[128] = "";

	if (!s)
		return fallback;
	for (const struct choice *c = choices; c->word; c++) {
		size_t used = strlen(words);

		if (!strcmp(s, c->word))
			return c->value;
		snprintf(words + used, sizeof(words) - used, "%s\"%s\"", used ? ", " : "", c->word);
	}
	quipu_note(notes, QUIPU_NOTE_WRONG, name, "\"%s\" is none of %s; the default is used", s,
		   words);
	return fallback;
}

static const struct choice on_off[] = {{"on", 1}, {"off", 0}, {NULL, 0}};

static void choose_events(struct quipu_riscv *rv, const struct place *at, struct quipu_notes *notes)
{
	static const struct {
		const char *compatible, *table;
	} cpus[] = {
		{"sifive,u74", "u74"},	       {"sifive,u74-mc", "u74"}, {"sifive,bullet0", "u74"},
		{"thead,c906", "thead"},       {"thead,c910", "thead"},	 {"thead,c920", "thead"},
		{"andestech,ax45mp", "andes"}, {"riscv-virtio", "qemu"},
	};
	const char *name = string_property(at, "quipu,events");

	for (size_t i = 0; !name && i < sizeof(cpus) / sizeof(cpus[0]); i++)
		if (quipu_machine_find(rv->machine, cpus[i].compatible) >= 0)
			name = cpus[i].table;
	rv->events = riscv_events_named(name ? name : "generic");
	if (rv->events)
		return;
	quipu_note(notes, QUIPU_NOTE_WRONG, "quipu,events",
		   "\"%s\" is none of \"generic\", \"qemu\", \"u74\", \"thead\", \"andes\"; "
		   "\"generic\" is used",
		   name);
	rv->events = riscv_events_named("generic");
}

int riscv_tree_config(struct quipu_riscv *rv, struct quipu_notes *notes)
{
	static const struct choice drivers[] = {
		{"sbi", RISCV_DRIVER_SBI}, {"legacy", RISCV_DRIVER_LEGACY}, {NULL, 0}};
	static const struct choice kernels[] = {
		{"4.18", 418}, {"6.1", 601}, {"6.12", 612}, {NULL, 0}};
	static const struct choice versions[] = {
		{"0.3", 0x3},	     {"1.0", 0x01000000}, {"2.0", 0x02000000},
		{"3.0", 0x03000000}, {NULL, 0},
	};
	static const struct choice privileged[] = {
		{"1.10", 10}, {"1.11", 11}, {"1.12", 12}, {NULL, 0}};
	static const struct choice records[] = {{"refuse", 0}, {"silent", 1}, {NULL, 0}};
	static const struct choice unmodelled[] = {{"refuse", 0}, {"zero", 1}, {NULL, 0}};
	struct place at = place_of(rv->machine);
	struct riscv_config *c = &rv->config;
	bool legacy = at.nodes[0] < 0 && at.nodes[1] >= 0;
	int len;

	c->driver = choose(&at, notes, "quipu,driver", drivers,
			   legacy ? RISCV_DRIVER_LEGACY : RISCV_DRIVER_SBI);
	legacy = c->driver == RISCV_DRIVER_LEGACY;
	c->kernel = choose(&at, notes, "quipu,kernel", kernels, legacy ? 418 : 612);
	if (!legacy && c->kernel == 418) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "quipu,kernel",
			   "Linux 4.18 has no SBI PMU driver: \"6.12\" is used; quipu,driver = "
			   "\"legacy\" selects the "
			   "driver that it has");
		c->kernel = 612;
	}
	c->sbi_version = choose(&at, notes, "quipu,sbi-version", versions, 0x03000000);
	c->opensbi_compat = property(&at, "quipu,opensbi-compat", &len) != NULL;
	c->snapshot = choose(&at, notes, "quipu,snapshot", on_off, 1);
	c->record_silent = choose(&at, notes, "quipu,record", records, 0);
	c->branch_records = choose(&at, notes, "quipu,branch-records", on_off, 0);
	c->events_directory = choose(&at, notes, "quipu,events-directory", on_off, 1);
	c->unmodelled_zero = choose(&at, notes, "quipu,unmodelled", unmodelled, 0);
	c->priv_minor = choose(&at, notes, "quipu,privileged", privileged, legacy ? 10 : 12);
	c->charge_instructions = number_property(&at, "quipu,charge-syscall-instructions", 0);
	c->charge_cycles = number_property(&at, "quipu,charge-syscall-cycles", 0);
	c->counter_reset = number_property(&at, "quipu,counter-reset", 0);
	c->user_access = (unsigned)number_property(&at, "quipu,user-access", 1);
	if (c->user_access > 2) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "quipu,user-access",
			   "is none of 0, 1, 2: taken as 1");
		c->user_access = 1;
	}
	if (c->charge_instructions > UINT32_MAX || c->charge_cycles > UINT32_MAX) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "quipu,charge-syscall-*",
			   "more than 2^32 - 1: no charge is made");
		c->charge_instructions = c->charge_cycles = 0;
	}
	choose_events(rv, &at, notes);
	return 0;
}

/*
 * Is extension @name in riscv,isa-extensions, or after an underscore in riscv,isa? Letters: in the
 * first part of it.
 */
static bool isa_has(const struct quipu_machine *m, int cpu, const char *name)
{
	size_t n = strlen(name);
	const char *isa;
	int len;

	if (quipu_machine_has_string(m, cpu, "riscv,isa-extensions", name))
		return true;
	isa = quipu_machine_property(m, cpu, "riscv,isa", &len);
	if (!isa || len < 5 || isa[len - 1] != '\0')
		return false;
	if (n == 1) {
		const char *end = strchr(isa, '_');
		const char *at = strchr(isa + 4, name[0]);

		return at && (!end || at < end);
	}
	for (const char *p = strchr(isa, '_'); p; p = strchr(p + 1, '_'))
		if (!strncasecmp(p + 1, name, n) && (p[n + 1] == '_' || p[n + 1] == '\0'))
			return true;
	return false;
}

int riscv_tree_hart(struct quipu_riscv *rv, struct hart *h, struct quipu_notes *notes)
{
	static const struct {
		const char *name;
		unsigned extension;
	} map[] = {
		{"h", EXT_H},
		{"sscofpmf", EXT_SSCOFPMF},
		{"smcntrpmf", EXT_SMCNTRPMF},
		{"smcdeleg", EXT_SMCDELEG},
		{"smaia", EXT_SMAIA | EXT_SSAIA},
		{"ssaia", EXT_SSAIA},
		{"shlcofideleg", EXT_SHLCOFIDELEG},
		{"smstateen", EXT_SMSTATEEN},
	};
	const struct quipu_machine *m = rv->machine;
	const struct quipu_cpu *cpu = &m->cpus[h->number];
	uint64_t mask = quipu_machine_number(m, cpu->offset, "quipu,hpm-mask", DEFAULT_HPM_MASK);
	uint64_t width = quipu_machine_number(m, cpu->offset, "quipu,hpm-width", DEFAULT_HPM_WIDTH);

	if (rv->config.driver == RISCV_DRIVER_LEGACY &&
	    !quipu_machine_property(m, cpu->offset, "quipu,hpm-mask", NULL))
		mask = 0;
	if (mask & ~(uint64_t)HART_PROGRAMMABLE) {
		quipu_note(notes, QUIPU_NOTE_WRONG, cpu->path,
			   "quipu,hpm-mask 0x%llx: only bits 3 to 31 are programmable counters; "
			   "the others are ignored",
			   (unsigned long long)mask);
		mask &= HART_PROGRAMMABLE;
	}
	if (width < 16 || width > 64) {
		quipu_note(notes, QUIPU_NOTE_WRONG, cpu->path,
			   "quipu,hpm-width %llu: a counter has 16 to 64 bits; %u is used",
			   (unsigned long long)width, DEFAULT_HPM_WIDTH);
		width = DEFAULT_HPM_WIDTH;
	}
	h->implemented = (uint32_t)mask | 5;
	h->width = (unsigned)width;
	h->extensions = rv->config.priv_minor > 10 ? EXT_INHIBIT : 0;
	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (isa_has(m, cpu->offset, map[i].name))
			h->extensions |= map[i].extension;
	if (h->number &&
	    (h->implemented != rv->harts[0].implemented || h->width != rv->harts[0].width ||
	     h->extensions != rv->harts[0].extensions)) {
		quipu_note(notes, QUIPU_NOTE_WRONG, cpu->path,
			   "counters differ from those of the first hart: one PMU serves them all, "
			   "so the first hart's hold");
		h->implemented = rv->harts[0].implemented;
		h->width = rv->harts[0].width;
		h->extensions = rv->harts[0].extensions;
	}
	return 0;
}

/* ---- tables ---- */

struct parse {
	struct quipu_riscv *rv;
	struct quipu_notes *notes;
	unsigned rows; /* of all maps */
	bool range_refused;
};

/* Why a row is refused; NULL: taken. */
typedef const char *row_fn(struct parse *, const uint32_t *cells, unsigned row);

static uint64_t cells64(const uint32_t *c)
{
	return (uint64_t)bits_be32(c) << 32 | bits_be32(c + 1);
}

static uint32_t implemented(const struct parse *p)
{
	return p->rv->harts[0].implemented;
}

static const char *alias_row(struct parse *p, const uint32_t *c, unsigned row)
{
	struct riscv_tables *t = &p->rv->tables;
	struct riscv_alias a = {.event = bits_be32(c), .selector = cells64(c + 1)};

	(void)row;
	if (a.event >= 0x20000)
		return "the event is neither a general nor a cache event";
	t->aliases[t->naliases++] = a;
	return NULL;
}

static const char *range_row(struct parse *p, const uint32_t *c, unsigned row)
{
	struct riscv_tables *t = &p->rv->tables;
	struct riscv_range r = {bits_be32(c), bits_be32(c + 1), bits_be32(c + 2)};

	(void)row;
	/*
	 * The rules of OpenSBI: nothing after the row that names a fixed counter for another event
	 * is read.
	 */
	if (p->range_refused)
		return "a row before this one names a fixed counter wrongly";
	if (r.first > r.last)
		return "the first event is above the last";
	if (r.last >= 0x20000)
		return "the last event is neither a general nor a cache event";
	if (r.first > 2 && (r.counters & 7)) {
		p->range_refused = true;
		return "counters 0 to 2 count cycles, time and instructions only";
	}
	for (unsigned i = 0; i < t->nranges; i++)
		if (r.first <= t->ranges[i].last && r.last >= t->ranges[i].first)
			return "the range overlaps an earlier row";
	r.counters &= implemented(p);
	t->ranges[t->nranges++] = r;
	return NULL;
}

static const char *raw_row(struct parse *p, const uint32_t *c, unsigned row)
{
	struct riscv_tables *t = &p->rv->tables;
	struct riscv_raw r = {cells64(c), cells64(c + 2), bits_be32(c + 4)};

	(void)row;
	if (r.match & ~r.mask)
		return "the value has bits outside its mask, so that nothing matches";
	for (unsigned i = 0; i < t->nraws; i++)
		if (t->raws[i].match == r.match && t->raws[i].mask == r.mask)
			return "value and mask repeat those of an earlier row";
	r.counters &= implemented(p);
	t->raws[t->nraws++] = r;
	return NULL;
}

static bool all_zero(const uint32_t *cells, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (cells[i])
			return false;
	return true;
}

/*
 * The rows of one map. What trails the last whole row, and rows of zeros, are QEMU 7.2's and mean
 * nothing.
 */
static void parse_rows(struct parse *p, int node, const char *name, unsigned size, row_fn *fn)
{
	const uint32_t *cells;
	int n = quipu_machine_cells(p->rv->machine, node, name, &cells);
	char path[96];

	for (unsigned row = 0; n > 0 && (row + 1) * size <= (unsigned)n; row++, cells += size) {
		const char *why;

		if (all_zero(cells, size))
			continue;
		why = ++p->rows > ROWS_MAX ? "there are more than 255 rows" : fn(p, cells, row);
		if (!why)
			continue;
		snprintf(path, sizeof(path), "/pmu:%s row %u", name, row + 1);
		quipu_note(p->notes, QUIPU_NOTE_WRONG, path, "%s; the row is left out", why);
	}
	if (n > 0 && (unsigned)n % size) {
		snprintf(path, sizeof(path), "/pmu:%s", name);
		quipu_note(p->notes, QUIPU_NOTE_IGNORED, path, "%u cells after the last whole row",
			   (unsigned)n % size);
	}
}

int riscv_tree_tables(struct quipu_riscv *rv, struct quipu_notes *notes)
{
	static const char events[] = "riscv,event-to-mhpmevent",
			  counters[] = "riscv,event-to-mhpmcounters",
			  raws[] = "riscv,raw-event-to-mhpmcounters";
	struct parse p = {.rv = rv, .notes = notes};
	struct riscv_tables *t = &rv->tables;
	int node = pmu_node(rv->machine);

	if (node < 0)
		return 0;
	t->ranges = calloc(ROWS_MAX, sizeof(*t->ranges));
	t->raws = calloc(ROWS_MAX, sizeof(*t->raws));
	t->aliases = calloc(ROWS_MAX, sizeof(*t->aliases));
	if (!t->ranges || !t->raws || !t->aliases)
		return -ENOMEM;
	parse_rows(&p, node, counters, 3, range_row);
	if (quipu_machine_property(rv->machine, node, counters, NULL))
		parse_rows(&p, node, events, 3, alias_row);
	else if (quipu_machine_property(rv->machine, node, events, NULL))
		quipu_note(notes, QUIPU_NOTE_WRONG, "/pmu:riscv,event-to-mhpmevent",
			   "needs riscv,event-to-mhpmcounters beside it; it is ignored");
	parse_rows(&p, node, raws, 5, raw_row);
	return 0;
}

void riscv_tree_free(struct riscv_tables *t)
{
	free(t->ranges);
	free(t->raws);
	free(t->aliases);
}
