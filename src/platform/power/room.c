/* SPDX-License-Identifier: BSD-2-Clause */
/* The POWER9 core PMU: hardware and driver, for trees with a node "quipu,power9-pmu". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/power/driver.h"
#include "platform/power/room.h"

#define COMPATIBLE "quipu,power9-pmu"

struct room {
	struct quipu_core *core;
	struct power_pmu *hardware;
	struct power_driver *driver;
};

static bool room_matches(const struct quipu_machine *m)
{
	/* Under a hypervisor the room lpar has the same hardware and driver. */
	return m->isa == QUIPU_ISA_PPC64LE && quipu_machine_find(m, COMPATIBLE) >= 0 &&
	       quipu_machine_find(m, "quipu,hypervisor") < 0;
}

static void on_pmi(void *arg, unsigned cpu, const struct quipu_interrupt *irq)
{
	power_driver_interrupt(((struct room *)arg)->driver, cpu, irq);
}

static void room_destroy(void *self)
{
	struct room *r = self;

	power_driver_free(r->driver);
	power_pmu_free(r->hardware);
	free(r);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct room *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		goto fail;
	r->core = env->core;
	r->hardware = power_pmu_new(env->machine, env->signals);
	if (r->hardware)
		err = power_driver_new(env, r->hardware, &r->driver);
	if (err)
		goto fail;
	power_pmu_set_handler(r->hardware, on_pmi, r);
	*self = r;
	return 0;
fail:
	quipu_note(env->notes, QUIPU_NOTE_WRONG, "/pmu", "the core PMU cannot be set up: %s",
		   strerror(-err));
	if (r)
		room_destroy(r);
	return err;
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct room *r = self;

	power_pmu_interrupt(r->hardware, irq);
	quipu_core_work(r->core);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	power_driver_describe(((struct room *)self)->driver, fn, arg);
}

static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	(void)self; /* the counters of a CPU that is off stand still by themselves */
	(void)cpu;
	(void)online;
}

static uint64_t room_interrupts(void *self, unsigned cpu)
{
	return power_driver_pmis(((struct room *)self)->driver, cpu);
}

struct power_driver *power_room_driver(void *self)
{
	return ((struct room *)self)->driver;
}

static const char *const room_nodes[] = {COMPATIBLE, NULL};

const struct quipu_platform quipu_platform_power = {
	.name = "power",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = room_cpu_online,
	.interrupts = room_interrupts,
};
