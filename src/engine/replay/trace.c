/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of a CPU trace (README.md). Any bytes are safe. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/replay/cpu.h"

struct word {
	const char *at;
	size_t len;
};

static bool next_word(const char **line, const char *end, struct word *w)
{
	while (*line < end && (**line == ' ' || **line == '\t' || **line == '\r'))
		++*line;
	w->at = *line;
	while (*line < end && **line != ' ' && **line != '\t' && **line != '\r')
		++*line;
	w->len = (size_t)(*line - w->at);
	return w->len;
}

static bool is(const struct word *w, const char *text)
{
	return w->len == strlen(text) && !memcmp(w->at, text, w->len);
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

static bool number(struct word w, unsigned base, uint64_t most, uint64_t *value)
{
	if (base == 16 && w.len > 2 && w.at[0] == '0' && w.at[1] == 'x') {
		w.at += 2;
		w.len -= 2;
	}
	*value = 0;
	for (size_t i = 0; i < w.len; i++) {
		unsigned d = (unsigned)digit(w.at[i]);

		if (d >= base || *value > (UINT64_MAX - d) / base)
			return false;
		*value = *value * base + d;
	}
	return w.len && *value <= most;
}

/* "x" and the bytes in memory order. */
static bool code_bytes(const struct word *w, struct cpu_record *r)
{
	size_t n = (w->len - 1) / 2;

	if (w->len % 2 == 0 || !n || n > sizeof(r->code))
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = digit(w->at[1 + 2 * i]), low = digit(w->at[2 + 2 * i]);

		if (high > 15 || low > 15)
			return false;
		r->code[i] = (uint8_t)(high << 4 | low);
	}
	r->nbytes = (uint8_t)n;
	return true;
}

/* SIZE:CLASS */
static bool size_and_class(const struct word *w, struct cpu_record *r)
{
	const char *colon = memchr(w->at, ':', w->len);
	struct word size = {w->at, colon ? (size_t)(colon - w->at) : 0}, class;
	uint64_t n;

	if (!colon || !number(size, 10, 16, &n) || !n)
		return false;
	r->size = (uint8_t)n;
	class = (struct word){colon + 1, w->len - size.len - 1};
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		if (is(&class, quipu_insn_class_name(c))) {
			r->class = (uint8_t)c;
			return true;
		}
	return false;
}

static const char *accesses(const char *line, const char *end, struct cpu_record *r)
{
	struct word w, ahead;
	uint64_t n;

	while (next_word(&line, end, &w)) {
		struct cpu_access *a;
		const char *before;

		if (r->naccesses == CPU_TRACE_ACCESSES)
			return "more accesses than an instruction may have";
		a = &r->access[r->naccesses];
		if (!is(&w, "r") && !is(&w, "w"))
			return "what follows the instruction is accesses: r or w, an address, a size";
		a->store = *w.at == 'w';
		if (!next_word(&line, end, &w) || !number(w, 16, UINT64_MAX, &a->addr))
			return "an access needs its address, in hexadecimal";
		a->size = 1;
		before = line;
		if (next_word(&line, end, &ahead) && number(ahead, 10, 64, &n) && n)
			a->size = (uint8_t)n;
		else
			line = before;
		r->naccesses++;
	}
	return NULL;
}

static const char *parse(const char *line, const char *end, struct cpu_record *r)
{
	struct word w;
	uint64_t n;

	if (!next_word(&line, end, &w) || *w.at == '#')
		return NULL;
	if (is(&w, "syscall")) {
		r->kind = CPU_SYSCALL;
		return next_word(&line, end, &w) ? "syscall stands alone" : NULL;
	}
	if (is(&w, "cpu")) {
		r->kind = CPU_ON;
		if (!next_word(&line, end, &w) || !number(w, 10, UINT16_MAX, &n))
			return "cpu needs a number";
		r->cpu = (unsigned)n;
		return next_word(&line, end, &w) ? "cpu takes one number" : NULL;
	}
	r->kind = CPU_INSN;
	if (!number(w, 16, UINT64_MAX, &r->pc))
		return "a line begins with an address in hexadecimal, cpu, syscall or #";
	if (!next_word(&line, end, &w))
		return "the instruction is missing: x and its bytes, or SIZE:CLASS";
	if (*w.at == 'x' ? !code_bytes(&w, r) : !size_and_class(&w, r))
		return "the instruction is x and its bytes (at most 16), or SIZE:CLASS";
	return accesses(line, end, r);
}

int cpu_trace_line(const char *line, size_t len, struct cpu_record *r, const char **why)
{
	memset(r, 0, offsetof(struct cpu_record, access));
	*why = parse(line, line + len, r);
	return *why ? -EINVAL : 0;
}

bool cpu_trace_is(const char *line, size_t len)
{
	size_t n = sizeof(CPU_TRACE_HEADER) - 1;

	return len >= n && !memcmp(line, CPU_TRACE_HEADER, n) &&
	       (len == n || line[n] == '\n' || line[n] == '\r' || line[n] == ' ');
}
