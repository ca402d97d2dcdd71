#!/bin/sh
# A Redis master with two replicas and three Sentinels, on this machine: the hook of failover.hcl.
#
#   failover.sh [PORT [MS]]      as a restart hook: ends the servers that it has started before, and starts new ones
#                                as the hook of an event named "kill": makes the replicas fall behind, and kills the master
#   LOADGEN_EVENT=end failover.sh [PORT]      ends all; a coordinator does this itself, however it ends
#
# The servers have ports PORT to PORT+2, the Sentinels PORT+10 to PORT+12; PORT is 7100 by default. A Sentinel takes a master for dead after MS
# milliseconds of silence, 1000 by default. If the Sentinels elect no leader, they try again after 4 s. It needs redis-server and redis-cli.
set -eu
port=${1:-7100}
silent=${2:-1000}
servers="$port $((port + 1)) $((port + 2))"
sentinels="$((port + 10)) $((port + 11)) $((port + 12))"
dir=${XDG_RUNTIME_DIR:-/tmp}/loadgen-failover-$(id -u)-$port
umask 077
mkdir -p "$dir"
if [ -L "$dir" ] || ! [ -O "$dir" ]; then
  echo "$dir is not yours: write another port" >&2
  exit 1
fi
cd "$dir"

ask() { # PORT COMMAND…
  at=$1
  shift
  timeout 5 redis-cli -h 127.0.0.1 -p "$at" "$@" 2>&1
}

signal() { # SIGNAL PORT…
  how=$1
  shift
  for at in "$@"; do
    if [ -s "$at.pid" ] && grep -q "^redis-server" "/proc/$(cat "$at.pid")/cmdline" 2>/dev/null; then
      kill -"$how" "$(cat "$at.pid")" || true # it may have ended meanwhile
    fi
  done
}

until_says() { # WORDS PORT COMMAND…
  words=$1
  shift
  for _ in $(seq 300); do
    case $(ask "$@" || true) in *"$words"*) return ;; esac
    sleep 0.05
  done
  echo "no $words from $*" >&2
  exit 1
}

run() { # PORT ARGUMENT…, in the background
  at=$1
  shift
  redis-server "$@" </dev/null >"$at.log" 2>&1 &
  echo $! >"$at.pid"
}

finish() {
  # shellcheck disable=SC2086
  signal KILL $sentinels $servers
  rm -f ./*.pid ./*.conf ./*.log ./*.rdb
}

begin() {
  for at in $servers; do
    of=
    [ "$at" = "$port" ] || of="--replicaof 127.0.0.1 $port"
    # shellcheck disable=SC2086
    run "$at" --port "$at" --bind 127.0.0.1 --save "" --appendonly no --repl-diskless-sync-delay 0 $of
  done
  for at in $servers; do
    [ "$at" = "$port" ] || until_says "master_link_status:up" "$at" info replication
  done
  for at in $sentinels; do
    cat >"$at.conf" <<END
port $at
bind 127.0.0.1
sentinel monitor main 127.0.0.1 $port 2
sentinel down-after-milliseconds main $silent
sentinel failover-timeout main 2000
END
    run "$at" "$at.conf" --sentinel
  done
  for at in $sentinels; do # each knows the other two, and both replicas
    until_says "OK 3 usable" "$at" sentinel ckquorum main
    until_says "slaves=2" "$at" info sentinel
  done
}

case ${LOADGEN_EVENT:-} in
"")
  finish
  begin
  ;;
end)
  finish
  cd /
  rmdir "$dir"
  ;;
kill)
  # What a master has sent arrives even after it has died. So the script closes its
  # connections to the stopped replicas, and lets it go on without them for a moment.
  signal STOP $((port + 1)) $((port + 2))
  ask "$port" client kill type replica >/dev/null
  sleep 0.2
  signal KILL "$port"
  signal CONT $((port + 1)) $((port + 2))
  ;;
*)
  echo "no event $LOADGEN_EVENT: name it kill" >&2
  exit 1
  ;;
esac
