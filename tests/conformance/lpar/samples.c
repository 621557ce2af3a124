/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples and counts of the hypervisor: RT-48 to RT-53 and RT-58 of the RTAS sheet, C16, C24 and
 * C25 of the power-cpu sheet. The judge of counts and samples is a processor that executes a charge
 * instruction by instruction (sheet 7.4), written here without a look at the room's arithmetic.
 */
#include "bed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>
#include <quipu/system.h>

#include "platform/power/driver.h"

#define PC    0x10001234u
#define PAGES 64u

struct world {
	struct bed tree; /* only its fdt */
	struct quipu_machine *machine;
	struct quipu_notes notes;
	struct quipu_manual_signals *manual;
	struct quipu_system *system;
	struct quipu_core *core;
	struct quipu_task *task;
	char trace[4096];
	uint8_t *ring;
};

static void on_trace(void *arg, const char *line)
{
	struct world *w = arg;
	size_t n = strlen(w->trace);

	if (strstr(line, "H_PERFMON"))
		snprintf(w->trace + n, sizeof(w->trace) - n, "%s\n", line);
}

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	bed_tree(&w->tree);
}

static void start_paranoid(struct world *w, int paranoid)
{
	const struct quipu_system_config config = {
		.paranoid = paranoid, .trace = on_trace, .trace_arg = w};

	assert_int_equal(fdt_pack(w->tree.fdt), 0);
	w->machine = quipu_machine_parse(w->tree.fdt, fdt_totalsize(w->tree.fdt), "t", &w->notes);
	assert_non_null(w->machine);
	w->manual = quipu_manual_signals_new(w->machine->ncpus);
	w->system = quipu_system_new(w->machine, quipu_manual_signals_base(w->manual), &config,
				     &w->notes);
	if (!w->system)
		return;
	w->core = quipu_system_core(w->system);
	w->task = quipu_task_new(w->core, NULL, 100, 100, false, "test", 0);
	assert_non_null(w->task);
	quipu_system_run(w->system, 0, w->task, 0);
	w->ring = aligned_alloc(4096, (PAGES + 1) * 4096);
	assert_non_null(w->ring);
	memset(w->ring, 0, (PAGES + 1) * 4096);
}

static void start(struct world *w)
{
	start_paranoid(w, -1);
}

static void end(struct world *w)
{
	quipu_system_free(w->system);
	quipu_manual_signals_free(w->manual);
	quipu_machine_free(w->machine);
	quipu_notes_free(&w->notes);
	free(w->tree.fdt);
	free(w->ring);
}

static void lpar(struct world *w)
{
	begin(w);
	start(w);
	assert_non_null(w->system);
}

static struct quipu_event *open_event(struct world *w, uint64_t code, uint64_t flags,
				      uint64_t period, uint64_t sample_type)
{
	const struct quipu_caller who = {.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.type = PERF_TYPE_RAW,
				  .config = code,
				  .size = sizeof(attr),
				  .flags = flags,
				  .sample_period = period,
				  .sample_type = sample_type};
	struct quipu_event *e = NULL;
	uint32_t back;

	assert_int_equal(quipu_event_open(w->core, &who, &attr, sizeof(attr), 100, -1, NULL, 0,
					  &back, &e),
			 0);
	if (period)
		assert_int_equal(quipu_event_map(e, &who, w->ring, PAGES, true), 0);
	return e;
}

static uint64_t count(struct quipu_event *e)
{
	uint64_t v = 0;

	assert_int_equal(quipu_event_read(e, &v, sizeof(v)), sizeof(v));
	return v;
}

static void happens(struct world *w, enum quipu_activity what, uint64_t units)
{
	static const uint64_t chain[] = {0x10002000, 0x10003000};
	const struct quipu_interrupt at = {
		.cpu = 0, .pc = PC, .pid = 100, .tid = 100, .chain = chain, .nr_chain = 2};

	quipu_system_activity(w->system, &at, what, units);
}

static void feed(struct world *w, quipu_signal s, uint64_t n)
{
	quipu_manual_signals_feed(w->manual, 0, s, n, PC);
}

#define H (QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_KERNEL)
#define U (QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV)
#define K (QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_HV)

/* ---- RT-48 ---- */

static void rt48(void **state)
{
	enum {
		USER = PERF_RECORD_MISC_USER,
		KERNEL = PERF_RECORD_MISC_KERNEL,
		HYPERVISOR = PERF_RECORD_MISC_HYPERVISOR
	};
	/* columns: PR HV = 00, 01, 10, 11; rows: partition, then bare metal */
	static const struct {
		bool bare, user, marked;
		unsigned mode[4];
		bool siar[4];
	} rows[] = {
		{false, true, false, {KERNEL, HYPERVISOR, USER, USER}, {1, 1, 0, 0}},
		{false, true, true, {KERNEL, HYPERVISOR, USER, USER}, {1, 1, 1, 1}},
		{false, false, false, {KERNEL, HYPERVISOR, USER, USER}, {1, 1, 1, 1}},
		{false, false, true, {KERNEL, HYPERVISOR, USER, USER}, {1, 1, 1, 1}},
		{true, true, false, {KERNEL, KERNEL, USER, USER}, {1, 1, 0, 0}},
		{true, true, true, {KERNEL, KERNEL, USER, USER}, {1, 1, 1, 1}},
		{true, false, false, {KERNEL, KERNEL, USER, USER}, {1, 1, 1, 1}},
		{true, false, true, {KERNEL, KERNEL, USER, USER}, {1, 1, 1, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned k = 0; k < 4; k++) {
			uint64_t sier = (k & 2 ? SIER_SIPR : 0) | (k & 1 ? SIER_SIHV : 0);
			bool siar;

			assert_int_equal(power_sample_mode(sier, rows[i].user, rows[i].bare,
							   rows[i].marked, &siar),
					 rows[i].mode[k]);
			assert_int_equal(siar, rows[i].siar[k]);
		}
}

/* ---- RT-49, C16: what is left out ---- */

static void rt49(void **state)
{
	static const struct {
		uint64_t flags, user, hypervisor;
	} rows[] = {{0, 1, 1},
		    {U, 1, 0},
		    {K, 0, 0},
		    {H, 0, 1},
		    {QUIPU_ATTR_EXCLUDE_HV, 1, 0},
		    {QUIPU_ATTR_EXCLUDE_USER, 0, 1},
		    {QUIPU_ATTR_EXCLUDE_KERNEL, 1, 1}};
	struct world w;

	(void)state;
	lpar(&w);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quipu_event *insns = open_event(&w, 2, rows[i].flags, 0, 0);
		struct quipu_event *loads = open_event(&w, 0x4003e, rows[i].flags, 0, 0);
		struct quipu_event *hv = open_event(&w, 0x2000a, rows[i].flags, 0, 0);

		feed(&w, QUIPU_SIGNAL_INSTRUCTIONS, 1000);
		feed(&w, QUIPU_SIGNAL_LOADS, 300);
		feed(&w, QUIPU_SIGNAL_CYCLES, 5000);
		happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 1);
		assert_int_equal(count(insns), 1000 * rows[i].user + 270 * rows[i].hypervisor);
		assert_int_equal(count(loads), 300 * rows[i].user);    /* no charge declares any */
		assert_int_equal(count(hv), 432 * rows[i].hypervisor); /* 1.6 cycles each */
		quipu_event_close(hv);
		quipu_event_close(loads);
		quipu_event_close(insns);
	}
	end(&w);
}

/* ---- RT-58: who may count the hypervisor ---- */

static void rt58(void **state)
{
	static const struct {
		int paranoid;
		uint64_t flags;
		bool perfmon;
		int err;
	} rows[] = {
		{2, H, false, 0}, /* exclude_hv = 0 asks for nothing */
		{2, QUIPU_ATTR_EXCLUDE_KERNEL, false, 0},
		{2, U, false, 0},
		{2, QUIPU_ATTR_EXCLUDE_USER, false, -EACCES}, /* the kernel does */
		{2, 0, false, -EACCES},
		{2, QUIPU_ATTR_EXCLUDE_HV, false, -EACCES},
		{2, QUIPU_ATTR_EXCLUDE_USER, true, 0},
		{1, QUIPU_ATTR_EXCLUDE_USER, false, 0},
		{3, H, false, -EACCES},
		{3, H, true, 0},
	};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct quipu_caller who = {
			.pid = 1, .tid = 1, .perfmon = rows[i].perfmon, .ipc_lock = true};
		struct quipu_attr attr = {.type = PERF_TYPE_RAW,
					  .config = 2,
					  .size = sizeof(attr),
					  .flags = rows[i].flags};
		struct quipu_event *e = NULL;
		uint32_t back;

		begin(&w);
		start_paranoid(&w, rows[i].paranoid);
		assert_non_null(w.system);
		assert_int_equal(quipu_event_open(w.core, &who, &attr, sizeof(attr), 100, -1, NULL,
						  0, &back, &e),
				 rows[i].err);
		if (!rows[i].err) {
			happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 1);
			assert_int_equal(count(e), rows[i].flags & QUIPU_ATTR_EXCLUDE_HV ? 0 : 270);
			quipu_event_close(e);
		}
		end(&w);
	}
}

/* ---- C24 ---- */

static void c24(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	lpar(&w);
	e = open_event(&w, 2, 0, 0, 0);
	quipu_event_close(e);
	e = open_event(&w, 2, 0, 0, 0);
	feed(&w, QUIPU_SIGNAL_INSTRUCTIONS, 7);
	assert_int_equal(count(e), 7);
	quipu_event_close(e);
	assert_string_equal(
		w.trace, "cpu 0: H_PERFMON set 0x8000000000000000 = 0, mode 0x8000000000000000\n");
	end(&w);
	/* a machine without the call counts anyway */
	begin(&w);
	assert_int_equal(fdt_setprop_string(w.tree.fdt, fdt_path_offset(w.tree.fdt, "/rtas"),
					    "ibm,hypertas-functions", "hcall-pft"),
			 0);
	start(&w);
	assert_non_null(w.system);
	e = open_event(&w, 2, 0, 0, 0);
	feed(&w, QUIPU_SIGNAL_INSTRUCTIONS, 7);
	assert_int_equal(count(e), 7);
	quipu_event_close(e);
	end(&w);
}

/* The call itself, and a partition that never makes it. */
static void h_perfmon(void **state)
{
	const uint64_t on = UINT64_C(1) << 63, granularity = UINT64_C(1) << 62;
	struct power_pmu *pmu;
	struct world w;
	uint64_t v;

	(void)state;
	lpar(&w);
	pmu = power_pmu_new(w.machine, quipu_manual_signals_base(w.manual));
	power_pmu_set_partition(pmu, true);
	power_mtspr(pmu, 1, SPR_MMCR0, MMCR0_FC14);
	quipu_manual_signals_feed(w.manual, 1, QUIPU_SIGNAL_INSTRUCTIONS, 50, PC);
	power_mfspr(pmu, 1, SPR_PMC1 + 4, &v);
	assert_int_equal(v, 0);
	assert_int_equal(power_h_perfmon(pmu, 1, 1, 0, &v), -4);
	assert_int_equal(power_h_perfmon(pmu, 1, on, on, &v), -4);
	assert_int_equal(power_h_perfmon(pmu, 1, on, 0, &v), 0);
	assert_true(v == on);
	quipu_manual_signals_feed(w.manual, 1, QUIPU_SIGNAL_INSTRUCTIONS, 50, PC);
	power_mfspr(pmu, 1, SPR_PMC1 + 4, &v);
	assert_int_equal(v, 50);
	assert_int_equal(power_h_perfmon(pmu, 1, granularity, on, &v), 0);
	assert_true(v == granularity);
	/* off its processor: registers that are in use come back, others do not */
	power_vpa_in_use(pmu, 1, true);
	power_pmu_redispatched(pmu, 1);
	power_mfspr(pmu, 1, SPR_PMC1 + 4, &v);
	assert_int_equal(v, 50);
	power_vpa_in_use(pmu, 1, false);
	power_pmu_redispatched(pmu, 1);
	power_mfspr(pmu, 1, SPR_PMC1 + 4, &v);
	assert_int_equal(v, 0);
	power_pmu_free(pmu);
	end(&w);
}

/* ---- the judge: charges of the tree, executed instruction by instruction ---- */

struct method {
	const char *name;
	uint64_t start, size;
	unsigned insns, per_unit;
};

static const struct method enter[] = {{"qhv_vec_hcall", 0xa00c00, 0x100, 12, 0},
				      {"qhv_hcall_entry", 0xa01000, 0x180, 38, 0},
				      {"qhv_h_enter", 0xa01f00, 0x300, 180, 0},
				      {"qhv_hcall_exit", 0xa01180, 0x100, 26, 0},
				      {"qhv_return", 0xa01280, 0x80, 14, 0}};
static const struct method bulk[] = {{"qhv_vec_hcall", 0xa00c00, 0x100, 12, 0},
				     {"qhv_hcall_entry", 0xa01000, 0x180, 38, 0},
				     {"qhv_h_bulk_remove", 0xa026c0, 0x300, 60, 110},
				     {"qhv_hcall_exit", 0xa01180, 0x100, 26, 0},
				     {"qhv_return", 0xa01280, 0x80, 14, 0}};

struct judge {
	uint64_t period, counter, total; /* total: that the counter saw */
	uint64_t siar[4096];
	const char *method[4096];
	unsigned n;
};

static void execute(struct judge *j, const struct method *m, unsigned n, unsigned units)
{
	bool frozen = false;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 1; k <= m[i].insns + m[i].per_unit * units; k++) {
			if (frozen)
				continue; /* FCECE, until the handler has run */
			j->total++;
			if (++j->counter < j->period)
				continue;
			j->siar[j->n] = m[i].start + 4 * (k % (m[i].size / 4));
			j->method[j->n++] = m[i].name;
			j->counter = 0;
			frozen = true;
		}
}

/* A stream of faults and unmappings that the judge sees too. */
static void both(struct world *w, struct judge *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		happens(w, QUIPU_ACTIVITY_PAGE_FAULT, 1);
		if (j)
			execute(j, enter, 5, 1);
		feed(w, QUIPU_SIGNAL_INSTRUCTIONS, 1000);
		if (i % 10 != 9)
			continue;
		happens(w, QUIPU_ACTIVITY_PAGE_UNMAP, 10); /* 4 + 4 + 2 */
		for (unsigned u = 10; j && u;) {
			unsigned now = u < 4 ? u : 4;

			execute(j, bulk, 5, now);
			u -= now;
		}
	}
}

static uint64_t reported(struct world *w);

static void rt50(void **state)
{
	struct quipu_event *e, *c;
	struct world w;

	(void)state;
	lpar(&w);
	e = open_event(&w, 2, H, 0, 0);
	c = open_event(&w, 0x1e, H, 0, 0);
	both(&w, NULL, 1000);
	/* 1000 times H_ENTER, and 100 times 10 pages unmapped: three calls of 150 and 110 a page */
	assert_int_equal(count(e), 1000 * 270 + 100 * (3 * 150 + 10 * 110));
	assert_int_equal(count(c), (1000 * 270 + 100 * (3 * 150 + 10 * 110)) * 16 / 10);
	assert_int_equal(reported(&w), count(e));
	quipu_event_close(c);
	quipu_event_close(e);
	end(&w);
}

/* The room's own statistics: their sum is in the first line. */
static void take_line(void *arg, unsigned depth, const char *line)
{
	uint64_t *sum = arg;
	const char *colon = strrchr(line, ':');
	unsigned long long n;

	if (!depth && colon && sscanf(colon, ": %llu instructions", &n) == 1)
		*sum = n;
}

static uint64_t reported(struct world *w)
{
	uint64_t sum = 0;

	quipu_system_report(w->system, take_line, &sum);
	return sum;
}

/* Samples of the ring: misc, ip, chain. */
struct seen {
	uint16_t misc;
	uint64_t ip, time, nr, chain[8];
};

static unsigned samples(struct world *w, struct seen *out, unsigned most)
{
	const uint8_t *data = w->ring + 4096;
	uint64_t head;
	unsigned n = 0;

	memcpy(&head, w->ring + 1024, 8);
	for (uint64_t at = 0; at < head && n < most;) {
		struct perf_event_header h;

		memcpy(&h, data + at, sizeof(h));
		if (h.type == PERF_RECORD_SAMPLE) {
			out[n].misc = h.misc;
			memcpy(&out[n].ip, data + at + 8, 8);
			memcpy(&out[n].time, data + at + 16, 8);
			memcpy(&out[n].nr, data + at + 24, 8);
			if (out[n].nr <= 8)
				memcpy(out[n].chain, data + at + 32, out[n].nr * 8);
			n++;
		}
		at += h.size;
	}
	return n;
}

#define CHAIN_KERNEL ((uint64_t)-128)
#define CHAIN_USER   ((uint64_t)-512)

static void rt51(void **state)
{
	static struct judge j;
	static struct seen seen[4096];
	struct quipu_hvmap *map;
	struct quipu_event *e;
	struct world w;
	struct bed names;
	unsigned n;

	(void)state;
	memset(&j, 0, sizeof(j));
	j.period = 97;
	lpar(&w);
	bed_open(&names);
	map = quipu_lpar_map(names.lpar);
	e = open_event(&w, 2, H, 97, PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
	both(&w, &j, 300);
	assert_int_equal(count(e), j.total);
	n = samples(&w, seen, 4096);
	assert_int_equal(n, j.n);
	assert_true(n > 300 && n <= reported(&w) / 97);
	for (unsigned i = 0; i < n; i++) {
		struct quipu_hvmap_hit hit;

		assert_int_equal(seen[i].misc & 7, PERF_RECORD_MISC_HYPERVISOR);
		assert_int_equal(seen[i].ip, j.siar[i]);
		assert_int_equal(seen[i].ip % 4, 0);
		assert_int_equal(quipu_hvmap_find(map, seen[i].ip, &hit), QUIPU_HVMAP_FUNCTION);
		assert_string_equal(hit.name, j.method[i]);
		/* The hypervisor's address under the kernel's marker, then the program. */
		assert_int_equal(seen[i].nr, 6);
		assert_true(seen[i].chain[0] == CHAIN_KERNEL);
		assert_int_equal(seen[i].chain[1], seen[i].ip);
		assert_true(seen[i].chain[2] == CHAIN_USER);
		assert_int_equal(seen[i].chain[3], PC);
		assert_int_equal(seen[i].chain[4], 0x10002000);
	}
	quipu_event_unmap(e);
	quipu_event_close(e);
	quipu_hvmap_put(map);
	bed_stop(&names);
	end(&w);
}

/* Cycles: the overflow is inside the instruction that the cycle belongs to. */
static void cycles_sampled(void **state)
{
	static struct seen seen[4096];
	struct quipu_event *e, *insns;
	struct world w;
	unsigned n;

	(void)state;
	lpar(&w);
	insns = open_event(&w, 2, H, 0, 0);
	e = open_event(&w, 0x1e, H, 100, PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
	happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 1);
	n = samples(&w, seen, 4096);
	/* 12 + 38 instructions are 19 + 61 cycles (0.2 and 0.8 carried), 180 are 288: cycle 100 is
	 * the 20th of h_enter's, floor(20 * 180 / 288) = 12 */
	assert_int_equal(n, 1);
	assert_int_equal(seen[0].ip, 0xa01f00 + 4 * 12);
	assert_int_equal(count(e), 100); /* then frozen */
	assert_int_equal(count(insns), 12 + 38 + 12);
	quipu_event_unmap(e);
	quipu_event_close(e);
	quipu_event_close(insns);
	end(&w);
}

/* C25: without exclusion user instructions and charges are one count. */
static void c25(void **state)
{
	static struct seen seen[64];
	struct quipu_event *e;
	struct world w;

	(void)state;
	lpar(&w);
	e = open_event(&w, 2, 0, 1000, PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
	feed(&w, QUIPU_SIGNAL_INSTRUCTIONS, 900);
	happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 1); /* 100: 12 + 38 + 50 */
	feed(&w, QUIPU_SIGNAL_INSTRUCTIONS, 999);
	assert_int_equal(samples(&w, seen, 64), 1);
	feed(&w, QUIPU_SIGNAL_INSTRUCTIONS, 1);
	assert_int_equal(samples(&w, seen, 64), 2);
	assert_int_equal(seen[0].misc & 7, PERF_RECORD_MISC_HYPERVISOR);
	assert_int_equal(seen[0].ip, 0xa01f00 + 4 * 50);
	assert_int_equal(seen[1].misc & 7, PERF_RECORD_MISC_USER);
	assert_int_equal(seen[1].ip, PC);
	assert_int_equal(count(e), 2000);
	/* the visit took its time: 270 * 1.6 cycles of 3 GHz before the sample */
	assert_int_equal(seen[0].time, 144);
	quipu_event_unmap(e);
	quipu_event_close(e);
	end(&w);
}

/* ---- RT-52, RT-53 ---- */

static void rt52(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		begin(&w);
		if (k)
			assert_int_equal(fdt_del_node(w.tree.fdt, bed_node(&w.tree, "triggers")),
					 0);
		else
			assert_int_equal(fdt_setprop_string(w.tree.fdt, bed_node(&w.tree, ""),
							    "quipu,guest-mmu", "radix"),
					 0);
		start(&w);
		assert_non_null(w.system);
		assert_int_equal(quipu_system_watches(w.system) & 7, 0);
		assert_int_equal(!quipu_system_watches(w.system), k);
		e = open_event(&w, 2, H, 97,
			       PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
		both(&w, NULL, 100);
		assert_int_equal(count(e), 0);
		if (k)
			happens(&w, QUIPU_ACTIVITY_IDLE, 1);
		assert_int_equal(count(e), 0);
		quipu_event_unmap(e);
		quipu_event_close(e);
		end(&w);
	}
}

static void rt53(void **state)
{
	uint8_t *first = NULL;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct quipu_event *e;
		struct world w;

		lpar(&w);
		e = open_event(&w, 2, H, 97,
			       PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
		both(&w, NULL, 200);
		quipu_event_unmap(e);
		quipu_event_close(e);
		if (first)
			assert_memory_equal(first + 4096, w.ring + 4096, PAGES * 4096);
		free(first);
		first = w.ring;
		w.ring = NULL;
		end(&w);
	}
	free(first);
}

/* Ten milliseconds of a shared processor: the hypervisor takes a look. */
static void dispatches(void **state)
{
	struct quipu_event *e;
	struct world w;

	(void)state;
	lpar(&w);
	e = open_event(&w, 2, H, 0, 0);
	feed(&w, QUIPU_SIGNAL_CYCLES, 30000000 - 1);
	assert_int_equal(count(e), 0);
	feed(&w, QUIPU_SIGNAL_CYCLES, 1);
	assert_int_equal(count(e), 714);
	feed(&w, QUIPU_SIGNAL_CYCLES, 90000000);
	assert_int_equal(count(e), 4 * 714);
	quipu_event_close(e);
	end(&w);
}

/* ---- quipu,extra-events: what a charge declares besides ---- */

static void add_extras(struct world *w, const char *name, const char *second, uint32_t n)
{
	int node = bed_node(&w->tree, "charges/h-enter");

	assert_int_equal(fdt_setprop_string(w->tree.fdt, node, "quipu,extra-events-names", name),
			 0);
	if (second)
		assert_int_equal(fdt_appendprop_string(w->tree.fdt, node,
						       "quipu,extra-events-names", second),
				 0);
	if (n)
		assert_int_equal(
			fdt_appendprop_u32(w->tree.fdt, node, "quipu,extra-events-counts", n), 0);
	if (n && second)
		assert_int_equal(
			fdt_appendprop_u32(w->tree.fdt, node, "quipu,extra-events-counts", 2), 0);
}

static void extra_events(void **state)
{
	static struct seen seen[64];
	struct quipu_event *e[3];
	struct world w;

	(void)state;
	begin(&w);
	add_extras(&w, "PM_LD_CMPL", "PM_BR_CMPL", 40);
	start(&w);
	assert_non_null(w.system);
	/* PM_LD_CMPL of the hypervisor, of user and hypervisor, of the user alone */
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t flags[] = {H, 0, U};

		e[0] = open_event(&w, 0x4003e, flags[i], 0, 0);
		feed(&w, QUIPU_SIGNAL_LOADS, 1000);
		happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 3);
		happens(&w, QUIPU_ACTIVITY_IDLE, 1); /* declares none */
		assert_int_equal(count(e[0]), 1000 * (i > 0) + 120 * (i < 2));
		quipu_event_close(e[0]);
	}
	e[0] = open_event(&w, 0x4d05e, H, 0, 0);
	happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 3);
	assert_int_equal(count(e[0]), 6);
	quipu_event_close(e[0]);
	/* they overflow with the last instruction of the path: one sample a visit, 40 of 40 counted
	 */
	e[0] = open_event(&w, 0x4003e, H, 100,
			  PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
	happens(&w, QUIPU_ACTIVITY_PAGE_FAULT, 10);
	assert_int_equal(samples(&w, seen, 64), 4); /* 120, 200, 320, 400 of 400 */
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(seen[i].misc & 7, PERF_RECORD_MISC_HYPERVISOR);
		assert_int_equal(seen[i].ip, 0xa01280 + 4 * 13);
	}
	assert_int_equal(count(e[0]), 400);
	quipu_event_unmap(e[0]);
	quipu_event_close(e[0]);
	end(&w);
}

static void wrong_extras(void **state)
{
	static const struct {
		const char *name, *second;
		uint32_t n;
		const char *says;
	} rows[] = {{"PM_LD_CMPL", NULL, 0, "a number for each"},
		    {"PM_NOTHING", NULL, 1, "has no event PM_NOTHING"},
		    {"PM_INST_CMPL", NULL, 1, "follows from"},
		    {"PM_CYC", NULL, 1, "follows from"},
		    {"PM_LD_CMPL", NULL, 200000000, "too many"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;
		bool said = false;

		begin(&w);
		add_extras(&w, rows[i].name, rows[i].second, rows[i].n);
		start(&w);
		assert_null(w.system);
		for (size_t k = 0; k < w.notes.n; k++)
			said |= strstr(w.notes.items[k].text, rows[i].says) != NULL;
		if (!said)
			fail_msg("row %zu: %s", i,
				 w.notes.n ? w.notes.items[0].text : "nothing was said");
		end(&w);
	}
}

/* ---- what a tree may get wrong ---- */

static void wrong_trees(void **state)
{
	enum change { SET_STRING, SET_CELL };
	static const struct {
		const char *node, *property;
		enum change change;
		const char *string;
		uint32_t cell;
		const char *says;
	} rows[] = {
		{"", "quipu,symbols", SET_STRING, "a00c00 100 qhv_vec_hcall\n", 0,
		 "not in the code map"},
		{"", "quipu,symbols", SET_STRING, "a00c00 3 qhv_vec_hcall\n", 0,
		 "no room for an instruction"},
		{"charges/h-enter", "quipu,insns", SET_CELL, NULL, 4, "a number for each"},
		{"charges/h-enter", "quipu,hcall", SET_CELL, NULL, 0x18, "has it already"},
		{"charges/h-enter", "quipu,vector", SET_CELL, NULL, 1, "one of them"},
		{"charges/h-enter", "quipu,extra", SET_CELL, NULL, 1, "no such property"},
		{"triggers/idle", "quipu,charge", SET_CELL, NULL, 0x12345, "names no charge"},
		{"partitions/partition@1", "quipu,delay-plan", SET_CELL, NULL, 9906,
		 "9900 to 9905"},
		{"partitions/partition@1", "quipu,cpus", SET_CELL, NULL, 8, "CPUs 0 to 7"},
		{"partitions/partition@2", "quipu,cpus", SET_CELL, NULL, 3, "another partition"},
		{"partitions/partition@2", "reg", SET_CELL, NULL, 1, "a number of its own"},
		{"partitions/partition@2", "quipu,long-names", SET_STRING, "half", 0,
		 "none of its"},
		{"partitions/partition@2", "quipu,rtas-cells", SET_CELL, NULL, 3,
		 "between 1 and 2"},
		{"", "quipu,symbols", SET_STRING, "zzz", 0, "line 1"},
		{"", "quipu,symbol-format", SET_STRING, "tea", 0, "no format"},
		{"", "quipu,guest-mmu", SET_STRING, "segments", 0, "none of its values"},
		{"", "quipu,colour", SET_STRING, "red", 0, "no such property"},
		{"module@a01f00", "reg", SET_CELL, NULL, 1, "two cells"},
		{"module@a01f00", "quipu,name", SET_STRING, "", 0, "a name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;
		bool said = false;
		int node;

		begin(&w);
		node = bed_node(&w.tree, rows[i].node);
		if (rows[i].change == SET_STRING)
			assert_int_equal(fdt_setprop_string(w.tree.fdt, node, rows[i].property,
							    rows[i].string),
					 0);
		else
			assert_int_equal(fdt_setprop_u32(w.tree.fdt, node, rows[i].property,
							 rows[i].cell),
					 0);
		start(&w);
		assert_null(w.system);
		for (size_t k = 0; k < w.notes.n; k++)
			said |= w.notes.items[k].kind == QUIPU_NOTE_WRONG &&
				strstr(w.notes.items[k].text, rows[i].says) &&
				strstr(w.notes.items[k].path, "hypervisor");
		if (!said)
			fail_msg("row %zu: %s", i,
				 w.notes.n ? w.notes.items[0].text : "nothing was said");
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		{"RT-48: mode of a sample by SIER, context, machine, marking", rt48, NULL, NULL,
		 NULL},
		{"RT-49 C16: user, kernel, hypervisor", rt49, NULL, NULL, NULL},
		{"events that a charge declares besides", extra_events, NULL, NULL, NULL},
		{"declared wrongly", wrong_extras, NULL, NULL, NULL},
		{"RT-58: the hypervisor alone needs no privilege", rt58, NULL, NULL, NULL},
		{"C24: H_PERFMON once for each CPU", c24, NULL, NULL, NULL},
		{"C24: H_PERFMON and the VPA byte", h_perfmon, NULL, NULL, NULL},
		{"RT-50: counts are the charge table's arithmetic", rt50, NULL, NULL, NULL},
		{"RT-51: samples are those of the reference model", rt51, NULL, NULL, NULL},
		{"a cycle's instruction", cycles_sampled, NULL, NULL, NULL},
		{"C25: user and hypervisor in one count", c25, NULL, NULL, NULL},
		{"RT-52: radix, and no triggers", rt52, NULL, NULL, NULL},
		{"RT-53: twice the same", rt53, NULL, NULL, NULL},
		{"dispatches of a shared processor", dispatches, NULL, NULL, NULL},
		{"trees that are wrong", wrong_trees, NULL, NULL, NULL},
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
