/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu script: the samples of perf.data one by one, in the text layout of `perf script` (Linux
 * 6.1), which stackcollapse-perf.pl, speedscope and many others read. Inlined functions are not
 * expanded; no Python or Perl.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/perf_regs.h>

#include "cli/cli.h"
#include "cli/hypervisor.h"
#include "profile/aggregate.h"
#include "profile/profile.h"

enum field {
	FIELD_COMM,
	FIELD_MISC,
	FIELD_PID,
	FIELD_TID,
	FIELD_CPU,
	FIELD_TIME,
	FIELD_PERIOD,
	FIELD_EVENT,
	FIELD_ADDR,
	FIELD_WEIGHT,
	FIELD_IP,
	FIELD_SYM,
	FIELD_SYMOFF,
	FIELD_DSO,
	FIELD_UREGS,
	FIELDS
};

/*
 * @needs: the sample_type bit without which there is nothing to print; 0 for names made from other
 * things.
 */
static const struct {
	const char *name;
	uint64_t needs;
	bool usual;
} fields[FIELDS] = {
	[FIELD_COMM] = {"comm", PERF_SAMPLE_TID, true},
	[FIELD_MISC] = {"misc", 0, false},
	[FIELD_PID] = {"pid", PERF_SAMPLE_TID, false},
	[FIELD_TID] = {"tid", PERF_SAMPLE_TID, true},
	[FIELD_CPU] = {"cpu", PERF_SAMPLE_CPU, true},
	[FIELD_TIME] = {"time", PERF_SAMPLE_TIME, true},
	[FIELD_PERIOD] = {"period", 0, true},
	[FIELD_EVENT] = {"event", 0, true},
	[FIELD_ADDR] = {"addr", PERF_SAMPLE_ADDR, false},
	[FIELD_WEIGHT] = {"weight", PERF_SAMPLE_WEIGHT, false},
	[FIELD_IP] = {"ip", PERF_SAMPLE_IP, true},
	[FIELD_SYM] = {"sym", PERF_SAMPLE_IP, true},
	[FIELD_SYMOFF] = {"symoff", PERF_SAMPLE_IP, true},
	[FIELD_DSO] = {"dso", PERF_SAMPLE_IP, true},
	[FIELD_UREGS] = {"uregs", PERF_SAMPLE_REGS_USER, false},
};

struct script {
	struct profile profile;
	struct hv_options hypervisor;
	const struct perfdata_event *events;
	size_t nr_events;
	int name_width;
	unsigned chosen; /* bit per field */
	bool explicit_fields;
	bool ns, inlines;
	struct profile_frame *frames;
};

static const char usage[] =
	"usage: quipu script [-i FILE] [-F FIELDS] [--inline] [--ns]\n\n"
	"Prints the samples of a recording one by one, as `perf script` does.\n\n"
	"  -i, --input FILE    recording to read [perf.data]\n"
	"  -F, --fields LIST   what to print: "
	"comm,misc,pid,tid,cpu,time,period,event,addr,weight,ip,sym,symoff,dso,uregs\n"
	"                      (+NAME adds to the usual ones, -NAME takes away)\n"
	"      --inline        functions that were inlined are frames of their own, as perf script has them\n"
	"      --ns            times with nanoseconds\n"
	"  -m, --machine M     names of hypervisor code from machine M, where the file has none\n"
	"      --map FILE      names of hypervisor code from a symbol file\n\n"
	"Flame graph: quipu script | stackcollapse-perf.pl | flamegraph.pl > out.svg\n";

static int find_field(const char *name)
{
	for (int f = 0; f < FIELDS; f++)
		if (!strcmp(fields[f].name, name))
			return f;
	return -1;
}

static unsigned usual_fields(void)
{
	unsigned set = 0;

	for (int f = 0; f < FIELDS; f++)
		set |= (unsigned)fields[f].usual << f;
	return set;
}

static int choose_fields(struct script *s, char *list)
{
	char *save, *word;
	bool relative = list[0] == '+' || list[0] == '-';

	s->chosen = relative ? usual_fields() : 0;
	s->explicit_fields = !relative;
	for (word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char sign = *word == '+' || *word == '-' ? *word++ : '+';
		int f = find_field(word);

		if (f < 0)
			return cli_error(
				"no field '%s'; there are comm, misc, pid, tid, cpu, time, "
				"period, event, addr, weight, "
				"ip, sym, symoff, dso, uregs",
				word);
		s->chosen = sign == '+' ? s->chosen | 1u << f : s->chosen & ~(1u << f);
	}
	return s->chosen ? 0 : cli_error("no field left to print; name some with -F");
}

static bool shows(const struct script *s, const struct perfdata_event *ev, enum field f)
{
	return s->chosen >> f & 1 && (!fields[f].needs || ev->attr.sample_type & fields[f].needs);
}

/* From a chain, or unwound from a copy of the stack. */
static bool is_chained(const struct profile_record *r)
{
	return r->sample.nr_chain || (r->sample.regs && r->sample.stack);
}

static void print_who(struct script *s, const struct perfdata_event *ev,
		      const struct profile_record *r)
{
	bool pid = shows(s, ev, FIELD_PID), tid = shows(s, ev, FIELD_TID);

	if (shows(s, ev, FIELD_COMM)) {
		const char *comm = profile_maps_comm(s->profile.maps, r->pid, r->tid);

		printf(is_chained(r) && shows(s, ev, FIELD_IP) ? "%s " : "%16s ", comm);
	}
	if (pid && tid)
		printf("%5d/%-5d ", (int)r->pid, (int)r->tid);
	else if (pid || tid)
		printf("%5d ", (int)(pid ? r->pid : r->tid));
	if (shows(s, ev, FIELD_CPU))
		printf("[%03d] ", (int)r->cpu);
	/* One letter; perf tests each mode as if it were a bit, and prints KUH for H. */
	if (shows(s, ev, FIELD_MISC))
		printf("%-5c ", "?KUHGg??"[r->misc & PERF_RECORD_MISC_CPUMODE_MASK]);
}

static void print_time(const struct script *s, uint64_t time)
{
	char text[40];

	if (s->ns) {
		printf("%5" PRIu64 ".%09" PRIu64 ": ", time / 1000000000, time % 1000000000);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, time / 1000000000,
		 time % 1000000000 / 1000);
	printf("%12s: ", text);
}

/* symbol+offset (object) */
static void print_function(const struct script *s, const struct perfdata_event *ev,
			   const struct profile_frame *f)
{
	if (shows(s, ev, FIELD_SYM)) {
		printf(" %s", f->symbol ? f->symbol->name : "[unknown]");
		if (f->symbol && !f->symbol->inlined && shows(s, ev, FIELD_SYMOFF))
			printf("+0x%" PRIx64, f->addr - f->symbol->start);
	}
	if (f->symbol && f->symbol->inlined)
		fputs(" (inlined)", stdout);
	else if (shows(s, ev, FIELD_DSO))
		printf(" (%s)", f->object ? f->object->path : "[unknown]");
}

/* perf shows chains by address in the object's file, where it knows the object. */
static void print_chain(struct script *s, const struct perfdata_event *ev,
			const struct profile_record *r)
{
	size_t n = profile_frames(s->profile.maps, r, s->inlines, s->frames, PROFILE_FRAMES_MAX);

	putchar('\n');
	for (size_t i = 0; i < n; i++) {
		const struct profile_frame *f = &s->frames[i];

		printf("\t%16" PRIx64, f->object && f->level != 'k' ? f->offset : f->ip);
		print_function(s, ev, f);
		putchar('\n');
	}
}

static void print_ip(struct script *s, const struct perfdata_event *ev,
		     const struct profile_record *r)
{
	struct profile_frame f[1];

	if (!shows(s, ev, FIELD_IP))
		return;
	if (is_chained(r)) {
		print_chain(s, ev, r);
		return;
	}
	profile_frames(s->profile.maps, r, false, f, 1);
	printf(" %16" PRIx64, f->ip);
	print_function(s, ev, f);
}

/* By the names of the set that the recorded machine has; a number where that is not known. */
static void print_registers(const struct script *s, const struct perfdata_event *ev,
			    const struct profile_record *r)
{
	const struct perfdata_features *f = perfdata_features(s->profile.data);
	int isa = f->arch ? quipu_isa_find(f->arch) : -1;
	const uint8_t *value = r->sample.regs;

	if (!shows(s, ev, FIELD_UREGS) || !value)
		return;
	printf(" ABI:%u ", (unsigned)PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t m = r->sample.regs_mask; m; m &= m - 1, value += 8) {
		const char *name =
			isa < 0 ? NULL : quipu_perf_reg_name((enum quipu_isa)isa, bits_low(m));

		if (name)
			printf("%5s:0x%" PRIx64 " ", name, bits_le64(value));
		else
			printf("%5u:0x%" PRIx64 " ", bits_low(m), bits_le64(value));
	}
}

static int print_sample(struct script *s, const struct profile_record *r)
{
	const struct perfdata_event *ev = &s->events[r->event];

	print_who(s, ev, r);
	if (shows(s, ev, FIELD_TIME))
		print_time(s, r->time);
	if (shows(s, ev, FIELD_PERIOD))
		printf("%10" PRIu64 " ", r->sample.period);
	if (shows(s, ev, FIELD_EVENT))
		printf("%*s: ", s->name_width, ev->name);
	if (shows(s, ev, FIELD_ADDR))
		printf("%16" PRIx64 " ", r->sample.addr);
	if (shows(s, ev, FIELD_WEIGHT))
		printf("%16" PRIu64 " ", r->sample.weight);
	print_ip(s, ev, r);
	print_registers(s, ev, r);
	putchar('\n');
	return ferror(stdout) ? -EIO : 0;
}

static int take_record(void *arg, const struct profile_record *r)
{
	struct script *s = arg;

	return r->type == PERF_RECORD_SAMPLE ? print_sample(s, r)
					     : profile_maps_record(s->profile.maps, r);
}

/* A field asked for by name that no event has would leave silent gaps. */
static int check_fields(const struct script *s)
{
	for (int f = 0; f < FIELDS; f++) {
		bool there = false;

		for (size_t i = 0; i < s->nr_events; i++)
			there |= shows(s, &s->events[i], (enum field)f);
		if (s->explicit_fields && s->chosen >> f & 1 && !there)
			return cli_error("these samples have no field '%s': it was not recorded",
					 fields[f].name);
	}
	return 0;
}

static int run(struct script *s, const char *path)
{
	struct perfdata_error err;
	int r;

	if (profile_open(&s->profile, path, &err))
		return cli_error("%s", err.text);
	r = hv_profile(&s->profile, &s->hypervisor);
	if (r)
		return r;
	s->events = perfdata_events(s->profile.data, &s->nr_events);
	for (size_t i = 0; i < s->nr_events; i++)
		if ((int)strlen(s->events[i].name) > s->name_width)
			s->name_width = (int)strlen(s->events[i].name);
	s->frames = calloc(PROFILE_FRAMES_MAX, sizeof(*s->frames));
	if (!s->frames)
		return cli_error("out of memory");
	r = check_fields(s);
	if (r)
		return r;
	r = perfdata_each(s->profile.data, take_record, s);
	if (r == -EIO)
		return 0; /* main() tells why */
	if (r)
		return cli_error("out of memory");
	if (perfdata_malformed(s->profile.data))
		fprintf(stderr, "quipu: %zu damaged records were left out\n",
			perfdata_malformed(s->profile.data));
	return 0;
}

int cmd_script(int argc, char **argv)
{
	static const struct option longs[] = {
		{"input", required_argument, NULL, 'i'},
		{"fields", required_argument, NULL, 'F'},
		{"machine", required_argument, NULL, 'm'},
		{"map", required_argument, NULL, 'M'},
		{"ns", no_argument, NULL, 'n'},
		{"inline", no_argument, NULL, 'l'},
		{"no-inline", no_argument, NULL, 'I'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct script s = {.chosen = usual_fields(), .hypervisor = {.partition = 1}};
	const char *path = "perf.data";
	int c, r = 0;

	optind = 0;
	while (!r && (c = getopt_long(argc, argv, "i:F:m:h", longs, NULL)) != -1) {
		switch (c) {
		case 'i': path = optarg; break;
		case 'F': r = choose_fields(&s, optarg); break;
		case 'm': s.hypervisor.machine = optarg; break;
		case 'M': s.hypervisor.map = optarg; break;
		case 'n': s.ns = true; break;
		case 'l':
		case 'I': s.inlines = c == 'l'; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (!r && optind < argc)
		r = cli_error("script takes no argument '%s'; a recording is named with -i",
			      argv[optind]);
	if (!r)
		r = run(&s, path);
	profile_close(&s.profile);
	free(s.frames);
	return r;
}
