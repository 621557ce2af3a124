/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that other processes make of the machine's firmware (rtas_door.h) cost what the machine
 * declares for them (RTAS sheet 7.2, trigger "rtas"): on the CPU where the caller's time counts, or
 * else on the last one of the partition that it called, where a tool of the host would run.
 */
#include <sys/epoll.h>

#include <quipu/platform.h>

#include "client/gate_impl.h"
#include "client/rtas_door.h"

static int cpu_of(const struct gate *g, const struct rtas_door_call *call)
{
	unsigned cpu;
	uint64_t ran;

	if (tasks_counted(g, call->pid, &cpu, &ran) &&
	    quipu_partition_has_cpu(call->partition, cpu))
		return (int)cpu;
	for (cpu = g->ncpus; cpu-- > 0;)
		if (quipu_partition_has_cpu(call->partition, cpu) &&
		    quipu_core_is_online(g->core, cpu))
			return (int)cpu;
	return -1; /* its processors are not this machine's */
}

int firmware_begin(struct gate *g)
{
	int fd;

	if (!g->config.door || !(quipu_system_watches(g->system) >> QUIPU_ACTIVITY_RTAS & 1))
		return 0;
	fd = rtas_door_charge(g->config.door);
	return fd < 0 ? fd : gate_watch(g, &g->firmware, SOURCE_FIRMWARE, fd, EPOLLIN);
}

void firmware_called(struct gate *g)
{
	struct quipu_interrupt at = {0};
	struct rtas_door_call call;
	int cpu;

	if (!rtas_door_call(g->config.door, &call))
		return;
	tasks_run(g);
	session_refresh(g->session);
	cpu = cpu_of(g, &call);
	if (cpu >= 0) {
		at.cpu = (unsigned)cpu;
		at.pid = at.tid = (uint32_t)call.pid;
		quipu_system_activity(g->system, &at, QUIPU_ACTIVITY_RTAS, 1);
		session_sync(g->session);
		gate_changed(g);
	}
	rtas_door_charged(g->config.door);
}
