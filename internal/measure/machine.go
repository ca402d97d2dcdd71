package measure

// Machine is who had the processors that loadgen and its target may use on a worker's machine.
type Machine struct {
	OthersShare float64 `json:"others_share"` // of their time, 0 to 1: what neither loadgen nor the target used, interrupts apart
	IdleShare   float64 `json:"idle_share"`   // 0 to 1

	Seconds float64 `json:"-"` // of all these processors
	Host    string  `json:"-"` // the same for all workers on one machine; "" when workers have been taken together
}

// Doubtful says whether the target may have wanted the time that others had: more than 5 % of all, where less than 10 % was left. A nil one is not.
func (m *Machine) Doubtful() bool {
	return m != nil && m.OthersShare > 0.05 && m.IdleShare < 0.10
}

// Worse says whether a machine says more against what was measured on it than another, which may be nil.
func (m *Machine) Worse(than *Machine) bool {
	switch {
	case than == nil:
		return true
	case m.Doubtful() != than.Doubtful():
		return m.Doubtful()
	}
	return m.OthersShare > than.OthersShare
}
