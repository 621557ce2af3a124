/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RISC-V room as the machine sees it: harts, firmware and the driver that the tree asks for,
 * tied together. Facts of the event tables that a person wants to see (names, what is modelled, why
 * not) are gathered here for the driver.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/platform.h>

#include "platform/riscv/driver.h"
#include "platform/riscv/events.h"
#include "platform/riscv/hart.h"
#include "platform/riscv/room.h"

struct room {
	struct quipu_core *core;
	struct quipu_riscv *harts;
	struct sbi_driver *sbi;
	struct legacy_driver *legacy;
	struct quipu_pmu_event *events; /* owned strings: terms, unavailable */
};

#define EVENT_RAW 0x20000u

/* What the driver would have programmed for the event, and why nothing counts it. */
static const char *why_not(const struct quipu_riscv *rv, uint32_t event, uint64_t data, char *buf,
			   size_t len)
{
	uint64_t selector;
	const char *why;

	if (event >> 16 == 15)
		return (event & 0xFFFF) < RISCV_FW_EVENTS ? NULL
							  : "the firmware knows the events 0 to 21";
	if (firmware_candidates(rv, event, data, &selector))
		return NULL;
	why = riscv_events_missing(rv, selector, buf, len);
	if (why)
		return why;
	snprintf(buf, len, "no row of the device tree's %s covers it",
		 event == EVENT_RAW ? "riscv,raw-event-to-mhpmcounters"
				    : "riscv,event-to-mhpmcounters");
	return buf;
}

/* The signal of an event that is moved by exactly one. */
static quipu_signal signal_of(const struct quipu_riscv *rv, uint32_t event, uint64_t data)
{
	struct riscv_count count;
	uint64_t selector;
	uint32_t counters;

	if (event >> 16 == 15)
		return QUIPU_SIGNAL_NONE;
	counters = firmware_candidates(rv, event, data, &selector);
	if (!counters)
		return QUIPU_SIGNAL_NONE;
	/* A fixed counter has no selector: cycle and instret count what they are. */
	if (!(counters & HART_PROGRAMMABLE))
		return counters & 1 ? QUIPU_SIGNAL_CYCLES : QUIPU_SIGNAL_INSTRUCTIONS;
	if (!riscv_events_modelled(rv, selector, &count) || count.n != 1)
		return QUIPU_SIGNAL_NONE;
	return count.signal[0];
}

static int want(const struct quipu_riscv *rv, uint32_t event, uint64_t data)
{
	const struct quipu_signals_ops *ops = rv->signals->ops;
	struct riscv_count count;
	uint64_t selector;
	int err = 0;

	if (!ops->want || event >> 16 == 15 || !firmware_candidates(rv, event, data, &selector) ||
	    !riscv_events_modelled(rv, selector, &count))
		return 0;
	for (unsigned k = 0; k < count.n && !err; k++)
		err = ops->want(rv->signals, count.signal[k]);
	return err;
}

/* ---- events/ ---- */

static bool add_selector(const struct quipu_riscv *rv, struct quipu_pmu_event *e,
			 const struct riscv_selector *row, uint64_t selector)
{
	char terms[64], buf[160];
	const char *why = why_not(rv, EVENT_RAW, selector, buf, sizeof(buf));

	snprintf(terms, sizeof(terms), "event=0x%" PRIx64, selector);
	*e = (struct quipu_pmu_event){
		.name = row->name,
		.terms = strdup(terms),
		.desc = row->desc,
		.signal = row->count.n == 1 ? row->count.signal[0] : QUIPU_SIGNAL_NONE,
		.exactness = QUIPU_EXACT,
		.unavailable = why ? strdup(why) : NULL,
	};
	for (unsigned k = 0; k < row->count.n; k++)
		if (quipu_signal_exactness(row->count.signal[k]) != QUIPU_EXACT)
			e->exactness = QUIPU_MODELLED;
	if (!row->count.n)
		e->exactness = QUIPU_MODELLED;
	return e->terms && (!why || e->unavailable);
}

static bool add_firmware(struct quipu_pmu_event *e, unsigned code, unsigned kernel)
{
	char text[64];
	char *name;

	snprintf(text, sizeof(text), "fw-%s", riscv_firmware_event_name(code));
	for (char *p = text; *p; p++)
		if (*p == '_')
			*p = '-';
	name = strdup(text);
	snprintf(text, sizeof(text), "event=0x%x,firmware=%u", code, kernel >= 612 ? 2u : 1u);
	*e = (struct quipu_pmu_event){
		.name = name,
		.terms = strdup(text),
		.desc = "SBI firmware event; a program under a user-mode engine causes none",
		.exactness = QUIPU_EXACT,
	};
	return name && e->terms;
}

/*
 * Everything the hart's table names, then the firmware's events. NULL-terminated; NULL when out of
 * memory.
 */
static struct quipu_pmu_event *make_events(const struct quipu_riscv *rv)
{
	const size_t blocks = sizeof(rv->events->block) / sizeof(rv->events->block[0]);
	size_t n = RISCV_FW_EVENTS + 1, at = 0;
	struct quipu_pmu_event *e;
	bool ok = true;

	for (size_t b = 0; b < blocks; b++)
		n += rv->events->block[b].n;
	e = calloc(n, sizeof(*e));
	if (!e)
		return NULL;
	for (size_t b = 0; b < blocks; b++)
		for (size_t i = 0; i < rv->events->block[b].n; i++) {
			const struct riscv_block *block = &rv->events->block[b];

			ok &= add_selector(rv, &e[at++], &block->rows[i],
					   block->prefix | block->rows[i].code);
		}
	for (unsigned code = 0; code < RISCV_FW_EVENTS; code++)
		ok &= add_firmware(&e[at++], code, rv->config.kernel);
	if (ok)
		return e;
	riscv_events_free(e, n);
	return NULL;
}

void riscv_events_free(struct quipu_pmu_event *e, size_t n)
{
	for (size_t i = 0; e && i < n; i++) {
		if (e[i].name && !strncmp(e[i].name, "fw-", 3))
			free((char *)e[i].name);
		free((char *)e[i].terms);
		free((char *)e[i].unavailable);
	}
	free(e);
}

static size_t events_length(const struct quipu_pmu_event *e)
{
	size_t n = 0;

	while (e && e[n].name)
		n++;
	return n;
}

/* ---- the platform ---- */

static bool room_matches(const struct quipu_machine *m)
{
	return m->isa == QUIPU_ISA_RISCV64;
}

static void on_interrupt(void *arg, unsigned hart, unsigned cause,
			 const struct quipu_interrupt *irq)
{
	struct room *r = arg;

	if (cause == QUIPU_RISCV_LCOFI && r->sbi)
		sbi_driver_interrupt(r->sbi, hart, irq);
}

static void room_destroy(void *self)
{
	struct room *r = self;

	if (!r)
		return;
	sbi_driver_free(r->sbi);
	legacy_driver_free(r->legacy);
	quipu_riscv_free(r->harts);
	riscv_events_free(r->events, events_length(r->events));
	free(r);
}

static int make_driver(struct room *r, const struct quipu_platform_env *env)
{
	const struct riscv_config *c = &r->harts->config;
	struct riscv_driver_env d = {
		.harts = r->harts,
		.core = env->core,
		.machine = env->machine,
		.kernel = c->kernel,
		.filtering = r->harts->harts[0].extensions & EXT_SSCOFPMF,
		.kernel_activity = c->charge_instructions || c->charge_cycles,
		.record_silent = c->record_silent,
		.branch_records = c->branch_records,
		.user_access = c->user_access,
		.why_not = why_not,
		.signal = signal_of,
		.want = want,
	};

	if (c->driver == RISCV_DRIVER_LEGACY)
		return legacy_driver_new(&d, env->notes, &r->legacy);
	if (c->events_directory) {
		r->events = make_events(r->harts);
		if (!r->events)
			return -ENOMEM;
		d.events = r->events;
	}
	quipu_riscv_set_handler(r->harts, on_interrupt, r);
	return sbi_driver_new(&d, env->notes, &r->sbi);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct room *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		goto fail;
	r->core = env->core;
	r->harts = quipu_riscv_new(env->machine, env->signals, env->notes);
	if (!r->harts)
		goto fail;
	if (env->trace)
		quipu_riscv_set_trace(r->harts, env->trace, env->trace_arg);
	err = make_driver(r, env);
	if (err)
		goto fail;
	*self = r;
	return 0;
fail:
	quipu_note(env->notes, QUIPU_NOTE_WRONG, "/cpus", "the RISC-V room cannot be set up: %s",
		   strerror(-err));
	room_destroy(r);
	return err;
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct room *r = self;

	quipu_riscv_interrupt(r->harts, irq);
	quipu_core_work(r->core);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	struct room *r = self;

	quipu_riscv_describe(r->harts, fn, arg);
	if (r->sbi)
		sbi_driver_describe(r->sbi, fn, arg);
	if (r->legacy)
		legacy_driver_describe(r->legacy, fn, arg);
}

static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	struct room *r = self;

	if (r->sbi)
		sbi_driver_online(r->sbi, cpu, online);
}

struct quipu_riscv *riscv_room_harts(void *self)
{
	return ((struct room *)self)->harts;
}

struct sbi_driver *riscv_room_sbi(void *self)
{
	return ((struct room *)self)->sbi;
}

static uint64_t room_interrupts(void *self, unsigned cpu)
{
	const struct room *r = self;

	return r->sbi ? sbi_driver_interrupts(r->sbi, cpu) : 0;
}

/* kernel/irq/proc.c; the number in front is one that Linux gives out as it comes. */
static const struct quipu_interrupt_row *room_interrupt_row(void *self)
{
	static const struct quipu_interrupt_row row = {"13",
						       " RISC-V INTC  13 Edge      riscv-pmu"};
	const struct room *r = self;

	return r->sbi && sbi_driver_interrupts_at_all(r->sbi) ? &row : NULL;
}

static const char *const room_nodes[] = {"riscv,pmu", "riscv,base-pmu", NULL};

const struct quipu_platform quipu_platform_riscv = {
	.name = "riscv",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = room_cpu_online,
	.interrupts = room_interrupts,
	.interrupt_row = room_interrupt_row,
};
