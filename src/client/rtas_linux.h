/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RTAS of the partition that this Linux is: rtas(2), with work areas in the RMO user buffer. Sheet
 * 2.5; who else uses that buffer (librtas) is agreed with as it agrees with itself, by a byte of a
 * lock file for each page.
 */
#ifndef QUIPU_CLIENT_RTAS_LINUX_H
#define QUIPU_CLIENT_RTAS_LINUX_H

#include <quipu/lpar.h>

/* Where the kernel is: elsewhere in tests. */
struct rtas_linux_place {
	const char *root; /* before /proc, /dev, /var */
	/* rtas(2): @args as the kernel takes them. 0, or a negative errno. */
	int (*call)(void *arg, uint32_t *args);
	void *arg;
};

/*
 * rtas_linux_open - the transport; @place NULL: this host. 0; -ENOSYS: no Linux on POWER;
 *	-EACCES: needs root; -ENODEV: no RTAS there; or the errno of a file. rtas_linux_close - NULL
 * is fine. rtas_linux_strerror - what the error of rtas_linux_open means and what to do.
 */
int rtas_linux_open(struct quipu_rtas_transport **, const struct rtas_linux_place *);
void rtas_linux_close(struct quipu_rtas_transport *);
const char *rtas_linux_strerror(int error);

#endif
