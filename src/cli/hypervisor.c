/* SPDX-License-Identifier: BSD-2-Clause */
/* See hypervisor.h. Files are read here; the firmware that answers is the LPAR room's. */
#include "cli/hypervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "client/protocol.h"
#include "client/rtas_door.h"
#include "client/rtas_linux.h"

#define MAP_MOST (256u << 20)
#define NOT_NAMED                                                                                              \
	"this file has no names of hypervisor code (perf wrote it, or nothing could be resolved); run inside " \
	"`quipu exec -m M`, or name its machine with -m or a symbol file with --map"

/* ---- a symbol file ---- */

static char *read_all(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rbe");
	char *bytes = NULL, *more;
	size_t room = 0, n = 1;
	struct stat st;

	*len = 0;
	if (f && !fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		n = 0;
	}
	while (f && n) {
		if (*len == room) {
			room = room ? 2 * room : 1u << 16;
			more = room > MAP_MOST ? NULL : realloc(bytes, room);
			if (!more) {
				errno = room > MAP_MOST ? EFBIG : ENOMEM;
				break;
			}
			bytes = more;
		}
		errno = 0;
		n = fread(bytes + *len, 1, room - *len, f);
		*len += n;
	}
	if (!f || errno) {
		cli_error("%s: %s", path, strerror(errno));
		free(bytes);
		bytes = NULL;
	}
	if (f)
		fclose(f);
	return bytes;
}

static int open_map(struct hv *hv, const struct hv_options *o)
{
	struct quipu_hvmap_options mo = {.format = o->format, .file = o->map};
	struct quipu_hvmap_error err;
	struct quipu_hvmap *map;
	size_t len;
	char *bytes, *end = NULL;
	int rc;

	if (o->base) {
		mo.has_base = true;
		mo.base = strtoull(o->base, &end, 0);
		if (!*o->base || *end)
			return cli_error("--base %s is no address", o->base);
	}
	bytes = read_all(o->map, &len);
	if (!bytes)
		return 2;
	rc = quipu_hvmap_read(&map, bytes, len, &mo, &err);
	free(bytes);
	if (rc && err.line)
		return cli_error("%s: line %u: %s", o->map, err.line, err.text);
	if (rc)
		return cli_error("%s: %s", o->map, err.text);
	hv->lpar = quipu_lpar_new_map(map);
	if (!hv->lpar) {
		quipu_hvmap_put(map);
		return cli_error("out of memory");
	}
	snprintf(hv->where, sizeof(hv->where), "map %.100s", o->map);
	return 0;
}

/* ---- a machine ---- */

static int no_hypervisor(const struct quipu_machine *m)
{
	cli_error(
		"machine %s has no LPAR option: no hypervisor runs under it%s, so RTAS call " QUIPU_LPAR_PERFTOOLS
		" is absent (LoPAR R1-1) and no sample of it can be the hypervisor's; try -m lpar, or --map with a "
		"symbol file",
		m->name,
		quipu_machine_find(m, "quipu,power9-pmu") >= 0 ||
				quipu_machine_find(m, "ibm,opal-in-memory-counters") >= 0
			? " (bare metal, OPAL firmware)"
			: "");
	return HV_EXIT_REFUSED;
}

static int open_firmware(struct hv *hv, const struct quipu_machine *m)
{
	struct quipu_notes notes = {0};

	if (quipu_machine_find(m, "quipu,hypervisor") < 0)
		return no_hypervisor(m);
	hv->lpar = quipu_lpar_new(m, &notes);
	for (size_t i = 0; !hv->lpar && i < notes.n; i++)
		if (notes.items[i].kind == QUIPU_NOTE_WRONG)
			cli_error("machine %s: %s: %s", m->name, notes.items[i].path,
				  notes.items[i].text);
	quipu_notes_free(&notes);
	return hv->lpar ? 0 : 2;
}

static uint64_t model_ms(void *arg)
{
	return ((struct hv *)arg)->now;
}

/* Time of a model passes when somebody waits for it. */
static void model_sleep(void *arg, uint64_t ms)
{
	((struct hv *)arg)->now += ms;
}

static uint64_t model_ns(void *arg)
{
	return ((struct hv *)arg)->now * 1000000;
}

static int no_partition(const struct hv *hv, unsigned partition)
{
	char have[128] = "";
	size_t n = quipu_lpar_partitions(hv->lpar);

	for (size_t i = 0, len = 0; i < n && len < sizeof(have); i++) {
		struct quipu_partition_info info;

		quipu_partition_info(quipu_lpar_partition_at(hv->lpar, i), &info);
		len += (size_t)snprintf(have + len, sizeof(have) - len, "%s%u", i ? ", " : "",
					info.number);
	}
	return cli_error("%s has no partition %u; -p names one of: %s",
			 hv->machine ? hv->machine->name : "the map", partition, have);
}

static int open_resolver(struct hv *hv, const struct hv_options *o)
{
	struct quipu_hvsym_opts so = o->sym;
	int rc = hv->remote ? 0 : quipu_rtas_model(&hv->t, hv->lpar, o->partition);

	if (rc == -ENOENT)
		return no_partition(hv, o->partition);
	if (!hv->remote && !o->wait && !so.clock) {
		hv->clock = (struct quipu_hvsym_clock){model_ms, model_sleep, hv};
		quipu_lpar_set_clock(hv->lpar, model_ns, hv);
		so.clock = &hv->clock;
	}
	if (!rc)
		rc = quipu_hvsym_open(&hv->sym, hv->remote ? hv->remote : hv->t, &so);
	if (rc == -EINVAL)
		return cli_error("a buffer is 8 bytes to 64 KiB");
	return rc ? cli_error("%s", strerror(-rc)) : 0;
}

static void name_place(struct hv *hv, const char *machine, unsigned partition, uint64_t epoch)
{
	snprintf(hv->where, sizeof(hv->where), "machine %.60s partition %u epoch %" PRIu64, machine,
		 partition, epoch);
}

static long around(void)
{
	const char *pid = getenv(GATE_ENV);

	return pid ? strtol(pid, NULL, 10) : 0;
}

bool hv_is_inside(void)
{
	struct quipu_rtas_transport *t;
	long pid = around();

	int rc = pid ? rtas_connect(&t, pid, 0, false) : -ENOENT;

	if (!rc)
		rtas_disconnect(t);
	return rc != -ENOENT;
}

static int open_around(struct hv *hv, const struct hv_options *o)
{
	int rc = rtas_connect(&hv->remote, around(), o->partition, !o->no_lock);

	name_place(hv, "of this quipu exec", o->partition, 0);
	if (rc == -EINVAL)
		return cli_error("the machine of this quipu exec has no partition %u",
				 o->partition);
	if (rc == -ENOENT) {
		cli_error(
			"the machine of this quipu exec has no hypervisor, so RTAS call " QUIPU_LPAR_PERFTOOLS
			" is absent (LoPAR R1-1); `quipu exec -m lpar` has one");
		return HV_EXIT_REFUSED;
	}
	if (rc) {
		cli_error("the machine of this quipu exec does not answer: %s", strerror(-rc));
		return HV_EXIT_TRANSPORT;
	}
	return open_resolver(hv, o);
}

static int open_host(struct hv *hv, const struct hv_options *o)
{
	int rc = rtas_linux_open(&hv->host, NULL);

	snprintf(hv->where, sizeof(hv->where), "this host");
	hv->remote = hv->host;
	if (!rc)
		return open_resolver(hv, o);
	cli_error("--transport linux: %s", rtas_linux_strerror(rc));
	return rc == -ENOSYS || rc == -ENODEV || rc == -EACCES ? HV_EXIT_REFUSED
							       : HV_EXIT_TRANSPORT;
}

/* A transport that was asked for and cannot be. */
static int check_transport(const struct hv_options *o)
{
	if (o->transport != HV_MACHINE && o->transport != HV_LINUX)
		return 0;
	if (o->map || o->machine)
		return cli_error("-m and --map are asked in this process: --transport model");
	if (o->transport == HV_MACHINE && !around())
		return cli_error(
			"--transport machine: there is no quipu exec around; start one with "
			"`quipu exec -m lpar -- quipu resolve ...`");
	return 0;
}

int hv_open(struct hv *hv, const struct hv_options *o)
{
	int rc = check_transport(o);

	memset(hv, 0, sizeof(*hv));
	if (rc)
		return rc;
	if (o->transport == HV_LINUX)
		return open_host(hv, o);
	if (!o->map && !o->machine && o->transport != HV_MODEL && around())
		return open_around(hv, o);
	if (o->map) {
		rc = open_map(hv, o);
	} else {
		hv->machine = cli_machine_load(o->machine ? o->machine : "lpar", false);
		rc = hv->machine ? open_firmware(hv, hv->machine) : 2;
		if (!rc)
			name_place(hv, hv->machine->name, o->partition, quipu_lpar_epoch(hv->lpar));
	}
	return rc ? rc : open_resolver(hv, o);
}

/* The partition whose processor CPU 0 is: programs start there. */
int hv_of_machine(struct hv *hv, const struct quipu_machine *m)
{
	struct hv_options o = {0};
	struct quipu_partition_info info;
	int rc;

	memset(hv, 0, sizeof(*hv));
	rc = open_firmware(hv, m);
	if (rc)
		return rc;
	quipu_partition_info(quipu_lpar_partition_at(hv->lpar, 0), &info);
	o.partition = info.number;
	name_place(hv, m->name, o.partition, quipu_lpar_epoch(hv->lpar));
	return open_resolver(hv, &o);
}

void hv_close(struct hv *hv)
{
	quipu_hvsym_close(hv->sym);
	quipu_rtas_model_free(hv->t);
	if (hv->host)
		rtas_linux_close(hv->host);
	else
		rtas_disconnect(hv->remote);
	quipu_lpar_free(hv->lpar);
	quipu_machine_free(hv->machine);
	memset(hv, 0, sizeof(*hv));
}

/* ---- names for recordings ---- */

char *hv_text(struct hv *hv, const uint64_t *addresses, size_t n)
{
	struct quipu_hvsym_result *results = calloc(n ? n : 1, sizeof(*results));
	const char *error = NULL;
	char *text;

	if (!results)
		return NULL;
	quipu_hvsym_resolve_many(hv->sym, addresses, n, results, NULL);
	for (size_t i = 0; i < n && !error; i++)
		if (results[i].error)
			error = quipu_hvsym_strerror(results[i].error);
	text = profile_hypervisor_text(results, n, hv->where, error);
	free(results);
	return text;
}

static int name_addresses(struct profile *p, const struct hv_options *o, const uint64_t *addresses,
			  size_t n)
{
	struct hv hv;
	char *text;
	int rc = hv_open(&hv, o);

	if (rc) {
		hv_close(&hv);
		return rc;
	}
	text = hv_text(&hv, addresses, n);
	hv_close(&hv);
	profile_hypervisor_free(p->hypervisor);
	p->hypervisor = text ? profile_hypervisor_read(text, strlen(text)) : NULL;
	profile_maps_hypervisor(p->maps, p->hypervisor);
	free(text);
	return p->hypervisor ? 0 : cli_error("out of memory");
}

int hv_profile(struct profile *p, const struct hv_options *o)
{
	uint64_t *addresses, *counts;
	size_t n;
	int rc = 0;

	if (!o->machine && !o->map && (p->hypervisor || !around()))
		return 0;
	if (profile_hypervisor_addresses(p->data, &addresses, &counts, &n))
		return cli_error("out of memory");
	if (n && (o->machine || o->map || hv_is_inside()))
		rc = name_addresses(p, o, addresses, n);
	free(addresses);
	free(counts);
	return rc;
}

char *hv_footer(const struct profile *p)
{
	const struct profile_hypervisor *h = p->hypervisor;
	uint64_t *addresses, *counts;
	size_t n, unnamed = 0;
	char *text = NULL;

	if (profile_hypervisor_addresses(p->data, &addresses, &counts, &n))
		return NULL;
	for (size_t i = 0; i < n; i++)
		unnamed += !h || !profile_hypervisor_find(h, addresses[i]);
	free(addresses);
	free(counts);
	if (unnamed && asprintf(&text, "%zu hypervisor addresses have no name: %s", unnamed,
				h && profile_hypervisor_error(h) ? profile_hypervisor_error(h)
								 : NOT_NAMED) < 0)
		return NULL;
	return text;
}
