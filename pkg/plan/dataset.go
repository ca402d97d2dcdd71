package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Dataset is a key space and the values stored under its keys.
type Dataset struct {
	Name   string `json:"name"`
	Keys   Keys   `json:"keys"`
	Values Values `json:"values"`
	Rows   *Rows  `json:"rows,omitempty"` // nil if scenarios take none
}

// Keys is a key space and how keys are picked from it.
type Keys struct {
	Pick    string  `json:"pick"`               // "uniform", "zipf", "hotspot", "latest" or "sequence"
	Skew    float64 `json:"skew"`               // s of zipf(s) and latest(s), > 0
	Form    string  `json:"form,omitempty"`     // of zipf: "" for the exact distribution, "ycsb" for YCSB's
	HotOps  float64 `json:"hot_ops,omitempty"`  // of hotspot: share of ops on the hot keys, 0 to 1
	HotKeys float64 `json:"hot_keys,omitempty"` // of hotspot: share of keys that are hot
	Count   int64   `json:"count"`              // keys in the space, or in each session's pool
	Scope   string  `json:"scope"`              // sharedKeys or ownKeys
	Writers string  `json:"writers,omitempty"`  // oneWriter, or "" if any session may put any key of the space
	Format  string  `json:"format"`             // with one integer verb, e.g. key:%012d; unused with File

	File *EntryFile `json:"file,omitempty"` // nil if Format makes the keys
}

// The scopes of keys.
const (
	sharedKeys = "shared"  // all sessions share one space
	ownKeys    = "session" // each session has its own pool
)

// PerSession reports whether each session has its own pool of keys.
func (k *Keys) PerSession() bool { return k.Scope == ownKeys }

// dataset reads a dataset block.
func (r *resolver) dataset(body *hclsyntax.Block) *Dataset {
	d := &Dataset{Name: body.Labels[0], Keys: Keys{Pick: uniformPick, Scope: sharedKeys, Format: "key:%012d"}, Values: Values{Fill: "text"}}
	b := r.block(body, "dataset."+d.Name, "dataset "+dialect.Quote(d.Name))
	b.Expect(nil, []string{"keys", "values", "rows"})
	if rows := b.inner("rows"); rows != nil {
		d.Rows, d.Keys.Count, d.Values.Size = rows.rows(), 1, 16 // unless the plan has keys and values besides
	}
	if keys := b.inner("keys"); keys != nil {
		keys.Expect([]string{"pick", "count", "scope", "writers", "format", "file", "form", "field"}, nil)
		keys.Text("scope", &d.Keys.Scope)
		keys.Text("writers", &d.Keys.Writers)
		if keys.Has("file") {
			keys.keyFile(&d.Keys)
		} else {
			keys.Require("count", `Write count = 1000, or how many keys there are, or file = "keys.txt".`)
			dialect.Integer(keys.Block, "count", &d.Keys.Count)
			keys.Text("format", &d.Keys.Format)
			keys.withoutFile("keys", "form", "field")
		}
		keys.pick(&d.Keys)
	} else if d.Rows == nil {
		b.missing("keys", "keys { count = 1000 }")
	}
	if values := b.inner("values"); values != nil {
		values.values(&d.Values)
	} else if d.Rows == nil {
		b.missing("values", `values { size = "200B" }`)
	}
	return d
}

// dataset checks a key space and its values.
func (v *validator) dataset(d *Dataset) {
	at := part{"dataset." + d.Name, "dataset " + dialect.Quote(d.Name)}
	keys, values := at.in("keys"), at.in("values")
	v.pick(keys, &d.Keys)
	v.keyFile(keys, &d.Keys)
	v.within(keys, "count", d.Keys.Count, 1, maxKeys)
	v.oneOf(keys, "scope", d.Keys.Scope, sharedKeys, ownKeys)
	v.writers(keys, &d.Keys)
	if err := checkKeyFormat(d.Keys.Format); err != nil {
		v.fault(fmt.Sprintf("%s: format = %s: %v", keys.where, dialect.Quote(d.Keys.Format), err), `Write text around one number, such as "key:%012d".`, keys.path+".format")
	}
	v.values(values, &d.Values)
	if d.Rows != nil {
		v.rows(at.in("rows"), d.Rows)
	}
}

// maxTTL is the longest TTL that all protocols accept: memcached takes a larger number for a date.
const maxTTL = 30 * 24 * time.Hour

// ttl checks that the target's driver supports TTLs if the phase puts values that have one.
func (v *validator) ttl(ph *Phase, d *Dataset, t *Target) {
	if d.Values.TTL < time.Millisecond || weightOf(ph.Ops, driver.Put)+weightOf(ph.Setup, driver.Put) == 0 {
		return
	}
	where, path := "dataset "+dialect.Quote(d.Name)+", values", "dataset."+d.Name+".values.ttl"
	switch kind := driverNamed(v.drivers, t.Driver).(type) {
	case nil:
	case driver.Expirer:
		if err := kind.CheckTTL(d.Values.TTL); err != nil {
			v.fault(fmt.Sprintf("%s: ttl = %q for phase %s: %v", where, d.Values.TTL.String(), dialect.Quote(ph.Name), err), "", path)
		}
	default:
		v.fault(fmt.Sprintf("%s: ttl, but phase %s puts them by driver %q, which keeps what it is given", where, dialect.Quote(ph.Name), t.Driver),
			"Leave ttl out, or use another driver.", path)
	}
}

// maxKeyLength is the longest key that all protocols accept: memcached's limit.
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
				return fmt.Errorf("only %%d, %%0Nd, %%x, %%0Nx and %%%% may be in it, N from 1 to 64")
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

// keyWidth reads the digits between a percent sign and its verb.
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
