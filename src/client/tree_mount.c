/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The generated tree where clients look for it. perf ABI sheet C2: bind mounts over
 * /sys/bus/event_source/devices, /sys/class/iommu, /sys/devices/system/{cpu,node}, /proc/cpuinfo
 * and the perf sysctls, in a mount namespace of our own; all clients see them, static ones and the
 * C library's own reads too. /sys stays sysfs, so perf's check of it passes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/tree_mount.h"

#define PATH 4096

/* ---- namespaces ---- */

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Inside we are root, as one must be to mount; outside nothing changes. */
static int map_root(uid_t uid, gid_t gid)
{
	char line[64];
	int rc;

	snprintf(line, sizeof(line), "0 %u 1", (unsigned)uid);
	rc = write_text("/proc/self/uid_map", line);
	if (!rc)
		rc = write_text("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "0 %u 1", (unsigned)gid);
	return rc ? rc : write_text("/proc/self/gid_map", line);
}

static int enter(bool user)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int rc;

	if (unshare(CLONE_NEWNS | (user ? CLONE_NEWUSER : 0)))
		return -errno;
	rc = user ? map_root(uid, gid) : 0;
	if (rc)
		return rc;
	/* What the host mounts later is seen here, what is mounted here is not seen there. */
	return mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) ? -errno : 0;
}

/*
 * There is no way back from half of it: a user without a name, or (in a chroot, whose / is no mount
 * point) files that have lost their paths. So a child goes first.
 */
static int try_enter(bool user)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(-enter(user));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int tree_unshare(bool *user)
{
	bool new_user = geteuid() != 0;
	int rc = try_enter(new_user);

	if (!rc)
		rc = enter(new_user);
	*user = !rc && new_user;
	return rc;
}

/* ---- files ---- */

static int make_parents(char *path, size_t from)
{
	for (char *p = path + from; (p = strchr(p + 1, '/')) != NULL;) {
		*p = 0;
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

/* As sysfs has them: what hardware says of itself can only be read. */
static mode_t mode_of(const char *path)
{
	static const char *const settings[] = {"perf_event_mux_interval_ms", "online", "uevent"};
	const char *name = strrchr(path, '/') + 1;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (!strcmp(name, settings[i]))
			return 0644;
	return strncmp(path, "/sys/", 5) ? 0644 : 0444;
}

static int write_file(const struct quipu_tree_file *f, const char *root)
{
	char path[PATH];
	size_t n = strlen(f->text);
	int fd, rc;

	if (snprintf(path, sizeof(path), "%s%s", root, f->path) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	rc = make_parents(path, strlen(root));
	if (rc)
		return rc;
	if (f->link)
		return symlink(f->text, path) ? -errno : 0;
	unlink(path); /* one from before may be read-only */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_of(f->path));
	if (fd < 0)
		return -errno;
	rc = write(fd, f->text, n) == (ssize_t)n ? 0 : -errno;
	close(fd);
	return rc;
}

int tree_write(const struct quipu_tree *t, const char *root, char *why, size_t why_len)
{
	for (size_t i = 0; i < t->n; i++) {
		int rc = t->files[i].own ? 0 : write_file(&t->files[i], root);

		if (rc) {
			snprintf(why, why_len, "cannot write %s below %s: %s", t->files[i].path,
				 root, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && 0;
}

void tree_remove(const char *root)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- mounts ---- */

/* Bound as they are; of the rest of the tree, the files below /proc one by one. */
static const char *const bound[] = {
	"/sys/bus/event_source/devices",
	"/sys/class/iommu", /* not every host's kernel has it */
	"/sys/devices/system/cpu",
	"/sys/devices/system/node",
};

static int bind_one(const char *root, const char *path, char *why, size_t why_len)
{
	char from[PATH];

	snprintf(from, sizeof(from), "%s%s", root, path);
	if (access(from, F_OK))
		return 0; /* this machine has none */
	if (!mount(from, path, NULL, MS_BIND, NULL))
		return 0;
	snprintf(why, why_len, "cannot show the machine's %s: %s", path, strerror(errno));
	return -errno;
}

/* ---- changes ---- */

static bool reachable(const struct quipu_tree_file *f, const char *root)
{
	if (*root)
		return true;
	for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++)
		if (!strncmp(f->path, bound[i], strlen(bound[i])) &&
		    f->path[strlen(bound[i])] == '/' && !access(bound[i], F_OK))
			return true;
	return false;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct quipu_tree_file *)a)->path,
		      ((const struct quipu_tree_file *)b)->path);
}

static const struct quipu_tree_file *find(const struct quipu_tree *t, const char *path)
{
	const struct quipu_tree_file key = {.path = (char *)path};

	return bsearch(&key, t->files, t->n, sizeof(key), by_path);
}

/* With the directories above that are empty then. */
static void remove_file(const char *root, const char *file)
{
	char path[PATH], *slash;

	if (snprintf(path, sizeof(path), "%s%s", root, file) >= (int)sizeof(path) || unlink(path))
		return;
	while ((slash = strrchr(path + strlen(root) + 1, '/')) != NULL) {
		*slash = 0;
		if (rmdir(path))
			return;
	}
}

/* In place where that can be: others hold it open, watch it, or have it bound. */
static int rewrite_file(const struct quipu_tree_file *f, const char *root)
{
	char path[PATH];
	size_t n = strlen(f->text);
	int fd = -1, rc;

	if (!f->link && snprintf(path, sizeof(path), "%s%s", root, f->path) < (int)sizeof(path))
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return write_file(f, root);
	rc = write(fd, f->text, n) == (ssize_t)n ? 0 : -errno;
	close(fd);
	return rc;
}

int tree_update(const struct quipu_tree *old, const struct quipu_tree *now, const char *root)
{
	int first = 0;

	for (size_t i = 0; i < old->n; i++)
		if (reachable(&old->files[i], root) && !find(now, old->files[i].path))
			remove_file(root, old->files[i].path);
	for (size_t i = 0; i < now->n; i++) {
		const struct quipu_tree_file *f = &now->files[i], *was = find(old, f->path);
		int rc;

		if (!reachable(f, root) || (was && !strcmp(was->text, f->text)))
			continue;
		rc = rewrite_file(f, root);
		first = first ? first : rc;
	}
	return first;
}

/* ---- a directory of the host's procfs with more in it ---- */

#define SYSCTLS "/proc/sys/kernel"
#define HOSTS	".host"

/* Of the host's, all that the machine has none of its own of. */
static int link_others(const char *directory)
{
	char path[PATH + 256], target[PATH];
	DIR *d = opendir(SYSCTLS);
	int rc = d ? 0 : -errno;

	for (struct dirent *e; !rc && (e = readdir(d)) != NULL;) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		snprintf(target, sizeof(target), "%s/%s", HOSTS, e->d_name);
		if (symlink(target, path) && errno != EEXIST)
			rc = -errno;
	}
	if (d)
		closedir(d);
	return rc;
}

/*
 * A sysctl that this host's kernel lacks: nothing can be bound where nothing is, so the machine's
 * directory takes the place of the host's, which is inside of it, a link for each of its files.
 * Where that cannot be (a container may have locked its /proc) the sysctl is not shown. True: the
 * machine's are all shown.
 */
static bool cover_sysctls(const struct quipu_tree *t, const char *root)
{
	char directory[PATH], hosts[PATH + 8];
	bool missing = false;

	for (size_t i = 0; i < t->n && !missing; i++)
		missing = !strncmp(t->files[i].path, SYSCTLS "/", sizeof(SYSCTLS)) &&
			  access(t->files[i].path, F_OK);
	if (!missing ||
	    snprintf(directory, sizeof(directory), "%s" SYSCTLS, root) >= (int)sizeof(directory))
		return false;
	snprintf(hosts, sizeof(hosts), "%s/" HOSTS, directory);
	return !mkdir(hosts, 0555) && !mount(SYSCTLS, hosts, NULL, MS_BIND | MS_REC, NULL) &&
	       !link_others(directory) && !mount(directory, SYSCTLS, NULL, MS_BIND | MS_REC, NULL);
}

static int bind_all(const struct quipu_tree *t, const char *root, char *why, size_t why_len)
{
	bool covered = cover_sysctls(t, root);
	int rc = 0;

	for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]) && !rc; i++)
		if (strncmp(bound[i], "/sys/class/", 11) || !access(bound[i], F_OK))
			rc = bind_one(root, bound[i], why, why_len);
	for (size_t i = 0; i < t->n && !rc; i++)
		if (!strncmp(t->files[i].path, "/proc/", 6) && !access(t->files[i].path, F_OK) &&
		    !(covered && !strncmp(t->files[i].path, SYSCTLS "/", sizeof(SYSCTLS))))
			rc = bind_one(root, t->files[i].path, why, why_len);
	return rc;
}

int tree_mount(const struct quipu_tree *t, char *why, size_t why_len)
{
	const char *tmp = getenv("TMPDIR");
	char root[PATH];
	int rc;

	snprintf(root, sizeof(root), "%s/quipu-tree-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(root)) {
		snprintf(why, why_len, "cannot make a directory like %s: %s", root,
			 strerror(errno));
		return -errno;
	}
	if (mount("quipu", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")) {
		rc = -errno;
		snprintf(why, why_len, "cannot mount a tmpfs on %s: %s", root, strerror(-rc));
		rmdir(root);
		return rc;
	}
	rc = tree_write(t, root, why, why_len);
	if (!rc)
		rc = bind_all(t, root, why, why_len);
	/* The binds keep the files; the place where they were made is gone from here and from the
	 * host. */
	umount2(root, MNT_DETACH);
	rmdir(root);
	return rc;
}
