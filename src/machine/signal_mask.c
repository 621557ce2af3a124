/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which instruction classes a signal counts (quipu/signal.h). Apart from signals.c because an
 * engine process, which does not link the library, can compile it in.
 */
#include <quipu/signal.h>

#define BIT(c)	    QUIPU_CLASS_BIT(QUIPU_INSN_##c)
#define ALL_CLASSES (QUIPU_CLASS_BIT(QUIPU_INSN_CLASSES) - 1)

static const uint64_t masks[QUIPU_NAMED_SIGNALS] = {
	[QUIPU_SIGNAL_INSTRUCTIONS] = ALL_CLASSES & ~BIT(TRAP),
	[QUIPU_SIGNAL_LOADS] = BIT(LOAD) | BIT(AMO) | BIT(LR) | BIT(FLOAD),
	[QUIPU_SIGNAL_STORES] = BIT(STORE) | BIT(AMO) | BIT(SC) | BIT(FSTORE),
	[QUIPU_SIGNAL_BRANCHES] = BIT(BRANCH) | BIT(JUMP) | BIT(CALL) | BIT(IJUMP) | BIT(ICALL) |
				  BIT(RET) | BIT(CRET),
	[QUIPU_SIGNAL_CALLS] = BIT(CALL) | BIT(ICALL),
	[QUIPU_SIGNAL_RETURNS] = BIT(RET) | BIT(CRET),
};

uint64_t quipu_signal_mask(quipu_signal signal)
{
	if (signal & QUIPU_SIGNAL_CLASSES)
		return signal & ~QUIPU_SIGNAL_CLASSES;
	return signal < QUIPU_NAMED_SIGNALS ? masks[signal] : 0;
}
