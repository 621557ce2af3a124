/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf ABI sheet D6, cases that a client can tell by the answers alone (1-28, 36-50, 67-76): the
 * same programs on the event core and on the host's kernel. Case numbers are in the names. What the
 * host cannot serve is skipped by name.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "both.h"
#include "rows.h"

static void test_row(struct backend *b, const struct row *r)
{
	pid_t pid = r->who == SELF ? 0 : r->who == NOBODY ? -1 : b->unused_pid;
	uint8_t bytes[8192] = {0};
	struct quipu_attr a = r->attr;
	long h;

	a.type = r->type ? r->type : PERF_TYPE_SOFTWARE;
	a.config = r->config ? r->config : PERF_COUNT_SW_TASK_CLOCK;
	a.flags |= QUIPU_ATTR_EXCLUDE_KERNEL;
	a.size = r->size == ZERO_SIZE ? 0 : r->size ? r->size : 128;
	memcpy(bytes, &a, sizeof(a));
	if (r->poke)
		bytes[r->poke] = 1;
	h = b->open(b, r->unreadable ? NULL : bytes, sizeof(bytes), pid, r->cpu, -1, r->flags);
	if (r->want)
		assert_int_equal(h, -r->want);
	else
		assert_true(h >= 0);
}

/* ---- programs of more than one call ---- */

static struct quipu_attr sw(uint64_t config, uint64_t flags)
{
	struct quipu_attr a =
		world_attr(PERF_TYPE_SOFTWARE, config, flags | QUIPU_ATTR_EXCLUDE_KERNEL);

	a.size = 128;
	return a;
}

static long try_open(struct backend *b, struct quipu_attr a, pid_t pid, int cpu, long group,
		     unsigned long flags)
{
	return b->open(b, &a, sizeof(a), pid, cpu, group, flags);
}

static long must(struct backend *b, struct quipu_attr a, long group)
{
	long h = try_open(b, a, 0, -1, group, 0);

	assert_true(h >= 0);
	return h;
}

struct values {
	uint64_t value, enabled, running;
};

static struct values values_of(struct backend *b, long h)
{
	struct values v = {0};

	assert_int_equal(b->read(b, h, &v, sizeof(v)), sizeof(v));
	return v;
}

static void groups_refused(struct backend *b)
{
	struct quipu_attr a = sw(PERF_COUNT_SW_TASK_CLOCK, 0);
	struct quipu_attr clock = sw(PERF_COUNT_SW_DUMMY, QUIPU_ATTR_USE_CLOCKID);
	long leader = must(b, a, -1);
	long sibling = must(b, a, leader);

	clock.clockid = 1;
	assert_int_equal(try_open(b, a, 0, -1, sibling, 0), -EINVAL);
	assert_int_equal(try_open(b, a, 0, 0, leader, 0), -EINVAL);
	assert_int_equal(try_open(b, a, b->other_pid, -1, leader, 0), -EINVAL);
	assert_int_equal(try_open(b, a, -1, 0, leader, 0), -EINVAL);
	assert_int_equal(try_open(b, sw(1, QUIPU_ATTR_INHERIT), 0, -1, leader, 0), -EINVAL);
	assert_int_equal(try_open(b, sw(1, QUIPU_ATTR_PINNED), 0, -1, leader, 0), -EINVAL);
	assert_int_equal(try_open(b, sw(1, QUIPU_ATTR_EXCLUSIVE), 0, -1, leader, 0), -EINVAL);
	assert_int_equal(try_open(b, clock, 0, -1, leader, 0), -EINVAL);
}

static void no_group(struct backend *b)
{
	struct quipu_attr a = sw(PERF_COUNT_SW_TASK_CLOCK, 0);
	uint64_t out[8];
	long leader, lone;

	a.read_format = PERF_FORMAT_GROUP;
	leader = must(b, a, -1);
	lone = try_open(b, a, 0, -1, leader, PERF_FLAG_FD_NO_GROUP);
	assert_true(lone >= 0);
	assert_int_equal(b->read(b, leader, out, sizeof(out)), 16);
	assert_int_equal(out[0], 1);
	assert_true(try_open(b, a, 0, -1, lone, 0) >= 0);
}

static void group_read(struct backend *b)
{
	struct quipu_attr a = sw(PERF_COUNT_SW_TASK_CLOCK, 0);
	uint64_t out[32];
	long h[3];

	a.read_format = 31;
	h[0] = must(b, a, -1);
	a.config = PERF_COUNT_SW_DUMMY;
	h[1] = must(b, a, h[0]);
	a.config = PERF_COUNT_SW_CPU_CLOCK;
	h[2] = must(b, a, h[0]);
	b->work(b);
	/* Any member can be read; the leader comes first. */
	assert_int_equal(b->read(b, h[1], out, sizeof(out)), 8 * (3 + 3 * 3));
	assert_int_equal(out[0], 3);
	assert_true(out[1] > 0 && out[2] > 0 && out[2] <= out[1]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(out[3 + 3 * i + 1], b->id(b, h[i]));
	assert_true(out[3] > 0);
	assert_int_equal(out[6], 0); /* dummy */
	assert_true(out[9] > 0);
	assert_int_equal(b->read(b, h[0], out, 8 * 12 - 8), -ENOSPC);
}

static void leader_closed(struct backend *b)
{
	struct quipu_attr a = sw(PERF_COUNT_SW_TASK_CLOCK, 0);
	long leader = must(b, a, -1), sibling = must(b, a, leader);
	uint64_t before;

	b->close(b, leader);
	before = values_of(b, sibling).value;
	b->work(b);
	assert_true(values_of(b, sibling).value > before);
}

static void group_too_large(struct backend *b)
{
	struct quipu_attr a = sw(PERF_COUNT_SW_DUMMY, 0);
	long leader, h;
	unsigned n = 1;
	uint64_t out[2049];

	a.read_format = 31; /* 24 + 24 n bytes: 681 members fit into 16384 */
	leader = must(b, a, -1);
	while ((h = try_open(b, a, 0, -1, leader, 0)) >= 0)
		n++;
	assert_int_equal(h, -E2BIG);
	assert_int_equal(n, 681);
	assert_int_equal(b->read(b, leader, out, sizeof(out)), 24 + 24 * 681);
	assert_int_equal(out[0], 681);
}

static void disabled_reads_zero(struct backend *b)
{
	long h = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_DISABLED), -1);
	struct values v;

	b->work(b);
	v = values_of(b, h);
	assert_true(!v.value && !v.enabled && !v.running);
}

static void enable_disable(struct backend *b)
{
	long h = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_DISABLED), -1);
	struct values v, again;

	assert_int_equal(b->ioctl(b, h, PERF_EVENT_IOC_ENABLE, 0), 0);
	b->work(b);
	assert_int_equal(b->ioctl(b, h, PERF_EVENT_IOC_DISABLE, 0), 0);
	v = values_of(b, h);
	b->work(b);
	again = values_of(b, h);
	assert_memory_equal(&v, &again, sizeof(v));
	assert_true(v.value >= 2000000 && v.enabled == v.running);
}

static void leader_switches_group(struct backend *b)
{
	long leader = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_DISABLED), -1);
	long sibling = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, 0), leader);

	b->work(b);
	assert_int_equal(values_of(b, sibling).value, 0);
	assert_int_equal(values_of(b, sibling).enabled, 0);
	b->ioctl(b, leader, PERF_EVENT_IOC_ENABLE, 0);
	b->work(b);
	assert_true(values_of(b, sibling).value > 0);
	assert_true(values_of(b, leader).value > 0);
}

static void flag_group(struct backend *b)
{
	long leader = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_DISABLED), -1);
	long sibling = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_DISABLED), leader);
	struct values v;

	b->ioctl(b, sibling, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	b->work(b);
	b->ioctl(b, sibling, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	v = values_of(b, leader);
	assert_true(v.value > 0 && values_of(b, sibling).value > 0);
	b->work(b);
	assert_int_equal(values_of(b, leader).value, v.value);
	b->ioctl(b, sibling, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	assert_int_equal(values_of(b, leader).value, 0);
	assert_int_equal(values_of(b, sibling).value, 0);
	assert_int_equal(values_of(b, leader).enabled, v.enabled);
}

static void small_buffer(struct backend *b)
{
	long h = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, 0), -1);
	uint64_t out[3];

	assert_int_equal(b->read(b, h, out, 16), -ENOSPC);
	assert_int_equal(b->read(b, h, out, 24), 24);
}

static void unknown_ioctl(struct backend *b)
{
	long h = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, 0), -1);
	uint64_t period = 0;

	assert_int_equal(b->ioctl(b, h, 0x240c, 0), -ENOTTY);
	assert_int_equal(b->ioctl(b, h, PERF_EVENT_IOC_REFRESH, 1), -EINVAL); /* counting */
	assert_int_equal(b->ioctl(b, h, PERF_EVENT_IOC_PERIOD, (unsigned long)&period), -EINVAL);
	assert_int_equal(b->ioctl(b, h, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), -EINVAL); /* no ring */
}

static void map_rules(struct backend *b)
{
	long h = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, 0), -1), one = must(b, sw(1, 0), -1);
	long inherits = must(b, sw(1, QUIPU_ATTR_INHERIT), -1);

	assert_int_equal(b->map(b, one, 0, true), 0);
	assert_int_equal(b->map(b, h, 3, true), -EINVAL);
	assert_int_equal(b->map(b, h, 8, true), 0);
	assert_int_equal(b->map(b, h, 16, true), -EINVAL);
	assert_int_equal(b->map(b, inherits, 8, true), -EINVAL);
	assert_int_equal(b->ioctl(b, one, PERF_EVENT_IOC_PAUSE_OUTPUT, 1),
			 -EINVAL); /* no data pages */
	assert_int_equal(b->ioctl(b, h, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
}

static void control_page(struct backend *b)
{
	long h = must(b, sw(PERF_COUNT_SW_TASK_CLOCK, 0), -1);
	const uint8_t *m;
	uint32_t size;
	uint64_t word[2];

	assert_int_equal(b->map(b, h, 8, true), 0);
	m = b->memory(b, h);
	memcpy(&size, m + 72, 4);
	assert_int_equal(size, 96);
	memcpy(word, m + 1040, 16);
	assert_int_equal(word[0], 4096);
	assert_int_equal(word[1], 8 * 4096);
	memcpy(word, m + 40, 8);
	assert_int_equal(word[0] & 3, 2);
}

static void output_rules(struct backend *b)
{
	struct quipu_attr backward = sw(1, QUIPU_ATTR_WRITE_BACKWARD),
			  clock = sw(1, QUIPU_ATTR_USE_CLOCKID);
	long target = must(b, sw(1, 0), -1), e = must(b, sw(1, 0), -1),
	     bare = must(b, sw(1, 0), -1);
	long other_cpu = try_open(b, sw(1, 0), 0, 0, -1, 0);
	long other_task = try_open(b, sw(1, 0), b->other_pid, -1, -1, 0);

	clock.clockid = 1;
	assert_int_equal(b->map(b, target, 8, true), 0);
	assert_int_equal(b->set_output(b, e, e), -EINVAL);
	assert_int_equal(b->set_output(b, e, bare), -EINVAL);
	assert_int_equal(b->set_output(b, other_cpu, target), -EINVAL);
	assert_int_equal(b->set_output(b, other_task, target), -EINVAL);
	assert_int_equal(b->set_output(b, must(b, backward, -1), target), -EINVAL);
	assert_int_equal(b->set_output(b, must(b, clock, -1), target), -EINVAL);
	assert_int_equal(b->set_output(b, e, target), 0);
	assert_int_equal(b->poll(b, e), 0); /* has a buffer now */
	assert_int_equal(b->set_output(b, e, -1), 0);
	assert_int_equal(b->poll(b, e), POLLHUP);
	assert_int_equal(b->map(b, e, 8, true), 0);
	assert_int_equal(b->set_output(b, e, target), -EINVAL); /* itself mapped */
}

/* Enough of it that a busy host delivers some samples, too. */
static void work_long(struct backend *b)
{
	for (int i = 0; i < 20; i++)
		b->work(b);
}

static void poll_once(struct backend *b)
{
	struct quipu_attr a = sw(PERF_COUNT_SW_TASK_CLOCK, 0);
	long h;

	a.sample_period = 100000;
	a.sample_type = PERF_SAMPLE_IP;
	a.wakeup_events = 1;
	h = must(b, a, -1);
	assert_int_equal(b->poll(b, h), POLLHUP);
	assert_int_equal(b->map(b, h, 8, true), 0);
	work_long(b);
	b->ioctl(b, h, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(b->poll(b, h), POLLIN);
	assert_int_equal(b->poll(b, h), 0);
}

static void last_unmap_detaches(struct backend *b)
{
	long a = must(b, sw(1, 0), -1), c = must(b, sw(1, 0), -1);

	assert_int_equal(b->map(b, a, 8, true), 0);
	assert_int_equal(b->set_output(b, c, a), 0);
	assert_int_equal(b->poll(b, c), 0);
	b->unmap(b, a);
	assert_int_equal(b->poll(b, c), POLLHUP);
	assert_int_equal(b->set_output(b, c, a), -EINVAL);
}

static void records_parse(struct backend *b)
{
	struct quipu_attr a =
		sw(PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_DISABLED | QUIPU_ATTR_SAMPLE_ID_ALL);
	struct reader r = {.pages = 8};
	static uint8_t record[65536];
	unsigned samples = 0;
	long h;

	a.sample_period = 200000;
	a.read_format = 31;
	a.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
			PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_TRANSACTION;
	h = must(b, a, -1);
	assert_int_equal(b->map(b, h, 8, true), 0);
	b->ioctl(b, h, PERF_EVENT_IOC_ENABLE, 0);
	work_long(b);
	b->ioctl(b, h, PERF_EVENT_IOC_DISABLE, 0);
	r.mem = b->memory(b, h);
	while (world_next(&r, record)) {
		struct parsed p = parse_record(record, &a);

		assert_true(p.ok);
		if (p.type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		assert_int_equal(p.id, b->id(b, h));
		assert_int_equal(p.identifier, p.id);
		assert_int_equal(p.period, a.sample_period);
		assert_int_equal(p.read[0], 1);
		assert_int_equal(p.read[4], p.id);
		/* A clock's sample is of no load or store: "not available". */
		/* Newer kernels than 6.12 say so in the level number (bits 33-36) as well. */
		assert_int_equal(p.data_src & ~(UINT64_C(15) << 33), 0x5080021);
		assert_int_equal(p.raw_size, 4);
	}
	assert_true(samples >= 3);
}

static const struct {
	const char *name;
	void (*run)(struct backend *);
} programs[] = {
	{"36 siblings that do not fit the group are refused", groups_refused},
	{"37 NO_GROUP with a group makes a leader", no_group},
	{"40 group read of three with every format bit; 50", group_read},
	{"41 closing the leader leaves the sibling counting", leader_closed},
	{"42 a group grows until its read is 16 KiB", group_too_large},
	{"43 a disabled event reads 0/0/0", disabled_reads_zero},
	{"44 enable, work, disable: two reads are equal", enable_disable},
	{"45 a leader's ENABLE starts its group", leader_switches_group},
	{"46 FLAG_GROUP through any member; 47 RESET keeps times", flag_group},
	{"50 a buffer too small by 8", small_buffer},
	{"51 unknown ioctl; REFRESH and PERIOD of a counting event; 74", unknown_ioctl},
	{"67 which mappings are allowed", map_rules},
	{"68 constants of the control page", control_page},
	{"75 refusals and effects of SET_OUTPUT", output_rules},
	{"76 POLLIN once after a wake-up, POLLHUP without ring; 71", poll_once},
	{"77 the last unmap detaches others", last_unmap_detaches},
	{"79 samples parse field by field", records_parse},
};

#define ROWS	 (sizeof(rows) / sizeof(*rows))
#define PROGRAMS (sizeof(programs) / sizeof(*programs))

struct job {
	const struct backend *backend;
	size_t index; /* row, then program */
	char name[160];
};

static void run_job(void **state)
{
	const struct job *j = *state;
	struct backend b = *j->backend;

	if (!b.start(&b)) {
		print_message(
			"skipped: this host gives no software events to an unprivileged or confined process: %s\n",
			j->name);
		skip();
	}
	if (j->index < ROWS)
		test_row(&b, &rows[j->index]);
	else
		programs[j->index - ROWS].run(&b);
	b.stop(&b);
}

int main(void)
{
	static struct job jobs[2 * (ROWS + PROGRAMS)];
	static struct CMUnitTest tests[2 * (ROWS + PROGRAMS)];
	size_t n = 0;

	for (size_t i = 0; i < ROWS + PROGRAMS; i++) {
		for (int host = 0; host < 2; host++, n++) {
			jobs[n].backend = host ? &host_backend : &core_backend;
			jobs[n].index = i;
			snprintf(jobs[n].name, sizeof(jobs[n].name), "case %s [%s]",
				 i < ROWS ? rows[i].name : programs[i - ROWS].name,
				 jobs[n].backend->name);
			tests[n] = (struct CMUnitTest){jobs[n].name, run_job, NULL, NULL, &jobs[n]};
		}
	}
	return _cmocka_run_group_tests("perf_abi_open", tests, n, NULL, NULL);
}
