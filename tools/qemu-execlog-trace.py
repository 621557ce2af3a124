#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qemu-execlog-trace.py [LOG] > TRACE: what QEMU's execlog plugin wrote, as a CPU trace for `quipu replay`.

The log is that of `qemu-riscv64 -plugin libexeclog.so -d plugin -D LOG PROGRAM` (or of qemu-ppc64le, qemu-sparc64, or
of system emulation): a line for each instruction with its first four bytes as a little-endian number, then its accesses
without their sizes. The bytes are written as they lay in memory; of x86-64, whose instructions may be longer, no machine
could tell where they end. With --ecall each instruction that calls the system is followed by "syscall" (riscv64). With
--windows a save, restore or return that is logged twice in a row is written once: it was begun again behind a trap of
the register windows (sparc64).
"""
import argparse
import re
import sys

INSN = re.compile(r"^(\d+), 0x([0-9a-f]+), 0x([0-9a-f]+), \"[^\"]*\"(.*)$")
ACCESS = re.compile(r", (load|store), 0x([0-9a-f]+)")
ECALL = 0x00000073


def moves_window(code):
    """Of SPARC V9: op 2, op3 39 (return), 3C (save), 3D (restore)."""
    word = int.from_bytes(code, "big")
    return word >> 30 == 2 and word >> 19 & 0x3f in (0x39, 0x3c, 0x3d)


def convert(lines, out, ecall, windows=False):
    out.write("# quipu-cpu 1\n")
    cpu, last = 0, None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        m = INSN.match(line)
        if not m:
            return f"line {number} is none of execlog: {line.strip()[:60]}"
        if int(m[1]) != cpu:
            cpu = int(m[1])
            out.write(f"cpu {cpu}\n")
        opcode = int(m[3], 16)
        code = opcode.to_bytes(4, "little")
        if windows and last == m[2] and moves_window(code):
            last = None
            continue
        last = m[2]
        accesses = "".join(f" {'w' if kind == 'store' else 'r'} {address}" for kind, address in ACCESS.findall(m[4]))
        out.write(f"{m[2]} x{code.hex()}{accesses}\n")
        if ecall and opcode == ECALL:
            out.write("syscall\n")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?", type=argparse.FileType("r"), default=sys.stdin)
    parser.add_argument("--ecall", action="store_true", help="riscv64: system calls are counted")
    parser.add_argument("--windows", action="store_true", help="sparc64: what a window trap begins again is written once")
    options = parser.parse_args()
    error = convert(options.log, sys.stdout, options.ecall, options.windows)
    if error:
        sys.exit(f"qemu-execlog-trace: {error}")


if __name__ == "__main__":
    main()
