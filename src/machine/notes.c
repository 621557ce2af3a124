// SPDX-License-Identifier: BSD-2-Clause
/*
 * Notes about a tree: what was understood, ignored or is wrong, and where. Text from a tree is
 * hostile: what does not print is shown as '?', so that a note can go to a terminal as it is.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu/machine.h>

static void printable(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

void quipu_note(struct quipu_notes *notes, enum quipu_note_kind kind, const char *path,
		const char *fmt, ...)
{
	struct quipu_note note = {.kind = kind};
	struct quipu_note *items;
	va_list ap;

	if (!notes)
		return;
	va_start(ap, fmt);
	if (vasprintf(&note.text, fmt, ap) < 0)
		note.text = NULL;
	va_end(ap);
	if (asprintf(&note.path, "%s", path ? path : "") < 0)
		note.path = NULL;
	items = reallocarray(notes->items, notes->n + 1, sizeof(*items));
	if (items)
		notes->items = items;
	if (!items || !note.text || !note.path) {
		free(note.text);
		free(note.path);
		return;
	}
	printable(note.text);
	printable(note.path);
	items[notes->n++] = note;
}

void quipu_notes_free(struct quipu_notes *notes)
{
	for (size_t i = 0; i < notes->n; i++) {
		free(notes->items[i].path);
		free(notes->items[i].text);
	}
	free(notes->items);
	*notes = (struct quipu_notes){0};
}
