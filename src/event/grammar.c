// SPDX-License-Identifier: BSD-2-Clause
/*
 * The event grammar: lists, groups, modifiers, and which PMU a name means (language of perf 6.1;
 * perf ABI sheet A6, B2, B3). Two bends of perf's parser are not copied: a group that is never
 * closed is refused, and a colon before the modifiers of `pmu/.../` is taken. Groups do not nest,
 * so the parser is a pair of loops and has no depth.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/grammar_internal.h"

#define EXCLUDE_RINGS (QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV)
#define EXCLUDE_GH    (QUIPU_ATTR_EXCLUDE_GUEST | QUIPU_ATTR_EXCLUDE_HOST)

static bool is_space(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

static void skip_space(struct cursor *c)
{
	while (c->pos < c->len && is_space(c->text[c->pos]))
		c->pos++;
}

static char peek(const struct cursor *c)
{
	return c->pos < c->len ? c->text[c->pos] : '\0';
}

static bool is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

void grammar_drop(struct quipu_parsed *e)
{
	free(e->probe);
	free(e->name);
	free(e->pmu);
	free(e->unit);
	free(e->cpus);
}

int grammar_append(struct quipu_event_list *list, struct quipu_parsed *e)
{
	/* Room doubles each time the number reaches a power of two. */
	if (!(list->n & (list->n - 1))) {
		struct quipu_parsed *grown =
			realloc(list->items, (list->n ? 2 * list->n : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->items = grown;
	}
	e->leader = list->n;
	e->members = 1;
	e->term = list->terms;
	list->items[list->n++] = *e;
	return 0;
}

int grammar_init(struct quipu_parsed *e, uint32_t type, uint64_t config)
{
	*e = (struct quipu_parsed){
		.attr = {.type = type,
			 .size = sizeof(struct quipu_attr),
			 .config = config,
			 .flags = QUIPU_ATTR_EXCLUDE_GUEST},
		.scale = 1,
	};
	e->unit = strdup("");
	return e->unit ? 0 : -ENOMEM;
}

/* The first of the rings u, k, h excludes the others; the next ones take theirs back. G and H
 * alike. */
static void narrow(uint64_t *flags, uint64_t all, uint64_t keep, bool *narrowed)
{
	if (!*narrowed)
		*flags |= all;
	*narrowed = true;
	*flags &= ~keep;
}

/* Letters were checked by read_modifiers. @group: they stand behind a group, its leader takes D and
 * e alone. */
static void apply_modifiers(struct quipu_parsed *e, struct span mods, bool group, bool leader)
{
	uint64_t f = e->attr.flags;
	unsigned precise = (unsigned)((f & QUIPU_ATTR_PRECISE_MASK) >> QUIPU_ATTR_PRECISE_SHIFT);
	bool rings = f & EXCLUDE_RINGS;
	bool sides = e->guest_host;
	unsigned added = 0;

	if (!mods.n)
		return;
	if (!group)
		f &= ~QUIPU_ATTR_EXCLUDE_GUEST;
	for (size_t i = 0; i < mods.n; i++) {
		switch (mods.p[i]) {
		case 'u':
			narrow(&f, EXCLUDE_RINGS, QUIPU_ATTR_EXCLUDE_USER, &rings);
			f |= sides ? 0 : QUIPU_ATTR_EXCLUDE_GUEST; /* user level of this machine,
								      not of its guests */
			break;
		case 'k': narrow(&f, EXCLUDE_RINGS, QUIPU_ATTR_EXCLUDE_KERNEL, &rings); break;
		case 'h': narrow(&f, EXCLUDE_RINGS, QUIPU_ATTR_EXCLUDE_HV, &rings); break;
		case 'G': narrow(&f, EXCLUDE_GH, QUIPU_ATTR_EXCLUDE_GUEST, &sides); break;
		case 'H': narrow(&f, EXCLUDE_GH, QUIPU_ATTR_EXCLUDE_HOST, &sides); break;
		case 'I': f |= QUIPU_ATTR_EXCLUDE_IDLE; break;
		case 'p':
			added++;
			f |= sides ? 0 : QUIPU_ATTR_EXCLUDE_GUEST;
			break;
		case 'P': e->precise_max = true; break;
		case 'S': e->sample_read = true; break;
		case 'W': e->weak = true; break;
		case 'D': f |= leader ? QUIPU_ATTR_PINNED : 0; break;
		case 'e': f |= leader ? QUIPU_ATTR_EXCLUSIVE : 0; break;
		}
	}
	precise = precise + added > 3 ? 3 : precise + added;
	f &= ~QUIPU_ATTR_PRECISE_MASK;
	f |= (uint64_t)precise << QUIPU_ATTR_PRECISE_SHIFT;
	e->guest_host = sides;
	e->attr.flags = f;
}

/* Letters from the cursor on. */
static int read_modifiers(struct cursor *c, struct span *mods)
{
	unsigned precise = 0;

	mods->p = c->text + c->pos;
	mods->n = 0;
	while (is_letter(peek(c))) {
		char ch = peek(c);

		if (ch == 'b')
			return grammar_fail(c, c->text + c->pos,
					    "modifier 'b' (counted by BPF) is not served by quipu");
		if (!strchr("ukhGHIpPSDeW", ch))
			return grammar_fail(c, c->text + c->pos,
					    "unknown modifier '%c'; known: u k h G H I p P S D e W",
					    ch);
		if (ch == 'p' && ++precise > 3)
			return grammar_fail(c, c->text + c->pos,
					    "at most three 'p': precise_ip goes up to 3");
		if (ch != 'p' && memchr(mods->p, ch, mods->n))
			return grammar_fail(c, c->text + c->pos, "modifier '%c' is given twice",
					    ch);
		mods->n++;
		c->pos++;
	}
	return 0;
}

/* Is @name the PMU @word with a number behind it: foo0, foo_1? A leading "uncore_" may be left out.
 */
static bool numbered(struct span word, const char *name)
{
	if (!strncmp(name, "uncore_", 7) && (word.n < 7 || strncmp(word.p, "uncore_", 7)))
		name += 7;
	if (strncmp(name, word.p, word.n))
		return false;
	name += word.n;
	if (*name == '_')
		name++;
	return name[strspn(name, "0123456789")] == '\0';
}

/* '*' and '?' only, without recursion: the pattern is the user's. */
bool grammar_glob(struct span pattern, const char *name)
{
	const char *retry = NULL;
	size_t p = 0, star = SIZE_MAX;

	while (*name) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			retry = name;
		} else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == *name)) {
			p++;
			name++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

static bool has_glob(struct span word)
{
	return memchr(word.p, '*', word.n) || memchr(word.p, '?', word.n);
}

/* One event of @pmu; @terms NULL: none were given. */
static int add_pmu_event(struct cursor *c, const struct quipu_catalog_pmu *pmu,
			 const struct span *terms)
{
	struct quipu_parsed e;
	int ret = grammar_init(&e, pmu->type, 0);

	if (ret)
		return ret;
	e.pmu = strdup(pmu->name);
	if (pmu->cpus && *pmu->cpus)
		e.cpus = strdup(pmu->cpus);
	e.uncore = pmu->uncore;
	if (!e.pmu || (pmu->cpus && *pmu->cpus && !e.cpus))
		ret = -ENOMEM;
	if (!ret && terms)
		ret = grammar_terms(c, *terms, pmu, &e);
	if (!ret)
		ret = grammar_append(c->list, &e);
	if (ret)
		grammar_drop(&e);
	return ret;
}

static int unknown_pmu(struct cursor *c, struct span word)
{
	struct nearest near;

	nearest_init(&near, word);
	for (size_t i = 0; i < c->catalog->npmus; i++)
		nearest_offer(&near, c->catalog->pmus[i].name);
	nearest_store(&near, c->err);
	return grammar_fail(c, word.p, "this machine has no PMU '%.*s'",
			    (int)(word.n < 64 ? word.n : 64), word.p);
}

/* `word/terms/`: the PMU of that name, else all that carry it with a number or match the pattern.
 */
static int add_pmu(struct cursor *c, struct span word, const struct span *terms)
{
	struct quipu_grammar_error first = {0};
	size_t matched = 0, made = 0;

	for (size_t i = 0; i < c->catalog->npmus; i++)
		if (span_is(word, c->catalog->pmus[i].name))
			return add_pmu_event(c, &c->catalog->pmus[i], terms);
	for (size_t i = 0; i < c->catalog->npmus; i++)
		if (c->catalog->pmus[i].alias && span_is(word, c->catalog->pmus[i].alias))
			return add_pmu_event(c, &c->catalog->pmus[i], terms);
	for (size_t i = 0; word.n && i < c->catalog->npmus; i++) {
		const struct quipu_catalog_pmu *pmu = &c->catalog->pmus[i];
		int ret;

		if (has_glob(word) ? !grammar_glob(word, pmu->name) : !numbered(word, pmu->name))
			continue;
		ret = add_pmu_event(c, pmu, terms);
		if (ret == -ENOMEM)
			return ret;
		if (ret && !matched)
			first = *c->err;
		matched++;
		made += !ret;
	}
	if (!matched)
		return unknown_pmu(c, word);
	if (!made) {
		*c->err = first;
		return -EINVAL;
	}
	*c->err = (struct quipu_grammar_error){0};
	for (size_t i = c->list->n - made; made > 1 && i < c->list->n; i++)
		c->list->items[i].merge = true;
	return 0;
}

/*
 * A machine with core PMUs of several kinds counts a generic event once on each of them: the kernel
 * takes the PMU's type in the upper half of config. A raw code is of the PMU itself.
 */
static int add_hybrid(struct cursor *c, const struct quipu_catalog_pmu *pmu, uint32_t type,
		      uint64_t config, struct span word, const struct span *terms)
{
	struct quipu_parsed e;
	int ret = type == PERF_TYPE_RAW
			  ? grammar_init(&e, pmu->type, config)
			  : grammar_init(&e, type, config | (uint64_t)pmu->type << 32);

	if (ret)
		return ret;
	e.pmu = strdup(pmu->name);
	e.cpus = strdup(pmu->cpus);
	if (!e.pmu || !e.cpus)
		ret = -ENOMEM;
	if (!ret && terms && terms->n)
		ret = grammar_terms(c, *terms, NULL, &e);
	if (!ret && !e.name && asprintf(&e.name, "%s/%.*s/", pmu->name, (int)word.n, word.p) < 0) {
		e.name = NULL;
		ret = -ENOMEM;
	}
	if (!ret)
		ret = grammar_append(c->list, &e);
	if (ret)
		grammar_drop(&e);
	return ret;
}

static int add_generic(struct cursor *c, uint32_t type, uint64_t config, struct span word,
		       const struct span *terms)
{
	bool core =
		type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW;
	struct quipu_parsed e;
	bool hybrid = false;
	int ret = 0;

	for (size_t i = 0; core && i < c->catalog->npmus && !ret; i++) {
		if (!quipu_catalog_hybrid(&c->catalog->pmus[i]))
			continue;
		ret = add_hybrid(c, &c->catalog->pmus[i], type, config, word, terms);
		hybrid = true;
	}
	if (hybrid)
		return ret;
	ret = grammar_init(&e, type, config);
	if (!ret && terms && terms->n)
		ret = grammar_terms(c, *terms, NULL, &e);
	if (!ret)
		ret = grammar_append(c->list, &e);
	if (ret)
		grammar_drop(&e);
	return ret;
}

/* The event of that name of every PMU that has one. -ENOENT: none has. */
static int add_named(struct cursor *c, struct span word)
{
	size_t made = 0;

	for (size_t i = 0; i < c->catalog->npmus; i++) {
		int ret;

		if (!catalog_event(&c->catalog->pmus[i], word))
			continue;
		ret = add_pmu_event(c, &c->catalog->pmus[i], &word);
		if (ret)
			return ret;
		made++;
	}
	for (size_t i = c->list->n - made; made > 1 && i < c->list->n; i++)
		c->list->items[i].merge = true;
	return made ? 0 : -ENOENT;
}

static bool raw_code(struct span word, uint64_t *config)
{
	char text[20] = {0};

	if (word.n < 2 || word.n > 17 || word.p[0] != 'r')
		return false;
	memcpy(text, word.p + 1, word.n - 1);
	if (text[strspn(text, "0123456789abcdefABCDEF")])
		return false;
	*config = strtoull(text, NULL, 16);
	return true;
}

/* Words of perf that mean something which is no event of a machine. */
static const struct {
	const char *word;
	const char *reason;
} elsewhere[] = {
	{"mem", "breakpoints belong to the host: a modelled machine has none"},
	{"duration_time",
	 "a clock of perf's own; the seconds elapsed are printed below the counts"},
	{"user_time", "a clock of perf's own; count task-clock instead"},
	{"system_time", "a clock of perf's own; count task-clock instead"},
};

static int unknown_event(struct cursor *c, struct span word)
{
	int shown = (int)(word.n < 64 ? word.n : 64);
	struct nearest near;

	if (!word.n && !peek(c))
		return grammar_fail(c, word.p, "an event name is missing at the end");
	if (!word.n)
		return grammar_fail(c, word.p, "an event name is missing before '%c'", peek(c));
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (span_is(word, elsewhere[i].word))
			return grammar_fail(c, word.p, "%s", elsewhere[i].reason);
	if (catalog_has(c->catalog, word))
		return grammar_fail(c, word.p, "'%.*s' is a PMU: write %.*s/EVENT/", shown, word.p,
				    shown, word.p);
	nearest_init(&near, word);
	nearest_offer_events(&near, c->catalog);
	nearest_store(&near, c->err);
	if (word.p[0] == 'r' && word.n > 17 &&
	    word.p[1 + strspn(word.p + 1, "0123456789abcdefABCDEF")] == '\0')
		return grammar_fail(c, word.p, "a raw code has at most 16 hexadecimal digits");
	return grammar_fail(c, word.p,
			    "unknown event '%.*s'; `quipu list` shows the events of the machine",
			    shown, word.p);
}

/* A word without a slash behind it, or a generic name with terms. */
static int add_word(struct cursor *c, struct span word, const struct span *terms)
{
	struct nearest near;
	uint32_t type;
	uint64_t config;
	int cache, ret;

	if (grammar_symbol(word, &type, &config))
		return add_generic(c, type, config, word, terms);
	cache = grammar_cache(c, word, &config);
	if (cache > 0)
		return add_generic(c, PERF_TYPE_HW_CACHE, config, word, terms);
	if (terms)
		return add_pmu(c, word, terms->n ? terms : NULL);
	ret = add_named(c, word);
	if (ret != -ENOENT)
		return ret;
	if (raw_code(word, &config))
		return add_generic(c, PERF_TYPE_RAW, config, word, NULL);
	if (!cache)
		return unknown_event(c, word);
	nearest_init(&near, word);
	nearest_offer_events(&near, c->catalog);
	nearest_store(&near, c->err);
	return cache;
}

/* The end of the terms that begin at @from: the next slash outside quotes, or SIZE_MAX. */
static size_t closing_slash(const struct cursor *c, size_t from)
{
	bool quoted = false;

	for (size_t i = from; i < c->len; i++) {
		if (c->text[i] == '\'')
			quoted = !quoted;
		else if (c->text[i] == '/' && !quoted)
			return i;
	}
	return SIZE_MAX;
}

/* After the name: `:mods`, or the letters that follow a slash at once. */
static int event_modifiers(struct cursor *c, struct span word, bool slash, struct span *mods)
{
	size_t colon = c->pos;

	*mods = (struct span){c->text + c->pos, 0};
	if (peek(c) == ':')
		c->pos++;
	else if (!slash)
		return 0;
	if (!slash && c->pos > colon && memchr(word.p, '*', word.n))
		return grammar_fail(c, word.p, "a pattern needs its PMU: write PMU*/EVENT/");
	return read_modifiers(c, mods);
}

static int name_items(struct cursor *c, size_t first, size_t start)
{
	struct span typed = {c->text + start, c->pos - start};

	while (typed.n && is_space(typed.p[typed.n - 1]))
		typed.n--;
	for (size_t i = first; i < c->list->n; i++) {
		if (c->list->items[i].name)
			continue;
		c->list->items[i].name = span_dup(typed);
		if (!c->list->items[i].name)
			return -ENOMEM;
	}
	return 0;
}

/* The modifiers behind the events from @first on, and their names. */
static int finish_event(struct cursor *c, struct span word, bool slash, size_t start, size_t first)
{
	struct span mods;
	int ret = event_modifiers(c, word, slash, &mods);

	if (ret)
		return ret;
	for (size_t i = first; i < c->list->n; i++)
		apply_modifiers(&c->list->items[i], mods, false, true);
	ret = name_items(c, first, start);
	c->list->terms++;
	return ret;
}

/* `subsystem:event` looks like a word with modifiers; say what it is. */
static bool looks_like_tracepoint(const struct cursor *c, struct span word)
{
	const char *p = word.p + word.n;
	uint32_t type;
	uint64_t config;

	if (!word.n || *p != ':' || !is_letter(p[1]) || grammar_symbol(word, &type, &config))
		return false;
	for (size_t i = 0; i < c->catalog->npmus; i++)
		if (catalog_event(&c->catalog->pmus[i], word))
			return false;
	return !raw_code(word, &config) && strcspn(p + 1, ",{} /") > strspn(p + 1, "ukhGHIpPSDeW");
}

static int parse_event(struct cursor *c)
{
	size_t start = c->pos, first = c->list->n, end = 0;
	struct span word = {c->text + c->pos, 0}, terms;
	bool slash;
	int ret = c->catalog->kernel ? grammar_kernel_event(c) : 0;

	if (ret < 0)
		return ret;
	if (ret)
		return finish_event(c, (struct span){c->text + start, c->pos - start}, false, start,
				    first);
	word.n = strcspn(word.p, ",{}/: \t\r\n");
	c->pos += word.n;
	slash = peek(c) == '/';
	if (slash) {
		end = closing_slash(c, c->pos + 1);
		if (end == SIZE_MAX)
			return grammar_fail(c, c->text + c->len,
					    "the terms of '%.*s/' are not closed: a '/' is missing",
					    (int)(word.n < 64 ? word.n : 64), word.p);
		terms = (struct span){c->text + c->pos + 1, end - c->pos - 1};
		if (!word.n)
			return grammar_fail(c, word.p, "a PMU name is missing before '/'");
	}
	if (!slash && looks_like_tracepoint(c, word))
		return grammar_fail(
			c, word.p,
			"tracepoints belong to the host's kernel: a modelled machine has none");
	ret = add_word(c, word, slash ? &terms : NULL);
	if (ret)
		return ret;
	if (slash)
		c->pos = end + 1;
	else
		c->pos = start + word.n;
	return finish_event(c, word, slash, start, first);
}

/*
 * Who leads whom. The instances that a wildcard made belong to different PMUs, which cannot share a
 * group: each PMU's members form their own, as perf does for uncore PMUs.
 */
static void set_leaders(struct quipu_event_list *list, size_t first)
{
	for (size_t i = first; i < list->n; i++) {
		struct quipu_parsed *e = &list->items[i];
		size_t leader = first;

		while (e->merge && leader < i &&
		       !(list->items[leader].merge && !strcmp(list->items[leader].pmu, e->pmu)))
			leader++;
		e->leader = leader;
		if (leader != i) {
			e->members = 1;
			list->items[leader].members++;
		}
	}
}

static int parse_group(struct cursor *c)
{
	size_t first = c->list->n;
	struct span mods = {c->text, 0};
	int ret;

	c->pos += strcspn(c->text + c->pos, "{") + 1;
	for (;;) {
		skip_space(c);
		if (peek(c) == '{')
			return grammar_fail(c, c->text + c->pos, "groups do not nest");
		ret = parse_event(c);
		if (ret)
			return ret;
		skip_space(c);
		if (peek(c) != ',')
			break;
		c->pos++;
	}
	if (peek(c) == '\0')
		return grammar_fail(c, c->text + c->pos,
				    "the group is not closed: a '}' is missing");
	if (peek(c) != '}')
		return grammar_fail(c, c->text + c->pos, "unexpected '%c' in a group", peek(c));
	c->pos++;
	if (peek(c) == ':') {
		c->pos++;
		ret = read_modifiers(c, &mods);
		if (ret)
			return ret;
	}
	set_leaders(c->list, first);
	for (size_t i = first; i < c->list->n; i++)
		apply_modifiers(&c->list->items[i], mods, true, c->list->items[i].leader == i);
	return 0;
}

/* A group may have a name before its brace: `mine{a,b}`. */
static bool at_group(const struct cursor *c)
{
	const char *p = c->text + c->pos;

	return p[strcspn(p, ",{}/: \t\r\n")] == '{';
}

static int parse_list(struct cursor *c)
{
	for (;;) {
		int ret;

		skip_space(c);
		ret = at_group(c) ? parse_group(c) : parse_event(c);
		if (ret)
			return ret;
		skip_space(c);
		if (c->pos == c->len)
			return 0;
		if (peek(c) != ',')
			return grammar_fail(c, c->text + c->pos,
					    "unexpected '%c': events are separated by commas",
					    peek(c));
		c->pos++;
	}
}

bool catalog_has(const struct quipu_catalog *catalog, struct span word)
{
	for (size_t i = 0; i < catalog->npmus; i++)
		if (span_is(word, catalog->pmus[i].name))
			return true;
	return false;
}

static void cut_list(struct quipu_event_list *list, size_t n)
{
	while (list->n > n)
		grammar_drop(&list->items[--list->n]);
}

int quipu_grammar_parse(const struct quipu_catalog *catalog, const char *text,
			struct quipu_event_list *list, struct quipu_grammar_error *err)
{
	struct quipu_grammar_error unused;
	struct cursor c = {
		.catalog = catalog, .text = text, .list = list, .err = err ? err : &unused};
	size_t n = list->n, terms = list->terms;
	int ret;

	*c.err = (struct quipu_grammar_error){0};
	c.len = strnlen(text, QUIPU_GRAMMAR_MAX + 1);
	if (c.len > QUIPU_GRAMMAR_MAX)
		ret = grammar_fail(&c, text, "the event string is longer than %u bytes",
				   QUIPU_GRAMMAR_MAX);
	else
		ret = parse_list(&c);
	if (ret) {
		cut_list(list, n);
		list->terms = terms;
	}
	return ret;
}

bool quipu_grammar_all_generic(const char *text)
{
	struct quipu_grammar_error unused;
	struct cursor c = {.text = text, .err = &unused};

	for (;;) {
		struct span word;
		uint32_t type;
		uint64_t config;

		text += strspn(text, ",{} \t\r\n");
		word = (struct span){text, strcspn(text, ",{}/: \t\r\n")};
		if (!word.n && *text != ':')
			return !*text;
		if (word.n && !grammar_symbol(word, &type, &config) &&
		    grammar_cache(&c, word, &config) <= 0)
			return false;
		text += word.n;
		if (*text == ':')
			text += 1 + strspn(text + 1, "ukhGHIpPSDeW");
		if (*text && !strchr(",{} \t\r\n", *text))
			return false; /* terms, or a mistake */
	}
}

void quipu_event_list_free(struct quipu_event_list *list)
{
	cut_list(list, 0);
	free(list->items);
	*list = (struct quipu_event_list){0};
}

#define SHOWN_BEFORE 40u /* bytes of a long string before the column, and after it */
#define SHOWN_AFTER  40u

int quipu_grammar_explain(const char *text, const struct quipu_grammar_error *err, char *buf,
			  size_t len)
{
	static const char head[] = "event syntax error: '";
	size_t n = strnlen(text, QUIPU_GRAMMAR_MAX);
	size_t column = err->column < n ? err->column : n;
	size_t from = column > SHOWN_BEFORE ? column - SHOWN_BEFORE : 0;
	size_t to = n - column > SHOWN_AFTER ? column + SHOWN_AFTER : n;
	char shown[SHOWN_BEFORE + SHOWN_AFTER + 1];
	size_t caret = sizeof(head) - 1 + (from ? 2 : 0) + (column - from);

	for (size_t i = from; i < to; i++)
		shown[i - from] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	shown[to - from] = '\0';
	return snprintf(buf, len, "%s%s%s%s'\n%*s^\n%s%s%s%s\n", head, from ? ".." : "", shown,
			to < n ? ".." : "", (int)caret, "", err->reason,
			err->suggestion[0] ? "; did you mean '" : "", err->suggestion,
			err->suggestion[0] ? "'?" : "");
}
