/* SPDX-License-Identifier: BSD-2-Clause */
/* sleeper [MS]: says "ready", sleeps, says "done". Model time must jump, not pass. */
#include <stdio.h>
#include <time.h>

#include "guest.h"

int main(int argc, char **argv)
{
	long ms = guest_arg(argc, argv, 1, 100);
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	puts("ready");
	fflush(stdout);
	if (nanosleep(&t, NULL))
		return 1;
	puts("done");
	return 0;
}
