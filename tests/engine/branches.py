#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""quipu record -b on riscv64 and x86-64: every pair of a branch stack is an edge of the disassembly, pairs follow each other
along the program, and the stock perf reads them. TAP on standard output."""
import os
import re
import subprocess

from tap import TMP, check, end

QUIPU, GUESTS = os.environ["QUIPU"], os.environ["QUIPU_GUEST_DIR"]
ENV = {"PATH": "/usr/bin:/bin", "QUIPU_PLUGIN": os.environ["PLUGIN"], "HOME": "/nonexistent"}
DATA = f"{TMP}/perf.data"
SETS = {
    # machine, program, disassembler; transfers that say where to, those that do not, those that never fall through
    "riscv64": ("riscv", f"{GUESTS}/recurse.riscv64", "riscv64-linux-gnu-objdump",
                re.compile(r"^(?:b\w+|j|jal|c\.b\w+|c\.j)\s+(?:\w+,)*(?:0x)?([0-9a-f]+)\b"),
                re.compile(r"^(ret|jr|jalr|c\.jr|c\.jalr|uret|ecall)\b"), re.compile(r"^(j|jal|jr|jalr|ret)\b")),
    "x86-64": ("x86", f"{os.environ['ENGINE_GUESTS']}/recurse.x86_64", "objdump",
               re.compile(r"^(?:(?:bnd|notrack|addr32|data16) )*(?:j\w+|call|loop\w*|xbegin)\s+(?:0x)?([0-9a-f]+)\b"),
               re.compile(r"^(?:(?:bnd|notrack|repz|data16|rex\.W) )*(?:jmp|call|ret)\b"),
               re.compile(r"^(?:(?:bnd|notrack|repz|addr32|data16|rex\.W) )*(?:jmp|call|ret|hlt|ud2)\b")),
}


def run(*command):
    return subprocess.run(command, env=ENV, cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=200)


def disassembly(objdump, program):
    text = run(objdump, "-d", "--no-show-raw-insn", program).stdout
    return {int(m[1], 16): m[2].strip() for m in re.finditer(r"^\s*([0-9a-f]+):\t(.*)$", text, re.MULTILINE)}


def stacks():
    """[[(from, to)], newest first] of every sample."""
    text = run("perf", "script", "-i", DATA, "-F", "brstack").stdout
    return [[tuple(int(x, 16) for x in pair) for pair in re.findall(r"0x([0-9a-f]+)/0x([0-9a-f]+)/", line)]
            for line in text.splitlines() if "/0x" in line]


def edge(insns, pair, to, anywhere):
    source, target = pair
    insn = insns.get(source, "")
    direct = to.match(insn)
    if direct:
        return int(direct[1], 16) == target
    return bool(anywhere.match(insn)) and target in insns


def straight(insns, order, begin, end, leaves):
    """Nothing between two records leaves the line: from where one went to where the next one left."""
    i = order.get(begin)
    while i is not None and i < len(insns):
        pc, insn = insns[i]
        if pc == end:
            return True
        if leaves.match(insn):
            return False
        i += 1
    return False


def stack_of_branches(isa, machine, program, objdump, to, anywhere, leaves):
    out = run(QUIPU, "record", "-b", "-m", machine, "-e", "instructions:u", "-c", "1009", "-o", DATA, "--", program, "16", "20")
    check(f"{isa}: record -b works", out.returncode == 0, out.stderr)
    insns, samples = disassembly(objdump, program), stacks()
    pairs = {pair for stack in samples for pair in stack}
    check(f"{isa}: there are branch stacks of 32 transfers", len(samples) > 20 and max(map(len, samples)) == 32,
          f"{len(samples)} samples")
    bad = [f"{s:#x} {insns.get(s)} -> {t:#x}" for s, t in pairs if not edge(insns, (s, t), to, anywhere)]
    check(f"{isa}: every pair is an edge of the disassembly", len(pairs) > 20 and not bad, "\n".join(bad) or len(pairs))
    listing = sorted(insns.items())
    order = {pc: i for i, (pc, _) in enumerate(listing)}
    gaps = [f"{newer[0]:#x} does not follow {older[1]:#x}" for stack in samples for newer, older in zip(stack, stack[1:])
            if not straight(listing, order, older[1], newer[0], leaves)]
    check(f"{isa}: each transfer follows the one before on a straight line", not gaps, "\n".join(gaps))
    report = run("perf", "report", "-i", DATA, "--stdio", "--branch-history")
    check(f"{isa}: the stock perf shows the branch history of our file",
          report.returncode == 0 and re.search(r"fib|ackermann", report.stdout), report.stderr + report.stdout)
    plain = run("perf", "report", "-i", DATA, "--stdio", "--sort", "symbol_from,symbol_to")
    check(f"{isa}: and its edges by symbol", re.search(r"\] (fib|ackermann)\b.*\] (fib|ackermann)\b", plain.stdout),
          plain.stderr + plain.stdout)


def interrupted(isa, machine, program, objdump, to, anywhere):
    """Signals, longjmps and faults come in between, and are no branches: a direct one goes where it says or is not told. A
    handler's return goes to the system's trampoline, which no file has."""
    out = run(QUIPU, "record", "-b", "-m", machine, "-e", "instructions:u", "-c", "307", "-o", DATA, "--", program, "1")
    insns, pairs = disassembly(objdump, program), {pair for stack in stacks() for pair in stack}
    bad = [f"{s:#x} {insns.get(s)} -> {t:#x}" for s, t in pairs if s in insns and not edge(insns, (s, t), to, anywhere) and
           not (t not in insns and re.match(r"(ret|jr|jalr|repz ret)\b", insns[s]))]
    check(f"{isa}: with signals, longjmps and faults in between every pair is an edge all the same",
          out.returncode == 0 and len(pairs) > 100 and not bad, f"{out.stderr}{len(pairs)}\n" + "\n".join(bad))


def main():
    for isa, row in SETS.items():
        if os.path.exists(row[1]):
            stack_of_branches(isa, *row)
            name = "jumps.riscv64" if isa == "riscv64" else "jumps.x86_64"
            machine, _, objdump, to, anywhere, _ = row
            interrupted(isa, machine, f"{os.environ['ENGINE_GUESTS']}/{name}", objdump, to, anywhere)
    other = run(QUIPU, "record", "-b", "-m", "riscv-u74", "-e", "instructions:u", "-o", DATA, "--", SETS["riscv64"][1], "5", "5")
    check("a machine without the records refuses, and says which has them",
          other.returncode and "quipu,branch-records" in other.stderr, other.stderr)
    end()


main()
