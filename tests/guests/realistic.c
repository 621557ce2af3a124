/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * realistic [ROUNDS [KIB]]: what a text service does all day, in a few hundred lines. It writes a
 * text of KIB kibibytes from a vocabulary of its own, splits it into words, counts them in a hash
 * table, sorts the table, packs the text with a sliding-window compressor, unpacks it and compares,
 * and sums everything up. ROUNDS times, each with another text. One or two seconds under plain
 * qemu-riscv64 with the defaults. Deterministic; its result is checked by itself: status 0 only if
 * every text came back unchanged and every word was counted.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "guest.h"

/* Random numbers: a 64-bit linear congruence, high half used. */

struct random {
	uint64_t state;
};

static inline uint32_t random_next(struct random *r)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->state >> 32);
}

static inline uint32_t random_below(struct random *r, uint32_t n)
{
	return (uint32_t)((uint64_t)random_next(r) * n >> 32);
}

/* The text. */

#define VOCABULARY 4096
#define LONGEST	   14

struct vocabulary {
	char word[VOCABULARY][LONGEST + 2];
	uint8_t length[VOCABULARY];
};

struct text {
	char *data;
	size_t length;
	unsigned long words;
};

NAMED void make_vocabulary(struct vocabulary *v, struct random *r)
{
	static const char consonant[] = "bcdfghklmnprstvz", vowel[] = "aeiou";

	for (unsigned i = 0; i < VOCABULARY; i++) {
		unsigned n = 2 + random_below(r, LONGEST - 2);

		for (unsigned k = 0; k < n; k++)
			v->word[i][k] =
				k & 1 ? vowel[random_below(r, 5)] : consonant[random_below(r, 16)];
		v->word[i][n] = '\0';
		v->length[i] = (uint8_t)n;
	}
}

/* Few words are frequent and many are rare: the product of two uniform numbers bends the choice
 * towards 0. */
static inline unsigned choose_word(struct random *r)
{
	return random_below(r, random_below(r, VOCABULARY) + 1);
}

NAMED void write_text(struct text *t, size_t capacity, const struct vocabulary *v, struct random *r)
{
	unsigned in_line = 0;

	t->length = 0;
	t->words = 0;
	while (t->length + LONGEST + 3 < capacity) {
		unsigned w = choose_word(r);

		memcpy(t->data + t->length, v->word[w], v->length[w]);
		t->length += v->length[w];
		t->words++;
		if (random_below(r, 12) == 0)
			t->data[t->length++] = ',';
		in_line++;
		t->data[t->length++] = in_line % 11 ? ' ' : '\n';
	}
}

/* Words: split and count. */

#define TABLE_BITS 14
#define TABLE_SIZE (1u << TABLE_BITS)

struct entry {
	const char *word; /* in the text */
	uint32_t hash;
	uint32_t length;
	uint32_t count;
};

struct table {
	struct entry slot[TABLE_SIZE];
	uint32_t used;
};

static inline uint32_t hash_word(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619u;
	return h;
}

NAMED bool count_word(struct table *t, const char *word, uint32_t length)
{
	uint32_t hash = hash_word(word, length), at = hash >> (32 - TABLE_BITS);

	for (;; at = (at + 1) & (TABLE_SIZE - 1)) {
		struct entry *e = &t->slot[at];

		if (!e->word) {
			if (t->used == TABLE_SIZE - 1)
				return false;
			*e = (struct entry){word, hash, length, 1};
			t->used++;
			return true;
		}
		if (e->hash == hash && e->length == length && !memcmp(e->word, word, length)) {
			e->count++;
			return true;
		}
	}
}

static inline bool is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

NAMED unsigned long split_words(const struct text *text, struct table *table)
{
	unsigned long words = 0;
	size_t i = 0;

	while (i < text->length) {
		size_t start;

		while (i < text->length && !is_letter(text->data[i]))
			i++;
		start = i;
		while (i < text->length && is_letter(text->data[i]))
			i++;
		if (i == start)
			break;
		if (!count_word(table, text->data + start, (uint32_t)(i - start)))
			return 0;
		words++;
	}
	return words;
}

/* The table in order of falling count, then of the words themselves: a heap sort, so that no libc
 * is in the picture. */

NAMED int compare_entries(const struct entry *a, const struct entry *b)
{
	uint32_t n = a->length < b->length ? a->length : b->length;
	int c;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	c = memcmp(a->word, b->word, n);
	if (c)
		return c;
	return a->length < b->length ? -1 : a->length > b->length;
}

static void sift_down(struct entry *e, size_t root, size_t n)
{
	struct entry moving = e[root];

	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && compare_entries(&e[child], &e[child + 1]) < 0)
			child++;
		if (compare_entries(&moving, &e[child]) >= 0)
			break;
		e[root] = e[child];
	}
	e[root] = moving;
}

NAMED void sort_entries(struct entry *e, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift_down(e, i, n);
	for (size_t i = n; i-- > 1;) {
		struct entry top = e[0];

		e[0] = e[i];
		e[i] = top;
		sift_down(e, 0, i);
	}
}

NAMED size_t gather_entries(struct table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (t->slot[i].word)
			t->slot[n++] = t->slot[i];
	return n;
}

/*
 * The compressor: a window of 64 KiB, the latest positions with the same first four bytes in
 * chains. Output: a flag byte for eight items (bit set: a match), a literal is one byte, a match
 * three: distance - 1 (16 bits), length - MATCH_MIN.
 */

#define WINDOW	  65536u
#define MATCH_MIN 4u
#define MATCH_MAX (MATCH_MIN + 255u)
#define HEADS	  (1u << 15)
#define CHAIN_MAX 24u
#define NOWHERE	  UINT32_MAX

struct packer {
	uint32_t head[HEADS];
	uint32_t previous[WINDOW];
};

static inline uint32_t hash_four(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return (v * 2654435761u) >> 17;
}

static inline void remember(struct packer *p, const uint8_t *in, uint32_t at)
{
	uint32_t h = hash_four(in + at);

	p->previous[at % WINDOW] = p->head[h];
	p->head[h] = at;
}

NAMED uint32_t match_length(const uint8_t *a, const uint8_t *b, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && a[n] == b[n])
		n++;
	return n;
}

NAMED uint32_t find_match(const struct packer *p, const uint8_t *in, uint32_t at, uint32_t length,
			  uint32_t *distance)
{
	uint32_t most = length - at < MATCH_MAX ? length - at : MATCH_MAX, best = 0;
	uint32_t from = p->head[hash_four(in + at)];

	for (unsigned tries = 0; tries < CHAIN_MAX && from != NOWHERE && at - from <= WINDOW - 1;
	     tries++) {
		uint32_t n = match_length(in + from, in + at, most);

		if (n > best) {
			best = n;
			*distance = at - from;
		}
		from = p->previous[from % WINDOW];
	}
	return best >= MATCH_MIN ? best : 0;
}

NAMED size_t pack(struct packer *p, const uint8_t *in, uint32_t length, uint8_t *out)
{
	size_t n = 0, flags = 0;
	unsigned items = 8;
	uint32_t at = 0;

	memset(p->head, 0xff, sizeof(p->head));
	while (at < length) {
		uint32_t distance = 0, matched = 0;

		if (items == 8) {
			items = 0;
			flags = n++;
			out[flags] = 0;
		}
		if (at + MATCH_MIN <= length)
			matched = find_match(p, in, at, length, &distance);
		if (matched) {
			out[flags] |= (uint8_t)(1u << items);
			out[n++] = (uint8_t)(distance - 1);
			out[n++] = (uint8_t)((distance - 1) >> 8);
			out[n++] = (uint8_t)(matched - MATCH_MIN);
		} else {
			out[n++] = in[at];
			matched = 1;
		}
		items++;
		for (; matched; matched--, at++)
			if (at + MATCH_MIN <= length)
				remember(p, in, at);
	}
	return n;
}

NAMED size_t unpack(const uint8_t *in, size_t length, uint8_t *out, size_t capacity)
{
	size_t n = 0, at = 0;

	while (at < length) {
		uint8_t flags = in[at++];

		for (unsigned i = 0; i < 8 && at < length; i++) {
			size_t distance, count;

			if (!(flags >> i & 1)) {
				if (n == capacity)
					return 0;
				out[n++] = in[at++];
				continue;
			}
			if (at + 3 > length)
				return 0;
			distance = (size_t)(in[at] | in[at + 1] << 8) + 1;
			count = in[at + 2] + MATCH_MIN;
			at += 3;
			if (distance > n || count > capacity - n)
				return 0;
			for (; count; count--, n++)
				out[n] = out[n - distance];
		}
	}
	return n;
}

/* The sum over everything: CRC-32, a table of 256 made at the start. */

struct crc {
	uint32_t table[256];
};

static void make_crc(struct crc *c)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;

		for (int k = 0; k < 8; k++)
			v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
		c->table[i] = v;
	}
}

NAMED uint32_t checksum(const struct crc *c, uint32_t sum, const void *data, size_t n)
{
	const uint8_t *p = data;

	sum = ~sum;
	for (size_t i = 0; i < n; i++)
		sum = sum >> 8 ^ c->table[(sum ^ p[i]) & 255];
	return ~sum;
}

struct service {
	struct random random;
	struct vocabulary vocabulary;
	struct text text;
	size_t capacity;
	struct table table;
	struct packer packer;
	struct crc crc;
	uint8_t *packed;
	uint8_t *unpacked;
	uint32_t sum;
	size_t total_in, total_out;
};

NAMED bool serve(struct service *s)
{
	size_t packed, entries;
	uint64_t counted = 0;

	write_text(&s->text, s->capacity, &s->vocabulary, &s->random);
	memset(&s->table, 0, sizeof(s->table));
	if (split_words(&s->text, &s->table) != s->text.words)
		return false;
	entries = gather_entries(&s->table);
	sort_entries(s->table.slot, entries);
	for (size_t i = 0; i < entries; i++) {
		counted += s->table.slot[i].count;
		s->sum = checksum(&s->crc, s->sum, s->table.slot[i].word, s->table.slot[i].length);
	}
	if (counted != s->text.words)
		return false;
	packed = pack(&s->packer, (const uint8_t *)s->text.data, (uint32_t)s->text.length,
		      s->packed);
	if (unpack(s->packed, packed, s->unpacked, s->capacity) != s->text.length)
		return false;
	if (memcmp(s->unpacked, s->text.data, s->text.length))
		return false;
	s->sum = checksum(&s->crc, s->sum, s->packed, packed);
	s->total_in += s->text.length;
	s->total_out += packed;
	return true;
}

int main(int argc, char **argv)
{
	static struct service s;
	long rounds = guest_arg(argc, argv, 1, 12);
	long kib = guest_arg(argc, argv, 2, 1024);
	bool ok = true;

	if (rounds < 1 || kib < 1 || kib > 65536)
		return 2;
	s.random.state = 20;
	s.capacity = (size_t)kib * 1024;
	s.text.data = malloc(s.capacity);
	/* The worst case is all literals: nine bytes for eight. */
	s.packed = malloc(s.capacity + s.capacity / 8 + 8);
	s.unpacked = malloc(s.capacity);
	if (!s.text.data || !s.packed || !s.unpacked)
		return 2;
	make_crc(&s.crc);
	make_vocabulary(&s.vocabulary, &s.random);
	for (long r = 0; r < rounds && ok; r++)
		ok = serve(&s);
	printf("%zu bytes in, %zu packed, sum %08x: %s\n", s.total_in, s.total_out, s.sum,
	       ok ? "ok" : "WRONG");
	free(s.unpacked);
	free(s.packed);
	free(s.text.data);
	return ok ? 0 : 1;
}
