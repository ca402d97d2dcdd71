package judge

import (
	"math/bits"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// fewRows is the length of a series that is too short to show how the load went.
const fewRows = 20

// finer adds rows of less than a second to a phase with a short series: how ops ended over all workers, exactly, from the time bins. There are
// fewRows to twice as many, unless bins are wider; each covers a power of two of nanoseconds, as bins do.
func (p *phase) finer(t *measure.Totals, seriesRows int) {
	end := t.Span.Last - t.Origin
	if seriesRows >= fewRows || end < fewRows {
		return
	}
	shift := bits.Len64(uint64(end/fewRows)) - 1
	ops := present(t.Ops[:])
	for _, o := range ops {
		for outcome := range driver.NumOutcomes {
			shift = max(shift, int(o.Bins[outcome].Shift()))
		}
	}
	for from := int64(0); from <= end; from += 1 << shift {
		to := from + 1<<shift
		ended := func(outcomes ...driver.Outcome) (n uint64) {
			for _, o := range ops {
				for _, outcome := range outcomes {
					some, _ := o.Bins[outcome].Between(from, to)
					n += some
				}
			}
			return n
		}
		p.Finer = append(p.Finer, run.FinerRow{
			T: seconds(min(to, end+1)), OK: ended(driver.OK), Miss: ended(driver.Miss),
			Bad: ended(driver.Conflict, driver.QuorumFailed, driver.Timeout, driver.Error),
		})
	}
}
