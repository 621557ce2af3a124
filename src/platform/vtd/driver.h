/* SPDX-License-Identifier: BSD-2-Clause */
/* The dmar PMU driver, its event table, and what the room and the tests call of them. */
#ifndef VTD_DRIVER_H
#define VTD_DRIVER_H

#include <quipu/event.h>
#include <quipu/machine.h>
#include <quipu/pmu.h>
#include <quipu/vtd.h>

/* ---- events.c ---- */
struct vtd_event_name {
	const char *name;
	unsigned group;
	uint32_t mask;
	const char *terms;
	const char *desc;
	const char *why_zero; /* with functional timing it stays 0, and why; else NULL */
	unsigned filters;     /* Table 49: bit per filter, as PERFCAP 36:32 */
};
extern const struct vtd_event_name vtd_event_names[];
extern const size_t vtd_event_names_n;
/* Filters that Table 49 names for a single event; 0 for what it does not have. */
unsigned vtd_event_filters(unsigned group, uint32_t mask);
/* why_zero of a single event, NULL for all others. */
const char *vtd_event_why_zero(unsigned group, uint32_t mask);

/* ---- driver.c ---- */

/* The CPU that reads the counters of all units; /sys/bus/event_source/devices/dmarN/cpumask. */
struct vtd_cpumask {
	int cpu; /* -1: none left */
	char text[16];
	bool *online;
	unsigned ncpus;
};
int vtd_cpumask_init(struct vtd_cpumask *, unsigned ncpus);
void vtd_cpumask_destroy(struct vtd_cpumask *);

struct vtd_driver_env {
	struct quipu_core *core;
	struct quipu_vtd *unit; /* through its registers only */
	unsigned number;	/* dmarN */
	struct vtd_cpumask *cpumask;
	bool filters_extended; /* for telling a user why a counter will stay 0 */
	bool queued;
	uint64_t msi_addr;
	uint32_t msi_data;
	/* Let the unit catch up with the machine's time. */
	void (*sync)(void *arg);
	void *sync_arg;
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

struct vtd_driver;
/*
 * vtd_driver_new - take the unit's PMU and register it. 0 with *out NULL where the unit has none
 * that the driver takes; *why then says what is missing. -ENOMEM, or the core's errno.
 */
int vtd_driver_new(const struct vtd_driver_env *, struct vtd_driver **out, const char **why);
void vtd_driver_free(struct vtd_driver *);
/* The unit goes while the machine runs: unregister the PMU, then free. NULL: nothing. */
void vtd_driver_remove(struct vtd_driver *);
/* The overflow interrupt was sent. */
void vtd_driver_interrupt(struct vtd_driver *);
struct quipu_pmu *vtd_driver_pmu(struct vtd_driver *);
unsigned vtd_driver_counters(const struct vtd_driver *);
/* The submit routine: the command's status code, -ENODEV, -EBUSY, -ETIMEDOUT. */
int vtd_driver_command(struct vtd_driver *, unsigned code, uint64_t a, uint64_t b);
/* An event on a counter, NULL when it is free. */
struct quipu_event *vtd_driver_on(const struct vtd_driver *, unsigned counter);

/* ---- class.c ---- */
#define VTD_CLASS_FILES 6u

/* /sys/class/iommu/dmarN/intel-iommu/: what the IOMMU driver shows of a unit, with or without PMU.
 */
struct vtd_class {
	struct {
		char path[56], text[24];
	} file[VTD_CLASS_FILES];
	struct quipu_pmu_file files[VTD_CLASS_FILES + 1];
};
/* @base: of its registers; @domains: in use. files is then ready for quipu_core_show. */
void vtd_class_init(struct vtd_class *, struct quipu_vtd *unit, unsigned number, uint64_t base,
		    unsigned domains);

#endif
