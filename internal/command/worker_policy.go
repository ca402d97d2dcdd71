package command

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/pkg/plan"
)

// readPolicy reads --policy and applies it to the flags. Where both name a directory, they must agree; the shorter lease wins. With --print-policy it
// prints the resulting policy.
func (f *workerFlags) readPolicy(words, out io.Writer) error {
	if f.policy == "" {
		if f.print {
			return errors.New("--print-policy: no policy: a worker without --policy FILE does what a plan says")
		}
		return nil
	}
	src, err := safefile.Read(f.policy, policy.MaxSize)
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	p, diags := policy.Parse(src, f.policy)
	if diags.HasErrors() {
		if err := plan.FormatDiagnostics(words, diags, map[string][]byte{f.policy: src}); err != nil {
			return err
		}
		return &exitError{code: exit.Usage}
	}
	for _, dir := range []struct {
		flag  string
		given *string
		owned string
	}{{"files", &f.loops.files, p.Files}, {"log-root", &f.loops.logRoot, p.LogRoot}} {
		if *dir.given != "" && dir.owned != "" && *dir.given != dir.owned {
			return fmt.Errorf("--%s %s: the policy says %s: leave one of them out", dir.flag, *dir.given, dir.owned)
		}
		if dir.owned != "" {
			*dir.given = dir.owned
		}
	}
	if p.Lease > 0 {
		f.leaseMax = min(f.leaseMax, p.Lease)
	}
	if p.Memory > 0 {
		debug.SetMemoryLimit(min(p.Memory, debug.SetMemoryLimit(-1)))
	}
	f.loops.policy, f.loops.budget = p, p.Budget()
	if f.print {
		return p.Print(out)
	}
	return nil
}
