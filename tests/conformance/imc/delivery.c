/* SPDX-License-Identifier: BSD-2-Clause */
/* IMC sheet section 7, on the drivers: the cases of opening, counting, delivery and hotplug where
 * several things meet (I14, I17, C2, C4 to C7, C9, R4, R6 to R12, H5). */
#include "driver_bed.h"

#include "platform/imc/driver_impl.h"

static const struct quipu_attr instructions = {.config = 0x28}, cycles = {.config = 0x30};

static struct quipu_event *opened(const char *pmu, struct quipu_attr attr, pid_t pid, int cpu)
{
	struct quipu_event *e;

	assert_int_equal(open_event(pmu, attr, pid, cpu, &e), 0);
	return e;
}

static void feed(unsigned cpu, uint64_t n)
{
	quipu_manual_signals_feed(bed.manual, cpu, QUIPU_SIGNAL_INSTRUCTIONS, n, 0);
}

/* The driver's own view, for cases that need a machine which firmware would not make. */
static struct imc_pmu *inside(const char *name)
{
	struct quipu_pmu *const *list;
	size_t n;

	list = quipu_core_pmus(core, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i]->name, name))
			return list[i]->driver;
	return NULL;
}

/* Where CPU @cpu's trace records lie. */
static uint64_t trace_buffer(unsigned cpu)
{
	uint64_t ldbar = 0;

	assert_int_equal(quipu_imc_ldbar_read(bed.imc, cpu, &ldbar), 0);
	return ldbar & QUIPU_IMC_ADDRESS;
}

static void put_record(uint64_t at, uint64_t tb, uint64_t ip, uint64_t val)
{
	quipu_imc_write64(bed.imc, at + 8 * QUIPU_TRACE_TB1, tb);
	quipu_imc_write64(bed.imc, at + 8 * QUIPU_TRACE_IP, ip);
	quipu_imc_write64(bed.imc, at + 8 * QUIPU_TRACE_VAL, val);
	quipu_imc_write64(bed.imc, at + 8 * QUIPU_TRACE_TB2, tb & QUIPU_TRACE_TB_MASK);
}

static uint64_t head_of(const void *ring)
{
	uint64_t head;

	memcpy(&head, (const uint8_t *)ring + 1024, 8);
	return head;
}

/* ---- opening ---- */

static void i14_a_refused_core_event_leaves_the_trace_alone(void **state)
{
	struct quipu_event *trace, *e;
	void *ring;

	(void)state;
	trace = open_trace(1000, 0, &ring);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	forget_calls();
	assert_int_equal(open_event("core_imc", instructions, -1, 0, &e), -EBUSY);
	assert_int_equal(ncalls, 0);
	bed_run(&bed, 1, MS);
	quipu_sched_out(core, 0, false);
	assert_int_equal(samples(ring), 254); /* 2 ms in one slice */
	close_trace(trace, ring);
	forget_calls();
	/* Its reference was not taken: the first event now starts the engine, its end stops it. */
	e = opened("core_imc", instructions, -1, 0);
	assert_int_equal(ncalls, 1);
	quipu_event_close(e);
	assert_int_equal(ncalls, 2);
}

static void i15_nest_beside_thread(void **state)
{
	struct quipu_event *thread = opened("thread_imc", instructions, 100, -1);
	struct quipu_event *nest =
		opened("nest_mcs01", (struct quipu_attr){.config = 0xd0}, -1, 16);

	(void)state;
	quipu_sched_in(core, 0, task);
	feed(0, 5120);
	quipu_imc_traffic(bed.imc, 8, 0, QUIPU_IMC_READ_LINE, 2560);
	assert_int_equal(count(thread), 10);
	assert_int_equal(count(nest), 10);
	quipu_event_close(thread);
	quipu_event_close(nest);
}

static void i17_a_chip_that_the_unit_does_not_name(void **state)
{
	struct imc_unit *unit = (struct imc_unit *)inside("nest_mcs01")->unit;
	struct quipu_event *e;

	(void)state;
	unit->nchips = 1; /* chip-id = <0> */
	assert_int_equal(open_event("nest_mcs01", (struct quipu_attr){.config = 0xd0}, -1, 16, &e),
			 -ENODEV);
	assert_int_equal(ncalls, 0);
	assert_non_null(strstr(quipu_core_last_reason(core), "chip 8"));
	unit->nchips = 2;
}

/* ---- counting ---- */

static void c2_a_clear_of_the_region_shows(void **state)
{
	struct quipu_event *e =
		opened("nest_mcs01",
		       (struct quipu_attr){.config = 0xd0, .flags = QUIPU_ATTR_DISABLED}, -1, 0);

	(void)state;
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 5 * 256);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0), 0);
	assert_int_equal(count(e), 0);
	quipu_imc_write64(bed.imc, quipu_imc_control(bed.imc, 0) + QUIPU_NEST_COMMAND,
			  QUIPU_NEST_CLEAR);
	bed_steps(&bed, 6);
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 2 * 256);
	assert_int_equal(count(e), UINT64_MAX - 2);
	quipu_event_close(e);
}

static void c4_one_of_two_is_taken_off(void **state)
{
	struct quipu_event *a = opened("thread_imc", instructions, 100, -1);
	struct quipu_event *b = opened("thread_imc", cycles, 100, -1);

	(void)state;
	quipu_sched_in(core, 0, task);
	feed(0, 51200);
	assert_int_equal(quipu_event_ioctl(b, PERF_EVENT_IOC_DISABLE, 0), 0);
	feed(0, 51200);
	assert_int_equal(count(a), 100);
	quipu_sched_out(core, 0, false);
	quipu_sched_in(core, 0, task);
	feed(0, 5120);
	assert_int_equal(count(a), 110);
	quipu_event_close(a);
	quipu_event_close(b);
}

static void c5_children_are_counted(void **state)
{
	struct quipu_attr attr = instructions;
	struct quipu_event *e;
	struct quipu_task *child;

	(void)state;
	attr.flags = QUIPU_ATTR_INHERIT;
	e = opened("thread_imc", attr, 100, -1);
	quipu_sched_in(core, 0, task);
	feed(0, 5120);
	child = quipu_task_new(core, task, 200, 200, false, "child", 0);
	assert_non_null(child);
	quipu_sched_in(core, 1, child);
	feed(1, 10240);
	quipu_task_exit(child, 1);
	assert_int_equal(count(e), 30);
	quipu_event_close(e);
}

static void c6_a_hardware_leader(void **state)
{
	const struct quipu_caller who = {.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_HARDWARE, .config = 1};
	struct quipu_event *leader, *a, *b;
	uint32_t back;

	(void)state;
	power_up();
	assert_int_equal(quipu_event_open(core, &who, &attr, sizeof(attr), 100, -1, NULL, 0, &back,
					  &leader),
			 0);
	attr.type = type_of("thread_imc");
	attr.config = 0x28;
	assert_int_equal(quipu_event_open(core, &who, &attr, sizeof(attr), 100, -1, leader, 0,
					  &back, &a),
			 0);
	attr.config = 0x118; /* with one thread running */
	assert_int_equal(quipu_event_open(core, &who, &attr, sizeof(attr), 100, -1, leader, 0,
					  &back, &b),
			 0);
	quipu_sched_in(core, 0, task);
	feed(0, 51200);
	quipu_sched_out(core, 0, false);
	assert_int_equal(count(leader), 51200);
	assert_int_equal(count(a), 100);
	assert_int_equal(count(b), 100);
	quipu_event_close(b);
	quipu_event_close(a);
	quipu_event_close(leader);
}

static void c7_as_many_as_one_likes(void **state)
{
	struct quipu_event *e[300];
	struct quipu_attr attr = instructions;

	(void)state;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	for (unsigned i = 0; i < 300; i++)
		e[i] = opened("core_imc", attr, -1, 0);
	feed(2, 5120);
	bed.ns += 5 * MS;
	for (unsigned i = 0; i < 300; i++) {
		uint64_t v[3];

		assert_int_equal(quipu_event_read(e[i], v, sizeof(v)), sizeof(v));
		assert_int_equal(v[0], 10);
		assert_int_equal(v[1], v[2]);
		assert_true(v[1] >= 5 * MS);
		quipu_event_close(e[i]);
	}
}

static void c9_memory_lags_by_a_posting(void **state)
{
	struct quipu_event *e;

	(void)state;
	quipu_imc_set_exact(bed.imc, false);
	e = opened("core_imc", instructions, -1, 0);
	feed(0, 51200);
	bed_pass(&bed, 3 * MS / 10);
	assert_int_equal(count(e), 0);
	bed_pass(&bed, 7 * MS / 10);
	assert_int_equal(count(e), 100);
	feed(0, 51200);
	bed_pass(&bed, 3 * MS / 10);
	assert_int_equal(count(e), 100);
	quipu_event_close(e);
}

/* Sheet 4.4: threads of a core share its engine. */
static void threads_of_a_core_share_its_engine(void **state)
{
	struct quipu_event *a = opened("thread_imc", instructions, 100, -1), *b;
	struct quipu_task *other = quipu_task_new(core, NULL, 200, 200, false, "other", 0);

	(void)state;
	assert_non_null(other);
	b = opened("thread_imc", instructions, 200, -1);
	forget_calls();
	quipu_sched_in(core, 0, task);
	quipu_sched_in(core, 1, other);
	assert_string_equal(calls, "OPAL_IMC_COUNTERS_START(CORE, 0x0) = 0\n");
	feed(0, 5120);
	quipu_sched_out(core, 0, false);
	assert_int_equal(ncalls, 1);
	feed(1, 10240);
	quipu_sched_out(core, 1, false);
	assert_int_equal(ncalls, 2);
	assert_non_null(strstr(calls, "STOP(CORE, 0x1) = 0"));
	assert_int_equal(count(a), 10);
	assert_int_equal(count(b), 20);
	quipu_event_close(a);
	quipu_event_close(b);
}

/* ---- delivery ---- */

static void r4_a_second_stop_has_nothing(void **state)
{
	struct quipu_event *e;
	void *ring;

	(void)state;
	e = open_trace(0, 4000, &ring);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, 10 * MS);
	quipu_core_tick(core, 0);
	assert_int_equal(samples(ring), 1274);
	bed_run(&bed, 1, 5 * MS);
	quipu_sched_out(core, 0, false);
	assert_int_equal(samples(ring), 1274);
	close_trace(e, ring);
}

static void r6_a_half_written_record_ends_the_walk(void **state)
{
	struct quipu_event *e;
	void *ring;

	(void)state;
	e = open_trace(1000, 0, &ring);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	quipu_imc_write64(bed.imc, trace_buffer(0) + 3 * 64 + 8 * QUIPU_TRACE_TB2, 1);
	quipu_sched_out(core, 0, false);
	assert_int_equal(samples(ring), 3);
	close_trace(e, ring);
}

static void r7_a_full_ring(void **state)
{
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
						 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
						 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
				  .sample_period = 1000};
	uint8_t *ring = aligned_alloc(4096, 2 * 4096);
	struct perf_event_header h;
	struct quipu_event *e;
	uint64_t head;

	(void)state;
	assert_non_null(ring);
	memset(ring, 0, 2 * 4096);
	e = opened("trace_imc", attr, 100, -1);
	assert_int_equal(quipu_event_map(e, &who, ring, 1, true), 0);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	quipu_sched_out(core, 0, false);
	assert_int_equal(samples(ring), (4096 - 1) / (8 + 6 * 8)); /* of 127 */
	assert_int_equal(quipu_imc_read64(bed.imc, trace_buffer(0)), 0);
	/* All read: before the next sample stands what was lost. */
	head = head_of(ring);
	memcpy(ring + 1032, &head, 8);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS / 100);
	quipu_sched_out(core, 0, false);
	memcpy(&h, ring + 4096 + head % 4096, sizeof(h));
	assert_int_equal(h.type, PERF_RECORD_LOST);
	quipu_event_unmap(e);
	quipu_event_close(e);
	free(ring);
}

/* The cpumode of the one sample that a record with @ip and @val makes. */
static unsigned mode_of(uint64_t ip, uint64_t val)
{
	struct perf_event_header h;
	struct quipu_event *e;
	void *ring;

	e = open_trace(1000, 0, &ring);
	quipu_sched_in(core, 0, task);
	put_record(trace_buffer(0), 1, ip, val);
	quipu_sched_out(core, 0, false);
	assert_true(head_of(ring) > 0);
	memcpy(&h, (uint8_t *)ring + 4096, sizeof(h));
	close_trace(e, ring);
	return h.misc & PERF_RECORD_MISC_CPUMODE_MASK;
}

static void r8_whose_instruction_it_was(void **state)
{
	struct imc_tree *tree = (struct imc_tree *)inside("trace_imc")->driver->tree;
	const uint64_t kernel = UINT64_C(0xc000000000001234), user = 0x10001234;

	(void)state;
	/* POWER9: by the address alone */
	assert_int_equal(mode_of(kernel, quipu_ibm_put(3, 0, 1)), PERF_RECORD_MISC_KERNEL);
	assert_int_equal(mode_of(user, quipu_ibm_put(0, 0, 1)), PERF_RECORD_MISC_USER);
	/* POWER10: by MSR[HV,PR] */
	tree->pvr = 0x00800200;
	assert_int_equal(mode_of(kernel, quipu_ibm_put(3, 0, 1)), PERF_RECORD_MISC_USER);
	assert_int_equal(mode_of(user, quipu_ibm_put(2, 0, 1)), PERF_RECORD_MISC_KERNEL);
	assert_int_equal(mode_of(user, quipu_ibm_put(0, 0, 1)), PERF_RECORD_MISC_GUEST_KERNEL);
	assert_int_equal(mode_of(user, quipu_ibm_put(1, 0, 1)), PERF_RECORD_MISC_GUEST_USER);
}

static void r9_the_first_that_is_stopped_takes_all(void **state)
{
	struct quipu_event *a, *b;
	void *one, *two;
	uint64_t n, m;

	(void)state;
	a = open_trace(1000, 0, &one);
	b = open_trace(1000, 0, &two);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	quipu_sched_out(core, 0, false);
	n = samples(one);
	m = samples(two);
	assert_int_equal(n + m, 127);
	assert_true(!n || !m);
	close_trace(a, one);
	close_trace(b, two);
}

static void r10_times_are_those_of_the_delivery(void **state)
{
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
				  .sample_period = 1000};
	uint8_t *ring = aligned_alloc(4096, (PAGES + 1) * 4096);
	struct quipu_event *e;
	uint64_t n = 0;

	(void)state;
	assert_non_null(ring);
	memset(ring, 0, (PAGES + 1) * 4096);
	e = opened("trace_imc", attr, 100, -1);
	assert_int_equal(quipu_event_map(e, &who, ring, PAGES, true), 0);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	quipu_sched_out(core, 0, false);
	for (uint64_t at = 0; at < head_of(ring); at += 24, n++) {
		uint64_t word[3];

		memcpy(word, ring + 4096 + at, sizeof(word));
		assert_int_equal((uint32_t)word[1], 100);
		assert_int_equal(word[2], MS);
	}
	assert_int_equal(n, 127);
	quipu_event_unmap(e);
	quipu_event_close(e);
	free(ring);
}

static void r11_no_interrupt_anywhere(void **state)
{
	struct quipu_event *e;
	void *ring;

	(void)state;
	power_up();
	e = open_trace(0, 4000, &ring);
	quipu_sched_in(core, 0, task);
	for (unsigned i = 0; i < 4; i++) {
		bed_run(&bed, 1, 10 * MS);
		quipu_core_tick(core, 0);
	}
	quipu_sched_out(core, 0, false);
	assert_true(samples(ring) > 1000);
	for (unsigned cpu = 0; cpu < bed.machine->ncpus; cpu++)
		assert_int_equal(quipu_platform_power.interrupts(power, cpu), 0);
	assert_null(quipu_platform_imc.interrupts);
	close_trace(e, ring);
}

static void r12_a_chain_is_empty(void **state)
{
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
				  .sample_period = 1000};
	uint8_t *ring = aligned_alloc(4096, (PAGES + 1) * 4096);
	struct quipu_event *e;
	uint64_t n = 0;

	(void)state;
	assert_non_null(ring);
	memset(ring, 0, (PAGES + 1) * 4096);
	e = opened("trace_imc", attr, 100, -1);
	assert_int_equal(quipu_event_map(e, &who, ring, PAGES, true), 0);
	quipu_sched_in(core, 0, task);
	bed_run(&bed, 1, MS);
	quipu_sched_out(core, 0, false);
	for (uint64_t at = 0; at < head_of(ring); at += 24, n++) {
		struct perf_event_header h;
		uint64_t nr;

		memcpy(&h, ring + 4096 + at, sizeof(h));
		memcpy(&nr, ring + 4096 + at + 16, 8);
		assert_int_equal(h.size, 24);
		assert_int_equal(nr, 0);
	}
	assert_int_equal(n, 127);
	quipu_event_unmap(e);
	quipu_event_close(e);
	free(ring);
}

/* ---- hotplug ---- */

static void h5_a_cpu_with_a_thread_event_goes(void **state)
{
	struct quipu_event *e = opened("thread_imc", instructions, 100, -1);
	uint64_t ldbar = 0, on;

	(void)state;
	quipu_sched_in(core, 5, task);
	assert_int_equal(quipu_imc_ldbar_read(bed.imc, 5, &on), 0);
	assert_true(on & QUIPU_LDBAR_ENABLE);
	/* The task has to go first, and clears it; what is seen is what the CPU's own end does. */
	quipu_sched_out(core, 5, false);
	assert_int_equal(quipu_imc_ldbar_write(bed.imc, 5, on), 0);
	assert_int_equal(quipu_core_set_online(core, 5, false), 0);
	assert_int_equal(quipu_imc_ldbar_read(bed.imc, 5, &ldbar), 0);
	assert_false(ldbar & QUIPU_LDBAR_ENABLE);
	quipu_event_close(e);
}

/* Sheet 4.7: with the last CPU of a chip its engine stops, and whoever still holds it is forgotten.
 */
static void h3_the_last_cpu_of_a_chip(void **state)
{
	struct quipu_event *e = opened("nest_mcs01", (struct quipu_attr){.config = 0xd0}, -1, 0);

	(void)state;
	forget_calls();
	for (unsigned cpu = 0; cpu < 16; cpu++)
		assert_int_equal(quipu_core_set_online(core, cpu, false), 0);
	assert_string_equal(calls, "OPAL_IMC_COUNTERS_STOP(NEST, 0xf) = 0\n");
	quipu_event_close(e);
	assert_int_equal(ncalls, 1);
	assert_int_equal(quipu_core_set_online(core, 2, true), 0);
	forget_calls();
	e = opened("nest_mcs01", (struct quipu_attr){.config = 0xd0}, -1, 2);
	assert_string_equal(calls, "OPAL_IMC_COUNTERS_START(NEST, 0x2) = 0\n");
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 2560);
	assert_int_equal(count(e), 10);
	quipu_event_close(e);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(i14_a_refused_core_event_leaves_the_trace_alone),
		CASE(i15_nest_beside_thread),
		CASE(i17_a_chip_that_the_unit_does_not_name),
		CASE(c2_a_clear_of_the_region_shows),
		CASE(c4_one_of_two_is_taken_off),
		CASE(c5_children_are_counted),
		CASE(c6_a_hardware_leader),
		CASE(c7_as_many_as_one_likes),
		CASE(c9_memory_lags_by_a_posting),
		CASE(threads_of_a_core_share_its_engine),
		CASE(r4_a_second_stop_has_nothing),
		CASE(r6_a_half_written_record_ends_the_walk),
		CASE(r7_a_full_ring),
		CASE(r8_whose_instruction_it_was),
		CASE(r9_the_first_that_is_stopped_takes_all),
		CASE(r10_times_are_those_of_the_delivery),
		CASE(r11_no_interrupt_anywhere),
		CASE(r12_a_chain_is_empty),
		CASE(h3_the_last_cpu_of_a_chip),
		CASE(h5_a_cpu_with_a_thread_event_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
