package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Experiment is the directory of an experiment in progress, which nobody else can delete. One goroutine may use it at a time.
type Experiment struct {
	disk  disk
	path  string
	taken *os.File // the directory, locked
}

// CreateExperiment creates the directory of an experiment in root, as Create does for a run, and writes the experiment in its initial state.
func CreateExperiment(root string, x *run.Experiment) (*Experiment, error) {
	return createExperiment(system{}, root, x)
}

func createExperiment(on disk, root string, x *run.Experiment) (*Experiment, error) {
	e := &Experiment{disk: on, path: filepath.Join(root, x.ID)}
	var err error
	e.taken, err = begin(on, root, x.ID, "experiment", func() error { return errors.Join(e.Save(x), on.SyncDir(root)) })
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Path returns the directory.
func (e *Experiment) Path() string { return e.path }

// KeepSettings writes the JSON of the experiment's settings, from which it can be made again.
func (e *Experiment) KeepSettings(text []byte) error {
	if err := replaceFile(e.disk, filepath.Join(e.path, settingsFile), text); err != nil {
		return fmt.Errorf("keep settings: %w", err)
	}
	return nil
}

// Settings decodes what KeepSettings has written into v, and returns the text. If there is none, as of an older loadgen, the error is fs.ErrNotExist.
func Settings(root, id string, v any) ([]byte, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	b, err := safefile.Read(filepath.Join(root, id, settingsFile), maxPlan)
	if err == nil {
		err = decode(b, v)
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings of experiment %s: %w", id, err)
	}
	return b, nil
}

// Save replaces the stored experiment atomically.
func (e *Experiment) Save(x *run.Experiment) error {
	if err := replaceJSON(e.disk, filepath.Join(e.path, experimentFile), x); err != nil {
		return fmt.Errorf("keep experiment %s: %w", x.ID, err)
	}
	return nil
}

// Close ends the writing.
func (e *Experiment) Close() error { return e.taken.Close() }

// LoadExperiment returns an experiment, even one that is in progress or was cut off; its verdict then says so. The error is fs.ErrNotExist if the ID
// is not an experiment's.
func LoadExperiment(root, id string) (*run.Experiment, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	var x run.Experiment
	if err := load(root, id, experimentFile, &x, &x.Unverified); err != nil {
		return nil, fmt.Errorf("load experiment %s: %w", id, err)
	}
	x.Imported = Imported(root, id)
	return &x, nil
}

// summarizeExperiment reads whatever there is of an experiment, and says whether the directory is one's.
func summarizeExperiment(root, id string) (run.Summary, bool) {
	x, err := LoadExperiment(root, id)
	if errors.Is(err, fs.ErrNotExist) {
		return run.Summary{}, false
	}
	s := run.Summary{Header: run.Header{ID: id, StartedAt: StartOf(id)}}
	if err != nil {
		s.Unfinished = errors.Unwrap(err).Error()
		return s, true
	}
	s.Plan, s.StartedAt, s.Loadgen, s.Labels = x.Plan, x.StartedAt, x.Loadgen, x.Labels
	s.Seconds, s.Verdict, s.ExitCode, s.Runs, s.Unverified = x.Seconds, x.Verdict, x.ExitCode, len(x.Runs), x.Unverified
	if !x.Finished {
		s.Unfinished = fmt.Sprintf("experiment, %d of %d runs so far", len(x.Runs), x.Repeat*len(x.Variants))
	}
	return s, true
}

// ReopenExperiment takes the directory of an experiment that no process is working on, to continue it, and returns its stored state. The error is
// [ErrInUse] if a process is.
func ReopenExperiment(root, id string) (*Experiment, *run.Experiment, error) {
	if err := checkID(id); err != nil {
		return nil, nil, err
	}
	e := &Experiment{disk: system{}, path: filepath.Join(root, id)}
	var err error
	if e.taken, err = lock(e.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("no experiment %s in %s", id, root)
	} else if err != nil {
		return nil, nil, fmt.Errorf("go on with experiment %s: %w", id, err)
	}
	x, err := LoadExperiment(root, id)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is not an experiment", id)
	}
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return e, x, nil
}

// RunsOf returns the results of an experiment's finished runs, oldest first, including runs that the experiment does not name because it was cut off.
func RunsOf(root, experiment string) ([]*run.Run, error) {
	all, err := List(root)
	if err != nil {
		return nil, err
	}
	var runs []*run.Run
	for _, s := range slices.Backward(all) {
		if s.Experiment != experiment || s.Unfinished != "" || s.Runs > 0 {
			continue
		}
		r, err := Load(root, s.ID)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
