/* SPDX-License-Identifier: BSD-2-Clause */
/* nest_* and core_imc: counting for a chip or a core, and the CPU that speaks for it. IMC sheet 4.3
 * to 4.7. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/imc/driver_impl.h"

/* ---- nest ---- */

/* Step 8: the region of the CPU's chip, if the unit is there. */
static int nest_address(struct imc_driver *d, const struct imc_pmu *p, int cpu, uint64_t *address)
{
	uint32_t id = d->chip_id[d->node[cpu]];

	for (unsigned i = 0; i < p->unit->nchips; i++)
		if (p->unit->chip[i].id == id) {
			*address = p->unit->chip[i].region;
			return 0;
		}
	quipu_core_reason(d->core, "chip %u of CPU %d has no %s", id, cpu, p->name);
	return -ENODEV;
}

static int nest_get(struct imc_driver *d, unsigned node, unsigned cpu)
{
	int err;

	if (!d->nest_refs[node]) {
		err = imc_status(d, "starting the nest counters",
				 imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_START, QUIPU_OPAL_IMC_NEST, 0,
					  cpu));
		if (err)
			return err;
	}
	d->nest_refs[node]++;
	return 0;
}

static void nest_put(struct imc_driver *d, unsigned node, unsigned cpu)
{
	/* 0: the last CPU of the node went away, and the engine with it. */
	if (d->nest_refs[node] && !--d->nest_refs[node])
		imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_NEST, 0, cpu);
}

static int check_cpu(struct imc_driver *d, const struct imc_pmu *p, const struct quipu_event *e)
{
	int cpu = quipu_event_cpu(e);

	if (cpu >= 0 && (unsigned)cpu < d->machine->ncpus)
		return 0;
	quipu_core_reason(d->core,
			  "%s counts for a whole %s, not for a task; count CPU-wide (-a or -C)",
			  p->name, p->unit->type == IMC_NEST ? "chip" : "core");
	return -EINVAL;
}

static int nest_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct imc_pmu *p = pmu->driver;
	struct imc_driver *d = p->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);
	const struct quipu_attr *attr = quipu_event_attr(e);
	int err;

	if (attr->type != (uint32_t)pmu->type)
		return -ENOENT;
	err = attr->sample_period ? imc_check_counting(d, p, e) : 0;
	if (!err)
		err = check_cpu(d, p, e);
	if (!err)
		err = imc_check_counting(d, p, e);
	if (!err)
		err = nest_address(d, p, quipu_event_cpu(e), &hw->event_base);
	if (err)
		return err;
	hw->config = attr->config;
	hw->idx = -1;
	hw->config_base = d->node[quipu_event_cpu(e)];
	err = nest_get(d, (unsigned)hw->config_base, (unsigned)quipu_event_cpu(e));
	if (!err)
		imc_remark(d, p, e);
	return err;
}

static void nest_destroy(struct quipu_event *e)
{
	struct imc_driver *d = pmu_of(e)->driver;

	nest_put(d, (unsigned)quipu_event_hw(e)->config_base, (unsigned)quipu_event_cpu(e));
}

/* ---- core ---- */

static int core_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct imc_pmu *p = pmu->driver;
	struct imc_driver *d = p->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);
	const struct quipu_attr *attr = quipu_event_attr(e);
	unsigned core;
	int err;

	if (attr->type != (uint32_t)pmu->type)
		return -ENOENT;
	err = attr->sample_period ? imc_check_counting(d, p, e) : 0;
	if (!err)
		err = check_cpu(d, p, e);
	if (!err)
		err = imc_check_counting(d, p, e);
	if (err)
		return err;
	core = d->core_of[quipu_event_cpu(e)];
	if (!d->core_memory[core])
		return -ENODEV;
	/* Before reference and firmware: a refusal must not switch on, or off, what trace events
	 * use (sheet D12). */
	err = imc_mode_get(d, DOMAIN_CORE);
	if (err)
		return err;
	if (!d->core_refs[core]) {
		err = imc_status(d, "starting the core's counters",
				 imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_START, QUIPU_OPAL_IMC_CORE, 0,
					  (unsigned)quipu_event_cpu(e)));
		if (err) {
			imc_mode_put(d);
			return err;
		}
	}
	d->core_refs[core]++;
	hw->config = attr->config;
	hw->idx = -1;
	hw->event_base = d->core_memory[core];
	hw->config_base = core;
	imc_remark(d, p, e);
	return 0;
}

static void core_destroy(struct quipu_event *e)
{
	struct imc_driver *d = pmu_of(e)->driver;
	unsigned core = (unsigned)quipu_event_hw(e)->config_base;

	if (!d->core_refs[core])
		return; /* its CPUs went away, and the mode count with them */
	if (!--d->core_refs[core])
		imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_CORE, 0,
			 (unsigned)quipu_event_cpu(e));
	imc_mode_put(d);
}

/* ---- both ---- */

static void uncore_start(struct quipu_event *e, int flags)
{
	(void)flags;
	quipu_event_hw(e)->state = 0;
	imc_count_begin(e);
}

static void uncore_stop(struct quipu_event *e, int flags)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->state & QUIPU_HES_STOPPED)
		return;
	imc_count_update(e);
	hw->state |= QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
}

static int uncore_add(struct quipu_event *e, int flags)
{
	quipu_event_hw(e)->state = QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
	if (flags & QUIPU_EF_START)
		uncore_start(e, flags);
	return 0;
}

static void uncore_read(struct quipu_event *e)
{
	if (!(quipu_event_hw(e)->state & QUIPU_HES_STOPPED))
		imc_count_update(e);
}

/* ---- cpumask ---- */

static void show(char *text, size_t len, const int *cpus, unsigned n, unsigned ncpus)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		unsigned last = cpu;
		bool in = false;

		for (unsigned i = 0; i < n; i++)
			in |= cpus[i] == (int)cpu;
		if (!in)
			continue;
		for (bool more = true; more && last + 1 < ncpus;) {
			more = false;
			for (unsigned i = 0; i < n; i++)
				more |= cpus[i] == (int)last + 1;
			last += more;
		}
		used += (size_t)snprintf(text + used, len - used, last > cpu ? "%s%u-%u" : "%s%u",
					 used ? "," : "", cpu, last);
		cpu = last;
	}
}

static void show_masks(struct imc_driver *d)
{
	unsigned ncpus = d->machine->ncpus;

	show(d->nest_mask, 12 * (size_t)ncpus, d->nest_cpu, d->nchips, ncpus);
	show(d->core_mask, 12 * (size_t)ncpus, d->core_cpu, d->ncores, ncpus);
}

int imc_masks_new(struct imc_driver *d)
{
	unsigned ncpus = d->machine->ncpus;

	d->nest_cpu = malloc(IMC_MAX_CHIPS * sizeof(*d->nest_cpu));
	d->core_cpu = malloc(ncpus * sizeof(*d->core_cpu));
	d->nest_mask = malloc(12 * (size_t)ncpus);
	d->core_mask = malloc(12 * (size_t)ncpus);
	if (!d->nest_cpu || !d->core_cpu || !d->nest_mask || !d->core_mask)
		return -ENOMEM;
	for (unsigned cpu = ncpus; cpu-- > 0;) {
		d->nest_cpu[d->node[cpu]] = (int)cpu;
		d->core_cpu[d->core_of[cpu]] = (int)cpu;
	}
	show_masks(d);
	return 0;
}

/* The highest-numbered CPU of the same chip or core that is still there. */
static int heir(const struct imc_driver *d, const unsigned *of, unsigned cpu)
{
	for (int c = (int)d->machine->ncpus; c-- > 0;)
		if (d->online[c] && (unsigned)c != cpu && of[c] == of[cpu])
			return c;
	return -1;
}

static void nest_offline(struct quipu_pmu *pmu, unsigned cpu)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;
	unsigned node = d->node[cpu];
	int to = heir(d, d->node, cpu);

	d->online[cpu] = false;
	if (d->nest_cpu[node] == (int)cpu) {
		d->nest_cpu[node] = to;
		show_masks(d);
		if (to < 0 && d->nest_refs[node]) {
			imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_NEST, 0, cpu);
			d->nest_refs[node] = 0;
		}
	}
	if (to >= 0)
		quipu_core_migrate(d->core, pmu, cpu, (unsigned)to);
}

static void nest_online(struct quipu_pmu *pmu, unsigned cpu)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;

	d->online[cpu] = true;
	if (d->nest_cpu[d->node[cpu]] >= 0)
		return;
	imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_NEST, 0, cpu);
	d->nest_cpu[d->node[cpu]] = (int)cpu;
	show_masks(d);
}

static void core_offline(struct quipu_pmu *pmu, unsigned cpu)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;
	unsigned core = d->core_of[cpu];
	int to = heir(d, d->core_of, cpu);

	d->online[cpu] = false;
	if (d->core_cpu[core] == (int)cpu) {
		d->core_cpu[core] = to;
		show_masks(d);
		if (to < 0 && d->core_refs[core]) {
			imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_CORE, 0, cpu);
			while (d->mode == DOMAIN_CORE && d->core_refs[core] && d->core_refs[core]--)
				imc_mode_put(d);
			d->core_refs[core] = 0;
		}
	}
	if (to >= 0)
		quipu_core_migrate(d->core, pmu, cpu, (unsigned)to);
}

static void core_online(struct quipu_pmu *pmu, unsigned cpu)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;

	d->online[cpu] = true;
	if (d->core_cpu[d->core_of[cpu]] < 0) {
		d->core_cpu[d->core_of[cpu]] = (int)cpu;
		show_masks(d);
	}
}

static void uncore_operations(struct quipu_pmu *pmu)
{
	pmu->context = QUIPU_CONTEXT_UNCORE;
	pmu->add = uncore_add;
	pmu->del = uncore_stop;
	pmu->start = uncore_start;
	pmu->stop = uncore_stop;
	pmu->read = uncore_read;
}

void imc_nest_operations(struct quipu_pmu *pmu)
{
	uncore_operations(pmu);
	pmu->event_init = nest_init;
	pmu->event_destroy = nest_destroy;
	pmu->cpu_online = nest_online;
	pmu->cpu_offline = nest_offline;
}

void imc_core_operations(struct quipu_pmu *pmu)
{
	uncore_operations(pmu);
	pmu->event_init = core_init;
	pmu->event_destroy = core_destroy;
	pmu->cpu_online = core_online;
	pmu->cpu_offline = core_offline;
}
