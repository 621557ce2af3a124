# SPDX-License-Identifier: BSD-2-Clause
"""Machine lpar: hypervisor time has names, in our reports and in the stock perf's; counts are the charge table's
arithmetic; quipu resolve, alone and from several processes of one machine."""
import json
import os
import re
import shutil

from harness import GUESTS, QUIPU, Skip, equal, holds, main, test

def guest(name="true"):
    path = os.path.join(GUESTS, name + ".ppc64le")
    if not os.path.exists(path):
        raise Skip("no cross compiler for ppc64le")
    return path


def recording(work, *options):
    work.quipu("record", "-m", "lpar", "-o", "perf.data", *options, guest(), status=0)


@test("user functions and hypervisor methods both have names, and a rerun has the same samples")
def _(work):
    recording(work, "-g", "-c", "97")
    text = work.quipu("report", "--no-children", "-g", "none", status=0).out
    holds(re.search(r"\[hypervisor\]\s+\[H\] qhv_h_enter\b", text), text)
    holds(re.search(r"true\.ppc64le\s+\[\.\] __libc_start_main", text), text)
    holds("machine lpar partition 1 epoch 0" in text and "modelled" in text, text)
    first = work.quipu("script", "-F", "time,ip,sym,symoff,dso", "--ns", status=0).out
    holds(re.search(r"a01f[0-9a-f]{2} qhv_h_enter\+0x[0-9a-f]+ \(\[hypervisor\]\)\n\s+[0-9a-f]+ \w+.*true\.ppc64le", first),
          first[:400])
    recording(work, "-g", "-c", "97")
    equal(work.quipu("script", "-F", "time,ip,sym,symoff,dso", "--ns", status=0).out, first, "the second recording")


@test("record -g and report, nothing else said: functions and hypervisor methods have names, in chains too")
def _(work):
    work.quipu("record", "-m", "lpar", "-g", guest("pages"), status=0)
    text = work.quipu("report", status=0).out
    for line in (r"\[hypervisor\] +\[H\] qhv_h_enter\n", r"\[hypervisor\] +\[H\] qhv_h_bulk_remove\n",
                 r"pages\.ppc64le +\[\.\] scramble\n", r"\|--[0-9.]+%--touch\n", r"--[0-9.]+%--qhv_h_enter\n"):
        holds(re.search(line, text), f"{line} in {text}")
    holds("[H] 0x" not in text and "[unknown]" not in text, text)


@test("report --show-offset, and its column symoff: each place by itself; they add up to the function")
def _(work):
    recording(work, "-c", "97")
    whole, apart, column = ([e for e in json.loads(work.quipu("report", "--json", *options, status=0).out)["events"][0]["entries"]
                             if e.get("mode") == "hypervisor"]
                            for options in (("-s", "symbol"), ("-s", "symbol", "--show-offset"), ("-s", "symoff")))
    equal(column, apart, "column symoff")
    holds(all(e["resolved"] and "off" not in e for e in whole) and all(e["off"] % 4 == 0 for e in apart), (whole, apart))
    holds(len(apart) > len(whole) > 1, (whole, apart))
    for e in whole:
        equal(sum(x["samples"] for x in apart if x["symbol"] == e["symbol"]), e["samples"], e["symbol"])
    places = re.findall(r"a0[0-9a-f]{4} (qhv_\w+\+0x[0-9a-f]+)", work.quipu("script", "-F", "ip,sym,symoff", status=0).out)
    text = work.quipu("report", "--show-offset", "-n", status=0).out
    equal({n: int(k) for k, n in re.findall(r"([0-9]+) .*\[H\] (qhv_\S+)", text)}, {n: places.count(n) for n in places},
          "the lines of text")


@test("counts of hypervisor mode are the sum of the charges, in every column")
def _(work):
    rows = {r["event"]: float(r["counter-value"]) for r in
            work.stat("instructions:u,instructions:h,instructions:k", guest(), options=("-m", "lpar"))}
    told = work.quipu("stat", "-m", "lpar", "-e", "instructions:h", guest(), status=0).err
    charges = re.findall(r"quipu: ([a-z-]+) +(\d+) times +(\d+) instructions +(\d+) cycles", told)
    holds(charges, told)
    equal(sum(int(c[2]) for c in charges), int(rows["instructions:h"]), "the sum of the charges")
    enter = next(c for c in charges if c[0] == "h-enter")
    equal(int(enter[2]), int(enter[1]) * 270, "12 + 38 + 180 + 26 + 14 instructions for each H_ENTER")
    equal(rows["instructions:k"], 0, "kernel instructions")
    modes = work.quipu("stat", "-m", "lpar", "--per-mode", "--no-big-num", guest(), status=0).err
    holds("user" in modes and "kernel" in modes and "hypervisor" in modes, modes)
    line = next(l for l in modes.splitlines() if l.endswith("instructions"))
    equal(line.split(), [str(int(rows["instructions:u"])), "exact", "0", "modelled", str(int(rows["instructions:h"])),
                         "modelled", "instructions"], "the line of --per-mode")


@test("events that a charge declares besides: on top of the program's own, modelled; the list says what counts there")
def _(work):
    source = os.path.join(os.environ["QUIPU_SOURCE"], "machines")
    with open(os.path.join(source, "lpar.dts"), encoding="utf-8") as f:
        tree = f.read().replace("quipu,insns = <12 38 180 26 14>;", """quipu,insns = <12 38 180 26 14>;
            quipu,extra-events-names = "PM_LD_CMPL", "PM_BR_CMPL"; quipu,extra-events-counts = <40 25>;""", 1)
    with open(work.path("own.dts"), "w", encoding="utf-8") as f:
        f.write(tree)
    work.run("dtc", "-q", "-i", source, "-I", "dts", "-O", "dtb", "-o", "own.dtb", "own.dts", status=0)

    def counted(machine, event):
        row = work.stat(event, guest(), options=("-m", machine))[0]
        return int(float(row["counter-value"])), row["class"]

    faults = int(re.search(r"h-enter +(\d+) times", work.quipu("stat", "-m", "lpar", guest(), status=0).err).group(1))
    for event, each in (("PM_LD_CMPL", 40), ("branches", 25)):
        user, label = counted("lpar", event)
        equal(label, "exact", f"{event}: nothing is declared")
        equal(counted("own.dtb", event + ":u"), (user, "exact"), event + ":u")
        equal(counted("own.dtb", event + ":h"), (each * faults, "modelled"), event + ":h")
        equal(counted("own.dtb", event), (user + each * faults, "modelled"), event)
        for machine, want in (("own.dtb", "modelled"), ("lpar", "exact")):
            events = json.loads(work.quipu("list", "-m", machine, "--json", event, status=0).out)
            equal({e["class"] for e in events if e["name"] in (event, f"cpu/{event}/")}, {want}, f"{event} in the list of {machine}")
    for event in json.loads(work.quipu("list", "-m", "lpar", "--json", "PM_INST_CMPL", status=0).out):
        equal(event["class"], "modelled", "instructions of user and hypervisor together")
    listed = work.quipu("list", "-m", "lpar", status=0).out
    holds("no hypervisor code was executed" in listed and "count 0 there" in listed, listed)
    holds("hypervisor" not in work.quipu("list", "-m", "power9", "instructions", status=0).out, "power9")


@test("RT-55 RT-56: the stock perf reads the recording without complaint, and names the export's hypervisor")
def _(work):
    recording(work, "-c", "97")
    for words in (("report", "--stdio"), ("script",), ("report", "--header-only")):
        done = work.run("perf", *words, "-i", "perf.data", status=0)
        holds("[H] 0x0000000000a01f" in done.out or words != ("report", "--stdio"), done.out[:2000])
        # Of the kernel it may say that nothing is known; of a section that it does not know, nothing.
        holds(not re.search(r"feature|section|unknown|250|corrupt|invalid", done.err, re.I), f"{words}: {done.err}")
    work.quipu("export", "--format", "perf", "-o", "named.data", status=0)
    out = work.run("perf", "script", "-i", "named.data", "-F", "ip,sym,symoff,dso", status=0).out
    ours = work.quipu("script", "-F", "ip,sym,symoff,dso", status=0).out
    want = re.findall(r"a0[0-9a-f]{4} qhv_.*", ours)
    holds(want, ours[:400])
    equal(re.findall(r"a0[0-9a-f]{4} qhv_.*", out), want, "perf's lines of the hypervisor")


@test("RT-54 RT-57: perf's own recording: rows as the stock perf has them, names by -m, and by --filter as script has them")
def _(work):
    work.quipu("exec", "-m", "lpar", "--", "perf", "record", "-q", "-e", "instructions", "-c", "997", "-o", "perf.data", "--",
               guest(), status=0)
    # Sheet 6.2: a row for each address, of no object; the word [hypervisor] in the dump alone; no symbol in script.
    stock = work.run("perf", "report", "-i", "perf.data", "--stdio", status=0).out
    rows = re.findall(r"\[unknown\] +\[H\] (0x0000000000a0[0-9a-f]{4})", stock)
    holds(rows and len(rows) == len(set(rows)), stock)
    dump = work.run("perf", "report", "-i", "perf.data", "-D", status=0).out
    plain = work.run("perf", "script", "-i", "perf.data", "-F", "ip,sym,dso", status=0).out
    equal({f"0x{int(a, 16):016x}" for a in re.findall(r"^ *(a0[0-9a-f]{4}) \[unknown\] \(\[unknown\]\)$", plain, re.M)}, set(rows),
          "addresses in script and report")
    equal(len(re.findall(r"dso: \[hypervisor\]", dump)), len(re.findall(r"^ *a0[0-9a-f]{4} ", plain, re.M)), "samples in the dump")
    bare = work.quipu("report", status=0).out
    holds("[H] 0x" in bare and "hypervisor addresses have no name" in bare, bare)
    named = work.quipu("report", "-m", "lpar", status=0).out
    holds(re.search(r"\[hypervisor\] +\[H\] qhv_", named), named)
    text = work.run("perf", "script", "-i", "perf.data", "-F", "+misc", status=0).out
    holds(" KUH " in text, text[:600])
    # A user's sample at an address that the hypervisor has too is the user's.
    text += next(l for l in text.splitlines() if " KUH " in l).replace(" KUH ", " U   ") + "\n"
    holds(re.search(r" U .* a0[0-9a-f]{4} \[unknown\]", text.splitlines()[-1]), text.splitlines()[-1])
    with open(work.path("text"), "w", encoding="ascii") as f:
        f.write(text)
    with open(work.path("text"), encoding="ascii") as f:
        filtered = work.quipu("resolve", "--filter", "-m", "lpar", status=0, stdin=f).out
    ours = work.quipu("script", "-m", "lpar", status=0).out
    pattern = r"a0[0-9a-f]{4} qhv_\w+\+0x[0-9a-f]+ \(\[hypervisor\]\)"
    equal(re.findall(pattern, filtered), re.findall(pattern, ours), "the names")
    equal([l for l in filtered.splitlines() if " KUH " not in l], [l for l in text.splitlines() if " KUH " not in l],
          "all other lines")


@test("resolve: forms, exit statuses, and why there is no name")
def _(work):
    out = work.quipu("resolve", "0xa01f40", "a01f00+4", status=0).out
    equal(out, "0000000000a01f40  qhv_h_enter+0x40/?\n0000000000a01f04  qhv_h_enter+0x4/?\n", "two names")
    equal(work.quipu("resolve", "a20000", status=1).out, "0000000000a20000  <invalid: INVALID ADDRESS>\n", "no address")
    refused = work.quipu("resolve", "-p", "2", "a01f40", status=3)
    equal(refused.out, "0000000000a01f40  <error: no authority (-9002)>\n", "no authority")
    holds("management console" in refused.err, refused.err)
    bare = work.quipu("resolve", "-m", "power9", "a01f40", status=3)
    holds("LPAR option" in bare.err and "bare metal" in bare.err, bare.err)
    rows = json.loads(work.quipu("resolve", "--json", "a01f40", "a20000", status=1).out)
    equal([r["state"] for r in rows], ["ok", "invalid"], "states")
    equal(rows[0]["offset"], 64, "offset")
    with open(work.path("list"), "w", encoding="ascii") as f:
        f.write("# comment\na01f40 kept as it is\n\n0xa00f00\n")
    equal(work.quipu("resolve", "--from", "list", status=0).out,
          "0000000000a01f40  qhv_h_enter+0x40/? kept as it is\n0000000000a00f00  vectors+0xf00/?\n", "a list")
    recording(work, "-e", "instructions:h", "-c", "97")
    counted = work.quipu("resolve", "-i", "perf.data", status=0).out
    holds(re.search(r"qhv_h_enter\+0x[0-9a-f]+/\?  \d+ samples", counted), counted)
    for words in (["zz"], [], ["--from", "absent"], ["--map", "absent", "1"], ["-m", "lpar", "--map", "x", "1"],
                  ["--format", "tea", "1"], ["-p", "70000", "1"], ["-p", "9", "1"], ["-m", "nowhere", "1"],
                  ["--buffer", "4", "1"], ["--from", "list", "1"], ["12345678901234567"]):
        done = work.quipu("resolve", *words)
        equal(done.status, 2, f"status of {words}")
        holds(done.err.startswith("quipu: "), f"{words}: {done.err}")
    holds("of: 1, 2" in work.quipu("resolve", "-p", "9", "1", status=2).err, "partitions to choose from")
    with open(work.path("junk"), "wb") as f:
        f.write(b"\x1b]0;title\x07\x9b2J\x00 x\n")
    err = work.quipu("resolve", "--from", "junk", status=2).err
    holds("line 1" in err and "'?]0;title??2J?'" in err, f"a terminal would obey: {err!r}")


@test("resolve --transport: whom it asks, and what it says where there is none")
def _(work):
    name = "0000000000a01f40  qhv_h_enter+0x40/?\n"
    equal(work.quipu("resolve", "--transport", "model", "a01f40", status=0).out, name, "model")
    for kind, who in (("machine", "of this quipu exec"), ("model", "machine lpar partition 1")):
        done = work.quipu("exec", "-m", "lpar", "--", QUIPU, "resolve", "--stats", "--transport", kind, "a01f40", status=0)
        equal(done.out, name, kind)
        holds(who in done.err, done.err)
    if os.uname().machine not in ("ppc64", "ppc64le"):
        holds("POWER" in work.quipu("resolve", "--transport", "linux", "a01f40", status=3).err, "a host of another kind")
    for words, why in ((["machine"], "quipu exec -m lpar"), (["tea"], "model, machine, linux"), (["linux", "-m", "lpar"], "model"),
                       (["machine", "--map", "x"], "model")):
        holds(why in work.quipu("resolve", "a01f40", "--transport", *words, status=2).err, words)


@test("resolve --map: every form of the same symbols, and which line of a file is wrong")
def _(work):
    with open(work.path("perf.map"), "w", encoding="ascii") as f:
        f.write("1000 100 outer\n1040 20 inner thing(int)\n")
    with open(work.path("nm.map"), "w", encoding="ascii") as f:
        f.write("0000000000001000 T outer\n0000000000001100 D end\n")
    equal(work.quipu("resolve", "--map", "perf.map", "1044", "1064", status=0).out,
          "0000000000001044  inner thing(int)+0x4/?\n0000000000001064  outer+0x64/?\n", "nested")
    equal(work.quipu("resolve", "--map", "nm.map", "--base", "0x30000000", "30001044", status=0).out,
          "0000000030001044  outer+0x44/?\n", "with a base")
    holds("_start" in work.quipu("resolve", "--map", guest(), "--emit-map", "out", "10000980").out, "an ELF file")
    with open(work.path("bad"), "w", encoding="ascii") as f:
        f.write("1000 T a\nnonsense\n")
    holds("bad: line 2: " in work.quipu("resolve", "--map", "bad", "1", status=2).err, "the line")


@test("resolve --aliases: the other names of a function, where the map is ours")
def _(work):
    with open(work.path("nm.map"), "w", encoding="ascii") as f:
        f.write("1000 T b\n1000 t a\n1000 W c\n1100 T d\n1200 T e\n1200 T ee\n")
    equal(work.quipu("resolve", "--map", "nm.map", "--aliases", "1004", "1104", "1204", "9999", status=1).out,
          "0000000000001004  b+0x4/? = c = a\n0000000000001104  d+0x4/?\n0000000000001204  e+0x4/? = ee\n"
          "0000000000009999  <invalid: INVALID ADDRESS>\n", "names")
    rows = json.loads(work.quipu("resolve", "--map", "nm.map", "--aliases", "--json", "1004", "1104", status=0).out)
    equal([r["aliases"] for r in rows], [["c", "a"], []], "names in JSON")
    equal(work.quipu("resolve", "--aliases", "-m", "lpar", "a01f40", status=0).out, "0000000000a01f40  qhv_h_enter+0x40/?\n", "-m")
    for option in (["--aliases"], ["--inject", "3=-2"]):
        done = work.quipu("exec", "-m", "lpar", "--", QUIPU, "resolve", *option, "a01f40", status=2)
        holds("-m or --map" in done.err, done.err)


@test("resolve with every third call busy or delayed: the same names, and time is the model's")
def _(work):
    with open(work.path("nm.map"), "w", encoding="ascii") as f:
        f.writelines(f"{0xc000000000000000 + 64 * i:x} T function_{i}\n" for i in range(20001))
    with open(work.path("list"), "w", encoding="ascii") as f:
        f.writelines(f"{0xc000000000000004 + 64 * (i * 7919 % 20000):x}\n" for i in range(20000))
    want = "".join(f"{0xc000000000000004 + 64 * n:016x}  function_{n}+0x4/?\n" for n in (i * 7919 % 20000 for i in range(20000)))
    base = ("resolve", "--map", "nm.map", "--from", "list", "--stats")
    equal(work.quipu(*base, status=0).out == want, True, "names")
    done = work.quipu(*base, "--inject", "6=9902", "--inject", "3=-2", status=0)
    equal(done.out == want, True, "names with delays")
    calls, waited = map(int, re.search(r"(\d+) RTAS calls, .* (\d+) ms waited \(model time\)", done.err).groups())
    equal(calls - calls // 3, 20000, "two calls of three are answers")
    equal(waited, 100 * (calls // 6), "each second delay is of 100 ms")
    for wrong in ("3", "=-2", "0=-2", "3=", "3=-4", "3=9906", "3=x", "-1=-2"):
        done = work.quipu("resolve", "--inject", wrong, "a01f40", status=2)
        holds(done.err.startswith("quipu: --inject"), done.err)
    equal(work.quipu("resolve", "--inject", "1=-1", "a01f40", status=1).out,
          "0000000000a01f40  <error: hardware error (-1)>\n", "a hardware error")


R1_6 = """
import subprocess, sys
def start():
    return subprocess.Popen([sys.argv[1], "resolve", "--step"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def call(p, text):
    p.stdin.write(text + "\\n"); p.stdin.flush()
    return p.stdout.readline().strip()
p0, p1 = start(), start()
for _ in range(7):  # the machine is busy at every eighth lookup
    call(p0, "1 a01f40")
print(call(p0, "1 a01f40"))
print(call(p1, "1 a03d10"))
print(call(p0, "2 a01f40"))
print(call(p1, "3 a03d10"))
p0.stdin.close(); p1.stdin.close()
sys.exit(p0.wait() or p1.wait())
"""


@test("R1-6 from two quipu resolve processes inside one quipu exec")
def _(work):
    out = work.quipu("exec", "-m", "lpar", "--", "python3", "-c", R1_6, QUIPU, status=0).out
    equal(out.splitlines(), ["status -2 (busy) next 2", "status 9901 (extended delay, about 10 ms) next 3",
                             "status -3 (parameter error) next 1", "status 0 (success) next 1 qhv_vp_preempt+0x10"],
          "what the two were told")


@test("two processes at once, with the lock and without: nobody gets another's name")
def _(work):
    with open(work.path("list"), "w", encoding="ascii") as f:
        f.writelines(f"{0xa01f04 + 4 * i:x}\n" for i in range(100))
    want = work.quipu("resolve", "--from", "list", "-m", "lpar", status=0).out
    for lock in ("", "--no-lock"):
        script = f"for i in 1 2; do $0 resolve {lock} --stats --from list > out.$i 2> err.$i & done; wait"
        work.quipu("exec", "-m", "lpar", "--", "sh", "-c", script, QUIPU, status=0)
        for i in (1, 2):
            with open(work.path(f"out.{i}"), encoding="ascii") as f:
                equal(f.read(), want, f"names of process {i} {lock}")
            with open(work.path(f"err.{i}"), encoding="ascii") as f:
                err = f.read()
            holds(lock or " 0 restarts" in err, err)


@test("the file by which callers take turns goes with the machine")
def _(work):
    os.mkdir(work.path("runtime"), 0o700)
    seen = work.quipu("exec", "-m", "lpar", "--", "env", "XDG_RUNTIME_DIR=" + work.path("runtime"), "sh", "-c",
                      "$0 resolve a01f40 && ls $XDG_RUNTIME_DIR/quipu", QUIPU, status=0).out
    holds("lpar-1.perftools.lock" in seen, seen)
    work.run("env", "XDG_RUNTIME_DIR=" + work.path("runtime"), QUIPU, "exec", "-m", "lpar", "--", "sh", "-c",
             "$0 resolve a01f40 && $0 resolve -p 2 a01f40", QUIPU, status=3)
    left = os.listdir(work.path("runtime/quipu"))
    equal(len(left), 1, f"only what the first command, which knew of no such folder, could not remove: {left}")

@test("a call of the firmware costs what the machine declares for it, on the processors of the partition that makes it")
def _(work):
    told = work.quipu("exec", "-v", "-m", "lpar", "--", QUIPU, "resolve", "a01f40", "a02004", status=0).err
    holds(re.search(r"rtas-perftools +2 times +660 instructions +1056 cycles", told), told)
    # Partition 2 has no processor of this machine; it is refused all the same.
    told = work.quipu("exec", "-v", "-m", "lpar", "--", QUIPU, "resolve", "-p", "2", "a01f40", status=3).err
    holds("rtas-perftools" not in told, told)
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    told = work.quipu("exec", "-m", "lpar", "--", "perf", "stat", "-x,", "-a", "-e", "instructions:h,instructions:u,cycles:h", QUIPU,
                      "resolve", "a01f40", "a02004", "a03d10", status=0).err
    counts = [line.split(",")[0] for line in told.splitlines() if ":h" in line or ":u" in line]
    equal(counts, ["990", "0", "1584"], told)


main()
