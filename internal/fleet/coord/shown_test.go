package coord

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// An interval is shown if it lies after those shown before, and the last one always.
func TestWhichIntervalsAreShown(t *testing.T) {
	for _, c := range []struct {
		to    int64
		final bool
		want  bool
	}{
		{5e9 - 1, false, false},
		{5e9, false, false},
		{5e9 + 1, false, true},
		{5e9 - 1, true, true},
		{5e9, true, true},
		{5e9 + 1, true, true},
	} {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 1)
		joint := measure.Interval{From: 4e9, To: c.to, Delta: &measure.Totals{}, Final: c.final}
		s.shown = 5e9
		s.show(joint) // nobody looks
		require.EqualValues(t, 5e9, s.shown)
		var got []run.Update
		s.c.Progress = func(u run.Update) { got = append(got, u) }
		s.show(joint)
		require.Equal(t, c.want, len(got) == 1, "%+v", c)
		if c.want {
			require.Equal(t, c.to, s.shown)
		} else {
			require.EqualValues(t, 5e9, s.shown)
		}
		s.show(joint)
		require.Equal(t, c.final, len(got) == 2, "%+v: again", c)
	}
}

// A worker is awaited until it has reached the given time, unless it will report no more.
func TestWhoIsAwaited(t *testing.T) {
	for _, c := range []struct {
		src  source
		want bool
	}{
		{source{upTo: 5e9 - 1}, true},
		{source{upTo: 5e9}, false},
		{source{upTo: 5e9 + 1}, false},
		{source{upTo: 5e9 - 1, lost: true}, false},
		{source{upTo: 5e9 - 1, final: true}, false},
		{source{upTo: 5e9 - 1, final: true, lost: true}, false},
	} {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 2)
		s.sources = []source{{upTo: 5e9}, c.src}
		require.Equal(t, c.want, len(s.awaitedAt(5e9)) == 1, "%+v", c.src)
	}
}

// Part of a second is shown if it lies after the step's start and after what was shown; it is one second long, or less at the start.
func TestWhatIsShownAhead(t *testing.T) {
	for _, c := range []struct {
		at    time.Duration
		shown int64
		to    int64
		want  float64 // ops a second; < 0: nothing is shown
	}{
		{1e9, 0, 1e9, -1},
		{1e9, 0, 1e9 + 1, 0},
		{1e9, 0, 2e9, 40},
		{1e9, 2e9 - 1, 2e9, 40},
		{1e9, 2e9, 2e9, -1},
		{1e9, 2e9 + 1, 2e9, -1},
		{1e9, 2e9, 3e9, 0},
	} {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 2)
		s.at, s.shown, s.joiner = c.at, c.shown, measure.NewJoiner(2, int64(c.at))
		s.joiner.Add(0, 2e9, false, measureOf(time.Millisecond, 40)) // and nothing of the other one
		var got []run.Update
		s.c.Progress = func(u run.Update) { got = append(got, u) }
		s.provisional(c.to)
		if c.want < 0 {
			require.Empty(t, got, "%+v", c)
			continue
		}
		require.Len(t, got, 1, "%+v", c)
		require.InDelta(t, c.want, got[0].Achieved, 1e-9, "%+v", c)
		require.Equal(t, time.Duration(c.to)-c.at, got[0].Elapsed)
		require.Equal(t, c.to, s.shown)
	}
}

// While a worker is silent, each second is shown one second after its end, and no more once the step is over.
func TestWhenWhatHasComeIsShown(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 1)
		time.Sleep(300 * time.Millisecond)
		s.at = time.Since(s.c.zero)
		s.joiner = measure.NewJoiner(1, int64(s.at))
		type shown struct{ at, to time.Duration }
		var got []shown
		s.c.Progress = func(u run.Update) { got = append(got, shown{time.Since(s.c.zero), s.at + u.Elapsed}) }
		release := s.foresee()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []shown{{2 * time.Second, time.Second}, {3 * time.Second, 2 * time.Second}}, got)
		close(s.passed)
		time.Sleep(10 * time.Second)
		require.Len(t, got, 2)
		release()
	})
}

// What a step does is reported each second from the given time on, with its phase, its kind, and the state of the run.
func TestWhatAStepDoesIsTold(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 1)
		s.say(time.Second, "nobody looks")
		s.steps[0].Kind = worker.Setup
		var got []run.Update
		s.c.Progress = func(u run.Update) { got = append(got, u) }
		begun := make(chan struct{})
		release := s.tell(begun, func() string { return "this" })
		time.Sleep(10 * time.Second)
		require.Empty(t, got)
		close(begun)
		time.Sleep(2500 * time.Millisecond)
		release()
		time.Sleep(10 * time.Second)
		require.Len(t, got, 2)
		for i, u := range got {
			require.Equal(t, run.Update{Phase: "p", Kind: worker.Setup, Elapsed: time.Duration(i+1) * time.Second, Doing: "this", Verdict: u.Verdict}, u)
		}
		never := s.tell(make(chan struct{}), func() string { return "that" })
		time.Sleep(10 * time.Second)
		never()
		require.Len(t, got, 2)
	})
}

// The verdict so far covers the phases that have ended, without reasons: aborted if an end is wanted, otherwise degraded if a worker was lost.
func TestVerdictSoFar(t *testing.T) {
	why := "the plan wants it"
	for name, c := range map[string]struct {
		change func(c *coordinator)
		want   run.Completeness
	}{
		"it goes on":              {func(*coordinator) {}, run.Complete},
		"a loss":                  {func(c *coordinator) { c.result.Losses = make([]worker.Loss, 1) }, run.Degraded},
		"two":                     {func(c *coordinator) { c.result.Losses = make([]worker.Loss, 2) }, run.Degraded},
		"a loss that ends it":     {func(c *coordinator) { c.result.Losses = make([]worker.Loss, 1); c.AbortOnLoss = true }, run.Aborted},
		"none that would end it":  {func(c *coordinator) { c.AbortOnLoss = true }, run.Complete},
		"the plan's end":          {func(c *coordinator) { c.stopped.Store(&why) }, run.Aborted},
		"the user's":              {func(c *coordinator) { drain := make(chan struct{}); close(drain); c.Drain = drain }, run.Aborted},
		"that of a run read back": {func(c *coordinator) { c.past = &past{stopped: byLoss} }, run.Aborted},
		"one read back":           {func(c *coordinator) { c.past = &past{} }, run.Complete},
	} {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 2)
		s.c.result.Verdict.Completeness = run.Complete
		s.c.result.Verdict.Reasons = []string{"a reason"}
		c.change(s.c)
		v := s.c.soFar()
		require.Equal(t, c.want, v.Completeness, name)
		require.Empty(t, v.Reasons, name)
		require.Equal(t, []string{"a reason"}, s.c.result.Verdict.Reasons, name)
	}
}

// What workers do before and after a step depends on whether they have files, and on whether the run is to end.
func TestWhatIsAwaited(t *testing.T) {
	for _, c := range []struct {
		files, stop     bool
		before, settles string
	}{
		{false, false, "getting ready", "ending"},
		{false, true, "stopping", "ending"},
		{true, false, "its log files are being made ready", "its log files are being verified, and deleted unless a later phase has them"},
		{true, true, "stopping: its log files are being deleted", "its log files are being verified, and deleted unless a later phase has them"},
	} {
		s := stepOf(t, "closed {\n sessions = 4\n iterations = 1\n}", 1)
		if c.files {
			s.c.Plan.Targets[0].Executor = plan.Thread
		}
		if c.stop {
			drain := make(chan struct{})
			close(drain)
			s.c.Drain = drain
		}
		require.Equal(t, []string{c.before, c.settles}, []string{s.awaited(), s.settling()}, "%+v", c)
	}
}
