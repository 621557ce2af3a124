/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose functions the samples of the profile tests fall into. It is looked at, never run.
 */
#include <stdio.h>
#include <stdlib.h>

volatile unsigned long sink;

__attribute__((noinline)) void heavy(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * n;
}

__attribute__((noinline)) void light(unsigned long n)
{
	sink ^= n;
}

static inline __attribute__((always_inline)) void inner_loop(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink = sink * 3 + i;
}

static inline __attribute__((always_inline)) void outer_part(unsigned long n)
{
	sink++;
	inner_loop(n);
	sink--;
}

__attribute__((noinline)) void with_inlines(unsigned long n)
{
	sink += n;
	outer_part(n);
	light(n);
	sink -= n;
}

__attribute__((noinline, noreturn)) void never_returns(void)
{
	for (;;)
		sink++;
}

/* Its last instruction is a call: the return address lies in the next function. */
__attribute__((noinline, noreturn)) void ends_in_call(void)
{
	sink = 1;
	never_returns();
}

int main(int argc, char **argv)
{
	heavy(100);
	light(5);
	with_inlines(7);
	puts(argv[0]);
	if (argc > 6)
		return atoi(argv[1]);
	if (argc > 5)
		ends_in_call();
	return 0;
}
