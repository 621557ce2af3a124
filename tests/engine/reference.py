#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reference.py SET: the engine against the oracle (oracle.py) on programs of one instruction set: a sieve and a recursion, the
mixture of the benchmarks in small, calls that are a function's last act. Engine sheet 19, cases 6, 10 and 22; the third
of its programs, bzip2, is bzip2.py's. TAP on standard output."""
import os
import sys

from oracle import compare
from tap import end

PROGRAMS = (("prime", 97, ("12000", "16")), ("mix", 1009, ("1",)), ("tails", 7, ("40",)))


def main():
    isa = sys.argv[1]
    for name, period, args in PROGRAMS:
        path = f"{os.environ['ENGINE_GUESTS']}/{name}.{isa}"
        compare(isa, f"{isa}: {name}", period, path, *args)
    end()


main()
