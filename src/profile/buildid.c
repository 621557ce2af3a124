/* SPDX-License-Identifier: BSD-2-Clause */
/* The build id of an ELF file of any byte order and instruction set, through libdwelf. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "profile/buildid.h"

int profile_elf_open(const char *path)
{
	struct stat st;
	int fd;

	/* The name comes from a record: it may be a FIFO or a terminal, whose open would wait. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

unsigned profile_build_id(const char *path, uint8_t id[20])
{
	const void *bits;
	ssize_t n = 0;
	Elf *elf;
	int fd;

	fd = profile_elf_open(path);
	if (fd < 0)
		return 0;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf)
		n = dwelf_elf_gnu_build_id(elf, &bits);
	if (n > 20)
		n = 20;
	if (n > 0)
		memcpy(id, bits, (size_t)n);
	elf_end(elf);
	close(fd);
	return n > 0 ? (unsigned)n : 0;
}
