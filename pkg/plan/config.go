package plan

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"mime"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// driverBody decodes a body's attributes and blocks into the driver's struct, except those that belong to others.
func (b *block) driverBody(into any, othersAttributes, othersBlocks []string) {
	schema, _ := gohcl.ImpliedBodySchema(into)
	attrs, blocks := slices.Clone(othersAttributes), slices.Clone(othersBlocks)
	for _, a := range schema.Attributes {
		attrs = append(attrs, a.Name)
	}
	for _, bl := range schema.Blocks {
		blocks = append(blocks, bl.Type)
	}
	b.Expect(attrs, blocks)
	own := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: b.Body.SrcRange, EndRange: b.At}
	for _, a := range dialect.Attributes(b.Body) {
		if slices.Contains(attrs, a.Name) && !slices.Contains(othersAttributes, a.Name) {
			own.Attributes[a.Name] = a
		}
	}
	for _, bl := range b.Body.Blocks {
		if slices.Contains(blocks, bl.Type) && !slices.Contains(othersBlocks, bl.Type) {
			own.Blocks = append(own.Blocks, bl)
		}
	}
	reported := map[hcl.Range]bool{}
	diags := gohcl.DecodeBody(b.constants(own, reflect.TypeOf(into), reported), nil, into)
	diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Subject != nil && reported[*d.Subject] })
	b.r.Adopt(b.Where, b.At, diags)
	if diags.HasErrors() || len(reported) > 0 {
		b.r.Wrong[b.Path+".config"] = true
	}
}

// constants returns the body with every expression evaluated. It leaves out null attributes. A wrong attribute's value is unknown, and its
// place is marked in reported. into is the struct type, or a pointer to it, that the body is decoded into.
func (b *block) constants(body *hclsyntax.Body, into reflect.Type, reported map[hcl.Range]bool) *hclsyntax.Body {
	fields := fieldTypes(into)
	out := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: body.SrcRange, EndRange: body.EndRange}
	for _, a := range dialect.Attributes(body) {
		b.r.Places[b.Path+".config."+a.Name] = a.Expr.Range()
		v, ok := b.driverValue(a, fields[a.Name])
		if !ok {
			v, reported[a.Expr.Range()], reported[a.Expr.StartRange()] = cty.DynamicVal, true, true
		}
		if v.IsNull() {
			continue
		}
		c := *a
		c.Expr = &hclsyntax.LiteralValueExpr{Val: v, SrcRange: a.Expr.Range()}
		out.Attributes[a.Name] = &c
	}
	for _, bl := range body.Blocks {
		b.r.Places[b.Path+".config."+bl.Type] = bl.DefRange()
		c := *bl
		c.Body = b.constants(bl.Body, fields[bl.Type], reported)
		out.Blocks = append(out.Blocks, &c)
	}
	return out
}

// driverValue evaluates one of the driver's attributes. A secret field takes only a secret, and a duration field only text with a
// unit.
func (b *block) driverValue(a *hclsyntax.Attribute, field reflect.Type) (cty.Value, bool) {
	s := b.Scope()
	s.Functions = dialect.DriverFunctions()
	reported := len(b.r.Kept)
	v, ok := b.r.Eval(a.Expr, s)
	if field == reflect.TypeFor[driver.Secret]() {
		for _, d := range b.r.Kept[reported:] {
			d.Extra = dialect.Concealed{}
		}
	}
	if !ok || v.IsNull() {
		return v, ok
	}
	switch field {
	case reflect.TypeFor[driver.Secret]():
		if want := cty.Object(map[string]cty.Type{"secret": cty.String}); !v.Type().Equals(want) {
			at := a.Expr.Range()
			b.r.Keep(&hcl.Diagnostic{
				Severity: hcl.DiagError, Subject: &at, Extra: dialect.Concealed{},
				Summary: fmt.Sprintf("%s: %s: a plan does not contain secrets", b.Where, a.Name),
				Detail:  strings.Replace(dialect.WriteSecret, "password", a.Name, 1),
			})
			return cty.NilVal, false
		}
	case reflect.TypeFor[driver.Size]():
		if v.Type() != cty.String {
			return v, true // a number of bytes
		}
		n, err := dialect.ParseSize(v.AsString())
		if err != nil {
			b.Mistaken("config."+a.Name, err)
			return cty.NilVal, false
		}
		return cty.NumberIntVal(n), true
	case reflect.TypeFor[form.JSON]():
		if v.Type() == cty.String {
			b.r.Fault(a.Expr.Range(), fmt.Sprintf("%s: json: %s", b.Where, dialect.Describe(v)), "Write json = { … }, or a list; text goes into body.")
			return cty.NilVal, false
		}
		text, err := ctyjson.SimpleJSONValue{Value: v}.MarshalJSON()
		if err != nil {
			b.Bad("config."+a.Name, err.Error(), "Write other values.")
			return cty.NilVal, false
		}
		return cty.StringVal(string(text)), true
	case reflect.TypeFor[form.File]():
		return b.content(a.Name, v)
	case reflect.TypeFor[time.Duration]():
		if v.Type() != cty.String {
			b.r.Fault(a.Expr.Range(), fmt.Sprintf("%s: %s: %s", b.Where, a.Name, dialect.Describe(v)), dialect.WriteDuration)
			return cty.NilVal, false
		}
		d, err := dialect.ParseDuration(v.AsString())
		if err != nil {
			b.Mistaken("config."+a.Name, err)
			return cty.NilVal, false
		}
		return cty.NumberIntVal(int64(d)), true
	}
	return v, true
}

// content reads a file for an attribute of the driver's.
func (b *block) content(name string, v cty.Value) (cty.Value, bool) {
	if v.Type() != cty.String {
		b.Bad("config."+name, dialect.Describe(v), `Write the path of a file: file = "photo.png".`)
		return cty.NilVal, false
	}
	var data []byte
	if b.r.content != nil {
		var err error
		if data, err = b.r.content(v.AsString()); err != nil {
			b.Bad("config."+name, err.Error(), "")
			return cty.NilVal, false
		}
	}
	kind := cmp.Or(mime.TypeByExtension(filepath.Ext(v.AsString())), "application/octet-stream")
	return cty.ObjectVal(map[string]cty.Value{
		"path": v, "type": cty.StringVal(kind), "data": cty.StringVal(base64.StdEncoding.EncodeToString(data)),
	}), true
}

// fieldTypes returns a struct's field types by HCL name, with pointers and slices stripped.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	t = element(t)
	if t == nil || t.Kind() != reflect.Struct {
		return types
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("hcl"), ","); name != "" {
			types[name] = element(t.Field(i).Type)
		}
	}
	return types
}

func element(t reflect.Type) reflect.Type {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

// config checks the driver's own attributes: their type, the driver's own validation, and the names of secrets.
func (v *validator) config(t *Target, d driver.Driver, at part) {
	if reflect.TypeOf(t.Config) != reflect.TypeOf(d.NewConfig()) {
		v.fault(fmt.Sprintf("%s: the config is not one of driver %q", at.where, t.Driver), "Write the driver's own attributes.", at.path)
		return
	}
	if c, ok := t.Config.(interface{ Validate() error }); ok {
		for _, err := range split(c.Validate()) {
			attribute, _, _ := strings.Cut(err.Error(), " ")
			v.fault(at.where+": "+err.Error(), "", at.path+".config."+attribute)
		}
	}
	if !secretsNamed(reflect.ValueOf(t.Config)) {
		v.fault(at.where+": a secret without a proper name", dialect.WriteSecret, at.path+".config")
	}
}

// split undoes errors.Join.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// secretsNamed reports whether every secret in a config has a valid name or none.
func secretsNamed(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || secretsNamed(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !secretsNamed(v.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		if s, ok := reflect.TypeAssert[driver.Secret](v); ok {
			return s.Name == "" || dialect.SecretNames.MatchString(s.Name)
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !secretsNamed(v.Field(i)) {
				return false
			}
		}
	}
	return true
}
