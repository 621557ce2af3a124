/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * execve of the guest, followed: QEMU would hand the process to the host's kernel, which runs the
 * new program natively or not at all. Instead this process execs QEMU again, for the instruction
 * set of the new program, with the plugin. Engine sheet 10.3.
 *
 * The machine learns of it when the new image's first block begins: a process of the same pid. If
 * the host refuses, nothing has happened, and QEMU makes the call as it would have.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "plugin.h"

#define MOST_STRINGS 65536u
#define MOST_BYTES                                                                                 \
	(6ul << 20)    /* of arguments and environment: the kernel allows 3/4 of 8 MiB of stack */
#define MOST_SCRIPTS 4 /* interpreters that are scripts themselves */
#define LOADER_WORDS 32
#define OUR_WORDS    (16 + LOADER_WORDS)

/* The words of the new command line are pointers into these buffers. */
struct command {
	char *words[MOST_STRINGS + OUR_WORDS];
	unsigned n;
};

struct heap {
	char *bytes;
	size_t used;
};

static bool guest_word(uint64_t at, uint64_t *value)
{
	uint8_t raw[8];

	if (maps_read_guest(at, raw, sizeof(raw)) != (long)sizeof(raw))
		return false;
	*value = engine.isa->traits & ISA_BIG_ENDIAN ? bits_be64(raw) : bits_le64(raw);
	return true;
}

/* A vector of strings of the guest. False: not readable, or more than any kernel takes. */
static bool guest_strings(uint64_t at, struct command *c, struct heap *heap)
{
	for (c->n = 0; at && c->n < MOST_STRINGS; at += 8) {
		size_t room = MOST_BYTES - heap->used;
		uint64_t string;
		long n;

		if (!guest_word(at, &string))
			return false;
		if (!string)
			break;
		if (room < 2)
			return false;
		n = maps_read_string(string, heap->bytes + heap->used, room);
		if (n < 0 || (size_t)n + 1 >= room)
			return false;
		c->words[c->n++] = heap->bytes + heap->used;
		heap->used += (size_t)n + 1;
	}
	c->words[c->n] = NULL;
	return c->n < MOST_STRINGS;
}

/* ---- what the file is ---- */

enum image { IMAGE_NONE, IMAGE_SCRIPT, IMAGE_ELF };

struct file {
	enum image image;
	const struct isa *isa; /* NULL: of no set that the engine knows */
	char line[256];	       /* of a script, behind #! */
};

static const struct isa *isa_of(const uint8_t head[20])
{
	bool big = head[EI_DATA] == ELFDATA2MSB;
	uint16_t machine = big ? (uint16_t)(head[18] << 8 | head[19]) : bits_le16(head + 18);
	const struct isa *isa = isa_by_elf(machine);

	if (head[EI_CLASS] != ELFCLASS64 || !isa || big != !!(isa->traits & ISA_BIG_ENDIAN))
		return NULL;
	return isa;
}

static bool look_at(const char *path, struct file *f)
{
	uint8_t head[256] = {0};
	struct stat st;
	ssize_t n = -1;
	int fd;

	*f = (struct file){.image = IMAGE_NONE};
	if (access(path, X_OK))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be a pipe */
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		n = pread(fd, head, sizeof(head) - 1, 0);
	close(fd);
	if (n >= 20 && !memcmp(head, ELFMAG, SELFMAG)) {
		f->image = IMAGE_ELF;
		f->isa = isa_of(head);
	} else if (n > 2 && head[0] == '#' && head[1] == '!') {
		f->image = IMAGE_SCRIPT;
		memcpy(f->line, head + 2, (size_t)n - 2);
		f->line[strcspn(f->line, "\n")] = 0;
	}
	return f->image != IMAGE_NONE;
}

/* ---- scripts ---- */

static char *keep(struct heap *heap, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = heap->bytes + heap->used;

	if (n > MOST_BYTES - heap->used)
		return NULL;
	memcpy(copy, text, n);
	heap->used += n;
	return copy;
}

/* #! interpreter [one argument]: the words before the script's own arguments. */
static char *enter_script(char *line, const char *path, struct command *c, struct heap *heap)
{
	char *interpreter = line + strspn(line, " \t"),
	     *argument = interpreter + strcspn(interpreter, " \t"), *end;
	char *head[3];
	unsigned n = 0;

	if (*argument)
		*argument++ = 0;
	argument += strspn(argument, " \t");
	for (end = argument + strlen(argument);
	     end > argument && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = 0;
	if (!*interpreter)
		return NULL;
	head[n++] = keep(heap, interpreter);
	if (*argument)
		head[n++] = keep(heap, argument);
	head[n++] = keep(heap, path);
	if (!head[0] || !head[1] || !head[n - 1] || c->n + n > MOST_STRINGS)
		return NULL;
	/* argv[0] makes room for the path of the script. */
	memmove(c->words + n, c->words + 1, (c->n ? c->n : 1) * sizeof(c->words[0]));
	memcpy(c->words, head, n * sizeof(head[0]));
	c->n = (c->n ? c->n - 1 : 0) + n;
	c->words[c->n] = NULL;
	return head[0];
}

/* A guest's interpreter lies below its sysroot, where there is one. */
static char *below_sysroot(char *path, struct heap *heap)
{
	char inside[SEG_PATH + 256];

	if (*path != '/' || !engine.head->sysroot[0])
		return path;
	snprintf(inside, sizeof(inside), "%.*s%.255s", (int)SEG_PATH - 1, engine.head->sysroot,
		 path);
	return access(inside, X_OK) ? path : keep(heap, inside);
}

/* ---- the new command line ---- */

static const char *sysroot_for(const struct isa *isa)
{
	if (isa == engine.isa && engine.head->sysroot[0])
		return engine.head->sysroot;
	return isa->sysroot && !access(isa->sysroot, X_OK) ? isa->sysroot : NULL;
}

/* qemu-<isa> beside the one that runs us. */
static bool qemu_for(const struct isa *isa, char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);
	char *slash;

	if (n < 0)
		return false;
	path[n] = 0;
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	snprintf(slash + 1, len - (size_t)(slash + 1 - path), "qemu-%s", isa->name);
	return !access(path, X_OK);
}

/* The plugin's name; @twice: another name of the same file (install.c). */
static size_t plugin_name(char *spec, size_t len, bool twice)
{
	const char *name = strrchr(engine.head->plugin, '/');
	size_t n = 0;

	for (const char *p = engine.head->plugin; *p && n + 4 < len; p++) {
		if (twice && p == (name ? name + 1 : engine.head->plugin)) {
			spec[n++] = '.';
			spec[n++] = '/';
		}
		if (*p == ',')
			spec[n++] = ',';
		spec[n++] = *p;
	}
	return n;
}

static void plugin_spec(char *spec, size_t len)
{
	size_t n = plugin_name(spec, len, false);

	snprintf(spec + n, len - n, ",seg=%s", engine.seg_path);
}

static void blocks_spec(char *spec, size_t len)
{
	size_t n = plugin_name(spec, len, true);

	snprintf(spec + n, len - n, ",blocks=on");
}

/*
 * The guest's own words to its loader (LD_PRELOAD, LD_TRACE_LOADED_OBJECTS ...) are not for QEMU's:
 * they go by -E, whose argument is cut at commas, so one with a comma stays where it is.
 */
static unsigned loader_words(struct command *env, const char *ours[], unsigned most)
{
	unsigned kept = 0, n = 0;

	for (unsigned i = 0; i < env->n; i++) {
		char *word = env->words[i];

		if (n + 2 <= most && !strncmp(word, "LD_", 3) && strchr(word, '=') &&
		    !strchr(word, ',')) {
			ours[n++] = "-E";
			ours[n++] = word;
		} else {
			env->words[kept++] = word;
		}
	}
	env->n = kept;
	env->words[kept] = NULL;
	return n;
}

static void replace(const struct isa *isa, char *path, struct command *c, struct command *env)
{
	char qemu[SEG_PATH], spec[2 * SEG_PATH + 80], blocks[2 * SEG_PATH + 80],
		*argv0 = c->n ? c->words[0] : path;
	const char *root = sysroot_for(isa);
	const char *ours[OUR_WORDS];
	unsigned n = 0;

	if (!qemu_for(isa, qemu, sizeof(qemu)))
		return;
	plugin_spec(spec, sizeof(spec));
	ours[n++] = qemu;
	if (select_can()) {
		blocks_spec(blocks, sizeof(blocks));
		ours[n++] = "-plugin";
		ours[n++] = blocks;
	}
	ours[n++] = "-plugin";
	ours[n++] = spec;
	ours[n++] = "-seed";
	ours[n++] = "1";
	if (isa->cpu) {
		ours[n++] = "-cpu";
		ours[n++] = isa->cpu;
	}
	if (root) {
		ours[n++] = "-L";
		ours[n++] = root;
	}
	n += loader_words(env, ours + n, LOADER_WORDS);
	ours[n++] = "-0";
	ours[n++] = argv0;
	ours[n++] = path;
	if (!c->n)
		c->words[1] = NULL;
	memmove(c->words + n, c->words + 1, (c->n ? c->n : 1) * sizeof(c->words[0]));
	memcpy(c->words, ours, n * sizeof(ours[0]));
	execve(qemu, c->words, env->words);
}

static bool follow_file(char *path, struct command *c, struct command *env, struct heap *heap)
{
	for (unsigned depth = 0; depth <= MOST_SCRIPTS; depth++) {
		struct file f;

		if (!look_at(path, &f))
			return depth != 0; /* what the host does about it is right, or a script
					      without interpreter */
		if (f.image == IMAGE_ELF && !f.isa)
			return false;
		if (f.image == IMAGE_ELF) {
			replace(f.isa, path, c, env);
			return true; /* the host said no: so it will to QEMU */
		}
		path = enter_script(f.line, path, c, heap);
		if (!path)
			return true;
		path = below_sysroot(path, heap);
		if (!path)
			return true;
	}
	return true;
}

bool exec_follow(const char *name, uint64_t guest_argv, uint64_t guest_env)
{
	struct heap heap = {.bytes = malloc(MOST_BYTES)};
	struct command *c = malloc(sizeof(*c)), *env = malloc(sizeof(*env));
	bool followed = true;
	struct file f;

	if (!strcmp(name, "/proc/self/exe"))
		name = engine.program;
	if (!look_at(name, &f)) {
		followed = access(name, X_OK) ||
			   !access(name, R_OK); /* the host's kernel refuses it too */
	} else if (heap.bytes && c && env && guest_strings(guest_argv, c, &heap) &&
		   guest_strings(guest_env, env, &heap)) {
		char *path = keep(&heap, name);

		followed = path && follow_file(path, c, env, &heap);
	} else {
		followed = false;
	}
	free(env);
	free(c);
	free(heap.bytes);
	return followed;
}
