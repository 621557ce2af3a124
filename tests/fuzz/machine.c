// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a device tree: parsed, brought to life by whichever room claims it, and shown as a
 * sysfs. Seeds: the shipped machines' .dtb files. Run: fuzz_machine -max_len=16384 CORPUS.
 */
#include <stdint.h>
#include <stdlib.h>

#include <quipu/system.h>
#include <quipu/tree.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void ignore_line(void *arg, unsigned depth, const char *line)
{
	(void)arg;
	(void)depth;
	(void)line;
}

static void bring_to_life(const struct quipu_machine *machine, struct quipu_notes *notes)
{
	struct quipu_system_config config = {.paranoid = -1};
	struct quipu_manual_signals *signals = quipu_manual_signals_new(machine->ncpus);
	struct quipu_system *system =
		quipu_system_new(machine, quipu_manual_signals_base(signals), &config, notes);

	if (system) {
		struct quipu_tree *tree = quipu_tree_new(machine, quipu_system_core(system));

		quipu_system_describe(system, ignore_line, NULL);
		quipu_tree_free(tree);
	}
	quipu_system_free(system);
	quipu_manual_signals_free(signals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *machine = quipu_machine_parse(data, len, "fuzz", &notes);

	if (machine)
		bring_to_life(machine, &notes);
	else if (!notes.n)
		abort(); /* a refusal gives its reason */
	quipu_machine_free(machine);
	quipu_notes_free(&notes);
	return 0;
}
