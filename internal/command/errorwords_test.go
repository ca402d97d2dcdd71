package command_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/servertest"
)

// serveRESP starts a server that answers PING and leaves the other commands to answer. It ends with the test.
func serveRESP(t *testing.T, answer func(words []string) string) string {
	t.Helper()
	return servertest.Serve(t, nil, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			var count, size int
			if _, err := fmt.Fscanf(in, "*%d\r\n", &count); err != nil {
				return
			}
			words := make([]string, count)
			for i := range words {
				if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
					return
				}
				word := make([]byte, size+len("\r\n"))
				if _, err := io.ReadFull(in, word); err != nil {
					return
				}
				words[i] = string(word[:size])
			}
			reply := "+PONG\r\n"
			switch {
			case words[0] != "PING":
				reply = answer(words)
			case len(words) == 2:
				reply = fmt.Sprintf("+%s\r\n", words[1])
			}
			if _, err := io.WriteString(conn, reply); err != nil {
				return
			}
		}
	})
}

// TestErrorsThatAreMissesOrQuorums loads a store that says by errors that a key is not there, and that it had no quorum.
func TestErrorsThatAreMissesOrQuorums(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	addr := serveRESP(t, func(words []string) string {
		switch words[0] {
		case "SEEK":
			return "-KEYNOTFOUND key not found\r\n"
		case "DM.GET":
		default:
			return "-ERR unknown\r\n"
		}
		return []string{"$1\r\nv\r\n", "-KEYNOTFOUND key not found\r\n", "-READQUORUM too few replicas\r\n", "-OTHER no\r\n", "-CONFLICT it has changed\r\n"}[asked.Add(1)%5]
	})
	src := `plan "olric" {}
target "c" {
	driver    = "redis"
	endpoints = ["` + addr + `"]
	op "get" {
		request { command = ["DM.GET", "map", "{key}"] }
		expect {
			miss          = ["KEYNOTFOUND"]
			conflict      = ["CONFLICT"]
			quorum_failed = ["READQUORUM", "WRITEQUORUM"]
		}
	}
}
` + getsOfFew
	for _, way := range []string{"ops     = { get = 1 }", "scenario \"s\" {\n\t\tstep \"get\" {}\n\t}"} {
		p := begin(t, strings.Replace(src, "ops     = { get = 1 }", way, 1)).result(30 * time.Second).Phase["p"]
		get := p.Op["get"]
		require.Equal(t, []uint64{80, 80, 80, 80, 80}, []uint64{get.OK, get.Miss, get.QuorumFailed, get.Error, get.Conflict})
		require.Equal(t, 0.5, *get.HitRatio)
		require.EqualValues(t, 240, p.Requests[0].Answered, "by a value, a miss or a conflict")
		require.Contains(t, fmt.Sprint(p.Errors), "READQUORUM too few replicas")
		require.NotContains(t, fmt.Sprint(p.Errors), "KEYNOTFOUND")
	}
	seek := strings.NewReplacer(`op "get"`, `op "seek"`, "DM.GET", "SEEK", "get = 1", "seek = 1").Replace(src)
	for also, want := range map[string]string{"": ": this is the speed of keys that are not there", "expect_hits = 0\n": ", as expect_hits = 0 says"} {
		r := begin(t, strings.Replace(seek, "\tclosed", also+"\tclosed", 1)).result(30 * time.Second)
		require.Contains(t, fmt.Sprint(r.Verdict.Reasons, r.Phase["p"].Notes), "seek: all 400 reads missed"+want)
		require.Equal(t, also == "", r.ExitCode == exit.Invalid)
	}
	for _, c := range []struct{ write, want string }{
		{`ok = ["KEYNOTFOUND"]`, `ok has "KEYNOTFOUND", the word of an error reply: write it in miss, conflict or quorum_failed`},
		{`quorum_failed = ["null"]`, `quorum_failed has "null": write the first word of an error reply in capitals`},
		{`quorum_failed = ["KEYNOTFOUND"]`, `quorum_failed has "KEYNOTFOUND" a second time`},
	} {
		l := begin(t, strings.Replace(src, `quorum_failed = ["READQUORUM", "WRITEQUORUM"]`, c.write, 1))
		require.Equal(t, exit.Usage, l.wait(60*time.Second))
		l.told(c.want)
	}
}

// getsOfFew gets ten keys of a target 400 times.
const getsOfFew = `
dataset "d" {
	keys { count = 10 }
	values { size = 1 }
}
phase "p" {
	target  = target.c
	dataset = dataset.d
	ops     = { get = 1 }
	closed { iterations = 400 }
}
`

// TestABatchWhoseMissesAreLeftOut: a store whose MGET leaves out what is not there is named before it is loaded, and not counted as losing connections.
func TestABatchWhoseMissesAreLeftOut(t *testing.T) {
	t.Parallel()
	addr := serveRESP(t, func(words []string) string {
		if words[0] == "MGET" {
			return "*0\r\n"
		}
		return "-ERR unknown\r\n"
	})
	l := begin(t, `plan "ignite" {}
target "c" {
	driver    = "redis"
	endpoints = ["`+addr+`"]
}
`+strings.Replace(getsOfFew, "closed", "batch = 4\n\tclosed", 1))
	r := l.result(30 * time.Second)
	require.Contains(t, r.Verdict.Reasons[0], "it answered MGET of 2 keys with 0 values: it leaves out keys that are not there, as Ignite does")
	require.Equal(t, exit.Failed, r.ExitCode)
}

// TestErrorsWithinReplies: a reply of several values with an error among them is an error, not an ok.
func TestErrorsWithinReplies(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	addr := serveRESP(t, func(words []string) string {
		if words[0] != "TS.MADD" {
			return "-ERR unknown\r\n"
		}
		return []string{"*2\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n*1\r\n-TSDB: the key does not exist\r\n"}[asked.Add(1)%2]
	})
	p := begin(t, `plan "nested" {}
target "c" {
	driver    = "redis"
	endpoints = ["`+addr+`"]
	op "add" {
		request { command = ["TS.MADD", "{key}", "*", "1", "other", "*", "1"] }
	}
}
dataset "d" {
	keys { count = 10 }
	values { size = 1 }
}
phase "p" {
	target  = target.c
	dataset = dataset.d
	ops     = { add = 1 }
	closed { iterations = 400 }
}
`).result(30 * time.Second).Phase["p"]
	require.Equal(t, []uint64{200, 200}, []uint64{p.Op["add"].OK, p.Op["add"].Error})
	require.Equal(t, "TSDB: the key does not exist", p.Errors[0].Text)
}
