/* SPDX-License-Identifier: BSD-2-Clause */
/* How QEMU takes the plugin: the interface's version, and the install call with its arguments.
 * Engine sheet 3, 12.
 *
 * QEMU may load this file twice, by two names; then the library is one, and has two ids. The first
 * time (`blocks=on`) only the id is kept, for translation: select.c says why.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"
#include "plugin_abi.h"

PLUGIN_EXPORT int qemu_plugin_version = 1;

/* One binary for both versions of the interface: the program that loads us is looked at before it
 * looks at us. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_scoreboard_new)
		qemu_plugin_version = 4;
}

static void probe(const qemu_info_t *info)
{
	printf("quipu-qemu %d %s\n", qemu_plugin_version, info->target_name);
	fflush(stdout);
	_exit(0);
}

static int refuse(const char *what, const char *name)
{
	fprintf(stderr, "quipu: engine: %s%s\n", what, name);
	return -1;
}

static const char *value_of(const char *arg, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(arg, name, n) && arg[n] == '=' ? arg + n + 1 : NULL;
}

static qemu_plugin_id_t blocks;
static bool have_blocks;

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	const char *seg = NULL;

	for (int i = 0; i < argc; i++) {
		if (value_of(argv[i], "probe"))
			probe(info);
		if (value_of(argv[i], "blocks")) {
			blocks = id;
			have_blocks = true;
			return 0;
		}
		if (value_of(argv[i], "seg"))
			seg = value_of(argv[i], "seg");
	}
	if (!seg)
		return refuse("started without its segment; `quipu stat` starts it as it must be",
			      "");
	if (info->system_emulation)
		return refuse("only QEMU user mode is supported, not system emulation of ",
			      info->target_name);
	engine.isa = isa_find(info->target_name);
	if (!engine.isa)
		return refuse("no decoder for instruction set ", info->target_name);
	if (process_open(seg))
		return -1;
	process_callbacks(id);
	syscall_callbacks(id);
	if (engine.slot < 0) /* there was no room for it: it runs as without us */
		return 0;
	if (have_blocks)
		select_switches(blocks);
	engine_callbacks(have_blocks ? blocks : id);
	return 0;
}
