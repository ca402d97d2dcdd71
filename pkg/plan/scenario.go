package plan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

const (
	maxScenarios = 32      // per phase: each has its own latencies
	maxSamples   = 100_000 // per phase
	maxScenes    = 64      // ops of a scenario: a session draws them all when the scenario begins
	maxSteps     = 256     // over all scenarios of a phase: each has its own latencies, too
)

// Scenario is a sequence of ops that a session carries out one after another, on its own connections to each of their targets. An op that
// fails ends the scenario.
type Scenario struct {
	Name   string         `json:"name"`
	Weight float64        `json:"weight"` // relative to the sum over the phase's scenarios
	Steps  []ScenarioStep `json:"steps"`  // one or more
}

// ScenarioStep is one op of a scenario.
type ScenarioStep struct {
	Op      string        `json:"op"`                // a verb's name in Plan.Words
	Key     string        `json:"key"`               // newKey or sameKey
	Think   time.Duration `json:"think_ns"`          // from the previous op's end to this one's due time; the mean of Thinks
	Thinks  *pace.Times   `json:"think,omitempty"`   // nil if think times are all the same
	Target  string        `json:"target,omitempty"`  // "" for the phase's
	Dataset string        `json:"dataset,omitempty"` // source of its key and value; "" for the phase's
	As      string        `json:"as,omitempty"`      // its name in results; if "", see StepNames
	Times   int           `json:"times,omitempty"`   // how often it is carried out, with a new key each time if Key is newKey; 0 for once
}

// The keys of a scenario's step.
const (
	newKey  = "new"  // picked as the dataset says
	sameKey = "same" // the key with the previous op's number
)

// Same reports whether the step's key has the same number as the previous step's.
func (s *ScenarioStep) Same() bool { return s.Key == sameKey }

// Repeat returns how often the step is carried out.
func (s *ScenarioStep) Repeat() int { return cmp.Or(s.Times, 1) }

// TargetIn returns the name of the step's target in the phase.
func (s *ScenarioStep) TargetIn(ph *Phase) string { return cmp.Or(s.Target, ph.Target) }

// DatasetIn returns the name of the dataset that the step's key and value come from in the phase.
func (s *ScenarioStep) DatasetIn(ph *Phase) string { return cmp.Or(s.Dataset, ph.Dataset) }

// StepNames returns the names of the scenario's steps in results: As, or else the op, numbered from its second occurrence on: get, get_2.
func (s *Scenario) StepNames() []string {
	names, seen := make([]string, len(s.Steps)), map[string]int{}
	for i, step := range s.Steps {
		names[i] = step.As
		if step.As != "" {
			continue
		}
		seen[step.Op]++
		if names[i] = step.Op; seen[step.Op] > 1 {
			names[i] = fmt.Sprintf("%s_%d", step.Op, seen[step.Op])
		}
	}
	return names
}

// ops returns how many ops the scenario has.
func (s *Scenario) ops() (n int) {
	for i := range s.Steps {
		n += s.Steps[i].Repeat()
	}
	return n
}

// Targets returns the names of the targets that a phase loads: its own first, then those of its scenarios' steps in order of first mention. Those
// that are asked only by other targets come last. Requests number targets in this order.
func (ph *Phase) Targets() []string { return append(ph.named(), ph.Behind...) }

// named is Targets without those that are asked only by other targets.
func (ph *Phase) named() []string { return ph.mentioned(ph.Target, (*ScenarioStep).TargetIn) }

// Datasets returns the names of the datasets that a phase uses, in the same order as Targets does.
func (ph *Phase) Datasets() []string { return ph.mentioned(ph.Dataset, (*ScenarioStep).DatasetIn) }

// mentioned returns the first name and those that the phase's steps mention, each once.
func (ph *Phase) mentioned(first string, of func(*ScenarioStep, *Phase) string) []string {
	names := []string{first}
	for step := range ph.steps() {
		if name := of(step, ph); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// DatasetsOn returns the names of the datasets that a phase uses on one of its targets. On the phase's own target, its own dataset comes first.
func (ph *Phase) DatasetsOn(target string) (names []string) {
	if target == ph.Target {
		names = append(names, ph.Dataset)
	}
	if slices.Contains(ph.Behind, target) { // any of them
		return ph.Datasets()
	}
	for step := range ph.steps() {
		if name := step.DatasetIn(ph); step.TargetIn(ph) == target && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// use is a dataset on a target.
type use struct {
	target *Target
	data   *Dataset
}

// uses lists the pairs of target and dataset that a phase uses and the plan has.
func (p *Plan) uses(ph *Phase) (list []use) {
	for _, target := range ph.Targets() {
		for _, data := range ph.DatasetsOn(target) {
			if x := (use{p.Target(target), p.Dataset(data)}); x.target != nil && x.data != nil {
				list = append(list, x)
			}
		}
	}
	return list
}

// opsOn lists the ops that a phase carries out on a target with a dataset.
func (ph *Phase) opsOn(t *Target, d *Dataset) (ops []string) {
	add := func(op string) {
		if ops = append(ops, op); op == driver.Get.String() && ph.OnMiss != "" {
			ops = append(ops, driver.Put.String())
		}
	}
	for step := range ph.steps() {
		if step.TargetIn(ph) == t.Name && step.DatasetIn(ph) == d.Name {
			add(step.Op)
		}
	}
	if t.Name != ph.Target || d.Name != ph.Dataset {
		return ops
	}
	mix := ph.Setup
	if len(ph.Scenarios) == 0 {
		mix = slices.Concat(ph.Ops, mix)
	}
	for _, w := range mix {
		add(w.Op)
	}
	return ops
}

// OpsOn returns the ops of the phase's load that go to one of its targets; of chains, what they are carried out by.
func (ph *Phase) OpsOn(target string) (ops []Weight) {
	if ph.Chain() != nil {
		return []Weight{{driver.Get.String(), 1}, {driver.Put.String(), 1}}
	}
	if slices.Contains(ph.Behind, target) {
		return ph.Ops
	}
	for _, w := range ph.Ops {
		if len(ph.Scenarios) == 0 && target == ph.Target || ph.asks(target, w.Op) {
			ops = append(ops, w)
		}
	}
	return ph.filling(ops)
}

// asks reports whether a step of the phase sends an op to a target.
func (ph *Phase) asks(target, op string) bool {
	for step := range ph.steps() {
		if step.Op == op && step.TargetIn(ph) == target {
			return true
		}
	}
	return false
}

// countSteps returns the number of steps in all scenarios.
func (ph *Phase) countSteps() (n int) {
	for range ph.steps() {
		n++
	}
	return n
}

// steps yields the steps of all scenarios.
func (ph *Phase) steps() iter.Seq[*ScenarioStep] {
	return func(yield func(*ScenarioStep) bool) {
		for i := range ph.Scenarios {
			for j := range ph.Scenarios[i].Steps {
				if !yield(&ph.Scenarios[i].Steps[j]) {
					return
				}
			}
		}
	}
}

// ExecutorOf returns the executor that carries a phase's requests. All targets of a phase share one executor, since a loop waits in a single
// place: their common one if they agree, else the blocking executor.
func (p *Plan) ExecutorOf(ph *Phase) string {
	executor := ""
	for _, name := range ph.Targets() {
		t := p.Target(name)
		switch {
		case t == nil || t.Source != "":
		case executor == "":
			executor = t.Executor
		case executor != t.Executor:
			return Blocking
		}
	}
	return executor
}

// keys returns how many keys the scenario picks.
func (s *Scenario) keys() (n int) {
	for _, step := range s.Steps {
		if !step.Same() {
			n += step.Repeat()
		}
	}
	return n
}

// StepsPerArrival returns the mean number of ops in a session's draw from the phase's mix when none fails: 1 without scenarios.
func (ph *Phase) StepsPerArrival() float64 {
	if len(ph.Scenarios) == 0 {
		return 1
	}
	steps, weight := 0.0, 0.0
	for _, s := range ph.Scenarios {
		steps += s.Weight * float64(s.ops())
		weight += s.Weight
	}
	return steps / weight
}

// MostSteps returns the largest number of ops in such a draw.
func (ph *Phase) MostSteps() int {
	most := 1
	for _, s := range ph.Scenarios {
		most = max(most, s.ops())
	}
	return most
}

// mixOf returns the mix of ops that the scenarios produce.
func mixOf(scenarios []Scenario) []Weight {
	byOp := map[string]float64{}
	for _, s := range scenarios {
		for _, step := range s.Steps {
			byOp[step.Op] += s.Weight * float64(step.Repeat())
		}
	}
	list := []Weight{}
	for op, weight := range byOp {
		if weight > 0 {
			list = append(list, Weight{op, weight})
		}
	}
	slices.SortFunc(list, func(x, y Weight) int { return compareOps(x.Op, y.Op) })
	return list
}

// scenarios reads the phase's scenarios. If there are any, each op of its mix becomes a scenario of one step, named after the op.
func (b *block) scenarios(ph *Phase) {
	ph.Scenarios = []Scenario{}
	for _, inner := range b.labelled("scenario", true) {
		inner.Expect([]string{"weight"}, nil, "step")
		s := Scenario{Name: inner.label, Weight: 1, Steps: []ScenarioStep{}}
		if v, ok := inner.As("weight", cty.Number, "Write a number, relative to the other weights."); ok {
			s.Weight, _ = v.AsBigFloat().Float64()
		}
		var read []named
		for _, step := range inner.labelled("step", false) {
			if st, ok := step.scenarioStep(ph); ok {
				s.Steps, read = append(s.Steps, st), append(read, step)
			}
		}
		for i, name := range s.StepNames() {
			for _, slo := range read[i].each("slo") {
				slo.held(slo.slo(), "phase", ph.Name, "scenario", s.Name, "step", name)
			}
		}
		ph.Scenarios = append(ph.Scenarios, s)
	}
	if len(ph.Scenarios) == 0 {
		return
	}
	ph.scenic()
}

// scenic makes a scenario of each op of the phase's mix.
func (ph *Phase) scenic() {
	var singles []Scenario
	for _, w := range ph.Ops {
		singles = append(singles, Scenario{w.Op, w.Weight, []ScenarioStep{{Op: w.Op, Key: newKey}}})
	}
	ph.Scenarios = slices.Concat(singles, ph.Scenarios)
	ph.Ops = mixOf(ph.Scenarios)
}

// scenarioStep reads one step; ok is false if the step must be left out.
func (b named) scenarioStep(ph *Phase) (st ScenarioStep, ok bool) {
	b.Expect([]string{"target", "dataset", "as", "key", "think", "times", "when"}, nil, "slo")
	when := true
	b.Flag("when", &when)
	st = ScenarioStep{Op: b.label, Key: "new"}
	for name, to := range map[string]*string{"target": &st.Target, "dataset": &st.Dataset} {
		if b.Has(name) {
			*to = b.Reference(name, name)
		}
	}
	if st.Target == ph.Target {
		st.Target = ""
	}
	if st.Dataset == ph.Dataset {
		st.Dataset = ""
	}
	b.Text("as", &st.As)
	b.Text("key", &st.Key)
	b.think(&st.Think, &st.Thinks)
	dialect.Integer(b.Block, "times", &st.Times)
	if st.Times == 0 {
		b.notZero("times", "0 leaves the step out", "Write 1 or more, or when = false to leave the step out.")
	}
	if st.Times == 1 {
		st.Times = 0
	}
	return st, when
}

// scenarios checks a phase's scenarios, and that its mix matches them.
func (v *validator) scenarios(ph *Phase, at part) {
	if len(ph.Scenarios) == 0 {
		return
	}
	if ph.Closed == nil && ph.Schedule() == nil {
		v.fault(at.where+": scenarios in populate or clear", "Leave them out.", at.path+".scenario."+ph.Scenarios[0].Name, at.path)
		return
	}
	if n := len(ph.Scenarios); n > maxScenarios {
		v.fault(fmt.Sprintf("%s: %d scenarios, the ops of the mix among them", at.where, n), fmt.Sprintf("Write at most %d.", maxScenarios), at.path)
	}
	seen := map[string]bool{}
	for i := range ph.Scenarios {
		s := &ph.Scenarios[i]
		in := part{at.path + ".scenario." + s.Name, at.where + ", scenario " + dialect.Quote(s.Name)}
		switch {
		case !namePattern.MatchString(s.Name):
			v.fault(in.where+": its name", writeName, in.path)
		case seen[s.Name]:
			v.fault(in.where+": a second of that name", "Give it another name; an op of the mix is a scenario of one step by the op's name.", in.path)
		}
		seen[s.Name] = true
		v.scenario(ph, s, in)
	}
	if n := ph.countSteps(); n > maxSteps {
		v.fault(fmt.Sprintf("%s: its scenarios have %d steps", at.where, n), fmt.Sprintf("Write at most %d in all; times = N repeats one.", maxSteps), at.path)
	}
	v.others(ph, at)
	if !slices.Equal(ph.Ops, mixOf(ph.Scenarios)) {
		v.fault(at.where+": ops are not what the scenarios bring", "Write their sums by op.", at.path+".ops")
	}
}

func (v *validator) scenario(ph *Phase, s *Scenario, at part) {
	if !(s.Weight > 0 && s.Weight <= maxWeightOf) {
		v.fault(fmt.Sprintf("%s: weight = %g", at.where, s.Weight), "Write a weight above 0 and up to 1e9.", at.path+".weight")
	}
	if n := s.ops(); n < 1 || n > maxScenes {
		v.fault(fmt.Sprintf("%s: %d steps", at.where, n), fmt.Sprintf(`Write 1 to %d steps, each counted as often as its times says: step "get" {}`, maxScenes), at.path)
	}
	names := s.StepNames()
	for i := range s.Steps {
		in := part{fmt.Sprintf("%s.step.%d", at.path, i+1), fmt.Sprintf("%s, step %d", at.where, i+1)}
		v.step(ph, s, i, in)
		switch name := names[i]; {
		case !namePattern.MatchString(name):
			if s.Steps[i].As != "" {
				v.fault(fmt.Sprintf("%s: named %s", in.where, dialect.Quote(name)), writeName, in.path+".as")
			}
		case slices.Contains(names[:i], name):
			v.fault(fmt.Sprintf("%s: a second of the name %s", in.where, dialect.Quote(name)), `Write as = "…": each step has a name of its own in the result.`, in.path+".as", in.path)
		}
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && d.Keys.Pick == sequencePick && s.keys() != 1 {
		v.fault(fmt.Sprintf("%s: %d keys of dataset %q in sequence", at.where, s.keys(), d.Name),
			`Write key = "same" in all steps but the first: in a sequence each scenario takes one key.`, at.path, "dataset."+d.Name+".keys.pick")
	}
}

// step checks the i-th step of a scenario.
func (v *validator) step(ph *Phase, s *Scenario, i int, in part) {
	step := &s.Steps[i]
	target, data := v.plan.Target(step.TargetIn(ph)), v.plan.Dataset(step.DatasetIn(ph))
	if target == nil && step.Target != "" {
		v.fault(fmt.Sprintf("%s: unknown target %s", in.where, dialect.Quote(step.Target)), "Write target = target.NAME.", in.path+".target")
	}
	if data == nil && step.Dataset != "" {
		v.fault(fmt.Sprintf("%s: unknown dataset %s", in.where, dialect.Quote(step.Dataset)), "Write dataset = dataset.NAME.", in.path+".dataset")
	}
	v.known(target, in, step.Op, in.path)
	v.oneOf(in, "key", step.Key, newKey, sameKey)
	v.think(step.Think, step.Thinks, in)
	v.within(in, "times", int64(step.Repeat()), 1, maxScenes)
	if i == 0 && step.Same() {
		v.fault(in.where+`: key = "same"`, "Leave key out: no step is before it.", in.path+".key")
	}
	if i == 0 && step.Think > 0 {
		v.fault(in.where+": think before the first step", "Leave it out, or write think in the closed block: it is between scenarios.", in.path+".think")
	}
	switch {
	case data == nil:
	case step.Dataset != "" && data.Values.Elements > 0:
		v.fault(fmt.Sprintf("%s: dataset %s, whose records grow", in.where, dialect.Quote(data.Name)),
			"Make it the phase's own dataset: a session counts its puts only there.", in.path+".dataset")
	case step.Same() && i > 0:
		v.sameKey(v.plan.Dataset(s.Steps[i-1].DatasetIn(ph)), data, in)
	case step.Dataset != "" && (data.Keys.Pick == sequencePick || data.Keys.Pick == latestPick):
		v.fault(fmt.Sprintf("%s: new keys of dataset %s by %s", in.where, dialect.Quote(data.Name), data.Keys.Pick),
			fmt.Sprintf(`Write key = "same", or pick = "uniform" in the dataset, or make it the phase's own: a session's keys have an order only there. It is %s.`, dialect.Quote(ph.Dataset)),
			in.path+".dataset", "dataset."+data.Name+".keys.pick")
	}
}

// sameKey checks that every key number of one dataset also exists in the other.
func (v *validator) sameKey(before, data *Dataset, in part) {
	if before == nil || before == data {
		return
	}
	keys := "dataset." + data.Name + ".keys"
	switch a, b := &before.Keys, &data.Keys; {
	case a.Pick == latestPick || b.Pick == latestPick:
		v.fault(fmt.Sprintf(`%s: key = "same" over datasets %s and %s, and one of them grows`, in.where, dialect.Quote(before.Name), dialect.Quote(data.Name)),
			`Write another pick than "latest", or the same dataset in both steps.`, in.path+".key", keys+".pick")
	case a.Count != b.Count:
		v.fault(fmt.Sprintf(`%s: key = "same", but dataset %s has %d keys and %s has %d`, in.where, dialect.Quote(before.Name), a.Count, dialect.Quote(data.Name), b.Count),
			fmt.Sprintf(`Give both the same count, or leave key = "same" out: a key of %s has its number in %s, too.`, dialect.Quote(before.Name), dialect.Quote(data.Name)),
			in.path+".key", keys+".count")
	case a.Scope != b.Scope:
		v.fault(fmt.Sprintf(`%s: key = "same", but the keys of dataset %s are %s and those of %s are %s`, in.where, dialect.Quote(before.Name), scoped(a), dialect.Quote(data.Name), scoped(b)),
			"Give both the same scope.", in.path+".key", keys+".scope")
	}
}

func scoped(k *Keys) string {
	if k.PerSession() {
		return "of each session"
	}
	return "shared"
}

// others checks the targets and datasets of a phase that has scenarios.
func (v *validator) others(ph *Phase, at part) {
	names := ph.Targets()
	for _, name := range names {
		t := v.plan.Target(name)
		if t == nil {
			continue
		}
		if local, ok := driverNamed(v.drivers, t.Driver).(localfile.Driver); ok && localfile.Keyed(local) && len(names) > 1 {
			v.fault(fmt.Sprintf("%s: scenarios on target %s of driver %q, and on others", at.where, dialect.Quote(name), t.Driver),
				"Write scenarios for it in a phase of its own: its files are the work of the loops' own threads.", at.path+".scenario."+ph.Scenarios[0].Name, at.path)
		} else if ok && !localfile.Keyed(local) {
			v.fault(fmt.Sprintf("%s: scenarios on target %s of driver %q", at.where, dialect.Quote(name), t.Driver),
				"Write ops = { write = 1 }, or another mix, in a phase of its own: ops of a log cannot be steps.", at.path+".scenario."+ph.Scenarios[0].Name, at.path)
		}
		var first *Dataset
		for _, of := range ph.DatasetsOn(name) {
			d := v.plan.Dataset(of)
			switch {
			case d == nil:
			case first == nil:
				first = d
			case first.Values.Checked != d.Values.Checked:
				v.fault(fmt.Sprintf("%s: datasets %s and %s on target %s, and one has values that are checked", at.where, dialect.Quote(first.Name), dialect.Quote(of), dialect.Quote(name)),
					"Write the same checked in the values of both.", "dataset."+of+".values.checked", at.path)
			}
		}
	}
}
