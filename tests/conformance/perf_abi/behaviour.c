/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf ABI sheet D6, cases that need modelled hardware, a scheduler that the test directs, or an
 * exact clock: 13, 18, 19, 29-32, 35, 38, 39, 48, 49, 52-65, 69-74, 78-88. On the event core only.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../../unit/event/world.h"

#define MS	   UINT64_C(1000000)
#define ENABLE(e)  assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0), 0)
#define DISABLE(e) assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_DISABLE, 0), 0)

static uint8_t record[65536];

/* For tests of something else than throttling. */
static void never_throttle(struct world *w)
{
	assert_int_equal(quipu_core_set_sysctl(w->core, "max_sample_rate", 1000000000), 0);
}

static void run(struct world *w, unsigned cpu)
{
	quipu_sched_in(w->core, cpu, w->task);
}

static struct quipu_attr un(struct world *w)
{
	return world_attr((uint32_t)w->un_pmu.type, 0, 0);
}

static struct quipu_attr sampling(uint64_t period, uint64_t type, uint64_t flags)
{
	struct quipu_attr a = HW(1, flags | QUIPU_ATTR_SAMPLE_ID_ALL);

	a.sample_period = period;
	a.sample_type = type | PERF_SAMPLE_IDENTIFIER;
	return a;
}

/* ---- open ---- */

static void test_offline(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	assert_int_equal(quipu_core_set_online(w.core, 3, false), 0);
	assert_int_equal(world_try(&w, HW(0, 0), -1, 3, NULL), -ENODEV);
	assert_int_equal(quipu_core_set_online(w.core, 3, true), 0);
	assert_int_equal(world_try(&w, HW(0, 0), -1, 3, NULL), 0);
	world_free(&w);
}

static void test_cache_codes(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	assert_int_equal(world_try(&w, world_attr(PERF_TYPE_HW_CACHE, 0, 0), 100, -1, NULL), 0);
	assert_int_equal(world_try(&w, world_attr(PERF_TYPE_HW_CACHE, 0x010002, 0), 100, -1, NULL),
			 -ENOENT);
	assert_int_equal(world_try(&w, world_attr(PERF_TYPE_HW_CACHE, 7, 0), 100, -1, NULL),
			 -EINVAL);
	assert_int_equal(world_try(&w, world_attr(PERF_TYPE_HW_CACHE, 0x300, 0), 100, -1, NULL),
			 -EINVAL);
	world_free(&w);
}

static void test_rate_sysctl(void **state)
{
	struct quipu_attr a = HW(1, QUIPU_ATTR_FREQ);
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	a.sample_freq = 20000;
	assert_int_equal(world_try(&w, a, 100, -1, NULL), 0);
	assert_int_equal(quipu_core_set_sysctl(w.core, "max_sample_rate", 10000), 0);
	assert_int_equal(world_try(&w, a, 100, -1, NULL), -EINVAL);
	assert_int_equal(quipu_core_set_sysctl(w.core, "no_such", 1), -EINVAL);
	world_free(&w);
}

static void test_uncore_refusals(void **state)
{
	struct quipu_attr a;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	a = un(&w);
	assert_int_equal(world_try(&w, a, -1, 0, NULL), 0);
	assert_int_equal(world_try(&w, a, 100, 0, NULL), -EINVAL);
	a.sample_period = 1000;
	assert_int_equal(world_try(&w, a, -1, 0, NULL), -EOPNOTSUPP);
	assert_non_null(strstr(quipu_core_last_reason(w.core), "quipu stat"));
	a = un(&w);
	a.flags = QUIPU_ATTR_EXCLUDE_USER;
	assert_int_equal(world_try(&w, a, -1, 0, NULL), -EINVAL);
	world_free(&w);
}

static void test_extended_type(void **state)
{
	struct quipu_event *plain, *extended;
	struct world w;

	(void)state;
	world_init(&w, 4, -1);
	run(&w, 0);
	plain = world_open(&w, HW(1, 0), 100, -1, NULL);
	extended = world_open(&w, HW(UINT64_C(4) << 32 | 1, 0), 100, -1, NULL);
	world_work(&w, 0, 12345);
	assert_int_equal(world_value(plain), 12345);
	assert_int_equal(world_value(extended), 12345);
	assert_int_equal(world_try(&w, HW((uint64_t)w.un_pmu.type << 32 | 1, 0), 100, -1, NULL),
			 -ENOENT);
	world_free(&w);
}

/* Every cell of A5, for a caller without capabilities. */
static void test_permissions(void **state)
{
	static const struct {
		const char *what;
		bool task, others;
		uint64_t flags, sample_type;
		int want[5]; /* at -1, 0, 1, 2, 3 */
	} table[] = {
		{"own task, user only",
		 true,
		 false,
		 QUIPU_ATTR_EXCLUDE_KERNEL,
		 0,
		 {0, 0, 0, 0, -EACCES}},
		{"own task, kernel", true, false, 0, 0, {0, 0, 0, -EACCES, -EACCES}},
		{"a whole CPU",
		 false,
		 false,
		 QUIPU_ATTR_EXCLUDE_KERNEL,
		 0,
		 {0, 0, -EACCES, -EACCES, -EACCES}},
		{"another's task",
		 true,
		 true,
		 QUIPU_ATTR_EXCLUDE_KERNEL,
		 0,
		 {-EACCES, -EACCES, -EACCES, -EACCES, -EACCES}},
		{"physical addresses",
		 true,
		 false,
		 QUIPU_ATTR_EXCLUDE_KERNEL,
		 PERF_SAMPLE_PHYS_ADDR,
		 {0, 0, 0, -EACCES, -EACCES}},
		{"namespaces",
		 true,
		 false,
		 QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_NAMESPACES,
		 0,
		 {-EACCES, -EACCES, -EACCES, -EACCES, -EACCES}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		for (int level = -1; level <= 3; level++) {
			struct quipu_attr a = world_attr(PERF_TYPE_HARDWARE, 1, table[i].flags);
			struct world w;
			int r;

			a.sample_type = table[i].sample_type;
			world_init(&w, 2, level);
			quipu_task_set_uid(w.task, table[i].others ? 7 : 1000);
			r = world_try(&w, a, table[i].task ? 100 : -1, table[i].task ? -1 : 0,
				      NULL);
			if (r != table[i].want[level + 1])
				fail_msg("%s at %d: %d", table[i].what, level, r);
			w.caller.perfmon = true;
			assert_int_equal(world_try(&w, a, table[i].task ? 100 : -1,
						   table[i].task ? -1 : 0, NULL),
					 0);
			world_free(&w);
		}
	}
}

/* ---- groups and scheduling ---- */

static void test_mixed_groups(void **state)
{
	struct quipu_event *hw, *sw, *leader, *member;
	struct world w;

	(void)state;
	world_init(&w, 4, -1);
	run(&w, 0);
	hw = world_open(&w, HW(1, 0), 100, -1, NULL);
	sw = world_open(&w, SW(PERF_COUNT_SW_TASK_CLOCK, 0), 100, -1, hw);
	leader = world_open(&w, SW(PERF_COUNT_SW_TASK_CLOCK, 0), 100, -1, NULL);
	member = world_open(&w, HW(0, 0), 100, -1, leader);
	world_work(&w, 0, 5000);
	assert_int_equal(world_value(hw), 5000);
	assert_int_equal(world_value(sw), 5000);
	assert_int_equal(world_value(leader), 5000);
	assert_int_equal(world_value(member), 5000);
	world_free(&w);
}

static void test_group_too_big(void **state)
{
	struct quipu_event *e[3] = {NULL};
	struct quipu_count c;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	for (int i = 0; i < 3; i++)
		e[i] = world_open(&w, HW(1, 0), 100, -1, e[0]);
	world_work(&w, 0, 20 * MS);
	for (int i = 0; i < 3; i++) {
		c = world_count(e[i]);
		assert_int_equal(c.value, 0);
		assert_int_equal(c.running, 0);
		assert_int_equal(c.enabled, 20 * MS);
		assert_int_equal(c.truth, 20 * MS);
		assert_non_null(c.reason);
	}
	world_free(&w);
}

static void test_pinned_error(void **state)
{
	struct quipu_event *first, *second;
	struct world w;
	uint64_t out[3];

	(void)state;
	world_init(&w, 1, -1);
	run(&w, 0);
	first = world_open(&w, HW(1, QUIPU_ATTR_PINNED), 100, -1, NULL);
	second = world_open(&w, HW(1, QUIPU_ATTR_PINNED), 100, -1, NULL);
	world_work(&w, 0, 1000);
	assert_int_equal(quipu_event_read(second, out, sizeof(out)), 0);
	assert_int_equal(quipu_event_read(first, out, sizeof(out)), 24);
	quipu_event_close(first);
	ENABLE(second);
	world_work(&w, 0, 1000);
	assert_int_equal(quipu_event_read(second, out, sizeof(out)), 24);
	assert_int_equal(out[0], 1000);
	world_free(&w);
}

static void test_exclusive(void **state)
{
	struct quipu_event *alone, *other;
	struct world w;

	(void)state;
	world_init(&w, 4, -1);
	run(&w, 0);
	alone = world_open(&w, HW(1, QUIPU_ATTR_EXCLUSIVE), 100, -1, NULL);
	other = world_open(&w, HW(0, 0), 100, -1, NULL);
	world_work(&w, 0, 1000);
	assert_int_equal(world_value(alone), 1000);
	assert_int_equal(world_value(other), 0); /* although three counters are free */
	world_work(&w, 0, 400 * MS);
	assert_true(world_value(other) > 150 * MS && world_value(alone) > 150 * MS);
	world_free(&w);
}

static void test_multiplexing(void **state)
{
	struct quipu_event *e[3];
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	w.grain = 100000;
	run(&w, 0);
	for (int i = 0; i < 3; i++)
		e[i] = world_open(&w, HW(1, 0), 100, -1, NULL);
	world_work(&w, 0, 200 * 4 * MS);
	for (int i = 0; i < 3; i++) {
		struct quipu_count c = world_count(e[i]);
		double share = (double)c.running / (double)c.enabled,
		       scaled = (double)c.value / share;

		assert_int_equal(c.enabled, 800 * MS);
		assert_true(share > 2.0 / 3 * 0.95 && share < 2.0 / 3 * 1.05);
		assert_true(scaled > 800e6 * 0.98 && scaled < 800e6 * 1.02);
		assert_true(c.has_truth);
		assert_int_equal(c.truth, 800 * MS); /* the exact value beside the estimate */
	}
	world_free(&w);
}

static void test_mux_interval(void **state)
{
	struct quipu_event *a, *b;
	struct world w;

	(void)state;
	world_init(&w, 1, -1);
	run(&w, 0);
	assert_int_equal(quipu_core_set_mux_interval(w.core, &w.cpu_pmu, 0), -EINVAL);
	assert_int_equal(quipu_core_set_mux_interval(w.core, &w.cpu_pmu, 10), 0);
	a = world_open(&w, HW(1, 0), 100, -1, NULL);
	b = world_open(&w, HW(1, 0), 100, -1, NULL);
	world_work(&w, 0, 10 * MS - 1);
	assert_int_equal(world_value(b), 0);
	world_work(&w, 0, 5 * MS + 1);
	assert_int_equal(world_value(a), 10 * MS);
	assert_int_equal(world_value(b), 5 * MS);
	world_free(&w);
}

static void test_strict_order(void **state)
{
	struct quipu_event *big = NULL, *small;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	for (int i = 0; i < 3; i++) {
		struct quipu_event *e = world_open(&w, HW(1, 0), 100, -1, big);

		big = big ? big : e;
	}
	small = world_open(&w, HW(0, 0), 100, -1, NULL);
	run(&w, 0);
	world_work(&w, 0, 1000);
	assert_int_equal(world_value(small), 0);
	assert_non_null(strstr(world_count(small).reason, "order"));
	world_work(&w, 0, 20 * MS); /* rotation takes the big one from the head */
	assert_true(world_value(small) > 0);
	assert_int_equal(world_value(big), 0);
	world_free(&w);
}

static void test_pinned_stays(void **state)
{
	struct quipu_event *pinned, *flexible[2], *sw;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	flexible[0] = world_open(&w, HW(0, 0), 100, -1, NULL);
	flexible[1] = world_open(&w, HW(0, 0), 100, -1, NULL);
	pinned = world_open(&w, HW(1, QUIPU_ATTR_PINNED), 100, -1, NULL);
	sw = world_open(&w, SW(PERF_COUNT_SW_TASK_CLOCK, 0), 100, -1, NULL);
	world_work(&w, 0, 100 * MS);
	assert_int_equal(world_count(pinned).running, 100 * MS);
	assert_int_equal(world_value(pinned), 100 * MS);
	assert_int_equal(world_count(sw).running, 100 * MS); /* 56 */
	assert_true(world_count(flexible[0]).running < 60 * MS);
	assert_true(world_count(flexible[1]).running < 60 * MS);
	world_free(&w);
}

static void test_nowhere_code(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, world_attr(PERF_TYPE_RAW, RAW_NOWHERE, QUIPU_ATTR_EXCLUDE_KERNEL), 100,
		       -1, NULL);
	world_work(&w, 0, 1000);
	assert_string_equal(world_count(e).reason,
			    "no counter of this machine takes that raw code");
	world_free(&w);
}

/* ---- tasks ---- */

static void test_enable_on_exec(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, HW(1, QUIPU_ATTR_DISABLED | QUIPU_ATTR_ENABLE_ON_EXEC), 100, -1, NULL);
	world_work(&w, 0, 500);
	assert_int_equal(world_value(e), 0); /* 58: nothing that is no exec enables */
	quipu_task_exec(w.task, "prog", 0);
	world_work(&w, 0, 700);
	assert_int_equal(world_value(e), 700);
	assert_int_equal(world_count(e).enabled, 700);
	DISABLE(e);
	quipu_task_exec(w.task, "prog2", 0);
	world_work(&w, 0, 100);
	assert_int_equal(world_value(e), 700);
	world_free(&w);
}

static void test_inherit(void **state)
{
	struct quipu_event *all, *own, *group, *member;
	struct quipu_task *t[8];
	uint64_t sum, out[3];
	struct world w;

	(void)state;
	world_init(&w, 8, -1);
	run(&w, 0);
	all = world_open(&w, HW(1, QUIPU_ATTR_INHERIT), 100, -1, NULL);
	own = world_open(&w, HW(1, 0), 100, -1, NULL); /* 60 */
	group = world_open(&w, HW(0, QUIPU_ATTR_INHERIT), 100, -1, NULL);
	member = world_open(&w, HW(1, QUIPU_ATTR_INHERIT), 100, -1, group);
	for (int i = 0; i < 8; i++)
		t[i] = quipu_task_new(w.core, w.task, 100, 101 + i, true, NULL, 0);
	world_work(&w, 0, 1000);
	for (int i = 0; i < 8; i++) {
		quipu_sched_in(w.core, 1 + (unsigned)i % 3, t[i]);
		world_work(&w, 1 + (unsigned)i % 3, 10 * (unsigned)(i + 1));
	}
	sum = 1000 + 10 * 36;
	assert_int_equal(world_value(all), sum);
	assert_int_equal(world_value(member), sum);
	assert_int_equal(world_count(all).truth, sum);
	assert_int_equal(world_value(own), 1000);
	for (int i = 0; i < 8; i++)
		quipu_task_exit(t[i], 1);
	assert_int_equal(world_value(all), sum);
	assert_int_equal(world_count(all).truth, sum);
	/* RESET does not reach what exited clones left (D3 point 17). */
	quipu_event_ioctl(all, PERF_EVENT_IOC_RESET, 0);
	assert_int_equal(world_value(all), 360);
	assert_int_equal(quipu_event_read(group, out, sizeof(out)), 24);
	assert_int_equal(out[0], sum);
	world_free(&w);
}

static void test_per_cpu_task_event(void **state)
{
	struct quipu_event *on[WORLD_CPUS], *any;
	uint64_t sum = 0;
	struct world w;

	(void)state;
	world_init(&w, 4, -1);
	for (int c = 0; c < WORLD_CPUS; c++)
		on[c] = world_open(&w, HW(1, 0), 100, c, NULL);
	any = world_open(&w, HW(1, 0), 100, -1, NULL);
	for (unsigned i = 0; i < 6; i++) {
		run(&w, i % 3);
		world_work(&w, i % 3, 100 * (i + 1));
		quipu_sched_out(w.core, i % 3, true);
	}
	for (int c = 0; c < WORLD_CPUS; c++) {
		struct quipu_count n = world_count(on[c]);

		sum += n.value;
		assert_int_equal(n.enabled, 2100);
		assert_int_equal(n.running, n.value);
		assert_int_equal(n.truth, n.value);
	}
	assert_int_equal(sum, 2100);
	assert_int_equal(world_value(any), 2100);
	assert_int_equal(world_value(on[1]), 200 + 500);
	world_free(&w);
}

static void test_after_exit(void **state)
{
	struct quipu_event *e;
	struct reader r;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, HW(1, 0), 100, -1, NULL);
	r = world_map(&w, e, 1, true);
	world_work(&w, 0, 77);
	assert_int_equal(quipu_event_poll(e), 0);
	quipu_task_exit(w.task, 0);
	assert_int_equal(world_value(e), 77);
	assert_int_equal(quipu_event_poll(e), POLLHUP);
	assert_int_equal(w.hups, 1);
	assert_int_equal(world_try(&w, HW(1, 0), 100, -1, NULL), -ESRCH);
	world_unmap(&r);
	world_free(&w);
}

static void test_remove_on_exec(void **state)
{
	struct quipu_event *gone, *stays;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	gone = world_open(&w, HW(1, QUIPU_ATTR_REMOVE_ON_EXEC), 100, -1, NULL);
	stays = world_open(&w, HW(1, 0), 100, -1, NULL);
	world_work(&w, 0, 50);
	quipu_task_exec(w.task, "next", 0);
	world_work(&w, 0, 50);
	assert_int_equal(world_value(gone), 50);
	assert_int_equal(world_value(stays), 100);
	assert_int_equal(quipu_event_state(gone), -3);
	world_free(&w);
}

static void test_inherit_stat(void **state)
{
	struct quipu_attr a =
		HW(1, QUIPU_ATTR_INHERIT | QUIPU_ATTR_INHERIT_STAT | QUIPU_ATTR_SAMPLE_ID_ALL);
	struct quipu_event *e;
	struct quipu_task *child;
	struct reader r;
	struct parsed p;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ID;
	e = world_open(&w, a, 100, 0, NULL);
	r = world_map(&w, e, 1, true);
	child = quipu_task_new(w.core, w.task, 101, 101, false, NULL, 0);
	quipu_sched_in(w.core, 0, child);
	world_work(&w, 0, 321);
	quipu_task_exit(child, 0);
	assert_true(world_next(&r, record));
	p = parse_record(record, &a);
	assert_true(p.ok);
	assert_int_equal(p.type, PERF_RECORD_READ);
	assert_int_equal(p.body_pid, 101);
	assert_int_equal(p.read[0], 321);
	assert_false(world_next(&r, record));
	assert_int_equal(world_value(e), 321);
	world_unmap(&r);
	world_free(&w);
}

static void test_prctl(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, HW(1, 0), 100, -1, NULL);
	quipu_core_prctl(w.core, 999, false);
	world_work(&w, 0, 10);
	quipu_core_prctl(w.core, 100, false);
	world_work(&w, 0, 10);
	quipu_core_prctl(w.core, 100, true);
	world_work(&w, 0, 10);
	assert_int_equal(world_value(e), 20);
	world_free(&w);
}

/* ---- rings and samples ---- */

static void test_wrap_and_lost(void **state)
{
	struct quipu_attr a = sampling(1000, PERF_SAMPLE_IP, 0);
	struct parsed p = {0};
	unsigned got = 0, lost = 0, records = 0;
	struct quipu_event *e;
	struct reader r;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	never_throttle(&w);
	run(&w, 0);
	a.read_format = 1 << 4;
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 1, true); /* 4096 bytes: 170 samples of 24 bytes, a byte stays free */
	world_work(&w, 0, 300 * 1000);
	while (world_next(&r, record)) {
		p = parse_record(record, &a);
		assert_true(p.ok && p.type == PERF_RECORD_SAMPLE);
		got++;
	}
	assert_int_equal(got, 170);
	assert_int_equal(world_count(e).lost, 130);
	/* 70: one LOST when there is room again, ahead of the record that found it; 69: those wrap.
	 */
	world_work(&w, 0, 100 * 1000);
	while (world_next(&r, record)) {
		p = parse_record(record, &a);
		assert_true(p.ok);
		if (p.type == PERF_RECORD_LOST) {
			assert_int_equal(records, 0);
			assert_int_equal(p.id, quipu_event_id(e));
			lost += (unsigned)p.lost;
		}
		records++;
	}
	assert_int_equal(lost, 130);
	assert_int_equal(records, 101);
	world_unmap(&r);
	world_free(&w);
}

static void test_wakeups(void **state)
{
	static const struct {
		uint64_t flags;
		uint32_t wakeup;
		unsigned samples, wakes;
	} table[] = {
		{0, 0, 80, 0},			    /* 1920 bytes: not yet half of 4096 */
		{0, 0, 90, 1},			    /* 2160 */
		{0, 10, 35, 3},			    /* every tenth sample */
		{QUIPU_ATTR_WATERMARK, 240, 35, 3}, /* 840 bytes */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct quipu_attr a = sampling(1000, PERF_SAMPLE_IP, table[i].flags);
		struct quipu_event *e;
		struct reader r;
		struct world w;

		world_init(&w, 2, -1);
		run(&w, 0);
		a.wakeup_events = table[i].wakeup;
		e = world_open(&w, a, 100, -1, NULL);
		r = world_map(&w, e, 1, true);
		world_work(&w, 0, table[i].samples * 1000);
		assert_int_equal(w.wakes, table[i].wakes);
		world_unmap(&r);
		world_free(&w);
	}
}

static void test_overwrite_and_backward(void **state)
{
	struct quipu_attr a = sampling(1000, PERF_SAMPLE_PERIOD, 0);
	struct quipu_event *e, *b;
	struct reader r, rb;
	uint64_t head, off, seen = 0;
	struct parsed p;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	never_throttle(&w);
	run(&w, 0);
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 1, false);
	a.flags |= QUIPU_ATTR_WRITE_BACKWARD;
	a.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
	b = world_open(&w, a, 100, -1, NULL);
	rb = world_map(&w, b, 1, false);
	world_work(&w, 0, 1000 * 1000);
	assert_int_equal(world_count(e).lost, 0);
	memcpy(&head, r.mem + 1024, 8);
	assert_int_equal(head, 24 * 1000);
	/* 73: the newest is at head; older ones follow until the circle is full. */
	assert_int_equal(quipu_event_ioctl(b, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
	memcpy(&head, rb.mem + 1024, 8);
	assert_int_equal(-head, 24 * 1000);
	for (off = 0; off + 24 <= 4096; off += 24, seen++) {
		for (unsigned i = 0; i < 24; i++)
			record[i] = rb.mem[4096 + ((head + off + i) & 4095)];
		p = parse_record(record, &a);
		assert_true(p.ok && p.type == PERF_RECORD_SAMPLE);
		assert_true(p.time <= (1000 - seen) * 1000);
	}
	assert_int_equal(seen, 170);
	/* 74: what comes while paused is lost. */
	world_work(&w, 0, 5000);
	assert_int_equal(world_count(b).lost, 5);
	world_unmap(&r);
	world_unmap(&rb);
	world_free(&w);
}

static void test_lock_limit(void **state)
{
	struct quipu_event *e;
	static uint8_t mem[1025 * 4096];
	struct world w;

	(void)state;
	world_init(&w, 2, 1); /* 516 KiB a CPU, 4 CPUs: 516 pages; RLIMIT_MEMLOCK 16 pages */
	e = world_open(&w, HW(1, 0), 100, -1, NULL);
	assert_int_equal(quipu_event_map(e, &w.caller, mem, 1024, true), -EPERM);
	w.caller.ipc_lock = true;
	assert_int_equal(quipu_event_map(e, &w.caller, mem, 1024, true), 0);
	quipu_event_unmap(e);
	w.caller.ipc_lock = false;
	assert_int_equal(quipu_event_map(e, &w.caller, mem, 512, true), 0);
	world_free(&w);
}

static void test_set_output_merges(void **state)
{
	struct quipu_attr a = sampling(1000, PERF_SAMPLE_IP, 0);
	struct quipu_event *x, *y;
	unsigned n[2] = {0};
	struct reader r;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	x = world_open(&w, a, 100, -1, NULL);
	a.sample_period = 2000;
	y = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, x, 8, true);
	assert_int_equal(quipu_event_set_output(y, x), 0);
	world_work(&w, 0, 20000);
	while (world_next(&r, record)) {
		struct parsed p = parse_record(record, &a);

		assert_true(p.identifier == quipu_event_id(x) || p.identifier == quipu_event_id(y));
		n[p.identifier == quipu_event_id(y)]++;
	}
	assert_int_equal(n[0], 20);
	assert_int_equal(n[1], 10);
	world_unmap(&r);
	world_free(&w);
}

/* Each bit alone, and all that go together. */
static void test_every_field(void **state)
{
	static const uint64_t chain[] = {0x2000, 0x3000};
	static const uint64_t branches[] = {1, 2, 3, 4, 5, 6};

	(void)state;
	for (unsigned bit = 0; bit <= 26; bit++) {
		uint64_t all = ((UINT64_C(1) << 24) - 1) & ~(UINT64_C(1) << 14), chosen;
		struct quipu_sample s = {.ip = 0x1000,
					 .addr = 0x55,
					 .weight = 9,
					 .chain = chain,
					 .nr_chain = 2,
					 .branches = branches,
					 .nr_branches = 2,
					 .raw = "abcdefg",
					 .raw_size = 7};
		struct quipu_attr a = world_attr(PERF_TYPE_HARDWARE, 1, QUIPU_ATTR_SAMPLE_ID_ALL);
		struct quipu_event *e;
		struct reader r;
		struct parsed p;
		struct world w;

		chosen = bit < 25 ? UINT64_C(1) << bit : bit == 25 ? all | 1 << 14 : all | 1 << 24;
		world_init(&w, 2, -1);
		run(&w, 0);
		a.sample_period = 1 << 20;
		a.sample_type = chosen;
		a.read_format = 31;
		a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | 1 << 17;
		a.sample_regs_user = a.sample_regs_intr = 7;
		a.sample_stack_user = 64;
		e = world_open(&w, a, 100, -1, NULL);
		r = world_map(&w, e, 4, true);
		assert_int_equal(quipu_event_overflow(e, &s), 0);
		assert_true(world_next(&r, record));
		p = parse_record(record, &a);
		assert_true(p.ok);
		assert_int_equal(p.type, PERF_RECORD_SAMPLE);
		if (chosen & 1)
			assert_int_equal(p.ip, 0x1000);
		if (chosen & PERF_SAMPLE_CALLCHAIN) {
			assert_int_equal(p.nr_chain, 4);
			assert_int_equal(p.chain[0], (uint64_t)-512);
			assert_int_equal(p.chain[1], 0x1000);
			assert_int_equal(p.chain[3], 0x3000);
		}
		if (chosen & PERF_SAMPLE_RAW)
			assert_int_equal(p.raw_size, 12);
		if (chosen & PERF_SAMPLE_BRANCH_STACK)
			assert_int_equal(p.nr_branches, 2);
		if (chosen & (PERF_SAMPLE_WEIGHT | 1 << 24))
			assert_int_equal(p.weight, 9);
		if (chosen & PERF_SAMPLE_DATA_SRC)
			assert_int_equal(p.data_src, 0x5080021);
		world_unmap(&r);
		world_free(&w);
	}
}

static unsigned drain(struct reader *r, const struct quipu_attr *a, uint32_t type,
		      struct parsed *last)
{
	unsigned n = 0;

	while (world_next(r, record)) {
		struct parsed p = parse_record(record, a);

		assert_true(p.ok);
		if (p.type != type)
			continue;
		n++;
		if (last)
			*last = p;
	}
	return n;
}

static void test_fixed_period(void **state)
{
	struct quipu_attr a = sampling(997, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD, 0);
	struct quipu_event *e;
	struct reader r;
	struct parsed p;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	never_throttle(&w);
	run(&w, 0);
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 16, true);
	world_work(&w, 0, 500000);
	quipu_sched_out(w.core, 0, false); /* switching in the middle of a period loses nothing */
	quipu_sched_in(w.core, 1, w.task);
	world_work(&w, 1, 400000);
	assert_int_equal(drain(&r, &a, PERF_RECORD_SAMPLE, &p), world_value(e) / 997);
	assert_int_equal(world_value(e), 900000);
	assert_int_equal(p.period, 997);
	world_unmap(&r);
	world_free(&w);
}

static void test_frequency(void **state)
{
	struct quipu_attr a =
		sampling(4000, PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD, QUIPU_ATTR_FREQ);
	struct quipu_event *e;
	struct reader r;
	unsigned n;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 64, true);
	world_work(&w, 0, 100 * MS);
	drain(&r, &a, PERF_RECORD_SAMPLE, NULL);
	world_work(&w, 0, 1000 * MS);
	n = drain(&r, &a, PERF_RECORD_SAMPLE, NULL);
	assert_in_range(n, 3600, 4400);
	world_unmap(&r);
	world_free(&w);
}

static void test_throttle(void **state)
{
	struct quipu_attr a = sampling(1, PERF_SAMPLE_TIME, 0);
	unsigned samples = 0, on = 0, off = 0;
	struct quipu_event *e;
	struct reader r;
	struct world w;

	(void)state;
	world_init(&w, 2, -1); /* 100000 / 250 = 400 samples a tick of 4 ms */
	w.grain = 10000;
	run(&w, 0);
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 64, true);
	world_work(&w, 0, 5 * MS);
	while (world_next(&r, record)) {
		struct parsed p = parse_record(record, &a);

		assert_true(p.ok);
		samples += p.type == PERF_RECORD_SAMPLE;
		if (p.type == PERF_RECORD_THROTTLE || p.type == PERF_RECORD_UNTHROTTLE) {
			assert_int_equal(p.id, quipu_event_id(e));
			assert_int_equal(p.stream_id, quipu_event_id(e));
			on += p.type == PERF_RECORD_THROTTLE;
			off += p.type == PERF_RECORD_UNTHROTTLE;
			if (p.type == PERF_RECORD_UNTHROTTLE)
				assert_int_equal(p.time, 4 * MS); /* at the tick */
		}
	}
	assert_int_equal(on, 2);
	assert_int_equal(off, 1);
	assert_int_equal(samples, 800);
	world_unmap(&r);
	world_free(&w);
}

static void test_period_ioctl(void **state)
{
	struct quipu_attr a = sampling(1000000, PERF_SAMPLE_PERIOD, 0);
	struct quipu_event *e;
	struct reader r;
	struct parsed p;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 16, true);
	world_work(&w, 0, 1000);
	assert_int_equal(quipu_event_set_period(e, 100), 0);
	assert_int_equal(quipu_event_set_period(e, 0), -EINVAL);
	assert_int_equal(quipu_event_set_period(e, UINT64_C(1) << 63), -EINVAL);
	world_work(&w, 0, 1000);
	assert_int_equal(drain(&r, &a, PERF_RECORD_SAMPLE, &p), 10);
	assert_int_equal(p.period, 100);
	world_unmap(&r);
	world_free(&w);
}

static void test_refresh(void **state)
{
	struct quipu_attr a = sampling(100, PERF_SAMPLE_IP, QUIPU_ATTR_DISABLED);
	struct quipu_event *e, *i;
	struct reader r;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 16, true);
	quipu_event_set_async(e, true);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_REFRESH, 3), 0);
	assert_true(quipu_event_needs_bell(e));
	world_work(&w, 0, 10000);
	assert_int_equal(drain(&r, &a, PERF_RECORD_SAMPLE, NULL), 3);
	assert_int_equal(w.sigios, 3); /* 86: one an overflow */
	assert_int_equal(w.last_sigio, POLL_HUP);
	assert_int_equal(world_value(e), 300);
	assert_int_equal(quipu_event_state(e), -1);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_REFRESH, 1), 0);
	world_work(&w, 0, 10000);
	assert_int_equal(world_value(e), 400);
	a.flags |= QUIPU_ATTR_INHERIT;
	i = world_open(&w, a, 100, -1, NULL);
	assert_int_equal(quipu_event_ioctl(i, PERF_EVENT_IOC_REFRESH, 1), -EINVAL);
	world_unmap(&r);
	world_free(&w);
}

static void test_callchain_markers(void **state)
{
	static const uint64_t chain[] = {0x2000, 0x3000};
	struct quipu_attr a = world_attr(PERF_TYPE_HARDWARE, 1, 0);
	struct quipu_sample s = {
		.ip = 0xffffffff81000000, .chain = chain, .nr_chain = 2, .cpumode = 1};
	struct quipu_event *e;
	struct reader r;
	struct parsed p;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	a.sample_period = 1 << 20;
	a.sample_type = PERF_SAMPLE_CALLCHAIN;
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 1, true);
	quipu_event_overflow(e, &s);
	assert_true(world_next(&r, record));
	p = parse_record(record, &a);
	assert_true(p.ok);
	assert_int_equal(p.misc & 7, 1);
	assert_int_equal(p.nr_chain, 5);
	assert_int_equal(p.chain[0], (uint64_t)-128);
	assert_int_equal(p.chain[1], s.ip);
	assert_int_equal(p.chain[2], (uint64_t)-512);
	assert_int_equal(p.chain[3], 0x2000);
	world_unmap(&r);
	world_free(&w);
}

static void test_sideband_order(void **state)
{
	static const uint32_t want[] = {
		PERF_RECORD_COMM, PERF_RECORD_MMAP2,  PERF_RECORD_MMAP2, PERF_RECORD_SAMPLE,
		PERF_RECORD_FORK, PERF_RECORD_SAMPLE, PERF_RECORD_EXIT,	 PERF_RECORD_EXIT,
	};
	const struct quipu_mapping program = {
		.addr = 0x10000, .len = 0x1000, .prot = PROT_READ | PROT_EXEC, .name = "/bin/prog"};
	const struct quipu_mapping libc = {.addr = 0x40000,
					   .len = 0x1000,
					   .prot = PROT_READ | PROT_EXEC,
					   .name = "/lib/libc.so.6"};
	const struct quipu_mapping data = {
		.addr = 0x80000, .len = 0x1000, .prot = PROT_READ, .name = "[heap]"};
	struct quipu_attr a =
		sampling(1000, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
			 QUIPU_ATTR_DISABLED | QUIPU_ATTR_ENABLE_ON_EXEC | QUIPU_ATTR_COMM |
				 QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2 | QUIPU_ATTR_TASK |
				 QUIPU_ATTR_INHERIT | QUIPU_ATTR_COMM_EXEC);
	struct quipu_event *e;
	struct quipu_task *child;
	struct reader r;
	uint64_t last = 0;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	run(&w, 0);
	e = world_open(&w, a, 100, 0, NULL);
	r = world_map(&w, e, 8, true);
	quipu_task_comm(w.task, "perf-exec", 0); /* not enabled: nobody hears */
	quipu_task_exec(w.task, "prog", 0);
	quipu_task_mmap(w.task, &program, 0);
	quipu_task_mmap(w.task, &data, 0);
	quipu_task_mmap(w.task, &libc, 0);
	world_work(&w, 0, 1000);
	child = quipu_task_new(w.core, w.task, 101, 101, false, NULL, 0);
	quipu_sched_out(w.core, 0, false);
	quipu_sched_in(w.core, 0, child);
	world_work(&w, 0, 1000);
	quipu_task_exit(child, 0);
	quipu_sched_in(w.core, 0, w.task);
	quipu_task_exit(w.task, 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct parsed p;

		assert_true(world_next(&r, record));
		p = parse_record(record, &a);
		assert_true(p.ok);
		assert_int_equal(p.type, want[i]);
		assert_true(p.time >= last);
		last = p.time;
		if (i == 0) {
			assert_string_equal(p.name, "prog");
			assert_int_equal(p.misc & 1 << 13, 1 << 13);
		}
		if (i == 1)
			assert_string_equal(p.name, "/bin/prog");
		if (i == 4) {
			assert_int_equal(p.body_pid, 101);
			assert_int_equal(p.body_ppid, 100);
		}
		if (i == 5 || i == 6)
			assert_int_equal(p.pid, 101);
	}
	assert_false(world_next(&r, record));
	world_unmap(&r);
	world_free(&w);
}

/* 80: the trailer is there exactly when asked for. */
static void test_trailer(void **state)
{
	(void)state;
	for (int with = 0; with < 2; with++) {
		struct quipu_attr a = HW(1, QUIPU_ATTR_COMM | QUIPU_ATTR_CONTEXT_SWITCH);
		struct quipu_event *e;
		struct reader r;
		unsigned n = 0;
		struct world w;

		a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
		a.flags |= with ? QUIPU_ATTR_SAMPLE_ID_ALL : 0;
		world_init(&w, 2, -1);
		run(&w, 0);
		e = world_open(&w, a, 100, -1, NULL);
		r = world_map(&w, e, 1, true);
		quipu_task_comm(w.task, "renamed", 0);
		quipu_sched_out(w.core, 0, true);
		quipu_sched_in(w.core, 0, w.task);
		while (world_next(&r, record)) {
			struct parsed p = parse_record(record, &a);

			assert_true(p.ok);
			assert_int_equal(p.identifier, with ? quipu_event_id(e) : 0);
			assert_int_equal(p.pid, with ? 100 : 0);
			n++;
		}
		assert_int_equal(n, 3);
		world_unmap(&r);
		world_free(&w);
	}
}

static void test_sibling_after_close_in_kernel_order(void **state)
{
	struct quipu_event *leader, *sibling;
	struct world w;

	(void)state;
	world_init(&w, 1, -1);
	run(&w, 0);
	leader = world_open(&w, SW(PERF_COUNT_SW_DUMMY, QUIPU_ATTR_DISABLED), 100, -1, NULL);
	sibling = world_open(&w, HW(1, 0), 100, -1, leader);
	world_work(&w, 0, 100);
	assert_int_equal(world_count(sibling).enabled, 0); /* the leader is off */
	quipu_event_close(leader);
	quipu_sched_out(w.core, 0, false);
	quipu_sched_in(w.core, 0, w.task);
	world_work(&w, 0, 100);
	assert_int_equal(world_value(sibling), 100);
	world_free(&w);
}

#define CASE(name, fn)                                                                             \
	{                                                                                          \
		name, fn, NULL, NULL, NULL                                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("case 13 an offline CPU", test_offline),
		CASE("case 18 cache events: absent and malformed", test_cache_codes),
		CASE("case 19 lowering the sample rate limit", test_rate_sysctl),
		CASE("case 29-31 what an uncore PMU refuses", test_uncore_refusals),
		CASE("case 32 extended hardware type", test_extended_type),
		CASE("case 35 every cell of the permission table", test_permissions),
		CASE("case 38 software and hardware in one group, either way round",
		     test_mixed_groups),
		CASE("case 39 a group larger than the counters", test_group_too_big),
		CASE("case 41 a sibling whose leader was off runs after its close",
		     test_sibling_after_close_in_kernel_order),
		CASE("case 48 a pinned event that does not fit, and its recovery",
		     test_pinned_error),
		CASE("case 49 an exclusive group is alone", test_exclusive),
		CASE("case 52 n+1 events on n counters", test_multiplexing),
		CASE("case 53 the multiplexing interval", test_mux_interval),
		CASE("case 54 strict order", test_strict_order),
		CASE("case 55-56 pinned and software events stay", test_pinned_stays),
		CASE("a raw code that no counter takes says so", test_nowhere_code),
		CASE("case 57-58 enable_on_exec", test_enable_on_exec),
		CASE("case 59-60 inherited by 8 threads, or not", test_inherit),
		CASE("case 61 (pid, cpu) events", test_per_cpu_task_event),
		CASE("case 62 after the task's exit", test_after_exit),
		CASE("case 63 remove_on_exec", test_remove_on_exec),
		CASE("case 64 inherit_stat emits READ", test_inherit_stat),
		CASE("case 65 prctl 31 and 32", test_prctl),
		CASE("case 69-70 records wrap; lost records are told once", test_wrap_and_lost),
		CASE("case 71 wake-ups: half, watermark, events", test_wakeups),
		CASE("case 72-74 overwrite, backward, pause", test_overwrite_and_backward),
		CASE("case 75 two events in one buffer", test_set_output_merges),
		CASE("case 78 the lock limit", test_lock_limit),
		CASE("case 79 each sample field alone and all together", test_every_field),
		CASE("case 80 the id trailer", test_trailer),
		CASE("case 81 fixed period: floor(count / period) samples", test_fixed_period),
		CASE("case 82 frequency", test_frequency),
		CASE("case 83 throttling", test_throttle),
		CASE("case 84 PERIOD takes effect at once", test_period_ioctl),
		CASE("case 85-86 REFRESH and a signal an overflow", test_refresh),
		CASE("case 87 call chain markers", test_callchain_markers),
		CASE("case 88 side-band order of exec, fork, exit", test_sideband_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
