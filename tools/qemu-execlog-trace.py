#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qemu-execlog-trace.py [LOG] > TRACE: what QEMU's execlog plugin wrote, as a CPU trace for `quipu replay`.

The log is that of `qemu-riscv64 -plugin libexeclog.so -d plugin -D LOG PROGRAM` (or of qemu-ppc64le, qemu-sparc64, or
of system emulation): a line for each instruction with its first four bytes as a little-endian number, then its accesses
without their sizes. The bytes are written as they lay in memory; of x86-64, whose instructions may be longer, no machine
could tell where they end. With --ecall each instruction that calls the system is followed by "syscall" (riscv64).
"""
import argparse
import re
import sys

INSN = re.compile(r"^(\d+), 0x([0-9a-f]+), 0x([0-9a-f]+), \"[^\"]*\"(.*)$")
ACCESS = re.compile(r", (load|store), 0x([0-9a-f]+)")
ECALL = 0x00000073


def convert(lines, out, ecall):
    out.write("# quipu-cpu 1\n")
    cpu = 0
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
        accesses = "".join(f" {'w' if kind == 'store' else 'r'} {address}" for kind, address in ACCESS.findall(m[4]))
        out.write(f"{m[2]} x{opcode.to_bytes(4, 'little').hex()}{accesses}\n")
        if ecall and opcode == ECALL:
            out.write("syscall\n")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?", type=argparse.FileType("r"), default=sys.stdin)
    parser.add_argument("--ecall", action="store_true", help="riscv64: system calls are counted")
    options = parser.parse_args()
    error = convert(options.log, sys.stdout, options.ecall)
    if error:
        sys.exit(f"qemu-execlog-trace: {error}")


if __name__ == "__main__":
    main()
