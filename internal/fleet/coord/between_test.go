package coord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// reader is a run of two workers that is read back from the given records. It also returns how many records are left.
func reader(t *testing.T, records ...*keptRecord) (k *past, left *int) {
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
	n := len(records)
	k = &past{c: s.c, done: make([]bool, 2), pull: func() (*keptRecord, error, bool) {
		if n == 0 {
			return nil, nil, false
		}
		n--
		return records[len(records)-n-1], nil, true
	}}
	s.c.past = k
	return k, &n
}

// Records between two steps are read up to the next step, whatever they are; the first impossible one ends the reading.
func TestWhatIsKeptBetweenSteps(t *testing.T) {
	is := func(e entry) *keptRecord { return &keptRecord{entry: e} }
	next := is(entry{Step: &begun{Step: worker.Step{Phase: "p"}}})
	loss := func(i int) *keptRecord { return is(entry{Loss: &lossEntry{Worker: i, Is: worker.Loss{Worker: "b"}}}) }
	comes := func(i int) *keptRecord {
		return is(entry{Member: &arrival{Index: i, Phase: "p", Is: run.Worker{Name: "c"}}})
	}
	for name, c := range map[string]struct {
		records []*keptRecord
		left    int
		ahead   bool
		want    string
	}{
		"nothing":             {nil, 0, false, ""},
		"a step":              {[]*keptRecord{next, next}, 1, true, ""},
		"a flush":             {[]*keptRecord{is(entry{Flush: &flushed{Phase: "p"}}), next}, 1, true, ""},
		"nodes":               {[]*keptRecord{is(entry{Nodes: map[string][]string{"t": {"n"}}}), next, next}, 1, true, ""},
		"what is watched":     {[]*keptRecord{is(entry{Watched: map[string]string{"o": "a file"}}), next, next}, 1, true, ""},
		"a loss":              {[]*keptRecord{loss(1), next, next}, 1, true, ""},
		"a loss of nobody":    {[]*keptRecord{loss(2), next, next}, 2, false, "worker 2 of 2 is lost"},
		"one comes":           {[]*keptRecord{loss(1), comes(1), next, next}, 1, true, ""},
		"one comes for none":  {[]*keptRecord{comes(1), next, next}, 2, false, `worker "c" takes the place 1 of 2`},
		"an end":              {[]*keptRecord{is(entry{Stop: &stopped{Code: reason.User.Code}}), next, next}, 1, true, ""},
		"nothing more behind": {[]*keptRecord{loss(1), comes(1)}, 0, false, ""},
		"a snapshot":          {[]*keptRecord{{worker: "a"}, next}, 1, false, `a snapshot of worker "a" is of no step`},
		"an entry of nothing": {[]*keptRecord{is(entry{}), next}, 1, false, "an entry without its place"},
		"a last word":         {[]*keptRecord{is(entry{Final: &finalEntry{}}), next}, 1, false, "an entry without its place"},
	} {
		k, left := reader(t, c.records...)
		for range 2 { // the second time says the same
			err := k.settle()
			require.Equal(t, c.left, *left, name)
			require.Equal(t, c.ahead, k.ahead != nil, name)
			if c.want == "" {
				require.NoError(t, err, name)
				require.True(t, k.goesOn("p") || k.ahead.entry.Flush != nil, name)
			} else {
				require.EqualError(t, err, "what was kept is not what a coordinator keeps: "+c.want, name)
				require.False(t, k.goesOn("p"), name)
			}
		}
		require.Equal(t, c.ahead && name != "a flush" || c.want == "" && !c.ahead, k.goesOn("p"), name)
		require.Equal(t, c.want == "" && !c.ahead, k.goesOn("q"), "%s: another phase", name)
	}
	k, _ := reader(t, is(entry{Nodes: map[string][]string{"t": {"n"}}}), is(entry{Watched: map[string]string{"o": "a file"}}), loss(1), comes(1),
		is(entry{Stop: &stopped{Code: reason.StoppedByPlan, Text: "enough"}}))
	require.NoError(t, k.settle())
	require.Equal(t, map[string][]string{"t": {"n"}}, k.c.nodes)
	require.Equal(t, map[string]string{"o": "a file"}, k.watched)
	require.Equal(t, "c", k.c.Workers[1].Name)
	require.Equal(t, []bool{false, false}, k.c.lost)
	require.Equal(t, reason.Why{Code: reason.StoppedByPlan, Text: "enough"}, k.stopped)
	require.Equal(t, "enough", *k.c.stopped.Load())

	why := errors.New("why")
	k, _ = reader(t)
	k.pull = func() (*keptRecord, error, bool) { return nil, why, true }
	require.Equal(t, why, k.settle())
	require.Equal(t, why, k.err)
	k.pull = nil
	require.Equal(t, why, k.settle(), "the first is the one to tell")
}

// What becomes of workers and of their places is logged, with who and why.
func TestLossesAreLogged(t *testing.T) {
	var logs bytes.Buffer
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 3)
	s.c.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	said := func(want ...string) {
		t.Helper()
		require.Equal(t, strings.Join(append(want, ""), "\n"), logs.String())
		logs.Reset()
	}
	require.NoError(t, s.c.lose(1, worker.Loss{Worker: "b", Why: "it is gone"}))
	require.NoError(t, s.c.lose(2, worker.Loss{Worker: "c", Why: "it is gone, too"}))
	said(`level=WARN msg="worker lost" worker=b why="it is gone"`, `level=WARN msg="worker lost" worker=c why="it is gone, too"`)
	s.c.ReplaceWithin = time.Second
	come := []worker.Member{{Name: "d", Worker: assigning{}}}
	s.c.Replace = func(context.Context) (worker.Member, error) {
		if len(come) == 0 {
			return worker.Member{}, errors.New("nobody is there")
		}
		m := come[0]
		come = nil
		return m, nil
	}
	require.NoError(t, s.c.replace(t.Context(), s.ph))
	said(`level=INFO msg="worker replaced" worker=b by=d phase=p`, `level=WARN msg="worker not replaced" worker=c phase=p why="nobody is there"`)
	require.Equal(t, []bool{false, false, true}, s.c.lost)
	s.c.journal = newJournal(&kept{})
	require.Nil(t, s.c.note(entryOf(0, &worker.Final{Generator: measure.Generator{Busy: math.NaN()}}, false)))
	said(`level=WARN msg="keep what the coordinator has done" err="json: unsupported value: NaN"`)
}

// assigning is a worker that takes any plan.
type assigning struct{ worker.Worker }

func (assigning) Assign(context.Context, worker.Assignment) error { return nil }

// A reader that stops early gets no more of the log, and the log's own error comes last.
func TestReadingALog(t *testing.T) {
	why := errors.New("why")
	from := Kept{Records: func(f func(worker, record []byte) error) error {
		for _, r := range []string{"1", "2"} {
			if err := f([]byte("w"), []byte(r)); err != nil {
				return fmt.Errorf("read: %w", err)
			}
		}
		if err := f(nil, []byte(`{"flush":{"phase":"p"}}`)); err != nil {
			return err
		}
		return why
	}}
	var read []string
	for r, err := range from.records {
		require.NoError(t, err)
		read = append(read, string(r.snapshot))
		break
	}
	require.Equal(t, []string{"1"}, read)
	read = nil
	for r, err := range from.records {
		if err != nil {
			require.Equal(t, why, err)
			require.Nil(t, r)
			read = append(read, "the end")
			continue
		}
		if r.worker == "" {
			require.Equal(t, "p", r.entry.Flush.Phase)
		} else {
			require.Equal(t, "w", r.worker)
			require.Equal(t, entry{}, r.entry)
		}
		read = append(read, string(r.snapshot))
	}
	require.Equal(t, []string{"1", "2", `{"flush":{"phase":"p"}}`, "the end"}, read)
}
