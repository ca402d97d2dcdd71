package judge

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
)

// connections copies the counts of a load that renews its connections, and those of its setup.
func (b *builder) connections(m *Measured) {
	if b.counts.phase.Clients().Reconnect == nil {
		return
	}
	t := new(measure.Connections)
	for _, of := range []*measure.Totals{m.Setup, m.Load} {
		if of != nil && of.Links != nil {
			t.Merge(of.Links)
		}
	}
	const none = "no connection was made"
	times := func(name, none string, stage int) run.Latency {
		return b.latency("connections."+name, &t.Times[stage], none)
	}
	b.Connections = &run.Connections{
		Attempted: t.Attempted, Opened: t.Opened, Refused: t.Refused, Making: t.Making, Open: t.Open, Renewed: t.Renewed, Lost: t.Lost,
		Connect: times("connect", none, measure.StageAll), TCP: times("tcp", none, measure.StageTCP),
		TLS:      times("tls", "no connection began with TLS", measure.StageTLS),
		Greeting: times("greeting", "connections begin with no greeting", measure.StageGreeting),
	}
}
