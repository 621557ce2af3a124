/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine brought to life: its hardware, firmware and drivers (the rooms), the event core above
 * them, clocks, and the placement of guest threads on modelled CPUs. Pure: an engine session, a
 * unit test or someone else's emulator drives it through signals (quipu/signal.h) and the calls
 * below.
 */
#ifndef QUIPU_SYSTEM_H
#define QUIPU_SYSTEM_H

#include <quipu/event.h>
#include <quipu/machine.h>
#include <quipu/platform.h>
#include <quipu/signal.h>

struct quipu_system;

struct quipu_system_config {
	int paranoid;	/* perf_event_paranoid of the machine; -1 unless the user asked for the
			   kernel's rules */
	int first_type; /* 0: 6; 1024 with --host-events */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
	/* A ring wants its reader, or an event hung up. */
	void (*wake)(void *arg, struct quipu_event *, unsigned bits);
	void *wake_arg;
	/* SIGIO of an event whose descriptor has O_ASYNC (quipu_core_ops.sigio); gets wake_arg.
	 * NULL: none is sent. */
	void (*sigio)(void *arg, struct quipu_event *, int code);
};

/*
 * quipu_system_new - @signals: the engine's source (or a manual one); its interrupt hook is taken
 * over. Both must outlive the system. NULL with a note of kind WRONG.
 */
struct quipu_system *quipu_system_new(const struct quipu_machine *, struct quipu_signals *signals,
				      const struct quipu_system_config *, struct quipu_notes *);
void quipu_system_free(struct quipu_system *);

struct quipu_core *quipu_system_core(struct quipu_system *);
const struct quipu_machine *quipu_system_machine(const struct quipu_system *);
struct quipu_signals *quipu_system_signals(struct quipu_system *);
void quipu_system_describe(struct quipu_system *, quipu_describe_fn *, void *arg);
/* quipu_system_report - what happened that the figures alone do not tell; often nothing. */
void quipu_system_report(struct quipu_system *, quipu_describe_fn *, void *arg);
/*
 * quipu_system_hotplug - take the device whose PMU is called @name out of the running machine, or
 * (@present) put it back. The PMU comes and goes with it; events that were open on it stay revoked
 * (quipu_core_unregister). 0, -ENODEV (no device that could go), -EALREADY, -ENOMEM.
 */
int quipu_system_hotplug(struct quipu_system *, const char *name, bool present);

/*
 * quipu_system_pmis - performance monitoring interrupts that @cpu has taken since the machine
 * began, of all rooms: what Linux shows in a row of /proc/interrupts. False: no room of this
 * machine raises any, and there is no such row.
 * quipu_system_pmi_row - how it is written, or NULL.
 */
bool quipu_system_pmis(const struct quipu_system *, unsigned cpu, uint64_t *count);
const struct quipu_interrupt_row *quipu_system_pmi_row(const struct quipu_system *);

/*
 * Clocks (model time, ns). A CPU's clock is floor(cycles * 10^9 / Hz) plus the idle time it
 * jumped over; machine time is the largest of them.
 * quipu_system_idle - @cpu waited @ns (a timeout that expired): its task leaves the CPU, the
 * clock jumps, it returns.
 */
uint64_t quipu_system_now(const struct quipu_system *, unsigned cpu);
uint64_t quipu_system_time(const struct quipu_system *);
void quipu_system_idle(struct quipu_system *, unsigned cpu, uint64_t ns);

/*
 * Threads of guest programs.
 * quipu_system_place - the CPU for a new thread: the lowest idle one; it counts as taken until
 * quipu_system_leave. -1 when every CPU has a thread (sharing a CPU in time slices is the
 * engine's later work).
 * quipu_system_place_last - the highest idle CPU: for what must not push guest threads off their
 * CPUs.
 * quipu_system_wake - the clock of an idle CPU moves up to @not_before (ns): a woken CPU starts
 * no earlier than whoever woke it.
 * quipu_system_run - quipu_system_wake, then @task starts running on @cpu.
 * quipu_system_stop - the task on @cpu stops running.
 */
int quipu_system_place(struct quipu_system *);
int quipu_system_place_last(struct quipu_system *);
/* quipu_system_place_at - take @cpu itself; false when it is taken. */
bool quipu_system_place_at(struct quipu_system *, unsigned cpu);
void quipu_system_leave(struct quipu_system *, unsigned cpu);
void quipu_system_wake(struct quipu_system *, unsigned cpu, uint64_t not_before);
void quipu_system_run(struct quipu_system *, unsigned cpu, struct quipu_task *,
		      uint64_t not_before);
void quipu_system_stop(struct quipu_system *, unsigned cpu, bool preempt);

/*
 * Timers of a CPU: the core's tick and the user's interval.
 * quipu_system_next_timer - ns on @cpu's clock at which quipu_system_timer must be called,
 * UINT64_MAX for never. quipu_system_timer runs what is due at now(cpu).
 * quipu_system_set_interval - call @fn each time the machine's clock passes a multiple of @ns
 * (0: off).
 */
uint64_t quipu_system_next_timer(const struct quipu_system *, unsigned cpu);
/*
 * quipu_system_steers - as quipu_core_steers: how many events the timer of @cpu steers and does
 * nothing else, before @until.
 */
unsigned quipu_system_steers(const struct quipu_system *, unsigned cpu, uint64_t *until);
void quipu_system_timer(struct quipu_system *, unsigned cpu);
void quipu_system_set_interval(struct quipu_system *, uint64_t ns,
			       void (*fn)(void *arg, uint64_t now), void *arg);

/*
 * What a program did that a room watches for (enum quipu_activity).
 * quipu_system_watches - a bit for each that some room wants to hear of.
 * quipu_system_activity - it happened; the program waits.
 * quipu_system_spent - cycles of @cpu that no engine counted and its clock has all the same.
 */
uint32_t quipu_system_watches(const struct quipu_system *);
void quipu_system_activity(struct quipu_system *, const struct quipu_interrupt *at,
			   enum quipu_activity, uint64_t units);
uint64_t quipu_system_spent(const struct quipu_system *, unsigned cpu);

/* Cycles of @cpu at which its clock shows @ns; for engines that count cycles. */
uint64_t quipu_system_cycles_at(const struct quipu_system *, unsigned cpu, uint64_t ns);

#endif
