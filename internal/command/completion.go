package command

import (
	"cmp"
	_ "embed" // a function that bash may lack
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

//go:embed completion.bash
var bashWords string

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Write a shell completion script",
		Long: `Write a script that completes commands, flags, plans, variants and runs. For this shell only:

  bash  source <(loadgen completion bash)
  zsh   source <(loadgen completion zsh)
  fish  loadgen completion fish | source

For every new shell, add that line to ~/.bashrc, ~/.zshrc (after compinit) or ~/.config/fish/config.fish.`,
		Example: `  loadgen completion bash
  loadgen completion zsh
  loadgen completion fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      one("shell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				_, err := io.WriteString(w, bashWords)
				return orFailed(cmp.Or(err, root.GenBashCompletionV2(w, true)))
			case "zsh":
				return orFailed(root.GenZshCompletion(w))
			case "fish":
				return orFailed(root.GenFishCompletion(w, true))
			}
			return fmt.Errorf("unknown shell %q: write bash, zsh or fish", args[0])
		},
	}
}

// complete adds completion to a command and those below it: arguments, by their names in the usage line, and flags that take one of a few words.
// Completion ignores errors, which the command itself will report.
func complete(c *cobra.Command, known *drivers.Set) {
	for _, sub := range c.Commands() {
		complete(sub, known)
	}
	switch {
	case strings.Contains(c.Use, "PLAN.hcl"):
		c.ValidArgsFunction = completePlans
	case takesRuns(c):
		c.ValidArgsFunction = completeRuns
	}
	for name, f := range map[string]cobra.CompletionFunc{
		"variant":        completeVariants(known),
		"driver":         oneOf(known.Names()...),
		"progress":       oneOf(progressForms[:]...),
		"on-worker-loss": oneOf("continue", "abort", "replace"),
		"protocol":       oneOf("resp", "memcached", "hydra"),
		"op":             oneOf("get", "put"),
		"latency":        oneOf("service", "response"),
	} {
		if c.Flags().Lookup(name) == nil {
			continue
		}
		if err := c.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // no such flag
		}
	}
}

func oneOf(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completePlans offers plan files, as many as the usage line asks for.
func completePlans(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"hcl"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeRuns offers the runs that are not yet on the command line, newest first.
func completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if len(args) > 0 && (strings.HasSuffix(cmd.Use, " RUN") || strings.HasSuffix(cmd.Use, " [RUN]")) {
		return nil, how
	}
	root, err := rootOf(cmd)
	if err != nil {
		return nil, how
	}
	runs, err := rundir.List(root)
	if err != nil {
		return nil, how
	}
	var ids []string
	for _, r := range runs {
		if !slices.Contains(args, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids, how
}

// completeVariants offers the variants of the plan on the command line.
func completeVariants(known *drivers.Set) cobra.CompletionFunc {
	const how = cobra.ShellCompDirectiveNoFileComp
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, how
		}
		src, err := safefile.Read(args[0], dialect.MaxSource)
		if err != nil {
			return nil, how
		}
		file, diags := plan.Parse(src, args[0], known.All)
		if file == nil || diags.HasErrors() {
			return nil, how
		}
		x, more := file.Experiment()
		if x == nil || more.HasErrors() {
			return nil, how
		}
		var names []string
		for _, v := range x.Variants {
			names = append(names, v.Name)
		}
		return names, how
	}
}
