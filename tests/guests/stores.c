/* SPDX-License-Identifier: BSD-2-Clause */
/* stores [THREADS] [ITERATIONS]: each thread but the first fills an area of its own, 4096 words at
 * a time. */
#include <pthread.h>
#include <stdint.h>

#include "guest.h"

#define THREADS 8
#define WORDS	4096

static volatile uint64_t area[THREADS][WORDS];
static long iterations;

static void *fill(void *arg)
{
	volatile uint64_t *word = arg;

	for (long i = 0; i < iterations; i++)
		for (int k = 0; k < WORDS; k += 8) {
			word[k] = word[k + 1] = word[k + 2] = word[k + 3] = (uint64_t)i;
			word[k + 4] = word[k + 5] = word[k + 6] = word[k + 7] = (uint64_t)i;
		}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = guest_arg(argc, argv, 1, 1);
	pthread_t id[THREADS];

	iterations = guest_arg(argc, argv, 2, 20);
	if (n < 1 || n > THREADS)
		return 2;
	for (long i = 0; i < n; i++)
		if (pthread_create(&id[i], NULL, fill, (void *)area[i]))
			return 2;
	for (long i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	return 0;
}
