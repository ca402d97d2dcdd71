package run

import "errors"

// finerRow is a part of a short load. All rows but the last have the same length, less than a second.
type finerRow struct {
	T    float64 `json:"t"` // its end, in seconds since the phase's origin
	OK   uint64  `json:"ok"`
	Miss uint64  `json:"miss"`
	Bad  uint64  `json:"bad"` // conflict, quorum_failed, timeout, error
}

// AddFiner adds the ops that ended after the previous row and up to t seconds after the phase's origin.
func (p *Phase) AddFiner(t float64, ok, miss, bad uint64) {
	p.Finer = append(p.Finer, finerRow{t, ok, miss, bad})
}

// checkFiner returns what is wrong with the rows.
func (p *Phase) checkFiner() error {
	last := 0.0
	for _, row := range p.Finer {
		if row.T <= last {
			return errors.New("finer: rows whose times do not rise")
		}
		last = row.T
	}
	return nil
}
