#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input: a one-line error, a status that is not 0, and nothing left behind."""
import os
import shutil
import signal
import subprocess

from harness import (QUIPU, Skip, Traces, computed, environment, equal, guest, holds, interrupt, main, need, one_line_error,
                     test, wait_until)

COMMANDS = (["stat"], ["record", "-o", "perf.data"])


def refused(work, arguments, *words, status=None):
    """Both stat and record refuse, and leave nothing."""
    for command in COMMANDS:
        traces = Traces(work)
        result = work.quipu(*command, *arguments)
        one_line_error(result, *words)
        if status is not None:
            equal(result.status, status, f"status\n{result}\n")
        traces.check()


@test("a missing program: 127")
def missing(work):
    refused(work, ["--", "./nosuchprogram"], "nosuchprogram", status=127)
    refused(work, ["--", "nosuchprogram-in-path"], "nosuchprogram-in-path", status=127)
    refused(work, [])


@test("a program that may not be executed, and a folder: 126")
def not_executable(work):
    shutil.copy(guest("true"), work.path("plain"))
    os.chmod(work.path("plain"), 0o644)
    refused(work, ["--", "./plain"], "plain", status=126)
    refused(work, ["--", "/"], status=126)


@test("a program of an instruction set, or of a byte order, that the engine does not run is named")
def wrong_isa(work):
    with open(guest("true"), "rb") as file:
        data = bytearray(file.read())
    for machine, word in ((43, "sparc"), (22, "s390"), (40, "arm|40")):
        data[18:20] = machine.to_bytes(2, "little")
        with open(work.path("other"), "wb") as file:
            file.write(data)
        os.chmod(work.path("other"), 0o755)
        refused(work, ["--", "./other"], word)
    # The same when the machine was chosen by hand.
    refused(work, ["-m", "riscv", "--", "/bin/true"], "x86|riscv")


@test("what is no program: text, an empty file, a truncated ELF at each of its borders")
def truncated(work):
    with open(guest("true"), "rb") as file:
        data = file.read()
    for length in (0, 3, 4, 20, 63, 64, 100, 300, len(data) // 2):
        with open(work.path("cut"), "wb") as file:
            file.write(data[:length])
        os.chmod(work.path("cut"), 0o755)
        refused(work, ["--", "./cut"], "cut")
    with open(work.path("text"), "w", encoding="utf-8") as file:
        file.write("hello\n")
    os.chmod(work.path("text"), 0o755)
    refused(work, ["--", "./text"], "text")
    os.mkdir(work.path("folder"))
    refused(work, ["--", "./folder"], "directory")
    os.mkfifo(work.path("pipe"), 0o755)
    refused(work, ["--", "./pipe"], "no regular file")


@test("a program killed by a signal in mid-run: its counts so far are printed, the file is whole")
def killed(work):
    for how, number in (("term", 15), ("segv", 11), ("kill", 9)):
        traces = Traces(work)
        result = work.quipu("stat", "-x", ",", "-e", "instructions", "--", guest("killself"), how, status=128 + number)
        rows = [li for li in (result.out + result.err).splitlines() if "instructions" in li and "," in li]
        holds(rows and float(rows[0].split(",")[0]) > 200000, f"no counts after {how}\n{result}")
        traces.check()
        work.quipu("record", "-e", "instructions", "-c", "1000", "--", guest("killself"), how, status=128 + number)
        traces.check(["perf.data"])
        names = [w[-1] for w in work.samples("ip,sym")]
        holds(names.count("before") >= 200, f"{names.count('before')} samples of before() after {how}")
        os.unlink(work.path("perf.data"))


@test("an output that cannot be written")
def unwritable(work):
    os.mkdir(work.path("folder"))
    for target in ("nosuchfolder/perf.data", "folder"):
        traces = Traces(work)
        one_line_error(work.quipu("record", "-o", target, "--", guest("true")), target)
        one_line_error(work.quipu("stat", "-o", target, "--", guest("true")), target)
        traces.check()
        equal(os.listdir(work.path("folder")), [], "files in the folder")


@test("a full disk: the error is told, and perf.data is not left looking whole")
def full(work):
    need("unshare")
    small = work.path("small")
    os.mkdir(small)
    script = ('mount -t tmpfs -o size=64k none "$1" || exit 77; cd "$1"; shift; '
              '"$@"; echo "status $?"; if [ -e perf.data ]; then echo exists; '
              'perf report --stdio -i perf.data >report 2>&1 && echo readable; fi; ls; true')
    command = [QUIPU, "record", "-e", "instructions", "-c", "100", "-o", "perf.data", "--", guest("recurse"), "20"]
    traces = Traces(work)
    for space in (["unshare", "-m"], ["unshare", "-Urm"]):
        result = work.run(*space, "sh", "-c", script, "sh", small, *command)
        if "status" in result.out:
            break
    else:
        raise Skip("no private mount here: neither root nor user namespaces")
    holds("status 0" not in result.out, f"success on a full disk\n{result}")
    holds("No space left" in result.err, f"the reason is not told\n{result}")
    holds("readable" not in result.out, f"perf.data looks whole\n{result}")
    traces.check()


@test("stat onto a full disk: the error is told")
def full_stat(work):
    result = work.quipu("stat", "-o", "/dev/full", "-e", "instructions", "--", guest("true"))
    holds(result.status > 0, f"success on /dev/full\n{result}")
    holds("No space left" in result.err, f"the reason is not told\n{result}")
    done = subprocess.run([QUIPU, "list"], stdout=open("/dev/full", "w", encoding="utf-8"), stderr=subprocess.PIPE,
                          env=environment(work.folder), check=False)
    holds(done.returncode > 0, "list to a full disk succeeded")


@test("a corrupt or truncated dtb is refused by stat, and by check with the place")
def dtb(work):
    need("dtc")
    source = '/dts-v1/; / { compatible = "riscv-virtio"; cpus { #address-cells = <1>; }; };'
    with open(work.path("m.dts"), "w", encoding="utf-8") as file:
        file.write(source)
    work.run("dtc", "-I", "dts", "-O", "dtb", "-o", "m.dtb", "m.dts", status=0)
    with open(work.path("m.dtb"), "rb") as file:
        good = file.read()
    cases = {"empty.dtb": b"", "header.dtb": good[:20], "half.dtb": good[:len(good) // 2],
             "magic.dtb": b"\0\0\0\0" + good[4:], "size.dtb": good[:4] + b"\xff\xff\xff\xff" + good[8:],
             "struct.dtb": good[:56] + b"\xee" * (len(good) - 56), "text.dtb": b"not a device tree at all\n" * 4}
    for name, data in cases.items():
        with open(work.path(name), "wb") as file:
            file.write(data)
    for name in cases:
        traces = Traces(work)
        result = work.quipu("stat", "-m", "./" + name, "--", guest("true"))
        holds(result.status > 0, f"{name} was accepted\n{result}")
        holds(name in result.err, f"{name} is not named\n{result}")
        check = work.quipu("machine", "check", name)
        holds(check.status > 0, f"machine check accepts {name}\n{check}")
        holds(name in check.out + check.err, f"{name} is not named\n{check}")
        traces.check()


@test("a tree source at which the device tree compiler loops for ever: it is stopped, and that is said")
def endless(work):
    # As Debian's does at #interrupt-cells = <0xffffffff>; other versions may not.
    os.mkdir(work.path("bin"))
    with open(work.path("bin/dtc"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nwhile :; do :; done\n")
    os.chmod(work.path("bin/dtc"), 0o755)
    with open(work.path("endless.dts"), "w", encoding="utf-8") as file:
        file.write("/dts-v1/; / { };\n")
    env = environment(work.folder)
    env["PATH"] = work.path("bin") + ":" + env["PATH"]
    traces = Traces(work)
    one_line_error(work.quipu("machine", "check", "endless.dts", env=env), "endless.dts", "dtc", "had not ended after 10 s")
    traces.check()


@test("a file that is no perf.data, or half of one, is refused by report and script")
def data(work):
    work.record("-e", "instructions", "-c", "1000", "--", guest("recurse"), "15")
    with open(work.path("perf.data"), "rb") as file:
        good = file.read()
    for name, content in (("empty", b""), ("text", b"hello\n" * 100), ("head", good[:60]), ("half", good[:len(good) // 2])):
        with open(work.path(name), "wb") as file:
            file.write(content)
        traces = Traces(work)
        for command in ("report", "script"):
            result = work.quipu(command, "-i", name)
            holds(result.status > 0, f"{command} accepted {name}\n{result}")
            holds(name in result.err, f"{name} is not named\n{result}")
        traces.check()
    one_line_error(work.quipu("report", "-i", "nosuchfile"), "nosuchfile")


def wait_ready(process):
    """The guest's first line."""
    text = b""
    while b"ready" not in text:
        piece = os.read(process.stdout.fileno(), 4096)
        holds(piece, "the guest did not start")
        text += piece


def wait_computed(traces, seconds):
    """The guest has had that much of the CPU."""
    wait_until("the guest computes", lambda: computed(traces.mark) >= seconds)


@test("Ctrl-C during record: a readable file, status 130, nothing left")
def ctrl_c(work):
    for guest_name, arguments in (("spin", []), ("sleeper", ["100000"])):
        traces = Traces(work)
        process = work.start(QUIPU, "record", "-e", "instructions", "-c", "1000003", "--", guest(guest_name), *arguments)
        wait_ready(process)
        if guest_name == "spin":
            wait_computed(traces, 0.3)
        interrupt(process)
        _, err = process.communicate(timeout=120)
        equal(process.returncode, 128 + signal.SIGINT, f"status; {err.decode()[-600:]}")
        traces.check(["perf.data"])
        result = work.run("perf", "report", "--stdio", "-i", "perf.data")
        equal(result.status, 0, f"perf report\n{result}\n")
        if guest_name == "spin":
            holds("spin_forever" in result.out, f"no samples of the loop\n{result}")
            work.quipu("report", "--stdio", "-i", "perf.data", status=0)
        os.unlink(work.path("perf.data"))


@test("Ctrl-C during stat: the counts so far, status 130, nothing left")
def ctrl_c_stat(work):
    traces = Traces(work)
    process = work.start(QUIPU, "stat", "-x", ",", "-e", "instructions", "--", guest("spin"))
    wait_ready(process)
    wait_computed(traces, 0.1)
    interrupt(process)
    out, err = process.communicate(timeout=120)
    equal(process.returncode, 128 + signal.SIGINT, f"status; {err.decode()[-600:]}")
    rows = [li for li in (out + err).decode().splitlines() if "instructions" in li]
    holds(rows and float(rows[0].split(",")[0]) > 100000, f"no counts: {(out + err).decode()[-600:]}")
    traces.check()


@test("quipu itself killed in mid-run: the program goes on unharmed, ends as it would, and nothing is left")
def machine_killed(work):
    traces = Traces(work)
    process = work.start(QUIPU, "stat", "-e", "instructions", "--", guest("sleeper"), "700")
    wait_ready(process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    out, _ = process.communicate(timeout=120)
    holds(b"done" in out, "the program did not end as it would")
    traces.check()


@test("script names the fields there are when it knows one of them not: all that its help has")
def fields(work):
    result = work.quipu("script", "-F", "ip,nosuchfield")
    one_line_error(result, "nosuchfield", "uregs")
    usage = work.quipu("script", "--help", status=0).out
    offered = result.err.split("there are ")[1].strip().split(", ")
    holds(",".join(offered) in usage, f"{offered}\n{usage}")


@test("a closed pipe behind report does not hang or crash it")
def pipe(work):
    work.record("-e", "instructions", "-c", "100", "--", guest("recurse"), "15")
    with subprocess.Popen([QUIPU, "script", "-i", "perf.data"], cwd=work.folder, env=environment(work.folder),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(100)
        process.stdout.close()
        status = process.wait(timeout=120)
    holds(status in (0, -signal.SIGPIPE) or 0 < status < 128 or status == 141, f"status {status}")


if __name__ == "__main__":
    main()
