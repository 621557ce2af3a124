// SPDX-License-Identifier: BSD-2-Clause
/*
 * The Rock room as the machine sees it: chips and guests as the tree describes them, the engine's
 * CPUs attached to the strands of one guest, and the driver in that guest. The other guests own
 * strands and are silent.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/rock/chip.h"
#include "platform/rock/driver.h"
#include "platform/rock/room.h"

#define MEMORY_AT UINT64_C(0x10000000) /* real address of the driver's rings */

struct room {
	struct quipu_platform_env env;
	struct rock_tree tree;
	struct quipu_rock *rock;
	unsigned guest;	  /* whose CPUs the machine has */
	unsigned *strand; /* of each CPU */
	struct rock_driver *driver;
};

/* ---- what the driver is told for people ---- */

static bool engine_has(const struct room *r, quipu_signal s)
{
	return r->env.signals->ops->has(r->env.signals, s);
}

/* Everything with records; with signals, what they carry. */
static bool can(void *arg, unsigned code, unsigned source, uint64_t filter, bool sampled,
		const char **text, char *buf, size_t len)
{
	const struct room *r = arg;
	struct rock_follow f[STRAND_TERMS];
	enum rock_type type;
	unsigned n, ignored;
	const char *missing = NULL;
	char name[32];

	*text = NULL;
	if (r->tree.records || !rock_type_decode(code, false, &type, &ignored))
		return true;
	n = sampled ? rock_samples_follow(type, filter, f)
		    : rock_events_follow(type, source, filter, f, &missing);
	if (sampled && !n)
		missing = "candidates: the filter admits none";
	for (unsigned i = 0; i < n; i++)
		if (!engine_has(r, f[i].signal)) {
			snprintf(buf, len,
				 "needs the signal %s, which the engine does not give here",
				 quipu_signal_name(f[i].signal, name, sizeof(name)));
			*text = buf;
			return false;
		}
	if (!missing)
		return true;
	snprintf(buf, len, n ? "counts without %s" : "nothing counts %s", missing);
	*text = buf;
	return n != 0;
}

static int want(void *arg, unsigned code, unsigned source, uint64_t filter, bool sampled)
{
	const struct room *r = arg;
	struct quipu_signals *s = r->env.signals;
	struct rock_follow f[STRAND_TERMS];
	enum rock_type type;
	unsigned n, ignored;
	int err = 0;

	if (r->tree.records || !s->ops->want || !rock_type_decode(code, false, &type, &ignored))
		return 0;
	n = sampled ? rock_samples_follow(type, filter, f)
		    : rock_events_follow(type, source, filter, f, NULL);
	for (unsigned i = 0; i < n && !err; i++)
		err = s->ops->want(s, f[i].signal);
	return err;
}

/*
 * A count of stores is exact, but that each is an L2 transaction of its own is the model's: no
 * signal of L2 events.
 */
static quipu_signal signal_of(void *arg, unsigned code, unsigned source, uint64_t filter)
{
	const struct room *r = arg;
	struct rock_follow f[STRAND_TERMS];
	enum rock_type type;
	unsigned ignored;

	if (r->tree.records || !rock_type_decode(code, false, &type, &ignored))
		return QUIPU_SIGNAL_NONE;
	if (rock_events_follow(type, source, filter, f, NULL) != 1 || f[0].weight != 1 || f[0].chip)
		return QUIPU_SIGNAL_NONE;
	if (type == TYPE_L2 && quipu_signal_exactness(f[0].signal) == QUIPU_EXACT)
		return QUIPU_SIGNAL_NONE;
	return source == RK_PERF_SRC_STRAND ? f[0].signal : QUIPU_SIGNAL_NONE;
}

static int slot_of(void *arg, unsigned code, unsigned source, uint64_t filter)
{
	const struct room *r = arg;
	struct rock_follow f[STRAND_TERMS];
	enum rock_type type;
	unsigned ignored;

	if (r->tree.records || !rock_type_decode(code, false, &type, &ignored) ||
	    source != RK_PERF_SRC_STRAND)
		return -1;
	if (rock_events_follow(type, source, filter, f, NULL) != 1 || f[0].weight != 1 || f[0].chip)
		return -1;
	return (int)rock_terms_slot(type, ROCK_COUNTER);
}

static int owner_of(void *arg, unsigned strand, unsigned code)
{
	return quipu_rock_owner(((struct room *)arg)->rock, strand / STRANDS, code);
}

/* ---- set-up ---- */

static void bind_guests(struct room *r)
{
	for (unsigned g = 0; g < r->tree.nguests; g++)
		for (unsigned i = 0; i < r->tree.guest[g].nranges; i++)
			for (uint32_t s = 0; s < r->tree.guest[g].range[i][1]; s++)
				quipu_rock_bind(r->rock, r->tree.guest[g].range[i][0] + s,
						r->tree.guest[g].number);
}

/* The machine's CPUs are strands of one guest: a Linux sees no others. */
static int place_cpus(struct room *r)
{
	const struct quipu_machine *m = r->env.machine;

	r->strand = calloc(m->ncpus, sizeof(*r->strand));
	if (!r->strand)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < m->ncpus; cpu++) {
		uint64_t strand = m->cpus[cpu].reg;
		unsigned guest = strand < quipu_rock_strands(r->rock)
					 ? quipu_rock_guest_of(r->rock, (unsigned)strand)
					 : 0;

		if (!guest || (cpu && guest != r->guest)) {
			quipu_note(r->env.notes, QUIPU_NOTE_WRONG, m->cpus[cpu].path,
				   guest ? "is a strand of another guest than the CPUs before it"
					 : "reg is no strand that a guest of quipu,strands owns");
			return -EINVAL;
		}
		r->guest = guest;
		r->strand[cpu] = (unsigned)strand;
		if (!r->tree.records) {
			int err = quipu_rock_attach(r->rock, (unsigned)strand, r->env.signals, cpu);

			if (err)
				return err;
		}
	}
	return 0;
}

/* The rings of a strand belong to the guest's CPU of the same number. */
static void on_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct room *r = arg;

	for (unsigned cpu = 0; cpu < r->env.machine->ncpus; cpu++)
		if (r->strand[cpu] == strand && r->driver)
			rock_driver_interrupt(r->driver, cpu, irq);
}

static int make_driver(struct room *r)
{
	const struct rock_driver_env d = {
		.core = r->env.core,
		.rock = r->rock,
		.guest = r->guest,
		.ncpus = r->env.machine->ncpus,
		.strand = r->strand,
		.memory = MEMORY_AT,
		.strict = r->tree.config.strict,
		.can = can,
		.want = want,
		.signal = signal_of,
		.slot = slot_of,
		.owner = owner_of,
		.arg = r,
	};
	int err = quipu_rock_memory_add(r->rock, r->guest, MEMORY_AT, d.ncpus * ROCK_DRIVER_MEMORY);

	if (err)
		return err;
	quipu_rock_set_handler(r->rock, on_interrupt, r);
	return rock_driver_new(&d, r->env.notes, &r->driver);
}

static bool room_matches(const struct quipu_machine *m)
{
	return m->isa == QUIPU_ISA_SPARC64 && rock_tree_node(m) >= 0;
}

static void room_destroy(void *self)
{
	struct room *r = self;

	rock_driver_free(r->driver);
	quipu_rock_free(r->rock);
	free(r->strand);
	free(r);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct room *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return err;
	r->env = *env;
	err = rock_tree_read(env->machine, env->notes, &r->tree);
	if (err)
		goto fail;
	r->rock = quipu_rock_new(&r->tree.config);
	err = r->rock ? 0 : -ENOMEM;
	if (err)
		goto fail;
	if (env->trace)
		quipu_rock_set_trace(r->rock, env->trace, env->trace_arg);
	bind_guests(r);
	err = place_cpus(r);
	if (!err)
		err = make_driver(r);
	if (err)
		goto fail;
	*self = r;
	return 0;
fail:
	quipu_note(env->notes, QUIPU_NOTE_WRONG, "/", "the Rock room cannot be set up: %s",
		   strerror(-err));
	room_destroy(r);
	return err;
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	struct room *r = self;

	quipu_rock_interrupt(r->rock, irq);
	quipu_core_work(r->env.core);
}

/* ---- for a person ---- */

static void say(quipu_describe_fn *fn, void *arg, unsigned depth, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void say(quipu_describe_fn *fn, void *arg, unsigned depth, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fn(arg, depth, line);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	struct room *r = self;

	say(fn, arg, 0,
	    "Rock: %u chip%s of 16 cores x 2 strands under a sun4v hypervisor, RKPERF 1.0%s",
	    r->tree.config.chips, r->tree.config.chips > 1 ? "s" : "",
	    r->tree.config.strict ? ", publicly known registers only" : "");
	for (unsigned g = 0; g < r->tree.nguests; g++) {
		const struct rock_tree_guest *t = &r->tree.guest[g];
		char ranges[160] = "";

		for (unsigned i = 0; i < t->nranges; i++) {
			size_t n = strlen(ranges);

			snprintf(ranges + n, sizeof(ranges) - n, "%s%u-%u", n ? "," : "",
				 t->range[i][0], t->range[i][0] + t->range[i][1] - 1);
		}
		say(fn, arg, 1, "guest %u: strands %s%s", t->number, ranges,
		    t->number == r->guest ? " (this machine's CPUs)" : "");
	}
	if (r->tree.config.trap_cycles || r->tree.config.owner_cycles)
		say(fn, arg, 1,
		    "an event costs %u hyperprivileged cycles on the trap strand, %u on its owner "
		    "(declared)",
		    r->tree.config.trap_cycles, r->tree.config.owner_cycles);
	rock_driver_describe(r->driver, fn, arg);
}

static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	struct room *r = self;

	if (!online && cpu < r->env.machine->ncpus)
		quipu_rock_strand_stop(r->rock, r->strand[cpu]);
}

struct quipu_rock *rock_room_chips(void *self)
{
	return ((struct room *)self)->rock;
}

static const char *const room_nodes[] = {"quipu,sun4v", NULL};

const struct quipu_platform quipu_platform_rock = {
	.name = "rock",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = room_cpu_online,
};
