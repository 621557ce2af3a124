// SPDX-License-Identifier: BSD-2-Clause
/*
 * The output of quipu stat as text: golden tables, fields and JSON lines made from constructed
 * counts. The layouts were compared with those that perf 6.1 prints for the same kinds of lines
 * (columns, field order, keys, number formats).
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include <linux/perf_event.h>

#include "cli/stat_print.h"

#define HW(n, c, v, x)                                                                             \
	{                                                                                          \
		.name = n, .unit = "", .scale = 1, .type = PERF_TYPE_HARDWARE, .config = c,        \
		.value = v, .enabled = 2000000, .running = 2000000, .exactness = x                 \
	}

#define CLOCK                                                                                      \
	{                                                                                          \
		.name = "task-clock", .unit = "msec", .scale = 1e-6, .type = PERF_TYPE_SOFTWARE,   \
		.config = 1, .value = 2000000, .enabled = 2000000, .running = 2000000,             \
		.exactness = QUIPU_MODELLED                                                        \
	}

static const struct stat_row table[] = {
	CLOCK,
	{.name = "context-switches",
	 .unit = "",
	 .scale = 1,
	 .type = PERF_TYPE_SOFTWARE,
	 .config = 3,
	 .value = 1,
	 .enabled = 2000000,
	 .running = 2000000,
	 .exactness = QUIPU_MODELLED},
	{.name = "page-faults",
	 .unit = "",
	 .scale = 1,
	 .type = PERF_TYPE_SOFTWARE,
	 .config = 2,
	 .state = STAT_NOT_MODELLED,
	 .reason = "no pages"},
	HW("cycles", 0, 2000000, QUIPU_MODELLED),
	HW("instructions", 1, 1500000, QUIPU_EXACT),
	HW("branches", 4, 200000, QUIPU_EXACT),
	HW("branch-misses", 5, 4000, QUIPU_MODELLED),
	{.name = "r2a",
	 .unit = "",
	 .scale = 1,
	 .type = PERF_TYPE_RAW,
	 .config = 0x2a,
	 .enabled = 2000000,
	 .state = STAT_NOT_COUNTED,
	 .reason = "no counter \"takes\" it"},
	{.name = "cache-misses",
	 .unit = "",
	 .scale = 1,
	 .type = PERF_TYPE_HARDWARE,
	 .config = 3,
	 .state = STAT_NOT_SUPPORTED,
	 .reason = "no cache is modelled"},
	{.name = "loads",
	 .unit = "",
	 .scale = 1,
	 .type = PERF_TYPE_RAW,
	 .config = 7,
	 .value = 400123,
	 .enabled = 2000000,
	 .running = 1482600,
	 .has_truth = true,
	 .truth = 400000,
	 .exactness = QUIPU_EXACT},
	{.name = "nest/rd/",
	 .unit = "MiB",
	 .scale = 0.5,
	 .type = 10,
	 .config = 1,
	 .value = 7,
	 .enabled = 2000000,
	 .running = 2000000,
	 .exactness = QUIPU_MODELLED},
};

#define ROWS (sizeof(table) / sizeof(*table))

static struct stat_sheet sheet(enum stat_format format)
{
	return (struct stat_sheet){
		.format = format,
		.separator = ",",
		.title = "'./prog'",
		.runs = 1,
		.elapsed = 0.004,
		.host_elapsed = 0.25,
		.host_user = 0.2,
		.host_system = 0.05,
		.rows = table,
		.n = ROWS,
	};
}

/* What stat_print writes; the caller frees it. */
static char *printed(const struct stat_sheet *s, bool first)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	stat_print(f, s, first);
	fclose(f);
	return text;
}

static void expect(const struct stat_sheet *s, bool first, const char *golden)
{
	char *text = printed(s, first);

	assert_string_equal(text, golden);
	free(text);
}

static void table_has_perfs_layout_and_says_what_each_number_is(void **state)
{
	struct stat_sheet s = sheet(STAT_TEXT);

	(void)state;
	expect(&s, true,
	       "\n Performance counter stats for './prog':\n\n"
	       "              2.00 msec task-clock                       modelled #    0.500 CPUs utilized\n"
	       "                 1      context-switches                 modelled #  500.000 /sec\n"
	       "    <not modelled>      page-faults                      -        # no pages\n"
	       "           2000000      cycles                           modelled #    1.000 GHz\n"
	       "           1500000      instructions                     exact    #    0.75  insn per cycle\n"
	       "            200000      branches                         exact    #  100.000 M/sec\n"
	       "              4000      branch-misses                    modelled #    2.00% of all branches\n"
	       "     <not counted>      r2a                              -        # no counter \"takes\" it\n"
	       "   <not supported>      cache-misses                     -        # no cache is modelled\n"
	       "            400123      loads                            estimate #  200.061 M/sec                  "
	       "  (74.13%)  truth: 400000 exact\n"
	       "              3.50 MiB  nest/rd/                         modelled\n"
	       "\n"
	       "       0.004000000 seconds time elapsed                  modelled\n"
	       "       0.250000000 seconds on this host                  host      # 0.200 user, 0.050 sys\n\n");
}

static void fields_are_perfs_then_class_and_truth(void **state)
{
	struct stat_sheet s = sheet(STAT_CSV);

	(void)state;
	expect(&s, true,
	       "2.00,msec,task-clock,2000000,100.00,0.500,CPUs utilized,modelled\n"
	       "1,,context-switches,2000000,100.00,500.000,/sec,modelled\n"
	       "<not modelled>,,page-faults,0,100.00,,,\n"
	       "2000000,,cycles,2000000,100.00,1.000,GHz,modelled\n"
	       "1500000,,instructions,2000000,100.00,0.75,insn per cycle,exact\n"
	       "200000,,branches,2000000,100.00,100.000,M/sec,exact\n"
	       "4000,,branch-misses,2000000,100.00,2.00,of all branches,modelled\n"
	       "<not counted>,,r2a,0,0.00,,,\n"
	       "<not supported>,,cache-misses,0,100.00,,,\n"
	       "400123,,loads,1482600,74.13,200.061,M/sec,estimate,400000\n"
	       "3.50,MiB,nest/rd/,2000000,100.00,,,modelled\n");
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void every_json_line_is_an_object_with_perfs_keys(void **state)
{
	static const char *const keys[] = {"counter-value", "unit",	    "event",
					   "event-runtime", "pcnt-running", "metric-value",
					   "metric-unit",   "class"};
	struct stat_sheet s = sheet(STAT_JSON);
	char *text = printed(&s, true), *save, *line;
	size_t n = 0;

	(void)state;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), n++) {
		json_t *o = json_loads(line, 0, NULL);

		assert_non_null(o);
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			assert_non_null(json_object_get(o, keys[k]));
		assert_string_equal(text_of(o, "event"), table[n].name);
		if (table[n].state == STAT_COUNTED) {
			assert_string_equal(text_of(o, "class"),
					    n == 9 ? "estimate"
						   : quipu_exactness_name(table[n].exactness));
			assert_null(json_object_get(o, "reason"));
		} else {
			assert_string_equal(text_of(o, "class"), "none");
			assert_string_equal(text_of(o, "reason"), table[n].reason);
		}
		assert_int_equal(json_is_true(json_object_get(o, "estimate")), n == 9);
		if (n == 9) {
			assert_string_equal(text_of(o, "exact-value"), "400000.000000");
			assert_string_equal(text_of(o, "exact-value-class"), "exact");
		} else
			assert_null(json_object_get(o, "exact-value"));
		json_decref(o);
	}
	assert_int_equal(n, ROWS);
	free(text);
}

static void nothing_is_exact_when_some_of_it_was_not_counted(void **state)
{
	static const enum stat_format formats[] = {STAT_TEXT, STAT_CSV, STAT_JSON};

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct stat_sheet s = sheet(formats[i]);
		char *text;

		s.partial = true;
		text = printed(&s, true);
		assert_non_null(strstr(text, "partial"));
		assert_non_null(strstr(text, "modelled"));
		assert_null(strstr(text, " exact"));
		assert_null(strstr(text, ",exact"));
		assert_null(strstr(text, ": \"exact\""));
		free(text);
	}
}

static void json_line_is_spelled_as_perf_spells_it(void **state)
{
	struct stat_sheet s = sheet(STAT_JSON);

	(void)state;
	s.rows = &table[4];
	s.n = 1;
	s.interval = true;
	s.at = 0.25;
	expect(&s, false,
	       "{\"interval\" : 0.250000000, \"counter-value\" : \"1500000.000000\", \"unit\" : \"\", "
	       "\"event\" : \"instructions\", \"event-runtime\" : 2000000, \"pcnt-running\" : 100.00, "
	       "\"metric-value\" : 0.000000, \"metric-unit\" : \"\", \"class\" : \"exact\"}\n");
}

static void hostile_names_stay_inside_their_json_string(void **state)
{
	struct stat_row row = table[4];
	struct stat_sheet s = sheet(STAT_JSON);
	char *text;
	json_t *o;

	(void)state;
	row.name = "a\"b\\c\nd\x01";
	s.rows = &row;
	s.n = 1;
	text = printed(&s, true);
	o = json_loads(text, 0, NULL);
	assert_non_null(o);
	assert_string_equal(text_of(o, "event"), row.name);
	assert_string_equal(strchr(text, '\n'), "\n");
	json_decref(o);
	free(text);

	row.name = "\xff\xc3 \xed\xa0\x80 \xc3\xa9"; /* bytes that are no UTF-8, and one letter that
							is */
	text = printed(&s, true);
	o = json_loads(text, 0, NULL);
	assert_non_null(o);
	assert_string_equal(text_of(o, "event"),
			    "\xc3\xbf\xc3\x83 \xc3\xad\xc2\xa0\xc2\x80 \xc3\xa9");
	json_decref(o);
	free(text);
}

static void repeated_runs_show_mean_and_deviation(void **state)
{
	struct stat_row row = table[3];
	struct stat_sheet s = sheet(STAT_TEXT);

	(void)state;
	row.deviation = 1.25;
	s.rows = &row;
	s.n = 1;
	s.runs = 3;
	s.elapsed_deviation = 0.0001;
	expect(&s, true,
	       "\n Performance counter stats for './prog' (3 runs):\n\n"
	       "           2000000      cycles                           modelled                                   "
	       "  ( +-  1.25% )\n"
	       "\n"
	       "       0.004000000 +- 0.000100000 seconds time elapsed  ( +-  2.50% )  modelled\n"
	       "       0.250000000 seconds on this host                  host      # 0.200 user, 0.050 sys\n\n");
	s.format = STAT_CSV;
	expect(&s, true, "2000000,,cycles,1.25%,2000000,100.00,,,modelled\n");
	s.format = STAT_JSON;
	expect(&s, true,
	       "{\"counter-value\" : \"2000000.000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"variance\" : 1.25, "
	       "\"event-runtime\" : 2000000, \"pcnt-running\" : 100.00, \"metric-value\" : 0.000000, "
	       "\"metric-unit\" : \"\", \"class\" : \"modelled\"}\n");
}

static void intervals_have_a_head_once_and_no_foot(void **state)
{
	struct stat_sheet s = sheet(STAT_TEXT);

	(void)state;
	s.interval = true;
	s.at = 0.2;
	s.n = 1;
	s.elapsed = 0.002;
	expect(&s, true,
	       "#           time             counts unit events\n"
	       "     0.200000000               2.00 msec task-clock                       modelled #    1.000 CPUs utilized\n");
	s.at = 0.4;
	expect(&s, false,
	       "     0.400000000               2.00 msec task-clock                       modelled #    1.000 CPUs utilized\n");
	s.format = STAT_CSV;
	expect(&s, false,
	       "     0.400000000,2.00,msec,task-clock,2000000,100.00,1.000,CPUs utilized,modelled\n");
}

static void each_place_derives_from_its_own_counts(void **state)
{
	struct stat_row rows[] = {
		HW("cycles", 0, 1000, QUIPU_MODELLED),
		HW("cycles", 0, 4000, QUIPU_MODELLED),
		HW("instructions", 1, 500, QUIPU_EXACT),
		HW("instructions", 1, 1000, QUIPU_EXACT),
	};
	struct stat_sheet s = sheet(STAT_TEXT);
	char *text;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		rows[i].where_id = i % 2;
		rows[i].where = i % 2 ? "CPU1" : "CPU0";
		rows[i].units = 4;
	}
	s.rows = rows;
	s.n = 4;
	s.aggregation = STAT_CPU;
	text = printed(&s, true);
	assert_non_null(strstr(
		text,
		"CPU0                  500      instructions                     exact    #    0.50  "
		"insn per cycle\n"));
	assert_non_null(strstr(
		text,
		"CPU1                 1000      instructions                     exact    #    0.25  "
		"insn per cycle\n"));
	free(text);
	s.n = 1;
	s.format = STAT_CSV;
	expect(&s, true, "CPU0,1000,,cycles,2000000,100.00,,,modelled\n");
	rows[0].where = "S0-D0-C1";
	s.aggregation = STAT_CORE;
	expect(&s, true, "S0-D0-C1,4,1000,,cycles,2000000,100.00,,,modelled\n");
	s.format = STAT_JSON;
	text = printed(&s, true);
	assert_int_equal(
		strncmp(text,
			"{\"core\" : \"S0-D0-C1\", \"aggregate-number\" : 4, \"counter-value\"",
			60),
		0);
	free(text);
	rows[0].where = "CPU0";
	s.aggregation = STAT_CPU;
	text = printed(&s, true);
	assert_int_equal(strncmp(text, "{\"cpu\" : \"0\", \"counter-value\"", 29), 0);
	free(text);
	rows[0].where = "loop-4711";
	s.aggregation = STAT_THREAD;
	s.format = STAT_TEXT;
	text = printed(&s, true);
	assert_non_null(strstr(text, "\n           loop-4711               1000      cycles "));
	free(text);
}

static void ratios_are_made_within_the_same_rings(void **state)
{
	struct stat_row rows[] = {HW("cycles:k", 0, 1000, QUIPU_MODELLED),
				  HW("instructions:u", 1, 500, QUIPU_EXACT)};
	struct stat_sheet s = sheet(STAT_CSV);

	(void)state;
	rows[0].rings = 5;
	rows[1].rings = 6;
	s.rows = rows;
	s.n = 2;
	expect(&s, true,
	       "1000,,cycles:k,2000000,100.00,,,modelled\n"
	       "500,,instructions:u,2000000,100.00,,,exact\n");
}

/* An event whose turn never came has no estimate, but a truth. */
static void an_event_that_never_ran_has_its_truth_still(void **state)
{
	struct stat_row row = HW("instructions", 1, 0, QUIPU_EXACT);
	struct stat_sheet s = sheet(STAT_CSV);

	(void)state;
	row.running = 0;
	row.state = STAT_NOT_COUNTED;
	row.reason = "all taken";
	row.has_truth = true;
	row.truth = 77;
	s.rows = &row;
	s.n = 1;
	expect(&s, true, "<not counted>,,instructions,0,0.00,,,,77\n");
	s.format = STAT_JSON;
	expect(&s, true,
	       "{\"counter-value\" : \"<not counted>\", \"unit\" : \"\", \"event\" : \"instructions\", "
	       "\"event-runtime\" : 0, \"pcnt-running\" : 0.00, \"metric-value\" : 0.000000, \"metric-unit\" : \"\", "
	       "\"class\" : \"none\", \"exact-value\" : \"77.000000\", "
	       "\"exact-value-class\" : \"exact\", \"reason\" : \"all taken\"}\n");
	s.format = STAT_TEXT;
	s.interval = true;
	expect(&s, false,
	       "     0.000000000      <not counted>      instructions                     -        # all taken  "
	       "truth: 77 exact\n");
}

static void a_zero_that_must_be_says_why(void **state)
{
	struct stat_row row = HW("cycles:k", 0, 0, QUIPU_MODELLED);
	struct stat_sheet s = sheet(STAT_TEXT);

	(void)state;
	row.reason = "no kernel runs";
	s.rows = &row;
	s.n = 1;
	s.interval = true;
	expect(&s, false,
	       "     0.000000000                  0      cycles:k                         modelled # no kernel runs\n");
}

/* A driver that took the event but not all that was asked of it says so, beside the count. */
static void what_a_driver_remarks_stands_beside_the_count(void **state)
{
	struct stat_row rows[] = {HW("cycles:u", 0, 4000, QUIPU_MODELLED),
				  HW("instructions:u", 1, 500, QUIPU_EXACT)};
	struct stat_sheet s = sheet(STAT_TEXT);

	(void)state;
	rows[0].remark = rows[1].remark = "counts every level";
	s.rows = rows;
	s.n = 2;
	s.interval = true;
	expect(&s, false,
	       "     0.000000000               4000      cycles:u                         modelled # counts every level\n"
	       "     0.000000000                500      instructions:u                   exact    #    0.12  "
	       "insn per cycle          # counts every level\n");
	s.interval = false;
	s.format = STAT_JSON;
	s.n = 1;
	expect(&s, true,
	       "{\"counter-value\" : \"4000.000000\", \"unit\" : \"\", \"event\" : \"cycles:u\", "
	       "\"event-runtime\" : 2000000, \"pcnt-running\" : 100.00, \"metric-value\" : 0.000000, "
	       "\"metric-unit\" : \"\", \"class\" : \"modelled\", \"remark\" : \"counts every level\"}\n");
}

/* Thousands come from the locale; what programs read never does. */
static void locale_groups_the_table_only(void **state)
{
	struct stat_sheet s = sheet(STAT_TEXT);
	char *text;

	if (!setlocale(LC_NUMERIC, "en_US.UTF-8") && !setlocale(LC_NUMERIC, "en_US")) {
		print_message(
			"# skipped: no locale with thousands separators (en_US) is installed\n");
		skip();
	}
	(void)state;
	text = printed(&s, true);
	assert_non_null(strstr(text, "2,000,000      cycles"));
	free(text);
	s.digits = true;
	text = printed(&s, true);
	assert_non_null(strstr(text, "2000000      cycles"));
	free(text);
	s.format = STAT_CSV;
	text = printed(&s, true);
	assert_non_null(strstr(text, "\n2000000,,cycles"));
	free(text);
	setlocale(LC_NUMERIC, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_has_perfs_layout_and_says_what_each_number_is),
		cmocka_unit_test(fields_are_perfs_then_class_and_truth),
		cmocka_unit_test(every_json_line_is_an_object_with_perfs_keys),
		cmocka_unit_test(nothing_is_exact_when_some_of_it_was_not_counted),
		cmocka_unit_test(json_line_is_spelled_as_perf_spells_it),
		cmocka_unit_test(hostile_names_stay_inside_their_json_string),
		cmocka_unit_test(repeated_runs_show_mean_and_deviation),
		cmocka_unit_test(intervals_have_a_head_once_and_no_foot),
		cmocka_unit_test(each_place_derives_from_its_own_counts),
		cmocka_unit_test(ratios_are_made_within_the_same_rings),
		cmocka_unit_test(an_event_that_never_ran_has_its_truth_still),
		cmocka_unit_test(a_zero_that_must_be_says_why),
		cmocka_unit_test(what_a_driver_remarks_stands_beside_the_count),
		cmocka_unit_test(locale_groups_the_table_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
