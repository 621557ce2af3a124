/* SPDX-License-Identifier: BSD-2-Clause */
/* The IMC room: hardware, firmware and drivers of a tree with a node imc-counters. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/imc/driver.h"
#include "platform/imc/hardware.h"
#include "platform/imc/room.h"

#define COMPATIBLE "ibm,opal-in-memory-counters"

struct room {
	struct quipu_platform_env env;
	struct quipu_imc *imc;
	struct imc_tree tree;
	struct imc_driver *driver;
	uint64_t now; /* where nobody tells the time */
};

static bool room_matches(const struct quipu_machine *m)
{
	return m->isa == QUIPU_ISA_PPC64LE && quipu_machine_find(m, COMPATIBLE) >= 0;
}

static uint64_t room_now(void *arg)
{
	struct room *r = arg;

	return r->env.now ? r->env.now(r->env.now_arg) : r->now;
}

static void room_destroy(void *self)
{
	struct room *r = self;

	imc_driver_free(r->driver);
	quipu_imc_free(r->imc);
	imc_tree_free(&r->tree);
	free(r);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct room *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->env = *env;
	err = imc_tree_read(env->machine, true, env->notes, &r->tree);
	if (!err) {
		r->imc = imc_new(env->machine, env->signals, room_now, r, &r->tree);
		if (r->imc)
			quipu_imc_set_log(r->imc, env->trace, env->trace_arg);
		err = r->imc ? imc_driver_new(env, r->imc, &r->tree, &r->driver) : -ENOMEM;
	}
	if (err) {
		quipu_note(env->notes, QUIPU_NOTE_WRONG, "/imc-counters",
			   "the counters cannot be set up: %s", strerror(-err));
		room_destroy(r);
		return err;
	}
	*self = r;
	return 0;
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	quipu_imc_interrupt(((struct room *)self)->imc, irq);
}

static void room_advance(void *self, uint64_t now_ns)
{
	struct room *r = self;

	if (now_ns > r->now)
		r->now = now_ns;
	quipu_imc_advance(r->imc);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	struct room *r = self;
	char line[160];

	fn(arg, 0,
	   "in-memory collection counters (IMC): OPAL, nest microcode, PDBAR and LDBAR engines, trace mode");
	snprintf(
		line, sizeof(line),
		"nest region at offset 0x%x of each chip's HOMER, 0x%x bytes; availability 0x%016" PRIx64,
		r->tree.region_offset, r->tree.region_size, r->tree.available);
	fn(arg, 1, line);
	fn(arg, 1,
	   r->tree.exact ? "counters are posted before every read (quipu,imc-exact)"
			 : "counters are posted every ms; nest groups by their periods");
	fn(arg, 1,
	   "a line of memory lies on the program's chip, behind the port of its address (modelled)");
	imc_driver_describe(r->driver, fn, arg);
}

static void room_report(void *self, quipu_describe_fn *fn, void *arg)
{
	imc_driver_report(((struct room *)self)->driver, fn, arg);
}

static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	(void)self; /* the core tells the PMUs */
	(void)cpu;
	(void)online;
}

struct quipu_imc *imc_room_hardware(void *self)
{
	return ((struct room *)self)->imc;
}

struct imc_driver *imc_room_driver(void *self)
{
	return ((struct room *)self)->driver;
}

static const char *const room_nodes[] = {COMPATIBLE, "ibm,imc-counters", NULL};

const struct quipu_platform quipu_platform_imc = {
	.name = "imc",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = room_cpu_online,
	.advance = room_advance,
	.report = room_report,
};
