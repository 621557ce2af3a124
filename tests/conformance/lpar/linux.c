/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport of a real partition (sheet 2.5, 5.1): what the kernel is told and where work areas
 * lie. No such partition is here, so files in a folder of the test's stand for /proc and /dev/mem,
 * and the kernel is a function that checks as rtas(2) of Linux 6.1 does, before it lets the
 * modelled firmware answer.
 */
#include "bed.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/rtas_linux.h"

#define RMO	 UINT64_C(0x0e000000)
#define RMO_SIZE 0x10000u

struct kernel {
	struct bed bed;
	char root[64];
	int mem;
	unsigned calls;
	struct rtas_linux_place place;
};

static void put(const struct kernel *k, const char *path, const void *bytes, size_t len)
{
	char full[200];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", k->root, path);
	for (char *at = full + strlen(k->root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		assert_true(!mkdir(full, 0700) || errno == EEXIST);
		*at = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* The table row of 2.5: buffer args[2], size args[3]; the high half is not looked at. */
static int kernel_rtas(void *arg, uint32_t *args)
{
	struct kernel *k = arg;
	uint32_t nargs = be32toh(args[1]), nret = be32toh(args[2]);
	uint32_t base = be32toh(args[5]), size = be32toh(args[6]), end = base + size - 1;
	uint8_t work[RMO_SIZE];

	k->calls++;
	if (nargs > 15 || nret > 16 || nargs + nret > 16 || be32toh(args[0]) != TOKEN)
		return -EINVAL;
	if (base < RMO || end >= RMO + RMO_SIZE || base > end)
		return -EINVAL;
	assert_int_equal(pread(k->mem, work, size, base), size);
	assert_int_equal(quipu_partition_write(k->bed.p, base, work, size), 0);
	assert_int_equal(quipu_partition_write(k->bed.p, ARGS, args, 4 * (3 + nargs + nret)), 0);
	assert_int_equal(quipu_rtas_call(k->bed.p, ARGS), 0);
	assert_int_equal(quipu_partition_read(k->bed.p, ARGS, args, 4 * (3 + nargs + nret)), 0);
	assert_int_equal(quipu_partition_read(k->bed.p, base, work, size), 0);
	assert_int_equal(pwrite(k->mem, work, size, base), size);
	return 0;
}

static int setup(void **state)
{
	static const char rmo[] = "000000000e000000 10000\n";
	struct kernel *k = calloc(1, sizeof(*k));
	const uint32_t token = htobe32(TOKEN);
	char path[200];

	assert_non_null(k);
	bed_open(&k->bed);
	strcpy(k->root, "/tmp/quipu-lpar-XXXXXX");
	assert_non_null(mkdtemp(k->root));
	put(k, "/proc/powerpc/rtas/rmo_buffer", rmo, sizeof(rmo) - 1);
	put(k, "/proc/device-tree/rtas/ibm,lpar-perftools", &token, 4);
	put(k, "/dev/mem", "", 0);
	put(k, "/var/lock/other", "", 0);
	snprintf(path, sizeof(path), "%s/dev/mem", k->root);
	k->mem = open(path, O_RDWR | O_CLOEXEC);
	assert_true(k->mem >= 0);
	assert_int_equal(ftruncate(k->mem, (off_t)(RMO + RMO_SIZE)), 0);
	k->place = (struct rtas_linux_place){k->root, kernel_rtas, k};
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	static const char *const paths[] = {"/proc/powerpc/rtas/rmo_buffer",
					    "/proc/device-tree/rtas/ibm,lpar-perftools",
					    "/dev/mem",
					    "/var/lock/other",
					    "/var/lock/LCK..librtas",
					    "/var/lock/LCK..quipu-perftools",
					    "/proc/powerpc/rtas",
					    "/proc/powerpc",
					    "/proc/device-tree/rtas",
					    "/proc/device-tree",
					    "/proc",
					    "/dev",
					    "/var/lock",
					    "/var",
					    ""};
	struct kernel *k = *state;
	char path[200];

	close(k->mem);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", k->root, paths[i]);
		remove(path);
	}
	assert_int_not_equal(access(k->root, F_OK), 0); /* nothing else was left */
	bed_stop(&k->bed);
	free(k);
	return 0;
}

/* Names through the whole way: big-endian cells, a work area in /dev/mem, busy, -3 and -9002. */
static void names(void **state)
{
	struct kernel *k = *state;
	struct quipu_rtas_transport *t;
	struct quipu_hvsym_result r;
	struct quipu_hvsym *h;

	assert_int_equal(rtas_linux_open(&t, &k->place), 0);
	assert_int_equal(t->token(t->arg, QUIPU_LPAR_PERFTOOLS), TOKEN);
	assert_int_equal(t->token(t->arg, "ibm,other"), -ENOENT);
	assert_int_equal(t->token(t->arg, "../rtas/ibm,lpar-perftools"), -ENOENT);
	quipu_partition_plan(k->bed.p, (const int32_t[]){-2, 9900}, 2, 1);
	assert_int_equal(quipu_hvsym_open(&h, t, NULL), 0);
	assert_int_equal(quipu_hvsym_resolve(h, ENTER, &r), 0);
	assert_string_equal(r.name, "qhv_h_enter");
	assert_int_equal(r.offset, 0x40);
	assert_int_equal(r.calls, 3);
	assert_int_equal(k->calls, 3);
	assert_int_equal(quipu_hvsym_resolve(h, 0x1234, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_INVALID);
	quipu_partition_authority(k->bed.p, false);
	assert_int_equal(quipu_hvsym_resolve(h, PREEMPT, &r), -EACCES);
	assert_int_equal(r.status, -9002);
	quipu_hvsym_close(h);
	rtas_linux_close(t);
}

/* Pages of the buffer: ours are locked as librtas locks them, others' are left alone. */
static void pages(void **state)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
	struct kernel *k = *state;
	struct quipu_rtas_transport *t;
	uint64_t ra[16];
	void *va[16];
	char path[200];
	int go[2], status;
	pid_t pid;

	assert_int_equal(rtas_linux_open(&t, &k->place), 0);
	assert_int_equal(pipe(go), 0);
	snprintf(path, sizeof(path), "%s/var/lock/LCK..librtas", k->root);
	pid = fork();
	if (!pid) { /* another user of the buffer: it has page 1, and holds it until we are done */
		int fd = open(path, O_RDWR);
		bool have = fd >= 0 && !fcntl(fd, F_SETLK, &l);

		close(go[1]);
		kill(getpid(), SIGSTOP);
		_exit(read(go[0], path, 1) == 0 && have ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid); /* it has it now */
	assert_true(WIFSTOPPED(status));
	close(go[0]);
	kill(pid, SIGCONT);
	assert_int_equal(t->alloc(t->arg, 4096, &ra[0], &va[0]), 0);
	assert_true(ra[0] == RMO);
	assert_int_equal(t->alloc(t->arg, 8192, &ra[1], &va[1]), 0);
	assert_true(ra[1] == RMO + 0x2000); /* page 1 is taken */
	assert_int_equal(t->alloc(t->arg, RMO_SIZE, &ra[2], &va[2]), -ENOSPC);
	assert_int_equal(t->alloc(t->arg, 13 * 4096, &ra[2], &va[2]), -ENOSPC);
	assert_int_equal(t->alloc(t->arg, 12 * 4096, &ra[2], &va[2]), 0); /* all the rest */
	assert_true(ra[2] == RMO + 0x4000);
	assert_int_equal(t->alloc(t->arg, 1, &ra[3], &va[3]), -ENOSPC);
	assert_int_equal(t->alloc(t->arg, 0, &ra[3], &va[3]), -ENOSPC);
	/* what is written there is memory of the partition */
	memcpy(va[1], "\1\2\3", 3);
	assert_int_equal(pread(k->mem, path, 3, (off_t)ra[1]), 3);
	assert_memory_equal(path, "\1\2\3", 3);
	t->free(t->arg, 8192, ra[1], va[1]);
	assert_int_equal(t->alloc(t->arg, 4096, &ra[1], &va[1]), 0);
	assert_true(ra[1] == RMO + 0x2000);
	t->free(t->arg, 4096, ra[0], va[0]);
	t->free(t->arg, 4096, ra[1], va[1]);
	t->free(t->arg, 12 * 4096, ra[2], va[2]);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(t->alloc(t->arg, RMO_SIZE, &ra[0], &va[0]), 0);
	t->free(t->arg, RMO_SIZE, ra[0], va[0]);
	rtas_linux_close(t);
}

/* Calls that the kernel would refuse, and hosts that have no RTAS. */
static void refusals(void **state)
{
	static const char *const lines[] = {"",
					    "nonsense\n",
					    "000000000e000800 10000\n",
					    "000000000e000000 0\n",
					    "00000000fffff000 10000\n",
					    "1000000000000000 10000\n"};
	struct kernel *k = *state;
	struct quipu_rtas_transport *t;
	uint32_t cells[10] = {TOKEN, 5, 2, 1, 0, (uint32_t)RMO, 0, 1};

	assert_int_equal(rtas_linux_open(&t, &k->place), 0);
	assert_int_equal(t->call(t->arg, cells, 10, RMO, NULL, 0), -EINVAL); /* size 0 */
	assert_int_equal(k->calls, 1);
	cells[1] = 17;
	assert_int_equal(t->call(t->arg, cells, 10, RMO, NULL, 0), -EINVAL);
	cells[1] = 5;
	cells[2] = UINT32_MAX;
	assert_int_equal(t->call(t->arg, cells, 10, RMO, NULL, 0), -EINVAL);
	assert_int_equal(k->calls, 1);
	rtas_linux_close(t);
	put(k, "/proc/device-tree/rtas/ibm,lpar-perftools", "12345", 5); /* not of four bytes */
	assert_int_equal(rtas_linux_open(&t, &k->place), 0);
	assert_int_equal(t->token(t->arg, QUIPU_LPAR_PERFTOOLS), -ENOENT);
	rtas_linux_close(t);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		put(k, "/proc/powerpc/rtas/rmo_buffer", lines[i], strlen(lines[i]));
		assert_int_equal(rtas_linux_open(&t, &k->place), -ENODEV);
	}
	k->place.root = "/nowhere";
	assert_int_equal(rtas_linux_open(&t, &k->place), -ENODEV);
	assert_true(strlen(rtas_linux_strerror(-ENODEV)) > 20);
#if !defined(__powerpc__)
	assert_int_equal(rtas_linux_open(&t, NULL), -ENOSYS);
#endif
	rtas_linux_close(NULL);
}

#define CASE(name, fn)                                                                             \
	{                                                                                          \
		name, fn, setup, teardown, NULL                                                    \
	}

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE("rtas(2): names, delays, no authority", names),
		CASE("rtas(2): pages of the RMO buffer are shared with librtas", pages),
		CASE("rtas(2): what is refused, and where there is none", refusals),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
