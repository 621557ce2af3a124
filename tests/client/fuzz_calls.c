/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_calls SEED SECONDS GUEST: a client that does at random what perf_event clients do: opens
 * with any attributes, on itself, its children, a program under the engine, CPUs; ioctl, read,
 * poll, epoll, mmap, scribbles over the control page, dup, fork, kill, exec. Whatever the machine
 * answers is right as long as it answers (perf ABI sheet D6 101; hostile.py judges). Prints the
 * number of calls and of events that could be opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	 4096u
#define FDS	 48
#define RINGS	 24
#define CHILDREN 6

static uint64_t state;
static unsigned long calls, opened;
static const char *guest;
static int fds[FDS], ep;
static struct {
	uint8_t *mem;
	size_t bytes;
	bool writable;
} rings[RINGS];
static pid_t children[CHILDREN];

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t below(uint64_t n)
{
	return any() % n;
}

/* Values at the edges, small ones, and any. */
static uint64_t word(void)
{
	static const uint64_t edges[] = {0,	   1,	       2,	 7,	     8,
					 4095,	   4096,       0xffff,	 0x7fffffff, 0xffffffff,
					 1u << 31, UINT64_MAX, INT64_MAX};

	switch (below(4)) {
	case 0: return edges[below(sizeof(edges) / sizeof(*edges))];
	case 1: return below(64);
	case 2: return UINT64_C(1) << below(64);
	default: return any();
	}
}

/* Few of @bits bits are set. */
static uint64_t sparse(unsigned bits)
{
	uint64_t v = any() & any();

	if (below(2))
		v &= any() & any();
	return bits < 64 ? v & ((UINT64_C(1) << bits) - 1) : v;
}

static void any_attr(uint8_t bytes[256])
{
	static const uint32_t types[] = {0, 0, 1, 1, 1, 3, 4, 4, 6, 7, 2, 5};
	static const uint32_t sizes[] = {128, 128, 128, 136, 64, 0, 112, 144, 200};
	struct perf_event_attr a = {
		.type = types[below(sizeof(types) / sizeof(*types))],
		.size = sizes[below(sizeof(sizes) / sizeof(*sizes))],
		.config = below(4) ? below(12) : word(),
		.sample_period = below(3) ? below(2) ? 0 : 1000 + below(1000000) : word(),
		.sample_type = below(4) ? sparse(25) : word(),
		.read_format = below(4) ? below(32) : word(),
		.wakeup_events = (uint32_t)(below(2) ? below(4) : word()),
		.branch_sample_type = below(4) ? 0 : word(),
		.sample_regs_user = below(4) ? 7 : word(),
		.sample_stack_user = (uint32_t)(below(4) ? 8 * below(64) : word()),
		.clockid = (int32_t)(below(2) ? 1 : word()),
		.sample_regs_intr = below(4) ? 7 : word(),
	};
	uint64_t flags = below(8) ? sparse(38) : word();

	memset(bytes, 0, 256);
	memcpy(bytes, &a, sizeof(a));
	memcpy(bytes + 40, &flags, 8);
	for (uint64_t n = below(8) ? 0 : below(4); n; n--)
		bytes[below(256)] = (uint8_t)any();
}

static pid_t any_pid(void)
{
	switch (below(8)) {
	case 0: return -1;
	case 1: return (pid_t)word();
	case 2: return getppid();
	case 3:
	case 4: return children[below(CHILDREN)];
	default: return 0;
	}
}

static int *any_fd(void)
{
	return &fds[below(FDS)];
}

static void do_open(void)
{
	uint8_t bytes[256];
	int *slot = any_fd(), group = below(3) ? -1 : *any_fd(),
	    cpu = below(3) ? -1 : (int)below(10) - 1;
	uint64_t flags = below(6) ? PERF_FLAG_FD_CLOEXEC : word() & 15;
	int fd;

	any_attr(bytes);
	fd = (int)syscall(SYS_perf_event_open, below(200) ? bytes : (void *)8, any_pid(), cpu,
			  group, flags);
	if (fd < 0)
		return;
	opened++;
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
	if (!below(4)) {
		struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	}
}

static void do_ioctl(void)
{
	static const unsigned long commands[] = {
		PERF_EVENT_IOC_ENABLE,	   PERF_EVENT_IOC_ENABLE,
		PERF_EVENT_IOC_DISABLE,	   PERF_EVENT_IOC_REFRESH,
		PERF_EVENT_IOC_RESET,	   PERF_EVENT_IOC_PERIOD,
		PERF_EVENT_IOC_SET_OUTPUT, PERF_EVENT_IOC_SET_OUTPUT,
		PERF_EVENT_IOC_SET_FILTER, PERF_EVENT_IOC_ID,
		PERF_EVENT_IOC_SET_BPF,	   PERF_EVENT_IOC_PAUSE_OUTPUT,
		PERF_EVENT_IOC_QUERY_BPF,  PERF_EVENT_IOC_MODIFY_ATTRIBUTES};
	unsigned long command = below(16) ? commands[below(14)] : 0x2400 | (word() & 0xff);
	uint64_t value[64] = {below(2) ? 1000 + below(100000) : word()}, arg = word();

	if (command == PERF_EVENT_IOC_SET_OUTPUT)
		arg = below(4) ? (uint64_t)*any_fd() : UINT64_MAX;
	else if (command == PERF_EVENT_IOC_ENABLE || command == PERF_EVENT_IOC_DISABLE ||
		 command == PERF_EVENT_IOC_RESET || command == PERF_EVENT_IOC_REFRESH)
		arg = below(3);
	else if (below(16))
		arg = (uint64_t)(uintptr_t)value;
	ioctl(*any_fd(), command, arg);
}

static void do_read(void)
{
	static uint8_t out[1 << 16];
	ssize_t n = read(*any_fd(), below(64) ? out : (void *)8, below(2) ? 24 : word() & 0xffff);

	if (n > (ssize_t)sizeof(out))
		abort();
}

static void do_map(void)
{
	unsigned slot = (unsigned)below(RINGS);
	size_t pages = below(4) ? 1 + (UINT64_C(1) << below(5)) : below(40);
	bool writable = below(4);
	void *m;

	if (rings[slot].mem) {
		if (below(8))
			munmap(rings[slot].mem, rings[slot].bytes);
		else if (munmap(rings[slot].mem + PAGE, PAGE) == 0)
			return; /* it was one page, and what lies behind is another's */
		rings[slot].mem = NULL;
		return;
	}
	m = mmap(NULL, pages * PAGE, writable ? PROT_READ | PROT_WRITE : PROT_READ,
		 below(16) ? MAP_SHARED : MAP_PRIVATE, *any_fd(), below(16) ? 0 : PAGE);
	if (m == MAP_FAILED)
		return;
	rings[slot].mem = m;
	rings[slot].bytes = pages * PAGE;
	rings[slot].writable = writable;
}

/* The control page is the client's to write, wherever it likes. */
static void do_scribble(void)
{
	unsigned slot = (unsigned)below(RINGS);
	uint8_t *m = rings[slot].mem;

	if (!m || !rings[slot].writable)
		return;
	if (below(2)) {
		uint64_t tail;

		memcpy(&tail, m + 1024, 8);
		memcpy(m + 1032, &tail, 8);
		return;
	}
	for (uint64_t n = below(64); n; n--)
		m[below(2) ? 1024 + below(64) : below(PAGE)] = (uint8_t)any();
}

static void *work(void *unused)
{
	for (volatile unsigned i = 0; i < 200000; i++)
		;
	return unused;
}

static void do_thread(void)
{
	pthread_t t;

	if (!pthread_create(&t, NULL, work, NULL))
		pthread_join(t, NULL);
}

static void child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	switch (below(4)) {
	case 0: execl(guest, guest, NULL); break;
	case 1: execl("/bin/true", "true", NULL); break;
	case 2:
		for (unsigned i = 0; i < 20; i++)
			do_ioctl();
		break;
	default: work(NULL); pause();
	}
	_exit(0);
}

static void do_child(void)
{
	unsigned slot = (unsigned)below(CHILDREN);

	if (children[slot] > 0) {
		kill(children[slot], SIGKILL);
		waitpid(children[slot], NULL, 0);
	}
	children[slot] = fork();
	if (!children[slot])
		child();
}

static void do_other(void)
{
	struct pollfd p[4];
	struct epoll_event e[4];
	int *a, *b;

	switch (below(8)) {
	case 0:
		for (int i = 0; i < 4; i++)
			p[i] = (struct pollfd){.fd = *any_fd(), .events = (short)any()};
		poll(p, 4, 0);
		break;
	case 1: epoll_wait(ep, e, 4, 0); break;
	case 2:
		a = any_fd();
		b = any_fd();
		if (a != b && *a >= 0) {
			if (*b >= 0)
				close(*b);
			*b = dup(*a);
		}
		break;
	case 3: fcntl(*any_fd(), F_SETFL, below(2) ? O_ASYNC : 0); break;
	case 4: prctl(below(2) ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE); break;
	case 5: prctl(PR_SET_NAME, "a name"); break;
	case 6:
		a = any_fd();
		if (*a >= 0)
			close(*a);
		*a = -1;
		break;
	default: work(NULL);
	}
}

static void once(void)
{
	uint64_t what = below(100);

	calls++;
	if (what < 30)
		do_open();
	else if (what < 52)
		do_ioctl();
	else if (what < 66)
		do_read();
	else if (what < 78)
		do_map();
	else if (what < 84)
		do_scribble();
	else if (what < 98)
		do_other();
	else if (what < 99)
		do_thread();
	else if (!below(4))
		do_child();
}

int main(int argc, char **argv)
{
	time_t end;

	if (argc != 4)
		return 2;
	state = strtoull(argv[1], NULL, 0) * 2654435761u + 88172645463325252u;
	end = time(NULL) + atoi(argv[2]);
	guest = argv[3];
	for (int i = 0; i < FDS; i++)
		fds[i] = -1;
	ep = epoll_create1(EPOLL_CLOEXEC);
	signal(SIGIO, SIG_IGN);
	signal(SIGTRAP, SIG_IGN);
	if (!freopen("/dev/null", "r", stdin))
		return 2;
	while (time(NULL) < end)
		once();
	for (int i = 0; i < CHILDREN; i++)
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	printf("%lu %lu\n", calls, opened);
	return 0;
}
