/* SPDX-License-Identifier: BSD-2-Clause */
/* longjump: a hundred longjmps from 50 frames down, and work behind each in the function that they
 * land in and in one that it calls: there, no frame of those that are gone may be seen. */
#include <setjmp.h>

#include "guest.h"

static jmp_buf env;
static volatile long steps;

NAMED long deep(int n)
{
	long below;

	if (n < 0)
		return 0;
	if (!n)
		longjmp(env, 1);
	below = deep(n - 1);
	__asm__ volatile("" : "+r"(below)); /* no loop may be made of it */
	return below + 1;
}

NAMED void after(void)
{
	for (int i = 0; i < 50; i++)
		steps++;
}

NAMED void landing(void)
{
	if (!setjmp(env))
		steps += deep(50);
	after();
	for (int i = 0; i < 50; i++)
		steps++;
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		landing();
	return 0;
}
