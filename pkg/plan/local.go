package plan

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// local checks a phase whose target is files on the workers' own machines.
func (v *validator) local(ph *Phase, at part) {
	t := v.plan.Target(ph.Target)
	if t == nil {
		return
	}
	local, ok := driverNamed(v.drivers, t.Driver).(localfile.Driver)
	if !ok {
		return
	}
	v.localOps(ph, t, local, at)
	if !localfile.Keyed(local) {
		v.localEntries(ph, at)
	}
	v.localRoom(ph, t, local, at)
	if n := ph.Sessions(); n > maxThreads {
		v.fault(fmt.Sprintf("%s: %d sessions on driver %q", at.where, n, t.Driver),
			fmt.Sprintf("Write at most %d: each is a thread.", maxThreads), at.path, at.path+".closed.sessions", at.path+".open.sessions")
	}
	for model, is := range map[string]bool{"stages": ph.Stages != nil, "search": ph.Search != nil} {
		if is {
			v.fault(fmt.Sprintf("%s: %s on driver %q", at.where, model, t.Driver),
				"Write closed { … } or open { … }: what was written is verified when the load ends, which these do not know beforehand.", at.path+"."+model)
		}
	}
}

// localRoom checks that values fit into what the target's first phase creates, as far as that does not depend on the number of workers.
func (v *validator) localRoom(ph *Phase, t *Target, local localfile.Driver, at part) {
	first := v.plan.Phases[slices.IndexFunc(v.plan.Phases, func(of *Phase) bool { return of.Target == ph.Target })]
	d, made := v.plan.Dataset(ph.Dataset), v.plan.Dataset(first.Dataset)
	for _, of := range []*Dataset{d, made} {
		if of == nil || of.Keys.Count < 1 || of.Keys.Count > maxKeys || !localfile.Keyed(local) && of.Values.Size < localfile.StampSize {
			return // reported
		}
	}
	config, ok := t.Config.(interface{ Validate() error })
	if reflect.TypeOf(t.Config) != reflect.TypeOf(local.NewConfig()) || ok && config.Validate() != nil || min(ph.Sessions(), first.Sessions()) < 1 {
		return // reported
	}
	need, err := local.Need(t.Config, v.plan.site(ph, 1))
	if err != nil {
		v.fault(fmt.Sprintf("%s, target %q: %v", at.where, t.Name, err), "", at.path+".target", "dataset."+d.Name+".values.size")
		return
	}
	need, err = local.Need(t.Config, v.plan.site(ph, ph.Sessions()))
	has, failed := local.Need(t.Config, v.plan.site(first, first.Sessions()))
	if err != nil || failed != nil {
		return // it depends on the number of workers
	}
	what := fmt.Sprintf("%s, target %q", at.where, t.Name)
	const write = "Write no more keys (of pools, for no more sessions) and no larger values than there, or put the larger phase first, or write another target."
	if need.Slots > has.Slots {
		v.fault(fmt.Sprintf("%s: %d slots, where phase %q has made %d", what, need.Slots, first.Name, has.Slots), write, "dataset."+d.Name+".keys.count", at.path+".dataset")
	}
	if need.Slots == 0 && need.Value != has.Value {
		v.fault(fmt.Sprintf("%s: entries of %d bytes, where phase %q has written some of %d and nothing says where one ends", what, need.Value, first.Name, has.Value),
			"Write values of one size, or another target.", "dataset."+d.Name+".values.size", at.path+".dataset")
	} else if need.Slots == 0 && need.Value > 0 && !reflect.DeepEqual(d.Values.Sizes, made.Values.Sizes) {
		v.fault(fmt.Sprintf("%s: entries of other sizes than those that phase %q has written, and nothing says where one ends", what, first.Name),
			"Write values of the same sizes, or another target.", "dataset."+d.Name+".values.size", at.path+".dataset")
	} else if need.Value > has.Value {
		v.fault(fmt.Sprintf("%s: values of %d bytes, where phase %q has made slots of %d", what, need.Value, first.Name, has.Value), write,
			"dataset."+d.Name+".values.size", at.path+".dataset")
	}
}

// localOps checks that the target supports the ops.
func (v *validator) localOps(ph *Phase, t *Target, local localfile.Driver, at part) {
	for _, w := range ph.Ops {
		verb, ok := everyStores(w.Op)
		if !ok || local.Outcomes(verb) == nil || reflect.TypeOf(t.Config) != reflect.TypeOf(local.NewConfig()) {
			continue // reported
		}
		if err := local.Check(t.Config, verb); err != nil {
			v.fault(fmt.Sprintf("%s: %s: %v", at.where, w.Op, err), "", at.path+".ops", at.path+".target")
		}
	}
}

// localEntries checks that the dataset's values can be entries of a log, each of which identifies its writer.
func (v *validator) localEntries(ph *Phase, at part) {
	d := v.plan.Dataset(ph.Dataset)
	if d == nil {
		return
	}
	stores := slices.ContainsFunc(ph.Ops, func(w Weight) bool {
		verb, ok := everyStores(w.Op)
		return ok && verb.Stores()
	})
	path := "dataset." + d.Name + ".values"
	if stores && (d.Values.File != nil || d.Values.Record != nil || d.Values.Compressibility != nil) {
		v.fault(at.where+": entries that compress, are records or come from a file in a log", fmt.Sprintf("Write their size and nothing of that in the values of dataset %q.", d.Name),
			path+".size", path)
	}
	least := d.Values.Size
	if s := d.Values.Sizes; s != nil && s.Kind != LognormalSizes { // lognormal sizes are truncated to fit
		least = d.Values.LeastSize()
	}
	if least < localfile.StampSize {
		v.fault(fmt.Sprintf("%s: entries of %d bytes", at.where, least),
			fmt.Sprintf("Write size = %d or more in the values of dataset %q: each entry of a log says who wrote it.", localfile.StampSize, d.Name), path+".size", path)
	}
	if _, err := d.Values.Drawn(localfile.StampSize); err != nil && least >= localfile.StampSize {
		v.fault(fmt.Sprintf("%s: entries of %d bytes or more: %v", at.where, localfile.StampSize, err), "Write a larger median or maximum.", path+".size", path)
	}
	if stores && d.Values.Checked {
		v.fault(at.where+": checked values in a log", fmt.Sprintf("Leave checked out of dataset %q: entries of logs are always verified, in a form of their own.", d.Name),
			path+".checked", path)
	}
}
