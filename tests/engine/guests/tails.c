/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tails N: N rounds of calls that are a function's last act, with and without a frame of its own,
 * direct and through pointers, and of two functions that end in each other. Whoever called last is
 * gone by then. Linked without relaxation: that makes branches of them on sparc64.
 */
#include <stdlib.h>

#define APART __attribute__((noinline))

static int v[64];

APART static int deep(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < 20; i++)
		sum += v[(n + i) & 63];
	return sum;
}

APART static int leaf(int n)
{
	return deep(n + 1);
}

APART static int framed(int n)
{
	volatile int k[4];

	k[n & 3] = deep(n);
	return leaf(k[n & 3] + deep(n));
}

static int (*volatile last[])(int) = {deep, leaf, framed};

APART static int chosen(int n)
{
	v[n & 63]++;
	return last[n % 3](n);
}

APART static int even(int n);

APART static int odd(int n)
{
	v[n & 63]++;
	return n ? even(n - 1) : deep(1);
}

APART static int even(int n)
{
	v[n & 63]--;
	return n ? odd(n - 1) : deep(0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, sum = 0;

	for (int i = 0; i < rounds; i++)
		sum += framed(i) + leaf(i) + chosen(i) + even(i & 31);
	return sum & 1;
}
