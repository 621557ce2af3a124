/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's paths: where no mount namespace shows the machine's files (quipu exec
 * --no-ns), a path that would be theirs is taken to where they lie. perf ABI sheet C2 ("path
 * redirection"), D3.11.
 *
 * What the C library opens by itself is not seen: where that is a number of CPUs, the number is
 * answered here. Nor are system calls of a program's own, static programs, and glob(3) and
 * nftw(3), which walk inside the C library. A path is compared as it is written: one that leads
 * there by ".." or a link from elsewhere is the host's.
 *
 * With or without a namespace: the machine's name of uname(2).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/preload.h"

/* Whole directories, as a mount would cover them; below /proc the machine has single files. */
static const char *const covered[] = {
	"/sys/bus/event_source/devices",
	"/sys/class/iommu",
	"/sys/devices/system/cpu",
	"/sys/devices/system/node",
};

static const char *tree(void)
{
	static const char *root;
	static bool looked;

	if (!looked) {
		root = preload_machine() > 0 ? getenv(GATE_TREE) : NULL;
		looked = true;
	}
	return root && *root ? root : NULL;
}

static bool begins(const char *path, const char *with)
{
	size_t n = strlen(with);

	return !strncmp(path, with, n) && (!path[n] || path[n] == '/');
}

/* "//" and "/./" mean nothing. */
static bool tidy(const char *path, char out[PATH_MAX])
{
	size_t n = 0;

	for (; *path; path++) {
		while (path[0] == '/' && (path[1] == '/' || (path[1] == '.' && path[2] == '/')))
			path += path[1] == '/' ? 1 : 2;
		if (n == PATH_MAX - 1)
			return false;
		out[n++] = *path;
	}
	out[n] = 0;
	return true;
}

static int there(const char *path)
{
	static int (*real)(const char *, int);
	int err = errno, rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "access");
	rc = real(path, F_OK);
	errno = err;
	return !rc;
}

/* @path, or where the machine has it, in @out. */
static const char *place_of(const char *path, char out[PATH_MAX])
{
	char clean[PATH_MAX];
	const char *root;
	bool ours = false;

	/* Few paths begin so: the rest costs nothing. */
	if (!path || path[0] != '/' ||
	    (strncmp(path + 1, "sys", 3) && strncmp(path + 1, "proc", 4) && path[1] != '/' &&
	     path[1] != '.'))
		return path;
	root = tree();
	if (!root || !tidy(path, clean) || snprintf(out, PATH_MAX, "%s%s", root, clean) >= PATH_MAX)
		return path;
	for (size_t i = 0; i < sizeof(covered) / sizeof(covered[0]); i++)
		if (begins(clean, covered[i])) {
			snprintf(out, PATH_MAX, "%s%s", root, covered[i]);
			ours = there(out); /* this machine may have none */
			snprintf(out, PATH_MAX, "%s%s", root, clean);
		}
	/* Its directories hold a few of what the host's do. */
	if (!ours && begins(clean, "/proc")) {
		struct stat st;
		int err = errno;

		ours = !fstatat(AT_FDCWD, out, &st, 0) && S_ISREG(st.st_mode);
		errno = err;
	}
	return ours ? out : path;
}

#define NEXT(fn, name)                                                                             \
	if (!(fn))                                                                                 \
	*(void **)&(fn) = dlsym(RTLD_NEXT, name)

/* A function whose path is the argument @path; the others are passed on. */
#define PATH_CALL(ret, name, params, args)                                                         \
	EXPORT ret name params;                                                                    \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		static ret(*real) params;                                                          \
		char place[PATH_MAX];                                                              \
                                                                                                   \
		NEXT(real, #name);                                                                 \
		path = place_of(path, place);                                                      \
		return real args;                                                                  \
	}

/* open(2) and its relatives: a mode behind the flags where a file is made. */
#define OPEN_CALL(name, params, args)                                                              \
	EXPORT int name params;                                                                    \
	EXPORT int name params                                                                     \
	{                                                                                          \
		static int(*real) params;                                                          \
		char place[PATH_MAX];                                                              \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
                                                                                                   \
		if (flags & (O_CREAT | __O_TMPFILE)) {                                             \
			va_start(ap, flags);                                                       \
			mode = va_arg(ap, mode_t);                                                 \
			va_end(ap);                                                                \
		}                                                                                  \
		NEXT(real, #name);                                                                 \
		path = place_of(path, place);                                                      \
		return real args;                                                                  \
	}

OPEN_CALL(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN_CALL(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN_CALL(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))
OPEN_CALL(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))
PATH_CALL(int, __open_2, (const char *path, int flags), (path, flags))
PATH_CALL(int, __open64_2, (const char *path, int flags), (path, flags))
PATH_CALL(int, __openat_2, (int fd, const char *path, int flags), (fd, path, flags))
PATH_CALL(int, __openat64_2, (int fd, const char *path, int flags), (fd, path, flags))
PATH_CALL(FILE *, fopen, (const char *path, const char *mode), (path, mode))
PATH_CALL(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
PATH_CALL(FILE *, freopen, (const char *path, const char *mode, FILE *f), (path, mode, f))
PATH_CALL(FILE *, freopen64, (const char *path, const char *mode, FILE *f), (path, mode, f))
PATH_CALL(DIR *, opendir, (const char *path), (path))
PATH_CALL(int, scandir,
	  (const char *path, struct dirent ***list, int (*wanted)(const struct dirent *),
	   int (*order)(const struct dirent **, const struct dirent **)),
	  (path, list, wanted, order))
PATH_CALL(int, scandir64,
	  (const char *path, struct dirent64 ***list, int (*wanted)(const struct dirent64 *),
	   int (*order)(const struct dirent64 **, const struct dirent64 **)),
	  (path, list, wanted, order))
PATH_CALL(int, access, (const char *path, int mode), (path, mode))
PATH_CALL(int, euidaccess, (const char *path, int mode), (path, mode))
PATH_CALL(int, eaccess, (const char *path, int mode), (path, mode))
PATH_CALL(int, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
PATH_CALL(int, stat, (const char *path, struct stat *st), (path, st))
PATH_CALL(int, stat64, (const char *path, struct stat64 *st), (path, st))
PATH_CALL(int, lstat, (const char *path, struct stat *st), (path, st))
PATH_CALL(int, lstat64, (const char *path, struct stat64 *st), (path, st))
PATH_CALL(int, fstatat, (int fd, const char *path, struct stat *st, int flags),
	  (fd, path, st, flags))
PATH_CALL(int, fstatat64, (int fd, const char *path, struct stat64 *st, int flags),
	  (fd, path, st, flags))
PATH_CALL(int, __xstat, (int v, const char *path, struct stat *st), (v, path, st))
PATH_CALL(int, __xstat64, (int v, const char *path, struct stat64 *st), (v, path, st))
PATH_CALL(int, __lxstat, (int v, const char *path, struct stat *st), (v, path, st))
PATH_CALL(int, __lxstat64, (int v, const char *path, struct stat64 *st), (v, path, st))
PATH_CALL(int, __fxstatat, (int v, int fd, const char *path, struct stat *st, int flags),
	  (v, fd, path, st, flags))
PATH_CALL(int, __fxstatat64, (int v, int fd, const char *path, struct stat64 *st, int flags),
	  (v, fd, path, st, flags))
PATH_CALL(int, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *st),
	  (fd, path, flags, mask, st))
PATH_CALL(int, statfs, (const char *path, struct statfs *st), (path, st))
PATH_CALL(int, statfs64, (const char *path, struct statfs64 *st), (path, st))
PATH_CALL(ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n))
PATH_CALL(ssize_t, __readlink_chk, (const char *path, char *to, size_t n, size_t room),
	  (path, to, n, room))
PATH_CALL(ssize_t, readlinkat, (int fd, const char *path, char *to, size_t n), (fd, path, to, n))
PATH_CALL(ssize_t, __readlinkat_chk, (int fd, const char *path, char *to, size_t n, size_t room),
	  (fd, path, to, n, room))
PATH_CALL(int, chdir, (const char *path), (path))

/* ---- a path as the answer ---- */

/* What lies in the tree is named as the machine has it. */
static void name_back(char *path)
{
	const char *root = tree();
	size_t n = root ? strlen(root) : 0;

	if (n && path && !strncmp(path, root, n) && path[n] == '/')
		memmove(path, path + n, strlen(path + n) + 1);
}

#define NAMING_CALL(name, params, args)                                                            \
	EXPORT char *name params;                                                                  \
	EXPORT char *name params                                                                   \
	{                                                                                          \
		static char *(*real)params;                                                        \
		char place[PATH_MAX], *got;                                                        \
                                                                                                   \
		NEXT(real, #name);                                                                 \
		path = place_of(path, place);                                                      \
		got = real args;                                                                   \
		name_back(got);                                                                    \
		return got;                                                                        \
	}

NAMING_CALL(realpath, (const char *path, char *to), (path, to))
NAMING_CALL(__realpath_chk, (const char *path, char *to, size_t room), (path, to, room))
NAMING_CALL(canonicalize_file_name, (const char *path), (path))

EXPORT char *getcwd(char *to, size_t n)
{
	static char *(*real)(char *, size_t);
	char *got;

	NEXT(real, "getcwd");
	got = real(to, n);
	name_back(got);
	return got;
}

/* ---- what the C library reads by itself ---- */

static long modelled_cpus(void)
{
	const char *text = tree() ? getenv(GATE_CPUS) : NULL;

	return text ? atol(text) : 0;
}

EXPORT long sysconf(int name)
{
	static long (*real)(int);
	long n = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? modelled_cpus() : 0;

	NEXT(real, "sysconf");
	return n ? n : real(name);
}

EXPORT int get_nprocs(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

EXPORT int get_nprocs_conf(void)
{
	return (int)sysconf(_SC_NPROCESSORS_CONF);
}

/* ---- the machine's name ---- */

EXPORT int uname(struct utsname *u)
{
	static int (*real)(struct utsname *);
	const char *name = preload_machine() > 0 ? getenv(GATE_UNAME) : NULL;
	int rc;

	NEXT(real, "uname");
	rc = real(u);
	if (!rc && name) {
		memset(u->machine, 0, sizeof(u->machine));
		snprintf(u->machine, sizeof(u->machine), "%s", name);
	}
	return rc;
}
