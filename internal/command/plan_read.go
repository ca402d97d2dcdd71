package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// planFlags are the flags of every command that reads a plan.
type planFlags struct {
	vars     []string
	varFiles []string
	variant  string
	worse    string // limit of a gate, as a percentage; "" for the plan's own
	known    *drivers.Set
	files    string // directory of the files that the plan names; "" for the plan's own
}

// addFiles adds the flag for a command that reads a plan but has no worker.
func (p *planFlags) addFiles(f *pflag.FlagSet) {
	f.StringVar(&p.files, "files", "", "read the plan's traces, key files and value files below `DIR` (default: the plan's directory)")
}

func (p *planFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&p.vars, "var", nil, "set a variable of the plan: `NAME=VALUE`; repeatable")
	f.StringArrayVar(&p.varFiles, "var-file", nil, "set variables by the NAME = VALUE lines of `FILE`; repeatable: the last file with a name wins")
	f.StringVar(&p.variant, "variant", "", "set variables as in variant `NAME` of the plan's experiment")
}

// planText is a plan's source, with the values for its variables.
type planText struct {
	path    string
	text    []byte
	named   namedFiles
	file    *plan.File // nil if it is not valid HCL
	diags   hcl.Diagnostics
	vars    plan.Vars
	worse   string
	sources map[string][]byte
}

// readText reads the text of a plan from a file, or from standard input for -. The name is what messages call it.
func readText(path string) (name string, text []byte, err error) {
	if path != standard {
		text, err = safefile.Read(path, dialect.MaxSource)
		return path, text, err
	}
	text, err = io.ReadAll(io.LimitReader(os.Stdin, dialect.MaxSource+1))
	switch {
	case err != nil:
		return "", nil, failed("read standard input: %w", err)
	case len(text) > dialect.MaxSource:
		return "", nil, fmt.Errorf("standard input has more than %d bytes, the most that are read", dialect.MaxSource)
	}
	return stdin, text, nil
}

// open reads a plan file, or a plan from standard input.
func (p *planFlags) open(path string) (*planText, error) {
	dir := cmp.Or(p.files, filepath.Dir(path))
	path, src, err := readText(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", err, otherPlan(path))
	}
	if err != nil {
		return nil, err
	}
	t := &planText{
		path: path, text: src, named: newNamedFiles(dir), sources: map[string][]byte{path: src},
		worse: p.worse, vars: plan.Vars{Variant: p.variant, Flags: p.vars, Environ: os.Environ()},
	}
	for _, name := range p.varFiles {
		text, err := safefile.Read(name, dialect.MaxSource)
		if err != nil {
			return nil, err
		}
		t.vars.Files, t.sources[name] = append(t.vars.Files, dialect.VarFile{Name: name, Text: text}), text
	}
	t.file, t.diags = plan.Parse(src, path, p.known.All)
	return t, nil
}

// otherPlan suggests another plan file, or another command, if the given file does not exist.
func otherPlan(path string) string {
	if isAddress(path) {
		return "this looks like a server's address: loadgen capacity or bench takes it, and plan init --endpoint HOST:PORT writes a plan for it"
	}
	var there []string
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.hcl")) // an invalid pattern finds nothing
	for _, file := range found {
		there = append(there, filepath.Base(file))
	}
	if near := dialect.DidYouMean(filepath.Base(path), there); near != "" {
		return "did you mean " + filepath.Join(filepath.Dir(path), near) + "?"
	}
	return "loadgen plan init writes a starter plan"
}

// isAddress says whether a word looks like a server's address.
func isAddress(word string) bool {
	_, port, err := net.SplitHostPort(word)
	return err == nil && port != "" || strings.Contains(word, "://")
}

// load reads a plan file and resolves it, asserts included. It writes errors in the plan to w with their positions; its own error then has no text.
func (p *planFlags) load(path string, w io.Writer) (*plan.Plan, error) {
	t, err := p.open(path)
	if err != nil {
		return nil, err
	}
	return t.plan(w)
}

// plan resolves the plan with its variables' own values, or those of the requested variant.
func (t *planText) plan(w io.Writer) (*plan.Plan, error) {
	if t.file == nil {
		return nil, t.report(w, t.diags)
	}
	resolved, diags := t.resolve(t.vars)
	if t.vars.Variant == "" {
		e, more := t.file.Experiment()
		if draft := t.file.Draft(); e != nil && draft != nil {
			more = expr.CheckCompared(draft, e)
		}
		_, tables := t.file.Tables()
		_, charts := t.file.Charts()
		diags = slices.Concat(diags, more, tables, charts)
	}
	return resolved, t.report(w, append(t.diags, diags...))
}

// trial resolves every variant of the plan's experiment; nil if it has none.
func (t *planText) trial(w io.Writer) (*runner.Trial, error) {
	if t.file == nil {
		return nil, t.report(w, t.diags)
	}
	e, diags := t.file.Experiment()
	if e == nil && len(diags) == 0 {
		_, diags = t.file.Tables() // tables need an experiment, as charts do
		_, more := t.file.Charts()
		return nil, t.report(w, append(diags, more...))
	}
	tables, more := t.file.Tables()
	charts, others := t.file.Charts()
	diags = slices.Concat(diags, more, others)
	all := &runner.Trial{Experiment: e, Wanted: expr.Wanted{Tables: tables, Charts: charts}}
	if e != nil {
		diags = append(diags, t.variants(all)...)
	}
	if err := t.report(w, append(t.diags, diags...)); err != nil {
		return all, err
	}
	return all, t.gate(all)
}

// gate puts the flag's gate before the experiment, and checks the one that it has.
func (t *planText) gate(all *runner.Trial) error {
	if t.worse != "" {
		worse, err := shareOf("--worse", t.worse)
		if err != nil {
			return err
		}
		all.Guard(worse)
	}
	if all.Gate == nil {
		return nil
	}
	if _, err := experiment.NewGate(all.Experiment, all.Baseline()); err != nil {
		return fmt.Errorf("%s: gate: %w", t.path, err)
	}
	return nil
}

// shareOf reads a flag's share, of more than nothing and less than all.
func shareOf(flag, text string) (float64, error) {
	share, err := dialect.ParseShare(text)
	if err != nil || share <= 0 || share >= 1 {
		return 0, fmt.Errorf("%s %q: write a percentage above 0 and below 100, such as 3%%", flag, text)
	}
	return share, nil
}

// variants resolves each variant. It reports an error that all of them have once, and any other with the names of the variants that have it.
func (t *planText) variants(all *runner.Trial) hcl.Diagnostics {
	var found hcl.Diagnostics
	in := map[string][]string{} // variants, by error
	key := func(d *hcl.Diagnostic) string { return fmt.Sprint(d.Subject, d.Summary, d.Detail) }
	for _, v := range all.Variants {
		vars := t.vars
		vars.Variant = v.Name
		p, diags := t.resolve(vars)
		all.Plans = append(all.Plans, p)
		if draft := t.file.Draft(); draft != nil {
			diags = append(diags, t.inFile(expr.CheckTables(draft, plan.Shown(all.Tables, v.Name), all.Variants))...)
			diags = append(diags, t.inFile(expr.CheckCharts(draft, all.Charts))...)
			diags = append(diags, expr.CheckCompared(draft, all.Experiment)...)
		}
		for _, d := range diags {
			if in[key(d)] == nil {
				found = append(found, d)
			}
			in[key(d)] = append(in[key(d)], v.Name)
		}
	}
	for i, d := range found {
		names := in[key(d)]
		if len(names) == len(all.Variants) {
			continue
		}
		named := *d
		named.Summary = "variant " + names[0] + ": " + d.Summary
		if more := len(names) - 1; more > 0 {
			named.Summary = fmt.Sprintf("variant %s and %d more: %s", names[0], more, d.Summary)
		}
		found[i] = &named
	}
	if found.HasErrors() {
		return found
	}
	plans, diags := all.Keep(all.Plans)
	all.Plans = plans
	return append(found, diags...)
}

// resolve resolves the plan once, asserts included.
func (t *planText) resolve(vars plan.Vars) (*plan.Plan, hcl.Diagnostics) {
	vars.Trace, vars.Keys, vars.Values, vars.Content = t.named.trace, t.named.keys, t.named.values, t.named.content
	resolved, diags := t.file.Resolve(vars)
	draft := t.file.Draft()
	if draft == nil {
		return nil, diags
	}
	return resolved, append(diags, t.inFile(expr.Check(draft))...)
}

// inFile adds the file's path to diagnostics: a plan does not know its directory.
func (t *planText) inFile(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		d.Subject.Filename = t.path
	}
	return diags
}

// report writes errors in the plan with their positions. If there are any, its own error has no text.
func (t *planText) report(w io.Writer, diags hcl.Diagnostics) error {
	if len(diags) > 0 {
		if err := plan.FormatDiagnostics(w, diags, t.sources); err != nil {
			return err
		}
	}
	if diags.HasErrors() {
		return &exitError{code: exit.Usage}
	}
	return nil
}
