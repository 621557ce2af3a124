/* SPDX-License-Identifier: BSD-2-Clause */
/* Are the models those that the tree describes, and is a slip in it told? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <quipu/model.h>

#include "unit/machine/dts.h"

static struct quipu_notes notes;

static struct quipu_model model_of(const char *cpus, const char *cpu)
{
	char source[2048];
	struct quipu_machine *m;
	struct quipu_model model;
	struct blob b;

	snprintf(
		source, sizeof(source),
		"/dts-v1/; / { compatible = \"x\"; cpus { #address-cells = <1>; #size-cells = <0>; %s "
		"c0: cpu@0 { device_type = \"cpu\"; reg = <0>; compatible = \"riscv\"; riscv,isa = \"rv64imac\"; %s }; "
		"c1: cpu@1 { device_type = \"cpu\"; reg = <1>; compatible = \"riscv\"; riscv,isa = \"rv64imac\"; %s }; "
		"l2: l2 { cache-level = <2>; cache-unified; cache-size = <0x20000>; cache-sets = <256>; "
		"quipu,latency = <9>; }; }; };",
		cpus, cpu, cpu);
	b = blob_dts(source);
	m = quipu_machine_parse(b.data, b.len, "test", &notes);
	assert_non_null(m);
	quipu_model_read(m, &model, &notes);
	quipu_machine_free(m);
	blob_free(&b);
	return model;
}

static int clear(void **state)
{
	(void)state;
	quipu_notes_free(&notes);
	notes = (struct quipu_notes){0};
	return 0;
}

static void a_silent_tree_has_no_caches_and_the_default_predictor(void **state)
{
	struct quipu_model m = model_of("", "");

	(void)state;
	assert_int_equal(m.l1d.sets + m.l1i.sets + m.l2.sets + m.l3.sets + m.stlb.sets, 0);
	assert_int_equal(m.dtlb.sets, 16);
	assert_int_equal(m.dtlb.ways, 4);
	assert_int_equal(m.dtlb.shift, 12);
	assert_int_equal(m.counters, 4096);
	assert_int_equal(m.history, 12);
	assert_int_equal(m.targets, 512);
	assert_int_equal(m.returns, 16);
	assert_int_equal(m.mispredict, 14);
	assert_int_equal(m.memory, 200);
	assert_false(m.lru);
	assert_false(m.full);
	assert_false(quipu_model_counts(&m, QUIPU_SIGNAL_L1D_READ_MISSES));
	assert_false(quipu_model_counts(&m, QUIPU_SIGNAL_LL_READ_MISSES));
	assert_false(quipu_model_counts(&m, QUIPU_SIGNAL_STALL_BACKEND));
	assert_true(quipu_model_counts(&m, QUIPU_SIGNAL_BRANCH_MISSES));
	assert_true(quipu_model_counts(&m, QUIPU_SIGNAL_DTLB_READ_MISSES));
	assert_false(noted(&notes, QUIPU_NOTE_WRONG, NULL, NULL));
}

static void geometry_comes_from_the_tree(void **state)
{
	struct quipu_model m = model_of(
		"quipu,timing = \"full\"; quipu,replacement = \"lru\"; quipu,predictor-history = <0>; "
		"quipu,second-tlb-size = <512>; quipu,second-tlb-sets = <64>; quipu,penalty-walk = <33>;",
		"d-cache-size = <0x4000>; d-cache-sets = <64>; d-cache-block-size = <64>; d-tlb-size = <40>; "
		"d-tlb-sets = <1>; next-level-cache = <&l2>;");

	(void)state;
	assert_true(m.lru);
	assert_true(m.full);
	assert_int_equal(m.history, 0);
	assert_int_equal(m.l1d.sets, 64);
	assert_int_equal(m.l1d.ways, 4);
	assert_int_equal(m.l2.sets, 256);
	assert_int_equal(m.l2.ways, 8);
	assert_int_equal(m.l2.latency, 9);
	assert_int_equal(m.dtlb.ways, 40);
	assert_int_equal(m.stlb.ways, 8);
	assert_int_equal(m.walk, 33);
	assert_true(quipu_model_counts(&m, QUIPU_SIGNAL_LL_READ_MISSES));
	assert_true(quipu_model_counts(&m, QUIPU_SIGNAL_STALL_BACKEND));
	assert_false(quipu_model_counts(&m, QUIPU_SIGNAL_L1I_MISSES));
	assert_false(noted(&notes, QUIPU_NOTE_WRONG, NULL, NULL));
}

static void threads_of_a_core_are_counted(void **state)
{
	(void)state;
	assert_int_equal(model_of("", "").core_cpus, 1);
	assert_int_equal(
		model_of("cpu-map { socket0 { cluster0 { core0 { thread0 { cpu = <&c0>; }; "
			 "thread1 { cpu = <&c1>; }; }; }; }; };",
			 "")
			.core_cpus,
		2);
}

static void what_cannot_be_is_told_and_not_taken(void **state)
{
	struct quipu_model m =
		model_of("quipu,predictor-counters = <1000>; quipu,penalty-mispredict = <501>; "
			 "quipu,replacement = \"random\"; quipu,page-size = <5000>;",
			 "d-tlb-size = <130>; d-tlb-sets = <1>;");

	(void)state;
	assert_int_equal(m.counters, 4096);
	assert_int_equal(m.mispredict, 14);
	assert_int_equal(m.dtlb.sets, 16);
	assert_int_equal(m.dtlb.shift, 12);
	assert_true(
		noted(&notes, QUIPU_NOTE_WRONG, "/cpus:quipu,predictor-counters", "power of two"));
	assert_true(noted(&notes, QUIPU_NOTE_WRONG, "/cpus:quipu,penalty-mispredict", "0 to 500"));
	assert_true(noted(&notes, QUIPU_NOTE_WRONG, "/cpus:quipu,replacement", "neither"));
	assert_true(noted(&notes, QUIPU_NOTE_WRONG, "/cpus:quipu,page-size", "4096"));
	assert_true(noted(&notes, QUIPU_NOTE_WRONG, "/cpus/cpu@0:d-tlb-size", "64 ways"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_silent_tree_has_no_caches_and_the_default_predictor,
					  clear),
		cmocka_unit_test_teardown(geometry_comes_from_the_tree, clear),
		cmocka_unit_test_teardown(threads_of_a_core_are_counted, clear),
		cmocka_unit_test_teardown(what_cannot_be_is_told_and_not_taken, clear),
	};

	return cmocka_run_group_tests_name("model read", tests, NULL, NULL);
}
