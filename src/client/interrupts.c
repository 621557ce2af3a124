/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/interrupts for clients: the file of the generated tree is written anew whenever a
 * performance monitoring interrupt has been taken since. Its length never changes (each count has
 * ten columns), so a reader sees old or new, never half.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quipu/tree.h>

#include "client/gate_impl.h"

void interrupts_show(struct gate *g)
{
	const struct quipu_machine *m = quipu_system_machine(g->system);
	uint64_t sum = 0, count;
	char *text;

	if (g->config.interrupts <= 0)
		return;
	for (unsigned cpu = 0; cpu < m->ncpus; cpu++)
		sum += quipu_system_pmis(g->system, cpu, &count) ? count : 0;
	if (sum == g->interrupts_shown)
		return;
	text = quipu_tree_interrupts(g->system);
	if (text && pwrite(g->config.interrupts, text, strlen(text), 0) >= 0)
		g->interrupts_shown = sum;
	free(text);
}
