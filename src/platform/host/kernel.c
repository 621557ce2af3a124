// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the event grammar asks the running kernel for: tracepoints from tracefs
 * (Documentation/trace/events.rst: events/SYSTEM/EVENT/id), and where a function lies in an ELF
 * file, for uprobes (Documentation/trace/uprobetracer.rst).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fnmatch.h>
#include <gelf.h>

#include "platform/host/host.h"

const char *host_tracefs(char *why, size_t len)
{
	static const char *const folders[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const char *named = getenv("TRACEFS_PATH");
	char path[256];
	int err = ENOENT;

	if (named)
		return named;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s/events", folders[i]);
		if (!access(path, R_OK | X_OK))
			return folders[i];
		if (errno == EACCES)
			err = EACCES;
	}
	if (err == EACCES)
		snprintf(why, len,
			 "tracefs is closed to this user; as root: chmod -R a+rX "
			 "/sys/kernel/tracing/events, or run as root");
	else
		snprintf(why, len,
			 "tracefs is not mounted; as root: mount -t tracefs none "
			 "/sys/kernel/tracing");
	return NULL;
}

/* ---- tracepoints ---- */

static bool is_pattern(const char *s)
{
	return strpbrk(s, "*?");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* Folders of @dir that match @pattern, sorted. Their number or -errno. */
static ssize_t matching(const char *dir, const char *pattern, char ***out)
{
	DIR *d = opendir(dir);
	char **names = NULL;
	ssize_t n = 0;

	*out = NULL;
	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));) {
		char **grown;

		if (e->d_name[0] == '.' || e->d_type != DT_DIR || fnmatch(pattern, e->d_name, 0))
			continue;
		grown = realloc(names, ((size_t)n + 1) * sizeof(*names));
		if (!grown)
			continue;
		names = grown;
		names[n] = strdup(e->d_name);
		n += names[n] != NULL;
	}
	closedir(d);
	if (n)
		qsort(names, (size_t)n, sizeof(*names), by_name);
	*out = names;
	return n;
}

static int read_id(const char *events, const char *system, const char *event, uint64_t *id)
{
	char path[1024], text[32];
	int ret;

	if (snprintf(path, sizeof(path), "%s/%s/%s/id", events, system, event) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	ret = host_read_text(path, text, sizeof(text));
	*id = ret ? 0 : strtoull(text, NULL, 10);
	return ret ? ret : *id ? 0 : -ENOENT;
}

struct walk {
	const char *events, *event;
	int (*found)(void *, const char *, const char *, uint64_t);
	void *arg;
	size_t n;
	int denied;
};

static int walk_system(struct walk *w, const char *system)
{
	char path[1024], **names = NULL;
	ssize_t n;
	int ret = 0;

	if (snprintf(path, sizeof(path), "%s/%s", w->events, system) >= (int)sizeof(path))
		return 0;
	n = matching(path, w->event, &names);
	if (n == -EACCES)
		w->denied = 1;
	for (ssize_t i = 0; i < n && !ret; i++) {
		uint64_t id;
		int err = read_id(w->events, system, names[i], &id);

		w->denied |= err == -EACCES;
		if (err)
			continue;
		w->n++;
		ret = w->found(w->arg, system, names[i], id);
	}
	free_names(names, n > 0 ? (size_t)n : 0);
	return ret;
}

/* The nearest thing to a suggestion: the systems that have an event of that name, or the system. */
static void explain_missing(const char *events, const char *system, const char *event, char *why,
			    size_t len)
{
	char path[1024], **names;
	ssize_t n;
	struct stat st;

	snprintf(path, sizeof(path), "%.700s/%.200s", events, system);
	if (is_pattern(system) || is_pattern(event)) {
		snprintf(why, len, "no tracepoint matches %s:%s", system, event);
		return;
	}
	if (!stat(path, &st)) {
		snprintf(why, len,
			 "the kernel has no tracepoint '%s' in '%s'; `quipu list -m host %s:*` "
			 "shows those it has",
			 event, system, system);
		return;
	}
	n = matching(events, "*", &names);
	for (ssize_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%.500s/%.200s/%.200s", events, names[i], event);
		if (stat(path, &st))
			continue;
		snprintf(why, len, "the kernel has no tracepoint system '%s'; did you mean %s:%s?",
			 system, names[i], event);
		free_names(names, (size_t)n);
		return;
	}
	free_names(names, n > 0 ? (size_t)n : 0);
	snprintf(why, len, "the kernel has no tracepoint system '%s', nor an event of that name",
		 system);
}

static int tracepoints(void *arg, const char *system, const char *event,
		       int (*found)(void *, const char *, const char *, uint64_t), void *found_arg,
		       char *why, size_t len)
{
	const char *tracefs = host_tracefs(why, len);
	struct walk w = {.event = event, .found = found, .arg = found_arg};
	char events[512], **names;
	ssize_t n;
	int ret = 0;

	(void)arg;
	if (!tracefs)
		return -ENOENT;
	snprintf(events, sizeof(events), "%.400s/events", tracefs);
	w.events = events;
	n = matching(events, system, &names);
	for (ssize_t i = 0; i < n && !ret; i++)
		ret = walk_system(&w, names[i]);
	free_names(names, n > 0 ? (size_t)n : 0);
	if (ret || w.n)
		return ret;
	if (n == -EACCES || w.denied) {
		snprintf(why, len,
			 "tracefs is closed to this user; as root: chmod -R a+rX "
			 "/sys/kernel/tracing/events, or run as root");
		return -EACCES;
	}
	explain_missing(events, system, event, why, len);
	return -ENOENT;
}

/* ---- functions of a file ---- */

static bool find_in_table(Elf *elf, GElf_Word type, const char *symbol, uint64_t *value)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type || !sh.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < data->d_size / sh.sh_entsize; i++) {
			const char *name;
			GElf_Sym sym;

			if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC)
				continue;
			name = elf_strptr(elf, sh.sh_link, sym.st_name);
			if (!name || strcmp(name, symbol))
				continue;
			*value = sym.st_value;
			return true;
		}
	}
	return false;
}

static int file_offset(Elf *elf, uint64_t addr, uint64_t *offset)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || addr < ph.p_vaddr ||
		    addr - ph.p_vaddr >= ph.p_filesz)
			continue;
		*offset = addr - ph.p_vaddr + ph.p_offset;
		return 0;
	}
	return -ENOEXEC;
}

static int function_offset(void *arg, const char *path, const char *symbol, uint64_t *offset,
			   char *why, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;
	uint64_t addr;
	Elf *elf;

	(void)arg;
	if (fd < 0) {
		ret = -errno;
		snprintf(why, len, "cannot read %s: %s", path, strerror(-ret));
		return ret;
	}
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		ret = -ENOEXEC;
		snprintf(why, len, "%s is no ELF file", path);
	} else if (!find_in_table(elf, SHT_SYMTAB, symbol, &addr) &&
		   !find_in_table(elf, SHT_DYNSYM, symbol, &addr)) {
		ret = -ESRCH;
		snprintf(why, len, "%s has no function '%s' in its symbol tables", path, symbol);
	} else {
		ret = file_offset(elf, addr, offset);
		if (ret)
			snprintf(why, len, "'%s' of %s lies in no part that is loaded", symbol,
				 path);
	}
	elf_end(elf);
	close(fd);
	return ret;
}

void host_kernel_init(struct quipu_catalog_kernel *k)
{
	*k = (struct quipu_catalog_kernel){.tracepoints = tracepoints, .symbol = function_offset};
}
