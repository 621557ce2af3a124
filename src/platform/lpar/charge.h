/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hypervisor code a partition's activity makes run, and for how long: declared by the tree
 * (sheet 7), not executed. events.c reads charges and triggers, charge.c applies them.
 */
#ifndef QUIPU_PLATFORM_LPAR_CHARGE_H
#define QUIPU_PLATFORM_LPAR_CHARGE_H

#include <quipu/platform.h>

#include "platform/lpar/tree.h"
#include "platform/power/hardware.h"

#define CHARGES	     64u
#define CHARGE_PATH  16u /* most methods of a charge */
#define CHARGE_EXTRA 8u	 /* most events besides */
#define TRIGGER_MOST 8u	 /* charges of a trigger */

struct lpar_method {
	uint64_t start, size;
	char *name;
	uint32_t insns, per_unit;
};

struct lpar_charge {
	char name[32];
	uint32_t phandle;
	uint32_t key; /* of the hcall, or the vector */
	bool vector;
	bool dispatches; /* the virtual processor left its processor */
	struct lpar_method path[CHARGE_PATH];
	unsigned npath;
	struct power_extra extra[CHARGE_EXTRA]; /* of each call */
	unsigned nextra;
	uint32_t max_units;
	uint64_t count, insns, cycles; /* what it has cost */
};

/* Those of enum quipu_activity, and what else a tree may name. */
enum lpar_trigger {
	LPAR_TRIGGER_DISPATCH = QUIPU_ACTIVITIES, /* seen by the room itself */
	LPAR_TRIGGER_INTERRUPT,			  /* of devices; this machine has none, */
	LPAR_TRIGGER_DMA_MAP,			  /* and none that maps memory */
	LPAR_TRIGGER_DMA_UNMAP,
	LPAR_TRIGGERS
};

struct lpar_charges {
	struct lpar_charge charge[CHARGES];
	unsigned n;
	struct {
		uint8_t charge[TRIGGER_MOST];
		unsigned n;
	} trigger[LPAR_TRIGGERS];
	uint32_t cpi_milli;
	uint64_t period_us; /* of dispatches; 0: processors are dedicated */
	bool synthetic;

	struct power_pmu *pmu;
	unsigned ncpus;
	uint32_t *carry; /* thousandths of a cycle, by CPU */
	void (*spend)(void *arg, unsigned cpu, uint64_t cycles);
	void *spend_arg;
};

/* 0, or -EINVAL with notes. @map: the methods' places. */
int lpar_charges_read(struct lpar_charges *, const struct lpar_tree *, const struct quipu_hvmap *);
int lpar_charges_start(struct lpar_charges *, struct power_pmu *,
		       const struct quipu_platform_env *);
void lpar_charges_free(struct lpar_charges *);
/* A bit for each enum quipu_activity that costs something here. */
uint32_t lpar_charges_watches(const struct lpar_charges *);
/* It happened: each of the trigger's charges is a visit to the hypervisor of its own. */
void lpar_charges_apply(struct lpar_charges *, const struct quipu_interrupt *at, unsigned trigger,
			uint64_t units);
void lpar_charges_report(const struct lpar_charges *, quipu_describe_fn *, void *arg);

#endif
