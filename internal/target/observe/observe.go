// Package observe reads figures from the target's side: what servers report, what the kernel counts for their processes, how much space directories
// use, series of Prometheus endpoints, and the output of commands.
//
// Each kind is a [Probe], which is taken again and again, and keeps what makes the next take cheap: connections, a PID. It does not distinguish
// counters from gauges or compute differences; package judge does that. A missing figure is left out, with the reason. No error here ends a run.
//
// Processes and directories are those of the machine this runs on, the coordinator's. A process has
//
//	rss_bytes                    resident memory                      /proc/PID/stat rss
//	cpu_user_seconds             processor time, to 10 ms             /proc/PID/stat utime
//	cpu_system_seconds           the part of it in the kernel                  /proc/PID/stat stime
//	cpu_seconds                  both
//	minor_faults, major_faults   pages mapped without and with I/O    /proc/PID/stat minflt, majflt
//	read_bytes, write_bytes      from and to storage                  /proc/PID/io
//	threads                      at the moment                        /proc/PID/stat num_threads
//	cgroup_bytes                 memory of its control group          memory.current, or memory.usage_in_bytes, of the group in /proc/PID/cgroup
//
// and of a directory used_bytes (blocks allocated), size_bytes (lengths of files), files, and free_bytes of its file system.
//
// Prometheus pages are parsed by code of our own, not by expfmt of github.com/prometheus/common. expfmt builds the whole page in memory before a
// series can be looked up, at some 18 times its size, and returns nothing of a page with an invalid line. Here a page takes one line of memory. Only
// a line of a requested metric can be an error, which quotes the line.
//
// Nor are processes read with github.com/prometheus/procfs: if the kernel leaves out one I/O figure, it returns an error and none of the others.
package observe

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Probe reads the fields of one observation. Take is called by one goroutine at a time.
type Probe interface {
	// Of describes in words what is observed.
	Of() string
	// Take reads all fields once, and returns when ctx ends. It returns the values by field, all finite, and by field why the others are missing; the
	// key "" means that nothing was reached.
	Take(ctx context.Context) (value map[string]float64, missing map[string]string)
	// Close releases what Take has kept. A Take in progress fails.
	Close()
}

// Means are the dependencies of probes.
type Means struct {
	Drivers []driver.Driver
	Secrets func(name string) (string, error)
	// Dial connects to an endpoint of a target the way its load does.
	Dial func(ctx context.Context, t *plan.Target, endpoint string) (net.Conn, error)
	// Same groups endpoints that lead to one server, by what is known of each: its "address" and its "instance" (driver.Identifier). If nil, each has
	// a server of its own.
	Same func(endpoints []string, facts map[string]map[string]string) [][]string
	// Hook runs a command that the plan names and returns its output.
	Hook func(ctx context.Context, name string) (string, error)
}

// New returns the probe of an observation. endpoints are those of its target t, which is nil if it has none. New does not contact anything.
func (m Means) New(o *plan.Observe, t *plan.Target, endpoints []string) Probe {
	switch o.Kind {
	case plan.ObserveServer, plan.ObserveCounts:
		return newServer(m, o, t, endpoints)
	case plan.ObserveProcess:
		return newProcess(o, endpoints)
	case plan.ObserveDirectory:
		return directory{path: o.Path}
	case plan.ObservePrometheus:
		return newPrometheus(o)
	default:
		return hook{o: o, run: m.Hook}
	}
}

// figures are the results of a probe.
type figures struct {
	value   map[string]float64
	missing map[string]string
}

func newFigures() figures { return figures{map[string]float64{}, map[string]string{}} }

// nothing says why there are no figures at all.
func nothing(format string, args ...any) (value map[string]float64, missing map[string]string) {
	return nil, map[string]string{"": fmt.Sprintf(format, args...)}
}

// set adds a figure, if JSON can represent it.
func (f figures) set(field string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		f.missing[field] = "it is " + strconv.FormatFloat(v, 'g', -1, 64)
		return
	}
	f.value[field] = v
}

// parse adds a figure given as text.
func (f figures) parse(field, text string) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		f.missing[field] = fmt.Sprintf("it is %.40q, no number", text)
		return
	}
	f.set(field, v)
}

// combine combines the figures of several sources, each with its name. A figure that any source lacks is missing.
func combine(how string, fields []plan.Field, names []string, all []figures) (value map[string]float64, missing map[string]string) {
	sum := newFigures()
	for i := range all {
		if why := all[i].missing[""]; why != "" {
			return nothing("%s: %s", names[i], why)
		}
	}
	for _, f := range fields {
		total := math.NaN()
		for i := range all {
			v, ok := all[i].value[f.Name]
			if !ok {
				sum.missing[f.Name] = all[i].missing[f.Name]
				if len(all) > 1 {
					sum.missing[f.Name] = names[i] + ": " + sum.missing[f.Name]
				}
				break
			}
			switch {
			case i == 0:
				total = v
			case how == "min":
				total = min(total, v)
			case how == "max":
				total = max(total, v)
			default:
				total += v
			}
		}
		if _, ok := sum.missing[f.Name]; ok {
			continue
		}
		if how == "mean" {
			total /= float64(len(all))
		}
		sum.set(f.Name, total)
	}
	return sum.value, sum.missing
}
