/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of records, written from the tables of perf_event_open(2) and the perf ABI sheet A15/A16
 * alone, so that it shares no mistake with the writer.
 */
#include "world.h"

#include <string.h>

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get64(struct cursor *c)
{
	uint64_t v = 0;

	if (c->end - c->at < 8) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->at, 8);
	c->at += 8;
	return v;
}

static void get32x2(struct cursor *c, uint32_t *a, uint32_t *b)
{
	uint64_t v = get64(c);

	*a = (uint32_t)v;
	*b = (uint32_t)(v >> 32);
}

static void skip(struct cursor *c, uint64_t n)
{
	if ((uint64_t)(c->end - c->at) < n)
		c->bad = true;
	else
		c->at += n;
}

static void get_read(struct cursor *c, struct parsed *p, uint64_t format)
{
	unsigned per = 1 + !!(format & 4) + !!(format & 16), n = 1,
		 head = !!(format & 1) + !!(format & 2);

	if (format & 8) {
		uint64_t nr = get64(c);

		p->read[p->nread++] = nr;
		n = nr > 16 ? 16 : (unsigned)nr;
		for (unsigned i = 0; i < head; i++)
			p->read[p->nread++] = get64(c);
		for (unsigned i = 0; i < n * per && p->nread < 64; i++)
			p->read[p->nread++] = get64(c);
		return;
	}
	for (unsigned i = 0; i < head + per; i++)
		p->read[p->nread++] = get64(c);
}

static void get_chain(struct cursor *c, struct parsed *p)
{
	p->nr_chain = get64(c);
	for (uint64_t i = 0; i < p->nr_chain && !c->bad; i++) {
		uint64_t v = get64(c);

		if (i < 160)
			p->chain[i] = v;
	}
}

static void get_regs(struct cursor *c, uint64_t mask)
{
	if (get64(c))
		skip(c, 8u * (unsigned)__builtin_popcountll(mask));
}

static void get_raw(struct cursor *c, struct parsed *p)
{
	if (c->end - c->at < 4) {
		c->bad = true;
		return;
	}
	memcpy(&p->raw_size, c->at, 4);
	skip(c, 4 + (uint64_t)p->raw_size);
}

static void get_branches(struct cursor *c, struct parsed *p, const struct quipu_attr *a)
{
	p->nr_branches = get64(c);
	if (p->nr_branches && (a->branch_sample_type >> 17 & 1))
		get64(c);
	skip(c, 24 * p->nr_branches);
}

static void get_stack(struct cursor *c)
{
	uint64_t n = get64(c);

	if (n) {
		skip(c, n);
		get64(c);
	}
}

static void get_sample(struct cursor *c, struct parsed *p, const struct quipu_attr *a)
{
	uint64_t t = a->sample_type;
	uint32_t zero;

#define HAS(bit) (t >> (bit)&1)
	if (HAS(16))
		p->identifier = get64(c);
	if (HAS(0))
		p->ip = get64(c);
	if (HAS(1))
		get32x2(c, &p->pid, &p->tid);
	if (HAS(2))
		p->time = get64(c);
	if (HAS(3))
		p->addr = get64(c);
	if (HAS(6))
		p->id = get64(c);
	if (HAS(9))
		p->stream_id = get64(c);
	if (HAS(7))
		get32x2(c, &p->cpu, &zero);
	if (HAS(8))
		p->period = get64(c);
	if (HAS(4))
		get_read(c, p, a->read_format);
	if (HAS(5))
		get_chain(c, p);
	if (HAS(10))
		get_raw(c, p);
	if (HAS(11))
		get_branches(c, p, a);
	if (HAS(12))
		get_regs(c, a->sample_regs_user);
	if (HAS(13))
		get_stack(c);
	if (HAS(14) || HAS(24))
		p->weight = get64(c);
	if (HAS(15))
		p->data_src = get64(c);
	if (HAS(17))
		get64(c);
	if (HAS(18))
		get_regs(c, a->sample_regs_intr);
	for (unsigned bit = 19; bit <= 23; bit++) {
		if (bit != 20 && HAS(bit))
			get64(c);
	}
	if (HAS(20))
		skip(c, (get64(c) + 7) & ~UINT64_C(7));
}

static void get_trailer(struct cursor *c, struct parsed *p, const struct quipu_attr *a)
{
	uint64_t t = a->sample_type;
	uint32_t zero;

	if (!(a->flags >> 18 & 1))
		return;
	if (HAS(1))
		get32x2(c, &p->pid, &p->tid);
	if (HAS(2))
		p->time = get64(c);
	if (HAS(6))
		p->id = get64(c);
	if (HAS(9))
		p->stream_id = get64(c);
	if (HAS(7))
		get32x2(c, &p->cpu, &zero);
	if (HAS(16))
		p->identifier = get64(c);
#undef HAS
}

static void get_name(struct cursor *c, struct parsed *p)
{
	size_t max = (size_t)(c->end - c->at), n = strnlen((const char *)c->at, max);

	if (n == max) {
		c->bad = true;
		return;
	}
	memcpy(p->name, c->at, n < 255 ? n : 255);
	skip(c, (n + 8) & ~(size_t)7);
}

static void get_body(struct cursor *c, struct parsed *p, const struct quipu_attr *a)
{
	switch (p->type) {
	case 1:	 /* MMAP */
	case 10: /* MMAP2 */
		get32x2(c, &p->body_pid, &p->body_tid);
		p->map_addr = get64(c);
		skip(c, 16 + (p->type == 10 ? 32 : 0));
		get_name(c, p);
		return;
	case 2: /* LOST */
		p->id = get64(c);
		p->lost = get64(c);
		return;
	case 3: /* COMM */
		get32x2(c, &p->body_pid, &p->body_tid);
		get_name(c, p);
		return;
	case 4: /* EXIT */
	case 7: /* FORK */
		get32x2(c, &p->body_pid, &p->body_ppid);
		get32x2(c, &p->body_tid, &p->body_ptid);
		p->time = get64(c);
		return;
	case 5: /* THROTTLE */
	case 6: /* UNTHROTTLE */
		p->time = get64(c);
		p->id = get64(c);
		p->stream_id = get64(c);
		return;
	case 8: /* READ */
		get32x2(c, &p->body_pid, &p->body_tid);
		get_read(c, p, a->read_format);
		return;
	case 14: /* SWITCH */ return;
	case 15: /* SWITCH_CPU_WIDE */ get32x2(c, &p->body_pid, &p->body_tid); return;
	}
	c->bad = true;
}

struct parsed parse_record(const uint8_t *record, const struct quipu_attr *a)
{
	struct parsed p = {0};
	struct cursor c;

	memcpy(&p.type, record, 4);
	memcpy(&p.misc, record + 4, 2);
	memcpy(&p.size, record + 6, 2);
	c = (struct cursor){.at = record + 8, .end = record + p.size};
	if (p.type == 9) {
		get_sample(&c, &p, a);
	} else {
		get_body(&c, &p, a);
		get_trailer(&c, &p, a);
	}
	p.ok = !c.bad && c.at == c.end;
	return p;
}
