#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""list, machine and doctor as text and as JSON: what a script reads, what a person is told to do."""
import json
import os
import re
import shutil

from harness import Skip, environment, equal, guest, holds, main, need, one_line_error, test

TREE = """/dts-v1/;
/ { #address-cells = <2>; #size-cells = <2>; model = "a board"; %s
	cpus { #address-cells = <1>; #size-cells = <0>; %s
		cpu@0 { device_type = "cpu"; reg = <0>; compatible = "riscv"; riscv,isa = "rv64imafdc"; %s };
	};
};
"""


def tree(work, name, root="", cpus="", cpu=""):
    with open(work.path(name), "w", encoding="utf-8") as file:
        file.write(TREE % (root, cpus, cpu))
    return name


@test("machine show riscv: the caches, the costs and the counters, each on its line")
def show(work):
    text = work.quipu("machine", "show", "riscv", status=0).out
    for line in ("  8 of riscv64 at 1 GHz; kernel tick 250 Hz; time counter 10 MHz",
                 "      core 7   CPU 7 (hart 7)",
                 "  L1d    8 x 32 KiB   8-way, 64 sets, lines of 64 bytes; one for each CPU",
                 "  L2     8 x 512 KiB  8-way, 1024 sets, lines of 64 bytes; one for each CPU",
                 "  L3     1 x 8 MiB    16-way, 8192 sets, lines of 64 bytes; CPUs 0-7",
                 "  node 0  4 GiB"):
        holds(line in text.splitlines(), f"no line {line!r}\n{text}")
    holds(re.search(r"alu 1, mul 3, div 20,.* amo 8, lr 8, sc 8", text), f"costs\n{text}")
    holds("13" in text and "48 bits" in text, f"counters\n{text}")
    holds("\x1b" not in text, "colours in a pipe")
    holds(all(len(line) <= 100 for line in text.splitlines()), f"a line of more than 100 columns\n{text}")


@test("machine show --json: CPUs, caches, costs and events as data")
def show_json(work):
    m = json.loads(work.quipu("machine", "show", "--json", "riscv", status=0).out)
    equal((m["name"], m["isa"], m["hz"], m["tick-hz"], m["timing"], m["memory"]),
          ("riscv", "riscv64", 10**9, 250, "base", 4 << 30), "the machine")
    equal([c["reg"] for c in m["cpus"]], list(range(8)), "harts")
    equal(len(m["caches"]), 25, "caches")
    equal({k: m["costs"][k] for k in ("alu", "mul", "div", "fadd", "fdiv", "amo")},
          {"alu": 1, "mul": 3, "div": 20, "fadd": 4, "fdiv": 18, "amo": 8}, "costs")
    events = {e["name"]: e for e in m["events"]}
    equal((events["instructions"]["class"], events["cycles"]["class"]), ("exact", "modelled"), "labels")


@test("machine check: each mistake with its place, status 1; a tree that is none, status 2")
def check(work):
    need("dtc")
    tree(work, "bad.dts", "", 'quipu,timing = "fast"; quipu,cost-mul = <99>; quipu,tick-hs = <5>;',
         "i-cache-size = <0x8000>; i-cache-sets = <77>;")
    text = work.quipu("machine", "check", "bad.dts", status=1).out
    for where in ("/cpus:quipu,timing: ", "/cpus:quipu,cost-mul: ", "/cpus:quipu,tick-hs: ",
                  "/cpus/cpu@0:i-cache-size: "):
        holds(re.search(r"^  wrong +" + re.escape(where), text, re.MULTILINE), f"{where} is not called wrong\n{text}")
    holds(text.splitlines()[-1].endswith("4 wrong"), f"no sum\n{text}")
    j = json.loads(work.quipu("machine", "check", "--json", "bad.dts", status=1).out)
    equal((j["machine"], sum(n["kind"] == "wrong" for n in j["notes"])), (True, 4), "the same as JSON")
    tree(work, "good.dts", "", "quipu,cost-mul = <9>;")
    work.quipu("machine", "check", "good.dts", status=0)
    with open(work.path("none.dts"), "w", encoding="utf-8") as file:
        file.write("/dts-v1/; / { };")
    result = work.quipu("machine", "check", "none.dts", status=2)
    holds("no machine can be made of it" in result.out and "/cpus" in result.out, f"the reason\n{result}")


@test("a source that dtc cannot compile: one line with the place; no dtc: what to install")
def source(work):
    need("dtc")
    with open(work.path("slip.dts"), "w", encoding="utf-8") as file:
        file.write("/dts-v1/;\n/ {\n\tcpus = <1\n};\n")
    one_line_error(work.quipu("machine", "show", "slip.dts"), r"slip\.dts", r"slip\.dts:4", "syntax error")
    os.mkdir(work.path("empty"))
    result = work.quipu("machine", "show", "slip.dts", env=environment(work.folder, PATH=work.path("empty")))
    one_line_error(result, r"slip\.dts", "apt-get install device-tree-compiler")


@test("what is no tree, no file, or too large is one line")
def no_tree(work):
    for name, content, word in (("elf.dtb", b"\x7fELF\0\0\0\0" * 20, "device tree"), ("empty.dtb", b"", "empty")):
        with open(work.path(name), "wb") as file:
            file.write(content)
        one_line_error(work.quipu("machine", "show", name), re.escape(name), word)
    one_line_error(work.quipu("machine", "show", "./nothing.dtb"), "nothing", "No such file")
    one_line_error(work.quipu("machine", "show", work.folder), "directory")
    one_line_error(work.quipu("machine", "show", "/dev/zero"), "larger than 16 MiB")


@test("QUIPU_MACHINE_PATH: a machine of one's own by name")
def own(work):
    need("dtc")
    os.mkdir(work.path("mine"))
    tree(work, "mine/toy.dts", "", "clock-frequency = <2000000000>;")
    env = environment(work.folder, QUIPU_MACHINE_PATH="/nowhere:" + work.path("mine"))
    listed = work.quipu("machine", "list", env=env, status=0).out
    holds(re.search(r"^toy +1 +riscv64 +a board$", listed, re.MULTILINE), f"not listed\n{listed}")
    holds(re.search(r"^riscv ", listed, re.MULTILINE), f"the shipped ones are gone\n{listed}")
    shown = work.quipu("machine", "show", "toy", env=env, status=0).out
    holds("1 of riscv64 at 2 GHz" in shown, f"clock\n{shown}")
    names = [m["name"] for m in json.loads(work.quipu("machine", "list", "--json", env=env, status=0).out)]
    holds({"toy", "riscv"} <= set(names), f"as JSON: {names}")


@test("list --json: every event has a class, and one that cannot be counted its reason")
def events(work):
    rows = json.loads(work.quipu("list", "--json", status=0).out)
    holds(len(rows) > 60, f"only {len(rows)} events")
    for row in rows:
        holds(row["class"] in ("exact", "modelled", "not modelled", "by code"), row)
        equal(row["class"] == "not modelled", bool(row.get("reason")), f"reason of {row}")
    names = {row["name"]: row for row in rows}
    equal((names["instructions"]["signal"], names["cpu/loads/"]["signal"]), ("instructions", "loads"), "signals")
    equal((names["L1-dcache-loads"]["type"], names["L1-dcache-load-misses"]["config"]), (3, 0x10000), "encoding")


@test("list WORD: names, descriptions, patterns and kinds; none found is one line")
def words(work):
    def names(*args):
        return [row["name"] for row in json.loads(work.quipu("list", "--json", *args, status=0).out)]
    holds("cpu/stores/" in names("STORES"), "case matters")
    holds(all(n.startswith("L1-") for n in names("L1-*")) and len(names("L1-*")) == 10, "pattern")
    equal(names("hw")[:2], ["cycles", "instructions"], "kind")
    equal(names("cs"), [n for n in names() if n in names("cs")], "alias")
    holds("context-switches" in names("cs"), "alias is not looked at")
    one_line_error(work.quipu("list", "nosuchevent"), "nosuchevent", "quipu list -m riscv")
    verbose = work.quipu("list", "-v", "instructions", status=0).out
    holds("signal instructions" in verbose and "config 0x1" in verbose, f"-v\n{verbose}")


@test("doctor without QEMU: status 1 and the exact apt line")
def without_qemu(work):
    os.mkdir(work.path("bin"))
    result = work.quipu("doctor", env=environment(work.folder, PATH=work.path("bin")))
    equal(result.status, 1, f"status\n{result}\n")
    for line in ("apt-get install qemu-user", "apt-get install linux-perf", "apt-get install device-tree-compiler"):
        holds(line in result.out, f"no {line!r}\n{result}")
    holds("No program can be counted here" in result.out, f"no verdict\n{result}")


@test("doctor: a static QEMU is told apart from one that loads the plugin")
def static_qemu(work):
    os.mkdir(work.path("bin"))
    shutil.copy(guest("true"), work.path("bin/qemu-riscv64"))
    result = work.quipu("doctor", "--json", env=environment(work.folder, PATH=work.path("bin")))
    equal(result.status, 1, f"status\n{result}\n")
    line = [row for row in json.loads(result.out)["lines"] if row["name"] == "qemu-riscv64"][0]
    equal(line["verdict"], "limited", line)
    holds("statically linked" in line["text"] and "--enable-plugins" in line["remedy"], line)


@test("doctor: a QEMU without plugins is quoted")
def plugin_refused(work):
    need("gcc")
    os.mkdir(work.path("bin"))
    with open(work.path("q.c"), "w", encoding="utf-8") as file:
        file.write('#include <stdio.h>\n#include <string.h>\nint main(int c, char **v) {'
                   'if (c > 1 && !strcmp(v[1], "--version")) return puts("qemu-riscv64 version 9.9.9") < 0;'
                   'fprintf(stderr, "qemu: unknown option \'plugin\'\\n"); return 1; }')
    work.run("gcc", "-o", "bin/qemu-riscv64", "q.c", status=0)
    out = work.quipu("doctor", env=environment(work.folder, PATH=work.path("bin"))).out
    holds("version 9.9.9, does not load the plugin: qemu: unknown option 'plugin'" in out, out)


@test("doctor on this host: riscv64 programs can be counted, and every line that is not ok says what to do")
def doctor(work):
    if not shutil.which("qemu-riscv64"):
        raise Skip("qemu-riscv64 is not installed")
    d = json.loads(work.quipu("doctor", "--json", status=0).out)
    equal(d["counts"], True, "verdict")
    for line in d["lines"]:
        equal(line["verdict"] == "ok", "remedy" not in line, f"remedy of {line}")
    names = [line["name"] for line in d["lines"]]
    for isa in ("riscv64", "ppc64le", "sparc64", "x86_64"):
        holds("qemu-" + isa in names, f"nothing on qemu-{isa}: {names}")


@test("doctor: an instruction set whose programs stat counts is ok, with nothing to do about it")
def doctor_sets(work):
    need("qemu-x86_64")
    work.quipu("stat", "-e", "instructions", "--", "/bin/true", status=0)
    rows = json.loads(work.quipu("doctor", "--json", status=0).out)["lines"]
    line = [row for row in rows if row["name"] == "qemu-x86_64"][0]
    equal((line["verdict"], line.get("remedy")), ("ok", None), line)


if __name__ == "__main__":
    main()
