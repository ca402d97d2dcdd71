package command

import (
	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/report/words"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE|PATH|METRIC...]",
		Short: "Say what a reason's code means and what to do, or what a figure is",
		Long: `Say what a code means, when it arises and what to do; without one, list all codes. Reports give a code with each reason for doubt, and
results with each figure that is missing. Of a figure's path in a result, or of a metric, say what it is: "result", "experiment" and "comparison" have
the paths to begin with, "metrics" lists the metrics of --http.`,
		Example: `  loadgen explain run_queue
  loadgen explain phase.load.op.get.response.p99
  loadgen explain result
  loadgen explain metrics`,
		ValidArgsFunction: func(*cobra.Command, []string, string) (codes []string, how cobra.ShellCompDirective) {
			for _, e := range words.Explanations() {
				codes = append(codes, e.Code)
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return report.Explain(cmd.OutOrStdout(), args, optionsFor(cmd.OutOrStdout(), "", false))
		},
	}
}
