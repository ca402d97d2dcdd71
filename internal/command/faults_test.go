package command_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/hist"
)

// faultsPlan puts on a separate connection for each session.
const faultsPlan = `
plan "faults" {}
variable "endpoints" { type = list(string) }
variable "think" { default = "50ms" }
variable "timeout" { default = "5s" }
variable "sessions" { default = 60 }
variable "iterations" { default = 20 }
variable "driver" { default = "redis" }
target "t" {
	driver    = var.driver
	endpoints = var.endpoints
	timeout   = var.timeout
}` + hundredItems + `
phase "puts" {
	target  = target.t
	dataset = dataset.items
	ops     = { put = 1 }
	max_bad = "50%"
	closed {
		sessions   = var.sessions
		iterations = var.iterations
		think      = var.think
	}
}
`

// summary ends a node and returns the counts that it prints, by name: "set" and the like, and "requests dropped".
func (s *server) summary() map[string]uint64 {
	s.t.Helper()
	s.signal(syscall.SIGINT)
	require.Zero(s.t, s.wait(60*time.Second), &s.stderr)
	_, text, _ := strings.Cut(s.stdout.String(), "connections: ")
	found := map[string]uint64{}
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		words := strings.Fields(strings.TrimSuffix(item, " requests"))
		n, err := strconv.ParseUint(words[len(words)-1], 10, 64)
		require.NoError(s.t, err, text)
		found[strings.Join(words[:len(words)-1], " ")] = n
	}
	return found
}

// TestLostConnectionsAreCountedAlike compares loadgen's counts of ended connections with the node's.
func TestLostConnectionsAreCountedAlike(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ flag, driver, protocol, name string }{
		{"--close", "redis", "resp", "connections closed"},
		{"--reset", "redis", "resp", "connections reset"},
		{"--close", "memcached", "memcached", "connections closed"},
	} {
		t.Run(test.driver+test.flag, func(t *testing.T) {
			t.Parallel()
			node := beginTarget(t, test.flag, "3%", "--seed", "5", "--protocol", test.protocol)
			p := begin(t, faultsPlan, "-var", nodes(node.addr), "-var", "driver="+test.driver, "-var", "timeout=60s").result(3 * time.Minute).Phase["puts"]
			put, said := p.Op["put"], node.summary()
			ended := said[test.name]
			require.NotZero(t, ended)
			require.Equal(t, run.Causes{Lost: ended, Refused: put.Causes.Refused}, put.Causes, said)
			require.Equal(t, put.Due-ended-put.Causes.Refused, put.OK)
			require.Equal(t, said["set"], p.Requests[0].Sent)
			require.Equal(t, ended, p.Requests[0].Error)
		})
	}
}

// TestDropsAreTimeouts: after a drop, sessions think for longer than it takes to give the connection up, so that a drop affects one op.
func TestDropsAreTimeouts(t *testing.T) {
	t.Parallel()
	node := beginTarget(t, "--drop", "3%", "--seed", "5")
	p := begin(t, faultsPlan, "-var", nodes(node.addr), "-var", "timeout=5s", "-var", "think=11s",
		"-var", "sessions=450", "-var", "iterations=2").result(3 * time.Minute).Phase["puts"]
	put, said := p.Op["put"], node.summary()
	dropped := said["requests dropped"]
	require.NotZero(t, dropped)
	require.Equal(t, dropped, said["requests unanswered"])
	require.Equal(t, run.Causes{Timeout: dropped}, put.Causes)
	require.Equal(t, put.Due-dropped, put.OK)
	require.Equal(t, said["set"], put.Sent)
}

// TestDropsSilenceTheirConnection: sessions go on at once, so ops behind a drop fail with it, and all unanswered ones are counted.
func TestDropsSilenceTheirConnection(t *testing.T) {
	t.Parallel()
	node := beginTarget(t, "--drop", "3%")
	p := begin(t, faultsPlan, "-var", nodes(node.addr), "-var", "think=0s", "-var", "timeout=5s").result(3 * time.Minute).Phase["puts"]
	causes, said := p.Op["put"].Causes, node.summary()
	require.NotZero(t, said["requests dropped"])
	require.GreaterOrEqual(t, causes.Timeout, said["requests dropped"])
	require.Equal(t, said["requests unanswered"], causes.Timeout+causes.Lost)
	require.Equal(t, said["set"], p.Requests[0].Sent, "requests that had not left when their connection was given up were not sent")
}

// delaysPlan gets from nodes that delay replies for so long that nothing else matters.
const delaysPlan = `
plan "delays" {}
variable "endpoints" { type = list(string) }` + redisT + hundredItems + fillItems + `
phase "gets" {
	target  = target.t
	dataset = dataset.items
	ops     = { get = 1 }
	closed {
		sessions   = 100
		iterations = 50
	}
}
`

// delayed are the delays of gets in a log.
func delayed(t *testing.T, path string) (list []int64) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"connection", "verb", "arrival_ns", "delay_ns"}, rows[0])
	for _, row := range rows[1:] {
		if row[1] == "get" {
			ns, err := strconv.ParseInt(row[3], 10, 64)
			require.NoError(t, err)
			list = append(list, ns)
		}
	}
	return list
}

// TestDrawnDelaysAreMeasured compares the quantiles of service times with those of the delays that the node says it drew. They are no less, and
// exceed them at most by the floor, which is what service times exceed a constant delay by at p99; by more only if loadgen or the node lacked a
// processor.
func TestDrawnDelaysAreMeasured(t *testing.T) {
	const constant = 20 * time.Millisecond
	measure := func(node *server) (service hist.Hist, waited bool) {
		l := begin(t, delaysPlan, "-var", nodes(node.addr))
		waited = wanting(t, l.result(60 * time.Second).Phase["gets"], node.cmd.Process.Pid)
		return l.totals(t).ServiceAll().Answered, waited
	}
	fixed, _ := measure(beginTarget(t, "--delay", constant.String()))
	floor := float64(fixed.Quantile(0.99) - int64(constant))
	for _, times := range []string{"exp(20ms)", "uniform(10ms, 40ms)", "lognormal(20ms, 0.5)"} {
		log := filepath.Join(t.TempDir(), "delays.csv")
		node := beginTarget(t, "--delay", times, "--delay-log", log, "--seed", "3")
		service, waited := measure(node)
		said := node.summary()
		list := delayed(t, log)
		require.Len(t, list, 5000)
		require.EqualValues(t, 5000, said["get"])
		var drawn hist.Hist
		for _, ns := range list {
			drawn.Record(ns)
		}
		for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
			got, want := float64(service.Quantile(q)), float64(drawn.Quantile(q))
			require.GreaterOrEqual(t, got, want, "%s: p%g", times, 100*q)
			const bucket = 1.008 // its upper bound over its lower one
			if got > want*bucket+floor {
				require.True(t, waited, "%s: p%g is %v ns of %v drawn, and the floor is %v", times, 100*q, got, want, floor)
			}
		}
	}
}

// TestBandwidthIsTheThroughput reads values through a node that sends 4 MiB a second. Throughput is never more, and less only if loadgen or the node
// lacked a processor for longer than it can catch up afterwards.
func TestBandwidthIsTheThroughput(t *testing.T) {
	const bandwidth, size, reply = 4 << 20, 10_000, len("$10000\r\n") + 10_000 + len("\r\n")
	src := strings.Replace(strings.Replace(closedPlan, "size = 100", fmt.Sprintf("size = %d", size), 1), `think    = "20ms"`, "pipeline = 16", 1)
	node := beginTarget(t, "--bandwidth", "4MiB")
	p := begin(t, src, "-var", nodes(node.addr), "-var", "duration=3s").result(60 * time.Second).Phase["gets"]
	require.NotNil(t, p.Op["get"].Rate)
	share := *p.Op["get"].Rate * float64(reply) / bandwidth
	require.Less(t, share, 1.01)
	if share < 0.99 {
		require.True(t, wanting(t, p, node.cmd.Process.Pid), "%v of the bandwidth; %s", share, doubts(p))
	}
}
