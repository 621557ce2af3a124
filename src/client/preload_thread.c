/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's threads: one that a client starts while events follow its tasks tells the
 * machine of itself before it runs the client's function, and of its time when it ends. perf ABI
 * sheet A11 (inherit). Forks do the same in preload_ask.c; threads made by clone(2) itself are not
 * seen.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/preload.h"

REAL(int, pthread_create,
     (pthread_t * t, const pthread_attr_t *a, void *(*start)(void *), void *arg),
     (t, a, start, arg))

struct beginning {
	void *(*fn)(void *);
	void *arg;
	pid_t parent;
};

/* However it ends: what it has run is known before anybody joins it. */
static void ends(void *unused)
{
	(void)unused;
	preload_sync();
}

static void *begins(void *arg)
{
	struct beginning b = *(struct beginning *)arg;
	void *result;

	free(arg);
	preload_born(b.parent);
	pthread_cleanup_push(ends, NULL);
	result = b.fn(b.arg);
	pthread_cleanup_pop(1);
	return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	struct beginning *b;
	int err;

	if (preload_machine() <= 0 || !preload_followed())
		return real_pthread_create(thread, attr, fn, arg);
	b = malloc(sizeof(*b));
	if (!b)
		return real_pthread_create(thread, attr, fn, arg);
	*b = (struct beginning){.fn = fn, .arg = arg, .parent = (pid_t)syscall(SYS_gettid)};
	err = real_pthread_create(thread, attr, begins, b);
	if (err)
		free(b);
	return err;
}
