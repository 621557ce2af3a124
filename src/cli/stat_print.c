// SPDX-License-Identifier: BSD-2-Clause
/*
 * The output of `quipu stat`. Layout, field order of -x and keys of -j are those of perf 6.1
 * (tools/perf/Documentation/ perf-stat.txt), so that what reads perf's output reads this one.
 * Added: what each number is (a column; the last fields; the key "class"), the truth beside a
 * multiplexed estimate, the reason where there is no number, and what the driver remarked of one
 * that is there. perf's metrics and its top-down figures are not printed.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "cli/stat_print.h"

#define NAME_WIDTH   32
#define CLASS_WIDTH  8
#define METRIC_WIDTH 35
#define RINGS	     8u

/* ---- derived figures ---- */

struct metric {
	const char *format; /* of the text output; NULL: none */
	const char *unit;
	double value;
	char unit_buf[16];
};

/* An event over another of the same place and rings. */
static const struct ratio {
	uint32_t type;
	uint64_t config;
	uint32_t base_type;
	uint64_t base;
	double factor;
	const char *format, *unit;
} ratios[] = {
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CPU_CYCLES, 1, "%7.2f ", "insn per cycle"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100, "%7.2f%%", "of all branches"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CACHE_REFERENCES, 100, "%8.3f %%", "of all cache refs"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CPU_CYCLES, 100, "%7.2f%%", "frontend cycles idle"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CPU_CYCLES, 100, "%7.2f%%", "backend cycles idle"},
	{PERF_TYPE_HW_CACHE, 0x10000, PERF_TYPE_HW_CACHE, 0, 100, "%7.2f%%",
	 "of all L1-dcache accesses"},
	{PERF_TYPE_HW_CACHE, 0x10001, PERF_TYPE_HW_CACHE, 1, 100, "%7.2f%%",
	 "of all L1-icache accesses"},
	{PERF_TYPE_HW_CACHE, 0x10002, PERF_TYPE_HW_CACHE, 2, 100, "%7.2f%%",
	 "of all LL-cache accesses"},
	{PERF_TYPE_HW_CACHE, 0x10003, PERF_TYPE_HW_CACHE, 3, 100, "%7.2f%%",
	 "of all dTLB cache accesses"},
	{PERF_TYPE_HW_CACHE, 0x10004, PERF_TYPE_HW_CACHE, 4, 100, "%7.2f%%",
	 "of all iTLB cache accesses"},
};
#define RATIOS (sizeof(ratios) / sizeof(*ratios))

/* What the rows of one place divide by. */
struct place {
	double base[RATIOS][RINGS];
	double nsecs; /* of task-clock or cpu-clock */
};

static bool is_clock(const struct stat_row *r)
{
	return r->type == PERF_TYPE_SOFTWARE &&
	       (r->config == PERF_COUNT_SW_CPU_CLOCK || r->config == PERF_COUNT_SW_TASK_CLOCK);
}

static struct place *gather(const struct stat_sheet *s)
{
	struct place *places;
	size_t n = 1;

	for (size_t i = 0; i < s->n; i++)
		if (s->rows[i].where_id >= n)
			n = s->rows[i].where_id + 1;
	places = calloc(n, sizeof(*places));
	for (size_t i = 0; places && i < s->n; i++) {
		const struct stat_row *r = &s->rows[i];
		struct place *p = &places[r->where_id];

		if (r->state != STAT_COUNTED)
			continue;
		if (is_clock(r) && !p->nsecs)
			p->nsecs = r->value;
		for (size_t k = 0; k < RATIOS; k++)
			if (r->type == ratios[k].base_type && r->config == ratios[k].base)
				p->base[k][r->rings % RINGS] = r->value;
	}
	return places;
}

/* So many a second of task-clock, with K, M or G. */
static struct metric per_second(const struct stat_row *r, const struct place *p)
{
	static const char prefixes[] = " KMG";
	struct metric m = {.format = "%8.3f", .value = 1e9 * r->value / p->nsecs};
	unsigned k = 0;

	for (; k < 3 && m.value >= 1000; k++)
		m.value /= 1000;
	snprintf(m.unit_buf, sizeof(m.unit_buf), k ? "%c/sec" : "/sec", prefixes[k]);
	return m;
}

static struct metric derive(const struct stat_sheet *s, const struct stat_row *r,
			    const struct place *p)
{
	if (r->state != STAT_COUNTED || !p)
		return (struct metric){0};
	if (is_clock(r)) {
		if (s->elapsed <= 0)
			return (struct metric){0};
		return (struct metric){"%8.3f", "CPUs utilized", r->value / (s->elapsed * 1e9), ""};
	}
	if (r->type == PERF_TYPE_HARDWARE && r->config == PERF_COUNT_HW_CPU_CYCLES) {
		if (!p->nsecs)
			return (struct metric){0};
		return (struct metric){"%8.3f", "GHz", r->value / p->nsecs, ""};
	}
	for (size_t k = 0; k < RATIOS; k++) {
		double base = p->base[k][r->rings % RINGS];

		if (r->type != ratios[k].type || r->config != ratios[k].config)
			continue;
		if (!base)
			return (struct metric){0};
		return (struct metric){ratios[k].format, ratios[k].unit,
				       ratios[k].factor * r->value / base, ""};
	}
	return p->nsecs && !*r->unit ? per_second(r, p) : (struct metric){0};
}

static const char *metric_unit(const struct metric *m)
{
	return m->unit ? m->unit : m->unit_buf;
}

/* ---- pieces ---- */

static const char *state_text(enum stat_state state)
{
	static const char *const names[] = {
		[STAT_NOT_COUNTED] = "<not counted>",
		[STAT_NOT_SUPPORTED] = "<not supported>",
		[STAT_NOT_MODELLED] = "<not modelled>",
	};

	return names[state];
}

static bool multiplexed(const struct stat_row *r)
{
	return r->state == STAT_COUNTED && r->running < r->enabled;
}

/* Is the truth worth a column: is the number beside it an estimate, or missing? */
static bool shows_truth(const struct stat_row *r)
{
	return r->has_truth && (multiplexed(r) || r->state == STAT_NOT_COUNTED);
}

static double percent_running(const struct stat_row *r)
{
	return r->enabled ? 100.0 * (double)r->running / (double)r->enabled : 100.0;
}

/* What the event's counts are. Of a run that was not counted whole none is exact. */
static const char *kind_name(const struct stat_sheet *s, const struct stat_row *r)
{
	return s->partial && r->exactness == QUIPU_EXACT ? "partial"
							 : quipu_exactness_name(r->exactness);
}

/* What the number in the value column is. A scaled one is neither measured nor modelled. @none:
 * where there is no number. */
static const char *class_name(const struct stat_sheet *s, const struct stat_row *r,
			      const char *none)
{
	if (r->state != STAT_COUNTED)
		return none;
	return multiplexed(r) ? "estimate" : kind_name(s, r);
}

/* A value as perf prints it: two decimals where the event has a scale. */
static void format_value(char *buf, size_t len, const struct stat_row *r, double value,
			 bool grouped)
{
	int decimals = floor(r->scale) != r->scale ? 2 : 0;

	snprintf(buf, len, grouped ? "%'.*f" : "%.*f", decimals, value * r->scale);
}

/* Bytes of the UTF-8 character at @p; 0 when it is none (a lone or truncated byte). */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = *p < 0x80		     ? 1
		   : *p >= 0xc2 && *p < 0xe0 ? 2
		   : *p >= 0xe0 && *p < 0xf0 ? 3
		   : *p >= 0xf0 && *p < 0xf5 ? 4
					     : 0;

	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, past the last code point */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* Names may be any bytes that stood on the command line; what is no UTF-8 is written as the code
 * point of the byte. */
static void json_string(FILE *f, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	putc('"', f);
	while (*p) {
		size_t n = utf8_length(p);

		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || !n)
			fprintf(f, "\\u%04x", *p);
		else
			fwrite(p, 1, n, f);
		p += n ? n : 1;
	}
	putc('"', f);
}

/* ---- the table ---- */

/* A line of text; what does not fit is cut. */
struct line {
	char text[1024];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->n, sizeof(l->text) - l->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->n += (size_t)n < sizeof(l->text) - l->n ? (size_t)n : sizeof(l->text) - l->n - 1;
}

static void put_line(FILE *f, struct line *l)
{
	while (l->n && l->text[l->n - 1] == ' ')
		l->text[--l->n] = '\0';
	fprintf(f, "%s\n", l->text);
}

static void add_where(struct line *l, const struct stat_sheet *s, const struct stat_row *r)
{
	if (s->interval)
		add(l, "%16.9f ", s->at);
	switch (s->aggregation) {
	case STAT_GLOBAL: return;
	case STAT_CPU: add(l, "%-7s", r->where); return;
	case STAT_CORE: add(l, "%-10s %9u ", r->where, r->units); return;
	case STAT_SOCKET: add(l, "%-5s %5u ", r->where, r->units); return;
	case STAT_THREAD: add(l, "%20s ", r->where); return;
	}
}

static void add_metric(struct line *l, const struct metric *m)
{
	struct line part = {0};

	if (!m->format) {
		add(l, "%*s", METRIC_WIDTH, "");
		return;
	}
	add(&part, " # ");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	add(&part, m->format, m->value); /* one of the table's own formats */
#pragma GCC diagnostic pop
	add(&part, " %s", metric_unit(m));
	add(l, "%-*s", METRIC_WIDTH, part.text);
}

static void text_row(FILE *f, const struct stat_sheet *s, const struct stat_row *r,
		     const struct place *p, int unit_width)
{
	struct metric m = derive(s, r, p);
	struct line l = {0};
	char value[64];

	add_where(&l, s, r);
	if (r->state == STAT_COUNTED)
		format_value(value, sizeof(value), r, r->value, !s->digits);
	else
		snprintf(value, sizeof(value), "%s", state_text(r->state));
	add(&l, "%18s %-*s %-*s %-*s", value, unit_width, r->state == STAT_COUNTED ? r->unit : "",
	    NAME_WIDTH, r->name, CLASS_WIDTH, class_name(s, r, "-"));
	if (r->reason)
		add(&l, " # %s", r->reason);
	else if (r->state == STAT_COUNTED && (m.format || !r->remark))
		add_metric(&l, &m);
	if (s->runs > 1 && r->state == STAT_COUNTED)
		add(&l, "  ( +-%6.2f%% )", r->deviation);
	if (multiplexed(r))
		add(&l, "  (%.2f%%)", percent_running(r));
	format_value(value, sizeof(value), r, r->truth, !s->digits);
	if (shows_truth(r))
		add(&l, "  truth: %s %s", value, kind_name(s, r));
	if (r->remark && !r->reason)
		add(&l, " # %s", r->remark);
	put_line(f, &l);
}

static void text_title(FILE *f, const struct stat_sheet *s)
{
	fprintf(f, "\n Performance counter stats for %s", s->title);
	if (s->runs > 1)
		fprintf(f, " (%u runs)", s->runs);
	fputs(":\n\n", f);
}

static void text_foot(FILE *f, const struct stat_sheet *s)
{
	int pad = 5 + NAME_WIDTH - (int)strlen(" seconds time elapsed");
	const char *label = s->host ? "host" : "modelled";

	if (s->runs > 1)
		fprintf(f, "\n %17.9f +- %.9f seconds time elapsed  ( +-%6.2f%% )  %s\n",
			s->elapsed, s->elapsed_deviation,
			s->elapsed ? 100 * s->elapsed_deviation / s->elapsed : 0, label);
	else
		fprintf(f, "\n %17.9f seconds time elapsed%*s %s\n", s->elapsed, pad + 1, "",
			label);
	if (s->host && (s->host_user > 0 || s->host_system > 0))
		fprintf(f, "\n %17.9f seconds user%*s host\n %17.9f seconds sys%*s host\n",
			s->host_user, pad + 9, "", s->host_system, pad + 10, "");
	if (s->host) {
		fputc('\n', f);
		return;
	}
	fprintf(f, " %17.9f seconds on this host%*s host      # %.3f user, %.3f sys\n\n",
		s->host_elapsed, pad + 1, "", s->host_user, s->host_system);
}

/* ---- --per-mode ---- */

static void print_mode(FILE *f, const struct stat_sheet *s, const struct stat_row *r)
{
	char value[64], cell[96];

	if (r->state == STAT_COUNTED)
		format_value(value, sizeof(value), r, r->value, !s->digits);
	snprintf(cell, sizeof(cell), "%s %s",
		 r->state == STAT_COUNTED ? value : state_text(r->state),
		 r->state == STAT_COUNTED ? class_name(s, r, "") : "");
	fprintf(f, "%26s", cell);
}

static void print_modes(FILE *f, const struct stat_sheet *s)
{
	fprintf(f, "%26s%26s%26s\n\n", "user", "kernel", "hypervisor");
	for (size_t i = 0; i + 2 < s->n; i += 3) {
		const char *name = s->rows[i].name;
		size_t len = strlen(name);

		for (size_t k = 0; k < 3; k++)
			print_mode(f, s, &s->rows[i + k]);
		/* without the mode that was put behind it */
		fprintf(f, "  %.*s\n", (int)(len - (len > 2 && name[len - 2] == ':' ? 2 : 1)),
			name);
	}
	for (size_t k = 0; k < s->n; k++)
		if (s->rows[k].reason)
			fprintf(f, "\n%s: %s\n", s->rows[k].name, s->rows[k].reason);
}

static void print_text(FILE *f, const struct stat_sheet *s, const struct place *places, bool first)
{
	int unit_width = 4;

	for (size_t i = 0; i < s->n; i++)
		if ((int)strlen(s->rows[i].unit) > unit_width)
			unit_width = (int)strlen(s->rows[i].unit);
	if (!s->interval)
		text_title(f, s);
	else if (first)
		fprintf(f, "#           time%s             counts %*s events\n",
			s->aggregation == STAT_GLOBAL ? "" : " where", unit_width, "unit");
	if (s->per_mode)
		print_modes(f, s);
	for (size_t i = 0; i < s->n && !s->per_mode; i++)
		text_row(f, s, &s->rows[i], places ? &places[s->rows[i].where_id] : NULL,
			 unit_width);
	if (!s->interval)
		text_foot(f, s);
}

/* ---- -x ---- */

static void csv_where(FILE *f, const struct stat_sheet *s, const struct stat_row *r)
{
	if (s->interval)
		fprintf(f, "%16.9f%s", s->at, s->separator);
	if (s->aggregation == STAT_GLOBAL)
		return;
	fprintf(f, "%s%s", r->where, s->separator);
	if (s->aggregation == STAT_CORE || s->aggregation == STAT_SOCKET)
		fprintf(f, "%u%s", r->units, s->separator);
}

/* perf's fields in its order; then what the number is, and the truth beside an estimate. */
static void csv_row(FILE *f, const struct stat_sheet *s, const struct stat_row *r,
		    const struct place *p)
{
	struct metric m = derive(s, r, p);
	const char *sep = s->separator;
	char value[64];

	csv_where(f, s, r);
	format_value(value, sizeof(value), r, r->value, false);
	fprintf(f, "%s%s%s%s%s%s", r->state == STAT_COUNTED ? value : state_text(r->state), sep,
		r->state == STAT_COUNTED ? r->unit : "", sep, r->name, sep);
	if (s->runs > 1)
		fprintf(f, "%.2f%%%s", r->deviation, sep);
	fprintf(f, "%llu%s%.2f%s", (unsigned long long)r->running, sep, percent_running(r), sep);
	if (m.format)
		fprintf(f, "%.*f%s%s", strstr(m.format, ".2f") ? 2 : 3, m.value, sep,
			metric_unit(&m));
	else
		fputs(sep, f);
	fprintf(f, "%s%s", sep, class_name(s, r, ""));
	if (shows_truth(r)) {
		format_value(value, sizeof(value), r, r->truth, false);
		fprintf(f, "%s%s", sep, value);
	}
	putc('\n', f);
}

/* ---- -j ---- */

static void json_where(FILE *f, const struct stat_sheet *s, const struct stat_row *r)
{
	static const char *const keys[] = {[STAT_CPU] = "cpu",
					   [STAT_CORE] = "core",
					   [STAT_SOCKET] = "socket",
					   [STAT_THREAD] = "thread"};

	if (s->interval)
		fprintf(f, "\"interval\" : %.9f, ", s->at);
	if (s->aggregation == STAT_GLOBAL)
		return;
	fprintf(f, "\"%s\" : ", keys[s->aggregation]);
	json_string(f, s->aggregation == STAT_CPU ? r->where + strlen("CPU") : r->where);
	if (s->aggregation == STAT_CORE || s->aggregation == STAT_SOCKET)
		fprintf(f, ", \"aggregate-number\" : %u", r->units);
	fputs(", ", f);
}

static void json_row(FILE *f, const struct stat_sheet *s, const struct stat_row *r,
		     const struct place *p)
{
	struct metric m = derive(s, r, p);

	putc('{', f);
	json_where(f, s, r);
	if (r->state == STAT_COUNTED)
		fprintf(f, "\"counter-value\" : \"%f\", ", r->value * r->scale);
	else
		fprintf(f, "\"counter-value\" : \"%s\", ", state_text(r->state));
	fputs("\"unit\" : ", f);
	json_string(f, r->state == STAT_COUNTED ? r->unit : "");
	fputs(", \"event\" : ", f);
	json_string(f, r->name);
	if (s->runs > 1)
		fprintf(f, ", \"variance\" : %.2f", r->deviation);
	fprintf(f,
		", \"event-runtime\" : %llu, \"pcnt-running\" : %.2f, \"metric-value\" : %f, \"metric-unit\" : ",
		(unsigned long long)r->running, percent_running(r), m.format ? m.value : 0.0);
	json_string(f, m.format ? metric_unit(&m) : "");
	fprintf(f, ", \"class\" : \"%s\"", class_name(s, r, "none"));
	if (multiplexed(r))
		fputs(", \"estimate\" : true", f);
	if (shows_truth(r))
		fprintf(f, ", \"exact-value\" : \"%f\", \"exact-value-class\" : \"%s\"",
			r->truth * r->scale, kind_name(s, r));
	if (r->reason) {
		fputs(", \"reason\" : ", f);
		json_string(f, r->reason);
	}
	if (r->remark) {
		fputs(", \"remark\" : ", f);
		json_string(f, r->remark);
	}
	fputs("}\n", f);
}

void stat_print(FILE *f, const struct stat_sheet *s, bool first)
{
	struct place *places = gather(s);

	if (s->format == STAT_TEXT)
		print_text(f, s, places, first);
	for (size_t i = 0; s->format != STAT_TEXT && i < s->n; i++) {
		const struct place *p = places ? &places[s->rows[i].where_id] : NULL;

		if (s->format == STAT_CSV)
			csv_row(f, s, &s->rows[i], p);
		else
			json_row(f, s, &s->rows[i], p);
	}
	free(places);
}
