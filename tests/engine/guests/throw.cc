// SPDX-License-Identifier: BSD-2-Clause
// throw N: N exceptions, each through 50 frames.
#include <cstdlib>

__attribute__((noinline)) static long deep(int n)
{
	if (!n)
		throw 1L;
	long below = deep(n - 1);

	__asm__ volatile("" : "+r"(below)); // no loop may be made of it
	return below + 1;
}

__attribute__((noinline)) static long once()
{
	try {
		return deep(50);
	} catch (long x) {
		return x;
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? std::atol(argv[1]) : 0, sum = 0;

	for (long i = 0; i < n; i++)
		sum += once();
	return sum != n;
}
