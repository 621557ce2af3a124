/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared [WRITERS [MISSES]]: one thread misses the caches so often, in thousands, and reads a word
 * behind each miss, which the others (none: it is alone) write all the time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest.h"

#define WRITERS 4
#define LINES	65536 /* of 64 bytes, 4 MiB: more than the second level has */
#define WORK	24

struct line {
	uint64_t word[8];
} __attribute__((aligned(64)));

static struct line far[LINES], near;
static bool done;

static void *write_it(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		__atomic_store_n(&near.word[0], near.word[0] + 1, __ATOMIC_RELAXED);
	return NULL;
}

/* A call for each: what is written meanwhile is looked at block by block. */
NAMED uint64_t read_it(volatile uint64_t *word)
{
	return *word;
}

int main(int argc, char **argv)
{
	long n = guest_arg(argc, argv, 1, 1), misses = 1000 * guest_arg(argc, argv, 2, 1);
	pthread_t id[WRITERS];
	uint64_t sum = 0;

	if (n < 0 || n > WRITERS)
		return 2;
	for (long i = 0; i < n; i++)
		if (pthread_create(&id[i], NULL, write_it, NULL))
			return 2;
	for (long i = 0; i < misses; i++) {
		sum += read_it(&far[i * 7919 % LINES].word[0]);
		for (unsigned k = 0; k < WORK; k++)
			sum ^= read_it(&near.word[0]);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (long i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	return sum == 1; /* for the compiler's sake */
}
