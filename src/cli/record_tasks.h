/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recording of the host tells of the time before it began: the kernel, tasks, the CPU. */
#ifndef QUIPU_CLI_RECORD_TASKS_H
#define QUIPU_CLI_RECORD_TASKS_H

#include <sys/types.h>

#include "profile/perfdata.h"

/* All: 0, or -errno of the write. What /proc does not show (any more) is left out. */
int record_tell_kernel(struct perfdata_writer *);
/* A thread's name; of the first thread of a process also what it has mapped. */
int record_tell_task(struct perfdata_writer *, pid_t tid);
int record_tell_all(struct perfdata_writer *);
/* "model name" and perf's cpuid string; "" where /proc/cpuinfo has none. */
void record_describe_cpu(char *model, size_t model_len, char *cpuid, size_t cpuid_len);

#endif
