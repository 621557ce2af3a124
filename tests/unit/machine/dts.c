// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dts.h"

static struct blob read_stream(FILE *f)
{
	struct blob b = {0};
	size_t n;

	b.data = malloc(QUIPU_MAX_TREE);
	if (!b.data)
		abort();
	while ((n = fread(b.data + b.len, 1, QUIPU_MAX_TREE - b.len, f)))
		b.len += n;
	return b;
}

struct blob blob_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct blob b = {0};

	if (!f)
		return b;
	b = read_stream(f);
	fclose(f);
	return b;
}

struct blob blob_dts(const char *source)
{
	char name[] = "/tmp/quipu-dts-XXXXXX", command[128];
	int fd = mkstemp(name);
	struct blob b = {0};
	FILE *f;

	if (fd < 0 || write(fd, source, strlen(source)) != (ssize_t)strlen(source))
		abort();
	close(fd);
	snprintf(command, sizeof(command), "dtc -q -f -I dts -O dtb %s", name);
	f = popen(command, "r");
	if (f)
		b = read_stream(f);
	if (!f || pclose(f) || !b.len) {
		unlink(name);
		fprintf(stderr, "dtc refuses:\n%s\n", source);
		abort();
	}
	unlink(name);
	return b;
}

void blob_free(struct blob *b)
{
	free(b->data);
	*b = (struct blob){0};
}

bool noted(const struct quipu_notes *notes, enum quipu_note_kind kind, const char *path,
	   const char *text)
{
	for (size_t i = 0; i < notes->n; i++) {
		const struct quipu_note *n = &notes->items[i];

		if (n->kind == kind && (!path || !strcmp(n->path, path)) &&
		    (!text || strstr(n->text, text)))
			return true;
	}
	return false;
}

void print_notes(const struct quipu_notes *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		fprintf(stderr, "note %d '%s' '%s'\n", (int)notes->items[i].kind,
			notes->items[i].path, notes->items[i].text);
}
