#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The host's own programs on machine x86: unmodified binaries, scripts and their children counted whole, branch stacks."""
import os
import re
import subprocess

from harness import equal, guest, holds, main, need, test, value


@test("a program of the host is counted on machine x86, the same in every run")
def repeats(work):
    need("qemu-x86_64")
    counts = [[value(row) for row in work.stat("instructions,mem-loads,mem-stores,branches,br-call", "/bin/true")]
              for _ in range(2)]
    equal(counts[0], counts[1], "two runs of true")
    holds(all(c > 0 for c in counts[0]), f"something was not counted: {counts[0]}")


@test("a script is its interpreter, and what it starts is counted with it")
def scripts(work):
    need("qemu-x86_64")
    path = work.path("script")
    with open(path, "w") as f:
        f.write("#!/bin/sh\n/bin/true\n/bin/true\n")
    os.chmod(path, 0o755)
    true = work.count("instructions", "/bin/true")
    shell = work.count("instructions", "/bin/sh", "-c", "exit 0")
    whole = work.count("instructions", path)
    # Two children, each a fork of the shell and a true; their paths and environment differ a little from a bare one's.
    holds(whole > shell + 2 * true * 0.9, f"{whole} with children of {true} and a shell of {shell}")
    result = work.quipu("stat", "-e", "instructions", path)
    holds("natively" not in result.err and "uncounted" not in result.err, result.err)


@test("a script whose interpreter is not there: told, by stat and by record, and nothing is written")
def no_interpreter(work):
    path, data = work.path("script"), work.path("no.data")
    with open(path, "w") as f:
        f.write("#!/no/such/interpreter\n")
    os.chmod(path, 0o755)
    for command in (("stat",), ("record", "-o", data)):
        result = work.quipu(*command, "--", path, status=127)
        holds("/no/such/interpreter: No such file" in result.err, result.err)
    holds(not os.path.exists(data), "record left a file")


@test("exec of a command without -m: the machine is that of the programs among its words, and perf counts what stat does")
def without_machine(work):
    need("perf")
    need("qemu-x86_64")
    for program in (["/bin/true"], [guest("recurse"), "10"]):
        err = work.quipu("exec", "--", "perf", "stat", "-x,", "-e", "instructions:u", *program, status=0).err
        counted = next(int(line.split(",")[0]) for line in err.splitlines() if ",instructions" in line)
        equal(counted, work.count("instructions:u", *program, options=["-m", "riscv" if program[1:] else "x86"]), program[0])
    told = work.quipu("exec", "--engine", "--", "/bin/true", status=0)
    holds("instruction set" not in told.err, told)
    for more, name in ([], "riscv64"), (["/bin/true"], "x86_64"), (["/bin/true", guest("recurse")], "riscv64"):
        told = work.quipu("exec", "--", "sh", "-c", "uname -m", *more, status=0).out
        equal(told.strip(), name, f"with the words {more}")


@test("make -j2 of a C project: every process is followed")
def makes(work):
    for program in ("qemu-x86_64", "make", "cc"):
        need(program)
    os.makedirs(work.path("p"))
    for name, text in (("a.c", "int a(void) { return 1; }\n"), ("m.c", "int a(void); int main(void) { return a() - 1; }\n"),
                       ("Makefile", "p: a.o m.o\n\tcc -o $@ $^\n")):
        with open(work.path("p/" + name), "w") as f:
            f.write(text)
    result = work.quipu("stat", "-x,", "-e", "instructions", "make", "-C", work.path("p"), "-j2", status=0)
    count = int(re.search(r"^(\d+),", result.err, re.MULTILINE).group(1))
    holds(count > 20_000_000, f"a compiler has more to do than {count} instructions")
    holds("uncounted" not in result.err and os.access(work.path("p/p"), os.X_OK), result.err)


@test("record -b: every pair of the branch stacks is an edge of the disassembly")
def branch_stacks(work):
    for program in ("qemu-x86_64", "gcc", "perf", "objdump"):
        need(program)
    with open(work.path("b.c"), "w") as f:
        f.write("static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nint main(void) { return f(15) & 1; }\n")
    subprocess.run(["gcc", "-O1", "-static", "-o", work.path("b"), work.path("b.c")], check=True)
    work.record("-b", "-e", "instructions", "-c", "1009", "--", work.path("b"))
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", work.path("b")], stdout=subprocess.PIPE, text=True).stdout
    insns = {int(m.group(1), 16): m.group(2) for m in re.finditer(r"^\s*([0-9a-f]+):\t(.*)$", text, re.MULTILINE)}
    edges = {tuple(int(x, 16) for x in pair) for words in work.samples("brstack") for word in words
             for pair in re.findall(r"0x([0-9a-f]+)/0x([0-9a-f]+)/", word)}
    holds(len(edges) > 20, f"only {len(edges)} edges")
    for source, target in edges:
        insn = insns.get(source, "nothing")
        direct = re.match(r"(?:bnd |notrack )?(?:j\w+|call|loop\w*)\s+([0-9a-f]+)\b", insn)
        if direct:
            equal(target, int(direct.group(1), 16), f"target of {insn} at {source:#x}")
        else:
            holds(re.match(r"(repz |bnd |notrack )?(ret|jmp|call)", insn) and target in insns, f"{insn} at {source:#x}")


main()
