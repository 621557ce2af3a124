#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The top five symbols: quipu report, perf report on the same file, and the exact counts say the same."""
import re
from collections import Counter

from harness import function_of, functions, equal, guest, holds, main, need, qemu_count, test


def exact(work, *command):
    """Retired instructions per function, from QEMU's log and the symbol table; a function is the set of its names."""
    rows = functions(command[0])
    _, total, by_pc = qemu_count(work, *command)
    counts = Counter()
    for pc, times in by_pc.items():
        counts[frozenset(function_of(rows, pc))] += times
    return total, counts


def shares(text):
    """[(percent, symbol)] of a --stdio report, in its order: '  12.34%  ... [.] symbol'."""
    found = []
    for line in text.splitlines():
        words = re.match(r"^\s*([0-9.]+)%.*\[\.\]\s+(\S+)", line)
        if words:
            found.append((float(words.group(1)), words.group(2)))
    return found


def compare(work, period, *command):
    total, counts = exact(work, *command)
    work.record("-e", "instructions", "-c", str(period), "--", *command)
    ours = shares(work.quipu("report", "--stdio", "-i", "perf.data", status=0).out)
    perf = shares(work.run("perf", "report", "--stdio", "-i", "perf.data", "--sort", "comm,dso,symbol", status=0).out)
    top = counts.most_common(6)
    holds(top[4][1] - top[5][1] > total / 500, "the fifth and the sixth are too close for a sample to tell")
    equal([name for _, name in ours[:5]], [name for _, name in perf[:5]], "top five of quipu report and perf report")
    for (percent, name), (theirs, _), (names, count) in zip(ours[:5], perf[:5], top):
        holds(name in names, f"{name} in the report where {sorted(names)} is exact; all: {ours[:6]}, {top}")
        holds(abs(percent - theirs) < 0.011, f"{name}: quipu {percent} %, perf {theirs} %")
        share = 100 * count / total
        holds(abs(percent - share) < 0.5, f"{name}: sampled {percent} %, exact {share:.2f} %")


@test("loop: the top five agree")
def loop(work):
    compare(work, 997, guest("loop"))


@test("realistic: the top five agree")
def realistic(work):
    compare(work, 23, guest("realistic"), "1", "40")  # the fourth and fifth are close


@test("with call chains: main and its callees have children that sum up")
def children(work):
    work.record("-e", "instructions", "-c", "1009", "-g", "--", guest("realistic"), "1", "32")
    result = work.quipu("report", "--stdio", "-i", "perf.data", status=0)
    lines = {}
    for line in result.out.splitlines():
        words = re.match(r"^\s*([0-9.]+)%\s+([0-9.]+)%.*\[\.\]\s+(\S+)", line)
        if words:
            lines.setdefault(words.group(3), (float(words.group(1)), float(words.group(2))))
    for name in ("main", "serve", "pack", "find_match"):
        holds(name in lines, f"no line for {name}\n{result}")
    for outer, inner in (("main", "serve"), ("serve", "pack"), ("pack", "find_match")):
        holds(lines[outer][0] >= lines[inner][0], f"children of {outer} {lines[outer]} < {inner} {lines[inner]}")
    holds(lines["find_match"][1] > 1, "find_match has no time of its own")


@test("quipu script writes what perf script writes, and stackcollapse's rules fold every stack of it")
def script(work):
    need("perf")
    work.record("-e", "instructions,cycles", "-c", "1009", "-g", "--", guest("recurse"), "15")
    ours = work.quipu("script", status=0).out
    theirs = work.run("perf", "script", "--no-inline", "-i", "perf.data", status=0).out.splitlines()
    equal(len(ours.splitlines()), len(theirs), "lines of quipu script and of perf script")
    for mine, line in zip(ours.splitlines(), theirs):
        holds(mine == line or "$x" in line, f"quipu script: {mine!r}, perf script: {line!r}")  # perf knows no mapping symbols
    folded, stack, name = Counter(), [], None
    for line in ours.splitlines():
        head = re.match(r"(\S.+?)\s+(\d+)(?:/\d+)*\s.*?(\d+\.\d+):\s+(\d+)\s+(\S+):", line)
        frame = re.match(r"\s*[0-9a-f]+\s+(.+) \((.*)\)$", line)
        if head:
            name = head.group(1)
        elif frame:
            stack.append(re.sub(r"\+0x[0-9a-f]+$", "", frame.group(1)))
        else:
            equal(line, "", "a line that is neither a head nor a frame")
            folded[";".join([name] + stack[::-1])] += 1
            stack = []
    holds(all("_start" in fold or fold.count(";") >= 126 for fold in folded) and sum(folded.values()) >= 100, f"{sum(folded.values())} stacks, {min(folded)}")
    holds(any(re.search(r";main;(fib;)+fib$", fold) for fold in folded), f"no stack of fib in {list(folded)[:5]}")


if __name__ == "__main__":
    main()
