#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tally.py LOG [STATUS]: one line that sums up a run of `meson test` from its testlog.json.

A program that speaks TAP counts once per subtest, any other program once. A skipped test is no passed test. A program
that failed without a failed subtest (it crashed, ran out of time, or broke its plan) is one failure more. STATUS is
the status of `meson test`: when it says that something failed and the log does not, that is one failure too.
"""
import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b(?P<rest>.*)$")
TAP_SKIP_ALL = re.compile(r"^1\.\.0\b")
SKIP = re.compile(r"#\s*skip\b", re.IGNORECASE)
PASSED, FAILED, SKIPPED = range(3)


def tally_test(test):
    """The counts [passed, failed, skipped] of one line of the log."""
    counts = [0, 0, 0]
    result = test.get("result")
    for line in (test.get("stdout") or "").splitlines():
        match = TAP_LINE.match(line)
        if TAP_SKIP_ALL.match(line):
            counts[SKIPPED] += 1
        elif match and match.group(1):
            counts[FAILED] += 1
        elif match and SKIP.search(match.group("rest")):
            counts[SKIPPED] += 1
        elif match:
            counts[PASSED] += 1
    if not any(counts):
        counts[{"OK": PASSED, "SKIP": SKIPPED}.get(result, FAILED)] += 1
    elif result not in ("OK", "SKIP") and not counts[FAILED]:
        counts[FAILED] += 1
    return counts


def complaints(test):
    """The failed subtests of one line of the log, each with what it said."""
    said, telling = [], False
    for line in (test.get("stdout") or "").splitlines():
        if line.startswith("#"):
            if telling and line.startswith("# not ok"):
                telling = False
            if telling:
                said.append("    " + line)
            continue
        match = TAP_LINE.match(line)
        telling = bool(match and match.group(1))
        if telling:
            said.append("  " + line)
    return said[:40] or ["  " + line for line in (test.get("stdout") or "").splitlines()[-10:]]


def main(argv):
    totals = [0, 0, 0]
    failed = []
    try:
        with open(argv[1], encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                counts = tally_test(test)
                totals = [a + b for a, b in zip(totals, counts)]
                if counts[FAILED]:
                    failed.append(test["name"])
                    print("\n".join([f"failed: {test['name']}"] + complaints(test)))
    except (OSError, ValueError) as error:
        print(f"tally: {argv[1]}: {error}", file=sys.stderr)
        totals[FAILED] += 1
    status = int(argv[2]) if len(argv) > 2 else 0
    if status and not totals[FAILED]:
        totals[FAILED] += 1
    if not sum(totals):
        print("tally: no test ran", file=sys.stderr)
        totals[FAILED] += 1
    if failed:
        print("failed: " + ", ".join(failed))
    line = f"{totals[PASSED]} passed, {totals[FAILED]} failed"
    print(line + (f", {totals[SKIPPED]} skipped" if totals[SKIPPED] else ""))
    return 1 if totals[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
