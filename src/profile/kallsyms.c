// SPDX-License-Identifier: BSD-2-Clause
/* /proc/kallsyms and /sys/kernel/notes read (kallsyms.h). Some 10 MB of text in all: read in one
 * pass, without scanf. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "profile/kallsyms.h"

static size_t copy_word(const char **p, char *out, size_t len)
{
	size_t n = strcspn(*p, " \t\n]");

	snprintf(out, len, "%.*s", (int)(n < len ? n : len - 1), *p);
	*p += n;
	return n;
}

static bool parse_line(const char *text, struct kallsyms_line *l)
{
	char *end;

	l->addr = strtoull(text, &end, 16);
	if (end == text || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	l->type = end[1];
	text = end + 3;
	l->module[0] = '\0';
	if (!copy_word(&text, l->name, sizeof(l->name)))
		return false;
	text += strspn(text, " \t");
	if (*text == '[') {
		text++;
		copy_word(&text, l->module, sizeof(l->module));
	}
	return true;
}

int kallsyms_each(int (*fn)(void *, const struct kallsyms_line *), void *arg)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	struct kallsyms_line l;
	bool seen = false;
	char text[1024];
	int ret = 0;

	if (!f)
		return -errno;
	while (!ret && fgets(text, sizeof(text), f)) {
		if (!parse_line(text, &l))
			continue;
		/* Per-CPU symbols are small numbers, the first lines of some kernels. */
		seen |= l.addr >> 32 != 0;
		ret = fn(arg, &l);
	}
	fclose(f);
	return ret ? ret : seen ? 0 : -EACCES;
}

struct base {
	uint64_t text, stext, etext;
};

static int look_for_base(void *arg, const struct kallsyms_line *l)
{
	struct base *b = arg;

	if (!strcmp(l->name, "_text"))
		b->text = l->addr;
	else if (!strcmp(l->name, "_stext"))
		b->stext = l->addr;
	else if (!strcmp(l->name, "_etext"))
		b->etext = l->addr;
	return b->text && b->stext && b->etext;
}

bool kallsyms_base(uint64_t *start, uint64_t *end)
{
	struct base b = {0};

	if (kallsyms_each(look_for_base, &b) < 0)
		return false;
	*start = b.text ? b.text : b.stext;
	*end = b.etext;
	return *start && *end > *start;
}

unsigned kallsyms_build_id(uint8_t id[20])
{
	FILE *f = fopen("/sys/kernel/notes", "re");
	uint8_t notes[4096];
	size_t n = f ? fread(notes, 1, sizeof(notes), f) : 0, at = 0;

	if (f)
		fclose(f);
	while (at + sizeof(Elf64_Nhdr) <= n) {
		Elf64_Nhdr h;
		size_t name, desc;

		memcpy(&h, notes + at, sizeof(h));
		if (h.n_namesz > n || h.n_descsz > n)
			break;
		name = at + sizeof(h);
		desc = name + ((h.n_namesz + 3u) & ~3u);
		if (desc + h.n_descsz > n)
			break;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && h.n_descsz <= 20) {
			memcpy(id, notes + desc, h.n_descsz);
			return h.n_descsz;
		}
		at = desc + ((h.n_descsz + 3u) & ~3u);
	}
	return 0;
}
