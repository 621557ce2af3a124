/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The perf event core: perf_event_open and all that follows from it, as a pure library. The ABI is
 * that of Linux 6.12 (perf ABI sheet, Part A). Events are handles, rings are the caller's memory,
 * time comes from a callback, the scheduler (who runs where) is told to it. No I/O, no global
 * state, single-threaded.
 */
#ifndef QUIPU_EVENT_H
#define QUIPU_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <quipu/attr.h>
#include <quipu/pmu.h>

struct quipu_core;
struct quipu_event;
struct quipu_task;
struct quipu_ring;
struct quipu_sample;

/* What the core needs from its owner. Every call may be NULL except now. */
struct quipu_core_ops {
	/* Model time of @cpu in ns. */
	uint64_t (*now)(void *arg, unsigned cpu);
	/* The machine's time in ns: of events of a machine-wide PMU. NULL: the CPU's is taken. */
	uint64_t (*time)(void *arg);
	/* The event's ring wants its reader (wake-up), or the event hung up; @bits: POLLIN,
	 * POLLHUP, POLLERR (its PMU is gone). */
	void (*wake)(void *arg, struct quipu_event *, unsigned bits);
	/* The core needs its tick (or not any longer) on @cpu: frequency or throttled events,
	 * rotation. */
	void (*tick_needed)(void *arg, unsigned cpu, bool needed);
	/* Value of @signal on @cpu now; for the exact truth beside an estimate. */
	uint64_t (*signal)(void *arg, unsigned cpu, quipu_signal);
	/* SIGIO of a descriptor with O_ASYNC: si_code @code is POLL_IN (1) or POLL_HUP (6). Clones
	 * report the original. */
	void (*sigio)(void *arg, struct quipu_event *, int code);
	/* A sigtrap event overflowed in @task. NULL: such events are refused, not silently without
	 * a signal. */
	void (*sigtrap)(void *arg, struct quipu_event *, struct quipu_task *, uint64_t addr);
};
/*
 * wake, tick_needed, sigio and sigtrap are called from within the core: they may note what to do,
 * not call back into it (reading the ring's memory is fine).
 */

/* Sysctls and properties of the machine; values of 0 take the default in brackets. */
struct quipu_core_config {
	unsigned ncpus;
	unsigned hz;		  /* [250] */
	int paranoid;		  /* perf_event_paranoid; -1 is the default of a modelled machine */
	unsigned max_sample_rate; /* [100000] */
	unsigned max_stack;	  /* [127] */
	unsigned mlock_kb;	  /* [516] */
	unsigned mux_interval_ms; /* [1000/hz] */
	int first_type;		  /* first dynamic PMU type number [6] */
	bool no_stack_user;	  /* architecture without user stack dumps: ENOSYS */
	uint64_t regs_mask;	/* valid bits of sample_regs_user/intr; 0: architecture without perf
				   registers */
	uint64_t regs_extended; /* and those that only a PMU with QUIPU_PMU_CAP_EXTENDED_REGS
				   gives */
};

/* Who calls: evaluated against the machine's own paranoid value (A5). */
struct quipu_caller {
	pid_t pid, tid;
	uid_t uid;
	bool perfmon;	  /* CAP_PERFMON or CAP_SYS_ADMIN */
	bool ipc_lock;	  /* CAP_IPC_LOCK */
	uint64_t memlock; /* RLIMIT_MEMLOCK in bytes: what may be mapped beyond mlock_kb */
};

/*
 * quipu_core_new - an empty core: no PMU but "software", no task. @ops must outlive it; @arg is
 * handed to each call. NULL when out of memory. quipu_core_free frees all events, tasks and rings
 * as well.
 */
struct quipu_core *quipu_core_new(const struct quipu_core_config *,
				  const struct quipu_core_ops *ops, void *arg);
void quipu_core_free(struct quipu_core *);

/*
 * quipu_core_register - take a PMU; it must outlive the core. Its type is assigned if it is -1.
 * 0, -EEXIST (name or type taken), -ENOMEM.
 * quipu_core_pmus - the registered PMUs in order of registration ("software" first); *n their
 * number.
 */
int quipu_core_register(struct quipu_core *, struct quipu_pmu *);
/*
 * quipu_core_unregister - a PMU (no software one) goes while its events are open: they keep what
 * they counted (quipu_event_count), read(2) gives end of file, ioctl, mmap and groups ENODEV, poll
 * POLLERR. The PMU is not called again and may be freed. 0, -EINVAL (not registered).
 */
int quipu_core_unregister(struct quipu_core *, struct quipu_pmu *);
struct quipu_pmu *const *quipu_core_pmus(const struct quipu_core *, size_t *n);
/*
 * quipu_core_show - files of hardware that stand in /sys whether it has a PMU or not (paths from
 * '/', up to one that is NULL): the machine's tree has them until quipu_core_hide, or until the
 * core goes. They are the caller's and are not copied. 0, -ENOMEM.
 * quipu_core_shown - all that are shown, in the order in which they came; *n their number.
 */
int quipu_core_show(struct quipu_core *, const struct quipu_pmu_file *files);
void quipu_core_hide(struct quipu_core *, const struct quipu_pmu_file *files);
const struct quipu_pmu_file *const *quipu_core_shown(const struct quipu_core *, size_t *n);
const struct quipu_core_config *quipu_core_configuration(const struct quipu_core *);
/* quipu_core_set_sysctl - change paranoid, max_sample_rate, max_stack, mlock_kb at run time. 0 or
 * -EINVAL, -EBUSY. */
int quipu_core_set_sysctl(struct quipu_core *, const char *name, long value);

/*
 * quipu_core_reason - say why (printf style) an operation is about to be refused; called by
 * drivers and the core just before they return an errno.
 * quipu_core_last_reason - the text of the latest refusal, "" if none was given; cleared at the
 * start of each open and ioctl.
 */
void quipu_core_reason(struct quipu_core *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *quipu_core_last_reason(const struct quipu_core *);
/*
 * quipu_core_perfmon - for event_init: has the caller of the open that is in progress CAP_PERFMON?
 * True when the event is no caller's own (the clone of an inherited one).
 */
bool quipu_core_perfmon(const struct quipu_core *);

/*
 * quipu_event_open - perf_event_open(2). @attr: the caller's bytes, of which @attr_len are readable
 * (the size field inside is the caller's claim); NULL or too short: EFAULT. On E2BIG *size_back is
 * the size to write back. 0 and *out, or the errno of A4/A7 in its order. @group may be
 * QUIPU_EVENT_FOREIGN: the caller named a descriptor that is no event of this machine, which is
 * EBADF when its turn comes.
 */
#define QUIPU_EVENT_FOREIGN ((struct quipu_event *)-1)
int quipu_event_open(struct quipu_core *, const struct quipu_caller *, const void *attr,
		     size_t attr_len, pid_t pid, int cpu, struct quipu_event *group,
		     unsigned long flags, uint32_t *size_back, struct quipu_event **out);
/*
 * quipu_event_close - the descriptor is closed. As in Linux, where a mapping holds the file, an
 * event that is still mapped lives on (and writes) until quipu_event_unmap; the handle is then gone
 * with it. Else the event and all its clones end here.
 */
void quipu_event_close(struct quipu_event *);

/* quipu_event_read - read(2) in the layout of read_format (A8). Bytes, 0 in ERROR state, -ENOSPC,
 * -ECHILD. */
ssize_t quipu_event_read(struct quipu_event *, void *buf, size_t len);

/* What stat prints of an event: counts of the event and all its clones, live and gone. */
struct quipu_count {
	uint64_t value;
	uint64_t enabled; /* ns */
	uint64_t running; /* ns */
	uint64_t truth;	  /* value had it been on the PMU all the time it was enabled; valid if
			     has_truth */
	bool has_truth;
	uint64_t lost;
	const char *reason; /* why it never ran (running == 0), or NULL */
	const char *remark; /* what its driver said of it when it took it ("counts every privilege
			       level"), or NULL */
};
void quipu_event_count(struct quipu_event *, struct quipu_count *);

/*
 * quipu_event_ioctl - an ioctl whose argument is a value (MODIFY_ATTRIBUTES: the type of the new
 * attributes). 0 or errno of A9; -ENOTTY for one that it does not know.
 */
int quipu_event_ioctl(struct quipu_event *, unsigned long cmd, uint64_t arg);
int quipu_event_set_period(struct quipu_event *, uint64_t period);
/* quipu_event_set_output - SET_OUTPUT; NULL detaches. */
int quipu_event_set_output(struct quipu_event *, struct quipu_event *target);
/* quipu_event_set_async - the descriptor has O_ASYNC: every overflow wakes. */
void quipu_event_set_async(struct quipu_event *, bool async);
uint64_t quipu_event_id(const struct quipu_event *);
/* quipu_event_poll - POLLIN, POLLHUP, POLLERR as poll(2) would show (A16); takes the pending
 * wake-up. */
unsigned quipu_event_poll(struct quipu_event *);
/*
 * quipu_event_needs_bell - what the event does at an overflow must happen before the program goes
 * on (event limit, signal): its overflows are not to be served in the engine process alone.
 */
bool quipu_event_needs_bell(const struct quipu_event *);
/* quipu_event_since_tick - what a frequency event has counted, as far as its driver has folded,
 * since the core's last tick; below 0 after a reset. */
int64_t quipu_event_since_tick(const struct quipu_event *);
/*
 * quipu_core_steers - does the tick of @cpu do nothing but steer the periods of frequency events?
 * Returns how many they are, 0: it has other work, or none. @until: ns of the CPU's clock at which
 * the next timer of another kind is due (rotation, clock events); UINT64_MAX: none.
 */
unsigned quipu_core_steers(const struct quipu_core *, unsigned cpu, uint64_t *until);
/* quipu_core_prctl - PR_TASK_PERF_EVENTS_DISABLE/ENABLE for the events opened by @tid. */
void quipu_core_prctl(struct quipu_core *, pid_t tid, bool enable);

const struct quipu_attr *quipu_event_attr(const struct quipu_event *);
struct quipu_pmu *quipu_event_pmu(const struct quipu_event *);
struct quipu_hw_event *quipu_event_hw(struct quipu_event *);
struct quipu_core *quipu_event_core(const struct quipu_event *);
/* The CPU whose PMU the event is on or is being added to; -1 when it is on none. */
int quipu_event_cpu_now(const struct quipu_event *);
/* The cpu argument of the open, and the task or NULL. quipu_event_set_cpu is for uncore drivers in
 * event_init. */
int quipu_event_cpu(const struct quipu_event *);
void quipu_event_set_cpu(struct quipu_event *, int cpu);
struct quipu_task *quipu_event_task(const struct quipu_event *);
/* The group: its leader (the event itself when alone), and member @i in order (0 is the leader),
 * NULL past the end. */
struct quipu_event *quipu_event_leader(const struct quipu_event *);
struct quipu_event *quipu_event_member(const struct quipu_event *, unsigned i);
/* The event's state: -3 task gone, -2 error, -1 off, 0 inactive, 1 active (A10). */
int quipu_event_state(const struct quipu_event *);
/* Add to the count, as local64_add(delta, &event->count). */
void quipu_event_add_count(struct quipu_event *, uint64_t delta);

/*
 * The ring (A16). @mem: (1 + pages) * 4096 bytes that the caller keeps alive until unmap; written
 * only by the core, except data_tail, which is the reader's and is trusted for nothing but flow
 * control. @writable: PROT_WRITE of the mapping (else overwrite mode). 0, -EINVAL, -EPERM (lock
 * limit). @mem is zeroed and aligned to 8. An event that has a buffer already (mapped before, or
 * SET_OUTPUT) maps that one again: @mem is then not used, and the buffer's memory must live until
 * the last mapping is gone.
 */
int quipu_event_map(struct quipu_event *, const struct quipu_caller *, void *mem, size_t pages,
		    bool writable);
void quipu_event_unmap(struct quipu_event *);

/*
 * quipu_event_describe - COMM and MMAP2 records (as the attributes ask for them) of the processes
 * that run where the event counts, for a client that cannot find them in /proc. Time is now; an
 * event that is disabled writes them, too.
 */
void quipu_event_describe(struct quipu_event *);

/*
 * Tasks and the scheduler. A task is a guest thread (or a client's process); the owner tells what
 * happens to it.
 *
 * quipu_task_new - @parent NULL: unrelated to any event; else a fork or clone of it: inherit
 * rules apply, and FORK is recorded. @thread: CLONE_THREAD. NULL when out of memory or the tid
 * exists.
 * quipu_task_exec - new program image: COMM(exec), enable_on_exec, remove_on_exec.
 * quipu_task_comm - new name (prctl).
 * quipu_task_mmap - a mapping was made.
 * quipu_task_exit - EXIT, folds clones, wakes pollers with POLLHUP. The task is freed when its
 * last event is. Call it while the task is still current: it leaves the CPU by that, and the
 * last switch is not counted (as in Linux).
 * quipu_sched_in / quipu_sched_out - @task starts or stops running on @cpu at now(cpu).
 * @preempt: for SWITCH records.
 * quipu_core_tick - the core's tick on @cpu: frequency, unthrottle, and rotation when the mux
 * interval is over.
 */
struct quipu_mapping {
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	const char *name;
	const uint8_t *build_id; /* 20 bytes or NULL */
};
struct quipu_task *quipu_task_new(struct quipu_core *, struct quipu_task *parent, pid_t pid,
				  pid_t tid, bool thread, const char *comm, unsigned cpu);
struct quipu_task *quipu_task_find(struct quipu_core *, pid_t tid);
pid_t quipu_task_pid(const struct quipu_task *);
pid_t quipu_task_tid(const struct quipu_task *);
void quipu_task_exec(struct quipu_task *, const char *comm, unsigned cpu);
void quipu_task_comm(struct quipu_task *, const char *comm, unsigned cpu);
void quipu_task_mmap(struct quipu_task *, const struct quipu_mapping *, unsigned cpu);
void quipu_task_exit(struct quipu_task *, unsigned cpu);
void quipu_sched_in(struct quipu_core *, unsigned cpu, struct quipu_task *);
void quipu_sched_out(struct quipu_core *, unsigned cpu, bool preempt);
struct quipu_task *quipu_core_current(const struct quipu_core *, unsigned cpu);
void quipu_core_tick(struct quipu_core *, unsigned cpu);
/*
 * quipu_core_tick_at - the same, saying where @cpu stands: samples of clock events (cpu-clock,
 * task-clock) that are due are taken there. quipu_core_tick samples ip 0.
 */
void quipu_core_tick_at(struct quipu_core *, unsigned cpu, const struct quipu_sample *);
/* quipu_core_next_tick - when the next tick of @cpu is due (ns of its clock), UINT64_MAX when none
 * is needed. */
uint64_t quipu_core_next_tick(const struct quipu_core *, unsigned cpu);
/* quipu_core_next_rotation - the same of the next turn of events that share counters alone. */
uint64_t quipu_core_next_rotation(const struct quipu_core *, unsigned cpu);
int quipu_core_set_online(struct quipu_core *, unsigned cpu, bool online);
/* quipu_core_is_online - is it? False past the last CPU, too. */
bool quipu_core_is_online(const struct quipu_core *, unsigned cpu);
/*
 * quipu_core_migrate - the events of @pmu on CPU @from go on, with their counts, on CPU @to: for an
 * uncore driver whose CPU goes offline (its cpu_offline is called before the events of that CPU are
 * stopped).
 */
void quipu_core_migrate(struct quipu_core *, struct quipu_pmu *pmu, unsigned from, unsigned to);
/*
 * quipu_core_work - do what overflows left behind (disabling an event whose limit is reached).
 * Call it after a driver's interrupt handler returned; every other call of this header does it
 * first as well.
 * quipu_core_software - software event @config (PERF_COUNT_SW_*) happened @nr times on @cpu, for
 * models that have page or alignment faults. Context switches and migrations are counted by
 * quipu_sched_in/out.
 * quipu_core_set_mux_interval - perf_event_mux_interval_ms of a PMU. 0, -EINVAL (0 ms).
 * quipu_task_set_uid - whose task it is, for permissions; (uid_t)-1, the default of a task
 * without parent: anybody's.
 */
void quipu_core_work(struct quipu_core *);
void quipu_core_software(struct quipu_core *, unsigned cpu, uint64_t config, uint64_t nr,
			 const struct quipu_sample *);
int quipu_core_set_mux_interval(struct quipu_core *, struct quipu_pmu *, unsigned ms);
/* quipu_core_mux_interval - that of @pmu, ms. */
unsigned quipu_core_mux_interval(const struct quipu_core *, const struct quipu_pmu *);
void quipu_task_set_uid(struct quipu_task *, uid_t uid);

/* quipu_core_slot_event - the event that is on counter slot @slot of @cpu (struct quipu_pmu.slot),
 * or NULL. */
struct quipu_event *quipu_core_slot_event(const struct quipu_core *, unsigned cpu, unsigned slot);

/* What a driver knows at an overflow (struct perf_sample_data and pt_regs). Zero what is not known.
 */
struct quipu_sample {
	uint64_t ip;
	uint64_t addr;
	uint64_t weight;
	uint64_t data_src; /* 0: the "not available" default */
	const uint64_t *chain;
	size_t nr_chain; /* user call sites, innermost first, without ip */
	bool no_chain;	 /* nobody walked any stack: not even the ip heads a chain */
	const uint64_t *branches;
	size_t nr_branches;
	/* Registers at the interrupt: bits of sample_regs_intr, and their values in that order. An
	 * event that asks for others besides gets none. */
	uint64_t regs_known;
	const uint64_t *regs;
	/* The same of user space (sample_regs_user). */
	struct quipu_user_regs user;
	const void *raw;
	uint32_t raw_size;
	unsigned cpumode;    /* PERF_RECORD_MISC_*; 0: user */
	bool through_kernel; /* of the hypervisor, seen by a kernel that marks such call chains as
			      * its own
			      */
	bool exact_ip;
	uint32_t pid, tid; /* 0, 0: the task on the CPU */
};

/*
 * quipu_event_overflow - perf_event_overflow: accounting, throttling, frequency, event limit,
 * output. The driver has already called quipu_reload_set_period. Returns 1 when the driver must
 * stop the event.
 */
int quipu_event_overflow(struct quipu_event *, const struct quipu_sample *);

/*
 * quipu_event_sample - write a sample and nothing else: no accounting, throttling or event limit.
 * For hardware that leaves its records in memory, which the driver delivers later. 0, or -ENOSPC:
 * no buffer, or no room in it (then counted as lost).
 */
int quipu_event_sample(struct quipu_event *, const struct quipu_sample *);

/* A raw record of the core's owner into the event's ring (side-band mirrored from elsewhere). 0 or
 * -ENOSPC. */
int quipu_event_output(struct quipu_event *, const void *record, size_t len);

#endif
