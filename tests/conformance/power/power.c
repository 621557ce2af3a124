// SPDX-License-Identifier: BSD-2-Clause
/*
 * The POWER9 core PMU against the cases of the power-cpu sheet (section 8) that need no engine:
 * names, codes, constraints, register values, opening, sampling by hand-fed signals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/system.h>
#include <quipu/tree.h>

#include "platform/power/constraint.h"
#include "platform/power/driver.h"
#include "platform/power/events.h"
#include "platform/power/hardware.h"

static struct {
	struct quipu_machine *machine;
	struct quipu_notes notes;
	struct quipu_manual_signals *manual;
	struct quipu_system *system;
	struct quipu_core *core;
	struct quipu_task *task;
} bed;

static void *load(const char *name, size_t *size)
{
	const char *dir = getenv("QUIPU_MACHINES");
	char path[4096];
	void *p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.dtb", dir ? dir : ".", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	p = malloc(*size);
	assert_non_null(p);
	assert_int_equal(fread(p, 1, *size, f), *size);
	fclose(f);
	return p;
}

static uint64_t written[1024]; /* registers of CPU 0, as they were last written */

static void on_trace(void *arg, const char *line)
{
	unsigned spr;
	unsigned long long value;

	(void)arg;
	if (sscanf(line, "cpu 0: mtspr %u <- %llx", &spr, &value) == 2 && spr < 1024)
		written[spr] = value;
}

/* Machine @name, with @property of the PMU's node set to @value (NULL: there, and empty). */
static void begin_on(const char *name, const char *property, const char *value)
{
	const struct quipu_system_config config = {.paranoid = -1, .trace = on_trace};
	size_t size;
	void *fdt = load(name, &size);

	memset(&bed, 0, sizeof(bed));
	if (property) {
		int node;

		fdt = realloc(fdt, size + 4096);
		assert_non_null(fdt);
		assert_int_equal(fdt_open_into(fdt, fdt, (int)size + 4096), 0);
		node = fdt_node_offset_by_compatible(fdt, -1, "quipu,power9-pmu");
		assert_int_equal(fdt_setprop(fdt, node, property, value,
					     value ? (int)strlen(value) + 1 : 0),
				 0);
		assert_int_equal(fdt_pack(fdt), 0);
		size = fdt_totalsize(fdt);
	}
	bed.machine = quipu_machine_parse(fdt, size, name, &bed.notes);
	free(fdt);
	assert_non_null(bed.machine);
	bed.manual = quipu_manual_signals_new(bed.machine->ncpus);
	bed.system = quipu_system_new(bed.machine, quipu_manual_signals_base(bed.manual), &config,
				      &bed.notes);
	assert_non_null(bed.system);
	bed.core = quipu_system_core(bed.system);
	bed.task = quipu_task_new(bed.core, NULL, 100, 100, false, "test", 0);
	assert_non_null(bed.task);
	quipu_system_run(bed.system, 0, bed.task, 0);
}

static int setup(void **state)
{
	(void)state;
	begin_on("power9", NULL, NULL);
	return 0;
}

static int setup_lpar(void **state)
{
	(void)state;
	begin_on("lpar", NULL, NULL);
	return 0;
}

static int setup_quirk(void **state)
{
	(void)state;
	begin_on("power9", "quipu,start-quirk", NULL);
	return 0;
}

static int setup_stops(void **state)
{
	(void)state;
	begin_on("power9", "quipu,throttle", "stop");
	return 0;
}

static int setup_zero(void **state)
{
	(void)state;
	begin_on("power9", "quipu,unknown-events", "zero");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	quipu_system_free(bed.system);
	quipu_manual_signals_free(bed.manual);
	quipu_machine_free(bed.machine);
	quipu_notes_free(&bed.notes);
	return 0;
}

static int open_attr(struct quipu_attr *attr, pid_t pid, int cpu, struct quipu_event *group,
		     struct quipu_event **e)
{
	const struct quipu_caller who = {.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	uint32_t back;

	attr->size = sizeof(*attr);
	return quipu_event_open(bed.core, &who, attr, sizeof(*attr), pid, cpu, group, 0, &back, e);
}

static int open_event(uint32_t type, uint64_t config, pid_t pid, int cpu, struct quipu_event *group,
		      struct quipu_event **e)
{
	struct quipu_attr attr = {.type = type, .config = config};

	return open_attr(&attr, pid, cpu, group, e);
}

static int try_open(uint32_t type, uint64_t config)
{
	struct quipu_event *e = NULL;
	int rc = open_event(type, config, 100, -1, NULL, &e);

	quipu_event_close(e);
	return rc;
}

static void feed(quipu_signal s, uint64_t n)
{
	quipu_manual_signals_feed(bed.manual, 0, s, n, 0x10001234);
}

static uint64_t count(struct quipu_event *e)
{
	uint64_t v = 0;

	assert_int_equal(quipu_event_read(e, &v, sizeof(v)), sizeof(v));
	return v;
}

/* ---- C1 to C5 ---- */

static void c1_sysfs(void **state)
{
	struct quipu_tree *t = quipu_tree_new(bed.machine, bed.core);
	static const char dir[] = "/sys/bus/event_source/devices/cpu/";
	unsigned formats = 0, events = 0;

	(void)state;
	assert_non_null(t);
	for (size_t i = 0; i < t->n; i++) {
		if (strncmp(t->files[i].path, dir, strlen(dir)))
			continue;
		formats += !strncmp(t->files[i].path + strlen(dir), "format/", 7);
		events +=
			!t->files[i].own && !strncmp(t->files[i].path + strlen(dir), "events/", 7);
	}
	assert_int_equal(formats, 13);
	assert_int_equal(events, 24);
	assert_string_equal(quipu_tree_text(t, "/sys/bus/event_source/devices/cpu/type"), "4\n");
	assert_string_equal(
		quipu_tree_text(t, "/sys/bus/event_source/devices/cpu/events/instructions"),
		"event=0x02\n");
	assert_string_equal(quipu_tree_text(t, "/sys/bus/event_source/devices/cpu/caps/pmu_name"),
			    "POWER9");
	assert_null(quipu_tree_text(t, "/sys/bus/event_source/devices/cpu/cpumask"));
	quipu_tree_free(t);
}

static void c2_generic_events(void **state)
{
	static const int want[10] = {[6] = -EOPNOTSUPP, [9] = -EOPNOTSUPP};
	uint64_t code;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(power_hardware_code(i, &code), want[i]);
	assert_int_equal(try_open(PERF_TYPE_HARDWARE, 0), 0);
	assert_int_equal(try_open(PERF_TYPE_HARDWARE, 1), 0);
	assert_int_equal(try_open(PERF_TYPE_HARDWARE, 6), -EOPNOTSUPP);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(try_open(PERF_TYPE_HARDWARE, i), want[i]);
}

/* The whole table of the sheet: cache, then read, write, prefetch; each access and miss. */
static void c3_cache_events(void **state)
{
	static const int32_t want[7][3][2] = {
		{{0x100fc, 0x2c04e}, {0, 0x300f0}, {0x20054, 0}},
		{{0x4080, 0x200fd}, {0x408c, -1}, {0x488c, 0}},
		{{0x4c042, 0x300fe}, {0, 0}, {0x4e052, 0}},
		{{0, 0x300fc}, {-1, -1}, {-1, -1}},
		{{0, 0x400fc}, {-1, -1}, {-1, -1}},
		{{0x4d05e, 0x400f6}, {-1, -1}, {-1, -1}},
		{{-1, -1}, {-1, -1}, {-1, -1}},
	};

	(void)state;
	for (uint64_t cache = 0; cache < 9; cache++)
		for (uint64_t op = 0; op < 5; op++)
			for (uint64_t result = 0; result < 4; result++) {
				uint64_t config = cache | op << 8 | result << 16, code = 0;
				bool inside = cache < 7 && op < 3 && result < 2;
				int32_t w = inside ? want[cache][op][result] : -1;
				int err = w > 0 ? 0 : w ? -EINVAL : -EOPNOTSUPP;

				assert_int_equal(power_cache_code(config, &code), err);
				assert_int_equal(code, w > 0 ? w : 0);
				assert_int_equal(try_open(PERF_TYPE_HW_CACHE, config), err);
			}
}

static void c4_malformed_codes(void **state)
{
	static const uint64_t codes[] = {0x21e, UINT64_C(1) << 52 | 0x1e, 0x700fa, 0x500f2,
					 UINT64_C(1) << 63 | 0x1e};

	(void)state;
	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_int_equal(try_open(PERF_TYPE_RAW, codes[i]), -EINVAL);
}

static void c5_sample_modes(void **state)
{
	unsigned opened = 0, refused = 0;

	(void)state;
	for (uint64_t mode = 0; mode < 32; mode++) {
		int rc = try_open(PERF_TYPE_RAW, 0x401e0 | mode << 24);

		opened += rc == 0;
		refused += rc == -EINVAL;
	}
	assert_int_equal(opened, 16);
	assert_int_equal(refused, 16);
	assert_int_equal(try_open(PERF_TYPE_RAW, 0x401e0 | UINT64_C(15) << 36), -EINVAL);
	assert_int_equal(try_open(PERF_TYPE_RAW, 0x401e0 | UINT64_C(15) << 32), -EINVAL);
}

static void c6_blacklist(void **state)
{
	(void)state;
	assert_int_equal(try_open(PERF_TYPE_RAW, 0x2c056), -EINVAL);
	assert_int_equal(try_open(PERF_TYPE_RAW, 0x4003c), -EINVAL);
	assert_int_equal(try_open(PERF_TYPE_RAW, 0x2c056 | UINT64_C(1) << 50), -EOPNOTSUPP);
	assert_true(power_blacklisted(0x004e1201, 0x100f4));
	assert_false(power_blacklisted(0x004e3202, 0x2c056));
}

/* ---- C7: the table of register values ---- */

static void c7_register_values(void **state)
{
	static const struct {
		uint64_t code[6];
		unsigned pmc[6];
		uint64_t mmcr0, mmcr1, mmcra;
	} rows[] = {
		{{0x1e}, {1}, 0x8010, 0x1e000000, UINT64_C(0x80000000000)},
		{{0x1e, 2}, {1, 2}, 0xc010, 0x1e020000, UINT64_C(0x80000000000)},
		{{0x1e, 2, 0x100fc, 0x2c04e},
		 {3, 4, 1, 2},
		 0xc010,
		 UINT64_C(0x0c000000fc4e1e02),
		 UINT64_C(0x80000000000)},
		{{0x1e, 2, 0x100fc, 0x2c04e, 0x4d05e},
		 {3, 5, 1, 2, 4},
		 0xc000,
		 UINT64_C(0x0c0d0000fc4e1e5e),
		 UINT64_C(0x80000000000)},
		{{0x1e, 2, 0x4d05e, 0x100fc, 0x2c04e, 0x300f0},
		 {6, 5, 4, 1, 2, 3},
		 0xc000,
		 UINT64_C(0x0c0d0000fc4ef05e),
		 UINT64_C(0x80000000000)},
		{{UINT64_C(0x34340401e0)}, {4}, 0x4010, 0xe0, 0x13451},
		{{UINT64_C(0x343c0401e0)}, {4}, 0x4010, 0xe0, 0x13471},
		{{0x16880, 0x46880},
		 {1, 4},
		 0xc010,
		 UINT64_C(0x6006008280000080),
		 UINT64_C(0x80000000000)},
	};
	static const bool task[6] = {true, true, true, true, true, true};
	static const uint64_t freeze[6];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t code[6];
		struct power_values v;
		unsigned n = 0;

		memcpy(code, rows[i].code, sizeof(code));
		while (n < 6 && code[n])
			n++;
		assert_int_equal(power_fit(code, task, n), 0);
		assert_int_equal(power_compute(code, freeze, n, &v), 0);
		for (unsigned k = 0; k < n; k++)
			assert_int_equal(v.pmc[k], rows[i].pmc[k]);
		assert_int_equal(v.mmcr0, rows[i].mmcr0);
		assert_int_equal(v.mmcr1, rows[i].mmcr1);
		assert_int_equal(v.mmcra, rows[i].mmcra);
	}
}

/* ---- C8 to C12: groups ---- */

/* Open the codes as one group; the index of the first that is refused, or their number. */
static unsigned open_group(const uint64_t *code, unsigned n, pid_t pid, int cpu, int *err)
{
	struct quipu_event *e[8] = {NULL};
	unsigned i;

	*err = 0;
	for (i = 0; i < n && !*err; i++)
		*err = open_event(PERF_TYPE_RAW, code[i], pid, cpu, e[0], &e[i]);
	for (unsigned k = n; k-- > 0;)
		quipu_event_close(e[k]);
	return *err ? i - 1 : i;
}

static void c8_six_of_a_task_four_of_a_cpu(void **state)
{
	static const uint64_t code[] = {0x1e, 2, 0x4d05e, 0x100fc, 0x2c04e, 0x300f0};
	static const int pmc[] = {6, 5, 4, 1, 2, 3};
	struct quipu_event *e[6] = {NULL};
	int err;

	(void)state;
	assert_int_equal(open_group(code, 6, -1, 0, &err), 4);
	assert_int_equal(err, -EINVAL);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(open_event(PERF_TYPE_RAW, code[i], 100, -1, e[0], &e[i]), 0);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(quipu_event_hw(e[i])->idx + 1, pmc[i]);
	for (unsigned i = 6; i-- > 0;)
		quipu_event_close(e[i]);
}

static void c9_cycles_five_times(void **state)
{
	static const uint64_t code[] = {0x1e, 0x1e, 0x1e, 0x1e, 0x1e, 0x1e};
	struct quipu_event *e[5] = {NULL};
	unsigned used = 0, six = 0;
	int err;

	(void)state;
	assert_int_equal(open_group(code, 6, 100, -1, &err), 5);
	assert_int_equal(err, -EINVAL);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(open_event(PERF_TYPE_RAW, 0x1e, 100, -1, e[0], &e[i]), 0);
	for (unsigned i = 0; i < 5; i++) {
		used |= 1u << (quipu_event_hw(e[i])->idx + 1);
		six += quipu_event_hw(e[i])->idx + 1 == 6;
	}
	assert_int_equal(used, 1u << 6 | 0xfu << 1);
	assert_int_equal(six, 1);
	feed(QUIPU_SIGNAL_CYCLES, 1234);
	for (unsigned i = 5; i-- > 0;) {
		assert_int_equal(count(e[i]), 1234);
		quipu_event_close(e[i]);
	}
}

/* Opened apart, both of the pair run, but never together. */
static void take_turns(const uint64_t pair[2])
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
						 PERF_FORMAT_TOTAL_TIME_RUNNING};
	struct quipu_event *e[2] = {NULL};
	uint64_t v[2][3];

	for (unsigned i = 0; i < 2; i++) {
		attr.config = pair[i];
		assert_int_equal(open_attr(&attr, 100, -1, NULL, &e[i]), 0);
	}
	feed(QUIPU_SIGNAL_CYCLES, 600000000); /* 200 ms */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(quipu_event_read(e[i], v[i], sizeof(v[i])), sizeof(v[i]));
		assert_true(v[i][2] > 0 && v[i][2] < v[i][1]);
	}
	assert_true(v[0][2] + v[1][2] <= v[0][1]);
	quipu_event_close(e[0]);
	quipu_event_close(e[1]);
}

static void c10_pairs_that_want_one_counter(void **state)
{
	static const uint64_t pairs[][2] = {{0x4d05e, 0x400f6},
					    {0x100f8, 0x1e054},
					    {UINT64_C(0x34340401e0), UINT64_C(0x343c0401e0)}};
	int err;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(open_group(pairs[i], 2, 100, -1, &err), 1);
		assert_int_equal(err, -EINVAL);
		take_turns(pairs[i]);
	}
}

static void c11_alternatives(void **state)
{
	struct quipu_event *a, *b;

	(void)state;
	assert_int_equal(open_event(PERF_TYPE_RAW, 0x3e054, 100, -1, NULL, &a), 0);
	assert_int_equal(open_event(PERF_TYPE_RAW, 0x300f0, 100, -1, a, &b), 0);
	feed(QUIPU_SIGNAL_L1D_READ_MISSES, 700);
	feed(QUIPU_SIGNAL_L1D_WRITE_MISSES, 30);
	assert_int_equal(count(a), 700);
	assert_int_equal(count(b), 30);
	assert_int_equal(quipu_event_hw(a)->idx + 1, 4);
	quipu_event_close(b);
	quipu_event_close(a);
}

static void c12_second_pass_is_lax(void **state)
{
	static const bool task[3] = {true, true, true};
	uint64_t alone[] = {0x16880}, pair[] = {0x46880, 0x16880},
		 lax[] = {0x200f4, 0x2c04e, 0x16880};
	static const uint64_t freeze[3];
	struct power_values v;

	(void)state;
	assert_int_equal(power_fit(pair, task, 2), 0);
	assert_int_equal(power_fit(lax, task, 3), 0);
	assert_int_equal(power_compute(lax, freeze, 3, &v), 0);
	assert_int_equal(v.pmc[0], 6);
	assert_int_equal(v.pmc[1], 2);
	assert_int_equal(v.pmc[2], 1);
	assert_int_not_equal(power_fit(alone, task, 1), 0);
}

static uint64_t pmis(void)
{
	uint64_t n;

	assert_true(quipu_system_pmis(bed.system, 0, &n));
	return n;
}

/* ---- C13 to C15, C22: counting and sampling ---- */

static void c13_counts_through_interrupts(void **state)
{
	const uint64_t n = 3 * (UINT64_C(1) << 31) + 12345;
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_event(PERF_TYPE_RAW, 2, 100, -1, NULL, &e), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, n);
	assert_int_equal(count(e), n);
	assert_int_equal(pmis(), 3);
	quipu_event_close(e);
}

static uint64_t records_of(void *ring, size_t pages, uint32_t type)
{
	uint64_t head, n = 0;
	const uint8_t *data = (const uint8_t *)ring + 4096;

	memcpy(&head, (uint8_t *)ring + 1024, 8);
	assert_true(head < pages * 4096);
	for (uint64_t at = 0; at < head;) {
		struct perf_event_header h;

		memcpy(&h, data + at, sizeof(h));
		n += h.type == type;
		at += h.size;
	}
	return n;
}

static uint64_t samples_of(void *ring, size_t pages)
{
	return records_of(ring, pages, PERF_RECORD_SAMPLE);
}

static void c14_every_period_a_sample(void **state)
{
	static const uint64_t periods[] = {97, 4099, (UINT64_C(1) << 31) - 1, UINT64_C(1) << 31,
					   (UINT64_C(1) << 31) + 5};
	static const uint64_t totals[] = {97 * 50 + 3, 4099 * 20 + 1, UINT64_C(1) << 34,
					  UINT64_C(1) << 34, UINT64_C(1) << 34};

	(void)state;
	for (unsigned i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
		struct quipu_attr attr = {.type = PERF_TYPE_RAW,
					  .config = 2,
					  .sample_period = periods[i],
					  .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD};
		void *ring = aligned_alloc(4096, 17 * 4096);
		struct quipu_event *e;
		uint64_t before;

		assert_non_null(ring);
		memset(ring, 0, 17 * 4096);
		assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), 0);
		assert_int_equal(quipu_event_map(e, &who, ring, 16, true), 0);
		before = pmis();
		feed(QUIPU_SIGNAL_INSTRUCTIONS, totals[i]);
		assert_int_equal(count(e), totals[i]);
		/* A counter goes no farther than 2^31: past it every sample takes two interrupts.
		 */
		assert_int_equal(pmis() - before,
				 totals[i] / periods[i] * (periods[i] > UINT64_C(1) << 31 ? 2 : 1));
		assert_int_equal(samples_of(ring, 16), totals[i] / periods[i]);
		quipu_event_unmap(e);
		quipu_event_close(e);
		free(ring);
	}
}

static void c15_two_on_one_instruction(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 2,
				  .sample_period = 100,
				  .sample_type = PERF_SAMPLE_IP};
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	struct quipu_event *e[2];
	void *ring[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		ring[i] = aligned_alloc(4096, 2 * 4096);
		assert_non_null(ring[i]);
		memset(ring[i], 0, 2 * 4096);
		assert_int_equal(open_attr(&attr, 100, -1, NULL, &e[i]), 0);
		assert_int_equal(quipu_event_map(e[i], &who, ring[i], 1, true), 0);
	}
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1000);
	assert_int_equal(pmis(), 10);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(samples_of(ring[i], 1), 10);
		assert_int_equal(count(e[i]), 1000);
		quipu_event_unmap(e[i]);
		quipu_event_close(e[i]);
		free(ring[i]);
	}
}

static void c19_a_new_period_adds_nothing(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 2,
				  .sample_period = 1000,
				  .sample_type = PERF_SAMPLE_IP};
	uint64_t period = 300;
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 400);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_PERIOD, (uintptr_t)&period), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1200);
	assert_int_equal(count(e), 1600);
	quipu_event_close(e);
}

/* The property: what was left of the old period is counted on top, as Linux does. */
static void c19_as_linux_adds_the_rest(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 2,
				  .sample_period = 1000,
				  .sample_type = PERF_SAMPLE_IP};
	uint64_t period = 300;
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 400);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_PERIOD, (uintptr_t)&period), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1200);
	assert_int_equal(count(e), 1600 + 600);
	quipu_event_close(e);
}

static void c21_the_row_of_interrupts(void **state)
{
	char *text = quipu_tree_interrupts(bed.system), *row;
	struct quipu_attr attr = {.type = PERF_TYPE_RAW, .config = 2, .sample_period = 100};
	struct quipu_event *e;

	(void)state;
	assert_non_null(text);
	row = strstr(text, "\nPMI: ");
	assert_non_null(row);
	assert_int_equal(strlen(row + 1),
			 5 + 32 * 11 + 2 + strlen("Performance monitoring interrupts\n"));
	assert_memory_equal(row + 6, "         0          0 ", 22);
	assert_string_equal(row + 6 + 32 * 11, "  Performance monitoring interrupts\n");
	free(text);
	assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1250);
	text = quipu_tree_interrupts(bed.system);
	assert_non_null(text);
	assert_memory_equal(strstr(text, "\nPMI: ") + 6, "        12          0 ", 22);
	free(text);
	quipu_event_close(e);
}

static void c23_branch_stacks(void **state)
{
	static const struct {
		uint64_t kinds;
		int err;
	} rows[] = {
		{PERF_SAMPLE_BRANCH_ANY, 0},
		{PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER, 0},
		{PERF_SAMPLE_BRANCH_ANY_CALL, 0},
		{PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_USER, 0},
		{PERF_SAMPLE_BRANCH_ANY_RETURN, -EOPNOTSUPP},
		{PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_ANY_CALL, -EOPNOTSUPP},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_attr attr = {.type = PERF_TYPE_RAW,
					  .config = 2,
					  .sample_period = 1000,
					  .sample_type = PERF_SAMPLE_BRANCH_STACK,
					  .branch_sample_type = rows[i].kinds};
		struct quipu_event *e = NULL;

		assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), rows[i].err);
		quipu_event_close(e);
	}
}

/* An event that is one signal less another: counted and sampled at the right place. */
static void a_difference_of_signals(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 0x4080, /* fetches less those that missed */
				  .sample_period = 100,
				  .sample_type = PERF_SAMPLE_IP};
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	void *ring = aligned_alloc(4096, 2 * 4096);
	struct quipu_event *e;

	(void)state;
	assert_non_null(ring);
	memset(ring, 0, 2 * 4096);
	assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), 0);
	assert_int_equal(quipu_event_map(e, &who, ring, 1, true), 0);
	for (unsigned i = 0; i < 50; i++) {
		feed(QUIPU_SIGNAL_L1I_MISSES, 3);
		feed(QUIPU_SIGNAL_INSTRUCTIONS, 10);
	}
	assert_int_equal(count(e), 350);
	assert_int_equal(samples_of(ring, 1), 3);
	quipu_event_unmap(e);
	quipu_event_close(e);
	free(ring);
}

/* Modifiers none, :u, :k, :h: freeze bits of the first counter, and what of a program is counted.
 */
static void modifiers(const uint64_t want[4])
{
	static const uint64_t flags[4] = {0, QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV,
					  QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_HV,
					  QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_KERNEL};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned n = 1; n <= 6; n += 4) { /* PMC1, PMC5 */
			struct quipu_attr attr = {.type = PERF_TYPE_RAW,
						  .config = n == 1 ? 2 : 0x500fa,
						  .flags = flags[i]};
			struct quipu_event *e;

			written[SPR_MMCR2] = ~UINT64_C(0);
			assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), 0);
			assert_int_equal(written[SPR_MMCR2], want[i] >> 9 * (n - 1));
			feed(QUIPU_SIGNAL_INSTRUCTIONS, 1000);
			assert_int_equal(count(e), i < 2 ? 1000 : 0);
			quipu_event_close(e);
		}
}

static void c16_modifiers(void **state)
{
	(void)state;
	modifiers((const uint64_t[]){0, POWER_FCH, POWER_FCP, POWER_FCP | POWER_FCH});
}

static void c16_modifiers_of_a_partition(void **state)
{
	(void)state;
	modifiers((const uint64_t[]){0, POWER_FCS | POWER_FCH, POWER_FCP | POWER_FCH,
				     POWER_FCP | POWER_FCS});
}

static void c17_each_of_a_group_counts_its_own_states(void **state)
{
	struct quipu_attr attr = {
		.type = PERF_TYPE_RAW, .config = 2, .flags = QUIPU_ATTR_EXCLUDE_USER};
	struct quipu_event *k, *u;

	(void)state;
	assert_int_equal(open_attr(&attr, 100, -1, NULL, &k), 0);
	attr.flags = QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV;
	assert_int_equal(open_attr(&attr, 100, -1, k, &u), 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1000);
	assert_int_equal(count(k), 0);
	assert_int_equal(count(u), 1000);
	quipu_event_close(u);
	quipu_event_close(k);
}

/* ---- C18, C22 ---- */

static struct quipu_event *sampling(struct quipu_attr *attr, void **ring, unsigned pages)
{
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	struct quipu_event *e;

	*ring = aligned_alloc(4096, (pages + 1) * 4096);
	assert_non_null(*ring);
	memset(*ring, 0, (pages + 1) * 4096);
	assert_int_equal(open_attr(attr, 100, -1, NULL, &e), 0);
	assert_int_equal(quipu_event_map(e, &who, *ring, pages, true), 0);
	return e;
}

static void close_sampling(struct quipu_event *e, void *ring)
{
	quipu_event_unmap(e);
	quipu_event_close(e);
	free(ring);
}

/* A tick has room for so many samples (100000 in a second, 100 ticks). */
#define TICK_SAMPLES 1000u
#define TICK_CYCLES  UINT64_C(30000000)

static void c18_a_throttled_event_stops(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 2,
				  .sample_period = 1,
				  .sample_type = PERF_SAMPLE_IP};
	void *ring;
	struct quipu_event *e = sampling(&attr, &ring, 16);

	(void)state;
	feed(QUIPU_SIGNAL_INSTRUCTIONS, TICK_SAMPLES);
	assert_int_equal(records_of(ring, 16, PERF_RECORD_THROTTLE), 1);
	assert_int_equal(written[SPR_PMC1 + (unsigned)quipu_event_hw(e)->idx], 0);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 500);
	assert_int_equal(count(e), TICK_SAMPLES);
	assert_int_equal(samples_of(ring, 16), TICK_SAMPLES);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 500);
	assert_int_equal(count(e), TICK_SAMPLES);
	assert_int_equal(records_of(ring, 16, PERF_RECORD_UNTHROTTLE), 0);
	feed(QUIPU_SIGNAL_CYCLES, TICK_CYCLES + 1);
	assert_int_equal(records_of(ring, 16, PERF_RECORD_UNTHROTTLE), 1);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 10);
	assert_int_equal(count(e), TICK_SAMPLES + 10);
	assert_int_equal(samples_of(ring, 16), TICK_SAMPLES + 10);
	close_sampling(e, ring);
}

/* By default the ring is told, and the event goes on: no count is lost. */
static void c18_without_the_property_it_goes_on(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 2,
				  .sample_period = 1,
				  .sample_type = PERF_SAMPLE_IP};
	void *ring;
	struct quipu_event *e = sampling(&attr, &ring, 16);

	(void)state;
	feed(QUIPU_SIGNAL_INSTRUCTIONS, TICK_SAMPLES + 500);
	assert_int_equal(records_of(ring, 16, PERF_RECORD_THROTTLE), 1);
	assert_int_equal(count(e), TICK_SAMPLES + 500);
	close_sampling(e, ring);
}

#define REGS_CORE     UINT64_C(0x1fffffffffff)
#define REGS_EXTENDED UINT64_C(0x07f8e00000000000)
/* Those that are known at an interrupt: NIP, TRAP, SIER, MMCRA, and the extended ones. */
#define REGS_OF_PMU   (REGS_EXTENDED | UINT64_C(1) << 32 | UINT64_C(1) << 40 | UINT64_C(3) << 43)

static void c22_registers_in_samples(void **state)
{
	static const struct {
		uint64_t mask;
		int err;
	} rows[] = {
		{REGS_CORE, 0},
		{REGS_CORE | REGS_EXTENDED, 0},
		{REGS_CORE | REGS_EXTENDED | UINT64_C(1) << 48, -EINVAL},
		{REGS_CORE | UINT64_C(1) << 48, -EINVAL},
		{0, -EINVAL},
	};
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 2,
				  .sample_period = 1000,
				  .sample_type = PERF_SAMPLE_REGS_INTR};
	struct quipu_event *e;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		e = NULL;
		attr.sample_regs_intr = rows[i].mask;
		assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), rows[i].err);
		quipu_event_close(e);
	}
	/* Of a software event nobody has them. */
	e = NULL;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_regs_intr = REGS_EXTENDED;
	assert_int_equal(open_attr(&attr, 100, -1, NULL, &e), -EOPNOTSUPP);
	assert_non_null(strstr(quipu_core_last_reason(bed.core), "registers"));
	quipu_event_close(e);
}

static uint64_t reg_of(const uint64_t *sample, unsigned bit)
{
	assert_int_equal(sample[1], PERF_SAMPLE_REGS_ABI_64);
	return sample[2 + __builtin_popcountll(REGS_OF_PMU & ((UINT64_C(1) << bit) - 1))];
}

static void c22_the_counter_that_overflowed_shows(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = 0x500fa,
				  .sample_period = 1000,
				  .sample_type = PERF_SAMPLE_REGS_INTR,
				  .sample_regs_intr = REGS_OF_PMU};
	uint64_t sample[32];
	void *ring;
	struct quipu_event *e = sampling(&attr, &ring, 2);

	(void)state;
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1000);
	assert_int_equal(samples_of(ring, 2), 1);
	memcpy(sample, (uint8_t *)ring + 4096, sizeof(sample));
	assert_int_equal(sample[0] >> 48, 8 + 8 + 8 * __builtin_popcountll(REGS_OF_PMU));
	assert_int_equal(reg_of(sample, 55), 0x80000000); /* PMC5 */
	assert_int_equal(reg_of(sample, 51), 0);	  /* PMC1 */
	assert_int_equal(reg_of(sample, 32), 0x10001234); /* NIP */
	assert_int_equal(reg_of(sample, 58), 0x10001234); /* SIAR */
	assert_int_equal(reg_of(sample, 43), 0x2000000 | 0x1000000 | 0x400000);
	assert_int_equal(reg_of(sample, 45) & 0x80000080, 0x80000080); /* FC, PMAO */
	close_sampling(e, ring);
	/* A program's own registers are nobody's to tell: then none is. */
	attr.sample_regs_intr = REGS_OF_PMU | 1;
	e = sampling(&attr, &ring, 2);
	feed(QUIPU_SIGNAL_INSTRUCTIONS, 1000);
	memcpy(sample, (uint8_t *)ring + 4096, sizeof(sample));
	assert_int_equal(sample[0] >> 48, 8 + 8);
	assert_int_equal(sample[1], PERF_SAMPLE_REGS_ABI_NONE);
	close_sampling(e, ring);
}

/* C12 with the property: what Linux takes, opens, and counts 0. */
static void c12_unknown_codes_open_and_read_0(void **state)
{
	static const struct {
		uint64_t code[3];
		unsigned n, opened, pmc[3];
	} rows[] = {
		{{0x16880}, 1, 0, {0}},
		{{0x46880, 0x16880}, 2, 2, {4, 1}},
		{{0x200f4, 0x2c04e, 0x16880}, 3, 3, {6, 2, 1}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_event *e[3] = {NULL};
		unsigned n = 0;
		int err = 0;

		/* Opened while the task is away: an event that runs has its code chosen. */
		quipu_system_stop(bed.system, 0, false);
		while (n < rows[i].n && !err) {
			err = open_event(PERF_TYPE_RAW, rows[i].code[n], 100, -1, e[0], &e[n]);
			n += !err;
		}
		assert_int_equal(n, rows[i].opened);
		assert_int_equal(err, n < rows[i].n ? -EINVAL : 0);
		quipu_system_run(bed.system, 0, bed.task, 0);
		feed(QUIPU_SIGNAL_CYCLES, 1000);
		feed(QUIPU_SIGNAL_L1D_READ_MISSES, 10);
		for (unsigned k = 0; k < n; k++) {
			uint64_t want = rows[i].code[k] == 0x200f4   ? 1000
					: rows[i].code[k] == 0x2c04e ? 10
								     : 0;

			assert_int_equal(quipu_event_hw(e[k])->idx + 1, rows[i].pmc[k]);
			assert_int_equal(count(e[k]), want);
		}
		while (n)
			quipu_event_close(e[--n]);
	}
}

static void c26_every_nth_load(void **state)
{
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = UINT64_C(0x34340401e0),
				  .sample_period = 100,
				  .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR |
						 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC};
	void *ring;
	struct quipu_event *e = sampling(&attr, &ring, 8);
	uint64_t sample[5];

	(void)state;
	feed(QUIPU_SIGNAL_MARKED_STORES, 5000);
	feed(QUIPU_SIGNAL_MARKED_LOADS, 1234);
	assert_int_equal(samples_of(ring, 8), 12);
	assert_int_equal(count(e), 1234);
	/* Nothing is known of these but that they hit: level 1, one cycle. */
	memcpy(sample, (uint8_t *)ring + 4096, sizeof(sample));
	assert_int_equal(sample[1], 0x10001234);
	assert_int_equal(sample[2], 0);
	assert_int_equal(sample[3], 1);
	assert_int_equal(sample[4], PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) |
					    PERF_MEM_S(LVL, L1) | PERF_MEM_S(SNOOP, HIT) |
					    PERF_MEM_S(LVLNUM, L1));
	close_sampling(e, ring);
}

/* The registers by themselves: an alert of a marked access, and what its source makes of it. */
static void c26_sier_tells_the_access(void **state)
{
	static const struct {
		uint32_t events;
		uint64_t eligible, type, source, least, most; /* latency */
	} rows[] = {
		{0, 5, 1, 1, 1, 1},
		{QUIPU_INSN_L1_MISS, 5, 1, 2, 2, 40},
		{QUIPU_INSN_L1_MISS | QUIPU_INSN_L2_MISS, 5, 1, 3, 10, 200},
		{QUIPU_INSN_L1_MISS | QUIPU_INSN_L2_MISS | QUIPU_INSN_LL_MISS, 5, 1, 4, 100, 1000},
		{QUIPU_INSN_TLB_MISS | QUIPU_INSN_STLB_MISS, 5, 1, 1, 2, 1000},
		{QUIPU_INSN_L1_MISS, 7, 2, 2, 2, 40},
		{QUIPU_INSN_L1_MISS, 0, 0, 0, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_signals *signals = quipu_manual_signals_base(bed.manual);
		struct power_pmu *p = power_pmu_new(bed.machine, signals);
		struct quipu_interrupt irq = {.slots = bits_one(3),
					      .pc = 0x1000,
					      .addr = 0x5678,
					      .insn = {.events = rows[i].events, .size = 4}};
		uint64_t sier, sdar, mmcra, latency;

		assert_non_null(p);
		power_mtspr(p, 0, SPR_MMCRA, 1 | rows[i].eligible << 4);
		power_mtspr(p, 0, SPR_MMCR1, 0xe0);
		power_mtspr(p, 0, SPR_PMC1 + 3, PMC_NEGATIVE - 1);
		power_mtspr(p, 0, SPR_MMCR0, MMCR0_PMAE | MMCR0_PMCJCE);
		signals->interrupt = NULL;
		feed(rows[i].eligible == 5   ? QUIPU_SIGNAL_MARKED_LOADS
		     : rows[i].eligible == 7 ? QUIPU_SIGNAL_MARKED_STORES
					     : QUIPU_SIGNAL_INSTRUCTIONS,
		     1);
		power_pmu_interrupt(p, &irq);
		power_mfspr(p, 0, SPR_SIER, &sier);
		power_mfspr(p, 0, SPR_SDAR, &sdar);
		power_mfspr(p, 0, SPR_MMCRA, &mmcra);
		latency = bits_get(mmcra, MMCRA_MANTISSA) << 2 * bits_get(mmcra, MMCRA_EXPONENT);
		assert_int_equal(bits_get(sier, SIER_TYPE), rows[i].type);
		assert_int_equal(bits_get(sier, SIER_SOURCE), rows[i].source);
		assert_int_equal(!!(sier & SIER_SDAR_VALID), rows[i].type != 0);
		assert_int_equal(sdar, 0x5678);
		assert_in_range(latency, rows[i].least, rows[i].most);
		power_pmu_free(p);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(c1_sysfs),
		CASE(c2_generic_events),
		CASE(c3_cache_events),
		CASE(c4_malformed_codes),
		CASE(c5_sample_modes),
		CASE(c6_blacklist),
		CASE(c7_register_values),
		CASE(c8_six_of_a_task_four_of_a_cpu),
		CASE(c9_cycles_five_times),
		CASE(c10_pairs_that_want_one_counter),
		CASE(c11_alternatives),
		CASE(c12_second_pass_is_lax),
		CASE(c13_counts_through_interrupts),
		CASE(c14_every_period_a_sample),
		CASE(c15_two_on_one_instruction),
		CASE(c16_modifiers),
		cmocka_unit_test_setup_teardown(c16_modifiers_of_a_partition, setup_lpar, teardown),
		CASE(c17_each_of_a_group_counts_its_own_states),
		CASE(c19_a_new_period_adds_nothing),
		cmocka_unit_test_setup_teardown(c19_as_linux_adds_the_rest, setup_quirk, teardown),
		CASE(c21_the_row_of_interrupts),
		CASE(c23_branch_stacks),
		CASE(a_difference_of_signals),
		CASE(c22_registers_in_samples),
		CASE(c22_the_counter_that_overflowed_shows),
		cmocka_unit_test_setup_teardown(c18_a_throttled_event_stops, setup_stops, teardown),
		CASE(c18_without_the_property_it_goes_on),
		cmocka_unit_test_setup_teardown(c12_unknown_codes_open_and_read_0, setup_zero,
						teardown),
		CASE(c26_every_nth_load),
		CASE(c26_sier_tells_the_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
