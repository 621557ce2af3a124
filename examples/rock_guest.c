// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest of the sun4v hypervisor on a Rock chip, in about a hundred lines: it counts its cycles
 * and samples its L2 transactions through the calls of FWARC/2008/399, and reads the samples from a
 * ring in its own memory.
 *
 * The workload is made up here: loads, one in four of which misses everything up to DRAM. Exit
 * status 0: the estimate from the samples is right.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define MEMORY	  UINT64_C(0x10000000)
#define RING	  MEMORY
#define LIST	  (MEMORY + 0x8000)
#define ELEMENTS  64u
#define FREQUENCY 250u
#define STRAND	  0u

static const uint64_t cycles = QUIPU_ROCK_TYPE(RK_PERF_CYC, RK_PERF_SRC_STRAND);
static const uint64_t l2 = QUIPU_ROCK_TYPE(RK_PERF_L2, RK_PERF_SRC_STRAND);

struct guest {
	struct quipu_rock *rock;
	uint64_t samples, from_dram, interrupts;
};

/* A call that must succeed; what it returns. */
static uint64_t hcall(struct guest *g, uint64_t function, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t a3)
{
	const uint64_t args[4] = {a0, a1, a2, a3};
	uint64_t ret1, status = quipu_rock_hcall(g->rock, STRAND, function, args, &ret1);

	if (status) {
		fprintf(stderr, "function 0x%" PRIx64 ": %s\n", function,
			quipu_rock_status_name(status));
		exit(1);
	}
	return ret1;
}

/* The guest is big-endian; this program may not be. */
static void store(struct guest *g, uint64_t at, uint64_t value, unsigned bytes)
{
	uint8_t *p = quipu_rock_memory(g->rock, 1, at, bytes);

	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static uint32_t load32(struct guest *g, uint64_t at)
{
	return bits_be32(quipu_rock_memory(g->rock, 1, at, 4));
}

/* From head to tail; then tell the hypervisor how far, and where the next interrupt is wanted. */
static void drain(struct guest *g)
{
	uint32_t head = load32(g, RING + QUIPU_ROCK_RING_HEAD),
		 tail = load32(g, RING + QUIPU_ROCK_RING_TAIL);
	uint32_t size = load32(g, RING + QUIPU_ROCK_RING_SIZE);
	uint64_t walked = 0;

	for (; head != tail; head = (head + 8) % size, walked++) {
		uint64_t info = bits_be64(
			quipu_rock_memory(g->rock, 1, RING + QUIPU_ROCK_RING_DATA + head, 8));

		g->from_dram += bits_get(info, 35, 34) == QUIPU_ROCK_DRAM;
	}
	store(g, RING + QUIPU_ROCK_RING_HWM, (tail + size / 2) % size, 4);
	store(g, RING + QUIPU_ROCK_RING_HEAD, head, 4);
	g->samples += walked;
	if (hcall(g, RK_PERF_SAMPLE_PENDING, l2, 0, 0, 0) != walked)
		fprintf(stderr, "the hypervisor stored another number of samples\n");
}

static void on_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct guest *g = arg;

	(void)strand;
	(void)irq;
	g->interrupts++;
	drain(g);
}

static void start(struct guest *g)
{
	store(g, RING + QUIPU_ROCK_RING_SIZE, 8 * ELEMENTS, 4);
	store(g, RING + QUIPU_ROCK_RING_HWM, 4 * ELEMENTS, 4);
	store(g, LIST, QUIPU_ROCK_L2_TXN_INFO, 8);

	hcall(g, RK_PERF_COUNT_INIT, cycles, 0, 0, 0);
	hcall(g, RK_PERF_COUNT_INIT, l2, 0, 0, 0);
	hcall(g, RK_PERF_SAMPLE_INIT, l2, RING, 0, 0);
	hcall(g, RK_PERF_SAMPLE_CONFIG, l2, QUIPU_ROCK_L2_TXN_INFO_FILTER, 0xff8, 0);
	hcall(g, RK_PERF_SAMPLE_CONFIG, l2, QUIPU_ROCK_L2_CC, FREQUENCY, 0);
	hcall(g, RK_PERF_COUNT_START, cycles, QUIPU_ROCK_TOE | QUIPU_ROCK_USER, 0, 0);
	hcall(g, RK_PERF_COUNT_START, l2, QUIPU_ROCK_TOE | 0x7f, 0, 0);
	hcall(g, RK_PERF_SAMPLE_START, l2, FREQUENCY, 8, LIST);
}

static void work(struct guest *g)
{
	struct quipu_rock_l2 load = {.requester = RK_PERF_SRC_STRAND,
				     .type = QUIPU_ROCK_L2_DCACHE_LOAD};

	for (unsigned i = 0; i < 100000; i++) {
		load.source = i % 4 ? QUIPU_ROCK_LOCAL_L2 : QUIPU_ROCK_DRAM;
		quipu_rock_l2(g->rock, STRAND, &load, 1 + i % 7);
		quipu_rock_cycles(g->rock, STRAND, QUIPU_ROCK_AT_USER, i % 4 ? 25 : 250);
	}
}

int main(void)
{
	struct guest g = {.rock = quipu_rock_new(&(struct quipu_rock_config){.chips = 1})};
	uint64_t count, estimate;

	if (!g.rock || quipu_rock_bind(g.rock, STRAND, 1) ||
	    quipu_rock_memory_add(g.rock, 1, MEMORY, 0x10000) ||
	    quipu_rock_set_version(g.rock, STRAND, API_GROUP_RKPERF, 1, 0, NULL)) {
		fprintf(stderr, "no such machine\n");
		return 1;
	}
	quipu_rock_set_handler(g.rock, on_interrupt, &g);
	start(&g);
	work(&g);
	hcall(&g, RK_PERF_SAMPLE_STOP, l2, 0, 0, 0);
	hcall(&g, RK_PERF_COUNT_STOP, l2, 0, 0, 0);
	drain(&g);
	count = hcall(&g, RK_PERF_COUNT_GET, l2, 0, 0, 0);
	estimate = g.from_dram * count / g.samples;
	printf("cycles                  %10" PRIu64 "\n",
	       hcall(&g, RK_PERF_COUNT_GET, cycles, 0, 0, 0));
	printf("L2 transactions         %10" PRIu64 "\n", count);
	printf("samples, interrupts     %10" PRIu64 ", %" PRIu64 "\n", g.samples, g.interrupts);
	printf("from DRAM (estimate)    %10" PRIu64 "\n", estimate);
	quipu_rock_free(g.rock);
	return g.samples == count / FREQUENCY && estimate > count / 5 && estimate < count * 3 / 10
		       ? 0
		       : 1;
}
