package measure

import (
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Times are the latencies of all ops that were due. Ops that ended ok or miss count with their latency, all others as slower than any of those. An op
// that timed out after a second would have taken longer, by an unknown time; one refused at once took no time, but its user got nothing. The zero
// value has no ops.
type Times struct {
	Answered hist.Hist // nanoseconds of ok and miss
	Failed   uint64    // ops that ended otherwise, were shed, or have not ended
}

// Count returns the number of ops.
func (t *Times) Count() uint64 { return t.Answered.Count() + t.Failed }

// Quantile returns the nearest rank of q among all ops. known is false if that rank falls on a failed op, or if there are no ops.
func (t *Times) Quantile(q float64) (ns int64, known bool) {
	rank := hist.Rank(q, t.Count())
	if rank > t.Answered.Count() || rank == 0 {
		return 0, false
	}
	return t.Answered.At(rank), true
}

// Merge adds the ops of o.
func (t *Times) Merge(o *Times) {
	t.Answered.Merge(&o.Answered)
	t.Failed += o.Failed
}

// Failed returns how many ops ended neither ok nor miss, or were shed.
func (l *Ledger) Failed() uint64 {
	var n uint64
	for outcome := driver.Miss + 1; int(outcome) < driver.NumOutcomes; outcome++ {
		n += l.Outcomes[outcome]
	}
	return n
}

// failed returns how many due ops ended neither ok nor miss, counting those still in flight.
func (o *Op) failed() uint64 {
	l := o.Ledger()
	return l.Failed() + uint64(max(0, o.InFlight))
}

// ServiceAll returns the service times of a whole step.
func (o *Op) ServiceAll() Times { return Times{Answered: answered(&o.Service), Failed: o.failed()} }

// ResponseAll returns the response times of a whole step.
func (o *Op) ResponseAll() Times { return Times{Answered: answered(&o.Response), Failed: o.failed()} }

// SplitAll returns both parts of the service times of a whole step; empty ones if the parts are not known.
func (o *Op) SplitAll() (write, sync Times) {
	if o.Split.empty() {
		return write, sync
	}
	return Times{Answered: o.Split.Write, Failed: o.failed()}, Times{Answered: o.Split.Sync, Failed: o.failed()}
}

// AckAll returns the times to the k-th good answer. Ops that never got that many count as failed.
func (o *Op) AckAll(k int) Times {
	t := Times{}
	t.Answered.Merge(&o.Acks[k-1])
	all := o.Outcomes[driver.OK] + o.Outcomes[driver.Miss] + o.failed()
	t.Failed = all - min(all, t.Answered.Count())
	return t
}

func answered(classes *[NumClasses]hist.Hist) (h hist.Hist) {
	h.Merge(&classes[ClassOK])
	h.Merge(&classes[ClassMiss])
	return h
}
