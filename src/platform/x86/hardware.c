/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PMU of a modelled x86-64 CPU (quipu/x86.h): registers, counters, and what moves them. SDM
 * volume 3B, 20.2.
 *
 * A guest of a user-mode engine runs at CPL 3: a counter without USR stands still. A counter is its
 * value when it was last looked at plus what its signal has moved since.
 */
#include <errno.h>
#include <stdlib.h>

#include <quipu/bits.h>
#include <quipu/x86.h>

#include "platform/x86/events.h"

#define COUNTERS (QUIPU_X86_GENERAL + QUIPU_X86_FIXED)
#define SELECT_BITS                                                                                \
	(QUIPU_X86_EVENT | QUIPU_X86_UMASK | QUIPU_X86_USR | QUIPU_X86_OS | QUIPU_X86_INT |        \
	 QUIPU_X86_ENABLE)
#define FIXED_OS    1u
#define FIXED_USR   2u
#define FIXED_PMI   8u
#define FIXED_BITS  UINT64_C(0xbbb)
#define FIXED_SHIFT 32 /* of the fixed counters in the global registers */
#define GLOBAL_BITS (bits_mask(QUIPU_X86_GENERAL) | bits_mask(QUIPU_X86_FIXED) << FIXED_SHIFT)

struct counter {
	uint64_t value;
	quipu_signal signal; /* that moves it now; QUIPU_SIGNAL_NONE: it stands */
	uint64_t since;	     /* of the signal */
};

struct x86_cpu {
	struct counter counter[COUNTERS]; /* general, then fixed: also the deadline slots */
	uint64_t select[QUIPU_X86_GENERAL];
	uint64_t fixed_control, global_control, status;
};

struct quipu_x86 {
	struct quipu_signals *signals;
	unsigned ncpus;
	struct x86_cpu *cpus;
	void (*pmi)(void *arg, unsigned cpu, const struct quipu_interrupt *);
	void *arg;
};

/* ---- counters ---- */

static uint64_t global_bit(unsigned i)
{
	return i < QUIPU_X86_GENERAL ? bits_one(i) : bits_one(i - QUIPU_X86_GENERAL + FIXED_SHIFT);
}

static uint64_t fixed_field(const struct x86_cpu *c, unsigned i)
{
	return c->fixed_control >> 4 * (i - QUIPU_X86_GENERAL);
}

static bool interrupts(const struct x86_cpu *c, unsigned i)
{
	return i < QUIPU_X86_GENERAL ? c->select[i] & QUIPU_X86_INT : fixed_field(c, i) & FIXED_PMI;
}

/* What counter @i counts just now, at CPL 3. */
static quipu_signal counted(const struct x86_cpu *c, unsigned i)
{
	static const quipu_signal fixed[QUIPU_X86_FIXED] = {
		QUIPU_SIGNAL_INSTRUCTIONS, QUIPU_SIGNAL_CYCLES, QUIPU_SIGNAL_REF_CYCLES};
	const struct x86_event *e;

	if (!(c->global_control & global_bit(i)))
		return QUIPU_SIGNAL_NONE;
	if (i >= QUIPU_X86_GENERAL)
		return fixed_field(c, i) & FIXED_USR ? fixed[i - QUIPU_X86_GENERAL]
						     : QUIPU_SIGNAL_NONE;
	if (!(c->select[i] & QUIPU_X86_ENABLE) || !(c->select[i] & QUIPU_X86_USR))
		return QUIPU_SIGNAL_NONE;
	e = x86_event_by_code((uint16_t)(c->select[i] & (QUIPU_X86_EVENT | QUIPU_X86_UMASK)));
	return e ? e->signal : QUIPU_SIGNAL_NONE;
}

static uint64_t signal_now(struct quipu_x86 *x, unsigned cpu, quipu_signal signal)
{
	return x->signals->ops->read(x->signals, cpu, signal);
}

/* Bring counter @i up to date. */
static void settle(struct quipu_x86 *x, unsigned cpu, unsigned i)
{
	struct x86_cpu *c = &x->cpus[cpu];
	struct counter *k = &c->counter[i];
	uint64_t now, moved;

	if (k->signal == QUIPU_SIGNAL_NONE)
		return;
	now = signal_now(x, cpu, k->signal);
	moved = now - k->since;
	k->since = now;
	if (moved >= bits_one(QUIPU_X86_WIDTH) - k->value)
		c->status |= global_bit(i);
	k->value = (k->value + moved) & bits_mask(QUIPU_X86_WIDTH);
}

/* After a change: what moves the counter, and when it will overflow. */
static void restart(struct quipu_x86 *x, unsigned cpu, unsigned i)
{
	struct x86_cpu *c = &x->cpus[cpu];
	struct counter *k = &c->counter[i];
	struct quipu_deadline d = {.overflow = QUIPU_OVERFLOW_RELOAD};

	k->signal = counted(c, i);
	if (k->signal != QUIPU_SIGNAL_NONE)
		k->since = signal_now(x, cpu, k->signal);
	if (k->signal == QUIPU_SIGNAL_NONE || !interrupts(c, i)) {
		x->signals->ops->disarm(x->signals, cpu, i);
		return;
	}
	d.signal = k->signal;
	d.at = k->since + (bits_one(QUIPU_X86_WIDTH) - k->value);
	x->signals->ops->arm(x->signals, cpu, i, &d);
}

/* ---- registers ---- */

struct access {
	struct quipu_x86 *x;
	unsigned cpu;
	unsigned n; /* which of a row's registers */
	bool write;
	uint64_t value;
};

static int on_counter(struct access *a, unsigned i, uint64_t written)
{
	struct counter *k = &a->x->cpus[a->cpu].counter[i];

	settle(a->x, a->cpu, i);
	if (!a->write) {
		a->value = k->value;
		return 0;
	}
	k->value = written & bits_mask(QUIPU_X86_WIDTH);
	restart(a->x, a->cpu, i);
	return 0;
}

static int on_pmc(struct access *a)
{
	return on_counter(a, a->n, (uint64_t)bits_sign(a->value & bits_mask(32), 32));
}

static int on_full_pmc(struct access *a)
{
	if (a->write && a->value > bits_mask(QUIPU_X86_WIDTH))
		return -EFAULT;
	return on_counter(a, a->n, a->value);
}

static int on_fixed(struct access *a)
{
	if (a->write && a->value > bits_mask(QUIPU_X86_WIDTH))
		return -EFAULT;
	return on_counter(a, QUIPU_X86_GENERAL + a->n, a->value);
}

/* A control register, which the counters @first to @first + @n - 1 obey. */
static int on_control(struct access *a, uint64_t *reg, uint64_t bits, unsigned first, unsigned n)
{
	if (!a->write) {
		a->value = *reg;
		return 0;
	}
	if (a->value & ~bits)
		return -EFAULT;
	for (unsigned i = first; i < first + n; i++)
		settle(a->x, a->cpu, i);
	*reg = a->value;
	for (unsigned i = first; i < first + n; i++)
		restart(a->x, a->cpu, i);
	return 0;
}

static int on_select(struct access *a)
{
	return on_control(a, &a->x->cpus[a->cpu].select[a->n % QUIPU_X86_GENERAL], SELECT_BITS,
			  a->n, 1);
}

static int on_fixed_control(struct access *a)
{
	return on_control(a, &a->x->cpus[a->cpu].fixed_control, FIXED_BITS, QUIPU_X86_GENERAL,
			  QUIPU_X86_FIXED);
}

static int on_global_control(struct access *a)
{
	return on_control(a, &a->x->cpus[a->cpu].global_control, GLOBAL_BITS, 0, COUNTERS);
}

static int on_status(struct access *a)
{
	if (a->write)
		return -EFAULT;
	for (unsigned i = 0; i < COUNTERS; i++)
		settle(a->x, a->cpu, i);
	a->value = a->x->cpus[a->cpu].status;
	return 0;
}

static int on_status_reset(struct access *a)
{
	if (a->write && (a->value & ~GLOBAL_BITS))
		return -EFAULT;
	if (a->write)
		a->x->cpus[a->cpu].status &= ~a->value;
	else
		a->value = 0;
	return 0;
}

static const struct {
	uint32_t first, n;
	int (*access)(struct access *);
} registers[] = {
	{QUIPU_IA32_PMC0, QUIPU_X86_GENERAL, on_pmc},
	{QUIPU_IA32_A_PMC0, QUIPU_X86_GENERAL, on_full_pmc},
	{QUIPU_IA32_PERFEVTSEL0, QUIPU_X86_GENERAL, on_select},
	{QUIPU_IA32_FIXED_CTR0, QUIPU_X86_FIXED, on_fixed},
	{QUIPU_IA32_FIXED_CTR_CTRL, 1, on_fixed_control},
	{QUIPU_IA32_PERF_GLOBAL_STATUS, 1, on_status},
	{QUIPU_IA32_PERF_GLOBAL_CTRL, 1, on_global_control},
	{QUIPU_IA32_PERF_GLOBAL_STATUS_RESET, 1, on_status_reset},
};

static int msr_access(struct access *a, uint32_t msr)
{
	if (a->cpu >= a->x->ncpus)
		return -EINVAL;
	for (unsigned i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (msr - registers[i].first >= registers[i].n)
			continue;
		a->n = msr - registers[i].first;
		return registers[i].access(a);
	}
	return -EFAULT;
}

int quipu_x86_rdmsr(struct quipu_x86 *x, unsigned cpu, uint32_t msr, uint64_t *value)
{
	struct access a = {.x = x, .cpu = cpu};
	int rc = msr_access(&a, msr);

	if (!rc)
		*value = a.value;
	return rc;
}

int quipu_x86_wrmsr(struct quipu_x86 *x, unsigned cpu, uint32_t msr, uint64_t value)
{
	struct access a = {.x = x, .cpu = cpu, .write = true, .value = value};

	return msr_access(&a, msr);
}

/* ---- the interrupt ---- */

void quipu_x86_interrupt(struct quipu_x86 *x, const struct quipu_interrupt *irq)
{
	uint64_t mine = irq->slots & bits_mask(COUNTERS);

	if (!mine || irq->cpu >= x->ncpus)
		return;
	for (uint64_t m = mine; m; m &= m - 1)
		settle(x, irq->cpu, bits_low(m));
	if (x->pmi)
		x->pmi(x->arg, irq->cpu, irq);
}

void quipu_x86_set_handler(struct quipu_x86 *x,
			   void (*pmi)(void *, unsigned, const struct quipu_interrupt *), void *arg)
{
	x->pmi = pmi;
	x->arg = arg;
}

struct quipu_x86 *quipu_x86_new(const struct quipu_machine *machine, struct quipu_signals *signals)
{
	struct quipu_x86 *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->signals = signals;
	x->ncpus = machine->ncpus;
	x->cpus = calloc(x->ncpus, sizeof(*x->cpus));
	if (!x->cpus) {
		free(x);
		return NULL;
	}
	return x;
}

void quipu_x86_free(struct quipu_x86 *x)
{
	if (!x)
		return;
	free(x->cpus);
	free(x);
}
