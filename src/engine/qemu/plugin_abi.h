/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QEMU's TCG plugin interface as this project needs it, declared by ourselves because no package
 * ships the header (doc/architecture.md "The engine"; the facts are those of QEMU 7.2, API version
 * 1, and 10.0, version 4).
 *
 * Both versions are served by one binary: what only one of them exports is a weak reference, and a
 * constructor picks the version that the program has (plugin.c). Nothing here is for system
 * emulation.
 */
#ifndef QUIPU_ENGINE_PLUGIN_ABI_H
#define QUIPU_ENGINE_PLUGIN_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))
#define PLUGIN_WEAK   __attribute__((weak))

typedef uint64_t qemu_plugin_id_t;

typedef struct qemu_info_t {
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
} qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_CB_R_REGS = 1 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W = 2, QEMU_PLUGIN_MEM_RW = 3 };

typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;

typedef void (*qemu_plugin_vcpu_cb)(qemu_plugin_id_t, unsigned vcpu);
typedef void (*qemu_plugin_vcpu_udata_cb)(unsigned vcpu, void *userdata);
typedef void (*qemu_plugin_vcpu_mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t vaddr,
					void *userdata);
typedef void (*qemu_plugin_tb_trans_cb)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*qemu_plugin_syscall_cb)(qemu_plugin_id_t, unsigned vcpu, int64_t nr, uint64_t a1,
				       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
				       uint64_t a6, uint64_t a7, uint64_t a8);
typedef void (*qemu_plugin_syscall_ret_cb)(qemu_plugin_id_t, unsigned vcpu, int64_t nr,
					   int64_t ret);

/* Ours, looked up by QEMU. */
PLUGIN_EXPORT extern int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t, const qemu_info_t *, int argc, char **argv);

/* QEMU's. */
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_tb_trans_cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, qemu_plugin_vcpu_udata_cb,
					  int flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_udata_cb,
					    int flags, void *userdata);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_syscall_cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_syscall_ret_cb);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_mem_cb, int flags,
				      int rw, void *userdata);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
void qemu_plugin_register_flush_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *),
				    void *userdata);

/* All callbacks of the plugin go, with all translated code, when every vCPU stands between two
 * blocks; then @done is called, which registers others. */
PLUGIN_WEAK void qemu_plugin_reset(qemu_plugin_id_t, void (*done)(qemu_plugin_id_t));

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);

/*
 * Version 1 returns a pointer to the bytes, version 3 and later copy them: one symbol, two types.
 * Called through plugin_insn_bytes() only.
 */
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t plugin_insn_data_v3(const struct qemu_plugin_insn *, void *,
			   size_t) __asm__("qemu_plugin_insn_data");

/*
 * From a vCPU thread only: they read the current vCPU. User emulation of 10.0 declares them and
 * does not have them (its linux-user/meson.build asks for CONFIG_TCG_PLUGINS, which is never set).
 */
PLUGIN_WEAK const char *qemu_plugin_path_to_binary(void);
PLUGIN_WEAK uint64_t qemu_plugin_start_code(void);

/*
 * Registers, since version 3: inside of callbacks with QEMU_PLUGIN_CB_R_REGS. Their arrays are
 * glib's, which every QEMU has; of a GArray or GByteArray only what is public is looked at.
 */
struct qemu_plugin_register;
typedef struct {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
} qemu_plugin_reg_descriptor;

struct plugin_array {
	char *data;
	unsigned len;
};

PLUGIN_WEAK struct plugin_array *qemu_plugin_get_registers(void);
PLUGIN_WEAK int qemu_plugin_read_register(struct qemu_plugin_register *, struct plugin_array *);
PLUGIN_WEAK struct plugin_array *g_byte_array_new(void);
PLUGIN_WEAK struct plugin_array *g_byte_array_set_size(struct plugin_array *, unsigned len);
PLUGIN_WEAK char *g_array_free(struct plugin_array *, int segment);

static inline bool plugin_reads_registers(void)
{
	return qemu_plugin_version >= 3 && qemu_plugin_get_registers && qemu_plugin_read_register &&
	       g_byte_array_new && g_byte_array_set_size && g_array_free;
}

/* Version 4 only: tells the two apart. */
PLUGIN_WEAK void *qemu_plugin_scoreboard_new(size_t element_size);

static inline void plugin_insn_bytes(const struct qemu_plugin_insn *insn, void *buf, size_t len)
{
	if (qemu_plugin_version >= 3)
		plugin_insn_data_v3(insn, buf, len);
	else
		__builtin_memcpy(buf, qemu_plugin_insn_data(insn), len);
}

#endif
