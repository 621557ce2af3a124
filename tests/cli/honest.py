#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labels, reasons and endings are true: what is estimated, partial, refused, died or did not fit on the disk."""
import os
import pty
import re
import shutil
import signal
import struct
import subprocess

from harness import QUIPU, SYSROOT, Skip, environment, equal, guest, holds, json_lines, main, need, one_line_error, test

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
    for how, status, note in (("usual", 0, None), ("die", 139, "an instruction faulted and ended its program"),
                              ("child", 0, "an instruction faulted and ended its program"),
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
    err = process.communicate(timeout=30)[1].decode()
    holds("Captured and wrote" in err, err)
    holds(work.samples("ip") is not None, "the file is not whole")


def on_terminal(work, *args, stdout=None):
    """What a terminal gets from a command; @stdout: where its standard output goes instead."""
    master, slave = pty.openpty()
    process = subprocess.Popen(args, cwd=work.folder, env=environment(work.folder), stdin=subprocess.DEVNULL,
                               stdout=stdout or slave, stderr=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(master)
    equal(process.wait(), 0, "status")
    return text.decode()


@test("on a terminal the program's output stands on lines of its own; progress is drawn where it is not in the way")
def progress(work):
    command = [QUIPU, "record", "-e", "instructions", "-c", "1000", "--", guest("recurse"), "27"]
    text = on_terminal(work, *command)
    holds(re.search(r"(^|\n)fib\(27\)", text), f"the program's line has something in front: {text!r}")
    with open(work.path("out"), "wb") as out:
        text = on_terminal(work, *command, stdout=out)
    holds(re.search(r"quipu record: \d+ samples, [\d.]+ MB \]\r", text), f"no progress: {text!r}")
    holds(text.rstrip().split("\033[K")[-1].startswith("[ quipu record: Captured"), f"not cleared: {text!r}")


if __name__ == "__main__":
    main()
