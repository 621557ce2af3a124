/* SPDX-License-Identifier: BSD-2-Clause */
/* The x86 room: hardware and driver of the modelled core PMU, for trees with a node
 * "quipu,x86-pmu". */
#include <errno.h>
#include <stdlib.h>

#include "platform/core_pmu.h"
#include "platform/x86/driver.h"
#include "platform/x86/room.h"

#define COMPATIBLE "quipu,x86-pmu"

static bool room_matches(const struct quipu_machine *m)
{
	return m->isa == QUIPU_ISA_X86_64 && quipu_machine_find(m, COMPATIBLE) >= 0;
}

static void on_pmi(void *arg, unsigned cpu, const struct quipu_interrupt *irq)
{
	x86_driver_interrupt(((struct core_room *)arg)->driver, cpu, irq);
}

static void down(struct core_room *r)
{
	x86_driver_free(r->driver);
	quipu_x86_free(r->hardware);
}

static int up(const struct quipu_platform_env *env, struct core_room *r)
{
	struct x86_driver *driver = NULL;
	int err;

	r->hardware = quipu_x86_new(env->machine, env->signals);
	if (!r->hardware)
		return -ENOMEM;
	err = x86_driver_new(env, r->hardware, &driver);
	r->driver = driver;
	if (!err)
		quipu_x86_set_handler(r->hardware, on_pmi, r);
	return err;
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	return core_room_create(env, "the x86 PMU", up, down, self);
}

static void room_destroy(void *self)
{
	down(self);
	free(self);
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct core_room *r = self;

	quipu_x86_interrupt(r->hardware, irq);
	quipu_core_work(r->core);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	x86_driver_describe(((struct core_room *)self)->driver, fn, arg);
}

static uint64_t room_interrupts(void *self, unsigned cpu)
{
	return x86_driver_pmis(((struct core_room *)self)->driver, cpu);
}

static const char *const room_nodes[] = {COMPATIBLE, NULL};

const struct quipu_platform quipu_platform_x86 = {
	.name = "x86",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = core_room_cpu_online,
	.interrupts = room_interrupts,
};
