/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu export --format perf: a copy of a recording in which the stock perf finds the names of
 * hypervisor code too (RTAS sheet 6.5). perf resolves no hypervisor address, but it resolves the
 * kernel's: the copy has an ELF file of the hypervisor's functions mapped into the kernel, and the
 * samples that are the hypervisor's are marked as the kernel's. Everything else is as it was.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "cli/cli.h"
#include "cli/hypervisor.h"
#include "cli/run.h"
#include "profile/perfdata_format.h"

#define IMAGE	    "[hypervisor]"
#define PAGE	    4096u
#define MISC_MASK   7u
#define MISC_KERNEL 1u
#define MISC_HV	    3u
#define EM_PPC64_   21

static const char usage[] =
	"usage: quipu export --format perf [-i FILE] [-o FILE] [-m MACHINE | --map FILE]\n\n"
	"Writes a copy of a recording after which the stock perf shows the names of hypervisor code: its\n"
	"samples become kernel samples in an image " IMAGE ", an ELF file beside the copy.\n\n"
	"  -i, --input FILE    recording to read [perf.data]\n"
	"  -o, --output FILE   copy to write [perf.data.named]\n"
	"      --format F      perf (the only one)\n"
	"  -m, --machine M     names from machine M, where the recording has none\n"
	"      --map FILE      names from a symbol file\n";

struct image {
	uint64_t start, end; /* pages that hold all addresses */
	const struct profile_hypervisor *names;
	char path[PATH_MAX];
};

/* ---- the ELF file ---- */

struct symtab {
	struct blob symbols, strings;
};

static void add_symbols(struct symtab *t, const struct profile_hypervisor *h)
{
	const Elf64_Sym none = {0};

	blob_add(&t->symbols, &none, sizeof(none));
	blob_add(&t->strings, "", 1);
	for (size_t i = 0; i < profile_hypervisor_count(h); i++) {
		const struct profile_symbol *s = profile_hypervisor_symbol(h, i);
		Elf64_Sym sym = {
			.st_name = (Elf64_Word)t->strings.n,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = s->start,
			.st_size = s->end - s->start,
		};

		blob_add(&t->symbols, &sym, sizeof(sym));
		blob_add(&t->strings, s->name, strlen(s->name) + 1);
	}
}

/* The text itself is not there (its section has no bytes): nobody knows the hypervisor's code. */
static void make_elf(struct blob *out, const struct image *im, struct symtab *t)
{
	static const char names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
	uint64_t at = PAGE, size = im->end - im->start;
	const uint64_t symbols = at, strings = symbols + t->symbols.n,
		       shstr = strings + t->strings.n, sections = (shstr + sizeof(names) + 7) & ~7u;
	const Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_PPC64_,
		.e_version = EV_CURRENT,
		.e_entry = im->start,
		.e_phoff = sizeof(eh),
		.e_shoff = sections,
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 4,
	};
	const Elf64_Phdr ph = {.p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = 0,
			       .p_vaddr = im->start,
			       .p_paddr = im->start,
			       .p_memsz = size,
			       .p_align = PAGE};
	const Elf64_Shdr sh[5] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_NOBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = im->start,
		 .sh_size = size,
		 .sh_addralign = 4},
		{.sh_name = 7,
		 .sh_type = SHT_SYMTAB,
		 .sh_offset = symbols,
		 .sh_size = t->symbols.n,
		 .sh_link = 3,
		 .sh_info = 1,
		 .sh_addralign = 8,
		 .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_name = 15,
		 .sh_type = SHT_STRTAB,
		 .sh_offset = strings,
		 .sh_size = t->strings.n,
		 .sh_addralign = 1},
		{.sh_name = 23,
		 .sh_type = SHT_STRTAB,
		 .sh_offset = shstr,
		 .sh_size = sizeof(names),
		 .sh_addralign = 1},
	};

	blob_add(out, &eh, sizeof(eh));
	blob_add(out, &ph, sizeof(ph));
	blob_zero(out, PAGE - out->n);
	blob_add(out, t->symbols.v, t->symbols.n);
	blob_add(out, t->strings.v, t->strings.n);
	blob_add(out, names, sizeof(names));
	blob_zero(out, sections - out->n);
	blob_add(out, sh, sizeof(sh));
}

static int write_file(const char *path, const struct blob *b)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	size_t done = 0;
	ssize_t n = 0;
	int err;

	if (fd < 0)
		return cli_error("%s: %s", path, strerror(errno));
	while (done < b->n && (n = write(fd, b->v + done, b->n - done)) > 0)
		done += (size_t)n;
	err = done < b->n ? errno : 0;
	if (close(fd) && !err)
		err = errno;
	if (err)
		cli_remove_file(path);
	return err ? cli_error("%s: %s", path, strerror(err)) : 0;
}

static int write_image(const struct image *im)
{
	struct symtab t = {0};
	struct blob elf = {0};
	int rc;

	add_symbols(&t, im->names);
	make_elf(&elf, im, &t);
	rc = elf.failed || t.symbols.failed || t.strings.failed ? cli_error("out of memory")
								: write_file(im->path, &elf);
	blob_free(&elf);
	blob_free(&t.symbols);
	blob_free(&t.strings);
	return rc;
}

/* ---- the copy ---- */

static uint32_t get32(const uint8_t *p)
{
	return bits_le32(p);
}

/* A mapping that perf takes for a part of the kernel; time 0 with everything else of its trailer.
 */
static void add_mapping(struct blob *out, const struct image *im, size_t trailer)
{
	size_t name = (strlen(im->path) + 8) & ~(size_t)7, size = 8 + 8 + 24 + name + trailer;
	uint16_t rest[2] = {MISC_KERNEL, (uint16_t)size};

	blob_u32(out, PERF_RECORD_MMAP);
	blob_add(out, rest, sizeof(rest));
	blob_u32(out, UINT32_MAX);
	blob_u32(out, 0);
	blob_u64(out, im->start);
	blob_u64(out, im->end - im->start);
	blob_u64(out, 0);
	blob_add(out, im->path, strlen(im->path));
	blob_zero(out, name - strlen(im->path) + trailer);
}

/* Records one by one, those of the hypervisor as the kernel's. */
static int copy_records(struct blob *out, const uint8_t *p, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t size = profile_record_frame(p + at, len - at), before = out->n;

		if (!size)
			return -EINVAL;
		blob_add(out, p + at, size);
		if (!out->failed && get32(p + at) == PERF_RECORD_SAMPLE &&
		    (p[at + 4] & MISC_MASK) == MISC_HV)
			out->v[before + 4] = (uint8_t)((p[at + 4] & ~MISC_MASK) | MISC_KERNEL);
		at += size;
	}
	return 0;
}

static size_t trailer_of(const struct quipu_attr *a)
{
	const uint64_t parts = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return a->flags & QUIPU_ATTR_SAMPLE_ID_ALL ? 8 * bits_count(a->sample_type & parts) : 0;
}

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

/*
 * The file again: its header and attributes, the mapping, the records, the features. What lies
 * behind the mapping moves by its size; all that tells of places is in header and feature table.
 */
static int make_copy(struct blob *out, const uint8_t *file, size_t size, const struct image *im,
		     const struct quipu_attr *attr)
{
	uint64_t data = bits_le64(file + PERFDATA_OFF_DATA),
		 len = bits_le64(file + PERFDATA_OFF_DATA + 8), table, moved, features = 0;

	blob_add(out, file, data);
	add_mapping(out, im, trailer_of(attr));
	if (copy_records(out, file + data, len) || out->failed)
		return -EINVAL;
	moved = out->n - (data + len);
	blob_add(out, file + data + len, size - data - len);
	if (out->failed)
		return -ENOMEM;
	put64(out->v + PERFDATA_OFF_DATA + 8, len + moved);
	for (unsigned i = 0; i < PERFDATA_FEATURES / 64; i++)
		features += bits_count(bits_le64(file + PERFDATA_OFF_FEATURES + 8 * i));
	table = data + len + moved;
	for (uint64_t i = 0; i < features; i++) {
		uint8_t *entry = out->v + table + 16 * i;

		if (bits_le64(entry) >= data + len)
			put64(entry, bits_le64(entry) + moved);
	}
	return 0;
}

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *bytes = NULL;
	struct stat st;

	if (f && !fstat(fileno(f), &st) && st.st_size > 0)
		bytes = malloc((size_t)st.st_size);
	*size = bytes ? fread(bytes, 1, (size_t)st.st_size, f) : 0;
	if (f)
		fclose(f);
	if (bytes && *size == (size_t)st.st_size)
		return bytes;
	free(bytes);
	return NULL;
}

/* ---- the story ---- */

static int place_image(struct image *im, const struct profile *p, const char *output)
{
	char folder[PATH_MAX], *slash;
	uint64_t *addresses, *counts;
	size_t n;

	if (profile_hypervisor_addresses(p->data, &addresses, &counts, &n))
		return cli_error("out of memory");
	im->names = p->hypervisor;
	im->start = n ? addresses[0] & ~(uint64_t)(PAGE - 1) : 0;
	im->end = n ? (addresses[n - 1] | (PAGE - 1)) + 1 : 0;
	free(addresses);
	free(counts);
	if (!n)
		return cli_error(
			"this recording has no samples of a hypervisor; the stock perf reads "
			"it as it is");
	if (!im->names || !profile_hypervisor_count(im->names))
		return cli_error("no hypervisor address of this recording has a name; name its "
				 "machine with -m or a symbol file with --map");
	if (profile_hypervisor_symbol(im->names, 0)->start < im->start)
		im->start = profile_hypervisor_symbol(im->names, 0)->start & ~(uint64_t)(PAGE - 1);
	/* Beside the copy, in a folder of its own: perf wants the file to be called so. */
	snprintf(folder, sizeof(folder), "%s.hypervisor", output);
	if (mkdir(folder, 0777) && errno != EEXIST)
		return cli_error("%s: %s", folder, strerror(errno));
	slash = realpath(folder, im->path);
	if (!slash || strlen(im->path) + sizeof("/" IMAGE) > sizeof(im->path))
		return cli_error("%s: %s", folder, strerror(errno));
	strcat(im->path, "/" IMAGE);
	return 0;
}

static int export(struct profile *p, const char *input, const char *output)
{
	struct image im = {0};
	struct blob copy = {0};
	const struct perfdata_event *events;
	uint8_t *file = NULL;
	size_t size, n;
	int rc = 0;

	if (perfdata_features(p->data)->compressed)
		return cli_error("%s is compressed; record without -z", input);
	rc = place_image(&im, p, output);
	if (!rc)
		rc = write_image(&im);
	if (!rc) {
		file = read_file(input, &size);
		rc = file ? 0 : cli_error("%s: %s", input, strerror(errno));
	}
	events = perfdata_events(p->data, &n);
	if (!rc && make_copy(&copy, file, size, &im, &events[0].attr))
		rc = cli_error("%s: its records cannot be copied", input);
	if (!rc)
		rc = write_file(output, &copy);
	if (!rc)
		fprintf(stderr,
			"quipu: wrote %s and %s; hypervisor samples are marked as the kernel's there\n",
			output, im.path);
	blob_free(&copy);
	free(file);
	return rc;
}

int cmd_export(int argc, char **argv)
{
	static const struct option longs[] = {
		{"format", required_argument, NULL, 'f'},
		{"input", required_argument, NULL, 'i'},
		{"output", required_argument, NULL, 'o'},
		{"machine", required_argument, NULL, 'm'},
		{"map", required_argument, NULL, 'M'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *input = "perf.data", *output = "perf.data.named", *format = NULL;
	struct hv_options o = {.partition = 1};
	struct perfdata_error err;
	struct profile p = {0};
	int c, rc;

	optind = 0;
	while ((c = getopt_long(argc, argv, "f:i:o:m:h", longs, NULL)) != -1) {
		switch (c) {
		case 'f': format = optarg; break;
		case 'i': input = optarg; break;
		case 'o': output = optarg; break;
		case 'm': o.machine = optarg; break;
		case 'M': o.map = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (optind < argc)
		return cli_error("export takes no argument '%s'; a recording is named with -i",
				 argv[optind]);
	if (!format || strcmp(format, "perf"))
		return cli_error("--format %s: there is perf", format ? format : "is missing");
	if (profile_open(&p, input, &err))
		return cli_error("%s", err.text);
	rc = hv_profile(&p, &o);
	if (!rc)
		rc = export(&p, input, output);
	profile_close(&p);
	return rc;
}
