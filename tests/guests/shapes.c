/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes: one program that the build links in four ways (static, dynamic, dynamic PIE, and
 * static-PIE without a libc, SHAPES_BARE, as Debian's cross libc has no start file for it). Samples
 * must fall into shape_work in each of them, wherever the program was loaded. No pointer is stored
 * in data: bare code has no one to relocate it.
 */
#define NAMED __attribute__((noinline, noclone))

NAMED long shape_work(long n)
{
	long x = 0;

	for (long i = 0; i < n; i++)
		__asm__ volatile("addi %0, %0, 1" : "+r"(x));
	return x;
}

#define TURNS 300000

#ifdef SHAPES_BARE
__attribute__((noreturn, used)) void _start(void)
{
	register long a0 __asm__("a0") = shape_work(TURNS) == TURNS ? 0 : 1;
	register long a7 __asm__("a7") = 93; /* exit */

	for (;;)
		__asm__ volatile("ecall" : : "r"(a0), "r"(a7));
}
#else
#include <stdio.h>

int main(void)
{
	long n = shape_work(TURNS);

	printf("%ld\n", n);
	return n == TURNS ? 0 : 1;
}
#endif
