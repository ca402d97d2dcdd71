package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/loadgen/loadgen/internal/report"
)

// newProgress shows progress on w: redrawn lines when that is a terminal, a line each second otherwise.
func newProgress(w io.Writer) *report.Progress {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return report.NewProgress(w, nil)
	}
	return report.NewProgress(w, func() int {
		columns, _, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 0
		}
		return columns
	})
}
