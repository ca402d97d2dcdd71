package judge

import (
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Reasons why a target may not be what the plan names.
const (
	sameServer     reason.Code = "same_server"     // endpoints that the plan takes for several servers are one
	notLoaded      reason.Code = "not_loaded"      // an endpoint's name leads to other servers, too, which were not loaded
	serversDiffer  reason.Code = "servers_differ"  // workers found different servers by the same name
	silentEndpoint reason.Code = "silent_endpoint" // an endpoint answered nothing, while others did
)

// judgeServers checks that the servers that were loaded are those that the plan names: each endpoint is a different server, and the only one of its
// name.
func (p *phase) judgeServers(d *doubts) {
	touches := append(p.all(), "requests")
	for _, t := range p.targets() {
		facts := p.counts.Servers[t.Name]
		for _, same := range worker.OneServer(t.Endpoints, facts) {
			d.add(sameServer, run.Suspect, touches, "target %q: %s are one server: the figures are not those of %s",
				t.Name, strings.Join(same, ", "), quantity.Count(len(t.Endpoints), "server"))
		}
		for _, endpoint := range t.Endpoints {
			f := facts[endpoint]
			if others := f[worker.OtherAddresses]; others != "" {
				d.add(notLoaded, run.Suspect, touches, "target %q: %s leads to other servers, too: %s was loaded, and not %s", t.Name, endpoint, f[worker.Address], others)
			}
			if elsewhere := f[worker.Elsewhere]; elsewhere != "" {
				d.add(serversDiffer, run.Suspect, touches, "target %q: workers did not all load the same server by the name %s: %s, but %s", t.Name, endpoint, f[worker.Address], elsewhere)
			}
		}
	}
}

// judgeSilent finds endpoints that answered nothing while others of their target did, so that the figures are those of the others.
func (p *phase) judgeSilent(d *doubts) {
	for _, t := range p.targets() {
		var answered, silent []string
		causes := map[string]string{}
		for _, endpoint := range t.Endpoints {
			var sum measure.Requests
			for _, r := range p.Requests {
				if r.Target == t.Name && r.Endpoint == endpoint {
					sum.Merge(&r.Requests)
				}
			}
			switch {
			case sum.Answered+sum.Moved+sum.Ask > 0:
				answered = append(answered, endpoint)
			case sum.Timeout+sum.Error+sum.Refused > 0:
				silent = append(silent, endpoint)
				causes[endpoint] = list(named{"timeout", sum.Timeout}, named{"error", sum.Error}, named{"refused", sum.Refused})
			}
		}
		if len(answered) == 0 {
			continue
		}
		for _, endpoint := range silent {
			d.add(silentEndpoint, run.Suspect, append(p.all(), "requests"), "target %q: %s answered none of its requests (%s): the figures are those of the other %s",
				t.Name, endpoint, causes[endpoint], quantity.Count(len(t.Endpoints)-1, "endpoint"))
		}
	}
}
