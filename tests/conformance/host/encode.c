// SPDX-License-Identifier: BSD-2-Clause
/*
 * Event strings to attributes against a recorded sysfs: each line of standard input is a string;
 * printed are the number of its events and a line for each, or where and why it is wrong. The other
 * half is against_perf.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "platform/host/host.h"

static void print_events(const struct quipu_event_list *list)
{
	printf("ok %zu\n", list->n);
	for (size_t i = 0; i < list->n; i++) {
		const struct quipu_parsed *e = &list->items[i];
		const struct quipu_attr *a = &e->attr;

		printf("%u %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %x %zu %.17g %s|%s|%s\n",
		       a->type, a->config, a->config1, a->config2, a->flags, a->bp_type, e->leader,
		       e->scale, e->unit, e->cpus ? e->cpus : "", e->name);
	}
}

int main(int argc, char **argv)
{
	struct host host;
	char line[4096];

	if (argc != 2 || host_init(&host, argv[1]))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		struct quipu_event_list list = {0};
		struct quipu_grammar_error err;

		line[strcspn(line, "\n")] = '\0';
		if (host_parse(&host, line, &list, &err))
			printf("bad %zu %s|%s\n", err.column, err.reason, err.suggestion);
		else
			print_events(&list);
		quipu_event_list_free(&list);
		fflush(stdout);
	}
	host_free(&host);
	return 0;
}
