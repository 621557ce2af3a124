/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec_log [PERIOD]...: the independent count. Reads on standard input what
 * `qemu-riscv64 -singlestep -d in_asm,exec,nochain` writes: with one instruction per block and no
 * chaining, one "Trace" line is one executed instruction, and its second address is the pc. The
 * listing of each translated instruction tells which of them are ecall or ebreak: these trap and do
 * not retire (RISC-V privileged specification, minstret).
 *
 * Prints "every PERIOD HEX", the pc of every PERIOD-th retired instruction, in order; then "total
 * N" (retired), "last HEX", and "pc HEX N" for each pc. It knows nothing of quipu, and quipu's
 * plugin has no part in it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PERIODS 8

struct cell {
	uint64_t pc;
	uint64_t count;
	bool used, traps;
};

struct counts {
	struct cell *cell;
	size_t size; /* a power of two */
	size_t used;
};

static struct cell *find(struct counts *c, uint64_t pc);

static void grow(struct counts *c)
{
	struct counts more = {calloc(c->size * 2, sizeof(struct cell)), c->size * 2, 0};

	if (!more.cell)
		abort();
	for (size_t i = 0; i < c->size; i++)
		if (c->cell[i].used)
			*find(&more, c->cell[i].pc) = c->cell[i];
	free(c->cell);
	*c = more;
}

static struct cell *find(struct counts *c, uint64_t pc)
{
	size_t i;

	if (c->used * 2 >= c->size)
		grow(c);
	for (i = (pc >> 1) * 0x9e3779b97f4a7c15u & (c->size - 1); c->cell[i].used;
	     i = (i + 1) & (c->size - 1))
		if (c->cell[i].pc == pc)
			return &c->cell[i];
	c->used++;
	c->cell[i] = (struct cell){.pc = pc, .used = true};
	return &c->cell[i];
}

/* "Trace 0: 0x7f.. [cs_base/pc/flags/cflags] symbol" */
static bool trace_pc(const char *line, uint64_t *pc)
{
	const char *p;

	if (strncmp(line, "Trace ", 6))
		return false;
	p = strchr(line, '[');
	p = p ? strchr(p, '/') : NULL;
	if (!p)
		return false;
	*pc = strtoull(p + 1, NULL, 16);
	return true;
}

/* "0x0000000000010224:  00000073          ecall" */
static void note_trap(struct counts *c, const char *line)
{
	if (strncmp(line, "0x", 2) || (!strstr(line, " ecall") && !strstr(line, " ebreak")))
		return;
	find(c, strtoull(line, NULL, 16))->traps = true;
}

int main(int argc, char **argv)
{
	uint64_t period[MAX_PERIODS], total = 0, pc, last = 0;
	int periods = argc - 1 < MAX_PERIODS ? argc - 1 : MAX_PERIODS;
	struct counts c = {calloc(1024, sizeof(struct cell)), 1024, 0};
	static char line[4096];

	if (!c.cell)
		abort();
	for (int i = 0; i < periods; i++)
		period[i] = strtoull(argv[i + 1], NULL, 0);
	while (fgets(line, sizeof(line), stdin)) {
		struct cell *cell;

		if (!trace_pc(line, &pc)) {
			note_trap(&c, line);
			continue;
		}
		cell = find(&c, pc);
		if (cell->traps)
			continue;
		cell->count++;
		total++;
		last = pc;
		for (int i = 0; i < periods; i++)
			if (period[i] && total % period[i] == 0)
				printf("every %" PRIu64 " %" PRIx64 "\n", period[i], pc);
	}
	printf("total %" PRIu64 "\nlast %" PRIx64 "\n", total, last);
	for (size_t i = 0; i < c.size; i++)
		if (c.cell[i].used && c.cell[i].count)
			printf("pc %" PRIx64 " %" PRIu64 "\n", c.cell[i].pc, c.cell[i].count);
	free(c.cell);
	return 0;
}
