/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library in a `sleep` that a client starts: the machine hears of its sleep, whose time
 * is the machine's (sleepers.c). In every other program these calls are libc's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/preload.h"

REAL(int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left))
REAL(int, clock_nanosleep,
     (clockid_t clock, int flags, const struct timespec *t, struct timespec *left),
     (clock, flags, t, left))

static bool is_sleeper(void)
{
	return !strcmp(program_invocation_short_name, GATE_SLEEPER) && preload_machine() > 0 &&
	       !getenv(GATE_ENGINE);
}

static void tell(uint32_t op, uint64_t ns)
{
	struct exchange x = {.request = {.op = op, .args = {ns}}};
	int err = errno;

	preload_exchange(&x);
	errno = err;
}

/* A time that the kernel would refuse is no sleep. */
static bool begin(const struct timespec *t)
{
	uint64_t ns;

	if (!is_sleeper() || !t || !gate_sleep_ns(t, &ns))
		return false;
	tell(GATE_SLEEP, ns);
	return true;
}

EXPORT int nanosleep(const struct timespec *t, struct timespec *left)
{
	bool told = begin(t);
	int rc = real_nanosleep(t, left);

	if (told)
		tell(GATE_SLEPT, 0);
	return rc;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
			   struct timespec *left)
{
	bool told = !flags && begin(t);
	int rc = real_clock_nanosleep(clock, flags, t, left);

	if (told)
		tell(GATE_SLEPT, 0);
	return rc;
}
