package main

import (
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/table"
	"github.com/loadgen/loadgen/pkg/plan"
)

// planFlags are the flags of every command that reads a plan.
type planFlags struct {
	vars    []string
	varFile string
}

func (p *planFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&p.vars, "var", nil, "set a variable of the plan: `NAME=VALUE`; repeatable")
	f.StringVar(&p.varFile, "var-file", "", "set variables by the NAME = VALUE lines of `FILE`; of several the last counts")
}

// load reads a plan file and resolves it, asserts included. Mistakes are written to w with their places; the error is empty then.
func (p *planFlags) load(path string, w io.Writer) (*plan.Plan, error) {
	src, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	vars := plan.Vars{Flags: p.vars, FileName: p.varFile, Environ: os.Environ()}
	sources := map[string][]byte{path: src}
	if p.varFile != "" {
		if vars.File, err = readBounded(p.varFile); err != nil {
			return nil, err
		}
		sources[p.varFile] = vars.File
	}
	resolved, diags := resolve(src, path, vars)
	if len(diags) > 0 {
		if err := plan.FormatDiagnostics(w, diags, sources); err != nil {
			return nil, err
		}
	}
	if diags.HasErrors() {
		return nil, &exitError{code: exitUsage}
	}
	return resolved, nil
}

func resolve(src []byte, path string, vars plan.Vars) (*plan.Plan, hcl.Diagnostics) {
	file, diags := plan.Parse(src, path, drivers.All())
	if file == nil {
		return nil, diags
	}
	resolved, more := file.Resolve(vars)
	diags = append(diags, more...)
	draft := file.Draft()
	if draft == nil {
		return nil, diags
	}
	for _, d := range table.Check(draft) {
		d.Subject.Filename = path // a plan does not know in which directory it was
		diags = append(diags, d)
	}
	return resolved, diags
}

// readBounded reads a file that must not be larger than a plan may be; the guard refuses one that is.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, plan.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}
