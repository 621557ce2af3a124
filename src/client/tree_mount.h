/* SPDX-License-Identifier: BSD-2-Clause */
/* The generated tree where clients look for it: bound over /sys and /proc in a mount namespace of
 * our own. */
#ifndef QUIPU_CLIENT_TREE_MOUNT_H
#define QUIPU_CLIENT_TREE_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include <quipu/tree.h>

/*
 * tree_unshare - a mount namespace of our own, in a user namespace when we are not root (*user).
 * Call it before any thread exists. 0, or -errno, and then nothing has changed.
 */
int tree_unshare(bool *user);
/*
 * tree_mount - write the tree into a private tmpfs and bind it (perf ABI sheet C2). Nothing is
 * left behind in the host's file system. 0, or -errno with a line in @why.
 * tree_write - write it below the directory @root, for clients that look there (SYSFS_PATH, path
 * redirection).
 * tree_remove - take that away again.
 */
int tree_mount(const struct quipu_tree *, char *why, size_t why_len);
int tree_write(const struct quipu_tree *, const char *root, char *why, size_t why_len);
void tree_remove(const char *root);
/*
 * tree_update - what was written of @old becomes @now: files that differ are written again, files
 * and directories that are gone are removed. @root: that of tree_write; "" after tree_mount, and
 * then only below what was bound. 0, or the first -errno.
 */
int tree_update(const struct quipu_tree *old, const struct quipu_tree *now, const char *root);

#endif
