/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading and decoding only (target T12): a plugin that does with each block what ours does while
 * it is translated, its decoders and its store of blocks, and asks QEMU for no callback of it.
 */
#include "engine/qemu/block.h"
#include "engine/qemu/decode.h"
#include "engine/qemu/plugin_abi.h"

#define LINE 64 /* bytes in which accesses of a group lie, as of the full model */

PLUGIN_EXPORT int qemu_plugin_version = 1;

static const struct isa *isa;
static struct seg_header header;
static struct rates rates;
static struct block_store store = {.labels = false};

static uint64_t decode(struct insn *in, const struct qemu_plugin_insn *insn, uint64_t hash)
{
	uint64_t pc = qemu_plugin_insn_vaddr(insn);
	uint8_t bytes[16];
	size_t size = qemu_plugin_insn_size(insn);
	struct decoded d;

	if (size > sizeof(bytes))
		size = sizeof(bytes);
	plugin_insn_bytes(insn, bytes, size);
	isa->decode(bytes, (unsigned)size, pc, &d);
	*in = insn_decoded(&d, pc, (unsigned)size);
	return block_hash(hash, bytes, (unsigned)size);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static struct insn insn[BLOCK_MAX_INSNS]; /* QEMU translates one block at a time */
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t hash = BLOCK_HASH_START;

	(void)id;
	for (size_t i = 0; i < n && i < BLOCK_MAX_INSNS; i++)
		hash = decode(&insn[i], qemu_plugin_tb_get_insn(tb, i), hash);
	if (n && n <= BLOCK_MAX_INSNS)
		block_intern(&store, &rates, insn, (unsigned)n, hash);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	(void)argc;
	(void)argv;
	isa = isa_find(info->target_name);
	if (!isa || block_store_init(&store))
		return -1;
	rates_init(&rates, &header);
	store.group = LINE;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
