// SPDX-License-Identifier: BSD-2-Clause
/*
 * The dmar PMU driver: what Linux 6.12 does with the performance monitoring of a remapping unit
 * (drivers/iommu/intel/perfmon.c), on this unit's registers and enhanced commands and on nothing
 * else.
 *
 * Quirks kept, because tools see them: the status of a command is ignored (a refused ENABLE leaves
 * a count of 0), events without any counter open and never run, a group may be two members too
 * large. Where the kernel stays silent the reason is given to the core. Deviations: a command that
 * never ends gives -ETIMEDOUT, where the kernel panics; a counter that wraps to where it was last
 * read loses nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "registers.h"

#define MAX_COUNTERS 64u
#define GROUPS	     16u
#define TIMEOUT_US   10000000u /* the DMAR operation timeout; one poll is taken as a microsecond */

struct vtd_driver {
	struct quipu_pmu pmu;
	struct vtd_driver_env env;
	char name[16];
	uint64_t perfcap;
	unsigned filters, ncounters, egcnt, width;
	uint32_t cfg_off, ovf_off, cntr_off, stride;
	uint32_t evcap[GROUPS];			   /* what any counter of the unit counts */
	uint32_t cntr_evcap[MAX_COUNTERS][GROUPS]; /* what one does */
	uint64_t used;
	struct quipu_event *on[MAX_COUNTERS];
	struct quipu_pmu_format formats[14];
	struct quipu_pmu_event *events;
};

/* ---- the floor below ---- */

static uint64_t rd64(struct vtd_driver *d, uint32_t offset)
{
	return quipu_vtd_read(d->env.unit, offset, 8);
}

static uint32_t rd32(struct vtd_driver *d, uint32_t offset)
{
	return (uint32_t)quipu_vtd_read(d->env.unit, offset, 4);
}

static void wr64(struct vtd_driver *d, uint32_t offset, uint64_t value)
{
	quipu_vtd_write(d->env.unit, offset, 8, value);
}

static void wr32(struct vtd_driver *d, uint32_t offset, uint32_t value)
{
	quipu_vtd_write(d->env.unit, offset, 4, value);
}

/* Before anything that depends on what has been counted so far, or starts to count. */
static void sync_unit(struct vtd_driver *d)
{
	if (d->env.sync)
		d->env.sync(d->env.sync_arg);
}

static void trace(struct vtd_driver *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void trace(struct vtd_driver *d, const char *fmt, ...)
{
	char line[160];
	int n;
	va_list ap;

	if (!d->env.trace)
		return;
	n = snprintf(line, sizeof(line), "%s ", d->name);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	d->env.trace(d->env.trace_arg, line);
}

static const char *command_name(unsigned code)
{
	static const char *const names[] = {"ENABLE",	    "DISABLE", "RESET CONFIG",
					    "RESET VALUES", "FREEZE",  "UNFREEZE"};

	return code >= ECMD_ENABLE && code <= ECMD_UNFREEZE ? names[code - ECMD_ENABLE] : "?";
}

int vtd_driver_command(struct vtd_driver *d, unsigned code, uint64_t a, uint64_t b)
{
	uint64_t response;
	unsigned left = TIMEOUT_US;

	if (!(rd64(d, CAP_REG) & CAP_ECMDS))
		return -ENODEV;
	if (rd64(d, ECRSP_REG) & ECRSP_IP)
		return -EBUSY;
	wr64(d, ECEO_REG, b);
	wr64(d, ECMD_REG, code | a << 16);
	do
		response = rd64(d, ECRSP_REG);
	while ((response & ECRSP_IP) && --left);
	if (response & ECRSP_IP)
		return -ETIMEDOUT;
	trace(d, "ECMD %s %" PRIu64 " -> status %u", command_name(code), a,
	      (unsigned)bits_get(response, 7, 1));
	return (int)bits_get(response, 7, 1);
}

static uint32_t config_reg(const struct vtd_driver *d, unsigned idx)
{
	return d->cfg_off + CFG_BLOCK * idx;
}

static uint32_t counter_reg(const struct vtd_driver *d, unsigned idx)
{
	return d->cntr_off + d->stride * idx;
}

/* ---- attributes of an event ---- */

static struct vtd_driver *driver_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

static uint32_t attr_mask(const struct quipu_attr *a)
{
	return (uint32_t)bits_get(a->config, 27, 0);
}

static unsigned attr_group(const struct quipu_attr *a)
{
	return (unsigned)bits_get(a->config, 31, 28);
}

/* Filters in the order of their capability bits and registers: where the attribute holds the value.
 */
static const struct {
	const char *name, *enable, *enable_spec, *value, *value_spec;
	bool second; /* in config2 */
	unsigned hi, lo;
} filter_attr[FILTERS] = {
	[FILTER_RID] = {"requester", "filter_requester_id_en", "config1:0", "filter_requester_id",
			"config1:16-31", false, 31, 16},
	[FILTER_DID] = {"domain", "filter_domain_en", "config1:1", "filter_domain", "config1:32-47",
			false, 47, 32},
	[FILTER_PASID] = {"PASID", "filter_pasid_en", "config1:2", "filter_pasid", "config2:0-21",
			  true, 21, 0},
	[FILTER_AT] = {"address type", "filter_ats_en", "config1:3", "filter_ats", "config2:24-28",
		       true, 28, 24},
	[FILTER_PTL] = {"page-table level", "filter_page_table_en", "config1:4",
			"filter_page_table", "config2:32-36", true, 36, 32},
};

static uint32_t attr_filter(const struct quipu_attr *a, unsigned filter)
{
	return (uint32_t)bits_get(filter_attr[filter].second ? a->config2 : a->config1,
				  filter_attr[filter].hi, filter_attr[filter].lo);
}

/* ---- event_init ---- */

/* Leader and new event are not counted, siblings that are off are not either: as the kernel has it.
 */
static bool group_fits(struct vtd_driver *d, struct quipu_event *e)
{
	struct quipu_event *leader = quipu_event_leader(e), *s;
	unsigned n = 0;

	for (unsigned i = 1; (s = quipu_event_member(leader, i)); i++)
		if (s != e && quipu_event_pmu(s) == &d->pmu && quipu_event_state(s) > -1 &&
		    ++n > d->ncounters)
			return false;
	return true;
}

/* Why an event that opens will count nothing, or less than it says. NULL: no reason known. */
static void tell_limits(struct vtd_driver *d, const struct quipu_attr *a)
{
	uint32_t mask = attr_mask(a), have = d->evcap[attr_group(a)];
	unsigned asked = (unsigned)a->config1 & 0x1f, active = asked & d->filters, accepted;
	const char *blocked = vtd_event_why_zero(attr_group(a), mask);

	if (!(mask & have)) {
		quipu_core_reason(d->env.core,
				  "never counts: no counter of %s counts event 0x%x of group %u "
				  "(it has 0x%x); "
				  "see events/ of the PMU",
				  d->name, mask, attr_group(a), have);
		return;
	}
	if (mask & ~have) {
		quipu_core_reason(d->env.core,
				  "counts 0: the unit refuses event bits 0x%x of group %u, which "
				  "it does not have",
				  mask & ~have, attr_group(a));
		return;
	}
	if (blocked && !d->env.queued)
		quipu_core_reason(d->env.core, "counts 0: %s", blocked);
	if (asked & ~d->filters)
		quipu_core_reason(d->env.core, "counts unfiltered: %s has no %s filter", d->name,
				  filter_attr[bits_low(asked & ~d->filters)].name);
	if (active && bits_count(mask) > 1) {
		quipu_core_reason(d->env.core,
				  "counts 0: the unit refuses a filter on several events at once");
		return;
	}
	accepted = vtd_event_filters(attr_group(a), mask);
	if (!d->env.filters_extended && (active & ~accepted))
		quipu_core_reason(d->env.core,
				  "counts 0: the unit refuses the %s filter on this event",
				  filter_attr[bits_low(active & ~accepted)].name);
}

static int vtd_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct vtd_driver *d = pmu->driver;
	const struct quipu_attr *a = quipu_event_attr(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	if ((int)a->type != pmu->type)
		return -ENOENT;
	if (a->sample_period) {
		quipu_core_reason(
			d->env.core,
			"%s cannot sample: Linux counts remapping units only; use `quipu stat -a`",
			d->name);
		return -EINVAL;
	}
	if (quipu_event_cpu(e) < 0) {
		quipu_core_reason(
			d->env.core,
			"%s counts for the whole machine, not for a task; count on CPU %s (-a)",
			d->name, d->env.cpumask->text);
		return -EINVAL;
	}
	if (attr_group(a) >= d->egcnt) {
		quipu_core_reason(d->env.core, "%s has the event groups 0 to %u", d->name,
				  d->egcnt - 1);
		return -EINVAL;
	}
	hw->config = (uint64_t)attr_mask(a) << 32 | attr_group(a) << 8 | CNTRCFG_IO;
	hw->idx = -1;
	if (!group_fits(d, e)) {
		quipu_core_reason(d->env.core,
				  "the group has more events than %s has counters (%u)", d->name,
				  d->ncounters);
		return -EINVAL;
	}
	tell_limits(d, a);
	return 0;
}

/* ---- counting ---- */

static void update(struct vtd_driver *d, struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now = rd64(d, counter_reg(d, (unsigned)hw->idx));
	unsigned shift = 64 - d->width;
	uint64_t delta = ((now << shift) - (hw->prev_count << shift)) >> shift;

	hw->prev_count = now;
	quipu_event_add_count(e, delta);
}

static void vtd_read(struct quipu_event *e)
{
	struct vtd_driver *d = driver_of(e);

	if (quipu_event_hw(e)->idx < 0)
		return;
	sync_unit(d);
	update(d, e);
}

static void vtd_start(struct quipu_event *e, int flags)
{
	struct vtd_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (!(hw->state & QUIPU_HES_STOPPED) || hw->idx < 0)
		return;
	sync_unit(d);
	hw->state = 0;
	hw->prev_count = rd64(d, counter_reg(d, (unsigned)hw->idx));
	vtd_driver_command(d, ECMD_ENABLE, (unsigned)hw->idx, 0);
}

static void vtd_stop(struct quipu_event *e, int flags)
{
	struct vtd_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->state & QUIPU_HES_STOPPED)
		return;
	sync_unit(d);
	vtd_driver_command(d, ECMD_DISABLE, (unsigned)hw->idx, 0);
	update(d, e);
	hw->state |= QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
}

/* From the last counter down: the restricted ones are expected at the end. No second thoughts. */
static int assign(struct vtd_driver *d, const struct quipu_attr *a)
{
	for (unsigned idx = d->ncounters; idx-- > 0;)
		if (!(d->used >> idx & 1) && (d->cntr_evcap[idx][attr_group(a)] & attr_mask(a)))
			return (int)idx;
	return -1;
}

static void set_filters(struct vtd_driver *d, unsigned idx, const struct quipu_attr *a)
{
	for (unsigned f = 0; f < FILTERS; f++)
		if ((d->filters >> f & 1) && (a->config1 >> f & 1))
			wr32(d, config_reg(d, idx) + CFG_FILTER + 4 * f,
			     attr_filter(a, f) | (uint32_t)FILTER_EN);
}

static int vtd_add(struct quipu_event *e, int flags)
{
	struct vtd_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	const struct quipu_attr *a = quipu_event_attr(e);
	int idx = assign(d, a);

	if (idx < 0) {
		quipu_core_reason(d->env.core,
				  "no counter of %s is free for event 0x%x of group %u", d->name,
				  attr_mask(a), attr_group(a));
		return -EINVAL;
	}
	d->used |= bits_one((unsigned)idx);
	d->on[idx] = e;
	hw->idx = idx;
	wr64(d, config_reg(d, (unsigned)idx), hw->config);
	set_filters(d, (unsigned)idx, a);
	hw->state = QUIPU_HES_UPTODATE | QUIPU_HES_STOPPED;
	trace(d, "counter %d: configuration 0x%016" PRIx64, idx, hw->config);
	if (flags & QUIPU_EF_START)
		vtd_start(e, 0);
	return 0;
}

static void vtd_del(struct quipu_event *e, int flags)
{
	struct vtd_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned idx = (unsigned)hw->idx;

	if (hw->idx < 0)
		return;
	vtd_stop(e, flags);
	for (unsigned f = 0; f < FILTERS; f++)
		if (d->filters >> f & 1)
			wr32(d, config_reg(d, idx) + CFG_FILTER + 4 * f, 0);
	d->on[idx] = NULL;
	hw->idx = -1;
	d->used &= ~bits_one(idx);
}

static void vtd_pmu_enable(struct quipu_pmu *pmu, unsigned cpu)
{
	(void)cpu;
	sync_unit(pmu->driver);
	vtd_driver_command(pmu->driver, ECMD_UNFREEZE, 0, 0);
}

static void vtd_pmu_disable(struct quipu_pmu *pmu, unsigned cpu)
{
	(void)cpu;
	sync_unit(pmu->driver);
	vtd_driver_command(pmu->driver, ECMD_FREEZE, 0, 0);
}

/*
 * The counter has just wrapped. Linux takes the difference here as everywhere, which is 0 for a
 * counter that comes by where it was last read, and so loses that round; here it counts.
 */
static void update_wrapped(struct vtd_driver *d, struct quipu_event *e)
{
	uint64_t before = quipu_event_hw(e)->prev_count;

	update(d, e);
	if (quipu_event_hw(e)->prev_count >= before)
		quipu_event_add_count(e, bits_mask(d->width) + 1);
}

/* The interrupt is threaded and one-shot: masked while its handler runs. */
void vtd_driver_interrupt(struct vtd_driver *d)
{
	uint64_t overflown;

	if (!rd32(d, PERFINTRSTS_REG))
		return;
	wr32(d, PERFINTRCTL_REG, (uint32_t)IRQ_IM);
	while ((overflown = rd64(d, d->ovf_off))) {
		for (uint64_t left = overflown; left; left &= left - 1)
			if (d->on[bits_low(left)])
				update_wrapped(d, d->on[bits_low(left)]);
		wr64(d, d->ovf_off, overflown);
	}
	wr32(d, PERFINTRSTS_REG, 1);
	wr32(d, PERFINTRCTL_REG, 0);
}

/* ---- the CPU that reads ---- */

static void show(struct vtd_cpumask *m, int cpu)
{
	m->cpu = cpu;
	if (cpu < 0)
		m->text[0] = '\0';
	else
		snprintf(m->text, sizeof(m->text), "%d", cpu);
}

int vtd_cpumask_init(struct vtd_cpumask *m, unsigned ncpus)
{
	m->online = malloc(ncpus * sizeof(*m->online));
	if (!m->online)
		return -ENOMEM;
	m->ncpus = ncpus;
	for (unsigned i = 0; i < ncpus; i++)
		m->online[i] = true;
	show(m, 0);
	return 0;
}

void vtd_cpumask_destroy(struct vtd_cpumask *m)
{
	free(m->online);
}

static void vtd_cpu_online(struct quipu_pmu *pmu, unsigned cpu)
{
	struct vtd_cpumask *m = ((struct vtd_driver *)pmu->driver)->env.cpumask;

	m->online[cpu] = true;
	if (m->cpu < 0)
		show(m, (int)cpu);
}

/* All units share the mask; the first to hear of it chooses, each moves its own events. */
static void vtd_cpu_offline(struct quipu_pmu *pmu, unsigned cpu)
{
	struct vtd_driver *d = pmu->driver;
	struct vtd_cpumask *m = d->env.cpumask;

	m->online[cpu] = false;
	if (m->cpu == (int)cpu) {
		show(m, -1);
		for (unsigned i = 0; i < m->ncpus && m->cpu < 0; i++)
			if (m->online[i])
				show(m, (int)i);
	}
	if (m->cpu >= 0)
		quipu_core_migrate(d->env.core, pmu, cpu, (unsigned)m->cpu);
}

/* ---- what the unit can do ---- */

static const char *refused(uint64_t cap, uint64_t perfcap, uint64_t eccap3)
{
	static const struct {
		unsigned bit;
		const char *why;
	} needed[] = {
		{48, "the enhanced command ENABLE (ECCAP_REG_3 bit 48) is missing"},
		{49, "the enhanced command DISABLE (ECCAP_REG_3 bit 49) is missing"},
		{52, "the enhanced command FREEZE (ECCAP_REG_3 bit 52) is missing"},
		{53, "the enhanced command UNFREEZE (ECCAP_REG_3 bit 53) is missing"},
	};

	if (!(cap & CAP_ECMDS))
		return "it has no enhanced commands (CAP_REG.ECMDS)";
	if (!perfcap)
		return "PERFCAP_REG is 0";
	if (!PERFCAP_NCNTR(perfcap))
		return "it has no counters (PERFCAP_REG.NCNTR)";
	if (!PERFCAP_EGCNT(perfcap))
		return "it has no event groups (PERFCAP_REG.EGCNT)";
	if (!(perfcap & PERFCAP_IOS))
		return "its counters raise no interrupt (PERFCAP_REG.IOS)";
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!(eccap3 >> needed[i].bit & 1))
			return needed[i].why;
	return NULL;
}

/* What counter @c says of itself. Its events count for the unit even where the counter is then left
 * out. */
static void read_own(struct vtd_driver *d, unsigned c, uint32_t cap)
{
	memset(d->cntr_evcap[c], 0, sizeof(d->cntr_evcap[c]));
	for (unsigned k = 0; k < CNTRCAP_EGCNT(cap); k++) {
		uint32_t entry = rd32(d, config_reg(d, c) + CFG_CNTREVCAP + 4 * k);

		if (EVCAP_EGI(entry) >= d->egcnt)
			continue;
		d->cntr_evcap[c][EVCAP_EGI(entry)] = EVCAP_ES(entry);
		d->evcap[EVCAP_EGI(entry)] |= EVCAP_ES(entry);
	}
}

static void read_counters(struct vtd_driver *d)
{
	unsigned all = d->ncounters;

	for (unsigned g = 0; g < d->egcnt; g++) {
		d->evcap[g] = EVCAP_ES(rd64(d, PERFEVNTCAP_REG + 8 * g));
		for (unsigned c = 0; c < all; c++)
			d->cntr_evcap[c][g] = d->evcap[g];
	}
	for (unsigned c = 0; c < all; c++) {
		uint32_t cap = rd32(d, config_reg(d, c) + CFG_CNTRCAP);

		if (!(cap & CNTRCAP_PCC))
			continue;
		read_own(d, c, cap);
		/* One of another width or without interrupt ends the list. */
		if (CNTRCAP_CW(cap) != d->width || !(cap & CNTRCAP_IOS)) {
			d->ncounters = c;
			break;
		}
	}
}

static void read_capabilities(struct vtd_driver *d)
{
	d->perfcap = rd64(d, PERFCAP_REG);
	d->filters = PERFCAP_FILTERS(d->perfcap);
	d->ncounters =
		PERFCAP_NCNTR(d->perfcap) < MAX_COUNTERS ? PERFCAP_NCNTR(d->perfcap) : MAX_COUNTERS;
	d->egcnt = PERFCAP_EGCNT(d->perfcap) < GROUPS ? PERFCAP_EGCNT(d->perfcap) : GROUPS - 1;
	d->width = PERFCAP_CW(d->perfcap);
	d->stride = PERFCAP_STRIDE(d->perfcap);
	d->cfg_off = rd32(d, PERFCFGOFF_REG);
	d->ovf_off = rd32(d, PERFOVFOFF_REG);
	d->cntr_off = rd32(d, PERFCNTROFF_REG);
	read_counters(d);
}

/* format/: both spellings of the requester filter, for the ABI document and the driver differ in
 * it. */
static void make_formats(struct vtd_driver *d)
{
	struct quipu_pmu_format *f = d->formats;

	*f++ = (struct quipu_pmu_format){"event", "config:0-27"};
	*f++ = (struct quipu_pmu_format){"event_group", "config:28-31"};
	for (unsigned i = 0; i < FILTERS; i++) {
		if (!(d->filters >> i & 1))
			continue;
		*f++ = (struct quipu_pmu_format){filter_attr[i].enable, filter_attr[i].enable_spec};
		if (i == FILTER_RID)
			*f++ = (struct quipu_pmu_format){"filter_requester_en",
							 filter_attr[i].enable_spec};
		*f++ = (struct quipu_pmu_format){filter_attr[i].value, filter_attr[i].value_spec};
	}
}

static int make_events(struct vtd_driver *d)
{
	struct quipu_pmu_event *e = calloc(vtd_event_names_n + 1, sizeof(*e));

	d->events = e;
	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < vtd_event_names_n; i++) {
		const struct vtd_event_name *n = &vtd_event_names[i];

		if (!(d->evcap[n->group] & n->mask))
			continue;
		*e++ = (struct quipu_pmu_event){
			.name = n->name,
			.terms = n->terms,
			.desc = n->desc,
			.signal = QUIPU_SIGNAL_NONE,
			.exactness = QUIPU_MODELLED,
		};
	}
	return 0;
}

static void set_interrupt(struct vtd_driver *d)
{
	wr32(d, PERFINTRCTL_REG + IRQ_DATA, d->env.msi_data);
	wr32(d, PERFINTRCTL_REG + IRQ_ADDR, (uint32_t)d->env.msi_addr);
	wr32(d, PERFINTRCTL_REG + IRQ_UADDR, (uint32_t)(d->env.msi_addr >> 32));
	wr32(d, PERFINTRCTL_REG, 0);
}

static const struct quipu_pmu operations = {
	.type = -1,
	.capabilities = QUIPU_PMU_CAP_NO_EXCLUDE,
	.context = QUIPU_CONTEXT_UNCORE,
	.event_init = vtd_event_init,
	.add = vtd_add,
	.del = vtd_del,
	.start = vtd_start,
	.stop = vtd_stop,
	.read = vtd_read,
	.pmu_enable = vtd_pmu_enable,
	.pmu_disable = vtd_pmu_disable,
	.cpu_online = vtd_cpu_online,
	.cpu_offline = vtd_cpu_offline,
};

int vtd_driver_new(const struct vtd_driver_env *env, struct vtd_driver **out, const char **why)
{
	struct vtd_driver *d = calloc(1, sizeof(*d));
	int err = -ENOMEM;

	*out = NULL;
	*why = NULL;
	if (!d)
		return -ENOMEM;
	d->env = *env;
	snprintf(d->name, sizeof(d->name), "dmar%u", env->number);
	if (!(rd64(d, ECAP_REG) & ECAP_PMS))
		*why = "it has no performance monitoring (ECAP_REG.PMS)";
	else
		*why = refused(rd64(d, CAP_REG), rd64(d, PERFCAP_REG), rd64(d, ECCAP_REG + 24));
	if (*why) {
		free(d);
		return 0;
	}
	read_capabilities(d);
	make_formats(d);
	err = make_events(d);
	if (err)
		goto fail;
	d->pmu = operations;
	d->pmu.name = d->name;
	d->pmu.driver = d;
	d->pmu.formats = d->formats;
	d->pmu.events = d->events;
	d->pmu.cpumask = env->cpumask->text;
	err = quipu_core_register(env->core, &d->pmu);
	if (err)
		goto fail;
	set_interrupt(d);
	*out = d;
	return 0;
fail:
	vtd_driver_free(d);
	return err;
}

void vtd_driver_free(struct vtd_driver *d)
{
	if (!d)
		return;
	free(d->events);
	free(d);
}

void vtd_driver_remove(struct vtd_driver *d)
{
	if (!d)
		return;
	wr32(d, PERFINTRCTL_REG, (uint32_t)IRQ_IM);
	quipu_core_unregister(d->env.core, &d->pmu);
	vtd_driver_free(d);
}

struct quipu_pmu *vtd_driver_pmu(struct vtd_driver *d)
{
	return &d->pmu;
}

unsigned vtd_driver_counters(const struct vtd_driver *d)
{
	return d->ncounters;
}

struct quipu_event *vtd_driver_on(const struct vtd_driver *d, unsigned counter)
{
	return counter < MAX_COUNTERS ? d->on[counter] : NULL;
}
