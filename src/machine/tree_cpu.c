// SPDX-License-Identifier: BSD-2-Clause
/*
 * /sys/devices/system/cpu and node, /proc/cpuinfo: what clients read of a machine's shape.
 *
 * Perf ABI sheet B8: the whole set of topology and cache files, because lscpu stops where a mask is
 * missing; RISC-V sheet 6.1 (/proc/cpuinfo). A machine that takes a CPU offline makes the
 * tree anew.
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/event.h>

#include "machine/internal.h"
#include "machine/tree_internal.h"

#define CPUS "/sys/devices/system/cpu"

static bool same_package(const struct quipu_cpu *a, const struct quipu_cpu *b)
{
	return a->socket == b->socket;
}

static bool same_die(const struct quipu_cpu *a, const struct quipu_cpu *b)
{
	return same_package(a, b) && a->die == b->die;
}

static bool same_cluster(const struct quipu_cpu *a, const struct quipu_cpu *b)
{
	return same_die(a, b) && a->cluster == b->cluster;
}

static bool same_core(const struct quipu_cpu *a, const struct quipu_cpu *b)
{
	return same_die(a, b) && a->core == b->core;
}

/* <name> (mask) and <name>_list of the CPUs that are the @same as @cpu. */
static const struct {
	const char *mask, *list;
	bool (*same)(const struct quipu_cpu *, const struct quipu_cpu *);
} siblings[] = {
	{"package_cpus", "package_cpus_list", same_package},
	{"core_siblings", "core_siblings_list", same_package}, /* the older names of two of them */
	{"die_cpus", "die_cpus_list", same_die},
	{"cluster_cpus", "cluster_cpus_list", same_cluster},
	{"core_cpus", "core_cpus_list", same_core},
	{"thread_siblings", "thread_siblings_list", same_core},
};

static void put_topology(struct tree_builder *b, const struct quipu_machine *m, unsigned n,
			 bool *set)
{
	struct tree_dir dir = tree_dir(CPUS "/cpu%u/topology", n);
	const struct quipu_cpu *cpu = &m->cpus[n];

	tree_put(b, &dir, "physical_package_id", "%u", cpu->socket);
	tree_put(b, &dir, "die_id", "%u", cpu->die);
	tree_put(b, &dir, "cluster_id", "%u", cpu->cluster);
	tree_put(b, &dir, "core_id", "%u", cpu->core);
	for (size_t i = 0; i < sizeof(siblings) / sizeof(siblings[0]); i++) {
		for (unsigned c = 0; c < m->ncpus; c++)
			set[c] = siblings[i].same(cpu, &m->cpus[c]);
		tree_take(b, &dir, siblings[i].mask, tree_mask(set, m->ncpus), false);
		tree_take(b, &dir, siblings[i].list, tree_list(set, m->ncpus), false);
	}
}

static void put_cache(struct tree_builder *b, const struct quipu_machine *m, unsigned cpu,
		      unsigned index, const struct quipu_cache *c, bool *set)
{
	static const char *const type[] = {"Data", "Instruction", "Unified"};
	struct tree_dir dir = tree_dir(CPUS "/cpu%u/cache/index%u", cpu, index);

	for (unsigned i = 0; i < m->ncpus; i++)
		set[i] = i >= c->first_cpu && i < c->first_cpu + c->ncpus;
	tree_put(b, &dir, "level", "%u", c->level);
	tree_put(b, &dir, "type", "%s", type[c->type]);
	tree_put(b, &dir, "size", "%lluK", (unsigned long long)(c->size >> 10));
	tree_put(b, &dir, "coherency_line_size", "%u", c->line);
	tree_put(b, &dir, "number_of_sets", "%u", c->sets);
	tree_put(b, &dir, "ways_of_associativity", "%u", c->ways);
	tree_put(b, &dir, "physical_line_partition", "1");
	tree_take(b, &dir, "shared_cpu_map", tree_mask(set, m->ncpus), false);
	tree_take(b, &dir, "shared_cpu_list", tree_list(set, m->ncpus), false);
}

static void put_cpu(struct tree_builder *b, const struct quipu_machine *m, unsigned n, bool *set,
		    bool online)
{
	struct tree_dir dir = tree_dir(CPUS "/cpu%u", n), freq = tree_dir("%s/cpufreq", dir.path);
	unsigned long long khz = m->hz / 1000;
	unsigned index = 0;
	char node[16];

	tree_put(b, &dir, "online", "%d", online);
	snprintf(node, sizeof(node), "node%u", m->cpus[n].node);
	tree_link(b, &dir, node, "../../node/%s", node);
	tree_put(b, &freq, "cpuinfo_min_freq", "%llu", khz);
	tree_put(b, &freq, "cpuinfo_max_freq", "%llu", khz);
	put_topology(b, m, n, set);
	for (size_t i = 0; i < m->ncaches; i++)
		if (n >= m->caches[i].first_cpu && n < m->caches[i].first_cpu + m->caches[i].ncpus)
			put_cache(b, m, n, index++, &m->caches[i], set);
}

void tree_cpus(struct tree_builder *b, const struct quipu_machine *m, const struct quipu_core *core)
{
	static const char *const lists[] = {"possible", "present"};
	struct tree_dir dir = tree_dir(CPUS), smt = tree_dir(CPUS "/smt");
	bool *set = calloc(m->ncpus, sizeof(*set)), threads = false;

	if (!set) {
		b->failed = true;
		return;
	}
	for (unsigned i = 0; i < m->ncpus; i++) {
		put_cpu(b, m, i, set, quipu_core_is_online(core, i));
		threads |= m->cpus[i].thread > 0;
	}
	memset(set, true, m->ncpus);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		tree_take(b, &dir, lists[i], tree_list(set, m->ncpus), false);
	for (unsigned i = 0; i < m->ncpus; i++)
		set[i] = quipu_core_is_online(core, i);
	tree_take(b, &dir, "online", tree_list(set, m->ncpus), false);
	for (unsigned i = 0; i < m->ncpus; i++)
		set[i] = !set[i];
	tree_take(b, &dir, "offline", tree_list(set, m->ncpus), false);
	tree_put(b, &dir, "isolated", "%s", "");
	tree_put(b, &dir, "kernel_max", "%u", m->ncpus - 1);
	tree_put(b, &smt, "active", "%d", threads);
	tree_put(b, &smt, "control", "%s", threads ? "on" : "notsupported");
	free(set);
}

static void put_node(struct tree_builder *b, const struct quipu_machine *m, size_t n, bool *set)
{
	unsigned id = m->nodes[n].id;
	unsigned long long kb = m->nodes[n].memory_bytes >> 10;
	struct tree_dir dir = tree_dir("/sys/devices/system/node/node%u", id);
	char distance[QUIPU_MAX_NODES * 3 + 1] = "";
	size_t len = 0;

	for (size_t i = 0; i < m->nnodes; i++)
		len += (size_t)snprintf(distance + len, sizeof(distance) - len, "%s%d",
					i ? " " : "", i == n ? 10 : 20);
	for (unsigned c = 0; c < m->ncpus; c++) {
		char name[16];

		set[c] = m->cpus[c].node == id;
		if (!set[c])
			continue;
		snprintf(name, sizeof(name), "cpu%u", c);
		tree_link(b, &dir, name, "../../cpu/cpu%u", c);
	}
	tree_take(b, &dir, "cpulist", tree_list(set, m->ncpus), false);
	tree_take(b, &dir, "cpumap", tree_mask(set, m->ncpus), false);
	tree_put(b, &dir, "distance", "%s", distance);
	tree_put(b, &dir, "meminfo",
		 "Node %u MemTotal:       %8llu kB\nNode %u MemFree:        %8llu kB\nNode %u "
		 "MemUsed:        %8u kB",
		 id, kb, id, kb, id, 0);
}

void tree_nodes(struct tree_builder *b, const struct quipu_machine *m)
{
	struct tree_dir dir = tree_dir("/sys/devices/system/node");
	bool *set = calloc(m->ncpus, sizeof(*set));
	bool all[QUIPU_MAX_NODES] = {0}, cpus[QUIPU_MAX_NODES] = {0}, memory[QUIPU_MAX_NODES] = {0};

	if (!set) {
		b->failed = true;
		return;
	}
	for (size_t i = 0; i < m->nnodes; i++) {
		put_node(b, m, i, set);
		all[m->nodes[i].id] = true;
		memory[m->nodes[i].id] = m->nodes[i].memory_bytes != 0;
	}
	for (unsigned i = 0; i < m->ncpus; i++)
		cpus[m->cpus[i].node] = true;
	tree_take(b, &dir, "online", tree_list(all, QUIPU_MAX_NODES), false);
	tree_take(b, &dir, "possible", tree_list(all, QUIPU_MAX_NODES), false);
	tree_take(b, &dir, "has_cpu", tree_list(cpus, QUIPU_MAX_NODES), false);
	tree_take(b, &dir, "has_memory", tree_list(memory, QUIPU_MAX_NODES), false);
	tree_take(b, &dir, "has_normal_memory", tree_list(memory, QUIPU_MAX_NODES), false);
	free(set);
}

/* /proc/cpuinfo: one function per instruction set. */

static void put_printable(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc(*s >= ' ' && *s <= '~' ? *s : '?', f);
}

/* "rv64imafdc_zicsr..." of riscv,isa, or of base and extensions: single letters first, as the
 * kernel prints. */
static void put_riscv_isa(FILE *f, const struct quipu_machine *m, const struct quipu_cpu *cpu)
{
	static const char ext[] = "riscv,isa-extensions";
	const void *fdt = m->fdt;
	int offset = cpu->offset;
	const char *isa = dt_string(m->dt, dt_at(m->dt, offset), "riscv,isa");
	int n = fdt_stringlist_count(fdt, offset, ext);

	if (isa) {
		put_printable(f, isa);
		return;
	}
	fputs("rv64", f);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < n; i++) {
			int len;
			const char *s = fdt_stringlist_get(fdt, offset, ext, i, &len);

			if (!s || (len > 1) != pass)
				continue;
			if (pass)
				fputc('_', f);
			put_printable(f, s);
		}
}

static void riscv_cpuinfo(FILE *f, const struct quipu_machine *m, const struct quipu_cpu *cpu)
{
	uint32_t node = dt_at(m->dt, cpu->offset);
	const char *mmu = dt_string(m->dt, node, "mmu-type");
	const char *uarch = dt_string(m->dt, node, "compatible");

	fprintf(f, "processor\t: %u\nhart\t\t: %llu\nisa\t\t: ", cpu->number,
		(unsigned long long)cpu->reg);
	put_riscv_isa(f, m, cpu);
	fputs("\nmmu\t\t: ", f);
	put_printable(f, mmu && !strncmp(mmu, "riscv,", 6) ? mmu + 6 : "none");
	if (uarch && strcmp(uarch, "riscv")) {
		fputs("\nuarch\t\t: ", f);
		put_printable(f, uarch);
	}
	fprintf(f, "\nmvendorid\t: 0x%llx\nmarchid\t\t: 0x%llx\nmimpid\t\t: 0x%llx\n\n",
		(unsigned long long)quipu_machine_number(m, cpu->offset, "quipu,mvendorid", 0),
		(unsigned long long)quipu_machine_number(m, cpu->offset, "quipu,marchid", 0),
		(unsigned long long)quipu_machine_number(m, cpu->offset, "quipu,mimpid", 0));
}

/* Enough for whoever counts processors; what else a room's clients read, its room adds here. */
static void plain_cpuinfo(FILE *f, const struct quipu_machine *m, const struct quipu_cpu *cpu)
{
	(void)m;
	fprintf(f, "processor\t: %u\n\n", cpu->number);
}

void tree_cpuinfo(struct tree_builder *b, const struct quipu_machine *m)
{
	static void (*const print[QUIPU_ISAS])(FILE *, const struct quipu_machine *,
					       const struct quipu_cpu *) = {
		[QUIPU_ISA_RISCV64] = riscv_cpuinfo,
		[QUIPU_ISA_PPC64LE] = plain_cpuinfo,
		[QUIPU_ISA_SPARC64] = plain_cpuinfo,
		[QUIPU_ISA_X86_64] = plain_cpuinfo,
	};
	struct tree_dir dir = tree_dir("/proc");
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f) {
		b->failed = true;
		return;
	}
	for (unsigned i = 0; i < m->ncpus; i++)
		print[m->isa](f, m, &m->cpus[i]);
	if (fclose(f)) {
		free(text);
		text = NULL;
	}
	tree_take(b, &dir, "cpuinfo", text, false);
}
