package dialect

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Block reads the arguments of one block. Each of its methods leaves its destination unchanged if the argument is missing or null,
// so set defaults beforehand. It also does so if the argument is wrong, and reports that.
type Block struct {
	r     *Reader
	Path  string // "phase.put.closed"; the key under which places of arguments are kept
	Where string // begins messages: `phase "put", closed`
	Body  *hclsyntax.Body
	At    hcl.Range
	kind  string // the block's type
}

// Block returns a reader for a block of the text. Its arguments are kept under path; where begins messages.
func (r *Reader) Block(b *hclsyntax.Block, path, where string) *Block {
	r.Places[path] = b.DefRange()
	return &Block{r: r, Path: path, Where: where, Body: b.Body, At: b.DefRange(), kind: b.Type}
}

// Expect reports unknown attributes and blocks. Blocks in many may occur several times.
func (b *Block) Expect(attrs, blocks []string, many ...string) {
	blocks = slices.Concat(blocks, many)
	all := slices.Concat(attrs, blocks)
	for _, a := range Attributes(b.Body) {
		if slices.Contains(attrs, a.Name) {
			continue
		}
		what, write := fmt.Sprintf("%s: unknown attribute %s", b.Where, Quote(a.Name)), Instead(a.Name, all, "%s = …")
		if slices.Contains(blocks, a.Name) {
			what, write = fmt.Sprintf("%s: %s is a block", b.Where, a.Name), fmt.Sprintf("Write %s { … }, without an equals sign.", a.Name)
		}
		b.unknown(a.Name, a.NameRange, what, write)
	}
	seen := map[string]hcl.Range{}
	for _, inner := range b.Body.Blocks {
		first, twice := seen[inner.Type]
		switch {
		case slices.Contains(attrs, inner.Type):
			b.r.Fault(inner.TypeRange, fmt.Sprintf("%s: %s is an attribute", b.Where, inner.Type), fmt.Sprintf("Write %s = …", inner.Type))
		case !slices.Contains(blocks, inner.Type):
			b.unknown(inner.Type, inner.TypeRange, fmt.Sprintf("%s: unknown block %s", b.Where, Quote(inner.Type)),
				Instead(inner.Type, all, "%s"))
			b.r.Wrong[b.Path+"."+DidYouMean(inner.Type, blocks)] = true // misspelled, not missing
		case b.r.Words.Labelled[inner.Type] != "":
			if len(inner.Labels) != 1 {
				b.r.Fault(inner.DefRange(), fmt.Sprintf("%s: %s has %d names", b.Where, inner.Type, len(inner.Labels)), b.r.Words.Labelled[inner.Type])
			}
		case len(inner.Labels) > 0:
			b.r.Fault(inner.LabelRanges[0], fmt.Sprintf("%s: %s has no name", b.Where, inner.Type), fmt.Sprintf("Write %s { … }.", inner.Type))
		case twice && !slices.Contains(many, inner.Type):
			b.r.Fault(inner.TypeRange, fmt.Sprintf("%s: a second %s", b.Where, inner.Type),
				fmt.Sprintf("Leave it out: the first is at %s:%d.", first.Filename, first.Start.Line))
		default:
			seen[inner.Type] = inner.TypeRange
		}
	}
}

// unknown reports a word that does not belong in the block. If others have it, or another block, it says what to write instead.
func (b *Block) unknown(word string, at hcl.Range, what, write string) {
	b.r.Wrong[b.Path+"."+word] = true
	if b.r.Words.Meant != nil {
		if meant := b.r.Words.Meant(b.kind, word); meant != "" {
			b.r.Wrong[b.Path+".model"] = true // the block may have been meant as the load model
			write = meant
		}
	}
	b.r.Fault(at, what, write)
}

// Inner returns a reader for the first block of a type, nil if there is none.
func (b *Block) Inner(blockType string) *Block {
	for _, in := range b.Body.Blocks {
		if in.Type == blockType {
			return b.r.Block(in, b.Path+"."+blockType, b.Where+", "+blockType)
		}
	}
	return nil
}

// Each returns readers for all blocks of a type, numbered from 1.
func (b *Block) Each(blockType string) []*Block {
	var all []*Block
	for _, in := range b.Body.Blocks {
		if in.Type == blockType {
			n := len(all) + 1
			all = append(all, b.r.Block(in, fmt.Sprintf("%s.%s.%d", b.Path, blockType, n), fmt.Sprintf("%s, %s %d", b.Where, blockType, n)))
		}
	}
	return all
}

// labelled is a reader for a block that has a name.
type labelled struct {
	*Block
	Label string
}

// Labelled returns readers for all blocks of a type that have exactly one label. Their paths are numbered from 1 or, with byName, use the labels.
func (b *Block) Labelled(blockType string, byName bool) []labelled {
	var all []labelled
	for _, in := range b.Body.Blocks {
		if in.Type != blockType || len(in.Labels) != 1 {
			continue
		}
		id, what := strconv.Itoa(len(all)+1), strconv.Itoa(len(all)+1)
		if byName {
			id, what = in.Labels[0], Quote(in.Labels[0])
		}
		all = append(all, labelled{b.r.Block(in, b.Path+"."+blockType+"."+id, b.Where+", "+blockType+" "+what), in.Labels[0]})
	}
	return all
}

// Value evaluates an attribute. It returns false if the attribute is missing, null or wrong.
func (b *Block) Value(name string) (cty.Value, bool) {
	a := b.Body.Attributes[name]
	if a == nil {
		return cty.NilVal, false
	}
	path := b.Path + "." + name
	b.r.Places[path] = a.Expr.Range()
	v, ok := b.r.Eval(a.Expr, b.Scope())
	if !ok {
		b.r.Wrong[path] = true
	}
	return v, ok && !v.IsNull()
}

// Scope returns what the arguments of the block may use.
func (b *Block) Scope() Scope { return Scope{Where: b.Where, Functions: b.r.functions} }

// Has reports whether an attribute is present.
func (b *Block) Has(name string) bool { return b.Body.Attributes[name] != nil }

// Require reports an attribute that is missing.
func (b *Block) Require(name, write string) bool {
	if b.Has(name) {
		return true
	}
	b.r.Wrong[b.Path+"."+name] = true
	b.r.Fault(b.At, fmt.Sprintf("%s: %s is missing", b.Where, name), write)
	return false
}

// Bad reports an attribute's value.
func (b *Block) Bad(name, what, write string) {
	path := b.Path + "." + name
	b.r.Wrong[path] = true
	b.r.Fault(b.r.Places[path], fmt.Sprintf("%s: %s: %s", b.Where, strings.TrimPrefix(name, "config."), what), write)
}

// Mistaken reports an attribute's value with an error from one of the quantity parsers.
func (b *Block) Mistaken(name string, err error) {
	if m, ok := errors.AsType[*Mistake](err); ok {
		b.Bad(name, m.What, m.Write)
		return
	}
	b.Bad(name, err.Error(), "Write another value.")
}

// As evaluates an attribute and converts it.
func (b *Block) As(name string, t cty.Type, write string) (cty.Value, bool) {
	v, ok := b.Value(name)
	if !ok {
		return v, false
	}
	c, err := convert.Convert(v, t)
	if err != nil {
		b.Bad(name, Describe(v), write)
		return cty.NilVal, false
	}
	return c, !c.IsNull()
}

// Text reads a string.
func (b *Block) Text(name string, to *string) {
	if v, ok := b.As(name, cty.String, `Write text in quotes.`); ok {
		*to = v.AsString()
	}
}

// Flag reads a bool.
func (b *Block) Flag(name string, to *bool) {
	if v, ok := b.As(name, cty.Bool, "Write true or false."); ok {
		*to = v.True()
	}
}

// Texts reads a list of strings.
func (b *Block) Texts(name string, to *[]string) {
	v, ok := b.Value(name)
	if !ok {
		return
	}
	words, err := Texts(v)
	if err != nil {
		b.Bad(name, err.Error(), `Write a list of strings: ["a", "b"].`)
		return
	}
	*to = words
}

// Integer reads a whole number, or text such as "10k".
func Integer[T int | int64](b *Block, name string, to *T) {
	const write = "Write a whole number."
	v, ok := b.Value(name)
	if !ok {
		return
	}
	v, err := asNumber(v)
	if err != nil {
		b.Mistaken(name, err)
		return
	}
	n, accuracy := v.AsBigFloat().Int64()
	switch {
	case !v.AsBigFloat().IsInt():
		b.Bad(name, number(v)+" is not a whole number", write)
	case accuracy != big.Exact || int64(T(n)) != n:
		b.Bad(name, number(v)+" is too large", "Write a smaller number.")
	default:
		*to = T(n)
	}
}

// asNumber returns a number, which may be in text, as a count such as "10k", too.
func asNumber(v cty.Value) (cty.Value, error) {
	n, err := convert.Convert(v, cty.Number)
	if err == nil {
		return n, nil
	}
	if v.Type() != cty.String {
		return v, &Mistake{Describe(v), writeCount}
	}
	count, err := ParseCount(v.AsString())
	return cty.NumberIntVal(count), err
}

// Unsigned reads a whole number from 0 to 2⁶⁴ − 1.
func (b *Block) Unsigned(name string, to *uint64) {
	const write = "Write a whole number from 0 to 18446744073709551615."
	v, ok := b.As(name, cty.Number, write)
	if !ok {
		return
	}
	n, accuracy := v.AsBigFloat().Uint64()
	if accuracy != big.Exact {
		b.Bad(name, number(v)+" is not a whole number from 0 to 2^64 - 1", write)
		return
	}
	*to = n
}

// number formats a number for a message.
func number(v cty.Value) string { return v.AsBigFloat().Text('g', 10) }

// measured reads a number in base units, or text with a unit.
func measured[T any](b *Block, name, write string, parse func(string) (T, error), from func(float64) (T, error)) (got T, ok bool) {
	v, ok := b.Value(name)
	if !ok {
		return got, false
	}
	var err error
	switch v.Type() {
	case cty.String:
		got, err = parse(v.AsString())
	case cty.Number:
		f, _ := v.AsBigFloat().Float64()
		if f < 0 {
			b.Bad(name, number(v)+" is negative", write)
			return got, false
		}
		got, err = from(f)
	default:
		err = &Mistake{Describe(v), write}
	}
	if err != nil {
		b.Mistaken(name, err)
		return got, false
	}
	return got, true
}

// Duration reads text such as "10s", or a number of seconds.
func (b *Block) Duration(name string, to *time.Duration) {
	if d, ok := measured(b, name, WriteDuration, ParseDuration, secondsToDuration); ok {
		*to = d
	}
}

// Size reads text such as "64MiB", or a number of bytes.
func Size[T int | int64](b *Block, name string, to *T) {
	whole := func(f float64) (int64, error) {
		if f != math.Trunc(f) || f > 1<<53 {
			return 0, &Mistake{fmt.Sprintf("%g is not a whole number of bytes below 8 PiB", f), writeSize}
		}
		return int64(f), nil
	}
	if n, ok := measured(b, name, writeSize, ParseSize, whole); ok {
		*to = T(n)
	}
}

// Rate reads text such as "50k/s", or a number per second.
func (b *Block) Rate(name string, to *float64) {
	same := func(f float64) (float64, error) { return f, nil }
	if f, ok := measured(b, name, writeRate, ParseRate, same); ok {
		*to = f
	}
}

// Share reads text such as "1%", or a number such as 0.01.
func (b *Block) Share(name string, to *float64) bool {
	same := func(f float64) (float64, error) { return f, nil }
	f, ok := measured(b, name, writeShare, ParseShare, same)
	if ok {
		*to = f
	}
	return ok
}

// Named reads a reference such as target.space and returns the name after the dot.
func (b *Block) Named(kind string) string {
	if !b.Require(kind, fmt.Sprintf("Write %s = %s.NAME.", kind, kind)) {
		return ""
	}
	return b.Reference(kind, kind)
}

// Reference is Named for an attribute with any name, which must be present.
func (b *Block) Reference(attribute, kind string) string {
	path, known := b.Path+"."+attribute, b.r.Words.Names(kind)
	expr := b.Body.Attributes[attribute].Expr
	b.r.Places[path] = expr.Range()
	name, ok := b.referred(expr, path, kind)
	switch {
	case ok && slices.Contains(known, name):
		return name
	case ok:
		b.Bad(attribute, fmt.Sprintf("unknown %s %s", kind, Quote(name)), Instead(name, known, kind+".%s"))
	case !b.r.Wrong[path]:
		b.Bad(attribute, "not a reference to a "+kind, fmt.Sprintf("Write %s.NAME. %s", kind, ThereIs(known)))
	}
	return ""
}

// referred reads kind.NAME, or kind[…] with an expression for the name. It reports an expression that cannot be evaluated.
func (b *Block) referred(expr hclsyntax.Expression, path, kind string) (name string, ok bool) {
	if x, indexed := expr.(*hclsyntax.IndexExpr); indexed && hcl.ExprAsKeyword(x.Collection) == kind {
		v, ok := b.r.Eval(x.Key, b.Scope())
		if !ok {
			b.r.Wrong[path] = true
		}
		return nameOf(v, ok)
	}
	steps, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() || len(steps) != 2 || steps.RootName() != kind {
		return "", false
	}
	switch step := steps[1].(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		return nameOf(step.Key, true)
	}
	return "", false
}

// nameOf returns a value as a name, if it is one.
func nameOf(v cty.Value, ok bool) (string, bool) {
	if !ok || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}
