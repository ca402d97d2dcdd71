package words

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Connections says what became of a load's connections and how long it took to make one; nothing if the load did not renew them.
func Connections(ph *run.Phase) (facts []string, rows []Row) {
	c := ph.Connections
	if c == nil {
		return nil, nil
	}
	attempted := append([]string{quantity.Thousands(c.Opened) + " opened"}, Counts([]string{"refused", "being made"}, c.Refused, uint64(c.Making))...)
	opened := append([]string{quantity.Thousands(c.Open) + " open", quantity.Thousands(c.Renewed) + " renewed"}, Counts([]string{"lost"}, c.Lost)...)
	facts = []string{
		quantity.Thousands(c.Attempted) + " attempted = " + strings.Join(attempted, " + "),
		quantity.Thousands(c.Opened) + " opened = " + strings.Join(opened, " + "),
	}
	rows = []Row{
		{"connect", c.Connect, "connections.connect", ph},
		{"  TCP", c.TCP, "connections.tcp", ph},
		{"  TLS", c.TLS, "connections.tls", ph},
		{"  greeting", c.Greeting, "connections.greeting", ph},
	}
	return facts, slices.DeleteFunc(rows, func(r Row) bool { return r.Latency.Count == 0 })
}
