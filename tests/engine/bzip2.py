#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bzip2, from Debian's source, on four instruction sets: against the oracle (oracle.py), and with a deadline that goes off and
on while it runs. Engine sheet 19, cases 6, 10 and 33. The source is fetched once through apt-get into a folder of its own
(bench/engine/sources.py); where it cannot be had nothing is tested, and that is said. TAP on standard output."""
import os
import re
import shutil
import subprocess
import sys

from oracle import PLUGIN, SEGRUN, SETS, TOOLS, ENV, compare
from tap import TMP, check, end, skip

sys.path.insert(0, os.environ["BENCH_ENGINE"])
from sources import sources  # noqa: E402  pylint: disable=wrong-import-position


def build(words):
    """{set: program}, of the sets that there is a compiler for; all at once."""
    started = {}
    for isa in SETS:
        compiler = shutil.which(TOOLS[isa] + "gcc")
        if compiler:
            path = f"{TMP}/bzip2.{isa}"
            started[isa] = path, subprocess.Popen([compiler, "-O1", "-static", *words, "-o", path], stderr=subprocess.DEVNULL)
    return {isa: path for isa, (path, process) in started.items() if process.wait() == 0}


def text(name, size):
    """Words that repeat, but not at once."""
    state, words = 1, []
    while sum(map(len, words)) + len(words) < size:
        state = state * 1103515245 + 12345 & 0x7fffffff
        words.append(("quipu", "cord", "knot", "count", "of", "the", "and", "pendant")[state >> 16 & 7] + str(state >> 20 & 31))
    with open(f"{TMP}/{name}", "w", encoding="ascii") as f:
        f.write(" ".join(words)[:size])
    return f"{TMP}/{name}"


def case_33(program):
    much = text("much", 25000)
    for what, words in (("instructions", ["-p", "0:1009"]), ("loads", ["-l", "loads", "-p", "2:101"])):
        out = f"{TMP}/toggled"
        subprocess.run([SEGRUN, "-o", out, "-q", "512", "-t", "10000", *words, PLUGIN, "qemu-riscv64", program, "-1kc", much],
                       env=ENV, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300)
        with open(out, encoding="utf-8") as f:
            said = f.read()
        found = re.search(r"^toggled (\d+) wrong (\d+)$", said, re.MULTILINE)
        reached = re.search(r"^interrupts (\d+)$", said, re.MULTILINE)
        check(f"33: {what}: a deadline goes off and on 10,000 times during bzip2, with another period each time: it is reached "
              "where it should be, and nowhere else", found and found.groups() == ("10000", "0") and int(reached[1]) > 50, said)


def main():
    words = sources(os.environ["BENCH_SOURCES"], ("bzip2",), timeout=60).get("bzip2")
    programs = build(words) if words else {}
    for isa in SETS:
        if isa in programs:
            compare(isa, f"{isa}: bzip2", 97, programs[isa], "-1kc", text("little", 400))
        else:
            skip(f"{isa}: bzip2 against the oracle", "no compiler" if words else "apt-get does not bring its source")
    if "riscv64" in programs:
        case_33(programs["riscv64"])
    else:
        skip("33: during bzip2", "no bzip2 for riscv64")
    end()


main()
