package coord

import (
	"log/slog"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A figure that JSON cannot represent keeps only its own entry out of the log.
func TestEntriesThatCannotBeKept(t *testing.T) {
	k := &kept{}
	c := &coordinator{Config: Config{Logger: slog.New(slog.DiscardHandler)}}
	require.Nil(t, c.note(entry{}), "of a run that keeps none")
	require.NoError(t, c.noteNow(entry{}))
	c.journal = newJournal(k)
	f := worker.Final{Generator: measure.Generator{Busy: math.NaN()}}
	require.Nil(t, c.note(entryOf(0, &f, false)))
	require.NoError(t, c.noteNow(entryOf(0, &f, false)))
	f.Generator.Busy = 1
	require.NoError(t, c.noteNow(entryOf(0, &f, false)))
	c.journal.close()
	require.Equal(t, 1, k.appended)
}

// All loads of a plan, of which stages and searches have several, share the rows that a result has room for.
func TestRowsAreSharedByAllLoads(t *testing.T) {
	of := func(phases ...*plan.Phase) int { return newCoordinator(Config{Plan: &plan.Plan{Phases: phases}}).rows }
	load, four := &plan.Phase{Closed: &plan.Closed{}}, &plan.Phase{Stages: &plan.Stages{Stages: make([]plan.Stage, 4)}}
	require.Equal(t, judge.RowsEach(0, 0), of())
	require.Equal(t, judge.RowsEach(1, 0), of(load))
	require.Equal(t, judge.RowsEach(16, 0), of(load, load, load, load, four, four, four))
	require.NotEqual(t, of(load), of(load, load, load, load, four, four, four))
}
