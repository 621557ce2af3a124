// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu machine unplug PMU and plug PMU, inside quipu exec: a device leaves the running machine, or
 * comes back. A client of the machine's like any other (client/protocol.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "client/protocol.h"

static int call(int fd, uint32_t op, uint64_t arg, const void *payload, size_t len, char *text,
		size_t room)
{
	struct gate_request request = {.op = op, .tid = (uint32_t)gettid(), .args = {arg}};
	struct gate_reply reply = {0};
	struct iovec out[2] = {{&request, sizeof(request)}, {(void *)payload, len}};
	struct iovec in[2] = {{&reply, sizeof(reply)}, {text, room}};
	struct msghdr msg = {.msg_iov = out, .msg_iovlen = 2};

	if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		return -errno;
	msg = (struct msghdr){.msg_iov = in, .msg_iovlen = 2};
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(reply))
		return -EIO;
	return (int)reply.result;
}

static int reach(void)
{
	const char *machine = getenv(GATE_ENV);
	struct sockaddr_un address;
	char name[GATE_NAME_MAX];
	socklen_t len;
	int fd, rc;

	if (!machine)
		return -ENOENT;
	gate_name(name, atol(machine));
	len = gate_address(&address, name);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (struct sockaddr *)&address, len) ? -errno : 0;
	if (!rc)
		rc = call(fd, GATE_HELLO, GATE_VERSION, NULL, 0, NULL, 0);
	if (rc >= 0)
		return fd;
	close(fd);
	return rc;
}

int cmd_machine_plug(const char *pmu, bool present)
{
	const char *what = present ? "plug" : "unplug";
	char why[512] = "";
	int fd = reach(), rc;

	if (fd < 0)
		return cli_error("machine %s works on a machine that runs: inside `quipu exec`%s%s",
				 what, fd == -ENOENT ? "" : ": ",
				 fd == -ENOENT ? "" : strerror(-fd));
	rc = call(fd, GATE_HOTPLUG, present, pmu, strlen(pmu) + 1, NULL, 0);
	if (rc < 0)
		call(fd, GATE_REASON, 0, NULL, 0, why, sizeof(why) - 1);
	close(fd);
	if (rc >= 0)
		return 0;
	cli_error("machine %s %s: %s", what, pmu, *why ? why : strerror(-rc));
	return 1;
}
