#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# readme.sh README: runs the tour of the README as a newcomer would paste it: every line of a fenced block whose first
# fence is ```sh tour, in order, in a copy of nothing but the built tree. A command that fails, fails the test.
# The environment: QUIPU_SOURCE (the sources), QUIPU (the built command), QUIPU_GUEST_DIR.
set -u

readme=${1:-$QUIPU_SOURCE/README.md}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# The README speaks of build/ in the source folder; here that is whichever build folder is under test.
mkdir "$work/tour"
ln -s "$QUIPU_BUILD" "$work/tour/build"
for item in "$QUIPU_SOURCE"/*; do
	case ${item##*/} in build*|perf.data*) ;; *) ln -s "$item" "$work/tour/" ;; esac
done
cd "$work/tour" || exit 1

# A line that ends in a backslash goes on; comments and empty lines are not commands.
awk '/^```sh tour$/ { on = 1; next } /^```/ { on = 0 } on && !/^#/ && NF' "$readme" >"$work/commands"
sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$work/commands" >"$work/joined"

total=$(wc -l <"$work/joined")
if [ "$total" -eq 0 ]; then
	echo "1..1"
	echo "not ok 1 - the README has a tour"
	exit 1
fi
echo "1..$total"
number=0 failed=0
# One shell for all, as the reader's: what one line sets, the next one sees.
while IFS= read -r line; do
	number=$((number + 1))
	if eval "$line" >"$work/out" 2>&1 </dev/null; then
		printf 'ok %d - %s\n' "$number" "$line"
	else
		printf 'not ok %d - %s\n' "$number" "$line"
		sed 's/^/# /' "$work/out" | tail -20
		failed=1
	fi
done <"$work/joined"
exit $failed
