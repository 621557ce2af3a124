// SPDX-License-Identifier: BSD-2-Clause
/*
 * A machine to look at (model.h). Whether a generic event exists is asked the way a client asks: it
 * is opened, and a refusal is quoted. Software events are the core's: what it can know of a guest
 * is said here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quipu/grammar.h>

#include "cli/model.h"
#include "engine/session.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What a software event is on a machine whose kernel is the core: by PERF_COUNT_SW_*. */
static const struct {
	const char *desc;
	const char *unavailable;
} software[] = {
	[PERF_COUNT_SW_CPU_CLOCK] = {"model time of the CPU, in ns", NULL},
	[PERF_COUNT_SW_TASK_CLOCK] = {"model time that the task ran, in ns", NULL},
	[PERF_COUNT_SW_PAGE_FAULTS] = {NULL, "the machine has no pages"},
	[PERF_COUNT_SW_CONTEXT_SWITCHES] = {"of the model's scheduler", NULL},
	[PERF_COUNT_SW_CPU_MIGRATIONS] = {"of the model's scheduler", NULL},
	[PERF_COUNT_SW_PAGE_FAULTS_MIN] = {NULL, "the machine has no pages"},
	[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = {NULL, "the machine has no pages"},
	[PERF_COUNT_SW_ALIGNMENT_FAULTS] = {NULL, "no access traps for its alignment"},
	[PERF_COUNT_SW_EMULATION_FAULTS] = {NULL, "no instruction is emulated by a kernel"},
	[PERF_COUNT_SW_DUMMY] = {"counts nothing; carries side-band records", NULL},
	[PERF_COUNT_SW_BPF_OUTPUT] = {NULL, "the machine runs no BPF programs"},
	[PERF_COUNT_SW_CGROUP_SWITCHES] = {NULL, "the machine has no cgroups"},
};

/* What a hardware event counts, in words: by PERF_COUNT_HW_*. */
static const char *const hardware[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = "the cost of every instruction, added up",
	[PERF_COUNT_HW_INSTRUCTIONS] = "instructions retired",
	[PERF_COUNT_HW_CACHE_REFERENCES] =
		"cache accesses; of which cache, the machine's PMU decides",
	[PERF_COUNT_HW_CACHE_MISSES] = "cache misses; of which cache, the machine's PMU decides",
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches, jumps, calls and returns retired",
	[PERF_COUNT_HW_BRANCH_MISSES] = "mispredicted branches",
	[PERF_COUNT_HW_BUS_CYCLES] = "cycles of the bus clock",
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = "cycles in which nothing was issued",
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = "cycles in which nothing retired",
	[PERF_COUNT_HW_REF_CPU_CYCLES] = "cycles of the reference clock, while the CPU runs",
};

int model_open(struct model *model, struct quipu_machine *machine, struct quipu_notes *notes)
{
	struct quipu_system_config config = {.paranoid = -1};

	*model = (struct model){.machine = machine,
				.signals = quipu_manual_signals_new(machine->ncpus)};
	if (!model->signals) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "", "out of memory");
		model_close(model);
		return -ENOMEM;
	}
	for (quipu_signal s = 1; s < QUIPU_NAMED_SIGNALS; s++)
		quipu_manual_signals_set_has(model->signals, s, session_counts(model->machine, s));
	model->system = quipu_system_new(machine, quipu_manual_signals_base(model->signals),
					 &config, notes);
	if (!model->system) {
		model_close(model);
		return -EINVAL;
	}
	model->core = quipu_system_core(model->system);
	return 0;
}

void model_close(struct model *model)
{
	quipu_system_free(model->system);
	quipu_manual_signals_free(model->signals);
	quipu_machine_free(model->machine);
	*model = (struct model){0};
}

static struct model_event *append(struct model_events *list, enum event_kind kind)
{
	struct model_event *p = reallocarray(list->items, list->n + 1, sizeof(*p));

	if (!p)
		return NULL;
	list->items = p;
	p += list->n++;
	*p = (struct model_event){.kind = kind, .exactness = QUIPU_MODELLED};
	return p;
}

/* Open it on CPU 0, as `perf stat -a` would, to learn what it counts or why it cannot be had. */
static int probe(const struct model *model, struct model_event *e)
{
	const struct quipu_caller caller = {
		.pid = getpid(), .tid = getpid(), .perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.type = e->type,
				  .size = sizeof(attr),
				  .config = e->config,
				  .flags = QUIPU_ATTR_DISABLED};
	struct quipu_event *event = NULL;
	struct quipu_pmu *pmu;
	uint32_t size = 0;
	int err = quipu_event_open(model->core, &caller, &attr, sizeof(attr), -1, 0, NULL, 0, &size,
				   &event);

	if (err) {
		const char *why = quipu_core_last_reason(model->core);

		e->unavailable = strdup(*why ? why : strerror(-err));
		return e->unavailable ? 0 : -ENOMEM;
	}
	pmu = quipu_event_pmu(event);
	e->pmu = pmu;
	if (pmu && pmu->signal) {
		bool filtered = false;

		e->signal = pmu->signal(event, &filtered);
		e->has_signal = e->signal != QUIPU_SIGNAL_NONE;
		if (e->has_signal)
			e->exactness = quipu_signal_exactness(e->signal);
	}
	quipu_event_close(event);
	return 0;
}

static int add_generic(const struct model *model, struct model_events *list, enum event_kind kind,
		       uint32_t want)
{
	const char *name, *alias;
	uint64_t config;
	uint32_t type;

	for (size_t i = 0; (name = quipu_grammar_generic(i, &alias, &type, &config)); i++) {
		struct model_event *e;

		if (type != want)
			continue;
		e = append(list, kind);
		if (!e || !(e->name = strdup(name)))
			return -ENOMEM;
		e->alias = alias;
		e->type = type;
		e->config = config;
		if (kind == EVENT_HARDWARE && config < COUNT(hardware))
			e->desc = hardware[config];
		if (kind != EVENT_SOFTWARE && probe(model, e))
			return -ENOMEM;
		if (kind == EVENT_SOFTWARE && config < COUNT(software)) {
			e->desc = software[config].desc;
			if (software[config].unavailable &&
			    !(e->unavailable = strdup(software[config].unavailable)))
				return -ENOMEM;
		}
	}
	return 0;
}

static int add_names(struct model_events *list, const struct quipu_pmu *pmu,
		     const struct quipu_pmu_event *p)
{
	for (; p && p->name; p++) {
		struct model_event *e = append(list, EVENT_PMU);

		if (!e || asprintf(&e->name, "%s/%s/", pmu->name, p->name) < 0)
			return -ENOMEM;
		e->pmu = pmu;
		e->desc = p->desc;
		e->terms = p->terms;
		e->unit = p->unit;
		e->scale = p->scale;
		e->signal = p->signal;
		e->has_signal = p->signal != QUIPU_SIGNAL_NONE;
		e->exactness = p->exactness;
		if (p->unavailable && !(e->unavailable = strdup(p->unavailable)))
			return -ENOMEM;
	}
	return 0;
}

static int add_pmu(struct model_events *list, const struct quipu_pmu *pmu)
{
	int err = add_names(list, pmu, pmu->events);

	return err ? err : add_names(list, pmu, pmu->more);
}

/* "cpu/event=...,firmware=.../": the terms of format/, to be filled in. */
static int add_raw(struct model_events *list, const struct quipu_pmu *pmu)
{
	struct model_event *e;
	char terms[512] = "";
	size_t len = 0;

	for (const struct quipu_pmu_format *f = pmu->formats;
	     f && f->name && len < sizeof(terms) - 64; f++)
		len += (size_t)snprintf(terms + len, sizeof(terms) - len, "%s%.48s=N",
					len ? "," : "", f->name);
	if (!len)
		return 0;
	e = append(list, EVENT_RAW);
	if (!e || asprintf(&e->name, "%s/%s/", pmu->name, terms) < 0)
		return -ENOMEM;
	e->pmu = pmu;
	e->desc = "a code of this PMU, by its terms";
	return 0;
}

static int add_code(struct model_events *list)
{
	struct model_event *e = append(list, EVENT_RAW);

	if (!e || !(e->name = strdup("rN")))
		return -ENOMEM;
	e->desc = "a raw code of the core PMU, N in hexadecimal";
	return 0;
}

int model_events(const struct model *model, struct model_events *list)
{
	struct quipu_pmu *const *pmus;
	size_t n;
	int err;

	*list = (struct model_events){0};
	pmus = quipu_core_pmus(model->core, &n);
	err = add_generic(model, list, EVENT_HARDWARE, PERF_TYPE_HARDWARE);
	if (!err)
		err = add_generic(model, list, EVENT_SOFTWARE, PERF_TYPE_SOFTWARE);
	if (!err)
		err = add_generic(model, list, EVENT_CACHE, PERF_TYPE_HW_CACHE);
	for (size_t i = 0; i < n && !err; i++)
		err = add_pmu(list, pmus[i]);
	for (size_t i = 0; i < n && !err; i++)
		err = add_raw(list, pmus[i]);
	if (!err)
		err = add_code(list);
	if (err)
		model_events_free(list);
	return err;
}

void model_events_free(struct model_events *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].name);
		free(list->items[i].unavailable);
	}
	free(list->items);
	*list = (struct model_events){0};
}

const char *model_event_label(const struct model_event *e)
{
	if (e->unavailable)
		return e->exactness == QUIPU_HOST ? "not here" : "not modelled";
	return e->kind == EVENT_RAW ? "by code" : quipu_exactness_name(e->exactness);
}

const char *model_event_kind(enum event_kind kind)
{
	static const char *const name[EVENT_KINDS] = {"hardware", "software", "cache", "pmu",
						      "raw"};

	return name[kind];
}
