package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

// leastEnding is the least length of a part of an ID that names a run: that of its random end.
const leastEnding = 4

// takesRuns says whether a command's arguments are runs.
func takesRuns(c *cobra.Command) bool {
	return strings.Contains(c.Use, "RUN") || strings.HasSuffix(c.Use, " A B")
}

// rootOf returns where a command looks for runs.
func rootOf(cmd *cobra.Command) (string, error) {
	var flags runFlags
	if f := cmd.Flag("runs"); f != nil {
		flags.runs = f.Value.String()
	}
	return flags.root()
}

// nameRuns makes the commands that take runs, c and those below it, also accept "last" and the end of an ID.
func nameRuns(c *cobra.Command) {
	for _, sub := range c.Commands() {
		nameRuns(sub)
	}
	if !takesRuns(c) {
		return
	}
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		root, err := rootOf(cmd)
		if err != nil {
			return err
		}
		for i := range args {
			if args[i], err = sideNamed(root, args[i]); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
}

// sideNamed is runNamed for all runs that a side of a comparison names: RUN,RUN or RUN..RUN or EXPERIMENT/VARIANT.
func sideNamed(root, side string) (string, error) {
	ids, _, _ := strings.Cut(side, "/")
	var err error
	named := runPart.ReplaceAllStringFunc(ids, func(text string) string {
		id, wrong := runNamed(root, text)
		err = errors.Join(err, wrong)
		return id
	})
	return named + strings.TrimPrefix(side, ids), err
}

// runPart matches what stands for a run in a side of a comparison.
var runPart = regexp.MustCompile(`[^,.]+`)

// runNamed returns the ID of the run or the experiment that a text names: "last" is the one made here that began last, and the beginning or the end of an ID
// stands for that ID if no other has it. Any other text is returned as it is.
func runNamed(root, text string) (string, error) {
	if _, err := os.Stat(filepath.Join(root, text)); text != "last" && (err == nil || len(text) < leastEnding) {
		return text, nil
	}
	all, err := rundir.List(root)
	if err != nil {
		return "", failed("%w", err)
	}
	if i := slices.IndexFunc(all, func(s run.Summary) bool { return !s.Imported }); text == "last" && i >= 0 {
		if x := all[i].Experiment; x != "" && isExperiment(root, x) {
			return x, nil
		}
		return all[i].ID, nil
	}
	var found []string
	for _, r := range all {
		if strings.HasSuffix(r.ID, text) || strings.HasPrefix(r.ID, text) {
			found = append(found, r.ID)
		}
	}
	switch len(found) {
	case 0:
		return text, nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%q is part of %s: write more of it", text, strings.Join(found, " and of "))
}
