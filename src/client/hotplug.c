/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device with a PMU is taken out of the machine that clients are on, or put back: the events that
 * they have open on it are revoked (quipu_core_unregister), and its files leave the tree.
 */
#include <errno.h>

#include <quipu/system.h>

#include "client/gate_impl.h"
#include "client/tree_mount.h"

int gate_update_tree(struct gate *g)
{
	struct quipu_tree *now, **shown = g->config.tree;
	int rc;

	if (!shown || !*shown)
		return 0;
	now = quipu_tree_new(quipu_system_machine(g->system), g->core);
	if (!now)
		return -ENOMEM;
	rc = tree_update(*shown, now, g->config.tree_root);
	quipu_tree_free(*shown);
	*shown = now;
	return rc;
}

int gate_hotplug(struct gate *g, const char *name, bool present)
{
	int rc = quipu_system_hotplug(g->system, name, present);

	if (rc == -ENODEV)
		quipu_core_reason(g->core, "%.64s is no device that can be taken out", name);
	if (rc == -EALREADY)
		quipu_core_reason(g->core, "%.64s is %s", name,
				  present ? "there" : "taken out already");
	if (rc)
		return rc;
	rc = gate_update_tree(g);
	tree_watch_renew(g);
	return rc;
}
