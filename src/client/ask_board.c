/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the board says of an event (protocol.h): its counts as they stand, and what a client's own
 * clock adds to them until something happens. perf ABI sheet D4 ("Reads").
 */
#include <errno.h>
#include <string.h>

#include "client/gate_impl.h"

/* Near the one where its clients look first. */
int board_take(struct gate *g, uint64_t id, uint32_t pipe)
{
	for (unsigned i = 0; i < BOARD_CELLS; i++) {
		unsigned n = (pipe + i) % BOARD_CELLS;
		struct board_cell *c = &g->board->cells[n];

		if (c->id)
			continue;
		c->flags = 0;
		__atomic_store_n(&c->pipe, pipe, __ATOMIC_RELEASE);
		c->epoch = c->signals = c->ran_out = 0;
		__atomic_store_n(&c->id, id, __ATOMIC_RELEASE);
		return (int)n;
	}
	return -ENFILE;
}

void board_write(struct gate *g, const struct gate_event *e, const void *words, size_t len,
		 const struct motion *m)
{
	struct board_cell *c = &g->board->cells[e->cell];
	uint64_t format = quipu_event_attr(e->event)->read_format;
	unsigned times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	__atomic_store_n(&c->seq, c->seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(c->words, words, len);
	memset(c->slope, 0, sizeof(c->slope));
	c->slope[0] = m->value;
	memset(c->slope + 1, m->time, times);
	c->length = (uint32_t)len;
	c->clock = m->clock;
	c->since = m->since;
	c->until = m->until;
	c->tid = (uint32_t)m->tid;
	c->hz = quipu_system_machine(g->system)->hz;
	c->epoch = g->board->epoch;
	__atomic_store_n(&c->seq, c->seq + 1, __ATOMIC_RELEASE);
}

/* Time of @cpu until a timer of its changes what is on it. */
static uint64_t until_timer(const struct gate *g, unsigned cpu)
{
	uint64_t at = quipu_system_next_timer(g->system, cpu),
		 now = quipu_system_now(g->system, cpu);

	return at == UINT64_MAX ? at : at > now ? at - now : 0;
}

/* What of the core's PMU grows with the cycles of a task that runs natively (session_host_run). */
static bool grows_with_cycles(quipu_signal signal)
{
	return signal == QUIPU_SIGNAL_INSTRUCTIONS || signal == QUIPU_SIGNAL_CYCLES ||
	       signal == QUIPU_SIGNAL_REF_CYCLES;
}

/*
 * An event of a task that counts its CPU time. Not what samples, for its samples are written here,
 * nor what has been inherited, for others count to it too.
 */
static bool moves_with_task(const struct gate *g, const struct quipu_event *e, struct motion *m)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	struct quipu_pmu *pmu = quipu_event_pmu((struct quipu_event *)e);
	quipu_signal signal;
	bool filtered = false;
	unsigned cpu;

	m->tid = quipu_task_tid(quipu_event_task(e));
	if (!tasks_counted(g, m->tid, &cpu, &m->since) || quipu_event_state(e) != 1 ||
	    quipu_event_cpu_now(e) != (int)cpu || tasks_on(g, (int)cpu) > 1 || a->sample_period ||
	    a->flags & QUIPU_ATTR_INHERIT)
		return false;
	m->clock = BOARD_THREAD;
	m->time = BOARD_NS;
	m->until = until_timer(g, cpu);
	if (pmu->type == PERF_TYPE_SOFTWARE) {
		m->value = a->config <= PERF_COUNT_SW_TASK_CLOCK ? BOARD_NS : BOARD_STILL;
		return true;
	}
	signal = pmu->type == PERF_TYPE_RAW && pmu->signal ? pmu->signal(e, &filtered)
							   : QUIPU_SIGNAL_NONE;
	if (!filtered && grows_with_cycles(signal))
		m->value = BOARD_CYCLES;
	return signal != QUIPU_SIGNAL_NONE;
}

/* An event of an idle CPU: its times move with the clock, and the processor counts nothing. */
static bool moves_with_clock(const struct gate *g, const struct quipu_event *e, struct motion *m)
{
	const struct quipu_attr *a = quipu_event_attr(e);
	const struct quipu_pmu *pmu = quipu_event_pmu((struct quipu_event *)e);
	int cpu = quipu_event_cpu_now(e);

	if (cpu < 0 || quipu_event_state(e) != 1 || quipu_core_current(g->core, (unsigned)cpu) ||
	    a->sample_period || g->sleepers)
		return false;
	m->clock = BOARD_MONOTONIC;
	m->since = g->follow_from;
	m->until = until_timer(g, (unsigned)cpu);
	m->time = BOARD_NS;
	if (pmu->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_CPU_CLOCK)
		m->value = BOARD_NS;
	return pmu->type == PERF_TYPE_SOFTWARE || pmu->type == PERF_TYPE_RAW;
}

/* Can a client tell by itself how the event goes on until something happens? */
bool board_foresees(const struct gate *g, const struct quipu_event *e, struct motion *m)
{
	unsigned cpu;
	uint64_t ran;

	*m = (struct motion){.until = UINT64_MAX};
	if (session_guests(g->session))
		return false;
	if (quipu_event_state(e) < 0)
		return true;
	if (!quipu_event_task(e))
		return moves_with_clock(g, e, m);
	if (!tasks_counted(g, quipu_task_tid(quipu_event_task(e)), &cpu, &ran))
		return true;
	return moves_with_task(g, e, m);
}

void board_ring(struct gate *g, const struct gate_event *e)
{
	uint32_t *flags = &g->board->cells[e->cell].flags;

	if (e->ring)
		__atomic_fetch_or(flags, BOARD_RING, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(flags, ~(uint32_t)BOARD_RING, __ATOMIC_SEQ_CST);
}
