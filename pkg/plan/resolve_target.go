package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/zclconf/go-cty/cty"
)

var (
	targetAttributes = []string{"driver", "endpoints", "timeout", "executor", "placement"}
	targetBlocks     = []string{"builtin", "tls", "replication"}
)

// target reads a target block.
func (r *resolver) target(body *hclsyntax.Block) *Target {
	t := &Target{Name: body.Labels[0], Endpoints: []string{}, Timeout: time.Second, Placement: Ketama}
	b := r.block(body, "target."+t.Name, "target "+lang.Quote(t.Name))
	if b.Require("driver", "Write driver = \"NAME\". "+lang.ThereIs(driverNames(r.file.drivers))) {
		b.Text("driver", &t.Driver)
	}
	b.Texts("endpoints", &t.Endpoints)
	b.Duration("timeout", &t.Timeout)
	b.Text("executor", &t.Executor)
	b.Text("placement", &t.Placement)
	if inner := b.inner("builtin"); inner != nil {
		t.Builtin = inner.builtin()
	}
	if inner := b.inner("tls"); inner != nil {
		t.TLS = inner.tls()
	}
	if inner := b.inner("replication"); inner != nil {
		t.Replication = inner.replication(t.Timeout)
	}
	d := driverNamed(r.file.drivers, t.Driver)
	if d == nil {
		if b.Has("driver") && !r.isWrong(b.Path+".driver") {
			b.Bad("driver", "unknown driver "+lang.Quote(t.Driver), lang.Instead(t.Driver, driverNames(r.file.drivers), "driver = %q"))
		}
		return t // which attributes there are depends on the driver
	}
	t.Config = d.NewConfig()
	b.driverConfig(t)
	return t
}

// builtin reads the block that asks for built-in nodes.
func (b *block) builtin() *Builtin {
	n := &Builtin{Nodes: 1, Memory: 64 << 20}
	b.Expect([]string{"nodes", "memory", "delay"}, nil)
	lang.Integer(b.Block, "nodes", &n.Nodes)
	lang.Size(b.Block, "memory", &n.Memory)
	b.Duration("delay", &n.Delay)
	return n
}

// tls reads how connections are encrypted.
func (b *block) tls() *TLS {
	s := new(TLS)
	b.Expect([]string{"ca", "cert", "key", "server_name"}, nil)
	b.Text("ca", &s.CA)
	b.Text("cert", &s.Cert)
	b.Text("key", &s.Key)
	b.Text("server_name", &s.ServerName)
	return s
}

// replication reads how a key is replicated. Unless it says otherwise, an op has time for a request that is
// never answered and for another in its place.
func (b *block) replication(timeout time.Duration) *Replication {
	p := &Replication{Coordinate: "client", Timeout: 2 * timeout, ReadFanout: "n", ReadFrom: "first"}
	b.Expect([]string{"coordinate", "n", "w", "r", "timeout", "read_fanout", "read_from"}, nil)
	b.Text("coordinate", &p.Coordinate)
	for i, to := range []*int{&p.N, &p.W, &p.R} {
		name := []string{"n", "w", "r"}[i]
		if b.Require(name, fmt.Sprintf("Write %s = NUMBER; n, w and r have no defaults.", name)) {
			lang.Integer(b.Block, name, to)
		}
	}
	b.Duration("timeout", &p.Timeout)
	b.Text("read_fanout", &p.ReadFanout)
	b.Text("read_from", &p.ReadFrom)
	return p
}

// driverConfig decodes the attributes and blocks that belong to the driver into the target's Config.
func (b *block) driverConfig(t *Target) {
	schema, _ := gohcl.ImpliedBodySchema(t.Config)
	attrs, blocks := slices.Clone(targetAttributes), slices.Clone(targetBlocks)
	for _, a := range schema.Attributes {
		attrs = append(attrs, a.Name)
	}
	for _, bl := range schema.Blocks {
		blocks = append(blocks, bl.Type)
	}
	b.Expect(attrs, blocks)
	own := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: b.Body.SrcRange, EndRange: b.At}
	for _, a := range lang.Attributes(b.Body) {
		if slices.Contains(attrs, a.Name) && !slices.Contains(targetAttributes, a.Name) {
			own.Attributes[a.Name] = a
		}
	}
	for _, bl := range b.Body.Blocks {
		if slices.Contains(blocks, bl.Type) && !slices.Contains(targetBlocks, bl.Type) {
			own.Blocks = append(own.Blocks, bl)
		}
	}
	reported := map[hcl.Range]bool{}
	diags := gohcl.DecodeBody(b.constants(own, reflect.TypeOf(t.Config), reported), nil, t.Config)
	diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Subject != nil && reported[*d.Subject] })
	b.r.Adopt(b.Where, b.At, diags)
	if diags.HasErrors() || len(reported) > 0 {
		b.r.Wrong[b.Path+".config"] = true
	}
}

// constants returns the body with every expression evaluated. A null attribute is left out; of one that is wrong the place is noted
// as reported, and its value is unknown. The type is the struct, or pointer to one, that the body is decoded into.
func (b *block) constants(body *hclsyntax.Body, into reflect.Type, reported map[hcl.Range]bool) *hclsyntax.Body {
	fields := fieldTypes(into)
	out := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: body.SrcRange, EndRange: body.EndRange}
	for _, a := range lang.Attributes(body) {
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
		c := *bl
		c.Body = b.constants(bl.Body, fields[bl.Type], reported)
		out.Blocks = append(out.Blocks, &c)
	}
	return out
}

// driverValue evaluates one of the driver's attributes. Where the driver wants a secret only a secret may stand, and where it wants
// a duration text with a unit.
func (b *block) driverValue(a *hclsyntax.Attribute, field reflect.Type) (cty.Value, bool) {
	s := b.Scope()
	s.Functions = lang.DriverFunctions()
	reported := len(b.r.Kept)
	v, ok := b.r.Eval(a.Expr, s)
	if field == reflect.TypeFor[driver.Secret]() {
		for _, d := range b.r.Kept[reported:] {
			d.Extra = lang.Concealed{}
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
				Severity: hcl.DiagError, Subject: &at, Extra: lang.Concealed{},
				Summary: fmt.Sprintf("%s: %s: a secret does not stand in a plan", b.Where, a.Name),
				Detail:  strings.Replace(lang.WriteSecret, "password", a.Name, 1),
			})
			return cty.NilVal, false
		}
	case reflect.TypeFor[driver.Size]():
		if v.Type() != cty.String {
			return v, true // a number of bytes
		}
		n, err := lang.ParseSize(v.AsString())
		if err != nil {
			b.Mistaken("config."+a.Name, err)
			return cty.NilVal, false
		}
		return cty.NumberIntVal(n), true
	case reflect.TypeFor[time.Duration]():
		if v.Type() != cty.String {
			b.r.Fault(a.Expr.Range(), fmt.Sprintf("%s: %s: %s", b.Where, a.Name, lang.Describe(v)), lang.WriteDuration)
			return cty.NilVal, false
		}
		d, err := lang.ParseDuration(v.AsString())
		if err != nil {
			b.Mistaken("config."+a.Name, err)
			return cty.NilVal, false
		}
		return cty.NumberIntVal(int64(d)), true
	}
	return v, true
}

// fieldTypes returns the types of a struct's fields, pointers and slices taken off, by their names in HCL.
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
