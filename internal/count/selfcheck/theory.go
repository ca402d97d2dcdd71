package selfcheck

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/loadgen/loadgen/pkg/hist"
)

// Visit is one request at a single-server queue, as the server reports it: its time of arrival and its service time, in nanoseconds.
type Visit struct{ Arrival, Service int64 }

// ParseVisits parses a built-in node's answer to INFO queue. It fails if the node has not kept all visits.
func ParseVisits(text []byte) ([]Visit, error) {
	var list []Visit
	announced, missing := -1, 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		var i int
		var v Visit
		switch {
		case scan(line, "visits:%d", &announced), scan(line, "visits_not_logged:%d", &missing):
		case scan(line, "visit_%d:arrival_ns=%d,service_ns=%d", &i, &v.Arrival, &v.Service):
			if i != len(list) {
				return nil, fmt.Errorf("visit %d follows visit %d", i, len(list)-1)
			}
			list = append(list, v)
		}
	}
	if announced != len(list) || missing != 0 {
		return nil, fmt.Errorf("the node has had %d visits, and lists %d", announced+missing, len(list))
	}
	return list, nil
}

func scan(line, format string, into ...any) bool {
	_, err := fmt.Sscanf(line, format, into...)
	return err == nil
}

// Sojourns returns how long each visit lasted, waiting plus service, by Lindley's recursion (The theory of queues with a single server, 1952):
//
//	W(0) = 0        W(n+1) = max(0, W(n) + S(n) − (A(n+1) − A(n)))        sojourn(n) = W(n) + S(n)
func Sojourns(visits []Visit) []int64 {
	list := make([]int64, len(visits))
	var wait int64
	for i, v := range visits {
		if i > 0 {
			last := visits[i-1]
			wait = max(0, wait+last.Service-(v.Arrival-last.Arrival))
		}
		list[i] = wait + v.Service
	}
	return list
}

// Less returns the distribution of the times minus by, at least 0.
func Less(times *hist.Hist, by time.Duration) *hist.Hist {
	var rest hist.Hist
	for upper, count := range times.Buckets() {
		rest.RecordN(max(0, upper-int64(by)), count)
	}
	return &rest
}

// points is the number of equally likely values that represent a floor.
const points = 200

// Above returns the distribution of the sum of one of the times and an independent value of the floor. Without a floor, it is the distribution of the
// times.
func Above(times []int64, floor *hist.Hist) *hist.Hist {
	steps := []int64{0}
	if floor != nil && floor.Count() > 0 {
		steps = steps[:0]
		for i := range points {
			steps = append(steps, floor.Quantile((float64(i)+0.5)/points))
		}
	}
	var sum hist.Hist
	for _, t := range times {
		for _, step := range steps {
			sum.Record(t + step)
		}
	}
	return &sum
}
