// SPDX-License-Identifier: BSD-2-Clause
/*
 * A PMU that goes while events are open on it: what those are still good for (Linux 6.15,
 * perf_pmu_unregister), and that nothing else notices.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "world.h"

static bool listed(struct world *w, const char *name)
{
	struct quipu_pmu *const *pmus;
	size_t n;

	pmus = quipu_core_pmus(w->core, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(pmus[i]->name, name))
			return true;
	return false;
}

static void event_is_good_for_nothing(void **state)
{
	struct world w;
	struct quipu_event *e;
	uint64_t words[8];
	uint8_t page[4096];

	(void)state;
	world_init(&w, 4, -1);
	e = world_open(&w, world_attr((uint32_t)w.un_pmu.type, 0, 0), -1, 0, NULL);
	world_work(&w, 0, 1000);
	assert_int_equal(quipu_core_unregister(w.core, &w.un_pmu), 0);
	assert_false(listed(&w, "un"));
	assert_true(listed(&w, "cpu"));
	assert_ptr_equal(w.last_woken, e);
	world_work(&w, 0, 1000);
	assert_int_equal(quipu_event_read(e, words, sizeof(words)), 0);
	assert_int_equal(quipu_event_poll(e), POLLERR);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0), -ENODEV);
	assert_string_equal(quipu_core_last_reason(w.core), "its PMU is gone");
	assert_int_equal(quipu_event_set_period(e, 5), -ENODEV);
	assert_int_equal(quipu_event_map(e, &w.caller, page, 0, true), -ENODEV);
	assert_int_equal(world_try(&w, SW(PERF_COUNT_SW_CPU_CLOCK, 0), -1, 0, e), -ENODEV);
	/* What it had counted, for as long as it was there. */
	assert_int_equal(world_count(e).enabled, 1000);
	assert_int_equal(world_count(e).running, 1000);
	assert_non_null(world_count(e).reason);
	assert_int_equal(world_try(&w, quipu_event_attr(e)[0], -1, 0, NULL), -ENOENT);
	assert_int_equal(quipu_core_unregister(w.core, &w.un_pmu), -EINVAL);
	quipu_event_close(e);
	world_free(&w);
}

/* The others of its group stay: software events go on, by themselves. */
static void software_members_go_on(void **state)
{
	struct world w;
	struct quipu_event *e, *first, *member;

	(void)state;
	world_init(&w, 4, -1);
	first = world_open(&w, world_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0), -1, 0,
			   NULL);
	e = world_open(&w, world_attr((uint32_t)w.un_pmu.type, 0, 0), -1, 0, first);
	member = world_open(&w, world_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0), -1, 0,
			    first);
	world_work(&w, 0, 500);
	assert_int_equal(quipu_core_unregister(w.core, &w.un_pmu), 0);
	world_work(&w, 0, 700);
	assert_int_equal(world_value(first), 1200);
	assert_int_equal(world_value(member), 1200);
	assert_int_equal(quipu_event_poll(e), POLLERR);
	assert_int_equal(quipu_event_ioctl(member, PERF_EVENT_IOC_DISABLE, 0), 0);
	world_work(&w, 0, 100);
	assert_int_equal(world_value(first), 1300);
	assert_int_equal(world_value(member), 1200);
	quipu_event_close(e);
	world_free(&w);
}

/* Its class and its type number are free for the next one, whose events schedule and rotate. */
static void another_takes_its_place(void **state)
{
	struct world w;
	struct quipu_event *old, *e[UN_COUNTERS + 1];
	uint64_t running = 0;
	int type;

	(void)state;
	world_init(&w, 4, -1);
	type = w.un_pmu.type;
	old = world_open(&w, world_attr((uint32_t)type, 0, 0), -1, 0, NULL);
	world_work(&w, 0, 10);
	assert_int_equal(quipu_core_unregister(w.core, &w.un_pmu), 0);
	w.un_pmu.type = -1;
	assert_int_equal(quipu_core_register(w.core, &w.un_pmu), 0);
	assert_int_equal(w.un_pmu.type, type);
	for (unsigned i = 0; i < UN_COUNTERS + 1; i++)
		e[i] = world_open(&w, world_attr((uint32_t)type, 0, 0), -1, 0, NULL);
	world_work(&w, 0, 100000000);
	for (unsigned i = 0; i < UN_COUNTERS + 1; i++) {
		running += world_count(e[i]).running;
		assert_true(world_count(e[i]).running < 100000000);
	}
	assert_int_equal(running, UN_COUNTERS * UINT64_C(100000000));
	/* The old event does not come back. */
	assert_int_equal(quipu_event_ioctl(old, PERF_EVENT_IOC_ENABLE, 0), -ENODEV);
	assert_int_equal(world_count(old).running, 10);
	world_free(&w);
}

/* A core PMU with the events of tasks on it: clones have folded into their originals. */
static void inherited_counts_are_kept(void **state)
{
	struct world w;
	struct quipu_event *e;
	struct quipu_task *child;

	(void)state;
	world_init(&w, 4, -1);
	e = world_open(&w, HW(PERF_COUNT_HW_CPU_CYCLES, QUIPU_ATTR_INHERIT), 100, -1, NULL);
	quipu_sched_in(w.core, 0, w.task);
	child = quipu_task_new(w.core, w.task, 101, 101, false, "child", 0);
	assert_non_null(child);
	quipu_sched_in(w.core, 1, child);
	world_work(&w, 0, 300);
	world_work(&w, 1, 50);
	assert_int_equal(quipu_core_unregister(w.core, &w.cpu_pmu), 0);
	world_work(&w, 0, 300);
	world_work(&w, 1, 50);
	assert_int_equal(world_count(e).value, 350);
	quipu_sched_out(w.core, 1, false);
	quipu_task_exit(child, 1);
	quipu_sched_out(w.core, 0, false);
	assert_int_equal(world_count(e).value, 350);
	quipu_event_close(e);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_is_good_for_nothing),
		cmocka_unit_test(software_members_go_on),
		cmocka_unit_test(another_takes_its_place),
		cmocka_unit_test(inherited_counts_are_kept),
	};

	return cmocka_run_group_tests_name("unregister", tests, NULL, NULL);
}
