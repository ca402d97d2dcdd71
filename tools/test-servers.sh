#!/bin/sh
# Installs what the tests want beside Go: a redis-server and a memcached to drive, a postgresql to keep runs in, a prometheus to
# scrape with, a chromium to open reports in, and a C compiler for the race detector. Uses apt-get, with sudo when not root; where
# there is none, says what is missing and fails.
set -eu

# missing prints the packages that are wanted and not there, by their Debian names.
missing() {
	command -v redis-server >/dev/null || echo redis-server
	command -v memcached >/dev/null || echo memcached
	{ command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1 || echo postgresql
	command -v chromium >/dev/null || echo chromium
	{ command -v prometheus && command -v promtool; } >/dev/null || echo prometheus
	if ! { command -v gcc || command -v cc || command -v clang; } >/dev/null; then
		echo gcc
		echo libc6-dev
	fi
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

wanted=$(missing | tr '\n' ' ')
if [ -z "$wanted" ]; then
	echo "test servers: all there"
	exit 0
fi
if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
	echo "test servers: please install (Debian's names): $wanted" >&2
	exit 1
fi
echo "test servers: installing $wanted"
# shellcheck disable=SC2086 # a list of packages
install $wanted || { as_root apt-get update && install $wanted; }
wanted=$(missing | tr '\n' ' ')
if [ -n "$wanted" ]; then
	echo "test servers: still missing: $wanted" >&2
	exit 1
fi
