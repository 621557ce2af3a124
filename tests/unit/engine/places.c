/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what the decoder of an instruction set says of instructions: where they access memory and
 * which registers they change (decode.h). places.py holds it against the disassembler.
 *
 *	places ISA < LIST
 *
 * LIST has a line for each instruction, "ADDRESS BYTES", both hexadecimal, the bytes in memory
 * order. So has the output: "size base bytes offset reg by_known by also class access", decimal, as
 * in the structures.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qemu/decode.h"

#define LONGEST 16u

static unsigned from_hex(const char *text, uint8_t *bytes)
{
	unsigned n = 0;

	for (; n < LONGEST && sscanf(text + 2 * n, "%2hhx", &bytes[n]) == 1; n++)
		;
	return n;
}

static void print(const struct decoded *d)
{
	const struct place *p = &d->place;
	const struct change *c = &d->change;

	printf("%u %u %u %" PRId32 " %u %d %" PRId32 " %u %u %u\n", d->size, p->base, p->bytes,
	       p->offset, c->reg, c->by_known, c->by, c->also, d->class, d->access);
}

int main(int argc, char **argv)
{
	const struct isa *isa = argc == 2 ? isa_find(argv[1]) : NULL;
	char text[2 * LONGEST + 1];
	uint64_t address;

	if (!isa) {
		fprintf(stderr, "usage: places ISA < LIST\n");
		return 2;
	}
	while (scanf("%" SCNx64 " %32s", &address, text) == 2) {
		uint8_t bytes[LONGEST] = {0};
		struct decoded d;

		isa->decode(bytes, from_hex(text, bytes), address, &d);
		print(&d);
	}
	return 0;
}
