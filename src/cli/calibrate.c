/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu machine calibrate FILE: costs of a machine's classes and misses from measured runs, as a
 * piece of device tree.
 *
 * FILE is CSV. Its first line names the columns: "cycles" (measured on the board), optionally "run"
 * (a label), and what is to be priced: instruction classes ("mul"; several joined by + get one
 * price: "alu+branch"), and misses: mispredict, memory, walk, second-tlb, l2, l3 (accesses that
 * level served). Each further line is a run, with how often each happened (quipu stat counts them).
 * # begins a comment. The costs are those of least squared relative error.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/model.h>

#include "cli/calibrate.h"
#include "cli/cli.h"
#include "model/fit.h"

#define MOST_FIELDS (MODEL_FIT_COLUMNS + 2)
#define MOST_RUNS   4096
#define MOST_COUNT  0x1p64 /* no counter holds more */
#define LABEL	    -1
#define CYCLES	    -2

struct column {
	char *name;
	int fit; /* its place among the priced ones, LABEL or CYCLES */
};

struct calibration {
	const char *file;
	unsigned line;
	struct column columns[MOST_FIELDS];
	size_t ncolumns, npriced;
	size_t priced[MODEL_FIT_COLUMNS]; /* column of each */
	double lo[MODEL_FIT_COLUMNS], hi[MODEL_FIT_COLUMNS], cost[MODEL_FIT_COLUMNS];
	struct {
		char *label;
		double cycles, count[MODEL_FIT_COLUMNS];
	} * runs;
	size_t nruns;
};

/* Misses and where the tree keeps their price. */
static const struct {
	const char *name, *property;
	unsigned most;
} misses[] = {
	{"mispredict", "quipu,penalty-mispredict", QUIPU_MODEL_MISPREDICT},
	{"memory", "quipu,penalty-memory", QUIPU_MODEL_PENALTY},
	{"walk", "quipu,penalty-walk", QUIPU_MODEL_PENALTY},
	{"second-tlb", "quipu,penalty-second-tlb", QUIPU_MODEL_PENALTY},
	{"l2", NULL, QUIPU_MODEL_PENALTY},
	{"l3", NULL, QUIPU_MODEL_PENALTY},
};

static int wrong(const struct calibration *c, const char *what, const char *word)
{
	return cli_error("%s:%u: %s%s%s%s", c->file, c->line, what, *word ? " '" : "", word,
			 *word ? "'" : "");
}

static bool is_class(const char *name, size_t len)
{
	for (unsigned i = 0; i < QUIPU_INSN_CLASSES; i++) {
		const char *class = quipu_insn_class_name((enum quipu_insn_class)i);

		if (strlen(class) == len && !memcmp(class, name, len))
			return true;
	}
	return false;
}

static bool all_classes(const char *name)
{
	for (;;) {
		size_t n = strcspn(name, "+");

		if (!is_class(name, n))
			return false;
		if (!name[n])
			return true;
		name += n + 1;
	}
}

static int find_miss(const char *name)
{
	for (size_t i = 0; i < sizeof(misses) / sizeof(misses[0]); i++)
		if (!strcmp(misses[i].name, name))
			return (int)i;
	return -1;
}

static int add_column(struct calibration *c, const char *name)
{
	struct column *column = &c->columns[c->ncolumns];
	int miss = find_miss(name);

	if (c->ncolumns == MOST_FIELDS)
		return wrong(c, "too many columns", "");
	for (size_t i = 0; i < c->ncolumns; i++)
		if (!strcmp(c->columns[i].name, name))
			return wrong(c, "this column is there twice:", name);
	column->name = strdup(name);
	if (!column->name)
		return cli_error("out of memory");
	c->ncolumns++;
	column->fit = !strcmp(name, "run") ? LABEL : CYCLES;
	if (column->fit == LABEL || !strcmp(name, "cycles"))
		return 0;
	if (miss < 0 && !all_classes(name))
		return wrong(
			c,
			"a column is cycles, run, an instruction class (several with +), mispredict, memory, walk, "
			"second-tlb, l2 or l3, not",
			name);
	if (c->npriced == MODEL_FIT_COLUMNS)
		return wrong(c, "too many columns", "");
	c->lo[c->npriced] = miss < 0 ? 1 : 0;
	c->hi[c->npriced] = miss < 0 ? QUIPU_MAX_COST : misses[miss].most;
	c->priced[c->npriced] = c->ncolumns - 1;
	column->fit = (int)c->npriced++;
	return 0;
}

/* What is printed into a comment must not end it, nor move the terminal's cursor. */
static void make_plain(char *text)
{
	for (char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at) || (at > text && at[-1] == '*' && *at == '/'))
			*at = '?';
}

/* The next field of a line, without blanks around it; *@rest NULL at the end. */
static char *field(char **rest)
{
	char *at = strsep(rest, ","), *end;

	while (isspace((unsigned char)*at))
		at++;
	end = at + strlen(at);
	while (end > at && isspace((unsigned char)end[-1]))
		*--end = 0;
	return at;
}

static int read_header(struct calibration *c, char *line)
{
	bool cycles = false;

	while (line) {
		int rc = add_column(c, field(&line));

		if (rc)
			return rc;
		cycles |= c->columns[c->ncolumns - 1].fit == CYCLES;
	}
	if (!cycles)
		return wrong(c, "no column is named cycles", "");
	return c->npriced ? 0 : wrong(c, "no column is to be priced", "");
}

static int read_run(struct calibration *c, char *line)
{
	size_t at = 0;

	if (c->nruns == MOST_RUNS)
		return wrong(c, "too many runs", "");
	for (; line && at < c->ncolumns; at++) {
		char *text = field(&line), *end;
		int fit = c->columns[at].fit;
		double v;

		if (fit == LABEL) {
			make_plain(text);
			c->runs[c->nruns].label = strdup(text);
			continue;
		}
		v = strtod(text, &end);
		if (end == text || *end || !isfinite(v) || v < 0 || v > MOST_COUNT ||
		    (fit == CYCLES && v < 1))
			return wrong(c,
				     fit == CYCLES ? "cycles are a number above 0, not"
						   : "a count is no",
				     text);
		if (fit == CYCLES)
			c->runs[c->nruns].cycles = v;
		else
			c->runs[c->nruns].count[fit] = v;
	}
	if (line || at < c->ncolumns)
		return wrong(c, "this line has another number of fields than the first", "");
	c->nruns++;
	return 0;
}

static int read_lines(struct calibration *c, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (!rc && getline(&line, &room, f) >= 0) {
		c->line++;
		line[strcspn(line, "#\r\n")] = 0;
		if (!line[strspn(line, " \t")])
			continue;
		rc = c->ncolumns ? read_run(c, line) : read_header(c, line);
	}
	free(line);
	if (!rc && ferror(f))
		rc = cli_error("cannot read %s: %s", c->file, strerror(errno));
	return rc;
}

static const char *name_of(const struct calibration *c, size_t fit)
{
	return c->columns[c->priced[fit]].name;
}

static double modelled(const struct calibration *c, size_t run)
{
	double sum = 0;

	for (size_t i = 0; i < c->npriced; i++)
		sum += c->cost[i] * c->runs[run].count[i];
	return sum;
}

static bool never_counted(const struct calibration *c, size_t fit)
{
	for (size_t i = 0; i < c->nruns; i++)
		if (c->runs[i].count[fit] > 0)
			return false;
	return true;
}

static int solve(struct calibration *c)
{
	struct model_fit fit;
	int dependent;

	if (c->nruns < c->npriced)
		return cli_error(
			"%s: %zu runs cannot tell %zu prices apart; measure more runs, or join classes with +",
			c->file, c->nruns, c->npriced);
	model_fit_init(&fit, c->npriced);
	for (size_t i = 0; i < c->nruns; i++)
		model_fit_add(&fit, c->runs[i].count, c->runs[i].cycles);
	for (size_t i = 0; i < c->npriced; i++)
		if (never_counted(c, i))
			return cli_error(
				"%s: no run has any %s; measure one that has, or leave the column out",
				c->file, name_of(c, i));
	dependent = model_fit_dependent(&fit);
	if (dependent >= 0)
		return cli_error(
			"%s: the runs do not tell %s from the columns before it; measure a run where it differs, or "
			"join it with +",
			c->file, name_of(c, (size_t)dependent));
	model_fit_solve(&fit, c->lo, c->hi, c->cost);
	for (size_t i = 0; i < c->npriced; i++)
		c->cost[i] = round(c->cost[i]);
	return 0;
}

/* ---- what is printed ---- */

static void print_property(const struct calibration *c, size_t i)
{
	const char *name = name_of(c, i);
	int miss = find_miss(name);

	if (miss >= 0 && misses[miss].property) {
		printf("\t\t%s = <%.0f>;\n", misses[miss].property, c->cost[i]);
		return;
	}
	if (miss >= 0)
		return;
	while (*name) {
		size_t n = strcspn(name, "+");

		printf("\t\tquipu,cost-%.*s = <%.0f>;\n", (int)n, name, c->cost[i]);
		name += n + (name[n] == '+');
	}
}

static int print_tree(const struct calibration *c)
{
	char *file = strdup(c->file);

	if (!file)
		return cli_error("out of memory");
	make_plain(file);
	printf("/* Calibrated from %s, %zu runs; costs are modelled. */\n/ {\n\tcpus {\n", file,
	       c->nruns);
	free(file);
	for (size_t i = 0; i < c->npriced; i++)
		print_property(c, i);
	printf("\t};\n};\n");
	for (size_t i = 0; i < c->npriced; i++) {
		int miss = find_miss(name_of(c, i));

		if (miss >= 0 && !misses[miss].property)
			printf("/* in each cache node of level %s: quipu,latency = <%.0f>; */\n",
			       misses[miss].name + 1, c->cost[i]);
	}
	return 0;
}

static void print_errors(const struct calibration *c)
{
	double worst = 0, squares = 0;

	printf("/*\n * %-24s %16s %16s %8s\n", "run", "cycles measured", "modelled", "error");
	for (size_t i = 0; i < c->nruns; i++) {
		double error = modelled(c, i) / c->runs[i].cycles - 1;

		printf(" * %-24s %16.0f %16.0f %+7.1f%%\n",
		       c->runs[i].label ? c->runs[i].label : "", c->runs[i].cycles, modelled(c, i),
		       100 * error);
		worst = fmax(worst, fabs(error));
		squares += error * error;
	}
	printf(" * mean error %.1f%%, worst %.1f%%\n */\n", 100 * sqrt(squares / (double)c->nruns),
	       100 * worst);
}

int calibrate(const char *file)
{
	struct calibration c = {.file = file};
	FILE *f = fopen(file, "re");
	int rc;

	if (!f)
		return cli_error("cannot read %s: %s", file, strerror(errno));
	c.runs = calloc(MOST_RUNS, sizeof(*c.runs));
	rc = c.runs ? read_lines(&c, f) : cli_error("out of memory");
	fclose(f);
	if (!rc && !c.ncolumns)
		rc = cli_error(
			"%s is empty; its first line names the columns (cycles, and classes or misses)",
			file);
	if (!rc)
		rc = solve(&c);
	if (!rc)
		rc = print_tree(&c);
	if (!rc)
		print_errors(&c);
	for (size_t i = 0; i < c.ncolumns; i++)
		free(c.columns[i].name);
	for (size_t i = 0; c.runs && i < MOST_RUNS; i++)
		free(c.runs[i].label);
	free(c.runs);
	return rc;
}
