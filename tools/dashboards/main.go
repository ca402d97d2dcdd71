// Command dashboards writes the dashboards in grafana/dashboards: go run -C tools/dashboards . ../../grafana/dashboards
//
// It builds them with Grafana's own SDK, whose types have only fields that Grafana knows. It is a module of its own so that loadgen does not depend
// on the SDK.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// boards returns the dashboards by the names of their files.
func boards() map[string]*dashboard.DashboardBuilder {
	return map[string]*dashboard.DashboardBuilder{"run.json": runs(), "fleet.json": fleet(), "target.json": target(), "experiments.json": experiments()}
}

// text returns the JSON of a dashboard.
func text(b *dashboard.DashboardBuilder) ([]byte, error) {
	built, err := b.Build()
	if err != nil {
		return nil, err
	}
	for i := range built.Panels {
		built.Panels[i].Panel.Id = ptr(uint32(i + 1))
	}
	for i := range built.Links {
		built.Links[i].Placement = nil // above the panels, where every version shows them
	}
	out, err := json.MarshalIndent(built, "", "  ")
	return append(out, '\n'), err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards DIRECTORY")
		os.Exit(2)
	}
	for name, b := range boards() {
		out, err := text(b)
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), out, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "dashboards: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}
