/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUIPU_PROFILE_BUILDID_H
#define QUIPU_PROFILE_BUILDID_H

#include <stdint.h>

/*
 * Open an ELF file that some record named: a regular file, or not at all. A descriptor or -errno.
 */
int profile_elf_open(const char *path);
/*
 * profile_build_id - the GNU build id of an ELF file: its length, at most 20; 0 when it has none or
 *	cannot be read.
 */
unsigned profile_build_id(const char *path, uint8_t id[20]);

#endif
