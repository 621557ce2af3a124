/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory [ROUNDS [KIB]]: memory-heavy. Walks a table with a stride, then at random, then through a
 * chain of indices. To count by hand: with n = KIB * 128 words, walk() loads n words a round,
 * scatter() loads and stores n, chase() loads n.
 */
#include <stdint.h>
#include <stdio.h>

#include "guest.h"

#define STRIDE                                                                                     \
	17 /* words: odd, so that it visits every word of a table whose size is a power of two */

NAMED uint64_t walk(const uint64_t *t, size_t n)
{
	uint64_t sum = 0;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		sum += t[at];
		at = (at + STRIDE) & (n - 1);
	}
	return sum;
}

NAMED void scatter(uint64_t *t, size_t n)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		t[x & (n - 1)]++;
	}
}

NAMED size_t chase(const uint32_t *next, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at = next[at];
	return at;
}

int main(int argc, char **argv)
{
	long rounds = guest_arg(argc, argv, 1, 2);
	size_t n = (size_t)guest_arg(argc, argv, 2, 512) * 128, at = 0;
	uint64_t *t;
	uint32_t *next;
	uint64_t sum = 0;

	if (!n || (n & (n - 1)))
		return 2;
	t = calloc(n, sizeof(*t));
	next = calloc(n, sizeof(*next));
	if (!t || !next)
		return 2;
	for (size_t i = 0; i < n; i++) {
		uint32_t to = (uint32_t)(at + 5 * STRIDE) & (uint32_t)(n - 1);

		next[at] = to;
		at = to;
	}
	for (long r = 0; r < rounds; r++) {
		scatter(t, n);
		sum = walk(t, n);
		at = chase(next, n);
	}
	printf("sum %lu, chain ends at %zu\n", (unsigned long)sum, at);
	free(next);
	free(t);
	/* Each round adds n, and a chain that visits every index once is back at its start after n
	 * steps. */
	return sum == (uint64_t)rounds * n && at == 0 ? 0 : 1;
}
