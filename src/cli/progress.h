/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a long run is: one line at the foot of the terminal, which the program's own output does
 * not meet. */
#ifndef QUIPU_CLI_PROGRESS_H
#define QUIPU_CLI_PROGRESS_H

#include <stdbool.h>
#include <time.h>

struct progress {
	bool wanted;
	unsigned rows; /* of the terminal, while its last row is ours; 0: it is not */
	struct timespec begun, shown;
};

/* progress_begin - from here on it is a long run, if it is one. Draws nothing when standard error
 * is no terminal that could show it, nor with @wanted false. */
void progress_begin(struct progress *, bool wanted);
/* progress_due - is there something to draw? To be asked often; true a few times a second. */
bool progress_due(struct progress *);
/* progress_show - draw the line, one row of it. */
void progress_show(struct progress *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* progress_end - the terminal is as it was. Before anything else is said; safe at any time. */
void progress_end(struct progress *);

#endif
