package measure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestCheckWithin: a snapshot counts everything that its step can have, and then one thing more at a time.
func TestCheckWithin(t *testing.T) {
	limits := &Limits{Verbs: [driver.NumVerbs]bool{driver.Put: true}, Acks: 3, Scenarios: []int{2}, Stages: 2, Growth: true, Samples: 4}
	put := &Sample{Verb: driver.Put, Outcome: driver.OK}
	for name, c := range map[string]struct {
		change func(s *Snapshot, l *Limits)
		want   string // "": nothing is wrong
	}{
		"all that there can be": {func(*Snapshot, *Limits) {}, ""},
		"bytes of another verb": {func(s *Snapshot, _ *Limits) { s.Delta.AddBytes(driver.Get, 1, 1) }, ""},
		"room for a scenario":   {func(s *Snapshot, _ *Limits) { s.Delta.scenario(1) }, ""},
		"room for a step":       {func(s *Snapshot, _ *Limits) { s.Delta.step(Step{0, 2}) }, ""},
		"no ordinals":           {func(s *Snapshot, l *Limits) { s.Delta.Ops[driver.Put].Growth, l.Growth = nil, false }, ""},
		"room for ordinals":     {func(s *Snapshot, l *Limits) { s.Delta.Ops[driver.Put].Growth.reset(); l.Growth = false }, ""},
		"room for samples":      {func(s *Snapshot, l *Limits) { s.Samples.Reset(); s.Samples.most, l.Samples = 5, 0 }, ""},
		"an op due":             {func(s *Snapshot, _ *Limits) { s.Delta.AddDue(driver.Get) }, "snapshot 7 counts ops of get, and its step has none"},
		"an op's answers":       {func(s *Snapshot, _ *Limits) { s.Delta.Ack(driver.Get, 1, 1) }, "counts ops of get"},
		"an answer":             {func(s *Snapshot, _ *Limits) { s.Delta.Ack(driver.Put, 4, 1) }, "snapshot 7 counts 4 good answers of an op, put, and its step waits for at most 3"},
		"an answer of a step": {func(s *Snapshot, _ *Limits) {
			lengthen(&s.Delta.step(Step{0, 1}).Acks, 4)
			s.Delta.step(Step{0, 1}).Acks[3].Record(1)
		}, "of an op, step 2 of scenario 1, and"},
		"an answer of a scenario": {func(s *Snapshot, _ *Limits) {
			lengthen(&s.Delta.scenario(0).Acks, 4)
			s.Delta.scenario(0).Acks[3].Record(1)
		}, "of an op, scenario 1, and"},
		"a scenario": {func(s *Snapshot, _ *Limits) { s.Delta.AddScenario(1) }, "snapshot 7 counts scenario 2, and its step has 1"},
		"a step":     {func(s *Snapshot, _ *Limits) { s.Delta.AddStep(Step{0, 2}) }, "snapshot 7 counts step 3 of scenario 1, which has 2"},
		"a stage":    {func(s *Snapshot, _ *Limits) { opAt(&s.Delta.of(driver.Put).Steps, 2).Due++ }, "counts put in stage 3, which its step does not have"},
		"an answer of a stage": {func(s *Snapshot, _ *Limits) {
			lengthen(&opAt(&s.Delta.of(driver.Put).Steps, 1).Acks, 4)
			s.Delta.Ops[driver.Put].Steps[1].Acks[3].Record(1)
		}, "of an op, put, and"},
		"ordinals": {func(_ *Snapshot, l *Limits) { l.Growth = false }, "snapshot 7 counts put by ordinal, and its step does not"},
		"samples":  {func(_ *Snapshot, l *Limits) { l.Samples = 3 }, "snapshot 7 has up to 4 samples, and its step wants at most 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := &Snapshot{SeqFirst: 7}, *limits
			s.Delta.AddDue(driver.Put)
			s.Delta.Record(put)
			s.Delta.Grow(put, 1)
			s.Delta.Ack(driver.Put, 3, 1)
			s.Delta.AddScenario(0)
			s.Delta.AddStep(Step{0, 1})
			s.Samples.Add(4, []DrawnOp{{Verb: driver.Put}})
			c.change(s, &l)
			err := s.CheckWithin(&l)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
