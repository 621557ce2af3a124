/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver of this folder stands on: the hart it runs on in S-mode, whatever that is. bare.c
 * is a real hart of qemu-system-riscv64 behind OpenSBI, model.c the one of quipu/riscv.h. No
 * library of C is assumed.
 */
#ifndef QUIPU_TESTS_QEMU_PLATFORM_H
#define QUIPU_TESTS_QEMU_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

struct sbiret {
	int64_t error;
	uint64_t value;
};

/* An environment call: extension in a7, function in a6, @a in a0..a4. */
struct sbiret sbi(uint64_t extension, uint64_t function, const uint64_t a[5]);
/*
 * One CSR instruction. 0, or the cause of the exception that it raised; *value is then as it was.
 */
unsigned csr_read(unsigned csr, uint64_t *value);
unsigned csr_write(unsigned csr, uint64_t value);
/*
 * So many counter-overflow interrupts (code 13) were taken; the handler does nothing but clear the
 * pending bit.
 */
unsigned interrupts_taken(void);
/* Execute @n instructions or a few more, in at least as many cycles. */
void burn(uint64_t n);
/*
 * The physical address of a page that the supervisor owns, aligned to 4096; and of one that is
 * M-mode's alone.
 */
uint64_t own_page(void);
uint64_t foreign_page(void);
void put(const char *text);

/* driver.c: everything, to the end. */
void drive(void);

#endif
