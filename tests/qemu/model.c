/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * platform.h on the model of quipu/riscv.h: model MACHINE.dtb runs the driver there and prints what
 * it prints.
 */
#include <stdio.h>
#include <stdlib.h>

#include <quipu/riscv.h>

#include "platform.h"

static struct quipu_riscv *harts;
static unsigned taken;

struct sbiret sbi(uint64_t extension, uint64_t function, const uint64_t a[5])
{
	const uint64_t args[6] = {a[0], a[1], a[2], a[3], a[4]};
	struct quipu_sbiret r = quipu_riscv_ecall(harts, 0, extension, function, args);

	return (struct sbiret){r.error, r.value};
}

unsigned csr_read(unsigned csr, uint64_t *value)
{
	return (unsigned)quipu_riscv_csr_read(harts, 0, QUIPU_RISCV_S, csr, value);
}

unsigned csr_write(unsigned csr, uint64_t value)
{
	return (unsigned)quipu_riscv_csr_write(harts, 0, QUIPU_RISCV_S, csr, value);
}

unsigned interrupts_taken(void)
{
	return taken;
}

void burn(uint64_t n)
{
	quipu_riscv_feed(harts, 0, QUIPU_RISCV_S, QUIPU_SIGNAL_CYCLES, n, 0x80200000);
	quipu_riscv_feed(harts, 0, QUIPU_RISCV_S, QUIPU_SIGNAL_INSTRUCTIONS, n, 0x80200000);
}

uint64_t own_page(void)
{
	return quipu_riscv_memory_base(harts);
}

uint64_t foreign_page(void)
{
	return 0x80000000;
}

void put(const char *text)
{
	fputs(text, stdout);
}

static void on_trap(void *arg, unsigned hart, unsigned cause, const struct quipu_interrupt *irq)
{
	uint64_t sip = 0;

	(void)arg;
	(void)irq;
	quipu_riscv_csr_read(harts, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP, &sip);
	quipu_riscv_csr_write(harts, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP,
			      sip & ~(UINT64_C(1) << cause));
	taken += cause == QUIPU_RISCV_LCOFI;
}

static void on_deadline(void *arg, const struct quipu_interrupt *irq)
{
	(void)arg;
	quipu_riscv_interrupt(harts, irq);
}

static struct quipu_machine *load(const char *path, struct quipu_notes *notes)
{
	static char blob[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(blob, 1, sizeof(blob), f) : 0;

	if (f)
		fclose(f);
	return quipu_machine_parse(blob, n, "model", notes);
}

int main(int argc, char **argv)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *machine = argc > 1 ? load(argv[1], &notes) : NULL;
	struct quipu_manual_signals *program =
		machine ? quipu_manual_signals_new(machine->ncpus) : NULL;
	struct quipu_signals *signals = program ? quipu_manual_signals_base(program) : NULL;

	harts = signals ? quipu_riscv_new(machine, signals, &notes) : NULL;
	if (harts) {
		signals->interrupt = on_deadline;
		quipu_riscv_set_handler(harts, on_trap, NULL);
		quipu_riscv_set_mode(harts, 0, QUIPU_RISCV_S);
		drive();
	} else {
		fprintf(stderr, "usage: %s MACHINE.dtb%s%s\n", argv[0], notes.n ? ": " : "",
			notes.n ? notes.items[0].text : "");
	}
	quipu_riscv_free(harts);
	quipu_manual_signals_free(program);
	quipu_machine_free(machine);
	quipu_notes_free(&notes);
	return harts ? 0 : 1;
}
