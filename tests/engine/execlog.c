/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QEMU plugin that logs as QEMU's own example execlog does (contrib/plugins/execlog.c of 7.2; no
 * Debian package has it): a line for each instruction, "cpu, 0xpc, 0xopcode, "disassembly"", then
 * ", load, 0xaddress" or ", store, 0xaddress" for each access. Written to tell whether
 * tools/qemu-execlog-trace.py reads that. Argument: log=PATH.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qemu/plugin_abi.h"

PLUGIN_EXPORT int qemu_plugin_version = 1;

static FILE *file;
static int open_line;

static void began(unsigned vcpu, void *text)
{
	fprintf(file, "%s%u, %s", open_line ? "\n" : "", vcpu, (const char *)text);
	open_line = 1;
}

static void accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t va, void *arg)
{
	(void)vcpu;
	(void)arg;
	fprintf(file, ", %s, 0x%08" PRIx64, qemu_plugin_mem_is_store(info) ? "store" : "load", va);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t opcode = 0;
		size_t size = qemu_plugin_insn_size(insn);
		char *text;

		memcpy(&opcode, qemu_plugin_insn_data(insn), size < 4 ? size : 4);
		if (asprintf(&text, "0x%" PRIx64 ", 0x%" PRIx32 ", \"insn\"",
			     qemu_plugin_insn_vaddr(insn), opcode) < 0)
			abort();
		qemu_plugin_register_vcpu_insn_exec_cb(insn, began, QEMU_PLUGIN_CB_NO_REGS, text);
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
	}
}

static void ended(qemu_plugin_id_t id, void *arg)
{
	(void)id;
	(void)arg;
	fputc('\n', file);
	fclose(file);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "log=", 4))
		return -1;
	file = fopen(argv[0] + 4, "w");
	if (!file)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
