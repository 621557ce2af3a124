/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nest microcode of a chip: OpenPOWER OCC src/occ_gpe1/gpe1_24x7.c (POWER9), IMC sheet 3.2
 * and 3.3. Steps of 500 us are replayed when somebody looks; what was fed since the last look
 * belongs to the first of them. Events while the microcode is paused are dropped. Hardware counter
 * widths are not modelled: totals are exact, posted divided.
 */
#include <string.h>

#include "platform/imc/hardware.h"

#define VERSION_OFFSET 0x2fc00u /* HOMER + 0x1afc00 */
#define VERSION	       UINT64_C(0x2000310520180000)
#define AREA	       0x770u
#define STATES	       8u
#define MAX_SPEED      0xbu
#define SLOW_SPEED     4u /* from here on the prescaler has 16 bits */

struct span {
	uint16_t first, last; /* offsets of the first and the last cell */
};

/* A group of counters that is posted together; header 0: none. */
struct group {
	uint16_t header, trailer;
	bool framed;
	bool slow; /* G4 to G7: delay is an eighth of the speed */
	struct span span[3];
};

static const struct group groups[] = {
	{0x000, 0x108, true, false, {{0x008, 0x0c0}, {0x0c8, 0x100}}}, /* G1 powerbus, mcs */
	{0x110, 0x218, true, false, {{0x118, 0x210}}},		       /* G2 xlinks, nx */
	{0x220, 0x328, true, false, {{0x228, 0x320}}},		       /* G3 nvlink */
	{0x330, 0x438, true, true, {{0x338, 0x430}}},		       /* G4 phb */
	{0x440, 0x548, true, true, {{0x448, 0x540}}}, /* G5 mba0-3, alink0-1 lie here too */
	{0x550, 0x658, true, true, {{0x558, 0x650}}}, /* G6 mba4-7 */
	{0x660, 0x768, true, true, {{0x668, 0x740}}}, /* G7 capp */
};
enum { G1, G2, G3, G4, G5, G6, G7 };

static uint64_t control(const struct quipu_imc *imc, const struct imc_chip_state *c, unsigned word)
{
	return imc_load(imc, c->region + imc->tree.control_offset + word);
}

static void set_control(struct quipu_imc *imc, struct imc_chip_state *c, unsigned word,
			uint64_t value)
{
	imc_store(imc, c->region + imc->tree.control_offset + word, value);
}

/* ---- what a cell counts ---- */

/* Sums over a chip's CPUs that were made at this look at it: many cells count the same. */
#define SUMS 32u
struct sums {
	unsigned n;
	quipu_signal signal[SUMS];
	uint64_t value[SUMS];
};

/* A signal of all programs on the chip: pages of memory lie with the program that uses them. */
static uint64_t cpus_signal(const struct quipu_imc *imc, const struct imc_chip_state *c,
			    quipu_signal signal)
{
	uint64_t n = 0;

	for (unsigned cpu = 0; cpu < imc->machine->ncpus; cpu++)
		if (imc->machine->cpus[cpu].socket == c->id)
			n += imc_signal(imc, cpu, signal);
	return n;
}

static uint64_t chip_signal(const struct quipu_imc *imc, const struct imc_chip_state *c,
			    struct sums *sums, quipu_signal signal)
{
	uint64_t value;

	for (unsigned i = 0; i < sums->n; i++)
		if (sums->signal[i] == signal)
			return sums->value[i];
	value = cpus_signal(imc, c, signal);
	if (sums->n < SUMS) {
		sums->signal[sums->n] = signal;
		sums->value[sums->n++] = value;
	}
	return value;
}

/* Lines that programs moved, of the ports that the event is about. */
static uint64_t lines(const struct quipu_imc *imc, const struct imc_chip_state *c,
		      struct sums *sums, const struct imc_cell *k)
{
	quipu_signal signal[IMC_MAX_SIGNALS] = {QUIPU_SIGNAL_NONE};

	imc_source_signals(k->source, k->index, signal);
	return chip_signal(imc, c, sums, signal[0]);
}

static uint64_t sum(const uint64_t *ports, uint32_t mask, unsigned first)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 4; i++)
		if (mask & 1u << i)
			n += ports[first + i];
	return n;
}

static uint64_t all(const uint64_t *ports)
{
	return sum(ports, 0xf, 0) + sum(ports, 0xf, 4);
}

static uint64_t all_lines(const struct quipu_imc *imc, const struct imc_chip_state *c,
			  struct sums *sums)
{
	return chip_signal(imc, c, sums, QUIPU_SIGNAL_MEM_READ_LINES) +
	       chip_signal(imc, c, sums, QUIPU_SIGNAL_MEM_WRITE_LINES) + all(c->r128) +
	       all(c->w128);
}

static uint64_t source_value(const struct quipu_imc *imc, const struct imc_chip_state *c,
			     struct sums *sums, const struct imc_cell *k, uint64_t now_ns)
{
	unsigned first = k->index >= 23 ? 4 : 0; /* mcs01: ports 0-3, mcs23: 4-7 */
	unsigned port = k->index % QUIPU_IMC_PORTS;

	switch (k->source->kind) {
	case IMC_CLOCK: return bits_muldiv(now_ns, k->source->arg, 1000000);
	case IMC_R64: return sum(c->r64, k->source->arg, first);
	case IMC_R128:
		return (lines(imc, c, sums, k) + sum(c->r128, k->source->arg, first)) *
		       imc->line_weight;
	case IMC_W128:
		return (lines(imc, c, sums, k) + sum(c->w128, k->source->arg, first)) *
		       imc->line_weight;
	case IMC_RBYTES: return 128 * (lines(imc, c, sums, k) + c->r128[port]) + 64 * c->r64[port];
	case IMC_WBYTES: return 128 * (lines(imc, c, sums, k) + c->w128[port]);
	case IMC_PB_LOCAL: return all_lines(imc, c, sums) + all(c->r64);
	case IMC_DATA_LOCAL: return (128 * all_lines(imc, c, sums) + 64 * all(c->r64)) / 512;
	default: return 0; /* nothing goes between the chips */
	}
}

static void observe(struct quipu_imc *imc, struct imc_chip_state *c, uint64_t now_ns)
{
	struct sums sums;

	sums.n = 0;
	for (unsigned i = 0; i < imc->nest.n; i++) {
		uint64_t v = source_value(imc, c, &sums, &imc->nest.cell[i], now_ns);

		if (c->running)
			c->counter[i].total += v - c->counter[i].seen;
		c->counter[i].seen = v;
	}
}

/* ---- posting ---- */

static void post_span(struct quipu_imc *imc, struct imc_chip_state *c, struct span s)
{
	uint64_t at = c->region + (c->mode == 1 && s.last <= 0x108 ? 0x10000 : 0);

	for (unsigned i = 0; i < imc->nest.n; i++) {
		const struct imc_cell *k = &imc->nest.cell[i];
		uint64_t factor =
			k->divisor > 1 && c->speed >= SLOW_SPEED ? 256 * k->divisor : k->divisor;

		if (k->offset >= s.first && k->offset <= s.last)
			imc_store(imc, at + k->offset, c->counter[i].total / factor);
	}
}

static void frame(struct quipu_imc *imc, struct imc_chip_state *c, unsigned offset)
{
	uint64_t at = c->region + offset + (c->mode == 1 && offset <= 0x108 ? 0x10000 : 0);

	imc_store(imc, at, imc_load(imc, at) + 1);
}

static void post_group(struct quipu_imc *imc, struct imc_chip_state *c, unsigned g)
{
	frame(imc, c, groups[g].header);
	for (unsigned i = 0; i < 3; i++)
		if (groups[g].span[i].last)
			post_span(imc, c, groups[g].span[i]);
	frame(imc, c, groups[g].trailer);
}

/* The other half of G2: the alinks, which have no header of their own. */
static void post_links(struct quipu_imc *imc, struct imc_chip_state *c)
{
	if (c->link_half) {
		post_span(imc, c, (struct span){0x4a8, 0x540});
		post_span(imc, c, (struct span){0x5b8, 0x650});
	} else {
		post_group(imc, c, G2);
	}
	c->link_half = !c->link_half;
}

/* A pair of host bridges for each visit, three pairs in all. */
static void post_bridges(struct quipu_imc *imc, struct imc_chip_state *c)
{
	uint16_t first = (uint16_t)(0x338 + 0x40 * c->phb_pair);

	frame(imc, c, groups[G4].header);
	post_span(imc, c, (struct span){first, (uint16_t)(first + 0x38)});
	frame(imc, c, groups[G4].trailer);
	c->phb_pair = (c->phb_pair + 1) % 3;
}

static void visit(struct quipu_imc *imc, struct imc_chip_state *c, unsigned g)
{
	uint64_t delay = groups[g].slow ? c->speed / 8 : c->speed;

	if (c->visits[g]++ % (delay + 1))
		return;
	if (g == G2)
		post_links(imc, c);
	else if (g == G4)
		post_bridges(imc, c);
	else
		post_group(imc, c, g);
}

static void post_state(struct quipu_imc *imc, struct imc_chip_state *c)
{
	static const uint8_t slow[] = {[2] = G4, [4] = G5, [6] = G6, [8] = G7};

	if (c->state & 1) {
		visit(imc, c, G1);
		visit(imc, c, G2);
	} else {
		visit(imc, c, G3);
		visit(imc, c, slow[c->state]);
	}
}

static void take_command(struct quipu_imc *imc, struct imc_chip_state *c)
{
	uint64_t command = control(imc, c, QUIPU_NEST_COMMAND);

	if (command == QUIPU_NEST_RUN) {
		c->running = true;
		set_control(imc, c, QUIPU_NEST_STATUS, QUIPU_NEST_RUNNING);
	} else if (command == QUIPU_NEST_PAUSE) {
		c->running = false;
		set_control(imc, c, QUIPU_NEST_STATUS, QUIPU_NEST_PAUSED);
	} else if (command == QUIPU_NEST_CLEAR) {
		c->running = true;
		c->want_init = true;
	} else {
		return;
	}
	set_control(imc, c, QUIPU_NEST_COMMAND, 0);
}

void imc_chip_kick(struct quipu_imc *imc, struct imc_chip_state *c)
{
	if (c->region && control(imc, c, QUIPU_NEST_STATUS) != QUIPU_NEST_INITIALISING)
		take_command(imc, c);
}

void imc_chip_post(struct quipu_imc *imc, struct imc_chip_state *c)
{
	if (c->running && control(imc, c, QUIPU_NEST_STATUS) == QUIPU_NEST_RUNNING)
		post_span(imc, c, (struct span){0, AREA});
}

/* ---- a step ---- */

static void clear_area(struct quipu_imc *imc, struct imc_chip_state *c)
{
	if (c->memory->data)
		memset(c->memory->data, 0, AREA);
	for (unsigned i = 0; i < imc->nest.n; i++)
		c->counter[i].total = 0;
	memset(c->visits, 0, sizeof(c->visits));
	c->phb_pair = 0;
	c->link_half = false;
}

static void first_step(struct quipu_imc *imc, struct imc_chip_state *c)
{
	c->first = false;
	clear_area(imc, c);
	imc_store(imc, c->region + VERSION_OFFSET, VERSION);
	set_control(imc, c, QUIPU_NEST_STATUS, QUIPU_NEST_INITIALISING);
	set_control(imc, c, QUIPU_NEST_COMMAND, 0);
	if (!control(imc, c, QUIPU_NEST_AVAILABLE))
		set_control(imc, c, QUIPU_NEST_AVAILABLE, IMC_AVAILABLE);
	c->mode = control(imc, c, QUIPU_NEST_MODE);
	c->speed = control(imc, c, QUIPU_NEST_SPEED);
	c->vector = control(imc, c, QUIPU_NEST_AVAILABLE);
	c->running = true;
	c->want_init = true;
}

/* Speed, vector and mode as the host wrote them. False: the microcode stands, and says why. */
static bool take_settings(struct quipu_imc *imc, struct imc_chip_state *c)
{
	uint64_t speed = control(imc, c, QUIPU_NEST_SPEED),
		 vector = control(imc, c, QUIPU_NEST_AVAILABLE);
	uint64_t mode = control(imc, c, QUIPU_NEST_MODE);
	bool keep = false;

	if (speed > MAX_SPEED || mode > 1) {
		set_control(imc, c, QUIPU_NEST_STATUS,
			    speed > MAX_SPEED ? QUIPU_NEST_BAD_SPEED : QUIPU_NEST_BAD_MODE);
		c->speed = speed;
		c->mode = mode;
		c->running = false;
		return false;
	}
	if (speed != c->speed) {
		c->want_init = true;
		c->running |= c->speed > MAX_SPEED;
	}
	if (vector != c->vector || mode != c->mode) {
		keep = !c->want_init;
		c->want_init = true;
		c->running |= mode != c->mode;
	}
	if (!c->want_init)
		return true;
	c->want_init = false;
	set_control(imc, c, QUIPU_NEST_STATUS, QUIPU_NEST_INITIALISING);
	if (!keep)
		clear_area(imc, c);
	c->speed = speed;
	c->vector = vector;
	c->mode = mode;
	set_control(imc, c, QUIPU_NEST_MODE_NOW, mode);
	c->state = 1;
	c->configured = 4;
	return true;
}

static void step(struct quipu_imc *imc, struct imc_chip_state *c)
{
	if (c->first)
		first_step(imc, c);
	take_command(imc, c);
	if (!take_settings(imc, c))
		return;
	if (c->running && c->configured) {
		if (!--c->configured)
			set_control(imc, c, QUIPU_NEST_STATUS, QUIPU_NEST_RUNNING);
	} else if (c->running) {
		post_state(imc, c);
	}
	c->state = c->state % STATES + 1;
}

/* After a sleep of more than ten seconds the counts of the frames fall behind; cells do not. */
#define REPLAY_STEPS 20000u

void imc_chip_advance(struct quipu_imc *imc, struct imc_chip_state *c, uint64_t now_ns)
{
	uint64_t steps;

	if (!c->region)
		return;
	if (now_ns < c->next_step) {
		observe(imc, c, now_ns);
		return;
	}
	steps = (now_ns - c->next_step) / IMC_STEP_NS + 1;
	c->next_step += steps * IMC_STEP_NS;
	if (steps > REPLAY_STEPS)
		steps = REPLAY_STEPS;
	/* A command was written when somebody last looked: what happened since then comes after the
	 * step that takes it. */
	if (c->first || control(imc, c, QUIPU_NEST_COMMAND)) {
		step(imc, c);
		steps--;
	}
	observe(imc, c, now_ns);
	while (steps--)
		step(imc, c);
}

/* ---- power on and boot ---- */

void imc_chip_power_on(struct quipu_imc *imc, struct imc_chip_state *c, uint64_t now_ns)
{
	if (!c->region)
		return;
	if (c->memory->data)
		memset(c->memory->data, 0, c->memory->size);
	c->first = true;
	c->running = c->want_init = false;
	c->state = 1;
	c->next_step = now_ns + IMC_STEP_NS;
	observe(imc, c, now_ns);
}

/* Boot: the microcode comes up long before the machine's time begins, and firmware pauses it
 * (sheet 1.6, step 9). */
void imc_chip_boot(struct quipu_imc *imc, struct imc_chip_state *c)
{
	if (!c->region)
		return;
	set_control(imc, c, QUIPU_NEST_AVAILABLE, imc->tree.available);
	for (unsigned i = 0; i < 4; i++)
		step(imc, c);
	set_control(imc, c, QUIPU_NEST_COMMAND, QUIPU_NEST_PAUSE);
	step(imc, c);
	c->state = 1;
}
