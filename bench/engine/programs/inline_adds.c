/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of target T15: counting in the way that QEMU 10 itself offers to plugins (interface
 * version 4): for each block eight additions that it translates into the code, to words of the
 * thread's own, and a callback where one of these has reached a bound. No signal is told apart; the
 * eight words all count instructions, which costs the same. Engine sheet 12.
 */
#include <stddef.h>
#include <stdint.h>

#define SIGNALS 8

typedef struct {
	void *score;
	size_t offset;
} u64_t;

__attribute__((visibility("default"))) int qemu_plugin_version = 4;
__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info,
							       int argc, char **argv);

void *qemu_plugin_scoreboard_new(size_t size);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*)(uint64_t, void *tb));
size_t qemu_plugin_tb_n_insns(const void *tb);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(void *tb, int op, u64_t, uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(void *tb, void (*)(unsigned, void *), int flags,
					       int condition, u64_t, uint64_t imm, void *data);

enum { ADD = 0, NO_REGS = 0, GREATER_OR_EQUAL = 7 };

static void *board;

static void reached(unsigned vcpu, void *data)
{
	(void)vcpu;
	(void)data;
}

static void translated(uint64_t id, void *tb)
{
	(void)id;
	for (unsigned k = 0; k < SIGNALS; k++)
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
			tb, ADD, (u64_t){board, k * sizeof(uint64_t)}, qemu_plugin_tb_n_insns(tb));
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, reached, NO_REGS, GREATER_OR_EQUAL,
						  (u64_t){board, 0}, INT64_MAX, NULL);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	board = qemu_plugin_scoreboard_new(SIGNALS * sizeof(uint64_t));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
