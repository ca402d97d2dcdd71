package rpc

import "time"

// kept is how many of the latest measurements are used. At one per second, clocks that drift by 100 ppm move 1.6 ms apart in that time.
const kept = 16

// offsets measures how far the worker's clock is ahead of the coordinator's.
type offsets struct {
	samples [kept]exchange
	n       int
}

// exchange is the result of one heartbeat and its echo.
type exchange struct{ offset, rtt time.Duration }

// add takes a measurement. The heartbeat was sent, and its echo came back, on the worker's clock; it was received and echoed on the coordinator's.
// An impossible measurement is ignored.
func (o *offsets) add(sent, received, echoed, back time.Duration) {
	rtt := (back - sent) - (echoed - received)
	if back < sent || echoed < received || rtt < 0 {
		return
	}
	o.samples[o.n%kept] = exchange{offset: (sent-received)/2 + (back-echoed)/2, rtt: rtt}
	o.n++
}

// best returns the measurement with the shortest round trip. There must be at least one.
func (o *offsets) best() exchange {
	best := o.samples[0]
	for _, s := range o.samples[1:min(o.n, kept)] {
		if s.rtt < best.rtt {
			best = s
		}
	}
	return best
}
