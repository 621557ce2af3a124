/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's side of an engine session: its life, its waiting and its end. Contract:
 * src/engine/segment.h; doc/architecture.md "Where an overflow is handled"; engine sheet 6.4, 10,
 * 11.2. What a vCPU says is session_bells.c, what it leaves in its ring session_ring.c, processes
 * and threads session_process.c, quipu exec's side session_house.c; starting the program is
 * launch.c, the signals are view.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/session_impl.h"

/* ---- waiting: one futex word for bells and for the end of processes ---- */

void session_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void session_ring_machine(struct seg_header *head)
{
	__atomic_add_fetch(&head->machine_wake, 1, __ATOMIC_SEQ_CST);
	session_futex_wake(&head->machine_wake);
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
			session_ring_machine(s->head);
	}
}

static int watch_open(struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN};

	s->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->watch_fd < 0 || pipe2(s->stop_fd, O_CLOEXEC))
		return -errno;
	ev.data.fd = s->stop_fd[0];
	return epoll_ctl(s->watch_fd, EPOLL_CTL_ADD, s->stop_fd[0], &ev) ? -errno : 0;
}

int session_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

int session_watch_begin(struct session *s)
{
	int err = session_thread(&s->watcher, watch_processes, s);

	s->watching = !err;
	return err;
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

/* The program itself ended: everything else that it started runs on by itself, uncounted from here.
 */
static void finish(struct session *s)
{
	session_closing(s);
	for (unsigned i = 0; i < s->nprocs; i++)
		if (s->procs[i].base && !s->procs[i].dead)
			session_bury(s, &s->procs[i]);
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

/* How soon to look again after threads that wait for their turns: at once, some times, then less
 * and less often while nothing is heard. */
#define LOOKS_AT_ONCE 8u
#define LOOKS_MOST    12u
#define LOOK_NS	      20000L

static void machine_wait(struct session *s, uint32_t seen, int timeout_ms)
{
	bool soon = session_turns_look(s);
	struct timespec ts = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};

	if (soon && s->looks < LOOKS_MOST)
		s->looks++;
	if (soon && s->looks < LOOKS_AT_ONCE) {
		sched_yield();
		return;
	}
	if (soon)
		ts = (struct timespec){0, LOOK_NS << (s->looks - LOOKS_AT_ONCE)};
	__atomic_store_n(&s->head->machine_asleep, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&s->head->pending, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &s->head->machine_wake, FUTEX_WAIT, seen,
			timeout_ms < 0 && !soon ? NULL : &ts, NULL, 0);
	__atomic_store_n(&s->head->machine_asleep, 0, __ATOMIC_SEQ_CST);
}

int session_step(struct session *s, int timeout_ms)
{
	uint32_t seen;

	if (s->over)
		return 1;
	seen = __atomic_load_n(&s->head->machine_wake, __ATOMIC_SEQ_CST);
	if (session_serve_all(s)) {
		s->looks = 0;
		session_release_due(s);
		return 0;
	}
	if (child_gone(s)) {
		session_serve_all(s);
		finish(s);
		return 1;
	}
	session_reap(s);
	session_release_due(s);
	machine_wait(s, seen, timeout_ms);
	return 0;
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
	for (unsigned i = 0; i < s->nprocs; i++)
		if (s->procs[i].base && !s->procs[i].dead) {
			facts->faults += s->procs[i].seg->faults;
			facts->lacks |= s->procs[i].seg->lacks;
		}
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
	snprintf(h->regs_isa, sizeof(h->regs_isa), "%s", quipu_isa_name(m->isa));
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
		rc = watch_open(s);
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

/* They need to know which pages were accessed. */
#define PAGE_ACTIVITIES                                                                            \
	(1u << QUIPU_ACTIVITY_PAGE_FAULT | 1u << QUIPU_ACTIVITY_PAGE_UNMAP |                       \
	 1u << QUIPU_ACTIVITY_PAGE_PROTECT)

int session_attach(struct session *s, struct quipu_system *system,
		   void (*task_new)(void *, struct quipu_task *), void *arg)
{
	s->system = system;
	s->core = quipu_system_core(system);
	s->head->watches = quipu_system_watches(system);
	if (s->head->watches & PAGE_ACTIVITIES)
		s->head->features |= SEG_PAGES;
	s->task_new = task_new;
	s->task_arg = arg;
	return session_begin_task(s);
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
		session_close_house(s);
	if (s->bell_fd >= 0)
		close(s->bell_fd);
	if (s->watching) {
		close(s->stop_fd[1]);
		s->stop_fd[1] = -1;
		pthread_join(s->watcher, NULL);
	}
	for (unsigned i = 0; i < s->nprocs; i++)
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
