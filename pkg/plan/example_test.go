package plan_test

import (
	"fmt"
	"os"

	"github.com/loadgen/loadgen/pkg/plan"
)

func ExampleParse() {
	src := []byte(`
plan "cache" { description = "nine reads to a write" }

variable "rate" { default = "5k/s" }

target "cache" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

dataset "items" {
  keys {
    pick  = "zipf(0.99)"
    count = 100000
  }
  values { size = "1KiB" }
}

phase "mixed" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 9, put = 1 }
  open {
    rate     = var.rate
    duration = "1m"
  }
}
`)
	file, diags := plan.Parse(src, "plan.hcl", drivers())
	if diags.HasErrors() {
		_ = plan.FormatDiagnostics(os.Stdout, diags, map[string][]byte{"plan.hcl": src})
		return
	}
	p, diags := file.Resolve(plan.Vars{Flags: []string{"rate=20k/s"}})
	if diags.HasErrors() {
		_ = plan.FormatDiagnostics(os.Stdout, diags, map[string][]byte{"plan.hcl": src})
		return
	}
	mixed := p.Phases[0]
	fmt.Println(mixed.Open.Rate, "ops per second for", mixed.Open.Duration)
	_, all := p.Predict()
	fmt.Println(*all.Ops, "ops over", all.Connections, "connections")

	_, diags = file.Resolve(plan.Vars{Flags: []string{"rate=20k"}})
	_ = plan.FormatDiagnostics(os.Stdout, diags, map[string][]byte{"plan.hcl": src})
	// Output:
	// 20000 ops per second for 1m0s
	// 1200000 ops over 16 connections
	// plan.hcl:24: phase "mixed", open: rate: rate "20k" does not say per what. Write a rate such as "50k/s" or "300/min", or a number per second.
	//     24 |     rate     = var.rate
}
