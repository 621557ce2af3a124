/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees for tests: written as source, compiled by dtc. */
#ifndef QUIPU_TESTS_MACHINE_DTS_H
#define QUIPU_TESTS_MACHINE_DTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/machine.h>

struct blob {
	uint8_t *data;
	size_t len;
};

struct blob blob_file(const char *path);
/* Compile; errors that dtc can be told to overlook are overlooked. */
struct blob blob_dts(const char *source);
void blob_free(struct blob *);

/* Is there a note of @kind whose path is @path and whose text holds @text? NULL: any. */
bool noted(const struct quipu_notes *, enum quipu_note_kind kind, const char *path,
	   const char *text);
void print_notes(const struct quipu_notes *);

#endif
