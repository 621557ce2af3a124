// SPDX-License-Identifier: BSD-2-Clause
/*
 * sysfs as a list of files, CPUs and their topology (Documentation/ABI/testing/
 * sysfs-bus-event_source-devices, sysfs-devices-system-cpu). A recorded tree is a stranger's: only
 * regular files are read, each up to a page, as sysfs itself would give.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/host/host.h"

#define DEVICES	     "/bus/event_source/devices"
#define PAGE	     4096u
#define FILES_MAX    65536u
#define CPUS_MAX     8192u
#define PATH_LEN_MAX 1024

/* ---- reading ---- */

/* A regular file's first page; -errno. */
static int read_at(int dir, const char *name, char *buf, size_t len)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = 0;
	struct stat st;
	size_t n = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		ret = -EINVAL;
	while (!ret && n + 1 < len) {
		ssize_t r = read(fd, buf + n, len - 1 - n);

		if (r < 0 && errno != EINTR)
			ret = -errno;
		if (r == 0)
			break;
		n += r > 0 ? (size_t)r : 0;
	}
	close(fd);
	buf[ret ? 0 : n] = '\0';
	return ret;
}

int host_read_text(const char *path, char *buf, size_t len)
{
	int ret = read_at(AT_FDCWD, path, buf, len);
	size_t n = strlen(buf);

	if (!ret && n && buf[n - 1] == '\n')
		buf[n - 1] = '\0';
	return ret;
}

/* ---- the tree ---- */

static int add_file(struct quipu_tree *t, const char *pmu, const char *sub, const char *name,
		    const char *text)
{
	struct quipu_tree_file f = {0};

	if (t->n >= FILES_MAX)
		return 0;
	if (!(t->n & (t->n - 1))) { /* room doubles at each power of two */
		struct quipu_tree_file *grown =
			realloc(t->files, (t->n ? 2 * t->n : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->files = grown;
	}
	if (asprintf(&f.path, "/sys" DEVICES "/%s/%s%s%s", pmu, sub, *sub ? "/" : "", name) < 0)
		return -ENOMEM;
	f.text = strdup(text);
	if (!f.text) {
		free(f.path);
		return -ENOMEM;
	}
	t->files[t->n++] = f;
	return 0;
}

static int add_folder(struct quipu_tree *t, int pmu_dir, const char *pmu, const char *sub)
{
	int fd = openat(pmu_dir, sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char text[PAGE];

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *e; !ret && (e = readdir(d));)
		if (e->d_name[0] != '.' && !read_at(dirfd(d), e->d_name, text, sizeof(text)))
			ret = add_file(t, pmu, sub, e->d_name, text);
	closedir(d);
	return ret;
}

static int add_pmu(struct quipu_tree *t, int devices, const char *pmu)
{
	static const char *const files[] = {"type", "cpumask", "cpus", "alias", "nr_addr_filters"};
	static const char *const folders[] = {"format", "events", "caps"};
	int fd = openat(devices, pmu, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	char text[PAGE];

	if (fd < 0)
		return 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !ret; i++)
		if (!read_at(fd, files[i], text, sizeof(text)))
			ret = add_file(t, pmu, "", files[i], text);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && !ret; i++)
		ret = add_folder(t, fd, pmu, folders[i]);
	close(fd);
	return ret;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct quipu_tree_file *)a)->path,
		      ((const struct quipu_tree_file *)b)->path);
}

struct quipu_tree *host_tree(const char *root)
{
	struct quipu_tree *t = calloc(1, sizeof(*t));
	char path[PATH_LEN_MAX];
	DIR *d = NULL;
	int ret = 0;

	if (!t)
		return NULL;
	if (snprintf(path, sizeof(path), "%s" DEVICES, root) < (int)sizeof(path))
		d = opendir(path);
	for (struct dirent *e; d && !ret && (e = readdir(d));)
		if (e->d_name[0] != '.')
			ret = add_pmu(t, dirfd(d), e->d_name);
	if (d)
		closedir(d);
	if (t->n)
		qsort(t->files, t->n, sizeof(*t->files), by_path);
	if (!ret)
		return t;
	quipu_tree_free(t);
	return NULL;
}

/* ---- CPUs ---- */

static int read_cpus(struct host *h)
{
	char path[PATH_LEN_MAX], text[PAGE];
	unsigned *ids = calloc(CPUS_MAX, sizeof(*ids));
	int n;

	snprintf(path, sizeof(path), "%s/devices/system/cpu/online", h->root);
	if (!ids)
		return -ENOMEM;
	n = host_read_text(path, text, sizeof(text)) ? -1 : quipu_cpu_list(text, ids, CPUS_MAX);
	if (n <= 0) { /* no sysfs: as many as the C library knows of */
		n = (int)sysconf(_SC_NPROCESSORS_ONLN);
		n = n < 1 ? 1 : n > (int)CPUS_MAX ? (int)CPUS_MAX : n;
		for (int i = 0; i < n; i++)
			ids[i] = (unsigned)i;
	}
	h->cpus = calloc((size_t)n, sizeof(*h->cpus));
	for (int i = 0; h->cpus && i < n; i++)
		h->cpus[i].id = ids[i];
	h->ncpus = h->cpus ? (size_t)n : 0;
	free(ids);
	return h->cpus ? 0 : -ENOMEM;
}

static unsigned topology_number(const struct host *h, unsigned cpu, const char *name)
{
	char path[PATH_LEN_MAX], text[32];
	long v;

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u/topology/%s", h->root, cpu, name);
	if (host_read_text(path, text, sizeof(text)))
		return 0;
	v = strtol(text, NULL, 10);
	return v < 0 ? 0 : (unsigned)v;
}

static void read_node(struct host *h, const char *name)
{
	unsigned node = (unsigned)strtoul(name + 4, NULL, 10);
	char path[PATH_LEN_MAX], text[PAGE];
	unsigned *ids = calloc(CPUS_MAX, sizeof(*ids));
	int n = -1;

	snprintf(path, sizeof(path), "%s/devices/system/node/%s/cpulist", h->root, name);
	if (ids && !host_read_text(path, text, sizeof(text)) && *text)
		n = quipu_cpu_list(text, ids, CPUS_MAX);
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < h->ncpus; k++)
			if (h->cpus[k].id == ids[i])
				h->cpus[k].node = node;
	free(ids);
}

void host_read_topology(struct host *h)
{
	char path[PATH_LEN_MAX];
	DIR *d;

	for (size_t i = 0; i < h->ncpus; i++) {
		struct host_cpu *c = &h->cpus[i];

		c->core = topology_number(h, c->id, "core_id");
		c->die = topology_number(h, c->id, "die_id");
		c->socket = topology_number(h, c->id, "physical_package_id");
	}
	snprintf(path, sizeof(path), "%s/devices/system/node", h->root);
	d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		if (!strncmp(e->d_name, "node", 4) && e->d_name[4] >= '0' && e->d_name[4] <= '9' &&
		    strlen(e->d_name) < 12)
			read_node(h, e->d_name);
	if (d)
		closedir(d);
}

/* ---- the host ---- */

int host_init(struct host *h, const char *root)
{
	char path[PATH_LEN_MAX];
	struct stat st;
	int ret;

	*h = (struct host){.root = strdup(root ? root : "/sys"), .recorded = root != NULL};
	if (!h->root)
		return -ENOMEM;
	if (root) {
		/* DIR may be a /sys, or hold one. */
		snprintf(path, sizeof(path), "%.900s/sys" DEVICES, root);
		if (!stat(path, &st)) {
			free(h->root);
			if (asprintf(&h->root, "%s/sys", root) < 0)
				h->root = NULL;
		}
		if (!h->root)
			return -ENOMEM;
		snprintf(path, sizeof(path), "%.900s" DEVICES, h->root);
		ret = stat(path, &st) ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
		if (ret)
			return ret;
	}
	host_kernel_init(&h->kernel);
	h->empty.kernel = NULL;
	return read_cpus(h);
}

void host_free(struct host *h)
{
	quipu_catalog_free(h->catalog);
	free(h->cpus);
	free(h->root);
	*h = (struct host){0};
}

const struct quipu_catalog *host_catalog(struct host *h)
{
	struct quipu_tree *tree;

	if (h->catalog)
		return h->catalog;
	tree = host_tree(h->root);
	h->catalog = tree ? quipu_catalog_new(tree) : NULL;
	quipu_tree_free(tree);
	if (h->catalog)
		h->catalog->kernel = &h->kernel;
	return h->catalog;
}

static bool is_hybrid(const struct host *h)
{
	char path[PATH_LEN_MAX];

	snprintf(path, sizeof(path), "%.900s" DEVICES "/cpu_core", h->root);
	if (!access(path, F_OK))
		return true;
	snprintf(path, sizeof(path), "%.900s" DEVICES "/cpu_atom", h->root);
	return !access(path, F_OK);
}

/* Generic names alone mean the same without any PMU. */
static bool parse_generic(struct host *h, const char *text, struct quipu_event_list *list)
{
	struct quipu_event_list trial = {0};
	struct quipu_grammar_error err;
	bool ok = !quipu_grammar_parse(&h->empty, text, &trial, &err);

	for (size_t i = 0; ok && i < trial.n; i++)
		ok = trial.items[i].attr.type <= PERF_TYPE_HW_CACHE &&
		     trial.items[i].attr.type != PERF_TYPE_TRACEPOINT;
	quipu_event_list_free(&trial);
	return ok && !quipu_grammar_parse(&h->empty, text, list, &err);
}

int host_parse(struct host *h, const char *text, struct quipu_event_list *list,
	       struct quipu_grammar_error *err)
{
	if (!h->catalog && !is_hybrid(h) && parse_generic(h, text, list))
		return 0;
	return host_catalog(h) ? quipu_grammar_parse(h->catalog, text, list, err) : -ENOMEM;
}

bool host_has_cpu_pmu(struct host *h)
{
	const struct quipu_catalog *c = host_catalog(h);

	for (size_t i = 0; c && i < c->npmus; i++) {
		const char *name = c->pmus[i].name;

		if (!strcmp(name, "cpu") || quipu_catalog_hybrid(&c->pmus[i]) ||
		    !strncmp(name, "armv8_", 6) || !strncmp(name, "armv7_", 6) ||
		    !strncmp(name, "cpum_cf", 7))
			return true;
	}
	return false;
}

int host_paranoid(void)
{
	char text[32];

	return host_read_text("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text))
		       ? 2
		       : atoi(text);
}

bool host_capable(unsigned cap)
{
	char text[8192];
	const char *p;

	if (host_read_text("/proc/self/status", text, sizeof(text)))
		return false;
	p = strstr(text, "\nCapEff:");
	return p && strtoull(p + 8, NULL, 16) >> cap & 1;
}
