package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// sign puts the run, the writer and a version into an op's values, if they are checked.
func (l *loop) sign(o *op.Op, now int64) {
	if !o.Value.Checked {
		return
	}
	version := l.versions(max(1, len(o.Batch)), now)
	o.Value.Run, o.Value.Writer, o.Value.Version = l.runBits, o.Stream, version
	for i := range o.Batch {
		v := &o.Batch[i].Value
		v.Run, v.Writer, v.Version = l.runBits, o.Stream, version+uint64(i)
	}
}

// versions returns the first of n consecutive versions for values that are put now. Versions only increase within a loop, so they are unique within a
// stream, which belongs to one loop.
func (l *loop) versions(n int, now int64) uint64 {
	first := max(l.version, uint64(l.wall+now))
	l.version = first + uint64(n)
	return first
}

// occupy takes slots of the session for n ops.
func (l *loop) occupy(s *session, n int, now int64) {
	s.active += n
	l.running += n
	s.out, s.started = now, s.started+int64(n)
	if !s.begun {
		s.begun, s.first = true, now
	}
}

// vacate gives back the slots of n ops that have ended. The caller then tells the feed.
func (l *loop) vacate(s *session, n int, now int64) {
	s.active -= n
	l.running -= n
	s.last = now
}

// count enters a due op into the ledger.
func (l *loop) count(o *op.Op) {
	l.rec.AddDue(o.Verb)
	if len(o.Batch) == 0 {
		l.rec.Mix(digestOf(o))
		return
	}
	l.rec.AddKeysDue(o.Verb, len(o.Batch))
	for i := range o.Batch {
		item := &o.Batch[i]
		l.rec.Mix(measure.OpDigest(o.Stream, o.N, o.Verb, item.Key, item.Value.Size))
	}
}

func digestOf(o *op.Op) uint64 {
	return measure.OpDigest(o.Stream, o.N, o.Verb, o.Key, o.Value.Size)
}

// record counts ops that ended at the same time, by outcome.
func (l *loop) record(sample *measure.Sample, ended *[driver.NumOutcomes]uint64) {
	for outcome, count := range ended {
		if count > 0 {
			sample.Outcome = driver.Outcome(outcome)
			l.rec.RecordN(sample, count)
			if l.sampling != nil {
				l.sampling.ended(sample, count)
			}
			if sample.Outcome > driver.Miss {
				l.errorStop.ended(sample.Outcome, count)
			}
		}
	}
}

// unanswered counts n requests in the ledger that will not be answered.
func unanswered(ledger *measure.Requests, kind op.EventKind, n uint64) {
	switch kind {
	case op.RequestTimeout:
		ledger.Timeout += n
	case op.Refused:
		ledger.Sent -= n
		ledger.Refused += n
	default:
		ledger.Error += n
	}
}

// shed counts the stream's next op, which was due and will never start.
func (l *loop) shed(stream *workload.Stream) {
	if l.scenes != nil {
		l.scenes.drop(stream)
		return
	}
	st := l.take()
	if stream.Next(&st.Op) {
		l.count(&st.Op)
		l.rec.Shed(st.Verb, 1)
		l.rec.ShedKeys(st.Verb, len(st.Batch))
	}
	l.release(st)
}
