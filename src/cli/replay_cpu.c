// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu replay of a CPU trace: the machine with the trace for an engine, events opened on it as
 * stat opens them, and what they counted. Format: src/engine/replay/README.md.
 *
 * Each CPU of the trace runs one thread of one task. With -c the places of samples are printed, one
 * a line, before the table.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/cli.h"
#include "cli/events.h"
#include "cli/replay.h"
#include "engine/replay/cpu.h"

#define DEFAULT_EVENTS "instructions,cycles,branches,branch-misses"
#define RING_PAGES     16u

struct counted {
	struct quipu_event *event;
	enum quipu_exactness exactness;
	uint64_t *ring; /* -c: 1 + RING_PAGES pages */
};

struct player {
	const struct replay_options *options;
	struct quipu_machine *machine;
	struct cpu_replay *replay;
	struct run run; /* system, core and caller of it */
	struct quipu_catalog *catalog;
	struct quipu_event_list list;
	struct counted *counted;
	struct quipu_task **tasks; /* of each CPU, NULL until the trace comes to it */
};

static int make_machine(struct player *p)
{
	const char *name = p->options->machine ? p->options->machine : "riscv";
	struct quipu_system_config config = {.paranoid = -1};
	struct quipu_notes notes = {0};

	p->machine = cli_machine_load(name, false);
	if (!p->machine)
		return 2;
	if (p->options->timing != RUN_TIMING_TREE)
		p->machine->timing_full = p->options->timing == RUN_TIMING_FULL;
	p->replay = cpu_replay_new(p->machine);
	if (!p->replay)
		return cli_error("machine %s has no CPU that a trace could run on", name);
	p->run.machine = p->machine;
	p->run.system =
		quipu_system_new(p->machine, cpu_replay_signals(p->replay), &config, &notes);
	quipu_notes_free(&notes);
	if (!p->run.system)
		return cli_error("machine %s cannot be made; `quipu machine check` says why", name);
	p->run.core = quipu_system_core(p->run.system);
	p->run.caller = (struct quipu_caller){.pid = getpid(),
					      .tid = getpid(),
					      .uid = getuid(),
					      .perfmon = true,
					      .ipc_lock = true};
	p->tasks = calloc(p->machine->ncpus, sizeof(struct quipu_task *));
	return p->tasks ? 0 : cli_error("out of memory");
}

/* The thread of the CPU that the trace has come to. */
static int begin_cpu(struct player *p)
{
	unsigned cpu = cpu_replay_cpu(p->replay);
	struct quipu_task *first = p->tasks[0];
	pid_t pid = getpid();

	if (p->tasks[cpu])
		return 0;
	if (!quipu_system_place_at(p->run.system, cpu))
		return cli_error("CPU %u is taken", cpu);
	p->tasks[cpu] = quipu_task_new(p->run.core, first, pid, pid + (pid_t)cpu, first != NULL,
				       "trace", cpu);
	if (!p->tasks[cpu])
		return cli_error("out of memory");
	quipu_system_run(p->run.system, cpu, p->tasks[cpu], 0);
	return 0;
}

static int open_event(struct player *p, size_t i)
{
	struct quipu_parsed *e = &p->list.items[i];
	struct counted *c = &p->counted[i];
	struct quipu_attr attr = e->attr;
	bool filtered = false;
	struct quipu_pmu *pmu;
	quipu_signal signal;
	int err;

	if (!e->uncore)
		attr.flags |= QUIPU_ATTR_INHERIT;
	if (p->options->period) {
		attr.flags &= ~(QUIPU_ATTR_INHERIT | QUIPU_ATTR_FREQ);
		attr.sample_period = p->options->period;
		attr.sample_type = PERF_SAMPLE_IP;
	}
	err = events_open(&p->run, e, &attr, e->uncore ? -1 : getpid(), e->uncore ? 0 : -1, NULL,
			  &c->event);
	if (err)
		return cli_error("%s: %s", e->name, events_refusal(&p->run, err));
	pmu = quipu_event_pmu(c->event);
	signal = pmu->signal ? pmu->signal(c->event, &filtered) : QUIPU_SIGNAL_NONE;
	c->exactness = pmu->exactness ? pmu->exactness(c->event) : QUIPU_MODELLED;
	if (signal != QUIPU_SIGNAL_NONE && !filtered)
		c->exactness = quipu_signal_exactness(signal);
	if (!p->options->period)
		return 0;
	c->ring = aligned_alloc(4096, (1 + RING_PAGES) * 4096);
	if (!c->ring)
		return cli_error("out of memory");
	err = quipu_event_map(c->event, &p->run.caller, c->ring, RING_PAGES, true);
	return err ? cli_error("%s: no buffer for its samples: %s", e->name, strerror(-err)) : 0;
}

static int open_events(struct player *p)
{
	const char *text = p->options->events ? p->options->events : DEFAULT_EVENTS;
	int status;

	p->catalog = events_catalog(p->run.core, &text, 1);
	status = p->catalog ? events_parse(p->catalog, text, &p->list) : 2;

	p->counted = status ? NULL : calloc(p->list.n, sizeof(*p->counted));
	if (!status && !p->counted)
		status = cli_error("out of memory");
	for (size_t i = 0; i < p->list.n && !status; i++)
		status = open_event(p, i);
	return status;
}

/* ---- samples ---- */

static void print_sample(const struct player *p, size_t i, const uint64_t *record)
{
	const struct perf_event_header *h = (const struct perf_event_header *)record;

	if (h->type == PERF_RECORD_SAMPLE)
		printf("%18" PRIx64 "      %s\n", record[1], p->list.items[i].name);
}

/* Records are multiples of eight bytes; one that would wrap is put together. */
static void drain(const struct player *p, size_t i)
{
	struct perf_event_mmap_page *page = (void *)p->counted[i].ring;
	const uint8_t *data = (const uint8_t *)p->counted[i].ring + 4096;
	uint64_t size = UINT64_C(4096) * RING_PAGES, head = page->data_head;

	while (page->data_tail < head) {
		uint64_t record[64] = {0};
		struct perf_event_header h;
		uint64_t at = page->data_tail;

		memcpy(&h, data + at % size, sizeof(h));
		if (h.size < sizeof(h))
			break;
		for (unsigned b = 0; b < h.size && b < sizeof(record); b++)
			((uint8_t *)record)[b] = data[(at + b) % size];
		print_sample(p, i, record);
		page->data_tail = at + h.size;
	}
}

static void drain_all(const struct player *p)
{
	for (size_t i = 0; p->options->period && i < p->list.n; i++)
		drain(p, i);
}

/* ---- the trace ---- */

static int play(struct player *p, FILE *f)
{
	const char *file = p->options->file, *why = NULL;
	uint64_t number = 1; /* the first is read already */
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int status = 0;

	while (!status && (n = getline(&line, &room, f)) >= 0) {
		struct cpu_record record;
		unsigned cpu;
		int err;

		number++;
		n -= n && line[n - 1] == '\n';
		err = cpu_trace_line(line, (size_t)n, &record, &why);
		if (!err)
			err = cpu_replay_record(p->replay, &record, &why);
		if (err) {
			cli_error("%s: line %" PRIu64 ": %s", file, number,
				  why ? why : strerror(-err));
			status = 1;
			break;
		}
		cpu = cpu_replay_cpu(p->replay);
		if (record.kind == CPU_ON)
			status = begin_cpu(p);
		if (quipu_system_now(p->run.system, cpu) >=
		    quipu_system_next_timer(p->run.system, cpu))
			quipu_system_timer(p->run.system, cpu);
		drain_all(p);
	}
	if (!status && ferror(f)) {
		cli_error("%s: %s", file, strerror(errno));
		status = 1;
	}
	free(line);
	return status;
}

/* ---- what it counted ---- */

static void print_table(const struct player *p)
{
	printf("Trace %s on %s\n\n", p->options->file, p->machine->name);
	for (size_t i = 0; i < p->list.n; i++) {
		struct quipu_count count;

		quipu_event_count(p->counted[i].event, &count);
		printf("%18" PRIu64 "      %-28s %s\n", count.value, p->list.items[i].name,
		       count.running < count.enabled
			       ? "partial"
			       : quipu_exactness_name(p->counted[i].exactness));
	}
	printf("\n%18" PRIu64 "      instructions in the trace, %.9f seconds of the machine\n",
	       cpu_replay_records(p->replay), (double)quipu_system_time(p->run.system) / 1e9);
}

static void print_json(const struct player *p)
{
	json_t *events = json_array(), *all;

	for (size_t i = 0; i < p->list.n; i++) {
		struct quipu_count count;

		quipu_event_count(p->counted[i].event, &count);
		json_array_append_new(
			events, json_pack("{s:s, s:I, s:s}", "event", p->list.items[i].name,
					  "value", (json_int_t)count.value, "exactness",
					  count.running < count.enabled
						  ? "partial"
						  : quipu_exactness_name(p->counted[i].exactness)));
	}
	all = json_pack("{s:s, s:s, s:o, s:I, s:I}", "trace", p->options->file, "machine",
			p->machine->name, "events", events, "records",
			(json_int_t)cpu_replay_records(p->replay), "time_ns",
			(json_int_t)quipu_system_time(p->run.system));
	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

static void finish(struct player *p)
{
	for (size_t i = 0; p->counted && i < p->list.n; i++) {
		if (p->counted[i].ring && p->counted[i].event)
			quipu_event_unmap(p->counted[i].event);
		if (p->counted[i].event)
			quipu_event_close(p->counted[i].event);
		free(p->counted[i].ring);
	}
	free(p->counted);
	quipu_event_list_free(&p->list);
	quipu_catalog_free(p->catalog);
	quipu_system_free(p->run.system);
	cpu_replay_free(p->replay);
	quipu_machine_free(p->machine);
	free(p->tasks);
}

int replay_cpu(const struct replay_options *o, FILE *f)
{
	struct player p = {.options = o};
	int status = make_machine(&p);

	if (!status)
		status = begin_cpu(&p);
	if (!status)
		status = open_events(&p);
	if (!status)
		status = play(&p, f);
	if (!status && o->json)
		print_json(&p);
	else if (!status)
		print_table(&p);
	finish(&p);
	return status;
}
