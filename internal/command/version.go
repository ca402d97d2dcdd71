package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/target/drivers"
)

// module is the path of loadgen's module.
const module = "github.com/loadgen/loadgen"

// version returns the version of loadgen that this program was built from: a module version, or "devel" and the commit if known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	m, own := info.Main, true
	for _, d := range info.Deps { // of a program with drivers of its own
		if d.Path == module {
			m, own = *d, false
			if d.Replace != nil {
				m = *d.Replace
			}
		}
	}
	if m.Version != "" && m.Version != "(devel)" {
		return m.Version
	}
	for _, s := range info.Settings {
		if own && s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// versionLine is the version as people read it.
func versionLine(drivers map[string]string) string {
	line := fmt.Sprintf("loadgen %s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		line += fmt.Sprintf("\ndriver %s %s", name, drivers[name])
	}
	return line
}

func newVersion(known *drivers.Set) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  loadgen version\n  loadgen version --json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			origins, err := known.Origins()
			if err != nil {
				return failed("%w", err)
			}
			if asJSON {
				is := map[string]any{"loadgen": version(), "module": module, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
				if origins != nil {
					is["drivers"] = origins
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(is)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), versionLine(origins))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}
