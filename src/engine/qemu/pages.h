/* SPDX-License-Identifier: BSD-2-Clause */
/* What a guest does that machines with a hypervisor watch for: pages.c. */
#ifndef QUIPU_ENGINE_PAGES_H
#define QUIPU_ENGINE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct qemu_plugin_insn;
struct seg_vcpu;
struct vcpu;

/* 0 or -1. */
int pages_open(void);
/* A block of code from @first to @end is translated. */
void pages_code(uint64_t first, uint64_t end);
/* Instruction @index of a block is translated. */
void pages_translate(struct qemu_plugin_insn *, unsigned index, bool accesses);
/* The system call of @p has returned @ret. */
void pages_call(struct seg_vcpu *, const struct vcpu *p, int64_t ret);
/* All mappings of the process are about to go (exit, exec). */
void pages_gone(struct seg_vcpu *);

#endif
