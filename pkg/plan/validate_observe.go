package plan

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	maxObserves  = 100
	maxFields    = 200 // of an observation
	maxProbe     = time.Minute
	leastBetween = time.Second // of two probes
	maxSelector  = 1024        // bytes
)

// fieldPattern is what a field may be called: it stands in paths.
var fieldPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// observe checks an observation.
func (v *validator) observe(o *Observe) {
	at := part{"observe." + o.Name, "observe " + lang.Quote(o.Name)}
	v.oneOf(at, "kind", o.Kind, observeKinds...)
	inner := at.in(o.Kind)
	if o.Every != 0 && o.Every < leastBetween || o.Every > maxDuration {
		v.fault(fmt.Sprintf("%s: every = %q", at.where, o.Every), `Write "1s" or more, or "0s" for before and after each phase only.`, at.path+".every")
	}
	if o.Timeout <= 0 || o.Timeout > maxProbe {
		v.fault(fmt.Sprintf("%s: timeout = %q", at.where, o.Timeout), `Write more than 0 and at most "1m": a phase can wait so long for the probe before it.`, at.path+".timeout")
	}
	v.fields(o, inner)
	switch o.Kind {
	case ObserveServer:
		v.observedServer(o, inner)
	case ObserveProcess:
		v.observedProcess(o, inner)
	case ObserveDirectory:
		if o.Path == "" || len(o.Path) > lang.MaxString || strings.ContainsRune(o.Path, 0) || !utf8.ValidString(o.Path) {
			v.fault(inner.where+": path = "+lang.Quote(o.Path), `Write the path of a directory on the coordinator's machine.`, inner.path+".path")
		}
	case ObservePrometheus:
		v.observedURL(o, inner)
	case ObserveHook:
		if !namePattern.MatchString(o.Hook) {
			v.fault(inner.where+": a hook named "+lang.Quote(o.Hook), writeName, inner.path+".run")
		}
	}
	v.foreign(o, at)
}

// foreign finds what belongs to another kind; text cannot say such a thing.
func (v *validator) foreign(o *Observe, at part) {
	only := func(set bool, kinds ...string) bool { return !set || slices.Contains(kinds, o.Kind) }
	ok := only(o.Target != "", ObserveServer, ObserveProcess) && only(o.Combine != "", ObserveServer, ObserveProcess) &&
		only(o.Port != 0 || o.PID != 0, ObserveProcess) && only(o.Path != "", ObserveDirectory) &&
		only(o.URL != "", ObservePrometheus) && only(o.Hook != "", ObserveHook)
	if !ok {
		v.fault(at.where+": a field of another kind", "Leave it out.", at.path)
	}
}

// fields checks names and series. Those of processes and directories are fixed.
func (v *validator) fields(o *Observe, at part) {
	path := at.path + ".fields"
	if o.Kind == ObservePrometheus {
		path = at.path + ".series"
	}
	if len(o.Fields) == 0 || len(o.Fields) > maxFields {
		v.fault(fmt.Sprintf("%s: %d fields", at.where, len(o.Fields)), fmt.Sprintf("Write 1 to %d of them.", maxFields), path, at.path+".target")
		return
	}
	if fixed := FixedFields(o.Kind); fixed != nil && !slices.Equal(o.Fields, fixed) {
		v.fault(fmt.Sprintf("%s: other fields than a %s has", at.where, o.Kind), "Leave fields out.", path)
		return
	}
	seen := map[string]bool{}
	for _, f := range o.Fields {
		_, err := ParseSelector(f.Series)
		switch {
		case !fieldPattern.MatchString(f.Name):
			v.fault(fmt.Sprintf("%s: a field named %s", at.where, lang.Quote(f.Name)), "Write a letter or _, then up to 127 letters, digits and _.", path)
		case seen[f.Name]:
			v.fault(fmt.Sprintf("%s: field %s stands twice", at.where, lang.Quote(f.Name)), "Write it once.", path)
		case !slices.Contains([]string{"", "bytes", "s", "us"}, f.Unit):
			v.fault(fmt.Sprintf("%s: field %s: unit %s", at.where, lang.Quote(f.Name), lang.Quote(f.Unit)), `Write "bytes", "s", "us" or "".`, path)
		case (f.Series != "") != (o.Kind == ObservePrometheus):
			v.fault(fmt.Sprintf("%s: field %s: series %s", at.where, lang.Quote(f.Name), lang.Quote(f.Series)), `Write the name of a metric, with labels or without: "jvm_memory_bytes_used{area=\"heap\"}".`, path)
		case len(f.Series) > maxSelector:
			v.fault(fmt.Sprintf("%s: series %s: longer than %d bytes", at.where, f.Name, maxSelector), "Write fewer labels.", path)
		case f.Series != "" && err != nil:
			v.fault(fmt.Sprintf("%s: series %s: %s: %v", at.where, f.Name, lang.Quote(f.Series), err), `Write the name of a metric, with labels or without: "jvm_memory_bytes_used{area=\"heap\"}".`, path)
		}
		seen[f.Name] = true
	}
}

// observedServer checks that there are servers that tell something.
func (v *validator) observedServer(o *Observe, at part) {
	v.observedTarget(o, at)
	t := v.plan.Target(o.Target)
	if t == nil {
		return
	}
	d := driverNamed(v.drivers, t.Driver)
	if _, ok := d.(driver.Informant); !ok && d != nil {
		v.fault(fmt.Sprintf("%s: the servers of driver %q tell nothing about themselves", at.where, t.Driver),
			"Observe their processes, process { target = target."+t.Name+" }, or leave it out.", at.path+".target", "target."+t.Name+".driver")
	}
}

// observedTarget checks the reference to a target and how its endpoints become one.
func (v *validator) observedTarget(o *Observe, at part) {
	v.oneOf(at, "combine", o.Combine, "sum", "mean", "min", "max")
	if v.plan.Target(o.Target) == nil {
		v.fault(fmt.Sprintf("%s: unknown target %s", at.where, lang.Quote(o.Target)), "Write target = target.NAME.", at.path+".target")
	}
}

// observedProcess checks that one way to find the process is given.
func (v *validator) observedProcess(o *Observe, at part) {
	ways := 0
	for _, given := range []bool{o.Target != "", o.Port != 0, o.PID != 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		v.fault(fmt.Sprintf("%s: %d ways to find the process", at.where, ways),
			"Write one of target = target.NAME, port = NUMBER and pid = NUMBER: the process is looked for on the coordinator's machine.", at.path, at.path+".target", at.path+".port", at.path+".pid")
	}
	if o.Target != "" {
		v.observedTarget(o, at)
		v.observedSockets(o, at)
	}
	if o.Port != 0 {
		v.within(at, "port", int64(o.Port), 1, 65535)
	}
	if o.PID != 0 {
		v.within(at, "pid", int64(o.PID), 1, 1<<22)
	}
}

// observedSockets checks that somebody listens on the target's endpoints.
func (v *validator) observedSockets(o *Observe, at part) {
	t := v.plan.Target(o.Target)
	if t == nil {
		return
	}
	if d := driverNamed(v.drivers, t.Driver); d != nil {
		if _, wire := d.(driver.Wire); !wire {
			v.fault(fmt.Sprintf("%s: nobody listens on the endpoints of driver %q", at.where, t.Driver), "Write port = NUMBER or pid = NUMBER.",
				at.path+".target", "target."+t.Name+".driver")
		}
	}
}

// observedURL checks an endpoint for Prometheus.
func (v *validator) observedURL(o *Observe, at part) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || len(o.URL) > lang.MaxString || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.fault(at.where+": url = "+lang.Quote(o.URL), `Write "http://HOST:PORT/metrics".`, at.path+".url")
	case u.User != nil:
		v.fault(at.where+": url with a user", "Leave user and password out: they would stand in the plan and in every result.", at.path+".url")
	}
}

// Selector names series of Prometheus: those of a metric that have some labels.
type Selector struct {
	Metric string
	Labels map[string]string
}

var (
	metricPattern = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelPattern  = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\[\\n"])*)"\s*`)
	unescapeLabel = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// ParseSelector reads a metric's name, and in braces behind it labels that its series must have: rpc_total{code="5",zone="a"}.
func ParseSelector(text string) (Selector, error) {
	s := Selector{Labels: map[string]string{}}
	s.Metric = metricPattern.FindString(text)
	rest := strings.TrimSpace(text[len(s.Metric):])
	switch {
	case s.Metric == "":
		return s, fmt.Errorf("no metric's name at its beginning")
	case rest == "":
		return s, nil
	case rest[0] != '{' || rest[len(rest)-1] != '}':
		return s, fmt.Errorf("%s behind the metric's name is not {LABEL=\"VALUE\",…}", lang.Quote(rest))
	}
	for rest = rest[1 : len(rest)-1]; strings.TrimSpace(rest) != ""; {
		m := labelPattern.FindStringSubmatch(rest)
		if m == nil {
			return s, fmt.Errorf("%s is not LABEL=\"VALUE\"", lang.Quote(rest))
		}
		if _, twice := s.Labels[m[1]]; twice {
			return s, fmt.Errorf("label %s stands twice", m[1])
		}
		s.Labels[m[1]] = unescapeLabel.Replace(m[2])
		if rest = rest[len(m[0]):]; rest != "" && rest[0] != ',' {
			return s, fmt.Errorf("%s where a comma should be", lang.Quote(rest))
		}
		rest = strings.TrimPrefix(rest, ",")
	}
	return s, nil
}
