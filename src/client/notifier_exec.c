/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that clients below the notifier start (notifier.c), as preload_exec.c has it: one of the
 * machine's own instruction set runs under the engine, with the environment that it would have had;
 * the exec of any other is told when it has happened.
 *
 * The kernel looks at an exec's arguments again after we have, so it is given other ones: the call
 * is made once more by the calling thread, with pointers to memory that is mapped for them
 * (remote.h). A thread that shares its memory with its parent (vfork) leaves that mapping behind,
 * once, for the next to use.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/notifier_impl.h"

#define MOST_WORDS 32768u
#define NAME_ROOM  64u
#define PAGE	   4096u

/* ---- what it wants to start ---- */

struct wish {
	char path[PATH_MAX], seen[PATH_MAX + 64]; /* as named; as we can reach it */
	char argv0[PATH_MAX];
	uint64_t argv, envp;
};

/* "/proc/self/exe" is somebody else's here. */
static void say_whose(const struct call *c, char path[PATH_MAX])
{
	char link[64], target[PATH_MAX];
	ssize_t n;

	if (strncmp(path, "/proc/self/", 11))
		return;
	if (snprintf(link, sizeof(link), "/proc/%d/%s", (int)c->tid, path + 11) >=
	    (int)sizeof(link))
		return;
	n = readlink(link, target, sizeof(target) - 1);
	if (n > 0 && target[0] == '/') {
		target[n] = 0;
		memcpy(path, target, (size_t)n + 1);
	}
}

/* execveat(2): below a directory's descriptor, or a file's itself. */
static bool from_descriptor(const struct call *c, const char *name, char path[PATH_MAX])
{
	char link[64], target[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)c->tid, (int)c->args[0]);
	n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = 0;
	return snprintf(path, PATH_MAX, "%s%s%s", target, *name ? "/" : "", name) < PATH_MAX;
}

static bool read_wish(const struct call *c, struct wish *w)
{
	bool at = c->nr == SYS_execveat;
	const uint64_t *a = c->args + at;
	char name[PATH_MAX];
	uint64_t first = 0;

	w->argv = a[1];
	w->envp = a[2];
	if (!notifier_string(c, a[0], name, sizeof(name)))
		return false;
	if (at && (int)c->args[0] != AT_FDCWD && name[0] != '/') {
		if (!from_descriptor(c, name, w->path))
			return false;
	} else {
		memcpy(w->path, name, strlen(name) + 1);
	}
	say_whose(c, w->path);
	snprintf(w->seen, sizeof(w->seen), "/proc/%d/%s/%s", (int)c->tid,
		 w->path[0] == '/' ? "root" : "cwd", w->path);
	if (!w->argv || notifier_peek(c, w->argv, &first, 8) != 8 || !first)
		memcpy(w->argv0, w->path, strlen(w->path) + 1);
	else if (!notifier_string(c, first, w->argv0, sizeof(w->argv0)))
		return false;
	return !faccessat(AT_FDCWD, w->seen, X_OK, AT_EACCESS);
}

/* ---- the words of the engine ---- */

/* Pointers of the caller's, up to the one that is 0; -1: not there, or too many. */
static ssize_t read_pointers(const struct call *c, uint64_t from, uint64_t *to, size_t room)
{
	size_t n = 0;

	while (from && n < room) { /* Linux takes a missing list for an empty one */
		size_t want = (PAGE - (from + 8 * n) % PAGE) / 8;
		ssize_t got;

		if (!want)
			want = 1;
		if (want > room - n)
			want = room - n;
		got = notifier_peek(c, from + 8 * n, to + n, 8 * want);
		if (got < 8)
			return -1;
		for (size_t end = n + (size_t)got / 8; n < end; n++)
			if (!to[n])
				return (ssize_t)n;
	}
	return from ? -1 : 0;
}

/* What can be read of a string's beginning. */
static void read_name(const struct call *c, uint64_t from, char name[NAME_ROOM])
{
	size_t here = PAGE - from % PAGE;
	ssize_t got;

	memset(name, 0, NAME_ROOM);
	got = notifier_peek(c, from, name, here < NAME_ROOM - 1 ? here : NAME_ROOM - 1);
	if (got == (ssize_t)here && here < NAME_ROOM - 1)
		notifier_peek(c, from + here, name + here, NAME_ROOM - 1 - here);
}

/* argv and environment as they will lie in the caller's memory, pointers first. */
struct image {
	uint64_t *pointers;
	size_t nargv, nenv;
	const char *text;
	size_t length; /* of the text */
};

static uint64_t text_at(const struct image *m, uint64_t base, const char *t)
{
	return base + 8 * (m->nargv + m->nenv + 2) + (uint64_t)(t - m->text);
}

/* One change: "NAME=value" or "NAME". The place in the list stays, so that the stack of the program
 * is the same. @names: of the entries. Where an edit goes, its text's offset + 1 stands for now. */
static size_t change(uint64_t *env, char (*names)[NAME_ROOM], size_t n, const char *edit,
		     uint64_t mark)
{
	size_t len = strcspn(edit, "="), to = 0;
	bool found = false, set = edit[len] == '=';

	for (size_t i = 0; i < n; i++) {
		bool same = len < NAME_ROOM - 1 && !strncmp(names[i], edit, len) &&
			    names[i][len] == '=';

		if (same && (!set || found))
			continue;
		env[to] = same ? mark : env[i];
		memmove(names[to], names[i], NAME_ROOM);
		to++;
		found = found || same;
	}
	if (set && !found) {
		snprintf(names[to], NAME_ROOM, "%.*s", (int)(NAME_ROOM - 1), edit);
		env[to++] = mark;
	}
	return to;
}

/* The words in front, then what of the caller's arguments is behind argv[0]. */
static bool lay_out(const struct call *c, const struct wish *w, size_t words, size_t length,
		    struct image *m)
{
	uint64_t *argv = malloc(3 * MOST_WORDS * sizeof(*argv)), *env = argv + MOST_WORDS;
	char(*names)[NAME_ROOM] = malloc(2 * (size_t)MOST_WORDS * NAME_ROOM);
	const char *text = (const char *)c->n->answer, *t = text, *end = text + length;
	ssize_t nargv = -1, nenv = -1;
	size_t i = 0, n;

	*m = (struct image){.text = text, .length = length};
	if (argv && names) {
		nargv = read_pointers(c, w->argv, argv, MOST_WORDS - 1);
		nenv = read_pointers(c, w->envp, env, MOST_WORDS);
	}
	m->pointers = nargv < 0 || nenv < 0
			      ? NULL
			      : malloc(((size_t)nargv + words + (size_t)nenv + length + 2) * 8);
	if (!m->pointers)
		goto out;
	for (; t < end && i < words; t += strlen(t) + 1)
		m->pointers[i++] = (uint64_t)(t - text) + 1;
	for (ssize_t k = 1; k < nargv; k++)
		m->pointers[i++] = argv[k];
	m->pointers[i] = 0;
	m->nargv = i;
	n = (size_t)nenv;
	for (i = 0; i < n; i++)
		read_name(c, env[i], names[i]);
	for (; t < end && n < 2 * MOST_WORDS - 1; t += strlen(t) + 1)
		n = change(env, names, n, t, (uint64_t)(t - text) + 1);
	memcpy(m->pointers + m->nargv + 1, env, n * 8);
	m->nenv = n;
	m->pointers[m->nargv + 1 + n] = 0;
out:
	free(names);
	free(argv);
	return m->pointers;
}

/* Marks of our text become addresses; a program has nothing at addresses that small. */
static void relocate(struct image *m, uint64_t base)
{
	for (size_t i = 0; i < m->nargv + m->nenv + 2; i++)
		if (m->pointers[i] && m->pointers[i] <= GATE_PAYLOAD)
			m->pointers[i] = text_at(m, base, m->text + m->pointers[i] - 1);
}

static bool write_there(pid_t tid, const struct image *m, uint64_t base)
{
	size_t pointers = 8 * (m->nargv + m->nenv + 2);
	struct iovec local[2] = {
		{.iov_base = m->pointers, .iov_len = pointers},
		{.iov_base = (void *)m->text, .iov_len = m->length},
	};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)base,
			       .iov_len = pointers + m->length};

	return remote.iov_len <= SCRATCH_SIZE &&
	       process_vm_writev(tid, local, 2, &remote, 1, 0) == (ssize_t)remote.iov_len;
}

/* ---- the exec ---- */

static void tell(struct notifier *n, const struct exec *e, uint32_t op)
{
	struct exchange x = {.request = {.op = op}};

	notifier_exchange(n, e->connection, e->tid, &x);
}

static unsigned free_scratch(const struct notifier *n)
{
	uint64_t used = 0;

	for (const struct exec *e = n->execs; e; e = e->next)
		used |= UINT64_C(1) << e->scratch;
	for (unsigned i = 0; i < SCRATCHES; i++)
		if (!(used >> i & 1))
			return i;
	return SCRATCHES;
}

/* The calling thread execs the image. */
static long exec_image(struct exec *e, struct image *m, uint64_t cookie)
{
	uint64_t base = SCRATCH_BASE + e->scratch * SCRATCH_SIZE;
	const uint64_t where[6] = {base,
				   SCRATCH_SIZE,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
					   MAP_FIXED_NOREPLACE,
				   UINT64_MAX,
				   0};
	long at = remote_call(&e->remote, SYS_mmap, where);

	if (at != (long)base && at != -EEXIST) /* another's, of the same memory, before */
		return at < 0 ? at : -ENOMEM;
	relocate(m, base);
	if (!write_there(e->tid, m, base))
		return -E2BIG;
	remote_exec(&e->remote, SYS_execve,
		    (const uint64_t[5]){m->pointers[0], base, base + 8 * (m->nargv + 1)}, cookie);
	return 0;
}

/* From here on the call is not the notification's any more. */
static bool start(struct call *c, struct exec *e, struct image *m)
{
	struct notifier *n = c->n;
	long rc;

	notifier_answer(c, -EINTR); /* replaced by what becomes of it */
	if (remote_begin(&e->remote, e->tid)) {
		if (e->remote.ended)
			notifier_ended(n, e->tid, e->remote.status);
		return false;
	}
	rc = 0;
	if (m)
		rc = e->scratch < SCRATCHES ? exec_image(e, m, n->cookie) : -EAGAIN;
	else
		remote_exec(&e->remote, c->nr, c->args, n->cookie);
	if (rc) {
		tell(n, e, GATE_EXEC_FAILED);
		remote_end(&e->remote, rc);
	}
	if (e->remote.ended)
		notifier_ended(n, e->tid, e->remote.status);
	return !rc && !e->remote.ended;
}

static void drop(struct exec *e)
{
	if (e->connection >= 0)
		close(e->connection);
	free(e);
}

/* How the machine wants it: words of the engine, 0: as it is; negative errno. */
static int64_t plan(struct call *c, struct exec *e, const struct wish *w, struct exchange *x)
{
	size_t n = strlen(w->path) + 1, n0 = strlen(w->argv0) + 1;

	memcpy(c->n->payload, w->path, n);
	memcpy(c->n->payload + n, w->argv0, n0);
	*x = (struct exchange){
		.request = {.op = GATE_EXEC}, .payload = c->n->payload, .length = n + n0};
	e->connection = notifier_dial(c->n, e->pid);
	return notifier_exchange(c->n, e->connection, e->tid, x);
}

/* It runs natively, and what it does there is to sleep (sleepers.c). */
static bool is_sleeper(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, GATE_SLEEPER);
}

int64_t notifier_exec(struct call *c)
{
	struct exec *e = calloc(1, sizeof(*e));
	struct exchange x;
	struct image m = {0};
	struct wish w;
	int64_t rc;

	if (!e)
		return -ENOMEM;
	e->pid = c->party->pid;
	e->tid = c->tid;
	e->connection = -1;
	e->scratch = free_scratch(c->n);
	if (!read_wish(c, &w))
		goto pass;
	c->party->sleeper = is_sleeper(w.path);
	rc = plan(c, e, &w, &x);
	/* Nobody counts what it runs, or nobody can tell. */
	if (rc < 0 || (!rc && !x.reply.values[1]))
		goto pass;
	if (rc && !lay_out(c, &w, x.reply.values[0], x.reply.length, &m))
		goto pass;
	if (!notifier_valid(c) || remote_seize(e->tid)) {
		if (rc)
			tell(c->n, e, GATE_EXEC_FAILED);
		goto pass; /* traced by somebody else: told now that it has happened */
	}
	if (start(c, e, rc ? &m : NULL)) {
		e->next = c->n->execs;
		c->n->execs = e;
	} else {
		drop(e);
	}
	free(m.pointers);
	return 0;
pass:
	free(m.pointers);
	drop(e);
	return PASS;
}

bool notifier_exec_stopped(struct notifier *n, pid_t pid, int status)
{
	struct exec **at = &n->execs, *e;
	long result;

	/* A thread that execs gets its process's id. */
	while (*at && (*at)->tid != pid && (*at)->pid != pid)
		at = &(*at)->next;
	e = *at;
	if (!e || !remote_exec_over(&e->remote, pid, status, &result))
		return e;
	*at = e->next;
	if (result) {
		tell(n, e, GATE_EXEC_FAILED);
	} else {
		for (struct party *p = n->parties; p; p = p->next)
			if (p->pid == e->pid)
				notifier_hang_up(n, p);
		tell(n, e, GATE_EXEC_DONE);
		remote_release(&e->remote);
	}
	drop(e);
	return true;
}
