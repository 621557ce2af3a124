/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QEMU plugin that writes down what a program did, one 16-byte record for each instruction begun
 * and each access made: address (8 bytes), size (4), kind (4: 0 instruction, 1 load, 2 store). The
 * independent word that the models are tested against: nothing of the engine is in it but the
 * declarations of QEMU's interface. Argument: log=PATH.
 */
#include <stdio.h>
#include <string.h>

#include "engine/qemu/plugin_abi.h"

PLUGIN_EXPORT int qemu_plugin_version = 1;

static FILE *file;

struct entry {
	uint64_t address;
	uint32_t size, kind;
};

static void put(uint64_t address, uint32_t size, uint32_t kind)
{
	struct entry e = {address, size, kind};

	fwrite(&e, sizeof(e), 1, file);
}

static void began(unsigned vcpu, void *insn)
{
	uint64_t packed = (uint64_t)(uintptr_t)insn;

	(void)vcpu;
	put(packed >> 8, packed & 0xff, 0);
}

static void accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t va, void *arg)
{
	(void)vcpu;
	(void)arg;
	put(va, 1u << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info) ? 2 : 1);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uintptr_t packed = qemu_plugin_insn_vaddr(insn) << 8 | qemu_plugin_insn_size(insn);

		qemu_plugin_register_vcpu_insn_exec_cb(insn, began, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)packed);
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
	}
}

static void ended(qemu_plugin_id_t id, void *arg)
{
	(void)id;
	(void)arg;
	fclose(file);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "log=", 4))
		return -1;
	file = fopen(argv[0] + 4, "wb");
	if (!file)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
