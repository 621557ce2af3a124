/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a user of the event core would miss that no conformance case asks for: the period
 * arithmetic, signals fed by hand, the exact truth, clock events in model time, reasons, slots,
 * CPU-wide and uncore counting, and readers that lie.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "world.h"

#define MS UINT64_C(1000000)

static uint8_t record[65536];

static void test_set_period(void **state)
{
	static const struct {
		int64_t left;
		uint64_t period, max;
		bool used;
		int64_t want_left;
		uint64_t programmed;
	} table[] = {
		{100, 100, 1000, false, 100, 100},
		{0, 100, 1000, true, 100, 100},
		{-7, 100, 1000, true, 93, 93},	   /* seven late: seven sooner */
		{-100, 100, 1000, true, 100, 100}, /* a whole period late: afresh */
		{-1000, 100, 1000, true, 100, 100},
		{5000, 5000, 1000, false, 5000,
		 1000}, /* clamped: the counter overflows before the sample */
		{4000, 5000, 1000, false, 4000, 1000},
		{INT64_MAX, INT64_MAX, INT64_MAX / 2, false, INT64_MAX, INT64_MAX / 2},
		{INT64_MIN, INT64_MAX, INT64_MAX / 2, true, INT64_MAX, INT64_MAX / 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct quipu_reload r = {.period_left = table[i].left,
					 .sample_period = table[i].period,
					 .max_left = table[i].max};

		assert_int_equal(quipu_reload_set_period(&r), table[i].used);
		assert_true(r.period_left == table[i].want_left);
		assert_int_equal(r.programmed, table[i].programmed);
		assert_int_equal(r.last_period, table[i].used ? table[i].period : 0);
	}
}

static void test_adjust(void **state)
{
	struct quipu_reload r = {
		.sample_period = 1, .sample_freq = 1000, .period_left = 1, .tick_ns = 4 * MS};

	(void)state;
	/* 4 million counts in 4 ms at 1 kHz: a period of 10^6, an eighth of the way at a time. */
	assert_false(quipu_reload_adjust(&r, 4 * MS, 4 * MS));
	assert_int_equal(r.sample_period, 1 + (1000000 - 1 + 7) / 8);
	for (int i = 0; i < 200; i++)
		quipu_reload_adjust(&r, 4 * MS, 4 * MS);
	assert_int_equal(r.sample_period, 1000000);
	/* The load falls: what is left is more than eight new periods, so the counter is set anew
	 * at once. */
	r.period_left = 1000000;
	r.sample_period = 8;
	assert_true(quipu_reload_adjust(&r, 4 * MS, 32));
	assert_int_equal(r.period_left, 0);
	assert_true(r.sample_period >= 1);
	/* Never 0, never negative, whatever comes. */
	r.sample_period = 1;
	quipu_reload_adjust(&r, UINT64_MAX, 0);
	assert_int_equal(r.sample_period, 1);
	for (int i = 0; i < 1000; i++)
		quipu_reload_adjust(&r, 1, UINT64_MAX);
	assert_true(r.sample_period > 0 && r.sample_period < UINT64_C(1) << 63);
	r.sample_freq = 0;
	quipu_reload_adjust(&r, 0, UINT64_MAX);
	assert_true(r.sample_period > 0 && r.sample_period < UINT64_C(1) << 63);
}

static void test_frequency_window(void **state)
{
	struct quipu_reload r = {.sample_period = 100,
				 .last_period = 100,
				 .period_left = 100,
				 .sample_freq = 1000,
				 .tick_ns = 4 * MS};

	(void)state;
	assert_false(quipu_reload_frequency(&r, 50)); /* the first: nothing to compare with */
	assert_int_equal(r.sample_period, 100);
	quipu_reload_frequency(&r, 50 + 8 * MS); /* two ticks apart: the tick's business */
	assert_int_equal(r.sample_period, 100);
	quipu_reload_frequency(&r,
			       50 + 8 * MS + 1000); /* 100 counts a us at 1 kHz: towards 100000 */
	assert_true(r.sample_period > 10000);
	r.sample_freq = 0;
	r.last_time = 7;
	assert_false(quipu_reload_frequency(&r, 1000));
	assert_int_equal(r.last_time, 7); /* a fixed period is left alone */
}

/* ---- signals ---- */

static void test_signal_names(void **state)
{
	char buf[32];

	(void)state;
	for (quipu_signal s = 0; s < QUIPU_NAMED_SIGNALS; s++)
		assert_non_null(quipu_signal_name(s, buf, sizeof(buf)));
	assert_string_equal(quipu_signal_name(QUIPU_SIGNAL_L1D_READ_MISSES, buf, sizeof(buf)),
			    "l1d-read-misses");
	assert_string_equal(quipu_signal_name(QUIPU_SIGNAL_OF(6), buf, sizeof(buf)), "classes:0x6");
	assert_int_equal(quipu_signal_exactness(QUIPU_SIGNAL_SYSCALLS), QUIPU_EXACT);
	assert_int_equal(quipu_signal_exactness(QUIPU_SIGNAL_CYCLES), QUIPU_MODELLED);
	assert_int_equal(quipu_signal_exactness(QUIPU_SIGNAL_OF(1)), QUIPU_EXACT);
	assert_string_equal(quipu_exactness_name(QUIPU_MODELLED), "modelled");
}

static void test_signal_masks(void **state)
{
	const uint64_t loads = quipu_signal_mask(QUIPU_SIGNAL_LOADS),
		       stores = quipu_signal_mask(QUIPU_SIGNAL_STORES);

	(void)state;
	assert_int_equal(loads & stores, QUIPU_CLASS_BIT(QUIPU_INSN_AMO));
	assert_false(quipu_signal_mask(QUIPU_SIGNAL_INSTRUCTIONS) &
		     QUIPU_CLASS_BIT(QUIPU_INSN_TRAP));
	assert_int_equal(quipu_signal_mask(QUIPU_SIGNAL_CYCLES), 0);
	assert_int_equal(quipu_signal_mask(QUIPU_SIGNAL_OF(0x30)), 0x30);
	assert_true(quipu_signal_mask(QUIPU_SIGNAL_CALLS) & QUIPU_CLASS_BIT(QUIPU_INSN_ICALL));
}

struct hits {
	struct quipu_signals *s;
	uint64_t at[8];
	uint64_t slots[8];
	unsigned n;
};

static void hit(void *arg, const struct quipu_interrupt *i)
{
	struct hits *h = arg;
	struct quipu_deadline again = {.signal = QUIPU_SIGNAL_LOADS, .at = 50};

	h->at[h->n] = h->s->ops->read(h->s, i->cpu, QUIPU_SIGNAL_LOADS);
	h->slots[h->n++] = i->slots;
	if (h->n == 1) /* armed from inside a handler, within the same feed */
		h->s->ops->arm(h->s, i->cpu, 3, &again);
}

static void test_manual_deadlines(void **state)
{
	struct quipu_manual_signals *m = quipu_manual_signals_new(2);
	struct hits h = {.s = quipu_manual_signals_base(m)};
	struct quipu_deadline d = {.signal = QUIPU_SIGNAL_LOADS, .at = 30};

	(void)state;
	h.s->interrupt = hit;
	h.s->arg = &h;
	h.s->ops->arm(h.s, 1, 1, &d);
	h.s->ops->arm(h.s, 1, 2, &d);
	h.s->ops->arm(h.s, 0, 0, &d); /* the other CPU's */
	quipu_manual_signals_feed(m, 1, QUIPU_SIGNAL_INSTRUCTIONS, 100, 0);
	assert_int_equal(h.n, 0); /* loads are fed as loads */
	quipu_manual_signals_feed(m, 1, QUIPU_SIGNAL_LOADS, 100, 0);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.at[0], 30);
	assert_int_equal(h.slots[0], 6);
	assert_int_equal(h.at[1], 50);
	assert_int_equal(h.slots[1], 8);
	h.s->ops->arm(h.s, 1, 1, &d); /* long past: at the next occurrence */
	quipu_manual_signals_feed(m, 1, QUIPU_SIGNAL_LOADS, 10, 0);
	assert_int_equal(h.at[2], 101);
	quipu_manual_signals_set_has(m, QUIPU_SIGNAL_LOADS, false);
	assert_false(h.s->ops->has(h.s, QUIPU_SIGNAL_LOADS));
	quipu_manual_signals_set_has(m, QUIPU_SIGNAL_LOADS, true);
	assert_true(h.s->ops->has(h.s, QUIPU_SIGNAL_LOADS));
	quipu_manual_signals_free(m);
}

/* ---- counting ---- */

static void test_cpu_wide(void **state)
{
	struct quipu_event *wide, *task, *un0, *un2;
	struct world w;

	(void)state;
	world_init(&w, 4, -1);
	wide = world_open(&w, HW(1, 0), -1, 1, NULL);
	task = world_open(&w, HW(1, 0), 100, -1, NULL);
	un0 = world_open(&w, world_attr((uint32_t)w.un_pmu.type, 0, 0), -1, 0, NULL);
	un2 = world_open(&w, world_attr((uint32_t)w.un_pmu.type, 0, QUIPU_ATTR_DISABLED), -1, 2,
			 NULL);
	world_work(&w, 1, 100); /* nobody's work */
	quipu_sched_in(w.core, 1, w.task);
	world_work(&w, 1, 20);
	quipu_manual_signals_feed(w.hand, 0, QUIPU_SIGNAL_MEM_READ_LINES, 7, 0);
	assert_int_equal(world_value(wide), 120);
	assert_int_equal(world_count(wide).truth, 120);
	assert_int_equal(world_value(task), 20);
	assert_int_equal(world_value(un0), 7);
	assert_int_equal(world_value(un2), 0);
	assert_false(world_count(un0).has_truth); /* no signal behind it was named */
	world_free(&w);
}

static void test_truth_is_the_enabled_part(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	world_init(&w, 1, -1);
	w.grain = 10000;
	quipu_sched_in(w.core, 0, w.task);
	world_open(&w, HW(0, 0), 100, -1, NULL); /* the rival for the one counter */
	e = world_open(&w, HW(1, QUIPU_ATTR_DISABLED), 100, -1, NULL);
	world_work(&w, 0, 5 * MS);
	quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0);
	world_work(&w, 0, 33 * MS);
	quipu_event_ioctl(e, PERF_EVENT_IOC_DISABLE, 0);
	world_work(&w, 0, 5 * MS);
	assert_int_equal(world_count(e).truth, 33 * MS);
	assert_true(world_count(e).value < 33 * MS);
	assert_int_equal(world_count(e).enabled, 33 * MS);
	quipu_sched_out(w.core, 0, false);
	assert_int_equal(world_count(e).truth, 33 * MS);
	world_free(&w);
}

static void test_excluded_user_is_zero(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	world_init(&w, 1, -1);
	quipu_sched_in(w.core, 0, w.task);
	e = world_open(&w, HW(1, QUIPU_ATTR_EXCLUDE_USER), 100, -1, NULL);
	world_work(&w, 0, 100);
	assert_true(world_count(e).has_truth);
	assert_int_equal(world_count(e).truth, 0);
	world_free(&w);
}

static void test_software_values(void **state)
{
	struct quipu_event *clock, *task, *switches, *moves, *faults;
	struct world w;

	(void)state;
	world_init(&w, 1, -1);
	clock = world_open(&w, SW(PERF_COUNT_SW_CPU_CLOCK, 0), -1, 0, NULL);
	task = world_open(&w, SW(PERF_COUNT_SW_TASK_CLOCK, 0), 100, -1, NULL);
	switches = world_open(&w, SW(PERF_COUNT_SW_CONTEXT_SWITCHES, 0), 100, -1, NULL);
	moves = world_open(&w, SW(PERF_COUNT_SW_CPU_MIGRATIONS, 0), 100, -1, NULL);
	faults = world_open(&w, SW(PERF_COUNT_SW_PAGE_FAULTS, 0), 100, -1, NULL);
	quipu_sched_in(w.core, 0, w.task);
	world_work(&w, 0, 1000);
	quipu_sched_out(w.core, 0, false);
	w.idle[0] += 500; /* asleep: the CPU's clock goes on, the task's does not */
	quipu_sched_in(w.core, 0, w.task);
	world_work(&w, 0, 1000);
	quipu_sched_out(w.core, 0, true);
	quipu_sched_in(w.core, 1, w.task);
	world_work(&w, 1, 10);
	quipu_core_software(w.core, 1, PERF_COUNT_SW_PAGE_FAULTS, 3, NULL);
	assert_int_equal(world_value(clock), 2500);
	assert_int_equal(world_value(task), 2010);
	assert_int_equal(world_value(switches), 2);
	assert_int_equal(world_value(moves), 1);
	assert_int_equal(world_value(faults), 3);
	quipu_task_exit(w.task, 1);
	assert_int_equal(world_value(switches), 2);
	world_free(&w);
}

static void test_clock_sampling(void **state)
{
	struct quipu_attr a = SW(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_FREQ);
	struct quipu_event *e;
	struct reader r;
	unsigned n = 0;
	struct world w;

	(void)state;
	world_init(&w, 1, -1);
	a.sample_freq = 4000; /* 250 us */
	a.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 8, true);
	quipu_sched_in(w.core, 0, w.task);
	w.pc = 0x4242;
	world_work(&w, 0, 10 * MS + 100000);
	quipu_sched_out(w.core, 0, false); /* 100 us into the period */
	w.idle[0] += 50 * MS;
	quipu_sched_in(w.core, 0, w.task);
	world_work(&w, 0, 150000);
	while (world_next(&r, record)) {
		struct parsed p = parse_record(record, &a);

		assert_true(p.ok);
		assert_int_equal(p.ip, 0x4242);
		n++;
	}
	assert_int_equal(n, 41);
	world_unmap(&r);
	world_free(&w);
}

static void test_slots(void **state)
{
	struct quipu_event *a, *b;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	quipu_sched_in(w.core, 2, w.task);
	a = world_open(&w, HW(0, 0), 100, -1, NULL);
	b = world_open(&w, HW(1, 0), 100, -1, NULL);
	assert_ptr_equal(quipu_core_slot_event(w.core, 2, (unsigned)quipu_event_hw(b)->idx), b);
	quipu_event_close(a);
	assert_ptr_equal(quipu_core_slot_event(w.core, 2, (unsigned)quipu_event_hw(b)->idx), b);
	quipu_sched_out(w.core, 2, false);
	for (unsigned i = 0; i < QUIPU_SLOTS; i++)
		assert_null(quipu_core_slot_event(w.core, 2, i));
	assert_null(quipu_core_slot_event(w.core, 99, 0));
	assert_null(quipu_core_slot_event(w.core, 0, 99));
	world_free(&w);
}

static void test_close_while_mapped(void **state)
{
	struct quipu_attr a = HW(1, 0);
	struct quipu_event *e;
	struct reader r;
	unsigned n = 0;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	quipu_sched_in(w.core, 0, w.task);
	a.sample_period = 100;
	a.sample_type = PERF_SAMPLE_IP;
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 1, true);
	quipu_event_close(e); /* the mapping holds it, as it holds the file in Linux */
	world_work(&w, 0, 1000);
	while (world_next(&r, record))
		n++;
	assert_int_equal(n, 10);
	world_unmap(&r);
	assert_null(quipu_core_slot_event(w.core, 0, 0));
	world_free(&w);
}

/* A reader may store anything into data_tail, and may scribble over the control page. */
static void test_lying_reader(void **state)
{
	struct quipu_attr a = HW(1, 0);
	struct quipu_event *e;
	struct reader r;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	assert_int_equal(quipu_core_set_sysctl(w.core, "max_sample_rate", 1000000000),
			 0); /* no throttling */
	quipu_sched_in(w.core, 0, w.task);
	a.sample_period = 50;
	a.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	e = world_open(&w, a, 100, -1, NULL);
	r = world_map(&w, e, 1, true);
	srand(1);
	for (int i = 0; i < 2000; i++) {
		for (int k = 0; k < 4096; k += 8)
			*(uint64_t *)(void *)(r.mem + k) =
				(uint64_t)rand() << 32 ^ (uint64_t)rand();
		world_work(&w, 0, 100);
	}
	assert_int_equal(world_value(e), 200000);
	world_unmap(&r);
	world_free(&w);
}

static void test_reasons(void **state)
{
	struct quipu_event *off, *idle;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	assert_int_equal(world_try(&w, world_attr(12345, 0, 0), 100, -1, NULL), -ENOENT);
	assert_non_null(strstr(quipu_core_last_reason(w.core), "quipu list"));
	off = world_open(&w, HW(1, QUIPU_ATTR_DISABLED), 100, -1, NULL);
	assert_string_equal(quipu_core_last_reason(w.core), "");
	idle = world_open(&w, HW(1, 0), 100, -1, NULL);
	assert_non_null(strstr(world_count(off).reason, "never enabled"));
	assert_non_null(strstr(world_count(idle).reason, "never ran"));
	quipu_sched_in(w.core, 0, w.task);
	world_work(&w, 0, 10);
	assert_null(world_count(idle).reason);
	world_free(&w);
}

static void test_registration(void **state)
{
	struct quipu_pmu same_name = {.name = "cpu", .type = -1},
			 same_type = {.name = "x", .type = 4};
	struct quipu_pmu next = {.name = "next", .type = -1};
	struct world w;
	size_t n;

	(void)state;
	world_init(&w, 2, -1);
	assert_int_equal(quipu_core_register(w.core, &same_name), -EEXIST);
	assert_int_equal(quipu_core_register(w.core, &same_type), -EEXIST);
	assert_int_equal(w.un_pmu.type, 6);
	assert_int_equal(quipu_core_register(w.core, &next), 0);
	assert_int_equal(next.type, 7);
	assert_string_equal(quipu_core_pmus(w.core, &n)[0]->name, "software");
	assert_int_equal(n, 4);
	world_free(&w);
}

/* Frequency in the core must be the engine's arithmetic and nothing else: replay it beside the
 * event. */
static void test_overflow_is_reload_arithmetic(void **state)
{
	struct quipu_attr a = HW(1, QUIPU_ATTR_FREQ);
	struct quipu_reload twin;
	struct quipu_event *e;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	w.grain = 1;
	quipu_sched_in(w.core, 0, w.task);
	a.sample_freq = 50000;
	e = world_open(&w, a, 100, -1, NULL);
	twin = quipu_event_hw(e)->reload;
	for (int i = 0; i < 20000; i++) {
		quipu_manual_signals_feed(w.hand, 0, QUIPU_SIGNAL_CYCLES, 1, 0);
		quipu_reload_fold(&twin, 1);
		if (!twin.programmed) {
			quipu_reload_set_period(&twin);
			if (quipu_reload_frequency(&twin, world_now(&w, 0)))
				quipu_reload_set_period(&twin);
		}
		quipu_manual_signals_feed(w.hand, 0, QUIPU_SIGNAL_INSTRUCTIONS, 1, 0);
		assert_int_equal(quipu_event_hw(e)->reload.sample_period, twin.sample_period);
	}
	assert_true(twin.sample_period > 1);
	world_free(&w);
}

/* What the tick makes of a frequency event, by its driver, is quipu_reload_tick of it; and
 * quipu_core_steers says when that is all a tick does. */
static void test_tick_is_reload_arithmetic(void **state)
{
	struct quipu_attr a = HW(1, QUIPU_ATTR_FREQ);
	struct quipu_reload twin;
	struct quipu_event *e;
	unsigned changed = 0;
	uint64_t tick, until;
	bool throttled;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	quipu_sched_in(w.core, 0, w.task);
	assert_int_equal(quipu_core_steers(w.core, 0, &until), 0);
	a.sample_freq = 100; /* fewer than ticks: only they steer */
	e = world_open(&w, a, 100, -1, NULL);
	tick = quipu_event_hw(e)->reload.tick_ns;
	assert_int_equal(quipu_core_steers(w.core, 0, &until), 1);
	assert_true(until == UINT64_MAX);
	assert_int_equal(quipu_core_steers(w.core, 1, &until), 0);
	assert_int_equal(quipu_core_steers(w.core, WORLD_CPUS, &until), 0);
	for (int i = 0; i < 100; i++) {
		uint64_t left = tick - world_now(&w, 0) % tick, samples;

		world_work(&w, 0, left - 1);
		throttled = !quipu_core_steers(w.core, 0, &until);
		quipu_event_pmu(e)->read(e);
		samples = quipu_event_hw(e)->reload.last_time;
		twin = quipu_event_hw(e)->reload;
		quipu_reload_tick(&twin, 1, (uint64_t)quipu_event_since_tick(e) + 1);
		world_work(&w, 0, 1);
		if (throttled || quipu_event_hw(e)->reload.last_time != samples)
			continue; /* or an overflow in the same nanosecond */
		assert_int_equal(quipu_event_since_tick(e), 0);
		assert_int_equal(quipu_event_hw(e)->reload.sample_period, twin.sample_period);
		assert_int_equal(quipu_event_hw(e)->reload.period_left, twin.period_left);
		assert_int_equal(quipu_event_hw(e)->reload.programmed, twin.programmed);
		changed++;
	}
	assert_true(changed > 50);
	world_open(&w,
		   (struct quipu_attr){.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 12345},
		   100, -1, NULL);
	assert_int_equal(quipu_core_steers(w.core, 0, &until), 1);
	assert_true(until <= world_now(&w, 0) + 12345);
	world_free(&w);
}

/* perf record opens an event of the program on every CPU; the program need not run on the first. */
static void test_exec_on_another_cpu(void **state)
{
	struct quipu_event *e[WORLD_CPUS];
	struct world w;

	(void)state;
	world_init(&w, 4, -1);
	for (int cpu = 0; cpu < WORLD_CPUS; cpu++)
		e[cpu] = world_open(&w, HW(0, QUIPU_ATTR_DISABLED | QUIPU_ATTR_ENABLE_ON_EXEC), 100,
				    cpu, NULL);
	quipu_sched_in(w.core, 2, w.task);
	quipu_task_exec(w.task, "prog", 2);
	world_work(&w, 2, 1000);
	for (int cpu = 0; cpu < WORLD_CPUS; cpu++)
		assert_int_equal(world_value(e[cpu]), cpu == 2 ? 1000 : 0);
	world_free(&w);
}

static unsigned described(struct quipu_event *e, const struct quipu_attr *a, struct reader *r,
			  const char *const *want, unsigned n)
{
	unsigned got = 0;

	quipu_event_describe(e);
	while (world_next(r, record)) {
		struct parsed p = parse_record(record, a);

		assert_true(p.ok && got < n);
		assert_int_equal(p.type, got ? PERF_RECORD_MMAP2 : PERF_RECORD_COMM);
		assert_string_equal(p.name, want[got]);
		got++;
	}
	return got;
}

/* Who begins to watch a program that runs is told what it has mapped to execute by then. */
static void test_described(void **state)
{
	static const char *const own[] = {"prog", "/bin/prog", "/lib/new"}, *const forked[] = {
										    "prog",
										    "/bin/prog"};
	struct quipu_mapping m = {
		.addr = 0x10000, .len = 0x1000, .prot = PROT_READ | PROT_EXEC, .name = "/bin/old"};
	struct quipu_attr a = HW(1, QUIPU_ATTR_DISABLED | QUIPU_ATTR_COMM | QUIPU_ATTR_MMAP |
					    QUIPU_ATTR_MMAP2 | QUIPU_ATTR_SAMPLE_ID_ALL);
	struct quipu_event *of_task, *of_child, *of_cpu, *elsewhere;
	struct reader r[4];
	struct quipu_task *child;
	struct world w;

	(void)state;
	world_init(&w, 2, -1);
	quipu_sched_in(w.core, 0, w.task);
	a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	quipu_task_mmap(w.task, &m, 0);
	quipu_task_exec(w.task, "prog", 0); /* the old one is gone */
	m.name = "/bin/prog";
	quipu_task_mmap(w.task, &m, 0);
	m.prot = PROT_READ; /* data: not told of */
	m.addr = 0x20000;
	quipu_task_mmap(w.task, &m, 0);
	child = quipu_task_new(w.core, w.task, 101, 101, false, NULL, 0);
	quipu_sched_in(w.core, 1, child);
	m = (struct quipu_mapping){
		.addr = 0x30000, .len = 0x1000, .prot = PROT_READ | PROT_EXEC, .name = "/lib/old"};
	quipu_task_mmap(w.task, &m, 0);
	m.name = "/lib/new"; /* in its place */
	quipu_task_mmap(w.task, &m, 0);

	of_task = world_open(&w, a, 100, -1, NULL);
	of_child = world_open(&w, a, 101, -1, NULL);
	of_cpu = world_open(&w, a, -1, 0, NULL);
	elsewhere = world_open(&w, a, 100, 2, NULL);
	r[0] = world_map(&w, of_task, 1, true);
	r[1] = world_map(&w, of_child, 1, true);
	r[2] = world_map(&w, of_cpu, 1, true);
	r[3] = world_map(&w, elsewhere, 1, true);
	assert_int_equal(described(of_task, &a, &r[0], own, 3), 3);
	assert_int_equal(described(of_child, &a, &r[1], forked, 2), 2);
	assert_int_equal(described(of_cpu, &a, &r[2], own, 3), 3);
	assert_int_equal(described(elsewhere, &a, &r[3], own, 3), 0);
	quipu_task_exit(child, 1);
	for (int i = 0; i < 4; i++)
		world_unmap(&r[i]);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec_on_another_cpu),
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_set_period),
		cmocka_unit_test(test_adjust),
		cmocka_unit_test(test_frequency_window),
		cmocka_unit_test(test_signal_names),
		cmocka_unit_test(test_signal_masks),
		cmocka_unit_test(test_manual_deadlines),
		cmocka_unit_test(test_cpu_wide),
		cmocka_unit_test(test_truth_is_the_enabled_part),
		cmocka_unit_test(test_excluded_user_is_zero),
		cmocka_unit_test(test_software_values),
		cmocka_unit_test(test_clock_sampling),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_close_while_mapped),
		cmocka_unit_test(test_lying_reader),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_registration),
		cmocka_unit_test(test_overflow_is_reload_arithmetic),
		cmocka_unit_test(test_tick_is_reload_arithmetic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
