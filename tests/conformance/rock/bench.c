// SPDX-License-Identifier: BSD-2-Clause
/* See bench.h. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include "platform/rock/room.h"

static void on_trace(void *arg, const char *line)
{
	struct bench *b = arg;
	size_t n = strlen(b->trace);

	if (n + strlen(line) + 2 < sizeof(b->trace))
		sprintf(b->trace + n, "%s\n", line);
}

/* The shipped machine, with further properties of the hypervisor's node. */
static struct quipu_machine *load(struct quipu_notes *notes, const char *const *flags)
{
	FILE *f = fopen(getenv("QUIPU_ROCK_DTB"), "rb");
	static uint8_t raw[1 << 16], grown[1 << 17];
	struct quipu_machine *m;
	size_t n;
	int node;

	assert_non_null(f);
	n = fread(raw, 1, sizeof(raw), f);
	fclose(f);
	assert_true(n > 64);
	assert_int_equal(fdt_open_into(raw, grown, sizeof(grown)), 0);
	node = fdt_path_offset(grown, "/hypervisor");
	assert_true(node >= 0);
	for (; flags && *flags; flags++)
		assert_int_equal(fdt_setprop_empty(grown, node, *flags), 0);
	assert_int_equal(fdt_pack(grown), 0);
	m = quipu_machine_parse(grown, fdt_totalsize(grown), "rock", notes);
	assert_non_null(m);
	return m;
}

/* The whole machine, as the command has it. */
void bench_open(struct bench *b)
{
	const struct quipu_system_config config = {
		.paranoid = -1, .trace = on_trace, .trace_arg = b};

	memset(b, 0, sizeof(*b));
	b->machine = load(&b->notes, NULL);
	b->manual = quipu_manual_signals_new(b->machine->ncpus);
	b->system = quipu_system_new(b->machine, quipu_manual_signals_base(b->manual), &config,
				     &b->notes);
	assert_non_null(b->system);
	b->core = quipu_system_core(b->system);
}

static uint64_t records_now(void *arg, unsigned cpu)
{
	(void)cpu;
	return ((struct bench *)arg)->now;
}

static const struct quipu_core_ops records_ops = {.now = records_now};

/* The room alone, whose chips are told each event: what an emulator of one's own would do. */
void bench_open_records(struct bench *b, bool strict)
{
	struct quipu_platform_env env;

	memset(b, 0, sizeof(*b));
	b->machine = load(&b->notes, (const char *const[]){"quipu,records",
							   strict ? "quipu,strict" : NULL, NULL});
	b->manual = quipu_manual_signals_new(b->machine->ncpus);
	b->core = quipu_core_new(&(struct quipu_core_config){.ncpus = b->machine->ncpus,
							     .paranoid = -1},
				 &records_ops, b);
	env = (struct quipu_platform_env){
		.machine = b->machine,
		.core = b->core,
		.signals = quipu_manual_signals_base(b->manual),
		.notes = &b->notes,
		.trace = on_trace,
		.trace_arg = b,
	};
	assert_true(quipu_platform_rock.matches(b->machine));
	assert_int_equal(quipu_platform_rock.create(&env, &b->room), 0);
	b->rock = rock_room_chips(b->room);
}

void bench_close(struct bench *b)
{
	if (b->system) {
		quipu_system_free(b->system);
	} else {
		quipu_core_free(b->core);
		quipu_platform_rock.destroy(b->room);
	}
	quipu_manual_signals_free(b->manual);
	quipu_machine_free(b->machine);
	quipu_notes_free(&b->notes);
}

struct quipu_pmu *pmu(struct bench *b, const char *name)
{
	size_t n;
	struct quipu_pmu *const *p = quipu_core_pmus(b->core, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i]->name, name))
			return p[i];
	return NULL;
}

void run_task(struct bench *b, unsigned i, unsigned cpu)
{
	if (!b->task[i])
		b->task[i] = quipu_task_new(b->core, NULL, (pid_t)(100 + i), (pid_t)(100 + i),
					    false, "t", cpu);
	assert_non_null(b->task[i]);
	if (b->system)
		quipu_system_run(b->system, cpu, b->task[i], 0);
	else
		quipu_sched_in(b->core, cpu, b->task[i]);
}

int open_event(struct bench *b, const char *name, struct quipu_attr a, pid_t pid, int cpu,
	       struct quipu_event *group, struct quipu_event **e)
{
	static const struct quipu_caller root = {
		.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	uint32_t size;

	if (name) {
		assert_non_null(pmu(b, name));
		a.type = (uint32_t)pmu(b, name)->type;
	}
	a.size = sizeof(a);
	return quipu_event_open(b->core, &root, &a, sizeof(a), pid, cpu, group, 0, &size, e);
}

struct quipu_event *must_open(struct bench *b, const char *name, struct quipu_attr a, pid_t pid,
			      int cpu)
{
	struct quipu_event *e = NULL;
	int err = open_event(b, name, a, pid, cpu, NULL, &e);

	if (err)
		fail_msg("open: %d (%s)", err, quipu_core_last_reason(b->core));
	return e;
}

uint64_t value(struct quipu_event *e)
{
	struct quipu_count c;

	quipu_event_count(e, &c);
	return c.value;
}

void feed(struct bench *b, unsigned cpu, quipu_signal s, uint64_t n, uint64_t pc)
{
	quipu_manual_signals_feed(b->manual, cpu, s, n, pc);
}

/* ---- a buffer ---- */

struct ring *map(struct quipu_event *e)
{
	static const struct quipu_caller root = {
		.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	struct ring *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->e = e;
	assert_int_equal(quipu_event_map(e, &root, r->mem, PAGES, true), 0);
	return r;
}

/* The next sample's words, or false. */
bool next_sample(struct ring *r, uint64_t *words, unsigned n)
{
	const struct perf_event_mmap_page *page = (const void *)r->mem;

	while (r->at < page->data_head) {
		const struct perf_event_header *h =
			(const void *)(r->mem + 4096 + r->at % (PAGES * 4096));

		r->at += h->size;
		if (h->type != PERF_RECORD_SAMPLE)
			continue;
		r->misc = h->misc;
		memcpy(words, h + 1, n * 8);
		return true;
	}
	return false;
}
