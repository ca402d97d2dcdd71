package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

const (
	// maxCanonical bounds a plan's canonical form in bytes.
	maxCanonical = 4 << 20
	// maxElements bounds its commas, opening brackets and braces, and so what decoding allocates: an empty object of two bytes becomes a
	// struct of hundreds. A plan of 1,000 phases has about 40,000.
	maxElements = 100_000
)

// Canonical returns the plan's canonical form: JSON with sorted keys and no white space, not even at the end. Equal plans have equal
// bytes, and [Decode] accepts no other form.
func (p *Plan) Canonical() ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode plan %q: %w", p.Name, err)
	}
	// Structs encode in field order, so decode into maps, which encode sorted. Numbers keep their text.
	var tree any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("encode plan %q: %w", p.Name, err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(withLists(tree, reflect.TypeFor[Plan]())); err != nil {
		return nil, fmt.Errorf("encode plan %q: %w", p.Name, err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// withLists replaces each null of a tree that stands for a list by an empty list, which then has a single form. of is the type that the tree is of.
func withLists(tree any, of reflect.Type) any {
	fields, _ := tree.(map[string]any)
	switch list, _ := tree.([]any); {
	case of.Kind() == reflect.Pointer:
		return withLists(tree, of.Elem())
	case of.Kind() == reflect.Slice && tree == nil:
		return []any{}
	case of.Kind() == reflect.Slice:
		for i := range list {
			list[i] = withLists(list[i], of.Elem())
		}
	case of.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if v, has := fields[name]; has {
				fields[name] = withLists(v, f.Type)
			}
		}
	}
	return tree
}

// Digest returns the SHA-256 of a plan's canonical form, in lower-case hex: the plan's identity in results.
func Digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// Decode reads a plan from its canonical form and checks it as [File.Resolve] does. It refuses unknown, missing and repeated fields,
// trailing data, and any form but the canonical one. It decodes each driver's own attributes into that driver's config type, so drivers
// must include all that the plan names.
func Decode(b []byte, drivers []driver.Driver) (*Plan, error) {
	if len(b) > maxCanonical || bytes.Count(b, []byte{','})+bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) > maxElements {
		return nil, fmt.Errorf("decode plan: %d bytes with more elements than a plan has", len(b))
	}
	var p Plan
	if err := strict(b, &p); err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	if err := p.whole(); err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	for _, t := range p.Targets {
		if err := decodeConfig(t, drivers); err != nil {
			return nil, fmt.Errorf("decode plan: target %s: %w", dialect.Quote(t.Name), err)
		}
	}
	var errs []error
	for _, problem := range p.validate(drivers) {
		errs = append(errs, &dialect.Mistake{What: problem.what, Write: problem.write})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	same, err := p.Canonical()
	if err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	if !bytes.Equal(b, same) {
		return nil, errors.New("decode plan: the form is not canonical: a field is missing, repeated, or out of order")
	}
	return &p, nil
}

// whole checks that no list holds a null.
func (p *Plan) whole() error {
	switch {
	case slices.Contains(p.Targets, nil):
		return errors.New("a target is null")
	case slices.ContainsFunc(p.Targets, func(t *Target) bool { return slices.Contains(t.Ops, nil) }):
		return errors.New("an op of a target is null")
	case slices.Contains(p.Datasets, nil):
		return errors.New("a dataset is null")
	case slices.Contains(p.Observes, nil):
		return errors.New("an observation is null")
	case slices.Contains(p.Phases, nil):
		return errors.New("a phase is null")
	case slices.Contains(p.Asserts, nil):
		return errors.New("an assert is null")
	}
	return nil
}

// decodeConfig converts a generically decoded config, and the forms of ops, to the driver's own types.
func decodeConfig(t *Target, drivers []driver.Driver) error {
	d := driverNamed(drivers, t.Driver)
	if d == nil {
		return fmt.Errorf("unknown driver %s: this program has %s.%s", dialect.Quote(t.Driver), strings.Join(driverNames(drivers), ", "), otherDrivers)
	}
	b, err := json.Marshal(t.Config)
	if err != nil {
		return err
	}
	config := d.NewConfig()
	if err := strict(b, config); err != nil {
		return fmt.Errorf("config of driver %q: %w", t.Driver, err)
	}
	t.Config = config
	for _, o := range t.Ops {
		if err := o.decode(d); err != nil {
			return fmt.Errorf("op %s of driver %q: %w", dialect.Quote(o.Name), t.Driver, err)
		}
	}
	return nil
}

// decode converts a generically decoded form to the driver's own type. If the driver has no forms, validation reports it.
func (o *Op) decode(d driver.Driver) error {
	former, ok := d.(form.Former)
	if !ok {
		return nil
	}
	b, err := json.Marshal(o.Form)
	if err != nil {
		return err
	}
	form := former.NewForm()
	if err := strict(b, form); err != nil {
		return err
	}
	o.Form = form
	return nil
}

// strict decodes exactly one JSON value without unknown fields. Numbers decoded into an any keep their text.
func strict(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("data after the plan")
	}
	return nil
}
