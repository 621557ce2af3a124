/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ELF header of a program, read with suspicion: every offset and size is checked against the
 * file before a guest or QEMU sees it. ELF-64 object file format; both byte orders. Symbols are not
 * read here (src/profile).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/elf.h"

static const struct {
	unsigned machine;
	const char *name;
} machines[] = {
	{EM_386, "x86 (32 bits)"},
	{EM_X86_64, "x86-64"},
	{EM_RISCV, "RISC-V"},
	{EM_PPC64, "POWER (64 bits)"},
	{EM_PPC, "POWER (32 bits)"},
	{EM_SPARCV9, "SPARC (64 bits)"},
	{EM_SPARC, "SPARC (32 bits)"},
	{EM_AARCH64, "AArch64"},
	{EM_ARM, "ARM (32 bits)"},
	{EM_S390, "s390"},
	{EM_MIPS, "MIPS"},
};

const char *elf_machine_name(unsigned machine)
{
	static _Thread_local char other[32];

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			return machines[i].name;
	snprintf(other, sizeof(other), "ELF machine %u", machine);
	return other;
}

struct reader {
	int fd;
	uint64_t size;
	bool swap;
};

static uint16_t get16(const struct reader *r, uint16_t v)
{
	return r->swap ? __builtin_bswap16(v) : v;
}

static uint32_t get32(const struct reader *r, uint32_t v)
{
	return r->swap ? __builtin_bswap32(v) : v;
}

static uint64_t get64(const struct reader *r, uint64_t v)
{
	return r->swap ? __builtin_bswap64(v) : v;
}

static int read_at(const struct reader *r, void *buf, size_t len, uint64_t at)
{
	if (at > r->size || len > r->size - at)
		return -EBADMSG;
	return pread(r->fd, buf, len, (off_t)at) == (ssize_t)len ? 0 : -EIO;
}

static int say(char *why, size_t len, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int say(char *why, size_t len, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return code;
}

static int read_header(struct reader *r, Elf64_Ehdr *h, struct elf_facts *out, const char *path,
		       char *why, size_t n)
{
	unsigned char ident[EI_NIDENT];
	bool little;

	if (read_at(r, ident, sizeof(ident), 0) || memcmp(ident, ELFMAG, SELFMAG)) {
		bool script = !read_at(r, ident, 2, 0) && ident[0] == '#' && ident[1] == '!';

		return say(why, n, -ENOEXEC, "%s is not an ELF program%s", path,
			   script ? " but a script; name its interpreter as the program" : "");
	}
	if (read_at(r, h, sizeof(*h), 0))
		return say(why, n, -EBADMSG,
			   "%s is truncated: %llu bytes are less than an ELF header", path,
			   (unsigned long long)r->size);
	little = ident[EI_DATA] == ELFDATA2LSB;
	r->swap = little != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	out->big_endian = !little;
	out->machine = get16(r, h->e_machine);
	if (ident[EI_CLASS] != ELFCLASS64)
		return say(why, n, -ENOEXEC,
			   "%s is a 32-bit program for %s; only 64-bit programs run here", path,
			   elf_machine_name(out->machine));
	if (get16(r, h->e_type) != ET_EXEC && get16(r, h->e_type) != ET_DYN)
		return say(why, n, -ENOEXEC,
			   "%s is an ELF file but not a program (object file or core?)", path);
	out->pie = get16(r, h->e_type) == ET_DYN;
	return 0;
}

static int read_interp(const struct reader *r, uint64_t at, uint64_t len, struct elf_facts *out)
{
	if (!len || len > sizeof(out->interp))
		return -EBADMSG;
	if (read_at(r, out->interp, len, at))
		return -EBADMSG;
	out->interp[len - 1] = 0;
	return 0;
}

static int read_segments(const struct reader *r, const Elf64_Ehdr *h, struct elf_facts *out,
			 const char *path, char *why, size_t n)
{
	uint64_t off = get64(r, h->e_phoff);
	unsigned count = get16(r, h->e_phnum), loads = 0;

	if (get16(r, h->e_phentsize) != sizeof(Elf64_Phdr) || !count)
		return say(why, n, -ENOEXEC, "%s has no program headers, so it cannot be run",
			   path);
	for (unsigned i = 0; i < count; i++) {
		Elf64_Phdr p;
		uint64_t at, len;

		if (read_at(r, &p, sizeof(p), off + (uint64_t)i * sizeof(p)))
			return say(why, n, -EBADMSG,
				   "%s is truncated: program header %u lies outside the file", path,
				   i);
		at = get64(r, p.p_offset);
		len = get64(r, p.p_filesz);
		if (get32(r, p.p_type) == PT_LOAD) {
			loads++;
			if (at > r->size || len > r->size - at)
				return say(
					why, n, -EBADMSG,
					"%s is truncated: segment %u ends at byte %llu, the file has %llu",
					path, i, (unsigned long long)(at + len),
					(unsigned long long)r->size);
		}
		if (get32(r, p.p_type) == PT_INTERP && read_interp(r, at, len, out))
			return say(why, n, -EBADMSG,
				   "%s is damaged: its interpreter's name cannot be read", path);
	}
	if (!loads)
		return say(why, n, -ENOEXEC, "%s has nothing to load, so it cannot be run", path);
	return 0;
}

/* A pipe that nobody writes to is not waited for. */
int elf_read(const char *path, struct elf_facts *out, char *why, size_t why_len)
{
	struct reader r = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	struct stat st;
	Elf64_Ehdr h;
	int rc;

	memset(out, 0, sizeof(*out));
	if (r.fd < 0)
		return say(why, why_len, -errno, "%s: %s", path, strerror(errno));
	rc = fstat(r.fd, &st) ? say(why, why_len, -errno, "%s: %s", path, strerror(errno)) : 0;
	r.size = rc ? 0 : (uint64_t)st.st_size;
	if (!rc && !S_ISREG(st.st_mode))
		rc = say(why, why_len, -EACCES, "%s is %s, not a program", path,
			 S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
	if (!rc)
		rc = read_header(&r, &h, out, path, why, why_len);
	if (!rc)
		rc = read_segments(&r, &h, out, path, why, why_len);
	close(r.fd);
	return rc;
}
