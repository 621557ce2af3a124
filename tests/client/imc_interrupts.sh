#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# imc_interrupts.sh PROGRAM: the table of Linux's imc.rst, "Benefits of using IMC trace-mode": the row PMI before, after
# perf top, after perf top with trace_imc. Run it under `quipu exec -m power9 --`; PROGRAM keeps a CPU busy for long.
row() { grep PMI /proc/interrupts; }

# perf top ends with its screen: as many updates as it takes for samples to have come.
top() {
	timeout -s INT 60 perf top --stdio -d 1 "$@" </dev/null >top.out 2>top.err &
	top=$!
	tries=0
	until grep -aEq '^ *[0-9]+\.[0-9]+% ' top.out || [ $tries -ge 400 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	# timeout hands the signal on to perf.
	kill -INT $top 2>/dev/null
	wait $top
}

"$1" 4096 1000000 >/dev/null &
program=$!
row
top
row
top -e trace_imc/trace_cycles/
cp top.out trace.out
row
kill $program
wait $program 2>/dev/null
exit 0
