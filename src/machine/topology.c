// SPDX-License-Identifier: BSD-2-Clause
/*
 * Topology: sockets, clusters, cores and threads from /cpus/cpu-map, NUMA nodes from numa-node-id.
 *
 * The "cpu-topology" binding (arm, riscv): socketN / clusterN / coreN / threadN, leaves point to
 * CPU nodes. As in Linux, a map that is wrong or leaves a CPU out is not used at all. Without a map
 * every CPU node is a core of its own, on the socket that ibm,chip-id names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "machine/internal.h"

struct map {
	struct quipu_machine *m;
	struct quipu_dt *dt;
	const uint32_t *cpu_node;
	bool *seen;
	unsigned clusters; /* met so far */
	unsigned cores;	   /* met so far in this socket */
};

/* "core12" for @word "core": its number, or -1. */
static int numbered(const char *name, const char *word)
{
	size_t len = strlen(word);
	char *end;
	long v;

	if (strncmp(name, word, len) || name[len] < '0' || name[len] > '9')
		return -1;
	v = strtol(name + len, &end, 10);
	return *end || v > 65535 ? -1 : (int)v;
}

/* @node (coreN or threadN) points to a CPU node; its threads take the place. 0 or -EINVAL with a
 * note. */
static int place(struct map *map, uint32_t node, const struct quipu_cpu *where)
{
	int len;
	const void *p = dt_property(map->dt, node, "cpu", &len);
	uint32_t target = p && len == 4 ? dt_by_phandle(map->dt, bits_be32(p)) : DT_NONE;
	unsigned thread = where->thread;
	bool found = false;

	if (target == DT_NONE) {
		dt_note(map->dt, QUIPU_NOTE_WRONG, node, "cpu", "does not point to a node");
		return -EINVAL;
	}
	for (unsigned i = 0; i < map->m->ncpus; i++) {
		struct quipu_cpu *cpu = &map->m->cpus[i];

		if (map->cpu_node[i] != target)
			continue;
		if (map->seen[i]) {
			dt_note(map->dt, QUIPU_NOTE_WRONG, node, "cpu",
				"CPU %u has a place already", i);
			return -EINVAL;
		}
		map->seen[i] = found = true;
		cpu->socket = where->socket;
		cpu->cluster = where->cluster;
		cpu->core = where->core;
		cpu->thread = thread++;
	}
	if (!found)
		dt_note(map->dt, QUIPU_NOTE_IGNORED, node, "cpu",
			"points to a CPU that is not in use");
	return 0;
}

static int read_core(struct map *map, uint32_t node, struct quipu_cpu where)
{
	where.core = map->cores++;
	where.thread = 0;
	if (dt_property(map->dt, node, "cpu", NULL))
		return place(map, node, &where);
	for (uint32_t i = dt_child(map->dt, node); i != DT_NONE; i = dt_sibling(map->dt, i)) {
		int thread = numbered(map->dt->nodes[i].name, "thread"), err;

		if (thread < 0)
			continue;
		where.thread = (unsigned)thread;
		err = place(map, i, &where);
		if (err)
			return err;
	}
	return 0;
}

/* Depth is bounded by DT_MAX_DEPTH: the index refuses deeper trees. */
static int read_level(struct map *map, uint32_t node, struct quipu_cpu where, bool top)
{
	for (uint32_t i = dt_child(map->dt, node); i != DT_NONE; i = dt_sibling(map->dt, i)) {
		const char *name = map->dt->nodes[i].name;
		struct quipu_cpu below = where;
		int socket = numbered(name, "socket"), err = 0;

		if (top && socket >= 0) {
			below.socket = (unsigned)socket;
			map->cores = 0;
			err = read_level(map, i, below, false);
		} else if (numbered(name, "cluster") >= 0) {
			below.cluster = map->clusters++;
			err = read_level(map, i, below, false);
		} else if (numbered(name, "core") >= 0) {
			err = read_core(map, i, below);
		} else {
			dt_note(map->dt, QUIPU_NOTE_IGNORED, i, NULL, "no socket, cluster or core");
		}
		if (err)
			return err;
	}
	return 0;
}

static void without_map(struct quipu_machine *m, const struct quipu_dt *dt,
			const uint32_t *cpu_node)
{
	unsigned core = 0, thread = 0;

	for (unsigned i = 0; i < m->ncpus; i++) {
		struct quipu_cpu *cpu = &m->cpus[i];
		uint64_t chip = 0;

		dt_number(dt, cpu_node[i], "ibm,chip-id", &chip);
		if (i && cpu_node[i] == cpu_node[i - 1])
			thread++;
		else if (i)
			core++, thread = 0;
		if (i && chip != m->cpus[i - 1].socket)
			core = 0;
		cpu->socket = (unsigned)(chip & 0xffff);
		cpu->cluster = 0;
		cpu->core = core;
		cpu->thread = thread;
	}
}

static int read_map(struct quipu_machine *m, struct quipu_dt *dt, uint32_t node,
		    const uint32_t *cpu_node)
{
	struct map map = {
		.m = m, .dt = dt, .cpu_node = cpu_node, .seen = calloc(m->ncpus, sizeof(bool))};
	int err;

	if (!map.seen)
		return -ENOMEM;
	err = read_level(&map, node, (struct quipu_cpu){0}, true);
	for (unsigned i = 0; !err && i < m->ncpus; i++)
		if (!map.seen[i]) {
			dt_note(dt, QUIPU_NOTE_WRONG, node, NULL, "leaves out CPU %u (%s)", i,
				m->cpus[i].path);
			err = -EINVAL;
		}
	free(map.seen);
	return err;
}

static void read_nodes(struct quipu_machine *m, struct quipu_dt *dt, const uint32_t *cpu_node)
{
	for (unsigned i = 0; i < m->ncpus; i++) {
		uint64_t id = 0;

		if (!dt_number(dt, cpu_node[i], "numa-node-id", &id) && id >= QUIPU_MAX_NODES) {
			dt_note(dt, QUIPU_NOTE_WRONG, cpu_node[i], "numa-node-id",
				"is above %u; taken as 0", QUIPU_MAX_NODES - 1);
			id = 0;
		}
		m->cpus[i].node = (unsigned)id;
	}
}

int topology_read(struct quipu_machine *m, struct quipu_dt *dt, uint32_t cpus,
		  const uint32_t *cpu_node)
{
	uint32_t node = dt_find(dt, cpus, "cpu-map");
	int err = -ENOENT;

	read_nodes(m, dt, cpu_node);
	if (node != DT_NONE) {
		err = read_map(m, dt, node, cpu_node);
		if (err == -ENOMEM)
			return err;
		if (err)
			dt_note(dt, QUIPU_NOTE_IGNORED, node, NULL,
				"every CPU is taken as a core of one socket");
	}
	if (err)
		without_map(m, dt, cpu_node);
	if (!err)
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, node, NULL, "a place for each of %u CPUs",
			m->ncpus);
	return 0;
}
