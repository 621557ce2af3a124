#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labels, reasons and endings are true: what is estimated, partial, refused, died or did not fit on the disk."""
import fcntl
import os
import re
import shutil
import signal
import struct
import termios

from harness import QUIPU, SYSROOT, Skip, environment, equal, guest, holds, json_lines, main, need, one_line_error, terminal, test

SMALL_DISK = 'mkdir disk && mount -t tmpfs -o size=64k none disk && cd disk && '


def uncountable(work):
    """A program that the engine does not follow: 32 bits, exit(0)."""
    code = bytes.fromhex("31db 31c0 40 cd80")  # xor ebx,ebx; xor eax,eax; inc eax; int 0x80
    base, size = 0x08048000, 52 + 32 + len(code)
    head = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    load = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
    with open(work.path("small32"), "wb") as file:
        file.write(head + load + code)
    os.chmod(work.path("small32"), 0o755)
    if work.run(work.path("small32")).status:
        raise Skip("this host runs no 32-bit programs")
    return work.path("small32")


@test("an estimate is labelled estimate in JSON too, and its truth says what it is")
def estimates(work):
    rows = work.stat(",".join(["instructions", "cycles", "loads"] * 8), guest("recurse"), "29")
    rotated = [row for row in rows if row.get("estimate")]
    holds(rotated, "nothing was multiplexed")
    for row in rotated:
        equal(row["class"], "estimate", f"class of {row}")
        equal(row["exact-value-class"], "modelled" if "cycles" in row["event"] else "exact", f"truth of {row}")


@test("a run of which a part was not counted is partial in table, fields, JSON, file and recording, nowhere exact")
def partial(work):
    command = ["--", guest("execer"), uncountable(work)]
    text = work.quipu("stat", "-e", "instructions,cycles", *command, status=0)
    holds(re.search(r"instructions +partial", text.err) and re.search(r"cycles +modelled", text.err), f"table\n{text}")
    holds("not whole" in text.err and " exact" not in text.err, f"table\n{text}")
    fields = work.quipu("stat", "-x,", "-e", "instructions", *command, status=0).err
    holds(fields.splitlines()[0].endswith(",partial"), fields)
    equal(work.stat("instructions", *command[1:])[0]["class"], "partial", "JSON")
    work.quipu("stat", "-o", "out", "-e", "instructions", *command, status=0)
    with open(work.path("out"), encoding="utf-8") as file:
        holds("partial" in file.read(), "file of -o")
    done = work.quipu("record", "-e", "instructions", "-c", "1000", *command, status=0)
    holds("samples, partial)" in done.err, f"record\n{done}")
    holds("(partial)" in work.quipu("report", status=0).out, "report")


CROWD = """#include <pthread.h>
static pthread_barrier_t all;
static void *wait_for_all(void *arg) { pthread_barrier_wait(&all); return arg; }
int main(void)
{
	static pthread_t t[300];
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	pthread_barrier_init(&all, 0, 301);
	for (int i = 0; i < 300; i++)
		if (pthread_create(&t[i], &a, wait_for_all, 0)) return 1;
	pthread_barrier_wait(&all);
	for (int i = 0; i < 300; i++) pthread_join(t[i], 0);
	return 0;
}
"""


@test("more threads at a time than have records: partial, and the note tells how many are counted")
def crowd(work):
    need("riscv64-linux-gnu-gcc")
    with open(work.path("crowd.c"), "w", encoding="utf-8") as file:
        file.write(CROWD)
    work.run("riscv64-linux-gnu-gcc", "-O2", "-static", "-pthread", "-o", "crowd", "crowd.c", status=0)
    text = work.quipu("stat", "-e", "instructions", "./crowd", status=0)
    holds(re.search(r"instructions +partial", text.err), f"label\n{text}")
    holds("256 threads" in text.err and "not whole" in text.err, f"note\n{text}")


FAULTS = """#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static sigjmp_buf back;
static char *page;
static void leaves(int s) { (void)s; siglongjmp(back, 1); }
static void mends(int s) { (void)s; mprotect(page, 4096, PROT_READ | PROT_WRITE); }
static void usual(int s) { (void)s; }
int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (volatile long i = 0; i < 100000; i++)
		;
	if (!strcmp(how, "usual")) { signal(SIGUSR1, usual); return raise(SIGUSR1); }
	if (!strcmp(how, "leaves")) signal(SIGSEGV, leaves);
	if (!strcmp(how, "mends")) signal(SIGSEGV, mends);
	if (!strcmp(how, "child") && fork()) { wait(0); return 0; }
	if (!sigsetjmp(back, 1)) *(volatile int *)page = 1;
	return 0;
}
"""


def faults(work, compiler, exact):
    """Known to a few hundred: what the loop retires, and start-up; an instruction more than that is what this is about."""
    need(compiler)
    with open(work.path("faults.c"), "w", encoding="utf-8") as file:
        file.write(FAULTS)
    work.run(compiler, "-O2", "-static", "-o", "faults", "faults.c", status=0)
    for how, status, note in (("usual", 0, None), ("die", 139, "ended by a fault of an instruction"),
                              ("child", 0, "ended by a fault of an instruction"),
                              ("leaves", 0, "signals came to a handler of faults [(]1[)]"),
                              ("mends", 0, "signals came to a handler of faults [(]1[)]")):
        for events in ("instructions", f"instructions,branches,{exact}"):
            table = work.quipu("stat", "-e", events, "./faults", how, status=status)
            holds(re.search(r"instructions +" + ("partial" if note else "exact"), table.err), f"{how}: label\n{table}")
            holds(bool(re.search("not exact", table.err)) == bool(note), f"{how}: note\n{table}")
            holds(not note or re.search(note, table.err), f"{how}: note\n{table}")
        rows = work.stat("instructions", "./faults", how, status=status)
        equal(rows[0]["class"], "partial" if note else "exact", f"{how}: JSON")
        holds(int(float(rows[0]["counter-value"])) > 300000, f"{how}: the loop is not in the count {rows}")
    done = work.quipu("record", "-e", "instructions", "-c", "1000", "./faults", "leaves", status=0)
    holds("samples, partial)" in done.err, done)


@test("a fault cuts its block short: what is counted is partial and says so; a signal that was sent leaves it exact")
def faults_riscv(work):
    faults(work, "riscv64-linux-gnu-gcc", "calls")


@test("faults on x86-64 alike")
def faults_x86(work):
    need("qemu-x86_64")
    faults(work, "x86_64-linux-gnu-gcc", "cycles")


@test("a run across instruction sets names them")
def several(work):
    need("qemu-x86_64")
    result = work.quipu("stat", "-e", "instructions", "--", guest("execer"), "/bin/true", status=0)
    notes = [line for line in result.err.splitlines() if "instruction sets" in line]
    equal(len(notes), 1, f"notes\n{result}\n")
    holds("riscv64" in notes[0] and "x86_64" in notes[0], notes)
    alone = work.quipu("stat", "-e", "instructions", "--", guest("true"), status=0)
    holds("instruction sets" not in alone.err, alone)


@test("a file that perf wrote has no label: it is not called the host's")
def perf_wrote(work):
    need("perf")
    work.quipu("exec", "-m", "riscv", "--", "perf", "record", "-q", "-o", "perf.data", "-e", "instructions", "-c", "10000",
               guest("recurse"), status=0)
    result = work.quipu("report", status=0)
    holds("(label not kept by perf)" in result.out and "(host)" not in result.out, result)
    holds('"class": null' in work.quipu("report", "--json", status=0).out, "JSON")


@test("record refuses what no machine models and what no counter takes, and says why, before anything runs")
def record_reasons(work):
    for event in ("page-faults", "alignment-faults"):
        result = work.quipu("record", "-e", event, "--", guest("true"))
        one_line_error(result, event, "no pages and no kernel")
        holds(not os.path.exists(work.path("perf.data")), "a file was left")
    for options in (["-e", "r2a"], ["-a", "-e", "r2a"], ["-e", "{cycles,r2a}:S"], ["-e", "cycles,r2a"]):
        result = work.quipu("record", *options, "-c", "1000", "--", guest("recurse"), "10")
        equal(result.out, "", "the program ran")
        one_line_error(result, "cannot sample r2a", "no counter of this machine takes that raw code 0x2a")
        holds(not os.path.exists(work.path("perf.data")), "a file was left")


@test("prefetches: what is missing is the model of prefetches, not the cache")
def prefetches(work):
    rows = work.quipu("list", "-m", "riscv", status=0).out.splitlines()
    line = [row for row in rows if row.split()[:1] == ["L1-dcache-prefetches"]][0]
    holds("models no prefetches" in line, line)


def small_disk(work, script):
    """@script in a shell of which the folder is on a disk of 64 KiB."""
    if work.run("unshare", "-rm", "sh", "-c", SMALL_DISK + "true").status:
        raise Skip("this host lets nobody mount a disk of his own")
    os.rmdir(work.path("disk"))
    return work.run("unshare", "-rm", "sh", "-c", SMALL_DISK + script, "sh", QUIPU, guest("realistic"))


@test("a full disk: one line, which is about the disk, and no file")
def full_disk(work):
    need("unshare")
    result = small_disk(work, '"$1" record -e instructions -c 1000 -- "$2"; s=$?; ls; exit $s')
    one_line_error(result, "No space left")
    holds("perf.data" not in result.out, f"a file was left\n{result}")
    os.rmdir(work.path("disk"))
    result = small_disk(work, 'cat /dev/zero >fill 2>/dev/null; "$1" stat -o out -- "$2" >/dev/null; s=$?; ls; exit $s')
    one_line_error(result, "out", "No space left")
    equal(result.out.split(), ["fill"], "files left")


CHROOT = """
root=$PWD/root; mkdir "$root"
for folder in /usr /bin /lib /lib64 /etc /proc /dev /sys "$@"; do
	test -e "$folder" || continue
	mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder" || exit 99
done
mkdir -p "$root/tmp"
exec chroot "$root" env TMPDIR=/tmp "$QUIPU" exec -m riscv -- perf stat -x, -e instructions "$QUIPU_GUEST_DIR/recurse.riscv64" 10
"""


@test("in a chroot, whose / is no mount point, exec goes on without a namespace and says so in one line")
def chroot(work):
    need("unshare")
    need("perf")
    folders = sorted({os.environ["QUIPU_BUILD"], os.environ["QUIPU_SOURCE"], SYSROOT})
    result = work.run("unshare", "-rm", "sh", "-c", CHROOT, "sh", *folders)
    if result.status == 99 or "unshare" in result.err:
        raise Skip("this host lets nobody mount in a namespace: " + result.err[:200])
    equal(result.status, 0, f"status\n{result}\n")
    lines = result.err.splitlines()
    equal(sum("no mount namespace here" in line for line in lines), 1, f"the line\n{result}\n")
    count = [line for line in lines if ",instructions" in line]
    want = work.quipu("exec", "-m", "riscv", "--", "perf", "stat", "-x,", "-e", "instructions", guest("recurse"), "10", status=0)
    holds(count and int(count[0].split(",")[0]) > 10000, f"count\n{result}\n{want}")


@test("what cannot be printed is one line")
def full_output(work):
    work.record("-e", "instructions", "-c", "1000", "--", guest("recurse"))
    for command in ("report", "script", "list"):
        result = work.run("sh", "-c", f'"$0" {command} >/dev/full', QUIPU)
        one_line_error(result, "No space left")


@test("a program that does not survive its start is said to have died, and no machine is blamed that nobody named")
def patched(work):
    with open(guest("true"), "rb") as file:
        data = bytearray(file.read())
    for machine in (21, 62):  # POWER, x86-64
        data[18:20] = machine.to_bytes(2, "little")
        with open(work.path("patched"), "wb") as file:
            file.write(data)
        os.chmod(work.path("patched"), 0o755)
        result = work.quipu("stat", "-e", "instructions", "--", "./patched")
        holds(result.status > 0, f"status\n{result}")
        holds(re.search(r"^quipu: the program (died|was killed)", result.err, re.MULTILINE), f"not said to have died\n{result}")
        os.makedirs(work.path("bin"), exist_ok=True)
        shutil.copy(QUIPU, work.path("bin/quipu"))  # far from its machines
        result = work.run("bin/quipu", "stat", "--", "./patched")
        if result.status == 126:
            one_line_error(result, "patched", "not installed")
        holds("no machine '" not in result.err, f"a machine that nobody named\n{result}")
        holds("no machine '" not in work.run("bin/quipu", "list").err, "a machine that nobody named, in list")


@test("a QEMU that gives up before the first instruction: the program is said to have died")
def gives_up(work):
    need("qemu-riscv64")
    result = work.quipu("stat", "-L", work.folder, "-e", "instructions", "--", guest("shapes-dynamic"))
    holds(result.status > 0, f"ran without a loader\n{result}")
    holds(re.search(r"^quipu: ", result.err, re.MULTILINE), f"quipu says nothing\n{result}")
    holds(os.path.isdir(SYSROOT), "no sysroot at all")


@test("a group is a group in the file: perf evlist -g shows its braces, and the command line is the whole one")
def groups(work):
    need("perf")
    work.record("-e", "{cycles,instructions}", "-e", "branches", "-c", "10000", "--", guest("recurse"))
    equal(work.run("perf", "evlist", "-g").out.split(), ["{cycles,instructions}", "branches"], "groups")
    header = work.run("perf", "report", "--header-only").out
    holds(re.search(r"^# cmdline : quipu record -o perf.data -e", header, re.MULTILINE), header)


@test("quipu help COMMAND is the command's own --help")
def help_of(work):
    names = re.findall(r"^  ([a-z]+) ", work.quipu("help", status=0).out, re.MULTILINE)
    holds("stat" in names and "doctor" in names, names)
    for name in names:
        result = work.quipu("help", name, status=0)
        equal(result.out, work.quipu(name, "--help", status=0).out, f"help {name}")
        holds(result.out.startswith(f"usage: quipu {name}"), result)
    one_line_error(work.quipu("help", "nosuch"), "nosuch")


@test("the terminal goes away: record finishes its file")
def hangup(work):
    need("perf")
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup quipu would leave it alone
    process = work.start(QUIPU, "record", "-e", "instructions", "-c", "100000", "--", guest("spin"))
    signal.signal(signal.SIGHUP, ignored)
    equal(process.stdout.readline(), b"ready\n", "the program")
    process.send_signal(signal.SIGHUP)
    err = process.communicate(timeout=120)[1].decode()
    holds("Captured and wrote" in err, err)
    holds(work.samples("ip") is not None, "the file is not whole")


class Terminal:
    """As much of a terminal as a run needs: a screen that scrolls, in part where asked to."""

    def __init__(self, rows=10, columns=120):
        self.rows, self.columns = rows, columns
        self.lines = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.saved, self.region = (0, 0), (0, rows - 1)
        self.gone = []    # lines that were scrolled away
        self.foot = set() # what the last row ever showed while it did not scroll

    def down(self):
        top, bottom = self.region
        if self.row == bottom:
            self.gone.append("".join(self.lines.pop(top)).rstrip())
            self.lines.insert(bottom, [" "] * self.columns)
        elif self.row < self.rows - 1:
            self.row += 1

    def escape(self, what):
        numbers = [int(n or 0) for n in what[1:-1].split(";")] if what[0] == "[" else []
        if what == "7":
            self.saved = self.row, self.column
        elif what == "8":
            self.row, self.column = self.saved
            if self.region[1] < self.rows - 1:
                self.foot.add("".join(self.lines[-1]).rstrip())
        elif what == "D":
            self.down()
        elif what == "M":
            assert self.row > self.region[0], "a scroll backwards"
            self.row -= 1
        elif what[-1] == "r":
            self.region = (numbers[0] - 1, numbers[1] - 1) if len(numbers) == 2 else (0, self.rows - 1)
            self.row = self.column = 0
        elif what[-1] == "H":
            self.row, self.column = numbers[0] - 1, numbers[1] - 1
        elif what[-1] == "K":
            self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
        else:
            raise AssertionError(f"an escape sequence that nobody needs: {what!r}")

    def feed(self, text):
        for part in re.findall(r"\033(?:\[[0-9;]*[A-Za-z]|.)|[^\033]", text, re.DOTALL):
            if part[0] == "\033":
                self.escape(part[1:])
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self.down()
            else:
                assert self.column < self.columns, "a line longer than the screen"
                self.lines[self.row][self.column] = part
                self.column += 1

    def text(self):
        return self.gone + ["".join(line).rstrip() for line in self.lines]


def on_terminal(work, *args, stdout=None, term="xterm", rows=10, columns=120):
    """What a terminal gets from a command that it is the controlling one of; @stdout: where its output goes instead."""
    pid, master = terminal()
    if not pid:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(work.folder)
            if stdout:
                os.dup2(stdout.fileno(), 1)
            os.execvpe(args[0], args, environment(work.folder, TERM=term))
        finally:
            os._exit(126)
    data = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        data += piece
    os.close(master)
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "status on a terminal")
    return data.decode()


SPEAKS = """#include <stdio.h>
#include <time.h>
int main(void)
{
	struct timespec t = {2, 0};
	for (int i = 0; i < 12; i++) printf("early %d\\n", i);
	printf("half a line"); fflush(stdout);
	nanosleep(&t, NULL);
	printf(", and the rest of it\\n");
	for (int i = 0; i < 12; i++) printf("late %d\\n", i);
	fflush(stdout);
	t.tv_sec = 0; t.tv_nsec = 300000000;
	nanosleep(&t, NULL);
	puts("end");
	return 0;
}
"""


@test("on a terminal a long run shows its progress in a row of its own, and the program's lines are whole")
def progress(work):
    need("riscv64-linux-gnu-gcc")
    with open(work.path("speaks.c"), "w", encoding="utf-8") as file:
        file.write(SPEAKS)
    work.run("riscv64-linux-gnu-gcc", "-O2", "-static", "-o", "speaks", "speaks.c", status=0)
    said = [f"early {i}" for i in range(12)] + ["half a line, and the rest of it"] + [f"late {i}" for i in range(12)] + ["end"]
    command = [QUIPU, "record", "-e", "instructions", "-c", "1000", "--", "./speaks"]
    for out in (None, "out"):
        with open(work.path("out"), "wb") as file:
            text = on_terminal(work, *command, stdout=file if out else None)
        screen = Terminal()
        screen.feed(text)
        foot = [line for line in screen.foot if re.match(r"\[ quipu record: \d+ samples, [\d.]+ MB", line)]
        holds(foot and screen.foot <= set(foot) | {""}, f"no progress, or more than that: {screen.foot}\n{text!r}")
        lines = [line for line in screen.text() if line]
        equal(lines[:-1], [] if out else said, f"what stands on the terminal\n{text!r}\n")
        holds(lines[-1].startswith("[ quipu record: Captured and wrote"), f"the last line {lines[-1]!r}")
        equal(screen.region, (0, 9), "the part that scrolls at the end")
    with open(work.path("out"), encoding="utf-8") as file:
        equal(file.read().split("\n")[:-1], said, "what the program wrote to its file")


@test("where progress cannot be shown, or is not wanted, nothing is drawn")
def no_progress(work):
    command = ["record", "-e", "instructions", "-c", "1000"]
    for text in (on_terminal(work, QUIPU, *command, "--", guest("sleeper"), "1200", term="dumb"),
                 on_terminal(work, QUIPU, *command, "-q", "--", guest("sleeper"), "1200"),
                 on_terminal(work, QUIPU, *command, "--", guest("sleeper"), "1200", rows=0),
                 work.quipu(*command, "--", guest("sleeper"), "1200", status=0).err):
        holds("\033" not in text and text.count("quipu record") <= 1, f"drawn: {text!r}")


if __name__ == "__main__":
    main()
