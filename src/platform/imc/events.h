/* SPDX-License-Identifier: BSD-2-Clause */
/* What moves the cells of POWER9 in-memory collection; see events.c. */
#ifndef QUIPU_PLATFORM_IMC_EVENTS_H
#define QUIPU_PLATFORM_IMC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/signal.h>

enum imc_kind {
	IMC_NOT_MODELLED, /* the cell stays 0 and the event says so */
	IMC_ZERO,	  /* truly never happens in this model */
	IMC_SIGNAL,	  /* a signal of the engine, summed over the threads */
	IMC_STALLED,	  /* cycles without a completion */
	IMC_OWN_CACHES,	  /* misses of level 1 that the core's own L2 or L3 served */
	IMC_WALK_CYCLES,  /* cycles of page walks for data */
	IMC_FETCH_CYCLES, /* cycles that instruction fetches waited for */
	IMC_CC,		  /* core clock */
	IMC_TC,		  /* core clock, once for each thread of the core */
	IMC_RC,		  /* cycles of threads that run a task */
	IMC_T32,	  /* 32 MHz ticks */
	IMC_IDL,	  /* 32 MHz ticks of idle threads */
	IMC_NK,		  /* core cycles with exactly arg threads running */
	IMC_NANY,	  /* core cycles with any thread running */
	IMC_NALL,	  /* core cycles with all threads running */
	IMC_IK,		  /* instructions while exactly arg threads run */
	IMC_PURR,	  /* timebase ticks with any thread running, shared equally among them */
	IMC_SMT,	  /* 32 MHz ticks in mode ST, SMT2, SMT4 (arg 0, 1, 2) */
	IMC_SWITCHES,	  /* changes of that mode */
	/* of a chip */
	IMC_CLOCK, /* a clock of arg kHz */
	IMC_R64,   /* DMA reads of at most 64 bytes, ports in the mask arg */
	IMC_R128,  /* 128-byte lines read */
	IMC_W128,  /* 128-byte lines written */
	IMC_RBYTES,
	IMC_WBYTES,
	IMC_PB_LOCAL,	   /* bus requests of this chip that it serves itself */
	IMC_PB_REMOTE,	   /* ... that the other chip serves */
	IMC_DATA_LOCAL,	   /* data moved on the chip, in 512 bytes */
	IMC_DATA_REMOTE,   /* ... between the chips */
	IMC_LINK_COMMANDS, /* sent on link half arg */
	IMC_LINK_DATA,
	IMC_LINK_TOTAL,
	IMC_DMA_READS,
	IMC_DMA_WRITES,
};

struct imc_source {
	const char *name; /* event-name without variant */
	enum imc_kind kind;
	quipu_signal signal; /* of IMC_SIGNAL; imc_source_signals tells those of the others */
	uint32_t arg;	     /* of IMC_SIGNAL 1: the signal stands for it, so it is modelled */
	const char *desc;
};

enum imc_mode { IMC_ANY, IMC_USER, IMC_KERNEL };

/*
 * imc_source_find - what moves event @name (without the unit's prefix) of unit @unit ("mcs01",
 * "core"). Never NULL: an unknown event is IMC_NOT_MODELLED. *mode: which privilege states the
 * event is restricted to.
 */
const struct imc_source *imc_source_find(const char *unit, const char *name, enum imc_mode *mode);

/* The unit's number, which says its ports: 1 of "mcs01", 3 of "mba3". */
unsigned imc_unit_index(const char *unit);

#define IMC_MAX_SIGNALS 4u /* behind one event */

/*
 * imc_source_signals - the signals that an event of unit number @index is made of, beside cycles
 * and instructions, which every engine counts. Their number, 0 to IMC_MAX_SIGNALS.
 */
unsigned imc_source_signals(const struct imc_source *, unsigned index,
			    quipu_signal out[IMC_MAX_SIGNALS]);

#endif
