// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device tree to machine: CPUs, instruction set, clock, costs, memory.
 *
 * Devicetree Specification 0.4: 3.4 and 3.5 (memory), 3.7 and 3.8 (/cpus and its nodes; reg and
 * ibm,ppc-interrupt-server#s name the threads of a core). Private properties: machines/README.md.
 * Topology and caches are in files of their own; the nodes of a PMU are read by its room.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/model.h>

#include "machine/internal.h"

#define DEFAULT_HZ	UINT64_C(1000000000)
#define DEFAULT_TICK_HZ 250u
#define MAX_THREADS	64u /* of one CPU node */

static const struct {
	const char *name;
	unsigned elf;
} isa[QUIPU_ISAS] = {
	[QUIPU_ISA_RISCV64] = {"riscv64", 243},
	[QUIPU_ISA_PPC64LE] = {"ppc64le", 21},
	[QUIPU_ISA_SPARC64] = {"sparc64", 43},
	[QUIPU_ISA_X86_64] = {"x86_64", 62},
};

/* What tells the instruction set of a CPU node: a property it has, or how a string of its
 * compatible list starts. */
static const struct {
	enum quipu_isa isa;
	const char *property;
	const char *compatible;
} isa_mark[] = {
	{QUIPU_ISA_RISCV64, "riscv,isa", NULL},
	{QUIPU_ISA_RISCV64, "riscv,isa-base", NULL},
	{QUIPU_ISA_RISCV64, NULL, "riscv"},
	{QUIPU_ISA_PPC64LE, "ibm,ppc-interrupt-server#s", NULL},
	{QUIPU_ISA_PPC64LE, NULL, "ibm,power"},
	{QUIPU_ISA_PPC64LE, NULL, "PowerPC"},
	{QUIPU_ISA_SPARC64, NULL, "SUNW,"},
	{QUIPU_ISA_SPARC64, NULL, "sun4v"},
	{QUIPU_ISA_SPARC64, NULL, "sparc"},
	{QUIPU_ISA_X86_64, NULL, "x86"},
	{QUIPU_ISA_X86_64, NULL, "intel,"},
	{QUIPU_ISA_X86_64, NULL, "amd,"},
};

const char *quipu_isa_name(enum quipu_isa i)
{
	return (unsigned)i < QUIPU_ISAS ? isa[i].name : "?";
}

unsigned quipu_isa_elf(enum quipu_isa i)
{
	return (unsigned)i < QUIPU_ISAS ? isa[i].elf : 0;
}

int quipu_isa_find(const char *name)
{
	for (int i = 0; i < QUIPU_ISAS; i++)
		if (!strcmp(isa[i].name, name))
			return i;
	return -1;
}

static int isa_of(const struct quipu_dt *dt, uint32_t node)
{
	for (size_t i = 0; i < sizeof(isa_mark) / sizeof(isa_mark[0]); i++) {
		if (isa_mark[i].property && dt_property(dt, node, isa_mark[i].property, NULL))
			return (int)isa_mark[i].isa;
		if (isa_mark[i].compatible &&
		    dt_list_starts(dt, node, "compatible", isa_mark[i].compatible))
			return (int)isa_mark[i].isa;
	}
	return -1;
}

/* A property of the machine: on /cpus or, if it is not there, on the root. *node is where it was
 * found. */
static const void *machine_property(const struct quipu_dt *dt, uint32_t cpus, const char *name,
				    uint32_t *node)
{
	const void *p = dt_property(dt, cpus, name, NULL);

	*node = p ? cpus : 0;
	return p ? p : dt_property(dt, 0, name, NULL);
}

/* CPU nodes */

/* Reasons to leave a CPU node out; a note says so. */
static bool usable(struct quipu_machine *m, const struct quipu_dt *dt, uint32_t node, int forced)
{
	int have = forced >= 0 ? forced : isa_of(dt, node);
	const char *status = dt_string(dt, node, "status"), *base;

	if (status && strcmp(status, "okay") && strcmp(status, "ok")) {
		dt_note(dt, QUIPU_NOTE_IGNORED, node, "status", "the CPU is \"%.32s\"", status);
		return false;
	}
	if (have < 0) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, "compatible",
			"of no known instruction set; quipu,isa on /cpus names it (riscv64, "
			"ppc64le, sparc64, x86_64)");
		return false;
	}
	base = dt_string(dt, node, "riscv,isa-base");
	if (!base)
		base = dt_string(dt, node, "riscv,isa");
	if (have == QUIPU_ISA_RISCV64 && base && strncmp(base, "rv64", 4)) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, "riscv,isa",
			"\"%.16s\" is no rv64; other widths are not modelled", base);
		return false;
	}
	if (m->ncpus && (int)m->isa != have) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, NULL, "is %s in a machine of %s",
			quipu_isa_name((enum quipu_isa)have), quipu_isa_name(m->isa));
		return false;
	}
	m->isa = (enum quipu_isa)have;
	return true;
}

/* The thread numbers of a CPU node: ibm,ppc-interrupt-server#s, else reg. Their number, 0 with a
 * note. */
static unsigned threads_of(const struct quipu_dt *dt, uint32_t node, int address_cells,
			   uint64_t *reg)
{
	const char *name = "ibm,ppc-interrupt-server#s";
	int len, width = 4;
	const uint8_t *p = dt_property(dt, node, name, &len);
	unsigned n;

	if (!p) {
		name = "reg";
		width = 4 * address_cells;
		p = dt_property(dt, node, name, &len);
	}
	if (!p || len < width || len % width) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, name,
			"does not number the CPU (cells of %d bytes expected)", width);
		return 0;
	}
	n = (unsigned)(len / width);
	if (n > MAX_THREADS) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, name, "%u threads in one node; at most %u", n,
			MAX_THREADS);
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		reg[i] = width == 4 ? bits_be32(p + 4 * i) : bits_be64(p + 8 * i);
	return n;
}

static int add_cpu(struct quipu_machine *m, const struct quipu_dt *dt, uint32_t node, uint64_t reg,
		   uint32_t **cpu_node)
{
	struct quipu_cpu *cpus;
	uint32_t *nodes;

	if (m->ncpus == QUIPU_MAX_CPUS) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, NULL, "more than %u CPUs", QUIPU_MAX_CPUS);
		return -EINVAL;
	}
	if (!(m->ncpus & (m->ncpus - 1))) { /* a power of two, or 0: full */
		size_t room = m->ncpus ? 2 * m->ncpus : 1;

		cpus = reallocarray(m->cpus, room, sizeof(*cpus));
		if (cpus)
			m->cpus = cpus;
		nodes = reallocarray(*cpu_node, room, sizeof(*nodes));
		if (nodes)
			*cpu_node = nodes;
		if (!cpus || !nodes)
			return -ENOMEM;
	}
	(*cpu_node)[m->ncpus] = node;
	m->cpus[m->ncpus] = (struct quipu_cpu){.number = m->ncpus,
					       .reg = reg,
					       .offset = dt->nodes[node].offset,
					       .path = dt_path(dt, node)};
	return m->cpus[m->ncpus++].path ? 0 : -ENOMEM;
}

static int by_reg(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Two CPUs of one number cannot be told apart by firmware. */
static int check_numbers(const struct quipu_machine *m, const struct quipu_dt *dt, uint32_t cpus)
{
	uint64_t *reg = calloc(m->ncpus, sizeof(*reg));
	int err = 0;

	if (!reg)
		return -ENOMEM;
	for (unsigned i = 0; i < m->ncpus; i++)
		reg[i] = m->cpus[i].reg;
	qsort(reg, m->ncpus, sizeof(*reg), by_reg);
	for (unsigned i = 1; i < m->ncpus && !err; i++)
		if (reg[i] == reg[i - 1]) {
			dt_note(dt, QUIPU_NOTE_WRONG, cpus, NULL,
				"two CPUs have the number %" PRIu64, reg[i]);
			err = -EINVAL;
		}
	free(reg);
	return err;
}

static bool is_cpu(const struct quipu_dt *dt, uint32_t node)
{
	const char *type = dt_string(dt, node, "device_type");

	return (type && !strcmp(type, "cpu")) || !strncmp(dt->nodes[node].name, "cpu@", 4);
}

static int read_cpus(struct quipu_machine *m, struct quipu_dt *dt, uint32_t cpus,
		     uint32_t **cpu_node)
{
	int cells = fdt_address_cells(dt->fdt, dt->nodes[cpus].offset), forced = -1;
	uint64_t reg[MAX_THREADS];
	uint32_t at;

	if (machine_property(dt, cpus, "quipu,isa", &at)) {
		const char *name = dt_string(dt, at, "quipu,isa");

		forced = name ? quipu_isa_find(name) : -1;
		if (forced < 0) {
			dt_note(dt, QUIPU_NOTE_WRONG, at, "quipu,isa",
				"is none of riscv64, ppc64le, sparc64, x86_64");
			return -EINVAL;
		}
	}
	if (cells != 1 && cells != 2) {
		dt_note(dt, QUIPU_NOTE_WRONG, cpus, "#address-cells", "must be 1 or 2");
		return -EINVAL;
	}
	for (uint32_t i = dt_child(dt, cpus); i != DT_NONE; i = dt_sibling(dt, i)) {
		unsigned n;

		if (!is_cpu(dt, i) || !usable(m, dt, i, forced))
			continue;
		n = threads_of(dt, i, cells, reg);
		for (unsigned t = 0; t < n; t++) {
			int err = add_cpu(m, dt, i, reg[t], cpu_node);

			if (err)
				return err;
		}
	}
	if (!m->ncpus) {
		dt_note(dt, QUIPU_NOTE_WRONG, cpus, NULL, "no usable CPU");
		return -EINVAL;
	}
	dt_note(dt, QUIPU_NOTE_UNDERSTOOD, cpus, NULL, "%u CPU%s of %s", m->ncpus,
		m->ncpus == 1 ? "" : "s", quipu_isa_name(m->isa));
	return check_numbers(m, dt, cpus);
}

/* Clock, tick, timing */

/* A number of the machine within bounds; a bad one is noted and @fallback stays. */
static uint64_t bounded(const struct quipu_dt *dt, uint32_t node, const char *name, uint64_t lo,
			uint64_t hi, uint64_t fallback)
{
	uint64_t v = fallback;
	int err = dt_number(dt, node, name, &v);

	if (err == -ENOENT)
		return fallback;
	if (err || v < lo || v > hi) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, name,
			"is no number from %" PRIu64 " to %" PRIu64 "; taken as %" PRIu64, lo, hi,
			fallback);
		return fallback;
	}
	return v;
}

static void read_clock(struct quipu_machine *m, const struct quipu_dt *dt, uint32_t cpus,
		       const uint32_t *cpu_node)
{
	static const char name[] = "clock-frequency";
	uint64_t lo = 1000000, hi = UINT64_C(100000000000);

	m->hz = bounded(dt, cpus, name, lo, hi, 0);
	for (unsigned i = 0; i < m->ncpus; i++) {
		uint64_t hz = bounded(dt, cpu_node[i], name, lo, hi, 0);

		if (!m->hz)
			m->hz = hz;
		if (hz && hz != m->hz) {
			dt_note(dt, QUIPU_NOTE_IGNORED, cpu_node[i], name,
				"all CPUs run at the %" PRIu64 " Hz of the first", m->hz);
			break;
		}
	}
	if (m->hz)
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD,
			dt_property(dt, cpus, name, NULL) ? cpus : cpu_node[0], name,
			"%" PRIu64 " Hz", m->hz);
	else
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, cpus, name, "none given: the default of 1 GHz");
	if (!m->hz)
		m->hz = DEFAULT_HZ;
	m->timebase_hz = bounded(dt, cpus, "timebase-frequency", 1, hi, 0);
	if (!m->timebase_hz)
		m->timebase_hz = bounded(dt, cpu_node[0], "timebase-frequency", 1, hi, 0);
}

static void read_time(struct quipu_machine *m, const struct quipu_dt *dt, uint32_t cpus)
{
	const char *timing;
	uint32_t at;

	m->tick_hz = DEFAULT_TICK_HZ;
	if (machine_property(dt, cpus, "quipu,tick-hz", &at)) {
		m->tick_hz = (unsigned)bounded(dt, at, "quipu,tick-hz", 10, 10000, DEFAULT_TICK_HZ);
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, at, "quipu,tick-hz", "%u ticks a second",
			m->tick_hz);
	}
	if (!machine_property(dt, cpus, "quipu,timing", &at))
		return;
	timing = dt_string(dt, at, "quipu,timing");
	m->timing_full = timing && !strcmp(timing, "full");
	if (!m->timing_full && (!timing || strcmp(timing, "base")))
		dt_note(dt, QUIPU_NOTE_WRONG, at, "quipu,timing",
			"is neither \"base\" nor \"full\"; taken as base");
	else
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, at, "quipu,timing", "%s", timing);
}

static void read_programs(struct quipu_machine *m, const struct quipu_dt *dt, uint32_t cpus)
{
	const char *word;
	uint32_t at;

	if (!machine_property(dt, cpus, "quipu,other-programs", &at))
		return;
	word = dt_string(dt, at, "quipu,other-programs");
	m->other_programs = word && !strcmp(word, "count");
	if (!m->other_programs && (!word || strcmp(word, "helper")))
		dt_note(dt, QUIPU_NOTE_WRONG, at, "quipu,other-programs",
			"is neither \"helper\" nor \"count\"; taken as helper");
	else
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, at, "quipu,other-programs", "%s", word);
}

/*
 * A private property of /cpus that nobody reads is a slip of the pen: the machine would not be what
 * its author meant. Rooms keep theirs on nodes of their own.
 */
static void check_private(const struct quipu_dt *dt, uint32_t cpus)
{
	static const char *const known[] = {"quipu,isa", "quipu,tick-hz", "quipu,timing",
					    "quipu,other-programs"};
	const struct dt_node *node = &dt->nodes[cpus];

	for (uint32_t at = node->first; at < node->first + node->nprops; at++) {
		const char *name = dt->properties[at].name;
		bool found = false;

		if (strncmp(name, "quipu,", 6))
			continue;
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !found; i++)
			found = !strcmp(name, known[i]);
		found |= quipu_model_property(name);
		for (unsigned c = 0; c < QUIPU_INSN_CLASSES && !found; c++)
			found = !strncmp(name, "quipu,cost-", 11) &&
				!strcmp(name + 11, quipu_insn_class_name((enum quipu_insn_class)c));
		if (!found)
			dt_note(dt, QUIPU_NOTE_WRONG, cpus, name,
				"an unknown private property; it changes nothing");
	}
}

/* Memory */

static int add_memory(struct quipu_machine *m, uint64_t id, uint64_t bytes)
{
	struct quipu_node *nodes;
	size_t i = 0;

	while (i < m->nnodes && m->nodes[i].id < id)
		i++;
	if (i == m->nnodes || m->nodes[i].id != id) {
		nodes = reallocarray(m->nodes, m->nnodes + 1, sizeof(*nodes));
		if (!nodes)
			return -ENOMEM;
		m->nodes = nodes;
		memmove(&nodes[i + 1], &nodes[i], (m->nnodes - i) * sizeof(*nodes));
		nodes[i] = (struct quipu_node){.id = (unsigned)id};
		m->nnodes++;
	}
	if (__builtin_add_overflow(m->nodes[i].memory_bytes, bytes, &m->nodes[i].memory_bytes))
		m->nodes[i].memory_bytes = UINT64_MAX;
	if (__builtin_add_overflow(m->memory_bytes, bytes, &m->memory_bytes))
		m->memory_bytes = UINT64_MAX;
	return 0;
}

/* The sizes of the ranges in reg; an odd reg is noted. */
static uint64_t range_bytes(const struct quipu_dt *dt, uint32_t node, int address_cells,
			    int size_cells)
{
	int len, width = 4 * (address_cells + size_cells);
	const uint8_t *p = dt_property(dt, node, "reg", &len);
	uint64_t sum = 0;

	if (!p || !len || len % width) {
		dt_note(dt, QUIPU_NOTE_WRONG, node, "reg",
			"is no list of memory ranges (%d bytes each)", width);
		return 0;
	}
	for (int at = 4 * address_cells; at < len; at += width) {
		uint64_t size = size_cells == 1 ? bits_be32(p + at) : bits_be64(p + at);

		if (__builtin_add_overflow(sum, size, &sum))
			sum = UINT64_MAX;
	}
	return sum;
}

static int read_memory(struct quipu_machine *m, const struct quipu_dt *dt)
{
	int address_cells = fdt_address_cells(dt->fdt, 0), size_cells = fdt_size_cells(dt->fdt, 0),
	    err = 0;

	for (uint32_t i = dt_child(dt, 0); i != DT_NONE && !err; i = dt_sibling(dt, i)) {
		const char *type = dt_string(dt, i, "device_type");
		uint64_t id, bytes;

		if (!type || strcmp(type, "memory"))
			continue;
		if (address_cells < 1 || address_cells > 2 || size_cells < 1 || size_cells > 2) {
			dt_note(dt, QUIPU_NOTE_WRONG, 0, "#address-cells",
				"memory needs 1 or 2 cells for address and size");
			break;
		}
		id = bounded(dt, i, "numa-node-id", 0, QUIPU_MAX_NODES - 1, 0);
		bytes = range_bytes(dt, i, address_cells, size_cells);
		err = add_memory(m, id, bytes);
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, i, NULL, "%" PRIu64 " MiB of memory",
			bytes >> 20);
	}
	for (unsigned i = 0; i < m->ncpus && !err; i++)
		err = add_memory(m, m->cpus[i].node, 0); /* a node without memory exists too */
	return err;
}

static char *printable_copy(const char *s)
{
	char *copy = strndup(s ? s : "", 128);

	for (char *p = copy; p && *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return copy;
}

static int read_all(struct quipu_machine *m, struct quipu_dt *dt)
{
	uint32_t *cpu_node = NULL, cpus = dt_find(dt, 0, "cpus");
	int err;

	if (cpus == DT_NONE) {
		quipu_note(dt->notes, QUIPU_NOTE_WRONG, "/",
			   "no node /cpus: a machine is made of CPUs");
		return -EINVAL;
	}
	m->model = printable_copy(dt_string(dt, 0, "model"));
	err = m->model ? read_cpus(m, dt, cpus, &cpu_node) : -ENOMEM;
	if (!err)
		err = topology_read(m, dt, cpus, cpu_node);
	if (!err)
		err = caches_read(m, dt, cpu_node);
	if (!err)
		err = read_memory(m, dt);
	if (err)
		goto out;
	read_clock(m, dt, cpus, cpu_node);
	read_time(m, dt, cpus);
	read_programs(m, dt, cpus);
	costs_default(m->cost);
	costs_read(m, dt, 0);
	costs_read(m, dt, cpus);
	check_private(dt, cpus);
out:
	free(cpu_node);
	return err;
}

static int read_tree(struct quipu_machine *m, const void *fdt, size_t len,
		     struct quipu_notes *notes)
{
	int err;

	m->dt = calloc(1, sizeof(*m->dt));
	if (!m->dt)
		return -ENOMEM;
	m->fdt = dt_copy(fdt, len, &m->fdt_size, notes);
	if (!m->fdt)
		return -EINVAL;
	err = dt_index(m->dt, m->fdt, notes);
	if (!err)
		err = read_all(m, m->dt);
	m->dt->notes = NULL; /* the caller's */
	return err;
}

struct quipu_machine *quipu_machine_parse(const void *fdt, size_t len, const char *name,
					  struct quipu_notes *notes)
{
	struct quipu_machine *m = calloc(1, sizeof(*m));
	int err = m ? 0 : -ENOMEM;

	if (!err) {
		snprintf(m->name, sizeof(m->name), "%s", name ? name : "");
		err = read_tree(m, fdt, len, notes);
	}
	if (!err)
		return m;
	if (err == -ENOMEM)
		quipu_note(notes, QUIPU_NOTE_WRONG, "", "out of memory");
	quipu_machine_free(m);
	return NULL;
}

void quipu_machine_free(struct quipu_machine *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->ncpus; i++)
		free((char *)m->cpus[i].path);
	for (size_t i = 0; i < m->ncaches; i++)
		free((char *)m->caches[i].path);
	free(m->cpus);
	free(m->caches);
	free(m->nodes);
	if (m->dt)
		dt_free(m->dt);
	free(m->dt);
	free(m->model);
	free(m->fdt);
	free(m);
}

/* ---- the tree, for the rooms ---- */

static int offset_of(const struct quipu_machine *m, uint32_t node)
{
	return node == DT_NONE ? -FDT_ERR_NOTFOUND : m->dt->nodes[node].offset;
}

const void *quipu_machine_property(const struct quipu_machine *m, int node, const char *name,
				   int *len)
{
	return dt_property(m->dt, dt_at(m->dt, node), name, len);
}

int quipu_machine_cells(const struct quipu_machine *m, int node, const char *name,
			const uint32_t **cells)
{
	int len;
	const void *p = quipu_machine_property(m, node, name, &len);

	if (!p)
		return -1;
	*cells = p;
	return len / 4;
}

uint64_t quipu_machine_number(const struct quipu_machine *m, int node, const char *name,
			      uint64_t fallback)
{
	uint64_t v;

	return dt_number(m->dt, dt_at(m->dt, node), name, &v) ? fallback : v;
}

bool quipu_machine_has_string(const struct quipu_machine *m, int node, const char *name,
			      const char *word)
{
	return dt_list_has(m->dt, dt_at(m->dt, node), name, word);
}

int quipu_machine_find_next(const struct quipu_machine *m, int after, const char *compatible)
{
	uint32_t i = after < 0 ? 0 : dt_at(m->dt, after);

	if (i != DT_NONE && after >= 0)
		i++;
	for (; i < m->dt->n; i++)
		if (dt_list_has(m->dt, i, "compatible", compatible))
			return m->dt->nodes[i].offset;
	return -FDT_ERR_NOTFOUND;
}

int quipu_machine_find(const struct quipu_machine *m, const char *compatible)
{
	return quipu_machine_find_next(m, -1, compatible);
}

int quipu_machine_by_phandle(const struct quipu_machine *m, uint32_t phandle)
{
	return offset_of(m, dt_by_phandle(m->dt, phandle));
}

int quipu_machine_child(const struct quipu_machine *m, int node)
{
	uint32_t i = dt_at(m->dt, node);

	return offset_of(m, i == DT_NONE ? DT_NONE : dt_child(m->dt, i));
}

int quipu_machine_sibling(const struct quipu_machine *m, int node)
{
	uint32_t i = dt_at(m->dt, node);

	return offset_of(m, i == DT_NONE ? DT_NONE : dt_sibling(m->dt, i));
}

char *quipu_machine_path(const struct quipu_machine *m, int node)
{
	uint32_t i = dt_at(m->dt, node);

	return i == DT_NONE ? strdup("?") : dt_path(m->dt, i);
}
