// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu replay: a DMA trace on a remapping unit of a machine, and what its events counted. The unit
 * is that of the tree, without the tree's devices and with a counter for each event, so that
 * nothing is multiplexed. Format of the trace: src/engine/dma/README.md. A CPU trace is known by
 * its first line and played in replay_cpu.c.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <quipu/bits.h>
#include <quipu/machine.h>

#include "cli/cli.h"
#include "cli/replay.h"
#include "cli/run.h"
#include "engine/dma/trace.h"
#include "engine/replay/cpu.h"
#include "platform/vtd/room.h"

#define COUNTERS 32u

struct replay {
	const char *machine, *file;
	unsigned number; /* of the unit */
	int mode;	 /* enum quipu_vtd_mode, -1: the tree's */
	bool json;
	struct replay_options cpu; /* of a CPU trace */
	struct vtd_unit_node *node;
	struct quipu_vtd_memory *memory;
	struct quipu_vtd *unit;
	struct dma_replay *player;
};

static const char usage[] =
	"usage: quipu replay [-m MACHINE] [-u N] [--json] FILE|-\n"
	"       quipu replay [-m MACHINE] [-e EVENTS] [-c N] [--timing base|full] [--json] FILE|-\n\n"
	"Put a DMA trace (first line \"# quipu-dma 1\", or binary) on a remapping unit and print "
	"what it counted,\n"
	"or run a CPU trace (first line \"# quipu-cpu 1\") on a machine.\n\n"
	"  -m, --machine MACHINE  a name or a file: a machine with remapping units (vtd), or one whose\n"
	"                         instructions the CPU trace has (riscv)\n"
	"  -e, --event EVENTS     what to count of a CPU trace, in perf's grammar\n"
	"  -c, --count N          print where each N-th occurrence was\n"
	"      --timing base|full whether misses and mispredictions cost cycles\n"
	"  -u, --unit N           its unit dmarN (0)\n"
	"      --mode MODE        legacy or scalable, rather than the mode of the unit's tree\n"
	"      --json             the counts as JSON\n";

static void *unit_page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(((struct replay *)arg)->memory, addr, write);
}

static const struct quipu_vtd_ops unit_ops = {.page = unit_page};

/* 32 counters, all alike, in a window with room for them. */
static void more_counters(struct quipu_vtd_config *c)
{
	c->perfcap = (c->perfcap & ~UINT64_C(0xffff)) | COUNTERS;
	memset(c->perfcntrcap, 0, sizeof(c->perfcntrcap));
	c->perfcfgoff = 0x1000;
	c->perffrzoff = 0x3f00;
	c->perfovfoff = 0x3f40;
	c->perfcntroff = 0x20000;
	c->window = 0x20000 + COUNTERS * (1024u << bits_get(c->perfcap, 54, 52));
	c->window = (c->window + 0xfff) & ~0xfffu;
}

static int find_unit(struct replay *r, const struct quipu_machine *m, struct quipu_notes *notes)
{
	unsigned index = 0;

	for (int node = vtd_tree_next(m, -1); node >= 0; node = vtd_tree_next(m, node)) {
		int err = vtd_tree_unit(m, node, index++, notes, r->node);

		if (err)
			return cli_error("%s: its remapping units are not right; `quipu machine "
					 "check` says where",
					 r->machine);
		if (r->node->number == r->number)
			return 0;
	}
	return cli_error(index ? "%s has no unit dmar%u; `quipu machine show` lists them"
			       : "%s has no remapping units; -m vtd has",
			 r->machine, r->number);
}

static int open_unit(struct replay *r)
{
	struct quipu_machine *m = cli_machine_load(r->machine, false);
	struct quipu_notes notes = {0};
	const char *why = NULL;
	int status = 2;

	if (!m)
		return 2;
	r->node = calloc(1, sizeof(*r->node));
	if (r->node)
		status = find_unit(r, m, &notes);
	quipu_notes_free(&notes);
	quipu_machine_free(m);
	if (status)
		return status;
	if (r->mode >= 0)
		r->node->mode = (enum quipu_vtd_mode)r->mode;
	more_counters(&r->node->config);
	r->memory = quipu_vtd_memory_new(UINT64_C(1) << 46, UINT64_C(0x200000000000));
	r->unit = r->memory ? quipu_vtd_new(&r->node->config, &unit_ops, r, &why) : NULL;
	r->player = r->unit ? dma_replay_new(r->unit, r->memory, r->node->mode) : NULL;
	if (!r->player)
		return cli_error("dmar%u of %s: %s", r->number, r->machine,
				 why ? why : "out of memory");
	return 0;
}

/* Counter i counts the i-th event that the unit has. */
static bool has_event(const struct replay *r, const struct vtd_event_name *e)
{
	return r->node->config.perfevntcap[e->group] & e->mask;
}

static int start_counters(struct replay *r)
{
	unsigned c = 0;

	for (size_t i = 0; i < vtd_event_names_n; i++) {
		const struct vtd_event_name *e = &vtd_event_names[i];

		if (!has_event(r, e))
			continue;
		quipu_vtd_write(r->unit, 0x1000 + 0x100 * c, 8,
				(uint64_t)e->mask << 32 | e->group << 8);
		quipu_vtd_write(r->unit, 0x400, 8, 0xf0 | (uint64_t)c << 16);
		if (quipu_vtd_read(r->unit, 0x410, 8))
			return cli_error("dmar%u cannot count %s", r->number, e->name);
		c++;
	}
	return 0;
}

static uint64_t counter(struct replay *r, unsigned c)
{
	return quipu_vtd_read(
		r->unit, 0x20000 + c * (1024u << bits_get(r->node->config.perfcap, 54, 52)), 8);
}

/* ---- the trace ---- */

static int play(struct replay *r, const struct dma_record *record, uint64_t where, const char *what)
{
	const char *why = NULL;
	int err = dma_replay_record(r->player, record, &why);

	if (!err)
		return 0;
	cli_error("%s: %s %" PRIu64 ": %s", r->file, what, where,
		  err == -ENOMEM || !why ? strerror(-err) : why);
	return 1;
}

static int play_text(struct replay *r, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	uint64_t number = 1; /* the first is read already */
	int status = 0;

	while (!status && (n = getline(&line, &room, f)) >= 0) {
		struct dma_record record;
		const char *why;
		int kind;

		number++;
		n -= n && line[n - 1] == '\n';
		kind = dma_trace_line(line, (size_t)n, &record, &why);
		if (kind < 0) {
			cli_error("%s: line %" PRIu64 ": not a record: %s", r->file, number, why);
			status = 1;
		} else if (kind) {
			status = play(r, &record, number, "line");
		}
	}
	free(line);
	return status;
}

static int play_binary(struct replay *r, FILE *f)
{
	uint8_t bytes[DMA_BINARY_RECORD];
	uint64_t number = 0;
	size_t n;

	while ((n = fread(bytes, 1, sizeof(bytes), f)) == sizeof(bytes)) {
		struct dma_record record;
		const char *why;
		int status;

		number++;
		if (dma_trace_record(bytes, &record, &why)) {
			cli_error("%s: record %" PRIu64 ": %s", r->file, number, why);
			return 1;
		}
		status = play(r, &record, number, "record");
		if (status)
			return status;
	}
	if (!n)
		return 0;
	cli_error("%s: ends inside record %" PRIu64, r->file, number + 1);
	return 1;
}

/* What a trace begins with. */
struct head {
	uint8_t bytes[64];
	size_t n;
};

/* The magic of a binary trace, or the first line: the rest of a longer one does not matter. */
static void read_head(struct head *h, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t rest;

	h->n = fread(h->bytes, 1, 4, f);
	if (h->n == 4 && !memcmp(h->bytes, "QDMA", 4)) {
		h->n += fread(h->bytes + 4, 1, DMA_BINARY_HEADER - 4, f);
		return;
	}
	rest = getline(&line, &room, f);
	if (rest > (ssize_t)(sizeof(h->bytes) - h->n))
		rest = (ssize_t)(sizeof(h->bytes) - h->n);
	if (rest > 0) {
		memcpy(h->bytes + h->n, line, (size_t)rest);
		h->n += (size_t)rest;
	}
	free(line);
}

static bool head_is_binary(const struct head *h)
{
	return h->n >= 4 && !memcmp(h->bytes, "QDMA", 4);
}

static int check_head(const struct replay *r, const struct head *h)
{
	if (head_is_binary(h)) {
		if (dma_trace_is_binary(h->bytes, h->n))
			return 0;
		cli_error("%s: a binary DMA trace of another version than 1", r->file);
		return 1;
	}
	if (dma_trace_is_text((const char *)h->bytes, h->n))
		return 0;
	cli_error("%s: no trace: it begins neither with \"# quipu-cpu 1\" nor with "
		  "\"# quipu-dma 1\" nor with QDMA",
		  r->file);
	return 1;
}

static int play_file(struct replay *r, const struct head *h, FILE *f)
{
	int status = head_is_binary(h) ? play_binary(r, f) : play_text(r, f);

	if (!status && ferror(f)) {
		cli_error("%s: %s", r->file, strerror(errno));
		return 1;
	}
	return status;
}

/* ---- what it counted ---- */

static void print_table(struct replay *r, const struct dma_replay_totals *t)
{
	unsigned c = 0;

	printf("Trace %s on dmar%u of %s (%s mode)\n\n", r->file, r->number, r->machine,
	       r->node->mode == QUIPU_VTD_LEGACY ? "legacy" : "scalable");
	for (size_t i = 0; i < vtd_event_names_n; i++)
		if (has_event(r, &vtd_event_names[i]))
			printf("%18" PRIu64 "      %-28s modelled\n", counter(r, c++),
			       vtd_event_names[i].name);
	printf("\n%18" PRIu64 "      records over %" PRIu64 ".%09" PRIu64 " seconds of the trace\n",
	       t->records, t->end / 1000000000, t->end % 1000000000);
	printf("%18" PRIu64 "      requests, of which %" PRIu64 " met a fault\n", t->requests,
	       t->faults);
}

static void print_json(struct replay *r, const struct dma_replay_totals *t)
{
	json_t *events = json_object(), *all;
	unsigned c = 0;

	for (size_t i = 0; i < vtd_event_names_n; i++)
		if (has_event(r, &vtd_event_names[i]))
			json_object_set_new(events, vtd_event_names[i].name,
					    json_integer((json_int_t)counter(r, c++)));
	all = json_pack("{s:s, s:s, s:i, s:o, s:s, s:I, s:I, s:I, s:I}", "trace", r->file,
			"machine", r->machine, "unit", (int)r->number, "events", events,
			"exactness", "modelled", "records", (json_int_t)t->records, "requests",
			(json_int_t)t->requests, "faults", (json_int_t)t->faults, "end_ns",
			(json_int_t)t->end);
	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

static int replay_dma(struct replay *r, const struct head *h, FILE *f)
{
	struct dma_replay_totals totals;
	int status;

	if (!r->machine)
		r->machine = "vtd";
	status = check_head(r, h);
	if (!status)
		status = open_unit(r);
	if (!status)
		status = start_counters(r);
	if (!status)
		status = play_file(r, h, f);
	if (status)
		return status;
	dma_replay_totals(r->player, &totals);
	if (r->json)
		print_json(r, &totals);
	else
		print_table(r, &totals);
	return 0;
}

static int run(struct replay *r)
{
	FILE *f = strcmp(r->file, "-") ? fopen(r->file, "rb") : stdin;
	struct head head;
	int status;

	if (!f)
		return cli_error("%s: %s", r->file, strerror(errno));
	read_head(&head, f);
	if (cpu_trace_is((const char *)head.bytes, head.n)) {
		r->cpu.machine = r->machine;
		r->cpu.file = r->file;
		r->cpu.json = r->json;
		status = replay_cpu(&r->cpu, f);
	} else {
		status = replay_dma(r, &head, f);
	}
	if (f != stdin)
		fclose(f);
	return status;
}

/* 0 to go on, 1 when all is said and done well, 2 when it is refused. */
static int options(struct replay *r, int argc, char **argv)
{
	static const struct option longs[] = {
		{"machine", required_argument, NULL, 'm'},
		{"unit", required_argument, NULL, 'u'},
		{"mode", required_argument, NULL, 'M'},
		{"json", no_argument, NULL, 'j'},
		{"event", required_argument, NULL, 'e'},
		{"count", required_argument, NULL, 'c'},
		{"timing", required_argument, NULL, 'T'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "m:u:e:c:jh", longs, NULL)) != -1) {
		char *end;

		switch (c) {
		case 'm': r->machine = optarg; break;
		case 'u':
			r->number = (unsigned)strtoul(optarg, &end, 10);
			if (*end || end == optarg)
				return cli_error("--unit needs a number, not \"%s\"", optarg);
			break;
		case 'M':
			if (strcmp(optarg, "legacy") && strcmp(optarg, "scalable"))
				return cli_error("--mode is legacy or scalable, not \"%s\"",
						 optarg);
			r->mode = strcmp(optarg, "legacy") ? QUIPU_VTD_SCALABLE : QUIPU_VTD_LEGACY;
			break;
		case 'j': r->json = true; break;
		case 'e': r->cpu.events = optarg; break;
		case 'c':
			r->cpu.period = strtoull(optarg, &end, 10);
			if (*end || end == optarg || !r->cpu.period)
				return cli_error("-c needs a number above 0, not \"%s\"", optarg);
			break;
		case 'T':
			if (strcmp(optarg, "full") && strcmp(optarg, "base"))
				return cli_error("--timing is base or full, not \"%s\"", optarg);
			r->cpu.timing = *optarg == 'f' ? RUN_TIMING_FULL : RUN_TIMING_BASE;
			break;
		case 'h': fputs(usage, stdout); return 1;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (argc - optind != 1)
		return cli_error(
			"replay needs one trace, or - for standard input; `quipu replay --help`");
	r->file = argv[optind];
	return 0;
}

int cmd_replay(int argc, char **argv)
{
	struct replay r = {.mode = -1};
	int status = options(&r, argc, argv);

	if (status)
		return status == 1 ? 0 : status;
	status = run(&r);
	dma_replay_free(r.player);
	quipu_vtd_free(r.unit);
	quipu_vtd_memory_free(r.memory);
	free(r.node);
	return status;
}
