# SPDX-License-Identifier: BSD-2-Clause
"""Clients that misbehave: the machine, its other clients and the programs go on, nothing leaks. perf ABI sheet D6 101."""
import os
import random
import re
import signal
import socket
import struct
import subprocess
import time

from harness import GUESTS, QUIPU, equal, main, test

GUEST = os.path.join(GUESTS, "true.riscv64")
DESCRIPTOR = os.environ["QUIPU_DESCRIPTOR"]
FUZZ_CALLS = os.environ["QUIPU_FUZZ_CALLS"]

# Runs inside: asks the machine for how it stands by looking at its descriptors.
INSIDE = r"""
import os, random, signal, socket, struct, subprocess, sys, time
machine = int(os.environ["QUIPU_GATE"])
def descriptors():
    return len(os.listdir(f"/proc/{machine}/fd"))
def dial():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(f"\0quipu/{machine}/gate")
    return s
def request(op, event=0, args=(), payload=b"", tid=0, ran=0):
    args = (list(args) + [0] * 6)[:6]
    return struct.pack("<IIQ7Q", op, tid or os.getpid(), event, *[a & (1 << 64) - 1 for a in args], ran) + payload
def count():
    out = subprocess.run(["perf", "stat", "-x,", "-e", "instructions", GUEST], capture_output=True, text=True).stderr
    return [l.split(",")[0] for l in out.splitlines() if "instructions" in l][0]
def steady():
    seen = [descriptors()]  # what was closed last may still be open there
    while len(seen) < 20 or len(set(seen[-20:])) > 1:
        time.sleep(0.02)
        seen.append(descriptors())
    return seen[-1]
def settle(want):
    for _ in range(1200):
        if descriptors() <= want: return
        time.sleep(0.05)
    sys.exit(f"{descriptors()} descriptors, {want} before")
"""


def inside(work, code, **keywords):
    return work.inside(f"GUEST = {GUEST!r}\nDESCRIPTOR = {DESCRIPTOR!r}\nFUZZ_CALLS = {FUZZ_CALLS!r}\n" + INSIDE + code,
                       **keywords)


@test("a client killed at any moment leaves nothing behind, and others count on")
def killed(work):
    got = inside(work, r"""
first = count(); before = steady()
for i in range(12):
    p = subprocess.Popen(["perf", "record", "-q", "-a", "-o", "/dev/null", "-e", "cycles", "sleep", "5"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(0.02 * i)
    os.killpg(p.pid, signal.SIGKILL); p.wait()
settle(before)
print(first, count())
""")
    equal(got[0], got[1], "counts before and after")


@test("random requests: answers or a hang-up, and the machine goes on")
def fuzz(work):
    seed = int(os.environ.get("QUIPU_FUZZ_SEED", "1"))
    seconds = float(os.environ.get("QUIPU_FUZZ_SECONDS", "3"))
    got = inside(work, rf"""
first = count(); before = steady(); random.seed({seed}); end = time.monotonic() + {seconds}; n = 0
def word(): return random.choice([0, 1, 2, 8, 4096, 8192, (1 << 64) - 1, random.getrandbits(64), random.randrange(64)])
def attr():
    a = bytearray(struct.pack("<IIQQQQQ", random.choice([0, 1, 3, 4, 6, 9]), random.choice([0, 64, 128, 136]), word() & 15, word() & 0xffff,
                              random.getrandbits(25), random.getrandbits(5), random.getrandbits(38) & random.getrandbits(38)).ljust(136, b"\0"))
    for _ in range(random.choice([0, 0, 1, 3])): a[random.randrange(len(a))] = random.randrange(256)
    return bytes(a)
s = None; fds = []
while time.monotonic() < end:
    if not s or random.random() < 0.01:
        if s: s.close()
        s = dial(); s.settimeout(5)
    op = random.choice([1, 2, 2, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 18, 19, 20, 99])
    args = [word() for _ in range(6)]
    if op == 1: args[0] = 2
    if op == 2: args = [random.choice([0, os.getpid(), -1, 1 << 40]), random.choice([-1, 0, 1, 7, 8]), random.choice([0, random.randrange(60)]), random.randrange(16)]
    if op == 5: args = [0x2400 + random.randrange(14), random.choice([0, 1, 3, word()])]
    if op in (16, 18): args = [random.choice([0, os.getpid(), os.getppid(), word()]), word() & 15]
    if op == 6: args = [random.choice([4096, 8192, 9 * 4096, 1 << 20, word()]), random.randrange(2), 0]
    payload = attr() if op == 2 else os.urandom(random.choice([0, 8, 300])) if random.random() < 0.3 else b""
    ran = word() if random.random() < 0.1 else 0
    message = request(op, random.randrange(1, 80) if random.random() < 0.9 else word(), args, payload, ran=ran)
    if random.random() < 0.1:  # posted: it has no answer
        s.send(request(5 | 1 << 31, random.randrange(1, 80), [0x2400 + random.randrange(14), word(), word()]))
    if random.random() < 0.01: message = message[:random.randrange(len(message))] or b"x"
    try:
        s.send(message)
        answer, got, flags, address = socket.recv_fds(s, 70000, 4)
        fds += got
        if not answer: s.close(); s = None
    except OSError:
        s.close(); s = None
    while len(fds) > 60: os.close(fds.pop(random.randrange(len(fds))))
    n += 1
if s: s.close()
for f in fds: os.close(f)
settle(before + 1)  # a process that events were opened on is watched to its end
print(first, count(), n)
""", timeout=seconds + 120)
    equal(got[0], got[1], "counts before and after")
    assert int(got[2]) > 500, got


@test("random calls of the system call and its relatives: answers, and the machine goes on")
def fuzz_calls(work):
    seed = int(os.environ.get("QUIPU_FUZZ_SEED", "1"))
    seconds = int(os.environ.get("QUIPU_FUZZ_SECONDS", "3"))
    got = inside(work, rf"""
first = count(); before = steady()
done = subprocess.run([FUZZ_CALLS, "{seed}", "{seconds}", GUEST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
if done.returncode: sys.exit(f"the client ended with {{done.returncode}}: {{done.stderr}}")
settle(before)
print(first, count(), done.stdout)
""", timeout=10 * seconds + 120)
    equal(got[0], got[1], "counts before and after")
    assert int(got[2]) > 100 and int(got[3]) > 5, got


@test("when the last event that goes is a CPU's, the threads that others were of are forgotten too")
def last_of_a_cpu(work):
    got = inside(work, r"""
import ctypes
first = count(); libc = ctypes.CDLL(None, use_errno=True)
attr = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", 1, 128, 0, 0, 0, 0, 0).ljust(128, b"\0"), 128)  # cpu-clock
others = [subprocess.Popen(["sleep", "100"]) for _ in range(3)]
clock = lambda pid, cpu: libc.syscall(298, attr, pid, cpu, -1, 0)
os.close(clock(-1, 0)); before = steady()
mine = [clock(p.pid, -1) for p in others]; last = clock(-1, 0)
grown = steady() - before
for fd in mine: os.close(fd)
os.close(last); settle(before)
for p in others: p.kill(); p.wait()
print(first, count(), min(mine) >= 0 and last >= 0, grown > 3)
""")
    equal(got[0], got[1], "counts before and after")
    equal(got[2:], ["True", "True"], got)


@test("a client that scribbles over its control page loses its own records alone")
def scribbler(work):
    got = inside(work, r"""
import mmap
first = count(); s = dial(); s.send(request(1, args=[2])); s.recv(100)
attr = struct.pack("<IIQQQQQ", 1, 128, 0, 100000, 1, 0, 0).ljust(128, b"\0")
s.send(request(2, args=[0, -1, 0, 0], payload=attr)); answer, fds, f, a = socket.recv_fds(s, 100, 1)
event = struct.unpack_from("<q2I4Q", answer)[3]
s.send(request(6, event, [9 * 4096, 1])); answer, ring, f, a = socket.recv_fds(s, 100, 1)
m = mmap.mmap(ring[0], 9 * 4096)
for i in range(300):
    m[:] = os.urandom(len(m)); s.send(request(5, event, [0x2400, 0])); s.recv(100)
    sum(range(20000))
    s.send(request(4, event, [8])); s.recv(100)
print(first, count())
""")
    equal(got[0], got[1], "counts before and after")


@test("a client that never reads its buffer loses its own records alone, and is told how many")
def idle_reader(work):
    got = inside(work, r"""
import ctypes, mmap
first = count(); libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
attr = bytearray(128)  # instructions, each 20th, its address; read: the count and the lost; off until the exec, user mode
struct.pack_into("<IIQQQQQ", attr, 0, 0, 128, 1, 20, 1, 1 << 4, 1 | 1 << 5 | 1 << 12)
go = os.pipe(); pid = os.fork()
if not pid:
    os.read(go[0], 1); os.execv(GUEST, [GUEST])
fd = libc.syscall(298, ctypes.create_string_buffer(bytes(attr), 128), pid, -1, -1, 0)
ring = libc.mmap(None, 2 * 4096, 3, 1, fd, 0)
os.write(go[1], b"x"); status = os.waitpid(pid, 0)[1]
value, lost = struct.unpack("<QQ", os.read(fd, 16))
head, tail = struct.unpack("<QQ", ctypes.string_at(ring + 1024, 16))
print(first, count(), status, value, lost > 0, 0 < head <= 4096, tail, lost + head // 16 >= value // 20 // 2)
""")
    equal(got[0], got[1], "counts before and after")
    equal(got[2:3] + got[4:], ["0", "True", "True", "0", "True"], f"its program's end, records lost, a full buffer: {got}")
    assert int(got[3]) > 10000, got


@test("a client that never takes its answers is let go")
def deaf(work):
    got = inside(work, r"""
first = count(); before = steady(); s = dial(); s.setblocking(False)
try:
    for i in range(200000): s.send(request(1, args=[2]))
except OSError: pass
settle(before + 1)
print(first, count())
""")
    equal(got[0], got[1], "counts before and after")


@test("events beyond the descriptors' limit are refused by name, and freed again")
def many(work):
    inside(work, r"""
before = steady(); s = dial(); fds = []
attr = struct.pack("<IIQQQQQ", 1, 128, 9, 0, 0, 0, 1).ljust(128, b"\0")
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)) if resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 4096 else None
for i in range(3000):
    s.send(request(2, args=[0, -1, 0, 0], payload=attr)); answer, got, f, a = socket.recv_fds(s, 100, 1)
    fds += got
    if struct.unpack_from("<q", answer)[0] < 0: break
assert len(fds) > 500, len(fds)
for f in fds: os.close(f)
settle(before + 2)  # the connection, and the watch on us
""")


@test("the machine outlives the command's children, and ends with the last of them")
def lingering(work):
    start = time.monotonic()
    subprocess.run([QUIPU, "exec", "-m", "riscv", "--", "sh", "-c", "sleep 1 & exit 0"], check=True, timeout=120)
    assert time.monotonic() - start >= 0.9, "it ended before its background job"


@test("the machine killed: its clients and programs end by themselves")
def machine_killed(work):
    p = subprocess.Popen([QUIPU, "exec", "-m", "riscv", "--", "perf", "stat", "-e", "cycles", "sleep", "1"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(0.4)
    os.kill(p.pid, signal.SIGKILL)
    p.stderr.read()  # ends when perf does
    p.wait(timeout=120)


main()
