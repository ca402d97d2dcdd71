package rundir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Plan returns the canonical JSON of a run's plan, whether the run has finished or not.
func Plan(root, id string) ([]byte, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	b, err := safefile.Read(filepath.Join(root, id, planFile), maxPlan)
	if err != nil {
		return nil, fmt.Errorf("read the plan of run %s: %w", id, err)
	}
	return b, nil
}

// Snapshots calls f with each snapshot of a run, in order; f must not retain its arguments. It returns a *TornError if the log does not end with a whole
// record.
func Snapshots(root, id string, f func(worker, snapshot []byte) error) error {
	return Records(root, id, func(worker, record []byte) error {
		if len(worker) == 0 {
			return nil
		}
		return f(worker, record)
	})
}

// Records calls f with each record of a run's log: snapshots and, without a worker's name, the coordinator's own records.
func Records(root, id string, f func(worker, record []byte) error) error {
	return open(root, id, logFile, "read the snapshots of", func(log io.Reader) error { return readRecords(log, f) })
}

// Imported says whether a run or an experiment came in a pack: what it says, another may have written.
func Imported(root, id string) bool {
	_, err := os.Lstat(filepath.Join(root, id, importedFile))
	return err == nil
}

// unverified sets why an imported result could not be verified; "" if it could, or if it was made here. Only the import says so: a result that says it
// itself was changed.
func unverified(root, id string, why *string) error {
	if *why != "" {
		return errors.New("it says of itself that it is unverified, which only an import finds")
	}
	text, err := safefile.Read(filepath.Join(root, id, unverifiedFile), maxPlan)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	*why = string(text)
	return err
}

// open calls f with one of a run's files. Errors say what is done with it.
func open(root, id, name, doing string, f func(io.Reader) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	file, err := safefile.Open(filepath.Join(root, id, name))
	if err == nil {
		defer file.Close()
		err = f(file)
	}
	if err != nil {
		return fmt.Errorf("%s run %s: %w", doing, id, err)
	}
	return nil
}

// Probes calls f with each probe of a run, finished or not, in the order they were taken. It ignores a torn last line.
func Probes(root, id string, f func(run.Probe) error) error {
	err := open(root, id, probesFile, "read what was observed in", func(file io.Reader) error {
		in := bufio.NewReaderSize(file, maxProbe)
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			switch {
			case err == io.EOF: // a line without a line break is torn
				return nil
			case err == bufio.ErrBufferFull:
				return fmt.Errorf("line %d has more than %d bytes", n, maxProbe)
			case err != nil:
				return err
			}
			var p run.Probe
			if err := decode(line, &p); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			if err := f(p); err != nil {
				return err
			}
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ErrNoSamples says that a run has no samples.
var ErrNoSamples = errors.New("no samples were kept")

// Samples calls f with a run's file of samples.
func Samples(root, id string, f func(io.Reader) error) error {
	err := open(root, id, samplesFile, "read the samples of", f)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run %s: %w", id, ErrNoSamples)
	}
	return err
}
