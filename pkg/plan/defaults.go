package plan

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/loadgen/loadgen/internal/plan/values"
	"github.com/loadgen/loadgen/pkg/driver"
)

// applyDefaults sets the defaults that depend on more than one block, such as expected hits, checked values, the endpoints of targets
// without a transport, executors, and the size of values. places tells which arguments were written.
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
		if closer, ok := d.(driver.IdleCloser); ok {
			if _, written := places["target."+t.Name+".idle_timeout"]; !written {
				t.IdleTimeout = closer.IdleTimeout()
			}
		}
		if patient, ok := driverNamed(drivers, t.Driver).(driver.Replicator); ok {
			t.byServers(patient, places)
		}
		if t.Executor == "" {
			t.Executor = executor(t, d)
		}
	}
	for _, ph := range p.Phases {
		ph.Behind = p.behind(ph)
		if d := p.Dataset(ph.Dataset); len(ph.Scenarios) == 0 && (len(ph.SetupSteps) > 0 || d != nil && d.Rows != nil) && !ph.walks() && ph.Trace() == nil {
			ph.scenic() // what a session keeps, its scenarios take
		}
		for _, x := range p.uses(ph) {
			if _, written := places["dataset."+x.data.Name+".values.checked"]; (x.target.Replication != nil || ph.compares()) && !written {
				x.data.Values.Checked = true
			}
		}
	}
	for _, ph := range p.Phases {
		p.defaultPipeline(ph, places, drivers)
	}
	p.defaultSessions(places)
	for _, d := range p.Datasets {
		if r, err := values.New(d.Values.Record, d.Values.Encoding, d.Values.Compression); err == nil {
			if r.Grows() {
				d.Values.Elements = p.elements(d)
			}
			d.Values.Size = d.Values.header() + int(min(r.Bound(d.Values.Elements), 2*maxValueSize))
		}
		if f := d.Values.File; f != nil {
			d.Values.Size = d.Values.header() + f.Largest
		}
	}
	p.expectHits(places)
}

// defaultPipeline lowers the default pipeline of populate, clear and verify to one op per session for drivers whose clients block: there each op in
// flight needs its own connection.
func (p *Plan) defaultPipeline(ph *Phase, places map[string]hcl.Range, drivers []driver.Driver) {
	t := p.Target(ph.Target)
	if t == nil {
		return
	}
	if _, dials := driverNamed(drivers, t.Driver).(driver.Dialer); !dials {
		return
	}
	if _, written := places["phase."+ph.Name+"."+ph.model()+".pipeline"]; ph.walks() && !written {
		ph.Clients().Pipeline = 1
	}
}

// byServers sets the defaults of a target whose servers copy values by themselves: keys are where the servers' own clients look for them, and a request
// has time for all that a server waits for.
func (t *Target) byServers(d driver.Replicator, places map[string]hcl.Range) {
	if _, written := places["target."+t.Name+".placement"]; !written {
		t.Placement = ServersRing
	}
	if _, written := places["target."+t.Name+".timeout"]; !written {
		t.Timeout = d.Timeout()
	}
	if t.Builtin == nil || t.Copies == nil {
		return
	}
	for _, k := range []struct {
		name string
		of   *int
		want int
	}{{"n", &t.Builtin.Copies.N, t.Copies.N}, {"w", &t.Builtin.Copies.W, t.Copies.W}, {"r", &t.Builtin.Copies.R, t.Copies.R}} {
		if _, written := places["target."+t.Name+".builtin."+k.name]; !written {
			*k.of = k.want // what is expected of them
		}
	}
}
