/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace mode of a thread: TRACE_IMC_SCOM, the counter, records that wrap. IMC sheet 3.6 to 3.8.
 *
 * The counter is a deadline of the signal behind the selected event; where that is the 32 MHz tick,
 * which advances while the thread runs a task, the deadline lies on its cycles. A record raises no
 * interrupt for software: the driver never hears of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/imc/hardware.h"

#define SELECT_STRIDE 0x40u
#define CPMC1_OFFSET  0x18u
#define HV_PR	      3u /* host user */

/* A buffer that is smaller than its register says: the hardware would write on behind it. */
static void say_clamped(struct quipu_imc *imc, uint64_t want, uint64_t fits)
{
	char line[128];

	if (imc->clamped || !imc->log)
		return;
	imc->clamped = true;
	snprintf(
		line, sizeof(line),
		"TRACE_IMC_SCOM asks for %u trace records, the memory at LDBAR holds %u: they wrap there",
		(unsigned)want, (unsigned)fits);
	imc->log(imc->log_arg, line);
}

static unsigned buffer_records(struct quipu_imc *imc, uint64_t scom, uint64_t address)
{
	unsigned size = (unsigned)quipu_ibm_field(scom, 48, 50);
	const struct imc_memory *m = imc_memory_find(imc, address, IMC_RECORD);
	uint64_t fits = m ? (m->size - (address - m->base)) / IMC_RECORD : 0;
	uint64_t want = size <= 4 ? UINT64_C(4096) << size : 0;

	if (fits && fits < want)
		say_clamped(imc, want, fits);
	return (unsigned)(want < fits ? want : fits);
}

static uint8_t *buffer_data(const struct quipu_imc *imc, uint64_t address)
{
	struct imc_memory *m = imc_memory_find(imc, address, IMC_RECORD);

	return m ? imc_memory_bytes(m, address) : NULL;
}

/* What CPMC@n (0, 1) counts, as the register selects it; NULL: nothing that is modelled. */
static const struct imc_source *selected(const struct quipu_imc *imc, uint64_t scom, unsigned n)
{
	uint64_t select = n ? quipu_ibm_field(scom, 41, 47) : quipu_ibm_field(scom, 34, 40);
	uint32_t offset = (uint32_t)(select * SELECT_STRIDE + CPMC1_OFFSET + 8 * n);

	for (unsigned i = 0; i < imc->core_cells.n; i++)
		if (imc->core_cells.cell[i].offset == offset)
			return imc->core_cells.cell[i].source;
	return NULL;
}

/* The signal that a source counts on one thread; NONE: it cannot trigger. */
static quipu_signal trigger(const struct imc_source *s)
{
	if (!s)
		return QUIPU_SIGNAL_NONE;
	switch (s->kind) {
	case IMC_SIGNAL: return s->signal;
	case IMC_T32:
	case IMC_CC:
	case IMC_TC:
	case IMC_RC:
	case IMC_NANY: return QUIPU_SIGNAL_CYCLES;
	default: return QUIPU_SIGNAL_NONE;
	}
}

static const struct imc_source *sampled(const struct quipu_imc *imc, uint64_t scom)
{
	uint64_t select = quipu_ibm_field(scom, 0, 1);

	return select > 1 ? NULL : selected(imc, scom, (unsigned)select);
}

/*
 * The counter wraps by itself for ever, and nobody is told: the engine process goes on to the next
 * wrap and leaves a record in its ring, without a doorbell. A tick takes so many cycles, counted
 * from the load.
 */
static void arm(struct quipu_imc *imc, unsigned cpu)
{
	struct imc_thread *t = &imc->thread[cpu];
	struct quipu_deadline *d = &t->trace_deadline;

	d->turn = t->trace_wraps + 1;
	d->at = t->trace_since + quipu_reload_turn(d->turn, d->step, d->per);
	imc->signals->ops->arm(imc->signals, cpu, IMC_SLOT_TRACE, d);
}

static void prepare_deadline(struct quipu_imc *imc, struct imc_thread *t, uint64_t scom)
{
	uint64_t period = (UINT64_C(1) << 32) - quipu_ibm_field(scom, 2, 33);
	struct quipu_deadline d = {.signal = trigger(t->trace_sampled),
				   .overflow = QUIPU_OVERFLOW_STEADY,
				   .step = period,
				   .per = 1};

	t->trace_count.period = period;
	if (t->trace_sampled->kind == IMC_T32) {
		d.per = IMC_TB_HZ / 16;
		if (__builtin_mul_overflow(period, imc->machine->hz, &d.step)) {
			d.step = bits_muldiv(period, imc->machine->hz, d.per);
			d.per = 1;
		}
	}
	t->trace_deadline = d;
}

/* Occurrences of the selected event since the counter was loaded. */
static uint64_t events_since(const struct quipu_imc *imc, unsigned cpu)
{
	const struct imc_thread *t = &imc->thread[cpu];
	uint64_t n;

	if (!t->trace_armed)
		return 0;
	n = imc_signal(imc, cpu, t->trace_deadline.signal) - t->trace_since;
	return t->trace_sampled->kind == IMC_T32 ? bits_muldiv(n, IMC_TB_HZ / 16, imc->machine->hz)
						 : n;
}

void imc_trace_stop(struct quipu_imc *imc, unsigned cpu)
{
	struct imc_thread *t = &imc->thread[cpu];

	if (!t->trace_armed)
		return;
	t->trace_count.events += events_since(imc, cpu);
	imc->signals->ops->disarm(imc->signals, cpu, IMC_SLOT_TRACE);
	t->trace_armed = false;
}

void imc_trace_clock(struct quipu_imc *imc, unsigned cpu, uint64_t tb)
{
	struct imc_thread *t = &imc->thread[cpu];

	t->clock_tb = tb;
	t->clock_cycles = imc_signal(imc, cpu, QUIPU_SIGNAL_CYCLES);
}

static uint64_t cpmc(const struct quipu_imc *imc, unsigned cpu, unsigned n)
{
	const struct imc_source *s = imc->thread[cpu].trace_cpmc[n];

	return s ? imc_thread_value(imc, cpu, s) : 0;
}

/* The counter is loaded: the engine came on, or LDBAR or the register was written. */
void imc_trace_load(struct quipu_imc *imc, unsigned cpu)
{
	struct imc_thread *t = &imc->thread[cpu];
	const struct imc_core *core = &imc->core[imc->core_of[cpu]];
	uint64_t base = t->ldbar & QUIPU_IMC_ADDRESS;

	imc_trace_stop(imc, cpu);
	if (!(core->htm_mode & QUIPU_HTM_ENABLED) || !(t->ldbar & QUIPU_LDBAR_TRACE))
		return;
	t->trace_sampled = sampled(imc, core->trace_scom);
	if (trigger(t->trace_sampled) == QUIPU_SIGNAL_NONE ||
	    quipu_ibm_field(core->trace_scom, 48, 50) > 4)
		return;
	prepare_deadline(imc, t, core->trace_scom);
	t->trace_since = imc_signal(imc, cpu, t->trace_deadline.signal);
	t->trace_wraps = 0;
	t->trace_records = buffer_records(imc, core->trace_scom, base);
	t->trace_data = t->trace_records ? buffer_data(imc, base) : NULL;
	if (t->trace_index >= t->trace_records) /* the register made the buffer smaller */
		t->trace_index = 0;
	imc_trace_clock(imc, cpu, imc_tb(imc->now(imc->arg)));
	for (unsigned i = 0; i < 2; i++) {
		t->trace_cpmc[i] = selected(imc, core->trace_scom, i);
		t->last_cpmc[i] = cpmc(imc, cpu, i);
	}
	t->trace_armed = true;
	arm(imc, cpu);
}

/* ---- what becomes of records ---- */

static uint64_t unread(const struct imc_thread *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; t->trace_unread && i < IMC_MAX_RECORDS / 64; i++)
		n += bits_count(t->trace_unread[i]);
	return n;
}

/* Record @index of the buffer at @base is written. Without memory for it nothing is told apart. */
static void note_written(struct imc_thread *t, uint64_t base, unsigned index)
{
	t->trace_count.written++;
	if (!t->trace_unread)
		t->trace_unread = calloc(IMC_MAX_RECORDS / 64, sizeof(*t->trace_unread));
	if (!t->trace_unread)
		return;
	if (base != t->trace_buffer) { /* what lies in the other one stays there */
		t->trace_count.left += unread(t);
		memset(t->trace_unread, 0, IMC_MAX_RECORDS / 8);
		t->trace_buffer = base;
	}
	t->trace_count.overwritten += t->trace_unread[index / 64] >> index % 64 & 1;
	t->trace_unread[index / 64] |= UINT64_C(1) << index % 64;
}

void quipu_imc_trace_taken(struct quipu_imc *imc, unsigned cpu, uint64_t address)
{
	struct imc_thread *t;
	uint64_t index;

	if (cpu >= imc->machine->ncpus)
		return;
	t = &imc->thread[cpu];
	index = (address - t->trace_buffer) / IMC_RECORD;
	if (!t->trace_unread || address < t->trace_buffer || index >= IMC_MAX_RECORDS ||
	    !(t->trace_unread[index / 64] >> index % 64 & 1))
		return;
	t->trace_unread[index / 64] &= ~(UINT64_C(1) << index % 64);
	t->trace_count.taken++;
}

/* Nothing is looked for here: a thread writes 127 000 records in a second of its time. */
static void write_record(struct quipu_imc *imc, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct imc_thread *t = &imc->thread[cpu];
	uint64_t word[QUIPU_TRACE_WORDS], cycles = imc_signal(imc, cpu, QUIPU_SIGNAL_CYCLES);
	uint64_t tb =
		t->clock_tb + bits_muldiv(cycles - t->clock_cycles, IMC_TB_HZ, imc->machine->hz);
	uint8_t *to;

	if (!t->trace_records)
		return;
	if (tb <= t->trace_tb) /* a clock is told in ns, a record's time only grows */
		tb = t->trace_tb + 1;
	t->trace_tb = tb;
	word[QUIPU_TRACE_TB1] = tb;
	word[QUIPU_TRACE_IP] = irq->pc;
	word[QUIPU_TRACE_VAL] = quipu_ibm_put(HV_PR, 0, 1) | irq->pid;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t v = cpmc(imc, cpu, i);

		word[QUIPU_TRACE_CPMC1 + i] = v - t->last_cpmc[i];
		t->last_cpmc[i] = v;
	}
	word[QUIPU_TRACE_CPMC3] =
		imc_signal(imc, cpu, QUIPU_SIGNAL_INSTRUCTIONS) - t->since_instructions;
	word[QUIPU_TRACE_CPMC4] = cycles - t->since_cycles;
	word[QUIPU_TRACE_TB2] = tb & QUIPU_TRACE_TB_MASK;
	note_written(t, t->ldbar & QUIPU_IMC_ADDRESS, t->trace_index);
	to = t->trace_data + (size_t)IMC_RECORD * t->trace_index;
	for (unsigned i = 0; i < QUIPU_TRACE_WORDS; i++)
		word[i] = bits_be64(&word[i]);
	memcpy(to, word, sizeof(word));
	t->trace_index = (t->trace_index + 1) % t->trace_records;
}

void quipu_imc_interrupt(struct quipu_imc *imc, const struct quipu_interrupt *irq)
{
	struct imc_thread *t;

	if (!(irq->slots & bits_one(IMC_SLOT_TRACE)) || irq->cpu >= imc->machine->ncpus)
		return;
	t = &imc->thread[irq->cpu];
	if (!t->trace_armed)
		return;
	write_record(imc, irq->cpu, irq);
	t->trace_wraps++;
	arm(imc, irq->cpu);
}

void quipu_imc_trace_counts(const struct quipu_imc *imc, unsigned cpu,
			    struct quipu_imc_trace_count *out)
{
	const struct imc_thread *t;

	*out = (struct quipu_imc_trace_count){0};
	if (cpu >= imc->machine->ncpus)
		return;
	t = &imc->thread[cpu];
	*out = t->trace_count;
	out->events += events_since(imc, cpu);
	out->left += unread(t);
}
