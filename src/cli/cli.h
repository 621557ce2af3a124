/* SPDX-License-Identifier: BSD-2-Clause */
/* The command: one file per subcommand, one line each in main.c's table. */
#ifndef QUIPU_CLI_CLI_H
#define QUIPU_CLI_CLI_H

#include <stdbool.h>

struct command {
	const char *name;
	const char *summary; /* one line for `quipu help` */
	/* argv[0] is the subcommand; returns the exit status. */
	int (*main)(int argc, char **argv);
};

extern const struct command commands[];

int cmd_list(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_resolve(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_machine(int argc, char **argv);
/* quipu machine plug (@present) and unplug. */
int cmd_machine_plug(const char *pmu, bool present);
int cmd_doctor(int argc, char **argv);

/* One line "quipu: ..." on standard error; returns 2, the exit status of a refused command. */
int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Is standard error a terminal (progress), is standard output one (colours)? */
bool cli_progress(void);
bool cli_colour(void);

/*
 * cli_machine_load - a machine by name (shipped: installed or in the build tree) or by file (.dts,
 * .dtb). One line on standard error and NULL when there is none; notes of kind WRONG are printed
 * too. @verbose prints all notes.
 */
struct quipu_machine;
struct quipu_machine *cli_machine_load(const char *name_or_file, bool verbose);
/*
 * Its pieces.
 * cli_machine_file - the file behind a name (to be freed), or NULL with the message printed.
 * cli_machine_read - read it; what could be said with a note is in @notes, the rest is printed.
 * @name NULL: from the file's name.
 * cli_notes_print - on standard error, those that are WRONG or all.
 */
struct quipu_notes;
char *cli_machine_file(const char *name_or_file);
struct quipu_machine *cli_machine_read(const char *file, const char *name, struct quipu_notes *);
void cli_notes_print(const char *file, const struct quipu_notes *, bool all);
/* Names of the shipped machines, NULL-terminated; free the array and its strings with
 * cli_machine_names_free. */
char **cli_machine_names(void);
void cli_machine_names_free(char **);
/* Is there a shipped machine @name here? */
bool cli_machine_shipped(const char *name);
/* The machine whose instruction set is that of program @elf: riscv, power9 (little-endian), rock
 * (big-endian), x86; NULL for others. */
struct elf_facts;
const char *cli_machine_for_elf(const struct elf_facts *);

#endif
