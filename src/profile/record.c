/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records taken apart: the field order of a sample and of the id trailer is that of the perf ABI
 * sheet, A15 and A16. The bytes come from files, so nothing in them is believed: a cursor refuses
 * to read past the record's end.
 */
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>

#include "profile/record.h"

#define HEADER		     8u
/*
 * Size of a branch entry; of the fixed part of MMAP before its name, and so on: perf_event.h of
 * Linux 6.12.
 */
#define BRANCH_ENTRY	     24u
#define MISC_MMAP_DATA	     (1u << 13)
#define MISC_COMM_EXEC	     (1u << 13)
#define MISC_MMAP_BUILD_ID   (1u << 14)
#define BRANCH_HW_INDEX	     (UINT64_C(1) << 17)
#define SAMPLE_CGROUP	     (UINT64_C(1) << 21)
#define SAMPLE_DATA_PAGE     (UINT64_C(1) << 22)
#define SAMPLE_CODE_PAGE     (UINT64_C(1) << 23)
#define SAMPLE_WEIGHT_STRUCT (UINT64_C(1) << 24)
#define FORMAT_LOST	     (UINT64_C(1) << 4)

/* Bytes of a record not yet read. @bad sticks: reads past the end give 0 from then on. */
struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static const uint8_t *take(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (c->bad || n > left(c)) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

/* @count items of @size bytes: the product is checked before it is made. */
static const uint8_t *take_array(struct cursor *c, uint64_t count, size_t size)
{
	if (count > left(c) / size) {
		c->bad = true;
		return NULL;
	}
	return take(c, count * size);
}

static uint64_t take64(struct cursor *c)
{
	const uint8_t *p = take(c, 8);

	return p ? bits_le64(p) : 0;
}

static uint32_t take32(struct cursor *c)
{
	const uint8_t *p = take(c, 4);

	return p ? bits_le32(p) : 0;
}

/* A NUL-terminated string that is the rest of the record. */
static const char *take_string(struct cursor *c)
{
	const char *s = (const char *)c->p;

	if (c->bad || !memchr(s, 0, left(c))) {
		c->bad = true;
		return "";
	}
	c->p = c->end;
	return s;
}

size_t profile_record_frame(const void *data, size_t len)
{
	size_t size;

	if (len < HEADER)
		return 0;
	size = bits_le16((const uint8_t *)data + 6);
	return size >= HEADER && size <= len ? size : 0;
}

/* Bytes of the trailer that records other than samples have (A16). */
static size_t trailer_size(const struct quipu_attr *attr)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	if (!(attr->flags & QUIPU_ATTR_SAMPLE_ID_ALL))
		return 0;
	return 8 * bits_count(attr->sample_type & fields);
}

/*
 * Offset of the id inside a sample, or inside the trailer from the record's end; 0 when there is
 * none.
 */
static size_t id_offset_sample(uint64_t type)
{
	const uint64_t before =
		PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;

	if (type & PERF_SAMPLE_IDENTIFIER)
		return HEADER;
	return type & PERF_SAMPLE_ID ? HEADER + 8 * bits_count(type & before) : 0;
}

static size_t id_offset_trailer(uint64_t type)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		return 8;
	return type & PERF_SAMPLE_ID
		       ? 8 + 8 * bits_count(type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU))
		       : 0;
}

bool profile_record_id(const void *data, const struct quipu_attr *attr, uint64_t *id)
{
	const uint8_t *p = data;
	size_t size = bits_le16(p + 6), off;

	if (bits_le32(p) == PERF_RECORD_SAMPLE) {
		off = id_offset_sample(attr->sample_type);
		if (!off || off + 8 > size)
			return false;
		*id = bits_le64(p + off);
		return true;
	}
	off = id_offset_trailer(attr->sample_type);
	if (!off || !trailer_size(attr) || HEADER + off > size)
		return false;
	*id = bits_le64(p + size - off);
	return true;
}

static void parse_trailer(struct cursor *c, uint64_t type, struct profile_record *out)
{
	if (type & PERF_SAMPLE_TID) {
		out->pid = take32(c);
		out->tid = take32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		out->time = take64(c);
	if (type & PERF_SAMPLE_ID)
		out->id = take64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		out->stream_id = take64(c);
	if (type & PERF_SAMPLE_CPU) {
		out->cpu = take32(c);
		take32(c);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		out->id = take64(c);
}

/* Step over the values of read_format (A8). */
static void skip_read(struct cursor *c, uint64_t format)
{
	size_t times = bits_count(
		format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
	size_t each = 1 + bits_count(format & (PERF_FORMAT_ID | FORMAT_LOST));
	uint64_t nr = 1;

	if (format & PERF_FORMAT_GROUP)
		nr = take64(c);
	take(c, 8 * times);
	take_array(c, nr, 8 * each);
}

static void skip_regs(struct cursor *c, uint64_t mask)
{
	if (take64(c) != PERF_SAMPLE_REGS_ABI_NONE)
		take(c, 8 * bits_count(mask));
}

static void parse_user_regs(struct cursor *c, uint64_t mask, struct profile_record *out)
{
	uint64_t abi = take64(c);
	const uint8_t *regs = abi ? take(c, 8 * bits_count(mask)) : NULL;

	if (abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	out->sample.regs = regs;
	out->sample.regs_mask = regs ? mask : 0;
}

/* Room for so much, and behind it how much of that was filled. */
static void parse_user_stack(struct cursor *c, struct profile_record *out)
{
	uint64_t size = take64(c), filled;

	if (!size)
		return;
	out->sample.stack = take(c, size);
	filled = take64(c);
	out->sample.stack_size = filled < size ? filled : size;
}

static void parse_branches(struct cursor *c, const struct quipu_attr *attr,
			   struct profile_record *out)
{
	uint64_t nr = take64(c);

	if (nr && attr->branch_sample_type & BRANCH_HW_INDEX)
		take64(c);
	out->sample.branches = take_array(c, nr, BRANCH_ENTRY);
	out->sample.nr_branches = out->sample.branches ? nr : 0;
}

/* The fields up to the period: all of one word. */
static void parse_sample_head(struct cursor *c, uint64_t type, struct profile_record *out)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		out->id = take64(c);
	if (type & PERF_SAMPLE_IP)
		out->sample.ip = take64(c);
	if (type & PERF_SAMPLE_TID) {
		out->pid = take32(c);
		out->tid = take32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		out->time = take64(c);
	if (type & PERF_SAMPLE_ADDR)
		out->sample.addr = take64(c);
	if (type & PERF_SAMPLE_ID)
		out->id = take64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		out->stream_id = take64(c);
	if (type & PERF_SAMPLE_CPU) {
		out->cpu = take32(c);
		take32(c);
	}
	if (type & PERF_SAMPLE_PERIOD)
		out->sample.period = take64(c);
}

static void parse_sample(struct cursor *c, const struct quipu_attr *attr,
			 struct profile_record *out)
{
	uint64_t type = attr->sample_type;

	/*
	 * Without a period field every sample stands for the attr's fixed one (perf:
	 * evsel__parse_sample).
	 */
	out->sample.period = attr->sample_period;
	parse_sample_head(c, type, out);
	if (type & PERF_SAMPLE_READ) {
		out->sample.read = c->p;
		skip_read(c, attr->read_format);
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		uint64_t nr = take64(c);

		out->sample.chain = take_array(c, nr, 8);
		out->sample.nr_chain = out->sample.chain ? nr : 0;
	}
	if (type & PERF_SAMPLE_RAW)
		take(c, take32(c));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		parse_branches(c, attr, out);
	if (type & PERF_SAMPLE_REGS_USER)
		parse_user_regs(c, attr->sample_regs_user, out);
	if (type & PERF_SAMPLE_STACK_USER)
		parse_user_stack(c, out);
	if (type & (PERF_SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT)) {
		out->sample.weight = take64(c);
		if (type & SAMPLE_WEIGHT_STRUCT)
			out->sample.weight = (uint32_t)out->sample.weight;
	}
	if (type & PERF_SAMPLE_DATA_SRC)
		out->sample.data_src = take64(c);
	if (type & PERF_SAMPLE_TRANSACTION)
		out->sample.transaction = take64(c);
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_regs(c, attr->sample_regs_intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		out->sample.phys_addr = take64(c);
	take(c, 8 * bits_count(type & (SAMPLE_CGROUP | SAMPLE_DATA_PAGE | SAMPLE_CODE_PAGE)));
	if (type & PERF_SAMPLE_AUX)
		take(c, take64(c));
}

static void parse_mmap(struct cursor *c, struct profile_record *out)
{
	out->mmap.pid = take32(c);
	out->mmap.tid = take32(c);
	out->mmap.addr = take64(c);
	out->mmap.len = take64(c);
	out->mmap.pgoff = take64(c);
	out->mmap.data = out->misc & MISC_MMAP_DATA;
	if (out->type == PERF_RECORD_MMAP2) {
		const uint8_t *id = take(c, 24);

		if (id && out->misc & MISC_MMAP_BUILD_ID) {
			out->mmap.build_id_size = id[0] <= 20 ? id[0] : 20;
			out->mmap.build_id = id + 4;
		} else if (id) {
			out->mmap.maj = bits_le32(id);
			out->mmap.min = bits_le32(id + 4);
			out->mmap.ino = bits_le64(id + 8);
			out->mmap.ino_generation = bits_le64(id + 16);
		}
		out->mmap.prot = take32(c);
		out->mmap.flags = take32(c);
	}
	out->mmap.name = take_string(c);
}

static void parse_body(struct cursor *c, const struct quipu_attr *attr, struct profile_record *out)
{
	switch (out->type) {
	case PERF_RECORD_SAMPLE: parse_sample(c, attr, out); break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: parse_mmap(c, out); break;
	case PERF_RECORD_COMM:
		out->comm.pid = take32(c);
		out->comm.tid = take32(c);
		out->comm.exec = out->misc & MISC_COMM_EXEC;
		out->comm.comm = take_string(c);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		out->task.pid = take32(c);
		out->task.ppid = take32(c);
		out->task.tid = take32(c);
		out->task.ptid = take32(c);
		take64(c);
		break;
	case PERF_RECORD_LOST:
		out->lost.id = take64(c);
		out->lost.lost = take64(c);
		break;
	case PERF_RECORD_LOST_SAMPLES: out->lost.lost = take64(c); break;
	default: /* framed, known to nobody here: its trailer still tells when */ break;
	}
}

int profile_record_parse(const void *data, const struct quipu_attr *attr,
			 struct profile_record *out)
{
	const uint8_t *p = data;
	struct cursor body, trailer;
	size_t tail;

	memset(out, 0, sizeof(*out));
	out->cpu = PROFILE_CPU_NONE;
	out->type = bits_le32(p);
	out->misc = bits_le16(p + 4);
	out->size = bits_le16(p + 6);
	if (out->size < HEADER)
		return -EINVAL;
	body = (struct cursor){.p = p + HEADER, .end = p + out->size};
	if (out->type != PERF_RECORD_SAMPLE && out->type < PROFILE_RECORD_USER_START) {
		tail = trailer_size(attr);
		if (tail > left(&body))
			return -EINVAL;
		body.end -= tail;
		trailer = (struct cursor){.p = body.end, .end = p + out->size};
		if (tail)
			parse_trailer(&trailer, attr->sample_type, out);
	}
	parse_body(&body, attr, out);
	return body.bad ? -EINVAL : 0;
}
