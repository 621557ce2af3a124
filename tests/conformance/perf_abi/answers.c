/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers of perf_event_open(2), read, ioctl and poll: perf ABI sheet D6, cases 1-66 as far as
 * software events tell (answers.h). Rings and records are in answers_ring.c.
 */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rows.h"

#define NOBODY_UID 65534

/* ---- one step ---- */

void answer_number(const char *step, long long got, long long want)
{
	printf("%s: %lld, want %lld\n", step, got, want);
}

static const char *name_of(int err)
{
	return err ? strerrorname_np(err) : "ok";
}

void answer_errno(const char *step, long rc, int want)
{
	printf("%s: %s, want %s\n", step, name_of(rc < 0 ? errno : 0), name_of(want));
}

void answer_truth(const char *step, bool got)
{
	printf("%s: %s, want yes\n", step, got ? "yes" : "no");
}

void answer_poll(const char *step, int got, int want)
{
	printf("%s: %#x, want %#x\n", step, (unsigned)got, (unsigned)want);
}

/* ---- events ---- */

struct quipu_attr soft(uint64_t config, uint64_t flags)
{
	return (struct quipu_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = 128,
		.config = config,
		.flags = flags | QUIPU_ATTR_EXCLUDE_KERNEL,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

static struct quipu_attr task_clock(uint64_t flags)
{
	return soft(PERF_COUNT_SW_TASK_CLOCK, flags);
}

int open_event(const struct quipu_attr *a, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, a, pid, cpu, group, flags);
}

int must_open(struct quipu_attr a, int group)
{
	int fd = open_event(&a, 0, -1, group, 0);

	if (fd >= 0)
		return fd;
	perror("perf_event_open");
	exit(2);
}

struct times times_of(int fd)
{
	struct times t = {0};

	if (read(fd, &t, sizeof(t)) != sizeof(t))
		memset(&t, 0xff, sizeof(t));
	return t;
}

int poll_of(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void burn(unsigned ms)
{
	uint64_t until = thread_ns() + ms * UINT64_C(1000000);

	do
		for (volatile unsigned i = 0; i < 20000; i++)
			;
	while (thread_ns() < until);
}

/* ---- a child that does as it is told ---- */

static void child_execs(int go, int done)
{
	char from[16], to[16];

	snprintf(from, sizeof(from), "%d", go);
	snprintf(to, sizeof(to), "%d", done);
	execl("/proc/self/exe", "answers", "child", from, to, NULL);
	_exit(9);
}

static void child_forks(void)
{
	pid_t pid = fork();

	if (!pid) {
		burn(10);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int child_main(int go, int done)
{
	char what;

	while (read(go, &what, 1) == 1 && what != 'q') {
		if (what == 'b')
			burn(10);
		if (what == 'c')
			child_forks();
		if (what == 'n')
			prctl(PR_SET_NAME, "renamed");
		if (what == 'f')
			execl("/nowhere", "nowhere", NULL);
		if (what == 'e')
			child_execs(go, done); /* the program that follows answers */
		if (write(done, "", 1) != 1)
			return 1;
	}
	return 0;
}

struct child start_child(void)
{
	struct child c;
	int to[2], from[2];

	fflush(stdout);
	if (pipe(to) || pipe(from))
		exit(2);
	c = (struct child){.go = to[1], .done = from[0], .pid = fork()};
	if (!c.pid) {
		close(to[1]);
		close(from[0]);
		_exit(child_main(to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	return c;
}

bool step(struct child *c, char what)
{
	char done;

	return write(c->go, &what, 1) == 1 && read(c->done, &done, 1) == 1;
}

void end_child(struct child *c)
{
	if (write(c->go, "q", 1) != 1)
		exit(2);
	waitpid(c->pid, NULL, 0);
	close(c->go);
	close(c->done);
}

/* ---- open: cases 1-28 ---- */

static void one_row(const struct row *r)
{
	pid_t pid = r->who == SELF ? 0 : r->who == NOBODY ? -1 : 4194000;
	uint8_t bytes[8192] = {0}; /* what lies behind the attr is readable, and zeros */
	struct quipu_attr a = r->attr;
	int fd;

	a.type = r->type ? r->type : PERF_TYPE_SOFTWARE;
	a.config = r->config ? r->config : PERF_COUNT_SW_TASK_CLOCK;
	a.flags |= QUIPU_ATTR_EXCLUDE_KERNEL;
	a.size = r->size == ZERO_SIZE ? 0 : r->size ? r->size : 128;
	memcpy(bytes, &a, sizeof(a));
	if (r->poke)
		bytes[r->poke] = 1;
	fd = (int)syscall(SYS_perf_event_open, r->unreadable ? (void *)8 : bytes, pid, r->cpu, -1,
			  r->flags);
	answer_errno(r->name, fd, r->want);
	if (fd >= 0)
		close(fd);
}

static void size_written_back(void)
{
	struct quipu_attr a = task_clock(0);

	a.size = 63;
	open_event(&a, 0, -1, -1, 0);
	answer_number("02 size written back", a.size, 136);
	a.size = 4097;
	open_event(&a, 0, -1, -1, 0);
	answer_number("04 size written back", a.size, 136);
}

static void more_opens(void)
{
	struct quipu_attr a = task_clock(0), dummy = soft(PERF_COUNT_SW_DUMMY, 0),
			  inherits = task_clock(QUIPU_ATTR_INHERIT);
	int group, fd;

	answer_errno("15 group_fd 0", open_event(&a, 0, -1, 0, 0), EBADF);
	answer_errno("15 group_fd 99", open_event(&a, 0, -1, 99, 0), EBADF);
	answer_errno("15 group_fd -2", open_event(&a, 0, -1, -2, 0), EBADF);
	answer_errno("A4.20 before A4.21: no group and no task", open_event(&a, 4194000, -1, 99, 0),
		     EBADF);
	dummy.config = 99;
	answer_errno("A4.20 before A4.25: no group and no event", open_event(&dummy, 0, -1, 99, 0),
		     EBADF);
	answer_errno("A4.18 before A4.20: control group, no CPU and no group",
		     open_event(&a, 0, -1, 99, PERF_FLAG_PID_CGROUP), EINVAL);
	group = must_open(a, -1);
	answer_errno("A4.21 before A4.22: no task and another inherit",
		     open_event(&inherits, 4194000, -1, group, 0), ESRCH);
	answer_errno("A4.22 before A4.23: another inherit and no CPU",
		     open_event(&inherits, 0, 100000, group, 0), EINVAL);
	dummy = soft(99, 0);
	dummy.sample_type = PERF_SAMPLE_CALLCHAIN;
	dummy.sample_max_stack = 500;
	answer_errno("A4.25 before A4.26: no event and too deep a chain",
		     open_event(&dummy, 0, -1, -1, 0), ENOENT);
	dummy.config = PERF_COUNT_SW_DUMMY;
	answer_errno("A4.26 before A4.30: too deep a chain and another CPU's group",
		     open_event(&dummy, 0, 0, group, 0), EOVERFLOW);
	fd = open_event(&a, 0, -1, group, PERF_FLAG_FD_OUTPUT);
	answer_errno("A4.31 FD_OUTPUT to an event without a buffer", fd, EINVAL);
	close(group);
}

static void limits_of_descriptors(void)
{
	struct quipu_attr a = task_clock(0);
	int fd = open_event(&a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC),
	    dummy = must_open(soft(PERF_COUNT_SW_DUMMY, 0), -1); /* a clock's type is changed */

	answer_number("34 FD_CLOEXEC shows in F_GETFD", fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	fd = must_open(a, -1);
	answer_number("34 and is not there unasked", fcntl(fd, F_GETFD), 0);
	answer_errno("51 lseek", lseek(fd, 0, SEEK_SET), ESPIPE);
	answer_errno("51 write", write(fd, "x", 1), EINVAL);
	answer_errno("51 unknown ioctl", ioctl(fd, 0x240c), ENOTTY);
	answer_errno("51 ID to nowhere", ioctl(fd, PERF_EVENT_IOC_ID, NULL), EFAULT);
	answer_errno("A9 PERIOD of a counting event", ioctl(fd, PERF_EVENT_IOC_PERIOD, &a), EINVAL);
	answer_errno("A9 PERIOD from nowhere", ioctl(fd, PERF_EVENT_IOC_PERIOD, NULL), EFAULT);
	answer_errno("A9 SET_FILTER", ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "id == 1"), EINVAL);
	answer_errno("A9 SET_BPF of what is no program", ioctl(fd, PERF_EVENT_IOC_SET_BPF, 0),
		     EINVAL);
	a.type = PERF_TYPE_HARDWARE;
	answer_errno("A9 MODIFY_ATTRIBUTES to another type",
		     ioctl(dummy, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &a), EINVAL);
	a = soft(PERF_COUNT_SW_DUMMY, 0);
	answer_errno("A9 MODIFY_ATTRIBUTES of no breakpoint",
		     ioctl(dummy, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &a), EOPNOTSUPP);
	close(fd);
	close(dummy);
}

/* ---- permissions: case 35, at the level that is set here ---- */

static int paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 2;

	if (f && fscanf(f, "%d", &level) != 1)
		level = 2;
	if (f)
		fclose(f);
	return level;
}

static void as_nobody(void)
{
	static const struct {
		const char *step;
		bool task, others;
		uint64_t flags, type;
		int from; /* the least level that refuses it */
	} table[] = {
		{"35 own task, user mode", true, false, QUIPU_ATTR_EXCLUDE_KERNEL, 0, 3},
		{"35 own task, kernel", true, false, 0, 0, 2},
		{"35 a CPU", false, false, QUIPU_ATTR_EXCLUDE_KERNEL, 0, 1},
		{"35 another's task", true, true, QUIPU_ATTR_EXCLUDE_KERNEL, 0, -1},
		{"35 physical addresses", true, false, QUIPU_ATTR_EXCLUDE_KERNEL,
		 PERF_SAMPLE_PHYS_ADDR, 2},
		{"35 namespaces", true, false, QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_NAMESPACES, 0,
		 -1},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct quipu_attr a = task_clock(0);
		int fd;

		a.flags = table[i].flags;
		a.sample_type = table[i].type;
		fd = open_event(&a,
				table[i].others ? getppid()
				: table[i].task ? 0
						: -1,
				table[i].task ? -1 : 0, -1, 0);
		answer_errno(table[i].step, fd, paranoid() >= table[i].from ? EACCES : 0);
	}
	fflush(stdout);
}

static void permissions(void)
{
	pid_t pid;

	if (geteuid())
		return; /* only root can become another */
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID) &&
		    !setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID))
			as_nobody();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* ---- groups: cases 36-47 ---- */

static void groups_refused(void)
{
	struct quipu_attr a = task_clock(0),
			  clock = soft(PERF_COUNT_SW_DUMMY, QUIPU_ATTR_USE_CLOCKID),
			  pinned = task_clock(QUIPU_ATTR_PINNED),
			  exclusive = task_clock(QUIPU_ATTR_EXCLUSIVE),
			  inherits = task_clock(QUIPU_ATTR_INHERIT);
	int leader = must_open(a, -1), sibling = must_open(a, leader);
	struct child c = start_child();

	clock.clockid = CLOCK_MONOTONIC;
	answer_errno("36 sibling of a sibling", open_event(&a, 0, -1, sibling, 0), EINVAL);
	answer_errno("36 another CPU", open_event(&a, 0, 0, leader, 0), EINVAL);
	answer_errno("36 another task", open_event(&a, c.pid, -1, leader, 0), EINVAL);
	answer_errno("36 a CPU with a task", open_event(&a, -1, 0, leader, 0), EINVAL);
	answer_errno("36 another inherit", open_event(&inherits, 0, -1, leader, 0), EINVAL);
	answer_errno("36 pinned sibling", open_event(&pinned, 0, -1, leader, 0), EINVAL);
	answer_errno("36 exclusive sibling", open_event(&exclusive, 0, -1, leader, 0), EINVAL);
	answer_errno("36 another clock", open_event(&clock, 0, -1, leader, 0), EINVAL);
	end_child(&c);
	close(sibling);
	close(leader);
}

static void group_reads(void)
{
	struct quipu_attr a = task_clock(0);
	uint64_t out[64] = {0}, id = 0;
	int fd[3], alone;

	a.read_format = 31;
	fd[0] = must_open(a, -1);
	a.config = PERF_COUNT_SW_DUMMY;
	fd[1] = must_open(a, fd[0]);
	a.config = PERF_COUNT_SW_CPU_CLOCK;
	fd[2] = must_open(a, fd[0]);
	burn(10);
	usleep(1000); /* Linux 6.18 brings a sibling's clock up to date at a switch alone */
	answer_number("40 size of a group read of three", read(fd[1], out, sizeof(out)), 96);
	answer_number("40 members", (long long)out[0], 3);
	answer_truth("40 times", out[1] && out[2] && out[2] <= out[1]);
	for (int i = 0; i < 3; i++) {
		ioctl(fd[i], PERF_EVENT_IOC_ID, &id);
		answer_truth("40 the leader first, then in the order of their open",
			     out[4 + 3 * i] == id);
	}
	answer_truth("40 counts", out[3] && !out[6] && out[9]);
	answer_errno("50 group read, 8 bytes less", read(fd[0], out, 88), ENOSPC);
	alone = open_event(&a, 0, -1, fd[0], PERF_FLAG_FD_NO_GROUP);
	answer_number("37 NO_GROUP: not in the group", read(fd[0], out, sizeof(out)), 96);
	answer_number("37 its own leader", read(alone, out, sizeof(out)), 48);
	close(alone);
	close(fd[0]);
	answer_number("41 after the leader's end a sibling is alone", read(fd[2], out, sizeof(out)),
		      48);
	id = out[3];
	burn(5);
	usleep(1000);
	answer_truth("41 and counts on", read(fd[2], out, sizeof(out)) == 48 && out[3] > id);
	close(fd[1]);
	close(fd[2]);
}

static void large_group(void)
{
	struct quipu_attr a = soft(PERF_COUNT_SW_DUMMY, 0);
	static uint64_t out[2049];
	static int fds[1024];
	int n = 0;

	a.read_format = 31;
	while (n < 1024 && (fds[n] = open_event(&a, 0, -1, n ? fds[0] : -1, 0)) >= 0)
		n++;
	answer_errno("42 one member too many for a read of 16 KiB", n < 1024 ? fds[n] : 0, E2BIG);
	answer_number("42 members", n, 681);
	answer_number("42 the group is intact", read(fds[0], out, sizeof(out)), 24 + 24 * 681);
	while (n--)
		close(fds[n]);
}

/*
 * How much is counted of a stretch of CPU time is asked for by half: a host that is taken the CPU
 * away while it switches tasks counts it here and not there.
 */

/* ---- states: cases 43-51 ---- */

static void states(void)
{
	int fd = must_open(task_clock(QUIPU_ATTR_DISABLED), -1);
	uint64_t out[3];
	struct times t, u;

	burn(2);
	t = times_of(fd);
	answer_truth("43 disabled: 0, 0, 0", !t.value && !t.enabled && !t.running);
	answer_errno("44 ENABLE", ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	burn(5);
	answer_errno("44 DISABLE", ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	t = times_of(fd);
	burn(2);
	u = times_of(fd);
	answer_truth("44 two reads are equal", !memcmp(&t, &u, sizeof(t)));
	answer_truth("44 it counted the time", t.value >= 2000000 && t.enabled == t.running);
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	u = times_of(fd);
	answer_number("47 RESET: count", (long long)u.value, 0);
	answer_truth("47 RESET keeps times", u.enabled == t.enabled && u.running == t.running);
	answer_errno("50 read of 8 bytes less", read(fd, out, 16), ENOSPC);
	answer_errno("A9 ENABLE twice",
		     ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) | ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	close(fd);
}

static void group_states(void)
{
	int leader = must_open(task_clock(QUIPU_ATTR_DISABLED), -1),
	    sibling = must_open(task_clock(0), leader), off;
	struct times t;

	burn(2);
	t = times_of(sibling);
	answer_truth("45 leader disabled: an enabled sibling stands", !t.value && !t.enabled);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
	burn(5);
	answer_truth("45 its ENABLE starts all", times_of(leader).value && times_of(sibling).value);
	ioctl(sibling, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	t = times_of(leader);
	burn(2);
	answer_truth("46 DISABLE of the group by a member", times_of(leader).value == t.value);
	ioctl(sibling, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	answer_truth("46 RESET of the group by a member",
		     !times_of(leader).value && !times_of(sibling).value);
	ioctl(sibling, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	burn(2);
	answer_truth("46 ENABLE of the group by a member", times_of(leader).value > 0);
	off = must_open(task_clock(QUIPU_ATTR_DISABLED), leader);
	ioctl(leader, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
	burn(2);
	answer_number("D3.18 a disabled sibling stays off", (long long)times_of(off).value, 0);
	close(off);
	close(sibling);
	close(leader);
}

static void never_multiplexed(void)
{
	int fd[32], equal = 0, exclusive;
	struct times t;

	exclusive = must_open(task_clock(QUIPU_ATTR_EXCLUSIVE), -1);
	for (int i = 0; i < 32; i++)
		fd[i] = must_open(task_clock(i & 1 ? QUIPU_ATTR_PINNED : 0), -1);
	burn(30);
	for (int i = 0; i < 32; i++) {
		ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0);
		t = times_of(fd[i]);
		equal += t.running == t.enabled && t.value >= 10000000;
		close(fd[i]);
	}
	answer_number("56 of 32 software events run all the time", equal, 32);
	ioctl(exclusive, PERF_EVENT_IOC_DISABLE, 0);
	t = times_of(exclusive);
	answer_truth("49 an exclusive software event excludes none", t.running == t.enabled);
	close(exclusive);
}

/* ---- tasks: cases 57-65 ---- */

static int open_on(struct quipu_attr a, pid_t pid)
{
	int fd = open_event(&a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		answer_errno("open on a child", fd, 0);
	return fd;
}

static void over_exec(void)
{
	struct child c = start_child();
	int on_exec = open_on(task_clock(QUIPU_ATTR_DISABLED | QUIPU_ATTR_ENABLE_ON_EXEC), c.pid),
	    gone = open_on(task_clock(QUIPU_ATTR_REMOVE_ON_EXEC), c.pid),
	    stays = open_on(task_clock(0), c.pid);
	struct times t;
	uint64_t before;

	step(&c, 'b');
	answer_number("57 nothing before exec", (long long)times_of(on_exec).value, 0);
	step(&c, 'f');
	step(&c, 'b');
	answer_number("58 a failed exec does not enable", (long long)times_of(on_exec).value, 0);
	before = times_of(gone).value;
	answer_truth("63 counts before exec", before >= 10000000);
	step(&c, 'e');
	step(&c, 'b');
	t = times_of(on_exec);
	answer_truth("57 counts after exec", t.value >= 4000000);
	answer_truth("63 an event that stays has more", times_of(stays).value > t.value);
	answer_truth("63 one that goes does not",
		     times_of(stays).value >= times_of(gone).value + 4000000);
	ioctl(on_exec, PERF_EVENT_IOC_DISABLE, 0);
	t = times_of(on_exec);
	step(&c, 'e');
	step(&c, 'b');
	answer_truth("57 the bit is gone: a second exec does not enable",
		     times_of(on_exec).value == t.value);
	end_child(&c);
	answer_truth("62 readable after the end", times_of(stays).value >= 20000000);
	close(on_exec);
	close(gone);
	close(stays);
}

static pthread_barrier_t all_here;

static void *work_of_thread(void *arg)
{
	uint64_t *ran = arg;

	burn(5);
	*ran = thread_ns();
	pthread_barrier_wait(&all_here);
	return NULL;
}

static void inherited_by_threads(void)
{
	int all = must_open(task_clock(QUIPU_ATTR_INHERIT), -1), own = must_open(task_clock(0), -1),
	    threads = must_open(task_clock(QUIPU_ATTR_INHERIT | QUIPU_ATTR_INHERIT_THREAD), -1);
	uint64_t ran[8], sum = 0, now, processes, of_threads;
	pthread_t t[8];

	pthread_barrier_init(&all_here, NULL, 9);
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, work_of_thread, &ran[i]);
	pthread_barrier_wait(&all_here);
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], NULL);
		sum += ran[i];
	}
	ioctl(own, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(all, PERF_EVENT_IOC_DISABLE, 0);
	now = times_of(all).value;
	answer_truth("59 inherit: the opener and 8 threads", now >= sum / 2);
	answer_truth("59 unchanged after their end", times_of(all).value == now);
	answer_truth("60 without: the opener alone", times_of(own).value < now - sum / 4);
	answer_truth("59 inherit_thread: threads too", times_of(threads).value >= sum / 2);
	ioctl(all, PERF_EVENT_IOC_ENABLE, 0);
	of_threads = times_of(threads).value;
	child_forks();
	processes = times_of(all).value - now;
	answer_truth("59 inherit_thread: no process",
		     processes >= times_of(threads).value - of_threads + 4000000);
	close(all);
	close(own);
	close(threads);
	pthread_barrier_destroy(&all_here);
}

static void inherited_by_processes(void)
{
	struct child c = start_child();
	int all = open_on(task_clock(QUIPU_ATTR_INHERIT), c.pid),
	    own = open_on(task_clock(0), c.pid);
	struct times t;

	step(&c, 'c');
	step(&c, 'c');
	t = times_of(all);
	answer_truth("59 inherit: two processes in turn", t.value >= 10000000);
	answer_truth("60 without: none", times_of(own).value + 8000000 < t.value);
	ioctl(all, PERF_EVENT_IOC_DISABLE, 0);
	t = times_of(all);
	step(&c, 'c');
	answer_truth("59 a disabled event's clones count nothing", times_of(all).value == t.value);
	ioctl(all, PERF_EVENT_IOC_RESET, 0);
	answer_truth("47 RESET leaves what ended clones had", times_of(all).value >= 9000000);
	end_child(&c);
	close(all);
	close(own);
}

static void on_each_cpu(void)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN), on[256], before, after;
	struct quipu_attr a = task_clock(0);
	uint64_t sum = 0, least, most;
	bool enabled = true, runs = true;
	struct times t;

	cpus = cpus > 256 ? 256 : cpus;
	before = must_open(a, -1);
	for (int i = 0; i < cpus; i++)
		on[i] = open_event(&a, 0, i, -1, 0);
	after = must_open(a, -1);
	burn(10);
	ioctl(after, PERF_EVENT_IOC_DISABLE, 0);
	least = times_of(after).value;
	for (int i = 0; i < cpus; i++) {
		ioctl(on[i], PERF_EVENT_IOC_DISABLE, 0);
		t = times_of(on[i]);
		sum += t.value;
		enabled = enabled && t.enabled >= least;
		runs = runs && t.running >= t.value && t.running <= t.enabled;
		close(on[i]);
	}
	ioctl(before, PERF_EVENT_IOC_DISABLE, 0);
	most = times_of(before).value;
	answer_truth("61 the sum over CPUs is the task's count", sum >= least && sum <= most);
	answer_truth("61 enabled all the time", enabled);
	answer_truth("61 running where it runs alone", runs);
	close(before);
	close(after);
}

static void switched_by_prctl(void)
{
	int fd = must_open(task_clock(0), -1);
	uint64_t v;

	answer_errno("65 prctl 31", prctl(PR_TASK_PERF_EVENTS_DISABLE), 0);
	v = times_of(fd).value;
	burn(5);
	answer_truth("65 it stands", times_of(fd).value == v);
	answer_errno("65 prctl 32", prctl(PR_TASK_PERF_EVENTS_ENABLE), 0);
	burn(5);
	answer_truth("65 it counts", times_of(fd).value > v);
	close(fd);
}

/* What the kernel does for a process shows in its software events. */
static void software_events(void)
{
	int faults = must_open(soft(PERF_COUNT_SW_PAGE_FAULTS, 0), -1),
	    dummy = must_open(soft(PERF_COUNT_SW_DUMMY, 0), -1);
	struct quipu_attr a = soft(PERF_COUNT_SW_CONTEXT_SWITCHES, 0);
	int switches;
	char *mem = malloc(1 << 20);

	a.flags = 0;
	switches = must_open(a, -1);
	for (unsigned i = 0; mem && i < 1 << 20; i += PAGE)
		((volatile char *)mem)[i] = 1;
	free(mem);
	usleep(1000);
	answer_truth("A6 page faults of a native program", times_of(faults).value > 0);
	answer_truth("A6 context switches of a native program", times_of(switches).value > 0);
	answer_number("A6 dummy", (long long)times_of(dummy).value, 0);
	close(faults);
	close(dummy);
	close(switches);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "child")) { /* the program that a child executes */
		if (write(atoi(argv[3]), "", 1) != 1)
			return 1;
		return child_main(atoi(argv[2]), atoi(argv[3]));
	}
	alarm(240);
	if (argc == 2 && !strcmp(argv[1], "permissions")) { /* alone, for one level after another */
		permissions();
		printf("end\n");
		return 0;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		one_row(&rows[i]);
	size_written_back();
	more_opens();
	answers_of_order();
	limits_of_descriptors();
	permissions();
	groups_refused();
	group_reads();
	large_group();
	states();
	group_states();
	never_multiplexed();
	over_exec();
	inherited_by_threads();
	inherited_by_processes();
	on_each_cpu();
	switched_by_prctl();
	software_events();
	answers_of_rings();
	answers_of_records();
	printf("end\n");
	return 0;
}
