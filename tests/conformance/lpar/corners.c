/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the cases of the RTAS sheet leave to its text: where argument buffers and work areas may lie
 * when a partition has more memory than its RMA, delays in time that begin with busy, and what the
 * resolver makes of each answer, told by a transport that answers from a list.
 */
#include "bed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libfdt.h>

/* ---- firmware ---- */

static void bed_with(struct bed *b, const char *name, const uint32_t *cells, int n)
{
	uint32_t be[8];

	bed_tree(b);
	for (int i = 0; i < n; i++)
		be[i] = cpu_to_fdt32(cells[i]);
	assert_int_equal(
		fdt_setprop(b->fdt, bed_node(b, "partitions/partition@1"), name, be, 4 * n), 0);
}

/* Memory of the partition, and yet no place for an argument buffer. */
static void buffers_lie_in_the_rma(void **state)
{
	static const uint64_t bad[] = {RMA, RMA + 0x100, RMA - 32};
	const uint32_t memory[] = {0, RMA, 0, 0x10000};
	const uint32_t cells[8] = {TOKEN, 5, 2, 1, 0, WORK, 4096, 1};
	struct bed b;

	(void)state;
	bed_with(&b, "quipu,memory", memory, 4);
	bed_start(&b);
	assert_non_null(b.lpar);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t raw[40], after[40];

		memset(raw, CANARY, sizeof(raw));
		for (unsigned k = 0; k < 8; k++) {
			uint32_t be = cpu_to_fdt32(cells[k]);

			memcpy(raw + 4 * k, &be, 4);
		}
		/* Two ranges of memory: one piece at a time. */
		for (unsigned k = 0; k < 5; k++)
			assert_int_equal(quipu_partition_write(b.p, bad[i] + 8 * k, raw + 8 * k, 8),
					 0);
		assert_int_equal(quipu_rtas_call(b.p, bad[i]), -EFAULT);
		for (unsigned k = 0; k < 5; k++)
			assert_int_equal(
				quipu_partition_read(b.p, bad[i] + 8 * k, after + 8 * k, 8), 0);
		assert_memory_equal(raw, after, sizeof(raw));
	}
	bed_stop(&b);
}

/* RTAS of 32 bits reaches 4 GiB, however large the RMA is; that of 64 bits all of it. */
static void how_far_rtas_reaches(void **state)
{
	const uint64_t limit = UINT64_C(1) << 32;
	const uint32_t rma[] = {2, 0}, two = cpu_to_fdt32(2);

	(void)state;
	for (unsigned wide = 0; wide < 2; wide++) {
		int32_t above = wide ? 0 : -3;
		struct bed b;

		bed_with(&b, "quipu,rma-size", rma, 2);
		if (wide)
			assert_int_equal(fdt_setprop(b.fdt, bed_node(&b, "partitions/partition@1"),
						     "quipu,rtas-cells", &two, 4),
					 0);
		bed_start(&b);
		assert_non_null(b.lpar);
		bed_put(b.p, limit - 64, ENTER);
		SAYS(0, 1, bed_call(b.p, 0, 1, limit - 64, 64, 1));
		bed_put(b.p, limit - 32, ENTER);
		SAYS(above, 1, bed_call(b.p, 0, 1, limit - 32, 64, 1));
		bed_put(b.p, limit, ENTER);
		SAYS(above, 1, bed_call(b.p, 0, 1, limit, 64, 1));
		SAYS(-3, 1, bed_call(b.p, 0, 1, 2 * limit - 32, 64, 1));
		bed_stop(&b);
	}
}

/* Busy is one call in time mode too: it opens no window. */
static void busy_in_time_mode(void **state)
{
	struct rets r;
	struct bed b;

	(void)state;
	bed_open(&b);
	quipu_partition_option(b.p, QUIPU_PARTITION_TIME_MODE, true);
	assert_int_equal(quipu_partition_plan(b.p, (const int32_t[]){-2, -2, 9901}, 3, 1), 0);
	r = bed_lookup(b.p, 0, ENTER, 1);
	assert_int_equal(r.status, -2);
	r = bed_lookup(b.p, 0, ENTER, r.next);
	assert_int_equal(r.status, -2);
	r = bed_lookup(b.p, 0, ENTER, r.next);
	assert_int_equal(r.status, 9901);
	b.ns = 9999999;
	r = bed_lookup(b.p, 0, ENTER, r.next);
	assert_int_equal(r.status, 9900);
	b.ns = 10000000;
	SAYS(0, 1, bed_lookup(b.p, 0, ENTER, r.next));
	bed_says(b.p, bed_work(0), 0x40, "qhv_h_enter");
	bed_stop(&b);
}

static void processors_of_a_partition(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b);
	for (unsigned cpu = 0; cpu < 10; cpu++) {
		assert_int_equal(quipu_partition_has_cpu(b.p, cpu), cpu < 8);
		assert_false(quipu_partition_has_cpu(b.other, cpu)); /* its list is empty */
	}
	bed_stop(&b);
}

/* ---- the resolver, and a transport that answers from a list ---- */

#define MOST 256u

struct answer {
	int32_t status;
	uint32_t next;
};

struct script {
	struct quipu_rtas_transport ops;
	struct quipu_hvsym_clock clock;
	const struct answer *answers;
	unsigned n, repeat; /* at the end the last @repeat come again */

	unsigned calls;
	uint32_t number[MOST], size[MOST];
	uint64_t now, slept[MOST];
	unsigned nslept;
};

static int64_t script_token(void *arg, const char *function)
{
	(void)arg;
	(void)function;
	return TOKEN;
}

static int script_alloc(void *arg, size_t size, uint64_t *ra, void **va)
{
	(void)arg;
	*ra = 0x1000;
	*va = malloc(size);
	return *va ? 0 : -ENOMEM;
}

static void script_free(void *arg, size_t size, uint64_t ra, void *va)
{
	(void)arg;
	(void)size;
	(void)ra;
	free(va);
}

/* Every name is "name", and every offset 8. */
static void tell(void *va)
{
	const uint64_t offset = __builtin_bswap64(8);

	memcpy(va, &offset, 8);
	strcpy((char *)va + 8, "name");
}

static int script_call(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		       size_t size)
{
	struct script *s = arg;
	unsigned i = s->calls < s->n ? s->calls : s->n - s->repeat + (s->calls - s->n) % s->repeat;

	(void)ra;
	assert_int_equal(ncells, QUIPU_LPAR_CELLS);
	assert_true(s->calls < MOST);
	assert_int_equal(size, cells[6]);
	s->size[s->calls] = cells[6];
	s->number[s->calls++] = cells[7];
	if (!s->answers[i].status)
		tell(va);
	cells[8] = (uint32_t)s->answers[i].status;
	cells[9] = s->answers[i].next;
	return 0;
}

static uint64_t script_now(void *arg)
{
	return ((struct script *)arg)->now;
}

static void script_sleep(void *arg, uint64_t ms)
{
	struct script *s = arg;

	if (!ms)
		return;
	assert_true(s->nslept < MOST);
	s->slept[s->nslept++] = ms;
	s->now += ms;
}

#define SCRIPT(s, again, ...)                                                                      \
	begin(s, (const struct answer[]){__VA_ARGS__},                                             \
	      sizeof((const struct answer[]){__VA_ARGS__}) / sizeof(struct answer), again)
static void begin(struct script *s, const struct answer *answers, unsigned n, unsigned repeat)
{
	*s = (struct script){.answers = answers, .n = n, .repeat = repeat};
	s->ops = (struct quipu_rtas_transport){.arg = s,
					       .token = script_token,
					       .alloc = script_alloc,
					       .free = script_free,
					       .call = script_call};
	s->clock = (struct quipu_hvsym_clock){script_now, script_sleep, s};
}

static int resolve(struct script *s, struct quipu_hvsym_opts o, struct quipu_hvsym_result *r)
{
	struct quipu_hvsym *h;
	int err;

	o.clock = &s->clock;
	assert_int_equal(quipu_hvsym_open(&h, &s->ops, &o), 0);
	err = quipu_hvsym_resolve(h, 0x2000, r);
	if (!err)
		assert_string_equal(r->name, "name");
	assert_int_equal(r->calls, s->calls);
	quipu_hvsym_close(h);
	return err;
}

/* The returned number, or with the flag the same again: both readings of the retry rule. */
static void the_number_of_a_retry(void **state)
{
	static const uint32_t returned[] = {1, 5, 7, 9}, same[] = {1, 1, 1, 1};
	struct quipu_hvsym_result r;
	struct script s;

	(void)state;
	for (unsigned flag = 0; flag < 2; flag++) {
		SCRIPT(&s, 1, {-2, 5}, {9900, 7}, {-2, 9}, {0, 1});
		assert_int_equal(
			resolve(&s,
				(struct quipu_hvsym_opts){.flags = flag ? QUIPU_HVSYM_SEQ_SAME : 0},
				&r),
			0);
		assert_int_equal(s.calls, 4);
		assert_memory_equal(s.number, flag ? same : returned, sizeof(same));
	}
}

/* An answer with a next number that is none is refused at once, not asked about. */
static void numbers_that_are_none(void **state)
{
	static const uint32_t bad[] = {0, 0x80000000, UINT32_MAX};
	struct quipu_hvsym_result r;
	struct script s;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		SCRIPT(&s, 1, {0, bad[i]}, {0, 1});
		assert_int_equal(resolve(&s, (struct quipu_hvsym_opts){0}, &r), -EPROTO);
		assert_int_equal(s.calls, 1);
	}
}

/* Busy: at once, and after 64 in a row a millisecond each. A delay in between begins anew. */
static void busy_for_long(void **state)
{
	struct quipu_hvsym_result r;
	struct script s;

	(void)state;
	SCRIPT(&s, 1, {-2, 2});
	assert_int_equal(resolve(&s, (struct quipu_hvsym_opts){.max_calls = 100}, &r), -ELOOP);
	assert_int_equal(s.calls, 100);
	assert_int_equal(s.nslept, 36);
	assert_int_equal(s.now, 36);
	/* sixty of each kind, which come after each other */
	SCRIPT(&s, 4, {-2, 2}, {-2, 2}, {-2, 2}, {9900, 2});
	assert_int_equal(resolve(&s, (struct quipu_hvsym_opts){.max_calls = 240}, &r), -ELOOP);
	assert_int_equal(s.nslept, 60); /* of the delays */
}

/* Twice as large each time, and at the end as large as allowed. */
static void a_buffer_grows_to_its_bound(void **state)
{
	static const uint32_t sizes[] = {100, 200, 250};
	struct quipu_hvsym_result r;
	struct script s;

	(void)state;
	SCRIPT(&s, 1, {-5, 1});
	assert_int_equal(resolve(&s, (struct quipu_hvsym_opts){.buf_size = 100, .buf_max = 250},
				 &r),
			 -EMSGSIZE);
	assert_int_equal(s.calls, 3);
	assert_memory_equal(s.size, sizes, sizeof(sizes));
	assert_int_equal(s.number[2], 1);
}

/* One deadline for all: beginning again does not begin the time again. */
static void a_deadline_covers_restarts(void **state)
{
	struct quipu_hvsym_result r;
	struct script s;

	(void)state;
	SCRIPT(&s, 2, {9903, 2}, {-3, 1});
	assert_int_equal(
		resolve(&s, (struct quipu_hvsym_opts){.deadline_ms = 4000, .max_restarts = 1000},
			&r),
		-ETIMEDOUT);
	assert_in_range(s.now, 4000, 4000 + 64 + 7); /* the last wait for a restart */
	assert_int_equal(s.number[0], 1);
	assert_int_equal(s.number[1], 2);
	assert_int_equal(s.number[2], 1);
}

/* ---- one sequence for all who ask the same ---- */

struct crowd {
	struct quipu_rtas_transport ops;
	pthread_mutex_t lock, mutex;
	pthread_cond_t more;
	unsigned waiting; /* for the lock, or past it */
	unsigned calls;
	struct quipu_hvsym *h;
};

static void crowd_lock(void *arg)
{
	struct crowd *c = arg;

	pthread_mutex_lock(&c->mutex);
	c->waiting++;
	pthread_cond_broadcast(&c->more);
	pthread_mutex_unlock(&c->mutex);
	pthread_mutex_lock(&c->lock);
}

static void crowd_unlock(void *arg)
{
	pthread_mutex_unlock(&((struct crowd *)arg)->lock);
}

/* Answers when everybody has come to ask. */
static int crowd_call(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		      size_t size)
{
	struct crowd *c = arg;
	struct timespec limit;

	(void)ncells;
	(void)ra;
	(void)size;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60;
	pthread_mutex_lock(&c->mutex);
	c->calls++;
	while (c->waiting < 4)
		if (pthread_cond_timedwait(&c->more, &c->mutex, &limit))
			break;
	pthread_mutex_unlock(&c->mutex);
	tell(va);
	cells[8] = 0;
	cells[9] = 1;
	return 0;
}

static void *ask(void *arg)
{
	struct crowd *c = arg;
	struct quipu_hvsym_result r;

	return quipu_hvsym_resolve(c->h, 0x2000, &r) || strcmp(r.name, "name") ? c : NULL;
}

static void one_sequence_for_all(void **state)
{
	struct crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER,
			  .mutex = PTHREAD_MUTEX_INITIALIZER,
			  .more = PTHREAD_COND_INITIALIZER};
	pthread_t thread[4];

	(void)state;
	c.ops = (struct quipu_rtas_transport){.arg = &c,
					      .token = script_token,
					      .alloc = script_alloc,
					      .free = script_free,
					      .call = crowd_call,
					      .lock = crowd_lock,
					      .unlock = crowd_unlock};
	assert_int_equal(quipu_hvsym_open(&c.h, &c.ops, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &c), 0);
	for (unsigned i = 0; i < 4; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(c.waiting, 4);
	assert_int_equal(c.calls, 1);
	quipu_hvsym_close(c.h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_lie_in_the_rma),
		cmocka_unit_test(how_far_rtas_reaches),
		cmocka_unit_test(busy_in_time_mode),
		cmocka_unit_test(processors_of_a_partition),
		cmocka_unit_test(the_number_of_a_retry),
		cmocka_unit_test(numbers_that_are_none),
		cmocka_unit_test(busy_for_long),
		cmocka_unit_test(a_buffer_grows_to_its_bound),
		cmocka_unit_test(a_deadline_covers_restarts),
		cmocka_unit_test(one_sequence_for_all),
	};

	return cmocka_run_group_tests_name("lpar corners", tests, NULL, NULL);
}
