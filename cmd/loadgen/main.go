// Loadgen drives load, planned in HCL, against caches, databases, web servers and log files. It reports throughput and latency.
package main

import (
	"os"

	"github.com/loadgen/loadgen/internal/command"
)

func main() { os.Exit(command.Main(os.Args[1:])) }
