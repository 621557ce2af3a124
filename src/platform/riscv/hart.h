/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the RISC-V room: state of the harts and of their firmware, and the calls between
 * hardware.c, firmware.c, sbi.c, tree.c and events.c. Drivers do not see this file: they use
 * quipu/riscv.h alone.
 */
#ifndef QUIPU_PLATFORM_RISCV_HART_H
#define QUIPU_PLATFORM_RISCV_HART_H

#include <quipu/bits.h>
#include <quipu/riscv.h>

#define HART_COUNTERS	  32u /* logical positions of CSR counters; 1 is time */
#define HART_TERMS	  4u
#define HART_AUX_SLOT	  32u /* deadline slots 32..47: the further signals of a counter */
#define HART_AUX_MAX	  (QUIPU_SLOTS_HARDWARE - HART_AUX_SLOT)
#define HART_PROGRAMMABLE UINT32_C(0xFFFFFFF8)
#define CSR_MSTATEEN0	  0x30Cu

enum hart_extension {
	EXT_H = 1u << 0,
	EXT_SSCOFPMF = 1u << 1,
	EXT_SMCNTRPMF = 1u << 2,
	EXT_SMCDELEG = 1u << 3, /* with Ssccfg */
	EXT_INHIBIT = 1u << 4,	/* privileged 1.11 and later: mcountinhibit */
	EXT_SMAIA = 1u << 5,	/* mvien, mvip */
	EXT_SSAIA = 1u << 6,	/* hvien, on a hart with H; comes with Smaia */
	EXT_SHLCOFIDELEG = 1u << 7,
	EXT_SMSTATEEN = 1u << 8,
};

/* What a selector counts: the sum of these signals. n = 0: nothing. */
struct riscv_count {
	unsigned n;
	quipu_signal signal[3];
};

/* A part of a running counter: it grows by @weight for each count of @signal since @base. */
struct hart_term {
	quipu_signal signal;
	uint64_t weight;
	uint64_t base;
};

struct hart {
	struct quipu_riscv *set;
	unsigned number; /* of the hart and of its Linux CPU */
	uint64_t id;	 /* mhartid */
	/* facts of the silicon */
	unsigned extensions;  /* enum hart_extension */
	uint32_t implemented; /* counters: bits 0, 2 and the hpm mask */
	unsigned width;	      /* bits of mhpmcounter3..31 */
	/* architectural state, sheet 1.7 */
	uint64_t counter[HART_COUNTERS];
	uint64_t event[HART_COUNTERS]; /* mhpmevent; [0], [2]: mcyclecfg, minstretcfg */
	uint64_t inhibit, mcounteren, scounteren, hcounteren;
	uint64_t mip, mie, mideleg, menvcfg, siselect;
	uint64_t sstatus, scause, sepc;
	/* a guest's own: VS reaches them by the numbers of S */
	uint64_t vsstatus, vscause, vsepc, vsiselect;
	/* bit 13 alone: LCOFI that software injects, and who gets it */
	uint64_t mvip, mvien, hvip, hvien, hideleg;
	uint64_t svie, gvie; /* sie and vsie of an injected interrupt, which has no bit in mie */
	uint64_t mstateen0, hstateen0;
	enum quipu_riscv_mode mode;
	/* derived: what runs now */
	struct riscv_count count[HART_COUNTERS];
	struct hart_term term[HART_COUNTERS][HART_TERMS];
	unsigned nterms[HART_COUNTERS];
	/* what the engine was last told */
	struct quipu_deadline armed[QUIPU_SLOTS_HARDWARE];
	uint64_t armed_slots;
	uint8_t aux_owner[HART_AUX_MAX];
	unsigned depth; /* of calls into this hart; deadlines are told at the outermost end */
	bool stale;	/* deadlines may have changed */
	bool in_trap;
};

/* Device-tree maps of the firmware (sheet 4.1). */
struct riscv_range {
	uint32_t first, last;
	uint32_t counters;
};
struct riscv_raw {
	uint64_t match, mask;
	uint32_t counters;
};
struct riscv_alias {
	uint32_t event;
	uint64_t selector;
};
struct riscv_tables {
	struct riscv_range *ranges;
	struct riscv_raw *raws;
	struct riscv_alias *aliases;
	unsigned nranges, nraws, naliases;
};

enum riscv_driver { RISCV_DRIVER_SBI, RISCV_DRIVER_LEGACY };

/* Machine properties: on the pmu node, else on the root. README.md lists them. */
struct riscv_config {
	enum riscv_driver driver;
	unsigned kernel; /* 418, 601, 612 */
	uint32_t sbi_version;
	bool opensbi_compat;
	bool snapshot;
	bool record_silent;  /* legacy: sampling opens and never samples */
	bool branch_records; /* SBI: harts record their last transfers, as Smctr and Ssctr do */
	bool events_directory;
	bool unmodelled_zero; /* selectors that nothing drives count 0; else refused */
	uint64_t charge_instructions, charge_cycles; /* S-mode activity of a system call */
	uint64_t counter_reset;
	unsigned priv_minor;  /* 10, 11, 12 */
	unsigned user_access; /* kernel.perf_user_access as the machine starts: 0..2 */
};

/* Firmware's view of a logical counter. */
#define FW_UNBOUND  UINT32_MAX
#define FW_COUNTERS 16u
#define FW_MAX	    (HART_COUNTERS + FW_COUNTERS)
struct fw_counter {
	uint32_t event; /* event_idx, FW_UNBOUND */
	bool started;	/* by a start, no stop since: for firmware counters, 1.10 harts */
	bool given;	/* fixed counters: config_matching handed it out, no RESET since */
	uint64_t data;
	uint64_t filters; /* xINH bits asked for */
	uint64_t selector;
	uint64_t value; /* firmware counters */
};
struct fw_hart {
	struct fw_counter counter[FW_MAX];
	uint64_t shmem; /* FW_NO_SHMEM: none */
};
#define FW_NO_SHMEM UINT64_MAX

struct riscv_events;

struct quipu_riscv {
	const struct quipu_machine *machine;
	struct quipu_signals *signals;
	struct riscv_config config;
	struct riscv_tables tables;
	const struct riscv_events *events;
	unsigned nharts;
	struct hart *harts;
	struct fw_hart *firmware;
	unsigned num_hw; /* logical numbers of hardware counters: 0..num_hw-1 */
	uint8_t *memory;
	uint64_t memory_base, memory_size;
	quipu_riscv_handler *handler;
	void *handler_arg;
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
	uint8_t csr_rows[0x1000]; /* 1 + the row of each number, 0: there is no such register */
};

/* hardware.c */
void hart_csr_index(struct quipu_riscv *);
void hart_reset(struct hart *);
/* One CSR instruction; 0 or the cause. No bookkeeping of traps. */
int hart_csr_read(struct hart *, enum quipu_riscv_mode, unsigned csr, uint64_t *value);
int hart_csr_write(struct hart *, enum quipu_riscv_mode, unsigned csr, uint64_t value);
/* M-mode accesses of the firmware: to registers that exist. */
uint64_t hart_get(struct hart *, unsigned csr);
void hart_set(struct hart *, unsigned csr, uint64_t value);
/* Enter and leave the hart: deadlines are passed on when the outermost call ends. */
void hart_enter(struct hart *);
void hart_leave(struct hart *);
void hart_disarm(struct hart *);
/* Deadlines of @slots were reached: their counters are brought up to date. */
void hart_reached(struct hart *, uint64_t slots);
/*
 * @n occurrences of @signal at @mode, at most up to the first that makes a counter raise its
 * interrupt. Returns how many were taken.
 */
uint64_t hart_feed(struct hart *, enum quipu_riscv_mode, quipu_signal, uint64_t n);
/* Name of a CSR in @buf. */
const char *hart_csr_name(unsigned csr, char *buf, size_t len);

/* firmware.c: no argument reaches it unchecked (sbi.c) except where noted. */
void firmware_boot(struct quipu_riscv *, unsigned hart);
unsigned firmware_counters(const struct quipu_riscv *);
struct quipu_sbiret firmware_info(struct quipu_riscv *, unsigned hart, uint64_t index);
struct quipu_sbiret firmware_match(struct quipu_riscv *, unsigned hart, uint64_t base,
				   uint64_t mask, uint64_t flags, uint64_t event, uint64_t data);
struct quipu_sbiret firmware_start(struct quipu_riscv *, unsigned hart, uint64_t base,
				   uint64_t mask, uint64_t flags, uint64_t value);
struct quipu_sbiret firmware_stop(struct quipu_riscv *, unsigned hart, uint64_t base, uint64_t mask,
				  uint64_t flags);
struct quipu_sbiret firmware_read(struct quipu_riscv *, unsigned hart, uint64_t index);
struct quipu_sbiret firmware_set_shmem(struct quipu_riscv *, unsigned hart, uint64_t lo,
				       uint64_t hi, uint64_t flags);
struct quipu_sbiret firmware_event_info(struct quipu_riscv *, uint64_t lo, uint64_t hi, uint64_t n,
					uint64_t flags);
/* A firmware event happened on @hart. */
void firmware_event(struct quipu_riscv *, unsigned hart, unsigned code);
/*
 * Could some counter of the machine count this event at all, were all free? *selector is what would
 * be programmed.
 */
uint32_t firmware_candidates(const struct quipu_riscv *, uint32_t event, uint64_t data,
			     uint64_t *selector);
#define FW_FEATURE_SNAPSHOT(rv) ((rv)->config.snapshot && (rv)->config.sbi_version >= 0x02000000u)

/* sbi.c */
struct quipu_sbiret sbi_call(struct quipu_riscv *, unsigned hart, uint64_t extension,
			     uint64_t function, const uint64_t args[6]);
/* The trap of cause @cause reached M-mode: count it. */
void sbi_trap(struct quipu_riscv *, unsigned hart, unsigned cause);

/* tree.c */
int riscv_tree_config(struct quipu_riscv *, struct quipu_notes *);
int riscv_tree_hart(struct quipu_riscv *, struct hart *, struct quipu_notes *);
int riscv_tree_tables(struct quipu_riscv *, struct quipu_notes *);
void riscv_tree_free(struct riscv_tables *);

#endif
