/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads4 [ITERATIONS]: four threads with equal work, which share nothing and call nothing.
 * To count by hand: work() executes the same instructions in each thread; the disassembly gives
 * head, body, tail.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "guest.h"

#define THREADS 4

struct job {
	long iterations;
	uint64_t result;
	char pad[112]; /* a cache line of its own */
};

NAMED uint64_t work(long iterations)
{
	uint64_t x = 1;

	for (long i = 0; i < iterations; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *thread(void *arg)
{
	struct job *j = arg;

	j->result = work(j->iterations);
	return NULL;
}

int main(int argc, char **argv)
{
	long iterations = guest_arg(argc, argv, 1, 200000);
	struct job job[THREADS] = {0};
	pthread_t id[THREADS];

	for (int i = 0; i < THREADS; i++) {
		job[i].iterations = iterations;
		if (pthread_create(&id[i], NULL, thread, &job[i]))
			return 2;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	printf("%016lx\n", (unsigned long)job[0].result);
	for (int i = 1; i < THREADS; i++)
		if (job[i].result != job[0].result)
			return 1;
	return 0;
}
