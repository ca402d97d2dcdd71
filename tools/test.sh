#!/bin/sh
# Vets and tests every package, with the race detector where a C compiler is found. Says at the end which parts of this
# machine the tests wanted, and which of them were missing, so that their tests were skipped. With LOADGEN_TEST_REQUIRE set
# to "all" or to a comma-separated list of parts, a missing part is a failure.
set -eu
cd "$(dirname "$0")/.."

# compiler prints the first C compiler that finds its headers.
compiler() {
	for cc in gcc cc clang; do
		if echo '#include <stdlib.h>' | "$cc" -x c -fsyntax-only - 2>/dev/null; then
			echo "$cc"
			return
		fi
	done
}

# Package internal/servertest appends a line for each part that a test wants.
LOADGEN_TEST_PARTS=$(mktemp)
export LOADGEN_TEST_PARTS
trap 'rm -f "$LOADGEN_TEST_PARTS"' EXIT
trap 'exit 130' INT TERM

cc=$(compiler)
if [ -n "$cc" ]; then
	export CGO_ENABLED=1 CC="$cc"
	race=-race
	echo "race detector: on ($cc)"
	echo "race: found" >"$LOADGEN_TEST_PARTS"
else
	export CGO_ENABLED=0
	race=
	echo "race detector: off: no C compiler found"
	echo "race: missing: no C compiler found" >"$LOADGEN_TEST_PARTS"
	case ",${LOADGEN_TEST_REQUIRE:-}," in
	*,all,* | *,race,*)
		echo "race is required by LOADGEN_TEST_REQUIRE=$LOADGEN_TEST_REQUIRE" >&2
		exit 1
		;;
	esac
fi

# asking prints the packages, but the command's, whose tests call a function of package servertest.
asking() {
	grep -rl --include='*_test.go' "servertest\.$1()" internal pkg | sed 's|^|./|; s|/[^/]*$||' | sort -u
}

# whole prints the tests that do a part of their work unless servertest.Whole, as a pattern for -run.
whole() {
	grep -rl --include='*_test.go' 'servertest\.Whole()' internal pkg cmd | xargs awk '
		/^func / { test = /^func Test/ ? $2 : ""; sub(/\(.*/, "", test) }
		/servertest\.Whole\(\)/ { print test == "" ? FILENAME : test }' | sort -u | paste -sd '|'
}

status=0
go vet $race ./... || status=$?

# Nothing in the packages of tools/unraced.txt runs on two goroutines, which internal/lint holds: where the detector could find nothing they are tested
# without it, and it sees their code where that of other packages uses it.
raced=$(go list ./... | sed "s|^$(go list -m)|.|" | grep -vxF -e ./cmd/loadgen -f tools/unraced.txt)

# The command's tests measure what a user would, with real processes: they have the machine to themselves. Those that run beside each other wait,
# most of the time, for servers and for time to pass, so there are more of them than processors.
go test $race -shuffle=on -timeout 20m $raced || status=$?
go test -shuffle=on -timeout 20m $(cat tools/unraced.txt) || status=$?
go test $race -shuffle=on -parallel 6 -timeout 35m ./cmd/loadgen || status=$?

# What tests compute on one goroutine they do in part above, and whole here.
if [ -n "$race" ]; then
	go test -shuffle=on -timeout 20m -run "^($(whole))\$" $(asking Whole) ./cmd/loadgen || status=$?
fi

# The tests above have one event loop where they choose no number themselves. What loops share is tried again with more of them, by the command as
# well, where what servers have counted is held against its ledgers; the race detector has seen the code already.
counts='ServersCount|TargetsCount|CountsWhat|CountedAlike|Quorums|Batches|Phases|Replay|TraceIs|HitRatio|Drops|ThreeWorkers|HydraOn|UnixSockets|Soak'
for loops in ${LOADGEN_TEST_MORE_LOOPS-2 4}; do
	LOADGEN_TEST_LOOPS=$loops go test -shuffle=on -timeout 20m $(asking Loops) || status=$?
	LOADGEN_TEST_LOOPS=$loops go test -shuffle=on -timeout 20m -parallel 6 -run "$counts" ./cmd/loadgen || status=$?
done
go test -C tools ./sbom || status=$?
go test -C deploy/manifests ./... || status=$?
case ",${LOADGEN_TEST_REQUIRE:-}," in
*,all,* | *,crash,*)
	# A million images of crashes, for which the race detector is too slow.
	go test -run 'TestCrashes' ./pkg/pmlog || status=$?
	;;
esac

if [ -n "${LOADGEN_TEST_REQUIRE:-}" ]; then
	echo "parts the tests wanted; required: $LOADGEN_TEST_REQUIRE"
else
	echo "parts the tests wanted; what a missing one is for was skipped"
fi
sort -u "$LOADGEN_TEST_PARTS" | sed 's/^/  /'
if grep -q ': missing' "$LOADGEN_TEST_PARTS"; then
	echo "make test-servers installs what is missing, or says what to install"
fi
exit "$status"
