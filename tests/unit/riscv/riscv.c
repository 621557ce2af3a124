/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RISC-V room beyond the sheet's cases: the reload that the engine process makes equals the
 * driver's, counters of several signals stop where they must, nothing that a guest can pass makes
 * the model leave its memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/system.h>

#include "harness.h"
#include "platform/riscv/events.h"
#include "platform/riscv/hart.h"
#include "platform/riscv/overflow.h"
#include "platform/riscv/room.h"

#define INSN QUIPU_SIGNAL_INSTRUCTIONS
#define CYC  QUIPU_SIGNAL_CYCLES

/* xorshift64: repeatable. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static struct quipu_event *event(struct bench *b, struct quipu_attr attr, struct quipu_event *group)
{
	struct quipu_event *e = NULL;
	int r = bench_event(b, &attr, group, &e);

	if (r)
		fail_msg("open: %d (%s)", r, quipu_core_last_reason(b->core));
	return e;
}

/* ---- overflow: engine and driver ---- */

struct replay {
	struct bench b;
	unsigned overflows;
};

/*
 * At each overflow: what the engine process would program, then the driver's own way, then compare.
 */
static void compare(void *arg, const struct quipu_interrupt *irq)
{
	struct replay *r = arg;
	struct quipu_reload predicted[QUIPU_SLOTS_HARDWARE];
	struct quipu_event *e[QUIPU_SLOTS_HARDWARE] = {NULL};
	uint64_t now = r->b.signals->ops->read(r->b.signals, irq->cpu, CYC);

	for (uint64_t m = irq->slots; m; m &= m - 1) {
		unsigned slot = bits_low(m);

		e[slot] = quipu_core_slot_event(r->b.core, irq->cpu, slot);
		assert_non_null(e[slot]);
		predicted[slot] = quipu_event_hw(e[slot])->reload;
		quipu_riscv_overflow(&predicted[slot], now);
		r->overflows++;
	}
	quipu_platform_riscv.interrupt(r->b.room, irq);
	for (uint64_t m = irq->slots; m; m &= m - 1) {
		unsigned slot = bits_low(m);
		const struct quipu_reload *got = &quipu_event_hw(e[slot])->reload;
		uint64_t counter = 0, width = r->b.rv->harts[0].width;

		assert_int_equal(got->programmed, predicted[slot].programmed);
		assert_int_equal(got->period_left, predicted[slot].period_left);
		assert_int_equal(got->sample_period, predicted[slot].sample_period);
		quipu_riscv_csr_read(r->b.rv, 0, QUIPU_RISCV_M, QUIPU_CSR_MCYCLE + slot, &counter);
		assert_int_equal(counter, -got->programmed & bits_mask((unsigned)width));
	}
}

struct reload_case {
	const char *name;
	struct tree tree;
	struct quipu_attr attr;
	uint64_t feed;	/* instructions, with as many cycles */
	unsigned least; /* overflows that must have been seen */
};

#define COUNT_INSN .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS
#define NO_SNAPSHOT                                                                                \
	{                                                                                          \
		{                                                                                  \
			"quipu,snapshot", "off"                                                    \
		}                                                                                  \
	}

/* clang-format off */
static const struct reload_case reload_cases[] = {
	{ "period 1", { 0 }, { COUNT_INSN, .sample_period = 1 }, 3000, 3000 },
	{ "period 7", { 0 }, { COUNT_INSN, .sample_period = 7 }, 30000, 4000 },
	{ "period 1000, no snapshots", { .strings = NO_SNAPSHOT }, { COUNT_INSN, .sample_period = 1000 }, 1000000, 1000 },
	{ "period beyond a 16-bit counter", { .width = 16 }, { COUNT_INSN, .sample_period = 100001 }, 2000000, 60 },
	{ "period of half a counter", { .width = 16 }, { COUNT_INSN, .sample_period = 32768 }, 2000000, 60 },
	{ "4000 Hz", { 0 }, { COUNT_INSN, .sample_freq = 4000, .flags = QUIPU_ATTR_FREQ }, 20000000, 60 },
	{ "4000 Hz, no snapshots", { .strings = NO_SNAPSHOT },
	  { COUNT_INSN, .sample_freq = 4000, .flags = QUIPU_ATTR_FREQ }, 20000000, 60 },
	{ "100000 Hz on 16 bits", { .width = 16 },
	  { COUNT_INSN, .sample_freq = 100000, .flags = QUIPU_ATTR_FREQ }, 5000000, 200 },
};
/* clang-format on */

static void engine_and_driver_reload_alike(void **state)
{
	const struct reload_case *c = *state;
	uint64_t seed = 0x9e3779b97f4a7c15, fed = 0, tick = 4000000, max = 200;
	struct replay r = {0};

	bench_open(&r.b, &c->tree, NULL);
	r.b.signals->interrupt = compare;
	r.b.signals->arg = &r;
	event(&r.b, c->attr, NULL);
	event(&r.b, c->attr, NULL); /* two counters on the same deadline */
	while (fed < c->feed) {
		uint64_t n = 1 + next_random(&seed) % max;

		bench_feed(&r.b, CYC, n, 0x1000);
		bench_feed(&r.b, INSN, n, 0x1000);
		fed += n;
		for (; tick <= fed; tick += 4000000)
			quipu_core_tick(r.b.core, 0);
	}
	if (r.overflows < c->least)
		fail_msg("%s: only %u overflows", c->name, r.overflows);
	bench_close(&r.b);
}

/* ---- counters ---- */

static void sum_of_signals_overflows_exactly(void **state)
{
	/* cache-references: three signals; the interrupt must come at each 1000th of their sum. */
	static const quipu_signal parts[] = {QUIPU_SIGNAL_L1D_READS, QUIPU_SIGNAL_L1D_WRITES,
					     QUIPU_SIGNAL_L1I_ACCESSES};
	const struct tree t = {.ranges = {3, 3, 0x7fff8}, .nranges = 3};
	uint64_t seed = 42, sum = 0;
	struct harness h;

	(void)state;
	harness_open(&h, &t);
	quipu_riscv_csr_write(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_SIE, bits_one(QUIPU_RISCV_LCOFI));
	assert_int_equal(quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 2,
					   (uint64_t[6]){0, bits_one(3), 0, 3})
				 .error,
			 0);
	for (unsigned round = 1; round <= 20; round++) {
		uint64_t start = sum;

		quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 4, (uint64_t[6]){3, 1});
		quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 3,
				  (uint64_t[6]){3, 1, 1, -UINT64_C(1000)});
		while (h.interrupts < round) {
			uint64_t left = 1000 - (sum - start), n = 1 + next_random(&seed) % 40;

			assert_true(left > 0);
			if (n > left)
				n = left;
			quipu_manual_signals_feed(h.manual, 0, parts[next_random(&seed) % 3], n,
						  0x10);
			sum += n;
		}
		assert_int_equal(sum - start, 1000);
	}
	harness_close(&h);
}

static void every_width_wraps_and_fires_once(void **state)
{
	(void)state;
	for (unsigned width = 16; width <= 64; width++) {
		const struct tree t = {.width = width};
		struct harness h;
		uint64_t v = 0;

		harness_open(&h, &t);
		quipu_riscv_csr_write(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_SIE,
				      bits_one(QUIPU_RISCV_LCOFI));
		quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 2, (uint64_t[6]){0, bits_one(3), 0, 2});
		quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 3, (uint64_t[6]){3, 1, 1, UINT64_MAX});
		quipu_riscv_csr_read(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_HPMCOUNTER3, &v);
		assert_int_equal(v, bits_mask(width));
		quipu_manual_signals_feed(h.manual, 0, INSN, 1, 0x10);
		assert_int_equal(h.interrupts, 1);
		quipu_riscv_csr_read(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_HPMCOUNTER3, &v);
		assert_int_equal(v, 0);
		quipu_manual_signals_feed(h.manual, 0, INSN, UINT64_C(1) << 20, 0x10);
		assert_int_equal(h.interrupts, 1);
		harness_close(&h);
	}
}

/* What an engine tells of the instruction at which the counter overflowed. */
static struct quipu_insn told;

static void describe_and_serve(void *arg, const struct quipu_interrupt *irq)
{
	struct quipu_interrupt with = *irq;

	with.insn = told;
	quipu_riscv_interrupt(arg, &with);
}

/* Sheet 1.4: xepc is the next instruction to execute. */
static void sepc_is_the_next_instruction(void **state)
{
	static const struct {
		struct quipu_insn insn;
		uint64_t sepc;
	} rows[] = {
		{{.size = 4, .class = QUIPU_INSN_LOAD, .next = 0x1004}, 0x1004},
		{{.size = 2, .class = QUIPU_INSN_ALU, .next = 0x1002}, 0x1002},
		{{.size = 4, .class = QUIPU_INSN_JUMP, .next = 0x4000}, 0x4000},
		{{.size = 2, .class = QUIPU_INSN_BRANCH}, 0x1002}, /* not resolved */
		{{0}, 0x1000},					   /* fed by hand */
	};
	struct harness h;
	uint64_t v = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		harness_open(&h, &(struct tree){0});
		quipu_manual_signals_base(h.manual)->interrupt = describe_and_serve;
		quipu_manual_signals_base(h.manual)->arg = h.rv;
		told = rows[i].insn;
		quipu_riscv_csr_write(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_SIE,
				      bits_one(QUIPU_RISCV_LCOFI));
		quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 2, (uint64_t[6]){0, bits_one(3), 0, 2});
		quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_PMU, 3, (uint64_t[6]){3, 1, 1, UINT64_MAX});
		quipu_manual_signals_feed(h.manual, 0, INSN, 1, 0x1000);
		assert_int_equal(h.interrupts, 1);
		quipu_riscv_csr_read(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_SEPC, &v);
		assert_int_equal(v, rows[i].sepc);
		harness_close(&h);
	}
}

static void harts_do_not_disturb_each_other(void **state)
{
	const struct tree t = {.harts = 3};
	struct harness h;
	uint64_t v = 0;

	(void)state;
	harness_open(&h, &t);
	quipu_riscv_ecall(h.rv, 1, QUIPU_SBI_PMU, 2, (uint64_t[6]){0, bits_one(3), 4, 2});
	quipu_manual_signals_feed(h.manual, 0, INSN, 10, 0);
	quipu_manual_signals_feed(h.manual, 1, INSN, 20, 0);
	quipu_riscv_csr_read(h.rv, 1, QUIPU_RISCV_S, QUIPU_CSR_HPMCOUNTER3, &v);
	assert_int_equal(v, 20);
	quipu_riscv_csr_read(h.rv, 0, QUIPU_RISCV_S, QUIPU_CSR_HPMCOUNTER3, &v);
	assert_int_equal(v, 0);
	/* An IPI to hart 2 is sent by 0, received by 2, and pends there. */
	assert_int_equal(quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_IPI, 0, (uint64_t[6]){4, 0}).error,
			 0);
	quipu_riscv_csr_read(h.rv, 2, QUIPU_RISCV_S, QUIPU_CSR_SIP, &v);
	assert_int_equal(v, 2);
	assert_int_equal(quipu_riscv_ecall(h.rv, 0, QUIPU_SBI_IPI, 0, (uint64_t[6]){8, 0}).error,
			 -3);
	assert_int_equal(quipu_riscv_ecall(h.rv, 3, QUIPU_SBI_PMU, 0, (uint64_t[6]){0}).error, -2);
	harness_close(&h);
}

static void sampling_never_lands_on_a_fixed_counter(void **state)
{
	const struct tree t = {.extensions = "sscofpmf_smcntrpmf", .mask = 0x18};
	struct quipu_event *e[3];
	struct quipu_count c;
	struct bench b;

	(void)state;
	bench_open(&b, &t, NULL);
	for (unsigned i = 0; i < 3; i++)
		e[i] = event(&b, (struct quipu_attr){COUNT_INSN, .sample_period = 1000}, NULL);
	assert_int_equal(quipu_event_hw(e[0])->idx, 3);
	assert_int_equal(quipu_event_hw(e[1])->idx, 4);
	assert_int_equal(quipu_event_hw(e[2])->idx, -1);
	quipu_event_count(e[2], &c);
	assert_non_null(strstr(c.reason, "raises no interrupt"));
	bench_close(&b);
	/* A counting event may have it. */
	bench_open(&b, &t, NULL);
	for (unsigned i = 0; i < 3; i++)
		e[i] = event(&b, (struct quipu_attr){COUNT_INSN, .sample_period = i < 2 ? 1000 : 0},
			     NULL);
	assert_int_equal(quipu_event_hw(e[2])->idx, 2);
	bench_close(&b);
}

static void a_call_is_one_line_of_trace(void **state)
{
	const struct tree t = {.strings = NO_SNAPSHOT};
	struct bench b;

	(void)state;
	bench_open(&b, &t, NULL);
	bench_trace_clear(&b);
	event(&b, (struct quipu_attr){COUNT_INSN, .sample_period = 4096}, NULL);
	assert_string_equal(b.trace, "sbi hart0 pmu.counter_config_matching(base=0, "
				     "mask=0x7fffffffd, flags=0, event=2, data=0) = 0, 3\n"
				     "sbi hart0 pmu.counter_start(base=3, mask=1, flags=1, "
				     "value=0xfffffffffffff000) = 0\n");
	bench_close(&b);
}

/* ---- event tables ---- */

struct selector_case {
	const char *table;
	uint64_t selector;
	quipu_signal signal; /* QUIPU_SIGNAL_NONE: known and undriven; UNKNOWN */
};
#define UNKNOWN	 UINT64_MAX
#define CLASS(c) QUIPU_CLASS_BIT(QUIPU_INSN_##c)

static const struct selector_case selector_cases[] = {
	{"generic", 0x1, CYC},
	{"generic", 0x2, INSN},
	{"generic", 0x5, QUIPU_SIGNAL_BRANCHES},
	{"generic", 0x10019, QUIPU_SIGNAL_DTLB_READ_MISSES},
	{"generic", 0xB, UNKNOWN},
	{"generic", 0x10006, UNKNOWN},
	{"generic", UINT64_C(0x100000200), QUIPU_SIGNAL_OF(CLASS(LOAD))},
	{"generic", UINT64_C(0x100000600), QUIPU_SIGNAL_OF(CLASS(LOAD) | CLASS(STORE))},
	{"generic", UINT64_C(0x100010000),
	 QUIPU_SIGNAL_OF(CLASS(IJUMP) | CLASS(ICALL) | CLASS(RET))},
	{"generic", UINT64_C(0x100000000), UNKNOWN},
	{"generic", UINT64_C(0x104000000), UNKNOWN},
	{"generic", UINT64_C(0x100000203), UNKNOWN},
	{"generic", UINT64_C(0x200000003), QUIPU_SIGNAL_BRANCHES_TAKEN},
	{"generic", UINT64_C(0x200000007), UNKNOWN},
	{"generic", UINT64_C(0x300000001), UNKNOWN},
	{"u74", 0x4000, QUIPU_SIGNAL_OF(CLASS(BRANCH))},
	{"u74", 0x40001, QUIPU_SIGNAL_NONE},
	{"u74", 0x2002, QUIPU_SIGNAL_STLB_MISSES},
	{"qemu", 0x1001B, QUIPU_SIGNAL_DTLB_WRITE_MISSES},
	{"qemu", 0x3, UNKNOWN},
	{"thead", 0x25, QUIPU_SIGNAL_SYSCALLS},
	{"thead", 0x2B, UNKNOWN},
	{"andes", 0x80, QUIPU_SIGNAL_OF(CLASS(BRANCH))},
	{"andes", 0x22, QUIPU_SIGNAL_RETURN_MISSES},
};

static void selectors_mean_what_the_sheet_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(selector_cases) / sizeof(selector_cases[0]); i++) {
		const struct selector_case *c = &selector_cases[i];
		struct riscv_count count;
		bool known = riscv_events_count(riscv_events_named(c->table), c->selector, &count);
		quipu_signal signal = !known	? UNKNOWN
				      : count.n ? count.signal[0]
						: QUIPU_SIGNAL_NONE;

		if (signal != c->signal)
			fail_msg("%s 0x%" PRIx64 ": signal 0x%" PRIx64 ", must be 0x%" PRIx64,
				 c->table, c->selector, signal, c->signal);
	}
}

/*
 * The shipped machine: no wrong row, and the exact events of the brief list can be opened by their
 * raw codes.
 */
static void shipped_machine_offers_its_events(void **state)
{
	static const char *const must[] = {
		"cycles", "instructions", "branches", "branches-taken", "loads",
		"stores", "calls",	  "returns",  "syscalls",	"integer_load_retired"};
	const char *path = getenv("QUIPU_RISCV_DTB");
	static char blob[1 << 17];
	struct quipu_notes notes = {0};
	struct quipu_manual_signals *manual;
	struct quipu_machine *m;
	struct quipu_system *sys;
	struct quipu_pmu *const *pmus;
	size_t n, found = 0;
	FILE *f;

	(void)state;
	f = path ? fopen(path, "rb") : NULL;
	if (!f)
		skip();
	n = fread(blob, 1, sizeof(blob), f);
	fclose(f);
	m = quipu_machine_parse(blob, n, "riscv", &notes);
	assert_non_null(m);
	manual = quipu_manual_signals_new(m->ncpus);
	sys = quipu_system_new(m, quipu_manual_signals_base(manual),
			       &(struct quipu_system_config){.paranoid = -1}, &notes);
	assert_non_null(sys);
	assert_false(harness_wrong(&notes, "", ""));
	pmus = quipu_core_pmus(quipu_system_core(sys), &n);
	assert_string_equal(pmus[n - 1]->name, "cpu");
	assert_int_equal(pmus[n - 1]->type, 4);
	for (const struct quipu_pmu_event *e = pmus[n - 1]->events; e->name; e++)
		for (size_t i = 0; i < sizeof(must) / sizeof(must[0]); i++)
			if (!strcmp(e->name, must[i])) {
				if (e->unavailable)
					fail_msg("%s: %s", e->name, e->unavailable);
				found++;
			}
	assert_int_equal(found, sizeof(must) / sizeof(must[0]));
	quipu_system_free(sys);
	quipu_manual_signals_free(manual);
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

/* ---- hostile callers ---- */

/* A value that a hostile or careless caller would pass. */
static uint64_t value(uint64_t *seed)
{
	static const uint64_t edges[] = {0,
					 1,
					 2,
					 3,
					 7,
					 8,
					 19,
					 31,
					 34,
					 35,
					 63,
					 64,
					 UINT64_MAX,
					 UINT64_MAX - 4095,
					 UINT64_C(0x80200000),
					 UINT64_C(0x80200ff8),
					 UINT64_C(0x80210000),
					 INT64_MAX,
					 (UINT64_C(1) << 35) - 1,
					 0xF0005,
					 0x20000,
					 0x30000,
					 0x10019,
					 UINT64_C(0x8000000000000001)};
	uint64_t r = next_random(seed);

	switch (r % 4) {
	case 0: return edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
	case 1: return (r >> 8) & 0xFF;
	case 2: return UINT64_C(0x80200000) + ((r >> 8) & 0x1FFFF);
	default: return next_random(seed);
	}
}

static void fuzz_step(struct harness *h, uint64_t *seed)
{
	static const uint64_t extensions[] = {QUIPU_SBI_PMU, QUIPU_SBI_PMU,    QUIPU_SBI_PMU,
					      QUIPU_SBI_IPI, QUIPU_SBI_RFENCE, QUIPU_SBI_TIME,
					      QUIPU_SBI_BASE};
	uint64_t r = next_random(seed), out, args[6];
	unsigned hart = (r >> 16) % 3; /* one that is not there */
	enum quipu_riscv_mode mode = (enum quipu_riscv_mode)((r >> 24) % 6);

	for (unsigned i = 0; i < 6; i++)
		args[i] = value(seed);
	switch (r % 8) {
	case 0: quipu_riscv_csr_read(h->rv, hart, mode, (r >> 32) & 0xFFF, &out); break;
	case 1: quipu_riscv_csr_write(h->rv, hart, mode, (r >> 32) & 0xFFF, args[0]); break;
	case 2:
		quipu_manual_signals_feed(h->manual, (r >> 16) & 1, (r >> 32) % 3 + 1,
					  (r >> 40) & 0xFFFF, r);
		break;
	case 3:
		/*
		 * Bounded: a narrow counter makes one stop for each time it is armed and passes its
		 * end.
		 */
		quipu_riscv_feed(h->rv, hart, mode, (r >> 32) % 12, (r >> 40) & 0xFFFF, r);
		break;
	case 4:
		quipu_riscv_trap(h->rv, hart, (r >> 32) & 0x7F, r);
		quipu_riscv_set_mode(h->rv, hart, mode);
		quipu_riscv_run(h->rv, hart);
		break;
	default: quipu_riscv_ecall(h->rv, hart, extensions[(r >> 32) % 7], (r >> 40) % 11, args);
	}
}

static void nothing_a_guest_passes_breaks_the_model(void **state)
{
	static const char *const extensions[] = {
		"sscofpmf", "sscofpmf_smcntrpmf_smcdeleg_smaia_shlcofideleg_smstateen_+h", "zihpm"};

	(void)state;
	for (unsigned round = 0; round < 24; round++) {
		uint64_t seed = 0x123456789abcdef1 + round;
		struct tree t = {
			.harts = 2, .extensions = extensions[round % 3], .width = 16 + round * 2};
		struct harness h;

		t.strings[0][0] = round & 1 ? "quipu,opensbi-compat" : "quipu,unmodelled";
		t.strings[0][1] = round & 1 ? "" : "zero";
		/* Maps of nonsense, as well as usable ones. */
		t.nranges = 60;
		t.nraws = 60;
		t.naliases = 30;
		for (unsigned i = 0; i < 60; i++) {
			t.ranges[i] =
				(uint32_t)next_random(&seed) & (i % 3 == 2 ? 0xFFFFFFFF : 0x1F0FF);
			t.raws[i] = i % 5 == 4	? 0x7fff8
				    : i % 5 < 2 ? 0
						: (uint32_t)next_random(&seed) & 0x1FFFF;
			t.aliases[i % 30] = (uint32_t)next_random(&seed) & 0x1FFFF;
		}
		harness_open(&h, &t);
		for (unsigned i = 0; i < 6000; i++)
			fuzz_step(&h, &seed);
		harness_close(&h);
	}
}

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))
#define TEST(name, fn)                                                                             \
	{                                                                                          \
		name, fn, NULL, NULL, NULL                                                         \
	}
/* clang-format off */
static const struct CMUnitTest tests[] = {
	TEST("a counter of three signals overflows exactly", sum_of_signals_overflows_exactly),
	TEST("counters of 16 to 64 bits wrap and fire once", every_width_wraps_and_fires_once),
	TEST("sepc after an overflow is the next instruction", sepc_is_the_next_instruction),
	TEST("harts do not disturb each other", harts_do_not_disturb_each_other),
	TEST("a sampling event never lands where it cannot sample", sampling_never_lands_on_a_fixed_counter),
	TEST("a call is one line of trace", a_call_is_one_line_of_trace),
	TEST("selectors mean what the sheet says", selectors_mean_what_the_sheet_says),
	TEST("the shipped machine offers its events", shipped_machine_offers_its_events),
	TEST("nothing a guest passes breaks the model", nothing_a_guest_passes_breaks_the_model),
};
/* clang-format on */

int main(void)
{
	struct CMUnitTest all[COUNT(tests) + COUNT(reload_cases)];
	size_t n = 0;

	for (size_t i = 0; i < COUNT(reload_cases); i++)
		all[n++] = (struct CMUnitTest){reload_cases[i].name, engine_and_driver_reload_alike,
					       NULL, NULL, (void *)&reload_cases[i]};
	for (size_t i = 0; i < COUNT(tests); i++)
		all[n++] = tests[i];
	return _cmocka_run_group_tests("riscv", all, n, NULL, NULL);
}
