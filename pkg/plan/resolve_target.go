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
	b := r.block(body, "target."+t.Name, "target "+quote(t.Name))
	if b.require("driver", "Write driver = \"NAME\". "+thereIs(driverNames(r.file.drivers))) {
		b.text("driver", &t.Driver)
	}
	b.texts("endpoints", &t.Endpoints)
	b.duration("timeout", &t.Timeout)
	b.text("executor", &t.Executor)
	b.text("placement", &t.Placement)
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
		if b.has("driver") && !r.isWrong(b.path+".driver") {
			b.bad("driver", "unknown driver "+quote(t.Driver), instead(t.Driver, driverNames(r.file.drivers), "driver = %q"))
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
	b.expect([]string{"nodes", "memory", "delay"}, nil)
	integer(b.Block, "nodes", &n.Nodes)
	size(b.Block, "memory", &n.Memory)
	b.duration("delay", &n.Delay)
	return n
}

// tls reads how connections are encrypted.
func (b *block) tls() *TLS {
	s := new(TLS)
	b.expect([]string{"ca", "cert", "key", "server_name"}, nil)
	b.text("ca", &s.CA)
	b.text("cert", &s.Cert)
	b.text("key", &s.Key)
	b.text("server_name", &s.ServerName)
	return s
}

// replication reads how a key is replicated. Unless it says otherwise, an op has time for a request that is
// never answered and for another in its place.
func (b *block) replication(timeout time.Duration) *Replication {
	p := &Replication{Coordinate: "client", Timeout: 2 * timeout, ReadFanout: "n", ReadFrom: "first"}
	b.expect([]string{"coordinate", "n", "w", "r", "timeout", "read_fanout", "read_from"}, nil)
	b.text("coordinate", &p.Coordinate)
	for i, to := range []*int{&p.N, &p.W, &p.R} {
		name := []string{"n", "w", "r"}[i]
		if b.require(name, fmt.Sprintf("Write %s = NUMBER; n, w and r have no defaults.", name)) {
			integer(b.Block, name, to)
		}
	}
	b.duration("timeout", &p.Timeout)
	b.text("read_fanout", &p.ReadFanout)
	b.text("read_from", &p.ReadFrom)
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
	b.expect(attrs, blocks)
	own := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: b.body.SrcRange, EndRange: b.at}
	for _, a := range attributes(b.body) {
		if slices.Contains(attrs, a.Name) && !slices.Contains(targetAttributes, a.Name) {
			own.Attributes[a.Name] = a
		}
	}
	for _, bl := range b.body.Blocks {
		if slices.Contains(blocks, bl.Type) && !slices.Contains(targetBlocks, bl.Type) {
			own.Blocks = append(own.Blocks, bl)
		}
	}
	reported := map[hcl.Range]bool{}
	diags := gohcl.DecodeBody(b.constants(own, reflect.TypeOf(t.Config), reported), nil, t.Config)
	diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Subject != nil && reported[*d.Subject] })
	b.r.adopt(b.where, b.at, diags)
	if diags.HasErrors() || len(reported) > 0 {
		b.r.wrong[b.path+".config"] = true
	}
}

// constants returns the body with every expression evaluated. A null attribute is left out; of one that is wrong the place is noted
// as reported, and its value is unknown. The type is the struct, or pointer to one, that the body is decoded into.
func (b *block) constants(body *hclsyntax.Body, into reflect.Type, reported map[hcl.Range]bool) *hclsyntax.Body {
	fields := fieldTypes(into)
	out := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: body.SrcRange, EndRange: body.EndRange}
	for _, a := range attributes(body) {
		b.r.places[b.path+".config."+a.Name] = a.Expr.Range()
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
	s := b.scope()
	s.functions = driverFunctions()
	reported := len(b.r.kept)
	v, ok := b.r.eval(a.Expr, s)
	if field == reflect.TypeFor[driver.Secret]() {
		for _, d := range b.r.kept[reported:] {
			d.Extra = concealed{}
		}
	}
	if !ok || v.IsNull() {
		return v, ok
	}
	switch field {
	case reflect.TypeFor[driver.Secret]():
		if want := cty.Object(map[string]cty.Type{"secret": cty.String}); !v.Type().Equals(want) {
			at := a.Expr.Range()
			b.r.keep(&hcl.Diagnostic{
				Severity: hcl.DiagError, Subject: &at, Extra: concealed{},
				Summary: fmt.Sprintf("%s: %s: a secret does not stand in a plan", b.where, a.Name),
				Detail:  strings.Replace(writeSecret, "password", a.Name, 1),
			})
			return cty.NilVal, false
		}
	case reflect.TypeFor[driver.Size]():
		if v.Type() != cty.String {
			return v, true // a number of bytes
		}
		n, err := parseSize(v.AsString())
		if err != nil {
			b.mistaken("config."+a.Name, err)
			return cty.NilVal, false
		}
		return cty.NumberIntVal(n), true
	case reflect.TypeFor[time.Duration]():
		if v.Type() != cty.String {
			b.r.fault(a.Expr.Range(), fmt.Sprintf("%s: %s: %s", b.where, a.Name, describe(v)), writeDuration)
			return cty.NilVal, false
		}
		d, err := parseDuration(v.AsString())
		if err != nil {
			b.mistaken("config."+a.Name, err)
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
