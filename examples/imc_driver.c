// SPDX-License-Identifier: BSD-2-Clause
/*
 * A driver of POWER9 in-memory collection in one page: what a kernel does with OPAL, SCOM, LDBAR
 * and memory, with no board. Somebody else's emulator would feed the signals; here main() does.
 *
 * Usage: imc_driver MACHINE.dtb (machines/power9.dtb)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu/imc.h>

#define CPU   0u
#define CHIP  0u
#define READS 0xd0u /* PM_MCS01_128B_RD_DISP_PORT01 in the nest region, scale 256 */
#define INST  0x28u /* CPM_NON_IDLE_INST in core and thread memory, scale 512 */

static uint64_t ns; /* the machine's time */

static uint64_t now(void *arg)
{
	(void)arg;
	return ns;
}

static struct quipu_machine *load(const char *path)
{
	static uint8_t blob[1 << 20];
	struct quipu_notes notes = {0};
	struct quipu_machine *m = NULL;
	FILE *f = fopen(path, "rb");

	if (f) {
		m = quipu_machine_parse(blob, fread(blob, 1, sizeof(blob), f), "power9", &notes);
		fclose(f);
	}
	quipu_notes_free(&notes);
	return m;
}

static int64_t opal(struct quipu_imc *imc, uint64_t token, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const uint64_t args[8] = {a0, a1, a2};

	return quipu_opal_call(imc, CPU, token, args);
}

static void pass(struct quipu_imc *imc, uint64_t ms)
{
	ns += ms * 1000000;
	quipu_imc_advance(imc);
}

static int run(struct quipu_imc *imc, struct quipu_manual_signals *signals)
{
	uint64_t pir = quipu_imc_pir(imc, CPU), region = quipu_imc_region(imc, CHIP);
	uint64_t core = quipu_imc_alloc(imc, 0x2000), thread = quipu_imc_alloc(imc, 0x2000), reads,
		 inst, own;

	/* Nest: the microcode is told to run, and notices within half a millisecond. */
	if (opal(imc, QUIPU_OPAL_IMC_COUNTERS_START, QUIPU_OPAL_IMC_NEST, pir, 0))
		return 1;
	pass(imc, 1);
	/* Core: memory for the counters, then the engine on. The same engine serves the thread that
	 * LDBAR points. */
	if (opal(imc, QUIPU_OPAL_IMC_COUNTERS_INIT, QUIPU_OPAL_IMC_CORE, core, pir))
		return 1;
	quipu_imc_ldbar_write(imc, CPU, QUIPU_LDBAR_ENABLE | thread);
	if (opal(imc, QUIPU_OPAL_IMC_COUNTERS_START, QUIPU_OPAL_IMC_CORE, pir, 0))
		return 1;

	/* A program: instructions on two threads of the core, and lines of memory. */
	quipu_manual_signals_feed(signals, CPU, QUIPU_SIGNAL_INSTRUCTIONS, 51200, 0x10000000);
	quipu_manual_signals_feed(signals, CPU + 1, QUIPU_SIGNAL_INSTRUCTIONS, 51200, 0x10000000);
	quipu_imc_traffic(imc, CHIP, 0, QUIPU_IMC_READ_LINE, 25600);
	pass(imc, 2);

	reads = quipu_imc_read64(imc, region + READS);
	inst = quipu_imc_read64(imc, core + INST);
	own = quipu_imc_read64(imc, thread + INST);
	printf("lines read %" PRIu64 ", instructions of the core %" PRIu64 ", of CPU %u %" PRIu64
	       "\n",
	       256 * reads, 512 * inst, CPU, 512 * own);
	opal(imc, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_CORE, pir, 0);
	opal(imc, QUIPU_OPAL_IMC_COUNTERS_STOP, QUIPU_OPAL_IMC_NEST, pir, 0);
	return reads == 100 && inst == 200 && own == 100 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct quipu_machine *machine = argc > 1 ? load(argv[1]) : NULL;
	struct quipu_manual_signals *signals =
		machine ? quipu_manual_signals_new(machine->ncpus) : NULL;
	struct quipu_imc *imc =
		signals ? quipu_imc_new(machine, quipu_manual_signals_base(signals), now, NULL)
			: NULL;
	int rc = 1;

	if (imc)
		rc = run(imc, signals);
	else
		fprintf(stderr, "usage: imc_driver MACHINE.dtb\n");
	quipu_imc_free(imc);
	quipu_manual_signals_free(signals);
	quipu_machine_free(machine);
	return rc;
}
