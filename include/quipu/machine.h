/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine, as its device tree describes it: CPUs and topology, caches, clock, instruction costs.
 * The nodes of a PMU are read by the platform room that owns them (quipu/platform.h) from the same
 * tree.
 *
 * Sources: Devicetree Specification 0.4 (cpus, cache nodes, cpu-map in the arm/riscv "cpu-topology"
 * binding); private properties start with "quipu," and are listed in machines/README.md.
 */
#ifndef QUIPU_MACHINE_H
#define QUIPU_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/signal.h>

#define QUIPU_MAX_CPUS	4096u
#define QUIPU_MAX_NODES 64u	    /* NUMA nodes, ids 0..63 */
#define QUIPU_MAX_TREE	(16u << 20) /* bytes of a flattened tree */
#define QUIPU_MAX_COST                                                                             \
	63u /* cycles of an instruction class (the engine's lanes, engine sheet 6.2) */

enum quipu_isa {
	QUIPU_ISA_RISCV64,
	QUIPU_ISA_PPC64LE,
	QUIPU_ISA_SPARC64,
	QUIPU_ISA_X86_64,
	QUIPU_ISAS
};
/* "riscv64", "ppc64le", "sparc64", "x86_64": QEMU's names. */
const char *quipu_isa_name(enum quipu_isa);
/* The ELF e_machine of the instruction set (243, 21, 43, 62). */
unsigned quipu_isa_elf(enum quipu_isa);

enum quipu_cache_type { QUIPU_CACHE_DATA, QUIPU_CACHE_INSTRUCTION, QUIPU_CACHE_UNIFIED };

struct quipu_cache {
	unsigned level; /* 1.. */
	enum quipu_cache_type type;
	uint64_t size; /* bytes */
	unsigned line; /* bytes */
	unsigned sets, ways;
	unsigned latency; /* cycles to reach it after a miss below it; 0: the model's default */
	unsigned first_cpu, ncpus; /* CPUs that share it: a contiguous range of numbers */
	const char *path;	   /* node, for messages */
};

struct quipu_cpu {
	unsigned number; /* 0..ncpus-1: Linux CPU number, in the order of the tree */
	uint64_t reg;	 /* hart id, chip-wide thread number, ... */
	unsigned socket, die, core, thread,
		node; /* core is unique within its socket, thread within its core */
	int offset;   /* of the node in the tree */
	const char *path;
	unsigned
		cluster; /* number of the innermost cluster node of cpu-map, 0 when there is none */
};

/* A NUMA node: numa-node-id of CPUs and memory; node 0 alone when the tree names none. */
struct quipu_node {
	unsigned id;
	uint64_t memory_bytes;
};

/* A message about a tree: what was understood, ignored, or is wrong, and where. */
enum quipu_note_kind { QUIPU_NOTE_UNDERSTOOD, QUIPU_NOTE_IGNORED, QUIPU_NOTE_WRONG };
struct quipu_note {
	enum quipu_note_kind kind;
	char *path; /* "/cpus/cpu@0" or "/pmu:riscv,event-to-mhpmcounters row 3" */
	char *text;
};
struct quipu_notes {
	struct quipu_note *items;
	size_t n;
};
/* quipu_note - append (printf style). quipu_notes_free - free the items, not the struct. */
void quipu_note(struct quipu_notes *, enum quipu_note_kind, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void quipu_notes_free(struct quipu_notes *);

struct quipu_machine {
	char name[64];
	char *model; /* the root's model property, or "" */
	enum quipu_isa isa;
	unsigned ncpus;
	struct quipu_cpu *cpus;
	struct quipu_cache *caches;
	size_t ncaches;
	uint64_t hz;	      /* cycles a second; clock-frequency of the CPUs, default 10^9 */
	uint64_t timebase_hz; /* timebase-frequency, 0 when absent */
	unsigned tick_hz;     /* quipu,tick-hz, default 250 */
	bool timing_full;     /* quipu,timing = "full" */
	/* quipu,other-programs = "count": programs of another instruction set that are measured run
	 * under the engine as well, as if they were of this machine's */
	bool other_programs;
	uint16_t cost[QUIPU_INSN_CLASSES]; /* cycles of each class */
	uint64_t memory_bytes;
	void *fdt; /* the whole tree: a packed copy (no slack, nothing behind the last block) */
	size_t fdt_size;
	struct quipu_node *nodes; /* in order of id */
	size_t nnodes;
	struct quipu_dt *dt; /* an index of it, behind the calls below */
};

/*
 * quipu_machine_parse - read a flattened tree of @len bytes. @name: what the user calls the
 * machine. Hostile input: nothing outside the @len bytes is read. Returns NULL when no machine can
 * be made of it; then at least one note of kind WRONG says why. Notes are appended either way. A
 * tree dumped by qemu-system-riscv64 (its PMU node has a malformed tail) is accepted, with a note.
 */
struct quipu_machine *quipu_machine_parse(const void *fdt, size_t len, const char *name,
					  struct quipu_notes *);
void quipu_machine_free(struct quipu_machine *);

/* The instruction set's name back to its number, or -1. */
int quipu_isa_find(const char *name);

/* The name of an instruction class ("mul", "fdiv", ...), as in the cost table of the tree
 * (quipu,cost-mul ...). */
const char *quipu_insn_class_name(enum quipu_insn_class);

/*
 * The tree, for the rooms. A node is libfdt's offset in m->fdt; a negative one is none, and has
 * nothing. These calls look things up in an index: libfdt reads the tree from its beginning for
 * many a question.
 *
 * quipu_machine_property - the first property of that name, or NULL. @len may be NULL.
 * quipu_machine_child, _sibling - the first node below, the next one beside; negative: none.
 * quipu_machine_by_phandle - negative: no node has it.
 * quipu_machine_path - for notes: what is long or not printable in it is cut. The caller frees it;
 *	NULL: out of memory.
 */
const void *quipu_machine_property(const struct quipu_machine *, int node, const char *name,
				   int *len);
int quipu_machine_child(const struct quipu_machine *, int node);
int quipu_machine_sibling(const struct quipu_machine *, int node);
int quipu_machine_by_phandle(const struct quipu_machine *, uint32_t phandle);
char *quipu_machine_path(const struct quipu_machine *, int node);
/* A cell array property. Returns the number of cells, -1 when absent;
 * *cells big-endian. */
int quipu_machine_cells(const struct quipu_machine *, int node, const char *name,
			const uint32_t **cells);
/* An unsigned number of one or two cells; @fallback when it is absent or has another length. */
uint64_t quipu_machine_number(const struct quipu_machine *, int node, const char *name,
			      uint64_t fallback);
/* Is @word in the list of strings? False when the property is absent or no list of strings. */
bool quipu_machine_has_string(const struct quipu_machine *, int node, const char *name,
			      const char *word);
/* First node whose compatible list has @compatible, or a negative libfdt error. */
int quipu_machine_find(const struct quipu_machine *, const char *compatible);
/* The next such node behind @after in the order of the tree; negative: from the root on. */
int quipu_machine_find_next(const struct quipu_machine *, int after, const char *compatible);

#endif
