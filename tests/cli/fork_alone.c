/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into quipu: a fork beside threads ends it. The child of such a fork may call little
 * more than exec: not even allocate, for another thread may have held the allocator's lock.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	for (struct dirent *d; dir && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

pid_t fork(void)
{
	pid_t (*real)(void);
	int n = strcmp(program_invocation_short_name, "quipu") ? 1 : threads();

	if (n != 1) {
		fprintf(stderr, "fork beside %d threads\n", n - 1);
		abort();
	}
	*(void **)&real = dlsym(RTLD_NEXT, "fork");
	return real();
}
