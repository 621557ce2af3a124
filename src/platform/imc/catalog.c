/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A catalog of in-memory counters is a tree by itself; firmware hangs it below the root as node
 * imc-counters (skiboot hw/imc.c; IMC sheet 1.6, steps 1 and 7). Here the same is done with the
 * tree of a machine, so that a published catalog can be looked at and run as it is. What firmware
 * takes away from it is tree.c.
 */
#include "platform/imc/catalog.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>

#define COMPATIBLE   "ibm,opal-in-memory-counters"
#define MAX_DEPTH    16
#define PHANDLE_BASE 0x10000u /* the catalog's count from here on, past those of the machine */

/* Whether all of the tree is sound is asked only where its root may be a catalog's. */
bool imc_catalog_is(const void *fdt, size_t len)
{
	int n;
	const void *list;

	if (len < FDT_V17_SIZE || fdt_check_header(fdt) || fdt_totalsize(fdt) > len)
		return false;
	list = fdt_getprop(fdt, 0, "compatible", &n);
	return list && memmem(list, (size_t)n, COMPATIBLE, sizeof(COMPATIBLE)) &&
	       !fdt_check_full(fdt, len) && !fdt_node_check_compatible(fdt, 0, COMPATIBLE) &&
	       fdt_path_offset(fdt, "/cpus") < 0;
}

struct copy {
	const void *from;
	void *to;
	bool catalog;
	int err;
};

static bool is_reference(const char *name)
{
	return !strcmp(name, "phandle") || !strcmp(name, "linux,phandle") ||
	       !strcmp(name, "events");
}

static void copy_properties(struct copy *c, int node)
{
	int at;

	fdt_for_each_property_offset(at, c->from, node)
	{
		const char *name;
		int len;
		const void *value = fdt_getprop_by_offset(c->from, at, &name, &len);
		uint32_t moved;

		if (!value || c->err)
			return;
		if (c->catalog && !strcmp(name, "name"))
			continue; /* the root of a published catalog has an empty one */
		if (c->catalog && len == 4 && is_reference(name)) {
			moved = cpu_to_fdt32(bits_be32(value) + PHANDLE_BASE);
			value = &moved;
		}
		c->err = fdt_property(c->to, name, value, len);
	}
}

static void copy_node(struct copy *c, int node, const char *name, unsigned depth);

static void copy_children(struct copy *c, int node, unsigned depth)
{
	int child;

	fdt_for_each_subnode(child, c->from, node)
	{
		if (c->err)
			return;
		/* The machine's own catalog makes room. */
		if (c->catalog || fdt_node_check_compatible(c->from, child, COMPATIBLE))
			copy_node(c, child, fdt_get_name(c->from, child, NULL), depth + 1);
	}
}

static void copy_node(struct copy *c, int node, const char *name, unsigned depth)
{
	if (!name || depth > MAX_DEPTH) {
		c->err = -FDT_ERR_BADSTRUCTURE;
		return;
	}
	c->err = fdt_begin_node(c->to, name);
	copy_properties(c, node);
	copy_children(c, node, depth);
	if (!c->err)
		c->err = fdt_end_node(c->to);
}

static int join(const void *catalog, const void *machine, void *to, size_t room)
{
	struct copy own = {.from = machine, .to = to}, other = {catalog, to, true, 0};

	if (fdt_create(to, (int)room) || fdt_finish_reservemap(to) || fdt_begin_node(to, ""))
		return -ENOMEM;
	copy_properties(&own, 0);
	copy_children(&own, 0, 0);
	if (!own.err)
		copy_node(&other, 0, "imc-counters", 1);
	if (own.err || other.err || fdt_end_node(to) || fdt_finish(to))
		return -EINVAL;
	return 0;
}

int imc_catalog_machine(const void *catalog, size_t catalog_len, const void *machine,
			size_t machine_len, void **out, size_t *out_len)
{
	size_t room = 2 * (catalog_len + machine_len) + 4096;
	void *to;
	int rc;

	if (room > INT32_MAX || fdt_check_full(catalog, catalog_len) ||
	    fdt_check_full(machine, machine_len))
		return -EINVAL;
	to = malloc(room);
	if (!to)
		return -ENOMEM;
	rc = join(catalog, machine, to, room);
	if (rc) {
		free(to);
		return rc;
	}
	*out = to;
	*out_len = fdt_totalsize(to);
	return 0;
}
