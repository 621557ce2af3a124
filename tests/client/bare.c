/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client without a C library, as Go's programs are: bare PROGRAM counts and samples the
 * instructions of PROGRAM by system calls alone, and prints the count, the samples, the waits that
 * ended, and the count of a second run that a child started by vfork has (its event is inherited).
 * x86-64 hosts.
 */
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE   4096u
#define PAGES  64u
#define PERIOD 1000u

/* ---- system calls ---- */

static inline __attribute__((always_inline)) long call(long nr, long a, long b, long c, long d,
						       long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

static void put(const char *text)
{
	long n = 0;

	while (text[n])
		n++;
	call(__NR_write, 1, (long)text, n, 0, 0, 0);
}

static void put_number(uint64_t v, const char *end)
{
	char digits[24];
	int at = sizeof(digits) - 1;

	digits[at] = 0;
	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	put(digits + at);
	put(end);
}

static void die(const char *what, long err)
{
	put(what);
	put(": errno ");
	put_number((uint64_t)-err, "\n");
	call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
}

/* The compiler makes calls of these from assignments and loops. */
void *memset(void *to, int c, unsigned long n);
void *memset(void *to, int c, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		((volatile char *)to)[i] = (char)c;
	return to;
}

/* ---- the client ---- */

static int open_event(const struct perf_event_attr *a, long pid)
{
	long fd = call(__NR_perf_event_open, (long)a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);

	if (fd < 0)
		die("perf_event_open", fd);
	return (int)fd;
}

static uint64_t read_count(int fd)
{
	uint64_t count = 0;
	long got = call(__NR_read, fd, (long)&count, sizeof(count), 0, 0, 0);

	if (got != sizeof(count))
		die("read", got);
	return count;
}

static uint64_t take_samples(struct perf_event_mmap_page *page)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), samples = 0;

	while (page->data_tail != head) {
		const struct perf_event_header *h =
			(const void *)((char *)page + PAGE +
				       page->data_tail % (PAGES * (uint64_t)PAGE));

		samples += h->type == PERF_RECORD_SAMPLE;
		__atomic_store_n(&page->data_tail, page->data_tail + h->size, __ATOMIC_RELEASE);
	}
	return samples;
}

/* Waits and reads until the event's task is gone. */
static void watch(int fd, struct perf_event_mmap_page *page, uint64_t *samples, uint64_t *waits)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (*samples = *waits = 0; !(p.revents & POLLHUP); ++*waits) {
		long rc = call(__NR_poll, (long)&p, 1, -1, 0, 0, 0);

		if (rc < 0 && rc != -EINTR)
			die("poll", rc);
		*samples += take_samples(page);
	}
}

static void exec(char **words, char **env)
{
	call(__NR_execve, (long)words[0], (long)words, (long)env, 0, 0, 0);
	call(__NR_exit_group, 127, 0, 0, 0, 0, 0);
}

static uint64_t sampled(char **words, char **env, uint64_t *samples, uint64_t *waits)
{
	struct perf_event_attr a;
	struct perf_event_mmap_page *page;
	int go[2], fd, status;
	char byte;
	long pid, at;

	memset(&a, 0, sizeof(a));
	a.type = PERF_TYPE_HARDWARE;
	a.config = PERF_COUNT_HW_INSTRUCTIONS;
	a.size = sizeof(a);
	a.sample_period = PERIOD;
	a.sample_type = PERF_SAMPLE_IP;
	a.disabled = a.enable_on_exec = a.exclude_kernel = 1;
	call(__NR_pipe, (long)go, 0, 0, 0, 0, 0);
	pid = call(__NR_fork, 0, 0, 0, 0, 0, 0);
	if (!pid) {
		call(__NR_read, go[0], (long)&byte, 1, 0, 0, 0);
		exec(words, env);
	}
	fd = open_event(&a, pid);
	at = call(__NR_mmap, 0, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at < 0 && at >= -4095)
		die("mmap", at);
	page = (struct perf_event_mmap_page *)at;
	call(__NR_write, go[1], (long)"", 1, 0, 0, 0);
	watch(fd, page, samples, waits);
	call(__NR_wait4, pid, (long)&status, 0, 0, 0, 0);
	*samples += take_samples(page);
	if (status)
		die("the program", -status);
	call(__NR_munmap, at, (PAGES + 1) * PAGE, 0, 0, 0, 0);
	return read_count(fd);
}

static uint64_t inherited(char **words, char **env)
{
	struct perf_event_attr a;
	int fd, status;
	long pid;

	memset(&a, 0, sizeof(a));
	a.type = PERF_TYPE_HARDWARE;
	a.config = PERF_COUNT_HW_INSTRUCTIONS;
	a.size = sizeof(a);
	a.inherit = a.disabled = a.enable_on_exec = a.exclude_kernel = 1; /* the child, not us */
	fd = open_event(&a, 0);
	pid = call(__NR_vfork, 0, 0, 0, 0, 0, 0);
	if (!pid)
		exec(words, env);
	call(__NR_wait4, pid, (long)&status, 0, 0, 0, 0);
	if (status)
		die("the program", -status);
	return read_count(fd);
}

__attribute__((used)) static void run(long *stack)
{
	char **argv = (char **)(stack + 1), **env = argv + stack[0] + 1;
	uint64_t samples, waits, count;

	if (stack[0] < 2)
		die("usage: bare PROGRAM", 0);
	count = sampled(argv + 1, env, &samples, &waits);
	put_number(count, " ");
	put_number(samples, " ");
	put_number(waits, " ");
	put_number(inherited(argv + 1, env), "\n");
	call(__NR_exit_group, 0, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run\n");
