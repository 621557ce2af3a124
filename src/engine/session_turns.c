/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More threads than CPUs: those of one CPU take turns, in model time. A thread that is not to run
 * waits in a bell that was heard and is not answered (seg_vcpu.held); its turn ends when it has run
 * for SLICE_NS by the clock of its CPU (SEG_SLOT_TURN), when it sleeps in a system call, yields or
 * ends. Engine sheet 10.1, 10.4, 11.2.
 *
 * What comes next does not depend on how fast the host was. A thread exists from the return of the
 * call that made it, by the clock of its maker: that stands until the new one has rung. It does not
 * begin before its maker sleeps, or has used up its slice. A thread sleeps when the host's kernel
 * says so. Where a turn ends is settled when it begins; at its end, as when a thread sleeps, yields
 * or ends, nobody of the CPU runs, and the choice waits until those that may wake others of it are
 * gone, and those that are awake have rung: then the one that has waited longest is next. What a
 * call wakes comes out of its own before the caller goes on. Each of these waits ends after
 * PATIENCE_NS, and then the figures are not exact.
 *
 * Threads of different CPUs end in the order of their clocks, and where every CPU has a thread they
 * are made in that order, too (is_ahead); what may end the threads of other CPUs then waits until
 * those stand at the ends of their turns (others_run).
 *
 * Still the host's are: what the threads of different CPUs do to each other in memory and by other
 * calls, and where an end finds them when some CPU has no thread, or when nobody called for it (a
 * fault); the end of a sleep beside others; and what comes from outside (input, signals, a stop,
 * which has calls made again).
 *
 * A thread that waits here stands in a block, and QEMU stops all threads of a process there for a
 * fork or the end of the process. When nobody else of the process moves, those that wait are let go
 * a little (nudge). Not here: the open house, where threads run side by side.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

#define SLICE_NS     UINT64_C(4000000)
#define PATIENCE_NS  UINT64_C(10000000000) /* more than a busy host takes to run a thread */
#define LOOK_MOST_NS UINT64_C(10000000)	   /* of it in a look: the machine may have stood itself */

/* What a thread is on its CPU, or waits for. proc.turn */
enum turn {
	TURN_NONE = 0,	/* not heard of */
	TURN_ANNOUNCED, /* made, and not heard of yet */
	TURN_BORN,	/* waits until its creator stops */
	TURN_WAITS,	/* for its CPU */
	TURN_HAS,
	TURN_EARLY, /* has it, and stands until other CPUs are as far, or who it woke has come */
	TURN_MAKES, /* has it, and stands until what it has made is there */
	TURN_AWAY,  /* sleeps in a system call; another may have the CPU */
	TURN_LEFT,  /* has said that it ends, and is not gone yet: who waits for that sleeps */
};

bool session_takes_turns(const struct session *s)
{
	return !s->house && s->head->exact;
}

static bool waits(const struct proc *p, unsigned v)
{
	return p->turn[v] == TURN_WAITS || p->turn[v] == TURN_BORN;
}

/* It has rung, and is answered here. */
static bool is_held(const struct proc *p, unsigned v)
{
	return waits(p, v) || p->turn[v] == TURN_MAKES || p->turn[v] == TURN_EARLY;
}

/* And has not been let go a little. */
static bool stands(const struct proc *p, unsigned v)
{
	return waits(p, v) && !p->nudged[v];
}

bool session_turns_held(const struct proc *p, unsigned v, uint32_t bell)
{
	return is_held(p, v) && p->turn[v] != TURN_EARLY && p->held[v] == bell;
}

static bool has_turn(const struct cpu_state *c, const struct proc *p, unsigned v)
{
	return c->turn == p && c->turn_vcpu == v;
}

static unsigned threads_of(const struct proc *p)
{
	unsigned n = p->base && !p->dead ? p->seg->nvcpus : 0;

	return n < SEG_VCPUS ? n : SEG_VCPUS;
}

/* ---- patience ---- */

static void be_patient(struct patience *left)
{
	*left = (struct patience){.left = PATIENCE_NS};
}

/* Another look at what is waited for. True: no more of that. */
static bool impatient(struct patience *patience)
{
	struct timespec ts;
	uint64_t now, passed;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
	passed = patience->looked ? now - patience->looked : 0;
	patience->looked = now;
	if (passed > LOOK_MOST_NS)
		passed = LOOK_MOST_NS;
	patience->left -= passed < patience->left ? passed : patience->left;
	return !patience->left;
}

/* ---- what the host says of a process ---- */

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
		state = session_host_state(pid, tid);
		all = state == 'S' || session_host_gone(state);
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
	for (unsigned i = 0; s->waiting && i < s->nprocs; i++)
		for (unsigned u = 0; u < threads_of(&s->procs[i]); u++)
			if (s->procs[i].turn[u] == TURN_BORN && s->procs[i].maker[u] == p &&
			    s->procs[i].maker_vcpu[u] == v)
				return true;
	return p->made[v];
}

/* Something that may be said of a thread, and of a CPU and a process that ask. */
typedef bool thread_test(struct proc *p, unsigned v, const struct cpu_state *c,
			 const struct proc *who);

/* The first thread that @is; *@p NULL: none. */
static bool find(const struct session *s, thread_test *is, const struct cpu_state *c,
		 const struct proc *who, struct proc **p, unsigned *vcpu)
{
	for (unsigned i = 0; i < s->nprocs; i++)
		for (unsigned v = 0; v < threads_of(&s->procs[i]); v++)
			if (is(&s->procs[i], v, c, who)) {
				*p = &s->procs[i];
				*vcpu = v;
				return true;
			}
	*p = NULL;
	return false;
}

static bool any(const struct session *s, thread_test *is, const struct cpu_state *c,
		const struct proc *who)
{
	struct proc *p;
	unsigned v;

	return find(s, is, c, who, &p, &v);
}

static bool is_away(struct proc *p, unsigned v, const struct cpu_state *c, const struct proc *who)
{
	(void)who;
	return p->turn[v] == TURN_AWAY && p->cpu[v] == c;
}

static bool is_next(struct proc *p, unsigned v, const struct cpu_state *c, const struct proc *who)
{
	(void)who;
	return p->turn[v] == TURN_WAITS && p->cpu[v] == c;
}

static enum seg_sharing sharing(const struct session *s, const struct cpu_state *c)
{
	if (c->threads > 1 && any(s, is_away, c, NULL))
		return SEG_WITH_SLEEPER;
	return c->threads > 1 || s->crowded ? SEG_SHARES : SEG_ALONE;
}

/*
 * Ends of turns lie at whole slices of the thread's own cycles, and a turn lasts half a slice at
 * least: so it does not matter when exactly a thread hears that it is not alone any more. The end
 * is settled once a turn: what the thread rings for meanwhile, at the host's will, does not move
 * it.
 */
void session_turns_deadline(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);
	uint64_t slice = bits_muldiv(SLICE_NS, s->machine->hz, UINT64_C(1000000000)) | 1;

	if (!session_takes_turns(s))
		return;
	vcpu->shared = sharing(s, c);
	if (vcpu->shared || has_born(s, p, v)) {
		if (!p->turn_ends[v])
			p->turn_ends[v] = ((cycles_of(vcpu) + slice / 2) / slice + 1) * slice;
		end_turn_in(p, v, p->turn_ends[v]);
	} else if (p->turn_ends[v]) {
		p->turn_ends[v] = 0;
		turn_deadline(p, v)->armed = 0;
	}
}

static void let_wait(struct session *s, struct proc *p, unsigned v, enum turn how)
{
	struct seg_vcpu *vcpu = session_vcpu(p, v);

	s->waiting += !is_held(p, v);
	p->given_up[v] = false;
	p->turn[v] = (uint8_t)how;
	p->held[v] = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE);
	__atomic_store_n(&vcpu->held, 1, __ATOMIC_RELEASE);
}

static void wait_no_more(struct session *s, struct proc *p, unsigned v, enum turn now)
{
	s->waiting -= is_held(p, v);
	p->given_up[v] = false;
	p->turn[v] = (uint8_t)now;
	__atomic_store_n(&session_vcpu(p, v)->held, 0, __ATOMIC_RELEASE);
}

static void give_turn(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	bool answer = waits(p, v);

	wait_no_more(s, p, v, TURN_HAS);
	c->turn = p;
	c->turn_vcpu = v;
	p->turn_ends[v] = 0;
	if (!c->on) /* a CPU that stood still goes on no earlier than what was made for it */
		quipu_system_wake(s->system, (unsigned)(c - s->cpus), p->born[v]);
	session_step_on(s, p, v);
	session_drain(s, p, v);
	if (answer)
		session_answer(s, p, v);
}

/* After it was seen asleep: it may sleep because it rang. */
static bool rings(const struct proc *p, unsigned v)
{
	const struct seg_vcpu *vcpu = session_vcpu(p, v);

	return __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE) != vcpu->ack;
}

static bool still_there(struct proc *p, unsigned v)
{
	pid_t pid = (pid_t)p->seg->pid;

	if (p->turn[v] != TURN_LEFT)
		return false;
	if (session_host_gone(session_host_state(pid, (pid_t)session_vcpu(p, v)->tid)))
		p->turn[v] = TURN_NONE;
	return p->turn[v] == TURN_LEFT;
}

/* Who has said that it ends may wake others yet, and so may who was let go a little. */
static bool may_wake(struct proc *p, unsigned v, const struct cpu_state *c)
{
	return (p->cpu[v] == c && p->nudged[v]) || still_there(p, v);
}

/*
 * The host has woken it, and it has not rung yet. One that somebody stopped (SIGSTOP) while @next
 * of another process may go on is as good as asleep.
 */
static bool was_woken(struct proc *p, unsigned v, const struct cpu_state *c,
		      const struct proc *next)
{
	char state;

	if (p->turn[v] != TURN_AWAY || p->cpu[v] != c)
		return false;
	state = session_thread_state(p, v);
	if (session_host_stopped(state))
		return p == next;
	return state != 'S' || rings(p, v);
}

/* And nobody has given it up. */
static bool still_may_wake(struct proc *p, unsigned v, const struct cpu_state *c,
			   const struct proc *who)
{
	(void)who;
	return !p->given_up[v] && may_wake(p, v, c);
}

static bool comes(struct proc *p, unsigned v, const struct cpu_state *c, const struct proc *who)
{
	return !p->given_up[v] && was_woken(p, v, c, who);
}

static bool someone_is_leaving(const struct session *s)
{
	for (unsigned i = 0; i < s->nprocs; i++) {
		const struct proc *p = &s->procs[i];

		if (p->base && !p->dead && p->leaving && !p->given_up[0])
			return true;
	}
	return false;
}

/*
 * The choice of the next one must not depend on how fast the host is. Nobody of @c runs; so once
 * those that may wake others have done so (a process by its end), and those that are awake have
 * rung, all is known. Whoever was not as far last time is looked at first: most likely it is not
 * yet.
 */
static bool unsettled(struct session *s, struct cpu_state *c, const struct proc *next)
{
	struct proc *p = c->awaited;
	unsigned v = c->awaited_vcpu;

	if (p && v < threads_of(p) && (still_may_wake(p, v, c, next) || comes(p, v, c, next)))
		return true;
	c->awaited = NULL;
	return someone_is_leaving(s) ||
	       find(s, still_may_wake, c, next, &c->awaited, &c->awaited_vcpu) ||
	       find(s, comes, c, next, &c->awaited, &c->awaited_vcpu);
}

/* What was waited for on @c does not come: the figures are not said to be exact. */
static void give_up(struct session *s, const struct cpu_state *c)
{
	for (unsigned i = 0; i < s->nprocs; i++)
		for (unsigned v = 0; v < threads_of(&s->procs[i]); v++) {
			struct proc *p = &s->procs[i];

			if (p->leaving || may_wake(p, v, c) || was_woken(p, v, c, p))
				p->given_up[v] = true;
		}
	s->facts.bells_lost++;
}

/* ---- the clocks of CPUs ---- */

/*
 * What CPUs do to each other by ending threads comes in the order of their clocks, and on a machine
 * where every CPU has a thread by making them, too: a CPU that is to choose who is next, or whose
 * thread ends or makes one, waits for each other one that has work and an earlier clock. One that
 * is far behind (it slept, and nobody knows who woke it) is not in step with the others, nor is one
 * whose threads hand the CPU to one another all the time: to wait for each would take for ever.
 */
#define STEP_NS	    (4 * SLICE_NS)
#define SHORT_TURNS 128

static bool is_crowded(const struct session *s)
{
	for (unsigned c = 0; c < s->machine->ncpus; c++)
		if (!s->cpus[c].threads)
			return false;
	return s->machine->ncpus > 1 && session_takes_turns(s);
}

void session_turns_placed(struct session *s)
{
	bool was = s->crowded;

	s->crowded = is_crowded(s);
	if (was || !s->crowded)
		return;
	for (unsigned i = 0; i < s->nprocs; i++) /* those that ran alone have ends of turns now */
		for (unsigned v = 0; v < threads_of(&s->procs[i]); v++)
			if (s->procs[i].cpu[v])
				__atomic_store_n(&session_vcpu(&s->procs[i], v)->request, 1,
						 __ATOMIC_RELEASE);
}

/* What the thread has counted at this moment, while it runs; 0 where it is folding, which it may
 * stand in. */
static uint64_t cycles_now(const struct seg_vcpu *vcpu)
{
	uint32_t seq = __atomic_load_n(&vcpu->seq, __ATOMIC_ACQUIRE);
	uint64_t cycles = cycles_of(vcpu);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if ((seq & 1) || __atomic_load_n(&vcpu->seq, __ATOMIC_RELAXED) != seq)
		return 0;
	return cycles;
}

static bool in_step(uint64_t ns, uint64_t other)
{
	return (other > ns ? other - ns : ns - other) <= STEP_NS;
}

static uint64_t clock_of(const struct session *s, const struct cpu_state *c)
{
	uint64_t ns = quipu_system_now(s->system, (unsigned)(c - s->cpus));
	uint64_t seen = c->view[SEG_LANE_CYCLES], now;

	if (!c->turn || c->on != c->turn || c->on_vcpu != c->turn_vcpu)
		return ns;
	now = cycles_now(session_vcpu(c->turn, c->turn_vcpu));
	return now > seen ? ns + bits_muldiv(now - seen, 1000000000, s->machine->hz) : ns;
}

static bool someone_waits(const struct session *s, const struct cpu_state *c)
{
	return s->waiting && any(s, is_next, c, NULL);
}

/*
 * Its clock will go on by itself. A thread that sleeps in a call is parked where another waits, and
 * that has work; one that sleeps otherwise waits for a lock of QEMU's. Where somebody stopped its
 * thread, so is @who of that process.
 */
static bool has_work(struct session *s, const struct cpu_state *c, const struct proc *who)
{
	struct proc *p = c->turn;
	unsigned v = c->turn_vcpu;

	if (!p)
		return someone_waits(s, c) || any(s, was_woken, c, who);
	if (rings(p, v))
		return true;
	if (session_sleeps_in_call(p, v))
		return rings(p, v) || someone_waits(s, c);
	return !session_host_stopped(session_thread_state(p, v)) || p == who;
}

/* Is @c, at @ns by its clock, before another that has work? */
static bool is_ahead(struct session *s, const struct cpu_state *c, uint64_t ns,
		     const struct proc *who, struct patience *patience)
{
	for (unsigned i = 0; i < s->machine->ncpus; i++) {
		const struct cpu_state *d = &s->cpus[i];
		uint64_t other = d == c ? ns : clock_of(s, d);

		if (d == c || d->short_turns >= SHORT_TURNS || other > ns ||
		    (other == ns && d > c) || !in_step(ns, other))
			continue;
		if (!has_work(s, d, who))
			continue;
		if (patience->seen != other)
			patience->left = PATIENCE_NS;
		patience->seen = other;
		return true;
	}
	return false;
}

/* Its thread waits for CPUs whose clocks are earlier: for nobody of its own. */
static bool stands_early(const struct cpu_state *d)
{
	return d->turn->turn[d->turn_vcpu] == TURN_EARLY &&
	       !(session_vcpu(d->turn, d->turn_vcpu)->reason & SEG_BELL_WOKE);
}

/* Before all of @p may end: do others of it run? They will stand at the ends of their turns. Also
 * one that seems to be behind by now: while a thread folds, its clock is seen as of its last bell.
 */
static bool others_run(struct session *s, struct proc *p, const struct cpu_state *c, uint64_t ns)
{
	for (unsigned i = 0; i < s->machine->ncpus; i++) {
		const struct cpu_state *d = &s->cpus[i];

		if (d != c && d->turn == p && d->short_turns < SHORT_TURNS && !stands_early(d) &&
		    in_step(ns, clock_of(s, d)) && has_work(s, d, p))
			return true;
	}
	return false;
}

/* A thread that has ended may wake others yet. */
static bool leaves(struct proc *p, unsigned v, const struct cpu_state *c, const struct proc *who)
{
	(void)c;
	(void)who;
	return !p->given_up[v] && still_there(p, v);
}

static bool is_early(struct session *s, struct proc *p, unsigned v, uint32_t reason)
{
	struct cpu_state *c = p->cpu[v];
	uint64_t ns;

	if (!c || !has_turn(c, p, v))
		return false;
	if (reason & SEG_BELL_WOKE)
		return any(s, comes, c, p);
	if (reason & SEG_BELL_EXIT)
		return any(s, leaves, c, p) || is_ahead(s, c, clock_of(s, c), p, &p->patience[v]);
	if (!s->crowded || !(reason & (SEG_BELL_ORDER | SEG_BELL_LEAVING)))
		return false;
	ns = clock_of(s, c);
	return is_ahead(s, c, ns, p, &p->patience[v]) ||
	       (session_vcpu(p, v)->arg == 1 && others_run(s, p, c, ns));
}

bool session_turns_early(struct session *s, struct proc *p, unsigned v, uint32_t reason)
{
	bool early = is_early(s, p, v, reason);

	if (early && p->turn[v] != TURN_EARLY) {
		let_wait(s, p, v, TURN_EARLY);
		be_patient(&p->patience[v]);
	} else if (early && impatient(&p->patience[v])) {
		give_up(s, p->cpu[v]);
		early = false;
	}
	if (!early && p->turn[v] == TURN_EARLY)
		wait_no_more(s, p, v, TURN_HAS);
	return early;
}

/* ---- who is next ---- */

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

		moves |= still_there(p, v);
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
	for (unsigned i = 0; i < s->nprocs; i++)
		if (s->procs[i].base && !s->procs[i].dead && stuck(&s->procs[i]))
			nudge(&s->procs[i]);
}

/* Who has waited longest for @c. False: nobody waits. */
static bool longest(const struct session *s, const struct cpu_state *c, struct proc **p,
		    unsigned *vcpu)
{
	*p = NULL;
	for (unsigned i = 0; s->waiting && i < s->nprocs; i++) {
		struct proc *q = &s->procs[i];

		for (unsigned v = 0; v < threads_of(q); v++) {
			if (q->leaving || q->turn[v] != TURN_WAITS || q->nudged[v] ||
			    q->cpu[v] != c)
				continue;
			if (*p && q->since[v] > (*p)->since[*vcpu])
				continue;
			*p = q;
			*vcpu = v;
		}
	}
	return *p;
}

static bool too_soon(struct session *s, struct cpu_state *c, const struct proc *next)
{
	return c->short_turns < SHORT_TURNS &&
	       is_ahead(s, c, quipu_system_now(s->system, (unsigned)(c - s->cpus)), next,
			&c->patience);
}

/* The turn on @c is nobody's: whoever has waited longest is next. */
static void pass_on(struct session *s, struct cpu_state *c)
{
	struct proc *next;
	unsigned v = 0;

	if (c->turn || !longest(s, c, &next, &v)) {
		c->settling = false;
		return;
	}
	if (!c->settling)
		be_patient(&c->patience);
	c->settling = unsettled(s, c, next) || too_soon(s, c, next);
	if (c->settling && !impatient(&c->patience))
		return;
	if (c->settling)
		give_up(s, c);
	c->settling = false;
	give_turn(s, c, next, v);
}

void session_turns_settle(struct session *s)
{
	for (unsigned c = 0; s->waiting && c < s->machine->ncpus; c++)
		if (s->cpus[c].settling)
			pass_on(s, &s->cpus[c]);
}

static void free_turn(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	if (!has_turn(c, p, v))
		return;
	p->since[v] = ++s->turns;
	c->turn = NULL;
	c->short_turns++;
}

/* ---- those that were made ---- */

/* The one that made them stops: they join the threads of their CPUs, and the choice is among all.
 */
static void let_begin(struct session *s, const struct proc *maker, unsigned v)
{
	bool any = false;

	for (unsigned i = 0; s->waiting && i < s->nprocs; i++) {
		struct proc *p = &s->procs[i];

		for (unsigned u = 0; u < threads_of(p); u++) {
			if (p->turn[u] != TURN_BORN || p->maker[u] != maker ||
			    p->maker_vcpu[u] != v)
				continue;
			p->turn[u] = TURN_WAITS;
			any = true;
		}
	}
	for (unsigned c = 0; any && c < s->machine->ncpus; c++)
		pass_on(s, &s->cpus[c]);
}

static void maker_stops(struct session *s, struct proc *p, unsigned v)
{
	p->made[v] = false;
	let_begin(s, p, v);
}

void session_turns_made(struct session *s, struct proc *p, unsigned v, unsigned child)
{
	if (!session_takes_turns(s))
		return;
	p->made[v] = true;
	if (child >= SEG_VCPUS)
		return;
	p->turn[child] = TURN_ANNOUNCED;
	p->since[child] = ++s->turns;
}

static bool has_come(const struct proc *p, unsigned v)
{
	unsigned child = p->child[v];

	return child < SEG_VCPUS ? p->turn[child] != TURN_ANNOUNCED : !p->forks[v].n;
}

/* What it has made is there, or will never be. */
static void makes_no_more(struct session *s, struct proc *p, unsigned v)
{
	if (has_turn(p->cpu[v], p, v)) {
		wait_no_more(s, p, v, TURN_HAS);
		session_answer(s, p, v);
		return;
	}
	p->turn[v] = TURN_WAITS;
	pass_on(s, p->cpu[v]);
}

/*
 * By its clock the child exists, and that clock stands still until it does for the host, too: so
 * nothing that a CPU does can come before a thread that was made earlier.
 */
void session_turns_await(struct session *s, struct proc *p, unsigned v, unsigned child, pid_t tid)
{
	if (tid <= 0 && child < SEG_VCPUS && p->turn[child] == TURN_ANNOUNCED)
		p->turn[child] = TURN_NONE;
	if (!session_takes_turns(s) || !p->cpu[v] || tid <= 0)
		return;
	p->child[v] = child;
	p->child_tid[v] = tid;
	if (has_come(p, v))
		return;
	be_patient(&p->patience[v]);
	let_wait(s, p, v, TURN_MAKES);
}

/* Is there no hope any more? A process may have found no slot, a thread be gone. */
static bool fails_to_come(struct session *s, struct proc *p, unsigned v)
{
	pid_t tid = p->child_tid[v], pid = p->child[v] < SEG_VCPUS ? (pid_t)p->seg->pid : tid;

	if (session_host_gone(session_host_state(pid, tid)))
		return true;
	if (p->child[v] == SEG_VCPUS &&
	    __atomic_load_n(&s->head->unslotted, __ATOMIC_RELAXED) != p->unslotted[v])
		return true;
	if (!impatient(&p->patience[v]))
		return false;
	s->facts.bells_lost++;
	return true;
}

static void look_after_child(struct session *s, struct proc *p, unsigned v)
{
	if (p->turn[v] != TURN_MAKES || !p->cpu[v] || !fails_to_come(s, p, v))
		return;
	if (p->child[v] == SEG_VCPUS)
		session_forget_fork(s, p, v);
	makes_no_more(s, p, v);
}

void session_turns_born(struct session *s, struct proc *p, unsigned v, struct proc *maker,
			unsigned maker_vcpu)
{
	bool known = maker && maker->base && !maker->dead;

	if (!session_takes_turns(s) || !p->cpu[v]) {
		session_step_on(s, p, v);
		return;
	}
	if (p->turn[v] != TURN_ANNOUNCED)
		p->since[v] = ++s->turns;
	p->maker[v] = maker;
	p->maker_vcpu[v] = maker_vcpu;
	let_wait(s, p, v, known && maker->made[maker_vcpu] ? TURN_BORN : TURN_WAITS);
	if (known && maker->turn[maker_vcpu] == TURN_MAKES && has_come(maker, maker_vcpu))
		makes_no_more(s, maker, maker_vcpu);
}

/* ---- what is heard ---- */

/* Its bell was served. True: it goes on; false: it waits for its turn, and so the bell does. */
bool session_turns_goes_on(struct session *s, struct proc *p, unsigned v, uint32_t reason)
{
	struct cpu_state *c = p->cpu[v];
	bool over = reason & SEG_BELL_YIELD;

	if (!session_takes_turns(s) || !c)
		return true;
	if (p->turn[v] == TURN_MAKES)
		return false;
	if (waits(p, v)) { /* it has just been born */
		if (p->turn[v] == TURN_WAITS)
			pass_on(s, c);
		return false;
	}
	if (reason & SEG_BELL_DEADLINE)
		over |= session_vcpu(p, v)->slots >> SEG_SLOT_TURN & 1;
	if (over)
		maker_stops(s, p, v);
	if (has_turn(c, p, v) && !over)
		return true;
	/* Also when nobody else waits: another may be about to, and that is seen when who is next
	 * is chosen. This one comes last. */
	free_turn(s, c, p, v);
	if (over && !(reason & SEG_BELL_YIELD))
		c->short_turns = 0;
	let_wait(s, p, v, TURN_WAITS);
	pass_on(s, c);
	return false;
}

/* The thread leaves its CPU for ever. */
void session_turns_leave(struct session *s, struct cpu_state *c, struct proc *p, unsigned v)
{
	if (!session_takes_turns(s))
		return;
	wait_no_more(s, p, v, TURN_NONE);
	session_forget_state(p, v);
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
	session_forget_state(q, u);
	maker_stops(s, q, u);
	p->since[v] = q->since[u];
	p->turn_ends[v] = 0;
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

	if (!p->nudged[v] || !session_sleeps_in_call(p, v) ||
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
		look_after_child(s, p, v);
		if (!p->tasks[v] || !c || is_held(p, v) || p->leaving)
			continue;
		if (!session_sleeps_in_call(p, v))
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
		session_forget_state(p, v);
}

bool session_turns_look(struct session *s)
{
	if (!s->waiting)
		return false;
	__atomic_add_fetch(&s->head->beat, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < s->nprocs; i++)
		if (s->procs[i].base && !s->procs[i].dead)
			look_at(s, &s->procs[i]);
	nudge_stuck(s);
	return true;
}
