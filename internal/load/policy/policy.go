// Package policy holds what the owner of a node lets a worker do there, whatever a coordinator or a plan asks for: which targets it may load, how
// much and how long, and which directories it may use.
//
// A policy is HCL, limited as plans are, with one argument per line:
//
//	targets          = ["10.0.0.0/8:6379", "cache.example:11211"]
//	commands         = ["GET", "SET"]
//	rate             = "200k/s"
//	sessions         = 1000
//	connections      = 4000
//	bytes_per_second = "500MB"
//	duration         = "1h"
//	memory           = "4GiB"
//	log_bytes        = "64GiB"
//	lease            = "30s"
//	files            = "/srv/loadgen/files"
//	log_root         = "/mnt/pmem/loadgen"
//
// Arguments left out set no limit, except for targets, which must be listed. Some addresses are never a target: link-local and multicast ones, and
// those where clouds keep a machine's credentials.
package policy

import (
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Policy is what a worker may do. A nil Policy limits nothing, and neither does a limit of 0.
type Policy struct {
	Targets     []Place
	Commands    []string // first words of requests in a plan's own words, in capitals; nil for all but those that a rate does not bound
	Rate        float64  // requests per second
	Sessions    int
	Connections int
	Bytes       int64 // per second, both directions together
	Duration    time.Duration
	Memory      int64 // bytes
	LogBytes    int64 // total bytes of log files at any time
	Lease       time.Duration
	Files       string // directories; "" for those of the command line
	LogRoot     string
}

// MaxSize is the longest text of a policy, in bytes.
const MaxSize = 64 << 10

var arguments = []string{"targets", "commands", "rate", "sessions", "connections", "bytes_per_second", "duration", "memory", "log_bytes", "lease", "files", "log_root"}

// Parse parses the text of a policy.
func Parse(src []byte, filename string) (*Policy, hcl.Diagnostics) {
	r := dialect.NewReader(dialect.Words{})
	body := r.Parse(src, filename)
	if body == nil {
		return nil, r.Result()
	}
	at := hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}
	b := r.Block(&hclsyntax.Block{Body: body, TypeRange: at}, "policy", "policy")
	b.Expect(arguments, nil)
	p := read(b)
	if r.Failed() {
		return nil, r.Result()
	}
	return p, nil
}

func read(b *dialect.Block) *Policy {
	p := &Policy{}
	var texts []string
	if b.Require("targets", `Write targets = ["HOST:PORT"], as many as there are; [] is for log files only.`) {
		b.Texts("targets", &texts)
	}
	for _, text := range texts {
		place, err := ParsePlace(text)
		if err != nil {
			b.Bad("targets", dialect.Quote(text)+" is not a place", "W"+strings.TrimPrefix(err.Error(), "w")+".")
			continue
		}
		p.Targets = append(p.Targets, place)
	}
	b.Texts("commands", &p.Commands)
	for i, word := range p.Commands {
		p.Commands[i] = strings.ToUpper(word)
	}
	b.Rate("rate", &p.Rate)
	dialect.Integer(b, "sessions", &p.Sessions)
	dialect.Integer(b, "connections", &p.Connections)
	dialect.Size(b, "bytes_per_second", &p.Bytes)
	b.Duration("duration", &p.Duration)
	dialect.Size(b, "memory", &p.Memory)
	dialect.Size(b, "log_bytes", &p.LogBytes)
	b.Duration("lease", &p.Lease)
	b.Text("files", &p.Files)
	b.Text("log_root", &p.LogRoot)
	for _, bound := range p.bounds() {
		if b.Has(bound.name) && bound.n <= 0 {
			b.Bad(bound.name, "it allows nothing", "Write more than 0, or leave it out where there is no bound.")
		}
	}
	for _, dir := range p.directories() {
		if b.Has(dir.name) && !filepath.IsAbs(dir.path) {
			b.Bad(dir.name, dialect.Quote(dir.path)+" is not absolute", "Write a path that begins with /.")
		}
	}
	return p
}

// bound is one of a policy's numbers.
type bound struct {
	name string
	n    float64
	text string
}

func (p *Policy) bounds() []bound {
	return []bound{
		{"rate", p.Rate, fmt.Sprintf("%q", perSecond(p.Rate))},
		{"sessions", float64(p.Sessions), fmt.Sprint(p.Sessions)},
		{"connections", float64(p.Connections), fmt.Sprint(p.Connections)},
		{"bytes_per_second", float64(p.Bytes), fmt.Sprintf("%q", dialect.SizeText(p.Bytes))},
		{"duration", p.Duration.Seconds(), fmt.Sprintf("%q", p.Duration)},
		{"memory", float64(p.Memory), fmt.Sprintf("%q", dialect.SizeText(p.Memory))},
		{"log_bytes", float64(p.LogBytes), fmt.Sprintf("%q", dialect.SizeText(p.LogBytes))},
		{"lease", p.Lease.Seconds(), fmt.Sprintf("%q", p.Lease)},
	}
}

// directory is a directory that a worker uses.
type directory struct{ name, path string }

func (p *Policy) directories() []directory {
	return []directory{{"files", p.Files}, {"log_root", p.LogRoot}}
}

func perSecond(rate float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", rate), "0"), ".") + "/s"
}

// Print writes the policy as text that Parse accepts, with unset limits as comments.
func (p *Policy) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "targets = %s\n", listed(p.Targets))
	if p.Commands == nil {
		b.WriteString("# commands: not bounded\n")
	} else {
		fmt.Fprintf(&b, "commands = %s\n", listed(p.Commands))
	}
	for _, bound := range p.bounds() {
		if bound.n > 0 {
			fmt.Fprintf(&b, "%s = %s\n", bound.name, bound.text)
		} else {
			fmt.Fprintf(&b, "# %s: not bounded\n", bound.name)
		}
	}
	for _, dir := range p.directories() {
		if dir.path != "" {
			fmt.Fprintf(&b, "%s = %q\n", dir.name, dir.path)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Admit says why a worker may not connect to an address (not a name) or to a Unix socket; nil if it may.
func (p *Policy) Admit(to netip.AddrPort, socket string) error {
	if p == nil {
		return nil
	}
	if socket == "" {
		if what := forbidden(to.Addr()); what != "" {
			return fmt.Errorf("this worker's policy: %v is %s: no load goes there", to, what)
		}
	}
	for _, a := range append(embedded(to.Addr()), to.Addr()) {
		at := netip.AddrPortFrom(a, to.Port())
		if !slices.ContainsFunc(p.Targets, func(place Place) bool { return place.Takes(at, socket) }) {
			return fmt.Errorf("this worker's policy: targets: %s is not among them", TextOf(to, socket))
		}
	}
	return nil
}

// unbounded are commands of which one may do the work of thousands, besides EVAL… and FCALL…; REQUESTS are those of a trace, which may be any.
var unbounded = []string{"REQUESTS", "FLUSHALL", "FLUSHDB", "DO", "CALL"}

// refuse says which of a phase's commands and statements the policy refuses, by their first words; nil if none.
func (p *Policy) refuse(commands []string) (refused []string) {
	for _, word := range commands {
		switch {
		case p.Commands != nil && !slices.Contains(p.Commands, word):
			refused = append(refused, fmt.Sprintf("commands: %q is not among them", word))
		case p.Commands == nil && p.Rate > 0 && (slices.Contains(unbounded, word) || strings.HasPrefix(word, "EVAL") || strings.HasPrefix(word, "FCALL")):
			refused = append(refused, fmt.Sprintf("commands: the rate does not bound what %s does: the node's owner can list it in commands", word))
		}
	}
	return refused
}

// listed writes a list of texts.
func listed[T any](texts []T) string {
	var all []string
	for _, text := range texts {
		all = append(all, strconv.Quote(fmt.Sprint(text)))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Need lists what a worker's part of a phase needs, as far as is known before it begins.
type Need struct {
	Rate        float64 // requests due per second; 0 for as fast as the target answers
	Sessions    int
	Connections int
	Duration    time.Duration // 0 if the ops decide when it ends
	LogBytes    int64
	Commands    []string // first words, in capitals, of the requests in the plan's own words
}

// Check says which of the needs the policy refuses, by the names of its arguments; nil if none.
func (p *Policy) Check(n Need) error {
	if p == nil {
		return nil
	}
	asked := (&Policy{Rate: n.Rate, Sessions: n.Sessions, Connections: n.Connections, Duration: n.Duration, LogBytes: n.LogBytes}).bounds()
	refused := p.refuse(n.Commands)
	for i, allowed := range p.bounds() {
		if allowed.n > 0 && asked[i].n > allowed.n {
			refused = append(refused, fmt.Sprintf("%s: %s is more than %s", allowed.name, strings.Trim(asked[i].text, `"`), strings.Trim(allowed.text, `"`)))
		}
	}
	if refused == nil {
		return nil
	}
	return fmt.Errorf("this worker's policy: %s", strings.Join(refused, "; "))
}

// late is how much longer than allowed a step may last, since it waits for ops that started in time.
const late = 2 * time.Second

// Watch returns an error if a step has lasted longer than the policy allows, or holds more than nine tenths of its memory. held returns how many bytes
// the process holds, garbage included only if they are at most as many as it is given.
func (p *Policy) Watch(lasts time.Duration, held func(most int64) int64) error {
	switch {
	case p == nil:
	case p.Duration > 0 && lasts > p.Duration+late:
		return fmt.Errorf("this worker's policy: duration: the load was not over after %v: it has ended", p.Duration)
	case p.Memory > 0:
		if n := held(p.Memory / 10 * 9); n > p.Memory/10*9 {
			return fmt.Errorf("this worker's policy: memory: the process holds %s, more than nine tenths of %s: the load has ended",
				quantity.Bytes(n), dialect.SizeText(p.Memory))
		}
	}
	return nil
}
