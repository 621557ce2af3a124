/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf ABI sheet D6, cases that need modelled hardware, a scheduler that the test directs, or an
 * exact clock: 13, 18, 19, 29-32, 35, 38, 39, 48, 49, 52-65. On the event core only; rings and
 * samples are in samples.c.
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

static void run(struct world *w, unsigned cpu)
{
	quipu_sched_in(w->core, cpu, w->task);
}

static struct quipu_attr un(struct world *w)
{
	return world_attr((uint32_t)w->un_pmu.type, 0, 0);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
