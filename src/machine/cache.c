// SPDX-License-Identifier: BSD-2-Clause
/*
 * Caches: level 1 from the CPU nodes, the levels above along next-level-cache (l2-cache in older
 * trees).
 *
 * Devicetree Specification 0.4, 3.8 (cpu nodes: i-cache-*, d-cache-*, cache-unified) and 3.9
 * (shared cache nodes). Every walk is bounded by the levels, which must grow. No cache is simulated
 * here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu/bits.h>

#include "machine/internal.h"

#define MAX_LEVEL 8u
#define MAX_SETS  (1u << 24)
#define MAX_WAYS  65536u
#define LINE	  64u /* where a tree gives no line size */
#define WAYS	  8u  /* where it gives no sets */

struct builder {
	struct quipu_machine *m;
	struct quipu_dt *dt;
	size_t room;
};

enum field { SIZE, LINE_SIZE, BLOCK_SIZE, SETS, FIELDS };

static const char *const fields[][FIELDS] = {
	[QUIPU_CACHE_DATA] = {"d-cache-size", "d-cache-line-size", "d-cache-block-size",
			      "d-cache-sets"},
	[QUIPU_CACHE_INSTRUCTION] = {"i-cache-size", "i-cache-line-size", "i-cache-block-size",
				     "i-cache-sets"},
	[QUIPU_CACHE_UNIFIED] = {"cache-size", "cache-line-size", "cache-block-size", "cache-sets"},
};

/* 0 when absent, UINT64_MAX when it is no number. */
static uint64_t field(const struct quipu_dt *dt, uint32_t node, enum quipu_cache_type type,
		      enum field what)
{
	uint64_t v = 0;
	int err = dt_number(dt, node, fields[type][what], &v);

	if (err == -ENOENT)
		return 0;
	return err ? UINT64_MAX : v;
}

static const char *geometry(const struct quipu_dt *dt, uint32_t node, enum quipu_cache_type type,
			    struct quipu_cache *c)
{
	uint64_t line = field(dt, node, type, LINE_SIZE), sets = field(dt, node, type, SETS);
	uint64_t latency = 0;

	c->size = field(dt, node, type, SIZE);
	if (!line)
		line = field(dt, node, type, BLOCK_SIZE);
	if (!line)
		line = LINE;
	if (c->size > UINT64_C(1) << 40)
		return "the size is no number of at most 1 TiB";
	if (line < 8 || line > 4096 || bits_count(line) != 1)
		return "the line size is no power of two from 8 to 4096";
	if (!sets)
		sets = c->size % (WAYS * line) ? 1 : c->size / (WAYS * line);
	if (sets > MAX_SETS)
		return "the number of sets is out of range";
	if (c->size % (sets * line) || c->size / (sets * line) > MAX_WAYS)
		return "the size is no whole number of ways times sets times lines";
	c->line = (unsigned)line;
	c->sets = (unsigned)sets;
	c->ways = (unsigned)(c->size / (sets * line));
	if (!dt_number(dt, node, "quipu,latency", &latency)) {
		if (latency > 100000)
			return "quipu,latency is more than 100000 cycles";
		c->latency = (unsigned)latency;
	}
	return NULL;
}

static int append(struct builder *b, const struct quipu_cache *c)
{
	struct quipu_machine *m = b->m;

	if (m->ncaches == b->room) {
		size_t room = b->room ? 2 * b->room : 64;
		struct quipu_cache *p = reallocarray(m->caches, room, sizeof(*p));

		if (!p)
			return -ENOMEM;
		m->caches = p;
		b->room = room;
	}
	m->caches[m->ncaches++] = *c;
	return 0;
}

/* @cpu uses the cache of @type that @node describes; made when it is met first, and again where its
 * CPUs have a gap. */
static int use(struct builder *b, unsigned cpu, uint32_t node, enum quipu_cache_type type,
	       unsigned level)
{
	int *tag = &b->dt->nodes[node].cache[type];
	struct quipu_cache c = {.level = level, .type = type, .first_cpu = cpu, .ncpus = 1};
	const char *wrong;
	int err;

	if (*tag < 0 || !field(b->dt, node, type, SIZE))
		return 0;
	if (*tag > 0) {
		struct quipu_cache *have = &b->m->caches[*tag - 1];

		if (have->first_cpu + have->ncpus == cpu) {
			have->ncpus++;
			return 0;
		}
		if (have->first_cpu + have->ncpus > cpu)
			return 0; /* a thread of the same node */
		dt_note(b->dt, QUIPU_NOTE_IGNORED, node, NULL,
			"the CPUs that share this cache are not neighbours: CPU %u starts another "
			"one",
			cpu);
	}
	wrong = geometry(b->dt, node, type, &c);
	if (wrong) {
		dt_note(b->dt, QUIPU_NOTE_WRONG, node, fields[type][SIZE],
			"%s; the cache is left out", wrong);
		*tag = -1;
		return 0;
	}
	c.path = dt_path(b->dt, node);
	err = c.path ? append(b, &c) : -ENOMEM;
	if (err) {
		free((char *)c.path);
		return err;
	}
	*tag = (int)b->m->ncaches;
	return 0;
}

static int use_all(struct builder *b, unsigned cpu, uint32_t node, unsigned level)
{
	int err = use(b, cpu, node, QUIPU_CACHE_INSTRUCTION, level);

	if (!err)
		err = use(b, cpu, node, QUIPU_CACHE_DATA, level);
	if (!err)
		err = use(b, cpu, node, QUIPU_CACHE_UNIFIED, level);
	return err;
}

static uint32_t next_level(const struct quipu_dt *dt, uint32_t node)
{
	static const char *const names[] = {"next-level-cache", "l2-cache", "l3-cache"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int len;
		const void *p = dt_property(dt, node, names[i], &len);
		uint32_t to;

		if (!p)
			continue;
		to = len == 4 ? dt_by_phandle(dt, bits_be32(p)) : DT_NONE;
		if (to == DT_NONE)
			dt_note(dt, QUIPU_NOTE_WRONG, node, names[i], "no node has this phandle");
		return to;
	}
	return DT_NONE;
}

static int walk(struct builder *b, unsigned cpu, uint32_t node)
{
	unsigned level = 1;
	int err = use_all(b, cpu, node, level);

	while (!err && (node = next_level(b->dt, node)) != DT_NONE) {
		uint64_t said = level + 1;

		dt_number(b->dt, node, "cache-level", &said);
		if (said <= level || said > MAX_LEVEL) {
			dt_note(b->dt, QUIPU_NOTE_WRONG, node, "cache-level",
				"the level does not grow from %u towards memory (at most %u); "
				"caches above are left out",
				level, MAX_LEVEL);
			break;
		}
		level = (unsigned)said;
		err = use_all(b, cpu, node, level);
	}
	return err;
}

static int by_level(const void *a, const void *b)
{
	const struct quipu_cache *x = a, *y = b;
	static const int order[] = {
		[QUIPU_CACHE_INSTRUCTION] = 1, [QUIPU_CACHE_DATA] = 0, [QUIPU_CACHE_UNIFIED] = 2};

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	if (x->first_cpu != y->first_cpu)
		return x->first_cpu < y->first_cpu ? -1 : 1;
	return order[x->type] - order[y->type];
}

int caches_read(struct quipu_machine *m, struct quipu_dt *dt, const uint32_t *cpu_node)
{
	struct builder b = {.m = m, .dt = dt};

	for (unsigned i = 0; i < m->ncpus; i++) {
		int err = walk(&b, i, cpu_node[i]);

		if (err)
			return err;
	}
	if (m->ncaches) {
		qsort(m->caches, m->ncaches, sizeof(*m->caches), by_level);
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, 0, NULL, "%zu caches in %u levels", m->ncaches,
			m->caches[m->ncaches - 1].level);
	}
	return 0;
}
