// SPDX-License-Identifier: BSD-2-Clause
/*
 * Event strings fed by libFuzzer, against a catalog that is half the fuzzer's as well: input is "a
 * format file, an events file, the string", separated by zero bytes. The parser must leave the list
 * as it was or whole, and point inside the string.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/grammar.h>
#include <quipu/tree.h>

#define PMU(name) "/sys/bus/event_source/devices/" name

static int tracepoints(void *arg, const char *system, const char *event,
		       int (*found)(void *, const char *, const char *, uint64_t), void *found_arg,
		       char *why, size_t len)
{
	int ret = 0;

	(void)arg;
	(void)why;
	(void)len;
	if (!strcmp(system, "none"))
		return -ENOENT;
	for (uint64_t id = 1; id <= (strchr(event, '*') ? 3 : 1) && !ret; id++)
		ret = found(found_arg, system, event, id);
	return ret;
}

static int symbol(void *arg, const char *path, const char *name, uint64_t *offset, char *why,
		  size_t len)
{
	(void)arg;
	(void)why;
	(void)len;
	*offset = strlen(path) + strlen(name);
	return path[0] == '/' ? 0 : -ENOENT;
}

static const struct quipu_catalog_kernel kernel = {.tracepoints = tracepoints, .symbol = symbol};

/* The next piece of the input, as a text of its own. */
static char *piece(const uint8_t **p, size_t *n)
{
	size_t len = strnlen((const char *)*p, *n);
	char *text = strndup((const char *)*p, len);

	*p += len;
	*n -= len;
	if (*n) {
		(*p)++;
		(*n)--;
	}
	return text;
}

static void check(const struct quipu_catalog *c, const char *text)
{
	struct quipu_event_list list = {0};
	struct quipu_grammar_error err;
	char shown[512];
	int ret = quipu_grammar_parse(c, text, &list, &err);

	if (ret == -EINVAL) {
		if (list.n || err.column > strlen(text) || !err.reason[0])
			abort();
		quipu_grammar_explain(text, &err, shown, sizeof(shown));
	}
	for (size_t i = 0; i < list.n; i++)
		if (!list.items[i].name || list.items[i].leader > i ||
		    list.items[list.items[i].leader].members == 0)
			abort();
	quipu_event_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *format = piece(&data, &size), *event = piece(&data, &size),
	     *text = piece(&data, &size);
	/* sorted by path */
	struct quipu_tree_file files[] = {
		{PMU("cpu/events/cycles"), "event=0x3c", 0},
		{PMU("cpu/events/theirs"), event, 0},
		{PMU("cpu/events/theirs.scale"), event, 0},
		{PMU("cpu/format/event"), "config:0-7,32-35", 0},
		{PMU("cpu/format/theirs"), format, 0},
		{PMU("cpu/type"), "4\n", 0},
		{PMU("cpu_atom/cpus"), event, 0},
		{PMU("cpu_atom/format/event"), "config:0-7", 0},
		{PMU("cpu_atom/type"), "10\n", 0},
		{PMU("uncore_imc_0/cpumask"), format, 0},
		{PMU("uncore_imc_0/events/rd"), "event=0x4,umask=?", 0},
		{PMU("uncore_imc_0/format/event"), "config:0-7", 0},
		{PMU("uncore_imc_0/format/umask"), "config1:8-15", 0},
		{PMU("uncore_imc_0/type"), "11\n", 0},
		{PMU("uncore_imc_1/format/event"), "config:0-7", 0},
		{PMU("uncore_imc_1/type"), "12\n", 0},
		{PMU("uprobe/type"), "7\n", 0},
	};
	struct quipu_tree tree = {files, sizeof(files) / sizeof(files[0])};
	struct quipu_catalog *c = format && event && text ? quipu_catalog_new(&tree) : NULL;

	if (c) {
		check(c, text);
		c->kernel = &kernel;
		check(c, text);
	}
	quipu_catalog_free(c);
	free(format);
	free(event);
	free(text);
	return 0;
}
