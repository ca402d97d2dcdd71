package judge

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// mostOthers is how much other programs may have used a device just before a load or just after it, as a share of its use during the load.
const mostOthers = 0.1

// device sums the counts of the devices below the log files of all workers. changed is the number of ops that changed a file. A figure covers all
// devices, or is null.
func (p *phase) device(l *worker.Log, changed uint64) {
	if len(l.Devices) == 0 {
		return
	}
	d := &run.Device{}
	p.Device = d
	bytes := deviceFigure{
		count: func(d *worker.Device) (*float64, string) { return d.Bytes, d.NoBytes }, beside: func(b *worker.Beside) float64 { return b.Bytes },
		words: func(rate float64) string { return quantity.Bytes(uint64(rate)) + "/s written" },
	}
	flushes := deviceFigure{
		count: func(d *worker.Device) (*float64, string) { return d.Flushes, d.NoFlushes }, beside: func(b *worker.Beside) float64 { return b.Flushes },
		words: func(rate float64) string { return quantity.Whole(rate) + " flushes/s" },
	}
	d.Bytes = p.sumDevices("bytes", l.Devices, &bytes)
	d.Flushes = p.sumDevices("flushes", l.Devices, &flushes)
	d.BytesPerOp = p.quotient("device.bytes_per_op", d.Bytes, "bytes", changed, "no op changed anything")
	d.FlushesPerOp = p.quotient("device.flushes_per_op", d.Flushes, "flushes", changed, "no op changed anything")
	d.Amplification = p.quotient("device.amplification", d.Bytes, "bytes", l.Bytes, "no entry was written")
}

// deviceFigure is one of the counts of a device.
type deviceFigure struct {
	count  func(*worker.Device) (n *float64, unknown string)
	beside func(*worker.Beside) float64
	words  func(rate float64) string
}

// sumDevices sums a count over all devices. It records why and returns nil if one device's count is not known, or includes other programs' use.
func (p *phase) sumDevices(name string, all []worker.Device, f *deviceFigure) *float64 {
	sum := 0.0
	for i := range all {
		d := &all[i]
		n, unknown := f.count(d)
		if n == nil {
			p.null(fmt.Sprintf("log.devices.%d.%s", i, name), reason.NotCounted, unknown)
			p.null("device."+name, reason.NotCounted, unknown)
			return nil
		}
		for _, w := range []struct {
			when string
			by   *worker.Beside
		}{{"before", &d.Before}, {"after", &d.After}} {
			was, is := f.beside(w.by)/w.by.Seconds, *n/d.Seconds
			if !(was > mostOthers*is) {
				continue
			}
			why := fmt.Sprintf("others use %s: %s in the %s %s the load, and %s during it", d.Name, f.words(was), quantity.Duration(w.by.Seconds), w.when, f.words(is))
			if d.Writer != "" {
				why += "; " + d.Writer + " wrote most"
			}
			p.null("device."+name, reason.SharedDevice, why)
			return nil
		}
		sum += *n
	}
	return &sum
}

// quotient divides a sum over all devices. It records why and returns nil if the sum is nil or the divisor is 0.
func (p *phase) quotient(path string, sum *float64, name string, by uint64, none string) *float64 {
	switch {
	case sum == nil:
		p.Null(path, reason.Why{Code: p.NullCodes["device."+name], Text: p.Nulls["device."+name]})
		return nil
	case by == 0:
		p.null(path, reason.NoOps, none)
		return nil
	}
	return number(*sum / float64(by))
}
