package command

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/spf13/cobra"
)

// form is a format for a report or a comparison, with the file suffix that selects it. The first of several is the default.
type form[T any] struct {
	name, suffix string
	write        func(io.Writer, T) error
}

// formFlags say in which format to write something, and where to.
type formFlags struct{ out, format string }

// addForms adds the flags of a command that writes one of these formats.
func addForms[T any](c *cobra.Command, f *formFlags, all []form[T]) {
	names, suffixes := namesOf(all)
	c.Flags().StringVarP(&f.out, "out", "o", "", "write to `FILE`, overwriting it; its suffix selects the format: "+strings.Join(suffixes, " ")+" (default: standard output)")
	c.Flags().StringVar(&f.format, "format", "", "write `FORMAT`: "+either(names)+" (default: by the file's suffix, or "+names[0]+")")
	if err := c.RegisterFlagCompletionFunc("format", oneOf(names...)); err != nil {
		panic(err) // no such flag
	}
}

// namesOf lists the names and suffixes of formats.
func namesOf[T any](all []form[T]) (names, suffixes []string) {
	for _, one := range all {
		if names = append(names, one.name); one.suffix != "" {
			suffixes = append(suffixes, one.suffix)
		}
	}
	return names, suffixes
}

// either joins choices: a, b or c.
func either(list []string) string {
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// formOf returns the format that the flags select.
func formOf[T any](f *formFlags, all []form[T]) (form[T], error) {
	for i, one := range all {
		byName := (f.out == "" || f.out == standard) && i == 0 || f.out != "" && one.suffix != "" && strings.EqualFold(filepath.Ext(f.out), one.suffix)
		if f.format == one.name || f.format == "" && byName {
			return one, nil
		}
	}
	names, suffixes := namesOf(all)
	if f.format != "" {
		return form[T]{}, fmt.Errorf("--format %s: write %s", f.format, either(names))
	}
	return form[T]{}, fmt.Errorf("-o %s: its suffix selects no format: write %s, or --format", f.out, either(suffixes))
}

// into writes what to the file that the flags name, or to w.
func (one form[T]) into(f *formFlags, w io.Writer, what T) error {
	var err error
	if f.out == "" || f.out == standard {
		err = one.write(w, what)
	} else {
		err = safefile.Replace(f.out, func(w io.Writer) error { return one.write(w, what) })
	}
	return orFailed(err)
}
