/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's exec family: a program of the machine's own instruction set is run under
 * the engine, with the environment that it would have had without us; the exec of any other is
 * announced, so that enable_on_exec happens, and keeps what makes it a client. perf ABI sheet C6.
 *
 * Called between vfork and exec as well, so nothing of the parent's is changed: each exec has a
 * connection of its own, whose end tells that it happened.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/preload.h"

REAL(int, close, (int fd), (fd))
REAL(int, execve, (const char *p, char *const a[], char *const e[]), (p, a, e))
REAL(int, fexecve, (int fd, char *const a[], char *const e[]), (fd, a, e))
REAL(int, execveat, (int fd, const char *p, char *const a[], char *const e[], int f),
     (fd, p, a, e, f))
REAL(int, posix_spawn,
     (pid_t * p, const char *f, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *sa,
      char *const a[], char *const e[]),
     (p, f, fa, sa, a, e))

/* ---- exec ---- */

/*
 * A program of the machine's own instruction set runs under the engine, with the environment that
 * it would have without us; the exec of any other is announced, so that enable_on_exec happens.
 * Called between vfork and exec as well: nothing of the parent's memory changes, and each exec has
 * a connection of its own, whose end tells that it happened.
 */
extern char **environ;

struct plan {
	int fd;	    /* stays open until the exec closes it, -1 */
	long words; /* of the command, 0: run it as it is */
	char *text;
	size_t length;
};

static bool plan_exec(struct plan *plan, const char *path, const char *argv0, char *text,
		      size_t room)
{
	char names[2 * PAGE];
	struct exchange x = {
		.request = {.op = GATE_EXEC}, .payload = names, .answer = text, .room = room};
	size_t n = strlen(path) + 1, n0 = strlen(argv0) + 1;

	plan->fd = -1;
	plan->words = 0;
	/* The engine follows the exec of what runs under it. */
	if (preload_machine() <= 0 || getenv(GATE_ENGINE) || n + n0 > sizeof(names) ||
	    faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return false;
	memcpy(names, path, n);
	memcpy(names + n, argv0, n0);
	x.length = n + n0;
	plan->fd = preload_dial();
	if (plan->fd < 0)
		return false;
	if (!preload_exchange_on(plan->fd, &x) || x.reply.result < 0)
		return false;
	plan->words = x.reply.result ? (long)x.reply.values[0] : 0;
	plan->text = text;
	plan->length = x.reply.length;
	return true;
}

static void plan_failed(struct plan *plan)
{
	struct exchange x = {.request = {.op = GATE_EXEC_FAILED}};
	int err = errno;

	if (plan->fd >= 0) {
		preload_exchange_on(plan->fd, &x);
		real_close(plan->fd);
	}
	errno = err;
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n]) /* Linux takes a missing list for an empty one */
		n++;
	return n;
}

static size_t count_strings(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->length; i++)
		n += !p->text[i];
	return n;
}

/* One change: "NAME=value" or "NAME". The place in the list stays, so that the stack of the program
 * is the same. */
static size_t change(char **env, size_t n, char *edit)
{
	size_t len = strcspn(edit, "="), to = 0;
	bool found = false, set = edit[len] == '=';

	for (size_t i = 0; i < n; i++) {
		bool same = !strncmp(env[i], edit, len) && env[i][len] == '=';

		if (same && (!set || found))
			continue;
		env[to++] = same ? edit : env[i];
		found = found || same;
	}
	if (set && !found)
		env[to++] = edit;
	return to;
}

/* argv and environment of the program under the engine, in arrays with room for them. */
static void fill(const struct plan *p, char *const argv[], char *const envp[], char **words,
		 char **env)
{
	size_t n = count(envp), rest = count(argv), i = 0;
	char *t = p->text, *end = p->text + p->length;

	for (; t < end && i < (size_t)p->words; t += strlen(t) + 1)
		words[i++] = t;
	for (size_t k = 1; k < rest; k++)
		words[i++] = argv[k];
	words[i] = NULL;
	if (n)
		memcpy(env, envp, n * sizeof(*env));
	for (; t < end; t += strlen(t) + 1)
		n = change(env, n, t);
	env[n] = NULL;
}

/*
 * What makes a program a client. On a machine all are, with whatever environment they are started:
 * perf daemon starts its sessions with none.
 */
static const char *const ours[] = {"LD_PRELOAD", GATE_ENV,   GATE_CPUS,	  GATE_HOST,
				   GATE_TREE,	 GATE_UNAME, "SYSFS_PATH"};
#define OURS (sizeof(ours) / sizeof(ours[0]))
static char *kept[OURS]; /* "NAME=value" as this process was started, NULL: without */

__attribute__((constructor)) static void keep_ours(void)
{
	for (size_t i = 0; i < OURS; i++)
		for (char **e = environ; e && *e && !kept[i]; e++)
			if (!strncmp(*e, ours[i], strlen(ours[i])) && (*e)[strlen(ours[i])] == '=')
				kept[i] = *e;
}

static bool names(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return true;
	return false;
}

/* @envp with what is missing, in an array with OURS more entries. */
static void complete(char *const envp[], char **env)
{
	size_t n = count(envp);

	if (n)
		memcpy(env, envp, n * sizeof(*env));
	for (size_t i = 0; i < OURS; i++)
		if (kept[i] && !names(envp, ours[i]))
			env[n++] = kept[i];
	env[n] = NULL;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	char text[GATE_PAYLOAD];
	struct plan plan;
	int rc;

	if (!plan_exec(&plan, path, count(argv) ? argv[0] : path, text, sizeof(text)) ||
	    !plan.words) {
		char *env[count(envp) + OURS + 1];

		complete(envp, env);
		rc = real_execve(path, argv, preload_machine() > 0 ? env : envp);
	} else {
		char *words[(size_t)plan.words + count(argv) + 1];
		char *env[count(envp) + count_strings(&plan) + 1];

		fill(&plan, argv, envp, words, env);
		rc = real_execve(words[0], words, env);
	}
	plan_failed(&plan);
	return rc;
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

/* The file behind a descriptor, where it still has its name. */
static bool name_of(int fd, char path[PAGE])
{
	char link[64];
	struct stat a, b;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PAGE - 1);
	if (n <= 0)
		return false;
	path[n] = 0;
	return !fstat(fd, &a) && !stat(path, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	char path[PAGE];
	int err = errno;

	if (preload_machine() <= 0 || !name_of(fd, path)) {
		errno = err;
		return real_fexecve(fd, argv, envp);
	}
	return execve(path, argv, envp);
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	if (preload_machine() > 0 && flags == AT_EMPTY_PATH && !*path)
		return fexecve(fd, argv, envp);
	if (preload_machine() > 0 && !flags && (fd == AT_FDCWD || *path == '/'))
		return execve(path, argv, envp);
	return real_execveat(fd, path, argv, envp, flags);
}

static int run_script(const char *path, char *const argv[], char *const envp[])
{
	size_t n = count(argv);
	char *words[n + 3];

	words[0] = (char *)"/bin/sh";
	words[1] = (char *)path;
	for (size_t i = 1; i < n; i++)
		words[i + 1] = argv[i];
	words[n > 0 ? n + 1 : 2] = NULL;
	return execve("/bin/sh", words, envp);
}

/* The @i-th candidate for @file in PATH; false past the last. */
static bool candidate(const char *file, unsigned i, char path[PAGE])
{
	const char *dirs = getenv("PATH");
	size_t n;

	if (strchr(file, '/'))
		return !i && snprintf(path, PAGE, "%s", file) < (int)PAGE;
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (; i; i--) {
		dirs += strcspn(dirs, ":");
		if (!*dirs++)
			return false;
	}
	n = strcspn(dirs, ":");
	return snprintf(path, PAGE, "%.*s%s%s", (int)n, dirs, n ? "/" : "", file) < (int)PAGE;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	bool denied = false;
	char path[PAGE];

	if (!*file) {
		errno = ENOENT;
		return -1;
	}
	for (unsigned i = 0; candidate(file, i, path); i++) {
		execve(path, argv, envp);
		if (errno == ENOEXEC)
			return run_script(path, argv, envp);
		denied = denied || errno == EACCES;
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ESTALE &&
		    errno != ENODEV)
			return -1;
	}
	if (denied)
		errno = EACCES;
	return -1;
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The words of an execl call. */
#define COLLECT(words, first, ap)                                                                  \
	size_t collect_n = 1;                                                                      \
	va_list collect_ap;                                                                        \
	va_copy(collect_ap, ap);                                                                   \
	while (va_arg(collect_ap, char *))                                                         \
		collect_n++;                                                                       \
	va_end(collect_ap);                                                                        \
	char *words[collect_n + 1];                                                                \
	words[0] = (char *)(first);                                                                \
	for (size_t collect_i = 1; collect_i <= collect_n; collect_i++)                            \
	words[collect_i] = va_arg(ap, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
	va_list ap;

	va_start(ap, first);
	COLLECT(words, first, ap);
	va_end(ap);
	return execve(path, words, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	va_list ap;

	va_start(ap, first);
	COLLECT(words, first, ap);
	va_end(ap);
	return execvpe(file, words, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *envp;
	va_list ap;

	va_start(ap, first);
	COLLECT(words, first, ap);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, words, envp);
}

static int spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	char text[GATE_PAYLOAD];
	struct plan plan;
	int rc;

	if (!plan_exec(&plan, path, count(argv) ? argv[0] : path, text, sizeof(text)) ||
	    !plan.words) {
		char *env[count(envp) + OURS + 1];

		complete(envp, env);
		plan_failed(&plan); /* its exec is not ours */
		return real_posix_spawn(pid, path, actions, attr, argv,
					preload_machine() > 0 ? env : envp);
	}
	char *words[(size_t)plan.words + count(argv) + 1];
	char *env[count(envp) + count_strings(&plan) + 1];

	fill(&plan, argv, envp, words, env);
	rc = real_posix_spawn(pid, words[0], actions, attr, words, env);
	real_close(plan.fd);
	return rc;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return spawn(pid, path, actions, attr, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	char path[PAGE];

	for (unsigned i = 0; candidate(file, i, path); i++)
		if (!faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
			return spawn(pid, path, actions, attr, argv, envp);
	return ENOENT;
}
