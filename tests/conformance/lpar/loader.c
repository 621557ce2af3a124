/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a map of hypervisor code: RT-59 to RT-63 of the RTAS sheet. ELF files are made here, in
 * both byte orders; lookups are judged by walking all symbols.
 */
#include "bed.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a file in the making ---- */

struct image {
	uint8_t bytes[16384];
	size_t len;
	bool big;
};

static void put(struct image *i, size_t at, uint64_t v, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		i->bytes[at + k] = (uint8_t)(v >> 8 * (i->big ? n - 1 - k : k));
	if (at + n > i->len)
		i->len = at + n;
}

struct sym {
	uint64_t addr, size;
	char nm; /* nm's letter */
	const char *name;
};

#define EHDR_SIZE 64u
#define SECTIONS  6u /* none, .text, .opd or .data, .symtab, .strtab, .shstrtab */

static void put_section(struct image *i, size_t shoff, unsigned n, unsigned name, unsigned type,
			uint64_t flags, uint64_t addr, uint64_t off, uint64_t size, unsigned link,
			uint64_t entsize)
{
	size_t s = shoff + 64u * n;

	put(i, s, name, 4);
	put(i, s + 4, type, 4);
	put(i, s + 8, flags, 8);
	put(i, s + 16, addr, 8);
	put(i, s + 24, off, 8);
	put(i, s + 32, size, 8);
	put(i, s + 40, link, 4);
	put(i, s + 56, entsize, 8);
}

/* @sized: st_size as in the table. @opd: values are descriptors at 0x20000, of machine ppc64. */
static void make_elf(struct image *i, bool big, const struct sym *syms, unsigned n, bool sized,
		     bool opd, uint64_t text, uint64_t text_size)
{
	static const char shstr[] = "\0.text\0.opd\0.symtab\0.strtab\0.shstrtab";
	size_t at = EHDR_SIZE + 56, opd_at, symtab, strtab, shstrtab, shoff, str = 1;

	memset(i, 0, sizeof(*i));
	i->big = big;
	memcpy(i->bytes, ELFMAG, 4);
	i->bytes[4] = ELFCLASS64;
	i->bytes[5] = big ? ELFDATA2MSB : ELFDATA2LSB;
	i->bytes[6] = 1;
	put(i, 16, ET_EXEC, 2);
	put(i, 18, opd ? EM_PPC64 : EM_RISCV, 2);
	put(i, 32, EHDR_SIZE, 8); /* phoff */
	put(i, 54, 56, 2);
	put(i, 56, 1, 2);
	put(i, EHDR_SIZE, PT_LOAD, 4);
	put(i, EHDR_SIZE + 4, PF_X | PF_R, 4);
	put(i, EHDR_SIZE + 16, text, 8);
	put(i, EHDR_SIZE + 40, text_size, 8);
	opd_at = at;
	for (unsigned k = 0; opd && k < n; k++)
		put(i, opd_at + 24u * k, syms[k].addr, 8);
	if (opd)
		put(i, opd_at + 24u * n - 8, 0, 8);
	symtab = i->len > at ? i->len : at;
	strtab = symtab + 24u * (n + 1);
	for (unsigned k = 0; k < n; k++) {
		size_t s = symtab + 24u * (k + 1);
		unsigned bind = syms[k].nm == 'W' || syms[k].nm == 'w' ? STB_WEAK
				: syms[k].nm >= 'a'		       ? STB_LOCAL
								       : STB_GLOBAL;
		bool data = strchr("DdBb", syms[k].nm) != NULL;

		put(i, s, str, 4);
		put(i, s + 4, ELF64_ST_INFO(bind, data ? STT_OBJECT : STT_FUNC), 1);
		put(i, s + 6, opd ? 2 : 1, 2);
		put(i, s + 8, opd ? 0x20000 + 24u * k : syms[k].addr, 8);
		put(i, s + 16, sized ? syms[k].size : 0, 8);
		memcpy(i->bytes + strtab + str, syms[k].name, strlen(syms[k].name) + 1);
		str += strlen(syms[k].name) + 1;
	}
	shstrtab = strtab + str;
	memcpy(i->bytes + shstrtab, shstr, sizeof(shstr));
	shoff = (shstrtab + sizeof(shstr) + 7) & ~(size_t)7;
	put(i, 40, shoff, 8);
	put(i, 58, 64, 2);
	put(i, 60, SECTIONS, 2);
	put(i, 62, 5, 2);
	put_section(i, shoff, 0, 0, SHT_NULL, 0, 0, 0, 0, 0, 0);
	put_section(i, shoff, 1, 1, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, text, 0, text_size, 0,
		    0);
	put_section(i, shoff, 2, 7, SHT_PROGBITS, SHF_ALLOC, 0x20000, opd_at, opd ? 24u * n : 0, 0,
		    0);
	put_section(i, shoff, 3, 12, SHT_SYMTAB, 0, 0, symtab, 24u * (n + 1), 4, 24);
	put_section(i, shoff, 4, 20, SHT_STRTAB, 0, 0, strtab, str, 0, 0);
	put_section(i, shoff, 5, 28, SHT_STRTAB, 0, 0, shstrtab, sizeof(shstr), 0, 0);
}

static struct quipu_hvmap *load(const void *bytes, size_t len, const struct quipu_hvmap_options *o)
{
	struct quipu_hvmap_error err = {0};
	struct quipu_hvmap *map = NULL;
	/* of exactly its size, so that a read beside it is found */
	void *copy = malloc(len ? len : 1);

	memcpy(copy, bytes, len);
	if (quipu_hvmap_read(&map, copy, len, o, &err))
		fail_msg("line %u: %s", err.line, err.text);
	free(copy);
	return map;
}

static struct quipu_hvmap *load_text(const char *text, const struct quipu_hvmap_options *o)
{
	return load(text, strlen(text), o);
}

static void owner(const struct quipu_hvmap *map, uint64_t addr, const char *name, uint64_t offset)
{
	struct quipu_hvmap_hit hit;
	enum quipu_hvmap_kind kind = quipu_hvmap_find(map, addr, &hit);

	if (!name) {
		assert_int_equal(kind, QUIPU_HVMAP_INVALID);
		assert_null(hit.name);
		return;
	}
	assert_int_not_equal(kind, QUIPU_HVMAP_INVALID);
	assert_string_equal(hit.name, name);
	assert_int_equal(addr - hit.start, offset);
}

/* ---- RT-59 ---- */

static const struct sym program[] = {
	{0x10000, 0x40, 'T', "start"},	   {0x10040, 0x20, 't', "helper"},
	{0x10060, 0x1a0, 'T', "enter"},	   {0x10200, 0x100, 'W', "weakly"},
	{0x10300, 0x100, 'D', "table"},	   {0x10400, 0x80, 't', "tail"},
	{0x10480, 0xb80, 'T', "last_one"},
};
#define SYMS (sizeof(program) / sizeof(program[0]))

static void same(const struct quipu_hvmap *a, const struct quipu_hvmap *b)
{
	for (uint64_t addr = 0xff00; addr < 0x11100; addr++) {
		struct quipu_hvmap_hit x, y;

		quipu_hvmap_find(a, addr, &x);
		quipu_hvmap_find(b, addr, &y);
		if (x.kind != QUIPU_HVMAP_FUNCTION && y.kind != QUIPU_HVMAP_FUNCTION)
			continue; /* only the ELF file knows of modules */
		assert_int_equal(x.kind, y.kind);
		assert_int_equal(x.start, y.start);
		assert_string_equal(x.name, y.name);
	}
}

static void rt59(void **state)
{
	static const char *const formats[] = {"nm", "kallsyms", "perfmap", "auto"};
	char text[1024], perfmap[1024];
	size_t len = 0, plen = 0;
	struct quipu_hvmap *ref;
	struct image image;

	(void)state;
	for (size_t i = 0; i < SYMS; i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%016llx %c %s\n",
					(unsigned long long)program[i].addr, program[i].nm,
					program[i].name);
		if (program[i].nm != 'D')
			plen += (size_t)snprintf(perfmap + plen, sizeof(perfmap) - plen,
						 "%llx %llx %s\n",
						 (unsigned long long)program[i].addr,
						 (unsigned long long)program[i].size,
						 program[i].name);
	}
	/* nothing bounds the last one of nm: 4096 bytes; let the others be of that size too */
	ref = load_text(perfmap, NULL);
	owner(ref, 0x10350, NULL, 0);
	owner(ref, 0x10fff, "last_one", 0xb7f);
	owner(ref, 0x11000, NULL, 0);
	for (size_t f = 0; f < 4; f++) {
		struct quipu_hvmap_options o = {.format = formats[f]};
		struct quipu_hvmap_module m = {0x10000, 0x1000, "image", false};
		struct quipu_hvmap *map;

		o.modules = &m; /* bounds the last symbol as the ELF file's segment does */
		o.nmodules = 1;
		map = f == 2 ? load(perfmap, plen, &o) : load(text, len, &o);
		same(ref, map);
		quipu_hvmap_put(map);
	}
	for (unsigned k = 0; k < 4; k++) {
		struct quipu_hvmap *map;

		make_elf(&image, k & 1, program, SYMS, k & 2, false, 0x10000, 0x1000);
		map = load(image.bytes, image.len, &(struct quipu_hvmap_options){.file = "x/qhv"});
		same(ref, map);
		owner(map, 0x10350, "qhv", 0x350); /* the module */
		quipu_hvmap_put(map);
	}
	quipu_hvmap_put(ref);
}

/* ---- RT-60 ---- */

static void rt60(void **state)
{
	static const struct sym code[] = {{0x10000, 0x40, 'T', "first"},
					  {0x10040, 0x40, 'T', "second"}};
	static const char skiboot[] = "0000000000000000 a __zero\n"
				      "0000000000000100 T .boot_entry\n"
				      "0000000000000200 T .main_cpu_entry\r\n"
				      "0000000000000300 T .shared\n"
				      "0000000000000400 T shared\n"
				      "0000000000000900 d boot_entry\n"
				      "                 U nowhere\n"
				      "                 w maybe\n";
	struct quipu_hvmap_options base = {.has_base = true, .base = 0x30000000};
	struct quipu_hvmap *map;
	struct image image;

	(void)state;
	for (unsigned big = 0; big < 2; big++) {
		make_elf(&image, big, code, 2, true, true, 0x10000, 0x1000);
		map = load(image.bytes, image.len, NULL);
		owner(map, 0x10004, "first", 4);
		owner(map, 0x1007c, "second", 0x3c);
		quipu_hvmap_put(map);
		map = load(image.bytes, image.len, &base); /* loaded elsewhere */
		owner(map, 0x30000044, "second", 4);
		quipu_hvmap_put(map);
	}
	map = load_text(skiboot, &base);
	owner(map, 0x30000104, "boot_entry", 4); /* its plain name is a descriptor */
	owner(map, 0x30000204, "main_cpu_entry", 4);
	owner(map, 0x30000304, ".shared", 4); /* its plain name is other code */
	owner(map, 0x30000404, "shared", 4);
	owner(map, 0x104, NULL, 0);
	owner(map, 0x30000901, NULL, 0);
	quipu_hvmap_put(map);
}

/* ---- RT-61 ---- */

static void refused(const void *bytes, size_t len, const char *format, unsigned line,
		    const char *word)
{
	struct quipu_hvmap_options o = {.format = format};
	struct quipu_hvmap_error err = {0};
	struct quipu_hvmap *map = NULL;

	assert_int_equal(quipu_hvmap_read(&map, bytes, len, &o, &err), -22);
	assert_null(map);
	if (err.line != line || !strstr(err.text, word))
		fail_msg("line %u: %s", err.line, err.text);
}

static void rt61(void **state)
{
	static const struct {
		const char *text, *format;
		unsigned line;
		const char *word;
	} rows[] = {
		{"", NULL, 0, "no functions"},
		{"# nothing\n\n", NULL, 0, "no functions"},
		{"0000000000000000 T a\n0000000000000000 t b [m]\n", NULL, 0, "hides"},
		{"a01f00 300 f\nzzz\n", NULL, 2, "neither"},
		{"11 ", NULL, 1, "neither"},
		{" \t ", NULL, 0, "no functions"},
		{"1000 T a\nhello\n", "nm", 2, "ADDRESS TYPE NAME"},
		{"1000 T a\n1000 T \n", "nm", 2, "without a name"},
		{"10000000000000000 T a\n", "nm", 1, "ADDRESS TYPE NAME"},
		{"1000 5 a\n", "nm", 1, "no type"},
		{"1000 100\n", "perfmap", 1, "START SIZE NAME"},
		{"1000 100 a\n1000 \x80 b\n", NULL, 2, "byte 0x80"},
		{"1000 D a\n2000 U b\n", NULL, 0, "no functions"},
		{"1000 100 a\n", "tea", 0, "no format 'tea'"},
		{"1000 T a\n", "elf", 0, "not an ELF file"},
	};
	char *big = malloc(5u << 20);
	uint8_t junk[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refused(rows[i].text, strlen(rows[i].text), rows[i].format, rows[i].line,
			rows[i].word);
	assert_non_null(big);
	memset(big, 'a', 5u << 20);
	refused(big, 5u << 20, NULL, 1, "longer than 4096");
	free(big);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 151 + 129);
	refused(junk, sizeof(junk), NULL, 1, "no symbol map");
	memcpy(junk, ELFMAG "\2\1", 6);
	refused(junk, sizeof(junk), NULL, 0, "outside the file");
	refused("\177ELF\1\1", 6, NULL, 0, "not an ELF file");
}

/* Each byte of good files changed or cut: never more than an error. */
static void rt61_damage(void **state)
{
	static const uint8_t wrong[] = {0, 1, 0x7f, 0xff};
	struct image image;

	(void)state;
	make_elf(&image, true, program, SYMS, true, true, 0x10000, 0x1000);
	for (size_t at = 0; at < image.len; at++) {
		uint8_t *copy = malloc(image.len);
		struct quipu_hvmap *map;

		assert_non_null(copy);
		for (size_t k = 0; k < sizeof(wrong); k++) {
			memcpy(copy, image.bytes, image.len);
			copy[at] = wrong[k];
			map = NULL;
			if (!quipu_hvmap_read(&map, copy, image.len, NULL, NULL))
				quipu_hvmap_put(map);
		}
		free(copy);
		copy = malloc(at ? at : 1);
		memcpy(copy, image.bytes, at);
		map = NULL;
		if (!quipu_hvmap_read(&map, copy, at, NULL, NULL))
			quipu_hvmap_put(map);
		free(copy);
	}
}

/* ---- RT-62 ---- */

static void rt62(void **state)
{
	struct quipu_hvmap_hit alias;
	struct quipu_hvmap *map;
	struct image image;
	static const struct sym bindings[] = {{0x10000, 0x10, 'W', "weakly"},
					      {0x10000, 0x10, 'T', "global"},
					      {0x10000, 0x10, 't', "alocal"},
					      {0x10010, 0x10, 't', "b_local"},
					      {0x10010, 0x10, 'W', "c_weak"}};

	(void)state;
	map = load_text("1000 W weak\n1000 T __global\n1000 T _global\n1000 t alpha\n"
			"2000 t beta\n2000 t alpha2\n3000 D end\n",
			NULL);
	owner(map, 0x1000, "_global", 0);
	owner(map, 0x2fff, "alpha2", 0xfff);
	owner(map, 0x3000, NULL, 0);
	assert_int_equal(quipu_hvmap_aliases(map), 4);
	quipu_hvmap_alias(map, 0, &alias);
	assert_int_equal(alias.start, 0x1000);
	assert_string_equal(alias.name, "__global");
	quipu_hvmap_put(map);
	make_elf(&image, false, bindings, 5, true, false, 0x10000, 0x1000);
	map = load(image.bytes, image.len, NULL);
	owner(map, 0x10000, "global", 0);
	owner(map, 0x10010, "c_weak", 0);
	quipu_hvmap_put(map);
	/* a told size wins; nested ones: the inner inside, the outer after it; then an overlap */
	map = load_text("1000 100 outer\n1040 20 inner thing::f(int)\n1048 8 core\n"
			"2000 40 left\n2020 40 right\n1000 0 also\n",
			NULL);
	owner(map, 0x103f, "outer", 0x3f);
	owner(map, 0x1047, "inner thing::f(int)", 7);
	owner(map, 0x1048, "core", 0);
	owner(map, 0x1050, "inner thing::f(int)", 0x10);
	owner(map, 0x1060, "outer", 0x60);
	owner(map, 0x10ff, "outer", 0xff);
	owner(map, 0x201f, "left", 0x1f);
	owner(map, 0x2020, "right", 0);
	owner(map, 0x205f, "right", 0x3f);
	owner(map, 0x2060, NULL, 0);
	quipu_hvmap_put(map);
	/* the ends of the address space */
	map = load_text("0 10 zero\nfffffffffffffff0 10 top\n", NULL);
	owner(map, 0, "zero", 0);
	owner(map, 0x10, NULL, 0);
	owner(map, UINT64_MAX - 16, NULL, 0);
	owner(map, UINT64_MAX, "top", 15);
	quipu_hvmap_put(map);
	/* kallsyms: a tag bounds sizes and makes a module */
	map = load_text("1000 T kfn\n5000 t mfn [mod]\n5100 t mfn2 [mod]\n5800 T kfn2\n", NULL);
	owner(map, 0x5800, "kfn2", 0);
	owner(map, 0x50ff, "mfn", 0xff);
	owner(map, 0x2000, "kfn", 0x1000);
	assert_int_equal(quipu_hvmap_modules(map), 1);
	quipu_hvmap_put(map);
}

static void modules(void **state)
{
	struct quipu_hvmap_module m[] = {{0x1000, 0x1000, "code", false},
					 {0x2000, 0x1000, "data", true},
					 {0x4000, 0x1000, "more", false}};
	struct quipu_hvmap_options o = {.modules = m, .nmodules = 3};
	struct quipu_hvmap_error err;
	struct quipu_hvmap *map;

	(void)state;
	map = load_text("1010 T f\n1020 d bound\n2010 T in_data\n4ff0 T g\n9000 T out\n", &o);
	owner(map, 0x1000, "code", 0);
	owner(map, 0x101f, "f", 0xf);
	owner(map, 0x1020, "code", 0x20);
	owner(map, 0x2010, NULL, 0);
	owner(map, 0x4fff, "g", 0xf); /* the module ends it */
	owner(map, 0x5000, NULL, 0);
	owner(map, 0x9fff, "out", 0xfff);
	owner(map, 0xa000, NULL, 0);
	quipu_hvmap_put(map);
	m[1].start = 0x1fff;
	assert_int_equal(quipu_hvmap_read(&map, "1 1 x\n", 6, &o, &err), -22);
	assert_non_null(strstr(err.text, "overlap"));
}

/* ---- RT-63 ---- */

static uint64_t xorshift(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* The innermost symbol: of those that hold the address, the one that starts last. */
static void walk(const struct quipu_hvmap *map, uint64_t addr, struct quipu_hvmap_hit *best)
{
	*best = (struct quipu_hvmap_hit){.kind = QUIPU_HVMAP_INVALID};
	for (size_t i = 0; i < quipu_hvmap_size(map); i++) {
		struct quipu_hvmap_hit s;

		quipu_hvmap_symbol(map, i, &s);
		if (addr >= s.start && addr - s.start < s.size &&
		    (best->kind == QUIPU_HVMAP_INVALID || s.start >= best->start))
			*best = s;
	}
	for (size_t i = 0; best->kind == QUIPU_HVMAP_INVALID && i < quipu_hvmap_modules(map); i++) {
		struct quipu_hvmap_module m;

		quipu_hvmap_module(map, i, &m);
		if (addr >= m.start && addr - m.start < m.size)
			*best = (struct quipu_hvmap_hit){QUIPU_HVMAP_MODULE, m.start, m.size,
							 m.name};
	}
}

static void rt63(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	(void)state;
	for (unsigned round = 0; round < 1000; round++) {
		unsigned n = 1 + xorshift(&seed) % 20, nm = xorshift(&seed) % 4;
		struct quipu_hvmap_module m[4];
		struct quipu_hvmap_options o = {.format = "perfmap", .modules = m, .nmodules = nm};
		char text[2048];
		size_t len = 0;
		struct quipu_hvmap *map;

		for (unsigned i = 0; i < nm; i++)
			m[i] = (struct quipu_hvmap_module){0x400 * i + xorshift(&seed) % 0x100,
							   1 + xorshift(&seed) % 0x300, "mod",
							   false};
		for (unsigned i = 0; i < n; i++)
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, "%llx %llx s%u\n",
				(unsigned long long)(xorshift(&seed) % 0x1000),
				(unsigned long long)(1 +
						     xorshift(&seed) %
							     (xorshift(&seed) % 2 ? 0x40 : 0x800)),
				i);
		map = load(text, len, &o);
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t addr = xorshift(&seed) % 0x1a00;
			struct quipu_hvmap_hit got, want;

			quipu_hvmap_find(map, addr, &got);
			walk(map, addr, &want);
			if (got.kind != want.kind || got.start != want.start)
				fail_msg("0x%llx in\n%s", (unsigned long long)addr, text);
		}
		quipu_hvmap_put(map);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		{"RT-59: four formats, the same lookups", rt59, NULL, NULL, NULL},
		{"RT-60: descriptors, a base address", rt60, NULL, NULL, NULL},
		{"RT-61: what is no map", rt61, NULL, NULL, NULL},
		{"RT-61: damaged ELF files", rt61_damage, NULL, NULL, NULL},
		{"RT-62: aliases and nesting", rt62, NULL, NULL, NULL},
		{"modules bound and name", modules, NULL, NULL, NULL},
		{"RT-63: a million addresses against a walk", rt63, NULL, NULL, NULL},
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
