// SPDX-License-Identifier: BSD-2-Clause
/*
 * The events of quipu stat: reading them, opening them on tasks or CPUs, groups. Attributes and
 * what happens on a refused open are those of perf stat (perf ABI sheet B3, B4, B7).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/stat.h"
#include "platform/host/host.h"

#define HOST_CPUS_MAX 8192u
#define DEFAULT_EVENTS                                                                             \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"
#define PER_MODE_EVENTS "cycles,instructions"
#define DETAIL_1	"L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses"
#define DETAIL_2                                                                                   \
	"L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses"
#define DETAIL_3 "L1-dcache-prefetches,L1-dcache-prefetch-misses"

static int parse_text(struct stat *s, const char *text)
{
	return s->host ? stat_host_parse(s, text) : events_parse(s->catalog, text, &s->list);
}

/* Each event three times: in user, kernel and hypervisor mode alone. */
static int split_modes(struct stat *s)
{
	const uint64_t modes =
		QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV;
	struct quipu_event_list plain = s->list;
	int rc = 0;

	memset(&s->list, 0, sizeof(s->list));
	for (size_t i = 0; i < plain.n && !rc; i++) {
		const struct quipu_parsed *e = &plain.items[i];
		const char *name = e->name;
		bool terms = *name && name[strlen(name) - 1] == '/';
		char text[512];

		if (e->members > 1 || e->leader != i || e->attr.flags & modes)
			rc = cli_error("%s: --per-mode takes events without modes and groups",
				       name);
		else if (e->attr.type == PERF_TYPE_SOFTWARE || e->uncore)
			rc = cli_error("%s knows no modes: leave it out with --per-mode", name);
		for (const char *mode = "ukh"; *mode && !rc; mode++) {
			snprintf(text, sizeof(text), "%s%s%c", name, terms ? "" : ":", *mode);
			rc = parse_text(s, text);
		}
	}
	quipu_event_list_free(&plain);
	return rc;
}

int stat_parse(struct stat *s)
{
	static const char *const details[] = {DETAIL_1, DETAIL_2, DETAIL_3};
	const struct stat_options *o = s->options;
	int rc = 0;

	if (!s->host)
		s->catalog = events_catalog(s->run.core, o->events.texts, o->events.n);
	if (!s->host && !s->catalog)
		return 2;
	for (size_t i = 0; i < o->events.n && !rc; i++)
		rc = parse_text(s, o->events.texts[i]);
	if (!o->events.n)
		rc = parse_text(s, o->per_mode ? PER_MODE_EVENTS : DEFAULT_EVENTS);
	if (o->per_mode && !rc)
		rc = split_modes(s);
	for (size_t i = 0; i < 3 && i < o->detail && !rc; i++)
		rc = parse_text(s, details[i]);
	for (size_t i = 0; i < s->list.n && !rc; i++)
		if (s->list.items[i].has_freq || s->list.items[i].callgraph)
			rc = cli_error(
				"%s: freq= and call-graph= are for sampling; use `quipu record`",
				s->list.items[i].name);
	if (rc)
		return rc;
	s->counters = calloc(s->list.n, sizeof(*s->counters));
	return s->counters ? 0 : cli_error("out of memory");
}

bool stat_by_cpu(const struct stat *s, const struct quipu_parsed *e)
{
	return s->options->system_wide || s->options->cpus || e->uncore;
}

/* The place of @key, made when it is new. */
size_t stat_place(struct stat *s, unsigned key, const char *label)
{
	struct place *grown;

	for (size_t i = 0; i < s->nplaces; i++)
		if (s->places[i].key == key)
			return i;
	grown = realloc(s->places, (s->nplaces + 1) * sizeof(*grown));
	if (!grown)
		return SIZE_MAX;
	s->places = grown;
	s->places[s->nplaces].key = key;
	snprintf(s->places[s->nplaces].label, sizeof(s->places[0].label), "%s", label);
	return s->nplaces++;
}

static size_t place_of_cpu(struct stat *s, int cpu)
{
	unsigned socket = 0, die = 0, core = 0;
	char label[48];

	if (s->host) {
		const struct host_cpu *c = stat_host_cpu(s, cpu);

		socket = c ? c->socket : 0;
		die = c ? c->die : 0;
		core = c ? c->core : 0;
	} else if (cpu >= 0) {
		const struct quipu_cpu *c = &s->run.machine->cpus[cpu];

		socket = c->socket;
		die = c->die;
		core = c->core;
	}
	switch (s->options->aggregation) {
	case STAT_CPU:
		snprintf(label, sizeof(label), "CPU%d", cpu);
		return stat_place(s, (unsigned)cpu, label);
	case STAT_CORE: snprintf(label, sizeof(label), "S%u-D%u-C%u", socket, die, core); break;
	case STAT_SOCKET: snprintf(label, sizeof(label), "S%u", socket); break;
	default: return stat_place(s, 0, "");
	}
	/* The first CPU of the same label names the place. */
	for (size_t i = 0; i < s->nplaces; i++)
		if (!strcmp(s->places[i].label, label))
			return i;
	return stat_place(s, (unsigned)cpu, label);
}

static size_t place_of_task(struct stat *s, struct quipu_task *task)
{
	const char *program = strrchr(s->options->argv[0], '/');
	char label[48];

	if (s->options->aggregation != STAT_THREAD)
		return stat_place(s, 0, "");
	snprintf(label, sizeof(label), "%.15s-%d", program ? program + 1 : s->options->argv[0],
		 (int)quipu_task_tid(task));
	return stat_place(s, (unsigned)quipu_task_tid(task), label);
}

struct handle *stat_add_handle(struct counter *c, size_t where, int cpu, pid_t pid)
{
	struct handle *grown = realloc(c->handles, (c->n + 1) * sizeof(*grown));

	if (!grown || where == SIZE_MAX)
		return NULL;
	c->handles = grown;
	c->handles[c->n] = (struct handle){.where = where, .cpu = cpu, .fd = -1, .pid = pid};
	return &c->handles[c->n++];
}

struct handle *stat_leader(const struct stat *s, size_t i, const struct handle *h)
{
	const struct counter *leader = &s->counters[s->list.items[i].leader];
	size_t at = (size_t)(h - s->counters[i].handles);

	if (s->list.items[i].leader == i)
		return NULL;
	/* Members are opened in the leader's order: most often it is the same one. */
	if (at < leader->n && leader->handles[at].cpu == h->cpu &&
	    leader->handles[at].pid == h->pid && leader->handles[at].where == h->where)
		return &leader->handles[at];
	for (size_t k = 0; k < leader->n; k++)
		if (leader->handles[k].cpu == h->cpu && leader->handles[k].pid == h->pid &&
		    leader->handles[k].where == h->where)
			return &leader->handles[k];
	return NULL;
}

void stat_leave_out(struct counter *c, const char *reason)
{
	c->refused = STAT_NOT_SUPPORTED;
	if (!c->reason && asprintf(&c->reason, "%s", reason) < 0)
		c->reason = NULL;
}

/* Errors of an open after which perf leaves the event out and goes on. */
static bool leaves_out(int err)
{
	return err == -EINVAL || err == -ENOSYS || err == -ENOENT || err == -EOPNOTSUPP ||
	       err == -ENXIO;
}

static int refuse(struct stat *s, size_t i, int err)
{
	const char *reason;

	if (s->host)
		return stat_host_refuse(s, i, err);
	reason = events_refusal(&s->run, err);
	if (!leaves_out(err))
		return cli_error("machine %s cannot count %s: %s (%s)", s->run.machine->name,
				 s->list.items[i].name, reason, strerrorname_np(-err));
	stat_leave_out(&s->counters[i], reason);
	return 0;
}

/* @task: whom to follow, or NULL for the handle's CPU; @fresh: it runs already, so nothing will
 * enable the event. */
static int open_one(struct stat *s, size_t i, struct handle *h, struct quipu_task *task, bool fresh)
{
	const struct quipu_parsed *e = &s->list.items[i];
	struct handle *leader = stat_leader(s, i, h);
	struct quipu_event *group = leader ? leader->event : NULL;
	struct quipu_attr attr = e->attr;
	int rc;

	attr.sample_period = 0;
	attr.flags &= ~QUIPU_ATTR_FREQ;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (s->list.items[e->leader].members > 1)
		attr.read_format |= PERF_FORMAT_ID | PERF_FORMAT_GROUP;
	if (!group && !fresh)
		attr.flags |= QUIPU_ATTR_DISABLED | (task ? QUIPU_ATTR_ENABLE_ON_EXEC : 0);
	if (task && !s->options->no_inherit && !e->inherit_off &&
	    s->options->aggregation != STAT_THREAD)
		attr.flags |= QUIPU_ATTR_INHERIT;
	rc = events_open(&s->run, e, &attr, task ? quipu_task_tid(task) : -1, h->cpu, group,
			 &h->event);
	return rc ? rc : events_require(&s->run, h->event, &s->counters[i].exactness);
}

static int open_on_task(struct stat *s, size_t i, struct quipu_task *task, bool fresh)
{
	struct handle *h = stat_add_handle(&s->counters[i], place_of_task(s, task), -1, -1);

	if (!h)
		return -ENOMEM;
	return open_one(s, i, h, task, fresh);
}

/* A PMU of some of the cores counts on those alone, whatever -C says. */
static bool counts_on(const struct stat *s, const struct quipu_parsed *e, unsigned cpu)
{
	unsigned own[256];
	int n;

	if (!s->host || !e->cpus || e->uncore || !s->options->cpus)
		return true;
	n = quipu_cpu_list(e->cpus, own, sizeof(own) / sizeof(*own));
	for (int i = 0; i < n; i++)
		if (own[i] == cpu)
			return true;
	return n < 0;
}

/* On every CPU of the event's cpumask, of -C, or of the machine. */
static int open_on_cpus(struct stat *s, size_t i)
{
	const struct quipu_parsed *e = &s->list.items[i];
	unsigned *mask = NULL, *cpus = s->cpus,
		 max = s->host ? HOST_CPUS_MAX : s->run.machine->ncpus;
	int n = (int)s->ncpus, rc = 0;

	if (e->cpus && !s->options->cpus) {
		mask = calloc(max, sizeof(*mask));
		n = mask ? quipu_cpu_list(e->cpus, mask, max) : -ENOMEM;
		cpus = mask;
	}
	if (n < 0)
		rc = n;
	for (int k = 0; k < n && !rc; k++) {
		if (!counts_on(s, e, cpus[k]))
			continue;
		struct handle *h = stat_add_handle(&s->counters[i], place_of_cpu(s, (int)cpus[k]),
						   (int)cpus[k], -1);

		rc = !h	       ? -ENOMEM
		     : s->host ? stat_host_open_one(s, i, h)
			       : open_one(s, i, h, NULL, false);
	}
	free(mask);
	return rc;
}

void stat_close_counter(struct counter *c)
{
	for (size_t k = 0; k < c->n; k++)
		if (c->handles[k].event)
			quipu_event_close(c->handles[k].event);
		else if (c->handles[k].fd >= 0)
			close(c->handles[k].fd);
	free(c->handles);
	free(c->reason);
	*c = (struct counter){0};
}

/* A weak group that the PMU refuses as a whole is taken apart: its events count alone. */
static void break_group(struct stat *s, size_t leader)
{
	for (size_t i = s->list.n; i-- > leader;) {
		if (s->list.items[i].leader != leader)
			continue;
		stat_close_counter(&s->counters[i]);
		s->list.items[i].leader = i;
		s->list.items[i].members = 1;
	}
}

static int open_counter(struct stat *s, size_t i)
{
	const struct quipu_parsed *e = &s->list.items[i];
	const struct counter *leader = &s->counters[e->leader];
	const char *unmodelled;
	int rc;

	if (e->leader != i && leader->refused == STAT_NOT_SUPPORTED) {
		s->counters[i].refused = STAT_NOT_SUPPORTED;
		return asprintf(&s->counters[i].reason,
				"the leader of its group, %s, is not supported",
				s->list.items[e->leader].name) < 0
			       ? cli_error("out of memory")
			       : 0;
	}
	if (stat_by_cpu(s, e))
		rc = open_on_cpus(s, i);
	else
		rc = s->host ? stat_host_open_tasks(s, i) : open_on_task(s, i, s->run.task, false);
	unmodelled = s->host ? NULL : run_unmodelled(&e->attr);
	if (!rc && unmodelled) {
		s->counters[i].refused = STAT_NOT_MODELLED;
		s->counters[i].reason = strdup(unmodelled);
	}
	return rc ? refuse(s, i, rc) : 0;
}

int stat_open(struct stat *s)
{
	int rc = s->host ? stat_host_cpus(s)
			 : events_cpus(&s->run, s->options->cpus, &s->cpus, &s->ncpus);

	for (size_t i = 0; i < s->list.n && !rc; i++) {
		size_t leader = s->list.items[i].leader;

		if (s->counters[i].n || s->counters[i].refused != STAT_COUNTED)
			continue; /* of another group, when one was taken apart */
		rc = open_counter(s, i);
		if (!rc && leader != i && s->list.items[leader].weak &&
		    s->counters[i].refused == STAT_NOT_SUPPORTED &&
		    s->counters[leader].refused != STAT_NOT_SUPPORTED) {
			break_group(s, leader);
			i = leader - 1; /* open its events anew, each alone */
		}
	}
	return rc;
}

/* A thread was made: it gets events of its own (--per-thread). */
void stat_on_task(void *arg, struct quipu_task *task)
{
	struct stat *s = arg;

	if (!s->open || s->options->aggregation != STAT_THREAD)
		return;
	for (size_t i = 0; i < s->list.n; i++)
		if (s->counters[i].refused != STAT_NOT_SUPPORTED &&
		    !stat_by_cpu(s, &s->list.items[i]))
			s->failed |= open_on_task(s, i, task, true) != 0;
}
