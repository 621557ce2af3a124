/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the collection hardware, which see each other but nothing above: IMC sheet 3. */
#ifndef QUIPU_PLATFORM_IMC_HARDWARE_H
#define QUIPU_PLATFORM_IMC_HARDWARE_H

#include <quipu/imc.h>
#include <quipu/model.h>

#include "platform/imc/tree.h"

#define IMC_MAX_THREADS 8u /* of a core */
#define IMC_MODES	3u /* ST, SMT2, SMT4 */
#define IMC_TB_HZ	UINT64_C(512000000)
#define IMC_POST_TB	UINT64_C(512000) /* core and thread memory is posted every ms */
#define IMC_STEP_NS	UINT64_C(500000) /* of the microcode */
#define IMC_RECORD	64u
#define IMC_SLOT_TRACE	40u /* deadline slot of the trace counter */

struct imc_memory {
	uint64_t base;
	size_t size;
	uint8_t *data; /* NULL: zero, nothing was written yet */
};

/* A counter of an engine: what it has not posted, and what moves it. */
struct imc_cell {
	uint32_t offset; /* in the counter memory */
	uint64_t divisor;
	const struct imc_source *source;
	enum imc_mode mode;
	unsigned index; /* number of the unit: mcs01 -> 01, mba3 -> 3 */
};

struct imc_counter {
	uint64_t seen;	  /* value of its source when it was last looked at */
	uint64_t pending; /* events not posted, below or above one divisor */
	uint64_t total;	  /* nest: since the last clear */
};

/* Cells of all engines of one kind. */
struct imc_cells {
	struct imc_cell *cell;
	unsigned n;
};

/* What a thread has done, beside the engine's signals. */
struct imc_thread {
	uint64_t cycles, instructions; /* when last looked at */
	uint64_t shared;	       /* its cycles divided by how many ran, in 840ths; PURR */
	uint64_t nk[IMC_MAX_THREADS + 1],
		ik[IMC_MAX_THREADS + 1]; /* while k threads of the core run */
	uint64_t ldbar;
	struct imc_counter *counter; /* accumulation, by cell */
	uint64_t posted_tb;
	bool counting; /* LDBAR and engine say so */
	/* trace */
	uint64_t trace_since; /* value of the selected signal when the counter was loaded */
	uint64_t trace_wraps; /* since then */
	uint32_t trace_index;
	bool trace_armed;
	/* What a record needs, worked out when the counter was loaded: it is written often. */
	const struct imc_source *trace_sampled, *trace_cpmc[2];
	struct quipu_deadline trace_deadline; /* of the next wrap */
	uint8_t *trace_data;		      /* the buffer */
	unsigned trace_records;
	uint64_t trace_tb;			   /* timebase of the last record */
	uint64_t clock_tb, clock_cycles;	   /* its clock: the timebase at these cycles */
	uint64_t since_instructions, since_cycles; /* engine switched on */
	uint64_t last_cpmc[2];
	struct quipu_imc_trace_count trace_count;
	uint64_t trace_buffer;	/* the one that trace_unread is about */
	uint64_t *trace_unread; /* bit n: record n was written and not read yet */
};

struct imc_core {
	unsigned chip, number; /* index of the chip, core on it */
	unsigned cpu[IMC_MAX_THREADS], nthreads;
	uint64_t pdbar, event_mask, htm_mode, trace_scom;
	struct imc_counter *counter;
	uint64_t posted_tb;
	/* cumulative */
	uint64_t clock; /* core cycles */
	uint64_t nk[IMC_MAX_THREADS + 1], ik[IMC_MAX_THREADS + 1];
	uint64_t mode[IMC_MODES]; /* core cycles in it */
	unsigned mode_now;
	uint64_t switches;
};

/* One chip's microcode and traffic. */
struct imc_chip_state {
	uint32_t id;
	uint64_t region;
	struct imc_memory *memory;
	struct imc_counter *counter;
	uint64_t next_step; /* ns */
	bool first, running, want_init, configure;
	unsigned state;	     /* 1..8 */
	unsigned configured; /* states still to go */
	uint64_t speed, vector, mode;
	unsigned visits[8];
	unsigned phb_pair;
	bool link_half;
	/* of devices (quipu_imc_traffic), by port */
	uint64_t r64[QUIPU_IMC_PORTS], r128[QUIPU_IMC_PORTS], w128[QUIPU_IMC_PORTS];
};

struct quipu_imc {
	const struct quipu_machine *machine;
	struct quipu_signals *signals;
	uint64_t (*now)(void *arg);
	void *arg;
	struct imc_tree tree;
	bool lent; /* the tree is its maker's */
	void (*log)(void *arg, const char *line);
	void *log_arg;
	bool clamped; /* said once */
	bool exact;
	bool busy; /* it is bringing itself up to date */
	struct imc_memory **memory;
	unsigned nmemory, room_memory;
	uint64_t next_address;
	struct imc_cells nest, core_cells, thread_cells;
	struct imc_chip_state *chip;
	unsigned nchips;
	struct imc_core *core;
	unsigned ncores;
	struct imc_thread *thread;
	unsigned *core_of;	  /* by CPU */
	struct quipu_model model; /* what a miss costs */
	unsigned line_weight;	  /* counts of a line: quipu,mcs-bytes-per-count 64 gives two */
};

#define IMC_MAX_RECORDS (4096u << 4) /* of a trace buffer, BUFFERSIZE 4 */

/* memory.c */
/*
 * imc_new - quipu_imc_new() on a tree that was read already; @tree stays the caller's, and as it is
 * while the hardware lives. NULL: it is read here.
 */
struct quipu_imc *imc_new(const struct quipu_machine *, struct quipu_signals *,
			  uint64_t (*now)(void *arg), void *arg, const struct imc_tree *tree);

struct imc_memory *imc_memory_add(struct quipu_imc *, uint64_t base, size_t size);
struct imc_memory *imc_memory_find(const struct quipu_imc *, uint64_t address, size_t len);
/* To write to: made now, for most of what drivers allocate is never used. NULL: out of memory. */
uint8_t *imc_memory_bytes(struct imc_memory *, uint64_t address);
uint64_t imc_load(const struct quipu_imc *, uint64_t address);
bool imc_store(struct quipu_imc *, uint64_t address, uint64_t value);
void imc_memory_free(struct quipu_imc *);

/* microcode.c */
void imc_chip_advance(struct quipu_imc *, struct imc_chip_state *, uint64_t now_ns);
void imc_chip_power_on(struct quipu_imc *, struct imc_chip_state *, uint64_t now_ns);
void imc_chip_boot(struct quipu_imc *, struct imc_chip_state *);
/* In exact mode: imc_chip_kick - take a pending command now; imc_chip_post - post all cells. */
void imc_chip_kick(struct quipu_imc *, struct imc_chip_state *);
void imc_chip_post(struct quipu_imc *, struct imc_chip_state *);

/* engine.c */
void imc_core_observe(struct quipu_imc *, struct imc_core *, uint64_t now_ns);
/* imc_core_post - post what is due at @tb; @all: whatever there is. */
void imc_core_post(struct quipu_imc *, struct imc_core *, uint64_t tb, bool all);
void imc_core_set_htm(struct quipu_imc *, struct imc_core *, uint64_t value);
void imc_thread_set_ldbar(struct quipu_imc *, unsigned cpu, uint64_t value);
uint64_t imc_signal(const struct quipu_imc *, unsigned cpu, quipu_signal);

/* trace.c */
/* imc_trace_clock - the thread's clock stands at @tb. */
void imc_trace_clock(struct quipu_imc *, unsigned cpu, uint64_t tb);
void imc_trace_load(struct quipu_imc *, unsigned cpu);
void imc_trace_stop(struct quipu_imc *, unsigned cpu);
/* imc_thread_value - what @source has counted on one thread. */
uint64_t imc_thread_value(const struct quipu_imc *, unsigned cpu, const struct imc_source *);

/* hardware.c */
void imc_sync(struct quipu_imc *);
/* Of a core alone: chips and other cores are looked at another time. */
void imc_sync_core(struct quipu_imc *, struct imc_core *);
uint64_t imc_tb(uint64_t ns);

#endif
