/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers of mmap, poll and the rings behind them: perf ABI sheet D6, cases 67-88 as far as
 * software events tell (answers.h). Records are read here by hand, after A15 and A16 alone.
 */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES	   2000 /* of a few ms each: a busy host samples late, never not at all */
#define HEAD	   1024
#define TAIL	   1032
#define NOBODY_UID 65534

static uint8_t record[65536];

/* ---- rings ---- */

struct ring map_ring(int fd, unsigned pages, bool writable)
{
	struct ring r = {.size = pages * PAGE};

	r.mem = mmap(NULL, r.size + PAGE, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		     fd, 0);
	if (r.mem == MAP_FAILED) {
		answer_errno("mapping of a ring", -1, 0);
		exit(2);
	}
	return r;
}

void unmap_ring(struct ring *r)
{
	munmap(r->mem, r->size + PAGE);
	r->mem = NULL;
}

static uint64_t word_of(const struct ring *r, unsigned at)
{
	return __atomic_load_n((const uint64_t *)(const void *)(r->mem + at), __ATOMIC_ACQUIRE);
}

uint64_t ring_head(const struct ring *r)
{
	return word_of(r, HEAD);
}

uint64_t ring_tail(const struct ring *r)
{
	return word_of(r, TAIL);
}

static void set_tail(const struct ring *r, uint64_t tail)
{
	__atomic_store_n((uint64_t *)(void *)(r->mem + TAIL), tail, __ATOMIC_RELEASE);
}

void ring_skip(const struct ring *r)
{
	set_tail(r, ring_head(r));
}

static struct perf_event_header header_at(const struct ring *r, uint64_t at)
{
	struct perf_event_header h;

	memcpy(&h, r->mem + PAGE + (at & (r->size - 1)), sizeof(h));
	return h;
}

static void copy_out(const struct ring *r, uint64_t at, size_t n, uint8_t *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = r->mem[PAGE + ((at + i) & (r->size - 1))];
}

bool ring_next(const struct ring *r, uint8_t to[65536])
{
	uint64_t tail = ring_tail(r);
	struct perf_event_header h;

	if (tail == ring_head(r))
		return false;
	h = header_at(r, tail);
	if (h.size < sizeof(h))
		return false;
	copy_out(r, tail, h.size, to);
	set_tail(r, tail + h.size);
	return true;
}

static struct perf_event_header header_of(const uint8_t *bytes)
{
	struct perf_event_header h;

	memcpy(&h, bytes, sizeof(h));
	return h;
}

static uint64_t u64_at(const uint8_t *bytes, size_t at)
{
	uint64_t v;

	memcpy(&v, bytes + at, 8);
	return v;
}

struct quipu_attr clock_samples(uint64_t period, uint64_t type, uint64_t flags)
{
	struct quipu_attr a = soft(PERF_COUNT_SW_TASK_CLOCK, flags | QUIPU_ATTR_DISABLED);

	a.read_format = 0;
	a.sample_period = period;
	a.sample_type = type;
	return a;
}

static void on(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void off(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void burn_on(int fd, unsigned ms)
{
	on(fd);
	burn(ms);
	off(fd);
}

/* ---- mappings: cases 67, 68, 75-78 ---- */

static long map_result(int fd, size_t pages, int flags, off_t offset)
{
	void *m = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, offset);
	int err = errno;

	if (m == MAP_FAILED)
		return -1;
	munmap(m, pages * PAGE);
	errno = err;
	return 0;
}

static void mappings(void)
{
	int fd = must_open(clock_samples(0, 0, 0), -1), inherits;
	struct ring r;

	inherits = must_open(clock_samples(0, 0, QUIPU_ATTR_INHERIT), -1);
	answer_errno("67 one page", map_result(fd, 1, MAP_SHARED, 0), 0);
	answer_errno("67 1 + 8 pages", map_result(fd, 9, MAP_SHARED, 0), 0);
	answer_errno("67 1 + 3 pages", map_result(fd, 4, MAP_SHARED, 0), EINVAL);
	answer_errno("67 private", map_result(fd, 9, MAP_PRIVATE, 0), EINVAL);
	answer_errno("67 an offset without AUX", map_result(fd, 8, MAP_SHARED, 9 * PAGE), EINVAL);
	answer_errno("67 inherit on any CPU", map_result(inherits, 9, MAP_SHARED, 0), EINVAL);
	r = map_ring(fd, 8, true);
	answer_errno("67 again, the same size", map_result(fd, 9, MAP_SHARED, 0), 0);
	answer_errno("67 again, another size", map_result(fd, 5, MAP_SHARED, 0), EINVAL);
	answer_number("68 size", *(uint32_t *)(void *)(r.mem + 72) >= 96, 1);
	answer_number("68 version", *(uint32_t *)(void *)r.mem, 0);
	answer_number("68 data_offset", (long long)word_of(&r, 1040), PAGE);
	answer_number("68 data_size", (long long)word_of(&r, 1048), 8 * PAGE);
	answer_number("68 capabilities of a disabled event: bit 1 alone",
		      (long long)word_of(&r, 40) & 7, 2);
	answer_number("68 index", *(uint32_t *)(void *)(r.mem + 12), 0);
	answer_errno("77 munmap of a part", munmap(r.mem + PAGE, PAGE), EINVAL);
	answer_errno("74 PAUSE_OUTPUT", ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
	answer_errno("74 PAUSE_OUTPUT without a ring",
		     ioctl(inherits, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), EINVAL);
	unmap_ring(&r);
	close(inherits);
	close(fd);
}

static void outputs(void)
{
	struct quipu_attr a = clock_samples(0, 0, 0), clock = a, backward = a;
	int target = must_open(a, -1), e = must_open(a, -1), bare = must_open(a, -1), other_cpu,
	    other_task, other_clock, other_way;
	struct child c = start_child();
	struct ring r, own;

	clock.flags |= QUIPU_ATTR_USE_CLOCKID;
	clock.clockid = CLOCK_MONOTONIC;
	backward.flags |= QUIPU_ATTR_WRITE_BACKWARD;
	other_cpu = open_event(&a, 0, 0, -1, 0);
	other_task = open_event(&a, c.pid, -1, -1, 0);
	other_clock = must_open(clock, -1);
	other_way = must_open(backward, -1);
	r = map_ring(target, 8, true);
	answer_errno("75 to itself", ioctl(e, PERF_EVENT_IOC_SET_OUTPUT, e), EINVAL);
	answer_errno("75 to one without a ring", ioctl(e, PERF_EVENT_IOC_SET_OUTPUT, bare), EINVAL);
	answer_errno("75 of another CPU", ioctl(other_cpu, PERF_EVENT_IOC_SET_OUTPUT, target),
		     EINVAL);
	answer_errno("75 of another task", ioctl(other_task, PERF_EVENT_IOC_SET_OUTPUT, target),
		     EINVAL);
	answer_errno("75 of another clock", ioctl(other_clock, PERF_EVENT_IOC_SET_OUTPUT, target),
		     EINVAL);
	answer_errno("75 of the other direction",
		     ioctl(other_way, PERF_EVENT_IOC_SET_OUTPUT, target), EINVAL);
	answer_errno("75 to what is no event", ioctl(e, PERF_EVENT_IOC_SET_OUTPUT, 0), EBADF);
	answer_errno("75 attach", ioctl(e, PERF_EVENT_IOC_SET_OUTPUT, target), 0);
	answer_poll("75 attached: poll", poll_of(e), 0);
	answer_errno("75 detach", ioctl(e, PERF_EVENT_IOC_SET_OUTPUT, -1L), 0);
	answer_poll("75 detached: poll", poll_of(e), POLLHUP);
	own = map_ring(e, 8, true);
	answer_errno("75 of one that is mapped itself", ioctl(e, PERF_EVENT_IOC_SET_OUTPUT, target),
		     EINVAL);
	unmap_ring(&own);
	ioctl(bare, PERF_EVENT_IOC_SET_OUTPUT, target);
	unmap_ring(&r);
	answer_poll("77 the last munmap detaches others: poll", poll_of(bare), POLLHUP);
	answer_errno("77 and there is nothing to attach to",
		     ioctl(bare, PERF_EVENT_IOC_SET_OUTPUT, target), EINVAL);
	end_child(&c);
	for (int fd = target; fd <= other_way; fd++)
		close(fd);
}

static void try_lock(void)
{
	int fd = must_open(clock_samples(0, 0, 0), -1);

	answer_errno("78 a ring beyond the lock limit", map_result(fd, 8193, MAP_SHARED, 0), EPERM);
	answer_errno("78 one within", map_result(fd, 9, MAP_SHARED, 0), 0);
	fflush(stdout);
}

static void lock_limit(void)
{
	struct rlimit none = {0};
	pid_t pid;

	if (geteuid())
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_MEMLOCK, &none);
		if (!setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID) &&
		    !setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID))
			try_lock();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* ---- wake-ups: cases 71, 76 ---- */

/* Bytes in the ring before and after the first wake-up. */
static bool first_wake(struct quipu_attr a, uint64_t *before, uint64_t *after)
{
	int fd = must_open(a, -1), seen = 0;
	struct ring r = map_ring(fd, 1, true);

	for (int i = 0; i < TRIES && !(seen & POLLIN); i++) {
		*before = ring_head(&r);
		burn_on(fd, 1);
		seen = poll_of(fd);
	}
	*after = ring_head(&r);
	unmap_ring(&r);
	close(fd);
	return seen & POLLIN;
}

static void wake_ups(void)
{
	const uint64_t size = 24; /* header, id, address */
	struct quipu_attr a = clock_samples(100000, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP, 0);
	uint64_t before, after;

	answer_truth("71 wakes when half full",
		     first_wake(a, &before, &after) && before <= 2048 && after > 2048);
	a.wakeup_events = 10;
	answer_truth("71 wakeup_events 10",
		     first_wake(a, &before, &after) && before < 10 * size && after >= 10 * size);
	a.flags |= QUIPU_ATTR_WATERMARK;
	a.wakeup_watermark = 480;
	answer_truth("71 wakeup_watermark 480",
		     first_wake(a, &before, &after) && before <= 480 && after > 480);
}

static void polls(void)
{
	struct quipu_attr a = clock_samples(500000, PERF_SAMPLE_IP, 0);
	int fd, got = 0;
	struct child c;
	struct ring r;

	a.wakeup_events = 1;
	fd = must_open(a, -1);
	answer_poll("76 without a ring", poll_of(fd), POLLHUP);
	r = map_ring(fd, 8, true);
	answer_poll("76 nothing yet", poll_of(fd), 0);
	for (int i = 0; i < TRIES && !got; i++) {
		burn_on(fd, 2);
		got = poll_of(fd);
	}
	answer_poll("76 after a wake-up", got, POLLIN);
	answer_poll("76 once", poll_of(fd), 0);
	unmap_ring(&r);
	answer_poll("76 the ring is gone", poll_of(fd), POLLHUP);
	close(fd);

	c = start_child();
	fd = open_event(&a, c.pid, -1, -1, 0);
	r = map_ring(fd, 8, true);
	answer_poll("62 while the task lives", poll_of(fd), 0);
	end_child(&c);
	for (int i = 0; i < TRIES && !(got = poll_of(fd)); i++)
		usleep(1000);
	answer_poll("62 after its end", got, POLLHUP);
	unmap_ring(&r);
	close(fd);
}

/* ---- full rings: cases 69, 70, 72-74 ---- */

static uint64_t lost_of(int fd)
{
	uint64_t v[2] = {0};

	return read(fd, v, sizeof(v)) == sizeof(v) ? v[1] : 0;
}

static void fill_and_lose(void)
{
	struct quipu_attr a =
		clock_samples(50000, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 0);
	uint64_t lost, told = 0, id = 0, last = 0, time, writer = 0, marks = 0;
	bool first = true, rising = true, fits = true;
	struct ring r;
	int fd;

	a.read_format = PERF_FORMAT_LOST;
	fd = must_open(a, -1);
	ioctl(fd, PERF_EVENT_IOC_ID, &id);
	r = map_ring(fd, 1, true);
	for (int i = 0; i < TRIES && lost_of(fd) < 20; i++)
		burn_on(fd, 5);
	lost = lost_of(fd);
	answer_truth("70 a full ring loses", lost >= 20);
	answer_truth("70 a byte stays free", ring_head(&r) < PAGE && ring_head(&r) + 32 >= PAGE);
	ring_skip(&r);
	for (int i = 0; i < TRIES && ring_head(&r) < ring_tail(&r) + 256; i++)
		burn_on(fd, 2);
	while (ring_next(&r, record)) {
		struct perf_event_header h = header_of(record);

		if (h.type == PERF_RECORD_LOST) {
			marks++;
			fits = first;
			writer = u64_at(record, 8);
			told = u64_at(record, 16);
		} else {
			time = u64_at(record, 24);
			rising = rising && time >= last && h.size == 32;
			last = time;
		}
		first = false;
	}
	answer_truth("69 records wrap and stay whole", rising && last);
	answer_number("70 LOST records", (long long)marks, 1);
	answer_truth("70 before the record that found room", fits);
	answer_truth("70 as many as FORMAT_LOST says", told == lost);
	answer_truth("70 the id of who writes", writer == id);
	unmap_ring(&r);
	close(fd);
}

static void overwritten(void)
{
	struct quipu_attr a = clock_samples(50000, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, 0);
	struct perf_event_header h = {0};
	uint64_t head, off_, last = UINT64_MAX, time, before;
	bool falling = true;
	unsigned n = 0;
	struct ring r;
	int fd;

	a.read_format = PERF_FORMAT_LOST;
	fd = must_open(a, -1);
	r = map_ring(fd, 1, false);
	for (int i = 0; i < TRIES && ring_head(&r) <= 2 * PAGE; i++)
		burn_on(fd, 5);
	answer_truth("72 mapped for reading: head runs on", ring_head(&r) > 2 * PAGE);
	answer_number("72 nothing is lost", (long long)lost_of(fd), 0);
	unmap_ring(&r);
	close(fd);

	a.flags |= QUIPU_ATTR_WRITE_BACKWARD;
	fd = must_open(a, -1);
	r = map_ring(fd, 1, false);
	for (int i = 0; i < TRIES && -ring_head(&r) <= 2 * PAGE; i++)
		burn_on(fd, 5);
	ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
	head = ring_head(&r);
	for (off_ = 0; off_ + 24 <= PAGE; off_ += 24, n++) {
		h = header_at(&r, head + off_);
		copy_out(&r, head + off_, 24, record);
		time = u64_at(record, 16);
		falling = falling && h.size == 24 && h.type == PERF_RECORD_SAMPLE && time <= last;
		last = time;
	}
	answer_truth("73 backward: the newest at head, older ones behind", falling);
	answer_number("73 until the circle is full", n, 170);
	before = lost_of(fd);
	for (int i = 0; i < TRIES && lost_of(fd) == before; i++)
		burn_on(fd, 2);
	answer_truth("74 paused: what comes is lost", lost_of(fd) > before);
	answer_truth("74 head stands", ring_head(&r) == head);
	unmap_ring(&r);
	close(fd);
}

void answers_of_rings(void)
{
	mappings();
	outputs();
	lock_limit();
	wake_ups();
	polls();
	fill_and_lose();
	overwritten();
}

/* ---- samples: cases 79, 81, 84-87 ---- */

/* The first sample of @a on the calling thread; its size, 0: none came. */
static unsigned one_sample(struct quipu_attr a, bool alone)
{
	int fd = must_open(a, -1);
	struct ring r = map_ring(fd, 16, true);
	unsigned size = 0;

	for (int i = 0; i < TRIES && !size; i++) {
		burn_on(fd, 1);
		while (!size && ring_next(&r, record))
			if (header_of(record).type == PERF_RECORD_SAMPLE)
				size = header_of(record).size;
	}
	if (alone)
		ring_skip(&r);
	unmap_ring(&r);
	close(fd);
	return size;
}

static void sizes(void)
{
	static const struct {
		const char *step;
		uint64_t bit;
		unsigned size; /* of the body */
	} fields[] = {
		{"79 IP", PERF_SAMPLE_IP, 8},
		{"79 TID", PERF_SAMPLE_TID, 8},
		{"79 TIME", PERF_SAMPLE_TIME, 8},
		{"79 ADDR", PERF_SAMPLE_ADDR, 8},
		{"79 READ", PERF_SAMPLE_READ, 40},
		{"79 ID", PERF_SAMPLE_ID, 8},
		{"79 CPU", PERF_SAMPLE_CPU, 8},
		{"79 PERIOD", PERF_SAMPLE_PERIOD, 8},
		{"79 STREAM_ID", PERF_SAMPLE_STREAM_ID, 8},
		{"79 RAW", PERF_SAMPLE_RAW, 8},
		{"79 REGS_USER: abi and three registers", PERF_SAMPLE_REGS_USER, 32},
		{"79 STACK_USER of 64 bytes", PERF_SAMPLE_STACK_USER, 80},
		{"79 WEIGHT", PERF_SAMPLE_WEIGHT, 8},
		{"79 DATA_SRC", PERF_SAMPLE_DATA_SRC, 8},
		{"79 IDENTIFIER", PERF_SAMPLE_IDENTIFIER, 8},
		{"79 TRANSACTION", PERF_SAMPLE_TRANSACTION, 8},
		{"79 REGS_INTR: abi and three registers", PERF_SAMPLE_REGS_INTR, 32},
		{"79 PHYS_ADDR", PERF_SAMPLE_PHYS_ADDR, 8},
		{"79 CGROUP", 1 << 21, 8},
		{"79 DATA_PAGE_SIZE", 1 << 22, 8},
		{"79 CODE_PAGE_SIZE", 1 << 23, 8},
		{"79 WEIGHT_STRUCT", 1 << 24, 8},
	};
	unsigned sum = 8;
	struct quipu_attr a = clock_samples(200000, 0, 0);

	a.sample_regs_user = a.sample_regs_intr = 7;
	a.sample_stack_user = 64;
	a.read_format = 31; /* one member: its number, two times, value, id, lost */
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		bool registers = fields[i].bit & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |
						  PERF_SAMPLE_STACK_USER);

		a.sample_type = fields[i].bit;
		answer_number(fields[i].step, (long long)one_sample(a, true) - 8,
			      fields[i].bit == PERF_SAMPLE_READ ? 48 : fields[i].size);
		if (registers || fields[i].bit == PERF_SAMPLE_WEIGHT)
			continue;
		sum += fields[i].bit == PERF_SAMPLE_READ ? 48 : fields[i].size;
	}
	a.sample_type = 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (!(fields[i].bit & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |
				       PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT)))
			a.sample_type |= fields[i].bit;
	answer_number("79 all but registers, stack and WEIGHT", one_sample(a, true), sum);
}

static void contents(void)
{
	struct quipu_attr a =
		clock_samples(200000,
			      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				      PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
			      0);
	uint32_t ids[2];
	struct perf_event_header h;
	uint64_t ip, after;

	one_sample(a, true);
	h = header_of(record);
	memcpy(ids, record + 24, 8);
	ip = u64_at(record, 16);
	answer_number("79 cpu mode", h.misc & 7, PERF_RECORD_MISC_USER);
	answer_truth("79 pid and tid",
		     ids[0] == (uint32_t)getpid() && ids[1] == (uint32_t)syscall(SYS_gettid));
	answer_number("79 PERIOD", (long long)u64_at(record, 32), 200000);
	answer_truth("87 the chain begins with the marker of user mode",
		     u64_at(record, 40) >= 2 && u64_at(record, 48) == (uint64_t)-512);
	answer_truth("87 then comes the sample's address", u64_at(record, 56) == ip);

	a = clock_samples(UINT64_C(10000000000), PERF_SAMPLE_PERIOD, 0);
	a.wakeup_events = 1;
	{
		int fd = must_open(a, -1);
		struct ring r = map_ring(fd, 8, true);
		uint64_t period = 250000, zero = 0, huge = UINT64_C(1) << 63;

		burn_on(fd, 2);
		answer_number("84 a long period: nothing yet", (long long)ring_head(&r), 0);
		answer_errno("84 PERIOD 0", ioctl(fd, PERF_EVENT_IOC_PERIOD, &zero), EINVAL);
		answer_errno("84 PERIOD with bit 63", ioctl(fd, PERF_EVENT_IOC_PERIOD, &huge),
			     EINVAL);
		answer_errno("84 PERIOD", ioctl(fd, PERF_EVENT_IOC_PERIOD, &period), 0);
		for (int i = 0; i < TRIES && !ring_head(&r); i++)
			burn_on(fd, 2);
		answer_truth("84 takes effect at once", ring_next(&r, record));
		answer_number("84 the sample's period", (long long)u64_at(record, 8), 250000);
		unmap_ring(&r);
		close(fd);
	}

	a = clock_samples(500000, PERF_SAMPLE_PERIOD, 0);
	{
		int fd = must_open(a, -1);
		struct ring r = map_ring(fd, 16, true);
		uint64_t v = 0, n = 0;

		for (int i = 0; i < TRIES && ring_head(&r) < 5 * 16; i++)
			burn_on(fd, 10);
		after = read(fd, &v, 8) == 8 ? v : 0;
		while (ring_next(&r, record))
			n += header_of(record).type == PERF_RECORD_SAMPLE;
		answer_truth("81 no more samples than periods", n >= 5 && n <= after / 500000 + 1);
		unmap_ring(&r);
		close(fd);
	}
}

static void frequencies(void)
{
	struct quipu_attr a = clock_samples(1000, PERF_SAMPLE_PERIOD, QUIPU_ATTR_FREQ);
	int fd = must_open(a, -1);
	struct ring r = map_ring(fd, 16, true);
	uint64_t rate = 10000000, n = 0, v = 0;

	for (int i = 0; i < TRIES && ring_head(&r) < 20 * 16; i++)
		burn_on(fd, 10);
	if (read(fd, &v, 8) != 8)
		v = 0;
	while (ring_next(&r, record))
		n += header_of(record).type == PERF_RECORD_SAMPLE;
	answer_truth("82 a clock's frequency: no more than one in its period",
		     n >= 20 && n <= v / 1000000 + 1);
	/* Once it was made it has a period (A14). */
	answer_errno("A14 PERIOD of a clock's frequency", ioctl(fd, PERF_EVENT_IOC_PERIOD, &rate),
		     0);
	unmap_ring(&r);
	close(fd);
}

/* ---- signals: cases 85, 86 ---- */

static volatile sig_atomic_t signals, last_fd, last_code;
static volatile long last_band;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	signals++;
	last_fd = info->si_fd;
	last_code = info->si_code;
	last_band = info->si_band;
}

static void refreshes(void)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};
	struct quipu_attr a = clock_samples(500000, PERF_SAMPLE_IP, 0);
	int fd = must_open(a, -1), counting, inherits;
	struct ring r = map_ring(fd, 8, true);
	uint64_t v = 0, w = 0;

	a.flags |= QUIPU_ATTR_INHERIT;
	inherits = must_open(a, -1);
	a.flags &= ~QUIPU_ATTR_INHERIT;
	a.sample_period = 0;
	counting = must_open(a, -1);
	answer_errno("85 REFRESH of a counting event", ioctl(counting, PERF_EVENT_IOC_REFRESH, 1),
		     EINVAL);
	answer_errno("85 REFRESH of one that is inherited",
		     ioctl(inherits, PERF_EVENT_IOC_REFRESH, 1), EINVAL);
	sigaction(SIGRTMIN + 2, &sa, NULL);
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
	fcntl(fd, F_SETOWN_EX, &owner);
	fcntl(fd, F_SETSIG, SIGRTMIN + 2);
	ioctl(fd, PERF_EVENT_IOC_REFRESH, 3);
	for (int i = 0; i < TRIES && signals < 3; i++)
		burn(2);
	burn(20);
	answer_number("85 REFRESH 3: signals", signals, 3);
	answer_truth("86 si_fd", last_fd == fd);
	answer_truth("85 the last is POLL_HUP", last_code == POLL_HUP && last_band & POLLHUP);
	if (read(fd, &v, 8) != 8)
		v = 1;
	burn(5);
	answer_truth("85 then it is disabled", read(fd, &w, 8) == 8 && v == w);
	signals = 0;
	on(fd);
	for (int i = 0; i < TRIES && !signals; i++)
		burn(2);
	off(fd);
	answer_truth("86 a signal for an overflow: POLL_IN",
		     signals && last_code == POLL_IN && last_band & POLLIN);
	unmap_ring(&r);
	close(fd);
	close(counting);
	close(inherits);
}

/* ---- side-band: cases 80, 88 ---- */

static struct quipu_attr sideband(uint64_t flags)
{
	struct quipu_attr a = soft(PERF_COUNT_SW_DUMMY, flags);

	a.read_format = 0;
	a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU |
			PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER;
	return a;
}

static unsigned records_of(const struct ring *r, uint32_t type)
{
	unsigned n = 0;

	while (ring_next(r, record))
		n += header_of(record).type == type;
	return n;
}

static void names(void)
{
	for (int with = 0; with < 2; with++) {
		int fd = must_open(
			sideband(QUIPU_ATTR_COMM | (with ? QUIPU_ATTR_SAMPLE_ID_ALL : 0)), -1);
		struct ring r = map_ring(fd, 8, true);

		prctl(PR_SET_NAME, "renamed");
		answer_truth(with ? "80 COMM, with trailer" : "80 COMM, without",
			     ring_next(&r, record));
		answer_number(with ? "80 its size with the trailer" : "80 its size without",
			      header_of(record).size, with ? 24 + 48 : 24);
		answer_truth("80 the name", !strcmp((char *)record + 16, "renamed"));
		unmap_ring(&r);
		close(fd);
	}
}

static void of_itself(void)
{
	int fd = must_open(sideband(QUIPU_ATTR_MMAP2 | QUIPU_ATTR_MMAP), -1), file;
	struct ring r = map_ring(fd, 8, true);
	void *m;

	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	m = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	answer_truth("88 MMAP2 of what a native program maps itself",
		     records_of(&r, PERF_RECORD_MMAP2) > 0);
	munmap(m, PAGE);
	close(file);
	unmap_ring(&r);
	close(fd);

	fd = must_open(sideband(QUIPU_ATTR_CONTEXT_SWITCH), -1);
	r = map_ring(fd, 8, true);
	usleep(1000);
	answer_truth("A16 SWITCH of a native program", records_of(&r, PERF_RECORD_SWITCH) > 0);
	unmap_ring(&r);
	close(fd);

	fd = must_open(sideband(QUIPU_ATTR_TASK), -1);
	r = map_ring(fd, 8, true);
	if (!fork())
		_exit(0);
	wait(NULL);
	answer_number("88 FORK of a native program", records_of(&r, PERF_RECORD_FORK), 1);
	unmap_ring(&r);
	close(fd);
}

static void of_a_program(void)
{
	struct child c = start_child();
	struct quipu_attr a = sideband(QUIPU_ATTR_COMM | QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2 |
				       QUIPU_ATTR_TASK | QUIPU_ATTR_SAMPLE_ID_ALL);
	int fd = open_event(&a, c.pid, -1, -1, 0), comms = 0, maps = 0, exits = 0;
	struct ring r = map_ring(fd, 16, true);
	bool exec = false, order = true, program = false;

	step(&c, 'n');
	step(&c, 'e');
	step(&c, 'b');
	end_child(&c);
	for (int i = 0; i < TRIES && poll_of(fd) != POLLHUP; i++)
		usleep(1000);
	while (ring_next(&r, record)) {
		struct perf_event_header h = header_of(record);

		if (h.type == PERF_RECORD_COMM) {
			comms++;
			exec = h.misc & 1 << 13;
			order = order && !maps;
		}
		if (h.type == PERF_RECORD_MMAP2) {
			order = order && exec;
			program = program || strstr((char *)record + 72, "answers");
			maps++;
		}
		exits += h.type == PERF_RECORD_EXIT;
	}
	answer_number("88 COMM: a new name, then the program's", comms, 2);
	answer_truth("88 the second says that it is an exec", exec);
	answer_truth("88 MMAP2 of the program, the loader, the library", maps >= 3 && program);
	answer_truth("88 after its COMM", order);
	answer_number("88 EXIT", exits, 1);
	unmap_ring(&r);
	close(fd);
}

void answers_of_records(void)
{
	sizes();
	contents();
	frequencies();
	refreshes();
	names();
	of_itself();
	of_a_program();
}
