// Command packages writes the man pages of a release, one for each command's help.
//
//	go run -C tools/packages . DIR VERSION
//
// It is a module of its own so that loadgen depends neither on nfpm nor on the writer of man pages. The pages' date is SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/loadgen/loadgen/internal/command"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: packages DIR VERSION")
		os.Exit(2)
	}
	tree := command.Tree()
	indent(tree)
	if err := doc.GenManTree(tree, &doc.GenManHeader{Section: "1", Source: "loadgen " + os.Args[2], Manual: "loadgen"}, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// indent has the indented lines of help texts kept as they are: to the writer of man pages, that takes four blanks.
func indent(c *cobra.Command) {
	c.DisableAutoGenTag = true
	c.Long = strings.ReplaceAll(c.Long, "\n  ", "\n    ")
	for _, sub := range c.Commands() {
		indent(sub)
	}
}
