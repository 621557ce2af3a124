/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_imc: counting for a task, by the engine of the thread that it runs on. IMC sheet 4.4, 4.5.
 *
 * Kept from Linux: taking one of several events of a task off a CPU clears LDBAR's enable bit, and
 * the others stand still until the next one is put on.
 */
#include <errno.h>

#include "platform/imc/driver_impl.h"

static int thread_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct imc_pmu *p = pmu->driver;
	struct imc_driver *d = p->driver;
	const struct quipu_attr *attr = quipu_event_attr(e);
	int err;

	if (attr->type != (uint32_t)pmu->type)
		return -ENOENT;
	if (!quipu_core_perfmon(d->core)) {
		quipu_core_reason(d->core, "thread_imc needs CAP_PERFMON");
		return -EACCES;
	}
	err = imc_check_counting(d, p, e);
	if (err)
		return err;
	if (!quipu_event_task(e)) {
		quipu_core_reason(
			d->core,
			"thread_imc counts tasks, not whole CPUs; give it a program (without -a and -C)");
		return -EINVAL;
	}
	err = imc_mode_get(d, DOMAIN_THREAD);
	if (err)
		return err;
	quipu_event_hw(e)->config = attr->config;
	quipu_event_hw(e)->idx = -1;
	imc_remark(d, p, e);
	return 0;
}

static void thread_destroy(struct quipu_event *e)
{
	imc_mode_put(pmu_of(e)->driver);
}

static void thread_start(struct quipu_event *e, int flags)
{
	(void)flags;
	quipu_event_hw(e)->state = 0;
	imc_count_begin(e);
}

static void thread_stop(struct quipu_event *e, int flags)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->state & QUIPU_HES_STOPPED)
		return;
	imc_count_update(e);
	hw->state |= QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
}

static int thread_add(struct quipu_event *e, int flags)
{
	struct imc_driver *d = pmu_of(e)->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned cpu = (unsigned)quipu_event_cpu_now(e), core = d->core_of[cpu];

	hw->event_base = d->thread_memory[cpu];
	hw->state = QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
	if (flags & QUIPU_EF_START)
		thread_start(e, flags);
	if (!d->core_memory[core])
		return -EINVAL;
	imc_ldbar(d, cpu, d->thread_memory[cpu] | QUIPU_LDBAR_ENABLE);
	if (!d->core_refs[core] &&
	    imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_START, QUIPU_OPAL_IMC_CORE, 0, cpu)) {
		quipu_core_reason(d->core, "firmware does not start the core's engine");
		return -EINVAL;
	}
	d->core_refs[core]++;
	return 0;
}

static void thread_del(struct quipu_event *e, int flags)
{
	struct imc_driver *d = pmu_of(e)->driver;
	unsigned cpu = (unsigned)quipu_event_cpu_now(e), core = d->core_of[cpu];
	uint64_t ldbar = 0;

	if (d->core_refs[core] && !--d->core_refs[core])
		imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_CORE, 0, cpu);
	quipu_imc_ldbar_read(d->imc, cpu, &ldbar);
	imc_ldbar(d, cpu, ldbar & ~QUIPU_LDBAR_ENABLE);
	thread_stop(e, flags);
}

static void thread_read(struct quipu_event *e)
{
	if (!(quipu_event_hw(e)->state & QUIPU_HES_STOPPED))
		imc_count_update(e);
}

static void thread_offline(struct quipu_pmu *pmu, unsigned cpu)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;
	uint64_t ldbar = 0;

	quipu_imc_ldbar_read(d->imc, cpu, &ldbar);
	imc_ldbar(d, cpu, ldbar & ~QUIPU_LDBAR_ENABLE);
}

static void thread_online(struct quipu_pmu *pmu, unsigned cpu)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;

	imc_ldbar(d, cpu, 0);
}

void imc_thread_operations(struct quipu_pmu *pmu)
{
	pmu->context = QUIPU_CONTEXT_SOFTWARE;
	pmu->event_init = thread_init;
	pmu->event_destroy = thread_destroy;
	pmu->add = thread_add;
	pmu->del = thread_del;
	pmu->start = thread_start;
	pmu->stop = thread_stop;
	pmu->read = thread_read;
	pmu->cpu_online = thread_online;
	pmu->cpu_offline = thread_offline;
}
