/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A partition's machine, for trees with a node "quipu,hypervisor": firmware (RTAS), the core PMU
 * with its driver (src/platform/power, as a partition), and the declared activity of the
 * hypervisor.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include "platform/lpar/charge.h"
#include "platform/lpar/room.h"
#include "platform/power/driver.h"

#define DISPATCH_SLOT (QUIPU_SLOTS_HARDWARE - 1)
#define NS_PER_US     1000u

struct room {
	struct quipu_core *core;
	struct quipu_lpar *lpar;
	struct lpar_charges charges;
	struct power_pmu *pmu;
	struct power_driver *driver;
	struct quipu_signals *signals;
	unsigned ncpus;
	uint64_t period; /* of dispatches, cycles; 0: none */
	uint64_t *due;	 /* cycles of the programs' own at which the next one is, by CPU */
	uint64_t (*now)(void *arg);
	void *now_arg;
};

static bool room_matches(const struct quipu_machine *m)
{
	return m->isa == QUIPU_ISA_PPC64LE && lpar_tree_node(m) >= 0;
}

/* ---- dispatches of a shared processor: a deadline of the room's own on each CPU ---- */

static uint64_t cycles_now(const struct room *r, unsigned cpu)
{
	return r->signals->ops->read(r->signals, cpu, QUIPU_SIGNAL_CYCLES);
}

static void arm_dispatch(struct room *r, unsigned cpu)
{
	const struct quipu_deadline d = {
		.signal = QUIPU_SIGNAL_CYCLES, .at = r->due[cpu], .overflow = QUIPU_OVERFLOW_BELL};

	r->signals->ops->arm(r->signals, cpu, DISPATCH_SLOT, &d);
}

static int start_dispatches(struct room *r, const struct quipu_machine *m)
{
	if (!r->charges.period_us || !r->charges.trigger[LPAR_TRIGGER_DISPATCH].n)
		return 0;
	r->period = r->charges.period_us * m->hz / 1000000;
	r->due = calloc(r->ncpus, sizeof(*r->due));
	if (!r->due || !r->period)
		return r->due ? -EINVAL : -ENOMEM;
	for (unsigned cpu = 0; cpu < r->ncpus; cpu++) {
		r->due[cpu] = r->period;
		arm_dispatch(r, cpu);
	}
	return 0;
}

/* Time that the hypervisor itself takes is the virtual processor's too: the window ends earlier by
 * that, and what it charges here counts for the next one. */
static void dispatch(struct room *r, const struct quipu_interrupt *irq)
{
	uint64_t now = cycles_now(r, irq->cpu);

	if (!r->period || now < r->due[irq->cpu])
		return;
	lpar_charges_apply(&r->charges, irq, LPAR_TRIGGER_DISPATCH, 1);
	while (r->due[irq->cpu] <= now)
		r->due[irq->cpu] += r->period;
	arm_dispatch(r, irq->cpu);
}

/* ---- the room ---- */

static void on_pmi(void *arg, unsigned cpu, const struct quipu_interrupt *irq)
{
	power_driver_interrupt(((struct room *)arg)->driver, cpu, irq);
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct room *r = self;

	power_pmu_interrupt(r->pmu, irq);
	if (irq->cpu < r->ncpus && irq->slots >> DISPATCH_SLOT & 1)
		dispatch(r, irq);
	quipu_core_work(r->core);
}

static uint32_t room_watches(void *self)
{
	return lpar_charges_watches(&((struct room *)self)->charges);
}

static void room_activity(void *self, const struct quipu_interrupt *at, enum quipu_activity what,
			  uint64_t units)
{
	lpar_charges_apply(&((struct room *)self)->charges, at, what, units);
}

static void room_destroy(void *self)
{
	struct room *r = self;

	power_driver_free(r->driver);
	power_pmu_free(r->pmu);
	lpar_charges_free(&r->charges);
	quipu_lpar_free(r->lpar);
	free(r->due);
	free(r);
}

static bool has_h_perfmon(const struct quipu_machine *m)
{
	int node = fdt_path_offset(m->fdt, "/rtas");

	return node >= 0 &&
	       quipu_machine_has_string(m, node, "ibm,hypertas-functions", "hcall-perfmon");
}

static uint64_t firmware_now(void *arg)
{
	struct room *r = arg;

	return r->now ? r->now(r->now_arg) : 0;
}

static int make(struct room *r, const struct quipu_platform_env *env)
{
	const struct lpar_tree t = {env->machine, env->notes};
	struct quipu_hvmap *map;
	int err;

	r->core = env->core;
	r->signals = env->signals;
	r->ncpus = env->machine->ncpus;
	r->now = env->now;
	r->now_arg = env->now_arg;
	r->lpar = quipu_lpar_new(env->machine, env->notes);
	if (!r->lpar)
		return -EINVAL;
	quipu_lpar_set_clock(r->lpar, firmware_now, r);
	map = quipu_lpar_map(r->lpar);
	err = lpar_charges_read(&r->charges, &t, map);
	quipu_hvmap_put(map);
	if (err)
		return err;
	r->pmu = power_pmu_new(env->machine, env->signals);
	if (!r->pmu)
		return -ENOMEM;
	power_pmu_set_partition(r->pmu, has_h_perfmon(env->machine));
	power_pmu_set_handler(r->pmu, on_pmi, r);
	err = lpar_charges_start(&r->charges, r->pmu, env); /* tells the PMU what they bring */
	if (!err)
		err = power_driver_new(env, r->pmu, &r->driver);
	return err ? err : start_dispatches(r, env->machine);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct room *r = calloc(1, sizeof(*r));
	int err = r ? make(r, env) : -ENOMEM;

	if (!err) {
		*self = r;
		return 0;
	}
	quipu_note(env->notes, QUIPU_NOTE_WRONG, "/" LPAR_COMPATIBLE,
		   "the partition cannot be set up: %s", strerror(-err));
	if (r)
		room_destroy(r);
	return err;
}

static void describe_partition(const struct quipu_partition *p, quipu_describe_fn *fn, void *arg)
{
	struct quipu_partition_info info;
	char line[200];

	quipu_partition_info(p, &info);
	snprintf(line, sizeof(line),
		 "partition %u \"%s\": %" PRIu64 " MiB of real mode area, %u-bit RTAS cells, %s",
		 info.number, info.name, info.rma >> 20, 8 * info.cell_bytes,
		 p->authority ? "may ask for hypervisor names"
			      : "has no authority to ask for hypervisor names");
	fn(arg, 1, line);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	struct room *r = self;
	struct quipu_hvmap *map = quipu_lpar_map(r->lpar);
	int64_t token = quipu_lpar_token(r->lpar, QUIPU_LPAR_PERFTOOLS);
	char line[200];

	snprintf(line, sizeof(line), "hypervisor: %zu functions in %zu modules",
		 quipu_hvmap_size(map), quipu_hvmap_modules(map));
	fn(arg, 0, line);
	quipu_hvmap_put(map);
	if (token < 0)
		snprintf(line, sizeof(line), "RTAS has no " QUIPU_LPAR_PERFTOOLS);
	else
		snprintf(line, sizeof(line), "RTAS " QUIPU_LPAR_PERFTOOLS ", token 0x%" PRIx64,
			 (uint64_t)token);
	fn(arg, 1, line);
	for (size_t i = 0; i < quipu_lpar_partitions(r->lpar); i++)
		describe_partition(quipu_lpar_partition_at(r->lpar, i), fn, arg);
	if (r->charges.n) {
		snprintf(
			line, sizeof(line),
			"hypervisor activity is declared by this description (%u charges, %u.%03u cycles an "
			"instruction); no hypervisor code is executed: modelled",
			r->charges.n, r->charges.cpi_milli / 1000, r->charges.cpi_milli % 1000);
		fn(arg, 1, line);
	}
	power_driver_describe(r->driver, fn, arg);
}

static void room_report(void *self, quipu_describe_fn *fn, void *arg)
{
	lpar_charges_report(&((struct room *)self)->charges, fn, arg);
}

static uint64_t room_interrupts(void *self, unsigned cpu)
{
	return power_driver_pmis(((struct room *)self)->driver, cpu);
}

static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	(void)self; /* the counters of a CPU that is off stand still by themselves */
	(void)cpu;
	(void)online;
}

struct quipu_lpar *lpar_room_firmware(void *self)
{
	return ((struct room *)self)->lpar;
}

static const char *const room_nodes[] = {LPAR_COMPATIBLE, "quipu,power9-pmu", NULL};

const struct quipu_platform quipu_platform_lpar = {
	.name = "lpar",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = room_cpu_online,
	.watches = room_watches,
	.activity = room_activity,
	.report = room_report,
	.interrupts = room_interrupts,
};
