#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The front door's own scripts: the count of `make check` can be trusted, and the set-up says what it would do."""
import json
import os
import stat
import subprocess
import sys

from harness import Work, environment, equal, holds, main, test

SOURCE = os.environ["QUIPU_SOURCE"]


def tally(work, rows, status=0):
    with open(work.path("log"), "w", encoding="utf-8") as file:
        for name, result, out in rows:
            file.write(json.dumps({"name": name, "result": result, "stdout": out}) + "\n")
    done = work.run(sys.executable, os.path.join(SOURCE, "tools/tally.py"), "log", str(status))
    return done.status, done.out.splitlines()[-1]


@test("make check counts subtests, and a skipped test is no passed test")
def counts(work):
    rows = [("a", "OK", "1..3\nok 1 - x\nok 2 - y # SKIP no PMU\nok 3\n"), ("b", "OK", ""), ("c", "SKIP", "")]
    equal(tally(work, rows), (0, "3 passed, 0 failed, 2 skipped"), "tally")
    equal(tally(work, [("d", "SKIP", "1..0 # SKIP nothing here\n")]), (0, "0 passed, 0 failed, 1 skipped"), "all skipped")


@test("make check fails when a test fails, crashes, runs out of time or breaks its plan")
def failures(work):
    for rows, line in (([("a", "ERROR", "1..2\nok 1\nnot ok 2 - x\n")], "1 passed, 1 failed"),
                       ([("a", "FAIL", "")], "0 passed, 1 failed"),
                       ([("a", "TIMEOUT", "1..2\nok 1\n")], "1 passed, 1 failed"),
                       ([("a", "ERROR", "1..2\nok 1\n")], "1 passed, 1 failed")):
        equal(tally(work, rows, 1), (1, line), "tally")


@test("make check fails when nothing ran, or Meson says so and the log does not")
def nothing(work):
    equal(tally(work, []), (1, "0 passed, 1 failed"), "empty log")
    equal(tally(work, [("a", "OK", "")], 1), (1, "1 passed, 1 failed"), "status of Meson")
    done = work.run(sys.executable, os.path.join(SOURCE, "tools/tally.py"), "nosuchlog", "0")
    equal((done.status, done.out.splitlines()[-1]), (1, "0 passed, 1 failed"), "no log")


@test("make check with a build that fails: no old log stands in for it")
def build_fails(work):
    os.makedirs(work.path("build/meson-logs"))
    with open(work.path("build/meson-logs/testlog-tap.sh.json"), "w", encoding="utf-8") as file:
        file.write('{"name": "old", "result": "OK", "stdout": ""}\n')
    done = work.run(os.path.join(SOURCE, "tools/check.sh"), "build", "false")
    equal((done.status, done.out.splitlines()[-1]), (1, "0 passed, 1 failed"), "check.sh")


def fake(work, name, text):
    os.makedirs(work.path("bin"), exist_ok=True)
    with open(work.path("bin/" + name), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(work.path("bin/" + name), stat.S_IRWXU)


def setup(work: Work, packages, user):
    """setup.sh on a machine where dpkg knows only `present`, as @user; apt is replaced by one that writes down."""
    fake(work, "dpkg-query", 'case "$*" in *present*) echo installed;; *) exit 1;; esac\n')
    fake(work, "apt-get", 'echo "$*" >>apt.log\n')
    fake(work, "id", f"echo {user}\n")
    fake(work, "sudo", "exit 1\n")
    with open(work.path("list"), "w", encoding="utf-8") as file:
        file.write(packages)
    env = environment(work.folder)
    env["PATH"] = work.path("bin") + ":" + env["PATH"]
    return work.run(os.path.join(SOURCE, "tools/setup.sh"), "list", env=env)


@test("set-up: names what is missing first, then installs just that")
def installs(work):
    done = setup(work, "# a comment\npresent\nmissing-one   # why\nmissing-two\n", 0)
    equal(done.status, 0, "status")
    holds("missing-one missing-two" in done.out, f"the list is not told\n{done}")
    with open(work.path("apt.log"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    equal(lines[-1].split()[-2:], ["missing-one", "missing-two"], "what apt was told")
    holds("present" not in " ".join(lines), "installed what is there")


@test("set-up: nothing missing, nothing done, nothing said")
def complete(work):
    done = setup(work, "present\n", 0)
    equal((done.status, done.out, done.err), (0, "", ""), "set-up")
    holds(not os.path.exists(work.path("apt.log")), "apt was called")


@test("set-up without root and sudo: the exact apt line, status 1")
def not_root(work):
    done = setup(work, "present\nmissing-one\n", 1000)
    equal(done.status, 1, "status")
    holds("apt-get install -y --no-install-recommends missing-one" in done.err, f"no line to run\n{done}")
    holds(not os.path.exists(work.path("apt.log")), "apt was called")


@test("every package of the list has one line and no other word")
def package_list(_work):
    with open(os.path.join(SOURCE, "packages.txt"), encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            holds(len(words) <= 1, f"several words: {line!r}")
    subprocess.run(["sh", "-n", os.path.join(SOURCE, "tools/setup.sh")], check=True)


if __name__ == "__main__":
    main()
