/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver for privileged-1.10 harts: cycle and instret, and nothing that S-mode cannot do on
 * them. A counter is never stopped, written or filtered, and never interrupts; counting is the
 * difference of two readings.
 *
 * Follows arch/riscv/kernel/perf_event.c of Linux 4.18 (the document's generation) by default, and
 * the "legacy" driver of 6.1 or 6.12 where the machine asks for it: RISC-V sheet section 2, errno
 * table 2.4. One leak of 4.18 is not repeated (D-14). Sampling is refused with a reason unless the
 * machine wants the historical silence (D-15).
 */
#include <errno.h>
#include <libfdt.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu/bits.h>

#include "platform/riscv/legacy.h"

/*
 * Filters that would change the count. Leaving guests out, which perf asks for by default, would
 * not: there are none.
 */
#define ANY_FILTER                                                                                 \
	(QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV |             \
	 QUIPU_ATTR_EXCLUDE_HOST)

struct legacy_cpu {
	unsigned n_events;
	struct quipu_event *events[LEGACY_COUNTERS];
};

struct legacy_driver {
	struct quipu_pmu pmu;
	struct riscv_driver_env env;
	const struct rv_pmu_desc *desc;
	struct legacy_cpu *cpus;
	unsigned active; /* events that hold the hardware */
	unsigned warnings;
};

static const int base_hw_events[LEGACY_HW_EVENTS] = {
	[PERF_COUNT_HW_CPU_CYCLES] = LEGACY_CYCLE,
	[PERF_COUNT_HW_INSTRUCTIONS] = LEGACY_INSTRET,
	[PERF_COUNT_HW_CACHE_REFERENCES] = LEGACY_UNSUPPORTED,
	[PERF_COUNT_HW_CACHE_MISSES] = LEGACY_UNSUPPORTED,
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = LEGACY_UNSUPPORTED,
	[PERF_COUNT_HW_BRANCH_MISSES] = LEGACY_UNSUPPORTED,
	[PERF_COUNT_HW_BUS_CYCLES] = LEGACY_UNSUPPORTED,
};

/* clang-format off */
#define PAIR		{ LEGACY_UNSUPPORTED, LEGACY_UNSUPPORTED }
#define UNSUPPORTED_ROW { PAIR, PAIR, PAIR } /* read, write, prefetch */
/* clang-format on */
static const legacy_cache_map base_cache_events = {
	[PERF_COUNT_HW_CACHE_L1D] = UNSUPPORTED_ROW,  [PERF_COUNT_HW_CACHE_L1I] = UNSUPPORTED_ROW,
	[PERF_COUNT_HW_CACHE_LL] = UNSUPPORTED_ROW,   [PERF_COUNT_HW_CACHE_DTLB] = UNSUPPORTED_ROW,
	[PERF_COUNT_HW_CACHE_ITLB] = UNSUPPORTED_ROW, [PERF_COUNT_HW_CACHE_BPU] = UNSUPPORTED_ROW,
	/* no NODE row */
};

static int map_hw_event(const struct rv_pmu_desc *desc, uint64_t config)
{
	return config >= desc->max_events ? -EINVAL : desc->hw_events[config];
}

/* The decoding of a cache event was never written: it fails before the table is looked at. */
static int map_cache_event(const struct rv_pmu_desc *desc, uint64_t config)
{
	(void)desc;
	(void)config;
	return -ENOENT;
}

static void base_handle_irq(struct legacy_driver *d, unsigned cpu)
{
	(void)d;
	(void)cpu; /* not mine */
}

const struct rv_pmu_desc rv_base_pmu = {
	.hw_events = base_hw_events,
	.cache_events = &base_cache_events,
	.map_hw_event = map_hw_event,
	.map_cache_event = map_cache_event,
	.max_events = LEGACY_HW_EVENTS,
	.num_counters = LEGACY_COUNTERS + 0,
	.counter_width = 63,
	.handle_irq = base_handle_irq,
	.irq = -1,
};

const struct rv_pmu_desc *rv_pmu_init(const void *fdt)
{
	static const struct {
		const char *compatible;
		const struct rv_pmu_desc *desc;
	} known[] = {{"riscv,base-pmu", &rv_base_pmu}};
	int node = fdt_node_offset_by_prop_value(fdt, -1, "device_type", "pmu", sizeof("pmu"));

	for (size_t i = 0; node >= 0 && i < sizeof(known) / sizeof(known[0]); i++)
		if (!fdt_node_check_compatible(fdt, node, known[i].compatible))
			return known[i].desc;
	return &rv_base_pmu;
}

static struct legacy_driver *driver_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

static unsigned cpu_of(const struct quipu_event *e)
{
	return (unsigned)quipu_event_cpu_now(e);
}

/* The interrupt, if the PMU has one, is held while any event exists. */
static int reserve(struct legacy_driver *d)
{
	const struct rv_pmu_desc *p = d->desc;

	if (d->active++ || p->irq < 0 || !p->handle_irq || !p->request_irq)
		return 0;
	if (!p->request_irq(p->platform, p->irq, "riscv-base-perf"))
		return 0;
	d->active--;
	quipu_core_reason(d->env.core, "the PMU's interrupt %d cannot be had", p->irq);
	return -EBUSY;
}

static void release(struct legacy_driver *d)
{
	const struct rv_pmu_desc *p = d->desc;

	if (--d->active == 0 && p->irq >= 0 && p->free_irq)
		p->free_irq(p->platform, p->irq);
}

/* 4.18: errno in the order of its event_init. */
static int map_418(const struct legacy_driver *d, const struct quipu_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_HARDWARE: return d->desc->map_hw_event(d->desc, attr->config);
	case PERF_TYPE_HW_CACHE: return d->desc->map_cache_event(d->desc, attr->config);
	case PERF_TYPE_RAW: return -EOPNOTSUPP;
	default: return -ENOENT;
	}
}

/* 6.1 and 6.12: cycles and instructions or one errno for all else. */
static int map_later(const struct legacy_driver *d, const struct quipu_attr *attr)
{
	if (attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES)
		return LEGACY_CYCLE;
	if (attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_INSTRUCTIONS)
		return LEGACY_INSTRET;
	return d->env.kernel >= 612 ? -ENOENT : -EOPNOTSUPP;
}

static bool old(const struct legacy_driver *d)
{
	return d->env.kernel < 601;
}

static int map_event(struct legacy_driver *d, const struct quipu_attr *attr)
{
	int r = old(d) ? map_418(d, attr) : map_later(d, attr);

	if (r < 0)
		quipu_core_reason(d->env.core,
				  "machine %s counts cycles and instructions only: its harts have "
				  "no programmable counters "
				  "that a supervisor can reach; -m riscv has them",
				  d->env.machine->name);
	return r;
}

static int refuse_sampling(struct legacy_driver *d, const struct quipu_attr *attr)
{
	if (!old(d) && (attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return -EOPNOTSUPP;
	/* 6.12 says so with a capability, which the core checks. */
	if (!attr->sample_period || d->env.record_silent || d->env.kernel >= 612)
		return 0;
	quipu_core_reason(
		d->env.core,
		"it cannot sample at all, for its counters raise no overflow interrupt; count with "
		"`quipu stat`, or sample on -m riscv");
	return -EOPNOTSUPP;
}

static void legacy_destroy(struct quipu_event *e)
{
	release(driver_of(e));
}

static int legacy_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct legacy_driver *d = pmu->driver;
	const struct quipu_attr *attr = quipu_event_attr(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	int r = reserve(d), code;

	if (r)
		return r;
	code = map_event(d, attr);
	if (code >= 0)
		r = refuse_sampling(d, attr);
	if (code < 0 || r) {
		release(d); /* on every failing path: D-14 */
		return code < 0 ? code : r;
	}
	hw->config = (uint64_t)code;
	hw->idx = -1;
	if (attr->sample_period)
		quipu_core_reason(d->env.core, "never samples: this machine's counters raise no "
					       "overflow interrupt; count it instead");
	else if ((attr->flags & ANY_FILTER) && d->env.kernel < 612)
		quipu_core_reason(d->env.core, "counts every privilege level: this machine cannot "
					       "tell user and kernel activity apart");
	return 0;
}

static uint64_t counter_read(struct legacy_driver *d, unsigned cpu, int idx)
{
	static const unsigned csr[LEGACY_COUNTERS] = {QUIPU_CSR_CYCLE, QUIPU_CSR_INSTRET};
	uint64_t value = 0;

	if (idx < 0 || idx >= (int)LEGACY_COUNTERS) {
		d->warnings++;
		return (uint64_t)-EINVAL;
	}
	quipu_riscv_csr_read(d->env.harts, cpu, QUIPU_RISCV_S, csr[idx], &value);
	return value;
}

void legacy_write_counter(struct legacy_driver *d, unsigned cpu, int idx, uint64_t value)
{
	(void)cpu;
	(void)idx;
	(void)value;
	d->warnings++;
}

unsigned legacy_warnings(const struct legacy_driver *d)
{
	return d->warnings;
}

static void legacy_read(struct quipu_event *e)
{
	struct legacy_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now = counter_read(d, cpu_of(e), hw->idx);

	quipu_event_add_count(e, (now - hw->prev_count) &
					 bits_mask(old(d) ? d->desc->counter_width : 64));
	hw->prev_count = now;
}

static void legacy_start(struct quipu_event *e, int flags)
{
	struct legacy_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (old(d) && !(hw->state & QUIPU_HES_STOPPED)) {
		d->warnings++;
		return;
	}
	/* Here a period would be written, were there a way to write it. */
	hw->state = 0;
	hw->prev_count = counter_read(d, cpu_of(e), hw->idx);
}

static void legacy_stop(struct quipu_event *e, int flags)
{
	struct legacy_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	if (hw->state & QUIPU_HES_STOPPED) {
		d->warnings += old(d);
		return;
	}
	hw->state |= QUIPU_HES_STOPPED;
	if ((flags & QUIPU_EF_UPDATE) && !(hw->state & QUIPU_HES_UPTODATE)) {
		legacy_read(e);
		hw->state |= QUIPU_HES_UPTODATE;
	}
}

static int legacy_add(struct quipu_event *e, int flags)
{
	struct legacy_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct legacy_cpu *c = &d->cpus[cpu_of(e)];

	/* From 6.1 on the counters are simply shared. */
	if (old(d) && c->n_events == d->desc->num_counters) {
		quipu_core_reason(d->env.core, "both counters are taken: this machine has two");
		return -ENOSPC;
	}
	hw->idx = (int)hw->config;
	c->events[hw->idx] = e;
	c->n_events++;
	hw->state = QUIPU_HES_UPTODATE | QUIPU_HES_STOPPED;
	if (flags & QUIPU_EF_START)
		legacy_start(e, QUIPU_EF_RELOAD);
	return 0;
}

static void legacy_del(struct quipu_event *e, int flags)
{
	struct legacy_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct legacy_cpu *c = &d->cpus[cpu_of(e)];

	(void)flags;
	c->events[hw->idx] = NULL;
	c->n_events--;
	legacy_stop(e, QUIPU_EF_UPDATE);
	hw->idx = -1;
}

static quipu_signal legacy_signal(const struct quipu_event *e, bool *filtered)
{
	*filtered = false;
	return quipu_event_hw((struct quipu_event *)e)->config == LEGACY_CYCLE
		       ? QUIPU_SIGNAL_CYCLES
		       : QUIPU_SIGNAL_INSTRUCTIONS;
}

int legacy_driver_new_with(const struct riscv_driver_env *env, const struct rv_pmu_desc *desc,
			   struct legacy_driver **out)
{
	struct legacy_driver *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->env = *env;
	d->desc = desc;
	d->cpus = calloc(env->machine->ncpus, sizeof(*d->cpus));
	if (!d->cpus) {
		legacy_driver_free(d);
		return -ENOMEM;
	}
	/* Firmware of the time leaves the shadows readable from S; nothing here depends on U. */
	d->pmu = (struct quipu_pmu){
		.name = "cpu",
		.type = PERF_TYPE_RAW,
		.capabilities = env->kernel >= 612
					? QUIPU_PMU_CAP_NO_INTERRUPT | QUIPU_PMU_CAP_NO_EXCLUDE
					: 0,
		.context = QUIPU_CONTEXT_HARDWARE,
		.driver = d,
		.event_init = legacy_init,
		.event_destroy = legacy_destroy,
		.add = legacy_add,
		.del = legacy_del,
		.start = legacy_start,
		.stop = legacy_stop,
		.read = legacy_read,
		.signal = legacy_signal,
	};
	r = quipu_core_register(env->core, &d->pmu);
	if (r) {
		legacy_driver_free(d);
		return r;
	}
	*out = d;
	return 0;
}

int legacy_driver_new(const struct riscv_driver_env *env, struct quipu_notes *notes,
		      struct legacy_driver **out)
{
	(void)notes;
	return legacy_driver_new_with(env, rv_pmu_init(env->machine->fdt), out);
}

void legacy_driver_free(struct legacy_driver *d)
{
	if (!d)
		return;
	free(d->cpus);
	free(d);
}

void legacy_driver_describe(const struct legacy_driver *d,
			    void (*fn)(void *, unsigned, const char *), void *arg)
{
	const char *kernel = old(d) ? "4.18" : d->env.kernel < 612 ? "6.1" : "6.12";
	char line[160];

	snprintf(line, sizeof(line), "driver: legacy PMU of Linux %s, PMU \"cpu\" (type 4)",
		 kernel);
	fn(arg, 1, line);
	if (!old(d))
		fn(arg, 2, "Legacy PMU implementation is available");
	fn(arg, 2,
	   "counters cannot be stopped, written or filtered, and raise no interrupt: stat works, "
	   "record does not");
	if (d->env.record_silent)
		fn(arg, 2, "sampling events open and never sample (quipu,record = \"silent\")");
}
