/* SPDX-License-Identifier: BSD-2-Clause */
/* Run a small program and keep the start of what it says. */
#ifndef QUIPU_CLI_CAPTURE_H
#define QUIPU_CLI_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * capture - run @argv (searched in PATH) with standard output and error in @out, for at most
 * @timeout_ms; then it is killed. The exit status, 128 + signal, or -errno: -ENOENT not found,
 * -ETIMEDOUT.
 */
int capture(char *const argv[], char *out, size_t len, int timeout_ms);
/* The file that execvp would run, to be freed; NULL when there is none. */
char *find_program(const char *name);

#endif
