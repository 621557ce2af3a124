#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""quipu machine calibrate, from the first run to the last: a board (a machine whose costs are others than those shipped) runs
real programs, quipu stat counts them on the shipped machine, calibrate finds the board's costs, and the piece of device tree
that it prints, added to the shipped tree, takes the board's cycles. TAP on standard output."""
import os
import re
import subprocess

from tap import TMP, check, end

QUIPU, TREE = os.environ["QUIPU"], os.environ["U74_DTS"]
FOLDERS = (os.environ["ENGINE_GUESTS"], os.environ["QUIPU_GUEST_DIR"])
ENV = {"PATH": "/usr/bin:/bin", "QUIPU_PLUGIN": os.environ["PLUGIN"]}
COSTS = {"mul": 7, "div": 33, "load": 3, "branch": 2, "amo+lr+sc": 11}
EVENTS = {"mul": "integer_multiplication_retired", "div": "integer_division_retired", "load": "integer_load_retired",
          "branch": "conditional_branch_retired", "amo+lr+sc": "atomic_memory_retired"}
REST = "alu+store+jump+call+ijump+icall+ret+csr+fence"  # one price for all others
PROGRAMS = (("prime", "3000", "9"), ("tails", "20"), ("recurse", "4", "99"), ("memory", "1", "8"), ("recurse", "8", "10"),
            ("shapes-static",), ("true",))


def quipu(*words):
    return subprocess.run([QUIPU, *words], env=ENV, cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=200)


def tree(name, *pieces):
    with open(TREE, encoding="utf-8") as f, open(f"{TMP}/{name}.dts", "w", encoding="utf-8") as to:
        to.write("\n".join((f.read(), *pieces)))
    return f"{TMP}/{name}.dts"


def stat(machine, program, *events):
    folder = next(f for f in FOLDERS if os.path.exists(f"{f}/{program[0]}.riscv64"))
    out = quipu("stat", "-m", machine, "-x,", "-e", ",".join(events), "--", f"{folder}/{program[0]}.riscv64", *program[1:])
    return [int(m) for m in re.findall(r"^(\d+),", out.stderr, re.MULTILINE)]


def main():
    costs = "".join(f"quipu,cost-{name} = <{cost}>; " for group, cost in COSTS.items() for name in group.split("+"))
    board, shipped = tree("board", f"/ {{ cpus {{ {costs}}}; }};"), tree("shipped")
    names = [f"cpu/{EVENTS[name]}/" for name in COSTS]
    cycles, lines = {}, [f"# measured on a board\nrun, cycles, {', '.join(COSTS)}, {REST}"]
    for program in PROGRAMS:
        cycles[program] = stat(board, program, "cycles")
        # Two counters count beside cycles and instructions.
        counts = stat(shipped, program, "instructions", *names[:2]) + stat(shipped, program, *names[2:4]) + \
            stat(shipped, program, names[4])
        lines.append(f"{program[0]}, {', '.join(map(str, cycles[program] + counts[1:]))}, {counts[0] - sum(counts[1:])}")
    with open(f"{TMP}/runs.csv", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    out = quipu("machine", "calibrate", "runs.csv")
    found = {name: int(cost) for name, cost in re.findall(r"quipu,cost-(\w+) = <(\d+)>;", out.stdout)}
    check("of seven programs calibrate finds the costs of the board that ran them", out.returncode == 0 and
          all(found.get(name) == cost for group, cost in COSTS.items() for name in group.split("+")) and found.get("alu") == found.get("store") == 1,
          f"{out.stdout}{out.stderr}" + "\n".join(lines))
    check("and tells each run's error, none of them worth a word", re.search(r"mean error 0\.\d%, worst 0\.\d%", out.stdout),
          out.stdout)
    calibrated = tree("calibrated", out.stdout)
    again = {program: stat(calibrated, program, "cycles") for program in PROGRAMS}
    before = {program: stat(shipped, program, "cycles") for program in PROGRAMS}
    check("with what it printed added to its tree, the machine takes the board's cycles",
          all(abs(again[p][0] - c[0]) <= c[0] // 200 for p, c in cycles.items()) and before != cycles, f"{cycles}\n{again}")
    out = quipu("machine", "check", calibrated)
    check("and the tree is one that machine check has nothing against", out.returncode == 0, out.stdout + out.stderr)
    with open(f"{TMP}/few.csv", "w", encoding="utf-8") as f:
        f.write("\n".join(lines[:4]) + "\n")
    out = quipu("machine", "calibrate", "few.csv")
    check("three of the runs are refused: they cannot tell six prices apart", out.returncode == 2 and
          "3 runs cannot tell 6 prices apart" in out.stderr, out.stderr)
    with open(f"{TMP}/cut.csv", "w", encoding="utf-8") as f:
        f.write("\n".join(lines)[:-12])
    out = quipu("machine", "calibrate", "cut.csv")
    check("a file that was cut off is refused with its line", out.returncode == 2 and f"cut.csv:{len(PROGRAMS) + 2}: " in
          out.stderr, out.stderr)
    end()


main()
