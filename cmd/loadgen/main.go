// Loadgen drives load, planned in HCL, against caches, databases, web servers and log files. It reports throughput and latency.
package main

import "github.com/loadgen/loadgen/pkg/loadgen"

func main() { loadgen.Main() }
