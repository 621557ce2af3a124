/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client sees of an event's descriptor, with software events alone, so that the host's
 * kernel can be asked the same: perf ABI sheet D6, the cases of the descriptor layer. Run it
 * plainly and under `quipu exec`: TAP, the same answers. A case that this host refuses (paranoid)
 * is skipped there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static int number, failed;
static char why[256];

static bool wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

static int sys_open(struct perf_event_attr *a, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, a, pid, cpu, group, flags);
}

static struct perf_event_attr clock_attr(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

static int open_clock(void)
{
	struct perf_event_attr a = clock_attr();

	return sys_open(&a, 0, -1, -1, 0);
}

/* CPU time, for a busy host takes its share of any other; spent in user mode, where samples are
 * taken. */
static void burn(unsigned ms)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do {
		for (volatile unsigned i = 0; i < 20000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static bool fails_with(long rc, int err, const char *what)
{
	return (rc == -1 && errno == err) ||
	       wrong("%s: %ld %s, want %s", what, rc, strerrorname_np(errno), strerrorname_np(err));
}

/* ---- open ---- */

static bool lowest_number(void)
{
	int a = dup(0), b, fd;

	b = dup(0);
	close(a);
	fd = open_clock();
	close(b);
	close(fd);
	return fd == a || wrong("descriptor %d, the lowest free was %d", fd, a);
}

static bool no_descriptor_left(void)
{
	struct rlimit old, none;
	int top = dup(0), fd, err;

	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = (rlim_t)top;
	close(top);
	setrlimit(RLIMIT_NOFILE, &none);
	fd = open_clock();
	err = errno;
	setrlimit(RLIMIT_NOFILE, &old);
	errno = err;
	return fails_with(fd, EMFILE, "open");
}

static bool cloexec(void)
{
	struct perf_event_attr a = clock_attr();
	int with = sys_open(&a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC),
	    without = sys_open(&a, 0, -1, -1, 0);
	bool ok = fcntl(with, F_GETFD) == FD_CLOEXEC && !fcntl(without, F_GETFD);

	close(with);
	close(without);
	return ok || wrong("F_GETFD");
}

static bool bad_pointers(void)
{
	uint64_t *nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_clock();
	uint64_t count;
	bool ok = fails_with(sys_open((void *)nowhere, 0, -1, -1, 0), EFAULT, "attr") &&
		  fails_with(ioctl(fd, PERF_EVENT_IOC_ID, NULL), EFAULT, "ID") &&
		  fails_with(read(fd, nowhere, 64), EFAULT, "read");

	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	for (int i = 0; i < 3; i++) /* what it holds is known without asking anybody, too */
		ok = ok && (read(fd, &count, 8) == 8 || wrong("read"));
	ok = ok && fails_with(read(fd, nowhere, 64), EFAULT, "read of a disabled event");
	close(fd);
	munmap(nowhere, PAGE);
	return ok;
}

static bool size_back(void)
{
	struct perf_event_attr a = clock_attr();

	a.size = 63;
	return fails_with(sys_open(&a, 0, -1, -1, 0), E2BIG, "size 63") &&
	       (a.size >= 128 || wrong("size %u written back", a.size));
}

static bool groups_of_others(void)
{
	struct perf_event_attr a = clock_attr();

	return fails_with(sys_open(&a, 0, -1, 0, 0), EBADF, "group 0") &&
	       fails_with(sys_open(&a, 0, -1, 99, 0), EBADF, "group 99") &&
	       fails_with(sys_open(&a, 0, -1, -2, 0), EBADF, "group -2");
}

/* ---- read, ioctl ---- */

static bool no_partial_read(void)
{
	struct perf_event_attr a = clock_attr();
	uint64_t v[8];
	bool ok;
	int fd;

	a.read_format =
		PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
	fd = sys_open(&a, 0, -1, -1, 0);
	ok = fails_with(read(fd, v, 24), ENOSPC, "short read") &&
	     (read(fd, v, sizeof(v)) == 32 || wrong("long read"));
	close(fd);
	return ok;
}

static bool stands_when_disabled(void)
{
	int fd = open_clock();
	uint64_t a = 0, b = 0, c = 0;

	burn(20);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &a, 8) != 8 || read(fd, &b, 8) != 8)
		return wrong("read");
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	burn(20);
	if (read(fd, &c, 8) != 8)
		return wrong("read");
	close(fd);
	return (a && a == b && c > b) || wrong("%llu %llu %llu", (unsigned long long)a,
					       (unsigned long long)b, (unsigned long long)c);
}

static bool not_a_file(void)
{
	int fd = open_clock();
	bool ok = fails_with(lseek(fd, 0, SEEK_SET), ESPIPE, "lseek") &&
		  fails_with(write(fd, "x", 1), EINVAL, "write") &&
		  fails_with(ioctl(fd, 0x240c), ENOTTY, "unknown ioctl");

	close(fd);
	return ok;
}

static bool after_dup(void)
{
	int fd = open_clock(), free_number = fd + 1, copy, other;
	uint64_t nothing[4];
	bool bad = read(free_number, nothing, sizeof(nothing)) < 0 && errno == EBADF;
	uint64_t id = 0, id2 = 1, id3 = 2;

	copy = dup(fd);
	other = dup2(fd, copy + 7);
	bad = bad && copy == free_number && read(copy, nothing, sizeof(nothing)) == 8;
	ioctl(fd, PERF_EVENT_IOC_ID, &id);
	close(fd);
	ioctl(copy, PERF_EVENT_IOC_ID, &id2);
	ioctl(other, PERF_EVENT_IOC_ID, &id3);
	close(copy);
	close(other);
	return (bad && id && id == id2 && id == id3) || wrong("ids differ, or no number is free");
}

static bool sent_to_another(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (char[1]){0}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	int pair[2], fd = open_clock(), status;
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	if (!fork()) {
		uint64_t v = 0;
		int got;

		close(fd);
		close(pair[0]);
		if (recvmsg(pair[1], &m, 0) != 1)
			_exit(1);
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(got));
		_exit(read(got, &v, 8) == 8 && !ioctl(got, PERF_EVENT_IOC_DISABLE, 0) ? 0 : 2);
	}
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	sendmsg(pair[0], &m, 0);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	wait(&status);
	return !status || wrong("the receiver ended with %#x", status);
}

static bool over_fork_and_exec(void)
{
	int fd = open_clock(), status;
	char text[16];

	if (!fork()) {
		uint64_t v;

		_exit(read(fd, &v, 8) == 8 ? 0 : 1);
	}
	wait(&status);
	if (status)
		return wrong("the child cannot read it");
	if (!fork()) {
		snprintf(text, sizeof(text), "%d", fd);
		execl("/proc/self/exe", "descriptor", text, NULL);
		_exit(9);
	}
	wait(&status);
	close(fd);
	return !status || wrong("the program that inherits it: %#x", status);
}

/* ---- tasks ---- */

static bool of_another_task(void)
{
	struct perf_event_attr a = clock_attr();
	int go[2], status, fd;
	uint64_t v = 0;
	struct pollfd p;
	pid_t child;
	void *ring;

	if (pipe(go))
		return wrong("pipe");
	child = fork();
	if (!child) {
		char c;

		if (read(go[0], &c, 1) == 1)
			burn(10);
		_exit(0);
	}
	a.disabled = 0;
	fd = sys_open(&a, child, -1, -1, 0);
	if (fd < 0)
		return wrong("open: %s", strerror(errno));
	ring = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p = (struct pollfd){.fd = fd, .events = POLLIN};
	if (poll(&p, 1, 0))
		return wrong("poll while it lives: %#x", p.revents);
	if (write(go[1], "g", 1) != 1 || waitpid(child, &status, 0) != child)
		return wrong("wait");
	if (poll(&p, 1, 2000) != 1 || p.revents != POLLHUP)
		return wrong("poll after its end: %#x", p.revents);
	if (read(fd, &v, 8) != 8)
		return wrong("read after its end");
	munmap(ring, 2 * PAGE);
	close(fd);
	close(go[0]);
	close(go[1]);
	return true;
}

static bool nobody(void)
{
	struct perf_event_attr a = clock_attr();

	return fails_with(sys_open(&a, 4194303, -1, -1, 0), ESRCH, "pid 4194303");
}

static bool own_events_by_prctl(void)
{
	int fd = open_clock();
	uint64_t a = 0, b = 0, c = 0;

	if (prctl(PR_TASK_PERF_EVENTS_DISABLE) || read(fd, &a, 8) != 8)
		return wrong("disable");
	burn(10);
	if (read(fd, &b, 8) != 8 || prctl(PR_TASK_PERF_EVENTS_ENABLE))
		return wrong("enable");
	burn(20);
	if (read(fd, &c, 8) != 8)
		return wrong("read");
	close(fd);
	return (a == b && c > b) || wrong("%llu %llu %llu", (unsigned long long)a,
					  (unsigned long long)b, (unsigned long long)c);
}

/* ---- mappings, poll ---- */

static bool map_rules(void)
{
	int fd = open_clock();
	char *m = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool ok = fails_with((long)m, EINVAL, "1+3 pages");

	ok = ok && fails_with((long)mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL,
			      "MAP_PRIVATE");
	m = ok ? mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (ok && m == MAP_FAILED)
		ok = wrong("1+8 pages: %s", strerror(errno));
	ok = ok && fails_with((long)mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
			      EINVAL, "another size");
	ok = ok && (!munmap(m, 9 * PAGE) || wrong("munmap"));
	close(fd);
	return ok;
}

static bool part_of_mapping(void)
{
	int fd = open_clock();
	char *m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool ok = m != MAP_FAILED && fails_with(munmap(m + PAGE, PAGE), EINVAL, "munmap");

	ok = ok && (!munmap(m, 9 * PAGE) || wrong("munmap of all"));
	close(fd);
	return ok;
}

static bool control_page(void)
{
	int fd = open_clock();
	struct perf_event_mmap_page *p =
		mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool ok = p != MAP_FAILED && p->size >= 96 && p->data_offset == PAGE &&
		  p->data_size == 8 * PAGE && !p->version;

	if (p != MAP_FAILED)
		munmap(p, 9 * PAGE);
	close(fd);
	return ok || wrong("constants of the control page");
}

static bool poll_without_ring(void)
{
	struct pollfd p = {.fd = open_clock(), .events = POLLIN};
	int n = poll(&p, 1, 0);

	close(p.fd);
	return (n == 1 && p.revents == POLLHUP) || wrong("%d %#x", n, p.revents);
}

static bool not_over_fork(void)
{
	int fd = open_clock(), status;
	char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char there;

	if (!fork())
		_exit(mincore(m, PAGE, &there) == -1 && errno == ENOMEM ? 0 : 1);
	wait(&status);
	munmap(m, 2 * PAGE);
	close(fd);
	return !status || wrong("the child has the mapping");
}

static bool outputs(void)
{
	int a = open_clock(), b = open_clock();
	char *m;
	bool ok = fails_with(ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, a), EINVAL,
			     "target without buffer") &&
		  fails_with(ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, 0), EBADF,
			     "target that is no event");

	m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
	ok = ok && (!ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, a) || wrong("SET_OUTPUT"));
	ok = ok && (!ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, -1L) || wrong("detach"));
	munmap(m, 2 * PAGE);
	close(a);
	close(b);
	return ok;
}

static bool after_close(void)
{
	int fd = open_clock();
	struct perf_event_mmap_page *p =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	return (p != MAP_FAILED && p->data_size == PAGE && !munmap(p, 2 * PAGE)) ||
	       wrong("a mapping outlives its descriptor");
}

/* ---- overflow ---- */

static volatile sig_atomic_t overflows, last_fd, last_code;
static volatile long last_band;

static void on_overflow(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	overflows++;
	last_fd = info->si_fd;
	last_code = info->si_code;
	last_band = info->si_band;
}

static int open_sampling(uint64_t period)
{
	struct perf_event_attr a = clock_attr();

	a.sample_period = period;
	a.sample_type = PERF_SAMPLE_IP;
	a.wakeup_events = 1;
	a.disabled = 1;
	return sys_open(&a, 0, -1, -1, 0);
}

static bool signal_per_overflow(void)
{
	struct sigaction sa = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};
	int fd = open_sampling(2000000);
	void *m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t count[8] = {0};

	sigaction(SIGRTMIN + 2, &sa, NULL);
	overflows = 0;
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
	fcntl(fd, F_SETOWN_EX, &owner);
	fcntl(fd, F_SETSIG, SIGRTMIN + 2);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	burn(100);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, count, sizeof(count)) < (ssize_t)sizeof(count[0]))
		return wrong("read: %s", strerror(errno));
	munmap(m, 9 * PAGE);
	close(fd);
	if (overflows < 5 || (uint64_t)overflows > count[0] / 2000000 + 1)
		return wrong("%d signals of period 2 ms, and a count of %llu ns", (int)overflows,
			     (unsigned long long)count[0]);
	if (last_fd != fd || last_code != POLL_IN || !(last_band & POLLIN))
		return wrong("si_fd %d (%d), si_code %d, si_band %#lx", (int)last_fd, fd,
			     (int)last_code, last_band);
	return true;
}

static bool refresh_runs_out(void)
{
	struct sigaction sa = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};
	int fd = open_sampling(2000000), counting = open_clock();
	void *m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool ok = fails_with(ioctl(counting, PERF_EVENT_IOC_REFRESH, 1), EINVAL,
			     "REFRESH of a counting event");

	sigaction(SIGRTMIN + 2, &sa, NULL);
	overflows = 0;
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
	fcntl(fd, F_SETOWN_EX, &owner);
	fcntl(fd, F_SETSIG, SIGRTMIN + 2);
	ioctl(fd, PERF_EVENT_IOC_REFRESH, 3);
	burn(150);
	munmap(m, 9 * PAGE);
	close(fd);
	close(counting);
	return ok && (overflows == 3 || wrong("%d signals after REFRESH(3)", (int)overflows)) &&
	       ((last_code == POLL_HUP && last_band & POLLHUP) ||
		wrong("the last: si_code %d, si_band %#lx", (int)last_code, last_band));
}

static bool wake_once(void)
{
	struct pollfd p = {.fd = open_sampling(5000000), .events = POLLIN};
	void *m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0);
	int first, second;

	ioctl(p.fd, PERF_EVENT_IOC_ENABLE, 0);
	burn(30);
	ioctl(p.fd, PERF_EVENT_IOC_DISABLE, 0);
	first = poll(&p, 1, 0) == 1 ? p.revents : 0;
	second = poll(&p, 1, 0);
	munmap(m, 9 * PAGE);
	close(p.fd);
	return ((first & POLLIN) && !second) || wrong("first %#x, then %d", first, second);
}

/* What hangs up is readable to select. */
static bool select_sees(void)
{
	struct timeval none = {0};
	int fd = open_sampling(5000000), hup, before, after;
	void *m;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	hup = select(fd + 1, &set, NULL, NULL, &none);
	m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	before = select(fd + 1, &set, NULL, NULL, &none);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	burn(30);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	after = select(fd + 1, &set, NULL, NULL, &none);
	munmap(m, 9 * PAGE);
	close(fd);
	return (hup == 1 && !before && after == 1 && FD_ISSET(fd, &set)) ||
	       wrong("without a buffer %d, with one %d, then %d", hup, before, after);
}

/* As often as the kernel says it, for each wake-up once; and what hangs up says so each time. */
static bool epoll_sees(void)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 77}, got[4];
	int fd = open_sampling(5000000), ep = epoll_create1(EPOLL_CLOEXEC), hup, again, before,
	    after, once;
	bool ok = true;
	void *m;

	ok = !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) || wrong("ADD: %s", strerror(errno));
	hup = epoll_wait(ep, got, 4, 0);
	ok = ok && (hup != 1 || (got[0].events == EPOLLHUP && got[0].data.u64 == 77) ||
		    wrong("without a buffer: %#x", got[0].events));
	again = epoll_wait(ep, got, 4, -1);
	m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	before = epoll_wait(ep, got, 4, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	burn(30);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	after = epoll_wait(ep, got, 4, 60000);
	ok = ok && (after != 1 || (got[0].events == EPOLLIN && got[0].data.u64 == 77) ||
		    wrong("after a wake-up: %#x", got[0].events));
	once = epoll_wait(ep, got, 4, 0);
	munmap(m, 9 * PAGE);
	close(fd);
	ok = ok && (!epoll_wait(ep, got, 4, 0) || wrong("one that is closed"));
	close(ep);
	return ok && ((hup == 1 && again == 1 && !before && after == 1 && !once) ||
		      wrong("without a buffer %d, %d, with one %d, then %d, %d", hup, again, before,
			    after, once));
}

/* A descriptor that comes after another has nothing of it: no wake-up, no owner, no flag. */
static bool nothing_left_of_another(void)
{
	struct pollfd p = {.events = POLLIN};
	bool ok = true;

	for (int i = 0; i < 3 && ok; i++) {
		void *m;

		p.fd = open_sampling(5000000);
		m = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0);
		if (p.fd < 0 || m == MAP_FAILED)
			return wrong("open or mmap: %s", strerror(errno));
		ok = (!poll(&p, 1, 0) ||
		      wrong("time %d: %#x before it is enabled", i, p.revents)) &&
		     (!(fcntl(p.fd, F_GETFL) & O_ASYNC) || wrong("time %d: O_ASYNC", i)) &&
		     (!fcntl(p.fd, F_GETOWN) || wrong("time %d: it has an owner", i));
		ioctl(p.fd, PERF_EVENT_IOC_ENABLE, 0);
		burn(20);
		ioctl(p.fd, PERF_EVENT_IOC_DISABLE, 0);
		fcntl(p.fd, F_SETOWN, getpid());
		signal(SIGIO, SIG_IGN);
		fcntl(p.fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
		munmap(m, 9 * PAGE);
		close(p.fd);
	}
	signal(SIGIO, SIG_DFL);
	return ok;
}

/* ---- reads without a round trip, and calls that are not waited for ---- */

struct times {
	uint64_t value, enabled, running;
};

static bool grows(const struct times *from, const struct times *to)
{
	return (to->value >= from->value && to->enabled >= from->enabled &&
		to->running >= from->running && to->running <= to->enabled) ||
	       wrong("%llu %llu %llu, then %llu %llu %llu", (unsigned long long)from->value,
		     (unsigned long long)from->enabled, (unsigned long long)from->running,
		     (unsigned long long)to->value, (unsigned long long)to->enabled,
		     (unsigned long long)to->running);
}

static int open_timed(pid_t pid, int cpu)
{
	struct perf_event_attr a = clock_attr();

	a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	a.exclude_kernel = a.exclude_hv = 0;
	a.config = cpu < 0 ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_CPU_CLOCK;
	return sys_open(&a, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Another event comes and goes between: what a client was told of the first holds no longer. */
static bool grows_between_others(void)
{
	struct times last = {0}, t;
	int fd = open_timed(0, -1);
	bool ok = fd >= 0 || wrong("open: %s", strerrorname_np(errno));

	for (int i = 0; i < 2000 && ok; i++) {
		ok = read(fd, &t, sizeof(t)) == sizeof(t) && grows(&last, &t);
		last = t;
		if (i % 100 == 50)
			close(open_timed(0, -1));
		if (i % 100 == 75)
			usleep(100);
	}
	ok = ok && (last.value > 0 || wrong("it counted nothing"));
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	ok = ok && read(fd, &last, sizeof(last)) == sizeof(last);
	burn(2);
	ok = ok && read(fd, &t, sizeof(t)) == sizeof(t) &&
	     (!memcmp(&t, &last, sizeof(t)) || wrong("it goes on when disabled"));
	close(fd);
	return ok;
}

/* A process that reads when it is told to, and hands over what it read. */
static pid_t start_reader(int fd, const int ask[2], const int answer[2])
{
	pid_t pid = fork();
	struct times t;
	char go;

	if (pid)
		return pid;
	close(ask[1]);
	while (read(ask[0], &go, 1) == 1)
		if (read(fd, &t, sizeof(t)) != sizeof(t) ||
		    write(answer[1], &t, sizeof(t)) != sizeof(t))
			_exit(1);
	_exit(0);
}

static bool by_reader(const int ask[2], const int answer[2], struct times *t)
{
	return (write(ask[1], "", 1) == 1 && read(answer[0], t, sizeof(*t)) == sizeof(*t)) ||
	       wrong("the reader is gone");
}

/* An event of a CPU is what whoever switched it last made of it, whoever looks. */
static bool switched_for_all(void)
{
	int fd = open_timed(-1, 0), ask[2], answer[2], status;
	struct times off, on, again, other;
	bool ok = true;
	pid_t pid;

	if (fd < 0 && errno == EACCES)
		return true; /* not this user's on this host */
	if (fd < 0 || pipe(ask) || pipe(answer))
		return wrong("open: %s", strerrorname_np(errno));
	pid = start_reader(fd, ask, answer);
	for (int i = 0; i < 50 && ok; i++) {
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		ok = by_reader(ask, answer, &off) && read(fd, &again, sizeof(again)) > 0 &&
		     (!memcmp(&off, &again, sizeof(off)) || wrong("the reader saw it go on"));
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		ok = ok && by_reader(ask, answer, &on) && read(fd, &other, sizeof(other)) > 0 &&
		     grows(&off, &on) && grows(&on, &other) &&
		     (on.enabled > off.enabled || wrong("the reader saw it stand"));
	}
	close(ask[1]);
	waitpid(pid, &status, 0);
	close(ask[0]);
	close(answer[0]);
	close(answer[1]);
	close(fd);
	return ok;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* *@v: what the event counted of *@on ns of CPU time between its switches; *@off beside them. */
static bool switch_often(uint64_t *v, uint64_t *on, uint64_t *off)
{
	struct perf_event_attr a = clock_attr();
	uint64_t from;
	bool ok = true;
	int fd;

	a.disabled = 1;
	fd = sys_open(&a, 0, -1, -1, 0);
	*on = 0;
	*off = cpu_ns();
	for (int i = 0; i < 20 && ok; i++) {
		from = cpu_ns();
		ok = !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		burn(2);
		ok = ok && !ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		*on += cpu_ns() - from;
		burn(2);
	}
	*off = cpu_ns() - *off - *on;
	ok = ok && read(fd, v, sizeof(*v)) == sizeof(*v);
	close(fd);
	return ok;
}

/*
 * CPU time, so that it does not matter what else the host does. But a kernel's event also counts
 * what its interrupts and hypervisor took meanwhile, and the thread's clock does not: some tries.
 */
static bool switched_by_itself(void)
{
	uint64_t v = 0, on = 0, off = 0;

	for (int i = 0; i < 10; i++)
		if (switch_often(&v, &on, &off) && v < on + off / 4 && v > on - on / 4)
			return true;
	return wrong("%llu ns counted, %llu on, %llu off", (unsigned long long)v,
		     (unsigned long long)on, (unsigned long long)off);
}

static const struct {
	const char *name;
	bool (*fn)(void);
} tests[] = {
	{"the descriptor has the lowest free number", lowest_number},
	{"no descriptor left is EMFILE", no_descriptor_left},
	{"FD_CLOEXEC shows in F_GETFD", cloexec},
	{"bad pointers are EFAULT", bad_pointers},
	{"a wrong size is E2BIG and the right one is written back", size_back},
	{"a group that is no event is EBADF", groups_of_others},
	{"a short buffer is ENOSPC, a long one is not filled", no_partial_read},
	{"a disabled event stands still", stands_when_disabled},
	{"lseek, write and unknown ioctls are refused", not_a_file},
	{"copies of the descriptor are the same event", after_dup},
	{"a descriptor passed by message is read and controlled by the receiver", sent_to_another},
	{"a descriptor is inherited over fork and exec", over_fork_and_exec},
	{"an event of another task hangs up at its end and stays readable", of_another_task},
	{"a task that is not there is ESRCH", nobody},
	{"prctl switches one's own events", own_events_by_prctl},
	{"mappings: sizes, sharing", map_rules},
	{"a part of a mapping cannot be unmapped", part_of_mapping},
	{"the control page's constants", control_page},
	{"poll without a buffer is POLLHUP", poll_without_ring},
	{"a mapping is not inherited", not_over_fork},
	{"SET_OUTPUT: refusals, attach and detach", outputs},
	{"a mapping outlives its descriptor", after_close},
	{"O_ASYNC: a signal for each overflow, with its descriptor", signal_per_overflow},
	{"REFRESH(3): three overflows and no more", refresh_runs_out},
	{"poll tells of a wake-up once", wake_once},
	{"select sees what poll does", select_sees},
	{"epoll sees what poll does", epoll_sees},
	{"nothing is left of the event before", nothing_left_of_another},
	{"reads grow while it is enabled, and stand when it is not", grows_between_others},
	{"an event of a CPU is off or on for all who look", switched_for_all},
	{"a thread's own switches count what it runs between them", switched_by_itself},
};

/* What differs below `quipu exec --seccomp`, as src/client/README.md has it. */
static const struct {
	bool (*fn)(void);
	const char *why;
} other_below_seccomp[] = {
	{lowest_number, "events have numbers from 700"},
	{sent_to_another, "a received descriptor has a number that is not looked at"},
	{part_of_mapping, "munmap is not looked at"},
	{refresh_runs_out, "the last signal of a REFRESH says POLL_IN"},
};

static const char *differs(bool (*fn)(void))
{
	for (size_t i = 0; i < sizeof(other_below_seccomp) / sizeof(other_below_seccomp[0]); i++)
		if (other_below_seccomp[i].fn == fn)
			return other_below_seccomp[i].why;
	return NULL;
}

int main(int argc, char **argv)
{
	size_t n = sizeof(tests) / sizeof(tests[0]);
	bool seccomp = argc == 2 && !strcmp(argv[1], "--seccomp");
	int fd;

	if (argc == 2 && !seccomp) { /* the program that inherits a descriptor */
		uint64_t v;

		return read(atoi(argv[1]), &v, 8) == 8 ? 0 : 1;
	}
	fd = open_clock();
	if (fd < 0) {
		printf("1..0 # SKIP perf_event_open: %s\n", strerror(errno));
		return 0;
	}
	close(fd);
	printf("1..%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		const char *other = seccomp ? differs(tests[i].fn) : NULL;
		bool ok = other || tests[i].fn();

		if (other) {
			printf("ok %d - %s # SKIP %s\n", ++number, tests[i].name, other);
			continue;
		}
		printf("%sok %d - %s\n", ok ? "" : "not ", ++number, tests[i].name);
		if (!ok)
			printf("# %s\n", why);
		failed += !ok;
		fflush(stdout);
	}
	return failed != 0;
}
