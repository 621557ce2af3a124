/* SPDX-License-Identifier: BSD-2-Clause */
/* true: does nothing, successfully. What is left is the start-up of a process. */
int main(void)
{
	return 0;
}
