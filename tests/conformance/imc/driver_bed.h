/* SPDX-License-Identifier: BSD-2-Clause */
/* The room of machine power9 on a core of its own, moved by hand: what driver.c and delivery.c have
 * in common. All static: each test is one file. */
#ifndef TESTS_IMC_DRIVER_BED_H
#define TESTS_IMC_DRIVER_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/event.h>

#include "bed.h"
#include "platform/imc/driver.h"
#include "platform/imc/room.h"
#include "platform/power/room.h"

#define MS    UINT64_C(1000000)
#define PAGES 64

static struct bed bed; /* its imc is the room's */
static struct quipu_core *core;
static struct quipu_task *task;
static void *room, *power; /* power: power_up */
static char calls[8192];   /* between driver and firmware, a line each */
static unsigned ncalls;

static uint64_t now_of(void *arg, unsigned cpu)
{
	struct quipu_signals *s = quipu_manual_signals_base(bed.manual);

	(void)arg;
	(void)cpu;
	return bed.ns +
	       (bed.running ? (s->ops->read(s, bed.lead, QUIPU_SIGNAL_CYCLES) - bed.from) / 3 : 0);
}

static uint64_t room_time(void *arg)
{
	return now_of(arg, 0);
}

static void on_trace(void *arg, const char *line)
{
	(void)arg;
	if (strncmp(line, "OPAL", 4))
		return;
	ncalls++;
	if (strlen(calls) + strlen(line) + 2 < sizeof(calls))
		strcat(strcat(calls, line), "\n");
}

static void forget_calls(void)
{
	calls[0] = '\0';
	ncalls = 0;
}

static void on_interrupt(void *arg, const struct quipu_interrupt *irq)
{
	(void)arg;
	quipu_platform_imc.interrupt(room, irq);
	if (power)
		quipu_platform_power.interrupt(power, irq);
}

static const struct quipu_core_ops ops = {.now = now_of};

/* The core PMU beside it, where a case needs hardware events or their interrupts. */
static __attribute__((unused)) void power_up(void)
{
	struct quipu_platform_env env = {.machine = bed.machine,
					 .core = core,
					 .signals = quipu_manual_signals_base(bed.manual),
					 .notes = &bed.notes,
					 .now = room_time};

	assert_int_equal(quipu_platform_power.create(&env, &power), 0);
}

static int setup(void **state)
{
	struct quipu_core_config config = {.ncpus = 32, .hz = 100, .paranoid = -1};
	struct quipu_platform_env env;

	(void)state;
	bed_tree(&bed, "power9");
	bed.machine = quipu_machine_parse(bed.fdt, fdt_totalsize(bed.fdt), "power9", &bed.notes);
	assert_non_null(bed.machine);
	bed.manual = quipu_manual_signals_new(bed.machine->ncpus);
	core = quipu_core_new(&config, &ops, NULL);
	env = (struct quipu_platform_env){.machine = bed.machine,
					  .core = core,
					  .signals = quipu_manual_signals_base(bed.manual),
					  .notes = &bed.notes,
					  .trace = on_trace,
					  .now = room_time};
	quipu_manual_signals_base(bed.manual)->interrupt = on_interrupt;
	forget_calls();
	assert_int_equal(quipu_platform_imc.create(&env, &room), 0);
	bed.imc = imc_room_hardware(room);
	quipu_imc_set_exact(bed.imc, true);
	task = quipu_task_new(core, NULL, 100, 100, false, "test", 0);
	forget_calls();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	quipu_core_free(core);
	quipu_platform_imc.destroy(room);
	if (power)
		quipu_platform_power.destroy(power);
	power = NULL;
	bed.imc = NULL;
	bed_stop(&bed);
	return 0;
}

static uint32_t type_of(const char *name)
{
	struct quipu_pmu *const *list;
	size_t n;

	list = quipu_core_pmus(core, &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i]->name, name))
			return (uint32_t)list[i]->type;
	fail_msg("no PMU %s", name);
	return 0;
}

static int open_as(bool perfmon, const char *pmu, struct quipu_attr attr, pid_t pid, int cpu,
		   struct quipu_event **e)
{
	const struct quipu_caller who = {.pid = 1, .tid = 1, .perfmon = perfmon, .ipc_lock = true};
	uint32_t back;

	attr.size = sizeof(attr);
	attr.type = type_of(pmu);
	*e = NULL;
	return quipu_event_open(core, &who, &attr, sizeof(attr), pid, cpu, NULL, 0, &back, e);
}

static int open_event(const char *pmu, struct quipu_attr attr, pid_t pid, int cpu,
		      struct quipu_event **e)
{
	return open_as(true, pmu, attr, pid, cpu, e);
}

static uint64_t count(struct quipu_event *e)
{
	uint64_t v = 0;

	assert_int_equal(quipu_event_read(e, &v, sizeof(v)), sizeof(v));
	return v;
}

/* ---- rings ---- */

static __attribute__((unused)) struct quipu_event *open_trace(uint64_t period, uint64_t freq,
							      void **ring)
{
	const struct quipu_caller who = {.perfmon = true, .ipc_lock = true};
	struct quipu_attr attr = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD,
				  .sample_period = freq ? freq : period,
				  .flags = freq ? QUIPU_ATTR_FREQ : 0};
	struct quipu_event *e;

	*ring = aligned_alloc(4096, (PAGES + 1) * 4096);
	assert_non_null(*ring);
	memset(*ring, 0, (PAGES + 1) * 4096);
	assert_int_equal(open_event("trace_imc", attr, 100, -1, &e), 0);
	assert_int_equal(quipu_event_map(e, &who, *ring, PAGES, true), 0);
	return e;
}

static __attribute__((unused)) uint64_t samples(const void *ring)
{
	const uint8_t *data = (const uint8_t *)ring + 4096;
	uint64_t head, n = 0;

	memcpy(&head, (const uint8_t *)ring + 1024, 8);
	for (uint64_t at = 0; at < head;) {
		struct perf_event_header h;

		memcpy(&h, data + at, sizeof(h));
		assert_int_equal(h.type, PERF_RECORD_SAMPLE);
		assert_int_equal(h.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
		n++;
		at += h.size;
	}
	return n;
}

static __attribute__((unused)) void close_trace(struct quipu_event *e, void *ring)
{
	quipu_event_unmap(e);
	quipu_event_close(e);
	free(ring);
}

#endif
