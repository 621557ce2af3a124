/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of the modelled x86-64 PMU: counts, and samples by interrupt. It follows the shape of
 * Linux 6.12 arch/x86/events/core.c (event_init, set_period, update, the handler of intel/core.c),
 * without its constraints: an event takes its fixed counter when that is free, else any general
 * one.
 *
 * Not there: PEBS (samples are exact by themselves), rdpmc, offcore responses, hybrid PMUs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "platform/core_pmu.h"
#include "platform/x86/driver.h"
#include "platform/x86/events.h"

#define COUNTERS    (QUIPU_X86_GENERAL + QUIPU_X86_FIXED)
#define FIXED_SHIFT 32
#define CODE_BITS   (QUIPU_X86_EVENT | QUIPU_X86_UMASK)
/* What a branch stack of this PMU can be asked for: any branch, and not to tell what it cannot. */
#define BRANCHES_TAKEN                                                                             \
	(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL |            \
	 PERF_SAMPLE_BRANCH_HV | PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES)
#define MAX_PERIOD (bits_mask(QUIPU_X86_WIDTH) >> 1)

struct x86_driver {
	struct core_pmu base;
	struct quipu_x86 *hardware;
	struct quipu_event *(*events)[COUNTERS]; /* by CPU */
	uint64_t *pmis;				 /* taken, by CPU */
	struct quipu_pmu_event *list;		 /* events/; terms owned */
};

/* ---- registers ---- */

static uint64_t rdmsr(const struct x86_driver *d, unsigned cpu, uint32_t msr)
{
	uint64_t value = 0;

	quipu_x86_rdmsr(d->hardware, cpu, msr, &value);
	core_pmu_trace(&d->base, "cpu %u: rdmsr 0x%x = 0x%" PRIx64, cpu, msr, value);
	return value;
}

static void wrmsr(const struct x86_driver *d, unsigned cpu, uint32_t msr, uint64_t value)
{
	quipu_x86_wrmsr(d->hardware, cpu, msr, value);
	core_pmu_trace(&d->base, "cpu %u: wrmsr 0x%x <- 0x%" PRIx64, cpu, msr, value);
}

static bool is_fixed(int idx)
{
	return idx >= (int)QUIPU_X86_GENERAL;
}

static uint32_t counter_msr(int idx)
{
	return is_fixed(idx) ? (uint32_t)(QUIPU_IA32_FIXED_CTR0 + idx - (int)QUIPU_X86_GENERAL)
			     : (uint32_t)(QUIPU_IA32_A_PMC0 + idx);
}

static uint64_t all_counters(void)
{
	return bits_mask(QUIPU_X86_GENERAL) | bits_mask(QUIPU_X86_FIXED) << FIXED_SHIFT;
}

/* ---- which event ---- */

static struct x86_driver *driver_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

static const struct x86_event *described(const struct quipu_event *e)
{
	return x86_event_by_code((uint16_t)quipu_event_hw((struct quipu_event *)e)->config);
}

static const struct x86_event *lookup(struct x86_driver *d, const struct quipu_attr *attr, int *err)
{
	const struct x86_event *e;

	*err = -ENOENT;
	if (attr->type == PERF_TYPE_RAW) {
		*err = -EINVAL;
		if (attr->config & ~CODE_BITS) {
			quipu_core_reason(
				d->base.core,
				"config 0x%llx: this PMU has event (bits 0-7) and umask (8-15) only",
				(unsigned long long)attr->config);
			return NULL;
		}
		e = x86_event_by_code((uint16_t)attr->config);
	} else if (attr->type == PERF_TYPE_HARDWARE) {
		e = x86_event_hardware(attr->config);
	} else {
		e = x86_event_cache(attr->config);
	}
	if (!e)
		quipu_core_reason(d->base.core,
				  "this PMU has no such event; `quipu list` shows those it has");
	return e;
}

/* The group as a whole must fit an empty PMU, or it would never count. */
static bool group_fits(struct quipu_event *e, const struct x86_event *own)
{
	struct quipu_event *leader = quipu_event_leader(e), *member;
	unsigned general = 0, fixed = 0;
	bool seen = false;

	for (unsigned i = 0; (member = quipu_event_member(leader, i)) || !seen; i++) {
		const struct x86_event *x = own;

		if (member == e || !member)
			seen = true;
		else if (quipu_event_pmu(member) != quipu_event_pmu(e))
			continue;
		else
			x = described(member);
		if (x->fixed != X86_FIXED_NONE && !(fixed & 1u << x->fixed))
			fixed |= 1u << x->fixed;
		else
			general++;
		if (!member)
			break;
	}
	return general <= QUIPU_X86_GENERAL;
}

static int x86_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct x86_driver *d = pmu->driver;
	const struct quipu_attr *attr = quipu_event_attr(e);
	const struct x86_event *x;
	int err;

	if (attr->type != PERF_TYPE_RAW && attr->type != PERF_TYPE_HARDWARE &&
	    attr->type != PERF_TYPE_HW_CACHE)
		return -ENOENT;
	if ((attr->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
	    (attr->branch_sample_type & ~BRANCHES_TAKEN)) {
		quipu_core_reason(
			d->base.core,
			"branch stacks here hold every branch of user level; no other filter (-j any,u)");
		return -EOPNOTSUPP;
	}
	x = lookup(d, attr, &err);
	if (!x)
		return err;
	if (!core_pmu_has(&d->base, x->signal)) {
		quipu_core_reason(d->base.core, "%s needs a model that does not run here", x->name);
		return -ENOENT;
	}
	if (!group_fits(e, x)) {
		quipu_core_reason(d->base.core,
				  "the group needs more than the %u general counters of this PMU",
				  QUIPU_X86_GENERAL);
		return -EINVAL;
	}
	core_pmu_begin(&d->base, e, x->code);
	if (attr->flags & QUIPU_ATTR_EXCLUDE_USER)
		quipu_core_reason(
			d->base.core,
			"counts 0: a program under a user-mode engine has no kernel activity; drop :k");
	return 0;
}

/* ---- counting ---- */

static uint64_t privileges(const struct quipu_event *e)
{
	uint64_t flags = quipu_event_attr(e)->flags;

	if (flags & QUIPU_ATTR_EXCLUDE_HOST)
		return 0;
	return (flags & QUIPU_ATTR_EXCLUDE_USER ? 0 : QUIPU_X86_USR) |
	       (flags & QUIPU_ATTR_EXCLUDE_KERNEL ? 0 : QUIPU_X86_OS);
}

static void control_fixed(struct x86_driver *d, unsigned cpu, int idx, uint64_t field)
{
	unsigned shift = 4 * ((unsigned)idx - QUIPU_X86_GENERAL);
	uint64_t old = rdmsr(d, cpu, QUIPU_IA32_FIXED_CTR_CTRL);

	wrmsr(d, cpu, QUIPU_IA32_FIXED_CTR_CTRL,
	      (old & ~(UINT64_C(0xf) << shift)) | field << shift);
}

static void enable(struct x86_driver *d, unsigned cpu, struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t levels = privileges(e);

	if (is_fixed(hw->idx))
		control_fixed(d, cpu, hw->idx, (levels >> 17 & 1) | (levels >> 16 & 1) << 1 | 8);
	else
		wrmsr(d, cpu, (uint32_t)(QUIPU_IA32_PERFEVTSEL0 + hw->idx),
		      (hw->config & CODE_BITS) | levels | QUIPU_X86_INT | QUIPU_X86_ENABLE);
}

static void disable(struct x86_driver *d, unsigned cpu, const struct quipu_hw_event *hw)
{
	if (is_fixed(hw->idx))
		control_fixed(d, cpu, hw->idx, 0);
	else
		wrmsr(d, cpu, (uint32_t)(QUIPU_IA32_PERFEVTSEL0 + hw->idx), 0);
}

static void update(struct x86_driver *d, unsigned cpu, struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now = rdmsr(d, cpu, counter_msr(hw->idx));

	core_pmu_count(e, now, (now - hw->prev_count) & bits_mask(QUIPU_X86_WIDTH));
}

static void x86_read(struct quipu_event *e)
{
	if (!(quipu_event_hw(e)->state & QUIPU_HES_UPTODATE))
		update(driver_of(e), core_pmu_cpu(e), e);
}

static void x86_start(struct quipu_event *e, int flags)
{
	struct x86_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags; /* the counter's value was folded at the stop: it is always programmed anew */
	hw->state = 0;
	core_pmu_set_period(&d->base, hw);
	wrmsr(d, core_pmu_cpu(e), counter_msr(hw->idx), hw->prev_count);
	enable(d, core_pmu_cpu(e), e);
}

static void x86_stop(struct quipu_event *e, int flags)
{
	struct x86_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->state & QUIPU_HES_STOPPED)
		return;
	disable(d, core_pmu_cpu(e), hw);
	update(d, core_pmu_cpu(e), e);
	hw->state |= QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
}

static int free_counter(const struct x86_driver *d, unsigned cpu, const struct x86_event *x)
{
	if (x->fixed != X86_FIXED_NONE && !d->events[cpu][QUIPU_X86_GENERAL + x->fixed])
		return (int)(QUIPU_X86_GENERAL + x->fixed);
	for (int i = 0; i < (int)QUIPU_X86_GENERAL; i++)
		if (!d->events[cpu][i])
			return i;
	return -1;
}

static int x86_add(struct quipu_event *e, int flags)
{
	struct x86_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	int idx = free_counter(d, core_pmu_cpu(e), described(e));

	if (idx < 0) {
		quipu_core_reason(d->base.core, "every counter that it could use is taken");
		return -EAGAIN;
	}
	hw->idx = idx;
	d->events[core_pmu_cpu(e)][idx] = e;
	hw->state = QUIPU_HES_UPTODATE | QUIPU_HES_STOPPED;
	if (flags & QUIPU_EF_START)
		x86_start(e, QUIPU_EF_RELOAD);
	return 0;
}

static void x86_del(struct quipu_event *e, int flags)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	x86_stop(e, QUIPU_EF_UPDATE);
	driver_of(e)->events[core_pmu_cpu(e)][hw->idx] = NULL;
	hw->idx = -1;
}

static int x86_slot(struct quipu_event *e)
{
	return quipu_event_hw(e)->idx;
}

static quipu_signal x86_signal(const struct quipu_event *e, bool *filtered)
{
	*filtered = !(privileges(e) & QUIPU_X86_USR);
	return described(e)->signal;
}

/* ---- overflow ---- */

static void write_counter(struct core_pmu *base, struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)base;
	wrmsr(driver_of(e), core_pmu_cpu(e), counter_msr(hw->idx), hw->prev_count);
}

static void serve(struct x86_driver *d, unsigned cpu, struct quipu_event *e,
		  const struct quipu_interrupt *irq)
{
	struct quipu_sample sample = {.exact_ip = true};

	core_pmu_sample(irq, &sample);
	update(d, cpu, e);
	core_pmu_overflow(&d->base, e, &sample);
}

void x86_driver_interrupt(struct x86_driver *d, unsigned cpu, const struct quipu_interrupt *irq)
{
	uint64_t status;

	d->pmis[cpu]++;
	wrmsr(d, cpu, QUIPU_IA32_PERF_GLOBAL_CTRL, 0);
	status = rdmsr(d, cpu, QUIPU_IA32_PERF_GLOBAL_STATUS);
	wrmsr(d, cpu, QUIPU_IA32_PERF_GLOBAL_STATUS_RESET, status);
	for (unsigned i = 0; i < COUNTERS; i++) {
		unsigned bit = i < QUIPU_X86_GENERAL ? i : i - QUIPU_X86_GENERAL + FIXED_SHIFT;

		if ((status & bits_one(bit)) && d->events[cpu][i])
			serve(d, cpu, d->events[cpu][i], irq);
	}
	wrmsr(d, cpu, QUIPU_IA32_PERF_GLOBAL_CTRL, all_counters());
}

uint64_t x86_driver_pmis(const struct x86_driver *d, unsigned cpu)
{
	return d->pmis[cpu];
}

/* ---- sysfs, life ---- */

static const struct quipu_pmu_format formats[] = {
	{"event", "config:0-7"},
	{"umask", "config:8-15"},
	{NULL, NULL},
};

static int make_list(struct x86_driver *d)
{
	d->list = calloc(x86_nevents + 1, sizeof(*d->list));
	if (!d->list)
		return -ENOMEM;
	for (unsigned i = 0; i < x86_nevents; i++) {
		const struct x86_event *x = &x86_events[i];
		char terms[32];

		snprintf(terms, sizeof(terms), "event=0x%02x,umask=0x%02x", x->code & 0xffu,
			 x->code >> 8);
		d->list[i] = (struct quipu_pmu_event){
			.name = x->name,
			.terms = strdup(terms),
			.desc = x->desc,
			.signal = x->signal,
			.exactness = quipu_signal_exactness(x->signal),
			.unavailable = core_pmu_has(&d->base, x->signal)
					       ? NULL
					       : "needs a model that does not run here",
		};
		if (!d->list[i].terms)
			return -ENOMEM;
	}
	return 0;
}

static void describe_pmu(struct x86_driver *d)
{
	d->base.pmu = (struct quipu_pmu){
		.name = "cpu",
		.type = PERF_TYPE_RAW,
		.context = QUIPU_CONTEXT_HARDWARE,
		.driver = d,
		.formats = formats,
		.events = d->list,
		.event_init = x86_init,
		.add = x86_add,
		.del = x86_del,
		.start = x86_start,
		.stop = x86_stop,
		.read = x86_read,
		.slot = x86_slot,
		.signal = x86_signal,
	};
}

int x86_driver_new(const struct quipu_platform_env *env, struct quipu_x86 *hardware,
		   struct x86_driver **out)
{
	struct x86_driver *d = calloc(1, sizeof(*d));
	int err = -ENOMEM;

	if (!d)
		return err;
	core_pmu_setup(&d->base, env);
	d->base.width = QUIPU_X86_WIDTH;
	d->base.top = bits_one(QUIPU_X86_WIDTH);
	d->base.longest = MAX_PERIOD;
	d->base.write = write_counter;
	d->hardware = hardware;
	d->events = calloc(d->base.ncpus, sizeof(*d->events));
	d->pmis = calloc(d->base.ncpus, sizeof(*d->pmis));
	if (d->events && d->pmis)
		err = make_list(d);
	if (!err) {
		describe_pmu(d);
		err = quipu_core_register(env->core, &d->base.pmu);
	}
	if (err) {
		x86_driver_free(d);
		return err;
	}
	for (unsigned cpu = 0; cpu < d->base.ncpus; cpu++)
		wrmsr(d, cpu, QUIPU_IA32_PERF_GLOBAL_CTRL, all_counters());
	*out = d;
	return 0;
}

void x86_driver_free(struct x86_driver *d)
{
	if (!d)
		return;
	core_pmu_free_list(d->list);
	free(d->events);
	free(d->pmis);
	free(d);
}

void x86_driver_describe(const struct x86_driver *d, quipu_describe_fn *fn, void *arg)
{
	char line[120];
	unsigned n = 0;

	for (unsigned i = 0; i < x86_nevents; i++)
		n += core_pmu_has(&d->base, x86_events[i].signal);
	fn(arg, 1, "driver: PMU \"cpu\" (type 4)");
	snprintf(line, sizeof(line),
		 "%u general and %u fixed counters of %u bits, sampling by interrupt",
		 QUIPU_X86_GENERAL, QUIPU_X86_FIXED, QUIPU_X86_WIDTH);
	fn(arg, 2, line);
	snprintf(line, sizeof(line), "%u events, of which %u are counted here", x86_nevents, n);
	fn(arg, 2, line);
}
