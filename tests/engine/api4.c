/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin in a program with the plugin interface of QEMU 10 (version 4), as far as the plugin
 * uses it: no package of this system has such a user-mode QEMU. Tells whether the one file picks
 * that version, gets the bytes of instructions the way it has them there (they are copied), counts,
 * and finds its program without the calls that 10.0 declares and lacks. Engine sheet 12, case 31.
 * Not here: what QEMU 10 itself does with it; cases.py does that where there is one.
 *
 *	api4 PLUGIN
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/segment.h"

#define API __attribute__((visibility("default")))

typedef uint64_t id_t4;

struct info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	union {
		struct {
			int smp_vcpus, max_vcpus;
		} system;
	};
};

/* ld a0,0(a0); addi a0,a0,1; ret */
static const uint32_t code[] = {0x00053503, 0x00150513, 0x00008067};
#define NINSNS (sizeof(code) / sizeof(code[0]))

struct qemu_plugin_insn {
	unsigned n;
};

struct qemu_plugin_tb {
	struct qemu_plugin_insn insn[NINSNS];
};

static struct {
	void (*translate)(id_t4, struct qemu_plugin_tb *);
	void (*block)(unsigned, void *);
	void *block_data;
	void (*at_exit)(id_t4, void *);
	void *at_exit_data;
	unsigned copies;
} got;

#define NOT_USED(name)                                                                             \
	API void name(void);                                                                       \
	API void name(void)                                                                        \
	{                                                                                          \
	}

NOT_USED(qemu_plugin_register_vcpu_init_cb)
NOT_USED(qemu_plugin_register_vcpu_exit_cb)
NOT_USED(qemu_plugin_register_vcpu_syscall_cb)
NOT_USED(qemu_plugin_register_vcpu_syscall_ret_cb)
NOT_USED(qemu_plugin_register_flush_cb)
NOT_USED(qemu_plugin_register_vcpu_insn_exec_cb)
NOT_USED(qemu_plugin_register_vcpu_mem_cb)
NOT_USED(qemu_plugin_mem_size_shift)
NOT_USED(qemu_plugin_mem_is_store)
NOT_USED(qemu_plugin_scoreboard_new)

API void qemu_plugin_register_vcpu_tb_trans_cb(id_t4, void (*)(id_t4, struct qemu_plugin_tb *));
API void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *),
					      int, void *);
API void qemu_plugin_register_atexit_cb(id_t4, void (*)(id_t4, void *), void *);
API size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
API uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
API struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *, size_t);
API size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
API uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
API void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
API size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);

void qemu_plugin_register_vcpu_tb_trans_cb(id_t4 id, void (*cb)(id_t4, struct qemu_plugin_tb *))
{
	(void)id;
	got.translate = cb;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*cb)(unsigned, void *),
					  int flags, void *data)
{
	(void)tb;
	(void)flags;
	got.block = cb;
	got.block_data = data;
}

void qemu_plugin_register_atexit_cb(id_t4 id, void (*cb)(id_t4, void *), void *data)
{
	(void)id;
	got.at_exit = cb;
	got.at_exit_data = data;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	(void)tb;
	return NINSNS;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	return qemu_plugin_insn_vaddr(&tb->insn[0]);
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *tb, size_t i)
{
	return &tb->insn[i];
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	return sizeof(code[insn->n]);
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return (uintptr_t)&code[insn->n];
}

void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn)
{
	return (void *)&code[insn->n];
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len)
{
	size_t n = len < sizeof(code[0]) ? len : sizeof(code[0]);

	memcpy(to, &code[insn->n], n);
	got.copies++;
	return n;
}

static unsigned number, failed;

static void check(const char *name, bool ok)
{
	failed += !ok;
	printf("%s %u - %s\n", ok ? "ok" : "not ok", ++number, name);
}

/* Nobody answers bells here: closing says so. */
static uint8_t *make_segment(int *fd)
{
	struct seg_header *h;
	uint8_t *all;

	*fd = memfd_create("segment", 0);
	if (*fd < 0 || ftruncate(*fd, (off_t)SEG_BYTES))
		return NULL;
	all = mmap(NULL, SEG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (all == MAP_FAILED)
		return NULL;
	h = (struct seg_header *)all;
	h->magic = SEG_MAGIC;
	h->version = SEG_VERSION;
	h->size = SEG_BYTES;
	h->machine_pid = (uint32_t)getpid();
	h->features = SEG_COUNT;
	h->scalars = (1u << SEG_SCALARS) - 1;
	h->ncpus = 1;
	h->quantum = 4096;
	h->hz = 1000000000;
	h->lane_signal[0] = QUIPU_SIGNAL_INSTRUCTIONS;
	h->lane_signal[1] = QUIPU_SIGNAL_CYCLES;
	h->lane_signal[2] = QUIPU_SIGNAL_LOADS;
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		h->cost[c] = 1;
	h->closing = 1;
	return all;
}

#define ROUNDS 10000u

static void count(const uint8_t *segment, const char *program)
{
	struct qemu_plugin_tb tb;
	const struct seg_vcpu *v =
		(const struct seg_vcpu *)(segment + SEG_HEADER_BYTES + SEG_OFF_VCPUS);
	uint64_t lane[SEG_LANES];

	for (unsigned i = 0; i < NINSNS; i++)
		tb.insn[i].n = i;
	got.translate(7, &tb);
	check("it copies the bytes of each instruction of a block",
	      got.copies == NINSNS && got.block);
	for (unsigned i = 0; got.block && i < ROUNDS; i++)
		got.block(0, got.block_data);
	got.at_exit(7, got.at_exit_data);
	for (unsigned k = 0; k < SEG_LANES; k++)
		lane[k] = (uint64_t)v->base[k] + (uint16_t)(v->acc[k] - v->pre[k]);
	printf("# %" PRIu64 " instructions, %" PRIu64 " cycles, %" PRIu64 " loads\n", lane[0],
	       lane[1], lane[2]);
	check("and counts them, as what they are", lane[0] == ROUNDS * NINSNS && lane[2] == ROUNDS);
	check("the program is the first word that is no option's",
	      program && !strcmp(((const struct seg_proc *)(segment + SEG_HEADER_BYTES))->path,
				 program));
}

int main(int argc, char **argv)
{
	const struct info info = {.target_name = "riscv64", .version = {2, 4}};
	int (*install)(id_t4, const struct info *, int, char **);
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	const int *version = plugin ? dlsym(plugin, "qemu_plugin_version") : NULL;
	char *words[1], real[PATH_MAX];
	uint8_t *segment;
	int fd;

	check("a program with version 4 can load the plugin", plugin);
	if (!plugin) {
		printf("# %s\n1..1\n", dlerror());
		return 1;
	}
	check("it asks for version 4", version && *version == 4);
	*(void **)&install = dlsym(plugin, "qemu_plugin_install");
	segment = make_segment(&fd);
	if (!segment || !install || asprintf(&words[0], "seg=/proc/self/fd/%d", fd) < 0)
		return 1;
	check("it can be installed", !install(7, &info, 1, words) && got.translate && got.at_exit);
	if (got.translate && got.at_exit)
		count(segment, realpath(argv[1], real));
	printf("1..%u\n", number);
	fflush(stdout);
	_exit(failed != 0);
}
