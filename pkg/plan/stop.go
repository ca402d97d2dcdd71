package plan

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Stop says how many failed ops end a load, and the run with it. One of the two fields is set, the other is 0. An op has failed if
// it ended in timeout, error or quorum_failed.
type Stop struct {
	Errors int64   `json:"errors"` // this many
	Share  float64 `json:"share"`  // more than this share of ended ops, 0 to 1, once stopLeast have ended
}

// stopLeast is how many ops must have ended for a share of them to be meaningful.
const stopLeast = 100

// Reached reports whether failed of ended ops are enough to stop.
func (s *Stop) Reached(failed, ended uint64) bool {
	if s.Errors > 0 {
		return failed >= uint64(s.Errors)
	}
	return ended >= stopLeast && float64(failed) > s.Share*float64(ended)
}

func (s *Stop) String() string {
	switch {
	case s.Errors == 0:
		return fmt.Sprintf("stop_after = %q", strconv.FormatFloat(100*s.Share, 'g', 6, 64)+"%")
	case s.Errors == 1:
		return `on_error = "stop"`
	}
	return fmt.Sprintf("stop_after = %d", s.Errors)
}

// stop reads how many failures end the load; nil if no number does.
func (b *block) stop() *Stop {
	onError := "continue"
	if b.Has("stop_after") {
		onError = "stop"
	}
	b.Text("on_error", &onError)
	switch {
	case onError == "continue" && b.Has("stop_after"):
		b.Bad("on_error", "\"continue\" beside stop_after", "Leave on_error out.")
		return nil
	case onError == "continue":
		return nil
	case onError != "stop":
		b.Bad("on_error", dialect.Quote(onError), `Write "stop", to end the run with the first op that fails, or "continue"; stop_after = 100 ends it after so many.`)
		return nil
	}
	const write = `Write a number of errors such as 100, or a share of the ops below 100%, such as "5%".`
	v, ok := b.Value("stop_after")
	if !ok {
		return &Stop{Errors: 1}
	}
	s := new(Stop)
	if v.Type() == cty.Number && v.AsBigFloat().Cmp(big.NewFloat(1)) >= 0 {
		dialect.Integer(b.Block, "stop_after", &s.Errors)
		return s
	}
	if v.Type() == cty.String && !strings.HasSuffix(v.AsString(), "%") {
		b.Bad("stop_after", dialect.Quote(v.AsString()), write)
		return s
	}
	if b.Share("stop_after", &s.Share) && !(s.Share > 0 && s.Share < 1) {
		b.Bad("stop_after", fmt.Sprintf("a share of %g", s.Share), write)
	}
	return s
}

// stop checks how many failures end a load.
func (v *validator) stop(ph *Phase, at part) {
	s := ph.Stop
	if s == nil {
		return
	}
	about := at.path + ".stop_after"
	if s.Errors == 1 {
		about = at.path + ".on_error"
	}
	switch {
	case ph.Search != nil:
		v.fault(at.where+": search with on_error or stop_after", "Leave them out: a search tries what is too much, and max_bad says which level does not hold.", about)
	case ph.Closed == nil && ph.Schedule() == nil:
		v.fault(at.where+": populate or clear with on_error or stop_after", "Leave them out: when one of their ops fails, the run has failed.", about)
	case !(s.Errors >= 1 && s.Errors <= maxIterations && s.Share == 0) && !(s.Errors == 0 && s.Share > 0 && s.Share < 1):
		v.fault(fmt.Sprintf("%s: stop_after is %d errors and a share of %g", at.where, s.Errors, s.Share),
			`Write a number of errors such as 100, or a share of the ops below 100%, such as "5%".`, about)
	}
}
