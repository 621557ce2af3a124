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
#include <stdlib.h>

#include <quipu/riscv.h>

#define HART   0
#define PERIOD UINT64_C(10000)
#define LCOFI  (UINT64_C(1) << QUIPU_RISCV_LCOFI)

struct driver {
	struct quipu_riscv *harts;
	uint64_t valid;		       /* logical counters that exist */
	unsigned cycles, instructions; /* the two in use */
	unsigned samples;
	uint64_t last_pc;
};

static struct quipu_sbiret pmu(struct driver *d, unsigned function, uint64_t a0, uint64_t a1,
			       uint64_t a2, uint64_t a3)
{
	const uint64_t args[6] = {a0, a1, a2, a3};

	return quipu_riscv_ecall(d->harts, HART, QUIPU_SBI_PMU, function, args);
}

static uint64_t csr_read(struct driver *d, unsigned csr)
{
	uint64_t value = 0;

	if (quipu_riscv_csr_read(d->harts, HART, QUIPU_RISCV_S, csr, &value))
		fprintf(stderr, "CSR 0x%x traps\n", csr);
	return value;
}

/*
 * The local counter-overflow interrupt: stop, look who it was, take a sample, start the next
 * period.
 */
static void overflow(void *arg, unsigned hart, unsigned cause, const struct quipu_interrupt *irq)
{
	struct driver *d = arg;
	uint64_t bit = UINT64_C(1) << d->cycles;

	(void)hart;
	(void)cause;
	pmu(d, QUIPU_SBI_PMU_COUNTER_STOP, d->cycles, 1, 0, 0);
	quipu_riscv_csr_write(d->harts, HART, QUIPU_RISCV_S, QUIPU_CSR_SIP,
			      csr_read(d, QUIPU_CSR_SIP) & ~LCOFI);
	if (csr_read(d, QUIPU_CSR_SCOUNTOVF) & bit) {
		d->samples++;
		d->last_pc = irq ? irq->pc : 0;
	}
	pmu(d, QUIPU_SBI_PMU_COUNTER_START, d->cycles, 1, QUIPU_SBI_START_INIT_VALUE, -PERIOD);
}

/* Find the counters, give @event one of them, stopped. */
static int configure(struct driver *d, uint64_t event)
{
	struct quipu_sbiret r = pmu(d, QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING, 0, d->valid,
				    QUIPU_SBI_CFG_SET_SINH, event);

	if (r.error) {
		fprintf(stderr, "no counter for event 0x%llx: SBI error %lld\n",
			(unsigned long long)event, (long long)r.error);
		exit(1);
	}
	return (int)r.value;
}

static void probe(struct driver *d)
{
	uint64_t n = pmu(d, QUIPU_SBI_PMU_NUM_COUNTERS, 0, 0, 0, 0).value;

	for (uint64_t i = 0; i < n && i < 64; i++)
		if (!pmu(d, QUIPU_SBI_PMU_COUNTER_GET_INFO, i, 0, 0, 0).error)
			d->valid |= UINT64_C(1) << i;
	d->instructions = (unsigned)configure(d, 2);
	d->cycles = (unsigned)configure(d, 1);
	quipu_riscv_csr_write(d->harts, HART, QUIPU_RISCV_S, QUIPU_CSR_SIE, LCOFI);
	pmu(d, QUIPU_SBI_PMU_COUNTER_START, d->instructions, 1, QUIPU_SBI_START_INIT_VALUE, 0);
	pmu(d, QUIPU_SBI_PMU_COUNTER_START, d->cycles, 1, QUIPU_SBI_START_INIT_VALUE, -PERIOD);
}

static void on_deadline(void *arg, const struct quipu_interrupt *irq)
{
	quipu_riscv_interrupt(((struct driver *)arg)->harts, irq);
}

static struct quipu_machine *load(const char *path, struct quipu_notes *notes)
{
	static char blob[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(blob, 1, sizeof(blob), f) : 0;

	if (f)
		fclose(f);
	return quipu_machine_parse(blob, n, "example", notes);
}

int main(int argc, char **argv)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *machine = argc > 1 ? load(argv[1], &notes) : NULL;
	struct quipu_manual_signals *program =
		machine ? quipu_manual_signals_new(machine->ncpus) : NULL;
	struct quipu_signals *signals = program ? quipu_manual_signals_base(program) : NULL;
	struct driver d = {.harts = signals ? quipu_riscv_new(machine, signals, &notes) : NULL};
	uint64_t counted;

	if (!d.harts) {
		fprintf(stderr, "usage: %s machine.dtb%s%s\n", argv[0], notes.n ? ": " : "",
			notes.n ? notes.items[0].text : "");
		return 1;
	}
	signals->interrupt = on_deadline;
	signals->arg = &d;
	quipu_riscv_set_handler(d.harts, overflow, &d);
	probe(&d);

	/* A loop of four instructions, five cycles, at 0x1000. */
	for (unsigned i = 0; i < 100000; i++) {
		quipu_manual_signals_feed(program, HART, QUIPU_SIGNAL_INSTRUCTIONS, 4,
					  0x1000 + 4 * (i % 4));
		quipu_manual_signals_feed(program, HART, QUIPU_SIGNAL_CYCLES, 5,
					  0x1000 + 4 * (i % 4));
	}
	counted = csr_read(&d, QUIPU_CSR_CYCLE + d.instructions);
	printf("instructions: %llu on counter %u (exact)\n", (unsigned long long)counted,
	       d.instructions);
	printf("samples: %u, every %llu cycles on counter %u, the last at 0x%llx\n", d.samples,
	       (unsigned long long)PERIOD, d.cycles, (unsigned long long)d.last_pc);

	quipu_riscv_free(d.harts);
	quipu_manual_signals_free(program);
	quipu_machine_free(machine);
	quipu_notes_free(&notes);
	return counted == 400000 && d.samples == 50 ? 0 : 1;
}
