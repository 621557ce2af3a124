/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RISC-V sheet 8.3 (D1-D8, device tree), 8.4 (P1-P23, the SBI driver under the event core) and 8.5
 * (L1-L12, the legacy machine). P14 and the commands' own texts need a client process and are
 * tested with the command. Sources as in calls.c; L612: Linux 6.12, L5: Linux 4.18-5.17, SEED: the
 * document.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/tree.h>

#include "harness.h"
#include "platform/riscv/driver.h"
#include "platform/riscv/hart.h"
#include "platform/riscv/legacy.h"
#include "platform/riscv/room.h"

#define INSN	   QUIPU_SIGNAL_INSTRUCTIONS
#define CYC	   QUIPU_SIGNAL_CYCLES
#define RAW_FW	   (UINT64_C(2) << 62)
#define RING_PAGES 64u
#define NO_SNAPSHOT                                                                                \
	{                                                                                          \
		"quipu,snapshot", "off"                                                            \
	}

static const struct tree hart16 = {0};
static const struct tree plain = {.strings = {NO_SNAPSHOT}};

/* ---- device tree ---- */

struct tree_case {
	const char *name, *source;
	struct tree tree;
	unsigned ranges, raws, aliases; /* rows that are taken */
	const char *wrong_path,
		*wrong_text; /* a note that must be there; NULL: no note of kind WRONG */
	uint32_t counters;   /* of the first range, when not 0 */
};

static const struct tree_case tree_cases[] = {
	{"D1 QEMU's property: spare cells and a row of zeros",
	 "M",
	 {.ranges = {1,	      1,       0x7fff9, 2,	 2,	  0x7fffc, 0x10019,
		     0x10019, 0x7fff8, 0x1001b, 0x1001b, 0x7fff8, 0x10021, 0x10021,
		     0x7fff8, 0,       0,	0,	 0,	  0},
	  .nranges = 20},
	 5,
	 0,
	 0,
	 NULL,
	 NULL,
	 0x7fff9},
	{"D2 counter 0 for another event than cycles and instructions",
	 "OSBI",
	 {.ranges = {3, 3, 1, 0x10019, 0x10019, 0x7fff8}, .nranges = 6},
	 0,
	 0,
	 0,
	 "riscv,event-to-mhpmcounters row 1",
	 "counters 0 to 2",
	 0},
	{"D3 overlapping ranges",
	 "OSBI",
	 {.ranges = {1, 5, 8, 5, 6, 8}, .nranges = 6},
	 1,
	 0,
	 0,
	 "riscv,event-to-mhpmcounters row 2",
	 "overlaps",
	 0},
	{"D4 first above last",
	 "OSBI",
	 {.ranges = {6, 5, 8}, .nranges = 3},
	 0,
	 0,
	 0,
	 "row 1",
	 "above the last",
	 0},
	{"D4 last too large",
	 "OSBI",
	 {.ranges = {0x10000, 0x20000, 8}, .nranges = 3},
	 0,
	 0,
	 0,
	 "row 1",
	 "neither",
	 0},
	{"D5 counters that are not there are left out silently",
	 "OSBI",
	 {.ranges = {1, 1, 0xfffffff8}, .nranges = 3, .mask = 0x18},
	 1,
	 0,
	 0,
	 NULL,
	 NULL,
	 0x18},
	{"D6 event-to-mhpmevent alone",
	 "DTB",
	 {.pmu = "riscv,pmu", .aliases = {3, 0, 0x10000}, .naliases = 3},
	 0,
	 0,
	 0,
	 "riscv,event-to-mhpmevent",
	 "needs",
	 0},
	{"D7 no pmu node", "OSBI", {.pmu = ""}, 0, 0, 0, NULL, NULL, 0},
	{"D-19 repeated raw row",
	 "OSBI",
	 {.raws = {0, 1, 0, 1, 8, 0, 1, 0, 1, 16}, .nraws = 10},
	 5,
	 1,
	 0,
	 "riscv,raw-event-to-mhpmcounters row 2",
	 "repeat",
	 0},
	{"D-19 raw row that nothing matches",
	 "D-19",
	 {.raws = {0, 3, 0, 1, 8}, .nraws = 5},
	 5,
	 0,
	 0,
	 "riscv,raw-event-to-mhpmcounters row 1",
	 "nothing matches",
	 0},
};

/* clang-format on */

static void tree_case(void **state)
{
	const struct tree_case *c = *state;
	struct harness h;

	harness_open(&h, &c->tree);
	assert_int_equal(h.rv->tables.nranges, c->ranges);
	assert_int_equal(h.rv->tables.nraws, c->raws);
	assert_int_equal(h.rv->tables.naliases, c->aliases);
	if (c->counters)
		assert_int_equal(h.rv->tables.ranges[0].counters, c->counters);
	if (c->wrong_path)
		assert_true(harness_wrong(&h.notes, c->wrong_path, c->wrong_text));
	else
		assert_false(harness_wrong(&h.notes, "", ""));
	harness_close(&h);
}

static struct quipu_sbiret match(struct quipu_riscv *rv, uint64_t event)
{
	return quipu_riscv_ecall(rv, 0, QUIPU_SBI_PMU, 2,
				 (uint64_t[6]){0, (UINT64_C(1) << 35) - 1, 0, event, 0});
}

static void no_node_still_counts(void **state)
{
	const struct tree t = {.pmu = "", .extensions = "zihpm"};
	struct harness h;

	(void)state;
	harness_open(&h, &t);
	assert_int_equal(match(h.rv, 1).value, 0);
	assert_int_equal(match(h.rv, 2).value, 2);
	assert_int_equal(match(h.rv, 0x10019).error, -2);
	assert_int_equal(match(h.rv, 0xF0005).error, 0);
	harness_close(&h);
}

/* ---- opening events ---- */

struct open_case {
	const char *name, *source;
	struct tree tree;
	struct quipu_attr attr;
	int error;
	const char *reason; /* part of what is said; NULL: anything */
};

#define HW(c)	 .type = PERF_TYPE_HARDWARE, .config = (c)
#define CACHE(c) .type = PERF_TYPE_HW_CACHE, .config = (c)
#define RAW(c)	 .type = PERF_TYPE_RAW, .config = (c)
#define NO_OVF                                                                                     \
	{                                                                                          \
		.extensions = "zihpm"                                                              \
	}
#define K61                                                                                        \
	{                                                                                          \
		.strings = { {"quipu,kernel", "6.1"} }                                             \
	}
#define LEGACY(k)                                                                                  \
	{                                                                                          \
		.pmu = "riscv,base-pmu", .legacy_node = true, .extensions = "zihpm", .strings = {  \
			{"quipu,kernel", k}                                                        \
		}                                                                                  \
	}
#define LEGACY_SILENT                                                                              \
	{                                                                                          \
		.pmu = "riscv,base-pmu", .legacy_node = true, .extensions = "zihpm", .strings = {  \
			{"quipu,record", "silent"}                                                 \
		}                                                                                  \
	}

/* clang-format off */
static const struct open_case open_cases[] = {
	{ "P2 no Sscofpmf: no sampling", "M", NO_OVF, { HW(0), .sample_period = 1000 }, -EOPNOTSUPP, NULL },
	{ "P2 no Sscofpmf: no filter", "M", NO_OVF, { HW(0), .flags = QUIPU_ATTR_EXCLUDE_KERNEL }, -EINVAL, NULL },
	{ "P3 cache-references unmapped", "M", { 0 }, { HW(2) }, -ENOENT, "no row" },
	{ "P3 ref-cycles unmapped", "M", { 0 }, { HW(9) }, -ENOENT, NULL },
	{ "P3 6.1 opens them", "L61", K61, { HW(2) }, 0, NULL },
	{ "P4 generic event 10", "M", { 0 }, { HW(10) }, -EINVAL, "there is no generic" },
	{ "P4 generic event 0xffff", "M", { 0 }, { HW(0xFFFF) }, -EINVAL, NULL },
	{ "P5 cache 7", "M", { 0 }, { CACHE(7) }, -EINVAL, NULL },
	{ "P5 operation 3", "M", { 0 }, { CACHE(0x300) }, -EINVAL, NULL },
	{ "P5 result 2", "M", { 0 }, { CACHE(0x20000) }, -EINVAL, NULL },
	{ "5.2 a mapped cache event", "L612", { 0 }, { CACHE(0x10003) }, 0, NULL },
	{ "5.2 an unmapped cache event", "L612", { 0 }, { CACHE(0) }, -ENOENT, NULL },
	{ "P6 raw with firmware=1", "M", { 0 }, { RAW(UINT64_C(1) << 62) }, -ENOENT, NULL },
	{ "5.2 6.1: bit 62 is ignored", "L61", K61, { RAW(UINT64_C(1) << 62) }, 0, NULL },
	{ "5.2 6.1: firmware code 22", "L61", K61, { RAW(RAW_FW | 22) }, -EINVAL, NULL },
	{ "P9 a type of nobody", "M", { 0 }, { .type = 0x77 }, -ENOENT, NULL },
	{ "P10 branch stacks", "M", { 0 },
	  { HW(0), .sample_period = 1000, .sample_type = PERF_SAMPLE_BRANCH_STACK, .branch_sample_type = PERF_SAMPLE_BRANCH_ANY },
	  -EOPNOTSUPP, "no branch stacks" },
	{ "P13 a raw code of nobody opens", "M", { 0 }, { RAW(0x2A) }, 0, NULL },
	{ "5.2 a period with bit 63", "L612", { 0 }, { HW(0), .sample_period = UINT64_C(1) << 63 }, -EINVAL, NULL },
	{ "D-27 :k says that it counts 0", "D-27", { 0 }, { HW(0), .flags = QUIPU_ATTR_EXCLUDE_USER }, 0, "counts 0" },
	{ "L1 cycles", "SEED", LEGACY("4.18"), { HW(0) }, 0, NULL },
	{ "L1 instructions", "SEED", LEGACY("4.18"), { HW(1) }, 0, NULL },
	{ "L2 raw events", "SEED, L5", LEGACY("4.18"), { RAW(1) }, -EOPNOTSUPP, "cycles and instructions only" },
	{ "L3 generic events 2 to 6", "L5", LEGACY("4.18"), { HW(2) }, -EOPNOTSUPP, NULL },
	{ "L3 generic event 7", "L5", LEGACY("4.18"), { HW(7) }, -EINVAL, NULL },
	{ "L4 cache events", "L5", LEGACY("4.18"), { CACHE(0) }, -ENOENT, NULL },
	{ "2.4 unknown type", "L5", LEGACY("4.18"), { .type = 0x77 }, -ENOENT, NULL },
	{ "L5 sampling is refused", "D-15", LEGACY("4.18"), { HW(0), .sample_period = 1000 }, -EOPNOTSUPP, "cannot sample" },
	{ "L5 or silent", "D-15", LEGACY_SILENT, { HW(0), .sample_period = 1000 }, 0, NULL },
	{ "L7 cycles:u opens and says that it counts all", "L5", LEGACY("4.18"), { HW(0), .flags = QUIPU_ATTR_EXCLUDE_KERNEL }, 0,
	  "every privilege level" },
	{ "2.4 6.1: other events", "L61", LEGACY("6.1"), { HW(2) }, -EOPNOTSUPP, NULL },
	{ "2.4 6.1: raw", "L61", LEGACY("6.1"), { RAW(1) }, -EOPNOTSUPP, NULL },
	{ "2.4 6.1: filters are ignored", "L61", LEGACY("6.1"), { HW(0), .flags = QUIPU_ATTR_EXCLUDE_KERNEL }, 0, NULL },
	{ "2.4 6.12: other events", "M", LEGACY("6.12"), { HW(2) }, -ENOENT, NULL },
	{ "2.4 6.12: raw", "M", LEGACY("6.12"), { RAW(1) }, -ENOENT, NULL },
	{ "2.4 6.12: sampling", "M", LEGACY("6.12"), { HW(0), .sample_period = 1000 }, -EOPNOTSUPP, NULL },
	{ "2.4 6.12: filters", "M", LEGACY("6.12"), { HW(0), .flags = QUIPU_ATTR_EXCLUDE_KERNEL }, -EINVAL, NULL },
	{ "D8 unknown compatible: base PMU", "L5, SEED",
	  { .pmu = "acme,pmu", .legacy_node = true, .extensions = "zihpm" }, { RAW(1) }, -EOPNOTSUPP, NULL },
	{ "D8 no node: base PMU", "L5, SEED", { .pmu = "", .extensions = "zihpm", .strings = { { "quipu,driver", "legacy" } } },
	  { RAW(1) }, -EOPNOTSUPP, NULL },
};

/* clang-format on */

static void open_case(void **state)
{
	const struct open_case *c = *state;
	struct quipu_event *e = NULL;
	struct quipu_count count;
	const char *said;
	struct bench b;
	int r;

	bench_open(&b, &c->tree, NULL);
	r = bench_event(&b, &c->attr, NULL, &e);
	if (r != c->error)
		fail_msg("%s (%s): %d, must be %d (%s)", c->name, c->source, r, c->error,
			 quipu_core_last_reason(b.core));
	if (r) {
		said = quipu_core_last_reason(b.core);
		assert_true(said[0]);
	} else {
		quipu_event_count(e, &count);
		said = count.remark ? count.remark : "";
	}
	if (c->reason && !strstr(said, c->reason))
		fail_msg("%s (%s): says \"%s\"", c->name, c->source, said);
	bench_close(&b);
}

/* ---- counting and sampling ---- */

static struct quipu_event *event(struct bench *b, struct quipu_attr attr, struct quipu_event *group)
{
	struct quipu_event *e = NULL;
	int r = bench_event(b, &attr, group, &e);

	if (r)
		fail_msg("open of type %u config 0x%" PRIx64 ": %d (%s)", attr.type, attr.config, r,
			 quipu_core_last_reason(b->core));
	return e;
}

struct ring {
	void *mem;
	unsigned samples;
	uint64_t first_ip, period, wrong_periods;
};

static void ring_map(struct ring *r, struct quipu_event *e)
{
	static const struct quipu_caller root = {
		.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};

	memset(r, 0, sizeof(*r));
	r->mem = aligned_alloc(4096, (1 + RING_PAGES) * 4096);
	memset(r->mem, 0, (1 + RING_PAGES) * 4096);
	assert_int_equal(quipu_event_map(e, &root, r->mem, RING_PAGES, true), 0);
}

/* Samples of type IP | PERIOD. */
static void ring_drain(struct ring *r)
{
	struct perf_event_mmap_page *page = r->mem;
	const uint8_t *data = (const uint8_t *)r->mem + 4096;
	uint64_t head = page->data_head;

	for (uint64_t at = page->data_tail; at < head;) {
		struct perf_event_header h;
		uint64_t ip, period;

		memcpy(&h, data + at % (RING_PAGES * 4096), sizeof(h));
		assert_true(h.size >= sizeof(h));
		if (h.type == PERF_RECORD_SAMPLE) {
			memcpy(&ip, data + (at + 8) % (RING_PAGES * 4096), 8);
			memcpy(&period, data + (at + 16) % (RING_PAGES * 4096), 8);
			r->wrong_periods += r->period && period != r->period;
			if (!r->samples++)
				r->first_ip = ip;
		}
		at += h.size;
	}
	page->data_tail = head;
}

static const uint64_t SAMPLE = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;

static void describe_line(void *arg, unsigned depth, const char *line)
{
	char *text = arg;

	(void)depth;
	strcat(strcat(text, line), "\n");
}

static void probe_says_what_linux_says(void **state)
{
	const struct tree no_overflow = NO_OVF;
	char text[4096] = "";
	struct bench b;

	(void)state;
	bench_open(&b, &hart16, NULL);
	quipu_platform_riscv.describe(b.room, describe_line, text);
	assert_non_null(strstr(text, "SBI PMU extension is available"));
	assert_non_null(strstr(text, "16 firmware and 18 hardware counters"));
	assert_non_null(strstr(text, "SBI PMU snapshot detected"));
	bench_close(&b);
	text[0] = '\0';
	bench_open(&b, &no_overflow, NULL);
	quipu_platform_riscv.describe(b.room, describe_line, text);
	assert_non_null(strstr(
		text,
		"Perf sampling/filtering is not supported as sscof extension is not available"));
	bench_close(&b);
}

static void firmware_codes_beyond_the_sbi(void **state)
{
	struct quipu_event *late, *masked;
	struct quipu_count c;
	struct bench b;

	(void)state;
	bench_open(&b, &hart16, NULL);
	late = event(&b, (struct quipu_attr){RAW(RAW_FW | 22)}, NULL);
	quipu_event_count(late, &c);
	assert_int_equal(c.running, 0);
	quipu_event_close(late);
	masked = event(&b, (struct quipu_attr){RAW(RAW_FW | 0x10000)}, NULL);
	quipu_riscv_trap(b.rv, 0, 4, 0);
	assert_int_equal(bench_value(masked), 1);
	bench_close(&b);
}

static void raw_code_of_nobody_says_why(void **state)
{
	struct quipu_event *good, *bad;
	struct quipu_count c;
	struct bench b;

	(void)state;
	bench_open(&b, &hart16, NULL);
	good = event(&b, (struct quipu_attr){HW(1)}, NULL);
	bad = event(&b, (struct quipu_attr){RAW(0x2A)}, NULL);
	bench_feed(&b, INSN, 500, 0x10);
	bench_feed(&b, CYC, 500, 0x10);
	quipu_event_count(bad, &c);
	assert_int_equal(c.running, 0);
	assert_int_equal(c.value, 0);
	assert_non_null(c.reason);
	assert_non_null(strstr(c.reason, "no counter of this machine takes that raw code 0x2a"));
	assert_int_equal(bench_value(good), 500);
	bench_close(&b);
}

static void kernel_charge_splits_u_and_k(void **state)
{
	const struct tree t = {.numbers = {{"quipu,charge-syscall-instructions", 400},
					   {"quipu,charge-syscall-cycles", 600}}};
	struct quipu_event *all, *u, *k;
	struct bench b;

	(void)state;
	bench_open(&b, &t, NULL);
	all = event(&b, (struct quipu_attr){HW(0)}, NULL);
	u = event(&b, (struct quipu_attr){HW(0), .flags = QUIPU_ATTR_EXCLUDE_KERNEL}, NULL);
	k = event(&b, (struct quipu_attr){HW(0), .flags = QUIPU_ATTR_EXCLUDE_USER}, NULL);
	bench_feed(&b, CYC, 10000, 0x10);
	bench_feed(&b, QUIPU_SIGNAL_SYSCALLS, 5, 0x14);
	bench_feed(&b, CYC, 1000, 0x18);
	assert_int_equal(bench_value(u), 11000);
	assert_int_equal(bench_value(k), 3000);
	assert_int_equal(bench_value(all), 14000);
	bench_close(&b);
}

static void sixteen_pinned_events_fit(void **state)
{
	struct quipu_event *e[40];
	unsigned running = 0, dead = 0;
	struct bench b;

	(void)state;
	bench_open(&b, &hart16, NULL);
	for (unsigned i = 0; i < 40; i++)
		e[i] = event(&b, (struct quipu_attr){HW(1), .flags = QUIPU_ATTR_PINNED}, NULL);
	bench_feed(&b, INSN, 1000, 0x10);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t v = 0;
		ssize_t n = quipu_event_read(e[i], &v, sizeof(v));

		running += n == 8 && v == 1000;
		dead += n == 0;
	}
	assert_int_equal(running, 16);
	assert_int_equal(dead, 24);
	bench_close(&b);
}

/*
 * P15, P16: exactly floor(n / period), the first at the instruction that completed the first
 * period.
 */
static void samples_are_exact(const struct tree *t, struct quipu_attr attr, quipu_signal signal,
			      uint64_t period, uint64_t n)
{
	struct quipu_event *e;
	struct ring r;
	struct bench b;

	bench_open(&b, t, NULL);
	attr.sample_period = period;
	attr.sample_type = SAMPLE;
	e = event(&b, attr, NULL);
	ring_map(&r, e);
	r.period = period;
	/* Odd steps, so that overflows fall inside and between feeds. */
	for (uint64_t fed = 0; fed < n;) {
		uint64_t step = fed + 777 > n ? n - fed : 777;

		bench_feed(&b, signal, step, 0x1000 + fed);
		fed += step;
		ring_drain(&r);
	}
	assert_int_equal(r.samples, n / period);
	assert_int_equal(r.wrong_periods, 0);
	assert_int_equal(r.first_ip, 0x1000 + (period - 1) / 777 * 777);
	assert_int_equal(bench_value(e), n);
	bench_close(&b);
	free(r.mem);
}

static void record_takes_every_period(void **state)
{
	const struct tree k61 = K61, narrow = {.width = 16};

	(void)state;
	samples_are_exact(&hart16, (struct quipu_attr){HW(1), .flags = QUIPU_ATTR_EXCLUDE_KERNEL},
			  INSN, 10000, 1234567);
	samples_are_exact(&plain, (struct quipu_attr){HW(1)}, INSN, 10000, 1234567);
	samples_are_exact(&k61, (struct quipu_attr){HW(1)}, INSN, 10000, 1234567);
	/* A period longer than the counter is wide takes several overflows. */
	samples_are_exact(&narrow, (struct quipu_attr){HW(1)}, INSN, 200000, 1234567);
}

static void record_of_a_cache_event(void **state)
{
	(void)state;
	samples_are_exact(&hart16, (struct quipu_attr){CACHE(0x10003)},
			  QUIPU_SIGNAL_DTLB_READ_MISSES, 1000, 647123);
}

static void group_member_counts_exactly(void **state)
{
	const struct tree *trees[] = {&hart16, &plain};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct quipu_event *leader, *member;
		struct bench b;
		struct ring r;

		bench_open(&b, trees[i], NULL);
		leader = event(&b,
			       (struct quipu_attr){HW(1), .sample_period = 1000,
						   .sample_type = SAMPLE},
			       NULL);
		member = event(&b, (struct quipu_attr){HW(0)}, leader);
		ring_map(&r, leader);
		for (unsigned k = 0; k < 1000; k++) {
			bench_feed(&b, CYC, 17, 0x10);
			bench_feed(&b, INSN, 13, 0x10);
		}
		ring_drain(&r);
		assert_int_equal(r.samples, 13);
		assert_int_equal(bench_value(member), 17000);
		assert_int_equal(bench_value(leader), 13000);
		bench_close(&b);
		free(r.mem);
	}
}

/* The names of the traced calls with their status, as the sheet writes sequences. */
static void sequence(const struct bench *b, char *out, size_t len)
{
	out[0] = '\0';
	for (const char *p = b->trace; p && *p; p = strchr(p, '\n') + 1) {
		const char *dot = strstr(p, "pmu."), *eq = strstr(p, ") = ");
		size_t used = strlen(out);

		snprintf(out + used, len - used, "%s%.*s %ld", used ? ", " : "",
			 (int)strcspn(dot + 4, "("), dot + 4, strtol(eq + 4, NULL, 10));
	}
}

static void expect_sequence(struct bench *b, const char *want)
{
	char got[1024];

	sequence(b, got, sizeof(got));
	assert_string_equal(got, want);
	bench_trace_clear(b);
}

/* 5.3: which config_flags an event's exclude bits become; L61 knows two of them. */
static void filters_are_those_of_linux(void **state)
{
	static const struct {
		const char *kernel;
		uint64_t flags, config1;
		unsigned config_flags; /* 3 VUINH, 4 VSINH, 5 UINH, 6 SINH */
	} rows[] = {
		{"6.12", 0, 0, 0},
		{"6.12", QUIPU_ATTR_EXCLUDE_KERNEL, 0, 0x40},
		{"6.12", QUIPU_ATTR_EXCLUDE_USER, 0, 0x20},
		{"6.12", QUIPU_ATTR_EXCLUDE_HV, 0, 0},
		{"6.12", QUIPU_ATTR_EXCLUDE_HOST, 0, 0x60},
		{"6.12", QUIPU_ATTR_EXCLUDE_GUEST, 0, 0x18},
		{"6.12", QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_GUEST, 0, 0x58},
		{"6.12", QUIPU_ATTR_EXCLUDE_KERNEL, 1, 0x10},
		{"6.12", QUIPU_ATTR_EXCLUDE_USER, 1, 0x08},
		{"6.12", QUIPU_ATTR_EXCLUDE_HV, 1, 0x40},
		{"6.1", QUIPU_ATTR_EXCLUDE_KERNEL, 0, 0x40},
		{"6.1", QUIPU_ATTR_EXCLUDE_USER, 1, 0x20},
		{"6.1", QUIPU_ATTR_EXCLUDE_HOST | QUIPU_ATTR_EXCLUDE_GUEST, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tree t = {.strings = {NO_SNAPSHOT, {"quipu,kernel", rows[i].kernel}}};
		char want[64];
		struct bench b;

		bench_open(&b, &t, NULL);
		bench_trace_clear(&b);
		event(&b,
		      (struct quipu_attr){HW(1), .flags = rows[i].flags,
					  .config1 = rows[i].config1},
		      NULL);
		snprintf(want, sizeof(want),
			 rows[i].config_flags > 9 ? ", flags=0x%x, " : ", flags=%x, ",
			 rows[i].config_flags);
		if (!b.trace || !strstr(b.trace, "config_matching") || !strstr(b.trace, want))
			fail_msg("row %zu: no %s in %s", i, want, b.trace ? b.trace : "nothing");
		bench_close(&b);
	}
}

/*
 * 5.5: whatever the period, a counter of W bits starts no further than half its range before the
 * overflow, so that the handler comes by before a second wrap.
 */
static void long_periods_go_in_halves(void **state)
{
	const uint64_t half = (UINT64_C(1) << 40) / 2 - 1;
	struct tree t = {.width = 40, .strings = {NO_SNAPSHOT}};
	struct quipu_event *e;
	struct bench b;
	char want[64];
	struct ring r;

	(void)state;
	bench_open(&b, &t, NULL);
	bench_trace_clear(&b);
	e = event(&b,
		  (struct quipu_attr){HW(1), .sample_period = UINT64_C(1) << 41,
				      .sample_type = SAMPLE},
		  NULL);
	snprintf(want, sizeof(want), "value=0x%" PRIx64 ")", -half & bits_mask(40));
	if (!strstr(b.trace, want))
		fail_msg("no %s in %s", want, b.trace);
	ring_map(&r, e);
	for (unsigned i = 0; i < 8; i++)
		bench_feed(&b, INSN, UINT64_C(1) << 39, 0x10);
	ring_drain(&r);
	assert_int_equal(r.samples, 2);
	assert_int_equal(bench_value(e), UINT64_C(1) << 42);
	bench_close(&b);
	free(r.mem);
}

static void calls_are_those_of_linux(void **state)
{
	struct quipu_event *e, *other, *fw;
	struct bench b;

	(void)state;
	bench_open(&b, &plain, NULL);
	bench_trace_clear(&b);
	e = event(&b, (struct quipu_attr){HW(1), .sample_period = 1000, .sample_type = SAMPLE},
		  NULL);
	expect_sequence(&b, "counter_config_matching 0, counter_start 0");
	other = event(&b, (struct quipu_attr){HW(0)}, NULL);
	bench_trace_clear(&b);
	bench_value(other);
	expect_sequence(&b, "");
	bench_feed(&b, INSN, 1000, 0x10);
	assert_non_null(b.trace);
	expect_sequence(&b, "counter_stop 0, counter_start 0, counter_start 0");
	quipu_event_close(other);
	expect_sequence(&b, "counter_stop 0, counter_stop -8");
	bench_feed(&b, INSN, 1000, 0x10);
	/* No other counter: an empty set, refused and ignored. */
	expect_sequence(&b, "counter_stop 0, counter_start -3, counter_start 0");
	fw = event(&b, (struct quipu_attr){RAW(RAW_FW | 5)}, NULL);
	bench_trace_clear(&b);
	bench_value(fw);
	expect_sequence(&b, "counter_fw_read 0");
	quipu_event_close(fw);
	expect_sequence(&b, "counter_stop 0, counter_fw_read 0, counter_stop -8");
	quipu_event_close(e);
	bench_close(&b);
}

static uint64_t csr(struct bench *b, unsigned cpu, unsigned number)
{
	uint64_t v = 0;

	quipu_riscv_csr_read(b->rv, cpu, QUIPU_RISCV_S, number, &v);
	return v;
}

static void hotplug_stops_and_resets(void **state)
{
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b, &(struct tree){.harts = 2}, NULL);
	e = event(&b, (struct quipu_attr){HW(1)}, NULL);
	bench_feed(&b, INSN, 100, 0x10);
	assert_int_equal(quipu_core_set_online(b.core, 0, false), 0);
	quipu_platform_riscv.cpu_online(b.room, 0, false);
	assert_int_equal(csr(&b, 0, QUIPU_CSR_SCOUNTEREN), 0);
	assert_int_equal(csr(&b, 1, QUIPU_CSR_SCOUNTEREN), 2);
	bench_feed(&b, INSN, 50, 0x10);
	assert_int_equal(bench_value(e), 100);
	bench_trace_clear(&b);
	assert_int_equal(quipu_core_set_online(b.core, 0, true), 0);
	quipu_platform_riscv.cpu_online(b.room, 0, true);
	assert_int_equal(csr(&b, 0, QUIPU_CSR_SCOUNTEREN), 2);
	assert_non_null(strstr(b.trace, "pmu.counter_stop(base=0, mask=0x7fffffffd, flags=1)"));
	bench_close(&b);
}

static void user_access_follows_the_sysctl(void **state)
{
	struct quipu_event *old, *cycles, *instructions, *second = NULL;
	struct bench b;

	(void)state;
	bench_open(&b, &hart16, NULL);
	old = event(&b, (struct quipu_attr){HW(1)}, NULL);
	assert_int_equal(csr(&b, 0, QUIPU_CSR_SCOUNTEREN), 2);
	assert_int_equal(sbi_driver_user_access(riscv_room_sbi(b.room), 2), 0);
	assert_int_equal(csr(&b, 0, QUIPU_CSR_SCOUNTEREN), 7);
	/* Generic cycles and instructions that are opened now are where a program reads them. */
	cycles = event(&b, (struct quipu_attr){HW(0)}, NULL);
	instructions = event(&b, (struct quipu_attr){HW(1)}, NULL);
	assert_int_equal(quipu_event_hw(cycles)->idx, 0);
	assert_int_equal(quipu_event_hw(instructions)->idx, 2);
	assert_int_equal(quipu_event_hw(old)->idx, 3);
	bench_feed(&b, INSN, 70, 0x10);
	assert_int_equal(bench_value(instructions), 70);
	assert_int_equal(bench_event(&b, &(struct quipu_attr){HW(1)}, NULL, &second), 0);
	assert_int_equal(bench_value(second), 0); /* there is one counter 2 */
	assert_int_equal(quipu_event_hw(second)->idx, -1);
	assert_int_equal(sbi_driver_user_access(riscv_room_sbi(b.room), 0), 0);
	assert_int_equal(csr(&b, 0, QUIPU_CSR_SCOUNTEREN), 2);
	assert_int_equal(sbi_driver_user_access(riscv_room_sbi(b.room), 3), -EINVAL);
	bench_close(&b);
}

/* A program's own rdcycle, rdinstret and rdtime, by the value that the machine starts with. */
static void user_access_by_property(void **state)
{
	static const struct {
		unsigned value;
		uint64_t scounteren;
		int cycle; /* 0: it reads; 2: illegal instruction */
		const char *file;
	} rows[] = {{0, 2, 2, "0"}, {1, 2, 2, "1"}, {2, 7, 0, "2"}, {3, 2, 2, "1"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tree t = hart16;
		const struct quipu_pmu_file *f;
		struct bench b;
		uint64_t v = 0;

		t.numbers[0].name = "quipu,user-access";
		t.numbers[0].value = rows[i].value;
		bench_open(&b, &t, NULL);
		assert_int_equal(csr(&b, 0, QUIPU_CSR_SCOUNTEREN), rows[i].scounteren);
		assert_int_equal(quipu_riscv_csr_read(b.rv, 0, QUIPU_RISCV_U, QUIPU_CSR_CYCLE, &v),
				 rows[i].cycle);
		assert_int_equal(quipu_riscv_csr_read(b.rv, 0, QUIPU_RISCV_U, QUIPU_CSR_INSTRET,
						      &v),
				 rows[i].cycle);
		assert_int_equal(quipu_riscv_csr_read(b.rv, 0, QUIPU_RISCV_U, QUIPU_CSR_TIME, &v),
				 0);
		f = b.pmu->files;
		assert_string_equal(f->path, "/proc/sys/kernel/perf_user_access");
		assert_string_equal(f->text, rows[i].file);
		bench_close(&b);
	}
}

static void long_counts_lose_nothing(void **state)
{
	struct quipu_event *e;
	struct bench b;

	(void)state;
	/* P21: a 64-bit counter passes 2^63 from below and wraps. */
	bench_open(&b, &hart16, NULL);
	e = event(&b, (struct quipu_attr){HW(1)}, NULL);
	bench_feed(&b, INSN, UINT64_C(1) << 62, 0x10);
	assert_int_equal(bench_value(e), UINT64_C(1) << 62);
	bench_feed(&b, INSN, (UINT64_C(1) << 62) + 12345, 0x10);
	assert_int_equal(bench_value(e), (UINT64_C(1) << 63) + 12345);
	bench_close(&b);
	/* P22 */
	bench_open(&b, &(struct tree){.width = 40}, NULL);
	e = event(&b, (struct quipu_attr){HW(1)}, NULL);
	for (unsigned i = 0; i < 5; i++) {
		bench_feed(&b, INSN, UINT64_C(1) << 39, 0x10);
		assert_int_equal(bench_value(e), (uint64_t)(i + 1) << 39);
	}
	bench_close(&b);
}

/* Everything in the tree below "cpu", and the sysctl of user access. */
static void assert_sysfs(const struct tree *description, const char *golden)
{
	static const char cpu[] = "/sys/bus/event_source/devices/cpu/";
	struct quipu_tree *t;
	char *text = NULL;
	size_t len = 0;
	struct bench b;
	FILE *f = open_memstream(&text, &len);

	bench_open(&b, description, NULL);
	t = quipu_tree_new(b.machine, b.core);
	assert_non_null(t);
	for (size_t i = 0; i < t->n; i++) {
		const struct quipu_tree_file *file = &t->files[i];

		if (!strncmp(file->path, cpu, strlen(cpu)))
			fprintf(f, "%s%s %s%s", file->path + strlen(cpu), file->link ? " ->" : ":",
				file->text, file->link || !*file->text ? "\n" : "");
		else if (strstr(file->path, "user_access"))
			fprintf(f, "%s: %s", file->path, file->text);
	}
	fclose(f);
	assert_string_equal(text, golden);
	free(text);
	quipu_tree_free(t);
	bench_close(&b);
}

static void sysfs_is_that_of_the_driver(void **state)
{
	static const struct tree off = {.strings = {{"quipu,events-directory", "off"}}};
	static const struct tree no_node = {.pmu = "",
					    .strings = {{"quipu,events-directory", "off"}}};
	static const struct tree kernel_601 = {
		.strings = {{"quipu,events-directory", "off"}, {"quipu,kernel", "6.1"}}};
	static const struct tree legacy = {.pmu = "riscv,base-pmu", .legacy_node = true};
	static const char sbi[] = "/proc/sys/kernel/perf_user_access: 1\n"
				  "format/event: config:0-47\n"
				  "format/firmware: config:62-63\n"
				  "perf_event_mux_interval_ms: 4\n"
				  "subsystem -> ../../../event_source\n"
				  "type: 4\n"
				  "uevent: \n";

	(void)state;
	assert_sysfs(&off, sbi);
	assert_sysfs(&no_node, sbi);
	assert_sysfs(&kernel_601, "format/event: config:0-47\n"
				  "format/firmware: config:63\n"
				  "perf_event_mux_interval_ms: 4\n"
				  "subsystem -> ../../../event_source\n"
				  "type: 4\n"
				  "uevent: \n");
	assert_sysfs(&legacy, "perf_event_mux_interval_ms: 4\n"
			      "subsystem -> ../../../event_source\n"
			      "type: 4\n"
			      "uevent: \n");
}

static const struct quipu_pmu_event *named(const struct quipu_pmu *pmu, const char *name)
{
	for (const struct quipu_pmu_event *e = pmu->events; e && e->name; e++)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

/* DESIGN 4: an event whose model is not there is refused with its reason, and listed with it. */
static void missing_models_are_refused_and_told(void **state)
{
	const quipu_signal hidden[] = {QUIPU_SIGNAL_DTLB_READ_MISSES, 0};
	const struct tree t = {.raws = {0, 0x10000, 0xffffffff, 0xffffffc0, 0x7fff8, 0, 0,
					0xffffffff, 0xfffffff0, 0x7fff8, 2, 0, 0xffffffff,
					0xfffffff8, 0x7fff8},
			       .nraws = 15};
	struct quipu_event *e = NULL;
	struct bench b;

	(void)state;
	bench_open(&b, &t, hidden);
	assert_int_equal(bench_event(&b, &(struct quipu_attr){CACHE(0x10003)}, NULL, &e), -ENOENT);
	assert_non_null(
		strstr(quipu_core_last_reason(b.core), "machine test models no data TLB yet"));
	assert_non_null(named(b.pmu, "dtlb-load-misses")->unavailable);
	assert_non_null(
		strstr(named(b.pmu, "dtlb-load-misses")->unavailable, "models no data TLB"));
	assert_null(named(b.pmu, "dtlb-store-misses")->unavailable);
	assert_null(named(b.pmu, "loads")->unavailable);
	assert_string_equal(named(b.pmu, "loads")->terms, "event=0x200000001");
	e = event(&b, (struct quipu_attr){RAW(UINT64_C(0x200000004))}, NULL);
	bench_feed(&b, QUIPU_SIGNAL_CALLS, 12, 0x10);
	assert_int_equal(bench_value(e), 12);
	bench_close(&b);
}

/* ---- legacy ---- */

static const struct tree legacy = LEGACY("4.18");

static void legacy_counts_both(void **state)
{
	struct quipu_event *cycles, *instructions, *third;
	struct quipu_count c;
	struct bench b;

	(void)state;
	bench_open(&b, &legacy, NULL);
	bench_feed(&b, CYC, 999, 0x10); /* L12: they run with nobody looking */
	assert_int_equal(csr(&b, 0, QUIPU_CSR_CYCLE), 999);
	cycles = event(&b, (struct quipu_attr){HW(0)}, NULL);
	instructions = event(&b, (struct quipu_attr){HW(1)}, NULL);
	third = event(&b, (struct quipu_attr){HW(0)}, NULL);
	bench_feed(&b, CYC, 3000, 0x10);
	bench_feed(&b, INSN, 2000, 0x10);
	assert_int_equal(bench_value(cycles), 3000);
	assert_int_equal(bench_value(instructions), 2000);
	/* L6 */
	quipu_event_count(third, &c);
	assert_int_equal(c.running, 0);
	assert_non_null(strstr(c.reason, "both counters are taken"));
	bench_close(&b);
}

static void legacy_counts_every_level(void **state)
{
	struct quipu_event *u;
	struct bench b;

	(void)state;
	bench_open(&b, &legacy, NULL);
	u = event(&b, (struct quipu_attr){HW(1), .flags = QUIPU_ATTR_EXCLUDE_KERNEL}, NULL);
	bench_feed(&b, INSN, 100, 0x10);
	quipu_riscv_feed(b.rv, 0, QUIPU_RISCV_S, INSN, 40, 0);
	assert_int_equal(bench_value(u), 140);
	bench_close(&b);
}

static void legacy_silent_never_samples(void **state)
{
	const struct tree t = LEGACY_SILENT;
	struct quipu_event *e;
	struct bench b;
	struct ring r;

	(void)state;
	bench_open(&b, &t, NULL);
	e = event(&b, (struct quipu_attr){HW(1), .sample_period = 100, .sample_type = SAMPLE},
		  NULL);
	ring_map(&r, e);
	bench_feed(&b, INSN, 100000, 0x10);
	ring_drain(&r);
	assert_int_equal(r.samples, 0);
	assert_int_equal(bench_value(e), 100000);
	bench_close(&b);
	free(r.mem);
}

struct controller {
	int requested, released, fail;
	char name[32];
};

static int request_irq(void *platform, int irq, const char *name)
{
	struct controller *c = platform;

	(void)irq;
	if (c->fail)
		return -EBUSY;
	c->requested++;
	snprintf(c->name, sizeof(c->name), "%s", name);
	return 0;
}

static void free_irq(void *platform, int irq)
{
	(void)irq;
	((struct controller *)platform)->released++;
}

static uint64_t zero_clock(void *arg, unsigned cpu)
{
	(void)arg;
	(void)cpu;
	return 0;
}

static int open_plain(struct quipu_core *core, unsigned type, uint64_t config,
		      struct quipu_event **e)
{
	static const struct quipu_caller root = {
		.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	const struct quipu_attr a = {.type = type, .config = config, .size = sizeof(a)};
	uint32_t size;

	return quipu_event_open(core, &root, &a, sizeof(a), -1, 0, NULL, 0, &size, e);
}

static int open_cycles(struct quipu_core *core, struct quipu_event **e)
{
	return open_plain(core, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, e);
}

/* L8 to L11: a PMU of the test's own, with an interrupt, on the harts of the legacy machine. */
static void legacy_interrupt_and_writes(void **state)
{
	static const struct quipu_core_ops ops = {.now = zero_clock};
	struct controller controller = {0};
	struct rv_pmu_desc desc = rv_base_pmu;
	struct riscv_driver_env env = {.kernel = 418};
	struct quipu_event *e[3] = {NULL};
	struct legacy_driver *d;
	struct bench b;

	(void)state;
	assert_int_equal(rv_base_pmu.counter_width, 63);
	assert_int_equal(rv_base_pmu.num_counters, 2);
	bench_open(&b, &legacy, NULL);
	env.harts = b.rv;
	env.machine = b.machine;
	desc.platform = &controller;
	desc.request_irq = request_irq;
	desc.free_irq = free_irq;
	for (int irq = -1; irq <= 5; irq += 6) {
		env.core = quipu_core_new(&(struct quipu_core_config){.ncpus = 1, .paranoid = -1},
					  &ops, NULL);
		desc.irq = irq;
		assert_int_equal(legacy_driver_new_with(&env, &desc, &d), 0);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(open_cycles(env.core, &e[i]), 0);
		assert_int_equal(controller.requested, irq < 0 ? 0 : 1);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(controller.released, 0);
			quipu_event_close(e[i]);
		}
		assert_int_equal(controller.released, irq < 0 ? 0 : 1);
		/* D-14: what is refused holds nothing. */
		assert_int_equal(open_plain(env.core, PERF_TYPE_RAW, 1, &e[0]), -EOPNOTSUPP);
		assert_int_equal(controller.requested, irq < 0 ? 0 : 2);
		assert_int_equal(controller.released, irq < 0 ? 0 : 2);
		/* L8 */
		assert_int_equal(legacy_warnings(d), 0);
		bench_feed(&b, CYC, 7, 0x10);
		legacy_write_counter(d, 0, LEGACY_CYCLE, 0);
		assert_int_equal(legacy_warnings(d), 1);
		assert_true(csr(&b, 0, QUIPU_CSR_CYCLE) >= 7);
		quipu_core_free(env.core);
		legacy_driver_free(d);
	}
	assert_string_equal(controller.name, "riscv-base-perf");
	controller.fail = 1;
	env.core =
		quipu_core_new(&(struct quipu_core_config){.ncpus = 1, .paranoid = -1}, &ops, NULL);
	assert_int_equal(legacy_driver_new_with(&env, &desc, &d), 0);
	assert_int_equal(open_cycles(env.core, &e[0]), -EBUSY);
	quipu_core_free(env.core);
	legacy_driver_free(d);
	bench_close(&b);
}

/* L9: bit 63 of a difference is dropped. */
static void legacy_width_is_63(void **state)
{
	struct quipu_event *e;
	struct bench b;

	(void)state;
	bench_open(&b, &legacy, NULL);
	quipu_riscv_csr_write(b.rv, 0, QUIPU_RISCV_M, QUIPU_CSR_MCYCLE, (UINT64_C(1) << 63) - 10);
	e = event(&b, (struct quipu_attr){HW(0)}, NULL);
	bench_feed(&b, CYC, 30, 0x10);
	assert_int_equal(bench_value(e), 30);
	quipu_riscv_csr_write(b.rv, 0, QUIPU_RISCV_M, QUIPU_CSR_MCYCLE, 25);
	assert_int_equal(bench_value(e), 35); /* 2^63 + 5 away: 5 of it can be seen */
	bench_close(&b);
}

#define TEST(name, fn)                                                                             \
	{                                                                                          \
		name, fn, NULL, NULL, NULL                                                         \
	}
static const struct CMUnitTest tests[] = {
	TEST("D7 no pmu node: cycles, instructions and firmware events", no_node_still_counts),
	TEST("P1, P2 probing says what Linux says", probe_says_what_linux_says),
	TEST("P7, P8 firmware codes beyond the SBI's", firmware_codes_beyond_the_sbi),
	TEST("P11 :u and :k add up where kernel activity is declared",
	     kernel_charge_splits_u_and_k),
	TEST("P12 sixteen pinned events fit, the seventeenth reads nothing",
	     sixteen_pinned_events_fit),
	TEST("P13 a raw code of nobody never runs and says why", raw_code_of_nobody_says_why),
	TEST("P15 record -c takes exactly every period", record_takes_every_period),
	TEST("P16 record of a cache event", record_of_a_cache_event),
	TEST("P17 a counting member of a sampling group is exact", group_member_counts_exactly),
	TEST("5.3 exclude bits and config_flags", filters_are_those_of_linux),
	TEST("5.5 a period longer than the counter", long_periods_go_in_halves),
	TEST("P18 calls for enable, overflow, disable", calls_are_those_of_linux),
	TEST("P19 hotplug", hotplug_stops_and_resets),
	TEST("P20 perf_user_access", user_access_follows_the_sysctl),
	TEST("P20 rdcycle by perf_user_access 0, 1, 2", user_access_by_property),
	TEST("P21, P22 long counts", long_counts_lose_nothing),
	TEST("P23 sysfs, byte for byte", sysfs_is_that_of_the_driver),
	TEST("events without a model are refused and told", missing_models_are_refused_and_told),
	TEST("L1, L6, L12 two counters, no third", legacy_counts_both),
	TEST("L7 no filter", legacy_counts_every_level),
	TEST("L5 silent: never a sample", legacy_silent_never_samples),
	TEST("L8, L10, L11 writes warn; the interrupt is asked for once",
	     legacy_interrupt_and_writes),
	TEST("L9 differences have 63 bits", legacy_width_is_63),
};

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

int main(void)
{
	struct CMUnitTest all[COUNT(tests) + COUNT(tree_cases) + COUNT(open_cases)];
	size_t n = 0;

	for (size_t i = 0; i < COUNT(tree_cases); i++)
		all[n++] = (struct CMUnitTest){tree_cases[i].name, tree_case, NULL, NULL,
					       (void *)&tree_cases[i]};
	for (size_t i = 0; i < COUNT(open_cases); i++)
		all[n++] = (struct CMUnitTest){open_cases[i].name, open_case, NULL, NULL,
					       (void *)&open_cases[i]};
	for (size_t i = 0; i < COUNT(tests); i++)
		all[n++] = tests[i];
	return _cmocka_run_group_tests("riscv tree, driver and legacy", all, n, NULL, NULL);
}
