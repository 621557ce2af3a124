/* SPDX-License-Identifier: BSD-2-Clause */
/* What the IMC cases stand on: a machine from a tree that a case may change, signals by hand, a
 * clock by hand. */
#ifndef TEST_IMC_BED_H
#define TEST_IMC_BED_H

#include <quipu/imc.h>
#include <quipu/machine.h>
#include <quipu/signal.h>

struct bed {
	void *fdt; /* with room for changes */
	struct quipu_machine *machine;
	struct quipu_notes notes;
	struct quipu_manual_signals *manual;
	struct quipu_imc *imc;
	uint64_t ns; /* the clock, but while CPUs run */
	bool running;
	unsigned lead; /* CPU whose cycles are then added */
	uint64_t from;
};

/* bed_tree - read machines/NAME.dtb (or the file NAME itself when it has a slash). */
void bed_tree(struct bed *, const char *name);
/* bed_start - parse the tree and power the hardware on. */
void bed_start(struct bed *);
void bed_stop(struct bed *);
/* bed_run - CPUs in @mask run for @ns at 3 GHz. bed_pass - time passes, nobody runs. */
void bed_run(struct bed *, uint32_t mask, uint64_t ns);
void bed_pass(struct bed *, uint64_t ns);
void bed_steps(struct bed *, unsigned n);
int64_t bed_opal(struct bed *, uint64_t token, uint64_t a0, uint64_t a1, uint64_t a2);
int bed_node(const struct bed *, const char *path);

#endif
