// SPDX-License-Identifier: BSD-2-Clause
/* DMA traces, text and binary: README.md beside this file. Any bytes may come in; what is wrong is
 * said, never guessed. */
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>

#include "engine/dma/trace.h"

#define MAX_FIELDS 10
#define MAX_LINE   512u

/* ---- fields of a line ---- */

struct fields {
	char text[MAX_LINE];
	const char *field[MAX_FIELDS];
	unsigned n;
};

static bool split(const char *line, size_t len, struct fields *f)
{
	char *p = f->text;

	if (len >= MAX_LINE)
		return false;
	memcpy(f->text, line, len);
	f->text[len] = '\0';
	f->n = 0;
	if (strlen(f->text) != len)
		return false;
	for (;;) {
		p += strspn(p, " \t\r");
		if (!*p || *p == '#')
			return true;
		if (f->n == MAX_FIELDS)
			return false;
		f->field[f->n++] = p;
		p += strcspn(p, " \t\r");
		if (!*p)
			return true;
		*p++ = '\0';
	}
}

/* A number in C syntax: decimal, 0x, or octal with a leading 0; nothing before or behind it. */
static bool number(const char *s, uint64_t most, uint64_t *value)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	} else if (s[0] == '0' && s[1]) {
		base = 8;
		s++;
	}
	if (!*s)
		return false;
	for (; *s; s++) {
		unsigned digit = *s >= '0' && *s <= '9'	  ? (unsigned)(*s - '0')
				 : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a') + 10
				 : *s >= 'A' && *s <= 'F' ? (unsigned)(*s - 'A') + 10
							  : 16;

		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	*value = v;
	return v <= most;
}

static bool pasid(const char *s, int32_t *out)
{
	uint64_t v;

	*out = -1;
	if (!strcmp(s, "-"))
		return true;
	if (!number(s, 0xfffff, &v))
		return false;
	*out = (int32_t)v;
	return true;
}

static bool rid(const char *s, uint16_t *out)
{
	uint64_t v;

	if (!number(s, 0xffff, &v))
		return false;
	*out = (uint16_t)v;
	return true;
}

/* Index of the single letter @s in @letters. */
static bool letter(const char *s, const char *letters, uint8_t *out)
{
	const char *p = s[0] && !s[1] ? strchr(letters, s[0]) : NULL;

	if (!p)
		return false;
	*out = (uint8_t)(p - letters);
	return true;
}

/* Each of @letters at most once; bit i: the i-th is there. "-" is none. */
static bool letters(const char *s, const char *set, unsigned *out)
{
	*out = 0;
	if (!strcmp(s, "-"))
		return true;
	for (; *s; s++) {
		const char *p = strchr(set, *s);

		if (!p || (*out >> (p - set) & 1))
			return false;
		*out |= 1u << (p - set);
	}
	return true;
}

/* "7", or "0x3a00:5" for the tables of a requester and PASID. */
static bool target(const char *s, struct dma_record *r)
{
	char copy[32];
	const char *colon = strchr(s, ':');
	size_t n = colon ? (size_t)(colon - s) : 0;

	if (!colon)
		return rid(s, &r->did);
	if (n >= sizeof(copy))
		return false;
	memcpy(copy, s, n);
	copy[n] = '\0';
	r->by_pasid = true;
	return rid(copy, &r->rid) && pasid(colon + 1, &r->pasid);
}

/* ---- records ---- */

static bool parse_dma(const struct fields *f, struct dma_record *r)
{
	return rid(f->field[2], &r->rid) && pasid(f->field[3], &r->pasid) &&
	       letter(f->field[4], "UTX", &r->at) && letter(f->field[5], "RWAZ", &r->op) &&
	       number(f->field[6], UINT64_MAX, &r->addr) &&
	       number(f->field[7], UINT32_MAX, &r->size);
}

static bool parse_msi(const struct fields *f, struct dma_record *r)
{
	return rid(f->field[2], &r->rid) && number(f->field[3], UINT64_MAX, &r->addr) &&
	       number(f->field[4], UINT32_MAX, &r->data);
}

static bool parse_prq(const struct fields *f, struct dma_record *r)
{
	uint64_t group, last;
	unsigned perms;

	if (!rid(f->field[2], &r->rid) || !pasid(f->field[3], &r->pasid) ||
	    !number(f->field[4], UINT64_MAX, &r->addr) || !letters(f->field[5], "rwxp", &perms) ||
	    !number(f->field[6], 511, &group) || !number(f->field[7], 1, &last))
		return false;
	r->r = perms & 1;
	r->w = perms & 2;
	r->x = perms & 4;
	r->priv = perms & 8;
	r->group = (uint16_t)group;
	r->last = last;
	return true;
}

static bool parse_map(const struct fields *f, struct dma_record *r)
{
	unsigned prot;

	if (!target(f->field[2], r) || !number(f->field[3], UINT64_MAX, &r->addr) ||
	    !number(f->field[4], UINT64_MAX, &r->pa) ||
	    !number(f->field[5], UINT64_MAX, &r->size) || !letters(f->field[6], "rw", &prot))
		return false;
	r->r = prot & 1;
	r->w = prot & 2;
	return true;
}

static bool parse_unmap(const struct fields *f, struct dma_record *r)
{
	return target(f->field[2], r) && number(f->field[3], UINT64_MAX, &r->addr) &&
	       number(f->field[4], UINT64_MAX, &r->size);
}

static bool parse_inv(const struct fields *f, struct dma_record *r)
{
	for (unsigned i = 2; i < f->n; i++)
		if (!number(f->field[i], UINT64_MAX, &r->qw[i - 2]))
			return false;
	return true;
}

static bool parse_reg(const struct fields *f, struct dma_record *r)
{
	uint64_t offset, width;

	if (!number(f->field[2], UINT32_MAX, &offset) || !number(f->field[3], 8, &width) ||
	    !number(f->field[4], UINT64_MAX, &r->data))
		return false;
	r->offset = (uint32_t)offset;
	r->width = (uint32_t)width;
	return width == 4 || width == 8;
}

static bool parse_attach(const struct fields *f, struct dma_record *r)
{
	return rid(f->field[2], &r->rid) && pasid(f->field[3], &r->pasid) &&
	       rid(f->field[4], &r->did);
}

static const struct {
	const char *name;
	enum dma_record_kind kind;
	unsigned least, most; /* fields, with name and time */
	bool (*parse)(const struct fields *, struct dma_record *);
	const char *usage;
} kinds[] = {
	{"dma", DMA_RECORD_DMA, 8, 8, parse_dma, "dma TIME RID PASID|- U|T|X R|W|A|Z ADDR SIZE"},
	{"msi", DMA_RECORD_MSI, 5, 5, parse_msi, "msi TIME RID ADDR DATA"},
	{"prq", DMA_RECORD_PRQ, 8, 8, parse_prq, "prq TIME RID PASID|- ADDR rwxp GROUP LAST"},
	{"map", DMA_RECORD_MAP, 7, 7, parse_map, "map TIME DID|RID:PASID IOVA PA SIZE rw"},
	{"unmap", DMA_RECORD_UNMAP, 5, 5, parse_unmap, "unmap TIME DID|RID:PASID IOVA SIZE"},
	{"inv", DMA_RECORD_INV, 4, 6, parse_inv, "inv TIME QW0 QW1 [QW2 QW3]"},
	{"reg", DMA_RECORD_REG, 5, 5, parse_reg, "reg TIME OFFSET 4|8 VALUE"},
	{"attach", DMA_RECORD_ATTACH, 5, 5, parse_attach, "attach TIME RID PASID|- DID"},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

int dma_trace_line(const char *line, size_t len, struct dma_record *r, const char **why)
{
	struct fields f;

	*why = "longer than a line of a trace can be, or no text";
	if (!split(line, len, &f))
		return -EINVAL;
	if (!f.n)
		return 0;
	*why = "no record: dma, msi, prq, map, unmap, inv, reg or attach";
	for (size_t i = 0; i < NKINDS; i++) {
		if (strcmp(f.field[0], kinds[i].name))
			continue;
		*r = (struct dma_record){.kind = kinds[i].kind, .pasid = -1};
		*why = kinds[i].usage;
		if (f.n < kinds[i].least || f.n > kinds[i].most ||
		    !number(f.field[1], UINT64_MAX, &r->time))
			return -EINVAL;
		return kinds[i].parse(&f, r) ? 1 : -EINVAL;
	}
	return -EINVAL;
}

bool dma_trace_is_text(const void *bytes, size_t len)
{
	static const char first[] = "# quipu-dma 1";
	size_t n = sizeof(first) - 1;

	return len >= n && !memcmp(bytes, first, n) &&
	       (len == n || strchr(" \t\r\n", ((const char *)bytes)[n]));
}

/* ---- binary ---- */

#define NO_PASID   bits_one(31)
#define F_BY_PASID bits_one(16) /* above the domain id */
#define F_LAST	   bits_one(17)
#define F_GROUP(g) ((uint32_t)(g) << 18)
#define F_PERMS(p) ((uint32_t)(p) << 27)

static void put(uint8_t *p, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

bool dma_trace_is_binary(const void *bytes, size_t len)
{
	return len >= DMA_BINARY_HEADER && !memcmp(bytes, "QDMA", 4) &&
	       bits_le32((const uint8_t *)bytes + 4) == 1;
}

void dma_trace_encode_header(uint8_t bytes[DMA_BINARY_HEADER])
{
	memset(bytes, 0, DMA_BINARY_HEADER);
	memcpy(bytes, "QDMA", 4);
	put(bytes + 4, 1, 4);
}

void dma_trace_encode(const struct dma_record *r, uint8_t bytes[DMA_BINARY_RECORD])
{
	uint64_t addr = r->addr, aux = r->pa, size = r->size;
	unsigned perms = r->r | r->w << 1 | r->x << 2 | r->priv << 3;

	if (r->kind == DMA_RECORD_MSI || r->kind == DMA_RECORD_REG)
		aux = r->data;
	if (r->kind == DMA_RECORD_INV) {
		addr = r->qw[0];
		aux = r->qw[1];
	}
	if (r->kind == DMA_RECORD_REG) {
		addr = r->offset;
		size = r->width;
	}
	/* Mappings are of pages: their size is counted in these. */
	if (r->kind == DMA_RECORD_MAP || r->kind == DMA_RECORD_UNMAP)
		size = r->size / QUIPU_VTD_PAGE;
	put(bytes, r->time, 8);
	put(bytes + 8, addr, 8);
	put(bytes + 16, aux, 8);
	put(bytes + 24, size, 4);
	put(bytes + 28, r->pasid < 0 ? NO_PASID : (uint32_t)r->pasid, 4);
	put(bytes + 32, r->rid, 2);
	bytes[34] = (uint8_t)r->kind;
	bytes[35] = (uint8_t)(r->op << 4 | r->at);
	put(bytes + 36,
	    r->did | (r->by_pasid ? F_BY_PASID : 0) | (r->last ? F_LAST : 0) |
		    F_GROUP(r->group & 0x1ff) | F_PERMS(perms),
	    4);
}

int dma_trace_record(const uint8_t bytes[DMA_BINARY_RECORD], struct dma_record *r, const char **why)
{
	uint32_t who = bits_le32(bytes + 28), flags = bits_le32(bytes + 36),
		 size = bits_le32(bytes + 24);
	unsigned kind = bytes[34], perms = flags >> 27 & 0xf;

	*why = "no such kind of record";
	if (kind < DMA_RECORD_DMA || kind > DMA_RECORD_ATTACH)
		return -EINVAL;
	*why = "a PASID has 20 bits, an address type is 0 to 2, an operation 0 to 3, a register 4 "
	       "or 8 bytes wide";
	if (!(who & NO_PASID) && who > 0xfffff)
		return -EINVAL;
	if ((bytes[35] & 0xf) > QUIPU_VTD_TRANSLATED || bytes[35] >> 4 > QUIPU_VTD_ZERO_READ)
		return -EINVAL;
	if (kind == DMA_RECORD_REG && size != 4 && size != 8)
		return -EINVAL;
	*r = (struct dma_record){
		.kind = (enum dma_record_kind)kind,
		.time = bits_le64(bytes),
		.rid = bits_le16(bytes + 32),
		.pasid = who & NO_PASID ? -1 : (int32_t)who,
		.by_pasid = flags & F_BY_PASID,
		.did = (uint16_t)flags,
		.at = bytes[35] & 0xf,
		.op = bytes[35] >> 4,
		.r = perms & 1,
		.w = perms & 2,
		.x = perms & 4,
		.priv = perms & 8,
		.last = flags & F_LAST,
		.group = flags >> 18 & 0x1ff,
		.addr = bits_le64(bytes + 8),
		.size = size,
		.pa = bits_le64(bytes + 16),
		.qw = {bits_le64(bytes + 8), bits_le64(bytes + 16)},
		.data = bits_le64(bytes + 16),
		.offset = (uint32_t)bits_le64(bytes + 8),
		.width = size,
	};
	if (kind == DMA_RECORD_MAP || kind == DMA_RECORD_UNMAP)
		r->size = (uint64_t)size * QUIPU_VTD_PAGE;
	return 0;
}

/* ---- a whole one ---- */

int dma_cursor_open(struct dma_cursor *c, const void *bytes, size_t len)
{
	*c = (struct dma_cursor){.bytes = bytes, .len = len};
	c->binary = dma_trace_is_binary(bytes, len);
	if (!c->binary && !dma_trace_is_text(bytes, len))
		return -EINVAL;
	if (c->binary)
		c->at = DMA_BINARY_HEADER;
	return 0;
}

static int next_binary(struct dma_cursor *c, struct dma_record *r, const char **why)
{
	const uint8_t *record = c->bytes + c->at;

	if (c->at == c->len)
		return 0;
	c->where++;
	*why = "it ends inside this record";
	if (c->len - c->at < DMA_BINARY_RECORD) {
		c->at = c->len;
		return -EINVAL;
	}
	c->at += DMA_BINARY_RECORD;
	return dma_trace_record(record, r, why) ? -EINVAL : 1;
}

int dma_cursor_next(struct dma_cursor *c, struct dma_record *r, const char **why)
{
	int kind = 0;

	if (c->binary)
		return next_binary(c, r, why);
	while (!kind && c->at < c->len) {
		const char *line = (const char *)c->bytes + c->at;
		const char *end = memchr(line, '\n', c->len - c->at);
		size_t n = end ? (size_t)(end - line) : c->len - c->at;

		c->at += n + (end != NULL);
		c->where++;
		kind = dma_trace_line(line, n, r, why);
	}
	return kind;
}
