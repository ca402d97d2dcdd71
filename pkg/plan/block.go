package plan

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

// Block reads the arguments of one block. Each of its readers leaves what it writes to as it is when the argument is missing or
// null, so that defaults are set before; and when the argument is wrong, which it then reports.
type Block struct {
	r     *Reader
	path  string // "phase.put.closed"; places of arguments are kept by path
	where string // begins messages: `phase "put", closed`
	body  *hclsyntax.Body
	at    hcl.Range
}

// Block returns a reader for a block of the text. Path is where its arguments are kept under, where begins messages.
func (r *Reader) Block(b *hclsyntax.Block, path, where string) *Block {
	r.places[path] = b.DefRange()
	return &Block{r: r, path: path, where: where, body: b.Body, at: b.DefRange()}
}

// expect reports the attributes and blocks that the block does not know. Of the blocks in many it may have several.
func (b *Block) expect(attrs, blocks []string, many ...string) {
	blocks = slices.Concat(blocks, many)
	all := slices.Concat(attrs, blocks)
	for _, a := range attributes(b.body) {
		if slices.Contains(attrs, a.Name) {
			continue
		}
		what, write := fmt.Sprintf("%s: unknown attribute %s", b.where, quote(a.Name)), instead(a.Name, all, "%s = …")
		if slices.Contains(blocks, a.Name) {
			what, write = fmt.Sprintf("%s: %s is a block", b.where, a.Name), fmt.Sprintf("Write %s { … }, without an equals sign.", a.Name)
		}
		b.unknown(a.Name, a.NameRange, what, write)
	}
	seen := map[string]hcl.Range{}
	for _, inner := range b.body.Blocks {
		first, twice := seen[inner.Type]
		switch {
		case slices.Contains(attrs, inner.Type):
			b.r.fault(inner.TypeRange, fmt.Sprintf("%s: %s is an attribute", b.where, inner.Type), fmt.Sprintf("Write %s = …", inner.Type))
		case !slices.Contains(blocks, inner.Type):
			b.unknown(inner.Type, inner.TypeRange, fmt.Sprintf("%s: unknown block %s", b.where, quote(inner.Type)),
				instead(inner.Type, all, "%s"))
			b.r.wrong[b.path+"."+DidYouMean(inner.Type, blocks)] = true // that one is not missing, it is written wrong
		case b.r.Words.Labelled[inner.Type] != "":
			b.hasName(inner)
		case len(inner.Labels) > 0:
			b.r.fault(inner.LabelRanges[0], fmt.Sprintf("%s: %s has no name", b.where, inner.Type), fmt.Sprintf("Write %s { … }.", inner.Type))
		case twice && !slices.Contains(many, inner.Type):
			b.r.fault(inner.TypeRange, fmt.Sprintf("%s: a second %s", b.where, inner.Type),
				fmt.Sprintf("Leave it out: the first is at %s:%d.", first.Filename, first.Start.Line))
		default:
			seen[inner.Type] = inner.TypeRange
		}
	}
}

// hasName reports an inner block that does not have one name, as those that labelled returns do.
func (b *Block) hasName(inner *hclsyntax.Block) {
	if len(inner.Labels) != 1 {
		b.r.fault(inner.DefRange(), fmt.Sprintf("%s: %s has %d names", b.where, inner.Type, len(inner.Labels)),
			b.r.Words.Labelled[inner.Type])
	}
}

// unknown reports a word that has no place in the block; one that a later version will know with what to use until then.
func (b *Block) unknown(word string, at hcl.Range, what, write string) {
	b.r.wrong[b.path+"."+word] = true
	if use := b.r.Words.Later[word]; use != "" {
		b.r.wrong[b.path+".model"] = true // what it stands for may have been meant as the load model
		what, write = fmt.Sprintf("%s: %s is not supported by this version", b.where, word), "Use "+use+"."
	}
	b.r.fault(at, what, write)
}

// inner returns a reader for the first block of a type, nil if there is none.
func (b *Block) inner(blockType string) *Block {
	for _, in := range b.body.Blocks {
		if in.Type == blockType {
			return b.r.Block(in, b.path+"."+blockType, b.where+", "+blockType)
		}
	}
	return nil
}

// each returns readers for all blocks of a type, numbered from 1.
func (b *Block) each(blockType string) []*Block {
	var all []*Block
	for _, in := range b.body.Blocks {
		if in.Type == blockType {
			n := len(all) + 1
			all = append(all, b.r.Block(in, fmt.Sprintf("%s.%s.%d", b.path, blockType, n), fmt.Sprintf("%s, %s %d", b.where, blockType, n)))
		}
	}
	return all
}

// labelled is a reader for a block that has a name.
type labelled struct {
	*Block
	label string
}

// labelled returns readers for all blocks of a type that have one name, numbered from 1; with byName, by their names.
func (b *Block) labelled(blockType string, byName bool) []labelled {
	var all []labelled
	for _, in := range b.body.Blocks {
		if in.Type != blockType || len(in.Labels) != 1 {
			continue
		}
		id, what := strconv.Itoa(len(all)+1), strconv.Itoa(len(all)+1)
		if byName {
			id, what = in.Labels[0], quote(in.Labels[0])
		}
		all = append(all, labelled{b.r.Block(in, b.path+"."+blockType+"."+id, b.where+", "+blockType+" "+what), in.Labels[0]})
	}
	return all
}

// value evaluates an attribute. It returns false when there is none, it is null, or wrong.
func (b *Block) value(name string) (cty.Value, bool) {
	a := b.body.Attributes[name]
	if a == nil {
		return cty.NilVal, false
	}
	path := b.path + "." + name
	b.r.places[path] = a.Expr.Range()
	v, ok := b.r.eval(a.Expr, b.scope())
	if !ok {
		b.r.wrong[path] = true
	}
	return v, ok && !v.IsNull()
}

func (b *Block) scope() scope { return scope{where: b.where, functions: b.r.functions} }

// has says whether an attribute is written.
func (b *Block) has(name string) bool { return b.body.Attributes[name] != nil }

// require reports an attribute that is missing.
func (b *Block) require(name, write string) bool {
	if b.has(name) {
		return true
	}
	b.r.wrong[b.path+"."+name] = true
	b.r.fault(b.at, fmt.Sprintf("%s: %s is missing", b.where, name), write)
	return false
}

// bad reports an attribute's value.
func (b *Block) bad(name, what, write string) {
	path := b.path + "." + name
	b.r.wrong[path] = true
	b.r.fault(b.r.places[path], fmt.Sprintf("%s: %s: %s", b.where, strings.TrimPrefix(name, "config."), what), write)
}

// mistaken reports an attribute's value by the error of one of the units' parsers.
func (b *Block) mistaken(name string, err error) {
	var m *mistake
	if errors.As(err, &m) {
		b.bad(name, m.what, m.write)
		return
	}
	b.bad(name, err.Error(), "Write another value.")
}

// as evaluates an attribute and converts it.
func (b *Block) as(name string, t cty.Type, write string) (cty.Value, bool) {
	v, ok := b.value(name)
	if !ok {
		return v, false
	}
	c, err := convert.Convert(v, t)
	if err != nil {
		b.bad(name, describe(v), write)
		return cty.NilVal, false
	}
	return c, !c.IsNull()
}

// text reads a string.
func (b *Block) text(name string, to *string) {
	if v, ok := b.as(name, cty.String, `Write text in quotes.`); ok {
		*to = v.AsString()
	}
}

// flag reads a bool.
func (b *Block) flag(name string, to *bool) {
	if v, ok := b.as(name, cty.Bool, "Write true or false."); ok {
		*to = v.True()
	}
}

// texts reads a list of strings.
func (b *Block) texts(name string, to *[]string) {
	v, ok := b.value(name)
	if !ok {
		return
	}
	words, err := texts(v)
	if err != nil {
		b.bad(name, err.Error(), `Write a list of strings: ["a", "b"].`)
		return
	}
	*to = words
}

// integer reads a whole number.
func integer[T int | int64](b *Block, name string, to *T) {
	const write = "Write a whole number."
	v, ok := b.as(name, cty.Number, write)
	if !ok {
		return
	}
	n, accuracy := v.AsBigFloat().Int64()
	switch {
	case !v.AsBigFloat().IsInt():
		b.bad(name, number(v)+" is not a whole number", write)
	case accuracy != big.Exact || int64(T(n)) != n:
		b.bad(name, number(v)+" is too large", "Write a smaller number.")
	default:
		*to = T(n)
	}
}

// unsigned reads a whole number from 0 to 2⁶⁴ − 1.
func (b *Block) unsigned(name string, to *uint64) {
	const write = "Write a whole number from 0 to 18446744073709551615."
	v, ok := b.as(name, cty.Number, write)
	if !ok {
		return
	}
	n, accuracy := v.AsBigFloat().Uint64()
	if accuracy != big.Exact {
		b.bad(name, number(v)+" is not a whole number from 0 to 2^64 - 1", write)
		return
	}
	*to = n
}

// number is a number's text for a message.
func number(v cty.Value) string { return v.AsBigFloat().Text('g', 10) }

// measured reads a number in base units, or text with a unit.
func measured[T any](b *Block, name, write string, parse func(string) (T, error), from func(float64) (T, error)) (got T, ok bool) {
	v, ok := b.value(name)
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
			b.bad(name, number(v)+" is negative", write)
			return got, false
		}
		got, err = from(f)
	default:
		err = &mistake{describe(v), write}
	}
	if err != nil {
		b.mistaken(name, err)
		return got, false
	}
	return got, true
}

// duration reads text such as "10s", or a number of seconds.
func (b *Block) duration(name string, to *time.Duration) {
	if d, ok := measured(b, name, writeDuration, parseDuration, secondsToDuration); ok {
		*to = d
	}
}

// size reads text such as "64MiB", or a number of bytes.
func size[T int | int64](b *Block, name string, to *T) {
	whole := func(f float64) (int64, error) {
		if f != math.Trunc(f) || f > 1<<53 {
			return 0, &mistake{fmt.Sprintf("%g is not a whole number of bytes below 8 PiB", f), writeSize}
		}
		return int64(f), nil
	}
	if n, ok := measured(b, name, writeSize, parseSize, whole); ok {
		*to = T(n)
	}
}

// rate reads text such as "50k/s", or a number per second.
func (b *Block) rate(name string, to *float64) {
	same := func(f float64) (float64, error) { return f, nil }
	if f, ok := measured(b, name, writeRate, parseRate, same); ok {
		*to = f
	}
}

// share reads text such as "1%", or a number such as 0.01.
func (b *Block) share(name string, to *float64) bool {
	same := func(f float64) (float64, error) { return f, nil }
	f, ok := measured(b, name, writeShare, parseShare, same)
	if ok {
		*to = f
	}
	return ok
}

// named reads a reference such as target.space and returns the name behind the dot.
func (b *Block) named(kind string) string {
	if !b.require(kind, fmt.Sprintf("Write %s = %s.NAME.", kind, kind)) {
		return ""
	}
	return b.reference(kind, kind)
}

// reference is named for an attribute of any name, which is there.
func (b *Block) reference(attribute, kind string) string {
	expr := b.body.Attributes[attribute].Expr
	b.r.places[b.path+"."+attribute] = expr.Range()
	known := b.r.Words.Names(kind)
	steps, diags := hcl.AbsTraversalForExpr(expr)
	if !diags.HasErrors() && len(steps) == 2 && steps.RootName() == kind {
		if step, ok := steps[1].(hcl.TraverseAttr); ok {
			if !slices.Contains(known, step.Name) {
				b.bad(attribute, fmt.Sprintf("unknown %s %s", kind, quote(step.Name)), instead(step.Name, known, kind+".%s"))
				return ""
			}
			return step.Name
		}
	}
	b.bad(attribute, "not a reference to a "+kind, fmt.Sprintf("Write %s.NAME. %s", kind, thereIs(known)))
	return ""
}
