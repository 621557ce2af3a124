/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct world *world_of(struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

/* ---- the core PMU ---- */

static quipu_signal signal_of(const struct quipu_attr *a)
{
	static const quipu_signal raw[] = {
		QUIPU_SIGNAL_NONE,  QUIPU_SIGNAL_CYCLES, QUIPU_SIGNAL_INSTRUCTIONS,
		QUIPU_SIGNAL_LOADS, QUIPU_SIGNAL_STORES, QUIPU_SIGNAL_BRANCHES,
	};

	if (a->type == PERF_TYPE_HARDWARE)
		return a->config == 0 ? QUIPU_SIGNAL_CYCLES : QUIPU_SIGNAL_INSTRUCTIONS;
	if (a->type == PERF_TYPE_HW_CACHE)
		return QUIPU_SIGNAL_L1D_READS;
	return a->config < 6 ? raw[a->config] : QUIPU_SIGNAL_NONE;
}

static int check_cache(uint64_t config)
{
	if (config >> 24 || (config & 0xff) > 6 || (config >> 8 & 0xff) > 2 ||
	    (config >> 16 & 0xff) > 1)
		return -EINVAL;
	return config == 0 ? 0 : -ENOENT;
}

static int core_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	struct quipu_reload *r = &quipu_event_hw(e)->reload;
	int err = 0;

	(void)pmu;
	if (a->type == PERF_TYPE_HARDWARE)
		err = a->config <= 1 ? 0 : -ENOENT;
	else if (a->type == PERF_TYPE_HW_CACHE)
		err = check_cache(a->config);
	else if (a->type != PERF_TYPE_RAW)
		err = -ENOENT;
	if (err)
		return err;
	r->max_left = INT64_MAX / 2;
	if (!a->sample_period) {
		r->sample_period = r->last_period = INT64_MAX / 2;
		r->period_left = INT64_MAX / 2;
	}
	return 0;
}

static quipu_signal core_signal(const struct quipu_event *e, bool *filtered)
{
	*filtered = quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER;
	return signal_of(quipu_event_attr(e));
}

static void fold(struct quipu_event *e)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now;

	if (hw->state & QUIPU_HES_STOPPED)
		return;
	now = w->signals->ops->read(w->signals, (unsigned)quipu_event_cpu_now(e),
				    signal_of(quipu_event_attr(e)));
	quipu_event_add_count(e, now - hw->prev_count);
	quipu_reload_fold(&hw->reload, now - hw->prev_count);
	hw->prev_count = now;
}

static void arm(struct quipu_event *e)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct quipu_deadline d = {.signal = signal_of(quipu_event_attr(e))};

	if (!quipu_event_attr(e)->sample_period)
		return;
	d.at = hw->prev_count + hw->reload.programmed;
	w->signals->ops->arm(w->signals, (unsigned)quipu_event_cpu_now(e), (unsigned)hw->idx, &d);
}

static void core_start(struct quipu_event *e, int flags)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	quipu_reload_set_period(&hw->reload);
	hw->prev_count = w->signals->ops->read(w->signals, (unsigned)quipu_event_cpu_now(e),
					       signal_of(quipu_event_attr(e)));
	hw->state = 0;
	arm(e);
}

static void core_stop(struct quipu_event *e, int flags)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	fold(e);
	hw->state = QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
	w->signals->ops->disarm(w->signals, (unsigned)quipu_event_cpu_now(e), (unsigned)hw->idx);
}

static int core_add(struct quipu_event *e, int flags)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned cpu = (unsigned)quipu_event_cpu_now(e);

	if (signal_of(quipu_event_attr(e)) == QUIPU_SIGNAL_NONE) {
		quipu_core_reason(w->core, "no counter of this machine takes that raw code");
		return -ENOENT;
	}
	for (unsigned i = 0; i < w->ncounters; i++) {
		if (w->on[cpu][i])
			continue;
		w->on[cpu][i] = e;
		hw->idx = (int)i;
		hw->state = QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
		if (flags & QUIPU_EF_START)
			core_start(e, QUIPU_EF_RELOAD);
		return 0;
	}
	return -EAGAIN;
}

static void core_del(struct quipu_event *e, int flags)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	core_stop(e, QUIPU_EF_UPDATE);
	w->on[quipu_event_cpu_now(e)][hw->idx] = NULL;
	hw->idx = -1;
}

static int core_slot(struct quipu_event *e)
{
	return quipu_event_hw(e)->idx;
}

/* The driver's handler. */
static void overflow(struct world *w, const struct quipu_interrupt *i, struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct quipu_sample s = {.ip = i->pc,
				 .addr = i->addr,
				 .chain = w->chain,
				 .nr_chain = w->nr_chain,
				 .exact_ip = true};

	fold(e);
	if (!quipu_reload_set_period(&hw->reload)) {
		arm(e);
		return;
	}
	if (quipu_event_overflow(e, &s))
		core_stop(e, 0);
	else if (!(hw->state & QUIPU_HES_STOPPED))
		arm(e);
}

static void interrupt(void *arg, const struct quipu_interrupt *i)
{
	struct world *w = arg;

	for (unsigned slot = 0; slot < WORLD_COUNTERS; slot++) {
		struct quipu_event *e = quipu_core_slot_event(w->core, i->cpu, slot);

		if ((i->slots >> slot & 1) && e)
			overflow(w, i, e);
	}
	quipu_core_work(w->core);
}

/* ---- the uncore PMU: counts memory lines of CPU 0, whichever CPU it stands on ---- */

static int un_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e);

	return a->type != (uint32_t)pmu->type ? -ENOENT : a->config ? -EINVAL : 0;
}

static void un_read(struct quipu_event *e)
{
	struct world *w = world_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now = w->signals->ops->read(w->signals, 0, QUIPU_SIGNAL_MEM_READ_LINES);

	quipu_event_add_count(e, now - hw->prev_count);
	hw->prev_count = now;
}

static void un_start(struct quipu_event *e, int flags)
{
	struct world *w = world_of(e);

	(void)flags;
	quipu_event_hw(e)->prev_count =
		w->signals->ops->read(w->signals, 0, QUIPU_SIGNAL_MEM_READ_LINES);
}

static void un_stop(struct quipu_event *e, int flags)
{
	(void)flags;
	un_read(e);
}

static int un_add(struct quipu_event *e, int flags)
{
	struct world *w = world_of(e);

	(void)flags;
	if (w->un_on[quipu_event_cpu_now(e)] >= UN_COUNTERS)
		return -EAGAIN;
	w->un_on[quipu_event_cpu_now(e)]++;
	un_start(e, 0);
	return 0;
}

static void un_del(struct quipu_event *e, int flags)
{
	un_stop(e, flags);
	world_of(e)->un_on[quipu_event_cpu_now(e)]--;
}

/* ---- the machine ---- */

uint64_t world_now(const struct world *w, unsigned cpu)
{
	return w->signals->ops->read(w->signals, cpu, QUIPU_SIGNAL_CYCLES) + w->idle[cpu];
}

static uint64_t op_now(void *arg, unsigned cpu)
{
	return world_now(arg, cpu);
}

static uint64_t op_signal(void *arg, unsigned cpu, quipu_signal signal)
{
	struct world *w = arg;

	return w->signals->ops->read(w->signals, cpu, signal);
}

static void op_wake(void *arg, struct quipu_event *e, unsigned bits)
{
	struct world *w = arg;

	w->last_woken = e;
	if (bits & POLLHUP)
		w->hups++;
	else
		w->wakes++;
}

static void op_sigio(void *arg, struct quipu_event *e, int code)
{
	struct world *w = arg;

	(void)e;
	w->sigios++;
	w->last_sigio = (unsigned)code;
}

static void make_pmus(struct world *w)
{
	w->cpu_pmu = (struct quipu_pmu){
		.name = "cpu",
		.type = PERF_TYPE_RAW,
		.capabilities = QUIPU_PMU_CAP_EXTENDED_HW_TYPE,
		.driver = w,
		.event_init = core_event_init,
		.add = core_add,
		.del = core_del,
		.start = core_start,
		.stop = core_stop,
		.read = fold,
		.slot = core_slot,
		.signal = core_signal,
	};
	w->un_pmu = (struct quipu_pmu){
		.name = "un",
		.type = -1,
		.context = QUIPU_CONTEXT_UNCORE,
		.driver = w,
		.cpumask = "0,2",
		.capabilities = QUIPU_PMU_CAP_NO_INTERRUPT | QUIPU_PMU_CAP_NO_EXCLUDE,
		.event_init = un_event_init,
		.add = un_add,
		.del = un_del,
		.start = un_start,
		.stop = un_stop,
		.read = un_read,
	};
}

void world_init(struct world *w, unsigned counters, int paranoid)
{
	struct quipu_core_config config = {
		.ncpus = WORLD_CPUS, .paranoid = paranoid, .regs_mask = 0xffffffff};

	memset(w, 0, sizeof(*w));
	w->hand = quipu_manual_signals_new(WORLD_CPUS);
	assert_non_null(w->hand);
	w->signals = quipu_manual_signals_base(w->hand);
	w->signals->interrupt = interrupt;
	w->signals->arg = w;
	w->ncounters = counters;
	w->grain = 1000;
	w->pc = 0x10000;
	w->ops = (struct quipu_core_ops){
		.now = op_now, .signal = op_signal, .wake = op_wake, .sigio = op_sigio};
	w->core = quipu_core_new(&config, &w->ops, w);
	assert_non_null(w->core);
	make_pmus(w);
	assert_int_equal(quipu_core_register(w->core, &w->cpu_pmu), 0);
	assert_int_equal(quipu_core_register(w->core, &w->un_pmu), 0);
	w->caller = (struct quipu_caller){.pid = 100, .tid = 100, .uid = 1000, .memlock = 64 << 10};
	w->task = quipu_task_new(w->core, NULL, 100, 100, false, "work", 0);
	assert_non_null(w->task);
}

void world_free(struct world *w)
{
	quipu_core_free(w->core);
	quipu_manual_signals_free(w->hand);
}

void world_work(struct world *w, unsigned cpu, uint64_t n)
{
	while (n) {
		uint64_t due = quipu_core_next_tick(w->core, cpu), now = world_now(w, cpu);
		uint64_t step = n < w->grain ? n : w->grain;
		struct quipu_sample where = {.ip = w->pc};

		if (due != UINT64_MAX && due > now && due - now < step)
			step = due - now;
		quipu_manual_signals_feed(w->hand, cpu, QUIPU_SIGNAL_CYCLES, step, w->pc);
		quipu_manual_signals_feed(w->hand, cpu, QUIPU_SIGNAL_INSTRUCTIONS, step, w->pc);
		n -= step;
		if (quipu_core_next_tick(w->core, cpu) <= world_now(w, cpu))
			quipu_core_tick_at(w->core, cpu, &where);
	}
}

struct quipu_attr world_attr(uint32_t type, uint64_t config, uint64_t flags)
{
	return (struct quipu_attr){
		.type = type,
		.size = sizeof(struct quipu_attr),
		.config = config,
		.flags = flags,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

static int open_it(struct world *w, struct quipu_attr *a, pid_t pid, int cpu,
		   struct quipu_event *group, struct quipu_event **e)
{
	uint32_t back = 0;

	return quipu_event_open(w->core, &w->caller, a, sizeof(*a), pid, cpu, group, 0, &back, e);
}

struct quipu_event *world_open(struct world *w, struct quipu_attr a, pid_t pid, int cpu,
			       struct quipu_event *group)
{
	struct quipu_event *e;
	int r = open_it(w, &a, pid, cpu, group, &e);

	if (r)
		fail_msg("open: %s (%s)", strerror(-r), quipu_core_last_reason(w->core));
	return e;
}

int world_try(struct world *w, struct quipu_attr a, pid_t pid, int cpu, struct quipu_event *group)
{
	struct quipu_event *e;
	int r = open_it(w, &a, pid, cpu, group, &e);

	if (!r)
		quipu_event_close(e);
	return r;
}

struct quipu_count world_count(struct quipu_event *e)
{
	struct quipu_count c;

	quipu_event_count(e, &c);
	return c;
}

uint64_t world_value(struct quipu_event *e)
{
	return world_count(e).value;
}

/* ---- rings ---- */

struct reader world_map(struct world *w, struct quipu_event *e, size_t pages, bool writable)
{
	struct reader r = {.pages = pages, .e = e};

	r.mem = calloc(pages + 1, 4096);
	assert_non_null(r.mem);
	assert_int_equal(quipu_event_map(e, &w->caller, r.mem, pages, writable), 0);
	return r;
}

bool world_next(struct reader *r, uint8_t *out)
{
	uint64_t *ctl = (uint64_t *)(void *)r->mem;
	uint64_t head = __atomic_load_n(&ctl[1024 / 8], __ATOMIC_ACQUIRE);
	size_t size = r->pages * 4096;
	uint16_t len;

	if (r->tail == head)
		return false;
	for (unsigned i = 0; i < 8; i++)
		out[i] = r->mem[4096 + (r->tail + i) % size];
	memcpy(&len, out + 6, 2);
	assert_true(len >= 8 && len % 8 == 0 && head - r->tail >= len);
	for (unsigned i = 8; i < len; i++)
		out[i] = r->mem[4096 + (r->tail + i) % size];
	r->tail += len;
	__atomic_store_n(&ctl[1032 / 8], r->tail, __ATOMIC_RELEASE);
	return true;
}

void world_unmap(struct reader *r)
{
	quipu_event_unmap(r->e);
	free(r->mem);
}
