/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals by name, and a source of signals that is fed by hand (quipu/signal.h): for tests,
 * examples and other people's emulators. What is fed is one signal of one CPU: feeding instructions
 * feeds neither cycles nor a class of them, the caller says what happened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/signal.h>

static const char *const names[QUIPU_NAMED_SIGNALS] = {
	[QUIPU_SIGNAL_NONE] = "none",
	[QUIPU_SIGNAL_INSTRUCTIONS] = "instructions",
	[QUIPU_SIGNAL_LOADS] = "loads",
	[QUIPU_SIGNAL_STORES] = "stores",
	[QUIPU_SIGNAL_BRANCHES] = "branches",
	[QUIPU_SIGNAL_BRANCHES_TAKEN] = "branches-taken",
	[QUIPU_SIGNAL_CALLS] = "calls",
	[QUIPU_SIGNAL_RETURNS] = "returns",
	[QUIPU_SIGNAL_SYSCALLS] = "syscalls",
	[QUIPU_SIGNAL_BYTES_READ] = "bytes-read",
	[QUIPU_SIGNAL_BYTES_WRITTEN] = "bytes-written",
	[QUIPU_SIGNAL_BYTES_SENT] = "bytes-sent",
	[QUIPU_SIGNAL_BYTES_RECEIVED] = "bytes-received",
	[QUIPU_SIGNAL_CYCLES] = "cycles",
	[QUIPU_SIGNAL_REF_CYCLES] = "ref-cycles",
	[QUIPU_SIGNAL_BUS_CYCLES] = "bus-cycles",
	[QUIPU_SIGNAL_BRANCH_MISSES] = "branch-misses",
	[QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES] = "branch-direction-misses",
	[QUIPU_SIGNAL_BRANCH_TARGET_MISSES] = "branch-target-misses",
	[QUIPU_SIGNAL_RETURN_MISSES] = "return-misses",
	[QUIPU_SIGNAL_L1I_ACCESSES] = "l1i-accesses",
	[QUIPU_SIGNAL_L1I_MISSES] = "l1i-misses",
	[QUIPU_SIGNAL_L1D_READS] = "l1d-reads",
	[QUIPU_SIGNAL_L1D_READ_MISSES] = "l1d-read-misses",
	[QUIPU_SIGNAL_L1D_WRITES] = "l1d-writes",
	[QUIPU_SIGNAL_L1D_WRITE_MISSES] = "l1d-write-misses",
	[QUIPU_SIGNAL_L1D_PREFETCHES] = "l1d-prefetches",
	[QUIPU_SIGNAL_L1D_PREFETCH_MISSES] = "l1d-prefetch-misses",
	[QUIPU_SIGNAL_L1D_WRITEBACKS] = "l1d-writebacks",
	[QUIPU_SIGNAL_L2_READS] = "l2-reads",
	[QUIPU_SIGNAL_L2_READ_MISSES] = "l2-read-misses",
	[QUIPU_SIGNAL_L2_WRITES] = "l2-writes",
	[QUIPU_SIGNAL_L2_WRITE_MISSES] = "l2-write-misses",
	[QUIPU_SIGNAL_LL_READS] = "ll-reads",
	[QUIPU_SIGNAL_LL_READ_MISSES] = "ll-read-misses",
	[QUIPU_SIGNAL_LL_WRITES] = "ll-writes",
	[QUIPU_SIGNAL_LL_WRITE_MISSES] = "ll-write-misses",
	[QUIPU_SIGNAL_LL_PREFETCHES] = "ll-prefetches",
	[QUIPU_SIGNAL_LL_PREFETCH_MISSES] = "ll-prefetch-misses",
	[QUIPU_SIGNAL_ITLB_ACCESSES] = "itlb-accesses",
	[QUIPU_SIGNAL_ITLB_MISSES] = "itlb-misses",
	[QUIPU_SIGNAL_DTLB_READS] = "dtlb-reads",
	[QUIPU_SIGNAL_DTLB_READ_MISSES] = "dtlb-read-misses",
	[QUIPU_SIGNAL_DTLB_WRITES] = "dtlb-writes",
	[QUIPU_SIGNAL_DTLB_WRITE_MISSES] = "dtlb-write-misses",
	[QUIPU_SIGNAL_STLB_ACCESSES] = "stlb-accesses",
	[QUIPU_SIGNAL_STLB_MISSES] = "stlb-misses",
	[QUIPU_SIGNAL_MEM_READ_LINES] = "mem-read-lines",
	[QUIPU_SIGNAL_MEM_WRITE_LINES] = "mem-write-lines",
	[QUIPU_SIGNAL_LOADS_FROM_L2] = "loads-from-l2",
	[QUIPU_SIGNAL_LOADS_BEYOND_L2] = "loads-beyond-l2",
	[QUIPU_SIGNAL_LOADS_FROM_L3] = "loads-from-l3",
	[QUIPU_SIGNAL_LOADS_FROM_MEMORY] = "loads-from-memory",
	[QUIPU_SIGNAL_FETCHES_FROM_L2] = "fetches-from-l2",
	[QUIPU_SIGNAL_FETCHES_FROM_L3] = "fetches-from-l3",
	[QUIPU_SIGNAL_FETCHES_FROM_MEMORY] = "fetches-from-memory",
	[QUIPU_SIGNAL_DTLB_MISSES] = "dtlb-misses",
	[QUIPU_SIGNAL_DATA_WALKS] = "data-walks",
	[QUIPU_SIGNAL_FETCH_WALKS] = "fetch-walks",
	[QUIPU_SIGNAL_WALKS] = "walks",
	[QUIPU_SIGNAL_PORT_READ_LINES] = "port0-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 1] = "port1-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 2] = "port2-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 3] = "port3-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 4] = "port4-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 5] = "port5-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 6] = "port6-read-lines",
	[QUIPU_SIGNAL_PORT_READ_LINES + 7] = "port7-read-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES] = "port0-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 1] = "port1-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 2] = "port2-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 3] = "port3-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 4] = "port4-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 5] = "port5-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 6] = "port6-write-lines",
	[QUIPU_SIGNAL_PORT_WRITE_LINES + 7] = "port7-write-lines",
	[QUIPU_SIGNAL_PAIR_READ_LINES] = "ports01-read-lines",
	[QUIPU_SIGNAL_PAIR_READ_LINES + 1] = "ports23-read-lines",
	[QUIPU_SIGNAL_PAIR_READ_LINES + 2] = "ports45-read-lines",
	[QUIPU_SIGNAL_PAIR_READ_LINES + 3] = "ports67-read-lines",
	[QUIPU_SIGNAL_PAIR_WRITE_LINES] = "ports01-write-lines",
	[QUIPU_SIGNAL_PAIR_WRITE_LINES + 1] = "ports23-write-lines",
	[QUIPU_SIGNAL_PAIR_WRITE_LINES + 2] = "ports45-write-lines",
	[QUIPU_SIGNAL_PAIR_WRITE_LINES + 3] = "ports67-write-lines",
	[QUIPU_SIGNAL_MARKED_LOADS] = "marked-loads",
	[QUIPU_SIGNAL_MARKED_STORES] = "marked-stores",
	[QUIPU_SIGNAL_STALL_FRONTEND] = "stall-frontend",
	[QUIPU_SIGNAL_STALL_BACKEND] = "stall-backend",
	[QUIPU_SIGNAL_UNALIGNED] = "unaligned",
	[QUIPU_SIGNAL_EXCEPTIONS] = "exceptions",
	[QUIPU_SIGNAL_INTERRUPTS] = "interrupts",
	[QUIPU_SIGNAL_LABELLED] = "labelled-instructions",
	[QUIPU_SIGNAL_YANKS] = "yanks",
	[QUIPU_SIGNAL_SIBLING_BLOCKS] = "sibling-blocks",
	[QUIPU_SIGNAL_LIVELOCKS] = "livelocks",
	[QUIPU_SIGNAL_L2_TRANSACTIONS] = "l2-transactions",
	[QUIPU_SIGNAL_L2_TRANSACTION] = "l2-no-transactions",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FETCH] = "l2-fetches",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_LOAD] = "l2-loads",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FETCH_PREFETCH] = "l2-fetch-prefetches",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_STORE_PREFETCH] = "l2-store-prefetches",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_STORE] = "l2-stores",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_ATOMIC] = "l2-atomics",
	[QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FLUSH] = "l2-flushes",
};

const char *quipu_signal_name(quipu_signal signal, char *buf, size_t len)
{
	if (signal & QUIPU_SIGNAL_CLASSES)
		snprintf(buf, len, "classes:0x%llx",
			 (unsigned long long)(signal & ~QUIPU_SIGNAL_CLASSES));
	else if (signal < QUIPU_NAMED_SIGNALS)
		return names[signal];
	else
		snprintf(buf, len, "signal:%llu", (unsigned long long)signal);
	return buf;
}

enum quipu_exactness quipu_signal_exactness(quipu_signal signal)
{
	if (signal & QUIPU_SIGNAL_CLASSES)
		return QUIPU_EXACT;
	if (signal >= QUIPU_SIGNAL_BYTES_READ && signal <= QUIPU_SIGNAL_BYTES_RECEIVED)
		return QUIPU_EXACT;
	return signal < QUIPU_SIGNAL_CYCLES ? QUIPU_EXACT : QUIPU_MODELLED;
}

const char *quipu_exactness_name(enum quipu_exactness e)
{
	static const char *const text[] = {
		[QUIPU_EXACT] = "exact", [QUIPU_MODELLED] = "modelled", [QUIPU_HOST] = "host"};

	return text[e];
}

/* ---- fed by hand ---- */

struct entry {
	quipu_signal signal;
	uint64_t value;
};

struct hand_cpu {
	struct entry *entries; /* signals that were ever fed */
	size_t n;
	struct quipu_deadline deadline[QUIPU_SLOTS];
	uint64_t armed; /* bit s: deadline[s] */
};

struct quipu_manual_signals {
	struct quipu_signals base;
	unsigned ncpus;
	struct hand_cpu *cpus;
	quipu_signal *hidden;
	size_t nhidden;
};

static struct quipu_manual_signals *manual(struct quipu_signals *base)
{
	return (struct quipu_manual_signals *)base; /* its first member */
}

static bool manual_has(struct quipu_signals *base, quipu_signal signal)
{
	const struct quipu_manual_signals *m = manual(base);

	for (size_t i = 0; i < m->nhidden; i++) {
		if (m->hidden[i] == signal)
			return false;
	}
	return signal != QUIPU_SIGNAL_NONE;
}

static struct entry *find(const struct hand_cpu *cpu, quipu_signal signal)
{
	for (size_t i = 0; i < cpu->n; i++) {
		if (cpu->entries[i].signal == signal)
			return &cpu->entries[i];
	}
	return NULL;
}

static uint64_t manual_read(struct quipu_signals *base, unsigned cpu, quipu_signal signal)
{
	const struct quipu_manual_signals *m = manual(base);
	const struct entry *e = cpu < m->ncpus ? find(&m->cpus[cpu], signal) : NULL;

	return e ? e->value : 0;
}

static void manual_arm(struct quipu_signals *base, unsigned cpu, unsigned slot,
		       const struct quipu_deadline *d)
{
	struct quipu_manual_signals *m = manual(base);

	if (cpu >= m->ncpus || slot >= QUIPU_SLOTS)
		return;
	m->cpus[cpu].deadline[slot] = *d;
	m->cpus[cpu].armed |= UINT64_C(1) << slot;
}

static void manual_disarm(struct quipu_signals *base, unsigned cpu, unsigned slot)
{
	struct quipu_manual_signals *m = manual(base);

	if (cpu < m->ncpus && slot < QUIPU_SLOTS)
		m->cpus[cpu].armed &= ~(UINT64_C(1) << slot);
}

static const struct quipu_signals_ops manual_ops = {
	.has = manual_has,
	.read = manual_read,
	.arm = manual_arm,
	.disarm = manual_disarm,
};

struct quipu_manual_signals *quipu_manual_signals_new(unsigned ncpus)
{
	struct quipu_manual_signals *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base.ops = &manual_ops;
	m->ncpus = ncpus;
	m->cpus = calloc(ncpus ? ncpus : 1, sizeof(*m->cpus));
	if (!m->cpus) {
		free(m);
		return NULL;
	}
	return m;
}

void quipu_manual_signals_free(struct quipu_manual_signals *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->ncpus; i++)
		free(m->cpus[i].entries);
	free(m->cpus);
	free(m->hidden);
	free(m);
}

struct quipu_signals *quipu_manual_signals_base(struct quipu_manual_signals *m)
{
	return &m->base;
}

/* One that was reached before it was armed fires at the next occurrence. */
static uint64_t due(const struct quipu_deadline *d, uint64_t value)
{
	return d->at > value ? d->at : value + 1;
}

/* Occurrences until the nearest deadline on @signal, at most @n; *slots are those that it reaches.
 */
static uint64_t distance(const struct hand_cpu *cpu, quipu_signal signal, uint64_t value,
			 uint64_t n, uint64_t *slots)
{
	*slots = 0;
	for (uint64_t left = cpu->armed; left; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		uint64_t far = due(&cpu->deadline[slot], value) - value;

		if (cpu->deadline[slot].signal != signal || far > n)
			continue;
		if (far < n)
			*slots = 0;
		n = far;
		*slots |= UINT64_C(1) << slot;
	}
	return n;
}

static struct entry *find_or_add(struct hand_cpu *cpu, quipu_signal signal)
{
	struct entry *e = find(cpu, signal);

	if (e)
		return e;
	e = realloc(cpu->entries, (cpu->n + 1) * sizeof(*e));
	if (!e)
		return NULL;
	cpu->entries = e;
	e[cpu->n] = (struct entry){.signal = signal};
	return &e[cpu->n++];
}

void quipu_manual_signals_feed(struct quipu_manual_signals *m, unsigned n_cpu, quipu_signal signal,
			       uint64_t n, uint64_t pc)
{
	struct hand_cpu *cpu;

	if (n_cpu >= m->ncpus)
		return;
	cpu = &m->cpus[n_cpu];
	while (n) {
		/* Looked up anew each time: the handler may feed another signal. */
		struct entry *e = find_or_add(cpu, signal);
		struct quipu_interrupt i = {.cpu = n_cpu, .pc = pc};
		uint64_t step;

		if (!e)
			return;
		step = distance(cpu, signal, e->value, n, &i.slots);
		e->value += step;
		n -= step;
		cpu->armed &= ~i.slots;
		if (i.slots && m->base.interrupt)
			m->base.interrupt(m->base.arg, &i);
	}
}

void quipu_manual_signals_set_has(struct quipu_manual_signals *m, quipu_signal signal, bool has)
{
	size_t i = 0;
	quipu_signal *grown;

	while (i < m->nhidden && m->hidden[i] != signal)
		i++;
	if (has && i < m->nhidden)
		m->hidden[i] = m->hidden[--m->nhidden];
	if (has || i < m->nhidden)
		return;
	grown = realloc(m->hidden, (m->nhidden + 1) * sizeof(*grown));
	if (!grown)
		return;
	m->hidden = grown;
	m->hidden[m->nhidden++] = signal;
}
