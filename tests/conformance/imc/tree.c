/* SPDX-License-Identifier: BSD-2-Clause */
/* IMC sheet section 7, the cases of tree and sysfs (T), and what real catalogs must not do: be
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/system.h>
#include <quipu/tree.h>

#include "platform/imc/catalog.h"

#include "bed.h"
#include "platform/imc/tree.h"

#define PMUS "/sys/bus/event_source/devices/"
#define TOP  "/imc-counters"

static struct bed bed;
static struct quipu_system *machine;
static struct quipu_tree *files;

static void begin(const char *name)
{
	const char *example = getenv("QUIPU_IMC_EXAMPLE");

	bed_tree(&bed, !strcmp(name, "example") && example ? example : name);
	machine = NULL;
	files = NULL;
}

/* The machine of the (changed) tree, and its sysfs. */
static void bring_up(void)
{
	const struct quipu_system_config config = {.paranoid = -1};

	assert_int_equal(fdt_pack(bed.fdt), 0);
	bed.machine = quipu_machine_parse(bed.fdt, fdt_totalsize(bed.fdt), "test", &bed.notes);
	assert_non_null(bed.machine);
	bed.manual = quipu_manual_signals_new(bed.machine->ncpus);
	machine = quipu_system_new(bed.machine, quipu_manual_signals_base(bed.manual), &config,
				   &bed.notes);
	assert_non_null(machine);
	files = quipu_tree_new(bed.machine, quipu_system_core(machine));
	assert_non_null(files);
}

static void end(void)
{
	quipu_tree_free(files);
	quipu_system_free(machine);
	bed_stop(&bed);
}

static const char *file(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), PMUS "%s", path);
	return quipu_tree_text(files, full);
}

static bool has_pmu(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/type", name);
	return file(path) != NULL;
}

/* Files below PMU @name's directory @dir; without the side files when @plain. */
static unsigned count_files(const char *name, const char *dir, bool plain)
{
	char prefix[128];
	unsigned n = 0;

	snprintf(prefix, sizeof(prefix), PMUS "%s/%s/", name, dir);
	for (size_t i = 0; i < files->n; i++) {
		const char *p = files->files[i].path;

		n += !files->files[i].own && !strncmp(p, prefix, strlen(prefix)) &&
		     !(plain && (strstr(p, ".scale") || strstr(p, ".unit")));
	}
	return n;
}

static bool noted(const char *text)
{
	for (size_t i = 0; i < bed.notes.n; i++)
		if (strstr(bed.notes.items[i].text, text))
			return true;
	return false;
}

static void t1_the_example(void **state)
{
	(void)state;
	begin("example");
	bring_up();
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_64B_RD_DISP_PORT01"),
			    "event=0xc8\n");
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_64B_RD_DISP_PORT01.scale"),
			    "256\n");
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_128B_WR_DISP_PORT01"),
			    "event=0xd8\n");
	assert_string_equal(file("nest_mcs01_imc/alias"), "nest_mcs01\n");
	assert_string_equal(file("core_imc/events/CPM_NON_IDLE_INST"), "event=0x28\n");
	assert_string_equal(file("core_imc/events/CPM_NON_IDLE_INST.scale"), "512\n");
	assert_string_equal(file("core_imc/events/CPM_NON_IDLE_PCYC"), "event=0x30\n");
	assert_string_equal(file("core_imc/events/CPM_32MHZ_CYC"), "event=0xa0\n");
	assert_string_equal(file("core_imc/events/CPM_32MHZ_CYC.scale"), "0.03125\n");
	assert_string_equal(file("core_imc/events/CPM_32MHZ_CYC.unit"), "us\n");
	assert_string_equal(file("thread_imc/events/CPM_NON_IDLE_INST"), "event=0x28\n");
	assert_string_equal(file("trace_imc/events/trace_cycles"), "event=0x10200000\n");
	assert_null(file("trace_imc/events/trace_cycles.scale"));
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_128B_WR_DISP_PORT01.scale"),
			    "256\n");
	assert_string_equal(file("thread_imc/events/CPM_32MHZ_CYC.unit"), "us\n");
	assert_null(file("trace_imc/events/trace_cycles.unit"));
	/* and nothing else: each event of these has a scale, one of them a unit */
	assert_int_equal(count_files("nest_mcs01_imc", "events", false), 4);
	assert_int_equal(count_files("core_imc", "events", false), 7);
	assert_int_equal(count_files("thread_imc", "events", false), 7);
	assert_int_equal(count_files("trace_imc", "events", false), 1);
	end();
}

static void t2_t3_scale_and_unit_are_inherited_apart(void **state)
{
	(void)state;
	begin("example");
	fdt_setprop_string(bed.fdt, bed_node(&bed, TOP "/mcs01@c8"), "unit", "MiB");
	fdt_setprop_string(bed.fdt, bed_node(&bed, TOP "/mcs-ev/event@0"), "scale", "7");
	fdt_delprop(bed.fdt, bed_node(&bed, TOP "/core@18"), "scale");
	bring_up();
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_64B_RD_DISP_PORT01.scale"), "7\n");
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_64B_RD_DISP_PORT01.unit"),
			    "MiB\n");
	assert_null(file("core_imc/events/CPM_NON_IDLE_INST.scale"));
	assert_null(file("core_imc/events/CPM_NON_IDLE_INST.unit"));
	end();
}

static void t4_empty_prefix(void **state)
{
	(void)state;
	begin("example");
	fdt_setprop_string(bed.fdt, bed_node(&bed, TOP "/mcs01@c8"), "events-prefix", "");
	bring_up();
	assert_non_null(file("nest_mcs01_imc/events/64B_RD_DISP_PORT01"));
	end();
}

static void t5_type(void **state)
{
	(void)state;
	begin("example");
	fdt_delprop(bed.fdt, bed_node(&bed, TOP "/mcs01@c8"), "type");
	fdt_setprop_u32(bed.fdt, bed_node(&bed, TOP "/trace@0"), "type", 8);
	bring_up();
	assert_false(has_pmu("nest_mcs01_imc"));
	assert_false(has_pmu("trace_imc"));
	assert_true(has_pmu("core_imc"));
	assert_true(noted("type is missing"));
	end();
}

static void t6_size(void **state)
{
	(void)state;
	begin("example");
	fdt_delprop(bed.fdt, bed_node(&bed, TOP "/core@18"), "size");
	bring_up();
	assert_false(has_pmu("core_imc"));
	end();
}

static void t7_no_chips(void **state)
{
	struct imc_tree t;
	struct quipu_notes notes = {0};

	(void)state;
	begin("example");
	fdt_delprop(bed.fdt, bed_node(&bed, TOP "/mcs01@c8"), "chip-id");
	assert_int_equal(fdt_pack(bed.fdt), 0);
	bed.machine = quipu_machine_parse(bed.fdt, fdt_totalsize(bed.fdt), "test", &bed.notes);
	assert_int_equal(imc_tree_read(bed.machine, false, &notes, &t),
			 0); /* as the kernel finds it */
	for (unsigned i = 0; i < t.nunits; i++)
		assert_int_not_equal(t.units[i].type, IMC_NEST);
	imc_tree_free(&t);
	quipu_notes_free(&notes);
	end();
}

static void t8_dangling_events(void **state)
{
	(void)state;
	begin("example");
	fdt_setprop_u32(bed.fdt, bed_node(&bed, TOP "/mcs01@c8"), "events", 0x7777);
	bring_up();
	assert_true(has_pmu("nest_mcs01_imc"));
	assert_int_equal(count_files("nest_mcs01_imc", "events", false), 0);
	assert_int_equal(count_files("nest_mcs01_imc", "format", false), 4);
	end();
}

static void t9_events_that_are_none(void **state)
{
	(void)state;
	begin("example");
	fdt_delprop(bed.fdt, bed_node(&bed, TOP "/cpm-ev/event@10"), "reg");
	fdt_delprop(bed.fdt, bed_node(&bed, TOP "/cpm-ev/event@18"), "event-name");
	bring_up();
	assert_int_equal(count_files("core_imc", "events", true), 1);
	assert_true(noted("has no reg"));
	end();
}

static void t10_revision(void **state)
{
	(void)state;
	begin("power9");
	fdt_setprop_u32(bed.fdt, bed_node(&bed, "/cpus/PowerPC,POWER9@0"), "cpu-version",
			0x004e1201);
	bring_up();
	assert_false(has_pmu("trace_imc"));
	assert_true(has_pmu("thread_imc"));
	end();
}

static void t11_t12_availability(void **state)
{
	(void)state;
	begin("power9");
	fdt_setprop_u64(bed.fdt, bed_node(&bed, TOP), "quipu,availability",
			IMC_AVAILABLE & ~QUIPU_IBM_BIT(25) & ~QUIPU_IBM_BIT(1) & ~QUIPU_IBM_BIT(2));
	bring_up();
	assert_false(has_pmu("nest_xlink0"));
	assert_true(has_pmu("nest_xlink1"));
	assert_false(has_pmu("nest_mcs01"));
	assert_true(has_pmu("nest_mcs23"));
	end();
}

static void t13_microcode_is_down(void **state)
{
	(void)state;
	begin("power9");
	fdt_setprop(bed.fdt, bed_node(&bed, TOP), "quipu,nest-down", NULL, 0);
	bring_up();
	for (size_t i = 0; i < files->n; i++)
		assert_null(strstr(files->files[i].path, "/nest_"));
	assert_true(has_pmu("core_imc"));
	assert_true(has_pmu("thread_imc"));
	assert_true(has_pmu("trace_imc"));
	end();
}

static void t14_no_core_no_thread(void **state)
{
	(void)state;
	begin("power9");
	fdt_del_node(bed.fdt, bed_node(&bed, TOP "/core@18"));
	bring_up();
	assert_false(has_pmu("core_imc"));
	assert_false(has_pmu("thread_imc"));
	assert_true(has_pmu("trace_imc"));
	end();
}

static void t15_default_tree(void **state)
{
	unsigned nest = 0, pmus = 0;
	struct quipu_pmu *const *list;
	size_t n;

	(void)state;
	begin("power9");
	bring_up();
	list = quipu_core_pmus(quipu_system_core(machine), &n);
	for (size_t i = 0; i < n; i++) {
		bool is_nest = !strncmp(list[i]->name, "nest_", 5);

		pmus += is_nest || strstr(list[i]->name, "_imc");
		nest += is_nest ? count_files(list[i]->name, "events", true) : 0;
	}
	assert_int_equal(pmus, 23);
	assert_int_equal(nest, 114);
	assert_int_equal(count_files("core_imc", "events", true), 249);
	assert_int_equal(count_files("thread_imc", "events", true), 249);
	assert_int_equal(count_files("trace_imc", "events", true), 1);
	/* T16, T17 */
	assert_string_equal(file("nest_powerbus0/events/PM_PB_CYC2"), "event=0x100\n");
	assert_string_equal(file("nest_powerbus0/events/PM_PB_CYC2.scale"), "256\n");
	assert_string_equal(file("core_imc/events/CPM_CS_FROM_MEM_LOCAL_KERNEL"), "event=0x1fa0\n");
	assert_string_equal(file("core_imc/events/CPM_CS_FROM_MEM_NON_LOCAL_KERNEL"),
			    "event=0x1fd8\n");
	/* T18 */
	assert_string_equal(file("nest_mcs01/cpumask"), "0,16\n");
	assert_string_equal(file("core_imc/cpumask"), "0,4,8,12,16,20,24,28\n");
	assert_null(file("thread_imc/cpumask"));
	assert_null(file("trace_imc/cpumask"));
	/* the document's name, and the kernel's as its alias */
	assert_string_equal(file("nest_mcs01/alias"), "nest_mcs01_imc\n");
	end();
}

static void t19_formats(void **state)
{
	static const char *const counting[] = {"nest_mcs01", "nest_phb5", "core_imc", "thread_imc"};
	static const struct {
		const char *file, *text;
	} rows[] = {{"event", "config:0-61\n"},
		    {"offset", "config:0-31\n"},
		    {"rvalue", "config:32\n"},
		    {"mode", "config:33-40\n"}},
	  trace[] = {{"event", "config:0-61\n"},
		     {"cpmc_reserved", "config:0-19\n"},
		     {"cpmc_event", "config:20-27\n"},
		     {"cpmc_samplesel", "config:28-29\n"},
		     {"cpmc_load", "config:30-61\n"}};
	char path[128];

	(void)state;
	begin("power9");
	bring_up();
	for (unsigned p = 0; p < 4; p++) {
		for (unsigned i = 0; i < 4; i++) {
			snprintf(path, sizeof(path), "%s/format/%s", counting[p], rows[i].file);
			assert_non_null(file(path));
			assert_string_equal(file(path), rows[i].text);
		}
		assert_int_equal(count_files(counting[p], "format", false), 4);
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "trace_imc/format/%s", trace[i].file);
		assert_non_null(file(path));
		assert_string_equal(file(path), trace[i].text);
	}
	assert_int_equal(count_files("trace_imc", "format", false), 5);
	end();
}

static void t20_descriptions_stay_out_of_sysfs(void **state)
{
	(void)state;
	begin("example");
	bring_up();
	for (size_t i = 0; i < files->n; i++)
		assert_null(files->files[i].text ? strstr(files->files[i].text, "64 bytes or less")
						 : NULL);
	end();
}

/* ---- what a real catalog has wrong ---- */

static void the_current_catalog_loads_with_its_slips_noted(void **state)
{
	(void)state;
	begin("power9-catalog");
	bring_up();
	assert_true(has_pmu("nest_mcs01_imc"));
	assert_true(has_pmu("nest_nvlink3_imc"));
	assert_string_equal(file("nest_nvlink3_imc/events/PM_NTL3_CLK_CYC"), "event=0x510\n");
	assert_true(noted("probably added twice"));
	assert_true(noted("wrong offsets: "));
	assert_int_equal(count_files("thread_imc", "events", true), 61);
	assert_int_equal(count_files("core_imc", "events", true), 249);
	assert_false(has_pmu("nest_nx_imc")); /* not in the availability vector */
	end();
}

static void a_name_that_is_there_twice_is_noted(void **state)
{
	(void)state;
	begin("example");
	fdt_setprop_string(bed.fdt, bed_node(&bed, TOP "/mcs-ev/event@10"), "event-name",
			   "64B_RD_DISP_PORT01");
	bring_up();
	assert_int_equal(count_files("nest_mcs01_imc", "events", true), 1);
	assert_string_equal(file("nest_mcs01_imc/events/PM_MCS01_64B_RD_DISP_PORT01"),
			    "event=0xc8\n");
	assert_true(noted("there twice"));
	end();
}

static void an_offset_beyond_the_memory_is_noted(void **state)
{
	static const uint32_t reg[2] = {0, 0};
	uint32_t far[2];

	(void)state;
	begin("example");
	memcpy(far, reg, sizeof(far));
	far[0] = cpu_to_fdt32(0x2000);
	fdt_setprop(bed.fdt, bed_node(&bed, TOP "/cpm-ev/event@10"), "reg", far, sizeof(far));
	bring_up();
	assert_true(noted("beyond the counter memory"));
	assert_true(has_pmu("core_imc"));
	end();
}

static void numbers_that_cannot_be_are_noted(void **state)
{
	static const char *const scales[] = {"0", "-5", "much", "1e400", "", "512 "};

	(void)state;
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		begin("example");
		fdt_setprop_string(bed.fdt, bed_node(&bed, TOP "/core@18"), "scale", scales[i]);
		bring_up();
		assert_true(noted("no number that a count could have"));
		assert_true(has_pmu("core_imc"));
		end();
	}
	begin("power9");
	assert_false(noted("no number"));
	fdt_setprop_u32(bed.fdt, bed_node(&bed, TOP "/mba3@490"), "offset", 0xffffffff);
	bring_up();
	assert_true(noted("offset 0xffffffff: the chip's counters lie at 0x180000"));
	assert_true(has_pmu("nest_mba3"));
	end();
}

static size_t compile(const char *name, uint8_t *blob, size_t room)
{
	const char *dir = getenv("QUIPU_IMA_CATALOG");
	char command[4096];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "dtc -q -I dts -O dtb '%s/%s' 2>/dev/null",
		 dir ? dir : ".", name);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(blob, 1, room, f);
	pclose(f);
	return n;
}

/*
 * Catalogs as their authors publish them, where copies lie beside the repository: put into a
 * machine as firmware does it, they load, with what is wrong in them told.
 */
static void a_published_catalog_loads(void **state)
{
	static const struct {
		const char *name;
		unsigned core, thread, least;
		bool twice;
	} rows[] = {
		{"81E00612.4E0200.dts", 249, 61, 26, true},
		{"81E00612.800200.dts", 50, 50, 20, false},
	};
	static uint8_t blob[1 << 20];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = compile(rows[i].name, blob, sizeof(blob)), len;
		void *made;

		if (!n) {
			print_message("# no published catalog lies beside the repository\n");
			skip();
		}
		begin("power9-catalog");
		assert_true(imc_catalog_is(blob, n));
		assert_false(imc_catalog_is(bed.fdt, fdt_totalsize(bed.fdt)));
		assert_int_equal(fdt_pack(bed.fdt), 0);
		assert_int_equal(imc_catalog_machine(blob, n, bed.fdt, fdt_totalsize(bed.fdt),
						     &made, &len),
				 0);
		free(bed.fdt);
		bed.fdt = made;
		bring_up();
		assert_int_equal(count_files("core_imc", "events", true), rows[i].core);
		assert_int_equal(count_files("thread_imc", "events", true), rows[i].thread);
		assert_int_equal(noted("probably added twice"), rows[i].twice);
		end();
	}
}

#define CASE(f) cmocka_unit_test(f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(t1_the_example),
		CASE(t2_t3_scale_and_unit_are_inherited_apart),
		CASE(t4_empty_prefix),
		CASE(t5_type),
		CASE(t6_size),
		CASE(t7_no_chips),
		CASE(t8_dangling_events),
		CASE(t9_events_that_are_none),
		CASE(t10_revision),
		CASE(t11_t12_availability),
		CASE(t13_microcode_is_down),
		CASE(t14_no_core_no_thread),
		CASE(t15_default_tree),
		CASE(t19_formats),
		CASE(t20_descriptions_stay_out_of_sysfs),
		CASE(the_current_catalog_loads_with_its_slips_noted),
		CASE(a_name_that_is_there_twice_is_noted),
		CASE(an_offset_beyond_the_memory_is_noted),
		CASE(numbers_that_cannot_be_are_noted),
		CASE(a_published_catalog_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
