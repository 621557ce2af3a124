#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# setup.sh LIST...: installs the Debian packages that the lists name (one a line, # starts a comment) and dpkg does not
# have.
# Says first what it will install. Where it may not, it prints the line to run and ends with 1.
set -eu

[ $# -gt 0 ] || { echo "usage: setup.sh LIST..." >&2; exit 1; }
for list; do
	[ -r "$list" ] || { echo "setup: cannot read $list" >&2; exit 1; }
done
wanted=$(sed 's/#.*//' "$@" | tr -s '[:space:]' ' ')

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "setup: this is no Debian; what the build needs is, by Debian's names:$wanted" >&2
	exit 0
fi

missing=
for package in $wanted; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "setup: to install through apt:$missing"

command="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
	as_root=sudo
else
	echo "setup: neither root nor sudo here. As root, run this, then try again:" >&2
	echo "    apt-get update && $command" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
if ! $as_root apt-get update -q; then
	echo "setup: apt-get update failed; going on with the package lists that are here" >&2
fi
# The command is a list of words.
# shellcheck disable=SC2086
if ! $as_root env DEBIAN_FRONTEND=noninteractive $command; then
	echo "setup: apt could not install what is missing. As root, try:" >&2
	echo "    apt-get update && $command" >&2
	exit 1
fi
