package command

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/safefile"
)

// standard stands for standard input in the place of a plan, and for standard output in that of a file.
const standard = "-"

// checkOutputs refuses a file whose suffix does not match the format written to it, and two outputs to the same place.
func (f *runFlags) checkOutputs() error {
	suffix := strings.ToLower(filepath.Ext(f.report))
	switch {
	case suffix != "" && suffix != ".html" && suffix != ".htm":
		return fmt.Errorf("--report %s: it writes a page of HTML: write a name that ends in .html; after the run, loadgen report -o FILE writes .txt, .md, .csv and .json, too", f.report)
	case strings.EqualFold(filepath.Ext(f.out), ".html"):
		return fmt.Errorf("--out %s: it writes the result as JSON: write a name that ends in .json, or --report %[1]s for the page", f.out)
	case f.out == f.report && f.out == standard:
		return fmt.Errorf("--out -, --report -: only one of them can have standard output: name a file for the other")
	case f.out == f.report && f.out != "":
		return fmt.Errorf("--out %s, --report %[1]s: only one of them can have the file: name another for one of them", f.out)
	}
	return nil
}

// textOn returns where the text of a report goes: to the messages if something else has standard output.
func (f *runFlags) textOn(cmd *cobra.Command, words io.Writer) io.Writer {
	if f.out == standard || f.report == standard {
		return words
	}
	return cmd.OutOrStdout()
}

// writeTo replaces a file, or writes to standard output for -.
func writeTo(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == standard {
		return write(cmd.OutOrStdout())
	}
	return safefile.Replace(path, write)
}

// checkFile checks in advance whether the file that a flag names could be written.
func checkFile(flag, path string) error {
	if path == standard {
		return nil
	}
	return safefile.Check(flag, path)
}
