/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu report: where the samples of perf.data fell, in the text layout of `perf report --stdio`
 * (Linux 6.1) or as JSON. Each event says what its numbers are, where the file tells.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/cli.h"
#include "cli/hypervisor.h"
#include "profile/aggregate.h"
#include "profile/profile.h"

/* perf hides branches of a call graph below this share. */
#define GRAPH_MIN_PERCENT 0.5
#define COLUMNS_MAX	  (PROFILE_KEYS + 3)

enum graph { GRAPH_NONE, GRAPH_CALLER, GRAPH_CALLEE };

struct report {
	struct hv_options hypervisor;
	struct profile profile;
	const struct perfdata_event *events;
	size_t nr_events;
	struct profile_aggregate **sums; /* per event */
	uint64_t *lost;			 /* per event */
	uint64_t total_lost;
	enum profile_key keys[PROFILE_KEYS];
	size_t nr_keys;
	int children; /* -1: with chains */
	int graph;    /* enum graph, -1: with chains */
	bool inlines, counts, json, offsets;
	double limit;
};

static const char usage[] =
	"usage: quipu report [-i FILE] [OPTIONS]\n\n"
	"Where the samples of a recording fell.\n\n"
	"  -i, --input FILE       recording to read [perf.data]\n"
	"  -s, --sort KEYS        columns: comm,dso,symbol,symoff,pid,tid,cpu [comm,dso,symbol]\n"
	"      --show-offset      each place in a function by itself, as name+0x40; so does symoff\n"
	"      --children         count a function's callees with it [with call chains]; "
	"--no-children: do not\n"
	"  -g, --call-graph KIND  none, caller (outermost first) or callee (innermost first) "
	"[caller with call chains]\n"
	"      --inline           functions that were inlined stand for themselves\n"
	"  -n, --show-nr-samples  a column with the number of samples\n"
	"      --percent-limit P  leave out entries below P percent\n"
	"  -m, --machine M        names of hypervisor code from machine M, where the file has none\n"
	"      --map FILE         names of hypervisor code from a symbol file\n"
	"      --stdio            text on standard output (the only form beside --json)\n"
	"      --json             everything as one JSON object\n";

static const struct {
	const char *name, *other; /* as --sort takes them */
	const char *title;
} keys[PROFILE_KEYS] = {
	[PROFILE_KEY_COMM] = {"comm", "command", "Command"},
	[PROFILE_KEY_OBJECT] = {"dso", "object", "Shared Object"},
	[PROFILE_KEY_SYMBOL] = {"symbol", "sym", "Symbol"},
	[PROFILE_KEY_PID] = {"pid", "pid", "Pid"},
	[PROFILE_KEY_TID] = {"tid", "tid", "Tid"},
	[PROFILE_KEY_CPU] = {"cpu", "cpu", "CPU"},
};

/* ---- options ---- */

static int add_key(struct report *r, const char *name)
{
	if (!strcmp(name, "symoff")) {
		r->offsets = true;
		name = "symbol";
	}
	for (int k = 0; k < PROFILE_KEYS; k++) {
		if (strcmp(name, keys[k].name) && strcmp(name, keys[k].other))
			continue;
		for (size_t i = 0; i < r->nr_keys; i++)
			if (r->keys[i] == (enum profile_key)k)
				return 0;
		r->keys[r->nr_keys++] = (enum profile_key)k;
		return 0;
	}
	return cli_error("cannot sort by '%s'; there are comm, dso, symbol, symoff, pid, tid, cpu",
			 name);
}

static int choose_keys(struct report *r, char *list)
{
	char *save, *word;
	int ret = 0;

	r->nr_keys = 0;
	for (word = strtok_r(list, ", ", &save); word && !ret; word = strtok_r(NULL, ", ", &save))
		ret = add_key(r, word);
	return ret || r->nr_keys
		       ? ret
		       : cli_error(
				 "--sort needs at least one of comm, dso, symbol, symoff, pid, tid, cpu");
}

static int choose_graph(struct report *r, const char *kind)
{
	static const char *const kinds[] = {
		[GRAPH_NONE] = "none", [GRAPH_CALLER] = "caller", [GRAPH_CALLEE] = "callee"};

	for (int k = GRAPH_NONE; k <= GRAPH_CALLEE; k++)
		if (!strcmp(kind, kinds[k])) {
			r->graph = k;
			return 0;
		}
	return cli_error("no call graph '%s'; there are none, caller, callee", kind);
}

static int choose_limit(struct report *r, const char *text)
{
	char *end;

	r->limit = strtod(text, &end);
	if (end == text || *end || !(r->limit >= 0 && r->limit <= 100))
		return cli_error("--percent-limit '%s' is not a number from 0 to 100", text);
	return 0;
}

enum {
	OPT_CHILDREN = 256,
	OPT_NO_CHILDREN,
	OPT_INLINE,
	OPT_NO_INLINE,
	OPT_LIMIT,
	OPT_OFFSET,
	OPT_STDIO,
	OPT_JSON,
	OPT_MAP
};

static int take_option(struct report *r, int c, const char **path)
{
	switch (c) {
	case 'i': *path = optarg; return 0;
	case 's': return choose_keys(r, optarg);
	case 'g': return choose_graph(r, optarg);
	case 'n': r->counts = true; return 0;
	case OPT_CHILDREN:
	case OPT_NO_CHILDREN: r->children = c == OPT_CHILDREN; return 0;
	case OPT_INLINE:
	case OPT_NO_INLINE: r->inlines = c == OPT_INLINE; return 0;
	case OPT_LIMIT: return choose_limit(r, optarg);
	case OPT_OFFSET: r->offsets = true; return 0;
	case OPT_STDIO: return 0;
	case OPT_JSON: r->json = true; return 0;
	case 'm': r->hypervisor.machine = optarg; return 0;
	case OPT_MAP: r->hypervisor.map = optarg; return 0;
	default: fputs(usage, stderr); return 2;
	}
}

/* ---- adding up ---- */

static bool event_has_chains(const struct perfdata_event *ev)
{
	return ev->attr.sample_type & PERF_SAMPLE_CALLCHAIN;
}

static int make_sums(struct report *r)
{
	r->sums = calloc(r->nr_events, sizeof(struct profile_aggregate *));
	r->lost = calloc(r->nr_events, sizeof(*r->lost));
	if (!r->sums || !r->lost)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_events; i++) {
		bool chains = event_has_chains(&r->events[i]);
		struct profile_options opt = {
			.children = chains && r->children,
			.chains = chains && r->graph,
			.callee = r->graph == GRAPH_CALLEE || (r->graph == -1 && r->children == 0),
			.inlines = r->inlines,
			.offsets = r->offsets,
		};

		for (size_t k = 0; k < r->nr_keys; k++)
			opt.keys |= 1u << r->keys[k];
		r->sums[i] = profile_aggregate_new(&opt);
		if (!r->sums[i])
			return -ENOMEM;
	}
	return 0;
}

static int take_record(void *arg, const struct profile_record *rec)
{
	struct report *r = arg;

	switch (rec->type) {
	case PERF_RECORD_SAMPLE:
		return profile_aggregate_sample(r->sums[rec->event], r->profile.maps, rec);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		r->lost[rec->event] += rec->lost.lost;
		r->total_lost += rec->lost.lost;
		return 0;
	default: return profile_maps_record(r->profile.maps, rec);
	}
}

/* ---- one entry's columns as text ---- */

static const char *object_name(const struct profile_frame *f)
{
	return f->object ? f->object->short_name : "[unknown]";
}

static void function_text(const struct profile_frame *f, char *buf, size_t len)
{
	if (f->symbol)
		snprintf(buf, len, "%s%s", f->symbol->name, f->symbol->inlined ? " (inlined)" : "");
	else
		snprintf(buf, len, "0x%016" PRIx64, f->addr);
}

/* The symbol of an entry; @offsets: and the place in it. */
static void symbol_text(const struct profile_entry *e, bool offsets, char *buf, size_t len)
{
	size_t n;

	function_text(&e->frame, buf, len);
	n = strlen(buf);
	if (offsets && e->frame.symbol && !e->frame.symbol->inlined)
		snprintf(buf + n, len - n, "+0x%" PRIx64, e->frame.offset);
}

static void key_text(const struct report *r, const struct profile_entry *e, enum profile_key key,
		     char *buf, size_t len)
{
	char name[560];

	switch (key) {
	case PROFILE_KEY_COMM: snprintf(buf, len, "%s", e->comm); return;
	case PROFILE_KEY_OBJECT: snprintf(buf, len, "%s", object_name(&e->frame)); return;
	case PROFILE_KEY_SYMBOL:
		symbol_text(e, r->offsets, name, sizeof(name));
		snprintf(buf, len, "[%c] %s", e->frame.level, name);
		return;
	case PROFILE_KEY_CPU:
		if (e->cpu == PROFILE_CPU_NONE)
			snprintf(buf, len, "-");
		else
			snprintf(buf, len, "%u", e->cpu);
		return;
	case PROFILE_KEY_PID:
	case PROFILE_KEY_TID:
		snprintf(buf, len, "%u", key == PROFILE_KEY_PID ? e->pid : e->tid);
		return;
	case PROFILE_KEYS: break;
	}
	buf[0] = 0;
}

/* ---- the call graph below an entry ---- */

/* Of a branch that is shown. As in perf, a limit that was asked for is that of the graph too. */
static double least_percent(const struct report *r)
{
	return r->json ? 0 : r->limit > 0 ? r->limit : GRAPH_MIN_PERCENT;
}

/* The pipes to the left of a line: one character per level, '|' where a later branch follows. */
struct pipes {
	char *v;
	size_t n, room;
	uint64_t whole; /* period of the event */
	double least;	/* percent below which a branch is not shown */
	size_t margin;
};

static bool push_pipe(struct pipes *p, char c)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		char *v = realloc(p->v, room);

		if (!v)
			return false;
		p->v = v;
		p->room = room;
	}
	p->v[p->n++] = c;
	return true;
}

static void print_margin(const struct pipes *p)
{
	printf("%*s", (int)(12 + p->margin), "");
}

static bool big_enough(const struct pipes *p, const struct profile_node *n)
{
	return profile_percent(n->total, p->whole) >= p->least;
}

/* Siblings are sorted, so the small ones are last. */
static const struct profile_node *shown_next(const struct pipes *p, const struct profile_node *n)
{
	return n->next && big_enough(p, n->next) ? n->next : NULL;
}

/* A chain goes on in one line of descent as long as none ends and none branches off. */
static const struct profile_node *only_child(const struct profile_node *n)
{
	return !n->own && !n->hidden && n->child && !n->child->next ? n->child : NULL;
}

static void print_name(const struct profile_node *n)
{
	char name[480];

	if (n->frame.symbol)
		function_text(&n->frame, name, sizeof(name));
	else
		snprintf(name, sizeof(name), "%#" PRIx64, n->frame.ip);
	printf("%s\n", name);
}

static void print_pipes(const struct pipes *p)
{
	print_margin(p);
	for (size_t i = 0; i < p->n; i++)
		printf("%c          ", p->v[i]);
}

static void print_branches(struct pipes *p, const struct profile_node *n)
{
	for (; n && big_enough(p, n); n = shown_next(p, n)) {
		const struct profile_node *end = n;

		if (!push_pipe(p, '|'))
			return;
		print_pipes(p);
		putchar('\n');
		if (!shown_next(p, n))
			p->v[p->n - 1] = ' ';
		print_margin(p);
		for (size_t i = 0; i + 1 < p->n; i++)
			printf("%c          ", p->v[i]);
		printf("%c--%.2f%%--", p->v[p->n - 1], profile_percent(n->total, p->whole));
		print_name(n);
		while (only_child(end)) {
			end = only_child(end);
			print_pipes(p);
			print_name(end);
		}
		print_branches(p, end->child);
		p->n--;
	}
}

/*
 * The frames from @n on up to where chains end or branch off; what is below them. @skip: the first
 * is the function that the entry is named after, which stands right above.
 */
static const struct profile_node *print_stem(struct pipes *p, const struct profile_node *n,
					     bool skip)
{
	for (bool first = true;; n = only_child(n), skip = false) {
		if (!skip && first) {
			print_margin(p);
			printf("|\n");
			print_margin(p);
			printf("---");
			p->margin = 3;
			first = false;
		} else if (!skip) {
			print_margin(p);
		}
		if (!skip)
			print_name(n);
		if (!only_child(n))
			return n->child;
	}
}

static void print_graph(const struct report *r, const struct profile_entry *e, uint64_t whole)
{
	struct pipes p = {.whole = whole, .least = least_percent(r)};
	const struct profile_node *n = e->chains;

	if (!n || !big_enough(&p, n))
		return;
	/* What all chains of the entry share needs no percentage. */
	if (!shown_next(&p, n) && n->total == e->chained)
		n = print_stem(&p, n, r->keys[0] == PROFILE_KEY_SYMBOL);
	print_branches(&p, n);
	putchar('\n');
	free(p.v);
}

/* ---- text ---- */

struct layout {
	bool children;
	int width[PROFILE_KEYS];
};

static void measure(const struct report *r, const struct profile_entry *const *v, size_t n,
		    struct layout *l)
{
	char text[512];

	for (size_t k = 0; k < r->nr_keys; k++) {
		l->width[k] = (int)strlen(keys[r->keys[k]].title);
		for (size_t i = 0; i < n; i++) {
			int len;

			key_text(r, v[i], r->keys[k], text, sizeof(text));
			len = (int)strlen(text);
			if (len > l->width[k])
				l->width[k] = len;
		}
	}
}

static void print_dots(int n)
{
	printf("  ");
	while (n-- > 0)
		putchar('.');
}

static void print_titles(const struct report *r, const struct layout *l)
{
	if (l->children)
		printf("# Children      Self");
	else
		printf("# Overhead");
	if (r->counts)
		printf("       Samples");
	for (size_t k = 0; k < r->nr_keys; k++)
		printf("  %-*s", l->width[k], keys[r->keys[k]].title);
	printf("\n# ........");
	if (l->children)
		print_dots(8);
	if (r->counts)
		print_dots(12);
	for (size_t k = 0; k < r->nr_keys; k++)
		print_dots(l->width[k]);
	printf("\n#\n");
}

static void print_entry(const struct report *r, const struct layout *l,
			const struct profile_entry *e, uint64_t whole)
{
	char text[512];

	printf("  %7.2f%%", profile_percent(l->children ? e->total : e->self, whole));
	if (l->children)
		printf("  %7.2f%%", profile_percent(e->self, whole));
	if (r->counts)
		printf("  %12" PRIu64, e->samples);
	for (size_t k = 0; k < r->nr_keys; k++) {
		bool last = k + 1 == r->nr_keys;
		bool number = r->keys[k] >= PROFILE_KEY_PID;

		key_text(r, e, r->keys[k], text, sizeof(text));
		printf(number ? "  %*s" : "  %-*s", last && !number ? 0 : l->width[k], text);
	}
	putchar('\n');
}

static bool shown(const struct report *r, const struct profile_entry *e, bool children,
		  uint64_t whole)
{
	return profile_percent(children ? e->total : e->self, whole) >= r->limit;
}

static bool with_children(const struct report *r, size_t event)
{
	return r->children && event_has_chains(&r->events[event]);
}

static void print_event(const struct report *r, size_t i)
{
	const struct perfdata_event *ev = &r->events[i];
	uint64_t whole = profile_aggregate_period(r->sums[i]);
	struct layout l = {.children = with_children(r, i)};
	const char *label = perfdata_label(r->profile.data, i);
	const struct profile_entry *const *v;
	size_t n;

	v = profile_aggregate_sort(r->sums[i], least_percent(r), &n);
	printf("# Samples: %" PRIu64 "  of event '%s' (%s)\n",
	       profile_aggregate_samples(r->sums[i]), ev->name,
	       label ? label : "label not kept by perf");
	printf("# Event count (approx.): %" PRIu64 "\n#\n", whole);
	measure(r, v, n, &l);
	print_titles(r, &l);
	for (size_t k = 0; k < n; k++) {
		if (!shown(r, v[k], l.children, whole))
			continue;
		print_entry(r, &l, v[k], whole);
		if (r->graph)
			print_graph(r, v[k], whole);
	}
	printf("\n\n");
}

/* Objects that samples fell into and that have no symbols: each once, with the reason. */
struct problems {
	const struct profile_object **v;
	size_t n;
};

static bool add_problem(struct problems *p, const struct profile_object *o)
{
	const struct profile_object **v;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] == o)
			return false;
	v = realloc(p->v, (p->n + 1) * sizeof(*v));
	if (!v)
		return false;
	p->v = v;
	v[p->n++] = o;
	return true;
}

static void print_problems(const struct report *r)
{
	struct problems seen = {0};

	for (size_t i = 0; i < r->nr_events; i++) {
		size_t n;
		const struct profile_entry *const *v =
			profile_aggregate_sort(r->sums[i], least_percent(r), &n);

		for (size_t k = 0; k < n; k++) {
			const struct profile_object *o = v[k]->frame.object;
			const char *why;

			if (!o || o->path[0] != '/' || !add_problem(&seen, o))
				continue;
			why = profile_object_problem((struct profile_object *)o);
			if (why)
				printf("# No symbols of %s: %s\n", o->path, why);
		}
	}
	free(seen.v);
}

/* Whose names those of the hypervisor are, and why some have none. */
static void print_hypervisor(const struct report *r)
{
	char *why = hv_footer(&r->profile);

	if (r->profile.hypervisor)
		printf("# Hypervisor: names of %s; its activity is declared by the machine description, no "
		       "hypervisor code was executed (modelled)\n",
		       profile_hypervisor_where(r->profile.hypervisor));
	if (why)
		printf("# %s\n", why);
	free(why);
}

static void print_text(const struct report *r)
{
	const struct perfdata_features *f = perfdata_features(r->profile.data);

	if (f->machine)
		printf("# Machine: %s\n", f->machine);
	if (f->nr_cmdline) {
		printf("# Command:");
		for (size_t i = 0; i < f->nr_cmdline; i++)
			printf(" %s", f->cmdline[i]);
		printf("\n");
	}
	print_problems(r);
	print_hypervisor(r);
	printf("#\n# Total Lost Samples: %" PRIu64 "\n#\n", r->total_lost);
	for (size_t i = 0; i < r->nr_events; i++)
		print_event(r, i);
	if (perfdata_malformed(r->profile.data))
		printf("# %zu damaged records were left out\n",
		       perfdata_malformed(r->profile.data));
	if (perfdata_unknown_ids(r->profile.data))
		printf("# %zu records of unknown events were left out\n",
		       perfdata_unknown_ids(r->profile.data));
}

/* ---- JSON ---- */

/* Bytes of a file need not be UTF-8; JSON must be. */
static json_t *json_text(const char *s)
{
	json_t *j = s ? json_string(s) : json_null();
	char *ascii;

	if (j || !s)
		return j;
	ascii = strdup(s);
	for (char *p = ascii; p && *p; p++)
		if (*p & 0x80)
			*p = '?';
	j = json_string(ascii ? ascii : "");
	free(ascii);
	return j;
}

static void set_key(const struct report *r, json_t *o, const struct profile_entry *e,
		    enum profile_key key)
{
	char text[480];

	switch (key) {
	case PROFILE_KEY_COMM: json_object_set_new(o, "comm", json_text(e->comm)); break;
	case PROFILE_KEY_OBJECT:
		json_object_set_new(o, "dso",
				    json_text(e->frame.object ? e->frame.object->path : NULL));
		break;
	case PROFILE_KEY_SYMBOL:
		function_text(&e->frame, text, sizeof(text));
		json_object_set_new(o, "symbol", json_text(text));
		if (r->offsets && e->frame.symbol)
			json_object_set_new(o, "off", json_integer((json_int_t)e->frame.offset));
		if (e->frame.level == 'H') {
			json_object_set_new(o, "mode", json_string("hypervisor"));
			json_object_set_new(o, "resolved", json_boolean(e->frame.symbol));
		}
		break;
	case PROFILE_KEY_PID: json_object_set_new(o, "pid", json_integer(e->pid)); break;
	case PROFILE_KEY_TID: json_object_set_new(o, "tid", json_integer(e->tid)); break;
	case PROFILE_KEY_CPU:
		json_object_set_new(
			o, "cpu", e->cpu == PROFILE_CPU_NONE ? json_null() : json_integer(e->cpu));
		break;
	case PROFILE_KEYS: break;
	}
}

/*
 * Depth first without recursion would need a parent link; JSON of a chain nests as deep as the
 * chain anyway.
 */
static json_t *json_nodes(const struct profile_node *n)
{
	json_t *list = json_array();
	char text[480];

	for (; n; n = n->next) {
		json_t *o = json_object();

		function_text(&n->frame, text, sizeof(text));
		json_object_set_new(o, "symbol", json_text(text));
		json_object_set_new(o, "dso",
				    json_text(n->frame.object ? n->frame.object->path : NULL));
		json_object_set_new(o, "period", json_integer((json_int_t)n->total));
		json_object_set_new(o, "self", json_integer((json_int_t)n->own));
		if (n->child)
			json_object_set_new(o, "calls", json_nodes(n->child));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_entry(const struct report *r, const struct profile_entry *e, bool children,
			  uint64_t whole)
{
	json_t *o = json_object();

	json_object_set_new(o, "percent",
			    json_real(profile_percent(children ? e->total : e->self, whole)));
	json_object_set_new(o, "self", json_integer((json_int_t)e->self));
	if (children)
		json_object_set_new(o, "children", json_integer((json_int_t)e->total));
	json_object_set_new(o, "samples", json_integer((json_int_t)e->samples));
	for (size_t k = 0; k < r->nr_keys; k++)
		set_key(r, o, e, r->keys[k]);
	if (r->graph && e->chains)
		json_object_set_new(o, "chains", json_nodes(e->chains));
	return o;
}

static json_t *json_event(const struct report *r, size_t i)
{
	const struct perfdata_event *ev = &r->events[i];
	uint64_t whole = profile_aggregate_period(r->sums[i]);
	bool children = with_children(r, i);
	json_t *o = json_object(), *list = json_array();
	const struct profile_entry *const *v;
	size_t n;

	v = profile_aggregate_sort(r->sums[i], least_percent(r), &n);
	for (size_t k = 0; k < n; k++)
		if (shown(r, v[k], children, whole))
			json_array_append_new(list, json_entry(r, v[k], children, whole));
	json_object_set_new(o, "event", json_text(ev->name));
	json_object_set_new(o, "class", json_text(perfdata_label(r->profile.data, i)));
	json_object_set_new(o, "samples",
			    json_integer((json_int_t)profile_aggregate_samples(r->sums[i])));
	json_object_set_new(o, "lost", json_integer((json_int_t)r->lost[i]));
	json_object_set_new(o, "period", json_integer((json_int_t)whole));
	json_object_set_new(o, "entries", list);
	return o;
}

static void print_json(const struct report *r)
{
	const struct perfdata_features *f = perfdata_features(r->profile.data);
	json_t *o = json_object(), *list = json_array();

	json_object_set_new(o, "machine", json_text(f->machine));
	json_object_set_new(o, "arch", json_text(f->arch));
	for (size_t i = 0; i < r->nr_events; i++)
		json_array_append_new(list, json_event(r, i));
	json_object_set_new(o, "events", list);
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
	putchar('\n');
	json_decref(o);
}

/* ---- the command ---- */

static int run(struct report *r, const char *path)
{
	struct perfdata_error err;
	int rc;

	if (profile_open(&r->profile, path, &err))
		return cli_error("%s", err.text);
	rc = hv_profile(&r->profile, &r->hypervisor);
	if (rc)
		return rc;
	r->events = perfdata_events(r->profile.data, &r->nr_events);
	if (make_sums(r) || perfdata_each(r->profile.data, take_record, r))
		return cli_error("out of memory");
	if (r->json)
		print_json(r);
	else
		print_text(r);
	return 0; /* whether it arrived is told by main() */
}

int cmd_report(int argc, char **argv)
{
	static const struct option longs[] = {
		{"input", required_argument, NULL, 'i'},
		{"sort", required_argument, NULL, 's'},
		{"call-graph", required_argument, NULL, 'g'},
		{"show-nr-samples", no_argument, NULL, 'n'},
		{"children", no_argument, NULL, OPT_CHILDREN},
		{"no-children", no_argument, NULL, OPT_NO_CHILDREN},
		{"inline", no_argument, NULL, OPT_INLINE},
		{"no-inline", no_argument, NULL, OPT_NO_INLINE},
		{"percent-limit", required_argument, NULL, OPT_LIMIT},
		{"show-offset", no_argument, NULL, OPT_OFFSET},
		{"stdio", no_argument, NULL, OPT_STDIO},
		{"json", no_argument, NULL, OPT_JSON},
		{"machine", required_argument, NULL, 'm'},
		{"map", required_argument, NULL, OPT_MAP},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct report r = {.hypervisor = {.partition = 1},
			   .keys = {PROFILE_KEY_COMM, PROFILE_KEY_OBJECT, PROFILE_KEY_SYMBOL},
			   .nr_keys = 3,
			   .children = -1,
			   .graph = -1};
	const char *path = "perf.data";
	int c, ret = 0;

	optind = 0;
	while (!ret && (c = getopt_long(argc, argv, "i:s:g:m:nh", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		ret = take_option(&r, c, &path);
	}
	if (!ret && optind < argc)
		ret = cli_error("report takes no argument '%s'; a recording is named with -i",
				argv[optind]);
	if (!ret)
		ret = run(&r, path);
	for (size_t i = 0; r.sums && i < r.nr_events; i++)
		profile_aggregate_free(r.sums[i]);
	free(r.sums);
	free(r.lost);
	profile_close(&r.profile);
	return ret;
}
