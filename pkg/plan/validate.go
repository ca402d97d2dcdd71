package plan

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Bounds on what a plan may ask for. They are far beyond any useful load and keep all products of them within an int64.
const (
	maxSessions   = 1_000_000
	maxPipeline   = 4096
	maxKeys       = 1_000_000_000_000 // keys of a dataset, all pools together: what 12 digits can name
	maxIterations = 1_000_000_000_000
	maxValueSize  = 512 << 20 // bytes
	maxRate       = 1e9       // per second
	maxStages     = 1000      // of a phase
	maxSLOs       = 100       // of a phase
	maxDuration   = 365 * 24 * time.Hour
	maxEndpoints  = 1000
	maxPhases     = 1000 // and targets, datasets and asserts
	maxReplicas   = 16
	maxNodes      = 1000
	maxThreads    = 1024    // sessions of a phase on a target of the machine's own: each has a thread
	maxNodeMemory = 1 << 50 // bytes
	minNodeMemory = 1 << 20 // bytes
	maxNodeDelay  = time.Hour
	maxSkew       = 10.0
	maxWeightOf   = 1e9
)

// problem is something wrong with a plan's data.
type problem struct {
	about []string // the paths of the values it is about, the one to point at first
	what  string
	write string // what to write instead
}

// validator checks a Plan, whether it was resolved from text or decoded.
type validator struct {
	plan     *Plan
	drivers  []driver.Driver
	problems []problem
}

// validate returns everything that is wrong with the plan's data.
func (p *Plan) validate(drivers []driver.Driver) []problem {
	v := &validator{plan: p, drivers: drivers}
	if !v.lengths() {
		return v.problems
	}
	v.header()
	v.used()
	for _, t := range p.Targets {
		v.target(t)
	}
	for _, d := range p.Datasets {
		v.dataset(d)
	}
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

func (v *validator) fault(what, write string, about ...string) {
	if len(v.problems) <= lang.MaxDiagnostics {
		v.problems = append(v.problems, problem{about, what, write})
	}
}

// part is where in the plan a check is, for messages and places.
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
		v.fault(fmt.Sprintf("%s: %s = %s", at.where, name, lang.SizeText(n)),
			fmt.Sprintf("Write a size from %s to %s.", lang.SizeText(least), lang.SizeText(most)), at.path+"."+name)
	}
}

// oneOf checks a word.
func (v *validator) oneOf(at part, name, word string, words ...string) {
	for _, w := range words {
		if w == word {
			return
		}
	}
	v.fault(fmt.Sprintf("%s: %s = %s", at.where, name, lang.Quote(word)), fmt.Sprintf(`Write "%s".`, strings.Join(words, `" or "`)), at.path+"."+name)
}

// lengths checks that the lists are of reasonable length: the other checks take the square of it.
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

// header checks the plan block and that everything has a name of its own.
func (v *validator) header() {
	p := v.plan
	if !namePattern.MatchString(p.Name) {
		v.fault("a plan named "+lang.Quote(p.Name), writeName, "plan")
	}
	if len(p.Description) > lang.MaxString || !utf8.ValidString(p.Description) {
		v.fault(fmt.Sprintf("the description has %d bytes", len(p.Description)), "Write at most 4096 bytes of UTF-8.", "plan.description")
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
		if a.Name == "" || len(a.Name) > maxAssertName || lang.Printable(a.Name) != a.Name || seen[a.Name] {
			v.fault("an assert named "+lang.Quote(a.Name), fmt.Sprintf("Write 1 to %d bytes of plain text, different from other asserts.", maxAssertName), "assert")
		}
		seen[a.Name] = true
	}
}

func (v *validator) name(kind, name string, first bool) {
	switch {
	case !namePattern.MatchString(name):
		v.fault(fmt.Sprintf("a %s named %s", kind, lang.Quote(name)), writeName, kind)
	case !first:
		v.fault(fmt.Sprintf("a second %s named %s", kind, lang.Quote(name)), "Give it another name.", kind+"."+name)
	}
}

// used checks that phases refer to what there is, and that there is nothing else.
func (v *validator) used() {
	used := map[string]bool{}
	for _, ph := range v.plan.Phases {
		used["target."+ph.Target], used["dataset."+ph.Dataset] = true, true
		if v.plan.Target(ph.Target) == nil {
			v.fault(fmt.Sprintf("phase %q: unknown target %s", ph.Name, lang.Quote(ph.Target)), "Write target = target.NAME.", "phase."+ph.Name+".target")
		}
		if v.plan.Dataset(ph.Dataset) == nil {
			v.fault(fmt.Sprintf("phase %q: unknown dataset %s", ph.Name, lang.Quote(ph.Dataset)), "Write dataset = dataset.NAME.", "phase."+ph.Name+".dataset")
		}
	}
	for _, o := range v.plan.Observes {
		used["target."+o.Target] = true
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

// dataset checks a key space and its values.
func (v *validator) dataset(d *Dataset) {
	at := part{"dataset." + d.Name, "dataset " + lang.Quote(d.Name)}
	keys, values := at.in("keys"), at.in("values")
	v.pick(keys, &d.Keys)
	v.keyFile(keys, &d.Keys)
	v.within(keys, "count", d.Keys.Count, 1, maxKeys)
	v.oneOf(keys, "scope", d.Keys.Scope, "shared", "session")
	if err := checkKeyFormat(d.Keys.Format); err != nil {
		v.fault(fmt.Sprintf("%s: format = %s: %v", keys.where, lang.Quote(d.Keys.Format), err), `Write text around one number, such as "key:%012d".`, keys.path+".format")
	}
	v.values(values, &d.Values)
}

// maxTTL is the longest that all protocols take: a larger number is a date to memcached.
const maxTTL = 30 * 24 * time.Hour

// ttl checks that the driver of the phase's target can have values forgotten, where the phase puts such.
func (v *validator) ttl(ph *Phase, d *Dataset, t *Target) {
	if d.Values.TTL < time.Millisecond || weightOf(ph.Ops, driver.Put)+weightOf(ph.Setup, driver.Put) == 0 {
		return
	}
	where, path := "dataset "+lang.Quote(d.Name)+", values", "dataset."+d.Name+".values.ttl"
	switch kind := driverNamed(v.drivers, t.Driver).(type) {
	case nil:
	case driver.Expirer:
		if err := kind.CheckTTL(d.Values.TTL); err != nil {
			v.fault(fmt.Sprintf("%s: ttl = %q for phase %s: %v", where, d.Values.TTL.String(), lang.Quote(ph.Name), err), "", path)
		}
	default:
		v.fault(fmt.Sprintf("%s: ttl, but phase %s puts them by driver %q, which keeps what it is given", where, lang.Quote(ph.Name), t.Driver),
			"Leave ttl out, or use another driver.", path)
	}
}

// maxKeyLength is the longest key that all protocols take: memcached's limit.
const maxKeyLength = 250

// checkKeyFormat checks that a key format is printable text without spaces around exactly one of the verbs %d, %0Nd, %x and %0Nx, N
// from 1 to 64, and makes keys of at most maxKeyLength bytes.
func checkKeyFormat(format string) error {
	verbs, length := 0, 0
	for rest := format; rest != ""; {
		c := rest[0]
		switch {
		case c <= ' ' || c >= 0x7f:
			return fmt.Errorf("a key cannot hold the byte %#02x", c)
		case c != '%':
			length, rest = length+1, rest[1:]
		case strings.HasPrefix(rest, "%%"):
			length, rest = length+1, rest[2:]
		default:
			end := strings.IndexAny(rest, "dx")
			width, ok := 20, end > 0
			if ok && end > 1 {
				ok = keyWidth(rest[1:end], &width)
			}
			if !ok {
				return fmt.Errorf("only %%d, %%0Nd, %%x, %%0Nx and %%%% may stand in it, N from 1 to 64")
			}
			verbs, length, rest = verbs+1, length+max(width, 20), rest[end+1:]
		}
	}
	switch {
	case verbs != 1:
		return fmt.Errorf("%d numbers in a key", verbs)
	case length > maxKeyLength:
		return fmt.Errorf("keys of up to %d bytes, of at most %d", length, maxKeyLength)
	}
	return nil
}

// keyWidth reads the digits between the percent sign and its verb.
func keyWidth(digits string, width *int) bool {
	if digits[0] != '0' || len(digits) < 2 || len(digits) > 3 || digits[1] == '0' {
		return false
	}
	*width = 0
	for _, c := range digits[1:] {
		if c < '0' || c > '9' {
			return false
		}
		*width = *width*10 + int(c-'0')
	}
	return *width <= 64
}

// assert checks a condition's text as the guard does a plan's. What it refers to is checked where results are known.
func (v *validator) assert(a *Assert) {
	path := "assert." + a.Name + ".that"
	if err := checkCondition(a.That); err != nil {
		v.fault(fmt.Sprintf("assert %s: %v", lang.Quote(a.Name), err), "Write a condition over the result.", path)
	}
	if len(a.File) > lang.MaxString || a.Line < 0 || a.Line > lang.MaxSource {
		v.fault(fmt.Sprintf("assert %s: no place in a text", lang.Quote(a.Name)), "Write file and line.", path)
	}
}
