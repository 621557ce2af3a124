/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer of perf.data (layout in perfdata_format.h). Events first, records as they come,
 * everything that depends on them (perfdata_features.c) at the end. Equal records, events and info
 * give equal bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "config.h"
#include "profile/buildid.h"
#include "profile/perfdata.h"
#include "profile/hypervisor.h"
#include "profile/perfdata_format.h"
#include "profile/perfdata_writer.h"

#define BUFFER	       (256u * 1024)
/* A record's size is 16 bits and a multiple of 8. */
#define RECORD_MAX     65528u
#define MISC_MMAP_DATA (1u << 13)

/* ---- the file ---- */

static void flush(struct perfdata_writer *w)
{
	size_t done = 0;

	while (!w->error && done < w->n) {
		ssize_t r = write(w->fd, w->buf + done, w->n - done);

		if (r > 0)
			done += (size_t)r;
		else if (r == 0 || errno != EINTR)
			w->error = r == 0 ? -EIO : -errno;
	}
	w->n = 0;
}

void perfdata_put(struct perfdata_writer *w, const void *data, size_t len)
{
	const uint8_t *p = data;

	w->pos += len;
	while (len && !w->error) {
		size_t part = len < BUFFER - w->n ? len : BUFFER - w->n;

		memcpy(w->buf + w->n, p, part);
		w->n += part;
		p += part;
		len -= part;
		if (w->n == BUFFER)
			flush(w);
	}
}

int perfdata_fill(const struct perfdata_writer *w, const void *data, size_t len, uint64_t at)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t r = pwrite(w->fd, p, len, (off_t)at);

		if (r > 0) {
			p += r;
			at += (uint64_t)r;
			len -= (size_t)r;
		} else if (r == 0 || errno != EINTR) {
			return r == 0 ? -EIO : -errno;
		}
	}
	return 0;
}

static void put_at(struct perfdata_writer *w, const void *data, size_t len, uint64_t at)
{
	if (!w->error)
		w->error = perfdata_fill(w, data, len, at);
}

/* The folder of @path, to be freed. */
static char *folder(const char *path)
{
	char *copy = strdup(path), *dir = copy ? strdup(dirname(copy)) : NULL;

	free(copy);
	return dir;
}

/* A file without a name where the file system can; else one with a temporary name. */
static int open_unfinished(struct perfdata_writer *w)
{
	char *dir = folder(w->path);

	if (!dir)
		return -ENOMEM;
	w->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (w->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		if (asprintf(&w->temporary, "%s/.quipu-XXXXXX", dir) < 0)
			w->temporary = NULL;
		w->fd = w->temporary ? mkostemp(w->temporary, O_CLOEXEC) : -1;
		if (w->fd < 0) {
			free(w->temporary);
			w->temporary = NULL;
		}
	}
	free(dir);
	return w->fd < 0 ? -errno : 0;
}

/* What is at @path now decides how it is written. */
static int open_target(struct perfdata_writer *w, const char *path, struct perfdata_error *err)
{
	struct stat st;
	int r;

	if (!strcmp(path, "-"))
		return perfdata_fail(err, -ESPIPE,
				     "cannot write perf.data to a pipe: its header is "
				     "written last; give a file with -o");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (!S_ISCHR(st.st_mode))
			return perfdata_fail(err, S_ISDIR(st.st_mode) ? -EISDIR : -ESPIPE,
					     "cannot write perf.data to '%s': not a regular file",
					     path);
		w->device = true;
		w->path = strdup(path);
		w->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		r = w->fd < 0 ? -errno : 0;
	} else {
		/* Through a symbolic link, so that it is its target which is replaced. */
		w->path = realpath(path, NULL);
		if (!w->path)
			w->path = strdup(path);
		r = w->path ? open_unfinished(w) : -ENOMEM;
	}
	return r ? perfdata_fail(err, r, "cannot write '%s': %s", path, strerror(-r)) : 0;
}

struct perfdata_writer *perfdata_create(const char *path, struct perfdata_error *err)
{
	struct perfdata_writer *w = calloc(1, sizeof(*w));

	if (!w) {
		perfdata_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	w->fd = -1;
	w->buf = malloc(BUFFER);
	if (!w->buf)
		perfdata_fail(err, -ENOMEM, "out of memory");
	if (!w->buf || open_target(w, path, err)) {
		perfdata_abort(w);
		return NULL;
	}
	return w;
}

/* ---- events ---- */

/* perf 6.1 takes no attr longer than 128 bytes; what 6.12 added behind them is almost always 0. */
static uint32_t attr_size(const struct quipu_attr *attr)
{
	return attr->config3 ? sizeof(*attr) : PERFDATA_ATTR_V7;
}

int perfdata_add_event(struct perfdata_writer *w, const struct quipu_attr *attr,
		       const uint64_t *ids, size_t nr_ids, const char *name,
		       enum quipu_exactness exactness)
{
	struct perfdata_event *ev;

	if (w->started)
		return -EBUSY;
	ev = realloc(w->events, (w->nr_events + 1) * sizeof(*ev));
	if (!ev)
		return -ENOMEM;
	w->events = ev;
	ev += w->nr_events;
	*ev = (struct perfdata_event){
		.attr = *attr, .nr_ids = nr_ids, .name = strdup(name), .exactness = exactness};
	ev->attr.size = attr_size(attr);
	ev->ids = calloc(nr_ids + 1, sizeof(*ids));
	if (!ev->name || !ev->ids) {
		free(ev->name);
		free(ev->ids);
		return -ENOMEM;
	}
	if (nr_ids)
		memcpy(ev->ids, ids, nr_ids * sizeof(*ids));
	w->nr_events++;
	if (!profile_ids_agree(w->events, w->nr_events)) {
		w->nr_events--;
		free(ev->name);
		free(ev->ids);
		return -EINVAL;
	}
	return 0;
}

uint32_t perfdata_stride(const struct perfdata_writer *w)
{
	uint32_t size = PERFDATA_ATTR_V7;

	for (size_t i = 0; i < w->nr_events; i++)
		if (w->events[i].attr.size > size)
			size = w->events[i].attr.size;
	return size;
}

/*
 * The first record fixes the events: a header of zeros (not a perf.data yet), their ids, their
 * attrs.
 */
static int start(struct perfdata_writer *w)
{
	static const uint8_t zeros[PERFDATA_HEADER_SIZE];
	uint64_t at = PERFDATA_HEADER_SIZE;
	uint32_t stride = perfdata_stride(w);

	w->started = true;
	if (!w->nr_events)
		return w->error = -EINVAL;
	if (profile_ids_build(&w->ids, w->events, w->nr_events))
		return w->error = -ENOMEM;
	perfdata_put(w, zeros, sizeof(zeros));
	for (size_t i = 0; i < w->nr_events; i++) {
		const struct perfdata_event *ev = &w->events[i];
		size_t len = ev->nr_ids * sizeof(*ev->ids);

		perfdata_put(w, ev->ids, len);
		blob_add(&w->attrs, &ev->attr, stride);
		blob_u64(&w->attrs, at);
		blob_u64(&w->attrs, len);
		at += len;
	}
	if (w->attrs.failed)
		return w->error = -ENOMEM;
	perfdata_put(w, w->attrs.v, w->attrs.n);
	w->data_start = w->pos;
	return w->error;
}

/* ---- records ---- */

static int note_mapped(struct perfdata_writer *w, const char *name)
{
	char **m;

	if (name[0] != '/' || name[1] == '/')
		return 0; /* [stack], //anon */
	for (size_t i = 0; i < w->nr_mapped; i++)
		if (!strcmp(w->mapped[i], name))
			return 0;
	m = realloc(w->mapped, (w->nr_mapped + 1) * sizeof(*m));
	if (!m)
		return -ENOMEM;
	w->mapped = m;
	m[w->nr_mapped] = strdup(name);
	if (!m[w->nr_mapped])
		return -ENOMEM;
	w->nr_mapped++;
	return 0;
}

static void note_time(struct perfdata_writer *w, uint64_t time)
{
	if (!w->has_time || time < w->time_first)
		w->time_first = time;
	if (!w->has_time || time > w->time_last)
		w->time_last = time;
	w->has_time = true;
}

/* What the features at the end need to know of a record. */
static int note_record(struct perfdata_writer *w, const uint8_t *p)
{
	uint32_t type = bits_le32(p);
	struct profile_record rec;
	size_t event;

	if (type == PERF_RECORD_SAMPLE)
		w->samples++;
	else if (type != PERF_RECORD_MMAP && type != PERF_RECORD_MMAP2 && type != PERF_RECORD_LOST)
		return 0;
	if (!profile_ids_event(&w->ids, w->events, w->nr_events, p, &event))
		return 0;
	if (profile_record_parse(p, &w->events[event].attr, &rec))
		return -EINVAL;
	if (type == PERF_RECORD_SAMPLE) {
		if (w->events[event].attr.sample_type & PERF_SAMPLE_TIME)
			note_time(w, rec.time);
		return (rec.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_HYPERVISOR
			       ? profile_addresses_add(&w->hypervisor, rec.sample.ip)
			       : 0;
	}
	if (type == PERF_RECORD_LOST) {
		w->lost += rec.lost.lost;
		return 0;
	}
	return rec.mmap.data ? 0 : note_mapped(w, rec.mmap.name);
}

static int note_records(struct perfdata_writer *w, const uint8_t *p, size_t len)
{
	if (!w->started)
		start(w);
	if (w->error)
		return w->error;
	for (size_t off = 0; off < len;) {
		size_t size = profile_record_frame(p + off, len - off);
		int r;

		if (!size || size % 8)
			return -EINVAL;
		r = note_record(w, p + off);
		if (r)
			return r;
		off += size;
	}
	return 0;
}

int perfdata_append(struct perfdata_writer *w, const void *data, size_t len)
{
	int r = note_records(w, data, len);

	if (r)
		return r;
	perfdata_put(w, data, len);
	return w->error;
}

int perfdata_reserve(struct perfdata_writer *w, const void *data, size_t len, uint64_t *at)
{
	int r = note_records(w, data, len);

	if (r)
		return r;
	flush(w);
	*at = w->pos;
	w->pos += len;
	if (!w->error && !w->device && lseek(w->fd, (off_t)w->pos, SEEK_SET) < 0)
		w->error = -errno;
	return w->error;
}

void perfdata_spoil(struct perfdata_writer *w, int error)
{
	w->error = w->error ? w->error : error;
}

static void blob_header(struct blob *b, uint32_t type, uint16_t misc)
{
	uint16_t rest[2] = {misc, 0};

	blob_u32(b, type);
	blob_add(b, rest, sizeof(rest));
}

/* Writes the finished record @b (its size goes into the header) and frees it. */
static int append_blob(struct perfdata_writer *w, struct blob *b)
{
	uint16_t size = (uint16_t)b->n;
	int r = b->failed ? -ENOMEM : b->n > RECORD_MAX ? -EINVAL : 0;

	if (!r) {
		memcpy(b->v + 6, &size, sizeof(size));
		r = perfdata_append(w, b->v, b->n);
	}
	blob_free(b);
	return r;
}

/*
 * A name padded to 8, and a trailer of zeros: synthesised records are of no time, and of the first
 * event.
 */
static void blob_name_and_trailer(struct perfdata_writer *w, struct blob *b, const char *name)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	size_t len = strlen(name) + 1;

	blob_add(b, name, len);
	blob_zero(b, -len & 7);
	if (w->nr_events && w->events[0].attr.flags & QUIPU_ATTR_SAMPLE_ID_ALL)
		blob_zero(b, 8 * bits_count(w->events[0].attr.sample_type & fields));
}

int perfdata_round(struct perfdata_writer *w)
{
	struct blob b = {0};

	blob_header(&b, PROFILE_RECORD_FINISHED_ROUND, 0);
	return append_blob(w, &b);
}

int perfdata_comm(struct perfdata_writer *w, uint32_t pid, uint32_t tid, const char *comm)
{
	struct blob b = {0};
	char name[16];

	snprintf(name, sizeof(name), "%s", comm);
	blob_header(&b, PERF_RECORD_COMM, 0);
	blob_u32(&b, pid);
	blob_u32(&b, tid);
	blob_name_and_trailer(w, &b, name);
	return append_blob(w, &b);
}

int perfdata_mmap2(struct perfdata_writer *w, const struct perfdata_mapping *m)
{
	struct blob b = {0};

	blob_header(&b, PERF_RECORD_MMAP2, MISC_USER | (m->prot & 4 ? 0 : MISC_MMAP_DATA));
	blob_u32(&b, m->pid);
	blob_u32(&b, m->tid);
	blob_u64(&b, m->addr);
	blob_u64(&b, m->len);
	blob_u64(&b, m->pgoff);
	blob_u32(&b, m->maj);
	blob_u32(&b, m->min);
	blob_u64(&b, m->ino);
	blob_u64(&b, m->ino_generation);
	blob_u32(&b, m->prot);
	blob_u32(&b, m->flags);
	blob_name_and_trailer(w, &b, m->name);
	return append_blob(w, &b);
}

int perfdata_kernel(struct perfdata_writer *w, uint64_t start, uint64_t end, uint64_t base,
		    const char *name)
{
	struct blob b = {0};

	blob_header(&b, PERF_RECORD_MMAP, MISC_KERNEL);
	blob_u32(&b, UINT32_MAX);
	blob_u32(&b, 0);
	blob_u64(&b, start);
	blob_u64(&b, end - start);
	blob_u64(&b, base);
	blob_name_and_trailer(w, &b, name);
	return append_blob(w, &b);
}

size_t perfdata_hypervisor(struct perfdata_writer *w, const uint64_t **addresses)
{
	profile_addresses_sort(&w->hypervisor);
	*addresses = w->hypervisor.v;
	return w->hypervisor.n;
}

uint64_t perfdata_lost(const struct perfdata_writer *w)
{
	return w->lost;
}

uint64_t perfdata_bytes(const struct perfdata_writer *w)
{
	return w->pos;
}

uint64_t perfdata_samples(const struct perfdata_writer *w)
{
	return w->samples;
}

/* ---- the header ---- */

static void put_header(struct perfdata_writer *w, uint64_t data_end, const uint64_t bits[4])
{
	uint64_t stride = perfdata_stride(w) + PERFDATA_SECTION_SIZE;
	struct blob b = {0};

	blob_add(&b, PERFDATA_MAGIC, 8);
	blob_u64(&b, PERFDATA_HEADER_SIZE);
	blob_u64(&b, stride);
	blob_u64(&b, w->data_start - w->attrs.n);
	blob_u64(&b, w->attrs.n);
	blob_u64(&b, w->data_start);
	blob_u64(&b, data_end - w->data_start);
	blob_zero(&b, PERFDATA_SECTION_SIZE); /* event types: not used since long */
	blob_add(&b, bits, 32);
	if (b.failed)
		w->error = w->error ? w->error : -ENOMEM;
	else
		put_at(w, b.v, b.n, 0);
	blob_free(&b);
}

/* ---- the end ---- */

static int give_temporary_name(struct perfdata_writer *w)
{
	char fd_path[64], *dir, *name;
	int r = 0;

	if (w->temporary)
		return 0;
	dir = folder(w->path);
	if (!dir)
		return -ENOMEM;
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", w->fd);
	if (asprintf(&name, "%s/.quipu-%ld", dir, (long)getpid()) < 0)
		name = NULL;
	free(dir);
	if (!name)
		return -ENOMEM;
	unlink(name); /* of a process that had our pid and was killed just here */
	if (linkat(AT_FDCWD, fd_path, AT_FDCWD, name, AT_SYMLINK_FOLLOW))
		r = -errno;
	if (r)
		free(name);
	else
		w->temporary = name;
	return r;
}

/* An earlier recording becomes PATH.old, as perf does it. */
static void keep_old(const char *path)
{
	struct stat st;
	char *old;

	if (stat(path, &st) || !st.st_size || asprintf(&old, "%s.old", path) < 0)
		return;
	/* If it cannot be kept it is replaced: rename below does that in one step. */
	(void)!rename(path, old);
	free(old);
}

static int publish(struct perfdata_writer *w)
{
	int r;

	if (w->device)
		return 0;
	/* Also tells of what write(2) could not yet know: quota, a full network file system. */
	if (fsync(w->fd))
		return -errno;
	r = give_temporary_name(w);
	if (r)
		return r;
	keep_old(w->path);
	if (rename(w->temporary, w->path))
		return -errno;
	free(w->temporary);
	w->temporary = NULL;
	return 0;
}

int perfdata_finish(struct perfdata_writer *w, const struct perfdata_info *info,
		    struct perfdata_error *err)
{
	uint64_t bits[4] = {0}, data_end;
	int r;

	if (!w->started)
		start(w);
	data_end = w->pos;
	if (!w->error)
		perfdata_put_features(w, info, bits);
	flush(w);
	if (!w->error)
		put_header(w, data_end, bits);
	r = w->error ? w->error : publish(w);
	if (r && !w->nr_events)
		perfdata_fail(err, r, "cannot write '%s': no event was recorded", w->path);
	else if (r)
		perfdata_fail(err, r, "cannot write '%s': %s; no file was left", w->path,
			      strerror(-r));
	perfdata_abort(w);
	return r;
}

void perfdata_abort(struct perfdata_writer *w)
{
	if (!w)
		return;
	if (w->temporary)
		unlink(w->temporary);
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < w->nr_events; i++) {
		free(w->events[i].ids);
		free(w->events[i].name);
	}
	for (size_t i = 0; i < w->nr_mapped; i++)
		free(w->mapped[i]);
	free(w->events);
	free(w->mapped);
	profile_addresses_free(&w->hypervisor);
	profile_ids_free(&w->ids);
	blob_free(&w->attrs);
	free(w->temporary);
	free(w->path);
	free(w->buf);
	free(w);
}
