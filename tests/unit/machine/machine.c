// SPDX-License-Identifier: BSD-2-Clause
/* Device tree to machine: what is read of good trees, what is said of bad ones, and that hostile
 * bytes stay harmless. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/machine.h>
#include <quipu/perf_regs.h>

#include "dts.h"

static struct blob riscv;

static int open_riscv(void **state)
{
	(void)state;
	riscv = blob_file(getenv("QUIPU_RISCV_DTB"));
	return riscv.data ? 0 : -1;
}

static int close_riscv(void **state)
{
	(void)state;
	blob_free(&riscv);
	return 0;
}

/* ---- registers ---- */

/* asm/perf_regs.h of each, at places where a table would slip. */
static void registers_have_perf_s_names_and_numbers(void **state)
{
	static const struct {
		enum quipu_isa isa;
		const char *list;
		uint64_t mask; /* 0: refused at @bad */
		const char *bad;
	} rows[] = {
		{QUIPU_ISA_X86_64, "ax,sp,ip", 0x181, NULL},
		{QUIPU_ISA_X86_64, "FLAGS,r8,R15", UINT64_C(0x810200), NULL},
		{QUIPU_ISA_X86_64, "ip,ds", 0, "ds"},
		{QUIPU_ISA_X86_64, "ip,", 0, ""},
		{QUIPU_ISA_X86_64, "ip,s", 0, "s"},
		{QUIPU_ISA_RISCV64, "pc,sp,s0,a0,s2,s11,t6", UINT64_C(0x88040505), NULL},
		{QUIPU_ISA_RISCV64, "zero", 0, "zero"},
		{QUIPU_ISA_PPC64LE, "r0,r31,nip,link,mmcra", UINT64_C(0x101180000001), NULL},
		{QUIPU_ISA_SPARC64, "g1", 0, "g1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *bad = NULL;
		uint64_t mask;
		int r = quipu_perf_regs_parse(rows[i].isa, rows[i].list, &mask, &bad);

		assert_int_equal(r, rows[i].mask ? 0 : -EINVAL);
		if (r)
			assert_string_equal(bad, rows[i].bad);
		else
			assert_int_equal(mask, rows[i].mask);
	}
	for (unsigned isa = 0; isa < QUIPU_ISAS; isa++) {
		uint64_t valid = quipu_perf_regs_valid(isa);

		assert_int_equal(quipu_perf_regs_given(isa) & ~valid, 0);
		for (unsigned n = 0; n < 64; n++)
			if (valid >> n & 1)
				assert_non_null(quipu_perf_reg_name(isa, n));
	}
	assert_null(quipu_perf_reg_name(QUIPU_ISA_SPARC64, 0));
	assert_null(quipu_perf_reg_name(QUIPU_ISA_X86_64, QUIPU_PERF_REGS));
}

/* ---- good trees ---- */

static void riscv_is_eight_harts_with_three_levels_of_cache(void **state)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *m = quipu_machine_parse(riscv.data, riscv.len, "riscv", &notes);
	/* level, type, size, line, sets, ways, CPUs that share it */
	static const struct {
		size_t at;
		unsigned level;
		enum quipu_cache_type type;
		uint64_t size;
		unsigned sets, ways, first, n;
	} cache[] = {
		{0, 1, QUIPU_CACHE_DATA, 32768, 64, 8, 0, 1},
		{1, 1, QUIPU_CACHE_INSTRUCTION, 32768, 64, 8, 0, 1},
		{15, 1, QUIPU_CACHE_INSTRUCTION, 32768, 64, 8, 7, 1},
		{16, 2, QUIPU_CACHE_UNIFIED, 524288, 1024, 8, 0, 1},
		{23, 2, QUIPU_CACHE_UNIFIED, 524288, 1024, 8, 7, 1},
		{24, 3, QUIPU_CACHE_UNIFIED, 8388608, 8192, 16, 0, 8},
	};

	(void)state;
	assert_non_null(m);
	assert_string_equal(m->name, "riscv");
	assert_int_equal(m->isa, QUIPU_ISA_RISCV64);
	assert_int_equal(m->ncpus, 8);
	for (unsigned i = 0; i < 8; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/cpus/cpu@%u", i);
		assert_string_equal(m->cpus[i].path, path);
		assert_int_equal(m->cpus[i].number, i);
		assert_int_equal(m->cpus[i].reg, i);
		assert_int_equal(m->cpus[i].socket, 0);
		assert_int_equal(m->cpus[i].core, i);
		assert_int_equal(m->cpus[i].thread, 0);
		assert_int_equal(quipu_machine_number(m, m->cpus[i].offset, "quipu,hpm-width", 0),
				 48);
	}
	assert_int_equal(m->ncaches, 25);
	for (size_t i = 0; i < sizeof(cache) / sizeof(cache[0]); i++) {
		const struct quipu_cache *c = &m->caches[cache[i].at];

		assert_int_equal(c->level, cache[i].level);
		assert_int_equal(c->type, cache[i].type);
		assert_int_equal(c->size, cache[i].size);
		assert_int_equal(c->line, 64);
		assert_int_equal(c->sets, cache[i].sets);
		assert_int_equal(c->ways, cache[i].ways);
		assert_int_equal(c->first_cpu, cache[i].first);
		assert_int_equal(c->ncpus, cache[i].n);
	}
	assert_int_equal(m->hz, 1000000000);
	assert_int_equal(m->timebase_hz, 10000000);
	assert_int_equal(m->tick_hz, 250);
	assert_false(m->timing_full);
	assert_int_equal(m->memory_bytes, UINT64_C(4) << 30);
	assert_int_equal(m->nnodes, 1);
	assert_false(noted(&notes, QUIPU_NOTE_WRONG, NULL, NULL));
	assert_true(quipu_machine_find(m, "riscv,pmu") > 0);
	assert_true(
		quipu_machine_has_string(m, m->cpus[3].offset, "riscv,isa-extensions", "sscofpmf"));
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

static void default_costs_are_those_of_the_documentation(void **state)
{
	static const struct {
		const char *class;
		uint16_t cycles;
	} want[] = {
		{"alu", 1},    {"mul", 3},    {"div", 20}, {"load", 1},	 {"store", 1},
		{"amo", 8},    {"lr", 8},     {"sc", 8},   {"fload", 1}, {"fstore", 1},
		{"fadd", 4},   {"fmul", 4},   {"fma", 4},  {"fdiv", 18}, {"fother", 4},
		{"vector", 1}, {"branch", 1}, {"jump", 1}, {"call", 1},	 {"ijump", 1},
		{"icall", 1},  {"ret", 1},    {"cret", 1}, {"csr", 1},	 {"fence", 1},
		{"system", 1}, {"trap", 1},
	};
	struct quipu_notes notes = {0};
	struct quipu_machine *m = quipu_machine_parse(riscv.data, riscv.len, "riscv", &notes);

	(void)state;
	assert_non_null(m);
	assert_int_equal(sizeof(want) / sizeof(want[0]), QUIPU_INSN_CLASSES);
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++) {
		assert_string_equal(quipu_insn_class_name((enum quipu_insn_class)c), want[c].class);
		assert_int_equal(m->cost[c], want[c].cycles);
	}
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

/* What the tree that QEMU 7.2 dumps has: 20 cells where rows have 3, the last ones 0, and a file
 * longer than its tree. */
static void check_virt(const struct blob *b, unsigned ncpus)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *m = quipu_machine_parse(b->data, b->len, "virt", &notes);
	const uint32_t *cells;

	if (!m)
		print_notes(&notes);
	assert_non_null(m);
	assert_false(noted(&notes, QUIPU_NOTE_WRONG, NULL, NULL));
	assert_int_equal(m->isa, QUIPU_ISA_RISCV64);
	assert_int_equal(m->ncpus, ncpus);
	for (unsigned i = 0; i < ncpus; i++)
		assert_int_equal(m->cpus[i].reg, i);
	assert_int_equal(m->hz, 1000000000);
	assert_int_equal(m->timebase_hz, 10000000);
	assert_int_equal(m->memory_bytes, 128 << 20);
	assert_int_equal(quipu_machine_cells(m, quipu_machine_find(m, "riscv,pmu"),
					     "riscv,event-to-mhpmcounters", &cells),
			 20);
	assert_int_equal(bits_be32(&cells[2]), 0x7fff9);
	assert_int_equal(quipu_machine_cells(m, 0, "no such", &cells), -1);
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

static void a_tree_of_qemu_virt_loads_as_it_is(void **state)
{
	struct blob b = blob_dts(
		"/dts-v1/; / { #address-cells = <2>; #size-cells = <2>; compatible = "
		"\"riscv-virtio\"; model = \"riscv-virtio,qemu\";\n"
		"pmu { riscv,event-to-mhpmcounters = <1 1 0x7fff9 2 2 0x7fffc 0x10019 0x10019 "
		"0x7fff8 0x1001b 0x1001b 0x7fff8\n"
		"	0x10021 0x10021 0x7fff8 0 0 0 0 0>; compatible = \"riscv,pmu\"; };\n"
		"memory@80000000 { device_type = \"memory\"; reg = <0 0x80000000 0 0x8000000>; };\n"
		"cpus { #address-cells = <1>; #size-cells = <0>; timebase-frequency = <10000000>;\n"
		"c0: cpu@0 { device_type = \"cpu\"; reg = <0>; status = \"okay\"; compatible = "
		"\"riscv\";\n"
		"	riscv,isa = "
		"\"rv64imafdch_zicsr_zifencei_zihintpause_zba_zbb_zbc_zbs_sstc\"; mmu-type = "
		"\"riscv,sv48\"; };\n"
		"c1: cpu@1 { device_type = \"cpu\"; reg = <1>; status = \"okay\"; compatible = "
		"\"riscv\"; riscv,isa = \"rv64imafdch\"; };\n"
		"cpu-map { cluster0 { core0 { cpu = <&c0>; }; core1 { cpu = <&c1>; }; }; }; }; };");
	struct blob padded = {calloc(1, b.len + 5000), b.len + 5000};

	(void)state;
	memcpy(padded.data, b.data, b.len);
	check_virt(&padded, 2);
	blob_free(&padded);
	blob_free(&b);
}

static void a_tree_dumped_by_the_real_qemu_loads_as_it_is(void **state)
{
	char name[] = "/tmp/quipu-virt-XXXXXX", command[160];
	int fd;
	struct blob b;

	(void)state;
	if (system("command -v qemu-system-riscv64 >/dev/null 2>&1")) {
		print_message("qemu-system-riscv64 is not installed (apt-get install "
			      "qemu-system-misc)\n");
		skip();
	}
	fd = mkstemp(name);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "qemu-system-riscv64 -M virt,dumpdtb=%s -smp 4 -m 128M -display none >/dev/null "
		 "2>&1",
		 name);
	assert_int_equal(system(command), 0);
	b = blob_file(name);
	unlink(name);
	assert_true(b.len > 0);
	check_virt(&b, 4);
	blob_free(&b);
}

#define ROOT(cpus) "/dts-v1/; / { #address-cells = <2>; #size-cells = <2>; " cpus " };"
#define CPUS(body) ROOT("cpus { #address-cells = <1>; #size-cells = <0>; " body " };")
#define HART(n)                                                                                    \
	"c" #n ": cpu@" #n " { device_type = \"cpu\"; compatible = \"riscv\"; reg = <" #n ">; };"

static struct quipu_machine *parse_dts(const char *source, struct quipu_notes *notes)
{
	struct blob b = blob_dts(source);
	struct quipu_machine *m = quipu_machine_parse(b.data, b.len, "test", notes);

	blob_free(&b);
	return m;
}

static void threads_sockets_and_numa_nodes_have_their_place(void **state)
{
	static const struct {
		uint64_t reg;
		unsigned socket, core, thread, node;
	} want[] = {{0, 0, 0, 0, 0},
		    {1, 0, 0, 1, 0},
		    {8, 0, 1, 0, 0},
		    {16, 1, 0, 0, 3},
		    {17, 1, 0, 1, 3}};
	struct quipu_notes notes = {0};
	struct quipu_machine *m = parse_dts(
		ROOT("memory@0 { device_type = \"memory\"; reg = <0 0 0 0x40000000>; };"
		     "memory@100000000 { device_type = \"memory\"; reg = <1 0 0 0x80000000>; "
		     "numa-node-id = <3>; };"
		     "cpus { #address-cells = <1>; #size-cells = <0>; quipu,isa = \"riscv64\";"
		     "a: cpu@0 { reg = <0 1>; }; b: cpu@8 { reg = <8>; }; c: cpu@10 { reg = <16>; "
		     "numa-node-id = <3>; };"
		     "d: cpu@11 { reg = <17>; numa-node-id = <3>; };"
		     "cpu-map { socket0 { cluster0 { core0 { cpu = <&a>; }; }; cluster1 { core0 { "
		     "cpu = <&b>; }; }; };"
		     "socket1 { core0 { thread0 { cpu = <&c>; }; thread1 { cpu = <&d>; }; }; }; }; "
		     "};"),
		&notes);

	(void)state;
	if (!m)
		print_notes(&notes);
	assert_non_null(m);
	assert_false(noted(&notes, QUIPU_NOTE_WRONG, NULL, NULL));
	assert_int_equal(m->ncpus, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(m->cpus[i].reg, want[i].reg);
		assert_int_equal(m->cpus[i].socket, want[i].socket);
		assert_int_equal(m->cpus[i].core, want[i].core);
		assert_int_equal(m->cpus[i].thread, want[i].thread);
		assert_int_equal(m->cpus[i].node, want[i].node);
	}
	assert_int_equal(m->nnodes, 2);
	assert_int_equal(m->nodes[1].id, 3);
	assert_int_equal(m->nodes[1].memory_bytes, UINT64_C(0x80000000));
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

static void power_cores_have_their_threads_by_interrupt_server(void **state)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *m = parse_dts(
		CPUS("PowerPC,POWER9@0 { device_type = \"cpu\"; reg = <0>; "
		     "ibm,ppc-interrupt-server#s = <0 1 2 3>;"
		     " ibm,chip-id = <0>; clock-frequency = <2000000000>; d-cache-size = <0x8000>; "
		     "};"
		     "PowerPC,POWER9@800 { device_type = \"cpu\"; reg = <0x800>; ibm,chip-id = <8>;"
		     " ibm,ppc-interrupt-server#s = <0x800 0x801 0x802 0x803>; d-cache-size = "
		     "<0x8000>; };"),
		&notes);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->isa, QUIPU_ISA_PPC64LE);
	assert_int_equal(m->ncpus, 8);
	assert_int_equal(m->hz, 2000000000);
	assert_int_equal(m->cpus[6].reg, 0x802);
	assert_int_equal(m->cpus[6].socket, 8);
	assert_int_equal(m->cpus[6].core, 0);
	assert_int_equal(m->cpus[6].thread, 2);
	assert_int_equal(m->ncaches, 2);
	assert_int_equal(m->caches[1].first_cpu, 4);
	assert_int_equal(m->caches[1].ncpus, 4);
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

static void a_tree_sets_clock_tick_timing_and_costs(void **state)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *m = parse_dts(
		ROOT("quipu,tick-hz = <100>; quipu,cost-mul = <7>; cpus { #address-cells = <2>; "
		     "#size-cells = <0>;"
		     "quipu,timing = \"full\"; quipu,cost-div = <63>; quipu,cost-mul = <5>;"
		     "cpu@0 { reg = <0 0>; compatible = \"riscv\"; clock-frequency = <0 "
		     "1500000000>; }; };"),
		&notes);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->tick_hz, 100);
	assert_true(m->timing_full);
	assert_int_equal(m->hz, 1500000000);
	assert_int_equal(m->cost[QUIPU_INSN_DIV], 63);
	assert_int_equal(m->cost[QUIPU_INSN_MUL], 5); /* /cpus wins over the root */
	assert_int_equal(m->cost[QUIPU_INSN_FDIV], 18);
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

/* ---- what is wrong, and where ---- */

static void every_mistake_is_told_with_its_place(void **state)
{
	static const struct {
		const char *source;
		bool machine; /* one can be made of it all the same */
		enum quipu_note_kind kind;
		const char *path, *text;
	} cases[] = {
		{ROOT(""), false, QUIPU_NOTE_WRONG, "/", "/cpus"},
		{CPUS(""), false, QUIPU_NOTE_WRONG, "/cpus", "no usable CPU"},
		{CPUS("cpu@0 { compatible = \"riscv\"; riscv,isa = \"rv32imac\"; reg = <0>; };"),
		 false, QUIPU_NOTE_WRONG, "/cpus/cpu@0:riscv,isa", "rv32imac"},
		{CPUS("cpu@0 { compatible = \"vax\"; reg = <0>; };"), false, QUIPU_NOTE_WRONG,
		 "/cpus/cpu@0:compatible", "quipu,isa"},
		{CPUS("quipu,isa = \"vax\";" HART(0)), false, QUIPU_NOTE_WRONG, "/cpus:quipu,isa",
		 "riscv64"},
		{CPUS("cpu@0 { compatible = \"riscv\"; };"), false, QUIPU_NOTE_WRONG,
		 "/cpus/cpu@0:reg", "number"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = [00 01]; };"), false, QUIPU_NOTE_WRONG,
		 "/cpus/cpu@0:reg", "number"},
		{CPUS(HART(0) "cpu@5 { compatible = \"riscv\"; reg = <0>; };"), false,
		 QUIPU_NOTE_WRONG, "/cpus", "two CPUs have the number 0"},
		{CPUS(HART(0) "cpu@5 { compatible = \"sparc\"; reg = <5>; };"), true,
		 QUIPU_NOTE_WRONG, "/cpus/cpu@5", "sparc64 in a machine of riscv64"},
		{CPUS(HART(
			 0) "cpu@5 { compatible = \"riscv\"; reg = <5>; status = \"disabled\"; };"),
		 true, QUIPU_NOTE_IGNORED, "/cpus/cpu@5:status", "disabled"},
		{ROOT("cpus { #address-cells = <3>; " HART(0) " };"), false, QUIPU_NOTE_WRONG,
		 "/cpus:#address-cells", "1 or 2"},
		{CPUS(HART(0) HART(1) "cpu-map { core0 { cpu = <&c0>; }; };"), true,
		 QUIPU_NOTE_WRONG, "/cpus/cpu-map", "leaves out CPU 1"},
		{CPUS(HART(0) "cpu-map { core0 { cpu = <&c0>; }; core1 { cpu = <&c0>; }; };"), true,
		 QUIPU_NOTE_WRONG, "/cpus/cpu-map/core1:cpu", "place already"},
		{CPUS(HART(0) "cpu-map { core0 { cpu = <99>; }; };"), true, QUIPU_NOTE_WRONG,
		 "/cpus/cpu-map/core0:cpu", "does not point"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = <0>; i-cache-size = <0x8000>; "
		      "i-cache-sets = <77>; };"),
		 true, QUIPU_NOTE_WRONG, "/cpus/cpu@0:i-cache-size", "whole number of ways"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = <0>; d-cache-size = <0x8000>; "
		      "d-cache-line-size = <48>; };"),
		 true, QUIPU_NOTE_WRONG, "/cpus/cpu@0:d-cache-size", "power of two"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = <0>; next-level-cache = <99>; };"),
		 true, QUIPU_NOTE_WRONG, "/cpus/cpu@0:next-level-cache", "no node"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = <0>; next-level-cache = <&l>; };"
		      "l: l2 { cache-unified; cache-level = <2>; cache-size = <0x10000>; "
		      "next-level-cache = <&l>; };"),
		 true, QUIPU_NOTE_WRONG, "/cpus/l2:cache-level", "does not grow"},
		{CPUS("quipu,cost-mul = <0>;" HART(0)), true, QUIPU_NOTE_WRONG,
		 "/cpus:quipu,cost-mul", "1 to 63"},
		{CPUS("quipu,cost-mul = <64>;" HART(0)), true, QUIPU_NOTE_WRONG,
		 "/cpus:quipu,cost-mul", "stays 3"},
		{CPUS("quipu,timing = \"fast\";" HART(0)), true, QUIPU_NOTE_WRONG,
		 "/cpus:quipu,timing", "base"},
		{CPUS("quipu,tick-hz = <1>;" HART(0)), true, QUIPU_NOTE_WRONG,
		 "/cpus:quipu,tick-hz", "250"},
		{CPUS("quipu,tick-hz = \"a long text\";" HART(0)), true, QUIPU_NOTE_WRONG,
		 "/cpus:quipu,tick-hz", "250"},
		{CPUS("quipu,tick-hs = <100>;" HART(0)), true, QUIPU_NOTE_WRONG,
		 "/cpus:quipu,tick-hs", "unknown"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = <0>; clock-frequency = <5>; };"), true,
		 QUIPU_NOTE_WRONG, "/cpus/cpu@0:clock-frequency", "1000000"},
		{CPUS("cpu@0 { compatible = \"riscv\"; reg = <0>; numa-node-id = <64>; };"), true,
		 QUIPU_NOTE_WRONG, "/cpus/cpu@0:numa-node-id", "63"},
		{ROOT("memory@0 { device_type = \"memory\"; reg = <1 2 3>; }; cpus { "
		      "#address-cells = <1>; "
		      "#size-cells = <0>; " HART(0) " };"),
		 true, QUIPU_NOTE_WRONG, "/memory@0:reg", "16 bytes"},
		{CPUS(HART(0) "x1: a { phandle = <7>; }; y1: b { phandle = <7>; };"), true,
		 QUIPU_NOTE_WRONG, "/cpus/b:phandle", "another node"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct quipu_notes notes = {0};
		struct quipu_machine *m = parse_dts(cases[i].source, &notes);

		if (!!m != cases[i].machine ||
		    !noted(&notes, cases[i].kind, cases[i].path, cases[i].text)) {
			print_notes(&notes);
			fail_msg("case %zu: %s", i, cases[i].source);
		}
		quipu_machine_free(m);
		quipu_notes_free(&notes);
	}
}

static void a_tree_nested_without_end_is_refused(void **state)
{
	char source[16384] = "/dts-v1/; / { ";
	struct quipu_notes notes = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(source, "a { ");
	for (int i = 0; i < 100; i++)
		strcat(source, "}; ");
	strcat(source, "};");
	assert_null(parse_dts(source, &notes));
	assert_true(noted(&notes, QUIPU_NOTE_WRONG, NULL, "nested"));
	quipu_notes_free(&notes);
}

static void names_from_a_tree_cannot_drive_the_terminal(void **state)
{
	struct blob b = blob_dts(CPUS(
		HART(0) "cpu@7 { compatible = \"riscv\"; reg = <7>; status = \"\x1b[2Jgone\"; };"));
	struct quipu_notes notes = {0};
	struct quipu_machine *m;

	(void)state;
	for (size_t i = 0; i + 5 < b.len; i++)
		if (!memcmp(b.data + i, "cpu@7", 5))
			b.data[i + 1] = '\x1b', b.data[i] = 'c', b.data[i + 2] = '\n';
	m = quipu_machine_parse(b.data, b.len, "test", &notes);
	for (size_t i = 0; i < notes.n; i++)
		for (const char *p = notes.items[i].path; *p; p++)
			assert_true(*p >= ' ' && *p <= '~');
	for (size_t i = 0; i < notes.n; i++)
		for (const char *p = notes.items[i].text; *p; p++)
			assert_true(*p >= ' ' && *p <= '~');
	quipu_machine_free(m);
	quipu_notes_free(&notes);
	blob_free(&b);
}

/* ---- hostile bytes ---- */

/* The bytes end where a page that must not be touched begins. */
struct guarded {
	uint8_t *map, *data;
	size_t size;
};

static struct guarded guarded_new(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (len + page - 1) / page * page + page;
	struct guarded g = {mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0),
			    NULL, size};

	assert_true(g.map != MAP_FAILED);
	mprotect(g.map + size - page, page, PROT_NONE);
	g.data = g.map + size - page - len;
	return g;
}

/* Parse, and use what came out the way its users do. True when a machine came out. */
static bool survives(const uint8_t *data, size_t len)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *m = quipu_machine_parse(data, len, "hostile", &notes);
	bool made = m != NULL;

	if (!m)
		assert_true(noted(&notes, QUIPU_NOTE_WRONG, NULL, NULL));
	if (m) {
		assert_in_range(m->ncpus, 1, QUIPU_MAX_CPUS);
		assert_true(m->hz && m->tick_hz);
		for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
			assert_in_range(m->cost[c], 1, QUIPU_MAX_COST);
		for (size_t i = 0; i < m->ncaches; i++) {
			const struct quipu_cache *c = &m->caches[i];

			assert_true(c->ncpus && c->first_cpu + c->ncpus <= m->ncpus);
			assert_true(c->size == (uint64_t)c->sets * c->ways * c->line && c->size);
		}
		for (unsigned i = 0; i < m->ncpus; i++)
			assert_true(fdt_get_name(m->fdt, m->cpus[i].offset, NULL) != NULL &&
				    m->cpus[i].node < 64);
		assert_int_equal(fdt_check_full(m->fdt, m->fdt_size), 0);
	}
	quipu_machine_free(m);
	quipu_notes_free(&notes);
	return made;
}

static void truncated_anywhere_it_is_refused(void **state)
{
	(void)state;
	for (size_t len = 0; len < riscv.len; len += len < 64 ? 1 : 7) {
		struct guarded g = guarded_new(len);

		memcpy(g.data, riscv.data, len);
		assert_false(survives(g.data, len));
		munmap(g.map, g.size);
	}
}

static void truncated_with_a_header_that_agrees_it_stays_harmless(void **state)
{
	(void)state;
	for (size_t len = 40; len < riscv.len; len += 13) {
		struct guarded g = guarded_new(len);
		uint32_t total = __builtin_bswap32((uint32_t)len);

		memcpy(g.data, riscv.data, len);
		memcpy(g.data + 4, &total, 4);
		survives(g.data, len);
		munmap(g.map, g.size);
	}
}

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void bytes_flipped_at_random_stay_harmless(void **state)
{
	struct guarded g = guarded_new(riscv.len);
	uint64_t s = 0x9e3779b97f4a7c15;
	unsigned made = 0;

	(void)state;
	for (int round = 0; round < 6000; round++) {
		unsigned flips = 1 + (unsigned)(next_random(&s) % 8);

		memcpy(g.data, riscv.data, riscv.len);
		while (flips--) {
			/* one in four hits the header, where a byte does most */
			size_t at = next_random(&s) % (next_random(&s) % 4 ? riscv.len : 40);

			g.data[at] ^= (uint8_t)(1u << (next_random(&s) % 8));
		}
		made += survives(g.data, riscv.len);
	}
	/* both ways out were taken */
	assert_in_range(made, 100, 5900);
	munmap(g.map, g.size);
}

static void cells_replaced_by_extremes_stay_harmless(void **state)
{
	static const uint32_t value[] = {0,	     1,		 0x7fffffff, 0x80000000,
					 0xffffffff, 0xfffffffe, 0x1000};
	struct guarded g = guarded_new(riscv.len);

	(void)state;
	for (size_t at = 0; at + 4 <= riscv.len; at += 4)
		for (size_t v = at % 8 / 4; v < sizeof(value) / sizeof(value[0]); v += 2) {
			uint32_t be = __builtin_bswap32(value[v]);

			memcpy(g.data, riscv.data, riscv.len);
			memcpy(g.data + at, &be, 4);
			survives(g.data, riscv.len);
		}
	munmap(g.map, g.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_have_perf_s_names_and_numbers),
		cmocka_unit_test(riscv_is_eight_harts_with_three_levels_of_cache),
		cmocka_unit_test(default_costs_are_those_of_the_documentation),
		cmocka_unit_test(a_tree_of_qemu_virt_loads_as_it_is),
		cmocka_unit_test(a_tree_dumped_by_the_real_qemu_loads_as_it_is),
		cmocka_unit_test(threads_sockets_and_numa_nodes_have_their_place),
		cmocka_unit_test(power_cores_have_their_threads_by_interrupt_server),
		cmocka_unit_test(a_tree_sets_clock_tick_timing_and_costs),
		cmocka_unit_test(every_mistake_is_told_with_its_place),
		cmocka_unit_test(a_tree_nested_without_end_is_refused),
		cmocka_unit_test(names_from_a_tree_cannot_drive_the_terminal),
		cmocka_unit_test(truncated_anywhere_it_is_refused),
		cmocka_unit_test(truncated_with_a_header_that_agrees_it_stays_harmless),
		cmocka_unit_test(bytes_flipped_at_random_stay_harmless),
		cmocka_unit_test(cells_replaced_by_extremes_stay_harmless),
	};

	return cmocka_run_group_tests(tests, open_riscv, close_riscv);
}
