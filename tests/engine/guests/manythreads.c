/* SPDX-License-Identifier: BSD-2-Clause */
/* manythreads ROUNDS N: ROUNDS threads one after the other, then N at once; every one does the same
 * work. */
#include <pthread.h>
#include <stdlib.h>

static void *work(void *arg)
{
	for (volatile long i = 0; i < (long)arg; i++)
		;
	return NULL;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, n = argc > 2 ? atoi(argv[2]) : 4;
	pthread_t t[64];

	for (int i = 0; i < rounds; i++) {
		if (pthread_create(&t[0], NULL, work, (void *)1000))
			return 1;
		pthread_join(t[0], NULL);
	}
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, work, (void *)300000))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	return 0;
}
