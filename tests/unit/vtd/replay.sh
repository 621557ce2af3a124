#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# replay.sh QUIPU CONVERTER LOG: a log of QEMU becomes a trace, and the trace on a unit counts what was asked of it.
# Five accesses; the first of a page misses, the third access hits. The page that moved is invalidated by the log itself,
# with the domain of that machine (256), which is also the replay's first: it misses again. The fault misses.
set -eu
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
echo 1..3
python3 "$2" "$3" > "$trace"
grep -q '^dma 2000 0x18 - U R 0xffffd000 512$' "$trace" && grep -q '^dma 30000 0x18 - U W 0xdeadb000 64$' "$trace" &&
	[ "$(grep -c '^map ' "$trace")" = 3 ] && [ "$(grep -c '^inv ' "$trace")" = 1 ] || printf 'not '
echo "ok 1 - the log of QEMU becomes a trace"
out=$("$1" replay -m vtd "$trace")
echo "$out" | grep -Eq '^ +5 +iommu_requests' && echo "$out" | grep -Eq '^ +5 +iotlb_lookup' &&
	echo "$out" | grep -Eq '^ +1 +iotlb_hit' && echo "$out" | grep -q 'of which 1 met a fault' || printf 'not '
echo "ok 2 - its replay counts what was asked"
printf '# quipu-dma 1\ndma 1 2 - U R\n' | "$1" replay - 2>&1 | grep -q 'line 2: not a record: dma TIME' || printf 'not '
echo "ok 3 - a wrong line is named"
