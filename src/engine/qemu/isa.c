/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instruction sets that the engine knows, each with the system calls that it must notice (Linux's numbers:
 * asm-generic/unistd.h for riscv64). x86_64, ppc64le and sparc64 join as rows.
 */
#include "decode.h"

#include <string.h>

#include <quipu/bits.h>

static const struct call_row riscv64_calls[] = {
	{ 222, CALL_MMAP },
	{ 226, CALL_MPROTECT },
	{ 167, CALL_PRCTL },
	{ 220, CALL_CLONE },
	{ 221, CALL_EXECVE },
	{ 93, CALL_EXIT },
	{ 94, CALL_EXIT }, /* exit_group */
	{ 134, CALL_SIGACTION },
	{ 139, CALL_SIGRETURN },
	{ 56, CALL_OPENAT },
	{ 101, CALL_NANOSLEEP },
	{ 115, CALL_CLOCK_NANOSLEEP },
	{ 73, CALL_PPOLL },
	{ 72, CALL_PSELECT6 },
	{ 22, CALL_EPOLL_PWAIT },
	{ 98, CALL_FUTEX },
	{ 137, CALL_SIGTIMEDWAIT },
	{ 113, CALL_TIME }, /* clock_gettime */
	{ 169, CALL_TIME }, /* gettimeofday */
	{ 153, CALL_TIME }, /* times */
	{ 165, CALL_TIME }, /* getrusage */
	{ 179, CALL_TIME }, /* sysinfo */
	{ 86, CALL_TIME },  /* timerfd_settime */
	{ 103, CALL_TIME }, /* setitimer */
	{ 110, CALL_TIME }, /* timer_settime */
	{ 278, CALL_RANDOM },
	{ 172, CALL_PID },
	{ 173, CALL_PID }, /* getppid */
	{ 178, CALL_PID }, /* gettid */
	{ 198, CALL_NETWORK }, /* socket */
};

static const struct isa isas[] = {
	{ "riscv64", 243, 4096, decode_riscv64, riscv64_calls, sizeof(riscv64_calls) / sizeof(riscv64_calls[0]) },
};

const struct isa *isa_find(const char *target_name)
{
	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++) {
		if (!strcmp(isas[i].name, target_name))
			return &isas[i];
	}
	return NULL;
}

enum call isa_call(const struct isa *isa, int64_t nr)
{
	for (unsigned i = 0; i < isa->ncalls; i++) {
		if (isa->calls[i].nr == nr)
			return isa->calls[i].call;
	}
	return CALL_OTHER;
}
