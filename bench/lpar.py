#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""lpar: 1,000,000 addresses through `quipu resolve --map` of a 20,000-symbol map, beside a plain
binary search that reads the same files and prints the same lines, in turns; CPU time, median of
five. Every address is a sequence of RTAS calls in a partition's memory. The outputs must be equal.

	lpar.py BUILD [--quick]
"""
import filecmp
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
QUICK = "--quick" in sys.argv
SYMBOLS, ADDRESSES, RUNS = (2000, 20000, 3) if QUICK else (20000, 1000000, 5)
MOST = 3.0


def make(folder):
    rnd = random.Random(8)
    start, rows = 0xc000000000000000, []
    words = ["enter", "remove", "dispatch", "tce", "page_in", "interrupt"]
    for i in range(SYMBOLS):
        size = 4 * rnd.randrange(8, 300)
        rows.append((start, size))
        start += size + 4 * rnd.choice([0, 0, 3])
    with open(folder + "/map", "w") as f:
        for i, (at, size) in enumerate(rows):
            f.write("%x %x hv_%s_%05d\n" % (at, size, rnd.choice(words), i))
    with open(folder + "/addresses", "w") as f:
        for _ in range(ADDRESSES):
            at, size = rnd.choice(rows)
            f.write("%x\n" % (at + 4 * rnd.randrange(1, size // 4)))


def cpu(command, out):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(out, "wb") as f:
        subprocess.run(command, stdout=f, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        ours = [BUILD + "/src/cli/quipu", "resolve", "--map", folder + "/map", "--from", folder + "/addresses"]
        peer = [BUILD + "/bench/bench-lpar-bsearch", folder + "/map", folder + "/addresses"]
        pairs = [(cpu(ours, folder + "/ours"), cpu(peer, folder + "/peer")) for _ in range(RUNS)]
        if not filecmp.cmp(folder + "/ours", folder + "/peer", shallow=False):
            sys.exit("lpar: quipu resolve and the binary search disagree")
    ratio = statistics.median(a / b for a, b in pairs)
    print("lpar: %d addresses, %d symbols: quipu resolve %.2f s, binary search %.2f s of CPU time: %.2f times "
          "(at most %.0f)" % (ADDRESSES, SYMBOLS, statistics.median(a for a, _ in pairs),
                              statistics.median(b for _, b in pairs), ratio, MOST))
    sys.exit(ratio > MOST and not QUICK)


main()
