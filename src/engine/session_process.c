/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes and threads of a session: each gets a CPU of the machine and a task of the event core,
 * over fork, clone and exec, until it is gone and what it left is served. Engine sheet 10, 11.2.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

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
 * A CPU for a new thread: an idle one, else the one with the fewest threads. Those that share a CPU
 * take turns (session_turns.c). In the open house they run side by side on the host; the machine
 * puts what they did in a row, in the order in which it hears of it (session_step_on). Counts are
 * whole; times and switches then depend on the host.
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

/* Nobody comes there after all. */
static void leave_cpu(struct session *s, int cpu)
{
	if (cpu >= 0 && !--s->cpus[cpu].threads)
		quipu_system_leave(s->system, (unsigned)cpu);
	session_turns_placed(s);
}

/* As @pid asked for: alone or beside others, as on any machine. */
static int choose_cpu_for(struct session *s, pid_t pid)
{
	int cpu = s->hooks.place ? s->hooks.place(s->hooks.arg, pid) : -1;

	if (cpu < 0 || (unsigned)cpu >= s->machine->ncpus ||
	    (!s->cpus[cpu].threads && !quipu_system_place_at(s->system, (unsigned)cpu)))
		return choose_cpu(s);
	s->cpus[cpu].threads++;
	return cpu;
}

/* Others of this CPU were told to serve overflows by themselves, by a clock that was theirs. */
static void ask_sharers(struct session *s, const struct cpu_state *c)
{
	for (unsigned i = 0; i < s->nprocs; i++)
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
}

/* @q became @p by an exec: its first thread goes on, on the CPU it has, and all others are gone. */
static bool take_over(struct session *s, struct proc *q, struct proc *p, unsigned v)
{
	unsigned n = q->seg->nvcpus < SEG_VCPUS ? q->seg->nvcpus : SEG_VCPUS;
	bool taken = false;

	for (unsigned u = n; u-- > 0;) {
		struct cpu_state *c = q->cpu[u];

		if (!q->tasks[u] || quipu_task_tid(q->tasks[u]) != (pid_t)p->seg->pid)
			continue;
		session_step_on(s, q, u);
		session_drain(s, q, u);
		p->tasks[v] = q->tasks[u];
		p->cpu[v] = c;
		if (c) {
			session_view_vcpu(s, c, session_vcpu(q, u));
			session_view_gone(s, c);
			c->on = p;
			c->on_vcpu = v;
			session_vcpu(p, v)->cpu = (uint32_t)(c - s->cpus);
		}
		q->tasks[u] = NULL;
		q->cpu[u] = NULL;
		session_turns_take_over(s, q, u, p, v, c);
		taken = true;
	}
	return taken;
}

/* A process whose pid is known begins: it is an exec. */
static bool serve_exec(struct session *s, struct proc *p, unsigned v, const char *comm)
{
	bool taken = false;

	for (unsigned i = 0; i < s->nprocs; i++) {
		struct proc *q = &s->procs[i];

		if (q == p || !q->base || q->dead || q->seg->pid != p->seg->pid)
			continue;
		taken |= take_over(s, q, p, v);
		session_bury(s, q);
		session_release_slot(s, i);
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

void session_serve_start(struct session *s, struct proc *p, unsigned v)
{
	char path[SEG_PATH], comm[16];
	struct quipu_task *task;

	memcpy(path, p->seg->path, sizeof(path));
	path[SEG_PATH - 1] = 0;
	memcpy(comm, p->seg->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = 0;
	if (!comm[0])
		copy_comm(comm, path);
	s->facts.isas |= isa_bit(p->seg);
	if (serve_exec(s, p, v, comm)) {
		session_drain(s, p, v);
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
	board(s, p, v, task, choose_cpu_for(s, (pid_t)p->seg->pid), quipu_system_time(s->system));
	session_turns_placed(s);
	session_step_on(s, p, v);
	if (p->cpu[v])
		quipu_task_exec(task, comm, (unsigned)(p->cpu[v] - s->cpus));
	session_drain(s, p, v); /* the mappings of the new image, at time 0 of it */
	p->started = true;
}

/* Thread @v is about to fork: where and when the child begins is settled while it waits. */
static void note_fork(struct session *s, struct proc *p, unsigned v)
{
	struct fork_note *f = &p->forks[v];

	if (f->n == FORKS_PENDING)
		return;
	p->unslotted[v] = __atomic_load_n(&s->head->unslotted, __ATOMIC_RELAXED);
	f->born[f->n] =
		p->cpu[v] ? quipu_system_now(s->system, (unsigned)(p->cpu[v] - s->cpus)) : 0;
	f->cpu[f->n++] = choose_cpu(s);
	session_turns_placed(s);
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

void session_forget_fork(struct session *s, struct proc *p, unsigned v)
{
	struct fork_note *f = &p->forks[v];

	if (f->n)
		leave_cpu(s, f->cpu[--f->n]);
}

void session_serve_clone(struct session *s, struct proc *p, unsigned v, uint64_t child)
{
	session_turns_made(s, p, v, child < SEG_VCPUS ? (unsigned)child : SEG_VCPUS);
	if (child == SEG_VCPUS)
		note_fork(s, p, v);
	if (child >= SEG_VCPUS)
		return;
	p->placed[child] = choose_cpu(s);
	p->born[child] =
		p->cpu[v] ? quipu_system_now(s->system, (unsigned)(p->cpu[v] - s->cpus)) : 0;
	p->parent[child] = p->tasks[v];
	p->made_on[child] = p->cpu[v] ? (unsigned)(p->cpu[v] - s->cpus) : SEG_VCPUS;
	session_turns_placed(s);
}

void session_serve_made(struct session *s, struct proc *p, unsigned v, uint64_t made)
{
	uint32_t child = (uint32_t)made;
	pid_t tid = (pid_t)(made >> 32);

	if (child > SEG_VCPUS)
		return;
	if (tid > 0) {
		session_turns_await(s, p, v, child, tid);
	} else if (child == SEG_VCPUS) {
		session_forget_fork(s, p, v);
	} else if (!p->tasks[child] && p->placed[child] >= 0) {
		leave_cpu(s, p->placed[child]);
		p->placed[child] = -1;
	}
}

/*
 * The CPU by whose clock a thread or process begins: that of its creator, which stands still where
 * who takes turns is born; else its own, which does not begin before its creator's time.
 */
static unsigned birth_cpu(struct session *s, int cpu, unsigned made_on, uint64_t born)
{
	if (session_takes_turns(s) && made_on < s->machine->ncpus)
		return made_on;
	if (cpu >= 0 && !s->cpus[cpu].on)
		quipu_system_wake(s->system, (unsigned)cpu, born); /* before FORK is stamped */
	return cpu >= 0 ? (unsigned)cpu : 0;
}

void session_serve_thread(struct session *s, struct proc *p, unsigned v, bool told)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	int cpu = told ? p->placed[v] : -1;
	struct quipu_task *parent = told ? p->parent[v] : NULL, *task;

	s->facts.threads++;
	task = quipu_task_new(s->core, parent, (pid_t)p->seg->pid, (pid_t)vcpu->tid, true, NULL,
			      birth_cpu(s, cpu, p->made_on[v], p->born[v]));
	if (cpu >= 0 && s->task_new)
		s->task_new(s->task_arg, task);
	if (told) {
		board(s, p, v, task, cpu, session_takes_turns(s) ? 0 : p->born[v]);
	} else {
		p->tasks[v] = task;
		s->facts.untold_threads++;
	}
	session_turns_born(s, p, v, p, vcpu->parent < SEG_VCPUS ? vcpu->parent : 0);
}

void session_serve_fork(struct session *s, struct proc *p, unsigned v, uint64_t from)
{
	struct proc *parent = from < SEG_PROCS && s->procs[from].base ? &s->procs[from] : NULL;
	struct quipu_task *of, *task;
	unsigned made_on = SEG_VCPUS;
	uint64_t born = 0;
	int cpu = -1;

	if (parent && parent->seg->pid != p->seg->parent_pid)
		parent = NULL; /* the slot is another's by now */
	of = parent ? parent->tasks[v] : NULL;
	if (!parent || !take_fork(parent, v, &cpu, &born))
		cpu = choose_cpu(s);

	s->facts.threads++;
	if (parent && parent->cpu[v])
		made_on = (unsigned)(parent->cpu[v] - s->cpus);
	task = quipu_task_new(s->core, of, (pid_t)p->seg->pid, (pid_t)p->seg->pid, false, NULL,
			      birth_cpu(s, cpu, made_on, born));
	if (cpu >= 0 && s->task_new)
		s->task_new(s->task_arg, task);
	p->born[v] = born;
	board(s, p, v, task, cpu, session_takes_turns(s) ? 0 : born);
	session_turns_born(s, p, v, parent, v);
	p->started = true;
}

/* The thread's final counts stay with the CPU that it leaves. */
void session_leave(struct session *s, struct proc *p, unsigned v)
{
	struct cpu_state *c = p->cpu[v];

	session_step_on(s, p, v);
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
		session_turns_placed(s);
	} else if (p->tasks[v]) {
		quipu_task_exit(p->tasks[v], 0);
	}
	if (p->tasks[v] == s->task)
		s->task = NULL;
	p->tasks[v] = NULL;
	p->cpu[v] = NULL;
	if (c)
		session_turns_leave(s, c, p, v);
}

/*
 * Its parent is told of its end by the host, and looks at once: what it has left is served now, and
 * its task ends with its last thread.
 */
void session_serve_leaving(struct session *s, struct proc *p, unsigned v, bool all)
{
	unsigned others = 0;

	p->leaving |= all;
	for (unsigned u = 0; u < SEG_VCPUS && u < p->seg->nvcpus; u++)
		if (u != v && p->tasks[u]) {
			session_drain(s, p, u);
			others++;
		}
	if (s->house && !others)
		session_leave(s, p, v);
}

/* ---- ends ---- */

static bool gone(const struct proc *p)
{
	struct pollfd pfd = {.fd = p->pidfd, .events = POLLIN};

	if (p->pidfd == -ESRCH) /* it ended before anyone looked */
		return true;
	return p->pidfd >= 0 && poll(&pfd, 1, 0) == 1;
}

/*
 * Did @p end by a fault of one of its instructions? The block of that one was counted whole: where
 * in it the fault was, QEMU tells nobody. Of a process that is not our child only this can be seen,
 * that it ended while it computed, and not of itself.
 */
static bool faulted(const struct session *s, const struct proc *p)
{
	static const int faults[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV};
	bool computed = false;

	if (p->seg->state == SEG_DEAD || !gone(p))
		return false;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if ((pid_t)p->seg->pid == s->child && WIFSIGNALED(s->status) &&
		    WTERMSIG(s->status) == faults[i])
			return true;
	for (unsigned v = 0; v < SEG_VCPUS && v < p->seg->nvcpus; v++)
		computed |= p->tasks[v] && session_vcpu(p, v)->state == SEG_RUNNING;
	return computed && (pid_t)p->seg->pid != s->child;
}

/* A process is gone: what it left in its rings and counters is all there will be. */
void session_bury(struct session *s, struct proc *p)
{
	unsigned n = p->seg->nvcpus < SEG_VCPUS ? p->seg->nvcpus : SEG_VCPUS;

	s->facts.fault_ends += faulted(s, p);
	p->dead = true; /* nobody of it has a turn any more */
	session_turns_close(p);
	for (unsigned v = n; v-- > 0;) {
		struct seg_vcpu *vcpu = session_vcpu(p, v);

		/* Also where no thread is: its first bell may be among those, or it has left. */
		s->facts.bells_lost += vcpu->lost;
		if (!p->tasks[v])
			continue;
		session_step_on(s, p, v);
		session_drain(s, p, v);
		if (p->cpu[v])
			session_view_vcpu(s, p->cpu[v], vcpu);
		session_leave(s, p, v);
	}
	s->facts.own_calls |= p->seg->own_calls[0];
	s->facts.uncounted_threads += p->seg->uncounted;
	s->facts.faults += p->seg->faults;
	s->facts.lacks |= p->seg->lacks;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
	if (s->hooks.ended)
		s->hooks.ended(s->hooks.arg, (pid_t)p->seg->pid);
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

/* Not at once: whoever is being served may look at it still. */
void session_release_slot(struct session *s, unsigned slot)
{
	s->released |= bits_one(slot);
}

void session_release_due(struct session *s)
{
	for (; s->released; s->released &= s->released - 1)
		release_slot(s, bits_low(s->released));
}

void session_reap(struct session *s)
{
	for (unsigned i = 0; i < s->nprocs; i++) {
		struct proc *p = &s->procs[i];

		if (p->base && !p->dead && (pid_t)p->seg->pid != s->child && gone(p)) {
			session_bury(s, p);
			session_release_slot(s, i);
		}
	}
}
