package engine

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Allow checks whether a secret may be sent over a connection to an address or to the path of a Unix socket. If nil, all secrets may go anywhere.
type Allow func(secret string, to netip.AddrPort, socket string) error

// allowance returns a function that checks a target's connection before anything is sent on it; nil if there is nothing to check.
func (e *Engine) allowance(t *plan.Target) func(to netip.AddrPort, socket string) error {
	var names []string
	if e.cfg.Allow != nil {
		names = secretsOf(reflect.ValueOf(t))
	}
	if e.cfg.Policy == nil && len(names) == 0 {
		return nil
	}
	return func(to netip.AddrPort, socket string) error {
		if err := e.cfg.Policy.Admit(to, socket); err != nil {
			return err
		}
		for _, name := range names {
			if err := e.cfg.Allow(name, to, socket); err != nil {
				return fmt.Errorf("secret %q: %w", name, err)
			}
		}
		return nil
	}
}

// Secrets lists the secrets that a plan's targets name, each once.
func Secrets(p *plan.Plan) []string {
	var names []string
	for _, t := range p.Targets {
		names = append(names, secretsOf(reflect.ValueOf(t))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// secretsOf lists the secrets that a target names: in its config, and where its ops word requests that hold some.
func secretsOf(v reflect.Value) (names []string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return secretsOf(v.Elem())
		}
	case reflect.String:
		return driver.SecretsIn(v.String())
	case reflect.Map:
		for _, key := range v.MapKeys() {
			names = append(names, secretsOf(v.MapIndex(key))...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			names = append(names, secretsOf(v.Index(i))...)
		}
	case reflect.Struct:
		if s, ok := reflect.TypeAssert[driver.Secret](v); ok {
			return []string{s.Name}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				names = append(names, secretsOf(v.Field(i))...)
			}
		}
	}
	return names
}
