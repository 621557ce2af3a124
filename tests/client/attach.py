# SPDX-License-Identifier: BSD-2-Clause
"""Events that come to programs that run already, and go again: an event counts from where it was opened, to the
instruction, whatever else is opened and closed meanwhile; nothing is counted while nothing is open. The guest does a
piece of work for each byte that it is sent, so everything here goes by its work, and nothing by the clock."""
import os

from harness import GUESTS, QUIPU, equal, main, test

GUEST = os.path.join(GUESTS, "obey.riscv64")
READ = "0" if os.uname().machine == "x86_64" else "63"  # the host's number; inside, the machine is another

INSIDE = r"""
import ctypes, mmap, os, signal, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
INSTRUCTIONS, BRANCHES, BRANCH_MISSES, L1D_MISSES = (0, 1), (0, 4), (0, 5), (3, 0x10000)
INHERIT = 2
def event(what, pid, flags=0):
    attr = bytearray(128)
    struct.pack_into("<IIQ", attr, 0, what[0], 128, what[1])
    struct.pack_into("<Q", attr, 40, flags)
    fd = libc.syscall(298, ctypes.create_string_buffer(bytes(attr), 128), pid, -1, -1, 0)
    assert fd >= 0, f"{what}: {os.strerror(ctypes.get_errno())}"
    return fd
def value(fd):
    return struct.unpack("<Q", os.read(fd, 8))[0]
class Guest:
    def __init__(self):
        self.p = subprocess.Popen([GUEST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.p.pid
        self.do(b"w")
    def send(self, what):
        self.p.stdin.write(what)
    def hear(self, n):
        while n:
            got = len(self.p.stdout.read(n))
            assert got, "the guest has ended"
            n -= got
    def do(self, what):
        self.send(what)
        self.hear(len(what))
    def end(self):
        self.p.stdin.close()
        assert self.p.wait() == 0
        self.p.stdout.close()
    def threads(self):
        return sorted(int(t) for t in os.listdir(f"/proc/{self.pid}/task"))
# Not by its state: it sleeps in other places too.
def waits(tid):
    try:
        with open(f"/proc/{tid}/syscall") as f:
            return f.read().split()[:2] == [READ, "0x0"]
    except OSError:
        return False
def wait_for(what):
    for _ in range(6000):
        if what(): return
        time.sleep(0.02)
    sys.exit("it never happened")
# What the first thread has counted, in the memory that machine and engine share (src/engine/segment.h).
def segment():
    for fd in os.listdir(f"/proc/{os.environ['QUIPU_GATE']}/fd"):
        path = f"/proc/{os.environ['QUIPU_GATE']}/fd/{fd}"
        if os.readlink(path).startswith("/memfd:quipu (") and os.stat(path).st_size > 1 << 30:
            return open(path, "rb")
def counted(file):
    at = os.pread(file.fileno(), 128, 131072)
    acc, pre = struct.unpack_from("<H14xH", at)
    return struct.unpack_from("<q", at, 64)[0] + (acc - pre & 0xffff)
"""


def inside(work, code):
    return work.inside(f"GUEST, READ = {GUEST!r}, {READ!r}\n" + INSIDE + code)


@test("an event counts from its opening on, to the instruction, and others that come and go do not touch it")
def others(work):
    steps = inside(work, r"""
g = Guest()
wait_for(lambda: waits(g.pid))
a = event(INSTRUCTIONS, g.pid)
last = 0
def step(what=b"w"):
    global last
    g.do(what)
    wait_for(lambda: waits(g.pid))
    now = value(a)
    print(now - last)
    last = now
step(); step()
for round in range(3):
    for other in ((L1D_MISSES,), (BRANCH_MISSES, BRANCHES), (BRANCHES,), (BRANCH_MISSES, L1D_MISSES)):
        fds = [event(what, g.pid) for what in other]
        step()
        assert all(value(fd) for fd in fds), [value(fd) for fd in fds]
        for fd in fds: os.close(fd)
        step()
os.close(a); last = 0
a = event(INSTRUCTIONS, g.pid)
step(); step()
g.end()
""")
    equal(len(steps), 28, steps)
    equal(len(set(steps)), 1, steps)
    assert int(steps[0]) > 20000, steps


@test("a program on which nothing is open is not counted, and one that computes is from its attach on")
def rests(work):
    inside(work, r"""
g = Guest()
seg = segment()
def stands():
    before = counted(seg)
    g.do(b"w")
    return counted(seg) == before
wait_for(stands)
for round, what in enumerate((INSTRUCTIONS, BRANCH_MISSES, L1D_MISSES)):
    g.send(b"s")
    fd = event(what, g.pid)
    first = value(fd)
    wait_for(lambda: value(fd) > first)
    os.kill(g.pid, signal.SIGUSR1)
    g.hear(1)
    assert not stands(), what
    os.close(fd)
    wait_for(stands)
g.end()
""")


@test("eight threads: what all of them count is the same to the instruction while others come and go")
def threads(work):
    steps = inside(work, r"""
g = Guest()
wait_for(lambda: waits(g.pid))
a = event(INSTRUCTIONS, g.pid, INHERIT)
g.do(b"c" * 7)
def still():
    wait_for(lambda: sum(waits(t) for t in g.threads()) == 8)
still()
last = value(a)
def step():
    global last
    g.do(b"w" * 64)
    still()
    now = value(a)
    print(now - last)
    last = now
step()
for round in range(4):
    fds = [event(what, t) for what in (L1D_MISSES, BRANCH_MISSES) for t in g.threads()]
    step()
    assert sum(value(fd) for fd in fds)
    for fd in fds: os.close(fd)
    step()
g.end()
""")
    equal(len(steps), 9, steps)
    equal(len(set(steps)), 1, steps)


@test("forks: an inherited event has all of a child, and others that come while it runs change nothing")
def forks(work):
    steps = inside(work, r"""
g = Guest()
wait_for(lambda: waits(g.pid))
a = event(INSTRUCTIONS, g.pid, INHERIT)
last = 0
def step():
    global last
    g.do(b"f")
    wait_for(lambda: waits(g.pid))
    now = value(a)
    print(now - last)
    last = now
g.do(b"f")
wait_for(lambda: waits(g.pid))
last = value(a)
step()
for round in range(4):
    fd = event(L1D_MISSES if round % 2 else BRANCH_MISSES, g.pid, INHERIT)
    step()
    assert value(fd)
    os.close(fd)
    step()
g.end()
""")
    equal(len(steps), 9, steps)
    equal(len(set(steps)), 1, steps)


main()
