package measure

import "github.com/loadgen/loadgen/pkg/driver"

// Ended counts the ops that have ended, those of them that ended neither ok nor as a miss (bad), and those that the target failed (failed).
func (t *Totals) Ended() (all, bad, failed uint64) {
	for _, o := range t.Ops {
		for i, n := range o.Ledger().Outcomes {
			all += n
			if outcome := driver.Outcome(i); outcome > driver.Miss {
				bad += n
				if outcome.Failed() {
					failed += n
				}
			}
		}
	}
	return all, bad, failed
}

// Endpoints returns the number of endpoints whose requests are counted.
func (t *Totals) Endpoints() int { return (len(t.Requests) + driver.NumVerbs - 1) / driver.NumVerbs }
