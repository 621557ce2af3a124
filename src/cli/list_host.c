// SPDX-License-Identifier: BSD-2-Clause
/* The host's events (list_host.h). What the running kernel can be asked is asked: an event that it
 * does not open is listed with the reason. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/host.h"
#include "cli/list_host.h"

static int add(struct model_events *list, const struct model_event *e)
{
	struct model_event *grown = realloc(list->items, (list->n + 1) * sizeof(*grown));

	if (!grown || !e->name) {
		free(e->name);
		free(e->unavailable);
		list->items = grown ? grown : list->items;
		return -ENOMEM;
	}
	list->items = grown;
	list->items[list->n++] = *e;
	return 0;
}

/* Why the kernel does not open it for this user, to be freed; NULL: it does. */
static char *unavailable(struct host *h, uint32_t type, uint64_t config)
{
	struct quipu_parsed e = {.attr = {.type = type, .config = config}};
	struct quipu_attr attr = e.attr;
	struct host_opened o;
	struct host_reason r;
	int ret;

	if (h->recorded)
		return NULL;
	attr.flags = QUIPU_ATTR_DISABLED;
	ret = host_open(&attr, false, 0, -1, -1, &o);
	if (!ret) {
		close(o.fd);
		return NULL;
	}
	host_why(h, &e, ret, 0, -1, &r);
	return strdup(host_exactness(type) == QUIPU_HOST ? r.why
							 : "the machine models no such event");
}

static int add_generic(struct host *h, struct model_events *list)
{
	static const enum event_kind kinds[] = {[PERF_TYPE_HARDWARE] = EVENT_HARDWARE,
						[PERF_TYPE_SOFTWARE] = EVENT_SOFTWARE,
						[PERF_TYPE_HW_CACHE] = EVENT_CACHE};
	const char *name, *alias;
	uint64_t config;
	uint32_t type;
	int ret = 0;

	for (size_t i = 0; !ret && (name = quipu_grammar_generic(i, &alias, &type, &config)); i++) {
		struct model_event e = {
			.kind = kinds[type],
			.name = strdup(name),
			.alias = alias,
			.type = type,
			.config = config,
			.exactness = host_exactness(type),
			.unavailable = unavailable(h, type, config),
		};

		ret = add(list, &e);
	}
	return ret;
}

static int add_pmu(const struct quipu_catalog_pmu *p, struct model_events *list)
{
	int ret = 0;

	for (size_t i = 0; i < p->nevents && !ret; i++) {
		const struct quipu_catalog_event *ev = &p->events[i];
		struct model_event e = {
			.kind = EVENT_PMU,
			.terms = ev->terms,
			.unit = ev->unit,
			.type = p->type,
			.exactness = host_exactness(p->type),
		};

		if (asprintf(&e.name, "%s/%s/", p->name, ev->name) < 0)
			e.name = NULL;
		ret = add(list, &e);
	}
	return ret;
}

/* What a PMU takes by code: its terms. */
static int add_raw(const struct quipu_catalog_pmu *p, struct model_events *list)
{
	struct model_event e = {.kind = EVENT_RAW, .exactness = host_exactness(p->type)};
	size_t len = 0;
	FILE *f;

	if (!p->nformats)
		return 0;
	f = open_memstream(&e.name, &len);
	if (!f)
		return -ENOMEM;
	fprintf(f, "%s/", p->name);
	for (size_t i = 0; i < p->nformats; i++)
		fprintf(f, "%s%s=N", i ? "," : "", p->formats[i].name);
	putc('/', f);
	if (fclose(f)) {
		free(e.name);
		return -ENOMEM;
	}
	return add(list, &e);
}

static int found(void *arg, const char *system, const char *event, uint64_t id)
{
	struct model_event e = {
		.kind = EVENT_PMU,
		.desc = "tracepoint",
		.type = PERF_TYPE_TRACEPOINT,
		.config = id,
		.exactness = host_exactness(PERF_TYPE_TRACEPOINT),
	};

	if (asprintf(&e.name, "%s:%s", system, event) < 0)
		e.name = NULL;
	return add(arg, &e);
}

static int add_tracepoints(struct host *h, const char *word, struct model_events *list)
{
	const char *colon = strchr(word, ':');
	char *system = colon ? strndup(word, (size_t)(colon - word)) : NULL, why[200];
	int ret;

	if (!system || h->recorded) {
		free(system);
		return 0;
	}
	ret = h->kernel.tracepoints(h->kernel.arg, *system ? system : "*",
				    colon[1] ? colon + 1 : "*", found, list, why, sizeof(why));
	free(system);
	return ret == -ENOMEM ? ret : 0;
}

int list_host_events(struct host *h, char **words, int nwords, struct model_events *list)
{
	const struct quipu_catalog *c = host_catalog(h);
	int ret = c ? 0 : -ENOMEM;

	*list = (struct model_events){0};
	if (!ret)
		ret = add_generic(h, list);
	for (size_t i = 0; !ret && i < c->npmus; i++)
		ret = add_pmu(&c->pmus[i], list);
	for (int i = 0; !ret && i < nwords; i++)
		ret = add_tracepoints(h, words[i], list);
	for (size_t i = 0; !ret && i < c->npmus; i++)
		ret = add_raw(&c->pmus[i], list);
	if (ret)
		model_events_free(list);
	return ret;
}
