#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""lpar: 1,000,000 addresses through `quipu resolve --map` of a real map of 20,000 symbols, the first of
this host's kernel, beside a plain binary search that prints the same lines, in turns; CPU time, median
of five. Every address is a sequence of RTAS calls in a partition's memory. The outputs must be equal,
also with every third call busy or delayed, whose time is the model's. Where the kernel hides its
addresses the map is a made-up one of as many symbols, and the line says so.

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
DELAYS = ["--inject", "6=9902", "--inject", "3=-2"]


def kernel():
    """Address and name of the host kernel's functions, one name for each address."""
    rows = {}
    with open("/proc/kallsyms") as f:
        for line in f:
            address, kind, name = line.split()[:3]
            if kind in "tTwW" and int(address, 16):
                rows.setdefault(int(address, 16), name)
    return sorted(rows.items())[:SYMBOLS + 1]


def made_up(rnd):
    start, rows = 0xc000000000000000, []
    words = ["enter", "remove", "dispatch", "tce", "page_in", "interrupt"]
    for i in range(SYMBOLS + 1):
        rows.append((start, "hv_%s_%05d" % (rnd.choice(words), i)))
        start += 4 * rnd.randrange(8, 300)
    return rows


def make(folder):
    """A map as System.map has it, the same as perf's for the peer, and addresses. Whose map it is."""
    rnd = random.Random(8)
    rows, whose = kernel(), "of this host's kernel"
    if len(rows) <= SYMBOLS:
        rows, whose = made_up(rnd), "made up"
    sizes = [after[0] - row[0] for row, after in zip(rows, rows[1:])]
    with open(folder + "/map", "w") as f:
        f.writelines("%016x T %s\n" % row for row in rows)
    with open(folder + "/peer.map", "w") as f:
        f.writelines("%x %x %s\n" % (at, size, name) for (at, name), size in zip(rows, sizes))
    with open(folder + "/addresses", "w") as f:
        for _ in range(ADDRESSES):
            i = rnd.randrange(SYMBOLS)
            f.write("%x\n" % (rows[i][0] + (rnd.randrange(1, sizes[i]) if sizes[i] > 1 else 0)))
    return whose


def cpu(command, out):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(out, "wb") as f:
        subprocess.run(command, stdout=f, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    with tempfile.TemporaryDirectory() as folder:
        whose = make(folder)
        ours = [BUILD + "/src/cli/quipu", "resolve", "--map", folder + "/map", "--from", folder + "/addresses"]
        peer = [BUILD + "/bench/bench-lpar-bsearch", folder + "/peer.map", folder + "/addresses"]
        pairs = [(cpu(ours, folder + "/ours"), cpu(peer, folder + "/peer")) for _ in range(RUNS)]
        if not filecmp.cmp(folder + "/ours", folder + "/peer", shallow=False):
            sys.exit("lpar: quipu resolve and the binary search disagree")
        delayed = cpu(ours + DELAYS, folder + "/delayed")
        if not filecmp.cmp(folder + "/delayed", folder + "/peer", shallow=False):
            sys.exit("lpar: names are others when calls are delayed")
    ratio = statistics.median(a / b for a, b in pairs)
    print("lpar: %d addresses, %d symbols (%s): quipu resolve %.2f s, binary search %.2f s of CPU time: %.2f times (at most "
          "%.0f); %.2f s with every third call busy or delayed"
          % (ADDRESSES, SYMBOLS, whose, statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), ratio, MOST,
             delayed))
    sys.exit(ratio > MOST and not QUICK)


main()
