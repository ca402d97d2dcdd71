#!/bin/sh
# Vets and tests every package. Says at the end which parts of this machine the tests need, and which of them were missing, so that their tests were
# skipped. With LOADGEN_TEST_REQUIRE set to "all" or to a comma-separated list of parts, a missing part is a failure; with "all" or "race" the race
# detector watches everything that runs on two goroutines.
set -eu
cd "$(dirname "$0")/.."

# required says whether LOADGEN_TEST_REQUIRE names a part.
required() {
	case ",${LOADGEN_TEST_REQUIRE:-}," in
	*,all,* | *,"$1",*) return 0 ;;
	esac
	return 1
}

# compiler prints the first C compiler that finds its headers.
compiler() {
	for cc in gcc cc clang; do
		if echo '#include <stdlib.h>' | "$cc" -x c -fsyntax-only - 2>/dev/null; then
			echo "$cc"
			return
		fi
	done
}

# Package internal/servertest appends a line for each part that a test needs.
LOADGEN_TEST_PARTS=$(mktemp)
export LOADGEN_TEST_PARTS
computed=
trap 'kill $computed 2>/dev/null || :; rm -f "$LOADGEN_TEST_PARTS"' EXIT
trap 'exit 130' INT TERM

export CGO_ENABLED=0
cc=
if required race; then
	cc=$(compiler)
	if [ -z "$cc" ]; then
		echo "the race detector is required by LOADGEN_TEST_REQUIRE=$LOADGEN_TEST_REQUIRE, and there is no C compiler" >&2
		exit 1
	fi
	echo "race: found" >"$LOADGEN_TEST_PARTS"
else
	echo "race: not asked for: LOADGEN_TEST_REQUIRE=race" >"$LOADGEN_TEST_PARTS"
fi

# computing prints the files of tests that run on one goroutine, or cannot be raced: those that do a part of their work unless servertest.Whole, those
# that drive an event loop themselves, in virtual time (package engine), and those that measure memory, which the detector takes much of.
computing() {
	grep -rlE --include='*_test.go' 'servertest\.Whole\(\)|new[A-Za-z]*Bench\(|^//go:build !race' internal pkg
}

# whole prints these tests, as a pattern for -run.
whole() {
	computing | xargs awk '
		/^\/\/go:build !race/ { unraced = FILENAME }
		/^func / { test = /^func (Test|Fuzz)/ ? $2 : ""; sub(/\(.*/, "", test) }
		/^func Test/ && FILENAME == unraced && test != "TestMain" { print test }
		/servertest\.Whole\(\)/ { print test == "" ? FILENAME : test }
		/new[A-Za-z]*Bench\(|[^A-Za-z](sampled|togetherOn|leased|readAll|playWay|clusterLoad|nullBench)\(/ { if (test != "") print test }' | sort -u | paste -sd '|'
}

status=0
go vet ./... || status=$?
flags='-vet=off -shuffle=on -timeout 20m'

# Nothing in the packages of tools/unraced.txt runs on two goroutines, as internal/lint checks. They are tested without the detector, which sees their
# code where other packages use it. They compute, while the other packages mostly wait for time and for servers, so both are tested at once, and those
# that compute get the processor time that the others leave.
nice -n 19 go test $flags -p 1 $(cat tools/unraced.txt) &
computed=$!

# Tests in the other packages that do not choose a number of event loops get two: with one, there is nothing that loops could share. More packages run at
# once than there are processors, those that take longest first.
longest='./internal/load/engine ./internal/fleet/rpc ./internal/target/cachenode'
shared=$(go list ./... | sed "s|^$(go list -m)|.|" | grep -vxF -e ./internal/command -e ./bench -f tools/unraced.txt)
if [ -n "$cc" ]; then
	# The detector need not see tests that compute on one goroutine.
	alone=$(whole)
	nice -n 19 go test $flags -p 1 -run "^($alone)\$" $(computing | sed 's|^|./|; s|/[^/]*$||' | sort -u) &
	computed="$computed $!"
	CGO_ENABLED=1 CC="$cc" LOADGEN_TEST_LOOPS=2 go test $flags -race -p 4 -skip "^($alone)\$" $longest $shared || status=$?
else
	LOADGEN_TEST_LOOPS=2 go test $flags $longest $shared || status=$?
fi
for pid in $computed; do
	wait "$pid" || status=$?
done
computed=
go test $flags ./bench || status=$? # compares processes

# The command's tests measure what a user would, with real processes: they have the machine to themselves. Those that run beside each other wait,
# most of the time, for servers and for time to pass, so there are many more of them than processors. The detector watches the programs of fleets.
LOADGEN_TEST_RACE=$cc go test $flags -parallel 12 ./internal/command || status=$?
go test -C examples . || status=$?
go test -C tools/packages . || status=$?
go vet -C tools/olric . || status=$?
go test -C deploy/manifests ./... || status=$?

if [ -n "${LOADGEN_TEST_REQUIRE:-}" ]; then
	echo "parts that the tests need; required: $LOADGEN_TEST_REQUIRE"
else
	echo "parts that the tests need; tests of a missing part were skipped"
fi
sort -u "$LOADGEN_TEST_PARTS" | sed 's/^/  /'
if grep -q ': missing' "$LOADGEN_TEST_PARTS"; then
	echo "make test-servers installs what is missing, or says what to install"
fi
exit "$status"
