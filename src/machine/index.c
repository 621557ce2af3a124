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

static int index_phandles(struct dt *dt)
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

static uint32_t count_nodes(const void *fdt)
{
	uint32_t n = 0;
	int depth = 0;

	for (int at = fdt_next_node(fdt, -1, &depth); at >= 0 && depth >= 0;
	     at = fdt_next_node(fdt, at, &depth))
		n++;
	return n;
}

int dt_index(struct dt *dt, const void *fdt, struct quipu_notes *notes)
{
	uint32_t open[DT_MAX_DEPTH + 2], n = 0;
	int depth = 0;

	*dt = (struct dt){.fdt = fdt, .notes = notes, .n = count_nodes(fdt)};
	dt->nodes = calloc(dt->n ? dt->n : 1, sizeof(*dt->nodes));
	if (!dt->nodes || !dt->n)
		return -ENOMEM;
	/* fdt_next_node counts depth from the root, which it enters at 1 when it starts in front of
	 * it */
	for (int at = fdt_next_node(fdt, -1, &depth); at >= 0 && depth >= 1;
	     at = fdt_next_node(fdt, at, &depth), n++) {
		struct dt_node *node = &dt->nodes[n];

		if (depth > DT_MAX_DEPTH) {
			quipu_note(notes, QUIPU_NOTE_WRONG, "",
				   "nodes are nested more than %d deep", DT_MAX_DEPTH);
			return -EINVAL;
		}
		open[depth] = n;
		*node = (struct dt_node){
			.offset = at, .next = n + 1, .phandle = fdt_get_phandle(fdt, at)};
		node->parent = depth > 1 ? open[depth - 1] : DT_NONE;
		node->name = fdt_get_name(fdt, at, NULL);
		if (!node->name)
			node->name = "";
	}
	dt->n = n;
	/* children stand behind their parent, so one pass from the end closes every subtree */
	for (uint32_t i = n; i-- > 1;) {
		struct dt_node *parent = &dt->nodes[dt->nodes[i].parent];

		if (parent->next < dt->nodes[i].next)
			parent->next = dt->nodes[i].next;
	}
	return index_phandles(dt);
}

void dt_free(struct dt *dt)
{
	free(dt->nodes);
	free(dt->by_phandle);
	*dt = (struct dt){0};
}

uint32_t dt_child(const struct dt *dt, uint32_t node)
{
	return node + 1 < dt->nodes[node].next ? node + 1 : DT_NONE;
}

uint32_t dt_sibling(const struct dt *dt, uint32_t node)
{
	uint32_t parent = dt->nodes[node].parent, next = dt->nodes[node].next;

	return parent != DT_NONE && next < dt->nodes[parent].next ? next : DT_NONE;
}

uint32_t dt_find(const struct dt *dt, uint32_t node, const char *name)
{
	size_t len = strlen(name);

	for (uint32_t i = dt_child(dt, node); i != DT_NONE; i = dt_sibling(dt, i)) {
		const char *have = dt->nodes[i].name;

		if (!strncmp(have, name, len) && (!have[len] || have[len] == '@'))
			return i;
	}
	return DT_NONE;
}

uint32_t dt_by_phandle(const struct dt *dt, uint32_t phandle)
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

char *dt_path(const struct dt *dt, uint32_t node)
{
	uint32_t chain[DT_MAX_DEPTH + 1];
	size_t n = 0, len = 0;
	char *path = malloc(DT_MAX_DEPTH * (PATH_NAME + 1) + 2);

	if (!path)
		return NULL;
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
	path[len] = '\0';
	return path;
}

void dt_note(const struct dt *dt, enum quipu_note_kind kind, uint32_t node, const char *property,
	     const char *fmt, ...)
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

int dt_number(const void *fdt, int offset, const char *name, uint64_t *value)
{
	int len;
	const void *p = fdt_getprop(fdt, offset, name, &len);

	if (!p)
		return -ENOENT;
	if (len != 4 && len != 8)
		return -EINVAL;
	*value = len == 4 ? bits_be32(p) : bits_be64(p);
	return 0;
}

const char *dt_string(const void *fdt, int offset, const char *name)
{
	int len;
	const char *p = fdt_getprop(fdt, offset, name, &len);

	return p && len > 0 && memchr(p, '\0', (size_t)len) ? p : NULL;
}
