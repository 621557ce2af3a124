/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbol table of an ELF64 file of either byte order as a map (sheet 4.1; System V ABI gABI
 * chapters 4 and 5; 64-bit PowerPC ELF ABI 1.9 for function descriptors). Read by hand, every
 * offset checked: the library has no ELF reader, and files come from anywhere. Not done: ELF32,
 * compressed sections, relocatable files.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>

#include "platform/lpar/map.h"

struct elf {
	struct map_builder *b;
	const uint8_t *bytes;
	size_t len;
	bool big;
	uint64_t shoff, shnum, shstr;
	uint64_t bias;
	uint64_t opd, opd_size, opd_offset; /* .opd of an ELFv1 file; size 0: none */
	const char *file;
};

static uint16_t half(const struct elf *e, uint64_t at)
{
	uint16_t v = bits_le16(e->bytes + at);

	return e->big ? __builtin_bswap16(v) : v;
}

static uint32_t word32(const struct elf *e, uint64_t at)
{
	return e->big ? bits_be32(e->bytes + at) : bits_le32(e->bytes + at);
}

static uint64_t word64(const struct elf *e, uint64_t at)
{
	return e->big ? bits_be64(e->bytes + at) : bits_le64(e->bytes + at);
}

static bool inside(const struct elf *e, uint64_t at, uint64_t size)
{
	return at <= e->len && size <= e->len - at;
}

/* Fields of the structures, by offset. */
#define EHDR(f) offsetof(Elf64_Ehdr, f)
#define PHDR(f) offsetof(Elf64_Phdr, f)
#define SHDR(f) offsetof(Elf64_Shdr, f)
#define SYM(f)	offsetof(Elf64_Sym, f)

static uint64_t section(const struct elf *e, uint64_t i)
{
	return e->shoff + i * sizeof(Elf64_Shdr);
}

static int read_header(struct elf *e)
{
	uint64_t phnum, phoff;

	if (e->len < sizeof(Elf64_Ehdr) || memcmp(e->bytes, ELFMAG, SELFMAG))
		return map_fail(e->b, 0, "not an ELF file");
	if (e->bytes[EI_CLASS] != ELFCLASS64)
		return map_fail(e->b, 0, "an ELF file of 32 bits; only 64-bit ones are read");
	if (e->bytes[EI_DATA] != ELFDATA2LSB && e->bytes[EI_DATA] != ELFDATA2MSB)
		return map_fail(e->b, 0, "an ELF file of no known byte order");
	e->big = e->bytes[EI_DATA] == ELFDATA2MSB;
	if (half(e, EHDR(e_type)) == ET_REL)
		return map_fail(e->b, 0, "a relocatable file has no addresses yet; link it");
	phnum = half(e, EHDR(e_phnum));
	phoff = word64(e, EHDR(e_phoff));
	e->shoff = word64(e, EHDR(e_shoff));
	e->shnum = half(e, EHDR(e_shnum));
	e->shstr = half(e, EHDR(e_shstrndx));
	if (phnum && (half(e, EHDR(e_phentsize)) != sizeof(Elf64_Phdr) ||
		      !inside(e, phoff, phnum * sizeof(Elf64_Phdr))))
		return map_fail(e->b, 0, "program headers lie outside the file");
	if (!e->shnum || half(e, EHDR(e_shentsize)) != sizeof(Elf64_Shdr) ||
	    !inside(e, e->shoff, e->shnum * sizeof(Elf64_Shdr)))
		return map_fail(e->b, 0,
				"no section headers inside the file: nothing names symbols");
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path && *path ? path : "image";
}

/* The load bias, and a module for each executable segment. */
static int read_segments(struct elf *e, const struct quipu_hvmap_options *o)
{
	uint64_t phoff = word64(e, EHDR(e_phoff)), n = half(e, EHDR(e_phnum)), low = UINT64_MAX;
	const char *name = base_name(o->file);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t p = phoff + i * sizeof(Elf64_Phdr);

		if (word32(e, p + PHDR(p_type)) == PT_LOAD && word64(e, p + PHDR(p_vaddr)) < low)
			low = word64(e, p + PHDR(p_vaddr));
	}
	if (o->has_base && low != UINT64_MAX)
		e->bias = o->base - low;
	for (uint64_t i = 0; i < n && !e->b->given; i++) {
		uint64_t p = phoff + i * sizeof(Elf64_Phdr);
		uint64_t size = word64(e, p + PHDR(p_memsz));
		struct map_module m = {.start = word64(e, p + PHDR(p_vaddr)) + e->bias};

		if (word32(e, p + PHDR(p_type)) != PT_LOAD || !size ||
		    !(word32(e, p + PHDR(p_flags)) & PF_X))
			continue;
		m.last = m.start + (size - 1) < m.start ? UINT64_MAX : m.start + (size - 1);
		if (map_add_module(e->b, &m, name, strlen(name)))
			return -EINVAL;
	}
	return 0;
}

/* A name in a string table, with its length; NULL: not inside. */
static const char *name_at(const struct elf *e, uint64_t strtab, uint32_t at, size_t *len)
{
	uint64_t off, size;
	const char *s, *nul;

	if (strtab >= e->shnum)
		return NULL;
	off = word64(e, section(e, strtab) + SHDR(sh_offset));
	size = word64(e, section(e, strtab) + SHDR(sh_size));
	if (word32(e, section(e, strtab) + SHDR(sh_type)) != SHT_STRTAB || !inside(e, off, size) ||
	    at >= size)
		return NULL;
	s = (const char *)e->bytes + off + at;
	nul = memchr(s, 0, size - at);
	*len = nul ? (size_t)(nul - s) : 0;
	return nul ? s : NULL;
}

static void find_opd(struct elf *e)
{
	for (uint64_t i = 0; i < e->shnum; i++) {
		uint64_t s = section(e, i);
		size_t len;
		const char *name = name_at(e, e->shstr, word32(e, s + SHDR(sh_name)), &len);

		if (!name || strcmp(name, ".opd") || half(e, EHDR(e_machine)) != EM_PPC64)
			continue;
		e->opd = word64(e, s + SHDR(sh_addr));
		e->opd_offset = word64(e, s + SHDR(sh_offset));
		e->opd_size = word64(e, s + SHDR(sh_size));
		if (!inside(e, e->opd_offset, e->opd_size))
			e->opd_size = 0;
	}
}

/* A descriptor's first doubleword is where the function's code begins. */
static uint64_t code_address(const struct elf *e, uint64_t value)
{
	if (e->opd_size < 8 || value < e->opd || value - e->opd > e->opd_size - 8)
		return value;
	return word64(e, e->opd_offset + (value - e->opd));
}

static bool is_code(const struct elf *e, unsigned type, uint16_t shndx)
{
	if (type == STT_FUNC)
		return true;
	if ((type != STT_NOTYPE && type != STT_GNU_IFUNC) || shndx >= e->shnum)
		return false;
	return word64(e, section(e, shndx) + SHDR(sh_flags)) & SHF_EXECINSTR;
}

/* Names are shown to people: only printable ASCII is one. */
static bool printable(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < ' ' || (unsigned char)s[i] >= 0x7f)
			return false;
	return len;
}

static int read_symbol(struct elf *e, uint64_t at, uint64_t strtab)
{
	unsigned type = ELF64_ST_TYPE(e->bytes[at + SYM(st_info)]);
	unsigned bind = ELF64_ST_BIND(e->bytes[at + SYM(st_info)]);
	uint16_t shndx = half(e, at + SYM(st_shndx));
	struct map_raw r = {.module = MAP_NO_MODULE, .func = type == STT_FUNC};
	uint64_t value = word64(e, at + SYM(st_value));
	size_t len = 0;
	const char *name;

	if (shndx == SHN_UNDEF || shndx == SHN_ABS || type == STT_SECTION || type == STT_FILE ||
	    type == STT_TLS)
		return 0;
	name = name_at(e, strtab, word32(e, at + SYM(st_name)), &len);
	r.kept = name && is_code(e, type, shndx) && printable(name, len) && name[0] != '$' &&
		 strncmp(name, ".L", 2) != 0;
	r.bind = bind == STB_LOCAL ? 2 : bind == STB_WEAK ? 1 : 0;
	r.size = r.kept ? word64(e, at + SYM(st_size)) : 0;
	r.addr = (r.kept ? code_address(e, value) : value) + e->bias;
	/* ELFv1: ".f" is the code of f, whose own symbol is in .opd. */
	if (r.kept && e->opd_size && name[0] == '.' && len > 1) {
		name++;
		len--;
	}
	if (r.kept && map_keep(e->b, name, len, &r.name))
		return -EINVAL;
	return map_add(e->b, &r);
}

static int read_symbols(struct elf *e, uint64_t table)
{
	uint64_t s = section(e, table), off = word64(e, s + SHDR(sh_offset)),
		 size = word64(e, s + SHDR(sh_size)), strtab = word32(e, s + SHDR(sh_link));

	if (word64(e, s + SHDR(sh_entsize)) != sizeof(Elf64_Sym) || !inside(e, off, size))
		return map_fail(e->b, 0, "its symbol table lies outside the file");
	for (uint64_t i = 1; i < size / sizeof(Elf64_Sym); i++)
		if (read_symbol(e, off + i * sizeof(Elf64_Sym), strtab))
			return -EINVAL;
	return 0;
}

static uint64_t find_table(const struct elf *e, uint32_t type)
{
	for (uint64_t i = 0; i < e->shnum; i++)
		if (word32(e, section(e, i) + SHDR(sh_type)) == type)
			return i;
	return e->shnum;
}

int map_read_elf(struct map_builder *b, const uint8_t *bytes, size_t len,
		 const struct quipu_hvmap_options *o)
{
	struct elf e = {.b = b, .bytes = bytes, .len = len};
	uint64_t table;
	int err = read_header(&e);

	if (!err)
		err = read_segments(&e, o);
	if (err)
		return err;
	find_opd(&e);
	table = find_table(&e, SHT_SYMTAB);
	if (table == e.shnum)
		table = find_table(&e, SHT_DYNSYM);
	if (table == e.shnum)
		return map_fail(b, 0, "it has no symbol table (stripped?)");
	return read_symbols(&e, table);
}
