/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registers of a hart's interrupts and of its supervisors, S and VS: who is told of a counter
 * overflow, and what a guest has of its own. Privileged architecture, supervisor and hypervisor
 * chapters; Smaia, Ssaia (mvien, mvip, hvien, hvip), Shlcofideleg (hideleg) and Smstateen for the
 * one bit of each that the counters have; RISC-V sheet 1.1, 1.6. Interrupts are taken in
 * interrupt.c, and only by S: no supervisor runs in VS.
 */
#include "platform/riscv/csr.h"

#define CSRIND bits_one(60) /* of mstateen0, hstateen0: siselect and sireg */

/* The interrupt bits that the hart has: software 1, 3; timer 5, 7; external 9, 11; LCOFI 13. */
static uint64_t interrupt_bits(const struct hart *h, uint64_t bits)
{
	return has(h, EXT_SSCOFPMF) ? bits | LCOFI_BIT : bits;
}

int csr_mip(struct hart *h, struct access *a)
{
	return csr_masked(&h->mip, UINT64_MAX, interrupt_bits(h, 0x222), a);
}

int csr_mie(struct hart *h, struct access *a)
{
	uint64_t bits = interrupt_bits(h, 0xAAA);

	return csr_masked(&h->mie, bits, bits, a);
}

int csr_mideleg(struct hart *h, struct access *a)
{
	uint64_t bits = interrupt_bits(h, 0x222);

	return csr_masked(&h->mideleg, bits, bits, a);
}

/*
 * sip and sie: what mideleg hands down is M's own bit. What mvien does instead is a bit of mvip,
 * with an enable of its own.
 */
static int csr_supervisor(const struct hart *h, uint64_t *own, uint64_t *injected,
			  uint64_t writable, struct access *a)
{
	uint64_t others = h->mvien & ~h->mideleg, mine = h->mideleg;

	if (!a->write) {
		a->value = (*own & mine) | (*injected & others);
		return 0;
	}
	*injected = (*injected & ~others) | (a->value & others);
	return csr_masked(own, mine, mine & writable, a);
}

static int supervisor_sip(struct hart *h, struct access *a)
{
	return csr_supervisor(h, &h->mip, &h->mvip, LCOFI_BIT | bits_one(1), a);
}

static int supervisor_sie(struct hart *h, struct access *a)
{
	return csr_supervisor(h, &h->mie, &h->svie, UINT64_MAX, a);
}

/* vsip and vsie: bits of sip and sie by hideleg, or injected ones by hvien; else 0. */
static int csr_guest(struct hart *h, csr_fn *supervisor, uint64_t *injected, struct access *a)
{
	uint64_t others = h->hvien & ~h->hideleg, shared = h->hideleg;
	struct access s = {.mode = QUIPU_RISCV_S};

	supervisor(h, &s);
	if (!a->write) {
		a->value = (s.value & shared) | (*injected & others);
		return 0;
	}
	*injected = (*injected & ~others) | (a->value & others);
	s.write = true;
	s.value = (s.value & ~shared) | (a->value & shared);
	return supervisor(h, &s);
}

int csr_vsip(struct hart *h, struct access *a)
{
	return csr_guest(h, supervisor_sip, &h->hvip, a);
}

int csr_vsie(struct hart *h, struct access *a)
{
	return csr_guest(h, supervisor_sie, &h->gvie, a);
}

int csr_sip(struct hart *h, struct access *a)
{
	return is_virtual(a->mode) ? csr_vsip(h, a) : supervisor_sip(h, a);
}

int csr_sie(struct hart *h, struct access *a)
{
	return is_virtual(a->mode) ? csr_vsie(h, a) : supervisor_sie(h, a);
}

/* Bit 13 of mvip, mvien, hvip, hvien: with Smcdeleg and Sscofpmf on a hart that has the AIA. */
static int csr_injected(const struct hart *h, uint64_t *reg, unsigned aia, struct access *a)
{
	uint64_t bits = has(h, EXT_SMCDELEG | EXT_SSCOFPMF | aia) ? LCOFI_BIT : 0;

	return csr_masked(reg, bits, bits, a);
}

int csr_mvip(struct hart *h, struct access *a)
{
	return csr_injected(h, &h->mvip, EXT_SMAIA, a);
}

int csr_mvien(struct hart *h, struct access *a)
{
	return csr_injected(h, &h->mvien, EXT_SMAIA, a);
}

int csr_hvip(struct hart *h, struct access *a)
{
	return csr_injected(h, &h->hvip, EXT_SSAIA, a);
}

int csr_hvien(struct hart *h, struct access *a)
{
	return csr_injected(h, &h->hvien, EXT_SSAIA, a);
}

int csr_hideleg(struct hart *h, struct access *a)
{
	uint64_t bits = has(h, EXT_SHLCOFIDELEG | EXT_SSCOFPMF) ? LCOFI_BIT : 0;

	return csr_masked(&h->hideleg, bits, bits, a);
}

/* Below: registers that a guest has its own of, which VS reaches by the number of S's. */
int csr_vsstatus(struct hart *h, struct access *a)
{
	uint64_t bits = QUIPU_RISCV_SSTATUS_SIE | QUIPU_RISCV_SSTATUS_SPP;

	return csr_masked(&h->vsstatus, bits, bits, a);
}

int csr_sstatus(struct hart *h, struct access *a)
{
	uint64_t bits = QUIPU_RISCV_SSTATUS_SIE | QUIPU_RISCV_SSTATUS_SPP;

	return is_virtual(a->mode) ? csr_vsstatus(h, a) : csr_masked(&h->sstatus, bits, bits, a);
}

int csr_vsepc(struct hart *h, struct access *a)
{
	return csr_masked(&h->vsepc, UINT64_MAX, ~UINT64_C(1), a);
}

int csr_sepc(struct hart *h, struct access *a)
{
	return is_virtual(a->mode) ? csr_vsepc(h, a)
				   : csr_masked(&h->sepc, UINT64_MAX, ~UINT64_C(1), a);
}

int csr_vscause(struct hart *h, struct access *a)
{
	return csr_masked(&h->vscause, UINT64_MAX, UINT64_MAX, a);
}

int csr_scause(struct hart *h, struct access *a)
{
	return is_virtual(a->mode) ? csr_vscause(h, a)
				   : csr_masked(&h->scause, UINT64_MAX, UINT64_MAX, a);
}

int csr_mstateen(struct hart *h, struct access *a)
{
	return csr_masked(&h->mstateen0, CSRIND, CSRIND, a);
}

/* What mstateen0 keeps back is read-only zero here. */
int csr_hstateen(struct hart *h, struct access *a)
{
	return csr_masked(&h->hstateen0, h->mstateen0, h->mstateen0, a);
}

int indirect_gate(const struct hart *h, enum quipu_riscv_mode mode)
{
	if (mode == QUIPU_RISCV_M || !has(h, EXT_SMSTATEEN))
		return 0;
	if (!(h->mstateen0 & CSRIND))
		return CAUSE_ILLEGAL;
	return is_virtual(mode) && !(h->hstateen0 & CSRIND) ? CAUSE_VIRTUAL : 0;
}

int csr_vsiselect(struct hart *h, struct access *a)
{
	int cause = indirect_gate(h, a->mode);

	return cause ? cause : csr_masked(&h->vsiselect, UINT64_MAX, bits_mask(12), a);
}

int csr_siselect(struct hart *h, struct access *a)
{
	int cause = indirect_gate(h, a->mode);

	if (cause)
		return cause;
	return is_virtual(a->mode) ? csr_vsiselect(h, a)
				   : csr_masked(&h->siselect, UINT64_MAX, bits_mask(12), a);
}

/* A guest has no counters of its own: whatever vsiselect says, nothing stands behind it. */
int csr_vsireg(struct hart *h, struct access *a)
{
	(void)h;
	(void)a;
	return CAUSE_ILLEGAL;
}
