// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events that only a kernel has: tracepoints `system:event`, breakpoints `mem:ADDR[/LEN][:rwx]`
 * (language of perf 6.1, perf-list.txt), and probes that are made when they are opened,
 * `uprobe:FILE:FUNCTION[+OFFSET]`, `uretprobe:...`, `kprobe:FUNCTION[+OFFSET]`, `kretprobe:...`
 * (ours; the words are those of other tracers). Names and ids come from the catalog's kernel, for
 * this file does no input or output. Not here: probes with arguments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/hw_breakpoint.h>

#include "event/grammar_internal.h"

#define NAME_MAX_LEN 128u

static struct span rest_of(const struct cursor *c)
{
	return (struct span){c->text + c->pos, c->len - c->pos};
}

static bool starts_with(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && !strncmp(s.p, prefix, n);
}

static bool copy_span(struct span s, char *buf, size_t len)
{
	if (s.n >= len)
		return false;
	memcpy(buf, s.p, s.n);
	buf[s.n] = '\0';
	return true;
}

/* ---- mem:ADDR[/LEN][:rwx] ---- */

static struct span number_span(const struct cursor *c)
{
	const char *p = c->text + c->pos;

	return (struct span){p, strspn(p, "0123456789abcdefABCDEFxX")};
}

static int take_number(struct cursor *c, const char *what, uint64_t *v)
{
	struct span s = number_span(c);
	int ret = grammar_number(s, v);

	if (ret == -ERANGE)
		return grammar_fail(c, s.p, "%s does not fit in 64 bits", what);
	if (ret)
		return grammar_fail(c, s.p, "%s is a number, decimal or 0x...", what);
	c->pos += s.n;
	return 0;
}

/* Letters after a colon are the accesses when all of them are: else they are modifiers. */
static int take_accesses(struct cursor *c, uint32_t *type)
{
	const char *p = c->text + c->pos;
	size_t n = *p == ':' ? strspn(p + 1, "rwx") : 0;

	if (!n || strspn(p + 1, "ukhGHIpPSDeW") > n)
		return 0;
	for (size_t i = 1; i <= n; i++) {
		uint32_t bit = p[i] == 'r'   ? HW_BREAKPOINT_R
			       : p[i] == 'w' ? HW_BREAKPOINT_W
					     : HW_BREAKPOINT_X;

		if (*type & bit)
			return grammar_fail(c, p + i, "access '%c' is given twice", p[i]);
		*type |= bit;
	}
	c->pos += n + 1;
	return 0;
}

static int breakpoint(struct cursor *c)
{
	uint64_t addr, len = 0;
	struct quipu_parsed e;
	uint32_t type = 0;
	int ret;

	c->pos += strlen("mem:");
	ret = take_number(c, "the address of a breakpoint", &addr);
	if (!ret && c->text[c->pos] == '/') {
		c->pos++;
		ret = take_number(c, "the length of a breakpoint", &len);
	}
	if (!ret)
		ret = take_accesses(c, &type);
	if (!ret)
		ret = grammar_init(&e, PERF_TYPE_BREAKPOINT, 0);
	if (ret)
		return ret;
	e.attr.bp_type = type ? type : HW_BREAKPOINT_RW;
	e.attr.bp_addr = addr;
	e.attr.bp_len = len ? len : type == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	e.attr.sample_period = 1;
	e.each = true;
	ret = grammar_append(c->list, &e);
	if (ret)
		grammar_drop(&e);
	return ret ? ret : 1;
}

/* ---- system:event ---- */

static int found_tracepoint(void *arg, const char *system, const char *event, uint64_t id)
{
	struct cursor *c = arg;
	struct quipu_parsed e;
	int ret = grammar_init(&e, PERF_TYPE_TRACEPOINT, id);

	if (ret)
		return ret;
	e.attr.sample_period = 1;
	e.attr.sample_type = PERF_SAMPLE_RAW;
	e.each = true;
	if (asprintf(&e.name, "%s:%s", system, event) < 0) {
		e.name = NULL;
		ret = -ENOMEM;
	}
	if (!ret)
		ret = grammar_append(c->list, &e);
	if (ret)
		grammar_drop(&e);
	return ret;
}

/* Does @word:... name something that takes modifiers? Then it is no system of tracepoints. */
static bool takes_modifiers(const struct cursor *c, struct span word)
{
	uint64_t config;
	uint32_t type;

	if (grammar_symbol(word, &type, &config))
		return true;
	for (size_t i = 0; i < c->catalog->npmus; i++)
		if (catalog_event(&c->catalog->pmus[i], word))
			return true;
	return false;
}

#define TRACEPOINT_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_*?-."

static int tracepoint(struct cursor *c)
{
	struct span all = rest_of(c), system = {all.p, strspn(all.p, TRACEPOINT_LETTERS)}, event;
	char names[2][NAME_MAX_LEN], why[200] = "";
	size_t before = c->list->n;
	int ret;

	if (!system.n || all.p[system.n] != ':' || takes_modifiers(c, system))
		return 0;
	event.p = all.p + system.n + 1;
	event.n = strspn(event.p, TRACEPOINT_LETTERS);
	/* cycle:u is a mistyped name with a modifier, L1-dcache-loads:u a right one. */
	if (!event.n || (event.n <= 3 && strspn(event.p, "ukhGHIpPSDeW") >= event.n) ||
	    grammar_cache(c, system, &(uint64_t){0}) > 0)
		return 0;
	*c->err = (struct quipu_grammar_error){0};
	if (!copy_span(system, names[0], NAME_MAX_LEN) || !copy_span(event, names[1], NAME_MAX_LEN))
		return grammar_fail(c, all.p, "a tracepoint's name has at most %u letters",
				    NAME_MAX_LEN - 1);
	ret = c->catalog->kernel->tracepoints(c->catalog->kernel->arg, names[0], names[1],
					      found_tracepoint, c, why, sizeof(why));
	if (ret == -ENOMEM)
		return ret;
	if (ret || c->list->n == before)
		return grammar_fail(c, system.p, "%s",
				    *why ? why : "no tracepoint of this name or pattern");
	c->pos += system.n + 1 + event.n;
	return 1;
}

/* ---- probes ---- */

static const struct probe {
	const char *prefix, *pmu;
	bool file, returns;
} probes[] = {
	{"uprobe:", "uprobe", true, false},
	{"uretprobe:", "uprobe", true, true},
	{"kprobe:", "kprobe", false, false},
	{"kretprobe:", "kprobe", false, true},
};

/* FUNCTION, FUNCTION+OFFSET, or a number. */
static int split_offset(struct cursor *c, struct span *name, uint64_t *offset)
{
	const char *plus = memchr(name->p, '+', name->n);
	struct span number = *name;

	*offset = 0;
	if (plus) {
		number.p = plus + 1;
		number.n = (size_t)(name->p + name->n - number.p);
		name->n = (size_t)(plus - name->p);
		if (grammar_number(number, offset))
			return grammar_fail(c, number.p, "an offset is a number, decimal or 0x...");
	} else if (name->n && name->p[0] >= '0' && name->p[0] <= '9') {
		if (grammar_number(number, offset))
			return grammar_fail(c, number.p, "an offset is a number, decimal or 0x...");
		name->n = 0;
	}
	return 0;
}

static int probe_file(struct cursor *c, struct span file, struct span name, char *path,
		      uint64_t *offset)
{
	char symbol[NAME_MAX_LEN * 4], why[200] = "";
	uint64_t add;
	int ret;

	if (!copy_span(file, path, 4096) || !file.n)
		return grammar_fail(c, file.p, "a uprobe is written uprobe:FILE:FUNCTION");
	ret = split_offset(c, &name, &add);
	*offset = add;
	if (ret || !name.n)
		return ret;
	if (!copy_span(name, symbol, sizeof(symbol)))
		return grammar_fail(c, name.p, "the name of the function is too long");
	ret = c->catalog->kernel->symbol(c->catalog->kernel->arg, path, symbol, offset, why,
					 sizeof(why));
	if (ret)
		return grammar_fail(c, ret == -ESRCH ? name.p : file.p, "%s",
				    *why ? why : "the function cannot be found");
	*offset += add;
	return 0;
}

static int fill_probe(struct cursor *c, const struct probe *p, struct span body,
		      struct quipu_parsed *e)
{
	char path[4096];
	struct span name = body;
	uint64_t offset = 0;
	int ret;

	if (p->file) {
		const char *colon = memchr(body.p, ':', body.n);

		if (!colon)
			return grammar_fail(c, body.p, "a uprobe is written %sFILE:FUNCTION",
					    p->prefix);
		name.p = colon + 1;
		name.n = (size_t)(body.p + body.n - name.p);
		body.n = (size_t)(colon - body.p);
		ret = probe_file(c, body, name, path, &offset);
	} else {
		ret = split_offset(c, &name, &offset);
		if (!ret && !name.n)
			ret = grammar_fail(c, body.p, "a kprobe needs the name of a function");
		if (!ret && !copy_span(name, path, sizeof(path)))
			ret = grammar_fail(c, name.p, "the name of the function is too long");
	}
	if (ret)
		return ret;
	e->probe = strdup(path);
	if (!e->probe)
		return -ENOMEM;
	e->attr.config1 = (uintptr_t)e->probe;
	e->attr.config2 = offset;
	return 0;
}

static int probe(struct cursor *c, const struct probe *p)
{
	const struct quipu_catalog_pmu *pmu = quipu_catalog_find(c->catalog, p->pmu);
	const struct quipu_catalog_format *f;
	struct span body = {c->text + c->pos + strlen(p->prefix), 0};
	struct quipu_parsed e;
	int ret;

	if (!pmu)
		return grammar_fail(c, c->text + c->pos,
				    "this kernel makes no %ss for perf events (built without "
				    "CONFIG_%s)",
				    p->pmu, p->file ? "UPROBE_EVENTS" : "KPROBE_EVENTS");
	body.n = strcspn(body.p, p->file ? ":,{} \t\r\n" : "/:,{} \t\r\n");
	if (p->file &&
	    body.p[body.n] == ':') /* the function; what follows another colon modifies */
		body.n += 1 + strcspn(body.p + body.n + 1, ":,{} \t\r\n");
	ret = grammar_init(&e, pmu->type, 0);
	if (ret)
		return ret;
	f = catalog_format(pmu, (struct span){"retprobe", 8});
	e.attr.config = p->returns ? (f ? f->mask : 1) : 0;
	e.attr.sample_period = 1;
	e.each = true;
	e.pmu = strdup(pmu->name);
	ret = e.pmu ? fill_probe(c, p, body, &e) : -ENOMEM;
	if (!ret)
		ret = grammar_append(c->list, &e);
	if (ret) {
		grammar_drop(&e);
		return ret;
	}
	c->pos += strlen(p->prefix) + body.n;
	return 1;
}

int grammar_kernel_event(struct cursor *c)
{
	struct span s = rest_of(c);

	if (starts_with(s, "mem:"))
		return breakpoint(c);
	for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++)
		if (starts_with(s, probes[i].prefix))
			return probe(c, &probes[i]);
	return tracepoint(c);
}
