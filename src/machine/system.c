/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine brought to life (quipu/system.h): rooms, event core, clocks, timers, placement.
 * doc/architecture.md, "Cycles and time". It starts no program and waits for nothing: an engine's
 * session or a test drives it.
 */
#include <errno.h>
#include <stdlib.h>

#include <quipu/bits.h>
#include <quipu/perf_regs.h>
#include <quipu/system.h>

#define NS_PER_S  UINT64_C(1000000000)
#define MAX_ROOMS 8

struct cpu {
	uint64_t idle_ns; /* what the clock jumped over, on top of its cycles */
	uint64_t spent;	  /* cycles that no engine counted */
	bool taken;	  /* a thread was placed here */
	uint64_t armed;	  /* cycles at which the timer slot is armed, UINT64_MAX: not */
};

struct room {
	const struct quipu_platform *platform;
	void *self;
};

struct quipu_system {
	const struct quipu_machine *machine;
	struct quipu_signals *signals;
	struct quipu_system_config config;
	struct quipu_core *core;
	struct room rooms[MAX_ROOMS];
	unsigned nrooms;
	struct cpu *cpus;
	uint64_t interval, next_interval;
	void (*interval_fn)(void *arg, uint64_t now);
	void *interval_arg;
};

/* ---- clocks ---- */

uint64_t quipu_system_now(const struct quipu_system *sys, unsigned cpu)
{
	uint64_t cycles = sys->signals->ops->read(sys->signals, cpu, QUIPU_SIGNAL_CYCLES) +
			  sys->cpus[cpu].spent;

	return sys->cpus[cpu].idle_ns + bits_muldiv(cycles, NS_PER_S, sys->machine->hz);
}

uint64_t quipu_system_time(const struct quipu_system *sys)
{
	uint64_t latest = 0;

	for (unsigned c = 0; c < sys->machine->ncpus; c++) {
		uint64_t t = quipu_system_now(sys, c);

		if (t > latest)
			latest = t;
	}
	return latest;
}

uint64_t quipu_system_cycles_at(const struct quipu_system *sys, unsigned cpu, uint64_t ns)
{
	uint64_t idle = sys->cpus[cpu].idle_ns, spent = sys->cpus[cpu].spent;
	unsigned __int128 product;

	if (ns <= idle)
		return 0;
	/* The first cycle at which floor(cycles * 10^9 / Hz) is not below: round up. */
	product = (unsigned __int128)(ns - idle) * sys->machine->hz + NS_PER_S - 1;
	product /= NS_PER_S;
	product = product > spent ? product - spent : 0;
	return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

static uint64_t room_now(void *arg)
{
	return quipu_system_time(arg);
}

/* Hardware that runs by itself keeps up with the clocks; drivers ask for the time themselves before
 * they read. */
static void advance_rooms(struct quipu_system *sys)
{
	for (unsigned i = 0; i < sys->nrooms; i++)
		if (sys->rooms[i].platform->advance)
			sys->rooms[i].platform->advance(sys->rooms[i].self, quipu_system_time(sys));
}

static void room_spend(void *arg, unsigned cpu, uint64_t cycles)
{
	((struct quipu_system *)arg)->cpus[cpu].spent += cycles;
}

uint64_t quipu_system_spent(const struct quipu_system *sys, unsigned cpu)
{
	return sys->cpus[cpu].spent;
}

/* ---- timers ---- */

uint64_t quipu_system_next_timer(const struct quipu_system *sys, unsigned cpu)
{
	uint64_t tick = quipu_core_next_tick(sys->core, cpu);

	if (sys->interval && sys->next_interval < tick)
		return sys->next_interval;
	return tick;
}

unsigned quipu_system_steers(const struct quipu_system *sys, unsigned cpu, uint64_t *until)
{
	unsigned steered = quipu_core_steers(sys->core, cpu, until);

	if (sys->interval && sys->next_interval < *until)
		*until = sys->next_interval;
	return steered;
}

static void rearm(struct quipu_system *sys, unsigned cpu)
{
	uint64_t ns = quipu_system_next_timer(sys, cpu);
	struct quipu_deadline d = {.signal = QUIPU_SIGNAL_CYCLES, .flags = QUIPU_DEADLINE_TIMER};

	d.at = ns == UINT64_MAX ? UINT64_MAX : quipu_system_cycles_at(sys, cpu, ns);
	if (d.at == sys->cpus[cpu].armed)
		return;
	sys->cpus[cpu].armed = d.at;
	if (d.at == UINT64_MAX)
		sys->signals->ops->disarm(sys->signals, cpu, QUIPU_SLOT_TICK);
	else
		sys->signals->ops->arm(sys->signals, cpu, QUIPU_SLOT_TICK, &d);
}

static void run_interval(struct quipu_system *sys, uint64_t now)
{
	while (sys->interval && sys->next_interval <= now) {
		uint64_t due = sys->next_interval;

		sys->next_interval += sys->interval;
		sys->interval_fn(sys->interval_arg, due);
	}
}

/* @at: where the CPU stands, for samples of clock events; NULL when nobody knows. */
static void run_timers(struct quipu_system *sys, unsigned cpu, const struct quipu_sample *at)
{
	uint64_t now = quipu_system_now(sys, cpu);

	sys->cpus[cpu].armed = UINT64_MAX;
	advance_rooms(sys);
	if (quipu_core_next_tick(sys->core, cpu) <= now)
		quipu_core_tick_at(sys->core, cpu, at);
	run_interval(sys, now);
	rearm(sys, cpu);
}

void quipu_system_timer(struct quipu_system *sys, unsigned cpu)
{
	run_timers(sys, cpu, NULL);
}

void quipu_system_set_interval(struct quipu_system *sys, uint64_t ns,
			       void (*fn)(void *arg, uint64_t now), void *arg)
{
	sys->interval = ns;
	sys->interval_fn = fn;
	sys->interval_arg = arg;
	if (ns)
		sys->next_interval = (quipu_system_time(sys) / ns + 1) * ns;
	for (unsigned c = 0; c < sys->machine->ncpus; c++)
		if (sys->cpus[c].taken)
			rearm(sys, c);
}

/* ---- interrupts ---- */

static void on_interrupt(void *arg, const struct quipu_interrupt *intr)
{
	struct quipu_system *sys = arg;

	const struct quipu_sample at = {
		.ip = intr->pc,
		.chain = intr->chain,
		.nr_chain = intr->nr_chain,
		.user = intr->user,
		.pid = intr->pid,
		.tid = intr->tid,
		.exact_ip = true,
	};

	if (intr->slots & bits_mask(QUIPU_SLOTS_HARDWARE)) {
		for (unsigned i = 0; i < sys->nrooms; i++)
			sys->rooms[i].platform->interrupt(sys->rooms[i].self, intr);
		quipu_core_work(sys->core);
	}
	if (intr->slots & bits_one(QUIPU_SLOT_TICK))
		run_timers(sys, intr->cpu, &at);
	else
		rearm(sys, intr->cpu);
}

/* ---- what programs do ---- */

uint32_t quipu_system_watches(const struct quipu_system *sys)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < sys->nrooms; i++)
		if (sys->rooms[i].platform->watches)
			bits |= sys->rooms[i].platform->watches(sys->rooms[i].self);
	return bits;
}

void quipu_system_activity(struct quipu_system *sys, const struct quipu_interrupt *at,
			   enum quipu_activity what, uint64_t units)
{
	for (unsigned i = 0; i < sys->nrooms; i++)
		if (sys->rooms[i].platform->activity)
			sys->rooms[i].platform->activity(sys->rooms[i].self, at, what, units);
	quipu_core_work(sys->core);
	/* The same cycle of the program may be a later time now. */
	sys->cpus[at->cpu].armed = UINT64_MAX;
	rearm(sys, at->cpu);
}

/* ---- threads ---- */

int quipu_system_place(struct quipu_system *sys)
{
	for (unsigned c = 0; c < sys->machine->ncpus; c++)
		if (!sys->cpus[c].taken && quipu_core_is_online(sys->core, c)) {
			sys->cpus[c].taken = true;
			return (int)c;
		}
	return -1;
}

int quipu_system_place_last(struct quipu_system *sys)
{
	for (unsigned c = sys->machine->ncpus; c-- > 0;)
		if (!sys->cpus[c].taken && quipu_core_is_online(sys->core, c)) {
			sys->cpus[c].taken = true;
			return (int)c;
		}
	return -1;
}

bool quipu_system_place_at(struct quipu_system *sys, unsigned cpu)
{
	if (!quipu_core_is_online(sys->core, cpu) || sys->cpus[cpu].taken)
		return false;
	sys->cpus[cpu].taken = true;
	return true;
}

void quipu_system_leave(struct quipu_system *sys, unsigned cpu)
{
	sys->cpus[cpu].taken = false;
}

void quipu_system_wake(struct quipu_system *sys, unsigned cpu, uint64_t not_before)
{
	uint64_t now = quipu_system_now(sys, cpu);

	if (now < not_before)
		sys->cpus[cpu].idle_ns += not_before - now;
}

void quipu_system_run(struct quipu_system *sys, unsigned cpu, struct quipu_task *task,
		      uint64_t not_before)
{
	quipu_system_wake(sys, cpu, not_before);
	sys->cpus[cpu].taken = true;
	quipu_sched_in(sys->core, cpu, task);
	rearm(sys, cpu);
}

void quipu_system_stop(struct quipu_system *sys, unsigned cpu, bool preempt)
{
	quipu_sched_out(sys->core, cpu, preempt);
	rearm(sys, cpu);
}

/* Events that are more than the counters rotate while their CPU sleeps, too. */
static void take_turns(struct quipu_system *sys, unsigned cpu, uint64_t until)
{
	uint64_t due;

	while ((due = quipu_core_next_rotation(sys->core, cpu)) <= until) {
		quipu_system_wake(sys, cpu, due);
		advance_rooms(sys);
		quipu_core_tick(sys->core, cpu);
	}
}

void quipu_system_idle(struct quipu_system *sys, unsigned cpu, uint64_t ns)
{
	struct quipu_task *task = quipu_core_current(sys->core, cpu);
	uint64_t now = quipu_system_now(sys, cpu);

	if (task)
		quipu_sched_out(sys->core, cpu, false);
	take_turns(sys, cpu, now + ns);
	quipu_system_wake(sys, cpu, now + ns);
	advance_rooms(sys);
	run_interval(sys, now + ns);
	if (task)
		quipu_sched_in(sys->core, cpu, task);
	/* The same cycle is now a later time: a timer that was due inside the sleep is due at once.
	 */
	sys->cpus[cpu].armed = UINT64_MAX;
	rearm(sys, cpu);
}

/* ---- what the core asks ---- */

static uint64_t core_now(void *arg, unsigned cpu)
{
	return quipu_system_now(arg, cpu);
}

static void core_wake(void *arg, struct quipu_event *event, unsigned bits)
{
	struct quipu_system *sys = arg;

	if (sys->config.wake)
		sys->config.wake(sys->config.wake_arg, event, bits);
}

static void core_sigio(void *arg, struct quipu_event *event, int code)
{
	struct quipu_system *sys = arg;

	if (sys->config.sigio)
		sys->config.sigio(sys->config.wake_arg, event, code);
}

static void core_tick_needed(void *arg, unsigned cpu, bool needed)
{
	(void)needed; /* quipu_core_next_tick knows */
	rearm(arg, cpu);
}

static uint64_t core_signal(void *arg, unsigned cpu, quipu_signal signal)
{
	struct quipu_system *sys = arg;

	return sys->signals->ops->read(sys->signals, cpu, signal);
}

static const struct quipu_core_ops core_ops = {
	.now = core_now,
	.time = room_now,
	.wake = core_wake,
	.tick_needed = core_tick_needed,
	.signal = core_signal,
	.sigio = core_sigio,
};

/* ---- life ---- */

/* MMCR0-2, PMC1-6, SDAR, SIAR of POWER9 (arch/powerpc/include/uapi/asm/perf_regs.h). */
#define REGS_POWER9 UINT64_C(0x07f8e00000000000)

static int make_core(struct quipu_system *sys)
{
	const struct quipu_machine *m = sys->machine;
	struct quipu_core_config config = {
		.ncpus = m->ncpus,
		.hz = m->tick_hz,
		.paranoid = sys->config.paranoid,
		.first_type = sys->config.first_type,
		.regs_mask = quipu_perf_regs_valid(m->isa),
		.regs_extended = m->isa == QUIPU_ISA_PPC64LE ? REGS_POWER9 : 0,
		.no_stack_user = m->isa == QUIPU_ISA_SPARC64,
	};

	sys->core = quipu_core_new(&config, &core_ops, sys);
	return sys->core ? 0 : -ENOMEM;
}

static int make_rooms(struct quipu_system *sys, struct quipu_notes *notes)
{
	struct quipu_platform_env env = {
		.machine = sys->machine,
		.core = sys->core,
		.signals = sys->signals,
		.notes = notes,
		.trace = sys->config.trace,
		.trace_arg = sys->config.trace_arg,
		.now = room_now,
		.now_arg = sys,
		.spend = room_spend,
		.spend_arg = sys,
	};

	for (const struct quipu_platform *const *p = quipu_platforms; *p && sys->nrooms < MAX_ROOMS;
	     p++) {
		struct room *room = &sys->rooms[sys->nrooms];
		int err;

		if (!(*p)->matches(sys->machine))
			continue;
		err = (*p)->create(&env, &room->self);
		if (err)
			return err;
		room->platform = *p;
		sys->nrooms++;
	}
	return 0;
}

struct quipu_system *quipu_system_new(const struct quipu_machine *machine,
				      struct quipu_signals *signals,
				      const struct quipu_system_config *config,
				      struct quipu_notes *notes)
{
	struct quipu_system *sys = calloc(1, sizeof(*sys));

	if (!sys)
		goto nomem;
	sys->machine = machine;
	sys->signals = signals;
	sys->config = *config;
	sys->cpus = calloc(machine->ncpus, sizeof(*sys->cpus));
	if (!sys->cpus || make_core(sys))
		goto nomem;
	for (unsigned c = 0; c < machine->ncpus; c++)
		sys->cpus[c].armed = UINT64_MAX;
	signals->interrupt = on_interrupt;
	signals->arg = sys;
	if (make_rooms(sys, notes)) {
		quipu_system_free(sys);
		return NULL;
	}
	return sys;
nomem:
	quipu_note(notes, QUIPU_NOTE_WRONG, "/", "out of memory for %u CPUs", machine->ncpus);
	quipu_system_free(sys);
	return NULL;
}

void quipu_system_free(struct quipu_system *sys)
{
	if (!sys)
		return;
	/* The core first: closing its events still calls the drivers. */
	quipu_core_free(sys->core);
	while (sys->nrooms--)
		sys->rooms[sys->nrooms].platform->destroy(sys->rooms[sys->nrooms].self);
	sys->signals->interrupt = NULL;
	free(sys->cpus);
	free(sys);
}

struct quipu_core *quipu_system_core(struct quipu_system *sys)
{
	return sys->core;
}

const struct quipu_machine *quipu_system_machine(const struct quipu_system *sys)
{
	return sys->machine;
}

struct quipu_signals *quipu_system_signals(struct quipu_system *sys)
{
	return sys->signals;
}

/* arch/powerpc/kernel/irq.c, arch/x86/kernel/irq.c */
static const struct quipu_interrupt_row pmi = {"PMI", "  Performance monitoring interrupts"};

static const struct quipu_interrupt_row *row_of(const struct room *r)
{
	if (!r->platform->interrupts)
		return NULL;
	return r->platform->interrupt_row ? r->platform->interrupt_row(r->self) : &pmi;
}

const struct quipu_interrupt_row *quipu_system_pmi_row(const struct quipu_system *sys)
{
	const struct quipu_interrupt_row *row = NULL;

	for (unsigned i = 0; !row && i < sys->nrooms; i++)
		row = row_of(&sys->rooms[i]);
	return row;
}

bool quipu_system_pmis(const struct quipu_system *sys, unsigned cpu, uint64_t *count)
{
	bool any = false;

	*count = 0;
	for (unsigned i = 0; cpu < sys->machine->ncpus && i < sys->nrooms; i++) {
		const struct room *room = &sys->rooms[i];

		if (!row_of(room))
			continue;
		any = true;
		*count += room->platform->interrupts(room->self, cpu);
	}
	return any;
}

int quipu_system_hotplug(struct quipu_system *sys, const char *name, bool present)
{
	for (unsigned i = 0; i < sys->nrooms; i++) {
		const struct room *room = &sys->rooms[i];
		int err = room->platform->hotplug
				  ? room->platform->hotplug(room->self, name, present)
				  : -ENODEV;

		if (err != -ENODEV)
			return err;
	}
	return -ENODEV;
}

void quipu_system_describe(struct quipu_system *sys, quipu_describe_fn *fn, void *arg)
{
	for (unsigned i = 0; i < sys->nrooms; i++)
		sys->rooms[i].platform->describe(sys->rooms[i].self, fn, arg);
}

void quipu_system_report(struct quipu_system *sys, quipu_describe_fn *fn, void *arg)
{
	for (unsigned i = 0; i < sys->nrooms; i++)
		if (sys->rooms[i].platform->report)
			sys->rooms[i].platform->report(sys->rooms[i].self, fn, arg);
}
