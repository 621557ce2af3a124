/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recurse [N [M]]: call-heavy. fib(N) by the definition and ackermann(2, M).
 * To count by hand: fib(n) makes 2 * fib(n + 1) - 1 calls of itself, the first included (fib(1) =
 * fib(2) = 1).
 */
#include <stdio.h>

#include "guest.h"

NAMED long fib(long n)
{
	long a, b;

	if (n < 2)
		return n;
	a = fib(n - 1);
	b = fib(n - 2);
	/* The barrier keeps the compiler from turning the second call into a loop. */
	__asm__ volatile("" : "+r"(b));
	return a + b;
}

NAMED long ackermann(long m, long n)
{
	long r;

	if (m == 0)
		return n + 1;
	if (n == 0)
		r = ackermann(m - 1, 1);
	else
		r = ackermann(m - 1, ackermann(m, n - 1));
	__asm__ volatile("" : "+r"(r));
	return r;
}

static long fib_by_addition(long n)
{
	long a = 0, b = 1;

	for (; n > 0; n--) {
		long next = a + b;

		a = b;
		b = next;
	}
	return a;
}

int main(int argc, char **argv)
{
	long n = guest_arg(argc, argv, 1, 22), m = guest_arg(argc, argv, 2, 60);
	long f = fib(n), a = ackermann(2, m);

	printf("fib(%ld) = %ld, ackermann(2, %ld) = %ld\n", n, f, m, a);
	return f == fib_by_addition(n) && a == 2 * m + 3 ? 0 : 1;
}
