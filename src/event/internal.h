/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the event core share. Terms are those of the perf ABI sheet, A10-A12: a context
 * holds the events of one CPU or of one task; within it each scheduling class (software; each other
 * PMU its own, as Linux does since 6.2) has a pinned and a flexible set of groups.
 *
 * Who calls whom: open, ioctl, task and read go through context.c for every change of state;
 * context.c calls drivers; drivers call back into sample.c (overflow), which writes through ring.c.
 */
#ifndef QUIPU_EVENT_INTERNAL_H
#define QUIPU_EVENT_INTERNAL_H

#include <limits.h>
#include <stddef.h>

#include <quipu/event.h>

#define PAGE	       4096u
#define NSEC_PER_SEC   UINT64_C(1000000000)
#define NEVER	       UINT64_MAX
#define THROTTLED      UINT_MAX /* hw.interrupts of a throttled event */
#define RECORD_MAX     65528u	/* header.size is 16 bits and a multiple of 8 */
#define READ_MAX       16384u	/* largest group read (A4 step 33) */
#define CLASS_SOFTWARE 0u

/* Sample and read bits that Debian 12's <linux/perf_event.h> may or may not have; values of
 * Linux 6.12. */
#define SAMPLE_KNOWN ((UINT64_C(1) << 25) - 1)
#define READ_KNOWN   ((UINT64_C(1) << 5) - 1)
#define BRANCH_KNOWN ((UINT64_C(1) << 20) - 1)

/* Circular list; an element outside any list points to itself. */
struct link {
	struct link *next, *prev;
};

static inline void link_init(struct link *l)
{
	l->next = l->prev = l;
}

static inline bool link_empty(const struct link *l)
{
	return l->next == l;
}

static inline void link_append(struct link *head, struct link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void link_remove(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	link_init(l);
}

#define container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
/* The body may remove @pos, nothing else. */
#define list_for_each(pos, head, member)                                                           \
	for (struct link *it_##pos = (head)->next, *next_##pos = it_##pos->next;                   \
	     it_##pos != (head) &&                                                                 \
	     ((pos) = container(it_##pos, __typeof__(*(pos)), member), true);                      \
	     it_##pos = next_##pos, next_##pos = it_##pos->next)

enum event_state {
	STATE_DEAD = -5,
	STATE_REVOKED = -4, /* its PMU is gone */
	STATE_EXIT = -3,
	STATE_ERROR = -2,
	STATE_OFF = -1,
	STATE_INACTIVE = 0,
	STATE_ACTIVE = 1,
};

enum set { PINNED, FLEXIBLE, SETS };

struct sub {
	struct link groups[SETS]; /* leaders, by rising group index */
	bool in[SETS];		  /* the set has been tried on the context's CPU */
	bool rotate;		  /* a flexible group did not fit */
};

struct context {
	struct quipu_core *core;
	struct quipu_task *task; /* NULL: the context of a CPU */
	int cpu;		 /* where it is active, -1 nowhere */
	uint64_t time;		 /* ns until stamp */
	uint64_t stamp;		 /* clock of cpu when it became active */
	struct sub **subs;	 /* by class */
	unsigned nsubs;
	struct link events; /* all, leaders and siblings, in order of opening */
};

struct quipu_ring {
	struct quipu_core *core;
	uint8_t *mem;
	size_t pages;	 /* data pages, a power of two or 0 */
	uint64_t head;	 /* the trusted copy of data_head */
	uint64_t wakeup; /* bytes at the last wake-up */
	uint64_t watermark;
	uint64_t lost;
	unsigned samples; /* since the last wake-up, for wakeup_events */
	bool overwrite;
	bool paused;
	unsigned poll;	    /* pending POLLIN */
	unsigned maps;	    /* mappings of all events */
	unsigned refs;	    /* attached events + mappings */
	struct link events; /* attached, quipu_event.ring_link */
	struct link core_link;
	uid_t uid;     /* who is charged */
	size_t locked; /* pages charged */
};

struct quipu_event {
	struct quipu_core *core;
	struct quipu_attr attr;
	struct quipu_pmu *pmu;
	struct quipu_hw_event hw;
	uint64_t id;
	int cpu;   /* argument of the open */
	int oncpu; /* -1: on no PMU */
	enum event_state state;
	struct quipu_task *task;
	struct context *ctx; /* NULL before the open succeeds and after exit or close */
	unsigned class;
	bool initialised; /* event_init succeeded: event_destroy is due */
	bool closed;	  /* descriptor gone, mapping still there */

	struct quipu_event *leader;
	struct link siblings; /* of a leader */
	struct link sibling_link;
	unsigned nr_siblings;
	unsigned generation; /* how often the group changed its shape */
	bool pure_software;  /* the group has software members only (on leaders) */

	struct link core_link;	 /* core->events */
	struct link ctx_link;	 /* ctx->events */
	struct link group_link;	 /* sub->groups, leaders only */
	struct link active_link; /* cpu->active */
	int slot;		 /* in cpu->slots, -1 */

	uint64_t count, enabled, running, tstamp;
	uint64_t child_count, child_enabled, child_running, child_truth;
	quipu_signal signal;
	bool filtered; /* counts no user activity: truth is 0 */
	bool truth_open;
	unsigned truth_cpu;
	uint64_t truth, truth_base;

	struct quipu_event *parent; /* the original of a clone */
	struct link children, child_link;
	pid_t owner; /* tid that opened it */

	struct quipu_ring *ring;
	struct link ring_link;
	unsigned maps;
	uint64_t lost;
	unsigned limit; /* event_limit, which wraps as a kernel's */
	int pending;	/* POLL_IN, POLL_HUP or 0 */
	bool async;
	bool pending_disable;
	uint64_t clock_due;  /* clock events: next expiry on oncpu's clock, NEVER */
	uint64_t clock_base; /* clock events: clock at the last fold */
	char *reason;	     /* why the last add failed */
	char *remark;	     /* said by the driver that took it */
};

struct quipu_task {
	struct quipu_core *core;
	struct link hash_link;
	pid_t pid, tid;
	pid_t parent_pid; /* real parent's tgid, for EXIT */
	uid_t uid;	  /* -1: anybody's */
	char comm[16];
	struct context ctx;
	int cpu; /* where it runs, -1 */
	int last_cpu;
	bool exited;
	unsigned refs;		   /* events that name it */
	struct mappings *mappings; /* of its process, if it is the first thread (mapping.c) */
};

struct cpu_class {
	bool exclusive;	  /* an exclusive group is on */
	unsigned nest;	  /* of pmu_disable */
	uint64_t mux_due; /* next rotation, NEVER */
};

struct cpu {
	struct context ctx;
	struct quipu_task *current;
	bool online;
	struct cpu_class *classes;
	struct quipu_event *slots[QUIPU_SLOTS];
	struct link active;		 /* events in state ACTIVE */
	uint64_t tick_due;		 /* NEVER when not needed */
	uint64_t told;			 /* next tick as last told to the owner */
	const struct quipu_sample *regs; /* where the CPU stands, during a tick */
};

struct locked {
	uid_t uid;
	size_t pages;
};

#define TASK_BUCKETS 256u

struct quipu_core {
	struct quipu_core_config config;
	const struct quipu_core_ops *ops;
	void *arg;
	/* Index = class, but all software PMUs share class 0; &gone: the class is
	 * free. */
	struct quipu_pmu **pmus;
	unsigned *mux_ms; /* by pmu */
	size_t npmus;
	struct quipu_pmu **listed; /* those that are there, in order of registration */
	size_t nlisted;
	const struct quipu_pmu_file **shown; /* lists of files that belong to no PMU */
	size_t nshown;
	struct quipu_pmu software;
	struct quipu_pmu gone; /* of events whose own PMU is gone: does nothing */
	struct cpu *cpus;
	struct link tasks[TASK_BUCKETS];
	struct link events;
	struct link rings;
	struct locked *locked;
	size_t nlocked;
	uint64_t next_id;
	uint64_t tick_ns;
	unsigned pending;		   /* events with pending_disable */
	uint8_t *record;		   /* RECORD_MAX bytes to build a record in */
	const struct quipu_caller *caller; /* of the open in progress, else NULL */
	char reason[512];
};

/* core.c */
uint64_t core_now(const struct quipu_core *, unsigned cpu);
unsigned core_class(const struct quipu_core *, const struct quipu_pmu *);
/* Which PMU takes @e (A6); event_init has then succeeded. */
int core_init_event(struct quipu_event *e);
/* Tell the owner when the next tick of @cpu is due, if that changed. */
void core_tell(struct quipu_core *, unsigned cpu);
bool core_kernel_allowed(const struct quipu_core *, const struct quipu_caller *);
void core_wake(struct quipu_event *, unsigned bits);

/* attr.c: A4 steps 2-11 and 14-17 of those that need no event. */
int attr_copy(struct quipu_core *, const void *attr, size_t len, uint32_t *size_back,
	      struct quipu_attr *out);
int attr_check(struct quipu_core *, const struct quipu_caller *, struct quipu_attr *);
int attr_permission(struct quipu_core *, const struct quipu_caller *, const struct quipu_attr *);
static inline bool attr_sampling(const struct quipu_attr *a)
{
	return a->sample_period != 0;
}

/* open.c */
struct quipu_event *event_alloc(struct quipu_core *, const struct quipu_attr *, int cpu,
				struct quipu_task *, struct quipu_event *leader,
				struct quipu_event *parent, int *err);
void event_free(struct quipu_event *);

/* context.c */
void context_init(struct context *, struct quipu_core *, struct quipu_task *, int cpu);
void context_free(struct context *);
uint64_t context_now(const struct context *);
struct sub *context_sub(struct context *, unsigned class); /* NULL: out of memory */
void context_add(struct context *, struct quipu_event *);
/* Off the PMU and out of the context; @group: out of its group as well, siblings become leaders. */
void context_remove(struct quipu_event *, bool group);
void context_detach_group(struct quipu_event *);
void context_move_group(struct quipu_event *leader, unsigned class);
void context_migrate(struct quipu_event *leader, struct context *to);
/* Try again after @e became ready to run. */
void context_resched(struct quipu_event *e);
void context_task_in(struct quipu_task *, unsigned cpu);
void context_task_out(struct quipu_task *);
void context_rotate(struct quipu_core *, unsigned cpu, unsigned class);
void event_set_state(struct quipu_event *, enum event_state);
void event_update_time(struct quipu_event *);
void event_enable(struct quipu_event *);
void event_disable(struct quipu_event *);
bool event_on_cpu(const struct quipu_event *, int cpu);
/* Disables that an overflow asked for while its driver was at work. */
void core_work(struct quipu_core *);
static inline bool is_software(const struct quipu_event *e)
{
	return e->pmu->context == QUIPU_CONTEXT_SOFTWARE;
}

/* unregister.c */
void gone_init(struct quipu_pmu *);

/* read.c */
size_t read_size(uint64_t read_format, unsigned nr_siblings);
/* PERF_SAMPLE_READ and READ records: values of @e at this moment, without live clones. Bytes. */
size_t read_for_record(struct quipu_event *e, uint64_t *out);
void event_fold(struct quipu_event *e); /* update count and times */

/* ring.c */
int ring_output(struct quipu_event *e, const void *record, size_t len, bool sample);
void ring_attach(struct quipu_event *e, struct quipu_ring *);
void ring_update_page(struct quipu_event *e);
void ring_free(struct quipu_ring *);
void event_wakeup(struct quipu_event *e);

/* sample.c */
size_t sample_trailer_size(const struct quipu_event *e);
/* Append the sample_id trailer for @e on @cpu; bytes written. */
size_t sample_trailer(struct quipu_event *e, unsigned cpu, uint8_t *out);
void sample_throttle(struct quipu_event *e, bool on);
uint64_t primary_id(const struct quipu_event *e);

/* mapping.c: what a process has mapped to execute. mappings_get - the @i-th; false: there is none.
 */
void mappings_keep(struct quipu_task *, const struct quipu_mapping *);
void mappings_drop(struct quipu_task *);
void mappings_inherit(struct quipu_task *child, struct quipu_task *parent);
bool mappings_get(const struct quipu_task *, size_t i, struct quipu_mapping *);

/* task.c */
void task_put(struct quipu_task *);
void event_exit(struct quipu_event *);
void task_free_all(struct quipu_core *);
void task_switch_record(struct quipu_task *, unsigned cpu, bool out, bool preempt);

/* software.c */
void software_init(struct quipu_pmu *);
void software_occurred(struct quipu_core *, unsigned cpu, uint64_t config, uint64_t nr,
		       const struct quipu_sample *);
void software_expire(struct quipu_event *, const struct quipu_sample *);

#endif
