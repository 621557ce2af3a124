/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The `sleep` of a client's command (perf stat -a sleep 1), on a machine of another instruction set
 * than the host's: it runs natively and counts nothing, and its timeout moves the machine's time
 * exactly. From its exec on the clock stands; while it sleeps the clock follows the host's, as far
 * as the sleep's end and no farther; when it has slept the clock stands at that end. So how long
 * the host took to start it, to wake it and to tell its client is nobody's time, and a rerun
 * measures the same. perf ABI sheet B6; README.md, "The clock".
 *
 * Below the notifier (--seccomp) nobody hears that it wakes: time stands at the sleep's end until
 * it sleeps again, ends, or has had PATIENCE_NS to do so.
 *
 * Not here: programs under the engine, whose sleeps the engine tells; programs that do more than
 * sleep, beside which the clock follows the host's.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/gate_impl.h"

/* One that has not begun to sleep by then, or has slept and goes on, does something else. */
#define PATIENCE_NS UINT64_C(2000000000)

enum state { STARTS, SLEEPS, SLEPT };

struct sleeper {
	struct source source; /* its pidfd */
	pid_t pid;
	enum state state;
	bool unheard;	/* when it wakes */
	uint64_t since; /* ns of the host's clock: its exec, or when it began to sleep */
	uint64_t ns;	/* how long it sleeps */
	uint64_t end;	/* the machine's time then */
	struct sleeper *next;
};

static struct sleeper *find(const struct gate *g, pid_t pid)
{
	struct sleeper *s = g->sleepers;

	while (s && s->pid != pid)
		s = s->next;
	return s;
}

static void drop(struct gate *g, struct sleeper *s)
{
	struct sleeper **at = &g->sleepers;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	gate_bury(g, &s->source);
}

void sleepers_exec(struct gate *g, const struct client *c, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct sleeper *s;
	int fd;

	if (strcmp(slash ? slash + 1 : path, GATE_SLEEPER) || !g->nevents || find(g, c->who.pid) ||
	    !tasks_is_helper(g, c->who.pid))
		return;
	s = calloc(1, sizeof(*s));
	fd = (int)syscall(SYS_pidfd_open, c->who.pid, 0);
	if (!s || fd < 0 || gate_watch(g, &s->source, SOURCE_SLEEPER, fd, EPOLLIN)) {
		if (fd >= 0)
			close(fd);
		free(s);
		return;
	}
	s->pid = c->who.pid;
	s->unheard = c->spoken_for;
	s->since = gate_host_ns();
	s->next = g->sleepers;
	g->sleepers = s;
}

void sleepers_stay(struct gate *g, pid_t pid)
{
	struct sleeper *s = find(g, pid);

	if (s && s->state == STARTS)
		drop(g, s);
}

void sleepers_begin(struct gate *g, pid_t pid, uint64_t ns)
{
	struct sleeper *s = find(g, pid);
	uint64_t time = quipu_system_time(g->system);

	if (!s || s->state == SLEEPS)
		return;
	s->state = SLEEPS;
	s->since = gate_host_ns();
	s->ns = ns;
	s->end = ns > UINT64_MAX - time ? UINT64_MAX : time + ns;
	if (g->follow_from < s->since)
		g->follow_from = s->since;
}

/* It is believed no more than the host's clock allows. */
void sleepers_end(struct gate *g, pid_t pid)
{
	struct sleeper *s = find(g, pid);
	uint64_t now = gate_host_ns();

	if (!s || s->state != SLEEPS)
		return;
	ask_clock(g, now);
	s->state = SLEPT;
	if (now - s->since >= s->ns && !session_guests(g->session))
		ask_clock_to(g, s->end);
	s->since = now;
}

void sleepers_ended(struct gate *g, struct sleeper *s)
{
	if (s->state == SLEEPS)
		ask_clock(g, gate_host_ns());
	g->sleeper_ended |= s->state != STARTS;
	drop(g, s);
}

/* It has had its time, and does something else now. */
static bool goes_on(const struct sleeper *s, uint64_t now)
{
	uint64_t passed = now > s->since ? now - s->since : 0;

	if (s->state == SLEEPS)
		return s->unheard && passed > s->ns && passed - s->ns > PATIENCE_NS;
	return passed > PATIENCE_NS;
}

uint64_t sleepers_limit(struct gate *g, uint64_t now)
{
	uint64_t limit = UINT64_MAX;
	struct sleeper *s = g->sleepers, *next;

	for (; s; s = next) {
		uint64_t end = s->state == SLEEPS ? s->end : 0;

		next = s->next;
		if (goes_on(s, now)) {
			drop(g, s);
			continue;
		}
		if (end < limit)
			limit = end;
	}
	return limit;
}

bool sleepers_start(const struct gate *g)
{
	for (const struct sleeper *s = g->sleepers; s; s = s->next)
		if (s->state == STARTS)
			return true;
	return false;
}

void sleepers_free(struct gate *g)
{
	while (g->sleepers)
		drop(g, g->sleepers);
}
