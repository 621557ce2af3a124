/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu resolve: addresses of hypervisor code become names, through RTAS call ibm,lpar-perftools
 * (LoPAR 2.9; RTAS sheet 5.7). Addresses come as arguments, from a file, from the samples of a
 * recording, or stand in the output of `perf script`.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/hypervisor.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_PERFMAP, FORMAT_KALLSYMS };
static const char *const formats[] = {"text", "json", "csv", "perfmap", "kallsyms", NULL};

#define EXIT_UNNAMED 1
#define LINE_MOST    4096u

/* Addresses to be named, with what stood behind them or how often they occur. */
struct list {
	uint64_t *iar, *count;
	uint32_t *rest; /* in text, 0: nothing */
	size_t n, room;
	char *text;
	size_t text_len, text_room;
};

/* Of --inject. */
struct injection {
	uint32_t nth;
	int32_t status;
};
#define INJECTIONS 8u

struct resolve {
	struct hv_options o;
	struct hv hv;
	const char *from, *input, *emit;
	enum format format;
	bool filter, step, stats, tracing, aliases;
	struct injection inject[INJECTIONS];
	unsigned ninject;
	struct quipu_hvmap *map; /* for aliases */
	FILE *trace;
	struct list list;
	struct quipu_hvsym_result *results;
};

static const char usage[] =
	"usage: quipu resolve [-m MACHINE | --map FILE] [-p PARTITION] [OPTIONS] ADDR...\n"
	"       quipu resolve ... --from FILE     one address a line (- : standard input)\n"
	"       quipu resolve ... -i perf.data    the hypervisor addresses of a recording\n"
	"       quipu resolve ... --filter        perf script's text (-F +misc) on standard input, named\n\n"
	"Names of hypervisor code, asked of the firmware by RTAS call ibm,lpar-perftools. Without -m and\n"
	"--map: the machine of the quipu exec around, else machine lpar. ADDR is hexadecimal, with or\n"
	"without 0x; ADDR+OFFSET is a sum.\n\n"
	"  -m, --machine M      ask machine M\n"
	"      --map FILE       ask a partition over this symbol file: nm, System.map, kallsyms, skiboot.map,\n"
	"                       perf's map, or an ELF file\n"
	"      --map-format F   what it is: nm, kallsyms, perfmap, elf [found out]\n"
	"      --base ADDR      load address of an ELF file; added to the addresses of a text\n"
	"  -p, --partition N    [1]\n"
	"      --transport T    model: in this process; machine: of the quipu exec around; linux: of the\n"
	"                       POWER partition that this host is (root) [what -m, --map and exec say]\n"
	"      --format F       text, json, csv, perfmap, kallsyms [text]; --json is --format json\n"
	"      --emit-map FILE  also write what was learnt as perf's map\n"
	"      --stats          calls, waits and restarts on standard error\n"
	"      --trace[=FILE]   each call's cells\n"
	"      --deadline MS    most time for an address [10000]\n"
	"      --buffer BYTES   of the work area to begin with [4096]\n"
	"      --bisect         fewer calls for many addresses; wrong where functions lie inside others\n"
	"      --no-probe       do not ask twice to tell a first instruction from no address\n"
	"      --no-lock        do not take turns with other processes of this partition\n"
	"      --wait           delays of a modelled machine take their time\n"
	"      --aliases        the function's other names too, of a --map file or -m machine\n"
	"      --inject N=STATUS  each N-th call ends in STATUS: -1, -2, -3, -5, -9002, 9900 to 9905 (may be\n"
	"                       given again; where two meet, the first wins)\n"
	"      --step           make one call for each line 'SEQUENCE ADDR' of standard input, and show\n"
	"                       its status and next sequence number\n\n"
	"Exit status: 0 all have names, 1 some have not, 2 usage, 3 no such call or no authority,\n"
	"4 the machine does not answer.\n";

/* ---- addresses ---- */

/* A word of hexadecimal digits, 0x in front or not, and more of them behind +. False: it is none.
 */
static bool parse_address(const char *s, size_t len, uint64_t *value)
{
	uint64_t sum = 0, v = 0;
	unsigned digits = 0;

	for (size_t i = 0; i <= len; i++) {
		int c = i < len ? (unsigned char)s[i] : '+';

		if (!digits && c == '0' && i + 1 < len && (s[i + 1] | 32) == 'x') {
			i++;
			continue;
		}
		if (c == '+') {
			if (!digits || digits > 16)
				return false;
			sum += v;
			v = digits = 0;
		} else if (isxdigit(c)) {
			v = v << 4 | (uint64_t)(isdigit(c) ? c - '0' : (c | 32) - 'a' + 10);
			digits++;
		} else {
			return false;
		}
	}
	*value = sum;
	return true;
}

static int keep_rest(struct list *l, const char *s, size_t len, uint32_t *at)
{
	*at = 0;
	if (!len)
		return 0;
	if (l->text_len + len + 2 > l->text_room) {
		size_t room = 2 * (l->text_room + len + 2);
		char *p = room > UINT32_MAX ? NULL : realloc(l->text, room);

		if (!p)
			return -ENOMEM;
		l->text = p;
		l->text_room = room;
	}
	l->text_len += !l->text_len; /* 0 means nothing */
	*at = (uint32_t)l->text_len;
	memcpy(l->text + l->text_len, s, len);
	l->text[l->text_len + len] = 0;
	l->text_len += len + 1;
	return 0;
}

static int add(struct list *l, uint64_t iar, const char *rest, size_t len)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		uint64_t *iars = reallocarray(l->iar, room, sizeof(*iars));
		uint32_t *rests;

		if (!iars)
			return -ENOMEM;
		l->iar = iars;
		rests = reallocarray(l->rest, room, sizeof(*rests));
		if (!rests)
			return -ENOMEM;
		l->rest = rests;
		l->room = room;
	}
	l->iar[l->n] = iar;
	return keep_rest(l, rest, len, &l->rest[l->n++]);
}

static int from_arguments(struct resolve *r, char **argv)
{
	for (; *argv; argv++) {
		uint64_t iar;

		if (!parse_address(*argv, strlen(*argv), &iar))
			return cli_error(
				"'%s' is no address: hexadecimal, as 0xa01f40 or a01f40 or "
				"a01f00+40",
				*argv);
		if (add(&r->list, iar, NULL, 0))
			return cli_error("out of memory");
	}
	return 0;
}

/* The file may be anything: what a terminal would obey is not shown to it. */
static int not_an_address(const struct resolve *r, unsigned number, const char *text, size_t len)
{
	char shown[41] = "";

	for (size_t i = 0; i < len && i < sizeof(shown) - 1; i++)
		shown[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	return cli_error("%s: line %u does not begin with an address: '%s'", r->from, number,
			 shown);
}

static int take_line(struct resolve *r, const char *line, size_t len, unsigned number)
{
	size_t at = 0, end;
	uint64_t iar;

	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	while (at < len && isblank((unsigned char)line[at]))
		at++;
	if (at == len || line[at] == '#')
		return 0;
	for (end = at; end < len && !isblank((unsigned char)line[end]);)
		end++;
	if (!parse_address(line + at, end - at, &iar))
		return not_an_address(r, number, line + at, end - at);
	return add(&r->list, iar, line + end, len - end) ? cli_error("out of memory") : 0;
}

static int from_file(struct resolve *r)
{
	FILE *f = strcmp(r->from, "-") ? fopen(r->from, "re") : stdin;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	if (!f)
		return cli_error("%s: %s", r->from, strerror(errno));
	errno = 0;
	for (unsigned number = 1; !rc && (n = getline(&line, &room, f)) >= 0; number++)
		rc = take_line(r, line, (size_t)n, number);
	if (!rc && ferror(f))
		rc = cli_error("%s: %s", r->from, strerror(errno));
	free(line);
	if (f != stdin)
		fclose(f);
	return rc;
}

static int from_recording(struct resolve *r)
{
	struct perfdata_error err;
	struct perfdata *data = perfdata_open(r->input, &err);
	uint64_t *iar = NULL;
	size_t n = 0;
	int rc;

	if (!data)
		return cli_error("%s", err.text);
	rc = profile_hypervisor_addresses(data, &iar, &r->list.count, &n);
	perfdata_close(data);
	if (rc)
		return cli_error("out of memory");
	for (size_t i = 0; !rc && i < n; i++)
		rc = add(&r->list, iar[i], NULL, 0);
	free(iar);
	if (!rc && !n)
		fprintf(stderr, "quipu: %s has no samples of a hypervisor\n", r->input);
	return rc ? cli_error("out of memory") : 0;
}

/* ---- results ---- */

static void hex16(char *out, uint64_t v)
{
	for (unsigned i = 16; i-- > 0; v >>= 4)
		out[i] = "0123456789abcdef"[v & 15];
}

/* Millions of lines: no printf for the usual one. */
static void print_named(const struct quipu_hvsym_result *r, const char *tail)
{
	char head[18], offset[18];
	unsigned at = 16;
	uint64_t v = r->offset;

	hex16(head, r->iar);
	head[16] = head[17] = ' ';
	fwrite_unlocked(head, 1, sizeof(head), stdout);
	fputs_unlocked(r->name, stdout);
	do {
		offset[--at] = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	fwrite_unlocked("+0x", 1, 3, stdout);
	fwrite_unlocked(offset + at, 1, 16 - at, stdout);
	fputs_unlocked(tail, stdout);
}

static void print_error(const struct quipu_hvsym_result *r)
{
	if (r->status)
		printf("<error: %s (%d)>", quipu_rtas_status_name(r->status), r->status);
	else
		printf("<error: %.*s>", (int)strcspn(quipu_hvsym_strerror(r->error), ":("),
		       quipu_hvsym_strerror(r->error));
}

/* The next of the other names of the function at @start: they are sorted by address. *at: where to
 * go on, 0 at first. */
static const char *next_alias(const struct quipu_hvmap *map, uint64_t start, size_t *at)
{
	size_t low = 0, high = quipu_hvmap_aliases(map);
	struct quipu_hvmap_hit hit;

	while (!*at && low < high) {
		size_t mid = low + (high - low) / 2;

		quipu_hvmap_alias(map, mid, &hit);
		if (hit.start < start)
			low = mid + 1;
		else
			high = mid;
	}
	if (!*at)
		*at = low;
	if (*at == quipu_hvmap_aliases(map))
		return NULL;
	quipu_hvmap_alias(map, (*at)++, &hit);
	return hit.start == start ? hit.name : NULL;
}

static bool is_named(const struct quipu_hvsym_result *x)
{
	return !x->error && x->state == QUIPU_HVSYM_OK;
}

static void print_text(const struct resolve *r, size_t i)
{
	const char *name;
	size_t at = 0;
	const struct quipu_hvsym_result *x = &r->results[i];

	if (is_named(x)) {
		print_named(x, "/?");
	} else if (!x->error && x->state == QUIPU_HVSYM_UNKNOWN) {
		print_named(x, "/? (first instruction, or no address)");
	} else {
		printf("%016" PRIx64 "  ", x->iar);
		if (x->error)
			print_error(x);
		else
			printf("<invalid: %s>", x->name);
	}
	while (r->map && is_named(x) && (name = next_alias(r->map, x->start, &at)))
		printf(" = %s", name);
	if (r->list.count)
		printf("  %" PRIu64 " samples", r->list.count[i]);
	if (r->list.rest[i])
		fputs_unlocked(r->list.text + r->list.rest[i], stdout);
	putchar_unlocked('\n');
}

/* Names are printable ASCII, whatever the firmware says. */
static void print_string(const char *s)
{
	putchar_unlocked('"');
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' || (unsigned char)*s >= 0x7f)
			printf("\\u%04x", (unsigned char)*s);
		else if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else
			putchar_unlocked(*s);
	}
	putchar_unlocked('"');
}

static const char *state_of(const struct quipu_hvsym_result *x)
{
	static const char *const states[] = {
		[QUIPU_HVSYM_OK] = "ok",
		[QUIPU_HVSYM_INVALID] = "invalid",
		[QUIPU_HVSYM_UNKNOWN] = "unknown",
	};

	return x->error ? "error" : states[x->state];
}

static void print_json_aliases(const struct quipu_hvmap *map, uint64_t start)
{
	const char *between = "", *name;
	size_t at = 0;

	printf(", \"aliases\": [");
	while ((name = next_alias(map, start, &at))) {
		fputs(between, stdout);
		print_string(name);
		between = ", ";
	}
	putchar_unlocked(']');
}

static void print_json(const struct resolve *r, size_t i)
{
	const struct quipu_hvsym_result *x = &r->results[i];

	printf("%s\n  {\"address\": \"0x%016" PRIx64 "\", \"state\": \"%s\"", i ? "," : "", x->iar,
	       state_of(x));
	if (x->error) {
		printf(", \"status\": %d, \"error\": ", x->status);
		print_string(quipu_hvsym_strerror(x->error));
	} else {
		printf(", \"name\": ");
		print_string(x->name);
	}
	if (!x->error && x->state != QUIPU_HVSYM_INVALID)
		printf(", \"offset\": %" PRIu64 ", \"start\": \"0x%016" PRIx64 "\"", x->offset,
		       x->start);
	if (r->list.count)
		printf(", \"samples\": %" PRIu64, r->list.count[i]);
	if (r->map && is_named(x))
		print_json_aliases(r->map, x->start);
	printf(", \"calls\": %" PRIu32 "}", x->calls);
}

static void print_csv(const struct resolve *r, size_t i)
{
	const struct quipu_hvsym_result *x = &r->results[i];

	printf("0x%016" PRIx64 ",%s,%s0x%" PRIx64 ",", x->iar, state_of(x), "",
	       x->error ? 0 : x->offset);
	/* doubled quotes, as RFC 4180 has it */
	putchar_unlocked('"');
	for (const char *s = x->error ? quipu_hvsym_strerror(x->error) : x->name; *s; s++) {
		if (*s == '"')
			putchar_unlocked('"');
		putchar_unlocked(*s);
	}
	puts("\"");
}

/* Functions instead of addresses: perf's map, or kallsyms' form of it. */
static int print_map(struct resolve *r, FILE *f, bool kallsyms)
{
	char *text = profile_hypervisor_text(r->results, r->list.n, r->hv.where, NULL);
	struct profile_hypervisor *h = text ? profile_hypervisor_read(text, strlen(text)) : NULL;

	for (size_t i = 0; h && i < profile_hypervisor_count(h); i++) {
		const struct profile_symbol *s = profile_hypervisor_symbol(h, i);

		if (kallsyms)
			fprintf(f, "%016" PRIx64 " t %s\n", s->start, s->name);
		else
			fprintf(f, "%" PRIx64 " %" PRIx64 " %s\n", s->start, s->end - s->start,
				s->name);
	}
	profile_hypervisor_free(h);
	free(text);
	return h ? 0 : cli_error("out of memory");
}

static int emit_map(struct resolve *r)
{
	FILE *f = fopen(r->emit, "we");
	int rc;

	if (!f)
		return cli_error("%s: %s", r->emit, strerror(errno));
	rc = print_map(r, f, false);
	if (fclose(f) && !rc)
		rc = cli_error("%s: %s", r->emit, strerror(errno));
	return rc;
}

static int print_results(struct resolve *r)
{
	static void (*const rows[])(const struct resolve *, size_t) = {print_text, print_json,
								       print_csv};

	if (r->format >= FORMAT_PERFMAP)
		return print_map(r, stdout, r->format == FORMAT_KALLSYMS);
	if (r->format == FORMAT_CSV)
		puts("address,state,offset,name");
	if (r->format == FORMAT_JSON)
		printf("[");
	for (size_t i = 0; i < r->list.n && !ferror(stdout); i++)
		rows[r->format](r, i);
	if (r->format == FORMAT_JSON)
		printf("%s]\n", r->list.n ? "\n" : "");
	return 0;
}

static void print_stats(const struct resolve *r)
{
	struct quipu_hvsym_stats s;

	quipu_hvsym_stats(r->hv.sym, &s);
	fprintf(stderr,
		"quipu: %s: %" PRIu64 " lookups, %" PRIu64 " known already, %" PRIu64
		" RTAS calls, %" PRIu64 " restarts, %" PRIu64 " probes, %" PRIu64
		" buffers grown, %" PRIu64 " ms waited%s\n",
		r->hv.where, s.lookups, s.hits, s.calls, s.restarts, s.probes, s.grown, s.slept_ms,
		r->hv.clock.now_ms ? " (model time)" : "");
}

/* The first error that is the platform's own is told with its remedy. */
static int exit_status(const struct resolve *r)
{
	int status = 0;

	for (size_t i = 0; i < r->list.n; i++) {
		int error = r->results[i].error;

		if (error == -EACCES || error == -ENOSYS) {
			cli_error("%s: %s", r->hv.where, quipu_hvsym_strerror(error));
			return HV_EXIT_REFUSED;
		}
		if (error == -ECONNRESET) {
			cli_error("%s: %s", r->hv.where, quipu_hvsym_strerror(error));
			return HV_EXIT_TRANSPORT;
		}
		if (error && !status)
			cli_error("%016" PRIx64 ": %s", r->results[i].iar,
				  quipu_hvsym_strerror(error));
		if (error || r->results[i].state != QUIPU_HVSYM_OK)
			status = EXIT_UNNAMED;
	}
	return status;
}

static int name_all(struct resolve *r)
{
	int rc;

	r->results = calloc(r->list.n ? r->list.n : 1, sizeof(*r->results));
	if (!r->results)
		return cli_error("out of memory");
	rc = quipu_hvsym_resolve_many(r->hv.sym, r->list.iar, r->list.n, r->results, NULL);
	if (rc == -ENOMEM)
		return cli_error("out of memory");
	rc = print_results(r);
	if (!rc && r->emit)
		rc = emit_map(r);
	return rc ? rc : exit_status(r);
}

/* ---- perf script's text ---- */

/* Is it the line of a sample of the hypervisor? perf 6.1 prints KUH for it, a mode of 3 taken as
 * bits; we print H. The column is in front of the time, which ends in a colon. */
static bool of_hypervisor(const char *line)
{
	const char *end = strstr(line, ": ");

	for (const char *at = line; (at = strpbrk(at, "KH")) && (!end || at < end); at++) {
		size_t n = strspn(at, "KUH");

		if (at != line && at[-1] == ' ' && at[n] == ' ' &&
		    (!strncmp(at, "KUH ", 4) || !strncmp(at, "H ", 2)))
			return true;
		at += n ? n - 1 : 0;
	}
	return false;
}

static bool named_line(struct resolve *r, char *line)
{
	char *unknown = strstr(line, " [unknown]"), *word = unknown;
	struct quipu_hvsym_result x;
	const char *rest;
	uint64_t iar;

	while (word && word > line && isxdigit((unsigned char)word[-1]))
		word--;
	if (!unknown || word == unknown || !parse_address(word, (size_t)(unknown - word), &iar) ||
	    quipu_hvsym_resolve(r->hv.sym, iar, &x) || x.state != QUIPU_HVSYM_OK)
		return false;
	rest = unknown + strlen(" [unknown]");
	if (!strncmp(rest, " ([unknown])", 12))
		rest += 12;
	printf("%.*s %s+0x%" PRIx64 " ([hypervisor])%s", (int)(unknown - line), line, x.name,
	       x.offset, rest);
	return true;
}

/* With call chains the address is on the line behind. */
static int filter(struct resolve *r)
{
	char *line = NULL;
	size_t room = 0;
	bool expected = false;

	while (getline(&line, &room, stdin) >= 0 && !ferror(stdout)) {
		bool head = of_hypervisor(line);

		if (head || expected)
			expected = !named_line(r, line) && (fputs(line, stdout), head);
		else
			fputs(line, stdout);
	}
	free(line);
	return 0;
}

/* ---- single calls, and their trace ---- */

static void print_call(FILE *f, const uint32_t *cells, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%08" PRIx32 "%s", cells[i], i + 1 == n ? "" : " ");
	fprintf(f, "  %s\n", quipu_rtas_status_name((int32_t)cells[8]));
}

static void trace(void *arg, const uint32_t *cells, unsigned n, const void *work, size_t size)
{
	struct resolve *r = arg;

	(void)work;
	(void)size;
	print_call(r->trace, cells, n);
}

/* What two processors do to each other (R1-6) is seen call by call. */
static int one_call(struct resolve *r, uint32_t number, uint64_t iar)
{
	struct quipu_rtas_transport *t = r->hv.remote ? r->hv.remote : r->hv.t;
	int64_t token = t->token(t->arg, QUIPU_LPAR_PERFTOOLS);
	uint32_t size = r->o.sym.buf_size ? r->o.sym.buf_size : 4096;
	uint32_t cells[QUIPU_LPAR_CELLS] = {(uint32_t)token, 5, 2, 1, 0, 0, size, number};
	uint64_t ra, be = __builtin_bswap64(iar), offset;
	const char *name;
	void *va;
	int rc;

	if (token < 0) {
		cli_error("%s: %s", r->hv.where, quipu_hvsym_strerror(-ENOSYS));
		return HV_EXIT_REFUSED;
	}
	if (size < 8)
		return cli_error("--buffer: 8 bytes are the least");
	rc = t->alloc(t->arg, size, &ra, &va);
	if (rc)
		return cli_error("%s", quipu_hvsym_strerror(rc));
	memcpy(va, &be, sizeof(be));
	cells[4] = (uint32_t)(ra >> 32);
	cells[5] = (uint32_t)ra;
	rc = t->call(t->arg, cells, QUIPU_LPAR_CELLS, ra, va, size);
	memcpy(&offset, va, sizeof(offset));
	name = memchr((char *)va + 8, 0, size - 8) ? (char *)va + 8 : "";
	if (rc) {
		cli_error("%s: %s", r->hv.where, quipu_hvsym_strerror(rc));
		rc = HV_EXIT_TRANSPORT;
	} else if (cells[8]) {
		printf("status %d (%s) next %" PRIu32 "\n", (int32_t)cells[8],
		       quipu_rtas_status_name((int32_t)cells[8]), cells[9]);
	} else {
		printf("status 0 (success) next %" PRIu32 " %s+0x%" PRIx64 "\n", cells[9], name,
		       __builtin_bswap64(offset));
	}
	fflush(stdout);
	t->free(t->arg, size, ra, va);
	return rc;
}

static int step(struct resolve *r)
{
	char line[256], address[64];
	unsigned long number;
	uint64_t iar;
	int rc = 0;

	while (!rc && fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%lu %63s", &number, address) != 2 || number > UINT32_MAX ||
		    !parse_address(address, strlen(address), &iar))
			return cli_error("'%.*s' is not of the form 'SEQUENCE ADDR'",
					 (int)strcspn(line, "\n"), line);
		rc = one_call(r, (uint32_t)number, iar);
	}
	return rc;
}

/* ---- options ---- */

enum {
	OPT_MAP = 256,
	OPT_MAP_FORMAT,
	OPT_BASE,
	OPT_FROM,
	OPT_FILTER,
	OPT_FORMAT,
	OPT_JSON,
	OPT_EMIT,
	OPT_STATS,
	OPT_TRACE,
	OPT_DEADLINE,
	OPT_BUFFER,
	OPT_BISECT,
	OPT_NO_PROBE,
	OPT_NO_LOCK,
	OPT_WAIT,
	OPT_TRANSPORT,
	OPT_ALIASES,
	OPT_INJECT,
	OPT_STEP
};

static const struct option longs[] = {
	{"machine", required_argument, NULL, 'm'},
	{"map", required_argument, NULL, OPT_MAP},
	{"map-format", required_argument, NULL, OPT_MAP_FORMAT},
	{"base", required_argument, NULL, OPT_BASE},
	{"partition", required_argument, NULL, 'p'},
	{"from", required_argument, NULL, OPT_FROM},
	{"input", required_argument, NULL, 'i'},
	{"filter", no_argument, NULL, OPT_FILTER},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"json", no_argument, NULL, OPT_JSON},
	{"emit-map", required_argument, NULL, OPT_EMIT},
	{"stats", no_argument, NULL, OPT_STATS},
	{"trace", optional_argument, NULL, OPT_TRACE},
	{"deadline", required_argument, NULL, OPT_DEADLINE},
	{"buffer", required_argument, NULL, OPT_BUFFER},
	{"bisect", no_argument, NULL, OPT_BISECT},
	{"no-probe", no_argument, NULL, OPT_NO_PROBE},
	{"no-lock", no_argument, NULL, OPT_NO_LOCK},
	{"wait", no_argument, NULL, OPT_WAIT},
	{"transport", required_argument, NULL, OPT_TRANSPORT},
	{"aliases", no_argument, NULL, OPT_ALIASES},
	{"inject", required_argument, NULL, OPT_INJECT},
	{"step", no_argument, NULL, OPT_STEP},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int number(const char *option, const char *text, uint32_t low, uint32_t high,
		  uint32_t *value)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || v < low || v > high)
		return cli_error("%s '%s' is not a number from %u to %u", option, text, low, high);
	*value = (uint32_t)v;
	return 0;
}

static int take_injection(struct resolve *r, const char *text)
{
	struct injection *j = &r->inject[r->ninject];
	char *end;
	unsigned long nth;
	long status;

	if (r->ninject == INJECTIONS)
		return cli_error("--inject: %u of them are the most", INJECTIONS);
	errno = 0;
	nth = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end != '=' || !nth || nth > 1000000000)
		return cli_error("--inject '%s' is not of the form N=STATUS, as 3=-2", text);
	text = end + 1;
	status = strtol(text, &end, 10);
	if (end == text || *end || errno || status < INT32_MIN || status > INT32_MAX)
		return cli_error("--inject: '%s' is no status, as -2 or 9901 is", text);
	*j = (struct injection){(uint32_t)nth, (int32_t)status};
	r->ninject++;
	return 0;
}

static int choose_format(struct resolve *r, const char *name)
{
	for (unsigned f = 0; formats[f]; f++)
		if (!strcmp(formats[f], name)) {
			r->format = (enum format)f;
			return 0;
		}
	return cli_error("no format '%s'; there are text, json, csv, perfmap, kallsyms", name);
}

static int choose_transport(struct resolve *r, const char *name)
{
	static const char *const names[] = {
		[HV_MODEL] = "model", [HV_MACHINE] = "machine", [HV_LINUX] = "linux"};

	for (unsigned t = HV_MODEL; t <= HV_LINUX; t++)
		if (!strcmp(names[t], name)) {
			r->o.transport = (enum hv_transport)t;
			return 0;
		}
	return cli_error("no transport '%s'; there are model, machine, linux", name);
}

static int open_trace(struct resolve *r, const char *path)
{
	r->trace = path ? fopen(path, "we") : stderr;
	r->o.sym.trace = trace;
	r->o.sym.trace_arg = r;
	return r->trace ? 0 : cli_error("%s: %s", path, strerror(errno));
}

static int take_option(struct resolve *r, int c)
{
	uint32_t *flags = &r->o.sym.flags;

	switch (c) {
	case 'm': r->o.machine = optarg; return 0;
	case OPT_MAP: r->o.map = optarg; return 0;
	case OPT_MAP_FORMAT: r->o.format = optarg; return 0;
	case OPT_BASE: r->o.base = optarg; return 0;
	case 'p': return number("-p", optarg, 0, 65535, &r->o.partition);
	case OPT_FROM: r->from = optarg; return 0;
	case 'i': r->input = optarg; return 0;
	case OPT_FILTER: r->filter = true; return 0;
	case OPT_FORMAT: return choose_format(r, optarg);
	case OPT_JSON: r->format = FORMAT_JSON; return 0;
	case OPT_EMIT: r->emit = optarg; return 0;
	case OPT_STATS: r->stats = true; return 0;
	case OPT_TRACE: return open_trace(r, optarg);
	case OPT_DEADLINE:
		return number("--deadline", optarg, 1, 1000000000, &r->o.sym.deadline_ms);
	case OPT_BUFFER: return number("--buffer", optarg, 8, 16384, &r->o.sym.buf_size);
	case OPT_BISECT: *flags |= QUIPU_HVSYM_BISECT; return 0;
	case OPT_NO_PROBE: *flags |= QUIPU_HVSYM_NO_PROBE; return 0;
	case OPT_NO_LOCK: r->o.no_lock = true; return 0;
	case OPT_WAIT: r->o.wait = true; return 0;
	case OPT_TRANSPORT: return choose_transport(r, optarg);
	case OPT_ALIASES: r->aliases = true; return 0;
	case OPT_INJECT: return take_injection(r, optarg);
	case OPT_STEP: r->step = true; return 0;
	default: fputs(usage, stderr); return 2;
	}
}

/* One source of addresses, one of names. */
static int check(const struct resolve *r, bool arguments)
{
	unsigned sources = arguments + (r->from != NULL) + (r->input != NULL) + r->filter + r->step;

	if (r->o.machine && r->o.map)
		return cli_error("-m and --map both say whom to ask; give one of them");
	if (r->o.base && !r->o.map)
		return cli_error("--base moves the symbols of a --map file; there is none");
	if (r->aliases && (r->filter || r->step || r->format > FORMAT_JSON))
		return cli_error(
			"--aliases is of --format text and json, of addresses by themselves");
	if (sources > 1)
		return cli_error("addresses come from arguments, --from, -i, --filter or --step: "
				 "one of them");
	if (!sources)
		return cli_error("no addresses; give some, or --from FILE, or -i perf.data (quipu "
				 "help resolve)");
	return 0;
}

/* What only a firmware of this process can do. */
static int prepare(struct resolve *r)
{
	struct quipu_partition *p;

	if ((r->aliases || r->ninject) && !r->hv.lpar)
		return cli_error("%s is for a firmware of our own: name it with -m or --map; the "
				 "machine around answers by calls alone",
				 r->aliases ? "--aliases" : "--inject");
	if (r->aliases)
		r->map = quipu_lpar_map(r->hv.lpar);
	p = r->ninject ? quipu_lpar_partition(r->hv.lpar, r->o.partition) : NULL;
	for (unsigned i = 0; i < r->ninject; i++)
		if (quipu_lpar_inject(p, r->inject[i].nth, r->inject[i].status, true))
			return cli_error("--inject: %d is none of the statuses -1, -2, -3, -5, "
					 "-9002, 9900 to 9905",
					 r->inject[i].status);
	return 0;
}

static int run(struct resolve *r, char **argv)
{
	int rc = check(r, *argv != NULL);

	if (!rc)
		rc = r->from	? from_file(r)
		     : r->input ? from_recording(r)
				: from_arguments(r, argv);
	if (!rc)
		rc = hv_open(&r->hv, &r->o);
	if (!rc)
		rc = prepare(r);
	if (rc)
		return rc;
	rc = r->filter ? filter(r) : r->step ? step(r) : name_all(r);
	if (r->stats)
		print_stats(r);
	return rc;
}

int cmd_resolve(int argc, char **argv)
{
	struct resolve r = {.o = {.partition = 1}};
	int c, rc = 0;

	optind = 0;
	while (!rc && (c = getopt_long(argc, argv, "m:p:i:h", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		rc = take_option(&r, c);
	}
	if (!rc)
		rc = run(&r, argv + optind);
	quipu_hvmap_put(r.map);
	hv_close(&r.hv);
	if (r.trace && r.trace != stderr)
		fclose(r.trace);
	free(r.results);
	free(r.list.iar);
	free(r.list.count);
	free(r.list.rest);
	free(r.list.text);
	return rc;
}
