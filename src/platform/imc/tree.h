/* SPDX-License-Identifier: BSD-2-Clause */
/* The imc-counters node as units with events: what the firmware leaves of the catalog, and what the
 * kernel makes of it. */
#ifndef QUIPU_PLATFORM_IMC_TREE_H
#define QUIPU_PLATFORM_IMC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/machine.h>

#include "platform/imc/events.h"

#define IMC_MAX_UNITS  256u
#define IMC_MAX_EVENTS 4096u /* of a unit */
#define IMC_MAX_CHIPS  16u
#define IMC_MAX_SIZE   (1u << 20) /* bytes of a counter memory */

enum imc_type { IMC_THREAD = 0x1, IMC_TRACE = 0x2, IMC_CORE = 0x4, IMC_NEST = 0x10 };

struct imc_event {
	char *name;			 /* prefix + event-name */
	char *file;			 /* "event=0x28" */
	const char *scale, *unit, *desc; /* in the tree's memory; NULL: none */
	uint32_t config;
	uint64_t divisor;
	const struct imc_source *source;
	enum imc_mode mode;
};

struct imc_chip {
	uint32_t id;
	uint64_t region; /* base-addr + offset */
};

struct imc_unit {
	char node[32]; /* name up to @ */
	char *path;
	enum imc_type type;
	uint32_t size;
	bool nest; /* it has an offset: what makes it a nest unit for the kernel */
	struct imc_chip chip[IMC_MAX_CHIPS];
	unsigned nchips;
	struct imc_event *events;
	unsigned nevents;
};

struct imc_tree {
	struct imc_unit *units;
	unsigned nunits;
	uint32_t region_offset, region_size, control_offset;
	uint64_t available;  /* the vector */
	bool exact;	     /* quipu,imc-exact */
	bool document_names; /* quipu,imc-names = "document": directories without _imc */
	bool nest_down;	     /* a chip's microcode is not there */
	uint32_t pvr;
};

#define IMC_AVAILABLE UINT64_C(0xffff8073f007e000) /* what the microcode takes for 0 */

/* imc_homer - where the memory of the @index-th chip of a machine lies. */
uint64_t imc_homer(unsigned index);
/* imc_chips - the distinct chip ids (sockets) of @m in order of CPUs; at most IMC_MAX_CHIPS. */
unsigned imc_chips(const struct quipu_machine *m, uint32_t *ids);

/*
 * imc_tree_read - what node imc-counters says. @firmware: first do what the firmware does to it
 * (sheet 1.6). Nothing in a tree is fatal: what is wrong is noted (@notes may be NULL) and left
 * out. 0, -ENOMEM.
 */
int imc_tree_read(const struct quipu_machine *m, bool firmware, struct quipu_notes *notes,
		  struct imc_tree *);
void imc_tree_free(struct imc_tree *);

#endif
