// SPDX-License-Identifier: BSD-2-Clause
/* Run a small program and keep the start of what it says (capture.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/capture.h"

extern char **environ;

char *find_program(const char *name)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		const char *end = strchrnul(path, ':');
		char *file = NULL;
		struct stat st;

		if (asprintf(&file, "%.*s/%s", (int)(end - path), path, name) < 0)
			return NULL;
		if (!stat(file, &st) && S_ISREG(st.st_mode) && !access(file, X_OK))
			return file;
		free(file);
		path = *end ? end + 1 : end;
	}
	return NULL;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Everything that comes until the end, or until @deadline; what does not fit is read and dropped.
 */
static int drain(int fd, char *out, size_t len, long deadline)
{
	size_t have = 0;
	char rest[512];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		long left = deadline - now_ms();
		bool full = have + 1 >= len;
		ssize_t n;

		if (left <= 0 || !poll(&p, 1, (int)left))
			return -ETIMEDOUT;
		n = full ? read(fd, rest, sizeof(rest)) : read(fd, out + have, len - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (full)
			continue;
		have += (size_t)n;
		out[have] = '\0';
	}
}

int capture(char *const argv[], char *out, size_t len, int timeout_ms)
{
	posix_spawn_file_actions_t act;
	int fds[2], err, status;
	pid_t pid;

	*out = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&act, fds[1], 1);
	posix_spawn_file_actions_adddup2(&act, fds[1], 2);
	err = posix_spawnp(&pid, argv[0], &act, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&act);
	close(fds[1]);
	if (!err) {
		err = drain(fds[0], out, len, now_ms() + timeout_ms);
		if (err)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	} else {
		err = -err;
	}
	close(fds[0]);
	if (err)
		return err;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
