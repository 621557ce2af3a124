/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf ABI sheet D6, cases of rings and samples that need modelled hardware or an exact clock:
 * 69-75, 78-88. On the event core only.
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

#define MS UINT64_C(1000000)

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

static struct quipu_attr sampling(uint64_t period, uint64_t type, uint64_t flags)
{
	struct quipu_attr a = HW(1, flags | QUIPU_ATTR_SAMPLE_ID_ALL);

	a.sample_period = period;
	a.sample_type = type | PERF_SAMPLE_IDENTIFIER;
	return a;
}

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

/* Of the registers that are known, those that are asked for, in order; ABI 0 where one is not
 * known. */
static void test_user_registers(void **state)
{
	static const uint64_t value[] = {0x10, 0x12, 0x15, 0x16};
	static const struct {
		uint64_t known, want;
		uint64_t body[3];
		unsigned n;
	} rows[] = {
		{0x65, 0x65 & 0x24, {PERF_SAMPLE_REGS_ABI_64, 0x12, 0x15}, 3},
		{0x65, 0x40, {PERF_SAMPLE_REGS_ABI_64, 0x16}, 2},
		{0x65, 0x42, {PERF_SAMPLE_REGS_ABI_NONE}, 1},
		{0, 0x01, {PERF_SAMPLE_REGS_ABI_NONE}, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_sample s = {
			.ip = 0x1000,
			.user = {rows[i].known, rows[i].known ? value : NULL},
		};
		struct quipu_attr a = sampling(1 << 20, PERF_SAMPLE_REGS_USER, 0);
		struct perf_event_header h;
		struct quipu_event *e;
		struct reader r;
		struct world w;

		world_init(&w, 2, -1);
		run(&w, 0);
		a.sample_type = PERF_SAMPLE_REGS_USER;
		a.sample_regs_user = rows[i].want;
		e = world_open(&w, a, 100, -1, NULL);
		r = world_map(&w, e, 4, true);
		assert_int_equal(quipu_event_overflow(e, &s), 0);
		assert_true(world_next(&r, record));
		memcpy(&h, record, sizeof(h));
		assert_int_equal(h.type, PERF_RECORD_SAMPLE);
		assert_int_equal(h.size, sizeof(h) + 8 * rows[i].n);
		assert_memory_equal(record + sizeof(h), rows[i].body, 8 * rows[i].n);
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
	/* What is left wraps. */
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_REFRESH, 0x80000000u), 0);
	world_work(&w, 0, 500);
	assert_int_equal(world_value(e), 900);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_REFRESH, 0x80000006u), 0);
	world_work(&w, 0, 500);
	assert_int_equal(world_value(e), 1000);
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

#define CASE(name, fn)                                                                             \
	{                                                                                          \
		name, fn, NULL, NULL, NULL                                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("case 69-70 records wrap; lost records are told once", test_wrap_and_lost),
		CASE("case 71 wake-ups: half, watermark, events", test_wakeups),
		CASE("case 72-74 overwrite, backward, pause", test_overwrite_and_backward),
		CASE("case 75 two events in one buffer", test_set_output_merges),
		CASE("case 78 the lock limit", test_lock_limit),
		CASE("case 79 each sample field alone and all together", test_every_field),
		CASE("A15 user registers: all that are asked for, or none", test_user_registers),
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
