/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of perf.data (layout in perfdata_format.h). Every offset and size is held against the
 * file before it is used, and what is allocated is bounded by the file's own size (compressed
 * records: by the size of perf's buffer).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include <quipu/bits.h>

#include "profile/perfdata.h"
#include "profile/perfdata_format.h"

/*
 * perf compresses what it finds in one ring mapping, whose size the file tells; 1 GiB is more than
 * any mlock limit lets a ring be. All in all, no recording is a five-hundredth of its records: that
 * is a bomb.
 */
#define UNPACKED_RECORD_MAX (UINT64_C(1) << 30)
#define UNPACKED_RATIO_MAX  512u
#define EVENTS_MAX	    65536u

/* A run of whole records: the file's data section, or what one compressed stream unpacked to. */
struct records {
	uint8_t *v;
	size_t n;
};

struct entry {
	uint64_t time;
	size_t at; /* offset into the records */
	uint32_t event;
};

struct perfdata {
	uint8_t *file;
	size_t size;
	uint64_t data_at, data_len;
	struct perfdata_event *events;
	size_t nr_events;
	struct profile_ids ids;
	uint64_t ids_bytes;
	struct perfdata_features feat;
	uint64_t comp_mmap_len;
	struct records unpacked; /* v NULL: the data section itself is read */
	struct entry *index;
	size_t nr_index;
	size_t malformed, unknown_ids;
};

/* ---- spans: a piece of the file that is being read ---- */

struct span {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static const uint8_t *span_take(struct span *s, uint64_t n)
{
	const uint8_t *p = s->p;

	if (s->bad || n > s->n) {
		s->bad = true;
		return NULL;
	}
	s->p += n;
	s->n -= n;
	return p;
}

static uint32_t span_u32(struct span *s)
{
	const uint8_t *p = span_take(s, 4);

	return p ? bits_le32(p) : 0;
}

static uint64_t span_u64(struct span *s)
{
	const uint8_t *p = span_take(s, 8);

	return p ? bits_le64(p) : 0;
}

/* A feature's string, to be freed; NULL when it does not fit. */
static char *span_string(struct span *s)
{
	uint32_t len = span_u32(s);
	const uint8_t *p = span_take(s, len);

	if (!p)
		return NULL;
	return strndup((const char *)p, len);
}

static bool inside(const struct perfdata *d, uint64_t at, uint64_t len)
{
	return at <= d->size && len <= d->size - at;
}

/* ---- the file ---- */

static int read_all(int fd, uint8_t *to, size_t n)
{
	while (n) {
		ssize_t r = read(fd, to, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r ? -errno : -EIO;
		to += r;
		n -= (size_t)r;
	}
	return 0;
}

static int load(struct perfdata *d, const char *path, struct perfdata_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = 0;
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return perfdata_fail(err, -ENOENT,
				     "no file '%s'; `quipu record` writes one, -i names another",
				     path);
	if (fd < 0)
		return perfdata_fail(err, -errno, "cannot read '%s': %s", path, strerror(errno));
	if (fstat(fd, &st)) {
		r = perfdata_fail(err, -errno, "cannot read '%s': %s", path, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		r = perfdata_fail(
			err, -EISDIR,
			"'%s' is a directory (perf record --threads); only single files are read",
			path);
	} else if (!S_ISREG(st.st_mode)) {
		r = perfdata_fail(err, -ESPIPE,
				  "'%s' is not a regular file; save the recording to one first",
				  path);
	} else {
		d->size = (size_t)st.st_size;
		d->file = malloc(d->size + 1);
		if (!d->file)
			r = perfdata_fail(err, -ENOMEM, "no memory for '%s' (%zu bytes)", path,
					  d->size);
		else if (read_all(fd, d->file, d->size))
			r = perfdata_fail(err, -EIO, "cannot read '%s' to its end", path);
	}
	close(fd);
	return r;
}

static int check_header(struct perfdata *d, const char *path, struct perfdata_error *err)
{
	static const char other_order[] = "2ELIFREP";
	uint64_t size;

	if (d->size < 16)
		return perfdata_fail(err, -EINVAL, "'%s' is not a perf.data file: %zu bytes", path,
				     d->size);
	if (!memcmp(d->file, other_order, 8))
		return perfdata_fail(
			err, -ENOTSUP,
			"'%s' was recorded on a machine of the other byte order; read it there",
			path);
	if (memcmp(d->file, PERFDATA_MAGIC, 8)) {
		bool zeros = true;

		for (int i = 0; i < 16; i++)
			zeros &= !d->file[i];
		return perfdata_fail(
			err, -EINVAL,
			zeros ? "'%s' is a recording that was cut off: it has no header"
			      : "'%s' is not a perf.data file",
			path);
	}
	size = bits_le64(d->file + 8);
	if (size == 16)
		return perfdata_fail(
			err, -ENOTSUP,
			"'%s' was written to a pipe (perf record -o -); record to a file, or "
			"convert it: perf inject -i IN -o OUT",
			path);
	if (size != PERFDATA_HEADER_SIZE)
		return perfdata_fail(
			err, -EINVAL,
			"'%s': header of %llu bytes, not %u: not a perf.data of perf 3.0 or later",
			path, (unsigned long long)size, PERFDATA_HEADER_SIZE);
	if (d->size < PERFDATA_HEADER_SIZE)
		return perfdata_fail(err, -EINVAL, "'%s' is cut off inside its header", path);
	d->data_at = bits_le64(d->file + PERFDATA_OFF_DATA);
	d->data_len = bits_le64(d->file + PERFDATA_OFF_DATA + 8);
	for (int i = 0; i < 4; i++)
		d->feat.set[i] = bits_le64(d->file + PERFDATA_OFF_FEATURES + 8 * i);
	if (!d->data_len)
		return perfdata_fail(
			err, -EINVAL,
			"'%s' has no data: was the recording interrupted before its end?", path);
	if (!inside(d, d->data_at, d->data_len))
		return perfdata_fail(
			err, -EINVAL,
			"'%s' is cut off: its data should end at byte %llu, the file has %zu", path,
			(unsigned long long)(d->data_at + d->data_len), d->size);
	return 0;
}

static bool has(const struct perfdata *d, unsigned bit)
{
	return d->feat.set[bit / 64] >> (bit % 64) & 1;
}

/* ---- events ---- */

static char *make_name(const struct quipu_attr *attr)
{
	static const char *const hardware[] = {"cycles",
					       "instructions",
					       "cache-references",
					       "cache-misses",
					       "branches",
					       "branch-misses",
					       "bus-cycles",
					       "stalled-cycles-frontend",
					       "stalled-cycles-backend",
					       "ref-cycles"};
	static const char *const software[] = {"cpu-clock",	   "task-clock",
					       "page-faults",	   "context-switches",
					       "cpu-migrations",   "minor-faults",
					       "major-faults",	   "alignment-faults",
					       "emulation-faults", "dummy"};
	char *s;

	if (attr->type == PERF_TYPE_HARDWARE && attr->config < 10)
		return strdup(hardware[attr->config]);
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < 10)
		return strdup(software[attr->config]);
	if (asprintf(&s, attr->type == PERF_TYPE_RAW ? "raw 0x%llx" : "type %2$u config 0x%1$llx",
		     (unsigned long long)attr->config, attr->type) < 0)
		return NULL;
	return s;
}

static int read_event(struct perfdata *d, uint64_t at, uint64_t stride, struct perfdata_event *ev)
{
	const uint8_t *p = d->file + at;
	uint32_t size = bits_le32(p + 4);
	uint64_t room = stride - PERFDATA_SECTION_SIZE, ids_at, ids_len;

	if (!size)
		size = PERFDATA_ATTR_MIN;
	if (size < PERFDATA_ATTR_MIN || size > room)
		return -EINVAL;
	memcpy(&ev->attr, p, size < sizeof(ev->attr) ? size : sizeof(ev->attr));
	ids_at = bits_le64(p + room);
	ids_len = bits_le64(p + room + 8);
	if (ids_len % 8 || !inside(d, ids_at, ids_len))
		return -EINVAL;
	/* Lists that overlap would make a small file take much memory. */
	d->ids_bytes += ids_len;
	if (d->ids_bytes > d->size)
		return -EINVAL;
	ev->nr_ids = ids_len / 8;
	ev->ids = malloc(ids_len + 1);
	if (!ev->ids)
		return -ENOMEM;
	if (ids_len)
		memcpy(ev->ids, d->file + ids_at, ids_len);
	ev->exactness = QUIPU_HOST;
	ev->name = make_name(&ev->attr);
	return ev->name ? 0 : -ENOMEM;
}

static int read_events(struct perfdata *d, const char *path, struct perfdata_error *err)
{
	uint64_t stride = bits_le64(d->file + PERFDATA_OFF_ATTR_SIZE);
	uint64_t at = bits_le64(d->file + PERFDATA_OFF_ATTRS),
		 len = bits_le64(d->file + PERFDATA_OFF_ATTRS + 8);

	if (stride < PERFDATA_ATTR_MIN + PERFDATA_SECTION_SIZE || stride > 4096 ||
	    !inside(d, at, len) || len < stride || len / stride > EVENTS_MAX)
		return perfdata_fail(err, -EINVAL, "'%s': its list of events is damaged", path);
	d->events = calloc(len / stride, sizeof(*d->events));
	if (!d->events)
		return perfdata_fail(err, -ENOMEM, "out of memory");
	for (uint64_t i = 0; i < len / stride; i++) {
		d->nr_events++;
		if (read_event(d, at + i * stride, stride, &d->events[i]))
			return perfdata_fail(err, -EINVAL, "'%s': event %llu is damaged", path,
					     (unsigned long long)i);
	}
	if (!profile_ids_agree(d->events, d->nr_events))
		return perfdata_fail(err, -EINVAL,
				     "'%s': its events place their ids differently, records cannot "
				     "be told apart",
				     path);
	return profile_ids_build(&d->ids, d->events, d->nr_events)
		       ? perfdata_fail(err, -ENOMEM, "out of memory")
		       : 0;
}

/* ---- features: a damaged one is left out; none is needed to read the records ---- */

typedef void feature_fn(struct perfdata *, struct span *);

static void read_build_ids(struct perfdata *d, struct span *s)
{
	struct perfdata_features *f = &d->feat;

	while (s->n >= 8) {
		uint16_t size = bits_le16(s->p + 6), misc = bits_le16(s->p + 4);
		struct perfdata_build_id *b;
		const uint8_t *p = size > 36 ? span_take(s, size) : NULL;

		if (!p)
			return;
		b = realloc(f->build_ids, (f->nr_build_ids + 1) * sizeof(*b));
		if (!b)
			return;
		f->build_ids = b;
		b += f->nr_build_ids;
		*b = (struct perfdata_build_id){.path = strndup((const char *)p + 36, size - 36u),
						.size = 20};
		if (!b->path)
			return;
		/* misc bit 15: byte 20 of the id field is its length. */
		if (misc & 1u << 15 && p[32] < 20)
			b->size = p[32];
		memcpy(b->id, p + 12, 20);
		f->nr_build_ids++;
	}
}

static void read_hostname(struct perfdata *d, struct span *s)
{
	d->feat.hostname = span_string(s);
}

static void read_osrelease(struct perfdata *d, struct span *s)
{
	d->feat.osrelease = span_string(s);
}

static void read_version(struct perfdata *d, struct span *s)
{
	d->feat.version = span_string(s);
}

static void read_arch(struct perfdata *d, struct span *s)
{
	d->feat.arch = span_string(s);
}

static void read_cpudesc(struct perfdata *d, struct span *s)
{
	d->feat.cpudesc = span_string(s);
}

static void read_cpuid(struct perfdata *d, struct span *s)
{
	d->feat.cpuid = span_string(s);
}

static void read_nrcpus(struct perfdata *d, struct span *s)
{
	d->feat.cpus = span_u32(s);
	d->feat.cpus_online = span_u32(s);
}

static void read_memory(struct perfdata *d, struct span *s)
{
	d->feat.memory_kb = span_u64(s);
}

static void read_cmdline(struct perfdata *d, struct span *s)
{
	uint32_t n = span_u32(s);

	/* Every string takes four bytes at least, so the section bounds their number. */
	if (s->bad || n > s->n / 4)
		return;
	d->feat.cmdline = calloc(n + 1u, sizeof(char *));
	while (d->feat.cmdline && d->feat.nr_cmdline < n) {
		char *arg = span_string(s);

		if (!arg)
			return;
		d->feat.cmdline[d->feat.nr_cmdline++] = arg;
	}
}

/* Names only: attrs and ids are those of the attrs section. */
static void read_event_desc(struct perfdata *d, struct span *s)
{
	uint32_t n = span_u32(s), size = span_u32(s);

	for (uint32_t i = 0; i < n && i < d->nr_events && !s->bad; i++) {
		uint32_t nr_ids;
		char *name;

		span_take(s, size);
		nr_ids = span_u32(s);
		name = span_string(s);
		span_take(s, 8 * (uint64_t)nr_ids);
		if (!name || s->bad || !name[0]) {
			free(name);
			continue;
		}
		free(d->events[i].name);
		d->events[i].name = name;
	}
}

static void read_time(struct perfdata *d, struct span *s)
{
	d->feat.time_first = span_u64(s);
	d->feat.time_last = span_u64(s);
	d->feat.has_time = !s->bad;
}

static void read_compressed(struct perfdata *d, struct span *s)
{
	span_take(s, 16); /* version, type, level, ratio */
	d->comp_mmap_len = span_u32(s);
}

static void read_labels(struct perfdata *d, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && i < d->nr_events; i++)
		if (p[i] <= QUIPU_HOST)
			d->events[i].exactness = (enum quipu_exactness)p[i];
}

static void read_quipu(struct perfdata *d, struct span *s)
{
	const uint8_t *magic = span_take(s, 8);

	if (!magic || memcmp(magic, PERFDATA_QUIPU_MAGIC, 8))
		return;
	d->feat.by_quipu = true;
	while (s->n >= 8) {
		uint32_t tag = span_u32(s), size = span_u32(s);
		const uint8_t *p = span_take(s, size);

		if (!p)
			return;
		if (tag == PERFDATA_TAG_MACHINE && !d->feat.machine)
			d->feat.machine = strndup((const char *)p, size);
		else if (tag == PERFDATA_TAG_LABELS)
			read_labels(d, p, size);
		else if (tag == PERFDATA_TAG_PARTIAL)
			d->feat.partial = true;
		span_take(s, -size & 7);
	}
}

static void read_hypervisor(struct perfdata *d, struct span *s)
{
	size_t len = s->n;
	const uint8_t *p = span_take(s, len);

	d->feat.hypervisor = p && len ? malloc(len) : NULL;
	if (!d->feat.hypervisor)
		return;
	memcpy(d->feat.hypervisor, p, len);
	d->feat.hypervisor_len = len;
}

static const struct {
	unsigned bit;
	feature_fn *read;
} features[] = {
	{PERFDATA_BUILD_ID, read_build_ids},
	{PERFDATA_HOSTNAME, read_hostname},
	{PERFDATA_OSRELEASE, read_osrelease},
	{PERFDATA_VERSION, read_version},
	{PERFDATA_ARCH, read_arch},
	{PERFDATA_NRCPUS, read_nrcpus},
	{PERFDATA_CPUDESC, read_cpudesc},
	{PERFDATA_CPUID, read_cpuid},
	{PERFDATA_TOTAL_MEM, read_memory},
	{PERFDATA_CMDLINE, read_cmdline},
	{PERFDATA_EVENT_DESC, read_event_desc},
	{PERFDATA_SAMPLE_TIME, read_time},
	{PERFDATA_COMPRESSED, read_compressed},
	{PERFDATA_QUIPU, read_quipu},
	{PERFDATA_HYPERVISOR, read_hypervisor},
};

static int read_features(struct perfdata *d, const char *path, struct perfdata_error *err)
{
	uint64_t at = d->data_at + d->data_len;

	for (unsigned bit = 0; bit < PERFDATA_FEATURES; bit++) {
		uint64_t from, len;
		struct span s;

		if (!has(d, bit))
			continue;
		if (!inside(d, at, PERFDATA_SECTION_SIZE))
			return perfdata_fail(
				err, -EINVAL,
				"'%s' is cut off: the table of its features is not whole", path);
		from = bits_le64(d->file + at);
		len = bits_le64(d->file + at + 8);
		at += PERFDATA_SECTION_SIZE;
		if (!inside(d, from, len))
			return perfdata_fail(err, -EINVAL,
					     "'%s' is cut off: feature %u should end at byte %llu, "
					     "the file has %zu",
					     path, bit, (unsigned long long)(from + len), d->size);
		s = (struct span){d->file + from, len, false};
		for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
			if (features[i].bit == bit)
				features[i].read(d, &s);
	}
	d->feat.compressed = has(d, PERFDATA_COMPRESSED);
	if (has(d, PERFDATA_AUXTRACE))
		return perfdata_fail(
			err, -ENOTSUP,
			"'%s' holds hardware trace data (AUX area), which is not decoded; `perf "
			"script --itrace` does",
			path);
	return 0;
}

/* ---- records ---- */

/* Appends what @in unpacks to. Bounded: what one record gives was once in one ring. */
static int unpack(ZSTD_DStream *z, ZSTD_inBuffer in, uint64_t limit, struct blob *out)
{
	size_t room = ZSTD_DStreamOutSize(), start = out->n, r;
	void *buf = malloc(room);

	if (!buf)
		return -ENOMEM;
	do {
		ZSTD_outBuffer o = {buf, room, 0};

		r = ZSTD_decompressStream(z, &o, &in);
		if (ZSTD_isError(r) || out->n - start + o.pos > limit) {
			free(buf);
			return -EINVAL;
		}
		blob_add(out, buf, o.pos);
		/* A full buffer may mean that more waits inside the decoder. */
		if (in.pos == in.size && o.pos < room)
			break;
	} while (!out->failed);
	free(buf);
	return out->failed ? -ENOMEM : 0;
}

static bool is_compressed(const uint8_t *p)
{
	uint32_t type = bits_le32(p);

	return type == PROFILE_RECORD_COMPRESSED || type == PROFILE_RECORD_COMPRESSED2;
}

/*
 * The packed bytes of a compressed record. COMPRESSED2 (perf 6.17) says how many of them are not
 * padding.
 */
static bool packed_bytes(const uint8_t *p, size_t size, ZSTD_inBuffer *in)
{
	*in = (ZSTD_inBuffer){p + 8, size - 8, 0};
	if (bits_le32(p) == PROFILE_RECORD_COMPRESSED)
		return true;
	if (size < 16 || bits_le64(p + 8) > size - 16)
		return false;
	*in = (ZSTD_inBuffer){p + 16, bits_le64(p + 8), 0};
	return true;
}

/* All records in one piece: plain ones as they are, compressed ones replaced by what they hold. */
static int unpack_all(struct perfdata *d, const char *path, struct perfdata_error *err)
{
	uint64_t ring = d->comp_mmap_len && d->comp_mmap_len < UNPACKED_RECORD_MAX
				? d->comp_mmap_len
				: UNPACKED_RECORD_MAX;
	uint64_t total = (UINT64_C(1) << 26) + UNPACKED_RATIO_MAX * (uint64_t)d->size;
	const uint8_t *data = d->file + d->data_at;
	ZSTD_DStream *z = ZSTD_createDStream();
	struct blob plain = {0}, inner = {0};
	int r = z ? 0 : -ENOMEM;

	for (size_t off = 0; !r && off < d->data_len;) {
		size_t size = profile_record_frame(data + off, d->data_len - off);
		ZSTD_inBuffer in;

		if (!size)
			r = -EINVAL;
		else if (!is_compressed(data + off))
			blob_add(&plain, data + off, size);
		else if (!packed_bytes(data + off, size, &in))
			r = -EINVAL;
		else
			r = unpack(z, in, ring < total - inner.n ? ring : total - inner.n, &inner);
		off += size;
	}
	blob_add(&plain, inner.v,
		 inner.n); /* records may lie across two compressed ones: joined, they are whole */
	if (plain.failed)
		r = -ENOMEM;
	ZSTD_freeDStream(z);
	blob_free(&inner);
	d->unpacked = (struct records){plain.v, plain.n};
	if (r == -EINVAL)
		return perfdata_fail(err, r, "'%s': its compressed records are damaged", path);
	return r ? perfdata_fail(err, r, "out of memory") : 0;
}

static struct records records_of(const struct perfdata *d)
{
	return d->unpacked.v ? d->unpacked : (struct records){d->file + d->data_at, d->data_len};
}

/* Count the records, or say where their chain breaks. */
static int frame_all(const struct perfdata *d, const char *path, size_t *n, bool *compressed,
		     struct perfdata_error *err)
{
	struct records r = records_of(d);

	*n = 0;
	*compressed = false;
	for (size_t off = 0; off < r.n;) {
		size_t size = profile_record_frame(r.v + off, r.n - off);

		if (!size)
			return perfdata_fail(err, -EINVAL,
					     "'%s': the record at byte %zu of its data is damaged",
					     path, off);
		if (bits_le32(r.v + off) == PROFILE_RECORD_AUXTRACE)
			return perfdata_fail(
				err, -ENOTSUP,
				"'%s' holds hardware trace data (AUX area), which is not decoded",
				path);
		*compressed |= is_compressed(r.v + off);
		++*n;
		off += size;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void index_record(struct perfdata *d, const uint8_t *base, size_t at)
{
	struct profile_record rec;
	size_t event;

	if (bits_le32(base + at) >= PROFILE_RECORD_USER_START)
		return;
	if (!profile_ids_event(&d->ids, d->events, d->nr_events, base + at, &event)) {
		d->unknown_ids++;
		return;
	}
	if (profile_record_parse(base + at, &d->events[event].attr, &rec)) {
		d->malformed++;
		return;
	}
	/* perf takes ~0 for "no time" as well. */
	d->index[d->nr_index++] =
		(struct entry){rec.time == UINT64_MAX ? 0 : rec.time, at, (uint32_t)event};
}

static int build_index(struct perfdata *d, const char *path, struct perfdata_error *err)
{
	bool compressed;
	struct records r;
	size_t n;
	int ret = frame_all(d, path, &n, &compressed, err);

	if (!ret && compressed) {
		ret = unpack_all(d, path, err);
		if (!ret)
			ret = frame_all(d, path, &n, &compressed, err);
	}
	if (ret)
		return ret;
	d->index = calloc(n + 1, sizeof(*d->index));
	if (!d->index)
		return perfdata_fail(err, -ENOMEM, "out of memory");
	r = records_of(d);
	for (size_t off = 0; off < r.n; off += bits_le16(r.v + off + 6))
		index_record(d, r.v, off);
	qsort(d->index, d->nr_index, sizeof(*d->index), by_time);
	return 0;
}

/* ---- the interface ---- */

struct perfdata *perfdata_open(const char *path, struct perfdata_error *err)
{
	struct perfdata *d = calloc(1, sizeof(*d));

	if (!d) {
		perfdata_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	if (load(d, path, err) || check_header(d, path, err) || read_events(d, path, err) ||
	    read_features(d, path, err) || build_index(d, path, err)) {
		perfdata_close(d);
		return NULL;
	}
	return d;
}

static void free_features(struct perfdata_features *f)
{
	for (size_t i = 0; i < f->nr_cmdline; i++)
		free(f->cmdline[i]);
	for (size_t i = 0; i < f->nr_build_ids; i++)
		free(f->build_ids[i].path);
	free(f->hypervisor);
	free(f->cmdline);
	free(f->build_ids);
	free(f->hostname);
	free(f->osrelease);
	free(f->version);
	free(f->arch);
	free(f->cpudesc);
	free(f->cpuid);
	free(f->machine);
}

void perfdata_close(struct perfdata *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr_events; i++) {
		free(d->events[i].ids);
		free(d->events[i].name);
	}
	free_features(&d->feat);
	profile_ids_free(&d->ids);
	free(d->events);
	free(d->index);
	free(d->unpacked.v);
	free(d->file);
	free(d);
}

const struct perfdata_event *perfdata_events(const struct perfdata *d, size_t *n)
{
	*n = d->nr_events;
	return d->events;
}

const struct perfdata_features *perfdata_features(const struct perfdata *d)
{
	return &d->feat;
}

int perfdata_each(const struct perfdata *d, int (*fn)(void *arg, const struct profile_record *),
		  void *arg)
{
	struct records all = records_of(d);

	for (size_t i = 0; i < d->nr_index; i++) {
		const struct entry *e = &d->index[i];
		struct profile_record rec;
		int r;

		if (profile_record_parse(all.v + e->at, &d->events[e->event].attr, &rec))
			continue;
		rec.event = e->event;
		r = fn(arg, &rec);
		if (r)
			return r;
	}
	return 0;
}

const char *perfdata_label(const struct perfdata *d, size_t i)
{
	if (!d->feat.by_quipu)
		return NULL;
	if (d->feat.partial && d->events[i].exactness == QUIPU_EXACT)
		return "partial";
	return quipu_exactness_name(d->events[i].exactness);
}

size_t perfdata_malformed(const struct perfdata *d)
{
	return d->malformed;
}

size_t perfdata_unknown_ids(const struct perfdata *d)
{
	return d->unknown_ids;
}
