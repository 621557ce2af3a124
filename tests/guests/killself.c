/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * killself [segv|term|kill|abrt]: works for a while, then ends by a signal: a store to an address
 * that is not mapped, or kill(2) of itself. The default is term. To count by hand: before() makes
 * 100000 turns.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

NAMED long before(void)
{
	long x = 0;

	for (long i = 0; i < 100000; i++)
		__asm__ volatile("addi %0, %0, 1" : "+r"(x));
	return x;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "term";
	static const struct {
		const char *name;
		int number;
	} table[] = {{"term", SIGTERM}, {"kill", SIGKILL}, {"abrt", SIGABRT}};
	volatile int *volatile unmapped = (volatile int *)8;

	if (before() != 100000)
		return 1;
	if (!strcmp(how, "segv"))
		*unmapped = 1;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(how, table[i].name))
			kill(getpid(), table[i].number);
	return 2;
}
