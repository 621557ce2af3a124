// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program of the host's own for tests/cli/host.py: so many page faults, sleeps, calls and writes,
 * and CPU time in functions that can be told apart, in the kernel too. `threads N`: N threads that
 * sleep until standard input ends.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES  600
#define SLEEPS 20
#define CALLS  100
#define WRITES 50

extern volatile unsigned long watched;
volatile unsigned long watched;
static volatile unsigned sink;

/* Of other files, for all the compiler knows: each keeps its name and its arguments. */
void step(unsigned n);
unsigned leaf(unsigned n);
unsigned often(unsigned n);
unsigned seldom(unsigned n);

__attribute__((noinline)) void step(unsigned n)
{
	sink += n;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) unsigned leaf(unsigned n)
{
	unsigned x = n;

	for (unsigned i = 0; i < 20000; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

__attribute__((noinline)) unsigned often(unsigned n)
{
	return leaf(n) + leaf(n + 1) + leaf(n + 2);
}

__attribute__((noinline)) unsigned seldom(unsigned n)
{
	return leaf(n) ^ 1;
}

static __attribute__((noinline)) void in_the_kernel(void)
{
	static char buf[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);

	sink += (unsigned)read(fd, buf, sizeof(buf));
	close(fd);
}

static long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void work(long ms)
{
	char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	struct timespec nap = {.tv_nsec = 100000};

	madvise(p, PAGES * 4096, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < PAGES; i++)
		p[i * 4096] = 1;
	for (unsigned i = 0; i < SLEEPS; i++)
		nanosleep(&nap, NULL);
	for (unsigned i = 0; i < CALLS; i++)
		step(i);
	for (unsigned i = 0; i < WRITES; i++)
		watched = i;
	while (cpu_ms() < ms) {
		sink += often(sink) + seldom(sink);
		in_the_kernel();
	}
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *arg)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return arg;
}

static int threads(unsigned n)
{
	pthread_t *t = calloc(n, sizeof(*t));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_mutex_lock(&gate);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&t[i], &attr, wait_at_gate, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	pthread_mutex_unlock(&gate);
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "threads"))
		return threads((unsigned)atoi(argv[2]));
	work(argc > 1 ? atol(argv[1]) : 100);
	return 0;
}
