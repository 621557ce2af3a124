# SPDX-License-Identifier: BSD-2-Clause
"""Clients without a preload library (quipu exec --seccomp): the stock perf, a program without a C library, whatever they
start, and what is hostile to the process that speaks for them. perf ABI sheet C3, D6 case 100."""
import os
import signal
import subprocess
import sys

from harness import GUESTS, QUIPU, Skip, equal, main, need_namespace, test

GUEST = os.path.join(GUESTS, "true.riscv64")
BARE = os.environ.get("QUIPU_BARE")

if not BARE:
    print("1..0 # SKIP --seccomp is for x86-64 hosts")
    raise SystemExit(0)


def run(work, *words, check=0, timeout=120, **kw):
    done = subprocess.run(list(words), cwd=kw.pop("cwd", work.folder), capture_output=True, text=True, timeout=timeout,
                          check=False, errors="replace", **kw)
    if check is not None:
        assert done.returncode == check, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def below(work, *words, options=(), **kw):
    return run(work, QUIPU, "exec", "--seccomp", *options, "--", *words, **kw)


def inside(work, code, **kw):
    script = work.path("inside.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"GUEST = {GUEST!r}\n{INSIDE}{code}")
    return below(work, sys.executable, script, **kw).stdout


INSIDE = r"""
import ctypes, os, random, signal, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
speaker = os.getppid()
machine = int(os.environ["QUIPU_GATE"])
def target(pid, number):
    try: return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError: return ""
def descriptors(pid, but="-"):
    return len([n for n in os.listdir(f"/proc/{pid}/fd") if but not in target(pid, n)])
def count():
    out = subprocess.run(["perf", "stat", "-x,", "-e", "instructions", GUEST], capture_output=True, text=True, errors="replace").stderr
    found = [l.split(",")[0] for l in out.splitlines() if "instructions" in l]
    return found[0] if found else sys.exit(f"perf counted nothing: {out}")
def settle(pid, want, but="-"):
    for _ in range(1200):
        if descriptors(pid, but) <= want: return
        time.sleep(0.05)
    sys.exit(f"process {pid}: {[target(pid, n) for n in os.listdir(f'/proc/{pid}/fd')]}, {want} before")
"""


def first(text):
    """The count of an -x, table of one event."""
    return text.split(",")[0].strip().splitlines()[-1]


def own(work, *words, machine="riscv"):
    return first(run(work, QUIPU, "stat", "-m", machine, "-x,", "-e", "instructions", "--", *words).stderr)


@test("the stock perf, with no preload library, counts what quipu stat counts")
def stock_perf(work):
    equal(below(work, "sh", "-c", "echo ${LD_PRELOAD-none}").stdout.strip(), "none", "LD_PRELOAD of a client")
    for program, machine in ((GUEST, "riscv"), (os.path.join(GUESTS, "recurse.riscv64"), "riscv"), ("/bin/true", "x86")):
        got = below(work, "perf", "stat", "-x,", "-e", "instructions", program, options=("-m", machine))
        equal(first(got.stderr), own(work, program, machine=machine), program)


@test("the stock perf records, and what it records is the program's")
def stock_record(work):
    below(work, "perf", "record", "-o", "data", "-e", "instructions", "-c", "1000", os.path.join(GUESTS, "recurse.riscv64"))
    run(work, QUIPU, "record", "-o", "own", "-e", "instructions", "-c", "1000", os.path.join(GUESTS, "recurse.riscv64"))
    words = ("perf", "script", "-F", "ip", "-i")
    equal(run(work, *words, "data").stdout, run(work, *words, "own").stdout, "addresses of the samples")


@test("all CPUs of the machine, read together")
def all_cpus(work):
    need_namespace(work)
    out = below(work, "perf", "stat", "-x,", "-a", "-A", "-e", "instructions", GUEST).stderr
    equal(len([l for l in out.splitlines() if l.startswith("CPU")]), 8, out)


@test("a program without a C library counts, maps, waits and samples by system calls alone")
def bare(work):
    got = below(work, BARE, GUEST).stdout.split()
    want = own(work, GUEST)
    equal((got[0], got[1], got[3]), (want, str(int(want) // 1000), want), "count, samples, count of a vfork's")
    assert int(got[2]) >= 1, got


@test("where there is no namespace, and for whom has no privilege")
def unprivileged(work):
    equal(first(below(work, "perf", "stat", "-x,", "-e", "instructions", GUEST, options=("--no-ns",)).stderr),
          own(work, GUEST), "--no-ns")
    if os.geteuid():
        return
    if run(work, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", QUIPU, "doctor", check=None,
           cwd="/").returncode not in (0, 1):
        raise Skip("this build cannot be reached by another user")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "TMPDIR=/tmp")
    got = run(work, *nobody, QUIPU, "exec", "--seccomp", "--no-ns", "--", "perf", "stat", "-x,", "-e", "instructions",
              GUEST, cwd="/")
    equal(first(got.stderr), first(run(work, *nobody, QUIPU, "stat", "-x,", "-e", "instructions", GUEST, cwd="/").stderr),
          "nobody's")


@test("programs are started in every way, and those of the machine run")
def ways(work):
    got = inside(work, r"""
folder, name = os.path.split(GUEST)
ways = {
    "vfork": lambda: subprocess.run([GUEST]).returncode,
    "spawn": lambda: os.waitpid(os.posix_spawn(GUEST, [GUEST], os.environ), 0)[1],
    "path": lambda: subprocess.run([name], env=dict(os.environ, PATH="/nowhere:" + folder)).returncode,
    "directory": lambda: subprocess.run(["./" + name], cwd=folder).returncode,
    "no environment": lambda: subprocess.run([GUEST], env={}).returncode,
    "shell": lambda: subprocess.run(["sh", "-c", GUEST + " && exec " + GUEST]).returncode,
}
for way in ways: print(way, ways[way]())
def forked(f):
    pid = os.fork()
    if not pid:
        try: f()
        finally: os._exit(9)
    return os.waitpid(pid, 0)[1]
def thread():
    t = threading.Thread(target=lambda: os.execv(GUEST, [GUEST])); t.start(); t.join()
print("descriptor", forked(lambda: os.execve(os.open(GUEST, os.O_RDONLY), [GUEST], os.environ)))
print("thread", forked(thread))
for bad in ("/etc/passwd", "/nowhere"):
    try: subprocess.run([bad])
    except OSError as e: print(e.errno)
print("at once", [p.wait() for p in [subprocess.Popen([GUEST]) for _ in range(8)]])
""")
    equal(got.splitlines(), ["vfork 0", "spawn 0", "path 0", "directory 0", "no environment 0", "shell 0", "descriptor 0",
                             "thread 0", "13", "2", f"at once {[0] * 8}"], "exit statuses")


@test("a program in the client's own directory runs, with the preload library too")
def own_directory(work):
    folder, name = os.path.split(GUEST)
    for options in ((), ("--seccomp",)):
        run(work, QUIPU, "exec", *options, "--", "sh", "-c", f"cd {folder} && ./{name}")


@test("the client's end is the command's")
def ends(work):
    below(work, "sh", "-c", "exit 7", check=7)
    below(work, "sh", "-c", "kill -9 $$", check=137)
    below(work, "/nowhere/at/all", check=127)
    equal(below(work, "uname", "-m").stdout, "riscv64\n", "uname -m")
    p = subprocess.Popen([QUIPU, "exec", "--seccomp", "--", "sh", "-c", "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.1; done"],
                         stdout=subprocess.PIPE, text=True)
    equal(p.stdout.readline(), "ready\n", "the client")
    p.terminate()
    equal((p.stdout.read(), p.wait(timeout=120)), ("told\n", 3), "SIGTERM")


@test("one below another is refused by name; one with the preload library is not")
def nested(work):
    text = below(work, QUIPU, "exec", "--seccomp", "--", "true", check=126).stderr
    assert "another --seccomp" in text, text
    got = below(work, QUIPU, "exec", "--", "perf", "stat", "-x,", "-e", "instructions", GUEST).stderr
    assert first(got).isdigit(), got


@test("clients killed at any moment leave nothing behind, and others count on")
def killed(work):
    got = inside(work, r"""
before = count(); a = descriptors(speaker); b = descriptors(machine)
for i in range(20):
    words = (["perf", "record", "-q", "-a", "-o", "/dev/null", "-e", "cycles", "sleep", "5"], ["perf", "stat", GUEST])[i % 2]
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(random.random() * 0.1)
    os.killpg(p.pid, signal.SIGKILL); p.wait()
settle(speaker, a); settle(machine, b)
print(before, count())
""").split()
    equal(got[0], got[1], "counts before and after")


@test("system calls with random arguments are answered, and others count on")
def random_calls(work):
    seed, seconds = os.environ.get("QUIPU_FUZZ_SEED", "1"), float(os.environ.get("QUIPU_FUZZ_SECONDS", "3"))
    got = inside(work, rf"""
before = count(); a = descriptors(speaker); b = descriptors(machine, "pidfd")
random.seed({seed})
memory = ctypes.create_string_buffer(1 << 16); here = ctypes.addressof(memory)
libc.syscall.argtypes = [ctypes.c_long] * 7; libc.syscall.restype = ctypes.c_long
def number():
    return random.choice([0, 1, -1, 8, 4096, 9 * 4096, 700, 701, 702, 1 << 31, 1 << 63, random.getrandbits(64),
                          here, here + 65528, here + random.randrange(65536), random.getrandbits(10)]) & (1 << 64) - 1
def signed(v): return v - (1 << 64) if v >> 63 else v
def child(end):
    opened = 0
    while time.monotonic() < end:
        for i in range(24): memory[i * 8:i * 8 + 8] = number().to_bytes(8, "little")
        if random.random() < 0.5:  # an attr that may be right
            memory[0:8] = random.choice([b"\0\0\0\0", b"\1\0\0\0", b"\4\0\0\0"]) + (136).to_bytes(4, "little")
            for at in range(16, 136, 8): memory[at:at + 8] = random.choice([0, 0, 0, 1, 4096]).to_bytes(8, "little")
        fd = random.choice([700, 701, 702, 750, -1])
        nr, args = random.choice([
            (298, [here, random.choice([0, -1, os.getpid()]), random.choice([-1, 0, 1]), random.choice([-1, fd]), number() & 15]),
            (298, [number() for _ in range(5)]),
            (0, [fd, number(), random.choice([8, 64, number()])]), (19, [fd, here, random.choice([1, 3, 90])]),
            (1, [fd, here, 8]), (16, [fd, 0x2400 + random.randrange(14), number()]), (32, [fd]),
            (9, [0, random.choice([4096, 9 * 4096, number()]), random.choice([1, 3]), random.choice([1, 2]), fd, 0]),
            (72, [fd, random.choice([0, 3, 4, 1030]), random.choice([0, 710, 0x2000])]), (3, [fd]),
            (7, [random.choice([here, number()]), random.choice([1, 4, 4095, number()]), 0]), (203, [0, 128, number()]),
            (204, [0, random.choice([8, 128, number()]), number()]), (63, [number()]), (157, [random.choice([15, 31, 32]), number()]),
            (233, [number(), 1, fd, here]), (59, [number(), number(), number()]), (59, [here, here, here])])
        if nr in (0, 1, 19) and fd < 700: continue
        opened += libc.syscall(nr, *[signed(v & (1 << 64) - 1) for v in (args + [0] * 6)[:6]]) >= 0
    os._exit(0 if opened else 3)
# What a call writes may be where this interpreter keeps its own: each is a process that may die of it.
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    pids = []
    for _ in range(2):
        pid = os.fork()
        if not pid:
            random.seed(random.getrandbits(30) ^ os.getpid())
            child(min(end, time.monotonic() + 0.7))
        pids.append(pid)
    for pid in pids: os.waitpid(pid, 0)
settle(speaker, a); settle(machine, b, "pidfd")  # a process that an event was asked for is watched to its end
print(before, count())
""", timeout=10 * seconds + 120).split()
    equal(got[0], got[1], "counts before and after")


@test("whoever speaks for a client killed: the client ends, and so does the machine")
def speaker_killed(work):
    p = subprocess.Popen([QUIPU, "exec", "--seccomp", "--", sys.executable, "-c",
                          "import os, time; print(os.getppid(), flush=True); time.sleep(600)"],
                         stdout=subprocess.PIPE, text=True, start_new_session=True)
    os.kill(int(p.stdout.readline()), signal.SIGKILL)
    equal(p.wait(timeout=120), 137, "exit status")
    equal(p.stdout.read(), "", "all of them are gone")


@test("the machine killed: clients are refused events, end by themselves, and leave nobody behind")
def machine_killed(work):
    code = r"""
import ctypes, os, sys, time
print(os.environ["QUIPU_GATE"], flush=True); sys.stdin.readline()
libc = ctypes.CDLL(None, use_errno=True)
attr = ctypes.create_string_buffer(136); attr[0:8] = b"\1\0\0\0\x88\0\0\0"
print(libc.syscall(298, attr, 0, -1, -1, 0), ctypes.get_errno(), os.system("true"))
"""
    p = subprocess.Popen([QUIPU, "exec", "--seccomp", "--", sys.executable, "-c", code], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    os.kill(int(p.stdout.readline()), signal.SIGKILL)
    p.wait(timeout=120)
    rest, _ = p.communicate("\n", timeout=120)
    equal(rest, "-1 38 0\n", "perf_event_open, its errno, another program")


main()
