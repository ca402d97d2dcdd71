package plan

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/loadgen/loadgen/internal/record"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// defaultHits is the share of gets that must find a key when the plan itself has put every key there.
const defaultHits = 0.99

// applyDefaults sets the defaults that depend on more than one block: what a phase may expect to find, where values must be checked,
// the endpoints of a target that has no transport, and what carries a target. Places tell which arguments were written.
func (p *Plan) applyDefaults(places map[string]hcl.Range, drivers []driver.Driver) {
	for _, t := range p.Targets {
		d := driverNamed(drivers, t.Driver)
		if located(d) && len(t.Endpoints) == 0 && t.Builtin == nil {
			t.Endpoints = imaginary(t)
		}
		if len(t.Endpoints) > 0 {
			t.Builtin = nil
		}
		if _, written := places["target."+t.Name+".placement"]; clustered(t, d) && !written {
			t.Placement = Slots
		}
		if t.Executor == "" {
			t.Executor = executor(t, d)
		}
	}
	for _, ph := range p.Phases {
		d, t := p.Dataset(ph.Dataset), p.Target(ph.Target)
		if _, written := places["dataset."+ph.Dataset+".values.checked"]; d != nil && t != nil && t.Replication != nil && !written {
			d.Values.Checked = true
		}
	}
	for _, d := range p.Datasets {
		if r, err := record.New(d.Values.Record); err == nil {
			d.Values.Size = d.Values.header() + r.Bound()
		}
		if f := d.Values.File; f != nil {
			d.Values.Size = d.Values.header() + f.Largest
		}
	}
	p.expectHits(places)
}

// executor is what carries a target of which nothing is said.
func executor(t *Target, d driver.Driver) string {
	_, dials := d.(driver.Dialer)
	_, local := d.(localfile.Driver)
	switch {
	case local:
		return Thread
	case dials || t.TLS != nil:
		return Blocking
	}
	return EventLoop
}

// clustered says whether a target is a cluster.
func clustered(t *Target, d driver.Driver) bool {
	c, ok := d.(driver.Cluster)
	return ok && c.Clustered(t.Config)
}

// located says whether a driver needs no endpoints to find its target: what is given then are names and no more.
func located(d driver.Driver) bool {
	switch d.(type) {
	case driver.Timed, localfile.Driver:
		return true
	}
	return false
}

// imaginary names the endpoints of a target that has none and needs none: as many as replication wants, at least one.
func imaginary(t *Target) []string {
	n := 1
	if t.Replication != nil {
		n = min(max(t.Replication.N, 1), maxReplicas)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Driver, i)
	}
	return names
}

// expectHits sets what a phase expects where it is not written: nearly all gets hit when the phase's own setup, or an earlier
// populate, has put every key and nothing has deleted any since, nor will the store by itself. The keys of a trace are its own.
func (p *Plan) expectHits(places map[string]hcl.Range) {
	type place struct{ target, dataset string }
	full := map[place]bool{}
	for _, ph := range p.Phases {
		at := place{ph.Target, ph.Dataset}
		deletes := weightOf(ph.Ops, driver.Delete) > 0
		_, written := places["phase."+ph.Name+".expect_hits"]
		data := p.Dataset(ph.Dataset)
		expire := data != nil && data.Values.TTL > 0 // nobody knows how many are still there
		if !written && ph.HitRatio == nil && ph.Trace() == nil && !deletes && !expire && weightOf(ph.Ops, driver.Get) > 0 && (full[at] || len(ph.Setup) > 0) {
			hits := defaultHits
			ph.ExpectHits = &hits
		}
		switch {
		case ph.Populate != nil:
			full[at] = true
		case ph.Clear != nil && p.flushes(ph):
			for other := range full {
				full[other] = full[other] && other.target != ph.Target
			}
		case deletes:
			full[at] = false
		}
	}
}

// flushes says whether a clear phase empties its target, other datasets included.
func (p *Plan) flushes(ph *Phase) bool {
	t := p.Target(ph.Target)
	return ph.Clear != nil && t != nil && t.Builtin != nil
}

// weightOf returns an op's weight in a mix, 0 if it is not in it.
func weightOf(mix []Weight, v driver.Verb) float64 {
	if i := slices.IndexFunc(mix, func(w Weight) bool { return w.Op == v.String() }); i >= 0 {
		return mix[i].Weight
	}
	return 0
}
