package main

import "github.com/spf13/cobra"

func newSelfcheck() *cobra.Command {
	return group("selfcheck", "What loadgen and this machine cost by themselves", newFloor())
}
