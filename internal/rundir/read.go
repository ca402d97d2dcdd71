package rundir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Plan returns the canonical JSON of a run's plan, finished or not.
func Plan(root, id string) ([]byte, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(root, id, planFile))
	if err != nil {
		return nil, fmt.Errorf("read the plan of run %s: %w", id, err)
	}
	return b, nil
}

// Snapshots calls f with each snapshot that a run has kept, as [ReadLog] does.
func Snapshots(root, id string, f func(worker, snapshot []byte) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	log, err := os.Open(filepath.Join(root, id, logFile))
	if err != nil {
		return fmt.Errorf("read the snapshots of run %s: %w", id, err)
	}
	defer log.Close()
	if err := ReadLog(log, f); err != nil {
		return fmt.Errorf("read the snapshots of run %s: %w", id, err)
	}
	return nil
}
