package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/run"
)

// List returns the runs and experiments in root, newest first, including unfinished ones. A root that does not exist has none. It ignores names that no
// run can have.
func List(root string) ([]run.Summary, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var runs []run.Summary
	for _, e := range entries {
		if !e.IsDir() || checkID(e.Name()) != nil {
			continue
		}
		s, experiment := summarizeExperiment(root, e.Name())
		if !experiment {
			s = summarize(root, e.Name())
		}
		s.Imported = Imported(root, e.Name())
		runs = append(runs, s)
	}
	slices.SortFunc(runs, func(a, b run.Summary) int { return strings.Compare(b.ID, a.ID) })
	return runs, nil
}

// summarize reads whatever there is of a run or an experiment.
func summarize(root, id string) run.Summary {
	var s run.Summary
	err := readJSON(filepath.Join(root, id, resultFile), &s)
	if err == nil {
		err = unverified(root, id, &s.Unverified)
	}
	if err == nil {
		s.ID = id // the directory may have been renamed
		return s
	}
	s = run.Summary{Header: run.Header{ID: id, StartedAt: StartOf(id)}, Unfinished: err.Error()}
	if errors.Is(err, fs.ErrNotExist) {
		s.Unfinished = "no result yet"
	}
	var plan struct {
		Name string `json:"name"`
	}
	if readJSON(filepath.Join(root, id, planFile), &plan) == nil {
		s.Plan = plan.Name
	}
	return s
}

// Load returns the result of a finished run.
func Load(root, id string) (*run.Run, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	var r run.Run
	err := load(root, id, resultFile, &r, &r.Unverified)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Join(root, id)); err != nil {
			return nil, fmt.Errorf("no run %s in %s", id, root)
		}
		return nil, fmt.Errorf("run %s is unfinished: it has no %s", id, resultFile)
	case err != nil:
		return nil, fmt.Errorf("load run %s: %w", id, err)
	}
	r.Imported = Imported(root, id)
	return &r, nil
}

// load reads a result into v, and why it could not be verified into not, which is a field of it.
func load(root, id, name string, v interface{ CheckValid() error }, not *string) error {
	err := readJSON(filepath.Join(root, id, name), v)
	if err == nil {
		err = v.CheckValid()
	}
	if err == nil {
		err = unverified(root, id, not)
	}
	return err
}
