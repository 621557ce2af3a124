/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core object: configuration, registry of PMUs, lookup of the PMU for an event (perf ABI sheet
 * A6), ticks. Does not know what an event does: see open.c, context.c, sample.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void config_defaults(struct quipu_core_config *c)
{
	if (!c->ncpus)
		c->ncpus = 1;
	if (!c->hz)
		c->hz = 250;
	if (!c->max_sample_rate)
		c->max_sample_rate = 100000;
	if (!c->max_stack)
		c->max_stack = 127;
	if (!c->mlock_kb)
		c->mlock_kb = 516;
	if (!c->mux_interval_ms)
		c->mux_interval_ms = c->hz < 1000 ? 1000 / c->hz : 1;
	if (c->first_type < 6)
		c->first_type = 6;
}

struct quipu_core *quipu_core_new(const struct quipu_core_config *config,
				  const struct quipu_core_ops *ops, void *arg)
{
	struct quipu_core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->config = *config;
	config_defaults(&core->config);
	core->ops = ops;
	core->arg = arg;
	core->next_id = 1;
	core->tick_ns = NSEC_PER_SEC / core->config.hz;
	link_init(&core->events);
	link_init(&core->rings);
	for (unsigned i = 0; i < TASK_BUCKETS; i++)
		link_init(&core->tasks[i]);
	core->cpus = calloc(core->config.ncpus, sizeof(*core->cpus));
	core->record = malloc(RECORD_MAX + 8);
	if (!core->cpus || !core->record)
		goto fail;
	for (unsigned i = 0; i < core->config.ncpus; i++) {
		struct cpu *cpu = &core->cpus[i];

		context_init(&cpu->ctx, core, NULL, (int)i);
		link_init(&cpu->active);
		cpu->online = true;
		cpu->tick_due = cpu->told = NEVER;
	}
	software_init(&core->software);
	gone_init(&core->gone);
	if (quipu_core_register(core, &core->software))
		goto fail;
	return core;
fail:
	quipu_core_free(core);
	return NULL;
}

void quipu_core_free(struct quipu_core *core)
{
	if (!core)
		return;
	/* Clones go with their originals; an original is freed however it is still held. */
	while (core->cpus && !link_empty(&core->events)) {
		struct quipu_event *e = container(core->events.next, struct quipu_event, core_link);

		if (e->parent)
			e = e->parent;
		e->maps = 0;
		quipu_event_close(e);
	}
	if (core->cpus) {
		task_free_all(core);
		while (!link_empty(&core->rings))
			ring_free(container(core->rings.next, struct quipu_ring, core_link));
		for (unsigned i = 0; i < core->config.ncpus; i++) {
			context_free(&core->cpus[i].ctx);
			free(core->cpus[i].classes);
		}
	}
	free(core->cpus);
	free(core->pmus);
	free(core->listed);
	free(core->shown);
	free(core->mux_ms);
	free(core->locked);
	free(core->record);
	free(core);
}

static bool type_taken(const struct quipu_core *core, int type)
{
	for (size_t i = 0; i < core->npmus; i++) {
		if (core->pmus[i]->type == type)
			return true;
	}
	return false;
}

/* Room for one more PMU in every table that is indexed by it. */
static int grow(struct quipu_core *core)
{
	size_t n = core->npmus + 1;
	struct quipu_pmu **pmus = realloc(core->pmus, n * sizeof(*pmus));
	unsigned *mux;

	if (!pmus)
		return -ENOMEM;
	core->pmus = pmus;
	pmus = realloc(core->listed, n * sizeof(*pmus));
	if (!pmus)
		return -ENOMEM;
	core->listed = pmus;
	mux = realloc(core->mux_ms, n * sizeof(*mux));
	if (!mux)
		return -ENOMEM;
	core->mux_ms = mux;
	for (unsigned i = 0; i < core->config.ncpus; i++) {
		struct cpu_class *classes = realloc(core->cpus[i].classes, n * sizeof(*classes));

		if (!classes)
			return -ENOMEM;
		core->cpus[i].classes = classes;
		classes[n - 1] = (struct cpu_class){.mux_due = NEVER};
	}
	return 0;
}

/* The class that a PMU left, or one more. */
static int free_class(struct quipu_core *core, size_t *class)
{
	int r;

	for (*class = CLASS_SOFTWARE + 1; *class < core->npmus; ++*class) {
		if (core->pmus[*class] == &core->gone)
			return 0;
	}
	r = grow(core);
	if (!r)
		*class = core->npmus++;
	return r;
}

int quipu_core_register(struct quipu_core *core, struct quipu_pmu *pmu)
{
	int type = pmu->type;
	size_t class;
	int r;

	for (size_t i = 0; i < core->nlisted; i++) {
		if (!strcmp(core->listed[i]->name, pmu->name))
			return -EEXIST;
	}
	if (type < 0) {
		for (type = core->config.first_type; type_taken(core, type); type++)
			;
	} else if (type_taken(core, type)) {
		return -EEXIST;
	}
	r = free_class(core, &class);
	if (r)
		return r;
	pmu->type = type;
	core->mux_ms[class] = core->config.mux_interval_ms;
	core->pmus[class] = pmu;
	core->listed[core->nlisted++] = pmu;
	return 0;
}

struct quipu_pmu *const *quipu_core_pmus(const struct quipu_core *core, size_t *n)
{
	*n = core->nlisted;
	return core->listed;
}

int quipu_core_show(struct quipu_core *core, const struct quipu_pmu_file *files)
{
	const struct quipu_pmu_file **more =
		realloc(core->shown, (core->nshown + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	core->shown = more;
	core->shown[core->nshown++] = files;
	return 0;
}

void quipu_core_hide(struct quipu_core *core, const struct quipu_pmu_file *files)
{
	size_t kept = 0;

	for (size_t i = 0; i < core->nshown; i++) {
		if (core->shown[i] != files)
			core->shown[kept++] = core->shown[i];
	}
	core->nshown = kept;
}

const struct quipu_pmu_file *const *quipu_core_shown(const struct quipu_core *core, size_t *n)
{
	*n = core->nshown;
	return core->shown;
}

const struct quipu_core_config *quipu_core_configuration(const struct quipu_core *core)
{
	return &core->config;
}

static bool chains_in_use(struct quipu_core *core)
{
	struct quipu_event *e;

	list_for_each(e, &core->events, core_link) {
		if (e->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
			return true;
	}
	return false;
}

int quipu_core_set_sysctl(struct quipu_core *core, const char *name, long value)
{
	struct quipu_core_config *c = &core->config;
	const struct {
		const char *name;
		unsigned *field;
		long min, max;
	} table[] = {
		{"max_sample_rate", &c->max_sample_rate, 1, INT_MAX},
		{"max_stack", &c->max_stack, 0, 640},
		{"mlock_kb", &c->mlock_kb, 0, INT_MAX},
	};

	if (!strcmp(name, "paranoid")) {
		if (value < -1 || value > INT_MAX)
			return -EINVAL;
		c->paranoid = (int)value;
		return 0;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (strcmp(name, table[i].name))
			continue;
		if (value < table[i].min || value > table[i].max)
			return -EINVAL;
		/* A call chain of an open event may be as deep as it was told: Linux says EBUSY,
		 * too. */
		if (table[i].field == &c->max_stack && chains_in_use(core))
			return -EBUSY;
		*table[i].field = (unsigned)value;
		return 0;
	}
	return -EINVAL;
}

unsigned quipu_core_mux_interval(const struct quipu_core *core, const struct quipu_pmu *pmu)
{
	for (size_t i = 0; i < core->npmus; i++)
		if (core->pmus[i] == pmu)
			return core->mux_ms[i];
	return 1;
}

int quipu_core_set_mux_interval(struct quipu_core *core, struct quipu_pmu *pmu, unsigned ms)
{
	if (ms < 1)
		return -EINVAL;
	for (size_t i = 0; i < core->npmus; i++) {
		if (core->pmus[i] == pmu) {
			core->mux_ms[i] = ms;
			return 0;
		}
	}
	return -EINVAL;
}

void quipu_core_reason(struct quipu_core *core, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(core->reason, sizeof(core->reason), fmt, ap);
	va_end(ap);
}

const char *quipu_core_last_reason(const struct quipu_core *core)
{
	return core->reason;
}

uint64_t core_now(const struct quipu_core *core, unsigned cpu)
{
	return core->ops->now(core->arg, cpu);
}

void core_wake(struct quipu_event *e, unsigned bits)
{
	if (e->core->ops->wake)
		e->core->ops->wake(e->core->arg, e, bits);
}

bool core_kernel_allowed(const struct quipu_core *core, const struct quipu_caller *who)
{
	return core->config.paranoid <= 1 || who->perfmon;
}

unsigned core_class(const struct quipu_core *core, const struct quipu_pmu *pmu)
{
	if (pmu->context == QUIPU_CONTEXT_SOFTWARE)
		return CLASS_SOFTWARE;
	for (size_t i = 0; i < core->npmus; i++) {
		if (core->pmus[i] == pmu)
			return (unsigned)i;
	}
	return CLASS_SOFTWARE;
}

static struct quipu_pmu *pmu_by_type(const struct quipu_core *core, uint64_t type)
{
	for (size_t i = 0; i < core->npmus; i++) {
		if ((uint64_t)core->pmus[i]->type == type)
			return core->pmus[i];
	}
	return NULL;
}

#define ANY_EXCLUDE                                                                                \
	(QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV |             \
	 QUIPU_ATTR_EXCLUDE_IDLE | QUIPU_ATTR_EXCLUDE_HOST | QUIPU_ATTR_EXCLUDE_GUEST)

/* A driver that takes the event may say what the user should know of it; what another one refused
 * it for is no part of that. */
static int ask_driver(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct quipu_core *core = e->core;
	char earlier[sizeof(core->reason)];
	int r;

	memcpy(earlier, core->reason, sizeof(earlier));
	core->reason[0] = '\0';
	r = pmu->event_init(pmu, e);
	if (r && !core->reason[0])
		memcpy(core->reason, earlier, sizeof(earlier));
	if (r || !core->reason[0])
		return r;
	free(e->remark);
	e->remark = strdup(core->reason);
	return 0;
}

static int try_pmu(struct quipu_pmu *pmu, struct quipu_event *e)
{
	int r;

	e->pmu = pmu;
	r = ask_driver(pmu, e);
	if (r)
		return r;
	if (!(pmu->capabilities & QUIPU_PMU_CAP_EXTENDED_REGS) &&
	    (e->attr.sample_regs_user | e->attr.sample_regs_intr) & e->core->config.regs_extended) {
		quipu_core_reason(e->core,
				  "the registers of the core's PMU are not in samples of %s",
				  pmu->name);
		r = -EOPNOTSUPP;
	} else if ((pmu->capabilities & QUIPU_PMU_CAP_NO_EXCLUDE) &&
		   (e->attr.flags & ANY_EXCLUDE)) {
		quipu_core_reason(
			e->core,
			"%s cannot tell user, kernel or guest activity apart; open the event without the "
			"exclude bits (no :u, :k, :h, :G or :H)",
			pmu->name);
		r = -EINVAL;
	}
	if (r && pmu->event_destroy)
		pmu->event_destroy(e);
	e->initialised = !r;
	return r;
}

/* Every PMU in turn; the first answer other than ENOENT counts. */
static int try_all(struct quipu_event *e)
{
	for (size_t i = 0; i < e->core->nlisted; i++) {
		int r = try_pmu(e->core->listed[i], e);

		if (r != -ENOENT)
			return r;
	}
	if (!e->core->reason[0])
		quipu_core_reason(
			e->core,
			"this machine has no PMU of type %u and no PMU that takes this event; "
			"`quipu list` shows those there are",
			e->attr.type);
	return -ENOENT;
}

int core_init_event(struct quipu_event *e)
{
	struct quipu_core *core = e->core;
	uint64_t type = e->attr.type;
	bool alias = type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE;
	bool extended = false;
	struct quipu_pmu *pmu;
	int r;

	if (e->parent)
		return try_pmu(e->parent->pmu, e);
	if (alias) {
		type = e->attr.config >> 32;
		extended = type != 0;
		if (extended)
			e->attr.config &= UINT32_MAX;
		else
			type = PERF_TYPE_RAW;
	}
	pmu = pmu_by_type(core, type);
	if (!pmu && alias && !extended)
		pmu = pmu_by_type(core, e->attr.type);
	if (!pmu)
		return try_all(e);
	if (extended && !(pmu->capabilities & QUIPU_PMU_CAP_EXTENDED_HW_TYPE)) {
		quipu_core_reason(
			core,
			"%s takes no generic events (PMU type in the upper half of config); use an event "
			"of its own",
			pmu->name);
		return -ENOENT;
	}
	r = try_pmu(pmu, e);
	if (r == -ENOENT && alias && !extended) {
		pmu = pmu_by_type(core, e->attr.type);
		r = pmu ? try_pmu(pmu, e) : try_all(e);
	}
	return r;
}

/* Is anything on @cpu that the tick must look after? */
static bool wants_tick(struct cpu *cpu)
{
	struct quipu_event *e;

	list_for_each(e, &cpu->active, active_link) {
		if (e->hw.interrupts == THROTTLED || e->hw.reload.sample_freq)
			return true;
	}
	return false;
}

/* When a timer of another kind than the tick is due: rotation, clock events. */
static uint64_t next_other(const struct cpu *cpu, size_t nclasses)
{
	uint64_t due = NEVER;
	struct quipu_event *e;

	for (size_t i = 0; i < nclasses; i++) {
		if (cpu->classes[i].mux_due < due)
			due = cpu->classes[i].mux_due;
	}
	list_for_each(e, &cpu->active, active_link) {
		if (e->clock_due < due)
			due = e->clock_due;
	}
	return due;
}

static uint64_t next_tick(const struct cpu *cpu, size_t nclasses)
{
	uint64_t due = next_other(cpu, nclasses);

	return cpu->tick_due < due ? cpu->tick_due : due;
}

unsigned quipu_core_steers(const struct quipu_core *core, unsigned n, uint64_t *until)
{
	const struct cpu *cpu;
	struct quipu_event *e;
	unsigned steered = 0;

	*until = NEVER;
	if (n >= core->config.ncpus)
		return 0;
	cpu = &core->cpus[n];
	list_for_each(e, &cpu->active, active_link) {
		if (e->hw.interrupts == THROTTLED)
			return 0;
		steered += e->hw.reload.sample_freq != 0;
	}
	*until = next_other(cpu, core->npmus);
	return steered;
}

static uint64_t tick_after(const struct quipu_core *core, uint64_t now)
{
	return (now / core->tick_ns + 1) * core->tick_ns;
}

void core_tell(struct quipu_core *core, unsigned n)
{
	struct cpu *cpu = &core->cpus[n];
	uint64_t due;

	if (!wants_tick(cpu))
		cpu->tick_due = NEVER;
	else if (cpu->tick_due == NEVER)
		cpu->tick_due = tick_after(core, core_now(core, n));
	due = next_tick(cpu, core->npmus);
	if (due == cpu->told)
		return;
	cpu->told = due;
	if (core->ops->tick_needed)
		core->ops->tick_needed(core->arg, n, due != NEVER);
}

uint64_t quipu_core_next_rotation(const struct quipu_core *core, unsigned n)
{
	uint64_t due = NEVER;

	if (n >= core->config.ncpus)
		return NEVER;
	for (size_t i = 0; i < core->npmus; i++) {
		if (core->cpus[n].classes[i].mux_due < due)
			due = core->cpus[n].classes[i].mux_due;
	}
	return due;
}

uint64_t quipu_core_next_tick(const struct quipu_core *core, unsigned cpu)
{
	return cpu < core->config.ncpus ? next_tick(&core->cpus[cpu], core->npmus) : NEVER;
}

/* A14, "every tick": lift throttling, steer the period of frequency events. */
static void tick_event(struct quipu_event *e)
{
	struct quipu_reload *r = &e->hw.reload;
	uint64_t before = r->freq_count;
	bool moved;

	if (e->hw.interrupts == THROTTLED) {
		e->hw.interrupts = 0;
		sample_throttle(e, false);
		if (!r->sample_freq)
			e->pmu->start(e, 0);
	}
	if (!r->sample_freq)
		return;
	e->pmu->stop(e, QUIPU_EF_UPDATE);
	moved = e->count > before;
	r->freq_count = e->count;
	if (moved)
		quipu_reload_adjust(r, r->tick_ns, e->count - before);
	e->pmu->start(e, moved ? QUIPU_EF_RELOAD : 0);
}

void quipu_core_tick_at(struct quipu_core *core, unsigned n, const struct quipu_sample *where)
{
	struct quipu_event *e;
	struct cpu *cpu;
	uint64_t now;

	core_work(core);
	if (n >= core->config.ncpus)
		return;
	cpu = &core->cpus[n];
	now = core_now(core, n);
	list_for_each(e, &cpu->active, active_link) {
		if (e->clock_due <= now)
			software_expire(e, where);
	}
	if (cpu->tick_due <= now) {
		list_for_each(e, &cpu->active, active_link)
			tick_event(e);
		cpu->tick_due = tick_after(core, now);
	}
	core_work(core);
	for (unsigned class = 0; class < core->npmus; class ++) {
		if (cpu->classes[class].mux_due <= now)
			context_rotate(core, n, class);
	}
	core_tell(core, n);
}

void quipu_core_tick(struct quipu_core *core, unsigned cpu)
{
	quipu_core_tick_at(core, cpu, NULL);
}

struct quipu_event *quipu_core_slot_event(const struct quipu_core *core, unsigned cpu,
					  unsigned slot)
{
	struct quipu_event *e;

	if (cpu >= core->config.ncpus || slot >= QUIPU_SLOTS)
		return NULL;
	e = core->cpus[cpu].slots[slot];
	return e && e->state == STATE_ACTIVE ? e : NULL;
}

struct quipu_task *quipu_core_current(const struct quipu_core *core, unsigned cpu)
{
	return cpu < core->config.ncpus ? core->cpus[cpu].current : NULL;
}

void quipu_core_migrate(struct quipu_core *core, struct quipu_pmu *pmu, unsigned from, unsigned to)
{
	struct link *l, *next;

	if (from == to || from >= core->config.ncpus || to >= core->config.ncpus ||
	    !core->cpus[to].online)
		return;
	for (l = core->cpus[from].ctx.events.next; l != &core->cpus[from].ctx.events; l = next) {
		struct quipu_event *e = container(l, struct quipu_event, ctx_link);

		next = l->next;
		if (e->leader != e || core->pmus[e->class] != pmu)
			continue;
		context_migrate(e, &core->cpus[to].ctx);
		if (e->ctx == &core->cpus[to].ctx)
			next = core->cpus[from]
				       .ctx.events.next; /* its members left as well: begin again */
	}
}

/* Counters of the whole machine do not go with a CPU: their drivers move the events while they
 * still count. */
static void tell_uncore(struct quipu_core *core, unsigned n)
{
	for (size_t i = 0; i < core->nlisted; i++) {
		struct quipu_pmu *pmu = core->listed[i];

		if (pmu->context == QUIPU_CONTEXT_UNCORE && pmu->cpu_offline)
			pmu->cpu_offline(pmu, n);
	}
}

bool quipu_core_is_online(const struct quipu_core *core, unsigned n)
{
	return n < core->config.ncpus && core->cpus[n].online;
}

int quipu_core_set_online(struct quipu_core *core, unsigned n, bool online)
{
	struct cpu *cpu;

	core_work(core);
	if (n >= core->config.ncpus)
		return -EINVAL;
	cpu = &core->cpus[n];
	if (cpu->online == online)
		return 0;
	if (!online) {
		if (cpu->current)
			return -EBUSY;
		tell_uncore(core, n);
		for (struct link *l = cpu->ctx.events.next; l != &cpu->ctx.events; l = l->next)
			event_disable(container(l, struct quipu_event, ctx_link));
	}
	cpu->online = online;
	for (size_t i = 0; i < core->nlisted; i++) {
		struct quipu_pmu *pmu = core->listed[i];

		if (online && pmu->cpu_online)
			pmu->cpu_online(pmu, n);
		else if (!online && pmu->cpu_offline && pmu->context != QUIPU_CONTEXT_UNCORE)
			pmu->cpu_offline(pmu, n);
	}
	core_tell(core, n);
	return 0;
}
