/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin in a program with the plugin interface of QEMU 10 (version 4), as far as the plugin
 * uses it: no package of this system has such a user-mode QEMU. Tells whether the one file picks
 * that version, gets the bytes of instructions the way it has them there (they are copied), counts,
 * and finds its program without the calls that 10.0 declares and lacks; whether threads that are
 * announced on themselves are told of by their makers, whoever of the two comes first; whether what
 * a `rep` repeats within its block is counted; whether records have the registers that this
 * program shows. Engine sheet 10.1, 12, case 31. Not here: what QEMU 10 itself does with it;
 * cases.py, turns.py and registers.py do that where there is one.
 *
 *	api4 PLUGIN
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/segment.h"

#define API __attribute__((visibility("default")))

typedef uint64_t id_t4;

struct info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	union {
		struct {
			int smp_vcpus, max_vcpus;
		} system;
	};
};

/* ---- the guest's code, and what the plugin has registered ---- */

/* ld a0,0(a0); addi a0,a0,1; ret */
static const uint8_t riscv_code[] = {0x03, 0x35, 0x05, 0x00, 0x13, 0x05,
				     0x15, 0x00, 0x67, 0x80, 0x00, 0x00};
/* nop; rep movsb. nop; repne scasb. nop; repe cmpsb. */
static const uint8_t x86_code[] = {0x90, 0xf3, 0xa4, 0x90, 0xf2, 0xae, 0x90, 0xf3, 0xa6};

#define MOST_INSNS     3u
#define MOST_CALLBACKS 4u

typedef void block_cb(unsigned, void *);
typedef void access_cb(unsigned, uint32_t, uint64_t, void *);
typedef void vcpu_cb(id_t4, unsigned);

struct called {
	block_cb *block;
	access_cb *access;
	int flags, rw;
	void *data;
};

struct qemu_plugin_insn {
	const uint8_t *bytes;
	size_t size;
	unsigned n;
	struct called called[MOST_CALLBACKS];
};

struct qemu_plugin_tb {
	unsigned n, ncalled;
	struct qemu_plugin_insn insn[MOST_INSNS];
	struct called called[MOST_CALLBACKS];
};

static struct {
	void (*translate)(id_t4, struct qemu_plugin_tb *);
	vcpu_cb *init, *exit;
	void (*call)(id_t4, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		     uint64_t, uint64_t, uint64_t);
	void (*call_ret)(id_t4, unsigned, int64_t, int64_t);
	void (*at_exit)(id_t4, void *);
	void *at_exit_data;
	unsigned copies;
} got;

/* ---- QEMU ---- */

#define NOT_USED(name)                                                                             \
	API void name(void);                                                                       \
	API void name(void)                                                                        \
	{                                                                                          \
	}

NOT_USED(qemu_plugin_register_flush_cb)
NOT_USED(qemu_plugin_mem_size_shift)
NOT_USED(qemu_plugin_mem_is_store)
NOT_USED(qemu_plugin_scoreboard_new)

API void qemu_plugin_register_vcpu_init_cb(id_t4, vcpu_cb *);
API void qemu_plugin_register_vcpu_exit_cb(id_t4, vcpu_cb *);
API void qemu_plugin_register_vcpu_syscall_cb(id_t4,
					      void (*)(id_t4, unsigned, int64_t, uint64_t, uint64_t,
						       uint64_t, uint64_t, uint64_t, uint64_t,
						       uint64_t, uint64_t));
API void qemu_plugin_register_vcpu_syscall_ret_cb(id_t4,
						  void (*)(id_t4, unsigned, int64_t, int64_t));
API void qemu_plugin_register_vcpu_tb_trans_cb(id_t4, void (*)(id_t4, struct qemu_plugin_tb *));
API void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, block_cb *, int, void *);
API void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, block_cb *, int, void *);
API void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, access_cb *, int, int, void *);
API void qemu_plugin_register_atexit_cb(id_t4, void (*)(id_t4, void *), void *);
API size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
API uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
API struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *, size_t);
API size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
API uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
API void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
API size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);

void qemu_plugin_register_vcpu_init_cb(id_t4 id, vcpu_cb *cb)
{
	(void)id;
	got.init = cb;
}

void qemu_plugin_register_vcpu_exit_cb(id_t4 id, vcpu_cb *cb)
{
	(void)id;
	got.exit = cb;
}

void qemu_plugin_register_vcpu_syscall_cb(id_t4 id,
					  void (*cb)(id_t4, unsigned, int64_t, uint64_t, uint64_t,
						     uint64_t, uint64_t, uint64_t, uint64_t,
						     uint64_t, uint64_t))
{
	(void)id;
	got.call = cb;
}

void qemu_plugin_register_vcpu_syscall_ret_cb(id_t4 id,
					      void (*cb)(id_t4, unsigned, int64_t, int64_t))
{
	(void)id;
	got.call_ret = cb;
}

void qemu_plugin_register_vcpu_tb_trans_cb(id_t4 id, void (*cb)(id_t4, struct qemu_plugin_tb *))
{
	(void)id;
	got.translate = cb;
}

static void add(struct called called[MOST_CALLBACKS], struct called c)
{
	unsigned n = 0;

	while (n < MOST_CALLBACKS && (called[n].block || called[n].access))
		n++;
	if (n == MOST_CALLBACKS)
		abort();
	called[n] = c;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, block_cb *cb, int flags,
					  void *data)
{
	add(tb->called, (struct called){.block = cb, .flags = flags, .data = data});
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, block_cb *cb, int flags,
					    void *data)
{
	add(insn->called, (struct called){.block = cb, .flags = flags, .data = data});
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, access_cb *cb, int flags,
				      int rw, void *data)
{
	add(insn->called, (struct called){.access = cb, .flags = flags, .rw = rw, .data = data});
}

void qemu_plugin_register_atexit_cb(id_t4 id, void (*cb)(id_t4, void *), void *data)
{
	(void)id;
	got.at_exit = cb;
	got.at_exit_data = data;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	return tb->n;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	return qemu_plugin_insn_vaddr(&tb->insn[0]);
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *tb, size_t i)
{
	return &tb->insn[i];
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	return insn->size;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return (uintptr_t)insn->bytes;
}

void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn)
{
	return (void *)insn->bytes;
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len)
{
	size_t n = len < insn->size ? len : insn->size;

	memcpy(to, insn->bytes, n);
	got.copies++;
	return n;
}

/* ---- its registers, in arrays as glib's are ---- */

struct array {
	char *data;
	unsigned len;
};

struct reg {
	void *handle;
	const char *name, *feature;
};

static uint64_t guest_a0, guest_sp;
static bool may_read; /* inside of a callback that was registered for it */

API struct array *qemu_plugin_get_registers(void);
API int qemu_plugin_read_register(void *, struct array *);
API struct array *g_byte_array_new(void);
API struct array *g_byte_array_set_size(struct array *, unsigned);
API char *g_array_free(struct array *, int);

struct array *qemu_plugin_get_registers(void)
{
	static const struct reg regs[] = {
		{(void *)1, "zero", "cpu"}, {&guest_sp, "sp", "cpu"}, {&guest_a0, "a0", "cpu"}};
	struct array *a = calloc(1, sizeof(*a));

	a->data = malloc(sizeof(regs));
	memcpy(a->data, regs, sizeof(regs));
	a->len = sizeof(regs) / sizeof(regs[0]);
	return a;
}

int qemu_plugin_read_register(void *handle, struct array *to)
{
	if (!may_read)
		return -1;
	to->data = realloc(to->data, to->len + sizeof(uint64_t));
	memcpy(to->data + to->len, handle, sizeof(uint64_t));
	to->len += sizeof(uint64_t);
	return sizeof(uint64_t);
}

struct array *g_byte_array_new(void)
{
	return calloc(1, sizeof(struct array));
}

struct array *g_byte_array_set_size(struct array *a, unsigned len)
{
	a->len = len;
	return a;
}

char *g_array_free(struct array *a, int segment)
{
	(void)segment;
	free(a->data);
	free(a);
	return NULL;
}

/* ---- running ---- */

static struct {
	unsigned number, failed;
} * tally; /* shared by the processes of the tests */

static void check(const char *name, bool ok)
{
	tally->failed += !ok;
	printf("%s %u - %s\n", ok ? "ok" : "not ok", ++tally->number, name);
	fflush(stdout);
}

static void translate(struct qemu_plugin_tb *tb, const uint8_t *code, const unsigned *sizes,
		      unsigned n)
{
	memset(tb, 0, sizeof(*tb));
	tb->n = n;
	for (unsigned i = 0; i < n; i++) {
		tb->insn[i] = (struct qemu_plugin_insn){.bytes = code, .size = sizes[i], .n = i};
		code += sizes[i];
	}
	got.translate(7, tb);
}

static void call_blocks(const struct called called[MOST_CALLBACKS], unsigned vcpu)
{
	for (unsigned i = 0; i < MOST_CALLBACKS; i++) {
		if (!called[i].block)
			continue;
		may_read = called[i].flags == 1;
		called[i].block(vcpu, called[i].data);
		may_read = false;
	}
}

/* As QEMU has it: a filter of version 4 lets through what was asked for. */
static void call_accesses(const struct qemu_plugin_insn *insn, unsigned vcpu, int rw, unsigned n)
{
	for (; n; n--)
		for (unsigned i = 0; i < MOST_CALLBACKS; i++)
			if (insn->called[i].access && insn->called[i].rw & rw)
				insn->called[i].access(vcpu, 0, 0x1000, insn->called[i].data);
}

/* @tb runs once, without what its instructions access. */
static void run(const struct qemu_plugin_tb *tb, unsigned vcpu)
{
	call_blocks(tb->called, vcpu);
	for (unsigned i = 0; i < tb->n; i++)
		call_blocks(tb->insn[i].called, vcpu);
}

static uint8_t *segment;

static struct seg_header *header(void)
{
	return (struct seg_header *)segment;
}

static struct seg_vcpu *vcpu_of(unsigned v)
{
	return (struct seg_vcpu *)(segment + SEG_HEADER_BYTES + SEG_OFF_VCPUS) + v;
}

static uint64_t lane(unsigned vcpu, unsigned k)
{
	const struct seg_vcpu *v = vcpu_of(vcpu);

	return (uint64_t)v->base[k] + (uint16_t)(v->acc[k] - v->pre[k]);
}

/* Nobody answers bells here: closing says so. */
static int make_segment(void)
{
	int fd = memfd_create("segment", 0);
	struct seg_header *h;

	if (fd < 0 || ftruncate(fd, (off_t)SEG_BYTES))
		return -1;
	segment = mmap(NULL, SEG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (segment == MAP_FAILED)
		return -1;
	h = header();
	h->magic = SEG_MAGIC;
	h->version = SEG_VERSION;
	h->size = SEG_BYTES;
	h->machine_pid = (uint32_t)getpid();
	h->features = SEG_COUNT;
	h->scalars = (1u << SEG_SCALARS) - 1;
	h->ncpus = 1;
	h->quantum = 4096;
	h->hz = 1000000000;
	h->lane_signal[0] = QUIPU_SIGNAL_INSTRUCTIONS;
	h->lane_signal[1] = QUIPU_SIGNAL_CYCLES;
	h->lane_signal[2] = QUIPU_SIGNAL_LOADS;
	h->lane_signal[3] = QUIPU_SIGNAL_STORES;
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		h->cost[c] = 1;
	h->closing = 1;
	h->local = 1;
	return fd;
}

static bool install(void *plugin, const char *isa, int fd)
{
	const struct info info = {.target_name = isa, .version = {2, 4}};
	int (*plugin_install)(id_t4, const struct info *, int, char **);
	char *words[1];

	*(void **)&plugin_install = dlsym(plugin, "qemu_plugin_install");
	if (!plugin_install || asprintf(&words[0], "seg=/proc/self/fd/%d", fd) < 0)
		return false;
	return !plugin_install(7, &info, 1, words) && got.translate && got.at_exit;
}

/* ---- counts ---- */

#define ROUNDS 10000u
static const unsigned riscv_sizes[] = {4, 4, 4};

static void counts(void *plugin, const char *path)
{
	struct qemu_plugin_tb tb;
	char real[PATH_MAX];
	int fd = make_segment();

	check("it can be installed", fd >= 0 && install(plugin, "riscv64", fd));
	translate(&tb, riscv_code, riscv_sizes, 3);
	check("it copies the bytes of each instruction of a block",
	      got.copies == 3 && tb.called[0].block);
	for (unsigned i = 0; i < ROUNDS; i++)
		run(&tb, 0);
	got.at_exit(7, got.at_exit_data);
	printf("# %" PRIu64 " instructions, %" PRIu64 " loads\n", lane(0, 0), lane(0, 2));
	check("and counts them, as what they are",
	      lane(0, 0) == ROUNDS * 3 && lane(0, 2) == ROUNDS);
	check("the program is the first word that is no option's",
	      realpath(path, real) &&
		      !strcmp(((const struct seg_proc *)(segment + SEG_HEADER_BYTES))->path, real));
}

/* ---- repetitions ---- */

enum { R = 1, W = 2 };

static void repetitions(void *plugin, const char *path)
{
	static const unsigned sizes[] = {1, 2};
	struct qemu_plugin_tb moves, scans, compares;
	int fd = make_segment();

	(void)path;
	check("x86-64: it can be installed", fd >= 0 && install(plugin, "x86_64", fd));
	translate(&moves, x86_code, sizes, 2);
	translate(&scans, x86_code + 3, sizes, 2);
	translate(&compares, x86_code + 6, sizes, 2);
	run(&moves, 0);
	for (unsigned i = 0; i < 70000; i++) {
		call_accesses(&moves.insn[1], 0, R, 1);
		call_accesses(&moves.insn[1], 0, W, 1);
	}
	run(&scans, 0);
	call_accesses(&scans.insn[1], 0, R, 10);
	run(&compares, 0);
	call_accesses(&compares.insn[1], 0, R, 2 * 50);
	run(&compares, 0); /* its count is 0 */
	got.at_exit(7, got.at_exit_data);
	printf("# %" PRIu64 " instructions, %" PRIu64 " cycles, %" PRIu64 " loads, %" PRIu64
	       " stores\n",
	       lane(0, 0), lane(0, 1), lane(0, 2), lane(0, 3));
	check("x86-64: a `rep` within its block is one instruction, and each repetition loads and stores",
	      lane(0, 0) == 8 && lane(0, 2) == 70000 + 10 + 50 && lane(0, 3) == 70000);
	check("x86-64: and takes a cycle, but the first one of a search",
	      lane(0, 1) == 8 + 70000 + 9 + 49);
}

/* ---- registers ---- */

#define ASKED (bits_one(0) | bits_one(2) | bits_one(10)) /* pc, sp, a0 */

static const struct seg_interrupt *next_record(const struct seg_ring *r, uint64_t *at)
{
	const struct seg_interrupt *i;

	while (*at < r->head) {
		i = (const struct seg_interrupt *)(r->data + *at);
		*at += i->head.size;
		if (i->head.type == SEG_REC_INTERRUPT)
			return i;
	}
	return NULL;
}

static bool has_registers(const struct seg_interrupt *i, uint64_t n)
{
	const uint64_t *value = i ? i->words + i->nr_next + i->nr_chain + 3 * i->nr_branches +
						(i->has_scalars ? SEG_SCALARS : 0)
				  : NULL;

	return i && i->pc == (uintptr_t)riscv_code + 4 * (n % 3) && i->regs == ASKED &&
	       value[0] == i->pc && value[1] == 7000 + n && value[2] == 100 + n;
}

static void registers(void *plugin, const char *path)
{
	const struct seg_ring *ring;
	struct seg_deadline *d;
	struct qemu_plugin_tb tb;
	uint64_t at = 0, n = 0;
	bool all = true;
	int fd = make_segment();

	(void)path;
	header()->features = SEG_COUNT | SEG_REGS;
	header()->regs = ASKED | bits_one(20); /* one that this program does not have */
	strcpy(header()->regs_isa, "riscv64");
	check("with registers: it can be installed", fd >= 0 && install(plugin, "riscv64", fd));
	d = (struct seg_deadline *)(segment + SEG_HEADER_BYTES + SEG_OFF_DEADLINES);
	*d = (struct seg_deadline){.at = 1,
				   .armed = 1,
				   .overflow = QUIPU_OVERFLOW_RISCV,
				   .sampling = SEG_SAMPLED,
				   .reload = {.sample_period = 1,
					      .last_period = 1,
					      .period_left = 1,
					      .programmed = 1,
					      .max_left = INT64_MAX}};
	translate(&tb, riscv_code, riscv_sizes, 3);
	check("with registers: each instruction calls, and may read them",
	      !tb.called[0].block && tb.insn[0].called[0].flags == 1 &&
		      tb.insn[1].called[0].flags == 1 && tb.insn[2].called[0].flags == 1);
	for (n = 0; n < 30; n++) {
		guest_sp = 7000 + n;
		guest_a0 = 100 + n;
		call_blocks(tb.insn[n % 3].called, 0);
		guest_sp = guest_a0 = 1; /* what an instruction leaves is not what it began with */
	}
	ring = (const struct seg_ring *)(segment + SEG_HEADER_BYTES + SEG_OFF_RINGS);
	for (n = 0; n < 30; n++)
		all &= has_registers(next_record(ring, &at), n);
	check("with registers: the record of each has those with which it began", all);
	check("with registers: and counts are the same", lane(0, 0) == 30 && lane(0, 2) == 10);
}

/* ---- threads ---- */

static struct {
	bool stop;
	unsigned n;
	struct {
		unsigned vcpu;
		uint32_t reason;
		uint64_t arg;
	} heard[32];
} machine;

static void pause_a_little(void)
{
	const struct timespec ms = {0, 1000000};

	nanosleep(&ms, NULL);
}

static void hear(unsigned v)
{
	struct seg_vcpu *vcpu = vcpu_of(v);
	uint32_t bell = __atomic_load_n(&vcpu->bell, __ATOMIC_ACQUIRE);

	if (bell == vcpu->ack)
		return;
	if (machine.n < 32) {
		machine.heard[machine.n].vcpu = v;
		machine.heard[machine.n].reason = vcpu->reason;
		machine.heard[machine.n++].arg = vcpu->arg;
	}
	__atomic_store_n(&vcpu->ack, bell, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &vcpu->ack, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void *answer(void *arg)
{
	while (!__atomic_load_n(&machine.stop, __ATOMIC_ACQUIRE)) {
		for (unsigned v = 0; v < 4; v++)
			hear(v);
		pause_a_little();
	}
	return arg;
}

struct born {
	unsigned vcpu;
	bool waits; /* until its maker waits for it */
	pid_t tid, maker;
	sem_t there, come;
	const struct qemu_plugin_tb *tb;
};

/* Until the thread sleeps, as far as the host tells; not for ever. */
static void until_asleep(pid_t tid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	for (unsigned i = 0; i < 5000 && state != 'S'; i++) {
		FILE *f = fopen(path, "re");

		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (f)
			fclose(f);
		pause_a_little();
	}
}

static void *thread(void *arg)
{
	struct born *b = arg;

	b->tid = (pid_t)syscall(SYS_gettid);
	sem_post(&b->there);
	if (b->waits)
		until_asleep(b->maker);
	got.init(7, b->vcpu);
	sem_post(&b->come);
	for (unsigned i = 0; i < 100; i++)
		run(b->tb, b->vcpu);
	got.exit(7, b->vcpu);
	return NULL;
}

#define CLONE_CALL 220 /* riscv64's */

/* Thread @vcpu is made by vCPU 0, and comes before (or, @waits, after) the call returns. */
static bool make_thread(unsigned vcpu, bool waits, const struct qemu_plugin_tb *tb)
{
	struct born b = {.vcpu = vcpu, .waits = waits, .tb = tb, .maker = gettid()};
	pthread_t t;

	sem_init(&b.there, 0, 0);
	sem_init(&b.come, 0, 0);
	got.call(7, 0, CLONE_CALL, 0, 0, 0, 0, 0, 0, 0, 0);
	if (pthread_create(&t, NULL, thread, &b))
		return false;
	sem_wait(&b.there);
	if (!waits)
		sem_wait(&b.come);
	got.call_ret(7, 0, CLONE_CALL, b.tid);
	return !pthread_join(t, NULL) && vcpu_of(vcpu)->tid == (uint32_t)b.tid;
}

static int heard(unsigned vcpu, uint32_t reason, uint64_t arg)
{
	for (unsigned i = 0; i < machine.n; i++)
		if (machine.heard[i].vcpu == vcpu && machine.heard[i].reason == reason &&
		    machine.heard[i].arg == arg)
			return (int)i;
	return -1;
}

static bool told_before(unsigned vcpu)
{
	int by_maker = heard(0, SEG_BELL_CLONE, vcpu), itself = heard(vcpu, SEG_BELL_THREAD, 0);

	return by_maker >= 0 && itself > by_maker;
}

static void threads(void *plugin, const char *path)
{
	struct qemu_plugin_tb tb;
	pthread_t t;
	int fd = make_segment();
	bool made;

	(void)path;
	header()->closing = 0;
	if (pthread_create(&t, NULL, answer, NULL))
		return;
	check("threads: it can be installed",
	      fd >= 0 && install(plugin, "riscv64", fd) && got.init && got.exit && got.call);
	got.init(7, 0);
	translate(&tb, riscv_code, riscv_sizes, 3);
	run(&tb, 0);
	made = make_thread(1, false, &tb) && make_thread(2, true, &tb);
	__atomic_store_n(&machine.stop, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	for (unsigned i = 0; i < machine.n; i++)
		printf("# vCPU %u rang %#x, %#" PRIx64 "\n", machine.heard[i].vcpu,
		       machine.heard[i].reason, machine.heard[i].arg);
	check("threads: one that comes before its maker's call ends is told of by its maker first",
	      made && told_before(1) && vcpu_of(1)->parent == 0);
	check("threads: and so is one that its maker waits for", made && told_before(2));
	check("threads: and both are counted", lane(1, 0) == 300 && lane(2, 0) == 300);
}

/* The plugin is one to a process. */
static void apart(void (*test)(void *, const char *), const char *path)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		const int *version = plugin ? dlsym(plugin, "qemu_plugin_version") : NULL;

		if (!version)
			printf("# %s\n", dlerror());
		check("a program with version 4 can load the plugin, which asks for that version",
		      version && *version == 4);
		if (version)
			test(plugin, path);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		check("it ends", false);
}

int main(int argc, char **argv)
{
	static void (*const tests[])(void *, const char *) = {counts, repetitions, registers,
							      threads};

	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (argc < 2 || tally == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		apart(tests[i], argv[1]);
	printf("1..%u\n", tally->number);
	return tally->failed != 0;
}
