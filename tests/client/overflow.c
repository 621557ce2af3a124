/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that measures itself: overflow TYPE CONFIG PERIOD counts a loop of its own, with a
 * signal at each overflow as PAPI asks for it (perf ABI sheet B11), and prints the count, the
 * signals, the bytes of samples, and how many signals named another descriptor than the event's.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

static volatile int signals, strange;
static int fd;

static void on_overflow(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	signals++;
	strange += info->si_fd != fd || info->si_code != POLL_IN;
}

int main(int argc, char **argv)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct sigaction act = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
	struct perf_event_mmap_page *page;
	uint64_t value = 0;

	if (argc != 4)
		return 2;
	a.type = (uint32_t)atoi(argv[1]);
	a.config = (uint64_t)atoll(argv[2]);
	a.sample_period = (uint64_t)atoll(argv[3]);
	fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0ul);
	page = fd < 0 ? MAP_FAILED
		      : mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || sigaction(SIGRTMIN + 2, &act, NULL) ||
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) || fcntl(fd, F_SETOWN_EX, &owner) ||
	    fcntl(fd, F_SETSIG, SIGRTMIN + 2)) {
		perror("overflow");
		return 1;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (volatile long i = 0; i < 2000000; i++)
		;
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &value, sizeof(value)) != sizeof(value))
		return 1;
	printf("%llu %d %llu %d\n", (unsigned long long)value, signals,
	       (unsigned long long)page->data_head, strange);
	return 0;
}
