package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newFmt() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "fmt PLAN.hcl...",
		Short: "Format plans",
		Long: `Format plans: two spaces per level, equals signs of adjacent lines aligned. Comments and order are kept. Each file that changes is
rewritten and its name printed. A single - reads standard input and writes to standard output.

With --check nothing is rewritten: the exit code is 1 if a file would change.`,
		Example: `  loadgen plan fmt plans/hydra.hcl
  loadgen plan fmt --check plans/hydra.hcl plans/open.hcl
  loadgen plan fmt - <draft.hcl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no plan is named: write %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == standard {
				return formatStream(cmd, check)
			}
			return formatFiles(cmd, args, check)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "only list the files that would change")
	return c
}

// stdin is the name for standard input.
const stdin = "<stdin>"

// formatStream formats standard input to standard output, or with check says whether formatting would change it.
func formatStream(cmd *cobra.Command, check bool) error {
	_, src, err := readText(standard)
	if err != nil {
		return err
	}
	text, err := format(cmd, stdin, src)
	switch {
	case err != nil:
		return err
	case check && bytes.Equal(text, src):
		return nil
	case check:
		fmt.Fprintln(cmd.OutOrStdout(), stdin)
		return &exitError{code: exit.Assert}
	}
	_, err = cmd.OutOrStdout().Write(text)
	return orFailed(err)
}

// formatFiles formats all files, even if one of them fails.
func formatFiles(cmd *cobra.Command, paths []string, check bool) error {
	var wrong error
	for _, path := range paths {
		changed, err := formatFile(cmd, path, check)
		switch {
		case err != nil:
			fmt.Fprint(cmd.ErrOrStderr(), complaint(err))
			wrong = &exitError{code: exit.Usage}
		case changed:
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), path); err != nil {
				return failed("%w", err)
			}
			if check && wrong == nil {
				wrong = &exitError{code: exit.Assert}
			}
		}
	}
	return wrong
}

// complaint returns the text of an error that was not written yet.
func complaint(err error) string {
	if said, ok := errors.AsType[*exitError](err); ok && said.text == "" {
		return ""
	}
	return fmt.Sprintf("loadgen: %v\n", err)
}

// formatFile formats one file, atomically.
func formatFile(cmd *cobra.Command, path string, check bool) (changed bool, err error) {
	src, err := safefile.Read(path, dialect.MaxSource)
	if err != nil {
		return false, err
	}
	text, err := format(cmd, path, src)
	if err != nil || bytes.Equal(text, src) || check {
		return err == nil && !bytes.Equal(text, src), err
	}
	return true, safefile.Replace(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// format formats a text, and reports any syntax errors.
func format(cmd *cobra.Command, name string, src []byte) ([]byte, error) {
	text, diags := plan.Format(src, name)
	return text, (&planText{sources: map[string][]byte{name: src}}).report(cmd.ErrOrStderr(), diags)
}
