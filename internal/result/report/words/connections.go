package words

import (
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Connections says what became of a load's connections and how long it took to make one; nothing if the load did not renew them.
func Connections(ph *run.Phase) (facts []string, rows []Row) {
	c := ph.Connections
	if c == nil {
		return nil, nil
	}
	sum := func(text string, n uint64, name string) string {
		if n == 0 {
			return text
		}
		return text + " + " + quantity.Thousands(n) + " " + name
	}
	attempted := quantity.Thousands(c.Attempted) + " attempted = " + quantity.Thousands(c.Opened) + " opened"
	opened := quantity.Thousands(c.Opened) + " opened = " + quantity.Thousands(c.Open) + " open + " + quantity.Thousands(c.Renewed) + " renewed"
	facts = []string{sum(sum(attempted, c.Refused, "refused"), uint64(c.Making), "being made"), sum(opened, c.Lost, "lost")}
	rows = []Row{
		{"connect", c.Connect, "connections.connect", ph},
		{"  TCP", c.TCP, "connections.tcp", ph},
		{"  TLS", c.TLS, "connections.tls", ph},
		{"  greeting", c.Greeting, "connections.greeting", ph},
	}
	return facts, slices.DeleteFunc(rows, func(r Row) bool { return r.Latency.Count == 0 })
}
