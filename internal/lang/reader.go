// Package lang is the language of plans, apart from what a plan says: HCL within bounds.
//
//	text --Guard--> tokens --HCL--> blocks --Reader--> values, each with its place
//
// [Guard] stands before HCL's parser, which bounds neither recursion nor memory. A [Reader] evaluates variables, locals and the arguments of
// blocks, weighs every value that comes of it, and collects what is wrong as diagnostics with a place and a remedy. The functions that
// expressions may call are [Functions]; quantities are text with a unit ("64MiB", "10s", "50k/s", "1%").
package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
)

// Reader reads the blocks of one text. It evaluates their arguments, keeps where each was written, and reports what is wrong.
// It is for one goroutine.
type Reader struct {
	evaluator
	Words     Words
	functions map[string]function.Function
	Places    map[string]hcl.Range // of blocks and arguments, by path
	Wrong     map[string]bool      // paths about which something is reported: nothing more is said of their values
}

// Words are what messages about blocks have to know of the text's own words.
type Words struct {
	Names    func(blockType string) []string // the names of the text's blocks of a type: what a reference may name
	Labelled map[string]string               // types of inner blocks that have a name, with how to write one
	Later    map[string]string               // words that are not supported, with what to use instead
}

// NewReader returns a reader of a text with these words. Expressions may call [Functions].
func NewReader(w Words) *Reader {
	return &Reader{Words: w, functions: Functions(), Places: map[string]hcl.Range{}, Wrong: map[string]bool{}}
}

// Attributes returns a body's attributes in the order of the text.
func Attributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	list := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
	return list
}
