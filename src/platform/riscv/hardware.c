/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a RISC-V hart: CSRs, what moves them, and overflow. What follows is interrupt.c.
 *
 * Follows the RISC-V privileged architecture (machine, supervisor, hypervisor chapters), Sscofpmf,
 * Smcntrpmf, and Smcdeleg/Ssccfg; RISC-V sheet section 1. RV64 only (D-4): the numbers of upper
 * halves do not exist. Does not know perf, the SBI, or how the engine counts: user-level activity
 * is a difference of two readings of a signal, and a deadline is armed where a running counter with
 * OF = 0 will overflow.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "platform/riscv/csr.h"
#include "platform/riscv/events.h"
#include "platform/riscv/hart.h"

#define MENVCFG_CDE  bits_one(60)
#define SELECT_FIRST 0x40u /* siselect range of counter delegation */
#define SELECT_LAST  0x5Fu

static unsigned counter_width(const struct hart *h, unsigned i)
{
	return i < 3 ? 64 : h->width;
}

/* The filter bits that hold for counter @i: none without the extension that brings them. */
static uint64_t counter_filter(const struct hart *h, unsigned i)
{
	return has(h, i < 3 ? EXT_SMCNTRPMF : EXT_SSCOFPMF) ? h->event[i] : 0;
}

/* xINH bits that can be set: those of the modes that the hart has. */
static uint64_t filter_bits(const struct hart *h)
{
	uint64_t bits = QUIPU_RISCV_MINH | QUIPU_RISCV_SINH | QUIPU_RISCV_UINH;

	return has(h, EXT_H) ? bits | QUIPU_RISCV_VSINH | QUIPU_RISCV_VUINH : bits;
}

static uint64_t mode_filter(enum quipu_riscv_mode mode)
{
	static const uint64_t filter[QUIPU_RISCV_MODES] = {
		[QUIPU_RISCV_U] = QUIPU_RISCV_UINH,   [QUIPU_RISCV_S] = QUIPU_RISCV_SINH,
		[QUIPU_RISCV_M] = QUIPU_RISCV_MINH,   [QUIPU_RISCV_VS] = QUIPU_RISCV_VSINH,
		[QUIPU_RISCV_VU] = QUIPU_RISCV_VUINH,
	};

	return filter[mode];
}

static uint64_t signal_read(const struct hart *h, quipu_signal signal)
{
	struct quipu_signals *s = h->set->signals;

	return s->ops->read(s, h->number, signal);
}

/*
 * Unsigned overflow of the implemented bits: OF is sticky, and only its 0 -> 1 step asks for an
 * interrupt.
 */
static void counter_overflow(struct hart *h, unsigned i)
{
	if (i < 3 || !has(h, EXT_SSCOFPMF) || (h->event[i] & QUIPU_RISCV_OF))
		return;
	h->event[i] |= QUIPU_RISCV_OF;
	h->mip |= LCOFI_BIT;
	h->stale = true;
}

static void counter_advance(struct hart *h, unsigned i, uint64_t n)
{
	uint64_t mask = bits_mask(counter_width(h, i));
	uint64_t room = mask - h->counter[i];

	h->counter[i] = (h->counter[i] + n) & mask; /* wraps on purpose */
	if (n > room)
		counter_overflow(h, i);
}

/* Bring counter @i up to this moment. */
static void counter_settle(struct hart *h, unsigned i)
{
	uint64_t n = 0;

	if (!h->nterms[i])
		return;
	for (unsigned k = 0; k < h->nterms[i]; k++) {
		struct hart_term *t = &h->term[i][k];
		uint64_t now = signal_read(h, t->signal);

		n += (now - t->base) * t->weight;
		t->base = now;
	}
	if (n)
		counter_advance(h, i, n);
}

static void term_add(struct hart *h, unsigned i, quipu_signal signal, uint64_t weight)
{
	if (!weight || h->nterms[i] == HART_TERMS)
		return;
	h->term[i][h->nterms[i]++] = (struct hart_term){
		.signal = signal, .weight = weight, .base = signal_read(h, signal)};
}

/*
 * What a system call charges to S-mode for @signal (D-27): nothing unless the machine declares it.
 */
static uint64_t charge_of(const struct hart *h, quipu_signal signal)
{
	const struct riscv_config *c = &h->set->config;

	if (signal == QUIPU_SIGNAL_INSTRUCTIONS)
		return c->charge_instructions;
	return signal == QUIPU_SIGNAL_CYCLES ? c->charge_cycles : 0;
}

/* Counter @i was settled and what it counts may have changed: work out its terms anew. */
static void counter_restart(struct hart *h, unsigned i)
{
	uint64_t filter = counter_filter(h, i);
	const struct riscv_count *c = &h->count[i];

	h->nterms[i] = 0;
	h->stale = true;
	if (h->inhibit & bits_one(i))
		return;
	for (unsigned k = 0; k < c->n; k++) {
		if (!(filter & QUIPU_RISCV_UINH))
			term_add(h, i, c->signal[k], 1);
		if (!(filter & QUIPU_RISCV_SINH) && charge_of(h, c->signal[k]))
			term_add(h, i, QUIPU_SIGNAL_SYSCALLS, charge_of(h, c->signal[k]));
	}
}

static void counter_select(struct hart *h, unsigned i)
{
	struct riscv_count *c = &h->count[i];

	*c = (struct riscv_count){0};
	if (i == 0 || i == 2) {
		c->n = 1;
		c->signal[0] = i ? QUIPU_SIGNAL_INSTRUCTIONS : QUIPU_SIGNAL_CYCLES;
	} else if (h->implemented & bits_one(i)) {
		uint64_t selector =
			has(h, EXT_SSCOFPMF) ? bits_get(h->event[i], 55, 0) : h->event[i];

		/* A selector that is unknown, or whose model is not there, counts nothing (D-5). */
		if (!riscv_events_modelled(h->set, selector, c))
			c->n = 0;
	}
}

/* ---- deadlines ---- */

static int aux_slot(struct hart *h, unsigned i, uint64_t taken)
{
	for (unsigned a = 0; a < HART_AUX_MAX; a++) {
		if (!(taken & bits_one(HART_AUX_SLOT + a))) {
			h->aux_owner[a] = (uint8_t)i;
			return (int)(HART_AUX_SLOT + a);
		}
	}
	return -1;
}

/*
 * Where counter @i overflows. A counter of one signal is stopped at exactly that count. One that
 * adds k signals cannot reach its end before one of them has made 1/k of the way: it is stopped
 * there and looks again, each time nearer.
 */
static uint64_t plan_counter(struct hart *h, unsigned i, struct quipu_deadline *want,
			     uint64_t taken)
{
	uint64_t left = bits_mask(h->width) -
			h->counter[i]; /* counts that still fit; the next one overflows */
	unsigned k = h->nterms[i];

	if (left == UINT64_MAX)
		return taken;
	left++;
	for (unsigned t = 0; t < k; t++) {
		const struct hart_term *term = &h->term[i][t];
		uint64_t per = term->weight * k;
		uint64_t step = left / per + (left % per != 0);
		int slot = t ? aux_slot(h, i, taken) : (int)i;

		/* Beyond what a signal can reach in practice: seen at the next reading instead. */
		if (slot < 0 || step > (uint64_t)INT64_MAX ||
		    term->base + step > (uint64_t)INT64_MAX)
			continue;
		want[slot] = (struct quipu_deadline){
			.signal = term->signal,
			.at = term->base + step,
			.overflow = per == 1 ? QUIPU_OVERFLOW_RISCV : QUIPU_OVERFLOW_BELL,
		};
		taken |= bits_one((unsigned)slot);
	}
	return taken;
}

static bool same_deadline(const struct quipu_deadline *a, const struct quipu_deadline *b)
{
	return a->signal == b->signal && a->at == b->at && a->overflow == b->overflow &&
	       a->flags == b->flags;
}

/*
 * Tell the engine what changed, and only that: a counter that was stopped and started in a handler
 * has not.
 */
static void deadlines_flush(struct hart *h)
{
	struct quipu_signals *s = h->set->signals;
	struct quipu_deadline want[QUIPU_SLOTS_HARDWARE];
	uint64_t slots = 0;

	h->stale = false;
	for (uint32_t m = h->implemented & HART_PROGRAMMABLE; m; m &= m - 1) {
		unsigned i = bits_low(m);

		if (h->nterms[i] && has(h, EXT_SSCOFPMF) && !(h->event[i] & QUIPU_RISCV_OF))
			slots = plan_counter(h, i, want, slots);
	}
	for (uint64_t m = h->armed_slots & ~slots; m; m &= m - 1)
		s->ops->disarm(s, h->number, bits_low(m));
	for (uint64_t m = slots; m; m &= m - 1) {
		unsigned slot = bits_low(m);

		if ((h->armed_slots & bits_one(slot)) &&
		    same_deadline(&h->armed[slot], &want[slot]))
			continue;
		h->armed[slot] = want[slot];
		s->ops->arm(s, h->number, slot, &want[slot]);
	}
	h->armed_slots = slots;
}

void hart_enter(struct hart *h)
{
	h->depth++;
}

void hart_leave(struct hart *h)
{
	if (--h->depth == 0 && h->stale)
		deadlines_flush(h);
}

void hart_disarm(struct hart *h)
{
	struct quipu_signals *s = h->set->signals;

	for (uint64_t m = h->armed_slots; m; m &= m - 1)
		s->ops->disarm(s, h->number, bits_low(m));
	h->armed_slots = 0;
}

/* ---- registers ---- */

static void write_counter(struct hart *h, unsigned i, uint64_t value)
{
	if (!(h->implemented & bits_one(i)))
		return;
	counter_settle(h, i);
	h->counter[i] = value & bits_mask(counter_width(h, i));
	h->stale = true;
}

static uint64_t read_counter(struct hart *h, unsigned i)
{
	counter_settle(h, i);
	return h->counter[i];
}

static void write_event(struct hart *h, unsigned i, uint64_t value)
{
	uint64_t mask = UINT64_MAX;

	if (!(h->implemented & bits_one(i)))
		return;
	if (i < 3)
		mask = filter_bits(h);
	else if (has(h, EXT_SSCOFPMF))
		mask = bits_mask(56) | QUIPU_RISCV_OF | filter_bits(h);
	counter_settle(h, i);
	h->event[i] = value & mask;
	counter_select(h, i);
	counter_restart(h, i);
}

static void write_inhibit(struct hart *h, uint64_t value)
{
	uint64_t changed;

	value &= h->implemented;
	changed = value ^ h->inhibit;
	for (uint64_t m = changed; m; m &= m - 1)
		counter_settle(h, bits_low(m));
	h->inhibit = value;
	for (uint64_t m = changed; m; m &= m - 1)
		counter_restart(h, bits_low(m));
}

/* OF bits by counter; an overflow that no deadline announced becomes visible here. */
static uint64_t read_overflow(struct hart *h)
{
	uint64_t of = 0;

	for (uint32_t m = h->implemented & HART_PROGRAMMABLE; m; m &= m - 1) {
		unsigned i = bits_low(m);

		counter_settle(h, i);
		if (h->event[i] & QUIPU_RISCV_OF)
			of |= bits_one(i);
	}
	return of;
}

/* May @mode read the user-level shadow of counter @i? (sheet 1.2) */
static int shadow_gate(const struct hart *h, enum quipu_riscv_mode mode, unsigned i)
{
	uint64_t bit = bits_one(i);

	if (mode == QUIPU_RISCV_M)
		return 0;
	if (!(h->mcounteren & bit))
		return CAUSE_ILLEGAL;
	if (is_virtual(mode) && !(h->hcounteren & bit))
		return CAUSE_VIRTUAL;
	if (mode == QUIPU_RISCV_VU && !(h->scounteren & bit))
		return CAUSE_VIRTUAL;
	if (mode == QUIPU_RISCV_U && !(h->scounteren & bit))
		return CAUSE_ILLEGAL;
	return 0;
}

static int csr_shadow(struct hart *h, struct access *a)
{
	int cause = shadow_gate(h, a->mode, a->n);

	if (!cause)
		a->value = h->implemented & bits_one(a->n) ? read_counter(h, a->n) : 0;
	return cause;
}

static int csr_time(struct hart *h, struct access *a)
{
	const struct quipu_machine *m = h->set->machine;
	int cause = shadow_gate(h, a->mode, 1);

	if (!cause)
		a->value = bits_muldiv(signal_read(h, QUIPU_SIGNAL_CYCLES),
				       m->timebase_hz ? m->timebase_hz : m->hz, m->hz);
	return cause;
}

static int csr_counter(struct hart *h, struct access *a)
{
	if (a->write)
		write_counter(h, a->n, a->value);
	else
		a->value = h->implemented & bits_one(a->n) ? read_counter(h, a->n) : 0;
	return 0;
}

static int csr_event(struct hart *h, struct access *a)
{
	if (a->write) {
		write_event(h, a->n, a->value);
		return 0;
	}
	counter_settle(h, a->n); /* may set OF */
	a->value = h->event[a->n];
	return 0;
}

static int csr_cycle_config(struct hart *h, struct access *a)
{
	a->n = 0;
	return csr_event(h, a);
}

static int csr_instret_config(struct hart *h, struct access *a)
{
	a->n = 2;
	return csr_event(h, a);
}

static int csr_inhibit(struct hart *h, struct access *a)
{
	if (a->write)
		write_inhibit(h, a->value);
	else
		a->value = h->inhibit;
	return 0;
}

/* Counters that S-mode owns through delegation (menvcfg.CDE and mcounteren). */
static uint64_t delegated(const struct hart *h)
{
	return h->menvcfg & MENVCFG_CDE ? h->mcounteren & ~bits_one(1) : 0;
}

static int csr_scountinhibit(struct hart *h, struct access *a)
{
	if (!(h->menvcfg & MENVCFG_CDE))
		return CAUSE_ILLEGAL;
	if (is_virtual(a->mode))
		return CAUSE_VIRTUAL;
	if (a->write)
		write_inhibit(h, (h->inhibit & ~delegated(h)) | (a->value & delegated(h)));
	else
		a->value = h->inhibit & delegated(h);
	return 0;
}

static int csr_scountovf(struct hart *h, struct access *a)
{
	uint64_t visible = UINT64_MAX;

	if (is_virtual(a->mode) && (h->menvcfg & MENVCFG_CDE))
		return CAUSE_VIRTUAL;
	if (a->mode != QUIPU_RISCV_M)
		visible &= h->mcounteren;
	if (is_virtual(a->mode))
		visible &= h->hcounteren;
	a->value = read_overflow(h) & visible;
	return 0;
}

/* mcounteren, scounteren, hcounteren: time and the counters that exist. */
static int csr_counteren(uint64_t *reg, uint64_t mask, struct access *a)
{
	if (a->write)
		*reg = a->value & mask;
	else
		a->value = *reg;
	return 0;
}

static int csr_mcounteren(struct hart *h, struct access *a)
{
	return csr_counteren(&h->mcounteren, h->implemented | bits_one(1), a);
}

static int csr_scounteren(struct hart *h, struct access *a)
{
	return csr_counteren(&h->scounteren, h->implemented | bits_one(1), a);
}

static int csr_hcounteren(struct hart *h, struct access *a)
{
	return csr_counteren(&h->hcounteren, h->implemented | bits_one(1), a);
}

static int csr_menvcfg(struct hart *h, struct access *a)
{
	uint64_t bits = has(h, EXT_SMCDELEG) ? MENVCFG_CDE : 0;

	return csr_masked(&h->menvcfg, bits, bits, a);
}

/*
 * sireg and its siblings: the window on one delegated counter (sheet 1.6). Only columns 1 and 2
 * exist on RV64.
 */
static int csr_sireg(struct hart *h, struct access *a)
{
	uint64_t select = is_virtual(a->mode) ? h->vsiselect : h->siselect;
	unsigned i = (unsigned)(select - SELECT_FIRST), column = a->n;
	int cause = indirect_gate(h, a->mode);

	if (cause)
		return cause;
	if (select < SELECT_FIRST || select > SELECT_LAST)
		return CAUSE_ILLEGAL;
	if (!(h->menvcfg & MENVCFG_CDE))
		return CAUSE_ILLEGAL;
	if (is_virtual(a->mode))
		return CAUSE_VIRTUAL;
	if (column > 1 || i == 1 || !(h->mcounteren & bits_one(i)))
		return CAUSE_ILLEGAL;
	a->n = i;
	if (column == 0)
		return csr_counter(h, a);
	if (i < 3 && !has(h, EXT_SMCNTRPMF))
		return CAUSE_ILLEGAL;
	if (a->write) {
		/* MINH belongs to M-mode: hidden here, and kept. */
		a->value = (a->value & ~QUIPU_RISCV_MINH) | (h->event[i] & QUIPU_RISCV_MINH);
		return csr_event(h, a);
	}
	csr_event(h, a);
	a->value &= ~QUIPU_RISCV_MINH;
	return 0;
}

/*
 * The registers. Bits 9:8 of a number are the lowest privilege, bits 11:10 = 3 mark it read-only;
 * both are applied before the row's function, so a row states only what is its own. @base: index of
 * the row's first register.
 */
struct csr {
	uint16_t first, last;
	uint8_t base;
	uint8_t width;	/* bits that can be other than 0 */
	uint16_t needs; /* enum hart_extension */
	const char *name;
	csr_fn *access;
};

static const struct csr csrs[] = {
	/* first last   base width needs        name             access (who reads it) */
	{0x100, 0x100, 0, 64, 0, "sstatus", csr_sstatus},	/* S, interrupt logic */
	{0x104, 0x104, 0, 64, 0, "sie", csr_sie},		/* S, interrupt logic */
	{0x106, 0x106, 0, 32, 0, "scounteren", csr_scounteren}, /* S; gates U */
	{0x120, 0x120, 0, 32, EXT_SMCDELEG, "scountinhibit", csr_scountinhibit}, /* S */
	{0x141, 0x141, 0, 64, 0, "sepc", csr_sepc},				 /* S handler */
	{0x142, 0x142, 0, 64, 0, "scause", csr_scause},				 /* S handler */
	{0x144, 0x144, 0, 64, 0, "sip", csr_sip}, /* S, interrupt logic */
	{0x150, 0x150, 0, 12, EXT_SMCDELEG, "siselect", csr_siselect},
	{0x151, 0x153, 0, 64, EXT_SMCDELEG, "sireg", csr_sireg}, /* sireg, sireg2, sireg3 */
	{0x155, 0x157, 3, 64, EXT_SMCDELEG, "sireg", csr_sireg}, /* sireg4, sireg5, sireg6 */
	{0x200, 0x200, 0, 64, EXT_H, "vsstatus", csr_vsstatus},
	{0x204, 0x204, 0, 64, EXT_H, "vsie", csr_vsie}, /* VS, as sie */
	{0x241, 0x241, 0, 64, EXT_H, "vsepc", csr_vsepc},
	{0x242, 0x242, 0, 64, EXT_H, "vscause", csr_vscause},
	{0x244, 0x244, 0, 64, EXT_H, "vsip", csr_vsip}, /* VS, as sip */
	{0x250, 0x250, 0, 12, EXT_H | EXT_SMCDELEG, "vsiselect", csr_vsiselect},
	{0x251, 0x253, 0, 64, EXT_H | EXT_SMCDELEG, "vsireg", csr_vsireg},
	{0x255, 0x257, 3, 64, EXT_H | EXT_SMCDELEG, "vsireg", csr_vsireg},
	{0x303, 0x303, 0, 64, 0, "mideleg", csr_mideleg}, /* M, interrupt logic */
	{0x304, 0x304, 0, 64, 0, "mie", csr_mie},
	{0x306, 0x306, 0, 32, 0, "mcounteren", csr_mcounteren}, /* M; gates S, U */
	{0x308, 0x308, 0, 64, EXT_SMAIA, "mvien", csr_mvien},	/* interrupt logic */
	{0x309, 0x309, 0, 64, EXT_SMAIA, "mvip", csr_mvip},	/* interrupt logic, S as sip */
	{0x30A, 0x30A, 0, 64, 0, "menvcfg", csr_menvcfg},	/* M: CDE */
	{0x30C, 0x30C, 0, 64, EXT_SMSTATEEN, "mstateen0", csr_mstateen},  /* gates sireg */
	{0x320, 0x320, 0, 32, EXT_INHIBIT, "mcountinhibit", csr_inhibit}, /* M, counters */
	{0x321, 0x321, 0, 64, EXT_SMCNTRPMF, "mcyclecfg", csr_cycle_config},
	{0x322, 0x322, 0, 64, EXT_SMCNTRPMF, "minstretcfg", csr_instret_config},
	{0x323, 0x33F, 3, 64, 0, "mhpmevent", csr_event}, /* M, counters */
	{0x344, 0x344, 0, 64, 0, "mip", csr_mip},
	{0x603, 0x603, 0, 64, EXT_H, "hideleg", csr_hideleg},
	{0x606, 0x606, 0, 32, EXT_H, "hcounteren", csr_hcounteren}, /* HS; gates VS, VU */
	{0x608, 0x608, 0, 64, EXT_H | EXT_SSAIA, "hvien", csr_hvien},
	{0x60C, 0x60C, 0, 64, EXT_H | EXT_SMSTATEEN, "hstateen0", csr_hstateen}, /* VS's sireg */
	{0x645, 0x645, 0, 64, EXT_H, "hvip", csr_hvip},
	{0xB00, 0xB00, 0, 64, 0, "mcycle", csr_counter},      /* M */
	{0xB02, 0xB02, 2, 64, 0, "minstret", csr_counter},    /* M */
	{0xB03, 0xB1F, 3, 64, 0, "mhpmcounter", csr_counter}, /* M; the hart's own width */
	{0xC00, 0xC00, 0, 64, 0, "cycle", csr_shadow},	      /* all, gated */
	{0xC01, 0xC01, 0, 64, 0, "time", csr_time},
	{0xC02, 0xC02, 2, 64, 0, "instret", csr_shadow},
	{0xC03, 0xC1F, 3, 64, 0, "hpmcounter", csr_shadow},
	{0xDA0, 0xDA0, 0, 32, EXT_SSCOFPMF, "scountovf", csr_scountovf}, /* S handler */
};

#define ROWS (sizeof(csrs) / sizeof(csrs[0]))

/* A driver's handler asks for a dozen registers at each sample. */
void hart_csr_index(struct quipu_riscv *rv)
{
	_Static_assert(ROWS < UINT8_MAX, "a row is a byte of the index");

	for (size_t i = 0; i < ROWS; i++)
		memset(rv->csr_rows + csrs[i].first, (int)i + 1, csrs[i].last - csrs[i].first + 1u);
}

static const struct csr *csr_find(unsigned number)
{
	for (size_t i = 0; i < ROWS; i++)
		if (csrs[i].first <= number && number <= csrs[i].last)
			return &csrs[i];
	return NULL;
}

const char *hart_csr_name(unsigned number, char *buf, size_t len)
{
	const struct csr *c = csr_find(number);

	if (!c)
		snprintf(buf, len, "csr 0x%x", number);
	else if (c->first == c->last)
		snprintf(buf, len, "%s", c->name);
	else
		snprintf(buf, len, "%s%u", c->name, number - c->first + c->base);
	return buf;
}

/* The privilege rule of the number itself. */
static int csr_privilege(enum quipu_riscv_mode mode, unsigned number)
{
	static const uint8_t level[QUIPU_RISCV_MODES] = {
		[QUIPU_RISCV_U] = 0, [QUIPU_RISCV_VU] = 0, [QUIPU_RISCV_VS] = 1,
		[QUIPU_RISCV_S] = 2, [QUIPU_RISCV_M] = 3,
	};
	unsigned needed = (unsigned)bits_get(number, 9, 8);

	if (level[mode] >= needed)
		return 0;
	/* HS could: a virtualized hart tells its hypervisor. */
	return is_virtual(mode) && needed < 3 ? CAUSE_VIRTUAL : CAUSE_ILLEGAL;
}

static int csr_access(struct hart *h, unsigned number, struct access *a)
{
	unsigned row = number < sizeof(h->set->csr_rows) ? h->set->csr_rows[number] : 0;
	const struct csr *c = &csrs[row ? row - 1 : 0];
	int cause;

	if (!row || (h->extensions & c->needs) != c->needs)
		return CAUSE_ILLEGAL;
	if (is_virtual(a->mode) && !has(h, EXT_H))
		return CAUSE_ILLEGAL;
	if (a->write && bits_get(number, 11, 10) == 3)
		return CAUSE_ILLEGAL;
	cause = csr_privilege(a->mode, number);
	if (cause)
		return cause;
	a->n = number - c->first + c->base;
	a->value &= a->write ? bits_mask(c->width) : UINT64_MAX;
	hart_enter(h);
	cause = c->access(h, a);
	hart_leave(h);
	return cause;
}

int hart_csr_read(struct hart *h, enum quipu_riscv_mode mode, unsigned csr, uint64_t *value)
{
	struct access a = {.mode = mode};
	int cause = csr_access(h, csr, &a);

	if (!cause)
		*value = a.value;
	return cause;
}

int hart_csr_write(struct hart *h, enum quipu_riscv_mode mode, unsigned csr, uint64_t value)
{
	struct access a = {.mode = mode, .write = true, .value = value};

	return csr_access(h, csr, &a);
}

uint64_t hart_get(struct hart *h, unsigned csr)
{
	uint64_t value = 0;

	hart_csr_read(h, QUIPU_RISCV_M, csr, &value);
	return value;
}

void hart_set(struct hart *h, unsigned csr, uint64_t value)
{
	hart_csr_write(h, QUIPU_RISCV_M, csr, value);
}

void hart_reset(struct hart *h)
{
	hart_enter(h);
	for (unsigned i = 0; i < HART_COUNTERS; i++) {
		if (!(h->implemented & bits_one(i)))
			continue;
		h->counter[i] = h->set->config.counter_reset & bits_mask(counter_width(h, i));
		counter_select(h, i);
		counter_restart(h, i);
	}
	hart_leave(h);
}

void hart_reached(struct hart *h, uint64_t slots)
{
	for (uint64_t m = slots & bits_mask(QUIPU_SLOTS_HARDWARE) & h->armed_slots; m; m &= m - 1) {
		unsigned slot = bits_low(m);

		/* A deadline is spent when it is reached. */
		h->armed_slots &= ~bits_one(slot);
		h->stale = true;
		counter_settle(h, slot < HART_AUX_SLOT ? slot : h->aux_owner[slot - HART_AUX_SLOT]);
	}
}

/* Does counter @i take part in @signal at @mode just now? */
static bool counter_takes(const struct hart *h, unsigned i, enum quipu_riscv_mode mode,
			  quipu_signal signal)
{
	if ((h->inhibit & bits_one(i)) || (counter_filter(h, i) & mode_filter(mode)))
		return false;
	for (unsigned k = 0; k < h->count[i].n; k++)
		if (h->count[i].signal[k] == signal)
			return true;
	return false;
}

uint64_t hart_feed(struct hart *h, enum quipu_riscv_mode mode, quipu_signal signal, uint64_t n)
{
	uint64_t step = n;
	uint32_t takes = 0;

	for (uint32_t m = h->implemented; m; m &= m - 1) {
		unsigned i = bits_low(m);
		uint64_t room;

		counter_settle(h, i);
		if (!counter_takes(h, i, mode, signal))
			continue;
		takes |= (uint32_t)bits_one(i);
		room = bits_mask(counter_width(h, i)) - h->counter[i];
		/*
		 * A counter that will raise an interrupt splits the batch; the others may run past
		 * their end.
		 */
		if (i >= 3 && !(h->event[i] & QUIPU_RISCV_OF) && room < step)
			step = room + 1;
	}
	for (uint32_t m = takes; m; m &= m - 1)
		counter_advance(h, bits_low(m), step);
	h->stale |= takes != 0;
	return step;
}
