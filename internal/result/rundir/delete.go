package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/run"
)

// deleted is the prefix of a directory that is being deleted.
const deleted = ".deleted-"

// DeletedWith returns everything that is deleted along with the given names: an experiment takes its runs with it. A run of an existing experiment that is
// not also deleted is an error, and so is a name that does not exist.
func DeletedWith(root string, ids []string) ([]string, error) {
	var all []string
	add := func(id string) {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return nil, err
		}
		if _, err := os.Lstat(filepath.Join(root, id)); err != nil {
			return nil, fmt.Errorf("no run %s in %s", id, root)
		}
		if x, err := LoadExperiment(root, id); err == nil {
			add(id) // before its runs, so that a crash leaves runs without an experiment
			for _, r := range runsThere(root, x) {
				add(r)
			}
		}
	}
	for _, id := range ids {
		of := summarize(root, id).Experiment
		if _, err := LoadExperiment(root, of); of != "" && err == nil && !slices.Contains(all, of) {
			return nil, fmt.Errorf("run %s is one of experiment %s, which would lose it: delete the experiment", id, of)
		}
		add(id)
	}
	return all, nil
}

// runsThere lists the runs of an experiment that have a directory.
func runsThere(root string, x *run.Experiment) (ids []string) {
	for _, r := range x.Runs {
		if _, err := os.Lstat(filepath.Join(root, r.ID)); err == nil && checkID(r.ID) == nil {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Delete removes the directory of a run or an experiment. It disappears at once: a crash leaves a directory with a hidden name, which the next Delete
// removes. It returns ErrInUse if a loadgen is writing in it.
func Delete(root, id string) error { return remove(system{}, root, id) }

func remove(on disk, root, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	if err := alone(root, func() error { return sweep(root) }); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	taken, err := lock(filepath.Join(root, id))
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	gone := filepath.Join(root, deleted+id)
	err = on.Rename(filepath.Join(root, id), gone)
	if err == nil {
		err = errors.Join(on.SyncDir(root), on.RemoveAll(gone))
	}
	if err := errors.Join(err, taken.Close()); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

// sweep removes what crashes have left of deletions and imports. It is called inside alone for root.
func sweep(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if !strings.HasPrefix(e.Name(), deleted) && !strings.HasPrefix(e.Name(), incoming) {
			continue
		}
		taken, err := lock(path)
		if err != nil {
			continue // in use
		}
		if err := errors.Join(os.RemoveAll(path), taken.Close()); err != nil {
			return err
		}
	}
	return nil
}
