/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects and symbols through libelf; inlined functions through libdw. The choice among symbols of
 * one address follows what perf does, so that both tools name the same function.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>

#include "profile/buildid.h"
#include "profile/inlines.h"
#include "profile/kallsyms.h"
#include "profile/symbols.h"

#define INLINES_MAX 64u /* calls inlined into each other */

struct symbol {
	struct profile_symbol pub;
	uint64_t reach; /* largest end of this symbol and all before it */
	size_t order;	/* in the file's table */
	uint8_t bind;
	bool sized;
};

struct segment {
	uint64_t offset, size, vaddr;
	bool exec;
};

/* What is inlined at an address. */
struct inlines {
	uint64_t addr;
	const struct profile_symbol **frames;
	uint8_t n;
	bool known;
};

/* Texts one behind the other: the kernel has a hundred thousand. */
#define CHUNK (256u * 1024)
struct chunk {
	struct chunk *next;
	size_t n;
	char text[CHUNK];
};

struct object {
	struct profile_object pub;
	struct profile_symbols *set;
	bool loaded;
	bool kernel;   /* of the host's kernel: its symbols are those of /proc/kallsyms */
	uint64_t base; /* where the kernel's text begins now */
	const char *problem;
	uint8_t expect[20];
	unsigned expect_size;
	struct segment *segments;
	size_t nr_segments;
	struct symbol *symbols;
	size_t nr_symbols, room;
	struct chunk *names_of_own; /* of symbols whose names stand in no file that stays mapped */
	int fd, debug_fd;
	Elf *elf, *debug_elf;
	Dwarf *dwarf;
	bool dwarf_tried;
	struct inline_index *index;
	struct inlines *inlines;	 /* a hash table by address */
	size_t nr_inlines, inlines_room; /* room: a power of two */
	void *names; /* tree of struct profile_symbol: inlined functions by name */
};

struct profile_symbols {
	void *strings; /* tree of char * */
	void *objects; /* tree of struct object, by path */
};

/* ---- the set ---- */

static int by_string(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct object *)a)->pub.path, ((const struct object *)b)->pub.path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct profile_symbol *)a)->name,
		      ((const struct profile_symbol *)b)->name);
}

struct profile_symbols *profile_symbols_new(void)
{
	elf_version(EV_CURRENT);
	return calloc(1, sizeof(struct profile_symbols));
}

static void free_object(void *p)
{
	struct object *o = p;

	for (struct chunk *c = o->names_of_own, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	for (size_t i = 0; i < o->inlines_room; i++)
		free(o->inlines[i].frames);
	free(o->inlines);
	tdestroy(o->names, free);
	inline_index_free(o->index);
	if (o->dwarf)
		dwarf_end(o->dwarf);
	elf_end(o->debug_elf);
	elf_end(o->elf);
	if (o->fd >= 0)
		close(o->fd);
	if (o->debug_fd >= 0)
		close(o->debug_fd);
	free(o->symbols);
	free(o->segments);
	free(o);
}

void profile_symbols_free(struct profile_symbols *s)
{
	if (!s)
		return;
	tdestroy(s->objects, free_object);
	tdestroy(s->strings, free);
	free(s);
}

const char *profile_symbols_intern(struct profile_symbols *s, const char *str)
{
	void *found = tfind(str, &s->strings, by_string);
	char *copy;

	if (found)
		return *(char **)found;
	copy = strdup(str);
	if (copy && !tsearch(copy, &s->strings, by_string)) {
		free(copy);
		return NULL;
	}
	return copy;
}

struct profile_object *profile_symbols_object(struct profile_symbols *s, const char *name)
{
	struct object key = {.pub.path = name}, *o;
	void *found = tfind(&key, &s->objects, by_path);
	const char *slash;

	if (found)
		return &(*(struct object **)found)->pub;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->set = s;
	o->fd = o->debug_fd = -1;
	o->pub.path = profile_symbols_intern(s, name);
	if (!o->pub.path || !tsearch(o, &s->objects, by_path)) {
		free(o);
		return NULL;
	}
	slash = strrchr(o->pub.path, '/');
	o->pub.short_name = slash && slash[1] ? slash + 1 : o->pub.path;
	return &o->pub;
}

void profile_symbols_expect(struct profile_symbols *s, const char *path, const uint8_t *id,
			    unsigned size)
{
	struct object *o = (struct object *)profile_symbols_object(s, path);

	if (!o || size > sizeof(o->expect))
		return;
	memcpy(o->expect, id, size);
	o->expect_size = size;
}

/* ---- loading ---- */

static int read_segments(struct object *o)
{
	size_t n;

	if (elf_getphdrnum(o->elf, &n) || !n)
		return -ENOEXEC;
	o->segments = calloc(n, sizeof(*o->segments));
	if (!o->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		o->segments[o->nr_segments++] =
			(struct segment){ph.p_offset, ph.p_filesz, ph.p_vaddr, ph.p_flags & PF_X};
	}
	return 0;
}

/* $x, $d and .L labels say something about the code, they are not functions. */
static bool is_marker(const char *name)
{
	return !name[0] ||
	       (name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
		(!name[2] || name[2] == '.' || name[2] == 'r')) ||
	       (name[0] == '.' && name[1] == 'L');
}

static bool in_code(const struct object *o, uint64_t addr)
{
	for (size_t i = 0; i < o->nr_segments; i++)
		if (o->segments[i].exec && addr >= o->segments[i].vaddr &&
		    addr - o->segments[i].vaddr < o->segments[i].size)
			return true;
	return false;
}

static const char *keep_name(struct object *o, const char *name)
{
	size_t len = strlen(name) + 1;
	struct chunk *c = o->names_of_own;

	if (len > CHUNK)
		return NULL;
	if (!c || CHUNK - c->n < len) {
		c = malloc(sizeof(*c));
		if (!c)
			return NULL;
		c->next = o->names_of_own;
		c->n = 0;
		o->names_of_own = c;
	}
	name = memcpy(c->text + c->n, name, len);
	c->n += len;
	return name;
}

/* @name lives as long as the object. */
static int add_symbol(struct object *o, uint64_t start, uint64_t size, const char *name,
		      unsigned bind)
{
	if (o->nr_symbols == o->room) {
		size_t room = o->room ? 2 * o->room : 256;
		struct symbol *v = realloc(o->symbols, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		o->symbols = v;
		o->room = room;
	}
	o->symbols[o->nr_symbols] = (struct symbol){
		.pub = {.start = start,
			.end = start + size < start ? UINT64_MAX : start + size,
			.name = name},
		.order = o->nr_symbols,
		.bind = (uint8_t)bind,
		.sized = size,
	};
	o->nr_symbols++;
	return 0;
}

static const char *section_name(Elf *elf, size_t index, size_t names)
{
	Elf_Scn *scn = elf_getscn(elf, index);
	const char *name;
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh))
		return "";
	name = elf_strptr(elf, names, sh.sh_name);
	return name ? name : "";
}

/*
 * Functions, and labels that assembler code gave no type, if they are meant to be seen and lie in
 * code. Objects lie in executable segments too (constants): a sample there would be odd, but should
 * say where it is.
 */
static bool is_wanted(Elf *elf, const GElf_Sym *sym, size_t names)
{
	unsigned type = GELF_ST_TYPE(sym->st_info), visibility = GELF_ST_VISIBILITY(sym->st_other);
	const char *section;

	if (sym->st_shndx == SHN_UNDEF)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	section = section_name(elf, sym->st_shndx, names);
	if (type == STT_OBJECT) /* the linkage table as a whole is one, of no section */
		return sym->st_shndx != SHN_ABS && strcmp(section, ".plt");
	if (type != STT_NOTYPE || sym->st_shndx == SHN_ABS || visibility == STV_HIDDEN ||
	    visibility == STV_INTERNAL)
		return false;
	return strstr(section, ".text") != NULL;
}

static int read_table(struct object *o, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0, names = 0;
	int r = 0;

	elf_getshdrstrndx(elf, &names);
	for (size_t i = 0; i < n && !r; i++) {
		GElf_Sym sym;
		const char *name;

		if (!gelf_getsym(data, (int)i, &sym) || !is_wanted(elf, &sym, names))
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (!name || is_marker(name) || !in_code(o, sym.st_value))
			continue;
		r = add_symbol(o, sym.st_value, sym.st_size, name, GELF_ST_BIND(sym.st_info));
	}
	return r;
}

/* The table of type @want of @elf; -ENOENT when it has none. */
static int read_tables(struct object *o, Elf *elf, GElf_Word want)
{
	Elf_Scn *scn = NULL;
	int r = -ENOENT;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == want)
			r = read_table(o, elf, scn, &sh);
	}
	return r;
}

/* ---- the procedure linkage table: its entries carry no symbols, but its relocations name them
 * ---- */

/* Sizes from each psABI; only where all entries lie in .plt, in the order of .rela.plt. */
static const struct {
	uint16_t machine, header, entry;
} linkage[] = {
	{EM_RISCV, 32, 16},
	{EM_X86_64, 16, 16},
	{0},
};

static Elf_Scn *find_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn)))
		if (!strcmp(section_name(elf, elf_ndxscn(scn), names), name))
			return scn;
	return NULL;
}

static int add_linkage_entry(struct object *o, Elf_Scn *symbols, const GElf_Rela *rela, uint64_t at,
			     uint64_t size)
{
	const char *name;
	char text[512];
	GElf_Shdr sh;
	GElf_Sym sym;

	if (!symbols || !gelf_getshdr(symbols, &sh) ||
	    !gelf_getsym(elf_getdata(symbols, NULL), (int)GELF_R_SYM(rela->r_info), &sym))
		return 0;
	name = elf_strptr(o->elf, sh.sh_link, sym.st_name);
	if (!name || !name[0])
		return 0;
	snprintf(text, sizeof(text), "%s@plt", name);
	name = keep_name(o, text);
	return name ? add_symbol(o, at, size, name, STB_GLOBAL) : -ENOMEM;
}

static int read_linkage(struct object *o)
{
	Elf_Scn *plt = find_section(o->elf, ".plt"), *rela = find_section(o->elf, ".rela.plt");
	GElf_Ehdr eh;
	GElf_Shdr psh, rsh;
	Elf_Data *data;
	size_t k = 0, n;
	int r = 0;

	if (!plt || !rela || !gelf_getehdr(o->elf, &eh) || !gelf_getshdr(plt, &psh) ||
	    !gelf_getshdr(rela, &rsh) || !rsh.sh_entsize)
		return 0;
	while (linkage[k].machine && linkage[k].machine != eh.e_machine)
		k++;
	data = elf_getdata(rela, NULL);
	if (!linkage[k].machine || !data || psh.sh_size < linkage[k].header)
		return 0;
	n = (psh.sh_size - linkage[k].header) / linkage[k].entry;
	for (size_t i = 0; i < n && i < data->d_size / rsh.sh_entsize && !r; i++) {
		uint64_t at = psh.sh_addr + linkage[k].header + i * linkage[k].entry;
		GElf_Rela entry;

		if (gelf_getrela(data, (int)i, &entry))
			r = add_linkage_entry(o, elf_getscn(o->elf, rsh.sh_link), &entry, at,
					      linkage[k].entry);
	}
	return r;
}

/* Of names of one address: one with a size, not weak, global, fewest underscores, longest, first.
 */
static int better(const struct symbol *a, const struct symbol *b)
{
	size_t ua = strspn(a->pub.name, "_"), ub = strspn(b->pub.name, "_");
	size_t la = strlen(a->pub.name), lb = strlen(b->pub.name);

	if (a->sized != b->sized)
		return a->sized ? -1 : 1;
	if ((a->bind == STB_WEAK) != (b->bind == STB_WEAK))
		return a->bind == STB_WEAK ? 1 : -1;
	if ((a->bind == STB_GLOBAL) != (b->bind == STB_GLOBAL))
		return a->bind == STB_GLOBAL ? -1 : 1;
	if (ua != ub)
		return ua < ub ? -1 : 1;
	if (la != lb)
		return la > lb ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->pub.start != y->pub.start)
		return x->pub.start < y->pub.start ? -1 : 1;
	return better(x, y);
}

static uint64_t code_end(const struct object *o, uint64_t addr)
{
	for (size_t i = 0; i < o->nr_segments; i++)
		if (o->segments[i].exec && addr >= o->segments[i].vaddr &&
		    addr - o->segments[i].vaddr < o->segments[i].size)
			return o->segments[i].vaddr + o->segments[i].size;
	return addr;
}

/* One symbol per address; those without a size reach to the next. */
static void settle_symbols(struct object *o)
{
	size_t n = 0;

	if (!o->nr_symbols)
		return;
	qsort(o->symbols, o->nr_symbols, sizeof(*o->symbols), by_start);
	for (size_t i = 0; i < o->nr_symbols; i++)
		if (!n || o->symbols[n - 1].pub.start != o->symbols[i].pub.start)
			o->symbols[n++] = o->symbols[i];
	o->nr_symbols = n;
	for (size_t i = 0; i < n; i++) {
		struct symbol *s = &o->symbols[i];

		if (!s->sized)
			s->pub.end = i + 1 < n ? s[1].pub.start : code_end(o, s->pub.start);
		s->reach = i && s[-1].reach > s->pub.end ? s[-1].reach : s->pub.end;
	}
}

/* The debug file of a stripped object, where Debian's -dbgsym packages put it. */
static void open_debug_file(struct object *o)
{
	const uint8_t *id;
	const void *bits;
	ssize_t n = dwelf_elf_gnu_build_id(o->elf, &bits);
	char path[128];
	int at;

	if (n < 2 || n > 20)
		return;
	id = bits;
	at = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", id[0]);
	for (ssize_t i = 1; i < n; i++)
		at += snprintf(path + at, sizeof(path) - (size_t)at, "%02x", id[i]);
	snprintf(path + at, sizeof(path) - (size_t)at, ".debug");
	o->debug_fd = profile_elf_open(path);
	if (o->debug_fd >= 0)
		o->debug_elf = elf_begin(o->debug_fd, ELF_C_READ_MMAP, NULL);
}

/* ---- the host's kernel ---- */

/* The module that an object of the kernel stands for: "" the kernel proper, "[ext4]",
 * ".../ext4.ko". */
static void module_name(const struct object *o, char *buf, size_t len)
{
	const char *name = o->pub.short_name;

	if (!strncmp(name, "[kernel", 7)) {
		*buf = '\0';
		return;
	}
	snprintf(buf, len, "%s", name + (*name == '['));
	buf[strcspn(buf, ".]")] = '\0';
	for (char *c = buf; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

struct kernel_load {
	struct object *o;
	char module[64];
};

static int take_kernel_symbol(void *arg, const struct kallsyms_line *l)
{
	struct kernel_load *k = arg;
	unsigned bind = l->type == 'w' || l->type == 'W' ? STB_WEAK
			: l->type == 'T'		 ? STB_GLOBAL
							 : STB_LOCAL;
	const char *name;

	if (!k->module[0] && !strcmp(l->name, "_text"))
		k->o->base = l->addr;
	if (!l->addr || !strchr("tTwW", l->type) || strcmp(l->module, k->module))
		return 0;
	name = keep_name(k->o, l->name);
	/* Of several names of an address perf takes the last. */
	if (name && k->o->nr_symbols && k->o->symbols[k->o->nr_symbols - 1].pub.start == l->addr) {
		k->o->symbols[k->o->nr_symbols - 1].pub.name = name;
		return 0;
	}
	return name ? add_symbol(k->o, l->addr, 0, name, bind) : -ENOMEM;
}

static const char *load_kernel(struct object *o)
{
	struct kernel_load k = {.o = o};
	uint8_t id[20];
	unsigned n = o->expect_size ? kallsyms_build_id(id) : 0;
	int r;

	module_name(o, k.module, sizeof(k.module));
	if (!k.module[0] && n && (n != o->expect_size || memcmp(id, o->expect, n)))
		return "recorded on another kernel than the one that runs now";
	r = kallsyms_each(take_kernel_symbol, &k);
	settle_symbols(o);
	if (o->nr_symbols) /* the last one has no next: a page is more than a function */
		o->symbols[o->nr_symbols - 1].pub.end = o->symbols[o->nr_symbols - 1].reach =
			o->symbols[o->nr_symbols - 1].pub.start + 4096;
	if (r == -EACCES)
		return "the kernel hides its addresses from this user; as root: sysctl "
		       "kernel.kptr_restrict=0";
	return r ? "/proc/kallsyms cannot be read" : NULL;
}

static const char *load_object(struct object *o)
{
	const void *bits;
	ssize_t n;
	int r;

	if (o->kernel)
		return load_kernel(o);
	if (o->pub.path[0] != '/')
		return "not a file";
	o->fd = profile_elf_open(o->pub.path);
	if (o->fd < 0)
		return "the file is gone or cannot be read";
	o->elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL);
	if (!o->elf || elf_kind(o->elf) != ELF_K_ELF || read_segments(o))
		return "not an ELF file, or a damaged one";
	n = dwelf_elf_gnu_build_id(o->elf, &bits);
	if (o->expect_size &&
	    (n != (ssize_t)o->expect_size || memcmp(bits, o->expect, o->expect_size)))
		return "the file has changed since the recording (other build id)";
	r = read_tables(o, o->elf, SHT_SYMTAB);
	if (r == -ENOENT) {
		open_debug_file(o);
		if (o->debug_elf)
			r = read_tables(o, o->debug_elf, SHT_SYMTAB);
	}
	if (r == -ENOENT)
		r = read_tables(o, o->elf, SHT_DYNSYM);
	if (read_linkage(o))
		r = -ENOMEM;
	settle_symbols(o);
	return r == -ENOENT ? "stripped: it has no symbols" : r ? "its symbols are damaged" : NULL;
}

static struct object *loaded(struct profile_object *pub)
{
	struct object *o = (struct object *)pub;

	if (!o->loaded) {
		o->loaded = true;
		o->problem = load_object(o);
	}
	return o;
}

void profile_object_is_kernel(struct profile_object *pub)
{
	((struct object *)pub)->kernel = true;
}

uint64_t profile_object_base(struct profile_object *pub)
{
	return loaded(pub)->base;
}

const char *profile_object_problem(struct profile_object *pub)
{
	return loaded(pub)->problem;
}

/* ---- looking up ---- */

/* Two segments may share a page of the file: code is what was executed. */
static uint64_t to_vaddr(const struct object *o, uint64_t offset)
{
	if (o->kernel)
		return offset;
	for (int exec = 1; exec >= 0; exec--)
		for (size_t i = 0; i < o->nr_segments; i++) {
			const struct segment *s = &o->segments[i];

			if (s->exec == exec && offset >= s->offset && offset - s->offset < s->size)
				return offset - s->offset + s->vaddr;
		}
	return offset;
}

const struct profile_symbol *profile_object_find(struct profile_object *pub, uint64_t offset,
						 uint64_t *addr)
{
	struct object *o = loaded(pub);
	uint64_t at = to_vaddr(o, offset);
	size_t lo = 0, hi = o->nr_symbols;

	if (addr)
		*addr = at;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (o->symbols[mid].pub.start <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Back over symbols that lie inside another one, as long as any before reaches this far. */
	for (; lo && o->symbols[lo - 1].reach > at; lo--)
		if (o->symbols[lo - 1].pub.end > at)
			return &o->symbols[lo - 1].pub;
	return NULL;
}

static Dwarf *dwarf_of(struct object *o)
{
	if (o->dwarf_tried)
		return o->dwarf;
	o->dwarf_tried = true;
	if (!o->elf)
		return NULL;
	o->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
	if (o->dwarf)
		return o->dwarf;
	if (!o->debug_elf)
		open_debug_file(o);
	if (o->debug_elf)
		o->dwarf = dwarf_begin_elf(o->debug_elf, DWARF_C_READ, NULL);
	return o->dwarf;
}

static const struct profile_symbol *inlined_symbol(struct object *o, const char *name)
{
	struct profile_symbol key = {.name = name}, *s;
	void *found = tfind(&key, &o->names, by_name);

	if (found)
		return *(struct profile_symbol **)found;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct profile_symbol){.name = profile_symbols_intern(o->set, name), .inlined = true};
	if (!s->name || !tsearch(s, &o->names, by_name)) {
		free(s);
		return NULL;
	}
	return s;
}

static void walk_inlines(struct object *o, struct inlines *in)
{
	const char *names[INLINES_MAX];
	size_t n;

	if (!o->index && dwarf_of(o))
		o->index = inline_index_new(dwarf_of(o));
	n = o->index ? inline_index_find(o->index, in->addr, names, INLINES_MAX) : 0;
	in->frames = n ? calloc(n, sizeof(*in->frames)) : NULL;
	for (size_t i = 0; in->frames && i < n; i++) {
		in->frames[in->n] = inlined_symbol(o, names[i]);
		in->n += in->frames[in->n] != NULL;
	}
}

/* Where @addr is in the table, or belongs. */
static struct inlines *inlines_slot(const struct object *o, uint64_t addr)
{
	uint64_t hash = addr * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 32) & (o->inlines_room - 1);

	while (o->inlines[at].known && o->inlines[at].addr != addr)
		at = (at + 1) & (o->inlines_room - 1);
	return &o->inlines[at];
}

static bool make_inlines_room(struct object *o)
{
	struct inlines *old = o->inlines, *v;
	size_t n = o->inlines_room;

	if (2 * o->nr_inlines < n)
		return true;
	v = calloc(n ? 2 * n : 256, sizeof(*v));
	if (!v)
		return false;
	o->inlines = v;
	o->inlines_room = n ? 2 * n : 256;
	for (size_t i = 0; i < n; i++)
		if (old[i].known)
			*inlines_slot(o, old[i].addr) = old[i];
	free(old);
	return true;
}

size_t profile_object_inlines(struct profile_object *pub, uint64_t offset,
			      const struct profile_symbol *const **frames)
{
	struct object *o = loaded(pub);
	uint64_t addr = to_vaddr(o, offset);
	struct inlines *in;

	*frames = NULL;
	if ((o->problem && !o->elf) || !make_inlines_room(o))
		return 0;
	in = inlines_slot(o, addr);
	if (!in->known) {
		*in = (struct inlines){.addr = addr, .known = true};
		o->nr_inlines++;
		walk_inlines(o, in);
	}
	*frames = in->frames;
	return in->n;
}
