/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client is about to exec: what the machine makes of it. A program of its own instruction set
 * runs under the engine, with the environment it would have had without us; any other natively, and
 * is announced. perf ABI sheet C6.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gate_impl.h"

static const char *value_of(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, n) && (*environment)[n] == '=')
			return *environment;
	return NULL;
}

/* Appends a string; false when it does not fit. */
static bool put(struct gate *g, struct answer *a, const char *text)
{
	size_t n = strlen(text) + 1;

	if (a->reply.length + n > GATE_PAYLOAD)
		return false;
	memcpy(g->answer + a->reply.length, text, n);
	a->reply.length += (uint32_t)n;
	return true;
}

static int put_command(struct gate *g, struct answer *a, char **words, size_t n)
{
	bool fits = true;

	for (size_t i = 0; i < n; i++)
		fits = fits && put(g, a, words[i]);
	for (const char *const *t = g->config.taken_back; *t; t++) {
		const char *was = value_of(g->config.environment, *t);

		fits = fits && put(g, a, was ? was : *t);
	}
	a->reply.values[0] = n;
	return fits ? 1 : -E2BIG;
}

/*
 * A relative path is below the client's directory. No thread of the machine's has another use for
 * the working directory, and it is ours again before anybody else is served. -1: it stays.
 */
static int enter_directory_of(pid_t pid)
{
	char path[64];
	int back = open(".", O_PATH | O_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	if (back >= 0 && !chdir(path))
		return back;
	if (back >= 0)
		close(back);
	return -1;
}

static void go_back(int directory)
{
	if (directory < 0)
		return;
	if (fchdir(directory))
		fprintf(stderr, "quipu: the machine's working directory is gone: %s\n",
			strerror(errno));
	close(directory);
}

/* The words that run it; -ENOEXEC: it runs natively. */
static int find_words(struct gate *g, pid_t pid, const char *path, const char *argv0, char ***words,
		      size_t *nwords, struct session_error *err)
{
	int back, rc;

	if (!tasks_is_workload(g, pid))
		return -ENOEXEC;
	back = *path == '/' ? -1 : enter_directory_of(pid);
	rc = session_command(g->session, path, argv0, tasks_is_measured(g, pid), words, nwords,
			     err);
	go_back(back);
	return rc;
}

void ask_exec(struct gate *g, struct client *c, size_t payload, struct answer *a)
{
	const char *path = (const char *)g->payload, *argv0;
	struct session_error err = {{0}};
	char **words;
	size_t n = strnlen(path, payload), nwords;
	int rc;

	argv0 = path + n + 1;
	if (n >= payload || strnlen(argv0, payload - n - 1) >= payload - n - 1) {
		a->reply.result = -EINVAL;
		return;
	}
	rc = find_words(g, c->who.pid, path, argv0, &words, &nwords, &err);
	if (!rc) {
		a->reply.result = put_command(g, a, words, nwords);
		free(words);
		return;
	}
	c->execing = rc == -ENOEXEC && !session_has(g->session, c->who.pid);
	a->reply.values[1] = c->execing && g->nevents;
	snprintf(c->comm, sizeof(c->comm), "%.15s",
		 strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	a->reply.result = rc == -ENOEXEC ? 0 : rc;
	if (c->execing) {
		tasks_prepare(g, c->who.pid);
		sleepers_exec(g, c, path);
	}
	if (a->reply.result)
		snprintf(c->reason, sizeof(c->reason), "%s", err.text);
}

/* The connection of an announced exec has closed: it happened. */
void ask_exec_done(struct gate *g, struct client *c)
{
	if (c->execing)
		tasks_exec(g, c->who.pid, c->comm);
	c->execing = false;
}
