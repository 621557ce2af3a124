/* SPDX-License-Identifier: BSD-2-Clause */
/* A catalog as its authors publish it, and the machine that it becomes; see catalog.c. */
#ifndef QUIPU_PLATFORM_IMC_CATALOG_H
#define QUIPU_PLATFORM_IMC_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

/* imc_catalog_is - is the flattened tree of @len bytes a catalog, and no machine? */
bool imc_catalog_is(const void *fdt, size_t len);
/*
 * imc_catalog_machine - @machine with @catalog for its node imc-counters, as firmware makes it at
 * boot. Both flattened trees may be anybody's. 0 and *out (the caller frees it), -EINVAL when one
 * of them is no valid tree, -ENOMEM.
 */
int imc_catalog_machine(const void *catalog, size_t catalog_len, const void *machine,
			size_t machine_len, void **out, size_t *out_len);

#endif
