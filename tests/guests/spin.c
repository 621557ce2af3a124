/* SPDX-License-Identifier: BSD-2-Clause */
/* spin: says "ready" and computes until it is stopped from outside. */
#include <stdint.h>
#include <stdio.h>

#include "guest.h"

NAMED void spin_forever(void)
{
	uint64_t x = 1;

	for (;;) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	spin_forever();
	return 1;
}
