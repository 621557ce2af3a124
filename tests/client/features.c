/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs that a machine starts now will carry: features PID prints the features in the
 * header of the segment that machine PID shares with its engine (src/engine/segment.h).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/segment.h"

int main(int argc, char **argv)
{
	char folder[64], path[512], name[64];
	DIR *d;

	if (argc < 2)
		return 2;
	snprintf(folder, sizeof(folder), "/proc/%s/fd", argv[1]);
	d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		uint32_t features;
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		n = readlink(path, name, sizeof(name) - 1);
		name[n < 0 ? 0 : n] = 0;
		if (strcmp(name, "/memfd:quipu (deleted)"))
			continue;
		fd = open(path, O_RDONLY);
		if (pread(fd, &features, sizeof(features), offsetof(struct seg_header, features)) ==
		    sizeof(features))
			printf("%u\n", features);
	}
	return 0;
}
