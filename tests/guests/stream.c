/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream [KIB [ROUNDS]]: three arrays of KIB each, copied and combined: memory traffic of which the
 * lines can be counted by hand. stream KIB ROUNDS PORT: loads only, and only every eighth line of
 * 128 bytes, those whose address modulo 1024 is 128 * PORT: all of it goes through one memory port
 * of a machine that interleaves eight of them by line. PORT 8: every line, once each.
 */
#include <stdint.h>
#include <stdio.h>

#include "guest.h"

#define LINE  128
#define PORTS 8

NAMED void copy(double *to, const double *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

NAMED void triad(double *to, const double *a, const double *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = a[i] + 3.0 * b[i];
}

NAMED unsigned long touch(const volatile uint8_t *memory, size_t bytes, size_t port)
{
	size_t step = port < PORTS ? PORTS * LINE : LINE;
	unsigned long sum = 0;

	for (size_t at = port % PORTS * LINE; at < bytes; at += step)
		sum += memory[at];
	return sum;
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)guest_arg(argc, argv, 1, 4096) << 10, n = bytes / sizeof(double);
	long rounds = guest_arg(argc, argv, 2, 2), port = guest_arg(argc, argv, 3, -1);
	double *a = aligned_alloc(LINE * PORTS, bytes), *b, *c;

	if (!a || !bytes || port > PORTS)
		return 2;
	if (port >= 0) {
		/* Never written: the loads see zeroes, and no line is ever dirty. */
		unsigned long sum = 0;

		while (rounds--)
			sum += touch((const uint8_t *)a, bytes, (size_t)port);
		return sum != 0;
	}
	b = aligned_alloc(LINE * PORTS, bytes);
	c = aligned_alloc(LINE * PORTS, bytes);
	if (!b || !c)
		return 2;
	for (size_t i = 0; i < n; i++) {
		a[i] = 1;
		b[i] = 2;
		c[i] = 0;
	}
	while (rounds--) {
		copy(c, a, n);
		triad(a, b, c, n);
	}
	printf("%g %g\n", a[0], a[n - 1]);
	return a[0] != a[n - 1];
}
