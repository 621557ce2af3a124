// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events on the counters and samplers of a Rock chip, as a driver of a Linux-like guest would have
 * them (Rock sheet section 9; no such driver was ever written). Counters are chip-wide: an event
 * may find its counter taken by another strand, and then waits for its turn. Rings and estimates
 * are in ring.c, what an event may ask for in driver_open.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/rock/driver_impl.h"

uint64_t rock_call(struct rock_driver *d, unsigned cpu, uint64_t function, uint64_t a0, uint64_t a1,
		   uint64_t a2, uint64_t a3, uint64_t *ret1)
{
	const uint64_t args[4] = {a0, a1, a2, a3};

	return quipu_rock_hcall(d->env.rock, d->env.strand[cpu], function, args, ret1);
}

/* ---- on the counters ---- */

/* Linux's errno for a status, with a reason. */
static int refused(struct rock_driver *d, const struct quipu_event *e, uint64_t status)
{
	static const struct {
		enum quipu_rock_status status;
		int err;
		const char *why;
	} rows[] = {
		{QUIPU_ROCK_EINVAL, -EINVAL, "the hypervisor refuses type or registers"},
		{QUIPU_ROCK_ENOACCESS, -EBUSY, "a strand of another guest has the counter"},
		{QUIPU_ROCK_EWOULDBLOCK, -EAGAIN, "a chip has one"},
		{QUIPU_ROCK_ENOCPU, -EPERM, "the chip is shared with another guest"},
		{QUIPU_ROCK_ENORADDR, -EFAULT, "the ring is not in the guest's memory"},
		{QUIPU_ROCK_EBADTRAP, -ENODEV, "the hypervisor no longer offers RKPERF"},
	};
	unsigned strand = d->env.strand[cpu_of(e)];
	int owner = d->env.owner(d->env.arg, strand, rock_slot_code(slot_of(e)));

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].status != status)
			continue;
		if (owner >= 0 && owner != (int)strand)
			quipu_core_reason(d->env.core,
					  "the %s counter is owned by strand %d (%s): %s",
					  rock_slot_name(slot_of(e)), owner,
					  quipu_rock_status_name(status), rows[i].why);
		else
			quipu_core_reason(d->env.core, "%s: %s (%s)", rock_slot_name(slot_of(e)),
					  rows[i].why, quipu_rock_status_name(status));
		return rows[i].err;
	}
	return -EIO;
}

static uint64_t call1(struct rock_driver *d, const struct quipu_event *e, uint64_t function,
		      uint64_t a1)
{
	uint64_t ret = 0;

	rock_call(d, cpu_of(e), function, quipu_event_hw((struct quipu_event *)e)->config_base, a1,
		  0, 0, &ret);
	return ret;
}

static uint64_t start_config(const struct quipu_event *e)
{
	struct rock_want w = rock_want_of(e);
	uint64_t flags = quipu_event_attr(e)->flags;

	return QUIPU_ROCK_TOE | rock_filter(&w, pmu_of(e)->kind == PMU_CHIP ? 0 : flags);
}

/* Overflows @o and the value, as one difference. */
static void fold(struct rock_driver *d, struct quipu_event *e, uint64_t o)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned width = rock_slot_width(slot_of(e));
	uint64_t v = call1(d, e, RK_PERF_COUNT_GET, 0), more, delta;

	while ((more = call1(d, e, RK_PERF_COUNT_OVERFLOW, 0))) {
		o += more;
		v = call1(d, e, RK_PERF_COUNT_GET, 0);
	}
	delta = v - hw->prev_count + (width < 64 ? o << width : 0);
	hw->prev_count = v;
	quipu_event_add_count(e, delta);
	quipu_reload_fold(&hw->reload, delta);
}

/*
 * An interval of a synthetic event: hits * counted / samples. Without a sample there is nothing to
 * estimate from: what was counted waits (in prev_count) for the next interval.
 */
static void estimate(struct rock_driver *d, struct quipu_event *e, bool restart)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t hits, samples, o, total;

	rock_ring_drain(d, e, &hits, &samples);
	call1(d, e, RK_PERF_COUNT_STOP, 0);
	o = call1(d, e, RK_PERF_COUNT_OVERFLOW, 0);
	total = hw->prev_count + call1(d, e, RK_PERF_COUNT_GET, 0) +
		(o << rock_slot_width(slot_of(e)));
	call1(d, e, RK_PERF_COUNT_SET, 0);
	if (restart)
		call1(d, e, RK_PERF_COUNT_START, start_config(e));
	hw->prev_count = samples ? 0 : total;
	if (samples)
		quipu_event_add_count(e, bits_muldiv(hits, total, samples));
}

static void update(struct rock_driver *d, struct quipu_event *e, bool running)
{
	uint64_t hits, samples;

	if (is_sampler_pmu(e))
		rock_ring_drain(d, e, &hits, &samples);
	else if (rock_is_synthetic(e))
		estimate(d, e, running);
	else
		fold(d, e, call1(d, e, RK_PERF_COUNT_OVERFLOW, 0));
}

static void rock_read(struct quipu_event *e)
{
	if (!(quipu_event_hw(e)->state & QUIPU_HES_STOPPED))
		update(pmu_of(e)->driver, e, true);
}

static bool set_period(struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	bool used;

	if (!quipu_event_attr(e)->sample_period)
		return false; /* goes on where it was */
	used = quipu_reload_set_period(&hw->reload);
	hw->prev_count = -hw->reload.programmed & bits_mask(rock_slot_width(slot_of(e)));
	return used;
}

static void program(struct rock_driver *d, struct quipu_event *e)
{
	call1(d, e, RK_PERF_COUNT_SET, quipu_event_hw(e)->prev_count);
	call1(d, e, RK_PERF_COUNT_START, start_config(e));
}

static void rock_start(struct quipu_event *e, int flags)
{
	struct rock_driver *d = pmu_of(e)->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (!(hw->state & QUIPU_HES_STOPPED))
		return; /* unthrottled: it never stopped */
	hw->state = 0;
	if (is_sampler_pmu(e)) {
		rock_ring_start(d, e);
	} else if (rock_is_synthetic(e)) {
		call1(d, e, RK_PERF_COUNT_START, start_config(e));
		rock_ring_start(d, e);
	} else {
		set_period(e);
		program(d, e);
	}
}

static void rock_stop(struct quipu_event *e, int flags)
{
	struct rock_driver *d = pmu_of(e)->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->state & QUIPU_HES_STOPPED)
		return;
	if (!is_sampler_pmu(e))
		call1(d, e, RK_PERF_COUNT_STOP, 0);
	if (is_sampler_pmu(e) || rock_is_synthetic(e))
		call1(d, e, RK_PERF_SAMPLE_STOP, 0);
	hw->state |= QUIPU_HES_STOPPED;
	update(d, e, false);
	hw->state |= QUIPU_HES_UPTODATE;
}

static uint64_t take(struct rock_driver *d, struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t status = 0;

	if (!is_sampler_pmu(e))
		status =
			rock_call(d, cpu_of(e), RK_PERF_COUNT_INIT, hw->config_base, 0, 0, 0, NULL);
	if (status || !(is_sampler_pmu(e) || rock_is_synthetic(e)))
		return status;
	status = rock_ring_init(d, e);
	if (status && !is_sampler_pmu(e))
		call1(d, e, RK_PERF_COUNT_RELEASE, 0);
	return status;
}

static int rock_add(struct quipu_event *e, int flags)
{
	struct rock_driver *d = pmu_of(e)->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct rock_cpu *c = &d->cpus[cpu_of(e)];
	bool counter = !is_sampler_pmu(e), sampler = is_sampler_pmu(e) || rock_is_synthetic(e);
	enum slot s = slot_of(e);
	uint64_t status;

	if ((counter && c->counter[s]) || (sampler && c->sampler[s])) {
		quipu_core_reason(d->env.core, "the %s %s is taken by another event of this CPU",
				  rock_slot_name(s),
				  counter && c->counter[s] ? "counter" : "sampler");
		return -EAGAIN;
	}
	status = take(d, e);
	if (status)
		return refused(d, e, status);
	if (counter)
		c->counter[s] = e;
	if (sampler)
		c->sampler[s] = e;
	hw->idx = (int)s;
	/*
	 * What a synthetic event could not estimate yet goes with it; a counter starts where it
	 * ended.
	 */
	if (!rock_is_synthetic(e) && !quipu_event_attr(e)->sample_period)
		hw->prev_count &= bits_mask(rock_slot_width(s));
	hw->state = QUIPU_HES_UPTODATE | QUIPU_HES_STOPPED;
	if (flags & QUIPU_EF_START)
		rock_start(e, QUIPU_EF_RELOAD);
	return 0;
}

static void rock_del(struct quipu_event *e, int flags)
{
	struct rock_driver *d = pmu_of(e)->driver;
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct rock_cpu *c = &d->cpus[cpu_of(e)];
	enum slot s = slot_of(e);

	if (hw->idx < 0)
		return;
	rock_stop(e, flags);
	if (c->counter[s] == e) {
		call1(d, e, RK_PERF_COUNT_RELEASE, 0);
		c->counter[s] = NULL;
	}
	if (c->sampler[s] == e) {
		call1(d, e, RK_PERF_SAMPLE_RELEASE, 0);
		c->sampler[s] = NULL;
	}
	hw->idx = -1;
}

static quipu_signal rock_signal(const struct quipu_event *e, bool *filtered)
{
	struct rock_driver *d = pmu_of(e)->driver;
	struct rock_want w = rock_want_of(e);

	*filtered = false;
	if (pmu_of(e)->kind != PMU_ROCK || w.syn)
		return QUIPU_SIGNAL_NONE;
	*filtered = quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER;
	return d->env.signal(d->env.arg, rock_slot_code(w.slot), w.source,
			     rock_filter(&w,
					 quipu_event_attr(e)->flags & ~QUIPU_ATTR_EXCLUDE_USER));
}

/* Instructions are counted one by one, also those of many strands. */
static enum quipu_exactness rock_exactness(const struct quipu_event *e)
{
	return slot_of(e) == SLOT_INSTR && !rock_is_synthetic(e) && !is_sampler_pmu(e)
		       ? QUIPU_EXACT
		       : QUIPU_MODELLED;
}

/*
 * Only of an event whose overflow is arithmetic: a sampling one. What wraps otherwise is folded by
 * the handler.
 */
static int rock_slot(struct quipu_event *e)
{
	struct rock_driver *d = pmu_of(e)->driver;
	struct rock_want w = rock_want_of(e);

	if (pmu_of(e)->kind != PMU_ROCK || w.syn || !quipu_event_attr(e)->sample_period)
		return -1;
	return d->env.slot(d->env.arg, rock_slot_code(w.slot), w.source,
			   rock_filter(&w, quipu_event_attr(e)->flags));
}

/* ---- the interrupt ---- */

/* One counter that may have overflowed. */
static bool serve(struct rock_driver *d, struct quipu_event *e, const struct quipu_interrupt *irq)
{
	uint64_t o = call1(d, e, RK_PERF_COUNT_OVERFLOW, 0);
	struct quipu_sample sample = {0};
	bool due;

	if (!o)
		return false;
	fold(d, e, o);
	if (!quipu_event_attr(e)->sample_period)
		return true;
	if (irq)
		sample = (struct quipu_sample){
			.ip = irq->pc,
			.addr = irq->addr,
			.chain = irq->chain,
			.nr_chain = irq->nr_chain,
			.branches = irq->branches,
			.nr_branches = irq->nr_branches,
			.pid = irq->pid,
			.tid = irq->tid,
			.exact_ip = true,
		};
	/*
	 * The counter goes on from its next period before the core hears of the overflow, which may
	 * stop the event.
	 */
	due = set_period(e);
	program(d, e);
	/*
	 * A throttled event goes on: an interrupt of the model takes no time that would have to be
	 * saved.
	 */
	if (due)
		quipu_event_overflow(e, &sample);
	return true;
}

bool rock_driver_interrupt(struct rock_driver *d, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct rock_cpu *c = &d->cpus[cpu];
	bool handled = false;

	for (unsigned s = 0; s < SLOTS; s++) {
		struct quipu_event *e = c->counter[s], *m = c->sampler[s];

		if (e && e != m && !(quipu_event_hw(e)->state & QUIPU_HES_STOPPED))
			handled |= serve(d, e, irq);
		if (m && !(quipu_event_hw(m)->state & QUIPU_HES_STOPPED)) {
			update(d, m, true);
			handled = true;
		}
	}
	return handled;
}

/* ---- CPUs ---- */

/* A chip is shared with another guest: its counters cannot count for all its strands. */
static bool whole_chip(struct rock_driver *d, unsigned cpu)
{
	const uint64_t type = RK_PERF_CYC | RK_PERF_SRC_STRANDS;

	if (rock_call(d, cpu, RK_PERF_COUNT_INIT, type, 0, 0, 0, NULL) == QUIPU_ROCK_ENOCPU)
		return false;
	rock_call(d, cpu, RK_PERF_COUNT_RELEASE, type, 0, 0, 0, NULL);
	return true;
}

static void write_mask(struct rock_driver *d)
{
	size_t n = 0;

	d->cpumask[0] = '\0';
	for (unsigned c = 0; c < d->nchips; c++)
		if (d->mask_cpu[c] >= 0)
			n += (size_t)snprintf(d->cpumask + n, 12, "%s%d", n ? "," : "",
					      d->mask_cpu[c]);
}

static int first_online(const struct rock_driver *d, unsigned chip)
{
	for (unsigned cpu = 0; cpu < d->env.ncpus; cpu++)
		if (d->cpus[cpu].online && chip_of(d, cpu) == chip)
			return (int)cpu;
	return -1;
}

static int probe_chips(struct rock_driver *d)
{
	for (unsigned cpu = 0; cpu < d->env.ncpus; cpu++)
		if (chip_of(d, cpu) >= d->nchips)
			d->nchips = chip_of(d, cpu) + 1;
	d->mask_cpu = calloc(d->nchips, sizeof(*d->mask_cpu));
	d->cpumask = calloc(d->nchips, 12);
	if (!d->mask_cpu || !d->cpumask)
		return -ENOMEM;
	for (unsigned c = 0; c < d->nchips; c++) {
		d->mask_cpu[c] = first_online(d, c);
		if (d->mask_cpu[c] >= 0 && !whole_chip(d, (unsigned)d->mask_cpu[c]))
			d->mask_cpu[c] = -1;
	}
	write_mask(d);
	return 0;
}

static void rock_cpu_online(struct quipu_pmu *pmu, unsigned cpu)
{
	struct rock_pmu *p = pmu->driver;
	struct rock_driver *d = p->driver;
	unsigned chip = chip_of(d, cpu);

	d->cpus[cpu].online = true;
	if (p->kind == PMU_CHIP && d->mask_cpu[chip] < 0 && whole_chip(d, cpu)) {
		d->mask_cpu[chip] = (int)cpu;
		write_mask(d);
	}
}

static void rock_cpu_offline(struct quipu_pmu *pmu, unsigned cpu)
{
	struct rock_pmu *p = pmu->driver;
	struct rock_driver *d = p->driver;
	unsigned chip = chip_of(d, cpu);

	d->cpus[cpu].online = false;
	if (p->kind != PMU_CHIP || d->mask_cpu[chip] != (int)cpu)
		return;
	d->mask_cpu[chip] = first_online(d, chip);
	write_mask(d);
	if (d->mask_cpu[chip] >= 0)
		quipu_core_migrate(d->env.core, pmu, cpu, (unsigned)d->mask_cpu[chip]);
}

/* ---- registration ---- */

static const struct quipu_pmu_format counter_formats[] = {
	{"type", "config:0-15"},    {"txn", "config:16-22"}, {"sel", "config1:0-11"},
	{"group", "config1:12-23"}, {"syn", "config1:31"},   {"sfreq", "config2:0-15"},
	{"nohws", "config2:16"},    {"tl", "config2:17-18"}, {NULL, NULL},
};
static const struct quipu_pmu_format chip_formats[] = {
	{"type", "config:0-15"},    {"txn", "config:16-22"},
	{"src", "config:32-35"},    {"sel", "config1:0-11"},
	{"group", "config1:12-23"}, {"syn", "config1:31"},
	{"sfreq", "config2:0-15"},  {"nohws", "config2:16"},
	{"tl", "config2:17-18"},    {NULL, NULL},
};
static const struct quipu_pmu_format is_formats[] = {{"tl", "config:0-1"},
						     {"info_mask", "config1:0-63"},
						     {"info_match", "config2:0-63"},
						     {NULL, NULL}};
static const struct quipu_pmu_format l2s_formats[] = {
	{"txn", "config:0-6"}, {"evt", "config:7-8"}, {NULL, NULL}};

static bool add_name(struct rock_driver *d, struct quipu_pmu_event *out, const struct rock_name *n,
		     unsigned source)
{
	char terms[80], buf[160];
	const char *why = NULL;
	struct rock_want w = {.txn = n->txn, .source = source, .syn = n->syn};
	uint64_t filter;
	bool can;

	rock_find_slot(d, n->code, &w.slot);
	if (n->syn)
		snprintf(terms, sizeof(terms), "type=0x%04x,syn=1,group=%u,sel=0x%03x", n->code,
			 n->group, n->sel);
	else if (n->txn)
		snprintf(terms, sizeof(terms), "type=0x%04x,txn=0x%02x", n->code, n->txn);
	else
		snprintf(terms, sizeof(terms), "type=0x%04x", n->code);
	filter = rock_filter(&w, QUIPU_ATTR_EXCLUDE_KERNEL);
	can = d->env.can(d->env.arg, n->code, source, filter, false, &why, buf, sizeof(buf)) &&
	      (!n->syn || d->env.can(d->env.arg, n->code, source,
				     w.slot == SLOT_L2 ? ROCK_L2_ANY : ROCK_IS_USER, true, &why,
				     buf, sizeof(buf)));
	*out = (struct quipu_pmu_event){
		.name = n->name,
		.terms = strdup(terms),
		.desc = n->desc,
		.signal = n->syn ? QUIPU_SIGNAL_NONE
				 : d->env.signal(d->env.arg, n->code, source, filter),
		.exactness = w.slot == SLOT_INSTR && !n->syn ? QUIPU_EXACT : QUIPU_MODELLED,
		.unavailable = can ? NULL : strdup(why),
	};
	return out->terms && (can || out->unavailable);
}

static int make_events(struct rock_driver *d, unsigned which, unsigned source)
{
	struct quipu_pmu_event *e = calloc(ROCK_NAMES + 1, sizeof(*e));

	d->events[which] = e;
	if (!e)
		return -ENOMEM;
	for (unsigned i = 0; i < ROCK_NAMES; i++)
		if (!add_name(d, &e[i], &rock_names[i], source))
			return -ENOMEM;
	return 0;
}

static int register_pmu(struct rock_driver *d, enum pmu_kind kind, const struct quipu_pmu *what)
{
	struct rock_pmu *p = &d->pmu[kind];
	int err;

	p->pmu = *what;
	p->kind = kind;
	p->driver = d;
	p->pmu.driver = p;
	p->pmu.event_init = rock_event_init;
	p->pmu.add = rock_add;
	p->pmu.del = rock_del;
	p->pmu.start = rock_start;
	p->pmu.stop = rock_stop;
	p->pmu.read = rock_read;
	p->pmu.check_period = rock_check_period;
	p->pmu.cpu_online = rock_cpu_online;
	p->pmu.cpu_offline = rock_cpu_offline;
	p->pmu.signal = rock_signal;
	p->pmu.exactness = rock_exactness;
	p->pmu.slot = rock_slot;
	err = quipu_core_register(d->env.core, &p->pmu);
	d->registered[kind] = !err;
	return err;
}

static int register_all(struct rock_driver *d)
{
	int err = register_pmu(d, PMU_ROCK,
			       &(struct quipu_pmu){.name = "rock",
						   .type = PERF_TYPE_RAW,
						   .context = QUIPU_CONTEXT_HARDWARE,
						   .formats = counter_formats,
						   .events = d->events[PMU_ROCK]});

	if (!err && d->cpumask[0])
		err = register_pmu(d, PMU_CHIP,
				   &(struct quipu_pmu){.name = "rock_chip",
						       .type = -1,
						       .capabilities = QUIPU_PMU_CAP_NO_EXCLUDE,
						       .context = QUIPU_CONTEXT_UNCORE,
						       .formats = chip_formats,
						       .events = d->events[PMU_CHIP],
						       .cpumask = d->cpumask});
	if (!err)
		err = register_pmu(d, PMU_IS,
				   &(struct quipu_pmu){.name = "rock_is",
						       .type = -1,
						       .context = QUIPU_CONTEXT_HARDWARE,
						       .formats = is_formats});
	if (!err)
		err = register_pmu(d, PMU_L2S,
				   &(struct quipu_pmu){.name = "rock_l2s",
						       .type = -1,
						       .context = QUIPU_CONTEXT_HARDWARE,
						       .formats = l2s_formats});
	return err;
}

int rock_driver_new(const struct rock_driver_env *env, struct quipu_notes *notes,
		    struct rock_driver **out)
{
	struct rock_driver *d = calloc(1, sizeof(*d));
	uint64_t status;
	int err = -ENOMEM;

	if (!d)
		return err;
	d->env = *env;
	d->cpus = calloc(env->ncpus, sizeof(*d->cpus));
	if (!d->cpus)
		goto fail;
	for (unsigned cpu = 0; cpu < env->ncpus; cpu++)
		d->cpus[cpu].online = true;
	status = quipu_rock_set_version(env->rock, env->strand[0], API_GROUP_RKPERF, 1, 0, NULL);
	if (status) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "/",
			   "the hypervisor has no RKPERF 1.0 (%s): no PMU",
			   quipu_rock_status_name(status));
		err = -ENODEV;
		goto fail;
	}
	err = probe_chips(d);
	if (!err)
		err = make_events(d, PMU_ROCK, RK_PERF_SRC_STRAND);
	if (!err)
		err = make_events(d, PMU_CHIP, RK_PERF_SRC_STRANDS);
	if (!err)
		err = register_all(d);
	if (err)
		goto fail;
	*out = d;
	return 0;
fail:
	rock_driver_free(d);
	return err;
}

void rock_driver_free(struct rock_driver *d)
{
	if (!d)
		return;
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; d->events[k] && i < ROCK_NAMES; i++) {
			free((char *)d->events[k][i].terms);
			free((char *)d->events[k][i].unavailable);
		}
		free(d->events[k]);
	}
	free(d->mask_cpu);
	free(d->cpumask);
	free(d->cpus);
	free(d);
}

void rock_driver_describe(const struct rock_driver *d, quipu_describe_fn *fn, void *arg)
{
	char line[200];

	fn(arg, 1, "driver: RKPERF 1.0 by hypervisor call");
	fn(arg, 2,
	   "PMU rock (type 4): one strand; CYC and INSTR of 39 bits, L2 and MMU of 48, YANK, SIBLK "
	   "and LVLK of 64");
	if (d->registered[PMU_CHIP]) {
		snprintf(line, sizeof(line), "PMU rock_chip: all strands of a chip, on CPU %s",
			 d->cpumask);
		fn(arg, 2, line);
	}
	fn(arg, 2,
	   "PMU rock_is: samples instructions, one of 50 to 1023 (record -e rock_is// -c N)");
	fn(arg, 2,
	   "PMU rock_l2s: samples L2 transactions, one of 250 to 65535 (record -e rock_l2s// -c "
	   "N)");
	fn(arg, 2, "a chip has one counter of each type: strands take turns");
}
