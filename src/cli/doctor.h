/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `quipu doctor` share: doctor.c (the engine, tools, output) and doctor_host.c
 * (the host's kernel and its counters). */
#ifndef QUIPU_CLI_DOCTOR_H
#define QUIPU_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum verdict { OK, LIMITED, MISSING };

struct line {
	const char *section;
	char *name, *text, *remedy; /* remedy: "" when there is nothing to do */
	enum verdict verdict;
};

struct doctor {
	struct line *lines;
	size_t n;
	const char *section; /* of the lines that follow */
	char *plugin;
	bool counts; /* some instruction set can be run and counted */
};

/* One line. @remedy may be NULL. */
void doctor_say(struct doctor *, const char *name, enum verdict, const char *remedy,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Sections "Host" and "Counters of the host". */
void doctor_host(struct doctor *);
void doctor_counters(struct doctor *);

#endif
