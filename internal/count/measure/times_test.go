package measure

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Values by hand, for answers that took 1, 2, … ns: a failed op is slower than any that did not fail, so a rank beyond the answers has no time.
func TestQuantilesCountWhatFailed(t *testing.T) {
	for _, c := range []struct {
		answered, failed int
		q                float64
		want             int64 // 0: unknown
	}{
		{0, 0, 0.5, 0},
		{0, 3, 0.5, 0},
		{0, 1, 1, 0},
		{1, 0, 0.5, 1},
		{1, 0, 1, 1},
		{10, 0, 0.5, 5},
		{10, 0, 0.51, 6},
		{10, 0, 1, 10},
		{10, 10, 0.5, 10},
		{10, 10, 0.51, 0},
		{10, 11, 0.5, 0},
		{10, 10, 0.05, 1},
		{10, 1, 1, 0},
	} {
		times := Times{Failed: uint64(c.failed)}
		for ns := range c.answered {
			times.Answered.Record(int64(ns + 1))
		}
		require.EqualValues(t, c.answered+c.failed, times.Count(), "%+v", c)
		ns, known := times.Quantile(c.q)
		require.Equal(t, c.want, ns, "%+v", c)
		require.Equal(t, c.want > 0, known, "%+v", c)
		twice := Times{}
		twice.Merge(&times)
		twice.Merge(&times)
		require.EqualValues(t, 2*c.failed, twice.Failed, "%+v", c)
		require.EqualValues(t, 2*(c.answered+c.failed), twice.Count(), "%+v", c)
	}
}

// Due ops that were not answered have failed, for the op and for each of its good answers; a negative in_flight does not count.
func TestTimesOfAWholeStep(t *testing.T) {
	for _, c := range []struct {
		outcomes map[driver.Outcome]uint64
		inFlight int64
		acks     []uint64 // samples, by good answer
		failed   uint64
		ackless  []uint64
	}{
		{acks: []uint64{0}, ackless: []uint64{0}},
		{outcomes: map[driver.Outcome]uint64{driver.OK: 5, driver.Miss: 2}, acks: []uint64{7, 4, 0}, ackless: []uint64{0, 3, 7}},
		{outcomes: map[driver.Outcome]uint64{driver.Conflict: 1, driver.QuorumFailed: 2, driver.Timeout: 4, driver.Error: 8, driver.Shed: 16}, acks: []uint64{0, 3}, failed: 31, ackless: []uint64{31, 28}},
		{outcomes: map[driver.Outcome]uint64{driver.OK: 5, driver.Error: 1}, inFlight: 3, acks: []uint64{6, 9, 10}, failed: 4, ackless: []uint64{3, 0, 0}},
		{outcomes: map[driver.Outcome]uint64{driver.OK: 5}, inFlight: -3, acks: []uint64{5}, ackless: []uint64{0}},
	} {
		o := Op{ledger: Ledger{InFlight: c.inFlight}}
		for outcome, n := range c.outcomes {
			o.Outcomes[outcome] = n
		}
		for class, n := range []uint64{ClassOK: 2, ClassMiss: 3, ClassBad: 100} {
			o.Service[class].RecordN(1, n)
			o.Response[class].RecordN(1, n)
		}
		for _, all := range []Times{o.ServiceAll(), o.ResponseAll()} {
			require.Equal(t, []uint64{5, c.failed}, []uint64{all.Answered.Count(), all.Failed}, "%+v", c)
		}
		for i, n := range c.acks {
			o.Acks = append(o.Acks, answeredTimes(n))
			all := o.AckAll(i + 1)
			require.Equal(t, []uint64{n, c.ackless[i]}, []uint64{all.Answered.Count(), all.Failed}, "%+v, %d", c, i+1)
		}
	}
}

// The time of turns counts only ops that took some: one that ended when it was due, or before by a clock that was set, adds none and allocates
// nothing.
func TestTimeOfTurns(t *testing.T) {
	for took, want := range map[int64]uint64{-5: 0, 0: 0, 1: 3, 7: 21} {
		const origin, due = 1 << 40, 1<<40 + 100
		totals := NewTotals(origin, 1)
		totals.RecordN(&Sample{Verb: driver.Get, Due: due, Start: due, End: due + took}, 3)
		if want == 0 {
			require.Nil(t, totals.Time, "%d", took)
			continue
		}
		require.Equal(t, []uint64{want, want}, []uint64{totals.Time.N[0], totals.Time.Total()}, "%d: at its beginning", took)
	}
}

// An error in a form names the step of the scenario that it is in.
func TestDamagedStepIsNamed(t *testing.T) {
	totals := NewTotals(0, 1)
	step := func() *Op {
		o := &Op{}
		o.Due, o.Outcomes[driver.OK] = 1, 1
		return o
	}
	scenario := step()
	scenario.Steps = []*Op{step(), {}, step()}
	totals.Scenarios = []*Op{scenario}
	form := bytesOf(t, totals)
	said := map[string]bool{}
	for n := range len(form) {
		_, err := new(Totals).Decode(form[:n])
		require.Error(t, err)
		if _, at, ok := strings.Cut(err.Error(), "scenario 1: "); ok {
			said[strings.Replace(at, "decode histogram: ", "", 1)] = true
		}
	}
	require.Equal(t, map[string]bool{"it ends early": true, "step 1: it ends early": true, "step 3: it ends early": true}, said)
}

func answeredTimes(n uint64) (h hist.Hist) {
	h.RecordN(1, n)
	return h
}
