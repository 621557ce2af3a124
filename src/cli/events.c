/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and opening the events of stat and record (events.h). Attributes and second tries are
 * those of perf (perf ABI sheet B3, B4). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/events.h"

struct quipu_catalog *events_catalog(const struct quipu_core *core, const char *const *texts,
				     size_t n)
{
	struct quipu_catalog *catalog;
	struct quipu_tree *tree;
	bool named = false;

	for (size_t i = 0; i < n; i++)
		named = named || !quipu_grammar_all_generic(texts[i]);
	tree = quipu_tree_pmus(core, named);
	catalog = tree ? quipu_catalog_new(tree) : NULL;
	quipu_tree_free(tree);
	if (!catalog)
		cli_error("out of memory");
	return catalog;
}

int events_parse(struct quipu_catalog *catalog, const char *text, struct quipu_event_list *list)
{
	struct quipu_grammar_error err;
	char where[1024];
	int rc = quipu_grammar_parse(catalog, text, list, &err);

	if (!rc)
		return 0;
	if (rc == -ENOMEM)
		return cli_error("out of memory");
	quipu_grammar_explain(text, &err, where, sizeof(where));
	fputs(where, stderr);
	return 2;
}

int events_cpus(const struct run *run, const char *text, unsigned **cpus, size_t *n)
{
	unsigned all = run->machine->ncpus, *list = calloc(all, sizeof(*list));
	int got = (int)all;

	*cpus = list;
	if (!list)
		return cli_error("out of memory");
	for (unsigned c = 0; c < all; c++)
		list[c] = c;
	if (text)
		got = quipu_cpu_list(text, list, all);
	if (got == -EINVAL)
		return cli_error("-C takes a list of CPUs such as 0-3,8, not '%s'", text);
	if (got <= 0 || list[got - 1] >= all)
		return cli_error("-C %s: machine %s has CPUs 0-%u", text, run->machine->name,
				 all - 1);
	*n = (size_t)got;
	return 0;
}

int events_open(struct run *run, const struct quipu_parsed *e, struct quipu_attr *attr, pid_t pid,
		int cpu, struct quipu_event *group, struct quipu_event **out)
{
	int precise = e->precise_max ? 3 : -1, rc;
	uint32_t size_back;

	for (;;) {
		if (precise >= 0) {
			attr->flags &= ~QUIPU_ATTR_PRECISE_MASK;
			attr->flags |= (uint64_t)precise << QUIPU_ATTR_PRECISE_SHIFT;
		}
		rc = quipu_event_open(run->core, &run->caller, attr, sizeof(*attr), pid, cpu, group,
				      0, &size_back, out);
		if (rc && precise-- > 0)
			continue;
		/* perf's own default, not the user's wish: where a PMU cannot leave guests out,
		 * there are none. */
		if (rc != -EINVAL ||
		    !(attr->flags & (QUIPU_ATTR_EXCLUDE_GUEST | QUIPU_ATTR_EXCLUDE_HOST)))
			return rc;
		attr->flags &= ~(QUIPU_ATTR_EXCLUDE_GUEST | QUIPU_ATTR_EXCLUDE_HOST);
	}
}

const char *events_refusal(const struct run *run, int err)
{
	const char *reason = quipu_core_last_reason(run->core);

	if (*reason)
		return reason;
	return err == -ENOENT ? "no PMU of this machine has this event" : strerror(-err);
}

int events_require(struct run *run, struct quipu_event *event, enum quipu_exactness *exactness)
{
	struct quipu_pmu *pmu = quipu_event_pmu(event);
	bool filtered = false;
	quipu_signal signal = pmu->signal ? pmu->signal(event, &filtered) : QUIPU_SIGNAL_NONE;

	if (quipu_event_attr(event)->sample_type & PERF_SAMPLE_REGS_USER)
		session_want_registers(run->session, quipu_event_attr(event)->sample_regs_user);
	*exactness = pmu->exactness ? pmu->exactness(event) : QUIPU_MODELLED;
	if (signal == QUIPU_SIGNAL_NONE || filtered)
		return 0;
	if (!pmu->exactness)
		*exactness = quipu_signal_exactness(signal);
	return session_require(run->session, signal);
}
