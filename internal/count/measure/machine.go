package measure

// Machine says who used the processors that loadgen and its target may use on a worker's machine.
type Machine struct {
	OthersShare float64 `json:"others_share"` // share of their time, 0 to 1, used by neither loadgen nor the target, without interrupts
	IdleShare   float64 `json:"idle_share"`   // 0 to 1

	Seconds float64 `json:"-"` // summed over those processors
	Host    string  `json:"-"` // the same for all workers on one machine; "" once workers are merged
}

// Doubtful says whether the target may have needed the time that others used: they had more than 5 % of it, and less than 10 % was idle. It is false
// for nil.
func (m *Machine) Doubtful() bool {
	return m != nil && m.OthersShare > 0.05 && m.IdleShare < 0.10
}

// Worse says whether m casts more doubt on what was measured on it than another machine, which may be nil.
func (m *Machine) Worse(than *Machine) bool {
	switch {
	case than == nil:
		return true
	case m.Doubtful() != than.Doubtful():
		return m.Doubtful()
	}
	return m.OthersShare > than.OthersShare
}
