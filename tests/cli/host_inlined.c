// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program of the host's own for tests/cli/host.py: half a second in functions that the compiler
 * put into others, some of them several times.
 */
#include <stdlib.h>
#include <time.h>

#define INLINE static inline __attribute__((always_inline))

static volatile unsigned sink;

unsigned outer(unsigned x);
unsigned other(unsigned x);

INLINE unsigned innermost(unsigned x)
{
	for (unsigned i = 0; i < 400; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

INLINE unsigned middle(unsigned x)
{
	x = innermost(x ^ 3);
	for (unsigned i = 0; i < 200; i++)
		x ^= x << 5 ^ i;
	return x;
}

INLINE unsigned wide(unsigned x)
{
	return middle(x) + innermost(x + 1);
}

__attribute__((noinline)) unsigned outer(unsigned x)
{
	return wide(x) + middle(x + 7);
}

__attribute__((noinline)) unsigned other(unsigned x)
{
	for (unsigned i = 0; i < 300; i++)
		x += x >> 3 ^ i;
	return innermost(x);
}

INLINE long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

INLINE void run(long ms)
{
	while (cpu_ms() < ms)
		for (unsigned i = 0; i < 100; i++)
			sink += outer(sink) + other(sink);
}

int main(int argc, char **argv)
{
	run(argc > 1 ? atol(argv[1]) : 500);
	return 0;
}
