/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models as a tree describes them (quipu/model.h). Caches: Devicetree Specification 0.4, read
 * by src/machine. TLBs: its tlb-size, tlb-sets, i-tlb-*, d-tlb-* of a CPU node (3.8.2). The rest
 * are private properties of /cpus. Defaults: engine sheet 7.2, 9.2.
 */
#include <stdio.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/model.h>

#define DEFAULT_L2  12u
#define DEFAULT_L3  40u
#define DEFAULT_TLB 64u /* entries, */
#define TLB_WAYS    4u	/* in sets of four */

/* A number on /cpus. */
struct number {
	const char *name;
	size_t offset; /* in struct quipu_model */
	uint32_t lo, hi, standard;
	bool power;
};

#define FIELD(f) offsetof(struct quipu_model, f)
static const struct number numbers[] = {
	{"quipu,predictor-counters", FIELD(counters), 0, QUIPU_MODEL_COUNTERS, 4096, true},
	{"quipu,predictor-history", FIELD(history), 0, 16, 12, false},
	{"quipu,predictor-targets", FIELD(targets), 1, QUIPU_MODEL_TARGETS, 512, true},
	{"quipu,return-stack", FIELD(returns), 1, QUIPU_MODEL_RETURNS, 16, true},
	{"quipu,penalty-memory", FIELD(memory), 0, QUIPU_MODEL_PENALTY, 200, false},
	{"quipu,penalty-second-tlb", FIELD(second_tlb), 0, QUIPU_MODEL_PENALTY, 6, false},
	{"quipu,penalty-walk", FIELD(walk), 0, QUIPU_MODEL_PENALTY, 20, false},
	{"quipu,penalty-mispredict", FIELD(mispredict), 0, QUIPU_MODEL_MISPREDICT, 14, false},
};

static const char *const others[] = {
	"quipu,replacement",	 "quipu,page-size",	  "quipu,memory-ports",
	"quipu,second-tlb-size", "quipu,second-tlb-sets",
};

bool quipu_model_property(const char *name)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(name, numbers[i].name))
			return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}

struct reader {
	const struct quipu_machine *machine;
	struct quipu_model *model;
	struct quipu_notes *notes;
	int cpus; /* node /cpus, negative: none */
};

static void wrong(const struct reader *r, const char *path, const char *name, const char *why)
{
	char where[256];

	if (!r->notes)
		return;
	snprintf(where, sizeof(where), "%s:%s", path, name);
	quipu_note(r->notes, QUIPU_NOTE_WRONG, where, "%s; the default is taken", why);
}

static uint64_t number_at(const struct reader *r, int node, const char *name, uint64_t fallback)
{
	return node < 0 ? fallback : quipu_machine_number(r->machine, node, name, fallback);
}

static void read_number(const struct reader *r, const struct number *n)
{
	uint64_t v = number_at(r, r->cpus, n->name, n->standard);
	char why[80];

	if (v < n->lo || v > n->hi || (n->power && v && bits_count(v) != 1)) {
		snprintf(why, sizeof(why), "is no %s from %u to %u",
			 n->power ? "power of two" : "number", n->lo, n->hi);
		wrong(r, "/cpus", n->name, why);
		v = n->standard;
	}
	memcpy((char *)r->model + n->offset, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
}

/* ---- caches ---- */

static const struct quipu_cache *find_cache(const struct quipu_machine *m, unsigned level,
					    enum quipu_cache_type type)
{
	for (size_t i = 0; i < m->ncaches; i++)
		if (m->caches[i].level == level && m->caches[i].type == type &&
		    !m->caches[i].first_cpu)
			return &m->caches[i];
	return NULL;
}

static void read_cache(const struct reader *r, struct quipu_model_cache *to, unsigned level,
		       enum quipu_cache_type type, uint32_t latency)
{
	const struct quipu_cache *c = find_cache(r->machine, level, type);

	if (!c)
		c = find_cache(r->machine, level, QUIPU_CACHE_UNIFIED);
	if (!c && level > 1)
		c = find_cache(r->machine, level, QUIPU_CACHE_DATA);
	if (!c || !c->sets)
		return;
	if (c->ways > QUIPU_MODEL_WAYS) {
		if (r->notes)
			quipu_note(
				r->notes, QUIPU_NOTE_IGNORED, c->path,
				"a cache of %u ways: the model has at most %u, so this one is not modelled",
				c->ways, QUIPU_MODEL_WAYS);
		return;
	}
	*to = (struct quipu_model_cache){c->sets, c->ways, bits_low(c->line),
					 c->latency ? c->latency : latency};
	if (to->latency > QUIPU_MODEL_PENALTY)
		to->latency = QUIPU_MODEL_PENALTY;
	if (level == 3)
		r->model->l3_cpus = c->ncpus;
}

/* ---- TLBs ---- */

static bool tlb_shape(struct quipu_model_cache *to, uint64_t entries, uint64_t sets)
{
	if (!entries) { /* none */
		to->sets = 0;
		return true;
	}
	if (!sets)
		sets = entries % TLB_WAYS ? 1 : entries / TLB_WAYS;
	if (entries > 65536 || entries % sets || entries / sets > QUIPU_MODEL_WAYS)
		return false;
	to->sets = (uint32_t)sets;
	to->ways = (uint32_t)(entries / sets);
	return true;
}

static void read_tlb(const struct reader *r, struct quipu_model_cache *to, const char *kind)
{
	int cpu = r->machine->ncpus ? r->machine->cpus[0].offset : -1;
	char size[32], sets[32];

	snprintf(size, sizeof(size), "%s-tlb-size", kind);
	snprintf(sets, sizeof(sets), "%s-tlb-sets", kind);
	tlb_shape(to, DEFAULT_TLB, 0);
	if (!tlb_shape(to, number_at(r, cpu, size, number_at(r, cpu, "tlb-size", DEFAULT_TLB)),
		       number_at(r, cpu, sets, number_at(r, cpu, "tlb-sets", 0))))
		wrong(r, cpu < 0 ? "/cpus" : r->machine->cpus[0].path, size,
		      "is no whole number of sets of at most 64 ways");
}

static void read_second_tlb(const struct reader *r)
{
	if (!tlb_shape(&r->model->stlb, number_at(r, r->cpus, "quipu,second-tlb-size", 0),
		       number_at(r, r->cpus, "quipu,second-tlb-sets", 0)))
		wrong(r, "/cpus", "quipu,second-tlb-size",
		      "is no whole number of sets of at most 64 ways");
}

static uint32_t page_shift(const struct reader *r)
{
	static const uint32_t standard[QUIPU_ISAS] = {[QUIPU_ISA_RISCV64] = 12,
						      [QUIPU_ISA_PPC64LE] = 16,
						      [QUIPU_ISA_SPARC64] = 13,
						      [QUIPU_ISA_X86_64] = 12};
	uint32_t shift = standard[r->machine->isa];
	uint64_t size = number_at(r, r->cpus, "quipu,page-size", UINT64_C(1) << shift);

	if (size >= 4096 && size <= UINT64_C(1) << 30 && bits_count(size) == 1)
		return bits_low(size);
	wrong(r, "/cpus", "quipu,page-size", "is no power of two from 4096 to 2^30");
	return shift;
}

/* A POWER9 has eight memory ports a chip; elsewhere nothing tells ports apart. */
static void read_ports(const struct reader *r)
{
	uint32_t standard = r->machine->isa == QUIPU_ISA_PPC64LE ? QUIPU_MODEL_PORTS : 0;
	uint64_t ports = number_at(r, r->cpus, "quipu,memory-ports", standard);

	if (ports > QUIPU_MODEL_PORTS || (ports && bits_count(ports) != 1)) {
		wrong(r, "/cpus", "quipu,memory-ports", "is no power of two up to 8");
		ports = standard;
	}
	r->model->ports = (uint32_t)ports;
}

static void read_replacement(const struct reader *r)
{
	int len;
	const char *word = r->cpus < 0 ? NULL
				       : quipu_machine_property(r->machine, r->cpus,
								"quipu,replacement", &len);

	if (!word)
		return;
	if (len == 4 && !memcmp(word, "lru", 4))
		r->model->lru = 1;
	else if (len != 5 || memcmp(word, "plru", 5))
		wrong(r, "/cpus", "quipu,replacement", "is neither \"plru\" nor \"lru\"");
}

/* Every core as the first. */
static uint32_t core_cpus(const struct quipu_machine *m)
{
	uint32_t n = 1;

	while (n < m->ncpus && m->cpus[n].socket == m->cpus[0].socket &&
	       m->cpus[n].die == m->cpus[0].die && m->cpus[n].core == m->cpus[0].core)
		n++;
	return n;
}

void quipu_model_read(const struct quipu_machine *machine, struct quipu_model *model,
		      struct quipu_notes *notes)
{
	struct reader r = {machine, model, notes, fdt_path_offset(machine->fdt, "/cpus")};

	memset(model, 0, sizeof(*model));
	model->full = machine->timing_full;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		read_number(&r, &numbers[i]);
	read_replacement(&r);
	read_ports(&r);
	read_cache(&r, &model->l1i, 1, QUIPU_CACHE_INSTRUCTION, 0);
	read_cache(&r, &model->l1d, 1, QUIPU_CACHE_DATA, 0);
	read_cache(&r, &model->l2, 2, QUIPU_CACHE_UNIFIED, DEFAULT_L2);
	read_cache(&r, &model->l3, 3, QUIPU_CACHE_UNIFIED, DEFAULT_L3);
	if (!model->l3_cpus)
		model->l3_cpus = 1;
	model->core_cpus = core_cpus(machine);
	read_tlb(&r, &model->itlb, "i");
	read_tlb(&r, &model->dtlb, "d");
	read_second_tlb(&r);
	model->itlb.shift = model->dtlb.shift = model->stlb.shift = page_shift(&r);
	if (!model->l1d.sets)
		model->l1d.shift = 6; /* still the grain of the filters */
	if (!model->l1i.sets)
		model->l1i.shift = 6;
}
