/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IMC driver: probe, sysfs, counting. Linux 6.12 arch/powerpc/perf/imc-pmu.c and
 * platforms/powernv/opal-imc.c; IMC sheet 4.1 to 4.5. The PMUs of each domain are in
 * driver_uncore.c (nest, core), driver_thread.c and driver_trace.c.
 *
 * Left out: debugfs, crash-dump kernels.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/imc/driver_impl.h"

/* ---- the floor below ---- */

static void trace(struct imc_driver *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void trace(struct imc_driver *d, const char *fmt, ...)
{
	char line[160];
	va_list ap;

	if (!d->trace)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	d->trace(d->trace_arg, line);
}

int64_t imc_opal(struct imc_driver *d, uint64_t token, uint32_t type, uint64_t address,
		 unsigned cpu)
{
	static const char *const names[] = {"INIT", "START", "STOP"};
	static const char *const types[] = {"?", "NEST", "CORE", "TRACE"};
	uint32_t pir = quipu_imc_pir(d->imc, cpu);
	uint64_t args[8] = {type, pir};
	int64_t status;

	if (token == QUIPU_OPAL_IMC_COUNTERS_INIT) {
		args[1] = address;
		args[2] = pir;
	}
	status = quipu_opal_call(d->imc, cpu, token, args);
	if (token == QUIPU_OPAL_IMC_COUNTERS_INIT)
		trace(d, "OPAL_IMC_COUNTERS_INIT(%s, 0x%" PRIx64 ", 0x%x) = %" PRId64,
		      types[type & 3], address, pir, status);
	else
		trace(d, "OPAL_IMC_COUNTERS_%s(%s, 0x%x) = %" PRId64,
		      names[token - QUIPU_OPAL_IMC_COUNTERS_INIT], types[type & 3], pir, status);
	return status;
}

void imc_ldbar(struct imc_driver *d, unsigned cpu, uint64_t value)
{
	quipu_imc_ldbar_write(d->imc, cpu, value);
	trace(d, "cpu %u: LDBAR <- 0x%016" PRIx64, cpu, value);
}

int imc_status(struct imc_driver *d, const char *what, int64_t status)
{
	if (!status)
		return 0;
	quipu_core_reason(d->core, "firmware answers %" PRId64 " to %s", status, what);
	return (int)status; /* the kernel hands the code on as it is */
}

/* ---- which of core, thread and trace mode the machine is in ---- */

int imc_mode_get(struct imc_driver *d, enum imc_domain mode)
{
	static const char *const names[] = {"", "core_imc", "thread_imc", "trace_imc"};

	if (d->mode != DOMAIN_FREE && d->mode != mode) {
		quipu_core_reason(
			d->core,
			"%s events are open; the engines of the cores serve one of core_imc, thread_imc and "
			"trace_imc at a time: close those first",
			names[d->mode]);
		return -EBUSY;
	}
	d->mode = mode;
	d->mode_refs++;
	return 0;
}

void imc_mode_put(struct imc_driver *d)
{
	if (d->mode_refs && !--d->mode_refs)
		d->mode = DOMAIN_FREE;
}

/* ---- counting ---- */

static uint64_t read_cell(const struct quipu_event *e)
{
	struct imc_pmu *p = pmu_of(e);
	const struct quipu_hw_event *hw = quipu_event_hw((struct quipu_event *)e);

	/* A cell that is not wholly inside the memory reads 0 (the kernel reads on behind it). */
	if ((hw->config & UINT32_MAX) + 8 > p->unit->size)
		return 0;
	return quipu_imc_read64(p->driver->imc, hw->event_base + (hw->config & UINT32_MAX));
}

void imc_count_begin(struct quipu_event *e)
{
	quipu_event_hw(e)->prev_count = read_cell(e);
}

void imc_count_update(struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now = read_cell(e);

	quipu_event_add_count(e, now - hw->prev_count);
	hw->prev_count = now;
}

static const struct imc_event *event_at(const struct imc_unit *u, uint64_t config)
{
	for (unsigned i = 0; i < u->nevents; i++)
		if (u->events[i].config == (config & UINT32_MAX))
			return &u->events[i];
	return NULL;
}

/* The signals behind an event, and the first of them that no model here counts; NONE: all are. */
static unsigned signals_of(const struct imc_unit *u, const struct imc_event *e,
			   quipu_signal out[IMC_MAX_SIGNALS])
{
	return imc_source_signals(e->source, imc_unit_index(u->node), out);
}

static quipu_signal lacking(const struct imc_driver *d, const struct imc_unit *u,
			    const struct imc_event *e)
{
	quipu_signal s[IMC_MAX_SIGNALS];
	unsigned n = signals_of(u, e, s);

	for (unsigned i = 0; i < n; i++)
		if (!d->signals->ops->has(d->signals, s[i]))
			return s[i];
	return QUIPU_SIGNAL_NONE;
}

/* The engine carries what an open event is made of. */
static int want(struct imc_driver *d, const struct imc_unit *u, const struct imc_event *e)
{
	quipu_signal s[IMC_MAX_SIGNALS];
	unsigned n = signals_of(u, e, s);

	for (unsigned i = 0; d->signals->ops->want && i < n; i++)
		if (d->signals->ops->want(d->signals, s[i])) {
			quipu_core_reason(
				d->core,
				"too many different events at once: the engine has no counter left for %s",
				e->name);
			return -EOPNOTSUPP;
		}
	return 0;
}

/*
 * An event that Linux's imc.rst names in passing and that no POWER9 catalog has: whoever asks for
 * it shall hear why, so it is a name here (not in sysfs) whose code no counter memory holds.
 */
#define POWER8_OFFSET UINT32_C(0x3fffffff)
#define POWER8_REASON                                                                                         \
	"PM_MCS_DOWN_128B_DATA_XFER_MC0 is an event of POWER8's 24x7 catalog; no POWER9 catalog has it: the " \
	"nearest here are PM_MCS01_128B_RD_DISP_PORT01 and _PORT23 of nest_mcs01 (lines read from memory)"

static const struct quipu_pmu_event power8_events[] = {
	{
		.name = "PM_MCS_DOWN_128B_DATA_XFER_MC0",
		.terms = "event=0x3fffffff",
		.desc = "lines of 128 bytes from memory, on POWER8",
		.exactness = QUIPU_MODELLED,
		.unavailable = POWER8_REASON,
	},
	{NULL},
};

int imc_check_counting(struct imc_driver *d, const struct imc_pmu *p, struct quipu_event *e)
{
	const struct quipu_attr *attr = quipu_event_attr(e);
	const struct imc_event *named;
	uint64_t offset = attr->config & UINT32_MAX;

	if (attr->sample_period) {
		quipu_core_reason(
			d->core,
			"%s cannot sample: its counters lie in memory and raise no interrupt; use trace_imc "
			"or the core PMU",
			p->name);
		return -EINVAL;
	}
	if (offset == POWER8_OFFSET && p->pmu.more) {
		quipu_core_reason(d->core, "%s", POWER8_REASON);
		return -EINVAL;
	}
	if (offset > p->unit->size) {
		quipu_core_reason(d->core,
				  "offset 0x%" PRIx64
				  " lies outside of the counter memory of 0x%x bytes",
				  offset, p->unit->size);
		return -EINVAL;
	}
	named = event_at(p->unit, offset);
	if (named && lacking(d, p->unit, named) != QUIPU_SIGNAL_NONE) {
		char name[32];

		quipu_core_reason(
			d->core, "%s needs %s, which no model counts on this machine", named->name,
			quipu_signal_name(lacking(d, p->unit, named), name, sizeof(name)));
		return -ENOENT;
	}
	return named ? want(d, p->unit, named) : 0;
}

static enum quipu_exactness exactness(const struct imc_event *e)
{
	if (e->source->kind == IMC_ZERO)
		return QUIPU_EXACT;
	return e->source->kind == IMC_SIGNAL && !e->source->arg
		       ? quipu_signal_exactness(e->source->signal)
		       : QUIPU_MODELLED;
}

/* Said at an open that succeeds: what the number will be. */
void imc_remark(struct imc_driver *d, const struct imc_pmu *p, const struct quipu_event *e)
{
	const struct imc_event *named = event_at(p->unit, quipu_event_attr(e)->config);

	if (!named)
		quipu_core_reason(d->core, "no event of %s lies there: reads 0", p->name);
	else if (named->source->kind == IMC_NOT_MODELLED)
		quipu_core_reason(d->core, "%s is not modelled: reads 0", named->name);
	else if (named->divisor > 1 && exactness(named) == QUIPU_EXACT &&
		 named->source->kind == IMC_SIGNAL)
		quipu_core_reason(d->core, "in steps of %" PRIu64 ", as the memory holds it",
				  named->divisor);
}

quipu_signal imc_event_signal(const struct quipu_event *e, bool *filtered)
{
	const struct imc_event *named = event_at(pmu_of(e)->unit, quipu_event_attr(e)->config);
	quipu_signal s[IMC_MAX_SIGNALS] = {QUIPU_SIGNAL_NONE};

	*filtered = false;
	if (!named)
		return QUIPU_SIGNAL_NONE;
	if (named->source->kind == IMC_IK)
		return QUIPU_SIGNAL_INSTRUCTIONS;
	signals_of(pmu_of(e)->unit, named, s);
	return s[0];
}

static enum quipu_exactness event_exactness(const struct quipu_event *e)
{
	const struct imc_event *named = event_at(pmu_of(e)->unit, quipu_event_attr(e)->config);

	return named && pmu_of(e)->unit->type != IMC_TRACE ? exactness(named) : QUIPU_MODELLED;
}

/* ---- sysfs ---- */

static const struct quipu_pmu_format count_formats[] = {
	{"event", "config:0-61"},
	{"offset", "config:0-31"},
	{"rvalue", "config:32"},
	{"mode", "config:33-40"},
	{NULL, NULL},
};

static const struct quipu_pmu_format trace_formats[] = {
	{"event", "config:0-61"},	{"cpmc_reserved", "config:0-19"},
	{"cpmc_event", "config:20-27"}, {"cpmc_samplesel", "config:28-29"},
	{"cpmc_load", "config:30-61"},	{NULL, NULL},
};

static const char *why_unavailable(const struct imc_driver *d, const struct imc_unit *u,
				   const struct imc_event *e)
{
	if (u->type == IMC_TRACE)
		return NULL;
	if (e->source->kind == IMC_NOT_MODELLED)
		return "not modelled: can be opened, reads 0";
	return lacking(d, u, e) == QUIPU_SIGNAL_NONE ? NULL
						     : "needs a model that does not run here";
}

static int make_events(struct imc_driver *d, struct imc_pmu *p)
{
	const struct imc_unit *u = p->unit;

	p->events = calloc(u->nevents + 1, sizeof(*p->events));
	if (!p->events)
		return -ENOMEM;
	for (unsigned i = 0; i < u->nevents; i++) {
		const struct imc_event *e = &u->events[i];
		quipu_signal signal[IMC_MAX_SIGNALS] = {QUIPU_SIGNAL_NONE};

		signals_of(u, e, signal);
		p->events[i] = (struct quipu_pmu_event){
			.name = e->name,
			.terms = e->file,
			.scale = e->scale,
			.unit = e->unit,
			.desc = e->desc ? e->desc : e->source->desc,
			.signal = signal[0],
			.exactness = exactness(e),
			.unavailable = why_unavailable(d, u, e),
		};
	}
	return 0;
}

/* Linux calls it nest_mcs01_imc, the document nest_mcs01; the directory has one name, its file
 * "alias" the other. */
static void make_name(const struct imc_driver *d, struct imc_pmu *p)
{
	const struct imc_unit *u = p->unit;
	bool document = d->tree->document_names && u->nest;

	snprintf(p->name, sizeof(p->name), "%s%s%s", u->nest ? "nest_" : "", u->node,
		 document ? "" : "_imc");
	if (!u->nest)
		return;
	snprintf(p->alias, sizeof(p->alias), "nest_%s%s\n", u->node, document ? "_imc" : "");
	p->files[0] = (struct quipu_pmu_file){"alias", p->alias};
	p->pmu.files = p->files;
}

static int register_pmu(struct imc_driver *d, const struct imc_unit *u)
{
	struct imc_pmu *p = &d->pmus[d->npmus];
	int err;

	*p = (struct imc_pmu){.driver = d, .unit = u};
	make_name(d, p);
	err = make_events(d, p);
	if (err)
		return err;
	p->pmu.name = p->name;
	p->pmu.type = -1;
	p->pmu.capabilities = QUIPU_PMU_CAP_NO_EXCLUDE;
	p->pmu.driver = p;
	p->pmu.formats = u->type == IMC_TRACE ? trace_formats : count_formats;
	p->pmu.events = p->events;
	if (u->nest && !strncmp(u->node, "mcs", 3))
		p->pmu.more = power8_events;
	p->pmu.signal = imc_event_signal;
	p->pmu.exactness = event_exactness;
	if (u->type == IMC_NEST)
		imc_nest_operations(&p->pmu);
	else if (u->type == IMC_CORE)
		imc_core_operations(&p->pmu);
	else if (u->type == IMC_THREAD)
		imc_thread_operations(&p->pmu);
	else
		imc_trace_operations(&p->pmu);
	if (u->type == IMC_NEST)
		p->pmu.cpumask = d->nest_mask;
	else if (u->type == IMC_CORE)
		p->pmu.cpumask = d->core_mask;
	err = quipu_core_register(d->core, &p->pmu);
	if (err)
		free(p->events);
	else
		d->npmus++;
	return err;
}

/* ---- probe ---- */

static int prepare_nest(struct imc_driver *d)
{
	for (unsigned i = 0; i < d->nchips; i++) {
		int64_t status = imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_NEST, 0,
					  (unsigned)d->nest_cpu[i]);

		if (status)
			return (int)status;
	}
	return 0;
}

static int prepare_core(struct imc_driver *d, const struct imc_unit *u)
{
	for (unsigned i = 0; i < d->ncores; i++) {
		int64_t status;

		d->core_memory[i] = quipu_imc_alloc(d->imc, u->size);
		if (!d->core_memory[i])
			return -ENOMEM;
		status = imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_INIT, QUIPU_OPAL_IMC_CORE,
				  d->core_memory[i], (unsigned)d->core_cpu[i]);
		if (status) {
			d->core_memory[i] = 0;
			return (int)status;
		}
	}
	return 0;
}

static int prepare_cpus(struct imc_driver *d, const struct imc_unit *u, uint64_t *memory)
{
	for (unsigned cpu = 0; cpu < d->machine->ncpus; cpu++) {
		memory[cpu] = quipu_imc_alloc(d->imc, u->size);
		if (!memory[cpu])
			return -ENOMEM;
		if (u->type == IMC_TRACE) {
			int64_t status = imc_opal(d, QUIPU_OPAL_IMC_COUNTERS_INIT,
						  QUIPU_OPAL_IMC_TRACE, memory[cpu], cpu);

			if (status)
				return (int)status;
		}
		imc_ldbar(d, cpu, 0);
	}
	return 0;
}

static int prepare(struct imc_driver *d, const struct imc_unit *u, bool *nest_done)
{
	switch (u->type) {
	case IMC_NEST:
		if (*nest_done)
			return 0;
		*nest_done = true;
		return prepare_nest(d);
	case IMC_CORE: return prepare_core(d, u);
	case IMC_THREAD: return prepare_cpus(d, u, d->thread_memory);
	default: return prepare_cpus(d, u, d->trace_memory);
	}
}

static bool has_type(const struct imc_tree *t, enum imc_type type)
{
	for (unsigned i = 0; i < t->nunits; i++)
		if (t->units[i].type == type)
			return true;
	return false;
}

static int probe(struct imc_driver *d, struct quipu_notes *notes)
{
	bool nest_done = false, core = has_type(d->tree, IMC_CORE);

	for (unsigned i = 0; i < d->tree->nunits; i++) {
		const struct imc_unit *u = &d->tree->units[i];
		int err;

		if (u->type == IMC_THREAD && !core) {
			quipu_note(notes, QUIPU_NOTE_IGNORED, u->path,
				   "without a core unit there is no thread PMU");
			continue;
		}
		err = prepare(d, u, &nest_done);
		if (!err)
			err = register_pmu(d, u);
		if (err == -ENOMEM)
			return err;
		if (err)
			quipu_note(notes, QUIPU_NOTE_WRONG, u->path,
				   "the PMU cannot be set up: firmware or registration answers %d",
				   err);
		else
			quipu_note(notes, QUIPU_NOTE_UNDERSTOOD, u->path, "PMU %s with %u events",
				   d->pmus[d->npmus - 1].name, u->nevents);
	}
	return 0;
}

/* ---- life ---- */

static int map_cpus(struct imc_driver *d)
{
	const struct quipu_machine *m = d->machine;

	d->nchips = imc_chips(m, d->chip_id);
	for (unsigned cpu = 0; cpu < m->ncpus; cpu++) {
		unsigned chip = 0, core;

		while (chip + 1 < d->nchips && d->chip_id[chip] != m->cpus[cpu].socket)
			chip++;
		d->node[cpu] = chip;
		d->online[cpu] = true;
		for (core = 0; core < cpu; core++)
			if (m->cpus[core].socket == m->cpus[cpu].socket &&
			    m->cpus[core].core == m->cpus[cpu].core)
				break;
		d->core_of[cpu] = core < cpu ? d->core_of[core] : d->ncores++;
	}
	return 0;
}

static int allocate(struct imc_driver *d)
{
	unsigned n = d->machine->ncpus;

	d->pmus = calloc(d->tree->nunits ? d->tree->nunits : 1, sizeof(*d->pmus));
	d->node = calloc(n, sizeof(*d->node));
	d->core_of = calloc(n, sizeof(*d->core_of));
	d->online = calloc(n, sizeof(*d->online));
	d->thread_memory = calloc(n, sizeof(*d->thread_memory));
	d->trace_memory = calloc(n, sizeof(*d->trace_memory));
	d->nest_refs = calloc(IMC_MAX_CHIPS, sizeof(*d->nest_refs));
	d->core_refs = calloc(n, sizeof(*d->core_refs));
	d->trace_refs = calloc(n, sizeof(*d->trace_refs));
	d->core_memory = calloc(n, sizeof(*d->core_memory));
	if (!d->pmus || !d->node || !d->core_of || !d->online || !d->thread_memory ||
	    !d->trace_memory || !d->nest_refs || !d->core_refs || !d->trace_refs || !d->core_memory)
		return -ENOMEM;
	map_cpus(d);
	return imc_masks_new(d);
}

int imc_driver_new(const struct quipu_platform_env *env, struct quipu_imc *imc,
		   const struct imc_tree *tree, struct imc_driver **out)
{
	struct imc_driver *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->core = env->core;
	d->imc = imc;
	d->signals = env->signals;
	d->machine = env->machine;
	d->tree = tree;
	d->trace = env->trace;
	d->trace_arg = env->trace_arg;
	err = allocate(d);
	if (!err)
		err = probe(d, env->notes);
	if (err) {
		imc_driver_free(d);
		return err;
	}
	*out = d;
	return 0;
}

void imc_driver_free(struct imc_driver *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->npmus; i++)
		free(d->pmus[i].events);
	free(d->pmus);
	free(d->node);
	free(d->core_of);
	free(d->online);
	free(d->thread_memory);
	free(d->trace_memory);
	free(d->nest_refs);
	free(d->core_refs);
	free(d->trace_refs);
	free(d->core_memory);
	free(d->nest_cpu);
	free(d->core_cpu);
	free(d->nest_mask);
	free(d->core_mask);
	free(d);
}

void imc_driver_report(const struct imc_driver *d, quipu_describe_fn *fn, void *arg)
{
	struct quipu_imc_trace_count all = {0}, one;
	char line[256];

	for (unsigned cpu = 0; cpu < d->machine->ncpus; cpu++) {
		quipu_imc_trace_counts(d->imc, cpu, &one);
		all.written += one.written;
		all.taken += one.taken;
		all.overwritten += one.overwritten;
		all.left += one.left;
		all.events += one.events;
		if (one.period)
			all.period = one.period;
	}
	if (!all.events)
		return;
	snprintf(line, sizeof(line),
		 "trace_imc: %" PRIu64 " records written, one for each %" PRIu64 " of %" PRIu64
		 " 32 MHz ticks that threads ran: %" PRIu64 " delivered, %" PRIu64
		 " overwritten, %" PRIu64 " skipped",
		 all.written, all.period, all.events, all.taken, all.overwritten, all.left);
	fn(arg, 0, line);
	if (!d->no_room)
		return;
	snprintf(line, sizeof(line),
		 "trace_imc: %" PRIu64
		 " deliveries ended early: a ring was full; give it more pages (-m)",
		 d->no_room);
	fn(arg, 1, line);
}

void imc_driver_describe(const struct imc_driver *d, quipu_describe_fn *fn, void *arg)
{
	char line[160];

	for (unsigned i = 0; i < d->npmus; i++) {
		const struct imc_pmu *p = &d->pmus[i];
		unsigned dead = 0;

		for (unsigned k = 0; k < p->unit->nevents; k++)
			dead += p->unit->events[k].source->kind == IMC_NOT_MODELLED &&
				p->unit->type != IMC_TRACE;
		snprintf(line, sizeof(line), "PMU %s: %u events, %u of them not modelled; %s",
			 p->name, p->unit->nevents, dead,
			 p->unit->type == IMC_TRACE ? "sampling into memory, no interrupt"
						    : "counting only");
		fn(arg, 1, line);
	}
}
