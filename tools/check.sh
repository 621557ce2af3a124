#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh BUILD COMMAND...: builds by COMMAND, runs every test of the build folder BUILD, and counts. The last line is
# "N passed, N failed[, N skipped]"; the status is 0 only if the build and every test passed.
set -u

build=${1:?usage: check.sh BUILD COMMAND...}
shift
log=$build/meson-logs/testlog-tap.sh.json # named after the wrapper
tools=$(dirname "$0")

# An old log must not stand in for a run that did not happen.
rm -f "$log"
if ! "$@"; then
	echo "check: the build failed, no test ran" >&2
	echo "0 passed, 1 failed"
	exit 1
fi
# CHECKFLAGS is a list of words.
# shellcheck disable=SC2086
meson test --no-rebuild --print-errorlogs --wrapper "$(cd "$tools" && pwd)/tap.sh" -C "$build" ${CHECKFLAGS:-}
status=$?
python3 "$tools/tally.py" "$log" "$status"
