/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress of a run (progress.h). The program writes to the same terminal when and what it likes,
 * half lines too, so the line has a row of its own: the last one is taken out of the part that
 * scrolls (DECSTBM of ECMA-48 terminals, as apt does it), and the cursor is put back where it was.
 * A run of less than a second never sees any of it.
 *
 * Not here: programs that draw on the whole screen; the user says -q for those.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/progress.h"

#define DELAY_MS   1000
#define PERIOD_MS  200
#define LEAST_ROWS 4

/* Every change of the cursor's place goes out in one write together with its return, so that
 * nothing of the program comes between. */
#define SAVE	"\0337"
#define RESTORE "\0338"
#define ROOM	"\033D\033M" /* the cursor leaves the last row, by scrolling, in its column */

static int64_t ms_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000;
}

/* In the background the terminal is somebody else's. */
static bool ours(void)
{
	return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static void size(unsigned *rows, unsigned *columns)
{
	struct winsize w;

	*rows = *columns = 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_row < LEAST_ROWS)
		return;
	*rows = w.ws_row;
	*columns = w.ws_col;
}

static void put(const char *text, int n)
{
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return; /* the terminal is gone */
}

void progress_begin(struct progress *p, bool wanted)
{
	const char *term = getenv("TERM");

	*p = (struct progress){.wanted = wanted && cli_progress() && term && *term &&
					 strcmp(term, "dumb") != 0};
	clock_gettime(CLOCK_MONOTONIC, &p->begun);
	p->shown = p->begun;
}

bool progress_due(struct progress *p)
{
	return p->wanted && ms_since(&p->begun) >= DELAY_MS && ms_since(&p->shown) >= PERIOD_MS &&
	       ours();
}

void progress_show(struct progress *p, const char *fmt, ...)
{
	char text[256], line[512];
	unsigned rows, columns;
	va_list ap;
	int n = 0;

	clock_gettime(CLOCK_MONOTONIC, &p->shown);
	size(&rows, &columns);
	if (!rows || columns < 2)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (rows != p->rows) /* the first time, or the window has changed */
		n = snprintf(line, sizeof(line), ROOM SAVE "\033[1;%ur" RESTORE, rows - 1);
	p->rows = rows;
	n += snprintf(line + n, sizeof(line) - (size_t)n, SAVE "\033[%u;1H\033[K%.*s" RESTORE, rows,
		      (int)columns - 1, text);
	put(line, n);
}

void progress_end(struct progress *p)
{
	char line[64];

	if (!p->rows)
		return;
	put(line, snprintf(line, sizeof(line), SAVE "\033[r\033[%u;1H\033[K" RESTORE, p->rows));
	p->rows = 0;
}
