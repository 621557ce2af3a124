/* SPDX-License-Identifier: BSD-2-Clause */
/* execer PROGRAM [ARGS]: calls before_exec, then becomes PROGRAM. Ends with 127 when it cannot. */
#include <unistd.h>

#include "guest.h"

NAMED long before_exec(void)
{
	long n = 0;

	for (long i = 0; i < 50000; i++)
		__asm__ volatile("addi %0, %0, 1" : "+r"(n));
	return n;
}

int main(int argc, char **argv)
{
	if (argc < 2 || before_exec() != 50000)
		return 2;
	execv(argv[1], argv + 1);
	return 127;
}
