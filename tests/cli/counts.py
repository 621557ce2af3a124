#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Instruction counts are right to the instruction.

Two judges that know nothing of quipu: the disassembly of the hand-countable guest, and QEMU's own execution log with one
instruction per block (exec_log.c).
"""
import os

from harness import Skip, disassembly, equal, guest, holds, main, qemu_count, test

# Guests with fewer than 10^7 instructions: (name, file, arguments, status).
SMALL = [
    ("loop", guest("loop"), [], 0),
    ("true", guest("true"), [], 0),
    ("exit3", guest("exit3"), [], 3),
    ("recurse", guest("recurse"), [], 0),
    ("memory", guest("memory"), ["1", "64"], 0),
    ("realistic", guest("realistic"), ["1", "4"], 0),
    ("sleeper", guest("sleeper"), ["10"], 0),
    ("shapes static", guest("shapes-static"), [], 0),
    ("shapes static-pie", guest("shapes-static-pie"), [], 0),
    ("shapes dynamic", guest("shapes-dynamic"), [], 0),
    ("shapes pie", guest("shapes-pie"), [], 0),
    ("realistic dynamic", guest("realistic-dynamic"), ["1", "4"], 0),
]
LOADER = "/usr/riscv64-linux-gnu/lib/ld-linux-riscv64-lp64d.so.1"


def li(instructions):
    """The number that the first lui+addiw (or a lone addi) of a function loads: its iterations."""
    first, second = instructions[0], instructions[1]
    if first.name == "lui":
        number = int(first.operands.split(",")[1], 0) << 12
        equal(second.name, "addiw", "the instruction after lui")
        return number + int(second.operands.split(",")[2], 0)
    return int(first.operands.split(",")[2], 0)


class Tally:
    """Executions by hand: how often each instruction of a function is executed, summed by kind."""

    def __init__(self):
        self.instructions = self.loads = self.stores = self.branches = self.calls = self.returns = 0

    def add(self, instruction, times):
        name, operands = instruction.name, instruction.operands
        if name == "ecall":
            return  # traps: does not retire
        self.instructions += times
        self.loads += times * (name in ("ld", "lw"))
        self.stores += times * (name in ("sd", "sw"))
        # Every control transfer: conditional, call, return.
        self.branches += times * (name.startswith("b") or name in ("jal", "jalr"))
        self.calls += times * (name == "jal" and operands.split(",")[0] == "ra")
        self.returns += times * (name == "jalr" and operands.startswith("zero,") and "ra" in operands)


def by_hand():
    """The whole of loop.riscv64, from its disassembly.

    A loop_ function has one backward branch. From its target to itself is the body, executed as often as the first li
    says; all before and behind is executed once. leaf runs once per turn of loop_calls; _start is straight.
    """
    code = disassembly(guest("loop"))
    tally = Tally()
    turns_of_calls = 0
    for name in ("loop_simple", "loop_memory", "loop_muldiv", "loop_calls"):
        body = code[name]
        turns = li(body)
        backward = [i for i in body if i.name == "bne" and int(i.operands.split(",")[2], 16) < i.address]
        equal(len(backward), 1, f"backward branches of {name}")
        top, bottom = int(backward[0].operands.split(",")[2], 16), backward[0].address
        for instruction in body:
            tally.add(instruction, turns if top <= instruction.address <= bottom else 1)
        if name == "loop_calls":
            turns_of_calls = turns
    for instruction in code["leaf"]:
        tally.add(instruction, turns_of_calls)
    for instruction in code["_start"]:
        tally.add(instruction, 1)
    return tally


@test("the hand count of the loops is the one in the source's comment")
def hand(work):
    tally = by_hand()
    equal(tally.instructions, 2920024, "instructions")
    equal((tally.loads, tally.stores), (100000, 100000), "loads and stores")
    equal(tally.branches, 1210008, "branches")
    equal((tally.calls, tally.returns), (20004, 20004), "calls and returns")
    equal(qemu_count(work, guest("loop"))[1], tally.instructions, "QEMU's log")


@test("loops: instructions, loads, stores and branches as counted by hand in the disassembly")
def loops(work):
    tally = by_hand()
    for event, want in (("instructions", tally.instructions), ("loads", tally.loads), ("stores", tally.stores),
                        ("branches", tally.branches)):
        equal(work.count(event, guest("loop")), want, event)


@test("loops: the same counts when all are counted at once")
def together(work):
    tally = by_hand()
    rows = work.stat("instructions,cycles,loads,stores,branches", guest("loop"))
    want = {"instructions": tally.instructions, "loads": tally.loads, "stores": tally.stores,
            "branches": tally.branches}
    got = {row["event"].split(":")[0]: int(float(row["counter-value"])) for row in rows}
    for event, number in want.items():
        equal(got.get(event), number, event)


@test("cycles are the declared cost of each instruction class")
def cycles(work):
    # Default costs: 1 each, multiply 3, divide 20. The ecall at the end does not retire, but takes its cycle.
    code = disassembly(guest("loop"))
    turns = li(code["loop_muldiv"])
    extra = sum({"mul": 2, "divu": 19}.get(i.name, 0) for i in code["loop_muldiv"]) * turns
    equal(work.count("cycles", guest("loop")), by_hand().instructions + extra + 1, "cycles")


def whole(name, path, arguments, status):
    @test(f"whole program equals QEMU's own execution log: {name}")
    def one(work):
        if not os.path.exists(path):
            raise Skip(f"{path} is not here")
        code, total, _ = qemu_count(work, path, *arguments)
        equal(code, status, "status under plain QEMU")
        holds(total < 10**7, f"{total} instructions: too many for this test")
        equal(work.count("instructions", path, *arguments, status=status), total, "instructions")
    return one


for row in SMALL:
    whole(*row)
whole("the cross libc's loader, --version", LOADER, ["--version"], 0)


@test("a program that dies by a fault is counted to the fault, its last block at most to its end")
def killed(work):
    # The faulting store is in QEMU's log but does not retire. What of its block lies behind it may be counted: the
    # engine learns only that the block was entered.
    _, total, _ = qemu_count(work, guest("killself"), "segv")
    rows = work.stat("instructions", guest("killself"), "segv", status=128 + 11)
    over = int(float(rows[0]["counter-value"])) - (total - 1)
    code = disassembly(guest("killself"))["main"]
    holds(0 <= over < len(code), f"{over} instructions more than retired")


@test("a program that kills itself by a signal is counted to the instruction")
def terminated(work):
    _, total, _ = qemu_count(work, guest("killself"), "term")
    rows = work.stat("instructions", guest("killself"), "term", status=128 + 15)
    equal(int(float(rows[0]["counter-value"])), total, "instructions")


if __name__ == "__main__":
    main()
