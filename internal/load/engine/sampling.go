package engine

import (
	"bytes"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// sampling samples ops of a step, and holds what is known of the ops that are about to end.
type sampling struct {
	draw *measure.Draw
	wall int64  // Unix nanoseconds of the run clock's zero
	in   int64  // size of each of the current replies, in bytes
	code uint16 // status code of the current reply
	why  []byte // text of the current errors
}

// severalErrors stands for the error of an op that ended together with others that failed in different ways.
var severalErrors = []byte("one of several errors that came together")

// newSampling returns the sampling of a loop's ops. Its draw is independent of those of other steps, loops and workers.
func newSampling(most int, seed uint64, step worker.Step, loop int, wall int64) *sampling {
	return &sampling{draw: measure.NewDraw(most, seed, uint64(step.Seq)<<40|uint64(step.From)<<10|uint64(loop)), in: measure.Unknown, wall: wall}
}

// drawn returns the ops sampled since the last call; none without sampling.
func (s *sampling) drawn() []measure.DrawnOp {
	if s == nil {
		return nil
	}
	return s.draw.Taken()
}

// ended samples among ops that have ended alike. How many bytes each sent is unknown; the received bytes are divided among them equally.
func (s *sampling) ended(of *measure.Sample, n uint64) {
	if !s.draw.Passes(n) {
		s.enter(of, s.in, measure.Unknown, n)
	}
}

// endedAlone samples an op that has a state, so that its bytes are known.
func (s *sampling) endedAlone(of *measure.Sample, st *opState) {
	if !s.draw.Passes(1) {
		s.enter(of, st.in, st.out, 1)
	}
}

func (s *sampling) enter(of *measure.Sample, in, out int64, n uint64) {
	op := measure.DrawnOp{Due: s.wall + of.Due, Start: s.wall + of.Start, End: s.wall + of.End, In: in, Out: out, Code: int(s.code), Verb: of.Verb, Outcome: of.Outcome}
	why := s.why
	if !of.Outcome.Failed() {
		why = nil
	}
	s.draw.Enter(&op, why, n)
}

// because sets the reason why the next op to end failed.
func (s *sampling) because(text []byte) { s.why = append(s.why[:0], text...) }

// forget clears what is known of the current replies.
func (s *sampling) forget() { s.in, s.code, s.why = measure.Unknown, 0, s.why[:0] }

// wrong counts an error.
func (l *loop) wrong(text []byte) {
	l.rec.Errors.Add(text)
	switch s := l.sampling; {
	case s == nil:
	case len(s.why) > 0 && !bytes.Equal(s.why, text):
		s.why = append(s.why[:0], severalErrors...)
	default:
		s.why = append(s.why[:0], text...)
	}
}
