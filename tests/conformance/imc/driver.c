/* SPDX-License-Identifier: BSD-2-Clause */
/* IMC sheet section 7: opening (I), counting (C), delivery of trace records (R), hotplug (H), on
 * the drivers. */
#include "driver_bed.h"

#include "platform/imc/driver_impl.h"

/* ---- event_init: a table of refusals ---- */

static void refusals(void **state)
{
	static const struct {
		const char *id, *pmu;
		struct quipu_attr attr;
		pid_t pid;
		int cpu, err;
	} rows[] = {
		{"I1 period",
		 "nest_mcs01",
		 {.config = 0xc8, .sample_period = 1000},
		 -1,
		 0,
		 -EINVAL},
		{"I1 freq",
		 "nest_mcs01",
		 {.config = 0xc8, .sample_freq = 100, .flags = QUIPU_ATTR_FREQ},
		 -1,
		 0,
		 -EINVAL},
		{"I2", "nest_mcs01", {.config = 0xc8}, 100, -1, -EINVAL},
		{"I3 beyond", "nest_mcs01", {.config = 0x40001}, -1, 0, -EINVAL},
		{"I3 at the end", "nest_mcs01", {.config = 0x40000}, -1, 0, 0},
		{"I4 high bits", "core_imc", {.config = 0x100000028}, -1, 0, 0},
		{"I5",
		 "nest_mcs01",
		 {.config = 0xc8, .flags = QUIPU_ATTR_EXCLUDE_GUEST},
		 -1,
		 0,
		 -EINVAL},
		{"I7", "nest_mcs01", {.config = 0xc8}, 100, 0, -EINVAL},
		{"I8", "thread_imc", {.config = 0x28}, -1, 0, -EINVAL},
		{"I10", "thread_imc", {.config = 0x28, .sample_period = 5}, 100, -1, -EINVAL},
		{"I11", "trace_imc", {.config = 0x10200000}, 100, -1, -ENOENT},
		{"D13",
		 "trace_imc",
		 {.sample_period = 1, .sample_type = PERF_SAMPLE_RAW},
		 100,
		 -1,
		 -EOPNOTSUPP},
		{"D13 chain",
		 "trace_imc",
		 {.sample_period = 1, .sample_type = PERF_SAMPLE_CALLCHAIN},
		 100,
		 -1,
		 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_event *e;
		int rc = open_event(rows[i].pmu, rows[i].attr, rows[i].pid, rows[i].cpu, &e);

		if (rc != rows[i].err)
			fail_msg("%s: %d instead of %d", rows[i].id, rc, rows[i].err);
		if (rc)
			assert_string_not_equal(quipu_core_last_reason(core), "");
		quipu_event_close(e);
	}
}

static void i5_a_refused_open_starts_and_stops_once(void **state)
{
	struct quipu_event *e;

	(void)state;
	open_event("nest_mcs01",
		   (struct quipu_attr){.config = 0xc8, .flags = QUIPU_ATTR_EXCLUDE_GUEST}, -1, 0,
		   &e);
	assert_string_equal(
		calls,
		"OPAL_IMC_COUNTERS_START(NEST, 0x0) = 0\nOPAL_IMC_COUNTERS_STOP(NEST, 0x0) = 0\n");
}

static void i6_any_cpu_of_a_core(void **state)
{
	struct quipu_event *a, *b;

	(void)state;
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 5, &a), 0);
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 4, &b), 0);
	assert_int_equal(ncalls, 1);
	quipu_manual_signals_feed(bed.manual, 6, QUIPU_SIGNAL_INSTRUCTIONS, 5120, 0);
	assert_int_equal(count(a), 10);
	assert_int_equal(count(b), 10);
	quipu_event_close(a);
	quipu_event_close(b);
	assert_int_equal(ncalls, 2);
}

static void i9_i12_capability(void **state)
{
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_as(false, "thread_imc", (struct quipu_attr){.config = 0x28}, 100, -1,
				 &e),
			 -EACCES);
	assert_int_equal(open_as(false, "thread_imc",
				 (struct quipu_attr){.config = 0x28, .sample_period = 5}, 100, -1,
				 &e),
			 -EACCES);
	assert_int_equal(open_as(false, "trace_imc", (struct quipu_attr){0}, 100, -1, &e), -EACCES);
}

static void i13_to_i16_one_mode_at_a_time(void **state)
{
	static const struct quipu_attr trace = {.sample_period = 1000,
						.sample_type = PERF_SAMPLE_IP};
	struct quipu_event *a, *b;

	(void)state;
	assert_int_equal(
		open_event("core_imc",
			   (struct quipu_attr){.config = 0x28, .flags = QUIPU_ATTR_DISABLED}, -1, 0,
			   &a),
		0);
	assert_int_equal(open_event("thread_imc", (struct quipu_attr){.config = 0x28}, 100, -1, &b),
			 -EBUSY);
	assert_int_equal(open_event("trace_imc", trace, 100, -1, &b), -EBUSY);
	quipu_event_close(a);
	quipu_sched_in(core, 0, task);
	assert_int_equal(open_event("trace_imc", trace, 100, -1, &a), 0);
	forget_calls();
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 0, &b),
			 -EBUSY);
	assert_int_equal(ncalls, 0);
	quipu_event_close(a);
	assert_int_equal(open_event("thread_imc", (struct quipu_attr){.config = 0x28}, 100, -1, &a),
			 0);
	assert_int_equal(open_event("nest_mcs01", (struct quipu_attr){.config = 0xc8}, -1, 0, &b),
			 0);
	quipu_event_close(a);
	quipu_event_close(b);
}

static void i18_firmware_says_no(void **state)
{
	struct quipu_event *e;

	(void)state;
	quipu_imc_write64(bed.imc, quipu_imc_control(bed.imc, 0) + QUIPU_NEST_STATUS, 0);
	assert_int_equal(open_event("nest_mcs01", (struct quipu_attr){.config = 0xc8}, -1, 0, &e),
			 -ENXIO);
	assert_non_null(strstr(calls, "START(NEST, 0x0) = -6"));
}

/* A kernel that has more CPUs than the firmware knows of. */
static void i18_firmware_knows_no_such_cpu(void **state)
{
	struct quipu_machine kernels = *bed.machine;
	struct imc_driver *d = NULL;
	struct quipu_pmu *const *list;
	struct quipu_event *e;
	size_t n;

	(void)state;
	list = quipu_core_pmus(core, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i]->name, "core_imc"))
			d = ((struct imc_pmu *)list[i]->driver)->driver;
	assert_non_null(d);
	d->machine = &kernels;
	bed.machine->ncpus = 4;
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 4, &e),
			 -EPERM);
	assert_int_equal(ncalls, 1);
	assert_non_null(strstr(calls, "START(CORE"));
	assert_string_not_equal(quipu_core_last_reason(core), "");
	bed.machine->ncpus = 32;
	d->machine = bed.machine;
	/* Nothing was left taken: neither the mode nor a reference. */
	assert_int_equal(open_event("thread_imc", (struct quipu_attr){.config = 0x28}, 100, -1, &e),
			 0);
	quipu_event_close(e);
	forget_calls();
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 4, &e), 0);
	quipu_event_close(e);
	assert_int_equal(ncalls, 2);
}

static void i19_two_nest_pmus_share_an_engine(void **state)
{
	struct quipu_event *a, *b;

	(void)state;
	assert_int_equal(open_event("nest_mcs01", (struct quipu_attr){.config = 0xc8}, -1, 0, &a),
			 0);
	assert_int_equal(open_event("nest_mba0", (struct quipu_attr){.config = 0x448}, -1, 0, &b),
			 0);
	quipu_event_close(a);
	assert_string_equal(calls, "OPAL_IMC_COUNTERS_START(NEST, 0x0) = 0\n");
	quipu_event_close(b);
	assert_string_equal(
		calls,
		"OPAL_IMC_COUNTERS_START(NEST, 0x0) = 0\nOPAL_IMC_COUNTERS_STOP(NEST, 0x0) = 0\n");
}

/* ---- counting ---- */

static void c1_differences_of_the_cell(void **state)
{
	struct quipu_event *e;

	(void)state;
	assert_int_equal(
		open_event("nest_mcs01",
			   (struct quipu_attr){.config = 0xd0, .flags = QUIPU_ATTR_DISABLED}, -1, 0,
			   &e),
		0);
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 25600);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0), 0);
	quipu_imc_traffic(bed.imc, 0, 1, QUIPU_IMC_READ_LINE, 64000);
	assert_int_equal(count(e), 250);
	quipu_event_close(e);
}

static void c3_a_task_that_moves(void **state)
{
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_event("thread_imc", (struct quipu_attr){.config = 0x28}, 100, -1, &e),
			 0);
	quipu_sched_in(core, 0, task);
	quipu_manual_signals_feed(bed.manual, 0, QUIPU_SIGNAL_INSTRUCTIONS, 51200, 0);
	quipu_sched_out(core, 0, false);
	quipu_manual_signals_feed(bed.manual, 0, QUIPU_SIGNAL_INSTRUCTIONS, 99999, 0);
	quipu_sched_in(core, 20, task);
	quipu_manual_signals_feed(bed.manual, 20, QUIPU_SIGNAL_INSTRUCTIONS, 10240, 0);
	assert_int_equal(count(e), 120);
	quipu_event_close(e);
}

static void c8_a_cell_without_name(void **state)
{
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x398}, -1, 0, &e),
			 0);
	quipu_manual_signals_feed(bed.manual, 0, QUIPU_SIGNAL_INSTRUCTIONS, 51200, 0);
	assert_int_equal(count(e), 0);
	quipu_event_close(e);
}

/* ---- trace delivery ---- */

static void r1_one_slice(void **state)
{
	struct quipu_event *e;
	void *ring;

	(void)state;
	e = open_trace(1000, 0, &ring);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	assert_int_equal(samples(ring), 0); /* nothing is delivered while it runs */
	quipu_sched_out(core, 0, false);
	assert_int_equal(samples(ring), 127);
	for (unsigned i = 0; i < 127; i++) {
		uint64_t sample[3]; /* header, ip, period */

		memcpy(sample, (uint8_t *)ring + 4096 + 24 * i, sizeof(sample));
		assert_int_equal(sample[2], 1000);
	}
	assert_int_equal(count(e), 0);
	close_trace(e, ring);
}

static void r2_twenty_slices(void **state)
{
	struct quipu_event *e;
	void *ring;

	(void)state;
	e = open_trace(1000, 0, &ring);
	for (unsigned i = 0; i < 20; i++) {
		quipu_sched_in(core, 0, task);
		bed_run(&bed, 1, MS / 10);
		quipu_sched_out(core, 0, false);
	}
	assert_int_equal(samples(ring), 240);
	close_trace(e, ring);
}

static void r3_wrapped(void **state)
{
	struct quipu_event *e;
	uint64_t ldbar = 0;
	void *ring;

	(void)state;
	e = open_trace(1000, 0, &ring);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, 40 * MS);
	quipu_sched_out(core, 0, false);
	assert_int_equal(samples(ring), 1003);
	quipu_imc_ldbar_read(bed.imc, 0, &ldbar);
	assert_int_equal(quipu_imc_read64(bed.imc, ldbar & QUIPU_IMC_ADDRESS), 0);
	close_trace(e, ring);
}

static void r5_ticks_of_a_frequency_event(void **state)
{
	static const uint64_t total[] = {1274, 1274, 1274, 2277};
	struct quipu_event *e;
	void *ring;

	(void)state;
	e = open_trace(0, 4000, &ring);
	quipu_sched_in(core, 0, task);
	for (unsigned i = 0; i < 4; i++) {
		bed_run(&bed, 1, 10 * MS);
		quipu_core_tick(core, 0);
		assert_int_equal(samples(ring), total[i]);
	}
	close_trace(e, ring);
}

/* ---- hotplug ---- */

static const char *mask_of(const char *name)
{
	struct quipu_pmu *const *list;
	size_t n;

	list = quipu_core_pmus(core, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i]->name, name))
			return list[i]->cpumask;
	return NULL;
}

static void h1_h2_the_mask_moves(void **state)
{
	struct quipu_event *nest, *cores;

	(void)state;
	assert_int_equal(
		open_event("nest_mcs01", (struct quipu_attr){.config = 0xd0}, -1, 0, &nest), 0);
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 0, &cores),
			 0);
	assert_int_equal(quipu_core_set_online(core, 7, false), 0);
	assert_string_equal(mask_of("core_imc"), "0,4,8,12,16,20,24,28");
	assert_int_equal(quipu_core_set_online(core, 0, false), 0);
	assert_string_equal(mask_of("nest_mcs01"), "15-16");
	assert_string_equal(mask_of("core_imc"), "3-4,8,12,16,20,24,28");
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 2560);
	quipu_manual_signals_feed(bed.manual, 1, QUIPU_SIGNAL_INSTRUCTIONS, 5120, 0);
	assert_int_equal(count(nest), 10);
	assert_int_equal(count(cores), 10);
	quipu_event_close(nest);
	quipu_event_close(cores);
}

static void h3_h4_the_last_cpu_of_a_core(void **state)
{
	struct quipu_event *e;

	(void)state;
	assert_int_equal(open_event("core_imc", (struct quipu_attr){.config = 0x28}, -1, 0, &e), 0);
	forget_calls();
	for (unsigned cpu = 0; cpu < 4; cpu++)
		assert_int_equal(quipu_core_set_online(core, cpu, false), 0);
	assert_int_equal(ncalls, 1);
	assert_non_null(strstr(calls, "STOP(CORE"));
	quipu_event_close(e);
	assert_int_equal(ncalls, 1);
	assert_int_equal(quipu_core_set_online(core, 0, true), 0);
	assert_string_equal(mask_of("core_imc"), "0,4,8,12,16,20,24,28");
	assert_int_equal(ncalls, 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(refusals),
		CASE(i5_a_refused_open_starts_and_stops_once),
		CASE(i6_any_cpu_of_a_core),
		CASE(i9_i12_capability),
		CASE(i13_to_i16_one_mode_at_a_time),
		CASE(i18_firmware_says_no),
		CASE(i18_firmware_knows_no_such_cpu),
		CASE(i19_two_nest_pmus_share_an_engine),
		CASE(c1_differences_of_the_cell),
		CASE(c3_a_task_that_moves),
		CASE(c8_a_cell_without_name),
		CASE(r1_one_slice),
		CASE(r2_twenty_slices),
		CASE(r3_wrapped),
		CASE(r5_ticks_of_a_frequency_event),
		CASE(h1_h2_the_mask_moves),
		CASE(h3_h4_the_last_cpu_of_a_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
