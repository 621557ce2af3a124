/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segrun: the smallest machine that the QEMU plugin can have. It makes a segment, starts a command
 * with the plugin in it, answers every bell, arms the deadlines it is told to, and prints what came
 * as text. Tests of the engine only: no PMU, no events. Contract: src/engine/segment.h.
 *
 *   segrun [options] PLUGIN QEMU [QEMU-OPTION...] PROGRAM [ARG...]
 *
 *   -f FEATURE  count, branch, stack, data, fetch, predict, label, regs (repeat)
 *   -l SIGNAL   next lane from 2 on (repeat)
 *   -s SIGNAL   next scalar (repeat)
 *   -m lru      models: true LRU; full: timing full
 *   -p INDEX:PERIOD[:bell]  a deadline (repeat); 0..7 lanes, 8.. scalars
 *   -q N        quantum
 *   -r          print records
 *   -b          print bells
 *   -S N        at each deadline that rings, N times: what is compiled in becomes another, from
 *               the features asked for to all and back
 *   -E N        nothing is, until the next request, which comes at once
 *   -x          at the first deadline that rings the machine leaves
 *   -R N        ask for a bell (request) N times
 *   -t N        as -R, and the first deadline goes off and on again each time
 *   -w          drop records when a ring is full, and read none before the end
 *   -k          never answer (the machine is stuck)
 *   -o FILE     print there; the guest keeps standard output
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/segment.h"

#define MOST_DEADLINES 16

struct wanted {
	unsigned index;
	uint64_t period;
	bool bell;
};

static struct {
	struct seg_header *head;
	uint8_t *slots;
	int fd;
	struct wanted wanted[MOST_DEADLINES];
	unsigned nwanted, nlanes, nscalars, requests;
	unsigned toggles, toggled, wrong;
	unsigned switches, rests, switched;
	uint32_t features; /* as they were asked for */
	uint64_t expected; /* of deadline 0, which is toggled */
	uint64_t interrupts;
	bool print_records, print_bells, lazy, stuck, leaves;
	const char *output;
} run = {.nlanes = 2};

static const struct {
	const char *name;
	quipu_signal signal;
} signal_names[] = {
	{"instructions", QUIPU_SIGNAL_INSTRUCTIONS},
	{"loads", QUIPU_SIGNAL_LOADS},
	{"stores", QUIPU_SIGNAL_STORES},
	{"branches", QUIPU_SIGNAL_BRANCHES},
	{"taken", QUIPU_SIGNAL_BRANCHES_TAKEN},
	{"calls", QUIPU_SIGNAL_CALLS},
	{"returns", QUIPU_SIGNAL_RETURNS},
	{"syscalls", QUIPU_SIGNAL_SYSCALLS},
	{"branch-misses", QUIPU_SIGNAL_BRANCH_MISSES},
	{"direction-misses", QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES},
	{"target-misses", QUIPU_SIGNAL_BRANCH_TARGET_MISSES},
	{"return-misses", QUIPU_SIGNAL_RETURN_MISSES},
	{"labelled", QUIPU_SIGNAL_LABELLED},
	{"yanks", QUIPU_SIGNAL_YANKS},
	{"sibling-blocks", QUIPU_SIGNAL_SIBLING_BLOCKS},
	{"livelocks", QUIPU_SIGNAL_LIVELOCKS},
	{"l2-transactions", QUIPU_SIGNAL_L2_TRANSACTIONS},
	{"l2-fetches", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FETCH},
	{"l2-loads", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_LOAD},
	{"l2-fetch-prefetches", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FETCH_PREFETCH},
	{"l2-store-prefetches", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_STORE_PREFETCH},
	{"l2-stores", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_STORE},
	{"l2-atomics", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_ATOMIC},
	{"l2-flushes", QUIPU_SIGNAL_L2_TRANSACTION + QUIPU_TRANSACTION_FLUSH},
	{"l1i-misses", QUIPU_SIGNAL_L1I_MISSES},
	{"l1d-read-misses", QUIPU_SIGNAL_L1D_READ_MISSES},
	{"l1d-write-misses", QUIPU_SIGNAL_L1D_WRITE_MISSES},
	{"l1d-writebacks", QUIPU_SIGNAL_L1D_WRITEBACKS},
	{"l2-read-misses", QUIPU_SIGNAL_L2_READ_MISSES},
	{"l2-write-misses", QUIPU_SIGNAL_L2_WRITE_MISSES},
	{"ll-read-misses", QUIPU_SIGNAL_LL_READ_MISSES},
	{"ll-write-misses", QUIPU_SIGNAL_LL_WRITE_MISSES},
	{"itlb-misses", QUIPU_SIGNAL_ITLB_MISSES},
	{"dtlb-read-misses", QUIPU_SIGNAL_DTLB_READ_MISSES},
	{"dtlb-write-misses", QUIPU_SIGNAL_DTLB_WRITE_MISSES},
	{"stall-frontend", QUIPU_SIGNAL_STALL_FRONTEND},
	{"stall-backend", QUIPU_SIGNAL_STALL_BACKEND},
};

static const struct {
	const char *name;
	uint32_t features;
} feature_names[] = {
	{"count", 0},
	{"branch", SEG_BRANCH},
	{"stack", SEG_BRANCH | SEG_STACK},
	{"data", SEG_DATA},
	{"fetch", SEG_BRANCH | SEG_FETCH},
	{"predict", SEG_BRANCH | SEG_PREDICT},
	{"label", SEG_BRANCH | SEG_PREDICT | SEG_DATA | SEG_FETCH | SEG_LABEL},
	{"regs", SEG_REGS},
};

static void die(const char *what)
{
	fprintf(stderr, "segrun: %s: %s\n", what, strerror(errno));
	exit(125);
}

static quipu_signal signal_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(signal_names) / sizeof(signal_names[0]); i++) {
		if (!strcmp(signal_names[i].name, name))
			return signal_names[i].signal;
	}
	if (!strncmp(name, "0x", 2))
		return QUIPU_SIGNAL_OF(strtoull(name, NULL, 16));
	fprintf(stderr, "segrun: no signal %s\n", name);
	exit(125);
}

static uint32_t features_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(feature_names) / sizeof(feature_names[0]); i++) {
		if (!strcmp(feature_names[i].name, name))
			return feature_names[i].features;
	}
	fprintf(stderr, "segrun: no feature %s\n", name);
	exit(125);
}

/* ---- the segment ---- */

static void *slot_at(unsigned slot, uint64_t offset)
{
	return run.slots + slot * SEG_SLOT_BYTES + offset;
}

static struct seg_vcpu *vcpu_at(unsigned slot, unsigned v)
{
	return (struct seg_vcpu *)slot_at(slot, SEG_OFF_VCPUS) + v;
}

static struct seg_deadline *deadline_at(unsigned slot, unsigned v, unsigned d)
{
	return slot_at(slot, SEG_OFF_DEADLINES + ((uint64_t)v * QUIPU_SLOTS + d) * 128);
}

static void make_segment(void)
{
	static const struct {
		uint8_t class, cost;
	} costs[] = {
		{QUIPU_INSN_MUL, 3},  {QUIPU_INSN_DIV, 20}, {QUIPU_INSN_FADD, 4},
		{QUIPU_INSN_FMUL, 4}, {QUIPU_INSN_FMA, 4},  {QUIPU_INSN_FDIV, 18},
		{QUIPU_INSN_AMO, 8},
	};
	uint8_t *all;

	run.fd = memfd_create("segrun", 0);
	if (run.fd < 0 || ftruncate(run.fd, (off_t)SEG_BYTES))
		die("memfd");
	all = mmap(NULL, SEG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, run.fd, 0);
	if (all == MAP_FAILED)
		die("mmap");
	run.head = (struct seg_header *)all;
	run.slots = all + SEG_HEADER_BYTES;
	run.head->magic = SEG_MAGIC;
	run.head->version = SEG_VERSION;
	run.head->machine_pid = (uint32_t)getpid();
	run.head->size = SEG_BYTES;
	run.head->features = SEG_COUNT;
	run.head->scalars = (1u << SEG_SCALARS) - 1;
	run.head->ncpus = 8;
	run.head->quantum = 4096;
	run.head->hz = 1000000000;
	run.head->lane_signal[0] = QUIPU_SIGNAL_INSTRUCTIONS;
	run.head->lane_signal[1] = QUIPU_SIGNAL_CYCLES;
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		run.head->cost[c] = 1;
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
		run.head->cost[costs[i].class] = costs[i].cost;
	run.head->local = 1;
	run.head->model = (struct quipu_model){
		.l1i = {64, 8, 6, 0},
		.l1d = {64, 8, 6, 0},
		.l2 = {1024, 8, 6, 12},
		.l3 = {8192, 8, 6, 40},
		.l3_cpus = 8,
		.itlb = {16, 4, 12, 0},
		.dtlb = {16, 4, 12, 0},
		.counters = 4096,
		.history = 12,
		.targets = 512,
		.returns = 16,
		.memory = 200,
		.walk = 20,
		.mispredict = 14,
	};
	run.head->max_stack = 127;
	run.head->exact = 1;
	run.head->spin = sysconf(_SC_NPROCESSORS_ONLN) >= 2 ? 2000 : 0;
}

static void parse_deadline(const char *text)
{
	struct wanted *w = &run.wanted[run.nwanted++];
	char *end;

	if (run.nwanted > MOST_DEADLINES)
		die("too many deadlines");
	w->index = (unsigned)strtoul(text, &end, 10);
	w->period = strtoull(end + 1, &end, 10);
	w->bell = !strcmp(end, ":bell");
}

static char **parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+f:m:l:s:p:q:R:t:S:E:o:rbwkx")) != -1) {
		switch (c) {
		case 'f': run.head->features |= features_by_name(optarg); break;
		case 'm':
			run.head->model.lru |= !strcmp(optarg, "lru");
			run.head->model.full |= !strcmp(optarg, "full");
			break;
		case 'l':
			run.head->lane_signal[run.nlanes++ % SEG_LANES] = signal_by_name(optarg);
			break;
		case 's':
			run.head->scalar_signal[run.nscalars++ % SEG_SCALARS] =
				signal_by_name(optarg);
			break;
		case 'p': parse_deadline(optarg); break;
		case 'q': run.head->quantum = (uint32_t)atoi(optarg); break;
		case 'R': run.requests = (unsigned)atoi(optarg); break;
		case 't': run.toggles = run.requests = (unsigned)atoi(optarg); break;
		case 'S': run.switches = (unsigned)atoi(optarg); break;
		case 'E': run.rests = (unsigned)atoi(optarg); break;
		case 'o': run.output = optarg; break;
		case 'r': run.print_records = true; break;
		case 'b': run.print_bells = true; break;
		case 'w':
			run.lazy = true;
			run.head->exact = 0;
			break;
		case 'k': run.stuck = true; break;
		case 'x': run.leaves = true; break;
		default: exit(125);
		}
	}
	if (argc - optind < 3) {
		fprintf(stderr, "usage: segrun [options] PLUGIN QEMU PROGRAM\n");
		exit(125);
	}
	return argv + optind;
}

/* ---- records ---- */

static void print_lanes(const uint64_t *lane)
{
	for (unsigned k = 0; k < run.nlanes; k++)
		printf(" %" PRIu64, lane[k]);
}

static void print_interrupt(unsigned slot, unsigned v, const struct seg_interrupt *r)
{
	const uint64_t *chain = r->words + r->nr_next, *scalars = chain + r->nr_chain;

	printf("int %u.%u slots %" PRIx64 " bell %" PRIx64 " pc %" PRIx64 " addr %" PRIx64 " lanes",
	       slot, v, r->slots, r->bell, r->pc, r->addr);
	print_lanes(r->head.lane);
	printf(" scalars");
	for (unsigned k = 0; r->has_scalars && k < run.nscalars; k++)
		printf(" %" PRIu64, scalars[k]);
	printf(" insn %u %u %x %" PRIx64 " mode %u transaction %u latency %u", r->insn.class,
	       r->insn.size, r->insn.events, r->insn.next, r->insn.mode, r->insn.transaction,
	       r->insn.latency);
	printf(" chain");
	for (unsigned i = 0; i < r->nr_chain; i++)
		printf(" %" PRIx64, chain[i]);
	printf("\n");
}

static void print_record(unsigned slot, unsigned v, const struct seg_record *r)
{
	if (r->type == SEG_REC_INTERRUPT) {
		print_interrupt(slot, v, (const struct seg_interrupt *)r);
	} else if (r->type == SEG_REC_MMAP) {
		const struct seg_mmap *m = (const struct seg_mmap *)r;

		printf("mmap %u.%u %" PRIx64 " %" PRIx64 " %" PRIx64 " prot %u %s\n", slot, v,
		       m->addr, m->len, m->pgoff, m->prot, m->path);
	} else if (r->type == SEG_REC_COMM) {
		printf("comm %u.%u %s\n", slot, v, ((const struct seg_comm *)r)->comm);
	}
}

/* The first deadline is on, and was reached where it should be. */
static void check_reached(const struct seg_interrupt *r)
{
	if (!(r->slots & 1) || r->head.lane[run.wanted[0].index] != run.expected)
		run.wrong++;
	run.expected += run.wanted[0].period;
}

static void drain(unsigned slot, unsigned v)
{
	struct seg_ring *ring = (struct seg_ring *)slot_at(slot, SEG_OFF_RINGS) + v;
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;

	while (tail != head) {
		const struct seg_record *r = (const void *)(ring->data + tail % SEG_RING_BYTES);

		if (r->size < 8 || r->size % 8 || r->size > SEG_RING_BYTES) {
			printf("bad record\n");
			exit(124);
		}
		run.interrupts += r->type == SEG_REC_INTERRUPT;
		if (run.toggles && r->type == SEG_REC_INTERRUPT)
			check_reached((const struct seg_interrupt *)r);
		if (run.print_records)
			print_record(slot, v, r);
		tail += r->size;
	}
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

/* ---- bells ---- */

static const char *reason_name(uint32_t reason)
{
	static const char *const names[] = {"start",   "thread", "clone",  "deadline",
					    "request", "ring",	 "slept",  "fork",
					    "exit",    "exec",	 "foreign"};

	return bits_low(reason) < sizeof(names) / sizeof(names[0]) ? names[bits_low(reason)]
								   : "other";
}

static void print_totals(const char *when, unsigned slot, unsigned v)
{
	const struct seg_vcpu *c = vcpu_at(slot, v);
	uint64_t lane[SEG_LANES];

	for (unsigned k = 0; k < SEG_LANES; k++)
		lane[k] = (uint64_t)c->base[k] + (uint16_t)(c->acc[k] - c->pre[k]);
	printf("%s %u.%u lanes", when, slot, v);
	print_lanes(lane);
	printf(" scalars");
	for (unsigned k = 0; k < run.nscalars; k++)
		printf(" %" PRIu64, c->scalar[k]);
	printf(" syscalls %" PRIu64 " lost %u ringlost %" PRIu64 " depth %" PRIu64 " seq %s\n",
	       c->syscalls, c->lost, ((struct seg_ring *)slot_at(slot, SEG_OFF_RINGS) + v)->lost,
	       c->priv[1], c->seq & 1 ? "odd" : "even");
}

static void arm(unsigned slot, unsigned v)
{
	for (unsigned i = 0; i < run.nwanted; i++) {
		const struct wanted *w = &run.wanted[i];
		struct seg_deadline *d = deadline_at(slot, v, i);

		*d = (struct seg_deadline){
			.at = w->period, .index = (uint8_t)w->index, .sampling = 1};
		d->overflow = w->bell ? QUIPU_OVERFLOW_BELL : QUIPU_OVERFLOW_RISCV;
		d->reload.sample_period = d->reload.last_period = w->period;
		d->reload.period_left = (int64_t)w->period;
		d->reload.programmed = w->period;
		d->reload.max_left = INT64_MAX;
		d->armed = 1;
	}
	vcpu_at(slot, v)->deadlines_changed = 1;
}

static void serve_deadlines(unsigned slot, unsigned v)
{
	for (uint64_t m = vcpu_at(slot, v)->slots; m; m &= m - 1)
		deadline_at(slot, v, bits_low(m))->at += run.wanted[bits_low(m)].period;
	vcpu_at(slot, v)->deadlines_changed = 1;
}

/* Off: it must not have been passed by without a word. On: a period from here, and not the same
 * every time. */
static void toggle(unsigned slot, unsigned v)
{
	const struct seg_vcpu *c = vcpu_at(slot, v);
	struct seg_deadline *d = deadline_at(slot, v, 0);
	unsigned k = run.wanted[0].index;
	uint64_t now = (uint64_t)c->base[k] + (uint16_t)(c->acc[k] - c->pre[k]);

	run.toggled++;
	if (d->armed) {
		run.wrong += now >= run.expected;
		d->armed = 0;
	} else {
		run.wanted[0].period += 2;
		arm(slot, v);
		d->at = run.expected = now + run.wanted[0].period;
	}
	vcpu_at(slot, v)->deadlines_changed = 1;
}

static void choose(uint32_t features)
{
	run.head->features = features;
	__atomic_add_fetch(&run.head->selection, 1, __ATOMIC_SEQ_CST);
}

static void choose_another(void)
{
	static const uint32_t more[] = {
		SEG_BRANCH | SEG_STACK,
		SEG_BRANCH | SEG_PREDICT | SEG_FETCH,
		0,
		SEG_BRANCH | SEG_STACK | SEG_PREDICT | SEG_FETCH | SEG_DATA | SEG_BRANCHES,
		SEG_DATA,
		SEG_BRANCH | SEG_BRANCHES,
		0,
	};

	if (!run.switches)
		return;
	run.switches--;
	choose(run.features | more[run.switched++ % (sizeof(more) / sizeof(more[0]))]);
}

/* Nothing is counted from the deadline to the request. */
static void rest_or_count(struct seg_vcpu *c)
{
	if (c->reason & SEG_BELL_DEADLINE && run.rests) {
		run.rests--;
		c->request = 1;
		choose((run.features & ~(uint32_t)SEG_COUNT) | SEG_EMPTY);
	} else if (c->reason & SEG_BELL_REQUEST && run.head->features & SEG_EMPTY) {
		choose(run.features);
	}
}

static void serve(unsigned slot, unsigned v)
{
	struct seg_vcpu *c = vcpu_at(slot, v);
	uint32_t bell = __atomic_load_n(&c->bell, __ATOMIC_ACQUIRE);

	if (!run.lazy)
		drain(slot, v);
	if (bell == c->ack || run.stuck)
		return;
	if (run.print_bells && c->reason != SEG_BELL_DEADLINE && c->reason != SEG_BELL_REQUEST)
		printf("bell %u.%u %s %" PRIu64 "\n", slot, v, reason_name(c->reason), c->arg);
	if (c->reason & (SEG_BELL_START | SEG_BELL_THREAD | SEG_BELL_FORK))
		arm(slot, v);
	if ((c->reason & SEG_BELL_START) && run.toggles)
		run.expected = run.wanted[0].period;
	if (c->reason & SEG_BELL_DEADLINE)
		serve_deadlines(slot, v);
	if (c->reason & SEG_BELL_DEADLINE && run.leaves) {
		__atomic_store_n(&run.head->closing, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&run.head->selection, 1, __ATOMIC_SEQ_CST);
	}
	if (c->reason & SEG_BELL_DEADLINE)
		choose_another();
	rest_or_count(c);
	if ((c->reason & SEG_BELL_REQUEST) && run.toggles)
		toggle(slot, v);
	if (c->reason & SEG_BELL_EXIT)
		print_totals("gone", slot, v);
	if ((c->reason & (SEG_BELL_REQUEST | SEG_BELL_START)) && run.requests) {
		run.requests--;
		c->request = 1;
	}
	__atomic_store_n(&c->ack, bell, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&c->sleeping, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &c->ack, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- the end of processes ---- */

static struct {
	pid_t first;
	int code; /* of the first one */
	bool ended;
} children;

static bool ended(void)
{
	return __atomic_load_n(&children.ended, __ATOMIC_SEQ_CST);
}

/* A thread of its own, so that nobody asks at each bell. */
static void *reap(void *arg)
{
	int status = 0;
	pid_t got;

	while ((got = waitpid(-1, &status, 0)) > 0)
		if (got == children.first)
			children.code =
				WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	__atomic_store_n(&children.ended, true, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&run.head->machine_wake, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &run.head->machine_wake, FUTEX_WAKE, 1, NULL, NULL, 0);
	return arg;
}

static void serve_all(void)
{
	__atomic_exchange_n(&run.head->pending, 0, __ATOMIC_SEQ_CST);
	for (uint64_t m = run.head->claimed; m; m &= m - 1) {
		const struct seg_proc *p = slot_at(bits_low(m), 0);

		for (unsigned v = 0; v < p->nvcpus; v++)
			serve(bits_low(m), v);
	}
}

/* Sleeps as the machine does: until a bell, or until the last process has ended. */
static void wait_for_work(void)
{
	uint32_t seen = __atomic_load_n(&run.head->machine_wake, __ATOMIC_SEQ_CST);

	__atomic_store_n(&run.head->machine_asleep, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&run.head->pending, __ATOMIC_SEQ_CST) && !ended())
		syscall(SYS_futex, &run.head->machine_wake, FUTEX_WAIT, seen, NULL, NULL, 0);
	__atomic_store_n(&run.head->machine_asleep, 0, __ATOMIC_SEQ_CST);
}

static void print_all(void)
{
	for (uint64_t m = run.head->claimed; m; m &= m - 1) {
		const struct seg_proc *p = slot_at(bits_low(m), 0);

		printf("proc %u parent %u vcpus %u uncounted %u own %" PRIx64
		       " switches %u isa %s path %s\n",
		       bits_low(m), p->parent_slot, p->nvcpus, p->uncounted, p->own_calls[0],
		       p->switches, p->isa, p->path);
		for (unsigned v = 0; v < p->nvcpus; v++)
			print_totals("total", bits_low(m), v);
	}
}

static pid_t start(char **argv)
{
	char *plugin = NULL, *blocks = NULL, *slash = strrchr(argv[0], '/');
	char *qemu[256] = {argv[1], "-plugin", NULL, "-seed", "1", "-plugin", NULL};
	const char *isa = strrchr(argv[1], '-');
	unsigned n = 7;
	pid_t pid;

	/* A name of its own, in the same folder. */
	if (!slash || asprintf(&blocks, "%.*s/./%s,blocks=on", (int)(slash - argv[0]), argv[0],
			       slash + 1) < 0)
		die("asprintf");

	if (asprintf(&plugin, "%s,seg=/proc/%d/fd/%d", argv[0], (int)getpid(), run.fd) < 0)
		die("asprintf");
	qemu[2] = blocks;
	qemu[6] = plugin;
	for (char **a = argv + 2; *a && n < 255; a++) {
		if (!strcmp(*a, "-L") && a[1])
			snprintf(run.head->sysroot, SEG_PATH, "%s", a[1]);
		qemu[n++] = *a;
	}
	snprintf(run.head->plugin, SEG_PATH, "%s", argv[0]);
	snprintf(run.head->regs_isa, sizeof(run.head->regs_isa), "%s", isa ? isa + 1 : "");
	run.head->regs = UINT64_MAX;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(run.fd);
		execvp(qemu[0], qemu);
		die(qemu[0]);
	}
	free(plugin);
	free(blocks);
	return pid;
}

int main(int argc, char **argv)
{
	pthread_t reaper;

	make_segment();
	argv = parse(argc, argv);
	run.features = run.head->features;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	children.first = start(argv);
	if (pthread_create(&reaper, NULL, reap, NULL))
		die("pthread_create");
	if (run.output && !freopen(run.output, "w", stdout))
		die(run.output);
	while (!ended()) {
		serve_all();
		if (!__atomic_load_n(&run.head->pending, __ATOMIC_SEQ_CST))
			wait_for_work();
	}
	pthread_join(reaper, NULL);
	run.lazy = run.stuck = false;
	serve_all();
	print_all();
	if (run.toggles)
		printf("toggled %u wrong %u\n", run.toggled, run.wrong);
	printf("interrupts %" PRIu64 "\nstatus %d\n", run.interrupts, children.code);
	return 0;
}
