/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is mapped where in the guest, told to the machine as records: the program and its
 * interpreter at start, then whatever the guest maps to be executed. Engine sheet 10.7.
 *
 * Addresses in records are the guest's. In the host's map guest code is not executable, so the
 * host's x bits say nothing; flags come from the ELF headers and from the calls.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "plugin.h"
#include "plugin_abi.h"

#define MOST_SEGMENTS 64

/* ---- guest memory ---- */

long maps_read_guest(uint64_t guest, void *buf, unsigned long len)
{
	struct iovec local = {buf, len};
	struct iovec remote = {(void *)(uintptr_t)(guest + engine.guest_base), len};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

/* A string may end right before unmapped memory: read to the end of a page at a time. */
long maps_read_string(uint64_t guest, char *buf, unsigned long len)
{
	unsigned long got = 0;

	while (got < len - 1) {
		unsigned long part = 4096 - ((guest + got) & 4095);
		char *nul;
		long n;

		if (part > len - 1 - got)
			part = len - 1 - got;
		n = maps_read_guest(guest + got, buf + got, part);
		if (n <= 0)
			return -1;
		nul = memchr(buf + got, 0, (size_t)n);
		if (nul)
			return nul - buf;
		got += (unsigned long)n;
	}
	buf[got] = 0;
	return (long)got;
}

/* ---- records ---- */

struct mapping {
	uint64_t addr, len, pgoff, ino;
	uint32_t maj, min, prot, flags;
	char path[SEG_PATH];
};

static void put_mapping(struct seg_vcpu *v, const struct mapping *m)
{
	uint32_t size =
		(uint32_t)((sizeof(struct seg_mmap) + strlen(m->path) + 1 + 7) & ~(size_t)7);
	struct seg_mmap *rec = ring_reserve(v, size);

	if (!rec)
		return;
	memset(rec, 0, size);
	rec->head.type = SEG_REC_MMAP;
	rec->head.size = size;
	fold_values(v, rec->head.lane);
	rec->addr = m->addr;
	rec->len = m->len;
	rec->pgoff = m->pgoff;
	rec->ino = m->ino;
	rec->maj = m->maj;
	rec->min = m->min;
	rec->prot = m->prot;
	rec->flags = m->flags;
	strcpy(rec->path, m->path);
	ring_commit(v, size);
}

static void put_comm(struct seg_vcpu *v, const char *name)
{
	struct seg_comm *rec = ring_reserve(v, sizeof(*rec));

	if (!rec)
		return;
	memset(rec, 0, sizeof(*rec));
	rec->head.type = SEG_REC_COMM;
	rec->head.size = sizeof(*rec);
	fold_values(v, rec->head.lane);
	memcpy(rec->comm, name, strnlen(name, sizeof(rec->comm) - 1));
	ring_commit(v, sizeof(*rec));
}

void maps_comm(struct seg_vcpu *v, const char *name)
{
	fold_room(v, sizeof(struct seg_comm));
	put_comm(v, name);
}

/* The true path of an open file: what the guest asked for may lie below a sysroot. */
static bool describe_file(int fd, struct mapping *m)
{
	char link[32];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, m->path, sizeof(m->path) - 1);
	if (n < 0 || fstat(fd, &st))
		return false;
	m->path[n] = 0;
	m->ino = st.st_ino;
	m->maj = major(st.st_dev);
	m->min = minor(st.st_dev);
	return true;
}

void maps_mmap(struct seg_vcpu *v, uint64_t addr, uint64_t len, uint32_t prot, uint32_t flags,
	       int fd, uint64_t offset)
{
	struct mapping m = {.addr = addr, .prot = prot, .flags = flags & MAP_TYPE};
	uint64_t page = engine.isa->page;

	m.len = (len + page - 1) & ~(page - 1);
	m.pgoff = fd >= 0 ? offset : 0;
	if (fd < 0 || !describe_file(fd, &m))
		strcpy(m.path, "//anon");
	fold_room(v, sizeof(struct seg_mmap) + SEG_PATH);
	put_mapping(v, &m);
}

/* ---- the host's map of this process ---- */

struct map_line {
	uint64_t start, end, pgoff, ino;
	unsigned maj, min;
	char mode[5];
	char path[SEG_PATH];
};

/* Calls @look for each line until it returns true. No stdio: its buffer would be the guest's heap's
 * neighbour. */
static bool each_map_line(bool (*look)(const struct map_line *, void *), void *arg)
{
	char buf[4096 + SEG_PATH];
	size_t have = 0;
	bool found = false;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found) {
		ssize_t n = read(fd, buf + have, sizeof(buf) - 1 - have);
		char *line = buf, *end;

		if (n <= 0)
			break;
		have += (size_t)n;
		buf[have] = 0;
		while (!found && (end = strchr(line, '\n'))) {
			struct map_line l = {0};

			*end = 0;
			if (sscanf(line,
				   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64
				   " %511[^\n]",
				   &l.start, &l.end, l.mode, &l.pgoff, &l.maj, &l.min, &l.ino,
				   l.path) >= 7)
				found = look(&l, arg);
			line = end + 1;
		}
		have = (size_t)(buf + have - line);
		if (have == sizeof(buf) - 1) /* a line longer than any path we keep */
			have = 0;
		memmove(buf, line, have);
	}
	close(fd);
	return found;
}

static bool at_address(const struct map_line *l, void *arg)
{
	struct mapping *m = arg;
	uint64_t host = m->addr + engine.guest_base;

	if (host < l->start || host >= l->end)
		return false;
	m->ino = l->ino;
	m->maj = l->maj;
	m->min = l->min;
	m->pgoff = l->pgoff + (host - l->start);
	strcpy(m->path, l->ino ? l->path : "//anon");
	return true;
}

void maps_mprotect(struct seg_vcpu *v, uint64_t addr, uint64_t len, uint32_t prot)
{
	struct mapping m = {.addr = addr, .prot = prot, .flags = MAP_PRIVATE};
	uint64_t page = engine.isa->page;

	m.len = (len + page - 1) & ~(page - 1);
	if (!each_map_line(at_address, &m))
		return;
	if (!m.ino)
		m.pgoff = 0;
	fold_room(v, sizeof(struct seg_mmap) + SEG_PATH);
	put_mapping(v, &m);
}

/* ---- the program and its interpreter ---- */

struct image {
	int fd;
	Elf64_Phdr ph[MOST_SEGMENTS];
	unsigned n;
};

static void swap_segment(Elf64_Phdr *ph)
{
	ph->p_type = __builtin_bswap32(ph->p_type);
	ph->p_flags = __builtin_bswap32(ph->p_flags);
	ph->p_offset = __builtin_bswap64(ph->p_offset);
	ph->p_vaddr = __builtin_bswap64(ph->p_vaddr);
	ph->p_filesz = __builtin_bswap64(ph->p_filesz);
	ph->p_memsz = __builtin_bswap64(ph->p_memsz);
}

static bool image_open(struct image *im, const char *path)
{
	bool swap = engine.isa->traits & ISA_BIG_ENDIAN;
	Elf64_Ehdr eh;

	im->n = 0;
	im->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (im->fd < 0)
		return false;
	if (pread(im->fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != (swap ? ELFDATA2MSB : ELFDATA2LSB))
		return true;
	if (swap) {
		eh.e_phentsize = __builtin_bswap16(eh.e_phentsize);
		eh.e_phnum = __builtin_bswap16(eh.e_phnum);
		eh.e_phoff = __builtin_bswap64(eh.e_phoff);
	}
	if (eh.e_phentsize == sizeof(im->ph[0]) && eh.e_phnum <= MOST_SEGMENTS) {
		size_t size = eh.e_phnum * sizeof(im->ph[0]);

		if (pread(im->fd, im->ph, size, (off_t)eh.e_phoff) == (ssize_t)size)
			im->n = eh.e_phnum;
	}
	for (unsigned i = 0; swap && i < im->n; i++)
		swap_segment(&im->ph[i]);
	return true;
}

static uint64_t page_floor(uint64_t a)
{
	return a & ~(uint64_t)(engine.isa->page - 1);
}

static bool executable(const Elf64_Phdr *ph)
{
	return ph->p_type == PT_LOAD && ph->p_flags & PF_X;
}

/* The lowest p_vaddr of the loaded segments with all of @flags. */
static uint64_t lowest_vaddr(const struct image *im, uint32_t flags)
{
	uint64_t low = UINT64_MAX;

	for (unsigned i = 0; i < im->n; i++) {
		if (im->ph[i].p_type == PT_LOAD && (im->ph[i].p_flags & flags) == flags &&
		    im->ph[i].p_vaddr < low)
			low = im->ph[i].p_vaddr;
	}
	return low;
}

static void put_image(struct seg_vcpu *v, const struct image *im, uint64_t bias)
{
	struct mapping m = {.flags = MAP_PRIVATE};

	if (!describe_file(im->fd, &m))
		return;
	for (unsigned i = 0; i < im->n; i++) {
		const Elf64_Phdr *ph = &im->ph[i];

		if (!executable(ph))
			continue;
		m.addr = page_floor(bias + ph->p_vaddr);
		m.len = page_floor(bias + ph->p_vaddr + ph->p_memsz + engine.isa->page - 1) -
			m.addr;
		m.pgoff = page_floor(ph->p_offset);
		m.prot = (ph->p_flags & PF_R ? PROT_READ : 0u) |
			 (ph->p_flags & PF_W ? PROT_WRITE : 0u) | PROT_EXEC;
		put_mapping(v, &m);
	}
}

struct file_base {
	const char *path;
	uint64_t host;
};

/*
 * By path: device numbers in maps and of stat differ on some file systems. QEMU 10 keeps the whole
 * file in memory beside it, writable, as text seldom is.
 */
static bool is_file(const struct map_line *l, void *arg)
{
	struct file_base *f = arg;

	if (l->pgoff || strcmp(l->path, f->path))
		return false;
	if (!f->host || l->mode[1] != 'w')
		f->host = l->start;
	return l->mode[1] != 'w';
}

/* Opened where QEMU looks: below the sysroot first. */
static bool interpreter_open(const struct image *program, struct image *im)
{
	const char *prefix = getenv("QEMU_LD_PREFIX");
	const char *const roots[] = {engine.head->sysroot, prefix ? prefix : "", ""};
	char name[256] = "", path[SEG_PATH + sizeof(name)];

	for (unsigned i = 0; i < program->n; i++) {
		const Elf64_Phdr *ph = &program->ph[i];

		if (ph->p_type == PT_INTERP && ph->p_filesz < sizeof(name) &&
		    pread(program->fd, name, ph->p_filesz, (off_t)ph->p_offset) < 0)
			return false;
	}
	for (size_t i = 0; name[0] && i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(path, sizeof(path), "%.*s%s", (int)SEG_PATH - 1, roots[i], name);
		if (image_open(im, path))
			return true;
	}
	return false;
}

/* Where an image that lies in the host's map was put, less where its file asks to be. False: it is
 * not there. */
static bool image_bias(const struct image *im, uint64_t *bias)
{
	struct mapping m;
	struct file_base f = {.path = m.path};

	if (!describe_file(im->fd, &m))
		return false;
	each_map_line(is_file, &f);
	if (!f.host)
		return false;
	*bias = f.host - engine.guest_base - page_floor(lowest_vaddr(im, 0));
	return true;
}

static void put_interpreter(struct seg_vcpu *v, const struct image *program)
{
	struct image im;
	uint64_t bias;

	if (!interpreter_open(program, &im))
		return;
	if (image_bias(&im, &bias))
		put_image(v, &im, bias);
	close(im.fd);
}

/* Options of QEMU's user emulation that have no word behind them. */
static bool stands_alone(const char *option)
{
	static const char *const names[] = {"singlestep", "one-insn-per-tb", "strace", "perfmap",
					    "jitdump"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(option, names[i]))
			return true;
	}
	return false;
}

/* The program among the words of QEMU's own command line: the first that is neither an option nor
 * an option's. */
static bool path_from_command_line(char *path, size_t size)
{
	char words[16384];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof(words) - 1);
	char *word = words;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	words[n] = 0;
	for (word += strlen(word) + 1; word < words + n; word += strlen(word) + 1) {
		const char *option = word + 1;

		if (*word != '-')
			return (size_t)snprintf(path, size, "%s", word) < size;
		if (!stands_alone(*option == '-' ? option + 1 : option))
			word += strlen(word) + 1;
	}
	return false;
}

/* The program's path, into @path: by QEMU's word, else by its command line. */
static bool program_path(char *path, size_t size)
{
	if (!qemu_plugin_path_to_binary)
		return path_from_command_line(path, size);

	const char *said = qemu_plugin_path_to_binary();

	return said && (size_t)snprintf(path, size, "%s", said) < size;
}

static uint64_t program_bias(const struct image *im)
{
	uint64_t bias = 0;

	if (qemu_plugin_start_code)
		return qemu_plugin_start_code() - lowest_vaddr(im, PF_X);
	image_bias(im, &bias);
	return bias;
}

void maps_program(struct seg_vcpu *v)
{
	char path[SEG_PATH];
	const char *slash;
	struct mapping m;
	struct image im;

	if (!program_path(path, sizeof(path)) || !image_open(&im, path))
		return;
	if (describe_file(im.fd, &m))
		memcpy(engine.program, m.path, sizeof(engine.program));
	if (engine.proc)
		memcpy(engine.proc->path, engine.program, sizeof(engine.program));
	put_image(v, &im, program_bias(&im));
	put_interpreter(v, &im);
	close(im.fd);
	slash = strrchr(path, '/');
	if (engine.proc)
		snprintf(engine.proc->comm, sizeof(engine.proc->comm), "%.*s",
			 (int)sizeof(engine.proc->comm) - 1, slash ? slash + 1 : path);
	put_comm(v, slash ? slash + 1 : path);
}
