/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hart and its supervisor: the interrupts it takes, the traps that an access raises, and the
 * calls of quipu/riscv.h that reach a hart. RISC-V privileged architecture, supervisor chapter;
 * Sscofpmf for LCOFI; RISC-V sheet 1.4. The registers themselves are hardware.c.
 */
#include <errno.h>

#include "platform/riscv/hart.h"

#define LCOFI_BIT bits_one(QUIPU_RISCV_LCOFI)

static struct hart *hart_at(struct quipu_riscv *rv, unsigned hart)
{
	return hart < rv->nharts ? &rv->harts[hart] : NULL;
}

/*
 * The S-mode interrupt that would be taken now; those that belong to M are the firmware's business,
 * those that hideleg gives to a guest would wait for a supervisor in VS.
 */
static int pending_cause(const struct hart *h)
{
	static const uint8_t priority[] = {11, 3, 7, 9, 1, 5, QUIPU_RISCV_LCOFI};
	uint64_t ready =
		((h->mip & h->mie & h->mideleg) | (h->mvip & h->svie & h->mvien & ~h->mideleg)) &
		~h->hideleg;

	if (h->mode == QUIPU_RISCV_M ||
	    (h->mode == QUIPU_RISCV_S && !(h->sstatus & QUIPU_RISCV_SSTATUS_SIE)))
		return -1;
	for (size_t i = 0; ready && i < sizeof(priority); i++)
		if (ready & bits_one(priority[i]))
			return priority[i];
	return -1;
}

int quipu_riscv_pending(const struct quipu_riscv *rv, unsigned hart)
{
	return hart < rv->nharts ? pending_cause(&rv->harts[hart]) : -1;
}

/*
 * Where the hart goes on: behind the instruction of the overflow, or at its target. A transfer that
 * is not resolved yet gives the instruction behind it, one of which nothing is known itself.
 */
static uint64_t resumes_at(const struct quipu_interrupt *irq)
{
	return irq->insn.next ? irq->insn.next : irq->pc + irq->insn.size;
}

/* Trap into S, run the supervisor's handler, sret. */
static void take(struct hart *h, unsigned cause, const struct quipu_interrupt *irq)
{
	enum quipu_riscv_mode mode = h->mode;
	uint64_t saved = h->sstatus;

	h->scause = bits_one(63) | cause;
	h->sepc = irq ? resumes_at(irq) : 0;
	h->mode = QUIPU_RISCV_S;
	h->sstatus &= ~(QUIPU_RISCV_SSTATUS_SIE | QUIPU_RISCV_SSTATUS_SPP);
	if (mode == QUIPU_RISCV_S)
		h->sstatus |= QUIPU_RISCV_SSTATUS_SPP;
	h->in_trap = true;
	h->set->handler(h->set->handler_arg, h->number, cause, irq);
	h->in_trap = false;
	h->mode = mode;
	h->sstatus = saved;
}

/*
 * A handler that leaves its interrupt pending would be entered for ever; a few times show the fault
 * as well.
 */
#define TAKE_LIMIT 4u

static unsigned deliver(struct hart *h, const struct quipu_interrupt *irq)
{
	unsigned taken = 0;

	while (h->set->handler && !h->in_trap && taken < TAKE_LIMIT) {
		int cause = pending_cause(h);

		if (cause < 0)
			break;
		take(h, (unsigned)cause, irq);
		taken++;
	}
	return taken;
}

unsigned quipu_riscv_run(struct quipu_riscv *rv, unsigned hart)
{
	struct hart *h = hart_at(rv, hart);
	unsigned taken;

	if (!h)
		return 0;
	hart_enter(h);
	taken = deliver(h, NULL);
	hart_leave(h);
	return taken;
}

void quipu_riscv_interrupt(struct quipu_riscv *rv, const struct quipu_interrupt *irq)
{
	struct hart *h = hart_at(rv, irq->cpu);

	if (!h)
		return;
	hart_enter(h);
	hart_reached(h, irq->slots);
	deliver(h, irq);
	hart_leave(h);
}

int quipu_riscv_feed(struct quipu_riscv *rv, unsigned hart, enum quipu_riscv_mode mode,
		     quipu_signal signal, uint64_t n, uint64_t pc)
{
	struct hart *h = hart_at(rv, hart);
	struct quipu_interrupt irq = {.cpu = hart, .pc = pc};

	if (!h || (unsigned)mode >= QUIPU_RISCV_MODES || mode == QUIPU_RISCV_U)
		return -EINVAL;
	while (n) {
		uint64_t before = h->mip & LCOFI_BIT;

		hart_enter(h);
		n -= hart_feed(h, mode, signal, n);
		if ((h->mip & LCOFI_BIT) && !before)
			deliver(h, &irq);
		hart_leave(h);
	}
	return 0;
}

void quipu_riscv_set_handler(struct quipu_riscv *rv, quipu_riscv_handler *fn, void *arg)
{
	rv->handler = fn;
	rv->handler_arg = arg;
}

int quipu_riscv_set_mode(struct quipu_riscv *rv, unsigned hart, enum quipu_riscv_mode mode)
{
	struct hart *h = hart_at(rv, hart);

	if (!h || (unsigned)mode >= QUIPU_RISCV_MODES ||
	    (mode >= QUIPU_RISCV_VS && !(h->extensions & EXT_H)))
		return -EINVAL;
	h->mode = mode;
	return 0;
}

int quipu_riscv_trap(struct quipu_riscv *rv, unsigned hart, unsigned cause, uint64_t pc)
{
	struct hart *h = hart_at(rv, hart);

	if (!h || cause > 63)
		return -EINVAL;
	sbi_trap(rv, hart, cause);
	h->scause = cause;
	h->sepc = pc;
	return 0;
}

/*
 * A trap that the access raised goes to the firmware first, as every trap from below M does that is
 * not delegated.
 */
static int trapped(struct quipu_riscv *rv, unsigned hart, enum quipu_riscv_mode mode, int cause)
{
	if (cause && mode != QUIPU_RISCV_M)
		quipu_riscv_trap(rv, hart, (unsigned)cause, 0);
	return cause;
}

int quipu_riscv_csr_read(struct quipu_riscv *rv, unsigned hart, enum quipu_riscv_mode mode,
			 unsigned csr, uint64_t *value)
{
	struct hart *h = hart_at(rv, hart);

	if (!h || (unsigned)mode >= QUIPU_RISCV_MODES)
		return -EINVAL;
	return trapped(rv, hart, mode, hart_csr_read(h, mode, csr, value));
}

int quipu_riscv_csr_write(struct quipu_riscv *rv, unsigned hart, enum quipu_riscv_mode mode,
			  unsigned csr, uint64_t value)
{
	struct hart *h = hart_at(rv, hart);

	if (!h || (unsigned)mode >= QUIPU_RISCV_MODES)
		return -EINVAL;
	return trapped(rv, hart, mode, hart_csr_write(h, mode, csr, value));
}
