/* SPDX-License-Identifier: BSD-2-Clause */
/* The POWER9 core PMU: hardware and driver, for trees with a node "quipu,power9-pmu". */
#include <errno.h>
#include <stdlib.h>

#include "platform/core_pmu.h"
#include "platform/power/driver.h"
#include "platform/power/room.h"

#define COMPATIBLE "quipu,power9-pmu"

static bool room_matches(const struct quipu_machine *m)
{
	/* Under a hypervisor the room lpar has the same hardware and driver. */
	return m->isa == QUIPU_ISA_PPC64LE && quipu_machine_find(m, COMPATIBLE) >= 0 &&
	       quipu_machine_find(m, "quipu,hypervisor") < 0;
}

static void on_pmi(void *arg, unsigned cpu, const struct quipu_interrupt *irq)
{
	power_driver_interrupt(((struct core_room *)arg)->driver, cpu, irq);
}

static void down(struct core_room *r)
{
	power_driver_free(r->driver);
	power_pmu_free(r->hardware);
}

static int up(const struct quipu_platform_env *env, struct core_room *r)
{
	struct power_driver *driver = NULL;
	int err;

	r->hardware = power_pmu_new(env->machine, env->signals);
	if (!r->hardware)
		return -ENOMEM;
	err = power_driver_new(env, r->hardware, &driver);
	r->driver = driver;
	if (!err)
		power_pmu_set_handler(r->hardware, on_pmi, r);
	return err;
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	return core_room_create(env, "the core PMU", up, down, self);
}

static void room_destroy(void *self)
{
	down(self);
	free(self);
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct core_room *r = self;

	power_pmu_interrupt(r->hardware, irq);
	quipu_core_work(r->core);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	power_driver_describe(((struct core_room *)self)->driver, fn, arg);
}

static uint64_t room_interrupts(void *self, unsigned cpu)
{
	return power_driver_pmis(((struct core_room *)self)->driver, cpu);
}

struct power_driver *power_room_driver(void *self)
{
	return ((struct core_room *)self)->driver;
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
	.cpu_online = core_room_cpu_online,
	.interrupts = room_interrupts,
};
