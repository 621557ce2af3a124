// SPDX-License-Identifier: BSD-2-Clause
/*
 * vtd: translations per second of processor time (of the host), each line the best of three runs:
 *
 *	hit	IOTLB hits in 64 pages
 *	walk	full walks of four levels, every cache absent: root, context, four paging entries
 *	miss	IOTLB misses that the paging-structure cache shortens to one read
 *
 * each with 0 and with 14 counters that count with filters; then how it grows with the number of
 * devices (each in a domain of its own), of domains (a unit has 65536 ids of them: 10^5 are reached
 * by PASID, requests go through them in turn) and of mapped pages. What is mapped is sparse: tables
 * are shared in memory where a real system would have them apart; their number is what the unit
 * sees.
 *
 *	bench-vtd [--quick]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quipu/vtd.h>

#define B      UINT64_C(0x100000000)
#define RUN_NS UINT64_C(300000000)
#define BATCH  4096u

struct bench {
	struct quipu_vtd_config config;
	struct quipu_vtd *unit;
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_tables *tables;
	uint64_t pages;	       /* that requests spread over */
	unsigned rids, pasids; /* that requests go through; pasids 0: they carry none */
	enum quipu_vtd_mode mode;
	uint64_t run_ns;
};

static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(((struct bench *)arg)->memory, addr, write);
}

static const struct quipu_vtd_ops ops = {.page = page};

static void *must(void *p)
{
	if (p)
		return p;
	fputs("bench-vtd: out of memory\n", stderr);
	exit(1);
}

static void must_not(int err)
{
	if (!err)
		return;
	fprintf(stderr, "bench-vtd: tables: %s\n", strerror(-err));
	exit(1);
}

static void open_unit(struct bench *b)
{
	b->memory = must(quipu_vtd_memory_new(UINT64_C(1) << 45, UINT64_C(0x4000000)));
	b->unit = must(quipu_vtd_new(&b->config, &ops, b, NULL));
	b->tables = must(quipu_vtd_tables_new(b->memory, b->mode));
}

static void close_unit(struct bench *b)
{
	quipu_vtd_free(b->unit);
	quipu_vtd_tables_free(b->tables);
	quipu_vtd_memory_free(b->memory);
}

static struct quipu_vtd_domain *domain(struct bench *b, uint16_t did)
{
	return must(quipu_vtd_domain_new(b->tables, did, QUIPU_VTD_STAGE_SS, 4, NULL, 0));
}

static void count(struct bench *b, unsigned c, unsigned group, uint32_t events, int filter,
		  uint32_t value)
{
	uint32_t block = 0x1000 + 0x100 * c;

	quipu_vtd_write(b->unit, block, 8, (uint64_t)events << 32 | group << 8);
	if (filter >= 0)
		quipu_vtd_write(b->unit, block + 8 + 4 * (uint32_t)filter, 4, value | 0x80000000u);
	quipu_vtd_write(b->unit, 0x400, 8, 0xf0 | (uint64_t)c << 16);
	if (quipu_vtd_read(b->unit, 0x410, 8)) {
		fprintf(stderr, "bench-vtd: counter %u refused\n", c);
		exit(1);
	}
}

/* Fourteen counters that a person would open together, eleven of them filtered. */
static void fourteen(struct bench *b)
{
	static const struct {
		unsigned group;
		uint32_t event;
		int filter;
		uint32_t value;
	} set[14] = {
		{3, 0x2, 4, 1},	     {3, 0x2, 4, 2},	 {3, 0x2, 0, 0x100}, {3, 0x1, 0, 0x100},
		{3, 0x1, 1, 1},	     {3, 0x1, -1, 0},	 {2, 0x20, 4, 2},    {2, 0x20, 4, 4},
		{2, 0x10, 0, 0x100}, {2, 0x1, 0, 0x100}, {2, 0x2, 1, 1},     {1, 0x1, -1, 0},
		{0, 0x2, 3, 1},	     {0, 0x4, -1, 0},
	};

	for (unsigned c = 0; c < 14; c++)
		count(b, c, set[c].group, set[c].event, set[c].filter, set[c].value);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static double once(struct bench *b)
{
	struct quipu_vtd_request rq = {.pasid = -1, .len = 64, .op = QUIPU_VTD_READ};
	struct quipu_vtd_response rs;
	uint64_t start = now_ns(), n = 0, at = 0, step = 7919 % b->pages, elapsed;
	unsigned rid = 0, pasid = 0;

	do {
		for (unsigned i = 0; i < BATCH; i++) {
			rq.rid = (uint16_t)(0x100 + rid);
			rq.addr = B + at * 4096;
			rq.pasid = b->pasids ? (int32_t)pasid + 1 : -1;
			quipu_vtd_dma(b->unit, &rq, &rs);
			if (rs.status != QUIPU_VTD_SUCCESS) {
				fprintf(stderr, "bench-vtd: fault 0x%x\n", rs.fault);
				exit(1);
			}
			/* A prime step: no two neighbours in the same table. */
			at += step;
			at -= at >= b->pages ? b->pages : 0;
			rid = rid + 1 < b->rids ? rid + 1 : 0;
			if (rid || !b->pasids)
				continue;
			pasid = pasid + 1 < b->pasids ? pasid + 1 : 0;
		}
		n += BATCH;
		elapsed = now_ns() - start;
	} while (elapsed < b->run_ns);
	return (double)n * 1000 / (double)elapsed;
}

static double best(struct bench *b)
{
	double most = 0;

	for (unsigned i = 0; i < 3; i++) {
		double v = once(b);

		most = v > most ? v : most;
	}
	return most;
}

static void report(struct bench *b, const char *what, double target)
{
	double v = best(b);

	printf("%-44s %8.1f million/s (host)", what, v);
	if (target > 0)
		printf("   at least %.0f: %s", target, v >= target ? "yes" : "no");
	putchar('\n');
	fflush(stdout);
}

static void no_caches(struct quipu_vtd_config *c)
{
	memset(c->iotlb, 0, sizeof(c->iotlb));
	memset(&c->context, 0, sizeof(c->context));
	memset(c->ss_psc, 0, sizeof(c->ss_psc));
	memset(c->fs_psc, 0, sizeof(c->fs_psc));
}

static void one_domain(struct bench *b, const char *what, uint64_t pages, bool caches,
		       bool counters, double target)
{
	struct quipu_vtd_domain *d;

	quipu_vtd_config_init(&b->config, QUIPU_VTD_FULL);
	if (!caches)
		no_caches(&b->config);
	b->pages = pages;
	b->rids = 1;
	open_unit(b);
	d = domain(b, 1);
	must_not(quipu_vtd_map(d, B, UINT64_C(0x2000000000), pages * 4096, 4096, 3));
	must_not(quipu_vtd_attach(b->tables, 0x100, d, 0));
	quipu_vtd_enable(b->unit, quipu_vtd_tables_root(b->tables), QUIPU_VTD_LEGACY);
	if (counters)
		fourteen(b);
	report(b, what, target);
	close_unit(b);
}

/* Each device in a domain of its own. */
static void many_devices(struct bench *b, unsigned devices)
{
	char what[64];

	quipu_vtd_config_init(&b->config, QUIPU_VTD_FULL);
	b->pages = 64;
	b->rids = devices;
	open_unit(b);
	for (unsigned i = 0; i < devices; i++) {
		struct quipu_vtd_domain *d = domain(b, (uint16_t)(i + 1));

		must_not(quipu_vtd_map(d, B, UINT64_C(0x2000000000), 64 * 4096, 4096, 3));
		must_not(quipu_vtd_attach(b->tables, (uint16_t)(0x100 + i), d, 0));
	}
	quipu_vtd_enable(b->unit, quipu_vtd_tables_root(b->tables), QUIPU_VTD_LEGACY);
	fourteen(b);
	snprintf(what, sizeof(what), "%u device%s", devices, devices > 1 ? "s" : "");
	report(b, what, 0);
	close_unit(b);
}

/* First-stage domains of four devices, a PASID each, with as many domain ids as there are. */
static void many_domains(struct bench *b, unsigned domains)
{
	struct quipu_vtd_domain *d;
	char what[64];

	quipu_vtd_config_init(&b->config, QUIPU_VTD_FULL);
	b->mode = QUIPU_VTD_SCALABLE;
	b->pages = 64;
	b->rids = domains < 4 ? 1 : 4;
	b->pasids = domains / b->rids;
	open_unit(b);
	d = must(quipu_vtd_domain_new(b->tables, 1, QUIPU_VTD_STAGE_FS, 4, NULL, 0));
	must_not(quipu_vtd_map(d, B, UINT64_C(0x2000000000), 64 * 4096, 4096, 7));
	for (unsigned i = 0; i < domains; i++) {
		uint16_t rid = (uint16_t)(0x100 + i % b->rids);
		uint32_t pasid = 1 + i / b->rids;

		must_not(quipu_vtd_attach_pasid(b->tables, rid, pasid, d, 0));
		must_not(quipu_vtd_memory_store(b->memory,
						quipu_vtd_pasid_address(b->tables, rid, pasid) + 8,
						1 + i % 65535));
	}
	quipu_vtd_enable(b->unit, quipu_vtd_tables_root(b->tables), QUIPU_VTD_SCALABLE);
	fourteen(b);
	snprintf(what, sizeof(what), "%u domain%s", domains, domains > 1 ? "s" : "");
	report(b, what, 0);
	close_unit(b);
	b->pasids = 0;
	b->mode = QUIPU_VTD_LEGACY;
}

/* @pages mapped: one table of 512 entries is entered wherever a table of that level belongs. */
static void sparse(struct bench *b, uint64_t pages)
{
	struct quipu_vtd_domain *d;
	uint64_t directory;
	char what[64];

	quipu_vtd_config_init(&b->config, QUIPU_VTD_FULL);
	b->pages = pages;
	b->rids = 1;
	open_unit(b);
	d = domain(b, 1);
	must_not(quipu_vtd_map(d, B, UINT64_C(0x2000000000), 512 * 4096, 4096, 3));
	for (uint64_t at = 1 << 21; at < pages * 4096; at += 1 << 21) {
		/* Map one page to make the tables above, then point their last entry at the first
		 * one's table. */
		if (at % (1 << 30) == 0)
			must_not(quipu_vtd_map(d, B + at, UINT64_C(0x2000000000), 4096, 4096, 3));
	}
	directory = quipu_vtd_leaf_address(d, B) & ~UINT64_C(0xfff);
	for (uint64_t gib = 0; gib << 30 < pages * 4096; gib++) {
		uint64_t leaf = quipu_vtd_leaf_address(d, B + (gib << 30)) & ~UINT64_C(0xfff),
			 pd = 0;

		/* The directory was allocated just before its first page table. */
		pd = leaf - 4096;
		for (unsigned i = 0; i < 512; i++)
			must_not(quipu_vtd_memory_store(b->memory, pd + 8 * i, directory | 3));
	}
	must_not(quipu_vtd_attach(b->tables, 0x100, d, 0));
	quipu_vtd_enable(b->unit, quipu_vtd_tables_root(b->tables), QUIPU_VTD_LEGACY);
	fourteen(b);
	snprintf(what, sizeof(what), "%llu pages mapped", (unsigned long long)pages);
	report(b, what, 0);
	close_unit(b);
}

int main(int argc, char **argv)
{
	struct bench b = {.run_ns = argc > 1 && !strcmp(argv[1], "--quick") ? RUN_NS / 30 : RUN_NS};

	one_domain(&b, "hit, no counters", 64, true, false, 0);
	one_domain(&b, "hit, 14 counters with filters", 64, true, true, 30);
	one_domain(&b, "walk of 4 levels, no counters", 1 << 12, false, false, 0);
	one_domain(&b, "walk of 4 levels, 14 counters with filters", 1 << 12, false, true, 8);
	one_domain(&b, "miss shortened by caches, 14 counters", 1 << 16, true, true, 0);
	puts("\nmisses and all, 14 counters with filters:");
	many_devices(&b, 1);
	many_devices(&b, 64);
	many_devices(&b, 4096);
	many_devices(&b, 16384);
	many_domains(&b, 1);
	many_domains(&b, 1000);
	many_domains(&b, 100000);
	sparse(&b, 1 << 18);
	sparse(&b, 1 << 22);
	sparse(&b, 100000000);
	return 0;
}
