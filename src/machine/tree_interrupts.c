/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/interrupts of a machine: the row of performance monitoring interrupts, as Linux prints it
 * (kernel/irq/proc.c, arch/powerpc/kernel/irq.c, arch/x86/kernel/irq.c: label in three columns,
 * each count in ten). No other rows: nothing else here interrupts, and where the kernel would have
 * none for the PMU only the CPUs' names stand. It moves, so whoever shows it asks again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/platform.h>
#include <quipu/system.h>
#include <quipu/tree.h>

char *quipu_tree_interrupts(const struct quipu_system *sys)
{
	const struct quipu_interrupt_row *row = quipu_system_pmi_row(sys);
	unsigned ncpus = quipu_system_machine(sys)->ncpus;
	uint64_t count;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fprintf(f, "%*s", 3 + 8, "");
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		fprintf(f, "CPU%-8u", cpu);
	fputc('\n', f);
	if (row)
		fprintf(f, "%3s: ", row->label);
	for (unsigned cpu = 0; row && cpu < ncpus; cpu++) {
		quipu_system_pmis(sys, cpu, &count);
		fprintf(f, "%10" PRIu64 " ", count);
	}
	if (row)
		fprintf(f, "%s\n", row->text);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

int quipu_tree_add(struct quipu_tree *t, const char *path, char *text)
{
	struct quipu_tree_file file = {.path = strdup(path), .text = text}, *grown = NULL;
	size_t at = t->n;

	if (file.path && text)
		grown = reallocarray(t->files, t->n + 1, sizeof(*t->files));
	if (!grown) {
		free(file.path);
		free(text);
		return -ENOMEM;
	}
	t->files = grown;
	while (at && strcmp(grown[at - 1].path, path) > 0)
		at--;
	memmove(grown + at + 1, grown + at, (t->n - at) * sizeof(*grown));
	grown[at] = file;
	t->n++;
	return 0;
}
