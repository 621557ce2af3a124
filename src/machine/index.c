// SPDX-License-Identifier: BSD-2-Clause
/*
 * From hostile bytes to a tree that may be walked: checks, a packed copy, an index of its nodes.
 *
 * Devicetree Specification 0.4, chapter 5 (flattened format). libfdt checks the structure
 * (fdt_check_full); this file adds limits (size, depth), says where a broken tree breaks, and
 * indexes nodes and phandles so that reading a large tree stays linear. It knows no binding.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>

#include "machine/internal.h"

#define FDT_HEADER_BYTES 40u /* version 17 */
#define PATH_NAME	 48  /* characters of one name that a path shows */

/* Where does the structure block of a tree with a sound header stop making sense? */
static void note_broken(const void *fdt, int err, struct quipu_notes *notes)
{
	int offset = 0, next = 0, last = -1;
	const char *name;

	for (;;) {
		uint32_t tag = fdt_next_tag(fdt, offset, &next);

		if (tag == FDT_END || next < 0)
			break;
		if (tag == FDT_BEGIN_NODE)
			last = offset;
		offset = next;
	}
	name = last >= 0 ? fdt_get_name(fdt, last, NULL) : NULL;
	quipu_note(notes, QUIPU_NOTE_WRONG, "",
		   "broken device tree (%s) near byte %d of its structure block, in node '%.*s'",
		   fdt_strerror(err), offset, PATH_NAME, name && *name ? name : "/");
}

/* The header, before libfdt may look further: the size it promises must be there. */
static int check_header(const void *blob, size_t len, struct quipu_notes *notes)
{
	const uint8_t *b = blob;
	uint32_t total;

	if (len < FDT_HEADER_BYTES) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "",
			   "%zu bytes are no device tree: its header alone has %u", len,
			   FDT_HEADER_BYTES);
		return -EINVAL;
	}
	if (bits_be32(b) != FDT_MAGIC) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "",
			   "no flattened device tree: it starts with %02x %02x %02x %02x, not d0 "
			   "0d fe ed",
			   b[0], b[1], b[2], b[3]);
		return -EINVAL;
	}
	total = bits_be32(b + 4);
	if (total > len) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "",
			   "truncated: the header promises %u bytes, there are %zu", total, len);
		return -EINVAL;
	}
	if (total < FDT_HEADER_BYTES || total > QUIPU_MAX_TREE) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "",
			   "the header promises %u bytes; a tree has %u to %u", total,
			   FDT_HEADER_BYTES, QUIPU_MAX_TREE);
		return -EINVAL;
	}
	return 0;
}

void *dt_copy(const void *blob, size_t len, size_t *size, struct quipu_notes *notes)
{
	void *raw = NULL, *fdt = NULL;
	size_t total, room;
	int err;

	if (check_header(blob, len, notes))
		return NULL;
	total = bits_be32((const uint8_t *)blob + 4);
	room = total + 4096; /* an older version grows a little when it is brought to 17 */
	raw = malloc(total);
	fdt = calloc(1, room);
	if (!raw || !fdt) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "", "out of memory");
		goto fail;
	}
	memcpy(raw, blob,
	       total); /* aligned, and private: nobody changes it between check and use */
	err = fdt_check_header(raw);
	if (err) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "", "broken header of the device tree: %s",
			   fdt_strerror(err));
		goto fail;
	}
	err = fdt_check_full(raw, total);
	if (err) {
		note_broken(raw, err, notes);
		goto fail;
	}
	err = fdt_open_into(raw, fdt, (int)room);
	if (!err)
		err = fdt_pack(fdt);
	if (err) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "", "the device tree cannot be rewritten: %s",
			   fdt_strerror(err));
		goto fail;
	}
	if (len > total)
		quipu_note(notes, QUIPU_NOTE_IGNORED, "", "%zu bytes behind the end of the tree",
			   len - total);
	free(raw);
	*size = fdt_totalsize(fdt);
	return fdt;
fail:
	free(raw);
	free(fdt);
	return NULL;
}

static int by_phandle(const void *a, const void *b, void *arg)
{
	const struct dt_node *nodes = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (nodes[i].phandle != nodes[j].phandle)
		return nodes[i].phandle < nodes[j].phandle ? -1 : 1;
	return i < j ? -1 : i > j;
}

static int index_phandles(struct quipu_dt *dt)
{
	dt->by_phandle = calloc(dt->n, sizeof(*dt->by_phandle));
	if (!dt->by_phandle)
		return -ENOMEM;
	for (uint32_t i = 0; i < dt->n; i++)
		if (dt->nodes[i].phandle)
			dt->by_phandle[dt->nphandles++] = i;
	qsort_r(dt->by_phandle, dt->nphandles, sizeof(*dt->by_phandle), by_phandle, dt->nodes);
	for (uint32_t i = 1; i < dt->nphandles; i++) {
		uint32_t node = dt->by_phandle[i], same = dt->by_phandle[i - 1];

		if (dt->nodes[node].phandle == dt->nodes[same].phandle) {
			dt_note(dt, QUIPU_NOTE_WRONG, node, "phandle",
				"0x%x is the phandle of another node too", dt->nodes[node].phandle);
			break; /* one such note tells the story */
		}
	}
	return 0;
}

/* ---- the structure block, which libfdt has checked as a whole (dt_copy) ---- */

struct token {
	uint32_t tag;
	int offset;	  /* of the tag, as libfdt counts */
	const char *name; /* of a node or a property */
	const void *value;
	int len;
};

static void next_token(const void *fdt, uint32_t *at, struct token *t)
{
	const uint8_t *p = (const uint8_t *)fdt + fdt_off_dt_struct(fdt) + *at;
	uint32_t size = 4;

	*t = (struct token){.tag = bits_be32(p), .offset = (int)*at};
	if (t->tag == FDT_BEGIN_NODE) {
		t->name = (const char *)p + 4;
		size += (uint32_t)strlen(t->name) + 1;
	} else if (t->tag == FDT_PROP) {
		t->len = (int)bits_be32(p + 4);
		t->name = (const char *)fdt + fdt_off_dt_strings(fdt) + bits_be32(p + 8);
		t->value = p + 12;
		size += 8 + (uint32_t)t->len;
	}
	*at += (size + 3) & ~3u;
}

static void count(const void *fdt, uint32_t *nodes, uint32_t *properties)
{
	struct token t;
	uint32_t at = 0;

	*nodes = *properties = 0;
	do {
		next_token(fdt, &at, &t);
		*nodes += t.tag == FDT_BEGIN_NODE;
		*properties += t.tag == FDT_PROP;
	} while (t.tag != FDT_END);
}

/* Nodes and properties in one pass. A property behind a child of its node is nobody's, as for
 * libfdt. */
static int index_nodes(struct quipu_dt *dt)
{
	uint32_t open[DT_MAX_DEPTH + 1], n = 0, nprops = 0, at = 0;
	struct dt_node *node = NULL;
	struct token t;
	int depth = 0;

	do {
		next_token(dt->fdt, &at, &t);
		if (t.tag == FDT_BEGIN_NODE) {
			if (depth == DT_MAX_DEPTH) {
				quipu_note(dt->notes, QUIPU_NOTE_WRONG, "",
					   "nodes are nested more than %d deep", DT_MAX_DEPTH);
				return -EINVAL;
			}
			node = &dt->nodes[n];
			*node = (struct dt_node){.offset = t.offset,
						 .parent = depth ? open[depth - 1] : DT_NONE,
						 .next = n + 1,
						 .name = t.name,
						 .first = nprops};
			open[depth++] = n++;
		} else if (t.tag == FDT_END_NODE) {
			node = NULL;
			depth--;
		} else if (t.tag == FDT_PROP && node) {
			dt->properties[nprops++] = (struct dt_property){t.name, t.value, t.len};
			node->nprops++;
		}
	} while (depth > 0 && t.tag != FDT_END);
	dt->n = n;
	return 0;
}

static uint32_t phandle_of(const struct quipu_dt *dt, uint32_t node)
{
	int len;
	const void *p = dt_property(dt, node, "phandle", &len);

	if (!p || len != 4)
		p = dt_property(dt, node, "linux,phandle", &len);
	return p && len == 4 ? bits_be32(p) : 0;
}

int dt_index(struct quipu_dt *dt, const void *fdt, struct quipu_notes *notes)
{
	uint32_t nodes, properties;
	int err;

	count(fdt, &nodes, &properties);
	*dt = (struct quipu_dt){.fdt = fdt, .notes = notes};
	dt->nodes = calloc(nodes ? nodes : 1, sizeof(*dt->nodes));
	dt->properties = calloc(properties ? properties : 1, sizeof(*dt->properties));
	if (!dt->nodes || !dt->properties || !nodes)
		return -ENOMEM;
	err = index_nodes(dt);
	if (err)
		return err;
	/* children stand behind their parent, so one pass from the end closes every subtree */
	for (uint32_t i = dt->n; i-- > 1;) {
		struct dt_node *parent = &dt->nodes[dt->nodes[i].parent];

		if (parent->next < dt->nodes[i].next)
			parent->next = dt->nodes[i].next;
	}
	for (uint32_t i = 0; i < dt->n; i++)
		dt->nodes[i].phandle = phandle_of(dt, i);
	return index_phandles(dt);
}

void dt_free(struct quipu_dt *dt)
{
	free(dt->nodes);
	free(dt->properties);
	free(dt->by_phandle);
	*dt = (struct quipu_dt){0};
}

uint32_t dt_child(const struct quipu_dt *dt, uint32_t node)
{
	return node + 1 < dt->nodes[node].next ? node + 1 : DT_NONE;
}

uint32_t dt_sibling(const struct quipu_dt *dt, uint32_t node)
{
	uint32_t parent = dt->nodes[node].parent, next = dt->nodes[node].next;

	return parent != DT_NONE && next < dt->nodes[parent].next ? next : DT_NONE;
}

uint32_t dt_find(const struct quipu_dt *dt, uint32_t node, const char *name)
{
	size_t len = strlen(name);

	for (uint32_t i = dt_child(dt, node); i != DT_NONE; i = dt_sibling(dt, i)) {
		const char *have = dt->nodes[i].name;

		if (!strncmp(have, name, len) && (!have[len] || have[len] == '@'))
			return i;
	}
	return DT_NONE;
}

uint32_t dt_by_phandle(const struct quipu_dt *dt, uint32_t phandle)
{
	uint32_t lo = 0, hi = dt->nphandles;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (dt->nodes[dt->by_phandle[mid]].phandle < phandle)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!phandle || lo == dt->nphandles || dt->nodes[dt->by_phandle[lo]].phandle != phandle)
		return DT_NONE;
	return dt->by_phandle[lo];
}

char *dt_path(const struct quipu_dt *dt, uint32_t node)
{
	uint32_t chain[DT_MAX_DEPTH + 1];
	size_t n = 0, len = 0;
	char path[DT_MAX_DEPTH * (PATH_NAME + 1) + 2];

	for (uint32_t i = node; i != DT_NONE && dt->nodes[i].parent != DT_NONE;
	     i = dt->nodes[i].parent)
		chain[n++] = i;
	while (n--) {
		const char *name = dt->nodes[chain[n]].name;

		path[len++] = '/';
		for (int i = 0; i < PATH_NAME && name[i]; i++)
			path[len++] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	}
	if (!len)
		path[len++] = '/';
	return strndup(path, len);
}

void dt_note(const struct quipu_dt *dt, enum quipu_note_kind kind, uint32_t node,
	     const char *property, const char *fmt, ...)
{
	char *path = dt_path(dt, node), *where = NULL, *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (asprintf(&where, "%s%s%s", path ? path : "", property ? ":" : "",
		     property ? property : "") < 0)
		where = NULL;
	quipu_note(dt->notes, kind, where, "%s", text ? text : fmt);
	free(path);
	free(where);
	free(text);
}

uint32_t dt_at(const struct quipu_dt *dt, int offset)
{
	uint32_t lo = 0, hi = dt->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (dt->nodes[mid].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < dt->n && dt->nodes[lo].offset == offset ? lo : DT_NONE;
}

const void *dt_property(const struct quipu_dt *dt, uint32_t node, const char *name, int *len)
{
	const struct dt_property *p = NULL;

	if (len)
		*len = -FDT_ERR_NOTFOUND;
	if (node == DT_NONE)
		return NULL;
	p = &dt->properties[dt->nodes[node].first];
	for (uint32_t i = 0; i < dt->nodes[node].nprops; i++, p++) {
		if (*p->name != *name || strcmp(p->name, name))
			continue;
		if (len)
			*len = p->len;
		return p->value;
	}
	return NULL;
}

int dt_number(const struct quipu_dt *dt, uint32_t node, const char *name, uint64_t *value)
{
	int len;
	const void *p = dt_property(dt, node, name, &len);

	if (!p)
		return -ENOENT;
	if (len != 4 && len != 8)
		return -EINVAL;
	*value = len == 4 ? bits_be32(p) : bits_be64(p);
	return 0;
}

const char *dt_string(const struct quipu_dt *dt, uint32_t node, const char *name)
{
	int len;
	const char *p = dt_property(dt, node, name, &len);

	return p && len > 0 && memchr(p, '\0', (size_t)len) ? p : NULL;
}

/* Has list @name a string whose first @bytes are those of @text? */
static bool list_has(const struct quipu_dt *dt, uint32_t node, const char *name, const char *text,
		     size_t bytes)
{
	int len;
	const char *s = dt_property(dt, node, name, &len), *end = s ? s + len : NULL;

	if (!s || len <= 0 || end[-1])
		return false; /* no list of strings */
	for (; s < end; s += strlen(s) + 1)
		if (!strncmp(s, text, bytes))
			return true;
	return false;
}

bool dt_list_starts(const struct quipu_dt *dt, uint32_t node, const char *name, const char *prefix)
{
	return list_has(dt, node, name, prefix, strlen(prefix));
}

bool dt_list_has(const struct quipu_dt *dt, uint32_t node, const char *name, const char *word)
{
	return list_has(dt, node, name, word, strlen(word) + 1);
}
