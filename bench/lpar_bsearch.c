// SPDX-License-Identifier: BSD-2-Clause
/*
 * The peer of `quipu resolve --map MAP --from ADDRESSES`: a symbol file in perf's form read with
 * getline, sorted with qsort, each address looked up with bsearch and printed with printf. No
 * firmware, no nesting, no modules; the same lines come out.
 *
 *	bench-lpar-bsearch MAP ADDRESSES
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
	uint64_t start, size;
	char *name;
};

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The key is an address: equal is the symbol that holds it. */
static int holds(const void *key, const void *element)
{
	const uint64_t addr = *(const uint64_t *)key;
	const struct symbol *s = element;

	return addr < s->start ? -1 : addr - s->start >= s->size;
}

static struct symbol *read_map(const char *path, size_t *n)
{
	FILE *f = fopen(path, "re");
	struct symbol *v = NULL;
	size_t room = 0, line_room = 0;
	char *line = NULL;

	*n = 0;
	while (f && getline(&line, &line_room, f) > 0) {
		char *end;

		if (*n == room) {
			room = room ? 2 * room : 1024;
			v = reallocarray(v, room, sizeof(*v));
			if (!v)
				exit(1);
		}
		v[*n].start = strtoull(line, &end, 16);
		v[*n].size = strtoull(end, &end, 16);
		end[strcspn(end, "\n")] = 0;
		v[(*n)++].name = strdup(end + 1);
	}
	if (!f)
		exit(1);
	fclose(f);
	free(line);
	qsort(v, *n, sizeof(*v), by_start);
	return v;
}

int main(int argc, char **argv)
{
	size_t n, room = 0;
	struct symbol *map;
	char *line = NULL;
	FILE *f;

	if (argc != 3)
		return 2;
	map = read_map(argv[1], &n);
	f = fopen(argv[2], "re");
	while (f && getline(&line, &room, f) > 0) {
		uint64_t addr = strtoull(line, NULL, 16);
		const struct symbol *s = bsearch(&addr, map, n, sizeof(*map), holds);

		if (s)
			printf("%016" PRIx64 "  %s+0x%" PRIx64 "/?\n", addr, s->name,
			       addr - s->start);
		else
			printf("%016" PRIx64 "  <invalid: INVALID ADDRESS>\n", addr);
	}
	if (f)
		fclose(f);
	for (size_t i = 0; i < n; i++)
		free(map[i].name);
	free(map);
	free(line);
	return !f;
}
