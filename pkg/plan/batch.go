package plan

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// maxBatch bounds the keys of an op: the built-in node accepts as many in a request, with values.
const maxBatch = 500

// batch checks ops with several keys.
func (v *validator) batch(ph *Phase, d *Dataset, t *Target, at part) {
	v.within(at, "batch", int64(ph.Batch), 1, maxBatch)
	if ph.Batch <= 1 {
		if ph.Distinct {
			v.fault(at.where+": distinct without a batch", "Write batch = 16, or leave distinct out.", at.path+".distinct")
		}
		return
	}
	path := at.path + ".batch"
	switch {
	case ph.walks():
		v.fault(at.where+": batch with populate, clear or verify", "Leave it out: their ops have one key each, and pipeline keeps many under way.", path)
	case len(ph.Scenarios) > 0:
		v.fault(at.where+": batch with scenarios", "Leave one of them out: the ops of a scenario have one key each.", path)
	case ph.Trace() != nil:
		v.fault(at.where+": batch with a trace", "Leave batch out: the ops of a trace have one key each.", path)
	case ph.HitRatio != nil:
		v.fault(at.where+": batch with hit_ratio", "Leave one of them out: a share of misses is of gets with one key.", path)
	case t.Replication != nil:
		v.fault(at.where+": batch on a replicated target", "Leave batch out, or replication: each key of a batch would have other replicas, and a quorum of its own.", path)
	case t.Retry != nil:
		v.fault(at.where+": batch on a target with retry", "Leave one of them out: some of the keys of a batch may fail, and others not.", path)
	case d.Keys.Pick == sequencePick || d.Keys.Pick == latestPick:
		v.fault(fmt.Sprintf("%s: batch with the keys of dataset %s by %s", at.where, dialect.Quote(d.Name), d.Keys.Pick),
			`Leave batch out, or write pick = "uniform", or another that draws keys: `+d.Keys.Pick+" has an order of single keys.", path)
	case ph.Distinct && d.Keys.Writers == oneWriter:
		v.fault(fmt.Sprintf("%s: distinct keys of dataset %s, each of which has one writer", at.where, dialect.Quote(d.Name)), "Leave distinct out: a session may have too few keys of its own.", at.path+".distinct")
	case ph.Distinct && int64(ph.Batch) > int64(d.Keys.Count):
		v.fault(fmt.Sprintf("%s: batch = %d distinct keys of %d", at.where, ph.Batch, d.Keys.Count), "Write a smaller batch, or a dataset with more keys.", path, at.path+".distinct")
	default:
		v.batches(ph, d, t, at)
	}
}

// batches checks that the target's driver supports several keys in a request.
func (v *validator) batches(ph *Phase, d *Dataset, t *Target, at part) {
	path := at.path + ".batch"
	known := driverNamed(v.drivers, t.Driver)
	b, ok := known.(driver.Batcher)
	if known != nil && !ok {
		v.fault(fmt.Sprintf("%s: driver %q has no requests of several keys", at.where, t.Driver), "Leave batch out.", path)
		return
	}
	for _, w := range ph.Ops {
		switch verb, _ := everyStores(w.Op); {
		case known == nil:
		case t.Op(w.Op) != nil:
			v.fault(fmt.Sprintf("%s: batch with op %s, which target %q words itself", at.where, dialect.Quote(w.Op), t.Name), "Leave batch out: what the plan words is a request of one key; pipeline keeps many under way.", path)
		case verb != driver.Get && verb != driver.Put:
			v.fault(fmt.Sprintf("%s: batch with %s", at.where, w.Op), "Write ops with get and put alone, or leave batch out.", path)
		default:
			form := driver.Batch{Keys: ph.Batch, Bytes: int(d.Values.Size), TTL: d.Values.TTL, TLS: t.TLS != nil}
			if err := b.CheckBatch(t.Config, verb, form); err != nil {
				v.fault(fmt.Sprintf("%s: batch of %s: %v", at.where, w.Op, err), "", path)
			}
		}
	}
}
