#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""machine show tells of the models; machine calibrate finds costs again, and says what is wrong with its file."""
import json
import os
import re
import subprocess

from harness import equal, holds, main, one_line_error, test

RUNS = """# counts of four runs that were made with alu 2, mul 5, mispredict 11
run, alu+load, mul, mispredict, cycles
first, 1000, 10, 5, 2105
second, 500, 400, 1, 3011
third, 2000, 0, 100, 5100
fourth, 100, 100, 100, 1800
"""


@test("show prints the models of caches, TLBs and branches and what a miss loses, as text and as JSON")
def show(work):
    text = work.quipu("machine", "show", "riscv", status=0).out
    for word in ("gshare, 4096", "tree-PLRU", "64 entries", "mispredict 14", "memory 200"):
        holds(word in text, f"no {word!r}\n{text}")
    models = json.loads(work.quipu("machine", "show", "--json", "riscv", status=0).out)["models"]
    equal(models["l1d"], {"sets": 64, "ways": 8, "line": 64, "latency": 0}, "L1D")
    equal(models["second-tlb"]["ways"], 4, "ways of the second TLB")
    equal(models["penalties"]["mispredict"], 14, "penalty")


@test("calibrate finds the costs that runs were made with")
def calibrate(work):
    with open(work.path("runs.csv"), "w", encoding="utf-8") as file:
        file.write(RUNS)
    out = work.quipu("machine", "calibrate", "runs.csv", status=0).out
    for name, cost in (("cost-alu", 2), ("cost-load", 2), ("cost-mul", 5), ("penalty-mispredict", 11)):
        holds(re.search(rf"quipu,{name} = <{cost}>;", out), f"{name} is not {cost}\n{out}")
    holds("worst 0.0%" in out, f"an error where there is none\n{out}")


@test("what a run is called ends no comment and does nothing to the terminal")
def labels(work):
    for name in ("runs.csv", "*/x"):
        if "/" in name:
            os.mkdir(work.path("*"))
        with open(work.path(name), "w", encoding="utf-8") as file:
            file.write("run,cycles,alu\n*/ one,1000,500\n\033[31mtwo,2000,1000\n")
        out = work.quipu("machine", "calibrate", name, status=0).out
        equal(out.count("*/"), out.count("/*"), "ends of comments")
        holds("\033" not in out and "one" in out and "two" in out, repr(out))
        with open(work.path("costs.dts"), "w", encoding="utf-8") as file:
            file.write("/dts-v1/;\n" + out)
        equal(subprocess.run(["dtc", "-q", "-o", "/dev/null", work.path("costs.dts")], check=False).returncode, 0, "dtc")


@test("a file that is none is refused with its line and what to do")
def refused(work):
    for text, word in (("alu, mul\n1, 2\n", "cycles"), ("cycles, nosuch\n1, 2\n", "nosuch"),
                       ("cycles, alu\n1, 2, 3\n", "csv:2"), ("cycles, alu\n-5, 2\n", "-5"), ("", "empty"),
                       ("cycles, alu, mul\n10, 1, 2\n", "more runs"), ("cycles, alu\n5, 1e300\n", "1e300"),
                       ("cycles, alu\n5, 0\n6, 0\n", "no run has any alu"),
                       ("cycles, alu, mul\n10, 1, 2\n20, 2, 4\n30, 3, 6\n", "mul")):
        with open(work.path("bad.csv"), "w", encoding="utf-8") as file:
            file.write(text)
        one_line_error(work.quipu("machine", "calibrate", "bad.csv"), word)
    one_line_error(work.quipu("machine", "calibrate", "/"), "directory")


if __name__ == "__main__":
    main()
