/* SPDX-License-Identifier: BSD-2-Clause */
/* The x86 room: hardware and driver of the modelled core PMU, for trees with a node
 * "quipu,x86-pmu". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/x86/driver.h"
#include "platform/x86/room.h"

#define COMPATIBLE "quipu,x86-pmu"

struct room {
	struct quipu_core *core;
	struct quipu_x86 *hardware;
	struct x86_driver *driver;
};

static bool room_matches(const struct quipu_machine *m)
{
	return m->isa == QUIPU_ISA_X86_64 && quipu_machine_find(m, COMPATIBLE) >= 0;
}

static void on_pmi(void *arg, unsigned cpu, const struct quipu_interrupt *irq)
{
	x86_driver_interrupt(((struct room *)arg)->driver, cpu, irq);
}

static void room_destroy(void *self)
{
	struct room *r = self;

	x86_driver_free(r->driver);
	quipu_x86_free(r->hardware);
	free(r);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct room *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		goto fail;
	r->core = env->core;
	r->hardware = quipu_x86_new(env->machine, env->signals);
	if (r->hardware)
		err = x86_driver_new(env, r->hardware, &r->driver);
	if (err)
		goto fail;
	quipu_x86_set_handler(r->hardware, on_pmi, r);
	*self = r;
	return 0;
fail:
	quipu_note(env->notes, QUIPU_NOTE_WRONG, "/pmu", "the x86 PMU cannot be set up: %s",
		   strerror(-err));
	if (r)
		room_destroy(r);
	return err;
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct room *r = self;

	quipu_x86_interrupt(r->hardware, irq);
	quipu_core_work(r->core);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	x86_driver_describe(((struct room *)self)->driver, fn, arg);
}

static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	(void)self; /* the counters of a CPU that is off stand still by themselves */
	(void)cpu;
	(void)online;
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
	.cpu_online = room_cpu_online,
};
