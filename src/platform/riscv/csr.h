/* SPDX-License-Identifier: BSD-2-Clause */
/* A register access, between the table in hardware.c and the registers that are in supervisor.c. */
#ifndef QUIPU_PLATFORM_RISCV_CSR_H
#define QUIPU_PLATFORM_RISCV_CSR_H

#include "platform/riscv/hart.h"

#define CAUSE_ILLEGAL QUIPU_RISCV_ILLEGAL_INSTRUCTION
#define CAUSE_VIRTUAL QUIPU_RISCV_VIRTUAL_INSTRUCTION
#define LCOFI_BIT     bits_one(QUIPU_RISCV_LCOFI)

/*
 * An access: register number @n within its row, by @mode; read when @write is false. 0 or a cause.
 */
struct access {
	enum quipu_riscv_mode mode;
	unsigned n;
	bool write;
	uint64_t value;
};
typedef int csr_fn(struct hart *, struct access *);

static inline bool has(const struct hart *h, unsigned extension)
{
	return (h->extensions & extension) == extension;
}

static inline bool is_virtual(enum quipu_riscv_mode mode)
{
	return mode == QUIPU_RISCV_VS || mode == QUIPU_RISCV_VU;
}

/* A field seen through a mask: bits outside keep their value and read 0. */
static inline int csr_masked(uint64_t *reg, uint64_t visible, uint64_t writable, struct access *a)
{
	if (a->write)
		*reg = (*reg & ~writable) | (a->value & writable);
	else
		a->value = *reg & visible;
	return 0;
}

/* supervisor.c */
csr_fn csr_hideleg;
csr_fn csr_hstateen;
csr_fn csr_hvien;
csr_fn csr_hvip;
csr_fn csr_mideleg;
csr_fn csr_mie;
csr_fn csr_mip;
csr_fn csr_mstateen;
csr_fn csr_mvien;
csr_fn csr_mvip;
csr_fn csr_scause;
csr_fn csr_sepc;
csr_fn csr_sie;
csr_fn csr_sip;
csr_fn csr_siselect;
csr_fn csr_sstatus;
csr_fn csr_vscause;
csr_fn csr_vsepc;
csr_fn csr_vsie;
csr_fn csr_vsip;
csr_fn csr_vsireg;
csr_fn csr_vsiselect;
csr_fn csr_vsstatus;
/* May @mode use the indirect registers at all? 0 or a cause. (Smstateen) */
int indirect_gate(const struct hart *, enum quipu_riscv_mode mode);

#endif
