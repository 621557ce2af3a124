/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RTAS gate, and behind it ibm,lpar-perftools: LoPAR 2.9, "RTAS Environment" (argument buffer)
 * and "ibm,lpar-perftools RTAS Call" (R1-2 to R1-6). The order of checks, C0 to C13, and the
 * numbers of sequences are sheet 3; where the text leaves a choice, the room's README tells ours.
 *
 * A partition owns its memory and may change it while we look: each cell and the address are read
 * once. Not there: other RTAS functions, rtas-last-error.
 */
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>

#include "platform/lpar/hardware.h"

#define NARGS	      5u
#define NRET	      2u
#define MOST_CELLS    16u /* args and rets together, as Linux has it */
#define HEAD_CELLS    3u  /* token, nargs, nret */
#define GIB_4	      (UINT64_C(1) << 32)
#define LAST_ID	      0x7fffffffu
#define NS_PER_MS     UINT64_C(1000000)
#define SCRIBBLE      0xa5
#define SCRIBBLE_MOST (1u << 20) /* of a work area, so that a wild size costs no more */
#define OFFSET_BYTES  8u
#define SMALLEST      10u /* offset, one character, NUL */

struct call {
	struct quipu_partition *p;
	uint64_t at; /* argument buffer */
	unsigned cell_bytes;
	uint32_t head[HEAD_CELLS];
	uint32_t arg[NARGS];
	uint64_t work;
	uint32_t size, number;
	bool work_valid; /* passed C7: the work area may be written */
	int32_t status;
	uint32_t next;
};

/* ---- cells ---- */

/* @n cells from cell @first on, each read once. A 64-bit cell holds a sign-extended word: its low
 * half is the value. */
static int read_cells(const struct call *c, unsigned first, unsigned n, uint32_t *values)
{
	uint8_t raw[MOST_CELLS * 8];
	unsigned w = c->cell_bytes;
	int err = quipu_partition_read(c->p, c->at + (uint64_t)first * w, raw, (size_t)n * w);

	for (unsigned i = 0; !err && i < n; i++)
		values[i] = bits_be32(raw + (size_t)i * w + w - 4);
	return err;
}

static void write_cell(const struct call *c, unsigned i, uint32_t value)
{
	uint64_t wide = __builtin_bswap64((uint64_t)(int64_t)(int32_t)value);

	quipu_partition_write(c->p, c->at + (uint64_t)i * c->cell_bytes,
			      (uint8_t *)&wide + 8 - c->cell_bytes, c->cell_bytes);
}

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a_size && b_size && a < b + b_size && b < a + a_size;
}

/* C0: the buffer is aligned, inside the RMA and apart from the private area. The token and the two
 * numbers are read on the way. */
static int find_buffer(struct call *c)
{
	const struct quipu_partition *p = c->p;
	uint64_t bytes = HEAD_CELLS * c->cell_bytes;

	if (c->at % 8 || c->at >= p->rma || bytes > p->rma - c->at)
		return -EFAULT;
	if (read_cells(c, 0, HEAD_CELLS, c->head))
		return -EFAULT;
	if (c->head[1] > MOST_CELLS || c->head[2] > MOST_CELLS ||
	    c->head[1] + c->head[2] > MOST_CELLS)
		return -EFAULT;
	bytes += (uint64_t)(c->head[1] + c->head[2]) * c->cell_bytes;
	if (bytes > p->rma - c->at || overlaps(c->at, bytes, p->lpar->base, p->lpar->size))
		return -EFAULT;
	return 0;
}

/* ---- sequences ---- */

/* Every number is issued once in 2^31: a dead one is never taken for a live one. */
static uint32_t issue(struct quipu_partition *p)
{
	uint32_t id = p->next_id;

	p->next_id = id >= LAST_ID ? 2 : id + 1;
	return id;
}

static void end_sequence(struct quipu_partition *p)
{
	p->seq = (struct lpar_sequence){0};
}

static void discard(struct quipu_partition *p)
{
	p->stats.cancelled += p->seq.active;
	end_sequence(p);
}

/* The call's work is not done: come again with a number of its own. */
static void go_on(struct call *c, int32_t status)
{
	struct lpar_sequence *s = &c->p->seq;

	s->expect = issue(c->p);
	s->last = c->number;
	s->retry = status != QUIPU_RTAS_SUCCESS;
	c->status = status;
	c->next = s->expect;
}

static void refuse(struct call *c, int32_t status)
{
	c->status = status;
	c->next = 1;
}

static void fail(struct call *c, int32_t status)
{
	end_sequence(c->p);
	refuse(c, status);
}

/* 3.4: after a retry status also the number that the call before had, the literal "same input
 * parameters" of R1-2. */
static bool acceptable(const struct lpar_sequence *s, uint32_t number)
{
	return s->active &&
	       (number == s->expect || (s->retry && s->last != 1 && number == s->last));
}

/* ---- delays and faults (sheet 4.6) ---- */

static unsigned log10_ms(uint64_t ms)
{
	unsigned x = 0;

	while (ms >= 10 && x < 5) {
		ms /= 10;
		x++;
	}
	return x;
}

static uint64_t window_ns(int32_t status)
{
	uint64_t ns = NS_PER_MS;

	for (int32_t x = QUIPU_RTAS_EXT_DELAY_MIN; x < status; x++)
		ns *= 10;
	return ns;
}

/* The plan's word for this call: a status, or 0: go ahead. */
static int32_t planned(struct quipu_partition *p)
{
	uint64_t now = lpar_now(p->lpar);
	int32_t status;

	if ((p->lookups + 1) % p->period)
		return 0;
	if (p->waiting && now < p->ready_at)
		return QUIPU_RTAS_EXT_DELAY_MIN +
		       (int32_t)log10_ms((p->ready_at - now) / NS_PER_MS);
	p->waiting = false;
	if (p->plan_pos >= p->nplan)
		return 0;
	status = p->plan[p->plan_pos++];
	if (p->time_mode && status != QUIPU_RTAS_BUSY) {
		p->waiting = true;
		p->ready_at = now + window_ns(status);
	}
	return status;
}

/* A lookup is over: the next one begins its own delays. */
static void answered(struct quipu_partition *p)
{
	p->lookups++;
	p->plan_pos = 0;
	p->waiting = false;
}

/* Faults that a test asked for; the first that is due. 0: none. */
static int32_t injected(struct quipu_partition *p)
{
	int32_t status = 0;

	for (unsigned i = 0; i < p->ninject; i++) {
		struct lpar_injection *j = &p->inject[i];

		if (--j->left)
			continue;
		if (!status)
			status = j->status;
		j->left = j->period;
		if (!j->period) {
			*j = p->inject[--p->ninject];
			i--;
		}
	}
	return status;
}

static bool is_delay(int32_t status)
{
	return status == QUIPU_RTAS_BUSY || status >= QUIPU_RTAS_EXT_DELAY_MIN;
}

/* ---- the work area ---- */

/* 4.5: contiguous (one range of memory), and where RTAS reaches. */
static bool work_area_allowed(const struct call *c)
{
	const struct quipu_partition *p = c->p;
	uint64_t limit = p->rma, end = c->work + c->size;

	if (c->cell_bytes == 4 && limit > GIB_4)
		limit = GIB_4;
	if (end < c->work || !lpar_in_memory(p, c->work, c->size))
		return false;
	return p->anywhere || end <= limit;
}

/* C7 */
static bool work_area_valid(const struct call *c)
{
	uint64_t buffer = (uint64_t)(HEAD_CELLS + NARGS + NRET) * c->cell_bytes;

	return c->size >= OFFSET_BYTES && work_area_allowed(c) &&
	       !overlaps(c->work, c->size, c->at, buffer) &&
	       !overlaps(c->work, c->size, c->p->lpar->base, c->p->lpar->size);
}

static uint64_t read_iar(const struct call *c)
{
	uint8_t raw[8] = {0};

	quipu_partition_read(c->p, c->work, raw, sizeof(raw));
	return bits_be64(raw);
}

/* R1-5: undefined, so a test may want it destroyed. */
static void scribble(const struct call *c)
{
	uint8_t fill[4096];
	uint32_t left = c->size < SCRIBBLE_MOST ? c->size : SCRIBBLE_MOST;

	memset(fill, SCRIBBLE, sizeof(fill));
	for (uint32_t done = 0; done < left;) {
		uint32_t n = left - done < sizeof(fill) ? left - done : (uint32_t)sizeof(fill);

		quipu_partition_write(c->p, c->work + done, fill, n);
		done += n;
	}
}

/* ---- the answer ---- */

struct answer {
	uint64_t offset;
	const char *text;
	size_t len;
};

static void store(const struct call *c, const struct answer *a, size_t from, size_t n)
{
	uint8_t raw[OFFSET_BYTES + QUIPU_HVMAP_NAME + 1];
	uint64_t offset = __builtin_bswap64(a->offset);

	memcpy(raw, &offset, sizeof(offset));
	memcpy(raw + OFFSET_BYTES, a->text + from, n);
	raw[OFFSET_BYTES + n] = 0;
	quipu_partition_write(c->p, c->work, raw, OFFSET_BYTES + n + 1);
}

/* C12, C13. */
static void deliver(struct call *c, const struct answer *a)
{
	struct quipu_partition *p = c->p;
	size_t room = c->size - OFFSET_BYTES - 1, left = a->len - p->seq.emitted;

	if (left > room && !p->chunked) {
		answered(p);
		fail(c, QUIPU_RTAS_TOO_SMALL);
		return;
	}
	if (!p->seq.delivering)
		answered(p);
	p->seq.delivering = true;
	store(c, a, p->seq.emitted, left < room ? left : room);
	if (left <= room) {
		fail(c, QUIPU_RTAS_SUCCESS);
		return;
	}
	p->seq.emitted += room;
	p->stats.chunks++;
	go_on(c, QUIPU_RTAS_SUCCESS);
}

static void look_up(struct call *c)
{
	struct quipu_partition *p = c->p;
	struct quipu_hvmap *map = quipu_lpar_map(p->lpar);
	struct answer a = {0, p->lpar->invalid_text, 0};
	struct quipu_hvmap_hit hit;
	enum quipu_hvmap_kind kind = quipu_hvmap_find(map, p->seq.iar, &hit);

	if (kind != QUIPU_HVMAP_INVALID)
		a = (struct answer){p->seq.iar - hit.start, hit.name, 0};
	a.len = strlen(a.text);
	deliver(c, &a);
	if (c->status == QUIPU_RTAS_SUCCESS && c->next == 1) {
		p->stats.invalid_address += kind == QUIPU_HVMAP_INVALID;
		p->stats.module_hits += kind == QUIPU_HVMAP_MODULE;
	}
	quipu_hvmap_put(map);
}

/* ---- ibm,lpar-perftools ---- */

/* C8, C9. False: refused. */
static bool take_number(struct call *c)
{
	struct quipu_partition *p = c->p;

	if (c->number != 1) {
		if (!acceptable(&p->seq, c->number)) {
			p->stats.stale_number++;
			refuse(c, QUIPU_RTAS_PARAM_ERROR);
			return false;
		}
		if (p->recheck && read_iar(c) != p->seq.iar) {
			refuse(c, QUIPU_RTAS_PARAM_ERROR);
			return false;
		}
		return true;
	}
	p->seq.active = true;
	p->seq.iar = read_iar(c);
	return true;
}

static void perftools(struct call *c)
{
	struct quipu_partition *p = c->p;
	int32_t status = injected(p);

	c->work = (uint64_t)c->arg[1] << 32 | c->arg[2];
	c->size = c->arg[3];
	c->number = c->arg[4];
	if (p->epoch != quipu_lpar_epoch(p->lpar)) {
		discard(p);
		p->epoch = quipu_lpar_epoch(p->lpar);
	}
	if (status && !is_delay(status)) /* C3 */
		return fail(c, status);
	if (!p->authority) /* C4 */
		return fail(c, QUIPU_RTAS_NOT_AUTHORIZED);
	if (c->number == 1) /* C5, R1-6: whatever comes of this call, the one in process is dead */
		discard(p);
	if (c->arg[0] != 1) /* C6 */
		return refuse(c, QUIPU_RTAS_PARAM_ERROR);
	c->work_valid = work_area_valid(c);
	if (!c->work_valid)
		return refuse(c, QUIPU_RTAS_PARAM_ERROR);
	if (!take_number(c))
		return;
	if (c->size < SMALLEST) { /* C10 */
		if (!p->seq.delivering)
			answered(p);
		return fail(c, QUIPU_RTAS_TOO_SMALL);
	}
	if (!status && !p->seq.delivering) /* C11 */
		status = planned(p);
	if (status)
		return go_on(c, status);
	look_up(c);
}

static void count(struct quipu_partition *p, int32_t status)
{
	struct quipu_lpar_stats *s = &p->stats;

	s->calls++;
	switch (status) {
	case QUIPU_RTAS_SUCCESS: s->ok++; break;
	case QUIPU_RTAS_HW_ERROR: s->hw_error++; break;
	case QUIPU_RTAS_BUSY: s->busy++; break;
	case QUIPU_RTAS_PARAM_ERROR: s->param_error++; break;
	case QUIPU_RTAS_TOO_SMALL: s->too_small++; break;
	case QUIPU_RTAS_NOT_AUTHORIZED: s->no_authority++; break;
	default: s->ext_delay[status - QUIPU_RTAS_EXT_DELAY_MIN]++;
	}
}

/* ---- the gate ---- */

static void dispatch(struct call *c)
{
	const struct quipu_lpar *l = c->p->lpar;
	unsigned rets = HEAD_CELLS + c->head[1];
	bool known = l->has_token && c->head[0] == l->token; /* C1 */

	refuse(c, QUIPU_RTAS_PARAM_ERROR);
	if (known && c->head[1] == NARGS && c->head[2] == NRET) { /* C2 */
		read_cells(c, HEAD_CELLS, NARGS, c->arg);
		perftools(c);
	}
	count(c->p, c->status);
	if (c->status && c->work_valid && c->p->scribble)
		scribble(c);
	/* The number before the status: who polls the status finds it complete. */
	if (c->head[2] >= 2 && known)
		write_cell(c, rets + 1, c->next);
	if (c->head[2] >= 1)
		write_cell(c, rets, (uint32_t)c->status);
}

int quipu_rtas_call(struct quipu_partition *p, uint64_t args)
{
	struct call c = {.p = p, .at = args, .cell_bytes = p->cell_bytes};
	bool overlap = pthread_mutex_trylock(&p->lock) != 0;
	int err;

	/* The partition's duty is one call at a time; breaking it harms nobody but itself. */
	if (overlap)
		pthread_mutex_lock(&p->lock);
	p->stats.overlap_count += overlap;
	err = find_buffer(&c);
	if (!err)
		dispatch(&c);
	pthread_mutex_unlock(&p->lock);
	return err;
}

const char *quipu_rtas_status_name(int32_t status)
{
	static const char *const delays[] = {
		"extended delay, about 1 ms",	"extended delay, about 10 ms",
		"extended delay, about 100 ms", "extended delay, about 1 s",
		"extended delay, about 10 s",	"extended delay, about 100 s",
	};

	if (status >= QUIPU_RTAS_EXT_DELAY_MIN && status <= QUIPU_RTAS_EXT_DELAY_MAX)
		return delays[status - QUIPU_RTAS_EXT_DELAY_MIN];
	switch (status) {
	case QUIPU_RTAS_SUCCESS: return "success";
	case QUIPU_RTAS_HW_ERROR: return "hardware error";
	case QUIPU_RTAS_BUSY: return "busy";
	case QUIPU_RTAS_PARAM_ERROR: return "parameter error";
	case QUIPU_RTAS_TOO_SMALL: return "buffer too small";
	case QUIPU_RTAS_NOT_AUTHORIZED: return "no authority";
	}
	return "unknown status";
}
