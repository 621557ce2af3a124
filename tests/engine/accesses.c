/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QEMU plugin that holds the decoders against QEMU itself: does an instruction that is said to
 * load ever load, does one that is not said to store ever store? It looks at every access of every
 * instruction that runs and prints, at the end, what the decoder and QEMU disagree about. So are
 * the places: is there one access of that size, and does it lie where its group (group.h) has it,
 * from the first one's address? Tests only; slow; of programs with one thread.
 *
 *   qemu-x86_64 -plugin accesses.so,out=FILE PROGRAM
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qemu/block.h"
#include "engine/qemu/decode.h"
#include "engine/qemu/group.h"
#include "engine/qemu/plugin_abi.h"

PLUGIN_EXPORT int qemu_plugin_version = 1;

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
				      void (*)(unsigned, uint32_t, uint64_t, void *), int flags,
				      int rw, void *);
bool qemu_plugin_mem_is_store(uint32_t);

struct seen {
	struct seen *next;
	uint64_t pc, runs, loads, stores;
	uint8_t bytes[16], size;
	struct decoded d;
	/* the first instruction of its group, and how far from its address the access lies */
	struct seen *first;
	int32_t delta;
	uint64_t address; /* of the access of the first one, now */
	uint64_t misplaced;
};

static struct seen *all;
static const struct isa *isa;
static const char *out_path = "/dev/stderr";
static struct seen *now; /* the instruction that runs */
static unsigned made;	 /* bytes that it accessed */

static void on_run(unsigned vcpu, void *arg)
{
	(void)vcpu;
	if (now && now->first && made != 1u << now->d.place.bytes)
		now->misplaced++;
	now = arg;
	now->runs++;
	made = 0;
}

static void check_place(struct seen *s, unsigned bytes, uint64_t address)
{
	unsigned whole = 1u << s->d.place.bytes;

	if (s->first == s) { /* each time QEMU tells of it the group is looked at */
		s->misplaced += made != 0;
		s->address = address;
	}
	if (address !=
		    s->first->address + (uint64_t)(int64_t)s->delta + (s->first == s ? 0 : made) ||
	    (bytes != whole && !(whole == 16 && bytes == 8)))
		s->misplaced++;
	made += bytes;
}

static void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *arg)
{
	struct seen *s = arg;

	(void)vcpu;
	if (s->first)
		check_place(s, 1u << qemu_plugin_mem_size_shift(info), address);
	/* An atomic access is one of both kinds: bits 16 and 17 say so, the accessor only that it
	 * stores. */
	s->loads += info >> 16 & 1;
	s->stores += qemu_plugin_mem_is_store(info);
}

/* Instructions @i and on are a group: where it ends. */
static size_t put_group(struct seen **seen, const struct insn *insn, size_t n, size_t i)
{
	union {
		struct group head;
		char bytes[sizeof(struct group) + GROUP_MOST * sizeof(struct group_access)];
	} room;
	unsigned found = group_find(insn, (unsigned)n, (unsigned)i, 1u << 16, &room.head);

	for (unsigned k = 0; k < found; k++) {
		const struct group_access *a = &room.head.access[k];

		seen[a->index]->first = seen[room.head.access[0].index];
		seen[a->index]->delta = a->delta;
	}
	return found ? room.head.access[found - 1].index : i;
}

static struct seen *see(struct qemu_plugin_insn *insn, struct insn *in)
{
	struct seen *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->pc = qemu_plugin_insn_vaddr(insn);
	s->size = (uint8_t)qemu_plugin_insn_size(insn);
	plugin_insn_bytes(insn, s->bytes, s->size < 16 ? s->size : 16);
	isa->decode(s->bytes, s->size, s->pc, &s->d);
	*in = insn_decoded(&s->d, s->pc, s->size);
	s->next = all;
	all = s;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_run, QEMU_PLUGIN_CB_NO_REGS, s);
	qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, 3, s);
	return s;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct seen **seen = calloc(n, sizeof(struct seen *));
	struct insn *insn = calloc(n, sizeof(*insn));

	(void)id;
	if (!seen || !insn)
		abort();
	for (size_t i = 0; i < n; i++)
		seen[i] = see(qemu_plugin_tb_get_insn(tb, i), &insn[i]);
	for (size_t i = 0; i < n; i++)
		if (insn_accesses(insn[i].class))
			i = put_group(seen, insn, n, i);
	free(seen);
	free(insn);
}

static bool says(const struct decoded *d, quipu_signal signal, unsigned access)
{
	return quipu_signal_mask(signal) & QUIPU_CLASS_BIT(d->class) || d->access & access ||
	       d->again & access;
}

static bool as_decoded(const struct seen *s)
{
	if (s->d.flow == FLOW_REP && !s->loads && !s->stores) /* its count was 0 */
		return true;
	return s->d.size == s->size &&
	       says(&s->d, QUIPU_SIGNAL_LOADS, INSN_LOAD) == (s->loads != 0) &&
	       says(&s->d, QUIPU_SIGNAL_STORES, INSN_STORE) == (s->stores != 0);
}

static void tell(FILE *out, const char *what, const struct seen *s)
{
	fprintf(out,
		"%s %" PRIx64 " size %u (decoded %u) load %d store %d seen %" PRIu64 " %" PRIu64
		" misplaced %" PRIu64 " in %" PRIu64 " runs:",
		what, s->pc, s->size, s->d.size, says(&s->d, QUIPU_SIGNAL_LOADS, INSN_LOAD),
		says(&s->d, QUIPU_SIGNAL_STORES, INSN_STORE), s->loads, s->stores, s->misplaced,
		s->runs);
	for (unsigned i = 0; i < s->size && i < 16; i++)
		fprintf(out, " %02x", s->bytes[i]);
	fputc('\n', out);
}

static void at_exit(qemu_plugin_id_t id, void *arg)
{
	FILE *out = fopen(out_path, "w");
	uint64_t runs = 0, bad = 0, kinds = 0, placed = 0, grouped = 0;

	(void)id;
	(void)arg;
	if (!out)
		return;
	for (struct seen *s = all; s; s = s->next) {
		if (!s->runs)
			continue;
		kinds++;
		runs += s->runs;
		placed += s->first != NULL;
		grouped += s->first && s->first != s;
		if (s->misplaced)
			tell(out, "misplaced", s);
		if (as_decoded(s))
			continue;
		bad++;
		tell(out, "differs", s);
	}
	fprintf(out,
		"instructions %" PRIu64 " runs %" PRIu64 " differ %" PRIu64 " placed %" PRIu64
		" grouped %" PRIu64 "\n",
		kinds, runs, bad, placed, grouped);
	fclose(out);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	isa = isa_find(info->target_name);
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out_path = argv[i] + 4;
	if (!isa)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
