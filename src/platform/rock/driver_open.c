// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an event of the Rock PMUs asks for, and whether it can be had: its terms, generic events,
 * privilege, groups (Rock sheet sections 8.2, 9.2, 9.3). driver.c puts it on the counters.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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

const char *rock_slot_name(enum slot s)
{
	return slots[s].name;
}

/* ---- what an event asks for ---- */

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

int rock_find_slot(struct rock_driver *d, uint64_t code, enum slot *slot)
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

static int check_synthetic(struct rock_driver *d, const struct rock_want *w,
			   const struct quipu_attr *a)
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
			struct rock_want *w)
{
	uint64_t known = kind == PMU_CHIP ? UINT64_C(0xf007fffff) : UINT64_C(0x7fffff);
	int err = rock_find_slot(d, bits_get(a->config, 15, 0), &w->slot);

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

static int decode_generic(struct rock_driver *d, const struct quipu_attr *a, struct rock_want *w)
{
	const struct rock_name *n = a->type == PERF_TYPE_HARDWARE ? rock_name_hardware(a->config)
								  : rock_name_cache(a->config);

	if (!n) {
		quipu_core_reason(d->env.core, "Rock has no event for this generic one; see `quipu "
					       "list` for those it has");
		return -ENOENT;
	}
	*w = (struct rock_want){.txn = n->txn,
				.source = RK_PERF_SRC_STRAND,
				.syn = n->syn,
				.group = n->group,
				.sel = n->sel};
	return rock_find_slot(d, n->code, &w->slot);
}

/* ---- can it be counted ---- */

static uint64_t privilege_bits(uint64_t flags)
{
	return (flags & QUIPU_ATTR_EXCLUDE_USER ? 0u : QUIPU_ROCK_USER) |
	       (flags & QUIPU_ATTR_EXCLUDE_KERNEL ? 0u : QUIPU_ROCK_PRIV) |
	       (flags & QUIPU_ATTR_EXCLUDE_HV ? 0u : QUIPU_ROCK_HPRIV);
}

/* Low bits of the START configuration. */
uint64_t rock_filter(const struct rock_want *w, uint64_t flags)
{
	if (w->slot == SLOT_CYC || w->slot == SLOT_INSTR)
		return privilege_bits(flags);
	return w->syn ? 0x7f : w->txn;
}

struct rock_want rock_want_of(const struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw((struct quipu_event *)e);

	return (struct rock_want){
		.slot = slot_of(e),
		.syn = rock_is_synthetic(e),
		.txn = rock_is_synthetic(e) ? 0 : (unsigned)hw->event_base,
		.source = (unsigned)(hw->config_base & 0xf),
	};
}

/* A counter or a sampler: can it, and does the engine carry what it needs? */
static int check_half(struct rock_driver *d, const struct rock_want *w, uint64_t filter,
		      bool sampled)
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
static int check_sampler(struct rock_driver *d, const struct quipu_event *e,
			 const struct rock_want *w)
{
	if (w->slot == SLOT_INSTR && (quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER))
		return 0;
	return check_half(d, w, rock_ring_filter(e), true);
}

static int check_excludes(struct rock_driver *d, const struct rock_want *w, enum pmu_kind kind,
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

static void begin(struct quipu_event *e, const struct rock_want *w)
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
	struct rock_want w = {0};
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
		err = check_half(d, &w, rock_filter(&w, a->flags | QUIPU_ATTR_EXCLUDE_KERNEL),
				 false);
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
	struct rock_want w = {.slot = kind == PMU_IS ? SLOT_INSTR : SLOT_L2,
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

int rock_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
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

int rock_check_period(struct quipu_event *e, uint64_t period)
{
	if (!is_sampler_pmu(e))
		return 0;
	return check_frequency(pmu_of(e)->driver, slot_of(e), quipu_event_attr(e), period);
}
