// SPDX-License-Identifier: BSD-2-Clause
/* From counts to the lines that quipu stat prints, and their means over several runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/stat.h"
#include "platform/host/host.h"

static struct quipu_count since_last(struct stat *s, struct handle *h)
{
	struct quipu_count now = {0}, d;

	if (h->fd >= 0) {
		struct host_count c;

		host_read(h->fd, &c);
		now = (struct quipu_count){
			.value = c.value, .enabled = c.enabled, .running = c.running};
	} else if (!h->event) {
		return now;
	} else {
		quipu_event_count(h->event, &now);
	}
	d = now;
	if (s->options->interval_ms) {
		d.value -= h->last.value;
		d.enabled -= h->last.enabled;
		d.running -= h->last.running;
		d.truth -= h->last.truth;
		h->last = now;
	}
	return d;
}

/* The count had the event run all the time it was enabled, to the nearest whole as perf estimates
 * it. */
static double scaled(const struct quipu_count *c)
{
	if (!c->running)
		return 0;
	if (c->running >= c->enabled)
		return (double)c->value;
	return floor((double)c->value * (double)c->enabled / (double)c->running + 0.5);
}

/* What the handles of events first..end-1 in @place counted, added up. */
static void sum_row(struct stat *s, size_t first, size_t end, size_t place, struct stat_row *row)
{
	double value = 0, truth = 0;
	bool has_truth = true;

	for (size_t i = first; i < end; i++)
		for (size_t k = 0; k < s->counters[i].n; k++) {
			struct handle *h = &s->counters[i].handles[k];
			struct quipu_count c;

			if (h->where != place)
				continue;
			c = since_last(s, h);
			row->units++;
			row->enabled += c.enabled;
			row->running += c.running;
			value += scaled(&c);
			has_truth = has_truth && c.has_truth;
			truth += c.has_truth ? (double)c.truth : 0;
			if (!c.running && c.reason)
				row->reason = c.reason;
			if (c.remark)
				row->remark = c.remark;
		}
	row->value = value;
	row->truth = truth;
	row->has_truth = has_truth && row->units;
}

static const char *not_counted_reason(const struct stat *s, const struct stat_row *row)
{
	if (row->reason)
		return row->reason;
	if (s->host && !row->enabled)
		return "nothing of what is watched ran meanwhile";
	return row->enabled ? "it was never on a counter: others filled them all the time"
			    : "it was not enabled while anything ran";
}

/* On the host: what happens in the kernel alone is never seen by those who may not look there. */
static const char *reason_for_host_zero(const struct quipu_parsed *e)
{
	const struct quipu_attr *a = &e->attr;
	bool kernels =
		a->type == PERF_TYPE_TRACEPOINT ||
		(a->type == PERF_TYPE_SOFTWARE && (a->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
						   a->config == PERF_COUNT_SW_CPU_MIGRATIONS));

	if (!kernels || !(a->flags & QUIPU_ATTR_EXCLUDE_KERNEL))
		return NULL;
	return "it happens in the kernel, which is not counted here (:u; `quipu doctor` says why)";
}

/* A 0 that could be nothing else says why. */
static const char *reason_for_zero(const struct quipu_attr *a)
{
	if (a->flags & QUIPU_ATTR_EXCLUDE_HOST)
		return "only guests of a hypervisor were asked for, and this machine runs none";
	if (a->flags & QUIPU_ATTR_EXCLUDE_USER)
		return "only kernel or hypervisor mode was asked for, and the engine runs user code alone";
	return NULL;
}

static void fill_row(struct stat *s, size_t first, size_t end, size_t place, struct stat_row *row)
{
	const struct quipu_parsed *e = &s->list.items[first];
	const struct counter *c = &s->counters[first];
	bool clock =
		e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config <= PERF_COUNT_SW_TASK_CLOCK;

	*row = (struct stat_row){
		.where_id = place,
		.where = s->options->aggregation == STAT_GLOBAL ? NULL : s->places[place].label,
		.name = e->name,
		.unit = clock ? "msec" : e->unit,
		.scale = clock ? 1e-6 : e->scale,
		.type = e->attr.type,
		.config = e->attr.config,
		.rings = (unsigned)(e->attr.flags / QUIPU_ATTR_EXCLUDE_USER) & 7,
		.exactness = c->exactness,
	};
	sum_row(s, first, end, place, row);
	row->state = c->refused;
	if (row->state != STAT_COUNTED) {
		row->reason = c->reason;
		row->remark = NULL;
		row->enabled = row->running = 0;
		row->has_truth = false;
	} else if (!row->running) {
		row->state = STAT_NOT_COUNTED;
		row->reason = not_counted_reason(s, row);
	} else {
		/* What the driver said of its own event is nearer to the cause. */
		row->reason = row->value || row->remark ? NULL
			      : s->host			? reason_for_host_zero(e)
							: reason_for_zero(&e->attr);
	}
}

static bool has_place(const struct stat *s, size_t first, size_t end, size_t place)
{
	for (size_t i = first; i < end; i++)
		for (size_t k = 0; k < s->counters[i].n; k++)
			if (s->counters[i].handles[k].where == place)
				return true;
	return false;
}

/* The end of the events that share a line with @first. */
static size_t line_end(const struct stat *s, size_t first)
{
	size_t end = first + 1;

	if (s->options->no_merge || !s->list.items[first].merge)
		return end;
	while (end < s->list.n && s->list.items[end].term == s->list.items[first].term)
		end++;
	return end;
}

/* One row for each line and place; an event that was refused everywhere gets one row all the same.
 */
int stat_rows(struct stat *s)
{
	size_t places = s->nplaces ? s->nplaces : 1, n = 0;

	free(s->rows);
	s->rows = calloc(s->list.n * places, sizeof(*s->rows));
	if (!s->rows || (!s->nplaces && stat_place(s, 0, "") == SIZE_MAX))
		return cli_error("out of memory");
	for (size_t i = 0, end; i < s->list.n; i = end) {
		end = line_end(s, i);
		for (size_t p = 0; p < s->nplaces; p++)
			if (has_place(s, i, end, p))
				fill_row(s, i, end, p, &s->rows[n++]);
		if (!n || s->rows[n - 1].name != s->list.items[i].name)
			fill_row(s, i, end, 0, &s->rows[n++]);
	}
	s->nrows = n;
	return 0;
}

/* ---- several runs ---- */

void stat_series_add(struct series *x, double v, unsigned n)
{
	double delta = v - x->mean;

	x->mean += delta / n;
	x->m2 += delta * (v - x->mean);
}

double stat_deviation(const struct series *x, unsigned n)
{
	return n < 2 ? 0 : sqrt(x->m2 / (n - 1) / n);
}

int stat_add_run(struct stat *s)
{
	double host[3];
	unsigned n = ++s->done;

	s->partial |= !s->host && run_partial(&s->run);
	if (!s->series)
		s->series = calloc(s->nrows + 1, sizeof(*s->series));
	if (!s->series)
		return cli_error("out of memory");
	if (s->host) {
		stat_series_add(&s->elapsed, stat_host_elapsed(s), n);
		stat_host_times(s, host);
	} else {
		stat_series_add(&s->elapsed, (double)quipu_system_time(s->run.system) / 1e9, n);
		session_host_times(s->run.session, &host[0], &host[1], &host[2]);
	}
	for (unsigned i = 0; i < 3; i++)
		stat_series_add(&s->times[i], host[i], n);
	for (size_t i = 0; i < s->nrows; i++) {
		struct stat_row *r = &s->rows[i];
		struct series *x = &s->series[i];
		double deviation;

		stat_series_add(x, r->value, n);
		x->truth += r->truth;
		x->enabled += (double)r->enabled;
		x->running += (double)r->running;
		deviation = stat_deviation(x, n);
		r->value = x->mean;
		r->truth = x->truth / n;
		r->enabled = (uint64_t)(x->enabled / n);
		r->running = (uint64_t)(x->running / n);
		r->deviation = x->mean ? 100 * deviation / x->mean : 0;
	}
	return 0;
}
