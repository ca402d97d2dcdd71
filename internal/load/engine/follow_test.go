package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// verifyPlan has a load whose keys each have one writer, and a phase that verifies it.
func verifyPlan(keys int, load string) string {
	return fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = ["127.0.0.1:%d"]
		}
		dataset "d" {
			keys {
				count   = %d
				writers = "one"
			}
			values { size = 40 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			max_bad = 1
			%s
		}
		phase "check" {
			target  = target.t
			dataset = dataset.d
			verify { pipeline = 3 }
		}`, firstPort, keys, load)
}

// verify reads what the load before it has put.
func (b *bench) verify() *measure.Totals {
	b.t.Helper()
	require.NoError(b.t, b.enter("check", 0))
	got := b.run(worker.Verify)
	return &got
}

// The server loses what it has acknowledged: some keys are gone, and some are what they were before. A key that was never put is not read.
func TestVerifyCountsWhatAServerLoses(t *testing.T) {
	b := newBench(t, parsePlan(t, verifyPlan(1000, "ops = { put = 1 }\nclosed {\n sessions = 7\n pipeline = 4\n iterations = 200\n}")), "load", time.Millisecond)
	s := b.server(0)
	first := map[string][]byte{}
	var key string
	s.heard = func(_, k []byte) { key = string(k) }
	s.put = func(value []byte) {
		if first[key] == nil {
			first[key] = bytes.Clone(value)
		}
	}
	b.run(worker.Load)
	s.heard, s.put = nil, nil
	require.Less(t, len(first), 1000)
	missing, older := uint64(0), uint64(0)
	for k, v := range first {
		was := append(appendDollar(nil, len(v)), v...)
		switch {
		case len(k)%2 == 0 && k[len(k)-1] == '3':
			delete(s.keys, k)
			missing++
		case k[len(k)-1] == '5' && !bytes.HasPrefix(s.keys[k], was):
			s.keys[k] = append(was, "\r\n"...)
			older++
		}
	}
	got := b.verify().Versions.Verified
	require.Positive(t, missing)
	require.Positive(t, older)
	require.Equal(t, []uint64{uint64(len(first)), missing, older, 0, 0}, []uint64{got.Keys, got.Missing, got.Older, got.Newer, got.Unread})
	require.Len(t, got.Lost, measure.MaxLost)
	for _, l := range got.Lost {
		require.Contains(t, first, string(l.Key))
		require.Less(t, l.Found, l.Version)
		require.Positive(t, l.At)
	}
}

func appendDollar(b []byte, n int) []byte { return fmt.Appendf(b, "$%d\r\n", n) }

// A put that was not answered may or may not have taken effect: neither value is lost. Nor is a key that a delete may have removed.
func TestVerifyLeavesOpenWhatWasNotAnswered(t *testing.T) {
	b := newBench(t, parsePlan(t, verifyPlan(50, "ops = { put = 8, delete = 2 }\nclosed {\n sessions = 5\n iterations = 300\n}")), "load", time.Millisecond)
	s := b.server(0)
	s.deletes = true
	n := 0
	s.latency = func(int) time.Duration {
		if n++; n%10 == 0 {
			return -1 // it is carried out, and never answered
		}
		return time.Millisecond
	}
	load := b.run(worker.Load)
	require.Positive(t, load.Ops[driver.Put].Outcomes[driver.Timeout])
	s.latency = func(int) time.Duration { return time.Millisecond }
	got := b.verify().Versions.Verified
	require.Positive(t, got.Keys)
	require.Positive(t, got.Newer)
	require.Zero(t, got.Missing+got.Older+got.Unread)
}

// A deleted key that is there again is an acknowledged delete that was lost. A server that does not answer leaves open what became of its keys.
func TestVerifyFindsWhatWasDeleted(t *testing.T) {
	b := newBench(t, parsePlan(t, verifyPlan(40, "ops = { put = 1, delete = 1 }\nclosed {\n sessions = 4\n iterations = 100\n}")), "load", time.Millisecond)
	s := b.server(0)
	s.deletes = true
	ever := map[string][]byte{}
	b.net.at(time.Duration(b.net.clock.t)+50*time.Millisecond, func() {
		for k, v := range s.keys {
			ever[k] = bytes.Clone(v)
		}
	})
	b.run(worker.Load)
	again := uint64(0)
	for k, v := range ever {
		if s.keys[k] == nil {
			s.keys[k] = v
			again++
		}
	}
	require.Positive(t, again)
	require.Equal(t, again, b.verify().Versions.Verified.Older)
	s.latency = func(int) time.Duration { return -1 }
	got := b.verify().Versions.Verified
	require.Equal(t, got.Keys, got.Unread)
}
