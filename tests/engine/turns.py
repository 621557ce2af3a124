#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""More threads than CPUs take turns in model time, and it is the same every time: engine sheet 10.1 and 10.4; cases 13
(the sums) and 19. What threads of different CPUs do to each other in memory is the host's, and so are sleeps beside
others: there the programs must end as they should, and nothing more is asked. TAP on standard output."""
import os
import re
import signal
import subprocess
import time

from tap import PATH, TMP, check, end

QUIPU, GUESTS, TREE = os.environ["QUIPU"], os.environ["ENGINE_GUESTS"], os.environ["RISCV_DTS"]
PROGRAMS = os.environ["QUIPU_GUEST_DIR"]
ENV = {"PATH": PATH, "QUIPU_PLUGIN": os.environ["PLUGIN"], "HOME": "/nonexistent"}
SLICE = 0.004  # seconds of model time


def run(*command):
    return subprocess.run(command, env=ENV, cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=250)


def guest(name):
    return f"{GUESTS}/{name}.riscv64"


def machine(cpus):
    """The shipped machine with the first @cpus of its CPUs, and no caches that they share."""
    with open(TREE, encoding="utf-8") as f:
        text = f.read()
    harts = "".join(re.sub(r"next-level-cache = [^;]*;", "", text[text.index(f"\t\thart{i}:"):text.index(f"\t\thart{i + 1}:")])
                    for i in range(cpus))
    pmu = re.sub(r"interrupts-extended = [^;]*;",
                 "interrupts-extended = " + ", ".join(f"<&intc{i} 13>" for i in range(cpus)) + ";", text[text.index("\tpmu {"):])
    path = f"{TMP}/cpus{cpus}.dts"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text[:text.index("\t\thart0:")] + harts + "\t};\n" + pmu)
    return path


def stat(tree, *command, options=()):
    """[(count, event, label)], and how it ended."""
    out = run(QUIPU, "stat", "-m", tree, "-x,", "-e", "instructions:u,loads:u,stores:u,branches:u,context-switches", *options,
              "--", *command)
    rows = [tuple(line.split(",")[i] for i in ((1, 3, -1) if options else (0, 2, -1)))
            for line in out.stderr.splitlines() if re.match(r"^(\S+-\d+,)?\d+,", line)]
    return rows, out


def same_sums():
    """Case 13, and the issue's: 8 threads, the sum of what each retired."""
    runs = [stat("riscv", guest("team"), "8", "100000", options=["--per-thread"]) for _ in range(10)]
    rows = [[row for row in rows if row[1] != "context-switches"] for rows, _ in runs]
    check("8 threads: what each of them retired is the same in 10 runs", rows[0] and all(r == rows[0] for r in rows),
          "\n".join(map(str, rows)))
    workers = [int(row[0]) for row in rows[0] if row[1] == "instructions:u"]
    check("and the workers' counts are equal", len(workers) == 9 and len(set(sorted(workers)[-8:])) == 1, workers)
    whole = [int(row[0]) for row in stat("riscv", guest("team"), "8", "100000")[0] if row[1] == "instructions:u"]
    check("and their sum is what the program as a whole retired", whole == [sum(workers)], f"{whole} {workers}")
    joined = [[row for row in stat("riscv", f"{PROGRAMS}/threads4.riscv64", "100000")[0] if row[2] == "exact"] for _ in range(10)]
    check("4 threads, and one that joins them: the sum of all five is the same in 10 runs",
          len(joined[0]) == 4 and all(r == joined[0] for r in joined), "\n".join(map(str, joined)))


def recorded(tree, event, period, *command):
    """[(rank of the thread by its birth, its CPU, time, ip)] of the samples, and how record ended. The host numbers threads
    from the first one on, which ran first, and after its last number from the beginning."""
    made = run(QUIPU, "record", "-m", tree, "-o", "turns.data", "-e", event, "-c", period, "--", *command)
    lines = run(QUIPU, "script", "-i", "turns.data", "-F", "tid,cpu,time,ip").stdout.split("\n")
    words = [re.match(r"\s*(\d+) \[(\d+)\]\s+([\d.]+):\s+(\w+)", line) for line in lines]
    tids = [int(m[1]) for m in words if m]
    rank = {tid: i for i, tid in enumerate(sorted(set(tids), key=lambda tid: (tid - tids[0]) % (1 << 22)))}
    return [(rank[int(m[1])], int(m[2]), float(m[3]), m[4]) for m in words if m], made


def same_choice():
    """Who is next when a child ends: its parent, if it waits longest, though the host may be slow to wake it."""
    runs = [recorded(machine(1), "instructions:u", "100", guest("crowd"), "fork", "5") for _ in range(6)]
    first = runs[0][0]
    check("five threads that fork, six recordings: the same threads run in the same order",
          len(first) > 50 and all(got == first for got, _ in runs),
          [next((x for x in zip(first, got) if x[0] != x[1]), len(got)) for got, _ in runs] + [runs[0][1].stderr])


def same_turns(cpus):
    tree = machine(cpus)
    runs = [stat(tree, guest("team"), "12", "3000000") for _ in range(3)]
    first, out = runs[0]
    check(f"12 threads on {cpus} CPUs: counts and switches are the same in 3 runs",
          len(first) == 5 and all(r[0] == first for r in runs), "\n".join(str(r[0]) for r in runs) + out.stderr)
    check(f"12 threads on {cpus} CPUs: they are switched", len(first) == 5 and int(first[4][0]) >= 12 - cpus, first)
    check("what they retire is exact, and whole", all(row[2] == "exact" for row in first[:4]) and
          int(first[0][0]) > 12 * 2 * 3000000, first)
    samples = []
    for i in (1, 2):
        got, made = recorded(tree, "cycles:u", "500009", guest("team"), "6", "5000000")
        samples.append(got)
        check(f"{cpus} CPUs: record works ({i})", made.returncode == 0 and len(got) > 100, made.stderr)
    check(f"{cpus} CPUs: two recordings have the same samples at the same times of the same CPUs", samples[0] == samples[1],
          [x for x in zip(*samples) if x[0] != x[1]][:4])
    for cpu in range(cpus):
        mine = [(when, tid) for tid, c, when, _ in samples[0] if c == cpu]
        turns = [b[0] for a, b in zip(mine, mine[1:]) if a[1] != b[1]]
        # The last turn of a thread may be short; every other is between half a slice and one and a half.
        check(f"{cpus} CPUs: on CPU {cpu} they take turns of a few ms", mine == sorted(mine, key=lambda x: x[0]) and
              2 <= len(turns) <= 2 * (mine[-1][0] - mine[0][0]) / SLICE + 8, f"{len(turns)} in {mine[-1][0]} s\n{turns}")


def too_many():
    rows, out = stat("riscv", guest("team"), "256", "100")
    check("257 threads at once: one cannot be counted, that is said, and no sum is called exact",
          "ran uncounted" in out.stderr and rows and all(row[2] != "exact" for row in rows), out.stderr)
    rows, out = stat("riscv", guest("team"), "250", "100")
    check("251 threads at once are counted, and exact", "uncounted" not in out.stderr and rows[0][2] == "exact" and
          int(rows[0][0]) > 250 * 200, out.stderr)


ENDS = {"exit": 7, "exec": 5, "fault": 139, "term": 143, "kill": 137}
# Decided by the machine: all on one CPU but the end of a sleep; on two, where a call ends threads of the other.
SAME = {1: ("order", "barrier", "pipe", "kick", "fork", "spin", "yield", *ENDS), 2: ("exit", "exec", "term", "kill")}


def crowds():
    for cpus in (1, 2):
        tree = machine(cpus)
        for what in ("order", "barrier", "pipe", "kick", "sleep", "fork", "spin", "yield", *ENDS):
            rows, out = stat(tree, guest("crowd"), what, "5")
            check(f"{cpus} CPU: five threads, {what}: it ends as it should, and its totals are there",
                  out.returncode == ENDS.get(what, 0) and rows and int(rows[0][0]) > 10000 and "lost" not in out.stderr,
                  f"{out.returncode}\n{out.stderr}")
            if what in SAME[cpus]:
                again = [stat(tree, guest("crowd"), what, "5")[0] for _ in range(5 if what == "kick" else 1)]
                check(f"{cpus} CPU: {what}: and the same once more", all(r == rows for r in again), f"{rows}\n{again}")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def threads(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:  # it has just ended
        return 0


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def bereft():
    """Case 18 with threads that wait for their turns: their machine is gone, and they go on by themselves."""
    quipu = subprocess.Popen([QUIPU, "stat", "-m", machine(1), "-e", "instructions:u", "--", guest("team"), "4", "20000000"],
                             env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end, pids = time.time() + 60, []
    while time.time() < end and not any(threads(p) > 4 for p in pids):
        pids = children(quipu.pid)
        if quipu.poll() is not None:
            break
    died = quipu.poll()
    quipu.send_signal(signal.SIGKILL)
    quipu.wait()
    while time.time() < end and any(map(alive, pids)):
        time.sleep(0.02)
    check("threads that wait for their turns go on when their machine is killed", died is None and pids and
          not any(map(alive, pids)), f"{died} {pids}")
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def busy(pid):
    """Has it had a tenth of a second of a CPU?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return int(f.read().rsplit(")", 1)[1].split()[11]) >= os.sysconf("SC_CLK_TCK") / 10
    except OSError:
        return False


SAMPLED = ["record", "-e", "instructions:u", "-c", "1000", "--", guest("recurse"), "37", "3"]
FORKS = ["stat", "-e", "instructions:u", "--", guest("heavy"), "forks", "2000"]
UNHEARD = {"killed": (signal.SIGKILL, SAMPLED), "stopped": (signal.SIGSTOP, SAMPLED),
           "stopped, and it forks": (signal.SIGSTOP, FORKS)}


def leave(command, sig, output):
    """A program that runs, and what became of its machine meanwhile; once more if the program was faster."""
    options = ["-o", output] if command is SAMPLED else []
    for _ in range(5):
        quipu = subprocess.Popen([QUIPU, command[0], *options, *command[1:]], env=ENV, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end, pids = time.time() + 60, []
        while time.time() < end and not any(map(busy, pids)) and quipu.poll() is None:
            pids = children(quipu.pid)
        quipu.send_signal(sig)
        if any(map(alive, pids)):
            break
        quipu.send_signal(signal.SIGCONT)
        quipu.communicate()
    return quipu, pids


def unheard():
    """The same of programs that need it often (more samples than the ring holds, many processes): they wait once, and not
    at all for one that was killed, though nobody has waited for its end yet."""
    machines = {how: leave(command, sig, f"{TMP}/{how}") for how, (sig, command) in UNHEARD.items()}
    end, ended = time.time() + 60, []
    while time.time() < end and len(ended) < len(machines):
        time.sleep(0.02)
        ended += [how for how, (_, pids) in machines.items() if how not in ended and not any(map(alive, pids))]
    for how, (quipu, pids) in machines.items():
        left = [pid for pid in pids if alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        quipu.send_signal(signal.SIGCONT)
        said = quipu.communicate()[1]
        check(f"a program whose machine is {how} waits once, and goes on", pids and not left, f"{pids} {left}\n{said}")
        if UNHEARD[how][0] == signal.SIGSTOP:
            check(f"{how}: and that it was not heard is said", quipu.returncode == 0 and "waits were lost" in said and
                  "partial" in said, f"{quipu.returncode}\n{said}")
    # Both have the same left to do, and one of them waits 10 s.
    check("a program whose machine was killed, and is a zombie, ends before one whose machine is stopped",
          "killed" in ended and "stopped" not in ended[:ended.index("killed")], ended)


def begins(pid):
    """Is it QEMU by now? What it waits for first is far behind that."""
    try:
        return "qemu" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


EARLY = {"alone": [guest("recurse"), "10"], "with threads": [guest("team"), "3", "1000"],
         "with processes": [guest("crowd"), "fork", "3"]}


def unheard_early():
    """A machine that stands still before it has heard of the program at all: what is said of it then is true."""
    machines = {}
    for how, command in EARLY.items():
        quipu = subprocess.Popen([QUIPU, "stat", "-x,", "-e", "instructions:u", "--", *command], env=ENV, cwd=TMP,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end, pids = time.time() + 60, []
        while time.time() < end and not any(map(begins, pids)) and quipu.poll() is None:
            pids = children(quipu.pid)
        quipu.send_signal(signal.SIGSTOP)
        machines[how] = quipu, pids
    end, never = time.time() + 60, 0
    for how, (quipu, pids) in machines.items():
        while time.time() < end and any(map(alive, pids)):
            time.sleep(0.02)
        ended = pids and not any(map(alive, pids))
        quipu.send_signal(signal.SIGCONT)
        said = quipu.communicate()[1]
        never += "went on without its machine" in said
        check(f"a program {how}, whose machine stops before it begins, runs to its end; that waits were lost is said, and "
              "not that it died", ended and quipu.returncode == 0 and "waits were lost" in said and "died" not in said and
              ",exact" not in said, f"{quipu.returncode} {ended}\n{said}")
    # The first bell of one may have been answered yet.
    check("and that nothing of it was counted", never > 0, never)


same_sums()
same_turns(1)
same_turns(2)
same_choice()
too_many()
crowds()
bereft()
unheard()
unheard_early()
end()
