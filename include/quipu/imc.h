/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POWER9 in-memory collection counters, as firmware and a hypervisor's kernel see them: OPAL calls,
 * SCOM registers, LDBAR, and the memory that the counters appear in. skiboot hw/imc.c and
 * doc/opal-api, Linux 6.12 Documentation/arch/powerpc/imc.rst, OpenPOWER OCC (nest microcode).
 * examples/imc_driver.c shows the use.
 *
 * Counters and records in memory are 64-bit big-endian. Every argument is as untrusted as a
 * guest's.
 */
#ifndef QUIPU_IMC_H
#define QUIPU_IMC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/bits.h>
#include <quipu/machine.h>
#include <quipu/signal.h>

/* IBM numbers bits from the most significant one: bit @b, and field @a:@b, of a doubleword. */
#define QUIPU_IBM_BIT(b) (UINT64_C(1) << (63 - (b)))
static inline uint64_t quipu_ibm_field(uint64_t v, unsigned a, unsigned b)
{
	return bits_get(v, 63 - a, 63 - b);
}
static inline uint64_t quipu_ibm_put(uint64_t value, unsigned a, unsigned b)
{
	return (value & bits_mask(b - a + 1)) << (63 - b);
}

/* OPAL: tokens, types and status. */
enum {
	QUIPU_OPAL_CHECK_TOKEN = 80,
	QUIPU_OPAL_IMC_COUNTERS_INIT = 149,  /* type, real address, PIR */
	QUIPU_OPAL_IMC_COUNTERS_START = 150, /* type, PIR */
	QUIPU_OPAL_IMC_COUNTERS_STOP = 151,  /* type, PIR */
};
enum { QUIPU_OPAL_IMC_NEST = 1, QUIPU_OPAL_IMC_CORE = 2, QUIPU_OPAL_IMC_TRACE = 3 };
enum {
	QUIPU_OPAL_SUCCESS = 0,
	QUIPU_OPAL_PARAMETER = -1,
	QUIPU_OPAL_HARDWARE = -6,
};

/* LDBAR. */
#define QUIPU_LDBAR_ENABLE QUIPU_IBM_BIT(0)
#define QUIPU_LDBAR_TRACE  QUIPU_IBM_BIT(1)
#define QUIPU_IMC_ADDRESS  UINT64_C(0x0003ffffffffe000) /* bits 14:50, of LDBAR and PDBAR */
/* HTM_MODE: the engine of a core is on. */
#define QUIPU_HTM_ENABLED  QUIPU_IBM_BIT(4)
/* TRACE_IMC_SCOM: CPMC2, select 2 (32 MHz ticks), 251 ticks, 4096 records. */
#define QUIPU_TRACE_SCOM   UINT64_C(0x7fffffc142020000)

/* The nest microcode's control block: words, commands, status. */
enum {
	QUIPU_NEST_STATUS = 0x00,
	QUIPU_NEST_COMMAND = 0x08,
	QUIPU_NEST_SPEED = 0x10,
	QUIPU_NEST_AVAILABLE = 0x18,
	QUIPU_NEST_MODE = 0x20,
	QUIPU_NEST_MODE_NOW = 0x28
};
enum { QUIPU_NEST_RUN = 1, QUIPU_NEST_PAUSE = 2, QUIPU_NEST_CLEAR = 3 };
enum {
	QUIPU_NEST_INITIALISING = 0,
	QUIPU_NEST_RUNNING,
	QUIPU_NEST_PAUSED,
	QUIPU_NEST_BAD_SPEED,
	QUIPU_NEST_BAD_MODE
};

/* A trace record, as doublewords. */
enum {
	QUIPU_TRACE_TB1,
	QUIPU_TRACE_IP,
	QUIPU_TRACE_VAL,
	QUIPU_TRACE_CPMC1,
	QUIPU_TRACE_CPMC2,
	QUIPU_TRACE_CPMC3,
	QUIPU_TRACE_CPMC4,
	QUIPU_TRACE_TB2,
	QUIPU_TRACE_WORDS
};
#define QUIPU_TRACE_TB_MASK UINT64_C(0x3ffffffffff)

#define QUIPU_IMC_PORTS 8u /* memory ports of a chip */

struct quipu_imc;

/* What happens on a chip that no signal of the engine tells: for models of devices, and tests. */
enum quipu_imc_traffic {
	QUIPU_IMC_READ_64,   /* a DMA read of at most 64 bytes */
	QUIPU_IMC_READ_LINE, /* 128 bytes */
	QUIPU_IMC_WRITE_LINE,
};

/* What became of a thread's trace records. written = taken + overwritten + left. */
struct quipu_imc_trace_count {
	uint64_t written;
	uint64_t taken;	      /* read by whom they were for (quipu_imc_trace_taken) */
	uint64_t overwritten; /* by a later record, before anybody had read them */
	uint64_t left;	      /* lie in memory, unread */
	uint64_t events;      /* occurrences of the selected event while the trace ran */
	uint64_t period;      /* ... for each record, at the last load of the counter */
};

/*
 * quipu_imc_new - the collection hardware and firmware of @machine (its node imc-counters),
 * moved by @signals; @now is the machine's time in ns. The nest microcode has been initialised
 * and paused, as at boot. NULL when out of memory.
 * quipu_imc_power_on - start the microcode of all chips anew: nothing initialised, availability
 * vector 0.
 */
struct quipu_imc *quipu_imc_new(const struct quipu_machine *machine, struct quipu_signals *signals,
				uint64_t (*now)(void *arg), void *arg);
void quipu_imc_free(struct quipu_imc *);
void quipu_imc_power_on(struct quipu_imc *);

/* quipu_opal_call - as the CPU @cpu. The status; QUIPU_OPAL_PARAMETER for a token that is not
 * there. */
int64_t quipu_opal_call(struct quipu_imc *, unsigned cpu, uint64_t token, const uint64_t args[8]);

/* Registers. 0, or -EINVAL: no such CPU, chip or register. The SCOM addresses are those of the
 * sheet of each core. */
int quipu_imc_scom_read(struct quipu_imc *, uint32_t chip, uint64_t address, uint64_t *value);
int quipu_imc_scom_write(struct quipu_imc *, uint32_t chip, uint64_t address, uint64_t value);
int quipu_imc_ldbar_read(struct quipu_imc *, unsigned cpu, uint64_t *value);
int quipu_imc_ldbar_write(struct quipu_imc *, unsigned cpu, uint64_t value);

/*
 * Real memory, as far as collection needs it: what was allocated, and the region of each chip.
 * quipu_imc_alloc - @size zeroed bytes, aligned to 8 KiB; the address, or 0.
 * quipu_imc_read, quipu_imc_write - copy; 0, or -EFAULT when not all of it is memory. A read
 * shows what the hardware has posted by now.
 * quipu_imc_read64 - one big-endian doubleword; 0 where there is no memory.
 */
uint64_t quipu_imc_alloc(struct quipu_imc *, size_t size);
int quipu_imc_read(struct quipu_imc *, uint64_t address, void *buf, size_t len);
int quipu_imc_write(struct quipu_imc *, uint64_t address, const void *buf, size_t len);
uint64_t quipu_imc_read64(struct quipu_imc *, uint64_t address);
int quipu_imc_write64(struct quipu_imc *, uint64_t address, uint64_t value);
/* quipu_imc_region - where the counters of @chip lie; 0: no such chip. The control block is at its
 * offset behind it. */
uint64_t quipu_imc_region(const struct quipu_imc *, uint32_t chip);
uint64_t quipu_imc_control(const struct quipu_imc *, uint32_t chip);

/* quipu_imc_advance - the hardware keeps up with the machine's time. */
void quipu_imc_advance(struct quipu_imc *);
/* quipu_imc_set_exact - post before every read (tree property quipu,imc-exact). */
void quipu_imc_set_exact(struct quipu_imc *, bool exact);
/* quipu_imc_interrupt - the engine reached deadlines that this hardware armed: trace counters that
 * wrapped. */
void quipu_imc_interrupt(struct quipu_imc *, const struct quipu_interrupt *);
/* quipu_imc_set_log - where lines for a person go: a trace buffer smaller than its register says.
 * NULL: nowhere. */
void quipu_imc_set_log(struct quipu_imc *, void (*log)(void *arg, const char *line), void *arg);
/* quipu_imc_traffic - @n times @what on memory port @port of @chip. */
void quipu_imc_traffic(struct quipu_imc *, uint32_t chip, unsigned port,
		       enum quipu_imc_traffic what, uint64_t n);
/* quipu_imc_pir - the processor id of CPU @cpu. */
uint32_t quipu_imc_pir(const struct quipu_imc *, unsigned cpu);
/*
 * Bookkeeping, no hardware.
 * quipu_imc_trace_taken - a reader has handed on the record at @address of the buffer that @cpu
 * writes to.
 * quipu_imc_trace_counts - what became of all until now.
 */
void quipu_imc_trace_taken(struct quipu_imc *, unsigned cpu, uint64_t address);
void quipu_imc_trace_counts(const struct quipu_imc *, unsigned cpu, struct quipu_imc_trace_count *);

#endif
