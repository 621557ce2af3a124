/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's side of an engine session: answers the bells of the vCPUs, drains their interrupt
 * rings in order, and turns both into calls of the system. Contract: src/engine/segment.h;
 * doc/architecture.md "Where an overflow is handled"; engine sheet 6.4, 10, 11.2. Starting the
 * program is launch.c, the signals are view.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

/* ---- waiting: one futex word for bells and for the end of processes ---- */

static void futex_wake_all(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void ring_machine(struct seg_header *head)
{
	__atomic_add_fetch(&head->machine_wake, 1, __ATOMIC_SEQ_CST);
	futex_wake_all(&head->machine_wake);
}

/* A thread without state: passes the end of a process on to the futex that the machine sleeps on.
 */
static void *watch_processes(void *arg)
{
	struct session *s = arg;
	struct epoll_event ev;

	for (;;) {
		int n = epoll_wait(s->watch_fd, &ev, 1, -1);

		if (n < 0 && errno != EINTR)
			return NULL;
		if (n == 1 && ev.data.fd == s->stop_fd[0])
			return NULL;
		if (n == 1)
			ring_machine(s->head);
	}
}

static int watch_start(struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN};
	sigset_t all, old;
	int err;

	s->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->watch_fd < 0 || pipe2(s->stop_fd, O_CLOEXEC))
		return -errno;
	ev.data.fd = s->stop_fd[0];
	if (epoll_ctl(s->watch_fd, EPOLL_CTL_ADD, s->stop_fd[0], &ev))
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&s->watcher, NULL, watch_processes, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	s->watching = true;
	return 0;
}

int session_watch(struct session *s, pid_t pid)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};
	int fd = pidfd_open(pid, 0);

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	ev.data.fd = fd;
	if (epoll_ctl(s->watch_fd, EPOLL_CTL_ADD, fd, &ev)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* ---- deadlines: from the hardware floor to the vCPU ---- */

struct seg_vcpu *session_vcpu(const struct proc *p, unsigned v)
{
	return (struct seg_vcpu *)(p->base + SEG_OFF_VCPUS) + v;
}

static struct seg_deadline *deadline_of(const struct proc *p, unsigned v, unsigned slot)
{
	return (struct seg_deadline *)(p->base + SEG_OFF_DEADLINES +
				       ((uint64_t)v * QUIPU_SLOTS + slot) * 128);
}

static struct seg_ring *ring_of(const struct proc *p, unsigned v)
{
	return (struct seg_ring *)(p->base + SEG_OFF_RINGS) + v;
}

/* Threads that take turns on a CPU leave every overflow to the machine, which knows whose turn it
 * is. */
static bool serves_alone(const struct session *s, const struct cpu_state *c)
{
	return s->head->local && c->threads <= 1;
}

/* May the engine process serve this overflow by itself? Only if nothing but arithmetic follows from
 * it. */
static struct quipu_event *local_event(const struct session *s, unsigned cpu, unsigned slot)
{
	const struct want *w = &s->cpus[cpu].want[slot];
	struct quipu_event *e;

	if (!serves_alone(s, &s->cpus[cpu]) || w->d.overflow == QUIPU_OVERFLOW_BELL ||
	    (w->d.flags & QUIPU_DEADLINE_TIMER))
		return NULL;
	e = quipu_core_slot_event(s->core, cpu, slot);
	return e && !quipu_event_needs_bell(e) ? e : NULL;
}

static void write_deadline(struct session *s, struct cpu_state *c, struct proc *p, unsigned v,
			   unsigned slot)
{
	struct seg_deadline *d = deadline_of(p, v, slot);
	struct want *w = &c->want[slot];
	struct quipu_event *e;

	w->have_armed = w->armed;
	w->have_at = w->d.at;
	if (!w->armed) {
		d->armed = 0;
		return;
	}
	e = w->d.overflow == QUIPU_OVERFLOW_STEADY ? NULL
						   : local_event(s, (unsigned)(c - s->cpus), slot);
	d->at = w->d.at - c->gone[w->index];
	d->index = w->index;
	d->overflow = (uint8_t)(e ? w->d.overflow : QUIPU_OVERFLOW_BELL);
	d->sampling = 1;
	if (e)
		d->reload = quipu_event_hw(e)->reload;
	if (serves_alone(s, c) && w->d.overflow == QUIPU_OVERFLOW_STEADY) {
		d->overflow = QUIPU_OVERFLOW_STEADY;
		d->reload = (struct quipu_reload){.sample_period = w->d.step,
						  .sample_freq = w->d.per,
						  .freq_count = w->d.turn};
	}
	d->armed = 1;
}

/* What turns the vCPU's cycles into its CPU's clock: threads that were there before, and idle time
 * jumped over. */
static void write_clock(struct session *s, const struct cpu_state *c, struct seg_vcpu *vcpu)
{
	uint64_t gone = c->gone[SEG_LANE_CYCLES], cycles = gone + c->view[SEG_LANE_CYCLES];

	vcpu->clock_cycles = gone;
	vcpu->clock_ns = quipu_system_now(s->system, (unsigned)(c - s->cpus)) -
			 bits_muldiv(cycles, 1000000000, s->machine->hz);
}

/* The vCPU waits (or has not run yet): give it the deadlines of its CPU, and its clock. */
static void flush_deadlines(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	for (uint64_t m = c->used; m; m &= m - 1)
		write_deadline(s, c, p, v, bits_low(m));
	write_clock(s, c, session_vcpu(p, v));
	__atomic_store_n(&session_vcpu(p, v)->deadlines_changed, 1, __ATOMIC_RELEASE);
}

static bool deadlines_differ(const struct cpu_state *c)
{
	for (uint64_t m = c->used; m; m &= m - 1) {
		const struct want *w = &c->want[bits_low(m)];

		if (w->armed != w->have_armed || (w->armed && w->d.at != w->have_at))
			return true;
	}
	return false;
}

/*
 * A record of a vCPU that runs on was served. What the driver left behind must be what the engine
 * process already did; anything else (a control call came in between) is put right at the vCPU's
 * next fold.
 */
static void check_deadlines(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	if (!deadlines_differ(c))
		return;
	__atomic_store_n(&session_vcpu(p, v)->request, 1, __ATOMIC_RELEASE);
	s->facts.local_mismatches++;
}

/* ---- the interrupt ring ---- */

/* The longest record: an interrupt with a full call chain, branch stack, scalars and every slot. */
#define RECORD_MAX 8192

static struct quipu_task *task_of(const struct proc *p, unsigned v)
{
	return p->tasks[v];
}

static void serve_interrupt(struct session *s, struct proc *p, unsigned v,
			    const struct seg_interrupt *r)
{
	struct cpu_state *c = p->cpu[v];
	uint64_t local = r->slots & ~r->bell;
	const uint64_t *next = r->words, *chain = next + r->nr_next;
	const uint64_t *scalars = chain + r->nr_chain;
	const uint64_t *branches = scalars + (r->has_scalars ? SEG_SCALARS : 0);
	struct quipu_interrupt intr = {
		.slots = r->slots,
		.pc = r->pc,
		.addr = r->addr,
		.pid = p->seg->pid,
		.tid = session_vcpu(p, v)->tid,
		.chain = r->nr_chain ? chain : NULL,
		.nr_chain = r->nr_chain,
		.branches = r->nr_branches ? branches : NULL,
		.nr_branches = r->nr_branches,
	};
	unsigned i = 0;

	if (!c)
		return;
	intr.cpu = (unsigned)(c - s->cpus);
	session_view_record(s, c, r->head.lane, r->has_scalars ? scalars : NULL);
	for (uint64_t m = local; m && i < r->nr_next; m &= m - 1, i++) {
		struct want *w = &c->want[bits_low(m)];

		w->have_at = next[i] + c->gone[w->index];
	}
	if (s->signals.interrupt)
		s->signals.interrupt(s->signals.arg, &intr);
	if (!r->bell)
		check_deadlines(s, c, p, v);
}

static void serve_mmap(struct session *s, struct proc *p, unsigned v, const struct seg_mmap *r)
{
	struct cpu_state *c = p->cpu[v];
	struct quipu_mapping m = {
		.addr = r->addr,
		.len = r->len,
		.pgoff = r->pgoff,
		.maj = r->maj,
		.min = r->min,
		.ino = r->ino,
		.prot = r->prot,
		.flags = r->flags,
		.name = r->path,
	};

	if (c && task_of(p, v)) {
		session_view_record(s, c, r->head.lane, NULL);
		quipu_task_mmap(task_of(p, v), &m, (unsigned)(c - s->cpus));
	}
}

static void serve_comm(struct session *s, struct proc *p, unsigned v, const struct seg_comm *r)
{
	struct cpu_state *c = p->cpu[v];

	/* The name that comes before the first instruction is the exec's own (serve_start). */
	if (!c || !task_of(p, v) || !p->started)
		return;
	session_view_record(s, c, r->head.lane, NULL);
	quipu_task_comm(task_of(p, v), r->comm, (unsigned)(c - s->cpus));
}

/* Is the record whole? The guest can write anywhere in its process, so this looks at a copy. */
static bool record_valid(const struct seg_record *r)
{
	switch (r->type) {
	case SEG_REC_INTERRUPT: {
		const struct seg_interrupt *i = (const struct seg_interrupt *)r;
		uint64_t words;

		if (r->size < sizeof(*i) || i->nr_chain > RECORD_MAX / 8 ||
		    i->nr_branches > RECORD_MAX / 8 || i->nr_next > QUIPU_SLOTS)
			return false;
		words = (uint64_t)i->nr_next + i->nr_chain + (i->has_scalars ? SEG_SCALARS : 0) +
			3 * (uint64_t)i->nr_branches;
		return sizeof(*i) + 8 * words <= r->size;
	}
	case SEG_REC_MMAP:
		return r->size > sizeof(struct seg_mmap) &&
		       memchr(((const struct seg_mmap *)r)->path, 0,
			      r->size - sizeof(struct seg_mmap));
	case SEG_REC_COMM:
		return r->size >= sizeof(struct seg_comm) &&
		       !((const struct seg_comm *)r)->comm[15];
	}
	return false;
}

static void serve_record(struct session *s, struct proc *p, unsigned v, const struct seg_record *r)
{
	switch (r->type) {
	case SEG_REC_INTERRUPT: serve_interrupt(s, p, v, (const struct seg_interrupt *)r); break;
	case SEG_REC_MMAP: serve_mmap(s, p, v, (const struct seg_mmap *)r); break;
	case SEG_REC_COMM: serve_comm(s, p, v, (const struct seg_comm *)r); break;
	}
}

/* One record at @at; returns its size, 0 when the ring was scribbled over. */
static uint64_t drain_one(struct session *s, struct proc *p, unsigned v, const uint8_t *at,
			  uint64_t left)
{
	union {
		struct seg_record record;
		uint8_t bytes[RECORD_MAX];
	} copy;
	uint64_t size;

	if (left < 8)
		return 0;
	size = ((const struct seg_record *)at)->size;
	if (size < 8 || size % 8 || size > left)
		return 0;
	if (((const struct seg_record *)at)->type == SEG_REC_PAD)
		return size;
	if (size < sizeof(copy.record) || size > RECORD_MAX)
		return 0;
	memcpy(&copy, at, size);
	copy.record.size = (uint32_t)size;
	if (!record_valid(&copy.record))
		return 0;
	serve_record(s, p, v, &copy.record);
	return size;
}

/* The machine is about to hear of thread @v: it is the one on its CPU now. */
static void step_on(struct session *s, struct proc *p, unsigned v)
{
	struct cpu_state *c = p->cpu[v];
	unsigned cpu;

	if (!c || (c->on == p && c->on_vcpu == v))
		return;
	cpu = (unsigned)(c - s->cpus);
	if (c->on) {
		memcpy(c->on->seen[c->on_vcpu], c->view, sizeof(c->view));
		quipu_system_stop(s->system, cpu, true);
	}
	session_view_switch(c, p->seen[v]);
	c->on = p;
	c->on_vcpu = v;
	quipu_system_run(s->system, cpu, p->tasks[v], 0);
}

static void drain(struct session *s, struct proc *p, unsigned v)
{
	struct seg_ring *ring = ring_of(p, v);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = p->tail[v];

	if (tail != head)
		step_on(s, p, v);
	while (tail != head) {
		uint64_t at = tail % SEG_RING_BYTES, left = head - tail, size = 0;

		if (left > SEG_RING_BYTES - at)
			left = SEG_RING_BYTES - at;
		if (head - tail <= SEG_RING_BYTES)
			size = drain_one(s, p, v, ring->data + at, left);
		if (!size) {
			s->facts.records_lost++;
			tail = head;
			break;
		}
		tail += size;
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	p->tail[v] = tail;
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	s->facts.records_lost += ring->lost - p->lost_seen[v];
	p->lost_seen[v] = ring->lost;
}

/* ---- bells ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void copy_comm(char comm[16], const char *path)
{
	snprintf(comm, 16, "%.15s", base_name(path));
}

/*
 * A CPU for a new thread: an idle one, else the one with the fewest threads. Threads that share a
 * CPU run side by side on the host; the machine puts what they did in a row, in the order in which
 * it hears of it (step_on). Counts are whole; times and switches then depend on the host.
 */
static int choose_cpu(struct session *s)
{
	int cpu = quipu_system_place(s->system);

	for (unsigned c = 0; cpu < 0 && c < s->machine->ncpus; c++)
		if (s->cpus[c].threads)
			cpu = (int)c;
	if (cpu < 0)
		return -1;
	for (unsigned c = 0; s->cpus[cpu].threads && c < s->machine->ncpus; c++)
		if (s->cpus[c].threads && s->cpus[c].threads < s->cpus[cpu].threads)
			cpu = (int)c;
	s->cpus[cpu].threads++;
	return cpu;
}

/* Others of this CPU were told to serve overflows by themselves, by a clock that was theirs. */
static void ask_sharers(struct session *s, const struct cpu_state *c)
{
	for (unsigned i = 0; i < SEG_PROCS; i++)
		for (unsigned v = 0; s->procs[i].base && v < SEG_VCPUS; v++)
			if (s->procs[i].cpu[v] == c)
				__atomic_store_n(&session_vcpu(&s->procs[i], v)->request, 1,
						 __ATOMIC_RELEASE);
}

/* Put @task on @cpu; without a task it runs uncounted, and the user is told. */
static void board(struct session *s, struct proc *p, unsigned v, struct quipu_task *task, int cpu,
		  uint64_t not_before)
{
	struct cpu_state *c = cpu < 0 ? NULL : &s->cpus[cpu];

	p->tasks[v] = task;
	if (!c || !task) {
		s->facts.uncounted_threads++;
		return;
	}
	if (c->threads > 1)
		ask_sharers(s, c);
	if (!c->on)
		quipu_system_wake(s->system, (unsigned)cpu, not_before);
	memset(p->seen[v], 0, sizeof(p->seen[v]));
	p->cpu[v] = c;
	session_vcpu(p, v)->cpu = (uint32_t)cpu;
	step_on(s, p, v);
}

static void bury(struct session *s, struct proc *p);
static void release_slot(struct session *s, unsigned slot);

/* @q became @p by an exec: its first thread goes on, on the CPU it has, and all others are gone. */
static bool take_over(struct session *s, struct proc *q, struct proc *p, unsigned v)
{
	unsigned n = q->seg->nvcpus < SEG_VCPUS ? q->seg->nvcpus : SEG_VCPUS;
	bool taken = false;

	for (unsigned u = n; u-- > 0;) {
		struct cpu_state *c = q->cpu[u];

		if (!q->tasks[u] || quipu_task_tid(q->tasks[u]) != (pid_t)p->seg->pid)
			continue;
		step_on(s, q, u);
		drain(s, q, u);
		p->tasks[v] = q->tasks[u];
		p->cpu[v] = c;
		if (c) {
			session_view_vcpu(s, c, session_vcpu(q, u));
			session_view_gone(s, c);
			c->on = p;
			c->on_vcpu = v;
			session_vcpu(p, v)->cpu = (uint32_t)(c - s->cpus);
		}
		s->facts.bells_lost += session_vcpu(q, u)->lost;
		q->tasks[u] = NULL;
		q->cpu[u] = NULL;
		taken = true;
	}
	return taken;
}

/* A process whose pid is known begins: it is an exec. */
static bool serve_exec(struct session *s, struct proc *p, unsigned v, const char *comm)
{
	bool taken = false;

	for (unsigned i = 0; i < SEG_PROCS; i++) {
		struct proc *q = &s->procs[i];

		if (q == p || !q->base || q->dead || q->seg->pid != p->seg->pid)
			continue;
		taken |= take_over(s, q, p, v);
		bury(s, q);
		release_slot(s, i);
	}
	if (taken && p->cpu[v])
		quipu_task_exec(p->tasks[v], comm, (unsigned)(p->cpu[v] - s->cpus));
	return taken;
}

/* What the engine process says that it runs; the segment is the guest's to scribble on. */
static unsigned isa_bit(const struct seg_proc *proc)
{
	char name[sizeof(proc->isa)];
	int isa;

	memcpy(name, proc->isa, sizeof(name));
	name[sizeof(name) - 1] = 0;
	isa = quipu_isa_find(name);
	return isa < 0 ? 0 : 1u << isa;
}

static void serve_start(struct session *s, struct proc *p, unsigned v)
{
	char path[SEG_PATH], comm[16];
	struct quipu_task *task;

	memcpy(path, p->seg->path, sizeof(path));
	path[SEG_PATH - 1] = 0;
	copy_comm(comm, path);
	s->facts.isas |= isa_bit(p->seg);
	if (serve_exec(s, p, v, comm)) {
		drain(s, p, v);
		p->started = true;
		return;
	}
	if (s->hooks.task)
		task = s->hooks.task(s->hooks.arg, (pid_t)p->seg->pid, comm);
	else if ((pid_t)p->seg->pid == s->child)
		task = s->task;
	else
		task = quipu_task_new(s->core, NULL, (pid_t)p->seg->pid, (pid_t)p->seg->pid, false,
				      comm, 0);
	s->facts.threads++;
	board(s, p, v, task, choose_cpu(s), quipu_system_time(s->system));
	if (p->cpu[v])
		quipu_task_exec(task, comm, (unsigned)(p->cpu[v] - s->cpus));
	drain(s, p, v); /* the mappings of the new image, at time 0 of it */
	p->started = true;
}

/* Thread @v is about to fork: where and when the child begins is settled while it waits. */
static void note_fork(struct session *s, struct proc *p, unsigned v)
{
	struct fork_note *f = &p->forks[v];

	if (f->n == FORKS_PENDING)
		return;
	f->born[f->n] =
		p->cpu[v] ? quipu_system_now(s->system, (unsigned)(p->cpu[v] - s->cpus)) : 0;
	f->cpu[f->n++] = choose_cpu(s);
}

/* The oldest fork of @v whose child was not seen yet. False: none was noted. */
static bool take_fork(struct proc *p, unsigned v, int *cpu, uint64_t *born)
{
	struct fork_note *f = &p->forks[v];

	if (!f->n)
		return false;
	*cpu = f->cpu[0];
	*born = f->born[0];
	f->n--;
	memmove(f->cpu, f->cpu + 1, f->n * sizeof(f->cpu[0]));
	memmove(f->born, f->born + 1, f->n * sizeof(f->born[0]));
	return true;
}

static void serve_clone(struct session *s, struct proc *p, unsigned v, uint64_t child)
{
	if (child == SEG_VCPUS)
		note_fork(s, p, v);
	if (child >= SEG_VCPUS)
		return;
	p->placed[child] = choose_cpu(s);
	p->born[child] =
		p->cpu[v] ? quipu_system_now(s->system, (unsigned)(p->cpu[v] - s->cpus)) : 0;
	p->parent[child] = p->tasks[v];
}

static void serve_thread(struct session *s, struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	int cpu = p->placed[v];
	struct quipu_task *parent = p->parent[v], *task;

	s->facts.threads++;
	if (cpu >= 0 && !s->cpus[cpu].on)
		quipu_system_wake(s->system, (unsigned)cpu,
				  p->born[v]); /* before FORK is stamped */
	task = quipu_task_new(s->core, parent, (pid_t)p->seg->pid, (pid_t)vcpu->tid, true, NULL,
			      cpu >= 0 ? (unsigned)cpu : 0);
	if (cpu >= 0 && s->task_new)
		s->task_new(s->task_arg, task);
	board(s, p, v, task, cpu, p->born[v]);
}

static void serve_fork(struct session *s, struct proc *p, unsigned v, uint64_t from)
{
	struct proc *parent = from < SEG_PROCS && s->procs[from].base ? &s->procs[from] : NULL;
	struct quipu_task *of, *task;
	uint64_t born = 0;
	int cpu = -1;

	if (parent && parent->seg->pid != p->seg->parent_pid)
		parent = NULL; /* the slot is another's by now */
	of = parent ? parent->tasks[v] : NULL;
	if (!parent || !take_fork(parent, v, &cpu, &born))
		cpu = choose_cpu(s);

	s->facts.threads++;
	if (cpu >= 0 && !s->cpus[cpu].on)
		quipu_system_wake(s->system, (unsigned)cpu, born);
	task = quipu_task_new(s->core, of, (pid_t)p->seg->pid, (pid_t)p->seg->pid, false, NULL,
			      cpu >= 0 ? (unsigned)cpu : 0);
	if (cpu >= 0 && s->task_new)
		s->task_new(s->task_arg, task);
	board(s, p, v, task, cpu, born);
	p->started = true;
}

/* The thread's final counts stay with the CPU that it leaves. */
static void leave(struct session *s, struct proc *p, unsigned v)
{
	struct cpu_state *c = p->cpu[v];

	step_on(s, p, v);
	if (c) {
		unsigned cpu = (unsigned)(c - s->cpus);

		/* An exit is no context switch: the task goes while it is on its CPU. */
		if (p->tasks[v])
			quipu_task_exit(p->tasks[v], cpu);
		quipu_system_stop(s->system, cpu, false);
		session_view_gone(s, c);
		c->on = NULL;
		if (!--c->threads)
			quipu_system_leave(s->system, cpu);
	} else if (p->tasks[v]) {
		quipu_task_exit(p->tasks[v], 0);
	}
	if (p->tasks[v] == s->task)
		s->task = NULL;
	p->tasks[v] = NULL;
	p->cpu[v] = NULL;
}

/*
 * Its parent is told of its end by the host, and looks at once: what it has left is served now, and
 * its task ends with its last thread.
 */
static void serve_leaving(struct session *s, struct proc *p, unsigned v)
{
	unsigned others = 0;

	for (unsigned u = 0; u < SEG_VCPUS && u < p->seg->nvcpus; u++)
		if (u != v && p->tasks[u]) {
			drain(s, p, u);
			others++;
		}
	if (s->house && !others)
		leave(s, p, v);
}

static void serve_reasons(struct session *s, struct proc *p, unsigned v, uint32_t reason,
			  uint64_t arg)
{
	struct cpu_state *c = p->cpu[v];

	if (reason & SEG_BELL_START)
		serve_start(s, p, v);
	if (reason & SEG_BELL_FORK)
		serve_fork(s, p, v, arg);
	if (reason & SEG_BELL_THREAD)
		serve_thread(s, p, v);
	if (reason & SEG_BELL_CLONE)
		serve_clone(s, p, v, arg);
	if ((reason & SEG_BELL_SLEPT) && c)
		quipu_system_idle(s->system, (unsigned)(c - s->cpus), arg);
	if (reason & SEG_BELL_FOREIGN)
		s->facts.foreign_execs++;
	if (reason & SEG_BELL_LEAVING)
		serve_leaving(s, p, v);
	if (reason & SEG_BELL_EXIT)
		leave(s, p, v);
}

/* The values a bell shows: before a first instruction there are none; at a deadline the record's
 * stand. */
#define REASONS_WITHOUT_VIEW                                                                       \
	(SEG_BELL_START | SEG_BELL_THREAD | SEG_BELL_FORK | SEG_BELL_DEADLINE | SEG_BELL_RING)

static void serve_bell(struct session *s, struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint32_t bell = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE), reason = vcpu->reason;

	if (bell == vcpu->ack)
		return;
	step_on(s, p, v);
	if (!(reason & SEG_BELL_START))
		drain(s, p, v);
	if (p->cpu[v] && !(reason & REASONS_WITHOUT_VIEW))
		session_view_vcpu(s, p->cpu[v], vcpu);
	serve_reasons(s, p, v, reason, vcpu->arg);
	if (p->cpu[v])
		flush_deadlines(s, p->cpu[v], p, v);
	__atomic_store_n(&vcpu->ack, bell, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&vcpu->sleeping, __ATOMIC_SEQ_CST))
		futex_wake_all(&vcpu->ack);
}

static struct proc *open_proc(struct session *s, unsigned slot)
{
	struct proc *p = &s->procs[slot];
	void *base;

	if (p->base)
		return p;
	base = mmap(NULL, SEG_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd,
		    (off_t)(SEG_HEADER_BYTES + slot * SEG_SLOT_BYTES));
	if (base == MAP_FAILED)
		return NULL;
	p->base = base;
	p->seg = base;
	p->pidfd = -1;
	p->opened = ++s->order;
	for (unsigned v = 0; v < SEG_VCPUS; v++)
		p->placed[v] = -1;
	s->facts.processes++;
	return p;
}

static void serve_proc(struct session *s, struct proc *p)
{
	unsigned n = __atomic_load_n(&p->seg->nvcpus, __ATOMIC_ACQUIRE);

	if (n > SEG_VCPUS)
		n = SEG_VCPUS;
	if (p->pidfd < 0 && p->seg->pid && !p->dead)
		p->pidfd = session_watch(s, (pid_t)p->seg->pid);
	for (unsigned v = 0; v < n; v++) {
		struct seg_vcpu *vcpu = session_vcpu(p, v);

		if (__atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) != vcpu->ack)
			serve_bell(s, p, v);
		else if (p->tasks[v])
			drain(s, p, v);
	}
}

/* ---- ends ---- */

/* A process is gone: what it left in its rings and counters is all there will be. */
static void bury(struct session *s, struct proc *p)
{
	unsigned n = p->seg->nvcpus < SEG_VCPUS ? p->seg->nvcpus : SEG_VCPUS;

	for (unsigned v = n; v-- > 0;) {
		struct seg_vcpu *vcpu = session_vcpu(p, v);

		if (!p->tasks[v])
			continue;
		step_on(s, p, v);
		drain(s, p, v);
		if (p->cpu[v])
			session_view_vcpu(s, p->cpu[v], vcpu);
		leave(s, p, v);
		s->facts.bells_lost += vcpu->lost;
	}
	s->facts.own_calls |= p->seg->own_calls[0];
	s->facts.uncounted_threads += p->seg->uncounted;
	p->dead = true;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
	if (s->hooks.ended)
		s->hooks.ended(s->hooks.arg, (pid_t)p->seg->pid);
}

static bool gone(const struct proc *p)
{
	struct pollfd pfd = {.fd = p->pidfd, .events = POLLIN};

	if (p->pidfd == -ESRCH) /* it ended before anyone looked */
		return true;
	return p->pidfd >= 0 && poll(&pfd, 1, 0) == 1;
}

/* The slot of a buried process, all zero again, for the next one. */
static void release_slot(struct session *s, unsigned slot)
{
	struct proc *p = &s->procs[slot];

	if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(SEG_HEADER_BYTES + slot * SEG_SLOT_BYTES), (off_t)SEG_SLOT_BYTES))
		return; /* it stays taken */
	munmap(p->base, SEG_SLOT_BYTES);
	memset(p, 0, sizeof(*p));
	s->served &= ~bits_one(slot);
	__atomic_and_fetch(&s->head->claimed, ~bits_one(slot), __ATOMIC_SEQ_CST);
}

static void reap_procs(struct session *s)
{
	for (unsigned i = 0; i < SEG_PROCS; i++) {
		struct proc *p = &s->procs[i];

		if (p->base && !p->dead && (pid_t)p->seg->pid != s->child && gone(p)) {
			bury(s, p);
			release_slot(s, i);
		}
	}
}

/* The program itself ended: everything else that it started runs on by itself, uncounted from here.
 */
static void finish(struct session *s)
{
	__atomic_store_n(&s->head->closing, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < SEG_PROCS; i++)
		if (s->procs[i].base && !s->procs[i].dead)
			bury(s, &s->procs[i]);
	if (s->task) /* it never reached the plugin */
		quipu_task_exit(s->task, 0);
	s->task = NULL;
	clock_gettime(CLOCK_MONOTONIC, &s->ended);
	s->over = true;
}

static bool child_gone(struct session *s)
{
	struct rusage usage;
	pid_t got = wait4(s->child, &s->status, WNOHANG, &usage);

	if (got != s->child)
		return false;
	s->usage = usage;
	return true;
}

static uint64_t serve_all(struct session *s)
{
	uint64_t pending = __atomic_exchange_n(&s->head->pending, 0, __ATOMIC_SEQ_CST), claimed;

	claimed = __atomic_load_n(&s->head->claimed, __ATOMIC_ACQUIRE);
	/* In the open house a process may end before it ever rang: every one that came is looked
	 * at. */
	for (uint64_t m = s->house ? claimed : (pending | s->served) & claimed; m; m &= m - 1) {
		struct proc *p = open_proc(s, bits_low(m));

		s->served |= bits_one(bits_low(m));
		if (p && !p->dead)
			serve_proc(s, p);
	}
	return pending;
}

static void machine_wait(struct session *s, uint32_t seen, int timeout_ms)
{
	struct timespec ts = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};

	__atomic_store_n(&s->head->machine_asleep, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&s->head->pending, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &s->head->machine_wake, FUTEX_WAIT, seen,
			timeout_ms < 0 ? NULL : &ts, NULL, 0);
	__atomic_store_n(&s->head->machine_asleep, 0, __ATOMIC_SEQ_CST);
}

int session_step(struct session *s, int timeout_ms)
{
	uint32_t seen;

	if (s->over)
		return 1;
	seen = __atomic_load_n(&s->head->machine_wake, __ATOMIC_SEQ_CST);
	if (serve_all(s))
		return 0;
	if (child_gone(s)) {
		serve_all(s);
		finish(s);
		return 1;
	}
	reap_procs(s);
	machine_wait(s, seen, timeout_ms);
	return 0;
}

/* ---- the open house ---- */

/*
 * A thread without state: passes a ring of the bell on to the descriptor that the event loop waits
 * on. The vCPUs wake it with every bell (machine_asleep stays set), for it cannot know when the
 * loop goes to sleep.
 */
static void *pass_bell_on(void *arg)
{
	struct session *s = arg;
	uint32_t seen = 0;

	while (!__atomic_load_n(&s->head->closing, __ATOMIC_SEQ_CST)) {
		uint32_t now = __atomic_load_n(&s->head->machine_wake, __ATOMIC_SEQ_CST);

		if (now == seen) {
			syscall(SYS_futex, &s->head->machine_wake, FUTEX_WAIT, seen, NULL, NULL, 0);
			continue;
		}
		seen = now;
		eventfd_write(s->bell_fd, 1);
	}
	return NULL;
}

/* Lanes for what nearly every late attach asks for: the costs of a lane are the same whether it is
 * used or not. */
static const quipu_signal house_signals[] = {
	QUIPU_SIGNAL_LOADS, QUIPU_SIGNAL_STORES,   QUIPU_SIGNAL_BRANCHES,
	QUIPU_SIGNAL_CALLS, QUIPU_SIGNAL_SYSCALLS,
};

int session_open_house(struct session *s, const struct session_hooks *hooks)
{
	sigset_t all, old;
	int err;

	s->house = true;
	s->head->house = 1;
	s->head->quantum = 4096; /* clients may want something of a running thread soon */
	s->hooks = *hooks;
	snprintf(s->head->plugin, SEG_PATH, "%s", s->options.plugin);
	for (size_t i = 0; i < sizeof(house_signals) / sizeof(house_signals[0]); i++)
		session_require(s, house_signals[i]);
	s->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell_fd < 0)
		return -errno;
	s->head->machine_asleep = 1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&s->bell, NULL, pass_bell_on, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	s->bell_running = !err;
	return err ? -err : s->bell_fd;
}

static void close_house(struct session *s)
{
	__atomic_store_n(&s->head->closing, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < SEG_PROCS; i++) {
		struct proc *p = &s->procs[i];

		/* Those that wait for an answer go on by themselves. */
		for (unsigned v = 0; p->base && !p->dead && v < SEG_VCPUS; v++)
			if (session_vcpu(p, v)->sleeping)
				futex_wake_all(&session_vcpu(p, v)->ack);
	}
	if (!s->bell_running)
		return;
	ring_machine(s->head);
	pthread_join(s->bell, NULL);
	s->bell_running = false;
}

/* Slots of the dead are kept as long as there are others: a child that forks off late still looks
 * into its parent's. */
#define FREE_SLOTS_KEPT 24

static void release_slots(struct session *s)
{
	uint64_t claimed = __atomic_load_n(&s->head->claimed, __ATOMIC_ACQUIRE);

	if (SEG_PROCS - bits_count(claimed) >= FREE_SLOTS_KEPT)
		return;
	for (unsigned i = 0; i < SEG_PROCS; i++) {
		struct proc *p = &s->procs[i];

		if (!p->base || !p->dead)
			continue;
		munmap(p->base, SEG_SLOT_BYTES);
		memset(p, 0, sizeof(*p));
		fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)(SEG_HEADER_BYTES + i * SEG_SLOT_BYTES), (off_t)SEG_SLOT_BYTES);
		s->served &= ~bits_one(i);
		__atomic_fetch_and(&s->head->claimed, ~bits_one(i), __ATOMIC_SEQ_CST);
	}
}

bool session_serve(struct session *s)
{
	uint64_t count;
	unsigned before = session_guests(s);
	bool rang;

	eventfd_read(s->bell_fd, &count);
	rang = serve_all(s) != 0;
	reap_procs(s);
	release_slots(s);
	return rang || before != session_guests(s);
}

unsigned session_guests(const struct session *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SEG_PROCS; i++)
		n += s->procs[i].base && !s->procs[i].dead && s->procs[i].started;
	return n;
}

bool session_has(const struct session *s, pid_t pid)
{
	for (unsigned i = 0; i < SEG_PROCS; i++)
		if (s->procs[i].base && !s->procs[i].dead && (pid_t)s->procs[i].seg->pid == pid)
			return true;
	return false;
}

/* Calls @fn for each thread that runs on a modelled CPU. */
static void for_each_running(struct session *s,
			     void (*fn)(struct session *, struct proc *, unsigned v))
{
	for (unsigned i = 0; i < SEG_PROCS; i++) {
		struct proc *p = &s->procs[i];

		for (unsigned v = 0; p->base && !p->dead && v < SEG_VCPUS && v < p->seg->nvcpus;
		     v++)
			if (p->tasks[v] && p->cpu[v])
				fn(s, p, v);
	}
}

static void ask_if_different(struct session *s, struct proc *p, unsigned v)
{
	(void)s;
	if (p->cpu[v]->threads > 1 || deadlines_differ(p->cpu[v]))
		__atomic_store_n(&session_vcpu(p, v)->request, 1, __ATOMIC_RELEASE);
}

void session_sync(struct session *s)
{
	for_each_running(s, ask_if_different);
}

/* A thread that computes folds every few microseconds, unless the host lets it wait. */
#define REFRESH_TRIES 200
#define REFRESH_PAUSE 50000L /* ns */

static void refresh_thread(struct session *s, struct proc *p, unsigned v)
{
	const struct timespec pause = {0, REFRESH_PAUSE};
	struct seg_vcpu *vcpu = session_vcpu(p, v);

	if (vcpu->state == SEG_RUNNING)
		__atomic_store_n(&vcpu->request, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < REFRESH_TRIES; i++) {
		if (__atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) != vcpu->ack) {
			serve_bell(s, p, v);
			return;
		}
		if (__atomic_load_n(&vcpu->state, __ATOMIC_ACQUIRE) != SEG_RUNNING)
			break;
		nanosleep(&pause, NULL);
	}
	if (vcpu->state != SEG_SYSCALL)
		return;
	/* It waits in a system call: what it has published stands. */
	step_on(s, p, v);
	drain(s, p, v);
	session_view_vcpu(s, p->cpu[v], vcpu);
}

void session_refresh(struct session *s)
{
	for_each_running(s, refresh_thread);
}

/* ---- tasks of the host ---- */

#define HOST_LANES 2 /* instructions and cycles */

/* Cycles until the nearest deadline of @c, at most @n; *slots are those that are then reached. */
static uint64_t host_distance(struct cpu_state *c, uint64_t n, uint64_t *slots)
{
	*slots = 0;
	for (uint64_t m = c->used; m; m &= m - 1) {
		const struct want *w = &c->want[bits_low(m)];
		uint64_t value, far;

		if (!w->armed || w->index >= HOST_LANES)
			continue;
		value = c->gone[w->index] + c->view[w->index];
		far = w->d.at > value ? w->d.at - value : 1;
		if (far > n)
			continue;
		if (far < n)
			*slots = 0;
		n = far;
		*slots |= m & -m;
	}
	return n;
}

bool session_host_armed(const struct session *s, unsigned cpu)
{
	const struct cpu_state *c = &s->cpus[cpu];

	for (uint64_t m = c->used; m; m &= m - 1)
		if (c->want[bits_low(m)].armed && c->want[bits_low(m)].index < HOST_LANES)
			return true;
	return false;
}

void session_host_run(struct session *s, unsigned cpu, pid_t pid, pid_t tid, uint64_t ns)
{
	struct cpu_state *c = &s->cpus[cpu];
	uint64_t left = bits_muldiv(ns, s->machine->hz, UINT64_C(1000000000));

	while (left) {
		struct quipu_interrupt intr = {
			.cpu = cpu, .pid = (uint32_t)pid, .tid = (uint32_t)tid};
		uint64_t step = host_distance(c, left, &intr.slots);

		for (unsigned k = 0; k < HOST_LANES; k++)
			c->gone[k] += step;
		left -= step;
		for (uint64_t m = intr.slots; m; m &= m - 1)
			c->want[bits_low(m)].armed = false;
		if (intr.slots && s->signals.interrupt)
			s->signals.interrupt(s->signals.arg, &intr);
	}
}

void session_stop(struct session *s)
{
	if (!s->child || s->over)
		return;
	kill(s->child, SIGTERM);
	for (int i = 0; i < 100 && !s->over; i++)
		session_step(s, 10);
	if (!s->over)
		kill(s->child, SIGKILL);
	while (!s->over)
		session_step(s, 100);
}

int session_status(const struct session *s)
{
	return s->status;
}

void session_host_times(const struct session *s, double *elapsed, double *user, double *sys)
{
	*elapsed = (double)(s->ended.tv_sec - s->began.tv_sec) +
		   (double)(s->ended.tv_nsec - s->began.tv_nsec) / 1e9;
	*user = (double)s->usage.ru_utime.tv_sec + (double)s->usage.ru_utime.tv_usec / 1e6;
	*sys = (double)s->usage.ru_stime.tv_sec + (double)s->usage.ru_stime.tv_usec / 1e6;
}

void session_facts(const struct session *s, struct session_facts *facts)
{
	*facts = s->facts;
	facts->uncounted_threads += __atomic_load_n(&s->head->unslotted, __ATOMIC_RELAXED);
}

/* ---- life ---- */

static int make_segment(struct session *s)
{
	void *head;

	s->fd = memfd_create("quipu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)SEG_BYTES))
		return -errno;
	fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	head = mmap(NULL, SEG_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (head == MAP_FAILED)
		return -errno;
	s->head = head;
	return 0;
}

static void fill_header(struct session *s)
{
	struct seg_header *h = s->head;
	const struct quipu_machine *m = s->machine;

	h->magic = SEG_MAGIC;
	h->version = SEG_VERSION;
	h->machine_pid = (uint32_t)getpid();
	h->size = SEG_BYTES;
	h->features = SEG_COUNT;
	h->ncpus = m->ncpus;
	h->quantum = 32768;
	h->hz = m->hz;
	h->lane_signal[SEG_LANE_INSTRUCTIONS] = QUIPU_SIGNAL_INSTRUCTIONS;
	h->lane_signal[SEG_LANE_CYCLES] = QUIPU_SIGNAL_CYCLES;
	memcpy(h->cost, m->cost, sizeof(h->cost));
	quipu_model_read(m, &h->model, NULL);
	if (m->timing_full)
		h->features |= SEG_BRANCH | SEG_DATA | SEG_FETCH | SEG_PREDICT;
	h->local = s->options.local;
	h->max_stack = s->options.stack ? 127 : 0;
	h->exact = !s->options.live;
	h->spin = sysconf(_SC_NPROCESSORS_ONLN) >= 2 ? 2000 : 0;
	if (s->options.branches)
		h->features |= SEG_BRANCHES | SEG_BRANCH;
	if (s->options.stack)
		h->features |= SEG_STACK;
}

struct session *session_new(const struct quipu_machine *machine,
			    const struct session_options *options, struct session_error *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;

	if (!s)
		goto fail;
	s->machine = machine;
	s->options = *options;
	s->fd = s->watch_fd = s->stop_fd[0] = s->stop_fd[1] = s->go_fd = s->fail_fd =
		s->child_pidfd = s->bell_fd = -1;
	s->cpus = calloc(machine->ncpus, sizeof(*s->cpus));
	s->procs = calloc(SEG_PROCS, sizeof(*s->procs));
	rc = s->cpus && s->procs ? make_segment(s) : -ENOMEM;
	if (!rc)
		rc = watch_start(s);
	if (rc)
		goto fail;
	fill_header(s);
	session_view_init(s);
	return s;
fail:
	snprintf(err->text, sizeof(err->text), "cannot set up the engine's shared memory: %s",
		 strerror(-rc));
	session_free(s);
	return NULL;
}

void session_attach(struct session *s, struct quipu_system *system,
		    void (*task_new)(void *, struct quipu_task *), void *arg)
{
	s->system = system;
	s->core = quipu_system_core(system);
	s->task_new = task_new;
	s->task_arg = arg;
}

struct quipu_task *session_task(struct session *s)
{
	return s->task;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	if (s->go_fd >= 0)
		close(s->go_fd); /* a child that still waits for its go gives up */
	session_stop(s);
	if (s->house)
		close_house(s);
	if (s->bell_fd >= 0)
		close(s->bell_fd);
	if (s->watching) {
		close(s->stop_fd[1]);
		s->stop_fd[1] = -1;
		pthread_join(s->watcher, NULL);
	}
	for (unsigned i = 0; s->procs && i < SEG_PROCS; i++)
		if (s->procs[i].base) {
			if (s->procs[i].pidfd >= 0)
				close(s->procs[i].pidfd);
			munmap(s->procs[i].base, SEG_SLOT_BYTES);
		}
	if (s->head)
		munmap(s->head, SEG_HEADER_BYTES);
	for (int i = 0; i < 2; i++)
		if (s->stop_fd[i] >= 0)
			close(s->stop_fd[i]);
	if (s->child_pidfd >= 0)
		close(s->child_pidfd);
	if (s->fail_fd >= 0)
		close(s->fail_fd);
	if (s->watch_fd >= 0)
		close(s->watch_fd);
	if (s->fd >= 0)
		close(s->fd);
	free(s->qemu);
	free(s->program);
	free(s->sysroot);
	free(s->cpus);
	free(s->procs);
	free(s);
}
