/* SPDX-License-Identifier: BSD-2-Clause */
/* mix [ROUNDS]: qsort, an open-addressing hash, a matrix product, a shuffled linked list, a scan of
 * text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A power of two: the same in small, for tests that look at every instruction. */
#ifndef SMALLER
#define SMALLER 1u
#endif

#define NUMBERS (200000u / SMALLER)
#define SLOTS	((1u << 18) / SMALLER)
#define N	(SMALLER > 1 ? 12u : 96u)
#define NODES	(200000u / SMALLER)
#define TEXT	((1u << 20) / SMALLER)

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint64_t sort(void)
{
	static uint32_t v[NUMBERS];

	for (unsigned i = 0; i < NUMBERS; i++)
		v[i] = (uint32_t)next_random();
	qsort(v, NUMBERS, sizeof(v[0]), by_value);
	return v[NUMBERS / 2];
}

static uint64_t hash(void)
{
	static uint32_t key[SLOTS];
	uint64_t probes = 0;

	memset(key, 0, sizeof(key));
	for (unsigned i = 0; i < SLOTS / 2; i++) {
		uint32_t k = (uint32_t)next_random() | 1, at = k * 2654435761u % SLOTS;

		for (; key[at] && key[at] != k; at = (at + 1) % SLOTS)
			probes++;
		key[at] = k;
	}
	return probes;
}

static double product(void)
{
	static double a[N][N], b[N][N], c[N][N];

	for (unsigned i = 0; i < N; i++)
		for (unsigned j = 0; j < N; j++) {
			a[i][j] = i + j;
			b[i][j] = i > j ? 1 : 0.5;
			c[i][j] = 0;
		}
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < N; k++)
			for (unsigned j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
	return c[N / 2][N / 3];
}

static uint64_t list(void)
{
	static uint32_t next[NODES], order[NODES];
	uint64_t sum = 0;
	uint32_t at = 0;

	for (unsigned i = 0; i < NODES; i++)
		order[i] = i;
	for (unsigned i = NODES - 1; i; i--) {
		unsigned j = (unsigned)(next_random() % (i + 1));
		uint32_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (unsigned i = 0; i < NODES; i++)
		next[order[i]] = order[(i + 1) % NODES];
	for (unsigned i = 0; i < 4 * NODES; i++)
		sum += at = next[at];
	return sum;
}

static uint64_t scan(void)
{
	static char text[TEXT];
	uint64_t words = 0;
	int inside = 0;

	for (unsigned i = 0; i < TEXT; i++)
		text[i] = " abcdefghijklmnop\nqrstuvwxyz,."[next_random() % 30];
	for (unsigned i = 0; i < TEXT; i++) {
		int letter = text[i] >= 'a' && text[i] <= 'z';

		words += letter && !inside;
		inside = letter;
	}
	return words;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 2;
	uint64_t sum = 0;

	for (unsigned i = 0; i < rounds; i++)
		sum += sort() + hash() + (uint64_t)product() + list() + scan();
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
