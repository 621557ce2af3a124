#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples fall exactly where they should: floor(count / period) of them, each at its instruction, skid 0."""
from harness import (disassembly, equal, function_of, functions, guest, holds, main, qemu_every, test)


def ips(work):
    return [int(words[-1], 16) for words in work.samples("ip")]


def check_list(work, period, want, *command):
    work.record("-e", "instructions", "-c", str(period), "--", *command)
    got = ips(work)
    equal(len(got), len(want), f"samples with period {period}")
    wrong = [(i, hex(a), hex(b)) for i, (a, b) in enumerate(zip(got, want)) if a != b]
    holds(not wrong, f"addresses with period {period}: {len(wrong)} differ, (number, got, want) {wrong[:5]}")


@test("loop: floor(count / period) samples, each at the instruction that QEMU's log has in its place")
def loop(work):
    total, pcs = qemu_every(work, (1009, 100000), guest("loop"))
    pcs.update({total: pcs.pop(0), total + 1: []})
    for period, want in pcs.items():
        equal(len(want), total // period, f"QEMU's with period {period}")
        check_list(work, period, want, guest("loop"))


@test("loop: every sample lies in the function whose turn it is, by the disassembly")
def inside(work):
    code = disassembly(guest("loop"))
    work.record("-e", "instructions", "-c", "1000", "--", guest("loop"))
    ranges = {name: (body[0].address, body[-1].address) for name, body in code.items()}
    seen = []
    for pc in ips(work):
        owner = [name for name, (first, last) in ranges.items() if first <= pc <= last]
        equal(len(owner), 1, f"functions that {pc:#x} lies in")
        if owner[0] == "leaf":
            owner[0] = "loop_calls"
        if owner[0] not in seen[-1:]:
            seen.append(owner[0])
    equal(seen, ["loop_simple", "loop_memory", "loop_muldiv", "loop_calls"], "functions in order")


@test("a program with a libc: the same list of addresses as QEMU's log")
def libc(work):
    command = guest("recurse"), "15"
    check_list(work, 1009, qemu_every(work, (1009,), *command)[1][1009], *command)


@test("periods shorter than a block: every 1st, 3rd and 7th instruction, in order")
def short(work):
    pcs = qemu_every(work, (1, 3, 7), guest("true"))[1]
    for period in (1, 3, 7):
        check_list(work, period, pcs[period], guest("true"))


@test("loads, stores and branches are sampled at loads, stores and branches")
def kinds(work):
    code = {i.address: i for body in disassembly(guest("loop")).values() for i in body}
    for event, names in (("loads", ("ld",)), ("stores", ("sd",)), ("branches", ("bne", "jal", "jalr"))):
        work.record("-e", event, "-c", "997", "--", guest("loop"))
        got = ips(work)
        total = work.count(event, guest("loop"))
        equal(len(got), total // 997, f"samples of {event}")
        wrong = [hex(pc) for pc in got if code[pc].name not in names]
        holds(not wrong, f"{event} sampled at other instructions: {wrong[:5]}")


@test("cycles: floor(count / period) samples")
def cycles(work):
    total = work.count("cycles", guest("loop"))
    work.record("-e", "cycles", "-c", "10007", "--", guest("loop"))
    equal(len(ips(work)), total // 10007, "samples")


@test("several events in one file: each has its own samples")
def several(work):
    work.record("-e", "instructions", "-e", "loads", "-c", "10000", "--", guest("loop"))
    names = [words[-1].rstrip(":").split(":")[0] for words in work.samples("event")]
    equal(names.count("instructions"), 292, "samples of instructions")
    equal(names.count("loads"), 10, "samples of loads")


@test("-g: the call stack is the one that the program's text allows, root first main")
def stacks(work):
    work.record("-e", "instructions", "-c", "5003", "-g", "--", guest("recurse"), "18")
    result = work.run("perf", "script", "-i", "perf.data", "-F", "ip,sym", status=0)
    stacks_seen, current = [], []
    for line in result.out.splitlines():
        words = line.split()
        if words:
            current.append(words[1] if len(words) > 1 else "?")
        elif current:
            stacks_seen.append(current)
            current = []
    if current:
        stacks_seen.append(current)
    in_fib = [s for s in stacks_seen if s[0] == "fib"]
    holds(len(in_fib) > 10, f"only {len(in_fib)} of {len(stacks_seen)} samples in fib")
    for stack in in_fib:
        depth = stack.index("main")
        holds(set(stack[:depth]) == {"fib"}, f"between fib and main: {stack}")
        holds(depth <= 18, f"deeper than fib(18) can be: {depth}")
        holds("_start" in stack[depth:], f"the stack does not begin at _start: {stack}")


def shape(name):
    @test(f"samples of {name} lie in shape_work, wherever it was loaded")
    def one(work):
        work.record("-e", "instructions", "-c", "1009", "--", guest(name))
        result = work.run("perf", "script", "-i", "perf.data", "-F", "ip,sym", status=0)
        symbols = [line.split()[1] for line in result.out.splitlines() if len(line.split()) > 1]
        code = [i for body in [disassembly(guest(name))["shape_work"]] for i in body]
        turns = [i for i in code if i.name.startswith("b") or i.name.startswith("c.b")]
        holds(turns, "shape_work has no loop")
        share = symbols.count("shape_work")
        # 300000 turns of at least 3 instructions against a start-up of some ten or hundred thousand.
        holds(share >= 300000 * 3 // 1009 - 3, f"{share} of {len(symbols)} samples in shape_work")
    return one


for shape_name in ("shapes-static", "shapes-dynamic", "shapes-pie", "shapes-static-pie"):
    shape(shape_name)


@test("every sample of a static program lies in a function of its file")
def known(work):
    rows = functions(guest("realistic"))
    work.record("-e", "instructions", "-c", "5003", "--", guest("realistic"), "1", "16")
    unknown = [hex(pc) for pc in ips(work) if not function_of(rows, pc)]
    # Some assembly of the libc's start has no size.
    holds(len(unknown) <= 1, f"in no function: {unknown[:8]}")


if __name__ == "__main__":
    main()
