/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients write into the machine's files takes effect: the perf sysctls, an interval of
 * multiplexing, a CPU's online. perf ABI sheet A17, C2, D5. The files are plain ones, so a kernel's
 * EINVAL cannot be given: a value that is refused is replaced by the old one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <quipu/tree.h>

#include "client/gate_impl.h"

enum kind { SYSCTL, PMU_FILE, INTERVAL, ONLINE };

struct watch {
	int wd;
	enum kind kind;
	char *path;	  /* in the tree */
	const char *name; /* of the sysctl, as quipu_core_set_sysctl has it */
	struct quipu_pmu *pmu;
	unsigned cpu;
};

struct tree_watch {
	struct watch *watches;
	size_t n, room;
};

static const struct {
	const char *file, *name;
} sysctls[] = {
	{"perf_event_paranoid", "paranoid"},
	{"perf_event_max_sample_rate", "max_sample_rate"},
	{"perf_event_max_stack", "max_stack"},
	{"perf_event_mlock_kb", "mlock_kb"},
};

/* Files that are not shown here are not watched; out of memory neither is the rest. */
static void watch(struct gate *g, const struct watch *w, const char *fmt, const char *text,
		  unsigned number)
{
	struct tree_watch *t = g->tree_watch;
	char tree[PATH_MAX], path[PATH_MAX + 256];
	int wd;

	snprintf(tree, sizeof(tree), fmt, text, number);
	if (!quipu_tree_text(*g->config.tree, tree))
		return;
	snprintf(path, sizeof(path), "%s%s", g->config.tree_root, tree);
	wd = inotify_add_watch(g->tree_files.fd, path, IN_CLOSE_WRITE);
	if (wd < 0)
		return;
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		struct watch *more = reallocarray(t->watches, room, sizeof(*more));

		if (!more)
			return;
		t->watches = more;
		t->room = room;
	}
	t->watches[t->n] = *w;
	t->watches[t->n].wd = wd;
	t->watches[t->n++].path = strdup(tree);
}

static void watch_all(struct gate *g)
{
	struct quipu_pmu *const *pmus;
	size_t n;

	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++)
		watch(g, &(struct watch){.kind = SYSCTL, .name = sysctls[i].name},
		      "/proc/sys/kernel/%s", sysctls[i].file, 0);
	pmus = quipu_core_pmus(g->core, &n);
	for (size_t i = 0; i < n; i++) {
		watch(g, &(struct watch){.kind = INTERVAL, .pmu = pmus[i]},
		      "/sys/bus/event_source/devices/%s/perf_event_mux_interval_ms", pmus[i]->name,
		      0);
		for (const struct quipu_pmu_file *f = pmus[i]->files; f && f->path; f++)
			if (!strncmp(f->path, "/proc/sys/", 10))
				watch(g, &(struct watch){.kind = PMU_FILE, .pmu = pmus[i]}, "%s",
				      f->path, 0);
	}
	for (unsigned cpu = 0; cpu < g->ncpus; cpu++)
		watch(g, &(struct watch){.kind = ONLINE, .cpu = cpu},
		      "/sys/devices/system/cpu/%s%u/online", "cpu", cpu);
}

int tree_watch_begin(struct gate *g)
{
	int fd;

	if (!g->config.tree || !*g->config.tree)
		return 0;
	g->tree_watch = calloc(1, sizeof(*g->tree_watch));
	fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (!g->tree_watch || fd < 0) {
		if (fd >= 0)
			close(fd);
		return 0; /* the files are then only read */
	}
	if (gate_watch(g, &g->tree_files, SOURCE_TREE, fd, EPOLLIN))
		return -errno;
	watch_all(g);
	return 0;
}

static void forget_all(struct tree_watch *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->watches[i].path);
	t->n = 0;
}

/* What was written to a PMU that is gone meanwhile is nobody's: its watch has another number. */
void tree_watch_renew(struct gate *g)
{
	struct tree_watch *t = g->tree_watch;

	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		inotify_rm_watch(g->tree_files.fd, t->watches[i].wd);
	forget_all(t);
	watch_all(g);
}

void tree_watch_end(struct gate *g)
{
	struct tree_watch *t = g->tree_watch;

	if (!t)
		return;
	forget_all(t);
	free(t->watches);
	free(t);
	g->tree_watch = NULL;
	if (g->tree_files.fd >= 0)
		close(g->tree_files.fd);
}

/* As a kernel, the machine keeps its last CPU. Unlike one it moves no running program. */
static int set_online(struct gate *g, unsigned cpu, bool online, const char **why)
{
	unsigned left = 0;
	int rc;

	for (unsigned c = 0; c < g->ncpus; c++)
		left += c != cpu && quipu_core_is_online(g->core, c);
	if (!online && !left) {
		*why = "it is the last CPU; take another one online first";
		return -EBUSY;
	}
	rc = quipu_core_set_online(g->core, cpu, online);
	if (rc == -EBUSY)
		*why = "a program runs on it; write again when that has ended";
	return rc;
}

static int set(struct gate *g, const struct watch *w, long value, const char **why)
{
	switch (w->kind) {
	case SYSCTL: return quipu_core_set_sysctl(g->core, w->name, value);
	case PMU_FILE:
		return w->pmu->file_written ? w->pmu->file_written(w->pmu, w->path, value)
					    : -EACCES;
	case INTERVAL:
		return value < 1 || value > 1000000
			       ? -EINVAL
			       : quipu_core_set_mux_interval(g->core, w->pmu, (unsigned)value);
	case ONLINE:
		return value < 0 || value > 1 ? -EINVAL : set_online(g, w->cpu, (bool)value, why);
	}
	return -EINVAL;
}

static void put_back(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		ftruncate(fd, 0); /* an empty file, then */
	close(fd);
}

static void written(struct gate *g, const struct watch *w)
{
	const char *was = quipu_tree_text(*g->config.tree, w->path);
	char path[PATH_MAX + 256], text[64] = "", *end;
	const char *why = "";
	ssize_t n;
	long value;
	int fd, rc;

	snprintf(path, sizeof(path), "%s%s", g->config.tree_root, w->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || !was || !strcmp(text, was)) /* what we wrote ourselves comes here too */
		return;
	value = strtol(text, &end, 0);
	rc = end == text || (*end && *end != '\n') ? -EINVAL : set(g, w, value, &why);
	if (!rc) {
		gate_update_tree(g);
		return;
	}
	put_back(path, was);
	if (g->config.verbose)
		fprintf(stderr, "quipu: %s: %s%s%s\n", w->path, strerrorname_np(-rc),
			*why ? ": " : "", why);
}

void tree_watch_serve(struct gate *g)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n = read(g->tree_files.fd, buf, sizeof(buf));

	session_serve(g->session);
	tasks_run(g);
	for (ssize_t at = 0; at < n;) {
		struct inotify_event ev;

		memcpy(&ev, buf + at, sizeof(ev));
		at += (ssize_t)(sizeof(ev) + ev.len);
		for (size_t i = 0; i < g->tree_watch->n; i++)
			if (g->tree_watch->watches[i].wd == ev.wd) {
				written(g, &g->tree_watch->watches[i]);
				break;
			}
	}
	session_sync(g->session);
	gate_changed(g);
}
