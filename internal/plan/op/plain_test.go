package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

func TestPlain(t *testing.T) {
	written := answer{outcome: driver.OK, writer: 4, version: 7}
	foreign := answer{outcome: driver.OK}
	miss := answer{outcome: driver.Miss}
	deadline := op.Step{Done: true, Outcome: driver.Timeout}
	settled := op.Step{Settled: true}
	end := func(o driver.Outcome) op.Step { return op.Step{Done: true, Outcome: o, Settled: true} }

	for _, c := range []struct {
		name    string
		checked bool
		verb    driver.Verb
		events  []answer
		want    []op.Step
	}{
		{"get", false, driver.Get, []answer{written}, []op.Step{end(driver.OK)}},
		{"get of any value", false, driver.Get, []answer{foreign}, []op.Step{end(driver.OK)}},
		{"get that misses", false, driver.Get, []answer{miss}, []op.Step{end(driver.Miss)}},
		{
			"checked get", true, driver.Get,
			[]answer{written},
			[]op.Step{{Done: true, Outcome: driver.OK, Settled: true, Writer: 4, Version: 7}},
		},
		{
			"checked get of a foreign value", true, driver.Get,
			[]answer{foreign},
			[]op.Step{{Done: true, Outcome: driver.OK, Settled: true, Foreign: true}},
		},
		{"checked get that misses", true, driver.Get, []answer{miss}, []op.Step{end(driver.Miss)}},
		{"checked get lost", true, driver.Get, []answer{{kind: op.Lost}}, []op.Step{end(driver.Error)}},
		{"put", true, driver.Put, []answer{foreign}, []op.Step{end(driver.OK)}},
		{"put refused by a newer version", false, driver.Put, []answer{{outcome: driver.Conflict}}, []op.Step{end(driver.Conflict)}},
		{"delete", true, driver.Delete, []answer{foreign}, []op.Step{end(driver.OK)}},
		{"delete of nothing", false, driver.Delete, []answer{miss}, []op.Step{end(driver.Miss)}},
		{"error reply", false, driver.Put, []answer{{outcome: driver.Error}}, []op.Step{end(driver.Error)}},
		{"request timeout", false, driver.Get, []answer{{kind: op.RequestTimeout}}, []op.Step{end(driver.Timeout)}},
		{"lost", false, driver.Get, []answer{{kind: op.Lost}}, []op.Step{end(driver.Error)}},
		{"refused", false, driver.Get, []answer{{kind: op.Refused}}, []op.Step{end(driver.Error)}},
		{"deadline, then the reply", false, driver.Get, []answer{{kind: op.OpTimeout}, written}, []op.Step{deadline, settled}},
		{"reply, then the deadline", true, driver.Put, []answer{foreign, {kind: op.OpTimeout}}, []op.Step{end(driver.OK), {}}},
		{"miss, then the deadline", false, driver.Get, []answer{miss, {kind: op.OpTimeout}}, []op.Step{end(driver.Miss), {}}},
		{"loss, then the deadline", false, driver.Get, []answer{{kind: op.Lost}, {kind: op.OpTimeout}}, []op.Step{end(driver.Error), {}}},
		{
			"request timeout, then the deadline", false, driver.Get,
			[]answer{{kind: op.RequestTimeout}, {kind: op.OpTimeout}},
			[]op.Step{end(driver.Timeout), {}},
		},
		{"deadline, then the loss", false, driver.Get, []answer{{kind: op.OpTimeout}, {kind: op.Lost}}, []op.Step{deadline, settled}},
		{"deadline, then a checked reply", true, driver.Get, []answer{{kind: op.OpTimeout}, written}, []op.Step{deadline, settled}},
		{
			"deadline, then a foreign value", true, driver.Get,
			[]answer{{kind: op.OpTimeout}, foreign},
			[]op.Step{deadline, {Settled: true, Foreign: true}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ring := op.NewRing(names(4))
			program := op.NewPlain(ring, c.checked)
			for _, slot := range []int32{0, 7, 0} { // the last in a slot that was used before
				o := &op.Op{Slot: slot, Stream: 2, N: 3, Verb: c.verb, Key: []byte("key")}
				want := driver.Request{Endpoint: ring.Place(nil, o.Key, 1)[0], Verb: c.verb, Stream: 2, N: 3, Key: o.Key}
				if c.verb == driver.Put {
					want.Value = &o.Value
				}
				before := driver.Request{Endpoint: -1}
				require.Equal(t, []driver.Request{before, want}, program.Start([]driver.Request{before}, o))
				for i, a := range c.events {
					requests, step := program.On(nil, op.Event{Kind: a.kind, Op: o, Endpoint: want.Endpoint, Reply: a.reply(c.verb)})
					require.Empty(t, requests)
					require.Equal(t, c.want[i], step)
				}
			}
		})
	}
}

func TestEventKindNames(t *testing.T) {
	var got []string
	for k := range op.NumEventKinds {
		got = append(got, op.EventKind(k).String())
	}
	require.Equal(t, []string{"reply", "timeout", "lost", "refused", "op_timeout"}, got)
}
