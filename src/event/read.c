/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading counts: read(2) in its layouts (perf ABI sheet A8), READ values inside records (A15 row
 * 10), and what `quipu stat` prints (quipu_event_count).
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

#define READ_LOST (UINT64_C(1) << 4) /* PERF_FORMAT_LOST, Linux 6.0 */

void event_fold(struct quipu_event *e)
{
	if (e->state == STATE_ACTIVE)
		e->pmu->read(e);
	event_update_time(e);
}

size_t read_size(uint64_t format, unsigned nr_siblings)
{
	size_t entry = 1, n = 1, head = 0;

	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		head++;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		head++;
	if (format & PERF_FORMAT_ID)
		entry++;
	if (format & READ_LOST)
		entry++;
	if (format & PERF_FORMAT_GROUP) {
		n += nr_siblings;
		head++;
	}
	return 8 * (head + n * entry);
}

struct total {
	uint64_t value, enabled, running, truth;
};

/* Own, gone clones, live clones. */
static struct total total_of(struct quipu_event *e)
{
	struct quipu_event *c;
	struct total t;

	event_fold(e);
	t.value = e->count + e->child_count;
	t.enabled = e->enabled + e->child_enabled;
	t.running = e->running + e->child_running;
	t.truth = e->truth + e->child_truth;
	list_for_each(c, &e->children, child_link) {
		event_fold(c);
		t.value += c->count;
		t.enabled += c->enabled;
		t.running += c->running;
		t.truth += c->truth;
	}
	return t;
}

static uint64_t *put_times(uint64_t *p, uint64_t format, uint64_t enabled, uint64_t running)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		*p++ = enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		*p++ = running;
	return p;
}

static uint64_t *put_member(uint64_t *p, uint64_t format, const struct quipu_event *e,
			    uint64_t value)
{
	*p++ = value;
	if (format & PERF_FORMAT_ID)
		*p++ = primary_id(e);
	if (format & READ_LOST)
		*p++ = e->lost;
	return p;
}

static size_t read_one(struct quipu_event *e, uint64_t *out)
{
	struct total t = total_of(e);
	uint64_t format = e->attr.read_format;
	uint64_t *p = out;

	*p++ = t.value;
	p = put_times(p, format, t.enabled, t.running);
	if (format & PERF_FORMAT_ID)
		*p++ = e->id;
	if (format & READ_LOST)
		*p++ = e->lost;
	return (size_t)(p - out) * 8;
}

/* A clone of the leader whose group has another shape than the original's: nobody could say which
 * value is whose. */
static bool clones_differ(const struct quipu_event *leader)
{
	struct quipu_event *c;

	list_for_each(c, &leader->children, child_link) {
		if (c->generation != leader->generation || c->nr_siblings != leader->nr_siblings)
			return true;
	}
	return false;
}

static size_t read_group(struct quipu_event *e, uint64_t *out)
{
	struct quipu_event *leader = e->leader, *s;
	uint64_t format = e->attr.read_format;
	struct total t = total_of(leader);
	uint64_t *p = out;

	*p++ = 1 + leader->nr_siblings;
	p = put_times(p, format, t.enabled, t.running);
	p = put_member(p, format, leader, t.value);
	list_for_each(s, &leader->siblings, sibling_link)
		p = put_member(p, format, s, total_of(s).value);
	return (size_t)(p - out) * 8;
}

ssize_t quipu_event_read(struct quipu_event *e, void *buf, size_t len)
{
	uint64_t out[READ_MAX / 8 + 1];
	size_t need;

	core_work(e->core);
	if (e->state == STATE_ERROR || e->state == STATE_REVOKED)
		return 0;
	need = read_size(e->attr.read_format, e->leader->nr_siblings);
	if (len < need)
		return -ENOSPC;
	if (!(e->attr.read_format & PERF_FORMAT_GROUP)) {
		read_one(e, out);
	} else {
		if (clones_differ(e->leader))
			return -ECHILD;
		read_group(e, out);
	}
	memcpy(buf, out, need);
	return (ssize_t)need;
}

/* With inherit and SAMPLE_READ (6.12, A4 step 24) a task's samples carry its own counts alone. */
static uint64_t record_value(const struct quipu_event *e)
{
	bool own = (e->attr.flags & QUIPU_ATTR_INHERIT) && (e->attr.sample_type & PERF_SAMPLE_READ);

	return own ? e->count : e->count + e->child_count;
}

size_t read_for_record(struct quipu_event *e, uint64_t *out)
{
	uint64_t format = e->attr.read_format;
	struct quipu_event *s;
	uint64_t *p = out;

	event_update_time(e);
	if (!(format & PERF_FORMAT_GROUP)) {
		*p++ = record_value(e);
		p = put_times(p, format, e->enabled + e->child_enabled,
			      e->running + e->child_running);
		if (format & PERF_FORMAT_ID)
			*p++ = primary_id(e);
		if (format & READ_LOST)
			*p++ = e->lost;
		return (size_t)(p - out) * 8;
	}
	*p++ = 1 + e->leader->nr_siblings;
	p = put_times(p, format, e->enabled, e->running);
	if (e->leader != e)
		event_fold(e->leader);
	p = put_member(p, format, e->leader, record_value(e->leader));
	list_for_each(s, &e->leader->siblings, sibling_link) {
		if (s != e)
			event_fold(s);
		p = put_member(p, format, s, record_value(s));
	}
	return (size_t)(p - out) * 8;
}

static const char *why_never_ran(const struct quipu_event *e, const struct total *t)
{
	const struct quipu_event *leader = e->leader;

	if (e->state == STATE_REVOKED)
		return "its PMU was taken away while the event was open";
	if (t->running)
		return NULL;
	if (e->reason)
		return e->reason;
	if (leader->reason)
		return leader->reason;
	/* A refused add leaves its reason, so this one was never even tried. */
	if (t->enabled && e->task && e->cpu >= 0)
		return "its task never ran on its CPU while it was enabled";
	if (t->enabled)
		return "no counter was free while it was enabled";
	if (leader->state == STATE_OFF || e->state == STATE_OFF)
		return "it was never enabled";
	return e->task ? "its task never ran while it was enabled"
		       : "no time passed while it was enabled";
}

void quipu_event_count(struct quipu_event *e, struct quipu_count *out)
{
	struct total t;

	core_work(e->core);
	t = total_of(e);
	*out = (struct quipu_count){
		.value = t.value,
		.enabled = t.enabled,
		.running = t.running,
		.lost = e->lost,
		.reason = why_never_ran(e, &t),
		.remark = e->remark,
	};
	if (is_software(e)) { /* never multiplexed: what it counted is all there was */
		out->truth = t.value;
		out->has_truth = true;
	} else if (e->filtered || (e->signal != QUIPU_SIGNAL_NONE && e->core->ops->signal)) {
		out->truth = t.truth;
		out->has_truth = true;
	}
}
