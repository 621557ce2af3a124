/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's exec family: a program of the machine's own instruction set is run under
 * the engine, with the environment that it would have had without us; the exec of any other is
 * announced, so that enable_on_exec happens. perf ABI sheet C6.
 *
 * Called between vfork and exec as well, so nothing of the parent's is changed: each exec has a
 * connection of its own.
 */
