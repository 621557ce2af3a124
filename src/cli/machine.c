// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu machine list | show M | check FILE: which machines there are, what one is made of, and what
 * was made of someone's device tree.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <libfdt.h>

#include <quipu/model.h>

#include "cli/calibrate.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "cli/show_models.h"

#define WIDTH 100

static const char usage[] =
	"usage: quipu machine list [--json]\n"
	"       quipu machine show [-v] [--json] MACHINE\n"
	"       quipu machine check [--json] MACHINE\n"
	"       quipu machine calibrate FILE.csv\n"
	"       quipu machine unplug|plug PMU\n\n"
	"A MACHINE is the name of a shipped machine or a device tree file, source (.dts) or "
	"flattened (.dtb).\n\n"
	"  list    the shipped machines\n"
	"  show    CPUs, caches, clock, costs, PMUs, counters and events of one (-v: also those "
	"that are not modelled)\n"
	"  check   what was understood of a tree, what was ignored, what is wrong and where;\n"
	"          the exit status is 1 when something is wrong, 2 when no machine can be made of "
	"it\n"
	"  calibrate  costs of classes and misses from measured runs, as a piece of device tree;\n"
	"          the first line names the columns: cycles, run (a label), instruction classes\n"
	"          (several joined by + get one cost), mispredict, memory, walk, second-tlb, l2, l3\n"
	"  unplug, plug  inside `quipu exec`: the device with that PMU (dmar1) leaves the running "
	"machine, or\n"
	"          comes back; events that were open on it are good for nothing any more\n";

/* ---- words ---- */

/* 32768 -> "32 KiB" */
static const char *bytes_text(uint64_t n, char *buf, size_t len)
{
	static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	size_t u = 0;

	while (u < 4 && n >= 1024 && !(n % 1024)) {
		n /= 1024;
		u++;
	}
	snprintf(buf, len, "%" PRIu64 " %s", n, unit[u]);
	return buf;
}

static const char *hertz_text(uint64_t hz, char *buf, size_t len)
{
	if (hz >= 1000000000)
		snprintf(buf, len, "%.4g GHz", (double)hz / 1e9);
	else
		snprintf(buf, len, "%.4g MHz", (double)hz / 1e6);
	return buf;
}

static const char *range_text(unsigned first, unsigned n, char *buf, size_t len)
{
	if (n == 1)
		snprintf(buf, len, "CPU %u", first);
	else
		snprintf(buf, len, "CPUs %u-%u", first, first + n - 1);
	return buf;
}

static const char *cache_name(const struct quipu_cache *c, char *buf, size_t len)
{
	static const char *const suffix[] = {"d", "i", ""};

	snprintf(buf, len, "L%u%s", c->level, suffix[c->type]);
	return buf;
}

/* ---- list ---- */

struct listed {
	char *file;
	struct quipu_machine *machine; /* NULL: its file is no machine */
};

/* Without a word on standard error: a broken file among the machines is a line of the table. */
static void load_quietly(const char *name, struct listed *l)
{
	struct quipu_notes notes = {0};

	l->file = cli_machine_file(name);
	l->machine = l->file ? cli_machine_read(l->file, name, &notes) : NULL;
	quipu_notes_free(&notes);
}

static json_t *json_listed(const char *name, const struct listed *l)
{
	if (!l->machine)
		return json_pack("{s:s, s:s*, s:s}", "name", name, "file", l->file, "error",
				 "no machine can be made of it");
	return json_pack("{s:s, s:s, s:s, s:i, s:s}", "name", name, "model", l->machine->model,
			 "isa", quipu_isa_name(l->machine->isa), "cpus", (int)l->machine->ncpus,
			 "file", l->file);
}

static int list_machines(bool json)
{
	char **names = cli_machine_names();
	json_t *array = json ? json_array() : NULL;

	if (!names || !names[0]) {
		cli_machine_names_free(names);
		json_decref(array);
		return cli_error(
			"no machines found; they lie beside the command or in QUIPU_MACHINE_PATH");
	}
	if (!json)
		printf("%-18s %5s  %-8s %s\n", "NAME", "CPUS", "ISA", "MODEL");
	for (size_t i = 0; names[i]; i++) {
		struct listed l;

		load_quietly(names[i], &l);
		if (json)
			json_array_append_new(array, json_listed(names[i], &l));
		else if (l.machine)
			printf("%-18s %5u  %-8s %s\n", names[i], l.machine->ncpus,
			       quipu_isa_name(l.machine->isa), l.machine->model);
		else
			printf("%-18s %5s  %-8s no machine; `quipu machine check %s` says why\n",
			       names[i], "-", "-", names[i]);
		quipu_machine_free(l.machine);
		free(l.file);
	}
	if (json) {
		json_dumpf(array, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(array);
	}
	cli_machine_names_free(names);
	return 0;
}

/* ---- show: the machine ---- */

static void heading(const char *text)
{
	printf("\n%s%s%s\n", cli_colour() ? "\x1b[1m" : "", text, cli_colour() ? "\x1b[0m" : "");
}

static const char *reg_word(enum quipu_isa isa)
{
	return isa == QUIPU_ISA_RISCV64 ? "hart" : isa == QUIPU_ISA_SPARC64 ? "strand" : "thread";
}

/* CPUs of one core, cluster and socket follow each other in every tree met so far; lines are made
 * of such runs. */
static void show_cpus(const struct quipu_machine *m)
{
	unsigned socket = UINT32_MAX, cluster = UINT32_MAX, node = UINT32_MAX;

	for (unsigned i = 0; i < m->ncpus;) {
		const struct quipu_cpu *c = &m->cpus[i];
		unsigned n = 1;
		char range[32];

		if (c->socket != socket)
			printf("  socket %u\n", c->socket);
		if (c->socket != socket || c->cluster != cluster || c->node != node)
			printf("    cluster %u, memory node %u\n", c->cluster, c->node);
		socket = c->socket;
		cluster = c->cluster;
		node = c->node;
		while (i + n < m->ncpus && c[n].socket == socket && c[n].cluster == cluster &&
		       c[n].node == node && c[n].core == c->core)
			n++;
		printf("      core %-3u %s (%s %" PRIu64 "%s)\n", c->core,
		       range_text(i, n, range, sizeof(range)), reg_word(m->isa), c->reg,
		       n > 1 ? " ..." : "");
		i += n;
	}
}

static bool same_geometry(const struct quipu_cache *a, const struct quipu_cache *b)
{
	return a->level == b->level && a->type == b->type && a->size == b->size &&
	       a->line == b->line && a->sets == b->sets && a->ncpus == b->ncpus;
}

/* How many caches are like @i; 0 when an earlier one stood for it already. */
static unsigned alike(const struct quipu_machine *m, size_t i)
{
	unsigned n = 0;

	for (size_t j = 0; j < m->ncaches; j++) {
		if (!same_geometry(&m->caches[i], &m->caches[j]))
			continue;
		if (j < i)
			return 0;
		n++;
	}
	return n;
}

static void show_caches(const struct quipu_machine *m)
{
	if (!m->ncaches)
		puts("  the tree declares none");
	for (size_t i = 0; i < m->ncaches; i++) {
		const struct quipu_cache *c = &m->caches[i];
		unsigned n = alike(m, i);
		char size[32], name[16], range[32];

		if (!n)
			continue;
		printf("  %-4s %3u x %-8s %u-way, %u sets, lines of %u bytes; ",
		       cache_name(c, name, sizeof(name)), n,
		       bytes_text(c->size, size, sizeof(size)), c->ways, c->sets, c->line);
		if (n == 1)
			printf("%s\n", range_text(c->first_cpu, c->ncpus, range, sizeof(range)));
		else if (c->ncpus == 1)
			puts("one for each CPU");
		else
			printf("one for each %u CPUs\n", c->ncpus);
	}
}

static void show_memory(const struct quipu_machine *m)
{
	char size[32];

	for (size_t i = 0; i < m->nnodes; i++)
		printf("  node %u  %s\n", m->nodes[i].id,
		       bytes_text(m->nodes[i].memory_bytes, size, sizeof(size)));
}

/* Words in lines of WIDTH columns. */
struct flow {
	unsigned indent, column;
};

static void flow_word(struct flow *f, const char *word)
{
	unsigned n = (unsigned)strlen(word);

	if (f->column + n + 1 > WIDTH) {
		printf("\n%*s", (int)f->indent, "");
		f->column = f->indent;
	}
	printf("%s%s", f->column > f->indent ? " " : "", word);
	f->column += n + (f->column > f->indent);
}

static void show_costs(const struct quipu_machine *m)
{
	struct flow f = {.indent = 2, .column = 2};

	fputs("  ", stdout);
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++) {
		char word[48];

		snprintf(word, sizeof(word), "%s %u%s",
			 quipu_insn_class_name((enum quipu_insn_class)c), m->cost[c],
			 c + 1 < QUIPU_INSN_CLASSES ? "," : "");
		flow_word(&f, word);
	}
	putchar('\n');
}

static void describe_line(void *arg, unsigned depth, const char *line)
{
	(void)arg;
	printf("  %*s%s\n", (int)(2 * depth), "", line);
}

/* ---- show: events ---- */

/* Exact, modelled and host by enum quipu_exactness, then those that cannot be counted. */
#define GROUPS 4

static unsigned group_of(const struct model_event *e)
{
	return e->unavailable ? GROUPS - 1 : (unsigned)e->exactness;
}

/* Is there a generic event of the same name? Then the PMU's own says nothing new in a summary. */
static bool generic_too(const struct model_events *events, const char *name)
{
	for (size_t i = 0; i < events->n && events->items[i].kind < EVENT_PMU; i++)
		if (!strcasecmp(events->items[i].name, name))
			return true;
	return false;
}

/* The events of one group: generic names, then each PMU's behind its name. */
static void show_group(const struct model_events *events, unsigned group)
{
	struct flow f = {.indent = 19, .column = 19};
	const struct quipu_pmu *pmu = NULL;

	for (size_t i = 0; i < events->n; i++) {
		const struct model_event *e = &events->items[i];
		char word[300];

		if (e->kind == EVENT_RAW || group_of(e) != group)
			continue;
		snprintf(word, sizeof(word), "%s", e->name);
		if (e->kind == EVENT_PMU) {
			char *bare = word + strlen(e->pmu->name) + 1;

			bare[strlen(bare) - 1] = '\0'; /* "cpu/loads/" -> "loads" */
			if (generic_too(events, bare))
				continue;
			if (pmu != e->pmu) {
				printf("%s%*s%s/.../:", f.column > f.indent ? "\n" : "",
				       f.column > f.indent ? (int)f.indent : 0, "", e->pmu->name);
				f.column = f.indent + (unsigned)strlen(e->pmu->name) + 6;
			}
			pmu = e->pmu;
			memmove(word, bare, strlen(bare) + 1);
		}
		flow_word(&f, word);
	}
	putchar('\n');
}

static void show_events(const struct model_events *events, const char *machine, bool verbose)
{
	static const char *const name[GROUPS] = {"exact", "modelled", "host", "not modelled"};

	for (unsigned g = 0; g < GROUPS; g++) {
		unsigned n = 0;

		for (size_t i = 0; i < events->n; i++)
			n += events->items[i].kind != EVENT_RAW && group_of(&events->items[i]) == g;
		if (!n)
			continue;
		printf("  %-12s %-3u ", name[g], n);
		if (g == GROUPS - 1 && !verbose)
			printf("`quipu list -m %s` names them and says why\n", machine);
		else
			show_group(events, g);
	}
}

static int show_text(const struct model *model, const struct model_events *events, const char *file,
		     const char *typed, bool verbose)
{
	const struct quipu_machine *m = model->machine;
	char hz[32], timebase[32];

	printf("%s: %s\n", m->name, *m->model ? m->model : "no model name");
	printf("  from %s\n", file);
	heading("CPUs");
	printf("  %u of %s at %s; ", m->ncpus, quipu_isa_name(m->isa),
	       hertz_text(m->hz, hz, sizeof(hz)));
	printf("kernel tick %u Hz", m->tick_hz);
	if (m->timebase_hz)
		printf("; time counter %s", hertz_text(m->timebase_hz, timebase, sizeof(timebase)));
	putchar('\n');
	show_cpus(m);
	heading("Caches");
	show_caches(m);
	heading("Memory");
	show_memory(m);
	heading(m->timing_full ? "Cycles (modelled): timing full, stalls and mispredictions added "
				 "to the cost of a class"
			       : "Cycles (modelled): timing base, the cost of each instruction by "
				 "its class");
	show_costs(m);
	heading("Models (what they count is modelled)");
	show_models(m);
	heading("PMUs");
	quipu_system_describe(model->system, describe_line, NULL);
	heading("Events");
	show_events(events, typed, verbose);
	return 0;
}

/* Lines of a room's description as an array of {depth, text}. */
static void describe_json(void *arg, unsigned depth, const char *line)
{
	json_array_append_new(arg, json_pack("{s:i, s:s}", "depth", (int)depth, "text", line));
}

static json_t *json_cpus(const struct quipu_machine *m)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < m->ncpus; i++) {
		const struct quipu_cpu *c = &m->cpus[i];

		json_array_append_new(a,
				      json_pack("{s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:s}", "cpu",
						(int)c->number, "reg", (json_int_t)c->reg, "socket",
						(int)c->socket, "cluster", (int)c->cluster, "core",
						(int)c->core, "thread", (int)c->thread, "node",
						(int)c->node, "path", c->path));
	}
	return a;
}

static json_t *json_caches(const struct quipu_machine *m)
{
	json_t *a = json_array();

	for (size_t i = 0; i < m->ncaches; i++) {
		const struct quipu_cache *c = &m->caches[i];
		char name[16];

		json_array_append_new(a, json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:s}",
						   "name", cache_name(c, name, sizeof(name)),
						   "size", (json_int_t)c->size, "line",
						   (int)c->line, "sets", (int)c->sets, "ways",
						   (int)c->ways, "first-cpu", (int)c->first_cpu,
						   "cpus", (int)c->ncpus, "path", c->path));
	}
	return a;
}

static json_t *json_costs(const struct quipu_machine *m)
{
	json_t *o = json_object();

	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		json_object_set_new(o, quipu_insn_class_name((enum quipu_insn_class)c),
				    json_integer(m->cost[c]));
	return o;
}

static json_t *json_events(const struct model_events *events)
{
	json_t *a = json_array();

	for (size_t i = 0; i < events->n; i++) {
		const struct model_event *e = &events->items[i];

		if (e->kind != EVENT_RAW)
			json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:s*}", "name", e->name,
							   "kind", model_event_kind(e->kind),
							   "class", model_event_label(e), "reason",
							   e->unavailable));
	}
	return a;
}

static int show_json(const struct model *model, const struct model_events *events, const char *file)
{
	const struct quipu_machine *m = model->machine;
	json_t *pmus = json_array(), *o;

	quipu_system_describe(model->system, describe_json, pmus);
	o = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}",
		      "name", m->name, "model", m->model, "file", file, "isa",
		      quipu_isa_name(m->isa), "hz", (json_int_t)m->hz, "timebase-hz",
		      (json_int_t)m->timebase_hz, "tick-hz", (int)m->tick_hz, "timing",
		      m->timing_full ? "full" : "base", "memory", (json_int_t)m->memory_bytes,
		      "cpus", json_cpus(m), "caches", json_caches(m), "costs", json_costs(m),
		      "models", json_models(m), "pmus", pmus, "events", json_events(events));
	if (!o)
		return cli_error("out of memory");
	json_dumpf(o, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(o);
	return 0;
}

static int show(const char *name, bool verbose, bool json)
{
	struct quipu_notes notes = {0};
	struct model_events events;
	struct model model = {0};
	char *file = cli_machine_file(name);
	struct quipu_machine *machine;
	int status = 2;

	machine = file ? cli_machine_load(name, false) : NULL;
	if (!machine)
		goto out;
	if (model_open(&model, machine, &notes)) {
		cli_notes_print(file, &notes, false);
		goto out;
	}
	cli_notes_print(file, &notes, false);
	if (model_events(&model, &events)) {
		cli_error("out of memory");
		goto out;
	}
	status = json ? show_json(&model, &events, file)
		      : show_text(&model, &events, file, name, verbose);
	model_events_free(&events);
out:
	model_close(&model);
	quipu_notes_free(&notes);
	free(file);
	return status;
}

/* ---- check ---- */

/* Is there a note about the node at @path, its properties, or a node below? */
static bool spoken_of(const struct quipu_notes *notes, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < notes->n; i++)
		if (!strncmp(notes->items[i].path, path, n) &&
		    strchr("/:", notes->items[i].path[n]))
			return true; /* strchr finds the end of the string as well */
	return false;
}

/* The nodes that a room of this machine has read. */
static void note_rooms(const struct model *model, struct quipu_notes *notes)
{
	const void *fdt = model->machine->fdt;

	for (const struct quipu_platform *const *p = quipu_platforms; *p; p++) {
		if (!(*p)->compatible || !(*p)->matches(model->machine))
			continue;
		for (const char *const *word = (*p)->compatible; *word; word++) {
			int node = fdt_node_offset_by_compatible(fdt, -1, *word);
			char path[256];

			for (; node >= 0; node = fdt_node_offset_by_compatible(fdt, node, *word))
				if (!fdt_get_path(fdt, node, path, sizeof(path)))
					quipu_note(notes, QUIPU_NOTE_UNDERSTOOD, path,
						   "%s, by platform %s", *word, (*p)->name);
		}
	}
}

/* Nodes of every tree that describe no hardware. */
static bool formal(const char *name)
{
	static const char *const names[] = {"aliases", "chosen", "__symbols__", "__fixups__",
					    "__local_fixups__"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static unsigned nodes_below(const void *fdt, int node)
{
	unsigned n = 0;
	int depth = 0;

	for (int at = fdt_next_node(fdt, node, &depth); at >= 0 && depth > 0;
	     at = fdt_next_node(fdt, at, &depth))
		n++;
	return n;
}

/* Top-level nodes that neither the machine nor a room had a word for. */
static void note_ignored(const struct model *model, struct quipu_notes *notes)
{
	const void *fdt = model->machine->fdt;
	int node;

	fdt_for_each_subnode(node, fdt, 0)
	{
		const char *name = fdt_get_name(fdt, node, NULL);
		const char *compatible = fdt_stringlist_get(fdt, node, "compatible", 0, NULL);
		unsigned below = nodes_below(fdt, node);
		char path[128];

		snprintf(path, sizeof(path), "/%s", name ? name : "");
		if (!name || formal(name) || spoken_of(notes, path))
			continue;
		if (below)
			quipu_note(notes, QUIPU_NOTE_IGNORED, path,
				   "not used by any platform, with %u node%s below", below,
				   below == 1 ? "" : "s");
		else
			quipu_note(notes, QUIPU_NOTE_IGNORED, path,
				   "not used by any platform%s%s%s", compatible ? " (" : "",
				   compatible ? compatible : "", compatible ? ")" : "");
	}
}

static const char *const kind_name[] = {[QUIPU_NOTE_UNDERSTOOD] = "understood",
					[QUIPU_NOTE_IGNORED] = "ignored",
					[QUIPU_NOTE_WRONG] = "wrong"};

static void check_text(const char *file, const struct quipu_notes *notes, bool made)
{
	static const char *const colour[] = {"\x1b[32m", "\x1b[2m", "\x1b[31m"};
	size_t count[3] = {0};

	printf("%s\n", file);
	for (int kind = QUIPU_NOTE_UNDERSTOOD; kind <= QUIPU_NOTE_WRONG; kind++)
		for (size_t i = 0; i < notes->n; i++) {
			const struct quipu_note *n = &notes->items[i];

			if ((int)n->kind != kind)
				continue;
			count[kind]++;
			printf("  %s%-10s%s  %s%s%s\n", cli_colour() ? colour[kind] : "",
			       kind_name[kind], cli_colour() ? "\x1b[0m" : "", n->path,
			       *n->path ? ": " : "", n->text);
		}
	printf("%s: %zu understood, %zu ignored, %zu wrong%s\n", file, count[0], count[1], count[2],
	       made ? "" : "; no machine can be made of it");
}

static void check_json(const char *file, const struct quipu_notes *notes, bool made)
{
	json_t *a = json_array(), *o;

	for (size_t i = 0; i < notes->n; i++)
		json_array_append_new(
			a, json_pack("{s:s, s:s, s:s}", "kind", kind_name[notes->items[i].kind],
				     "path", notes->items[i].path, "text", notes->items[i].text));
	o = json_pack("{s:s, s:b, s:o}", "file", file, "machine", made, "notes", a);
	json_dumpf(o, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(o);
}

static void note_pmus(const struct model *model, struct quipu_notes *notes)
{
	struct quipu_pmu *const *pmus;
	unsigned hardware = 0;
	size_t n;

	pmus = quipu_core_pmus(model->core, &n);
	for (size_t i = 0; i < n; i++) {
		if (pmus[i]->context == QUIPU_CONTEXT_SOFTWARE)
			continue;
		hardware++;
		quipu_note(notes, QUIPU_NOTE_UNDERSTOOD, "", "PMU \"%s\", type %d", pmus[i]->name,
			   pmus[i]->type);
	}
	if (!hardware)
		quipu_note(notes, QUIPU_NOTE_IGNORED, "",
			   "no PMU that a platform knows: only software events can be counted");
}

static int check(const char *name, bool json)
{
	struct quipu_notes notes = {0};
	struct model model = {0};
	struct quipu_model models;
	char *file = cli_machine_file(name);
	struct quipu_machine *machine = file ? cli_machine_read(file, NULL, &notes) : NULL;
	bool made = machine && !model_open(&model, machine, &notes), wrong = false;

	if (made) {
		quipu_model_read(machine, &models, &notes);
		note_rooms(&model, &notes);
		note_pmus(&model, &notes);
		note_ignored(&model, &notes);
	}
	for (size_t i = 0; i < notes.n; i++)
		wrong |= notes.items[i].kind == QUIPU_NOTE_WRONG;
	if (notes.n && json)
		check_json(file, &notes, made);
	else if (notes.n)
		check_text(file, &notes, made);
	model_close(&model);
	quipu_notes_free(&notes);
	free(file);
	return !made ? 2 : wrong;
}

/* ---- the command ---- */

int cmd_machine(int argc, char **argv)
{
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
					      {"verbose", no_argument, NULL, 'v'},
					      {"machine", required_argument, NULL, 'm'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	bool json = false, verbose = false;
	const char *machine = NULL, *what;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "jvhm:", longs, NULL)) != -1) {
		switch (c) {
		case 'j': json = true; break;
		case 'v': verbose = true; break;
		case 'm': machine = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		default:
			return cli_error("machine: option '%s' is not known, or lacks its value; "
					 "`quipu machine --help`",
					 argv[optind - 1]);
		}
	}
	what = optind < argc ? argv[optind++] : "list";
	if (!machine && optind < argc)
		machine = argv[optind++];
	if (optind < argc)
		return cli_error("machine %s: '%s' is one argument too many", what, argv[optind]);
	if (!strcmp(what, "list"))
		return list_machines(json);
	if (!strcmp(what, "unplug") || !strcmp(what, "plug"))
		return machine ? cmd_machine_plug(machine, !strcmp(what, "plug"))
			       : cli_error("machine %s: which PMU? dmar1, for example", what);
	if (!strcmp(what, "calibrate"))
		return machine ? calibrate(machine)
			       : cli_error("machine calibrate: which file of measured runs?");
	if (strcmp(what, "show") && strcmp(what, "check"))
		return cli_error(
			"machine: '%s' is none of list, show, check, calibrate, unplug, plug",
			what);
	if (!machine)
		return cli_error(
			"machine %s: which one? `quipu machine list` names the shipped ones", what);
	return strcmp(what, "show") ? check(machine, json) : show(machine, verbose, json);
}
