// SPDX-License-Identifier: BSD-2-Clause
/* See lab.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libfdt.h>

#include "lab.h"

static uint64_t core_now(void *arg, unsigned cpu)
{
	(void)cpu;
	return ((struct lab *)arg)->now;
}

static uint64_t room_now(void *arg)
{
	return ((struct lab *)arg)->now;
}

static const struct quipu_core_ops ops = {.now = core_now};

static void trace(void *arg, const char *line)
{
	struct lab *lab = arg;
	size_t n = strlen(lab->trace);

	snprintf(lab->trace + n, sizeof(lab->trace) - n, "%s\n", line);
}

static void *load(const char *name, lab_edit *edit)
{
	const char *dir = getenv("QUIPU_MACHINES");
	char path[1024];
	void *fdt = calloc(1, 1 << 17);
	FILE *f;

	assert_non_null(dir);
	assert_non_null(fdt);
	snprintf(path, sizeof(path), "%s/%s.dtb", dir, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_true(fread(fdt, 1, 1 << 16, f) > 0);
	fclose(f);
	assert_int_equal(fdt_open_into(fdt, fdt, 1 << 17), 0);
	if (edit)
		edit(fdt);
	return fdt;
}

int lab_create(struct lab **out, const char *name, lab_edit *edit, int paranoid)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	void *fdt = load(name, edit);
	struct quipu_core_config config = {.ncpus = 4, .hz = 250, .paranoid = paranoid};
	struct quipu_platform_env env;
	int err;

	assert_non_null(lab);
	lab->machine = quipu_machine_parse(fdt, fdt_totalsize(fdt), name, &lab->notes);
	free(fdt);
	assert_non_null(lab->machine);
	lab->hand = quipu_manual_signals_new(lab->machine->ncpus);
	lab->core = quipu_core_new(&config, &ops, lab);
	assert_non_null(lab->hand);
	assert_non_null(lab->core);
	lab->caller = (struct quipu_caller){.pid = 100, .tid = 100, .perfmon = paranoid < 0};
	env = (struct quipu_platform_env){
		.machine = lab->machine,
		.core = lab->core,
		.signals = quipu_manual_signals_base(lab->hand),
		.notes = &lab->notes,
		.now = room_now,
		.now_arg = lab,
		.trace = trace,
		.trace_arg = lab,
	};
	err = quipu_platform_vtd.create(&env, &lab->room);
	*out = lab;
	if (err)
		return err;
	lab->tree = quipu_tree_new(lab->machine, lab->core);
	assert_non_null(lab->tree);
	lab->catalog = quipu_catalog_new(lab->tree);
	assert_non_null(lab->catalog);
	return 0;
}

struct lab *lab_new(const char *name, lab_edit *edit, int paranoid)
{
	struct lab *lab;
	int err = lab_create(&lab, name, edit, paranoid);

	for (size_t i = 0; err && i < lab->notes.n; i++)
		print_message("%s: %s\n", lab->notes.items[i].path, lab->notes.items[i].text);
	assert_int_equal(err, 0);
	return lab;
}

void lab_free(struct lab *lab)
{
	quipu_catalog_free(lab->catalog);
	quipu_tree_free(lab->tree);
	quipu_core_free(lab->core);
	if (lab->room)
		quipu_platform_vtd.destroy(lab->room);
	quipu_manual_signals_free(lab->hand);
	quipu_machine_free(lab->machine);
	quipu_notes_free(&lab->notes);
	free(lab);
}

void lab_quiet(void *fdt)
{
	for (int unit = fdt_node_offset_by_compatible(fdt, -1, "quipu,vtd"); unit >= 0;
	     unit = fdt_node_offset_by_compatible(fdt, unit, "quipu,vtd")) {
		int node = fdt_first_subnode(fdt, unit);

		while (node >= 0) {
			if (fdt_getprop(fdt, node, "quipu,rid", NULL)) {
				assert_int_equal(fdt_del_node(fdt, node), 0);
				node = fdt_first_subnode(fdt, unit);
			} else {
				node = fdt_next_subnode(fdt, node);
			}
		}
	}
}

void lab_set(void *fdt, const char *path, const char *property, uint64_t value)
{
	int node = fdt_path_offset(fdt, path);

	assert_true(node >= 0);
	assert_int_equal(fdt_setprop_u64(fdt, node, property, value), 0);
}

int lab_try(struct lab *lab, struct quipu_attr attr, pid_t pid, int cpu, struct quipu_event *group,
	    struct quipu_event **out)
{
	struct quipu_event *e;
	uint32_t size;
	int err;

	attr.size = sizeof(attr);
	err = quipu_event_open(lab->core, &lab->caller, &attr, sizeof(attr), pid, cpu, group, 0,
			       &size, &e);
	if (out)
		*out = err ? NULL : e;
	return err;
}

struct quipu_attr lab_attr(struct lab *lab, const char *pmu, uint64_t config, uint64_t config1,
			   uint64_t config2)
{
	const struct quipu_catalog_pmu *p = quipu_catalog_find(lab->catalog, pmu);

	assert_non_null(p);
	return (struct quipu_attr){
		.type = p->type, .config = config, .config1 = config1, .config2 = config2};
}

struct quipu_event *lab_open(struct lab *lab, const char *event, bool off,
			     struct quipu_event *group)
{
	struct quipu_event_list list = {0};
	struct quipu_grammar_error error;
	struct quipu_event *e;

	if (quipu_grammar_parse(lab->catalog, event, &list, &error))
		fail_msg("%s: %s", event, error.reason);
	assert_int_equal(list.n, 1);
	list.items[0].attr.flags &=
		~QUIPU_ATTR_EXCLUDE_GUEST; /* perf drops it when it is refused */
	if (off)
		list.items[0].attr.flags |= QUIPU_ATTR_DISABLED;
	assert_int_equal(lab_try(lab, list.items[0].attr, -1, 0, group, &e), 0);
	quipu_event_list_free(&list);
	return e;
}

uint64_t lab_count(struct quipu_event *e)
{
	struct quipu_count count;

	quipu_event_count(e, &count);
	return count.value;
}

void lab_requests(struct lab *lab, unsigned i, unsigned n)
{
	struct quipu_vtd_request rq = {.addr = 0x7000, .pasid = -1, .len = 64, .rid = 0xff00};
	struct quipu_vtd_response rs;

	while (n--)
		quipu_vtd_dma(vtd_room_unit(lab->room, i), &rq, &rs);
}

void lab_pass(struct lab *lab, uint64_t ns)
{
	uint64_t end = lab->now + ns;

	for (;;) {
		uint64_t due = quipu_core_next_tick(lab->core, 0);

		if (due > end)
			break;
		if (due > lab->now)
			lab->now = due;
		quipu_core_tick(lab->core, 0);
	}
	lab->now = end;
}
