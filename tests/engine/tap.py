# SPDX-License-Identifier: BSD-2-Clause
"""What the test programs of this folder share: TAP on standard output, and a folder that goes when they end."""
import atexit
import os
import shutil
import sys
import tempfile

TMP = tempfile.mkdtemp()
atexit.register(shutil.rmtree, TMP, ignore_errors=True)
# Of tests that another QEMU than the system's may be given to: QUIPU_QEMU, a folder with it (README.md).
PATH = ":".join(filter(None, (os.environ.get("QUIPU_QEMU"), "/usr/bin:/bin")))

_done = {"number": 0, "failed": 0}


def check(name, ok, note=""):
    _done["number"] += 1
    _done["failed"] += not ok
    print(f"{'ok' if ok else 'not ok'} {_done['number']} - {name}")
    if not ok:
        print("\n".join("# " + line for line in str(note).splitlines()[:12]))
    sys.stdout.flush()


def skip(name, why):
    _done["number"] += 1
    print(f"ok {_done['number']} - {name} # SKIP {why}")


def end():
    """The plan, and the exit status."""
    print(f"1..{_done['number']}")
    sys.exit(_done["failed"] != 0)
