/* SPDX-License-Identifier: BSD-2-Clause */
/* See rtas_linux.h. The kernel keeps no lock between the calls of a sequence (R1-6): ours is a file
 * of our own, for our processes; others are met by beginning again. */
#include "client/rtas_linux.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE	   4096u
#define PAGES_MOST 4096u
#define CELLS	   16u /* arguments and returns that the kernel takes */
#define HEAD	   3u
#define LOCK_MS	   10000

struct door {
	struct quipu_rtas_transport ops;
	struct rtas_linux_place place;
	uint64_t base; /* the RMO user buffer */
	uint32_t pages;
	int mem, pages_fd, turn_fd;
	pthread_mutex_t mutex; /* of used */
	pthread_mutex_t turn;  /* a sequence at a time */
	uint8_t *used;	       /* by threads of this process: locks of files are a process's */
};

static int open_at(const struct door *d, const char *path, int flags)
{
	char full[4096];

	snprintf(full, sizeof(full), "%s%s", d->place.root, path);
	return open(full, flags | O_CLOEXEC | (flags & O_CREAT ? O_NOFOLLOW : 0), 0600);
}

/* The start of a file, NUL behind it; its length or a negative errno. */
static ssize_t read_at(const struct door *d, const char *path, char *buf, size_t len)
{
	int fd = open_at(d, path, O_RDONLY);
	ssize_t n = fd < 0 ? -errno : read(fd, buf, len - 1);

	if (fd < 0)
		return n;
	if (n < 0)
		n = -errno;
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n;
}

/* ---- the call ---- */

static int64_t linux_token(void *arg, const char *function)
{
	char path[128], cell[8];
	uint32_t be;

	if (strchr(function, '/'))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/device-tree/rtas/%s", function);
	/* Linux takes a token from a property of exactly four bytes. */
	if (read_at(arg, path, cell, sizeof(cell)) != sizeof(be))
		return -ENOENT;
	memcpy(&be, cell, sizeof(be));
	return be32toh(be);
}

static int host_call(void *arg, uint32_t *args)
{
	(void)arg;
#if defined(__powerpc__) && defined(SYS_rtas)
	return syscall(SYS_rtas, args) ? -errno : 0;
#else
	(void)args;
	return -ENOSYS;
#endif
}

static int linux_call(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		      size_t size)
{
	uint32_t args[HEAD + CELLS + 2] = {0};
	struct door *d = arg;
	int err;

	(void)ra;
	(void)va;
	(void)size;
	if (ncells < HEAD || ncells > HEAD + CELLS || cells[1] > CELLS || cells[2] > CELLS ||
	    cells[1] + cells[2] + HEAD > ncells)
		return -EINVAL;
	for (unsigned i = 0; i < HEAD + cells[1]; i++)
		args[i] = htobe32(cells[i]);
	err = d->place.call(d->place.arg, args);
	for (unsigned i = HEAD + cells[1]; !err && i < HEAD + cells[1] + cells[2]; i++)
		cells[i] = be32toh(args[i]);
	return err;
}

/* ---- pages of the buffer ---- */

/* Another process's lock on a page is a refusal; no lock file: nobody to agree with. */
static bool lock_page(const struct door *d, uint32_t page, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = page, .l_len = 1};

	return d->pages_fd < 0 || !fcntl(d->pages_fd, F_SETLK, &l);
}

static void give_back(struct door *d, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		lock_page(d, i, F_UNLCK);
		d->used[i] = 0;
	}
}

/* The first run of @n pages that nobody has, or negative. */
static int64_t take_pages(struct door *d, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < d->pages; i++) {
		if (d->used[i] || !lock_page(d, i, F_WRLCK)) {
			give_back(d, i - run, run);
			run = 0;
			continue;
		}
		d->used[i] = 1;
		if (++run == n)
			return i + 1 - n;
	}
	give_back(d, d->pages - run, run);
	return -ENOSPC;
}

static int linux_alloc(void *arg, size_t size, uint64_t *ra, void **va)
{
	struct door *d = arg;
	uint32_t n = (uint32_t)((size + PAGE - 1) / PAGE);
	int64_t first = -ENOSPC;
	int err = 0;

	pthread_mutex_lock(&d->mutex);
	if (n && n <= d->pages)
		first = take_pages(d, n);
	if (first >= 0) {
		*ra = d->base + (uint64_t)first * PAGE;
		*va = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, d->mem,
			   (off_t)*ra);
		err = *va == MAP_FAILED ? -errno : 0;
		if (err)
			give_back(d, (uint32_t)first, n);
	}
	pthread_mutex_unlock(&d->mutex);
	return first < 0 ? (int)first : err;
}

static void linux_free(void *arg, size_t size, uint64_t ra, void *va)
{
	struct door *d = arg;
	uint32_t n = (uint32_t)((size + PAGE - 1) / PAGE);

	munmap(va, (size_t)n * PAGE);
	pthread_mutex_lock(&d->mutex);
	give_back(d, (uint32_t)((ra - d->base) / PAGE), n);
	pthread_mutex_unlock(&d->mutex);
}

/* ---- turns ---- */

/* Waits a while; who cannot have it goes on without and relies on beginning again (R1-6). */
static void linux_lock(void *arg)
{
	const struct timespec pause = {0, 1000000};
	struct door *d = arg;

	pthread_mutex_lock(&d->turn);
	for (unsigned ms = 0; d->turn_fd >= 0 && ms < LOCK_MS; ms++) {
		if (!flock(d->turn_fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return;
		nanosleep(&pause, NULL);
	}
}

static void linux_unlock(void *arg)
{
	struct door *d = arg;

	if (d->turn_fd >= 0)
		flock(d->turn_fd, LOCK_UN);
	pthread_mutex_unlock(&d->turn);
}

/* ---- the transport ---- */

static int open_files(struct door *d)
{
	char line[64];
	ssize_t n = read_at(d, "/proc/powerpc/rtas/rmo_buffer", line, sizeof(line));
	uint64_t size;

	if (n < 0)
		return n == -ENOENT ? -ENODEV : (int)n;
	if (sscanf(line, "%" SCNx64 " %" SCNx64, &d->base, &size) != 2 || d->base % PAGE ||
	    size < PAGE || d->base > UINT32_MAX || size > UINT32_MAX - d->base)
		return -ENODEV;
	d->pages = (uint32_t)(size / PAGE < PAGES_MOST ? size / PAGE : PAGES_MOST);
	d->used = calloc(d->pages, 1);
	if (!d->used)
		return -ENOMEM;
	d->mem = open_at(d, "/dev/mem", O_RDWR);
	if (d->mem < 0)
		return -errno;
	d->pages_fd = open_at(d, "/var/lock/LCK..librtas", O_RDWR | O_CREAT);
	d->turn_fd = open_at(d, "/var/lock/LCK..quipu-perftools", O_RDWR | O_CREAT);
	return 0;
}

int rtas_linux_open(struct quipu_rtas_transport **out, const struct rtas_linux_place *place)
{
	static const struct rtas_linux_place host = {"", host_call, NULL};
	struct door *d;
	int err;

#if !defined(__powerpc__)
	if (!place)
		return -ENOSYS;
#endif
	if (!place && geteuid())
		return -EACCES;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->place = place ? *place : host;
	d->mem = d->pages_fd = d->turn_fd = -1;
	pthread_mutex_init(&d->mutex, NULL);
	pthread_mutex_init(&d->turn, NULL);
	d->ops = (struct quipu_rtas_transport){
		.arg = d,
		.token = linux_token,
		.lock = linux_lock,
		.unlock = linux_unlock,
		.alloc = linux_alloc,
		.free = linux_free,
		.call = linux_call,
	};
	err = open_files(d);
	if (err)
		rtas_linux_close(&d->ops);
	else
		*out = &d->ops;
	return err;
}

void rtas_linux_close(struct quipu_rtas_transport *t)
{
	struct door *d = t ? t->arg : NULL;

	if (!d)
		return;
	for (unsigned i = 0; i < 3; i++) {
		int fd = i == 0 ? d->mem : i == 1 ? d->pages_fd : d->turn_fd;

		if (fd >= 0)
			close(fd);
	}
	pthread_mutex_destroy(&d->mutex);
	pthread_mutex_destroy(&d->turn);
	free(d->used);
	free(d);
}

const char *rtas_linux_strerror(int error)
{
	switch (-error) {
	case ENOSYS:
		return "system call rtas is of Linux on POWER, which this is not; leave the option out to "
		       "ask machine lpar, or name one with -m or a symbol file with --map";
	case EACCES:
	case EPERM: return "RTAS is for root: run it as root of the partition";
	case ENODEV:
		return "no RTAS here: /proc/powerpc/rtas/rmo_buffer is missing or unreadable, so this is no "
		       "partition under a hypervisor";
	default: return strerror(-error);
	}
}
