/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare RISC-V PMU driver: no Linux, no perf, only CSRs and SBI calls (quipu/riscv.h). It counts
 * instructions on one counter and samples cycles on another, on the machine of a device tree:
 *
 *	riscv_driver machines/riscv.dtb
 *
 * The "program" is a loop that feeds signals by hand; someone's emulator would feed its own.
 */
#include <stdio.h>

#include <quipu/riscv.h>

#define PERIOD UINT64_C(10000)
#define LCOFI  (UINT64_C(1) << QUIPU_RISCV_LCOFI)

static struct quipu_riscv *harts; /* the driver's half of the world: hart 0 of them, in S-mode */
static unsigned cycles, instructions, samples;
static uint64_t last_pc;

static struct quipu_sbiret pmu(unsigned function, uint64_t a0, uint64_t a1, uint64_t a2,
			       uint64_t a3)
{
	const uint64_t args[6] = {a0, a1, a2, a3};

	return quipu_riscv_ecall(harts, 0, QUIPU_SBI_PMU, function, args);
}

static uint64_t csr_read(unsigned csr)
{
	uint64_t value = 0;

	quipu_riscv_csr_read(harts, 0, QUIPU_RISCV_S, csr, &value);
	return value;
}

static void start(unsigned counter, uint64_t value)
{
	pmu(QUIPU_SBI_PMU_COUNTER_START, counter, 1, QUIPU_SBI_START_INIT_VALUE, value);
}

/*
 * The counter-overflow interrupt: stop, clear it, see who it was, take a sample, start the next
 * period.
 */
static void overflow(void *arg, unsigned hart, unsigned cause, const struct quipu_interrupt *irq)
{
	(void)arg;
	(void)cause;
	pmu(QUIPU_SBI_PMU_COUNTER_STOP, cycles, 1, 0, 0);
	quipu_riscv_csr_write(harts, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP,
			      csr_read(QUIPU_CSR_SIP) & ~LCOFI);
	if (csr_read(QUIPU_CSR_SCOUNTOVF) >> cycles & 1) {
		samples++;
		last_pc = irq ? irq->pc : 0;
	}
	start(cycles, -PERIOD);
}

/* Give events 2 (instructions) and 1 (cycles) a counter each, and let both run. */
static int probe(void)
{
	uint64_t n = pmu(QUIPU_SBI_PMU_NUM_COUNTERS, 0, 0, 0, 0).value;
	uint64_t all = (UINT64_C(1) << (n < 63 ? n : 63)) - 1;
	struct quipu_sbiret i =
		pmu(QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING, 0, all, QUIPU_SBI_CFG_SET_SINH, 2);
	struct quipu_sbiret c =
		pmu(QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING, 0, all, QUIPU_SBI_CFG_SET_SINH, 1);

	if (i.error || c.error) {
		fprintf(stderr, "no counter: SBI errors %d and %d\n", (int)i.error, (int)c.error);
		return 1;
	}
	instructions = (unsigned)i.value;
	cycles = (unsigned)c.value;
	quipu_riscv_csr_write(harts, 0, QUIPU_RISCV_S, QUIPU_CSR_SIE, LCOFI);
	start(instructions, 0);
	start(cycles, -PERIOD);
	return 0;
}

static void on_deadline(void *arg, const struct quipu_interrupt *irq)
{
	(void)arg;
	quipu_riscv_interrupt(harts, irq);
}

int main(int argc, char **argv)
{
	static char blob[1 << 20];
	FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
	struct quipu_notes notes = {0};
	struct quipu_machine *machine =
		f ? quipu_machine_parse(blob, fread(blob, 1, sizeof(blob), f), "it", &notes) : NULL;
	struct quipu_manual_signals *program =
		machine ? quipu_manual_signals_new(machine->ncpus) : NULL;
	struct quipu_signals *signals = program ? quipu_manual_signals_base(program) : NULL;
	uint64_t counted;

	harts = signals ? quipu_riscv_new(machine, signals, &notes) : NULL;
	if (!harts) {
		fprintf(stderr, "usage: riscv_driver MACHINE.dtb: %s\n",
			notes.n ? notes.items[0].text : "no file");
		return 1;
	}
	signals->interrupt = on_deadline;
	quipu_riscv_set_handler(harts, overflow, NULL);
	if (probe())
		return 1;
	/* A loop of four instructions and five cycles at 0x1000. */
	for (unsigned i = 0; i < 100000; i++) {
		quipu_manual_signals_feed(program, 0, QUIPU_SIGNAL_INSTRUCTIONS, 4,
					  0x1000 + 4 * (i % 4));
		quipu_manual_signals_feed(program, 0, QUIPU_SIGNAL_CYCLES, 5, 0x1000 + 4 * (i % 4));
	}
	counted = csr_read(QUIPU_CSR_CYCLE + instructions);
	printf("instructions: %llu on counter %u (exact)\n", (unsigned long long)counted,
	       instructions);
	printf("samples: %u, every %u cycles on counter %u, the last at 0x%llx\n", samples,
	       (unsigned)PERIOD, cycles, (unsigned long long)last_pc);
	quipu_riscv_free(harts);
	quipu_manual_signals_free(program);
	quipu_machine_free(machine);
	quipu_notes_free(&notes);
	fclose(f);
	return counted == 400000 && samples == 50 ? 0 : 1;
}
