/* SPDX-License-Identifier: BSD-2-Clause */
/* quipu_signal_mask() for the plugin, which does not link the library (quipu/signal.h). */
#include <quipu/signal.h>

#define B(c) QUIPU_CLASS_BIT(QUIPU_INSN_##c)

static const uint64_t masks[QUIPU_NAMED_SIGNALS] = {
	[QUIPU_SIGNAL_INSTRUCTIONS] = ((UINT64_C(1) << QUIPU_INSN_CLASSES) - 1) & ~B(TRAP),
	[QUIPU_SIGNAL_LOADS] = B(LOAD) | B(AMO) | B(LR) | B(FLOAD),
	[QUIPU_SIGNAL_STORES] = B(STORE) | B(AMO) | B(SC) | B(FSTORE),
	[QUIPU_SIGNAL_BRANCHES] = B(BRANCH) | B(JUMP) | B(CALL) | B(IJUMP) | B(ICALL) | B(RET) | B(CRET),
	[QUIPU_SIGNAL_CALLS] = B(CALL) | B(ICALL),
	[QUIPU_SIGNAL_RETURNS] = B(RET) | B(CRET),
};

uint64_t quipu_signal_mask(quipu_signal signal)
{
	if (signal & QUIPU_SIGNAL_CLASSES)
		return signal & ~QUIPU_SIGNAL_CLASSES;
	return signal < QUIPU_NAMED_SIGNALS ? masks[signal] : 0;
}
