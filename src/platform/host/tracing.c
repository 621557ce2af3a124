// SPDX-License-Identifier: BSD-2-Clause
/*
 * The formats of tracepoints, in the layout of trace-cmd's file header, version 0.6
 * (trace-cmd.dat(5)): without them no tool can tell the fields of a tracepoint's samples. Only the
 * tracepoints that were recorded are in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/host/host.h"

#define FORMAT_MAX (64u * 1024)

static void put(FILE *f, uint64_t v, unsigned bytes)
{
	fwrite(&v, 1, bytes, f); /* in this host's byte order, as the header says */
}

/* A file's size in @bytes bytes, then what is in it; nothing of one that cannot be read. */
static void put_file(FILE *f, const char *path, unsigned bytes)
{
	char *text = malloc(FORMAT_MAX);
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	size_t n = 0;
	ssize_t r;

	while (fd >= 0 && n < FORMAT_MAX && (r = read(fd, text + n, FORMAT_MAX - n)) > 0)
		n += (size_t)r;
	put(f, n, bytes);
	if (n)
		fwrite(text, 1, n, f);
	if (fd >= 0)
		close(fd);
	free(text);
}

/* "sched:sched_switch:u" -> "sched", "sched_switch". */
static bool split(const struct quipu_parsed *e, char system[128], char event[128])
{
	return e->attr.type == PERF_TYPE_TRACEPOINT &&
	       sscanf(e->name, "%127[^:]:%127[^:]", system, event) == 2;
}

static bool same_system(const struct quipu_parsed *e, const char *system)
{
	char other[128], event[128];

	return split(e, other, event) && !strcmp(other, system);
}

static void put_system(FILE *f, const char *tracefs, const struct quipu_event_list *list,
		       const char *system)
{
	char name[128], event[128], path[1024];
	uint32_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += same_system(&list->items[i], system);
	fwrite(system, 1, strlen(system) + 1, f);
	put(f, n, 4);
	for (size_t i = 0; i < list->n; i++) {
		if (!same_system(&list->items[i], system) || !split(&list->items[i], name, event))
			continue;
		snprintf(path, sizeof(path), "%.400s/events/%s/%s/format", tracefs, name, event);
		put_file(f, path, 8);
	}
}

/* Is event @at the first one of its system? */
static bool first_of_system(const struct quipu_event_list *list, size_t at, char system[128])
{
	char event[128];

	if (!split(&list->items[at], system, event))
		return false;
	for (size_t i = 0; i < at; i++)
		if (same_system(&list->items[i], system))
			return false;
	return true;
}

static void put_all(FILE *f, const char *tracefs, const struct quipu_event_list *list)
{
	static const char magic[] = "\x17\x08\x44tracing0.6"; /* its final zero belongs to it */
	char path[1024], system[128];
	uint32_t systems = 0;

	fwrite(magic, 1, sizeof(magic), f);
	put(f, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 1);
	put(f, sizeof(long), 1);
	put(f, (uint64_t)sysconf(_SC_PAGESIZE), 4);
	fwrite("header_page", 1, 12, f);
	snprintf(path, sizeof(path), "%.400s/events/header_page", tracefs);
	put_file(f, path, 8);
	fwrite("header_event", 1, 13, f);
	snprintf(path, sizeof(path), "%.400s/events/header_event", tracefs);
	put_file(f, path, 8);
	put(f, 0, 4); /* of ftrace's own events */
	for (size_t i = 0; i < list->n; i++)
		systems += first_of_system(list, i, system);
	put(f, systems, 4);
	for (size_t i = 0; i < list->n; i++)
		if (first_of_system(list, i, system))
			put_system(f, tracefs, list, system);
	put(f, 0, 4); /* kallsyms: perf.data has them elsewhere */
	put(f, 0, 4); /* formats of trace_printk */
	put(f, 0, 8); /* names of tasks */
}

void *host_tracing(const struct quipu_event_list *list, size_t *size)
{
	const char *tracefs;
	char why[200], *text = NULL;
	bool any = false;
	FILE *f;

	*size = 0;
	for (size_t i = 0; i < list->n; i++)
		any |= list->items[i].attr.type == PERF_TYPE_TRACEPOINT;
	tracefs = any ? host_tracefs(why, sizeof(why)) : NULL;
	f = tracefs ? open_memstream(&text, size) : NULL;
	if (!f)
		return NULL;
	put_all(f, tracefs, list);
	if (!fclose(f))
		return text;
	free(text);
	*size = 0;
	return NULL;
}
