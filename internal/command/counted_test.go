package command_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// countedPlan reads and writes, or reads keys that are not there by an op of its own.
const countedPlan = `plan "counted" {}
variable "driver" { type = string }
variable "endpoint" { type = string }
target "store" {
  driver    = var.driver
  endpoints = [var.endpoint]
OPS}
dataset "items" {
  keys { count = 1000 }
  values { size = 20 }
}
phase "load" {
  target  = target.store
  dataset = dataset.items
  ops     = { MIX }
  closed {
    sessions   = 2
    iterations = 2000
  }
}
`

const (
	readAndWrite = "get = 1, put = 3"
	getBits      = `  op "getbit" {
    request { command = ["GETBIT", "{key}", "7"] }
  }
`
)

func countedText(ops, mix string) string {
	return strings.NewReplacer("OPS", ops, "MIX", mix).Replace(countedPlan)
}

// TestServersCountToo compares the counts of real servers with loadgen's: what agrees is said, what they refuse, too, and reads of absent keys and other
// clients are named.
func TestServersCountToo(t *testing.T) {
	t.Parallel()
	redis := servertest.StartRedis(t).Addr
	refusing := servertest.StartRedis(t).Addr
	ask(t, refusing, "ACL", "SETUSER", "default", "-info")
	copying := servertest.StartRedis(t, "--replica-read-only", "no").Addr
	host, port, err := net.SplitHostPort(redis)
	require.NoError(t, err)
	ask(t, copying, "REPLICAOF", host, port)
	for name, test := range map[string]struct {
		driver, endpoint, ops, mix, said string
		code                             reason.Code
	}{
		"absent keys": {"redis", redis, getBits, "getbit = 1", `twice: redis counted the same 4,000 GETBIT`, reason.CountsDisagree},
		"redis":       {"redis", redis, "", readAndWrite, `twice: redis counted the same [0-9,]+ GET, [0-9,]+ SET`, ""},
		"refusing":    {"redis", refusing, "", readAndWrite, `once: .*INFO: server says NOPERM`, ""},
		"copying":     {"redis", copying, "", readAndWrite, `once: it copies what another server is asked`, ""},
		"memcached":   {"memcached", servertest.Memcached(t), "", readAndWrite, `twice: memcached counted the same [0-9,]+ get, [0-9,]+ set`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, countedText(test.ops, test.mix), "-var", "driver="+test.driver, "-var", "endpoint="+test.endpoint)
			r := l.result(60 * time.Second)
			ph := r.Phase["load"]
			require.Len(t, ph.Counted, 1)
			require.Regexp(t, "^"+test.said, ph.Counted[0].Said)
			require.Regexp(t, "counted +"+test.said[:5], l.stdout.String())
			require.Equal(t, test.code, countsCode(ph), ph.Reasons)
		})
	}
}

// countsCode returns the code of the reason that servers' counts gave; "" if there is none.
func countsCode(ph *run.Phase) reason.Code {
	for _, why := range ph.Reasons {
		if why.Code == reason.CountsDisagree || why.Code == reason.OthersBeside {
			return why.Code
		}
	}
	return ""
}

// A neighbour is named, and counters that are reset during the load say nothing.
func TestOthersBesideAndResets(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("iterations = 2000", "duration = \"2s\"\n think = \"1ms\"", `phase "load" {`, `phase "fill" {
  target  = target.store
  dataset = dataset.items
  populate {}
}
phase "load" {`).Replace(countedText("", readAndWrite))
	for name, test := range map[string]struct {
		disturb func(addr string)
		said    string
		code    reason.Code
	}{
		"neighbour": {func(addr string) {
			ask(t, addr, "SET", "other", "1")
			for range 200 {
				ask(t, addr, "GET", "other")
			}
		}, "twice: .*redis counted [0-9,]+ GET, loadgen sent", reason.OthersBeside},
		"reset": {func(addr string) { ask(t, addr, "CONFIG", "RESETSTAT") }, "once: its counters began anew", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := servertest.StartRedis(t).Addr
			ask(t, addr, "CONFIG", "RESETSTAT")
			l := begin(t, text, "-var", "driver=redis", "-var", "endpoint="+addr)
			l.underWay()
			test.disturb(addr)
			ph := l.result(60 * time.Second).Phase["load"]
			require.Regexp(t, "^"+test.said, ph.Counted[0].Said)
			require.Equal(t, test.code, countsCode(ph), ph.Reasons)
		})
	}
}
