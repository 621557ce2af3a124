/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RISC-V harts with their performance counters, and the SBI firmware that guards them: everything a
 * supervisor can touch, so that a PMU driver, a firmware test or an emulator can be run against the
 * model from C.
 *
 * Sources: RISC-V privileged architecture (machine, supervisor and hypervisor chapters), Sscofpmf,
 * Smcntrpmf, Smcdeleg and Ssccfg; RISC-V SBI 3.0, chapters "Binary encoding" and "Performance
 * Monitoring Unit Extension". What the model decides where these leave a choice:
 * src/platform/riscv/README.md.
 *
 * A hart's user-level activity comes from the signals it is made with (quipu/signal.h): nothing is
 * fed for it here. Activity at other privilege levels exists only where it is fed with
 * quipu_riscv_feed(), or where the tree declares a charge for each system call. Single-threaded;
 * every argument is checked, none makes the model touch memory of its own by the guest's choice.
 */
#ifndef QUIPU_RISCV_H
#define QUIPU_RISCV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/machine.h>
#include <quipu/signal.h>

struct quipu_riscv; /* the harts of a machine and their firmware */

/* Privilege modes. S is HS on a hart with the hypervisor extension; VS and VU exist only there. */
enum quipu_riscv_mode {
	QUIPU_RISCV_U,
	QUIPU_RISCV_S,
	QUIPU_RISCV_M,
	QUIPU_RISCV_VS,
	QUIPU_RISCV_VU,
	QUIPU_RISCV_MODES
};

/* Exception causes that a CSR access can end in (xcause). */
#define QUIPU_RISCV_ILLEGAL_INSTRUCTION 2
#define QUIPU_RISCV_VIRTUAL_INSTRUCTION 22

/*
 * CSR numbers a supervisor's PMU driver needs; the hardware knows more (README.md of the room has
 * the table).
 */
enum quipu_riscv_csr {
	QUIPU_CSR_SSTATUS = 0x100,
	QUIPU_CSR_SIE = 0x104,
	QUIPU_CSR_SCOUNTEREN = 0x106,
	QUIPU_CSR_SCOUNTINHIBIT = 0x120,
	QUIPU_CSR_SEPC = 0x141,
	QUIPU_CSR_SCAUSE = 0x142,
	QUIPU_CSR_SIP = 0x144,
	QUIPU_CSR_SISELECT = 0x150,
	QUIPU_CSR_SIREG = 0x151,
	QUIPU_CSR_MIDELEG = 0x303,
	QUIPU_CSR_MIE = 0x304,
	QUIPU_CSR_MCOUNTEREN = 0x306,
	QUIPU_CSR_MENVCFG = 0x30A,
	QUIPU_CSR_MCOUNTINHIBIT = 0x320,
	QUIPU_CSR_MCYCLECFG = 0x321,
	QUIPU_CSR_MINSTRETCFG = 0x322,
	QUIPU_CSR_MHPMEVENT3 = 0x323,
	QUIPU_CSR_MIP = 0x344,
	QUIPU_CSR_HCOUNTEREN = 0x606,
	QUIPU_CSR_MCYCLE = 0xB00,
	QUIPU_CSR_MINSTRET = 0xB02,
	QUIPU_CSR_MHPMCOUNTER3 = 0xB03,
	QUIPU_CSR_CYCLE = 0xC00,
	QUIPU_CSR_TIME = 0xC01,
	QUIPU_CSR_INSTRET = 0xC02,
	QUIPU_CSR_HPMCOUNTER3 = 0xC03,
	QUIPU_CSR_SCOUNTOVF = 0xDA0,
};

#define QUIPU_RISCV_LCOFI	13u /* counter-overflow interrupt: bit of xip, xie; cause */
#define QUIPU_RISCV_SSTATUS_SIE (UINT64_C(1) << 1)
#define QUIPU_RISCV_SSTATUS_SPP (UINT64_C(1) << 8) /* in a handler: the trap came from S */

/* mhpmevent with Sscofpmf; mcyclecfg and minstretcfg have the same filter bits. */
#define QUIPU_RISCV_OF	  (UINT64_C(1) << 63)
#define QUIPU_RISCV_MINH  (UINT64_C(1) << 62)
#define QUIPU_RISCV_SINH  (UINT64_C(1) << 61)
#define QUIPU_RISCV_UINH  (UINT64_C(1) << 60)
#define QUIPU_RISCV_VSINH (UINT64_C(1) << 59)
#define QUIPU_RISCV_VUINH (UINT64_C(1) << 58)

/* SBI extensions, functions and status. */
#define QUIPU_SBI_BASE	 0x10u
#define QUIPU_SBI_TIME	 0x54494D45u
#define QUIPU_SBI_IPI	 0x735049u
#define QUIPU_SBI_RFENCE 0x52464E43u
#define QUIPU_SBI_PMU	 0x504D55u

enum quipu_sbi_pmu_function {
	QUIPU_SBI_PMU_NUM_COUNTERS = 0,
	QUIPU_SBI_PMU_COUNTER_GET_INFO,
	QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING,
	QUIPU_SBI_PMU_COUNTER_START,
	QUIPU_SBI_PMU_COUNTER_STOP,
	QUIPU_SBI_PMU_COUNTER_FW_READ,
	QUIPU_SBI_PMU_COUNTER_FW_READ_HI,
	QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM,
	QUIPU_SBI_PMU_EVENT_GET_INFO,
};

enum quipu_sbi_error {
	QUIPU_SBI_SUCCESS = 0,
	QUIPU_SBI_FAILED = -1,
	QUIPU_SBI_NOT_SUPPORTED = -2,
	QUIPU_SBI_INVALID_PARAM = -3,
	QUIPU_SBI_DENIED = -4,
	QUIPU_SBI_INVALID_ADDRESS = -5,
	QUIPU_SBI_ALREADY_AVAILABLE = -6,
	QUIPU_SBI_ALREADY_STARTED = -7,
	QUIPU_SBI_ALREADY_STOPPED = -8,
	QUIPU_SBI_NO_SHMEM = -9,
	QUIPU_SBI_INVALID_STATE = -10,
	QUIPU_SBI_BAD_RANGE = -11,
};

/* config_flags, start_flags and stop_flags of the PMU extension. */
#define QUIPU_SBI_CFG_SKIP_MATCH      (1u << 0)
#define QUIPU_SBI_CFG_CLEAR_VALUE     (1u << 1)
#define QUIPU_SBI_CFG_AUTO_START      (1u << 2)
#define QUIPU_SBI_CFG_SET_VUINH	      (1u << 3)
#define QUIPU_SBI_CFG_SET_VSINH	      (1u << 4)
#define QUIPU_SBI_CFG_SET_UINH	      (1u << 5)
#define QUIPU_SBI_CFG_SET_SINH	      (1u << 6)
#define QUIPU_SBI_CFG_SET_MINH	      (1u << 7)
#define QUIPU_SBI_START_INIT_VALUE    (1u << 0)
#define QUIPU_SBI_START_INIT_SNAPSHOT (1u << 1)
#define QUIPU_SBI_STOP_RESET	      (1u << 0)
#define QUIPU_SBI_STOP_TAKE_SNAPSHOT  (1u << 1)

/* What an ecall leaves in a0 and a1. */
struct quipu_sbiret {
	int64_t error; /* enum quipu_sbi_error */
	uint64_t value;
};

/*
 * quipu_riscv_new - the harts of @machine, reset, with the firmware booted on each of them
 * (counters 0 and 2 run, the others are stopped; mcounteren is open, scounteren shows time only;
 * LCOFI is delegated to S). @signals: what moves the counters at user level; deadlines are armed on
 * it in slots 0..47 of each hart's CPU. Its interrupt hook is left alone: whoever owns it must call
 * quipu_riscv_interrupt(). @notes: what was understood, ignored or wrong in the nodes. Both
 * pointers must outlive the harts. NULL when out of memory.
 */
struct quipu_riscv *quipu_riscv_new(const struct quipu_machine *machine,
				    struct quipu_signals *signals, struct quipu_notes *notes);
/* quipu_riscv_free - also disarms every deadline. NULL is allowed. */
void quipu_riscv_free(struct quipu_riscv *);
/*
 * quipu_riscv_harts - how many; harts are numbered 0.. in the order of the tree, whatever their
 * hart id.
 */
unsigned quipu_riscv_harts(const struct quipu_riscv *);

/*
 * quipu_riscv_csr_read, quipu_riscv_csr_write - one CSR instruction executed in @mode on @hart. A
 * write is a plain csrrw; read-only numbers trap. Returns 0, or the cause of the exception it
 * raises (2 illegal instruction, 22 virtual instruction), or -EINVAL when there is no such hart or
 * mode. *value is untouched unless 0 is returned. An exception below M goes through the firmware,
 * which counts it (firmware event 4) and hands it to the supervisor.
 */
int quipu_riscv_csr_read(struct quipu_riscv *, unsigned hart, enum quipu_riscv_mode mode,
			 unsigned csr, uint64_t *value);
int quipu_riscv_csr_write(struct quipu_riscv *, unsigned hart, enum quipu_riscv_mode mode,
			  unsigned csr, uint64_t value);

/*
 * quipu_riscv_ecall - an environment call from S-mode: @extension in a7, @function in a6, @args in
 * a0..a5. Answers as the SBI specification says; a hart that does not exist gets NOT_SUPPORTED.
 */
struct quipu_sbiret quipu_riscv_ecall(struct quipu_riscv *, unsigned hart, uint64_t extension,
				      uint64_t function, const uint64_t args[6]);

/*
 * quipu_riscv_feed - @n occurrences of @signal happen on @hart while it is in @mode, which is not U
 * (user activity comes from the signals). The feed stops exactly where a counter overflows, lets
 * the interrupt be taken there with @pc, and goes on. 0 or -EINVAL.
 */
int quipu_riscv_feed(struct quipu_riscv *, unsigned hart, enum quipu_riscv_mode mode,
		     quipu_signal signal, uint64_t n, uint64_t pc);

/*
 * quipu_riscv_interrupt - deadlines of @interrupt->cpu were reached: its counters overflow at this
 * instruction, and the local counter-overflow interrupt is taken where it is enabled. To be called
 * from the hook of the signals.
 */
void quipu_riscv_interrupt(struct quipu_riscv *, const struct quipu_interrupt *interrupt);

/*
 * The supervisor.
 * quipu_riscv_set_handler - what runs when an interrupt is taken in S-mode: @cause is the code
 * (without the interrupt bit), @interrupt what is known of the moment, or NULL. While it runs
 * SIE is off; when it returns, the hart goes back to where it was. NULL removes it: interrupts
 * then stay pending.
 * quipu_riscv_set_mode - the mode the hart is in (U after reset): decides whether an interrupt
 * can be taken.
 * quipu_riscv_pending - the code of the interrupt that would be taken now (highest priority
 * first), or -1.
 * quipu_riscv_run - take what is pending and enabled. Returns the number of interrupts taken.
 */
typedef void quipu_riscv_handler(void *arg, unsigned hart, unsigned cause,
				 const struct quipu_interrupt *interrupt);
void quipu_riscv_set_handler(struct quipu_riscv *, quipu_riscv_handler *, void *arg);
int quipu_riscv_set_mode(struct quipu_riscv *, unsigned hart, enum quipu_riscv_mode mode);
int quipu_riscv_pending(const struct quipu_riscv *, unsigned hart);
unsigned quipu_riscv_run(struct quipu_riscv *, unsigned hart);

/*
 * quipu_riscv_trap - a synchronous exception @cause raised below M: the firmware counts it
 * (misaligned 4 and 6, access faults 5 and 7, illegal instruction 2) and hands it to S, which finds
 * it in scause. 0 or -EINVAL.
 */
int quipu_riscv_trap(struct quipu_riscv *, unsigned hart, unsigned cause, uint64_t pc);

/*
 * Memory that the supervisor shares with the firmware.
 * quipu_riscv_memory - the @len bytes at physical address @addr, or NULL where they are not all
 * in the supervisor's own memory.
 * quipu_riscv_memory_base, quipu_riscv_memory_size - where it lies: room for a snapshot page of
 * each hart and 16 pages more.
 */
void *quipu_riscv_memory(struct quipu_riscv *, uint64_t addr, uint64_t len);
uint64_t quipu_riscv_memory_base(const struct quipu_riscv *);
uint64_t quipu_riscv_memory_size(const struct quipu_riscv *);

/* quipu_riscv_set_trace - @fn gets one line for each ecall, with its result; NULL: none. */
void quipu_riscv_set_trace(struct quipu_riscv *, void (*fn)(void *arg, const char *line),
			   void *arg);

/* quipu_riscv_describe - counters, widths, extensions and firmware of the harts, for a person. */
void quipu_riscv_describe(const struct quipu_riscv *,
			  void (*fn)(void *arg, unsigned depth, const char *line), void *arg);

#endif
