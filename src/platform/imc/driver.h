/* SPDX-License-Identifier: BSD-2-Clause */
/* The IMC drivers: nest_*, core_imc, thread_imc, trace_imc. They talk to firmware, registers and
 * memory alone. */
#ifndef QUIPU_PLATFORM_IMC_DRIVER_H
#define QUIPU_PLATFORM_IMC_DRIVER_H

#include <quipu/imc.h>
#include <quipu/platform.h>

#include "platform/imc/tree.h"

struct imc_driver;

/* imc_driver_new - probe: a PMU for each unit of @tree (kept by the caller). 0 or errno. */
int imc_driver_new(const struct quipu_platform_env *, struct quipu_imc *,
		   const struct imc_tree *tree, struct imc_driver **);
void imc_driver_free(struct imc_driver *);
void imc_driver_describe(const struct imc_driver *, quipu_describe_fn *, void *arg);
/* imc_driver_report - what became of the records of trace mode; nothing where there were none. */
void imc_driver_report(const struct imc_driver *, quipu_describe_fn *, void *arg);

#endif
