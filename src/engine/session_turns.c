/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More threads than CPUs: those of one CPU take turns, in model time. A thread that is not to run
 * waits in a bell that was heard and is not answered (seg_vcpu.held); its turn ends when it has run
 * for SLICE_NS by the clock of its CPU (SEG_SLOT_TURN), when it sleeps in a system call, yields or
 * ends. Engine sheet 10.1, 10.4, 11.2.
 *
 * What comes next does not depend on how fast the host was: a thread counts as asleep when the
 * host's kernel says so, a new one does not begin before its creator sleeps, or has used up its
 * slice, and of those that could run the one that has waited longest does. Still the host's are:
 * what the threads of different CPUs do to each other, the end of a sleep beside others, whether
 * the first turn of a CPU ends before the others that were made for it are heard of, and where the
 * end of the process finds them.
 *
 * A thread that waits here stands in a block, and QEMU stops all threads of a process there for a
 * fork or the end of the process. When nobody else of the process moves, those that wait are let go
 * a little (nudge). Not here: the open house, where threads run side by side.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

#define SLICE_NS     UINT64_C(4000000)
#define SETTLE_NS    2000000000L /* more than a busy host takes to run a thread that was woken */
#define SETTLE_PAUSE 50000L
#define YIELDS	     16

/* What a thread is on its CPU, or waits for. proc.turn */
enum turn {
	TURN_NONE = 0,	/* not heard of */
	TURN_ANNOUNCED, /* made, and not heard of yet */
	TURN_BORN,	/* waits until its creator stops */
	TURN_WAITS,	/* for its CPU */
	TURN_HAS,
	TURN_AWAY, /* sleeps in a system call; another may have the CPU */
	TURN_LEFT, /* has said that it ends, and is not gone yet: who waits for that sleeps */
};

static bool takes_turns(const struct session *s)
{
	return !s->house && s->head->exact;
}

static bool waits(const struct proc *p, unsigned v)
{
	return p->turn[v] == TURN_WAITS || p->turn[v] == TURN_BORN;
}

/* And has not been let go a little. */
static bool stands(const struct proc *p, unsigned v)
{
	return waits(p, v) && !p->nudged[v];
}

bool session_turns_held(const struct proc *p, unsigned v, uint32_t bell)
{
	return waits(p, v) && p->held[v] == bell;
}

static bool has_turn(const struct cpu_state *c, const struct proc *p, unsigned v)
{
	return c->turn == p && c->turn_vcpu == v;
}

/* ---- what the host says of a thread ---- */

static int open_stat(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The letter of its state, 0: there is none such. */
static char read_state(int fd)
{
	char text[256], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

static char host_state(pid_t pid, pid_t tid)
{
	int fd = open_stat(pid, tid);
	char state = fd < 0 ? 0 : read_state(fd);

	if (fd >= 0)
		close(fd);
	return state;
}

/* Asked often: the file of a thread that is on a CPU stays open, if there are not too many. */
#define MOST_KEPT 512

static bool asleep(struct proc *p, unsigned v)
{
	int fd = p->stat_fd[v] - 1;
	char state;

	if (fd < 0)
		fd = open_stat((pid_t)p->seg->pid, (pid_t)session_vcpu(p, v)->tid);
	if (fd < 0)
		return false;
	state = read_state(fd);
	if (p->tasks[v] && fd < MOST_KEPT)
		p->stat_fd[v] = fd + 1;
	else
		close(fd);
	return state == 'S';
}

/* In one and the same system call, and not while it waits for the machine before or after one. */
static bool sleeps_in_call(struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint32_t bell = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE);
	uint64_t calls = __atomic_load_n(&vcpu->syscalls, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&vcpu->state, __ATOMIC_ACQUIRE) != SEG_SYSCALL || !asleep(p, v))
		return false;
	return __atomic_load_n(&vcpu->state, __ATOMIC_ACQUIRE) == SEG_SYSCALL &&
	       __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) == bell &&
	       __atomic_load_n(&vcpu->syscalls, __ATOMIC_ACQUIRE) == calls;
}

static void forget_stat(struct proc *p, unsigned v)
{
	if (p->stat_fd[v])
		close(p->stat_fd[v] - 1);
	p->stat_fd[v] = 0;
}

static bool waiter_tid(const struct proc *p, pid_t tid)
{
	for (unsigned v = 0; v < SEG_VCPUS && v < p->seg->nvcpus; v++)
		if (stands(p, v) && (pid_t)session_vcpu(p, v)->tid == tid)
			return true;
	return false;
}

/* How often a thread has run: 0 where the host does not tell. */
static uint64_t times_run(pid_t pid, pid_t tid)
{
	unsigned long long ran, waited, times = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu %llu", &ran, &waited, &times) != 3)
		times = 0;
	fclose(f);
	return times;
}

/* Does each thread of @p sleep but those that wait here? Those that nobody counts, too. *@runs: how
 * often they have run. */
static bool each_asleep(const struct proc *p, uint64_t *runs)
{
	pid_t pid = (pid_t)p->seg->pid;
	char path[32];
	struct dirent *d;
	bool all = true;
	DIR *dir;

	*runs = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && all && (d = readdir(dir))) {
		pid_t tid = (pid_t)atoi(d->d_name);
		char state;

		if (tid <= 0 || waiter_tid(p, tid))
			continue;
		state = host_state(pid, tid);
		all = state == 'S' || state == 'Z' || state == 'X' || !state;
		*runs += times_run(pid, tid);
	}
	if (dir)
		closedir(dir);
	return dir && all;
}

/* ---- turns ---- */

static uint64_t cycles_of(const struct seg_vcpu *vcpu)
{
	return (uint64_t)vcpu->base[SEG_LANE_CYCLES] +
	       (uint16_t)(vcpu->acc[SEG_LANE_CYCLES] - vcpu->pre[SEG_LANE_CYCLES]);
}

static struct seg_deadline *turn_deadline(const struct proc *p, unsigned v)
{
	return session_deadline(p, v, SEG_SLOT_TURN);
}

static void end_turn_in(const struct proc *p, unsigned v, uint64_t at)
{
	*turn_deadline(p, v) = (struct seg_deadline){
		.at = at, .index = SEG_LANE_CYCLES, .overflow = QUIPU_OVERFLOW_BELL, .armed = 1};
}

static bool has_born(const struct session *s, const struct proc *p, unsigned v)
{
	for (unsigned i = 0; s->waiting && i < SEG_PROCS; i++)
		for (unsigned u = 0; s->procs[i].base && u < SEG_VCPUS; u++)
			if (s->procs[i].turn[u] == TURN_BORN && s->procs[i].maker[u] == p &&
			    s->procs[i].maker_vcpu[u] == v)
				return true;
	return p->made[v];
}

/*
 * Ends of turns lie at whole slices of the thread's own cycles, and a turn lasts half a slice at
 * least: so it does not matter when exactly a thread hears that it is not alone any more.
 */
void session_turns_deadline(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint64_t slice = bits_muldiv(SLICE_NS, s->machine->hz, UINT64_C(1000000000)) | 1;

	if (!takes_turns(s))
		return;
	vcpu->shared = c->threads > 1;
	if (c->threads > 1 || has_born(s, p, v))
		end_turn_in(p, v, ((cycles_of(vcpu) + slice / 2) / slice + 1) * slice);
	else if (turn_deadline(p, v)->armed)
		turn_deadline(p, v)->armed = 0;
}

static void let_wait(struct session *s, struct proc *p, unsigned v, enum turn how)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);

	s->waiting += !waits(p, v);
	p->turn[v] = (uint8_t)how;
	p->held[v] = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE);
	__atomic_store_n(&vcpu->held, 1, __ATOMIC_RELEASE);
}

static void wait_no_more(struct session *s, struct proc *p, unsigned v, enum turn now)
{
	s->waiting -= waits(p, v);
	p->turn[v] = (uint8_t)now;
	__atomic_store_n(&session_vcpu(p, v)->held, 0, __ATOMIC_RELEASE);
}

static void give_turn(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	bool answer = waits(p, v);

	wait_no_more(s, p, v, TURN_HAS);
	c->turn = p;
	c->turn_vcpu = v;
	session_step_on(s, p, v);
	session_drain(s, p, v);
	if (answer)
		session_answer(s, p, v);
}

/* A moment, the @n-th. */
static void pause_for(long n)
{
	if (n < YIELDS)
		sched_yield();
	else
		nanosleep(&(struct timespec){0, SETTLE_PAUSE}, NULL);
}

static bool still_there(struct proc *p, unsigned v)
{
	char state = host_state((pid_t)p->seg->pid, (pid_t)session_vcpu(p, v)->tid);

	if (!state || state == 'Z' || state == 'X') {
		p->turn[v] = TURN_NONE;
		return false;
	}
	return true;
}

/* After it was seen asleep: it may sleep because it rang. */
static bool rings(const struct proc *p, unsigned v)
{
	const struct seg_vcpu *vcpu = session_vcpu(p, v);

	return __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) != vcpu->ack;
}

/*
 * Is a thread of @c about to be heard of that comes before one with @since: made already, or woken
 * by the host? The choice of the next one must not depend on how fast it is.
 */
static bool unsettled(struct session *s, const struct cpu_state *c, uint64_t since)
{
	for (unsigned i = 0; i < SEG_PROCS; i++) {
		struct proc *p = &s->procs[i];

		for (unsigned v = 0; p->base && !p->dead && v < SEG_VCPUS; v++) {
			if (p->since[v] >= since)
				continue;
			if (p->turn[v] == TURN_ANNOUNCED && p->placed[v] == c - s->cpus)
				return true;
			if (p->turn[v] == TURN_AWAY && p->cpu[v] == c &&
			    (!asleep(p, v) || rings(p, v)))
				return true;
			if (p->turn[v] == TURN_LEFT && p->placed[v] == c - s->cpus &&
			    still_there(p, v))
				return true;
		}
	}
	return false;
}

/* A thread that never came: its creation failed, or its process is gone. */
static void forget_announced(struct session *s, const struct cpu_state *c)
{
	for (unsigned i = 0; i < SEG_PROCS; i++)
		for (unsigned v = 0; s->procs[i].base && v < SEG_VCPUS; v++)
			if ((s->procs[i].turn[v] == TURN_ANNOUNCED ||
			     s->procs[i].turn[v] == TURN_LEFT) &&
			    s->procs[i].placed[v] == c - s->cpus)
				s->procs[i].turn[v] = TURN_NONE;
}

/* QEMU wants to stop all threads of @p, and some wait here: they end the block that they stand in.
 */
static void nudge(struct proc *p)
{
	for (unsigned v = 0; v < SEG_VCPUS && v < p->seg->nvcpus; v++) {
		if (!stands(p, v))
			continue;
		p->nudged[v] = true;
		__atomic_store_n(&session_vcpu(p, v)->nudge, 1, __ATOMIC_RELEASE);
		session_ack(p, v, p->held[v]);
	}
}

/* Some of @p wait here, and others would run if they could. */
static bool hindered(struct proc *p)
{
	bool waiting = false, moves = false;

	for (unsigned v = 0; v < SEG_VCPUS && v < p->seg->nvcpus; v++) {
		uint32_t state = __atomic_load_n(&session_vcpu(p, v)->state, __ATOMIC_ACQUIRE);

		moves |= p->turn[v] == TURN_LEFT && still_there(p, v);
		if (!p->tasks[v])
			continue;
		if (stands(p, v))
			waiting = true;
		else
			moves |= state == SEG_RUNNING || state == SEG_CALLING ||
				 (p->leaving && state != SEG_WAITING);
	}
	return waiting && moves;
}

/*
 * One may wake another and sleep, or ring and sleep, while they are looked at one by one: none may
 * have run between two looks, and what is known of them must be of that time.
 */
static bool stuck(struct proc *p)
{
	uint64_t first, second;

	return hindered(p) && each_asleep(p, &first) && hindered(p) && each_asleep(p, &second) &&
	       first == second;
}

static void nudge_stuck(struct session *s)
{
	for (unsigned i = 0; i < SEG_PROCS; i++)
		if (s->procs[i].base && !s->procs[i].dead && stuck(&s->procs[i]))
			nudge(&s->procs[i]);
}

/* Who has waited longest for @c. False: nobody waits. */
static bool longest(const struct session *s, const struct cpu_state *c, struct proc **p,
		    unsigned *vcpu)
{
	*p = NULL;
	for (unsigned i = 0; s->waiting && i < SEG_PROCS; i++) {
		struct proc *q = &s->procs[i];

		for (unsigned v = 0; q->base && !q->dead && v < SEG_VCPUS; v++) {
			if (q->turn[v] != TURN_WAITS || q->nudged[v] || q->cpu[v] != c)
				continue;
			if (*p && q->since[v] > (*p)->since[*vcpu])
				continue;
			*p = q;
			*vcpu = v;
		}
	}
	return *p;
}

/* The turn on @c is nobody's: whoever has waited longest is next. */
static void pass_on(struct session *s, struct cpu_state *c)
{
	struct proc *next;
	unsigned v = 0;

	if (c->settling || c->turn)
		return;
	c->settling = true;
	for (long waited = 0; longest(s, c, &next, &v); waited += SETTLE_PAUSE) {
		if (!unsettled(s, c, next->since[v]))
			break;
		if (waited >= SETTLE_NS) {
			forget_announced(s, c);
			break;
		}
		pause_for(waited / SETTLE_PAUSE);
		session_serve_all(s);
		nudge_stuck(s);
	}
	c->settling = false;
	if (next && !c->turn)
		give_turn(s, c, next, v);
}

static void free_turn(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	if (!has_turn(c, p, v))
		return;
	p->since[v] = ++s->turns;
	c->turn = NULL;
}

static bool someone_waits(const struct session *s, const struct cpu_state *c)
{
	for (unsigned i = 0; s->waiting && i < SEG_PROCS; i++)
		for (unsigned v = 0; s->procs[i].base && v < SEG_VCPUS; v++)
			if (s->procs[i].turn[v] == TURN_WAITS && s->procs[i].cpu[v] == c)
				return true;
	return false;
}

/* ---- those that were made ---- */

/* The one that made them stops: they join the threads of their CPUs. */
static void let_begin(struct session *s, const struct proc *maker, unsigned v)
{
	for (unsigned i = 0; s->waiting && i < SEG_PROCS; i++) {
		struct proc *p = &s->procs[i];

		for (unsigned u = 0; p->base && u < SEG_VCPUS; u++) {
			if (p->turn[u] != TURN_BORN || p->maker[u] != maker ||
			    p->maker_vcpu[u] != v)
				continue;
			p->turn[u] = TURN_WAITS;
			if (p->cpu[u])
				pass_on(s, p->cpu[u]);
		}
	}
}

static void maker_stops(struct session *s, struct proc *p, unsigned v)
{
	p->made[v] = false;
	let_begin(s, p, v);
}

void session_turns_made(struct session *s, struct proc *p, unsigned v, unsigned child)
{
	if (!takes_turns(s))
		return;
	p->made[v] = true;
	if (child >= SEG_VCPUS)
		return;
	p->turn[child] = TURN_ANNOUNCED;
	p->since[child] = ++s->turns;
}

void session_turns_born(struct session *s, struct proc *p, unsigned v, struct proc *maker,
			unsigned maker_vcpu)
{
	bool first = maker && maker->base && !maker->dead && maker->made[maker_vcpu];

	if (!takes_turns(s)) {
		session_step_on(s, p, v);
		return;
	}
	if (p->turn[v] != TURN_ANNOUNCED)
		p->since[v] = ++s->turns;
	p->maker[v] = maker;
	p->maker_vcpu[v] = maker_vcpu;
	let_wait(s, p, v, first ? TURN_BORN : TURN_WAITS);
}

/* ---- what is heard ---- */

/* Its bell was served. True: it goes on; false: it waits for its turn, and so the bell does. */
bool session_turns_goes_on(struct session *s, struct proc *p, unsigned v, uint32_t reason)
{
	struct cpu_state *c = p->cpu[v];
	bool over = reason & SEG_BELL_YIELD;

	if (!takes_turns(s) || !c)
		return true;
	if (waits(p, v)) { /* it has just been born */
		if (p->turn[v] == TURN_WAITS)
			pass_on(s, c);
		return false;
	}
	if (reason & SEG_BELL_DEADLINE)
		over |= session_vcpu(p, v)->slots >> SEG_SLOT_TURN & 1;
	if (over)
		maker_stops(s, p, v);
	if (has_turn(c, p, v) && !(over && someone_waits(s, c)))
		return true;
	free_turn(s, c, p, v);
	let_wait(s, p, v, TURN_WAITS);
	pass_on(s, c);
	return false;
}

/* The thread leaves its CPU for ever. */
void session_turns_leave(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	if (!takes_turns(s))
		return;
	wait_no_more(s, p, v, TURN_NONE);
	forget_stat(p, v);
	free_turn(s, c, p, v);
	if (!p->dead && !p->leaving && session_vcpu(p, v)->reason & SEG_BELL_EXIT) {
		p->turn[v] = TURN_LEFT;
		p->since[v] = 0;
		p->placed[v] = (int)(c - s->cpus);
		session_ack(p, v, session_vcpu(p, v)->bell); /* so that it can */
	}
	maker_stops(s, p, v);
	pass_on(s, c);
}

void session_turns_take_over(struct session *s, struct proc *q, unsigned u, struct proc *p,
			     unsigned v, struct cpu_state *c)
{
	wait_no_more(s, q, u, TURN_NONE);
	forget_stat(q, u);
	maker_stops(s, q, u);
	p->since[v] = q->since[u];
	if (c && has_turn(c, q, u)) {
		c->turn = p;
		c->turn_vcpu = v;
	}
}

/* ---- what is not heard: threads that sleep, and QEMU that waits for those that wait here ---- */

/* The thread sleeps in a system call: its CPU is free. False: it has just come out of it. */
static bool park(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	unsigned cpu = (unsigned)(c - s->cpus);
	uint32_t was = SEG_SYSCALL;

	if (!__atomic_compare_exchange_n(&vcpu->state, &was, SEG_PARKED, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return false;
	session_step_on(s, p, v);
	session_drain(s, p, v);
	session_view_vcpu(s, c, vcpu);
	p->away_since[v] = quipu_system_now(s->system, cpu);
	quipu_system_stop(s->system, cpu, false);
	memcpy(p->seen[v], c->view, sizeof(c->view));
	session_view_gone(s, c);
	c->on = NULL;
	p->turn[v] = TURN_AWAY;
	free_turn(s, c, p, v);
	return true;
}

uint64_t session_turns_slept(struct session *s, struct proc *p, unsigned v, uint64_t ns)
{
	uint64_t since = p->away_since[v], now;

	p->away_since[v] = 0;
	if (!since || !p->cpu[v])
		return ns;
	now = quipu_system_now(s->system, (unsigned)(p->cpu[v] - s->cpus));
	return now - since < ns ? ns - (now - since) : 0;
}

bool session_turns_nudged(struct session *s, struct proc *p, unsigned v, uint32_t reason)
{
	if (!p->nudged[v])
		return false;
	p->nudged[v] = false;
	if (!(reason & SEG_BELL_TURN)) { /* it wants something else: that is served out of turn */
		wait_no_more(s, p, v, TURN_NONE);
		return false;
	}
	let_wait(s, p, v, (enum turn)p->turn[v]);
	if (p->turn[v] == TURN_WAITS)
		pass_on(s, p->cpu[v]);
	return true;
}

/* A nudged one has gone to sleep in a system call. */
static void park_nudged(struct session *s, struct proc *p, unsigned v)
{
	uint32_t was = SEG_SYSCALL;

	if (!p->nudged[v] || !sleeps_in_call(p, v) ||
	    !__atomic_compare_exchange_n(&session_vcpu(p, v)->state, &was, SEG_PARKED, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	p->nudged[v] = false;
	wait_no_more(s, p, v, TURN_AWAY);
	maker_stops(s, p, v);
}

static void look_at(struct session *s, struct proc *p)
{
	for (unsigned v = 0; v < SEG_VCPUS && v < p->seg->nvcpus; v++) {
		struct cpu_state *c = p->cpu[v];

		if (p->nudged[v])
			park_nudged(s, p, v);
		if (!p->tasks[v] || !c || waits(p, v) || p->leaving)
			continue;
		if (!sleeps_in_call(p, v))
			continue;
		if (p->made[v])
			maker_stops(s, p, v);
		if (has_turn(c, p, v) && someone_waits(s, c) && park(s, c, p, v))
			pass_on(s, c);
	}
}

void session_turns_close(struct proc *p)
{
	for (unsigned v = 0; v < SEG_VCPUS; v++)
		forget_stat(p, v);
}

bool session_turns_look(struct session *s)
{
	if (!s->waiting)
		return false;
	__atomic_add_fetch(&s->head->beat, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < SEG_PROCS; i++)
		if (s->procs[i].base && !s->procs[i].dead)
			look_at(s, &s->procs[i]);
	nudge_stuck(s);
	return true;
}
