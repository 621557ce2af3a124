/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of PAPI's: its overflow callbacks, and its count, of a loop of its own. */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>

static int calls;

static void on_overflow(int set, void *address, long long vector, void *context)
{
	(void)set;
	(void)address;
	(void)vector;
	(void)context;
	calls++;
}

static void must(int rc, const char *what)
{
	if (rc == PAPI_OK || rc == PAPI_VER_CURRENT)
		return;
	fprintf(stderr, "%s: %s\n", what, PAPI_strerror(rc));
	exit(1);
}

int main(int argc, char **argv)
{
	int set = PAPI_NULL, threshold = argc > 1 ? atoi(argv[1]) : 100000;
	long long value = 0;

	must(PAPI_library_init(PAPI_VER_CURRENT), "PAPI_library_init");
	must(PAPI_create_eventset(&set), "PAPI_create_eventset");
	must(PAPI_add_event(set, PAPI_TOT_INS), "PAPI_TOT_INS");
	must(PAPI_overflow(set, PAPI_TOT_INS, threshold, 0, on_overflow), "PAPI_overflow");
	must(PAPI_start(set), "PAPI_start");
	for (volatile long i = 0; i < 1000000; i++)
		;
	must(PAPI_stop(set, &value), "PAPI_stop");
	printf("%lld %d\n", value, calls);
	return 0;
}
