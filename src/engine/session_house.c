/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open house (quipu exec): a session that starts no program itself; every process that the
 * plugin lets in is served, and tasks of the host take part by their CPU time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/session_impl.h"

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
	QUIPU_SIGNAL_LOADS,
	QUIPU_SIGNAL_STORES,
	QUIPU_SIGNAL_BRANCHES,
	QUIPU_SIGNAL_CALLS,
};

int session_open_house(struct session *s, const struct session_hooks *hooks)
{
	s->house = true;
	s->head->house = 1;
	s->head->quantum = 4096; /* clients may want something of a running thread soon */
	s->hooks = *hooks;
	snprintf(s->head->plugin, SEG_PATH, "%s", s->options.plugin);
	session_collect(s);
	for (size_t i = 0; i < sizeof(house_signals) / sizeof(house_signals[0]); i++)
		session_require(s, house_signals[i]);
	session_collected(s);
	session_select_begin(s);
	s->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell_fd < 0)
		return -errno;
	s->head->machine_asleep = 1;
	return s->bell_fd;
}

int session_serve_house(struct session *s)
{
	int err = session_watch_begin(s);

	if (err)
		return err;
	err = session_thread(&s->bell, pass_bell_on, s);
	s->bell_running = !err;
	return err;
}

void session_close_house(struct session *s)
{
	session_closing(s);
	for (unsigned i = 0; i < s->nprocs; i++) {
		struct proc *p = &s->procs[i];

		/* Those that wait for an answer go on by themselves. */
		for (unsigned v = 0; p->base && !p->dead && v < SEG_VCPUS; v++)
			if (session_vcpu(p, v)->sleeping)
				session_futex_wake(&session_vcpu(p, v)->ack);
	}
	if (!s->bell_running)
		return;
	session_ring_machine(s->head);
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
	for (unsigned i = 0; i < s->nprocs; i++) {
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
	unsigned before = session_guests(s);
	bool rang = session_serve_all(s) != 0;

	session_reap(s);
	session_release_due(s);
	release_slots(s);
	return rang || before != session_guests(s);
}

unsigned session_guests(const struct session *s)
{
	unsigned n = 0;

	/* Asked at every request of a client: only slots that are in use are looked at. */
	for (uint64_t m = __atomic_load_n(&s->head->claimed, __ATOMIC_ACQUIRE); m; m &= m - 1) {
		const struct proc *p = &s->procs[bits_low(m)];

		n += p->base && !p->dead && p->started;
	}
	return n;
}

bool session_has(const struct session *s, pid_t pid)
{
	for (unsigned i = 0; i < s->nprocs; i++)
		if (s->procs[i].base && !s->procs[i].dead && (pid_t)s->procs[i].seg->pid == pid)
			return true;
	return false;
}

/* Calls @fn for each thread that runs on a modelled CPU. */
static void for_each_running(struct session *s,
			     void (*fn)(struct session *, struct proc *, unsigned v))
{
	for (unsigned i = 0; i < s->nprocs; i++) {
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
	if (p->cpu[v]->threads > 1 || session_deadlines_differ(s, p->cpu[v]))
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
			session_serve_bell(s, p, v);
			return;
		}
		if (__atomic_load_n(&vcpu->state, __ATOMIC_ACQUIRE) != SEG_RUNNING)
			break;
		nanosleep(&pause, NULL);
	}
	if (vcpu->state != SEG_SYSCALL && vcpu->state != SEG_CALLING)
		return;
	/* It waits in a system call: what it has published stands. */
	session_step_on(s, p, v);
	session_drain(s, p, v);
	session_view_vcpu(s, p->cpu[v], vcpu);
}

void session_refresh(struct session *s)
{
	for_each_running(s, refresh_thread);
}

/* ---- tasks of the host ---- */

#define HOST_LANES 2 /* instructions and cycles */

/* Cycles until the nearest deadline of @c, from @least to @n; *slots are those that are then
 * reached. */
static uint64_t host_distance(struct cpu_state *c, uint64_t least, uint64_t n, uint64_t *slots)
{
	*slots = 0;
	for (uint64_t m = c->used; m; m &= m - 1) {
		const struct want *w = &c->want[bits_low(m)];
		uint64_t value, far;

		if (!w->armed || w->index >= HOST_LANES)
			continue;
		value = c->gone[w->index] + c->view[w->index];
		far = w->d.at > value + least ? w->d.at - value : least;
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

void session_host_run(struct session *s, unsigned cpu, pid_t pid, pid_t tid, uint64_t ns,
		      uint64_t pc)
{
	struct cpu_state *c = &s->cpus[cpu];
	uint64_t left = bits_muldiv(ns, s->machine->hz, UINT64_C(1000000000)), least = 1;
	/* These counts are modelled anyway: an interrupt takes a processor a microsecond. */
	uint64_t gap = s->machine->hz / 1000000 + 1;

	while (left) {
		struct quipu_interrupt intr = {
			.cpu = cpu, .pid = (uint32_t)pid, .tid = (uint32_t)tid, .pc = pc};
		uint64_t step = host_distance(c, least, left, &intr.slots);

		for (unsigned k = 0; k < HOST_LANES; k++)
			c->gone[k] += step;
		left -= step;
		least = !intr.slots || !left ? 1 : left < gap ? left : gap;
		for (uint64_t m = intr.slots; m; m &= m - 1)
			c->want[bits_low(m)].armed = false;
		if (intr.slots && s->signals.interrupt)
			s->signals.interrupt(s->signals.arg, &intr);
	}
}
