#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh BUILD: the main job on a real program, in one minute. Counts and samples a riscv64 program on this host, shows
# what the host's own perf can count, and that a second run gives the same bytes.
set -eu

build=${1:?usage: demo.sh BUILD}
quipu=$build/src/cli/quipu
guest=$build/tests/guests/realistic.riscv64
work=$build/demo
mkdir -p "$work"

say() {
	printf '\n\033[1m%s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi
}

# Shows a command as a reader would type it, then runs it.
run() {
	printf '$ %s\n' "$*"
	"$@"
}

say "1. This host: $(uname -m), $(getconf _NPROCESSORS_ONLN) CPUs. What the stock perf counts on it, on /bin/true:"
if command -v perf >/dev/null 2>&1; then
	run perf stat -e instructions,cycles,branches /bin/true || true
else
	echo "(perf is not installed: apt install linux-perf)"
fi

say "2. A real riscv64 program on a modelled machine: tests/guests/realistic.c, a tokenizer, a hash table and a compressor."
run "$quipu" stat -- "$guest"

say "3. Where it spends its instructions."
run "$quipu" record -g -e instructions -c 1000003 -o "$work/perf.data" -- "$guest"
run "$quipu" report --stdio -i "$work/perf.data" | head -n 40

say "4. The same again: counts and samples are identical, byte for byte (process ids and host times aside)."
count() {
	"$quipu" stat -j -e instructions,cycles,loads,stores,branches -- "$guest" 2>&1 >/dev/null |
		grep -v '"class" *: *"host"' >"$1"
}
samples() {
	"$quipu" record -e instructions -c 100003 -o "$work/again.data" -- "$guest" >/dev/null 2>&1
	"$quipu" script -i "$work/again.data" -F time,ip,sym >"$1"
	rm -f "$work/again.data"
}
count "$work/stat.1" && count "$work/stat.2"
run cmp "$work/stat.1" "$work/stat.2" && echo "counts: identical"
samples "$work/samples.1" && samples "$work/samples.2"
run cmp "$work/samples.1" "$work/samples.2" && echo "$(wc -l <"$work/samples.1") samples: identical"

say "5. Yours. The recording is $work/perf.data, and the stock perf reads it:"
echo "    perf report -i $work/perf.data"
echo "Your own C file, in two lines:"
echo "    riscv64-linux-gnu-gcc -O2 -g -static -o mine.riscv64 mine.c"
echo "    $quipu stat -- ./mine.riscv64"
say "Try next: $quipu list, which names every event of the machine; then README.md, for a tour."
