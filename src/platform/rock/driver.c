// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events on the counters and samplers of a Rock chip, as a driver of a Linux-like guest would have
 * them (Rock sheet section 9; no such driver was ever written). Counters are chip-wide: an event
 * may find its counter taken by another strand, and then waits for its turn. Rings and estimates
 * are in ring.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/rock/driver_impl.h"

static const struct {
	unsigned code, width;
	const char *name;
} slots[SLOTS] = {
	[SLOT_CYC] = {RK_PERF_CYC, 39, "CYC"},	  [SLOT_INSTR] = {RK_PERF_INSTR, 39, "INSTR"},
	[SLOT_L2] = {RK_PERF_L2, 48, "L2"},	  [SLOT_MMU] = {RK_PERF_MMU, 48, "MMU"},
	[SLOT_YANK] = {RK_PERF_YANK, 64, "YANK"}, [SLOT_SIBLK] = {RK_PERF_SIBLK, 64, "SIBLK"},
	[SLOT_LVLK] = {RK_PERF_LVLK, 64, "LVLK"},
};

unsigned rock_slot_code(enum slot s)
{
	return slots[s].code;
}

unsigned rock_slot_width(enum slot s)
{
	return slots[s].width;
}

uint64_t rock_call(struct rock_driver *d, unsigned cpu, uint64_t function, uint64_t a0, uint64_t a1,
		   uint64_t a2, uint64_t a3, uint64_t *ret1)
{
	const uint64_t args[4] = {a0, a1, a2, a3};

	return quipu_rock_hcall(d->env.rock, d->env.strand[cpu], function, args, ret1);
}

/* ---- what an event asks for ---- */

/*
 * hw.config: the slot; config_base: type and source; event_base: driver code of a synthetic event
 * (bit 31), else txn.
 */
#define SYN_BIT bits_one(31)

bool rock_is_synthetic(const struct quipu_event *e)
{
	return quipu_event_hw((struct quipu_event *)e)->event_base & SYN_BIT;
}

static bool is_sampler_pmu(const struct quipu_event *e)
{
	return pmu_of(e)->kind == PMU_IS || pmu_of(e)->kind == PMU_L2S;
}

static enum slot slot_of(const struct quipu_event *e)
{
	return (enum slot)quipu_event_hw((struct quipu_event *)e)->config;
}

static int invalid(struct rock_driver *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int invalid(struct rock_driver *d, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	quipu_core_reason(d->env.core, "%s", text);
	return -EINVAL;
}

/* An event in the driver's own terms. */
struct want {
	enum slot slot;
	unsigned txn, source;
	bool syn;
	unsigned group, sel;
};

static int find_slot(struct rock_driver *d, uint64_t code, enum slot *slot)
{
	for (unsigned s = 0; s < SLOTS; s++)
		if (slots[s].code == code) {
			*slot = (enum slot)s;
			return 0;
		}
	return invalid(
		d,
		"type 0x%" PRIx64
		" is none of 0x100 (CYC), 0x200 (INSTR), 0x400 (L2), 0x800 (MMU), 0x2000 (YANK), "
		"0x4000 (SIBLK), 0x8000 (LVLK)",
		code);
}

static int check_synthetic(struct rock_driver *d, const struct want *w, const struct quipu_attr *a)
{
	static const unsigned groups[SLOTS] = {[SLOT_INSTR] = 3, [SLOT_L2] = 4};
	uint64_t freq = bits_get(a->config2, 15, 0);
	SYN_LIMITS(w->slot, min, max);

	if (!w->syn)
		return a->config1 || a->config2 ? invalid(d, "group, sel, sfreq, nohws and tl "
							     "belong to synthetic events (syn=1)")
						: 0;
	if (w->group >= groups[w->slot])
		return invalid(d, "%s has no synthetic events of group %u", slots[w->slot].name,
			       w->group);
	if (w->txn)
		return invalid(d, "a synthetic event counts every transaction: txn must be 0");
	if (freq && (freq < min || freq > max))
		return invalid(d, "sfreq %" PRIu64 " is outside %" PRIu64 " to %" PRIu64, freq, min,
			       max);
	if (w->slot != SLOT_INSTR && bits_get(a->config2, 18, 16))
		return invalid(d, "nohws and tl are for synthetic events of INSTR");
	return 0;
}

static int decode_terms(struct rock_driver *d, enum pmu_kind kind, const struct quipu_attr *a,
			struct want *w)
{
	uint64_t known = kind == PMU_CHIP ? UINT64_C(0xf007fffff) : UINT64_C(0x7fffff);
	int err = find_slot(d, bits_get(a->config, 15, 0), &w->slot);

	if (err)
		return err;
	if (a->config & ~known || a->config1 & ~UINT64_C(0x80ffffff) ||
	    a->config2 & ~UINT64_C(0x7ffff))
		return invalid(d, "bits that no term of this PMU names");
	w->txn = (unsigned)bits_get(a->config, 22, 16);
	w->syn = a->config1 & SYN_BIT;
	w->group = (unsigned)bits_get(a->config1, 23, 12);
	w->sel = (unsigned)bits_get(a->config1, 11, 0);
	w->source = kind == PMU_CHIP ? (unsigned)bits_get(a->config, 35, 32) : RK_PERF_SRC_STRAND;
	if (!w->source)
		w->source = RK_PERF_SRC_STRANDS;
	if (w->source >= RK_PERF_SRC_SIU && w->slot != SLOT_L2)
		return invalid(d, "the SIU and the MMU are sources of L2 transactions only");
	err = check_synthetic(d, w, a);
	if (err || w->syn)
		return err;
	if ((w->slot == SLOT_L2 || w->slot == SLOT_MMU) != (w->txn != 0))
		return invalid(d, w->txn ? "txn filters L2 and MMU events only"
					 : "L2 and MMU events need txn");
	return 0;
}

static int decode_generic(struct rock_driver *d, const struct quipu_attr *a, struct want *w)
{
	const struct rock_name *n = a->type == PERF_TYPE_HARDWARE ? rock_name_hardware(a->config)
								  : rock_name_cache(a->config);

	if (!n) {
		quipu_core_reason(d->env.core, "Rock has no event for this generic one; see `quipu "
					       "list` for those it has");
		return -ENOENT;
	}
	*w = (struct want){.txn = n->txn,
			   .source = RK_PERF_SRC_STRAND,
			   .syn = n->syn,
			   .group = n->group,
			   .sel = n->sel};
	return find_slot(d, n->code, &w->slot);
}

/* ---- can it be counted ---- */

static uint64_t privilege_bits(uint64_t flags)
{
	return (flags & QUIPU_ATTR_EXCLUDE_USER ? 0u : QUIPU_ROCK_USER) |
	       (flags & QUIPU_ATTR_EXCLUDE_KERNEL ? 0u : QUIPU_ROCK_PRIV) |
	       (flags & QUIPU_ATTR_EXCLUDE_HV ? 0u : QUIPU_ROCK_HPRIV);
}

/* Low bits of the START configuration. */
static uint64_t filter_of(const struct want *w, uint64_t flags)
{
	if (w->slot == SLOT_CYC || w->slot == SLOT_INSTR)
		return privilege_bits(flags);
	return w->syn ? 0x7f : w->txn;
}

static struct want want_of(const struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw((struct quipu_event *)e);

	return (struct want){
		.slot = slot_of(e),
		.syn = rock_is_synthetic(e),
		.txn = rock_is_synthetic(e) ? 0 : (unsigned)hw->event_base,
		.source = (unsigned)(hw->config_base & 0xf),
	};
}

/* A counter or a sampler: can it, and does the engine carry what it needs? */
static int check_half(struct rock_driver *d, const struct want *w, uint64_t filter, bool sampled)
{
	char buf[160];
	const char *text = NULL;

	if (!d->env.can(d->env.arg, slots[w->slot].code, w->source, filter, sampled, &text, buf,
			sizeof(buf))) {
		quipu_core_reason(d->env.core, "%s", text);
		return -ENOENT;
	}
	if (d->env.want(d->env.arg, slots[w->slot].code, w->source, filter, sampled)) {
		quipu_core_reason(d->env.core, "too many different events in one session: the "
					       "engine has no counter left for this one");
		return -EOPNOTSUPP;
	}
	if (text)
		quipu_core_reason(d->env.core, "%s", text);
	return 0;
}

/* A sampler that admits no user activity samples nothing, as a counter counts nothing: no refusal.
 */
static int check_sampler(struct rock_driver *d, const struct quipu_event *e, const struct want *w)
{
	if (w->slot == SLOT_INSTR && (quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER))
		return 0;
	return check_half(d, w, rock_ring_filter(e), true);
}

static int check_excludes(struct rock_driver *d, const struct want *w, enum pmu_kind kind,
			  const struct quipu_attr *a)
{
	if (kind == PMU_CHIP || w->slot == SLOT_CYC || w->slot == SLOT_INSTR)
		return 0; /* the core refuses those of rock_chip */
	if (a->flags & QUIPU_ATTR_EXCLUDE_USER)
		return invalid(
			d, "%s has no privilege filter: it cannot leave user activity out; drop :k",
			slots[w->slot].name);
	return 0;
}

/* One event a slot, so that two of a group on one never run together. */
static int check_group(struct rock_driver *d, struct quipu_event *e)
{
	struct quipu_event *leader = quipu_event_leader(e), *m;

	for (unsigned i = 0; (m = quipu_event_member(leader, i)); i++) {
		void *other = quipu_event_pmu(m) ? quipu_event_pmu(m)->driver : NULL;

		if (m == e || quipu_event_pmu(m)->event_init != quipu_event_pmu(e)->event_init ||
		    !other)
			continue;
		if (slot_of(m) == slot_of(e) && is_sampler_pmu(m) == is_sampler_pmu(e))
			return invalid(
				d, "two events of the group need the %s counter: a chip has one",
				slots[slot_of(e)].name);
	}
	return 0;
}

static void begin(struct quipu_event *e, const struct want *w)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);

	hw->config = w->slot;
	hw->config_base = slots[w->slot].code | w->source;
	hw->event_base = w->syn ? SYN_BIT | w->group << 12 | w->sel : w->txn;
	hw->idx = -1;
	hw->reload.max_left = bits_mask(slots[w->slot].width > 62 ? 62 : slots[w->slot].width);
	hw->prev_count = 0;
}

static int init_counter(struct rock_driver *d, struct quipu_event *e, enum pmu_kind kind)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	bool generic = a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE;
	struct want w = {0};
	int err = generic ? decode_generic(d, a, &w) : decode_terms(d, kind, a, &w);

	if (err)
		return err;
	if (a->sample_period && (w.syn || kind == PMU_CHIP))
		return invalid(
			d, "%s; count it, or sample with rock_is or rock_l2s",
			w.syn ? "an estimate never overflows"
			      : "rock_chip counts for many tasks at once and does not sample");
	if (a->sample_type & PERF_SAMPLE_BRANCH_STACK) {
		quipu_core_reason(
			d->env.core,
			"Rock records no branch stacks; use call graphs (-g) instead of -b");
		return -EOPNOTSUPP;
	}
	begin(e, &w);
	err = check_excludes(d, &w, kind, a);
	if (!err)
		err = check_half(d, &w, filter_of(&w, a->flags | QUIPU_ATTR_EXCLUDE_KERNEL), false);
	if (!err && w.syn)
		err = check_sampler(d, e, &w);
	if (err)
		return err;
	if ((w.slot == SLOT_CYC || w.slot == SLOT_INSTR) && (a->flags & QUIPU_ATTR_EXCLUDE_USER))
		quipu_core_reason(d->env.core, "counts 0: a program under a user-mode engine has "
					       "no privileged activity; drop :k");
	return check_group(d, e);
}

static int check_frequency(struct rock_driver *d, enum slot slot, const struct quipu_attr *a,
			   uint64_t period)
{
	SYN_LIMITS(slot, min, max);

	if ((a->flags & QUIPU_ATTR_FREQ) || !period || period < min || period > max)
		return invalid(d,
			       "the %s sampler takes one of every %" PRIu64 " to %" PRIu64
			       " candidates: record with -c in that range",
			       slots[slot].name, min, max);
	return 0;
}

static int init_sampler(struct rock_driver *d, struct quipu_event *e, enum pmu_kind kind)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	struct want w = {.slot = kind == PMU_IS ? SLOT_INSTR : SLOT_L2,
			 .source = RK_PERF_SRC_STRAND};
	int err = check_frequency(d, w.slot, a, a->sample_period);

	if (err)
		return err;
	if (kind == PMU_L2S && (a->flags & QUIPU_ATTR_EXCLUDE_USER))
		return invalid(d, "the L2 sampler has no privilege filter: it cannot leave user "
				  "activity out; drop :k");
	begin(e, &w);
	err = check_sampler(d, e, &w);
	return err ? err : check_group(d, e);
}

static unsigned chip_of(const struct rock_driver *d, unsigned cpu)
{
	return d->env.strand[cpu] / QUIPU_ROCK_CHIP_STRANDS;
}

/* Any CPU of a chip names it; one of them counts. */
static int choose_chip(struct rock_driver *d, struct quipu_event *e)
{
	int cpu = quipu_event_cpu(e);

	if (cpu < 0)
		return invalid(
			d,
			"rock_chip counts for a whole chip, not for a task; count on CPU %s (-a)",
			d->cpumask);
	if (d->mask_cpu[chip_of(d, (unsigned)cpu)] < 0)
		return invalid(d,
			       "chip %u is shared with another guest: it cannot be counted as a "
			       "whole; use rock, a strand at a time",
			       chip_of(d, (unsigned)cpu));
	quipu_event_set_cpu(e, d->mask_cpu[chip_of(d, (unsigned)cpu)]);
	return 0;
}

static int rock_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct rock_pmu *p = pmu->driver;
	const struct quipu_attr *a = quipu_event_attr(e);
	bool generic = a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE;

	if ((int)a->type != pmu->type && !(generic && p->kind == PMU_ROCK))
		return -ENOENT;
	if (p->kind == PMU_CHIP) {
		int err = choose_chip(p->driver, e);

		if (err)
			return err;
	}
	return p->kind == PMU_ROCK || p->kind == PMU_CHIP ? init_counter(p->driver, e, p->kind)
							  : init_sampler(p->driver, e, p->kind);
}

static int rock_check_period(struct quipu_event *e, uint64_t period)
{
	if (!is_sampler_pmu(e))
		return 0;
	return check_frequency(pmu_of(e)->driver, slot_of(e), quipu_event_attr(e), period);
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
	int owner = d->env.owner(d->env.arg, strand, slots[slot_of(e)].code);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].status != status)
			continue;
		if (owner >= 0 && owner != (int)strand)
			quipu_core_reason(d->env.core,
					  "the %s counter is owned by strand %d (%s): %s",
					  slots[slot_of(e)].name, owner,
					  quipu_rock_status_name(status), rows[i].why);
		else
			quipu_core_reason(d->env.core, "%s: %s (%s)", slots[slot_of(e)].name,
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
	struct want w = want_of(e);
	uint64_t flags = quipu_event_attr(e)->flags;

	return QUIPU_ROCK_TOE | filter_of(&w, pmu_of(e)->kind == PMU_CHIP ? 0 : flags);
}

/* Overflows @o and the value, as one difference. */
static void fold(struct rock_driver *d, struct quipu_event *e, uint64_t o)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned width = slots[slot_of(e)].width;
	uint64_t v = call1(d, e, RK_PERF_COUNT_GET, 0), more, delta;

	while ((more = call1(d, e, RK_PERF_COUNT_OVERFLOW, 0))) {
		o += more;
		v = call1(d, e, RK_PERF_COUNT_GET, 0);
	}
	delta = v - hw->prev_count + (width < 64 ? o << width : 0);
	hw->prev_count = v;
	quipu_event_add_count(e, delta);
	hw->reload.period_left = (int64_t)((uint64_t)hw->reload.period_left - delta);
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
	total = hw->prev_count + call1(d, e, RK_PERF_COUNT_GET, 0) + (o << slots[slot_of(e)].width);
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
	hw->prev_count = -hw->reload.programmed & bits_mask(slots[slot_of(e)].width);
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
				  slots[s].name, counter && c->counter[s] ? "counter" : "sampler");
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
		hw->prev_count &= bits_mask(slots[s].width);
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
	struct want w = want_of(e);

	*filtered = false;
	if (pmu_of(e)->kind != PMU_ROCK || w.syn)
		return QUIPU_SIGNAL_NONE;
	*filtered = quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER;
	return d->env.signal(d->env.arg, slots[w.slot].code, w.source,
			     filter_of(&w, quipu_event_attr(e)->flags & ~QUIPU_ATTR_EXCLUDE_USER));
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
	struct want w = want_of(e);

	if (pmu_of(e)->kind != PMU_ROCK || w.syn || !quipu_event_attr(e)->sample_period)
		return -1;
	return d->env.slot(d->env.arg, slots[w.slot].code, w.source,
			   filter_of(&w, quipu_event_attr(e)->flags));
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
	struct want w = {.txn = n->txn, .source = source, .syn = n->syn};
	uint64_t filter;
	bool can;

	find_slot(d, n->code, &w.slot);
	if (n->syn)
		snprintf(terms, sizeof(terms), "type=0x%04x,syn=1,group=%u,sel=0x%03x", n->code,
			 n->group, n->sel);
	else if (n->txn)
		snprintf(terms, sizeof(terms), "type=0x%04x,txn=0x%02x", n->code, n->txn);
	else
		snprintf(terms, sizeof(terms), "type=0x%04x", n->code);
	filter = filter_of(&w, QUIPU_ATTR_EXCLUDE_KERNEL);
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
