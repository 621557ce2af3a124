/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_imc: records that the hardware left in memory, delivered as samples when an event is
 * stopped. IMC sheet 4.6. No interrupt is involved anywhere: nothing here is called when a record
 * is written.
 *
 * Kept from Linux: the count is always 0; times and ids are those of the delivery; after one,
 * nothing more comes until the buffer has wrapped past slot 0.
 */
#include <errno.h>

#include <quipu/attr.h>

#include "platform/imc/driver_impl.h"

#define RECORD_BYTES 64u
#define PAGE_BYTES   4096u
#define KERNEL_START UINT64_C(0xc000000000000000)
#define POWER9_PVR   0x4eu
#define VARIABLE                                                                                   \
	(PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |                      \
	 PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX)

static int trace_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct imc_driver *d = ((struct imc_pmu *)pmu->driver)->driver;
	const struct quipu_attr *attr = quipu_event_attr(e);
	int err;

	if (attr->type != (uint32_t)pmu->type)
		return -ENOENT;
	if (!quipu_core_perfmon(d->core)) {
		quipu_core_reason(d->core, "trace_imc needs CAP_PERFMON");
		return -EACCES;
	}
	if (!attr->sample_period) {
		quipu_core_reason(d->core, "trace_imc only samples: use `quipu record`");
		return -ENOENT;
	}
	if (attr->sample_type & VARIABLE) {
		quipu_core_reason(
			d->core,
			"a trace record holds an address and counters: no registers, stacks, branches or raw data");
		return -EOPNOTSUPP;
	}
	err = imc_mode_get(d, DOMAIN_TRACE);
	if (err)
		return err;
	quipu_event_hw(e)->config = attr->config;
	quipu_event_hw(e)->idx = -1;
	return 0;
}

static void trace_destroy(struct quipu_event *e)
{
	imc_mode_put(pmu_of(e)->driver);
}

/* ---- delivery ---- */

static unsigned cpumode(const struct imc_driver *d, uint64_t ip, uint64_t val)
{
	static const unsigned by_state[] = {PERF_RECORD_MISC_GUEST_KERNEL,
					    PERF_RECORD_MISC_GUEST_USER, PERF_RECORD_MISC_KERNEL,
					    PERF_RECORD_MISC_USER};

	if (d->tree->pvr >> 16 == POWER9_PVR)
		return ip >= KERNEL_START ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	return by_state[quipu_ibm_field(val, 0, 1)];
}

/* One record. False: the walk ends here. */
static bool deliver_one(struct imc_driver *d, struct quipu_event *e, const uint8_t *record,
			uint64_t address, uint64_t *last)
{
	uint64_t tb1 = bits_be64(record + 8 * QUIPU_TRACE_TB1),
		 ip = bits_be64(record + 8 * QUIPU_TRACE_IP);
	struct quipu_sample sample = {.ip = ip, .no_chain = true};

	if (tb1 <= *last || (tb1 & QUIPU_TRACE_TB_MASK) != bits_be64(record + 8 * QUIPU_TRACE_TB2))
		return false;
	*last = tb1;
	sample.cpumode = cpumode(d, ip, bits_be64(record + 8 * QUIPU_TRACE_VAL));
	if (quipu_event_sample(e, &sample)) {
		d->no_room++;
		return false;
	}
	quipu_imc_trace_taken(d->imc, (unsigned)quipu_event_cpu_now(e), address);
	return true;
}

/* A page at a time: each look at the memory brings all of the hardware up to date. */
static void deliver(struct imc_driver *d, struct quipu_event *e, uint64_t buffer, uint32_t size)
{
	uint8_t page[PAGE_BYTES];
	uint64_t last = 0;

	for (uint32_t at = 0; at + RECORD_BYTES <= size; at += PAGE_BYTES) {
		uint32_t n = size - at < PAGE_BYTES ? size - at : PAGE_BYTES;

		if (quipu_imc_read(d->imc, buffer + at, page, n))
			return;
		for (uint32_t k = 0; k + RECORD_BYTES <= n; k += RECORD_BYTES)
			if (!deliver_one(d, e, page + k, buffer + at + k, &last))
				return;
	}
}

static void trace_start(struct quipu_event *e, int flags)
{
	(void)flags;
	quipu_event_hw(e)->state = 0;
}

static void trace_stop(struct quipu_event *e, int flags)
{
	struct imc_pmu *p = pmu_of(e);
	struct imc_driver *d = p->driver;
	uint64_t buffer = d->trace_memory[quipu_event_cpu_now(e)];

	(void)flags;
	deliver(d, e, buffer, p->unit->size);
	quipu_imc_write64(d->imc, buffer, 0);
}

static int trace_add(struct quipu_event *e, int flags)
{
	struct imc_driver *d = pmu_of(e)->driver;
	unsigned cpu = (unsigned)quipu_event_cpu_now(e), core = d->core_of[cpu];

	imc_ldbar(d, cpu, d->trace_memory[cpu] | QUIPU_LDBAR_TRACE);
	if (!d->trace_refs[core] &&
	    imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_START, QUIPU_OPAL_IMC_TRACE, 0, cpu)) {
		quipu_core_reason(d->core, "firmware does not start the core's engine");
		return -EINVAL;
	}
	d->trace_refs[core]++;
	if (flags & QUIPU_EF_START)
		trace_start(e, flags);
	return 0;
}

static void trace_del(struct quipu_event *e, int flags)
{
	struct imc_driver *d = pmu_of(e)->driver;
	unsigned cpu = (unsigned)quipu_event_cpu_now(e), core = d->core_of[cpu];

	if (d->trace_refs[core] && !--d->trace_refs[core])
		imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_TRACE, 0, cpu);
	trace_stop(e, flags);
}

static void trace_read(struct quipu_event *e)
{
	(void)e; /* there is no count */
}

/* The counter advances with the thread's cycles. */
static quipu_signal trace_signal(const struct quipu_event *e, bool *filtered)
{
	(void)e;
	*filtered = false;
	return QUIPU_SIGNAL_CYCLES;
}

static void trace_online(struct quipu_pmu *pmu, unsigned cpu)
{
	imc_ldbar(((struct imc_pmu *)pmu->driver)->driver, cpu, 0);
}

void imc_trace_operations(struct quipu_pmu *pmu)
{
	pmu->context = QUIPU_CONTEXT_SOFTWARE;
	pmu->event_init = trace_init;
	pmu->event_destroy = trace_destroy;
	pmu->add = trace_add;
	pmu->del = trace_del;
	pmu->start = trace_start;
	pmu->stop = trace_stop;
	pmu->read = trace_read;
	pmu->signal = trace_signal;
	pmu->cpu_online = trace_online;
}
