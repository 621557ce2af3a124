/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.data, symbols and sums: what quipu writes is read by the stock perf and by itself; what perf
 * writes is read by quipu; what is damaged is refused. Samples are made up; the programs that they
 * fall into are real riscv64 ELF files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include <cmocka.h>
#include <gelf.h>

#include "profile/aggregate.h"
#include "profile/perfdata.h"
#include "profile/profile.h"

static char dir[64];
static char tool[512], busy[512];

#define EXACT_ID    11
#define MODELLED_ID 12
#define PIE_BASE    UINT64_C(0x4000000000)

/* ---- helpers ---- */

static char *in_dir(char *buf, const char *name)
{
	sprintf(buf, "%s/%s", dir, name);
	return buf;
}

static char *guest(char *buf, const char *kind)
{
	sprintf(buf, "%s/profile-%s.riscv64", getenv("QUIPU_PROFILE_GUESTS"), kind);
	return buf;
}

/* Standard output of a shell command, to be freed; its exit status in @status. */
static char *output(int *status, const char *fmt, ...)
{
	char cmd[2048], *text = NULL;
	size_t n = 0, room = 0;
	va_list ap;
	FILE *f;
	int c;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	f = popen(cmd, "r");
	assert_non_null(f);
	while ((c = fgetc(f)) != EOF) {
		if (n + 2 > room) {
			room = room ? 2 * room : 4096;
			text = realloc(text, room);
			assert_non_null(text);
		}
		text[n++] = (char)c;
	}
	if (!text)
		text = calloc(1, 1);
	else
		text[n] = 0;
	c = pclose(f);
	if (status)
		*status = WIFEXITED(c) ? WEXITSTATUS(c) : -1;
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text ? text : "(nothing)");
}

/* Lines that are neither empty nor comments, trailing blanks cut. */
static char *entries(const char *text)
{
	char *out = calloc(1, strlen(text) + 2), *o = out;

	while (*text) {
		size_t len = strcspn(text, "\n"), cut = len;

		while (cut && text[cut - 1] == ' ')
			cut--;
		if (cut && text[0] != '#') {
			memcpy(o, text, cut);
			o += cut;
			*o++ = '\n';
		}
		text += len + (text[len] == '\n');
	}
	return out;
}

/* Address of a function, and its size, by the cross binutils' nm: not by the code under test. */
static uint64_t function_at(const char *elf, const char *name, uint64_t *size)
{
	char *text = output(NULL, "riscv64-linux-gnu-nm -S '%s' | grep ' [tT] %s$'", elf, name);
	uint64_t at = 0, len = 0;

	assert_int_equal(sscanf(text, "%" SCNx64 " %" SCNx64, &at, &len), 2);
	free(text);
	if (size)
		*size = len;
	return at;
}

static GElf_Phdr code_segment(const char *path)
{
	int fd = open(path, O_RDONLY);
	GElf_Phdr ph, found = {0};
	size_t n = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_getphdrnum(elf, &n), 0);
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			found = ph;
	elf_end(elf);
	close(fd);
	assert_int_not_equal(found.p_filesz, 0);
	return found;
}

static struct quipu_attr attr_of(uint64_t config, bool chains)
{
	return (struct quipu_attr){
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(struct quipu_attr),
		.config = config,
		.sample_period = 1000,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       (chains ? PERF_SAMPLE_CALLCHAIN : 0),
		.flags = QUIPU_ATTR_SAMPLE_ID_ALL | QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2 |
			 QUIPU_ATTR_COMM | QUIPU_ATTR_TASK,
	};
}

static void add_sample(struct perfdata_writer *w, uint64_t id, uint64_t time, uint64_t ip,
		       uint64_t period, const uint64_t *chain, uint64_t nr)
{
	uint64_t rec[64] = {0};
	size_t n = 1;

	rec[n++] = id;
	rec[n++] = ip;
	rec[n++] = 4242 | UINT64_C(4242) << 32;
	rec[n++] = time;
	rec[n++] = 3; /* cpu */
	rec[n++] = period;
	if (chain) {
		rec[n++] = nr + 1;
		rec[n++] = PROFILE_CONTEXT_USER;
		for (uint64_t i = 0; i < nr; i++)
			rec[n++] = chain[i];
	}
	rec[0] = PERF_RECORD_SAMPLE | (uint64_t)PERF_RECORD_MISC_USER << 32 |
		 (uint64_t)(8 * n) << 48;
	assert_int_equal(perfdata_append(w, rec, 8 * n), 0);
}

static struct perfdata_writer *begin(const char *path, bool chains)
{
	struct quipu_attr exact = attr_of(PERF_COUNT_HW_INSTRUCTIONS, chains);
	struct quipu_attr modelled = attr_of(PERF_COUNT_HW_CPU_CYCLES, chains);
	struct perfdata_error err;
	struct perfdata_writer *w = perfdata_create(path, &err);

	if (!w)
		fail_msg("%s", err.text);
	assert_int_equal(perfdata_add_event(w, &exact, &(uint64_t){EXACT_ID}, 1, "instructions:u",
					    QUIPU_EXACT),
			 0);
	assert_int_equal(perfdata_add_event(w, &modelled, &(uint64_t){MODELLED_ID}, 1, "cycles:u",
					    QUIPU_MODELLED),
			 0);
	return w;
}

static void add_program(struct perfdata_writer *w, const char *elf, uint64_t base)
{
	GElf_Phdr ph = code_segment(elf);
	uint64_t page = ph.p_offset & ~UINT64_C(4095), slack = ph.p_offset - page;
	struct perfdata_mapping m = {.pid = 4242,
				     .tid = 4242,
				     .addr = base + ph.p_vaddr - slack,
				     .len = (ph.p_filesz + slack + 4095) & ~UINT64_C(4095),
				     .pgoff = page,
				     .maj = 8,
				     .min = 1,
				     .ino = 77,
				     .prot = 5,
				     .flags = 2,
				     .name = elf};

	assert_int_equal(perfdata_comm(w, 4242, 4242, "guest"), 0);
	assert_int_equal(perfdata_mmap2(w, &m), 0);
}

static void finish(struct perfdata_writer *w)
{
	static char *cmdline[] = {"quipu", "record", "-e", "instructions:u,cycles:u",
				  "guest", NULL};
	static const struct perfdata_cpu cpus[4] = {
		{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 0, 1, 1}, {1, 0, 1, 1}};
	static const struct perfdata_pmu pmus[] = {{1, "software"}, {4, "cpu"}};
	struct perfdata_info info = {.hostname = "somewhere",
				     .osrelease = "6.12.0",
				     .arch = "riscv64",
				     .cpudesc = "riscv",
				     .cpuid = "riscv,1",
				     .machine = "riscv",
				     .cmdline = cmdline,
				     .cpus = 4,
				     .cpus_online = 4,
				     .memory_kb = 1048576,
				     .topology = cpus,
				     .pmus = pmus,
				     .nr_pmus = 2};
	struct perfdata_error err;

	if (perfdata_finish(w, &info, &err))
		fail_msg("%s", err.text);
}

/* 75 samples in heavy, 25 in light of instructions; 6 and 4 of cycles. */
static void write_plain(const char *path, const char *elf, uint64_t base)
{
	uint64_t heavy = base + function_at(elf, "heavy", NULL),
		 light = base + function_at(elf, "light", NULL);
	struct perfdata_writer *w = begin(path, false);

	add_program(w, elf, base);
	for (unsigned i = 0; i < 100; i++)
		add_sample(w, EXACT_ID, 1000000 + 1000 * i, i < 75 ? heavy + 4 : light, 1000, NULL,
			   0);
	for (unsigned i = 0; i < 10; i++)
		add_sample(w, MODELLED_ID, 2000000 + 1000 * i, i % 5 < 3 ? heavy : light, 500, NULL,
			   0);
	finish(w);
}

/* heavy from main (60), light from with_inlines from main (30), light from main (10). */
static void write_chains(const char *path, const char *elf)
{
	uint64_t start = function_at(elf, "_start", NULL), main_at = function_at(elf, "main", NULL);
	uint64_t inlines = function_at(elf, "with_inlines", NULL);
	uint64_t heavy = function_at(elf, "heavy", NULL), light = function_at(elf, "light", NULL);
	uint64_t chains[10][4] = {{light, main_at + 8, start}};
	struct perfdata_writer *w = begin(path, true);

	for (unsigned i = 1; i < 10; i++)
		memcpy(chains[i],
		       i < 7 ? (uint64_t[]){heavy, main_at + 4, start, 0}
			     : (uint64_t[]){light, inlines + 4, main_at + 8, start},
		       sizeof(chains[i]));
	add_program(w, elf, 0);
	for (unsigned i = 0; i < 100; i++) {
		const uint64_t *chain = chains[i % 10];

		add_sample(w, EXACT_ID, 1000000 + 1000 * i, chain[0], 1000, chain,
			   chain[3] ? 4 : 3);
	}
	finish(w);
}

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *v;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	v = malloc(*n + 1);
	assert_int_equal(fread(v, 1, *n, f), *n);
	fclose(f);
	return v;
}

static void write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	fclose(f);
}

static size_t files_in_dir(void)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- in and out again ---- */

struct seen {
	size_t samples, others;
	uint64_t last, period[2];
	bool ordered;
};

static int see(void *arg, const struct profile_record *r)
{
	struct seen *s = arg;

	s->ordered &= r->time >= s->last;
	s->last = r->time;
	if (r->type != PERF_RECORD_SAMPLE) {
		s->others++;
		return 0;
	}
	s->samples++;
	s->period[r->event] += r->sample.period;
	assert_int_equal(r->pid, 4242);
	assert_int_equal(r->cpu, 3);
	return 0;
}

static void what_was_written_is_read_back(void **state)
{
	char path[128], elf[512];
	struct perfdata_error err;
	struct seen s = {.ordered = true};
	const struct perfdata_features *f;
	const struct perfdata_event *ev;
	struct perfdata *d;
	size_t n;

	(void)state;
	write_plain(in_dir(path, "plain"), guest(elf, "static"), 0);
	d = perfdata_open(path, &err);
	assert_non_null(d);
	ev = perfdata_events(d, &n);
	assert_int_equal(n, 2);
	assert_string_equal(ev[0].name, "instructions:u");
	assert_int_equal(ev[0].exactness, QUIPU_EXACT);
	assert_string_equal(ev[1].name, "cycles:u");
	assert_int_equal(ev[1].exactness, QUIPU_MODELLED);
	assert_int_equal(ev[1].ids[0], MODELLED_ID);
	f = perfdata_features(d);
	assert_true(f->by_quipu);
	assert_string_equal(f->machine, "riscv");
	assert_string_equal(f->arch, "riscv64");
	assert_string_equal(f->hostname, "somewhere");
	assert_int_equal(f->cpus, 4);
	assert_int_equal(f->memory_kb, 1048576);
	assert_int_equal(f->nr_cmdline, 5);
	assert_string_equal(f->cmdline[4], "guest");
	assert_int_equal(f->time_first, 1000000);
	assert_int_equal(f->time_last, 2009000);
	assert_int_equal(f->nr_build_ids, 1);
	assert_string_equal(f->build_ids[0].path, elf);
	assert_int_equal(perfdata_each(d, see, &s), 0);
	assert_int_equal(s.samples, 110);
	assert_int_equal(s.others, 2);
	assert_int_equal(s.period[0], 100000);
	assert_int_equal(s.period[1], 5000);
	assert_true(s.ordered);
	perfdata_close(d);
}

static void records_of_several_rings_come_back_oldest_first(void **state)
{
	char path[128];
	struct seen s = {.ordered = true};
	struct perfdata_error err;
	struct perfdata_writer *w;
	struct perfdata *d;

	(void)state;
	w = begin(in_dir(path, "rings"), false);
	for (unsigned ring = 0; ring < 3; ring++) {
		for (unsigned i = 0; i < 20; i++)
			add_sample(w, EXACT_ID, 1000 + 3 * i + ring, 0x1000, 1, NULL, 0);
		assert_int_equal(perfdata_round(w), 0);
	}
	finish(w);
	d = perfdata_open(path, &err);
	assert_non_null(d);
	perfdata_each(d, see, &s);
	assert_int_equal(s.samples, 60);
	assert_true(s.ordered);
	perfdata_close(d);
}

static void equal_recordings_are_equal_bytes(void **state)
{
	char a[128], b[128], elf[512], *x, *y;
	size_t n, m;

	(void)state;
	write_chains(in_dir(a, "same1"), guest(elf, "static"));
	write_chains(in_dir(b, "same2"), elf);
	x = read_file(a, &n);
	y = read_file(b, &m);
	assert_int_equal(n, m);
	assert_memory_equal(x, y, n);
	free(x);
	free(y);
}

/* ---- beside the stock perf ---- */

static void perf_names_the_functions_of_a_riscv_program(void **state)
{
	static const char *const kinds[] = {"static", "pie"};
	char path[128], elf[512];

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *text, *ours, *a, *b;
		int status;

		write_plain(in_dir(path, kinds[i]), guest(elf, kinds[i]), i ? PIE_BASE : 0);
		text = output(&status, "perf report --stdio -i '%s' 2>/dev/null", path);
		assert_int_equal(status, 0);
		assert_has(text, "# Samples: 100  of event 'instructions:u'");
		assert_has(text, "# Event count (approx.): 100000");
		assert_has(text, "    75.00%  guest    profile-");
		assert_has(text, "    60.00%  guest    profile-");
		ours = output(&status, "'%s' report --stdio -i '%s' 2>&1", tool, path);
		assert_int_equal(status, 0);
		assert_has(ours, "# Samples: 100  of event 'instructions:u' (exact)");
		assert_has(ours, "# Samples: 10  of event 'cycles:u' (modelled)");
		a = entries(text);
		b = entries(ours);
		assert_has(a, "[.] heavy\n");
		assert_string_equal(a, b);
		free(a);
		free(b);
		free(text);
		free(ours);
	}
}

static void perf_reads_the_header(void **state)
{
	char path[128], elf[512], *text;
	int status;

	(void)state;
	write_plain(in_dir(path, "header"), guest(elf, "static"), 0);
	text = output(&status, "perf report --header-only -I -i '%s' 2>&1", path);
	assert_int_equal(status, 0);
	assert_has(text, "# hostname : somewhere");
	assert_has(text, "# arch : riscv64");
	assert_has(text, "# nrcpus avail : 4");
	assert_has(text, "# cpudesc : riscv");
	assert_has(text, "# total memory : 1048576 kB");
	assert_has(text, "# cmdline : quipu record -e instructions:u,cycles:u guest");
	assert_has(text, "# event : name = instructions:u, , id = { 11 }");
	assert_has(text, "# sibling sockets : 0-1");
	assert_has(text, "# sibling sockets : 2-3");
	assert_has(text, "# CPU 3: Core ID 1, Die ID 0, Socket ID 1");
	assert_has(text, "# node1 cpu list : 2-3");
	assert_has(text, "# pmu mappings: software = 1, cpu = 4");
	assert_has(text, "# time of first sample : 0.001000");
	free(text);
	text = output(&status, "perf evlist -i '%s' 2>&1", path);
	assert_int_equal(status, 0);
	assert_string_equal(text, "instructions:u\ncycles:u\n");
	free(text);
	text = output(&status, "perf buildid-list -i '%s' 2>&1", path);
	assert_has(text, elf);
	free(text);
}

static void script_prints_what_perf_script_prints(void **state)
{
	char path[128], elf[512];

	(void)state;
	for (int chains = 0; chains < 2; chains++) {
		char *theirs, *ours;
		int status;

		if (chains)
			write_chains(in_dir(path, "script"), guest(elf, "static"));
		else
			write_plain(in_dir(path, "script"), guest(elf, "pie"), PIE_BASE);
		theirs = output(&status, "perf script --no-inline -i '%s' 2>/dev/null", path);
		assert_int_equal(status, 0);
		assert_has(theirs, chains ? " main+0x8 (" : " heavy+0x4 (");
		ours = output(&status, "'%s' script -i '%s'", tool, path);
		assert_int_equal(status, 0);
		assert_string_equal(theirs, ours);
		free(theirs);
		free(ours);
		theirs = output(&status,
				"perf script --no-inline -F comm,pid,tid,cpu,time,event,ip,sym -i "
				"'%s' 2>/dev/null",
				path);
		ours = output(&status, "'%s' script -F comm,pid,tid,cpu,time,event,ip,sym -i '%s'",
			      tool, path);
		assert_string_equal(theirs, ours);
		free(theirs);
		free(ours);
	}
}

/* Aliases, weak names, symbols without a size, symbols inside others: a whole C library has them
 * all. */
static void every_address_has_the_name_that_perf_gives_it(void **state)
{
	static const char *const kinds[] = {"static", "pie"};
	char path[128], elf[512];

	(void)state;
	for (int i = 0; i < 2; i++) {
		GElf_Phdr ph = code_segment(guest(elf, kinds[i]));
		uint64_t base = i ? PIE_BASE : 0, step = (ph.p_filesz / 8000 + 2) & ~UINT64_C(1);
		struct perfdata_writer *w = begin(in_dir(path, "sweep"), false);
		char *theirs, *ours, *t, *o;
		unsigned lines = 0, markers = 0;
		bool marker;

		add_program(w, elf, base);
		for (uint64_t at = 0; at < ph.p_filesz; at += step)
			add_sample(w, EXACT_ID, 1000 + at, base + ph.p_vaddr + at, 1, NULL, 0);
		finish(w);
		theirs = output(NULL, "perf script --no-inline -i '%s' 2>/dev/null", path);
		ours = output(NULL, "'%s' script -i '%s'", tool, path);
		for (t = theirs, o = ours; *t && *o;) {
			size_t len = strcspn(t, "\n");

			/*
			 * perf 6.1 takes mapping symbols ($xrv64...) for functions, and does not
			 * know how long the entries of a RISC-V linkage table are.
			 */
			marker = memmem(t, len, " $x", 3) || memmem(t, len, " $d", 3) ||
				 memmem(o, strcspn(o, "\n"), "@plt", 4) ||
				 memmem(t, len, "@plt", 4);
			markers += marker;
			lines++;
			if (!marker && strncmp(t, o, len + 1))
				fail_msg("perf: %.*s\nours: %.*s", (int)len, t,
					 (int)strcspn(o, "\n"), o);
			o += strcspn(o, "\n") + 1;
			t += len + 1;
		}
		assert_int_equal(*t, *o);
		assert_true(markers < lines / 3);
		free(theirs);
		free(ours);
	}
}

static void linkage_entries_carry_the_name_of_what_they_call(void **state)
{
	struct profile_symbols *set = profile_symbols_new();
	char elf[512], name[64], *text, *line, *save;
	GElf_Phdr ph;
	unsigned n = 0;

	(void)state;
	ph = code_segment(guest(elf, "pie"));
	/* objdump names them by itself. */
	text = output(NULL, "riscv64-linux-gnu-objdump -d -j .plt '%s' | grep '@plt>:'", elf);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const struct profile_symbol *sym;
		uint64_t at, addr;

		assert_int_equal(sscanf(line, "%" SCNx64 " <%63[^>]>", &at, name), 2);
		sym = profile_object_find(profile_symbols_object(set, elf),
					  at + 8 - ph.p_vaddr + ph.p_offset, &addr);
		assert_non_null(sym);
		assert_string_equal(sym->name, name);
		assert_int_equal(sym->start, at);
		n++;
	}
	assert_true(n > 0);
	free(text);
	profile_symbols_free(set);
}

/* What perf prints by default differs between event types. */
static void events_of_every_type_are_printed_alike(void **state)
{
	static const uint32_t types[] = {
		PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW, 8, 4711};
	char path[128], elf[512];

	(void)state;
	guest(elf, "static");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct quipu_attr attr = attr_of(0x10, false);
		struct perfdata_error err;
		struct perfdata_writer *w = perfdata_create(in_dir(path, "types"), &err);
		char *theirs, *ours, *a, *b;
		int status;

		assert_non_null(w);
		attr.type = types[i];
		assert_int_equal(perfdata_add_event(w, &attr, &(uint64_t){EXACT_ID}, 1,
						    "cpu/some-event/u", QUIPU_EXACT),
				 0);
		add_program(w, elf, 0);
		for (unsigned k = 0; k < 3; k++)
			add_sample(w, EXACT_ID, 123456789012 + k, function_at(elf, "heavy", NULL),
				   1000, NULL, 0);
		finish(w);
		theirs = output(&status, "perf script --no-inline -i '%s' 2>/dev/null", path);
		assert_int_equal(status, 0);
		ours = output(&status, "'%s' script -i '%s'", tool, path);
		assert_has(ours, "cpu/some-event/u: ");
		assert_string_equal(theirs, ours);
		free(theirs);
		free(ours);
		theirs = output(&status, "perf report --stdio -i '%s' 2>/dev/null", path);
		ours = output(&status, "'%s' report -i '%s'", tool, path);
		a = entries(theirs);
		b = entries(ours);
		assert_has(a, "   100.00%  guest ");
		assert_string_equal(a, b);
		free(a);
		free(b);
		free(theirs);
		free(ours);
	}
}

static void call_graphs_are_those_of_perf(void **state)
{
	static const char *const options[] = {
		"",   "--no-children", "-g none",	  "--no-children -g caller", "-g callee",
		"-n", "--sort sym",    "--sort dso,comm", "--percent-limit 35",
	};
	char path[128], elf[512];

	(void)state;
	write_chains(in_dir(path, "graph"), guest(elf, "static"));
	for (int i = 0; i < 4; i++) {
		char *theirs =
			output(NULL, "perf report --stdio --no-inline %s -i '%s' 2>/dev/null",
			       options[i], path);
		char *ours = output(NULL, "'%s' report %s -i '%s'", tool, options[i], path);
		char *a = entries(theirs), *b = entries(ours);

		assert_has(a, "heavy");
		assert_string_equal(a, b);
		free(a);
		free(b);
		free(theirs);
		free(ours);
	}
}

/*
 * perf takes the addresses of a recorded chain as they are: a call site names its caller, a return
 * address would not.
 */
static void a_call_at_the_end_of_a_function_is_that_functions(void **state)
{
	char path[128], elf[512], *text;
	struct perfdata_writer *w;
	uint64_t size, caller, callee;

	(void)state;
	guest(elf, "static");
	caller = function_at(elf, "ends_in_call", &size);
	callee = function_at(elf, "never_returns", NULL);
	w = begin(in_dir(path, "noreturn"), true);
	add_program(w, elf, 0);
	add_sample(w, EXACT_ID, 1000, callee, 1, (uint64_t[]){callee, caller + size - 4}, 2);
	finish(w);
	text = output(NULL, "perf script -i '%s' 2>/dev/null", path);
	assert_has(text, " ends_in_call+0x");
	free(text);
	text = output(NULL, "'%s' script -i '%s'", tool, path);
	assert_has(text, " ends_in_call+0x");
	free(text);
}

static void a_file_that_perf_recorded_is_read(void **state)
{
	static const char *const options[] = {"", "-g", "-z", "-e task-clock:u", "--no-timestamp"};
	char path[128];
	int status;

	(void)state;
	in_dir(path, "recorded");
	for (int i = 0; i < 5; i++) {
		char *theirs, *ours;

		free(output(&status, "perf record -q -e cpu-clock:u %s -F 997 -o '%s' -- '%s' 2>&1",
			    options[i], path, busy));
		if (status) {
			print_message("# skipped: this host lets perf record nothing\n");
			skip();
		}
		/*
		 * Only what falls into the program: perf knows more of the host's libraries (their
		 * PLT).
		 */
		theirs =
			output(NULL,
			       "perf script --no-inline -i '%s' 2>/dev/null | grep 'profile-busy)'",
			       path);
		ours = output(&status, "'%s' script -i '%s' | grep 'profile-busy)'", tool, path);
		assert_has(theirs, "spin_long+0x");
		assert_string_equal(theirs, ours);
		free(theirs);
		free(ours);
		ours = output(&status, "'%s' report -i '%s'", tool, path);
		assert_int_equal(status, 0);
		assert_has(ours, "(label not kept by perf)");
		assert_has(ours, "[.] spin_long");
		free(ours);
	}
}

static void groups_and_a_run_that_was_not_counted_whole_are_kept(void **state)
{
	static const struct perfdata_group pair = {0, 2};
	struct perfdata_info info = {.arch = "riscv64", .groups = &pair, .nr_groups = 1};
	char path[128], *text;
	struct perfdata_error err;

	(void)state;
	in_dir(path, "whole");
	for (int i = 0; i < 2; i++) {
		struct perfdata_writer *w = begin(path, false);
		struct perfdata *d;

		info.partial = i;
		add_sample(w, EXACT_ID, 1000000, 0x10000, 1000, NULL, 0);
		assert_int_equal(perfdata_finish(w, &info, &err), 0);
		d = perfdata_open(path, &err);
		assert_non_null(d);
		assert_string_equal(perfdata_label(d, 0), i ? "partial" : "exact");
		assert_string_equal(perfdata_label(d, 1), "modelled");
		perfdata_close(d);
	}
	text = output(NULL, "perf evlist -g -i '%s' 2>/dev/null", path);
	assert_has(text, "{instructions:u,cycles:u}");
	free(text);
}

/* ---- symbols ---- */

static void inlined_functions_are_those_of_addr2line(void **state)
{
	char elf[512];
	uint64_t size, at, inlined = 0;
	struct profile_symbols *set = profile_symbols_new();
	struct profile_object *o;
	GElf_Phdr ph;

	(void)state;
	guest(elf, "static");
	ph = code_segment(elf);
	at = function_at(elf, "with_inlines", &size);
	o = profile_symbols_object(set, elf);
	for (uint64_t a = at; a < at + size; a += 2) {
		const struct profile_symbol *const *in;
		uint64_t offset = a - ph.p_vaddr + ph.p_offset, addr;
		size_t n = profile_object_inlines(o, offset, &in);
		char *text = output(NULL,
				    "riscv64-linux-gnu-addr2line -f -i -e '%s' %#" PRIx64
				    " | sed -n 'p;n'",
				    elf, a);
		char mine[512] = "";

		for (size_t i = 0; i < n; i++)
			sprintf(mine + strlen(mine), "%s\n", in[i]->name);
		sprintf(mine + strlen(mine), "%s\n", profile_object_find(o, offset, &addr)->name);
		assert_int_equal(addr, a);
		assert_string_equal(mine, text);
		inlined += n == 2;
		free(text);
	}
	assert_true(inlined > 3);
	profile_symbols_free(set);
}

static void report_shows_inlined_functions(void **state)
{
	char path[128], elf[512], *text;
	struct perfdata_writer *w;
	uint64_t at, size;

	(void)state;
	at = function_at(guest(elf, "static"), "with_inlines", &size);
	w = begin(in_dir(path, "inlined"), false);
	add_program(w, elf, 0);
	for (uint64_t a = at; a < at + size; a += 2)
		add_sample(w, EXACT_ID, 1000 + a, a, 1, NULL, 0);
	finish(w);
	text = output(NULL, "'%s' report --inline -i '%s'", tool, path);
	assert_has(text, "[.] inner_loop (inlined)\n");
	assert_has(text, "[.] outer_part (inlined)\n");
	free(text);
	text = output(NULL, "'%s' report -i '%s'", tool, path);
	assert_has(text, "   100.00%  guest    profile-static.riscv64  [.] with_inlines\n");
	free(text);
}

static void a_stripped_program_gives_addresses_and_the_reason(void **state)
{
	char path[128], elf[512], *text;
	struct perfdata_writer *w;
	GElf_Phdr ph;

	(void)state;
	guest(elf, "stripped");
	ph = code_segment(elf);
	w = begin(in_dir(path, "stripped"), false);
	add_program(w, elf, 0);
	add_sample(w, EXACT_ID, 1000, ph.p_vaddr + 0x500, 1, NULL, 0);
	finish(w);
	text = output(NULL, "'%s' report -i '%s'", tool, path);
	assert_has(text, "profile-stripped.riscv64: stripped: it has no symbols");
	assert_has(text, "[.] 0x0000000000");
	free(text);
	text = output(NULL, "'%s' script -i '%s'", tool, path);
	assert_has(text, " [unknown] (");
	free(text);
}

static void a_program_built_anew_since_is_not_believed(void **state)
{
	char path[128], elf[512], copy[128], *text;

	(void)state;
	free(output(NULL, "cp '%s' '%s'", guest(elf, "static"), in_dir(copy, "changing")));
	write_plain(in_dir(path, "changed"), copy, 0);
	free(output(NULL, "cp '%s' '%s'", guest(elf, "pie"), copy));
	text = output(NULL, "'%s' report -i '%s'", tool, path);
	assert_has(text, "the file has changed since the recording");
	assert_null(strstr(text, "heavy"));
	free(text);
}

/* ---- maps ---- */

static struct profile_record mmap_record(uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
					 const char *name)
{
	struct profile_record r = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};

	r.mmap.pid = r.mmap.tid = pid;
	r.mmap.addr = addr;
	r.mmap.len = len;
	r.mmap.pgoff = pgoff;
	r.mmap.name = name;
	return r;
}

static void expect_place(struct profile_maps *m, uint32_t pid, uint64_t ip, const char *name,
			 uint64_t offset)
{
	struct profile_place p;

	profile_maps_resolve(m, pid, PERF_RECORD_MISC_USER, ip, &p);
	if (!name) {
		assert_null(p.object);
		return;
	}
	assert_non_null(p.object);
	assert_string_equal(p.object->path, name);
	assert_int_equal(p.offset, offset);
}

static void addresses_belong_to_what_was_mapped_at_the_time(void **state)
{
	struct profile_symbols *s = profile_symbols_new();
	struct profile_maps *m = profile_maps_new(s);
	struct profile_record r;

	(void)state;
	r = mmap_record(1, 0x1000, 0x4000, 0, "[a]");
	profile_maps_record(m, &r);
	r = mmap_record(1, 0x2000, 0x1000, 0x500, "[b]"); /* splits [a] */
	profile_maps_record(m, &r);
	expect_place(m, 1, 0x0fff, NULL, 0);
	expect_place(m, 1, 0x1fff, "[a]", 0xfff);
	expect_place(m, 1, 0x2000, "[b]", 0x500);
	expect_place(m, 1, 0x3000, "[a]", 0x2000);
	expect_place(m, 1, 0x5000, NULL, 0);
	r = (struct profile_record){.type = PERF_RECORD_COMM};
	r.comm.pid = r.comm.tid = 1;
	r.comm.comm = "shell";
	profile_maps_record(m, &r);
	r = (struct profile_record){.type = PERF_RECORD_FORK};
	r.task.pid = r.task.tid = 2;
	r.task.ppid = r.task.ptid = 1;
	profile_maps_record(m, &r);
	expect_place(m, 2, 0x2000, "[b]", 0x500);
	assert_string_equal(profile_maps_comm(m, 2, 2), "shell");
	r = (struct profile_record){.type = PERF_RECORD_COMM};
	r.comm.pid = r.comm.tid = 2;
	r.comm.comm = "prog";
	r.comm.exec = true;
	profile_maps_record(m, &r);
	expect_place(m, 2, 0x2000, NULL, 0);
	expect_place(m, 1, 0x2000, "[b]", 0x500);
	assert_string_equal(profile_maps_comm(m, 2, 2), "prog");
	assert_string_equal(profile_maps_comm(m, 1, 1), "shell");
	assert_string_equal(profile_maps_comm(m, 9, 9), ":9");
	r = mmap_record(1, 0, 0x100000, 0, "[c]"); /* covers all */
	profile_maps_record(m, &r);
	expect_place(m, 1, 0x2000, "[c]", 0x2000);
	profile_maps_free(m);
	profile_symbols_free(s);
}

/* ---- sums ---- */

static void recursion_counts_a_function_once(void **state)
{
	char path[128], elf[512], *text;
	uint64_t heavy, main_at;
	struct perfdata_writer *w;

	(void)state;
	heavy = function_at(guest(elf, "static"), "heavy", NULL);
	main_at = function_at(elf, "main", NULL);
	w = begin(in_dir(path, "recursion"), true);
	add_program(w, elf, 0);
	add_sample(w, EXACT_ID, 1, heavy, 10, (uint64_t[]){heavy, heavy + 4, heavy + 4, main_at},
		   4);
	add_sample(w, EXACT_ID, 2, main_at, 10, (uint64_t[]){main_at}, 1);
	finish(w);
	text = output(NULL, "'%s' report -g none -n --sort symbol -i '%s'", tool, path);
	assert_has(text, "   100.00%    50.00%             1  [.] main\n");
	assert_has(text, "    50.00%    50.00%             1  [.] heavy\n");
	free(text);
}

static void sort_keys_and_limit_choose_what_is_shown(void **state)
{
	char path[128], elf[512], *text;
	int status;

	(void)state;
	write_plain(in_dir(path, "keys"), guest(elf, "static"), 0);
	text = output(NULL, "'%s' report --sort pid,cpu -i '%s'", tool, path);
	assert_has(text, "   100.00%  4242    3\n");
	free(text);
	text = output(NULL, "'%s' report --sort sym --percent-limit 50 -i '%s'", tool, path);
	assert_has(text, "    75.00%  [.] heavy\n");
	assert_null(strstr(text, "light"));
	free(text);
	text = output(&status, "'%s' report --sort nonsense -i '%s' 2>&1", tool, path);
	assert_int_equal(status, 2);
	assert_has(text,
		   "cannot sort by 'nonsense'; there are comm, dso, symbol, symoff, pid, tid, cpu");
	free(text);
	text = output(&status, "'%s' report --json -i '%s'", tool, path);
	assert_int_equal(status, 0);
	assert_has(text, "\"class\": \"exact\"");
	assert_has(text, "\"symbol\": \"heavy\"");
	free(text);
}

/* ---- damage ---- */

struct walk {
	struct profile *p;
	struct profile_aggregate *sums;
};

static int take(void *arg, const struct profile_record *r)
{
	struct walk *w = arg;

	if (r->type == PERF_RECORD_SAMPLE)
		return profile_aggregate_sample(w->sums, w->p->maps, r);
	return profile_maps_record(w->p->maps, r);
}

/* Everything that report and script do with a file. False: it was refused, and said why. */
static bool digest(const char *path)
{
	struct profile_options opt = {.keys = 7, .children = true, .chains = true};
	struct perfdata_error err = {""};
	struct profile p;
	struct walk w = {&p, profile_aggregate_new(&opt)};
	bool ok = !profile_open(&p, path, &err);
	size_t n;

	if (ok) {
		assert_int_equal(perfdata_each(p.data, take, &w), 0);
		profile_aggregate_sort(w.sums, 0, &n);
	} else {
		assert_true(strlen(err.text) > 10);
	}
	profile_close(&p);
	profile_aggregate_free(w.sums);
	return ok;
}

static void write_small(const char *path)
{
	struct perfdata_writer *w = begin(path, true);

	assert_int_equal(perfdata_comm(w, 4242, 4242, "guest"), 0);
	assert_int_equal(perfdata_mmap2(w, &(struct perfdata_mapping){.pid = 4242,
								      .tid = 4242,
								      .addr = 0x10000,
								      .len = 0x1000,
								      .prot = 5,
								      .flags = 2,
								      .name = "[code]"}),
			 0);
	for (unsigned i = 0; i < 4; i++)
		add_sample(w, EXACT_ID + i % 2, 1000 + i, 0x10010, 10,
			   (uint64_t[]){0x10010, 0x10020, 0x10030}, 3);
	finish(w);
}

static void a_file_cut_at_any_byte_is_refused(void **state)
{
	char path[128], *v;
	size_t n;

	(void)state;
	write_small(in_dir(path, "cut"));
	assert_true(digest(path));
	v = read_file(path, &n);
	while (n--) {
		assert_int_equal(truncate(path, (off_t)n), 0);
		if (digest(path))
			fail_msg("cut to %zu bytes and still taken for whole", n);
	}
	free(v);
}

static void damaged_bytes_do_no_harm(void **state)
{
	char path[128], *v;
	uint64_t seed = 1;
	size_t n;

	(void)state;
	write_small(in_dir(path, "flip"));
	v = read_file(path, &n);
	for (unsigned i = 0; i < 3000; i++) {
		size_t at;
		char old;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		/* First every byte of header, events and records in turn, then anywhere. */
		at = i < 1600 && i < n ? i : (seed >> 33) % n;
		old = v[at];
		v[at] = (char)(i % 3 ? seed >> 56 : i % 2 ? 0xff : 0x7f);
		write_file(path, v, n);
		digest(path);
		v[at] = old;
	}
	free(v);
}

static void damaged_compressed_records_do_no_harm(void **state)
{
	char path[128], *v;
	uint64_t seed = 7;
	int status;
	size_t n;

	(void)state;
	in_dir(path, "packed");
	free(output(&status, "perf record -q -z -e cpu-clock:u -F 997 -o '%s' -- '%s' 2>&1", path,
		    busy));
	if (status) {
		print_message("# skipped: this host lets perf record nothing\n");
		skip();
	}
	v = read_file(path, &n);
	for (unsigned i = 0; i < 150; i++) {
		size_t at;
		char old;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		at = (seed >> 33) % n;
		old = v[at];
		v[at] ^= (char)(1 + (seed >> 57));
		write_file(path, v, n);
		digest(path);
		v[at] = old;
	}
	for (size_t cut = n; cut > 16; cut = cut * 9 / 10) {
		write_file(path, v, cut);
		digest(path);
	}
	free(v);
}

static void what_cannot_be_read_says_why(void **state)
{
	char path[128], *v, *text;
	size_t n;
	int status;

	(void)state;
	text = output(&status, "'%s' report -i '%s/nowhere' 2>&1", tool, dir);
	assert_int_equal(status, 2);
	assert_has(text, "no file '");
	free(text);
	write_small(in_dir(path, "odd"));
	v = read_file(path, &n);
	v[8] = 16; /* header size of pipe mode */
	write_file(path, v, n);
	text = output(&status, "'%s' report -i '%s' 2>&1", tool, path);
	assert_has(text, "was written to a pipe");
	free(text);
	memcpy(v, "2ELIFREP", 8);
	write_file(path, v, n);
	text = output(&status, "'%s' script -i '%s' 2>&1", tool, path);
	assert_has(text, "other byte order");
	free(text);
	memset(v, 0, 104);
	write_file(path, v, n);
	text = output(&status, "'%s' report -i '%s' 2>&1", tool, path);
	assert_has(text, "was cut off");
	free(text);
	write_file(path, "hello, world, this is text", 26);
	text = output(&status, "'%s' report -i '%s' 2>&1", tool, path);
	assert_has(text, "is not a perf.data file");
	free(text);
	free(v);
}

/* ---- writing where one cannot ---- */

static void nothing_looks_whole_that_is_not(void **state)
{
	struct perfdata_info info = {0};
	struct perfdata_error err;
	struct perfdata_writer *w;
	struct rlimit old, small;
	size_t before = files_in_dir();
	char path[128];
	int r = 0;

	(void)state;
	w = begin(in_dir(path, "unfinished"), false);
	add_sample(w, EXACT_ID, 1, 1, 1, NULL, 0);
	assert_int_not_equal(access(path, F_OK), 0);
	perfdata_abort(w);
	assert_int_equal(files_in_dir(), before);

	/* A disk that is full after 64 KiB. */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){65536, old.rlim_max};
	w = begin(path, false);
	setrlimit(RLIMIT_FSIZE, &small);
	for (unsigned i = 0; i < 20000 && !r; i++) {
		uint64_t rec[7] = {
			PERF_RECORD_SAMPLE | (uint64_t)56 << 48, EXACT_ID, 1, 0, i, 0, 1};

		r = perfdata_append(w, rec, sizeof(rec));
	}
	assert_int_equal(r, -EFBIG);
	r = perfdata_finish(w, &info, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(r, -EFBIG);
	assert_has(err.text, "no file was left");
	assert_int_equal(files_in_dir(), before);

	w = begin("/dev/full", false);
	add_sample(w, EXACT_ID, 1, 1, 1, NULL, 0);
	assert_int_equal(perfdata_finish(w, &info, &err), -ENOSPC);
	assert_has(err.text, "No space left");
}

static void places_that_cannot_be_written_say_why(void **state)
{
	struct perfdata_error err;
	char path[128];

	(void)state;
	assert_null(perfdata_create(in_dir(path, "no/such/folder/f"), &err));
	assert_has(err.text, "No such file or directory");
	assert_null(perfdata_create(dir, &err));
	assert_has(err.text, "not a regular file");
	assert_null(perfdata_create("-", &err));
	assert_has(err.text, "pipe");
}

static void the_last_recording_is_kept_as_old(void **state)
{
	char path[128], old[128], *a, *b;
	size_t n, m;

	(void)state;
	write_small(in_dir(path, "again"));
	a = read_file(path, &n);
	write_plain(path, guest((char[512]){0}, "static"), 0);
	b = read_file(in_dir(old, "again.old"), &m);
	assert_int_equal(n, m);
	assert_memory_equal(a, b, n);
	free(a);
	free(b);
}

static void malformed_records_are_not_written(void **state)
{
	uint64_t bad_size[2] = {PERF_RECORD_COMM | (uint64_t)12 << 48, 0};
	uint64_t too_long[1] = {PERF_RECORD_COMM | (uint64_t)64 << 48};
	struct quipu_attr other = attr_of(0, false);
	char path[128];
	struct perfdata_writer *w = begin(in_dir(path, "malformed"), false);

	(void)state;
	other.sample_type &= ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	assert_int_equal(perfdata_add_event(w, &other, NULL, 0, "odd", QUIPU_HOST), -EINVAL);
	assert_int_equal(perfdata_append(w, bad_size, sizeof(bad_size)), -EINVAL);
	assert_int_equal(perfdata_append(w, too_long, sizeof(too_long)), -EINVAL);
	assert_int_equal(perfdata_add_event(w, &other, NULL, 0, "late", QUIPU_HOST), -EBUSY);
	perfdata_abort(w);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/quipu-profile-XXXXXX");
	if (!mkdtemp(dir) || !getenv("QUIPU_PROFILE_TOOL"))
		return -1;
	snprintf(tool, sizeof(tool), "%s", getenv("QUIPU_PROFILE_TOOL"));
	snprintf(busy, sizeof(busy), "%s", getenv("QUIPU_PROFILE_BUSY"));
	setenv("HOME", dir, 1);
	setenv("PERF_CONFIG", "/dev/null", 1);
	setenv("DEBUGINFOD_URLS", "", 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(output(NULL, "rm -rf '%s'", dir));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(records_of_several_rings_come_back_oldest_first),
		cmocka_unit_test(equal_recordings_are_equal_bytes),
		cmocka_unit_test(perf_names_the_functions_of_a_riscv_program),
		cmocka_unit_test(perf_reads_the_header),
		cmocka_unit_test(script_prints_what_perf_script_prints),
		cmocka_unit_test(every_address_has_the_name_that_perf_gives_it),
		cmocka_unit_test(linkage_entries_carry_the_name_of_what_they_call),
		cmocka_unit_test(events_of_every_type_are_printed_alike),
		cmocka_unit_test(call_graphs_are_those_of_perf),
		cmocka_unit_test(a_call_at_the_end_of_a_function_is_that_functions),
		cmocka_unit_test(a_file_that_perf_recorded_is_read),
		cmocka_unit_test(groups_and_a_run_that_was_not_counted_whole_are_kept),
		cmocka_unit_test(inlined_functions_are_those_of_addr2line),
		cmocka_unit_test(report_shows_inlined_functions),
		cmocka_unit_test(a_stripped_program_gives_addresses_and_the_reason),
		cmocka_unit_test(a_program_built_anew_since_is_not_believed),
		cmocka_unit_test(addresses_belong_to_what_was_mapped_at_the_time),
		cmocka_unit_test(recursion_counts_a_function_once),
		cmocka_unit_test(sort_keys_and_limit_choose_what_is_shown),
		cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
		cmocka_unit_test(damaged_bytes_do_no_harm),
		cmocka_unit_test(damaged_compressed_records_do_no_harm),
		cmocka_unit_test(what_cannot_be_read_says_why),
		cmocka_unit_test(nothing_looks_whole_that_is_not),
		cmocka_unit_test(places_that_cannot_be_written_say_why),
		cmocka_unit_test(the_last_recording_is_kept_as_old),
		cmocka_unit_test(malformed_records_are_not_written),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
