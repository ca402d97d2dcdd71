// Package dialect is the language of plans, without their meaning: HCL within bounds.
//
//	text --Guard--> tokens --HCL--> blocks --Reader--> values, each with its place
//
// [Guard] protects HCL's parser, which bounds neither recursion nor memory. A [Reader] evaluates variables, locals and the arguments of
// blocks, weighs every resulting value, and collects errors as diagnostics with a place and a remedy. Expressions may call
// [Functions]. Quantities are text with a unit ("64MiB", "10s", "50k/s", "1%").
package dialect

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
)

// Reader reads the blocks of one text. It evaluates their arguments, records where each was written, and reports errors.
// Only one goroutine may use it.
type Reader struct {
	evaluator
	Words     Words
	functions map[string]function.Function
	Places    map[string]hcl.Range // places of blocks and arguments, by path
	Wrong     map[string]bool      // paths with a reported error: their values get no further reports
}

// Words is the vocabulary of a text that messages about its blocks need.
type Words struct {
	Names    func(blockType string) []string // names of the text's blocks of a type, which references may use
	Labelled map[string]string               // types of inner blocks that have a name, each with how to write one
	Meant    func(in, word string) string    // what to write instead of a word in a type of block, for words that other types have; nil if there are none
}

// NewReader returns a reader of a text with these words, whose expressions may call [Functions].
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
