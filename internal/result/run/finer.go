package run

import "errors"

// FinerRow is a part of a short load. All rows but the last have the same length, less than a second.
type FinerRow struct {
	T    float64 `json:"t"` // its end, in seconds since the phase's origin
	OK   uint64  `json:"ok"`
	Miss uint64  `json:"miss"`
	Bad  uint64  `json:"bad"` // conflict, quorum_failed, timeout, error
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
