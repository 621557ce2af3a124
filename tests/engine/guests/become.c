/* SPDX-License-Identifier: BSD-2-Clause */
/* become PROGRAM [ARGS]: becomes PROGRAM, looked up in PATH. Ends with 127 when it cannot. */
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	execvp(argv[1], argv + 1);
	return 127;
}
