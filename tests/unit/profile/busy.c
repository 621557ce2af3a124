/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs on the host for a moment, mostly in two functions, so that perf has something to record. */
static volatile unsigned long sink;

__attribute__((noinline)) static void spin_long(void)
{
	for (unsigned long i = 0; i < 3000000; i++)
		sink += i;
}

__attribute__((noinline)) static void spin_short(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sink ^= i;
}

int main(void)
{
	for (int i = 0; i < 60; i++) {
		spin_long();
		spin_short();
	}
	return 0;
}
