/* SPDX-License-Identifier: BSD-2-Clause */
/* prime [N [FIB]]: a sieve of Eratosthenes up to N and a naive Fibonacci of FIB: long loops, deep
 * calls, no library. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 0) : 8000000, primes = 0;
	unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 36;
	uint8_t *composite = calloc(n + 1, 1);

	if (!composite)
		return 2;
	for (size_t i = 2; i <= n; i++) {
		if (composite[i])
			continue;
		primes++;
		for (size_t j = i * i; j <= n; j += i)
			composite[j] = 1;
	}
	printf("%zu primes, fib %u\n", primes, fib(depth));
	free(composite);
	return 0;
}
