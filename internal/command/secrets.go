package command

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/pkg/plan"
)

// bindings say where each secret may be sent: the values of --secret.
type bindings struct {
	texts []string
	of    map[string][]policy.Place
}

var secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

const writeBinding = "write NAME=HOST:PORT, such as CACHE=10.0.0.0/8:6379, CACHE=cache.example:6379 or CACHE=unix:///run/redis.sock"

// Set parses one value of the flag.
func (b *bindings) Set(text string) error {
	name, places, ok := strings.Cut(text, "=")
	if !ok || !secretName.MatchString(name) {
		return errors.New(writeBinding)
	}
	for place := range strings.SplitSeq(places, ",") {
		parsed, err := policy.ParsePlace(place)
		if err != nil {
			return errors.New(writeBinding)
		}
		if b.of == nil {
			b.of = map[string][]policy.Place{}
		}
		b.of[name] = append(b.of[name], parsed)
	}
	b.texts = append(b.texts, text)
	return nil
}

func (b *bindings) String() string { return strings.Join(b.texts, " ") }

// Type names the flag's value in help.
func (b *bindings) Type() string { return "binding" }

// allow returns a function that checks where a secret may be sent. If the plans are the user's own, a secret without a binding may go wherever the plan
// sends it. If they come from elsewhere, it may go nowhere.
func (b *bindings) allow(foreign bool) engine.Allow {
	return func(name string, to netip.AddrPort, socket string) error {
		bound := b.of[name]
		if !foreign && len(bound) == 0 {
			return nil
		}
		if slices.ContainsFunc(bound, func(p policy.Place) bool { return p.Takes(to, socket) }) {
			return nil
		}
		place := policy.TextOf(to, socket)
		return fmt.Errorf("it is not to go to %s: to let it, start the worker with --secret %s=%s", place, name, place)
	}
}

// exposed warns of what looks like a secret in a plan.
func exposed(p *plan.Plan) string {
	var b strings.Builder
	for _, t := range p.Targets {
		for _, o := range t.Ops {
			if f, ok := o.Form.(interface{ Exposed() []string }); ok && len(f.Exposed()) > 0 {
				fmt.Fprintf(&b, "\nWarning: target %q: op %q: %s: if that is a secret, write {secret.NAME} in a header: plans are kept.\n", t.Name, o.Name, strings.Join(f.Exposed(), ", "))
			}
		}
	}
	return b.String()
}

// environmentSecrets looks up secrets in this process's environment.
func environmentSecrets(name string) (string, error) {
	key := "LOADGEN_SECRET_" + name
	value, ok := os.LookupEnv(key)
	if !ok {
		return "", fmt.Errorf("secret %q: the environment variable %s is not set", name, key)
	}
	return value, nil
}
