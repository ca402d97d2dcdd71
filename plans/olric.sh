#!/bin/sh
# Four nodes of Olric on this machine, whose values are on three of them: the hook of olric.hcl.
#
#   olric.sh [PORT]      as a restart hook: ends the nodes that it has started before, and starts four new ones
#                        as the hook of an event named "three", "two" or "one": a node leaves, so that this many stay
#   LOADGEN_EVENT=end olric.sh [PORT]      ends all; a coordinator does this itself, however it ends
#
# The nodes have ports PORT to PORT+3, and PORT+50 to PORT+53 for each other; PORT is 22100 by default. The script runs the program that make test-servers
# builds from tools/olric, or builds it, if Go is installed.
set -eu
port=${1:-22100}
tools=$(cd "$(dirname "$0")/../tools/olric" && pwd)
olric=${XDG_CACHE_HOME:-$HOME/.cache}/loadgen/olric
dir=${XDG_RUNTIME_DIR:-/tmp}/loadgen-olric-$(id -u)-$port
umask 077
mkdir -p "$dir"
if [ -L "$dir" ] || ! [ -O "$dir" ]; then
  echo "$dir is not yours: write another port" >&2
  exit 1
fi
cd "$dir"

leave() { # NODE…: each says goodbye, and its partitions become those of the others
  for node in "$@"; do
    pid=$(cat "$node.pid" 2>/dev/null || true)
    if [ "$pid" ] && grep -qz "/loadgen/olric$" "/proc/$pid/cmdline" 2>/dev/null; then
      kill -TERM "$pid" || true # it may have ended meanwhile
      timeout 5 tail -s 0.05 --pid="$pid" -f /dev/null || kill -KILL "$pid" || true
    fi
    rm -f "$node.pid" "$node.log"
  done
}

begin() {
  [ -x "$olric" ] || go build -C "$tools" -trimpath -o "$olric" .
  for node in 0 1 2 3; do
    "$olric" -port "$port" -node "$node" -w "${LOADGEN_VAR_w:-2}" </dev/null >"$node.log" 2>&1 &
    echo $! >"$node.pid"
    await "$node" joined
  done
  for node in 0 1 2 3; do
    await "$node" ready
  done
}

await() { # NODE WORD: until the node has printed the word
  for _ in $(seq 1200); do
    ! grep -q "$2" "$1.log" || return 0
    kill -0 "$(cat "$1.pid")" 2>/dev/null || break
    sleep 0.05
  done
  echo "node $1 is not $2: $(tail -n 1 "$1.log")" >&2
  exit 1
}

case ${LOADGEN_EVENT:-} in
"")
  leave 0 1 2 3
  begin
  ;;
end)
  leave 3 2 1 0
  cd /
  rmdir "$dir"
  ;;
three) leave 3 ;;
two) leave 2 ;;
one) leave 1 ;;
*)
  echo "no event $LOADGEN_EVENT: name it three, two or one" >&2
  exit 1
  ;;
esac
