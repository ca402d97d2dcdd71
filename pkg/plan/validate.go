package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Bounds on what a plan may ask for. They are far beyond any useful load, and keep all their products within an int64.
const (
	maxSessions   = 1_000_000
	maxPipeline   = 4096
	maxKeys       = 1_000_000_000_000 // keys of a dataset, over all pools: as many as 12 digits can name
	maxIterations = 1_000_000_000_000
	maxValueSize  = 512 << 20 // bytes
	maxRate       = 1e9       // per second
	maxStages     = 1000      // of a phase
	maxSLOs       = 100       // of a phase
	maxDuration   = 365 * 24 * time.Hour
	maxEndpoints  = 1000
	maxPhases     = 1000 // also the most targets, datasets and asserts
	maxReplicas   = 16
	maxNodes      = 1000
	maxThreads    = 1024    // sessions of a phase on a local target: each has a thread
	maxNodeMemory = 1 << 50 // bytes
	minNodeMemory = 1 << 20 // bytes
	maxNodeDelay  = time.Hour
	maxSkew       = 10.0
	maxWeightOf   = 1e9
)

// problem is an error in a plan's data.
type problem struct {
	about []string // paths of the values it is about, the one to point at first
	what  string
	write string // what to write instead
}

// validator checks a Plan, whether it was resolved from text or decoded.
type validator struct {
	plan     *Plan
	drivers  []driver.Driver
	spare    bool // the plan holds the parts that no phase uses
	problems []problem
}

// validate returns all errors in the plan's data.
func (p *Plan) validate(drivers []driver.Driver) []problem {
	v := &validator{plan: p, drivers: drivers}
	if !v.lengths() {
		return v.problems
	}
	v.header()
	v.used()
	v.parts()
	for _, o := range p.Observes {
		v.observe(o)
	}
	for _, ph := range p.Phases {
		v.phase(ph)
	}
	for _, a := range p.Asserts {
		v.assert(a)
	}
	return v.problems
}

// validateParts returns all errors in the targets and datasets alone.
func (p *Plan) validateParts(drivers []driver.Driver) []problem {
	v := &validator{plan: p, drivers: drivers, spare: true}
	if v.lengths() {
		v.parts()
	}
	return v.problems
}

func (v *validator) parts() {
	for _, t := range v.plan.Targets {
		v.target(t)
	}
	v.own()
	for _, d := range v.plan.Datasets {
		v.dataset(d)
	}
}

func (v *validator) fault(what, write string, about ...string) {
	if len(v.problems) <= dialect.MaxDiagnostics {
		v.problems = append(v.problems, problem{about, what, write})
	}
}

// part locates a check in the plan: path for places, where for messages.
type part struct{ path, where string }

func (p part) in(name string) part { return part{p.path + "." + name, p.where + ", " + name} }

// within checks a number's bounds.
func (v *validator) within(at part, name string, n, least, most int64) {
	if n < least || n > most {
		v.fault(fmt.Sprintf("%s: %s = %d", at.where, name, n), fmt.Sprintf("Write a number from %d to %d.", least, most), at.path+"."+name)
	}
}

// lasts checks a duration's bounds.
func (v *validator) lasts(at part, name string, d, least time.Duration) {
	if d < least || d > maxDuration {
		v.fault(fmt.Sprintf("%s: %s = %q", at.where, name, d.String()),
			fmt.Sprintf("Write a duration from %s to 8760h.", least), at.path+"."+name)
	}
}

// holds checks a size's bounds.
func (v *validator) holds(at part, name string, n, least, most int64) {
	if n < least || n > most {
		v.fault(fmt.Sprintf("%s: %s = %s", at.where, name, dialect.SizeText(n)),
			fmt.Sprintf("Write a size from %s to %s.", dialect.SizeText(least), dialect.SizeText(most)), at.path+"."+name)
	}
}

// oneOf checks a word.
func (v *validator) oneOf(at part, name, word string, words ...string) {
	if !slices.Contains(words, word) {
		v.fault(fmt.Sprintf("%s: %s = %s", at.where, name, dialect.Quote(word)), cmp.Or(Meant(name, word), fmt.Sprintf(`Write "%s".`, strings.Join(words, `" or "`))), at.path+"."+name)
	}
}

// lengths checks that lists are of reasonable length: other checks take quadratic time.
func (v *validator) lengths() bool {
	p := v.plan
	for i, n := range []int{len(p.Targets), len(p.Datasets), len(p.Phases), len(p.Asserts)} {
		if n > maxPhases {
			kind := []string{"targets", "datasets", "phases", "asserts"}[i]
			v.fault(fmt.Sprintf("the plan has %d %s", n, kind), fmt.Sprintf("Write at most %d.", maxPhases), "plan")
		}
	}
	if n := len(p.Observes); n > maxObserves {
		v.fault(fmt.Sprintf("the plan has %d observations", n), fmt.Sprintf("Write at most %d.", maxObserves), "plan")
	}
	return len(v.problems) == 0
}

// header checks the plan block and that names are unique.
func (v *validator) header() {
	p := v.plan
	if !namePattern.MatchString(p.Name) {
		v.fault("a plan named "+dialect.Quote(p.Name), writeName, "plan")
	}
	if len(p.Description) > dialect.MaxString || !utf8.ValidString(p.Description) {
		v.fault(fmt.Sprintf("the description has %d bytes", len(p.Description)), "Write at most 4096 bytes of UTF-8.", "plan.description")
	}
	v.quantiles()
	switch p.OnWorkerLoss {
	case "", Continue, Abort:
	case Replace:
		if phase, earlier, what := p.Irreplaceable(); phase != "" {
			v.fault(fmt.Sprintf("phase %s needs the %s that phase %s leaves on a worker's machine", dialect.Quote(phase), what, dialect.Quote(earlier)),
				"No other worker has those of one that was lost: write \"continue\" or \"abort\".", "plan.on_worker_loss")
		}
	default:
		v.fault("on_worker_loss is "+dialect.Quote(p.OnWorkerLoss), "Write \"continue\", \"abort\" or \"replace\".", "plan.on_worker_loss")
	}
	if len(p.Phases) == 0 {
		v.fault("the plan has no phase to run", `Write phase "NAME" { … }, or a when that is true.`, "plan")
	}
	for i, t := range p.Targets {
		v.name("target", t.Name, p.Target(t.Name) == p.Targets[i])
	}
	for i, d := range p.Datasets {
		v.name("dataset", d.Name, p.Dataset(d.Name) == p.Datasets[i])
	}
	for i, o := range p.Observes {
		v.name("observe", o.Name, p.Observe(o.Name) == p.Observes[i])
	}
	seen := map[string]bool{}
	for _, ph := range p.Phases {
		v.name("phase", ph.Name, !seen[ph.Name])
		seen[ph.Name] = true
	}
	clear(seen)
	for _, a := range p.Asserts {
		if a.Name == "" || len(a.Name) > maxAssertName || dialect.Printable(a.Name) != a.Name || seen[a.Name] {
			v.fault("an assert named "+dialect.Quote(a.Name), fmt.Sprintf("Write 1 to %d bytes of plain text, different from other asserts.", maxAssertName), "assert")
		}
		seen[a.Name] = true
	}
}

func (v *validator) name(kind, name string, first bool) {
	switch {
	case !namePattern.MatchString(name):
		v.fault(fmt.Sprintf("a %s named %s", kind, dialect.Quote(name)), writeName, kind)
	case !first:
		v.fault(fmt.Sprintf("a second %s named %s", kind, dialect.Quote(name)), "Give it another name.", kind+"."+name)
	}
}

// inUse has the targets that a phase or an observation names and the datasets that a phase names, as target.NAME and dataset.NAME.
func (p *Plan) inUse() map[string]bool {
	used := map[string]bool{}
	for _, ph := range p.Phases {
		for _, name := range ph.Targets() {
			used["target."+name] = true
		}
		for _, name := range ph.Datasets() {
			used["dataset."+name] = true
		}
	}
	for _, o := range p.Observes {
		used["target."+o.Target] = true
	}
	return used
}

// used checks that phases refer to existing things, and that nothing is unused.
func (v *validator) used() {
	used := v.plan.inUse()
	for _, ph := range v.plan.Phases {
		if v.plan.Target(ph.Target) == nil {
			v.fault(fmt.Sprintf("phase %q: unknown target %s", ph.Name, dialect.Quote(ph.Target)), "Write target = target.NAME.", "phase."+ph.Name+".target")
		}
		if v.plan.Dataset(ph.Dataset) == nil {
			v.fault(fmt.Sprintf("phase %q: unknown dataset %s", ph.Name, dialect.Quote(ph.Dataset)), "Write dataset = dataset.NAME.", "phase."+ph.Name+".dataset")
		}
	}
	for _, t := range v.plan.Targets {
		if !used["target."+t.Name] {
			v.fault(fmt.Sprintf("target %q: neither a phase nor an observation uses it", t.Name), "Leave it out.", "target."+t.Name)
		}
	}
	for _, d := range v.plan.Datasets {
		if !used["dataset."+d.Name] {
			v.fault(fmt.Sprintf("dataset %q: no phase uses it", d.Name), "Leave it out.", "dataset."+d.Name)
		}
	}
}
