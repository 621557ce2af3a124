// SPDX-License-Identifier: BSD-2-Clause
/*
 * The generated sysfs of machine riscv: against a golden file, against its own PMU tables, and read
 * by programs that nobody here wrote (lscpu, perf list).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <quipu/system.h>
#include <quipu/tree.h>

#include "dts.h"

static struct quipu_machine *machine;
static struct quipu_manual_signals *signals;
static struct quipu_system *sys;
static struct quipu_tree *tree;

static int open_tree(void **state)
{
	struct quipu_system_config config = {.paranoid = -1};
	struct blob b = blob_file(getenv("QUIPU_RISCV_DTB"));
	struct quipu_notes notes = {0};

	(void)state;
	machine = b.data ? quipu_machine_parse(b.data, b.len, "riscv", &notes) : NULL;
	blob_free(&b);
	if (!machine)
		return -1;
	signals = quipu_manual_signals_new(machine->ncpus);
	sys = quipu_system_new(machine, quipu_manual_signals_base(signals), &config, &notes);
	if (!sys)
		print_notes(&notes);
	quipu_notes_free(&notes);
	tree = sys ? quipu_tree_new(machine, quipu_system_core(sys)) : NULL;
	return tree ? 0 : -1;
}

static int close_tree(void **state)
{
	(void)state;
	quipu_tree_free(tree);
	quipu_system_free(sys);
	quipu_manual_signals_free(signals);
	quipu_machine_free(machine);
	return 0;
}

/* CPUs 1 to 6 are like their neighbours; the PMU's events have a test of their own. */
static bool in_golden(const char *path)
{
	unsigned cpu;

	if (sscanf(path, "/sys/devices/system/cpu/cpu%u/", &cpu) == 1 && cpu > 0 && cpu < 7)
		return false;
	return strncmp(path, "/sys/bus/event_source/devices/cpu/events/", 41) != 0;
}

/* One line a file: path, " -> " or ": ", text with its newlines as \n. */
static void print_golden(FILE *f)
{
	for (size_t i = 0; i < tree->n; i++) {
		const struct quipu_tree_file *file = &tree->files[i];

		if (!in_golden(file->path))
			continue;
		fprintf(f, "%s%s", file->path, file->link ? " -> " : ": ");
		for (const char *p = file->text; *p; p++)
			if (*p == '\n')
				fputs("\\n", f);
			else
				fputc(*p, f);
		fputc('\n', f);
	}
}

static void every_file_is_the_golden_one(void **state)
{
	char *text = NULL, *have, *want;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct blob golden = blob_file(getenv("QUIPU_GOLDEN_TREE"));
	const char *out = getenv("QUIPU_GOLDEN_OUT"); /* where to write a new one, for who changes
							 the tree on purpose */

	(void)state;
	assert_non_null(golden.data);
	print_golden(f);
	fclose(f);
	if (out) {
		f = fopen(out, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	}
	golden.data[golden.len] = '\0';
	have = text;
	want = (char *)golden.data;
	while (*have || *want) {
		size_t h = strcspn(have, "\n"), w = strcspn(want, "\n");

		if (h != w || strncmp(have, want, h))
			fail_msg("have %.*s\nwant %.*s", (int)h, have, (int)w, want);
		have += h + (have[h] == '\n');
		want += w + (want[w] == '\n');
	}
	free(text);
	blob_free(&golden);
}

static void paths_are_sorted_once_and_below_sys_or_proc(void **state)
{
	(void)state;
	for (size_t i = 0; i < tree->n; i++) {
		const char *path = tree->files[i].path;

		assert_true(!strncmp(path, "/sys/", 5) || !strncmp(path, "/proc/", 6));
		assert_null(strstr(path, "//"));
		assert_null(strstr(path, "/.."));
		assert_ptr_equal(quipu_tree_text(tree, path), tree->files[i].text);
		if (i)
			assert_true(strcmp(tree->files[i - 1].path, path) < 0);
	}
	assert_null(quipu_tree_text(tree, "/sys/bus/event_source/devices/cpu"));
	assert_null(quipu_tree_text(tree, ""));
}

/* What a catalog is made of: all that stands below the bus, each file as in the whole tree. */
static void the_tree_of_the_pmus_is_a_part_of_it(void **state)
{
	static const char bus[] = "/sys/bus/event_source/devices/";
	struct quipu_tree *part = quipu_tree_pmus(quipu_system_core(sys), true);
	struct quipu_tree *heads = quipu_tree_pmus(quipu_system_core(sys), false);
	size_t n = 0, have = 0;

	(void)state;
	assert_non_null(part);
	for (size_t i = 0; i < tree->n; i++)
		n += !strncmp(tree->files[i].path, bus, strlen(bus));
	for (size_t i = 0; i < part->n; i++) {
		have += !strncmp(part->files[i].path, bus, strlen(bus));
		assert_non_null(quipu_tree_text(tree, part->files[i].path));
		assert_string_equal(quipu_tree_text(tree, part->files[i].path),
				    part->files[i].text);
	}
	assert_true(n > 0);
	assert_int_equal(have, n);
	assert_non_null(heads);
	assert_non_null(quipu_tree_text(heads, "/sys/bus/event_source/devices/cpu/type"));
	for (size_t i = 0; i < part->n; i++) {
		const char *path = part->files[i].path;
		bool names = strstr(path, "/events/") || strstr(path, "/format/");

		assert_true(names == !quipu_tree_text(heads, path));
	}
	quipu_tree_free(part);
	quipu_tree_free(heads);
}

static void every_event_of_a_pmu_has_its_file(void **state)
{
	struct quipu_pmu *const *pmus;
	size_t n, events = 0;

	(void)state;
	pmus = quipu_core_pmus(quipu_system_core(sys), &n);
	for (size_t i = 0; i < n; i++)
		for (const struct quipu_pmu_event *e = pmus[i]->events; e && e->name;
		     e++, events++) {
			char path[512], line[512];

			snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/events/%s",
				 pmus[i]->name, e->name);
			snprintf(line, sizeof(line), "%s\n", e->terms);
			assert_non_null(quipu_tree_text(tree, path));
			assert_string_equal(quipu_tree_text(tree, path), line);
		}
	assert_true(events > 10);
}

static void every_cpu_has_the_same_set_of_files(void **state)
{
	size_t count[8] = {0};

	(void)state;
	for (size_t i = 0; i < tree->n; i++) {
		unsigned cpu;

		if (sscanf(tree->files[i].path, "/sys/devices/system/cpu/cpu%u/", &cpu) == 1) {
			assert_true(cpu < 8);
			count[cpu]++;
		}
	}
	for (unsigned i = 1; i < 8; i++)
		assert_int_equal(count[i], count[0]);
}

/* A mask has one hexadecimal digit for four CPUs, in words of 32 from the highest down; a list has
 * ranges. */
static void masks_and_lists_of_many_cpus_read_as_the_kernels(void **state)
{
	char source[32768] = "/dts-v1/; / { #address-cells = <2>; #size-cells = <2>; cpus { "
			     "#address-cells = <1>; "
			     "#size-cells = <0>; quipu,isa = \"ppc64le\";";
	struct quipu_system_config config = {.paranoid = -1};
	struct quipu_notes notes = {0};
	struct quipu_manual_signals *s;
	struct quipu_system *big_sys;
	struct quipu_machine *m;
	struct quipu_tree *t;
	struct blob b;

	(void)state;
	for (int i = 0; i < 35; i++)
		snprintf(source + strlen(source), 128,
			 "cpu@%x { reg = <%d>; ibm,chip-id = <%d>; };", i, i, i == 33);
	strcat(source, "}; };");
	b = blob_dts(source);
	m = quipu_machine_parse(b.data, b.len, "big", &notes);
	blob_free(&b);
	assert_non_null(m);
	s = quipu_manual_signals_new(m->ncpus);
	big_sys = quipu_system_new(m, quipu_manual_signals_base(s), &config, &notes);
	assert_non_null(big_sys);
	t = quipu_tree_new(m, quipu_system_core(big_sys));
	assert_non_null(t);
	assert_string_equal(quipu_tree_text(t,
					    "/sys/devices/system/cpu/cpu0/topology/package_cpus"),
			    "5,ffffffff\n");
	assert_string_equal(
		quipu_tree_text(t, "/sys/devices/system/cpu/cpu0/topology/package_cpus_list"),
		"0-32,34\n");
	assert_string_equal(quipu_tree_text(t,
					    "/sys/devices/system/cpu/cpu33/topology/package_cpus"),
			    "2,00000000\n");
	assert_string_equal(
		quipu_tree_text(t, "/sys/devices/system/cpu/cpu33/topology/physical_package_id"),
		"1\n");
	assert_string_equal(quipu_tree_text(t, "/sys/devices/system/cpu/online"), "0-34\n");
	quipu_tree_free(t);
	quipu_system_free(big_sys);
	quipu_manual_signals_free(s);
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

/* ---- programs that read it ---- */

static void make_parents(const char *path)
{
	char dir[1024];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		mkdir(dir, 0755);
	}
}

/* The tree as files below @root. */
static void materialize(const char *root)
{
	for (size_t i = 0; i < tree->n; i++) {
		const struct quipu_tree_file *file = &tree->files[i];
		char path[1024];
		FILE *f;

		snprintf(path, sizeof(path), "%s%s", root, file->path);
		make_parents(path);
		if (file->link) {
			assert_int_equal(symlink(file->text, path), 0);
			continue;
		}
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(file->text, f);
		fclose(f);
	}
}

static char *output_of(const char *command)
{
	FILE *f = popen(command, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
	pclose(f);
	return text;
}

static char root[] = "/tmp/quipu-tree-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/quipu-tree-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	materialize(root);
	return 0;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void links_lead_somewhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < tree->n; i++) {
		char path[1024];
		struct stat st;

		snprintf(path, sizeof(path), "%s%s", root, tree->files[i].path);
		if (stat(path, &st))
			fail_msg("%s leads nowhere", tree->files[i].path);
	}
}

static void lscpu_sees_eight_cores_and_their_caches(void **state)
{
	char command[160], *text;

	(void)state;
	if (system("command -v lscpu >/dev/null 2>&1")) {
		print_message("lscpu is not installed (apt-get install util-linux)\n");
		skip();
	}
	/* lscpu 2.38 looks for topology only where it knows a line of /proc/cpuinfo, and it knows
	 * none of riscv's */
	snprintf(command, sizeof(command),
		 "sed -i 's/^mmu/model name\\t: riscv\\n&/' %s/proc/cpuinfo", root);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command),
		 "LC_ALL=C lscpu -s %s -p=CPU,CORE,SOCKET,NODE,CACHE 2>&1 | grep -v '^#'", root);
	text = output_of(command);
	assert_string_equal(
		text, "0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,2,0,0,,2,2,2,0\n3,3,0,0,,3,3,3,0\n"
		      "4,4,0,0,,4,4,4,0\n5,5,0,0,,5,5,5,0\n6,6,0,0,,6,6,6,0\n7,7,0,0,,7,7,7,0\n");
	free(text);
	snprintf(command, sizeof(command),
		 "LC_ALL=C lscpu -s %s -C=NAME,ONE-SIZE,ALL-SIZE,WAYS,SETS 2>&1 | tr -s ' '", root);
	text = output_of(command);
	assert_non_null(strstr(text, "L1d 32K 256K 8 64\n"));
	assert_non_null(strstr(text, "L2 512K 4M 8 1024\n"));
	assert_non_null(strstr(text, "L3 8M 8M 16 8192\n"));
	free(text);
}

static void perf_list_names_the_events_of_the_pmu(void **state)
{
	char command[160], *text;

	(void)state;
	if (system("perf --version >/dev/null 2>&1")) {
		print_message("perf is not installed (apt-get install linux-perf)\n");
		skip();
	}
	snprintf(command, sizeof(command),
		 "SYSFS_PATH=%s/sys PROC_PATH=%s/proc perf list --raw-dump pmu 2>&1", root, root);
	text = output_of(command);
	if (!strstr(text, "cpu/loads/") || !strstr(text, "cpu/stores/"))
		fail_msg("perf list: %.2000s", text);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_is_the_golden_one),
		cmocka_unit_test(paths_are_sorted_once_and_below_sys_or_proc),
		cmocka_unit_test(the_tree_of_the_pmus_is_a_part_of_it),
		cmocka_unit_test(every_event_of_a_pmu_has_its_file),
		cmocka_unit_test(every_cpu_has_the_same_set_of_files),
		cmocka_unit_test(masks_and_lists_of_many_cpus_read_as_the_kernels),
		cmocka_unit_test_setup_teardown(links_lead_somewhere, make_root, remove_root),
		cmocka_unit_test_setup_teardown(lscpu_sees_eight_cores_and_their_caches, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(perf_list_names_the_events_of_the_pmu, make_root,
						remove_root),
	};

	return cmocka_run_group_tests(tests, open_tree, close_tree);
}
