/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol files in text (sheet 4.1): nm (System.map, skiboot.map), kallsyms, perf's map of
 * just-in-time code. Files come from anywhere: each byte is looked at, errors name their line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/lpar/map.h"

#define DETECT_LINES 16u

struct line {
	const char *at;
	size_t len;
	unsigned number;
};

struct text {
	struct map_builder *b;
	const char *at, *end;
	unsigned line;
	uint64_t base;
	bool any_address; /* one that is not 0 */
	size_t last_tag;  /* kallsyms: where tags were found last */
};

/* The file is not a string: nothing ends it. */
static size_t blanks(const struct line *l)
{
	size_t n = 0;

	while (n < l->len && (l->at[n] == ' ' || l->at[n] == '\t'))
		n++;
	return n;
}

/* The next line that says something; its line end is cut off. 1, 0 at the end, or -EINVAL. */
static int next_line(struct text *t, struct line *l)
{
	while (t->at < t->end) {
		const char *nl = memchr(t->at, '\n', (size_t)(t->end - t->at));

		l->at = t->at;
		l->len = (size_t)((nl ? nl : t->end) - t->at);
		l->number = ++t->line;
		t->at = nl ? nl + 1 : t->end;
		if (l->len > QUIPU_HVMAP_LINE)
			return map_fail(t->b, l->number,
					"longer than %u bytes: this is no symbol map",
					QUIPU_HVMAP_LINE);
		if (l->len && l->at[l->len - 1] == '\r')
			l->len--;
		for (size_t i = 0; i < l->len; i++)
			if ((unsigned char)l->at[i] >= 0x7f ||
			    ((unsigned char)l->at[i] < ' ' && l->at[i] != '\t'))
				return map_fail(t->b, l->number,
						"byte 0x%02x in column %zu: this is no symbol map",
						(unsigned char)l->at[i], i + 1);
		if (l->len && l->at[0] != '#' && blanks(l) < l->len)
			return 1;
	}
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* 1 to 16 digits and what separates them from the rest. */
static bool take_hex(struct line *l, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	while (n < l->len && n < 17 && hex_digit(l->at[n]) >= 0)
		*value = *value << 4 | (uint64_t)hex_digit(l->at[n++]);
	if (!n || n > 16 || n >= l->len || (l->at[n] != ' ' && l->at[n] != '\t'))
		return false;
	while (n < l->len && (l->at[n] == ' ' || l->at[n] == '\t'))
		n++;
	l->at += n;
	l->len -= n;
	return true;
}

static size_t word(const struct line *l)
{
	size_t n = 0;

	while (n < l->len && l->at[n] != ' ' && l->at[n] != '\t')
		n++;
	return n;
}

/* nm shows no address of what is undefined: blanks, a letter, a name. */
static bool undefined(const struct line *l)
{
	return l->at[0] == ' ' || l->at[0] == '\t';
}

static void trim(struct line *l)
{
	while (l->len && (l->at[l->len - 1] == ' ' || l->at[l->len - 1] == '\t'))
		l->len--;
}

/* ---- nm and kallsyms ---- */

static int tag_module(struct text *t, const struct line *l, uint32_t *module)
{
	struct map_builder *b = t->b;
	struct map_module m = {.tag = true};
	size_t len = l->len - 2;

	if (b->given) /* the caller knows better */
		return 0;
	for (size_t k = 0; k < b->nmodules; k++) {
		size_t i = (t->last_tag + k) % b->nmodules;
		const char *name = b->text + b->modules[i].name;

		if (!strncmp(name, l->at + 1, len) && !name[len]) {
			*module = (uint32_t)(t->last_tag = i);
			return 0;
		}
	}
	if (b->nmodules == 4096)
		return map_fail(b, l->number, "more than 4096 modules");
	*module = (uint32_t)(t->last_tag = b->nmodules);
	return map_add_module(b, &m, l->at + 1, len);
}

/* What the letter of nm says. */
static void set_type(struct map_raw *r, char type)
{
	r->kept = strchr("TtWwi", type) != NULL;
	r->bind = type == 'T' || type == 'i' ? 0 : type == 'W' || type == 'w' ? 1 : 2;
	r->func = r->kept;
}

static int nm_line(struct text *t, struct line *l)
{
	struct map_raw r = {.module = MAP_NO_MODULE};
	char type;
	size_t n;
	int err = 0;

	if (undefined(l))
		return 0;
	if (!take_hex(l, &r.addr) || word(l) != 1)
		return map_fail(t->b, l->number, "not of the form 'ADDRESS TYPE NAME'");
	type = l->at[0];
	if (!((type | 32) >= 'a' && (type | 32) <= 'z') && type != '?' && type != '-')
		return map_fail(t->b, l->number, "'%c' is no type of a symbol", type);
	l->at += 2;
	l->len = l->len > 2 ? l->len - 2 : 0;
	trim(l);
	n = word(l);
	if (!n)
		return map_fail(t->b, l->number, "a symbol without a name");
	t->any_address |= r.addr != 0;
	if (type == 'U')
		return 0;
	set_type(&r, type);
	r.addr += t->base;
	if (map_keep(t->b, l->at, n, &r.name))
		return -EINVAL;
	l->at += n;
	l->len -= n;
	while (l->len && (l->at[0] == ' ' || l->at[0] == '\t')) {
		l->at++;
		l->len--;
	}
	if (l->len > 2 && l->at[0] == '[' && l->at[l->len - 1] == ']')
		err = tag_module(t, l, &r.module);
	return err ? err : map_add(t->b, &r);
}

/* ---- names with a dot in front: the code of an ELFv1 function ---- */

struct plain {
	const char *name;
	bool code;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct plain *)a)->name, ((const struct plain *)b)->name);
}

/* ".f" is called f when f itself is a descriptor (no code), or is not there. */
static int strip_dots(struct map_builder *b)
{
	struct plain *plain = NULL;
	size_t n = 0, dots = 0;

	for (size_t i = 0; i < b->n; i++)
		dots += b->raw[i].kept && b->text[b->raw[i].name] == '.';
	if (!dots)
		return 0;
	plain = calloc(b->n, sizeof(*plain));
	if (!plain)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		if (b->text[b->raw[i].name] != '.')
			plain[n++] = (struct plain){b->text + b->raw[i].name, b->raw[i].kept};
	qsort(plain, n, sizeof(*plain), by_text);
	for (size_t i = 0; i < b->n; i++) {
		struct plain key = {b->text + b->raw[i].name + 1, false};
		const struct plain *hit;

		if (!b->raw[i].kept || b->text[b->raw[i].name] != '.' || !key.name[0])
			continue;
		hit = n ? bsearch(&key, plain, n, sizeof(*plain), by_text) : NULL;
		if (!hit || !hit->code)
			b->raw[i].name++;
	}
	free(plain);
	return 0;
}

/* ---- perf's map ---- */

static int perfmap_line(struct text *t, struct line *l)
{
	struct map_raw r = {.module = MAP_NO_MODULE, .func = true, .kept = true};

	if (!take_hex(l, &r.addr) || !take_hex(l, &r.size))
		return map_fail(t->b, l->number, "not of the form 'START SIZE NAME'");
	trim(l);
	if (!l->len)
		return map_fail(t->b, l->number, "a symbol without a name");
	t->any_address = true;
	r.addr += t->base;
	if (map_keep(t->b, l->at, l->len, &r.name))
		return -EINVAL;
	return map_add(t->b, &r);
}

/* ---- which of them? ---- */

/* One line is not enough: a lone "c" may be a size of 12 or a symbol's type. */
static int detect(struct text t, bool *perfmap)
{
	struct line l;
	unsigned n = 0;
	int rc = 1;

	*perfmap = false;
	while (n < DETECT_LINES && (rc = next_line(&t, &l)) == 1) {
		uint64_t addr;

		if (undefined(&l))
			continue;
		n++;
		if (!take_hex(&l, &addr) || !l.len)
			return map_fail(
				t.b, l.number,
				"neither 'ADDRESS TYPE NAME' (nm, kallsyms) nor 'START SIZE NAME' "
				"(perf map)");
		*perfmap |= word(&l) > 1 || (l.at[0] >= '0' && l.at[0] <= '9');
	}
	return rc < 0 ? rc : 0;
}

int map_read_text(struct map_builder *b, const char *bytes, size_t len,
		  const struct quipu_hvmap_options *o)
{
	struct text t = {
		.b = b, .at = bytes, .end = bytes + len, .base = o->has_base ? o->base : 0};
	bool perfmap = o->format && !strcmp(o->format, "perfmap");
	bool fixed = o->format && strcmp(o->format, "auto") != 0;
	struct line l;
	int rc = fixed ? 0 : detect(t, &perfmap);

	if (rc)
		return rc;
	while ((rc = next_line(&t, &l)) == 1) {
		rc = perfmap ? perfmap_line(&t, &l) : nm_line(&t, &l);
		if (rc)
			return rc;
	}
	if (rc)
		return rc;
	if (b->n && !t.any_address)
		return map_fail(
			b, 0, "all addresses are 0: the kernel hides them; read the file as root");
	return perfmap ? 0 : strip_dots(b);
}
