package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	if len(v.problems) <= maxDiagnostics {
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
		v.fault(fmt.Sprintf("%s: %s = %s", at.where, name, sizeText(n)),
			fmt.Sprintf("Write a size from %s to %s.", sizeText(least), sizeText(most)), at.path+"."+name)
	}
}

// oneOf checks a word.
func (v *validator) oneOf(at part, name, word string, words ...string) {
	for _, w := range words {
		if w == word {
			return
		}
	}
	v.fault(fmt.Sprintf("%s: %s = %s", at.where, name, quote(word)), fmt.Sprintf(`Write "%s".`, strings.Join(words, `" or "`)), at.path+"."+name)
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
		v.fault("a plan named "+quote(p.Name), writeName, "plan")
	}
	if len(p.Description) > maxString || !utf8.ValidString(p.Description) {
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
		if a.Name == "" || len(a.Name) > maxAssertName || printable(a.Name) != a.Name || seen[a.Name] {
			v.fault("an assert named "+quote(a.Name), fmt.Sprintf("Write 1 to %d bytes of plain text, different from other asserts.", maxAssertName), "assert")
		}
		seen[a.Name] = true
	}
}

func (v *validator) name(kind, name string, first bool) {
	switch {
	case !namePattern.MatchString(name):
		v.fault(fmt.Sprintf("a %s named %s", kind, quote(name)), writeName, kind)
	case !first:
		v.fault(fmt.Sprintf("a second %s named %s", kind, quote(name)), "Give it another name.", kind+"."+name)
	}
}

// used checks that phases refer to what there is, and that there is nothing else.
func (v *validator) used() {
	used := map[string]bool{}
	for _, ph := range v.plan.Phases {
		used["target."+ph.Target], used["dataset."+ph.Dataset] = true, true
		if v.plan.Target(ph.Target) == nil {
			v.fault(fmt.Sprintf("phase %q: unknown target %s", ph.Name, quote(ph.Target)), "Write target = target.NAME.", "phase."+ph.Name+".target")
		}
		if v.plan.Dataset(ph.Dataset) == nil {
			v.fault(fmt.Sprintf("phase %q: unknown dataset %s", ph.Name, quote(ph.Dataset)), "Write dataset = dataset.NAME.", "phase."+ph.Name+".dataset")
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
	at := part{"dataset." + d.Name, "dataset " + quote(d.Name)}
	keys, values := at.in("keys"), at.in("values")
	v.pick(keys, &d.Keys)
	v.keyFile(keys, &d.Keys)
	v.within(keys, "count", d.Keys.Count, 1, maxKeys)
	v.oneOf(keys, "scope", d.Keys.Scope, "shared", "session")
	if err := checkKeyFormat(d.Keys.Format); err != nil {
		v.fault(fmt.Sprintf("%s: format = %s: %v", keys.where, quote(d.Keys.Format), err), `Write text around one number, such as "key:%012d".`, keys.path+".format")
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
	where, path := "dataset "+quote(d.Name)+", values", "dataset."+d.Name+".values.ttl"
	switch kind := driverNamed(v.drivers, t.Driver).(type) {
	case nil:
	case driver.Expirer:
		if err := kind.CheckTTL(d.Values.TTL); err != nil {
			v.fault(fmt.Sprintf("%s: ttl = %q for phase %s: %v", where, d.Values.TTL.String(), quote(ph.Name), err), "", path)
		}
	default:
		v.fault(fmt.Sprintf("%s: ttl, but phase %s puts them by driver %q, which keeps what it is given", where, quote(ph.Name), t.Driver),
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
		v.fault(fmt.Sprintf("assert %s: %v", quote(a.Name), err), "Write a condition over the result.", path)
	}
	if len(a.File) > maxString || a.Line < 0 || a.Line > maxSource {
		v.fault(fmt.Sprintf("assert %s: no place in a text", quote(a.Name)), "Write file and line.", path)
	}
}

// bound checks that a phase and its bound both write logs, the bound first.
func (v *validator) bound(ph *Phase, at part) {
	if ph.Bound == "" {
		return
	}
	i := slices.Index(v.plan.Phases, ph)
	j := slices.IndexFunc(v.plan.Phases, func(p *Phase) bool { return p.Name == ph.Bound })
	if j < 0 || j >= i {
		v.fault(fmt.Sprintf("%s: its bound %s does not run before it", at.where, quote(ph.Bound)), "Write the bound's phase above this one, and when on both or neither.", at.path+".bound")
		return
	}
	for _, p := range []*Phase{ph, v.plan.Phases[j]} {
		if t := v.plan.Target(p.Target); t != nil && t.Executor != Thread {
			v.fault(fmt.Sprintf("%s: bound, and the target of phase %s is no log", at.where, quote(p.Name)), "Leave bound out.", at.path+".bound")
			return
		}
	}
}

// phase checks a phase.
func (v *validator) phase(ph *Phase) {
	at := part{"phase." + ph.Name, "phase " + quote(ph.Name)}
	v.oneModel(ph, at)
	v.scenarios(ph, at)
	if len(ph.Scenarios) == 0 {
		v.mix(ph, at, "ops", ph.Ops)
	}
	if len(ph.Setup) > 0 {
		v.setup(ph, at)
	}
	switch h := ph.ExpectHits; {
	case h == nil:
	case !(*h >= 0 && *h <= 1):
		v.fault(fmt.Sprintf("%s: expect_hits = %g", at.where, *h), `Write a share from 0 to 1, or "99%".`, at.path+".expect_hits")
	case weightOf(ph.Ops, driver.Get) == 0:
		v.fault(at.where+": expect_hits without gets", "Leave expect_hits out, or write ops with get.", at.path+".expect_hits", at.path+".ops")
	}
	v.hitRatio(ph, at)
	if !(ph.MaxBad >= 0 && ph.MaxBad <= 1) {
		v.fault(fmt.Sprintf("%s: max_bad = %g", at.where, ph.MaxBad), `Write a share from 0 to 1, or "1%".`, at.path+".max_bad")
	}
	v.stop(ph, at)
	v.local(ph, at)
	v.bound(ph, at)
	if d := v.plan.Dataset(ph.Dataset); d != nil {
		v.keysOf(ph, d, at)
		v.listed(ph, d, at)
		v.growing(ph, d, at)
		if t := v.plan.Target(ph.Target); t != nil {
			v.ttl(ph, d, t)
			v.batch(ph, d, t, at)
		}
		if t := v.plan.Target(ph.Target); t != nil && t.Replication != nil && !d.Values.Checked {
			v.fault(fmt.Sprintf("%s: replicated values that are not checked", at.where),
				fmt.Sprintf("Leave checked = false out of dataset %q: versions stand in checked values.", d.Name),
				"dataset."+d.Name+".values.checked")
		}
	}
}

// stop checks how many failures end a load.
func (v *validator) stop(ph *Phase, at part) {
	s := ph.Stop
	if s == nil {
		return
	}
	about := at.path + ".stop_after"
	if s.Errors == 1 {
		about = at.path + ".on_error"
	}
	switch {
	case ph.Search != nil:
		v.fault(at.where+": search with on_error or stop_after", "Leave them out: a search tries what is too much, and max_bad says which level does not hold.", about)
	case ph.Closed == nil && ph.Schedule() == nil:
		v.fault(at.where+": populate or clear with on_error or stop_after", "Leave them out: when one of their ops fails, the run has failed.", about)
	case !(s.Errors >= 1 && s.Errors <= maxIterations && s.Share == 0) && !(s.Errors == 0 && s.Share > 0 && s.Share < 1):
		v.fault(fmt.Sprintf("%s: stop_after is %d errors and a share of %g", at.where, s.Errors, s.Share),
			`Write a number of errors such as 100, or a share of the ops below 100%, such as "5%".`, about)
	}
}

// local checks a phase whose target is files of the workers' own machines.
func (v *validator) local(ph *Phase, at part) {
	t := v.plan.Target(ph.Target)
	if t == nil {
		return
	}
	local, ok := driverNamed(v.drivers, t.Driver).(driver.Local)
	if !ok {
		return
	}
	v.localOps(ph, t, local, at)
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

// localRoom checks that values fit into what the target's first phase makes, as far as that does not depend on how many workers there are.
func (v *validator) localRoom(ph *Phase, t *Target, local driver.Local, at part) {
	first := v.plan.Phases[slices.IndexFunc(v.plan.Phases, func(of *Phase) bool { return of.Target == ph.Target })]
	d, made := v.plan.Dataset(ph.Dataset), v.plan.Dataset(first.Dataset)
	for _, of := range []*Dataset{d, made} {
		if of == nil || of.Keys.Count < 1 || of.Keys.Count > maxKeys || of.Values.Size < driver.StampSize {
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
		return // up to the number of workers
	}
	what := fmt.Sprintf("%s, target %q", at.where, t.Name)
	const write = "Write no more keys (of pools, for no more sessions) and no larger values than there, or have the larger phase first, or write another target."
	if need.Slots > has.Slots {
		v.fault(fmt.Sprintf("%s: %d slots, where phase %q has made %d", what, need.Slots, first.Name, has.Slots), write, "dataset."+d.Name+".keys.count", at.path+".dataset")
	}
	if need.Value > has.Value {
		v.fault(fmt.Sprintf("%s: values of %d bytes, where phase %q has made slots of %d", what, need.Value, first.Name, has.Value), write,
			"dataset."+d.Name+".values.size", at.path+".dataset")
	}
}

// localOps checks that the target takes the ops, and can say of each value who wrote it.
func (v *validator) localOps(ph *Phase, t *Target, local driver.Local, at part) {
	stores := false
	for _, w := range ph.Ops {
		verb, ok := driver.ParseVerb(w.Op)
		if !ok || local.Outcomes(verb) == nil || reflect.TypeOf(t.Config) != reflect.TypeOf(local.NewConfig()) {
			continue // reported
		}
		stores = stores || verb.Stores()
		if err := local.Check(t.Config, verb); err != nil {
			v.fault(fmt.Sprintf("%s: %s: %v", at.where, w.Op, err), "", at.path+".ops", at.path+".target")
		}
	}
	d := v.plan.Dataset(ph.Dataset)
	if d == nil {
		return
	}
	path := "dataset." + d.Name + ".values"
	if stores && d.Values.Form() != "" {
		v.fault(at.where+": entries that differ in size, compress, are records or come from a file in a log", fmt.Sprintf("Write one size and nothing of that in the values of dataset %q.", d.Name),
			path+".size", path)
	}
	if d.Values.Size < driver.StampSize {
		v.fault(fmt.Sprintf("%s: entries of %d bytes", at.where, d.Values.Size),
			fmt.Sprintf("Write size = %d or more in the values of dataset %q: each entry of a log says who wrote it.", driver.StampSize, d.Name), path+".size", path)
	}
	if stores && d.Values.Checked {
		v.fault(at.where+": checked values in a log", fmt.Sprintf("Leave checked out of dataset %q: entries of logs are always verified, in a form of their own.", d.Name),
			path+".checked", path)
	}
}

// oneModel checks that there is one load model, and it.
func (v *validator) oneModel(ph *Phase, at part) {
	var models []string
	if c := ph.Closed; c != nil {
		models = append(models, "closed")
		v.closed(ph, at.in("closed"))
		if c.Trace != nil {
			v.trace(ph, c.Trace, at.in("closed").in("trace"))
		}
	}
	if ph.Open != nil {
		models = append(models, "open")
		v.open(ph.Open, at.in("open"))
		if t := ph.Open.Trace; t != nil {
			v.trace(ph, t, at.in("open").in("trace"))
		}
	}
	if ph.Stages != nil {
		models = append(models, "stages")
		v.stages(ph.Stages, at.in("stages"))
	}
	if ph.Search != nil {
		models = append(models, "search")
		v.search(ph, at.in("search"))
	}
	if w := ph.Populate; w != nil {
		models = append(models, "populate")
		v.connections(at.in("populate"), w.Sessions, w.Pipeline)
	}
	if w := ph.Clear; w != nil {
		models = append(models, "clear")
		v.connections(at.in("clear"), w.Sessions, w.Pipeline)
	}
	switch {
	case len(models) == 0:
		v.fault(at.where+": no load model", "Write closed { … }, open { … }, stages { … }, search { … }, populate {} or clear {}.",
			append([]string{at.path, at.path + ".model"}, eachIn(at.path, loadModels)...)...)
	case len(models) > 1:
		v.fault(fmt.Sprintf("%s: %d load models: %s", at.where, len(models), listed(models)), "Write one, and a phase for each other.", at.path)
	}
}

func (v *validator) connections(at part, sessions, pipeline int) {
	v.within(at, "sessions", int64(sessions), 1, maxSessions)
	v.within(at, "pipeline", int64(pipeline), 1, maxPipeline)
}

// closed checks a closed load.
func (v *validator) closed(ph *Phase, at part) {
	c := ph.Closed
	v.connections(at, c.Sessions, c.Pipeline)
	if c.Iterations != 0 { // 0 stands for none
		v.within(at, "iterations", c.Iterations, 1, maxIterations)
	}
	if c.Duration != 0 {
		v.lasts(at, "duration", c.Duration, time.Nanosecond)
	}
	v.lasts(at, "ramp", c.Ramp, 0)
	v.lasts(at, "think", c.Think, 0)
	d := v.plan.Dataset(ph.Dataset)
	switch {
	case c.Iterations > 0 && c.Duration > 0:
		v.fault(at.where+": both iterations and duration", "Write one of them.", at.path, at.path+".iterations", at.path+".duration")
	case c.Iterations != 0 || c.Duration != 0:
	case c.Trace != nil && c.Trace.Loop:
		v.fault(at.where+": a trace that begins again, and neither iterations nor duration", `Write duration = "30s", or iterations = 1000 for each session, or leave loop out.`,
			at.path+".trace.loop", at.path)
	case c.Trace == nil && d != nil && d.Keys.Pick != "sequence":
		v.fault(at.where+": neither iterations nor duration", `Write iterations = 1000, for each session, or duration = "30s".`,
			at.path, at.path+".iterations", at.path+".duration", "dataset."+d.Name+".keys.pick")
	}
	v.warmUp(at, c.WarmUp, c.Duration)
	if c.Duration > 0 && c.Ramp >= c.Duration {
		v.fault(at.where+": ramp is not shorter than duration", "Write a shorter ramp, or a longer duration.", at.path+".ramp", at.path+".duration")
	}
}

// warmUp checks the beginning of a load that figures leave out. Without a duration nobody knows what would be left.
func (v *validator) warmUp(at part, warmUp, duration time.Duration) {
	v.lasts(at, "warmup", warmUp, 0)
	switch {
	case warmUp > 0 && duration == 0:
		v.fault(at.where+": warmup without duration", `Write duration = "60s" instead of iterations: of a load that ends with its work, nobody knows how much a warm-up would leave.`,
			at.path+".warmup", at.path)
	case warmUp > 0 && warmUp > duration-leastMeasured:
		v.fault(fmt.Sprintf("%s: warmup leaves less than %v of duration", at.where, leastMeasured), "Write a shorter warmup, or a longer duration: it is a part of it.",
			at.path+".warmup", at.path+".duration")
	}
}

// leastMeasured is what a warm-up leaves of a load at least: it ends with a second of the run's clock.
const leastMeasured = 2 * time.Second

// mix checks weights: known ops of the target's driver, in verb order, each once.
func (v *validator) mix(ph *Phase, at part, name string, mix []Weight) {
	path, last := at.path+"."+name, -1
	if len(mix) == 0 {
		v.fault(fmt.Sprintf("%s: %s is empty", at.where, name), "Write an op with a weight above 0: { get = 1 }.", path, at.path)
	}
	for _, w := range mix {
		verb := verbOf(w.Op)
		switch {
		case verb < 0:
			v.fault(fmt.Sprintf("%s: unknown op %s", at.where, quote(w.Op)), instead(w.Op, verbNames(), "%s"), path)
		case verb <= last:
			v.fault(fmt.Sprintf("%s: %s out of order or twice", at.where, w.Op), "Write each op once, in the order "+listed(verbNames())+".", path)
		case !(w.Weight > 0 && w.Weight <= maxWeightOf):
			v.fault(fmt.Sprintf("%s: the weight of %s is %g", at.where, w.Op, w.Weight), "Write a weight above 0 and up to 1e9.", path)
		default:
			v.supported(ph, at, driver.Verb(verb), path)
		}
		last = verb
	}
	for model, only := range map[string]driver.Verb{"populate": driver.Put, "clear": driver.Delete} {
		is := model == "populate" && ph.Populate != nil || model == "clear" && ph.Clear != nil
		if is && name == "ops" && (len(mix) != 1 || mix[0] != Weight{only.String(), 1}) {
			v.fault(fmt.Sprintf("%s: %s with other ops than %s", at.where, model, only), "Leave ops out.", path)
		}
	}
}

// supported checks that the driver of the phase's target knows a verb.
func (v *validator) supported(ph *Phase, at part, verb driver.Verb, path string) {
	t := v.plan.Target(ph.Target)
	if t == nil {
		return
	}
	if d := driverNamed(v.drivers, t.Driver); d != nil && d.Outcomes(verb) == nil {
		var known []string
		for k := range driver.NumVerbs {
			if d.Outcomes(driver.Verb(k)) != nil {
				known = append(known, driver.Verb(k).String())
			}
		}
		v.fault(fmt.Sprintf("%s: driver %q has no %s", at.where, t.Driver, verb), "It has "+listed(known)+".", path, at.path+".target")
	}
}

// setup checks the untimed puts before a load.
func (v *validator) setup(ph *Phase, at part) {
	v.mix(ph, at.in("setup"), "ops", ph.Setup)
	path := at.path + ".setup"
	if len(ph.Setup) != 1 || ph.Setup[0].Op != driver.Put.String() {
		v.fault(at.where+": setup that does not only put", "Write setup { ops = { put = 1 } }.", path, path+".ops")
	}
	if ph.Closed == nil && ph.Schedule() == nil {
		v.fault(at.where+": setup before populate or clear", "Leave it out.", path, at.path)
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && d.Keys.Scope != "session" {
		v.fault(fmt.Sprintf("%s: setup of the shared dataset %q", at.where, d.Name),
			`Write a phase with populate {} before this one, or scope = "session" in the dataset's keys: setup is for session pools.`,
			path, "dataset."+d.Name+".keys.scope")
	}
}

// keysOf checks that a phase can take its keys from the dataset.
func (v *validator) keysOf(ph *Phase, d *Dataset, at part) {
	keys, n := "dataset."+d.Name+".keys", int64(ph.Sessions())
	session := d.Keys.Scope == "session"
	if session && n > 0 && n <= maxSessions && d.Keys.Count > maxKeys/n {
		v.fault(fmt.Sprintf("%s: %d pools of %d keys are more than %d", at.where, n, d.Keys.Count, int64(maxKeys)),
			"Write fewer sessions, or a smaller count.", at.path, keys+".count")
	}
	if ph.Populate != nil && session {
		v.fault(fmt.Sprintf("%s: populate of the session pools of dataset %q", at.where, d.Name),
			`Write setup { ops = { put = 1 } } in the phase that reads them, or scope = "shared" in the dataset's keys: populate is for shared keys.`,
			at.path+".populate", keys+".scope")
	}
	if d.Keys.Pick != "sequence" {
		return
	}
	switch c := ph.Closed; {
	case ph.Schedule() != nil:
		v.fault(fmt.Sprintf("%s: %s with the keys of dataset %q in sequence", at.where, ph.scheduled(), d.Name),
			`Write closed { … }, or a dataset with pick = "uniform": a sequence ends when its keys do, a schedule when its time does.`,
			at.path+"."+ph.scheduled(), keys+".pick")
	case c == nil || c.Trace != nil || c.Iterations < 1 || n < 1 || n > maxSessions:
	case session && c.Iterations > d.Keys.Count, !session && c.Iterations > d.Keys.Count/n:
		v.fault(fmt.Sprintf("%s: more iterations than there are keys in sequence", at.where),
			fmt.Sprintf("Write fewer iterations, or none: the load ends with the %d keys of dataset %q, each used once.", d.Keys.Count, d.Name),
			at.path+".closed.iterations", at.path+".closed.sessions", keys+".count", keys+".pick")
	}
}
