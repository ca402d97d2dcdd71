package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// namePattern matches valid names of plans, targets, datasets, phases and variables, which appear in paths, metrics and file names.
var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

const (
	writeName = "Write a letter, then up to 63 letters, digits, _ and -."

	maxAssertName = 200 // bytes; free text
)

// File is a plan's text, parsed: its blocks are known and named, their arguments not yet evaluated.
type File struct {
	name       string
	src        []byte
	drivers    []driver.Driver
	broken     bool // Parse reported errors
	draft      *Plan
	plan       *hclsyntax.Block
	locals     []*hclsyntax.Block
	experiment *hclsyntax.Block
	blocks     map[string][]*hclsyntax.Block // variable, target, dataset, observe, phase, assert, table and chart by type, in the order of the text
}

// Parse reads the text of a plan. It reads nothing from disk: filename only appears in diagnostics. The drivers are those that a
// target may name.
//
// If the text is not HCL, or breaks a bound of the guard, the File is nil. If only its blocks are wrong, there is a File, so that
// Resolve can report further errors, but Resolve then returns no Plan.
func Parse(src []byte, filename string, drivers []driver.Driver) (*File, hcl.Diagnostics) {
	var r dialect.Reporter
	body := r.Parse(src, filename)
	at := hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}
	if body == nil {
		if other := otherFileOf(src); other != nil {
			r = dialect.Reporter{}
			r.Fault(at, "this looks like "+other.is+", not like a plan", other.write)
		}
		return nil, r.Result()
	}
	f := &File{name: filename, src: src, drivers: drivers, blocks: map[string][]*hclsyntax.Block{}}
	f.sort(&r, body)
	if f.plan == nil {
		r.Fault(at, "the plan has no plan block", `Write plan "NAME" { description = "what it is for" } at the top.`)
	}
	f.broken = r.Failed()
	return f, r.Result()
}

// blockTypes are the blocks of a plan.
var blockTypes = []string{"plan", "variable", "locals", "target", "dataset", "observe", "phase", "assert", "experiment", "table", "chart"}

// sort files the blocks by type and reports misplaced ones.
func (f *File) sort(r *dialect.Reporter, body *hclsyntax.Body) {
	for _, a := range dialect.Attributes(body) {
		r.Fault(a.NameRange, fmt.Sprintf("attribute %s outside a block", dialect.Quote(a.Name)),
			cmp.Or(Meant(topLevel, a.Name), "Write it in a block: a plan consists of "+dialect.Listed(blockTypes)+" blocks."))
	}
	seen := map[[2]string]hcl.Range{}
	for _, b := range body.Blocks {
		switch {
		case !slices.Contains(blockTypes, b.Type):
			r.Fault(b.TypeRange, "unknown block "+dialect.Quote(b.Type), cmp.Or(Meant(topLevel, b.Type), dialect.Instead(b.Type, blockTypes, "%s")))
		case b.Type == "locals":
			if len(b.Labels) > 0 {
				r.Fault(b.LabelRanges[0], "locals have no name", "Write locals { … }.")
			}
			f.locals = append(f.locals, b)
		case b.Type == "experiment":
			f.setExperiment(r, b)
		case len(b.Labels) != 1:
			r.Fault(b.DefRange(), fmt.Sprintf("%s has %d names", b.Type, len(b.Labels)), fmt.Sprintf("Write %s \"NAME\" { … }.", b.Type))
		default:
			f.file(r, b, seen)
		}
	}
}

// file files a named block for Resolve.
func (f *File) file(r *dialect.Reporter, b *hclsyntax.Block, seen map[[2]string]hcl.Range) {
	name, at := b.Labels[0], b.LabelRanges[0]
	switch {
	case b.Type == "assert":
		if name == "" || len(name) > maxAssertName || dialect.Printable(name) != name {
			r.Fault(at, "assert with an unprintable, empty or long name", fmt.Sprintf("Write 1 to %d bytes of plain text.", maxAssertName))
			return
		}
	case !namePattern.MatchString(name):
		r.Fault(at, fmt.Sprintf("%s named %s", b.Type, dialect.Quote(name)), writeName)
		return
	}
	if first, twice := seen[[2]string{b.Type, name}]; twice {
		r.Fault(at, fmt.Sprintf("a second %s named %s", b.Type, dialect.Quote(name)),
			fmt.Sprintf("Give it another name: the first is at %s:%d.", first.Filename, first.Start.Line))
		return
	}
	seen[[2]string{b.Type, name}] = at
	if b.Type != "plan" {
		f.blocks[b.Type] = append(f.blocks[b.Type], b)
		return
	}
	if f.plan != nil {
		r.Fault(b.DefRange(), "a second plan block", fmt.Sprintf("Leave it out: the first is at %s:%d.", f.name, f.plan.DefRange().Start.Line))
		return
	}
	f.plan = b
}

// setExperiment files the experiment block.
func (f *File) setExperiment(r *dialect.Reporter, b *hclsyntax.Block) {
	switch {
	case len(b.Labels) > 0:
		r.Fault(b.LabelRanges[0], "an experiment has no name", "Write experiment { … }.")
	case f.experiment != nil:
		r.Fault(b.DefRange(), "a second experiment block", fmt.Sprintf("Leave it out: the first is at %s:%d.", f.name, f.experiment.DefRange().Start.Line))
	default:
		f.experiment = b
	}
}

// names returns the names of the blocks of a type.
func (f *File) names(blockType string) []string {
	return namesOf(f.blocks[blockType], func(b *hclsyntax.Block) string { return b.Labels[0] })
}

// labelledBlocks are the inner blocks that have a name, each with how to write it.
var labelledBlocks = map[string]string{
	"scenario": `Write scenario "NAME" { … }.`,
	"event":    "Write event \"NAME\" { … }, with at = \"5s\" and do = \"flush\" in it.",
	"op":       `Write op "NAME" { request { … } }.`,
	"step":     `Write the op after the word: step "get" {}.`,
}
