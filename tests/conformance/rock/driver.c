// SPDX-License-Identifier: BSD-2-Clause
/*
 * The Rock PMUs from end to end: the shipped machine, its hypervisor and driver under the event
 * core, fed by hand. What perf would see: names and encodings, counts, samples at the right
 * instruction, estimates from rings, refusals with their reasons, and counters that strands take
 * from one another.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/rock.h>
#include <quipu/system.h>
#include <quipu/tree.h>

#include "platform/rock/room.h"

/* ---- what is published ---- */

static void names_and_encodings(void **state)
{
	static const char *const rows[][2] = {
		{"rock/type", "4"},
		{"rock/format/type", "config:0-15"},
		{"rock/format/txn", "config:16-22"},
		{"rock/format/syn", "config1:31"},
		{"rock/format/sfreq", "config2:0-15"},
		{"rock/events/cycles", "type=0x0100"},
		{"rock/events/instructions", "type=0x0200"},
		{"rock/events/l2_dcache_load", "type=0x0400,txn=0x02"},
		{"rock/events/mmu_dtlb_miss", "type=0x0800,txn=0x6b"},
		{"rock/events/yank", "type=0x2000"},
		{"rock/events/instr_dcache_miss", "type=0x0200,syn=1,group=2,sel=0x001"},
		{"rock/events/l2_load_miss", "type=0x0400,syn=1,group=1,sel=0x003"},
		{"rock_chip/cpumask", "0"}, /* chip 1 is shared with guest 2 */
		{"rock_chip/format/src", "config:32-35"},
		{"rock_is/format/info_mask", "config1:0-63"},
		{"rock_l2s/format/evt", "config:7-8"},
	};
	struct quipu_tree *t;
	struct bench b;
	unsigned events = 0;

	(void)state;
	bench_open(&b);
	t = quipu_tree_new(b.machine, b.core);
	assert_non_null(t);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[160];
		const char *text;

		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s", rows[i][0]);
		text = quipu_tree_text(t, path);
		if (!text || strncmp(text, rows[i][1], strlen(rows[i][1])) ||
		    strcspn(text, "\n") != strlen(rows[i][1]))
			fail_msg("%s is \"%s\", not \"%s\"", rows[i][0], text ? text : "(absent)",
				 rows[i][1]);
	}
	for (const struct quipu_pmu_event *e = pmu(&b, "rock")->events; e->name; e++)
		events++;
	assert_int_equal(events, 53); /* the client's 52, instr_all twice */
	quipu_tree_free(t);
	bench_close(&b);
}

/* ---- counting ---- */

static void counts_move_with_the_task(void **state)
{
	struct quipu_event *cycles, *instructions, *generic;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	cycles = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x100), 100, -1);
	instructions = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1);
	feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 1000, 0x10);
	feed(&b, 0, QUIPU_SIGNAL_CYCLES, 1500, 0x10);
	feed(&b, 1, QUIPU_SIGNAL_INSTRUCTIONS, 777, 0x10);
	assert_int_equal(value(instructions), 1000);
	assert_int_equal(value(cycles), 1500);
	quipu_system_stop(b.system, 0, false);
	feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 99, 0x10);
	run_task(&b, 0, 35); /* the other chip */
	feed(&b, 35, QUIPU_SIGNAL_INSTRUCTIONS, 234, 0x10);
	feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 99, 0x10);
	assert_int_equal(value(instructions), 1234);
	quipu_event_close(instructions);
	/* perf's own names for the same. */
	generic = must_open(&b, NULL,
			    (struct quipu_attr){.type = PERF_TYPE_HARDWARE,
						.config = PERF_COUNT_HW_INSTRUCTIONS},
			    100, -1);
	feed(&b, 35, QUIPU_SIGNAL_INSTRUCTIONS, 50, 0x10);
	assert_int_equal(value(generic), 50);
	bench_close(&b);
}

/* Longer than a counter: what wraps is added. */
static void counts_pass_the_width_of_a_counter(void **state)
{
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	e = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1);
	for (unsigned i = 0; i < 5; i++)
		feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, (UINT64_C(1) << 38) + 1, 0x10);
	assert_int_equal(value(e), 5 * ((UINT64_C(1) << 38) + 1));
	bench_close(&b);
}

/* Every event that is listed counts; every one that is not says why. */
static void what_is_listed_can_be_counted(void **state)
{
	unsigned available = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	for (const struct quipu_pmu_event *p = pmu(&b, "rock")->events; p->name; p++) {
		unsigned type = 0, txn = 0, syn = 0, group = 0, sel = 0;
		struct quipu_attr a = {0};
		struct quipu_event *e = NULL;

		if (sscanf(p->terms, "type=%x,syn=%u,group=%u,sel=%x", &type, &syn, &group, &sel) !=
		    4)
			assert_true(sscanf(p->terms, "type=%x,txn=%x", &type, &txn) >= 1);
		a.config = type | txn << 16;
		a.config1 = syn ? UINT64_C(1) << 31 | group << 12 | sel : 0;
		if (open_event(&b, "rock", a, 100, -1, NULL, &e) || p->unavailable)
			fail_msg("%s: listed as %s: %s", p->name,
				 p->unavailable ? p->unavailable : "available",
				 quipu_core_last_reason(b.core));
		quipu_event_close(e);
		available++;
	}
	assert_int_equal(available, 53); /* one counter has two names */
	bench_close(&b);
}

/* What each event of the memory system counts, by signal. */
static void l2_and_mmu_events_by_signal(void **state)
{
	static const struct {
		struct quipu_attr attr;
		uint64_t want;
	} rows[] = {
		{TXN(0x400, 0x01), 10},	   {TXN(0x400, 0x02), 200},   {TXN(0x400, 0x04), 10},
		{TXN(0x400, 0x05), 20},	   {TXN(0x400, 0x10), 3000},  {TXN(0x400, 0x20), 40000},
		{TXN(0x400, 0x30), 43000}, {TXN(0x400, 0x7f), 43777}, {TXN(0x800, 0x7b), 500},
		{TXN(0x800, 0x7a), 60},	   {TXN(0x800, 0x79), 440},   {TXN(0x800, 0x73), 150},
		{TXN(0x800, 0x6b), 350},   {TXN(0x800, 0x72), 20},    {TXN(0x800, 0x71), 130},
		{TXN(0x800, 0x6a), 40},	   {TXN(0x800, 0x69), 310},   {TXN(0x400, 0x08), 500},
		{TXN(0x400, 0x40), 57},	   {TXN(0x400, 0x48), 557},   {TXN(0x400, 0x6f), 40777},
		{{.config = 0x2000}, 3},   {{.config = 0x4000}, 7},   {{.config = 0x8000}, 2},
	};
	const quipu_signal stores = QUIPU_SIGNAL_OF(QUIPU_CLASS_BIT(QUIPU_INSN_STORE) |
						    QUIPU_CLASS_BIT(QUIPU_INSN_FSTORE) |
						    QUIPU_CLASS_BIT(QUIPU_INSN_SC));
	const quipu_signal atomics = QUIPU_SIGNAL_OF(QUIPU_CLASS_BIT(QUIPU_INSN_AMO));
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 7);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_event *e = must_open(&b, "rock", rows[i].attr, 100, -1);

		feed(&b, 7, QUIPU_SIGNAL_L1I_MISSES, 10, 0);
		feed(&b, 7, QUIPU_SIGNAL_L1D_READ_MISSES, 200, 0);
		feed(&b, 7, stores, 3000, 0);
		feed(&b, 7, atomics, 40000, 0);
		/*
		 * The manual source knows no sums of classes: the sum of both is a signal of its
		 * own.
		 */
		feed(&b, 7, stores | atomics, 43000, 0);
		feed(&b, 7, QUIPU_SIGNAL_STLB_ACCESSES, 500, 0);
		feed(&b, 7, QUIPU_SIGNAL_STLB_MISSES, 60, 0);
		feed(&b, 7, QUIPU_SIGNAL_ITLB_MISSES, 150, 0);
		feed(&b, 7, QUIPU_SIGNAL_DTLB_MISSES, 350, 0);
		feed(&b, 7, QUIPU_SIGNAL_FETCH_WALKS, 20, 0);
		feed(&b, 7, QUIPU_SIGNAL_DATA_WALKS, 40, 0);
		feed(&b, 7, QUIPU_SIGNAL_L2_TRANSACTIONS, 43777, 0);
		feed(&b, 7, QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_STORE_PREFETCH, 500, 0);
		feed(&b, 7, QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_STORE, 3000, 0);
		feed(&b, 7, QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FLUSH, 57, 0);
		feed(&b, 7, QUIPU_SIGNAL_YANKS, 3, 0);
		feed(&b, 7, QUIPU_SIGNAL_SIBLING_BLOCKS, 7, 0);
		feed(&b, 7, QUIPU_SIGNAL_LIVELOCKS, 2, 0);
		if (value(e) != rows[i].want)
			fail_msg("config 0x%llx counts %llu, not %llu",
				 (unsigned long long)rows[i].attr.config,
				 (unsigned long long)value(e), (unsigned long long)rows[i].want);
		quipu_event_close(e);
	}
	bench_close(&b);
}

static quipu_signal told[16];
static unsigned ntold;

static int note_signal(struct quipu_signals *s, quipu_signal signal)
{
	(void)s;
	if (ntold == 4)
		return -ENOSPC;
	told[ntold++] = signal;
	return 0;
}

/* An engine counts what it is told to: of a sum, every signal. */
static void the_engine_hears_of_every_signal(void **state)
{
	struct quipu_signals_ops ops;
	struct quipu_signals *s;
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b);
	s = quipu_manual_signals_base(b.manual);
	ops = *s->ops;
	ops.want = note_signal;
	s->ops = &ops;
	run_task(&b, 0, 0);
	ntold = 0;
	must_open(&b, "rock", (struct quipu_attr)TXN(0x800, 0x6b), 100, -1);
	must_open(&b, "rock", (struct quipu_attr)TXN(0x800, 0x69), 100, -1);
	assert_int_equal(ntold, 3);
	assert_int_equal(told[0], QUIPU_SIGNAL_DTLB_MISSES);
	assert_int_equal(told[1], QUIPU_SIGNAL_DTLB_MISSES);
	assert_int_equal(told[2], QUIPU_SIGNAL_DATA_WALKS);
	must_open(&b, "rock_chip", (struct quipu_attr){.config = 0x100}, -1, 0);
	assert_int_equal(ntold, 4);
	assert_int_equal(told[3], QUIPU_SIGNAL_CYCLES);
	/* An estimate needs counter and sampler. */
	ntold = 2;
	must_open(&b, "rock", (struct quipu_attr)SYN(0x400, 0, 0), 100, -1);
	assert_int_equal(ntold, 4);
	assert_int_equal(told[2], QUIPU_SIGNAL_L2_TRANSACTIONS);
	assert_int_equal(told[3], QUIPU_SIGNAL_L2_TRANSACTIONS);
	assert_int_equal(open_event(&b, "rock", (struct quipu_attr)TXN(0x800, 0x79), 100, -1, NULL,
				    &e),
			 -EOPNOTSUPP);
	assert_non_null(strstr(quipu_core_last_reason(b.core), "too many different events"));
	bench_close(&b);
}

static void a_chip_counts_all_its_strands(void **state)
{
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b);
	/* Any CPU names its chip; CPU 0 counts for it. */
	e = must_open(&b, "rock_chip", (struct quipu_attr){.config = 0x200}, -1, 9);
	assert_int_equal(quipu_event_cpu(e), 0);
	for (unsigned cpu = 0; cpu < 48; cpu++)
		feed(&b, cpu, QUIPU_SIGNAL_INSTRUCTIONS, 1 + cpu, 0);
	assert_int_equal(value(e), 32 * 33 / 2);
	bench_close(&b);
}

/* The CPU that counts for a chip goes: another does, with what was counted, and says so. */
static void another_cpu_counts_for_the_chip(void **state)
{
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b);
	e = must_open(&b, "rock_chip", (struct quipu_attr){.config = 0x200}, -1, 0);
	feed(&b, 5, QUIPU_SIGNAL_INSTRUCTIONS, 100, 0);
	assert_int_equal(quipu_core_set_online(b.core, 0, false), 0);
	assert_string_equal(pmu(&b, "rock_chip")->cpumask, "1");
	feed(&b, 5, QUIPU_SIGNAL_INSTRUCTIONS, 11, 0);
	assert_int_equal(value(e), 111);
	assert_int_equal(quipu_core_set_online(b.core, 0, true), 0);
	feed(&b, 6, QUIPU_SIGNAL_INSTRUCTIONS, 7, 0);
	assert_int_equal(value(e), 118);
	bench_close(&b);
}

/* ---- refusals ---- */

static void refusals_say_why(void **state)
{
	static const struct {
		const char *pmu;
		struct quipu_attr attr;
		bool cpu; /* CPU 40 instead of the task */
		int err;
		const char *why;
	} rows[] = {
		{"rock", {.config = 0x300}, false, -EINVAL, "none of 0x100 (CYC)"},
		{"rock", {.config = 0x1000}, false, -EINVAL, "none of 0x100 (CYC)"},
		{"rock", {.config = 0x400}, false, -EINVAL, "need txn"},
		{"rock", {.config = 0x100 | 1 << 16}, false, -EINVAL, "txn filters L2 and MMU"},
		{"rock", {.config = 0x100 | UINT64_C(1) << 32}, false, -EINVAL, "no term"},
		{"rock", {.config = 0x200, .config2 = 100}, false, -EINVAL, "synthetic"},
		{"rock", SYN(0x100, 0, 1), false, -EINVAL, "no synthetic events of group 0"},
		{"rock", SYN(0x200, 3, 1), false, -EINVAL, "no synthetic events of group 3"},
		{"rock",
		 {.config = 0x200, .config1 = UINT64_C(1) << 31 | 2, .config2 = 49},
		 false,
		 -EINVAL,
		 "50 to 1023"},
		{"rock",
		 {.config = 0x400, .config1 = UINT64_C(1) << 31, .config2 = 249},
		 false,
		 -EINVAL,
		 "250 to 65535"},
		{"rock",
		 {.config = 0x200, .config1 = UINT64_C(1) << 31 | 2, .sample_period = 100},
		 false,
		 -EINVAL,
		 "an estimate never overflows"},
		{"rock", TXN(0x800, 0x42), false, -ENOENT, "admits no lookup"},
		{"rock", TXN(0x800, 0x5b), false, -ENOENT, "real addresses"},
		{"rock",
		 {.config = 0x400 | 2 << 16, .flags = QUIPU_ATTR_EXCLUDE_USER},
		 false,
		 -EINVAL,
		 "no privilege filter"},
		{"rock_chip", {.config = 0x100}, false, -EINVAL, "not for a task"},
		{"rock_chip", {.config = 0x100}, true, -EINVAL, "chip 1 is shared"},
		{"rock_is", {.config = 0}, false, -EINVAL, "50 to 1023"},
		{"rock_is", {.sample_period = 49}, false, -EINVAL, "50 to 1023"},
		{"rock_is", {.sample_period = 1024}, false, -EINVAL, "50 to 1023"},
		{"rock_is",
		 {.sample_freq = 1000, .flags = QUIPU_ATTR_FREQ},
		 false,
		 -EINVAL,
		 "50 to 1023"},
		{"rock_l2s", {.sample_period = 249}, false, -EINVAL, "250 to 65535"},
		{"rock_is", {.config = 2, .sample_period = 100}, false, -ENOENT, "admits none"},
	};
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int err = open_event(&b, rows[i].pmu, rows[i].attr, rows[i].cpu ? -1 : 100,
				     rows[i].cpu ? 40 : -1, NULL, &e);

		if (err != rows[i].err || !strstr(quipu_core_last_reason(b.core), rows[i].why))
			fail_msg("row %zu: %d, \"%s\"; expected %d, \"%s\"", i, err,
				 quipu_core_last_reason(b.core), rows[i].err, rows[i].why);
	}
	/* A chip cannot leave anybody out. */
	assert_int_equal(open_event(&b, "rock_chip", (struct quipu_attr)PLAIN(0x100), -1, 0, NULL,
				    &e),
			 -EINVAL);
	assert_int_equal(open_event(&b, "rock_chip",
				    (struct quipu_attr){.config = 0x100, .sample_period = 1000}, -1,
				    0, NULL, &e),
			 -EINVAL);
	bench_close(&b);
}

static void two_events_of_a_group_on_one_counter(void **state)
{
	struct quipu_event *leader, *e;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	leader = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1);
	assert_int_equal(open_event(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1, leader,
				    &e),
			 -EINVAL);
	assert_non_null(strstr(quipu_core_last_reason(b.core), "INSTR counter"));
	assert_int_equal(
		open_event(&b, "rock", (struct quipu_attr)PLAIN(0x100), 100, -1, leader, &e), 0);
	bench_close(&b);
}

/*
 * The counter is the chip's: the second strand waits, is told who has it, and counts when it is
 * free.
 */
static void strands_take_turns(void **state)
{
	struct quipu_event *first, *second, *far;
	struct quipu_count c;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	run_task(&b, 1, 1);
	run_task(&b, 2, 33);
	first = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1);
	second = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 101, -1);
	far = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 102, -1);
	feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 10, 0);
	feed(&b, 1, QUIPU_SIGNAL_INSTRUCTIONS, 20, 0);
	feed(&b, 33, QUIPU_SIGNAL_INSTRUCTIONS, 30, 0);
	assert_int_equal(value(first), 10);
	assert_int_equal(value(second), 0);
	assert_int_equal(value(far), 30);
	quipu_event_count(second, &c);
	assert_non_null(c.reason);
	assert_non_null(strstr(c.reason, "owned by strand 0"));
	quipu_system_stop(b.system, 0, false);
	quipu_system_stop(b.system, 1, false);
	run_task(&b, 1, 1);
	feed(&b, 1, QUIPU_SIGNAL_INSTRUCTIONS, 5, 0);
	assert_int_equal(value(second), 5);
	bench_close(&b);
}

/* ---- sampling ---- */

static void samples_at_the_period_and_the_instruction(void **state)
{
	struct quipu_attr a = PLAIN(0x200);
	struct quipu_event *e;
	struct ring *r;
	struct bench b;
	uint64_t words[2], n = 0, fed = 0;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	a.sample_period = 1000;
	a.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	e = must_open(&b, "rock", a, 100, -1);
	r = map(e);
	for (unsigned i = 0; i < 700; i++, fed += 77)
		feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 77, 0x1000 + i);
	for (; next_sample(r, words, 2); n++) {
		assert_int_equal(words[0], 0x1000 + ((n + 1) * 1000 - 1) / 77);
		assert_int_equal(words[1], 1000);
	}
	assert_int_equal(n, fed / 1000);
	assert_int_equal(value(e), fed);
	bench_close(&b);
	free(r);
}

/* The instruction sampler: the ring is drained at its mark and at the stop, nothing is lost. */
static void the_instruction_sampler_samples(void **state)
{
	struct quipu_attr a = {.sample_period = 100,
			       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_WEIGHT};
	struct quipu_event *e;
	struct ring *r;
	struct bench b;
	uint64_t words[2], n = 0;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	e = must_open(&b, "rock_is", a, 100, -1);
	r = map(e);
	for (unsigned i = 0; i < 1000; i++)
		feed(&b, 0, QUIPU_SIGNAL_LABELLED, 99, 0x2000 + i);
	quipu_system_stop(b.system, 0, false);
	for (; next_sample(r, words, 2); n++)
		assert_int_equal(words[0], 0x2000 + ((n + 1) * 100 - 1) / 99);
	assert_int_equal(n, 990);
	assert_int_equal(value(e), 99000);
	bench_close(&b);
	free(r);
}

/* A counter and a sampler of one type are one strand's, whichever events they serve. */
static void counter_and_sampler_side_by_side(void **state)
{
	struct quipu_attr a = {.sample_period = 50, .sample_type = PERF_SAMPLE_IP};
	struct quipu_event *count, *sampler;
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	count = must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1);
	sampler = must_open(&b, "rock_is", a, 100, -1);
	feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 50000, 0x10);
	feed(&b, 0, QUIPU_SIGNAL_LABELLED, 50000, 0x10);
	assert_int_equal(value(count), 50000);
	assert_int_equal(value(sampler), 50000);
	bench_close(&b);
}

/* ---- with records: estimates ---- */

static void instr(struct bench *b, unsigned strand, unsigned typ, unsigned evt, unsigned mode,
		  uint64_t n)
{
	const struct quipu_rock_instr i = {.pc = 0x4000,
					   .ea = 0x9000,
					   .latency = 7,
					   .typ = (uint8_t)typ,
					   .evt = (uint16_t)evt,
					   .mode = (uint8_t)mode};

	quipu_rock_instr(b->rock, strand, &i, n);
}

static void estimates_of_instructions(void **state)
{
	static const struct {
		struct quipu_attr attr;
		uint64_t want;
	} rows[] = {
		{SYN(0x200, 0, 0x02), 40000}, {SYN(0x200, 0, 0x04), 10000},
		{SYN(0x200, 0, 0x20), 50000}, {SYN(0x200, 2, 0x001), 30000},
		{SYN(0x200, 1, 2), 30000},    {SYN(0x200, 1, 0), 60000},
		{SYN(0x200, 1, 5), 10000},    {SYN(0x200, 2, 0x400), 0},
		{SYN(0x200, 0, 0x06), 50000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_event *e;
		struct bench b;

		bench_open_records(&b, false);
		run_task(&b, 0, 0);
		e = must_open(&b, "rock", rows[i].attr, 100, -1);
		instr(&b, 0, QUIPU_ROCK_TYP_LOAD, QUIPU_ROCK_EVT_DCACHE_MISS,
		      QUIPU_ROCK_MODE_EXECUTE_AHEAD, 30000);
		instr(&b, 0, QUIPU_ROCK_TYP_LOAD, 0, QUIPU_ROCK_MODE_NORMAL, 10000);
		instr(&b, 0, QUIPU_ROCK_TYP_STORE, QUIPU_ROCK_EVT_TAKEN, QUIPU_ROCK_MODE_SCOUT,
		      10000);
		instr(&b, 0, QUIPU_ROCK_TYP_ALU, 0, QUIPU_ROCK_MODE_NORMAL, 50000);
		quipu_sched_out(b.core, 0, false);
		if (value(e) != rows[i].want)
			fail_msg("code 0x%llx: %llu, not %llu",
				 (unsigned long long)rows[i].attr.config1,
				 (unsigned long long)value(e), (unsigned long long)rows[i].want);
		bench_close(&b);
	}
}

/* nohws drops what was sampled in scout mode, but not from the number of samples. */
static void scouts_are_left_out(void **state)
{
	struct quipu_attr a = SYN(0x200, 0, 0x02);
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open_records(&b, false);
	run_task(&b, 0, 0);
	a.config2 = 50 | 1 << 16;
	e = must_open(&b, "rock", a, 100, -1);
	instr(&b, 0, QUIPU_ROCK_TYP_LOAD, 0, QUIPU_ROCK_MODE_SCOUT, 1000);
	instr(&b, 0, QUIPU_ROCK_TYP_LOAD, 0, QUIPU_ROCK_MODE_NORMAL, 3000);
	assert_int_equal(value(e), 3000);
	bench_close(&b);
}

/* An interval without a sample is not lost: it waits for the next. */
static void short_intervals_are_carried(void **state)
{
	static const uint64_t want[] = {0, 120, 120, 240, 300};
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open_records(&b, false);
	run_task(&b, 0, 0);
	e = must_open(&b, "rock", (struct quipu_attr)SYN(0x200, 0, 0x02), 100, -1);
	/* Samples fall at 100, 200 and 300; each reading ends an interval. */
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		instr(&b, 0, QUIPU_ROCK_TYP_LOAD, 0, QUIPU_ROCK_MODE_NORMAL, 60);
		assert_int_equal(value(e), want[i]);
	}
	bench_close(&b);
}

static void l2(struct bench *b, unsigned type, unsigned source, uint64_t n)
{
	const struct quipu_rock_l2 t = {.ea = 0x7000,
					.requester = RK_PERF_SRC_STRAND,
					.type = (uint8_t)type,
					.source = (uint8_t)source};

	quipu_rock_l2(b->rock, 0, &t, n);
}

/* Case 75 of the sheet, its second half: all loads from DRAM. And the other events of the L2. */
static void estimates_of_the_l2(void **state)
{
	static const struct {
		struct quipu_attr attr;
		uint64_t dram, mixed;
	} rows[] = {
		{SYN(0x400, 0, 0), 1000, 10000}, /* from DRAM */
		{SYN(0x400, 0, 1), 0, 20000},	 /* from the L3 */
		{SYN(0x400, 0, 2), 0, 0},	 /* from another L2 */
		{SYN(0x400, 0, 4), 1000, 30000}, /* miss */
		{SYN(0x400, 1, 0x03), 1000, 10000}, {SYN(0x400, 1, 0x18), 0, 20000},
		{SYN(0x400, 2, 0x03), 0, 30000},    {SYN(0x400, 2, 0x18), 0, 40000},
		{SYN(0x400, 3, 0), 0, 70000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned mixed = 0; mixed < 2; mixed++) {
			struct quipu_attr a = rows[i].attr;
			struct quipu_event *e;
			struct bench b;

			a.config2 = 250;
			bench_open_records(&b, false);
			run_task(&b, 0, 0);
			e = must_open(&b, "rock", a, 100, -1);
			if (mixed) {
				l2(&b, QUIPU_ROCK_L2_DCACHE_LOAD, QUIPU_ROCK_DRAM, 10000);
				l2(&b, QUIPU_ROCK_L2_STORE, QUIPU_ROCK_L3, 20000);
				l2(&b, QUIPU_ROCK_L2_ICACHE_LOAD, QUIPU_ROCK_LOCAL_L2, 30000);
				l2(&b, QUIPU_ROCK_L2_STORE_PREFETCH, QUIPU_ROCK_LOCAL_L2, 40000);
			} else {
				l2(&b, QUIPU_ROCK_L2_DCACHE_LOAD, QUIPU_ROCK_DRAM, 1000);
			}
			if (value(e) != (mixed ? rows[i].mixed : rows[i].dram))
				fail_msg("code 0x%llx: %llu", (unsigned long long)a.config1,
					 (unsigned long long)value(e));
			bench_close(&b);
		}
}

static void l2_samples_name_their_source(void **state)
{
	struct quipu_attr a = {.config = 0x02,
			       .sample_period = 250,
			       .sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC};
	static const uint64_t level[] = {PERF_MEM_S(LVL, LOC_RAM), PERF_MEM_S(LVL, L3),
					 PERF_MEM_S(LVL, REM_CCE1), PERF_MEM_S(LVL, L2)};
	struct quipu_event *e;
	struct ring *r;
	struct bench b;
	uint64_t words[2];
	unsigned n = 0;

	(void)state;
	bench_open_records(&b, false);
	run_task(&b, 0, 0);
	e = must_open(&b, "rock_l2s", a, 100, -1);
	r = map(e);
	for (unsigned source = 0; source < 4; source++) {
		l2(&b, QUIPU_ROCK_L2_STORE, source, 5000); /* the filter asks for loads */
		l2(&b, QUIPU_ROCK_L2_DCACHE_LOAD, source, 250);
	}
	quipu_sched_out(b.core, 0, false);
	for (; next_sample(r, words, 2); n++) {
		assert_int_equal(words[0], 0x7000);
		assert_int_equal(words[1], level[n] | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(OP, LOAD));
	}
	assert_int_equal(n, 4);
	bench_close(&b);
	free(r);
}

/* Strict: the sampler still samples, but no register says where. */
static void strict_samples_have_no_address(void **state)
{
	struct quipu_attr a = {.sample_period = 50,
			       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR};

	(void)state;
	for (unsigned strict = 0; strict < 2; strict++) {
		uint64_t words[2] = {1, 1};
		struct quipu_event *e;
		struct ring *r;
		struct bench b;

		bench_open_records(&b, strict);
		run_task(&b, 0, 0);
		e = must_open(&b, "rock_is", a, 100, -1);
		r = map(e);
		instr(&b, 0, QUIPU_ROCK_TYP_LOAD, 0, 0, 50);
		quipu_sched_out(b.core, 0, false);
		assert_true(next_sample(r, words, 2));
		assert_int_equal(words[0], strict ? 0 : 0x4000);
		assert_int_equal(words[1], strict ? 0 : 0x9000);
		bench_close(&b);
		free(r);
	}
}

/* YANK and the like count when somebody tells them. */
static void speculation_counts_with_records(void **state)
{
	static const unsigned codes[] = {RK_PERF_YANK, RK_PERF_SIBLK, RK_PERF_LVLK};
	struct bench b;

	(void)state;
	bench_open_records(&b, false);
	run_task(&b, 0, 3);
	for (unsigned i = 0; i < 3; i++) {
		struct quipu_event *e;

		quipu_rock_mcc(b.rock, 3, codes[i], 1000);
		e = must_open(&b, "rock", (struct quipu_attr){.config = codes[i]}, 100, -1);
		quipu_rock_mcc(b.rock, 3, codes[i], 11);
		quipu_sched_out(b.core, 3, false);
		quipu_rock_mcc(b.rock, 3, codes[i], 500);
		run_task(&b, 0, 3);
		quipu_rock_mcc(b.rock, 3, codes[i], 22);
		assert_int_equal(value(e), 33);
		quipu_event_close(e);
	}
	bench_close(&b);
}

/* ---- the calls, in order ---- */

static void calls_of_a_count(void **state)
{
	static const char want[] =
		"strand 0: RK_PERF_COUNT_INIT(0x201) -> EOK\n"
		"strand 0: RK_PERF_COUNT_SET(0x201, 0x0) -> EOK\n"
		"strand 0: RK_PERF_COUNT_START(0x201, 0x8000000000000005) -> EOK\n";
	static const char after[] = "strand 0: RK_PERF_COUNT_STOP(0x201) -> EOK\n"
				    "strand 0: RK_PERF_COUNT_OVERFLOW(0x201) -> EOK, 0x0\n"
				    "strand 0: RK_PERF_COUNT_GET(0x201) -> EOK, 0x2a\n"
				    "strand 0: RK_PERF_COUNT_OVERFLOW(0x201) -> EOK, 0x0\n"
				    "strand 0: RK_PERF_COUNT_RELEASE(0x201) -> EOK\n";
	struct bench b;

	(void)state;
	bench_open(&b);
	run_task(&b, 0, 0);
	b.trace[0] = '\0';
	must_open(&b, "rock", (struct quipu_attr)PLAIN(0x200), 100, -1);
	assert_string_equal(b.trace, want);
	feed(&b, 0, QUIPU_SIGNAL_INSTRUCTIONS, 42, 0);
	b.trace[0] = '\0';
	quipu_system_stop(b.system, 0, false);
	assert_string_equal(b.trace, after);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_encodings),
		cmocka_unit_test(counts_move_with_the_task),
		cmocka_unit_test(counts_pass_the_width_of_a_counter),
		cmocka_unit_test(what_is_listed_can_be_counted),
		cmocka_unit_test(l2_and_mmu_events_by_signal),
		cmocka_unit_test(the_engine_hears_of_every_signal),
		cmocka_unit_test(a_chip_counts_all_its_strands),
		cmocka_unit_test(another_cpu_counts_for_the_chip),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(two_events_of_a_group_on_one_counter),
		cmocka_unit_test(strands_take_turns),
		cmocka_unit_test(samples_at_the_period_and_the_instruction),
		cmocka_unit_test(the_instruction_sampler_samples),
		cmocka_unit_test(counter_and_sampler_side_by_side),
		cmocka_unit_test(estimates_of_instructions),
		cmocka_unit_test(scouts_are_left_out),
		cmocka_unit_test(short_intervals_are_carried),
		cmocka_unit_test(estimates_of_the_l2),
		cmocka_unit_test(l2_samples_name_their_source),
		cmocka_unit_test(strict_samples_have_no_address),
		cmocka_unit_test(speculation_counts_with_records),
		cmocka_unit_test(calls_of_a_count),
	};

	return cmocka_run_group_tests_name("rock driver", tests, NULL, NULL);
}
