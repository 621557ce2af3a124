/* SPDX-License-Identifier: BSD-2-Clause */
/* threads N: N threads (at most 64), each of which does the same work. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static void *work(void *arg)
{
	uint64_t *table = calloc(1024, sizeof(*table)), x = 88172645463325252u;

	for (long i = 0; table && i < 15000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		table[x & 1023] += x;
	}
	free(table);
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t[64];

	if (n < 1 || n > 64)
		return 2;
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	return 0;
}
