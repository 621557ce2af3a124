# SPDX-License-Identifier: BSD-2-Clause
"""What the command-level tests have in common: TAP, running quipu on real guests, and the independent count.

A test file decorates functions with @test("what a user would miss") and ends with main(). A function fails by an
exception, is skipped by raising Skip(reason), and gets a Work: an empty folder of its own that is also its TMPDIR.
"""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

QUIPU = os.environ["QUIPU"]
GUESTS = os.environ["QUIPU_GUEST_DIR"]
EXEC_LOG = os.environ["QUIPU_EXEC_LOG"]
CROSS = "riscv64-linux-gnu-"
SYSROOT = "/usr/riscv64-linux-gnu"

# In the environment of all that a test starts, with its folder: what a failed test leaves running is found by it.
MARK = "QUIPU_TEST"

_tests = []


class Skip(Exception):
    """The host lacks what this test needs; the message says what."""


def test(name):
    def add(function):
        _tests.append((name, function))
        return function
    return add


def ended(number, frame):
    """Whoever ends us (Meson, after its timeout) ends what we started as well."""
    raise SystemExit(128 + number)


def main():
    """Runs the tests of the file, or those whose name contains the first argument."""
    signal.signal(signal.SIGTERM, ended)
    chosen = [t for t in _tests if len(sys.argv) < 2 or sys.argv[1] in t[0]]
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, (name, function) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory(prefix="quipu-test-") as folder:
            os.environ[MARK] = folder
            try:
                function(Work(folder))
                print(f"ok {number} - {name}", flush=True)
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {number} - {name}", flush=True)
                text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
                for line in (text or traceback.format_exc()).splitlines():
                    print("# " + line, flush=True)
            finally:
                end_all(f"{MARK}={folder}")
    return sys.exit(1 if failed else 0)


def equal(got, want, what):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def holds(condition, what):
    assert condition, what


def guest(name):
    return os.path.join(GUESTS, name + ".riscv64")


def environment(folder, **more):
    """Little, and the same for every run: a guest's start-up code walks through it, so it is part of the count."""
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TMPDIR": folder, "HOME": folder}
    for name, value in os.environ.items():
        # Where the built command lies, and how sanitizers behave, belong to the build under test.
        if name.startswith("QUIPU") or name.endswith("SAN_OPTIONS"):
            env[name] = value
    env.update(more)
    return env


class Result:
    def __init__(self, args, status, out, err):
        self.args, self.status, self.out, self.err = args, status, out, err

    def __str__(self):
        return (f"{' '.join(self.args)}\nstatus {self.status}\nstdout:\n{self.out[-1500:]}\n"
                f"stderr:\n{self.err[-1500:]}")


class Work:
    """A folder, and commands run in it."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args, status=None, timeout=240, env=None, stdin=None, cwd=None):
        done = subprocess.run(args, cwd=cwd or self.folder, env=env or environment(self.folder), timeout=timeout,
                              stdin=stdin or subprocess.DEVNULL, capture_output=True, check=False)
        result = Result(args, done.returncode, done.stdout.decode(errors="replace"),
                        done.stderr.decode(errors="replace"))
        if status is not None:
            assert result.status == status, f"status {result.status}, want {status}\n{result}"
        return result

    def quipu(self, *args, **keywords):
        return self.run(QUIPU, *args, **keywords)

    def inside(self, code, timeout=240):
        """What Python @code prints as a client of machine riscv, in words."""
        with open(self.path("inside.py"), "w", encoding="utf-8") as f:
            f.write(code)
        result = self.run(QUIPU, "exec", "-m", "riscv", "--", sys.executable, self.path("inside.py"), timeout=timeout,
                          status=0)
        return result.out.split()

    def start(self, *args, **keywords):
        """A command in the background, in a process group of its own, as a shell would start it."""
        return subprocess.Popen(args, cwd=self.folder, env=environment(self.folder), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **keywords)

    def stat(self, events, *command, options=(), status=0, **keywords):
        """`quipu stat -j`: the list of its objects, in order."""
        result = self.quipu("stat", "-j", "-e", events, *options, "--", *command, status=status, **keywords)
        return json_lines(result)

    def count(self, event, *command, **keywords):
        """One event's count of one program, as an integer."""
        return value(self.stat(event, *command, **keywords)[0])

    def record(self, *args, status=0, **keywords):
        """`quipu record -o perf.data ARGS`; the path of the file."""
        self.quipu("record", "-o", "perf.data", *args, status=status, **keywords)
        return self.path("perf.data")

    def samples(self, fields="tid,time,ip", data="perf.data"):
        """What the stock perf script says of each sample: one list of words per line."""
        result = self.run("perf", "script", "--ns", "-i", data, "-F", fields, status=0)
        return [line.split() for line in result.out.splitlines() if line.strip()]


def json_lines(result):
    rows = [json.loads(line) for line in (result.out + result.err).splitlines() if line.startswith("{")]
    assert rows, f"no JSON object in the output\n{result}"
    return rows


def value(row):
    """counter-value as an integer; perf writes it as a string with six decimals."""
    text = row["counter-value"]
    number = float(text)  # raises for <not counted>
    assert number == int(number), f"a count with a fraction: {row}"
    return int(text.split(".")[0]) if isinstance(text, str) else int(text)


# The independent count.

def qemu_log(work, command, periods=()):
    """(status, output lines of exec_log) for @command, run by QEMU alone, one instruction per block.

    The program gets what quipu's gets (input, pipes for output, environment, random seed): all of it is in the count.
    """
    read, write = os.pipe()
    with tempfile.TemporaryFile() as answer:
        counter = subprocess.Popen([EXEC_LOG] + [str(period) for period in periods], stdin=read, stdout=answer)
        os.close(read)
        qemu = subprocess.run(["qemu-riscv64", "-L", SYSROOT, "-seed", "1", "-singlestep", "-d", "in_asm,exec,nochain",
                               "-D", f"/dev/fd/{write}", *command], cwd=work.folder, env=environment(work.folder),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              pass_fds=[write], check=False)
        os.close(write)
        equal(counter.wait(), 0, "status of exec_log")
        answer.seek(0)
        return qemu.returncode, answer.read().decode().splitlines()


_counted = {}  # a log takes microseconds an instruction: each command's is read once


def qemu_count(work, *command):
    """(status, retired instructions, {pc: executions}) of a program, as QEMU's execution log has them."""
    if command not in _counted:
        status, lines = qemu_log(work, command)
        rows = [line.split() for line in lines]
        total = next(int(row[1]) for row in rows if row[0] == "total")
        _counted[command] = status, total, {int(row[1], 16): int(row[2]) for row in rows if row[0] == "pc"}
    return _counted[command]


def qemu_every(work, periods, *command):
    """(retired instructions, {period: the pc of every period-th of them}); the last one's pc is that of period 0."""
    pcs, total = {period: [] for period in periods}, 0
    for row in (line.split() for line in qemu_log(work, command, periods)[1]):
        if row[0] == "every":
            pcs[int(row[1])].append(int(row[2], 16))
        elif row[0] == "total":
            total = int(row[1])
        elif row[0] == "last":
            pcs[0] = [int(row[1], 16)]
    return total, pcs


# The program as its file says.

def functions(path):
    """[(start, end, name)] of the functions of an ELF file, in order of address."""
    out = subprocess.run([CROSS + "nm", "-S", "--defined-only", path], capture_output=True, check=True, text=True).stdout
    rows = []
    for line in out.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwWi":
            start = int(words[0], 16)
            rows.append((start, start + int(words[1], 16), words[3]))
    return sorted(rows)


def function_of(rows, pc):
    """Names of all functions that @pc lies in (aliases share an address)."""
    return {name for start, end, name in rows if start <= pc < end}


class Instruction:
    def __init__(self, address, word, name, operands):
        self.address, self.word, self.name, self.operands = address, word, name, operands


def disassembly(path):
    """{function: [Instruction]} as objdump prints it, real instruction names only (-M no-aliases)."""
    out = subprocess.run([CROSS + "objdump", "-d", "-M", "no-aliases", path], capture_output=True, check=True,
                         text=True).stdout
    table, current = {}, None
    for line in out.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
        if head:
            current = table.setdefault(head.group(1), [])
            continue
        words = re.match(r"^\s*([0-9a-f]+):\s+([0-9a-f]+)\s+(\S+)\s*([^#<]*)", line)
        if words and current is not None:
            current.append(Instruction(int(words.group(1), 16), int(words.group(2), 16), words.group(3),
                                       words.group(4).strip()))
    return table


# Nothing left behind.

def marked_processes(mark):
    """Pids of the processes whose environment holds @mark."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def end_all(mark, seconds=10):
    """Kills what a test left running, whatever sessions and groups it made for itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = marked_processes(mark)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.02)


def wait_until(what, condition, seconds=120):
    """Until condition() is true; a generous limit, for loaded machines."""
    end = time.monotonic() + seconds
    while not condition():
        holds(time.monotonic() < end, f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)


def computed(mark):
    """CPU seconds of the marked processes that are QEMU's."""
    ticks = 0
    for pid in marked_processes(mark):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name.startswith("qemu"):
            ticks += sum(int(n) for n in rest.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


class Traces:
    """What a command may leave behind: processes, memory objects, mounts, files outside and inside its folder."""

    def __init__(self, work):
        self.work = work
        self.mark = "TMPDIR=" + work.folder
        self.mounts = self._mounts()
        self.shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        self.files = set(os.listdir(work.folder))

    @staticmethod
    def _mounts():
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            return file.read()

    def check(self, allowed=()):
        """Asserts that nothing is left but the files in @allowed. A memfd lives only in a process that holds it."""
        for _ in range(200):
            left = marked_processes(self.mark)
            if not left:
                break
            time.sleep(0.1)
        names = []
        for pid in left:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    names.append(file.read().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
        holds(not names, f"processes left: {names}")
        equal(self._mounts(), self.mounts, "mounts")
        if self.shared or os.path.isdir("/dev/shm"):
            new = {n for n in set(os.listdir("/dev/shm")) - self.shared if "quipu" in n}
            holds(not new, f"left in shared memory: {new}")
        new = set(os.listdir(self.work.folder)) - self.files - set(allowed)
        holds(not new, f"files left: {sorted(new)}")


def one_line_error(result, *words):
    """A refusal: exactly one line on standard error, from quipu, that holds @words; a status that is not 0."""
    lines = [line for line in result.err.splitlines() if line.strip()]
    holds(result.status not in (0, None) and result.status > 0, f"no failure status\n{result}")
    equal(len(lines), 1, f"lines on standard error\n{result}\n")
    holds(lines[0].startswith("quipu: "), f"no 'quipu: ' in front\n{result}")
    for word in words:
        holds(re.search(word, lines[0], re.IGNORECASE), f"no {word!r} in the message\n{result}")


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


_namespace = []


def need_namespace(work):
    """The machine's /sys and /proc can be shown to programs that know nothing of SYSFS_PATH."""
    if not _namespace:
        _namespace.append("no mount namespace" not in work.quipu("exec", "--", "true").err)
    if not _namespace[0]:
        raise Skip("no mount namespace can be made here, as in a chroot")


def terminal():
    """(pid, descriptor) of a child on a pseudo terminal of its own, as pty.fork has it."""
    try:
        return pty.fork()
    except OSError as reason:
        raise Skip(f"no pseudo terminal can be opened here: {reason}") from reason


def interrupt(process):
    """Ctrl-C: the terminal sends SIGINT to the whole foreground group."""
    os.killpg(process.pid, signal.SIGINT)
