#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The machine command: what is shipped, what a person sees of it, and what check says of someone else's tree."""
import re
import shutil

from harness import Skip, equal, holds, main, test


@test("machine list names the shipped machines, riscv among them")
def listing(work):
    result = work.quipu("machine", "list", status=0)
    holds(re.search(r"^\s*riscv\b", result.out, re.MULTILINE), f"riscv is not there\n{result}")


@test("machine show riscv: CPUs, caches, PMU, counters, events, and the cost of a multiply")
def show(work):
    result = work.quipu("machine", "show", "riscv", status=0)
    for word in ("cpu", "cache", "pmu", "counter", "instructions", "GHz|MHz", "multiply|mul"):
        holds(re.search(word, result.out, re.IGNORECASE), f"no {word!r}\n{result}")
    holds(re.search(r"\b8\b", result.out), f"the 8 harts are not told\n{result}")


@test("machine check of a tree with unknown nodes: understood, ignored, status 0")
def check(work):
    source = """/dts-v1/;
/ { #address-cells = <2>; #size-cells = <2>; compatible = "someone,board";
	cpus { #address-cells = <1>; #size-cells = <0>; timebase-frequency = <10000000>;
		cpu@0 { device_type = "cpu"; reg = <0>; compatible = "riscv"; riscv,isa = "rv64imafdc_sscofpmf"; mmu-type = "riscv,sv48"; };
	};
	memory@80000000 { device_type = "memory"; reg = <0 0x80000000 0 0x8000000>; };
	pmu { compatible = "riscv,pmu"; riscv,event-to-mhpmcounters = <1 1 0x7fff9 2 2 0x7fffc>; };
	coffee-machine { compatible = "someone,espresso"; };
};
"""
    with open(work.path("board.dts"), "w", encoding="utf-8") as file:
        file.write(source)
    result = work.quipu("machine", "check", "board.dts", status=0)
    text = result.out + result.err
    holds("coffee-machine" in text, f"the node that was ignored is not named\n{result}")
    holds(re.search("ignored", text), f"nothing is said to be ignored\n{result}")


@test("a tree dumped by qemu-system-riscv64 -M virt loads as it is")
def virt(work):
    if not shutil.which("qemu-system-riscv64"):
        raise Skip("qemu-system-riscv64 is not installed")
    work.run("qemu-system-riscv64", "-M", "virt,dumpdtb=virt.dtb", "-nographic", status=0)
    result = work.quipu("machine", "check", "virt.dtb")
    equal(result.status, 0, f"status\n{result}\n")
    shown = work.quipu("machine", "show", "./virt.dtb", status=0)
    holds("pmu" in shown.out.lower(), f"no PMU shown\n{shown}")


@test("doctor tells what this host can do, and why not where it cannot")
def doctor(work):
    result = work.quipu("doctor")
    text = result.out + result.err
    for word in ("qemu-riscv64", "plugin"):
        holds(word in text, f"{word} is not mentioned\n{result}")
    holds(result.status in (0, 1), f"status {result.status}\n{result}")


if __name__ == "__main__":
    main()
