package plan

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// block reads the arguments of one block of a plan.
type block struct {
	*dialect.Block
	r *resolver
}

// block returns a reader for a block of the file.
func (r *resolver) block(b *hclsyntax.Block, path, where string) *block {
	return &block{r.Reader.Block(b, path, where), r}
}

// inner returns a reader for the first block of a type, nil if there is none.
func (b *block) inner(blockType string) *block {
	if in := b.Block.Inner(blockType); in != nil {
		return &block{in, b.r}
	}
	return nil
}

// each returns readers for all blocks of a type, numbered from 1.
func (b *block) each(blockType string) []*block {
	var all []*block
	for _, in := range b.Block.Each(blockType) {
		all = append(all, &block{in, b.r})
	}
	return all
}

// named is a reader for a named block.
type named struct {
	*block
	label string
}

// labelled returns readers for all blocks of a type that have exactly one label. Their paths are numbered from 1 or, with byName, use the labels.
func (b *block) labelled(blockType string, byName bool) []named {
	var all []named
	for _, in := range b.Block.Labelled(blockType, byName) {
		all = append(all, named{&block{in.Block, b.r}, in.Label})
	}
	return all
}
