#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""quipu on the host's own kernel, beside the stock perf: counts, samples, symbols; and what is said where it is not
allowed, or not there. The program is host_prog.c, whose faults, calls and writes are known."""
import json
import os
import re
import shutil
import subprocess

from harness import QUIPU, Skip, environment, equal, holds, json_lines, main, need, test, value

PROG, DENY, INLINED = (os.environ["QUIPU_HOST_" + name] for name in ("PROG", "DENY", "INLINED"))
EVENTS = "task-clock,cpu-clock,page-faults,context-switches,cpu-migrations"
UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def need_events(work):
    """perf events of the kernel, for this user."""
    result = work.quipu("stat", "-m", "host", "-x,", "-e", "cpu-clock", "-a", "--", "true")
    if result.status:
        raise Skip(result.err.strip().splitlines()[-1])


def by_name(rows):
    return {row["event"]: row for row in rows}


def stat(work, events, *args, options=(), status=0, **keywords):
    return by_name(json_lines(work.quipu("stat", "-m", "host", "-j", "-e", events, *options, "--", *args, status=status, **keywords)))


def perf_stat(work, events, *args):
    err = work.run("perf", "stat", "-x;", "-e", events, *args, status=0).err
    return {f[2]: float(f[0]) for f in (line.split(";") for line in err.splitlines()) if len(f) > 3}


def address_of(symbol):
    out = subprocess.run(["nm", PROG], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(re.search(r"^([0-9a-f]+) \w %s$" % symbol, out, re.MULTILINE).group(1), 16)


@test("software events agree with perf stat beside it")
def software(work):
    need("perf")
    need_events(work)
    ours, theirs = stat(work, EVENTS, PROG, "100"), perf_stat(work, EVENTS, PROG, "100")
    equal(set(ours), set(theirs), "events")
    # The environment, which exec copies, differs by what perf adds to it.
    holds(abs(value(ours["page-faults"]) - theirs["page-faults"]) <= 2 and value(ours["page-faults"]) >= 600,
          (ours, theirs))
    holds(value(ours["context-switches"]) >= 20 <= theirs["context-switches"], (ours, theirs))
    for clock in ("task-clock", "cpu-clock"):
        holds(90 <= float(ours[clock]["counter-value"]) < 3 * theirs[clock], (clock, ours, theirs))
    holds(all(row["class"] == "host" for row in ours.values()), f"labels: {ours}")


@test("-a, -C, -A, --per-core, -I, -r, -x and -o count as they say")
def forms(work):
    need_events(work)
    ncpus = len(os.sched_getaffinity(0))
    rows = json_lines(work.quipu("stat", "-m", "host", "-j", "-a", "-A", "-e", "cpu-clock", "--", PROG, "50", status=0))
    holds(len(rows) >= ncpus and all(float(r["counter-value"]) >= 50 for r in rows), rows)
    one = stat(work, "cpu-clock", PROG, "50", options=["-C", "0"])
    whole = stat(work, "cpu-clock", PROG, "50", options=["-a"])
    holds(len(one) == 1 and len(whole) == 1, (one, whole))
    rows = json_lines(work.quipu("stat", "-m", "host", "-j", "--per-core", "-a", "-e", "cs", "--", PROG, "10", status=0))
    holds(all(re.match(r"S\d+-D\d+-C\d+$", r["core"]) for r in rows), rows)
    rows = json_lines(work.quipu("stat", "-m", "host", "-j", "-I", "50", "-e", "page-faults", "--", PROG, "200", status=0))
    times = [r["interval"] for r in rows]
    holds(len(times) >= 2 and times == sorted(times), f"intervals {times}")
    counted = sum(float(r["counter-value"]) for r in rows if not r["counter-value"].startswith("<"))
    holds(counted >= 600, f"all intervals together: {counted}")
    result = work.quipu("stat", "-m", "host", "-r", "3", "-x;", "-o", "out", "-e", "page-faults", "--", PROG, "1", status=0)
    fields = open(work.path("out"), encoding="utf-8").read().strip().split(";")
    holds(float(fields[0]) >= 600 and fields[2] == "page-faults" and fields[3].endswith("%") and fields[-1] == "host", fields)
    equal(result.err, "", "nothing else is said")


@test("-p and -t watch what runs already, --per-thread line by line")
def watching(work):
    need_events(work)
    process = work.start(PROG, "30000")
    try:
        for option in ("-p", "-t"):
            row = by_name(json_lines(work.quipu("stat", "-j", option, str(process.pid), "-e", "task-clock", "--", PROG, "60",
                                                status=0)))["task-clock"]
            holds(float(row["counter-value"]) > 0 and row["class"] == "host", row)
        row = json_lines(work.quipu("stat", "-j", "-p", str(process.pid), "--per-thread", "-e", "task-clock", "--", PROG, "20",
                                    status=0))[0]
        equal(row["thread"], "host-prog-%d" % process.pid, "the thread's name")
    finally:
        process.kill()
        process.communicate()
    gone = work.quipu("stat", "-p", str(process.pid), "--", "true", status=2)
    holds("no such process" in gone.err, gone)


@test("a tracepoint, a uprobe and breakpoints count and sample")
def kernels_own(work):
    need_events(work)
    need("nm")
    events = {"uprobe:%s:step" % PROG: 100, "uretprobe:%s:step" % PROG: 100, "mem:%#x/8:w:u" % address_of("watched"): 50,
              "mem:%#x:x" % address_of("step"): 100, "sched:sched_switch": None}
    tried = 0
    for event, want in events.items():
        result = work.quipu("stat", "-m", "host", "-j", "-e", event, "--", PROG, "1")
        if result.status or "<not supported>" in result.err:
            holds(re.search(r"tracefs|uprobe|breakpoint|not supported", result.err), result)  # a reason, then
            continue
        tried += 1
        count = value(json_lines(result)[0])
        holds(count == want if want else count >= 20, f"{event}: {count}")
        work.quipu("record", "-q", "-m", "host", "-e", event, "-o", "k.data", "--", PROG, "1", status=0)
        report = json.loads(work.quipu("report", "--json", "-i", "k.data", status=0).out)["events"][0]
        holds(report["samples"] == want if want else report["samples"] >= 20, f"samples of {event}: {report['samples']}")
        if want and not event.startswith("ure") and ":w" not in event:
            equal(report["entries"][0]["symbol"], "step", f"where {event} hit")
    if not tried:
        raise Skip("this host has neither tracefs nor uprobes nor breakpoints")


def perf_top(work, data):
    out = work.run("perf", "report", "--stdio", "--no-children", "-g", "none", "--no-inline", "-i", data, status=0).out
    rows = re.findall(r"^ +([0-9.]+)% +(\S+) +(\S+) +\[(.)\] (.*?) *$", out, re.MULTILINE)
    return {(row[3], row[4]): float(row[0]) for row in rows if row[2] != "[vdso]"}  # perf keeps a copy of that


def quipu_top(work, data):
    out = work.quipu("report", "--no-children", "-g", "none", "-i", data, status=0).out
    rows = re.findall(r"^ +([0-9.]+)% +(\S+) +(\S+) +\[(.)\] (.*?) *$", out, re.MULTILINE)
    return {(row[3], row[4]): float(row[0]) for row in rows}


def same_top(ours, theirs, what):
    top = [name for name, share in sorted(theirs.items(), key=lambda x: -x[1])[:10]]
    for name in top:
        holds(name in ours and abs(ours[name] - theirs[name]) < 0.02, f"{what}: {name}: {ours.get(name)} and {theirs[name]}")
    holds(("." , "leaf") in top, f"{what}: no leaf in {top}")
    holds(any(level == "k" for level, _ in top), f"{what}: no kernel in {top}")


@test("record -g is read by perf, perf's file by report: the same top ten, the kernel's symbols too")
def both_ways(work):
    need("perf")
    need_events(work)
    work.quipu("record", "-q", "-m", "host", "-e", "cpu-clock", "-F", "999", "-g", "-o", "q.data", "--", PROG, "400", status=0)
    same_top(quipu_top(work, "q.data"), perf_top(work, "q.data"), "quipu's file")
    work.run("perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", "p.data", PROG, "400", status=0)
    same_top(quipu_top(work, "p.data"), perf_top(work, "p.data"), "perf's file")


@test("--call-graph dwarf: the callers of a function without frame pointers")
def dwarf(work):
    need_events(work)
    work.quipu("record", "-q", "-m", "host", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf", "-o", "d.data", "--", PROG,
               "300", status=0)
    entries = json.loads(work.quipu("report", "--json", "--no-inline", "-i", "d.data", status=0).out)["events"][0]["entries"]
    shares = {e["symbol"]: e["children"] / max(x["children"] for x in entries) for e in entries}
    if "often" not in shares and os.uname().machine != "x86_64":
        raise Skip("stacks are unwound on x86-64")
    holds(shares.get("main", 0) > 0.9, f"main: {shares}")
    holds(shares.get("often", 0) > 2 * shares.get("seldom", 0) > 0, f"often and seldom: {shares}")


def chains(text):
    """Of each sample of a script, the program's frames (address, function, was it inlined), innermost first."""
    out = []
    for line in text.splitlines():
        frame = re.match(r"\s+([0-9a-f]+) (\S+?)(?:\+0x[0-9a-f]+)? \((inlined|\S+)\)$", line)
        if line[:1] not in ("\t", " ", ""):
            out.append([])
        elif frame and frame.group(3) in ("inlined", INLINED):
            out[-1].append((int(frame.group(1), 16), frame.group(2), frame.group(3) == "inlined"))
    return out


def of_program(chain):
    """From main inwards: what called main, and the C library, are no matter of this program's debug information."""
    names = [name for _, name, _ in chain]
    return chain[:names.index("main") + 1] if "main" in names else None


def inlined_names(text):
    return set(re.findall(r"\[\.\] (\S+) \(inlined\)", text))


@test("inlined functions: the frames of perf and of addr2line, sample by sample, and the names in the report")
def inlined(work):
    for tool in ("perf", "addr2line"):
        need(tool)
    need_events(work)
    if os.uname().machine != "x86_64":
        raise Skip("stacks are unwound on x86-64")
    work.quipu("record", "-q", "-m", "host", "-e", "cpu-clock:u", "-F", "999", "--call-graph", "dwarf", "-o", "i.data", "--",
               INLINED, "400", status=0)
    ours = [of_program(c) for c in chains(work.quipu("script", "--inline", "-i", "i.data", status=0).out)]
    theirs = [of_program(c) for c in chains(work.run("perf", "script", "-i", "i.data", status=0).out)]
    equal(len(ours), len(theirs), "samples")
    known = [pair for pair in zip(ours, theirs) if pair[0] and pair[1] and pair[0][0][0] == pair[1][0][0]]
    holds(len(known) >= 50, f"{len(known)} of {len(ours)} samples in the program")
    for mine, perfs in known:
        equal(mine, perfs, "the frames of a sample")
    deepest = {tuple(name for _, name, _ in chain) for chain, _ in known}
    holds(("innermost", "middle", "wide", "outer", "run", "main") in deepest, deepest)
    for address in sorted({chain[0][0] for chain, _ in known}):
        judge = work.run("addr2line", "-f", "-i", "-e", INLINED, hex(address), status=0).out.splitlines()[::2]
        mine = next([name for a, name, _ in chain if a == address] for chain, _ in known if chain[0][0] == address)
        equal(mine, judge, f"functions at {address:#x}")
    args = ("report", "--stdio", "--inline", "--children", "-g", "none", "-i", "i.data")
    names = inlined_names(work.quipu(*args, status=0).out)
    program = {"innermost", "middle", "wide", "run", "outer", "main"}  # perf calls aliases in the C library inlined, too
    equal(names & program, inlined_names(work.run("perf", *args, status=0).out) & program, "inlined functions in the report")
    holds({"innermost", "middle", "wide", "run"} <= names, names)


@test("tracepoint samples carry their formats: perf script prints the fields")
def tracing(work):
    need("perf")
    need_events(work)
    result = work.quipu("record", "-q", "-m", "host", "-e", "sched:sched_switch", "-o", "t.data", "--", PROG, "1")
    if result.status:
        raise Skip(result.err.strip().splitlines()[-1])
    out = work.run("perf", "script", "-i", "t.data", status=0).out
    holds(re.search(r"sched:sched_switch: prev_comm=host-prog", out), out[:500])


@test("no hardware counters: stat says so and runs on x86, -m host forbids that; record takes cpu-clock")
def fallbacks(work):
    need_events(work)
    need("qemu-x86_64")
    result = work.quipu("stat", "-m", "host", "-e", "instructions", "--", PROG, "1", status=0)
    if "<not supported>" not in result.err:
        raise Skip("this host has hardware counters")
    holds("modelled machine" in result.err and "hardware counters" in result.err, result)
    result = work.quipu("stat", "-e", "instructions", "--", "/bin/true", status=0)
    said = [line for line in result.err.splitlines() if line.startswith("quipu: ")]
    holds(len(said) == 1 and "machine x86" in said[0] and "-m host" in said[0] and "exact" in result.err, result)
    result = work.quipu("stat", "-e", "page-faults", "--", PROG, "1", status=0)
    holds(re.search(r"6\d\d +page-faults +host", result.err), result)  # what the host can count, it counts
    result = work.quipu("record", "-o", "c.data", "--", PROG, "50", status=0)
    holds("cpu-clock" in result.err and "samples, host" in result.err, result)


PARANOID = "/proc/sys/kernel/perf_event_paranoid"


def without_privilege(work, *args, **keywords):
    return work.run(*UNPRIVILEGED, QUIPU, *args, **keywords)


def check_level(work, level):
    """What a user without privileges gets at this level, of a kernel that does above 2 what it does at 2."""
    rows = by_name(json_lines(without_privilege(work, "stat", "-m", "host", "-j", "-e", "page-faults,cs", "--", PROG, "1", status=0)))
    holds(value(rows["page-faults:u"]) >= 590, rows)
    holds("kernel" in rows["cs:u"].get("reason", ""), f"a 0 that is no count: {rows}")
    without_privilege(work, "record", "-q", "-m", "host", "-e", "cpu-clock", "-o", "u.data", "--", PROG, "50", status=0)
    holds("leaf" in work.quipu("report", "-i", "u.data", status=0).out, "own samples")
    result = without_privilege(work, "stat", "-m", "host", "-a", "-e", "cs", "--", "true", status=2)
    holds("perf_event_paranoid is %d" % level in result.err and "perf_event_paranoid=0" in result.err, result)
    result = without_privilege(work, "record", "-m", "host", "-a", "-e", "cpu-clock", "--", "true", status=2)
    holds("perf_event_paranoid is %d" % level in result.err, result)
    doctor = {line["name"]: line for line in json.loads(without_privilege(work, "doctor", "--json").out)["lines"]}
    equal(doctor["perf_event_open"]["verdict"], "limited", doctor["perf_event_open"])
    holds("own programs; not the kernel" in doctor["perf_event_open"]["text"], doctor["perf_event_open"])


@test("without privileges, at perf_event_paranoid 2, 3 and 4: own programs are counted, the rest has reason and remedy")
def unprivileged(work):
    need_events(work)
    need("setpriv")
    if not os.path.exists(PARANOID):
        raise Skip("no perf_event_paranoid")
    with open(PARANOID, encoding="ascii") as f:
        before = f.read()
    checked = 0
    for level in (2, 3, 4):
        try:
            # To the kernel as it comes 3 and 4 are as 2, so nobody else notices; Debian's is given back at once.
            with open(PARANOID, "w", encoding="ascii") as f:
                f.write("%d\n" % level)
        except OSError:
            if int(before) != level:
                continue
        try:
            if without_privilege(work, "stat", "-m", "host", "-e", "dummy:u", "--", "true").status:
                continue  # a kernel that refuses everything there: the next test's matter
            check_level(work, level)
            checked += 1
        finally:
            try:
                with open(PARANOID, "w", encoding="ascii") as f:
                    f.write(before)
            except OSError:
                pass
    if not checked:
        raise Skip("perf_event_paranoid cannot be set here")


@test("a kernel that refuses everything at perf_event_paranoid 3 and 4: the level, the remedy, and x86 counts instead")
def refuses_all(work):
    need_events(work)
    need("unshare")
    need("qemu-x86_64")
    for level in (3, 4):
        with open(work.path("level"), "w", encoding="ascii") as f:
            f.write("%d\n" % level)
        script = "mount --bind level %s || exit 77; exec \"$@\"" % PARANOID
        run = lambda *args, **kw: work.run("unshare", "-m", "sh", "-c", script, "sh", *UNPRIVILEGED, DENY, "13", QUIPU, *args, **kw)
        result = run("stat", "-m", "host", "-e", "page-faults", "--", "true")
        if result.status in (1, 77, 125):
            raise Skip("no mount namespaces or no seccomp filters here")
        holds(result.status == 2 and "refuses all counting" in result.err and "perf_event_paranoid is %d" % level in result.err and
              "at most 2" in result.err and "sysctl" in result.err and result.err.count("\n") == 1, result)
        result = run("stat", "-e", "instructions", "--", "/bin/true", status=0)
        holds("machine x86" in result.err and "exact" in result.err, result)
        doctor = {line["name"]: line for line in json.loads(run("doctor", "--json").out)["lines"]}
        holds("perf_event_paranoid is %d" % level in doctor["perf_event_open"]["text"] and doctor["perf_event_open"]["remedy"],
              doctor["perf_event_open"])


@test("another user's process: whose it is, not a level that would not help")
def strangers(work):
    need_events(work)
    need("setpriv")
    if os.geteuid():
        raise Skip("it takes root to be another user")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    os.chmod(work.folder, 0o755)
    for path in (QUIPU, os.path.dirname(QUIPU)):
        if work.run(*user, "test", "-x", path).status:
            raise Skip("another user cannot run this build")
    result = work.run(*user, QUIPU, "stat", "-m", "host", "-e", "cs", "-p", str(os.getpid()), "--", "true", status=2)
    holds("is not this user's" in result.err, result)


# 66 MB a second of each busy CPU, were all stacks that deep.
HEAVY = ("record", "-m", "host", "-a", "-e", "cpu-clock", "-F", "997", "--call-graph", "dwarf,65528")


@test("more than one thread can take: copies of stacks of all CPUs, in order; a full disk leaves no file")
def readers(work):
    need("perf")
    need_events(work)
    work.quipu(*HEAVY, "-o", "r.data", "--", PROG, "300", status=0)
    out = work.run("perf", "script", "--ns", "-F", "comm,time", "-i", "r.data", status=0).out
    samples = re.findall(r"^ *(\S.*?) +(\d+)\.(\d{9}):", out, re.MULTILINE)
    times = [int(seconds) * 10**9 + int(ns) for _, seconds, ns in samples]
    holds(times == sorted(times), "perf finds them in order")
    holds(sum(comm.startswith("host-prog") for comm, _, _ in samples) >= 20, f"of the program: {len(samples)} samples")
    equal(json.loads(work.quipu("report", "--json", "-i", "r.data", status=0).out)["events"][0]["samples"], len(samples), "samples")
    script = 'mount -t tmpfs -o size=256k none "$1" || exit 77; cd "$1"; shift; "$@"; status=$?; ls -A; exit $status'
    os.mkdir(work.path("small"))
    result = work.run("unshare", "-m", "sh", "-c", script, "sh", work.path("small"), QUIPU, *HEAVY, "-o", "f.data", "--", PROG, "300")
    if result.status not in (1, 77, 127):
        holds(result.status == 2 and "No space left" in result.err and not result.out.strip(), result)


@test("where a sandbox refuses perf_event_open, the reason says so and modelled machines still count")
def sandbox(work):
    need_events(work)
    result = work.run(DENY, "1", QUIPU, "stat", "-m", "host", "-e", "cs", "--", "true")
    if result.status == 125:
        raise Skip("no seccomp filters here")
    equal(result.status, 2, str(result))
    holds("seccomp" in result.err and "EPERM" in result.err, result)
    result = work.run(DENY, "38", QUIPU, "stat", "-m", "host", "-e", "cs", "--", "true", status=0)
    holds("without perf events" in result.err and "modelled machines" in result.err, result)
    lines = json.loads(work.run(DENY, "1", QUIPU, "doctor", "--json").out)["lines"]
    row = [line for line in lines if line["name"] == "seccomp"][0]
    holds(row["verdict"] == "limited" and "perf_event_open is refused" in row["text"], row)
    if shutil.which("unshare") and not work.run("unshare", "-Ur", "true").status:
        result = work.run("unshare", "-Ur", QUIPU, "stat", "-m", "host", "-a", "-e", "cs", "--", "true")
        doctor = {line["name"]: line for line in json.loads(work.run("unshare", "-Ur", QUIPU, "doctor", "--json").out)["lines"]}
        holds(all("user namespace" in doctor[name]["text"] for name in ("capabilities", "container")), doctor)
        allowed = int(open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii").read()) <= 0
        holds(result.status == (0 if allowed else 2), result)
        holds(allowed or re.search("user namespace|seccomp", result.err), result)
        result = work.run("unshare", "-Ur", QUIPU, "stat", "-m", "host", "-p", str(os.getppid()), "-e", "cs", "--", "true")
        holds(result.status == 2 and "not one of this user namespace" in result.err, result)
        result = work.run("unshare", "-Ur", QUIPU, "stat", "-m", "host", "-j", "-e", "sched:sched_switch", "--", PROG, "1")
        if result.status == 0 and "sched:sched_switch:u" in result.err:  # tracefs is there, the kernel's side is not counted
            holds("kernel" in json_lines(result)[0].get("reason", ""), f"a 0 that is no count: {result}")


@test("without /sys the doctor's remedy is to mount it, not another kernel")
def without_sys(work):
    need("unshare")
    need("mount")
    result = work.run("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none /sys || exit 77; exec "$0" doctor --json', QUIPU)
    if result.status not in (0, 1):
        raise Skip("no private mount here")
    doctor = {line["name"]: line for line in json.loads(result.out)["lines"]}
    holds("mount -t sysfs" in doctor["PMUs"]["remedy"], doctor)
    holds("CONFIG" not in doctor["probes"]["remedy"], doctor["probes"])


@test("few descriptors and a thousand threads: all are counted, or the limit is named")
def many(work):
    need_events(work)
    need("prlimit")
    process = subprocess.Popen([PROG, "threads", "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holds(process.stdout.readline() == b"ready\n", "a thousand threads")
        command = [QUIPU, "stat", "-m", "host", "-j", "-e", "task-clock,cs", "-p", str(process.pid), "--", "true"]
        result = work.run("prlimit", "--nofile=64:64", *command, status=2)
        holds("file descriptor" in result.err and "ulimit -n" in result.err, result)
        result = work.run("prlimit", "--nofile=64:4096", *command, status=0)
        equal(len(json_lines(result)), 2, "two lines")
        work.quipu("record", "-q", "-m", "host", "-e", "cpu-clock", "-o", "m.data", "-p", str(process.pid), "--", "true",
                   env=environment(work.folder), status=0)
    finally:
        process.communicate()
    rows = stat(work, "cpu-migrations,task-clock", PROG, "threads", "1000")
    holds(float(rows["task-clock"]["counter-value"]) > 0, rows)


@test("--sysfs: the PMUs of another machine are listed and encoded, and not counted here")
def recorded(work):
    base = work.path("tree/bus/event_source/devices/dmar0/")
    for path, text in (("type", "40"), ("cpumask", "0"), ("format/event", "config:0-27"), ("format/event_group", "config:28-31"),
                       ("events/iotlb_hit", "event_group=0x3,event=0x002")):
        os.makedirs(os.path.dirname(base + path), exist_ok=True)
        with open(base + path, "w", encoding="ascii") as f:
            f.write(text + "\n")
    names = [row["name"] for row in json.loads(work.quipu("list", "--sysfs", "tree", "--json", "dmar", status=0).out)]
    holds("dmar0/iotlb_hit/" in names, names)
    result = work.quipu("stat", "--sysfs", "tree", "-e", "dmar0/iotlb_hit/", "--", "true")
    holds("another machine's" in result.err and "<not supported>" in result.err, result)
    result = work.quipu("stat", "--sysfs", "nowhere", "--", "true", status=2)
    holds("nowhere" in result.err and result.err.count("\n") == 1, result)


@test("inside quipu exec the calls are a machine's, and no count of theirs is called the host's")
def of_a_machine(work):
    inside = ("exec", "-m", "x86", "--", QUIPU)
    row = json_lines(work.quipu(*inside, "stat", "-m", "host", "-j", "-e", "instructions", "--", PROG, "threads", "10", status=0))[0]
    equal((row["class"], float(row["counter-value"]) > 0), ("modelled", True), row)
    text = work.quipu(*inside, "list", "-m", "host", "hw", status=0).out
    holds("machine of quipu exec" in text and "host" not in text, text)


@test("wrong command lines are one line with what to do")
def wrong(work):
    for args, word in ((["-m", "host", "-p", "1", "-t", "1"], "exclude"), (["-p", "x"], "numbers of processes"),
                       (["-p", "1", "-a"], "choose one"), (["-m", "riscv", "-p", "1", "true"], "modelled machine"),
                       (["-m", "host", "-C", "9999", "true"], "not online"), (["-m", "host", "--per-thread", "true"], "-p PID"),
                       (["-m", "host", "--timing", "full", "true"], "leave them out"),
                       (["-m", "host", "./nothing"], "No such file"), (["-m", "riscv", "--sysfs", ".", "true"], "-m host")):
        result = work.quipu("stat", *args)
        holds(result.status in (2, 127) and word in result.err and result.err.count("\n") == 1, result)
    for event, word in (("cpu-clok", "did you mean 'cpu-clock'"), ("mem:zzz", "address"), ("sched:nope", "sched")):
        result = work.quipu("stat", "-m", "host", "-e", event, "--", "true", status=2)
        holds(word in result.err and "^" in result.err, result)
    equal(work.quipu("stat", "-m", "host", "-e", "cs", "--", "sh", "-c", "exit 7").status, 7, "the program's status")


main()
