package engine

import (
	"context"
	"os"
	"time"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// device watches the block device of a phase's files.
type device struct {
	of     localfile.Device
	result worker.Device
	began  deviceCounts // zero: not yet
	quiet  time.Duration
	wrote  map[int]machine.Writer // what other programs had written before
}

// deviceCounts holds what a device had done at a time.
type deviceCounts struct {
	at             time.Time
	bytes, flushes uint64
}

// mostQuiet is the longest a device is watched before a load, and after it.
const mostQuiet = time.Second

// quietBefore returns how long to watch other programs' use of a device before a phase: a tenth of the load's duration.
func quietBefore(ph *plan.Phase) time.Duration {
	switch {
	case ph.Closed != nil && ph.Closed.Duration > 0:
		return min(mostQuiet, ph.Closed.Duration/10)
	case ph.Open != nil && ph.Open.Duration > 0:
		return min(mostQuiet, ph.Open.Duration/10)
	case ph.Schedule() != nil: // several steps
		return mostQuiet
	}
	return mostQuiet / 10
}

// watchDevice watches the device of a store that knows it, for a while before the load. It returns nil for other stores.
func watchDevice(ctx context.Context, store localfile.Store, before time.Duration) *device {
	placed, ok := store.(localfile.Placed)
	if !ok {
		return nil
	}
	d := &device{of: placed.Device()}
	d.result = worker.Device{Name: d.of.Name, Number: d.of.Number, Machine: machine.Boot(os.DirFS("/")), NoBytes: d.of.NoBytes, NoFlushes: d.of.NoFlushes}
	if d.of.NoBytes != "" {
		return d
	}
	d.quiet, d.wrote = before, machine.Writers(os.DirFS("/"))
	d.result.Before = d.beside(ctx)
	return d
}

// beside watches what others do to the device for a while.
func (d *device) beside(ctx context.Context) worker.Beside {
	first := d.read()
	enough := time.NewTimer(d.quiet)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-ctx.Done():
	}
	then := d.read()
	if d.result.NoBytes != "" { // it is gone
		return worker.Beside{}
	}
	return worker.Beside{Seconds: then.at.Sub(first.at).Seconds(), Bytes: float64(then.bytes - first.bytes), Flushes: float64(then.flushes - first.flushes)}
}

// read reads the device's counts. An error stays in the result.
func (d *device) read() deviceCounts {
	bytes, flushes, err := d.of.Counts()
	if err != nil {
		d.result.NoBytes, d.result.NoFlushes = err.Error(), err.Error()
	}
	return deviceCounts{time.Now(), bytes, flushes}
}

// start begins to count, unless an earlier step of the phase has begun.
func (d *device) start() {
	if d != nil && d.began.at.IsZero() {
		d.began = d.read()
	}
}

// stop returns what the device has done since start, and watches it for a while longer: others may have begun to write during the load.
func (d *device) stop(ctx context.Context) []worker.Device {
	if d == nil {
		return []worker.Device{}
	}
	now := d.read()
	d.result.Seconds = now.at.Sub(d.began.at).Seconds()
	if d.result.NoBytes == "" {
		bytes := float64(now.bytes - d.began.bytes)
		d.result.Bytes = &bytes
	}
	if d.result.NoFlushes == "" {
		flushes := float64(now.flushes - d.began.flushes)
		d.result.Flushes = &flushes
	}
	if d.result.NoBytes == "" {
		d.result.After = d.beside(ctx)
		d.result.Writer = machine.MostWritten(d.wrote, machine.Writers(os.DirFS("/")))
	}
	return []worker.Device{d.result}
}
