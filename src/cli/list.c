// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu list: the events of a machine, as perf list would name them, each with what its number is
 * worth. An event that the machine cannot count is shown all the same, with the reason.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/cli.h"
#include "cli/host.h"
#include "cli/list_host.h"

#define DEFAULT_MACHINE "riscv"
#define COLUMN_MIN	20
#define COLUMN_MAX	46
#define LABEL_COLUMN	13

struct options {
	const char *machine;
	const char *sysfs; /* of -m host: a recorded /sys */
	char **words;
	int nwords;
	bool verbose, json;
	int column; /* width of the names */
};

static const char usage[] =
	"usage: quipu list [-m MACHINE] [-v] [--json] [WORD...]\n\n"
	"The events of a machine and what each number is: exact (architectural), modelled (from a\n"
	"declared model), or why it cannot be counted.\n\n"
	"  WORD           only events whose name or description holds the word, or match a "
	"pattern\n"
	"                 (*, ?); hw, sw, cache, pmu and raw stand for a whole kind\n"
	"  -m MACHINE     a shipped machine, a device tree file (default: riscv), or host: what this\n"
	"                 host's own kernel counts; its tracepoints with a word such as sched:*\n"
	"  --sysfs DIR    of a recorded /sys instead of this host's\n"
	"  -v             encodings, signals, units\n"
	"  --json         a list of objects\n";

static const char *const heading[EVENT_KINDS] = {
	[EVENT_HARDWARE] = "Hardware events",	 [EVENT_SOFTWARE] = "Software events",
	[EVENT_CACHE] = "Hardware cache events", [EVENT_PMU] = "PMU events",
	[EVENT_RAW] = "Raw descriptors",
};

static bool word_matches(const struct model_event *e, const char *word)
{
	static const char *const kind[EVENT_KINDS][2] = {
		{"hw", "hardware"}, {"sw", "software"}, {"cache", "hwcache"},
		{"pmu", "kernel"},  {"raw", "rNNN"},
	};

	if (!strcasecmp(word, kind[e->kind][0]) || !strcasecmp(word, kind[e->kind][1]))
		return true;
	if (strpbrk(word, "*?["))
		return !fnmatch(word, e->name, FNM_CASEFOLD) ||
		       (e->alias && !fnmatch(word, e->alias, FNM_CASEFOLD));
	return strcasestr(e->name, word) || (e->alias && strcasestr(e->alias, word)) ||
	       (e->desc && strcasestr(e->desc, word));
}

static bool wanted(const struct model_event *e, const struct options *o)
{
	for (int i = 0; i < o->nwords; i++)
		if (word_matches(e, o->words[i]))
			return true;
	return !o->nwords;
}

static const char *colour_of(const struct model_event *e)
{
	if (!cli_colour() || e->kind == EVENT_RAW)
		return "";
	if (e->unavailable)
		return "\x1b[2m";
	return e->exactness == QUIPU_EXACT ? "\x1b[32m" : "\x1b[33m";
}

static const char *full_name(const struct model_event *e, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s%s", e->name, e->alias ? " OR " : "", e->alias ? e->alias : "");
	return buf;
}

static void print_details(const struct model_event *e, int column)
{
	char buf[64];

	if (e->kind == EVENT_RAW)
		return;
	printf("  %*s", column + LABEL_COLUMN + 2, "");
	if (e->terms)
		printf("%s", e->terms);
	else
		printf("type %u, config 0x%llx", e->type, (unsigned long long)e->config);
	if (e->has_signal)
		printf(", signal %s", quipu_signal_name(e->signal, buf, sizeof(buf)));
	if (e->scale)
		printf(", scale %s", e->scale);
	if (e->unit)
		printf(", unit %s", e->unit);
	putchar('\n');
}

static void print_event(const struct model_event *e, const struct options *o)
{
	const char *colour = colour_of(e), *text = e->unavailable ? e->unavailable : e->desc;
	char name[256];

	printf("  %-*s %s%-*s%s", o->column, full_name(e, name, sizeof(name)), colour,
	       text ? LABEL_COLUMN : 0, model_event_label(e), *colour ? "\x1b[0m" : "");
	printf("%s%s\n", text ? " " : "", text ? text : "");
	if (o->verbose)
		print_details(e, o->column);
}

static int name_column(const struct model_events *list, const struct options *o)
{
	int widest = COLUMN_MIN;

	for (size_t i = 0; i < list->n; i++) {
		char name[256];
		int n = (int)strlen(full_name(&list->items[i], name, sizeof(name)));

		if (n > widest && wanted(&list->items[i], o))
			widest = n;
	}
	return widest < COLUMN_MAX ? widest : COLUMN_MAX;
}

/* @heading_of_all: the first line. */
static int print_table(const char *heading_of_all, const struct model_events *list,
		       const struct options *o)
{
	int last = -1;
	size_t shown = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct model_event *e = &list->items[i];

		if (!wanted(e, o))
			continue;
		if (!shown++)
			puts(heading_of_all);
		if (last != (int)e->kind)
			printf("\n%s\n", heading[e->kind]);
		last = (int)e->kind;
		print_event(e, o);
	}
	if (!shown)
		return cli_error("machine %s has no event like '%s'; `quipu list -m %s` shows all",
				 o->machine, o->words[0], o->machine);
	return 0;
}

static json_t *json_event(const struct model_event *e)
{
	json_t *j =
		json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*}", "name",
			  e->name, "kind", model_event_kind(e->kind), "class", model_event_label(e),
			  "alias", e->alias, "pmu", e->pmu ? e->pmu->name : NULL, "description",
			  e->desc, "terms", e->terms, "unit", e->unit, "scale", e->scale, "reason",
			  e->unavailable);
	char buf[64];

	if (j && e->has_signal)
		json_object_set_new(j, "signal",
				    json_string(quipu_signal_name(e->signal, buf, sizeof(buf))));
	if (j && e->kind != EVENT_PMU && e->kind != EVENT_RAW) {
		json_object_set_new(j, "type", json_integer(e->type));
		json_object_set_new(j, "config", json_integer((json_int_t)e->config));
	}
	return j;
}

static int print_json(const struct model_events *list, const struct options *o)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		if (wanted(&list->items[i], o))
			json_array_append_new(array, json_event(&list->items[i]));
	json_dumpf(array, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(array);
	return 0;
}

/* A number of a hypervisor that is only declared must not be taken for a measurement. */
static void tell_of_hypervisor(const struct quipu_machine *m)
{
	int node = quipu_machine_find(m, "quipu,hypervisor");
	const uint32_t *cells;

	if (node < 0 || quipu_machine_cells(m, node, "quipu,synthetic", &cells) < 0)
		return;
	puts("\nIn hypervisor state (:h) instructions and cycles count, and events that a charge declares "
	     "besides (quipu,extra-events);\nall others count 0 there. Hypervisor activity is declared by the "
	     "machine description; no hypervisor code was executed.");
}

static int list(struct options *o)
{
	struct quipu_machine *machine = cli_machine_load(o->machine, false);
	struct quipu_notes notes = {0};
	struct model_events events;
	struct model model;
	int status = 2;

	if (!machine)
		return 2;
	if (model_open(&model, machine, &notes)) {
		cli_notes_print(o->machine, &notes, false);
	} else if (model_events(&model, &events)) {
		cli_error("out of memory");
	} else {
		const struct quipu_machine *m = model.machine;
		char text[256];

		snprintf(text, sizeof(text), "Events of machine %s (%u CPUs, %s)", m->name,
			 m->ncpus, quipu_isa_name(m->isa));
		o->column = name_column(&events, o);
		status = o->json ? print_json(&events, o) : print_table(text, &events, o);
		model_events_free(&events);
		if (!status && !o->json)
			tell_of_hypervisor(m);
	}
	model_close(&model);
	quipu_notes_free(&notes);
	return status;
}

static int list_host(struct options *o)
{
	const struct run_options run = {.sysfs = o->sysfs};
	struct model_events events;
	struct host host;
	char text[4200];
	int status = host_start(&host, &run);

	if (!status && list_host_events(&host, o->words, o->nwords, &events))
		status = cli_error("out of memory");
	if (!status) {
		if (o->sysfs)
			snprintf(text, sizeof(text), "Events of the PMUs recorded in %.4000s",
				 o->sysfs);
		else
			snprintf(text, sizeof(text), "Events of %s (%zu CPUs)",
				 host_exactness(PERF_TYPE_HARDWARE) == QUIPU_HOST
					 ? "this host"
					 : "the machine of quipu exec",
				 host.ncpus);
		o->column = name_column(&events, o);
		status = o->json ? print_json(&events, o) : print_table(text, &events, o);
		model_events_free(&events);
	}
	host_free(&host);
	return status;
}

int cmd_list(int argc, char **argv)
{
	static const struct option longs[] = {
		{"machine", required_argument, NULL, 'm'}, {"verbose", no_argument, NULL, 'v'},
		{"json", no_argument, NULL, 'j'},	   {"sysfs", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},	   {0},
	};
	struct options o = {0};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "m:vjh", longs, NULL)) != -1) {
		switch (c) {
		case 'm': o.machine = optarg; break;
		case 'v': o.verbose = true; break;
		case 'j': o.json = true; break;
		case 's': o.sysfs = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		default:
			return cli_error("list: option '%s' is not known, or lacks its value; "
					 "`quipu list --help`",
					 argv[optind - 1]);
		}
	}
	o.words = argv + optind;
	o.nwords = argc - optind;
	if (!o.machine)
		o.machine = o.sysfs ? "host" : DEFAULT_MACHINE;
	if (!strcmp(o.machine, "host"))
		return list_host(&o);
	if (o.sysfs)
		return cli_error("--sysfs is for the host's own PMUs: use -m host");
	return list(&o);
}
