/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QEMU plugin that holds the decoders against QEMU itself: does an instruction that is said to
 *load ever load, does one that is not said to store ever store? It looks at every access of every
 *instruction that runs and prints, at the end, what the decoder and QEMU disagree about. Tests
 *only; slow.
 *
 *	qemu-x86_64 -plugin accesses.so,out=FILE PROGRAM
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qemu/decode.h"
#include "engine/qemu/plugin_abi.h"

PLUGIN_EXPORT int qemu_plugin_version = 1;

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
				      void (*)(unsigned, uint32_t, uint64_t, void *), int flags,
				      int rw, void *);
bool qemu_plugin_mem_is_store(uint32_t);

struct seen {
	struct seen *next;
	uint64_t pc, runs, loads, stores;
	uint8_t bytes[16], size;
	struct decoded d;
};

static struct seen *all;
static const struct isa *isa;
static const char *out_path = "/dev/stderr";

static void on_run(unsigned vcpu, void *arg)
{
	(void)vcpu;
	((struct seen *)arg)->runs++;
}

static void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *arg)
{
	struct seen *s = arg;

	(void)vcpu;
	(void)address;
	/* An atomic access is one of both kinds: bits 16 and 17 say so, the accessor only that it
	 * stores. */
	s->loads += info >> 16 & 1;
	s->stores += qemu_plugin_mem_is_store(info);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct seen *s = calloc(1, sizeof(*s));

		if (!s)
			abort();
		s->pc = qemu_plugin_insn_vaddr(insn);
		s->size = (uint8_t)qemu_plugin_insn_size(insn);
		plugin_insn_bytes(insn, s->bytes, s->size < 16 ? s->size : 16);
		isa->decode(s->bytes, s->size, s->pc, &s->d);
		s->next = all;
		all = s;
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_run, QEMU_PLUGIN_CB_NO_REGS, s);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, 3, s);
	}
}

static bool says(const struct decoded *d, quipu_signal signal, unsigned access)
{
	return quipu_signal_mask(signal) & QUIPU_CLASS_BIT(d->class) || d->access & access ||
	       d->again & access;
}

static void at_exit(qemu_plugin_id_t id, void *arg)
{
	FILE *out = fopen(out_path, "w");
	uint64_t runs = 0, bad = 0, kinds = 0;

	(void)id;
	(void)arg;
	for (struct seen *s = all; out && s; s = s->next) {
		bool load = says(&s->d, QUIPU_SIGNAL_LOADS, INSN_LOAD),
		     store = says(&s->d, QUIPU_SIGNAL_STORES, INSN_STORE);

		if (!s->runs)
			continue;
		kinds++;
		runs += s->runs;
		if (s->d.flow == FLOW_REP && !s->loads && !s->stores) /* its count was 0 */
			continue;
		if (s->d.size == s->size && load == (s->loads != 0) && store == (s->stores != 0))
			continue;
		bad++;
		fprintf(out,
			"differs %" PRIx64 " size %u (decoded %u) load %d store %d seen %" PRIu64
			" %" PRIu64 " in %" PRIu64 " runs:",
			s->pc, s->size, s->d.size, load, store, s->loads, s->stores, s->runs);
		for (unsigned i = 0; i < s->size && i < 16; i++)
			fprintf(out, " %02x", s->bytes[i]);
		fputc('\n', out);
	}
	if (!out)
		return;
	fprintf(out, "instructions %" PRIu64 " runs %" PRIu64 " differ %" PRIu64 "\n", kinds, runs,
		bad);
	fclose(out);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	isa = isa_find(info->target_name);
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out_path = argv[i] + 4;
	if (!isa)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
