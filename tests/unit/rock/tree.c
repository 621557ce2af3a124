// SPDX-License-Identifier: BSD-2-Clause
/* What is wrong in a tree of the Rock room is named, and nothing is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/system.h>

#include "platform/rock/room.h"

#define FDT_BYTES 16384

struct guest {
	uint32_t number;
	uint32_t cells[4];
	int ncells;
};

struct tree {
	uint32_t chips;
	uint32_t trap_cycles;
	struct guest guest[3];
	unsigned nguests;
	uint32_t cpus[4];
	int ncpus;
};

static void put_cells(void *fdt, const char *name, const uint32_t *cells, int n)
{
	uint32_t be[4];

	for (int i = 0; i < n; i++)
		be[i] = cpu_to_fdt32(cells[i]);
	assert_return_code(fdt_property(fdt, name, be, 4 * n), 0);
}

static void put_hypervisor(void *fdt, const struct tree *t)
{
	fdt_begin_node(fdt, "hypervisor");
	fdt_property_string(fdt, "compatible", "quipu,sun4v");
	fdt_property_u32(fdt, "quipu,chips", t->chips);
	fdt_property_u32(fdt, "quipu,trap-cycles", t->trap_cycles);
	for (unsigned i = 0; i < t->nguests; i++) {
		char name[16] = "guest@0";

		name[6] = (char)('0' + i);
		fdt_begin_node(fdt, name);
		fdt_property_u32(fdt, "quipu,guest", t->guest[i].number);
		put_cells(fdt, "quipu,strands", t->guest[i].cells, t->guest[i].ncells);
		fdt_end_node(fdt);
	}
	fdt_end_node(fdt);
}

static struct quipu_machine *make(const struct tree *t, struct quipu_notes *notes)
{
	void *fdt = malloc(FDT_BYTES);
	struct quipu_machine *m;

	assert_non_null(fdt);
	fdt_create(fdt, FDT_BYTES);
	fdt_finish_reservemap(fdt);
	fdt_begin_node(fdt, "");
	fdt_property_string(fdt, "compatible", "quipu,test");
	fdt_begin_node(fdt, "cpus");
	fdt_property_u32(fdt, "#address-cells", 1);
	fdt_property_u32(fdt, "#size-cells", 0);
	for (int i = 0; i < t->ncpus; i++) {
		char name[16] = "cpu@a";

		name[4] = (char)('a' + i);
		fdt_begin_node(fdt, name);
		fdt_property_string(fdt, "device_type", "cpu");
		fdt_property_string(fdt, "compatible", "SUNW,UltraSPARC-AT10");
		fdt_property_u32(fdt, "reg", t->cpus[i]);
		fdt_end_node(fdt);
	}
	fdt_end_node(fdt);
	put_hypervisor(fdt, t);
	fdt_end_node(fdt);
	assert_return_code(fdt_finish(fdt), 0);
	m = quipu_machine_parse(fdt, fdt_totalsize(fdt), "test", notes);
	free(fdt);
	assert_non_null(m);
	return m;
}

static bool noted(const struct quipu_notes *notes, const char *path, const char *text)
{
	for (size_t i = 0; i < notes->n; i++)
		if (notes->items[i].kind == QUIPU_NOTE_WRONG &&
		    strstr(notes->items[i].path, path) && strstr(notes->items[i].text, text))
			return true;
	return false;
}

static const struct quipu_system_config config = {.paranoid = -1};

static void faults_are_named(void **state)
{
	static const struct {
		struct tree tree;
		const char *path, *text;
	} rows[] = {
		{{0, 0, {{1, {0, 4}, 2}}, 1, {0, 1}, 2}, "quipu,chips", "1 to 8 chips"},
		{{9, 0, {{1, {0, 4}, 2}}, 1, {0, 1}, 2}, "quipu,chips", "1 to 8 chips"},
		{{1, 2000000, {{1, {0, 4}, 2}}, 1, {0, 1}, 2}, "quipu,trap-cycles", "a million"},
		{{1, 0, {{0}}, 0, {0, 1}, 2}, "/hypervisor", "no guest"},
		{{1, 0, {{0, {0, 4}, 2}}, 1, {0, 1}, 2}, "quipu,guest", "from 1 to 15"},
		{{1, 0, {{16, {0, 4}, 2}}, 1, {0, 1}, 2}, "quipu,guest", "from 1 to 15"},
		{{1, 0, {{1, {0, 4}, 2}, {1, {4, 4}, 2}}, 2, {0, 1}, 2},
		 "guest@1",
		 "a second guest 1"},
		{{1, 0, {{1, {0, 4}, 2}, {2, {3, 4}, 2}}, 2, {0, 1}, 2},
		 "quipu,strands",
		 "strand 3 is guest 1's already"},
		{{1, 0, {{1, {0, 4}, 1}}, 1, {0, 1}, 2}, "quipu,strands", "pairs"},
		{{1, 0, {{1, {0, 4, 6}, 3}}, 1, {0, 1}, 2}, "quipu,strands", "pairs"},
		{{1, 0, {{1, {0, 33}, 2}}, 1, {0, 1}, 2}, "quipu,strands", "strands 0 to 31"},
		{{1, 0, {{1, {0xffffffff, 2}, 2}}, 1, {0, 1}, 2},
		 "quipu,strands",
		 "strands 0 to 31"},
		{{1, 0, {{1, {0, 0}, 2}}, 1, {0, 1}, 2}, "quipu,strands", "strands 0 to 31"},
		{{1, 0, {{1, {0, 4}, 2}}, 1, {0, 7}, 2}, "cpu@b", "is no strand that a guest"},
		{{1, 0, {{1, {0, 4}, 2}}, 1, {0, 99}, 2}, "cpu@b", "is no strand that a guest"},
		{{1, 0, {{1, {0, 1}, 2}, {2, {1, 1}, 2}}, 2, {0, 1}, 2}, "cpu@b", "another guest"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_notes notes = {0};
		struct quipu_machine *m = make(&rows[i].tree, &notes);
		struct quipu_manual_signals *s = quipu_manual_signals_new(m->ncpus);

		assert_null(quipu_system_new(m, quipu_manual_signals_base(s), &config, &notes));
		if (!noted(&notes, rows[i].path, rows[i].text))
			fail_msg("row %zu: no note on %s says \"%s\"", i, rows[i].path,
				 rows[i].text);
		quipu_manual_signals_free(s);
		quipu_machine_free(m);
		quipu_notes_free(&notes);
	}
}

static bool has_pmu(struct quipu_core *core, const char *name)
{
	size_t n;
	struct quipu_pmu *const *p = quipu_core_pmus(core, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i]->name, name))
			return true;
	return false;
}

/* rock_chip is there only where some chip is the guest's alone; strands of nobody do not matter. */
static void shared_chips_have_no_chip_pmu(void **state)
{
	static const struct tree shared = {1, 0, {{1, {0, 4}, 2}, {2, {4, 1}, 2}}, 2, {0, 1}, 2};
	static const struct tree alone = {1, 0, {{1, {0, 4}, 2}}, 1, {0, 1}, 2};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct quipu_notes notes = {0};
		struct quipu_machine *m = make(i ? &alone : &shared, &notes);
		struct quipu_manual_signals *s = quipu_manual_signals_new(m->ncpus);
		struct quipu_system *sys =
			quipu_system_new(m, quipu_manual_signals_base(s), &config, &notes);

		assert_non_null(sys);
		assert_true(has_pmu(quipu_system_core(sys), "rock"));
		assert_int_equal(has_pmu(quipu_system_core(sys), "rock_chip"), i);
		quipu_system_free(sys);
		quipu_manual_signals_free(s);
		quipu_machine_free(m);
		quipu_notes_free(&notes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(shared_chips_have_no_chip_pmu),
	};

	return cmocka_run_group_tests_name("rock tree", tests, NULL, NULL);
}
