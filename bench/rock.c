// SPDX-License-Identifier: BSD-2-Clause
/*
 * rock: what the hypervisor does in a second of processor time (of the host), each line the best of
 * three runs:
 *
 *	calls	COUNT_GET by the owner, and by a strand that is refused
 *	counts	increments of a running counter, one instruction each
 *	samples	elements of 16 bytes into a ring that the guest drains at its mark
 *
 *	bench-rock [--quick]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define RING   UINT64_C(0x10000)
#define LIST   UINT64_C(0x8000)
#define SIZE   4096u
#define BATCH  1000u
#define TYPE   0x201u
#define RUNS   3
#define RUN_NS UINT64_C(200000000)

struct bench {
	struct quipu_rock *rock;
	uint8_t *ring;
	uint64_t samples;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(uint64_t status)
{
	if (!status)
		return;
	fprintf(stderr, "bench-rock: %s\n", quipu_rock_status_name(status));
	exit(1);
}

static void call(struct bench *b, uint64_t f, uint64_t a1, uint64_t a2, uint64_t a3)
{
	must(quipu_rock_hcall(b->rock, 0, f, (uint64_t[4]){TYPE, a1, a2, a3}, NULL));
}

/* The guest takes all there is: head := tail, the mark half a ring on. */
static void drain(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct bench *b = arg;
	uint32_t hwm = (bits_be32(b->ring + QUIPU_ROCK_RING_TAIL) + SIZE / 2) % SIZE;
	uint64_t pending;

	(void)irq;
	memcpy(b->ring + QUIPU_ROCK_RING_HEAD, b->ring + QUIPU_ROCK_RING_TAIL, 4);
	for (unsigned i = 0; i < 4; i++)
		b->ring[QUIPU_ROCK_RING_HWM + i] = (uint8_t)(hwm >> (24 - 8 * i));
	quipu_rock_hcall(b->rock, strand, RK_PERF_SAMPLE_PENDING, (uint64_t[4]){TYPE}, &pending);
	b->samples += pending;
}

static void set_up(struct bench *b)
{
	uint8_t *list;

	b->rock = quipu_rock_new(&(struct quipu_rock_config){.chips = 1});
	if (!b->rock || quipu_rock_bind(b->rock, 0, 1) || quipu_rock_bind(b->rock, 1, 1) ||
	    quipu_rock_memory_add(b->rock, 1, 0, 0x20000)) {
		fputs("bench-rock: out of memory\n", stderr);
		exit(1);
	}
	must(quipu_rock_set_version(b->rock, 0, API_GROUP_RKPERF, 1, 0, NULL));
	b->ring = quipu_rock_memory(b->rock, 1, RING, QUIPU_ROCK_RING_DATA + SIZE);
	list = quipu_rock_memory(b->rock, 1, LIST, 16);
	b->ring[QUIPU_ROCK_RING_SIZE + 2] = SIZE >> 8;
	b->ring[QUIPU_ROCK_RING_HWM + 2] = SIZE / 2 >> 8;
	list[6] = QUIPU_ROCK_IS_INFO >> 8;
	list[7] = QUIPU_ROCK_IS_INFO & 0xff;
	list[14] = QUIPU_ROCK_IS_CONTEXT >> 8;
	list[15] = QUIPU_ROCK_IS_CONTEXT & 0xff;
	quipu_rock_set_handler(b->rock, drain, b);
	call(b, RK_PERF_COUNT_INIT, 0, 0, 0);
	call(b, RK_PERF_COUNT_START, QUIPU_ROCK_TOE | QUIPU_ROCK_USER, 0, 0);
}

static uint64_t owner_calls(struct bench *b)
{
	for (unsigned i = 0; i < BATCH; i++)
		quipu_rock_hcall(b->rock, 0, RK_PERF_COUNT_GET, (uint64_t[4]){TYPE}, NULL);
	return BATCH;
}

static uint64_t refused_calls(struct bench *b)
{
	for (unsigned i = 0; i < BATCH; i++)
		quipu_rock_hcall(b->rock, 1, RK_PERF_COUNT_GET, (uint64_t[4]){TYPE}, NULL);
	return BATCH;
}

static const struct quipu_rock_instr load = {
	.pc = 0x4000, .latency = 3, .typ = QUIPU_ROCK_TYP_LOAD};

static uint64_t counts(struct bench *b)
{
	for (unsigned i = 0; i < BATCH; i++)
		quipu_rock_instr(b->rock, 0, &load, 1);
	return BATCH;
}

static uint64_t samples(struct bench *b)
{
	uint64_t before = b->samples;

	quipu_rock_instr(b->rock, 0, &load, UINT64_C(50) * BATCH);
	return b->samples - before;
}

static void measure(struct bench *b, const char *name, uint64_t (*batch)(struct bench *),
		    uint64_t run_ns)
{
	double best = 0;

	for (unsigned run = 0; run < RUNS; run++) {
		uint64_t start = cpu_ns(), n = 0, ns;

		do
			n += batch(b);
		while ((ns = cpu_ns() - start) < run_ns);
		if ((double)n / (double)ns > best)
			best = (double)n / (double)ns;
	}
	printf("%-28s %8.2f million a second, %6.1f ns each\n", name, best * 1000, 1 / best);
}

int main(int argc, char **argv)
{
	uint64_t run_ns = argc > 1 && !strcmp(argv[1], "--quick") ? RUN_NS / 20 : RUN_NS;
	struct bench b = {0};

	set_up(&b);
	measure(&b, "calls of the owner", owner_calls, run_ns);
	measure(&b, "calls refused", refused_calls, run_ns);
	measure(&b, "counted instructions", counts, run_ns);
	call(&b, RK_PERF_SAMPLE_INIT, RING, 0, 0);
	call(&b, RK_PERF_SAMPLE_CONFIG, QUIPU_ROCK_IS_CONTEXT_FILTER, 9, 0);
	call(&b, RK_PERF_SAMPLE_CONFIG, QUIPU_ROCK_IS_CC_LATENCY_MASK, UINT64_C(50) << 22 | 0xfff,
	     0);
	call(&b, RK_PERF_SAMPLE_START, 50, 16, LIST);
	measure(&b, "samples into a drained ring", samples, run_ns);
	quipu_rock_free(b.rock);
	return 0;
}
