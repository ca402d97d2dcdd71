package engine

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// A checked value says who put it and has a version: the time, or the next number if that is later. Each key of an op has its own.
func TestVersionsOfValues(t *testing.T) {
	l := &loop{wall: 1000}
	put := func(keys int, now int64) (versions []uint64) {
		o := &op.Op{Stream: 7, Value: driver.Value{Checked: true}, Batch: make([]driver.Item, keys)}
		l.sign(o, now)
		require.EqualValues(t, 7, o.Value.Writer)
		for _, item := range o.Batch {
			require.EqualValues(t, 7, item.Value.Writer)
			versions = append(versions, item.Value.Version)
		}
		return append(versions, o.Value.Version)
	}
	require.Equal(t, []uint64{1005}, put(0, 5))
	require.Equal(t, []uint64{1006}, put(0, 5))
	require.Equal(t, []uint64{1007, 1008, 1009, 1007}, put(3, 5), "the op's value is its first key's")
	require.Equal(t, []uint64{1010}, put(0, 6))
	require.Equal(t, []uint64{1100}, put(0, 100))

	unchecked := new(op.Op)
	l.sign(unchecked, 200)
	require.Zero(t, unchecked.Value)
	require.Equal(t, []uint64{1101}, put(0, 100), "it took no version")
}

// A session's slots are taken and given back, and the loop's with them. Its first start stays.
func TestSlotsTakenAndGivenBack(t *testing.T) {
	l, s := new(loop), new(session)
	l.occupy(s, 2, 10)
	l.occupy(s, 3, 20)
	l.vacate(s, 1, 30)
	require.Equal(t, session{active: 4, begun: true, first: 10, out: 20, started: 5, last: 30}, *s)
	other := new(session)
	l.occupy(other, 1, 40)
	require.Equal(t, 5, l.running)
	l.vacate(other, 1, 50)
	require.Equal(t, session{begun: true, first: 40, out: 40, started: 1, last: 50}, *other)
	require.Equal(t, 4, l.running)
}

// An op that is due counts as one, and each of its keys as one; the digest is of the keys.
func TestOpsThatAreDue(t *testing.T) {
	l := &loop{rec: measure.NewTotals(0, 1)}
	l.count(&op.Op{Stream: 1, N: 2, Verb: driver.Put, Key: []byte("a"), Value: driver.Value{Size: 3}})
	digest := measure.OpDigest(1, 2, driver.Put, []byte("a"), 3)
	require.Equal(t, digest, l.rec.Digest)
	l.count(&op.Op{Stream: 4, N: 5, Verb: driver.Put, Key: []byte("b"), Batch: []driver.Item{
		{Key: []byte("b"), Value: driver.Value{Size: 6}}, {Key: []byte("c"), Value: driver.Value{Size: 7}},
	}})
	digest += measure.OpDigest(4, 5, driver.Put, []byte("b"), 6) + measure.OpDigest(4, 5, driver.Put, []byte("c"), 7)
	require.Equal(t, digest, l.rec.Digest)
	require.EqualValues(t, 2, l.rec.Ops[driver.Put].Due)
	require.EqualValues(t, 2, l.rec.Ops[driver.Put].Keys.Due)
	l.count(&op.Op{Stream: 8, N: 9, Verb: driver.Put, Key: []byte("d"), Batch: []driver.Item{{Key: []byte("d")}}})
	require.Equal(t, digest+measure.OpDigest(8, 9, driver.Put, []byte("d"), 0), l.rec.Digest)
	require.EqualValues(t, 3, l.rec.Ops[driver.Put].Keys.Due)
}

// Ops that end together are counted and sampled by outcome, and those that failed count towards the end of the step.
func TestOpsThatEndTogether(t *testing.T) {
	halt := new(atomic.Int32)
	l := &loop{rec: measure.NewTotals(0, 1), sampling: newSampling(100, 1, worker.Step{}, 0, 0), errorStop: newErrorStop(3, halt)}
	end := func(ended [driver.NumOutcomes]uint64) {
		l.record(&measure.Sample{Verb: driver.Get, Due: 1, Start: 2, End: 3}, &ended)
	}
	end([driver.NumOutcomes]uint64{driver.OK: 5, driver.Miss: 4, driver.Error: 2})
	require.Equal(t, goOn, halt.Load())
	end([driver.NumOutcomes]uint64{driver.Timeout: 1})
	require.Equal(t, drain, halt.Load(), "the third failure")
	want := [driver.NumOutcomes]uint64{driver.OK: 5, driver.Miss: 4, driver.Timeout: 1, driver.Error: 2}
	get := l.rec.Ops[driver.Get]
	require.Equal(t, want, get.Outcomes)
	require.EqualValues(t, 12, get.Lag.Count())
	require.Nil(t, get.Bins[driver.Conflict], "an outcome that none had")
	var drawn [driver.NumOutcomes]uint64
	for _, one := range l.sampling.drawn() {
		drawn[one.Outcome]++
	}
	require.Equal(t, want, drawn)

	l.sampling, l.errorStop = nil, nil
	end(want)
	require.EqualValues(t, 10, get.Outcomes[driver.OK])
}

// A request that is not answered timed out, was not sent after all, or failed.
func TestRequestsWithoutAnswers(t *testing.T) {
	ledger := measure.Requests{Sent: 100}
	unanswered(&ledger, op.RequestTimeout, 2)
	unanswered(&ledger, op.Refused, 3)
	unanswered(&ledger, op.Lost, 4)
	require.Equal(t, measure.Requests{Sent: 97, Timeout: 2, Refused: 3, Error: 4}, ledger)
}

// A shed op was due, with all its keys, and takes no state. A stream that has ended has none to shed.
func TestShedOpsWereDue(t *testing.T) {
	for batch, keys := range map[string]uint64{"": 0, "batch = 4": 8} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\n"+batch+"\nclosed {\n sessions = 1\n iterations = 2\n}"), "load", 0)
		b.equip(worker.Load)
		for range 3 {
			b.l.shed(&b.l.sessions[0].stream)
			require.Zero(t, b.l.used)
		}
		get := b.l.rec.Ops[driver.Get]
		require.Equal(t, []uint64{2, 2}, []uint64{get.Due, get.Outcomes[driver.Shed]})
		require.Equal(t, []uint64{keys, keys}, []uint64{get.Keys.Due, get.Keys.Outcomes[driver.Shed]})
		require.NotZero(t, b.l.rec.Digest)
	}
}
