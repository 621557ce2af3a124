/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * platform.h on a hart in S-mode without an operating system: instructions, the SBI's legacy
 * console and its system reset. start.S comes here; traps come to trap().
 */
#include "platform.h"

#define INTERRUPT      (UINT64_C(1) << 63)
#define LCOFI	       13
#define CONSOLE_PUT    1
#define SYSTEM_RESET   0x53525354u
#define BASE_EXTENSION 0x10u
#define CSR_LENGTH     4 /* bytes: the only instructions here that trap are CSR accesses */

static volatile unsigned taken;
static volatile uint64_t cause;
static _Alignas(4096) uint8_t page[4096];

uint64_t trap(uint64_t scause, uint64_t sepc);
void start(void);

struct sbiret sbi(uint64_t extension, uint64_t function, const uint64_t a[5])
{
	register uint64_t a0 __asm__("a0") = a[0];
	register uint64_t a1 __asm__("a1") = a[1];
	register uint64_t a2 __asm__("a2") = a[2];
	register uint64_t a3 __asm__("a3") = a[3];
	register uint64_t a4 __asm__("a4") = a[4];
	register uint64_t a6 __asm__("a6") = function;
	register uint64_t a7 __asm__("a7") = extension;

	__asm__ volatile("ecall"
			 : "+r"(a0), "+r"(a1)
			 : "r"(a2), "r"(a3), "r"(a4), "r"(a6), "r"(a7)
			 : "memory");
	return (struct sbiret){(int64_t)a0, a1};
}

/* The number of a CSR is part of the instruction: each that the driver names has its own. */
/* clang-format off */
#define READ(n)	 case n: __asm__ volatile("csrr %0, " #n : "=r"(got)); break
#define WRITE(n) case n: __asm__ volatile("csrw " #n ", %0" ::"r"(value)); break

unsigned csr_read(unsigned csr, uint64_t *value)
{
	uint64_t got = 0;

	cause = 0;
	switch (csr) {
	READ(0x323); READ(0xDA0); READ(0xC00); READ(0xC02); READ(0xC03); READ(0xC04); READ(0xC05);
	READ(0xC06); READ(0xC07); READ(0xC08); READ(0xC09); READ(0xC0A); READ(0xC0B); READ(0xC0C);
	READ(0xC0D); READ(0xC0E); READ(0xC0F); READ(0xC10); READ(0xC11); READ(0xC12);
	default:
		put("the driver reads a CSR that bare.c lacks\n");
		return ~0u;
	}
	if (!cause)
		*value = got;
	return (unsigned)cause;
}

unsigned csr_write(unsigned csr, uint64_t value)
{
	cause = 0;
	switch (csr) {
	WRITE(0x100); WRITE(0x104); WRITE(0x144);
	default:
		put("the driver writes a CSR that bare.c lacks\n");
		return ~0u;
	}
	return (unsigned)cause;
}

/* clang-format on */

/* From start.S, with interrupts off. Returns where to go on. */
uint64_t trap(uint64_t scause, uint64_t sepc)
{
	if (scause == (INTERRUPT | LCOFI)) {
		__asm__ volatile("csrc sip, %0" ::"r"(UINT64_C(1) << LCOFI));
		taken++;
		return sepc;
	}
	cause = scause;
	return sepc + CSR_LENGTH;
}

unsigned interrupts_taken(void)
{
	return taken;
}

void burn(uint64_t n)
{
	/* two instructions a turn */
	for (n = n / 2 + 1; n; n--)
		__asm__ volatile("");
}

uint64_t own_page(void)
{
	return (uint64_t)page;
}

/* The firmware itself lies there. */
uint64_t foreign_page(void)
{
	return 0x80000000;
}

void put(const char *text)
{
	for (; *text; text++) {
		const uint64_t a[5] = {(uint8_t)*text};

		sbi(CONSOLE_PUT, 0, a);
	}
}

void start(void)
{
	static const uint64_t none[5] = {0};
	bool opensbi_1_1 = sbi(BASE_EXTENSION, 1, none).value == 1 &&
			   sbi(BASE_EXTENSION, 2, none).value == 0x10001;

	put(opensbi_1_1 ? "begin OpenSBI 1.1\n" : "begin another firmware\n");
	drive();
	sbi(SYSTEM_RESET, 0, none); /* shutdown */
	for (;;)
		;
}
