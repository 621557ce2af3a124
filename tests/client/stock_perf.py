# SPDX-License-Identifier: BSD-2-Clause
"""The stock perf on a modelled machine, as a user runs it. perf ABI sheet D6, cases 89-96; the judge of counts and
samples is quipu stat and quipu record of the same program in the same environment."""
import os
import platform
import re
import select
import shutil
import subprocess
import time

from harness import GUESTS, QUIPU, Skip, equal, main, need_namespace, terminal, test

if not shutil.which("perf"):
    print("1..0 # SKIP perf is not installed")
    raise SystemExit(0)


def run(work, *words, check=0, timeout=120, **kw):
    done = subprocess.run(list(words), cwd=work.folder, capture_output=True, text=True, timeout=timeout, check=False,
                          errors="replace", **kw)
    if check is not None:
        assert done.returncode == check, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def on_machine(work, *words, machine="riscv", options=(), **kw):
    return run(work, QUIPU, "exec", "-m", machine, *options, "--", *words, **kw)


def guest(name):
    return os.path.join(GUESTS, name + ".riscv64")


def fields(text):
    """name -> count of an -x, table."""
    got = {}
    for line in text.splitlines():
        part = line.split(",")
        if len(part) > 3 and (part[0].isdigit() or part[0].startswith("<")):
            got[part[2]] = part[0]
    return got


def stat(work, events, *words, perf=()):
    return fields(on_machine(work, "perf", "stat", "-x,", "-e", events, *perf, *words).stderr)


def own(work, events, *words):
    return fields(run(work, QUIPU, "stat", "-m", "riscv", "-x,", "-e", events, *words).stderr)


@test("perf list shows the machine's events, and nothing of the host's PMUs")
def list_events(work):
    out = on_machine(work, "perf", "list").stdout
    for wanted in ("cpu-cycles OR cycles", "instructions", "L1-dcache-loads", "branches-taken OR cpu/branches-taken/"):
        assert wanted in out, f"{wanted!r} is not in perf list"
    for absent in ("msr/", "power/", "uprobe/"):
        assert absent not in out, f"{absent!r} of the host shows"


@test("perf stat counts to the digit what quipu stat counts")
def counts_equal(work):
    events = "cycles,instructions,branches,L1-dcache-loads"
    for program in ("shapes-static", "shapes-dynamic", "true", "recurse"):
        equal(stat(work, events, guest(program)), own(work, events, guest(program)), program)


@test("what exec and perf add to the environment does not reach the program")
def environment(work):
    env = dict(os.environ, PREFIX="/somewhere", LONG="x" * 3000)
    a = run(work, QUIPU, "stat", "-x,", "-e", "instructions", guest("true"), env=env)
    b = on_machine(work, "perf", "stat", "-x,", "-e", "instructions", guest("true"), env=env)
    equal(fields(b.stderr), fields(a.stderr), "instructions")


@test("perf stat without events, and -d -d, with multiplexing")
def defaults(work):
    out = on_machine(work, "perf", "stat", "-d", "-d", guest("shapes-static")).stderr
    for name in ("task-clock", "cycles", "instructions", "branches", "L1-dcache-loads", "LLC-loads", "dTLB-loads"):
        line = next((l for l in out.splitlines() if re.search(rf"\s{name}\b", l)), "")
        assert line and "not supported" not in line, f"{name}: {line!r}"


@test("groups are counted as one, and through one read")
def groups(work):
    got = stat(work, "{cycles,instructions},{branches,L1-dcache-loads}", guest("shapes-static"))
    equal(got, own(work, "cycles,instructions,branches,L1-dcache-loads", guest("shapes-static")), "groups")


@test("-a, -A, -C and the aggregations know the machine's CPUs, and idle ones count 0")
def system_wide(work):
    need_namespace(work)
    want = own(work, "instructions", guest("shapes-static"))["instructions"]
    out = on_machine(work, "perf", "stat", "-x,", "-a", "-A", "-e", "instructions", guest("shapes-static")).stderr
    got = re.findall(r"^CPU(\d+),([^,]*)", out, re.M)
    equal(got, [("0", want)] + [(str(c), "0") for c in range(1, 8)], "-A")
    equal(stat(work, "instructions", guest("shapes-static"), perf=["-a"])["instructions"], want, "-a")
    equal(stat(work, "instructions", guest("shapes-static"), perf=["-C", "3"])["instructions"], "0", "-C 3")
    for option, lines in (("--per-socket", 1), ("--per-core", 8), ("--per-node", 1)):
        out = on_machine(work, "perf", "stat", "-x,", "-a", option, "-e", "instructions", guest("shapes-static")).stderr
        equal(len(re.findall(r"^[SN]\d", out, re.M)), lines, option)
        equal(sum(int(n) for n in re.findall(r"^[SN][^,]*,\d+,(\d+),", out, re.M)), int(want), option)


@test("-I prints intervals whose sum is the program's count")
def intervals(work):
    want = own(work, "instructions", guest("shapes-static"))["instructions"]
    for _ in range(20):  # perf prints no last interval when the program ends while it prints the one before
        out = on_machine(work, "perf", "stat", "-x,", "-I", "50", "-a", "-e", "instructions", guest("shapes-static")).stderr
        total = sum(int(n) for n in re.findall(r"^\s*[\d.]+,(\d+),", out, re.M))
        if total == int(want):
            return
        assert total < int(want), f"{total} in all intervals, {want} in the program"
    raise AssertionError(f"twenty times the intervals did not add up to {want}: {out}")


@test("-p and -t attach to a program that runs, and record -p ends when it does")
def attach(work):
    script = f"""{guest('spin')} > ready & pid=$!
while ! [ -s ready ]; do sleep 0.05; done
perf stat -x, -e instructions,cycles -p $pid sleep 1 2> by-pid
perf stat -x, -e instructions -t $pid sleep 1 2> by-tid
perf record -q -e cycles -c 100000 -o attached.data -p $pid & recorder=$!
n=0; until [ "$(stat -c %s attached.data 2>/dev/null || echo 0)" -gt 20000 ] || [ $n = 1000 ]; do n=$((n+1)); sleep 0.05; done
kill $pid; wait $recorder
perf script -i attached.data -F event | wc -l"""
    done = on_machine(work, "sh", "-c", script)
    for name in ("by-pid", "by-tid"):
        counts = fields(open(os.path.join(work.folder, name), encoding="utf-8").read())
        assert int(counts["instructions"]) > 1000, f"{name}: {counts}"
    assert int(done.stdout.split()[-1]) > 10, done.stdout


@test("attached to a program that runs, perf record knows its name and its functions, with -p and with -a")
def attach_symbols(work):
    need_namespace(work)
    script = f"""{guest('spin')} > ready & pid=$!
while ! [ -s ready ]; do sleep 0.05; done
for how in "-p $pid" -a; do
  n=0; while [ $n -lt 20 ]; do
    perf record -q -e cycles -c 100000 -o late.data $how sleep 1
    perf script -i late.data -F comm,ip,sym | sort -u > names
    [ -s names ] && break; n=$((n+1))  # a busy host: nothing ran meanwhile
  done
  cat names
done
kill $pid"""
    lines = [l.split() for l in on_machine(work, "sh", "-c", script).stdout.splitlines() if l.strip()]
    equal({(l[0], l[-1]) for l in lines}, {("spin.riscv64", "spin_forever")}, "names in samples")
    assert len(lines) >= 2, lines


@test("two clients of one PMU take turns on its counters, and each has its share of the time")
def two_clients(work):
    # Each CPU has 13 counters of its own, and nothing of any program on it: only times tell.
    events = ",".join(["instructions"] * 12)
    one = ["perf", "stat", "-x,", "-a", "-C", "3", "-e", events, "-o"]
    on_machine(work, *one, "first", *one, "second", "sleep", "1")
    for name, most in (("first", 99.9), ("second", 90)):
        lines = [l.split(",") for l in open(work.path(name), encoding="utf-8").read().splitlines() if ",instructions," in l]
        equal(len(lines), 12, name)
        shares = [float(l[4]) for l in lines]
        assert all(s > 0 for s in shares) and min(shares) < most, f"{name}: {shares}"


@test("a shell's programs inherit the events that are open on it")
def inherit(work):
    one = int(own(work, "instructions", guest("true"))["instructions"])
    two = int(stat(work, "instructions", "sh", "-c", f"{guest('true')}; {guest('true')}")["instructions"])
    # A program's path is the same, its environment has the shell's own variables.
    assert abs(two - 2 * one) < 2000, f"{two}, one program alone {one}"


@test("a program of the host's is not counted on a machine of another, or by its CPU time, and that is said")
def helper(work):
    if platform.machine() == "riscv64":
        raise Skip("the host's programs are the machine's")
    words, why = ("perf", "stat", "-x,", "-e", "instructions", "true"), "none of this machine's instruction set"
    err = on_machine(work, *words).stderr
    assert "<not counted>" in err and err.count(why) == 1, err
    err = run(work, QUIPU, "exec", "-m", "riscv", "--host-events", "--", *words).stderr
    assert why not in err and err.count("an instruction a cycle, and 0 of other events: modelled") == 1, err
    err = on_machine(work, "perf", "stat", "-x,", "-e", "instructions", "sh", "-c", f"{guest('true')}; true").stderr
    assert why not in err, err


@test("perf stat record and report")
def stat_record(work):
    want = own(work, "instructions", guest("shapes-static"))["instructions"]
    on_machine(work, "perf", "stat", "record", "-o", "stat.data", "-e", "instructions", guest("shapes-static"))
    out = on_machine(work, "perf", "stat", "report", "-i", "stat.data").stderr
    assert want in out.replace(",", ""), out


@test("perf record takes the very samples that quipu record takes")
def samples(work):
    for extra in (["-c", "1000"], ["-F", "20000"]):
        on_machine(work, "perf", "record", "-q", "-e", "cycles", *extra, "-o", "p.data", guest("shapes-static"))
        run(work, QUIPU, "record", "-q", "-e", "cycles", *extra, "-o", "q.data", guest("shapes-static"))
        a, b = (run(work, "perf", "script", "-i", f, "-F", "time,ip,period,event").stdout for f in ("p.data", "q.data"))
        assert len(a.splitlines()) > 15, a
        equal(a, b, f"samples with {extra}")


@test("perf record -g, report and script name the program's functions")
def call_graph(work):
    on_machine(work, "perf", "record", "-q", "-g", "-c", "5000", "-o", "g.data", guest("shapes-static"))
    out = on_machine(work, "perf", "report", "--stdio", "-i", "g.data").stdout
    for name in ("main", "shape_work", "_start"):
        assert name in out, f"{name} is not in the report"
    out = run(work, "perf", "script", "-i", "g.data", "--show-mmap-events", "--show-task-events").stdout
    first = [m.group(1) for m in re.finditer(r"PERF_RECORD_(COMM exec|MMAP2|EXIT)|cycles:", out)]
    equal(first[:2], ["COMM exec", "MMAP2"], "what comes before the first sample")
    assert "PERF_RECORD_EXIT" in out


@test("perf record -a has the samples of all programs, on the CPUs they ran on")
def record_all(work):
    on_machine(work, "perf", "record", "-q", "-a", "-c", "10000", "-o", "a.data", guest("shapes-static"))
    out = run(work, "perf", "script", "-i", "a.data", "-F", "comm,cpu").stdout.split("\n")
    cpus = {line.split()[-1] for line in out if line.strip()}
    equal(cpus, {"[000]"}, "CPUs with samples")


@test("perf top on a terminal draws and ends")
def top(work):
    need_namespace(work)
    pid, fd = terminal()
    if not pid:
        os.chdir(work.folder)
        os.execv(QUIPU, [QUIPU, "exec", "-m", "riscv", "--", "perf", "top", "--stdio", "-d", "1"])
    seen, end = b"", time.monotonic() + 100
    while b"PerfTop" not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 1)[0]:
            seen += os.read(fd, 65536)
    os.write(fd, b"q\n")
    gone = 0
    while not gone and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                os.read(fd, 65536)
            except OSError:
                pass
        gone = os.waitpid(pid, os.WNOHANG)[0]
    if not gone:
        os.kill(pid, 9)
    assert b"8 CPUs" in seen, seen
    assert gone, "it did not end"


@test("the status of the command is the command's, and a missing one is 127")
def status(work):
    for words, want in ((["sh", "-c", "exit 7"], 7), (["true"], 0), (["no-such-command"], 127), (["sh", "-c", "kill -9 $$"], 137)):
        on_machine(work, *words, check=want)
    on_machine(work, "perf", "stat", "--", guest("exit3"), check=3)


@test("nproc and the C library count the machine's CPUs")
def cpus(work):
    need_namespace(work)
    equal(on_machine(work, "nproc").stdout.strip(), "8", "nproc")
    equal(on_machine(work, "getconf", "_NPROCESSORS_ONLN").stdout.strip(), "8", "getconf")


@test("perf's own tests of sampling, exit, clocks and times pass")
def perf_test(work):
    for number in (8, 24, 25, 28, 50):
        out = on_machine(work, "perf", "test", str(number))
        assert ": Ok" in out.stdout + out.stderr, out.stdout + out.stderr


@test("an ordinary user needs no privilege")
def unprivileged(work):
    if os.geteuid():
        raise Skip("already an ordinary user: all of the above")
    os.chmod(work.folder, 0o777)
    done = run(work, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", QUIPU, "exec", "--", "perf",
               "stat", "-x,", "-e", "instructions", guest("true"), check=None)
    if "no mount namespace" in done.stderr or "Permission denied" in done.stderr:
        raise Skip(done.stderr.strip().splitlines()[0])
    assert int(fields(done.stderr)["instructions"]) > 1000, done.stderr


@test("--no-ns counts the same, and nothing is left behind")
def leftovers(work):
    before = set(os.listdir(work.folder)), open("/proc/self/mountinfo", encoding="utf-8").read()
    env = dict(os.environ, TMPDIR=work.folder)
    want = fields(run(work, QUIPU, "stat", "-x,", "-e", "instructions", guest("true"), env=env).stderr)
    for options in ((), ("--no-ns",)):
        done = on_machine(work, "perf", "stat", "-x,", "-e", "instructions", guest("true"), options=options, env=env)
        equal(fields(done.stderr), want, str(options))
    equal((set(os.listdir(work.folder)), open("/proc/self/mountinfo", encoding="utf-8").read()), before, "files and mounts")


@test("an x86-64 program that perf starts runs under the engine, perf itself does not")
def x86(work):
    a = run(work, QUIPU, "stat", "-m", "x86", "-x,", "-e", "instructions", "/bin/true", check=None)
    if a.returncode:
        raise Skip(a.stderr.strip())
    b = on_machine(work, "perf", "stat", "-x,", "-e", "instructions", "/bin/true", machine="x86")
    equal(fields(b.stderr), fields(a.stderr), "instructions of /bin/true")


main()
