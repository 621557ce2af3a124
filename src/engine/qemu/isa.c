/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instruction sets that the engine knows, each with the system calls that it must notice
 * (Linux's numbers: asm-generic/unistd.h for riscv64, the syscall tables of arch/x86, powerpc and
 * sparc for the others).
 */
#include "decode.h"

#include <string.h>

#include <quipu/bits.h>

static const struct call_row riscv64_calls[] = {
	{222, CALL_MMAP},      {226, CALL_MPROTECT},	 {167, CALL_PRCTL},
	{220, CALL_CLONE},     {221, CALL_EXECVE},	 {93, CALL_EXIT},
	{94, CALL_EXIT_GROUP}, {134, CALL_SIGACTION},	 {139, CALL_SIGRETURN},
	{56, CALL_OPENAT},     {101, CALL_NANOSLEEP},	 {115, CALL_CLOCK_NANOSLEEP},
	{73, CALL_PPOLL},      {72, CALL_PSELECT6},	 {22, CALL_EPOLL_PWAIT},
	{98, CALL_FUTEX},      {137, CALL_SIGTIMEDWAIT}, {113, CALL_TIME}, /* clock_gettime */
	{169, CALL_TIME},						   /* gettimeofday */
	{153, CALL_TIME},						   /* times */
	{165, CALL_TIME},						   /* getrusage */
	{179, CALL_TIME},						   /* sysinfo */
	{86, CALL_TIME},						   /* timerfd_settime */
	{103, CALL_TIME},						   /* setitimer */
	{110, CALL_TIME},						   /* timer_settime */
	{278, CALL_RANDOM},    {172, CALL_PID},		 {173, CALL_PID},  /* getppid */
	{178, CALL_PID},						   /* gettid */
	{215, CALL_MUNMAP},    {216, CALL_MREMAP},	 {214, CALL_BRK},
	{124, CALL_YIELD},     {198, CALL_NETWORK}, /* socket */
	{129, CALL_KILL},      {131, CALL_TGKILL},
};

static const struct call_row x86_64_calls[] = {
	{9, CALL_MMAP},		 {10, CALL_MPROTECT},	  {157, CALL_PRCTL},
	{56, CALL_CLONE},	 {57, CALL_CLONE}, /* fork */
	{58, CALL_CLONE},			   /* vfork */
	{59, CALL_EXECVE},	 {60, CALL_EXIT},	  {231, CALL_EXIT_GROUP},
	{13, CALL_SIGACTION},	 {15, CALL_SIGRETURN},	  {2, CALL_OPEN},
	{257, CALL_OPENAT},	 {35, CALL_NANOSLEEP},	  {230, CALL_CLOCK_NANOSLEEP},
	{7, CALL_POLL},		 {271, CALL_PPOLL},	  {23, CALL_SELECT},
	{270, CALL_PSELECT6},	 {232, CALL_EPOLL_PWAIT}, /* epoll_wait */
	{281, CALL_EPOLL_PWAIT}, {202, CALL_FUTEX},	  {128, CALL_SIGTIMEDWAIT},
	{228, CALL_TIME},						   /* clock_gettime */
	{96, CALL_TIME},						   /* gettimeofday */
	{201, CALL_TIME},						   /* time */
	{100, CALL_TIME},						   /* times */
	{98, CALL_TIME},						   /* getrusage */
	{99, CALL_TIME},						   /* sysinfo */
	{286, CALL_TIME},						   /* timerfd_settime */
	{38, CALL_TIME},						   /* setitimer */
	{37, CALL_TIME},						   /* alarm */
	{223, CALL_TIME},						   /* timer_settime */
	{318, CALL_RANDOM},	 {39, CALL_PID},	  {110, CALL_PID}, /* getppid */
	{186, CALL_PID},						   /* gettid */
	{41, CALL_NETWORK},						   /* socket */
	{24, CALL_YIELD},	 {11, CALL_MUNMAP},	  {25, CALL_MREMAP},
	{12, CALL_BRK},		 {62, CALL_KILL},	  {234, CALL_TGKILL},
};

static const struct call_row ppc64le_calls[] = {
	{90, CALL_MMAP},	 {125, CALL_MPROTECT},	  {171, CALL_PRCTL},
	{120, CALL_CLONE},	 {2, CALL_CLONE}, /* fork */
	{189, CALL_CLONE},			  /* vfork */
	{11, CALL_EXECVE},	 {1, CALL_EXIT},	  {234, CALL_EXIT_GROUP},
	{173, CALL_SIGACTION},	 {172, CALL_SIGRETURN},	  {5, CALL_OPEN},
	{286, CALL_OPENAT},	 {162, CALL_NANOSLEEP},	  {248, CALL_CLOCK_NANOSLEEP},
	{167, CALL_POLL},	 {281, CALL_PPOLL},	  {142, CALL_SELECT},
	{280, CALL_PSELECT6},	 {238, CALL_EPOLL_PWAIT}, /* epoll_wait */
	{303, CALL_EPOLL_PWAIT}, {221, CALL_FUTEX},	  {176, CALL_SIGTIMEDWAIT},
	{246, CALL_TIME},						  /* clock_gettime */
	{78, CALL_TIME},						  /* gettimeofday */
	{13, CALL_TIME},						  /* time */
	{43, CALL_TIME},						  /* times */
	{77, CALL_TIME},						  /* getrusage */
	{116, CALL_TIME},						  /* sysinfo */
	{311, CALL_TIME},						  /* timerfd_settime */
	{104, CALL_TIME},						  /* setitimer */
	{27, CALL_TIME},						  /* alarm */
	{241, CALL_TIME},						  /* timer_settime */
	{359, CALL_RANDOM},	 {20, CALL_PID},	  {64, CALL_PID}, /* getppid */
	{207, CALL_PID},						  /* gettid */
	{91, CALL_MUNMAP},	 {163, CALL_MREMAP},	  {45, CALL_BRK},
	{114, CALL_WAIT},						       /* wait4 */
	{272, CALL_WAIT},						       /* waitid */
	{29, CALL_WAIT},						       /* pause */
	{158, CALL_YIELD},	 {4, CALL_WRITE},	  {146, CALL_WRITE},   /* writev */
	{37, CALL_KILL},	 {250, CALL_TGKILL},	  {326, CALL_NETWORK}, /* socket */
	{102, CALL_NETWORK},						       /* socketcall */
};

static const struct call_row sparc64_calls[] = {
	{71, CALL_MMAP},	 {74, CALL_MPROTECT},	  {147, CALL_PRCTL},
	{217, CALL_CLONE},	 {2, CALL_CLONE}, /* fork */
	{66, CALL_CLONE},			  /* vfork */
	{59, CALL_EXECVE},	 {1, CALL_EXIT},	  {188, CALL_EXIT_GROUP},
	{102, CALL_SIGACTION},	 {101, CALL_SIGRETURN},	  {5, CALL_OPEN},
	{284, CALL_OPENAT},	 {249, CALL_NANOSLEEP},	  {259, CALL_CLOCK_NANOSLEEP},
	{153, CALL_POLL},	 {298, CALL_PPOLL},	  {230, CALL_SELECT},
	{297, CALL_PSELECT6},	 {195, CALL_EPOLL_PWAIT}, /* epoll_wait */
	{309, CALL_EPOLL_PWAIT}, {142, CALL_FUTEX},	  {105, CALL_SIGTIMEDWAIT},
	{257, CALL_TIME},						   /* clock_gettime */
	{116, CALL_TIME},						   /* gettimeofday */
	{43, CALL_TIME},						   /* times */
	{117, CALL_TIME},						   /* getrusage */
	{214, CALL_TIME},						   /* sysinfo */
	{315, CALL_TIME},						   /* timerfd_settime */
	{83, CALL_TIME},						   /* setitimer */
	{27, CALL_TIME},						   /* alarm */
	{262, CALL_TIME},						   /* timer_settime */
	{347, CALL_RANDOM},	 {20, CALL_PID},	  {197, CALL_PID}, /* getppid */
	{143, CALL_PID},						   /* gettid */
	{97, CALL_NETWORK},						   /* socket */
	{206, CALL_NETWORK},						   /* socketcall */
	{37, CALL_KILL},	 {211, CALL_TGKILL},	  {245, CALL_YIELD},
};

/* SIGILL, SIGTRAP, SIGFPE and SIGSEGV are the same everywhere; SIGBUS is not (asm/signal.h). */
#define FAULTS(bus) (1u << 4 | 1u << 5 | 1u << 8 | 1u << 11 | 1u << (bus))

#define CALLS(t) t, sizeof(t) / sizeof((t)[0])

static const struct isa isas[] = {
	{"riscv64", 243, 4096, 0, "/usr/riscv64-linux-gnu", NULL, FAULTS(7), decode_riscv64,
	 CALLS(riscv64_calls)},
	{"ppc64le", 21, 4096, 0, "/usr/powerpc64le-linux-gnu", NULL, FAULTS(7), decode_ppc64le,
	 CALLS(ppc64le_calls)},
	{"sparc64", 43, 8192, ISA_BRANCH | ISA_BIG_ENDIAN, "/usr/sparc64-linux-gnu", NULL,
	 FAULTS(10), decode_sparc64, CALLS(sparc64_calls)},
	{"x86_64", 62, 4096, ISA_TRACK | ISA_PHANTOM | ISA_WIDE, NULL, "max", FAULTS(7),
	 decode_x86_64, CALLS(x86_64_calls)},
};

const struct isa *isa_find(const char *target_name)
{
	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++) {
		if (!strcmp(isas[i].name, target_name))
			return &isas[i];
	}
	return NULL;
}

const struct isa *isa_by_elf(uint16_t elf_machine)
{
	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++) {
		if (isas[i].elf_machine == elf_machine)
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

/* The calls that move bytes, in the order of read, readv, pread64, preadv; write, writev, pwrite64,
 * pwritev; sendto, sendmsg; recvfrom, recvmsg. */
#define IO_CALLS 12u
static const struct {
	uint16_t elf_machine;
	uint16_t nr[IO_CALLS];
} io_calls[] = {
	{243, {63, 65, 67, 69, 64, 66, 68, 70, 206, 211, 207, 212}},
	{21, {3, 145, 179, 320, 4, 146, 180, 321, 335, 341, 337, 342}},
	{43, {3, 120, 67, 324, 4, 121, 68, 325, 133, 114, 125, 113}},
	{62, {0, 19, 17, 295, 1, 20, 18, 296, 44, 46, 45, 47}},
};

enum io isa_io(const struct isa *isa, int64_t nr)
{
	static const uint8_t kind[IO_CALLS] = {IO_READ,	 IO_READ,  IO_READ,    IO_READ,
					       IO_WRITE, IO_WRITE, IO_WRITE,   IO_WRITE,
					       IO_SEND,	 IO_SEND,  IO_RECEIVE, IO_RECEIVE};

	for (size_t i = 0; i < sizeof(io_calls) / sizeof(io_calls[0]); i++) {
		if (io_calls[i].elf_machine != isa->elf_machine)
			continue;
		for (unsigned k = 0; k < IO_CALLS; k++) {
			if (io_calls[i].nr[k] == nr)
				return kind[k];
		}
	}
	return IO_NONE;
}
